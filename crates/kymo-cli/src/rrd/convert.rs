//! `kymo rrd convert`.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use kymo_io::{Access, Bytes, Compression, Replace, file_id, in_order, is_same_file, replace};
use kymo_rrd::file::convert::{Conversion, Target};
use kymo_rrd::{Form, Source, is_database};
use kymo_text::visible;

use super::plan::{Job, Plan};
use super::report;
use crate::args::rrd::Convert;
use crate::links::{count_links, split};
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
    /// It is another name of a file that is converted, and now leads to the new one, or would.
    Linked,
    /// It is not a database.
    NoDatabase,
    /// It is another name of a file, and waits for what becomes of that.
    Waits,
}

/// Converts files.
pub(super) fn run(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    let Plan { jobs, failed } = Plan::new(args, terminal)?;
    let mut tally = Tally {
        failed,
        ..Tally::default()
    };
    if !args.dry_run {
        terminal.show_progress(jobs.iter().map(|job| job.bytes).sum());
    }
    let work = |job: &Job| {
        let done = match job.first() {
            Some(_) => Ok(Done::Waits),
            None => work(job, args),
        };
        terminal.advance(job.bytes);
        done
    };
    in_order(&jobs, args.threads.count(), work, |number, done| {
        let job = &jobs[number];
        let done = match (done, job.first()) {
            (Ok(Done::Waits), Some(first)) => link(job, &jobs[first], tally.outputs[first], args),
            (done, _) => done,
        };
        tally.add(job, done, args, terminal)
    })?;
    terminal.end_progress();
    // What became of a single file is known without.
    let is_known = jobs.len() == 1 && tally.converted + tally.failed == 1;
    if !args.dry_run && !is_known {
        terminal.report(tally.to_string().as_bytes());
    }
    Ok(match tally.failed {
        0 => Outcome::Good,
        _ => Outcome::Damage,
    })
}

/// What the output of a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// No file of the target.
    Other,
    /// One that was there before.
    Before,
    /// A new one.
    New,
}

/// How many files there were of each kind.
#[derive(Default)]
struct Tally {
    /// What each output is now.
    outputs: Vec<Output>,
    converted: usize,
    linked: usize,
    before: usize,
    no_database: usize,
    failed: usize,
}

impl Tally {
    /// Adds a file, and reports what became of it.
    fn add(
        &mut self,
        job: &Job,
        done: Result<Done, String>,
        args: &Convert,
        terminal: &Terminal,
    ) -> io::Result<()> {
        self.outputs.push(match done {
            Ok(Done::Converted { .. } | Done::Linked) => Output::New,
            Ok(Done::Before) => Output::Before,
            _ => Output::Other,
        });
        let (input, output) = (job.input.display(), job.output.display());
        match done {
            Ok(Done::Converted { from, notes }) => {
                self.converted += 1;
                for note in notes {
                    terminal.warning(format_args!("{input}: {note}"));
                }
                if args.dry_run {
                    let to = name(args.to);
                    let line = format!("{input} -> {output} ({from} to {to})");
                    terminal.write(format!("{}\n", visible(&line)).as_bytes())?;
                }
            }
            Ok(Done::Linked) => {
                self.linked += 1;
                if args.dry_run {
                    let line = format!("{input} -> {output} (hard link)");
                    terminal.write(format!("{}\n", visible(&line)).as_bytes())?;
                }
            }
            Ok(Done::Before) => self.before += 1,
            Ok(Done::NoDatabase | Done::Waits) => self.no_database += 1,
            Err(error) => {
                self.failed += 1;
                report(&job.input, error, terminal);
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} converted", self.converted)?;
        for (count, what) in [
            (self.linked, "linked"),
            (self.before, "converted before"),
            (self.no_database, "not a database"),
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
    let reported = |error: io::Error| error.to_string();
    let bytes = super::read(&job.input).map_err(reported)?;
    let before = std::fs::metadata(&job.input).map_err(reported)?;
    if Compression::detect(&bytes).is_some() {
        if !job.is_meant {
            return Ok(Done::NoDatabase);
        }
        if args.in_place {
            return Err("a compressed file cannot be replaced: decompress it first".to_owned());
        }
    }
    let bytes = super::whole(bytes).map_err(reported)?;
    if !job.is_meant && !is_database(&bytes) {
        return Ok(Done::NoDatabase);
    }
    let reported = |error: kymo_rrd::fault::Error| error.to_string();
    let whole = Source::complete(&bytes).map_err(reported)?;
    let source = Source::open(&whole, args.from).map_err(reported)?;
    let is_target = is_of(&source.form, args.to);
    if args.in_place && is_target && has_nan_of(&source.form, args.to) {
        return Ok(Done::Before);
    }
    if args.in_place
        && let Some(doubt) = source.form.doubt()
    {
        return Err(format!("{doubt}; --from says which it is"));
    }
    let conversion = Conversion::new(&source, args.to).map_err(|error| error.to_string())?;
    let is_done = match args.in_place {
        true => is_target && conversion.is(&bytes),
        false => args.output_dir.is_some() && is_converted(&job.output, &before, &conversion),
    };
    if is_done {
        return Ok(Done::Before);
    }
    let split = split(&job.output);
    if !args.dry_run {
        write(job, &before, &conversion, args)
            .map_err(|error| format!("writing `{}`: {error}", job.output.display()))?;
    }
    let mut notes = conversion.notes;
    notes.extend(split_links(job, split, args));
    Ok(Done::Converted {
        from: match &source.form {
            Form::Native(detection) => detection.machine.name().to_owned(),
            Form::Portable => "portable".to_owned(),
            Form::Rrd4j { .. } => "RRD4J".to_owned(),
            Form::Xml => "XML".to_owned(),
        },
        notes,
    })
}

/// The warning about hard links that are not kept.
fn split_links(job: &Job, of_output: Option<String>, args: &Convert) -> Option<String> {
    if args.output.is_some() {
        return of_output;
    }
    let names = job.names.as_ref().filter(|names| names.first.is_none())?;
    let links = count_links(names.outside)?;
    Some(match args.in_place {
        true => format!("{links} outside of the inputs will still have the old file"),
        false => format!("{links} outside of the inputs will not have the new file"),
    })
}

/// Gives the new file of another job a further name, or converts the file on its own if that is not possible.
fn link(job: &Job, first: &Job, output: Output, args: &Convert) -> Result<Done, String> {
    let is_unchanged = || {
        let [input, made] = [&job.input, &first.output].map(std::fs::metadata);
        let (Ok(input), Ok(made), Some(names)) = (input, made, &job.names) else {
            return false;
        };
        let same_time = matches!((input.modified(), made.modified()), (Ok(a), Ok(b)) if a == b);
        file_id(&input) == Some(names.id) && same_time
    };
    if output == Output::Other {
        return work(job, args);
    }
    if args.dry_run {
        let is_linked = output == Output::Before && is_same_file(&job.output, &first.output);
        return Ok(match is_linked {
            true => Done::Before,
            false => Done::Linked,
        });
    }
    let linked = make_directory(job, args).and_then(|()| match is_unchanged() {
        true => kymo_io::link(&first.output, &job.output, !args.no_sync),
        false => Err(io::Error::other("it changed meanwhile")),
    });
    match linked {
        Ok(true) => Ok(Done::Linked),
        Ok(false) => Ok(Done::Before),
        Err(error) => {
            let mut done = work(job, args)?;
            if let Done::Converted { notes, .. } = &mut done {
                let first = first.output.display();
                notes.push(format!(
                    "cannot be a hard link to `{first}`: {}; it is a file of its own",
                    kymo_io::reason(&error)
                ));
            }
            Ok(done)
        }
    }
}

/// Makes the directory of an output where it mirrors that of the input.
fn make_directory(job: &Job, args: &Convert) -> io::Result<()> {
    match job.output.parent() {
        Some(directory) if args.output_dir.is_some() => std::fs::create_dir_all(directory),
        _ => Ok(()),
    }
}

/// Writes a converted file.
fn write(
    job: &Job,
    before: &Metadata,
    conversion: &Conversion<'_>,
    args: &Convert,
) -> io::Result<()> {
    make_directory(job, args)?;
    let how = Replace {
        like: Some(&job.input),
        sync: !args.no_sync,
        ..Replace::NEW
    };
    let attempt = |how| {
        replace(&job.output, how, |file: &mut File| {
            conversion.write_to(file)?;
            // The last chance to detect that the input has changed since it was read.
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
/// would be. Times alone are not enough: those of other inputs may be the same.
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
