//! What has begun and not ended yet, by key, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// A limited number of values by key: when it is full, at least the later half
/// stays.
#[derive(Debug)]
pub(super) struct Pending<K, V> {
    /// Those of the present half.
    young: HashMap<K, V, RandomState>,
    /// Those of the half before it.
    old: HashMap<K, V, RandomState>,
    half: usize,
    dropped: u64,
}

impl<K: Hash + Eq, V> Pending<K, V> {
    /// Keeps at most `most` values; at least 2.
    pub(super) fn new(most: usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            half: (most / 2).max(1),
            dropped: 0,
        }
    }

    /// Adds a value; hands back what was there under its key.
    #[inline]
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let replaced = match self.old.is_empty() {
            true => None,
            false => self.old.remove(&key),
        };
        let replaced = replaced.or(self.young.insert(key, value));
        if self.young.len() >= self.half {
            std::mem::swap(&mut self.young, &mut self.old);
            self.dropped += self.young.len() as u64;
            self.young.clear();
        }
        replaced
    }

    /// Takes a value out.
    #[inline]
    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let found = self.young.remove(key);
        match self.old.is_empty() {
            true => found,
            false => found.or_else(|| self.old.remove(key)),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        (self.young.len() + self.old.len()) as u64
    }

    /// How many had to go.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_that_forgets_old_values(
            steps in prop::collection::vec((any::<bool>(), 0u8..12), 0..300),
            most in 2usize..12,
        ) {
            let mut pending = Pending::new(most);
            // By key when it was added.
            let mut model: BTreeMap<u8, usize> = BTreeMap::new();
            let mut forgotten = 0;
            for (now, (adds, key)) in steps.into_iter().enumerate() {
                let found = match adds {
                    true => pending.insert(key, now),
                    false => pending.remove(&key),
                };
                let expected = match adds {
                    true => model.insert(key, now),
                    false => model.remove(&key),
                };
                if let Some(expected) = expected {
                    forgotten += u64::from(found.is_none());
                    if found.is_none() {
                        // At least half as many others came since.
                        let later = model.values().filter(|&&when| when > expected).count();
                        prop_assert!(now - expected >= most / 2 || later >= most / 2);
                    } else {
                        prop_assert_eq!(found, Some(expected));
                    }
                } else {
                    prop_assert_eq!(found, None);
                }
                prop_assert!(pending.len() <= most as u64);
            }
            prop_assert_eq!(pending.len() + pending.dropped(), model.len() as u64 + forgotten);
        }
    }
}
