//! Where recordings lie on the time line, when their clocks do not say it or say it wrong.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use kymo_model::{Cursor, Event, Recording, Shift, ShiftError};
use kymo_time::{Duration, Timestamp};

use super::correct::{apply, by_messages};
use super::{Corrections, Opened, Options, open};
use crate::AnyRecording;
use crate::analysis::MessageQuery;
use crate::filter::{Moment, first_time, has_origin, is_date, zone};

/// Where recordings lie on the time line, other than their clocks say.
///
/// A path stands for all recordings at or below it, which keep their distances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alignment {
    /// What is added to the times of a path.
    pub offsets: Vec<(PathBuf, Duration)>,
    /// When the recordings of a path begin, once for each path. Offsets are added to that.
    pub begins: Vec<(PathBuf, Moment)>,
    /// The name of an event that happened at the same time in the recordings of all paths: where
    /// it happens first in those of the first one, or where that has no origin, of the first one that
    /// has. Paths without it stay where they are. Offsets are added to that.
    pub event: Option<String>,
    /// Messages between paths by which the clocks of all are corrected to that of the first, drift included.
    /// Offsets are added to that.
    pub messages: Option<MessageQuery>,
    /// An alignment file; its corrections apply to the paths that are in it. Offsets are added to that.
    pub file: Option<PathBuf>,
}

/// Why recordings cannot be placed so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignError(pub(super) String);

impl fmt::Display for AlignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AlignError {}

/// Reads `PATH=VALUE`; the path may contain `=`.
///
/// # Errors
///
/// There is no `=`, no path before it, or no such value behind it.
pub fn parse_aligned<T: FromStr<Err: fmt::Display>>(
    text: &str,
) -> Result<(PathBuf, T), AlignError> {
    let (path, value) = text
        .rsplit_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(|| {
            AlignError(format!(
                "`{text}` does not say of which path: expected PATH="
            ))
        })?;
    let value = value
        .parse()
        .map_err(|error: T::Err| AlignError(error.to_string()))?;
    Ok((path.into(), value))
}

/// Opens everything that is at or below some paths, and aligns it. Timestamps are given in UTC with
/// `gmt`, and in local time without.
///
/// # Errors
///
/// An alignment that fits no path, or recordings that have no time to be placed by.
pub fn open_aligned(
    paths: &[PathBuf],
    options: &Options,
    alignment: &Alignment,
    gmt: bool,
) -> Result<Opened, AlignError> {
    let mut offsets = vec![Shift::default(); paths.len()];
    for (path, duration) in &alignment.offsets {
        for place in places(paths, path)? {
            offsets[place].nanos += i128::from(duration.nanos);
        }
    }
    let mut opened = open(paths, options);
    // Recordings are aligned by the times of their clocks, and offsets are added to the result.
    if !alignment.begins.is_empty() {
        let shifts = begin(&alignment.begins, paths, &opened, gmt)?;
        shift(&mut opened, paths, &shifts)?;
    }
    if let Some(name) = &alignment.event {
        let shifts = join(name, paths, &mut opened)?;
        shift(&mut opened, paths, &shifts)?;
    }
    if let Some(query) = &alignment.messages {
        let found = by_messages(query, paths, &mut opened)?;
        correct(&mut opened, paths, &found)?;
        opened.corrections = found;
    }
    if let Some(file) = &alignment.file {
        let corrections = Corrections::read(file)?;
        if !correct(&mut opened, paths, &corrections)? {
            return Err(AlignError(format!(
                "{}: none of the inputs is in it\nhint: it has a line with the absolute path of each input",
                file.display()
            )));
        }
    }
    shift(&mut opened, paths, &offsets)?;
    Ok(opened)
}

/// Corrects the clocks of the paths that have corrections; `false` if none has one.
fn correct(
    opened: &mut Opened,
    paths: &[PathBuf],
    corrections: &Corrections,
) -> Result<bool, AlignError> {
    let mut is_any = false;
    for correction in &corrections.paths {
        for place in places(paths, &correction.path).unwrap_or_default() {
            is_any = true;
            let applied = apply(correction, place, opened);
            applied.map_err(|ShiftError| too_far(&paths[place]))?;
        }
    }
    Ok(is_any)
}

/// Shifts the recordings of each path.
fn shift(opened: &mut Opened, paths: &[PathBuf], shifts: &[Shift]) -> Result<(), AlignError> {
    for (recording, &input) in opened.recordings.iter_mut().zip(&opened.inputs) {
        let shift = shifts[input];
        if shift != Shift::default() {
            let shifted = recording.shift(shift);
            shifted.map_err(|ShiftError| too_far(&paths[input]))?;
        }
    }
    for (sum, shift) in opened.shifts.iter_mut().zip(shifts) {
        *sum = sum.and(*shift);
    }
    Ok(())
}

/// The shifts of paths by which their recordings begin when it was said.
fn begin(
    begins: &[(PathBuf, Moment)],
    paths: &[PathBuf],
    opened: &Opened,
    gmt: bool,
) -> Result<Vec<Shift>, AlignError> {
    let mut shifts = vec![Shift::default(); paths.len()];
    let first_of_path = |place| of(opened, place).filter_map(first_time).min();
    let firsts: Vec<Option<Timestamp>> = (0..paths.len()).map(first_of_path).collect();
    let mut has_begin = vec![false; paths.len()];
    for (path, moment) in begins {
        for place in places(paths, path)? {
            if std::mem::replace(&mut has_begin[place], true) {
                return Err(no_time(path, "they can begin at one moment only"));
            }
            let begin = firsts[place].ok_or_else(|| no_time(path, "they have no time"))?;
            // The day of a time without one is that of the others, first of those that have a date.
            let others = || (0..paths.len()).filter(|other| *other != place);
            let aligned = |other: usize| {
                let nanos = shifts[other].apply(firsts[other]?.as_nanos());
                nanos.ok().map(Timestamp::from_nanos)
            };
            let is_dated = |other: &usize| {
                shifts[*other].from_unix_epoch
                    || of(opened, *other).any(|it| has_origin(it) == Some(true))
            };
            let dated = others().filter(is_dated).filter_map(aligned).min();
            let first = dated.or_else(|| others().filter_map(aligned).min());
            let wanted = moment
                .resolve(first, &zone(gmt))
                .map_err(|error| AlignError(error.to_string()))?;
            shifts[place] = Shift {
                nanos: i128::from(wanted.as_nanos()) - i128::from(begin.as_nanos()),
                from_unix_epoch: is_date(wanted),
            };
        }
    }
    Ok(shifts)
}

/// The shifts of paths by which the event of a name first happens when it does in the first path, or where
/// that has no origin, in the first one that has. Warns of those without such an event: they stay where
/// they are.
fn join(name: &str, paths: &[PathBuf], opened: &mut Opened) -> Result<Vec<Shift>, AlignError> {
    let mut shifts = vec![Shift::default(); paths.len()];
    let first_of_path = |place| of(opened, place).filter_map(|it| first_of(it, name)).min();
    let moments: Vec<Option<Timestamp>> = (0..paths.len()).map(first_of_path).collect();
    let nothing = |path: &Path| no_time(path, &format!("they have no event `{name}` with a time"));
    let Some((first, others)) = moments.split_first() else {
        return Ok(shifts);
    };
    let first = first.ok_or_else(|| nothing(&paths[0]))?;
    if !others.is_empty() && others.iter().all(Option::is_none) {
        return Err(nothing(&paths[1]));
    }
    let is_dated = |place: usize| of(opened, place).any(|it| has_origin(it) == Some(true));
    let dated = (0..paths.len()).filter(|place| is_dated(*place));
    let dated = dated.filter_map(|place| moments[place]).next();
    let first = match is_dated(0) {
        true => first,
        false => dated.unwrap_or(first),
    };
    let mut warnings = Vec::new();
    for (place, path) in paths.iter().enumerate() {
        let Some(moment) = moments[place] else {
            // Why a path has no recordings is reported elsewhere.
            if of(opened, place).next().is_some() {
                warnings.push(format!(
                    "{}: there is no event `{name}` with a time: its recordings stay where they are",
                    path.display()
                ));
            }
            continue;
        };
        shifts[place] = Shift {
            nanos: i128::from(first.as_nanos()) - i128::from(moment.as_nanos()),
            from_unix_epoch: dated.is_some(),
        };
    }
    opened.warnings = warnings;
    Ok(shifts)
}

/// A warning and a hint, where some recordings have no origin and others do: the first lie in 1970,
/// and the range of all of them spans decades. `paths` are those that were opened.
pub fn apart(opened: &Opened, paths: &[PathBuf]) -> Option<(String, String)> {
    let mut without: Vec<&PathBuf> = Vec::new();
    let mut is_any_dated = false;
    for (recording, input) in opened.recordings.iter().zip(&opened.inputs) {
        match (has_origin(recording), paths.get(*input)) {
            (Some(true), _) => is_any_dated = true,
            (Some(false), Some(path)) if without.last() != Some(&path) => without.push(path),
            _ => {}
        }
    }
    let first = without.first().filter(|_| is_any_dated)?.display();
    let more = match without.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    Some((
        format!(
            "`{first}`{more} has no date: its times count from 1970, decades before those of the other recordings"
        ),
        format!("`--align '{first}=TIME'` sets when it begins"),
    ))
}

/// Whether recordings have times, none of which counts from a known origin: their times mean
/// something among themselves only, and are in no time zone.
pub fn are_relative(recordings: &[AnyRecording]) -> bool {
    let mut origins = recordings.iter().filter_map(has_origin).peekable();
    origins.peek().is_some() && !origins.any(|it| it)
}

/// The places of a path among those that are opened.
fn places(paths: &[PathBuf], wanted: &Path) -> Result<Vec<usize>, AlignError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let found: Vec<usize> = (0..paths.len())
        .filter(|place| paths[*place] == wanted || real(&paths[*place]) == real(wanted))
        .collect();
    match found.is_empty() {
        true => Err(AlignError(format!(
            "cannot align `{}`: it is not among the inputs\nhint: write the path exactly as the path of an input",
            wanted.display()
        ))),
        false => Ok(found),
    }
}

fn too_far(path: &Path) -> AlignError {
    no_time(path, "their times would not fit in 64 bits of nanoseconds")
}

fn no_time(path: &Path, why: &str) -> AlignError {
    let path = path.display();
    AlignError(format!("cannot align the recordings of `{path}`: {why}"))
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
    fn paths_may_hold_any_character() {
        let placed = parse_aligned::<Duration>("a=b.cpel=2s").unwrap();
        assert_eq!(
            placed,
            (
                "a=b.cpel".into(),
                Duration {
                    nanos: 2_000_000_000
                }
            )
        );
        assert!(parse_aligned::<Duration>("2s").is_err());
        assert!(parse_aligned::<Duration>("=2s").is_err());
        assert!(parse_aligned::<Moment>("a=noon").is_err());
    }
}
