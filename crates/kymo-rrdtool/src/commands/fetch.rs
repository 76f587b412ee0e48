//! `fetch`: the rows of a stretch of time.

use kymo_machine::Machine;
use kymo_rrd::engine::{self, fetch};
use kymo_rrd::model::ArchiveKind;
use kymo_rrd::{Form, Source, Value};
use kymo_text::Line;

use super::span::{END, START, Span};
use super::{LOCKING, MACHINE, WAIT, machine};
use crate::answers::{Fetched, Wanted};
use crate::graph::backwards;
use crate::open::with_source;
use crate::options::{Command, Opt, Words};
use crate::path::shown;
use crate::times::{EARLIEST, duration};
use crate::{Failure, Session, daemon};

pub(crate) const COMMAND: Command = Command {
    name: "fetch",
    about: "Print the rows of a stretch of time",
    details: "FUNCTION is the kind of archive, such as AVERAGE. Of the archives of that kind that \
        reach back to the start, the one whose step is nearest to the resolution is taken. Times \
        are the ends of rows.\n\n\
        The text is rrdtool's: numbers of 11 digits, `nan` or `-nan` where nothing is known. csv and \
        json have as many digits as distinguish a number from its neighbours; an unknown value is an \
        empty cell or null, an infinite one Infinity or -Infinity, quoted in json.",
    operands: "FILE FUNCTION",
    options: &[
        Opt::with(
            Some('r'),
            "resolution",
            "DURATION",
            "Seconds between rows, or 5m, 1h..., as far as there is a choice [default: 1].",
        ),
        START,
        END,
        Opt::flag(
            Some('a'),
            "align-start",
            "Move start and end back by the same, to where the start is a multiple of the \
             resolution.",
        ),
        Opt::with(
            Some('d'),
            "daemon",
            "ADDRESS",
            "Have the daemon at this address write what it holds of the file before. One of another \
             machine sends the rows itself, and chooses the archive.",
        ),
        Opt::with(
            None,
            "format",
            "text|csv|json",
            "How rows are written [default: text].",
        ),
        WAIT,
        LOCKING,
        MACHINE,
    ],
    examples: &[
        "fetch load.rrd AVERAGE --start -1h",
        "fetch load.rrd MAX -r 1d -s end-1y --format csv",
    ],
    run,
};

/// Maximum number of rows that are written, unless the archive has more: most would be of unintended times.
const MOST_ROWS: u64 = 1 << 24;
/// Approximate size in bytes of the pieces in which text is written.
const PIECE: usize = 1 << 15;

#[derive(Clone, Copy)]
enum Format {
    Text,
    Csv,
    Json,
}

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let format = words.value("format").map_or(Ok(Format::Text), format)?;
    with_rows(session, words, Output { format })
}

/// What takes rows.
pub(crate) trait Rows {
    /// What becomes of them.
    type Answer;

    /// Takes rows: their times, and the bits of their values by the places of the data sources.
    ///
    /// # Errors
    ///
    /// Those of writing.
    fn take<B: Fn(usize) -> u64>(
        self,
        session: &mut Session<'_>,
        head: &Head<'_>,
        rows: impl Iterator<Item = (i64, B)>,
    ) -> Result<Self::Answer, Failure>;
}

/// Finds the rows that a command line asks for.
pub(crate) fn with_rows<R: Rows>(
    session: &mut Session<'_>,
    words: &Words<'_>,
    rows: R,
) -> Result<R::Answer, Failure> {
    let mut span = Span::DAY;
    let mut step = 1;
    for (name, value) in words.options() {
        match name {
            "start" => span.set_start(value)?,
            "end" => span.set_end(value)?,
            "resolution" => {
                let reported = |error| Failure::new(format!("resolution: {error}"));
                step = duration(value).map_err(reported)?;
            }
            _ => {}
        }
    }
    let (mut start, mut end) = span.resolve(&session.clock())?;
    if start < EARLIEST {
        return Err(Failure::new(
            "the first entry to fetch should be after 1980",
        ));
    }
    if words.has("align-start") {
        // The start is not negative, and the rest less than it.
        let rest = (start as u64 % step) as i64;
        (start, end) = (start - rest, end.saturating_sub(rest));
    }
    if end < start {
        return Err(backwards(start, end));
    }
    let [file, function, ..] = words.operands[..] else {
        return Err(Failure::new("Usage: rrdtool fetch <file> <CF> [options]"));
    };
    let function = ArchiveKind::known(function).ok_or_else(|| {
        let name = shown(function);
        Failure::new(format!("unknown consolidation function '{name}'"))
    })?;
    let span = (start, end);
    if session.has(file) {
        // No daemon knows it.
    } else if let Some(client) = daemon::connect(session, words)? {
        if !client.is_local() {
            // It sees other files than this machine does.
            let fetched = client.fetch(file, function, span)?;
            return take_fetched(session, function, &fetched, rows);
        }
        client.flush(file)?;
    }
    let wanted = Wanted {
        name: file,
        function,
        start,
        end,
        step,
    };
    find(session, &wanted, machine(words)?, rows)
}

/// Finds rows in a file of this machine, or has the program around find them.
pub(crate) fn find<R: Rows>(
    session: &mut Session<'_>,
    wanted: &Wanted<'_>,
    machine: Option<&'static Machine>,
    rows: R,
) -> Result<R::Answer, Failure> {
    let Wanted {
        name,
        function,
        start,
        end,
        step,
    } = *wanted;
    if let Some(fetched) = session.fetched(wanted) {
        return take_fetched(session, function, &fetched?, rows);
    }
    let wanted = engine::Wanted {
        function,
        start,
        end,
        step,
    };
    with_source(session, name, machine, |session, source| {
        let fetched = fetch(&source.database, &source.rows, &wanted).ok_or_else(|| {
            Failure::new("the RRD does not contain an RRA matching the chosen CF")
        })?;
        let most = source.database.archives[fetched.archive]
            .rows
            .max(MOST_ROWS);
        let found = fetched.count();
        if found > most {
            let message = format!("found {found} rows, expected at most {most}");
            return Err(Failure::new(message));
        }
        let names = source.database.sources.iter();
        let head = Head {
            function,
            start: fetched.start,
            end: fetched.end,
            step: fetched.step,
            names: names.map(|source| source.name.as_bytes()).collect(),
        };
        let unknown = unknown(source);
        let found = fetched.iter().map(|(time, row)| {
            // Its own NaN, and not the one that stands for all: its sign is shown.
            let bits = move |source| row.and_then(|row| row.bits(source)).unwrap_or(unknown);
            (time, bits)
        });
        rows.take(session, &head, found)
    })
}

/// Takes rows that are not of a file of this machine.
fn take_fetched<R: Rows>(
    session: &mut Session<'_>,
    function: &str,
    fetched: &Fetched,
    rows: R,
) -> Result<R::Answer, Failure> {
    let head = Head {
        function,
        start: fetched.start,
        end: fetched.end,
        step: fetched.step,
        names: fetched.names.iter().map(Vec::as_slice).collect(),
    };
    let found = fetched
        .rows()
        .map(|(time, values)| (time, |source: usize| values[source].to_bits()));
    rows.take(session, &head, found)
}

fn format(name: &[u8]) -> Result<Format, Failure> {
    match name {
        b"text" => Ok(Format::Text),
        b"csv" => Ok(Format::Csv),
        b"json" => Ok(Format::Json),
        other => {
            let message = format!(
                "found format '{}', expected text, csv or json",
                shown(other)
            );
            Err(Failure::new(message))
        }
    }
}

/// The NaN that rrdtool shows for rows that the archive does not have: that of the machine that
/// wrote the file.
fn unknown(source: &Source<'_>) -> u64 {
    match &source.form {
        Form::Native(detection) => detection.machine.file_nan(),
        _ => Value::UNKNOWN.to_bits(),
    }
}

/// What all rows have in common.
pub(crate) struct Head<'a> {
    function: &'a str,
    /// The beginning of the first row.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) step: u64,
    pub(crate) names: Vec<&'a [u8]>,
}

/// Writes rows in a format.
struct Output {
    format: Format,
}

impl Rows for Output {
    type Answer = ();

    fn take<B: Fn(usize) -> u64>(
        self,
        session: &mut Session<'_>,
        head: &Head<'_>,
        rows: impl Iterator<Item = (i64, B)>,
    ) -> Result<(), Failure> {
        let mut writer = Writer {
            session,
            line: Line::new(),
        };
        match self.format {
            Format::Text => writer.text(head, rows),
            Format::Csv => writer.csv(head, rows),
            Format::Json => writer.json(head, rows),
        }
    }
}

/// Writes rows.
struct Writer<'s, 'a> {
    session: &'s mut Session<'a>,
    line: Line,
}

impl Writer<'_, '_> {
    fn text<B: Fn(usize) -> u64>(
        &mut self,
        head: &Head<'_>,
        rows: impl Iterator<Item = (i64, B)>,
    ) -> Result<(), Failure> {
        let line = &mut self.line;
        line.push(&[b' '; 11]);
        for name in &head.names {
            for _ in name.len()..20 {
                line.push_byte(b' ');
            }
            line.push(name);
        }
        line.push(b"\n\n");
        for (time, bits) in rows {
            let line = &mut self.line;
            match time < 1_000_000_000 {
                true => line.push(format!("{time:>10}").as_bytes()),
                false => line.signed(time),
            }
            line.push_byte(b':');
            for source in 0..head.names.len() {
                line.push_byte(b' ');
                line.scientific(f64::from_bits(bits(source)), 10);
            }
            line.push_byte(b'\n');
            self.flush_piece()?;
        }
        self.flush()
    }

    /// A header line, and a line for each row; cells are quoted as RFC 4180 says.
    fn csv<B: Fn(usize) -> u64>(
        &mut self,
        head: &Head<'_>,
        rows: impl Iterator<Item = (i64, B)>,
    ) -> Result<(), Failure> {
        self.line.push(b"time");
        for name in &head.names {
            self.line.push_byte(b',');
            cell(name, &mut self.line);
        }
        self.line.push_byte(b'\n');
        for (time, bits) in rows {
            self.line.signed(time);
            for source in 0..head.names.len() {
                self.line.push_byte(b',');
                if let Some(number) = Value::from_bits(bits(source)).get() {
                    self.number(number, b"");
                }
            }
            self.line.push_byte(b'\n');
            self.flush_piece()?;
        }
        self.flush()
    }

    /// An object; each row is an array of its time and its values.
    fn json<B: Fn(usize) -> u64>(
        &mut self,
        head: &Head<'_>,
        rows: impl Iterator<Item = (i64, B)>,
    ) -> Result<(), Failure> {
        let Head {
            function,
            start,
            end,
            step,
            names,
        } = head;
        let text = format!(
            "{{\"function\":\"{function}\",\"start\":{start},\"end\":{end},\"step\":{step},\"names\":["
        );
        self.line.push(text.as_bytes());
        for (place, name) in names.iter().enumerate() {
            if place > 0 {
                self.line.push_byte(b',');
            }
            self.line.json_string(name);
        }
        self.line.push(b"],\"rows\":[");
        for (place, (time, bits)) in rows.enumerate() {
            self.line.push(if place > 0 { b",\n[" } else { b"\n[" });
            self.line.signed(time);
            for source in 0..names.len() {
                self.line.push_byte(b',');
                match Value::from_bits(bits(source)).get() {
                    Some(number) => self.number(number, b"\""),
                    None => self.line.push(b"null"),
                }
            }
            self.line.push_byte(b']');
            self.flush_piece()?;
        }
        self.line.push(b"\n]}\n");
        self.flush()
    }

    /// A number that is known, with the fewest digits that distinguish it from its neighbours.
    fn number(&mut self, number: f64, quote: &[u8]) {
        if number.is_finite() {
            return self.line.shortest(number, 64);
        }
        self.line.push(quote);
        self.line.push(match number > 0.0 {
            true => b"Infinity",
            false => b"-Infinity",
        });
        self.line.push(quote);
    }

    fn flush_piece(&mut self) -> Result<(), Failure> {
        match self.line.len() < PIECE {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.session.write(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// A cell, quoted where it has to be.
fn cell(text: &[u8], line: &mut Line) {
    if !text.iter().any(|byte| b",\"\r\n".contains(byte)) {
        return line.push(text);
    }
    line.push_byte(b'"');
    for &byte in text {
        if byte == b'"' {
            line.push_byte(b'"');
        }
        line.push_byte(byte);
    }
    line.push_byte(b'"');
}
