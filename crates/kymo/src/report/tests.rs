//! Reports of recordings made of values.

use std::sync::{Arc, Mutex};

use kymo_model::{FaultCode, FaultReport, Kind, Lost};

use super::*;
use crate::filter::{Filter, Glob, Query};
use crate::pipeline::Window;
use crate::testing::{Fake, Record, Val, uint};

/// An event of class `one` (a number), or of class `list` (a list of that many numbers).
fn one(time: i64) -> Record {
    (0, Some(time), Val::Struct(vec![Val::Uint(1)]))
}

fn list(time: i64, length: usize) -> Record {
    let elements = vec![Val::Uint(0); length];
    (
        1,
        Some(time),
        Val::Struct(vec![Val::Array(elements), Val::Uint(7)]),
    )
}

fn broken(time: i64) -> Record {
    (0, Some(time), Val::Struct(vec![Val::Broken]))
}

fn recording(streams: Vec<Vec<Vec<Record>>>) -> Fake {
    let mut fake = Fake::default();
    fake.class("one", vec![("n", uint())]);
    let class = fake.class(
        "list",
        vec![("list", Kind::Array { length: None }), ("m", uint())],
    );
    let list = class.schema.fields()[0].children[0];
    class.schema.push_child(list, None, uint());
    fake.class("none", Vec::new());
    for (number, chunks) in streams.into_iter().enumerate() {
        fake.stream(&format!("s{number}"), chunks);
    }
    fake
}

fn options(threads: usize) -> Options<'static> {
    Options {
        threads,
        ..Options::default()
    }
}

#[test]
fn check_counts_values_and_reports_of_damage() {
    let mut fake = recording(vec![
        vec![
            vec![one(1), list(2, 3), one(3)],
            vec![one(4), one(9), one(7), one(8), broken(9), one(10)],
            vec![one(6), one(11)],
        ],
        vec![vec![list(0, 0)]],
    ]);
    fake.chunks[0][1].lost_events = Some(Lost {
        count: Some(5),
        begin: None,
        end: None,
    });
    fake.chunks[0][2].lost_events = Some(Lost {
        count: None,
        begin: None,
        end: None,
    });
    let fakes = [fake];
    let expected = Check::new(&fakes, &options(1));
    assert_eq!(
        String::from_utf8(expected.to_json()).unwrap(),
        concat!(
            r#"{"schema":1,"result":"damaged","events":10,"fields":13,"packets":4,"discarded_events":5,"#,
            r#""discarded_packets":0,"faults":["#,
            r#"{"file":"s0","offset":102,"packet":1,"event":2,"field":null,"#,
            r#""code":"not-monotonic","message":"not-monotonic"},"#,
            r#"{"file":"s0","offset":101,"packet":1,"event":4,"field":"payload.n","#,
            r#""code":"beyond-content","message":"beyond-content"},"#,
            r#"{"file":"s0","offset":200,"packet":2,"event":0,"field":null,"#,
            r#""code":"not-monotonic","message":"not-monotonic"}]}"#,
            "\n"
        )
    );
    assert!(!expected.is_good());
    insta::assert_snapshot!(
        "check",
        String::from_utf8(expected.to_text(&Style::new(true))).unwrap()
    );
    for threads in 2..6 {
        assert_eq!(Check::new(&fakes, &options(threads)), expected);
    }
}

#[test]
fn a_strict_check_ends_at_the_first_fault() {
    let chunks = (0..50)
        .map(|number| match number {
            20 | 30 => vec![one(number), broken(number)],
            _ => vec![one(number)],
        })
        .collect();
    let fakes = [recording(vec![chunks])];
    for threads in [1, 2, 5] {
        let strict = Options {
            strict: true,
            ..options(threads)
        };
        let check = Check::new(&fakes, &strict);
        assert_eq!((check.events, check.packets), (21, 21), "{threads} threads");
        assert_eq!(check.faults.len(), 1);
        assert_eq!(check.faults[0].packet, Some(20));
    }
}

#[test]
fn faults_of_opening_come_first_and_once() {
    let mut fake = recording(vec![vec![vec![one(5)], vec![one(4)]]]);
    fake.faults.push(FaultReport {
        code: FaultCode::NotMonotonic,
        file: Arc::new("s0".into()),
        offset: 100,
        packet: Some(1),
        event: None,
        field: None,
        message: "the packet begins before the one before it".to_string(),
    });
    let check = Check::new(&[fake], &options(1));
    assert_eq!(check.faults.len(), 1);
    assert_eq!(check.faults[0].event, None);
}

#[test]
fn many_faults_are_counted_only() {
    let chunks = vec![vec![broken(0)]; MOST_FAULTS + 7];
    let check = Check::new(&[recording(vec![chunks])], &options(2));
    assert_eq!(check.faults.len(), MOST_FAULTS);
    assert_eq!(check.more_faults, 7);
    let json = String::from_utf8(check.to_json()).unwrap();
    assert!(json.ends_with("],\"more_faults\":7}\n"));
}

#[test]
fn progress_is_reported_of_every_chunk() {
    let fakes = [
        recording(vec![vec![vec![one(1)]; 30], vec![vec![one(1)]; 12]]),
        recording(vec![]),
        recording(vec![vec![], vec![vec![one(1)]; 8]]),
    ];
    let done = Mutex::new(0u64);
    let progress = |bytes| {
        *done.lock().unwrap() += bytes;
    };
    let check = Check::new(
        &fakes,
        &Options {
            progress: Some(&progress),
            ..options(3)
        },
    );
    assert_eq!((check.packets, check.events), (50, 50));
    assert_eq!(done.into_inner().unwrap(), 5_000);
}

/// Statistics in the given number of threads.
fn stats(fakes: &[Fake], events: &[&str], window: Window, threads: usize) -> Stats {
    let query = Query {
        events: events.iter().map(|glob| Glob::new(glob)).collect(),
        condition: None,
    };
    let windows = vec![window; fakes.len()];
    let filter = Filter::new(&query, &windows, fakes).unwrap();
    Stats::new(fakes, &filter, &options(threads))
}

/// Statistics that end at the first fault.
fn strict_stats(fakes: &[Fake], threads: usize) -> Stats {
    let filter = Filter::new(&Query::default(), &[], fakes).unwrap();
    let strict = Options {
        strict: true,
        ..options(threads)
    };
    Stats::new(fakes, &filter, &strict)
}

#[test]
fn strict_stats_end_at_the_first_fault() {
    let chunks = (0..50)
        .map(|number| match number {
            20 | 30 => vec![one(number), broken(number)],
            _ => vec![one(number)],
        })
        .collect();
    let mut fake = recording(vec![chunks, vec![vec![one(1)]]]);
    for number in [3, 20, 21, 40] {
        fake.chunks[0][number].lost_events = Some(Lost {
            count: Some(5),
            begin: None,
            end: None,
        });
    }
    let mut fakes = [fake];
    for threads in [1, 2, 5] {
        let stats = strict_stats(&fakes, threads);
        assert_eq!(stats.total.events, 21, "{threads} threads");
        assert_eq!(stats.discarded.events, 10, "{threads} threads");
        assert_eq!((stats.faults.len(), stats.more_faults), (1, 0));
        assert_eq!(stats.faults[0].packet, Some(20));
        let all: Vec<_> = stats
            .streams
            .iter()
            .map(|stream| stream.count.events)
            .collect();
        assert_eq!(all, [21, 0]);
    }
    // What opening has shown comes before all events.
    let fault = FaultReport {
        message: "of the index".to_string(),
        ..strict_stats(&fakes, 1).faults.remove(0)
    };
    fakes[0].faults = vec![fault; 2];
    let stats = strict_stats(&fakes, 2);
    assert_eq!((stats.total.events, stats.discarded.events), (0, 0));
    assert_eq!((stats.faults.len(), stats.more_faults), (1, 0));
    assert_eq!(stats.faults[0].message, "of the index");
}

#[test]
fn many_faults_of_stats_are_counted_only() {
    let chunks = vec![vec![broken(0)]; MOST_FAULTS + 7];
    let stats = stats(&[recording(vec![chunks])], &[], Window::ALL, 2);
    assert_eq!((stats.faults.len(), stats.more_faults), (MOST_FAULTS, 7));
    let json = String::from_utf8(stats.to_json()).unwrap();
    assert!(json.ends_with("],\"more_faults\":7}\n"));
    let text = String::from_utf8(stats.to_text(&Style::new(true))).unwrap();
    let reported = text.lines().find(|line| line.starts_with("faults"));
    let reported = reported.and_then(|line| line.split_whitespace().nth(1));
    assert_eq!(reported, Some(&*Style::new(true).count(10_007)));
    assert!(text.ends_with("and 7 faults more\n"));
}

#[test]
fn stats_count_classes_and_streams() {
    const SECOND: i64 = 1_000_000_000;
    let mut timeless = one(0);
    timeless.1 = None;
    let fakes = [
        recording(vec![
            vec![
                vec![one(SECOND), list(2 * SECOND, 1), one(3 * SECOND)],
                vec![one(4 * SECOND), timeless],
            ],
            vec![],
        ]),
        recording(vec![vec![vec![list(-SECOND, 1), broken(0)]]]),
    ];
    let counted = stats(&fakes, &[], Window::ALL, 1);
    assert_eq!(counted.total.events, 6, "the broken one does not count");
    assert_eq!(counted.total.duration(), Some(5_000_000_000));
    // Each event takes 8 bits, but for the last one of a chunk, which ends with it.
    assert_eq!(
        counted.classes[0].count.bits,
        8 + (800 - 16) + 8 + (800 - 8)
    );
    assert_eq!(counted.faults.len(), 1);
    insta::assert_snapshot!(
        "stats",
        String::from_utf8(counted.to_text(&Style::new(true))).unwrap()
    );
    insta::assert_snapshot!("stats_json", String::from_utf8(counted.to_json()).unwrap());
    for threads in 2..5 {
        assert_eq!(stats(&fakes, &[], Window::ALL, threads), counted);
    }

    let mut lists = stats(&fakes, &["l*"], Window::ALL, 2);
    assert_eq!(lists.total.events, 2);
    assert_eq!(lists.classes.len(), 2);
    lists.keep_top(1);
    assert_eq!(lists.classes.len(), 1);

    let window = Window {
        begin: fakes[0].chunks[0][1].begin_time.unwrap(),
        ..Window::ALL
    };
    let late = stats(&fakes, &[], window, 1);
    assert_eq!(
        late.total.events, 2,
        "one in the window, one without a time"
    );
}

/// A CPEL file with events in several chunks: of small codes and large ones, with and without a
/// definition, and one that occurs once.
fn log(order: kymo_machine::ByteOrder, section_events: usize) -> crate::AnyRecording {
    use kymo_cpel::{entries::Entry, recording, write};
    let mut log = write::Builder::new(write::Options {
        order,
        section_events,
        ..write::Options::default()
    });
    log.event(1, Some(b"one"), Some(b"%s")).unwrap();
    log.event(300, Some(b"large"), None).unwrap();
    for number in 0..200_000u32 {
        let code = [1, 300, 2, 1, 70_000][number as usize % 5];
        log.push(Entry {
            time: u64::from(number) * 10,
            track: number % 3,
            code: if number == 77_777 { 9 } else { code },
            datum: number,
        })
        .unwrap();
    }
    let mut bytes = Vec::new();
    log.write(&mut bytes).unwrap();
    let path = std::path::Path::new("log.cpel");
    let options = recording::Options::default();
    let log = recording::Recording::new(path, kymo_io::Bytes::from(bytes), &options).unwrap();
    crate::AnyRecording::Cpel(log)
}

#[test]
fn events_of_logs_are_counted_alike_with_and_without_looking_at_them() {
    let time = |time| kymo_time::Timestamp::from_nanos(time);
    let windows = [
        Window::ALL,
        Window {
            begin: time(655_360),
            end: time(1_500_000),
        },
        Window {
            begin: time(5),
            end: time(5),
        },
    ];
    for order in [
        kymo_machine::ByteOrder::Big,
        kymo_machine::ByteOrder::Little,
    ] {
        let logs = [log(order, 150_000)];
        for window in windows {
            let count = |condition: Option<&str>| {
                let query = Query {
                    condition: condition.map(str::to_string),
                    ..Query::default()
                };
                let filter = Filter::new(&query, &[window], &logs).unwrap();
                Stats::new(&logs, &filter, &options(2))
            };
            // What asks for a field has to look at all events.
            assert_eq!(count(None), count(Some("track >= 0")));
        }
        let stats = Stats::new(
            &logs,
            &Filter::new(&Query::default(), &[], &logs).unwrap(),
            &options(1),
        );
        let counts: Vec<_> = stats
            .classes
            .iter()
            .map(|class| (class.name.as_deref().unwrap(), class.count.events))
            .collect();
        let expected = [
            ("one", 80_000),
            ("large", 40_000),
            ("E70000", 40_000),
            ("E2", 39_999),
            ("E9", 1),
        ];
        assert_eq!(counts, expected);
    }
}
