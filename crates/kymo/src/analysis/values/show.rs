//! Values of a field as text and JSON.

use super::{FieldValues, ValueGroup};
use crate::analysis::group::{by_json, joined};
use crate::analysis::numbers::Numbers;
use crate::analysis::text::{Summary, bar, percent, track_json};
use crate::report::{Style, Table};

/// Percentiles of values: their keys, and thousandths.
const PERCENTILES: [(&str, u32); 6] = [
    ("p1", 10),
    ("p25", 250),
    ("p50", 500),
    ("p75", 750),
    ("p95", 950),
    ("p99", 990),
];

impl FieldValues {
    /// One object: `events`, `untimed`, `discarded_events`, `discarded_packets`, `field`, `groups` (each with `by`,
    /// `count`, `min`, `mean`, `deviation`, `p1`, `p25`, `p50`, `p75`, `p95`, `p99`, `max`, `histogram`, `texts`,
    /// `text_count`, `distinct`), `outlier_count` and `outliers` (each with `value`, `deviations`, `time`, `event`,
    /// `by` and the keys of its track), `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = self.coverage.begin_json();
        json.entry("field", self.field.as_bytes());
        json.begin_list("groups");
        for group in &self.groups {
            let numbers = &group.numbers;
            json.begin_object();
            by_json(self.by.titles(), &group.values, &mut json);
            json.entry("count", numbers.count());
            json.entry("min", numbers.min());
            json.entry("mean", numbers.mean());
            json.entry("deviation", numbers.deviation());
            for (key, thousandths) in PERCENTILES {
                json.entry(key, numbers.percentile(thousandths));
            }
            json.entry("max", numbers.max());
            json.begin_list("histogram");
            for range in numbers.ranges() {
                json.begin_object();
                json.entry("from", Some(range.from));
                json.entry("to", Some(range.to));
                json.entry("count", range.count);
                json.end_object();
            }
            json.end_list();
            json.begin_list("texts");
            for (text, count) in group.texts.iter().take(self.top) {
                json.begin_object();
                json.entry("text", text.as_bytes());
                json.entry("count", *count);
                json.end_object();
            }
            json.end_list();
            json.entry("text_count", group.text_count);
            json.entry("distinct", group.distinct);
            json.end_object();
        }
        json.end_list();
        json.entry("outlier_count", self.outlier_count);
        json.begin_list("outliers");
        for outlier in &self.outliers {
            json.begin_object();
            json.entry("value", Some(outlier.value));
            json.entry("deviations", Some(outlier.deviations));
            json.entry("time", outlier.time.as_nanos());
            json.entry("event", outlier.event.as_bytes());
            by_json(self.by.titles(), &outlier.group, &mut json);
            track_json(&outlier.track, &mut json);
            json.end_object();
        }
        json.end_list();
        self.coverage.finish_json(json)
    }

    /// A summary, a table of groups, a histogram where there is one group, texts, outliers.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut summary = Summary::new(style);
        summary.count("values", self.value_count);
        summary.count("groups", self.group_count);
        if let Some(limit) = self.limit {
            let text = format!(
                "{} (beyond {limit} deviations)",
                style.count(self.outlier_count)
            );
            summary.row("outliers", text);
        }
        let mut text = summary.finish(&self.coverage, false);
        let numeric: Vec<&ValueGroup> = self
            .groups
            .iter()
            .filter(|group| group.numbers.count() > 0)
            .collect();
        if !numeric.is_empty() {
            text.push('\n');
            text += &self.numbers_text(&numeric, style);
        }
        if let [group] = numeric[..] {
            text.push('\n');
            text += &histogram_text(&group.numbers, style);
        }
        if self.groups.iter().any(|group| group.text_count > 0) {
            text.push('\n');
            text += &self.texts_text(style);
        }
        if !self.outliers.is_empty() {
            text.push('\n');
            text += &self.outliers_text(style);
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }

    fn numbers_text(&self, groups: &[&ValueGroup], style: &Style) -> String {
        let mut table = Table::default();
        let title = self.by.title();
        table.header(&[
            "count",
            "min",
            "mean",
            "deviation",
            "p50",
            "p95",
            "p99",
            "max",
            &*title,
        ]);
        for group in groups {
            let numbers = &group.numbers;
            table.row([
                style.count(numbers.count()),
                shown(numbers.min()),
                shown(numbers.mean()),
                shown(numbers.deviation()),
                shown(numbers.percentile(500)),
                shown(numbers.percentile(950)),
                shown(numbers.percentile(990)),
                shown(numbers.max()),
                joined(&group.values),
            ]);
        }
        let mut right = [true; 9];
        right[8] = false;
        // Where lines are short: percentiles, then how much the values differ.
        table.fit_without(&[6, 5, 4, 3], &right, style)
    }

    fn texts_text(&self, style: &Style) -> String {
        let mut table = Table::default();
        let title = match self.by.titles().next() {
            Some(_) => format!("{} [{}]", self.field, self.by.title()),
            None => self.field.clone(),
        };
        table.header(&["count", "%", &*title]);
        for group in &self.groups {
            let shown = group.texts.iter().take(self.top);
            let mut row = |count: u64, name: &str| {
                let name = match group.values.is_empty() {
                    true => name.to_string(),
                    false => format!("{name} [{}]", joined(&group.values)),
                };
                let share = percent(count as f64, group.text_count as f64);
                table.row([style.count(count), share, name]);
            };
            let mut sum = 0;
            for (text, count) in shown {
                row(*count, text);
                sum += count;
            }
            if sum < group.text_count {
                row(group.text_count - sum, "(others)");
            }
        }
        table.fit_without(&[1], &[true, true, false], style)
    }

    fn outliers_text(&self, style: &Style) -> String {
        let mut table = Table::default();
        table.header(&["outlier", "deviations", "time", "event", "track"]);
        for outlier in &self.outliers {
            let track = outlier.track.title(self.several);
            let place = match outlier.group.is_empty() {
                true => track,
                false => format!("{track} [{}]", joined(&outlier.group)),
            };
            table.row([
                shown(Some(outlier.value)),
                format!("{:+.1}", outlier.deviations),
                style.time(outlier.time),
                outlier.event.clone(),
                place,
            ]);
        }
        table.fit(&[true, true, false, false, false], style)
    }
}

/// A number for people: integers as such, others to six digits.
fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".to_string(),
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value}"),
        Some(value) if (1e-3..1e9).contains(&value.abs()) => {
            let digits = 5 - value.abs().log10().floor() as i32;
            format!("{value:.*}", digits.clamp(0, 9) as usize)
        }
        Some(value) => format!("{value:.5e}"),
    }
}

/// A bar for each range of numbers.
fn histogram_text(numbers: &Numbers, style: &Style) -> String {
    const BARS: usize = 40;
    let ranges = numbers.ranges();
    let most = ranges.iter().map(|range| range.count).max().unwrap_or(0);
    let mut table = Table::default();
    table.header(&["from", "values", "%", ""]);
    for range in &ranges {
        table.row([
            shown(Some(range.from)),
            style.count(range.count),
            percent(range.count as f64, numbers.count() as f64),
            bar(range.count, most, BARS),
        ]);
    }
    table.align(&[true, true, true, false])
}
