//! Sums over an interval, named as StatsD names them.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::{Metric, Value};
use crate::{Key, Kind, Number, Sink};

/// Values of one timer in an interval that are kept for percentiles; of more, the first are.
const MOST_VALUES: usize = 1 << 16;
/// Values of one set in an interval.
const MOST_MEMBERS: usize = 1 << 16;
/// A name of more bytes counts as several: so many of them as one.
const BYTES_OF_NAME: usize = 1 << 10;
/// What a value of a timer takes, with the room that a list has in advance, and a value of a set beside its text.
const TIMER_VALUE: usize = 2 * size_of::<f64>();
const SET_VALUE: usize = 64;

/// How values are summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregatorOptions {
    /// What all names begin with, as `stats` in `stats.counters.NAME.count`; empty for nothing.
    pub prefix: String,
    /// Percentiles of timers, above 0 and below 100.
    pub percentiles: Vec<f64>,
    /// How many names are known at a time; one with its labels counts once for each KiB.
    pub most_names: usize,
    /// Bytes of the values of all sets and timers in an interval.
    pub most_value_bytes: usize,
    /// Number of intervals without a value after which a name is forgotten.
    pub idle_flushes: u32,
}

impl Default for AggregatorOptions {
    /// As StatsD has them, with names forgotten after an hour of ten seconds.
    fn default() -> Self {
        Self {
            prefix: "stats".to_owned(),
            percentiles: vec![90.0],
            most_names: 100_000,
            most_value_bytes: 64 << 20,
            idle_flushes: 360,
        }
    }
}

/// Values that have come since the last flush.
#[derive(Debug)]
pub struct Aggregator {
    options: AggregatorOptions,
    names: HashMap<Box<[u8]>, Entry>,
    /// What the names count together.
    weight: usize,
    /// Bytes of values.
    bytes: usize,
    /// Values that were not taken, since there were too many names or values.
    pub dropped: u64,
}

/// How many names one counts as, of which the bytes of the key are kept twice.
fn weight(key: &Key) -> usize {
    1 + 2 * key.bytes().len() / BYTES_OF_NAME
}

#[derive(Debug)]
struct Entry {
    key: Key,
    idle: u32,
    has_new: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Counter(f64),
    Gauge(f64),
    Timer(Timer),
    Set(HashSet<Box<[u8]>>),
}

#[derive(Debug, Default)]
struct Timer {
    values: Vec<f64>,
    /// All that were sent, by their sample rates.
    count: f64,
}

/// What distinguishes the names of one type from those of others.
fn group(metric: Metric) -> u8 {
    match metric {
        Metric::Counter => b'c',
        Metric::Gauge | Metric::GaugeChange => b'g',
        Metric::Timer => b't',
        Metric::Set => b's',
    }
}

impl Aggregator {
    /// Nothing.
    pub fn new(options: AggregatorOptions) -> Self {
        Self {
            options,
            names: HashMap::new(),
            weight: 0,
            bytes: 0,
            dropped: 0,
        }
    }

    /// Sums up by other options from now on; what has come stays.
    pub fn set_options(&mut self, options: AggregatorOptions) {
        self.options = options;
    }

    /// How many names are known.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no names are known.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a value.
    pub fn add(&mut self, key: &Key, value: &Value<'_>) {
        let mut name = Vec::with_capacity(key.bytes().len() + 1);
        name.push(group(value.metric));
        name.extend_from_slice(key.bytes());
        if !self.names.contains_key(name.as_slice()) {
            let weight = weight(key);
            if self.weight + weight > self.options.most_names {
                self.dropped += 1;
                return;
            }
            self.weight += weight;
            let state = match value.metric {
                Metric::Counter => State::Counter(0.0),
                Metric::Gauge | Metric::GaugeChange => State::Gauge(0.0),
                Metric::Timer => State::Timer(Timer::default()),
                Metric::Set => State::Set(HashSet::new()),
            };
            let entry = Entry {
                key: key.clone(),
                idle: 0,
                has_new: false,
                state,
            };
            self.names.insert(name.as_slice().into(), entry);
        }
        let Some(entry) = self.names.get_mut(name.as_slice()) else {
            return;
        };
        entry.has_new = true;
        let most_bytes = self.options.most_value_bytes;
        match &mut entry.state {
            State::Counter(sum) => *sum += value.number / value.rate,
            State::Gauge(level) => match value.metric {
                Metric::GaugeChange => *level += value.number,
                _ => *level = value.number,
            },
            State::Timer(timer) => {
                if timer.values.len() >= MOST_VALUES || self.bytes >= most_bytes {
                    self.dropped += 1;
                    return;
                }
                self.bytes += TIMER_VALUE;
                timer.values.push(value.number);
                timer.count += 1.0 / value.rate;
            }
            State::Set(members) => {
                if members.contains(value.text) {
                    return;
                }
                if members.len() >= MOST_MEMBERS || self.bytes >= most_bytes {
                    self.dropped += 1;
                    return;
                }
                self.bytes += value.text.len() + SET_VALUE;
                members.insert(value.text.into());
            }
        }
    }

    /// Gives a sink the sums of the interval that ends at a time, in nanoseconds since 1970, and begins the next.
    /// `seconds` is how long it was.
    pub fn flush(&mut self, time: i64, seconds: f64, sink: &mut impl Sink) {
        let mut output = Output {
            sink,
            time,
            prefix: &self.options.prefix,
            key: Key::new(),
        };
        let idle_flushes = self.options.idle_flushes;
        for entry in self.names.values_mut() {
            let has_new = std::mem::take(&mut entry.has_new);
            entry.idle = if has_new { 0 } else { entry.idle + 1 };
            let key = &entry.key;
            match &mut entry.state {
                State::Counter(sum) => {
                    let sum = std::mem::take(sum);
                    output.put(key, "counters", "count", sum);
                    output.put(key, "counters", "rate", sum / seconds);
                }
                State::Gauge(level) => output.put(key, "gauges", "", *level),
                State::Timer(timer) => {
                    let timer = std::mem::take(timer);
                    output.timer(key, timer, seconds, &self.options.percentiles);
                }
                State::Set(members) => {
                    output.put(key, "sets", "count", members.len() as f64);
                    // One that is cleared keeps its room, which no bound would count.
                    *members = HashSet::new();
                }
            }
        }
        let mut gone = 0;
        self.names.retain(|_, entry| {
            let stays = entry.idle < idle_flushes;
            gone += if stays { 0 } else { weight(&entry.key) };
            stays
        });
        self.weight = self.weight.saturating_sub(gone);
        self.bytes = 0;
    }
}

struct Output<'a, S> {
    sink: &'a mut S,
    time: i64,
    prefix: &'a str,
    key: Key,
}

impl<S: Sink> Output<'_, S> {
    fn put(&mut self, key: &Key, group: &str, suffix: &str, value: f64) {
        self.key.begin(self.prefix.as_bytes());
        for part in [group, key.name(), suffix] {
            if !part.is_empty() {
                if self.key.bytes().len() > 1 {
                    self.key.append_to_name(b".");
                }
                self.key.append_to_name(part.as_bytes());
            }
        }
        for (name, value) in key.labels() {
            self.key.label(name.as_bytes(), value.as_bytes());
        }
        if let Err(error) = self.key.finish() {
            let name = key.name().as_bytes();
            let problem = crate::Problem::Name(error);
            return self.sink.fault(crate::Fault::new(0, problem, name));
        }
        let series = match self.sink.find(self.key.bytes()) {
            Some(series) => series,
            None => self.sink.series(self.key.bytes(), &self.key, Kind::Gauge),
        };
        self.sink
            .sample(series, Some(self.time), Number::Float(value));
    }

    fn timer(&mut self, key: &Key, timer: Timer, seconds: f64, percentiles: &[f64]) {
        let mut values = timer.values;
        self.put(key, "timers", "count", timer.count);
        self.put(key, "timers", "count_ps", timer.count / seconds);
        if values.is_empty() {
            return;
        }
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let sum: f64 = values.iter().sum();
        let mean = sum / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let middle = count / 2;
        let median = match count % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        for (suffix, value) in [
            ("lower", values[0]),
            ("upper", values[count - 1]),
            ("sum", sum),
            ("mean", mean),
            ("median", median),
            ("std", (squares / count as f64).sqrt()),
        ] {
            self.put(key, "timers", suffix, value);
        }
        for percentile in percentiles {
            // As many as StatsD uses: the nearest number, with halves rounded up.
            let within = (percentile / 100.0 * count as f64 + 0.5).floor() as usize;
            let within = &values[..within.min(count)];
            let Some(upper) = within.last() else {
                continue;
            };
            let sum: f64 = within.iter().sum();
            let name = percentile.to_string().replace('.', "_");
            for (suffix, value) in [
                ("mean", sum / within.len() as f64),
                ("upper", *upper),
                ("sum", sum),
            ] {
                self.put(key, "timers", &format!("{suffix}_{name}"), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statsd::parse;
    use crate::test_sink::Collected;

    fn add(aggregator: &mut Aggregator, text: &[u8]) {
        parse(
            text,
            &mut |key, value| aggregator.add(key, value),
            &mut |fault| panic!("{fault}"),
        );
    }

    fn flush(aggregator: &mut Aggregator) -> Vec<String> {
        let mut found = Collected::of(|sink| aggregator.flush(10, 10.0, sink)).samples;
        found.sort();
        found
    }

    #[test]
    fn sums_have_the_names_of_statsd() {
        let mut aggregator = Aggregator::new(AggregatorOptions {
            idle_flushes: 2,
            ..AggregatorOptions::default()
        });
        add(
            &mut aggregator,
            b"hits:1|c\nhits:1|c|@0.5\nlevel:10|g\nlevel:-3|g\nlevel:+1|g\nusers:a|s\nusers:b|s\nusers:a|s",
        );
        assert_eq!(
            flush(&mut aggregator),
            [
                "stats.counters.hits.count 3 @10",
                "stats.counters.hits.rate 0.3 @10",
                "stats.gauges.level 8 @10",
                "stats.sets.users.count 2 @10",
            ]
        );
        assert_eq!(
            flush(&mut aggregator),
            [
                "stats.counters.hits.count 0 @10",
                "stats.counters.hits.rate 0 @10",
                "stats.gauges.level 8 @10",
                "stats.sets.users.count 0 @10",
            ]
        );
        assert_eq!(flush(&mut aggregator).len(), 4);
        assert!(aggregator.is_empty());
    }

    #[test]
    fn timers_have_percentiles() {
        let mut aggregator = Aggregator::new(AggregatorOptions::default());
        for value in 1..=10 {
            add(&mut aggregator, format!("t:{value}|ms|#a:b").as_bytes());
        }
        let found = flush(&mut aggregator);
        for expected in [
            "count{a=\"b\"} 10",
            "count_ps{a=\"b\"} 1",
            "lower{a=\"b\"} 1",
            "upper{a=\"b\"} 10",
            "mean{a=\"b\"} 5.5",
            "median{a=\"b\"} 5.5",
            "mean_90{a=\"b\"} 5",
            "upper_90{a=\"b\"} 9",
            "sum_90{a=\"b\"} 45",
        ] {
            let expected = format!("stats.timers.t.{expected} @10");
            assert!(found.contains(&expected), "{expected}: {found:#?}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut aggregator = Aggregator::new(AggregatorOptions {
            most_names: 2,
            ..AggregatorOptions::default()
        });
        add(&mut aggregator, b"a:1|c\nb:1|c\nc:1|c\na:1|c");
        assert_eq!((aggregator.len(), aggregator.dropped), (2, 1));
    }

    #[test]
    fn long_names_count_for_what_they_take() {
        let mut aggregator = Aggregator::new(AggregatorOptions {
            most_names: 10,
            idle_flushes: 1,
            ..AggregatorOptions::default()
        });
        let add_long = |aggregator: &mut Aggregator| {
            for number in 0..10 {
                let name = format!("{number}{}", "x".repeat(2000));
                add(aggregator, format!("{name}:1|c").as_bytes());
            }
        };
        add_long(&mut aggregator);
        assert_eq!((aggregator.len(), aggregator.dropped), (2, 8));
        // Forgotten names leave their room.
        flush(&mut aggregator);
        flush(&mut aggregator);
        assert!(aggregator.is_empty() && aggregator.weight == 0);
        add_long(&mut aggregator);
        assert_eq!(aggregator.len(), 2);
    }

    #[test]
    fn values_are_bounded() {
        let mut aggregator = Aggregator::new(AggregatorOptions {
            most_value_bytes: 1000,
            ..AggregatorOptions::default()
        });
        for number in 0..100 {
            let text = format!("s{}:{number}|s\nt:{number}|ms", number % 3);
            add(&mut aggregator, text.as_bytes());
        }
        assert!(aggregator.bytes <= 1000 + SET_VALUE + 2);
        assert!(aggregator.dropped > 150, "{}", aggregator.dropped);
        flush(&mut aggregator);
        assert_eq!(aggregator.bytes, 0);
        for entry in aggregator.names.values() {
            if let State::Set(members) = &entry.state {
                assert_eq!(members.capacity(), 0, "no room is kept");
            }
        }
    }
}
