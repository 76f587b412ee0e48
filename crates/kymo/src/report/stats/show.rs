//! Counts as JSON and as text.

use std::collections::HashMap;

use kymo_text::visible;
use kymo_time::Timestamp;

use super::{Count, Stats};
use crate::report::text::{Style, Table, within};
use crate::report::{Json, begin_report, faults_below, write_faults};

impl Stats {
    /// One object: `events`, `bytes`, `begin`, `end` (nanoseconds), `rate` (events per
    /// second), `discarded_events`, `discarded_packets`, then `event_classes` and `streams` with the same keys
    /// for each, and `faults`; where not all faults are listed, `more_faults` says how many are not.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = begin_report();
        let write = |json: &mut Json, count: &Count, duration| {
            json.entry("events", count.events);
            json.entry("bytes", count.bits.div_ceil(8));
            json.entry("begin", count.first.map(Timestamp::as_nanos));
            json.entry("end", count.last.map(Timestamp::as_nanos));
            json.entry("rate", count.rate(duration));
        };
        let path = |json: &mut Json, recording: usize| {
            json.entry(
                "recording",
                self.recordings[recording].as_os_str().as_encoded_bytes(),
            );
        };
        write(&mut json, &self.total, self.total.duration());
        json.entry("discarded_events", self.discarded.events);
        json.entry("discarded_packets", self.discarded.packets);
        json.begin_list("event_classes");
        for class in &self.classes {
            json.begin_object();
            path(&mut json, class.recording);
            json.entry("stream_class", class.stream_class);
            json.entry("event_class", class.id);
            json.entry("event", class.name.as_deref());
            write(&mut json, &class.count, self.total.duration());
            json.end_object();
        }
        json.end_list();
        json.begin_list("streams");
        for stream in &self.streams {
            json.begin_object();
            path(&mut json, stream.recording);
            json.entry("stream", stream.name.as_bytes());
            write(&mut json, &stream.count, stream.count.duration());
            json.end_object();
        }
        json.end_list();
        write_faults(&mut json, &self.faults, self.more_faults);
        json.end_object();
        json.finish()
    }

    /// Tables of all that.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let total = &self.total;
        let mut table = Table::default();
        let mut line = |key: &str, value: String| table.row([key.to_string(), value]);
        if self.is_merged {
            line("recordings", style.count(self.recordings.len() as u64));
        }
        line("events", style.count(total.events));
        line("bytes", style.count(total.bits.div_ceil(8)));
        line("begins", style.optional_time(total.first));
        line("ends", style.optional_time(total.last));
        if let Some(duration) = total.duration() {
            line("duration", style.duration(duration));
        }
        line("events/s", style.rate(total.rate(total.duration())));
        if let Some(peak) = self.spread.peak().filter(|_| total.events > 0) {
            line(
                "over time",
                format!(
                    "{} at most {}/s",
                    self.spread.line(),
                    style.rate(Some(peak))
                ),
            );
        }
        line("discarded events", style.count(self.discarded.events));
        line("discarded packets", style.count(self.discarded.packets));
        if !self.losses.is_empty() {
            line("discarded over time", self.losses.line());
        }
        let faults = self.faults.len() as u64 + self.more_faults;
        line("faults", style.count(faults));
        let mut text = table.align(&[false, false]);

        const COLUMNS: [&str; 7] = ["events", "%", "events/s", "bytes", "begins", "ends", ""];
        const RIGHT: [bool; 7] = [true, true, true, true, false, false, false];
        // Where lines are short: times, and then sizes.
        const SPARE: [usize; 4] = [5, 4, 3, 2];
        let row = |name: String, count: &Count, duration| {
            let share = 100.0 * count.events as f64 / total.events.max(1) as f64;
            [
                style.count(count.events),
                format!("{share:.1}"),
                style.rate(count.rate(duration)),
                style.count(count.bits.div_ceil(8)),
                style.optional_time(count.first),
                style.optional_time(count.last),
                name,
            ]
        };
        let several = self.recordings.len() > 1 && !self.is_merged;
        let prefix = |recording: usize| match several {
            true => format!("[{}] ", recording + 1),
            false => String::new(),
        };
        if several {
            text += "\n";
            for (recording, path) in self.recordings.iter().enumerate() {
                let path = path.to_string_lossy();
                text += &format!("{}{}\n", prefix(recording), visible(&path));
            }
        }
        let mut classes = Table::default();
        let mut header = COLUMNS;
        header[6] = "event class";
        classes.header(&header);
        let mut namesakes: HashMap<(usize, Option<&str>), usize> = HashMap::new();
        for class in &self.classes {
            *namesakes.entry(class.key()).or_default() += 1;
        }
        for class in &self.classes {
            let mut name = prefix(class.recording) + class.name.as_deref().unwrap_or("<unknown>");
            if namesakes[&class.key()] > 1 {
                name += &format!(" (stream class {}, id {})", class.stream_class, class.id);
            }
            classes.row(row(name, &class.count, total.duration()));
        }
        let mut streams = Table::default();
        header[6] = "stream";
        streams.header(&header);
        for stream in &self.streams {
            let name = within(&self.recordings[stream.recording], &stream.name);
            let name = prefix(stream.recording) + &name;
            streams.row(row(name, &stream.count, stream.count.duration()));
        }
        text += "\n";
        text += &classes.fit_without(&SPARE, &RIGHT, style);
        if !self.is_merged {
            text += "\n";
            text += &streams.fit_without(&SPARE, &RIGHT, style);
        }
        text += &faults_below(&self.faults, self.more_faults, style);
        text.into_bytes()
    }
}
