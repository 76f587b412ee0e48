//! Some of the events of one CPEL file, with everything else that is in it.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::sync::Arc;

use kymo_cpel::entries::Entry;
use kymo_cpel::file::File;
use kymo_cpel::recording::Recording as Log;
use kymo_cpel::rewrite::{NewEvents, rewrite_events};
use kymo_machine::ByteOrder;
use kymo_model::{Chunk, Event, Fault, FieldId};
use kymo_text::Line;

use super::ticks;
use crate::AnyRecording;
use crate::convert::losses::{Losses, Times};
use crate::pipeline::{RowBuffers, RowRun};
use crate::show::{LossReporter, Renderer, Sink, WallOptions};

/// Gathers the events of one CPEL file that stay, of which each takes a bit of memory. Everything else
/// in the file stays as it is: definitions, strings, symbols, sections of unknown types, the date.
#[derive(Debug)]
pub struct Cut {
    order: ByteOrder,
    clock: Option<NonZeroU32>,
    losses: Arc<Losses>,
    loss_reporter: LossReporter,
    /// Of each stream.
    kept: Vec<Positions>,
}

/// Positions of events in a section.
#[derive(Clone, Debug, Default)]
struct Positions {
    count: usize,
    words: Vec<u64>,
}

impl Positions {
    fn insert(&mut self, position: usize) {
        let (word, bit) = (position / 64, 1 << (position % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.count += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    fn contains(&self, position: usize) -> bool {
        let word = self.words.get(position / 64);
        word.is_some_and(|word| word & 1 << (position % 64) != 0)
    }
}

/// Whether a recording is a CPEL file, some events of which can be [cut out](Cut). Gist files have
/// nothing but events.
pub fn is_cut(of: &AnyRecording) -> bool {
    matches!(of, AnyRecording::Cpel(log) if log.header().is_some())
}

impl Cut {
    /// A file in a byte order. With `clock`, the ticks in a second, times are written as they are
    /// read; without, clocks and ticks stay those of the file.
    pub fn new(order: ByteOrder, clock: Option<NonZeroU32>, wall: WallOptions) -> Self {
        Self {
            order,
            clock,
            losses: Arc::new(Losses::default()),
            loss_reporter: LossReporter::new(wall),
            kept: Vec::new(),
        }
    }

    /// What the file cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// Writes the file of which events were gathered.
    ///
    /// # Errors
    ///
    /// Those of the output; that it is [no such file](is_cut).
    pub fn write(mut self, of: &AnyRecording, out: &mut impl Write) -> io::Result<()> {
        let AnyRecording::Cpel(log) = of else {
            return Err(io::Error::other("it is not a CPEL file"));
        };
        let file = File::open(log.bytes()).map_err(io::Error::other)?;
        let streams = kymo_model::Recording::streams(log).len();
        self.kept.resize_with(streams, Positions::default);
        let this = &self;
        let mut streams = (0..streams).peekable();
        // Streams come in the order of their sections.
        let events = |section: usize| {
            let stream = streams.next_if(|&stream| log.section(stream) == section)?;
            let kept = &this.kept[stream];
            let clock = this.clock.map(NonZeroU32::get);
            let own = log.event_section(stream)?.clock;
            Some(NewEvents {
                clock: clock.or(own).unwrap_or(0),
                count: kept.count,
                entries: this.entries(log, stream),
            })
        };
        rewrite_events(&file, this.order, events, out)
    }

    /// The events of a stream that stay, as they are written.
    fn entries<'a>(&'a self, log: &'a Log, stream: usize) -> Box<dyn Iterator<Item = Entry> + 'a> {
        let kept = &self.kept[stream];
        let entries = log.entries_of(stream).iter().enumerate();
        let entries = entries.filter(|&(position, _)| kept.contains(position));
        let entries = entries.map(|(_, entry)| entry);
        let Some(clock) = self.clock else {
            return Box::new(entries);
        };
        let mut times = Times::new(Arc::clone(&self.losses));
        Box::new(entries.map(move |entry| {
            let time = log.timestamp(stream, entry.time);
            let nanos = times.next_from_zero(time.map(|time| time.as_nanos()));
            Entry {
                time: ticks(nanos, clock, &self.losses),
                ..entry
            }
        }))
    }
}

impl Sink for Cut {
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
        of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        let Some(AnyRecording::Cpel(log)) = of.get(run.recording) else {
            return true;
        };
        if run.stream >= self.kept.len() {
            self.kept.resize_with(run.stream + 1, Positions::default);
        }
        let kept = &mut self.kept[run.stream];
        let numbers = run.buffers.numbers.iter().skip(run.first);
        for &number in numbers.take(run.entries.len()) {
            if let Some(position) = log.position(run.stream, run.chunk, number) {
                kept.insert(position);
            }
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

    fn take_rows(&mut self) -> RowBuffers {
        RowBuffers {
            numbers: std::mem::take(&mut self.0),
            ..RowBuffers::default()
        }
    }
}
