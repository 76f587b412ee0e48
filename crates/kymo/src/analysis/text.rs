//! Durations and bars for people, and what all reports of analyses contain.

use kymo_time::Timestamp;

use super::run::Coverage;
use super::tracks::Track;
use crate::report::{Count, Json, Style, Table, begin_report, faults_below, write_faults};

/// A unit of durations: its name, and how many nanoseconds it has.
pub(super) type Unit = (&'static str, f64);

const UNITS: [Unit; 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The largest unit of which a duration has at least one.
pub(super) fn unit_of(nanos: f64) -> Unit {
    let fitting = UNITS.into_iter().rfind(|(_, size)| nanos >= *size);
    fitting.unwrap_or(UNITS[0])
}

/// A duration in a unit.
pub(super) fn in_unit(nanos: f64, unit: Unit) -> String {
    format!("{:.3}", nanos / unit.1)
}

/// The same of one that may be none.
pub(super) fn some_in_unit(nanos: Option<f64>, unit: Unit) -> String {
    nanos.map_or_else(|| "-".to_string(), |nanos| in_unit(nanos, unit))
}

/// A duration with its unit, to four digits.
pub fn duration(nanos: u64) -> String {
    let (name, size) = unit_of(nanos as f64);
    let value = nanos as f64 / size;
    let decimals = match value {
        _ if name == "ns" => 0,
        10.0..100.0 => 2,
        100.0..1000.0 => 1,
        1000.0.. => 0,
        _ => 3,
    };
    format!("{value:.decimals$} {name}")
}

/// The beginning or end of a range of durations, which is a round number.
pub(super) fn bound(nanos: u64) -> String {
    let (name, size) = unit_of(nanos as f64);
    format!("{} {name}", nanos as f64 / size)
}

/// A bar as long as `count` is of `most`, of at most `width` characters; what is there is seen.
pub(super) fn bar(count: u64, most: u64, width: usize) -> String {
    let length = u128::from(count) * width as u128 / u128::from(most.max(1));
    let length = (length as usize).max(usize::from(count > 0));
    "#".repeat(length)
}

/// A share in percent.
pub(super) fn percent(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1}", 100.0 * part / whole),
        false => "-".to_string(),
    }
}

/// The lines that a report begins with: a key and a value each.
pub(super) struct Summary<'s> {
    table: Table,
    style: &'s Style,
}

impl<'s> Summary<'s> {
    pub(super) fn new(style: &'s Style) -> Self {
        Self {
            table: Table::default(),
            style,
        }
    }

    pub(super) fn row(&mut self, key: &str, value: String) {
        self.table.row([key.to_string(), value]);
    }

    pub(super) fn count(&mut self, key: &str, count: u64) {
        self.row(key, self.style.count(count));
    }

    /// A count, unless it is 0.
    pub(super) fn some(&mut self, key: &str, count: u64) {
        if count > 0 {
            self.count(key, count);
        }
    }

    /// When the events of a count were, and how many there were per second.
    pub(super) fn times(&mut self, total: &Count) {
        self.row("begins", self.style.optional_time(total.first));
        self.row("ends", self.style.optional_time(total.last));
        let rate = total.rate(total.duration());
        self.row("events/s", self.style.rate(rate));
    }

    /// The lines, behind them what the analysis could not use; values are aligned to the right if they are numbers.
    pub(super) fn finish(mut self, coverage: &Coverage, are_numbers: bool) -> String {
        self.some("events without a time", coverage.untimed);
        self.some("discarded events", coverage.discarded.events);
        self.some("discarded packets", coverage.discarded.packets);
        let faults = coverage.faults.len() as u64 + coverage.more_faults;
        self.some("faults", faults);
        self.table.align(&[false, are_numbers])
    }
}

impl Coverage {
    /// Whether there is no damage.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
    }

    /// The faults, a line each, and how many there are beyond them.
    pub(super) fn faults_text(&self, style: &Style) -> String {
        faults_below(&self.faults, self.more_faults, style)
    }

    /// Begins a report with the keys of what an analysis saw: `events`, `untimed`, `discarded_events`,
    /// `discarded_packets`.
    pub(super) fn begin_json(&self) -> Json {
        let mut json = begin_report();
        json.entry("events", self.events);
        json.entry("untimed", self.untimed);
        json.entry("discarded_events", self.discarded.events);
        json.entry("discarded_packets", self.discarded.packets);
        json
    }

    /// Ends a report with the keys of the damage: `faults` and, where not all are listed, `more_faults`.
    pub(super) fn finish_json(&self, mut json: Json) -> Vec<u8> {
        write_faults(&mut json, &self.faults, self.more_faults);
        json.end_object();
        json.finish()
    }
}

/// The keys of a track: `recording`, `track`, `track_name`.
pub(super) fn track_json(track: &Track, json: &mut Json) {
    let path = track.recording.as_ref();
    json.entry(
        "recording",
        path.map(|path| path.as_os_str().as_encoded_bytes()),
    );
    json.entry("track", track.number);
    json.entry("track_name", track.name.as_bytes());
}

/// `begin`, `end` and `rate` of a count; `duration` is that of all events, in nanoseconds.
pub(super) fn times_json(count: &Count, duration: Option<u64>, json: &mut Json) {
    json.entry("begin", count.first.map(Timestamp::as_nanos));
    json.entry("end", count.last.map(Timestamp::as_nanos));
    json.entry("rate", count.rate(duration));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_fitting_unit() {
        let all: Vec<String> = [
            0,
            999,
            1_000,
            12_345,
            999_949,
            1_000_000,
            59_999_999_999,
            u64::MAX,
        ]
        .map(duration)
        .to_vec();
        assert_eq!(
            all,
            [
                "0 ns",
                "999 ns",
                "1.000 us",
                "12.35 us",
                "999.9 us",
                "1.000 ms",
                "60.00 s",
                "18446744074 s"
            ]
        );
        assert_eq!(bound(2_000_000), "2 ms");
        assert_eq!(bound(1_500), "1.5 us");
        assert_eq!(in_unit(1027.5575, unit_of(1027.5575)), "1.028");
    }

    #[test]
    fn bars_show_the_smallest_share_and_end_at_the_width() {
        let length = |count, most| bar(count, most, 20).len();
        assert_eq!(
            [length(0, 5), length(1, u64::MAX), length(5, 5)],
            [0, 1, 20]
        );
        assert_eq!(length(0, 0), 0);
    }
}
