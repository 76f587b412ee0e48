//! Local dates and times of day.

use kymo_time::{Date, date_of_days, days_of_date};

use super::Clock;
use crate::LocalZone;

const DAY: i64 = 86_400;

/// A date and a time of day, of which each part may be out of range: what is too much carries over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// Of the month, from 1.
    pub(crate) day: i64,
    /// Day of the week, from Sunday, 0; ignored when the time is computed.
    pub(crate) weekday: i64,
    pub(crate) second_of_day: i64,
}

impl Fields {
    /// The seconds since 1970, if these were in UTC.
    fn as_utc(&self) -> Option<i64> {
        let months = self.month.checked_sub(1)?;
        let year = self.year.checked_add(months.div_euclid(12))?;
        // Far beyond what can be counted, but days of a date do not overflow.
        if year.unsigned_abs() > 1 << 40 {
            return None;
        }
        let first = days_of_date(Date {
            year,
            month: months.rem_euclid(12) as u8 + 1,
            day: 1,
        });
        let days = first.checked_add(self.day)?.checked_sub(1)?;
        days.checked_mul(DAY)?.checked_add(self.second_of_day)
    }
}

/// A local calendar.
pub(crate) struct Calendar<'a> {
    zone: &'a LocalZone,
    /// The offset from UTC that is guessed first.
    guess: i64,
}

/// Seconds between the times at which it is checked whether summer time is in force.
const STRIDE: i64 = 601_200;
/// How many of them there are in each direction: some nine years.
const STRIDES: i64 = 446;

impl<'a> Calendar<'a> {
    pub(crate) fn new(clock: &Clock<'a>) -> Self {
        Self {
            zone: clock.zone,
            guess: match clock.is_first {
                true => 0,
                false => clock.zone.offset(clock.now).0,
            },
        }
    }

    /// What clocks and calendars show at a time, and whether it is summer time.
    pub(crate) fn fields(&self, moment: i64) -> (Fields, bool) {
        let (offset, summer) = self.zone.offset(moment);
        let local = moment.saturating_add(offset);
        let days = local.div_euclid(DAY);
        let date = date_of_days(days);
        let fields = Fields {
            year: date.year,
            month: date.month.into(),
            day: date.day.into(),
            // 1 January 1970 was a Thursday.
            weekday: days.saturating_add(4).rem_euclid(7),
            second_of_day: local.rem_euclid(DAY),
        };
        (fields, summer)
    }

    /// The time at which clocks show something, in summer time or not where that is given. It is
    /// found as the C library's `mktime` finds it. `None` where it is out of range.
    pub(crate) fn moment(&self, fields: &Fields, summer: Option<bool>) -> Option<i64> {
        let local = fields.as_utc()?;
        let found = self.approach(local)?;
        match summer {
            Some(summer) if self.zone.offset(found).1 != summer => {
                let other = self.nearest(found, summer);
                match other {
                    Some(offset) => local.checked_sub(offset),
                    None => Some(found),
                }
            }
            _ => Some(found),
        }
    }

    /// Guesses the offset from UTC and corrects the guess. The first one decides
    /// where clocks are set back and show something twice. What they skip leads from one guess to
    /// the other and back; then it is the one in summer time.
    fn approach(&self, local: i64) -> Option<i64> {
        let mut guess = local.checked_sub(self.guess)?;
        for _ in 0..4 {
            let (offset, summer) = self.zone.offset(guess);
            let next = local.checked_sub(offset)?;
            if next == guess {
                return Some(guess);
            }
            let (back, next_summer) = self.zone.offset(next);
            if local.checked_sub(back)? == guess {
                return Some(if summer && !next_summer {
                    guess
                } else if next_summer && !summer {
                    next
                } else {
                    guess.max(next)
                });
            }
            guess = next;
        }
        Some(guess)
    }

    /// The offset of the nearest time with summer time, or without it.
    fn nearest(&self, moment: i64, summer: bool) -> Option<i64> {
        let distances = (1..=STRIDES).flat_map(|stride| [-stride * STRIDE, stride * STRIDE]);
        let offsets = distances.map(|distance| self.zone.offset(moment.saturating_add(distance)));
        let mut found = offsets.filter(|offset| offset.1 == summer);
        found.next().map(|offset| offset.0)
    }
}
