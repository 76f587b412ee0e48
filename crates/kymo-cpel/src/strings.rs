//! Strings with a zero at the end of each, as tables of CPEL and elog files hold them.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Why a string cannot be added to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StringError {
    /// It has a zero within it, where readers take it to end.
    Zero {
        /// The string.
        text: Vec<u8>,
    },
    /// The strings take more than they may.
    Full {
        /// Bytes that they may take.
        most: u32,
    },
}

impl fmt::Display for StringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { text } => write!(
                f,
                "the string `{}` has a zero byte, which ends strings",
                text.escape_ascii()
            ),
            Self::Full { most } => write!(
                f,
                "the texts take more than {most} bytes; hint: choose some of the events, or fewer \
                 fields"
            ),
        }
    }
}

impl std::error::Error for StringError {}

/// A table in the making, which has each string once.
#[derive(Debug)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    most: u32,
    hasher: RandomState,
    /// Where strings begin, by their hashes.
    offsets: HashMap<u64, u32, RandomState>,
}

impl Strings {
    /// A table of at most `most` bytes that begins with bytes that are not one of its strings.
    pub(crate) fn new(head: &[u8], most: u32) -> Self {
        Self {
            bytes: head.to_vec(),
            most,
            hasher: RandomState::default(),
            offsets: HashMap::default(),
        }
    }

    /// The offset of a string, which is added unless it is there.
    pub(crate) fn add(&mut self, text: &[u8]) -> Result<u32, StringError> {
        let hash = self.hasher.hash_one(text);
        if let Some(&offset) = self.offsets.get(&hash)
            && self.has(text, offset)
        {
            return Ok(offset);
        }
        if memchr::memchr(0, text).is_some() {
            let text = text.to_vec();
            return Err(StringError::Zero { text });
        }
        let after = self.bytes.len() as u64 + text.len() as u64 + 1;
        if after > self.most.into() {
            return Err(StringError::Full { most: self.most });
        }
        let offset = self.bytes.len() as u32;
        self.bytes.extend(text);
        self.bytes.push(0);
        // Of two strings with one hash, which are hardly ever, the second is written again.
        self.offsets.entry(hash).or_insert(offset);
        Ok(offset)
    }

    /// Whether a string begins at an offset.
    fn has(&self, text: &[u8], offset: u32) -> bool {
        let there = self.bytes.get(offset as usize..).unwrap_or_default();
        let rest = there.strip_prefix(text);
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The table.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_is_there_once() {
        let mut strings = Strings::new(b"h\0", 12);
        assert_eq!(strings.add(b"one"), Ok(2));
        assert_eq!(strings.add(b""), Ok(6));
        assert_eq!(strings.add(b"one"), Ok(2));
        let text = b"a\0b".to_vec();
        assert_eq!(
            strings.add(&text),
            Err(StringError::Zero { text: text.clone() })
        );
        assert_eq!(strings.add(b"five5"), Err(StringError::Full { most: 12 }));
        assert_eq!(strings.add(b"four"), Ok(7));
        assert_eq!(strings.into_bytes(), b"h\0one\0\0four\0");
    }
}
