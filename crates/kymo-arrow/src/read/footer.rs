//! How deeply the columns of a Parquet file are nested, found before its reader goes down into them: that one has no
//! bound of its own.
//!
//! A footer is a structure of Thrift's compact protocol, of which field 2 is the list of the schema's elements: each has
//! in field 5 how many of those after it are its children.

/// Columns within more others are not read.
pub(super) const MOST_LEVELS: usize = 128;
/// Structures of Thrift within each other; real ones have some 6.
const MOST_STRUCTS: usize = 32;

/// The types of Thrift's compact protocol that matter.
mod kind {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

/// How many levels the schema of a file has; `None` if its footer is not one.
pub(super) fn levels(file: &[u8]) -> Option<usize> {
    let (rest, end) = file.split_last_chunk::<8>()?;
    let length = u32::from_le_bytes(end[..4].try_into().ok()?) as usize;
    let footer = rest.get(rest.len().checked_sub(length)?..)?;
    let mut reader = Reader(footer);
    let mut field = 0;
    loop {
        let kind = reader.field(&mut field)?;
        match (field, kind) {
            (_, kind::STOP) => return None,
            (2, kind::LIST) => return schema(&mut reader),
            (_, kind) => reader.skip(kind, 0)?,
        }
    }
}

fn schema(reader: &mut Reader<'_>) -> Option<usize> {
    let (count, kind) = reader.list()?;
    if kind != kind::STRUCT {
        return None;
    }
    // How many children are still to come of each element that is open.
    let mut open: Vec<u64> = Vec::new();
    let mut deepest = 0;
    for _ in 0..count {
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        let children = element(reader)?;
        if children > 0 {
            open.push(children);
            deepest = deepest.max(open.len());
            if deepest > MOST_LEVELS {
                break;
            }
        }
    }
    Some(deepest)
}

/// The number of children of an element.
fn element(reader: &mut Reader<'_>) -> Option<u64> {
    let (mut field, mut children) = (0, 0);
    loop {
        let kind = reader.field(&mut field)?;
        match (field, kind) {
            (_, kind::STOP) => return Some(children),
            // Numbers alternate between positive and negative ones.
            (5, 4..=6) => children = reader.varint()? >> 1,
            (_, kind) => reader.skip(kind, 0)?,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// The type of the next field of a structure; its number becomes that of the field.
    fn field(&mut self, number: &mut i64) -> Option<u8> {
        let head = self.byte()?;
        let kind = head & 0xf;
        if kind != kind::STOP {
            *number = match head >> 4 {
                0 => {
                    let value = self.varint()?;
                    (value >> 1) as i64 ^ -((value & 1) as i64)
                }
                more => number.checked_add(i64::from(more))?,
            };
        }
        Some(kind)
    }

    /// The number of elements of a list, and their type.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        Some((count, head & 0xf))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MOST_STRUCTS {
            return None;
        }
        match kind {
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => self.pass(1)?,
            kind::I16..=kind::I64 => {
                self.varint()?;
            }
            kind::DOUBLE => self.pass(8)?,
            kind::BINARY => {
                let length = self.varint()?;
                self.pass(length)?;
            }
            kind::LIST | kind::SET => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    match kind {
                        // In lists they take a byte.
                        kind::TRUE | kind::FALSE => self.pass(1)?,
                        kind => self.skip(kind, depth + 1)?,
                    }
                }
            }
            kind::STRUCT => {
                let mut field = 0;
                loop {
                    match self.field(&mut field)? {
                        kind::STOP => break,
                        kind => self.skip(kind, depth + 1)?,
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, RecordBatch, StructArray};
    use arrow_schema::Field;
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// A file with a column within so many structures.
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
    fn the_depth_of_a_schema_is_that_of_its_columns() {
        for structures in [0, 1, 5, 20] {
            // The schema itself is a level.
            assert_eq!(levels(&nested(structures)), Some(structures + 1));
        }
    }

    #[test]
    fn any_bytes_have_an_answer() {
        let file = nested(3);
        for end in 0..file.len() {
            levels(&file[..end]);
        }
        for at in 0..file.len() {
            for byte in [0, 0x1c, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                levels(&damaged);
            }
        }
        // An element has another one as its child, and so on.
        let mut footer = vec![0x29, 0xfc, 0xe8, 0x07];
        footer.extend([0x55, 0x02, 0x00].repeat(1000));
        footer.extend((footer.len() as u32).to_le_bytes());
        footer.extend(b"PAR1");
        assert!(levels(&footer).is_some_and(|levels| levels > MOST_LEVELS));
    }
}
