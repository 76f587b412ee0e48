//! Fills the columns of a plan from the events of chunks, in any thread.

use kymo_model::batch::{Columns, DataType};
use kymo_model::{Both, Chunk, Column, Event, Fault, Nothing, Value, Visitor};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::RowPlan;
use crate::AnyRecording;
use crate::filter::Surround;
use crate::pipeline::RowBuffers;
use crate::show::Renderer;
use crate::show::table::Table;

/// The sizes of columns are not looked at after every event.
const EVENTS_BETWEEN_SIZES: usize = 1024;

/// The columns of a class.
#[derive(Debug, Default)]
struct ClassColumns {
    columns: Columns,
    /// Whether any of them has something of the fields of events.
    has_fields: bool,
    /// Positions of those that may have texts, of which a few events may have very many bytes.
    texts: Vec<usize>,
    /// The bytes of these that were counted.
    text_bytes: usize,
}

impl ClassColumns {
    /// The bytes that came to the texts since it was last asked.
    #[inline]
    fn new_text_bytes(&mut self) -> usize {
        let of = |&column: &usize| self.columns.columns()[column].byte_size();
        let all = self.texts.iter().map(of).sum();
        all - std::mem::replace(&mut self.text_bytes, all).min(all)
    }
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
    classes: Table<ClassColumns>,
    surround: Surround,
    recording: usize,
    /// The columns that all classes share, and their rows.
    mixed: Vec<Column>,
    mixed_rows: usize,
    /// Classes of which there are rows.
    met: Vec<usize>,
    rows: usize,
    replaced: u64,
    /// About the bytes of the columns, and of their texts.
    bytes: usize,
    text_bytes: usize,
    raw_texts: bool,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(plan: &'a RowPlan) -> Self {
        let schema = plan.schema.iter();
        Self {
            plan,
            classes: Table::default(),
            surround: Surround::default(),
            recording: 0,
            mixed: schema.map(|of| Column::new(&of.data_type)).collect(),
            mixed_rows: 0,
            met: Vec::new(),
            rows: 0,
            replaced: 0,
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
        let plan = &self.plan.classes[self.recording][class];
        if plan.wanted.is_empty() {
            return match visits {
                true => event.visit(other),
                false => Ok(()),
            };
        }
        let raw_texts = self.raw_texts;
        let of_class = self.classes.get(self.recording, class, || {
            let columns = Columns::new(&event.class().schema, &plan.wanted);
            ClassColumns {
                has_fields: !columns.fields().is_empty(),
                texts: match self.plan.is_mixed {
                    true => Vec::new(),
                    false => {
                        let wanted = plan.wanted.iter().enumerate();
                        let texts = wanted.filter(|(_, of)| has_texts(&of.column.data_type));
                        texts.map(|(position, _)| position).collect()
                    }
                },
                columns: match raw_texts {
                    true => columns.with_raw_texts(),
                    false => columns,
                },
                text_bytes: 0,
            }
        });
        let visits = visits || of_class.has_fields;
        let columns = &mut of_class.columns;
        let is_mixed = self.plan.is_mixed;
        if is_mixed {
            columns.swap_rows(&mut self.mixed, &mut self.mixed_rows);
        } else if columns.rows() == 0 {
            self.met.push(class);
        }
        let before = columns.replaced();
        let filled = match visits {
            true => event.visit(&mut Both(columns, other)),
            false => Ok(()),
        };
        match filled {
            Ok(()) => {
                let time = event.timestamp().map(Timestamp::as_nanos);
                for (column, sources) in &plan.others {
                    let values = sources.iter();
                    let mut values = values.map(|of| self.surround.value(of, None, time));
                    let value = values.find(|value| *value != Value::Missing);
                    if let Some(value) = value {
                        columns.put(*column, value);
                    }
                }
                columns.end_row();
            }
            Err(_) => columns.drop_row(),
        }
        self.replaced += columns.replaced() - before;
        self.rows += 1;
        if self.rows.is_multiple_of(EVENTS_BETWEEN_SIZES) {
            self.bytes = self.bytes.max(columns.byte_size());
        }
        if is_mixed {
            columns.swap_rows(&mut self.mixed, &mut self.mixed_rows);
        }
        self.text_bytes += of_class.new_text_bytes();
        filled
    }

    /// Hands out the columns of the rows since it was last asked.
    pub(crate) fn take(&mut self) -> RowBuffers {
        let mut columns = Vec::new();
        if self.plan.is_mixed {
            let empty = self.mixed.iter().map(Column::empty_like).collect();
            columns.push((0, std::mem::replace(&mut self.mixed, empty)));
            self.mixed_rows = 0;
        }
        for class in self.met.drain(..) {
            let of = self
                .classes
                .get(self.recording, class, ClassColumns::default);
            columns.push((class, of.columns.take()));
            of.text_bytes = 0;
        }
        (self.bytes, self.text_bytes) = (0, 0);
        RowBuffers {
            numbers: Vec::new(),
            columns,
            replaced: std::mem::take(&mut self.replaced),
        }
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
