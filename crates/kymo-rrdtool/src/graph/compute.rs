//! Doing what a script says.

use std::collections::{HashMap, HashSet};

use kymo_rrd::Source;
use kymo_rrd::engine::{Wanted, fetch};
use kymo_rrd::rpn::{EvaluateError, MAX_ROWS, Program, Series, Stack, Surroundings, Variable};

use super::script::{Action, Read, Script, Shift};
use super::{Bounds, Request};
use crate::open::with_sources;
use crate::path::shown;
use crate::{Failure, Session, answers, daemon};

/// What a variable is.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Series(Series),
    Value {
        value: f64,
        /// When it was, in seconds since 1970; `None` if it is of no particular time.
        time: Option<i64>,
    },
}

impl Known {
    fn as_variable(&self) -> Variable<'_> {
        match self {
            Self::Series(series) => Variable::Series(series),
            Self::Value { value, .. } => Variable::Number(*value),
        }
    }

    /// The series, where it is one.
    pub(crate) fn series(&self) -> Option<&Series> {
        match self {
            Self::Series(series) => Some(series),
            Self::Value { .. } => None,
        }
    }
}

/// Values that the series of a graph have at most together.
const MOST_VALUES: usize = 1 << 26;

/// A shift that leads out of all times, in seconds.
const MOST_SHIFT: i64 = 1 << 59;

/// The room that series have left.
struct Room(usize);

impl Room {
    fn take(&mut self, series: &Series) -> Result<(), Failure> {
        self.0 = self.0.checked_sub(series.values().len()).ok_or_else(|| {
            Failure::new(format!(
                "the series of the graph have more than {MOST_VALUES} values; a longer step makes them fewer"
            ))
        })?;
        Ok(())
    }
}

impl Script {
    /// Reads the files, each once, and computes all variables. Before, daemons write what they
    /// hold: the one that a definition names, or else this one.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, or have not what is asked for; expressions without a result.
    pub(crate) fn compute(
        &self,
        session: &mut Session<'_>,
        bounds: &Bounds,
        request: &Request<'_>,
    ) -> Result<Vec<Known>, Failure> {
        let machine = request.machine;
        self.flush(session, request.daemon)?;
        let mut files: Vec<&[u8]> = Vec::new();
        let mut places = HashMap::new();
        for action in &self.actions {
            if let Action::Read(read) = action
                && !session.has(&read.file)
            {
                places.entry(&*read.file).or_insert_with(|| {
                    files.push(&read.file);
                    files.len() - 1
                });
            }
        }
        if request.missing_is_unknown {
            files.retain(|file| with_sources(session, &[file], machine, |_, _| Ok(())).is_ok());
            places = files
                .iter()
                .enumerate()
                .map(|(place, file)| (*file, place))
                .collect();
        }
        let mut room = Room(MOST_VALUES);
        // All files are read before anything is computed.
        let read = with_sources(session, &files, machine, |session, sources| {
            let reads = self.actions.iter().filter_map(|action| match action {
                Action::Read(read) => Some(read),
                _ => None,
            });
            let series = reads.map(|read| {
                if session.has(&read.file) {
                    return match of_program(session, read, bounds) {
                        Err(_) if request.missing_is_unknown => unknown(read),
                        series => series,
                    };
                }
                let place = places.get(&*read.file);
                match place.map(|place| series(read, &sources[*place], bounds)) {
                    Some(Err(_)) | None if request.missing_is_unknown => unknown(read),
                    Some(series) => series,
                    None => unknown(read),
                }
            });
            let series = series.map(|series| {
                let series = series?;
                room.take(&series)?;
                Ok(series)
            });
            series.collect::<Result<Vec<_>, Failure>>()
        })?;
        let mut read = read.into_iter();
        let surroundings = Surroundings {
            now: session.now(),
            zone: &session.zone,
        };
        let mut stack = Stack::default();
        let mut known: Vec<Known> = Vec::new();
        let mut shifts: HashMap<usize, i64> = HashMap::new();
        for action in &self.actions {
            match action {
                Action::Read(_) => known.extend(read.next().map(Known::Series)),
                Action::Evaluate { program, word } => {
                    let variables: Vec<_> = known.iter().map(Known::as_variable).collect();
                    let series = program.evaluate_series(&variables, &surroundings, &mut stack);
                    let series = series.map_err(|error| reported(program, word, &error))?;
                    room.take(&series)?;
                    known.push(Known::Series(series));
                }
                Action::Summarise { variable, summary } => {
                    let source = known[*variable].series();
                    let value = source.map_or(f64::NAN, |series| summary.of(series));
                    let time = source.and_then(|series| summary.time_in(series));
                    known.push(Known::Value { value, time });
                }
                Action::Shift { variable, by } => {
                    let by = match *by {
                        Shift::Seconds(seconds) => seconds,
                        Shift::Variable(by) => match known[by] {
                            // As C has it on this machine.
                            Known::Value { value, .. } if value.is_nan() => i64::MIN,
                            Known::Value { value, .. } => value as i64,
                            Known::Series(_) => 0,
                        },
                    };
                    let Known::Series(series) = &mut known[*variable] else {
                        continue;
                    };
                    // Whole rows; it takes the place of the shift before, which leaves nothing behind if it is
                    // exact.
                    let by = by.clamp(-MOST_SHIFT, MOST_SHIFT);
                    let by = by - by % series.step();
                    let before = shifts.insert(*variable, by).unwrap_or(0);
                    series.shift(by - before);
                }
            }
        }
        Ok(known)
    }

    /// Has daemons write what they hold of the files, each once.
    fn flush(&self, session: &mut Session<'_>, daemon: Option<&str>) -> Result<(), Failure> {
        let mut flushed = HashSet::new();
        for action in &self.actions {
            let Action::Read(Read {
                file, daemon: own, ..
            }) = action
            else {
                continue;
            };
            if session.has(file) {
                continue;
            }
            let own = own.as_ref().map(|own| shown(own).into_owned());
            let address = own.or_else(|| daemon.map(str::to_owned));
            if let Some(address) = address.filter(|address| !address.is_empty())
                && flushed.insert((address.clone(), file))
            {
                daemon::flush_at(session, address, file)?;
            }
        }
        Ok(())
    }
}

/// The series of a file that is missing.
fn unknown(read: &Read) -> Result<Series, Failure> {
    let Bounds { start, end, .. } = read.bounds;
    let series = Series::new(start, (end - start).max(1), vec![f64::NAN]);
    series.ok_or_else(|| Failure::new("the times are out of range"))
}

/// What is asked of a file.
fn series(read: &Read, source: &Source<'_>, bounds: &Bounds) -> Result<Series, Failure> {
    let Bounds { start, end, step } = read.bounds;
    let wanted = Wanted {
        function: read.function,
        start,
        end,
        step: step.unsigned_abs(),
    };
    let database = &source.database;
    let fetched = fetch(database, &source.rows, &wanted)
        .ok_or_else(|| Failure::new("the RRD does not contain an RRA matching the chosen CF"))?;
    let mut sources = database.sources.iter();
    let place = sources.position(|source| source.name.as_bytes() == read.source);
    let place = place.ok_or_else(|| {
        let (name, file) = (shown(&read.source), shown(&read.file));
        Failure::new(format!("No DS called '{name}' in '{file}'"))
    })?;
    let step = step.max(bounds.step).unsigned_abs();
    fetched.series(place, read.reduce, step).ok_or_else(|| {
        let file = shown(&read.file);
        Failure::new(format!(
            "'{file}': found more than {MAX_ROWS} rows; a longer step makes them fewer"
        ))
    })
}

/// What is asked of the program around.
fn of_program(session: &Session<'_>, read: &Read, bounds: &Bounds) -> Result<Series, Failure> {
    let Bounds { start, end, step } = read.bounds;
    let missing = || Failure::new(format!("cannot fetch '{}'", shown(&read.file)));
    let fetched = session.fetched(&answers::Wanted {
        name: &read.file,
        function: read.function,
        start,
        end,
        step: step.unsigned_abs(),
    });
    let mut fetched = fetched.ok_or_else(missing)??;
    let step = step.max(bounds.step).unsigned_abs();
    fetched.reduce(read.reduce, step)?;
    let source = fetched.names.iter().position(|name| *name == read.source);
    let source = source.ok_or_else(|| {
        let (name, file) = (shown(&read.source), shown(&read.file));
        Failure::new(format!("No DS called '{name}' in '{file}'"))
    })?;
    let values = fetched.rows().map(|(_, values)| values[source]);
    let series = Series::new(fetched.start, fetched.step as i64, values.collect());
    series.ok_or_else(missing)
}

/// What rrdtool says of a program without a result, and where it is.
fn reported(program: &Program, word: &str, error: &EvaluateError) -> Failure {
    use EvaluateError as E;
    let (problem, node) = match *error {
        E::NoSeries => (
            "rpn expressions without DEF or CDEF variables are not supported",
            None,
        ),
        E::FinalSize { .. } => ("RPN final stack size != 1", None),
        E::Underflow { node } => ("RPN stack underflow", Some(node)),
        E::Overflow { node } => ("RPN stack overflow", Some(node)),
        E::Arguments { node } => ("malformed trend arguments", Some(node)),
        E::NegativeShift { node } => ("negative shift step not allowed", Some(node)),
        E::Percentile { node } => ("percentile argument must be between 0 and 100", Some(node)),
        _ => return Failure::new(format!("{word}: {error}")),
    };
    Failure::new(match node {
        Some(node) => format!(
            "{problem}: item {} of {} in {word}",
            node + 1,
            program.nodes.len()
        ),
        None => format!("{problem}: {word}"),
    })
}
