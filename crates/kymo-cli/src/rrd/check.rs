//! `kymo rrd check` and `repair`.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_rrd::check::{self, Report};
use kymo_rrd::fault::Finding;
use kymo_rrd::{Source, portable, rrd4j};
use kymo_text::{Line, visible};

use super::{open, tell, write_new};
use crate::args::rrd::{Check, Repair};
use crate::terminal::{Failure, Outcome, Terminal};

/// Judges files.
pub(super) fn check(args: &Check, terminal: &Terminal) -> Result<Outcome, Failure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|now| i64::try_from(now.as_secs()).ok());
    let mut outcome = Outcome::Good;
    for path in &args.files {
        let Some(bytes) = open(path, terminal) else {
            outcome = Outcome::Damage;
            continue;
        };
        let report = check::check(&bytes, args.machine, now);
        if report.is_damaged() {
            outcome = Outcome::Damage;
        }
        let (form, name) = form(&bytes, &report);
        let mut out = Line::new();
        match args.json {
            true => json(path, name, &report, &mut out),
            false => out.push(text(path, &form, &report).as_bytes()),
        }
        terminal.write(out.as_bytes())?;
    }
    Ok(outcome)
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
fn json(path: &Path, form: &str, report: &Report, out: &mut Line) {
    out.push(b"{\"file\":");
    out.json_string(path.as_os_str().as_encoded_bytes());
    out.push(b",\"damaged\":");
    out.push(if report.is_damaged() {
        b"true"
    } else {
        b"false"
    });
    out.push(b",\"form\":");
    out.json_string(form.as_bytes());
    out.push(b",\"machine\":");
    match &report.detection {
        Some(detection) => out.json_string(detection.machine.name().as_bytes()),
        None => out.push(b"null"),
    }
    out.push(b",\"findings\":[");
    for (index, finding) in report.findings.iter().enumerate() {
        if index > 0 {
            out.push_byte(b',');
        }
        json_finding(finding, out);
    }
    out.push(b"],\"more_findings\":");
    out.decimal(report.findings.not_kept());
    out.push(b"}\n");
}

fn json_finding(finding: &Finding, out: &mut Line) {
    let error = &finding.error;
    out.push(b"{\"severity\":");
    out.json_string(finding.severity.as_str().as_bytes());
    out.push(b",\"field\":");
    out.json_string(error.field.as_bytes());
    out.push(b",\"offset\":");
    match error.offset {
        Some(offset) => out.decimal(offset),
        None => out.push(b"null"),
    }
    for (key, text) in [("found", &error.found), ("expected", &error.expected)] {
        out.push(format!(",\"{key}\":").as_bytes());
        out.json_string(text.as_bytes());
    }
    out.push(b",\"cause\":");
    match &error.cause {
        Some(cause) => out.json_string(cause.as_bytes()),
        None => out.push(b"null"),
    }
    out.push_byte(b'}');
}

/// Writes what can be kept of a file.
pub(super) fn repair(args: &Repair, terminal: &Terminal) -> Result<Outcome, Failure> {
    Ok(match repaired(args, terminal) {
        Some(()) => Outcome::Good,
        None => Outcome::Damage,
    })
}

/// Writes what can be kept of a file, or tells why not.
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
    .map_err(|error| tell(&args.file, error, terminal))
    .ok()?;
    write_new(&args.output, args.force, |file| file.write_all(&whole))
        .map_err(|error| tell(&args.output, error, terminal))
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
