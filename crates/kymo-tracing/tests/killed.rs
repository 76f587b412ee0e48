//! `KYMO_KILLS` sets how often it is killed; the default is a few times.
//!
//! `KYMO_KILLS` says how often it is killed: a few times if nothing is said.
#![cfg(unix)]

mod common;

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use common::read;
use kymo_io::SharedWords;
use kymo_tracing::Options;

const CHILD: &str = "KYMO_KILLED_CHILD";

/// A file in which threads count the calls that have returned.
fn counters(folder: &Path) -> SharedWords {
    let path = folder.join("counters");
    let file = File::options().read(true).write(true).open(path);
    SharedWords::map(&file.unwrap(), 2).unwrap()
}

/// The program that is killed. It calls nothing but what records, most of the time.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let folder = Path::new(&folder);
    let counters = counters(folder);
    // Small packets and files: many begin.
    let options = Options::new().packet_size(4096).file_size(1 << 14);
    let (layer, _guard) = options.mapped(folder.join("trace")).unwrap();
    let dispatch = common::dispatch(layer);
    std::thread::scope(|scope| {
        for (thread, counter) in counters.iter().enumerate() {
            let dispatch = dispatch.clone();
            scope.spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    for number in 0.. {
                        report(thread as u64, number, counter);
                    }
                });
            });
        }
    });
}

fn report(thread: u64, number: u64, counter: &AtomicU32) {
    match number % 4 {
        0 => tracing::info!(thread, number),
        1 => tracing::info!(
            thread,
            text = &"x".repeat(90)[number as usize % 90..],
            number
        ),
        2 => tracing::info!(thread, number, third = number.is_multiple_of(3), d = ?Some(number)),
        _ => new_class(thread, number),
    }
    counter.store(number as u32 + 1, Release);
}

/// From time to time with other fields.
fn new_class(thread: u64, number: u64) {
    let [a, b, c, d, e, f] =
        std::array::from_fn(|bit| (number >> (13 + bit) & 1 == 1).then_some(1));
    tracing::info!(thread, number, a, b, c, d, e, f);
}

#[test]
fn every_event_is_there_whose_call_had_returned() {
    let kills = std::env::var("KYMO_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let mut seed = 1u64;
    for _ in 0..kills.unwrap_or(4) {
        // Numerical Recipes' generator: any instants do.
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % (1 << 32);
        kill_after(Duration::from_micros(seed % 60_000));
    }
}

fn kill_after(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("counters"), [0; 8]).unwrap();
    let counters = counters(folder.path());
    let returned = || [0, 1].map(|thread: usize| counters[thread].load(Acquire).into());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child"])
        .env(CHILD, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while returned() == [0, 0] {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "nothing is recorded"
        );
        std::thread::yield_now();
    }
    std::thread::sleep(time);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_has_all(&folder.path().join("trace"), returned());
}

#[track_caller]
fn assert_has_all(trace: &Path, returned: [u64; 2]) {
    // Nothing is wrong with it, and nothing was lost.
    let events = read(trace);
    for (thread, returned) in returned.into_iter().enumerate() {
        let of_thread = |event: &&serde_json::Value| {
            event["payload"]["thread"]
                .to_string()
                .contains(&thread.to_string())
        };
        let number = |event: &serde_json::Value| {
            let number = event["payload"]["number"].to_string();
            number.trim_matches('"').parse::<u64>().unwrap()
        };
        let numbers: Vec<u64> = events.iter().filter(of_thread).map(number).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        let found = numbers.len() as u64;
        // The last one may be there before its call has returned.
        assert!(
            found == returned || found == returned + 1,
            "{found} of {returned}"
        );
    }
}
