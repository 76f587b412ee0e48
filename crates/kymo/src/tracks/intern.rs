//! Numbers for keys, in the order they are met.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// At most this many keys are distinguished.
const MOST: usize = 1 << 20;
/// Maximum number of bytes of all keys.
const MOST_BYTES: usize = 64 << 20;

/// The number of all keys that are beyond the limits.
pub(crate) const OTHERS: u32 = u32::MAX;

/// Numbers keys; beyond its limits all have the same number, [`OTHERS`]. A key is looked up by its
/// hash and a comparison, so that it need not be made of the values of a row before.
#[derive(Debug)]
pub(crate) struct Interner<K> {
    /// By hash, the number of the latest key that has it.
    latest: HashMap<u64, u32, RandomState>,
    /// Each with the number of the key before it that has the same hash.
    keys: Vec<(K, u32)>,
    /// How many more there may be, and bytes of them.
    room: (usize, usize),
}

impl<K> Default for Interner<K> {
    fn default() -> Self {
        Self::with_room(MOST, MOST_BYTES)
    }
}

impl<K> Interner<K> {
    pub(crate) fn with_room(keys: usize, bytes: usize) -> Self {
        Self {
            latest: HashMap::default(),
            keys: Vec::new(),
            room: (keys, bytes),
        }
    }

    /// What hashes of keys are made with.
    pub(crate) fn hasher(&self) -> &RandomState {
        self.latest.hasher()
    }

    /// The number of the key with a hash that `is_it` recognizes; if there is none, of the one that
    /// `make` returns with the bytes it takes.
    #[inline]
    pub(crate) fn number(
        &mut self,
        hash: u64,
        is_it: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, usize),
    ) -> u32 {
        let latest = self.latest.get(&hash).copied().unwrap_or(OTHERS);
        let mut number = latest;
        while let Some((key, before)) = self.keys.get(number as usize) {
            if is_it(key) {
                return number;
            }
            number = *before;
        }
        let (key, bytes) = make();
        self.push(hash, key, bytes, latest)
    }

    #[cold]
    fn push(&mut self, hash: u64, key: K, bytes: usize, latest: u32) -> u32 {
        let (keys, most_bytes) = self.room;
        let left = (keys.checked_sub(1), most_bytes.checked_sub(bytes));
        let (Some(keys), Some(bytes)) = left else {
            return OTHERS;
        };
        self.room = (keys, bytes);
        let number = self.keys.len() as u32;
        self.keys.push((key, latest));
        self.latest.insert(hash, number);
        number
    }

    /// The key of a number.
    #[inline]
    pub(crate) fn key(&self, number: u32) -> Option<&K> {
        self.keys.get(number as usize).map(|(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_beyond_the_limits_are_one() {
        let mut interner = Interner::with_room(3, 5);
        // Two hashes for all keys: those that have the same one are distinguished, too.
        let mut number = |key: &'static str| {
            let hash = key.len() as u64 % 2;
            interner.number(hash, |known| *known == key, || (key, key.len()))
        };
        assert_eq!(number("ab"), 0);
        assert_eq!(number("cd"), 1);
        assert_eq!(number("ab"), 0);
        assert_eq!(number("ef"), OTHERS, "too many bytes");
        assert_eq!(number("g"), 2);
        assert_eq!(number(""), OTHERS, "too many keys");
        assert_eq!(number("g"), 2);
        assert_eq!(interner.key(1), Some(&"cd"));
        assert_eq!(interner.key(OTHERS), None);
    }
}
