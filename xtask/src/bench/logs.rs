//! Event logs: what it costs to print, to count and to measure their events, beside a copy of their bytes and
//! VPP's cpeldump.

use std::hint::black_box;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kymo_cpel::entries::{ENTRY_SIZE, Entry};
use kymo_cpel::write::{Builder, Options};

use super::machine::cpu_time;
use super::{children, measure, median};
use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, root};

/// Events of the log.
const EVENTS: u32 = 5_000_000;
/// Tracks of the log.
const TRACKS: u32 = 20;

/// `cargo xtask bench logs`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    args.finish()?;
    let kymo = build_kymo(true)?;
    let log = log()?;
    println!("{EVENTS} events, {runs} runs, medians of CPU time (user and system), 1 thread\n");
    let bytes = EVENTS as usize * ENTRY_SIZE;
    let source = vec![1u8; bytes];
    let mut target = vec![2u8; bytes];
    let mut copies = Vec::new();
    for _ in 0..runs {
        copies.push(cpu_time(1, || {
            black_box(&mut target[..]).copy_from_slice(black_box(&source))
        })?);
    }
    line("memcpy of the events", median(copies));
    let tasks = [
        ("kymo stats", vec!["stats", "--threads=1"]),
        (
            "kymo states",
            vec!["states", "--threads=1", "--state-event=0"],
        ),
        (
            "kymo profile",
            vec!["profile", "--threads=1", "--enter=1", "--exit=2"],
        ),
        (
            "kymo print cpeldump",
            vec!["print", "--threads=1", "--format=cpeldump"],
        ),
    ];
    for (name, args) in &tasks {
        let mut costs = Vec::new();
        for _ in 0..runs {
            costs.push(measure(&kymo, args, &log, 1)?.cpu);
        }
        line(name, median(costs));
    }
    let mut costs = Vec::new();
    for _ in 0..runs {
        match cpeldump(&log)? {
            Some(cost) => costs.push(cost),
            None => {
                println!("cpeldump is not installed, and so not measured");
                return Ok(());
            }
        }
    }
    line("cpeldump", median(costs));
    Ok(())
}

fn line(name: &str, time: Duration) {
    let seconds = time.as_secs_f64().max(1e-9);
    let speed = f64::from(EVENTS) / seconds / 1e6;
    println!("{name:<22} {seconds:>9.4}s {speed:>9.1} M events/s");
}

/// The CPU time of one run of cpeldump, which wants its file behind an option; `None` where it is
/// not installed.
fn cpeldump(log: &Path) -> Outcome<Option<Duration>> {
    let before = children()?;
    let mut cpeldump = command("cpeldump");
    cpeldump.arg("--input-file").arg(log);
    cpeldump.stdout(Stdio::null()).stderr(Stdio::null());
    match cpeldump.status() {
        Ok(status) if status.success() => Ok(Some(children()? - before)),
        Ok(status) => Err(format!("cpeldump: {status}").into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The log to measure on: made once, and kept. Its events are of six kinds, of which one shows
/// strings, on tracks with names.
fn log() -> Outcome<PathBuf> {
    let folder = root().join("target/bench");
    let path = folder.join(format!("logs-{EVENTS}.cpel"));
    if path.is_file() {
        return Ok(path);
    }
    eprintln!("making a log of {EVENTS} events");
    std::fs::create_dir_all(&folder)?;
    let mut log = Builder::new(Options::default());
    let formats: [(&[u8], &[u8]); 5] = [
        (b"THREAD/THRUNNING", b"pid:%d"),
        (b"FUNC/ENTER", b"0x%08x"),
        (b"FUNC/EXIT", b"0x%08x"),
        (b"counter", b"%u"),
        (b"mark", b""),
    ];
    for (code, (name, datum)) in (0..).zip(formats) {
        log.event(code, Some(name), Some(datum))?;
    }
    log.event(5, Some(b"message"), Some(b"%s"))?;
    let mut texts = Vec::new();
    for number in 0..100 {
        texts.push(log.string(format!("message {number}").as_bytes())?);
    }
    for track in 0..TRACKS {
        log.track(track, Some(format!("worker {track}").as_bytes()))?;
    }
    // Any sequence without a pattern will do.
    let mut state = 1u32;
    let mut time = 0;
    for _ in 0..EVENTS {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let random = state >> 8;
        time += u64::from(random % 2000);
        let code = random / 2000 % 6;
        log.push(Entry {
            time,
            track: random / 7 % TRACKS,
            code,
            datum: match code {
                5 => texts[random as usize % texts.len()],
                _ => random,
            },
        })?;
    }
    let made = path.with_extension("part");
    log.write(&mut std::io::BufWriter::new(std::fs::File::create(&made)?))?;
    std::fs::rename(&made, &path)?;
    Ok(path)
}
