//! Where recordings lie on the time line, when their clocks do not say it or say it wrong.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use kymo_model::{Cursor, Event, Recording};
use kymo_time::Timestamp;

use super::{Opened, Options, open_shifted};
use crate::AnyRecording;
use crate::filter::{Moment, first_time, zone};

/// Where recordings lie on the time line, other than their clocks say.
///
/// A path stands for all recordings at or below it, which keep their distances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// What is added to the times of a path.
    pub offsets: Vec<(PathBuf, Duration)>,
    /// When the recordings of a path begin, once for each path. Offsets are added to that.
    pub begins: Vec<(PathBuf, Moment)>,
    /// The name of an event that happened at the same moment in the recordings of all paths: where
    /// it happens first in those of the first one. Paths without it stay where they are.
    pub event: Option<String>,
}

/// A span of time, forwards or backwards, as it was written.
///
/// `[+|-]N[.N][UNIT]`; units are `ns`, `us`, `ms`, `s`, `m`, `h` and `d`, and seconds where there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// Nanoseconds.
    pub nanos: i64,
}

/// Why recordings cannot be placed so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceError(String);

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlaceError {}

impl FromStr for Duration {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let nanos = nanos(text).ok_or_else(|| {
            PlaceError(format!(
                "`{text}` is no duration: expected [-]N[.N][ns|us|ms|s|m|h|d]"
            ))
        })?;
        Ok(Self { nanos })
    }
}

/// The nanoseconds that a duration tells, without what is less than one.
fn nanos(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, unit) = rest.split_at(end);
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" | "" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 18 || fraction.contains('.') {
        return None;
    }
    let mut total = whole.parse::<i128>().ok()?.checked_mul(unit)?;
    if !fraction.is_empty() {
        let digits: i128 = fraction.parse().ok()?;
        total = total.checked_add(digits * unit / 10i128.pow(fraction.len() as u32))?;
    }
    i64::try_from(sign * total).ok()
}

/// Reads `PATH=VALUE`; the path may contain `=`.
///
/// # Errors
///
/// There is no `=`, no path before it, or no such value behind it.
pub fn parse_placed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<(PathBuf, T), PlaceError> {
    let (path, value) = text
        .rsplit_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(|| {
            PlaceError(format!(
                "`{text}` does not say of which path: expected PATH="
            ))
        })?;
    let value = value
        .parse()
        .map_err(|error: T::Err| PlaceError(error.to_string()))?;
    Ok((path.into(), value))
}

/// Opens everything that is at or below some paths, and places it. Moments are told in UTC with
/// `gmt`, and in local time without.
///
/// # Errors
///
/// A placing that fits no path, or recordings that have no time to be placed by.
pub fn open_placed(
    paths: &[PathBuf],
    options: &Options,
    placing: &Placing,
    gmt: bool,
) -> Result<Opened, PlaceError> {
    let mut shifts = vec![0; paths.len()];
    for (path, duration) in &placing.offsets {
        for place in places(paths, path)? {
            shift(&mut shifts[place], duration.nanos, path)?;
        }
    }
    let mut opened = open_shifted(paths, &shifts, options);
    if !placing.begins.is_empty() {
        let offsets = shifts.clone();
        let mut has_begin = vec![false; paths.len()];
        for (path, moment) in &placing.begins {
            for place in places(paths, path)? {
                if std::mem::replace(&mut has_begin[place], true) {
                    return Err(no_time(path, "they can begin at one moment only"));
                }
                let begin = of(&opened, place).filter_map(first_time).min();
                let begin = begin.ok_or_else(|| no_time(path, "they have no time"))?;
                // The day of a time without one is that of the other recordings.
                let others = opened.recordings.iter().zip(&opened.inputs);
                let first = others
                    .filter(|(_, input)| **input != place)
                    .filter_map(|(recording, _)| first_time(recording))
                    .min();
                let wanted = moment
                    .resolve(first, &zone(gmt))
                    .map_err(|error| PlaceError(error.to_string()))?;
                let distance = wanted
                    .as_nanos()
                    .checked_sub(begin.as_nanos())
                    .and_then(|distance| distance.checked_add(offsets[place]))
                    .ok_or_else(|| too_far(path))?;
                shift(&mut shifts[place], distance, path)?;
            }
        }
        opened = open_shifted(paths, &shifts, options);
    }
    if let Some(name) = &placing.event {
        let warnings = join(name, paths, &opened, &mut shifts)?;
        opened = open_shifted(paths, &shifts, options);
        opened.warnings = warnings;
    }
    Ok(opened)
}

/// Moves paths so that the event of a name first happens when it does in the first path. Tells of
/// those that have none: they stay where they are.
fn join(
    name: &str,
    paths: &[PathBuf],
    opened: &Opened,
    shifts: &mut [i64],
) -> Result<Vec<String>, PlaceError> {
    let moments: Vec<Option<Timestamp>> = (0..paths.len())
        .map(|place| {
            let first = of(opened, place).filter_map(|recording| first_of(recording, name));
            first.min()
        })
        .collect();
    let nothing = |path: &Path| no_time(path, &format!("they have no event `{name}` with a time"));
    let Some((joint, others)) = moments.split_first() else {
        return Ok(Vec::new());
    };
    let joint = joint.ok_or_else(|| nothing(&paths[0]))?;
    if !others.is_empty() && others.iter().all(Option::is_none) {
        return Err(nothing(&paths[1]));
    }
    let mut warnings = Vec::new();
    for (place, path) in paths.iter().enumerate() {
        let Some(moment) = moments[place] else {
            // Why a path has no recordings is told elsewhere.
            if of(opened, place).next().is_some() {
                warnings.push(format!(
                    "{}: there is no event `{name}` with a time: its recordings stay where they are",
                    path.display()
                ));
            }
            continue;
        };
        let distance = joint
            .as_nanos()
            .checked_sub(moment.as_nanos())
            .ok_or_else(|| too_far(path))?;
        shift(&mut shifts[place], distance, path)?;
    }
    Ok(warnings)
}

/// The places of a path among those that are opened.
fn places(paths: &[PathBuf], wanted: &Path) -> Result<Vec<usize>, PlaceError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let found: Vec<usize> = (0..paths.len())
        .filter(|place| paths[*place] == wanted || real(&paths[*place]) == real(wanted))
        .collect();
    match found.is_empty() {
        true => Err(PlaceError(format!(
            "`{}` shall be placed, but is none of the paths that are opened",
            wanted.display()
        ))),
        false => Ok(found),
    }
}

fn shift(sum: &mut i64, nanos: i64, path: &Path) -> Result<(), PlaceError> {
    *sum = sum.checked_add(nanos).ok_or_else(|| too_far(path))?;
    Ok(())
}

fn too_far(path: &Path) -> PlaceError {
    no_time(path, "the moment is too far away")
}

fn no_time(path: &Path, why: &str) -> PlaceError {
    let path = path.display();
    PlaceError(format!(
        "the recordings of `{path}` cannot be placed: {why}"
    ))
}

/// The recordings of a path.
fn of(opened: &Opened, place: usize) -> impl Iterator<Item = &AnyRecording> {
    let recordings = opened.recordings.iter().zip(&opened.inputs);
    recordings.filter_map(move |(recording, input)| (*input == place).then_some(recording))
}

/// When an event of some name first happens.
fn first_of(recording: &AnyRecording, name: &str) -> Option<Timestamp> {
    let named: Vec<bool> = recording
        .event_classes()
        .iter()
        .map(|class| class.name.as_deref() == Some(name))
        .collect();
    if !named.contains(&true) {
        return None;
    }
    let mut first: Option<Timestamp> = None;
    for stream in 0..recording.streams().len() {
        for chunk in recording.chunks(stream) {
            // What is known to be later is not decoded.
            if let (Some(first), Some(begin)) = (first, chunk.begin_time)
                && first <= begin
            {
                break;
            }
            let mut cursor = recording.cursor(&chunk);
            let mut found = None;
            while let (None, Ok(Some(event))) = (found, cursor.next_event()) {
                if named.get(event.class_index()) == Some(&true) {
                    found = event.timestamp();
                }
            }
            if let Some(found) = found {
                first = Some(first.map_or(found, |first| first.min(found)));
                break;
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, nanos) in [
            ("1", 1_000_000_000),
            ("-1.5s", -1_500_000_000),
            ("+2ms", 2_000_000),
            ("3us", 3_000),
            ("0.25h", 900_000_000_000),
            ("1d", 86_400_000_000_000),
            ("7ns", 7),
            ("0.0000000019", 1),
        ] {
            assert_eq!(text.parse(), Ok(Duration { nanos }), "{text}");
        }
        for text in [
            "",
            "-",
            "s",
            "1w",
            "1.2.3",
            ".5",
            "1 s",
            "99999999999d",
            "1e3",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn paths_may_hold_any_character() {
        let placed = parse_placed::<Duration>("a=b.cpel=2s").unwrap();
        assert_eq!(
            placed,
            (
                "a=b.cpel".into(),
                Duration {
                    nanos: 2_000_000_000
                }
            )
        );
        assert!(parse_placed::<Duration>("2s").is_err());
        assert!(parse_placed::<Duration>("=2s").is_err());
        assert!(parse_placed::<Moment>("a=noon").is_err());
    }
}
