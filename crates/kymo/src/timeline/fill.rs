//! Fills the columns of a plan from the events of chunks, in any thread.

use kymo_model::batch::{self, Columns, DataType, WantedColumn};
use kymo_model::{
    BlockQuery, Both, Chunk, Cursor, Event, EventBlock, EventVisitor, Fault, FieldId, Nothing,
    Recording, Schema, Value, Visitor,
};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::RowPlan;
use super::gather::{BlockPlan, BlockRows};
use super::plan::ClassPlan;
use crate::AnyRecording;
use crate::filter::{Source, Surround};
use crate::pipeline::{BlockWish, RowBuffers};
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
    /// Whether any of those that events fill has something of their fields.
    has_fields: bool,
    /// Whether the fields of events must be decoded although no column is filled from them.
    is_decoded: bool,
    /// Columns whose value is not in a field of the event.
    others: &'a [(usize, Vec<Source>)],
    /// Those of which all rows of a chunk have the same value.
    shared: &'a [(usize, Vec<Source>)],
    /// Positions of those that may have texts, of which a few events may have very many bytes.
    texts: Vec<usize>,
    /// The bytes of these that were counted.
    text_bytes: usize,
}

impl<'a> ClassColumns<'a> {
    fn new(
        plan: &'a ClassPlan,
        schema: &Schema,
        filled: &[WantedColumn],
        is_mixed: bool,
        raw_texts: bool,
    ) -> Self {
        let columns = Columns::new(schema, filled);
        let has_fields = !columns.fields().is_empty();
        let wanted = plan.wanted.iter().enumerate();
        let texts = wanted.filter(|(_, wanted)| !is_mixed && has_texts(&wanted.column.data_type));
        Self {
            is_empty: plan.wanted.is_empty(),
            has_fields,
            is_decoded: plan
                .wanted
                .iter()
                .any(|wanted| wanted.source.is_of_fields()),
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
        let byte_size = |&column: &usize| self.columns.columns()[column].byte_size();
        let all = self.texts.iter().map(byte_size).sum();
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
    let mut values = sources
        .iter()
        .map(|source| surround.value(source, None, time));
    values.find(|value| *value != Value::Missing)
}

fn has_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::Text | DataType::Binary => true,
        DataType::List(items) => has_texts(&items.data_type),
        DataType::Struct(members) => members.iter().any(|member| has_texts(&member.data_type)),
        _ => false,
    }
}

/// Fills columns, in one thread.
#[derive(Debug)]
pub struct Filler<'a> {
    plan: &'a RowPlan,
    classes: Table<ClassColumns<'a>>,
    /// By recording, how its rows are taken in blocks, and the columns of its classes then.
    block_plans: Table<BlockPlan>,
    block_classes: Table<ClassColumns<'a>>,
    /// Whether the rows are taken in a block.
    in_block: bool,
    /// By class, the rows of a block, and the classes of which there are any.
    rows_of: Vec<Vec<u32>>,
    classes_in_block: Vec<usize>,
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
    /// Positions in the chunk of the rows that did not come in a block.
    numbers: Vec<u64>,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(plan: &'a RowPlan) -> Self {
        Self {
            plan,
            classes: Table::default(),
            block_plans: Table::default(),
            block_classes: Table::default(),
            in_block: false,
            rows_of: Vec::new(),
            classes_in_block: Vec::new(),
            surround: Surround::default(),
            recording: 0,
            mixed: Box::new(batch::Table::new(&plan.schema)),
            met: Vec::new(),
            rows: 0,
            bytes: 0,
            text_bytes: 0,
            raw_texts: false,
            numbers: Vec::new(),
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
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.in_block = false;
        match &self.plan.fields {
            Some(fields) => {
                let packets = fields.packets(recording);
                self.surround
                    .begin_chunk(packets, (recording, source), chunk)
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
        let of_class = match self.in_block {
            false => self.classes.get(recording, class, || {
                let (schema, plan) = (&event.class().schema, &plan.classes[recording][class]);
                ClassColumns::new(plan, schema, &plan.wanted, is_mixed, raw_texts)
            }),
            true => self.block_classes.get(recording, class, || {
                let (schema, plan) = (&event.class().schema, &plan.classes[recording][class]);
                let block = self.block_plans.get(recording, 0, BlockPlan::default);
                let filled = block.columns(class, plan);
                ClassColumns::new(plan, schema, &filled, is_mixed, raw_texts)
            }),
        };
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
            false if of_class.is_decoded => event.count_values(&mut 0),
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

    /// Adds the next wanted events of a chunk as rows, all of them in blocks: at most `most`, fewer if the columns
    /// have `most_bytes` bytes by then. `false` at the end of the chunk.
    ///
    /// # Errors
    ///
    /// The fault that ended the chunk; no row was added for the event that has it.
    pub(crate) fn block<C: Cursor>(
        &mut self,
        source: &AnyRecording,
        cursor: &mut C,
        wish: &BlockWish<'_>,
        most: usize,
        most_bytes: usize,
        block: &mut EventBlock,
    ) -> Result<bool, Fault> {
        let (recording, rows) = (self.recording, block.len());
        self.in_block = true;
        let plan = self.block_plans.get(recording, 0, || {
            BlockPlan::new(self.plan, (recording, source), wish.classes)
        });
        let interests = std::mem::take(&mut plan.interests);
        let query = BlockQuery {
            interests: &interests,
            numbers: wish.numbers.clone(),
            window: (wish.window.begin, wish.window.end),
        };
        let mut visitor = FillVisitor {
            filler: self,
            most_bytes,
        };
        let walked = cursor.walk_block(&query, most, block, &mut visitor);
        let block_rows = BlockRows {
            bytes: cursor.bytes(),
            block,
            first: rows,
        };
        let mut plan = std::mem::take(self.block_plans.get(recording, 0, BlockPlan::default));
        plan.interests = interests;
        self.gather(source, &plan, block_rows);
        *self.block_plans.get(recording, 0, BlockPlan::default) = plan;
        walked
    }

    /// Appends the rows of a block to the columns that events do not fill.
    fn gather(&mut self, recording: &AnyRecording, plan: &BlockPlan, rows: BlockRows<'_>) {
        let first = rows.classes().first();
        let Some(&first) = first.filter(|_| plan.has_columns) else {
            return;
        };
        if plan.is_mixed() {
            self.gather_class(recording, plan, first as usize, rows, &[]);
            return;
        }
        self.rows_of
            .resize_with(recording.event_classes().len(), Vec::new);
        for (&class, row) in rows.classes().iter().zip(0..) {
            let of_class = &mut self.rows_of[class as usize];
            if of_class.is_empty() {
                self.classes_in_block.push(class as usize);
            }
            of_class.push(row);
        }
        let mut classes = std::mem::take(&mut self.classes_in_block);
        for class in classes.drain(..) {
            let mut of_class = std::mem::take(&mut self.rows_of[class]);
            self.gather_class(recording, plan, class, rows, &of_class);
            of_class.clear();
            self.rows_of[class] = of_class;
        }
        self.classes_in_block = classes;
    }

    fn gather_class(
        &mut self,
        source: &AnyRecording,
        block: &BlockPlan,
        class: usize,
        rows: BlockRows<'_>,
        of_class: &[u32],
    ) {
        let (recording, is_mixed, raw_texts) = (self.recording, self.plan.is_mixed, self.raw_texts);
        let plan = &self.plan.classes[recording][class];
        let filled = self.block_classes.get(recording, class, || {
            let schema = &source.event_classes()[class].schema;
            ClassColumns::new(
                plan,
                schema,
                &block.columns(class, plan),
                is_mixed,
                raw_texts,
            )
        });
        if filled.is_empty {
            return;
        }
        let columns = &mut filled.columns;
        if is_mixed {
            columns.swap_rows(&mut self.mixed);
        }
        if columns.rows() == 0 {
            self.met.push(class);
        }
        let before = columns.byte_size();
        block.gather(class, columns, rows, of_class);
        let after = columns.byte_size();
        self.bytes = match is_mixed {
            true => self.bytes.max(after),
            false => self.bytes + (after - before),
        };
        if is_mixed {
            columns.swap_rows(&mut self.mixed);
        }
    }

    /// Hands out the columns of the rows since it was last asked.
    pub(crate) fn take(&mut self) -> RowBuffers {
        let is_mixed = self.plan.is_mixed;
        let room = Vec::with_capacity(self.numbers.len());
        let mut rows = RowBuffers {
            numbers: std::mem::replace(&mut self.numbers, room),
            ..RowBuffers::default()
        };
        for class in self.met.drain(..) {
            let classes = match self.in_block {
                true => &mut self.block_classes,
                false => &mut self.classes,
            };
            let class_columns = classes.get(self.recording, class, ClassColumns::default);
            if is_mixed {
                class_columns.columns.swap_rows(&mut self.mixed);
            }
            for (column, sources) in class_columns.shared {
                let value = first_value(&self.surround, sources, None);
                class_columns
                    .columns
                    .share(*column, value.unwrap_or(Value::Missing));
            }
            let (columns, replaced) = class_columns.columns.take();
            if is_mixed {
                class_columns.columns.swap_rows(&mut self.mixed);
            }
            rows.columns
                .push((if is_mixed { 0 } else { class }, columns));
            rows.replaced += replaced;
            class_columns.text_bytes = 0;
        }
        (self.bytes, self.text_bytes) = (0, 0);
        rows
    }

    /// About the bytes of the columns.
    #[inline]
    pub(crate) fn byte_size(&self) -> usize {
        self.bytes.max(self.text_bytes) + size_of_val(&self.numbers[..])
    }
}

/// Fills columns from the events of a block that are visited.
struct FillVisitor<'f, 'a> {
    filler: &'f mut Filler<'a>,
    most_bytes: usize,
}

impl EventVisitor for FillVisitor<'_, '_> {
    #[inline]
    fn event<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        self.filler.event(event)?;
        Ok(self.filler.byte_size() < self.most_bytes)
    }
}

/// Fills columns and writes no text.
impl Renderer for Filler<'_> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.chunk(recording, source, chunk)
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, _out: &mut Line) -> Result<(), Fault> {
        self.event(event)?;
        self.numbers.push(event.number());
        Ok(())
    }

    fn takes_blocks(&self) -> bool {
        true
    }

    fn block<C: Cursor>(
        &mut self,
        recording: &AnyRecording,
        cursor: &mut C,
        wish: &BlockWish<'_>,
        most: usize,
        most_bytes: usize,
        block: &mut EventBlock,
    ) -> Result<bool, Fault> {
        self.block(recording, cursor, wish, most, most_bytes, block)
    }

    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool {
        self.plan.looks_at(recording, source, class, field)
    }

    fn take_rows(&mut self) -> RowBuffers {
        self.take()
    }

    fn row_bytes(&self) -> usize {
        self.byte_size()
    }
}
