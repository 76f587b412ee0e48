//! Events as comma-separated values, one a line, quoted as RFC 4180 says.
//!
//! The first line names the columns, and all lines have as many cells. The first columns are
//!
//! * `timestamp`: nanoseconds since the origin (nothing where the event has no time), or what
//!   [`Times`] says;
//! * `recording`: the path of the recording;
//! * `kind`: `event`, or `sample`, a row of a round-robin database or a list of values of collectd;
//! * `name`: the name of the event, of a row that of its archive;
//! * `schema`: `csv-1`. The number changes when columns get another meaning or place.
//!
//! Then comes a column for each field of the events, of the packet context, the common context, the
//! specific context and the payload. Classes share columns of the same name; what one does not have is empty.
//! Where there would be more than 256 columns of fields, and where not all classes are known before, there is one
//! column `fields` instead: what follows `schema` in [JSON](super::json), as an object.
//!
//! The name of a column is the field's name; of a member of a structure the names joined
//! by dots. Where two scopes of a class have the same, or one of the first columns has it, the scope
//! stands before it (`payload.id`, `common_context.id`, `payload.name`). Structures are spread over columns; arrays, and
//! structures within variants and optionals, are one cell of [JSON](super::json).
//! Enumerations and bit maps are their numbers, an absent optional is an empty cell, BLOBs
//! are lower-case hexadecimal digits, NaNs and infinities are `NaN`, `Infinity` or `-Infinity`.

mod field_renderer;
mod plan;
mod row;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording};
use kymo_text::Line;

pub(crate) use self::field_renderer::{CellFrame, CellRenderer, FieldRenderer};
pub(crate) use self::plan::{Column, Part, Plan, names, packet_columns};
pub(crate) use self::row::Row;
use super::json::JsonRenderer;
use super::packet::PacketFields;
use super::table::Table;
use super::times::TimeText;
use super::{LossReporter, Message, Renderer, Sink, Times, WallOptions};
use crate::{AnyRecording, EntryKind};

/// The columns that all lines have.
const FIRST: [&str; 5] = ["timestamp", "recording", "kind", "name", "schema"];
/// The content of the column `schema`. It is not a number, so that no reader takes it for a value.
const SCHEMA: &[u8] = b"csv-1";
/// More columns of fields than this are one column instead.
const MOST_COLUMNS: usize = 256;

/// Puts lines together. Losses are reported as warnings.
#[derive(Debug)]
pub struct Csv {
    loss_reporter: LossReporter,
    times: TimeText,
    columns: Option<Arc<Columns>>,
    headed: bool,
}

/// The columns of the fields of all classes that are shown.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    /// Paths of fields that have the scope before them.
    scoped: HashSet<String>,
}

impl Columns {
    /// The columns of event classes; `chosen` returns by their names which ones are shown.
    fn new(recordings: &[AnyRecording], chosen: impl Fn(&EventClass) -> bool) -> Self {
        let mut all: Vec<Vec<Column>> = Vec::new();
        for recording in recordings {
            let stream_of: HashMap<u64, usize> = recording
                .streams()
                .iter()
                .enumerate()
                .map(|(position, stream)| (stream.class, position))
                .collect();
            for class in recording.event_classes().iter().filter(|it| chosen(it)) {
                let mut columns = match stream_of.get(&class.stream_class) {
                    Some(stream) => packet_columns(&PacketFields::of(recording, *stream)),
                    None => Vec::new(),
                };
                Plan::new(&class.schema, &header_hidden(class), &mut columns);
                all.push(columns);
            }
        }
        let mut scoped: HashSet<String> = FIRST.map(String::from).into();
        for columns in &all {
            let mut known = HashSet::new();
            let twice = columns.iter().filter(|(_, path)| !known.insert(path));
            scoped.extend(twice.map(|(_, path)| path.clone()));
        }
        let mut columns = Self {
            names: Vec::new(),
            scoped,
        };
        let mut known = HashSet::new();
        for column in all.iter().flatten() {
            let name = columns.name(column);
            if known.insert(name.clone()) {
                columns.names.push(name);
            }
        }
        columns
    }

    /// The name of the column of a field.
    fn name(&self, (scope, path): &Column) -> String {
        match self.scoped.contains(path) {
            true => format!("{}.{path}", scope.name()),
            false => path.clone(),
        }
    }
}

impl Csv {
    /// Lines with one column `fields`; `wall` is how times are shown in warnings, and the time zone of
    /// `times`.
    pub fn new(times: Times, wall: WallOptions) -> Self {
        Self {
            loss_reporter: LossReporter::new(wall),
            times: TimeText::new(times, wall),
            columns: None,
            headed: false,
        }
    }

    /// Lines with a column for each field of the event classes that are `chosen`. Events of others
    /// must not be handed over: their fields have no columns.
    pub fn of_classes(
        times: Times,
        wall: WallOptions,
        recordings: &[AnyRecording],
        chosen: impl Fn(&EventClass) -> bool,
    ) -> Self {
        let columns = Columns::new(recordings, chosen);
        Self {
            columns: (columns.names.len() <= MOST_COLUMNS).then(|| Arc::new(columns)),
            ..Self::new(times, wall)
        }
    }

    /// Writes the header line, once.
    #[cold]
    fn head(&mut self, out: &mut Line) {
        out.push(FIRST.join(",").as_bytes());
        match &self.columns {
            Some(columns) => {
                for column in &columns.names {
                    out.push_byte(b',');
                    quoted(column.as_bytes(), out);
                }
            }
            None => out.push(b",fields"),
        }
        out.push_byte(b'\n');
        self.headed = true;
    }
}

/// The fields of an event's header, which no visitor sees.
pub(crate) fn header_hidden(class: &EventClass) -> Vec<bool> {
    let schema = &class.schema;
    let header = schema.root(kymo_model::Scope::EventHeader);
    let mut hidden: Vec<bool> = Vec::with_capacity(schema.fields().len());
    for (position, field) in schema.fields().iter().enumerate() {
        hidden.push(match field.parent {
            Some(parent) => hidden[parent.index()],
            None => header.is_some_and(|header| header.index() == position),
        });
    }
    hidden
}

impl Sink for Csv {
    type Renderer = CsvRenderer;

    fn renderer(&self) -> CsvRenderer {
        CsvRenderer {
            names: Table::default(),
            recording: 0,
            head: Line::new(),
            cells: match &self.columns {
                Some(columns) => Cells::Columns(Box::new(ColumnCells::new(columns))),
                None => Cells::Json(Box::new(JsonRenderer::cell()), Line::new()),
            },
        }
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        if !self.headed {
            self.head(out);
        }
        if let Some(time) = message.time {
            self.times.write(time, out);
        }
        out.push(text);
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }

    fn finish(&mut self, out: &mut Line, _warnings: &mut Vec<u8>) {
        if !self.headed {
            self.head(out);
        }
    }
}

/// Writes what comes after the time.
#[derive(Debug)]
pub struct CsvRenderer {
    /// The quoted names of classes, and the schema.
    names: Table<Vec<u8>>,
    recording: usize,
    /// Recording and kind.
    head: Line,
    cells: Cells,
}

/// What the fields of events become.
#[derive(Debug)]
enum Cells {
    Columns(Box<ColumnCells>),
    /// One object; with its text.
    Json(Box<JsonRenderer>, Line),
}

/// A cell for each column.
#[derive(Debug)]
struct ColumnCells {
    columns: Arc<Columns>,
    classes: Table<ClassPlan>,
    row: Row,
    /// Of each column the cell of the event in hand.
    cells: Arc<[Option<usize>]>,
}

#[derive(Debug)]
struct ClassPlan {
    plan: Plan,
    /// The cell of each column, those of the packet first.
    cells: Arc<[Option<usize>]>,
}

impl ClassPlan {
    fn new(class: &EventClass, packet: &[Column], columns: &Columns) -> Self {
        let mut of_class = packet.to_vec();
        let plan = Plan::new(&class.schema, &header_hidden(class), &mut of_class);
        let mut cell_of = HashMap::new();
        for (cell, column) in of_class.iter().enumerate() {
            cell_of.entry(columns.name(column)).or_insert(cell);
        }
        let names = columns.names.iter();
        Self {
            plan,
            cells: names.map(|name| cell_of.get(name).copied()).collect(),
        }
    }
}

impl ColumnCells {
    fn new(columns: &Arc<Columns>) -> Self {
        Self {
            columns: Arc::clone(columns),
            classes: Table::default(),
            row: Row::default(),
            cells: Arc::new([]),
        }
    }

    /// Decodes an event. `false` where its text is too long.
    fn decode<E: Event>(
        &mut self,
        recording: usize,
        event: &E,
        most: usize,
    ) -> Result<bool, Fault> {
        let class = self.classes.get(recording, event.class_index(), || {
            let packet = self.row.packet_columns();
            ClassPlan::new(event.class(), packet, &self.columns)
        });
        self.cells.clone_from(&class.cells);
        let visit = |field_renderer: &mut CellRenderer<'_>| event.visit(field_renderer);
        self.row.event(&class.plan, most, visit)
    }

    /// Appends the cells of the event that was decoded last.
    fn write(&self, out: &mut Line) {
        for cell in self.cells.iter() {
            out.push_byte(b',');
            let cell = cell.and_then(|cell| self.row.get(cell));
            quoted(cell.unwrap_or_default(), out);
        }
    }
}

impl CsvRenderer {
    /// A chunk of a recording begins.
    fn start(&mut self, recording: usize, path: &[u8], kind: EntryKind) {
        self.recording = recording;
        self.head.clear();
        self.head.push_byte(b',');
        quoted(path, &mut self.head);
        self.head.push_byte(b',');
        self.head.push(kind.as_str().as_bytes());
        self.head.push_byte(b',');
    }
}

fn quoted_name(class: &EventClass) -> Vec<u8> {
    let mut name = Line::new();
    let text = class.name.as_deref().unwrap_or_default();
    quoted(text.as_bytes(), &mut name);
    name.push_byte(b',');
    name.push(SCHEMA);
    name.as_bytes().to_vec()
}

impl Renderer for CsvRenderer {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let path = source.path().as_os_str().as_encoded_bytes();
        self.start(recording, path, source.entry_kind(chunk.stream));
        match &mut self.cells {
            Cells::Json(json, _) => json.chunk(recording, source, chunk),
            Cells::Columns(cells) => cells.row.packet(
                recording,
                chunk.stream,
                || PacketFields::of(source, chunk.stream),
                |visitor| source.visit_packet(chunk, visitor),
            ),
        }
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let is_whole = match &mut self.cells {
            Cells::Columns(cells) => cells.decode(self.recording, event, out.left())?,
            Cells::Json(json, text) => {
                text.clear();
                text.bound(out.left());
                json.event(event, text)?;
                !text.is_cut()
            }
        };
        if !is_whole {
            out.cut();
            return Ok(());
        }
        let name = self.names.get(self.recording, event.class_index(), || {
            quoted_name(event.class())
        });
        out.push(self.head.as_bytes());
        out.push(name);
        match &self.cells {
            Cells::Columns(cells) => cells.write(out),
            Cells::Json(_, text) => {
                out.push_byte(b',');
                // From its comma to the end of its line.
                let text = text.as_bytes();
                let text = text.get(1..text.len() - 1).unwrap_or_default();
                quoted_parts(&[b"{", text], out);
            }
        }
        out.push_byte(b'\n');
        Ok(())
    }
}

/// Appends a cell, between quotation marks where it has to be.
fn quoted(cell: &[u8], line: &mut Line) {
    quoted_parts(&[cell], line);
}

fn quoted_parts(parts: &[&[u8]], line: &mut Line) {
    let special = |byte: &u8| matches!(byte, b'"' | b',' | b'\n' | b'\r');
    if !parts.iter().any(|part| part.iter().any(special)) {
        return parts.iter().for_each(|part| line.push(part));
    }
    line.push_byte(b'"');
    for part in parts {
        for (position, piece) in part.split(|&byte| byte == b'"').enumerate() {
            if position > 0 {
                line.push(b"\"\"");
            }
            line.push(piece);
        }
    }
    line.push_byte(b'"');
}

#[cfg(test)]
mod tests {
    use super::field_renderer::CellRenderer;
    use super::*;
    use crate::show::packet::Visible;
    use crate::show::{MessageKind, testing};

    #[test]
    fn one_column_a_field() {
        let names = ["vpid", "other", "cpu_id", "payload.name", "arr", "var", "s"];
        let columns = Columns {
            names: names.map(String::from).into(),
            scoped: FIRST.map(String::from).into(),
        };
        let mut csv = Csv {
            columns: Some(Arc::new(columns)),
            ..Csv::new(Times::Text, WallOptions::default())
        };
        let mut renderer = csv.renderer();
        let (schema, calls) = testing::packet();
        let fields = || PacketFields::new(schema, |field| field == testing::SIZE_FIELD);
        let visit = |visitor: &mut Visible<'_, CellRenderer<'_>>| {
            testing::play(&calls, visitor);
            Ok(())
        };
        renderer.start(0, b"a,b", EntryKind::Event);
        let Cells::Columns(cells) = &mut renderer.cells else {
            panic!("there are columns");
        };
        cells.row.packet(0, 0, fields, visit).unwrap();
        let mut text = Line::new();
        renderer.event(&testing::every_kind(), &mut text).unwrap();
        let mut out = Line::new();
        let message = Message {
            kind: MessageKind::Event,
            recording: 0,
            stream: 0,
            chunk: 0,
            class: 0,
            time: Some(kymo_time::Timestamp::from_nanos(-5)),
            ticks: Some(1),
        };
        csv.message(&message, &[], text.as_bytes(), &mut out, &mut Vec::new());
        csv.finish(&mut out, &mut Vec::new());
        let expected = "timestamp,recording,kind,name,schema,vpid,other,cpu_id,payload.name,arr,var,s\n\
            -5,\"a,b\",event,app:every,csv-1,-7,,3,,\"[[1],[2]]\",\"{\"\"in\"\":4}\",\"a\"\"b\n\"\n";
        assert_eq!(String::from_utf8_lossy(out.as_bytes()), expected);
    }

    #[test]
    fn a_scope_distinguishes_two_columns() {
        let column = |scope, name: &str| (scope, name.to_owned());
        use kymo_model::Scope::{CommonContext, Payload};
        let columns = [
            column(CommonContext, "id"),
            column(Payload, "id"),
            column(Payload, "x"),
        ];
        assert_eq!(names(&columns), ["common_context.id", "payload.id", "x"]);
    }
}
