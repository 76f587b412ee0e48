//! What is recorded is what a reader finds.

mod common;

use std::fmt;
use std::path::PathBuf;

use common::{names, numbers, payloads, read, read_anyhow, record};
use kymo_model::Recording as _;
use kymo_tracing::{Dialect, Options, WhenFull};
use serde_json::Value;
use tracing::field::Empty;

/// A directory that is there as long as the test.
fn trace() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    (folder, trace)
}

/// The events that are read back after recording what a function emits, in each way.
#[track_caller]
fn recorded(options: &Options, act: impl Fn()) -> Vec<Value> {
    let (_folder, path) = trace();
    let (files, mapped, snapshot) = (path.join("f"), path.join("m"), path.join("s"));
    let (layer, guard) = options.files(&files).unwrap();
    record(layer, &act);
    guard.finish().unwrap();
    let events = read(&files);

    let (layer, guard) = options.mapped(&mapped).unwrap();
    record(layer, &act);
    same(&events, &read(&mapped));
    guard.finish().unwrap();
    same(&events, &read(&mapped));

    let (layer, flight) = options.flight_recorder(1 << 22).unwrap();
    record(layer, &act);
    assert_eq!(flight.snapshot(&snapshot).unwrap().overwritten, 0);
    same(&events, &read(&snapshot));
    events
}

#[track_caller]
fn same(events: &[Value], others: &[Value]) {
    for (event, other) in events.iter().zip(others) {
        assert_eq!(event["payload"], other["payload"]);
    }
    assert_eq!(events.len(), others.len());
    assert_eq!(names(events), names(others));
}

/// Some readers take packets of a stream for one that begin at the same time.
#[test]
fn no_packets_of_several_mapped_files_begin_at_the_same_time() {
    let (_folder, path) = trace();
    let options = Options::new().packet_size(4096).file_size(16_384);
    let (layer, guard) = options.mapped(&path).unwrap();
    record(layer, || {
        (0..5000).for_each(|number: u64| tracing::info!(number));
    });
    guard.finish().unwrap();
    let streams = std::fs::read_dir(&path).unwrap().count() - 1;
    assert!(streams > 2, "{streams}");
    let opened = kymo::open::open(&[path], &kymo::open::Options::default());
    let recording = &opened.recordings[0];
    let begins: Vec<_> = recording
        .chunks(0)
        .map(|chunk| chunk.begin.unwrap())
        .collect();
    assert!(begins[0] < begins[1] && begins.is_sorted(), "{begins:?}");
}

#[test]
fn values_keep_their_types() {
    // CTF 1.8 has no truth values, but labels.
    let options = |dialect| Options::new().dialect(dialect);
    let events = recorded(&options(Dialect::Ctf18), || {
        tracing::info!(yes = true, no = false);
    });
    let labels = ["yes", "no"].map(|name| events[0]["payload"][name]["labels"].to_string());
    assert_eq!(labels, [r#"["true"]"#, r#"["false"]"#]);

    let events = recorded(&options(Dialect::Ctf2), || {
        tracing::info!(
            least = i64::MIN,
            most = u64::MAX,
            small = -1i8,
            size = 7usize
        );
        tracing::info!(
            yes = true,
            no = false,
            float = 0.1,
            single = 0.5f32,
            none = f64::NAN
        );
        tracing::info!(s = "text", d = ?Some("x"), p = %"shown", nothing = "", b = true, n = 1);
        tracing::info!(wide = i128::MIN, wider = u128::MAX);
        let error = std::io::Error::other("broken");
        tracing::error!(
            error = &error as &(dyn std::error::Error + 'static),
            "failed {}",
            1
        );
    });
    let expected = [
        r#"{"least":-9223372036854775808,"most":18446744073709551615,"size":7,"small":-1}"#,
        r#"{"float":0.1,"no":false,"none":"NaN","single":0.5,"yes":true}"#,
        r#"{"b":true,"d":"Some(\"x\")","n":1,"nothing":"","p":"shown","s":"text"}"#,
        r#"{"wide":"-170141183460469231731687303715884105728","wider":"340282366920938463463374607431768211455"}"#,
        r#"{"error":"broken","message":"failed 1"}"#,
    ];
    assert_eq!(payloads(&events), expected);
}

#[test]
fn each_level_and_place_is_in_the_metadata() {
    let (_folder, path) = trace();
    let (layer, guard) = Options::new().files(&path).unwrap();
    record(layer, || {
        tracing::error!(target: "a b", "1");
        tracing::warn!(name: "named", "2");
        tracing::info!("3");
        tracing::debug!("4");
        tracing::trace!("5");
    });
    guard.finish().unwrap();
    let opened = kymo_ctf::trace::Trace::open(&[path], &Default::default()).unwrap();
    let events = &opened.class().streams[0].events;
    let levels: Vec<_> = events.iter().map(|event| event.log_level).collect();
    assert_eq!(levels, [3, 4, 6, 7, 14].map(Some));
    let name = |position: usize| events[position].name.as_deref().unwrap();
    assert_eq!(name(1), "recording::named");
    assert!(name(2).starts_with("recording:"), "{}", name(2));
    let place = events[0].emf_uri.as_deref().unwrap();
    let (file, rest) = place.split_once('?').unwrap();
    assert!(file.ends_with("tests/recording.rs"), "{place}");
    assert!(
        rest.starts_with("target=a%20b&module=recording#L"),
        "{place}"
    );
}

#[test]
fn spans_begin_and_end_with_their_fields() {
    let events = recorded(&Options::new(), || {
        let outer = tracing::info_span!("outer", n = 1, later = Empty, never = Empty);
        outer.in_scope(|| {
            tracing::info!("within");
            let inner = tracing::debug_span!("inner").entered();
            tracing::info!(parent: None, "alone");
            outer.record("later", "now");
            inner.exit();
        });
        tracing::info!(parent: &outer, "explicit");
        let follower = tracing::info_span!(parent: None, "follower");
        follower.follows_from(&outer);
    });
    let expected = [
        "outer.new",
        "outer.enter",
        "within",
        "inner.new",
        "inner.enter",
        "alone",
        "outer.record",
        "inner.exit",
        "inner.close",
        "outer.exit",
        "explicit",
        "follower.new",
        "follower.follows_from",
        "follower.close",
        "outer.close",
    ];
    let short = |event: &Value| match event["payload"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => event["event"].as_str().unwrap().replace("recording::", ""),
    };
    assert_eq!(events.iter().map(short).collect::<Vec<_>>(), expected);
    let span = |position: usize| events[position]["common_context"]["span"].as_u64().unwrap();
    let (outer, inner, follower) = (span(0), span(3), span(11));
    assert!(outer != inner && outer != follower && outer * inner * follower != 0);
    let spans: Vec<u64> = (0..events.len()).map(span).collect();
    let o = outer;
    let i = inner;
    let f = follower;
    assert_eq!(spans, [o, o, o, i, i, 0, o, i, i, o, o, f, f, f, o]);
    let context = |position: usize| &events[position]["specific_context"];
    assert_eq!(context(0)["parent"], 0);
    assert_eq!(context(3)["parent"], outer);
    assert_eq!(context(12)["cause"], outer);
    assert_eq!(events[0]["payload"].to_string(), r#"{"n":1}"#);
    assert_eq!(events[6]["payload"].to_string(), r#"{"later":"now"}"#);
}

#[test]
fn spans_may_be_recorded_without_who_enters_them() {
    let events = recorded(&Options::new().enters(false), || {
        tracing::info_span!("outer").in_scope(|| tracing::info!("within"));
    });
    assert_eq!(names(&events).len(), 3);
    let spans: Vec<_> = events
        .iter()
        .map(|event| &event["common_context"]["span"])
        .collect();
    assert!(spans[0] == spans[1] && spans[1] == spans[2]);
}

fn of_any_type<T: tracing::Value>(value: T) {
    tracing::info!(value, after = 1);
}

#[test]
fn one_call_site_may_have_many_types() {
    let events = recorded(&Options::new().dialect(Dialect::Ctf2), || {
        for _ in 0..2 {
            of_any_type(-1);
            of_any_type(1u64);
            of_any_type("text");
            of_any_type(true);
            of_any_type(None::<u8>);
        }
    });
    let values: Vec<_> = events
        .iter()
        .map(|event| event["payload"]["value"].to_string())
        .collect();
    let expected = ["-1", "1", "\"text\"", "true", "null"];
    assert_eq!(values, [expected, expected].concat());
    assert!(events.iter().all(|event| event["payload"]["after"] == 1));
}

/// Eight fields that are there or not: 256 classes, of which 64 are typed.
#[test]
fn what_makes_too_many_classes_becomes_text() {
    let events = recorded(&Options::new(), || {
        for bits in (0..256u32).chain(0..256) {
            let [a, b, c, d, e, f, g, h] =
                std::array::from_fn(|bit| (bits >> bit & 1 == 1).then_some(bits));
            tracing::info!(a, b, c, d, e, f, g, h);
        }
    });
    assert_eq!(events.len(), 512);
    let classes = events
        .iter()
        .map(|event| event["event_class"].as_u64().unwrap());
    assert_eq!(classes.max(), Some(64));
    for (number, event) in events.iter().enumerate() {
        let bits = number % 256;
        for (bit, name) in ["a", "b", "c", "d", "e", "f", "g", "h"].iter().enumerate() {
            let value = &event["payload"][name];
            match bits >> bit & 1 == 1 {
                true if bits < 64 => assert_eq!(value, bits),
                true => assert_eq!(value, &bits.to_string()),
                false if bits < 64 => assert!(value.is_null()),
                false => assert_eq!(value, ""),
            }
        }
    }
}

#[test]
fn fields_may_be_reported_in_any_order_and_twice() {
    let events = recorded(&Options::new(), || {
        tracing::info!(a = 1, b = "x", a = 2, { "odd name" } = 3);
    });
    let payload = &events[0]["payload"];
    assert_eq!(
        (payload["a"].to_string(), payload["a_2"].to_string()),
        ("1".into(), "2".into())
    );
    assert_eq!(payload["b"], "x");
}

#[test]
fn texts_of_any_length_and_zeros_are_text() {
    let events = recorded(&Options::new(), || {
        for length in 0..40 {
            let text = "abcdefgh".repeat(5);
            tracing::info!(t = &text[..length], u = &text[length..], n = length);
        }
        tracing::info!(t = "a\0b\0", u = ?"c\0");
    });
    for (length, event) in events.iter().take(40).enumerate() {
        let payload = &event["payload"];
        let both = [&payload["t"], &payload["u"]].map(|text| text.as_str().unwrap());
        assert_eq!(both.concat(), "abcdefgh".repeat(5));
        assert_eq!((both[0].len(), &payload["n"]), (length, &length.into()));
    }
    assert_eq!(events[40]["payload"]["t"], "a␀b␀");
    assert_eq!(events[40]["payload"]["u"], "\"c\\0\"");
}

#[test]
fn texts_that_have_no_room_are_cut_off() {
    let small = Options::new().packet_size(4096);
    let events = recorded(&small, || {
        let long = "ä".repeat(10_000);
        tracing::info!(n = 1, a = long, b = "short", c = ?long, last = 2);
        tracing::info!(n = 2, "after");
    });
    assert_eq!(numbers(&events, "n"), [1, 2]);
    let payload = &events[0]["payload"];
    let a = payload["a"].as_str().unwrap();
    assert!(a.ends_with("ä…") && a.len() > 600, "{}", a.len());
    let c = payload["c"].as_str().unwrap();
    assert!(
        c.starts_with("\"ä") && c.ends_with("ä…") && c.len() > 600,
        "{}",
        c.len()
    );
    assert_eq!(
        (&payload["b"], &payload["last"]),
        (&"short".into(), &2.into())
    );
}

#[test]
fn packets_follow_one_another() {
    // None is lost, however slow the disk is.
    let small = Options::new()
        .packet_size(4096)
        .file_size(1 << 14)
        .when_full(WhenFull::Wait);
    let events = recorded(&small, || {
        for number in 0..5000u64 {
            tracing::info!(number, text = "x".repeat(number as usize % 50), half = 0.5);
        }
    });
    assert!(numbers(&events, "number").into_iter().eq(0..5000));
}

#[test]
fn what_panics_while_it_is_formatted_leaves_nothing() {
    struct Panics;
    impl fmt::Debug for Panics {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a part")?;
            std::panic::panic_any(());
        }
    }
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let events = recorded(&Options::new(), || {
        tracing::info!(n = 1);
        let panicked = std::panic::catch_unwind(|| tracing::info!(n = 2, value = ?Panics));
        assert!(panicked.is_err());
        tracing::info!(n = 3);
    });
    std::panic::set_hook(quiet);
    assert_eq!(numbers(&events, "n"), [1, 3]);
}

#[test]
fn names_that_a_dialect_cannot_hold_are_others() {
    let act = || tracing::info!(http.method = "GET", r#type = 1, { "a b" } = 2, int = 3);
    let payload =
        |dialect| recorded(&Options::new().dialect(dialect), act)[0]["payload"].to_string();
    let expected = r#"{"a b":2,"http.method":"GET","int":3,"type":1}"#;
    assert_eq!(payload(Dialect::Ctf2), expected);
    let expected = r#"{"a_b":2,"http_method":"GET","int":3,"type":1}"#;
    assert_eq!(payload(Dialect::Ctf18), expected);
    let folder = tempfile::tempdir().unwrap();
    let rfc = Options::new()
        .dialect(Dialect::Rfc11)
        .files(folder.path().join("trace"));
    assert!(rfc.unwrap_err().to_string().contains("CTF 1.8 or CTF 2"));
}

#[test]
fn directories_that_are_in_use_are_left_alone() {
    let (_folder, path) = trace();
    let (layer, guard) = Options::new().files(&path).unwrap();
    record(layer, || tracing::info!("kept"));
    guard.finish().unwrap();
    for result in [Options::new().files(&path), Options::new().mapped(&path)] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("not empty"), "{error}");
    }
    assert_eq!(read(&path).len(), 1);
    let (_layer, flight) = Options::new().flight_recorder(1 << 20).unwrap();
    assert!(flight.snapshot(&path).is_err());
    assert!(Options::new().flight_recorder(1 << 16).is_err());
}

#[test]
fn events_without_room_are_discarded_and_counted() {
    let (_folder, path) = trace();
    // Nothing is written until the sink is released.
    let (sink, leave) = Held::new(&path);
    let options = Options::new()
        .packet_size(4096)
        .waiting(2)
        .flush_every(None);
    let (layer, guard) = options.sink(sink).unwrap();
    record(layer, || {
        for number in 0..1000u64 {
            tracing::info!(number);
        }
        drop(leave);
        guard.flush().unwrap();
        tracing::info!(number = 1000u64);
    });
    guard.finish().unwrap();
    let read = read_anyhow(&path);
    let found = numbers(&read.events, "number");
    let (last, before) = found.split_last().unwrap();
    assert_eq!(*last, 1000);
    assert!(before.iter().copied().eq(0..before.len() as u64));
    let lost = 1001 - found.len();
    assert!(lost > 500);
    assert!(
        read.warnings.contains(&format!("discarded {lost} events")),
        "{}",
        read.warnings
    );
}

#[test]
fn threads_may_wait_for_room() {
    let (_folder, path) = trace();
    let (sink, leave) = Held::new(&path);
    let options = Options::new()
        .packet_size(4096)
        .waiting(2)
        .when_full(WhenFull::Wait);
    let (layer, guard) = options.sink(sink).unwrap();
    let dispatch = common::dispatch(layer);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tracing::dispatcher::with_default(&dispatch, || {
                for number in 0..1000u64 {
                    tracing::info!(number);
                }
            });
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(leave);
    });
    guard.finish().unwrap();
    assert!(numbers(&read(&path), "number").into_iter().eq(0..1000));
}

/// Writes nothing as long as the other end is held.
struct Held {
    held: std::sync::mpsc::Receiver<()>,
    directory: PathBuf,
}

impl Held {
    fn new(directory: &std::path::Path) -> (Self, std::sync::mpsc::Sender<()>) {
        let (leave, held) = std::sync::mpsc::channel();
        std::fs::create_dir(directory).unwrap();
        let directory = directory.to_path_buf();
        (Self { held, directory }, leave)
    }
}

impl kymo_tracing::Sink for Held {
    fn metadata(&mut self, text: &str) -> std::io::Result<()> {
        std::fs::write(self.directory.join("metadata"), text)
    }

    fn packet(&mut self, stream: u32, packet: &[u8]) -> std::io::Result<()> {
        assert!(self.held.recv().is_err());
        let path = self.directory.join(stream.to_string());
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        std::io::Write::write_all(&mut file, packet)
    }
}

/// A disk that is full for a while.
#[test]
fn what_a_sink_cannot_write_is_reported_and_the_rest_is_written() {
    struct Full {
        directory: PathBuf,
        packets: usize,
    }
    impl kymo_tracing::Sink for Full {
        fn metadata(&mut self, text: &str) -> std::io::Result<()> {
            std::fs::write(self.directory.join("metadata"), text)
        }
        fn packet(&mut self, _: u32, packet: &[u8]) -> std::io::Result<()> {
            self.packets += 1;
            if self.packets == 2 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let path = self.directory.join("stream");
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            std::io::Write::write_all(&mut file, packet)
        }
    }
    let (folder, _) = trace();
    let sink = Full {
        directory: folder.path().to_path_buf(),
        packets: 0,
    };
    let (layer, guard) = Options::new().flush_every(None).sink(sink).unwrap();
    record(layer, || {
        for number in 0..3u64 {
            tracing::info!(number);
            let reported = guard.flush();
            assert_eq!(reported.is_err(), number == 1);
        }
    });
    guard.finish().unwrap();
    let read = read_anyhow(folder.path());
    assert_eq!(numbers(&read.events, "number"), [0, 2]);
    assert!(
        read.warnings.contains("discarded 1 packet"),
        "{}",
        read.warnings
    );
}
