//! Reads files whose sections are assembled by hand.

use std::fmt::Write as _;
use std::path::Path;

use kymo_cpel::entries::Entry;
use kymo_cpel::recording::{Options, Recording};
use kymo_io::Bytes;
use kymo_machine::ByteOrder;
use kymo_model::{Cursor, Event, FaultCode, FieldId, Recording as _, Visitor};

/// A big-endian file in the making.
#[derive(Default)]
struct Sections(Vec<(u32, Vec<u8>)>);

impl Sections {
    fn strings(mut self, text: &[u8]) -> Self {
        self.0.push((1, text.to_vec()));
        self
    }

    /// A section that refers to a string table.
    fn table(mut self, kind: u32, name: &[u8], words: &[u32]) -> Self {
        let mut data = name.to_vec();
        data.resize(64, 0);
        data.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        self.0.push((kind, data));
        self
    }

    fn events(self, name: &[u8], clock: u32, entries: &[Entry]) -> Self {
        let mut sections = self.table(5, name, &[entries.len() as u32, clock]);
        let (_, data) = sections.0.last_mut().unwrap();
        data.extend(
            entries
                .iter()
                .flat_map(|entry| entry.to_bytes(ByteOrder::Big)),
        );
        sections
    }

    fn open(&self) -> Recording {
        let mut bytes = vec![1, 0, 0, self.0.len() as u8, 0, 0, 0, 0];
        for (kind, data) in &self.0 {
            bytes.extend(kind.to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(data);
        }
        Recording::new(Path::new("x"), Bytes::from(bytes), &Options::default()).unwrap()
    }
}

fn entry(time: u64, track: u32, code: u32, datum: u32) -> Entry {
    Entry {
        time,
        track,
        code,
        datum,
    }
}

/// Shows the fields of an event.
struct Fields(String);

impl Visitor for Fields {
    fn uint(&mut self, _field: FieldId, value: u64) {
        let _ = write!(self.0, " {value}");
    }

    fn text(&mut self, _field: FieldId, text: &[u8]) {
        let _ = write!(self.0, " `{}`", text.escape_ascii());
    }
}

/// All events: times, classes, fields.
fn events(recording: &Recording) -> Vec<String> {
    let mut events = Vec::new();
    for stream in 0..recording.streams().len() {
        for chunk in recording.chunks(stream) {
            let mut cursor = recording.cursor(&chunk);
            while let Some(event) = cursor.next_event().unwrap() {
                let time = event.timestamp().unwrap().as_nanos();
                let class = event.class();
                let name = class.name.as_deref().unwrap();
                let mut fields = Fields(format!("{time} {name}={}", class.id));
                event.visit(&mut fields).unwrap();
                events.push(fields.0);
            }
        }
    }
    events
}

fn faults(recording: &Recording) -> Vec<(FaultCode, &str)> {
    let faults = recording.faults().iter();
    faults.map(|fault| (fault.code, &*fault.message)).collect()
}

#[test]
fn names_of_tables_fill_their_room() {
    let long = [b'n'; 64];
    let mut strings = long.to_vec();
    strings.extend(b"\0name\0%s!\0worker %d\0");
    let recording = Sections::default()
        .events(&long, 1_000_000_000, &[entry(5, 7, 1, 65)])
        .table(4, &long, &[1, 7, 74])
        .table(3, &long, &[1, 1, 65, 70])
        .strings(&strings)
        .open();
    assert_eq!(faults(&recording), []);
    assert_eq!(events(&recording), ["5 name=1 7 `worker 7` 65 `name!`"]);
    // A name that is longer than its room is another one.
    let recording = Sections::default()
        .strings(&[b'n'; 65])
        .events(&long, 1_000_000_000, &[entry(5, 7, 1, 65)])
        .open();
    let missing = format!("section 1: there is no string table `{}`", "n".repeat(64));
    assert_eq!(faults(&recording), [(FaultCode::StringTable, &*missing)]);
}

#[test]
fn sections_of_all_kinds_add_up() {
    let recording = Sections::default()
        .strings(b"a\0first\0%s\0one\0")
        .strings(b"b\0second\0%s at %k\0two\0")
        .table(2, b"b", &[2, 100, 2, 50, 9])
        .table(2, b"a", &[1, 70, 2])
        .table(3, b"a", &[2, 1, 2, 8, 1, 11, 0])
        .table(3, b"b", &[2, 2, 2, 9, 1, 2, 2])
        .table(4, b"a", &[2, 1, 2, 1, 8])
        // The strings of data are those of the section that the events are in.
        .events(
            b"a",
            1_000_000_000,
            &[entry(1, 1, 1, 11), entry(2, 2, 2, 11)],
        )
        .events(b"b", 500_000_000, &[entry(1, 1, 1, 18), entry(3, 1, 2, 2)])
        .open();
    assert_eq!(
        faults(&recording),
        [
            (
                FaultCode::NotSorted,
                "section 2: the symbols are not sorted by their values"
            ),
            (
                FaultCode::Redefined,
                "section 4: event 1 is defined again: its first definition counts"
            ),
            (
                FaultCode::Redefined,
                "section 5: event 1 is defined again: its first definition counts"
            ),
            (
                FaultCode::Redefined,
                "section 6: track 1 is defined again: its first definition counts"
            ),
        ]
    );
    assert_eq!(
        events(&recording),
        [
            "1 first=1 1 `first` 11 `one`",
            "2 second=2 2 `2` 11 `one at 0x0000000b`",
            "2 first=1 1 `first` 18 `two`",
            "6 second=2 1 `first` 2 `second at 0x00000002`",
        ]
    );
    let values: Vec<u32> = recording
        .definitions()
        .symbols
        .iter()
        .map(|one| one.value)
        .collect();
    assert_eq!(values, [50, 70, 100]);
}

#[test]
fn codes_that_are_not_defined_have_classes_up_to_a_limit() {
    let entries: Vec<Entry> = (0..65_540)
        .map(|n| entry(n, 0, n as u32 * 3 + 60_000, 0))
        .collect();
    let recording = Sections::default()
        .strings(b"t\0")
        .events(b"t", 1_000_000_000, &entries)
        .open();
    assert_eq!(recording.event_classes().len(), 65_537);
    let events = events(&recording);
    assert_eq!(events.len(), entries.len());
    assert_eq!(events[0], "0 E60000=60000 0 `0` 0 ``");
    assert_eq!(events[65_535], "65535 E256605=256605 0 `0` 0 ``");
    assert_eq!(events[65_536], "65536 E%d=4294967296 0 `0` 0 `` 256608");
    assert_eq!(events[65_539], "65539 E%d=4294967296 0 `0` 0 `` 256617");
}

#[test]
fn chunks_of_unsorted_sections_are_in_order() {
    let count = 150_000u64;
    // Each time twice, far from each other.
    let times = (0..count).map(|n| (n * 77_773) % (count / 2));
    let entries: Vec<Entry> = times
        .enumerate()
        .map(|(n, time)| entry(time, n as u32, 1, 0))
        .collect();
    let recording = Sections::default()
        .strings(b"t\0")
        .events(b"t", 1_000_000_000, &entries)
        .open();
    assert!(!recording.is_sorted(0));
    assert_eq!(recording.chunk_count(0), 3);
    let mut expected = entries.clone();
    expected.sort_by_key(|entry| entry.time);
    let mut found = Vec::new();
    for chunk in recording.chunks(0) {
        let first = found.len();
        let mut cursor = recording.cursor(&chunk);
        while let Some(event) = cursor.next_event().unwrap() {
            assert_eq!(event.number() as usize, found.len() - first);
            found.push(event.entry());
        }
        let times = (found.get(first).unwrap().time, found.last().unwrap().time);
        assert_eq!((chunk.begin, chunk.end), (Some(times.0), Some(times.1)));
        assert_eq!(chunk.bytes, (found.len() - first) as u64 * 20);
    }
    assert_eq!(found, expected);
    assert_eq!(recording.chunk(0, 3), None);
}

#[test]
fn times_beyond_the_line_are_none() {
    let recording = Sections::default()
        .strings(b"t\0")
        .events(
            b"t",
            100_000,
            &[entry(1, 0, 1, 0), entry(u64::MAX, 0, 1, 0)],
        )
        .open();
    assert_eq!(recording.faults()[0].code, FaultCode::TimeRange);
    let chunk = recording.chunk(0, 0).unwrap();
    assert_eq!((chunk.end, chunk.end_time), (Some(u64::MAX), None));
    let mut cursor = recording.cursor(&chunk);
    let first = cursor.next_event().unwrap().unwrap();
    assert_eq!(first.timestamp().unwrap().as_nanos(), 10_000);
    let second = cursor.next_event().unwrap().unwrap();
    assert_eq!((second.ticks(), second.timestamp()), (Some(u64::MAX), None));
}
