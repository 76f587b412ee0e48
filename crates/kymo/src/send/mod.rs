//! Samples as collectd's lists of values, to be sent.
//!
//! * Lists and messages of collectd are sent as they were received, with their counts of 2^-30 s.
//! * Rows of round-robin databases are sent as levels, since that is what archives hold: rates of
//!   what was counted. The name is that of the file, `HOST/PLUGIN/TYPE.rrd`. Where all data sources
//!   are levels a row is one list of that type; otherwise each of them is a list of the type
//!   `gauge`, whose instance tells type and data source. Rows of which nothing is known are left
//!   out.
//! * Other recordings have events, which are no samples.

mod entries;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_collectd::recording::{MESSAGES, VALUES, list_field, message_field};
use kymo_collectd::{Identifier, NameError, Value};
use kymo_model::{Chunk, Event, Fault, FieldId, Recording, Visitor};
use kymo_rrd::Database;
use kymo_rrd::model::{ArchiveKind, Consolidation, Reading, SourceKind};
use kymo_text::Line;
use kymo_time::CdTime;

pub use self::entries::{Entry, entries};
use self::entries::{put_list, put_message};
use crate::AnyRecording;
use crate::samples::{Samples, SamplesPen};
use crate::show::{Assembler, Message, Painter, Teller, WallOptions};

/// Why a recording cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListsError {
    /// It has events, and no samples.
    Events(PathBuf),
    /// Its path does not tell a name.
    Unnamed(PathBuf, NameError),
    /// A name was given for more than one database.
    OneName,
}

impl fmt::Display for ListsError {
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

impl std::error::Error for ListsError {}

/// Makes entries, which [`entries`] reads again. What was lost is told as warnings.
#[derive(Debug)]
pub struct Lists {
    /// Of each recording what its rows become; none of those of collectd.
    rows: Arc<Vec<Vec<Rows>>>,
    teller: Teller,
}

/// What the rows of an archive become.
#[derive(Debug)]
struct Rows {
    /// Whether they are sent.
    is_sent: bool,
    interval: CdTime,
    /// Names, each of the next so many data sources.
    names: Vec<(String, usize)>,
}

impl Lists {
    /// Of databases, the rows of all archives are sent, or else those of the one with the most
    /// rows in an hour, averages where there are any. `name` is that of the only database, where
    /// its path does not tell it.
    ///
    /// # Errors
    ///
    /// A recording that has no samples or no name.
    pub fn new(
        of: &[AnyRecording],
        all_archives: bool,
        name: Option<&str>,
        wall: WallOptions,
    ) -> Result<Self, ListsError> {
        let is_database = |of: &&AnyRecording| matches!(of, AnyRecording::Rrd(_));
        if name.is_some() && of.iter().filter(is_database).count() > 1 {
            return Err(ListsError::OneName);
        }
        let rows = of.iter().map(|of| match of {
            AnyRecording::Metrics(_) => Ok(Vec::new()),
            AnyRecording::Rrd(database) => {
                let database = database.database();
                rows_of(of.path(), database, all_archives, name)
            }
            AnyRecording::Ctf(_) | AnyRecording::Cpel(_) | AnyRecording::Elog(_) => {
                Err(ListsError::Events(of.path().to_path_buf()))
            }
        });
        Ok(Self {
            rows: Arc::new(rows.collect::<Result<_, _>>()?),
            teller: Teller::new(wall),
        })
    }
}

fn rows_of(
    path: &Path,
    database: &Database,
    all: bool,
    name: Option<&str>,
) -> Result<Vec<Rows>, ListsError> {
    let unnamed = |error| ListsError::Unnamed(path.to_path_buf(), error);
    let of_path = name_of(path);
    let name = name.map_or(of_path.as_deref(), Some);
    let id = name.ok_or(NameError::Parts).and_then(Identifier::parse);
    let id = id.and_then(|id| id.check().map(|()| id)).map_err(unnamed)?;
    let is_level = |kind: &SourceKind| match kind {
        SourceKind::Measured { reading, .. } => *reading == Reading::Gauge,
        SourceKind::Compute(_) => true,
    };
    let names = match database.sources.iter().all(|of| is_level(&of.kind)) {
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
        let of = &database.archives[archive];
        let is_average = of.kind.name() == average.name();
        (!is_average, of.points_per_row)
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

/// The name that a path tells: its last three components without their suffix.
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

impl Assembler for Lists {
    type Painter = ListsPainter;

    fn painter(&self) -> ListsPainter {
        ListsPainter {
            rows: Arc::clone(&self.rows),
            source: Source::Values,
            row: Line::new(),
        }
    }

    fn event(
        &mut self,
        _message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        out.push(text);
    }

    fn teller(&mut self) -> Option<&mut Teller> {
        Some(&mut self.teller)
    }
}

/// Makes entries of events.
#[derive(Debug)]
pub struct ListsPainter {
    rows: Arc<Vec<Vec<Rows>>>,
    source: Source,
    row: Line,
}

/// What the events of a chunk are.
#[derive(Clone, Copy, Debug)]
enum Source {
    Values,
    Messages,
    Rows { recording: usize, archive: usize },
}

impl Painter for ListsPainter {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.source = match (of, chunk.stream) {
            (AnyRecording::Metrics(_), MESSAGES) => Source::Messages,
            (AnyRecording::Metrics(_), VALUES) => Source::Values,
            (_, archive) => Source::Rows { recording, archive },
        };
        Ok(())
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        match self.source {
            Source::Values => {
                let mut pen = ListPen::default();
                event.visit(&mut pen)?;
                let time = moved(event, CdTime::from_ticks(pen.time));
                put_list(out, &pen.id, time, pen.interval, &pen.values);
            }
            Source::Messages => {
                let mut pen = MessagePen::default();
                event.visit(&mut pen)?;
                let time = moved(event, CdTime::from_ticks(pen.time));
                put_message(out, time, [&pen.severity, &pen.id, &pen.message]);
            }
            Source::Rows { recording, archive } => {
                let rows = self.rows.get(recording).and_then(|rows| rows.get(archive));
                let Some(rows) = rows.filter(|rows| rows.is_sent) else {
                    return Ok(());
                };
                self.row.clear();
                event.visit(&mut SamplesPen {
                    line: &mut self.row,
                })?;
                let nanos = event.timestamp().map_or(0, |time| time.as_nanos());
                let nanos = u64::try_from(nanos).unwrap_or(0);
                let time = CdTime::from_nanos(nanos).unwrap_or(CdTime::ZERO);
                let mut samples = Samples::new(self.row.as_bytes());
                for (name, count) in &rows.names {
                    let values: Vec<_> = samples.by_ref().take(*count).collect();
                    if values.iter().all(Option::is_none) {
                        continue;
                    }
                    let values = values.into_iter();
                    let values: Vec<_> = values
                        .map(|value| Value::Gauge(value.unwrap_or(f64::NAN)))
                        .collect();
                    put_list(out, name.as_bytes(), time, rows.interval.ticks(), &values);
                }
            }
        }
        Ok(())
    }
}

/// The time of an event, where it was moved on the time line; its own count where it was not.
fn moved<E: Event>(event: &E, time: CdTime) -> CdTime {
    match event.timestamp() {
        Some(shown) if time.timestamp() != Some(shown) => {
            let nanos = u64::try_from(shown.as_nanos()).unwrap_or(0);
            CdTime::from_nanos(nanos).unwrap_or(time)
        }
        _ => time,
    }
}

/// A list of collectd.
#[derive(Default)]
struct ListPen {
    time: u64,
    interval: u64,
    id: Vec<u8>,
    values: Vec<Value>,
}

impl Visitor for ListPen {
    fn uint(&mut self, field: FieldId, value: u64) {
        const COUNTER: FieldId = FieldId(list_field::FIRST_KIND);
        match field {
            list_field::TIME => self.time = value,
            list_field::INTERVAL => self.interval = value,
            COUNTER => self.values.push(Value::Counter(value)),
            _ => self.values.push(Value::Absolute(value)),
        }
    }

    fn sint(&mut self, _field: FieldId, value: i64) {
        self.values.push(Value::Derive(value));
    }

    fn float(&mut self, _field: FieldId, value: f64) {
        self.values.push(Value::Gauge(value));
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        if field == list_field::ID {
            self.id.extend_from_slice(text);
        }
    }
}

/// A message of collectd.
#[derive(Default)]
struct MessagePen {
    time: u64,
    severity: Vec<u8>,
    id: Vec<u8>,
    message: Vec<u8>,
}

impl Visitor for MessagePen {
    fn uint(&mut self, field: FieldId, value: u64) {
        if field == message_field::TIME {
            self.time = value;
        }
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        match field {
            message_field::SEVERITY => self.severity.extend_from_slice(text),
            message_field::ID => self.id.extend_from_slice(text),
            message_field::MESSAGE => self.message.extend_from_slice(text),
            _ => {}
        }
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
