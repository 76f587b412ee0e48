//! The footer of a Parquet file: its schema, and where the columns of its row groups are.
//!
//! It is `FileMetaData` of Parquet's parquet.thrift. What is not read of it is passed over. Nothing takes more memory
//! than a small multiple of the bytes that the footer has for it.

use super::Problem;
use super::thrift::{Reader, kind};

/// Columns within more others are not read.
const MOST_LEVELS: usize = 128;
/// How a file begins and ends.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// The same of a file of which the footer is encrypted.
pub(super) const ENCRYPTED: &[u8] = b"PARE";

/// What the footer of a file says.
#[derive(Debug)]
pub(super) struct Footer {
    pub(super) root: Element,
    pub(super) groups: Vec<RowGroup>,
    /// Keys and values that the writer has added.
    pub(super) metadata: Vec<(String, String)>,
}

/// Types in which values are stored: `Type` of parquet.thrift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Bool,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    FixedBytes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Repetition {
    #[default]
    Required,
    Optional,
    Repeated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// What values mean: `LogicalType` of parquet.thrift, and the older `ConvertedType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Logical {
    /// Nothing that matters here.
    #[default]
    None,
    List,
    Map,
    Text,
    Decimal {
        precision: i64,
        scale: i64,
    },
    Date,
    Time(Unit),
    Timestamp {
        unit: Unit,
        is_utc: bool,
    },
    Integer {
        bits: u8,
        signed: bool,
    },
    Float16,
    /// Nothing but nulls.
    Unknown,
}

/// A column, or a group of them.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    /// None of a group.
    pub(super) physical: Option<Physical>,
    /// Of bytes of a fixed number.
    pub(super) length: u64,
    pub(super) repetition: Repetition,
    pub(super) logical: Logical,
    pub(super) children: Vec<Self>,
}

#[derive(Debug, Default)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    pub(super) columns: Vec<ColumnChunk>,
}

/// A column of a row group.
#[derive(Clone, Debug)]
pub(super) struct ColumnChunk {
    pub(super) physical: Physical,
    pub(super) codec: u64,
    /// Values and nulls.
    pub(super) values: u64,
    /// Bytes of its pages.
    pub(super) size: u64,
    /// The same without compression.
    pub(super) full_size: u64,
    /// Where its first page begins.
    pub(super) begin: u64,
    pub(super) statistics: Statistics,
    pub(super) is_encrypted: bool,
}

/// What a file says of the values of a column in a row group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    /// The least and the greatest one, of 64-bit integers.
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) nulls: Option<u64>,
}

impl Footer {
    /// Reads the footer of a file.
    pub(super) fn read(file: &[u8]) -> Result<Self, Problem> {
        if file.ends_with(ENCRYPTED) {
            return Err("it is encrypted, which kymo does not read".to_owned());
        }
        let content = || {
            let (rest, end) = file.split_last_chunk::<8>()?;
            let (length, magic) = end.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            let begin = rest.len().checked_sub(length)?;
            (magic == MAGIC).then(|| &rest[begin..])
        };
        let content = content().ok_or("its end is not that of a Parquet file")?;
        let (mut elements, mut groups, mut metadata) = (None, Vec::new(), Vec::new());
        let read = Reader(content).structure(|reader, field, kind| {
            match field {
                2 => elements = Some(reader.structures(kind, SchemaElement::read)?),
                4 => groups = reader.structures(kind, row_group)?,
                5 => metadata = reader.structures(kind, key_value)?,
                _ => reader.skip(kind, 0)?,
            }
            Some(())
        });
        let elements = elements.filter(|_| read.is_some());
        let elements = elements.ok_or("its footer is damaged")?;
        let root = tree(&mut elements.into_iter(), 0)?;
        Ok(Self {
            root,
            groups,
            metadata,
        })
    }
}

/// An element of the schema, as it is in a footer: those within it follow it.
#[derive(Default)]
struct SchemaElement {
    element: Element,
    children: u64,
    converted: Option<u64>,
    precision: i64,
    scale: i64,
}

impl SchemaElement {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut all = Self::default();
        let mut name = None;
        reader.structure(|reader, field, kind| {
            match field {
                1 => all.element.physical = Some(physical(reader.size(kind)?)?),
                // Some write -1 for values of other types.
                2 => all.element.length = u64::try_from(reader.number(kind)?).unwrap_or(0),
                3 => {
                    all.element.repetition = match reader.size(kind)? {
                        0 => Repetition::Required,
                        1 => Repetition::Optional,
                        2 => Repetition::Repeated,
                        _ => return None,
                    }
                }
                4 => name = Some(reader.text(kind)?),
                5 => all.children = reader.size(kind)?,
                6 => all.converted = Some(reader.size(kind)?),
                7 => all.scale = reader.number(kind)?,
                8 => all.precision = reader.number(kind)?,
                10 => all.element.logical = logical(reader, kind)?,
                _ => reader.skip(kind, 0)?,
            }
            Some(())
        })?;
        all.element.name = name?;
        if let (Logical::None, Some(converted)) = (all.element.logical, all.converted) {
            all.element.logical = all.converted(converted);
        }
        Some(all)
    }

    /// What a `ConvertedType` means.
    fn converted(&self, number: u64) -> Logical {
        let integer = |bits, signed| Logical::Integer { bits, signed };
        let timestamp = |unit| Logical::Timestamp { unit, is_utc: true };
        match number {
            // JSON is text, too.
            0 | 19 => Logical::Text,
            1 | 2 => Logical::Map,
            3 => Logical::List,
            5 => Logical::Decimal {
                precision: self.precision,
                scale: self.scale,
            },
            6 => Logical::Date,
            7 => Logical::Time(Unit::Millis),
            8 => Logical::Time(Unit::Micros),
            9 => timestamp(Unit::Millis),
            10 => timestamp(Unit::Micros),
            11 => integer(8, false),
            12 => integer(16, false),
            13 => integer(32, false),
            14 => integer(64, false),
            15 => integer(8, true),
            16 => integer(16, true),
            17 => integer(32, true),
            18 => integer(64, true),
            _ => Logical::None,
        }
    }
}

/// Puts elements into each other.
fn tree(
    elements: &mut impl Iterator<Item = SchemaElement>,
    level: usize,
) -> Result<Element, Problem> {
    if level > MOST_LEVELS {
        return Err(format!(
            "its columns are nested in more than {MOST_LEVELS} others"
        ));
    }
    let SchemaElement {
        mut element,
        children,
        ..
    } = elements
        .next()
        .ok_or("its schema ends before the last column")?;
    for _ in 0..children {
        element.children.push(tree(elements, level + 1)?);
    }
    if !element.children.is_empty() {
        element.physical = None;
    }
    Ok(element)
}

fn physical(number: u64) -> Option<Physical> {
    Some(match number {
        0 => Physical::Bool,
        1 => Physical::Int32,
        2 => Physical::Int64,
        3 => Physical::Int96,
        4 => Physical::Float,
        5 => Physical::Double,
        6 => Physical::Bytes,
        7 => Physical::FixedBytes,
        _ => return None,
    })
}

/// Reads a `LogicalType`: a structure with one field, of which the number says what it is.
fn logical(reader: &mut Reader<'_>, kind: u8) -> Option<Logical> {
    let mut logical = Logical::None;
    if kind != kind::STRUCT {
        return None;
    }
    reader.structure(|reader, choice, kind| {
        if kind != kind::STRUCT {
            return reader.skip(kind, 0);
        }
        // The members of all of them: `DecimalType`, `TimeType`, `TimestampType`, `IntType`.
        let (mut numbers, mut is_so, mut unit) = ([0; 2], [false; 2], None);
        reader.structure(|reader, field, kind| {
            match (field, kind) {
                (1 | 2, kind::TRUE) => is_so[field as usize - 1] = true,
                (1, kind::BYTE) => numbers[0] = i64::from(reader.byte()?),
                (1 | 2, kind::I16..=kind::I64) => {
                    numbers[field as usize - 1] = reader.number(kind)?;
                }
                (2, kind::STRUCT) => reader.structure(|reader, choice, kind| {
                    unit = match choice {
                        1 => Some(Unit::Millis),
                        2 => Some(Unit::Micros),
                        3 => Some(Unit::Nanos),
                        _ => None,
                    };
                    reader.skip(kind, 0)
                })?,
                _ => reader.skip(kind, 0)?,
            }
            Some(())
        })?;
        logical = match (choice, unit) {
            (1 | 12, _) => Logical::Text,
            (2, _) => Logical::Map,
            (3, _) => Logical::List,
            (5, _) => Logical::Decimal {
                scale: numbers[0],
                precision: numbers[1],
            },
            (6, _) => Logical::Date,
            (7, Some(unit)) => Logical::Time(unit),
            (8, Some(unit)) => Logical::Timestamp {
                unit,
                is_utc: is_so[0],
            },
            (10, _) => Logical::Integer {
                bits: u8::try_from(numbers[0]).ok()?,
                signed: is_so[1],
            },
            (11, _) => Logical::Unknown,
            (15, _) => Logical::Float16,
            _ => Logical::None,
        };
        Some(())
    })?;
    Some(logical)
}

fn row_group(reader: &mut Reader<'_>) -> Option<RowGroup> {
    let mut group = RowGroup::default();
    reader.structure(|reader, field, kind| {
        match field {
            1 => group.columns = reader.structures(kind, column_chunk)?,
            3 => group.rows = reader.size(kind)?,
            _ => reader.skip(kind, 0)?,
        }
        Some(())
    })?;
    Some(group)
}

fn column_chunk(reader: &mut Reader<'_>) -> Option<ColumnChunk> {
    let (mut chunk, mut is_encrypted) = (None, false);
    reader.structure(|reader, field, kind| {
        is_encrypted |= field == 8;
        match (field, kind) {
            (3, kind::STRUCT) => chunk = Some(column_metadata(reader)?),
            _ => reader.skip(kind, 0)?,
        }
        Some(())
    })?;
    Some(ColumnChunk {
        is_encrypted,
        ..chunk?
    })
}

/// `ColumnMetaData`.
fn column_metadata(reader: &mut Reader<'_>) -> Option<ColumnChunk> {
    let mut numbers = [None; 12];
    let mut statistics = Statistics::default();
    reader.structure(|reader, field, kind| {
        match (field, kind) {
            (1 | 4..=7 | 9 | 11, _) => numbers[field as usize] = Some(reader.number(kind)?),
            (12, kind::STRUCT) => statistics = Statistics::read(reader)?,
            _ => reader.skip(kind, 0)?,
        }
        Some(())
    })?;
    let number = |field: usize| u64::try_from(numbers[field]?).ok();
    let data = number(9)?;
    // The dictionary is in front of the pages; some say 0 where there is none.
    let dictionary = number(11).filter(|&begin| begin > 0);
    Some(ColumnChunk {
        physical: physical(number(1)?)?,
        codec: number(4)?,
        values: number(5)?,
        full_size: number(6)?,
        size: number(7)?,
        begin: dictionary.map_or(data, |begin| begin.min(data)),
        statistics,
        is_encrypted: false,
    })
}

impl Statistics {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        // Of `max`, `min`, `max_value` and `min_value`; the first two are older.
        let mut bounds = [None; 7];
        let mut nulls = None;
        reader.structure(|reader, field, kind| {
            match field {
                1 | 2 | 5 | 6 => {
                    let bytes = reader.binary(kind)?.try_into();
                    bounds[field as usize] = bytes.ok().map(i64::from_le_bytes);
                }
                3 => nulls = u64::try_from(reader.number(kind)?).ok(),
                _ => reader.skip(kind, 0)?,
            }
            Some(())
        })?;
        Some(Self {
            least: bounds[6].or(bounds[2]),
            most: bounds[5].or(bounds[1]),
            nulls,
        })
    }
}

fn key_value(reader: &mut Reader<'_>) -> Option<(String, String)> {
    let (mut key, mut value) = (None, String::new());
    reader.structure(|reader, field, kind| {
        match field {
            1 => key = Some(reader.text(kind)?),
            2 => value = reader.text(kind)?,
            _ => reader.skip(kind, 0)?,
        }
        Some(())
    })?;
    Some((key?, value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, RecordBatch, StructArray};
    use arrow_schema::Field;
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// A file with a column nested in `structures` structures.
    fn nested(structures: usize) -> Vec<u8> {
        let mut array: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        for _ in 0..structures {
            let field = Arc::new(Field::new("inner", array.data_type().clone(), true));
            array = Arc::new(StructArray::from(vec![(field, array)]));
        }
        let batch = RecordBatch::try_from_iter([("outer", array)]).unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    #[test]
    fn the_schema_is_a_tree() {
        for structures in [0, 1, 5, 20] {
            let footer = Footer::read(&nested(structures)).unwrap();
            let mut element = &footer.root;
            for _ in 0..=structures {
                assert_eq!(element.physical, None);
                element = &element.children[0];
            }
            assert_eq!(element.physical, Some(Physical::Int32));
            assert_eq!(footer.groups[0].columns[0].values, 1);
        }
    }

    #[test]
    fn any_bytes_have_an_answer() {
        let file = nested(3);
        for end in 0..file.len() {
            assert!(Footer::read(&file[..end]).is_err());
        }
        for at in 0..file.len() {
            for byte in [0, 0x1c, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                let _ = Footer::read(&damaged);
            }
        }
        // An element without a name has another one as its child, and so on.
        let mut footer = vec![0x29, 0xfc, 0xe8, 0x07];
        footer.extend([0x48, 0x00, 0x15, 0x02, 0x00].repeat(1000));
        footer.push(0);
        footer.extend((footer.len() as u32).to_le_bytes());
        footer.extend(b"PAR1");
        let problem = Footer::read(&footer).unwrap_err();
        assert!(problem.contains("more than 128"), "{problem}");
    }
}
