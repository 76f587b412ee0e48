//! The last rows of merged streams, without merging what comes before them.
//!
//! The merge takes the stream whose next message has the smallest key, so that a row comes behind all keys of
//! its stream before it: its own key counts for no less than the greatest of those. By these *effective* keys, which
//! never go back in a stream, streams are merged from their ends: the greatest one is the last. What comes
//! before a place of each stream that was found so has no influence on the order of what follows.
//!
//! Of each stream the events of one chunk are kept. What effective key a chunk begins with is known without a
//! look at the chunks before it where these end earlier than its first event.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use kymo_model::{Chunk, Cursor, Event, Narrowed, Nothing, Recording, RowPlace};
use kymo_time::Timestamp;

use super::entries::NO_TIME;
use super::head::{Key, weight};
use super::merge::{ranks, wanted_classes};
use super::source::SourceInfo;
use super::{Places, Predicate, Select};
use crate::AnyRecording;

/// The rows that are wanted, from the end backwards.
pub struct Tail<'r> {
    sources: Vec<TailSource<'r>>,
    predicate: Predicate<'r>,
    /// What is next of each source that has something left.
    heap: BinaryHeap<Next>,
}

/// A stream.
struct TailSource<'r> {
    info: SourceInfo<'r>,
    ranked: Ranked,
    chunks: Range<usize>,
    /// Of each chunk, how late anything up to its end can be.
    bounds: Vec<i64>,
    /// The greatest key of chunks that were looked at.
    known: HashMap<usize, Option<Key>>,
    /// The chunk in hand, and the rows of it that are left: effective keys and numbers.
    chunk: usize,
    rows: Vec<(Key, u64)>,
    /// The earliest effective time of the chunk.
    least: i64,
    /// The first row that may be wanted.
    first: RowPlace,
}

/// What is the same in the keys of a source.
#[derive(Clone, Copy)]
struct Ranked {
    rank: u32,
    source: usize,
    by_stream: bool,
}

impl Ranked {
    fn key(&self, time: i64, kind: u8, class: u64) -> Key {
        Key {
            time: if self.by_stream { NO_TIME } else { time },
            rank: self.rank,
            kind,
            class,
            source: self.source,
        }
    }
}

/// The last row of a source, or how late it can be.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Next {
    key: Key,
    is_row: bool,
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        // What is not known yet comes first.
        (self.key, !self.is_row).cmp(&(other.key, !other.is_row))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn nanos(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_nanos)
}

impl<'r> Tail<'r> {
    /// Begins at the end of what is wanted; `by_stream` where streams come one after the other.
    pub fn new(recordings: &'r [AnyRecording], select: &'r dyn Select, by_stream: bool) -> Self {
        let wanted = wanted_classes(recordings, select);
        let mut infos = Vec::new();
        for (number, recording) in recordings.iter().enumerate() {
            for stream in 0..recording.streams().len() {
                infos.push(SourceInfo {
                    recording: number,
                    stream,
                    input: recording,
                    window: select.window(number),
                    classes: wanted[number].clone(),
                    narrowed: Narrowed::default(),
                    idle: select.idle_chunks(number, stream),
                });
            }
        }
        let ranks = match by_stream {
            true => (0..).take(infos.len()).collect(),
            false => ranks(&infos),
        };
        let sources = infos.into_iter().zip(ranks).enumerate();
        let sources = sources.map(|(source, (info, rank))| {
            let place = Ranked {
                rank,
                source,
                by_stream,
            };
            TailSource::new(info, place, select)
        });
        let mut tail = Self {
            sources: sources.collect(),
            predicate: select.predicate(),
            heap: BinaryHeap::new(),
        };
        tail.heap = tail.sources.iter().filter_map(TailSource::next).collect();
        tail
    }

    /// Goes back by at most `rows` rows, and returns their number and where they begin.
    pub fn rewind(&mut self, rows: u64) -> (u64, Places) {
        let mut taken = 0;
        while taken < rows
            && let Some(next) = self.heap.pop()
        {
            let source = &mut self.sources[next.key.source];
            if next.is_row {
                taken += u64::from(source.rows.pop().is_some());
            } else if source.rows.is_empty() {
                source.load(&mut self.predicate);
            }
            self.heap.extend(source.next());
        }
        let mut places = Places::at_end();
        for source in &mut self.sources {
            let place = source.place(&mut self.predicate);
            places.set(source.info.recording, source.info.stream, place);
        }
        (taken, places)
    }
}

impl<'r> TailSource<'r> {
    fn new(info: SourceInfo<'r>, place: Ranked, select: &dyn Select) -> Self {
        let chunks = info.wanted_chunks(select);
        let mut latest = NO_TIME;
        let bounds = chunks.clone().map(|number| {
            let chunk = info.chunk(number);
            let lost = chunk.iter().flat_map(|chunk| losses(&info, place, chunk));
            let lost = lost.map(|key| key.time).max();
            let end = chunk.map_or(Some(NO_TIME), |chunk| nanos(chunk.end_time));
            latest = latest
                .max(end.unwrap_or(i64::MAX))
                .max(lost.unwrap_or(NO_TIME));
            latest
        });
        let bounds = bounds.collect();
        Self {
            ranked: place,
            least: NO_TIME,
            first: select.first_row(info.recording, info.stream),
            bounds,
            known: HashMap::new(),
            chunk: chunks.end,
            rows: Vec::new(),
            chunks,
            info,
        }
    }

    fn bound(&self, chunk: usize) -> i64 {
        let at = chunk.checked_sub(self.chunks.start);
        at.and_then(|at| self.bounds.get(at))
            .copied()
            .unwrap_or(NO_TIME)
    }

    /// What comes next, and is the last that is left.
    fn next(&self) -> Option<Next> {
        if let Some(&(key, _)) = self.rows.last() {
            return Some(Next { key, is_row: true });
        }
        let chunk = self
            .chunk
            .checked_sub(1)
            .filter(|at| *at >= self.chunks.start)?;
        let key = Key {
            rank: if self.ranked.by_stream {
                self.ranked.rank
            } else {
                u32::MAX
            },
            ..self.ranked.key(self.bound(chunk), u8::MAX, u64::MAX)
        };
        Some(Next { key, is_row: false })
    }

    /// Takes the next chunk in hand.
    fn load(&mut self, predicate: &mut Predicate<'_>) {
        self.chunk -= 1;
        let mut rows = self.keys(self.chunk, predicate);
        let Some(least) = rows.iter().map(|row| row.0.time).min() else {
            return;
        };
        let mut effective = self.key_before(self.chunk, least, predicate);
        if let Some(chunk) = self.info.chunk(self.chunk) {
            effective = effective.max(losses(&self.info, self.ranked, &chunk).max());
        }
        for (key, _) in &mut rows {
            *key = effective.map_or(*key, |effective| effective.max(*key));
            effective = Some(*key);
        }
        self.least = rows.first().map_or(NO_TIME, |row| row.0.time);
        self.rows = rows;
    }

    /// Where what was taken begins: behind the last row that was not, since messages there that are not rows have their
    /// influence on the order, too.
    fn place(&mut self, predicate: &mut Predicate<'_>) -> RowPlace {
        // Only what is later than the chunk can have an influence.
        while self.rows.is_empty()
            && (self.chunks.start + 1..self.chunks.end).contains(&self.chunk)
            && self.bound(self.chunk - 1) >= self.least
        {
            self.load(predicate);
        }
        let place = match self.rows.last() {
            Some((_, number)) => RowPlace {
                chunk: self.chunk,
                number: number + 1,
            },
            None if self.chunk == self.chunks.end => {
                // Nothing was taken.
                return RowPlace {
                    chunk: usize::MAX,
                    number: u64::MAX,
                };
            }
            None => RowPlace {
                chunk: self.chunk,
                number: 0,
            },
        };
        place.max(self.first)
    }

    /// The greatest key before a chunk, where it can be greater than one of a time.
    fn key_before(
        &mut self,
        chunk: usize,
        least: i64,
        predicate: &mut Predicate<'_>,
    ) -> Option<Key> {
        if self.ranked.by_stream {
            return None;
        }
        // A stream is not looked at before its first chunk says that it begins.
        let first = self.info.chunk(self.chunks.start);
        let begin = first.and_then(|chunk| nanos(chunk.begin_time));
        let mut greatest = begin.map(|begin| Key {
            rank: 0,
            ..self.ranked.key(begin, 0, 0)
        });
        for before in (self.chunks.start..chunk).rev() {
            let bound = self.bound(before);
            let is_less = greatest.is_some_and(|key| bound < key.time);
            if is_less || bound < least {
                break;
            }
            let key = match self.known.get(&before) {
                Some(key) => *key,
                None => {
                    let rows = self.keys(before, predicate).into_iter().map(|row| row.0);
                    let info = self.info.chunk(before);
                    let lost = info
                        .iter()
                        .flat_map(|it| losses(&self.info, self.ranked, it));
                    let key = rows.chain(lost).max();
                    self.known.insert(before, key);
                    key
                }
            };
            greatest = greatest.max(key);
        }
        greatest
    }

    /// The keys and numbers of the rows of a chunk, as the merge meets them.
    fn keys(&self, number: usize, predicate: &mut Predicate<'_>) -> Vec<(Key, u64)> {
        let mut rows = Vec::new();
        let info = &self.info;
        let Some(chunk) = info.chunk(number).filter(|_| !info.is_idle(number)) else {
            return rows;
        };
        if predicate.chunk(info.recording, info.input, &chunk).is_err() {
            return rows;
        }
        let (begin, end) = (info.window.begin.as_nanos(), info.window.end.as_nanos());
        let mut cursor = info.input.cursor(&chunk);
        while let Ok(Some(event)) = cursor.next_event() {
            let time = nanos(event.timestamp());
            let class = event.class_index();
            if time.is_some_and(|time| time < begin || time > end) || !info.classes[class] {
                continue;
            }
            let wanted = predicate.wants(&event);
            // Where an event cannot be decoded, its chunk ends.
            match wanted.and_then(|wanted| event.visit(&mut Nothing).map(|()| wanted)) {
                Ok(true) => {
                    let kind = weight(&crate::show::MessageKind::Event);
                    let key = self
                        .ranked
                        .key(time.unwrap_or(NO_TIME), kind, event.class().id);
                    rows.push((key, event.number()));
                }
                Ok(false) => {}
                Err(_) => break,
            }
        }
        rows
    }
}

/// The keys of what was lost before a chunk.
fn losses(info: &SourceInfo<'_>, place: Ranked, chunk: &Chunk) -> impl Iterator<Item = Key> {
    let clock = info.input.streams()[info.stream].clock.clone();
    info.losses(chunk).map(move |(kind, ticks)| {
        let time = ticks.and_then(|ticks| clock.as_ref()?.timestamp(ticks));
        place.key(nanos(time).unwrap_or(NO_TIME), weight(&kind), 0)
    })
}
