//! Files of which each has one ambiguity or one kind of damage.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kymo_cpel::file;
use kymo_cpel::probe::{Kind, Likeness, probe};
use kymo_cpel::recording::{Options, Recording};
use kymo_io::{Access, Bytes};
use kymo_model::{Cursor, Event, FieldId, Recording as _, Visitor};

/// Events of each stream that are shown.
const SHOWN: usize = 6;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Shows the fields of an event.
#[derive(Default)]
struct Fields(String);

impl Visitor for Fields {
    fn uint(&mut self, _field: FieldId, value: u64) {
        let _ = write!(self.0, " {value}");
    }

    fn text(&mut self, _field: FieldId, text: &[u8]) {
        let _ = write!(self.0, " `{}`", text.escape_ascii());
    }
}

/// All events of a stream: times, classes, fields.
fn events(recording: &Recording, stream: usize) -> Vec<String> {
    let mut events = Vec::new();
    for chunk in recording.chunks(stream) {
        let mut cursor = recording.cursor(&chunk);
        while let Some(event) = cursor.next_event().unwrap() {
            let time = event.timestamp().map_or(-1, |time| time.as_nanos());
            let class = event.class();
            let name = class.name.as_deref().unwrap();
            let mut fields = Fields(format!("{time} {name}={}", class.id));
            event.visit(&mut fields).unwrap();
            events.push(fields.0);
        }
    }
    events
}

fn open(name: &str) -> Result<Recording, file::Error> {
    let path = data().join(name);
    let bytes = Bytes::open(&path, Access::Random).unwrap();
    Recording::new(&path, bytes, &Options::default())
}

fn show(name: &str) -> String {
    let bytes = Bytes::open(&data().join(name), Access::Random).unwrap();
    let mut text = format!("{name}: {:?}\n", probe(&bytes));
    let recording = match open(name) {
        Ok(recording) => recording,
        Err(error) => return text + &format!("  refused: {error}\n"),
    };
    for note in recording.notes() {
        let _ = writeln!(text, "  note: {note}");
    }
    for fault in recording.faults() {
        let _ = writeln!(
            text,
            "  {} at {}: {}",
            fault.code, fault.offset, fault.message
        );
    }
    for stream in 0..recording.streams().len() {
        let events = events(&recording, stream);
        let sorted = if recording.is_sorted(stream) {
            ""
        } else {
            ", not sorted"
        };
        let _ = writeln!(text, "  stream {stream}: {} events{sorted}", events.len());
        for event in events.iter().take(SHOWN) {
            let _ = writeln!(text, "    {event}");
        }
    }
    text
}

#[test]
fn each_variant_says_what_it_means() {
    let mut names: Vec<_> = std::fs::read_dir(data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".cpel"))
        .collect();
    names.sort();
    let text: String = names.iter().map(|name| show(name)).collect();
    insta::assert_snapshot!(text);
}

#[test]
fn both_byte_orders_say_the_same() {
    let big = open("be_basic.cpel").unwrap();
    let little = open("le_basic.cpel").unwrap();
    assert_ne!(big.byte_order(), little.byte_order());
    let expected = events(&big, 0);
    assert_eq!(expected.len(), 200);
    assert_eq!(events(&little, 0), expected);
    assert_eq!(events(&open("order_reversed.cpel").unwrap(), 0), expected);
    assert_eq!(events(&open("type0_section.cpel").unwrap(), 0), expected);
}

#[test]
fn a_gist_file_has_neither_names_nor_a_clock() {
    let path = data().join("gist_200.gist");
    let read = || Bytes::open(&path, Access::Random).unwrap();
    assert_eq!(probe(&read()), Some(Likeness::Whole(Kind::Gist)));
    let recording = Recording::gist(&path, read(), &Options::default()).unwrap();
    assert_eq!((recording.events(), recording.faults()), (200, &[][..]));
    assert_eq!(recording.notes().len(), 1);
    // It has the events of the CPEL file, without what they mean.
    let first = &events(&recording, 0)[0];
    assert_eq!(first, "1000009305 E5=5 0 `0` 867 ``");
    let options = Options {
        clock: "1000000".parse().unwrap(),
        ..Options::default()
    };
    let recording = Recording::gist(&path, read(), &options).unwrap();
    assert!(recording.notes().is_empty());
    assert!(events(&recording, 0)[0].starts_with("1000009305000 E5=5 "));
    let longer = Bytes::from([&read()[..], &[0]].concat());
    let error = Recording::gist(&path, longer, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("4005 bytes"));
}
