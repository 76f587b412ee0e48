//! Event logs.

use std::path::Path;

use kymo_cpel::ClockChoice;
use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::entries::ENTRY_SIZE;
use kymo_cpel::file::File;
use kymo_cpel::json;
use kymo_cpel::probe::{Kind, Likeness, probe};
use kymo_cpel::recording::{Options, Recording as Cpel};
use kymo_cpel::rewrite::rewrite;
use kymo_cpel::write;
use kymo_io::Bytes;
use kymo_machine::ByteOrder;
use kymo_model::{Cursor, Event, FaultCode, FaultReport, FieldId, Recording, Visitor};

/// The longest text of an event.
const MOST_TEXT: usize = (64 << 10) + 100;

/// A CPEL file: the number of events matches the sections, they are in order, and the same in the other
/// byte order; a whole file is copied byte for byte.
pub(crate) fn cpel(data: &[u8]) {
    let _ = probe(data);
    // The same bytes as JSON lines: what is made of them is a file.
    if let Ok(made) = json::read(data) {
        let file = File::open(&made).expect("what was made");
        assert!(made.len() <= 2 * data.len() + 8 && file.findings.is_empty());
    }
    let recording = Cpel::new(Path::new("x"), bytes(data), &Options::default());
    let file = match File::open(data) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty() && recording.is_err());
            return;
        }
    };
    let recording = recording.expect("it has a header");
    let digest = walk(&recording, true);
    assert_eq!(digest.events, recording.events());
    let other = match file.header.order {
        ByteOrder::Big => ByteOrder::Little,
        ByteOrder::Little => ByteOrder::Big,
    };
    let copy = |file: &File<'_>, order| {
        let mut copy = Vec::new();
        rewrite(file, order, &mut copy).expect("memory takes all");
        copy
    };
    let same = copy(&file, file.header.order);
    let swapped = copy(&file, other);
    let again = File::open(&swapped).expect("what was written");
    assert!(again.findings.is_empty(), "a copy has no damage");
    assert_eq!(copy(&again, file.header.order), same);
    assert!(!file.findings.is_empty() || same == data);
    let twin = Cpel::new(Path::new("x"), bytes(&swapped), &Options::default());
    assert_eq!(walk(&twin.expect("what was written"), true), digest);
}

/// An elog file: the number of events matches those that can be read, and that of the CPEL file made from it.
pub(crate) fn elog(data: &[u8]) {
    let data = &[b"\0\0\0\x07elog v0", data].concat()[..];
    assert_eq!(probe(data), Some(Likeness::Whole(Kind::Elog)));
    let converted = cpel_of_elog(data, write::Options::default());
    let recording = match Elog::new(Path::new("x"), bytes(data)) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(!error.to_string().is_empty() && converted.is_err());
            return;
        }
    };
    assert_eq!(walk(&recording, false).events, recording.events());
    let mut cpel = Vec::new();
    let converted = converted.expect("it was opened").builder.write(&mut cpel);
    converted.expect("memory takes all");
    let cpel = Cpel::new(Path::new("x"), bytes(&cpel), &Options::default());
    let cpel = cpel.expect("what was written");
    // Any double may be the time of an event.
    let late = |fault: &FaultReport| fault.code == FaultCode::TimeRange;
    assert!(cpel.faults().iter().all(late));
    assert_eq!(walk(&cpel, true).events, recording.events());
}

/// The events of a Gist file: as many as there is room for.
pub(crate) fn gist(data: &[u8]) {
    let count = data.len() / ENTRY_SIZE;
    let file = [
        &(count as u32).to_be_bytes()[..],
        &data[..count * ENTRY_SIZE],
    ]
    .concat();
    let clocks = [ClockChoice::Auto, ClockChoice::PerSecond];
    for clock in clocks.into_iter().chain("3".parse()) {
        let options = Options {
            clock,
            ..Options::default()
        };
        match Cpel::gist(Path::new("x"), bytes(&file), &options) {
            Ok(recording) => assert_eq!(walk(&recording, true).events, count as u64),
            Err(_) => assert_eq!(count, 0),
        }
    }
    let _ = Cpel::gist(Path::new("x"), bytes(data), &Options::default());
}

fn bytes(data: &[u8]) -> Bytes {
    Bytes::from(data.to_vec())
}

/// What a recording says, summed up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Digest {
    events: u64,
    sum: u64,
}

impl Digest {
    fn add(&mut self, value: u64) {
        let mixed = (self.sum ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.sum = mixed.rotate_left(29);
    }
}

impl Visitor for Digest {
    const POSITIONS: bool = true;

    fn uint(&mut self, field: FieldId, value: u64) {
        self.add(value ^ u64::from(field.0));
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        self.uint(field, value as u64);
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.uint(field, value.to_bits());
    }

    fn text(&mut self, _field: FieldId, text: &[u8]) {
        assert!(text.len() <= MOST_TEXT, "texts are bounded");
        self.add(text.len() as u64);
        text.iter().take(64).for_each(|&byte| self.add(byte.into()));
    }
}

/// Goes through all events; those of a stream may have to be in order.
fn walk<R: Recording>(recording: &R, sorted: bool) -> Digest {
    let mut digest = Digest::default();
    for fault in recording.faults() {
        assert!(!fault.to_string().is_empty());
    }
    for stream in 0..recording.streams().len() {
        let mut last = 0;
        for chunk in recording.chunks(stream) {
            let mut cursor = recording.cursor(&chunk);
            while let Some(event) = cursor.next_event().expect("what was opened is whole") {
                digest.events += 1;
                let ticks = event.ticks();
                assert!(!sorted || ticks.is_some_and(|ticks| last <= ticks));
                last = ticks.unwrap_or(last);
                let time = event.timestamp();
                let is_in = |begin: Option<_>, end: Option<_>| begin <= time && time <= end;
                assert!(
                    !sorted
                        || time.is_none()
                        || chunk.end_time.is_none()
                        || is_in(chunk.begin_time, chunk.end_time)
                );
                digest.add(ticks.unwrap_or(u64::MAX));
                digest.add(event.class().id);
                assert!(event.class_index() < recording.event_classes().len());
                assert!(event.begin_bit() < chunk.bytes * 8);
                event.visit(&mut digest).expect("what was opened is whole");
            }
        }
    }
    digest
}
