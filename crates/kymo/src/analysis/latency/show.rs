//! Latencies as JSON and as text.

use super::Latency;
use crate::analysis::text::{Summary, bar, bound, duration, in_unit, percent, track_json, unit_of};
use crate::report::{Style, Table};

impl Latency {
    /// One object, its durations and times in nanoseconds: `events`, `untimed`,
    /// `discarded_events`, `discarded_packets`, `starts`, `ends`, `pairs`, `unmatched_starts`, `replaced`, `open`,
    /// `dropped`, `unmatched_ends`, `backwards`, `mean`, `deviation`, `min`, `p50`, `p90`, `p99`,
    /// `p99.9`, `max` (null without pairs), `histogram` (each with `from`, `to`, `count`),
    /// `worst` (each with `latency`, `start`, `end`, `start_track`, `end_track`, `key`) and
    /// `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = self.coverage.begin_json();
        for (key, number) in [
            ("starts", self.starts),
            ("ends", self.ends),
            ("pairs", self.times.count()),
            ("unmatched_starts", self.unmatched.starts()),
            ("replaced", self.unmatched.replaced),
            ("open", self.unmatched.open),
            ("dropped", self.unmatched.dropped),
            ("unmatched_ends", self.unmatched.ends),
            ("backwards", self.backwards),
        ] {
            json.entry(key, number);
        }
        let some = |nanos: u64| (self.times.count() > 0).then_some(nanos);
        json.entry("mean", self.times.mean());
        json.entry("deviation", self.times.deviation());
        json.entry("min", some(self.times.min()));
        for (key, nanos) in self.percentiles() {
            json.entry(key, nanos);
        }
        json.entry("max", some(self.times.max()));
        json.begin_list("histogram");
        for bucket in self.histogram.buckets() {
            json.begin_object();
            json.entry("from", bucket.from);
            json.entry("to", bucket.to);
            json.entry("count", bucket.count);
            json.end_object();
        }
        json.end_list();
        json.begin_list("worst");
        for slow in &self.worst {
            json.begin_object();
            json.entry("latency", slow.nanos);
            json.entry("start", slow.start.as_nanos());
            json.entry("end", slow.end.as_nanos());
            for (key, track) in [
                ("start_track", &slow.start_track),
                ("end_track", &slow.end_track),
            ] {
                json.key(key);
                json.begin_object();
                track_json(track, &mut json);
                json.end_object();
            }
            json.entry("key", self.has_key.then_some(&*slow.key));
            json.end_object();
        }
        json.end_list();
        if let Some(groups) = &self.groups {
            groups.to_json(&mut json);
        }
        self.coverage.finish_json(json)
    }

    /// Counts, percentiles, a histogram and the longest latencies.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut summary = Summary::new(style);
        let unmatched = &self.unmatched;
        summary.count("starts", self.starts);
        summary.count("ends", self.ends);
        summary.count("pairs", self.times.count());
        summary.count("unmatched starts", unmatched.starts());
        summary.some("  another start came first", unmatched.replaced);
        summary.some("  open at the end", unmatched.open);
        summary.some("  given up, too many at a time", unmatched.dropped);
        summary.count("unmatched ends", unmatched.ends);
        summary.some("left out, time went back", self.backwards);
        if let Some(mean) = self.times.mean() {
            let round = |nanos: f64| duration(nanos.round() as u64);
            summary.row("mean", round(mean));
            let deviation = self.times.deviation();
            summary.row("deviation", deviation.map_or("-".to_string(), round));
            summary.row("min", duration(self.times.min()));
            for (name, nanos) in self.percentiles() {
                summary.row(name, nanos.map_or("-".to_string(), duration));
            }
            summary.row("max", duration(self.times.max()));
        }
        let mut text = summary.finish(&self.coverage, true);
        match &self.groups {
            Some(groups) if !groups.rows.is_empty() => {
                text.push('\n');
                text += &groups.to_text(self.times.total(), style);
            }
            None if self.times.count() > 0 => {
                text.push('\n');
                text += &self.histogram_text(style);
            }
            _ => {}
        }
        if !self.worst.is_empty() {
            text.push('\n');
            text += &self.worst_text(style);
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }

    /// A bar for each range of latencies.
    fn histogram_text(&self, style: &Style) -> String {
        /// Maximum and minimum width of bars.
        const BARS: (usize, usize) = (60, 10);
        let ranges = self.histogram.ranges();
        let most = ranges.iter().map(|range| range.count).max().unwrap_or(0);
        let before = |bars: Option<usize>| {
            let mut table = Table::default();
            table.header(&["from", "pairs", "%", ""]);
            for range in &ranges {
                let share = percent(range.count as f64, self.times.count() as f64);
                let bar = bars.map_or(String::new(), |width| bar(range.count, most, width));
                table.row([bound(range.from), style.count(range.count), share, bar]);
            }
            table.align(&[true, true, true, false])
        };
        let taken = before(None).lines().map(str::len).max().unwrap_or(0) + 2;
        let room = style
            .width()
            .map_or(BARS.0, |width| width.saturating_sub(taken));
        before(Some(room.clamp(BARS.1, BARS.0)))
    }

    fn worst_text(&self, style: &Style) -> String {
        let mut table = Table::default();
        let longest = self.worst.first().map_or(0, |slow| slow.nanos);
        let unit = unit_of(longest as f64);
        let where_to = match self.has_key {
            true => format!("{} [key]", self.title),
            false => self.title.clone(),
        };
        table.header(&[&format!("worst ({})", unit.0), "start", "end", &*where_to]);
        for slow in &self.worst {
            let mut place = slow.start_track.title(self.several);
            if slow.end_track != slow.start_track {
                place += &format!(" -> {}", slow.end_track.title(self.several));
            }
            if self.has_key {
                place += &format!(" [{}]", slow.key);
            }
            table.row([
                in_unit(slow.nanos as f64, unit),
                style.time(slow.start),
                style.time(slow.end),
                place,
            ]);
        }
        // The end is where the latency after the start leads: short lines do without it.
        const WITH_END: usize = 100;
        let spare: &[usize] = match style.width() {
            Some(width) if width < WITH_END => &[2],
            _ => &[],
        };
        table.fit_without(spare, &[true, false, false, false], style)
    }
}
