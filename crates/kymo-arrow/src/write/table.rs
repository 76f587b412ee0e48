//! Where the values of a dictionary are, by their hashes.

/// The golden ratio: numbers that are near to each other spread over a table.
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Maximum number of places at which a value is looked for: there are values that all belong at one of them.
const PROBES: usize = 64;

/// What a table has of a value.
pub(super) enum Found {
    /// Its position.
    At(u32),
    /// Nothing yet.
    Nothing,
    /// Other values at all places where it could be.
    Others,
}

/// The positions of values, each beside a key: the value itself, or what few others share with it.
#[derive(Debug, Default)]
pub(super) struct Table<K> {
    /// A key, and the position plus one; 0 where there is none.
    places: Vec<(K, u32)>,
    /// Bits of a hash below those that are a place.
    shift: u32,
}

impl<K: Copy + Default + PartialEq> Table<K> {
    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<(K, u32)>()
    }

    /// The position of a value at its first place, if that has its key, which no other value has.
    #[inline(always)]
    pub(super) fn first(&self, hash: u32, key: K) -> Option<u32> {
        let (found, position) = *self.places.get((hash >> self.shift) as usize)?;
        (found == key && position != 0).then(|| position - 1)
    }

    /// Looks for a value; `is_same` compares it with the one at a position that has its key.
    #[inline]
    pub(super) fn find(&self, hash: u32, key: K, is_same: impl Fn(u32) -> bool) -> Found {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = (hash >> self.shift) as usize;
        for _ in 0..PROBES {
            match self.places.get(at) {
                Some(&(found, position)) if position != 0 => {
                    if found == key && is_same(position - 1) {
                        return Found::At(position - 1);
                    }
                }
                _ => return Found::Nothing,
            }
            at = (at + 1) & mask;
        }
        Found::Others
    }

    /// Adds the last of `count` values, of which `value` has the hashes and keys; `None` if it finds no place.
    pub(super) fn add_last(
        &mut self,
        count: usize,
        value: impl Fn(usize) -> (u32, K),
    ) -> Option<()> {
        if count * 2 <= self.places.len() {
            return self.insert(count - 1, value(count - 1));
        }
        let size = (self.places.len() * 2).max(64);
        self.places.clear();
        self.places.resize(size, Default::default());
        self.shift = u32::BITS - size.trailing_zeros();
        (0..count).try_for_each(|position| self.insert(position, value(position)))
    }

    fn insert(&mut self, position: usize, (hash, key): (u32, K)) -> Option<()> {
        let mask = self.places.len() - 1;
        let at = (hash >> self.shift) as usize;
        let mut places = (at..at + PROBES).map(|at| at & mask);
        let free = places.find(|&at| self.places[at].1 == 0)?;
        self.places[free] = (key, position as u32 + 1);
        Some(())
    }
}
