//! Numbers for byte strings, in the order they are met.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// Strings that are told apart.
const MOST: usize = 1 << 20;
/// Bytes of all of them.
const MOST_BYTES: usize = 64 << 20;

/// The number of all strings that are beyond the limits.
pub(super) const OTHERS: u32 = u32::MAX;

/// Numbers strings; beyond its limits all have the same number, [`OTHERS`].
#[derive(Debug)]
pub(super) struct Interner {
    numbers: HashMap<Arc<[u8]>, u32, RandomState>,
    strings: Vec<Arc<[u8]>>,
    /// How many more there may be, and bytes of them.
    room: (usize, usize),
}

impl Default for Interner {
    fn default() -> Self {
        Self::with_room(MOST, MOST_BYTES)
    }
}

impl Interner {
    pub(super) fn with_room(strings: usize, bytes: usize) -> Self {
        Self {
            numbers: HashMap::default(),
            strings: Vec::new(),
            room: (strings, bytes),
        }
    }

    /// The number of a string.
    #[inline]
    pub(super) fn number(&mut self, string: &[u8]) -> u32 {
        match self.numbers.get(string) {
            Some(&number) => number,
            None => self.push(string),
        }
    }

    #[cold]
    fn push(&mut self, string: &[u8]) -> u32 {
        let (strings, bytes) = self.room;
        let left = (strings.checked_sub(1), bytes.checked_sub(string.len()));
        let (Some(strings), Some(bytes)) = left else {
            return OTHERS;
        };
        self.room = (strings, bytes);
        let number = self.strings.len() as u32;
        let string: Arc<[u8]> = string.into();
        self.strings.push(Arc::clone(&string));
        self.numbers.insert(string, number);
        number
    }

    /// The string of a number.
    #[inline]
    pub(super) fn string(&self, number: u32) -> Option<&[u8]> {
        self.strings.get(number as usize).map(|string| &**string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_beyond_the_limits_are_one() {
        let mut interner = Interner::with_room(3, 5);
        assert_eq!(interner.number(b"ab"), 0);
        assert_eq!(interner.number(b"cd"), 1);
        assert_eq!(interner.number(b"ab"), 0);
        assert_eq!(interner.number(b"ef"), OTHERS, "too many bytes");
        assert_eq!(interner.number(b"g"), 2);
        assert_eq!(interner.number(b""), OTHERS, "too many strings");
        assert_eq!(interner.number(b"g"), 2);
        assert_eq!(interner.string(1), Some(&b"cd"[..]));
        assert_eq!(interner.string(OTHERS), None);
    }
}
