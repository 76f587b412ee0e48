//! How deeply the columns of a Parquet file are nested, found before its reader goes down into them: that one has no
//! bound of its own. Nor has it one for lists, so that the whole footer is passed over once.
//!
//! A footer is a structure of Thrift's compact protocol, of which field 2 is the list of the schema's elements: each has
//! in field 5 how many of those after it are its children.

use super::thrift::{Reader, kind};

/// Columns within more others are not read.
pub(super) const MOST_LEVELS: usize = 128;

/// How many levels the schema of a file has; `None` if its footer is not one.
pub(super) fn levels(file: &[u8]) -> Option<usize> {
    let (rest, end) = file.split_last_chunk::<8>()?;
    let length = u32::from_le_bytes(end[..4].try_into().ok()?) as usize;
    let footer = rest.get(rest.len().checked_sub(length)?..)?;
    let mut reader = Reader(footer);
    let (mut field, mut levels) = (0, None);
    loop {
        let kind = reader.field(&mut field)?;
        match (field, kind) {
            (_, kind::STOP) => return levels,
            (2, kind::LIST) => {
                let deepest = schema(&mut reader)?;
                if deepest > MOST_LEVELS {
                    return Some(deepest);
                }
                levels = Some(deepest);
            }
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
