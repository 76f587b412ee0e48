//! Times as rrdtool's command lines specify them: `-1d`, `noon yesterday`, `end-2h`, `1600000000`.
//!
//! [`TimeSpec::parse`] reads one. A [`Clock`] determines what it means: [`TimeSpec::resolve`] where it
//! stands alone, [`TimeSpec::span`] where a start and an end may be relative to each other.
//! [`time`] does both for one that stands alone.
//! [`duration()`] and [`scaled()`] read lengths of time, such as `5m`.
//!
//! A number of seconds and times relative to now that count in seconds, minutes and hours need no
//! local time; the zone is looked up only for the others.

pub(crate) mod calendar;

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

pub use kymo_rrd::text::duration::{DurationError, duration, scaled};

/// Ten years after 1970, in seconds: rrdtool asks for nothing older, and takes smaller numbers for
/// dates.
pub const EARLIEST: i64 = 315_360_000;

use crate::LocalZone;
use calendar::Calendar;

/// The time that a text specifies on its own, in seconds since 1970.
///
/// # Errors
///
/// In rrdtool's words, what is wrong; also where it is relative to a start or an end.
pub fn time(text: &[u8], clock: &Clock<'_>) -> Result<i64, TimeError> {
    TimeSpec::parse(text)?.resolve(clock)
}

/// What times are relative to.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a> {
    /// The time that it is, in seconds since 1970.
    pub now: i64,
    /// Local time.
    pub zone: &'a LocalZone,
    /// Whether the time is the first that rrdtool asks the C library for: that begins its search for the
    /// offset from UTC with none then, and else with the one it found last, which is that of now.
    /// It determines which time is meant where clocks are set back and show something twice.
    pub is_first: bool,
}

/// A time as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpec {
    reference: Reference,
    date: Option<Day>,
    /// Hour and minute.
    time_of_day: Option<(u8, u8)>,
    /// What is added.
    shift: Shift,
}

/// What a time is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
    Now,
    Start,
    End,
    /// Seconds since 1970.
    Seconds(i64),
}

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    /// This many days after today.
    After(i64),
    /// A day of this week, which begins with Sunday: 0.
    OfWeek(u8),
    /// A date; of the current year, if none is specified. Months are 1 to 12, days may be beyond their
    /// month's.
    Date {
        year: Option<i64>,
        month: i64,
        day: i64,
    },
}

/// What is added to a time: to the calendar, and then in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// To the year.
    pub years: i64,
    /// To the month.
    pub months: i64,
    /// To the day of the month.
    pub days: i64,
    /// In the end.
    pub seconds: i64,
}

/// What a time is, before it is known what it is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchored {
    /// A time in seconds since 1970, and seconds that come to it.
    At {
        /// The time.
        time: i64,
        /// The seconds.
        seconds: i64,
    },
    /// So long after a start.
    AfterStart(Shift),
    /// So long after an end.
    AfterEnd(Shift),
    /// So long after 1970.
    AfterEpoch(Shift),
}

impl Shift {
    /// Whether a calendar is needed.
    fn is_of_dates(&self) -> bool {
        (self.years, self.months, self.days) != (0, 0, 0)
    }
}

/// Why a text is not a time, or does not specify one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// It is not written as one; what is wrong.
    Unparsable(String),
    /// It cannot be represented.
    OutOfRange,
    /// It is relative to the start or the end of something that has none.
    Relative,
    /// The start is relative to the end, and the end to the start.
    EachOther,
    /// The start is relative to the start.
    StartToItself,
    /// The end is relative to the end.
    EndToItself,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unparsable(problem) => problem,
            Self::OutOfRange => "the specified time is incorrect (out of range?)",
            Self::Relative => {
                "specifying time relative to the 'start' or 'end' makes no sense here"
            }
            Self::EachOther => "the start and end times cannot be specified relative to each other",
            Self::StartToItself => "the start time cannot be specified relative to itself",
            Self::EndToItself => "the end time cannot be specified relative to itself",
        })
    }
}

impl std::error::Error for TimeError {}

impl TimeSpec {
    /// Now, if nothing is specified.
    pub const NOW: Self = Self::after(Reference::Now, 0);
    /// A day before the end: where rrdtool begins by default.
    pub const DAY_BEFORE_END: Self = Self::after(Reference::End, -86_400);

    /// A time, in seconds since 1970.
    pub const fn at(seconds: i64) -> Self {
        Self::after(Reference::Seconds(seconds), 0)
    }

    const fn after(reference: Reference, seconds: i64) -> Self {
        let shift = Shift {
            years: 0,
            months: 0,
            days: 0,
            seconds,
        };
        Self {
            reference,
            date: None,
            time_of_day: None,
            shift,
        }
    }

    /// Reads a time as rrdtool does.
    ///
    /// # Errors
    ///
    /// What is wrong, in rrdtool's words.
    pub fn parse(text: &[u8]) -> Result<Self, TimeError> {
        parse::parse(text)
    }

    /// Whether it is relative to a start or an end.
    pub const fn is_relative(&self) -> bool {
        matches!(self.reference, Reference::Start | Reference::End)
    }

    /// The time, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Where it is relative to a start or an end, or out of range.
    pub fn resolve(&self, clock: &Clock<'_>) -> Result<i64, TimeError> {
        match self.reference {
            Reference::Now => self.by_calendar(clock),
            Reference::Seconds(seconds) => self.since(seconds, clock),
            Reference::Start | Reference::End => Err(TimeError::Relative),
        }
    }

    /// What it is relative to, and how.
    ///
    /// # Errors
    ///
    /// Where it is out of range.
    pub fn anchored(&self, clock: &Clock<'_>) -> Result<Anchored, TimeError> {
        Ok(match self.reference {
            Reference::Start => Anchored::AfterStart(self.shift),
            Reference::End => Anchored::AfterEnd(self.shift),
            Reference::Seconds(0) => Anchored::AfterEpoch(self.shift),
            Reference::Now | Reference::Seconds(_) => {
                let seconds = self.shift.seconds;
                let mut before = self.clone();
                before.shift.seconds = 0;
                let time = before.resolve(clock)?;
                Anchored::At { time, seconds }
            }
        })
    }

    /// The times of a start and an end, of which one may be relative to the other.
    ///
    /// # Errors
    ///
    /// Where both are, or one to itself; or out of range.
    pub fn span(start: &Self, end: &Self, clock: &Clock<'_>) -> Result<(i64, i64), TimeError> {
        match (start.reference, end.reference) {
            (Reference::End, Reference::Start) => Err(TimeError::EachOther),
            (Reference::Start, _) => Err(TimeError::StartToItself),
            (_, Reference::End) => Err(TimeError::EndToItself),
            (Reference::End, _) => {
                let end = end.resolve(clock)?;
                Ok((start.since(end, clock)?, end))
            }
            (_, Reference::Start) => {
                let start = start.resolve(clock)?;
                Ok((start, end.since(start, clock)?))
            }
            _ => Ok((start.resolve(clock)?, end.resolve(clock)?)),
        }
    }

    /// The time this far after `moment`. Dates are counted with the UTC offset of summer time if it is in
    /// force at that time, and of standard time otherwise: across its end, a day has 24 hours.
    fn since(&self, moment: i64, clock: &Clock<'_>) -> Result<i64, TimeError> {
        if !self.shift.is_of_dates() {
            return plus(moment, self.shift.seconds);
        }
        let calendar = Calendar::new(clock);
        let (fields, summer) = calendar.fields(moment);
        self.finish(&calendar, fields, Some(summer))
    }

    /// A time relative to now, or of a day.
    fn by_calendar(&self, clock: &Clock<'_>) -> Result<i64, TimeError> {
        if self.date.is_none() && self.time_of_day.is_none() && !self.shift.is_of_dates() {
            return plus(clock.now, self.shift.seconds);
        }
        let calendar = Calendar::new(clock);
        let (mut fields, _) = calendar.fields(clock.now);
        match self.date {
            None => {}
            Some(Day::After(days)) => fields.day += days,
            Some(Day::OfWeek(day)) => fields.day += i64::from(day) - fields.weekday,
            Some(Day::Date { year, month, day }) => {
                fields.year = year.unwrap_or(fields.year);
                (fields.month, fields.day) = (month, day);
            }
        }
        if let Some((hour, minute)) = self.time_of_day {
            fields.second_of_day = 3600 * i64::from(hour) + 60 * i64::from(minute);
        }
        self.finish(&calendar, fields, None)
    }

    fn finish(
        &self,
        calendar: &Calendar<'_>,
        mut fields: calendar::Fields,
        summer: Option<bool>,
    ) -> Result<i64, TimeError> {
        let Shift {
            years,
            months,
            days,
            seconds,
        } = self.shift;
        fields.year = plus(fields.year, years)?;
        fields.month = plus(fields.month, months)?;
        fields.day = plus(fields.day, days)?;
        let time = calendar.moment(&fields, summer);
        plus(time.ok_or(TimeError::OutOfRange)?, seconds)
    }
}

fn plus(time: i64, more: i64) -> Result<i64, TimeError> {
    time.checked_add(more).ok_or(TimeError::OutOfRange)
}
