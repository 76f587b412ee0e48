//! `kymo rrd convert`.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use kymo_io::{Access, Bytes, Replace, replace};
use kymo_rrd::convert::{Conversion, Target};
use kymo_rrd::{Form, Source, is_database};
use kymo_text::visible;

use super::plan::{Job, Plan};
use super::tell;
use crate::args::rrd::Convert;
use crate::terminal::{Failure, Outcome, Terminal};

/// What became of a file.
enum Done {
    /// It is converted, or would be.
    Converted {
        /// What it was.
        from: String,
        /// What was not carried over.
        notes: Vec<String>,
    },
    /// It had been converted before.
    Before,
    /// It is no database.
    NoDatabase,
}

/// Converts files.
pub(super) fn run(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    let Plan { jobs, failed } = Plan::new(args, terminal)?;
    let mut tally = Tally {
        failed,
        ..Tally::default()
    };
    let threads = match args.threads {
        Some(threads) => threads.into(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    if !args.dry_run {
        terminal.show_progress(jobs.iter().map(|job| job.bytes).sum());
    }
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let sender = sender.clone();
            let (jobs, next) = (&jobs, &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    let done = work(job, args);
                    terminal.advance(job.bytes);
                    if sender.send((number, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // What is told comes in the order of the files, whoever is first.
        let mut waiting = BTreeMap::new();
        let mut told = 0;
        for (number, done) in receiver {
            waiting.insert(number, done);
            while let Some(done) = waiting.remove(&told) {
                tally.add(&jobs[told], done, args, terminal)?;
                told += 1;
            }
        }
        Ok::<_, Failure>(())
    })?;
    terminal.end_progress();
    // What became of a single file is known without.
    let is_known = jobs.len() == 1 && tally.converted + tally.failed == 1;
    if !args.dry_run && !is_known {
        terminal.tell(tally.to_string().as_bytes());
    }
    Ok(match tally.failed {
        0 => Outcome::Good,
        _ => Outcome::Damage,
    })
}

/// How many files there were of each kind.
#[derive(Default)]
struct Tally {
    converted: usize,
    before: usize,
    no_database: usize,
    failed: usize,
}

impl Tally {
    /// Adds a file, and tells what is to be told of it.
    fn add(
        &mut self,
        job: &Job,
        done: Result<Done, String>,
        args: &Convert,
        terminal: &Terminal,
    ) -> io::Result<()> {
        match done {
            Ok(Done::Converted { from, notes }) => {
                self.converted += 1;
                for note in notes {
                    terminal.warning(format_args!("{}: {note}", job.input.display()));
                }
                if args.dry_run {
                    let (input, output) = (job.input.display(), job.output.display());
                    let to = name(args.to);
                    let line = format!("{input} -> {output} ({from} to {to})");
                    terminal.write(format!("{}\n", visible(&line)).as_bytes())?;
                }
            }
            Ok(Done::Before) => self.before += 1,
            Ok(Done::NoDatabase) => self.no_database += 1,
            Err(error) => {
                self.failed += 1;
                tell(&job.input, error, terminal);
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} converted", self.converted)?;
        for (count, what) in [
            (self.before, "converted before"),
            (self.no_database, "no database"),
            (self.failed, "failed"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        writeln!(f)
    }
}

/// Converts a file, unless that is not needed.
fn work(job: &Job, args: &Convert) -> Result<Done, String> {
    let told = |error: io::Error| error.to_string();
    let bytes = super::read(&job.input).map_err(told)?;
    let before = std::fs::metadata(&job.input).map_err(told)?;
    if !job.is_named && !is_database(&bytes) {
        return Ok(Done::NoDatabase);
    }
    let told = |error: kymo_rrd::fault::Error| error.to_string();
    let whole = Source::complete(&bytes).map_err(told)?;
    let source = Source::open(&whole, args.from).map_err(told)?;
    let is_target = is_of(&source.form, args.to);
    if args.in_place && is_target && has_nan_of(&source.form, args.to) {
        return Ok(Done::Before);
    }
    if args.in_place
        && let Some(doubt) = source.form.doubt()
    {
        return Err(format!("{doubt}; --from tells which it is"));
    }
    let conversion = Conversion::new(&source, args.to).map_err(|error| error.to_string())?;
    let is_done = match args.in_place {
        true => is_target && conversion.is(&bytes),
        false => args.output_dir.is_some() && is_converted(&job.output, &before, &conversion),
    };
    if is_done {
        return Ok(Done::Before);
    }
    if !args.dry_run {
        write(job, &before, &conversion, args)
            .map_err(|error| format!("writing `{}`: {error}", job.output.display()))?;
    }
    Ok(Done::Converted {
        from: match &source.form {
            Form::Native(detection) => detection.machine.name().to_owned(),
            Form::Portable => "portable".to_owned(),
            Form::Rrd4j { .. } => "RRD4J".to_owned(),
            Form::Xml => "XML".to_owned(),
        },
        notes: conversion.notes,
    })
}

/// Writes a converted file.
fn write(
    job: &Job,
    before: &Metadata,
    conversion: &Conversion<'_>,
    args: &Convert,
) -> io::Result<()> {
    if let Some(directory) = job.output.parent()
        && args.output_dir.is_some()
    {
        std::fs::create_dir_all(directory)?;
    }
    let how = Replace {
        like: Some(&job.input),
        sync: !args.no_sync,
        ..Replace::NEW
    };
    let attempt = |how| {
        replace(&job.output, how, |file: &mut File| {
            conversion.write_to(file)?;
            // The last moment to see that what was read is not what there is.
            let now = std::fs::metadata(&job.input)?;
            if now.len() != before.len() || now.modified()? != before.modified()? {
                return Err(io::Error::other("the input changed while it was converted"));
            }
            Ok(())
        })
    };
    match attempt(how) {
        // Only a privileged user can give files away; a copy then belongs to whoever makes it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !args.in_place => {
            attempt(Replace {
                owner: false,
                ..how
            })
        }
        result => result,
    }
}

/// Whether the output is there: it has the time of change of its input, and every byte is what it
/// would be. Times alone do not tell: those of other inputs may be the same.
fn is_converted(output: &Path, input: &Metadata, conversion: &Conversion<'_>) -> bool {
    let modified = |metadata: &Metadata| metadata.modified().ok();
    let alike = std::fs::metadata(output).is_ok_and(|output| {
        let same_time = modified(&output) == modified(input);
        output.is_file() && same_time && output.len() == conversion.length()
    });
    alike && Bytes::open(output, Access::Sequential).is_ok_and(|bytes| conversion.is(&bytes))
}

/// Whether the first NaN in a file of the target's layout is the target's.
fn has_nan_of(form: &Form, to: Target) -> bool {
    match (form, to) {
        (Form::Native(detection), Target::Native(machine)) => {
            detection.machine.file_nan() == machine.file_nan()
        }
        _ => true,
    }
}

/// Whether a file of some form is one of the target, but for its NaNs.
fn is_of(form: &Form, to: Target) -> bool {
    match (form, to) {
        (Form::Native(detection), Target::Native(machine)) => {
            detection.machine.same_layout(machine)
        }
        (Form::Portable, Target::Portable) => true,
        _ => false,
    }
}

/// The name of a target.
fn name(to: Target) -> &'static str {
    match to {
        Target::Portable => "portable",
        Target::Native(machine) => machine.name(),
    }
}
