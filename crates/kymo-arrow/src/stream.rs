//! Rows of all classes in one table, in Arrow's stream format.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt32Array};
use arrow_ipc::writer;
use arrow_schema::{DataType, SchemaRef};
use kymo::timeline::{Batch, Columns, Notice, Query, Shape, Timeline};
use kymo_model::Recording;

use crate::tables::{class_name, mixed_schema, paths, texts};
use crate::{Error, array, record_batch};

/// Writes all rows that a query wants, merged by time, with all fields: a field whose type differs between
/// classes becomes the wider one, and rows of classes without it are null.
///
/// # Errors
///
/// The query is wrong, or the output cannot be written.
pub fn write_stream(
    timeline: &Timeline,
    query: &Query,
    out: impl Write,
    notice: &mut dyn FnMut(&Notice),
) -> Result<u64, Error> {
    let mut query = query.clone();
    query.columns = Columns::All;
    query.shape = Shape::Mixed;
    let schema = mixed_schema(timeline, &timeline.schema(&query)?);
    let mut writer = writer::StreamWriter::try_new(out, &schema)?;
    let mut failed = None;
    let mut rows = 0;
    timeline.for_each_batch(&query, |batch| {
        batch.notices().iter().for_each(&mut *notice);
        rows += batch.len() as u64;
        let written =
            mixed_batch(timeline, &schema, batch).and_then(|batch| Ok(writer.write(&batch)?));
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    writer.finish()?;
    Ok(rows)
}

/// A batch of rows of any classes.
fn mixed_batch(
    timeline: &Timeline,
    schema: &SchemaRef,
    batch: Batch,
) -> Result<arrow_array::RecordBatch, Error> {
    let rows = batch.len();
    let recordings = timeline.recordings();
    let ids: Vec<_> = (0..rows).map(|row| batch.id(row)).collect();
    let events: StringArray = ids
        .iter()
        .zip(batch.classes())
        .map(|(id, &class)| {
            let classes = recordings[id.recording as usize].event_classes();
            Some(class_name(&classes[class as usize]))
        })
        .collect();
    let streams: UInt32Array = ids.iter().map(|id| id.stream).collect::<Vec<_>>().into();
    let keys = ids.iter().map(|id| Some(id.recording)).collect();
    let names = texts(keys, &paths(timeline))?;
    let (times, ticks, columns) = batch.into_columns();
    let first: Vec<ArrayRef> = vec![
        array(times, schema.field(0).data_type())?,
        array(ticks, &DataType::UInt64)?,
        Arc::new(streams),
        names,
        Arc::new(events),
    ];
    Ok(record_batch(schema, first, columns)?)
}
