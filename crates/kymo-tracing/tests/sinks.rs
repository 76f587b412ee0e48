//! Sinks that do what sinks should not, and what cannot be written for some time.

mod common;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use common::{lost, numbers, read, read_anyhow};
use kymo_tracing::{Guard, Options, Sink, WhenFull};
use tracing::Dispatch;

/// Writes a trace, and does something before.
struct Acting<F> {
    directory: PathBuf,
    act: F,
}

impl<F: FnMut() + Send> Sink for Acting<F> {
    fn metadata(&mut self, text: &str) -> io::Result<()> {
        (self.act)();
        std::fs::write(self.directory.join("metadata"), text)
    }

    fn packet(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
        (self.act)();
        let path = self.directory.join(format!("stream-{stream}"));
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        io::Write::write_all(&mut file, packet)
    }
}

/// Does something that must not wait for ever.
fn in_time(act: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let thread = std::thread::spawn(move || {
        act();
        done.send(()).unwrap();
    });
    match is_done.recv_timeout(Duration::from_secs(60)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it waits for ever"),
        _ => thread.join().unwrap(),
    }
}

/// What records to a sink, and loses what finds no room.
fn discarding(sink: impl Sink + 'static) -> (Dispatch, Guard) {
    let options = small().when_full(WhenFull::Discard).flush_every(None);
    let (layer, guard) = options.sink(sink).unwrap();
    (common::dispatch(layer), guard)
}

fn small() -> Options {
    Options::new()
        .packet_size(4096)
        .waiting(1)
        .when_full(WhenFull::Wait)
}

#[test]
fn sinks_may_trace() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let to = Arc::new(OnceLock::<Dispatch>::new());
        let sink = Acting {
            directory: folder.path().to_path_buf(),
            act: {
                let to = Arc::clone(&to);
                move || {
                    if let Some(to) = to.get() {
                        tracing::dispatcher::with_default(to, || {
                            (0..200).for_each(|of_sink: u64| tracing::info!(of_sink));
                        });
                    }
                }
            },
        };
        let (layer, guard) = small().sink(sink).unwrap();
        let to = to.get_or_init(|| common::dispatch(layer));
        tracing::dispatcher::with_default(to, || {
            (0..1000).for_each(|number: u64| tracing::info!(number));
            guard.flush().unwrap();
        });
        guard.finish().unwrap();
        let read = read_anyhow(folder.path());
        assert!(numbers(&read.events, "number").into_iter().eq(0..1000));
        assert_eq!(numbers(&read.events, "of_sink"), [0; 0]);
        assert!(read.warnings.contains("discarded"), "{}", read.warnings);
    });
}

#[test]
fn a_sink_that_panics_ends_the_recording() {
    for by_flush in [false, true] {
        in_time(move || {
            let folder = tempfile::tempdir().unwrap();
            let mut calls = 0;
            let sink = Acting {
                directory: folder.path().to_path_buf(),
                act: move || {
                    calls += 1;
                    assert!(calls < 4, "it is not called again");
                    assert!(calls < 3, "it panics");
                },
            };
            let (layer, guard) = small().flush_every(None).sink(sink).unwrap();
            common::record(layer, || {
                if by_flush {
                    tracing::info!("first");
                    let flush = std::panic::AssertUnwindSafe(|| guard.flush());
                    std::panic::catch_unwind(flush).unwrap_err();
                }
                (0..10_000).for_each(|number: u64| tracing::info!(number));
            });
            let error = guard.finish().unwrap_err().to_string();
            assert!(error.contains("has panicked"), "{error}");
        });
    }
}

/// Its first event finds no room, and no other thread takes its stream.
#[test]
fn threads_without_a_packet_are_counted_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (leave, wait) = channel::<()>();
    let mut wait: Option<Receiver<()>> = Some(wait);
    let mut calls = 0;
    let sink = Acting {
        directory: folder.path().to_path_buf(),
        act: move || {
            calls += 1;
            if calls > 1
                && let Some(wait) = wait.take()
            {
                let _ = wait.recv();
            }
        },
    };
    let (dispatch, guard) = discarding(sink);
    tracing::dispatcher::with_default(&dispatch, || {
        // Until no packet has room.
        (0..1000).for_each(|number: u64| tracing::info!(number));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tracing::dispatcher::with_default(&dispatch, || {
                    (0..7).for_each(|other: u64| tracing::info!(other));
                });
            });
        });
    });
    drop(leave);
    guard.finish().unwrap();
    let read = read_anyhow(folder.path());
    assert_eq!(read.faults, Vec::<String>::new());
    let lost = 1000 - numbers(&read.events, "number").len();
    for lost in [7, lost] {
        let reported = format!("discarded {lost} events");
        assert!(read.warnings.contains(&reported), "{}", read.warnings);
    }
}

#[test]
fn metadata_that_cannot_be_written_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, away) = (folder.path().join("trace"), folder.path().join("away"));
    let (layer, guard) = Options::new().mapped(&trace).unwrap();
    common::record(layer, || {
        tracing::info!(first = 1u64);
        let report = |number: u64| tracing::info!(number);
        std::fs::rename(&trace, &away).unwrap();
        report(0);
        guard.flush().unwrap_err();
        std::fs::rename(&away, &trace).unwrap();
        let begin = Instant::now();
        for number in 1.. {
            report(number);
            let read = read_anyhow(&trace);
            if !numbers(&read.events, "number").is_empty() {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    guard.finish().unwrap();
}

#[test]
fn nothing_is_recorded_after_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (files, mapped) = (folder.path().join("files"), folder.path().join("mapped"));
    let (file_layer, file_guard) = Options::new().files(&files).unwrap();
    let (mapped_layer, mapped_guard) = Options::new().mapped(&mapped).unwrap();
    for (layer, guard) in [(file_layer, file_guard), (mapped_layer, mapped_guard)] {
        common::record(layer, || {
            let report = |number: u64| tracing::info!(number);
            report(1);
            guard.finish().unwrap();
            report(2);
        });
    }
    for trace in [files, mapped] {
        assert_eq!(numbers(&read(&trace), "number"), [1]);
    }
}

/// It needs what a thread holds that records, and so may wait for it: when it is shut down, for one.
#[test]
fn a_sink_may_wait_for_who_records() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let held = Arc::new(Mutex::new(()));
        let sink = Acting {
            directory: folder.path().to_path_buf(),
            act: {
                let held = Arc::clone(&held);
                move || drop(held.lock())
            },
        };
        let options = small().patience(Duration::from_millis(100));
        let (layer, guard) = options.sink(sink).unwrap();
        common::record(layer, || {
            let report = |number: u64| tracing::info!(number);
            let holds = held.lock().unwrap();
            (0..2000).for_each(report);
            drop(holds);
            // What waits is written, and then there is room again.
            guard.flush().unwrap();
            (2000..4000).for_each(report);
        });
        guard.finish().unwrap();
        let read = read_anyhow(folder.path());
        assert_eq!(read.faults, Vec::<String>::new());
        let found = numbers(&read.events, "number");
        let (before, behind) = found.split_at(found.partition_point(|&number| number < 2000));
        assert!(!before.is_empty() && before.len() < 2000);
        assert!(behind.iter().copied().eq(2000..4000));
        assert_eq!(lost(&read), 2000 - before.len() as u64);
    });
}

/// Threads that record all the time make packets faster than the sink takes them.
#[test]
fn a_flush_comes_to_an_end() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let sink = Acting {
            directory: folder.path().to_path_buf(),
            act: || std::thread::sleep(Duration::from_millis(1)),
        };
        let (layer, guard) = small().waiting(4).sink(sink).unwrap();
        let dispatch = common::dispatch(layer);
        let (is_done, recorded) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    tracing::dispatcher::with_default(&dispatch, || {
                        while !is_done.load(Relaxed) {
                            tracing::info!(text = "x".repeat(500));
                            recorded.fetch_add(1, Relaxed);
                        }
                    });
                });
            }
            while recorded.load(Relaxed) < 200 {
                std::thread::yield_now();
            }
            let flushed = (0..3).try_for_each(|_| guard.flush());
            is_done.store(true, Relaxed);
            flushed.unwrap();
        });
        guard.finish().unwrap();
        assert_eq!(read(folder.path()).len(), recorded.load(Relaxed));
    });
}

/// Of a stream that has events, too.
#[test]
fn what_is_lost_before_a_first_packet_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (leave, wait) = channel::<()>();
    let (entered, has_entered) = channel::<()>();
    let mut calls = 0;
    let sink = Acting {
        directory: folder.path().to_path_buf(),
        act: move || {
            calls += 1;
            if calls == 2 {
                entered.send(()).unwrap();
                let _ = wait.recv();
            }
        },
    };
    let (dispatch, guard) = discarding(sink);
    tracing::dispatcher::with_default(&dispatch, || {
        (0..1000).for_each(|number: u64| tracing::info!(number));
        has_entered.recv().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tracing::dispatcher::with_default(&dispatch, || {
                    (0..7).for_each(|other: u64| tracing::info!(other));
                    drop(leave);
                    guard.flush().unwrap();
                    (7..10).for_each(|other: u64| tracing::info!(other));
                });
            });
        });
    });
    guard.finish().unwrap();
    let read = read_anyhow(folder.path());
    assert_eq!(read.faults, Vec::<String>::new());
    assert_eq!(numbers(&read.events, "other"), [7, 8, 9]);
    let number = numbers(&read.events, "number").len() as u64;
    assert_eq!(lost(&read), 7 + 1000 - number, "{}", read.warnings);
}

/// Nor is it lost for ever what had no file.
#[test]
fn what_is_lost_before_a_first_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, away) = (folder.path().join("trace"), folder.path().join("away"));
    let (layer, guard) = Options::new().mapped(&trace).unwrap();
    common::record(layer, || {
        let report = |number: u64| tracing::info!(number);
        std::fs::rename(&trace, &away).unwrap();
        (0..5).for_each(report);
        guard.flush().unwrap_err();
        std::fs::rename(&away, &trace).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        (5..8).for_each(report);
    });
    guard.finish().unwrap();
    let read = read_anyhow(&trace);
    assert_eq!(read.faults, Vec::<String>::new());
    assert_eq!(numbers(&read.events, "number"), [5, 6, 7]);
    assert_eq!(lost(&read), 5, "{}", read.warnings);
}

/// Packets of memory are given up once they could not be written: what was in them is counted.
#[test]
fn what_cannot_be_written_for_some_time_is_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let options = small().waiting(64).flush_every(None);
    let (layer, guard) = options.files(&trace).unwrap();
    let report = |number: u64| tracing::info!(number);
    let dispatch = common::dispatch(layer);
    // Before the first packet of a stream, and between two.
    tracing::dispatcher::with_default(&dispatch, || {
        std::fs::create_dir(trace.join("stream-0")).unwrap();
        (0..1000).for_each(report);
        guard.flush().unwrap_err();
        std::fs::remove_dir(trace.join("stream-0")).unwrap();
        (1000..1003).for_each(report);
        guard.flush().unwrap();
        let away = folder.path().join("away");
        std::fs::rename(&trace, &away).unwrap();
        // A new class, which cannot be added to the metadata.
        (0..7).for_each(|other: u64| tracing::info!(other));
        guard.flush().unwrap_err();
        std::fs::rename(&away, &trace).unwrap();
        (1003..1005).for_each(report);
    });
    guard.finish().unwrap();
    let read = read_anyhow(&trace);
    assert_eq!(read.faults, Vec::<String>::new());
    assert!(numbers(&read.events, "number").into_iter().eq(1000..1005));
    assert_eq!(lost(&read), 1000 + 7, "{}", read.warnings);
}

/// Also where nothing comes after it.
#[test]
fn what_could_not_be_written_at_last_is_reported_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut calls = 0;
    let sink = Acting {
        directory: folder.path().to_path_buf(),
        act: || {},
    };
    struct Failing<S>(S, Box<dyn FnMut() -> bool + Send>);
    impl<S: Sink> Sink for Failing<S> {
        fn metadata(&mut self, text: &str) -> io::Result<()> {
            self.0.metadata(text)
        }
        fn packet(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
            match (self.1)() {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => self.0.packet(stream, packet),
            }
        }
    }
    let fails = move || {
        calls += 1;
        calls == 2
    };
    let options = small().flush_every(None);
    let (layer, guard) = options.sink(Failing(sink, Box::new(fails))).unwrap();
    common::record(layer, || {
        let report = |number: u64| tracing::info!(number);
        (0..3).for_each(report);
        guard.flush().unwrap();
        (3..9).for_each(report);
    });
    guard.finish().unwrap_err();
    let read = read_anyhow(folder.path());
    assert_eq!(read.faults, Vec::<String>::new());
    assert_eq!(numbers(&read.events, "number"), [0, 1, 2]);
    assert_eq!(lost(&read), 6, "{}", read.warnings);
}

#[test]
fn what_a_killed_program_left_does_not_disturb() {
    let folder = tempfile::tempdir().unwrap();
    let left = [".spare.3.new", ".metadata.0.new"].map(|name| folder.path().join(name));
    let leave = || {
        left.iter()
            .for_each(|path| std::fs::write(path, "left").unwrap())
    };
    leave();
    let (layer, guard) = Options::new().mapped(folder.path()).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
    common::record(layer, || tracing::info!(number = 1u64));
    guard.finish().unwrap();
    leave();
    assert_eq!(numbers(&read(folder.path()), "number"), [1]);
    // A trace is not written over, whatever was left.
    let error = Options::new().mapped(folder.path()).map(drop).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert!(left.iter().all(|path| path.exists()));
    // Nor is what is not of a recording.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join(".other.0.new"), "").unwrap();
    Options::new().files(other.path()).map(drop).unwrap_err();
}
