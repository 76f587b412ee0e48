//! Some of the events of files, with everything else that is in it, where events are pieces of the file that can go:
//! databases, captures of collectd, counters of maps, traces of Perfetto and Chrome, Gist files, [event logs](super::cpel::Cut).

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use kymo_model::{Chunk, Event, Fault, FieldId};
use kymo_text::Line;

use crate::AnyRecording;
use crate::pipeline::{RowBuffers, RowRun};
use crate::show::{LossReporter, Renderer, Sink, WallOptions};

/// Gathers which events of files stay, a bit for each.
#[derive(Debug)]
pub struct Pieces {
    loss_reporter: LossReporter,
    /// By recording, stream and chunk.
    kept: HashMap<(usize, usize, usize), Bits, RandomState>,
}

/// A set of numbers, a bit for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn insert(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let word = self.0.get((number / 64) as usize);
        word.is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0_u64..).zip(&self.0).flat_map(|(place, &word)| {
            let bits = (0..64).filter(move |bit| word & 1 << bit != 0);
            bits.map(move |bit| place * 64 + bit)
        })
    }
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
    pub fn is_cut(recording: &AnyRecording) -> bool {
        match recording {
            AnyRecording::Rrd(database) => database.can_be_cut(),
            AnyRecording::Metrics(_) | AnyRecording::Maps(_) | AnyRecording::Perfetto(_) => true,
            // A CPEL file has definitions, too.
            AnyRecording::Cpel(log) => log.header().is_none(),
            _ => false,
        }
    }

    /// Writes the file of the recording at a position, whose bytes these are, with the events that stay. A row of a database that does
    /// not stay is unknown; a datagram stays if one of its lists or messages does, and so do packets and events of
    /// which several are shown.
    ///
    /// # Errors
    ///
    /// Those of the output; that it is [no such file](Self::is_cut).
    pub fn write(
        &self,
        recording: usize,
        source: &AnyRecording,
        bytes: &[u8],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let contains = |stream, chunk, number| {
            let kept = self.kept.get(&(recording, stream, chunk));
            kept.is_some_and(|kept| kept.contains(number))
        };
        match source {
            AnyRecording::Rrd(database) => database.write_cut(contains, out),
            AnyRecording::Metrics(metrics) => {
                let places = self.places(recording);
                let datagrams = places.filter_map(|(stream, chunk, number)| {
                    metrics.datagram_of(stream, chunk, number)
                });
                let datagrams: HashSet<u64, RandomState> = datagrams.collect();
                metrics.write_cut(bytes, |number| datagrams.contains(&number), out)
            }
            AnyRecording::Maps(export) => {
                let places = self.places(recording);
                let offsets =
                    places.filter_map(|(_, chunk, number)| export.offset_of(chunk, number));
                let kept: HashSet<usize, RandomState> = offsets.collect();
                // A row that is no counter of this export stays.
                let gone = export.offsets().filter(|offset| !kept.contains(offset));
                let gone: HashSet<usize, RandomState> = gone.collect();
                export.write_cut(bytes, |offset| !gone.contains(&offset), out)
            }
            AnyRecording::Cpel(log) => {
                let places = self.places(recording);
                let positions = places
                    .filter_map(|(stream, chunk, number)| log.position(stream, chunk, number));
                let mut positions: Vec<usize> = positions.collect();
                positions.sort_unstable();
                log.write_gist(&positions, out)
            }
            AnyRecording::Perfetto(trace) => {
                trace.write_cut(bytes, |chunk, number| contains(0, chunk, number), out)
            }
            _ => Err(io::Error::other("it is not a file of pieces")),
        }
    }

    /// All of a recording that stay, in no order.
    pub(super) fn places(&self, recording: usize) -> impl Iterator<Item = (usize, usize, u64)> {
        let own = self.kept.iter().filter(move |(at, _)| at.0 == recording);
        own.flat_map(|(&(_, stream, chunk), kept)| {
            let numbers = kept.iter();
            numbers.map(move |number| (stream, chunk, number))
        })
    }
}

impl Sink for Pieces {
    type Renderer = Numbers;

    fn renderer(&self) -> Numbers {
        Numbers::default()
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        let kept = self
            .kept
            .entry((run.recording, run.stream, run.chunk))
            .or_default();
        let numbers = run.buffers.numbers.iter().skip(run.first);
        for &number in numbers.take(run.entries.len()) {
            kept.insert(number);
        }
        true
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}

/// Keeps the number of each event in its chunk.
#[derive(Debug, Default)]
pub struct Numbers(Vec<u64>);

impl Renderer for Numbers {
    fn chunk(&mut self, _: usize, _: &AnyRecording, _: &Chunk) -> Result<(), Fault> {
        Ok(())
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, _out: &mut Line) -> Result<(), Fault> {
        self.0.push(event.number());
        Ok(())
    }

    fn looks_at(&self, _: usize, _: &AnyRecording, _: usize, _: FieldId) -> bool {
        false
    }

    fn take_rows(&mut self) -> RowBuffers {
        RowBuffers {
            numbers: std::mem::take(&mut self.0),
            ..RowBuffers::default()
        }
    }
}
