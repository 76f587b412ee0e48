//! What the columns of a file are: Arrow's types of them, and how their levels are nested.
//!
//! Types follow Parquet's LogicalTypes.md, with its rules for lists and maps that older writers have made. Of the schema
//! that Arrow's writers keep beside it, the metadata of fields is taken: what kymo's own tables say of their columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::{Field as IpcField, KeyValue, root_as_message};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use kymo_text::base64;

use super::Problem;
use super::footer::{Element, Footer, Logical, Physical, Repetition, Unit};

/// Columns are named in problems with those around them as long as all names have no more bytes than this: each leaf
/// has such a path, and any number of them may be in a group of a long name.
const LONGEST_PATH: usize = 200;
/// The key of Arrow's schema in a footer.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// What the numbers or bytes of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// As they are stored.
    Plain,
    Integer {
        bits: u8,
        signed: bool,
    },
    /// Times, with the nanoseconds of their unit.
    Time(i64),
    Decimal {
        scale: u8,
    },
    Text,
    Float16,
}

/// A column with values.
#[derive(Debug)]
pub(super) struct Leaf {
    /// Its name, with those of the groups that it is in.
    pub(super) path: String,
    pub(super) physical: Physical,
    /// Bytes of a value that has a fixed number of them.
    pub(super) width: usize,
    pub(super) content: Content,
    pub(super) definitions: u32,
    pub(super) repetitions: u32,
}

/// A column, or what holds columns.
#[derive(Debug)]
pub(super) struct Node {
    /// The level from which on the innermost list around it has an element.
    pub(super) slot: u32,
    /// The level from which on it is not null.
    pub(super) definition: u32,
    /// How many lists are around it.
    pub(super) repetition: u32,
    /// Its first leaf.
    pub(super) leaf: usize,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Leaf,
    Struct(Vec<Node>),
    /// Of elements that are there from the level behind its own on.
    List(Box<Node>),
}

/// The columns of a file.
#[derive(Debug)]
pub(super) struct FileSchema {
    pub(super) arrow: Schema,
    pub(super) columns: Vec<Node>,
    pub(super) leaves: Vec<Arc<Leaf>>,
}

impl FileSchema {
    /// `plain` does without what Arrow has written of its types.
    pub(super) fn new(footer: &Footer, plain: bool) -> Result<Self, Problem> {
        let mut maker = Maker::default();
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for element in &footer.root.children {
            if let Some((field, node)) = maker.column(element, Place::default())? {
                fields.push(field);
                columns.push(node);
            }
        }
        if columns.is_empty() {
            return Err("it has no columns".to_owned());
        }
        let mut metadata: HashMap<String, String> = HashMap::new();
        if !plain {
            metadata.extend(footer.metadata.iter().cloned());
            if let Some(schema) = metadata.remove(ARROW_SCHEMA) {
                describe(&schema, &mut fields, &mut metadata)
                    .ok_or_else(|| format!("the schema of `{ARROW_SCHEMA}` is damaged"))?;
            }
        }
        Ok(Self {
            arrow: Schema::new_with_metadata(fields, metadata),
            columns,
            leaves: maker.leaves,
        })
    }
}

/// Where something is.
#[derive(Clone, Copy, Default)]
struct Place {
    slot: u32,
    definition: u32,
    repetition: u32,
}

impl Place {
    /// That of the elements of a list here.
    fn element(self) -> Self {
        let definition = self.definition + 1;
        Self {
            slot: definition,
            definition,
            repetition: self.repetition + 1,
        }
    }
}

#[derive(Default)]
struct Maker {
    leaves: Vec<Arc<Leaf>>,
    path: Vec<String>,
}

impl Maker {
    /// The name of a column, behind those of the groups that it is in.
    fn path(&self) -> String {
        let (mut names, mut bytes) = (Vec::new(), 0);
        for name in self.path.iter().rev() {
            bytes += name.len() + 1;
            if bytes > LONGEST_PATH && !names.is_empty() {
                names.push("…");
                break;
            }
            names.push(name);
        }
        names.reverse();
        names.join(".")
    }

    /// What an element of the schema is; `None` if there is nothing in it.
    fn column(
        &mut self,
        element: &Element,
        mut place: Place,
    ) -> Result<Option<(Field, Node)>, Problem> {
        self.path.push(element.name.clone());
        let made = match element.repetition {
            // Repeated columns outside of lists are lists of them.
            Repetition::Repeated => {
                let leaf = self.leaves.len();
                let item = self.value(element, place.element())?;
                item.map(|(data_type, item)| {
                    let item_field = Arc::new(Field::new(&element.name, data_type, false));
                    let list = Node {
                        slot: place.slot,
                        definition: place.definition,
                        repetition: place.repetition,
                        leaf,
                        shape: Shape::List(Box::new(item)),
                    };
                    (DataType::List(item_field), list)
                })
            }
            repetition => {
                place.definition += u32::from(repetition == Repetition::Optional);
                self.value(element, place)?
            }
        };
        self.path.pop();
        let nullable = element.repetition == Repetition::Optional;
        Ok(made.map(|(data_type, node)| (Field::new(&element.name, data_type, nullable), node)))
    }

    /// The type of values; `place` has the level from which on they are not null.
    fn value(
        &mut self,
        element: &Element,
        place: Place,
    ) -> Result<Option<(DataType, Node)>, Problem> {
        let leaf = self.leaves.len();
        let made = match (element.physical, element.logical) {
            (Some(physical), _) => {
                let path = self.path();
                let (data_type, content) = data_type(element, physical, &path)?;
                let width = match physical {
                    Physical::Bool | Physical::Bytes => 0,
                    Physical::Int32 | Physical::Float => 4,
                    Physical::Int64 | Physical::Double => 8,
                    Physical::Int96 => 12,
                    // No page can have wider ones.
                    Physical::FixedBytes => usize::try_from(element.length).unwrap_or(usize::MAX),
                };
                self.leaves.push(Arc::new(Leaf {
                    path,
                    physical,
                    width,
                    content,
                    definitions: place.definition,
                    repetitions: place.repetition,
                }));
                Some((data_type, Shape::Leaf))
            }
            (None, Logical::List) => self.list(element, place)?,
            (None, Logical::Map) => self.map(element, place)?,
            (None, _) => {
                let members = self.members(element, place)?;
                members.map(|(fields, nodes)| (DataType::Struct(fields), Shape::Struct(nodes)))
            }
        };
        Ok(made.map(|(data_type, shape)| {
            let node = Node {
                slot: place.slot,
                definition: place.definition,
                repetition: place.repetition,
                leaf,
                shape,
            };
            (data_type, node)
        }))
    }

    fn members(
        &mut self,
        element: &Element,
        place: Place,
    ) -> Result<Option<(Fields, Vec<Node>)>, Problem> {
        let (mut fields, mut nodes) = (Vec::new(), Vec::new());
        for member in &element.children {
            if let Some((field, node)) = self.column(member, place)? {
                fields.push(field);
                nodes.push(node);
            }
        }
        Ok((!nodes.is_empty()).then(|| (fields.into(), nodes)))
    }

    /// The only child of a list or map, which is repeated.
    fn repeated<'e>(&self, element: &'e Element) -> Result<&'e Element, Problem> {
        match &*element.children {
            [only]
                if only.repetition == Repetition::Repeated
                    && element.repetition != Repetition::Repeated =>
            {
                Ok(only)
            }
            _ => Err(format!(
                "column `{}` is a list or map, and has no repeated group alone",
                self.path()
            )),
        }
    }

    fn list(
        &mut self,
        element: &Element,
        place: Place,
    ) -> Result<Option<(DataType, Shape)>, Problem> {
        let repeated = self.repeated(element)?;
        let of_element = place.element();
        self.path.push(repeated.name.clone());
        let item = match &*repeated.children {
            // Three levels, unless the name says that the group is the element.
            [only]
                if repeated.logical == Logical::List
                    || only.repetition == Repetition::Repeated
                    || (repeated.name != "array"
                        && repeated.name != format!("{}_tuple", element.name)) =>
            {
                self.column(only, of_element)?
            }
            // Two levels: a value or a structure.
            _ => {
                let item = self.value(repeated, of_element)?;
                let field = |data_type| Field::new(&repeated.name, data_type, false);
                item.map(|(data_type, node)| (field(data_type), node))
            }
        };
        self.path.pop();
        Ok(
            item.map(|(field, node)| {
                (DataType::List(Arc::new(field)), Shape::List(Box::new(node)))
            }),
        )
    }

    fn map(
        &mut self,
        element: &Element,
        place: Place,
    ) -> Result<Option<(DataType, Shape)>, Problem> {
        let entries = self.repeated(element)?;
        let [key, value] = &*entries.children else {
            // Keys without values are a list of them.
            return self.list(element, place);
        };
        if [key, value]
            .map(|child| child.repetition)
            .contains(&Repetition::Repeated)
        {
            return Err(format!(
                "column `{}` is a map, and its keys or values are repeated",
                self.path()
            ));
        }
        let of_entry = place.element();
        let leaf = self.leaves.len();
        self.path.push(entries.name.clone());
        let members = self.members(entries, of_entry)?;
        self.path.pop();
        Ok(members
            .filter(|(_, nodes)| nodes.len() == 2)
            .map(|(fields, nodes)| {
                // Keys are always there.
                let key = fields[0].as_ref().clone().with_nullable(false);
                let both = Fields::from(vec![Arc::new(key), Arc::clone(&fields[1])]);
                let field = Field::new(&entries.name, DataType::Struct(both), false);
                let entry = Node {
                    slot: of_entry.slot,
                    definition: of_entry.definition,
                    repetition: of_entry.repetition,
                    leaf,
                    shape: Shape::Struct(nodes),
                };
                (
                    DataType::Map(Arc::new(field), false),
                    Shape::List(Box::new(entry)),
                )
            }))
    }
}

/// The type of the values of a column, and what they are.
fn data_type(
    element: &Element,
    physical: Physical,
    path: &str,
) -> Result<(DataType, Content), Problem> {
    let unit = |unit| match unit {
        Unit::Millis => TimeUnit::Millisecond,
        Unit::Micros => TimeUnit::Microsecond,
        Unit::Nanos => TimeUnit::Nanosecond,
    };
    let length = i32::try_from(element.length).unwrap_or(i32::MAX);
    if let Logical::Decimal { precision, scale } = element.logical {
        let wrong =
            || format!("column `{path}` has decimals of scale {scale} in {precision} digits");
        let scale = u8::try_from(scale).map_err(|_| wrong())?;
        let precision = u8::try_from(precision).map_err(|_| wrong())?;
        let is_wide = match physical {
            Physical::Int32 | Physical::Int64 => false,
            Physical::Bytes => precision > 38,
            Physical::FixedBytes => length > 16,
            _ => {
                return Err(format!(
                    "column `{path}` has decimals that are floating-point numbers"
                ));
            }
        };
        let places = i8::try_from(scale).map_err(|_| wrong())?;
        let data_type = match is_wide {
            true => DataType::Decimal256(precision, places),
            false => DataType::Decimal128(precision, places),
        };
        return Ok((data_type, Content::Decimal { scale }));
    }
    let integer = |bits, signed| Content::Integer { bits, signed };
    Ok(match (physical, element.logical) {
        (_, Logical::Unknown) => (DataType::Null, Content::Plain),
        (Physical::Bool, _) => (DataType::Boolean, Content::Plain),
        (Physical::Int32, Logical::Integer { bits, signed }) => {
            let data_type = match (bits, signed) {
                (8, true) => DataType::Int8,
                (8, false) => DataType::UInt8,
                (16, true) => DataType::Int16,
                (16, false) => DataType::UInt16,
                (_, true) => return Ok((DataType::Int32, Content::Plain)),
                (_, false) => return Ok((DataType::UInt32, integer(32, false))),
            };
            (data_type, integer(bits, signed))
        }
        (Physical::Int32, Logical::Date) => (DataType::Date32, Content::Plain),
        (Physical::Int32, Logical::Time(_)) => {
            (DataType::Time32(TimeUnit::Millisecond), Content::Plain)
        }
        (Physical::Int32, _) => (DataType::Int32, Content::Plain),
        (Physical::Int64, Logical::Integer { signed: false, .. }) => {
            (DataType::UInt64, Content::Plain)
        }
        (Physical::Int64, Logical::Time(part)) => (DataType::Time64(unit(part)), Content::Plain),
        (Physical::Int64, Logical::Timestamp { unit: part, is_utc }) => {
            let zone = is_utc.then(|| "UTC".into());
            let nanos = match part {
                Unit::Millis => 1_000_000,
                Unit::Micros => 1_000,
                Unit::Nanos => 1,
            };
            (DataType::Timestamp(unit(part), zone), Content::Time(nanos))
        }
        (Physical::Int64, _) => (DataType::Int64, Content::Plain),
        (Physical::Int96, _) => (
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            Content::Time(1),
        ),
        (Physical::Float, _) => (DataType::Float32, Content::Plain),
        (Physical::Double, _) => (DataType::Float64, Content::Plain),
        (Physical::Bytes, Logical::Text) => (DataType::Utf8, Content::Text),
        (Physical::Bytes, _) => (DataType::Binary, Content::Plain),
        (Physical::FixedBytes, Logical::Float16) if length == 2 => {
            (DataType::Float16, Content::Float16)
        }
        (Physical::FixedBytes, _) => (DataType::FixedSizeBinary(length), Content::Plain),
    })
}

/// Adds what Arrow's schema, in base64, says beside the types.
fn describe(
    schema: &str,
    fields: &mut [Field],
    metadata: &mut HashMap<String, String>,
) -> Option<()> {
    let bytes = base64::decode(schema)?;
    // Behind a mark and the length of the message.
    let message = match bytes.strip_prefix(&[0xff; 4]) {
        Some(rest) => rest.get(4..)?,
        None => &bytes,
    };
    let message = root_as_message(message).ok()?;
    let schema = message.header_as_schema()?;
    for entry in schema.custom_metadata().into_iter().flatten() {
        let (key, value) = text_of(entry)?;
        metadata.entry(key).or_insert(value);
    }
    let described = schema.fields().into_iter().flatten();
    for (field, described) in fields.iter_mut().zip(described) {
        *field = with_metadata(field, described)?;
    }
    Some(())
}

fn text_of(entry: KeyValue<'_>) -> Option<(String, String)> {
    Some((entry.key()?.to_owned(), entry.value()?.to_owned()))
}

/// A field with the metadata of its description; `None` if that is of another one.
fn with_metadata(field: &Field, described: IpcField<'_>) -> Option<Field> {
    if described.name() != Some(field.name()) {
        return None;
    }
    let inner = |field: &Arc<Field>, number: usize| {
        let children = described.children().filter(|all| number < all.len())?;
        with_metadata(field, children.get(number)).map(Arc::new)
    };
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            let fields: Option<Vec<_>> = fields
                .iter()
                .enumerate()
                .map(|(number, field)| inner(field, number))
                .collect();
            DataType::Struct(fields?.into())
        }
        // Elements may have other names there.
        DataType::List(item) => DataType::List(inner(item, 0).unwrap_or_else(|| Arc::clone(item))),
        other => other.clone(),
    };
    let metadata: Option<HashMap<_, _>> = described
        .custom_metadata()
        .into_iter()
        .flatten()
        .map(text_of)
        .collect();
    let field = field.clone().with_data_type(data_type);
    Some(field.with_metadata(metadata?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_longer_than_needed() {
        let leaf = |name: &str| Element {
            name: name.to_owned(),
            physical: Some(Physical::Int32),
            ..Element::default()
        };
        let group = |name: String, children| Element {
            name,
            children,
            ..Element::default()
        };
        let long = "n".repeat(1000);
        let children = vec![
            group("a".to_owned(), vec![leaf("b"), leaf(&long)]),
            group(long.clone(), vec![leaf("b")]),
        ];
        let footer = Footer {
            root: group(String::new(), children),
            groups: Vec::new(),
            metadata: Vec::new(),
        };
        let schema = FileSchema::new(&footer, true).unwrap();
        let paths: Vec<&str> = schema.leaves.iter().map(|leaf| &*leaf.path).collect();
        assert_eq!(paths, ["a.b", &format!("….{long}"), "….b"]);
    }
}
