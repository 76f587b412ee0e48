//! elog files: all kinds of arguments, damage, and what they become as CPEL.

use std::fmt::Write as _;
use std::path::Path;

use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::elog::write::Builder;
use kymo_cpel::elog::{Argument, ArgumentKind, Moment, Recording, Value};
use kymo_cpel::probe::{Kind, Likeness, probe};
use kymo_cpel::recording::{Options, Recording as Cpel};
use kymo_cpel::write;
use kymo_io::Bytes;
use kymo_model::{Cursor, Event, FieldId, Recording as _, Shift, Visitor};
use proptest::prelude::*;

/// A number with its length, of which these are short.
fn string(text: &str, to: &mut Vec<u8>) {
    to.push((text.len() * 2 + 1).try_into().unwrap());
    to.extend(text.as_bytes());
}

/// 64 bits, the lower half first.
fn long(value: u64, to: &mut Vec<u8>) {
    to.extend((value as u32).to_be_bytes());
    to.extend(((value >> 32) as u32).to_be_bytes());
}

struct Elog {
    types: Vec<(&'static str, &'static str, Vec<&'static str>)>,
    tracks: Vec<&'static str>,
    strings: &'static [u8],
    /// Type, track, seconds, arguments.
    events: Vec<(u16, u16, f64, Vec<u8>)>,
    begin: u64,
}

impl Elog {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = b"\0\0\0\x07elog v0\0\0\x10\0".to_vec();
        for moment in [self.begin + 5_000_000_000, 15_000, self.begin, 0] {
            long(moment, &mut bytes);
        }
        bytes.extend((self.types.len() as u32).to_be_bytes());
        for (number, (format, arguments, labels)) in (1u32..).zip(&self.types) {
            string(format, &mut bytes);
            string(arguments, &mut bytes);
            bytes.extend(number.to_be_bytes());
            bytes.extend((labels.len() as u32).to_be_bytes());
            labels.iter().for_each(|label| string(label, &mut bytes));
        }
        bytes.extend((self.tracks.len() as u32).to_be_bytes());
        self.tracks
            .iter()
            .for_each(|track| string(track, &mut bytes));
        bytes.extend((self.strings.len() as u32).to_be_bytes());
        bytes.extend(self.strings);
        bytes.extend((self.events.len() as u32).to_be_bytes());
        for (kind, track, seconds, arguments) in &self.events {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(track.to_be_bytes());
            long(seconds.to_bits(), &mut bytes);
            bytes.extend(arguments);
        }
        bytes
    }
}

/// A file with all kinds of arguments.
fn sample() -> Elog {
    let mut float = 2.5f32.to_be_bytes().to_vec();
    long((-0.125f64).to_bits(), &mut float);
    let mut wide = Vec::new();
    long(u64::MAX - 1, &mut wide);
    wide.extend([0x12, 0x34, 7]);
    let mut named = vec![1, 0, 0, 0, 4];
    string("inline", &mut named);
    Elog {
        types: vec![
            ("rx(%d): %u", "i4i4", vec![]),
            ("wide %lld %x %d", "i8i2i1", vec![]),
            ("float %.2f %f", "f4f8", vec![]),
            ("name %s %s %s", "t1T4s16", vec!["RED", "GREEN"]),
            ("rx again", "", vec![]),
            ("%s alone", "T1", vec![]),
        ],
        tracks: vec!["default", "worker b", "worker a"],
        strings: b"one\0two\0",
        events: vec![
            (0, 1, 0.5, vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9]),
            (1, 2, 0.500000001, wide),
            (2, 1, 0.75, float),
            (3, 2, 1.0, named),
            (4, 1, 1.25, vec![]),
            (5, 2, 1.5, vec![0]),
        ],
        begin: 1_454_621_020_000_000_000,
    }
}

/// Shows the fields of an event.
struct Fields(String);

impl Visitor for Fields {
    fn uint(&mut self, _field: FieldId, value: u64) {
        let _ = write!(self.0, " {value}");
    }

    fn sint(&mut self, _field: FieldId, value: i64) {
        let _ = write!(self.0, " {value:+}");
    }

    fn float(&mut self, _field: FieldId, value: f64) {
        let _ = write!(self.0, " {value:?}");
    }

    fn text(&mut self, _field: FieldId, text: &[u8]) {
        let _ = write!(self.0, " `{}`", text.escape_ascii());
    }
}

fn events<R: kymo_model::Recording>(recording: &R) -> Vec<String> {
    let mut events = Vec::new();
    for stream in 0..recording.streams().len() {
        for chunk in recording.chunks(stream) {
            let mut cursor = recording.cursor(&chunk);
            while let Some(event) = cursor.next_event().unwrap() {
                let time = event.timestamp().map_or(-1, |time| time.as_nanos());
                let name = event.class().name.as_deref().unwrap();
                let mut fields = Fields(format!("{time} {name}"));
                event.visit(&mut fields).unwrap();
                events.push(fields.0);
            }
        }
    }
    events
}

fn open(bytes: &[u8]) -> Recording {
    let bytes = Bytes::from(bytes.to_vec());
    Recording::new(Path::new("dir/log.elog"), bytes).unwrap()
}

#[test]
fn all_kinds_of_arguments() {
    let bytes = sample().to_bytes();
    assert_eq!(probe(&bytes), Some(Likeness::Whole(Kind::Elog)));
    let recording = open(&bytes);
    assert_eq!(recording.faults(), []);
    assert_eq!((recording.name(), recording.events()), (Some("log"), 6));
    assert_eq!(
        events(&recording),
        [
            "1454621020500000000 rx 1 `worker b` -1 9 `rx(-1): 9`",
            "1454621020500000001 wide 2 `worker a` -2 4660 +7 `wide -2 1234 7`",
            "1454621020750000000 float 1 `worker b` 2.5 -0.125 `float 2.50 -0.125000`",
            "1454621021000000000 name 2 `worker a` 1 `two` `inline` `name GREEN two inline`",
            "1454621021250000000 rx 1 `worker b` `rx again`",
            "1454621021500000000 %s alone 2 `worker a` `one` `one alone`",
        ]
    );
    let chunk = recording.chunk(0, 0).unwrap();
    let time = |time: Option<kymo_time::Timestamp>| time.unwrap().as_nanos();
    assert_eq!(time(chunk.begin_time), 1_454_621_020_500_000_000);
    assert_eq!(time(chunk.end_time), 1_454_621_021_500_000_000);
    assert_eq!((recording.chunk_count(0), recording.chunk(0, 1)), (1, None));
}

#[test]
fn later_files_count_from_2017() {
    let mut sample = sample();
    sample.begin = 1_000_000_000;
    let recording = open(&sample.to_bytes());
    assert!(events(&recording)[0].starts_with("1490885109500000000 rx "));
}

#[test]
fn what_is_there_of_a_damaged_file_is_read() {
    let bytes = sample().to_bytes();
    let whole = events(&open(&bytes));
    for len in 0..bytes.len() {
        let cut = Bytes::from(bytes[..len].to_vec());
        let Ok(recording) = Recording::new(Path::new("x"), cut) else {
            continue;
        };
        assert_eq!(recording.faults().len(), 1, "{len}");
        let found = events(&recording);
        assert_eq!(found, whole[..found.len()]);
    }
    let mut longer = bytes.clone();
    longer.push(0);
    let recording = open(&longer);
    assert_eq!(
        recording.faults()[0].message,
        "1 bytes after the last event"
    );
    assert_eq!(events(&recording), whole);
    let mut sample = sample();
    sample.events[1].1 = 3;
    sample.events[2].2 = f64::NAN;
    sample.events[3].0 = 6;
    let recording = open(&sample.to_bytes());
    let messages: Vec<_> = recording
        .faults()
        .iter()
        .map(|fault| &*fault.message)
        .collect();
    assert_eq!(
        messages,
        [
            "event 3 of 6: there is no type 6 of events; it and all after it are lost",
            "the time of event 2 is none",
            "event 1 is on track 3, which has no name",
        ]
    );
    assert_eq!(events(&recording).len(), 3);
    let error = Recording::new(Path::new("x"), Bytes::from(bytes[..70].to_vec()));
    assert_eq!(
        error.unwrap_err().to_string(),
        "offset 67: the file ends within type 0, which begins here"
    );
}

#[test]
fn a_cpel_file_of_it() {
    let bytes = sample().to_bytes();
    let mut cpel = Vec::new();
    let converted = cpel_of_elog(&bytes, write::Options::default()).unwrap();
    assert_eq!((converted.untimed, converted.early), (0, 0));
    converted.builder.write(&mut cpel).unwrap();
    let recording = Cpel::new(Path::new("x.cpel"), Bytes::from(cpel), &Options::default()).unwrap();
    assert_eq!(recording.faults(), []);
    let found: Vec<_> = events(&recording)
        .into_iter()
        // The offsets of strings are of no interest.
        .map(|event| {
            let (before, text) = event.rsplit_once(" `").unwrap();
            let (before, _) = before.rsplit_once(' ').unwrap();
            format!("{before} `{text}")
        })
        .collect();
    assert_eq!(
        found,
        [
            "0 rx 1 `worker b` `-1): 9`",
            // Rounded down, as VPP does: the difference is a little less than a nanosecond.
            "0 wide 0 `worker a` `-2 1234 7`",
            "250000000 float 1 `worker b` `2.50 -0.125000`",
            "500000000 name 0 `worker a` `GREEN two inline`",
            "750000000 rx 1 `worker b` `again`",
            "1000000000  0 `worker a` `one alone`",
        ]
    );
}

#[test]
fn times_that_are_none_do_not_touch_the_others() {
    let mut elog = sample();
    elog.events = [f64::NAN, 5.0, 3.0, f64::INFINITY, 5.5, 1e300]
        .map(|seconds| (4, 1, seconds, vec![]))
        .into();
    let converted = cpel_of_elog(&elog.to_bytes(), write::Options::default()).unwrap();
    assert_eq!((converted.untimed, converted.early), (3, 1));
    let mut cpel = Vec::new();
    converted.builder.write(&mut cpel).unwrap();
    let recording = Cpel::new(Path::new("x.cpel"), Bytes::from(cpel), &Options::default()).unwrap();
    let times: Vec<_> = events(&recording)
        .iter()
        .map(|event| event.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(times, ["0", "0", "0", "0", "500000000", "500000000"]);
}

/// VPP's own reader takes them so, and each event has the time that its seconds give.
#[test]
fn events_before_the_beginning_have_their_times() {
    let mut elog = sample();
    elog.events = [0.5, -0.25, f64::NAN, -1.5, 2.0]
        .map(|seconds| (4, 1, seconds, vec![]))
        .into();
    let mut recording = open(&elog.to_bytes());
    let times = |log: &Recording| -> Vec<_> {
        let events = events(log);
        let time = |event: &String| event.split(' ').next().unwrap().to_owned();
        events.iter().map(time).collect()
    };
    let reported = times(&recording);
    assert_eq!(reported[0], "1454621020500000000");
    assert_eq!(reported[1], "1454621019750000000");
    assert_eq!(reported[3], "1454621018500000000");
    assert_eq!(reported[4], "1454621022000000000");
    let messages: Vec<_> = recording
        .faults()
        .iter()
        .map(|fault| &*fault.message)
        .collect();
    assert_eq!(messages, ["the time of event 2 is none"]);
    let shift = Shift {
        nanos: 1,
        from_unix_epoch: false,
    };
    recording.shift(shift).unwrap();
    assert_eq!(times(&recording)[3], "1454621018500000001");
}

#[test]
fn a_begin_that_is_no_time_is_reported() {
    let elog = Elog {
        begin: 1 << 63,
        ..sample()
    };
    let bytes = Bytes::from(elog.to_bytes());
    let recording = Recording::new(Path::new("x"), bytes).unwrap();
    let reported: Vec<_> = recording
        .faults()
        .iter()
        .map(|fault| (fault.offset, &*fault.message))
        .collect();
    let begin = "recording began 9223372036854775808 ns after 1970, which is later than 63 bits can hold: the times of its events are wrong";
    assert_eq!(reported.last(), Some(&(31, begin)));
    assert_eq!(reported[0].1, "the time of event 0 is none");
    assert!(
        events(&recording)
            .iter()
            .all(|event| event.starts_with("-1 "))
    );
}

/// An argument and a value that it holds whole.
fn argument() -> impl Strategy<Value = (Argument, Held)> {
    use ArgumentKind::{Float, Integer, Label, String as Inline};
    let argument = |kind, size| Argument { kind, size };
    let bits = |size: u8| any::<u64>().prop_map(move |value| value >> (64 - u32::from(size) * 8));
    let integer = prop::sample::select(vec![1u8, 2, 4, 8]).prop_flat_map(move |size| {
        let kind = prop::sample::select(vec![Integer, Label]);
        (kind, bits(size))
            .prop_map(move |(kind, value)| (argument(kind, size), Held::Integer(value)))
    });
    let short = any::<f32>().prop_map(move |value| (argument(Float, 4), Held::Float(value.into())));
    let long = any::<f64>().prop_map(move |value| (argument(Float, 8), Held::Float(value)));
    let inline = prop::collection::vec(1u8..=255, 0..200);
    let inline = inline.prop_map(move |text| (argument(Inline, 20), Held::Text(text)));
    let table = prop::collection::vec(1u8..=255, 1..20);
    let table = table.prop_map(move |text| (argument(ArgumentKind::Table, 4), Held::Text(text)));
    prop_oneof![integer, short, long, inline, table]
}

/// A value of an argument.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Integer(u64),
    Float(f64),
    Text(Vec<u8>),
}

/// The values of arguments.
#[derive(Default)]
struct Values(Vec<Held>);

impl Visitor for Values {
    fn uint(&mut self, _: FieldId, value: u64) {
        self.0.push(Held::Integer(value));
    }

    fn float(&mut self, _: FieldId, value: f64) {
        self.0.push(Held::Float(value));
    }

    fn text(&mut self, _: FieldId, value: &[u8]) {
        self.0.push(Held::Text(value.to_vec()));
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        events in prop::collection::vec((prop::collection::vec(argument(), 0..5), 0u64..1 << 51), 0..20),
        begin in 1_000_000_000_000_000_000u64..4_000_000_000_000_000_000,
    ) {
        let mut builder = Builder::new(1 << 20);
        let track = builder.track(b"track").unwrap();
        for (arguments, nanos) in &events {
            let kinds: Vec<_> = arguments.iter().map(|(argument, _)| *argument).collect();
            let kind = builder.event_type(b"event", &kinds, &[]).unwrap();
            let mut values = Vec::new();
            for (argument, held) in arguments {
                values.push(match held {
                    Held::Integer(value) => Value::Integer(*value),
                    Held::Float(value) => Value::Float(*value),
                    Held::Text(text) if argument.kind == ArgumentKind::Table => {
                        Value::Integer(builder.string(text).unwrap().into())
                    }
                    Held::Text(text) => Value::Text(text),
                });
            }
            builder.push(kind, track, *nanos, &values).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write(Moment::of_unix_nanos(begin), &mut bytes).unwrap();
        let log = Recording::new(Path::new("log"), Bytes::from(bytes)).unwrap();
        prop_assert_eq!(log.faults(), &[]);
        prop_assert_eq!(log.events(), events.len() as u64);
        let mut in_order: Vec<_> = events.iter().collect();
        in_order.sort_by_key(|(_, nanos)| *nanos);
        if let Some(chunk) = log.chunk(0, 0) {
            let mut cursor = log.cursor(&chunk);
            for (arguments, nanos) in in_order {
                let event = cursor.next_event().unwrap().unwrap();
                let time = event.timestamp().map(|time| time.as_nanos());
                prop_assert_eq!(time, Some((begin + nanos) as i64));
                let mut values = Values::default();
                event.visit(&mut values).unwrap();
                // The track and its name come before them, the text behind them.
                let read = &values.0[2..values.0.len() - 1];
                for ((_, held), read) in arguments.iter().zip(read) {
                    match (held, read) {
                        (Held::Float(held), Held::Float(read)) => {
                            prop_assert_eq!(held.to_bits(), read.to_bits());
                        }
                        _ => prop_assert_eq!(held, read),
                    }
                }
                prop_assert_eq!(read.len(), arguments.len());
            }
        }
    }
}
