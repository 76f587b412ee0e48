//! What was met by its name, where names come in the same order round after round.
//!
//! Whoever sends values sends those of the same names each time, mostly in the same order. What came after
//! a name is looked at before any table is: one comparison finds most.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

/// What was met, by names.
#[derive(Debug)]
pub(crate) struct SequenceCache<T> {
    all: Vec<Entry<T>>,
    places: HashMap<Arc<[u8]>, usize>,
    /// The place of what was found last.
    latest: usize,
}

#[derive(Debug)]
struct Entry<T> {
    name: Arc<[u8]>,
    value: T,
    /// The place of what was found after this. It may be that of another by now, or of none.
    next: usize,
}

impl<T> SequenceCache<T> {
    pub(crate) fn new() -> Self {
        Self {
            all: Vec::new(),
            places: HashMap::new(),
            latest: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// What is at a place. The place is known from looking for its name, and nothing was done since.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> &T {
        &self.all[place].value
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut T {
        &mut self.all[place].value
    }

    /// The place of what came after the latest one, if that has the name that is looked for.
    #[inline]
    pub(crate) fn next_if(&mut self, is_name: impl FnOnce(&[u8]) -> bool) -> Option<usize> {
        let place = self.all.get(self.latest)?.next;
        self.all.get(place).filter(|entry| is_name(&entry.name))?;
        self.latest = place;
        Some(place)
    }

    /// The place of a name.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<usize> {
        let place = *self.places.get(name)?;
        self.follow(place);
        Some(place)
    }

    /// Sets the value of a name, and returns its position.
    pub(crate) fn insert(&mut self, name: &[u8], value: T) -> usize {
        let place = match self.places.get(name) {
            Some(&place) => {
                self.all[place].value = value;
                place
            }
            None => {
                let (name, place): (Arc<[u8]>, _) = (name.into(), self.all.len());
                self.places.insert(Arc::clone(&name), place);
                self.all.push(Entry {
                    name,
                    value,
                    next: place,
                });
                place
            }
        };
        self.follow(place);
        place
    }

    /// Keeps nothing by a name.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let Some(place) = self.places.remove(name) else {
            return;
        };
        self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place) {
            self.places.insert(Arc::clone(&moved.name), place);
        }
    }

    /// Notes that something came after the latest.
    fn follow(&mut self, place: usize) {
        if let Some(before) = self.all.get_mut(self.latest) {
            before.next = place;
        }
        self.latest = place;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_came_next_is_found_without_the_table() {
        let mut met = SequenceCache::new();
        for name in [b"a", b"b", b"c"] {
            met.insert(name, name[0]);
        }
        // That `a` comes after `c` is not known before it has.
        assert_eq!(met.next_if(|name| name == b"a"), None);
        assert_eq!(met.find(b"a"), Some(0));
        for name in [b"b", b"c", b"a", b"b"] {
            let place = met.next_if(|found| found == name).unwrap();
            assert_eq!(met.at(place), &name[0]);
        }
        assert_eq!(met.next_if(|name| name == b"a"), None);
        assert_eq!(met.next_if(|name| name == b"c"), Some(2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_table_would_have_the_same(steps in proptest::collection::vec((0u8..4, 0u8..6), 0..80)) {
            let mut met = SequenceCache::new();
            let mut table = std::collections::BTreeMap::new();
            for (count, (step, name)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        met.insert(&[name], count);
                        table.insert(name, count);
                    }
                    1 => {
                        met.remove(&[name]);
                        table.remove(&name);
                    }
                    _ => {
                        let next = met.next_if(|found| found == [name]);
                        let found = next.or_else(|| met.find(&[name]));
                        prop_assert_eq!(found.map(|place| met.at(place)), table.get(&name));
                    }
                }
                prop_assert_eq!(met.len(), table.len());
            }
        }
    }
}
