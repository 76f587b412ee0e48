//! Rows of all classes in one table, in Arrow's stream format.

use std::io::Write;
use std::ops::ControlFlow;

use arrow_ipc::writer;
use kymo::timeline::{Batch, Query, Timeline};

use crate::{Error, EventTable};

/// Writes all rows that a query selects, merged by time, with all fields: a field whose type differs between
/// classes becomes the wider one, and rows of classes without it are null. `look` gets each batch before it is written.
///
/// # Errors
///
/// The query is wrong, or the output cannot be written.
pub fn write_stream(
    timeline: &Timeline,
    query: &Query,
    out: impl Write,
    look: &mut dyn FnMut(&Batch),
) -> Result<u64, Error> {
    let table = EventTable::new(timeline.clone(), query.clone())?;
    let mut writer = writer::StreamWriter::try_new(out, table.schema())?;
    let mut failed = None;
    let mut rows = 0;
    timeline.for_each_batch(table.query(), |batch| {
        look(&batch);
        rows += batch.len() as u64;
        let written = table
            .record_batch(batch)
            .and_then(|batch| Ok(writer.write(&batch)?));
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
