//! The columns of a class.

use std::collections::HashMap;

use kymo_model::{FieldId, Kind, Schema, Scope};

use crate::show::json;
use crate::show::packet::PacketFields;

/// What a field is in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A structure whose members have columns of their own.
    Spread,
    /// A column.
    Column,
    /// What the cell of a column holds: an option, an element, a member.
    Inside,
}

/// How the fields of a schema are written, by [`FieldId`].
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) parts: Vec<Part>,
    /// Compound values within a cell are JSON.
    pub(crate) json: json::Plan,
}

/// A column: the scope it comes from, and the names from there to the field.
pub(crate) type Column = (Scope, String);

impl Plan {
    /// Plans all fields but the `hidden` ones, and appends the columns to `columns`.
    pub(crate) fn new(schema: &Schema, hidden: &[bool], columns: &mut Vec<Column>) -> Self {
        let mut json = json::Plan::new(schema, hidden);
        let mut parts: Vec<Part> = Vec::with_capacity(schema.fields().len());
        for (position, field) in schema.fields().iter().enumerate() {
            let id = FieldId(position as u32);
            let spread = match field.parent {
                Some(parent) => parts[parent.index()] == Part::Spread,
                None => true,
            };
            let is_struct = matches!(field.kind, Kind::Struct);
            parts.push(match (spread, is_struct) {
                (true, true) => Part::Spread,
                (true, false) => Part::Column,
                (false, _) => Part::Inside,
            });
            let hidden = hidden.get(position).copied().unwrap_or(false);
            if parts[position] == Part::Column && !hidden {
                json.detach(id, &field.kind);
                columns.push((schema.scope_of(id), schema.path(id)));
            }
        }
        Self { parts, json }
    }

    /// The fields that have columns, in the order of these.
    pub(crate) fn fields(&self, hidden: &[bool]) -> impl Iterator<Item = FieldId> {
        let parts = self.parts.iter().zip(hidden);
        let columns = parts.zip(0..);
        columns.filter_map(|((part, hidden), position)| {
            (*part == Part::Column && !hidden).then_some(FieldId(position))
        })
    }
}

/// The columns that packets have of which these fields are shown.
pub(crate) fn packet_columns(fields: &PacketFields) -> Vec<Column> {
    let mut columns = Vec::new();
    Plan::new(&fields.schema, &fields.hidden, &mut columns);
    columns
}

/// Names of columns: with the scope before them where two would be the same.
pub(crate) fn names(columns: &[Column]) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (_, path) in columns {
        *count.entry(path).or_default() += 1;
    }
    let name = |(scope, path): &Column| match count[path.as_str()] {
        1 => path.clone(),
        _ => format!("{}.{path}", scope.name()),
    };
    columns.iter().map(name).collect()
}
