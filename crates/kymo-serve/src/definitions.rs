//! Databases as collectd's rrdtool plugin defines them, so that its trees of files go on.
//!
//! A type of `types.db` is a data source for each of its values; archives of averages, least and
//! greatest values cover an hour, a day, a week, a month and a year, each in `rows` rows or more.

use kymo_collectd::{DataSource, Kind};
use kymo_rrd::engine::{DefineError, Definition, Smoothing};
use kymo_rrd::model::SourceKind;
use kymo_rrd::{Time, Value};
use kymo_time::CdTime;

/// What new databases are like. The names in parentheses are those of collectd's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Definitions {
    /// Seconds of a step; by default, the interval of the values (`StepSize`).
    pub step: Option<u64>,
    /// Seconds without a value after which there is none; by default, two steps if the step is set,
    /// else two intervals (`HeartBeat`).
    pub heartbeat: Option<u64>,
    /// The least rows of an archive (`RRARows`).
    pub rows: u64,
    /// The seconds that archives cover (`RRATimespan`).
    pub timespans: Vec<u64>,
    /// The part of a row that may be unknown (`XFF`).
    pub xff: f64,
}

impl Default for Definitions {
    /// As collectd has them.
    fn default() -> Self {
        Self {
            step: None,
            heartbeat: None,
            rows: 1200,
            timespans: vec![3600, 86_400, 604_800, 2_678_400, 31_622_400],
            xff: 0.1,
        }
    }
}

/// No step is longer, in seconds: of longer ones no year has a row.
const LONGEST_STEP: u64 = 31_622_400;
/// The functions of archives, in collectd's order.
const FUNCTIONS: [&str; 3] = ["AVERAGE", "MIN", "MAX"];

impl Definitions {
    /// The definition for values of some sources that arrive from a time on, at an interval.
    ///
    /// A step has a second at least: values that come faster are consolidated.
    ///
    /// # Errors
    ///
    /// Names and numbers of which no database can be made.
    pub fn define(
        &self,
        sources: &[DataSource],
        time: CdTime,
        interval: CdTime,
    ) -> Result<Definition, DefineError> {
        // The last half second is nearest to the one that collectd can no longer count.
        let seconds = |time: CdTime| time.to_seconds().unwrap_or(1 << 34);
        let step = self.step.unwrap_or_else(|| seconds(interval));
        let step = step.clamp(1, LONGEST_STEP);
        let heartbeat = self.heartbeat.unwrap_or_else(|| match self.step {
            Some(step) => step.saturating_mul(2),
            // A step and what may be missing of the next, where values come faster than steps.
            None => seconds(CdTime::from_ticks(interval.ticks().saturating_mul(2)))
                .clamp(2, 2 * LONGEST_STEP),
        });
        // The first value is after it.
        let start = i64::try_from(seconds(time).saturating_sub(1)).unwrap_or(i64::MAX);
        let mut definition = Definition::new(Time::from_seconds(start), step);
        let smoothing = Smoothing::default();
        for source in sources {
            let (name, kind) = (&source.name, kind(source.kind));
            let text = format!("DS:{name}:{kind}:{heartbeat}:U:U");
            definition.add(&text, &smoothing)?;
            // As text, long bounds would be cut off.
            if let Some(SourceKind::Measured { min, max, .. }) =
                definition.sources.last_mut().map(|it| &mut it.kind)
            {
                *min = source.min.map_or(*min, Value::from);
                *max = source.max.map_or(*max, Value::from);
            }
        }
        for (points, rows) in self.archives(step) {
            for function in FUNCTIONS {
                let text = format!("RRA:{function}:{:.10}:{points}:{rows}", self.xff);
                definition.add(&text, &smoothing)?;
            }
        }
        Ok(definition)
    }

    /// Points of a row and rows of each archive, by collectd's calculation.
    fn archives(&self, step: u64) -> impl Iterator<Item = (u64, u64)> {
        let least = step.saturating_mul(self.rows).max(1);
        self.timespans.iter().enumerate().map(move |(place, span)| {
            let span = match span / step < self.rows {
                true => least,
                false => *span,
            };
            // The first one has the values as they come.
            let points = if place == 0 { 1 } else { (span / least).max(1) };
            (points, span.div_ceil(points.saturating_mul(step)))
        })
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "COUNTER",
        Kind::Gauge => "GAUGE",
        Kind::Derive => "DERIVE",
        Kind::Absolute => "ABSOLUTE",
    }
}

#[cfg(test)]
mod tests {
    use kymo_collectd::TypesDb;

    use super::*;

    fn archives(definitions: &Definitions, step: u64) -> Vec<(u64, u64)> {
        definitions.archives(step).collect()
    }

    /// As collectd 5.12 has made files.
    #[test]
    fn archives_are_those_of_collectd() {
        let definitions = Definitions::default();
        let of_ten = [(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)];
        assert_eq!(archives(&definitions, 10), of_ten);
        let of_one = [
            (1, 3600),
            (72, 1200),
            (504, 1200),
            (2232, 1200),
            (26352, 1200),
        ];
        assert_eq!(archives(&definitions, 1), of_one);
        let few = Definitions {
            timespans: vec![60, 600],
            rows: 0,
            ..definitions
        };
        assert_eq!(archives(&few, 10), [(1, 6), (600, 1)]);
    }

    fn define(text: &str, definitions: &Definitions, interval: CdTime) -> Definition {
        let types = TypesDb::parse(text).unwrap();
        let sources = types.get(text.split(' ').next().unwrap()).unwrap();
        let time = CdTime::from_millis(1_700_000_000_600).unwrap();
        definitions.define(sources, time, interval).unwrap()
    }

    #[test]
    fn steps_and_heartbeats() {
        let millis = |millis| CdTime::from_millis(millis).unwrap();
        let text = "t a:GAUGE:0:281474976710656 b:DERIVE:U:U";
        for (step, heartbeat, interval, expected) in [
            (None, None, millis(10_000), (10, 20)),
            (None, None, millis(500), (1, 2)),
            (None, None, millis(100), (1, 2)),
            (None, None, millis(2_400), (2, 5)),
            (Some(5), None, millis(100), (5, 10)),
            (Some(5), Some(7), millis(100), (5, 7)),
        ] {
            let definitions = Definitions {
                step,
                heartbeat,
                ..Definitions::default()
            };
            let definition = define(text, &definitions, interval);
            let SourceKind::Measured { heartbeat, max, .. } = &definition.sources[0].kind else {
                panic!("{definition:?}");
            };
            assert_eq!((definition.step, *heartbeat), expected);
            assert_eq!(max.get(), Some(281_474_976_710_656.0));
            // Rounded as collectd does it, a second before.
            assert_eq!(definition.start, Time::from_seconds(1_700_000_000));
        }
    }
}
