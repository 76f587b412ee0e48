//! What distinguishes the index of a recording from others, and what a cache has of recordings.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use kymo_index::{Cached, ChunkCounts, Index, Key};
use kymo_model::{Recording, Tally};
use kymo_time::Timestamp;

use super::{Done, IndexOptions, Timeline};
use crate::AnyRecording;
use crate::timeline::contributions::own_begin;

/// What distinguishes a recording's index from others, however it is shifted; `None` where it is not in plain files.
pub(super) fn key(recording: &AnyRecording, opened: &[u8]) -> Option<Key> {
    let own_begin = own_begin(recording);
    let mut hasher = DefaultHasher::new();
    for (stream, info) in recording.streams().iter().enumerate() {
        (info.class, info.id, &info.name).hash(&mut hasher);
        if let Some(clock) = &info.clock {
            let begin = clock.timestamp(0).map(Timestamp::as_nanos);
            let begin = begin.map(|begin| i128::from(begin) - i128::from(own_begin));
            (&clock.name, clock.frequency, begin).hash(&mut hasher);
        }
        let first = recording
            .chunk(stream, 0)
            .and_then(|chunk| chunk.begin_time);
        own(first, own_begin).hash(&mut hasher);
    }
    for class in recording.event_classes() {
        (class.id, class.stream_class, &class.name).hash(&mut hasher);
    }
    let mut options = opened.to_vec();
    options.extend(hasher.finish().to_le_bytes());
    match recording {
        AnyRecording::Ctf(trace) => {
            let metadata = trace
                .metadata_files()
                .iter()
                .map(|(path, _)| path.as_path());
            let streams = trace.files().iter().map(|file| file.path.as_path());
            let indexes = trace.files().iter().filter_map(|file| file.index.as_ref());
            let indexes = indexes.map(|(path, _)| path.as_path());
            let paths: Vec<&Path> = metadata.chain(streams).chain(indexes).collect();
            Key::new(paths, options)
        }
        _ => Key::new([recording.path()], options),
    }
}

fn own(time: Option<Timestamp>, own_begin: i64) -> Option<i128> {
    time.map(|time| i128::from(time.as_nanos()) - i128::from(own_begin))
}

/// For each stream the number of its chunks, and what identifies them: of the first ones, if that many are
/// known.
pub(super) fn chunk_key(recording: &AnyRecording, known: Option<&[u64]>) -> Vec<u64> {
    let own_begin = own_begin(recording);
    let mut key = Vec::new();
    for stream in 0..recording.streams().len() {
        let all = recording.chunk_count(stream);
        let count = known.and_then(|known| known.get(2 * stream));
        let count = count.map_or(all, |&count| {
            usize::try_from(count).unwrap_or(usize::MAX).min(all)
        });
        let mut hasher = DefaultHasher::new();
        for chunk in recording.chunks(stream).take(count) {
            let times = [chunk.begin_time, chunk.end_time].map(|time| own(time, own_begin));
            (chunk.bytes, chunk.begin, chunk.end, times).hash(&mut hasher);
        }
        key.extend([count as u64, hasher.finish()]);
    }
    key
}

/// Whether an index has all of a recording; `None` where it is of something else, or its times would be beyond those
/// there are.
pub(super) fn reaches(recording: &AnyRecording, index: &Index) -> Option<bool> {
    let own_begin = own_begin(recording);
    let fits = |own: i64| {
        own.checked_add(own_begin)
            .is_some_and(|time| time > i64::MIN)
    };
    let is_only_elsewhere = index.meta().only_at.is_some_and(|at| at != own_begin);
    if is_only_elsewhere
        || !index
            .range()
            .is_none_or(|(first, last)| fits(first) && fits(last))
    {
        return None;
    }
    let known = &index.meta().chunks;
    let same = *known == chunk_key(recording, Some(known));
    let all = 0..recording.streams().len();
    let mut counts = all.map(|stream| recording.chunk_count(stream) as u64);
    same.then(|| counts.by_ref().eq(known.chunks(2).map(|pair| pair[0])))
}

/// How many events chunks have, as far as indexes know it: [`Stats`](crate::report::Stats) need not count them, and
/// [queries](crate::timeline::Query::known) need not read those without wanted ones.
#[derive(Debug, Default)]
pub struct KnownCounts {
    /// By recording: when its own time begins, and its counts in the order of streams and chunks.
    recordings: Vec<(i64, Vec<ChunkCounts>)>,
}

impl Timeline {
    /// Whether the cache has whole indexes of all recordings: then [`Timeline::index`] need not read them.
    pub fn is_indexed(&self, options: &IndexOptions) -> bool {
        self.recordings().iter().all(|recording| {
            let key = key(recording, &options.opened);
            let cached = key.and_then(|key| options.cache.as_ref()?.get(&key));
            match cached {
                Some(Cached::Whole(index)) => reaches(recording, &index) == Some(true),
                _ => false,
            }
        })
    }
}

impl KnownCounts {
    /// Looks recordings up in the cache. Nothing is built or written there.
    pub fn new(recordings: &[AnyRecording], options: &IndexOptions) -> Self {
        let of_recording = |recording: &AnyRecording| {
            let key = key(recording, &options.opened)?;
            // Of files that have grown, what was there is known.
            let (Cached::Whole(index) | Cached::Older(index)) =
                options.cache.as_ref()?.get(&key)?;
            reaches(recording, &index)?;
            Some((own_begin(recording), index.into_meta().counts))
        };
        let recordings = recordings.iter();
        let recordings = recordings.map(|recording| of_recording(recording).unwrap_or_default());
        Self {
            recordings: recordings.collect(),
        }
    }

    /// What an index knows so far: nothing of recordings that have not been gone through.
    pub(super) fn of_index(done: &[Arc<Done>]) -> Self {
        let of_recording = |done: &Arc<Done>| {
            let index = done.index.as_ref();
            index.map_or_else(Vec::new, |index| index.meta().counts.clone())
        };
        // Of these, no times are asked for.
        let recordings = done.iter().map(|done| (0, of_recording(done)));
        Self {
            recordings: recordings.collect(),
        }
    }

    /// Of each chunk of a stream, whether it is known to have no event of some classes.
    pub(crate) fn without(
        &self,
        recording: usize,
        stream: usize,
        chunks: usize,
        is_one: impl Fn(usize) -> bool,
    ) -> Arc<[bool]> {
        let mut without = vec![false; chunks];
        let all = self
            .recordings
            .get(recording)
            .map_or(&[][..], |known| &known.1);
        let before = all.partition_point(|counts| (counts.stream as usize) < stream);
        let of_stream = all[before..].iter();
        let of_stream = of_stream.take_while(|counts| counts.stream as usize == stream);
        let has_none =
            |counts: &&ChunkCounts| !counts.classes.iter().any(|tally| is_one(tally.class));
        for counts in of_stream.filter(has_none) {
            let place = |number: u64| usize::try_from(number).map_or(chunks, |at| at.min(chunks));
            let end = counts.first.saturating_add(counts.chunks);
            without[place(counts.first)..place(end)].fill(true);
        }
        without.into()
    }

    /// The number of events of a stream that has `chunks` chunks, if all of them are known.
    pub(crate) fn events_of_stream(
        &self,
        recording: usize,
        stream: usize,
        chunks: u64,
    ) -> Option<u64> {
        let (_, all) = self.recordings.get(recording)?;
        let of_stream = all.iter().filter(|counts| counts.stream as usize == stream);
        let (mut next, mut events) = (0, 0u64);
        for counts in of_stream {
            if counts.first != next {
                return None;
            }
            next += counts.chunks;
            events = events.saturating_add(counts.events());
        }
        (next == chunks && chunks > 0).then_some(events)
    }

    /// The counts that a chunk is part of.
    pub(crate) fn of_chunk(
        &self,
        recording: usize,
        stream: usize,
        chunk: usize,
    ) -> Option<&ChunkCounts> {
        let (_, all) = self.recordings.get(recording)?;
        let place = (stream as u64, chunk as u64);
        let after = all.partition_point(|counts| (counts.stream.into(), counts.first) <= place);
        let counts = all.get(after.checked_sub(1)?)?;
        let is_within =
            u64::from(counts.stream) == place.0 && place.1 - counts.first < counts.chunks;
        is_within.then_some(counts)
    }

    /// A tally of a recording at times on the time line.
    pub(crate) fn on_time_line(&self, recording: usize, tally: &Tally) -> Tally {
        let own_begin = self.recordings.get(recording).map_or(0, |known| known.0);
        let later =
            |time: Timestamp| Timestamp::from_nanos(time.as_nanos().saturating_add(own_begin));
        Tally {
            first: tally.first.map(later),
            last: tally.last.map(later),
            ..*tally
        }
    }
}
