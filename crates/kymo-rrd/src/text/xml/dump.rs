//! Writing.

use std::io::{self, Write};

use kymo_text::Line;

use super::INSTRUCTION;
use super::restore::is_xml;
use super::stamp::{Stamps, Zone};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, DataSource, Scratch, Slot, SourceKind,
    SourceState,
};
use crate::rpn::Program;
use crate::{Database, Rows, Text, Time, Value};

/// What comes before the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Nothing.
    None,
    /// The declaration of XML, and where the document type definition is.
    #[default]
    Dtd,
    /// The declaration of XML, and where the schema is.
    Xsd,
}

/// The line between the declaration and the root.
const TITLE: &[u8] = b"<!-- Round Robin Database Dump -->\n";

impl Header {
    fn declaration(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Dtd => {
                b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
                  <!DOCTYPE rrd SYSTEM \"https://oss.oetiker.ch/rrdtool/rrdtool.dtd\">\n"
            }
            Self::Xsd => b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n",
        }
    }

    /// The tag that the database begins with.
    fn root(self) -> &'static [u8] {
        match self {
            Self::Xsd => {
                b"<rrd xmlns=\"https://oss.oetiker.ch/rrdtool/rrdtool-dump.xml\" \
                  xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n\
                  \txsi:schemaLocation=\"https://oss.oetiker.ch/rrdtool/rrdtool-dump.xml \
                  https://oss.oetiker.ch/rrdtool/rrdtool-dump.xsd\">\n"
            }
            Self::None | Self::Dtd => b"<rrd>\n",
        }
    }

    /// What a text begins with, to the end of its root's tag.
    pub fn text(self) -> Vec<u8> {
        [self.declaration(), TITLE, self.root()].concat()
    }
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// As rrdtool does where C's `long` has 64 bits: 10 digits after the point.
    #[default]
    Long64,
    /// As rrdtool does where C's `long` has 32 bits: 9 digits after the point.
    Long32,
    /// The fewest digits that distinguish a number from its neighbours, and all that rrdtool leaves out.
    Exact,
}

/// How a dump is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions {
    /// What comes before the data.
    pub header: Header,
    /// How numbers are written.
    pub numbers: Numbers,
}

/// Approximate number of bytes of text that are handed over at once.
const PART: usize = 64 << 10;

/// Writes a database as XML. `zone` is for the local times in comments.
///
/// # Errors
///
/// What hinders writing.
pub fn dump(
    database: &Database,
    rows: &Rows<'_>,
    zone: &dyn Zone,
    options: &DumpOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut dump = Dump {
        database,
        numbers: options.numbers,
        stamps: Stamps::new(zone),
        line: Line::new(),
        out,
    };
    dump.begin(options.header);
    let sources = database.sources.iter().zip(&database.state.sources);
    for (place, (source, state)) in sources.enumerate() {
        dump.source(place, source, state);
        dump.hand_over()?;
    }
    dump.line.push(b"\t<!-- Round Robin Archives -->\n");
    let archives = database.archives.iter().zip(&database.state.archives);
    for (place, (archive, state)) in archives.enumerate() {
        dump.archive(archive, state)?;
        dump.rows(place, rows)?;
    }
    dump.line.push(b"</rrd>\n");
    dump.out.write_all(dump.line.as_bytes())
}

struct Dump<'a> {
    database: &'a Database,
    numbers: Numbers,
    stamps: Stamps<'a>,
    line: Line,
    out: &'a mut dyn Write,
}

impl Dump<'_> {
    /// Hands the text over once there is enough of it.
    #[inline]
    fn hand_over(&mut self) -> io::Result<()> {
        if self.line.len() >= PART {
            self.out.write_all(self.line.as_bytes())?;
            self.line.clear();
        }
        Ok(())
    }

    fn is_exact(&self) -> bool {
        self.numbers == Numbers::Exact
    }

    fn begin(&mut self, header: Header) {
        self.line.push(header.declaration());
        self.line.push(TITLE);
        if self.is_exact() {
            self.line.push(b"<?kymo exact?>\n");
        }
        self.line.push(header.root());
        let Database { version, step, .. } = *self.database;
        self.line.push(b"\t<version>");
        self.line.padded(version.max(3).into(), 4);
        self.line.push(b"</version>\n\t<step>");
        self.line.decimal(step);
        self.line.push(b"</step> <!-- Seconds -->\n\t<lastupdate>");
        let state = &self.database.state;
        let last = state.last_update;
        self.line.signed(last.seconds());
        if self.is_exact() {
            fraction(last, &mut self.line);
        }
        self.line.push(b"</lastupdate> <!-- ");
        self.stamps.write(last.seconds(), &mut self.line);
        self.line.push(b" -->\n");
        if self.is_exact() && version < 3 {
            self.instruction(b"\t", "version", |line| line.decimal(version.into()));
        }
        if self.is_exact()
            && let Some(micros) = state.stray_micros
        {
            self.instruction(b"\t", "stray-micros", |line| line.signed(micros));
        }
        self.line.push(b"\n");
    }

    /// An instruction on a line of its own.
    fn instruction(&mut self, indent: &[u8], name: &str, value: impl FnOnce(&mut Line)) {
        let line = &mut self.line;
        line.push(indent);
        line.push(b"<?");
        line.push(INSTRUCTION.as_bytes());
        line.push_byte(b' ');
        line.push(name.as_bytes());
        line.push(b"=\"");
        value(line);
        line.push(b"\"?>\n");
    }

    fn source(&mut self, place: usize, source: &DataSource, state: &SourceState) {
        self.line.push(b"\t<ds>\n\t\t<name> ");
        text(&source.name, &mut self.line);
        self.line.push(b" </name>\n\t\t<type> ");
        self.line.push(source.kind.name().as_bytes());
        self.line.push(b" </type>\n");
        if self.is_exact() && !is_reported(&source.name) {
            self.instruction(b"\t\t", "name", |line| hexadecimal(&source.name, line));
        }
        match &source.kind {
            SourceKind::Measured {
                heartbeat,
                min,
                max,
                ..
            } => {
                self.count(b"\t\t", "minimal_heartbeat", *heartbeat);
                self.value(b"\t\t", "min", *min);
                self.value(b"\t\t", "max", *max);
            }
            SourceKind::Compute(program) => {
                self.line.push(b"\t\t<cdef> ");
                let mut expression = Line::new();
                program.write(&self.database.sources, &mut expression);
                text(&Text::new(expression.as_bytes()), &mut self.line);
                self.line.push(b" </cdef>\n");
                if self.is_exact() && !is_program_reported(program, place, &self.database.sources) {
                    self.instruction(b"\t\t", "program", |line| program.write_nodes(line));
                }
            }
        }
        self.line.push(b"\n\t\t<!-- PDP Status -->\n\t\t<last_ds>");
        text(&state.last_reading, &mut self.line);
        self.line.push(b"</last_ds>\n");
        if self.is_exact() && !is_reported(&state.last_reading) {
            self.instruction(b"\t\t", "last-reading", |line| {
                hexadecimal(&state.last_reading, line);
            });
        }
        self.value(b"\t\t", "value", state.value);
        self.line.push(b"\t\t<unknown_sec> ");
        self.line.decimal(state.unknown_seconds);
        self.line.push(b" </unknown_sec>\n\t</ds>\n\n");
    }

    fn archive(&mut self, archive: &Archive, state: &ArchiveState) -> io::Result<()> {
        self.line.push(b"\t<rra>\n\t\t<cf>");
        self.line.push(archive.kind.name().as_bytes());
        self.line.push(b"</cf>\n\t\t<pdp_per_row>");
        self.line.decimal(archive.points_per_row);
        self.line.push(b"</pdp_per_row> <!-- ");
        let seconds = archive.points_per_row.wrapping_mul(self.database.step);
        self.line.decimal(seconds);
        self.line.push(b" seconds -->\n");
        if self.is_exact() {
            let row = state.current_row;
            self.instruction(b"\t\t", "current-row", |line| line.decimal(row));
        }
        self.line.push(b"\n\t\t<params>\n");
        self.parameters(&archive.kind);
        self.line.push(b"\t\t</params>\n\t\t<cdp_prep>\n");
        for scratch in &state.scratch {
            self.line.push(b"\t\t\t<ds>\n");
            self.scratch(&archive.kind, scratch);
            self.line.push(b"\t\t\t</ds>\n");
            self.hand_over()?;
        }
        self.line.push(b"\t\t</cdp_prep>\n");
        Ok(())
    }

    fn parameters(&mut self, kind: &ArchiveKind) {
        const INDENT: &[u8] = b"\t\t";
        let exact = self.is_exact();
        match *kind {
            ArchiveKind::Consolidated { xff, .. } => self.value(INDENT, "xff", xff),
            ArchiveKind::HwPredict {
                alpha,
                beta,
                period,
                seasonal,
                ..
            } => {
                self.value(INDENT, "hw_alpha", alpha);
                self.value(INDENT, "hw_beta", beta);
                self.link(seasonal);
                if exact {
                    self.instruction(INDENT, "period", |line| shortest(period, line));
                }
            }
            ArchiveKind::Seasonal {
                gamma,
                smoothing_window,
                smooth_row,
                predictions,
                ..
            } => {
                self.value(INDENT, "seasonal_gamma", gamma);
                self.count(INDENT, "seasonal_smooth_idx", smooth_row);
                if self.database.version >= 4 {
                    self.value(INDENT, "smoothing_window", smoothing_window);
                } else if exact && smoothing_window != Value::ZERO {
                    self.instruction(INDENT, "smoothing-window", |line| {
                        shortest(smoothing_window, line);
                    });
                }
                self.link(predictions);
            }
            ArchiveKind::DevPredict { deviations } => self.link(deviations),
            ArchiveKind::Failures {
                delta_positive,
                delta_negative,
                window,
                threshold,
                deviations,
            } => {
                self.value(INDENT, "delta_pos", delta_positive);
                self.value(INDENT, "delta_neg", delta_negative);
                self.count(INDENT, "window_len", window);
                self.count(INDENT, "failure_threshold", threshold);
                self.link(deviations);
            }
        }
    }

    /// The place of another archive, which rrdtool prints as an `unsigned long`.
    fn link(&mut self, link: ArchiveLink) {
        let place = match self.numbers {
            Numbers::Long32 => (link.0 as u32).into(),
            Numbers::Long64 | Numbers::Exact => link.0 as u64,
        };
        self.count(b"\t\t", "dependent_rra_idx", place);
    }

    fn scratch(&mut self, kind: &ArchiveKind, scratch: &Scratch) {
        const INDENT: &[u8] = b"\t\t\t";
        for &(slot, name) in elements(kind) {
            match kind.slot(slot) {
                Slot::Counter => self.count(INDENT, name, scratch.counter(slot)),
                Slot::History => self.history(kind, scratch),
                Slot::Value | Slot::Unused => self.value(INDENT, name, scratch.value(slot)),
            }
        }
        if self.is_exact() {
            let reported = reported(kind, scratch);
            for (slot, (bits, reported)) in scratch.0.into_iter().zip(reported.0).enumerate() {
                if bits != reported {
                    self.instruction(INDENT, &format!("slot-{slot}"), |line| {
                        line.push(format!("{bits:016x}").as_bytes());
                    });
                }
            }
        }
    }

    /// The history of failures, as far as the window reaches.
    fn history(&mut self, kind: &ArchiveKind, scratch: &Scratch) {
        self.line.push(b"\t\t\t<history>");
        history(kind, scratch, &mut self.line);
        self.line.push(b"</history>\n");
    }

    fn rows(&mut self, place: usize, rows: &Rows<'_>) -> io::Result<()> {
        self.line.push(b"\t\t<database>\n");
        let seconds = self.database.row_seconds(place).unwrap_or(0) as i64;
        let mut time = self.database.row_time(place, 0).unwrap_or(0);
        for row in rows.iter(place) {
            self.line.push(b"\t\t\t<!-- ");
            self.stamps.write(time, &mut self.line);
            self.line.push(b" / ");
            self.line.signed(time);
            self.line.push(b" --> <row>");
            for value in row.values() {
                self.line.push(b"<v>");
                self.number(value);
                self.line.push(b"</v>");
            }
            self.line.push(b"</row>\n");
            self.hand_over()?;
            time = time.saturating_add(seconds);
        }
        self.line.push(b"\t\t</database>\n\t</rra>\n");
        Ok(())
    }

    fn count(&mut self, indent: &[u8], name: &str, count: u64) {
        self.element(indent, name, |dump| dump.line.decimal(count));
    }

    fn value(&mut self, indent: &[u8], name: &str, value: Value) {
        self.element(indent, name, |dump| dump.number(value));
    }

    /// An element on a line of its own.
    fn element(&mut self, indent: &[u8], name: &str, content: impl FnOnce(&mut Self)) {
        self.line.push(indent);
        self.line.push_byte(b'<');
        self.line.push(name.as_bytes());
        self.line.push_byte(b'>');
        content(self);
        self.line.push(b"</");
        self.line.push(name.as_bytes());
        self.line.push(b">\n");
    }

    #[inline]
    fn number(&mut self, value: Value) {
        match self.numbers {
            Numbers::Long64 => self.line.rrdtool(value.to_f64(), 10),
            Numbers::Long32 => self.line.rrdtool(value.to_f64(), 9),
            Numbers::Exact => shortest(value, &mut self.line),
        }
    }
}

/// The elements of a data source's preparation area, in the order of rrdtool, and the slots
/// they are of. A history is one element, named once.
const fn elements(kind: &ArchiveKind) -> &'static [(usize, &'static str)] {
    match kind {
        ArchiveKind::Consolidated { .. } => &[
            (Scratch::PRIMARY, "primary_value"),
            (Scratch::SECONDARY, "secondary_value"),
            (Scratch::VALUE, "value"),
            (Scratch::UNKNOWN_POINTS, "unknown_datapoints"),
        ],
        ArchiveKind::HwPredict { .. } => &[
            (Scratch::PRIMARY, "primary_value"),
            (Scratch::SECONDARY, "secondary_value"),
            (Scratch::INTERCEPT, "intercept"),
            (Scratch::LAST_INTERCEPT, "last_intercept"),
            (Scratch::SLOPE, "slope"),
            (Scratch::LAST_SLOPE, "last_slope"),
            (Scratch::NULL_COUNT, "nan_count"),
            (Scratch::LAST_NULL_COUNT, "last_nan_count"),
        ],
        ArchiveKind::Seasonal { .. } => &[
            (Scratch::PRIMARY, "primary_value"),
            (Scratch::SECONDARY, "secondary_value"),
            (Scratch::SEASONAL, "seasonal"),
            (Scratch::LAST_SEASONAL, "last_seasonal"),
            (Scratch::BURN_IN, "init_flag"),
        ],
        ArchiveKind::DevPredict { .. } => &[
            (Scratch::PRIMARY, "primary_value"),
            (Scratch::SECONDARY, "secondary_value"),
        ],
        ArchiveKind::Failures { .. } => &[
            (Scratch::PRIMARY, "primary_value"),
            (Scratch::SECONDARY, "secondary_value"),
            (0, "history"),
        ],
    }
}

/// How many failures a history has.
fn history_length(kind: &ArchiveKind) -> usize {
    match *kind {
        ArchiveKind::Failures { window, .. } => window.min(Scratch::HISTORY as u64) as usize,
        _ => 0,
    }
}

/// Appends the history of failures, as far as the window reaches: a digit each.
pub(crate) fn history(kind: &ArchiveKind, scratch: &Scratch, out: &mut Line) {
    for failure in &scratch.history()[..history_length(kind)] {
        out.push_byte(b'0' + failure % 10);
    }
}

/// What the elements of a preparation area record of it.
fn reported(kind: &ArchiveKind, scratch: &Scratch) -> Scratch {
    let mut reported = Scratch::default();
    for &(slot, name) in elements(kind) {
        if name == "history" {
            let mut history = [0; Scratch::HISTORY];
            let length = history_length(kind);
            for (reported, failure) in history[..length].iter_mut().zip(scratch.history()) {
                *reported = failure % 10;
            }
            reported.set_history(&history);
        } else {
            reported.0[slot] = scratch.0[slot];
        }
    }
    reported
}

/// A number with the fewest digits that distinguish it from its neighbours.
fn shortest(value: Value, line: &mut Line) {
    match value.get() {
        Some(number) if number.is_finite() => line.shortest(number, 64),
        Some(number) if number > 0.0 => line.push(b"inf"),
        Some(_) => line.push(b"-inf"),
        None => line.push(b"NaN"),
    }
}

/// The part of a second: microseconds where that says it all, else as many digits as distinguish
/// it from its neighbours.
fn fraction(time: Time, line: &mut Line) {
    let (seconds, micros) = time.to_micros();
    if time.fraction() == 0 {
        return;
    }
    line.push_byte(b'.');
    if Time::from_micros(seconds, micros) == Some(time) {
        line.padded(micros.into(), 6);
    } else {
        let units = u64::from(time.fraction()) * 10_000_000_000;
        line.padded(
            (units + u64::from(crate::model::value::UNITS_PER_SECOND) / 2) >> 30,
            10,
        );
    }
}

/// Whether a text comes back from its element as it is: readers take blanks around it away, and
/// there is no element for an empty one.
fn is_reported(text: &Text) -> bool {
    text.to_str().is_some_and(|text| {
        !text.is_empty() && text.trim_ascii() == text && !text.chars().any(char::is_control)
    })
}

/// Whether a program comes back from its text: names may be those of operators, of numbers, or of
/// several data sources.
fn is_program_reported(program: &Program, place: usize, sources: &[DataSource]) -> bool {
    let mut line = Line::new();
    program.write(sources, &mut line);
    let before = &sources[..place];
    let find = |name: &str| {
        let name = name.as_bytes();
        let found = before
            .iter()
            .position(|source| source.name.as_bytes() == name);
        found.and_then(|place| u32::try_from(place).ok())
    };
    let written = std::str::from_utf8(line.as_bytes());
    written.is_ok_and(|text| {
        is_reported(&Text::from(text)) && Program::parse(text, find).as_ref() == Ok(program)
    })
}

/// The bytes of a text.
fn hexadecimal(text: &Text, line: &mut Line) {
    for byte in text.as_bytes() {
        line.push(format!("{byte:02x}").as_bytes());
    }
}

/// A text, with entities where XML needs them.
fn text(text: &Text, line: &mut Line) {
    let text = String::from_utf8_lossy(text.as_bytes());
    for character in text.chars() {
        match character {
            '<' => line.push(b"&lt;"),
            '>' => line.push(b"&gt;"),
            '&' => line.push(b"&amp;"),
            // Not even as references.
            _ if !is_xml(character) => line.push("\u{fffd}".as_bytes()),
            _ => line.push(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
