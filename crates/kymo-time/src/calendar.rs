//! Dates of the Gregorian calendar, without leap seconds, as POSIX counts.

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// Year; year 0 is the one before year 1.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

/// The date of the day that many days after 1970-01-01.
pub const fn date_of_days(days: i64) -> Date {
    // Years start on 1 March, so that the leap day is the last of its year;
    // 400 years have 146,097 days.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    } as u8;
    let year = year_of_era + era * 400 + (month <= 2) as i64;
    Date { year, month, day }
}

/// Days from 1970-01-01 to `date`. Months and days out of range carry over.
pub const fn days_of_date(date: Date) -> i64 {
    let year = if date.month <= 2 {
        date.year - 1
    } else {
        date.year
    };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (date.month as i64 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + date.day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        assert_eq!(
            date_of_days(0),
            Date {
                year: 1970,
                month: 1,
                day: 1
            }
        );
        assert_eq!(
            date_of_days(11_016),
            Date {
                year: 2000,
                month: 2,
                day: 29
            }
        );
        let mut last = date_of_days(-800_001);
        for days in -800_000..800_000 {
            let date = date_of_days(days);
            assert!(date > last);
            assert_eq!(days_of_date(date), days);
            last = date;
        }
    }
}
