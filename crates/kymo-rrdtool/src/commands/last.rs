//! `first`, `last` and `lastupdate`: from when to when a database reaches, and its last readings.

use kymo_text::Line;

use super::{DAEMON, MACHINE, WAIT, locking, machine, only};
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::{Failure, Session, daemon};

pub(super) const FIRST: Command = Command {
    name: "first",
    about: "Print the time of the oldest row of an archive",
    details: "",
    operands: "FILE",
    options: &[
        Opt::with(
            None,
            "rraindex",
            "N",
            "The archive, counted from 0; 0 unless told otherwise.",
        ),
        DAEMON,
        WAIT,
        MACHINE,
    ],
    examples: &["first load.rrd --rraindex 2"],
    run: |session, words| or_minus_one(session, words, first),
};

pub(super) const LAST: Command = Command {
    name: "last",
    about: "Print the time of the last update",
    details: "",
    operands: "FILE",
    options: &[DAEMON, WAIT, MACHINE],
    examples: &["last load.rrd"],
    run: |session, words| or_minus_one(session, words, last),
};

pub(super) const LASTUPDATE: Command = Command {
    name: "lastupdate",
    about: "Print the time and the readings of the last update",
    details: "",
    operands: "FILE",
    options: &[DAEMON, WAIT, MACHINE],
    examples: &["lastupdate load.rrd"],
    run: lastupdate,
};

/// Prints a time, or -1 where there is none.
fn or_minus_one(
    session: &mut Session<'_>,
    words: &Words<'_>,
    time: fn(&mut Session<'_>, &Words<'_>) -> Result<i64, Failure>,
) -> Result<(), Failure> {
    let time = time(session, words);
    session.write(format!("{}\n", time.as_ref().unwrap_or(&-1)))?;
    time.map(|_| ())
}

fn first(session: &mut Session<'_>, words: &Words<'_>) -> Result<i64, Failure> {
    let usage = "first [--rraindex number] [--daemon|-d <addr>] <file>";
    let Some(&file) = words.operands.first() else {
        return Err(Failure::new(format!("Usage: rrdtool {usage}")));
    };
    let text = words.value("rraindex").unwrap_or(b"0");
    let index = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    let index: usize = index.ok_or_else(|| Failure::new("invalid rraindex number"))?;
    if let Some(client) = daemon::connect(session, words)? {
        return client.number(&[b"first", &client.path(file)?, index.to_string().as_bytes()]);
    }
    with_source(
        session,
        file,
        machine(words)?,
        locking(words),
        |_, source| {
            let database = &source.database;
            match database.archives.get(index) {
                Some(_) => database.row_time(index, 0),
                None => None,
            }
            .ok_or_else(|| Failure::new("invalid rraindex number"))
        },
    )
}

fn last(session: &mut Session<'_>, words: &Words<'_>) -> Result<i64, Failure> {
    let file = only(words, "last [--daemon|-d <addr>] <file>")?;
    if let Some(client) = daemon::connect(session, words)? {
        return client.number(&[b"last", &client.path(file)?]);
    }
    with_source(
        session,
        file,
        machine(words)?,
        locking(words),
        |_, source| Ok(source.database.state.last_update.seconds()),
    )
}

fn lastupdate(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let file = only(words, "lastupdate [--daemon|-d <addr>] <file>")?;
    daemon::flush(session, words, file)?;
    with_source(
        session,
        file,
        machine(words)?,
        locking(words),
        |session, source| {
            let database = &source.database;
            let mut out = Line::new();
            for source in &database.sources {
                out.push_byte(b' ');
                out.push(source.name.as_bytes());
            }
            let seconds = database.state.last_update.seconds();
            out.push(format!("\n\n{seconds:>10}:").as_bytes());
            for source in &database.state.sources {
                out.push_byte(b' ');
                out.push(source.last_reading.as_bytes());
            }
            out.push_byte(b'\n');
            session.write(out.as_bytes())
        },
    )
}
