//! Rows of a timeline as batches of a table of events.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::types::UInt32Type;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, RecordBatch, RecordBatchOptions, UInt32Array,
    new_null_array,
};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::cast::as_timestamp_nanosecond_array;
use kymo::timeline::{Batch, NoticeKind, Query, RowTracks};
use kymo_arrow::{array, data_type};
use kymo_model::batch::ColumnType;

use crate::source::{EventColumn, EventTable, Own, external};

/// Rows of a stream are not in order of time, though a plan relies on it.
#[derive(Debug)]
pub(crate) struct OutOfOrder;

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events of a stream are not in order of time")
    }
}

impl std::error::Error for OutOfOrder {}

/// Rows that are read, and how they become batches.
pub(crate) struct Rows {
    pub(crate) table: Arc<EventTable>,
    projection: Vec<usize>,
    schema: SchemaRef,
    pub(crate) query: Query,
    /// Whether rows without a time are left out.
    pub(crate) needs_time: bool,
    /// Whether rows have to be in order of time.
    pub(crate) is_ordered: bool,
    /// Whether rows of other classes may come, and are left out.
    pub(crate) drops_rows: bool,
    /// The time of the last row.
    last: i64,
    /// Rows without a time, which come behind all others.
    timeless: Vec<RecordBatch>,
}

impl Rows {
    pub(crate) fn new(table: Arc<EventTable>, projection: Vec<usize>, schema: &SchemaRef) -> Self {
        let (mut fields, mut packets) = (Vec::new(), Vec::new());
        for &column in &projection {
            match &table.columns[column] {
                EventColumn::Field(name) => fields.push(Arc::clone(name)),
                EventColumn::Packet(name) => packets.push(Arc::clone(name)),
                EventColumn::Own(_) => {}
            }
        }
        Self {
            query: table.query(&fields, &packets),
            drops_rows: table.has_nameless && table.class.is_some(),
            table,
            projection,
            schema: Arc::clone(schema),
            needs_time: false,
            is_ordered: false,
            last: i64::MIN,
            timeless: Vec::new(),
        }
    }

    /// Hands over all rows, and notices, which are not rows; `take` returns whether it wants more.
    ///
    /// # Errors
    ///
    /// The query is wrong, or rows are not in order though they have to be.
    pub(crate) fn run(
        &mut self,
        notice: impl Fn(&NoticeKind),
        mut take: impl FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let table = Arc::clone(&self.table);
        let timeline = &table.source.events;
        let has_tracks = self.has(Own::Track) && !table.is_plain;
        let mut tracks = match has_tracks {
            true => Some(RowTracks::new(timeline, &mut self.query).map_err(external)?),
            false => None,
        };
        let query = self.query.clone();
        let mut result = Ok(());
        let each = |batch: Batch| {
            batch.notices().iter().for_each(|met| notice(&met.kind));
            if batch.is_empty() {
                return ControlFlow::Continue(());
            }
            match self.batch(batch, tracks.as_mut()) {
                Ok(batch) => match batch.num_rows() == 0 || take(batch) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                },
                Err(error) => {
                    result = Err(error);
                    ControlFlow::Break(())
                }
            }
        };
        timeline.for_each_batch(&query, each).map_err(external)?;
        result?;
        for batch in std::mem::take(&mut self.timeless) {
            if !take(batch) {
                break;
            }
        }
        Ok(())
    }

    fn has(&self, own: Own) -> bool {
        let mut columns = self.projection.iter();
        columns.any(|&column| self.table.columns[column] == EventColumn::Own(own))
    }

    fn batch(&mut self, batch: Batch, tracks: Option<&mut RowTracks<'_>>) -> Result<RecordBatch> {
        let table = &self.table;
        let rows = batch.len();
        let mut own: Vec<(Own, ArrayRef)> = Vec::new();
        for &column in &self.projection {
            if let EventColumn::Own(kind) = table.columns[column]
                && let Some(array) = own_column(table, kind, &batch, tracks.as_deref())?
            {
                own.push((kind, array));
            }
        }
        if let Some(tracks) = tracks {
            own.push((Own::Track, track_names(&batch, tracks)?));
        }
        let keep = self.drops_rows.then(|| kept(table, &batch));
        let schema = Arc::clone(batch.schema());
        let (times, ticks, columns) = batch.into_columns();
        let judges_time = self.needs_time || (self.is_ordered && table.has_clocks);
        let has_timeless = times.validity.is_some();
        let times = match judges_time || self.has(Own::Timestamp) {
            true => {
                let at = table
                    .columns
                    .iter()
                    .position(|column| *column == EventColumn::Own(Own::Timestamp));
                let field = table.schema.field(at.unwrap_or_default());
                Some(array(times, field.data_type())?)
            }
            false => None,
        };
        let mut ticks = Some(ticks);
        let mut columns: Vec<_> = columns.into_iter().map(Some).collect();
        let mut arrays = Vec::with_capacity(self.projection.len());
        for (output, &column) in self.projection.iter().enumerate() {
            let field = self.schema.field(output);
            arrays.push(match &table.columns[column] {
                EventColumn::Own(Own::Timestamp) => match &times {
                    Some(times) => Arc::clone(times),
                    None => new_null_array(field.data_type(), rows),
                },
                EventColumn::Own(Own::Ticks) => match ticks.take() {
                    Some(ticks) => array(ticks, &DataType::UInt64)?,
                    None => new_null_array(field.data_type(), rows),
                },
                EventColumn::Own(wanted) => match own.iter().find(|own| own.0 == *wanted) {
                    Some((_, array)) => Arc::clone(array),
                    None => new_null_array(field.data_type(), rows),
                },
                EventColumn::Field(name) | EventColumn::Packet(name) => {
                    match position(&schema, name)
                        .and_then(|at| Some((at, columns.get_mut(at)?.take()?)))
                    {
                        Some((at, values)) => {
                            let data_type = data_type(&schema[at].data_type);
                            let values = array(values, &data_type)?;
                            match data_type == *field.data_type() {
                                true => values,
                                false => cast(&values, field.data_type())?,
                            }
                        }
                        None => new_null_array(field.data_type(), rows),
                    }
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let mut batch =
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        let mut times = times;
        if let Some(keep) = keep {
            batch = filter_record_batch(&batch, &keep)?;
            times = match times {
                Some(times) => Some(datafusion::arrow::compute::filter(&times, &keep)?),
                None => None,
            };
        }
        match times {
            Some(times) if judges_time => self.judge(batch, &times, has_timeless),
            _ => Ok(batch),
        }
    }

    /// Leaves rows without a time out, or for later, and makes sure that the others are in order.
    fn judge(
        &mut self,
        batch: RecordBatch,
        times: &ArrayRef,
        has_timeless: bool,
    ) -> Result<RecordBatch> {
        let times = as_timestamp_nanosecond_array(times)?;
        if self.is_ordered {
            for time in times.iter().flatten() {
                if time < self.last {
                    return Err(external(OutOfOrder));
                }
                self.last = time;
            }
        }
        if !has_timeless || times.null_count() == 0 {
            return Ok(batch);
        }
        let has_time: BooleanArray = times.iter().map(|time| Some(time.is_some())).collect();
        if !self.needs_time {
            let timeless = datafusion::arrow::compute::not(&has_time)?;
            self.timeless.push(filter_record_batch(&batch, &timeless)?);
        }
        Ok(filter_record_batch(&batch, &has_time)?)
    }
}

fn position(schema: &[ColumnType], name: &str) -> Option<usize> {
    schema.iter().position(|column| *column.name == *name)
}

/// Which rows are of classes of the table.
fn kept(table: &EventTable, batch: &Batch) -> BooleanArray {
    let mut kept = Vec::with_capacity(batch.len());
    for (rows, id) in batch.runs() {
        let classes = &table.classes[id.recording as usize];
        kept.extend(
            batch.classes()[rows]
                .iter()
                .map(|&class| classes[class as usize].is_some()),
        );
    }
    kept.into()
}

/// A column that is not a field; `None` for times, and for tracks that are found otherwise.
fn own_column(
    table: &EventTable,
    own: Own,
    batch: &Batch,
    tracks: Option<&RowTracks<'_>>,
) -> Result<Option<ArrayRef>> {
    let mut keys: Vec<u32> = Vec::with_capacity(batch.len());
    let names = match own {
        Own::Timestamp | Own::Ticks => return Ok(None),
        Own::Track if tracks.is_some() => return Ok(None),
        Own::Stream => {
            for (rows, id) in batch.runs() {
                keys.resize(keys.len() + rows.len(), id.stream);
            }
            return Ok(Some(Arc::new(UInt32Array::from(keys))));
        }
        Own::Recording => {
            for (rows, id) in batch.runs() {
                keys.resize(keys.len() + rows.len(), id.recording);
            }
            &table.paths
        }
        Own::Track => {
            for (rows, id) in batch.runs() {
                let track = table.first_tracks[id.recording as usize] + id.stream;
                keys.resize(keys.len() + rows.len(), track);
            }
            &table.tracks
        }
        Own::Event => {
            for (rows, id) in batch.runs() {
                let classes = &table.classes[id.recording as usize];
                let of_rows = batch.classes()[rows].iter();
                keys.extend(of_rows.map(|&class| classes[class as usize].unwrap_or_default()));
            }
            &table.names
        }
    };
    let keys = UInt32Array::from(keys);
    Ok(Some(Arc::new(DictionaryArray::<UInt32Type>::try_new(
        keys,
        Arc::clone(names),
    )?)))
}

/// The tracks of rows.
fn track_names(batch: &Batch, tracks: &mut RowTracks<'_>) -> Result<ArrayRef> {
    use datafusion::arrow::array::StringDictionaryBuilder;
    let mut builder = StringDictionaryBuilder::<UInt32Type>::new();
    let mut names: std::collections::HashMap<(u32, u32), String> = std::collections::HashMap::new();
    for row in 0..batch.len() {
        let recording = batch.id(row).recording;
        let track = tracks.of(batch, row).first().map(|entry| entry.track());
        let Some(track) = track else {
            builder.append_null();
            continue;
        };
        let name = names.entry((recording, track)).or_insert_with(|| {
            let known = tracks.tracks(recording as usize);
            known[track as usize].path.to_string()
        });
        builder.append_value(name.as_str());
    }
    Ok(Arc::new(builder.finish()))
}
