//! What columns hold beyond what Arrow's types say: it is in the metadata of their fields, so that a trace can be made of
//! them again.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use kymo_model::batch::{
    ColumnSource, ColumnType, DataType as ColumnDataType, WantedColumn, members,
};
use kymo_model::{FieldId, Kind, Schema};

use crate::array::{data_type, field};

/// The key of what a column holds, among the metadata of its field.
pub(crate) const KIND: &str = "kymo.kind";
/// The key of the scope that a column is of.
pub(crate) const SCOPE: &str = "kymo.scope";
/// The key of the position of a file's recording in the table `recordings`, among the metadata of its schema.
pub(crate) const RECORDING: &str = "kymo.recording";
/// The key of the positions of a file's stream class and event class: `0/12`.
pub(crate) const CLASS: &str = "kymo.class";

/// What is in no class of a trace: labels, and what was added to the recorded fields.
const NOTHING: &str = "nothing";

/// A column of a class as Arrow's field, with what it holds. Fields from `added` on are not recorded ones.
pub(crate) fn described(schema: &Schema, column: &WantedColumn, added: FieldId) -> Field {
    match &column.source {
        ColumnSource::Fields(picks) if picks.len() == 1 && picks[0].field < added => {
            let id = picks[0].field;
            let field = described_field(schema, id, &column.column, 0);
            let mut metadata = field.metadata().clone();
            metadata.insert(SCOPE.to_owned(), schema.scope_of(id).name().to_owned());
            field.with_metadata(metadata)
        }
        _ => with_kind(field(&column.column), NOTHING),
    }
}

fn with_kind(field: Field, kind: &str) -> Field {
    field.with_metadata(HashMap::from([(KIND.to_owned(), kind.to_owned())]))
}

fn described_field(schema: &Schema, id: FieldId, column: &ColumnType, level: usize) -> Field {
    let info = schema.field(id);
    let plain = |kind: &str| with_kind(field(column), kind);
    let nested =
        |data_type, kind: &str| with_kind(Field::new(&*column.name, data_type, true), kind);
    match (&info.kind, &column.data_type) {
        (Kind::Struct | Kind::Variant | Kind::Array { .. }, ColumnDataType::Text) => plain("json"),
        (Kind::Struct | Kind::Variant, ColumnDataType::Struct(all)) => {
            let kind = match info.kind {
                Kind::Struct => "struct",
                _ => "variant",
            };
            let fields: Fields = members(schema, id, level)
                .iter()
                .zip(&**all)
                .map(|(member, column)| match member.is_labels {
                    true => with_kind(field(column), NOTHING),
                    false => described_field(schema, member.field, column, level + 1),
                })
                .collect();
            match all.is_empty() {
                true => plain(kind),
                false => nested(DataType::Struct(fields), kind),
            }
        }
        (Kind::Array { .. }, ColumnDataType::List(item)) => {
            let item = match info.children.first() {
                Some(&child) => described_field(schema, child, item, level + 1),
                None => with_kind(field(item), "struct"),
            };
            nested(DataType::List(Arc::new(item)), "array")
        }
        (Kind::Optional, _) => match info.children.first() {
            Some(&child) => {
                let inner = described_field(schema, child, column, level + 1);
                let kind = inner.metadata().get(KIND).map_or("", String::as_str);
                let kind = format!("optional {kind}");
                with_kind(inner, &kind)
            }
            None => plain("optional struct"),
        },
        (Kind::Uint { .. }, _) => plain("uint"),
        (Kind::Sint { .. }, _) => plain("sint"),
        (&Kind::Wide { bits, signed }, _) => {
            let sign = if signed { "signed" } else { "unsigned" };
            plain(&format!("wide {bits} {sign}"))
        }
        (Kind::Float { bits: 128 }, _) => plain("float128"),
        (Kind::Float { .. }, _) => plain("float"),
        (Kind::Bool { .. }, _) => plain("bool"),
        (Kind::BitArray { .. } | Kind::BitMap { .. }, _) => plain("bits"),
        (Kind::Text, _) => plain("text"),
        (Kind::Blob, _) => plain("blob"),
        _ => with_kind(
            Field::new(&*column.name, data_type(&column.data_type), true),
            NOTHING,
        ),
    }
}

/// How the values of a column are given to who writes them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Uint,
    Sint,
    Wide {
        bits: u32,
        signed: bool,
    },
    Float,
    Float128,
    Bool,
    Bits,
    Text,
    Blob,
    Struct(Vec<Self>),
    Variant(Vec<Self>),
    Array(Box<Self>),
    Optional(Box<Self>),
    /// A text of what is nested too deeply to be columns.
    Json,
    Nothing,
}

impl Form {
    /// What a column says that it holds, if its type can hold that.
    ///
    /// # Errors
    ///
    /// What it says is not known or cannot be, or its type is not read; with what there is.
    pub(crate) fn of(field: &Field) -> Result<Self, String> {
        match field.metadata().get(KIND) {
            Some(kind) => Self::named(kind, field),
            None => Self::of_type(field),
        }
    }

    fn named(kind: &str, field: &Field) -> Result<Self, String> {
        let data_type = field.data_type();
        let is_unsigned = matches!(
            data_type,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64
        );
        if let Some(inner) = kind.strip_prefix("optional ") {
            return Ok(Self::Optional(Box::new(Self::named(inner, field)?)));
        }
        let form = match (kind, data_type) {
            ("nothing", _) => Some(Self::Nothing),
            ("uint", _) if is_unsigned => Some(Self::Uint),
            ("bits", _) if is_unsigned => Some(Self::Bits),
            ("sint", DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64) => {
                Some(Self::Sint)
            }
            ("float", DataType::Float32 | DataType::Float64) => Some(Self::Float),
            ("float128", DataType::Float64) => Some(Self::Float128),
            ("bool", DataType::Boolean) => Some(Self::Bool),
            ("text", DataType::Utf8 | DataType::Binary) => Some(Self::Text),
            ("blob", DataType::Binary) => Some(Self::Blob),
            // An empty structure says whether it is there.
            ("struct", DataType::Boolean) => Some(Self::Struct(Vec::new())),
            ("struct" | "variant", DataType::Struct(fields)) => {
                let members: Result<Vec<_>, _> =
                    fields.iter().map(|field| Self::of(field)).collect();
                Some(match kind {
                    "struct" => Self::Struct(members?),
                    _ => Self::Variant(members?),
                })
            }
            ("array", DataType::List(item)) => Some(Self::Array(Box::new(Self::of(item)?))),
            (_, DataType::FixedSizeBinary(size)) => wide(kind, *size),
            ("json", DataType::Utf8) => Some(Self::Json),
            _ => None,
        };
        form.ok_or_else(|| {
            format!(
                "column `{}` says that it holds `{kind}`, and its type is {data_type}",
                field.name()
            )
        })
    }

    /// What a column of another program holds, apart from nulls.
    fn of_type(field: &Field) -> Result<Self, String> {
        Ok(match field.data_type() {
            DataType::Boolean => Self::Bool,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Self::Uint,
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Timestamp(..)
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(_) => Self::Sint,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Utf8 | DataType::Decimal128(..) | DataType::Decimal256(..) => Self::Text,
            DataType::Binary | DataType::FixedSizeBinary(_) => Self::Blob,
            // A map is its entries.
            DataType::List(item) | DataType::Map(item, _) => {
                Self::Array(Box::new(Self::optional(item)?))
            }
            DataType::Struct(fields) => {
                let members: Result<_, String> =
                    fields.iter().map(|field| Self::optional(field)).collect();
                Self::Struct(members?)
            }
            other => {
                return Err(format!(
                    "column `{}` has the type {other}, which kymo does not read",
                    field.name()
                ));
            }
        })
    }

    fn optional(field: &Field) -> Result<Self, String> {
        let form = Self::of_type(field)?;
        Ok(match field.is_nullable() {
            true => Self::Optional(Box::new(form)),
            false => form,
        })
    }
}

/// An integer of more than 64 bits, stored in `size` bytes.
fn wide(kind: &str, size: i32) -> Option<Form> {
    let rest = kind.strip_prefix("wide ")?;
    let (bits, sign) = rest.split_once(' ')?;
    let bits: u32 = bits.parse().ok()?;
    let fits = usize::try_from(size).ok() == Some(bits.div_ceil(8) as usize);
    (fits && bits > 0).then_some(Form::Wide {
        bits,
        signed: sign == "signed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_column_says_must_be_what_its_type_can_hold() {
        let form_of =
            |kind: &str, data_type| Form::of(&with_kind(Field::new("f", data_type, true), kind));
        assert_eq!(form_of("uint", DataType::UInt64), Ok(Form::Uint));
        assert!(form_of("uint", DataType::Int64).is_err());
        let optional = Form::Optional(Box::new(Form::Text));
        assert_eq!(form_of("optional text", DataType::Utf8), Ok(optional));
        let size = DataType::FixedSizeBinary;
        let wide = Form::Wide {
            bits: 65,
            signed: true,
        };
        assert_eq!(form_of("wide 65 signed", size(9)), Ok(wide));
        for kind in ["wide 65 signed", "wide 0 signed", "wide x", "blob"] {
            assert!(form_of(kind, size(8)).is_err(), "{kind}");
        }
        assert_eq!(form_of("json", DataType::Utf8), Ok(Form::Json));
    }
}
