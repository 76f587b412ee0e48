//! What rrdtool's `info` prints: a line for each fact, `key = value`.
//!
//! Other commands print facts too: `updatev` and `graphv`.

use kymo_text::Line;

use crate::model::{ArchiveKind, Scratch, Slot, SourceKind};
use crate::text::xml::history;
use crate::{Database, Value};

/// A fact of a list: a key and a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is about, such as `ds[load].type`.
    pub key: String,
    /// The value.
    pub value: FactValue,
}

/// The value of a fact. Programs get its type with it.
#[derive(Clone, Debug, PartialEq)]
pub enum FactValue {
    /// A number; NaN if it is unknown.
    Number(f64),
    /// A count or a time.
    Count(u64),
    /// A text.
    Text(Vec<u8>),
    /// A status.
    Integer(i32),
    /// A picture or a table.
    Blob(Vec<u8>),
}

impl Fact {
    /// A fact.
    pub fn new(key: impl Into<String>, value: FactValue) -> Self {
        let key = key.into();
        Self { key, value }
    }

    /// Appends its line, as `rrdtool info` prints it.
    pub fn print(&self, out: &mut Line) {
        out.push(self.key.as_bytes());
        out.push(b" = ");
        self.value.print(out);
    }
}

impl FactValue {
    /// A text.
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Text(text.into())
    }

    fn print(&self, out: &mut Line) {
        match self {
            Self::Number(number) if number.is_nan() => out.push(b"NaN"),
            Self::Number(number) => out.scientific(*number, 10),
            Self::Count(count) => out.decimal(*count),
            Self::Text(text) => {
                out.push_byte(b'"');
                out.push(text);
                out.push_byte(b'"');
            }
            Self::Integer(number) => out.signed((*number).into()),
            Self::Blob(bytes) => {
                out.push(format!("BLOB_SIZE:{}\n", bytes.len()).as_bytes());
                return out.push(bytes);
            }
        }
        out.push_byte(b'\n');
    }
}

/// The facts that `rrdtool info` prints.
///
/// `file` is the file's name as it was given, `header_size` where the values of the first
/// archive begin, in bytes.
pub fn info(database: &Database, file: &[u8], header_size: u64) -> Vec<Fact> {
    let mut info = Info {
        facts: Vec::new(),
        prefix: String::new(),
    };
    info.text("filename", file);
    info.text("rrd_version", format!("{:04}", database.version).as_bytes());
    info.count("step", database.step);
    info.count("last_update", database.state.last_update.seconds() as u64);
    info.count("header_size", header_size);
    for (index, (source, state)) in database
        .sources
        .iter()
        .zip(&database.state.sources)
        .enumerate()
    {
        info.prefix = format!("ds[{}].", source.name);
        info.count("index", index as u64);
        info.text("type", source.kind.name().as_bytes());
        match &source.kind {
            SourceKind::Measured {
                heartbeat,
                min,
                max,
                ..
            } => {
                info.count("minimal_heartbeat", *heartbeat);
                info.value("min", *min);
                info.value("max", *max);
            }
            SourceKind::Compute(program) => {
                let mut text = Line::new();
                program.write(&database.sources, &mut text);
                info.text("cdef", text.as_bytes());
            }
        }
        info.text("last_ds", state.last_reading.as_bytes());
        info.value("value", state.value);
        info.count("unknown_sec", state.unknown_seconds);
    }
    for (index, (archive, state)) in database
        .archives
        .iter()
        .zip(&database.state.archives)
        .enumerate()
    {
        info.prefix = format!("rra[{index}].");
        info.text("cf", archive.kind.name().as_bytes());
        info.count("rows", archive.rows);
        info.count("cur_row", state.current_row);
        info.count("pdp_per_row", archive.points_per_row);
        info.parameters(&archive.kind, database.version);
        for (source, scratch) in state.scratch.iter().enumerate() {
            info.prefix = format!("rra[{index}].cdp_prep[{source}].");
            info.scratch(&archive.kind, scratch);
        }
    }
    info.facts
}

struct Info {
    facts: Vec<Fact>,
    /// What the keys begin with.
    prefix: String,
}

impl Info {
    fn fact(&mut self, key: &str, value: FactValue) {
        let key = format!("{}{key}", self.prefix);
        self.facts.push(Fact { key, value });
    }

    fn count(&mut self, key: &str, count: u64) {
        self.fact(key, FactValue::Count(count));
    }

    fn text(&mut self, key: &str, text: &[u8]) {
        self.fact(key, FactValue::text(text));
    }

    fn value(&mut self, key: &str, value: Value) {
        self.fact(key, FactValue::Number(value.get().unwrap_or(f64::NAN)));
    }

    fn parameters(&mut self, kind: &ArchiveKind, version: u8) {
        match *kind {
            ArchiveKind::Consolidated { xff, .. } => self.value("xff", xff),
            ArchiveKind::HwPredict { alpha, beta, .. } => {
                self.value("alpha", alpha);
                self.value("beta", beta);
            }
            ArchiveKind::Seasonal {
                gamma,
                smoothing_window,
                ..
            } => {
                self.value("gamma", gamma);
                if version >= 4 {
                    self.value("smoothing_window", smoothing_window);
                }
            }
            ArchiveKind::DevPredict { .. } => {}
            ArchiveKind::Failures {
                delta_positive,
                delta_negative,
                window,
                threshold,
                ..
            } => {
                self.value("delta_pos", delta_positive);
                self.value("delta_neg", delta_negative);
                self.count("failure_threshold", threshold);
                self.count("window_length", window);
            }
        }
    }

    fn scratch(&mut self, kind: &ArchiveKind, scratch: &Scratch) {
        let facts: &[(usize, &str)] = match kind {
            ArchiveKind::Consolidated { .. } => &[
                (Scratch::VALUE, "value"),
                (Scratch::UNKNOWN_POINTS, "unknown_datapoints"),
            ],
            ArchiveKind::HwPredict { .. } => &[
                (Scratch::INTERCEPT, "intercept"),
                (Scratch::SLOPE, "slope"),
                (Scratch::NULL_COUNT, "NaN_count"),
            ],
            ArchiveKind::Seasonal {
                deviation: false, ..
            } => &[(Scratch::SEASONAL, "seasonal")],
            ArchiveKind::Seasonal {
                deviation: true, ..
            } => &[(Scratch::SEASONAL, "deviation")],
            ArchiveKind::DevPredict { .. } => &[],
            ArchiveKind::Failures { .. } => {
                let mut text = Line::new();
                history(kind, scratch, &mut text);
                return self.text("history", text.as_bytes());
            }
        };
        for &(slot, key) in facts {
            match kind.slot(slot) {
                Slot::Counter => self.count(key, scratch.counter(slot)),
                _ => self.value(key, scratch.value(slot)),
            }
        }
    }
}
