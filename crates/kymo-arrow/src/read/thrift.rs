//! Thrift's compact protocol, in which Parquet's footers and heads of pages are.

/// Structures of Thrift within each other; real ones have some 6.
const MOST_STRUCTS: usize = 32;

/// The types of Thrift's compact protocol that matter.
pub(super) mod kind {
    pub(in crate::read) const STOP: u8 = 0;
    pub(in crate::read) const TRUE: u8 = 1;
    pub(in crate::read) const FALSE: u8 = 2;
    pub(in crate::read) const BYTE: u8 = 3;
    pub(in crate::read) const I16: u8 = 4;
    pub(in crate::read) const I64: u8 = 6;
    pub(in crate::read) const DOUBLE: u8 = 7;
    pub(in crate::read) const BINARY: u8 = 8;
    pub(in crate::read) const LIST: u8 = 9;
    pub(in crate::read) const SET: u8 = 10;
    pub(in crate::read) const STRUCT: u8 = 12;
}

/// Bytes, read from their beginning; `None` if they end too early or are not what was asked for.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
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

    /// A signed number: they alternate between positive and negative ones.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
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
                0 => self.signed()?,
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
        // Each element has a byte at least, so that nobody makes room for more than there can be.
        if count > self.0.len() as u64 {
            return None;
        }
        Some((count, head & 0xf))
    }

    /// A number of whatever width.
    pub(super) fn number(&mut self, kind: u8) -> Option<i64> {
        matches!(kind, kind::I16..=kind::I64).then(|| self.signed())?
    }

    /// A number that is a size, a count or the code of something.
    pub(super) fn size(&mut self, kind: u8) -> Option<u64> {
        u64::try_from(self.number(kind)?).ok()
    }

    pub(super) fn binary(&mut self, kind: u8) -> Option<&'a [u8]> {
        if kind != kind::BINARY {
            return None;
        }
        let length = usize::try_from(self.varint()?).ok()?;
        let (value, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }

    pub(super) fn text(&mut self, kind: u8) -> Option<String> {
        let value = std::str::from_utf8(self.binary(kind)?).ok()?;
        Some(value.to_owned())
    }

    /// Reads a structure: `take` gets the number and type of each field, and reads or [skips](Self::skip) its value.
    pub(super) fn structure(
        &mut self,
        mut take: impl FnMut(&mut Self, i64, u8) -> Option<()>,
    ) -> Option<()> {
        let mut number = 0;
        loop {
            match self.field(&mut number)? {
                kind::STOP => return Some(()),
                kind => take(self, number, kind)?,
            }
        }
    }

    /// Reads the structures of a list, one after the other.
    pub(super) fn structures<T>(
        &mut self,
        kind: u8,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        if kind != kind::LIST {
            return None;
        }
        let (count, kind) = self.list()?;
        let is_empty = count == 0;
        (kind == kind::STRUCT || is_empty).then(|| (0..count).map(|_| read(self)).collect())?
    }

    /// Passes over a value of a type.
    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
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
                self.binary(kind)?;
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
            kind::STRUCT => self.structure(|reader, _, kind| reader.skip(kind, depth + 1))?,
            _ => return None,
        }
        Some(())
    }
}
