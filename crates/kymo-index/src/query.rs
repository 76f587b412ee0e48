//! Answers: the bins of a track from its tree.

use std::collections::BTreeMap;

use crate::tree::{LEAF, TOP, biased, cell};
use crate::{Bin, Damaged, Index, Node, Row};

/// Spans of time side by side, each a power of two nanoseconds long, on the grid of its multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// When the first one begins.
    begin: i64,
    /// How many there are.
    spans: usize,
    shift: u32,
}

impl Grid {
    /// The spans that a range of time (its end included) touches, limited to at most twice as many as
    /// columns: the shortest ones.
    pub fn new(begin: i64, end: i64, columns: usize) -> Self {
        let most = 2 * columns.max(1) as i128;
        let end = end.max(begin);
        let count = |shift: u32| i128::from(end >> shift) - i128::from(begin >> shift) + 1;
        let shift = (0..63).find(|&shift| count(shift) <= most).unwrap_or(63);
        Self::with_span(begin, end, 1 << shift)
    }

    /// The spans of a length (cut down to a power of two) that a range of time (its end included) touches.
    pub fn with_span(begin: i64, end: i64, span: u64) -> Self {
        let shift = span.max(1).ilog2();
        let (first, last) = (begin >> shift, end.max(begin) >> shift);
        Self {
            begin: first << shift,
            spans: (i128::from(last) - i128::from(first)) as usize + 1,
            shift,
        }
    }

    /// When the first span begins: a multiple of their length.
    pub fn begin(&self) -> i64 {
        self.begin
    }

    /// When the last span ends: the last nanosecond in it.
    pub fn end(&self) -> i64 {
        let spans = (self.spans as i128) << self.shift;
        (i128::from(self.begin) + spans - 1).min(i64::MAX.into()) as i64
    }

    /// The length of a span in nanoseconds.
    pub fn span(&self) -> u64 {
        1 << self.shift
    }

    /// The number of spans.
    pub fn spans(&self) -> usize {
        self.spans
    }

    /// The span that a time is in.
    #[inline]
    pub fn position(&self, time: i64) -> Option<usize> {
        let position = (time >> self.shift).wrapping_sub(self.begin >> self.shift);
        (time >= self.begin && (position as u64) < self.spans as u64).then_some(position as usize)
    }
}

/// What is known of a track on a grid.
#[derive(Clone, Debug)]
pub struct Answer {
    grid: Grid,
    bins: Vec<Bin>,
    /// Cells with rows in several spans: from when to when these are, both included.
    unknown: Vec<(i64, i64)>,
    nodes: Vec<Node>,
}

impl Answer {
    /// Nothing yet.
    pub fn new(grid: &Grid) -> Self {
        Self {
            grid: *grid,
            bins: vec![Bin::EMPTY; grid.spans],
            unknown: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Forgets what it knows, for the next track.
    pub fn clear(&mut self) {
        self.bins.fill(Bin::EMPTY);
        self.unknown.clear();
    }

    /// The bins that have rows, by the positions of their spans.
    pub fn bins(&self) -> impl Iterator<Item = (u64, &Bin)> {
        let bins = self.bins.iter().enumerate();
        bins.filter(|(_, bin)| bin.count > 0)
            .map(|(position, bin)| (position as u64, bin))
    }

    /// Takes the bins that have rows, and what is missing in them; all is forgotten.
    pub fn take(&mut self) -> (Vec<(u64, Bin)>, Option<Missing>) {
        let mut taken = Vec::with_capacity(self.bins().count());
        for (position, bin) in self.bins.iter_mut().enumerate() {
            if bin.count > 0 {
                taken.push((position as u64, std::mem::take(bin)));
            }
        }
        let missing = (!self.unknown.is_empty()).then(|| Missing {
            grid: self.grid,
            ranges: std::mem::take(&mut self.unknown),
            bins: BTreeMap::new(),
        });
        (taken, missing)
    }

    fn push(&mut self, row: &Row) {
        if let Some(position) = self.grid.position(row.time) {
            self.bins[position].push(row);
        }
    }

    #[inline]
    fn add(&mut self, bin: &Bin) {
        let grid = &self.grid;
        match (grid.position(bin.first), grid.position(bin.last)) {
            (Some(first), Some(last)) if first == last => self.bins[first].add(bin),
            (None, None) if bin.last < grid.begin || bin.first > grid.end() => {}
            _ => self.unknown.push((bin.first, bin.last)),
        }
    }
}

/// Rows of a track that are missing from its bins, since its tree does not distinguish them.
#[derive(Clone, Debug)]
pub struct Missing {
    grid: Grid,
    /// From when to when, both included.
    ranges: Vec<(i64, i64)>,
    bins: BTreeMap<u64, Bin>,
}

impl Missing {
    /// From when to when rows are missing, both included: at most [`LEAF`] in each range. In order of time,
    /// without overlaps.
    pub fn ranges(&self) -> &[(i64, i64)] {
        &self.ranges
    }

    /// Adds a row of the track, if it is one that is missing.
    pub fn push(&mut self, row: &Row) {
        let after = self.ranges.partition_point(|&(begin, _)| begin <= row.time);
        let is_missing = after > 0 && self.ranges[after - 1].1 >= row.time;
        if is_missing && let Some(position) = self.grid.position(row.time) {
            self.bins.entry(position as u64).or_default().push(row);
        }
    }

    /// The bins with all that was missing.
    pub fn complete(mut self, known: Vec<(u64, Bin)>) -> Vec<(u64, Bin)> {
        for (position, bin) in known {
            self.bins.entry(position).or_default().add(&bin);
        }
        self.bins.into_iter().collect()
    }
}

impl Index {
    /// Fills in what the tree of a track knows on a grid.
    ///
    /// # Errors
    ///
    /// If a block is damaged. What has been filled in by then is of no use.
    pub fn fill(&self, track: u32, grid: &Grid, answer: &mut Answer) -> Result<(), Damaged> {
        let Some(tree) = self.trees.get(track as usize) else {
            return Ok(());
        };
        for row in tree.rows() {
            answer.push(row);
        }
        let finest = (grid.shift / 2) as u8;
        let (begin, end) = (biased(grid.begin), biased(grid.end()));
        let mut nodes = std::mem::take(&mut answer.nodes);
        let mut add = |level: u8, nodes: &[Node]| {
            let (from, to) = (cell(level, begin), cell(level, end));
            let nodes = &nodes[nodes.partition_point(|node| node.key < from)..];
            for node in nodes.iter().take_while(|node| node.key <= to) {
                // Cells with more rows were divided.
                if level == finest || node.bin.count <= LEAF as u64 {
                    answer.add(&node.bin);
                }
            }
        };
        for block in &tree.blocks {
            let level = block.level;
            if (finest..=TOP).contains(&level)
                && block.last >= cell(level, begin)
                && block.first <= cell(level, end)
            {
                self.nodes(block, &mut nodes)?;
                add(level, &nodes);
            }
        }
        for (level, nodes) in &tree.tail {
            if *level >= finest {
                add(*level, nodes);
            }
        }
        answer.nodes = nodes;
        answer.unknown.sort_unstable();
        Ok(())
    }
}
