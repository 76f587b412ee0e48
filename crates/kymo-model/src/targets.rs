//! Where the values of chosen fields go, elements of arrays included.

use crate::{FieldId, Kind, Pick, Schema};

/// Elements of arrays that are meant: `(counter, elements seen)`.
pub(crate) type Elements = Vec<(usize, u64)>;

/// Targets of the fields of one schema. Names are not looked up while values come: a field finds its targets by
/// its number.
#[derive(Clone, Debug)]
pub(crate) struct Targets<T> {
    /// For each field of the schema: 0, or 1 above the position of its action.
    table: Vec<u32>,
    actions: Vec<Action<T>>,
    /// Elements seen so far of the arrays that matter.
    counters: Vec<u64>,
}

/// What to do when a field comes.
#[derive(Clone, Debug)]
struct Action<T> {
    /// The field is an element of an array: count it.
    counts: Option<usize>,
    /// The field is an array: start its count.
    restarts: Option<usize>,
    /// Targets, and which elements they are for.
    targets: Vec<(Elements, T)>,
}

impl<T> Default for Targets<T> {
    fn default() -> Self {
        Self {
            table: Vec::new(),
            actions: Vec::new(),
            counters: Vec::new(),
        }
    }
}

impl<T> Targets<T> {
    /// None yet, for the fields of a schema.
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            table: vec![0; schema.fields().len()],
            ..Self::default()
        }
    }

    /// Which elements of the arrays on the way from the root to a field are meant, outermost first. They are
    /// counted from now on.
    pub(crate) fn elements(&mut self, schema: &Schema, pick: &Pick) -> Elements {
        let mut on_way = Vec::new();
        let mut at = pick.field;
        while let Some(parent) = schema.field(at).parent {
            if matches!(schema.field(parent).kind, Kind::Array { .. }) {
                on_way.push((parent, at));
            }
            at = parent;
        }
        let meant = on_way.into_iter().rev().zip(&pick.elements);
        meant
            .map(|((array, element), &wanted)| {
                (self.counter(array, element), wanted.saturating_add(1))
            })
            .collect()
    }

    /// The counter of an array's elements.
    fn counter(&mut self, array: FieldId, element: FieldId) -> usize {
        if let Some(counter) = self.action(array).restarts {
            return counter;
        }
        let counter = self.counters.len();
        self.counters.push(0);
        self.action(array).restarts = Some(counter);
        self.action(element).counts = Some(counter);
        counter
    }

    fn action(&mut self, field: FieldId) -> &mut Action<T> {
        let entry = &mut self.table[field.index()];
        if *entry == 0 {
            self.actions.push(Action {
                counts: None,
                restarts: None,
                targets: Vec::new(),
            });
            *entry = self.actions.len() as u32;
        }
        &mut self.actions[*entry as usize - 1]
    }

    /// Gives a field one more target, for these elements.
    pub(crate) fn push(&mut self, field: FieldId, elements: Elements, target: T) {
        self.action(field).targets.push((elements, target));
    }

    /// Whether anything is done when a field comes.
    #[inline]
    pub(crate) fn has(&self, field: FieldId) -> bool {
        self.table
            .get(field.index())
            .is_some_and(|&entry| entry != 0)
    }

    /// All such fields, sorted.
    pub(crate) fn fields(&self) -> Vec<FieldId> {
        let fields = (0..self.table.len() as u32).map(FieldId);
        fields.filter(|&field| self.has(field)).collect()
    }

    /// The only target of a field, if it is for all elements and they are not counted.
    #[inline]
    pub(crate) fn only(&self, field: FieldId) -> Option<&T> {
        let entry = *self.table.get(field.index())? as usize;
        let action = self.actions.get(entry.checked_sub(1)?)?;
        match &action.targets[..] {
            [(elements, target)] if elements.is_empty() && action.counts.is_none() => Some(target),
            _ => None,
        }
    }

    /// A field comes: it is counted.
    #[inline(always)]
    pub(crate) fn count(&mut self, field: FieldId) {
        if let Some(&entry) = self.table.get(field.index())
            && entry != 0
        {
            let action = &self.actions[entry as usize - 1];
            if let Some(counter) = action.counts {
                self.counters[counter] += 1;
            }
            if let Some(counter) = action.restarts {
                self.counters[counter] = 0;
            }
        }
    }

    /// The targets of a field that was counted, if it is one of the elements that they are for.
    #[inline(always)]
    pub(crate) fn hits(&self, field: FieldId) -> impl Iterator<Item = &T> {
        let entry = self.table.get(field.index()).copied().unwrap_or(0);
        let action = (entry as usize).checked_sub(1).map(|at| &self.actions[at]);
        let targets = action.map_or(&[][..], |action| &action.targets);
        let is_meant = |elements: &Elements| {
            let mut elements = elements.iter();
            elements.all(|&(counter, seen)| self.counters[counter] == seen)
        };
        let hits = targets
            .iter()
            .filter(move |(elements, _)| is_meant(elements));
        hits.map(|(_, target)| target)
    }
}
