//! Counts and values by step and data source.

use std::collections::BTreeMap;

use super::{Function, MOST_VALUES};

/// What is known of a data source in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    /// How many events.
    count: u64,
    /// The sum, the least, the greatest or the last of their values.
    value: f64,
    function: Option<Function>,
}

impl Cell {
    /// An event that is counted.
    pub(super) const ONE: Self = Self {
        count: 1,
        value: 0.0,
        function: None,
    };

    /// A value.
    pub(super) const fn of(function: Function, value: f64) -> Self {
        Self {
            count: 1,
            value,
            function: Some(function),
        }
    }

    /// Adds what came later.
    fn add(&mut self, later: Self) {
        self.count += later.count;
        self.value = match self.function {
            None => self.value,
            Some(Function::Average) => self.value + later.value,
            Some(Function::Min) => self.value.min(later.value),
            Some(Function::Max) => self.value.max(later.value),
            Some(Function::Last) => later.value,
        };
    }

    /// The number that is kept.
    pub(super) fn result(self) -> f64 {
        match self.function {
            None => self.count as f64,
            Some(Function::Average) => self.value / self.count as f64,
            Some(_) => self.value,
        }
    }
}

/// The cells of all steps. Events mostly come in the order of time, so that those of one step come
/// one after the other.
#[derive(Debug)]
pub(super) struct Cells {
    /// The number of steps that are kept.
    most: Option<u64>,
    /// The first step that has had events.
    first: Option<u64>,
    steps: BTreeMap<u64, Vec<(u32, Cell)>>,
    /// The step of the last event, and its cells by data source.
    step: u64,
    open: Vec<Option<Cell>>,
    used: Vec<u32>,
    dropped: u64,
}

impl Cells {
    pub(super) fn new(most: Option<u64>) -> Self {
        Self {
            most,
            first: None,
            steps: BTreeMap::new(),
            step: 0,
            open: Vec::new(),
            used: Vec::new(),
            dropped: 0,
        }
    }

    /// Adds an event.
    #[inline]
    pub(super) fn add(&mut self, step: u64, source: u32, cell: Cell) {
        if step != self.step {
            self.close();
            self.step = step;
        }
        let place = source as usize;
        if self.open.len() <= place {
            self.open.resize(place + 1, None);
        }
        match &mut self.open[place] {
            Some(known) => known.add(cell),
            unknown => {
                *unknown = Some(cell);
                self.used.push(source);
            }
        }
    }

    /// Puts the cells of the last step to the others.
    fn close(&mut self) {
        if self.used.is_empty() {
            return;
        }
        self.first = Some(self.first.map_or(self.step, |first| first.min(self.step)));
        let cells = self.steps.entry(self.step).or_default();
        let met_before = !cells.is_empty();
        for source in self.used.drain(..) {
            let Some(cell) = self.open[source as usize].take() else {
                continue;
            };
            let known = cells
                .iter_mut()
                .find(|(known, _)| met_before && *known == source);
            match known {
                Some((_, known)) => known.add(cell),
                None => cells.push((source, cell)),
            }
        }
        // More steps than a database can have rows are never needed.
        let most = self.most.unwrap_or(MOST_VALUES + 1);
        let last = self.steps.last_key_value().map_or(0, |(&step, _)| step);
        while let Some(first) = self.steps.first_entry()
            && last - first.key() >= most
        {
            let cells = first.remove();
            self.dropped += cells.iter().map(|(_, cell)| cell.count).sum::<u64>();
        }
    }

    /// How many events were before the steps that are kept.
    pub(super) fn dropped(&mut self) -> u64 {
        self.close();
        self.dropped
    }

    /// The first step and the last one that have events, kept or not.
    pub(super) fn span(&mut self) -> Option<(u64, u64)> {
        self.close();
        let (&last, _) = self.steps.last_key_value()?;
        Some((self.first?, last))
    }

    /// The cells of a step.
    pub(super) fn of_step(&self, step: u64) -> &[(u32, Cell)] {
        self.steps.get(&step).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(cells: &Cells, step: u64) -> Vec<(u32, f64)> {
        let cells = cells.of_step(step).iter();
        cells
            .map(|(source, cell)| (*source, cell.result()))
            .collect()
    }

    #[test]
    fn events_of_any_order_are_counted() {
        let mut cells = Cells::new(None);
        for (step, source) in [(5, 0), (5, 1), (6, 0), (5, 0), (5, 0), (9, 2)] {
            cells.add(step, source, Cell::ONE);
        }
        assert_eq!(cells.span(), Some((5, 9)));
        assert_eq!(result(&cells, 5), [(0, 3.0), (1, 1.0)]);
        assert_eq!(result(&cells, 6), [(0, 1.0)]);
        assert_eq!(result(&cells, 7), []);
        assert_eq!(cells.dropped(), 0);
    }

    #[test]
    fn values_become_one() {
        for (function, expected) in [
            (Function::Average, 2.0),
            (Function::Min, -1.0),
            (Function::Max, 6.0),
            (Function::Last, 1.0),
        ] {
            let mut cells = Cells::new(None);
            for (step, value) in [(1, 6.0), (1, -1.0), (2, 0.5), (1, 1.0)] {
                cells.add(step, 0, Cell::of(function, value));
            }
            assert_eq!(cells.span(), Some((1, 2)));
            assert_eq!(result(&cells, 1), [(0, expected)]);
        }
    }

    #[test]
    fn only_the_last_steps_are_kept() {
        let mut cells = Cells::new(Some(3));
        for step in [1, 1, 2, 3, 4, 10, 12] {
            cells.add(step, 0, Cell::ONE);
        }
        assert_eq!(cells.dropped(), 5);
        assert_eq!(cells.span(), Some((1, 12)));
        assert_eq!(result(&cells, 10), [(0, 1.0)]);
        assert_eq!(result(&cells, 4), []);
    }
}
