//! `tune`: other parameters, other data sources and archives.

use std::io;

use kymo_io::{Access, Bytes, Compression, Shared, Storage};
use kymo_machine::Width;
use kymo_rrd::engine::modify::{Changed, Length, Parameter, Reshaping, Setting};
use kymo_rrd::engine::{Definition, Smoothing};
use kymo_rrd::file::convert::Target;
use kymo_rrd::file::native::Patch;
use kymo_rrd::model::Reading;
use kymo_rrd::{Database, Source, Value, text::numbers};

use super::{LOCKING, MACHINE, WAIT, machine};
use crate::daemon::Remote;
use crate::failure::reason;
use crate::make::{self, Existing};
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, daemon, open, times};

pub(super) const COMMAND: Command = Command {
    name: "tune",
    about: "Change parameters, data sources and archives of a database",
    details: "Options change a native file in place; where one of them cannot be, nothing is changed. \
        Operands add and remove data sources (DS:..., DEL:NAME) and archives (RRA:..., DELRRA:N), and \
        change how many rows an archive has (RRA#N:+ROWS, RRA#N:-ROWS, RRA#N:=ROWS); then the file is \
        written again and renamed, as a portable one always is.",
    operands: "FILE.rrd [DS:... | DEL:NAME | RRA:... | DELRRA:N | RRA#N:+|-|=ROWS]...",
    options: &[
        Opt::with(
            Some('h'),
            "heartbeat",
            "NAME:SECONDS",
            "The heartbeat of a data source.",
        ),
        Opt::with(
            Some('i'),
            "minimum",
            "NAME:RATE",
            "The least known rate of a data source; U: none.",
        ),
        Opt::with(
            Some('a'),
            "maximum",
            "NAME:RATE",
            "The greatest known rate of a data source; U: none.",
        ),
        Opt::with(
            Some('d'),
            "data-source-type",
            "NAME:TYPE",
            "The type of a data source.",
        ),
        Opt::with(
            Some('r'),
            "data-source-rename",
            "NAME:NEW",
            "Another name of a data source.",
        ),
        Opt::with(
            Some('p'),
            "deltapos",
            "NUMBER",
            "Deviations above the prediction that are not a failure, 0.1 or more.",
        ),
        Opt::with(
            Some('n'),
            "deltaneg",
            "NUMBER",
            "Deviations below the prediction that are not a failure, 0.1 or more.",
        ),
        Opt::with(
            Some('f'),
            "failure-threshold",
            "COUNT",
            "Values out of bounds that make a failure, 1 to 28.",
        ),
        Opt::with(
            Some('w'),
            "window-length",
            "COUNT",
            "Values that are looked at for failures, 1 to 28.",
        ),
        Opt::with(
            Some('x'),
            "alpha",
            "NUMBER",
            "Adaption of the intercept, between 0 and 1.",
        ),
        Opt::with(
            Some('y'),
            "beta",
            "NUMBER",
            "Adaption of the slope, between 0 and 1.",
        ),
        Opt::with(
            Some('z'),
            "gamma",
            "NUMBER",
            "Adaption of the season, between 0 and 1.",
        ),
        Opt::with(
            Some('v'),
            "gamma-deviation",
            "NUMBER",
            "Adaption of deviations, between 0 and 1.",
        ),
        Opt::with(
            Some('s'),
            "smoothing-window",
            "NUMBER",
            "The part of the season over which it is smoothed, 0 to 1.",
        ),
        Opt::with(
            Some('S'),
            "smoothing-window-deviation",
            "NUMBER",
            "The part over which deviations are smoothed, 0 to 1.",
        ),
        Opt::with(
            Some('b'),
            "aberrant-reset",
            "NAME",
            "Forget what was learnt to predict a data source.",
        ),
        Opt::with(
            Some('t'),
            "step",
            "SECONDS",
            "A shorter step that divides the one before; rows stay as long as they are.",
        ),
        Opt::with(
            Some('D'),
            "daemon",
            "ADDRESS",
            "Have the daemon at this address write what it holds of the file before, and forget the file.",
        ),
        WAIT,
        LOCKING,
        MACHINE,
    ],
    examples: &[
        "tune load.rrd --heartbeat load:15m --maximum load:100",
        "tune load.rrd DS:users:GAUGE:600:0:U RRA#0:+288",
    ],
    run,
};

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let Some((&file, operands)) = words.operands.split_first() else {
        return Err(Failure::new("missing file name"));
    };
    if let Some(mut remote) = Remote::connect(session, words)? {
        let is_relaid = !operands.is_empty() || words.has("step");
        let done = remote.tune(file, &remote_options(words)?, operands, is_relaid)?;
        remote.keep(session);
        if done {
            return Ok(());
        }
    }
    daemon::flush(session, words, file)?;
    if change(session, words, file, operands)? {
        daemon::forget(session, words, file)?;
    }
    Ok(())
}

/// The options that a daemon of another machine is given.
fn remote_options(words: &Words<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut options = Vec::new();
    for (name, value) in words.options() {
        match name {
            "daemon" => {}
            "wait" | "locking" => {
                return Err(Failure::new(format!(
                    "--{name} does not apply: the daemon of another machine changes its file itself"
                )));
            }
            _ => options.push([b"--", name.as_bytes(), b"=", value].concat()),
        }
    }
    Ok(options)
}

/// Does what a daemon's client asks with `TUNE`: the words of the command line behind its name. Their first operand
/// is the file as the client calls it, in place of which `file` is changed.
///
/// # Errors
///
/// Why it was not done; also where the database would have more values than [`Session::most_values`].
pub fn tune(session: &mut Session<'_>, file: &[u8], words: &[&[u8]]) -> Result<(), Failure> {
    let words = Words::read(COMMAND.options, words)?;
    match words.operands.split_first() {
        Some((_, operands)) => change(session, &words, file, operands).map(drop),
        None => Err(Failure::new("missing file name")),
    }
}

/// Changes a database; returns whether a new file has replaced it.
fn change(
    session: &mut Session<'_>,
    words: &Words<'_>,
    file: &[u8],
    operands: &[&[u8]],
) -> Result<bool, Failure> {
    let locking = session.locking;
    let there = path(file);
    let mut held = Shared::open_locked(&there, locking).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::new("could not lock RRD"),
        _ => open::cannot_open(file, &error),
    })?;
    let reported = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let damaged = |error| Failure::new(format!("'{}': {error}", shown(file)));
    let bytes =
        Bytes::open(&there, Access::Random).map_err(|error| open::cannot_open(file, &error))?;
    if Compression::detect(&bytes).is_some() {
        return Err(open::cannot_open(file, &kymo_rrd::engine::no_update()));
    }
    let whole = Source::complete(&bytes).map_err(damaged)?;
    let source = Source::open(&whole, machine(words)?).map_err(damaged)?;
    let target = make::form_of(&source)?;
    if let Some(doubt) = source.form.doubt() {
        return Err(Failure::new(format!("{doubt}; --machine names it")));
    }
    let mut database = source.database.clone();
    let mut forgotten = Vec::new();
    for (option, value) in words.options() {
        if let Some(setting) = setting(option, value)? {
            let applied = setting
                .apply(&mut database)
                .map_err(|error| reported(&error))?;
            forgotten.extend(applied);
        }
    }
    let mut reshaping = reshaping(operands)?;
    if let Some(step) = words.value("step") {
        let step = times::duration(step);
        let step = step.map_err(|error| Failure::new(format!("step size: {error}")))?;
        reshaping.step = Some(step);
    }
    if reshaping == Reshaping::default() {
        if database == source.database && forgotten.is_empty() {
            return Ok(false);
        }
        if let Target::Native(_) = target
            && let Some(patch) =
                Patch::new(&source, &database, &forgotten).map_err(|error| reported(&error))?
        {
            for (offset, bytes) in patch.parts() {
                let written = held.write_at(*offset, bytes);
                written.map_err(|error| {
                    Failure::new(format!("'{}': {}", shown(file), reason(&error)))
                })?;
            }
            return Ok(false);
        }
        let mut changed = Changed::of(database, &source.rows).map_err(|error| reported(&error))?;
        forgotten
            .iter()
            .for_each(|source| changed.forget_seasons(*source));
        let changed = changed.source(source.form.clone(), source.records.clone());
        make::write(session, file, &changed, target, Existing::Replaced)?;
        return Ok(true);
    }
    warn_of_missing(session, &reshaping, &database);
    let mut rows = Changed::of(database, &source.rows).map_err(|error| reported(&error))?;
    forgotten
        .iter()
        .for_each(|source| rows.forget_seasons(*source));
    let smoothing = Smoothing {
        file_name: file,
        long: match target {
            Target::Native(machine) => machine.long(),
            Target::Portable => Width::W64,
        },
    };
    check_size(session, &reshaping, &rows.database, &smoothing)?;
    let changed = reshaping.apply(&rows.database, &rows.rows(), &smoothing);
    let changed = changed.map_err(|error| reported(&error))?;
    let changed = changed.source(source.form.clone(), source.records.clone());
    make::write(session, file, &changed, target, Existing::Replaced)?;
    Ok(true)
}

/// Checks that there are not more values than a session makes, as if no archive lost rows.
fn check_size(
    session: &Session<'_>,
    reshaping: &Reshaping,
    database: &Database,
    smoothing: &Smoothing<'_>,
) -> Result<(), Failure> {
    let mut definition = Definition {
        version: database.version,
        start: database.state.last_update,
        step: reshaping.step.unwrap_or(database.step),
        sources: database.sources.clone(),
        archives: database.archives.clone(),
    };
    for text in &reshaping.add {
        definition
            .add(text, smoothing)
            .map_err(|error| Failure::new(error.to_string()))?;
    }
    let there = definition.archives.iter().map(|archive| archive.rows);
    let more = reshaping.lengths.iter().map(|(_, length)| match *length {
        Length::More(rows) | Length::Exactly(rows) => rows,
        Length::Less(_) => 0,
    });
    let rows: Vec<u64> = there.chain(more).collect();
    session.check_values(&rows, definition.sources.len())
}

/// Warns of what is to be removed or changed but does not exist, which rrdtool ignores.
fn warn_of_missing(session: &mut Session<'_>, reshaping: &Reshaping, database: &Database) {
    for name in &reshaping.remove_sources {
        if database.source(name).is_none() {
            session.warn(format_args!("DEL:{name}: unknown data source"));
        }
    }
    let lengths = reshaping.lengths.iter().map(|(place, _)| place);
    for place in reshaping.remove_archives.iter().chain(lengths) {
        if *place >= database.archives.len() {
            session.warn(format_args!("there is no RRA with index {place}"));
        }
    }
}

/// What an option changes; `None` if it changes nothing.
fn setting(option: &str, text: &[u8]) -> Result<Option<Setting>, Failure> {
    let failure = |message: &str| Failure::new(message);
    let text = std::str::from_utf8(text).map_err(|_| {
        let text = shown(text);
        Failure::new(format!("--{option}: found '{text}', expected UTF-8"))
    })?;
    let named = |problem: &str| {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        match name.is_empty() || value.is_empty() {
            true => Err(failure(problem)),
            false => Ok((name.to_owned(), value)),
        }
    };
    let setting = match option {
        "heartbeat" => {
            let problem = "invalid arguments for heartbeat";
            let (name, value) = named(problem)?;
            let seconds = times::duration(value.as_bytes()).map_err(|_| failure(problem))?;
            Setting::Heartbeat { name, seconds }
        }
        "minimum" => {
            let (name, rate) = rate(named, "invalid arguments for minimum ds value")?;
            Setting::Minimum { name, rate }
        }
        "maximum" => {
            let (name, rate) = rate(named, "invalid arguments for maximum ds value")?;
            Setting::Maximum { name, rate }
        }
        "data-source-type" => {
            let (name, kind) = named("invalid arguments for data source type")?;
            let reading = Reading::from_name(kind.as_bytes()).ok_or_else(|| match kind {
                "COMPUTE" => {
                    failure("only `DS:NAME:COMPUTE:...` makes data sources that are computed")
                }
                _ => Failure::new(format!("unknown data acquisition function '{kind}'")),
            })?;
            Setting::Kind { name, reading }
        }
        "data-source-rename" => {
            let (name, to) = named("invalid arguments for data source type")?;
            let to = to.to_owned();
            Setting::Rename { name, to }
        }
        "deltapos" => Setting::Archive(Parameter::DeltaPositive, delta(text)?),
        "deltaneg" => Setting::Archive(Parameter::DeltaNegative, delta(text)?),
        "failure-threshold" => Setting::FailureThreshold(count(text)?),
        "window-length" => Setting::WindowLength(count(text)?),
        "alpha" => Setting::Archive(Parameter::Alpha, fraction(text)?),
        "beta" => Setting::Archive(Parameter::Beta, fraction(text)?),
        "gamma" => Setting::Archive(Parameter::Gamma, fraction(text)?),
        "gamma-deviation" => Setting::Archive(Parameter::GammaDeviation, fraction(text)?),
        "smoothing-window" => Setting::Archive(Parameter::SmoothingWindow, part(text)?),
        "smoothing-window-deviation" => {
            Setting::Archive(Parameter::SmoothingWindowDeviation, part(text)?)
        }
        "aberrant-reset" => Setting::Reset {
            name: text.to_owned(),
        },
        _ => return Ok(None),
    };
    Ok(Some(setting))
}

/// A data source and a rate, or `U` for none.
fn rate<'a>(
    named: impl Fn(&str) -> Result<(String, &'a str), Failure>,
    problem: &str,
) -> Result<(String, Value), Failure> {
    let (name, text) = named(problem)?;
    if text == "U" {
        return Ok((name, Value::UNKNOWN));
    }
    match numbers::whole(text.as_bytes()) {
        Ok(number) if number.is_finite() => Ok((name, Value::from(number))),
        _ => Err(Failure::new(problem)),
    }
}

/// A number of 0.1 or more.
fn delta(text: &str) -> Result<Value, Failure> {
    match numbers::whole(text.as_bytes()) {
        Ok(number) if number >= 0.1 => Ok(Value::from(number)),
        Ok(_) => Err(Failure::new("Parameter specified is too small")),
        Err(_) => Err(Failure::new("Unable to parse parameter in set_deltaarg")),
    }
}

/// 1 to 28.
fn count(text: &str) -> Result<u64, Failure> {
    let number = text.parse().ok().filter(|number| (1..=28).contains(number));
    number.ok_or_else(|| Failure::new("Parameter must be between 1 and 28"))
}

fn parameter(text: &str, serves: impl Fn(f64) -> bool) -> Result<Value, Failure> {
    match numbers::whole(text.as_bytes()) {
        Ok(number) if serves(number) => Ok(Value::from(number)),
        Ok(_) => Err(Failure::new(
            "Holt-Winters parameter must be between 0 and 1",
        )),
        Err(_) => Err(Failure::new("Unable to parse Holt-Winters parameter")),
    }
}

/// A number between 0 and 1.
fn fraction(text: &str) -> Result<Value, Failure> {
    parameter(text, |number| number > 0.0 && number < 1.0)
}

/// A number of 0 to 1.
fn part(text: &str) -> Result<Value, Failure> {
    parameter(text, |number| (0.0..=1.0).contains(&number))
}

/// What the operands say.
fn reshaping(operands: &[&[u8]]) -> Result<Reshaping, Failure> {
    let mut reshaping = Reshaping::default();
    for operand in operands {
        let unparseable = || Failure::new(format!("unparseable argument: {}", shown(operand)));
        let text = std::str::from_utf8(operand).map_err(|_| unparseable())?;
        if let Some(name) = text.strip_prefix("DEL:").filter(|name| !name.is_empty()) {
            reshaping.remove_sources.push(name.to_owned());
        } else if let Some(place) = text
            .strip_prefix("DELRRA:")
            .filter(|place| !place.is_empty())
        {
            let place = place
                .parse()
                .map_err(|_| Failure::new("DELRRA requires a non-negative, integer argument"))?;
            reshaping.remove_archives.push(place);
        } else if let Some(change) = text.strip_prefix("RRA#") {
            let length =
                length(change).ok_or_else(|| Failure::new("Failed to parse RRA# command"))?;
            reshaping.lengths.push(length);
        } else if text.starts_with("DS:") || text.starts_with("RRA:") {
            reshaping.add.push(text.to_owned());
        } else {
            return Err(unparseable());
        }
    }
    Ok(reshaping)
}

/// `N:+ROWS`, `N:-ROWS` or `N:=ROWS`.
fn length(text: &str) -> Option<(usize, Length)> {
    let (place, change) = text.split_once(':')?;
    let rows = change.get(1..)?;
    let rows = rows
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| rows.parse().ok())??;
    let length = match change.as_bytes().first()? {
        b'+' => Length::More(rows),
        b'-' => Length::Less(rows),
        b'=' => Length::Exactly(rows),
        _ => return None,
    };
    Some((place.parse().ok()?, length))
}
