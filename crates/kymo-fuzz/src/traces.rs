//! Traces of Perfetto and Chrome.

use std::path::Path;

use kymo_model::{Cursor, Event, FieldId, Recording as _, TrackRule, Visitor};
use kymo_perfetto::{Form, Recording, probe};

/// The longest text of an event.
const MOST_TEXT: usize = 5 << 20;

/// A file of a given format: its events match the reported number, are in order, on existing tracks, with
/// values that are of the kind their fields are; and the same when it is read again.
pub(crate) fn trace(data: &[u8], form: Form) {
    let path = Path::new("x");
    let _ = probe(data, path);
    let open = || Recording::from_form(path, data, form);
    let recording = open().expect("so little is sorted in memory");
    for fault in recording.faults() {
        assert!(!fault.to_string().is_empty() && fault.offset <= data.len() as u64);
    }
    assert!(recording.faults().len() <= 100 && recording.notes().len() <= 5000);
    let digest = walk(&recording);
    assert_eq!(digest.events, recording.events());
    let again = open().expect("it was opened before");
    assert_eq!(walk(&again), digest);
    cut(&recording, data);
}

/// A part of the file: with all events it is the file, and events that are chosen come back.
fn cut(recording: &Recording, data: &[u8]) {
    let part = |stays: &dyn Fn(usize, u64) -> bool| {
        let mut part = Vec::new();
        let written = recording.write_cut(data, stays, &mut part);
        written.expect("memory takes all");
        part
    };
    if recording.faults().is_empty() {
        assert!(part(&|_, _| true) == data, "all of a file is the file");
    }
    for step in [2, 3] {
        let stays = |_, number: u64| number % step == 1;
        let mut chosen = 0;
        for chunk in recording.chunks(0) {
            let mut cursor = recording.cursor(&chunk);
            while let Some(event) = cursor.next_event().expect("what was written is whole") {
                chosen += u64::from(stays(chunk.number, event.number()));
            }
        }
        let part = part(&stays);
        let found = Recording::from_form(Path::new("x"), &part, recording.form());
        let found = found.expect("so little is sorted in memory");
        assert!(found.events() >= chosen, "what was chosen is there");
    }
}

/// What a recording says, summed up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Digest {
    events: u64,
    sum: u64,
    open: Vec<FieldId>,
    /// Where the last value was, in bits.
    at: u64,
    track: Option<u64>,
}

impl Digest {
    fn add(&mut self, field: FieldId, value: u64) {
        let mixed = (self.sum ^ value ^ u64::from(field.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.sum = mixed.rotate_left(29);
    }

    fn end(&mut self, field: FieldId) {
        assert_eq!(self.open.pop(), Some(field), "what began last ends first");
    }
}

impl Visitor for Digest {
    const POSITIONS: bool = true;

    fn at(&mut self, bit: u64) {
        self.at = bit;
    }

    fn after(&mut self, bit: u64) {
        assert!(self.at <= bit, "a value ends behind its beginning");
    }

    fn uint(&mut self, field: FieldId, value: u64) {
        self.track.get_or_insert(value);
        self.add(field, value);
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        self.add(field, value as u64);
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.add(field, value.to_bits());
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        self.add(field, value.into());
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        assert!(text.len() <= MOST_TEXT, "texts are bounded");
        self.add(field, text.len() as u64);
        for &byte in text.iter().take(64) {
            self.add(field, byte.into());
        }
    }

    fn begin_struct(&mut self, field: FieldId) {
        self.open.push(field);
    }

    fn end_struct(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.add(field, length);
        self.open.push(field);
    }

    fn end_array(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_optional(&mut self, field: FieldId, _present: bool, _selector: u64) {
        self.open.push(field);
    }

    fn end_optional(&mut self, field: FieldId) {
        self.end(field);
    }
}

/// Goes through all events.
fn walk(recording: &Recording) -> Digest {
    let mut digest = Digest::default();
    let mut last = None;
    for chunk in recording.chunks(0) {
        let mut cursor = recording.cursor(&chunk);
        while let Some(event) = cursor.next_event().expect("what was written is whole") {
            digest.events += 1;
            let (time, ticks) = (event.timestamp(), event.ticks());
            assert!(last <= ticks, "events are in the order of time");
            last = ticks;
            assert!(ticks <= chunk.end && (ticks.is_some() || time.is_none()));
            assert!(event.begin_bit() < chunk.bytes * 8);
            let class = event.class_index();
            assert_eq!(recording.event_classes()[class].id, event.class().id);
            digest.track = None;
            event.visit(&mut digest).expect("what was written is whole");
            assert!(digest.open.is_empty(), "what begins ends");
            // The first number is that of the track.
            let rule = recording.track_rule(class);
            assert!(matches!(rule, TrackRule::Position(_)));
            let track = digest.track.expect("every event has a track");
            assert!(track < recording.tracks().len() as u64);
            let time = time.map_or(0, |time| time.as_nanos());
            digest.add(FieldId(0), time as u64);
        }
    }
    digest
}
