//! Windows of time, as people write them.

use std::cell::LazyCell;
use std::fmt;

use jiff::civil;
use jiff::tz::TimeZone;
use kymo_model::{Chunk, Cursor, Event, Recording};
use kymo_time::{Duration, NANOS_PER_SECOND, Origin, Timestamp};

use crate::pipeline::Window;

/// A time as it was written: some forms need a time zone or a date to be resolved.
///
/// | form | meaning |
/// |---|---|
/// | `[-]SEC[.NANO]` | seconds since the origin of the clocks |
/// | `+DURATION`, such as `+2ms` or `+1.5` | so long after the first event that has a date, or else the first one |
/// | `HH:MM[:SS[.NANO]]` | that time on the day of the first event that has a date, or else of the first one |
/// | `YYYY-MM-DD` | midnight of that day |
/// | `YYYY-MM-DD HH:MM[:SS[.NANO]]` | that day and time; `T` may stand for the blank |
/// | the same with `Z`, `+HH:MM` or `-HH:MM` | that day and time there (RFC 3339) |
///
/// Days and times are those of the time zone in use, unless they say their own. `NANO`
/// are 1 to 9 digits of a decimal fraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    source: String,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Nanos(i64),
    /// After the first event.
    After(i64),
    Time(civil::Time),
    Local(civil::DateTime),
    /// Out of the range of 64 bits of nanoseconds.
    TooFar,
}

/// Why a time or a time window is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError(String);

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimeError {}

impl std::str::FromStr for Moment {
    type Err = TimeError;

    fn from_str(source: &str) -> Result<Self, TimeError> {
        let form = Form::parse(source).ok_or_else(|| {
            let source = kymo_text::visible(source);
            TimeError(format!(
                "`{source}` is not a time: expected [-]SEC[.NANO], +DURATION, HH:MM[:SS[.NANO]] or \
                 YYYY-MM-DD[ HH:MM[:SS[.NANO]]]"
            ))
        })?;
        let source = source.to_string();
        Ok(Self { source, form })
    }
}

impl Form {
    fn parse(source: &str) -> Option<Self> {
        if let Some(after) = source.strip_prefix('+') {
            // The sign is there only once.
            let after = Some(after).filter(|after| !after.starts_with(['+', '-']))?;
            return after
                .parse()
                .ok()
                .map(|after: Duration| Self::After(after.nanos));
        }
        let Some((date, rest)) = split_date(source)? else {
            return match source.contains(':') {
                true => parse_time(source).map(Self::Time),
                false => parse_seconds(source).map(Self::from_nanos),
            };
        };
        let Some(rest) = rest else {
            return Some(Self::Local(date.at(0, 0, 0, 0)));
        };
        let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
        let (time, zone) = rest.split_at(zone);
        let local = date.to_datetime(parse_time(time)?);
        let minutes = match zone.as_bytes() {
            [] => return Some(Self::Local(local)),
            [b'Z' | b'z'] => 0,
            [sign, h1, h2, b':', m1, m2] => {
                let hours = i32::from(two_digits(*h1, *h2)?);
                let minutes = i32::from(two_digits(*m1, *m2)?);
                if hours > 23 || minutes > 59 {
                    return None;
                }
                let east = hours * 60 + minutes;
                if *sign == b'-' { -east } else { east }
            }
            _ => return None,
        };
        let offset = jiff::tz::Offset::from_seconds(minutes * 60).ok()?;
        let nanos = offset.to_timestamp(local).ok()?.as_nanosecond();
        Some(Self::from_nanos(nanos))
    }

    /// Whether it is a date, as a number or otherwise.
    fn is_date(self) -> bool {
        match self {
            Self::Nanos(nanos) => is_date(Timestamp::from_nanos(nanos)),
            Self::Local(_) => true,
            Self::After(_) | Self::Time(_) | Self::TooFar => false,
        }
    }

    fn from_nanos(nanos: i128) -> Self {
        i64::try_from(nanos).map_or(Self::TooFar, Self::Nanos)
    }
}

/// A date at the beginning and what follows its separator; `Some(None)` where there is
/// none, `None` where there is one that cannot be.
fn split_date(source: &str) -> Option<Option<(civil::Date, Option<&str>)>> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, rest @ ..] = source.as_bytes() else {
        return Some(None);
    };
    let year = two_digits(*y1, *y2)? * 100 + two_digits(*y3, *y4)?;
    let month = two_digits(*m1, *m2)? as i8;
    let day = two_digits(*d1, *d2)? as i8;
    let date = civil::Date::new(year, month, day).ok()?;
    match rest {
        [] => Some(Some((date, None))),
        [b' ' | b'T' | b't', ..] => Some(Some((date, Some(&source[11..])))),
        _ => None,
    }
}

fn two_digits(tens: u8, ones: u8) -> Option<i16> {
    let digit = |d: u8| d.is_ascii_digit().then(|| i16::from(d - b'0'));
    Some(digit(tens)? * 10 + digit(ones)?)
}

/// `HH:MM[:SS[.NANO]]`
fn parse_time(source: &str) -> Option<civil::Time> {
    let pair = |text: &str| match text.as_bytes() {
        [tens, ones] => two_digits(*tens, *ones).map(|number| number as i8),
        _ => None,
    };
    let mut parts = source.splitn(3, ':');
    let hour = pair(parts.next()?)?;
    let minute = pair(parts.next()?)?;
    let (second, nanos) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (pair(seconds)?, 0),
            Some((whole, fraction)) => (pair(whole)?, parse_fraction(fraction)?),
        },
    };
    civil::Time::new(hour, minute, second, nanos).ok()
}

/// 1 to 9 digits after a decimal point, in billionths.
fn parse_fraction(digits: &str) -> Option<i32> {
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: i32 = digits.parse().ok()?;
    Some(number * 10i32.pow(9 - digits.len() as u32))
}

/// `[-]SEC[.NANO]` in nanoseconds.
fn parse_seconds(source: &str) -> Option<i128> {
    let (negative, digits) = match source.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, source),
    };
    let (whole, nanos) = match digits.split_once('.') {
        None => (digits, 0),
        Some((whole, fraction)) => (whole, parse_fraction(fraction)?),
    };
    if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // So many seconds that they cannot be counted are out of range all the more.
    let seconds = whole.parse::<i128>().unwrap_or(i128::MAX);
    let nanos = seconds
        .saturating_mul(NANOS_PER_SECOND.into())
        .saturating_add(nanos.into());
    Some(if negative { -nanos } else { nanos })
}

impl Moment {
    fn out_of_range(&self) -> TimeError {
        TimeError(format!(
            "`{}` is out of range: times reach from 1677-09-22 to 2262-04-11",
            self.source
        ))
    }

    /// The time on the common line; times are in `zone`, and the day, if it is not
    /// said, is that of `first`.
    pub(crate) fn resolve(
        &self,
        first: Option<Timestamp>,
        zone: &TimeZone,
    ) -> Result<Timestamp, TimeError> {
        let local = match self.form {
            Form::Nanos(nanos) => return Ok(Timestamp::from_nanos(nanos)),
            Form::After(nanos) => {
                let first = first.ok_or_else(|| {
                    let source = &self.source;
                    TimeError(format!(
                        "`{source}` needs a first event: no recording has a time"
                    ))
                })?;
                return Ok(Timestamp::from_nanos(
                    first.as_nanos().saturating_add(nanos),
                ));
            }
            Form::TooFar => return Err(self.out_of_range()),
            Form::Local(local) => local,
            Form::Time(time) => first
                .map(|first| zone.to_datetime(to_jiff(first)).date().to_datetime(time))
                .ok_or_else(|| {
                    TimeError(format!(
                        "`{}` needs a date: no recording says when it begins",
                        self.source
                    ))
                })?,
        };
        zone.to_timestamp(local)
            .ok()
            .and_then(|time| i64::try_from(time.as_nanosecond()).ok())
            .map(Timestamp::from_nanos)
            .ok_or_else(|| self.out_of_range())
    }
}

/// The time zone in use.
pub(crate) fn zone(gmt: bool) -> TimeZone {
    match gmt {
        true => TimeZone::UTC,
        false => local_zone(),
    }
}

/// The time zone of this machine. Its rules are read from `/etc/localtime` where that is what counts: jiff would look
/// through the rules of all zones for its name, which is not shown.
fn local_zone() -> TimeZone {
    const PATH: &str = "/etc/localtime";
    let is_utc = std::fs::read_link(PATH).is_ok_and(|path| path.ends_with("zoneinfo/UTC"));
    let rules = match std::env::var_os("TZ") {
        None if !is_utc => std::fs::read(PATH).ok(),
        _ => None,
    };
    let zone = rules.and_then(|rules| TimeZone::tzif("localtime", &rules).ok());
    zone.unwrap_or_else(TimeZone::system)
}

/// Every time that fits in 64 bits of nanoseconds is valid in jiff.
fn to_jiff(time: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(time.as_nanos().into()).unwrap_or_default()
}

/// `BEGIN,END` or `[BEGIN,END]`.
///
/// # Errors
///
/// There is no comma, or one of the two is not a time.
pub fn parse_range(source: &str) -> Result<(Moment, Moment), TimeError> {
    let inner = source.trim();
    let inner = inner
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(inner);
    let (begin, end) = inner.split_once(',').ok_or_else(|| {
        TimeError(format!(
            "`{source}` is not a time range: expected BEGIN,END or [BEGIN,END]"
        ))
    })?;
    Ok((begin.trim().parse()?, end.trim().parse()?))
}

/// Which times are wanted.
#[derive(Clone, Debug, Default)]
pub struct TimeQuery {
    /// From when.
    pub begin: Option<Moment>,
    /// Until when.
    pub end: Option<Moment>,
    /// Whether only the time counts in which all streams of a recording are active.
    pub intersection: bool,
}

impl TimeQuery {
    /// The window of each recording; times are in UTC with `gmt`, and local without.
    ///
    /// # Errors
    ///
    /// A time cannot be resolved, the end lies before the beginning, or the streams of
    /// a recording have no time in common.
    pub fn windows<R: Recording>(
        &self,
        recordings: &[R],
        gmt: bool,
    ) -> Result<Vec<Window>, TimeError> {
        // Finding it takes some time.
        let zone = LazyCell::new(|| zone(gmt));
        // The day of recordings that have a date.
        let dated = recordings.iter().filter(|it| has_origin(*it) == Some(true));
        // Dates are those of packets, but durations count from events.
        let is_after = |moment: &Option<Moment>| {
            moment
                .as_ref()
                .is_some_and(|moment| matches!(moment.form, Form::After(_)))
        };
        let first_of = match is_after(&self.begin) || is_after(&self.end) {
            true => first_event_time,
            false => first_time,
        };
        let first = dated.filter_map(first_of).min();
        let first = first.or_else(|| recordings.iter().filter_map(first_of).min());
        let resolve = |moment: &Option<Moment>| {
            moment
                .as_ref()
                .map(|moment| moment.resolve(first, &zone))
                .transpose()
        };
        let (begin, end) = (resolve(&self.begin)?, resolve(&self.end)?);
        let asked = Window {
            begin: begin.unwrap_or(Timestamp::MIN),
            end: end.unwrap_or(Timestamp::MAX),
        };
        if asked.begin > asked.end {
            let source = |moment: &Option<Moment>| match moment {
                Some(moment) => moment.source.clone(),
                None => String::new(),
            };
            return Err(TimeError(format!(
                "the time range ends before it begins: from `{}` to `{}`\nhint: exchange the two times, or write their dates",
                source(&self.begin),
                source(&self.end)
            )));
        }
        recordings
            .iter()
            .map(|recording| match self.intersection {
                true => Ok(asked.and(intersection(recording)?)),
                false => Ok(asked),
            })
            .collect()
    }
}

impl TimeQuery {
    /// The window, or a wider one, if it does not depend on what is in the recordings.
    pub fn absolute(&self) -> Option<Window> {
        // Recordings without an origin have times in UTC.
        let zones = [zone(true), zone(false)];
        let bounds = |moment: &Option<Moment>| match moment {
            None => Some(None),
            Some(Moment {
                form: Form::After(_) | Form::Time(_),
                ..
            }) => None,
            Some(moment) => {
                let mut times = Vec::new();
                for zone in &zones {
                    times.push(moment.resolve(None, zone).ok()?);
                }
                Some(Some((times[0].min(times[1]), times[0].max(times[1]))))
            }
        };
        let (begin, end) = (bounds(&self.begin)?, bounds(&self.end)?);
        (!self.intersection).then_some(Window {
            begin: begin.map_or(Timestamp::MIN, |(earlier, _)| earlier),
            end: end.map_or(Timestamp::MAX, |(_, later)| later),
        })
    }

    /// What is wanted, and when the recordings begin and end, if none of them has such a time. `None` also where it is
    /// not known when they end.
    pub fn misses<R: Recording>(&self, recordings: &[R], gmt: bool) -> Option<(Window, Window)> {
        if self.begin.is_none() && self.end.is_none() {
            return None;
        }
        let windows = self.windows(recordings, gmt).ok()?;
        let mut all: Option<(Window, Window)> = None;
        for (recording, window) in recordings.iter().zip(windows) {
            let Some(first) = first_time(recording) else {
                continue;
            };
            let last = last_time(recording)?;
            if window.begin <= last && first <= window.end {
                return None;
            }
            let (begin, end) = (first, last);
            let (wanted, spanned) = all.unwrap_or((window, Window { begin, end }));
            let (begin, end) = (spanned.begin.min(begin), spanned.end.max(end));
            all = Some((wanted, Window { begin, end }));
        }
        all
    }

    /// What may explain that these times [miss](Self::misses) the recordings.
    pub fn hint<R: Recording>(&self, recordings: &[R], gmt: bool) -> Option<&'static str> {
        let asks = |wanted: fn(Form) -> bool| {
            let mut moments = [&self.begin, &self.end].into_iter().flatten();
            moments.any(|moment| wanted(moment.form))
        };
        let is_dated = recordings.iter().any(|it| has_origin(it) == Some(true));
        if asks(|form| matches!(form, Form::Time(_))) {
            return Some(match gmt {
                true => "a time without a date is of the day of the first event",
                false => {
                    "times are read in the local time zone (in UTC with --clock-gmt), and a time without a date \
                     is of the day of the first event"
                }
            });
        }
        if !is_dated && asks(Form::is_date) {
            return Some("`--align PATH=TIME` sets when a recording without a date begins");
        }
        if is_dated && asks(|form| matches!(form, Form::Nanos(_)) && !form.is_date()) {
            return Some("a number is seconds since 1970; `+SEC` counts from the first event");
        }
        (!gmt && asks(|form| matches!(form, Form::Local(_))))
            .then_some("times are read in the local time zone; `--clock-gmt` reads them as UTC")
    }
}

/// The latest time of a recording, where its chunks say when they end.
pub(crate) fn last_time<R: Recording>(recording: &R) -> Option<Timestamp> {
    let mut last = None;
    for stream in 0..recording.streams().len() {
        let count = recording.chunk_count(stream);
        if let Some(chunk) = recording.chunk(stream, count.saturating_sub(1)) {
            last = last.max(Some(chunk.end_time?));
        }
    }
    last
}

/// The earliest time of a recording.
/// The time of the first event of a recording.
pub fn first_event_time<R: Recording>(recording: &R) -> Option<Timestamp> {
    let of_stream = |stream: usize| {
        let chunks = recording.first_chunk(stream)..recording.chunk_count(stream);
        chunks
            .filter_map(|number| recording.chunk(stream, number))
            .find_map(|chunk| recording.cursor(&chunk).next_event().ok()??.timestamp())
    };
    (0..recording.streams().len()).filter_map(of_stream).min()
}

/// When a recording begins: of streams that have packets, their first ones.
pub(crate) fn first_time<R: Recording>(recording: &R) -> Option<Timestamp> {
    (0..recording.streams().len())
        .filter_map(|stream| {
            begin_of(
                recording,
                &recording.chunk(stream, recording.first_chunk(stream))?,
            )
        })
        .min()
}

/// From when on a time is taken for a date, whatever its clock says: 1980-01-01 00:00:00 UTC. Clocks
/// without an origin count from when a machine or a program was started, and none runs so long.
const FIRST_DATE: Timestamp = Timestamp::from_nanos(315_532_800 * NANOS_PER_SECOND);

/// Whether a time is a date, and not one since a machine was started.
pub(crate) fn is_date(time: Timestamp) -> bool {
    time >= FIRST_DATE
}

/// Whether the times of a recording count from 1970: its clocks say so, or it begins at a date.
/// `None` where it has no times.
pub(crate) fn has_origin<R: Recording>(recording: &R) -> Option<bool> {
    let clocks = recording
        .streams()
        .iter()
        .filter_map(|it| it.clock.as_ref());
    match clocks
        .into_iter()
        .any(|clock| clock.origin == Origin::UnixEpoch)
    {
        true => Some(true),
        false => first_time(recording).map(is_date),
    }
}

/// When a chunk begins: where it does not say, when its first event happened.
fn begin_of<R: Recording>(recording: &R, chunk: &Chunk) -> Option<Timestamp> {
    let first = || recording.cursor(chunk).next_event().ok()??.timestamp();
    chunk.begin_time.or_else(first)
}

/// When a chunk ends: where it does not say, when its last event happened.
fn end_of<R: Recording>(recording: &R, chunk: &Chunk) -> Option<Timestamp> {
    chunk.end_time.or_else(|| {
        let mut cursor = recording.cursor(chunk);
        let mut last = None;
        while let Ok(Some(event)) = cursor.next_event() {
            last = event.timestamp();
        }
        last
    })
}

/// The time in which all streams are active that hold anything.
fn intersection<R: Recording>(recording: &R) -> Result<Window, TimeError> {
    let mut common = Window::ALL;
    for stream in 0..recording.streams().len() {
        let last = recording.chunk_count(stream).saturating_sub(1);
        let first = recording.first_chunk(stream);
        let chunks = (
            recording.chunk(stream, first),
            recording.chunk(stream, last),
        );
        let (Some(first), Some(last)) = chunks else {
            continue;
        };
        let (Some(begin), Some(end)) = (begin_of(recording, &first), end_of(recording, &last))
        else {
            let name = &recording.streams()[stream].name;
            return Err(TimeError(format!(
                "stream `{name}` does not say when it begins and ends: no intersection"
            )));
        };
        common.begin = common.begin.max(begin);
        common.end = common.end.min(end);
    }
    if common.begin > common.end {
        return Err(TimeError(format!(
            "the streams of `{}` are never active at the same time: no intersection",
            recording.path().display()
        )));
    }
    Ok(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, Val};

    fn nanos(source: &str) -> Option<i64> {
        let first = Timestamp::from_nanos(1_700_000_000_000_000_000); // 2023-11-14 22:13:20
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let moment: Moment = source.parse().ok()?;
        Some(moment.resolve(Some(first), &zone).ok()?.as_nanos())
    }

    #[test]
    fn all_forms() {
        const HOUR: i64 = 3_600_000_000_000;
        const DAY: i64 = 24 * HOUR;
        for (source, expected) in [
            ("17", 17_000_000_000),
            ("+2ms", 1_700_000_000_002_000_000),
            ("+1.5", 1_700_000_001_500_000_000),
            ("-0.5", -500_000_000),
            ("1.000000001", 1_000_000_001),
            ("1970-01-02", DAY - 2 * HOUR),
            ("1970-01-02 03:04", DAY + HOUR + 240_000_000_000),
            ("1970-01-02T03:04:05.25", DAY + HOUR + 245_250_000_000),
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:00.1z", 100_000_000),
            ("1970-01-01 00:00+01:30", -HOUR * 3 / 2),
            ("1970-01-01 00:00-01:30", HOUR * 3 / 2),
            // The first event is on the 15th there.
            ("00:30", 1_699_999_200_000_000_000 + HOUR / 2),
            ("9223372036.854775807", i64::MAX),
            ("-9223372036.854775808", i64::MIN),
        ] {
            assert_eq!(nanos(source), Some(expected), "{source}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for source in [
            "",
            "-",
            "x",
            "1.",
            ".5",
            "1.1234567890",
            "9223372036.854775808",
            "1:2",
            "24:00",
            "12:60",
            "12:00:60",
            "12:00:00.",
            "2023-02-29",
            "2023-13-01",
            "2023-01-01x",
            "2023-01-01 ",
            "2023-01-01 12",
            "2023-01-01 12:00+1",
            "2023-01-01 12:00+24:00",
            "2023-01-01 12:00Zx",
            "+",
            "+x",
            "++5",
            "+-5",
            "+5 parsecs",
            "12:00:00:00",
            "9999-12-31 00:00",
            "99999999999999999999999999999999999999999",
            "170141183460469231731687303715.999999999",
        ] {
            assert_eq!(nanos(source), None, "{source}");
        }
    }

    #[test]
    fn chunks_without_times_are_asked_for_their_events() {
        let mut fake = Fake::default();
        fake.class("e", vec![]);
        let event = |second: i64| (0, Some(second * 1_000_000_000), Val::Struct(vec![]));
        fake.stream(
            "a",
            vec![vec![event(10), event(11)], vec![event(12), event(20)]],
        );
        fake.stream("b", vec![vec![event(5), event(18)], vec![]]);
        fake.stream("c", vec![]);
        for chunk in fake.chunks.iter_mut().flatten() {
            (chunk.begin_time, chunk.end_time) = (None, None);
        }
        let query = |begin: Option<&str>, intersection| TimeQuery {
            begin: begin.map(|begin| begin.parse().unwrap()),
            end: None,
            intersection,
        };
        let window = |query: TimeQuery| query.windows(std::slice::from_ref(&fake), true);
        // On the day of the first event.
        let begin = window(query(Some("00:01"), false)).unwrap()[0].begin;
        assert_eq!(begin, Timestamp::from_nanos(60_000_000_000));
        let error = window(query(None, true)).unwrap_err().to_string();
        assert!(error.contains("stream `b` does not say"), "{error}");
        fake.chunks[1].pop();
        let common = query(None, true).windows(&[fake], true).unwrap()[0];
        assert_eq!(common.begin, Timestamp::from_nanos(10_000_000_000));
        assert_eq!(common.end, Timestamp::from_nanos(18_000_000_000));
    }

    #[test]
    fn ranges() {
        let (begin, end) = parse_range("[1.5, 17:30]").unwrap();
        assert_eq!(
            (begin, end),
            ("1.5".parse().unwrap(), "17:30".parse().unwrap())
        );
        assert!(parse_range("1,2").is_ok());
        assert!(parse_range("1").is_err());
        assert!(parse_range("[1,2").is_err());
    }
}
