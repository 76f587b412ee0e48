//! Counts and values by step and data source.

use std::collections::BTreeMap;

use super::{Function, MOST_SOURCES, MOST_VALUES};

/// What is known of a data source in a step.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// How many events.
    count: u64,
    /// The sum, the least, the greatest or the last of their values.
    value: f64,
}

impl Cell {
    /// Adds what came later.
    fn add(&mut self, function: Option<Function>, later: Self) {
        self.count += later.count;
        self.value = match function {
            None => self.value,
            Some(Function::Average) => self.value + later.value,
            Some(Function::Min) => self.value.min(later.value),
            Some(Function::Max) => self.value.max(later.value),
            Some(Function::Last) => later.value,
        };
    }

    /// The number that is kept.
    fn result(self, function: Option<Function>) -> f64 {
        match function {
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
    /// How the values of a step become one; without, events are counted.
    function: Option<Function>,
    /// The number of steps that are kept.
    most: Option<u64>,
    /// The first step and the last one that have had events.
    span: Option<(u64, u64)>,
    /// By step and data source.
    kept: BTreeMap<(u64, u32), Cell>,
    /// The step of the last event, and its cells by data source.
    step: u64,
    open: Vec<Option<Cell>>,
    used: Vec<u32>,
    dropped: u64,
}

impl Cells {
    pub(super) fn new(function: Option<Function>, most: Option<u64>) -> Self {
        Self {
            function,
            most,
            span: None,
            kept: BTreeMap::new(),
            step: 0,
            open: Vec::new(),
            used: Vec::new(),
            dropped: 0,
        }
    }

    /// Adds an event, with a value where events are not counted.
    #[inline]
    pub(super) fn add(&mut self, step: u64, source: u32, value: f64) {
        if step != self.step {
            self.close();
            self.step = step;
        }
        let place = source as usize;
        if self.open.len() <= place {
            self.open.resize(place + 1, None);
        }
        let cell = Cell { count: 1, value };
        match &mut self.open[place] {
            Some(known) => known.add(self.function, cell),
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
        let (step, function) = (self.step, self.function);
        let (first, last) = self.span.unwrap_or((step, step));
        self.span = Some((first.min(step), last.max(step)));
        // It does not become smaller: nothing is needed any more but how large it would be.
        let is_too_large = self.is_too_large();
        if is_too_large {
            self.kept.clear();
        }
        for source in self.used.drain(..) {
            let Some(cell) = self.open[source as usize].take() else {
                continue;
            };
            if !is_too_large {
                self.kept
                    .entry((step, source))
                    .and_modify(|known| known.add(function, cell))
                    .or_insert(cell);
            }
        }
        while let (Some(most), Some(first)) = (self.most, self.kept.first_entry())
            && last.max(step) - first.key().0 >= most
        {
            self.dropped += first.remove().count;
        }
    }

    /// The rows and the data sources of a database that holds it all.
    pub(super) fn size(&self) -> (u64, u64) {
        let (first, last) = self.span.unwrap_or((0, 0));
        (
            self.most.unwrap_or(last - first + 1),
            self.open.len() as u64,
        )
    }

    fn is_too_large(&self) -> bool {
        let (rows, sources) = self.size();
        let values = rows.checked_mul(sources);
        sources > MOST_SOURCES as u64 || values.is_none_or(|values| values > MOST_VALUES)
    }

    /// The rows and data sources, where they are too many: then no cells are kept.
    pub(super) fn too_large(&mut self) -> Option<(u64, u64)> {
        self.close();
        self.is_too_large().then(|| self.size())
    }

    /// How many events were before the steps that are kept.
    pub(super) fn dropped(&mut self) -> u64 {
        self.close();
        self.dropped
    }

    /// The first step and the last one that have events, kept or not.
    pub(super) fn span(&mut self) -> Option<(u64, u64)> {
        self.close();
        self.span
    }

    /// The steps from a number on that have events.
    pub(super) fn steps_from(&self, first: u64) -> impl Iterator<Item = u64> {
        let mut before = None;
        let steps = self.kept.range((first, 0)..).map(|(&(step, _), _)| step);
        steps.filter(move |&step| before.replace(step) != Some(step))
    }

    /// How many values of the database are of events.
    pub(super) fn filled(&mut self) -> u64 {
        self.close();
        self.kept.len() as u64
    }

    /// What becomes of the events of a step, by data source.
    pub(super) fn of_step(&self, step: u64) -> impl Iterator<Item = (u32, f64)> {
        let cells = self.kept.range((step, 0)..=(step, u32::MAX));
        cells.map(|(&(_, source), cell)| (source, cell.result(self.function)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(cells: &Cells, step: u64) -> Vec<(u32, f64)> {
        cells.of_step(step).collect()
    }

    #[test]
    fn events_of_any_order_are_counted() {
        let mut cells = Cells::new(None, None);
        for (step, source) in [(5, 0), (5, 1), (6, 0), (5, 0), (5, 0), (9, 2)] {
            cells.add(step, source, 0.0);
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
            let mut cells = Cells::new(Some(function), None);
            for (step, value) in [(1, 6.0), (1, -1.0), (2, 0.5), (1, 1.0)] {
                cells.add(step, 0, value);
            }
            assert_eq!(cells.span(), Some((1, 2)));
            assert_eq!(result(&cells, 1), [(0, expected)]);
        }
    }

    #[test]
    fn only_the_last_steps_are_kept() {
        let mut cells = Cells::new(None, Some(3));
        for step in [1, 1, 2, 3, 4, 10, 12] {
            cells.add(step, 0, 0.0);
        }
        assert_eq!(cells.dropped(), 5);
        assert_eq!(cells.span(), Some((1, 12)));
        assert_eq!(result(&cells, 10), [(0, 1.0)]);
        assert_eq!(result(&cells, 4), []);
    }

    #[test]
    fn what_no_database_can_hold_is_not_kept() {
        let many = MOST_VALUES / 2;
        let mut cells = Cells::new(None, None);
        cells.add(7, 0, 0.0);
        cells.add(6 + many, 1, 0.0);
        assert_eq!(cells.too_large(), None);
        assert_eq!(cells.kept.len(), 2);
        for step in [7 + many, 5, 9, 11] {
            cells.add(step, 0, 0.0);
        }
        assert_eq!(cells.too_large(), Some((many + 3, 2)));
        assert!(cells.kept.is_empty());

        let most = MOST_SOURCES as u32;
        let mut cells = Cells::new(None, Some(1));
        for step in 0..3 {
            for source in 0..=most {
                cells.add(step, source, 0.0);
            }
        }
        assert_eq!(cells.too_large(), Some((1, u64::from(most) + 1)));
        assert!(cells.kept.is_empty());
    }
}
