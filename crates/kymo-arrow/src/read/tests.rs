//! Files of the writer of the `parquet` crate, which its own reader must read in the same way; and damaged ones.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, MapArray,
    PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, parquet_to_arrow_schema};
use parquet::basic::{Compression, Encoding, Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::column::Column;
use super::rows::TableFile;
use super::values::decimal;

/// Numbers that look random, and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    /// A number that is small, or near others, or anything.
    fn number(&mut self) -> i64 {
        match self.below(3) {
            0 => self.below(7) as i64 - 3,
            1 => 1_000_000 + self.below(1000) as i64,
            _ => self.next() as i64,
        }
    }

    fn bytes(&mut self) -> String {
        match self.below(3) {
            0 => "ö".repeat(self.below(3)),
            1 => format!("the text {}", self.below(1000)),
            _ => format!("{}", self.below(10)),
        }
    }

    fn data_type(&mut self, depth: usize) -> DataType {
        let zone = match self.below(2) {
            0 => None,
            _ => Some("UTC".into()),
        };
        let kinds = if depth == 0 { 23 } else { 30 };
        match self.below(kinds) {
            0 => DataType::Boolean,
            1 => DataType::Int8,
            2 => DataType::Int16,
            3 => DataType::Int32,
            4 => DataType::Int64,
            5 => DataType::UInt8,
            6 => DataType::UInt16,
            7 => DataType::UInt32,
            8 => DataType::UInt64,
            9 => DataType::Float16,
            10 => DataType::Float32,
            11 => DataType::Float64,
            12 | 13 => DataType::Utf8,
            14 => DataType::Binary,
            15 => DataType::FixedSizeBinary(self.below(5) as i32 + 1),
            16 => DataType::Decimal128([9, 18, 30][self.below(3)], 4),
            17 => DataType::Decimal256(50, 7),
            18 => DataType::Date32,
            19 => DataType::Time32(TimeUnit::Millisecond),
            20 => DataType::Time64(TimeUnit::Nanosecond),
            21 => DataType::Timestamp(TimeUnit::Millisecond, zone),
            22 => DataType::Timestamp(TimeUnit::Nanosecond, zone),
            23..26 => DataType::List(Arc::new(self.field("item", depth - 1))),
            26..29 => {
                let members = 1 + self.below(3);
                let members =
                    (0..members).map(|member| self.field(&format!("m{member}"), depth - 1));
                DataType::Struct(members.collect())
            }
            _ => {
                let key = Field::new("key", DataType::Utf8, false);
                let both = Fields::from(vec![key, self.field("value", depth - 1)]);
                DataType::Map(
                    Arc::new(Field::new("entries", DataType::Struct(both), false)),
                    false,
                )
            }
        }
    }

    fn field(&mut self, name: &str, depth: usize) -> Field {
        let field = Field::new(name, self.data_type(depth), self.below(3) > 0);
        match self.below(3) {
            0 => field.with_metadata(HashMap::from([("kymo.kind".to_owned(), self.bytes())])),
            _ => field,
        }
    }

    /// Which of a number of values are there.
    fn nulls(&mut self, field: &Field, count: usize) -> Option<NullBuffer> {
        let is_there = match self.below(4) {
            _ if !field.is_nullable() => return None,
            0 => vec![true; count],
            1 => vec![false; count],
            _ => (0..count).map(|_| self.below(4) > 0).collect(),
        };
        Some(NullBuffer::from(is_there))
    }

    fn numbers<T: ArrowPrimitiveType>(
        &mut self,
        field: &Field,
        count: usize,
        make: impl Fn(i64) -> T::Native,
    ) -> ArrayRef {
        let values = (0..count).map(|_| make(self.number())).collect::<Vec<_>>();
        let nulls = self.nulls(field, count);
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Arc::new(array.with_data_type(field.data_type().clone()))
    }

    fn offsets(&mut self, count: usize) -> OffsetBuffer<i32> {
        OffsetBuffer::from_lengths((0..count).map(|_| self.below(4)))
    }

    fn array(&mut self, field: &Field, count: usize) -> ArrayRef {
        match field.data_type() {
            DataType::Boolean => {
                let values = (0..count).map(|_| self.below(2) == 1).collect::<Vec<_>>();
                Arc::new(BooleanArray::new(values.into(), self.nulls(field, count)))
            }
            DataType::Int8 => self.numbers::<Int8Type>(field, count, |n| n as i8),
            DataType::Int16 => self.numbers::<Int16Type>(field, count, |n| n as i16),
            DataType::Int32 => self.numbers::<Int32Type>(field, count, |n| n as i32),
            DataType::Int64 => self.numbers::<Int64Type>(field, count, |n| n),
            DataType::UInt8 => self.numbers::<UInt8Type>(field, count, |n| n as u8),
            DataType::UInt16 => self.numbers::<UInt16Type>(field, count, |n| n as u16),
            DataType::UInt32 => self.numbers::<UInt32Type>(field, count, |n| n as u32),
            DataType::UInt64 => self.numbers::<UInt64Type>(field, count, |n| n as u64),
            DataType::Float16 => self.numbers::<Float16Type>(field, count, |n| {
                <Float16Type as ArrowPrimitiveType>::Native::usize_as(n as usize % 70_000)
            }),
            DataType::Float32 => self.numbers::<Float32Type>(field, count, |n| n as f32 / 7.0),
            DataType::Float64 => self.numbers::<Float64Type>(field, count, |n| n as f64 / 7.0),
            DataType::Date32 => self.numbers::<Date32Type>(field, count, |n| n as i32),
            DataType::Time32(_) => {
                self.numbers::<Time32MillisecondType>(field, count, |n| n as i32)
            }
            DataType::Time64(_) => self.numbers::<Time64NanosecondType>(field, count, |n| n),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                self.numbers::<TimestampMillisecondType>(field, count, |n| n)
            }
            DataType::Timestamp(..) => self.numbers::<TimestampNanosecondType>(field, count, |n| n),
            DataType::Decimal128(9, _) => {
                self.numbers::<Decimal128Type>(field, count, |n| i128::from(n % 1_000_000_000))
            }
            DataType::Decimal128(18, _) => {
                self.numbers::<Decimal128Type>(field, count, |n| i128::from(n / 10))
            }
            DataType::Decimal128(..) => {
                self.numbers::<Decimal128Type>(field, count, |n| i128::from(n) * 10_007)
            }
            DataType::Decimal256(..) => self.numbers::<Decimal256Type>(field, count, |n| {
                i256::from_i128(i128::from(n) * 1_000_000_007)
            }),
            DataType::Utf8 => {
                let nulls = self.nulls(field, count);
                let texts = (0..count).map(|_| self.bytes()).collect::<Vec<_>>();
                let (offsets, values, _) = StringArray::from(texts).into_parts();
                Arc::new(StringArray::new(offsets, values, nulls))
            }
            DataType::Binary => {
                let nulls = self.nulls(field, count);
                let texts = (0..count).map(|_| self.bytes().into_bytes());
                let (offsets, values, _) = BinaryArray::from_iter_values(texts).into_parts();
                Arc::new(BinaryArray::new(offsets, values, nulls))
            }
            &DataType::FixedSizeBinary(size) => {
                let bytes = (0..count * size as usize).map(|_| self.below(3) as u8);
                let bytes = bytes.collect::<Vec<_>>();
                let nulls = self.nulls(field, count);
                Arc::new(FixedSizeBinaryArray::new(size, bytes.into(), nulls))
            }
            DataType::List(item) => {
                let offsets = self.offsets(count);
                let items = self.array(item, offsets[count] as usize);
                let nulls = self.nulls(field, count);
                Arc::new(ListArray::new(Arc::clone(item), offsets, items, nulls))
            }
            DataType::Struct(members) => {
                let arrays = members.iter().map(|member| self.array(member, count));
                let arrays = arrays.collect();
                let nulls = self.nulls(field, count);
                Arc::new(StructArray::new(members.clone(), arrays, nulls))
            }
            DataType::Map(entries, _) => {
                let offsets = self.offsets(count);
                let all = self.array(entries, offsets[count] as usize);
                let nulls = self.nulls(field, count);
                let all = all.as_struct().clone();
                Arc::new(MapArray::new(
                    Arc::clone(entries),
                    offsets,
                    all,
                    nulls,
                    false,
                ))
            }
            other => unreachable!("{other}"),
        }
    }

    /// How a file is written.
    fn properties(&mut self, schema: &Schema) -> WriterProperties {
        let all = ArrowSchemaConverter::new().convert(schema).unwrap();
        let mut properties = WriterProperties::builder()
            .set_writer_version(match self.below(2) {
                0 => WriterVersion::PARQUET_1_0,
                _ => WriterVersion::PARQUET_2_0,
            })
            .set_compression(match self.below(2) {
                0 => Compression::UNCOMPRESSED,
                _ => Compression::LZ4_RAW,
            })
            .set_dictionary_enabled(self.below(2) == 0)
            .set_dictionary_page_size_limit(200)
            .set_data_page_row_count_limit(1 + self.below(400))
            .set_write_batch_size(1 + self.below(100))
            .set_max_row_group_row_count(Some(1 + self.below(1500)));
        for column in all.columns() {
            let encodings: &[Encoding] = match column.physical_type() {
                Type::BOOLEAN => &[Encoding::PLAIN, Encoding::RLE],
                Type::INT32 | Type::INT64 => &[
                    Encoding::PLAIN,
                    Encoding::DELTA_BINARY_PACKED,
                    Encoding::BYTE_STREAM_SPLIT,
                ],
                Type::FLOAT | Type::DOUBLE => &[Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT],
                Type::BYTE_ARRAY => &[
                    Encoding::PLAIN,
                    Encoding::DELTA_LENGTH_BYTE_ARRAY,
                    Encoding::DELTA_BYTE_ARRAY,
                ],
                Type::FIXED_LEN_BYTE_ARRAY => &[
                    Encoding::PLAIN,
                    Encoding::DELTA_BYTE_ARRAY,
                    Encoding::BYTE_STREAM_SPLIT,
                ],
                Type::INT96 => continue,
            };
            let encoding = encodings[self.below(encodings.len())];
            properties = properties.set_column_encoding(column.path().clone(), encoding);
        }
        properties.build()
    }

    fn file(&mut self) -> Vec<u8> {
        let columns = 1 + self.below(4);
        let fields = (0..columns).map(|column| self.field(&format!("c{column}"), 3));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let rows = match self.below(4) {
            0 => self.below(10),
            _ => self.below(3000),
        };
        let arrays = schema.fields().iter().map(|field| self.array(field, rows));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect()).unwrap();
        let properties = self.properties(&schema);
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, schema, Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }
}

/// What the `parquet` crate reads.
fn expected(file: &[u8], plain: bool) -> (Arc<Schema>, Vec<RecordBatch>) {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(plain);
    let file = bytes::Bytes::copy_from_slice(file);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches = reader.build().unwrap().collect::<Result<_, _>>();
    (schema, batches.unwrap())
}

fn assert_same(column: &Column, row: usize, array: &dyn Array, at: usize) {
    assert_eq!(
        column.is_null(row),
        array.is_null(at),
        "{}",
        array.data_type()
    );
    if array.is_null(at) {
        return;
    }
    macro_rules! value {
        ($type:ty) => {
            array.as_primitive::<$type>().value(at)
        };
    }
    let scaled = |number: i64, unit| Some(number).and_then(|number: i64| number.checked_mul(unit));
    let text = |scale: u8| decimal(column, row, scale.into()).unwrap();
    match array.data_type() {
        DataType::Boolean => assert_eq!(column.bit(row), Some(array.as_boolean().value(at))),
        DataType::Int8 => assert_eq!(column.signed(row), Some(value!(Int8Type).into())),
        DataType::Int16 => assert_eq!(column.signed(row), Some(value!(Int16Type).into())),
        DataType::Int32 => assert_eq!(column.signed(row), Some(value!(Int32Type).into())),
        DataType::Int64 => assert_eq!(column.signed(row), Some(value!(Int64Type))),
        DataType::UInt8 => assert_eq!(column.unsigned(row), Some(value!(UInt8Type).into())),
        DataType::UInt16 => assert_eq!(column.unsigned(row), Some(value!(UInt16Type).into())),
        DataType::UInt32 => assert_eq!(column.unsigned(row), Some(value!(UInt32Type).into())),
        DataType::UInt64 => assert_eq!(column.unsigned(row), Some(value!(UInt64Type))),
        DataType::Float16 => assert_eq!(column.float(row), Some(value!(Float16Type).into())),
        DataType::Float32 => assert_eq!(column.float(row), Some(value!(Float32Type).into())),
        DataType::Float64 => assert_eq!(column.float(row), Some(value!(Float64Type))),
        DataType::Date32 => assert_eq!(column.signed(row), Some(value!(Date32Type).into())),
        DataType::Time32(_) => {
            assert_eq!(
                column.signed(row),
                Some(value!(Time32MillisecondType).into())
            );
        }
        DataType::Time64(_) => assert_eq!(column.signed(row), Some(value!(Time64NanosecondType))),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let expected = scaled(value!(TimestampMillisecondType), 1_000_000);
            assert_eq!(column.nanos(row), expected);
        }
        DataType::Timestamp(..) => {
            assert_eq!(column.signed(row), Some(value!(TimestampNanosecondType)));
        }
        DataType::Decimal128(_, scale) => {
            let array = array.as_primitive::<Decimal128Type>();
            assert_eq!(text(*scale as u8), array.value_as_string(at));
        }
        DataType::Decimal256(_, scale) => {
            let array = array.as_primitive::<Decimal256Type>();
            assert_eq!(text(*scale as u8), array.value_as_string(at));
        }
        DataType::Utf8 => assert_eq!(column.text(row), Some(array.as_string::<i32>().value(at))),
        DataType::Binary => assert_eq!(column.bytes(row), Some(array.as_binary::<i32>().value(at))),
        DataType::FixedSizeBinary(_) => {
            assert_eq!(
                column.bytes(row),
                Some(array.as_fixed_size_binary().value(at))
            );
        }
        DataType::List(_) => {
            let (items, column) = column.list(row).unwrap();
            let expected = array.as_list::<i32>().value(at);
            assert_eq!(items.len(), expected.len());
            items
                .zip(0..)
                .for_each(|(item, at)| assert_same(column, item, &*expected, at));
        }
        DataType::Map(..) => {
            let (items, column) = column.list(row).unwrap();
            let expected = array.as_map().value(at);
            assert_eq!(items.len(), expected.len());
            items
                .zip(0..)
                .for_each(|(item, at)| assert_same(column, item, &expected, at));
        }
        DataType::Struct(_) => {
            let members = column.members().iter().zip(array.as_struct().columns());
            assert_eq!(members.len(), array.as_struct().num_columns());
            members.for_each(|(column, array)| assert_same(column, row, array, at));
        }
        other => unreachable!("{other}"),
    }
}

/// Reads all of a file: how many rows it has, or what is wrong with it.
fn read(file: Vec<u8>, plain: bool) -> Result<usize, String> {
    let file = TableFile::new(file.into(), plain)?;
    file.read()
        .try_fold(0, |rows, batch| Ok(rows + batch?.rows))
}

#[test]
fn files_are_read_as_the_parquet_crate_reads_them() {
    let mut values = 0;
    for seed in 0..120 {
        let file = Random(seed).file();
        let (schema, batches) = expected(&file, true);
        let table = TableFile::new(file.clone().into(), true).unwrap();
        assert_eq!(table.schema(), &*schema, "{seed}");
        let mut expected_rows = batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
        for batch in table.read() {
            let batch = batch.unwrap_or_else(|problem| panic!("{seed}: {problem}"));
            for row in 0..batch.rows {
                let (expected, at) = expected_rows.next().unwrap();
                for (column, array) in batch.columns.iter().zip(expected.columns()) {
                    assert_same(column, row, array, at);
                    values += 1;
                }
            }
        }
        assert!(expected_rows.next().is_none(), "{seed}");
        // Types are those of Parquet, the rest is what Arrow has said.
        let own = TableFile::new(file.clone().into(), false).unwrap();
        let (described, _) = expected(&file, false);
        assert_eq!(own.schema().metadata(), described.metadata());
        for (own, described) in own.schema().fields().iter().zip(described.fields()) {
            assert_same_metadata(own, described);
        }
    }
    assert!(values > 100_000, "{values}");
}

fn assert_same_metadata(own: &Field, described: &Field) {
    assert_eq!(own.name(), described.name());
    assert_eq!(own.metadata(), described.metadata());
    match (own.data_type(), described.data_type()) {
        (DataType::Struct(own), DataType::Struct(described)) => own
            .iter()
            .zip(described)
            .for_each(|(own, described)| assert_same_metadata(own, described)),
        (DataType::List(own), DataType::List(described)) => assert_same_metadata(own, described),
        _ => {}
    }
}

#[test]
fn damaged_files_are_errors_or_other_values() {
    let (mut refused, mut read_on) = (0, 0);
    for seed in 0..40 {
        let mut random = Random(seed);
        let file = random.file();
        for round in 0..60 {
            let mut damaged = file.clone();
            match round % 4 {
                0 => damaged.truncate(random.below(file.len())),
                1 => {
                    // Within the footer alone.
                    let length = u32::from_le_bytes(*file[..file.len() - 4].last_chunk().unwrap());
                    let at = file.len() - 9 - random.below(length as usize);
                    damaged[at] = random.next() as u8;
                }
                _ => {
                    for _ in 0..=random.below(3) {
                        let at = random.below(file.len());
                        damaged[at] = random.next() as u8;
                    }
                }
            }
            match read(damaged, random.below(2) == 0) {
                Ok(_) => read_on += 1,
                Err(problem) => {
                    assert!(!problem.is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100 && read_on > 100, "{refused} {read_on}");
}

/// Schemas as others have written them, among them the examples of LogicalTypes.md.
const SCHEMAS: &[&str] = &[
    "required group my_list (LIST) { repeated group list { optional binary element (STRING); } }",
    "optional group my_list (LIST) { repeated group list { required binary element (STRING); } }",
    "optional group array_of_arrays (LIST) { repeated group list { required group element (LIST) {
        repeated group list { required int32 element; } } } }",
    "optional group my_list (LIST) { repeated group element { required binary str (STRING); } }",
    "optional group my_list (LIST) { repeated int32 element; }",
    "optional group my_list (LIST) { repeated group element {
        required binary str (STRING); required int32 num; } }",
    "optional group my_list (LIST) { repeated group array (LIST) { repeated int32 array; } }",
    "optional group my_list (LIST) { repeated group array { required binary str (STRING); } }",
    "optional group my_list (LIST) { repeated group my_list_tuple { required binary str (STRING); } }",
    "optional group my_list (LIST) { repeated group array { repeated int32 numbers; } }",
    "repeated int32 num;",
    "optional group within { repeated group my_list { required int64 a; repeated binary b; } }",
    "required group my_map (MAP) { repeated group key_value {
        required binary key (STRING); optional int32 value; } }",
    "optional group my_map (MAP_KEY_VALUE) { repeated group map {
        required binary key (UTF8); required group value { optional int32 a; optional float b; } } }",
    "optional group my_set (MAP) { repeated group key_value { required binary key (STRING); } }",
    "optional int32 a (INTEGER(8,true)); optional int32 b (INT_16); optional int32 c (UINT_32);
        optional int64 d (UINT_64); required int64 e (INTEGER(64,true)); optional int32 f (DATE);
        required int32 g (TIME_MILLIS); required int64 h (TIME(NANOS,true)); required int96 i;
        required int64 j (TIMESTAMP(MICROS,false)); required int64 k (TIMESTAMP_MILLIS);
        required int32 l (DECIMAL(9,2)); required int64 m (DECIMAL(18,0)); required binary n (DECIMAL(40,3));
        required fixed_len_byte_array(5) o (DECIMAL(10,2)); required fixed_len_byte_array(20) p (DECIMAL(40,2));
        required fixed_len_byte_array(2) q (FLOAT16); required fixed_len_byte_array(16) r (UUID);
        required binary s (JSON); required binary t (ENUM); required binary u (BSON); required boolean v;
        required double w; required int64 x (TIME_MICROS);",
];

#[test]
fn types_are_those_of_the_parquet_crate() {
    for columns in SCHEMAS {
        let message = format!("message m {{ {columns} }}");
        let message = Arc::new(parse_message_type(&message).unwrap());
        let mut file = Vec::new();
        let writer = SerializedFileWriter::new(&mut file, Arc::clone(&message), Default::default());
        writer.unwrap().close().unwrap();
        let descriptor = SchemaDescriptor::new(message);
        let expected = parquet_to_arrow_schema(&descriptor, None).unwrap();
        let file = TableFile::new(file.into(), true).unwrap();
        assert_eq!(file.schema(), &expected, "{columns}");
        let leaves = file.leaves();
        assert_eq!(leaves.len(), descriptor.num_columns(), "{columns}");
        for (leaf, column) in leaves.iter().zip(descriptor.columns()) {
            assert_eq!(leaf.path, column.path().string());
            assert_eq!(leaf.definitions, column.max_def_level() as u32, "{columns}");
            assert_eq!(leaf.repetitions, column.max_rep_level() as u32, "{columns}");
        }
    }
}

#[test]
fn a_few_bytes_are_not_any_number_of_rows() {
    // A page in which a run says that 2^31 - 1 values are null.
    let file = b"PAR1\x15\x00\x15\x14\x15\x14,\x15\xfe\xff\xff\xff\x0f\x15\x00\x15\x06\x15\x06\x00\x00\x06\
            \x00\x00\x00\xfe\xff\xff\xff\x0f\x00\x15\x02\x19,H\x01r\x15\x02\x00\x15\x02%\x02\x18\x01x\
            \x00\x16\xfe\xff\xff\xff\x0f\x19\x1c\x19\x1c&\x08\x1c\x15\x02\x19\x15\x00\x19\x18\x01x\x15\
            \x00\x16\xfe\xff\xff\xff\x0f\x16>\x16>&\x08\x00\x00\x16\x02\x16\xfe\xff\xff\xff\x0f\x00\
            \x00B\x00\x00\x00PAR1";
    let problem = TableFile::new(bytes::Bytes::from_static(file), true).err();
    let expected =
        "it has 2147483647 rows in 109 bytes; kymo reads up to 16784192 from a file of that size";
    assert_eq!(problem.as_deref(), Some(expected));
}

#[test]
fn encrypted_files_are_named_so() {
    let problem = TableFile::new(bytes::Bytes::from_static(b"PARE\0\0\0\0PARE"), true).err();
    let expected = "it is encrypted, which kymo does not read";
    assert_eq!(problem.as_deref(), Some(expected));
}
