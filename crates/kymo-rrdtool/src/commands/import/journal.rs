//! The journal that rrdcached keeps with `-j`.

use std::collections::{BTreeMap, BTreeSet};

use kymo_io::path::shown;
use kymo_text::counted;

use super::Import;
use super::tree::bytes_of;
use crate::{Failure, Session, open};

/// Number of seconds that an update may be ahead of now: clocks differ.
const CLOCKS_DIFFER: f64 = 86_400.0;
/// What rrdtool and daemons say of an update that is not after the last one.
const PAST: &str = "illegal attempt to update using time";
/// Messages about lines and databases; more are counted only.
const MOST_REPORTED: u64 = 20;
/// What the names of its files begin with.
const FILE: &str = "rrd.journal.";

/// What the files of a journal say.
#[derive(Default)]
struct Journal {
    /// The directory of the databases, as it was given and without links.
    bases: Vec<Vec<u8>>,
    /// Of each database, by its path below the directory, the updates that it may not have yet, in their order.
    pending: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Databases elsewhere.
    outside: BTreeSet<Vec<u8>>,
    /// Lines that are not understood.
    wrong: u64,
    files: u64,
}

impl Journal {
    /// Takes the lines of a file. The last one may have been cut off, and with it the digits of a value.
    fn file(&mut self, bytes: &[u8]) {
        self.files += 1;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => self.line(line.strip_suffix(b"\r").unwrap_or(line)),
                None => self.wrong += 1,
            }
        }
    }

    /// Takes a line: `update FILE VALUES...`, `wrote FILE`, `forget FILE`.
    fn line(&mut self, line: &[u8]) {
        let mut words = words(line).into_iter();
        let (command, file) = (words.next().unwrap_or_default(), words.next());
        let Some(file) = file else {
            self.wrong += u64::from(!command.is_empty());
            return;
        };
        let is_update = match command.to_ascii_lowercase().as_slice() {
            b"update" => true,
            b"wrote" | b"forget" => false,
            _ => {
                self.wrong += 1;
                return;
            }
        };
        match self.inside(&file) {
            Some(file) if is_update => self.pending.entry(file).or_default().extend(words),
            Some(file) => drop(self.pending.remove(&file)),
            None if is_update => {
                self.outside.insert(file);
            }
            // What was written is in its database already.
            None => {}
        }
    }

    /// The path of a database below the directory; `None` if it is not there. Clients may have given either form.
    fn inside(&self, file: &[u8]) -> Option<Vec<u8>> {
        let inside = match file.starts_with(b"/") {
            false => Some(file),
            true => self.bases.iter().find_map(|base| {
                let rest = file.strip_prefix(base.as_slice())?;
                rest.strip_prefix(b"/")
            }),
        };
        inside
            .filter(|path| path.split(|byte| *byte == b'/').all(|part| part != b".."))
            .map(<[u8]>::to_vec)
    }
}

/// The words of a line of rrdcached's protocol: a backslash stands before spaces and backslashes in them.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.extend(bytes.next()),
            b' ' if word.is_empty() => {}
            b' ' => words.push(std::mem::take(&mut word)),
            other => word.push(*other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// What was done.
#[derive(Default)]
struct Tally {
    /// Updates that are stored, and the databases that have them.
    updates: u64,
    databases: u64,
    /// Updates that are not after the last one of their database.
    past: u64,
    /// Updates that are left out.
    refused: u64,
    /// Databases that cannot be updated.
    failed: u64,
    reported: u64,
}

impl Tally {
    /// Reports the first of many problems.
    fn report(&mut self, session: &mut Session<'_>, problem: std::fmt::Arguments<'_>) {
        self.reported += 1;
        if self.reported <= MOST_REPORTED {
            session.warn(problem);
        }
    }
}

/// Checks that an update has a time that its database can go on from. rrdcached takes seconds since 1970 only.
fn check_time(reading: &[u8], now: i64) -> Result<(), Failure> {
    let time = reading.split(|byte| *byte == b':').next();
    let time = time.and_then(|time| std::str::from_utf8(time).ok()?.parse::<f64>().ok());
    match time.filter(|time| time.is_finite() && *time >= 0.0) {
        None => Err(Failure::new("it does not begin with seconds since 1970")),
        Some(time) if time > now as f64 + CLOCKS_DIFFER => Err(Failure::new(
            "its time is more than a day later than the clock",
        )),
        Some(_) => Ok(()),
    }
}

impl Import<'_> {
    /// Stores the updates of a journal that the databases do not have.
    pub(super) fn journal(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        if self.columns.is_some()
            || self.time.is_some()
            || !self.texts.is_empty()
            || self.step.is_some()
        {
            return Err(self.failure("a journal makes no databases: it updates those that exist"));
        }
        let base = self.output.strip_suffix(b"/").unwrap_or(self.output);
        let mut journal = Journal {
            bases: vec![base.to_vec()],
            ..Journal::default()
        };
        let real = kymo_io::path::path(base).canonicalize();
        journal.bases.extend(real.ok().map(|real| bytes_of(&real)));
        for file in self.journal_files()? {
            journal.file(&open::bytes(&file)?);
        }
        let mut tally = Tally::default();
        for (file, readings) in &journal.pending {
            let path = [base, b"/", file].concat();
            self.updates(session, (file, &path), readings, &mut tally);
        }
        for file in &journal.outside {
            tally.failed += 1;
            tally.report(
                session,
                format_args!("'{}': it is not below '{}'", shown(file), shown(base)),
            );
        }
        if journal.wrong > 0 {
            session.warn(format_args!(
                "{}: {} lines are cut off, or neither `update`, `wrote` nor `forget`: they are left out",
                shown(self.input),
                journal.wrong
            ));
        }
        let Tally {
            updates,
            databases,
            past,
            refused,
            failed,
            ..
        } = tally;
        let past = match past {
            0 => String::new(),
            past => format!(", {past} passed over as not after the last update"),
        };
        session.write(format!(
            "{} of {} from {} of a journal{past}\n",
            counted(updates, "update"),
            counted(databases, "database"),
            counted(journal.files, "file")
        ))?;
        let counts = (refused, failed);
        let (refused, failed) = (counted(refused, "update"), counted(failed, "database"));
        match counts {
            (0, 0) => Ok(()),
            (0, _) => Err(self.failure(format_args!("{failed} could not be updated"))),
            (_, 0) => Err(self.failure(format_args!("refused {refused}"))),
            _ => Err(self.failure(format_args!(
                "refused {refused}, and {failed} could not be updated"
            ))),
        }
    }

    /// Stores the updates of a database, each by itself: one that is refused does not keep others out.
    fn updates(
        &self,
        session: &mut Session<'_>,
        (file, path): (&[u8], &[u8]),
        readings: &[Vec<u8>],
        tally: &mut Tally,
    ) {
        if readings.is_empty() {
            return;
        }
        let daemon = session.defaults.daemon.as_deref();
        if daemon.is_none_or(str::is_empty) {
            let locking = session.locking;
            if let Err(error) = session.files.with(path, None, locking, |_| ()) {
                let failure = crate::failure::of_file(path, &error);
                tally.failed += 1;
                tally.report(session, format_args!("'{}': {failure}", shown(file)));
                return;
            }
        }
        let before = tally.updates;
        let own = format!("{}: ", shown(path));
        for reading in readings {
            let words: [&[u8]; 4] = [b"update", b"--", path, reading];
            let done = check_time(reading, session.now())
                .and_then(|()| super::super::run(session, &words).unwrap_or(Ok(())));
            let Err(failure) = done else {
                tally.updates += 1;
                continue;
            };
            let problem = failure.to_string();
            if problem.contains(PAST) {
                tally.past += 1;
                continue;
            }
            tally.refused += 1;
            tally.report(
                session,
                format_args!(
                    "'{}': the update '{}' is left out: {}",
                    shown(file),
                    shown(reading),
                    problem.strip_prefix(&own).unwrap_or(&problem)
                ),
            );
        }
        tally.databases += u64::from(tally.updates > before);
    }

    /// The file, or those of the directory, the oldest first.
    fn journal_files(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let path = kymo_io::path::path(self.input);
        if !path.is_dir() {
            return Ok(vec![self.input.to_vec()]);
        }
        let cannot = |error: std::io::Error| {
            Failure::new(format!(
                "reading '{}': {}",
                shown(self.input),
                kymo_io::reason(&error)
            ))
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name();
            // Their names end in seconds and microseconds, of the same length for 300 years.
            if let Some(name) = name.to_str().filter(|name| name.starts_with(FILE)) {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() {
            return Err(self.failure(format_args!("no file's name begins with `{FILE}`")));
        }
        names.sort();
        let directory = self.input.strip_suffix(b"/").unwrap_or(self.input);
        let files = names
            .iter()
            .map(|name| [directory, b"/", name.as_bytes()].concat());
        Ok(files.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_not_pending() {
        let mut journal = Journal {
            bases: vec![b"/db".to_vec()],
            ..Journal::default()
        };
        journal.file(
            b"update /db/a.rrd 10:1\nupdate b\\ c.rrd 10:1 20:2\nwrote /db/a.rrd\nUPDATE a.rrd 30:3\nforget c.rrd\n\n\
              nonsense\nupdate /etc/d 1:1\nwrote /etc/f\nupdate ../e 1:1\nupdate b\\ c.rrd 1600003500:35",
        );
        let pending = |file: &[u8]| journal.pending[file].len();
        assert_eq!((pending(b"a.rrd"), pending(b"b c.rrd")), (1, 2));
        assert_eq!((journal.wrong, journal.outside.len()), (2, 2));
        assert_eq!(words(b"a\\\\b  c"), [&b"a\\b"[..], b"c"]);
    }
}
