//! `restore`: a database from XML.

use std::io::{self, Write};

use kymo_io::{Bytes, Replace, Spool, replace};
use kymo_rrd::file::convert::convert;
use kymo_rrd::text::xml::{RestoreOptions, restore};

use super::{FORMAT, format};
use crate::failure::reason;
use crate::open;
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session};

pub(super) const COMMAND: Command = Command {
    name: "restore",
    about: "Make a database of XML",
    details: "Reads what rrdtool of any version dumps, and what `dump` writes. Numbers are read as \
        rrdtool reads them, to the last bit; those of an exact dump are read exactly.",
    operands: "FILE.xml FILE.rrd",
    options: &[
        Opt::flag(
            Some('r'),
            "range-check",
            "Values beyond the limits of their data source become unknown.",
        ),
        Opt::flag(Some('f'), "force-overwrite", "Overwrite the database."),
        FORMAT,
    ],
    examples: &[
        "restore load.xml load.rrd",
        "restore - load.rrd --format portable < load.xml",
    ],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let [input, output] = words.operands[..] else {
        let usage = "restore [--range-check|-r] [--force-overwrite|-f] <file.xml> <file.rrd>";
        return Err(Failure::new(format!("Usage: rrdtool {usage}")));
    };
    let target = format(session, words)?;
    let reported = |word: &[u8], error: &dyn std::fmt::Display| {
        Failure::new(format!("'{}': {error}", shown(word)))
    };
    let force = words.has("force-overwrite");
    let to = path(output);
    if !force && to.symlink_metadata().is_ok() {
        return Err(reported(output, &"File exists; -f overwrites it"));
    }
    let text: Bytes = if input == b"-" {
        let mut spool = Spool::within(u64::MAX);
        let read = io::copy(&mut io::stdin().lock(), &mut spool);
        let read = read.and_then(|_| spool.finish());
        read.map_err(|error| reported(input, &reason(&error)))?
    } else {
        open::bytes(input)?
    };
    let options = RestoreOptions {
        range_check: words.has("range-check"),
    };
    let restored = restore(&text, &options).map_err(|error| reported(input, &error))?;
    let converted =
        convert(&restored.source(), target).map_err(|error| reported(output, &error))?;
    for note in &converted.notes {
        session.warn(format_args!("{}: {note}", shown(output)));
    }
    let how = Replace {
        like: to.metadata().is_ok().then_some(&*to),
        modified: false,
        ..Replace::NEW
    };
    replace(&to, how, |file| file.write_all(&converted.bytes))
        .map_err(|error| reported(output, &reason(&error)))
}
