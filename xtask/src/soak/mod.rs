//! `kymo serve` under a load that is mixed, hostile and long: datagrams of all levels of security, damaged
//! ones, lines of both protocols, clients that do not read what they asked for, times that jump both ways,
//! and a disk that is full for a while. Everything stays on this machine.
//!
//! What was acknowledged must be there in the end, what was counted must be what was sent, and memory must
//! not grow once everything has been met.

mod daemon;
mod load;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::args::Args;
use crate::process::build_kymo;
use daemon::{Daemon, Disk};
use load::{Acknowledged, Datagrams};

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// What was sent must have been dealt with after this.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum growth of memory between warm-up and the end, in bytes: what allocators keep.
const SLACK: u64 = 4 << 20;

/// When the disk is full, in shares of the time: once while everything is met for the first time, since
/// what updates take that wait for it is kept by allocators, and once later.
const FULL: [Range<f64>; 2] = [0.20..0.25, 0.60..0.65];

/// Gets what was looked at, and whether it holds.
type Holds<'h> = &'h mut dyn FnMut(&str, bool);

/// `cargo xtask soak [MINUTES]`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let minutes: f64 = args.word().map_or(Ok(10.0), |word| word.parse())?;
    let ours: Option<PathBuf> = args.value("--ours")?;
    args.finish()?;
    let time = Duration::try_from_secs_f64(minutes * 60.0)?;
    if time < Duration::from_secs(20) {
        return Err("a soak takes 20 seconds (0.34 minutes) at least".into());
    }
    let kymo = ours.map_or_else(|| build_kymo(true), Ok)?;
    let mut failed = 0;
    soak(&kymo, time, &mut |what, holds| {
        println!("{}  {what}", if holds { "ok    " } else { "FAILED" });
        failed += usize::from(!holds);
    })?;
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} do not hold").into()),
    }
}

/// What was sent in all.
#[derive(Default)]
struct Sent {
    datagrams: Datagrams,
    updates: Acknowledged,
    lines: Acknowledged,
}

/// Puts a daemon under load for some time, and looks at what has become of it.
pub(crate) fn soak(kymo: &Path, time: Duration, holds: Holds<'_>) -> Outcome {
    let folder = tempfile::tempdir()?;
    let disk = Disk::new(&folder.path().join("disk"), time)?;
    let daemon = Daemon::begin(kymo, folder.path(), disk.path())?;
    let stop = AtomicBool::new(false);
    let mut memory = Vec::new();
    let sent = std::thread::scope(|scope| -> Outcome<Sent> {
        let (daemon, stop) = (&daemon, &stop);
        // However this ends, the threads must, too.
        let _ended = StopOnDrop(stop);
        let clocks = load::LEVELS.map(|level| {
            scope.spawn(move || load::datagrams(daemon, level, stop).map_err(|e| e.to_string()))
        });
        let hostile = scope.spawn(|| load::hostile(daemon, stop).map_err(|e| e.to_string()));
        let updates = [false, true].map(|batches| {
            scope.spawn(move || load::updates(daemon, batches, stop).map_err(|e| e.to_string()))
        });
        let lines = scope.spawn(|| load::lines(daemon, stop).map_err(|e| e.to_string()));
        let slow = scope.spawn(|| load::slow_readers(daemon, stop).map_err(|e| e.to_string()));
        watch(daemon, &disk, time, &mut memory)?;
        stop.store(true, Relaxed);
        let gone = |_| "a thread of the load panicked";
        let mut sent = Sent::default();
        for thread in clocks {
            sent.datagrams.add(&thread.join().map_err(gone)??);
        }
        sent.datagrams.add(&hostile.join().map_err(gone)??);
        for thread in updates {
            sent.updates.add(thread.join().map_err(gone)??);
        }
        sent.lines = lines.join().map_err(gone)??;
        slow.join().map_err(gone)??;
        Ok(sent)
    })?;
    counts(&daemon, &sent, disk.is_bounded(), holds)?;
    let folder = daemon.end()?;
    for (what, sent, lost) in [
        (
            "updates",
            &sent.updates,
            folder.lost_updates(&sent.updates)?,
        ),
        ("lines", &sent.lines, folder.lost_lines(&sent.lines)?),
    ] {
        let (acknowledged, refused) = (sent.values.len(), sent.refused);
        let what = format!(
            "soak: of {acknowledged} acknowledged {what} ({refused} others) {lost} are lost"
        );
        holds(&what, lost == 0 && acknowledged > 0);
    }
    grows(&memory, time, holds);
    Ok(())
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Notes the memory of the daemon from time to time, and fills its disk twice.
fn watch(
    daemon: &Daemon,
    disk: &Disk,
    time: Duration,
    memory: &mut Vec<(Duration, u64)>,
) -> Outcome {
    let begin = Instant::now();
    let (mut filler, mut is_full) = (None, false);
    while begin.elapsed() < time {
        let share = begin.elapsed().as_secs_f64() / time.as_secs_f64();
        let wanted = FULL.iter().any(|full| full.contains(&share));
        if wanted != is_full {
            is_full = wanted;
            filler = wanted.then(|| disk.fill()).transpose()?;
        }
        memory.push((begin.elapsed(), daemon.memory()?));
        std::thread::sleep(LOOK);
    }
    drop(filler);
    Ok(())
}

/// Compares what the daemon has counted with what was sent.
fn counts(daemon: &Daemon, sent: &Sent, was_full: bool, holds: Holds<'_>) -> Outcome {
    let datagrams = &sent.datagrams;
    daemon.wait("datagrams_total", datagrams.datagrams, PATIENCE)?;
    // Waits until workers have seen it all.
    let lists = datagrams.lists + sent.lines.values.len() as u64;
    daemon.wait("lists_total", lists, PATIENCE)?;
    daemon.write_all(PATIENCE)?;
    let mut exact = |name: &str, expected: u64| -> Outcome {
        let found = daemon.metric(name)?;
        let what = format!("soak: {name} is {found}, expected {expected}");
        holds(&what, found == expected);
        Ok(())
    };
    exact("datagrams_total", datagrams.datagrams)?;
    exact("datagrams_faults_total", datagrams.faults)?;
    exact("lists_past_total", datagrams.past)?;
    for name in [
        "datagrams_dropped_total",
        "datagrams_kernel_dropped_total",
        "lists_dropped_total",
        "lists_wrong_type_total",
        "updates_dropped_total",
        "updates_refused_total",
        "csv_lost_total",
    ] {
        exact(name, 0)?;
    }
    let written = daemon.metric("updates_written_total")?;
    let accepted = daemon.metric("updates_accepted_total")?;
    let what = format!("soak: of {accepted} updates that were accepted {written} are written");
    holds(&what, accepted == written);
    // Lines that were not acknowledged may have been taken.
    let found = daemon.metric("lists_total")?;
    let most = lists + sent.lines.refused;
    let what = format!("soak: lists_total is {found}, expected {lists} to {most}");
    holds(&what, (lists..=most).contains(&found));
    let errors = daemon.metric("journal_errors_total")?;
    match was_full {
        true => holds(
            &format!(
                "soak: the journal could not be written {errors} times, while the disk was full"
            ),
            errors > 0,
        ),
        false => println!("left out: a full disk, which needs root to mount a small one"),
    }
    Ok(())
}

/// Compares memory after warm-up, which is four tenths of the time, with that at the end.
fn grows(memory: &[(Duration, u64)], time: Duration, holds: Holds<'_>) {
    let most = |from: f64, to: f64| {
        let share = |at: &Duration| at.as_secs_f64() / time.as_secs_f64();
        let within = memory
            .iter()
            .filter(|(at, _)| (from..to).contains(&share(at)));
        within.map(|(_, bytes)| *bytes).max().unwrap_or(u64::MAX)
    };
    let (warm, end) = (most(0.40, 0.60), most(0.85, 1.01));
    let all = most(0.0, 1.01);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let tenths = (0..10).map(|tenth| f64::from(tenth) / 10.0);
    let tenths = tenths.map(|from| format!(" {:.1}", mib(most(from, from + 0.1))));
    println!(
        "memory in tenths of the time, MiB:{}",
        tenths.collect::<String>()
    );
    let what = format!(
        "soak: memory is {:.1} MiB after warm-up and {:.1} MiB at the end; {:.1} MiB at most",
        mib(warm),
        mib(end),
        mib(all)
    );
    holds(&what, end <= warm + warm / 20 + SLACK);
}
