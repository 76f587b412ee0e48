//! Checking the integrity of a file, and repairing what can be.

mod repair;
mod values;

use std::borrow::Cow;

use kymo_machine::Machine;

pub use repair::{Repaired, repair};

use crate::fault::{Error, Findings, Severity};
use crate::file::native::{Detection, Header};
use crate::{Database, Source, file::portable, file::rrd4j};

/// What was found in a file.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine, where it is a native file that can be read.
    pub detection: Option<Detection>,
    /// What the file says, as far as it can be read.
    pub database: Option<Database>,
    /// What is unusual or wrong.
    pub findings: Findings,
}

impl Report {
    /// Whether something is lost or wrong.
    pub fn is_damaged(&self) -> bool {
        self.findings.damage().is_some()
    }
}

/// Number of seconds that the last update may be ahead of now: clocks differ.
const CLOCKS_DIFFER: i64 = 86_400;

/// Judges a file: its sizes and counts, numbers that cannot be, values outside of their limits,
/// what a cut-off update or a lost page leaves. The machine of a native one is found where
/// none is specified. `now`, in seconds since 1970, is what the last update is compared with.
pub fn check(bytes: &[u8], machine: Option<&'static Machine>, now: Option<i64>) -> Report {
    let mut report = match examine(bytes, machine) {
        Ok(report) => report,
        Err(error) => {
            let mut findings = Findings::default();
            findings.add(Severity::Damage, || error);
            Report {
                detection: None,
                database: None,
                findings,
            }
        }
    };
    if let (Some(database), Some(now)) = (&report.database, now) {
        let last = database.state.last_update.seconds();
        if last > now.saturating_add(CLOCKS_DIFFER) {
            report.findings.add(Severity::Warning, || {
                Error::new(
                    "last update",
                    None,
                    last,
                    format_args!("a time before {now}"),
                )
                .because("updates with earlier times will be refused")
            });
        }
    }
    report
}

fn examine(bytes: &[u8], machine: Option<&'static Machine>) -> Result<Report, Error> {
    // Files of RRD4J have no such state as native ones that could be compared with the rows,
    // and portable ones prove it by checksums.
    if rrd4j::is_rrd4j(bytes) || portable::is_portable(bytes) {
        let whole = Source::complete(bytes)?;
        let source = Source::open(&whole, machine)?;
        let mut findings = source.findings;
        if matches!(whole, Cow::Owned(_)) {
            findings.add(Severity::Note, || {
                let (found, expected) = ("one that was cut off", "complete ones");
                Error::new("updates", None, found, expected)
                    .because("it is completed when the file is opened")
            });
        }
        values::within_limits(&source.database, &source.rows, &mut findings);
        return Ok(Report {
            detection: None,
            database: Some(source.database),
            findings,
        });
    }
    let Header {
        detection,
        database,
        layout,
        mut findings,
    } = Header::examine(bytes, machine)?;
    let header = Header {
        detection,
        database,
        layout,
        findings: Findings::default(),
    };
    if let Ok(rows) = header.rows(bytes) {
        values::within_limits(&header.database, &rows, &mut findings);
        values::newest_rows(&header.database, &rows, &mut findings);
        values::lost_pages(&header, bytes, &rows, &mut findings);
    }
    Ok(Report {
        detection: Some(header.detection),
        database: Some(header.database),
        findings,
    })
}
