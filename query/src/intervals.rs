//! Functions that make tables of tables: `interval_intersect`, `self_dur`, `asof_join`.
//!
//! Each takes tables as names or as queries, collects them within the memory limit, and goes through the rows of equal
//! keys in order of time.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::cast::as_int64_array;
use datafusion::common::{Result, ScalarValue, TableReference, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::execution::TaskContext;
use datafusion::execution::context::{SessionContext, SessionState};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::Expr;
use futures::{FutureExt, StreamExt};

use crate::errors::InText;
use crate::session::{queries_only, statements};
use crate::streamed::{Made, Maker};

/// Makes the functions known.
pub(crate) fn register(context: &SessionContext) {
    for function in [Function::Intersect, Function::SelfDuration, Function::AsOf] {
        context.register_udtf(function.name(), Arc::new(function));
    }
}

#[derive(Clone, Copy, Debug)]
enum Function {
    /// `interval_intersect(left, right [, key ...])`
    Intersect,
    /// `self_dur(intervals [, key ...])`
    SelfDuration,
    /// `asof_join(left, right [, key ...])`
    AsOf,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Self::Intersect => "interval_intersect",
            Self::SelfDuration => "self_dur",
            Self::AsOf => "asof_join",
        }
    }

    /// How many tables it takes.
    fn tables(self) -> usize {
        match self {
            Self::SelfDuration => 1,
            Self::Intersect | Self::AsOf => 2,
        }
    }
}

/// The names and texts that a function of tables takes.
///
/// # Errors
///
/// One is something else.
pub(crate) fn words(exprs: &[Expr], function: &str) -> Result<Vec<String>> {
    let words = exprs.iter().map(|expression| match expression {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            Ok(text.clone())
        }
        // A table, or a column that is a key.
        Expr::Column(column) => Ok(column.name.clone()),
        other => plan_err!("{function} takes names and texts, not {other}"),
    });
    words.collect()
}

/// The table that a text names, or the rows of the query that it is; and whether it is a name.
///
/// # Errors
///
/// It is neither.
pub(crate) fn table(context: &SessionContext, text: &str) -> Result<(DataFrame, bool)> {
    // Tables are known and views are planned, so nothing has to be waited for.
    let known = context.table(TableReference::bare(text)).now_or_never();
    if let Some(Ok(frame)) = known {
        return Ok((frame, true));
    }
    if !text.contains(char::is_whitespace) {
        return Err(InText::whole(text, format!("no table `{text}`")));
    }
    statements(text).map_err(|error| InText::query(text, &error))?;
    let planned = context.sql_with_options(text, queries_only());
    match planned.now_or_never() {
        Some(frame) => Ok((frame.map_err(|error| InText::query(text, &error))?, false)),
        None => plan_err!("`{text}` cannot be planned here"),
    }
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let mut texts = words(args.exprs(), self.name())?;
        let count = self.tables();
        if texts.len() < count {
            return plan_err!("{} needs {count} tables", self.name());
        }
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return plan_err!("{} cannot be used here", self.name());
        };
        let keys = texts.split_off(count);
        let context = SessionContext::new_with_state(state.clone());
        let mut sides = Vec::new();
        for text in &texts {
            sides.push(Side::new(&context, text, &keys, *self)?);
        }
        let schema = self.schema(&sides, &keys);
        let (function, made_schema) = (*self, Arc::clone(&schema));
        let make = move |task: Arc<TaskContext>| {
            let (sides, schema) = (sides.clone(), Arc::clone(&made_schema));
            async move {
                let consumer = MemoryConsumer::new(function.name());
                let reservation = consumer.register(task.memory_pool());
                let mut tables = Vec::new();
                for side in &sides {
                    tables.push(side.collect(&reservation).await?);
                }
                function.make(&tables, &sides, &schema, &reservation)
            }
            .boxed()
        };
        Ok(Arc::new(Made {
            name: self.name().to_owned(),
            schema,
            time: None,
            maker: Maker::Whole(Arc::new(make)),
        }))
    }
}

/// A table that a function takes.
#[derive(Clone)]
struct Side {
    frame: DataFrame,
    schema: SchemaRef,
    keys: Vec<usize>,
    /// The columns with the time, and the duration.
    time: usize,
    duration: Option<usize>,
}

impl Side {
    fn new(
        context: &SessionContext,
        text: &str,
        keys: &[String],
        function: Function,
    ) -> Result<Self> {
        let (frame, _) = table(context, text)?;
        // What is said never to be null may come out as if it could be.
        let fields = frame.schema().as_arrow().fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let find = |name: &str| schema.index_of(name).ok();
        let Some(time) = find("ts")
            .or_else(|| find("timestamp"))
            .or_else(|| find("_timestamp"))
        else {
            let problem = "neither `ts` nor `timestamp` is among the columns";
            return Err(InText::whole(text, problem.to_owned()));
        };
        let duration = find("dur");
        if duration.is_none() && !matches!(function, Function::AsOf) {
            return Err(InText::whole(text, "no column `dur`".to_owned()));
        }
        let mut positions = Vec::new();
        for key in keys {
            match find(key) {
                Some(position) => positions.push(position),
                None => {
                    let problem = format!("no column `{key}` in `{text}`");
                    return Err(InText::whole(key, problem));
                }
            }
        }
        Ok(Self {
            frame,
            schema,
            keys: positions,
            time,
            duration,
        })
    }

    /// All rows in one batch.
    async fn collect(&self, reservation: &MemoryReservation) -> Result<RecordBatch> {
        let mut stream = self.frame.clone().execute_stream().await?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            // Again as much when they are put together.
            reservation.try_grow(batch.get_array_memory_size().saturating_mul(2))?;
            // Plans may make texts of another layout than they say.
            let columns = batch.columns().iter().zip(self.schema.fields());
            let columns = columns.map(|(column, field)| cast(column, field.data_type()));
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let schema = Arc::clone(&self.schema);
            batches.push(RecordBatch::try_new_with_options(
                schema, columns, &options,
            )?);
        }
        Ok(concat_batches(&self.schema, &batches)?)
    }

    /// Columns but for one that is computed.
    fn without_self_duration(&self) -> impl Iterator<Item = usize> {
        let fields = self.schema.fields();
        (0..fields.len()).filter(|&at| fields[at].name() != "self_dur")
    }

    /// Columns that are neither keys nor times.
    fn others(&self, without_time: bool) -> impl Iterator<Item = usize> {
        let is_other = move |at: &usize| {
            !self.keys.contains(at)
                && !(without_time && (*at == self.time || Some(*at) == self.duration))
        };
        (0..self.schema.fields().len()).filter(is_other)
    }
}

impl Function {
    fn schema(self, sides: &[Side], keys: &[String]) -> SchemaRef {
        let field = |side: &Side, at: usize, name: &str| {
            Field::new(name, side.schema.field(at).data_type().clone(), true)
        };
        let left = &sides[0];
        let mut fields = Vec::new();
        match self {
            Self::Intersect => {
                fields.push(Field::new("ts", DataType::Int64, false));
                fields.push(Field::new("dur", DataType::Int64, false));
                fields.extend(
                    left.keys
                        .iter()
                        .zip(keys)
                        .map(|(&at, key)| field(left, at, key)),
                );
                for (number, side) in sides.iter().enumerate() {
                    let other = &sides[1 - number];
                    for at in side.others(true) {
                        let name = side.schema.field(at).name();
                        let is_in_both = other
                            .others(true)
                            .any(|at| other.schema.field(at).name() == name);
                        let name = free_name(&fields, name, is_in_both.then_some(number));
                        fields.push(field(side, at, &name));
                    }
                }
            }
            Self::SelfDuration => {
                let kept = left.without_self_duration();
                fields.extend(kept.map(|at| left.schema.field(at).clone()));
                fields.push(Field::new("self_dur", DataType::Int64, true));
            }
            Self::AsOf => {
                fields.extend(
                    left.schema
                        .fields()
                        .iter()
                        .map(|field| field.as_ref().clone()),
                );
                let right = &sides[1];
                for at in right.others(false) {
                    let name = free_name(&fields, right.schema.field(at).name(), None);
                    fields.push(field(right, at, &name));
                }
            }
        }
        Arc::new(Schema::new(fields))
    }

    fn make(
        self,
        tables: &[RecordBatch],
        sides: &[Side],
        schema: &SchemaRef,
        reservation: &MemoryReservation,
    ) -> Result<RecordBatch> {
        let groups = groups(tables, sides)?;
        let mut columns: Vec<ArrayRef> = Vec::new();
        match self {
            Self::Intersect => {
                let spans: Vec<_> = sides
                    .iter()
                    .zip(tables)
                    .map(|(side, table)| spans(side, table))
                    .collect::<Result<_>>()?;
                let mut pairs = Vec::new();
                for group in &groups {
                    intersect([&spans[0], &spans[1]], group, &mut pairs, reservation)?;
                }
                pairs.sort_unstable_by_key(|pair| (pair.begin, pair.left, pair.right));
                let rows = [
                    pairs.iter().map(|pair| pair.left).collect::<UInt32Array>(),
                    pairs.iter().map(|pair| pair.right).collect::<UInt32Array>(),
                ];
                columns.push(Arc::new(
                    pairs.iter().map(|pair| pair.begin).collect::<Int64Array>(),
                ));
                columns.push(Arc::new(
                    pairs
                        .iter()
                        .map(|pair| pair.duration)
                        .collect::<Int64Array>(),
                ));
                let mut add = |number: usize, at: usize| -> Result<()> {
                    let column = take(tables[number].column(at), &rows[number], None)?;
                    reservation.try_grow(column.get_array_memory_size())?;
                    columns.push(column);
                    Ok(())
                };
                sides[0].keys.iter().try_for_each(|&at| add(0, at))?;
                for (number, side) in sides.iter().enumerate() {
                    side.others(true).try_for_each(|at| add(number, at))?;
                }
            }
            Self::SelfDuration => {
                let spans = spans(&sides[0], &tables[0])?;
                let mut own: Vec<Option<i64>> = vec![None; tables[0].num_rows()];
                for group in groups {
                    self_durations(&spans, group.left, &mut own);
                }
                let kept = sides[0].without_self_duration();
                columns.extend(kept.map(|at| Arc::clone(tables[0].column(at))));
                columns.push(Arc::new(Int64Array::from(own)));
            }
            Self::AsOf => {
                let left = nanos(tables[0].column(sides[0].time))?;
                let right = nanos(tables[1].column(sides[1].time))?;
                let mut found: Vec<Option<u32>> = vec![None; tables[0].num_rows()];
                for group in &groups {
                    as_of(&left, &right, group, &mut found);
                }
                columns.extend(tables[0].columns().iter().cloned());
                let rows = UInt32Array::from(found);
                for at in sides[1].others(false) {
                    columns.push(take(tables[1].column(at), &rows, None)?);
                }
            }
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// A name that no field has: the column's own, or with a number behind it.
fn free_name(fields: &[Field], name: &str, number: Option<usize>) -> String {
    let is_taken = |name: &str| fields.iter().any(|field| field.name() == name);
    if number.is_none() && !is_taken(name) {
        return name.to_owned();
    }
    (number.unwrap_or(1)..)
        .map(|number| format!("{name}_{number}"))
        .find(|name| !is_taken(name))
        .unwrap_or_default()
}

/// Rows with the same keys.
#[derive(Debug, Default)]
struct Group {
    left: Vec<u32>,
    right: Vec<u32>,
}

/// The rows by their keys. Keys that are null are equal to nothing.
fn groups(tables: &[RecordBatch], sides: &[Side]) -> Result<Vec<Group>> {
    let key_columns = |number: usize| -> Result<Vec<ArrayRef>> {
        let keys = sides[0].keys.iter().zip(&sides[number].keys);
        keys.map(|(&first, &at)| {
            // The types of the first table, and texts as such.
            let data_type = match sides[0].schema.field(first).data_type() {
                DataType::Dictionary(_, value) => (**value).clone(),
                other => other.clone(),
            };
            Ok(cast(tables[number].column(at), &data_type)?)
        })
        .collect()
    };
    if sides[0].keys.is_empty() {
        let rows =
            |at: usize| (0..tables.get(at).map_or(0, RecordBatch::num_rows) as u32).collect();
        return Ok(vec![Group {
            left: rows(0),
            right: rows(1),
        }]);
    }
    let fields = key_columns(0)?
        .iter()
        .map(|column| SortField::new(column.data_type().clone()))
        .collect();
    let converter = RowConverter::new(fields)?;
    let mut numbers: HashMap<OwnedRow, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (number, _) in tables.iter().enumerate() {
        let columns = key_columns(number)?;
        let rows = converter.convert_columns(&columns)?;
        for (row, key) in rows.iter().enumerate() {
            if columns.iter().any(|column| column.is_null(row)) {
                continue;
            }
            let next = groups.len();
            let at = *numbers.entry(key.owned()).or_insert(next);
            if at == next {
                groups.push(Group::default());
            }
            match number {
                0 => groups[at].left.push(row as u32),
                _ => groups[at].right.push(row as u32),
            }
        }
    }
    Ok(groups)
}

/// A column of times or numbers, in nanoseconds.
fn nanos(array: &ArrayRef) -> Result<Int64Array> {
    let times = match array.data_type() {
        DataType::Timestamp(_, zone) => cast(
            array,
            &DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
        )?,
        _ => Arc::clone(array),
    };
    Ok(as_int64_array(&cast(&times, &DataType::Int64)?)?.clone())
}

/// When each row begins and ends; one without an end goes on for ever, one without a beginning is none.
fn spans(side: &Side, table: &RecordBatch) -> Result<Vec<Option<(i64, i64)>>> {
    let begins = nanos(table.column(side.time))?;
    let durations = nanos(table.column(side.duration.unwrap_or(side.time)))?;
    let spans = begins.iter().zip(&durations).map(|(begin, duration)| {
        let begin = begin?;
        Some(match duration {
            Some(duration) if duration >= 0 => (begin, begin.saturating_add(duration)),
            _ => (begin, i64::MAX),
        })
    });
    Ok(spans.collect())
}

/// What two intervals have in common.
struct Pair {
    left: u32,
    right: u32,
    begin: i64,
    duration: i64,
}

type Spans = [Option<(i64, i64)>];

/// Bytes of a pair, of the numbers of its rows, and of its times.
const PAIR_BYTES: usize = size_of::<Pair>() + 24;

/// Finds the pairs of a group, of which there may be very many: their memory is reserved first.
fn intersect(
    spans: [&Spans; 2],
    group: &Group,
    pairs: &mut Vec<Pair>,
    reservation: &MemoryReservation,
) -> Result<()> {
    let mut ahead: Vec<(i64, usize, u32)> = Vec::new();
    for (side, rows) in [&group.left, &group.right].into_iter().enumerate() {
        ahead.extend(
            rows.iter()
                .filter_map(|&row| Some((spans[side][row as usize]?.0, side, row))),
        );
    }
    ahead.sort_unstable();
    let mut open: [Vec<u32>; 2] = Default::default();
    for (begin, side, row) in ahead {
        let end = |side: usize, row: u32| spans[side][row as usize].map_or(begin, |span| span.1);
        let is_instant = end(side, row) == begin;
        let other = 1 - side;
        // An instant that has just begun meets what begins at the same time.
        let begins = |row: &u32| spans[other][*row as usize].map_or(begin, |span| span.0);
        open[other].retain(|row| end(other, *row) > begin || begins(row) == begin);
        for &with in &open[other] {
            let last = end(side, row).min(end(other, with));
            let (left, right) = if side == 0 { (row, with) } else { (with, row) };
            if last > begin || is_instant || end(other, with) == begin {
                if pairs.len() == pairs.capacity() {
                    let more = pairs.len().max(1024);
                    reservation.try_grow(more * PAIR_BYTES)?;
                    pairs.reserve_exact(more);
                }
                pairs.push(Pair {
                    left,
                    right,
                    begin,
                    duration: last.saturating_sub(begin),
                });
            }
        }
        open[side].push(row);
    }
    Ok(())
}

/// The duration of each interval without those directly within it.
fn self_durations(spans: &Spans, mut rows: Vec<u32>, own: &mut [Option<i64>]) {
    rows.retain(|&row| spans[row as usize].is_some());
    let span = |row: u32| spans[row as usize].unwrap_or_default();
    rows.sort_by_key(|&row| (span(row).0, std::cmp::Reverse(span(row).1), row));
    let mut open: Vec<u32> = Vec::new();
    for row in rows {
        let (begin, end) = span(row);
        while open.last().is_some_and(|&last| span(last).1 <= begin) {
            open.pop();
        }
        let duration = (end != i64::MAX).then(|| end - begin);
        own[row as usize] = duration;
        if let Some(&parent) = open.last() {
            let within = end.min(span(parent).1).saturating_sub(begin);
            let rest = &mut own[parent as usize];
            *rest = rest.map(|nanos| nanos.saturating_sub(within));
        }
        open.push(row);
    }
}

/// For each row on the left the last one on the right that is not later.
fn as_of(left: &Int64Array, right: &Int64Array, group: &Group, found: &mut [Option<u32>]) {
    let ordered = |times: &Int64Array, rows: &[u32]| {
        let mut rows: Vec<_> = rows
            .iter()
            .copied()
            .filter(|&row| times.is_valid(row as usize))
            .collect();
        rows.sort_by_key(|&row| times.value(row as usize));
        rows
    };
    let mut ahead = ordered(right, &group.right).into_iter().peekable();
    let mut last = None;
    for row in ordered(left, &group.left) {
        let time = left.value(row as usize);
        while let Some(next) = ahead.next_if(|&next| right.value(next as usize) <= time) {
            last = Some(next);
        }
        found[row as usize] = last;
    }
}
