//! The head of a page: `PageHeader` of Parquet's parquet.thrift.

use super::thrift::{Reader, kind};

/// What the head of a page says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub(super) kind: u64,
    pub(super) size: usize,
    pub(super) compressed: usize,
    pub(super) values: u64,
    pub(super) encoding: u64,
    pub(super) definition_encoding: u64,
    pub(super) repetition_encoding: u64,
    pub(super) definition_bytes: usize,
    pub(super) repetition_bytes: usize,
    pub(super) is_plain: bool,
}

pub(super) const DATA: u64 = 0;
pub(super) const INDEX: u64 = 1;
pub(super) const DICTIONARY: u64 = 2;
pub(super) const DATA_V2: u64 = 3;

impl Head {
    /// Reads the head at the beginning of bytes, and its size.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut reader = Reader(bytes);
        let mut head = Self::default();
        reader.structure(|reader, field, kind| {
            let size = |reader: &mut Reader<'_>| usize::try_from(reader.size(kind)?).ok();
            match (field, kind) {
                (1, _) => head.kind = reader.size(kind)?,
                (2, _) => head.size = size(reader)?,
                (3, _) => head.compressed = size(reader)?,
                (5, kind::STRUCT) => head.members(reader, DATA)?,
                (7, kind::STRUCT) => head.members(reader, DICTIONARY)?,
                (8, kind::STRUCT) => head.members(reader, DATA_V2)?,
                (_, kind) => reader.skip(kind, 0)?,
            }
            Some(())
        })?;
        Some((head, bytes.len() - reader.0.len()))
    }

    fn members(&mut self, reader: &mut Reader<'_>, page: u64) -> Option<()> {
        reader.structure(|reader, field, kind| {
            let size = |reader: &mut Reader<'_>| usize::try_from(reader.size(kind)?).ok();
            match (page, field, kind) {
                (_, 1, _) => self.values = reader.size(kind)?,
                (DATA | DICTIONARY, 2, _) | (DATA_V2, 4, _) => self.encoding = reader.size(kind)?,
                (DATA, 3, _) => self.definition_encoding = reader.size(kind)?,
                (DATA, 4, _) => self.repetition_encoding = reader.size(kind)?,
                (DATA_V2, 5, _) => self.definition_bytes = size(reader)?,
                (DATA_V2, 6, _) => self.repetition_bytes = size(reader)?,
                (DATA_V2, 7, kind::FALSE) => self.is_plain = true,
                (_, _, kind) => reader.skip(kind, 0)?,
            }
            Some(())
        })
    }
}
