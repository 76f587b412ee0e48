//! The table of formats: one type for the recordings of all of them.
//!
//! A format that is new is a line in [`formats!`](self) and, where each file is a recording, one in
//! the table of files (`open/files.rs`).

use std::path::Path;

use kymo_collectd::recording::Recording as Metrics;
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::recording::Recording as Cpel;
use kymo_ctf::trace::Trace;
use kymo_maps::MapExport;
use kymo_model::batch::Place;
use kymo_model::{
    Chunk, Cursor, Drift, EntryKind, Event, EventClass, Fault, FaultReport, FieldId, Format,
    Narrowed, Recording, RefreshError, Refreshed, Roles, Shift, ShiftError, StreamInfo, Tally,
    Track, TrackRule, Visitor, Walk,
};
use kymo_perfetto::Recording as Perfetto;
use kymo_rrd::recording::Recording as Rrd;
use kymo_time::Timestamp;

use crate::symbols::SymbolizedTrace;

/// Makes the types of the table: of each format its variant, what it is for people, and its type.
macro_rules! formats {
    ($d:tt $($(#[$doc:meta])* $format:ident($recording:ty) = $what:literal,)*) => {
        /// A recording of any format.
        ///
        /// ```
        /// use kymo::AnyRecording;
        /// use kymo_model::{Cursor as _, Recording as _};
        /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vpp-small.cpel");
        ///
        /// let opened = kymo::open::open(&[path.into()], &Default::default());
        /// let recording = &opened.recordings[0];
        /// assert!(matches!(recording, AnyRecording::Cpel(_)));
        /// let mut events = 0;
        /// for stream in 0..recording.streams().len() {
        ///     for chunk in recording.chunks(stream) {
        ///         let mut cursor = recording.cursor(&chunk);
        ///         while cursor.next_event()?.is_some() {
        ///             events += 1;
        ///         }
        ///     }
        /// }
        /// assert!(events > 0);
        /// # Ok::<(), kymo_model::Fault>(())
        /// ```
        #[derive(Debug)]
        pub enum AnyRecording {
            $($(#[$doc])* $format($recording),)*
        }

        /// Walks the events of a chunk of any recording.
        pub enum AnyCursor<'r> {
            $($(#[$doc])* $format(<$recording as Recording>::Cursor<'r>),)*
        }

        /// An event of any recording.
        pub enum AnyEvent<$($format),*> {
            $($(#[$doc])* $format($format),)*
        }

        /// Does the same with the content of the variant, for all variants.
        macro_rules! each {
            ($d any:expr, $d one:ident => $d do:expr) => {
                match $d any {
                    $(Self::$format($d one) => $d do,)*
                }
            };
        }

        /// Does the same with what a cursor of any format holds: what it is of is found out once, and not for
        /// each event.
        macro_rules! each_cursor {
            ($d any:expr, $d one:ident => $d do:expr) => {
                match $d any {
                    $($d crate::any::AnyCursor::$format($d one) => $d do,)*
                }
            };
        }

        impl AnyRecording {
            /// What it is, for people: `a trace`.
            pub fn what(&self) -> &'static str {
                match self {
                    $(Self::$format(_) => $what,)*
                }
            }

            fn cursor_with<'r>(&'r self, chunk: &Chunk, narrowed: &Narrowed) -> AnyCursor<'r> {
                match self {
                    $(Self::$format(recording) => AnyCursor::$format(recording.narrow_cursor(chunk, narrowed)),)*
                }
            }
        }

        impl<'r> Cursor for AnyCursor<'r> {
            type Event<'a>
                = AnyEvent<$(<<$recording as Recording>::Cursor<'r> as Cursor>::Event<'a>),*>
            where
                Self: 'a;

            fn next_event(&mut self) -> Result<Option<Self::Event<'_>>, Fault> {
                Ok(match self {
                    $(Self::$format(cursor) => cursor.next_event()?.map(AnyEvent::$format),)*
                })
            }
        }

        impl<$($format: Event),*> Event for AnyEvent<$($format),*> {
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
    };
}

formats! { $
    /// A trace in the Common Trace Format.
    Ctf(Trace) = "a trace",
    /// A trace in the Common Trace Format whose events have names for their addresses.
    Symbolized(SymbolizedTrace) = "a trace",
    /// A round-robin database.
    Rrd(Rrd) = "a round-robin database",
    /// An event log: a CPEL or a Gist file.
    Cpel(Cpel) = "a CPEL or Gist file",
    /// An event log of vppinfra.
    Elog(Elog) = "an elog file",
    /// Datagrams of collectd.
    Metrics(Metrics) = "a recording of collectd",
    /// A trace of Perfetto or Chrome.
    Perfetto(Perfetto) = "a trace of Perfetto or Chrome",
    /// Counters of LTTng's maps.
    Maps(MapExport) = "an export of LTTng's maps",
}

pub(crate) use each_cursor;

/// What the entries of a class are, in a recording of a format.
pub(crate) fn kind_of_class(format: Format, class: &EventClass) -> EntryKind {
    match format.name {
        "rrd" | "lttng-maps" => EntryKind::Sample,
        "collectd" if class.stream_class == kymo_collectd::recording::VALUES as u64 => {
            EntryKind::Sample
        }
        _ => EntryKind::Event,
    }
}

impl AnyRecording {
    /// The trace, where it is one in the Common Trace Format.
    pub fn as_ctf(&self) -> Option<&Trace> {
        match self {
            Self::Ctf(trace) => Some(trace),
            Self::Symbolized(trace) => Some(trace.trace()),
            _ => None,
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
            Self::Perfetto(trace) => trace.notes(),
            Self::Maps(export) => export.notes(),
            Self::Ctf(trace) => trace.notes(),
            Self::Symbolized(trace) => trace.trace().notes(),
            Self::Rrd(_) | Self::Elog(_) => &[],
        }
    }
}

impl Recording for AnyRecording {
    type Cursor<'a> = AnyCursor<'a>;

    fn path(&self) -> &Path {
        each!(self, recording => recording.path())
    }

    fn format(&self) -> Format {
        each!(self, recording => recording.format())
    }

    fn name(&self) -> Option<&str> {
        each!(self, recording => recording.name())
    }

    fn uid(&self) -> Option<&str> {
        each!(self, recording => recording.uid())
    }

    fn streams(&self) -> &[StreamInfo] {
        each!(self, recording => recording.streams())
    }

    fn event_classes(&self) -> &[EventClass] {
        each!(self, recording => recording.event_classes())
    }

    fn tracks(&self) -> &[Track] {
        each!(self, recording => recording.tracks())
    }

    fn track_name(&self, number: u64) -> Option<String> {
        each!(self, recording => recording.track_name(number))
    }

    fn track_rule(&self, class: usize) -> TrackRule {
        each!(self, recording => recording.track_rule(class))
    }

    fn roles(&self, class: usize) -> Roles {
        each!(self, recording => recording.roles(class))
    }

    fn symbol_field(&self, class: usize, field: FieldId) -> Option<FieldId> {
        each!(self, recording => recording.symbol_field(class, field))
    }

    fn entry_kind(&self, stream: usize) -> EntryKind {
        each!(self, recording => recording.entry_kind(stream))
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        each!(self, recording => recording.shift(shift))
    }

    fn correct_drift(&mut self, drift: Drift) -> Result<Option<u64>, ShiftError> {
        each!(self, recording => recording.correct_drift(drift))
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        each!(self, recording => recording.refresh())
    }

    fn first_chunk(&self, stream: usize) -> usize {
        each!(self, recording => recording.first_chunk(stream))
    }

    fn chunk_count(&self, stream: usize) -> usize {
        each!(self, recording => recording.chunk_count(stream))
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        each!(self, recording => recording.chunk(stream, number))
    }

    fn chunks(&self, stream: usize) -> impl Iterator<Item = Chunk> {
        // One after the other they are found faster than each on its own.
        each!(self, recording => Box::new(recording.chunks(stream)) as Box<dyn Iterator<Item = Chunk> + '_>)
    }

    fn content_bits(&self, chunk: &Chunk) -> u64 {
        each!(self, recording => recording.content_bits(chunk))
    }

    fn cursor(&self, chunk: &Chunk) -> AnyCursor<'_> {
        self.cursor_with(chunk, &Narrowed::default())
    }

    fn narrow(&self, wanted: &dyn Fn(usize, FieldId) -> bool) -> Narrowed {
        each!(self, recording => recording.narrow(wanted))
    }

    fn narrow_cursor(&self, chunk: &Chunk, narrowed: &Narrowed) -> AnyCursor<'_> {
        self.cursor_with(chunk, narrowed)
    }

    fn walk<W: Walk>(&self, chunk: &Chunk, work: W) -> W::Output {
        each!(self, recording => recording.walk(chunk, work))
    }

    fn place(&self, class: usize, field: FieldId) -> Option<Place> {
        each!(self, recording => recording.place(class, field))
    }

    fn tally(&self, chunk: &Chunk) -> Option<Vec<Tally>> {
        each!(self, recording => recording.tally(chunk))
    }

    fn visit_packet<V: Visitor>(&self, chunk: &Chunk, visitor: &mut V) -> Result<(), Fault> {
        each!(self, recording => recording.visit_packet(chunk, visitor))
    }

    fn faults(&self) -> &[FaultReport] {
        each!(self, recording => recording.faults())
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        each!(self, recording => recording.report(chunk, event, fault))
    }

    fn is_packet_bookkeeping(&self, stream: usize, field: FieldId) -> bool {
        each!(self, recording => recording.is_packet_bookkeeping(stream, field))
    }
}
