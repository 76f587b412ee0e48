//! The tree of a track: time divided by four until few rows are left.

use crate::{Bin, Row};

/// A cell with more rows is divided.
pub const LEAF: usize = 64;

/// The level of the cell that is all of time. A cell of level `n` is 4^n nanoseconds long.
pub(crate) const TOP: u8 = 32;

/// Number of cells of a level that are passed on at once.
pub(crate) const BLOCK: usize = 512;

/// Whether times are in order. For times of which none is negative, as usual, it takes little more than to read them.
pub fn are_sorted(times: &[i64]) -> bool {
    let (Some(&last), Some(later)) = (times.last(), times.get(1..)) else {
        return true;
    };
    let (mut all, mut steps) = (last, 0);
    for (&time, &next) in times.iter().zip(later) {
        all |= time;
        steps |= next.wrapping_sub(time);
    }
    // Differences of numbers that are not negative fit.
    (all >= 0 && steps >= 0) || times.is_sorted()
}

/// A time as an unsigned number, in the same order.
#[inline]
pub(crate) fn biased(time: i64) -> u64 {
    time as u64 ^ 1 << 63
}

#[inline]
fn unbiased(time: u64) -> i64 {
    (time ^ 1 << 63) as i64
}

/// The cell of a level in which a [biased] time is.
#[inline]
pub(crate) fn cell(level: u8, time: u64) -> u64 {
    time.checked_shr(2 * u32::from(level)).unwrap_or(0)
}

/// The first time of a cell.
#[inline]
pub(crate) fn cell_begin(level: u8, key: u64) -> i64 {
    unbiased(key.checked_shl(2 * u32::from(level)).unwrap_or(0))
}

/// The bits in which the times of a cell of a level differ.
#[inline]
fn cell_mask(level: u8) -> u64 {
    u64::MAX.checked_shr(64 - 2 * u32::from(level)).unwrap_or(0)
}

/// A cell of a tree, and what happened in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its position among the cells of its level, counted from the earliest time there is.
    pub key: u64,
    /// What happened.
    pub bin: Bin,
}

/// A cell that has been divided, and may get more rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenCell {
    pub(crate) level: u8,
    pub(crate) node: Node,
}

/// Makes the tree of a track from its rows in order of time.
///
/// A cell is in the tree if it is all of time, or its parent has more than [`LEAF`] rows: the shape depends
/// on the rows alone. Of the cells that get no more rows nothing stays here, beside some that wait to be
/// handed over together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeBuilder {
    /// Cells with more than [`LEAF`] rows, each within the one before it.
    pub(crate) open: Vec<OpenCell>,
    /// The rows of the cell below, of which there are [`LEAF`] at most.
    pub(crate) rows: Vec<Row>,
    /// When the last row was.
    pub(crate) last: Option<i64>,
    /// Rows from the last one up to this time are in the same cell as that; `None` where that is to be found out.
    until: Option<i64>,
    /// Cells that are complete, by their levels.
    done: Vec<(u8, Vec<Node>)>,
}

impl TreeBuilder {
    /// Whether a row may come next: not earlier than the last one.
    #[inline]
    pub fn is_next(&self, time: i64) -> bool {
        self.last.is_none_or(|last| last <= time)
    }

    /// Adds a row that may come [next](Self::is_next). `take` is handed cells of a level, in order. The number of
    /// cells that wait is added up in `waiting`.
    #[inline]
    pub fn push(&mut self, row: Row, waiting: &mut usize, take: &mut impl FnMut(u8, &[Node])) {
        // Nearly all rows.
        if self.until.is_some_and(|until| row.time <= until) && self.rows.len() < LEAF {
            self.last = Some(row.time);
            self.rows.push(row);
        } else {
            self.push_slowly(row, waiting, take);
        }
    }

    /// Adds rows of which only times and classes count, a class for each time: in order of time, and the first one may
    /// come [next](Self::is_next).
    pub(crate) fn push_all(
        &mut self,
        (mut times, mut classes): (&[i64], &[u32]),
        waiting: &mut usize,
        take: &mut impl FnMut(u8, &[Node]),
    ) {
        // It is cheaper to look at all than to limit each.
        let are_few = classes.iter().fold(0, |all, class| all | class) < 64;
        while let (Some(&time), Some(&class)) = (times.first(), classes.first()) {
            if let Some(last) = self.last
                && last != time
            {
                self.close_before(biased(last), biased(time), waiting, take);
            }
            let is_single = self.open.last().is_some_and(|top| top.level == 0);
            // A row behind the next ones shows whether their cell is complete.
            let behind = times.get(LEAF).map(|&time| biased(time));
            let mut count = 1;
            match behind.filter(|_| self.rows.is_empty() && !is_single) {
                None => self.push(Row::new(time, class as usize), waiting, take),
                Some(behind) => {
                    let level = self.level();
                    let end = biased(time) | cell_mask(level);
                    self.until = None;
                    if behind <= end {
                        self.open_cell(level, biased(time));
                        continue;
                    }
                    count = times[..LEAF].partition_point(|&time| biased(time) <= end);
                    let mut node = Node {
                        key: cell(level, biased(time)),
                        bin: Bin::EMPTY,
                    };
                    node.bin
                        .push_all(&times[..count], &classes[..count], are_few);
                    self.last = Some(node.bin.last);
                    self.emit(level, node, waiting, take);
                }
            }
            (times, classes) = (&times[count..], &classes[count..]);
        }
    }

    fn push_slowly(&mut self, row: Row, waiting: &mut usize, take: &mut impl FnMut(u8, &[Node])) {
        let time = biased(row.time);
        if let Some(last) = self.last
            && last != row.time
        {
            self.close_before(biased(last), time, waiting, take);
        }
        self.last = Some(row.time);
        self.until = None;
        if let Some(top) = self.open.last_mut()
            && top.level == 0
        {
            top.node.bin.push(&row);
            return;
        }
        self.rows.push(row);
        if self.rows.len() > LEAF {
            self.divide(waiting, take);
        }
        if !self.rows.is_empty() {
            self.until = Some(unbiased(time | cell_mask(self.level())));
        }
    }

    /// The level of the cell whose rows are kept.
    fn level(&self) -> u8 {
        self.open.last().map_or(TOP, |top| top.level - 1)
    }

    /// Ends the cells that a time is behind.
    fn close_before(
        &mut self,
        last: u64,
        time: u64,
        waiting: &mut usize,
        take: &mut impl FnMut(u8, &[Node]),
    ) {
        let is_single = self.open.last().is_some_and(|top| top.level == 0);
        if !is_single {
            let level = self.level();
            if cell(level, last) == cell(level, time) {
                return;
            }
            self.close_rows(level, waiting, take);
        }
        while let Some(top) = self.open.last()
            && top.node.key != cell(top.level, time)
        {
            self.close(waiting, take);
        }
    }

    /// Makes a leaf of all rows.
    fn close_rows(&mut self, level: u8, waiting: &mut usize, take: &mut impl FnMut(u8, &[Node])) {
        if !self.rows.is_empty() {
            let node = leaf(level, &self.rows);
            self.rows.clear();
            self.emit(level, node, waiting, take);
        }
    }

    /// Ends the innermost open cell.
    fn close(&mut self, waiting: &mut usize, take: &mut impl FnMut(u8, &[Node])) {
        if let Some(OpenCell { level, node }) = self.open.pop() {
            self.emit(level, node, waiting, take);
        }
    }

    /// Opens cells until the rows of the last one are few.
    #[cold]
    fn divide(&mut self, waiting: &mut usize, take: &mut impl FnMut(u8, &[Node])) {
        while self.rows.len() > LEAF {
            let level = self.level();
            let Some(last) = self.rows.last().map(|row| biased(row.time)) else {
                return;
            };
            self.open_cell(level, last);
            if let Some(top) = self.open.last_mut()
                && level == 0
            {
                self.rows.drain(..).for_each(|row| top.node.bin.push(&row));
                return;
            }
            let below = level - 1;
            let key = |row: &Row| cell(below, biased(row.time));
            let mut begin = 0;
            while let Some(first) = self.rows.get(begin).map(key)
                && first != cell(below, last)
            {
                let count = self.rows[begin..].partition_point(|row| key(row) == first);
                let node = leaf(below, &self.rows[begin..begin + count]);
                self.emit(below, node, waiting, take);
                begin += count;
            }
            self.rows.drain(..begin);
        }
    }

    /// Opens the cell of a level in which a time is.
    fn open_cell(&mut self, level: u8, time: u64) {
        let node = Node {
            key: cell(level, time),
            bin: Bin::EMPTY,
        };
        self.open.push(OpenCell { level, node });
    }

    fn emit(
        &mut self,
        level: u8,
        node: Node,
        waiting: &mut usize,
        take: &mut impl FnMut(u8, &[Node]),
    ) {
        if let Some(parent) = self.open.last_mut() {
            parent.node.bin.add(&node.bin);
        }
        let known = self.done.iter().position(|(known, _)| *known == level);
        let known = known.unwrap_or_else(|| {
            self.done.push((level, Vec::new()));
            self.done.len() - 1
        });
        let nodes = &mut self.done[known].1;
        nodes.push(node);
        *waiting += 1;
        if nodes.len() == BLOCK {
            take(level, nodes);
            *waiting -= nodes.len();
            nodes.clear();
        }
    }

    /// Hands over the cells that wait.
    pub fn flush(&mut self, take: &mut impl FnMut(u8, &[Node])) {
        for (level, nodes) in std::mem::take(&mut self.done) {
            take(level, &nodes);
        }
    }

    /// Ends all cells, and hands over those that wait. Of a track of few rows, there is none: what
    /// [`TreeBuilder::rows`] has is all.
    pub fn finish(&mut self, take: &mut impl FnMut(u8, &[Node])) {
        let mut waiting = 0;
        if !self.open.is_empty() {
            if !self.rows.is_empty() {
                self.close_rows(self.level(), &mut waiting, take);
            }
            while !self.open.is_empty() {
                self.close(&mut waiting, take);
            }
        }
        self.flush(take);
    }

    /// The rows that are in no cell yet.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

/// The cell of a level that has these rows.
fn leaf(level: u8, rows: &[Row]) -> Node {
    let mut node = Node::default();
    if let Some(first) = rows.first() {
        node.key = cell(level, biased(first.time));
    }
    rows.iter().for_each(|row| node.bin.push(row));
    node
}
