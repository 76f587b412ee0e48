//! Fills the columns of a plan from the events of chunks, in any thread.

use kymo_model::batch::{self, Columns, DataType};
use kymo_model::{Both, Chunk, Event, Fault, Nothing, Schema, Value, Visitor};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::RowPlan;
use super::plan::ClassPlan;
use crate::AnyRecording;
use crate::filter::{Source, Surround};
use crate::pipeline::RowBuffers;
use crate::show::Renderer;
use crate::show::table::Table;

/// The sizes of columns are not looked at after every event.
const EVENTS_BETWEEN_SIZES: usize = 1024;

/// The columns of a class.
#[derive(Debug, Default)]
struct ClassColumns<'a> {
    columns: Columns,
    /// Whether there is none.
    is_empty: bool,
    /// Whether any of them has something of the fields of events.
    has_fields: bool,
    /// Those whose value is in no field of the event.
    others: &'a [(usize, Vec<Source>)],
    /// Those of which all rows of a chunk have the same value.
    shared: &'a [(usize, Vec<Source>)],
    /// Positions of those that may have texts, of which a few events may have very many bytes.
    texts: Vec<usize>,
    /// The bytes of these that were counted.
    text_bytes: usize,
}

impl<'a> ClassColumns<'a> {
    fn new(plan: &'a ClassPlan, schema: &Schema, is_mixed: bool, raw_texts: bool) -> Self {
        let columns = Columns::new(schema, &plan.wanted);
        let wanted = plan.wanted.iter().enumerate();
        let texts = wanted.filter(|(_, of)| !is_mixed && has_texts(&of.column.data_type));
        Self {
            is_empty: plan.wanted.is_empty(),
            has_fields: !columns.fields().is_empty(),
            others: &plan.others,
            shared: &plan.shared,
            texts: texts.map(|(position, _)| position).collect(),
            columns: match raw_texts {
                true => columns.with_raw_texts(),
                false => columns,
            },
            text_bytes: 0,
        }
    }

    /// The bytes that came to the texts since it was last asked.
    #[inline]
    fn new_text_bytes(&mut self) -> usize {
        let of = |&column: &usize| self.columns.columns()[column].byte_size();
        let all = self.texts.iter().map(of).sum();
        all - std::mem::replace(&mut self.text_bytes, all).min(all)
    }
}

/// The first value that there is in some places outside the fields of an event.
#[inline]
fn first_value<'v>(
    surround: &'v Surround,
    sources: &'v [Source],
    time: Option<i64>,
) -> Option<Value<'v>> {
    let mut values = sources.iter().map(|of| surround.value(of, None, time));
    values.find(|value| *value != Value::Missing)
}

fn has_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::Text | DataType::Binary => true,
        DataType::List(items) => has_texts(&items.data_type),
        DataType::Struct(members) => members.iter().any(|of| has_texts(&of.data_type)),
        _ => false,
    }
}

/// Fills columns, in one thread.
#[derive(Debug)]
pub struct Filler<'a> {
    plan: &'a RowPlan,
    classes: Table<ClassColumns<'a>>,
    surround: Surround,
    recording: usize,
    /// The rows of all classes, where they fill the same columns.
    mixed: Box<batch::Table>,
    /// Classes of which there are rows; where they fill the same columns, the first one.
    met: Vec<usize>,
    rows: usize,
    /// About the bytes of the columns, and of their texts.
    bytes: usize,
    text_bytes: usize,
    raw_texts: bool,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(plan: &'a RowPlan) -> Self {
        Self {
            plan,
            classes: Table::default(),
            surround: Surround::default(),
            recording: 0,
            mixed: Box::new(batch::Table::new(&plan.schema)),
            met: Vec::new(),
            rows: 0,
            bytes: 0,
            text_bytes: 0,
            raw_texts: false,
        }
    }

    /// The same, which keeps the bytes of texts as they are.
    pub(crate) fn with_raw_texts(plan: &'a RowPlan) -> Self {
        Self {
            raw_texts: true,
            ..Self::new(plan)
        }
    }

    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    pub(crate) fn chunk(
        &mut self,
        recording: usize,
        of: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        match &self.plan.fields {
            Some(fields) => {
                let packets = fields.packets(recording);
                self.surround.begin_chunk(packets, (recording, of), chunk)
            }
            None => Ok(()),
        }
    }

    /// Adds an event as a row.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped; no row was added.
    #[inline]
    pub(crate) fn event<E: Event>(&mut self, event: &E) -> Result<(), Fault> {
        self.fill(event, &mut Nothing, false)
    }

    /// Adds an event as a row, and gives all its values to another visitor, too.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped; no row was added.
    #[inline]
    pub(crate) fn event_with<E: Event, V: Visitor>(
        &mut self,
        event: &E,
        other: &mut V,
    ) -> Result<(), Fault> {
        self.fill(event, other, true)
    }

    /// Adds an event as a row; decodes it if there is a column or a visitor for it.
    #[inline(always)]
    fn fill<E: Event, V: Visitor>(
        &mut self,
        event: &E,
        other: &mut V,
        visits: bool,
    ) -> Result<(), Fault> {
        let class = event.class_index();
        let (plan, is_mixed) = (self.plan, self.plan.is_mixed);
        let (recording, raw_texts) = (self.recording, self.raw_texts);
        let of_class = self.classes.get(recording, class, || {
            let schema = &event.class().schema;
            ClassColumns::new(&plan.classes[recording][class], schema, is_mixed, raw_texts)
        });
        if of_class.is_empty {
            return match visits {
                true => event.visit(other),
                false => Ok(()),
            };
        }
        let columns = &mut of_class.columns;
        if is_mixed {
            columns.swap_rows(&mut self.mixed);
        }
        if columns.rows() == 0 {
            self.met.push(class);
        }
        let filled = match visits || of_class.has_fields {
            true => event.visit(&mut Both(columns, other)),
            false => Ok(()),
        };
        match filled {
            Ok(()) => {
                if !of_class.others.is_empty() {
                    let time = event.timestamp().map(Timestamp::as_nanos);
                    for (column, sources) in of_class.others {
                        if let Some(value) = first_value(&self.surround, sources, time) {
                            columns.put(*column, value);
                        }
                    }
                }
                columns.end_row();
            }
            Err(_) => columns.drop_row(),
        }
        self.rows += 1;
        if self.rows.is_multiple_of(EVENTS_BETWEEN_SIZES) {
            self.bytes = self.bytes.max(columns.byte_size());
        }
        if is_mixed {
            columns.swap_rows(&mut self.mixed);
        }
        if !of_class.texts.is_empty() {
            self.text_bytes += of_class.new_text_bytes();
        }
        filled
    }

    /// Hands out the columns of the rows since it was last asked.
    pub(crate) fn take(&mut self) -> RowBuffers {
        let is_mixed = self.plan.is_mixed;
        let mut rows = RowBuffers::default();
        for class in self.met.drain(..) {
            let of = self
                .classes
                .get(self.recording, class, ClassColumns::default);
            if is_mixed {
                of.columns.swap_rows(&mut self.mixed);
            }
            for (column, sources) in of.shared {
                let value = first_value(&self.surround, sources, None);
                of.columns.share(*column, value.unwrap_or(Value::Missing));
            }
            let (columns, replaced) = of.columns.take();
            if is_mixed {
                of.columns.swap_rows(&mut self.mixed);
            }
            rows.columns
                .push((if is_mixed { 0 } else { class }, columns));
            rows.replaced += replaced;
            of.text_bytes = 0;
        }
        (self.bytes, self.text_bytes) = (0, 0);
        rows
    }

    /// About the bytes of the columns.
    #[inline]
    pub(crate) fn byte_size(&self) -> usize {
        self.bytes.max(self.text_bytes)
    }
}

/// Fills columns and writes no text.
impl Renderer for Filler<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.chunk(recording, of, chunk)
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, _out: &mut Line) -> Result<(), Fault> {
        self.event(event)
    }

    fn take_rows(&mut self) -> RowBuffers {
        self.take()
    }

    fn row_bytes(&self) -> usize {
        self.byte_size()
    }
}
