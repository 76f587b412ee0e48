//! `import`: databases from tables, from files of RRD4J and Whisper, from trees of them and of other programs'
//! databases, and updates from rrdcached's journal.

mod journal;
mod tree;

use std::borrow::Cow;

use kymo_io::Bytes;
use kymo_machine::Width;
use kymo_rrd::engine::modify::{Filling, Giver};
use kymo_rrd::engine::{Defined, Definition, Measurement, Origin, Rrd, Sample, Smoothing};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::{rrd4j, whisper};
use kymo_rrd::model::SourceKind;
use kymo_rrd::{Form, Source, Text, Time, text::numbers};

use super::{FIRST_ROW, FORMAT, define, format};
use crate::csv::{BadRow, Table, time};
use crate::make::{self, Existing, FirstRows};
use crate::options::{Command, Opt, Words};
use crate::path::{path, shown};
use crate::{Failure, Session, open, times};

pub(super) const COMMAND: Command = Command {
    name: "import",
    about: "Make databases of tables, of files of RRD4J, JRobin or Whisper, and of trees",
    details: "A table is CSV: a column of times (seconds or nanoseconds since 1970, or as in RFC 3339) \
        and columns of readings, which are U, nan or nothing where they are unknown; the first row \
        names the columns. Rows come in order of time: those that do not are left out and counted. \
        Data sources and archives are defined as for create, DS:NAME=COLUMN:... where the names \
        differ. If no data source is, each column of numbers becomes a GAUGE; if no archive is, one of \
        AVERAGE holds all. Of a file of RRD4J or Whisper, all is taken that RRDtool has as well. --from \
        whisper|ganglia|proxmox makes a database of each file of a directory, in another one; --from \
        rrdcached stores what a journal of rrdcached has and the databases below a directory do not.",
    operands: "FILE.csv|FILE|DIR FILE.rrd|DIR [DS:...] [RRA:...]",
    options: &[
        Opt::with(
            None,
            "from",
            "whisper|ganglia|proxmox|rrdcached",
            "What the directory is: a tree of Whisper, Ganglia or Proxmox VE, or a journal of rrdcached.",
        ),
        Opt::with(
            None,
            "columns",
            "NAME,...",
            "The names of the columns of a table that has no row for them.",
        ),
        Opt::with(
            None,
            "time",
            "NAME",
            "The column of times [default: the first].",
        ),
        Opt::with(
            Some('s'),
            "step",
            "SECONDS",
            "How long a data point is [default: what most rows are apart].",
        ),
        Opt::flag(
            Some('O'),
            "no-overwrite",
            "Leave a file that is there alone.",
        ),
        FORMAT,
        FIRST_ROW,
    ],
    examples: &[
        "import load.csv load.rrd --step 1m RRA:AVERAGE:0.5:1m:1w RRA:MAX:0.5:1h:1y",
        "import demo.jrb demo.rrd --format portable",
        "import --from whisper /var/lib/graphite/whisper /var/lib/rrd/graphite",
        "import --from rrdcached /var/lib/rrdcached/journal /var/lib/rrdcached/db",
    ],
    run,
};

/// The number of left-out rows that are reported.
const TOLD: u64 = 5;
/// Maximum number of rows of an archive that is not defined.
const MOST_ROWS: u64 = 10_000_000;

fn run(session: &mut Session<'_>, words: &Words<'_>) -> Result<(), Failure> {
    let [input, output, texts @ ..] = &words.operands[..] else {
        let usage = "import [options] <file.csv|file> <file.rrd> [DS:...] [RRA:...]";
        return Err(Failure::new(format!("Usage: kymo rrd {usage}")));
    };
    let existing = Existing::of(words);
    if existing == Existing::Stays && words.value("from").is_none() {
        make::is_free(output)?;
    }
    let step = words.value("step").map(times::duration).transpose();
    let import = Import {
        input,
        output,
        texts,
        columns: words.value("columns"),
        time: words.value("time"),
        step: step.map_err(|error| Failure::new(format!("step size: {error}")))?,
        format: format(session, words)?,
        first_rows: FirstRows::read(words.value("first-row"))?,
        existing,
    };
    if let Some(from) = words.value("from") {
        return match tree::Layout::named(from) {
            Some(layout) => import.tree(session, layout),
            None if from == b"rrdcached" => import.journal(session),
            None => Err(Failure::new(format!(
                "--from: found '{}', expected whisper, ganglia, proxmox or rrdcached",
                shown(from)
            ))),
        };
    }
    if path(input).is_dir() {
        return Err(Failure::new(format!(
            "'{}' is a directory: --from says what it holds (whisper, ganglia, proxmox or rrdcached)",
            shown(input)
        )));
    }
    let bytes = open::bytes(input)?;
    match rrd4j::is_rrd4j(&bytes) {
        true => import.rrd4j(session, &bytes),
        false if whisper::is_whisper(&bytes) || input.ends_with(b".wsp") => {
            import.whisper_source(session, input, &bytes, |session, source| {
                import.of_source(session, source, "Whisper")
            })
        }
        false if kymo_rrd::is_database(&bytes) => Err(Failure::new(format!(
            "'{}': this is a database already; `kymo rrd convert` makes one of another form of it",
            shown(input)
        ))),
        false => import.table(session, &bytes),
    }
}

/// What a command line says.
struct Import<'a> {
    input: &'a [u8],
    output: &'a [u8],
    texts: &'a [&'a [u8]],
    columns: Option<&'a [u8]>,
    time: Option<&'a [u8]>,
    step: Option<u64>,
    format: Target,
    first_rows: FirstRows,
    existing: Existing,
}

impl Import<'_> {
    fn failure(&self, problem: impl std::fmt::Display) -> Failure {
        Failure::new(format!("'{}': {problem}", shown(self.input)))
    }

    fn smoothing(&self) -> Smoothing<'_> {
        Smoothing {
            file_name: self.output,
            long: match self.format {
                Target::Native(machine) => machine.long(),
                Target::Portable => Width::W64,
            },
        }
    }

    fn rrd4j(&self, session: &mut Session<'_>, bytes: &Bytes) -> Result<(), Failure> {
        let source = Source::open(bytes, None).map_err(|error| self.failure(error))?;
        self.of_source(session, &source, "RRD4J")
    }

    /// Reads a file of Whisper.
    fn whisper_source<T>(
        &self,
        session: &mut Session<'_>,
        word: &[u8],
        bytes: &[u8],
        work: impl FnOnce(&mut Session<'_>, &Source<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let file = whisper::read(bytes, Some(session.now()))
            .map_err(|error| Failure::new(format!("'{}': {error}", shown(word))))?;
        for finding in file.findings.iter() {
            session.warn(format_args!("{}: {}", shown(word), finding.error));
        }
        work(session, &file.changed.source(Form::Xml, Vec::new()))
    }

    /// Makes a database of another, with what is defined otherwise.
    fn of_source(
        &self,
        session: &mut Session<'_>,
        source: &Source<'_>,
        what: &str,
    ) -> Result<(), Failure> {
        if self.columns.is_some() || self.time.is_some() {
            return Err(self.failure(format_args!(
                "this is a file of {what}, which has no columns"
            )));
        }
        if self.texts.is_empty() && self.step.is_none() && self.first_rows.is_random() {
            return make::write(session, self.output, source, self.format, self.existing);
        }
        let database = &source.database;
        for finding in source.findings.iter() {
            session.warn(format_args!("{}: {}", shown(self.input), finding.error));
        }
        let start = Time::from_seconds(database.state.last_update.seconds());
        let mut definition = Definition::new(start, self.step.unwrap_or(database.step));
        let mut origins = self.define(&mut definition)?;
        if definition.sources.is_empty() {
            definition.sources = database.sources.clone();
            origins = vec![None; definition.sources.len()];
        }
        if definition.archives.is_empty() {
            definition.archives = database.archives.clone();
        }
        self.check_rows(&definition)?;
        let giver = [Giver {
            database,
            rows: &source.rows,
        }];
        let filling = Filling {
            definition: &definition,
            origins: &origins,
            givers: &giver,
        };
        let created = filling.create(|archive, rows| self.first_rows.of(archive, rows));
        let created = created.map_err(|error| self.failure(error))?;
        let source = created.source(Form::Xml, Vec::new());
        make::write(session, self.output, &source, self.format, self.existing)
    }

    /// Checks that the specified rows are in their archives.
    fn check_rows(&self, definition: &Definition) -> Result<(), Failure> {
        let rows = definition.archives.iter().map(|archive| archive.rows);
        self.first_rows.check(&rows.collect::<Vec<_>>())
    }

    /// Reads the definitions that are given.
    fn define(&self, definition: &mut Definition) -> Result<Vec<Option<Origin>>, Failure> {
        let mut origins = Vec::new();
        for text in self.texts {
            if let Defined::Source(origin) = define(definition, text, &self.smoothing())? {
                origins.push(origin);
            }
        }
        Ok(origins)
    }

    fn table(&self, session: &mut Session<'_>, bytes: &[u8]) -> Result<(), Failure> {
        let (columns, first_line) = self.columns(bytes)?;
        let at = match self.time {
            None => 0,
            Some(name) => columns
                .iter()
                .position(|column| column.as_bytes() == name)
                .ok_or_else(|| {
                    self.failure(format_args!("no column is named '{}'", shown(name)))
                })?,
        };
        let survey = self.survey(bytes, first_line, (at, columns.len()))?;
        let step = self.step.unwrap_or(survey.step);
        let before = i64::try_from(step)
            .ok()
            .and_then(|step| survey.first.checked_sub(step));
        let start = before
            .filter(|start| *start >= 0)
            .ok_or_else(|| self.failure("the first row is less than a step after 1970"))?;
        let mut definition = Definition::new(Time::from_seconds(start), step);
        let mut origins = self.define(&mut definition)?;
        if definition.sources.is_empty() {
            let numeric = |(place, _): &(usize, _)| *place != at && survey.is_numeric(*place);
            for (_, column) in columns.iter().enumerate().filter(numeric) {
                let (name, seconds) = (usual_name(column), step.saturating_mul(2));
                let text = format!("DS:{name}:GAUGE:{seconds}:U:U");
                define(&mut definition, text.as_bytes(), &self.smoothing())?;
                origins.push(None);
            }
        }
        if definition.archives.is_empty() {
            let seconds = survey.last.abs_diff(start);
            let rows = seconds.div_ceil(step).clamp(1, MOST_ROWS);
            let text = format!("RRA:AVERAGE:0.5:1:{rows}");
            define(&mut definition, text.as_bytes(), &self.smoothing())?;
        }
        // Of each data source that is measured, the column of its readings.
        let mut places = Vec::new();
        for (source, origin) in definition.sources.iter().zip(&origins) {
            if matches!(source.kind, SourceKind::Compute(_)) {
                continue;
            }
            let name = origin.as_ref().map_or(&source.name, |origin| &origin.name);
            let place = columns
                .iter()
                .position(|column| usual_name(column).as_bytes() == name.as_bytes())
                .filter(|place| *place != at);
            places.push(place.ok_or_else(|| {
                self.failure(format_args!("no column of readings is named '{name}'"))
            })?);
        }
        if places.is_empty() {
            return Err(self.failure("no column has readings"));
        }
        self.check_rows(&definition)?;
        let filling = Filling {
            definition: &definition,
            origins: &origins,
            givers: &[],
        };
        let created = filling.create(|archive, rows| self.first_rows.of(archive, rows));
        let created = created.map_err(|error| self.failure(error))?;
        let empty = convert(&created.source(Form::Xml, Vec::new()), self.format);
        let empty = empty.map_err(|error| self.failure(error))?.bytes;
        let mut rrd = Rrd::open(empty).map_err(|error| self.failure(error))?;
        self.store(session, bytes, first_line, (at, &places), &mut rrd)?;
        let full = rrd.into_storage();
        make::write_bytes(session, self.output, &full, self.existing)
    }

    /// The names of the columns, and the line after which the readings begin.
    fn columns(&self, bytes: &[u8]) -> Result<(Vec<Text>, u64), Failure> {
        if let Some(names) = self.columns {
            let names = names.split(|byte| *byte == b',').map(Text::new);
            return Ok((names.collect(), 0));
        }
        let mut fields = Vec::new();
        let line = self.next(&mut Table::new(bytes), &mut fields)?;
        let line = line.ok_or_else(|| self.failure("there are no rows"))?;
        Ok((fields.iter().map(|field| Text::new(field)).collect(), line))
    }

    fn next<'t>(
        &self,
        table: &mut Table<'t>,
        fields: &mut Vec<Cow<'t, [u8]>>,
    ) -> Result<Option<u64>, Failure> {
        let row = table.next(fields);
        row.map_err(|BadRow { line, problem }| self.failure(format_args!("line {line}: {problem}")))
    }

    /// The time of a row.
    fn time(&self, line: u64, fields: &[Cow<'_, [u8]>], at: usize) -> Result<Time, Failure> {
        let field = fields.get(at).map_or(b"".as_slice(), |field| field);
        time(field).ok_or_else(|| {
            let (found, column) = (shown(field), at + 1);
            self.failure(format_args!(
                "line {line}, column {column}: found '{found}', expected a time: seconds or \
                 nanoseconds since 1970, or as in 2024-05-06T07:08:09Z"
            ))
        })
    }

    /// Looks at all rows: from when to when they reach, how far they are apart, which are numbers.
    fn survey(
        &self,
        bytes: &[u8],
        first_line: u64,
        (at, columns): (usize, usize),
    ) -> Result<Survey, Failure> {
        let mut table = Table::new(bytes);
        let mut fields = Vec::new();
        let mut survey = Survey::default();
        let mut apart = Vec::new();
        let mut before: Option<Time> = None;
        while let Some(line) = self.next(&mut table, &mut fields)? {
            if line <= first_line {
                continue;
            }
            let time = self.time(line, &fields, at)?;
            // Such as of a decimal comma: half of a number must not be taken for all of it.
            if fields.iter().skip(columns).any(|field| !field.is_empty()) {
                return Err(self.failure(format_args!(
                    "line {line}: found {} fields, expected {columns}, as many as there are names of columns; \
                     numbers have a decimal point, not a comma",
                    fields.len()
                )));
            }
            survey
                .numeric
                .resize(survey.numeric.len().max(fields.len()), None);
            for (field, numeric) in fields.iter().zip(&mut survey.numeric) {
                if !is_unknown(field) {
                    let number = numbers::whole(field.trim_ascii()).is_ok();
                    *numeric = Some(number && *numeric != Some(false));
                }
            }
            match before {
                None => survey.first = time.seconds(),
                Some(before) if time > before => {
                    apart.push(time.seconds().abs_diff(before.seconds()));
                }
                Some(_) => continue,
            }
            survey.last = time.seconds();
            before = Some(time);
        }
        if before.is_none() {
            return Err(self.failure("there are no rows"));
        }
        apart.sort_unstable();
        survey.step = apart
            .get(apart.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or(300)
            .max(1);
        Ok(survey)
    }

    /// Stores the readings. Rows that are out of order are left out, and reported.
    fn store(
        &self,
        session: &mut Session<'_>,
        bytes: &[u8],
        first_line: u64,
        (at, places): (usize, &[usize]),
        rrd: &mut Rrd<Vec<u8>>,
    ) -> Result<(), Failure> {
        let mut table = Table::new(bytes);
        let mut fields = Vec::new();
        let mut left_out = 0u64;
        while let Some(line) = self.next(&mut table, &mut fields)? {
            if line <= first_line {
                continue;
            }
            let time = self.time(line, &fields, at)?;
            let last = rrd.last_update();
            if time <= last {
                left_out += 1;
                if left_out <= TOLD {
                    let what = if time == last {
                        "the same time as"
                    } else {
                        "a time before that of"
                    };
                    session.warn(format_args!(
                        "{}: line {line} is left out: it is of {what} the row before it",
                        shown(self.input)
                    ));
                }
                continue;
            }
            let readings = places.iter().map(|place| {
                let field = fields.get(*place).map_or(b"".as_slice(), |field| field);
                if is_unknown(field) {
                    return Ok(Measurement::Text(b"U"));
                }
                match numbers::whole(field.trim_ascii()) {
                    Ok(_) => Ok(Measurement::Text(field.trim_ascii())),
                    Err(_) => Err(self.failure(format_args!(
                        "line {line}, column {}: found '{}', expected a number, `U` or nothing",
                        place + 1,
                        shown(field)
                    ))),
                }
            });
            let values = readings.collect::<Result<Vec<_>, _>>()?;
            let sample = Sample {
                time,
                values: &values,
            };
            rrd.update(&sample)
                .map_err(|error| self.failure(format_args!("line {line}: {error}")))?;
        }
        if left_out > 0 {
            session.warn(format_args!(
                "{}: {left_out} rows are left out, since they are not in order of time",
                shown(self.input)
            ));
        }
        Ok(())
    }
}

/// What there is in a table.
#[derive(Default)]
struct Survey {
    first: i64,
    last: i64,
    step: u64,
    /// Of each column whether all that is known is a number; `None` where nothing is known.
    numeric: Vec<Option<bool>>,
}

impl Survey {
    fn is_numeric(&self, column: usize) -> bool {
        self.numeric.get(column).copied().flatten() == Some(true)
    }
}

/// Whether a field says that its reading is unknown.
fn is_unknown(field: &[u8]) -> bool {
    let field = field.trim_ascii();
    let words: [&[u8]; 4] = [b"", b"U", b"nan", b"null"];
    words.iter().any(|word| field.eq_ignore_ascii_case(word))
}

/// A column's name as a data source may have it.
fn usual_name(column: &Text) -> String {
    let usual = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"_-".contains(byte) => char::from(*byte),
        _ => '_',
    };
    column
        .as_bytes()
        .trim_ascii()
        .iter()
        .take(19)
        .map(usual)
        .collect()
}
