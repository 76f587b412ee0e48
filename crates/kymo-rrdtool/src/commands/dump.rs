//! `dump`: a database as XML.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use kymo_io::{Replace, replace};
use kymo_machine::{Machine, Width};
use kymo_rrd::text::xml::{self, DumpOptions, Header, Numbers};
use kymo_rrd::{Form, Source};

use super::{DAEMON, LOCKING, MACHINE, WAIT, machine};
use crate::daemon::Remote;
use crate::failure::reason;
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, daemon};

pub(super) const COMMAND: Command = Command {
    name: "dump",
    about: "Write a database as XML",
    details: "The text is that of rrdtool on a 64-bit machine, byte for byte: numbers of 11 \
        digits, and times in comments that are local (TZ says where).",
    operands: "FILE.rrd [FILE.xml]",
    options: &[
        Opt::with(
            Some('h'),
            "header",
            "none|xsd|dtd",
            "What comes before the data [default: dtd].",
        ),
        Opt::flag(Some('n'), "no-header", "The same as --header none."),
        DAEMON,
        Opt::flag(
            None,
            "exact",
            "Lose nothing: numbers with as many digits as they need, fractions of a second, and \
             in instructions that rrdtool passes over what its form has no place for. `restore` \
             makes the same database of it; rrdtool reads it too.",
        ),
        Opt::flag(
            None,
            "like-source",
            "Print numbers as rrdtool does on the machine that wrote the file: with one digit \
             less where C's long has 32 bits.",
        ),
        WAIT,
        LOCKING,
        MACHINE,
    ],
    examples: &[
        "dump load.rrd > load.xml",
        "dump --exact load.rrd load.xml     # nothing is lost",
    ],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let (file, output) = match words.operands[..] {
        [file] => (file, None),
        [file, output] => (file, Some(output)),
        _ => {
            let usage = "dump [--header|-h {none,xsd,dtd}] [--no-header|-n] [--daemon|-d <addr>] \
                <file.rrd> [<file.xml>]";
            return Err(Failure::new(format!("Usage: rrdtool {usage}")));
        }
    };
    let header = match words.value("header") {
        _ if words.has("no-header") => Header::None,
        None | Some(b"dtd") => Header::Dtd,
        Some(b"none") => Header::None,
        Some(b"xsd") => Header::Xsd,
        Some(other) => {
            let message = format!("found header '{}', expected none, xsd or dtd", shown(other));
            return Err(Failure::new(message));
        }
    };
    if let Some(output) = output
        && kymo_io::is_same_file(&path(file), &path(output))
    {
        return Err(Failure::new(format!(
            "'{}' is both input and output",
            shown(file)
        )));
    }
    // Digits that rrdtool does not write come only from the file itself.
    if !words.has("exact")
        && !words.has("like-source")
        && let Some(mut remote) = Remote::connect(session, words)?
    {
        let dump = remote.dump(file)?;
        let is_known = dump.is_some();
        if let Some(dump) = dump {
            match output {
                Some(output) => write_file(&path(output), |file| dump.write_to(header, file))
                    .map_err(|error| cannot_write(output, &error))?,
                None => session.write_with(|out| dump.write_to(header, out))?,
            }
        }
        remote.keep(session);
        if is_known {
            return Ok(());
        }
    }
    daemon::flush(session, words, file)?;
    with_source(session, file, machine(words)?, |session, source| {
        let numbers = numbers(words, source)?;
        let options = DumpOptions { header, numbers };
        let (database, rows) = (&source.database, &source.rows);
        let zone = session.zone.clone();
        match output {
            Some(output) => {
                let write = |file: &mut File| xml::dump(database, rows, &zone, &options, file);
                write_file(&path(output), write).map_err(|error| cannot_write(output, &error))
            }
            None => {
                session.write_with(|mut out| xml::dump(database, rows, &zone, &options, &mut out))
            }
        }
    })
}

fn cannot_write(output: &[u8], error: &io::Error) -> Failure {
    Failure::new(format!("writing '{}': {}", shown(output), reason(error)))
}

/// The digits that are asked for.
fn numbers(words: &Words<'_>, source: &Source<'_>) -> Result<Numbers, Failure> {
    let has_short_long = |machine: &Machine| machine.long() == Width::W32;
    Ok(match (words.has("exact"), words.has("like-source")) {
        (true, true) => {
            return Err(Failure::new(
                "--exact and --like-source contradict each other",
            ));
        }
        (true, false) => Numbers::Exact,
        (false, true) => match &source.form {
            Form::Native(detection) if has_short_long(detection.machine) => Numbers::Long32,
            _ => Numbers::Long64,
        },
        (false, false) => Numbers::Long64,
    })
}

/// Writes a file as a whole, or what stands in its place: a pipe or a terminal is not replaced.
fn write_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    match path.metadata() {
        Ok(there) if !there.is_file() => {
            let mut file = File::create(path)?;
            write(&mut file)?;
            file.flush()
        }
        there => {
            let how = Replace {
                like: there.is_ok().then_some(path),
                modified: false,
                ..Replace::NEW
            };
            replace(path, how, write)
        }
    }
}
