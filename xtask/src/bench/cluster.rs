//! The same statement over many recordings by a cluster of one worker and of two, each on a processor of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kymo_model::Recording;

use super::{median, trace};
use crate::args::Args;
use crate::interop::tool;
use crate::process::{command, hear, require, root};
use crate::{Outcome, conformance};

const STATEMENT: &str = "SELECT event, vtid, count(*), max(timestamp) FROM events GROUP BY event, vtid ORDER BY event, vtid";

/// `cargo xtask bench cluster`.
pub(super) fn run(mut args: Args) -> Outcome {
    let tool = tool(&mut args)?;
    let events: u64 = args.value("--events")?.unwrap_or(500_000);
    let recordings: usize = args.value("--recordings")?.unwrap_or(40).max(1);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let query: Option<String> = args.value("--query")?;
    args.finish()?;
    require("taskset", "util-linux")?;
    let query = query.unwrap_or_else(|| "query/target/release/kymo-query".to_owned());
    let query = root().join(query);
    if !query.is_file() {
        let query = query.display();
        return Err(format!("no {query} (`cargo build --release` in query/)").into());
    }
    let trace = trace(&tool, events)?;
    let all = trace.with_file_name(format!("recordings-{recordings}"));
    if all.is_dir() {
        std::fs::remove_dir_all(&all)?;
    }
    let (directory, identifier) = single(&trace)?;
    let files = files(&directory, identifier)?;
    for number in 0..recordings {
        let mut other = identifier;
        other[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let to = all.join(format!("recording-{number}"));
        std::fs::create_dir_all(&to)?;
        for file in &files {
            std::fs::write(to.join(&file.name), file.with(other))?;
        }
    }
    println!(
        "{recordings} recordings of {events} events, {runs} alternating runs, medians\n{STATEMENT}\n"
    );
    println!(
        "{:<10} {:>9} {:>13} {:>24}",
        "", "wall", "scheduler CPU", "workers CPU"
    );
    let clusters = [
        Cluster::start(&query, &["0"])?,
        Cluster::start(&query, &["0", "1"])?,
    ];
    let mut costs: [Vec<Cost>; 2] = Default::default();
    let alone = rows(&query, &["--threads=1"], &all)?;
    for _ in 0..runs {
        for (cluster, costs) in clusters.iter().zip(&mut costs) {
            let before = cluster.cpu()?;
            let begin = Instant::now();
            let answer = rows(&query, &["--cluster", &cluster.address], &all)?;
            let wall = begin.elapsed();
            if answer != alone {
                return Err("the cluster's answer is not that of one process".into());
            }
            let after = cluster.cpu()?;
            let cpu = after
                .iter()
                .zip(before)
                .map(|(after, before)| *after - before);
            costs.push(Cost {
                wall,
                cpu: cpu.collect(),
            });
        }
    }
    let mut walls = Vec::new();
    for (workers, costs) in (1..).zip(costs) {
        let wall = median(costs.iter().map(|cost| cost.wall).collect());
        let processes = costs[0].cpu.len();
        let cpu = (0..processes).map(|at| median(costs.iter().map(|cost| cost.cpu[at]).collect()));
        let cpu: Vec<f64> = cpu.map(|time| time.as_secs_f64()).collect();
        let of_workers: Vec<String> = cpu[1..]
            .iter()
            .map(|seconds| format!("{seconds:.2}s"))
            .collect();
        println!(
            "{workers} worker{} {:>9.2}s {:>12.2}s {:>24}",
            if workers == 1 { " " } else { "s" },
            wall.as_secs_f64(),
            cpu[0],
            of_workers.join(" + "),
        );
        // What takes longest if each process has a processor of its own.
        let longest = cpu[1..].iter().copied().fold(0.0, f64::max);
        walls.push((wall.as_secs_f64(), cpu[0] + longest));
    }
    println!(
        "\nratio: {:.2} by the clock, {:.2} by processor time (scheduler and the busiest worker)",
        walls[0].0 / walls[1].0,
        walls[0].1 / walls[1].1
    );
    std::fs::remove_dir_all(&all)?;
    Ok(())
}

struct Cost {
    wall: Duration,
    /// Of the scheduler, then of each worker.
    cpu: Vec<Duration>,
}

/// The identifier of a trace.
fn single(trace: &Path) -> Outcome<(PathBuf, [u8; 16])> {
    let recordings = conformance::open(trace)?;
    let found = recordings.iter().find_map(|recording| {
        let class = recording.as_ctf()?.class();
        Some((recording.path().to_path_buf(), class.uuid?))
    });
    Ok(found.ok_or("the trace has no identifier")?)
}

/// A file of a trace, and where the trace's identifier is in it: as bytes, and as text.
struct File {
    name: OsString,
    bytes: Vec<u8>,
    plain: Vec<usize>,
    shown: Vec<usize>,
}

impl File {
    /// The file of a copy with another identifier: recordings with the same one are one trace.
    fn with(&self, identifier: [u8; 16]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let text = shown(identifier);
        for (places, other) in [
            (&self.plain, &identifier[..]),
            (&self.shown, text.as_bytes()),
        ] {
            for &place in places {
                bytes[place..place + other.len()].copy_from_slice(other);
            }
        }
        bytes
    }
}

/// The files of a trace.
fn files(trace: &Path, identifier: [u8; 16]) -> Outcome<Vec<File>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(trace)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            continue;
        }
        let bytes = std::fs::read(entry.path())?;
        let places = |text: &[u8]| -> Vec<usize> {
            let windows = bytes.windows(text.len()).enumerate();
            let found = windows.filter(|(_, window)| *window == text);
            found.map(|(place, _)| place).collect()
        };
        files.push(File {
            name: entry.file_name(),
            plain: places(&identifier),
            shown: places(shown(identifier).as_bytes()),
            bytes,
        });
    }
    Ok(files)
}

/// An identifier as metadata has it.
fn shown(identifier: [u8; 16]) -> String {
    let digits: String = identifier
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &digits[part]).join("-")
}

/// What a statement is answered with.
fn rows(query: &Path, options: &[&str], recordings: &Path) -> Outcome<Vec<u8>> {
    let mut program = command(query);
    program.args(options).args(["--format=csv", STATEMENT]);
    let answer = hear(program.arg(recordings))?;
    match answer.code {
        Some(0) => Ok(answer.out),
        _ => Err(format!("{}: {}", query.display(), answer.err).into()),
    }
}

/// A scheduler, and workers of one thread on processors of their own.
struct Cluster {
    address: String,
    processes: Vec<Process>,
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Cluster {
    fn start(query: &Path, processors: &[&str]) -> Outcome<Self> {
        let mut scheduler = command(query);
        scheduler.args(["scheduler", "--listen=127.0.0.1:0", "--threads=1"]);
        let mut scheduler = scheduler.stderr(Stdio::piped()).spawn()?;
        let log = scheduler.stderr.take().ok_or("no standard error")?;
        let mut processes = vec![Process(scheduler)];
        let mut lines = BufReader::new(log).lines();
        let mut wait = |text: &str| -> Outcome<String> {
            for line in &mut lines {
                if let Some((_, rest)) = line?.split_once(text) {
                    return Ok(rest.to_owned());
                }
            }
            Err("the scheduler ended".into())
        };
        let address = wait(" scheduler listens address=")?;
        for processor in processors {
            let mut worker = command("taskset");
            worker.args(["--cpu-list", processor]).arg(query);
            worker.args(["worker", "--threads=1", "--scheduler", &address]);
            processes.push(Process(worker.stderr(Stdio::null()).spawn()?));
            wait(" worker joined ")?;
        }
        // Its log has to be read, or it would wait.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(Self { address, processes })
    }

    /// Processor time of each process so far.
    fn cpu(&self) -> Outcome<Vec<Duration>> {
        self.processes
            .iter()
            .map(|process| cpu(process.0.id()))
            .collect()
    }
}

/// Processor time of a process so far, user and system.
fn cpu(process: u32) -> Outcome<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, which may contain anything, is between parentheses.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    let ticks = ticks(11)
        .zip(ticks(12))
        .ok_or("unexpected /proc/PID/stat")?;
    // Linux reports hundredths of a second on all machines.
    Ok(Duration::from_millis((ticks.0 + ticks.1) * 10))
}
