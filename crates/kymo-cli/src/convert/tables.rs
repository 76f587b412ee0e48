//! `kymo convert --to parquet` and `--to arrow`.

use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use kymo::filter::Query;
use kymo::pipeline::Window;
use kymo::timeline::{self, Batch, Timeline};
use kymo_arrow::{Directory, Error, tables, write_stream};
use kymo_io::{Replace, replace};

use super::is_stdout;
use crate::args::convert::{Convert, TextForm, To};
use crate::ctf::Stop;
use crate::directory::{refuse_inputs, whole_directory};
use crate::notices::Notices;
use crate::open::{Inputs, threads, total_bytes};
use crate::terminal::{Failure, Outcome, Terminal, error_at};

/// Writes tables of all recordings.
pub(super) fn run(
    args: &Convert,
    to: To,
    (filter, windows): (Query, Vec<Window>),
    inputs: Inputs,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut query = timeline::Query::default();
    query.filter = filter;
    query.threads = threads(&args.work);
    query.binary_texts = args.text == Some(TextForm::Binary);
    query.range = match windows.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => *first,
        Some(_) => {
            let problem = "error: the recordings have different intersections of their streams\n\
                           hint: with `--stream-intersection`, convert each to a directory of its own";
            return Err(Failure::Usage(problem.to_owned()));
        }
        None => Window::ALL,
    };
    let read = Arc::new(AtomicU64::new(0));
    query.read = Some(Arc::clone(&read));
    let bytes = total_bytes(&inputs.recordings);
    if to == To::Parquet {
        refuse_inputs(&args.output, &inputs.recordings)?;
    }
    let job = Job {
        args,
        terminal,
        notices: Notices::new(terminal),
        query,
        timeline: Timeline::new(inputs.recordings),
        replaced: Cell::new(0),
    };
    terminal.watch(bytes, &read, || write(args, to, &job))
}

fn write(args: &Convert, to: To, job: &Job<'_>) -> Result<Outcome, Failure> {
    match to {
        To::Parquet => whole_directory(&args.output, args.force, |beside| {
            let mut directory = Directory::new(beside, job.query.threads)?;
            let mut take = |table: &_, batch| directory.write(table, batch);
            tables(&job.timeline, &job.query, &mut take, &mut |batch| {
                job.look(batch)
            })
            .map_err(|error| job.stop(error))?;
            directory.finish().map_err(|error| job.stop(error))?;
            job.end()
        }),
        _ if is_stdout(&args.output) => {
            let mut out = BufWriter::with_capacity(1 << 18, io::stdout());
            let written = job.stream(&mut out).and_then(|outcome| {
                out.flush()?;
                Ok(outcome)
            });
            ended(written)
        }
        _ => {
            let output = &args.output;
            let like = output.metadata().is_ok().then_some(output.as_path());
            let how = Replace {
                like,
                modified: false,
                ..Replace::NEW
            };
            let written = replace(output, how, |file| {
                let mut out = BufWriter::with_capacity(1 << 18, file);
                let outcome = job.stream(&mut out)?;
                out.flush()?;
                Ok(outcome)
            });
            ended(written.map_err(|stop| match stop {
                Stop::Failure(Failure::Output(error)) => error_at(output.display(), &error).into(),
                stop => stop,
            }))
        }
    }
}

fn ended(written: Result<Outcome, Stop>) -> Result<Outcome, Failure> {
    match written {
        Ok(outcome) => Ok(outcome),
        Err(Stop::Damage) => Ok(Outcome::Damage),
        Err(Stop::Failure(failure)) => Err(failure),
    }
}

struct Job<'a> {
    args: &'a Convert,
    terminal: &'a Terminal,
    notices: Notices<'a>,
    query: timeline::Query,
    timeline: Timeline,
    /// Texts of which something was replaced that is not UTF-8.
    replaced: Cell<u64>,
}

impl Job<'_> {
    fn look(&self, batch: &Batch) {
        let all = batch.notices().iter();
        all.for_each(|notice| self.notices.take(notice));
        self.replaced.set(self.replaced.get() + batch.replaced());
    }

    fn stream(&self, out: &mut dyn Write) -> Result<Outcome, Stop> {
        write_stream(&self.timeline, &self.query, out, &mut |batch| {
            self.look(batch)
        })
        .map_err(|error| self.stop(error))?;
        self.end()
    }

    /// What the run comes to: with `--strict`, nothing is left of an output that lacks something.
    fn end(&self) -> Result<Outcome, Stop> {
        let strict = self.args.work.strict;
        match self.replaced.get() {
            0 => {}
            replaced => {
                self.terminal.warning(format_args!(
                    "invalid UTF-8 was replaced by U+FFFD in {replaced} texts"
                ));
                self.terminal.hint("`--text=binary` writes texts as bytes");
            }
        }
        match self.notices.end(strict) {
            Outcome::Damage if strict => Err(Stop::Damage),
            outcome => Ok(outcome),
        }
    }

    fn stop(&self, error: Error) -> Stop {
        match error {
            Error::Output(error) => error.into(),
            Error::Query(error) => Stop::Failure(Failure::Usage(format!("error: {error}"))),
            error => io::Error::other(error).into(),
        }
    }
}
