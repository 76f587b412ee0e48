//! `resize`: archives of more or fewer rows.

use kymo_rrd::engine::modify::{Resize, resize};

use super::{LOCKING, MACHINE, WAIT, machine};
use crate::make::{self, Existing};
use crate::open::with_source;
use crate::options::{Command, Words};
use crate::path::shown;
use crate::{Failure, Session};

pub(super) const COMMAND: Command = Command {
    name: "resize",
    about: "Make an archive longer or shorter, in a copy named resize.rrd",
    details: "The rows that come are unknown, those that go are the oldest. The copy is written to the \
        working directory; the database stays as it is.",
    operands: "FILE.rrd ARCHIVE GROW|SHRINK ROWS",
    options: &[WAIT, LOCKING, MACHINE],
    examples: &["resize load.rrd 0 GROW 288 && mv resize.rrd load.rrd"],
    run,
};

/// What the copy is called.
const COPY: &[u8] = b"resize.rrd";

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let [file, archive, how, rows] = words.operands[..] else {
        return Err(Failure::new("wrong number of parameters"));
    };
    if file == COPY {
        return Err(Failure::new("resize.rrd is a reserved name"));
    }
    let how = match how {
        b"GROW" => Resize::Grow,
        b"SHRINK" => Resize::Shrink,
        _ => return Err(Failure::new("I can only GROW or SHRINK")),
    };
    let how = how(number(rows, "Please grow or shrink with at least 1 row")?);
    let archive = number(archive, "no such RRA in this RRD")?;
    let archive = usize::try_from(archive).unwrap_or(usize::MAX);
    with_source(session, file, machine(words)?, |session, source| {
        let changed = resize(&source.database, &source.rows, archive, how);
        let changed = changed.map_err(|error| Failure::new(error.to_string()))?;
        let copy = changed.source(source.form.clone(), source.records.clone());
        make::write(
            session,
            COPY,
            &copy,
            make::form_of(source)?,
            Existing::Replaced,
        )
    })
}

/// A number that is not negative.
fn number(text: &[u8], problem: &str) -> Result<u64, Failure> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        Failure::new(match text {
            [b'-' | b'0'..=b'9', ..] | [] => problem.to_owned(),
            _ => format!("{problem}: found '{}'", shown(text)),
        })
    })
}
