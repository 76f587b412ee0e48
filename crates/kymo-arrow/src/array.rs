//! Columns as Arrow's arrays: buffers are moved, not copied.

use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, ListArray,
    RecordBatch, StringArray, StructArray, UInt32Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef};
use kymo_model::batch::{
    Bitmap, Column, ColumnData, ColumnType, DataType as ColumnDataType, Strings,
};

/// Arrow's type for the values of a column.
///
/// A structure without members is a truth value, which says whether it is there: Parquet has no empty groups.
pub fn data_type(data_type: &ColumnDataType) -> DataType {
    match data_type {
        ColumnDataType::Bool => DataType::Boolean,
        ColumnDataType::Uint8 => DataType::UInt8,
        ColumnDataType::Uint16 => DataType::UInt16,
        ColumnDataType::Uint32 => DataType::UInt32,
        ColumnDataType::Uint64 => DataType::UInt64,
        ColumnDataType::Int8 => DataType::Int8,
        ColumnDataType::Int16 => DataType::Int16,
        ColumnDataType::Int32 => DataType::Int32,
        ColumnDataType::Int64 => DataType::Int64,
        ColumnDataType::Float32 => DataType::Float32,
        ColumnDataType::Float64 => DataType::Float64,
        ColumnDataType::Text => DataType::Utf8,
        ColumnDataType::FixedBinary(size) => {
            DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX))
        }
        ColumnDataType::Dictionary(_) => dictionary(),
        ColumnDataType::List(item) => DataType::List(Arc::new(field(item))),
        ColumnDataType::Struct(members) if members.is_empty() => DataType::Boolean,
        ColumnDataType::Struct(members) => DataType::Struct(members.iter().map(field).collect()),
        // The types of columns grow; bytes hold anything.
        _ => DataType::Binary,
    }
}

/// The type of texts of which there are few.
pub(crate) fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

/// A column of a schema as Arrow's field. A row may always have no value.
pub(crate) fn field(column: &ColumnType) -> Field {
    Field::new(&*column.name, data_type(&column.data_type), true)
}

/// The values of a column as an array of a [type](data_type).
///
/// # Errors
///
/// The column is not what its type says.
pub fn array(column: Column, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let rows = column.len();
    let nulls = column.validity.map(|bits| nulls(bits, rows));
    macro_rules! numbers {
        ($array:ident, $values:expr) => {
            Arc::new(arrow_array::$array::try_new($values.into(), nulls)?)
        };
    }
    Ok(match (column.data, data_type) {
        (ColumnData::Uint8(values), _) => numbers!(UInt8Array, values),
        (ColumnData::Uint16(values), _) => numbers!(UInt16Array, values),
        (ColumnData::Uint32(values), _) => numbers!(UInt32Array, values),
        (ColumnData::Uint64(values), _) => numbers!(UInt64Array, values),
        (ColumnData::Int8(values), _) => numbers!(Int8Array, values),
        (ColumnData::Int16(values), _) => numbers!(Int16Array, values),
        (ColumnData::Int32(values), _) => numbers!(Int32Array, values),
        (ColumnData::Int64(values), DataType::Timestamp(_, zone)) => {
            let array = arrow_array::TimestampNanosecondArray::try_new(values.into(), nulls)?;
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        (ColumnData::Int64(values), _) => numbers!(Int64Array, values),
        (ColumnData::Float32(values), _) => numbers!(Float32Array, values),
        (ColumnData::Float64(values), _) => numbers!(Float64Array, values),
        (ColumnData::Bool(bits), _) => Arc::new(BooleanArray::new(bits_of(bits, rows), nulls)),
        (ColumnData::Text(strings), _) => {
            let (offsets, bytes) = buffers(strings);
            Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
        }
        (ColumnData::Binary(strings), _) => {
            let (offsets, bytes) = buffers(strings);
            Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
        }
        (ColumnData::FixedBinary { size, bytes }, _) => {
            let size = i32::try_from(size).map_err(|_| wrong("the size of bytes"))?;
            Arc::new(FixedSizeBinaryArray::try_new(size, bytes.into(), nulls)?)
        }
        (ColumnData::Dictionary { keys, texts }, _) => {
            let keys = UInt32Array::try_new(keys.into(), nulls)?;
            let texts: StringArray = texts.iter().map(|text| Some(&**text)).collect();
            Arc::new(DictionaryArray::<UInt32Type>::try_new(
                keys,
                Arc::new(texts),
            )?)
        }
        (ColumnData::List { offsets, items }, DataType::List(item)) => {
            let items = array(*items, item.data_type())?;
            let offsets = OffsetBuffer::new(offsets.into());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?)
        }
        (ColumnData::Struct { len, .. }, DataType::Boolean) => {
            Arc::new(BooleanArray::new(BooleanBuffer::new_set(len), nulls))
        }
        (ColumnData::Struct { members, .. }, DataType::Struct(fields)) => {
            let members = arrays(members, fields)?;
            Arc::new(StructArray::try_new(fields.clone(), members, nulls)?)
        }
        _ => return Err(wrong("the type of a column")),
    })
}

fn arrays(columns: Vec<Column>, fields: &Fields) -> Result<Vec<ArrayRef>, ArrowError> {
    let arrays = columns.into_iter().zip(fields);
    arrays
        .map(|(column, field)| array(column, field.data_type()))
        .collect()
}

/// A batch of a schema: `first`, and behind them the columns.
///
/// # Errors
///
/// The columns are not what the schema says.
pub fn record_batch(
    schema: &SchemaRef,
    first: Vec<ArrayRef>,
    columns: Vec<Column>,
) -> Result<RecordBatch, ArrowError> {
    let mut all = first;
    for column in columns {
        let field = schema
            .fields()
            .get(all.len())
            .ok_or_else(|| wrong("the number of columns"))?;
        all.push(array(column, field.data_type())?);
    }
    RecordBatch::try_new(Arc::clone(schema), all)
}

fn wrong(what: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{what} is not that of the schema"))
}

fn bits_of(bits: Bitmap, rows: usize) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from_vec(bits.into_bytes()), 0, rows)
}

fn nulls(bits: Bitmap, rows: usize) -> NullBuffer {
    NullBuffer::new(bits_of(bits, rows))
}

fn buffers(strings: Strings) -> (OffsetBuffer<i32>, Buffer) {
    let offsets = OffsetBuffer::new(strings.offsets.into());
    (offsets, Buffer::from_vec(strings.bytes))
}
