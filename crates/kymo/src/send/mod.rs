//! Samples as collectd's lists of values, to be sent.
//!
//! * Lists and messages of collectd are sent as they were received, with their counts of 2^-30 s.
//! * Rows of round-robin databases are sent as levels, since that is what archives hold: rates of
//!   what was counted. The name is that of the file, `HOST/PLUGIN/TYPE.rrd`. Where all data sources
//!   are levels a row is one list of that type; otherwise each of them is a list of the type
//!   `gauge`, whose instance names type and data source. Rows of which nothing is known are left
//!   out.
//! * Other recordings have events, which are not samples.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use kymo_collectd::recording::{MESSAGES, VALUES, list_field, message_field};
use kymo_collectd::{Identifier, NameError, Severity, Value};
use kymo_model::{ColumnData, FieldId, Recording, Value as FieldValue};
use kymo_rrd::Database;
use kymo_rrd::model::{ArchiveKind, Consolidation, Reading, SourceKind};
use kymo_text::Line;
use kymo_time::{CdTime, Timestamp};

use crate::AnyRecording;
use crate::pipeline::{Row, Values};
use crate::show::{LossReporter, Sink, WallOptions};
use crate::timeline::{Filler, RowPlan, named_fields};

/// Why a recording cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// It has events, and no samples.
    Events(PathBuf),
    /// Its path does not contain a name.
    Unnamed(PathBuf, NameError),
    /// A name was given for more than one database.
    OneName,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(path) => write!(
                f,
                "{}: it has events and no samples: expected datagrams of collectd or round-robin \
                 databases",
                path.display()
            ),
            Self::Unnamed(path, error) => write!(
                f,
                "{}: expected a path that ends in `HOST/PLUGIN/TYPE.rrd`: {error}",
                path.display()
            ),
            Self::OneName => f.write_str("a name can be given to one database only"),
        }
    }
}

impl std::error::Error for SendError {}

/// What is sent of some recordings.
#[derive(Debug)]
pub struct SendPlan {
    columns: RowPlan,
    /// Of each recording what its rows become; nothing of those of collectd.
    rows: Vec<Vec<Rows>>,
}

/// What the rows of an archive become.
#[derive(Debug)]
struct Rows {
    /// Whether they are sent.
    is_sent: bool,
    interval: CdTime,
    /// Names, each with the number of successive data sources that have it.
    names: Vec<(String, usize)>,
}

impl SendPlan {
    /// Of databases, the rows of all archives are sent, or else those of the one with the most
    /// rows in an hour, averages where there are any. `name` is that of the only database, where
    /// its path does not contain it.
    ///
    /// # Errors
    ///
    /// A recording that has no samples or no name.
    pub fn new(
        recordings: &[AnyRecording],
        all_archives: bool,
        name: Option<&str>,
    ) -> Result<Self, SendError> {
        let is_database = |recording: &&AnyRecording| matches!(recording, AnyRecording::Rrd(_));
        if name.is_some() && recordings.iter().filter(is_database).count() > 1 {
            return Err(SendError::OneName);
        }
        let rows = recordings.iter().map(|recording| match recording {
            AnyRecording::Metrics(_) => Ok(Vec::new()),
            AnyRecording::Rrd(database) => {
                let database = database.database();
                rows_of(recording.path(), database, all_archives, name)
            }
            AnyRecording::Ctf(_)
            | AnyRecording::Symbolized(_)
            | AnyRecording::Cpel(_)
            | AnyRecording::Elog(_)
            | AnyRecording::Perfetto(_)
            | AnyRecording::Maps(_) => Err(SendError::Events(recording.path().to_path_buf())),
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let fields = |recording: usize, class: usize| match &recordings[recording] {
            AnyRecording::Metrics(_) if class == MESSAGES => MESSAGE_FIELDS.to_vec(),
            AnyRecording::Metrics(_) => LIST_FIELDS.to_vec(),
            source if rows[recording][class].is_sent => {
                named_fields(&source.event_classes()[class]).collect()
            }
            _ => Vec::new(),
        };
        Ok(Self {
            columns: RowPlan::default().with_fields(recordings, fields),
            rows,
        })
    }
}

/// Columns of lists of values.
const LIST_FIELDS: [FieldId; 4] = {
    use list_field::{ID, INTERVAL, TIME, VALUES};
    [TIME, INTERVAL, ID, VALUES]
};
/// Columns of messages.
const MESSAGE_FIELDS: [FieldId; 4] = {
    use message_field::{ID, MESSAGE, SEVERITY, TIME};
    [TIME, SEVERITY, ID, MESSAGE]
};

fn rows_of(
    path: &Path,
    database: &Database,
    all: bool,
    name: Option<&str>,
) -> Result<Vec<Rows>, SendError> {
    let unnamed = |error| SendError::Unnamed(path.to_path_buf(), error);
    let of_path = name_of(path);
    let name = name.map_or(of_path.as_deref(), Some);
    let id = name.ok_or(NameError::Parts).and_then(Identifier::parse);
    let id = id.and_then(|id| id.check().map(|()| id)).map_err(unnamed)?;
    let is_level = |kind: &SourceKind| match kind {
        SourceKind::Measured { reading, .. } => *reading == Reading::Gauge,
        SourceKind::Compute(_) => true,
    };
    let names = match database.sources.iter().all(|source| is_level(&source.kind)) {
        true => vec![(id.canonical(), database.sources.len())],
        false => {
            let name =
                |source: &kymo_rrd::model::DataSource| (level_of(&id, &source.name.to_string()), 1);
            database.sources.iter().map(name).collect()
        }
    };
    // Averages first, then the shortest rows.
    let rank = |archive: usize| {
        let average = ArchiveKind::Consolidated {
            function: Consolidation::Average,
            xff: kymo_rrd::Value::UNKNOWN,
        };
        let archive = &database.archives[archive];
        let is_average = archive.kind.name() == average.name();
        (!is_average, archive.points_per_row)
    };
    let best = (0..database.archives.len()).min_by_key(|archive| rank(*archive));
    let rows = (0..database.archives.len()).map(|archive| {
        let seconds = database.row_seconds(archive).unwrap_or(0);
        let interval = i64::try_from(seconds).ok();
        let interval = interval.and_then(|seconds| CdTime::from_seconds(seconds).ok());
        Rows {
            is_sent: all || best == Some(archive),
            interval: interval.unwrap_or(CdTime::ZERO),
            names: names.clone(),
        }
    });
    Ok(rows.collect())
}

/// The name that a path contains: its last three components without their suffix.
fn name_of(path: &Path) -> Option<String> {
    let mut path = std::path::absolute(path).ok()?;
    if path.extension().is_some_and(|suffix| suffix == "rrd") {
        path.set_extension("");
    }
    let mut parts = path.iter().rev().take(3).map(|part| part.to_str());
    let (type_name, plugin, host) = (parts.next()??, parts.next()??, parts.next()??);
    Some(format!("{host}/{plugin}/{type_name}"))
}

/// The name of one data source as a level.
fn level_of(id: &Identifier<'_>, source: &str) -> String {
    // `value` is what the only one of a type is called.
    let source = if source == "value" { "" } else { source };
    let parts = [id.type_name, id.type_instance, source];
    let instance: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let instance = instance.join("-");
    let level = Identifier {
        type_name: "gauge",
        type_instance: &instance,
        ..*id
    };
    level.canonical()
}

/// Takes what is sent, in the order of time.
pub trait Receiver {
    /// A list of values; its interval is 0 if it is not known.
    ///
    /// # Errors
    ///
    /// What ends the run.
    fn list(
        &mut self,
        id: &str,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
    ) -> io::Result<()>;

    /// A message.
    ///
    /// # Errors
    ///
    /// What ends the run.
    fn message(
        &mut self,
        id: &str,
        time: CdTime,
        severity: Severity,
        message: &str,
    ) -> io::Result<()>;
}

/// Makes lists and messages of rows. What was lost is reported as warnings.
#[derive(Debug)]
pub struct Lists<'p, R> {
    plan: &'p SendPlan,
    receiver: R,
    values: Vec<Value>,
    result: io::Result<()>,
    loss_reporter: LossReporter,
}

impl<'p, R: Receiver> Lists<'p, R> {
    /// Lists and messages of the recordings that the plan was made for; `wall` is how times are shown in
    /// warnings.
    pub fn new(plan: &'p SendPlan, receiver: R, wall: WallOptions) -> Self {
        Self {
            plan,
            receiver,
            values: Vec::new(),
            result: Ok(()),
            loss_reporter: LossReporter::new(wall),
        }
    }

    /// What ended the run.
    ///
    /// # Errors
    ///
    /// The receiver's.
    pub fn finish(self) -> io::Result<()> {
        self.result
    }

    fn send(&mut self, row: &Row<'_>, recording: &AnyRecording) -> io::Result<()> {
        let (values, time) = (&row.values, row.message.time);
        match (recording, row.message.stream) {
            (AnyRecording::Metrics(_), MESSAGES) => {
                let [count, severity, id, message] = [0, 1, 2, 3].map(|column| values.get(column));
                match Severity::from_name(text(severity)) {
                    Some(severity) => {
                        let time = aligned(time, number(count));
                        self.receiver
                            .message(text(id), time, severity, text(message))
                    }
                    None => Ok(()),
                }
            }
            (AnyRecording::Metrics(_), VALUES) => {
                let [count, interval, id] = [0, 1, 2].map(|column| values.get(column));
                self.values.clear();
                read_list(values, 3, &mut self.values);
                let (time, interval) = (aligned(time, number(count)), number(interval));
                self.receiver.list(text(id), time, interval, &self.values)
            }
            (_, archive) => {
                let rows = &self.plan.rows[row.message.recording][archive];
                if !rows.is_sent {
                    return Ok(());
                }
                let time = time.map_or(CdTime::ZERO, |time| of_nanos(time).unwrap_or(CdTime::ZERO));
                let mut source = 0;
                for (name, count) in &rows.names {
                    self.values.clear();
                    let mut is_known = false;
                    for column in source..source + count {
                        let value = match values.get(column) {
                            FieldValue::Float(value) => Some(value),
                            _ => None,
                        };
                        is_known |= value.is_some();
                        self.values.push(Value::Gauge(value.unwrap_or(f64::NAN)));
                    }
                    source += count;
                    if is_known {
                        self.receiver
                            .list(name, time, rows.interval, &self.values)?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl<'p, R: Receiver> Sink for Lists<'p, R> {
    type Renderer = Filler<'p>;

    fn renderer(&self) -> Filler<'p> {
        Filler::new(&self.plan.columns)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(
        &mut self,
        row: &Row<'_>,
        recordings: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        self.result = self.send(row, &recordings[row.message.recording]);
        self.result.is_ok()
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}

/// Appends the values of a list, which are variants of the kinds.
fn read_list(values: &Values<'_>, column: usize, to: &mut Vec<Value>) {
    let (columns, row) = values.columns();
    let Some(ColumnData::List { offsets, items }) = columns.get(column).map(|column| &column.data)
    else {
        return;
    };
    let ColumnData::Struct { members, .. } = &items.data else {
        return;
    };
    for item in offsets[row]..offsets[row + 1] {
        let kinds = members.iter().enumerate();
        to.extend(kinds.filter_map(|(kind, member)| {
            Some(match (kind, member.value(item as usize)) {
                (0, FieldValue::Uint(value)) => Value::Counter(value),
                (_, FieldValue::Uint(value)) => Value::Absolute(value),
                (_, FieldValue::Sint(value)) => Value::Derive(value),
                (_, FieldValue::Float(value)) => Value::Gauge(value),
                _ => return None,
            })
        }));
    }
}

fn text(value: FieldValue<'_>) -> &str {
    match value {
        FieldValue::Text(text) => std::str::from_utf8(text).unwrap_or_default(),
        _ => "",
    }
}

fn number(value: FieldValue<'_>) -> CdTime {
    CdTime::from_ticks(match value {
        FieldValue::Uint(value) => value,
        _ => 0,
    })
}

fn of_nanos(time: Timestamp) -> Option<CdTime> {
    CdTime::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(0)).ok()
}

/// The time of an entry: its own count, unless it was moved on the time line.
fn aligned(shown: Option<Timestamp>, own: CdTime) -> CdTime {
    match shown {
        Some(shown) if own.timestamp() != Some(shown) => of_nanos(shown).unwrap_or(own),
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_levels() {
        let id = Identifier::parse("h/p-1/if_octets-eth0").unwrap();
        assert_eq!(level_of(&id, "rx"), "h/p-1/gauge-if_octets-eth0-rx");
        let id = Identifier::parse("h/p/derive").unwrap();
        assert_eq!(level_of(&id, "value"), "h/p/gauge-derive");
        let path = Path::new("/var/lib/rrd/h.example/cpu-0/cpu-idle.rrd");
        assert_eq!(name_of(path).as_deref(), Some("h.example/cpu-0/cpu-idle"));
        assert_eq!(name_of(Path::new("/load.rrd")), None);
    }
}
