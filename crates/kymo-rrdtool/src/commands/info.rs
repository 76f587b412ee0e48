//! `info`: definitions and state.

use kymo_rrd::text::info::{Fact, info};

use super::{DAEMON, LOCKING, MACHINE, WAIT, machine, only, print_facts};
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::{Failure, Session, daemon};

pub(crate) const COMMAND: Command = Command {
    name: "info",
    about: "Print definitions and state of a database",
    details: "",
    operands: "FILE",
    options: &[
        DAEMON,
        Opt::flag(
            Some('F'),
            "noflush",
            "Have the daemon answer from what it knows, without writing before.",
        ),
        WAIT,
        LOCKING,
        MACHINE,
    ],
    examples: &["info load.rrd"],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let facts = facts(session, words)?;
    print_facts(session, &facts)
}

/// Definitions and state.
pub(crate) fn facts(session: &mut Session<'_>, words: &Words<'_>) -> Result<Vec<Fact>, Failure> {
    let file = only(words, "info [--daemon |-d <addr> [--noflush|-F]] <file>")?;
    if let Some(client) = daemon::connect(session, words)? {
        if !words.has("noflush") {
            client.flush(file)?;
        }
        return client.info(file);
    }
    with_source(session, file, machine(words)?, |_, source| {
        let header_size = source.rows.grid(0).map_or(0, |grid| grid.offset);
        Ok(info(&source.database, file, header_size))
    })
}
