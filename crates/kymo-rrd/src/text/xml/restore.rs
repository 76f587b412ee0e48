//! Reading.

use std::borrow::Cow;

use super::decode::decode;
use super::found::{Found, FoundArchive, FoundKind, FoundSource, Parameters};
use super::plain;
use super::pull::{Item, Pull, shortened};
use crate::fault::Findings;
use crate::model::rows::{FloatOrder, Grid};
use crate::model::validate::validate;
use crate::model::value::UNITS_PER_SECOND;
use crate::model::{ArchiveLink, Reading, Scratch, SourceKind, SourceState};
use crate::rpn::Program;
use crate::{Database, Form, Rows, Source, Text, Time, Value, text::numbers};

pub use super::pull::RestoreError;

/// The newest version that can be read.
const NEWEST: u8 = 5;
/// Bytes of a value.
const VALUE: usize = 8;

/// How a dump is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether values beyond the least and the greatest value of their data source become
    /// unknown.
    pub range_check: bool,
}

/// A database that was read from XML.
#[derive(Clone, Debug)]
pub struct Restored {
    /// All but the values.
    pub database: Database,
    /// The values of all archives, the oldest row of each first.
    values: Vec<u8>,
    /// Where the values of each archive are.
    grids: Vec<Grid>,
}

impl Restored {
    /// The values.
    pub fn rows(&self) -> Rows<'_> {
        let sources = self.database.sources.len();
        Rows::new(
            &self.values,
            FloatOrder::Little,
            sources,
            self.grids.clone(),
        )
        .expect("the values were put there")
    }

    /// The database as one of any form, to be converted. Among its findings is what would be damage
    /// in a file, such as a last update in the year 5138.
    pub fn source(&self) -> Source<'_> {
        let mut findings = Findings::default();
        validate(&self.database, |_| None, &mut findings);
        Source {
            form: Form::Xml,
            database: self.database.clone(),
            rows: self.rows(),
            records: Vec::new(),
            findings,
        }
    }
}

/// Reads a dump, of rrdtool or of [`dump`](super::dump).
///
/// Elements may come in any order. What old versions of rrdtool did not write is taken as
/// rrdtool takes it: as zero. The first row of each archive becomes the oldest.
///
/// # Errors
///
/// Invalid XML, unknown and missing elements, and texts that are not what they should be.
pub fn restore(bytes: &[u8], options: &RestoreOptions) -> Result<Restored, RestoreError> {
    let text = decode(bytes)?;
    let mut restore = Restore {
        pull: Pull::new(&text),
        exact: false,
        values: Vec::new(),
    };
    restore.begin()?;
    let found = restore.database()?;
    restore.pull.end()?;
    let (database, grids) = found.database(&restore.pull)?;
    let mut restored = Restored {
        database,
        values: restore.values,
        grids,
    };
    if options.range_check {
        restored.check_ranges();
    }
    Ok(restored)
}

struct Restore<'x> {
    pull: Pull<'x>,
    /// Whether numbers are to be read correctly rounded.
    exact: bool,
    /// The values read so far, least significant byte first.
    values: Vec<u8>,
}

impl<'x> Restore<'x> {
    fn begin(&mut self) -> Result<(), RestoreError> {
        loop {
            match self.pull.item()? {
                Item::Element("rrd") => return Ok(()),
                Item::Element(other) => {
                    let other = shortened(other);
                    let message = format!("found `<{other}>`, expected `<rrd>`");
                    return Err(self.pull.element_error(message));
                }
                Item::Instruction("exact") => self.exact = true,
                Item::Instruction(_) | Item::End => {}
            }
        }
    }

    fn database(&mut self) -> Result<Found<'x>, RestoreError> {
        let mut found = Found::default();
        let mut exact_version = None;
        loop {
            match self.pull.item()? {
                Item::Element("version") => found.version = Some(self.version()?),
                Item::Element("step") => found.step = Some(self.positive("step")?),
                Item::Element("lastupdate") => found.last_update = Some(self.time()?),
                Item::Element("ds") => {
                    let source = self.source()?;
                    found.sources.push(source);
                }
                Item::Element("rra") => {
                    let archive = self.archive(&found)?;
                    found.archives.push(archive);
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(instruction) => match self.instruction(instruction)? {
                    ("version", version) => {
                        exact_version = Some(self.parsed(version, "a version")?);
                    }
                    ("stray-micros", micros) => {
                        found.stray_micros = Some(self.parsed(micros, "a number")?);
                    }
                    _ => return Err(self.unknown_instruction(instruction)),
                },
                Item::End => break,
            }
        }
        if let Some(version) = exact_version {
            found.version = Some(version);
        }
        Ok(found)
    }

    fn version(&mut self) -> Result<u8, RestoreError> {
        let text = self.pull.text()?;
        match text.parse() {
            Ok(version @ 1..=NEWEST) => Ok(version.max(3)),
            _ => Err(self.wrong("version", &text, "a version from 0001 to 0005")),
        }
    }

    fn time(&mut self) -> Result<Time, RestoreError> {
        let text = self.pull.text()?;
        let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let time = seconds
            .parse()
            .ok()
            .and_then(|seconds| Time::new(seconds, units(fraction)?));
        time.ok_or_else(|| self.wrong("lastupdate", &text, "seconds since 1970"))
    }

    fn source(&mut self) -> Result<FoundSource<'x>, RestoreError> {
        let begin = self.pull.position();
        let mut name = None;
        let mut kind = None;
        let mut cdef = None;
        // What an exact dump states where the elements cannot.
        let (mut exact_name, mut exact_reading, mut program) = (None, None, None);
        let (mut heartbeat, mut min, mut max) = (None, Value::UNKNOWN, Value::UNKNOWN);
        let mut state = SourceState {
            last_reading: Text::from("U"),
            unknown_seconds: 0,
            value: Value::UNKNOWN,
        };
        loop {
            match self.pull.item()? {
                Item::Element("name") => {
                    let text = self.words("name")?;
                    let is_empty = text.is_empty() && !self.exact;
                    if is_empty || text.contains('\0') {
                        return Err(self.wrong("name", &text, "the name of a data source"));
                    }
                    name = Some(Text::from(&*text));
                }
                Item::Element("type") => {
                    let text = self.pull.text()?;
                    let reading = Reading::from_name(text.as_bytes());
                    if reading.is_none() && text != "COMPUTE" {
                        let expected = "GAUGE, COUNTER, DERIVE, ABSOLUTE, DCOUNTER, DDERIVE or \
                                        COMPUTE";
                        return Err(self.wrong("type", &text, expected));
                    }
                    kind = Some(reading);
                }
                Item::Element("minimal_heartbeat") => {
                    heartbeat = Some(self.count("minimal_heartbeat")?);
                }
                Item::Element("min") => min = self.value("min")?,
                Item::Element("max") => max = self.value("max")?,
                Item::Element("cdef") => {
                    let text = self.pull.text()?;
                    cdef = Some((text, self.pull.position()));
                }
                Item::Element("last_ds") => {
                    state.last_reading = Text::from(&*self.words("last_ds")?);
                }
                Item::Element("value") => state.value = self.value("value")?,
                Item::Element("unknown_sec") => {
                    state.unknown_seconds = self.count("unknown_sec")?;
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(instruction) => {
                    let unknown = || self.unknown_instruction(instruction);
                    match self.instruction(instruction)? {
                        ("name", hex) => exact_name = Some(bytes(hex).ok_or_else(unknown)?),
                        ("last-reading", hex) => {
                            exact_reading = Some(bytes(hex).ok_or_else(unknown)?);
                        }
                        ("program", nodes) => {
                            let nodes = Program::parse_nodes(nodes).ok_or_else(unknown)?;
                            program = Some((nodes, self.pull.position()));
                        }
                        _ => return Err(unknown()),
                    }
                }
                Item::End => break,
            }
        }
        if let Some(reading) = exact_reading {
            state.last_reading = reading;
        }
        let missing = |what: &str| self.pull.missing("ds", what, begin);
        let kind = match (kind, program, cdef) {
            (Some(Some(reading)), _, _) => FoundKind::Measured(SourceKind::Measured {
                reading,
                heartbeat: heartbeat.ok_or_else(|| missing("minimal_heartbeat"))?,
                min,
                max,
            }),
            (Some(None), Some((program, begin)), _) => FoundKind::Program(program, begin),
            (Some(None), None, Some((text, begin))) => FoundKind::Compute(text, begin),
            (Some(None), None, None) => return Err(missing("cdef")),
            (None, _, _) => return Err(missing("type")),
        };
        Ok(FoundSource {
            name: exact_name.or(name).ok_or_else(|| missing("name"))?,
            kind,
            state,
        })
    }

    fn archive(&mut self, before: &Found<'x>) -> Result<FoundArchive, RestoreError> {
        let begin = self.pull.position();
        let mut function = None;
        let mut points_per_row = None;
        let mut current_row = None;
        let mut parameters = Parameters::default();
        let mut scratch = Vec::new();
        let mut rows = 0;
        let mut columns = before.sources.len();
        let values = self.values.len();
        loop {
            match self.pull.item()? {
                Item::Element("cf") => function = Some(self.pull.text()?.into_owned()),
                Item::Element("pdp_per_row") => {
                    points_per_row = Some(self.positive("pdp_per_row")?);
                }
                // Before version 3 it was no part of `<params>`.
                Item::Element("xff") => parameters.xff = Some(self.value("xff")?),
                Item::Element("params") => self.parameters(&mut parameters)?,
                Item::Element("cdp_prep") => self.preparations(&mut scratch)?,
                Item::Element("database") => rows += self.rows(&mut columns)?,
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(instruction) => match self.instruction(instruction)? {
                    ("current-row", row) => current_row = Some(self.parsed(row, "a row")?),
                    _ => return Err(self.unknown_instruction(instruction)),
                },
                Item::End => break,
            }
        }
        let missing = |what: &str| self.pull.missing("rra", what, begin);
        if rows == 0 {
            return Err(missing("row"));
        }
        Ok(FoundArchive {
            begin,
            function: function.ok_or_else(|| missing("cf"))?,
            points_per_row: points_per_row.ok_or_else(|| missing("pdp_per_row"))?,
            parameters,
            scratch,
            current_row,
            rows,
            columns,
            values,
        })
    }

    fn parameters(&mut self, parameters: &mut Parameters) -> Result<(), RestoreError> {
        loop {
            match self.pull.item()? {
                Item::Element("xff") => parameters.xff = Some(self.value("xff")?),
                Item::Element("hw_alpha") => parameters.alpha = Some(self.value("hw_alpha")?),
                Item::Element("hw_beta") => parameters.beta = Some(self.value("hw_beta")?),
                Item::Element("seasonal_gamma") => {
                    parameters.gamma = Some(self.value("seasonal_gamma")?);
                }
                Item::Element("seasonal_smooth_idx") => {
                    parameters.smooth_row = Some(self.count("seasonal_smooth_idx")?);
                }
                Item::Element("smoothing_window") => {
                    parameters.smoothing_window = Some(self.value("smoothing_window")?);
                }
                Item::Element("delta_pos") => {
                    parameters.delta_positive = Some(self.value("delta_pos")?);
                }
                Item::Element("delta_neg") => {
                    parameters.delta_negative = Some(self.value("delta_neg")?);
                }
                Item::Element("window_len") => {
                    parameters.window = Some(self.count("window_len")?);
                }
                Item::Element("failure_threshold") => {
                    parameters.threshold = Some(self.count("failure_threshold")?);
                }
                Item::Element("dependent_rra_idx") => {
                    let place = self.count("dependent_rra_idx")?;
                    // What is not set is -1, of 64 or of 32 bits.
                    parameters.link = Some(match u32::try_from(place) {
                        Ok(u32::MAX) => ArchiveLink::NONE,
                        _ => ArchiveLink(place as i64),
                    });
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(instruction) => match self.instruction(instruction)? {
                    ("period", period) => {
                        parameters.period = Some(self.exact_value(period)?);
                    }
                    ("smoothing-window", window) => {
                        parameters.smoothing_window = Some(self.exact_value(window)?);
                    }
                    _ => return Err(self.unknown_instruction(instruction)),
                },
                Item::End => return Ok(()),
            }
        }
    }

    fn preparations(&mut self, all: &mut Vec<Scratch>) -> Result<(), RestoreError> {
        loop {
            match self.pull.item()? {
                Item::Element("ds") => {
                    let scratch = self.preparation()?;
                    all.push(scratch);
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(other) => return Err(self.unknown_instruction(other)),
                Item::End => return Ok(()),
            }
        }
    }

    fn preparation(&mut self) -> Result<Scratch, RestoreError> {
        let mut scratch = Scratch::default();
        loop {
            let (slot, name) = match self.pull.item()? {
                Item::Element("history") => {
                    let text = self.pull.text()?;
                    let history = history(&text).ok_or_else(|| {
                        self.wrong("history", &text, "at most 28 digits, each 0 or 1")
                    })?;
                    scratch.set_history(&history);
                    continue;
                }
                Item::Element(name @ "unknown_datapoints") => (Scratch::UNKNOWN_POINTS, name),
                Item::Element(name @ "nan_count") => (Scratch::NULL_COUNT, name),
                Item::Element(name @ "last_nan_count") => (Scratch::LAST_NULL_COUNT, name),
                Item::Element(name @ "init_flag") => (Scratch::BURN_IN, name),
                Item::Element(name) => {
                    let slot = match name {
                        "value" => Scratch::VALUE,
                        "primary_value" => Scratch::PRIMARY,
                        "secondary_value" => Scratch::SECONDARY,
                        "intercept" => Scratch::INTERCEPT,
                        "last_intercept" => Scratch::LAST_INTERCEPT,
                        "slope" => Scratch::SLOPE,
                        "last_slope" => Scratch::LAST_SLOPE,
                        "seasonal" => Scratch::SEASONAL,
                        "last_seasonal" => Scratch::LAST_SEASONAL,
                        other => return Err(self.unknown(other)),
                    };
                    scratch.set_value(slot, self.value(name)?);
                    continue;
                }
                Item::Instruction(instruction) => {
                    let (name, bits) = self.instruction(instruction)?;
                    let slot = name.strip_prefix("slot-").and_then(|n| n.parse().ok());
                    let slot = slot.and_then(|slot: usize| scratch.0.get_mut(slot));
                    match (slot, u64::from_str_radix(bits, 16)) {
                        (Some(slot), Ok(bits)) => *slot = bits,
                        _ => return Err(self.unknown_instruction(instruction)),
                    }
                    continue;
                }
                Item::End => return Ok(scratch),
            };
            scratch.0[slot] = self.count(name)?;
        }
    }

    /// Reads rows, and returns how many there are. `columns` is the number of values in each;
    /// while it is 0, it is not known.
    fn rows(&mut self, columns: &mut usize) -> Result<u64, RestoreError> {
        let mut rows = 0;
        loop {
            rows += self.plain_rows(columns);
            match self.pull.item()? {
                Item::Element("row") => {
                    let begin = self.pull.position();
                    let count = self.row()?;
                    if *columns == 0 {
                        *columns = count;
                    }
                    if count != *columns || count == 0 {
                        let expected = (*columns).max(1);
                        let message = format!("found {count} `<v>`, expected {expected}");
                        return Err(RestoreError {
                            element: Some("row".to_owned()),
                            ..self.pull.error_at(begin, message)
                        });
                    }
                    rows += 1;
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(other) => return Err(self.unknown_instruction(other)),
                Item::End => return Ok(rows),
            }
        }
    }

    /// Reads the rows that come next, as long as they are in their usual form.
    fn plain_rows(&mut self, columns: &mut usize) -> u64 {
        let rest = self.pull.rest();
        let (mut rows, mut end) = (0, 0);
        loop {
            let before = self.values.len();
            let Some((count, length)) = plain::row(&rest[end..], self.exact, &mut self.values)
            else {
                break;
            };
            if *columns == 0 {
                *columns = count;
            }
            if count != *columns || count == 0 {
                self.values.truncate(before);
                break;
            }
            rows += 1;
            end += length;
        }
        self.pull.skip(end);
        rows
    }

    /// Reads a row, and returns how many values it has.
    fn row(&mut self) -> Result<usize, RestoreError> {
        let mut count = 0;
        loop {
            match self.pull.item()? {
                Item::Element("v") => {
                    let value = self.value("v")?;
                    self.values
                        .extend_from_slice(&value.to_bits().to_le_bytes());
                    count += 1;
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(other) => return Err(self.unknown_instruction(other)),
                Item::End => return Ok(count),
            }
        }
    }

    /// A text that is not a number.
    fn words(&mut self, element: &str) -> Result<Cow<'x, str>, RestoreError> {
        let text = self.pull.text()?;
        if text.contains(|character: char| !is_xml(character)) {
            let found = text.escape_debug().to_string();
            return Err(self.wrong(element, &found, "characters that XML can hold"));
        }
        Ok(text)
    }

    /// A number: in a dump of rrdtool, read as rrdtool does.
    #[inline]
    fn value(&mut self, element: &str) -> Result<Value, RestoreError> {
        let text = self.pull.text()?;
        if self.exact {
            return text
                .parse()
                .map(|number: f64| Value::from(number))
                .map_err(|_| self.wrong(element, &text, "a number"));
        }
        match numbers::whole(text.as_bytes()) {
            Ok(number) => Ok(Value::from(number)),
            Err(error) => self.odd_value(element, &text, error),
        }
    }

    /// As rrdtool does, `nan` and `inf` are found wherever they are.
    #[cold]
    fn odd_value(
        &self,
        element: &str,
        text: &str,
        error: numbers::NumberError,
    ) -> Result<Value, RestoreError> {
        let lower = text.to_ascii_lowercase();
        if lower.contains("nan") {
            Ok(Value::UNKNOWN)
        } else if lower.contains("-inf") {
            Ok(Value::from(f64::NEG_INFINITY))
        } else if lower.contains("inf") {
            Ok(Value::from(f64::INFINITY))
        } else {
            let found = shortened(text);
            let message = match error {
                numbers::NumberError::NoNumber => format!("found `{found}`, expected a number"),
                numbers::NumberError::OutOfRange => {
                    format!("found `{found}`, whose exponent is out of range")
                }
            };
            Err(self.pull.text_error(element, message))
        }
    }

    /// A whole number that is not negative.
    fn count(&mut self, element: &str) -> Result<u64, RestoreError> {
        let text = self.pull.text()?;
        text.parse()
            .map_err(|_| self.wrong(element, &text, "a whole number"))
    }

    /// A whole number above zero.
    fn positive(&mut self, element: &str) -> Result<u64, RestoreError> {
        match self.count(element)? {
            0 => Err(self.wrong(element, "0", "a whole number above 0")),
            count => Ok(count),
        }
    }

    /// The name and the value of an instruction, `NAME="VALUE"`.
    fn instruction(&self, instruction: &'x str) -> Result<(&'x str, &'x str), RestoreError> {
        let parts = instruction.split_once("=\"");
        parts
            .and_then(|(name, value)| Some((name, value.strip_suffix('"')?)))
            .ok_or_else(|| self.unknown_instruction(instruction))
    }

    fn exact_value(&self, text: &str) -> Result<Value, RestoreError> {
        let number: f64 = self.parsed(text, "a number")?;
        Ok(Value::from(number))
    }

    /// The value of an instruction.
    fn parsed<T: std::str::FromStr>(&self, text: &str, expected: &str) -> Result<T, RestoreError> {
        text.parse().map_err(|_| {
            let found = shortened(text);
            self.pull
                .error(format!("found `{found}`, expected {expected}"))
        })
    }

    #[cold]
    fn wrong(&self, element: &str, found: &str, expected: &str) -> RestoreError {
        let found = shortened(found);
        let message = format!("found `{found}`, expected {expected}");
        self.pull.text_error(element, message)
    }

    #[cold]
    fn unknown(&self, element: &str) -> RestoreError {
        let element = shortened(element);
        self.pull
            .element_error(format!("unknown element `<{element}>`"))
    }

    #[cold]
    fn unknown_instruction(&self, instruction: &str) -> RestoreError {
        let instruction = shortened(instruction);
        let message = format!("unknown instruction `<?kymo {instruction}?>`");
        self.pull.error(message)
    }
}

impl Restored {
    /// Makes values unknown that are beyond the bounds of their data source.
    fn check_ranges(&mut self) {
        let bounds: Vec<(f64, f64)> = self
            .database
            .sources
            .iter()
            .map(|source| match source.kind {
                SourceKind::Measured { min, max, .. } => (
                    min.get().unwrap_or(f64::NEG_INFINITY),
                    max.get().unwrap_or(f64::INFINITY),
                ),
                SourceKind::Compute(_) => (f64::NEG_INFINITY, f64::INFINITY),
            })
            .collect();
        for row in self.values.chunks_exact_mut(VALUE * bounds.len().max(1)) {
            let (values, _) = row.as_chunks_mut::<VALUE>();
            for (bytes, (min, max)) in values.iter_mut().zip(&bounds) {
                let value = Value::from_bits(u64::from_le_bytes(*bytes)).get();
                if value.is_some_and(|value| value < *min || value > *max) {
                    *bytes = Value::UNKNOWN.to_bits().to_le_bytes();
                }
            }
        }
    }
}

/// Whether XML 1.0 can hold a character.
pub(super) const fn is_xml(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    }
}

/// The nearest fraction of a second to decimal digits; `None` where they are none.
fn units(digits: &str) -> Option<u32> {
    /// More cannot change the result.
    const MOST: usize = 27;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = &digits[..digits.len().min(MOST)];
    let (mut number, mut scale) = (0u128, 1u128);
    for digit in digits.bytes() {
        number = number * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    let units = (number * u128::from(UNITS_PER_SECOND) + scale / 2) / scale;
    u32::try_from(units)
        .ok()
        .map(|units| units.min(UNITS_PER_SECOND - 1))
}

/// A text from its bytes in hexadecimal; `None` where they are none, or one of them is zero.
fn bytes(hex: &str) -> Option<Text> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let bytes = pairs
        .iter()
        .map(|&[high, low]| u8::try_from(digit(high)? << 4 | digit(low)?).ok());
    let bytes = bytes.collect::<Option<Vec<_>>>()?;
    (rest.is_empty() && !bytes.contains(&0)).then(|| Text::new(&bytes))
}

/// A history of failures from its digits.
fn history(digits: &str) -> Option<[u8; Scratch::HISTORY]> {
    let mut history = [0; Scratch::HISTORY];
    if digits.len() > history.len() {
        return None;
    }
    for (failure, digit) in history.iter_mut().zip(digits.bytes()) {
        *failure = digit.checked_sub(b'0').filter(|failure| *failure <= 9)?;
    }
    Some(history)
}
