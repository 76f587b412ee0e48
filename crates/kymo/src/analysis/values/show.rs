//! Values of a field as text and JSON.

use super::{FieldValues, ValueGroup};
use crate::analysis::group::{by_json, joined};
use crate::analysis::numbers::Numbers;
use crate::analysis::text::{bar, float_json, number_json, percent, track_json};
use crate::report::{Json, Style, Table};

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
        let mut json = Json::default();
        json.begin_report();
        self.coverage.begin_json(&mut json);
        json.key("field");
        json.text(self.field.as_bytes());
        json.key("groups");
        json.begin_array();
        for group in &self.groups {
            let numbers = &group.numbers;
            json.begin_object();
            by_json(self.by.titles(), &group.values, &mut json);
            number_json("count", numbers.count(), &mut json);
            float_json("min", numbers.min(), &mut json);
            float_json("mean", numbers.mean(), &mut json);
            float_json("deviation", numbers.deviation(), &mut json);
            for (key, thousandths) in PERCENTILES {
                float_json(key, numbers.percentile(thousandths), &mut json);
            }
            float_json("max", numbers.max(), &mut json);
            json.key("histogram");
            json.begin_array();
            for range in numbers.ranges() {
                json.begin_object();
                float_json("from", Some(range.from), &mut json);
                float_json("to", Some(range.to), &mut json);
                number_json("count", range.count, &mut json);
                json.end_object();
            }
            json.end_array();
            json.key("texts");
            json.begin_array();
            for (text, count) in group.texts.iter().take(self.top) {
                json.begin_object();
                json.key("text");
                json.text(text.as_bytes());
                number_json("count", *count, &mut json);
                json.end_object();
            }
            json.end_array();
            number_json("text_count", group.text_count, &mut json);
            json.key("distinct");
            json.optional_number(group.distinct);
            json.end_object();
        }
        json.end_array();
        number_json("outlier_count", self.outlier_count, &mut json);
        json.key("outliers");
        json.begin_array();
        for outlier in &self.outliers {
            json.begin_object();
            float_json("value", Some(outlier.value), &mut json);
            float_json("deviations", Some(outlier.deviations), &mut json);
            json.key("time");
            json.signed(outlier.time.as_nanos());
            json.key("event");
            json.text(outlier.event.as_bytes());
            by_json(self.by.titles(), &outlier.group, &mut json);
            track_json(&outlier.track, &mut json);
            json.end_object();
        }
        json.end_array();
        self.coverage.end_json(&mut json);
        json.end_object();
        json.finish()
    }

    /// A summary, a table of groups, a histogram where there is one group, texts, outliers.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut summary = Table::default();
        let mut row = |key: &str, value: String| summary.row([key.to_string(), value]);
        row("values", style.count(self.value_count));
        row("groups", style.count(self.group_count));
        if let Some(limit) = self.limit {
            let text = format!(
                "{} (beyond {limit} deviations)",
                style.count(self.outlier_count)
            );
            row("outliers", text);
        }
        self.coverage.rows(style, &mut row);
        let mut text = summary.align(&[false, false]);
        let numeric: Vec<&ValueGroup> = self
            .groups
            .iter()
            .filter(|of| of.numbers.count() > 0)
            .collect();
        if !numeric.is_empty() {
            text.push('\n');
            text += &self.numbers_text(&numeric, style);
        }
        if let [group] = numeric[..] {
            text.push('\n');
            text += &histogram_text(&group.numbers, style);
        }
        if self.groups.iter().any(|of| of.text_count > 0) {
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
            let of = &group.numbers;
            table.row([
                style.count(of.count()),
                shown(of.min()),
                shown(of.mean()),
                shown(of.deviation()),
                shown(of.percentile(500)),
                shown(of.percentile(950)),
                shown(of.percentile(990)),
                shown(of.max()),
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
