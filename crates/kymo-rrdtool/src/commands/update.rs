//! `update` and `updatev`: readings for a database.

use std::time::{SystemTime, UNIX_EPOCH};

use kymo_io::Shared;
use kymo_machine::Machine;
use kymo_rrd::engine::{
    self, Measurement, ReadingProblem, Rrd, Sample, Template, TemplateError, UpdateError,
    UpdateOptions, Written,
};
use kymo_rrd::file::portable::Durability;
use kymo_rrd::text::info::{Fact, FactValue};
use kymo_rrd::text::numbers::{self, NumberError};
use kymo_rrd::{Database, Time};
use memchr::memchr;

use super::{LOCKING, MACHINE, WAIT, machine, print_facts};
use crate::answers::Update;
use crate::options::{Command, Opt, Words};
use crate::path::shown;
use crate::times::{self, Clock, TimeError};
use crate::{Failure, LocalZone, Session, daemon};

const DETAILS: &str = "Each READINGS is TIME:VALUE[:VALUE...], or AT-TIME@VALUE[:VALUE...] with a time such \
    as `noon yesterday`. TIME is `N` for now, or seconds since 1970 with a fraction or without; below \
    zero, seconds before now. A value for each data source that is measured, in their order, or for \
    each of the template; `U` where it is unknown.";

const OPERANDS: &str = "FILE READINGS...";

const TEMPLATE: Opt = Opt::with(
    Some('t'),
    "template",
    "NAME[:NAME...]",
    "The data sources that values are given for, in their order; others are unknown.",
);

const SKIP: Opt = Opt::flag(
    Some('s'),
    "skip-past-updates",
    "Pass over readings that are not after the last update.",
);

const DAEMON: Opt = Opt::with(
    Some('d'),
    "daemon",
    "ADDRESS",
    "Give the readings to the daemon at this address, which writes them later. With --durable they \
        are written at once.",
);

const DURABLE: Opt = Opt::flag(
    None,
    "durable",
    "Be done when everything is on the disk. A portable file then survives that the machine \
        stops at any moment. A daemon of another machine has then written the file.",
);

pub(crate) const UPDATE: Command = Command {
    name: "update",
    about: "Store readings in a database",
    details: DETAILS,
    operands: OPERANDS,
    options: &[TEMPLATE, SKIP, DAEMON, WAIT, LOCKING, DURABLE, MACHINE],
    examples: &[
        "update load.rrd N:1.5",
        "update -t out:in net.rrd 1600000000:17:4 1600000300:U:5",
        "update load.rrd 'noon yesterday@1.5'",
    ],
    run: update,
};

pub(crate) const UPDATEV: Command = Command {
    name: "updatev",
    about: "Store readings in a database, and print the rows that are written",
    details: DETAILS,
    operands: OPERANDS,
    options: &[TEMPLATE, SKIP, WAIT, LOCKING, DURABLE, MACHINE],
    examples: &["updatev load.rrd N:1.5"],
    run: updatev,
};

pub(crate) fn update(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let (file, readings) = operands(words)?;
    if daemon::address(session, words).is_some() {
        return hand_on(session, words, file, readings);
    }
    take(session, &line(words, file)?, readings, None)
}

/// Stores readings in a file.
pub(crate) fn update_file(session: &mut Session<'_>, update: &Update<'_>) -> Result<(), Failure> {
    if update.readings.is_empty() {
        return Err(not_enough());
    }
    let line = UpdateLine {
        file: update.file,
        machine: None,
        template: update.template,
        skip_past: update.skip_past,
        durability: Durability::Buffered,
    };
    take(session, &line, update.readings, None)
}

/// Gives readings to the daemon.
fn hand_on(
    session: &mut Session<'_>,
    words: &Words<'_>,
    file: &[u8],
    readings: &[&[u8]],
) -> Result<(), Failure> {
    if words.has("wait") {
        let message = "--wait cannot be had from a daemon, which writes the file by itself and later: \
                       leave it out, or name no daemon (--daemon '')";
        return Err(Failure::new(message));
    }
    let mut moments = Moments::new(session.now, &session.zone);
    let reported = |message| Failure::new(format!("{}: {message}", shown(file)));
    let readings = readings.iter().map(|reading| moments.absolute(reading));
    let update = daemon::Update {
        file,
        template: words.value("template"),
        readings: readings.collect::<Result<_, _>>().map_err(reported)?,
        skip_past: words.has("skip-past-updates"),
        durable: words.has("durable"),
    };
    match daemon::connect(session, words)? {
        Some(client) => client.update(update),
        None => Ok(()),
    }
}

fn updatev(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let (facts, done) = update_facts(session, words)?;
    print_facts(session, &facts)?;
    done
}

/// Stores readings. Gives the status and the rows that were written, and how it went.
pub(crate) fn update_facts(
    session: &mut Session<'_>,
    words: &Words<'_>,
) -> Result<(Vec<Fact>, Result<(), Failure>), Failure> {
    let (file, readings) = operands(words)?;
    let mut facts = vec![Fact::new("return_value", FactValue::Integer(0))];
    let done = take(session, &line(words, file)?, readings, Some(&mut facts));
    if done.is_err() {
        facts[0].value = FactValue::Integer(-1);
    }
    Ok((facts, done))
}

/// The file and the readings.
fn operands<'w, 'a>(words: &'w Words<'a>) -> Result<(&'a [u8], &'w [&'a [u8]]), Failure> {
    match &words.operands[..] {
        [file, readings @ ..] if !readings.is_empty() => Ok((file, readings)),
        _ => Err(not_enough()),
    }
}

fn not_enough() -> Failure {
    Failure::new("Not enough arguments")
}

/// What words say beside the readings.
fn line<'a>(words: &Words<'a>, file: &'a [u8]) -> Result<UpdateLine<'a>, Failure> {
    Ok(UpdateLine {
        file,
        machine: machine(words)?,
        template: words.value("template"),
        skip_past: words.has("skip-past-updates"),
        durability: match words.has("durable") {
            true => Durability::Synced,
            false => Durability::Buffered,
        },
    })
}

/// Stores readings, and appends the rows that are written.
fn take(
    session: &mut Session<'_>,
    line: &UpdateLine<'_>,
    readings: &[&[u8]],
    rows: Option<&mut Vec<Fact>>,
) -> Result<(), Failure> {
    let locking = session.locking;
    let mut moments = Moments::new(session.now, &session.zone);
    let work = |rrd: &mut Rrd<Shared>| line.take(rrd, readings, &mut moments, rows);
    let files = &mut session.files;
    files
        .with(line.file, line.machine, locking, work)
        .map_err(|error| crate::failure::of_file(line.file, &error))?
}

/// What a command line says beside its readings.
struct UpdateLine<'a> {
    file: &'a [u8],
    machine: Option<&'static Machine>,
    template: Option<&'a [u8]>,
    skip_past: bool,
    durability: Durability,
}

impl UpdateLine<'_> {
    fn take(
        &self,
        rrd: &mut Rrd<Shared>,
        readings: &[&[u8]],
        moments: &mut Moments<'_>,
        rows: Option<&mut Vec<Fact>>,
    ) -> Result<(), Failure> {
        let template = match self.template {
            Some(names) => Some(template(rrd, names)?),
            None => None,
        };
        let expected = template
            .as_ref()
            .map_or_else(|| rrd.readings(), Template::readings);
        let mut values = Vec::with_capacity(expected * readings.len().min(1 << 10));
        let mut samples = Vec::with_capacity(readings.len());
        // Those before one that cannot be read are stored.
        let mut failed = None;
        for reading in readings {
            match self.read(moments, rrd.last_update(), reading, expected, &mut values) {
                Ok(Some(time)) => samples.push(Sample { time, values: &[] }),
                Ok(None) => values.truncate(expected * samples.len()),
                Err(message) => {
                    failed = Some(message);
                    break;
                }
            }
        }
        // If no values are expected, each sample has none.
        for (sample, values) in samples.iter_mut().zip(values.chunks(expected.max(1))) {
            sample.values = values;
        }
        let options = UpdateOptions {
            template: template.as_ref(),
            skip_past: self.skip_past,
            more: failed.is_some(),
        };
        rrd.set_durability(self.durability);
        if rrd.readings() < rrd.sources() {
            // Expressions may ask for it.
            rrd.set_now(moments.now().0);
        }
        if rows.is_some() {
            rrd.note_written();
        }
        let done = rrd.update_all(&samples, &options);
        if let Some(rows) = rows {
            let written = rrd.take_written();
            written
                .iter()
                .for_each(|written| add_rows(rrd.database(), written, rows));
        }
        let failed = match done {
            Err((_, error)) => Some(reported(rrd.database(), &error)),
            Ok(_) => failed,
        };
        match failed {
            Some(message) => Err(Failure::new(format!("{}: {message}", shown(self.file)))),
            None => Ok(()),
        }
    }

    /// Reads the readings of one time. `None` if they are skipped.
    fn read<'r>(
        &self,
        moments: &mut Moments<'_>,
        last: Time,
        reading: &'r [u8],
        expected: usize,
        values: &mut Vec<Measurement<'r>>,
    ) -> Result<Option<Time>, String> {
        let at_style = memchr(b'@', reading);
        let colon = || reading.iter().position(|&byte| byte == b':');
        let Some(end) = at_style.or_else(colon) else {
            let reading = shown(reading);
            return Err(format!(
                "expected timestamp not found in data source from {reading}"
            ));
        };
        let (time, mut rest) = (&reading[..end], &reading[end + 1..]);
        for found in 1..=expected {
            // Few bytes, as a rule.
            let end = rest.iter().position(|&byte| byte == b':');
            let (value, after) = match end {
                Some(end) => (&rest[..end], Some(&rest[end + 1..])),
                None => (rest, None),
            };
            values.push(Measurement::Text(value));
            match after {
                Some(after) if found == expected => {
                    let after = shown(after);
                    return Err(format!("found extra data on update argument: {after}"));
                }
                Some(after) => rest = after,
                None if found == expected => {}
                None => {
                    let time = shown(time);
                    return Err(format!(
                        "expected {expected} data source readings (got {found}) from {time}"
                    ));
                }
            }
        }
        let time = match at_style {
            Some(_) => moments.at_style(time)?,
            None => moments.number(time)?,
        };
        match time {
            Some(time) if time.seconds() >= 0 => Ok(Some(time)),
            _ if self.skip_past => Ok(None),
            // rrdtool converts what is not a time to the least of all integers.
            _ => Err(past(time.map_or(i64::MIN, Time::seconds), last)),
        }
    }
}

/// Determines the times of readings.
struct Moments<'a> {
    /// The time that it is, where it is not that of the clock.
    fixed: Option<i64>,
    zone: &'a LocalZone,
    /// The last time that `N` stood for.
    last: Option<(i64, u32)>,
}

impl<'a> Moments<'a> {
    fn new(fixed: Option<i64>, zone: &'a LocalZone) -> Self {
        Self {
            fixed,
            zone,
            last: None,
        }
    }

    /// The time that it is: seconds and microseconds since 1970.
    fn now(&self) -> (i64, u32) {
        self.fixed.map_or_else(clock, |now| (now, 0))
    }

    /// A reading with the seconds that its time means, for daemons: they know neither times in words nor
    /// those that count from now. What is not a time stays as it is: the daemon reports it.
    fn absolute(&mut self, reading: &[u8]) -> Result<Vec<u8>, String> {
        let at_style = memchr(b'@', reading);
        let Some(end) = at_style.or_else(|| memchr(b':', reading)) else {
            return Ok(reading.to_vec());
        };
        let (time, values) = (&reading[..end], &reading[end + 1..]);
        let time = match (at_style, time) {
            (Some(_), _) => self.at_style(time)?,
            // As rrdtool does it, without the fraction.
            (None, b"N") => Some(Time::from_seconds(self.now().0)),
            (None, [b'-', ..]) => self.number(time)?,
            (None, _) => None,
        };
        let Some((seconds, micros)) = time.map(Time::to_micros) else {
            return Ok(reading.to_vec());
        };
        let mut reported = match micros {
            0 => format!("{seconds}:"),
            _ => format!("{seconds}.{micros:06}:"),
        }
        .into_bytes();
        reported.extend_from_slice(values);
        Ok(reported)
    }

    /// A time such as `noon yesterday`.
    fn at_style(&self, text: &[u8]) -> Result<Option<Time>, String> {
        let reported = |error| match error {
            TimeError::Relative => format!("{error}: {}", shown(text)),
            _ => format!("ds time: {}: {error}", shown(text)),
        };
        let clock = Clock {
            now: self.now().0,
            zone: self.zone,
            is_first: true,
        };
        let seconds = times::time(text, &clock).map_err(reported)?;
        Ok(Some(Time::from_seconds(seconds)))
    }

    /// `N`, or a number of seconds. `None` if the number is not a valid time.
    fn number(&mut self, text: &[u8]) -> Result<Option<Time>, String> {
        if text == b"N" {
            let mut now = self.now();
            if self.last.is_some_and(|last| last >= now) {
                // Two in one line are two different times.
                let (seconds, micros) = self.last.unwrap_or(now);
                now = match micros {
                    999_999 => (seconds.saturating_add(1), 0),
                    _ => (seconds, micros + 1),
                };
            }
            self.last = Some(now);
            return Ok(Time::from_micros(now.0, now.1));
        }
        if let Some(seconds) = numbers::plain_integer(text) {
            return Ok(Some(Time::from_seconds(seconds as i64)));
        }
        let place = "error while parsing time in get_time_from_reading";
        let number = number(text).map_err(|problem| format!("{place} - {problem}"))?;
        if number < 0.0 {
            let (now, micros) = self.now();
            // rrdtool's constant is one of single precision.
            let now = now as f64 + f64::from(micros) * f64::from(1e-6_f32);
            return Ok(engine::seconds(number + now));
        }
        Ok(engine::seconds(number))
    }
}

/// The time by the clock: seconds and microseconds since 1970.
fn clock() -> (i64, u32) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    (seconds, since.subsec_micros())
}

/// A number and nothing else; or why not, in rrdtool's words.
fn number(text: &[u8]) -> Result<f64, String> {
    match numbers::prefix(text) {
        Ok((number, end)) if end == text.len() => Ok(number),
        Ok((number, end)) => Err(converted(text, number, end)),
        Err(_) => Err(format!("Cannot convert '{}' to float", shown(text))),
    }
}

/// What rrdtool says where something follows a number.
fn converted(text: &[u8], number: f64, end: usize) -> String {
    let (whole, rest) = (shown(text), shown(&text[end..]));
    format!("Converted '{whole}' to {number:.6}, but cannot convert '{rest}'")
}

/// The data sources that are named, as rrdtool looks at them: one by one.
fn template(rrd: &Rrd<Shared>, names: &[u8]) -> Result<Template, Failure> {
    let unknown = |name: &str| Failure::new(format!("unknown DS name '{name}'"));
    let text = shown(names);
    let mut reported: Vec<&str> = text.split(':').collect();
    let more = reported.len() > rrd.sources();
    reported.truncate(rrd.sources());
    let template = rrd.template(&reported);
    let template = template.map_err(|TemplateError::Unknown(name)| unknown(&name))?;
    if more {
        let message = "tmplt contains more DS definitions than RRD";
        return Err(Failure::new(message));
    }
    Ok(template)
}

/// What rrdtool says of a time that is not after the last update.
fn past(time: i64, last: Time) -> String {
    let last = last.seconds();
    format!(
        "illegal attempt to update using time {time} when last update time is {last} \
         (minimum one second step)"
    )
}

/// Why readings are refused: in rrdtool's words where it has some.
fn reported(database: &Database, error: &UpdateError) -> String {
    match error {
        UpdateError::Past { time, last } => past(time.seconds(), *last),
        UpdateError::Reading {
            source,
            text,
            problem,
            ..
        } => {
            let kind = database
                .sources
                .get(*source)
                .map(|source| source.kind.name());
            let place = format!(
                "Function update_pdp_prep, case DST_{}",
                kind.unwrap_or_default()
            );
            let shown = shown(text);
            match *problem {
                ReadingProblem::NotUnsigned => format!("not a simple unsigned integer: '{shown}'"),
                ReadingProblem::NotSigned => format!("not a simple signed integer: '{shown}'"),
                ReadingProblem::Number(NumberError::NoNumber | NumberError::OutOfRange) => {
                    format!("{place} - Cannot convert '{shown}' to float")
                }
                ReadingProblem::Trailing { end } => {
                    let number = numbers::prefix(text).map_or(f64::NAN, |(number, _)| number);
                    format!("{place} - {}", converted(text, number, end))
                }
            }
        }
        error => error.to_string(),
    }
}

/// Appends the rows that were written to an archive.
fn add_rows(database: &Database, written: &Written, facts: &mut Vec<Fact>) {
    let Some(archive) = database.archives.get(written.archive) else {
        return;
    };
    let (function, points) = (archive.kind.name(), archive.points_per_row);
    for (time, values) in written.rows(database) {
        for (source, value) in database.sources.iter().zip(values) {
            let key = format!("[{time}]RRA[{function}][{points}]DS[{}]", source.name);
            let value = value.get().unwrap_or(f64::NAN);
            facts.push(Fact::new(key, FactValue::Number(value)));
        }
    }
}
