//! `kymo time`.

use kymo_text::Line;
use kymo_text::json::Writer;
use kymo_time::{CdTime, CdTimeError};

use crate::args::time::Time;
use crate::terminal::{Failure, Outcome, Terminal};

/// A time as it was written, and what it is.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    text: String,
    time: CdTime,
}

impl Given {
    /// Reads a time in any form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let time = read(text).map_err(|error| match error {
            CdTimeError::NotANumber | CdTimeError::NotADate => {
                "expected a number, with or without its unit (s, ms, us, ns, cd), or a date and \
                 time such as 2006-01-02T15:04:05Z"
                    .to_string()
            }
            error => error.to_string(),
        })?;
        let text = text.to_string();
        Ok(Self { text, time })
    }
}

fn read(text: &str) -> Result<CdTime, CdTimeError> {
    let count = |digits: &str| -> Result<u64, CdTimeError> {
        match digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Err(CdTimeError::NotANumber),
            false => digits.parse().map_err(|_| CdTimeError::TooLarge),
        }
    };
    if text.contains(':') {
        return CdTime::from_rfc3339(text);
    }
    if let Some(digits) = text.strip_suffix("cd") {
        return count(digits).map(CdTime::from_ticks);
    }
    for (unit, places) in [("ms", 3), ("us", 6), ("ns", 9)] {
        if let Some(digits) = text.strip_suffix(unit) {
            return parts(digits, places);
        }
    }
    if let Some(number) = text.strip_suffix('s') {
        return seconds(number);
    }
    match count(text) {
        Ok(count) if count >= 1 << 34 => Ok(CdTime::from_ticks(count)),
        Err(CdTimeError::TooLarge) => Err(CdTimeError::TooLarge),
        _ => seconds(text),
    }
}

/// Converts decimal digits of a unit that is `places` digits below the second, to the nearest count.
fn parts(digits: &str, places: usize) -> Result<CdTime, CdTimeError> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CdTimeError::NotANumber);
    }
    let whole = format!("{whole:0>width$}", width = places + 1);
    let (seconds, parts) = whole.split_at(whole.len() - places);
    CdTime::from_decimal(&format!("{seconds}.{parts}{fraction}"))
}

/// Decimal digits exactly, any other number as C reads it.
fn seconds(text: &str) -> Result<CdTime, CdTimeError> {
    match CdTime::from_decimal(text) {
        Err(CdTimeError::NotANumber) => CdTime::from_user(text),
        read => read,
    }
}

/// Shows times in all forms.
pub(crate) fn run(args: &Time, terminal: &Terminal) -> Result<Outcome, Failure> {
    let mut out = Line::new();
    for (position, given) in args.values.iter().enumerate() {
        let time = given.time;
        let (seconds, date) = (time.lossless(), time.rfc3339_nanos());
        if args.json {
            let mut json = Writer::default();
            json.begin_object();
            json.entry("value", given.text.as_str());
            json.entry("cdtime", time.ticks());
            json.entry("seconds", seconds.as_str());
            json.entry("ns", time.to_nanos());
            json.entry("rfc3339", date.as_str());
            json.end_object();
            out.push(&json.finish());
            continue;
        }
        if position > 0 {
            out.push_byte(b'\n');
        }
        let (ticks, nanos) = (time.ticks(), time.to_nanos());
        let text =
            format!("cdtime   {ticks}\nseconds  {seconds}\nns       {nanos}\nrfc3339  {date}\n");
        out.push(text.as_bytes());
    }
    terminal.write(out.as_bytes())?;
    Ok(Outcome::Good)
}
