//! Rows of columns put behind those of others: of one column, or of several sources in the order of a merge.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData, DataType};
use super::{Batch, RowId};

/// Rows of a chunk in the order of their numbers, as columns of the same length.
#[derive(Clone, Copy, Debug)]
pub struct SourceRows<'a> {
    /// Recording, stream and chunk.
    pub id: RowId,
    /// Their positions in the chunk.
    pub numbers: &'a [u64],
    /// The positions of their event classes in the recording.
    pub classes: &'a [u32],
    /// When they were, in nanoseconds.
    pub times: &'a [i64],
    /// When they were, in ticks; `None` if the stream has no clock.
    pub ticks: Option<&'a [u64]>,
    /// Their values.
    pub columns: &'a [Column],
    /// The number of texts of which something was [replaced](Batch::replaced), counted with the first row.
    pub replaced: u64,
}

/// Rows of one of several sources that come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRun {
    /// Position of the source.
    pub source: usize,
    /// The first of the rows.
    pub first: usize,
    /// How many there are.
    pub rows: usize,
}

impl SourceRun {
    fn range(self) -> Range<usize> {
        self.first..self.first + self.rows
    }
}

/// Rows of several sources in the order of a merge.
#[derive(Clone, Copy, Debug)]
pub struct MergedRows<'a> {
    /// Rows of each source, one source after the other.
    pub parts: &'a [SourceRun],
    /// Positions among the rows of all parts.
    pub order: &'a [u16],
}

impl MergedRows<'_> {
    /// Maximum number of rows of all parts: their values stay in the processor's cache.
    pub const MOST: usize = 1024;

    /// The same rows as runs.
    pub fn runs(&self) -> Vec<SourceRun> {
        let mut end = 0;
        let ends = self.parts.iter().map(|part| {
            end += part.rows;
            end
        });
        let ends: Vec<usize> = ends.collect();
        let mut runs: Vec<SourceRun> = Vec::new();
        for &position in self.order {
            let position = usize::from(position);
            let number = ends.partition_point(|&end| end <= position);
            let Some(part) = self.parts.get(number) else {
                continue;
            };
            let begin = ends[number] - part.rows;
            let (source, first) = (part.source, part.first + (position - begin));
            match runs.last_mut() {
                Some(run) if run.source == source && run.range().end == first => run.rows += 1,
                _ => runs.push(SourceRun {
                    source,
                    first,
                    rows: 1,
                }),
            }
        }
        runs
    }
}

/// Rows to append.
enum Rows<'a> {
    Runs(&'a [SourceRun]),
    /// With the same as runs, for columns that are appended run by run.
    Merged(MergedRows<'a>, OnceCell<Vec<SourceRun>>),
}

impl Rows<'_> {
    fn runs(&self) -> &[SourceRun] {
        match self {
            Self::Runs(runs) => runs,
            Self::Merged(merged, runs) => runs.get_or_init(|| merged.runs()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Runs(runs) => runs.iter().map(|run| run.rows).sum(),
            Self::Merged(merged, _) => merged.order.len(),
        }
    }

    /// The positions of their sources; of a source, more than once.
    fn sources(&self) -> impl Iterator<Item = usize> {
        let runs = match self {
            Self::Runs(runs) => *runs,
            Self::Merged(merged, _) => merged.parts,
        };
        runs.iter().map(|run| run.source)
    }

    /// Appends these rows of a column, of which there are the values of each source.
    fn put<T: Copy + Default>(&self, to: &mut Vec<T>, sources: &[&[T]]) {
        match self {
            Self::Runs(runs) => put(to, self.len(), sources, runs),
            Self::Merged(merged, _) => put_merged(to, sources, *merged),
        }
    }
}

impl Batch {
    /// Appends runs of rows of sources whose columns have the same schema. `no_time` marks rows without a time.
    ///
    /// # Panics
    ///
    /// If the columns are of another schema, or have not all of these rows.
    pub fn append_runs(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun], no_time: i64) {
        self.append_ids(sources, runs);
        self.append_rows(sources, &Rows::Runs(runs), no_time);
    }

    /// The same for rows in any order.
    ///
    /// # Panics
    ///
    /// If the columns are of another schema, or have not all of these rows; or if the parts have more than
    /// [`MergedRows::MOST`] rows, or not all rows that `order` names.
    pub fn append_merged(
        &mut self,
        sources: &[SourceRows<'_>],
        merged: MergedRows<'_>,
        no_time: i64,
    ) {
        let rows = Rows::Merged(merged, OnceCell::new());
        let mut begin = 0;
        let ids = merged.parts.iter().map(|part| {
            let id = sources[part.source].first_id(*part)?;
            begin += part.rows;
            Some((begin - part.rows, id))
        });
        match ids.collect() {
            Some(ids) => self.ids.push_merged(self.len(), ids, merged.order),
            None => self.append_ids(sources, rows.runs()),
        }
        self.append_rows(sources, &rows, no_time);
    }

    fn append_ids(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun]) {
        let mut begin = self.len();
        for run in runs {
            let source = &sources[run.source];
            match source.first_id(*run) {
                Some(id) => self.ids.push(begin, id),
                None => {
                    for (row, &number) in (begin..).zip(&source.numbers[run.range()]) {
                        self.ids.push(
                            row,
                            RowId {
                                number,
                                ..source.id
                            },
                        );
                    }
                }
            }
            begin += run.rows;
        }
    }

    /// Appends all of these rows but what identifies them.
    fn append_rows(&mut self, sources: &[SourceRows<'_>], rows: &Rows<'_>, no_time: i64) {
        if rows.sources().any(|source| sources[source].replaced > 0) {
            let firsts = rows.runs().iter().filter(|run| run.first == 0);
            self.replaced += firsts.map(|run| sources[run.source].replaced).sum::<u64>();
        }
        let each = || rows.runs().iter().map(|run| (run, &sources[run.source]));
        let classes: Vec<_> = sources.iter().map(|source| source.classes).collect();
        rows.put(&mut self.classes, &classes);
        match &mut self.times {
            Column {
                data: ColumnData::Int64(to),
                validity: None,
            } => {
                let begin = to.len();
                let times: Vec<_> = sources.iter().map(|source| source.times).collect();
                rows.put(to, &times);
                if to[begin..].contains(&no_time) {
                    let times = to.split_off(begin);
                    self.times.extend_times(&times, no_time);
                }
            }
            column => each().for_each(|(run, source)| {
                column.extend_times(&source.times[run.range()], no_time);
            }),
        }
        match &mut self.ticks {
            Column {
                data: ColumnData::Uint64(to),
                validity: None,
            } if sources.iter().all(|source| source.ticks.is_some()) => {
                let ticks: Vec<_> = sources.iter().filter_map(|source| source.ticks).collect();
                rows.put(to, &ticks);
            }
            column => each().for_each(|(run, source)| {
                let ticks = source.ticks.map(|ticks| &ticks[run.range()]);
                column.extend_ticks(ticks, run.rows);
            }),
        }
        let mut of_column = Vec::with_capacity(sources.len());
        for (position, column) in self.columns.iter_mut().enumerate() {
            of_column.clear();
            of_column.extend(sources.iter().map(|source| source.columns.get(position)));
            column.append_rows(&of_column, rows);
        }
    }
}

impl SourceRows<'_> {
    /// What identifies the first row of a run, if its rows are one after the other in the chunk.
    fn first_id(&self, run: SourceRun) -> Option<RowId> {
        let numbers = &self.numbers[run.range()];
        let (&number, &last) = (numbers.first()?, numbers.last()?);
        let is_whole = last.wrapping_sub(number) == run.rows as u64 - 1;
        is_whole.then_some(RowId { number, ..self.id })
    }
}

impl Column {
    /// A column of the same type, without rows, but with room for as many numbers.
    pub fn empty_like(&self) -> Self {
        fn like<T>(values: &[T]) -> Vec<T> {
            Vec::with_capacity(values.len() + SHORT)
        }
        let data = match &self.data {
            ColumnData::FixedBinary { size, .. } => Self::new(&DataType::FixedBinary(*size)).data,
            ColumnData::Dictionary { texts, .. } => {
                Self::new(&DataType::Dictionary(Arc::clone(texts))).data
            }
            ColumnData::List { items, .. } => ColumnData::List {
                offsets: vec![0],
                items: Box::new(items.empty_like()),
            },
            ColumnData::Struct { members, .. } => ColumnData::Struct {
                len: 0,
                members: members.iter().map(Self::empty_like).collect(),
            },
            ColumnData::Bool(_) => Self::new(&DataType::Bool).data,
            ColumnData::Uint8(values) => ColumnData::Uint8(like(values)),
            ColumnData::Uint16(values) => ColumnData::Uint16(like(values)),
            ColumnData::Uint32(values) => ColumnData::Uint32(like(values)),
            ColumnData::Uint64(values) => ColumnData::Uint64(like(values)),
            ColumnData::Int8(values) => ColumnData::Int8(like(values)),
            ColumnData::Int16(values) => ColumnData::Int16(like(values)),
            ColumnData::Int32(values) => ColumnData::Int32(like(values)),
            ColumnData::Int64(values) => ColumnData::Int64(like(values)),
            ColumnData::Float32(values) => ColumnData::Float32(like(values)),
            ColumnData::Float64(values) => ColumnData::Float64(like(values)),
            ColumnData::Text(_) => Self::new(&DataType::Text).data,
            ColumnData::Binary(_) => Self::new(&DataType::Binary).data,
        };
        Self {
            data,
            validity: None,
        }
    }

    /// Appends rows of another column of the same type.
    ///
    /// # Panics
    ///
    /// If it has not all of these rows.
    pub fn append(&mut self, other: &Self, rows: Range<usize>) {
        if self.validity.is_some() || other.validity.is_some() {
            let len = self.len();
            let validity = self
                .validity
                .get_or_insert_with(|| Bitmap::repeat(true, len));
            match &other.validity {
                Some(theirs) => validity.append(theirs, rows.clone()),
                None => rows.clone().for_each(|_| validity.push(true)),
            }
        }
        macro_rules! same {
            ($($kind:ident)*) => {
                match (&mut self.data, &other.data) {
                    $((ColumnData::$kind(to), ColumnData::$kind(from)) => to.extend_from_slice(&from[rows]),)*
                    (ColumnData::Bool(to), ColumnData::Bool(from)) => to.append(from, rows),
                    (ColumnData::Text(to), ColumnData::Text(from))
                    | (ColumnData::Binary(to), ColumnData::Binary(from)) => {
                        let bytes = from.offsets[rows.start] as usize..from.offsets[rows.end] as usize;
                        to.bytes.extend_from_slice(&from.bytes[bytes]);
                        append_offsets(&mut to.offsets, &from.offsets[rows.start..=rows.end]);
                    }
                    (ColumnData::FixedBinary { bytes: to, .. }, ColumnData::FixedBinary { size, bytes }) => {
                        to.extend_from_slice(&bytes[rows.start * size..rows.end * size]);
                    }
                    (ColumnData::Dictionary { keys: to, .. }, ColumnData::Dictionary { keys, .. }) => {
                        to.extend_from_slice(&keys[rows]);
                    }
                    (ColumnData::List { offsets: to, items: to_items }, ColumnData::List { offsets, items }) => {
                        let range = offsets[rows.start] as usize..offsets[rows.end] as usize;
                        to_items.append(items, range);
                        append_offsets(to, &offsets[rows.start..=rows.end]);
                    }
                    (ColumnData::Struct { len, members: to }, ColumnData::Struct { members, .. }) => {
                        *len += rows.len();
                        for (to, from) in to.iter_mut().zip(members) {
                            to.append(from, rows.clone());
                        }
                    }
                    _ => unreachable!("columns of one schema have the same types"),
                }
            };
        }
        same!(Uint8 Uint16 Uint32 Uint64 Int8 Int16 Int32 Int64 Float32 Float64);
    }

    /// Appends times, of which `no_time` is null.
    #[inline]
    pub(super) fn extend_times(&mut self, times: &[i64], no_time: i64) {
        match &mut self.data {
            ColumnData::Int64(all) if self.validity.is_none() && !times.contains(&no_time) => {
                all.extend_from_slice(times);
            }
            _ => times.iter().for_each(|&time| match time == no_time {
                true => self.push_null(),
                false => self.push_sint(time),
            }),
        }
    }

    /// Appends the ticks of some rows; null if there are none.
    #[inline]
    pub(super) fn extend_ticks(&mut self, ticks: Option<&[u64]>, rows: usize) {
        match (&mut self.data, ticks) {
            (ColumnData::Uint64(all), Some(ticks)) if self.validity.is_none() => {
                all.extend_from_slice(ticks)
            }
            (_, Some(ticks)) => ticks.iter().for_each(|&ticks| self.push_uint(ticks)),
            (_, None) => self.push_nulls(rows),
        }
    }

    /// Appends rows of columns of the same type.
    fn append_rows(&mut self, sources: &[Option<&Self>], rows: &Rows<'_>) {
        let is_whole =
            |column: Option<&Self>| column.is_some_and(|column| column.validity.is_none());
        // A source that has ended has no columns.
        let are_whole = || {
            sources.iter().copied().all(is_whole)
                || rows.sources().all(|source| is_whole(sources[source]))
        };
        if self.validity.is_none() && are_whole() {
            macro_rules! numbers {
                ($($kind:ident)*) => {
                    match &mut self.data {
                        $(ColumnData::$kind(to) => {
                            let of_sources: Vec<&[_]> = sources
                                .iter()
                                .map(|source| match source {
                                    Some(Self { data: ColumnData::$kind(from), .. }) => &from[..],
                                    Some(_) => unreachable!("columns of one schema have the same types"),
                                    None => &[],
                                })
                                .collect();
                            return rows.put(to, &of_sources);
                        })*
                        _ => {}
                    }
                };
            }
            numbers!(Uint8 Uint16 Uint32 Uint64 Int8 Int16 Int32 Int64 Float32 Float64);
        }
        for run in rows.runs() {
            if let Some(from) = sources[run.source] {
                self.append(from, run.range());
            }
        }
    }
}

/// Maximum number of values of a part that is copied as a block of fixed size, without a call; any excess is
/// overwritten by the next one, or taken off again.
pub(super) const SHORT: usize = 8;

/// The same of very short parts, where streams alternate.
const VERY_SHORT: usize = 2;

/// Appends runs of the values of sources, which have `all` values in total.
fn put<T: Copy + Default>(to: &mut Vec<T>, all: usize, sources: &[&[T]], runs: &[SourceRun]) {
    let mut at = to.len();
    to.resize(at + all + SHORT, T::default());
    for run in runs {
        let values = &sources[run.source][run.first..];
        let place = &mut to[at..];
        let is_copied = if run.rows <= VERY_SHORT {
            copy_block::<T, VERY_SHORT>(values, place)
        } else {
            run.rows <= SHORT && copy_block::<T, SHORT>(values, place)
        };
        if !is_copied {
            place[..run.rows].copy_from_slice(&values[..run.rows]);
        }
        at += run.rows;
    }
    to.truncate(at);
}

/// Appends merged values of sources.
fn put_merged<T: Copy + Default>(to: &mut Vec<T>, sources: &[&[T]], rows: MergedRows<'_>) {
    let mut values = Vec::with_capacity(MergedRows::MOST);
    for part in rows.parts {
        values.extend_from_slice(&sources[part.source][part.range()]);
    }
    assert!(
        values.len() <= MergedRows::MOST,
        "more rows than may be merged at once"
    );
    values.resize(MergedRows::MOST, T::default());
    // The size is known then, so that no position has to be checked.
    if let Some(values) = values.first_chunk::<{ MergedRows::MOST }>() {
        let each = rows.order.iter();
        to.extend(each.map(|&position| values[usize::from(position) % MergedRows::MOST]));
    }
}

/// Copies a block of fixed size, if both have as many values.
#[inline(always)]
fn copy_block<T: Copy, const N: usize>(from: &[T], to: &mut [T]) -> bool {
    match (from.first_chunk::<N>(), to.first_chunk_mut()) {
        (Some(from), Some(place)) => {
            *place = *from;
            true
        }
        _ => false,
    }
}

/// Appends where values end that were appended from elsewhere: `from` begins with the end of the one
/// before them.
fn append_offsets(to: &mut Vec<i32>, from: &[i32]) {
    let (Some(&last), Some((&first, ends))) = (to.last(), from.split_first()) else {
        return;
    };
    to.extend(ends.iter().map(|end| end - first + last));
}
