//! `xport`: a table of series from files and expressions.

use super::span::{END, START, Span};
use super::{DAEMON, LOCKING, MACHINE, WAIT, machine};
use crate::graph::elements::{Element, Kind};
use crate::graph::table::{Grid, Table};
use crate::graph::{Bounds, Request, Script};
use crate::options::{Command, Opt, Words};
use crate::path::shown;
use crate::{Failure, Session, daemon};

pub(crate) const COMMAND: Command = Command {
    name: "xport",
    about: "Print series from files and expressions as a table",
    details: "DEF:NAME=FILE:SOURCE:FUNCTION reads a series, CDEF:NAME=EXPRESSION computes one from \
        others, VDEF:NAME=NAME,FUNCTION makes one value of one, SHIFT:NAME:SECONDS moves one in \
        time, and XPORT:NAME:LEGEND is a column of the table. Words that draw are passed over. \
        Names and legends are written as they are, without escapes.",
    operands: "DEF:... [CDEF:...] [VDEF:...] XPORT:...",
    options: OPTIONS,
    examples: &["xport -s -1d DEF:in=eth0.rrd:in:AVERAGE CDEF:bits=in,8,* XPORT:bits:\"bits in\""],
    run,
};

pub(crate) const OPTIONS: &[Opt] = &[
    START,
    END,
    Opt::with(
        Some('m'),
        "maxrows",
        "N",
        "Rows are made fewer until there are about so many, at least 10 [default: 400].",
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
    LOCKING,
    MACHINE,
];

/// Maximum number of rows, roughly, if nothing is specified.
const ROWS: i64 = 400;

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    with_table(session, words, |session, table, grid| {
        print(session, words, table, grid)
    })
}

/// Prints the table.
pub(crate) fn print(
    session: &mut Session<'_>,
    words: &Words<'_>,
    table: &Table<'_>,
    grid: Grid,
) -> Result<(), Failure> {
    let mut write = |text: &[u8]| session.write(text);
    match words.has("json") {
        true => table.json(grid, &mut write),
        false => table.xml(grid, &mut write),
    }
}

/// Makes the table.
pub(crate) fn with_table<T>(
    session: &mut Session<'_>,
    words: &Words<'_>,
    work: impl FnOnce(&mut Session<'_>, &Table<'_>, Grid) -> Result<T, Failure>,
) -> Result<T, Failure> {
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
    let request = Request {
        machine: machine(words)?,
        daemon: daemon.as_deref(),
        missing_is_unknown: false,
    };
    let known = script.compute(session, &bounds, &request)?;
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
        notes: None,
        exact: session.exact,
    };
    if table.columns.is_empty() {
        return Err(Failure::new("no XPORT found, nothing to do"));
    }
    let mut unreported: Vec<&str> = Vec::new();
    for element in &script.elements {
        let name = command(element).filter(|name| !unreported.contains(name));
        unreported.extend(name);
    }
    if !unreported.is_empty() {
        let words = unreported.join(", ");
        session.warn(format_args!(
            "the table does not have what these words show: {words}"
        ));
    }
    let grid = table.grid(&bounds);
    work(session, &table, grid)
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
