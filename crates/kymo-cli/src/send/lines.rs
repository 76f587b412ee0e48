//! Lines of collectd's text protocol, on their way to a server.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kymo_collectd::plain::{Command, Context, LineError, Lines, PutValues, parse};
use kymo_collectd::{Identifier, Notification, TypesDb};
use kymo_time::CdTime;

use super::sender::Sender;
use crate::args::send::Send;
use crate::terminal::{Failure, Outcome, Terminal};

/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// Where lines are.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Input,
    File(&'a Path),
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Whether there is nothing to send in a line.
pub(super) fn is_comment(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"#")
}

/// Sends all lines.
pub(super) fn send(
    source: Source<'_>,
    args: &Send,
    sender: &mut Sender<'_>,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let types = match sender.takes_lines() {
        true => TypesDb::default(),
        false => types(&args.types_db)?,
    };
    let unreadable = |error: io::Error| {
        terminal.error(format_args!("{source}: {}", kymo_io::reason(&error)));
        Failure::Unreadable
    };
    let mut input: Box<dyn Read> = match source {
        Source::Input => Box::new(io::stdin().lock()),
        Source::File(path) => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut lines = Lines::new(LONGEST);
    let mut piece = vec![0; PIECE];
    let mut number = 0u64;
    loop {
        if matches!(source, Source::Input) {
            // Who writes slowly is not kept waiting for a datagram to be full.
            sender.flush()?;
        }
        let mut count = input.read(&mut piece).map_err(unreadable)?;
        let is_end = count == 0;
        if is_end {
            // The last line may have no end.
            piece[0] = b'\n';
            count = 1;
        }
        lines.push(&piece[..count]);
        while let Some(line) = lines.next_line() {
            number += 1;
            let place = format_args!("{source}: line {number}");
            match line {
                Ok(line) if is_comment(line.trim_ascii().as_bytes()) => {}
                Ok(line) => one(line, place, &types, sender)?,
                Err(LineError::TooLong) => {
                    sender.refuse(place, format_args!("expected at most {LONGEST} bytes"))?;
                }
                Err(LineError::NotText) => sender.refuse(place, "expected UTF-8 without NUL")?,
            }
        }
        if is_end {
            return Ok(Outcome::Good);
        }
    }
}

/// Sends what is in a line.
fn one(
    line: &str,
    place: fmt::Arguments<'_>,
    types: &TypesDb,
    sender: &mut Sender<'_>,
) -> io::Result<()> {
    let mut words = line.split_ascii_whitespace();
    let is_values = match words.next().map(str::to_ascii_uppercase).as_deref() {
        Some("PUTVAL") => true,
        Some("PUTNOTIF") => false,
        _ => return sender.refuse(place, "expected PUTVAL or PUTNOTIF"),
    };
    if sender.takes_lines() {
        let count = if is_values { count(words) } else { (0, 0) };
        return sender.line(place, line, count);
    }
    match parse(line, &Context { types }) {
        Ok(Command::PutValues(put)) => values(&put, place, sender),
        Ok(Command::PutNotification(put)) => {
            let notification = Notification {
                severity: put.severity,
                time: put.time,
                id: put.id(),
                message: &put.message,
            };
            match put.meta.is_empty() {
                true => sender.message(place, &notification),
                false => sender.refuse(place, "datagrams hold no `s:` options"),
            }
        }
        Ok(_) => Ok(()),
        Err(reply) => sender.refuse(place, reply.text()),
    }
}

fn values(put: &PutValues, place: fmt::Arguments<'_>, sender: &mut Sender<'_>) -> io::Result<()> {
    let id = match Identifier::parse(&put.id) {
        Ok(id) => id,
        Err(error) => return sender.refuse(place, error),
    };
    for list in &put.lists {
        let time = match list.time {
            Some(time) => time,
            None => now()?,
        };
        let interval = list.interval.unwrap_or(CdTime::ZERO);
        sender.list(place, &id, time, interval, &list.values)?;
    }
    Ok(())
}

/// The lists and values in a line that the server takes, by their colons.
fn count<'a>(words: impl Iterator<Item = &'a str>) -> (u64, u64) {
    let is_list = |word: &&str| {
        let begin = word.split([':', '=']).next().unwrap_or(word);
        word[begin.len()..].starts_with(':')
    };
    // The first word is the name.
    words.skip(1).filter(is_list).fold((0, 0), |counts, word| {
        let word = word.strip_suffix(':').unwrap_or(word);
        (counts.0 + 1, counts.1 + word.matches(':').count() as u64)
    })
}

fn now() -> io::Result<CdTime> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_err(io::Error::other)?;
    CdTime::from_timespec(now.as_secs(), now.subsec_nanos()).map_err(io::Error::other)
}

/// The types that files define, of which later ones replace those of the same name.
fn types(paths: &[PathBuf]) -> Result<TypesDb, Failure> {
    let mut types = TypesDb::default();
    for path in paths {
        let shown = path.display();
        let failed = |error: &dyn fmt::Display| {
            let hint = "hint: `--types-db FILE` names a file with the types of the values";
            Failure::Usage(format!("error: {shown}: {error}\n{hint}"))
        };
        let text =
            kymo_io::read_small_text(path).map_err(|error| failed(&kymo_io::reason(&error)))?;
        types.add(&text).map_err(|error| failed(&error))?;
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_a_line() {
        let line = "h/p/t interval=10 N:1:2 1700000000:U: 5:3";
        assert_eq!(count(line.split(' ')), (3, 4));
    }
}
