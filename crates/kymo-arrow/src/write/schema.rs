//! The schema of a file: Parquet's types of Arrow's, as
//! [LogicalTypes.md](https://github.com/apache/parquet-format/blob/master/LogicalTypes.md) describes them.

use std::sync::Arc;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use kymo_text::base64;
use parquet::basic::{LogicalType, Repetition, TimeUnit as Unit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::schema::types::{Type, TypePtr};

use super::Kind;
use super::bounds::Order;

/// The type of rows, and how the values of each column are written.
///
/// # Errors
///
/// There is a type that no table has.
pub(super) fn parquet_schema(schema: &Schema) -> Result<(TypePtr, Vec<Kind>), ParquetError> {
    let mut kinds = Vec::new();
    let fields = schema.fields().iter();
    let fields = fields.map(|field| {
        let first = kinds.len();
        let field_type = parquet_type(field, &mut kinds)?;
        let is_ticks = *field.data_type() == DataType::UInt64 && field.name().ends_with("ticks");
        if is_ticks {
            kinds[first] = Kind::Ascending(Order::Unsigned);
        }
        Ok(field_type)
    });
    let fields: Result<_, ParquetError> = fields.collect();
    let root = Type::group_type_builder("arrow_schema").with_fields(fields?);
    Ok((Arc::new(root.build()?), kinds))
}

fn parquet_type(field: &Field, kinds: &mut Vec<Kind>) -> Result<TypePtr, ParquetError> {
    let repetition = match field.is_nullable() {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    let integer = |bits, is_signed| Some(LogicalType::integer(bits, is_signed));
    let (physical, logical, kind) = match field.data_type() {
        DataType::Boolean => (Physical::BOOLEAN, None, Kind::Bits),
        DataType::UInt8 => (
            Physical::INT32,
            integer(8, false),
            Kind::Word32(Order::Unsigned),
        ),
        DataType::UInt16 => (
            Physical::INT32,
            integer(16, false),
            Kind::Word32(Order::Unsigned),
        ),
        DataType::UInt32 => (
            Physical::INT32,
            integer(32, false),
            Kind::Word32(Order::Unsigned),
        ),
        DataType::UInt64 => (
            Physical::INT64,
            integer(64, false),
            Kind::Word64(Order::Unsigned),
        ),
        DataType::Int8 => (
            Physical::INT32,
            integer(8, true),
            Kind::Word32(Order::Signed),
        ),
        DataType::Int16 => (
            Physical::INT32,
            integer(16, true),
            Kind::Word32(Order::Signed),
        ),
        DataType::Int32 => (Physical::INT32, None, Kind::Word32(Order::Signed)),
        DataType::Int64 => (Physical::INT64, None, Kind::Word64(Order::Signed)),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let is_utc = zone.as_ref().is_some_and(|zone| !zone.is_empty());
            let logical = LogicalType::timestamp(is_utc, Unit::NANOS);
            (
                Physical::INT64,
                Some(logical),
                Kind::Ascending(Order::Signed),
            )
        }
        DataType::Float32 => (Physical::FLOAT, None, Kind::Word32(Order::Float)),
        DataType::Float64 => (Physical::DOUBLE, None, Kind::Word64(Order::Float)),
        DataType::Utf8 => {
            let logical = Some(LogicalType::String);
            (Physical::BYTE_ARRAY, logical, Kind::Texts(Order::Text))
        }
        DataType::Dictionary(keys, values)
            if (&**keys, &**values) == (&DataType::UInt32, &DataType::Utf8) =>
        {
            let logical = Some(LogicalType::String);
            (Physical::BYTE_ARRAY, logical, Kind::Dictionary)
        }
        DataType::Binary => (Physical::BYTE_ARRAY, None, Kind::Texts(Order::Bytes)),
        &DataType::FixedSizeBinary(size) => {
            let kind = Kind::Fixed(usize::try_from(size).unwrap_or(0));
            (Physical::FIXED_LEN_BYTE_ARRAY, None, kind)
        }
        DataType::List(item) => {
            let items = Type::group_type_builder("list")
                .with_fields(vec![parquet_type(item, kinds)?])
                .with_repetition(Repetition::REPEATED);
            let list = Type::group_type_builder(field.name())
                .with_fields(vec![Arc::new(items.build()?)])
                .with_logical_type(Some(LogicalType::List))
                .with_repetition(repetition);
            return Ok(Arc::new(list.build()?));
        }
        DataType::Struct(fields) if !fields.is_empty() => {
            let fields: Result<_, ParquetError> = fields
                .iter()
                .map(|field| parquet_type(field, kinds))
                .collect();
            let group = Type::group_type_builder(field.name())
                .with_fields(fields?)
                .with_repetition(repetition);
            return Ok(Arc::new(group.build()?));
        }
        other => {
            let text = format!("column `{}` has the type {other}", field.name());
            return Err(ParquetError::NYI(text));
        }
    };
    kinds.push(kind);
    let length = match kind {
        Kind::Fixed(size) => size as i32,
        _ => -1,
    };
    let primitive = Type::primitive_type_builder(field.name(), physical)
        .with_logical_type(logical)
        .with_length(length)
        .with_repetition(repetition);
    Ok(Arc::new(primitive.build()?))
}

/// Arrow's schema as a message of its stream format: what Parquet's types do not say.
pub(super) fn arrow_schema(schema: &Schema) -> KeyValue {
    let message = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        schema,
        &mut DictionaryTracker::new(true),
        &IpcWriteOptions::default(),
    );
    let message = message.ipc_message;
    let length = (message.len() as u32).to_le_bytes();
    let whole = [&[0xff; 4], &length, &message[..]].concat();
    KeyValue::new("ARROW:schema".to_owned(), base64::encode(&whole))
}
