//! `prometheus`: the last values of databases, for Prometheus to collect.

use std::collections::HashSet;
use std::io;

use kymo_io::{EntryKind, Locking, list};
use kymo_machine::Machine;
use kymo_rrd::{Source, is_database};
use kymo_text::Line;

use super::{MACHINE, machine};
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, open};

pub(super) const COMMAND: Command = Command {
    name: "prometheus",
    about: "Print the last values of databases as Prometheus collects them",
    details: "The text format of Prometheus, version 0.0.4: rrd_value{file,ds,cf,step} is the newest \
        row of each archive, rrd_last_update_seconds{file} the time of the last update. Values that \
        are unknown are NaN. Directories are searched for databases recursively; other files are \
        skipped. A file that cannot be read is reported, and the others are printed.",
    operands: "FILE|DIRECTORY...",
    options: &[
        Opt::flag(
            None,
            "timestamps",
            "Print the time of each value. Prometheus then rejects what is old.",
        ),
        MACHINE,
    ],
    examples: &["prometheus /var/lib/collectd/rrd > /var/lib/node_exporter/rrd.prom"],
    run,
};

/// Directories are not searched deeper.
const DEEPEST: usize = 64;

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    if words.operands.is_empty() {
        let usage = "prometheus [--timestamps] <file|directory>...";
        return Err(Failure::new(format!("Usage: rrdtool {usage}")));
    }
    let machine = machine(words)?;
    let mut exposition = Exposition {
        timestamps: words.has("timestamps"),
        values: Line::new(),
        updates: Line::new(),
    };
    let done = for_each_database(session, &words.operands, machine, |_, file, source| {
        exposition.add(file, source);
        Ok(())
    });
    match done {
        Err(Failure::Output(error)) => Err(Failure::Output(error)),
        done => exposition.write(session).and(done),
    }
}

/// Reads the databases that words name, and all below the directories that they name. What cannot be read is
/// warned of, and fails in the end.
pub(super) fn for_each_database(
    session: &mut Session<'_>,
    words: &[&[u8]],
    machine: Option<&'static Machine>,
    mut work: impl FnMut(&mut Session<'_>, &[u8], &Source<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut failed, mut found) = (0, 0);
    let mut files = Vec::new();
    for word in words {
        if let Err(error) = search(word, 0, &mut files) {
            failed += 1;
            session.warn(open::cannot_open(word, &error));
        }
    }
    // A file that is named twice is printed once, since samples of the same labels are refused.
    let mut met = HashSet::new();
    files.retain(|file| met.insert(file.word.clone()));
    for file in &files {
        let mut read = |session: &mut Session<'_>| -> Result<(), Failure> {
            let bytes = open::locked(&file.word, Locking::Briefly)
                .map_err(|failure| Failure::new(format!("'{}': {failure}", shown(&file.word))))?;
            if !file.is_named && !is_database(&bytes) {
                return Ok(());
            }
            let reported = |error| Failure::new(format!("'{}': {error}", shown(&file.word)));
            let whole = Source::complete(&bytes).map_err(reported)?;
            found += 1;
            work(
                session,
                &file.word,
                &Source::open(&whole, machine).map_err(reported)?,
            )
        };
        match read(session) {
            // What follows cannot be written either.
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => {
                failed += 1;
                session.warn(failure);
            }
            Ok(()) => {}
        }
    }
    if found + failed == 0 {
        let words: Vec<_> = words
            .iter()
            .map(|word| format!("'{}'", shown(word)))
            .collect();
        session.warn(format_args!("no database is in {}", words.join(", ")));
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!(
            "{failed} of the inputs cannot be read"
        ))),
    }
}

/// A file, and whether the command line names it.
struct Found {
    word: Vec<u8>,
    is_named: bool,
}

/// Finds the files at a path: it alone, or all below it.
fn search(word: &[u8], depth: usize, files: &mut Vec<Found>) -> io::Result<()> {
    let there = path(word);
    if !there.metadata()?.is_dir() {
        files.push(Found {
            word: word.to_vec(),
            is_named: depth == 0,
        });
        return Ok(());
    }
    if depth == DEEPEST {
        return Ok(());
    }
    for entry in list(&there)? {
        let mut below = word.to_vec();
        if !below.ends_with(b"/") {
            below.push(b'/');
        }
        below.extend_from_slice(entry.name.as_encoded_bytes());
        match entry.kind {
            EntryKind::Directory => search(&below, depth + 1, files)?,
            EntryKind::File => files.push(Found {
                word: below,
                is_named: false,
            }),
            _ => {}
        }
    }
    Ok(())
}

/// What is collected: of each metric all samples stand together.
struct Exposition {
    timestamps: bool,
    values: Line,
    updates: Line,
}

impl Exposition {
    fn add(&mut self, file: &[u8], source: &Source<'_>) {
        let database = &source.database;
        let file = escaped(file);
        let (seconds, micros) = database.state.last_update.to_micros();
        self.updates.push(
            format!("rrd_last_update_seconds{{file=\"{file}\"}} {seconds}.{micros:06}\n")
                .as_bytes(),
        );
        let mut met = HashSet::new();
        for (index, archive) in database.archives.iter().enumerate() {
            let Some(newest) = archive.rows.checked_sub(1) else {
                continue;
            };
            let (cf, step) = (
                archive.kind.name(),
                database.row_seconds(index).unwrap_or(0),
            );
            // Archives that differ in their length alone have the same newest row.
            if !met.insert((cf, step)) {
                continue;
            }
            let time = database.row_time(index, newest);
            for (place, source_definition) in database.sources.iter().enumerate() {
                let value = source.rows.value(index, newest, place).unwrap_or_default();
                let ds = escaped(source_definition.name.as_bytes());
                let labels = format!("file=\"{file}\",ds=\"{ds}\",cf=\"{cf}\",step=\"{step}\"");
                let number = number(value.get());
                self.values
                    .push(format!("rrd_value{{{labels}}} {number}").as_bytes());
                if let Some(time) = time.filter(|_| self.timestamps) {
                    let millis = i128::from(time) * 1000;
                    self.values.push(format!(" {millis}").as_bytes());
                }
                self.values.push_byte(b'\n');
            }
        }
    }

    fn write(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let last_update = (
            "rrd_last_update_seconds",
            "The time of the last update, in seconds since 1970.",
            &self.updates,
        );
        let value = ("rrd_value", "The newest row of an archive.", &self.values);
        for (name, help, samples) in [last_update, value] {
            if !samples.as_bytes().is_empty() {
                session.write(format!("# HELP {name} {help}\n# TYPE {name} gauge\n"))?;
                session.write(samples.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// A number as Prometheus reads it: as many digits as it needs.
pub(super) fn number(value: Option<f64>) -> String {
    match value {
        None => "NaN".to_owned(),
        Some(f64::INFINITY) => "+Inf".to_owned(),
        Some(f64::NEG_INFINITY) => "-Inf".to_owned(),
        Some(number) => format!("{number:?}"),
    }
}

/// The value of a label. Of what is not UTF-8 each wrong byte NN is `\xNN`, and so is a backslash that
/// would look like one, so that no two names have the same.
pub(super) fn escaped(text: &[u8]) -> String {
    let mut plain = String::with_capacity(text.len());
    for piece in text.utf8_chunks() {
        let mut rest = piece.valid();
        while let Some(at) = rest.find("\\x") {
            let is_byte = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
            let looks = rest.as_bytes().get(at + 2..at + 4).is_some_and(is_byte);
            plain.push_str(&rest[..at]);
            plain.push_str(if looks { "\\x5cx" } else { "\\x" });
            rest = &rest[at + 2..];
        }
        plain.push_str(rest);
        for byte in piece.invalid() {
            plain.push_str(&format!("\\x{byte:02x}"));
        }
    }
    let text = plain;
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_numbers() {
        assert_eq!(escaped(b"a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
        assert_eq!(escaped(b"\xfe.rrd"), "\\\\xfe.rrd");
        assert_eq!(escaped(b"\\xfe\\xg.rrd"), "\\\\x5cxfe\\\\xg.rrd");
        for (value, text) in [
            (None, "NaN"),
            (Some(f64::INFINITY), "+Inf"),
            (Some(f64::NEG_INFINITY), "-Inf"),
            (Some(1.5e300), "1.5e300"),
            (Some(3.0), "3.0"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
