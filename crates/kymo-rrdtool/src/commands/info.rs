//! `info`: definitions and state.

use kymo_text::Line;

use super::{DAEMON, MACHINE, machine, only};
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::{Failure, Session};

pub(super) const COMMAND: Command = Command {
    name: "info",
    about: "Print definitions and state of a database",
    details: "",
    operands: "FILE",
    options: &[
        DAEMON,
        Opt::flag(
            Some('F'),
            "noflush",
            "Let the daemon tell what it knows, without writing before.",
        ),
        MACHINE,
    ],
    examples: &["info load.rrd"],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let file = only(words, "info [--daemon |-d <addr> [--noflush|-F]] <file>")?;
    with_source(session, file, machine(words)?, |session, source| {
        let header_size = source.rows.grid(0).map_or(0, |grid| grid.offset);
        let mut out = Line::new();
        kymo_rrd::info::info(&source.database, file, header_size, &mut out);
        session.write(out.as_bytes())
    })
}
