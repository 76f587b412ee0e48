//! Every target, from a trace to the file.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use kymo_ctf::class::Dialect;
use kymo_machine::{ByteOrder, Machine};
use kymo_model::{FaultReport, Recording};
use kymo_rrd::Source;
use kymo_rrd::file::convert::Target;
use kymo_rrd::model::Scratch;
use tempfile::TempDir;

use super::chrome::Chrome;
use super::cpel::{Cpel, CpelOptions, CpelPlan, Keep};
use super::perfetto::{Perfetto, decode};
use super::rrd::{Extent, Function, MakeError, Rrd, RrdOptions};
use super::*;
use crate::filter::{FieldNames, Filter, Query};
use crate::pipeline::{self, Everything, Output};
use crate::show::json::Json;
use crate::show::{Sink, WallOptions};
use crate::{AnyRecording, open};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 32; } := u32;
typealias integer { size = 64; } := u64;
typealias integer { size = 64; signed = true; } := s64;
typealias integer { size = 64; map = clock.mono.value; } := time;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = mono; freq = 1000000000; };
stream {
    event.header := struct { u8 id; time timestamp; };
    event.context := struct { u8 cpu; };
};
event { id = 0; name = "work:begin"; fields := struct { u32 key; }; };
event { id = 1; name = "work:end"; fields := struct { u32 key; }; };
event { id = 2; name = "note"; fields := struct {
    string text; double f; enum : u8 { A, B, AB = 0 ... 1 } tag; u64 wide; s64 low; u8 len;
    struct { u8 a; string b; } list[len];
}; };
event { id = 3; name = "state"; fields := struct { u8 what; }; };
"#;

/// An event: its class, its time, its CPU, what follows.
type Made = (u8, u64, u8, Vec<u8>);

fn work(class: u8, time: u64, cpu: u8, key: u32) -> Made {
    (class, time, cpu, key.to_le_bytes().to_vec())
}

fn note(time: u64, cpu: u8, text: &[u8], f: f64, wide: u64, low: i64, list: &[u8]) -> Made {
    let mut bytes = text.to_vec();
    bytes.push(0);
    bytes.extend(f.to_le_bytes());
    bytes.push(1);
    bytes.extend(wide.to_le_bytes());
    bytes.extend(low.to_le_bytes());
    bytes.push(list.len() as u8);
    for &a in list {
        bytes.extend([a, b'x', 0]);
    }
    (2, time, cpu, bytes)
}

/// The bytes of a stream.
fn bytes_of(events: &[Made]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (class, time, cpu, rest) in events {
        bytes.push(*class);
        bytes.extend(time.to_le_bytes());
        bytes.push(*cpu);
        bytes.extend(rest);
    }
    bytes
}

/// A trace of one stream.
fn trace(events: &[Made]) -> (TempDir, Vec<AnyRecording>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("metadata"), METADATA).unwrap();
    std::fs::write(dir.path().join("stream"), bytes_of(events)).unwrap();
    let opened = open::open(&[PathBuf::from(dir.path())], &open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    (dir, opened.recordings)
}

/// Notes with what is hard to hold.
fn hostile() -> Vec<Made> {
    vec![
        note(1, 0, b"plain", 0.5, u64::MAX, i64::MIN, &[]),
        note(2, 1, b"\xffbad\xc3\xa9\x80", f64::NAN, 5, -5, &[7, 8]),
        note(3, 1, b"\"\\\n\x01", f64::NEG_INFINITY, 0, 0, &[9]),
    ]
}

#[derive(Default)]
struct Collected(Vec<u8>);

impl Output for Collected {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(text);
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        panic!("{}", lines.escape_ascii());
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        panic!("{fault}");
    }
}

fn run(recordings: &[AnyRecording], sink: &mut impl Sink) -> Vec<u8> {
    let mut collected = Collected::default();
    let options = pipeline::Options::default();
    pipeline::run(recordings, &Everything, &options, sink, &mut collected).unwrap();
    collected.0
}

fn field(name: &str) -> FieldNames {
    FieldNames::parse_one(name).unwrap()
}

fn slices(texts: &[&str]) -> TrackOptions {
    TrackOptions {
        slices: texts
            .iter()
            .map(|text| Slice::parse(text).unwrap())
            .collect(),
        ..TrackOptions::default()
    }
}

/// A trace of Perfetto, decoded, and what it cannot hold.
fn perfetto(events: &[Made], options: TrackOptions) -> String {
    let (dir, recordings) = trace(events);
    let binding = TrackBinding::new(options, &recordings).unwrap();
    let mut perfetto = Perfetto::new(&recordings, &binding, WallOptions::default());
    let bytes = run(&recordings, &mut perfetto);
    let mut text = decode::text(&bytes);
    for line in perfetto.losses().lines() {
        text += &format!("LOST {line}\n");
    }
    text.replace(dir.path().to_str().unwrap(), "DIR")
}

fn chrome(events: &[Made], options: TrackOptions) -> String {
    let (dir, recordings) = trace(events);
    let binding = TrackBinding::new(options, &recordings).unwrap();
    let mut chrome = Chrome::new(&recordings, &binding, WallOptions::default());
    let text = String::from_utf8(run(&recordings, &mut chrome)).unwrap();
    // Wrong bytes are halves of surrogate pairs, which this parser does not take.
    let parsed: serde_json::Value = serde_json::from_str(&text.replace("\\udc", "\\u00")).unwrap();
    assert!(parsed["traceEvents"].is_array());
    let lost: Vec<_> = chrome.losses().lines();
    text.replace(dir.path().to_str().unwrap(), "DIR") + &lost.join("\n")
}

#[test]
fn perfetto_holds_every_field() {
    insta::assert_snapshot!(perfetto(&hostile(), TrackOptions::default()));
}

#[test]
fn perfetto_slices_nest() {
    let events = [
        work(0, 1, 0, 1),
        work(0, 2, 0, 2),
        work(1, 3, 0, 2),
        // Ends 3, which began within 1, too.
        work(0, 4, 0, 3),
        work(1, 5, 0, 1),
        // Nothing is open.
        work(1, 6, 0, 1),
        // On another track.
        work(0, 7, 1, 1),
        work(1, 8, 0, 1),
    ];
    let mut options = slices(&[r"work\:begin:work\:end:key"]);
    options.track = Some(field("cpu"));
    insta::assert_snapshot!(perfetto(&events, options.clone()));
    insta::assert_snapshot!(chrome(&events, options));
}

#[test]
fn states_follow_each_other() {
    let state = |time, what| (3, time, 0, vec![what]);
    let events = [state(1, 1), work(0, 2, 0, 1), state(3, 2), state(4, 3)];
    let options = slices(&["state:state", r"work\:begin:work\:end"]);
    insta::assert_snapshot!(perfetto(&events, options));
}

#[test]
fn no_more_slices_are_open_than_viewers_take() {
    let events: Vec<_> = (0..600).map(|time| work(0, time, 0, 1)).collect();
    let text = perfetto(&events, slices(&["*begin:*end"]));
    assert_eq!(text.matches(" begin stream").count(), 500);
    assert!(
        text.contains("LOST slices that no event ends: 500"),
        "{text}"
    );
    assert!(text.contains("like their ends: 100"), "{text}");
}

#[test]
fn ends_of_slices_that_were_not_begun_end_no_other() {
    let begins = (0..600).map(|time| work(0, time, 0, 1));
    let ends = (600..1200).map(|time| work(1, time, 0, 1));
    let events: Vec<_> = begins.chain(ends).collect();
    for text in ["*begin:*end", "*begin:*end:key"] {
        let json = chrome(&events, slices(&[text]));
        let lost = "written as instants like their ends: 100";
        assert!(json.ends_with(lost), "{}", &json[json.len() - 200..]);
        let lines: Vec<_> = json
            .lines()
            .filter(|line| line.contains("\"ph\":\"E\""))
            .collect();
        assert_eq!(lines.len(), 500);
        // The innermost slice that was begun ends after those within it.
        assert!(lines[0].contains("\"ts\":0.700"), "{}", lines[0]);
    }
    // What is around them ends them, too.
    let mut events: Vec<_> = (0..502).map(|time| work(0, time, 0, time as u32)).collect();
    events.extend([work(1, 600, 0, 0), work(1, 601, 0, 501)]);
    let text = perfetto(&events, slices(&["*begin:*end:key"]));
    assert!(
        text.contains("LOST events that end a slice which no event began, written as instants: 1")
    );
}

#[test]
fn counters_and_flows() {
    let mut events = hostile();
    events.push(work(0, 4, 0, 5));
    let options = TrackOptions {
        counters: ["note:wide", "note:low", "note:f", "*:cpu"]
            .map(|text| Counter::parse(text).unwrap())
            .into(),
        flows: vec![field("cpu")],
        ..TrackOptions::default()
    };
    insta::assert_snapshot!(perfetto(&events, options.clone()));
    insta::assert_snapshot!(chrome(&events, options));
}

#[test]
fn counters_have_a_bound() {
    let events: Vec<_> = (0..5).map(|cpu| work(0, 1, cpu, 7)).collect();
    let (_dir, recordings) = trace(&events);
    let options = TrackOptions {
        track: Some(field("cpu")),
        counters: vec![Counter::parse("*:key").unwrap()],
        ..TrackOptions::default()
    };
    let binding = TrackBinding::new(options, &recordings).unwrap();
    let mut perfetto =
        Perfetto::new(&recordings, &binding, WallOptions::default()).with_counters(3);
    let text = decode::text(&run(&recordings, &mut perfetto));
    assert_eq!(text.matches(" instant ").count(), 5, "{text}");
    let lost = "too many counters: values of the rest, left out: 2";
    assert_eq!(perfetto.losses().lines(), [lost]);
}

#[test]
fn no_trace_is_one_too() {
    assert_eq!(perfetto(&[], TrackOptions::default()), "");
    let nothing = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}\n";
    assert_eq!(chrome(&[], TrackOptions::default()), nothing);
}

#[test]
fn a_field_that_no_event_has_is_reported() {
    let (_dir, recordings) = trace(&[]);
    let unknown = |options| TrackBinding::new(options, &recordings).unwrap_err();
    let counter = unknown(TrackOptions {
        counters: vec![Counter::parse("note:key").unwrap()],
        ..TrackOptions::default()
    });
    let expected = "--counter: no event that is looked at has a field `key`";
    assert_eq!(counter.to_string(), expected);
    let flow = unknown(TrackOptions {
        flows: vec![field("kex")],
        ..TrackOptions::default()
    });
    assert_eq!(
        flow.to_string(),
        "--flow: no event that is looked at has a field `kex`"
    );
    assert!(
        flow.error
            .render("", false)
            .contains("there is a field `key`")
    );
}

/// The rows of a database as JSON lines, and what it cannot hold.
fn database(events: &[Made], options: RrdOptions) -> Result<String, MakeError> {
    let (_dir, recordings) = trace(events);
    let binding = options.binding(&recordings).unwrap();
    let mut rrd = Rrd::new(&recordings, options, &binding, WallOptions::default());
    run(&recordings, &mut rrd);
    let made = rrd.make()?;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made.rrd");
    std::fs::write(&path, &made.bytes).unwrap();
    let opened = open::open(&[path], &open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    let lines = run(&opened.recordings, &mut Json::new(WallOptions::default()));
    let mut text = String::new();
    for line in String::from_utf8(lines).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let seconds = line["timestamp"].as_i64().unwrap() / 1_000_000_000;
        text += &format!("{seconds} {} {}\n", line["archive"], line["payload"]);
    }
    for (source, name) in &made.sources {
        text += &format!("{source} = {name}\n");
    }
    Ok(text + &rrd.losses().lines().join("\n"))
}

const SECOND: u64 = 1_000_000_000;

fn counting() -> RrdOptions {
    RrdOptions {
        value: None,
        track: None,
        step: 2,
        rows: None,
        target: Target::Portable,
    }
}

#[test]
fn counts_become_rows() {
    let events = [
        work(0, 100 * SECOND, 0, 1),
        work(1, 101 * SECOND, 0, 1),
        work(0, 101 * SECOND + 999_999_999, 0, 1),
        work(0, 102 * SECOND, 0, 1),
        work(1, 106 * SECOND, 1, 1),
    ];
    let expected = r#"102 "AVERAGE/2" {"work_begin":2.0,"work_end":1.0}
104 "AVERAGE/2" {"work_begin":1.0,"work_end":0.0}
106 "AVERAGE/2" {"work_begin":0.0,"work_end":0.0}
108 "AVERAGE/2" {"work_begin":0.0,"work_end":1.0}
work_begin = work:begin
work_end = work:end
"#;
    assert_eq!(database(&events, counting()).unwrap(), expected);
    let last = RrdOptions {
        rows: Some(1),
        track: Some(field("cpu")),
        target: Target::Native(Machine::find("sparc").unwrap()),
        ..counting()
    };
    let expected = r#"108 "AVERAGE/2" {"cpu_0":0.0,"cpu_1":1.0}
cpu_0 = cpu 0
cpu_1 = cpu 1
events before the first row that is kept, left out: 4"#;
    assert_eq!(database(&events, last).unwrap(), expected);
}

#[test]
fn values_become_rows() {
    let time = |second: u64| second * SECOND + 5;
    let events = [
        note(time(10), 0, b"", 1.5, 0, -10, &[]),
        note(time(10), 0, b"", 2.5, 0, 30, &[]),
        note(time(11), 0, b"", f64::NAN, 0, 0, &[]),
        work(0, time(11), 0, 1),
        note(time(14), 0, b"", 8.0, 0, -10, &[]),
    ];
    let options_of = |name: &str, function| RrdOptions {
        value: Some((field(name), function)),
        ..counting()
    };
    let expected = r#"12 "AVERAGE/2" {"note":2.0}
14 "AVERAGE/2" {"note":null}
16 "AVERAGE/2" {"note":8.0}
note = note
values that are missing or no numbers, left out: 1"#;
    assert_eq!(
        database(&events, options_of("f", Function::Average)).unwrap(),
        expected
    );
    let low = database(&events, options_of("low", Function::Max)).unwrap();
    assert!(low.starts_with("12 \"MAX/2\" {\"note\":30.0}\n"), "{low}");
}

/// A file with gaps is like one of which each row has been written by itself.
#[test]
fn gaps_are_written_at_once() {
    let rows = |options: RrdOptions, times: &[u64]| {
        let event = |&time: &u64| note(time * SECOND, 0, b"", 1.5, 0, 3, &[]);
        let events: Vec<_> = times.iter().map(event).collect();
        let (_dir, recordings) = trace(&events);
        let binding = options.binding(&recordings).unwrap();
        let mut rrd = Rrd::new(&recordings, options, &binding, WallOptions::default());
        run(&recordings, &mut rrd);
        let extent = rrd.extent().unwrap();
        let bytes = rrd.make().unwrap().bytes;
        let source = Source::open(&bytes, None).unwrap();
        let row = |row| {
            source
                .rows
                .value(0, row, 0)
                .map(|value| value.to_f64().to_bits())
        };
        let rows: Vec<_> = (0..extent.rows).map(row).collect();
        let mut database = source.database.clone();
        // The rate of the last update of several steps, which nothing reads here.
        for scratch in &mut database.state.archives[0].scratch {
            scratch.0[Scratch::SECONDARY] = 0;
        }
        (extent, database, rows)
    };
    // With an event in each second, every row has an update of its own.
    let valued = RrdOptions {
        value: Some((field("f"), Function::Last)),
        ..counting()
    };
    for options in [counting(), valued] {
        let options = RrdOptions { step: 1, ..options };
        let is_counting = options.value.is_none();
        let (_, full, values) = rows(options.clone(), &(10..40).collect::<Vec<_>>());
        let times = [10, 11, 13, 16, 20, 25, 39];
        let (extent, sparse, found) = rows(options, &times);
        assert_eq!((extent.rows, extent.filled), (30, 7));
        let nothing = if is_counting { 0.0 } else { f64::NAN };
        for (row, (found, value)) in found.iter().zip(&values).enumerate() {
            match times.contains(&(row as u64 + 10)) {
                true => assert_eq!(found, value),
                false => {
                    let found = f64::from_bits(found.unwrap());
                    assert_eq!(found.is_nan(), nothing.is_nan(), "{row}");
                    assert!(is_counting == (found == 0.0), "{row}");
                }
            }
        }
        // Definitions, the last readings and what the archive prepares.
        assert_eq!(sparse, full);
    }
}

#[test]
fn large_databases_of_few_events_are_reported() {
    let extent = |rows, filled| Extent {
        rows,
        sources: 2,
        filled,
    };
    assert!(extent(1 << 20, 5).is_mostly_empty());
    assert!(!extent((1 << 20) - 1, 5).is_mostly_empty());
    assert!(!extent(1 << 20, (2 << 20) / 100).is_mostly_empty());
    let far = [work(0, 0, 0, 1), work(0, 100_000_000 * SECOND, 0, 1)];
    let (_dir, recordings) = trace(&far);
    let options = RrdOptions {
        step: 1,
        ..counting()
    };
    let binding = options.binding(&recordings).unwrap();
    let mut rrd = Rrd::new(&recordings, options, &binding, WallOptions::default());
    run(&recordings, &mut rrd);
    let extent = rrd.extent().unwrap();
    assert!(extent.is_mostly_empty());
    assert_eq!(
        extent.to_string(),
        "the database takes 800 MB: 100000001 rows of 1 data source, in which 2 values are of events"
    );
}

#[test]
fn databases_have_their_limits() {
    let far = [work(0, 0, 0, 1), work(0, 8_000_000_000 * SECOND, 0, 1)];
    let rows = 4_000_000_001;
    let error = database(&far, counting()).unwrap_err();
    assert_eq!(error, MakeError::Values { rows, sources: 1 });
    let few = RrdOptions {
        rows: Some(3),
        ..counting()
    };
    let text = database(&far, few).unwrap();
    assert!(text.ends_with("left out: 1"), "{text}");
    assert_eq!(database(&[], counting()).unwrap_err(), MakeError::Nothing);
    let many: Vec<_> = (0..1001).map(|key| work(0, SECOND, 0, key)).collect();
    let by_key = RrdOptions {
        track: Some(field("key")),
        ..counting()
    };
    assert_eq!(database(&many, by_key).unwrap_err(), MakeError::Sources);
}

/// The events of a CPEL file as JSON lines, and what it cannot hold.
fn log(events: &[Made], keep: Keep, track: Option<&str>, clock: u32) -> String {
    let (_dir, recordings) = trace(events);
    let options = CpelOptions {
        keep,
        track: track.map(field),
        order: ByteOrder::Big,
        clock: clock.try_into().unwrap(),
    };
    let plan = CpelPlan::new(options, &recordings).unwrap();
    let mut log = Cpel::new(&recordings, &plan, WallOptions::default());
    run(&recordings, &mut log);
    let losses = log.losses().lines();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made.cpel");
    let mut bytes = Vec::new();
    log.write(&mut bytes).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let opened = open::open(&[path], &open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    let faults: Vec<_> = opened.recordings[0].faults().to_vec();
    assert!(faults.is_empty(), "{faults:?}");
    let lines = run(&opened.recordings, &mut Json::new(WallOptions::default()));
    let lines = String::from_utf8(lines).unwrap();
    lines.replace(dir.path().to_str().unwrap(), "DIR") + &losses.join("\n")
}

#[test]
fn cpel_keeps_all_fields_as_text() {
    insta::assert_snapshot!(log(&hostile(), Keep::Text, None, 1_000_000_000));
}

#[test]
fn cpel_keeps_a_field_as_datum() {
    let mut events = hostile();
    events.push(work(0, 2_000_000_001, 7, 5));
    let datum = |name| Keep::Datum(field(name));
    insta::assert_snapshot!(log(&events, datum("wide"), Some("cpu"), 1_000_000));
    insta::assert_snapshot!(log(&events, datum("low"), Some("text"), 3));
    let list = log(&events, datum("list"), None, 1_000_000_000);
    let lost = "values that are arrays or structures, left out: 3";
    assert!(list.ends_with(lost), "{list}");
}

#[test]
fn strict_traces_report_the_first_damage_whatever_the_threads() {
    let (dir, _) = trace(&[]);
    for stream in 0..12 {
        let mut bytes = bytes_of(&vec![work(0, 1, 0, 1); 200]);
        if stream > 3 {
            // An event that is cut, with more before it where streams come earlier.
            bytes.truncate(bytes.len() - 18 * stream - 1);
        }
        std::fs::write(dir.path().join(format!("stream{stream:02}")), bytes).unwrap();
    }
    let recordings = open::open(&[dir.path().into()], &open::Options::default()).recordings;
    let filter = Filter::new(&Query::default(), &[], &recordings).unwrap();
    for threads in [1, 2, 8] {
        let options = ctf::CtfOptions {
            dialect: Dialect::Ctf18,
            order: None,
            packed: false,
            packet_bytes: None,
            protection: None,
            kept_protection: None,
            metadata_protection: None,
            index: false,
            repairs: false,
            threads,
            strict: true,
        };
        let made = tempfile::tempdir().unwrap();
        let written =
            ctf::write(&recordings, &[0], &filter, &options, made.path(), &|_| ()).unwrap();
        let [fault] = &written.faults[..] else {
            panic!("{:?}", written.faults);
        };
        assert!(fault.file.ends_with("stream04"), "{fault}");
    }
}
