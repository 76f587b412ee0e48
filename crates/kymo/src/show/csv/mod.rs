//! Events as comma-separated values, one a line, quoted as RFC 4180 says.
//!
//! Every line begins with `timestamp,recording,kind,name`: nanoseconds since the origin
//! (nothing where the event has no time), the path of the recording, `event` (or `sample`: a row
//! of a round-robin database), the name of the event (of its archive). Then come the fields, of the packet context, the common context, the specific
//! context and the payload:
//!
//! * of all events, as `KEY=VALUE` cells, as many as there are, and no header line;
//! * of one event class, each in a column of its own, and the names of the columns in a
//!   header line before the first event. Classes of the same name share the columns; what
//!   one does not have is empty.
//!
//! The key or column name is the field's name; of a member of a structure the names joined
//! by dots. Where two scopes have the same, both have the scope before it
//! (`payload.id`, `common_context.id`). Structures are spread over columns; arrays, and
//! structures within variants and optionals, are one cell of [JSON](super::json).
//! Enumerations and bit maps are their numbers, an absent optional is an empty cell, BLOBs
//! are lower-case hexadecimal digits, what is no number is `NaN`, `Infinity` or `-Infinity`.

mod pen;
mod plan;
mod row;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording};
use kymo_text::Line;

use self::pen::Pen;
pub(crate) use self::plan::{Column, Plan, names, packet_columns};
pub(crate) use self::row::Row;
use super::packet::{PacketFields, Visible};
use super::table::Table;
use super::{Assembler, Message, Painter, Teller, WallOptions};
use crate::{AnyRecording, EntryKind};

/// Puts lines together. What was lost is told as warnings.
#[derive(Debug)]
pub struct Csv {
    teller: Teller,
    /// Of one event class.
    columns: Option<Arc<[String]>>,
    headed: bool,
}

impl Csv {
    /// Lines with cells `KEY=VALUE`; `wall` is how times are shown in warnings.
    pub fn new(wall: WallOptions) -> Self {
        Self {
            teller: Teller::new(wall),
            columns: None,
            headed: false,
        }
    }

    /// Lines with one column a field, of the event classes with this name. Events of
    /// others must not be handed over: their fields have no columns.
    pub fn of_class(wall: WallOptions, of: &[AnyRecording], event: &str) -> Self {
        let mut columns: Vec<String> = Vec::new();
        let mut known = HashSet::new();
        for recording in of {
            let classes = recording.event_classes().iter();
            for class in classes.filter(|class| class.name.as_deref() == Some(event)) {
                let mut of_class = Vec::new();
                let streams = recording.streams().iter();
                if let Some(stream) = streams
                    .map(|stream| stream.class)
                    .position(|id| id == class.stream_class)
                {
                    of_class = packet_columns(&PacketFields::of(recording, stream));
                }
                Plan::new(&class.schema, &header_hidden(class), &mut of_class);
                for name in names(&of_class) {
                    if known.insert(name.clone()) {
                        columns.push(name);
                    }
                }
            }
        }
        Self {
            columns: Some(columns.into()),
            ..Self::new(wall)
        }
    }

    /// Writes the header line, once.
    fn head(&mut self, out: &mut Line) {
        if let (false, Some(columns)) = (self.headed, &self.columns) {
            out.push(b"timestamp,recording,kind,name");
            for column in columns.iter() {
                out.push_byte(b',');
                quoted(column.as_bytes(), out);
            }
            out.push_byte(b'\n');
        }
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

impl Assembler for Csv {
    type Painter = CsvPainter;

    fn painter(&self) -> CsvPainter {
        CsvPainter {
            columns: self.columns.clone(),
            classes: Table::default(),
            recording: 0,
            head: Line::new(),
            row: Row::default(),
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
        self.head(out);
        if let Some(time) = message.time {
            out.signed(time.as_nanos());
        }
        out.push(text);
    }

    fn teller(&mut self) -> Option<&mut Teller> {
        Some(&mut self.teller)
    }

    fn finish(&mut self, out: &mut Line, _warnings: &mut Vec<u8>) {
        self.head(out);
    }
}

/// Writes what comes after the time.
#[derive(Debug)]
pub struct CsvPainter {
    columns: Option<Arc<[String]>>,
    classes: Table<ClassPlan>,
    recording: usize,
    /// Recording and kind.
    head: Line,
    row: Row,
}

#[derive(Debug)]
struct ClassPlan {
    plan: Plan,
    /// The quoted name.
    name: Vec<u8>,
    cells: CellNames,
}

/// What is known of the cells of an event before it comes, those of its packet first.
#[derive(Debug)]
enum CellNames {
    /// The key of each cell.
    Keys(Vec<String>),
    /// The cell of each column.
    Columns(Vec<Option<usize>>),
}

impl ClassPlan {
    fn new(class: &EventClass, packet: &[Column], columns: Option<&[String]>) -> Self {
        let mut of_class = packet.to_vec();
        let plan = Plan::new(&class.schema, &header_hidden(class), &mut of_class);
        let names = names(&of_class);
        let cells = match columns {
            None => CellNames::Keys(names),
            Some(columns) => {
                let mut cell_of = HashMap::new();
                for (cell, name) in names.iter().enumerate() {
                    cell_of.entry(name.as_str()).or_insert(cell);
                }
                let cells = columns
                    .iter()
                    .map(|name| cell_of.get(name.as_str()).copied());
                CellNames::Columns(cells.collect())
            }
        };
        let mut name = Line::new();
        quoted(
            class.name.as_deref().unwrap_or_default().as_bytes(),
            &mut name,
        );
        Self {
            plan,
            name: name.as_bytes().to_vec(),
            cells,
        }
    }
}

impl CsvPainter {
    fn start(
        &mut self,
        recording: usize,
        stream: usize,
        path: &[u8],
        kind: EntryKind,
        fields: impl FnOnce() -> PacketFields,
        visit: impl FnOnce(&mut Visible<'_, Pen<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.head.clear();
        self.head.push_byte(b',');
        quoted(path, &mut self.head);
        self.head.push_byte(b',');
        self.head.push(kind.as_str().as_bytes());
        self.head.push_byte(b',');
        self.row.packet(recording, stream, fields, visit)
    }
}

impl Painter for CsvPainter {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.start(
            recording,
            chunk.stream,
            of.path().as_os_str().as_encoded_bytes(),
            of.entry_kind(chunk.stream),
            || PacketFields::of(of, chunk.stream),
            |visitor| of.visit_packet(chunk, visitor),
        )
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let class = self.classes.get(self.recording, event.class_index(), || {
            let packet = self.row.packet_columns();
            ClassPlan::new(event.class(), packet, self.columns.as_deref())
        });
        if !self.row.event(event, &class.plan, out.left())? {
            out.cut();
            return Ok(());
        }
        let cell = |cell: usize| self.row.get(cell);
        out.push(self.head.as_bytes());
        out.push(&class.name);
        match &class.cells {
            CellNames::Keys(keys) => {
                for (position, key) in keys.iter().enumerate() {
                    out.push_byte(b',');
                    let value = cell(position).unwrap_or_default();
                    quoted_parts(&[key.as_bytes(), b"=", value], out);
                }
            }
            CellNames::Columns(columns) => {
                for column in columns {
                    out.push_byte(b',');
                    quoted(column.and_then(cell).unwrap_or_default(), out);
                }
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
    use super::*;
    use crate::show::{MessageKind, testing};

    fn show(mut csv: Csv) -> String {
        let mut painter = csv.painter();
        let (schema, calls) = testing::packet();
        let fields = || PacketFields::new(schema, |field| field == testing::SIZE_FIELD);
        let visit = |visitor: &mut Visible<'_, Pen<'_>>| {
            testing::play(&calls, visitor);
            Ok(())
        };
        painter
            .start(0, 0, b"a,b", EntryKind::Event, fields, visit)
            .unwrap();
        let mut text = Line::new();
        painter.event(&testing::every_kind(), &mut text).unwrap();
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
        String::from_utf8(out.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn cells_with_keys() {
        let expected = "-5,\"a,b\",event,app:every,cpu_id=3,vpid=-7,hex=-1,oct=-1,bin=5,f=-99.63,\
            q=1.0,b=true,bits=59819,map=17,\"s=a\"\"b\n\",blob=00ff,empty=,one=0,two=0,none=9,\
            \"arr=[[1],[2]]\",no=[],\"var={\"\"in\"\":4}\",some=x,nothing=\n";
        assert_eq!(show(Csv::new(WallOptions::default())), expected);
    }

    #[test]
    fn one_column_a_field() {
        let csv = Csv {
            columns: Some(["vpid", "other", "cpu_id", "s"].map(String::from).into()),
            ..Csv::new(WallOptions::default())
        };
        let expected = "timestamp,recording,kind,name,vpid,other,cpu_id,s\n\
            -5,\"a,b\",event,app:every,-7,,3,\"a\"\"b\n\"\n";
        assert_eq!(show(csv), expected);
    }

    #[test]
    fn a_scope_tells_two_columns_apart() {
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
