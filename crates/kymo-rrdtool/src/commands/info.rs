//! `info`: definitions and state.

use kymo_text::Line;

use super::{DAEMON, LOCKING, MACHINE, WAIT, machine, only};
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::{Failure, Session, daemon};

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
        WAIT,
        LOCKING,
        MACHINE,
    ],
    examples: &["info load.rrd"],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let file = only(words, "info [--daemon |-d <addr> [--noflush|-F]] <file>")?;
    if let Some(client) = daemon::connect(session, words)? {
        if !words.has("noflush") {
            client.flush(file)?;
        }
        let mut out = Line::new();
        client.ask_with(&[b"info", &client.path(file)?], |line| {
            fact(line, &mut out);
            Ok(())
        })?;
        return session.write(out.as_bytes());
    }
    with_source(session, file, machine(words)?, |session, source| {
        let header_size = source.rows.grid(0).map_or(0, |grid| grid.offset);
        let mut out = Line::new();
        kymo_rrd::text::info::info(&source.database, file, header_size, &mut out);
        session.write(out.as_bytes())
    })
}

/// Appends what a daemon tells: a key, the number of a type, and a value. That of texts is 2.
fn fact(line: &[u8], out: &mut Line) {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let (key, kind) = (parts.next(), parts.next());
    let value = parts.next().unwrap_or_default();
    out.push(key.unwrap_or_default());
    out.push(b" = ");
    let quote: &[u8] = if kind == Some(b"2") { b"\"" } else { b"" };
    out.push(quote);
    out.push(value);
    out.push(quote);
    out.push_byte(b'\n');
}
