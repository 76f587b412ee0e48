//! rrdtool's command lines, carried out by rrdtool and by kymo.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{children, median};
use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, require, root};

/// When the databases begin.
const BEGIN: u64 = 1_600_000_000;

/// Rows of the archive that is fetched.
const ROWS: u64 = 105_000;

/// Updates that are processes of their own, in one run.
const PROCESSES: u64 = 100;

/// Lines of 100 updates, in one run.
const LONG_LINES: u64 = 200;

/// What one run costs.
#[derive(Clone, Copy)]
struct Cost {
    cpu: Duration,
    wall: Duration,
}

/// The two programs, each with a folder of its own.
struct Bench {
    kymo: PathBuf,
    folder: PathBuf,
    files: u64,
    /// How many steps have been updated.
    steps: u64,
}

/// `cargo xtask bench commands`.
pub(super) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let files: u64 = args.value("--files")?.unwrap_or(1000).max(1);
    args.finish()?;
    require("rrdtool", "rrdtool")?;
    let folder = root().join("target/bench/commands");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut bench = Bench {
        kymo: build_kymo(true)?,
        folder,
        files,
        steps: 0,
    };
    bench.make()?;
    println!("{runs} alternating runs, medians of CPU time (user and system); nothing is synced");
    println!("but where it is said\n");
    println!("{:<34} {:>12} {:>12} {:>7}", "", "kymo", "rrdtool", "ratio");
    // How often it is done in one run, how many steps of time it takes, and what it is.
    /// A name, how often it is done, what is counted of it, and how it is made.
    type Planned = (&'static str, u64, u64, fn(&Bench) -> Task);
    let tasks: [Planned; 5] = [
        ("update, a line, 10 of each file", files * 10, 10, |bench| {
            bench.many(10)
        }),
        (
            "update, a line, 100 of each file",
            files * 100,
            100,
            |bench| bench.many(100),
        ),
        (
            "update, a process each",
            PROCESSES,
            PROCESSES,
            Bench::processes,
        ),
        (
            "update, 100 times a line",
            LONG_LINES * 100,
            LONG_LINES * 100,
            Bench::long_lines,
        ),
        ("fetch, a row", ROWS, 0, Bench::fetch),
    ];
    for (name, times, steps, task) in tasks {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            // Both get the same times.
            let task = task(&bench);
            bench.steps += steps;
            ours.push(bench.cost(&task, "kymo")?.cpu);
            theirs.push(bench.cost(&task, "rrdtool")?.cpu);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / times as f64;
        println!(
            "{name:<34} {:>9.2} us {:>9.2} us {:>7.1}",
            micros(ours),
            micros(theirs),
            theirs.as_secs_f64() / ours.as_secs_f64().max(1e-9),
        );
    }
    println!("\nportable files, {files} of them, an update a line");
    for (name, option) in [("not synced", ""), ("--durable", " --durable")] {
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let task = bench.portable(option);
            bench.steps += 1;
            let cost = bench.cost(&task, "kymo")?;
            cpu.push(cost.cpu);
            wall.push(cost.wall);
        }
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / files as f64;
        println!(
            "{name:<34} {:>9.2} us of CPU, {:>9.2} us of time",
            micros(median(cpu)),
            micros(median(wall))
        );
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

/// What is run: lines in a pipe, or a number of processes.
enum Task {
    Lines(String),
    Processes(Vec<Vec<String>>),
}

impl Bench {
    /// Makes the databases with rrdtool, and the portable ones of them.
    fn make(&self) -> Outcome {
        let theirs = self.folder.join("rrdtool");
        std::fs::create_dir_all(&theirs)?;
        let archives =
            "RRA:AVERAGE:0.5:1:600 RRA:AVERAGE:0.5:6:700 RRA:MAX:0.5:6:700 RRA:LAST:0.5:24:775";
        let mut script = format!(
            "create small.rrd --start {BEGIN} --step 300 DS:x:GAUGE:600:U:U {archives}\n\
             create long.rrd --start {BEGIN} --step 300 DS:x:GAUGE:100000000:U:U RRA:AVERAGE:0.5:1:{ROWS}\n"
        );
        // Long steps of known values, so that every row has its digits.
        for update in 1..=ROWS / 100 {
            let time = BEGIN + update * 30_000;
            let _ = writeln!(
                script,
                "update long.rrd {time}:{}.{}",
                update % 977,
                update % 89
            );
        }
        self.lines(Path::new("rrdtool"), &[], &theirs, &script)?;
        for number in 0..self.files {
            std::fs::copy(
                theirs.join("small.rrd"),
                theirs.join(format!("{number}.rrd")),
            )?;
        }
        let ours = self.folder.join("kymo");
        std::fs::create_dir_all(&ours)?;
        for entry in std::fs::read_dir(&theirs)? {
            let entry = entry?;
            std::fs::copy(entry.path(), ours.join(entry.file_name()))?;
        }
        let mut script = String::new();
        for number in 0..self.files {
            let _ = writeln!(
                script,
                "create p{number}.rrd --format portable --start {BEGIN} --step 300 DS:x:GAUGE:600:U:U {archives}"
            );
        }
        self.lines(&self.kymo, &["rrd"], &ours, &script)
    }

    /// `rounds` updates of each of many files: the more there are, the less opening the files counts.
    fn many(&self, rounds: u64) -> Task {
        let mut script = String::new();
        for round in 1..=rounds {
            let time = BEGIN + (self.steps + round) * 300;
            for number in 0..self.files {
                let _ = writeln!(script, "update {number}.rrd {time}:{number}.{round}");
            }
        }
        Task::Lines(script)
    }

    fn portable(&self, option: &str) -> Task {
        let time = BEGIN + (self.steps + 1) * 300;
        let lines = (0..self.files)
            .map(|number| format!("update p{number}.rrd{option} {time}:{number}.5\n"));
        Task::Lines(lines.collect())
    }

    fn processes(&self) -> Task {
        let processes = (1..=PROCESSES).map(|number| {
            let time = BEGIN + (self.steps + number) * 300;
            vec![
                "update".into(),
                "small.rrd".into(),
                format!("{time}:{number}.5"),
            ]
        });
        Task::Processes(processes.collect())
    }

    fn long_lines(&self) -> Task {
        let mut script = String::new();
        for line in 0..LONG_LINES {
            script.push_str("update small.rrd");
            for number in 1..=100 {
                let time = BEGIN + (self.steps + line * 100 + number) * 300;
                let _ = write!(script, " {time}:{number}.25");
            }
            script.push('\n');
        }
        Task::Lines(script)
    }

    fn fetch(&self) -> Task {
        let end = BEGIN + ROWS / 100 * 30_000;
        let start = end - ROWS * 300;
        let words = format!("fetch long.rrd AVERAGE -s {start} -e {end}");
        Task::Processes(vec![words.split(' ').map(str::to_owned).collect()])
    }

    /// What a task costs one of the programs.
    fn cost(&self, task: &Task, who: &str) -> Outcome<Cost> {
        let folder = self.folder.join(who);
        let (program, first): (&Path, &[&str]) = match who {
            "kymo" => (&self.kymo, &["rrd"]),
            _ => (Path::new("rrdtool"), &[]),
        };
        let before = children()?;
        let begin = Instant::now();
        match task {
            Task::Lines(script) => self.lines(program, first, &folder, script)?,
            Task::Processes(processes) => {
                for words in processes {
                    let mut command = command(program);
                    command.args(first).args(words).current_dir(&folder);
                    let status = command.stdout(Stdio::null()).status()?;
                    if !status.success() {
                        return Err(format!("{command:?}: {status}").into());
                    }
                }
            }
        }
        Ok(Cost {
            cpu: children()? - before,
            wall: begin.elapsed(),
        })
    }

    /// Gives lines to a program, all of which it has to carry out.
    fn lines(&self, program: &Path, first: &[&str], folder: &Path, script: &str) -> Outcome {
        let (input, output) = (self.folder.join("lines"), self.folder.join("answers"));
        std::fs::write(&input, script)?;
        let mut command: Command = command(program);
        let status = command
            .args(first)
            .arg("-")
            .current_dir(folder)
            .stdin(Stdio::from(std::fs::File::open(&input)?))
            .stdout(Stdio::from(std::fs::File::create(&output)?))
            .status()?;
        let answers = std::fs::read_to_string(&output)?;
        match answers.lines().find(|line| !line.starts_with("OK ")) {
            Some(line) => Err(format!("{command:?}: {line}").into()),
            None if status.success() => Ok(()),
            None => Err(format!("{command:?}: {status}").into()),
        }
    }
}
