//! What collectd's own macros computed: every line of the tables beside this file.

use kymo_machine::Number;
use kymo_time::{CdTime, CdTimeError};
use serde_json::Value;

/// Seconds that fit.
const SECONDS: u64 = 1 << 34;

fn number(line: &Value, key: &str) -> u64 {
    line[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {line}"))
}

/// Seconds and parts of a second, as collectd's macros give them: a whole second of parts
/// is the next second.
fn carried(line: &Value, key: &str, parts: u64) -> (u64, u32) {
    let pair = &line[key];
    let (seconds, rest) = (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
    (seconds + rest / parts, (rest % parts) as u32)
}

fn from_cdtime(line: &Value) {
    let time = CdTime::from_ticks(number(line, "t"));
    // collectd's addition goes round in the last half second.
    let seconds = match number(line, "time_t") {
        0 if time.ticks() > 1 << 30 => Err(CdTimeError::TooLarge),
        seconds => Ok(seconds),
    };
    assert_eq!(time.to_seconds(), seconds, "{line}");
    assert_eq!(time.to_millis(), number(line, "ms"), "{line}");
    assert_eq!(time.to_timeval(), carried(line, "tv", 1_000_000), "{line}");
    assert_eq!(
        time.to_timespec(),
        carried(line, "ts", 1_000_000_000),
        "{line}"
    );
    if line["k"] == "upstream_from" {
        return;
    }
    assert_eq!(time.to_micros(), number(line, "us"), "{line}");
    assert_eq!(time.to_nanos(), number(line, "ns"), "{line}");
    let double = Number::parse(line["double_hex"].as_str().unwrap()).unwrap();
    assert_eq!(time.to_f64().to_bits(), double.bits.unwrap(), "{line}");
    for (key, decimals) in [("f3", 3), ("f6", 6), ("f9", 9)] {
        assert_eq!(time.fixed(decimals), line[key].as_str().unwrap(), "{line}");
    }
    assert_eq!(format!("{time}"), line["f3"].as_str().unwrap());
    // A double of 2^34 seconds is beyond what 64 bits hold: in C the cast is not defined.
    let back = match double.value() < SECONDS as f64 {
        true => Ok(CdTime::from_ticks(number(line, "back_from_double"))),
        false => Err(CdTimeError::TooLarge),
    };
    assert_eq!(CdTime::from_f64(double.value()), back, "{line}");
    assert_eq!(CdTime::from_decimal(&time.lossless()), Ok(time), "{line}");
}

fn to_cdtime(line: &Value) {
    for (key, parts, convert) in [
        ("ns", 1_000_000_000, CdTime::from_nanos as fn(u64) -> _),
        ("us", 1_000_000, CdTime::from_micros),
        ("ms", 1_000, CdTime::from_millis),
    ] {
        let count = number(line, key);
        let expected = match count / parts < SECONDS {
            true => Ok(CdTime::from_ticks(number(line, &format!("from_{key}")))),
            false => Err(CdTimeError::TooLarge),
        };
        assert_eq!(convert(count), expected, "{key} of {line}");
    }
    if let Ok(time) = CdTime::from_nanos(number(line, "ns")) {
        assert_eq!(time.to_nanos(), number(line, "ns_roundtrip"), "{line}");
    }
}

fn parse(line: &Value) {
    let text = line["s"].as_str().unwrap();
    // The double nearest to this one is 2^34.
    let expected = match text {
        "17179869183.9999999" => Err(CdTimeError::TooLarge),
        _ => Ok(CdTime::from_ticks(number(line, "cdtime"))),
    };
    assert_eq!(CdTime::from_user(text), expected, "{line}");
}

/// Checks all lines, and that their number is `lines`.
fn check(text: &str, lines: usize) {
    assert_eq!(text.lines().count(), lines);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["k"].as_str().unwrap() {
            "from_cdtime" | "upstream_from" => from_cdtime(&line),
            "to_cdtime" => to_cdtime(&line),
            "upstream_ns_to" => {
                let time = CdTime::from_nanos(number(&line, "ns")).unwrap();
                assert_eq!(time.ticks(), number(&line, "t"), "{line}");
            }
            "parse" => parse(&line),
            kind => panic!("{kind}"),
        }
    }
}

#[test]
fn collectds_macros() {
    check(include_str!("data/cdtime_vectors.jsonl"), 944);
}

#[test]
fn collectds_own_tests() {
    check(include_str!("data/cdtime_upstream_vectors.jsonl"), 15);
}
