//! Rules: which path a series gets, and what its new database is like.

use std::fmt;
use std::fmt::Write as _;

use kymo_metrics::{Key, Kind};
use kymo_promql::{Labels, Matchers, NAME};
use kymo_rrd::Time;
use kymo_rrd::engine::{DefineError, Definition, Smoothing};
use kymo_rrd::model::Reading;
use kymo_time::Duration;
use regex::{Regex, RegexBuilder};

use super::Protocol;
use super::template::Template;

/// The longest step, in seconds.
pub const LONGEST_STEP: u64 = 31_622_400;
/// Archives of a profile.
const MOST_ARCHIVES: usize = 32;
/// Rows of all archives together.
const MOST_ROWS: u64 = 1 << 25;
/// The largest pattern, in bytes when it is compiled.
const MOST_PATTERN: usize = 1 << 20;
/// The name of a data source.
pub const SOURCE: &str = "value";

/// Which series a rule is for: all, unless it says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    /// The protocols that they come by; all if empty.
    pub protocols: Vec<Protocol>,
    /// What the configuration says.
    text: Vec<(&'static str, String)>,
    patterns: Vec<Regex>,
    matchers: Vec<Matchers>,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.protocols == other.protocols && self.text == other.text
    }
}

impl Selector {
    /// Series whose name contains a match of a regular expression.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), String> {
        let compiled = RegexBuilder::new(pattern).size_limit(MOST_PATTERN).build();
        let compiled = compiled.map_err(|error| match error {
            regex::Error::Syntax(_) => {
                format!(
                    "found `{pattern}`, expected a regular expression such as `^servers[.].*[.]cpu`"
                )
            }
            error => error.to_string(),
        })?;
        self.patterns.push(compiled);
        self.text.push(("pattern", pattern.to_owned()));
        Ok(())
    }

    /// Series that a selector of Prometheus matches.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn add_match(&mut self, selector: &str) -> Result<(), String> {
        let matchers = Matchers::parse(selector).map_err(|problem| {
            format!("{problem}; `match` is a selector such as `{{job=\"node\"}}`, `pattern` a regular expression")
        })?;
        self.matchers.push(matchers);
        self.text.push(("match", selector.to_owned()));
        Ok(())
    }

    /// What it says, by the keys of the configuration.
    pub fn texts(&self) -> &[(&'static str, String)] {
        &self.text
    }

    fn matches(&self, protocol: Protocol, labels: &Labels) -> bool {
        (self.protocols.is_empty() || self.protocols.contains(&protocol)) && self.selects(labels)
    }

    /// Whether it is for a series of some protocol.
    pub(crate) fn selects(&self, labels: &Labels) -> bool {
        let name = labels.name();
        self.patterns.iter().all(|it| it.is_match(name))
            && self.matchers.iter().all(|it| it.matches(labels))
    }
}

/// The path of series, or that they are not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRule {
    /// Its name, for people.
    pub name: String,
    /// Which series it is for.
    pub selector: Selector,
    /// The path; `None` if they are not kept.
    pub template: Option<Template>,
}

/// What new databases of series are like.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageRule {
    /// Its name, for people.
    pub name: String,
    /// Which series it is for.
    pub selector: Selector,
    /// What they are like.
    pub profile: Profile,
}

/// What new databases are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Seconds of a step.
    pub step: u64,
    /// Seconds without a value after which there is none.
    pub heartbeat: u64,
    /// The archives.
    pub archives: Vec<Archive>,
    /// The functions of archives with several steps a row.
    pub functions: Vec<Function>,
    /// The part of a row that may be unknown.
    pub xff: f64,
    /// What values are; if not set, what the sender says.
    pub reading: Option<Reading>,
}

/// An archive: how long a row is, and how long all are, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Seconds of a row.
    pub resolution: u64,
    /// Seconds of all rows.
    pub span: u64,
}

/// How rows are made of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Their mean.
    Average,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The last.
    Last,
}

impl Function {
    /// All.
    pub const ALL: [Self; 4] = [Self::Average, Self::Min, Self::Max, Self::Last];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Average => "AVERAGE",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Last => "LAST",
        }
    }
}

impl Archive {
    /// Reads `RESOLUTION:SPAN`, such as `10s:6h`; a span without a unit is a number of rows, as Graphite has it.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("found `{text}`, expected RESOLUTION:SPAN such as `10s:6h` ({UNITS})");
        let (resolution, span) = text.split_once(':').ok_or_else(wrong)?;
        let seconds = |text: &str| Duration::parse_seconds(text.trim()).map_err(|_| wrong());
        let resolution = seconds(resolution)?;
        let is_count = span.trim().bytes().all(|byte| byte.is_ascii_digit());
        let span = match (is_count, seconds(span)?) {
            (true, rows) => rows.saturating_mul(resolution),
            (false, span) => span,
        };
        if resolution > LONGEST_STEP || span < resolution {
            return Err(wrong());
        }
        Ok(Self { resolution, span })
    }

    /// The rows.
    pub fn rows(self) -> u64 {
        self.span.div_ceil(self.resolution.max(1))
    }
}

impl fmt::Display for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Seconds(self.resolution), Seconds(self.span))
    }
}

/// The units of times, for messages.
pub const UNITS: &str = "units: s, m or min, h, d, w, y";

/// Seconds in the largest unit of which they are a multiple.
pub struct Seconds(pub u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(604_800, 'w'), (86_400, 'd'), (3600, 'h'), (60, 'm')];
        let unit = units
            .into_iter()
            .find(|(unit, _)| self.0.is_multiple_of(*unit));
        match unit {
            Some((unit, name)) if self.0 > 0 => write!(f, "{}{name}", self.0 / unit),
            _ => write!(f, "{}s", self.0),
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        let archive = |resolution, span| Archive { resolution, span };
        Self {
            step: 10,
            heartbeat: 300,
            archives: vec![
                archive(10, 3 * 3600),
                archive(60, 86_400),
                archive(300, 7 * 86_400),
                archive(1800, 30 * 86_400),
                archive(6 * 3600, 365 * 86_400),
            ],
            functions: vec![Function::Average, Function::Min, Function::Max],
            xff: 0.5,
            reading: None,
        }
    }
}

impl Profile {
    /// Checks that databases can be made of it.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.archives.is_empty() || self.archives.len() > MOST_ARCHIVES {
            return Err(format!("expected 1 to {MOST_ARCHIVES} archives"));
        }
        if self.functions.is_empty() {
            return Err("expected functions, such as AVERAGE".into());
        }
        for archive in &self.archives {
            if !archive.resolution.is_multiple_of(self.step) {
                return Err(format!(
                    "the resolution of `{archive}` is not a multiple of the step, {} s",
                    self.step
                ));
            }
        }
        if self.rows() > MOST_ROWS {
            return Err(format!("the archives have more than {MOST_ROWS} rows"));
        }
        Ok(())
    }

    /// The archives of the file: function, steps a row, rows.
    fn files(&self) -> impl Iterator<Item = (Function, u64, u64)> {
        self.archives.iter().flat_map(|archive| {
            let steps = archive.resolution / self.step;
            // Of single steps, all functions give the same.
            let functions = match steps {
                1 => &self.functions[..1],
                _ => &self.functions,
            };
            functions
                .iter()
                .map(move |function| (*function, steps, archive.rows()))
        })
    }

    /// The rows of all archives.
    pub fn rows(&self) -> u64 {
        let rows = self.files().map(|(.., rows)| rows);
        rows.fold(0, u64::saturating_add)
    }

    /// What values of a kind are in a database.
    pub fn reading(&self, kind: Kind) -> Reading {
        self.reading.unwrap_or(match kind {
            // So that `rate()` of queries is what it is in Prometheus.
            Kind::Gauge | Kind::Counter => Reading::Gauge,
            Kind::Delta => Reading::Absolute,
        })
    }

    /// Returns the definition of a database whose first value is at the time `first`.
    ///
    /// # Errors
    ///
    /// What no database can be made of.
    pub fn define(&self, reading: Reading, first: Time) -> Result<Definition, DefineError> {
        let step = i64::try_from(self.step).unwrap_or(i64::MAX);
        // The first value is also for the last whole step before it, so that it is in a row at once.
        let start = (first.seconds().div_euclid(step) - 1) * step;
        let mut definition = Definition::new(Time::from_seconds(start), self.step);
        let smoothing = Smoothing::default();
        let text = format!("DS:{SOURCE}:{}:{}:U:U", reading.name(), self.heartbeat);
        definition.add(&text, &smoothing)?;
        for (function, steps, rows) in self.files() {
            let text = format!("RRA:{}:{:.10}:{steps}:{rows}", function.name(), self.xff);
            definition.add(&text, &smoothing)?;
        }
        if matches!(reading, Reading::DCounter | Reading::DDerive) {
            definition.version = definition.version.max(5);
        }
        Ok(definition)
    }
}

/// All rules, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Of paths: the first that is for a series counts.
    pub paths: Vec<PathRule>,
    /// Of databases: the same.
    pub storage: Vec<StorageRule>,
}

/// What the rules say of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The rule of its path.
    pub path_rule: String,
    /// The path relative to the data directory; `None` if it is not kept.
    pub path: Option<String>,
    /// The rule of its database.
    pub storage_rule: String,
    /// What a new database is like.
    pub profile: Profile,
}

/// The name of the rules that hold if no other does.
const DEFAULT: &str = "default";

impl Rules {
    /// What they say of a series that comes by a protocol.
    pub fn verdict(&self, protocol: Protocol, key: &Key) -> Verdict {
        let pairs = key.labels().chain([(NAME, key.name())]);
        let labels = Labels::new(pairs);
        let rule = self
            .paths
            .iter()
            .find(|rule| rule.selector.matches(protocol, &labels));
        let (path_rule, template) = match rule {
            Some(rule) => (rule.name.clone(), rule.template.clone()),
            None => (DEFAULT.to_owned(), Some(protocol.template())),
        };
        let rule = self
            .storage
            .iter()
            .find(|rule| rule.selector.matches(protocol, &labels));
        let (storage_rule, profile) = match rule {
            Some(rule) => (rule.name.clone(), rule.profile.clone()),
            None => (DEFAULT.to_owned(), Profile::default()),
        };
        Verdict {
            path_rule,
            path: template.map(|template| template.path(key)),
            storage_rule,
            profile,
        }
    }
}

impl Verdict {
    /// Returns the verdict as text, for a series whose database would be below `data`.
    pub fn explain(&self, kind: Kind, data: &std::path::Path) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  path rule:    {}", self.path_rule);
        let Some(path) = &self.path else {
            text.push_str("  the rule drops this series\n");
            return text;
        };
        let path = data.join(path);
        let state = match path.exists() {
            true => " (exists: its own step and archives apply)",
            false => "",
        };
        let _ = writeln!(text, "  database:     {}{state}", path.display());
        let _ = writeln!(text, "  storage rule: {}", self.storage_rule);
        let profile = &self.profile;
        let _ = writeln!(
            text,
            "  data source:  {SOURCE}, {}, step {}, heartbeat {}",
            profile.reading(kind).name(),
            Seconds(profile.step),
            Seconds(profile.heartbeat),
        );
        for (function, steps, rows) in profile.files() {
            let resolution = steps * profile.step;
            let _ = writeln!(
                text,
                "  archive:      {:<7} {:>4} for {:>4} ({rows} rows)",
                function.name(),
                Seconds(resolution).to_string(),
                Seconds(resolution.saturating_mul(rows)).to_string(),
            );
        }
        let _ = writeln!(
            text,
            "  size:         about {} KiB",
            (profile.rows().saturating_mul(8) >> 10) + 1
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, labels: &[(&str, &str)]) -> Key {
        let mut key = Key::new();
        key.begin(name.as_bytes());
        for (name, value) in labels {
            key.label(name.as_bytes(), value.as_bytes());
        }
        key.finish().unwrap();
        key
    }

    #[test]
    fn the_first_rule_counts() {
        let mut servers = Selector::default();
        servers.add_pattern(r"^servers\.").unwrap();
        let mut node = Selector::default();
        node.add_match("{job=\"node\"}").unwrap();
        let rules = Rules {
            paths: vec![
                PathRule {
                    name: "servers".into(),
                    selector: servers.clone(),
                    template: Some(Template::parse("s/{__path__}").unwrap()),
                },
                PathRule {
                    name: "none".into(),
                    selector: Selector {
                        protocols: vec![Protocol::Influx],
                        ..Selector::default()
                    },
                    template: None,
                },
            ],
            storage: vec![StorageRule {
                name: "minutes".into(),
                selector: node,
                profile: Profile {
                    step: 60,
                    ..Profile::default()
                },
            }],
        };
        let found = rules.verdict(Protocol::Graphite, &key("servers.a.load", &[]));
        assert_eq!(found.path.as_deref(), Some("s/servers/a/load.rrd"));
        let found = rules.verdict(Protocol::Graphite, &key("x.servers.a", &[]));
        assert_eq!(found.path.as_deref(), Some("graphite/x/servers/a.rrd"));
        let found = rules.verdict(Protocol::Influx, &key("a", &[]));
        assert_eq!((found.path, found.path_rule), (None, "none".into()));
        let found = rules.verdict(Protocol::RemoteWrite, &key("up", &[("job", "node")]));
        assert_eq!(found.path.as_deref(), Some("prometheus/up/job=node.rrd"));
        assert_eq!(
            (found.storage_rule.as_str(), found.profile.step),
            ("minutes", 60)
        );
        // What Graphite's last rule says.
        let mut all = Selector::default();
        all.add_pattern(".*").unwrap();
        let series = Labels::new([(NAME, "a")]);
        assert!(all.selects(&series) && !servers.selects(&series));
        let problem = servers.add_pattern("*").unwrap_err();
        assert!(problem.starts_with("found `*`, expected a regular expression"));
        assert!(servers.add_match("1 + 1").is_err());
    }

    #[test]
    fn archives_are_those_of_graphite() {
        for (text, found) in [
            ("10s:6h", Some((10, 21_600))),
            ("60:1440", Some((60, 86_400))),
            ("1m:1d", Some((60, 86_400))),
            ("1m", None),
            ("1m:1s", None),
            ("x:1d", None),
        ] {
            let archive = Archive::parse(text).ok();
            assert_eq!(archive.map(|it| (it.resolution, it.span)), found, "{text}");
        }
        assert_eq!(Archive::parse("60s:1440m").unwrap().to_string(), "1m:1d");
    }

    #[test]
    fn definitions_begin_a_step_before() {
        let profile = Profile::default();
        profile.check().unwrap();
        for (first, start) in [(20, 10), (25, 10)] {
            let definition = profile.define(Reading::Gauge, Time::from_seconds(first));
            assert_eq!(definition.unwrap().start, Time::from_seconds(start));
        }
        let definition = profile
            .define(Reading::DDerive, Time::from_seconds(0))
            .unwrap();
        assert_eq!(definition.archives.len(), 13);
        let odd = Profile {
            step: 7,
            ..Profile::default()
        };
        assert!(odd.check().unwrap_err().contains("not a multiple"));
    }
}
