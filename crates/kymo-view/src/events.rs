//! Single events: where there are few, one with all its fields, and pages of a table.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use kymo::show::json::Json;
use kymo::show::{MessageKind, Times, WallOptions, text_of};
use kymo::timeline::{Batch, Columns, Direction, Query, QueryError};
use kymo_model::batch::RowId;
use kymo_model::{EntryKind, Recording};
use kymo_time::Timestamp;

use crate::scene::{Scene, window};
use crate::tracks::Classifier;

/// At most this many events of the same time are distinguished.
pub(crate) const MOST_SAME: u64 = 1 << 20;

/// Rows that are looked at for one answer.
const MOST_ROWS: u64 = 1 << 17;

/// Rows that are looked at at a time.
const MOST_PAGE: u64 = 1 << 13;

/// Where an event is: among those of its time, in the order of the table, it has this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) time: i64,
    pub(crate) skip: u64,
}

/// An event as a line of JSON, as `kymo print --format json --times text` has it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) cursor: Cursor,
    pub(crate) recording: usize,
    pub(crate) class: usize,
    pub(crate) json: String,
}

/// A page of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// The rows with their tracks.
    pub(crate) lines: Vec<(Line, Vec<u32>)>,
    /// Whether rows that are wanted may be further away than was looked.
    pub(crate) is_cut: bool,
}

/// An event of a track.
#[derive(Clone, Debug)]
pub(crate) struct OnTrack {
    pub(crate) track: u32,
    pub(crate) time: i64,
    pub(crate) recording: u32,
    pub(crate) class: u32,
    pub(crate) label: String,
}

impl Scene {
    /// Rows as lines of JSON from a place on, or those before it.
    ///
    /// # Errors
    ///
    /// The condition is invalid, or no thread could be started for it.
    pub(crate) fn page(
        &self,
        from: Cursor,
        is_back: bool,
        limit: u64,
        condition: Option<&str>,
    ) -> Result<Vec<Line>, QueryError> {
        let skip = from.skip.min(MOST_SAME);
        let same = (from.time, from.time);
        if !is_back {
            let all = (from.time, i64::MAX);
            let mut lines = self.lines(all, false, limit + skip, condition)?;
            lines.drain(..lines.len().min(skip as usize));
            return Ok(lines);
        }
        let mut at = match skip {
            0 => Vec::new(),
            _ => self.lines(same, false, skip, condition)?,
        };
        let missing = limit.saturating_sub(at.len() as u64);
        at.drain(..at.len().saturating_sub(limit as usize));
        if missing == 0 || from.time == i64::MIN {
            return Ok(at);
        }
        let mut lines = self.lines((i64::MIN, from.time - 1), true, missing, condition)?;
        // The first ones may be cut off from others of their time.
        if let Some(first) = lines.first().map(|line| line.cursor.time) {
            let all = self.count_at(first, condition)?;
            let have = lines
                .iter()
                .filter(|line| line.cursor.time == first)
                .count() as u64;
            for line in lines
                .iter_mut()
                .take_while(|line| line.cursor.time == first)
            {
                line.cursor.skip += all.saturating_sub(have);
            }
        }
        lines.append(&mut at);
        Ok(lines)
    }

    /// The same with the tracks of each row; only rows of some tracks, if these are given.
    ///
    /// # Errors
    ///
    /// The condition is invalid, or no thread could be started for it.
    pub(crate) fn page_on(
        &self,
        on: Option<&HashSet<u32>>,
        from: Cursor,
        is_back: bool,
        limit: u64,
        condition: Option<&str>,
    ) -> Result<Page, QueryError> {
        let mut page = Page::default();
        let mut at = from;
        let mut looked = 0;
        // More at a time as fewer of them are wanted.
        let mut count = limit;
        loop {
            let lines = self.page(at, is_back, count, condition)?;
            let tracks = self.tracks_of(&lines, condition)?;
            looked += lines.len() as u64;
            let edge = if is_back { lines.first() } else { lines.last() };
            let is_last = (lines.len() as u64) < count;
            let next = edge.map(|line| Cursor {
                time: line.cursor.time,
                skip: line.cursor.skip + u64::from(!is_back),
            });
            let rows = lines.into_iter().zip(tracks);
            let mut rows: Vec<(Line, Vec<u32>)> = match on {
                Some(on) => rows
                    .filter(|(_, tracks)| tracks.iter().any(|track| on.contains(track)))
                    .collect(),
                None => rows.collect(),
            };
            match is_back {
                true => {
                    rows.append(&mut page.lines);
                    page.lines = rows;
                }
                false => page.lines.append(&mut rows),
            }
            let is_full = page.lines.len() as u64 >= limit;
            page.is_cut = !is_full && !is_last && looked >= MOST_ROWS;
            if is_full || is_last || page.is_cut {
                break;
            }
            let Some(next) = next else { break };
            at = next;
            count = (count * 4).min(MOST_PAGE);
        }
        let excess = page.lines.len().saturating_sub(limit as usize);
        match is_back {
            true => drop(page.lines.drain(..excess)),
            false => page.lines.truncate(limit as usize),
        }
        Ok(page)
    }

    /// The tracks of each of some rows that follow each other in the table.
    fn tracks_of(
        &self,
        lines: &[Line],
        condition: Option<&str>,
    ) -> Result<Vec<Vec<u32>>, QueryError> {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Ok(Vec::new());
        };
        let mut query = self.within((first.cursor.time, last.cursor.time), condition);
        let mut rest = first.cursor.skip;
        let mut order = Vec::new();
        self.timeline.for_each_batch(&query, |batch| {
            for (_, id, _) in self.timed(&batch) {
                match rest {
                    0 => order.push(id),
                    _ => rest -= 1,
                }
            }
            match order.len() < lines.len() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        // The tracks are found class by class.
        let mut tracks: HashMap<RowId, Vec<u32>> = HashMap::new();
        tracks.extend(order.iter().take(lines.len()).map(|&id| (id, Vec::new())));
        let mut classifier = Classifier::new(self, &mut query)?;
        self.timeline.for_each_batch(&query, |batch| {
            for row in 0..batch.len() {
                if let Some(own) = tracks.get_mut(&batch.id(row)) {
                    let parts = classifier.parts(&batch, row);
                    own.extend(parts.iter().map(|part| part.track));
                }
            }
            ControlFlow::Continue(())
        })?;
        let mut found: Vec<Vec<u32>> = order
            .iter()
            .take(lines.len())
            .map(|id| tracks.remove(id).unwrap_or_default())
            .collect();
        found.resize(lines.len(), Vec::new());
        Ok(found)
    }

    /// How many rows there are at a time.
    fn count_at(&self, time: i64, condition: Option<&str>) -> Result<u64, QueryError> {
        let mut query = self.within((time, time), condition);
        query.limit = Some(MOST_SAME);
        let mut count = 0;
        self.timeline.for_each_batch(&query, |batch| {
            count += self.timed(&batch).count() as u64;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// The rows of a batch that have a time that is wanted.
    pub(crate) fn timed<'b>(
        &self,
        batch: &'b Batch,
    ) -> impl Iterator<Item = (usize, RowId, i64)> + use<'_, 'b> {
        (0..batch.len()).filter_map(|row| {
            let head = batch.head(row);
            let time = head.time?.as_nanos();
            let is_wanted = self.is_wanted(head.id.recording as usize, time);
            is_wanted.then_some((row, head.id, time))
        })
    }

    /// The query for what is wanted in a range of time.
    pub(crate) fn within(&self, (begin, end): (i64, i64), condition: Option<&str>) -> Query {
        let mut query = self.query(condition);
        query.range = query.range.and(window(begin, end));
        query
    }

    pub(crate) fn lines(
        &self,
        range: (i64, i64),
        is_back: bool,
        limit: u64,
        condition: Option<&str>,
    ) -> Result<Vec<Line>, QueryError> {
        let mut query = self.within(range, condition);
        // Rows without a time are in every range, and come first.
        let untimed = match is_back {
            true => 0,
            false => self.state().untimed,
        };
        // Where recordings have windows of their own, rows are left out afterwards.
        let windows = &self.options.windows;
        let is_same = windows.windows(2).all(|pair| pair[0] == pair[1]);
        query.limit = match is_same {
            true => Some(limit.saturating_add(untimed)),
            false => Some(MOST_ROWS.max(limit)),
        };
        if is_back {
            query.direction = Direction::Backwards;
        }
        let json = Json::with_times(Times::Text, WallOptions::default());
        let mut lines: Vec<Line> = Vec::new();
        for text in self.timeline.text(&query, json)? {
            let Some(message) = &text.message else {
                continue;
            };
            let Some(time) = message.time.map(Timestamp::as_nanos) else {
                continue;
            };
            let is_row = matches!(message.kind, MessageKind::Event);
            if !is_row || !self.is_wanted(message.recording, time) {
                continue;
            }
            let skip = match lines.last() {
                Some(last) if last.cursor.time == time => last.cursor.skip + 1,
                _ => 0,
            };
            lines.push(Line {
                cursor: Cursor { time, skip },
                recording: message.recording,
                class: message.class,
                json: String::from_utf8_lossy(text.text.trim_ascii_end()).into_owned(),
            });
            if !is_back && lines.len() as u64 >= limit {
                break;
            }
        }
        if is_back {
            lines.drain(..lines.len().saturating_sub(limit as usize));
        }
        Ok(lines)
    }

    /// The events of some tracks in a range of time with their labels; `None` if there are too many.
    pub(crate) fn few(
        &self,
        tracks: &[u32],
        range: (i64, i64),
        limit: u64,
        condition: Option<&str>,
    ) -> Result<Option<Vec<OnTrack>>, QueryError> {
        if condition.is_none() && self.has_more(tracks, range, limit) {
            return Ok(None);
        }
        let mut query = self.within(range, condition);
        query.columns = Columns::All;
        query.limit = Some(limit.saturating_add(self.state().untimed).saturating_add(1));
        let wanted: HashSet<u32> = tracks.iter().copied().collect();
        let mut classifier = Classifier::new(self, &mut query)?;
        let mut events = Vec::new();
        let mut rows = 0;
        self.timeline.for_each_batch(&query, |batch| {
            for (row, id, time) in self.timed(&batch) {
                rows += 1;
                let class = batch.classes()[row];
                for part in classifier.parts(&batch, row) {
                    if part.value.is_some() || !wanted.contains(&part.track) {
                        continue;
                    }
                    let recording = &self.recordings()[id.recording as usize];
                    if recording.entry_kind(id.stream as usize) == EntryKind::Sample {
                        continue;
                    }
                    let name = recording.event_classes()[class as usize].name.as_deref();
                    events.push(OnTrack {
                        track: part.track,
                        time,
                        recording: id.recording,
                        class,
                        label: label(name.unwrap_or("event"), &batch, row),
                    });
                }
            }
            match rows > limit {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok((rows <= limit).then_some(events))
    }

    /// Whether the index shows that there are so many rows in a range that they need not be decoded to know that.
    fn has_more(&self, tracks: &[u32], (begin, end): (i64, i64), limit: u64) -> bool {
        /// A row may be on several tracks.
        const SURELY: u64 = 4;
        const COLUMNS: usize = 64;
        if self.wanted.is_some() {
            return false;
        }
        let (grid, bins) = self.known_bins(tracks, (begin, end), COLUMNS);
        let span = i128::from(grid.span());
        let mut rows = 0u64;
        for track in bins.iter().filter(|track| !track.is_estimate) {
            for (position, bin) in &track.bins {
                let from = i128::from(track.begin) + i128::from(*position) * span;
                // Those at the edges may begin before the range, or end behind it.
                let is_within = from >= begin.into() && from + span <= i128::from(end);
                rows = rows.saturating_add(if is_within { bin.count } else { 0 });
            }
        }
        rows > limit.saturating_mul(SURELY)
    }

    /// The time of the first row of a track after a time (or at it), or of the last one before it (or at it).
    pub(crate) fn time_on(&self, track: u32, time: i64, is_back: bool, at_it: bool) -> Option<i64> {
        if let Some(found) = &self.wanted {
            let from = match (at_it, is_back) {
                (false, _) => time,
                (true, false) => time.checked_sub(1)?,
                (true, true) => time.checked_add(1)?,
            };
            return found
                .lock()
                .next(from, is_back, Some(&[track]))
                .map(|(_, row)| row.time);
        }
        let (time, direction) = match is_back {
            false => (time.checked_add(i64::from(!at_it))?, Direction::Forwards),
            true => (time.checked_sub(i64::from(!at_it))?, Direction::Backwards),
        };
        let (recording, track) = self.tracks.get(track)?;
        let time = Timestamp::from_nanos(time);
        let found = (self.index).nearest(time, direction, Some(&[(recording, track.path)]));
        found.map(Timestamp::as_nanos)
    }

    /// The number of a row among those of its time that are on a track; `None` if it is not on the track.
    ///
    /// # Errors
    ///
    /// No thread could be started for it.
    pub(crate) fn nth_on(&self, track: u32, at: Cursor) -> Result<Option<u64>, QueryError> {
        let (order, own) = self.rows_at(track, at.time)?;
        let at = usize::try_from(at.skip).unwrap_or(usize::MAX);
        let is_own = order.get(at).is_some_and(|id| own.contains(id));
        let before = || order[..at].iter().filter(|id| own.contains(*id));
        Ok(is_own.then(|| before().count() as u64))
    }

    /// The rows of a time in the order of the table, and those of them that are on a track.
    fn rows_at(&self, track: u32, time: i64) -> Result<(Vec<RowId>, HashSet<RowId>), QueryError> {
        let mut query = self.within((time, time), None);
        query.limit = Some(MOST_SAME);
        let mut order = Vec::new();
        self.timeline.for_each_batch(&query, |batch| {
            order.extend(self.timed(&batch).map(|(_, id, _)| id));
            ControlFlow::Continue(())
        })?;
        let mut classifier = Classifier::new(self, &mut query)?;
        let mut own = HashSet::new();
        self.timeline.for_each_batch(&query, |batch| {
            for (row, id, _) in self.timed(&batch) {
                let parts = classifier.parts(&batch, row);
                if parts.iter().any(|part| part.track == track) {
                    own.insert(id);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok((order, own))
    }

    /// The place of a row of a track in the table: that of a time with the number `nth` among the track's rows of
    /// that time; and how many it has.
    pub(crate) fn place_on(
        &self,
        track: u32,
        time: i64,
        nth: u64,
    ) -> Result<Option<(Cursor, u64)>, QueryError> {
        let (order, own) = self.rows_at(track, time)?;
        let mut places = order.iter().enumerate().filter(|(_, id)| own.contains(id));
        let place = places.nth(nth as usize);
        let count = own.len() as u64;
        Ok(place.map(|(skip, _)| {
            (
                Cursor {
                    time,
                    skip: skip as u64,
                },
                count,
            )
        }))
    }
}

/// The name of an event and its first values.
pub(crate) fn label(name: &str, batch: &Batch, row: usize) -> String {
    let mut label = name.to_string();
    let mut shown = 0;
    for (column, info) in batch.columns().iter().zip(batch.schema().iter()) {
        let value = text_of(column.value(row));
        if value.is_empty() || info.name.starts_with("track") || info.name.starts_with('_') {
            continue;
        }
        label.push_str(if shown == 0 { ": " } else { ", " });
        label.push_str(&info.name);
        label.push('=');
        label.extend(value.chars().take(40));
        shown += 1;
        if shown == 3 {
            break;
        }
    }
    label
}
