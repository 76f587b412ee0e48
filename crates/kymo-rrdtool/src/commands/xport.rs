//! `xport`: a table of series from files and expressions.

use kymo_rrd::rpn::{Series, greatest_divisor};
use kymo_text::Line;

use super::span::{END, START, Span};
use super::{DAEMON, MACHINE, WAIT, locking, machine};
use crate::graph::elements::{Element, Kind};
use crate::graph::{Bounds, Script};
use crate::options::{Command, Opt, Words};
use crate::path::shown;
use crate::{Failure, Session, daemon};

pub(super) const COMMAND: Command = Command {
    name: "xport",
    about: "Print series from files and expressions as a table",
    details: "DEF:NAME=FILE:SOURCE:FUNCTION reads a series, CDEF:NAME=EXPRESSION computes one from \
        others, VDEF:NAME=NAME,FUNCTION makes one value of one, SHIFT:NAME:SECONDS moves one in \
        time, and XPORT:NAME:LEGEND is a column of the table. Words that draw are passed over. \
        Names and legends are written as they are, without escapes.",
    operands: "DEF:... [CDEF:...] [VDEF:...] XPORT:...",
    options: &[
        START,
        END,
        Opt::with(
            Some('m'),
            "maxrows",
            "N",
            "Rows are made fewer until there are about so many, at least 10; 400 unless told \
             otherwise.",
        ),
        Opt::with(
            None,
            "step",
            "SECONDS",
            "The least number of seconds between two rows.",
        ),
        Opt::flag(None, "json", "Write JSON, not XML."),
        Opt::flag(None, "enumds", "Number the columns in XML: v0, v1..."),
        Opt::flag(Some('t'), "showtime", "Show the time of each row."),
        DAEMON,
        WAIT,
        MACHINE,
    ],
    examples: &["xport -s -1d DEF:in=eth0.rrd:in:AVERAGE CDEF:bits=in,8,* XPORT:bits:\"bits in\""],
    run,
};

/// Rows at most, roughly, where nothing is told.
const ROWS: i64 = 400;

/// Text is written in pieces of about so many bytes.
const PIECE: usize = 1 << 15;

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let mut span = Span::DAY;
    let (mut rows, mut step) = (ROWS, 0);
    for (name, value) in words.options() {
        match name {
            "start" => span.set_start(value)?,
            "end" => span.set_end(value)?,
            "maxrows" => {
                rows = number(value)
                    .filter(|rows| *rows >= 10)
                    .ok_or_else(|| Failure::new("maxrows below 10 rows"))?;
            }
            "step" => {
                step = number(value).ok_or_else(|| {
                    let message = format!(
                        "found step '{}', expected a number of seconds",
                        shown(value)
                    );
                    Failure::new(message)
                })?;
            }
            _ => {}
        }
    }
    let clock = session.clock();
    let (start, end) = span.resolve(&clock)?;
    let bounds = Bounds::new(start, end, step, rows)?;
    if words.operands.is_empty() {
        return Err(Failure::new("can't make an xport without contents"));
    }
    let script = Script::read(&words.operands, &bounds, &clock)?;
    let daemon = daemon::address(session, words);
    let known = script.compute(
        session,
        &bounds,
        machine(words)?,
        locking(words),
        daemon.as_deref(),
    )?;
    let columns = script.elements.iter();
    let table = Table {
        columns: columns
            .filter_map(|element| match element.kind {
                Kind::Export { variable } => {
                    Some((known[variable].series()?, element.legend.as_bytes()))
                }
                _ => None,
            })
            .collect(),
        times: words.has("showtime"),
        numbered: words.has("enumds"),
    };
    if table.columns.is_empty() {
        return Err(Failure::new("no XPORT found, nothing to do"));
    }
    let mut untold: Vec<&str> = Vec::new();
    for element in &script.elements {
        let name = command(element).filter(|name| !untold.contains(name));
        untold.extend(name);
    }
    if !untold.is_empty() {
        let words = untold.join(", ");
        session.warn(format_args!(
            "the table does not have what these words tell: {words}"
        ));
    }
    match words.has("json") {
        true => table.json(&bounds, session),
        false => table.xml(&bounds, session),
    }
}

/// The command of an element that rrdtool writes to its table, and kymo does not.
fn command(element: &Element) -> Option<&'static str> {
    Some(match &element.kind {
        Kind::Export { .. } => return None,
        Kind::Print { graphic: false, .. } => "PRINT",
        Kind::Print { graphic: true, .. } => "GPRINT",
        Kind::Comment => "COMMENT",
        Kind::Align(_) => "TEXTALIGN",
        Kind::HorizontalRule { .. } => "HRULE",
        Kind::VerticalRule { .. } => "VRULE",
        _ if element.legend.is_empty() => return None,
        Kind::Line { .. } => "LINE",
        Kind::Area { .. } => "AREA",
        Kind::Tick { .. } => "TICK",
    })
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

struct Table<'a> {
    /// Series, and what they are called.
    columns: Vec<(&'a Series, &'a [u8])>,
    times: bool,
    numbered: bool,
}

/// The rows of a table.
#[derive(Clone, Copy)]
struct Grid {
    /// The beginning of the first row.
    start: i64,
    end: i64,
    step: i64,
}

impl Grid {
    /// The beginnings of the rows.
    fn rows(self) -> impl Iterator<Item = i64> {
        let starts =
            std::iter::successors(Some(self.start), move |time| time.checked_add(self.step));
        starts.take_while(move |time| *time < self.end)
    }
}

impl Table<'_> {
    /// Rows as long as all columns have whole ones of, between the times.
    fn grid(&self, bounds: &Bounds) -> Grid {
        let step = self
            .columns
            .iter()
            .fold(0, |step, (series, _)| greatest_divisor(series.step(), step));
        let rest = bounds.end.rem_euclid(step);
        Grid {
            start: bounds.start - bounds.start.rem_euclid(step),
            end: match rest {
                0 => bounds.end,
                rest => bounds.end.saturating_add(step - rest),
            },
            step,
        }
    }

    fn xml(&self, bounds: &Bounds, session: &mut Session<'_>) -> Result<(), Failure> {
        let grid = self.grid(bounds);
        let mut line = Line::new();
        line.push(b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n\n<xport>\n  <meta>\n");
        let meta = [
            ("start", grid.start.saturating_add(grid.step)),
            ("end", grid.end),
            ("step", grid.step),
            ("rows", (grid.end - grid.start) / grid.step),
            ("columns", self.columns.len() as i64),
        ];
        for (name, number) in meta {
            line.push(format!("    <{name}>{number}</{name}>\n").as_bytes());
        }
        line.push(b"    <legend>\n");
        for (_, legend) in &self.columns {
            line.push(b"      <entry>");
            line.push(legend);
            line.push(b"</entry>\n");
        }
        line.push(b"    </legend>\n  </meta>\n  <data>\n");
        for time in grid.rows() {
            line.push(b"    <row>");
            if self.times {
                line.push(b"<t>");
                line.signed(time.saturating_add(grid.step));
                line.push(b"</t>");
            }
            for (column, (series, _)) in self.columns.iter().enumerate() {
                let tag = |line: &mut Line, begin: &[u8]| {
                    line.push(begin);
                    if self.numbered {
                        line.decimal(column as u64);
                    }
                    line.push_byte(b'>');
                };
                tag(&mut line, b"<v");
                line.rrdtool(series.value_from(time), 10);
                tag(&mut line, b"</v");
            }
            line.push(b"</row>\n");
            write_piece(&mut line, PIECE, session)?;
        }
        line.push(b"  </data>\n</xport>\n");
        write_piece(&mut line, 0, session)
    }

    fn json(&self, bounds: &Bounds, session: &mut Session<'_>) -> Result<(), Failure> {
        let grid = self.grid(bounds);
        let mut line = Line::new();
        line.push(b"{ \"about\": \"RRDtool graph JSON output\",\n  \"meta\": {\n");
        let meta = [
            ("start", grid.start.saturating_add(grid.step)),
            ("end", grid.end),
            ("step", grid.step),
        ];
        for (name, number) in meta {
            line.push(format!("    \"{name}\": {number},\n").as_bytes());
        }
        line.push(b"    \"legend\": [\n");
        for (column, (_, legend)) in self.columns.iter().enumerate() {
            line.push(b"      \"");
            line.push(legend);
            line.push(match column + 1 < self.columns.len() {
                true => b"\",\n",
                false => b"\"\n",
            });
        }
        line.push(b"          ]\n     },\n  \"data\": [\n");
        for (row, time) in grid.rows().enumerate() {
            line.push(match row {
                0 => b"    [ ".as_slice(),
                _ => b",\n    [ ",
            });
            if self.times {
                line.push_byte(b'"');
                line.signed(time.saturating_add(grid.step));
                line.push(b"\",");
            }
            for (column, (series, _)) in self.columns.iter().enumerate() {
                if column > 0 {
                    line.push(b", ");
                }
                match series.value_from(time) {
                    value if value.is_finite() => line.rrdtool(value, 10),
                    _ => line.push(b"null"),
                }
            }
            line.push(b" ]");
            write_piece(&mut line, PIECE, session)?;
        }
        line.push(b"\n  ]\n}\n");
        write_piece(&mut line, 0, session)
    }
}

/// Writes the text as soon as it is longer than so many bytes.
fn write_piece(line: &mut Line, most: usize, session: &mut Session<'_>) -> Result<(), Failure> {
    if line.len() > most {
        session.write(line.as_bytes())?;
        line.clear();
    }
    Ok(())
}
