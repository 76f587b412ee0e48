//! Clocks of several hosts, brought to that of one: by messages between them, or as a file says.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use kymo_model::{Drift, Recording, Shift, ShiftError};

use super::estimate::{Line, NoEstimate, estimate};
use super::{AlignError, Opened};
use crate::analysis::{MessageQuery, messages};
use crate::filter::has_origin;

/// The first line of an alignment file.
const HEAD: &str = "# kymo alignment 1";
/// Larger files are not alignments.
const LARGEST: u64 = 16 << 20;

/// How the times of a path become those of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    /// The path whose times are corrected.
    pub path: PathBuf,
    /// A time of its clock, in nanoseconds.
    pub at: i64,
    /// Nanoseconds that are added there.
    pub add: i128,
    /// What is added to a second of its clock, in seconds.
    pub drift: f64,
    /// How far it may be wrong, in nanoseconds, between the first message and the last one.
    pub error: u64,
    /// Whether corrected times count from 1970.
    pub from_unix_epoch: bool,
}

/// Corrections of the paths of a run, which can be kept in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corrections {
    /// One for each path that is corrected.
    pub paths: Vec<Correction>,
}

impl Corrections {
    /// Reads an alignment file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not one.
    pub fn read(path: &Path) -> Result<Self, AlignError> {
        let cannot = |why: String| AlignError(format!("{}: {why}", path.display()));
        let mut bytes = Vec::new();
        // A device has no length that is known before.
        fs::File::open(path)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
            .map_err(|error| cannot(error.to_string()))?;
        if bytes.len() as u64 > LARGEST {
            return Err(cannot("it is too large for an alignment file".to_owned()));
        }
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(cannot)
    }

    /// Reads the text of an alignment file; what is wrong in it, for people.
    ///
    /// # Errors
    ///
    /// It is not one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        if lines.next().map(|(_, line)| line.trim_end()) != Some(HEAD) {
            return Err(format!(
                "it is not an alignment file: its first line is not `{HEAD}`"
            ));
        }
        let mut paths: Vec<Correction> = Vec::new();
        for (number, line) in lines {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let correction = Correction::parse(line).ok_or_else(|| {
                format!(
                    "line {number}: expected `at=NANOS add=NANOS drift=NUMBER error=NANOS epoch=yes|no path=PATH`"
                )
            })?;
            if paths.iter().any(|it| it.path == correction.path) {
                let path = correction.path.display();
                return Err(format!("line {number}: `{path}` has a line before"));
            }
            paths.push(correction);
        }
        Ok(Self { paths })
    }

    /// The text of an alignment file.
    ///
    /// # Errors
    ///
    /// A path cannot be written in a line of text.
    pub fn text(&self) -> Result<String, AlignError> {
        let mut text = format!(
            "{HEAD}\n# at a time of the path's clock: what is added, what each second gains, how far it may be wrong\n"
        );
        for corrected in &self.paths {
            let path = corrected
                .path
                .canonicalize()
                .unwrap_or_else(|_| corrected.path.clone());
            let shown = path.to_str().filter(|path| !path.contains(['\n', '\r']));
            let Some(shown) = shown else {
                let path = corrected.path.display();
                let why = format!(
                    "`{path}` cannot be written to an alignment file: its name is not a line of text"
                );
                return Err(AlignError(why));
            };
            let epoch = if corrected.from_unix_epoch {
                "yes"
            } else {
                "no"
            };
            let _ = writeln!(
                text,
                "at={} add={} drift={:e} error={} epoch={epoch} path={shown}",
                corrected.at, corrected.add, corrected.drift, corrected.error
            );
        }
        Ok(text)
    }

    /// Writes an alignment file, in the place of what is there.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), AlignError> {
        let text = self.text()?;
        let how = kymo_io::Replace::NEW;
        let write = |file: &mut fs::File| io::Write::write_all(file, text.as_bytes());
        kymo_io::replace(path, how, write)
            .map_err(|error| AlignError(format!("{}: {}", path.display(), kymo_io::reason(&error))))
    }
}

impl Correction {
    fn parse(line: &str) -> Option<Self> {
        let (values, path) = line.split_once(" path=")?;
        let mut words = values.split_ascii_whitespace();
        let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        let correction = Self {
            at: value("at")?.parse().ok()?,
            add: value("add")?.parse().ok()?,
            drift: value("drift")?
                .parse()
                .ok()
                .filter(|drift: &f64| drift.abs() <= 0.5)?,
            error: value("error")?.parse().ok()?,
            from_unix_epoch: match value("epoch")? {
                "yes" => true,
                "no" => false,
                _ => return None,
            },
            path: path.into(),
        };
        words.next().is_none().then_some(correction)
    }

    /// What is said of it: offset, drift, error.
    fn text(&self) -> String {
        let sign = if self.add < 0 { '-' } else { '+' };
        let nanos = self.add.unsigned_abs();
        format!(
            "{sign}{}.{:09} s, drift {:+.3} ppm, wrong by at most {:.3} us",
            nanos / 1_000_000_000,
            nanos % 1_000_000_000,
            self.drift * 1e6,
            self.error as f64 / 1e3
        )
    }
}

/// Finds how the times of all paths become those of the first one, by messages between them.
pub(super) fn by_messages(
    query: &MessageQuery,
    paths: &[PathBuf],
    opened: &mut Opened,
) -> Result<Corrections, AlignError> {
    let found = messages(&opened.recordings, &opened.inputs, query)
        .map_err(|error| AlignError(format!("--align-by-messages {query}: {error}")))?;
    // Ways between places that are sure, by how wrong they may be.
    let mut ways: Vec<(usize, usize, Line, f64, u64)> = Vec::new();
    for (&(a, b), between) in &found.between {
        let (a_path, b_path) = (paths[a].display(), paths[b].display());
        match estimate(between) {
            Ok(estimate) => {
                ways.push((b, a, estimate.line, estimate.error, between.messages));
                if let Some(back) = estimate.line.inverse() {
                    ways.push((a, b, back, estimate.error, between.messages));
                }
            }
            Err(NoEstimate::OneWay) => opened.warnings.push(format!(
                "all messages between `{a_path}` and `{b_path}` go one way: they do not say how far the clocks are apart"
            )),
            Err(NoEstimate::Contradiction) => opened.warnings.push(format!(
                "messages between `{a_path}` and `{b_path}` contradict each other: some are received before they are \
                 sent whatever the clocks are; a clock was set, or `{query}` does not distinguish messages"
            )),
        }
    }
    if found.doubled > 0 {
        opened.warnings.push(format!(
            "{} messages have the key of another one, and are not used",
            found.doubled
        ));
    }
    if found.dropped > 0 {
        opened.warnings.push(format!(
            "{} events were given up that waited for the other end of their message: too many waited",
            found.dropped
        ));
    }
    // From the first path on, always the way that is surest next.
    let mut known: Vec<Option<(Line, f64, u64)>> = vec![None; paths.len()];
    if let Some(first) = known.first_mut() {
        *first = Some((Line::default(), 0.0, 0));
    }
    loop {
        let reach = |&(from, to, line, error, messages): &(usize, usize, Line, f64, u64)| {
            let (onwards, so_far, _) = known[to]?;
            let is_new = known[from].is_none();
            is_new.then(|| (from, line.then(&onwards), so_far + error, messages))
        };
        let next = ways
            .iter()
            .filter_map(reach)
            .min_by(|a, b| a.2.total_cmp(&b.2));
        let Some((from, line, error, messages)) = next else {
            break;
        };
        known[from] = Some((line, error, messages));
    }
    let of_place = |opened: &Opened, place: usize| {
        let recordings = opened.recordings.iter().zip(&opened.inputs);
        let mut origins = recordings.filter(|(_, input)| **input == place);
        origins.any(|(recording, _)| has_origin(recording) == Some(true))
    };
    let from_unix_epoch = of_place(opened, 0);
    let mut corrections = Corrections::default();
    for (place, path) in paths.iter().enumerate().skip(1) {
        let Some((line, error, messages)) = known[place] else {
            if opened.inputs.contains(&place) {
                opened.warnings.push(format!(
                    "{}: no messages connect it with `{}`: its recordings stay where they are",
                    path.display(),
                    paths[0].display()
                ));
            }
            continue;
        };
        let correction = Correction {
            path: path.clone(),
            at: line.pivot,
            add: line.offset,
            drift: line.drift,
            error: error.ceil() as u64,
            from_unix_epoch,
        };
        opened.notes.push(format!(
            "aligned `{}` to `{}` by {messages} messages: {}",
            path.display(),
            paths[0].display(),
            correction.text()
        ));
        corrections.paths.push(correction);
    }
    match corrections.paths.is_empty() && paths.len() > 1 {
        true => {
            let why = match opened.warnings.is_empty() {
                true => "no message was sent by one path and received by another".to_owned(),
                false => opened.warnings.join("\n"),
            };
            Err(AlignError(format!("--align-by-messages {query}: {why}")))
        }
        false => Ok(corrections),
    }
}

/// Corrects the times of the recordings of a path.
pub(super) fn apply(
    correction: &Correction,
    place: usize,
    opened: &mut Opened,
) -> Result<(), ShiftError> {
    let drift = Drift {
        pivot: correction.at,
        parts: (correction.drift * 1e12).round() as i64,
    };
    let shift = Shift {
        nanos: correction.add,
        from_unix_epoch: correction.from_unix_epoch,
    };
    let mut cannot_drift = Vec::new();
    let mut finest = 0;
    for (recording, &input) in opened.recordings.iter_mut().zip(&opened.inputs) {
        if input != place {
            continue;
        }
        if drift.parts != 0 {
            match recording.correct_drift(drift)? {
                Some(rest) => finest = finest.max(rest),
                None => cannot_drift.push(recording.path().to_path_buf()),
            }
        }
        recording.shift(shift)?;
    }
    if let Some(path) = cannot_drift.first() {
        opened.warnings.push(format!(
            "{}: recordings of this format are moved, and not corrected for drift ({:+.3} ppm)",
            path.display(),
            correction.drift * 1e6
        ));
    }
    if finest > 1_000 {
        opened.warnings.push(format!(
            "{}: its clock has so few ticks a second that its drift is corrected to {:.3} ppm only",
            correction.path.display(),
            finest as f64 / 1e6
        ));
    }
    if let Some(sum) = opened.shifts.get_mut(place) {
        *sum = sum.and(shift);
    }
    if let Some(known) = opened.drifts.get_mut(place) {
        *known = (drift.parts != 0).then_some(drift);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn files_are_read_as_they_were_written(
            numbers in prop::collection::vec(
                (any::<i64>(), any::<i128>(), -0.5f64..0.5, any::<u64>(), any::<bool>()), 0..5),
        ) {
            let paths = numbers.into_iter().enumerate().map(|(at, (pivot, add, drift, error, epoch))| Correction {
                path: format!("/nowhere/a b={at} path=c").into(),
                at: pivot,
                add,
                drift,
                error,
                from_unix_epoch: epoch,
            });
            let written = Corrections { paths: paths.collect() };
            let read = Corrections::parse(&written.text().unwrap()).unwrap();
            prop_assert_eq!(read, written);
        }

        #[test]
        fn any_text_is_withstood(text in "(# kymo alignment 1\n)?(at=[0-9-]{0,20} |add=[0-9-]{0,3} |drift=[0-9e.-]{0,8}|path=|\\PC){0,20}") {
            let _ = Corrections::parse(&text);
        }
    }

    #[test]
    fn what_is_wrong_in_a_file_has_its_line() {
        assert!(Corrections::parse("").unwrap_err().contains("first line"));
        let text = format!("{HEAD}\n# a comment\n\nat=1 add=2 drift=x error=3 epoch=yes path=a");
        assert!(
            Corrections::parse(&text)
                .unwrap_err()
                .starts_with("line 4: ")
        );
    }
}
