//! Files of Whisper, in which Graphite's carbon keeps its metrics: read only.
//!
//! Numbers are big-endian. A header has the method of aggregation, the longest retention, the xFilesFactor and the
//! number of archives; a description of each archive follows, with its offset, seconds per point and points. A point is
//! the beginning of its interval and a value; a slot whose time is not the one that its place stands for is old.

use crate::engine::modify::{Changed, Filling, Giver, ModifyError};
use crate::engine::{Definition, create};
use crate::fault::{Error, Findings, Severity};
use crate::model::{Archive, ArchiveKind, Consolidation, DataSource, Reading, SourceKind};
use crate::{Form, Text, Time, Value};

/// Bytes of the header.
const HEADER: usize = 16;
/// Bytes of the description of an archive.
const DESCRIPTION: usize = 12;
/// Bytes of a point.
const POINT: usize = 12;
/// Files have a few archives.
const MOST_ARCHIVES: usize = 256;

/// How Whisper makes points of a finer archive one, by its number from 1.
const METHODS: [(&str, Consolidation); 8] = [
    ("average", Consolidation::Average),
    ("sum", Consolidation::Average),
    ("last", Consolidation::Last),
    ("max", Consolidation::Max),
    ("min", Consolidation::Min),
    ("avg_zero", Consolidation::Average),
    ("absmax", Consolidation::Max),
    ("absmin", Consolidation::Min),
];
/// The method whose values are not those of one point of the finest archive.
const SUM: &str = "sum";

/// A file of Whisper, as the database that it becomes.
#[derive(Clone, Debug)]
pub struct File {
    /// The method of aggregation, as Whisper calls it.
    pub method: &'static str,
    /// One data source, `value`, and the archives with their values.
    pub changed: Changed,
    /// What is not in the database as it is in the file.
    pub findings: Findings,
}

/// An archive of a file.
struct Level<'a> {
    seconds: u32,
    points: &'a [[u8; POINT]],
}

impl Level<'_> {
    fn get(&self, place: usize) -> (u32, f64) {
        let [a, b, c, d, value @ ..] = self.points[place];
        (u32::from_be_bytes([a, b, c, d]), f64::from_be_bytes(value))
    }

    /// The newest time of a point; `None` if there is none.
    fn newest(&self) -> Option<u32> {
        let times = (0..self.points.len()).map(|place| self.get(place).0);
        times.max().filter(|time| *time > 0)
    }

    /// The value of the interval that begins at a time.
    fn at(&self, time: i64) -> Option<f64> {
        let base = i64::from(self.get(0).0);
        if base == 0 {
            return None;
        }
        let seconds = i64::from(self.seconds);
        let count = i64::try_from(self.points.len()).ok()?;
        let place = time
            .checked_sub(base)?
            .div_euclid(seconds)
            .rem_euclid(count);
        let (found, value) = self.get(usize::try_from(place).ok()?);
        (i64::from(found) == time).then_some(value)
    }
}

/// What stands before the points.
struct Header<'a> {
    method: usize,
    xff: f64,
    levels: Vec<Level<'a>>,
}

/// Whether the header is one of Whisper, and the archives that it describes fill the file.
pub fn is_whisper(bytes: &[u8]) -> bool {
    header(bytes).is_ok_and(|header| {
        let points: usize = header.levels.iter().map(|level| level.points.len()).sum();
        HEADER + header.levels.len() * DESCRIPTION + points * POINT == bytes.len()
    })
}

fn number(bytes: &[u8], at: usize, field: &str) -> Result<u32, Error> {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or_else(|| Error::new(field, at as u64, "the end of the file", "four bytes"))
}

fn header(bytes: &[u8]) -> Result<Header<'_>, Error> {
    let method = number(bytes, 0, "aggregation method")?;
    let place = usize::try_from(method)
        .ok()
        .and_then(|method| method.checked_sub(1));
    let place = place
        .filter(|place| *place < METHODS.len())
        .ok_or_else(|| Error::new("aggregation method", 0, method, "1 to 8"))?;
    let xff = f64::from(f32::from_bits(number(bytes, 8, "xFilesFactor")?));
    if !(0.0..=1.0).contains(&xff) {
        return Err(Error::new("xFilesFactor", 8, xff, "0 to 1"));
    }
    let count = number(bytes, 12, "number of archives")?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 || count > MOST_ARCHIVES {
        let expected = format!("1 to {MOST_ARCHIVES}");
        return Err(Error::new("number of archives", 12, count, expected));
    }
    let mut levels: Vec<Level<'_>> = Vec::with_capacity(count);
    // Archives follow each other: if they could overlap, a small file would have any number of points.
    let mut free = HEADER + count * DESCRIPTION;
    for index in 0..count {
        let at = HEADER + index * DESCRIPTION;
        let field = |what: &str| format!("{what} of archive {index}");
        let offset = number(bytes, at, &field("offset"))?;
        let seconds = number(bytes, at + 4, &field("seconds per point"))?;
        let points = number(bytes, at + 8, &field("points"))?;
        let before = levels.last().map_or(1, |level| level.seconds);
        if seconds == 0 || seconds % before != 0 || (index > 0 && seconds == before) {
            let expected = format!("a multiple of {before} s");
            return Err(Error::new(
                field("seconds per point"),
                at as u64 + 4,
                seconds,
                expected,
            ));
        }
        let place = |number: u32| usize::try_from(number).ok();
        let inside = place(offset).filter(|offset| *offset >= free);
        let inside = inside.zip(place(points).and_then(|points| points.checked_mul(POINT)));
        let inside = inside.and_then(|(begin, size)| bytes.get(begin..begin.checked_add(size)?));
        let (points, _) = inside
            .inspect(|points| free = place(offset).unwrap_or(free) + points.len())
            .filter(|points| !points.is_empty())
            .ok_or_else(|| {
                let found = format!("{points} points from {offset}");
                let length = bytes.len();
                let expected = format!("points behind the archive before, in {length} bytes");
                Error::new(field("points"), at as u64, found, expected)
            })?
            .as_chunks::<POINT>();
        levels.push(Level { seconds, points });
    }
    Ok(Header {
        method: place,
        xff,
        levels,
    })
}

/// Reads a file. Archives become those of the function that suits the method of aggregation; values of `sum` become
/// means of the finest archive's intervals, as the database goes on with.
///
/// # Errors
///
/// What is wrong with the file, or that it has no points.
pub fn read(bytes: &[u8]) -> Result<File, Error> {
    let Header {
        method,
        xff,
        levels,
    } = header(bytes)?;
    let (method, function) = METHODS[method];
    let step = levels[0].seconds;
    // A row has the time of its end.
    let ends = levels
        .iter()
        .filter_map(|level| Some(i64::from(level.newest()?) + i64::from(levels[0].seconds)));
    let Some(last) = ends.max() else {
        return Err(Error::new(
            "points",
            None,
            "none that is written",
            "at least one",
        ));
    };
    let mut findings = Findings::default();
    if matches!(method, "sum" | "avg_zero" | "absmax" | "absmin") {
        findings.add(Severity::Note, || {
            let becomes = function.name();
            Error::new("aggregation method", 0, method, "average, last, max or min").because(
                format!("archives of RRDtool have no such method: they are of {becomes}"),
            )
        });
    }
    let mut definition = Definition::new(Time::from_seconds(last), u64::from(step));
    definition.sources.push(DataSource {
        name: Text::new(b"value"),
        kind: SourceKind::Measured {
            reading: Reading::Gauge,
            heartbeat: u64::from(step) * 2,
            min: Value::UNKNOWN,
            max: Value::UNKNOWN,
        },
    });
    // RRDtool counts what may be unknown, Whisper what must be known; all of a row cannot be unknown.
    let unknown = (1.0 - xff).clamp(0.0, 0.999);
    definition
        .archives
        .extend(levels.iter().map(|level| Archive {
            kind: ArchiveKind::Consolidated {
                function,
                xff: Value::from(unknown),
            },
            rows: level.points.len() as u64,
            points_per_row: u64::from(level.seconds / step),
        }));
    let problem =
        |error: ModifyError| Error::new("file", None, error, "a database of its archives");
    let database = create(&definition, |_, rows| rows - 1)?;
    let mut given = Changed::new(database).map_err(problem)?;
    fill(&mut given, &levels, method);
    // What the coarser archives prepare is in the finer ones.
    let source = given.source(Form::Xml, Vec::new());
    let givers = [Giver {
        database: &source.database,
        rows: &source.rows,
    }];
    let filling = Filling {
        definition: &definition,
        origins: &[None],
        givers: &givers,
    };
    let mut changed = filling.create(|_, rows| rows - 1).map_err(problem)?;
    // Filling bridges gaps with values of coarser archives, which the file does not do.
    fill(&mut changed, &levels, method);
    Ok(File {
        method,
        changed,
        findings,
    })
}

/// Gives all rows the values of their points, or unknown ones.
fn fill(changed: &mut Changed, levels: &[Level<'_>], method: &str) {
    for (archive, level) in levels.iter().enumerate() {
        let seconds = i64::from(level.seconds);
        let points = match method {
            SUM => f64::from(level.seconds / levels[0].seconds),
            _ => 1.0,
        };
        for row in 0..level.points.len() as u64 {
            let time = changed.database.row_time(archive, row);
            let begin = time.and_then(|time| time.checked_sub(seconds));
            let value = begin.and_then(|begin| level.at(begin));
            let value = value.map_or(Value::UNKNOWN, |value| Value::from(value / points));
            changed.set(archive, row, 0, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of two archives: 4 points of 10 s and 3 of 20 s.
    fn file(method: u32) -> Vec<u8> {
        let fine = [(1000, 1.0), (1010, 2.0), (980, 9.0), (990, 8.0)];
        let coarse = [(980, 17.0), (1000, 3.0), (900, 5.0)];
        let mut bytes = Vec::new();
        for number in [method, 60, 0.5_f32.to_bits(), 2, 40, 10, 4, 88, 20, 3] {
            bytes.extend(u32::to_be_bytes(number));
        }
        for (time, value) in fine.into_iter().chain(coarse) {
            bytes.extend(u32::to_be_bytes(time));
            bytes.extend(f64::to_be_bytes(value));
        }
        bytes
    }

    #[test]
    fn points_stand_at_the_ends_of_their_rows() {
        let bytes = file(2);
        assert!(is_whisper(&bytes));
        let file = read(&bytes).unwrap();
        let source = file.changed.source(Form::Xml, Vec::new());
        let rows = |archive: usize, count: u64| {
            let row = |row| {
                let value = source.rows.value(archive, row, 0).and_then(Value::get);
                (source.database.row_time(archive, row).unwrap(), value)
            };
            (0..count).map(row).collect::<Vec<_>>()
        };
        assert_eq!(
            rows(0, 4),
            [
                (990, Some(9.0)),
                (1000, Some(8.0)),
                (1010, Some(1.0)),
                (1020, Some(2.0))
            ]
        );
        // Means of sums; 900 is older than its place.
        assert_eq!(
            rows(1, 3),
            [(980, None), (1000, Some(8.5)), (1020, Some(1.5))]
        );
        assert_eq!(file.findings.iter().count(), 1);
    }

    /// Whatever a byte is, the file is refused or becomes a database.
    #[test]
    fn any_byte_is_withstood() {
        let bytes = file(1);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x10, 0x7f, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                if let Ok(file) = read(&wrong) {
                    assert_eq!(file.changed.database.check_shape(), Ok(()));
                }
            }
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let bytes = file(1);
        for length in 0..bytes.len() {
            assert!(!is_whisper(&bytes[..length]));
            assert!(read(&bytes[..length]).is_err());
        }
        for (at, number) in [
            (0, 0),
            (0, 9),
            (8, 0x7fc0_0000),
            (12, 0),
            (12, 9999),
            (20, 0),
            (32, 15),
        ] {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].copy_from_slice(&u32::to_be_bytes(number));
            assert!(read(&wrong).is_err(), "{at} {number}");
        }
    }
}
