//! Rows of columns put behind those of others: of one column, or of several sources in the order of a merge.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData, Strings};
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
    pub(super) fn range(self) -> Range<usize> {
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
        let columns: Vec<_> = sources.iter().map(|source| source.columns).collect();
        append_each(&mut self.columns, &columns, rows);
    }

    /// Appends rows of columns of the same schema: of each source, its columns.
    ///
    /// # Panics
    ///
    /// As [`append_merged`](Self::append_merged) does.
    pub fn append_merged_columns(&mut self, sources: &[&[Column]], merged: MergedRows<'_>) {
        let rows = Rows::Merged(merged, OnceCell::new());
        append_each(&mut self.columns, sources, &rows);
    }
}

/// Appends rows of each column of some sources. A source without these rows may have no columns.
fn append_each(to: &mut [Column], sources: &[&[Column]], rows: &Rows<'_>) {
    let mut of_column = Vec::with_capacity(sources.len());
    for (position, column) in to.iter_mut().enumerate() {
        of_column.clear();
        of_column.extend(sources.iter().map(|source| source.get(position)));
        column.append_rows(&of_column, rows);
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
    /// A column of the same type, without rows, but with room for as many.
    pub fn empty_like(&self) -> Self {
        fn like<T>(values: &[T]) -> Vec<T> {
            Vec::with_capacity(values.len() + SHORT)
        }
        fn offsets_like(offsets: &[i32]) -> Vec<i32> {
            let mut like = like(offsets);
            like.push(0);
            like
        }
        let strings_like = |strings: &Strings| Strings {
            offsets: offsets_like(&strings.offsets),
            bytes: Vec::with_capacity(strings.bytes.len().min(MOST_ROOM)),
        };
        let data = match &self.data {
            &ColumnData::FixedBinary { size, .. } => ColumnData::FixedBinary {
                size,
                bytes: Vec::new(),
            },
            ColumnData::Dictionary { keys, texts } => ColumnData::Dictionary {
                keys: like(keys),
                texts: Arc::clone(texts),
            },
            ColumnData::List { offsets, items } => ColumnData::List {
                offsets: offsets_like(offsets),
                items: Box::new(items.empty_like()),
            },
            ColumnData::Struct { members, .. } => ColumnData::Struct {
                len: 0,
                members: members.iter().map(Self::empty_like).collect(),
            },
            ColumnData::Bool(_) => ColumnData::Bool(Bitmap::default()),
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
            ColumnData::Text(strings) => ColumnData::Text(strings_like(strings)),
            ColumnData::Binary(strings) => ColumnData::Binary(strings_like(strings)),
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
        let run = SourceRun {
            source: 0,
            first: rows.start,
            rows: rows.len(),
        };
        self.append_rows(&[Some(other)], &Rows::Runs(&[run]));
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
        if self.validity.is_some() || !are_whole() {
            let len = self.len();
            let validity = self
                .validity
                .get_or_insert_with(|| Bitmap::repeat(true, len));
            let is_valid = |from: &Self, row| {
                let theirs = from.validity.as_ref();
                theirs.is_none_or(|theirs| theirs.get(row))
            };
            for_each_value(sources, rows, is_valid, |bit| validity.push(bit));
        }
        macro_rules! each {
            ($pattern:pat => $values:expr) => {
                sources
                    .iter()
                    .map(|source| match source {
                        Some(Self { data: $pattern, .. }) => Some($values),
                        Some(_) => unreachable!("columns of one schema have the same types"),
                        None => None,
                    })
                    .collect::<Vec<_>>()
            };
        }
        macro_rules! append {
            ($($kind:ident)*) => {
                match &mut self.data {
                    $(ColumnData::$kind(to) => {
                        let from = each!(ColumnData::$kind(values) => &values[..]);
                        let from: Vec<_> = from.into_iter().map(Option::unwrap_or_default).collect();
                        rows.put(to, &from);
                    })*
                    ColumnData::Dictionary { keys: to, .. } => {
                        let from = each!(ColumnData::Dictionary { keys, .. } => &keys[..]);
                        let from: Vec<_> = from.into_iter().map(Option::unwrap_or_default).collect();
                        rows.put(to, &from);
                    }
                    ColumnData::Text(to) | ColumnData::Binary(to) => {
                        let from = each!(ColumnData::Text(from) | ColumnData::Binary(from) => from);
                        if let Rows::Merged(..) = rows {
                            for_each_value(&from, rows, Strings::get, |text| {
                                to.bytes.extend_from_slice(text);
                                to.end();
                            });
                            return;
                        }
                        for (run, from) in runs_of(&from, rows) {
                            let bytes = append_offsets(&mut to.offsets, &from.offsets, *run);
                            to.bytes.extend_from_slice(&from.bytes[bytes]);
                        }
                    }
                    ColumnData::List { offsets: to, items: to_items } => {
                        let from = each!(ColumnData::List { offsets, .. } => &offsets[..]);
                        let from_items = each!(ColumnData::List { items, .. } => &**items);
                        if let Rows::Merged(merged, _) = rows
                            && let Some((parts, order)) = merge_lists(to, &from, *merged)
                        {
                            let (parts, order) = (&parts[..], &order[..]);
                            let items = MergedRows { parts, order };
                            let items = Rows::Merged(items, OnceCell::new());
                            return to_items.append_rows(&from_items, &items);
                        }
                        let runs = runs_of(&from, rows).map(|(run, offsets)| {
                            let range = append_offsets(to, offsets, *run);
                            SourceRun { first: range.start, rows: range.len(), ..*run }
                        });
                        let runs: Vec<_> = runs.collect();
                        to_items.append_rows(&from_items, &Rows::Runs(&runs));
                    }
                    ColumnData::Struct { len, members: to } => {
                        *len += rows.len();
                        let from = each!(ColumnData::Struct { members, .. } => &members[..]);
                        let from: Vec<_> = from.into_iter().map(Option::unwrap_or_default).collect();
                        append_each(to, &from, rows);
                    }
                    ColumnData::Bool(to) => {
                        let from = each!(ColumnData::Bool(bits) => bits);
                        for_each_value(&from, rows, Bitmap::get, |bit| to.push(bit));
                    }
                    ColumnData::FixedBinary { size, bytes: to } => {
                        let from = each!(ColumnData::FixedBinary { bytes, .. } => &bytes[..]);
                        for (run, from) in runs_of(&from, rows) {
                            to.extend_from_slice(&from[run.first * *size..run.range().end * *size]);
                        }
                    }
                }
            };
        }
        append!(Uint8 Uint16 Uint32 Uint64 Int8 Int16 Int32 Int64 Float32 Float64);
    }
}

/// The runs of some rows, and what there is of their sources.
fn runs_of<'r, T: Copy>(
    sources: &[Option<T>],
    rows: &'r Rows<'_>,
) -> impl Iterator<Item = (&'r SourceRun, T)> {
    let each = rows.runs().iter();
    each.filter_map(|run| Some((run, sources[run.source]?)))
}

/// Calls `push` with the value of each row, in their order.
fn for_each_value<T: Copy, V: Copy>(
    sources: &[Option<T>],
    rows: &Rows<'_>,
    value: impl Fn(T, usize) -> V,
    mut push: impl FnMut(V),
) {
    let Rows::Merged(merged, _) = rows else {
        return runs_of(sources, rows)
            .for_each(|(run, from)| run.range().for_each(|row| push(value(from, row))));
    };
    let mut values = Vec::with_capacity(merged.order.len());
    for part in merged.parts {
        if let Some(from) = sources[part.source] {
            values.extend(part.range().map(|row| value(from, row)));
        }
    }
    let each = merged.order.iter();
    each.for_each(|&position| push(values[usize::from(position)]));
}

/// Appends where merged lists end, and returns the parts of their items and the order of these; nothing, if they are
/// more than may be merged at once.
fn merge_lists(
    to: &mut Vec<i32>,
    sources: &[Option<&[i32]>],
    merged: MergedRows<'_>,
) -> Option<(Vec<SourceRun>, Vec<u16>)> {
    let mut parts = Vec::with_capacity(merged.parts.len());
    // Where the items of each list are among those of all parts.
    let mut lists = Vec::with_capacity(merged.order.len());
    let mut items = 0;
    for part in merged.parts {
        let Some(offsets) = sources[part.source] else {
            continue;
        };
        let offsets = &offsets[part.first..=part.range().end];
        let (first, rows) = (offsets[0], (offsets[part.rows] - offsets[0]) as usize);
        if items + rows > MergedRows::MOST {
            return None;
        }
        let place = |offset: i32| (items as i32 + (offset - first)) as u16;
        let ends = offsets[1..].iter().zip(offsets);
        lists.extend(ends.map(|(&end, &begin)| place(begin)..place(end)));
        parts.push(SourceRun {
            source: part.source,
            first: first as usize,
            rows,
        });
        items += rows;
    }
    let mut order = Vec::with_capacity(items);
    let mut end = to.last().copied().unwrap_or(0);
    for &position in merged.order {
        let list = lists[usize::from(position)].clone();
        end += i32::from(list.end - list.start);
        to.push(end);
        order.extend(list);
    }
    Some((parts, order))
}

/// Maximum number of values of a part that is copied as a block of fixed size, without a call; any excess is
/// overwritten by the next one, or taken off again.
pub(super) const SHORT: usize = 8;

/// Maximum room for the bytes of texts in an empty column: a single text may have very many.
const MOST_ROOM: usize = 1 << 16;

/// The same of very short parts, where streams alternate.
const VERY_SHORT: usize = 2;

/// Appends runs of the values of sources, which have `all` values in total.
fn put<T: Copy + Default>(to: &mut Vec<T>, all: usize, sources: &[&[T]], runs: &[SourceRun]) {
    if let [run] = runs {
        return to.extend_from_slice(&sources[run.source][run.range()]);
    }
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

/// For fewer values than this, checking each position costs less than filling up to a known size.
const FEW: usize = 512;

/// Appends merged values of sources.
fn put_merged<T: Copy + Default>(to: &mut Vec<T>, sources: &[&[T]], rows: MergedRows<'_>) {
    let mut values = Vec::with_capacity(match rows.order.len() {
        few if few < FEW => few,
        _ => MergedRows::MOST,
    });
    for part in rows.parts {
        values.extend_from_slice(&sources[part.source][part.range()]);
    }
    assert!(
        values.len() <= MergedRows::MOST,
        "more rows than may be merged at once"
    );
    if values.len() < FEW {
        let each = rows.order.iter();
        return to.extend(each.map(|&position| values[usize::from(position)]));
    }
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

/// Appends where the values of a run end, which come from elsewhere, and returns where all of them are there.
#[inline]
fn append_offsets(to: &mut Vec<i32>, from: &[i32], run: SourceRun) -> Range<usize> {
    let from = &from[run.first..=run.first + run.rows];
    let (Some(&first), Some(&end), Some(&last)) = (from.first(), from.last(), to.last()) else {
        unreachable!("offsets begin with 0");
    };
    to.extend(from[1..].iter().map(|end| end - first + last));
    first as usize..end as usize
}
