//! One type for the recordings of all formats.

use std::path::Path;

use kymo_collectd::recording::Recording as Metrics;
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::recording::Recording as Cpel;
use kymo_ctf::trace::Trace;
use kymo_model::{
    Chunk, Cursor, Event, EventClass, Fault, FaultReport, FieldId, Format, Recording, StreamInfo,
    Tally, Visitor, Walk,
};
use kymo_rrd::recording::Recording as Rrd;
use kymo_time::Timestamp;

/// A recording of any format.
#[derive(Debug)]
pub enum AnyRecording {
    /// A trace in the Common Trace Format.
    Ctf(Trace),
    /// A round-robin database.
    Rrd(Rrd),
    /// An event log: a CPEL or a Gist file.
    Cpel(Cpel),
    /// An event log of vppinfra.
    Elog(Elog),
    /// Datagrams of collectd.
    Metrics(Metrics),
}

/// Walks the events of a chunk of any recording.
pub enum AnyCursor<'r> {
    /// Of a trace.
    Ctf(<Trace as Recording>::Cursor<'r>),
    /// Of a database.
    Rrd(<Rrd as Recording>::Cursor<'r>),
    /// Of a CPEL or a Gist file.
    Cpel(<Cpel as Recording>::Cursor<'r>),
    /// Of an elog file.
    Elog(<Elog as Recording>::Cursor<'r>),
    /// Of datagrams of collectd.
    Metrics(<Metrics as Recording>::Cursor<'r>),
}

/// An event of any recording.
pub enum AnyEvent<C, R, L, E, M> {
    /// Of a trace.
    Ctf(C),
    /// Of a database.
    Rrd(R),
    /// Of a CPEL or a Gist file.
    Cpel(L),
    /// Of an elog file.
    Elog(E),
    /// Of datagrams of collectd.
    Metrics(M),
}

/// What the entries of a recording are, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Things that happened.
    Event,
    /// Values of series.
    Sample,
}

impl EntryKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Sample => "sample",
        }
    }
}

/// Does the same with what the variant holds, whichever it is.
macro_rules! each {
    ($any:expr, $one:ident => $do:expr) => {
        match $any {
            Self::Ctf($one) => $do,
            Self::Rrd($one) => $do,
            Self::Cpel($one) => $do,
            Self::Elog($one) => $do,
            Self::Metrics($one) => $do,
        }
    };
}

impl AnyRecording {
    /// The trace, where it is one in the Common Trace Format.
    pub fn as_ctf(&self) -> Option<&Trace> {
        match self {
            Self::Ctf(trace) => Some(trace),
            Self::Rrd(_) | Self::Cpel(_) | Self::Elog(_) | Self::Metrics(_) => None,
        }
    }

    /// What the entries of a stream are.
    pub fn entry_kind(&self, stream: usize) -> EntryKind {
        match self {
            Self::Ctf(_) | Self::Cpel(_) | Self::Elog(_) => EntryKind::Event,
            Self::Metrics(_) if stream != kymo_collectd::recording::VALUES => EntryKind::Event,
            Self::Rrd(_) | Self::Metrics(_) => EntryKind::Sample,
        }
    }

    /// Whether it is an event log: its events happen on tracks, and are shown without scopes.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Cpel(_) | Self::Elog(_))
    }

    /// What is odd about it, and no damage.
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Cpel(log) => log.notes(),
            Self::Metrics(metrics) => metrics.notes(),
            Self::Ctf(_) | Self::Rrd(_) | Self::Elog(_) => &[],
        }
    }
}

impl Recording for AnyRecording {
    type Cursor<'a> = AnyCursor<'a>;

    fn path(&self) -> &Path {
        each!(self, of => of.path())
    }

    fn format(&self) -> Format {
        each!(self, of => of.format())
    }

    fn name(&self) -> Option<&str> {
        each!(self, of => of.name())
    }

    fn uid(&self) -> Option<&str> {
        each!(self, of => of.uid())
    }

    fn streams(&self) -> &[StreamInfo] {
        each!(self, of => of.streams())
    }

    fn event_classes(&self) -> &[EventClass] {
        each!(self, of => of.event_classes())
    }

    fn chunk_count(&self, stream: usize) -> usize {
        each!(self, of => of.chunk_count(stream))
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        each!(self, of => of.chunk(stream, number))
    }

    fn content_bits(&self, chunk: &Chunk) -> u64 {
        each!(self, of => of.content_bits(chunk))
    }

    fn cursor(&self, chunk: &Chunk) -> AnyCursor<'_> {
        match self {
            Self::Ctf(of) => AnyCursor::Ctf(of.cursor(chunk)),
            Self::Rrd(of) => AnyCursor::Rrd(of.cursor(chunk)),
            Self::Cpel(of) => AnyCursor::Cpel(of.cursor(chunk)),
            Self::Elog(of) => AnyCursor::Elog(of.cursor(chunk)),
            Self::Metrics(of) => AnyCursor::Metrics(of.cursor(chunk)),
        }
    }

    fn walk<W: Walk>(&self, chunk: &Chunk, work: W) -> W::Output {
        each!(self, of => of.walk(chunk, work))
    }

    fn tally(&self, chunk: &Chunk) -> Option<Vec<Tally>> {
        each!(self, of => of.tally(chunk))
    }

    fn visit_packet<V: Visitor>(&self, chunk: &Chunk, visitor: &mut V) -> Result<(), Fault> {
        each!(self, of => of.visit_packet(chunk, visitor))
    }

    fn faults(&self) -> &[FaultReport] {
        each!(self, of => of.faults())
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        each!(self, of => of.report(chunk, event, fault))
    }

    fn is_packet_bookkeeping(&self, stream: usize, field: FieldId) -> bool {
        each!(self, of => of.is_packet_bookkeeping(stream, field))
    }
}

impl<'r> Cursor for AnyCursor<'r> {
    type Event<'a>
        = AnyEvent<
        <<Trace as Recording>::Cursor<'r> as Cursor>::Event<'a>,
        <<Rrd as Recording>::Cursor<'r> as Cursor>::Event<'a>,
        <<Cpel as Recording>::Cursor<'r> as Cursor>::Event<'a>,
        <<Elog as Recording>::Cursor<'r> as Cursor>::Event<'a>,
        <<Metrics as Recording>::Cursor<'r> as Cursor>::Event<'a>,
    >
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<Self::Event<'_>>, Fault> {
        Ok(match self {
            Self::Ctf(cursor) => cursor.next_event()?.map(AnyEvent::Ctf),
            Self::Rrd(cursor) => cursor.next_event()?.map(AnyEvent::Rrd),
            Self::Cpel(cursor) => cursor.next_event()?.map(AnyEvent::Cpel),
            Self::Elog(cursor) => cursor.next_event()?.map(AnyEvent::Elog),
            Self::Metrics(cursor) => cursor.next_event()?.map(AnyEvent::Metrics),
        })
    }
}

impl<C: Event, R: Event, L: Event, E: Event, M: Event> Event for AnyEvent<C, R, L, E, M> {
    fn class(&self) -> &EventClass {
        each!(self, event => event.class())
    }

    fn class_index(&self) -> usize {
        each!(self, event => event.class_index())
    }

    fn timestamp(&self) -> Option<Timestamp> {
        each!(self, event => event.timestamp())
    }

    fn ticks(&self) -> Option<u64> {
        each!(self, event => event.ticks())
    }

    fn number(&self) -> u64 {
        each!(self, event => event.number())
    }

    fn begin_bit(&self) -> u64 {
        each!(self, event => event.begin_bit())
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        each!(self, event => event.visit(visitor))
    }
}
