//! Traces whose events have names for their addresses.

use std::path::Path;
use std::sync::Arc;

use kymo_ctf::trace::Trace;
use kymo_model::{
    Chunk, Cursor, Drift, EntryKind, Event, EventClass, Fault, FaultReport, FieldId, Format,
    Narrowed, Recording, RefreshError, Refreshed, Roles, Shift, ShiftError, StreamInfo, Tally,
    Track, TrackRule, Visitor,
};
use kymo_time::Timestamp;

use super::SymbolProblem;
use super::names::Names;
use super::processes::Processes;
use super::visit::{ClassSymbols, Lookup, Symbolizer};

type TraceCursor<'r> = <Trace as Recording>::Cursor<'r>;

/// A trace whose events have names for their addresses.
#[derive(Debug)]
pub struct SymbolizedTrace {
    trace: Trace,
    names: Arc<Names>,
    processes: Processes,
    /// The trace's classes with the fields that are added.
    classes: Vec<EventClass>,
    symbols: Vec<ClassSymbols>,
    /// What times were moved by since the processes were first looked at.
    shifted: i64,
}

impl SymbolizedTrace {
    /// Looks at what the processes of a trace had mapped.
    pub(super) fn new(trace: Trace, names: &Arc<Names>) -> Self {
        let mut symbolized = Self {
            trace,
            names: Arc::clone(names),
            processes: Processes::default(),
            classes: Vec::new(),
            symbols: Vec::new(),
            shifted: 0,
        };
        symbolized.update();
        symbolized
    }

    /// Looks at what is new.
    fn update(&mut self) {
        let new = &self.trace.event_classes()[self.symbols.len()..];
        let new = new
            .iter()
            .map(|class| ClassSymbols::new(class, &self.names));
        self.symbols.extend(new);
        let classes = self.symbols[self.classes.len()..].iter();
        self.classes
            .extend(classes.map(|class| class.class.clone()));
        if self.has_addresses() {
            self.processes.read(&self.trace, &self.names, self.shifted);
        }
    }

    /// The trace as it was recorded.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Reads what was added to the trace, with new directories of it, and what that says of processes.
    ///
    /// # Errors
    ///
    /// That of the trace.
    pub fn refresh_with(
        &mut self,
        directories: Vec<kymo_ctf::trace::Directory>,
    ) -> Result<Refreshed, RefreshError> {
        let refreshed = self.trace.refresh_with(directories)?;
        self.refreshed(&refreshed);
        Ok(refreshed)
    }

    fn refreshed(&mut self, refreshed: &Refreshed) {
        if refreshed.has_other_classes {
            self.symbols.clear();
            self.classes.clear();
        }
        self.update();
    }

    /// Whether events get names.
    pub(super) fn has_addresses(&self) -> bool {
        self.symbols.iter().any(ClassSymbols::has_any)
    }

    /// What keeps events from having names.
    pub(super) fn problem(&self) -> Option<SymbolProblem> {
        let path = || self.trace.path().to_owned();
        if self.processes.is_full {
            return Some(SymbolProblem::TooManyMappings { path: path() });
        }
        let needs_processes = self.symbols.iter().any(ClassSymbols::needs_process);
        (needs_processes && self.processes.is_empty())
            .then(|| SymbolProblem::NoStateDump { path: path() })
    }

    fn wrap<'r>(&'r self, inner: TraceCursor<'r>) -> SymbolizedCursor<'r> {
        SymbolizedCursor { inner, trace: self }
    }
}

impl Recording for SymbolizedTrace {
    type Cursor<'a> = SymbolizedCursor<'a>;

    fn path(&self) -> &Path {
        self.trace.path()
    }

    fn format(&self) -> Format {
        self.trace.format()
    }

    fn name(&self) -> Option<&str> {
        self.trace.name()
    }

    fn uid(&self) -> Option<&str> {
        self.trace.uid()
    }

    fn streams(&self) -> &[StreamInfo] {
        self.trace.streams()
    }

    fn event_classes(&self) -> &[EventClass] {
        &self.classes
    }

    fn tracks(&self) -> &[Track] {
        self.trace.tracks()
    }

    fn track_rule(&self, class: usize) -> TrackRule {
        self.trace.track_rule(class)
    }

    fn roles(&self, class: usize) -> Roles {
        self.trace.roles(class)
    }

    fn entry_kind(&self, stream: usize) -> EntryKind {
        self.trace.entry_kind(stream)
    }

    fn symbol_field(&self, class: usize, field: FieldId) -> Option<FieldId> {
        self.symbols.get(class)?.symbol(field)
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        self.trace.shift(shift)?;
        let moved = i128::from(self.shifted).saturating_add(shift.nanos);
        self.shifted = moved.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Ok(())
    }

    fn correct_drift(&mut self, drift: Drift) -> Result<Option<u64>, ShiftError> {
        self.trace.correct_drift(drift)
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        let refreshed = self.trace.refresh()?;
        self.refreshed(&refreshed);
        Ok(refreshed)
    }

    fn first_chunk(&self, stream: usize) -> usize {
        self.trace.first_chunk(stream)
    }

    fn chunk_count(&self, stream: usize) -> usize {
        self.trace.chunk_count(stream)
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        self.trace.chunk(stream, number)
    }

    fn chunks(&self, stream: usize) -> impl Iterator<Item = Chunk> {
        self.trace.chunks(stream)
    }

    fn content_bits(&self, chunk: &Chunk) -> u64 {
        self.trace.content_bits(chunk)
    }

    fn cursor(&self, chunk: &Chunk) -> SymbolizedCursor<'_> {
        self.wrap(self.trace.cursor(chunk))
    }

    fn narrow(&self, wanted: &dyn Fn(usize, FieldId) -> bool) -> Narrowed {
        self.trace.narrow(&|class, field| {
            let of_class = |field| wanted(class, field);
            wanted(class, field)
                || self
                    .symbols
                    .get(class)
                    .is_some_and(|symbols| symbols.needs(field, &of_class))
        })
    }

    fn narrow_cursor(&self, chunk: &Chunk, narrowed: &Narrowed) -> SymbolizedCursor<'_> {
        self.wrap(self.trace.narrow_cursor(chunk, narrowed))
    }

    fn tally(&self, chunk: &Chunk) -> Option<Vec<Tally>> {
        self.trace.tally(chunk)
    }

    fn visit_packet<V: Visitor>(&self, chunk: &Chunk, visitor: &mut V) -> Result<(), Fault> {
        self.trace.visit_packet(chunk, visitor)
    }

    fn faults(&self) -> &[FaultReport] {
        self.trace.faults()
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        self.trace.report(chunk, event, fault)
    }

    fn is_packet_bookkeeping(&self, stream: usize, field: FieldId) -> bool {
        self.trace.is_packet_bookkeeping(stream, field)
    }
}

/// Walks the events of a chunk of a [`SymbolizedTrace`].
pub struct SymbolizedCursor<'r> {
    inner: TraceCursor<'r>,
    trace: &'r SymbolizedTrace,
}

/// An event of a [`SymbolizedTrace`].
pub struct SymbolizedEvent<'e, E> {
    inner: E,
    trace: &'e SymbolizedTrace,
}

impl<'r> Cursor for SymbolizedCursor<'r> {
    type Event<'a>
        = SymbolizedEvent<'a, <TraceCursor<'r> as Cursor>::Event<'a>>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<Self::Event<'_>>, Fault> {
        let trace = self.trace;
        let event = self.inner.next_event()?;
        Ok(event.map(|inner| SymbolizedEvent { inner, trace }))
    }
}

impl<E: Event> Event for SymbolizedEvent<'_, E> {
    fn class(&self) -> &EventClass {
        &self.trace.classes[self.inner.class_index()]
    }

    fn class_index(&self) -> usize {
        self.inner.class_index()
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.inner.timestamp()
    }

    fn ticks(&self) -> Option<u64> {
        self.inner.ticks()
    }

    fn number(&self) -> u64 {
        self.inner.number()
    }

    fn begin_bit(&self) -> u64 {
        self.inner.begin_bit()
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let class = &self.trace.symbols[self.inner.class_index()];
        if !class.has_any() {
            return self.inner.visit(visitor);
        }
        let time = self.inner.timestamp();
        let lookup = Lookup {
            names: &self.trace.names,
            processes: &self.trace.processes,
            time: time.map(|time| time.as_nanos().saturating_sub(self.trace.shifted)),
        };
        self.inner
            .visit(&mut Symbolizer::new(visitor, class, lookup))
    }
}
