//! kymo-tracing beside LTTng-UST: what it costs to record an event with three integers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Outcome;
use crate::args::Args;
use crate::daemons::Running;
use crate::process::{build_example, command, hear, require, root};

/// The ways in which kymo-tracing records.
const KINDS: [&str; 3] = ["files", "mapped", "flight"];

/// `cargo xtask bench tracing`.
pub(super) fn run(mut args: Args) -> Outcome {
    let events: u64 = args.value("--events")?.unwrap_or(2_000_000).max(10);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    args.finish()?;
    require("lttng", "lttng-tools")?;
    require("gcc", "gcc")?;
    require("valgrind", "valgrind")?;
    let folder = tempfile::tempdir()?;
    let ours = build_example("kymo-tracing", "burst")?;
    let theirs = build_theirs(folder.path())?;
    let daemon = Daemon::start(folder.path())?;

    let mut costs = vec![Vec::new(); KINDS.len()];
    let mut processes = costs.clone();
    let (mut clock, mut peer) = (Vec::new(), Vec::new());
    for run in 0..runs {
        clock.push(spent(&ours, "clock", folder.path(), events, run)?.0);
        for (kind, name) in KINDS.iter().enumerate() {
            let (thread, process) = spent(&ours, name, folder.path(), events, run)?;
            costs[kind].push(thread);
            processes[kind].push(process);
        }
        peer.push(daemon.spent(&theirs, events, run)?);
    }
    let peer = median(peer);
    let peer_count = daemon.instructions(&theirs)?;
    println!(
        "an event with three integers, {events} events, {runs} alternating runs; medians of processor time\n"
    );
    println!(
        "{:<12} {:>10} {:>10} {:>7} {:>13} {:>7}",
        "", "thread", "process", "ratio", "instructions", "ratio"
    );
    println!("{:<12} {:>7.1} ns", "clock", median(clock));
    for (kind, name) in KINDS.iter().enumerate() {
        let thread = median(std::mem::take(&mut costs[kind]));
        let process = median(std::mem::take(&mut processes[kind]));
        let count = instructions(|events| {
            let directory = folder.path().join(format!("{name}-{events}-counted"));
            let mut valgrind = counting();
            valgrind.arg(&ours).arg(name).arg(directory);
            counted(valgrind.arg(events.to_string()))
        })?;
        println!(
            "{name:<12} {thread:>7.1} ns {process:>7.1} ns {:>7.2} {count:>13.0} {:>7.2}",
            thread / peer,
            count / peer_count,
        );
    }
    println!(
        "{:<12} {peer:>7.1} ns {:>10} {:>7} {peer_count:>13.0}",
        "lttng-ust", "", ""
    );
    println!(
        "\n(thread: the one that records; process: with the thread that writes, which of LTTng is another\n\
         process; ratio: of thread, to LTTng's; instructions: of the process)"
    );
    Ok(())
}

fn median(mut costs: Vec<f64>) -> f64 {
    costs.sort_unstable_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// Nanoseconds of an event: of the thread that records, and of the process.
fn spent(
    program: &Path,
    kind: &str,
    folder: &Path,
    events: u64,
    run: usize,
) -> Outcome<(f64, f64)> {
    let directory = folder.join(format!("{kind}-{run}"));
    let mut command = command(program);
    let said = hear(command.arg(kind).arg(&directory).arg(events.to_string()))?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    let (Some(0), Some((thread, process))) = (said.code, text.trim().split_once(' ')) else {
        return Err(format!("{}: {}", program.display(), said.err).into());
    };
    let each = |nanos: &str| -> Outcome<f64> { Ok(nanos.parse::<f64>()? / events as f64) };
    let spent = (each(thread)?, each(process)?);
    if directory.is_dir() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(spent)
}

/// Counts instructions of what it is given.
fn counting() -> Command {
    let mut valgrind = command("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind
}

/// How many it has counted.
fn counted(command: &mut Command) -> Outcome<f64> {
    let said = hear(command)?;
    let counted = said
        .err
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    match (said.code, counted) {
        (Some(0), Some((_, count))) => Ok(count.trim().parse()?),
        _ => Err(format!("valgrind has not counted: {}", said.err).into()),
    }
}

/// Instructions of an event: what many take more than few.
fn instructions(count: impl Fn(u64) -> Outcome<f64>) -> Outcome<f64> {
    let (few, many) = (20_000, 120_000);
    // A tenth as many come before the ones that are measured.
    Ok((count(many)? - count(few)?) / ((many - few) as f64 * 1.1))
}

fn build_theirs(folder: &Path) -> Outcome<PathBuf> {
    let sources = root().join("xtask/src/bench/tracing");
    let program = folder.join("burst");
    let said = hear(
        command("gcc")
            .arg("-O2")
            .arg("-I")
            .arg(&sources)
            .arg("-o")
            .arg(&program)
            .arg(sources.join("burst.c"))
            .args(["-llttng-ust", "-ldl", "-lpthread"]),
    )?;
    match said.code {
        Some(0) => Ok(program),
        _ => Err(format!(
            "gcc, with the Debian package liblttng-ust-dev: {}",
            said.err
        )
        .into()),
    }
}

/// LTTng's session daemon, with a home of its own.
struct Daemon {
    home: PathBuf,
    /// It goes by being dropped.
    _running: Running,
}

impl Daemon {
    fn start(folder: &Path) -> Outcome<Self> {
        let home = folder.join("home");
        std::fs::create_dir(&home)?;
        let mut sessiond = command("lttng-sessiond");
        sessiond.arg("--no-kernel").env("LTTNG_HOME", &home);
        let daemon = Self {
            _running: Running::begin(&mut sessiond, &folder.join("log"))?,
            home,
        };
        for _ in 0..100 {
            if daemon.lttng(&["list"]).is_ok() {
                return Ok(daemon);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("lttng-sessiond does not answer".into())
    }

    fn lttng(&self, args: &[&str]) -> Outcome {
        let said = hear(command("lttng").args(args).env("LTTNG_HOME", &self.home))?;
        match said.code {
            Some(0) => Ok(()),
            _ => Err(format!("lttng {}: {}", args.join(" "), said.err.trim()).into()),
        }
    }

    /// Does something while a session records, and fails where an event was lost: to lose one costs less.
    fn recording<T>(
        &self,
        name: &str,
        events: u64,
        act: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        let trace = self.home.join(name);
        let output = format!("--output={}", trace.display());
        self.lttng(&["create", name, &output])?;
        let channel = [
            "enable-channel",
            "--userspace",
            "--subbuf-size=8M",
            "--num-subbuf=16",
            "main",
        ];
        self.lttng(&channel)?;
        self.lttng(&["enable-event", "--userspace", "--channel=main", "kymo:*"])?;
        self.lttng(&["start"])?;
        let result = act()?;
        self.lttng(&["stop"])?;
        self.lttng(&["destroy", name])?;
        let times = crate::conformance::times(&trace)?;
        if times.len() as u64 != events + events / 10 {
            return Err(format!("LTTng has recorded {} events of {events}", times.len()).into());
        }
        std::fs::remove_dir_all(trace)?;
        Ok(result)
    }

    /// A program that waits until LTTng knows it.
    fn known(&self, mut command: Command) -> Command {
        command
            .env("LTTNG_HOME", &self.home)
            .env("LTTNG_UST_REGISTER_TIMEOUT", "-1");
        command
    }

    /// Nanoseconds of an event in the thread that records.
    fn spent(&self, program: &Path, events: u64, run: usize) -> Outcome<f64> {
        self.recording(&format!("run-{run}"), events, || {
            let mut command = self.known(command(program));
            let said = hear(command.arg(events.to_string()))?;
            let nanos: f64 = String::from_utf8_lossy(&said.out).trim().parse()?;
            Ok(nanos / events as f64)
        })
    }

    /// Instructions of an event.
    fn instructions(&self, program: &Path) -> Outcome<f64> {
        instructions(|events| {
            self.recording(&format!("counted-{events}"), events, || {
                let mut valgrind = self.known(counting());
                counted(valgrind.arg(program).arg(events.to_string()))
            })
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.lttng(&["destroy", "--all"]);
    }
}
