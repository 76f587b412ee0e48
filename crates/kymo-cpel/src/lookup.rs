//! From numbers that a file chose to positions in our tables.

use std::collections::HashMap;

/// Numbers below it are looked up in an array.
const DENSE: usize = 1 << 16;
/// Stands for "none" in the array.
const NONE: u32 = u32::MAX;

/// Finds positions by numbers. Small numbers, which nearly all are, cost a look into an array.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
}

impl Lookup {
    /// The position that a number has.
    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> Option<u32> {
        match self.dense.get(number as usize) {
            Some(&NONE) => None,
            Some(&position) => Some(position),
            None => self.get_sparse(number),
        }
    }

    #[inline(never)]
    fn get_sparse(&self, number: u32) -> Option<u32> {
        self.sparse.get(&number).copied()
    }

    /// Gives a number its position; `false` where it has one: the first stays.
    pub(crate) fn insert(&mut self, number: u32, position: u32) -> bool {
        debug_assert!(position != NONE);
        if self.get(number).is_some() {
            return false;
        }
        let index = number as usize;
        if index < DENSE {
            if index >= self.dense.len() {
                self.dense.resize(index + 1, NONE);
            }
            self.dense[index] = position;
        } else {
            self.sparse.insert(number, position);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_position_stays() {
        let mut lookup = Lookup::default();
        for number in [0, 5, 65_535, 65_536, u32::MAX] {
            assert_eq!(lookup.get(number), None);
            assert!(lookup.insert(number, number / 2));
            assert!(!lookup.insert(number, 9));
            assert_eq!(lookup.get(number), Some(number / 2));
        }
        assert_eq!(lookup.get(4), None);
        assert_eq!(lookup.get(65_537), None);
    }
}
