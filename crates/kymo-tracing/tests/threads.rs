//! Many threads, and those who look on while they record.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{numbers, read, read_anyhow};
use kymo_tracing::{Layer, Options, WhenFull};
use serde_json::Value;

/// Records `each` numbered events from each of `count` threads.
fn threads(layer: &Layer, count: u64, each: u64) {
    let dispatch = common::dispatch(layer.clone());
    let handles: Vec<_> = (0..count)
        .map(|thread| {
            let dispatch = dispatch.clone();
            let record = move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    for number in 0..each {
                        tracing::info!(thread, number, text = "x".repeat(number as usize % 30));
                    }
                });
            };
            let name = format!("worker-{thread}");
            std::thread::Builder::new()
                .name(name)
                .spawn(record)
                .unwrap()
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
}

/// The numbers of each thread's events.
fn by_thread(events: &[Value]) -> BTreeMap<u64, Vec<u64>> {
    let mut threads = BTreeMap::<u64, Vec<u64>>::new();
    for event in events {
        let (payload, context) = (&event["payload"], &event["packet_context"]);
        let thread = payload["thread"].as_u64().unwrap();
        assert_eq!(context["thread_name"], format!("worker-{thread}"));
        threads
            .entry(thread)
            .or_default()
            .push(payload["number"].as_u64().unwrap());
    }
    threads
}

#[track_caller]
fn assert_whole(events: &[Value], count: u64, each: u64) {
    let threads = by_thread(events);
    assert_eq!(threads.len() as u64, count);
    assert!(
        threads
            .values()
            .all(|numbers| numbers.iter().copied().eq(0..each))
    );
}

fn small() -> Options {
    Options::new()
        .packet_size(4096)
        .file_size(1 << 14)
        .when_full(WhenFull::Wait)
}

#[test]
fn each_thread_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (files, mapped) = (folder.path().join("files"), folder.path().join("mapped"));
    let (layer, guard) = small().files(&files).unwrap();
    threads(&layer, 6, 500);
    guard.finish().unwrap();
    assert_whole(&read(&files), 6, 500);
    let (layer, guard) = small().mapped(&mapped).unwrap();
    threads(&layer, 6, 500);
    assert_whole(&read(&mapped), 6, 500);
    guard.finish().unwrap();
}

/// One thread after the other writes to the same stream.
#[test]
fn streams_are_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let (files, mapped) = (folder.path().join("files"), folder.path().join("mapped"));
    let (file_layer, file_guard) = small().files(&files).unwrap();
    let (mapped_layer, mapped_guard) = small().mapped(&mapped).unwrap();
    for layer in [&file_layer, &mapped_layer] {
        for _ in 0..30 {
            threads(layer, 1, 3);
        }
    }
    file_guard.finish().unwrap();
    mapped_guard.finish().unwrap();
    assert!(files_of(&files) <= 3, "{}", files_of(&files));
    assert!(files_of(&mapped) <= 3, "{}", files_of(&mapped));
    for trace in [files, mapped] {
        assert_eq!(read(&trace).len(), 90);
    }
}

fn files_of(trace: &Path) -> usize {
    std::fs::read_dir(trace).unwrap().count()
}

#[test]
fn a_flush_writes_what_running_threads_have_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let (layer, guard) = small().flush_every(None).files(&trace).unwrap();
    let dispatch = common::dispatch(layer);
    tracing::dispatcher::with_default(&dispatch, || {
        for number in 0..50u64 {
            tracing::info!(number);
            guard.flush().unwrap();
            assert!(numbers(&read(&trace), "number").into_iter().eq(0..=number));
        }
    });
    guard.finish().unwrap();
}

#[test]
fn packets_are_written_from_time_to_time() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let options = small().flush_every(Some(Duration::from_millis(10)));
    let (layer, _guard) = options.files(&trace).unwrap();
    common::record(layer, || {
        tracing::info!(number = 1u64);
        let begin = Instant::now();
        // A reader may come while the file is written.
        while numbers(&read_anyhow(&trace).events, "number") != [1] {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// Flushes in one thread while others record: nothing is lost, doubled, or out of order.
#[test]
fn flushes_and_events_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let (layer, guard) = small().waiting(3).files(&trace).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                guard.flush().unwrap();
            }
        });
        threads(&layer, 3, 3000);
        is_done.store(true, Ordering::Relaxed);
    });
    guard.finish().unwrap();
    assert_whole(&read(&trace), 3, 3000);
}

#[test]
fn a_flight_recorder_keeps_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let (layer, flight) = small().flight_recorder(1 << 15).unwrap();
    common::record(layer, || {
        for number in 0..10_000u64 {
            tracing::info!(number);
        }
        let first = folder.path().join("first");
        let snapshot = flight.snapshot(&first).unwrap();
        assert_eq!((snapshot.packets, snapshot.overwritten), (8, 0));
        let found = numbers(&read(&first), "number");
        assert!(found.len() > 500);
        assert!(
            found
                .iter()
                .copied()
                .eq(10_000 - found.len() as u64..10_000)
        );

        tracing::info!(number = 10_000u64);
        let second = folder.path().join("second");
        flight.snapshot(&second).unwrap();
        assert_eq!(numbers(&read(&second), "number").last(), Some(&10_000));
    });
}

/// Each snapshot has of each thread what came one after the other, whole.
#[test]
fn snapshots_are_taken_while_threads_record() {
    let folder = tempfile::tempdir().unwrap();
    let (layer, flight) = small().flight_recorder(1 << 17).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            threads(&layer, 3, 20_000);
            is_done.store(true, Ordering::Relaxed);
        });
        for number in 0.. {
            let directory = folder.path().join(number.to_string());
            flight.snapshot(&directory).unwrap();
            // Between packets that were overwritten meanwhile, others may be missing.
            let read = read_anyhow(&directory);
            assert_eq!(read.faults, Vec::<String>::new());
            for numbers in by_thread(&read.events).values() {
                assert!(numbers.is_sorted_by(|a, b| a < b));
            }
            if is_done.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    let last = folder.path().join("last");
    flight.snapshot(&last).unwrap();
    let events = read(&last);
    assert_eq!(events.last().unwrap()["payload"]["number"], 19_999);
}

#[test]
fn threads_without_a_packet_lose_their_events() {
    let folder = tempfile::tempdir().unwrap();
    let (layer, flight) = small().flight_recorder(1 << 13).unwrap();
    let dispatch = common::dispatch(layer);
    let report = |number: u64| {
        tracing::dispatcher::with_default(&dispatch, || tracing::info!(number));
    };
    let barrier = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (report, barrier) = (&report, &barrier);
            scope.spawn(move || {
                report(number);
                barrier.wait();
                report(number);
                barrier.wait();
            });
        }
    });
    let trace = folder.path().join("trace");
    flight.snapshot(&trace).unwrap();
    let read = read_anyhow(&trace);
    assert_eq!((read.faults, read.events.len()), (vec![], 4));
    let warnings = read.warnings;
    assert!(warnings.contains("discarded 2 events"), "{warnings}");
}

/// More events than a page has room for, of a thread that has ended before the recording.
#[test]
fn recordings_end_before_and_after_their_threads() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..20u64 {
        let trace = folder.path().join(number.to_string());
        let (layer, guard) = small().files(&trace).unwrap();
        threads(&layer, 1, number);
        common::record(layer.clone(), || tracing::info!(thread = 100u64, number));
        guard.finish().unwrap();
        // No thread is left to write it, and no caller is held up.
        common::record(layer, || {
            (0..1000).for_each(|number: u64| tracing::info!(number))
        });
        assert_eq!(read(&trace).len() as u64, number + 1);
    }
}

/// They come and go: what they have had is used again, and nothing grows but the trace.
#[test]
fn short_threads_are_many() {
    let folder = tempfile::tempdir().unwrap();
    let (files, mapped) = (folder.path().join("files"), folder.path().join("mapped"));
    let count = 1000;
    for trace in [&files, &mapped] {
        let options = small().file_size(1 << 18);
        let (layer, guard) = match trace == &files {
            true => options.files(trace).unwrap(),
            false => options.mapped(trace).unwrap(),
        };
        let dispatch = common::dispatch(layer);
        for round in 0..count / 4 {
            std::thread::scope(|scope| {
                for of_round in 0..4 {
                    let dispatch = &dispatch;
                    scope.spawn(move || {
                        tracing::dispatcher::with_default(dispatch, || {
                            tracing::info!(number = round * 4 + of_round);
                        });
                    });
                }
            });
        }
        guard.finish().unwrap();
        let mut found = numbers(&read(trace), "number");
        found.sort_unstable();
        assert!(found.into_iter().eq(0..count));
        // A stream for each that was there at a time; a thread may not have ended when the next one begins.
        assert!(files_of(trace) <= 13, "{}", files_of(trace));
    }
}

#[test]
fn several_threads_enter_a_span() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let (layer, guard) = small().mapped(&trace).unwrap();
    let dispatch = common::dispatch(layer);
    let span = tracing::dispatcher::with_default(&dispatch, || tracing::info_span!("shared"));
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (dispatch, span) = (&dispatch, span.clone());
            scope.spawn(move || {
                tracing::dispatcher::with_default(dispatch, || {
                    let other = tracing::info_span!("other").entered();
                    let shared = span.entered();
                    // They end in the order in which they began.
                    drop(other);
                    tracing::info!(thread);
                    drop(shared);
                    tracing::info!(without = thread);
                });
            });
        }
    });
    drop(span);
    guard.finish().unwrap();
    let events = read(&trace);
    let events_of = |suffix: &str| -> Vec<&Value> {
        let is = |event: &&Value| event["event"].as_str().unwrap().ends_with(suffix);
        events.iter().filter(is).collect()
    };
    let id = |event: &Value| event["common_context"]["span"].as_u64().unwrap();
    let shared = id(events_of("shared.new")[0]);
    for what in ["shared.enter", "shared.exit"] {
        assert_eq!(events_of(what).len(), 3);
        assert!(events_of(what).into_iter().all(|event| id(event) == shared));
    }
    assert_eq!(events_of("shared.close").len(), 1);
    for event in &events {
        let payload = &event["payload"];
        if payload.get("thread").is_some() {
            assert_eq!(id(event), shared);
        } else if payload.get("without").is_some() {
            assert_eq!(id(event), 0);
        }
    }
}

/// The trace is whole whenever it ends, and has the first events of each thread.
#[test]
fn recordings_end_while_threads_record() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..6 {
        let trace = folder.path().join(number.to_string());
        let (layer, guard) = match number % 2 {
            0 => small().waiting(2).files(&trace).unwrap(),
            _ => small().mapped(&trace).unwrap(),
        };
        let dispatch = common::dispatch(layer);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let dispatch = &dispatch;
                scope.spawn(move || {
                    tracing::dispatcher::with_default(dispatch, || {
                        (0..5000u64).for_each(|number| tracing::info!(thread, number));
                    });
                });
            }
            std::thread::sleep(Duration::from_millis(number));
            guard.finish().unwrap();
        });
        let events = read(&trace);
        for thread in 0..2 {
            let of_thread = |event: &&Value| event["payload"]["thread"] == thread;
            let of_thread: Vec<Value> = events.iter().filter(of_thread).cloned().collect();
            let found = numbers(&of_thread, "number");
            assert!(found.iter().copied().eq(0..found.len() as u64));
        }
        // No thread is left that makes files, and no such file is left over.
        let names = std::fs::read_dir(&trace).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name());
        assert!(names.all(|name| !name.to_string_lossy().starts_with('.')));
    }
}

/// A program may have several subscribers, and a thread use one after the other.
#[test]
fn two_subscribers_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let traces = [0, 1].map(|number: usize| folder.path().join(number.to_string()));
    let (first, first_guard) = small().files(&traces[0]).unwrap();
    let (second, second_guard) = small().mapped(&traces[1]).unwrap();
    let dispatches = [common::dispatch(first), common::dispatch(second)];
    for number in 0..500u64 {
        let dispatch = &dispatches[number as usize % 2];
        tracing::dispatcher::with_default(dispatch, || {
            let _span = tracing::info_span!("span", number).entered();
            tracing::info!(inside = number);
        });
    }
    first_guard.finish().unwrap();
    second_guard.finish().unwrap();
    for (first, trace) in traces.iter().enumerate() {
        let expected = (first as u64..500).step_by(2);
        assert!(numbers(&read(trace), "inside").into_iter().eq(expected));
    }
}
