//! Recordings cut into pieces of about the same size, to be read at the same time.

use std::collections::HashMap;

use kymo::pipeline::{Places, Window};
use kymo::timeline::Timeline;
use kymo_model::{Recording, RowPlace};
use kymo_time::Timestamp;
use serde::{Deserialize, Serialize};

/// Chunks of a stream, one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    recording: usize,
    stream: usize,
    begin: usize,
    /// The chunk behind the last one.
    end: usize,
}

/// What is read without others: some chunks of each stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) spans: Vec<Span>,
}

/// How chunks are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Those of one time, so that units follow each other.
    Time,
    /// Those of one recording, so that few have to be open for a unit.
    Recording,
}

/// The pieces, and how many packets there are.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub(crate) units: Vec<Unit>,
    pub(crate) packets: u64,
    pub(crate) all_packets: u64,
}

/// A chunk that is read.
struct Piece {
    /// No chunk before it in its stream begins later.
    begin: Option<Timestamp>,
    bytes: u64,
    recording: usize,
    stream: usize,
    number: usize,
}

/// Pieces smaller than this are not worth a thread.
const LEAST_BYTES: u64 = 16 << 10;

impl Units {
    /// At most `most` units of the chunks that may have rows of a time, those of wanted recordings.
    pub(crate) fn new(
        timeline: &Timeline,
        window: Window,
        is_wanted: impl Fn(usize) -> bool,
        most: usize,
        grouping: Grouping,
    ) -> Self {
        let mut pieces = Vec::new();
        let mut all_packets = 0;
        for (number, recording) in timeline.recordings().iter().enumerate() {
            if !is_wanted(number) {
                continue;
            }
            for stream in 0..recording.streams().len() {
                let mut begin = None;
                for chunk in recording.chunks(stream) {
                    all_packets += 1;
                    begin = begin.max(chunk.begin_time);
                    if chunk.begin_time.is_none_or(|begin| begin <= window.end)
                        && chunk.end_time.is_none_or(|end| window.begin <= end)
                    {
                        pieces.push(Piece {
                            begin,
                            bytes: chunk.bytes,
                            recording: number,
                            stream,
                            number: chunk.number,
                        });
                    }
                }
            }
        }
        let packets = pieces.len() as u64;
        // Stable, so that chunks of a stream stay in their order.
        match grouping {
            Grouping::Time => pieces.sort_by_key(|piece| piece.begin),
            Grouping::Recording => pieces.sort_by_key(|piece| (piece.recording, piece.begin)),
        }
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        let most = (bytes / LEAST_BYTES).clamp(1, most.max(1) as u64);
        let share = bytes.div_ceil(most).max(1);
        let mut units = vec![Unit::default()];
        // Where the spans of streams are in the last unit.
        let mut known = HashMap::new();
        let mut taken = 0;
        for piece in pieces {
            if taken >= share * units.len() as u64 {
                units.push(Unit::default());
                known.clear();
            }
            taken += piece.bytes;
            if let Some(unit) = units.last_mut() {
                unit.add(&piece, &mut known);
            }
        }
        Self {
            units,
            packets,
            all_packets,
        }
    }
}

impl Unit {
    fn add(&mut self, piece: &Piece, known: &mut HashMap<(usize, usize), usize>) {
        let end = piece.number + 1;
        let at = *known
            .entry((piece.recording, piece.stream))
            .or_insert(self.spans.len());
        match self.spans.get_mut(at) {
            Some(span) => {
                span.begin = span.begin.min(piece.number);
                span.end = end;
            }
            None => self.spans.push(Span {
                recording: piece.recording,
                stream: piece.stream,
                begin: piece.number,
                end,
            }),
        }
    }

    /// Whether all that it names is among recordings.
    pub(crate) fn is_of(&self, timeline: &Timeline) -> bool {
        let recordings = timeline.recordings();
        self.spans.iter().all(|span| {
            recordings
                .get(span.recording)
                .is_some_and(|recording| span.stream < recording.streams().len())
        })
    }

    /// The rows to begin at, and those to end before.
    pub(crate) fn places(&self) -> (Places, Places) {
        let (mut from, mut to) = (Places::at_end(), Places::at_end());
        let at = |chunk| RowPlace { chunk, number: 0 };
        for span in &self.spans {
            from.set(span.recording, span.stream, at(span.begin));
            to.set(span.recording, span.stream, at(span.end));
        }
        (from, to)
    }
}
