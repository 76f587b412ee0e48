//! The values of options.

use kymo_rrd::text::numbers;

use super::{MAX_SIDE, YGrid};
use crate::Failure;
use crate::path::shown;

/// C's `atoi`: what is not a number is 0, and larger numbers are the largest.
pub(super) fn integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[sign..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let text = &text[..sign + digits];
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.unwrap_or(match (digits, text.first()) {
        (0, _) => 0,
        (_, Some(b'-')) => i64::MIN,
        _ => i64::MAX,
    })
}

/// The same, of a number that is at most so far from 0.
pub(super) fn clamped(text: &[u8], most: i32) -> i32 {
    integer(text).clamp(-i64::from(most), i64::from(most)) as i32
}

pub(super) fn side(name: &str, value: &[u8]) -> Result<u32, Failure> {
    match integer(value) {
        found if found < 10 => Err(Failure::new(format!("{name} below 10 pixels"))),
        found => u32::try_from(found)
            .ok()
            .filter(|found| *found <= MAX_SIDE)
            .ok_or_else(|| {
                Failure::new(format!(
                    "{name} {found} is too large: at most {MAX_SIDE} pixels"
                ))
            }),
    }
}

pub(super) fn number(letter: &str, value: &[u8]) -> Result<f64, Failure> {
    let number = numbers::whole(value)
        .ok()
        .filter(|number| number.is_finite());
    number.ok_or_else(|| {
        let value = shown(value);
        Failure::new(format!(
            "option -{letter} - Cannot convert '{value}' to float"
        ))
    })
}

/// Two numbers with a colon between them.
pub(super) fn pair(value: &[u8]) -> Option<(f64, f64)> {
    let at = value.iter().position(|byte| *byte == b':')?;
    let number = |text| {
        numbers::whole(text)
            .ok()
            .filter(|number| number.is_finite())
    };
    Some((number(&value[..at])?, number(&value[at + 1..])?))
}

pub(super) fn y_grid(value: &[u8]) -> Result<YGrid, Failure> {
    if value == b"none" {
        return Ok(YGrid::None);
    }
    let (step, label) = pair(value).ok_or_else(|| Failure::new("invalid y-grid format"))?;
    if step <= 0.0 {
        return Err(Failure::new("grid step must be > 0"));
    }
    if label < 1.0 {
        return Err(Failure::new("label factor must be > 0"));
    }
    let label = label as u32;
    Ok(YGrid::Lines { step, label })
}

pub(super) fn right_axis(value: &[u8]) -> Result<(f64, f64), Failure> {
    let found = pair(value);
    let (scale, shift) =
        found.ok_or_else(|| Failure::new("invalid right-axis format expected scale:shift"))?;
    match scale == 0.0 {
        true => Err(Failure::new("the second_axis_scale  must not be 0")),
        false => Ok((scale, shift)),
    }
}

pub(super) fn grid_dash(value: &[u8]) -> Result<(f64, f64), Failure> {
    let found = pair(value).filter(|(on, off)| *on >= 0.0 && *off >= 0.0);
    found.ok_or_else(|| Failure::new("invalid grid-dash format"))
}

pub(super) fn choice<T: Copy>(name: &str, value: &[u8], known: &[(&str, T)]) -> Result<T, Failure> {
    let found = known.iter().find(|(known, _)| known.as_bytes() == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let (value, names) = (shown(value), names.join(" "));
        Failure::new(format!("unknown {name} '{value}' (known: {names})"))
    })
}

/// The lines of a title, three at most; empty ones at the beginning are left out.
pub(super) fn title_lines(text: &str) -> Vec<String> {
    let text = text
        .replace("\\n", "\n")
        .replace("<br>", "\n")
        .replace("<br/>", "\n");
    let lines = text.split('\n').skip_while(|line| line.is_empty());
    lines.take(3).map(str::to_owned).collect()
}

/// Checks that a format asks for a name and two sizes, in this order, or is empty.
pub(super) fn image_info(format: &str) -> Result<String, Failure> {
    if format.is_empty() {
        return Ok(String::new());
    }
    let mut rest = format;
    for wanted in ["s", "lu", "lu"] {
        let mut found = None;
        while let Some(at) = rest.find('%') {
            rest = &rest[at + 1..];
            match rest.strip_prefix('%') {
                Some(more) => rest = more,
                None => {
                    found = rest.strip_prefix(wanted);
                    break;
                }
            }
        }
        rest = found.ok_or_else(|| wrong_image_info(format))?;
    }
    match rest.replace("%%", "").contains('%') {
        true => Err(wrong_image_info(format)),
        false => Ok(format.to_owned()),
    }
}

pub(super) fn wrong_image_info(format: &str) -> Failure {
    Failure::new(format!(
        "invalid format string '{format}': expected `%s`, `%lu` and `%lu`, for the name, the width and the height"
    ))
}
