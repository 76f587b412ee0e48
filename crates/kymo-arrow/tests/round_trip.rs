//! What is written is read again with the values that were given.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, RecordBatch};
use kymo::Timeline;
use kymo::timeline::Query;
use kymo_arrow::{Directory, Table, tables, write_stream};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn timeline(example: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(example);
    let opened = kymo::open::open(&[path], &Default::default());
    Timeline::new(opened.recordings)
}

/// The values of a column as text: arrays that hold the same values may be made in different ways.
fn lines(batches: &[RecordBatch], column: usize) -> Vec<String> {
    let rows = batches.iter().flat_map(|batch| {
        let column = batch.column(column);
        (0..batch.num_rows()).map(|row| text(column, row))
    });
    rows.collect()
}

fn text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".into();
    }
    if let Some(of) = array.as_dictionary_opt::<UInt32Type>() {
        return text(of.values(), of.key(row).unwrap());
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        let items = list.value(row);
        let items: Vec<_> = (0..items.len()).map(|item| text(&items, item)).collect();
        return format!("{items:?}");
    }
    if let Some(of) = array.as_struct_opt() {
        let members: Vec<_> = of
            .columns()
            .iter()
            .map(|member| text(member, row))
            .collect();
        return format!("{members:?}");
    }
    format!("{:?}", array.slice(row, 1))
}

#[test]
fn parquet_files_have_the_rows_of_the_recordings() {
    for example in ["lttng-small", "lttng-discarded", "rfc-small", "bitfield-be"] {
        let timeline = timeline(example);
        let place = tempfile::tempdir().unwrap();
        let mut directory = Directory::new(place.path(), 2).unwrap();
        let mut given: HashMap<Table, Vec<RecordBatch>> = HashMap::new();
        let mut take = |table: &Table, batch: RecordBatch| {
            given.entry(table.clone()).or_default().push(batch.clone());
            directory.write(table, batch)
        };
        tables(&timeline, &Query::default(), &mut take, &mut |_| ()).unwrap();
        let written = directory.finish().unwrap();
        assert_eq!(written.len(), given.len(), "{example}");
        let has_losses = matches!(example, "lttng-discarded" | "rfc-small");
        assert_eq!(given.contains_key(&Table::Losses), has_losses, "{example}");
        let mut all: Vec<Vec<Vec<String>>> = Vec::new();
        for batches in given.values() {
            let columns = batches[0].num_columns();
            all.push((0..columns).map(|column| lines(batches, column)).collect());
        }
        for file in written {
            let found = File::open(place.path().join(&file.path)).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(found).unwrap();
            let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
            let columns = batches[0].num_columns();
            let found: Vec<_> = (0..columns).map(|column| lines(&batches, column)).collect();
            assert_eq!(found[0].len() as u64, file.rows);
            assert!(all.contains(&found), "{example}: {}", file.path.display());
        }
    }
}

#[test]
fn a_stream_has_all_rows() {
    let timeline = timeline("lttng-small");
    let mut out = Vec::new();
    let rows = write_stream(&timeline, &Query::default(), &mut out, &mut |_| ()).unwrap();
    let reader = arrow_ipc::reader::StreamReader::try_new(&out[..], None).unwrap();
    assert_eq!(reader.schema().field(4).name(), "event");
    let found: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((found as u64, rows), (3000, 3000));
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let timeline = timeline("lttng-small");
    let mut directory = Directory::new(&place.path().join("none\0"), 2).unwrap();
    let mut take = |table: &Table, batch| directory.write(table, batch);
    let done = tables(&timeline, &Query::default(), &mut take, &mut |_| ());
    assert!(done.is_err() || directory.finish().is_err());
}
