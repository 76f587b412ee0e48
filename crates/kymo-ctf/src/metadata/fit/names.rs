//! Names that no two parts of a whole have.

use std::collections::HashSet;

/// Names that are taken in a structure or variant.
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self {
            taken: names.map(str::to_owned).collect(),
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// The name, or where it is taken that name with a number; takes it.
    pub(super) fn free(&mut self, name: &str) -> String {
        self.free_with(name, "_")
    }

    /// The same with other text before the number.
    pub(super) fn free_with(&mut self, name: &str, mark: &str) -> String {
        let mut free = name.to_owned();
        let mut number = 2;
        while !self.taken.insert(free.clone()) {
            free = format!("{name}{mark}{number}");
            number += 1;
        }
        free
    }
}
