//! Databases that others write: commands that read lock them as rrdtool does.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymo_io::{Locking, Shared};
use kymo_rrd::recording::Recording;

/// What a line prints, or its failure.
fn at(directory: &Path, line: &str) -> Result<String, String> {
    match common::printed(directory, line) {
        (out, None) => Ok(out),
        (_, Some(failure)) => Err(failure),
    }
}

const READING: [&str; 8] = [
    "info @a.rrd",
    "first @a.rrd",
    "last @a.rrd",
    "lastupdate @a.rrd",
    "fetch @a.rrd LAST -s 1600000000 -e 1600000060",
    "dump @a.rrd",
    "xport -s 1600000000 -e 1600000060 DEF:x=@a.rrd:x:LAST XPORT:x:x",
    "create @b.rrd --source @a.rrd DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:50",
];

fn create(directory: &Path, format: &str) {
    let line = "create @a.rrd -b 1600000000 -s 1 DS:x:GAUGE:60000:U:U RRA:LAST:0.5:1:50 \
        RRA:MAX:0.5:1:5000 --format";
    at(directory, &format!("{line} {format}")).unwrap();
}

#[test]
fn what_another_writes_is_not_read() {
    for format in ["x86_64", "portable"] {
        let place = tempfile::tempdir().unwrap();
        create(place.path(), format);
        let file = place.path().join("a.rrd");
        let mut held = Shared::open_locked(&file, Locking::Try).unwrap();
        for line in READING {
            let done = at(place.path(), line);
            assert_eq!(done, Err("could not lock RRD".to_owned()), "{line}");
        }
        held.unlock().unwrap();
        for line in READING {
            at(place.path(), line).unwrap_or_else(|failure| panic!("{line}: {failure}"));
        }
    }
}

#[test]
fn who_reads_may_wait() {
    let place = tempfile::tempdir().unwrap();
    create(place.path(), "x86_64");
    let file = place.path().join("a.rrd");
    let held = Shared::open_locked(&file, Locking::Try).unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = READING[..7]
            .iter()
            .map(|line| {
                scope.spawn({
                    let path = place.path();
                    move || at(path, &format!("{line} --wait"))
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        assert!(readers.iter().all(|reader| !reader.is_finished()));
        drop(held);
        for reader in readers {
            reader.join().unwrap().unwrap();
        }
    });
}

/// Each update fills 30 rows with its time.
#[test]
fn what_is_read_is_of_one_moment() {
    for format in ["x86_64", "portable"] {
        let place = tempfile::tempdir().unwrap();
        create(place.path(), format);
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut time = 1_600_000_000;
                while !end.load(Ordering::Relaxed) {
                    time += 30;
                    at(place.path(), &format!("update --wait @a.rrd {time}:{time}")).unwrap();
                }
            });
            for _ in 0..40 {
                let dump = at(place.path(), "dump --wait @a.rrd").unwrap();
                for row in dump.lines().filter_map(|line| line.split_once(" / ")) {
                    let (time, rest) = row.1.split_once(' ').unwrap();
                    let time: i64 = time.parse().unwrap();
                    let value = rest.split_once("<v>").unwrap().1;
                    let value = value.split_once("</v>").unwrap().0;
                    if value == "NaN" || time <= 1_600_000_000 {
                        continue;
                    }
                    let value = value.parse::<f64>().unwrap() as i64;
                    assert!(
                        (time..time + 30).contains(&value),
                        "{format}: {time} {value}"
                    );
                }
            }
            end.store(true, Ordering::Relaxed);
        });
    }
}

/// Whoever writes it waits no longer than it takes to open it.
#[test]
fn a_recording_stays_as_it_was_opened() {
    for format in ["x86_64", "portable"] {
        let place = tempfile::tempdir().unwrap();
        create(place.path(), format);
        let path = place.path().join("a.rrd");
        let update = |time| at(place.path(), &format!("update @a.rrd {time}:7")).unwrap();
        let open = || Recording::open(&path, None).unwrap();
        let values = |recording: &Recording| -> Vec<_> {
            let rows = recording.rows();
            rows.iter(0)
                .flat_map(|row| row.values().collect::<Vec<_>>())
                .collect()
        };
        update(1_600_000_030);
        let recording = open();
        let before = values(&recording);
        update(1_600_000_075);
        assert!(values(&recording) == before);
        assert!(values(&open()) != before);

        let held = Shared::open_locked(&path, Locking::Try).unwrap();
        std::thread::scope(|scope| {
            let opened = scope.spawn(open);
            std::thread::sleep(Duration::from_millis(20));
            assert!(!opened.is_finished());
            drop(held);
            opened.join().unwrap();
        });
    }
}
