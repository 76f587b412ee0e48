//! `first`, `last` and `lastupdate`: from when to when a database reaches, and its last readings.

use kymo_text::Line;

use super::{DAEMON, LOCKING, MACHINE, WAIT, machine, only};
use crate::answers::LastUpdate;
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::{Failure, Session, daemon};

pub(crate) const FIRST: Command = Command {
    name: "first",
    about: "Print the time of the oldest row of an archive",
    details: "",
    operands: "FILE",
    options: &[
        Opt::with(
            None,
            "rraindex",
            "N",
            "The archive, counted from 0 [default: 0].",
        ),
        DAEMON,
        WAIT,
        LOCKING,
        MACHINE,
    ],
    examples: &["first load.rrd --rraindex 2"],
    run: |session, words| or_minus_one(session, words, first),
};

pub(crate) const LAST: Command = Command {
    name: "last",
    about: "Print the time of the last update",
    details: "",
    operands: "FILE",
    options: &[DAEMON, WAIT, LOCKING, MACHINE],
    examples: &["last load.rrd"],
    run: |session, words| or_minus_one(session, words, last),
};

pub(crate) const LASTUPDATE: Command = Command {
    name: "lastupdate",
    about: "Print the time and the readings of the last update",
    details: "",
    operands: "FILE",
    options: &[DAEMON, WAIT, LOCKING, MACHINE],
    examples: &["lastupdate load.rrd"],
    run: lastupdate,
};

/// A time, and why it is not the daemon's, which was asked for and does not answer.
pub(crate) type Answer = (i64, Option<Failure>);

/// Prints a time, or -1 if there is none. If the daemon does not answer, the time is the file's, and
/// the command fails all the same, as with rrdtool.
fn or_minus_one(
    session: &mut Session<'_>,
    words: &Words<'_>,
    time: fn(&mut Session<'_>, &Words<'_>) -> Result<Answer, Failure>,
) -> Result<(), Failure> {
    let answer = time(session, words);
    let shown = answer.as_ref().map_or(-1, |(time, _)| *time);
    session.write(format!("{shown}\n"))?;
    match answer? {
        (_, Some(failure)) => Err(failure),
        (_, None) => Ok(()),
    }
}

pub(crate) fn first(session: &mut Session<'_>, words: &Words<'_>) -> Result<Answer, Failure> {
    let usage = "first [--rraindex number] [--daemon|-d <addr>] <file>";
    let Some(&file) = words.operands.first() else {
        return Err(Failure::new(format!("Usage: rrdtool {usage}")));
    };
    let text = words.value("rraindex").unwrap_or(b"0");
    let index = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    let index: usize = index.ok_or_else(|| Failure::new("invalid rraindex number"))?;
    let silent = match daemon::connect(session, words) {
        Ok(Some(client)) => {
            let path = client.path(file)?;
            let time = client.number(&[b"first", &path, index.to_string().as_bytes()])?;
            return Ok((time, None));
        }
        Ok(None) => None,
        Err(failure) => Some(failure),
    };
    let time = with_source(session, file, machine(words)?, |_, source| {
        let database = &source.database;
        match database.archives.get(index) {
            Some(_) => database.row_time(index, 0),
            None => None,
        }
        .ok_or_else(|| Failure::new("invalid rraindex number"))
    })?;
    Ok((time, silent))
}

pub(crate) fn last(session: &mut Session<'_>, words: &Words<'_>) -> Result<Answer, Failure> {
    let file = only(words, "last [--daemon|-d <addr>] <file>")?;
    let silent = match daemon::connect(session, words) {
        Ok(Some(client)) => {
            let path = client.path(file)?;
            return Ok((client.number(&[b"last", &path])?, None));
        }
        Ok(None) => None,
        Err(failure) => Some(failure),
    };
    let time = with_source(session, file, machine(words)?, |_, source| {
        Ok(source.database.state.last_update.seconds())
    })?;
    Ok((time, silent))
}

fn lastupdate(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let last = last_update(session, words)?;
    let mut out = Line::new();
    for (name, _) in &last.readings {
        out.push_byte(b' ');
        out.push(name);
    }
    out.push(format!("\n\n{:>10}:", last.time).as_bytes());
    for (_, reading) in &last.readings {
        out.push_byte(b' ');
        out.push(reading);
    }
    out.push_byte(b'\n');
    session.write(out.as_bytes())
}

/// The last update.
pub(crate) fn last_update(
    session: &mut Session<'_>,
    words: &Words<'_>,
) -> Result<LastUpdate, Failure> {
    let file = only(words, "lastupdate [--daemon|-d <addr>] <file>")?;
    daemon::flush(session, words, file)?;
    with_source(session, file, machine(words)?, |_, source| {
        let database = &source.database;
        let readings = database.sources.iter().zip(&database.state.sources);
        let readings = readings.map(|(source, state)| {
            let (name, reading) = (source.name.as_bytes(), state.last_reading.as_bytes());
            (name.to_vec(), reading.to_vec())
        });
        Ok(LastUpdate {
            time: database.state.last_update.seconds(),
            readings: readings.collect(),
        })
    })
}

/// When a database of this machine was last updated.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) fn last_update_time(session: &mut Session<'_>, file: &[u8]) -> Result<i64, Failure> {
    with_source(session, file, None, |_, source| {
        Ok(source.database.state.last_update.seconds())
    })
}
