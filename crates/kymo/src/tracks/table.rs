//! The tracks that were met.

use std::hash::BuildHasher;
use std::ops::Range;

use kymo_model::{Recording, Value};

use super::intern::{Interner, OTHERS};
use super::key::{Key, RowKey};
use super::plan::TrackSource;
use crate::pipeline::Values;

/// What distinguishes a track from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrackKey {
    /// A stream, by the positions of its recording and itself.
    Stream(usize, usize),
    /// A recording's own track.
    Own(usize, Key),
    /// Values of fields, of whatever recording.
    Fields(Key),
    /// Whatever runs on a processor of which no switch is known yet.
    Unknown(Key),
    /// A series beside a track: the number of that, event class, position among the series of the class, and
    /// position in an array.
    Series(u32, u32, u32, Option<u32>),
}

/// Own tracks whose number is less are found in an array.
const SMALL: usize = 1 << 12;

/// Numbers tracks as they come; of very many the later ones are one.
#[derive(Debug)]
pub(crate) struct TrackTable {
    known: Interner<TrackKey>,
    /// By recording and stream, the track of its last row: often it is that of the next.
    last: Vec<Vec<u32>>,
    /// By recording, its own tracks that have a small number and nothing else; [`OTHERS`] of those not met.
    small: Vec<Vec<u32>>,
}

impl TrackTable {
    pub(crate) fn new<R: Recording>(recordings: &[R]) -> Self {
        let streams = recordings
            .iter()
            .map(|recording| vec![OTHERS; recording.streams().len()]);
        Self {
            known: Interner::default(),
            last: streams.collect(),
            small: vec![Vec::new(); recordings.len()],
        }
    }

    /// Recordings and streams were added; those that were there before keep their positions.
    pub(crate) fn grow<R: Recording>(&mut self, recordings: &[R]) {
        self.last.resize_with(recordings.len(), Vec::new);
        self.small.resize_with(recordings.len(), Vec::new);
        for (last, recording) in self.last.iter_mut().zip(recordings) {
            last.resize(recording.streams().len(), OTHERS);
        }
    }

    /// The tracks of rows of one stream.
    #[inline]
    pub(crate) fn of_stream(&mut self, recording: usize, stream: usize) -> StreamTracks<'_> {
        StreamTracks {
            known: &mut self.known,
            last: &mut self.last[recording][stream],
            small: &mut self.small[recording],
            recording,
            stream,
        }
    }

    /// The own track of a number in a recording, if nothing else distinguishes it and it was met before.
    #[inline]
    pub(crate) fn small(&self, recording: usize, number: u64) -> Option<u32> {
        let known = self.small[recording].get(usize::try_from(number).ok()?);
        known.copied().filter(|&track| track != OTHERS)
    }

    /// The track of a series.
    pub(crate) fn series(&mut self, track: u32, class: u32, at: u32, element: Option<u32>) -> u32 {
        let key = TrackKey::Series(track, class, at, element);
        let hash = self.known.hasher().hash_one((track, class, at, element));
        let is_it = |known: &TrackKey| *known == key;
        self.known.number(hash, is_it, || (key.clone(), 17))
    }

    /// The track of what runs on a processor of which no switch is known yet.
    pub(crate) fn unknown(&mut self, processor: RowKey<'_>) -> u32 {
        let hash = processor.hash(u64::MAX - 1, self.known.hasher());
        let is_it = |known: &TrackKey| matches!(known, TrackKey::Unknown(key) if processor.is(key));
        self.known.number(hash, is_it, || {
            let key = processor.key();
            let bytes = 9 + key.byte_size();
            (TrackKey::Unknown(key), bytes)
        })
    }

    /// What a number stands for; `None` of those beyond the limits.
    pub(crate) fn key(&self, number: u32) -> Option<&TrackKey> {
        self.known.key(number)
    }
}

/// Numbers the tracks of rows of one stream.
#[derive(Debug)]
pub(crate) struct StreamTracks<'t> {
    known: &'t mut Interner<TrackKey>,
    last: &'t mut u32,
    small: &'t mut Vec<u32>,
    recording: usize,
    stream: usize,
}

impl StreamTracks<'_> {
    /// The track of a row.
    #[inline]
    pub(crate) fn number(&mut self, source: &TrackSource, values: Values<'_>) -> u32 {
        if let TrackSource::Own(fields) = source
            && let [field] = &**fields
            && let Value::Uint(small) = values.first(field)
            && small < SMALL as u64
        {
            return match self.small.get(small as usize) {
                Some(&track) if track != OTHERS => track,
                _ => self.find_small(small as usize, RowKey { values, fields }),
            };
        }
        let last = *self.last;
        let known = self.known.key(last);
        let row = |fields| RowKey { values, fields };
        let is_last = match (source, known) {
            (TrackSource::Stream, Some(TrackKey::Stream(..))) => true,
            (TrackSource::Fields(fields), Some(TrackKey::Fields(key)))
            | (TrackSource::Own(fields), Some(TrackKey::Own(_, key))) => row(fields).is(key),
            _ => false,
        };
        if is_last {
            return last;
        }
        let number = match source {
            TrackSource::Stream => self.find_stream(),
            TrackSource::Own(fields) => self.find(Some(self.recording), row(fields)),
            TrackSource::Fields(fields) => self.find(None, row(fields)),
        };
        *self.last = number;
        number
    }

    /// The track that fields of a row make within its recording.
    #[inline]
    pub(crate) fn within(&mut self, fields: &[Range<usize>], values: Values<'_>) -> u32 {
        let row = RowKey { values, fields };
        match self.known.key(*self.last) {
            Some(TrackKey::Own(_, key)) if row.is(key) => {}
            _ => *self.last = self.find(Some(self.recording), row),
        }
        *self.last
    }

    #[cold]
    fn find_small(&mut self, small: usize, row: RowKey<'_>) -> u32 {
        let track = self.find(Some(self.recording), row);
        if small >= self.small.len() {
            self.small.resize(small + 1, OTHERS);
        }
        self.small[small] = track;
        track
    }

    #[cold]
    fn find_stream(&mut self) -> u32 {
        let (recording, stream) = (self.recording, self.stream);
        let hash = self.known.hasher().hash_one((recording, stream));
        let key = TrackKey::Stream(recording, stream);
        let is_it = |known: &TrackKey| *known == key;
        self.known.number(hash, is_it, || (key.clone(), 17))
    }

    fn find(&mut self, own: Option<usize>, row: RowKey<'_>) -> u32 {
        let scope = own.map_or(u64::MAX, |recording| recording as u64);
        let hash = row.hash(scope, self.known.hasher());
        let is_it = |known: &TrackKey| match (known, own) {
            (TrackKey::Own(owner, key), Some(recording)) => *owner == recording && row.is(key),
            (TrackKey::Fields(key), None) => row.is(key),
            _ => false,
        };
        self.known.number(hash, is_it, || {
            let key = row.key();
            let bytes = 9 + key.byte_size();
            let key = match own {
                Some(recording) => TrackKey::Own(recording, key),
                None => TrackKey::Fields(key),
            };
            (key, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use kymo_model::batch::{Column, ColumnData, Strings};

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn tracks_are_streams_own_tracks_or_values() {
        let mut first = Fake::default();
        first.stream("cpu0", Vec::new());
        first.stream("cpu1", Vec::new());
        let mut other = Fake::default();
        other.stream("cpu0", Vec::new());
        let mut tracks = TrackTable::new(&[first, other]);
        // Track 7 with a name, and without.
        let columns = [
            ColumnData::Uint32(vec![7, 7]),
            ColumnData::Text(Strings {
                offsets: vec![0, 8, 8],
                bytes: b"worker 7".to_vec(),
            }),
        ];
        let columns = columns.map(|data| Column {
            data,
            validity: None,
        });
        let both: Vec<Range<usize>> = vec![0..1, 1..2];
        let (own, fields) = (
            TrackSource::Own(both.clone().into()),
            TrackSource::Fields(both.into()),
        );
        let mut number = |source: &TrackSource, row, (recording, stream)| {
            let values = Values::new(&columns, row);
            tracks.of_stream(recording, stream).number(source, values)
        };
        let stream = TrackSource::Stream;
        assert_eq!(number(&stream, 0, (0, 1)), 0);
        assert_eq!(number(&own, 0, (0, 0)), 1);
        assert_eq!(number(&own, 0, (1, 0)), 2, "of another recording");
        assert_eq!(number(&fields, 0, (0, 0)), 3);
        assert_eq!(number(&own, 1, (1, 0)), 4);
        assert_eq!(number(&stream, 0, (0, 1)), 0);
        assert_eq!(number(&own, 0, (1, 0)), 2);
        assert_eq!(number(&own, 0, (1, 0)), 2, "once more");
        assert_eq!(number(&fields, 0, (1, 0)), 3);
        assert_eq!(
            number(&stream, 0, (1, 0)),
            5,
            "a stream with own tracks, too"
        );
        let name = Key::Several([Key::Uint(7), Key::Text((*b"worker 7").into())].into());
        assert_eq!(tracks.key(0), Some(&TrackKey::Stream(0, 1)));
        assert_eq!(tracks.key(2), Some(&TrackKey::Own(1, name.clone())));
        assert_eq!(tracks.key(3), Some(&TrackKey::Fields(name)));
        assert_eq!(tracks.key(OTHERS), None);
        // Numbers alone.
        let only = TrackSource::Own(std::iter::once(0..1).collect());
        let mut number = |source: &TrackSource, recording| {
            let values = Values::new(&columns, 0);
            tracks.of_stream(recording, 0).number(source, values)
        };
        assert_eq!((number(&only, 0), number(&only, 1)), (6, 7));
        assert_eq!((number(&only, 0), number(&only, 1)), (6, 7));
        assert_eq!(tracks.key(6), Some(&TrackKey::Own(0, Key::Uint(7))));
    }
}
