//! `kymo serve` beside rrdcached: how many updates both accept, and how fast they write them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::median;
use crate::Outcome;
use crate::args::Args;
use crate::daemons::{Client, Daemon};
use crate::process::{build_kymo, require, root};

/// When the databases begin.
const BEGIN: u64 = 1_500_000_000;
/// Updates of a database in one run.
const ROUNDS: u64 = 300;
/// Lines that are sent before their answers are waited for.
const AHEAD: usize = 1000;

/// What one run costs the daemon, and how long it takes.
#[derive(Clone, Copy)]
struct Cost {
    cpu: Duration,
    wall: Duration,
}

/// How updates are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Many between `BATCH` and a dot.
    Batches,
    /// Each is answered; many are on their way.
    Pipelined,
}

/// `cargo xtask bench serve`.
pub(super) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let files: u64 = args.value("--files")?.unwrap_or(1000).max(1);
    args.finish()?;
    require("rrdcached", "rrdcached")?;
    let kymo = build_kymo(true)?;
    let updates = files * ROUNDS;
    println!(
        "{updates} updates of {files} databases, {runs} alternating runs; medians, updates a second \
         by the clock, and the daemon's CPU time for each\n"
    );
    println!(
        "{:<28} {:>12} {:>12} {:>7} {:>9} {:>9} {:>7}",
        "", "kymo", "rrdcached", "ratio", "kymo", "rrdcached", "ratio"
    );
    for (way, name) in [
        (Way::Batches, "BATCH"),
        (Way::Pipelined, "UPDATE, pipelined"),
    ] {
        for journal in [true, false] {
            let mut accepted = [Vec::new(), Vec::new()];
            let mut written = [Vec::new(), Vec::new()];
            for _ in 0..runs {
                for (side, program) in [Some(&kymo), None].into_iter().enumerate() {
                    let [accepting, writing] = one(program, files, journal, way)?;
                    accepted[side].push(accepting);
                    written[side].push(writing);
                }
            }
            let with = if journal { "journal" } else { "no journal" };
            show(&format!("{name}, {with}"), &accepted, updates);
            if way == Way::Batches {
                show(&format!("  written, {with}"), &written, updates);
            }
        }
    }
    Ok(())
}

fn show(name: &str, costs: &[Vec<Cost>; 2], updates: u64) {
    let seconds = |side: usize, what: fn(&Cost) -> Duration| {
        median(costs[side].iter().map(what).collect()).as_secs_f64() / updates as f64
    };
    let wall = [seconds(0, |cost| cost.wall), seconds(1, |cost| cost.wall)];
    let cpu = [seconds(0, |cost| cost.cpu), seconds(1, |cost| cost.cpu)];
    println!(
        "{name:<28} {:>10.0}/s {:>10.0}/s {:>7.2} {:>6.0} ns {:>6.0} ns {:>7.2}",
        1.0 / wall[0],
        1.0 / wall[1],
        wall[1] / wall[0],
        cpu[0] * 1e9,
        cpu[1] * 1e9,
        cpu[1] / cpu[0]
    );
}

/// One run of one daemon: of `kymo serve` if a program is given, else of rrdcached. Returns what it costs
/// to accept updates, and to write them.
fn one(program: Option<&PathBuf>, files: u64, journal: bool, way: Way) -> Outcome<[Cost; 2]> {
    let folder = root().join("target/bench/serve");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let daemon = match program {
        Some(program) => Daemon::kymo(program, &folder, journal)?,
        None => Daemon::rrdcached(&folder, journal)?,
    };
    let mut client = daemon.client()?;
    let mut lines = String::new();
    for file in 0..files {
        let name = name(file);
        lines += &format!(
            "CREATE {name} -b {BEGIN} -s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:1200 \
             RRA:AVERAGE:0.5:7:1200\nUPDATE {name} {}:0\n",
            BEGIN + 1
        );
    }
    // All are known, and nothing is pending.
    let made = client.ask(&format!("{lines}FLUSHALL"))?;
    if made
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"-"))
    {
        return Err("the databases cannot be made".into());
    }
    flush_all(&mut client, files)?;

    let chunks = updates(files, way);
    let accepting = cost(&daemon, || {
        chunks.iter().try_for_each(|chunk| send(&mut client, chunk))
    })?;
    let writing = cost(&daemon, || flush_all(&mut client, files))?;
    let last = name(files - 1);
    let reported = client.ask(&format!("PENDING {last}\nLAST {last}"))?;
    let expected = format!("0 updates pending\n0 {}\n", BEGIN + 10 * ROUNDS);
    if reported != expected.into_bytes() {
        return Err("not all was written".into());
    }
    daemon.end()?;
    Ok([accepting, writing])
}

fn name(file: u64) -> String {
    format!("host{}/plugin-{file}/gauge-value.rrd", file % 10)
}

/// Lines that are sent at once, and how many lines answer them.
struct Chunk {
    text: String,
    answers: usize,
}

fn updates(files: u64, way: Way) -> Vec<Chunk> {
    let lines = (1..=ROUNDS).flat_map(|round| {
        (0..files).map(move |file| {
            let time = BEGIN + 10 * round;
            format!("UPDATE {} {time}:{}.5\n", name(file), round * file % 1000)
        })
    });
    let lines: Vec<String> = lines.collect();
    let chunks = lines.chunks(AHEAD).map(|lines| match way {
        Way::Batches => Chunk {
            text: format!("BATCH\n{}.\n", lines.concat()),
            answers: 2,
        },
        Way::Pipelined => Chunk {
            text: lines.concat(),
            answers: lines.len(),
        },
    });
    chunks.collect()
}

/// Sends lines, and reads their answers meanwhile.
fn send(client: &mut Client, chunk: &Chunk) -> Outcome {
    let mut writing = client.stream.try_clone()?;
    std::thread::scope(|scope| {
        let sent = scope.spawn(move || writing.write_all(chunk.text.as_bytes()));
        let mut buffer = [0; 1 << 16];
        let mut missing = chunk.answers;
        let mut begins = true;
        while missing > 0 {
            let count = client.stream.read(&mut buffer)?;
            if count == 0 {
                return Err("the connection has ended".into());
            }
            for &byte in &buffer[..count] {
                if begins && byte != b'0' {
                    return Err("an update was refused".into());
                }
                begins = byte == b'\n';
                missing -= usize::from(begins);
            }
        }
        Ok(sent.join().map_err(|_| "a thread panicked")??)
    })
}

/// Has all written, and waits for it.
fn flush_all(client: &mut Client, files: u64) -> Outcome {
    let lines: String = (0..files)
        .map(|file| format!("FLUSH {}\n", name(file)))
        .collect();
    client.ask(&format!("FLUSHALL\n{}", lines.trim_end()))?;
    Ok(())
}

/// What something costs a daemon.
fn cost(daemon: &Daemon, work: impl FnOnce() -> Outcome) -> Outcome<Cost> {
    let (before, begin) = (cpu(daemon.process())?, Instant::now());
    work()?;
    Ok(Cost {
        wall: begin.elapsed(),
        cpu: cpu(daemon.process())?.saturating_sub(before),
    })
}

/// The CPU time that a process has used, as Linux counts it: user and system, in ticks of 10 ms.
pub(super) fn cpu(process: u32) -> Outcome<Duration> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(Path::new(&path))?;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(Duration::from_millis(ticks * 10))
}
