//! Definitions as `rrdtool create` takes them, such as `DS:load:GAUGE:600:0:U`.
//!
//! They are read as rrdtool 1.7.2 reads them, and errors are reported in its words; see
//! `docs/rrd-engine.md` for the little that is refused here only.

use std::fmt;

use super::create::{Definition, Season, Smoothing};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, Consolidation, DataSource, Reading, Scratch, SourceKind,
};
use crate::rpn::{ComputeError, Program, place_of};
use crate::text::duration::{duration, scaled};
use crate::text::numbers::{self, NumberError};
use crate::{Text, Time, Value};

/// Why a text defines nothing, in rrdtool's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefineError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for DefineError {}

/// What a text has defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defined {
    /// A data source, and where its values come from if there are other files to take them from.
    Source(Option<Origin>),
    /// One archive, or the five of predictions.
    Archives,
}

/// A data source of another file: `=NAME[INDEX]` behind the name of a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name.
    pub name: Text,
    /// The file, counted from 1; any, if not specified.
    pub file: Option<u64>,
}

/// The longest name of a data source.
const LONGEST_NAME: usize = 19;
/// The longest text of a limit: more is not looked at.
const LONGEST_LIMIT: usize = 18;
/// The part of a season that is smoothed over if a season of its own does not specify one.
const WINDOW: f64 = 0.05;

impl Definition {
    /// What a definition begins with: no data sources, no archives.
    pub const fn new(start: Time, step: u64) -> Self {
        Self {
            version: 3,
            start,
            step,
            sources: Vec::new(),
            archives: Vec::new(),
        }
    }

    /// Reads the definitions of data sources (`DS:…`) and archives (`RRA:…`).
    ///
    /// # Errors
    ///
    /// The first that is none.
    pub fn parse(
        start: Time,
        step: u64,
        texts: &[&str],
        smoothing: &Smoothing<'_>,
    ) -> Result<Self, DefineError> {
        let mut definition = Self::new(start, step);
        for text in texts {
            definition.add(text, smoothing)?;
        }
        Ok(definition)
    }

    /// Adds what a text defines.
    ///
    /// # Errors
    ///
    /// What is wrong with it; then nothing is added.
    pub fn add(&mut self, text: &str, smoothing: &Smoothing<'_>) -> Result<Defined, DefineError> {
        let added = if let Some(rest) = text.strip_prefix("DS:") {
            self.source(rest).map(Defined::Source)
        } else if let Some(rest) = text.strip_prefix("RRA:") {
            self.archive(rest, smoothing).map(|()| Defined::Archives)
        } else {
            Err(format!("can't parse argument '{text}'"))
        };
        added.map_err(|problem| DefineError {
            text: text.to_owned(),
            problem,
        })
    }

    fn source(&mut self, text: &str) -> Result<Option<Origin>, String> {
        let format = || "invalid DS format".to_owned();
        let (name, rest) = text.split_once(':').ok_or_else(format)?;
        let (kind, rest) = rest.split_once(':').ok_or_else(format)?;
        let (name, origin) = match name.split_once('=') {
            Some((name, origin)) => (name, Some(origin_of(origin).ok_or_else(format)?)),
            None => (name, None),
        };
        let is_word = |byte: u8| byte.is_ascii_uppercase();
        if !is_name(name) || kind.is_empty() || !kind.bytes().all(is_word) || rest.is_empty() {
            return Err(format());
        }
        if place_of(&self.sources, name).is_some() {
            return Err(format!("Duplicate DS name: {name}"));
        }
        let kind = if kind == "COMPUTE" {
            self.computed(rest)?
        } else {
            let reading = Reading::from_name(kind.as_bytes())
                .ok_or_else(|| format!("invalid DS type specified ({kind})"))?;
            measured(reading, rest)?
        };
        self.sources.push(DataSource {
            name: Text::from(name),
            kind,
        });
        self.version = self.version.max(match &self.sources[..] {
            [.., last] => last.needed_version(),
            [] => 0,
        });
        Ok(origin)
    }

    fn computed(&self, text: &str) -> Result<SourceKind, String> {
        let program = Program::parse(text, |name| place_of(&self.sources, name));
        let program = program.map_err(|_| "failed to parse computed data source".to_owned())?;
        let checked = program.check_compute(self.sources.len());
        checked.map_err(|error| match error {
            ComputeError::TooLong { nodes } => {
                format!("Maximum 19 RPN nodes permitted. Got {nodes} RPN nodes at present.")
            }
            ComputeError::Constant(_) => {
                "constants must be integers in the interval (-32768, 32767)".to_owned()
            }
            ComputeError::Operator(_) => "operators TIME LTIME STEPWIDTH PREV NEW* COUNT TREND \
                TRENDNAN PREDICT PREDICTSIGMA PREDICTPERC are not supported with DS COMPUTE"
                .to_owned(),
            error => format!("failed to parse computed data source: {error}"),
        })?;
        Ok(SourceKind::Compute(program))
    }

    fn archive(&mut self, text: &str, smoothing: &Smoothing<'_>) -> Result<(), String> {
        // As many colons as there are count as one.
        let mut parts = text.split(':').filter(|part| !part.is_empty());
        let first = parts.next();
        let word = first.unwrap_or_default();
        let end = word.bytes().take_while(u8::is_ascii_uppercase).count();
        let mut parts = Parts {
            name: &word[..end],
            found: usize::from(first.is_some()),
            parts,
            needed: 4,
        };
        if first.is_none() {
            return Err(parts.too_few());
        }
        let function = Consolidation::ALL
            .into_iter()
            .find(|function| function.name() == parts.name);
        let archive = match (function, parts.name) {
            (Some(function), _) => self.consolidated(function, &mut parts)?,
            (None, "HWPREDICT" | "MHWPREDICT") => {
                parts.needed = 5;
                return self.predictions(&mut parts, smoothing);
            }
            (None, "SEASONAL" | "DEVSEASONAL") => self.season(&mut parts, smoothing)?,
            (None, "DEVPREDICT") => {
                parts.needed = 3;
                let rows = self.rows(&mut parts, 1)?;
                let deviations = parts.link()?;
                parts.end()?;
                single(ArchiveKind::DevPredict { deviations }, rows)
            }
            (None, "FAILURES") => {
                parts.needed = 5;
                self.failures(&mut parts)?
            }
            (None, name) => {
                return Err(format!("Unrecognized consolidation function {name}"));
            }
        };
        self.archives.push(archive);
        Ok(())
    }

    /// Reads a number of rows of `points` points each.
    fn rows<'a>(
        &self,
        parts: &mut Parts<'a, impl Iterator<Item = &'a str>>,
        points: u64,
    ) -> Result<u64, String> {
        let text = parts.next()?;
        scaled(text.as_bytes(), self.step.saturating_mul(points))
            .map_err(|error| format!("Invalid row count {text}: {error}"))
    }

    fn consolidated<'a>(
        &self,
        function: Consolidation,
        parts: &mut Parts<'a, impl Iterator<Item = &'a str>>,
    ) -> Result<Archive, String> {
        let xff = numbers::whole(parts.next()?.as_bytes()).ok();
        // rrdtool takes an unknown one too.
        let xff = xff.filter(|xff| xff.is_nan() || (0.0..1.0).contains(xff));
        let xff = xff.ok_or("Invalid xff: must be between 0 and 1")?;
        let text = parts.next()?;
        let points_per_row = scaled(text.as_bytes(), self.step)
            .map_err(|error| format!("Invalid step {text}: {error}"))?;
        let rows = self.rows(parts, points_per_row)?;
        parts.end()?;
        Ok(Archive {
            kind: ArchiveKind::Consolidated {
                function,
                xff: Value::from(xff),
            },
            rows,
            points_per_row,
        })
    }

    fn predictions<'a>(
        &mut self,
        parts: &mut Parts<'a, impl Iterator<Item = &'a str>>,
        smoothing: &Smoothing<'_>,
    ) -> Result<(), String> {
        let rows = self.rows(parts, 1)?;
        let alpha = parts.fraction("alpha")?;
        let beta = parts.beta()?;
        // As in C, of a number that is too large the lowest bits count.
        let period = parts.leading()? as u16;
        if period == 0 {
            return Err("Length of seasonal cycle must be at least 1".to_owned());
        }
        if u64::from(period) > rows {
            let problem = "Length of seasonal cycle exceeds length of HW prediction array";
            return Err(problem.to_owned());
        }
        let season = Season {
            rows,
            multiplicative: parts.name == "MHWPREDICT",
            alpha,
            beta,
            period,
        };
        let mut archives = season.archives(self.archives.len(), smoothing).to_vec();
        if let Some(text) = parts.more() {
            // The season is defined on its own.
            archives.truncate(1);
            if let ArchiveKind::HwPredict { seasonal, .. } = &mut archives[0].kind {
                *seasonal = link(text);
            }
        }
        parts.end()?;
        if season.multiplicative {
            self.version = self.version.max(4);
        }
        self.archives.extend(archives);
        Ok(())
    }

    fn season<'a>(
        &mut self,
        parts: &mut Parts<'a, impl Iterator<Item = &'a str>>,
        smoothing: &Smoothing<'_>,
    ) -> Result<Archive, String> {
        let rows = self.rows(parts, 1)?;
        let gamma = parts.fraction("gamma")?;
        let predictions = parts.link()?;
        let mut window = WINDOW;
        if let Some(text) = parts.more() {
            // What follows the number does not count, nor does another part.
            let number = text.strip_prefix("smoothing-window=");
            let number = number.and_then(|number| numbers::prefix(number.as_bytes()).ok());
            (window, _) = number.ok_or_else(|| format!("Invalid option {text}"))?;
            if !(0.0..=1.0).contains(&window) && !window.is_nan() {
                let problem = "must be between 0 and 1";
                return Err(format!("Invalid smoothing-window {window:.6}: {problem}"));
            }
            self.version = self.version.max(4);
        }
        let kind = ArchiveKind::Seasonal {
            deviation: parts.name == "DEVSEASONAL",
            gamma,
            smoothing_window: Value::from(window),
            smooth_row: smoothing.row(rows),
            predictions,
        };
        Ok(single(kind, rows))
    }

    fn failures<'a>(
        &self,
        parts: &mut Parts<'a, impl Iterator<Item = &'a str>>,
    ) -> Result<Archive, String> {
        let most = Scratch::HISTORY as i64;
        let rows = self.rows(parts, 1)?;
        let threshold = parts.leading()?;
        if !(1..=most).contains(&threshold) {
            return Err("Failure threshold is out of range 1, 28".to_owned());
        }
        let window = parts.leading()?;
        if window < threshold {
            return Err("Window length is shorter than the failure threshold".to_owned());
        }
        if window > most {
            return Err("Window length is out of range 1, 28".to_owned());
        }
        let kind = ArchiveKind::Failures {
            delta_positive: Value::from(2.0),
            delta_negative: Value::from(2.0),
            window: window.unsigned_abs(),
            threshold: threshold.unsigned_abs(),
            deviations: parts.link()?,
        };
        Ok(single(kind, rows))
    }
}

/// An archive of single points.
const fn single(kind: ArchiveKind, rows: u64) -> Archive {
    Archive {
        kind,
        rows,
        points_per_row: 1,
    }
}

/// Whether a text is one that can name a data source.
pub(crate) fn is_name(text: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(usual)
}

/// The data source of another file: `NAME` or `NAME[INDEX]`.
fn origin_of(text: &str) -> Option<Origin> {
    let (name, file) = match text.strip_suffix(']') {
        Some(text) => {
            let (name, index) = text.split_once('[')?;
            let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
            // Neither 0 nor a number that is too large belongs to a file.
            (
                name,
                digits
                    .then(|| index.parse().unwrap_or(u64::MAX))
                    .map(Some)?,
            )
        }
        None => (text, None),
    };
    is_name(name).then(|| Origin {
        name: Text::from(name),
        file,
    })
}

/// Heartbeat and limits.
fn measured(reading: Reading, text: &str) -> Result<SourceKind, String> {
    let error =
        |problem: &dyn fmt::Display| Err(format!("failed to parse data source {text}: {problem}"));
    let Some((heartbeat, limits)) = text.split_once(':') else {
        return error(&"missing separator");
    };
    let heartbeat = match duration(heartbeat.as_bytes()) {
        Ok(heartbeat) => heartbeat,
        Err(problem) => return error(&problem),
    };
    let mut limits = limits.split(':');
    let (min, max) = (limits.next(), limits.next());
    let (Some(min @ [_, ..]), Some(max @ [_, ..])) =
        (min.map(str::as_bytes), max.map(str::as_bytes))
    else {
        return error(&"failed to extract min:max");
    };
    if min.len() > LONGEST_LIMIT {
        return error(&"failed to extract min:max");
    }
    let min = limit("min", min)?;
    let max = limit("max", &max[..max.len().min(LONGEST_LIMIT)])?;
    if let (Some(low), Some(high)) = (min.get(), max.get())
        && low >= high
    {
        return error(&"min must be less than max in DS definition");
    }
    Ok(SourceKind::Measured {
        reading,
        heartbeat,
        min,
        max,
    })
}

/// A number, or `U` for none.
fn limit(which: &str, text: &[u8]) -> Result<Value, String> {
    if text == b"U" {
        return Ok(Value::UNKNOWN);
    }
    let shown = String::from_utf8_lossy(text);
    match numbers::prefix(text) {
        Ok((number, end)) if end == text.len() => Ok(Value::from(number)),
        Ok((number, end)) => {
            let rest = String::from_utf8_lossy(&text[end..]);
            Err(format!(
                "parsing {which} val - Converted '{shown}' to {number:.6}, but cannot convert \
                 '{rest}'"
            ))
        }
        Err(NumberError::NoNumber | NumberError::OutOfRange) => Err(format!(
            "parsing {which} val - Cannot convert '{shown}' to float"
        )),
    }
}

/// A link to the archive with a number counted from 1; to none if the text is not a number.
fn link(text: &str) -> ArchiveLink {
    ArchiveLink(leading(text).saturating_sub(1))
}

/// The whole number at the beginning of a text; 0 if there is none.
fn leading(text: &str) -> i64 {
    let text = text.trim_ascii_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let number = &text[..sign + digits];
    number.parse().unwrap_or(match (digits, &number[..sign]) {
        (0, _) => 0,
        (_, "-") => i64::MIN,
        _ => i64::MAX,
    })
}

/// What follows the name of an archive's kind.
struct Parts<'a, I> {
    name: &'a str,
    parts: I,
    /// Number of arguments found, including the name.
    found: usize,
    /// Minimum number of arguments.
    needed: usize,
}

impl<'a, I: Iterator<Item = &'a str>> Parts<'a, I> {
    fn too_few(&self) -> String {
        let Self { needed, found, .. } = self;
        format!("Expected at least {needed} arguments for RRA but got {found}")
    }

    fn more(&mut self) -> Option<&'a str> {
        let part = self.parts.next();
        self.found += usize::from(part.is_some());
        part
    }

    fn next(&mut self) -> Result<&'a str, String> {
        self.more().ok_or_else(|| self.too_few())
    }

    fn end(&mut self) -> Result<(), String> {
        match self.more() {
            None => Ok(()),
            Some(_) => Err(format!(
                "Unexpected extra argument for consolidation function {}",
                self.name
            )),
        }
    }

    /// A number between 0 and 1, or an unknown one, which rrdtool takes too.
    fn fraction(&mut self, what: &str) -> Result<Value, String> {
        let text = self.next()?.as_bytes();
        numbers::prefix(text)
            .ok()
            .filter(|&(number, end)| {
                number.is_nan() || (number > 0.0 && number < 1.0 && end == text.len())
            })
            .map(|(number, _)| Value::from(number))
            .ok_or_else(|| format!("Invalid {what}: must be between 0 and 1"))
    }

    /// A number from 0 to 1, both included, unlike the other adaptions; or an unknown one.
    fn beta(&mut self) -> Result<Value, String> {
        let number = numbers::whole(self.next()?.as_bytes()).ok();
        number
            .filter(|number| number.is_nan() || (0.0..=1.0).contains(number))
            .map(Value::from)
            .ok_or_else(|| "Invalid beta: must be between 0 and 1".to_owned())
    }

    fn leading(&mut self) -> Result<i64, String> {
        self.next().map(leading)
    }

    fn link(&mut self) -> Result<ArchiveLink, String> {
        self.next().map(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Definition, DefineError> {
        let start = Time::from_seconds(1_000_000_000);
        let texts = ["DS:a:GAUGE:10m:0:U", text];
        Definition::parse(start, 300, &texts, &Smoothing::default())
    }

    #[test]
    fn times_become_numbers_of_what_is_counted() {
        let definition = parse("RRA:MAX:0.5:1h:1w").unwrap();
        let archive = &definition.archives[0];
        assert_eq!((archive.points_per_row, archive.rows), (12, 168));
    }

    #[test]
    fn versions_rise_with_what_is_used() {
        for (text, version, archives) in [
            ("DS:b:COMPUTE:a,2,*", 3, 0),
            ("DS:b:DDERIVE:60:U:U", 5, 0),
            ("RRA:HWPREDICT:100:0.1:0.01:20", 3, 5),
            ("RRA:MHWPREDICT:100:0.1:0.01:20:2", 4, 1),
            ("RRA:SEASONAL:20:0.1:1", 3, 1),
            ("RRA:SEASONAL:20:0.1:1:smoothing-window=0.2", 4, 1),
        ] {
            let definition = parse(text).unwrap();
            assert_eq!(definition.version, version, "{text}");
            assert_eq!(definition.archives.len(), archives, "{text}");
        }
    }

    #[test]
    fn origins() {
        let origin = |text: &str| {
            let mut definition = Definition::new(Time::default(), 1);
            match definition.add(text, &Smoothing::default()).unwrap() {
                Defined::Source(origin) => origin.map(|it| (it.name.to_string(), it.file)),
                Defined::Archives => None,
            }
        };
        assert_eq!(origin("DS:a:GAUGE:1:U:U"), None);
        assert_eq!(origin("DS:a=b:GAUGE:1:U:U"), Some(("b".into(), None)));
        assert_eq!(origin("DS:a=b[2]:GAUGE:1:U:U"), Some(("b".into(), Some(2))));
    }

    #[test]
    fn what_rrdtool_takes() {
        for text in [
            "DS:b:GAUGE:9: 5:U",
            "DS:b:GAUGE:5min:nan:1",
            "DS:b:GAUGE:9:5:7:and more",
            "DS:b:GAUGE:9:U:99999999999999999999999",
            "RRA::AVERAGE::0.5:1:10::",
            "RRA:AVERAGE :nan:1:10",
            "RRA:HWPREDICT:1d:0.1:0.1:1h",
            "RRA:HWPREDICT:1d:0.1:0:1h",
            "RRA:HWPREDICT:1d:0.1:1:1h",
            "RRA:HWPREDICT:1d:0.1:nan:1h",
            "DS:b:GAUGE:9:-infinity:Infinity",
            "RRA:SEASONAL:5:0.1:1:smoothing-window=0.2x:y",
            "RRA:FAILURES:5:7x:9y:1:2",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_defines_nothing_is_reported_in_rrdtools_words() {
        for (text, problem) in [
            ("XX:b", "can't parse argument 'XX:b'"),
            ("DS", "can't parse argument 'DS'"),
            ("DS:b", "invalid DS format"),
            ("DS::GAUGE:1:U:U", "invalid DS format"),
            ("DS:b b:GAUGE:1:U:U", "invalid DS format"),
            ("DS:b=c[x]:GAUGE:1:U:U", "invalid DS format"),
            ("DS:b:gauge:1:U:U", "invalid DS format"),
            ("DS:b:GAUGE:", "invalid DS format"),
            ("DS:b2345678901234567890:GAUGE:1:U:U", "invalid DS format"),
            ("DS:b:WHAT:1:U:U", "invalid DS type specified (WHAT)"),
            ("DS:a:GAUGE:1:U:U", "Duplicate DS name: a"),
            (
                "DS:b:GAUGE:1",
                "failed to parse data source 1: missing separator",
            ),
            (
                "DS:b:GAUGE:0:U:U",
                "failed to parse data source 0:U:U: value must be positive",
            ),
            (
                "DS:b:GAUGE:1:U:",
                "failed to parse data source 1:U:: failed to extract min:max",
            ),
            (
                "DS:b:GAUGE:1:2:2",
                "failed to parse data source 1:2:2: min must be less than max in DS definition",
            ),
            (
                "DS:b:GAUGE:1:1x:U",
                "parsing min val - Converted '1x' to 1.000000, but cannot convert 'x'",
            ),
            (
                "DS:b:GAUGE:1:U:1e2000",
                "parsing max val - Cannot convert '1e2000' to float",
            ),
            ("DS:b:COMPUTE:c,1,+", "failed to parse computed data source"),
            (
                "DS:b:COMPUTE:a,2.5,+",
                "constants must be integers in the interval (-32768, 32767)",
            ),
            ("RRA:", "Expected at least 4 arguments for RRA but got 0"),
            (
                "RRA:LAST:0.5::10",
                "Expected at least 4 arguments for RRA but got 3",
            ),
            ("RRA:MEAN:1", "Unrecognized consolidation function MEAN"),
            ("RRA:last:1", "Unrecognized consolidation function "),
            ("RRA:LAST:1:1:1", "Invalid xff: must be between 0 and 1"),
            ("RRA:LAST:0.5:0:1", "Invalid step 0: value must be positive"),
            (
                "RRA:LAST:0.5:1:7m",
                "Invalid row count 7m: value would truncate when scaled",
            ),
            (
                "RRA:LAST:0.5:1:7:8",
                "Unexpected extra argument for consolidation function LAST",
            ),
            (
                "RRA:HWPREDICT:10:1:0.1:5",
                "Invalid alpha: must be between 0 and 1",
            ),
            (
                "RRA:HWPREDICT:10:0.1:1.01:5",
                "Invalid beta: must be between 0 and 1",
            ),
            (
                "RRA:HWPREDICT:10:0.1:-0.01:5",
                "Invalid beta: must be between 0 and 1",
            ),
            (
                "RRA:HWPREDICT:10:0.1:0.1:11",
                "Length of seasonal cycle exceeds length of HW prediction array",
            ),
            (
                "RRA:FAILURES:10:9:8:1",
                "Window length is shorter than the failure threshold",
            ),
            ("RRA:SEASONAL:20:0.1:1:window", "Invalid option window"),
            (
                "RRA:SEASONAL:20:0.1:1:smoothing-window=2",
                "Invalid smoothing-window 2.000000: must be between 0 and 1",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), problem, "{text}");
        }
    }
}
