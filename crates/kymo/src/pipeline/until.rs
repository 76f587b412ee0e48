//! Streams that are still growing, up to a time before which all of them are known.

use std::sync::atomic::AtomicU64;

use kymo_model::{FaultCode, Recording, RowPlace};
use kymo_time::Timestamp;

use super::predicate::{Layer, Unread};
use super::{Predicate, Select};
use crate::AnyRecording;

/// How far streams of recordings were read, from one run to the next.
#[derive(Clone, Debug, Default)]
pub struct ReadPlaces {
    recordings: Vec<Vec<ReadPlace>>,
}

/// Whether what looks damaged may just be written by half, in a file that grows.
pub fn may_be_incomplete(fault: FaultCode) -> bool {
    matches!(
        fault,
        FaultCode::Truncated | FaultCode::TrailingData | FaultCode::Index
    )
}

/// How far a stream was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadPlace {
    pub(super) next: RowPlace,
    /// Events before this are left out, in chunks that come: they were read from another copy of the stream.
    pub(super) since: Option<Timestamp>,
}

impl ReadPlaces {
    /// The first row of a stream that was not read.
    pub fn next(&self, recording: usize, stream: usize) -> RowPlace {
        self.place(recording, stream).next
    }

    fn place(&self, recording: usize, stream: usize) -> ReadPlace {
        let streams = self.recordings.get(recording);
        let place = streams.and_then(|streams| streams.get(stream));
        place.copied().unwrap_or_default()
    }

    fn place_mut(&mut self, recording: usize, stream: usize) -> &mut ReadPlace {
        if self.recordings.len() <= recording {
            self.recordings.resize(recording + 1, Vec::new());
        }
        let streams = &mut self.recordings[recording];
        if streams.len() <= stream {
            streams.resize(stream + 1, ReadPlace::default());
        }
        &mut streams[stream]
    }

    /// Rows were added to a stream from a place on: they were not read, even if their chunk was.
    pub fn append(&mut self, recording: usize, stream: usize, from: RowPlace) {
        let place = self.place_mut(recording, stream);
        place.next = place.next.min(from);
    }

    /// Restarts a stream in which read and unread events are mixed: those before `since` were read.
    pub fn restart(&mut self, recording: usize, stream: usize, since: Option<Timestamp>) {
        *self.place_mut(recording, stream) = ReadPlace {
            next: RowPlace::default(),
            since,
        };
    }
}

/// What is wanted of a stream.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) place: ReadPlace,
    /// The chunk to end before.
    end: usize,
    /// The chunk that is read in part.
    pub(super) open: Option<usize>,
    /// Behind the last event of it that was met.
    pub(super) met: AtomicU64,
}

/// What another selection wants, from where streams were read up to a time: of chunks that reach beyond it, only the
/// events before. Each event is wanted once, however often runs follow each other.
pub struct Until<'a> {
    select: &'a dyn Select,
    before: Timestamp,
    bounds: Vec<Vec<Bound>>,
}

impl<'a> Until<'a> {
    /// Goes on behind `read`, up to `before`. `is_bound` says whether a recording grows: of others, all is wanted.
    pub fn new(
        recordings: &[AnyRecording],
        select: &'a dyn Select,
        read: &ReadPlaces,
        before: Timestamp,
        is_bound: impl Fn(usize) -> bool,
    ) -> Self {
        let bounds = recordings.iter().enumerate().map(|(number, recording)| {
            let before = match is_bound(number) {
                true => before,
                false => Timestamp::MAX,
            };
            let bound = |stream| bound(recording, stream, read.place(number, stream), before);
            (0..recording.streams().len()).map(bound).collect()
        });
        Self {
            select,
            before,
            bounds: bounds.collect(),
        }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        let is_empty = |bound: &Bound| bound.place.next.chunk >= bound.end;
        self.bounds.iter().flatten().all(is_empty)
    }

    /// How far streams are read when a run has ended.
    pub fn finish(self, read: &mut ReadPlaces) {
        for (recording, streams) in self.bounds.into_iter().enumerate() {
            for (stream, bound) in streams.into_iter().enumerate() {
                let place = read.place_mut(recording, stream);
                place.next = match bound.open {
                    Some(chunk) => {
                        let known = match bound.place.next.chunk == chunk {
                            true => bound.place.next.number,
                            false => 0,
                        };
                        RowPlace {
                            chunk,
                            number: bound.met.into_inner().max(known),
                        }
                    }
                    None => RowPlace {
                        chunk: bound.end.max(bound.place.next.chunk),
                        number: 0,
                    },
                };
                if bound.end <= bound.place.next.chunk {
                    place.next = bound.place.next;
                }
            }
        }
    }

    fn bound(&self, recording: usize, stream: usize) -> Option<&Bound> {
        self.bounds.get(recording)?.get(stream)
    }
}

/// What is wanted of a stream: whole chunks as long as they end in time, and a part of the next one.
fn bound(recording: &AnyRecording, stream: usize, place: ReadPlace, before: Timestamp) -> Bound {
    let count = recording.chunk_count(stream);
    let mut end = place.next.chunk.max(recording.first_chunk(stream));
    let mut open = None;
    while end < count {
        let chunk = recording.chunk(stream, end);
        let is_whole = before == Timestamp::MAX
            || match chunk.and_then(|chunk| chunk.end_time) {
                Some(end) => end <= before,
                // Without a time, the last one may still grow.
                None => end + 1 < count,
            };
        if !is_whole {
            let begin = chunk.and_then(|chunk| chunk.begin_time);
            if begin.is_none_or(|begin| begin < before) {
                open = Some(end);
                end += 1;
            }
            break;
        }
        end += 1;
    }
    Bound {
        place,
        end,
        open,
        met: AtomicU64::new(0),
    }
}

impl Select for Until<'_> {
    fn inner(&self) -> &dyn Select {
        self.select
    }

    fn predicate(&self) -> Predicate<'_> {
        self.select
            .predicate()
            .within(Layer::Unread(Unread::new(&self.bounds, self.before)))
    }

    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        let inner = self.select.first_chunk(recording, stream);
        self.first_row(recording, stream).chunk.max(inner)
    }

    fn first_row(&self, recording: usize, stream: usize) -> RowPlace {
        let inner = self.select.first_row(recording, stream);
        let next = self.bound(recording, stream).map(|bound| bound.place.next);
        next.unwrap_or_default().max(inner)
    }

    fn end_chunk(&self, recording: usize, stream: usize) -> usize {
        let end = self.bound(recording, stream).map_or(0, |bound| bound.end);
        self.select.end_chunk(recording, stream).min(end)
    }

    fn begins_within(&self, recording: usize, stream: usize, chunk: usize) -> bool {
        let next = self.bound(recording, stream).map(|bound| bound.place.next);
        next.is_some_and(|next| next.chunk == chunk && next.number > 0)
            || self.select.begins_within(recording, stream, chunk)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::ops::ControlFlow;
    use std::path::PathBuf;

    use kymo_model::FaultReport;

    use super::*;
    use crate::filter::first_event_time;
    use crate::open::{self, Options as OpenOptions};
    use crate::pipeline::{self, Everything, Output};
    use crate::show::WallOptions;
    use crate::show::pretty::{Options as PrettyOptions, Pretty};

    struct Printed(Vec<u8>);

    impl Output for Printed {
        fn text(&mut self, text: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(text);
            Ok(())
        }

        fn warning(&mut self, _lines: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
            panic!("{fault}");
        }
    }

    /// The text of a trace, in runs that end at these times, and a last one; those before `since` were seen.
    fn printed(ends: &[Timestamp], since: Option<Timestamp>) -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
        let opened = open::open(&[PathBuf::from(path)], &OpenOptions::default());
        let recordings = opened.recordings;
        let mut sink = Pretty::new(PrettyOptions {
            wall: WallOptions {
                gmt: true,
                ..WallOptions::default()
            },
            delta: false,
            ..PrettyOptions::default()
        });
        let mut output = Printed(Vec::new());
        let mut read = ReadPlaces::default();
        for stream in 0..recordings[0].streams().len() {
            read.restart(0, stream, since);
        }
        for &before in ends.iter().chain([&Timestamp::MAX]) {
            let until = Until::new(&recordings, &Everything, &read, before, |_| true);
            let options = pipeline::Options::default();
            if !until.is_empty() {
                pipeline::run(&recordings, &until, &options, &mut sink, &mut output).unwrap();
            }
            until.finish(&mut read);
        }
        let until = Until::new(&recordings, &Everything, &read, Timestamp::MAX, |_| true);
        assert!(until.is_empty());
        output.0
    }

    #[test]
    fn runs_in_parts_show_each_event_once_and_in_order() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
        let opened = open::open(&[PathBuf::from(path)], &OpenOptions::default());
        let first = first_event_time(&opened.recordings[0]).unwrap();
        let at = |nanos: i64| Timestamp::from_nanos(first.as_nanos() + nanos);
        let whole = printed(&[], None);
        assert!(whole.len() > 10_000);
        for step in [1_000_i64, 77_777, 10_000_000, 333_333_333] {
            let ends: Vec<Timestamp> = (0..60).map(|number| at(number * step)).collect();
            let parts = printed(&ends, None);
            assert!(parts == whole, "step {step}");
        }
        // What another run has shown is left out.
        let middle = at(200_000);
        let rest = printed(&[], Some(middle));
        assert!(rest.len() < whole.len() && whole.ends_with(&rest));
    }
}
