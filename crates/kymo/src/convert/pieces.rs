//! Some of the events of one file, with everything else that is in it, where events are pieces of the file that can go:
//! databases, captures of collectd, counters of maps.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use kymo_model::FieldId;
use kymo_text::Line;

use super::cpel::Numbers;
use crate::AnyRecording;
use crate::pipeline::RowRun;
use crate::show::{LossReporter, Sink, WallOptions};

/// Gathers which events of one file stay, a bit for each.
#[derive(Debug)]
pub struct Pieces {
    loss_reporter: LossReporter,
    /// By stream and chunk, a bit for each number.
    kept: HashMap<(usize, usize), Vec<u64>, RandomState>,
}

impl Pieces {
    /// None stays so far.
    pub fn new(wall: WallOptions) -> Self {
        Self {
            loss_reporter: LossReporter::new(wall),
            kept: HashMap::default(),
        }
    }

    /// Whether events of a recording can be left out of its file.
    pub fn is_cut(of: &AnyRecording) -> bool {
        match of {
            AnyRecording::Rrd(of) => of.can_be_cut(),
            AnyRecording::Metrics(_) | AnyRecording::Maps(_) => true,
            _ => false,
        }
    }

    /// Writes the file of a recording, whose bytes these are, with the events that stay. A row of a database that does
    /// not stay is unknown; a datagram stays if one of its lists or messages does.
    ///
    /// # Errors
    ///
    /// Those of the output; that it is [no such file](Self::is_cut).
    pub fn write(&self, of: &AnyRecording, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        match of {
            AnyRecording::Rrd(of) => {
                let stays = |stream, chunk, number| self.contains(stream, chunk, number);
                of.write_cut(stays, out)
            }
            AnyRecording::Metrics(of) => {
                let places = self.places();
                let datagrams = places
                    .filter_map(|(stream, chunk, number)| of.datagram_of(stream, chunk, number));
                let datagrams: HashSet<u64, RandomState> = datagrams.collect();
                of.write_cut(bytes, |number| datagrams.contains(&number), out)
            }
            AnyRecording::Maps(of) => {
                let places = self.places();
                let offsets = places.filter_map(|(_, chunk, number)| of.offset_of(chunk, number));
                let kept: HashSet<usize, RandomState> = offsets.collect();
                // A row that is no counter of this export stays.
                let gone = of.offsets().filter(|offset| !kept.contains(offset));
                let gone: HashSet<usize, RandomState> = gone.collect();
                of.write_cut(bytes, |offset| !gone.contains(&offset), out)
            }
            _ => Err(io::Error::other("it is not a file of pieces")),
        }
    }

    fn contains(&self, stream: usize, chunk: usize, number: u64) -> bool {
        let words = self.kept.get(&(stream, chunk));
        let word = words.and_then(|words| words.get((number / 64) as usize));
        word.is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    /// All that stay, in no order.
    fn places(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        self.kept.iter().flat_map(|(&(stream, chunk), words)| {
            let numbers = (0_u64..).zip(words).flat_map(|(place, &word)| {
                let bits = (0..64).filter(move |bit| word & 1 << bit != 0);
                bits.map(move |bit| place * 64 + bit)
            });
            numbers.map(move |number| (stream, chunk, number))
        })
    }
}

impl Sink for Pieces {
    type Renderer = Numbers;

    const ROWS: bool = true;

    fn renderer(&self) -> Numbers {
        Numbers::default()
    }

    fn looks_at(&self, _: usize, _: &AnyRecording, _: usize, _: FieldId) -> bool {
        false
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        let words = self.kept.entry((run.stream, run.chunk)).or_default();
        let numbers = run.buffers.numbers.iter().skip(run.first);
        for &number in numbers.take(run.entries.len()) {
            let word = (number / 64) as usize;
            if word >= words.len() {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (number % 64);
        }
        true
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}
