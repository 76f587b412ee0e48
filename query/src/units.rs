//! Recordings cut into pieces of about the same size, to be read at the same time.

use kymo::pipeline::{Places, Window};
use kymo::timeline::Timeline;
use kymo_model::{Recording, RowPlace};
use kymo_time::Timestamp;

/// What is read without others: from which chunk of each stream to which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) from: Places,
    pub(crate) to: Places,
    pub(crate) packets: u64,
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
    ) -> Self {
        let mut pieces = Vec::new();
        let mut all_packets = 0;
        for (recording, of) in timeline.recordings().iter().enumerate() {
            if !is_wanted(recording) {
                continue;
            }
            for stream in 0..of.streams().len() {
                let mut begin = None;
                for chunk in of.chunks(stream) {
                    all_packets += 1;
                    begin = begin.max(chunk.begin_time);
                    if chunk.begin_time.is_none_or(|begin| begin <= window.end)
                        && chunk.end_time.is_none_or(|end| window.begin <= end)
                    {
                        pieces.push(Piece {
                            begin,
                            bytes: chunk.bytes,
                            recording,
                            stream,
                            number: chunk.number,
                        });
                    }
                }
            }
        }
        let packets = pieces.len() as u64;
        // Stable, so that chunks of a stream stay in their order.
        pieces.sort_by_key(|of| of.begin);
        let bytes: u64 = pieces.iter().map(|of| of.bytes).sum();
        let most = (bytes / LEAST_BYTES).clamp(1, most.max(1) as u64);
        let share = bytes.div_ceil(most).max(1);
        let mut units = vec![Unit::default()];
        let mut taken = 0;
        for piece in pieces {
            if taken >= share * units.len() as u64 {
                units.push(Unit::default());
            }
            taken += piece.bytes;
            if let Some(unit) = units.last_mut() {
                unit.add(&piece);
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
    fn add(&mut self, piece: &Piece) {
        let at = |chunk| RowPlace { chunk, number: 0 };
        let first = at(piece.number);
        if self.from.get(piece.recording, piece.stream) > first {
            self.from.set(piece.recording, piece.stream, first);
        }
        self.to
            .set(piece.recording, piece.stream, at(piece.number + 1));
        self.packets += 1;
    }
}
