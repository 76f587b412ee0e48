//! From a [`Database`] to the bytes of a native file: reading backwards.
//!
//! What a machine does not use is zero: the padding of structs, the bytes behind the NUL of
//! a text, unused parameters, what an integer leaves of its slot. Unused slots of
//! preparations are written as they were read.

use std::fmt;
use std::io;
use std::ops::Range;

use kymo_machine::float::{convert_doubles, is_nan};
use kymo_machine::{FloatOrder, Machine, Width, integer};

use super::layout::Layout;
use super::parameters::{Parameter, parameters};
use super::read::{END, NUMBER, PREVIOUS_OF, VARIABLE};
use super::structs::{LAST_READING, NAME, NODE, NODES, SLOT, Structs};
use crate::fault::Error;
use crate::model::{Archive, ArchiveState, DataSource, Slot, SourceKind, SourceState};
use crate::rpn::{Node, Program};
use crate::{Database, Rows, Value};

/// The double by which a file shows how its machine writes doubles.
pub(super) const FLOAT_COOKIE: f64 = 8.642135E130;

/// Why a database cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    /// What it would be written as, such as the name of a machine.
    pub target: String,
    /// What the target cannot hold.
    pub problems: Vec<Error>,
}

impl WriteError {
    /// The number of problems that are listed.
    const TOLD: usize = 5;
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file of `{}` cannot hold this: ", self.target)?;
        for (index, problem) in self.problems.iter().take(Self::TOLD).enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{problem}")?;
        }
        match self.problems.len().checked_sub(Self::TOLD) {
            Some(more @ 1..) => write!(f, "; and {more} more"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for WriteError {}

/// A native file that is yet to be written: all but the values is there, the values are
/// converted as they are written.
#[derive(Clone)]
pub struct Image<'a> {
    machine: &'static Machine,
    header: Vec<u8>,
    /// Of each archive the number of rows and the current row.
    archives: Vec<(u64, u64)>,
    rows: Rows<'a>,
    length: u64,
}

/// Bytes that are converted at once: they stay in the cache.
const AT_ONCE: usize = 1 << 16;

impl<'a> Image<'a> {
    /// The file of a database, as a machine writes it.
    ///
    /// The version stays what it is, but that microseconds need version 3.
    ///
    /// # Errors
    ///
    /// When the machine or the native form cannot hold all of it: nothing is cut off. Fractions
    /// of a microsecond are rounded.
    pub fn new(
        database: &Database,
        rows: &Rows<'a>,
        machine: &'static Machine,
    ) -> Result<Self, WriteError> {
        let error = |problem: Error| WriteError {
            target: machine.name().to_owned(),
            problems: vec![problem],
        };
        database
            .check_shape()
            .map_err(|shape| error(Error::new(shape.what, None, shape.found, shape.expected)))?;
        let row_counts = || database.archives.iter().map(|archive| archive.rows);
        let same_shape = rows.sources() == database.sources.len()
            && rows.archives() == database.archives.len()
            && row_counts()
                .enumerate()
                .all(|(index, count)| rows.grid(index).is_some_and(|grid| grid.rows == count));
        if !same_shape {
            let expected = "the values of the archives of this database";
            return Err(error(Error::new(
                "values",
                None,
                "those of another",
                expected,
            )));
        }

        let version = match database.state.last_update.to_micros() {
            (_, 1..) => database.version.max(3),
            _ => database.version,
        };
        let sources = database.sources.len();
        let archives = database.archives.len();
        let layout = Layout::of_header(Structs::of(machine), version, sources, archives)
            .and_then(|layout| layout.with_rows(row_counts()));
        let Some(layout) = layout else {
            let expected = "a size that a file can have";
            return Err(error(Error::new("values", None, "more rows", expected)));
        };

        let mut writer = Writer {
            bytes: vec![0; layout.header_end()],
            machine,
            structs: *layout.structs(),
            problems: Vec::new(),
        };
        writer.header(database, &layout, version);
        if !writer.problems.is_empty() {
            return Err(WriteError {
                target: machine.name().to_owned(),
                problems: writer.problems,
            });
        }
        let states = database.state.archives.iter();
        Ok(Self {
            machine,
            header: writer.bytes,
            archives: row_counts()
                .zip(states.map(|state| state.current_row))
                .collect(),
            rows: rows.clone(),
            length: layout.end(),
        })
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// All but the values.
    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_to(&self, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(&self.header)?;
        let values = self.length - self.header.len() as u64;
        let mut buffer = vec![0; values.min(AT_ONCE as u64) as usize];
        for (index, &(rows, current_row)) in self.archives.iter().enumerate() {
            // The newest row lies at `current_row`; the oldest ones follow it.
            let after = rows - 1 - current_row;
            self.write_rows(index, after..rows, &mut buffer, out)?;
            self.write_rows(index, 0..after, &mut buffer, out)?;
        }
        Ok(())
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// When there is not enough memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WriteError> {
        let no_room = || WriteError {
            target: self.machine.name().to_owned(),
            problems: vec![Error::new("values", None, "no memory", self.length)],
        };
        let length = usize::try_from(self.length).map_err(|_| no_room())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| no_room())?;
        self.write_to(&mut bytes).map_err(|_| no_room())?;
        Ok(bytes)
    }

    /// Writes some rows of an archive, which count from the oldest.
    fn write_rows(
        &self,
        archive: usize,
        rows: Range<u64>,
        buffer: &mut [u8],
        out: &mut impl io::Write,
    ) -> io::Result<()> {
        if let Some([first, second]) = self.rows.runs(archive) {
            let row_size = self.rows.sources() * SLOT;
            let (begin, end) = (rows.start as usize * row_size, rows.end as usize * row_size);
            let part = |run: &'a [u8], begin: usize, end: usize| -> &'a [u8] {
                run.get(begin.min(run.len())..end.min(run.len()))
                    .unwrap_or_default()
            };
            let first_part = part(first, begin, end);
            let second_part = part(
                second,
                begin.saturating_sub(first.len()),
                end.saturating_sub(first.len()),
            );
            let from = machine_of(self.rows.order());
            for chunk in first_part
                .chunks(buffer.len())
                .chain(second_part.chunks(buffer.len()))
            {
                let target = &mut buffer[..chunk.len()];
                convert_doubles(from, self.machine, chunk, target);
                out.write_all(target)?;
            }
            return Ok(());
        }
        let mut used = 0;
        for row in rows.filter_map(|row| self.rows.row(archive, row)) {
            for value in row.values() {
                if used == buffer.len() {
                    out.write_all(buffer)?;
                    used = 0;
                }
                buffer[used..used + SLOT].copy_from_slice(&stored(self.machine, value));
                used += SLOT;
            }
        }
        out.write_all(&buffer[..used])
    }
}

/// The bytes of an [`Image`].
///
/// # Errors
///
/// Those of [`Image::new`], and when there is not enough memory.
pub fn write(
    database: &Database,
    rows: &Rows<'_>,
    machine: &'static Machine,
) -> Result<Vec<u8>, WriteError> {
    Image::new(database, rows, machine)?.to_bytes()
}

/// Some machine that stores doubles in this order.
fn machine_of(order: FloatOrder) -> &'static Machine {
    let mut machines = Machine::all().iter();
    machines
        .find(|machine| machine.float_order() == order)
        .expect("each order is some machine's")
}

/// A value as a machine stores it.
pub(super) fn stored(machine: &Machine, value: Value) -> [u8; SLOT] {
    let bits = value.to_bits();
    machine.double_to_bytes(if is_nan(bits) {
        machine.file_nan()
    } else {
        bits
    })
}

struct Writer {
    bytes: Vec<u8>,
    machine: &'static Machine,
    structs: Structs,
    problems: Vec<Error>,
}

impl Writer {
    fn header(&mut self, database: &Database, layout: &Layout, version: u8) {
        let head = self.structs.head;
        self.bytes[..3].copy_from_slice(b"RRD");
        self.bytes[4..8].copy_from_slice(&[b'0', b'0', b'0', b'0' + version]);
        self.value(head.float_cookie, Value::from(FLOAT_COOKIE));
        let counts = [database.sources.len(), database.archives.len()];
        self.long(head.source_count, counts[0] as u64, || {
            "data sources".to_owned()
        });
        self.long(head.archive_count, counts[1] as u64, || {
            "archives".to_owned()
        });
        self.long(head.step, database.step, || "step".to_owned());
        for (index, source) in database.sources.iter().enumerate() {
            self.source(source, index, layout.source(index));
        }
        for (index, archive) in database.archives.iter().enumerate() {
            self.archive(archive, index, layout.archive(index));
        }
        self.time(database, layout);
        for (index, state) in database.state.sources.iter().enumerate() {
            self.source_state(state, index, layout.source_state(index));
        }
        for (index, state) in database.state.archives.iter().enumerate() {
            self.archive_state(&database.archives[index], state, index, layout);
        }
    }

    /// An integer as wide as `long`.
    fn long(&mut self, at: usize, value: u64, field: impl FnOnce() -> String) {
        let width = self.structs.long();
        if !integer::fits_uint(value, width) {
            self.problem(field, value, format_args!("at most {}", u32::MAX));
        }
        self.integer(at, width, value);
    }

    fn signed(&mut self, at: usize, width: Width, value: i64, field: impl FnOnce() -> String) {
        if !integer::fits_sint(value, width) {
            let bits = width.bits();
            self.problem(field, value, format_args!("a number of {bits} bits"));
        }
        self.integer(at, width, value as u64);
    }

    fn integer(&mut self, at: usize, width: Width, value: u64) {
        let order = self.machine.byte_order();
        let written = integer::write(&mut self.bytes, at, width, order, value);
        debug_assert!(written.is_some(), "the layout has room for its members");
    }

    fn problem(
        &mut self,
        field: impl FnOnce() -> String,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) {
        self.problems
            .push(Error::new(field(), None, found, expected));
    }

    fn slot(&mut self, at: usize, bytes: [u8; SLOT]) {
        self.bytes[at..at + SLOT].copy_from_slice(&bytes);
    }

    fn value(&mut self, at: usize, value: Value) {
        self.slot(at, stored(self.machine, value));
    }

    fn text(&mut self, at: usize, length: usize, text: &[u8], field: impl FnOnce() -> String) {
        if text.len() < length {
            self.bytes[at..at + text.len()].copy_from_slice(text);
        } else {
            let found = format!("\"{}\"", text.escape_ascii());
            self.problem(field, found, format_args!("at most {} bytes", length - 1));
        }
    }

    fn source(&mut self, source: &DataSource, index: usize, at: usize) {
        let name = source.name.as_bytes();
        self.text(at, NAME, name, || format!("name of data source {index}"));
        let kind = source.kind.name().as_bytes();
        let kind_at = at + self.structs.source.second;
        self.bytes[kind_at..kind_at + kind.len()].copy_from_slice(kind);
        let parameters = at + self.structs.source.parameters;
        match &source.kind {
            SourceKind::Measured {
                heartbeat,
                min,
                max,
                ..
            } => {
                let field = || format!("heartbeat of data source {index}");
                self.long(parameters, *heartbeat, field);
                self.value(parameters + SLOT, *min);
                self.value(parameters + 2 * SLOT, *max);
            }
            SourceKind::Compute(program) => self.program(program, index, parameters),
        }
    }

    fn program(&mut self, program: &Program, index: usize, at: usize) {
        let field = || format!("expression of data source {index}");
        if program.nodes.len() >= NODES {
            let found = format!("{} nodes", program.nodes.len());
            self.problem(field, found, format_args!("at most {}", NODES - 1));
            return;
        }
        for (number, node) in program.nodes.iter().enumerate() {
            let (code, value) = match *node {
                Node::Number(value) => (NUMBER, whole(value)),
                Node::Variable(source) => (VARIABLE, i16::try_from(source).ok()),
                Node::PreviousOf(source) => (PREVIOUS_OF, i16::try_from(source).ok()),
                Node::Operator(operator) => (operator.code(), Some(0)),
            };
            let Some(value) = value else {
                let found = format!("{node:?}");
                let expected = "whole numbers of -32768 to 32767, and data sources up to 32767";
                self.problem(field, found, expected);
                return;
            };
            let at = at + number * NODE;
            self.bytes[at] = code;
            self.integer(at + 2, Width::W16, value as u64);
        }
        self.bytes[at + program.nodes.len() * NODE] = END;
    }

    fn archive(&mut self, archive: &Archive, index: usize, at: usize) {
        let definition = self.structs.archive;
        let name = archive.kind.name().as_bytes();
        self.bytes[at..at + name.len()].copy_from_slice(name);
        let field = || format!("rows of archive {index}");
        self.long(at + definition.second, archive.rows, field);
        let field = || format!("points per row of archive {index}");
        self.long(at + definition.third, archive.points_per_row, field);
        for (slot, parameter) in parameters(&archive.kind).into_iter().enumerate() {
            let at = at + definition.parameters + slot * SLOT;
            let field = || format!("parameter {slot} of archive {index}");
            match parameter {
                Parameter::Unused => {}
                Parameter::Value(value) => self.value(at, value),
                Parameter::Counter(count) => self.long(at, count, field),
                Parameter::Link(link) => self.signed(at, self.structs.long(), link.0, field),
            }
        }
    }

    fn time(&mut self, database: &Database, layout: &Layout) {
        let (seconds, micros) = database.state.last_update.to_micros();
        let width = self.machine.time();
        if !integer::fits_sint(seconds, width) {
            let field = || "last update".to_owned();
            let found = format!("{seconds} s after 1970");
            let expected = format!(
                "at most {}, in January 2038: its time_t has 32 bits",
                i32::MAX
            );
            self.problem(field, found, expected);
        }
        self.integer(layout.live(), width, seconds as u64);
        if let Some(at) = layout.micros() {
            let micros = database.state.stray_micros.unwrap_or(i64::from(micros));
            let field = || "microseconds of the last update".to_owned();
            self.signed(at, self.structs.long(), micros, field);
        }
    }

    fn source_state(&mut self, state: &SourceState, index: usize, at: usize) {
        let reading = state.last_reading.as_bytes();
        let field = || format!("last reading of data source {index}");
        self.text(at, LAST_READING, reading, field);
        let slots = at + self.structs.source_state.slots;
        let field = || format!("unknown seconds of data source {index}");
        self.long(slots, state.unknown_seconds, field);
        self.value(slots + SLOT, state.value);
    }

    fn archive_state(
        &mut self,
        archive: &Archive,
        state: &ArchiveState,
        index: usize,
        layout: &Layout,
    ) {
        for (source, scratch) in state.scratch.iter().enumerate() {
            let at = layout.archive_state(index, source) + self.structs.archive_state.slots;
            for (slot, &bits) in scratch.0.iter().enumerate() {
                let at = at + slot * SLOT;
                match archive.kind.slot(slot) {
                    Slot::Value => self.value(at, scratch.value(slot)),
                    Slot::Counter => self.long(at, bits, || {
                        format!("slot {slot} of archive {index} for data source {source}")
                    }),
                    Slot::History => self.slot(at, bits.to_le_bytes()),
                    Slot::Unused => self.slot(at, self.machine.double_to_bytes(bits)),
                }
            }
        }
        let field = || format!("current row of archive {index}");
        self.long(layout.pointer(index), state.current_row, field);
    }
}

/// The value as a whole number of 16 bits, if it is one.
fn whole(value: Value) -> Option<i16> {
    let number = value.get()?;
    let whole = number as i16;
    (Value::from(f64::from(whole)) == value).then_some(whole)
}
