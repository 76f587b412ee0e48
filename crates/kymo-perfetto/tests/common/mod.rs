//! A recording as text.

use std::fmt::Write;
use std::path::Path;

use kymo_model::{
    Cursor, Event, FieldId, Kind, Recording as _, Schema, SliceRole, TrackRule, Visitor,
};
use kymo_perfetto::Recording;

pub(crate) fn open(name: &str, bytes: &[u8]) -> Recording {
    Recording::from_bytes(Path::new(name), bytes).expect("a trace")
}

/// Values with the names of their fields.
struct Shown<'a> {
    schema: &'a Schema,
    text: String,
}

impl Shown<'_> {
    fn value(&mut self, field: FieldId, value: impl std::fmt::Display) {
        let kind = &self.schema.field(field).kind;
        let mut named = field;
        // What an optional or an array holds goes by its name.
        while self.schema.field(named).name.is_none() {
            named = self.schema.field(named).parent.unwrap();
        }
        let name = self.schema.field(named).name.as_ref().unwrap();
        let kind = match kind {
            Kind::Uint {
                base: kymo_model::Base::Hexadecimal,
                ..
            } => "x",
            Kind::Uint { .. } => "u",
            Kind::Sint { .. } => "i",
            Kind::Float { .. } => "f",
            Kind::Bool { .. } => "b",
            _ => "",
        };
        write!(self.text, " {name}={value}{kind}").unwrap();
    }
}

impl Visitor for Shown<'_> {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.value(field, value);
    }
    fn sint(&mut self, field: FieldId, value: i64) {
        self.value(field, value);
    }
    fn float(&mut self, field: FieldId, value: f64) {
        self.value(field, value);
    }
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.value(field, value);
    }
    fn text(&mut self, field: FieldId, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.value(field, format_args!("{text:?}"));
    }
    fn begin_array(&mut self, _field: FieldId, length: u64) {
        write!(self.text, " [{length}]").unwrap();
    }
}

/// Tracks, a line for each row, faults and notes.
pub(crate) fn text(recording: &Recording) -> String {
    let mut text = String::new();
    let clock = recording.streams()[0].clock.clone().unwrap();
    if clock.offset_seconds != 0 || clock.offset_cycles != 0 {
        let (seconds, cycles) = (clock.offset_seconds, clock.offset_cycles);
        writeln!(text, "CLOCK {:?} {seconds} {cycles}", clock.origin).unwrap();
    }
    for track in recording.tracks() {
        let (kind, unit) = (track.kind.as_str(), track.unit.as_deref().unwrap_or("-"));
        writeln!(text, "TRACK {} ({}): {kind} {unit}", track.path, track.name).unwrap();
    }
    let mut rows = 0;
    for chunk in recording.chunks(0) {
        let mut cursor = recording.cursor(&chunk);
        while let Some(event) = cursor.next_event().expect("no fault") {
            rows += 1;
            let class = event.class();
            let roles = recording.roles(event.class_index());
            let role = match roles.slice {
                SliceRole::Whole(_) => "Whole".to_string(),
                role => format!("{role:?}"),
            };
            let mut shown = Shown {
                schema: &class.schema,
                text: String::new(),
            };
            event.visit(&mut shown).expect("no fault");
            let is_by_position = matches!(
                recording.track_rule(event.class_index()),
                TrackRule::Position(FieldId(1))
            );
            assert!(is_by_position);
            let time = event.timestamp().map(|time| time.as_nanos());
            assert_eq!(
                time,
                event
                    .ticks()
                    .and_then(|ticks| Some(clock.timestamp(ticks)?.as_nanos()))
            );
            let time = time.map_or("-".into(), |time| time.to_string());
            let name = class.name.as_deref().unwrap_or("-");
            let more: Vec<_> = [
                (!roles.counters.is_empty()).then_some("counter"),
                (!roles.flows.is_empty()).then_some("flow"),
                (!roles.ended_flows.is_empty()).then_some("ended-flow"),
            ]
            .into_iter()
            .flatten()
            .collect();
            writeln!(
                text,
                "{time} {name} {role} {}:{}",
                more.join("+"),
                shown.text
            )
            .unwrap();
        }
    }
    assert_eq!(rows, recording.events());
    for fault in recording.faults() {
        writeln!(text, "FAULT {}: {fault}", fault.code).unwrap();
    }
    for note in recording.notes() {
        writeln!(text, "NOTE {note}").unwrap();
    }
    text
}
