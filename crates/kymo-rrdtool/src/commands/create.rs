//! `create`: a new database.

use kymo_machine::{Machine, Width};
use kymo_rrd::engine::modify::{Filling, Giver};
use kymo_rrd::engine::{Defined, Definition, Smoothing};
use kymo_rrd::file::convert::Target;
use kymo_rrd::{Form, Source, Time};

use super::{FIRST_ROW, FORMAT, MACHINE, define, format, machine};
use crate::failure::reason;
use crate::make::{self, Existing, FirstRows};
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::times::{self, Clock, EARLIEST, TimeError};
use crate::{Failure, Session, daemon, open};

pub(super) const COMMAND: Command = Command {
    name: "create",
    about: "Make a database",
    details: "DS:NAME[=NAME[INDEX]]:GAUGE|COUNTER|DERIVE|ABSOLUTE|DCOUNTER|DDERIVE:HEARTBEAT:MIN:MAX \
        and DS:NAME:COMPUTE:EXPRESSION define data sources, RRA:AVERAGE|MIN|MAX|LAST:XFF:POINTS:ROWS \
        and those of Holt and Winters archives, as with rrdtool. Numbers of seconds, points and rows \
        may be times such as 5m, 1h, 7d.",
    operands: "FILE.rrd DS:... RRA:...",
    options: &[
        Opt::with(
            Some('b'),
            "start",
            "TIME",
            "No update may be of this time or before [default: ten seconds ago].",
        ),
        Opt::with(
            Some('s'),
            "step",
            "SECONDS",
            "How long a data point is [default: 300 seconds].",
        ),
        Opt::with(
            Some('t'),
            "template",
            "FILE.rrd",
            "Take step, data sources and archives of this database.",
        ),
        Opt::with(
            Some('r'),
            "source",
            "FILE.rrd",
            "Take values of this database; of the first that knows them, if there are several.",
        ),
        Opt::flag(
            Some('O'),
            "no-overwrite",
            "Leave a file that is there alone.",
        ),
        Opt::with(
            Some('d'),
            "daemon",
            "ADDRESS",
            "Have the daemon at this address make the database, as rrdcached does.",
        ),
        FORMAT,
        FIRST_ROW,
        MACHINE,
    ],
    examples: &[
        "create load.rrd --step 1m DS:load:GAUGE:5m:0:U RRA:AVERAGE:0.5:1m:1d RRA:MAX:0.5:1h:1y",
        "create load.rrd --format portable DS:load:GAUGE:600:0:U RRA:AVERAGE:0.5:1:2016",
        "create new.rrd --source old.rrd --template old.rrd RRA:LAST:0.5:1:100",
    ],
    run,
};

/// Seconds of a data point.
const STEP: u64 = 300;

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let Some((&file, texts)) = words.operands.split_first() else {
        return Err(Failure::new("need name of an rrd file to create"));
    };
    // Errors are reported in the order of the options.
    let (mut start, mut step) = (None, None);
    for (option, value) in words.options() {
        match option {
            "start" => start = Some(time(session, value)?),
            "step" => {
                let seconds = times::duration(value);
                let seconds =
                    seconds.map_err(|error| Failure::new(format!("step size: {error}")))?;
                step = Some(seconds);
            }
            "source" => {
                path(value).metadata().map_err(|error| {
                    let (source, reason) = (shown(value), reason(&error));
                    Failure::new(format!("error checking for source RRD {source}: {reason}"))
                })?;
            }
            _ => {}
        }
    }
    let existing = Existing::of(words);
    if existing == Existing::Stays {
        make::is_free(file)?;
    }
    let format = format(session, words)?;
    let first_rows = FirstRows::read(words.value("first-row"))?;
    // A daemon makes files of its own form.
    let usual = matches!(format, Target::Native(machine) if machine == Machine::native());
    let here = words.has("format") || !usual || !first_rows.is_random();
    let plan = Plan {
        file,
        texts,
        start,
        step,
        format,
        first_rows,
        existing,
    };
    if !here && plan.by_daemon(session, words)? {
        return Ok(());
    }
    let files: Vec<_> = words
        .values("source")
        .chain(words.value("template"))
        .collect();
    open::with_sources(session, &files, machine(words)?, |session, files| {
        let (template, sources) = match files.split_last() {
            Some((template, sources)) if words.has("template") => (Some(template), sources),
            _ => (None, files),
        };
        plan.create(session, sources, template)
    })
}

/// What a command line says.
struct Plan<'a> {
    file: &'a [u8],
    /// Definitions.
    texts: &'a [&'a [u8]],
    start: Option<i64>,
    step: Option<u64>,
    format: Target,
    first_rows: FirstRows,
    existing: Existing,
}

impl Plan<'_> {
    fn create(
        &self,
        session: &mut Session<'_>,
        sources: &[Source<'_>],
        template: Option<&Source<'_>>,
    ) -> Result<(), Failure> {
        let last = |source: &Source<'_>| source.database.state.last_update.seconds();
        let start = self
            .start
            .or_else(|| sources.iter().map(last).max())
            .or_else(|| template.map(last))
            .unwrap_or_else(|| session.now().saturating_sub(10));
        let smoothing = Smoothing {
            file_name: self.file,
            long: match self.format {
                Target::Native(machine) => machine.long(),
                Target::Portable => Width::W64,
            },
        };
        let mut definition = Definition::new(Time::from_seconds(start), self.step.unwrap_or(STEP));
        if let Some(template) = template {
            let database = &template.database;
            definition.version = database.version.max(3);
            definition.step = self.step.unwrap_or(database.step);
            definition.sources = database.sources.clone();
            definition.archives = database.archives.clone();
        }
        let mut origins = vec![None; definition.sources.len()];
        for text in self.texts {
            if let Defined::Source(origin) = define(&mut definition, text, &smoothing)? {
                origins.push(origin);
            }
        }
        if definition.archives.is_empty() {
            let problem = "you must define at least one Round Robin Archive";
            return Err(Failure::new(problem));
        }
        if definition.sources.is_empty() {
            return Err(Failure::new("you must define at least one Data Source"));
        }
        let rows: Vec<u64> = definition
            .archives
            .iter()
            .map(|archive| archive.rows)
            .collect();
        self.first_rows.check(&rows)?;
        session.check_values(&rows, definition.sources.len())?;
        let givers: Vec<_> = sources
            .iter()
            .map(|source| Giver {
                database: &source.database,
                rows: &source.rows,
            })
            .collect();
        let filling = Filling {
            definition: &definition,
            origins: &origins,
            givers: &givers,
        };
        let created = filling
            .create(|archive, rows| self.first_rows.of(archive, rows))
            .map_err(|error| Failure::new(error.to_string()))?;
        let source = created.source(Form::Xml, Vec::new());
        make::write(session, self.file, &source, self.format, self.existing)
    }

    /// Lets a daemon make the database, if one is specified and answers. One that the command line names
    /// has to; without the one that the environment names, the database is made here.
    fn by_daemon(&self, session: &mut Session<'_>, words: &Words<'_>) -> Result<bool, Failure> {
        let client = match daemon::connect(session, words) {
            Ok(Some(client)) => client,
            Ok(None) => return Ok(false),
            Err(failure) if words.has("daemon") => return Err(failure),
            Err(failure) => {
                session.warn(failure);
                return Ok(false);
            }
        };
        let mut request = vec![b"create".to_vec(), client.path(self.file)?];
        let mut add = |option: &str, value: Vec<u8>| request.extend([option.into(), value]);
        if let Some(start) = self.start {
            add("-b", start.to_string().into());
        }
        for (option, value) in words.options() {
            match option {
                "step" => add("-s", value.to_vec()),
                "source" => add("-r", client.path(value)?),
                "template" => add("-t", client.path(value)?),
                _ => {}
            }
        }
        if self.existing == Existing::Stays {
            request.push(b"-O".to_vec());
        }
        request.extend(self.texts.iter().map(|text| text.to_vec()));
        let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        client.ask(&request)?;
        Ok(true)
    }
}

/// The time that `--start` specifies.
fn time(session: &Session<'_>, text: &[u8]) -> Result<i64, Failure> {
    let clock = Clock {
        is_first: true,
        ..session.clock()
    };
    let time = times::time(text, &clock).map_err(|error| {
        Failure::new(match error {
            TimeError::Relative => error.to_string(),
            error => format!("start time: {error}"),
        })
    })?;
    match time {
        EARLIEST.. => Ok(time),
        _ => Err(Failure::new(
            "the first entry to the RRD should be after 1980",
        )),
    }
}
