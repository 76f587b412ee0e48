//! Columns that are filled while events are decoded.

use std::sync::Arc;

use super::column::{Column, ColumnData, ColumnType};
use super::deep::{self, Part, Text};
use super::wanted::{ColumnSource, WantedColumn, members};
use crate::targets::{Elements, Targets};
use crate::{FieldId, Kind, Labels, Schema, Value};

/// Where the value of a field goes.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The column, and the way to it through members and items.
    path: Vec<Step>,
    /// The labels of the value, and not the value.
    labels: Option<Labeled>,
    /// Whether it is a column, of which each row has one value at most: the first.
    is_column: bool,
    /// What it is in a text, which goes there when it is whole.
    part: Option<Part>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Column(usize),
    Member(usize),
    Items,
}

/// What has labels.
#[derive(Clone, Debug)]
pub(super) enum Labeled {
    Values(Arc<Labels>),
    /// The bits of each flag.
    Flags(Vec<u64>),
}

/// The rows of [`Columns`], which several of them can [fill](Columns::swap_rows) in turn.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(super) columns: Vec<Column>,
    rows: usize,
    pub(super) replaced: u64,
}

impl Table {
    /// No rows, of columns of these types.
    pub fn new(schema: &[ColumnType]) -> Self {
        Self {
            columns: schema
                .iter()
                .map(|column| Column::new(&column.data_type))
                .collect(),
            ..Self::default()
        }
    }
}

/// Columns that are filled from the events of one class: a [`Visitor`](crate::Visitor) whose values become rows.
///
/// A row begins where the one before has [ended](Self::end_row). A column that got no value in a row is
/// null there.
///
/// ```
/// use kymo_model::batch::{Columns, all_columns};
/// use kymo_model::{Base, Kind, Schema, Scope, Value, Visitor};
///
/// let mut schema = Schema::new();
/// let payload = schema.push_root(Scope::Payload, Kind::Struct);
/// let size = Kind::Uint { bits: 16, base: Base::Decimal, labels: None };
/// let size = schema.push_child(payload, Some("size".into()), size);
///
/// let mut columns = Columns::new(&schema, &all_columns(&schema));
/// for value in [60, 1500] {
///     columns.uint(size, value);
///     columns.end_row();
/// }
/// assert_eq!(columns.value(0, 1), Value::Uint(1500));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub(super) table: Box<Table>,
    pub(super) targets: Targets<Target>,
    /// For each field: 0, or 1 above the position of the one column that has its value, at most once in an event,
    /// and nothing else of the event.
    direct: Vec<u32>,
    /// Number of columns that were filled so in the row in hand, and of those that rows fill.
    filled: usize,
    to_fill: usize,
    /// For each column whether its values come apart from the rows: [shared](Self::share) or
    /// [gathered](Self::gather).
    apart: Vec<bool>,
    /// Whether texts stay as they are.
    pub(super) raw: bool,
    /// Texts of what is nested deeply, in the making.
    pub(super) deep: Vec<Text>,
}

impl Columns {
    /// Columns of the events of a class with this schema.
    ///
    /// # Panics
    ///
    /// If a field is not of this schema.
    pub fn new(schema: &Schema, wanted: &[WantedColumn]) -> Self {
        let mut columns = Self {
            targets: Targets::new(schema),
            direct: vec![0; schema.fields().len()],
            ..Self::default()
        };
        for (position, wish) in wanted.iter().enumerate() {
            let column = Column::new(&wish.column.data_type);
            columns.table.columns.push(column);
            let is_apart = matches!(wish.source, ColumnSource::Shared | ColumnSource::Gathered);
            columns.apart.push(is_apart);
            let path = vec![Step::Column(position)];
            match &wish.source {
                ColumnSource::None | ColumnSource::Shared | ColumnSource::Gathered => {}
                ColumnSource::Fields(picks) => {
                    for pick in picks {
                        let elements = columns.targets.elements(schema, pick);
                        columns.add(schema, (pick.field, 0), path.clone(), &elements, true);
                    }
                }
                ColumnSource::Labels(pick) => {
                    let elements = columns.targets.elements(schema, pick);
                    columns.add_labels(schema, pick.field, path, &elements, true);
                }
            }
        }
        columns.to_fill = columns.apart.iter().filter(|&&apart| !apart).count();
        for (position, wish) in wanted.iter().enumerate() {
            if let ColumnSource::Fields(picks) = &wish.source
                && let [pick] = &picks[..]
                && is_single(schema, pick.field)
                && columns.targets.hits(pick.field).count() == 1
            {
                columns.direct[pick.field.index()] = position as u32 + 1;
            }
        }
        columns
    }

    /// Lets the values of a field, and of all that is in it, go to a place.
    fn add(
        &mut self,
        schema: &Schema,
        (field, level): (FieldId, usize),
        path: Vec<Step>,
        elements: &Elements,
        is_column: bool,
    ) {
        if deep::is_text(schema, field, level) {
            for (field, part) in deep::parts(schema, field, self.deep.len()) {
                let target = Target {
                    path: path.clone(),
                    labels: None,
                    is_column,
                    part: Some(part),
                };
                self.targets.push(field, elements.clone(), target);
            }
            self.deep.push(Text::default());
            return;
        }
        let info = schema.field(field);
        if matches!(info.kind, Kind::Struct | Kind::Variant) {
            for (position, member) in members(schema, field, level).into_iter().enumerate() {
                let mut path = path.clone();
                path.push(Step::Member(position));
                match member.is_labels {
                    true => self.add_labels(schema, member.field, path, elements, false),
                    false => self.add(schema, (member.field, level + 1), path, elements, false),
                }
            }
        } else {
            for &child in &info.children {
                let mut path = path.clone();
                let is_array = matches!(info.kind, Kind::Array { .. });
                if is_array {
                    path.push(Step::Items);
                }
                // What an optional holds has its place.
                self.add(
                    schema,
                    (child, level + 1),
                    path,
                    elements,
                    is_column && !is_array,
                );
            }
        }
        let target = Target {
            path,
            labels: None,
            is_column,
            part: None,
        };
        self.targets.push(field, elements.clone(), target);
    }

    /// Lets the labels of a field, which [has some](super::labels_type), go to a place.
    fn add_labels(
        &mut self,
        schema: &Schema,
        field: FieldId,
        mut path: Vec<Step>,
        elements: &Elements,
        is_column: bool,
    ) {
        let info = schema.field(field);
        let labels = match &info.kind {
            Kind::Uint { labels, .. } | Kind::Sint { labels, .. } => {
                labels.clone().map(Labeled::Values)
            }
            Kind::BitMap { flags, .. } => Some(Labeled::Flags(
                flags.iter().map(crate::Flag::bits).collect(),
            )),
            _ => None,
        };
        // The end of an array ends its list, and an optional that is absent is null.
        let target = Target {
            path: path.clone(),
            labels,
            is_column,
            part: None,
        };
        self.targets.push(field, elements.clone(), target);
        let is_array = matches!(info.kind, Kind::Array { .. });
        if is_array {
            path.push(Step::Items);
        }
        for &child in &info.children {
            let path = path.clone();
            self.add_labels(schema, child, path, elements, is_column && !is_array);
        }
    }

    /// Keeps the bytes of texts as they are, UTF-8 or not: for those who look at the values themselves and hand
    /// out no columns.
    #[must_use]
    pub fn with_raw_texts(mut self) -> Self {
        self.raw = true;
        self
    }

    /// The columns, in the order in which they were wanted. All have as many rows once a row has ended.
    pub fn columns(&self) -> &[Column] {
        &self.table.columns
    }

    /// The columns, without a copy.
    pub fn into_columns(self) -> Vec<Column> {
        self.table.columns
    }

    /// The fields that it looks at: those of the columns, and those that determine which of their elements are
    /// meant. Sorted.
    pub fn fields(&self) -> Vec<FieldId> {
        self.targets.fields()
    }

    /// Number of rows that have ended.
    #[inline]
    pub fn rows(&self) -> usize {
        self.table.rows
    }

    /// How many texts had something that is not UTF-8, which was replaced by U+FFFD.
    pub fn replaced(&self) -> u64 {
        self.table.replaced
    }

    /// The value of a column in a row.
    ///
    /// # Panics
    ///
    /// If the column does not exist.
    #[inline]
    pub fn value(&self, column: usize, row: usize) -> Value<'_> {
        self.table.columns[column].value(row)
    }

    /// Gives the row in hand a value that is in no field of the event, unless it has one.
    #[inline]
    pub fn put(&mut self, column: usize, value: Value<'_>) {
        if self.table.columns[column].len() > self.table.rows {
            return;
        }
        self.filled += 1;
        self.push(column, value);
    }

    /// Appends a value to a column.
    #[inline]
    fn push(&mut self, column: usize, value: Value<'_>) {
        let Table {
            columns, replaced, ..
        } = &mut *self.table;
        let column = &mut columns[column];
        match value {
            Value::Uint(value) | Value::Bits(value) => column.push_uint(value),
            Value::Sint(value) => column.push_sint(value),
            Value::Float(value) => column.push_float(value),
            Value::Bool(value) => column.push_bool(value),
            Value::Text(text) if self.raw => column.push_raw_text(text),
            Value::Text(text) => *replaced += u64::from(column.push_text(text)),
            Value::Blob(bytes) => column.push_bytes(bytes),
            Value::Missing | Value::Array(_) | Value::Compound => column.push_null(),
        }
    }

    /// Gives all rows the same value in a column that is [`Shared`](ColumnSource::Shared): once, before they are
    /// [taken](Self::take).
    pub fn share(&mut self, column: usize, value: Value<'_>) {
        let (rows, before) = (self.table.rows, self.table.replaced);
        if rows > 0 {
            self.push(column, value);
            self.table.columns[column].repeat(rows);
            let once = self.table.replaced - before;
            self.table.replaced = before + once * rows as u64;
        }
    }

    /// Ends the row in hand: columns that got no value are null.
    #[inline]
    pub fn end_row(&mut self) {
        self.table.rows += 1;
        if std::mem::take(&mut self.filled) != self.to_fill {
            self.fill_with_null();
        }
    }

    fn fill_with_null(&mut self) {
        let columns = self.table.columns.iter_mut().zip(&self.apart);
        for (column, is_apart) in columns {
            if !is_apart && column.len() < self.table.rows {
                column.push_null();
            }
        }
    }

    /// Adds rows without a value in the columns that rows fill.
    pub fn add_rows(&mut self, rows: usize) {
        self.table.rows += rows;
        let columns = self.table.columns.iter_mut().zip(&self.apart);
        for (column, _) in columns.filter(|(_, is_apart)| !**is_apart) {
            column.push_nulls(rows);
        }
    }

    /// Forgets the row in hand, of which an event has given values before it turned out to be
    /// damaged or not wanted.
    pub fn drop_row(&mut self) {
        self.deep.iter_mut().for_each(Text::clear);
        self.truncate(self.table.rows);
    }

    /// Keeps the first rows only.
    pub fn truncate(&mut self, rows: usize) {
        self.filled = 0;
        let table = &mut *self.table;
        table.rows = table.rows.min(rows);
        let rows = table.rows;
        let columns = table.columns.iter_mut();
        columns.for_each(|column| column.truncate(rows));
    }

    /// Hands out the columns and the number of texts of which something was [replaced](Self::replaced), and goes on
    /// without rows.
    pub fn take(&mut self) -> (Vec<Column>, u64) {
        let empty = self.table.columns.iter().map(Column::empty_like).collect();
        let table = Table {
            columns: empty,
            ..Table::default()
        };
        let taken = std::mem::replace(&mut *self.table, table);
        (taken.columns, taken.replaced)
    }

    /// Exchanges the rows for others, of columns of the same types: so that events of several classes can
    /// fill the same columns.
    #[inline]
    pub fn swap_rows(&mut self, rows: &mut Box<Table>) {
        std::mem::swap(&mut self.table, rows);
    }

    /// The bytes that the columns hold.
    pub fn byte_size(&self) -> usize {
        self.table.columns.iter().map(Column::byte_size).sum()
    }

    /// The one column that has the value of a field, which comes now; `None` if it is not as simple as that.
    #[inline(always)]
    pub(super) fn direct(&mut self, field: FieldId) -> Option<(&mut Column, &mut u64)> {
        let direct = *self.direct.get(field.index())? as usize;
        let table = &mut *self.table;
        let column = table.columns.get_mut(direct.wrapping_sub(1))?;
        self.filled += 1;
        Some((column, &mut table.replaced))
    }

    /// The items that all values of an array's element go to; `None` if it is not as simple as that.
    #[inline]
    pub(super) fn items(&mut self, field: FieldId) -> Option<&mut Column> {
        let target = self.targets.only(field)?;
        let is_simple = !target.is_column && target.labels.is_none() && target.part.is_none();
        is_simple.then(|| go(&mut self.table.columns, &target.path))
    }

    /// Lets a value go to the columns that its field has by `push`, and to texts by `write`.
    #[inline(always)]
    pub(super) fn at(
        &mut self,
        field: FieldId,
        push: impl Fn(&mut Column, &Option<Labeled>) -> u64,
        write: impl Fn(&mut Text),
    ) {
        if let Some((column, replaced)) = self.direct(field) {
            *replaced += push(column, &None);
        } else if self.targets.has(field) {
            self.targets.count(field);
            self.act(field, push, |text, part| text.value(part, &write));
        }
    }

    /// Does something to all columns that a field has, which was counted, and to the texts that it is in.
    #[inline]
    pub(super) fn act(
        &mut self,
        field: FieldId,
        push: impl Fn(&mut Column, &Option<Labeled>) -> u64,
        write: impl Fn(&mut Text, &Part),
    ) {
        for target in self.targets.hits(field) {
            if let Some(part) = &target.part {
                write(&mut self.deep[part.text], part);
                continue;
            }
            let column = go(&mut self.table.columns, &target.path);
            if !target.is_column || column.len() == self.table.rows {
                self.table.replaced += push(column, &target.labels);
            }
        }
    }

    /// Begins a compound, which is counted, in the texts that it is in.
    #[inline]
    pub(super) fn begin(&mut self, field: FieldId, bracket: &[u8]) {
        self.targets.count(field);
        if !self.deep.is_empty() {
            self.act(field, |_, _| 0, |text, part| text.begin(part, bracket));
        }
    }

    /// Ends what wraps a value in the texts that it is in; a text never begins with it.
    pub(super) fn end_text(&mut self, field: FieldId) {
        let wrapped = |text: &mut Text, _: &Part| {
            text.end(b"");
        };
        self.act(field, |_, _| 0, wrapped);
    }

    /// Ends a compound in all columns that it is in. A text that is whole goes to its column.
    pub(super) fn end(&mut self, field: FieldId, bracket: &[u8]) {
        for target in self.targets.hits(field) {
            let mut deep = match &target.part {
                Some(part) => Some(&mut self.deep[part.text]),
                None => None,
            };
            if deep.as_mut().is_some_and(|text| !text.end(bracket)) {
                continue;
            }
            let column = go(&mut self.table.columns, &target.path);
            if !target.is_column || column.len() == self.table.rows {
                match &deep {
                    Some(text) => {
                        column.push_text(text.line.as_bytes());
                        self.table.replaced += text.replaced;
                    }
                    None => column.end_compound(),
                }
            }
            if let Some(text) = deep {
                text.clear();
            }
        }
    }
}

/// Whether a field has nothing in it, and comes at most once in an event.
fn is_single(schema: &Schema, field: FieldId) -> bool {
    let parent = |&field: &FieldId| schema.field(field).parent;
    let mut outer = std::iter::successors(parent(&field), parent);
    let is_array = |field: FieldId| matches!(schema.field(field).kind, Kind::Array { .. });
    schema.field(field).children.is_empty() && !is_array(field) && !outer.any(is_array)
}

/// Goes the way to a column.
#[inline]
fn go<'c>(columns: &'c mut [Column], path: &[Step]) -> &'c mut Column {
    let Some((&Step::Column(first), rest)) = path.split_first() else {
        unreachable!("paths begin with a column");
    };
    let mut column = &mut columns[first];
    for step in rest {
        column = match (step, &mut column.data) {
            (&Step::Member(member), ColumnData::Struct { members, .. }) => &mut members[member],
            (Step::Items, ColumnData::List { items, .. }) => items,
            _ => unreachable!("a path follows the type of its column"),
        };
    }
    column
}
