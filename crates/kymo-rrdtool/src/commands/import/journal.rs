//! The journal that rrdcached keeps with `-j`.

use std::collections::{BTreeMap, BTreeSet};

use kymo_io::path::shown;

use super::Import;
use super::tree::bytes_of;
use crate::{Failure, Session, open};

/// Updates of a database that are stored at a time.
const MOST_AT_ONCE: usize = 1000;
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
        let (mut updates, mut databases, mut failed) = (0, 0, 0u64);
        for (file, readings) in &journal.pending {
            let path = [base, b"/", file].concat();
            let done = readings.chunks(MOST_AT_ONCE).try_for_each(|readings| {
                let mut words: Vec<&[u8]> = vec![b"update", b"--skip-past-updates", b"--", &path];
                words.extend(readings.iter().map(Vec::as_slice));
                super::super::run(session, &words).unwrap_or(Ok(()))
            });
            match done {
                Ok(()) => {
                    databases += 1;
                    updates += readings.len();
                }
                Err(failure) => {
                    failed += 1;
                    if failed <= MOST_REPORTED {
                        session.warn(format_args!("'{}': {failure}", shown(file)));
                    }
                }
            }
        }
        for file in &journal.outside {
            failed += 1;
            if failed <= MOST_REPORTED {
                session.warn(format_args!(
                    "'{}': it is not below '{}'",
                    shown(file),
                    shown(base)
                ));
            }
        }
        if journal.wrong > 0 {
            session.warn(format_args!(
                "{}: {} lines are cut off, or neither `update`, `wrote` nor `forget`: they are left out",
                shown(self.input),
                journal.wrong
            ));
        }
        session.write(format!(
            "{updates} updates of {databases} databases from {} files of a journal\n",
            journal.files
        ))?;
        match failed {
            0 => Ok(()),
            failed => Err(self.failure(format_args!("{failed} databases could not be updated"))),
        }
    }

    /// The file, or those of the directory, the oldest first.
    fn journal_files(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let path = kymo_io::path::path(self.input);
        if !path.is_dir() {
            return Ok(vec![self.input.to_vec()]);
        }
        let cannot = |error: std::io::Error| {
            Failure::new(format!("reading '{}': {error}", shown(self.input)))
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
        let of = |file: &[u8]| journal.pending[file].len();
        assert_eq!((of(b"a.rrd"), of(b"b c.rrd")), (1, 2));
        assert_eq!((journal.wrong, journal.outside.len()), (2, 2));
        assert_eq!(words(b"a\\\\b  c"), [&b"a\\b"[..], b"c"]);
    }
}
