//! Definitions as `rrdtool create` takes them, such as `DS:load:GAUGE:600:0:U`.

use std::fmt;

use super::create::{Definition, Season, Smoothing};
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, Consolidation, DataSource, Reading, SourceKind,
};
use crate::rpn::{Program, place_of};
use crate::{Text, Time, Value, numbers};

/// Why a text defines nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefineError {
    /// The text.
    pub text: String,
    /// The part that is wrong, such as `heartbeat`.
    pub part: &'static str,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            text,
            part,
            found,
            expected,
        } = self;
        write!(f, "`{text}`: {part}: found `{found}`, expected {expected}")
    }
}

impl std::error::Error for DefineError {}

/// The longest name of a data source.
const LONGEST_NAME: usize = 19;
/// The part of a season over which is smoothed where a season of its own does not tell.
const WINDOW: f64 = 0.05;

impl Definition {
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
        let mut definition = Self {
            version: 3,
            start,
            step,
            sources: Vec::new(),
            archives: Vec::new(),
        };
        for text in texts {
            let mut parts = Parts::new(text);
            match parts.next("kind", "`DS` or `RRA`")? {
                "DS" => definition.source(&mut parts)?,
                "RRA" => definition.archive(&mut parts, smoothing)?,
                other => return Err(parts.error("kind", other, "`DS` or `RRA`")),
            }
            parts.end()?;
        }
        Ok(definition)
    }

    fn source(&mut self, parts: &mut Parts<'_>) -> Result<(), DefineError> {
        let name = parts.next("name", "the name of a data source")?;
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(usual) {
            let expected = "1 to 19 letters, digits, `_` and `-`";
            return Err(parts.error("name", name, expected));
        }
        if place_of(&self.sources, name).is_some() {
            return Err(parts.error("name", name, "one that no data source before has"));
        }
        let kind = parts.next("kind", "the kind of the data source")?;
        let kind = if kind == "COMPUTE" {
            let text = parts.rest("expression")?;
            let error = |error: &dyn fmt::Display| DefineError {
                text: parts.text.to_owned(),
                part: "expression",
                found: text.to_owned(),
                expected: format!("one that can be computed ({error})"),
            };
            let program = Program::parse(text, |name| place_of(&self.sources, name));
            let program = program.map_err(|problem| error(&problem))?;
            let checked = program.check_compute(self.sources.len());
            checked.map_err(|problem| error(&problem))?;
            SourceKind::Compute(program)
        } else {
            let reading = Reading::from_name(kind.as_bytes())
                .ok_or_else(|| parts.error("kind", kind, "`GAUGE`, `COUNTER` or another kind"))?;
            if matches!(reading, Reading::DCounter | Reading::DDerive) {
                self.version = 5;
            }
            let heartbeat = parts.seconds("heartbeat")?;
            let min = parts.limit("minimum")?;
            let max = parts.limit("maximum")?;
            if let (Some(low), Some(high)) = (min.get(), max.get())
                && low >= high
            {
                let expected = "less than the maximum";
                return Err(parts.error("minimum", &min.to_string(), expected));
            }
            SourceKind::Measured {
                reading,
                heartbeat,
                min,
                max,
            }
        };
        self.sources.push(DataSource {
            name: Text::from(name),
            kind,
        });
        Ok(())
    }

    fn archive(
        &mut self,
        parts: &mut Parts<'_>,
        smoothing: &Smoothing<'_>,
    ) -> Result<(), DefineError> {
        let name = parts.next("function", "a consolidation function")?;
        let function = Consolidation::ALL
            .into_iter()
            .find(|function| function.name() == name);
        if let Some(function) = function {
            let xff = parts.number("xff")?;
            if !(0.0..1.0).contains(&xff) {
                return Err(parts.error("xff", &xff.to_string(), "at least 0 and less than 1"));
            }
            let points_per_row = parts.spans("points per row", self.step)?;
            let rows = parts.spans("rows", self.step.saturating_mul(points_per_row))?;
            self.archives.push(Archive {
                kind: ArchiveKind::Consolidated {
                    function,
                    xff: Value::from(xff),
                },
                rows,
                points_per_row,
            });
            return Ok(());
        }
        let rows = parts.spans("rows", self.step)?;
        let kind = match name {
            "HWPREDICT" | "MHWPREDICT" => {
                let multiplicative = name == "MHWPREDICT";
                if multiplicative {
                    self.version = self.version.max(4);
                }
                let (alpha, beta) = (parts.part("alpha")?, parts.part("beta")?);
                let period = parts.whole("period")?;
                let period = u16::try_from(period)
                    .ok()
                    .filter(|&period| period > 0 && u64::from(period) <= rows)
                    .ok_or_else(|| {
                        let expected = "1 to 65535, and no more than rows";
                        parts.error("period", &period.to_string(), expected)
                    })?;
                let season = Season {
                    rows,
                    multiplicative,
                    alpha,
                    beta,
                    period,
                };
                let mut archives = season.archives(self.archives.len(), smoothing).to_vec();
                if parts.more() {
                    // The season is defined on its own.
                    archives.truncate(1);
                    if let ArchiveKind::HwPredict { seasonal, .. } = &mut archives[0].kind {
                        *seasonal = parts.link()?;
                    }
                }
                self.archives.extend(archives);
                return Ok(());
            }
            "SEASONAL" | "DEVSEASONAL" => {
                let gamma = parts.part("gamma")?;
                let predictions = parts.link()?;
                let mut window = WINDOW;
                if parts.more() {
                    let expected = "`smoothing-window=` and a number of 0 to 1";
                    let text = parts.next("smoothing window", expected)?;
                    let number = text.strip_prefix("smoothing-window=").unwrap_or_default();
                    window = numbers::whole(number.as_bytes())
                        .ok()
                        .filter(|window| (0.0..=1.0).contains(window))
                        .ok_or_else(|| parts.error("smoothing window", text, expected))?;
                    self.version = self.version.max(4);
                }
                ArchiveKind::Seasonal {
                    deviation: name == "DEVSEASONAL",
                    gamma,
                    smoothing_window: Value::from(window),
                    smooth_row: smoothing.row(rows),
                    predictions,
                }
            }
            "DEVPREDICT" => ArchiveKind::DevPredict {
                deviations: parts.link()?,
            },
            "FAILURES" => {
                let threshold = parts.whole("threshold")?;
                let window = parts.whole("window")?;
                let most = crate::model::Scratch::HISTORY as u64;
                if !(1..=most).contains(&window) {
                    let found = window.to_string();
                    return Err(parts.error("window", &found, "1 to 28"));
                }
                if !(1..=window).contains(&threshold) {
                    let found = threshold.to_string();
                    return Err(parts.error("threshold", &found, "1 to the window"));
                }
                ArchiveKind::Failures {
                    delta_positive: Value::from(2.0),
                    delta_negative: Value::from(2.0),
                    window,
                    threshold,
                    deviations: parts.link()?,
                }
            }
            other => {
                let expected = "`AVERAGE`, `MIN`, `MAX`, `LAST` or one of Holt and Winters";
                return Err(parts.error("function", other, expected));
            }
        };
        self.archives.push(Archive {
            kind,
            rows,
            points_per_row: 1,
        });
        Ok(())
    }
}

/// The parts of a definition.
struct Parts<'a> {
    text: &'a str,
    rest: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            rest: Some(text),
        }
    }

    fn error(&self, part: &'static str, found: &str, expected: &str) -> DefineError {
        DefineError {
            text: self.text.to_owned(),
            part,
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }

    fn more(&self) -> bool {
        self.rest.is_some()
    }

    fn next(&mut self, part: &'static str, expected: &str) -> Result<&'a str, DefineError> {
        let rest = self.rest(part).map_err(|error| DefineError {
            expected: expected.to_owned(),
            ..error
        })?;
        let (next, rest) = match rest.split_once(':') {
            Some((next, rest)) => (next, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(next)
    }

    /// All that is left.
    fn rest(&mut self, part: &'static str) -> Result<&'a str, DefineError> {
        let rest = self.rest.take();
        rest.ok_or_else(|| self.error(part, "", "more"))
    }

    fn end(&self) -> Result<(), DefineError> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(self.error("end", rest, "nothing more")),
        }
    }

    fn number(&mut self, part: &'static str) -> Result<f64, DefineError> {
        let text = self.next(part, "a number")?;
        numbers::whole(text.as_bytes()).map_err(|_| self.error(part, text, "a number"))
    }

    /// A number of 0 to 1.
    fn part(&mut self, part: &'static str) -> Result<Value, DefineError> {
        let number = self.number(part)?;
        match (0.0..=1.0).contains(&number) {
            true => Ok(Value::from(number)),
            false => Err(self.error(part, &number.to_string(), "0 to 1")),
        }
    }

    /// A number, or `U` for none.
    fn limit(&mut self, part: &'static str) -> Result<Value, DefineError> {
        let expected = "a number or `U`";
        let text = self.next(part, expected)?;
        if text == "U" {
            return Ok(Value::UNKNOWN);
        }
        let number = numbers::whole(text.as_bytes());
        let number = number.map_err(|_| self.error(part, text, expected))?;
        Ok(Value::from(number))
    }

    fn whole(&mut self, part: &'static str) -> Result<u64, DefineError> {
        let expected = "a whole number of at least 1";
        let text = self.next(part, expected)?;
        let number = text.parse().ok().filter(|&number| number > 0);
        number.ok_or_else(|| self.error(part, text, expected))
    }

    /// Seconds, or a time such as `5m`.
    fn seconds(&mut self, part: &'static str) -> Result<u64, DefineError> {
        self.spans(part, 1)
    }

    /// How often something of so many seconds; or a time such as `1d`, a multiple of that.
    fn spans(&mut self, part: &'static str, each: u64) -> Result<u64, DefineError> {
        let expected = "a whole number, or a time such as `5m` that is a multiple of the step";
        let text = self.next(part, expected)?;
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "" => None,
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(3600),
            "d" => Some(86_400),
            "w" => Some(7 * 86_400),
            "M" => Some(31 * 86_400),
            "y" => Some(366 * 86_400),
            _ => return Err(self.error(part, text, expected)),
        };
        let number = digits.parse::<u64>().ok().filter(|&number| number > 0);
        let spans = match (number, unit) {
            (number, None) => number,
            (Some(number), Some(unit)) => number
                .checked_mul(unit)
                .filter(|seconds| seconds.checked_rem(each) == Some(0))
                .map(|seconds| seconds / each),
            (None, _) => None,
        };
        spans.ok_or_else(|| self.error(part, text, expected))
    }

    /// The number of another archive, counted from 1.
    fn link(&mut self) -> Result<ArchiveLink, DefineError> {
        let number = self.whole("archive")?;
        match i64::try_from(number) {
            Ok(number) => Ok(ArchiveLink(number - 1)),
            Err(_) => Err(self.error("archive", &number.to_string(), "the number of an archive")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Definition, DefineError> {
        let start = Time::from_seconds(1_000_000_000);
        Definition::parse(
            start,
            300,
            &["DS:a:GAUGE:10m:0:U", text],
            &Smoothing::default(),
        )
    }

    #[test]
    fn times_become_numbers_of_what_is_counted() {
        let definition = parse("RRA:MAX:0.5:1h:1w").unwrap();
        let archive = &definition.archives[0];
        assert_eq!((archive.points_per_row, archive.rows), (12, 168));
        assert!(parse("RRA:MAX:0.5:301s:10").is_err());
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
    fn what_defines_nothing_is_told() {
        for (text, part) in [
            ("XX:b", "kind"),
            ("DS:a:GAUGE:1:U:U", "name"),
            ("DS:b b:GAUGE:1:U:U", "name"),
            ("DS:b:WHAT:1:U:U", "kind"),
            ("DS:b:GAUGE:0:U:U", "heartbeat"),
            ("DS:b:GAUGE:1:2:2", "minimum"),
            ("DS:b:GAUGE:1:U", "maximum"),
            ("DS:b:GAUGE:1:U:U:U", "end"),
            ("DS:b:COMPUTE:c,1,+", "expression"),
            ("RRA:MEAN:0.5:1:1", "rows"),
            ("RRA:LAST:1:1:1", "xff"),
            ("RRA:LAST:0.5:0:1", "points per row"),
            ("RRA:HWPREDICT:10:0.1:0.1:11", "period"),
            ("RRA:FAILURES:10:9:8:1", "threshold"),
            ("RRA:SEASONAL:20:0.1:1:window", "smoothing window"),
        ] {
            assert_eq!(parse(text).unwrap_err().part, part, "{text}");
        }
    }
}
