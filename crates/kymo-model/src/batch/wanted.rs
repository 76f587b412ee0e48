//! Which columns are wanted of a schema, and of which types they are.

use std::collections::HashMap;
use std::sync::Arc;

use super::column::{ColumnType, DataType};
use super::deep;
use crate::{FieldId, Kind, Pick, Schema, Scope};

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnSource {
    /// A field, with all that is in it; of several, the first one that an event has: options of a
    /// variant may have members of the same name.
    Fields(Vec<Pick>),
    /// The labels of the value of an enumeration, or the flags of a bit map; of an array, those of each element.
    Labels(Pick),
    /// Nothing: rows have no value unless the caller [puts](super::Columns::put) one.
    None,
    /// One value that all rows [share](super::Columns::share), given before they are taken.
    Shared,
    /// A value that is always at the same place, which is [gathered](super::Columns::gather) for many rows at once.
    Gathered,
}

impl ColumnSource {
    /// Whether values come from the fields of events.
    pub fn is_of_fields(&self) -> bool {
        matches!(self, Self::Fields(_) | Self::Labels(_))
    }
}

/// A column that is wanted of the events of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedColumn {
    /// Its name and type.
    pub column: ColumnType,
    /// Where its values come from.
    pub source: ColumnSource,
}

impl WantedColumn {
    /// Makes its texts bytes, in which nothing that is not UTF-8 is replaced.
    pub fn make_texts_binary(&mut self, schema: &Schema) {
        if let ColumnSource::Fields(picks) = &self.source
            && let Some(pick) = picks.first()
        {
            self.column.data_type = binary_type(schema, pick.field, &self.column.data_type, 0);
        }
    }
}

/// The same type with the texts of a field as bytes. Labels and JSON stay text.
fn binary_type(schema: &Schema, field: FieldId, data_type: &DataType, level: usize) -> DataType {
    let asked = schema.field(field);
    match (&asked.kind, data_type, asked.children.first()) {
        _ if deep::is_text(schema, field, level) => data_type.clone(),
        (Kind::Text, DataType::Text, _) => DataType::Binary,
        (Kind::Struct | Kind::Variant, DataType::Struct(_), _) => {
            let columns = members(schema, field, level).into_iter().map(|mut member| {
                if !member.is_labels {
                    let data_type = &member.column.data_type;
                    member.column.data_type =
                        binary_type(schema, member.field, data_type, level + 1);
                }
                member.column
            });
            DataType::Struct(columns.collect())
        }
        (Kind::Array { .. }, DataType::List(item), Some(&child)) => {
            list(binary_type(schema, child, &item.data_type, level + 1))
        }
        (Kind::Array { .. } | Kind::Optional, _, Some(&child)) => {
            binary_type(schema, child, data_type, level + 1)
        }
        _ => data_type.clone(),
    }
}

/// The type of the column that holds a field with all that is in it. What is in more than 32 structures,
/// variants and arrays is one JSON text.
pub fn column_type(schema: &Schema, field: FieldId) -> DataType {
    nested_type(schema, field, 0)
}

fn nested_type(schema: &Schema, field: FieldId, level: usize) -> DataType {
    if deep::is_text(schema, field, level) {
        return DataType::Text;
    }
    let info = schema.field(field);
    let only_child = |level| {
        let child = info.children.first();
        child.map(|&child| nested_type(schema, child, level))
    };
    match &info.kind {
        Kind::Uint { bits, .. } | Kind::BitArray { bits } | Kind::BitMap { bits, .. } => {
            DataType::integer(*bits, false).unwrap_or(DataType::Uint64)
        }
        Kind::Sint { bits, .. } => DataType::integer(*bits, true).unwrap_or(DataType::Int64),
        Kind::Wide { bits, .. } => DataType::FixedBinary(bits.div_ceil(8) as usize),
        Kind::Float { bits: ..=32 } => DataType::Float32,
        Kind::Float { .. } => DataType::Float64,
        Kind::Bool { .. } => DataType::Bool,
        Kind::Text => DataType::Text,
        Kind::Blob => DataType::Binary,
        Kind::Struct | Kind::Variant => {
            let members = members(schema, field, level);
            DataType::Struct(members.into_iter().map(|member| member.column).collect())
        }
        Kind::Array { .. } => {
            list(only_child(level + 1).unwrap_or(DataType::Struct(Arc::default())))
        }
        Kind::Optional => only_child(level + 1).unwrap_or(DataType::Struct(Arc::default())),
    }
}

/// A member of the column of a structure or variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name and type.
    pub column: ColumnType,
    /// The member or option that it is of.
    pub field: FieldId,
    /// Whether it has the labels of its value.
    pub is_labels: bool,
}

/// The members of a structure or variant column at depth `level`: one for each of its own, and after each enumeration
/// its labels.
pub fn members(schema: &Schema, field: FieldId, level: usize) -> Vec<Member> {
    let children = &schema.field(field).children;
    let name_of = |(position, &child): (usize, &FieldId)| -> Arc<str> {
        match &schema.field(child).name {
            Some(name) => Arc::clone(name),
            None => position.to_string().into(),
        }
    };
    let names: Vec<Arc<str>> = children.iter().enumerate().map(name_of).collect();
    let mut members = Vec::with_capacity(children.len());
    for (&field, name) in children.iter().zip(&names) {
        members.push(Member {
            column: ColumnType {
                name: Arc::clone(name),
                data_type: nested_type(schema, field, level + 1),
            },
            field,
            is_labels: false,
        });
        let Some(data_type) = nested_labels_type(schema, field, level + 1) else {
            continue;
        };
        let mut name: Arc<str> = format!("{name}.labels").into();
        while names.contains(&name) {
            name = format!("{name}.labels").into();
        }
        members.push(Member {
            column: ColumnType { name, data_type },
            field,
            is_labels: true,
        });
    }
    members
}

/// The type of a column of [labels](ColumnSource::Labels): of an enumeration or bit map a list of texts, of an array of
/// these a list of such lists; `None` of a field without any.
pub fn labels_type(schema: &Schema, field: FieldId) -> Option<DataType> {
    nested_labels_type(schema, field, 0)
}

fn nested_labels_type(schema: &Schema, field: FieldId, level: usize) -> Option<DataType> {
    if deep::is_text(schema, field, level) {
        return None;
    }
    let info = schema.field(field);
    let texts: Arc<[Arc<str>]> = match &info.kind {
        Kind::Uint {
            labels: Some(labels),
            ..
        }
        | Kind::Sint {
            labels: Some(labels),
            ..
        } => labels
            .mappings()
            .iter()
            .map(|mapping| Arc::clone(&mapping.label))
            .collect(),
        Kind::BitMap { flags, .. } => flags.iter().map(|flag| Arc::clone(&flag.name)).collect(),
        Kind::Array { .. } => {
            let data_type = nested_labels_type(schema, *info.children.first()?, level + 1)?;
            return Some(list(data_type));
        }
        Kind::Optional => return nested_labels_type(schema, *info.children.first()?, level + 1),
        _ => return None,
    };
    Some(list(DataType::Dictionary(texts)))
}

fn list(data_type: DataType) -> DataType {
    DataType::List(Arc::new(ColumnType {
        name: "item".into(),
        data_type,
    }))
}

/// The columns of all fields of a class but those of its event header, which says class and time: the
/// members of the payload by their names, those of contexts with their scope before them where names
/// clash, and for each enumeration and bit map a column of its labels.
pub fn all_columns(schema: &Schema) -> Vec<WantedColumn> {
    let scopes = [
        (Scope::Payload, "payload"),
        (Scope::SpecificContext, "specific_context"),
        (Scope::CommonContext, "context"),
    ];
    let mut wanted: Vec<WantedColumn> = Vec::new();
    let mut taken: HashMap<Arc<str>, ()> = HashMap::new();
    for (scope, prefix) in scopes {
        let Some(root) = schema.root(scope) else {
            continue;
        };
        let members = match schema.field(root).kind {
            Kind::Struct => schema.field(root).children.clone(),
            _ => vec![root],
        };
        for field in members {
            let name = schema.field(field).name.as_deref().unwrap_or(prefix);
            let mut name: Arc<str> = name.into();
            while taken.contains_key(&name) {
                name = format!("{prefix}.{name}").into();
            }
            taken.insert(Arc::clone(&name), ());
            let pick = Pick::from(field);
            if let Some(data_type) = labels_type(schema, field) {
                let name: Arc<str> = format!("{name}.labels").into();
                taken.insert(Arc::clone(&name), ());
                wanted.push(WantedColumn {
                    column: ColumnType { name, data_type },
                    source: ColumnSource::Labels(pick.clone()),
                });
            }
            wanted.push(WantedColumn {
                column: ColumnType {
                    name,
                    data_type: column_type(schema, field),
                },
                source: ColumnSource::Fields(vec![pick]),
            });
        }
    }
    wanted
}
