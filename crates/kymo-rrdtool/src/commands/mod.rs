//! The commands, a module each.

mod create;
mod dump;
mod export;
pub(crate) mod fetch;
mod flushcached;
pub(crate) mod graph;
mod import;
pub(crate) mod info;
pub(crate) mod last;
pub(crate) mod list;
mod merge;
mod prometheus;
mod resize;
mod restore;
mod span;
mod tune;
pub(crate) mod update;
pub(crate) mod xport;

pub use export::{TableExport, table_export};
pub use graph::with_place;
pub(crate) use graph::{drawn_for_page, image_info};
pub(crate) use last::last_update_time;
pub use tune::tune;

use kymo_io::Locking;
use kymo_machine::Machine;
use kymo_rrd::engine::{Defined, Definition, Smoothing};
use kymo_rrd::file::convert::Target;
use kymo_rrd::text::info::Fact;
use kymo_text::Line;

use crate::options::{Command, Opt, Words, emptied};
use crate::path::shown;
use crate::{Failure, Session};

/// All commands.
pub const COMMANDS: &[Command] = &[
    create::COMMAND,
    dump::COMMAND,
    export::COMMAND,
    fetch::COMMAND,
    last::FIRST,
    flushcached::COMMAND,
    graph::GRAPH,
    graph::GRAPHV,
    import::COMMAND,
    info::COMMAND,
    last::LAST,
    last::LASTUPDATE,
    list::COMMAND,
    merge::COMMAND,
    prometheus::COMMAND,
    resize::COMMAND,
    restore::COMMAND,
    tune::COMMAND,
    update::UPDATE,
    update::UPDATEV,
    xport::COMMAND,
];

/// Does what a command line asks: the name of a command, and the words behind it.
///
/// # Errors
///
/// Why it was not done; `None` if the command is unknown.
pub fn run(session: &mut Session<'_>, words: &[&[u8]]) -> Option<Result<(), Failure>> {
    let (name, words) = words.split_first()?;
    let command = find(name)?;
    let operands = emptied(std::mem::take(&mut session.operands));
    let words = match Words::read_to(operands, command.options, words) {
        Ok(words) => words,
        Err(failure) => {
            let reported = match command.name {
                // They print a time whatever is wrong.
                "first" | "last" => session.write("-1\n"),
                _ => Ok(()),
            };
            return Some(reported.and(Err(failure)));
        }
    };
    let done = with_locking(session, &words, |session| (command.run)(session, &words));
    session.operands = emptied(words.operands);
    Some(done)
}

/// Works with the locking that a command line asks for.
fn with_locking<T>(
    session: &mut Session<'_>,
    words: &Words<'_>,
    work: impl FnOnce(&mut Session<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let usual = session.locking;
    let done = reported_locking(words).and_then(|reported| {
        session.locking = reported.unwrap_or(usual);
        work(session)
    });
    session.locking = usual;
    done
}

/// Reads the words behind the name of a command, and works with them.
pub(crate) fn with_words<'w, T>(
    session: &mut Session<'_>,
    command: &Command,
    words: &[&'w [u8]],
    work: impl FnOnce(&mut Session<'_>, &Words<'w>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let words = Words::read(command.options, words)?;
    with_locking(session, &words, |session| work(session, &words))
}

/// Prints facts, a line each.
fn print_facts(session: &mut Session<'_>, facts: &[Fact]) -> Result<(), Failure> {
    let mut out = Line::new();
    facts.iter().for_each(|fact| fact.print(&mut out));
    session.write(out.as_bytes())
}

/// Whether [`run`] has something to do for a command of this name.
pub fn knows(name: &[u8]) -> bool {
    find(name).is_some()
}

/// Whether a command makes databases, so that it needs [`Defaults::format`](crate::Defaults::format);
/// `-` does, as its lines may.
pub fn makes_databases(name: &[u8]) -> bool {
    name == b"-" || find(name).is_some_and(|command| command.options.contains(&FORMAT))
}

/// The command of a name.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes() == name)
}

/// The daemon that is asked for what it has not yet written.
const DAEMON: Opt = Opt::with(
    Some('d'),
    "daemon",
    "ADDRESS",
    "Have the daemon at this address write what it holds of the file before, as rrdcached does.",
);

/// That a command waits for those that write.
const WAIT: Opt = Opt::flag(
    None,
    "wait",
    "Wait while another program writes the file, and do not fail.",
);

/// What a command does about programs that write the file.
const LOCKING: Opt = Opt::with(
    None,
    "locking",
    "none|try|block",
    "Do not lock the file, fail if another program writes it, or wait for that program \
     [default: RRD_LOCKING, or else try].",
);

/// The locking of a name that `--locking` and `RRD_LOCKING` take.
///
/// # Errors
///
/// A name that is not one of these.
pub fn locking_named(name: &[u8]) -> Result<Locking, Failure> {
    match name {
        b"none" => Ok(Locking::None),
        b"try" => Ok(Locking::Try),
        b"block" => Ok(Locking::Wait),
        name => Err(Failure::new(format!(
            "unknown locking mode '{}': expected none, try or block",
            shown(name)
        ))),
    }
}

/// What a command line says about locking, with either option; the last `--locking` counts.
fn reported_locking(words: &Words<'_>) -> Result<Option<Locking>, Failure> {
    match words.value("locking") {
        Some(name) => locking_named(name).map(Some),
        None => Ok(words.has("wait").then_some(Locking::Wait)),
    }
}

/// The machine that wrote a file.
const MACHINE: Opt = Opt::with(
    None,
    "machine",
    "MACHINE",
    "The machine that wrote the file, where it is not found or found wrong.",
);

/// The form of a new database.
const FORMAT: Opt = Opt::with(
    None,
    "format",
    "MACHINE|portable",
    "The machine that will read the file, or `portable` [default: KYMO_RRD_FORMAT, else the \
     configuration, else this machine].",
);

/// Where the rows of a new database begin.
const FIRST_ROW: Opt = Opt::with(
    None,
    "first-row",
    "N[,N...]",
    "The row of each archive before the one that is written first; [default: any].",
);

/// The form of a new database that the command line specifies, or else the default.
fn format(session: &Session<'_>, words: &Words<'_>) -> Result<Target, Failure> {
    let reported = words.value("format").map(target).transpose()?;
    Ok(reported.unwrap_or(session.defaults.format))
}

/// The machine that an option names.
fn machine(words: &Words<'_>) -> Result<Option<&'static Machine>, Failure> {
    words.value("machine").map(known_machine).transpose()
}

fn known_machine(name: &[u8]) -> Result<&'static Machine, Failure> {
    std::str::from_utf8(name)
        .ok()
        .and_then(Machine::find)
        .ok_or_else(|| {
            let name = shown(name);
            Failure::new(format!(
                "there is no machine '{name}'; `kymo machine list` lists them"
            ))
        })
}

/// The form of files that a name specifies: that of a machine, or the portable one.
///
/// # Errors
///
/// If the machine is unknown.
pub fn target(name: &[u8]) -> Result<Target, Failure> {
    match name {
        b"portable" => Ok(Target::Portable),
        name => known_machine(name).map(Target::Native),
    }
}

/// The only operand.
fn only<'a>(words: &Words<'a>, usage: &str) -> Result<&'a [u8], Failure> {
    match words.operands[..] {
        [operand] => Ok(operand),
        _ => Err(Failure::new(format!("Usage: rrdtool {usage}"))),
    }
}

/// Adds what a word defines.
fn define(
    definition: &mut Definition,
    word: &[u8],
    smoothing: &Smoothing<'_>,
) -> Result<Defined, Failure> {
    let Ok(text) = std::str::from_utf8(word) else {
        let text = shown(word);
        return Err(Failure::new(format!("can't parse argument '{text}'")));
    };
    let defined = definition.add(text, smoothing);
    defined.map_err(|error| Failure::new(error.to_string()))
}
