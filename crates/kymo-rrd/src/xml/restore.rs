//! Reading.

use std::borrow::Cow;

use super::decode::decode;
use super::dump::history_length;
use super::pull::{Item, Pull, shortened};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, Consolidation, DataSource, Reading, Scratch,
    SourceKind, SourceState, State,
};
use crate::rows::{FloatOrder, Grid};
use crate::rpn::Program;
use crate::value::UNITS_PER_SECOND;
use crate::{Database, Rows, Text, Time, Value, numbers};

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
}

/// Reads a dump, of rrdtool or of [`dump`](super::dump).
///
/// Elements may come in any order. What old versions of rrdtool did not write is taken as
/// rrdtool takes it: as zero. The first row of each archive becomes the oldest.
///
/// # Errors
///
/// What is no XML, unknown and missing elements, texts that are not what they should be.
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
    let mut restored = restore.finish(found)?;
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

/// What `<rrd>` holds, as far as it was found.
#[derive(Default)]
struct Found<'x> {
    version: Option<u8>,
    step: Option<u64>,
    last_update: Option<Time>,
    stray_micros: Option<i64>,
    sources: Vec<FoundSource<'x>>,
    archives: Vec<FoundArchive>,
}

/// What a `<ds>` of `<rrd>` holds.
struct FoundSource<'x> {
    name: Cow<'x, str>,
    kind: FoundKind<'x>,
    state: SourceState,
}

enum FoundKind<'x> {
    Measured(SourceKind),
    /// An expression, and where it is: the names in it need not be known yet.
    Compute(Cow<'x, str>, usize),
}

/// What an `<rra>` holds.
struct FoundArchive {
    /// Where it begins.
    begin: usize,
    function: String,
    points_per_row: u64,
    parameters: Parameters,
    scratch: Vec<Scratch>,
    current_row: Option<u64>,
    rows: u64,
    /// Values in each row.
    columns: usize,
    /// Where its values begin.
    values: usize,
}

/// The parameters of an archive of any kind.
#[derive(Default)]
struct Parameters {
    xff: Option<Value>,
    alpha: Option<Value>,
    beta: Option<Value>,
    period: Option<Value>,
    gamma: Option<Value>,
    smooth_row: Option<u64>,
    smoothing_window: Option<Value>,
    delta_positive: Option<Value>,
    delta_negative: Option<Value>,
    window: Option<u64>,
    threshold: Option<u64>,
    link: Option<ArchiveLink>,
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
        let (mut heartbeat, mut min, mut max) = (None, Value::UNKNOWN, Value::UNKNOWN);
        let mut state = SourceState {
            last_reading: Text::from("U"),
            unknown_seconds: 0,
            value: Value::UNKNOWN,
        };
        loop {
            match self.pull.item()? {
                Item::Element("name") => {
                    let text = self.pull.text()?;
                    if text.is_empty() || text.contains('\0') {
                        return Err(self.wrong("name", &text, "the name of a data source"));
                    }
                    name = Some(text);
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
                    state.last_reading = Text::from(&*self.pull.text()?);
                }
                Item::Element("value") => state.value = self.value("value")?,
                Item::Element("unknown_sec") => {
                    state.unknown_seconds = self.count("unknown_sec")?;
                }
                Item::Element(other) => return Err(self.unknown(other)),
                Item::Instruction(other) => return Err(self.unknown_instruction(other)),
                Item::End => break,
            }
        }
        let missing = |what: &str| self.missing("ds", what, begin);
        let kind = match (kind, cdef) {
            (Some(Some(reading)), _) => FoundKind::Measured(SourceKind::Measured {
                reading,
                heartbeat: heartbeat.ok_or_else(|| missing("minimal_heartbeat"))?,
                min,
                max,
            }),
            (Some(None), Some((text, begin))) => FoundKind::Compute(text, begin),
            (Some(None), None) => return Err(missing("cdef")),
            (None, _) => return Err(missing("type")),
        };
        Ok(FoundSource {
            name: name.ok_or_else(|| missing("name"))?,
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
        let missing = |what: &str| self.missing("rra", what, begin);
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

    /// Reads rows, and tells how many there are. `columns` is the number of values in each;
    /// while it is 0, it is not known.
    fn rows(&mut self, columns: &mut usize) -> Result<u64, RestoreError> {
        let mut rows = 0;
        loop {
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

    /// Reads a row, and tells how many values it has.
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
                    format!("found `{found}`, of which the exponent is out of range")
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

    #[cold]
    fn missing(&self, element: &str, what: &str, begin: usize) -> RestoreError {
        RestoreError {
            element: Some(element.to_owned()),
            ..self.pull.error_at(begin, format!("it has no `<{what}>`"))
        }
    }

    /// Makes a database of what was found.
    fn finish(self, found: Found<'x>) -> Result<Restored, RestoreError> {
        let missing = |what: &str| self.missing("rrd", what, self.pull.position());
        let (mut sources, mut source_states) = (Vec::new(), Vec::new());
        for (place, source) in found.sources.iter().enumerate() {
            sources.push(DataSource {
                name: Text::from(&*source.name),
                kind: self.kind(source, &found.sources[..place])?,
            });
            source_states.push(source.state.clone());
        }
        if sources.is_empty() {
            return Err(missing("ds"));
        }
        if found.archives.is_empty() {
            return Err(missing("rra"));
        }
        let (mut archives, mut archive_states, mut grids) = (Vec::new(), Vec::new(), Vec::new());
        for archive in found.archives {
            let error = |message: String| RestoreError {
                element: Some("rra".to_owned()),
                ..self.pull.error_at(archive.begin, message)
            };
            let kind = archive.kind().map_err(error)?;
            let count = sources.len();
            for (what, found) in [
                ("`<v>` in each `<row>`", archive.columns),
                ("`<ds>` in `<cdp_prep>`", archive.scratch.len()),
            ] {
                if found != count {
                    let message = format!("found {found} {what}, expected {count}");
                    return Err(error(message));
                }
            }
            let current_row = archive.current_row.unwrap_or(archive.rows - 1);
            if current_row >= archive.rows {
                let rows = archive.rows;
                let message = format!("found current row {current_row} of {rows} rows");
                return Err(error(message));
            }
            let grid = Grid::dense(archive.values as u64, archive.rows, archive.rows - 1, count);
            grids.push(grid.ok_or_else(|| error("it has too many values".to_owned()))?);
            archive_states.push(ArchiveState {
                current_row,
                scratch: archive.scratch,
            });
            archives.push(Archive {
                kind,
                rows: archive.rows,
                points_per_row: archive.points_per_row,
            });
        }
        let database = Database {
            version: found.version.ok_or_else(|| missing("version"))?,
            step: found.step.ok_or_else(|| missing("step"))?,
            sources,
            archives,
            state: State {
                last_update: found.last_update.ok_or_else(|| missing("lastupdate"))?,
                stray_micros: found.stray_micros,
                sources: source_states,
                archives: archive_states,
            },
        };
        Ok(Restored {
            database,
            values: self.values,
            grids,
        })
    }

    /// The kind of a data source; `before` are those before it.
    fn kind(
        &self,
        source: &FoundSource<'x>,
        before: &[FoundSource<'x>],
    ) -> Result<SourceKind, RestoreError> {
        let (text, begin) = match &source.kind {
            FoundKind::Measured(kind) => return Ok(kind.clone()),
            FoundKind::Compute(text, begin) => (text, *begin),
        };
        let place = |name: &str| {
            let place = before.iter().position(|source| source.name == name)?;
            u32::try_from(place).ok()
        };
        match Program::parse(text, place) {
            Ok(program) => Ok(SourceKind::Compute(program)),
            Err(error) => Err(RestoreError {
                element: Some("cdef".to_owned()),
                ..self.pull.error_at(begin, error.to_string())
            }),
        }
    }
}

impl FoundArchive {
    /// What the values of the archive are, or why that is not known.
    fn kind(&self) -> Result<ArchiveKind, String> {
        let Parameters {
            xff,
            alpha,
            beta,
            period,
            gamma,
            smooth_row,
            smoothing_window,
            delta_positive,
            delta_negative,
            window,
            threshold,
            link,
        } = self.parameters;
        let link = link.unwrap_or(ArchiveLink(0));
        let needed =
            |value: Option<Value>, name: &str| value.ok_or_else(|| format!("it has no `<{name}>`"));
        let function = &*self.function;
        if let Some(function) = Consolidation::ALL
            .into_iter()
            .find(|known| known.name() == function)
        {
            let xff = needed(xff, "xff")?;
            return Ok(ArchiveKind::Consolidated { function, xff });
        }
        Ok(match function {
            "HWPREDICT" | "MHWPREDICT" => ArchiveKind::HwPredict {
                multiplicative: function == "MHWPREDICT",
                alpha: needed(alpha, "hw_alpha")?,
                beta: needed(beta, "hw_beta")?,
                period: period.unwrap_or(Value::ZERO),
                seasonal: link,
            },
            "SEASONAL" | "DEVSEASONAL" => ArchiveKind::Seasonal {
                deviation: function == "DEVSEASONAL",
                gamma: needed(gamma, "seasonal_gamma")?,
                smoothing_window: smoothing_window.unwrap_or(Value::ZERO),
                smooth_row: smooth_row.unwrap_or(0),
                predictions: link,
            },
            "DEVPREDICT" => ArchiveKind::DevPredict { deviations: link },
            "FAILURES" => {
                let kind = ArchiveKind::Failures {
                    delta_positive: needed(delta_positive, "delta_pos")?,
                    delta_negative: needed(delta_negative, "delta_neg")?,
                    window: window.ok_or("it has no `<window_len>`")?,
                    threshold: threshold.ok_or("it has no `<failure_threshold>`")?,
                    deviations: link,
                };
                if Some(history_length(&kind) as u64) != window {
                    return Err(format!("found a window of {window:?}, expected at most 28"));
                }
                kind
            }
            other => {
                return Err(format!(
                    "found consolidation function `{}`, expected AVERAGE, MIN, MAX, LAST, \
                     HWPREDICT, MHWPREDICT, SEASONAL, DEVSEASONAL, DEVPREDICT or FAILURES",
                    shortened(other)
                ));
            }
        })
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
