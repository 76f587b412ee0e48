//! What is known of a round-robin database without looking at its values.

use std::path::PathBuf;

use kymo_machine::Machine;
use kymo_model::{Format, Recording};
use kymo_rrd::Form;
use kymo_rrd::file::native::{Confidence, Detection};
use kymo_rrd::model::SourceKind;
use kymo_rrd::recording::Recording as Rrd;
use kymo_text::{Line, visible};
use kymo_time::Timestamp;

use super::info::byte_order_name;
use super::spark::sparkline;
use super::text::{Style, Table};
use super::{Json, begin_recording, write_faults};

/// What is known of a round-robin database without looking at its values.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// What was opened.
    pub path: PathBuf,
    /// The version, such as `0003`, or the form where it has none.
    pub version: &'static str,
    /// Which machine wrote it, where that decides how it looks.
    pub detection: Option<Detection>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Seconds between two primary data points.
    pub step: u64,
    /// The last update in seconds since 1970, and nanoseconds above them.
    pub last_update: (i64, u32),
    /// Data sources.
    pub sources: Vec<SourceInfo>,
    /// Archives.
    pub archives: Vec<ArchiveInfo>,
}

/// A data source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// Its kind, such as `GAUGE`.
    pub kind: &'static str,
    /// Seconds without a reading after which the value is unknown; of what is measured.
    pub heartbeat: Option<u64>,
    /// Rates below it are unknown.
    pub min: Option<f64>,
    /// Rates above it are unknown.
    pub max: Option<f64>,
    /// What it is computed with; of what is computed.
    pub expression: Option<String>,
    /// The last reading, as text.
    pub last_reading: String,
    /// Values of the newest rows of the first archive, the oldest first; not a number where they are unknown.
    pub recent: Vec<f64>,
}

/// An archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// Its name: its kind and the seconds of a row, such as `AVERAGE/300`.
    pub name: String,
    /// Its kind, such as `AVERAGE`.
    pub kind: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// Primary data points of each row.
    pub points_per_row: u64,
    /// Seconds of each row.
    pub row_seconds: Option<u64>,
    /// When the interval of the oldest row begins.
    pub begin: Option<Timestamp>,
    /// When the interval of the newest row ends.
    pub end: Option<Timestamp>,
    /// The place of the newest row in the file.
    pub current_row: u64,
}

impl DatabaseInfo {
    pub(super) fn new(recording: &Rrd) -> Self {
        let database = recording.database();
        let state = &database.state;
        let sources = database.sources.iter().zip(&state.sources);
        let archives = database.archives.iter().zip(&state.archives).enumerate();
        let last = state.last_update;
        let nanos = (u64::from(last.fraction()) * 1_000_000_000) >> 30;
        // Microseconds, which are what most files hold, are whole numbers.
        let (seconds, micros) = last.to_micros();
        let last_update = match kymo_rrd::Time::from_micros(seconds, micros) == Some(last) {
            true => (seconds, micros * 1000),
            false => (last.seconds(), nanos as u32),
        };
        Self {
            path: recording.path().to_path_buf(),
            version: recording.format().version,
            detection: match recording.form() {
                Form::Native(detection) => Some(detection.clone()),
                Form::Portable | Form::Rrd4j { .. } | Form::Xml => None,
            },
            bytes: recording.size(),
            step: database.step,
            last_update,
            sources: sources
                .enumerate()
                .map(|(position, (source, state))| {
                    let mut info = SourceInfo {
                        name: source.name.to_string(),
                        kind: source.kind.name(),
                        heartbeat: None,
                        min: None,
                        max: None,
                        expression: None,
                        last_reading: state.last_reading.to_string(),
                        recent: recent(recording, position),
                    };
                    match &source.kind {
                        SourceKind::Measured {
                            heartbeat,
                            min,
                            max,
                            ..
                        } => {
                            info.heartbeat = Some(*heartbeat);
                            (info.min, info.max) = (min.get(), max.get());
                        }
                        SourceKind::Compute(program) => {
                            let mut text = Line::new();
                            program.write(&database.sources, &mut text);
                            let text = String::from_utf8_lossy(text.as_bytes());
                            info.expression = Some(text.into_owned());
                        }
                    }
                    info
                })
                .collect(),
            archives: archives
                .map(|(index, (archive, state))| {
                    let seconds = database.row_seconds(index);
                    let last = recording.chunk_count(index).checked_sub(1);
                    let first = recording.chunk(index, 0).and_then(|chunk| chunk.begin_time);
                    let interval = seconds
                        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
                        .and_then(|nanos| i64::try_from(nanos).ok());
                    let begin = first
                        .zip(interval)
                        .and_then(|(first, nanos)| first.as_nanos().checked_sub(nanos));
                    ArchiveInfo {
                        name: recording.streams()[index].name.to_string(),
                        kind: archive.kind.name(),
                        rows: archive.rows,
                        points_per_row: archive.points_per_row,
                        row_seconds: seconds,
                        begin: begin.map(Timestamp::from_nanos),
                        end: last.and_then(|last| recording.chunk(index, last)?.end_time),
                        current_row: state.current_row,
                    }
                })
                .collect(),
        }
    }

    /// The time of the last update, where it is on the common line.
    fn last_update(&self) -> Option<Timestamp> {
        let (seconds, nanos) = self.last_update;
        let nanos = seconds
            .checked_mul(1_000_000_000)?
            .checked_add(nanos.into())?;
        Some(Timestamp::from_nanos(nanos))
    }

    pub(super) fn write_json(&self, json: &mut Json) {
        let format = Format {
            name: "rrd",
            version: self.version,
        };
        begin_recording(json, &self.path, format);
        let detection = self.detection.as_ref();
        json.entry("machine", detection.map(|found| found.machine.name()));
        json.begin_list("machines_alike");
        for machine in detection.iter().flat_map(|found| &found.alike) {
            json.value(machine.name().as_bytes());
        }
        json.end_list();
        json.entry(
            "confidence",
            detection.map(|found| confidence(found.confidence)),
        );
        json.entry(
            "alternative",
            detection.and_then(|found| match found.confidence {
                Confidence::Likely { alternative } => Some(alternative.name()),
                Confidence::Certain | Confidence::Overruled => None,
            }),
        );
        json.entry(
            "byte_order",
            detection.map(|found| byte_order_name(found.machine.byte_order())),
        );
        json.entry("bytes", self.bytes);
        json.entry("step", self.step);
        json.entry("last_update", self.last_update().map(Timestamp::as_nanos));
        json.begin_list("sources");
        for source in &self.sources {
            json.begin_object();
            json.entry("name", source.name.as_bytes());
            json.entry("kind", source.kind.as_bytes());
            json.entry("heartbeat", source.heartbeat);
            for (key, bound) in [("min", source.min), ("max", source.max)] {
                json.entry(key, bound);
            }
            json.entry("expression", source.expression.as_deref());
            json.entry("last_reading", source.last_reading.as_bytes());
            json.end_object();
        }
        json.end_list();
        json.begin_list("archives");
        for archive in &self.archives {
            json.begin_object();
            json.entry("name", archive.name.as_bytes());
            json.entry("kind", archive.kind.as_bytes());
            for (key, number) in [
                ("rows", archive.rows),
                ("points_per_row", archive.points_per_row),
                ("current_row", archive.current_row),
            ] {
                json.entry(key, number);
            }
            json.entry("row_seconds", archive.row_seconds);
            for (key, time) in [("begin", archive.begin), ("end", archive.end)] {
                json.entry(key, time.map(Timestamp::as_nanos));
            }
            json.end_object();
        }
        json.end_list();
        write_faults(json, &[], 0);
        json.end_object();
    }

    pub(super) fn to_text(&self, style: &Style) -> String {
        let mut text = format!("{}\n", visible(&self.path.to_string_lossy()));
        let mut table = Table::default();
        let mut line = |key: &str, value: String| table.row([format!("  {key}"), value]);
        line("format", format!("RRD {}", self.version));
        if let Some(found) = &self.detection {
            line("machine", machine_text(found));
            line("confidence", confidence_text(found.confidence));
            let order = byte_order_name(found.machine.byte_order());
            line("byte order", order.to_owned());
        }
        line("step", format!("{} s", style.count(self.step)));
        line(
            "last update",
            match self.last_update() {
                Some(time) => style.time(time),
                None => format!("{} s after 1970", self.last_update.0),
            },
        );
        line("bytes", style.count(self.bytes));
        line("data sources", style.count(self.sources.len() as u64));
        line("archives", style.count(self.archives.len() as u64));
        text += &table.align(&[false, false]);
        text += &self.sources_text(style);
        text += &self.archives_text(style);
        text
    }

    fn sources_text(&self, style: &Style) -> String {
        let mut table = Table::default();
        table.header(&[
            "  data source",
            "kind",
            "heartbeat",
            "min",
            "max",
            "last reading",
        ]);
        let bound = |bound: Option<f64>| bound.map_or_else(|| "-".to_owned(), |b| b.to_string());
        for source in &self.sources {
            table.row([
                format!("  {}", source.name),
                source.kind.to_owned(),
                source
                    .heartbeat
                    .map_or_else(|| "-".to_owned(), |seconds| style.count(seconds)),
                bound(source.min),
                bound(source.max),
                match &source.expression {
                    Some(expression) => format!("= {expression}"),
                    None => source.last_reading.clone(),
                },
            ]);
        }
        let text = table.fit(&[false, false, true, true, true, false], style);
        format!("\n{text}{}", self.recent_text(style))
    }

    /// How each data source went lately, if the lines go to a terminal.
    fn recent_text(&self, style: &Style) -> String {
        let first = self.archives.first();
        let (Some(archive), Some(_)) = (first, style.width()) else {
            return String::new();
        };
        let mut table = Table::default();
        table.header(&[
            "  data source",
            "least",
            "most",
            &format!("last rows of {}", archive.name),
        ]);
        for source in &self.sources {
            let known = || {
                source
                    .recent
                    .iter()
                    .copied()
                    .filter(|value| !value.is_nan())
            };
            let shown = |value: f64| match value.is_finite() {
                true => {
                    let mut text = Line::new();
                    text.general(value);
                    String::from_utf8_lossy(text.as_bytes()).into_owned()
                }
                false => "-".to_owned(),
            };
            table.row([
                format!("  {}", source.name),
                shown(known().fold(f64::INFINITY, f64::min)),
                shown(known().fold(f64::NEG_INFINITY, f64::max)),
                sparkline(source.recent.iter().map(|&value| Some(value)), None),
            ]);
        }
        format!("\n{}", table.fit(&[false, true, true, false], style))
    }

    fn archives_text(&self, style: &Style) -> String {
        let mut table = Table::default();
        table.header(&["  archive", "rows", "s/row", "begins", "ends"]);
        for archive in &self.archives {
            table.row([
                format!("  {}", archive.name),
                style.count(archive.rows),
                archive
                    .row_seconds
                    .map_or_else(|| "-".to_owned(), |seconds| style.count(seconds)),
                style.optional_time(archive.begin),
                style.optional_time(archive.end),
            ]);
        }
        // The names of archives have the length of a row.
        let right = [false, true, true, false, false];
        format!("\n{}", table.fit_without(&[2, 3], &right, style))
    }
}

/// The values of a data source in the newest rows of the first archive.
fn recent(recording: &Rrd, source: usize) -> Vec<f64> {
    /// Maximum number of values that fit beside a name.
    const VALUES: u64 = 48;
    let rows = recording.rows();
    let count = rows.grid(0).map_or(0, |grid| grid.rows);
    let values = (count.saturating_sub(VALUES)..count).filter_map(|row| rows.value(0, row, source));
    values
        .map(|value| value.get().unwrap_or(f64::NAN))
        .collect()
}

/// The machine, and those that write the same.
fn machine_text(found: &Detection) -> String {
    let others: Vec<&str> = found
        .alike
        .iter()
        .map(|machine| machine.name())
        .filter(|name| *name != found.machine.name())
        .collect();
    match others.is_empty() {
        true => found.machine.name().to_owned(),
        false => format!("{} (the same: {})", found.machine.name(), others.join(", ")),
    }
}

const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "certain",
        Confidence::Likely { .. } => "likely",
        Confidence::Overruled => "overruled",
    }
}

fn confidence_text(found: Confidence) -> String {
    let machine: Option<&Machine> = match found {
        Confidence::Likely { alternative } => Some(alternative),
        Confidence::Certain | Confidence::Overruled => None,
    };
    match machine {
        Some(machine) => format!("likely; or else {}", machine.name()),
        None => confidence(found).to_owned(),
    }
}
