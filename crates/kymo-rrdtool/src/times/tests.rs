use kymo_time::{Date, days_of_date};
use proptest::prelude::*;

use super::*;

/// Saturday, 2026-11-21 11:54:01 in Zurich.
const NOW: i64 = 1_795_258_441;

fn zurich() -> LocalZone {
    LocalZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn clock(zone: &LocalZone) -> Clock<'_> {
    Clock {
        now: NOW,
        zone,
        is_first: false,
    }
}

/// What a text means, as `YYYY-MM-DD HH:MM:SS` in Zurich.
fn local(text: &str) -> String {
    let zone = zurich();
    match time(text.as_bytes(), &clock(&zone)) {
        Err(error) => error.to_string(),
        Ok(time) => {
            let (fields, _) = Calendar::new(&clock(&zone)).fields(time);
            let (hour, rest) = (fields.second_of_day / 3600, fields.second_of_day % 3600);
            format!(
                "{:04}-{:02}-{:02} {hour:02}:{:02}:{:02}",
                fields.year,
                fields.month,
                fields.day,
                rest / 60,
                rest % 60
            )
        }
    }
}

#[test]
fn references() {
    for (text, expected) in [
        ("now", "2026-11-21 11:54:01"),
        ("N", "2026-11-21 11:54:01"),
        ("noon yesterday", "2026-11-20 12:00:00"),
        ("midnight tomorrow", "2026-11-22 00:00:00"),
        ("teatime", "2026-11-21 16:00:00"),
        ("9", "2026-11-21 09:00:00"),
        ("9:5", "2026-11-21 09:05:00"),
        ("12am", "2026-11-21 00:00:00"),
        ("12:30am", "2026-11-21 00:30:00"),
        ("12 pm", "2026-11-21 12:00:00"),
        ("11:15 PM today", "2026-11-21 23:15:00"),
        ("noon mon", "2026-11-16 12:00:00"),
        ("10:00 friday", "2026-11-20 10:00:00"),
        ("noon sunday", "2026-11-15 12:00:00"),
        ("jan 5", "2026-01-05 11:54:01"),
        ("jan 40", "2026-02-09 11:54:01"),
        ("jan 5 2020 10:30", "2020-01-05 10:30:00"),
        ("10:00 jan 5 2020", "2020-01-05 10:00:00"),
        ("1/5/2020", "2020-01-05 00:00:00"),
        ("5.1.2020", "2020-01-05 00:00:00"),
        ("01/05/20", "2020-01-05 00:00:00"),
        ("20200105", "2020-01-05 00:00:00"),
        ("31.12.2020 10:30", "2020-12-31 10:30:00"),
        ("10:30 20200105", "2020-01-05 10:30:00"),
        ("29.2.2021", "2021-03-01 00:00:00"),
        ("1/5/37", "2037-01-05 00:00:00"),
        ("1/5/138", "2038-01-05 00:00:00"),
        ("1/5/70", "1970-01-05 00:00:00"),
        ("noon 1/5", "2026-01-05 12:00:00"),
        // rrdtool: of the year 30000.
        ("5.1", "2026-01-05 00:00:00"),
        ("1/5", "2026-01-05 00:00:00"),
        ("10:30 1/5", "2026-01-05 10:30:00"),
        ("10 jan 5", "2026-01-05 10:00:00"),
        ("1600000000", "2020-09-13 14:26:40"),
        ("10:30 1600000000", "2020-09-13 14:26:40"),
        // rrdtool: before 1970.
        ("epoch+1600000000", "2020-09-13 14:26:40"),
        // What is behind a character that nothing begins with does not count.
        ("now#1", "2026-11-21 11:54:01"),
        ("20200105 pm", "2020-01-05 00:00:00"),
        // Clocks skip the given time, or show it twice.
        ("02:30 20260329", "2026-03-29 03:30:00"),
        ("02:30 20261025", "2026-10-25 02:30:00"),
    ] {
        assert_eq!(local(text), expected, "{text}");
    }
}

#[test]
fn offsets() {
    for (text, expected) in [
        ("now-5m", "2026-06-21 11:54:01"),
        ("-6m", "2026-11-21 11:48:01"),
        ("-10M", "2026-11-21 11:44:01"),
        ("now-1d5m", "2026-06-20 11:54:01"),
        ("-1d7m", "2026-04-20 11:54:01"),
        ("-1d-7m", "2026-11-20 11:47:01"),
        ("-1h5m", "2026-11-21 10:49:01"),
        ("-1s2m", "2026-11-21 11:52:00"),
        ("-3 months 20 m", "2024-12-21 11:54:01"),
        ("-1w 20m", "2025-03-14 11:54:01"),
        ("-1yr3mon", "2025-08-21 11:54:01"),
        ("-3hr 20", "2026-11-21 08:53:41"),
        ("now-1foo", "2026-11-21 11:54:00"),
        ("-2.5h", "2026-11-21 06:53:59"),
        ("now - 1_d", "2026-11-20 11:54:01"),
        // The second sign is taken for the unit of the first number.
        ("now-5+3", "2026-11-21 11:53:53"),
        ("teatime-1d", "2026-11-20 16:00:00"),
        ("jan 5 2020 -1d", "2020-01-04 11:54:01"),
        ("1600000000-1d", "2020-09-12 14:26:40"),
        // The clock's time is kept where dates are counted from now, and that of UTC elsewhere.
        ("now-6month", "2026-05-21 11:54:01"),
        ("1603623600-1month", "2020-09-25 13:00:00"),
        ("1601031600+1month", "2020-10-25 12:00:00"),
        ("1601028000+1month", "2020-10-25 11:00:00"),
    ] {
        assert_eq!(local(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_time_is_reported_as_rrdtool_reports_it() {
    for (text, message) in [
        ("13pm", "there cannot be more than 12 AM or PM hours"),
        ("24:00", "did you really mean month 24?"),
        ("24", "did you really mean month 24?"),
        ("31", "did you really mean month 31?"),
        ("10:60", "parsing HH:MM syntax, got MM = 60 (>59!)"),
        (
            "1:x",
            "Parsing HH:MM syntax, expecting MM as number, got none",
        ),
        ("jan 5 10:30", "unparsable trailing text: '...:30'"),
        ("5 jan", "the day of the month should follow month name"),
        (
            "1/5/38",
            "won't handle dates before epoch (01/01/1970), sorry",
        ),
        (
            "1/5/69",
            "won't handle dates before epoch (01/01/1970), sorry",
        ),
        (
            "1/5/139",
            "invalid year 139 (should be either 00-99 or >1900)",
        ),
        (
            "1/5/1970",
            "invalid year 1970 (should be either 00-99 or >1900)",
        ),
        ("2020-01-05", "did you really mean month 2020?"),
        ("19700101", "did you really mean month 19700101?"),
        ("24000101", "did you really mean month 24000101?"),
        (
            "20200132",
            "I'm afraid that 32 is not a valid day of the month",
        ),
        ("9 5", "I'm afraid that 0 is not a valid day of the month"),
        ("1/", "there should be day number after '/'"),
        ("1./2", "there should be month number after '.'"),
        ("1/5/", "there should be year number after '/'"),
        ("10:30:15", "unparsable trailing text: '...:15'"),
        ("20200105-1d", "unparsable trailing text: '...1d'"),
        ("1600000000 10:30", "unparsable trailing text: '...10:30'"),
        ("-1d noon", "unparsable trailing text: '...noon'"),
        (
            "now 5m",
            "if 'now' is followed by a token it must be +|- offset",
        ),
        ("epoch", "'start' or 'end' MUST be followed by +|- offset"),
        ("end", "'start' or 'end' MUST be followed by +|- offset"),
        ("foo bar", "unparsable time: foo bar"),
        ("monday", "unparsable time: monday"),
        ("", "unparsable time: "),
        ("-", "There should be number after '-'"),
        ("now+x", "There should be number after '+'"),
        (
            "99999999999999999999",
            "the specified time is incorrect (out of range?)",
        ),
        (
            "-99999999999999999s9999999999999999999y",
            "the specified time is incorrect (out of range?)",
        ),
        (
            "-9223372036854775807y",
            "the specified time is incorrect (out of range?)",
        ),
        (
            "9223372036854775807+1s",
            "the specified time is incorrect (out of range?)",
        ),
        (
            "start+1h",
            "specifying time relative to the 'start' or 'end' makes no sense here",
        ),
    ] {
        assert_eq!(local(text), message, "{text}");
    }
}

fn span(start: &str, end: &str) -> Result<(i64, i64), TimeError> {
    let parse = |text: &str| TimeSpec::parse(text.as_bytes()).unwrap();
    let zone = zurich();
    TimeSpec::span(&parse(start), &parse(end), &clock(&zone))
}

#[test]
fn start_and_end() {
    let hour = 3600;
    for (start, end, expected) in [
        ("1600000000", "start+1h", (1_600_000_000, 1_600_003_600)),
        ("end-1h", "now-1h", (NOW - 2 * hour, NOW - hour)),
        ("-1h", "now", (NOW - hour, NOW)),
        // Thirty days of 24 hours, although summer time ends between.
        ("end-1month", "1603623600", (1_601_031_600, 1_603_623_600)),
    ] {
        assert_eq!(span(start, end), Ok(expected), "{start} {end}");
    }
    for (start, end, error) in [
        ("end-1d", "start+1d", TimeError::EachOther),
        ("start-1d", "now", TimeError::StartToItself),
        ("-1d", "end-1h", TimeError::EndToItself),
    ] {
        assert_eq!(span(start, end), Err(error), "{start} {end}");
    }
    let zone = zurich();
    let day = TimeSpec::span(&TimeSpec::DAY_BEFORE_END, &TimeSpec::NOW, &clock(&zone));
    assert_eq!(day, Ok((NOW - 86_400, NOW)));
}

/// Where clocks are set back: what rrdtool 1.7.2 takes for the start of `create`, and for that of `fetch`.
#[test]
fn what_clocks_show_twice_is_one_moment() {
    for (rule, text, first, later) in [
        (
            "EST5EDT,M3.2.0,M11.1.0",
            "01:30 20261101",
            1_793_511_000,
            1_793_514_600,
        ),
        (
            "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
            "01:45 20260405",
            1_775_315_700,
            1_775_313_900,
        ),
    ] {
        let zone = LocalZone::posix(rule).unwrap();
        for (is_first, moment) in [(true, first), (false, later)] {
            let clock = Clock {
                is_first,
                ..clock(&zone)
            };
            assert_eq!(time(text.as_bytes(), &clock), Ok(moment), "{rule}");
        }
    }
}

#[test]
fn every_moment_of_a_year_is_found_again() {
    for rule in [
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "UTC0",
    ] {
        let zone = LocalZone::posix(rule).unwrap();
        let calendar = Calendar::new(&clock(&zone));
        for moment in (NOW - 31_536_000..NOW).step_by(1807) {
            let (fields, summer) = calendar.fields(moment);
            assert_eq!(
                calendar.moment(&fields, Some(summer)),
                Some(moment),
                "{rule}"
            );
            let found = calendar.moment(&fields, None).unwrap();
            assert_eq!(calendar.fields(found).0, fields, "{rule}");
        }
    }
}

proptest! {
    #[test]
    fn any_text(text: Vec<u8>, now: i64) {
        let zone = zurich();
        if let Ok(spec) = TimeSpec::parse(&text) {
            let _ = spec.resolve(&Clock { now, zone: &zone, is_first: false });
        }
    }

    #[test]
    fn any_words(
        words in proptest::collection::vec(
            "[ +.:/_-]|[0-9]{1,20}|now|start|end|epoch|noon|am|pm|mon|jan|yesterday|m|d|y|h|s|w",
            0..12,
        ),
        now in -1_000_000_000_000i64..1_000_000_000_000,
    ) {
        let zone = zurich();
        if let Ok(spec) = TimeSpec::parse(words.concat().as_bytes()) {
            let clock = Clock { now, zone: &zone, is_first: true };
            let _ = spec.resolve(&clock);
            let _ = TimeSpec::span(&spec, &TimeSpec::NOW, &clock);
            let _ = TimeSpec::span(&TimeSpec::NOW, &spec, &clock);
        }
    }

    #[test]
    fn dates_are_found(year in 1971i64..3000, month in 1u8..=12, day in 1u8..=28) {
        let zone = LocalZone::posix("UTC0").unwrap();
        let days = days_of_date(Date { year, month, day });
        for text in [format!("{month}/{day}/{year}"), format!("{day}.{month}.{year}")] {
            let spec = TimeSpec::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(spec.resolve(&clock(&zone)), Ok(days * 86_400));
        }
    }
}

#[test]
fn times_are_anchored() {
    let utc = LocalZone::utc();
    let clock = Clock {
        now: 1_600_000_000,
        zone: &utc,
        is_first: true,
    };
    let anchored = |text: &str| TimeSpec::parse(text.as_bytes()).unwrap().anchored(&clock);
    let shift = |days, seconds| Shift {
        days,
        seconds,
        ..Shift::default()
    };
    let at = |time, seconds| Ok(Anchored::At { time, seconds });
    assert_eq!(anchored("end-1d"), Ok(Anchored::AfterEnd(shift(-1, 0))));
    assert_eq!(
        anchored("start+2h"),
        Ok(Anchored::AfterStart(shift(0, 7200)))
    );
    assert_eq!(anchored("epoch+5"), Ok(Anchored::AfterEpoch(shift(0, 5))));
    assert_eq!(anchored("now-1h"), at(1_600_000_000, -3600));
    assert_eq!(anchored("1500000000-1d"), at(1_499_913_600, 0));
}
