//! Files of Whisper, in which Graphite's carbon keeps its metrics: read only.
//!
//! Numbers are big-endian. A header has the method of aggregation, the longest retention, the xFilesFactor and the
//! number of archives; a description of each archive follows, with its offset, seconds per point and points. A point is
//! the beginning of its interval and a value; a slot whose time is not the one that its place stands for is old.

use std::collections::BTreeMap;

use crate::engine::modify::{Changed, ModifyError};
use crate::engine::{Definition, create, fold};
use crate::fault::{Error, Findings, Severity};
use crate::model::{Archive, ArchiveKind, Consolidation, DataSource, Reading, Scratch, SourceKind};
use crate::{Text, Time, Value};

/// Bytes of the header.
const HEADER: usize = 16;
/// Bytes of the description of an archive.
const DESCRIPTION: usize = 12;
/// Bytes of a point.
const POINT: usize = 12;
/// Files have a few archives.
const MOST_ARCHIVES: usize = 256;
/// Rows of more points begin with nothing known of the row under way.
const MOST_POINTS: u64 = 1_000_000;

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

/// Number of seconds that a point may be ahead of now: clocks differ.
const CLOCKS_DIFFER: i64 = 86_400;

/// An archive of a file.
struct Level<'a> {
    seconds: u32,
    points: &'a [[u8; POINT]],
    /// The slot of the interval that begins at time 0.
    origin: i64,
}

/// The points that are left out because their times are wrong.
#[derive(Default)]
struct LeftOut {
    /// Those that are later than the clock.
    later: u64,
    /// Those in slots of other times.
    misplaced: u64,
}

impl<'a> Level<'a> {
    /// The slot of the first point says which time each slot is for. If that point is damaged, the others say it.
    fn new(seconds: u32, points: &'a [[u8; POINT]], latest: i64) -> Self {
        let mut level = Self {
            seconds,
            points,
            origin: 0,
        };
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for place in 0..points.len() {
            let time = level.get(place).0;
            if time > 0 && i64::from(time) <= latest && time.is_multiple_of(seconds) {
                *counts.entry(level.origin_by(place)).or_default() += 1;
            }
        }
        let first = level.origin_by(0);
        let most = counts
            .into_iter()
            .max_by_key(|(origin, count)| (*count, *origin == first));
        level.origin = most.map_or(first, |(origin, _)| origin);
        level
    }

    fn get(&self, place: usize) -> (u32, f64) {
        let [a, b, c, d, value @ ..] = self.points[place];
        (u32::from_be_bytes([a, b, c, d]), f64::from_be_bytes(value))
    }

    /// The number of points, which are those of a file in memory.
    fn count(&self) -> i64 {
        i64::try_from(self.points.len()).unwrap_or(i64::MAX)
    }

    /// The slot of time 0, if the time of the point in a slot is right.
    fn origin_by(&self, place: usize) -> i64 {
        let number = self.get(place).0 / self.seconds;
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        (place - i64::from(number)).rem_euclid(self.count())
    }

    /// The newest time of a point; `None` if there is none. Counts the points that are left out.
    fn newest(&self, latest: i64, left_out: &mut LeftOut) -> Option<u32> {
        let mut newest = None;
        for place in 0..self.points.len() {
            let time = self.get(place).0;
            if time == 0 {
                continue;
            }
            if i64::from(time) > latest {
                left_out.later += 1;
            } else if !time.is_multiple_of(self.seconds) || self.origin_by(place) != self.origin {
                left_out.misplaced += 1;
            } else {
                newest = newest.max(Some(time));
            }
        }
        newest
    }

    /// Whether the archive has a slot for the interval that a time is in, if `last` ends the newest one.
    fn reaches(&self, time: i64, last: i64) -> bool {
        let seconds = i64::from(self.seconds);
        let newest = (last - 1).div_euclid(seconds);
        time.div_euclid(seconds) > newest.saturating_sub(self.count())
    }

    /// The value of the interval that begins at a time.
    fn at(&self, time: i64) -> Option<f64> {
        let number = time.div_euclid(i64::from(self.seconds));
        let place = number.checked_add(self.origin)?.rem_euclid(self.count());
        let (found, value) = self.get(usize::try_from(place).ok()?);
        (found > 0 && i64::from(found) == time).then_some(value)
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
    header(bytes, i64::MAX).is_ok_and(|header| {
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

/// Reads the header. Points later than `latest` do not count.
fn header(bytes: &[u8], latest: i64) -> Result<Header<'_>, Error> {
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
        levels.push(Level::new(seconds, points, latest));
    }
    Ok(Header {
        method: place,
        xff,
        levels,
    })
}

/// Reads a file. Archives become those of the function that suits the method of aggregation; values of `sum` become
/// means of the finest archive's intervals, as the database goes on with. `now`, in seconds since 1970, is what the
/// times of points are compared with: those more than a day later are left out, and so are those in slots of other times.
///
/// # Errors
///
/// What is wrong with the file, or that it has no points.
pub fn read(bytes: &[u8], now: Option<i64>) -> Result<File, Error> {
    let latest = now.map_or(i64::MAX, |now| now.saturating_add(CLOCKS_DIFFER));
    let Header {
        method,
        xff,
        levels,
    } = header(bytes, latest)?;
    let (method, function) = METHODS[method];
    let step = levels[0].seconds;
    // A row has the time of its end.
    let mut left_out = LeftOut::default();
    let mut last = None;
    for level in &levels {
        let newest = level.newest(latest, &mut left_out);
        last = last.max(newest.map(|newest| i64::from(newest) + i64::from(step)));
    }
    let mut findings = Findings::default();
    for (count, expected) in [
        (left_out.later, format!("times before {latest}")),
        (left_out.misplaced, "times of their slots".to_owned()),
    ] {
        if count > 0 {
            let found = format!("{count} with other times");
            findings.add(Severity::Warning, || {
                Error::new("points", None, found, expected).because("they are left out")
            });
        }
    }
    let Some(last) = last else {
        let found = match left_out.later + left_out.misplaced {
            0 => "none that is written".to_owned(),
            count => format!("{count} with wrong times and no others"),
        };
        return Err(Error::new("points", None, found, "at least one"));
    };
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
    let mut changed = Changed::new(database).map_err(problem)?;
    fill(&mut changed, &levels, method);
    for archive in 0..levels.len() {
        prepare(&mut changed, &levels, archive, (function, unknown), method);
    }
    Ok(File {
        method,
        changed,
        findings,
    })
}

/// Prepares the row under way of an archive from the points of the finer ones, as if they had been updates.
fn prepare(
    changed: &mut Changed,
    levels: &[Level<'_>],
    archive: usize,
    (function, xff): (Consolidation, f64),
    method: &str,
) {
    let database = &changed.database;
    let (step, points) = (
        database.step,
        database.archives[archive].points_per_row.max(1),
    );
    let row = database.archives[archive].rows.saturating_sub(1);
    let newest = changed.rows().value(archive, row, 0);
    let newest = newest.unwrap_or(Value::UNKNOWN);
    let last = database.state.last_update.seconds();
    let steps = u64::try_from(last).unwrap_or(0) / step;
    let scratch = &mut changed.database.state.archives[archive].scratch[0];
    if points > 1 && points <= MOST_POINTS {
        // A gap in the finest archive that reaches so far back is one: coarser ones would bridge it.
        let value = |number: u64| {
            let begin = i64::try_from(number.checked_mul(step)?).ok()?;
            let level = levels.iter().find(|level| level.reaches(begin, last))?;
            let seconds = i64::from(level.seconds);
            let value = level.at(begin - begin.rem_euclid(seconds))?;
            Some(value / points_of(level, levels, method))
        };
        // The last point of the row before begins the row.
        for number in (steps - steps % points).saturating_sub(1)..steps {
            let rate = value(number).unwrap_or(f64::NAN);
            fold(scratch, function, xff, points, number, rate);
        }
    }
    scratch.set_value(Scratch::PRIMARY, newest);
}

/// The number by which the values of an archive are divided: sums become means.
fn points_of(level: &Level<'_>, levels: &[Level<'_>], method: &str) -> f64 {
    match method {
        SUM => f64::from(level.seconds / levels[0].seconds),
        _ => 1.0,
    }
}

/// Gives all rows the values of their points, or unknown ones.
fn fill(changed: &mut Changed, levels: &[Level<'_>], method: &str) {
    for (archive, level) in levels.iter().enumerate() {
        let seconds = i64::from(level.seconds);
        let points = points_of(level, levels, method);
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
    use crate::Form;

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
        let file = read(&bytes, None).unwrap();
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

    /// A file whose archives have points of `(time, value)`, 4 of 10 s and 3 of 20 s, with a wrong time in a slot.
    fn with_time(slot: usize, time: u32) -> Vec<u8> {
        let mut bytes = file(1);
        let at = HEADER + 2 * DESCRIPTION + slot * POINT;
        bytes[at..at + 4].copy_from_slice(&time.to_be_bytes());
        bytes
    }

    #[test]
    fn points_with_wrong_times_are_left_out() {
        let now = 1_030;
        // In 2106; 400 days later, in the right slot and not; in the past in the wrong slot and within an interval.
        let later = 1_000 + 400 * 86_400;
        for (slot, time, found) in [
            (0, u32::MAX, "1 with other times, expected times before"),
            (1, later, "1 with other times, expected times before"),
            (0, later, "1 with other times, expected times before"),
            (
                1,
                1_020,
                "1 with other times, expected times of their slots",
            ),
            (
                1,
                1_013,
                "1 with other times, expected times of their slots",
            ),
        ] {
            let read = read(&with_time(slot, time), Some(now)).unwrap();
            let messages: Vec<_> = read.findings.iter().map(ToString::to_string).collect();
            assert_eq!(messages.len(), 1, "{slot} {time}: {messages:?}");
            assert!(messages[0].contains(found), "{messages:?}");
            let state = &read.changed.database.state;
            // The coarse archive has a point of 1000, which is at least one step long.
            let last = if slot == 1 { 1_010 } else { 1_020 };
            assert_eq!(state.last_update.seconds(), last, "{slot} {time}");
            let known = |archive, rows| {
                let rows = (0..rows).map(|row| read.changed.rows().value(archive, row, 0));
                rows.filter(|value| value.is_some_and(|value| !value.is_unknown()))
                    .count()
            };
            assert_eq!((known(0, 4), known(1, 3) > 0), (3, true), "{slot} {time}");
        }
        let mut all = with_time(0, later);
        for slot in 1..7 {
            let at = HEADER + 2 * DESCRIPTION + slot * POINT;
            all[at..at + 4].copy_from_slice(&later.to_be_bytes());
        }
        let error = read(&all, Some(now)).unwrap_err().to_string();
        assert!(
            error.contains("7 with wrong times and no others"),
            "{error}"
        );
    }

    /// A file with archives of (seconds, points) that has `count` points 10 s apart from 6000 on.
    fn averages(
        archives: &[(u32, u32)],
        count: u32,
        value: impl Fn(u32) -> Option<f64>,
    ) -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).unwrap();
        let mut bytes = Vec::new();
        for header in [1, 9_999, 0.5_f32.to_bits(), number(archives.len())] {
            bytes.extend(u32::to_be_bytes(header));
        }
        let mut offset = number(HEADER + archives.len() * DESCRIPTION);
        for (seconds, points) in archives {
            for field in [offset, *seconds, *points] {
                bytes.extend(u32::to_be_bytes(field));
            }
            offset += points * number(POINT);
        }
        for (seconds, points) in archives {
            let mut slots = vec![(0, 0.0); *points as usize];
            let per = seconds / 10;
            for slot in 0..count.div_ceil(per) {
                let known = (slot * per..count.min((slot + 1) * per)).filter_map(&value);
                let known: Vec<f64> = known.collect();
                if !known.is_empty() {
                    let mean = known.iter().sum::<f64>() / f64::from(number(known.len()));
                    slots[(slot % points) as usize] = (6_000 + slot * seconds, mean);
                }
            }
            for (time, value) in slots {
                bytes.extend(u32::to_be_bytes(time));
                bytes.extend(f64::to_be_bytes(value));
            }
        }
        bytes
    }

    #[test]
    fn rows_under_way_are_made_of_finer_points() {
        // All points of the row are in the first archive; some are in the second one only; three are unknown.
        let all = |point: u32| Some(f64::from(point));
        let gap = |point: u32| (!(70..73).contains(&point)).then(|| f64::from(point));
        let cases: [(_, &dyn Fn(u32) -> Option<f64>, _); 3] = [
            ([(10, 100), (60, 60), (600, 50)], &all, 0),
            ([(10, 12), (60, 60), (600, 50)], &all, 0),
            ([(10, 100), (60, 60), (600, 50)], &gap, 3),
        ];
        for (archives, value, unknown) in cases {
            // 60 to 107: the second row of 600 s has 48 of its points.
            let file = read(&averages(&archives, 108, value), None).unwrap();
            let state = &file.changed.database.state;
            assert_eq!(state.last_update.seconds(), 7_080);
            let scratch = &state.archives[2].scratch[0];
            assert_eq!(scratch.counter(Scratch::UNKNOWN_POINTS), unknown);
            let expected: f64 = (60..108).filter_map(value).sum();
            assert!((scratch.value(Scratch::VALUE).to_f64() - expected).abs() < 1e-6);
            let source = file.changed.source(Form::Xml, Vec::new());
            let native = crate::file::convert::Target::Native(kymo_machine::Machine::native());
            let bytes = crate::file::convert::convert(&source, native)
                .unwrap()
                .bytes;
            let report = crate::file::check::check(&bytes, None, None);
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        }
    }

    /// Whatever a byte is, the file is refused or becomes a database.
    #[test]
    fn any_byte_is_withstood() {
        let bytes = file(1);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x10, 0x7f, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                if let Ok(file) = read(&wrong, None) {
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
            assert!(read(&bytes[..length], None).is_err());
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
            assert!(read(&wrong, None).is_err(), "{at} {number}");
        }
    }
}
