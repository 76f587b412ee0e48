//! `kymo rrd check` and `repair`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_io::in_order;
use kymo_rrd::fault::Finding;
use kymo_rrd::file::check::{self, Report};
use kymo_rrd::{Source, file::portable, file::rrd4j, is_database};
use kymo_text::json::Writer;
use kymo_text::visible;

use super::files::{Searched, is_called_database};
use super::{open, read, report, report_unread, report_unwritten, whole, write_new};
use crate::args::rrd::{Check, Repair};
use crate::terminal::{Failure, Outcome, Terminal};

/// A file to judge.
struct Job {
    path: PathBuf,
    /// Its size.
    bytes: u64,
    /// Whether it is judged even if it does not begin as databases do.
    is_meant: bool,
}

/// What became of a file.
enum Done {
    /// It was judged.
    Judged {
        is_damaged: bool,
        /// What is printed.
        text: Vec<u8>,
    },
    /// It is not a database.
    NoDatabase,
}

/// How many files there were of each kind.
#[derive(Default)]
struct Tally {
    whole: usize,
    damaged: usize,
    no_database: usize,
    failed: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} whole", self.whole)?;
        for (count, what) in [
            (self.damaged, "damaged"),
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

/// Judges files, and those in directories.
pub(super) fn check(args: &Check, terminal: &Terminal) -> Result<Outcome, Failure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|now| i64::try_from(now.as_secs()).ok());
    let mut tally = Tally::default();
    let mut searched = Searched::default();
    let mut jobs = Vec::new();
    let mut is_search = false;
    let job = |path: PathBuf, is_meant| Job {
        bytes: std::fs::metadata(&path).map_or(0, |there| there.len()),
        path,
        is_meant,
    };
    for path in &args.paths {
        if !path.is_dir() {
            jobs.push(job(path.clone(), true));
            continue;
        }
        is_search = true;
        let (files, failed) = searched.files(path, terminal);
        tally.failed += failed;
        jobs.extend(files.into_iter().map(|path| {
            let is_meant = is_called_database(&path);
            job(path, is_meant)
        }));
    }
    terminal.begin_progress(jobs.iter().map(|job| job.bytes).sum());
    let work = |job: &Job| {
        let done = judge(job, args, now);
        terminal.advance(job.bytes);
        done
    };
    in_order(&jobs, args.threads.count(), work, |number, done| {
        match done {
            Ok(Done::Judged { is_damaged, text }) => {
                match is_damaged {
                    true => tally.damaged += 1,
                    false => tally.whole += 1,
                }
                terminal.write(&text)?;
            }
            Ok(Done::NoDatabase) => tally.no_database += 1,
            Err(error) => {
                tally.failed += 1;
                report_unread(&jobs[number].path, &error, terminal);
            }
        }
        Ok::<(), io::Error>(())
    })?;
    terminal.end_progress();
    // What there is of single files is known without.
    if is_search {
        terminal.report(tally.to_string().as_bytes());
    }
    Ok(match (tally.damaged, tally.failed) {
        (0, 0) => Outcome::Good,
        _ => Outcome::Damage,
    })
}

/// Judges a file.
fn judge(job: &Job, args: &Check, now: Option<i64>) -> io::Result<Done> {
    let bytes = whole(read(&job.path)?)?;
    if !job.is_meant && !is_database(&bytes) {
        return Ok(Done::NoDatabase);
    }
    let report = check::check(&bytes, args.machine, now);
    let (form, name) = form(&bytes, &report);
    let text = match args.json {
        true => json(&job.path, name, &report),
        false => text(&job.path, &form, &report).into_bytes(),
    };
    Ok(Done::Judged {
        is_damaged: report.is_damaged(),
        text,
    })
}

/// What a file is, for people and for scripts.
fn form(bytes: &[u8], report: &Report) -> (String, &'static str) {
    match &report.detection {
        Some(detection) => (format!("a file of {}", detection.machine.name()), "native"),
        None if portable::is_portable(bytes) => ("a portable file".to_owned(), "portable"),
        None if rrd4j::is_rrd4j(bytes) => ("a file of RRD4J".to_owned(), "rrd4j"),
        None => ("not known".to_owned(), "unknown"),
    }
}

/// A line with the verdict, and one for each finding.
fn text(path: &Path, form: &str, report: &Report) -> String {
    let path = path.display().to_string();
    let path = visible(&path);
    let verdict = if report.is_damaged() {
        "damaged"
    } else {
        "whole"
    };
    let mut text = format!("{path}: {verdict}, {form}\n");
    for finding in &report.findings {
        let finding = finding.to_string();
        text += &format!("  {}\n", visible(&finding));
    }
    if report.findings.not_kept() > 0 {
        text += &format!("  and {} more\n", report.findings.not_kept());
    }
    text
}

/// An object on a line.
fn json(path: &Path, form: &str, report: &Report) -> Vec<u8> {
    let mut json = Writer::default();
    json.begin_object();
    json.entry("file", path.as_os_str().as_encoded_bytes());
    json.entry("damaged", report.is_damaged());
    json.entry("form", form);
    let detection = report.detection.as_ref();
    json.entry("machine", detection.map(|found| found.machine.name()));
    json.begin_list("findings");
    for Finding { severity, error } in report.findings.iter() {
        json.begin_object();
        json.entry("severity", severity.as_str());
        json.entry("field", error.field.as_str());
        json.entry("offset", error.offset);
        json.entry("found", error.found.as_str());
        json.entry("expected", error.expected.as_str());
        json.entry("cause", error.cause.as_deref());
        json.end_object();
    }
    json.end_list();
    json.entry("more_findings", report.findings.not_kept());
    json.end_object();
    json.finish()
}

/// Writes what can be kept of a file.
pub(super) fn repair(args: &Repair, terminal: &Terminal) -> Result<Outcome, Failure> {
    Ok(match repaired(args, terminal) {
        Some(()) => Outcome::Good,
        None => Outcome::Damage,
    })
}

/// Writes what can be kept of a file, or reports why it cannot.
fn repaired(args: &Repair, terminal: &Terminal) -> Option<()> {
    let bytes = open(&args.file, terminal)?;
    let (whole, done) = if portable::is_portable(&bytes) {
        Source::complete(&bytes).map(|whole| {
            let done = match &whole {
                Cow::Owned(_) => {
                    vec!["the last update, which was cut off, is completed".to_owned()]
                }
                Cow::Borrowed(_) => Vec::new(),
            };
            (whole.into_owned(), done)
        })
    } else {
        check::repair(&bytes, args.machine).map(|repaired| (repaired.bytes, repaired.done))
    }
    .map_err(|error| report(&args.file, error, terminal))
    .ok()?;
    write_new(&args.output, args.force, terminal, |file| {
        file.write_all(&whole)
    })
    .map_err(|error| report_unwritten(&args.output, &error, terminal))
    .ok()?;
    let mut text = String::new();
    for done in &done {
        text += &format!("{}\n", visible(done));
    }
    if done.is_empty() {
        text += "there was nothing to repair\n";
    }
    terminal.write(text.as_bytes()).ok()
}
