//! What is written is read again by Parquet's own reader, and statistics are those of a slow model.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, FixedSizeBinaryBuilder, ListBuilder, StringBuilder, StringDictionaryBuilder,
};
use arrow_array::types::*;
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StructArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Encoding;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use proptest::prelude::*;
use proptest::test_runner::TestRng;

use super::*;

/// A source of values that are the same for the same seed.
struct Numbers(TestRng);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Numbers of which few or many differ, that ascend, or are the same.
    fn number(&mut self, shape: u64, row: usize) -> u64 {
        match shape % 5 {
            0 => 42,
            1 => self.below(7).wrapping_sub(3),
            2 => (row as u64 * 3).wrapping_sub(20),
            3 => self.0.next_u64(),
            _ => (row as u64 / 50) % 3,
        }
    }

    fn text(&mut self, shape: u64, row: usize) -> String {
        match shape % 4 {
            0 => "swapper/0".to_owned(),
            1 => ["", "a", "kworker/1:2", "ä€𝄞"][self.below(4) as usize].to_owned(),
            2 => format!("task {row}"),
            _ => "é".repeat(self.below(60) as usize) + &row.to_string(),
        }
    }
}

/// An array of a type; a percentage of it is null.
fn array(data_type: &DataType, rows: usize, nulls: u64, numbers: &mut Numbers) -> ArrayRef {
    let shape = numbers.below(20);
    macro_rules! primitive {
        ($array:ident, $value:expr) => {
            Arc::new($array::from_iter((0..rows).map(|row| {
                let number = numbers.number(shape, row);
                (!numbers.is(nulls)).then(|| $value(number))
            })))
        };
    }
    let validity = |numbers: &mut Numbers| -> Option<NullBuffer> {
        (nulls > 0).then(|| (0..rows).map(|_| !numbers.is(nulls)).collect())
    };
    match data_type {
        DataType::Boolean => primitive!(BooleanArray, |number| number % 2 == 0),
        DataType::UInt8 => primitive!(UInt8Array, |number| number as u8),
        DataType::UInt16 => primitive!(UInt16Array, |number| number as u16),
        DataType::UInt32 => primitive!(UInt32Array, |number| number as u32),
        DataType::UInt64 => primitive!(UInt64Array, |number| number),
        DataType::Int8 => primitive!(Int8Array, |number| number as i8),
        DataType::Int16 => primitive!(Int16Array, |number| number as i16),
        DataType::Int32 => primitive!(Int32Array, |number| number as i32),
        DataType::Int64 => primitive!(Int64Array, |number| number as i64),
        DataType::Timestamp(_, zone) => {
            let times = (0..rows).map(|row| {
                let number = numbers.number(shape, row);
                (!numbers.is(nulls)).then_some(number as i64)
            });
            Arc::new(TimestampNanosecondArray::from_iter(times).with_timezone_opt(zone.clone()))
        }
        DataType::Float32 => primitive!(Float32Array, |number| match number {
            42 => -0.0,
            number if number % 11 == 5 => f32::NAN,
            number => number as i32 as f32 / 8.0,
        }),
        DataType::Float64 => primitive!(Float64Array, |number| match number {
            42 => 0.0,
            number if number % 11 == 5 => f64::NAN,
            number => number as i64 as f64 / 8.0,
        }),
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            (0..rows).for_each(|row| match numbers.is(nulls) {
                true => builder.append_null(),
                false => builder.append_value(numbers.text(shape, row)),
            });
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            (0..rows).for_each(|row| match numbers.is(nulls) {
                true => builder.append_null(),
                false => builder.append_value(numbers.text(shape, row)),
            });
            Arc::new(builder.finish())
        }
        DataType::Dictionary(..) => {
            let mut builder = StringDictionaryBuilder::<UInt32Type>::new();
            (0..rows).for_each(|row| match numbers.is(nulls) {
                true => builder.append_null(),
                false => builder.append_value(numbers.text(shape, row)),
            });
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(size) => {
            let mut builder = FixedSizeBinaryBuilder::new(*size);
            (0..rows).for_each(|row| match numbers.is(nulls) {
                true => builder.append_null(),
                false => {
                    let bytes = numbers.number(shape, row).to_be_bytes().repeat(13);
                    builder.append_value(&bytes[..*size as usize]).unwrap();
                }
            });
            Arc::new(builder.finish())
        }
        DataType::List(item) => {
            let most = numbers.below(5);
            let lengths: Vec<usize> = (0..rows)
                .map(|_| match shape % 3 {
                    0 => most as usize,
                    _ => numbers.below(most + 1) as usize,
                })
                .collect();
            let items = array(item.data_type(), lengths.iter().sum(), nulls, numbers);
            // Null lists may have elements all the same.
            let validity = validity(numbers);
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::new(Arc::clone(item), offsets, items, validity))
        }
        DataType::Struct(fields) => {
            let members = fields.iter();
            let members = members
                .map(|field| array(field.data_type(), rows, nulls, numbers))
                .collect();
            Arc::new(StructArray::new(fields.clone(), members, validity(numbers)))
        }
        other => panic!("{other}"),
    }
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, true)))
}

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

fn types() -> Vec<DataType> {
    let structure = |fields: Vec<DataType>| {
        let fields = fields.into_iter().enumerate();
        DataType::Struct(
            fields
                .map(|(number, data_type)| Field::new(format!("m{number}"), data_type, true))
                .collect(),
        )
    };
    vec![
        DataType::Boolean,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8,
        DataType::Binary,
        dictionary(),
        DataType::FixedSizeBinary(9),
        DataType::FixedSizeBinary(100),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        list(DataType::UInt32),
        list(dictionary()),
        list(list(DataType::Utf8)),
        structure(vec![
            DataType::Int64,
            list(DataType::Boolean),
            DataType::Utf8,
        ]),
        list(structure(vec![
            DataType::UInt8,
            list(DataType::Float64),
            dictionary(),
        ])),
        list(list(list(structure(vec![list(DataType::Int16)])))),
    ]
}

/// Writes batches, of which the row group ends after some if so wanted.
fn write(batches: &[RecordBatch], group_rows: usize) -> Bytes {
    let mut out = Vec::new();
    let mut scratch = Scratch::default();
    let schema = batches[0].schema();
    let mut writer = TableWriter::new(&mut out, &schema, group_rows).unwrap();
    for batch in batches {
        writer.write(batch, &mut scratch).unwrap();
    }
    writer.finish(&mut scratch).unwrap();
    drop(writer);
    out.into()
}

fn open(file: &Bytes, rows: usize) -> ParquetRecordBatchReaderBuilder<Bytes> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options);
    reader.unwrap().with_batch_size(rows.max(1))
}

/// Checks that a file has these rows, by Parquet's own reader, and that its statistics are those of the rows.
fn check(batches: &[RecordBatch], group_rows: usize) -> Bytes {
    let file = write(batches, group_rows);
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let reader = open(&file, rows);
    let schema = batches[0].schema();
    assert_eq!(*reader.schema(), schema);
    check_statistics(batches, reader.metadata());
    let found: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    for (number, field) in schema.fields().iter().enumerate() {
        let (given, found) = (lines(batches, number), lines(&found, number));
        assert_eq!(found.len(), rows);
        for (row, (given, found)) in given.iter().zip(&found).enumerate() {
            assert_eq!(given, found, "{field} row {row}");
        }
    }
    file
}

/// The values of a column as text: dictionaries and what lies below nulls may be made in different ways.
fn lines(batches: &[RecordBatch], column: usize) -> Vec<String> {
    let rows = batches.iter().flat_map(|batch| {
        let column = batch.column(column);
        (0..batch.num_rows()).map(|row| text(column, row))
    });
    rows.collect()
}

fn text(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".into();
    }
    match array.data_type() {
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let items: Vec<_> = (0..items.len()).map(|item| text(&items, item)).collect();
            format!("{items:?}")
        }
        DataType::Struct(_) => {
            let members = array.as_struct().columns().iter();
            let members: Vec<_> = members.map(|member| text(member, row)).collect();
            format!("{members:?}")
        }
        DataType::Float32 => format!("{:?}", array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        _ => format!("{:?}", bytes_of(array, row)),
    }
}

/// The values of each column of Parquet in each row, in bytes that can be compared; none stands for what is missing.
fn leaf_values(batches: &[RecordBatch]) -> Vec<Vec<Vec<Option<Vec<u8>>>>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut values = Vec::new();
            for column in batch.columns() {
                let begin = values.len();
                values.resize(begin + leaves(column.data_type()), Vec::new());
                row_values(column, row, true, &mut values[begin..]);
            }
            rows.push(values);
        }
    }
    rows
}

fn row_values(array: &ArrayRef, row: usize, is_there: bool, out: &mut [Vec<Option<Vec<u8>>>]) {
    let is_there = is_there
        && array
            .logical_nulls()
            .is_none_or(|nulls| nulls.is_valid(row));
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            match is_there && list.value_length(row) > 0 {
                true => {
                    let items = list.value(row);
                    (0..items.len()).for_each(|item| row_values(&items, item, true, out));
                }
                false => out.iter_mut().for_each(|values| values.push(None)),
            }
        }
        DataType::Struct(_) => {
            let mut rest = out;
            for member in array.as_struct().columns() {
                let (own, behind) = rest.split_at_mut(leaves(member.data_type()));
                match is_there {
                    true => row_values(member, row, true, own),
                    false => own.iter_mut().for_each(|values| values.push(None)),
                }
                rest = behind;
            }
        }
        _ => out[0].push(is_there.then(|| bytes_of(array, row))),
    }
}

/// A value in bytes that are ordered as it is; NaN has none.
fn bytes_of(array: &ArrayRef, row: usize) -> Vec<u8> {
    macro_rules! integer {
        ($type:ident) => {{
            let value = i128::from(array.as_primitive::<$type>().value(row));
            (value + (1 << 64)).to_be_bytes().to_vec()
        }};
    }
    let float = |value: f64| match value.is_nan() {
        true => Vec::new(),
        false => {
            let bits = (value + 0.0).to_bits();
            let flipped = if bits >> 63 == 1 {
                !bits
            } else {
                bits | 1 << 63
            };
            flipped.to_be_bytes().to_vec()
        }
    };
    match array.data_type() {
        DataType::Boolean => vec![u8::from(array.as_boolean().value(row))],
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::Timestamp(..) => integer!(TimestampNanosecondType),
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Binary => array.as_binary::<i32>().value(row).into(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row).into(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<UInt32Type>();
            let key = dictionary.key(row).unwrap();
            dictionary.values().as_string::<i32>().value(key).into()
        }
        other => panic!("{other}"),
    }
}

/// The bounds of a page in the same bytes.
fn index_bounds(
    index: &ColumnIndexMetaData,
    page: usize,
    data_type: &DataType,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_unsigned = matches!(
        data_type,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64
    );
    let integer = |signed: i64, unsigned: u64| {
        let value = if is_unsigned {
            i128::from(unsigned)
        } else {
            i128::from(signed)
        };
        (value + (1 << 64)).to_be_bytes().to_vec()
    };
    let float = |value: f64| {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![value]));
        bytes_of(&values, 0)
    };
    macro_rules! both {
        ($index:expr, $bytes:expr) => {
            $index
                .min_value(page)
                .zip($index.max_value(page))
                .map(|(min, max)| {
                    let bytes = $bytes;
                    (bytes(min), bytes(max))
                })
        };
    }
    match index {
        ColumnIndexMetaData::BOOLEAN(index) => both!(index, |&value| vec![u8::from(value)]),
        ColumnIndexMetaData::INT32(index) => {
            both!(index, |&value: &i32| integer(
                value.into(),
                (value as u32).into()
            ))
        }
        ColumnIndexMetaData::INT64(index) => {
            both!(index, |&value: &i64| integer(value, value as u64))
        }
        ColumnIndexMetaData::FLOAT(index) => both!(index, |&value: &f32| float(value.into())),
        ColumnIndexMetaData::DOUBLE(index) => both!(index, |&value: &f64| float(value)),
        ColumnIndexMetaData::BYTE_ARRAY(index)
        | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) => {
            both!(index, |value: &[u8]| value.to_vec())
        }
        other => panic!("{other:?}"),
    }
}

fn check_statistics(batches: &[RecordBatch], metadata: &ParquetMetaData) {
    let types: Vec<DataType> = batches[0]
        .columns()
        .iter()
        .flat_map(|column| leaf_types(column.data_type()))
        .collect();
    let rows = leaf_values(batches);
    let Some(columns) = metadata.column_index() else {
        assert!(rows.is_empty());
        return;
    };
    let offsets = metadata.offset_index().unwrap();
    let mut group_begin = 0;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let group_end = group_begin + group.num_rows() as usize;
        for (leaf, chunk) in group.columns().iter().enumerate() {
            let index = &columns[number][leaf];
            let pages = offsets[number][leaf].page_locations();
            let is_ordered_at_all = !matches!(index, ColumnIndexMetaData::NONE);
            let mut nulls_of_chunk = 0;
            let mut sums = Vec::new();
            for (page, location) in pages.iter().enumerate() {
                let begin = group_begin + location.first_row_index as usize;
                let end = pages.get(page + 1).map_or(group_end, |next| {
                    group_begin + next.first_row_index as usize
                });
                assert!(begin < end);
                let values = rows[begin..end].iter();
                let values: Vec<_> = values.flat_map(|row| row[leaf].iter()).collect();
                let nulls = values.iter().filter(|value| value.is_none()).count();
                nulls_of_chunk += nulls;
                let known = values.iter().filter_map(|value| value.as_ref());
                let known = known.filter(|value| !is_nan(value, &types[leaf]));
                let bounds = known.clone().min().cloned().zip(known.max().cloned());
                if !is_ordered_at_all {
                    sums.push((nulls == values.len(), bounds));
                    continue;
                }
                assert_eq!(index.null_count(page), Some(nulls as i64));
                assert_eq!(index.is_null_page(page), nulls == values.len());
                let found = index_bounds(index, page, &types[leaf]);
                assert_eq!(found.is_some(), bounds.is_some());
                if let (Some(found), Some(bounds)) = (found, bounds) {
                    compare_bounds(&found, &bounds);
                }
            }
            let is_nothing_but_nan =
                |(is_null, bounds): &(bool, Option<_>)| !is_null && bounds.is_none();
            assert!(
                is_ordered_at_all || sums.iter().any(is_nothing_but_nan),
                "{:?}",
                types[leaf]
            );
            let statistics = chunk.statistics().unwrap();
            assert_eq!(statistics.null_count_opt(), Some(nulls_of_chunk as u64));
            let slots: i64 = chunk.num_values();
            assert!(slots >= group.num_rows());
        }
        group_begin = group_end;
    }
    assert_eq!(group_begin, rows.len());
}

fn leaf_types(data_type: &DataType) -> Vec<DataType> {
    match data_type {
        DataType::List(item) => leaf_types(item.data_type()),
        DataType::Struct(fields) => {
            let fields = fields.iter();
            fields
                .flat_map(|field| leaf_types(field.data_type()))
                .collect()
        }
        other => vec![other.clone()],
    }
}

fn is_nan(value: &[u8], data_type: &DataType) -> bool {
    value.is_empty() && matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Values of up to 64 bytes are bounds; longer ones lie between them.
fn compare_bounds(found: &(Vec<u8>, Vec<u8>), real: &(Vec<u8>, Vec<u8>)) {
    let (order_of_min, order_of_max) = (found.0.cmp(&real.0), found.1.cmp(&real.1));
    match real.0.len() > 64 {
        true => assert_ne!(order_of_min, Ordering::Greater),
        false => assert_eq!(order_of_min, Ordering::Equal, "{found:?} {real:?}"),
    }
    match real.1.len() > 64 {
        true => assert_ne!(order_of_max, Ordering::Less),
        false => assert_eq!(order_of_max, Ordering::Equal, "{found:?} {real:?}"),
    }
    assert!(found.0.len() <= 64);
}

fn batch(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter();
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn batches_are_read_as_they_were_written(
        seed in any::<[u8; 32]>(),
        sizes in prop::collection::vec((0_usize..400, 0_usize..7), 1..6),
        nulls in prop::sample::select(vec![0_u64, 0, 10, 60, 100]),
        group_rows in prop::sample::select(vec![64_usize, 333, 1 << 20]),
    ) {
        let rng = TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed);
        let mut numbers = Numbers(rng);
        let batches: Vec<RecordBatch> = sizes
            .into_iter()
            .map(|(rows, left_out)| {
                let columns = types().into_iter().enumerate().map(|(number, data_type)| {
                    let name = if number == 4 { "begin_ticks".into() } else { format!("c{number}") };
                    (name, array(&data_type, rows, nulls, &mut numbers))
                });
                let all = batch(columns.collect());
                let left_out = left_out.min(rows);
                all.slice(left_out, rows - left_out)
            })
            .collect();
        check(&batches, group_rows);
    }
}

#[test]
fn columns_of_many_rows_are_pages_and_groups() {
    let rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let mut numbers = Numbers(rng);
    let flat = types();
    let flat = || flat[..20].iter().enumerate();
    for nulls in [0, 20] {
        let batches: Vec<RecordBatch> = (0..3)
            .map(|_| {
                let columns = flat().map(|(number, data_type)| {
                    (
                        format!("c{number}"),
                        array(data_type, 23_456, nulls, &mut numbers),
                    )
                });
                batch(columns.collect())
            })
            .collect();
        let file = check(&batches, 50_000);
        let metadata = open(&file, 1).metadata().clone();
        assert_eq!(metadata.num_row_groups(), 2);
        let pages = metadata.offset_index().unwrap()[0][0].page_locations();
        let begins: Vec<i64> = pages.iter().map(|page| page.first_row_index).collect();
        assert_eq!(begins, [0, 20_000, 40_000]);
    }
}

#[test]
fn pages_of_long_values_have_few_rows() {
    let mut builder = StringBuilder::new();
    for row in 0..100 {
        builder.append_value(format!("{row:05}").repeat(10_000));
    }
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..100 {
        lists.append_value([Some("y".repeat(row * 500)), None, Some("z".repeat(30_000))]);
    }
    let columns: [(&str, ArrayRef); 2] = [
        ("text", Arc::new(builder.finish())),
        ("list", Arc::new(lists.finish())),
    ];
    let all =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
    let file = check(&[all.unwrap()], 1 << 20);
    let metadata = open(&file, 1).metadata().clone();
    let pages = metadata.offset_index().unwrap()[0][0].page_locations();
    assert!((3..=8).contains(&pages.len()), "{}", pages.len());
}

#[test]
fn numbers_that_belong_at_one_place_of_a_table_are_differences() {
    // All have the same hash: products whose upper bits are those of 0.
    let inverse = {
        let spread = 0x9e37_79b9_7f4a_7c15_u64;
        (0..6).fold(1_u64, |found, _| {
            found.wrapping_mul(2_u64.wrapping_sub(spread.wrapping_mul(found)))
        })
    };
    let numbers = (0..40_000_u64).map(|row| (row % 1000).wrapping_mul(inverse));
    let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(numbers));
    let all = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
    let file = check(&[all], 1 << 20);
    let metadata = open(&file, 1).metadata().clone();
    assert_eq!(
        metadata.row_group(0).column(0).dictionary_page_offset(),
        None
    );
}

#[test]
fn a_type_that_no_table_has_is_an_error() {
    let field = Field::new("d", DataType::Date32, true);
    let schema = Arc::new(Schema::new(vec![field]));
    assert!(TableWriter::new(Vec::new(), &schema, 1).is_err());
}

#[test]
fn texts_that_arrow_numbers_are_in_a_dictionary_or_plain() {
    // pyarrow reads no other encoding of them.
    let encodings = |rows: usize| {
        let mut builder = StringDictionaryBuilder::<UInt32Type>::new();
        (0..rows).for_each(|row| builder.append_value(format!("track {row}")));
        let column: ArrayRef = Arc::new(builder.finish());
        let all = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
        let file = check(&[all], 1 << 20);
        let metadata = open(&file, 1).metadata().clone();
        let encodings: Vec<_> = metadata.row_group(0).column(0).encodings().collect();
        encodings
    };
    assert!(encodings(3).contains(&Encoding::RLE_DICTIONARY));
    let many = encodings(10_000);
    assert!(many.contains(&Encoding::PLAIN) && !many.contains(&Encoding::DELTA_LENGTH_BYTE_ARRAY));
}
