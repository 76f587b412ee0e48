//! Databases that are written as a whole.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, Write};

use kymo_io::{NewFile, Replace};
use kymo_rrd::file::convert::{Conversion, Target};
use kymo_rrd::{Form, Source};

use crate::failure::reason;
use crate::options::Words;
use crate::path::{path, shown};
use crate::{Failure, Session};

/// What becomes of a file that is there when a new one is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// The new one takes its place, also that of a symbolic link.
    Replaced,
    /// The same, but a symbolic link stays, and the file that it leads to is replaced.
    Overwritten,
    /// It stays, and there is none.
    Stays,
}

impl Existing {
    /// What `--no-overwrite` says.
    pub(crate) fn of(words: &Words<'_>) -> Self {
        match words.has("no-overwrite") {
            true => Self::Stays,
            false => Self::Replaced,
        }
    }
}

/// Writes a database beside the file that it replaces, if there is one, and renames it.
///
/// # Errors
///
/// Where the form cannot hold all of it, and those of writing.
pub(crate) fn write(
    session: &mut Session<'_>,
    word: &[u8],
    source: &Source<'_>,
    target: Target,
    existing: Existing,
) -> Result<(), Failure> {
    let conversion = Conversion::new(source, target)
        .map_err(|error| Failure::new(format!("'{}': {error}", shown(word))))?;
    for note in &conversion.notes {
        session.warn(format_args!("{}: {note}", shown(word)));
    }
    write_with(session, word, existing, |file| conversion.write_to(file))
}

/// Writes the bytes of a database in the same way.
///
/// # Errors
///
/// Those of writing.
pub(crate) fn write_bytes(
    session: &Session<'_>,
    word: &[u8],
    bytes: &[u8],
    existing: Existing,
) -> Result<(), Failure> {
    write_with(session, word, existing, |file| file.write_all(bytes))
}

fn write_with(
    session: &Session<'_>,
    word: &[u8],
    existing: Existing,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Failure> {
    let path = path(word);
    let follow = existing == Existing::Overwritten;
    let there = match follow {
        true => path.metadata(),
        false => path.symlink_metadata(),
    };
    let is_there = there.is_ok_and(|there| there.is_file());
    let how = Replace {
        like: is_there.then_some(&*path),
        modified: false,
        // As rrdtool does, a link is replaced: where others may write too, it leads to files that are not theirs.
        follow,
        // A new file replaces nothing, so nothing can be lost, unless a program relies on its existence.
        sync: is_there || session.durable,
        keep: existing == Existing::Stays,
        ..Replace::NEW
    };
    let write = |file: &mut File| {
        write(file)?;
        match is_there {
            true => Ok(()),
            false => set_usual_mode(file),
        }
    };
    let written = NewFile::write(&path, how, write);
    let put = written.and_then(|(new, ())| match session.place {
        Some(place) => place(new),
        None => new.put(),
    });
    put.map_err(|error| match error.kind() {
        // It came while the new one was written.
        io::ErrorKind::AlreadyExists if existing == Existing::Stays => is_taken(word),
        _ => cannot_create(word, &error),
    })
}

/// What rrdtool gives to new databases, whatever `umask` says: all may read them.
fn set_usual_mode(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(PermissionsExt::from_mode(0o644))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(())
    }
}

/// What is said of a file that cannot be made.
pub(crate) fn cannot_create(word: &[u8], error: &io::Error) -> Failure {
    Failure::new(format!("creating '{}': {}", shown(word), reason(error)))
}

/// Checks that there is no file yet, before doing much for a new one.
///
/// # Errors
///
/// Where there is one.
pub(crate) fn is_free(word: &[u8]) -> Result<(), Failure> {
    match path(word).symlink_metadata() {
        Ok(_) => Err(is_taken(word)),
        Err(_) => Ok(()),
    }
}

fn is_taken(word: &[u8]) -> Failure {
    Failure::new(format!("creating '{}': File exists", shown(word)))
}

/// The form of a database that is rewritten.
pub(crate) fn form_of(source: &Source<'_>) -> Result<Target, Failure> {
    match &source.form {
        Form::Native(detection) => Ok(Target::Native(detection.machine)),
        Form::Portable => Ok(Target::Portable),
        Form::Rrd4j { .. } | Form::Xml => Err(Failure::new(
            "this form of database is only read; `kymo rrd convert` makes another of it",
        )),
    }
}

/// The row of new archives that was written last: by default any of them, so that not all wrap around at once.
pub(crate) struct FirstRows {
    /// What was specified: one for all archives, or one for each.
    reported: Vec<u64>,
    random: RandomState,
}

impl FirstRows {
    /// Reads the value of `--first-row`, if it is given.
    ///
    /// # Errors
    ///
    /// If something is not a number.
    pub(crate) fn read(text: Option<&[u8]>) -> Result<Self, Failure> {
        let reported = text.map_or(Ok(Vec::new()), |text| {
            let numbers = text.split(|byte| *byte == b',');
            let read = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
            numbers.map(read).collect::<Option<_>>().ok_or_else(|| {
                let text = shown(text);
                Failure::new(format!(
                    "--first-row: found '{text}', expected a number of a row, or one for each \
                     archive with commas between them"
                ))
            })
        })?;
        Ok(Self {
            reported,
            random: RandomState::new(),
        })
    }

    /// Whether nothing was specified.
    pub(crate) fn is_random(&self) -> bool {
        self.reported.is_empty()
    }

    /// Checks that the row of each archive exists, given the archives' numbers of rows.
    ///
    /// # Errors
    ///
    /// If there are too few or too many numbers, or one is not a row of its archive.
    pub(crate) fn check(&self, archives: &[u64]) -> Result<(), Failure> {
        if let [] | [_] = self.reported[..] {
        } else if self.reported.len() != archives.len() {
            return Err(Failure::new(format!(
                "--first-row: found {} numbers, expected one, or one for each of {} archives",
                self.reported.len(),
                archives.len()
            )));
        }
        for (index, rows) in archives.iter().enumerate() {
            if let Some(row) = self.reported_of(index)
                && row >= *rows
            {
                return Err(Failure::new(format!(
                    "--first-row: found {row} for archive {index}, expected less than its {rows} \
                     rows"
                )));
            }
        }
        Ok(())
    }

    fn reported_of(&self, archive: usize) -> Option<u64> {
        match self.reported[..] {
            [row] => Some(row),
            _ => self.reported.get(archive).copied(),
        }
    }

    /// The row of an archive of `rows` rows.
    pub(crate) fn of(&self, archive: usize, rows: u64) -> u64 {
        self.reported_of(archive)
            .unwrap_or_else(|| self.random.hash_one(archive) % rows.max(1))
    }
}
