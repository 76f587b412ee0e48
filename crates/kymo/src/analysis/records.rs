//! Every duration, written with the fields of the events that begin and end it.

use std::collections::BTreeMap;
use std::io;

use kymo_model::{Kind, Recording, Scope};
use kymo_text::Line;

use super::breakdown::{LineFormat, Span, Write};
use super::group::{GroupBy, GroupValue, Groups, by_json};
use super::pending::Pending;
use super::run::{BEGINS, ENDS, Occurrence, Role, WHOLE};
use super::series::csv_line;
use super::tracks::track;
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::report::Json;
use crate::tracks::{Key, RowKey, TrackTable};

/// Beginnings whose fields are kept until their ends come: at least half of so many.
const MOST_STARTS: usize = 1 << 19;
/// Fields of events that are written.
const MOST_FIELDS: usize = 2000;

/// Values of an event, by the positions of their fields.
type Fields = Vec<(u32, Key)>;

/// What is known of a beginning.
#[derive(Debug, Default)]
struct Start {
    group: u32,
    fields: Fields,
}

/// Writes every duration.
pub(super) struct Records<'w> {
    format: LineFormat,
    write: Write<'w>,
    /// Names of all fields.
    fields: Vec<String>,
    /// Fields of events that begin something and of those that end it, which have columns.
    columns: (Vec<u32>, Vec<u32>),
    starts: Pending<u32, Start>,
    next: u32,
    /// The fields of the event that ends what is added next.
    ending: Fields,
    pending: Vec<(Span, Start, Fields)>,
    line: Line,
    has_header: bool,
}

impl<'w> Records<'w> {
    pub(super) fn new(format: LineFormat, write: Write<'w>) -> Self {
        Self {
            format,
            write,
            fields: Vec::new(),
            columns: Default::default(),
            starts: Pending::new(MOST_STARTS),
            next: 0,
            ending: Vec::new(),
            pending: Vec::new(),
            line: Line::new(),
            has_header: false,
        }
    }

    /// Finds the fields of the events that begin and end something.
    pub(super) fn find_fields(
        &mut self,
        by: &GroupBy,
        recordings: &[AnyRecording],
        roles: &[Vec<Option<Role>>],
    ) -> Vec<FieldNames> {
        let mut found: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        for (recording, roles) in recordings.iter().zip(roles) {
            let of_packets = packet_names(recording);
            let classes = recording.event_classes().iter().zip(roles);
            for (class, role) in classes.filter_map(|(class, role)| Some((class, (*role)?))) {
                let is_end = role & ENDS != 0;
                let is_begin = role & (BEGINS | WHOLE) != 0 || !is_end;
                for name in names(&class.schema).into_iter().chain(of_packets.clone()) {
                    let is_grouped = by.titles().any(|title| title == name);
                    let known = found.entry(name).or_insert_with_key(|name| {
                        order.push(name.clone());
                        (false, false)
                    });
                    // What groups are made by has a column already.
                    known.0 |= is_begin && !is_grouped;
                    known.1 |= is_end;
                }
            }
        }
        let mut all = Vec::new();
        for name in order {
            let (begins, ends) = found[&name];
            let Ok(parsed) = FieldNames::parse_one(&quoted(&name)) else {
                continue;
            };
            if all.len() == MOST_FIELDS || !(begins || ends) {
                continue;
            }
            let number = all.len() as u32;
            if begins {
                self.columns.0.push(number);
            }
            if ends {
                self.columns.1.push(number);
            }
            self.fields.push(name);
            all.push(parsed);
        }
        all
    }

    fn values(&self, event: &Occurrence<'_>) -> Fields {
        let values = (0..self.fields.len()).filter_map(|field| {
            let fields = event.more(field)?;
            let values = event.by.values;
            let key = RowKey { values, fields }.key();
            (!matches!(key, Key::None | Key::Missing)).then_some((field as u32, key))
        });
        values.collect()
    }

    /// Keeps what is known of an event that begins something, and gives it a number.
    pub(super) fn begin(&mut self, group: u32, event: &Occurrence<'_>) -> u32 {
        let fields = self.values(event);
        self.next = self.next.wrapping_add(1);
        self.starts.insert(self.next, Start { group, fields });
        self.next
    }

    /// An event ends what is added next.
    pub(super) fn ending(&mut self, event: &Occurrence<'_>) {
        self.ending = self.values(event);
    }

    pub(super) fn add(&mut self, span: Span) {
        let start = self.starts.remove(&span.group).unwrap_or_default();
        let ending = std::mem::take(&mut self.ending);
        self.pending.push((span, start, ending));
    }

    fn header(&mut self, by: &GroupBy) {
        let own = ["begin", "end", "duration", "track"];
        let mut columns: Vec<String> = own.map(str::to_owned).into();
        columns.extend(by.titles().map(str::to_owned));
        let name = |&field: &u32| self.fields[field as usize].clone();
        columns.extend(self.columns.0.iter().map(name).map(|name| {
            // No two columns have the same name.
            match own.contains(&&*name) {
                true => format!("begin.{name}"),
                false => name,
            }
        }));
        let ends = self.columns.1.iter().map(name);
        columns.extend(ends.map(|name| format!("end.{name}")));
        csv_line(columns.iter().map(String::as_str), &mut self.line);
    }

    pub(super) fn write(
        &mut self,
        by: &GroupBy,
        groups: &Groups,
        tracks: &TrackTable,
        recordings: &[AnyRecording],
    ) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_header, true) && self.format == LineFormat::Csv {
            self.header(by);
        }
        let several = recordings.len() > 1;
        for (span, start, ending) in self.pending.drain(..) {
            let track = track(recordings, tracks, span.track).title(several);
            let values = groups.values(start.group, tracks, recordings);
            match self.format {
                LineFormat::Csv => {
                    let numbers = [
                        span.begin.to_string(),
                        span.end.to_string(),
                        span.nanos.to_string(),
                    ];
                    let mut cells: Vec<String> = numbers.into_iter().chain([track]).collect();
                    cells.extend(values.iter().map(GroupValue::text));
                    let columns = [(&self.columns.0, start.fields), (&self.columns.1, ending)];
                    for (columns, fields) in columns {
                        let mut fields = fields.into_iter().peekable();
                        // Both are in the order of their numbers.
                        cells.extend(columns.iter().map(|column| {
                            while fields.next_if(|(field, _)| field < column).is_some() {}
                            let found = fields.next_if(|(field, _)| field == column);
                            found.map_or_else(String::new, |(_, key)| key.text())
                        }));
                    }
                    csv_line(cells.iter().map(String::as_str), &mut self.line);
                }
                LineFormat::Json => {
                    let mut json = Json::default();
                    json.begin_object();
                    json.entry("begin", span.begin);
                    json.entry("end", span.end);
                    json.entry("duration", span.nanos);
                    json.entry("track", track.as_bytes());
                    by_json(by.titles(), &values, &mut json);
                    for (key, fields) in [("fields", start.fields), ("end_fields", ending)] {
                        json.key(key);
                        json.begin_object();
                        for (field, value) in fields {
                            json.key(&self.fields[field as usize]);
                            GroupValue::of(value).to_json(&mut json);
                        }
                        json.end_object();
                    }
                    json.end_object();
                    self.line.push(&json.finish());
                }
            }
        }
        let written = (self.write)(self.line.as_bytes());
        self.line.clear();
        written
    }
}

/// The names of the fields that packets of a recording have for their events, such as `cpu_id`.
fn packet_names(recording: &AnyRecording) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (stream, info) in recording.streams().iter().enumerate() {
        let schema = &info.packet_schema;
        let Some(root) = schema.root(Scope::PacketContext) else {
            continue;
        };
        for &child in &schema.field(root).children {
            let field = schema.field(child);
            let is_shown = !matches!(field.kind, Kind::Struct | Kind::Variant)
                && !recording.is_packet_bookkeeping(stream, child);
            if let Some(name) = field.name.as_deref().filter(|_| is_shown)
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// The names of the fields of an event and of its contexts, but not of what is within structures and variants.
fn names(schema: &kymo_model::Schema) -> Vec<String> {
    let scopes = [Scope::Payload, Scope::SpecificContext, Scope::CommonContext];
    let roots = scopes.into_iter().filter_map(|scope| schema.root(scope));
    let children = roots.flat_map(|root| &schema.field(root).children);
    let fields = children.map(|&child| schema.field(child));
    let fields = fields.filter(|field| !matches!(field.kind, Kind::Struct | Kind::Variant));
    let mut names: Vec<String> = Vec::new();
    for name in fields.filter_map(|field| field.name.as_deref()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// A name as filters read it.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(is_plain) {
        // Words of the language would not do.
        true if name.contains('_') => name.to_owned(),
        _ => format!("`{name}`"),
    }
}
