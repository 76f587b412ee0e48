//! Round-robin databases.

use kymo_machine::Machine;
use kymo_rrd::engine::{Measurement, Rrd, Sample};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::File;
use kymo_rrd::text::xml::{self, DumpOptions, Numbers, RestoreOptions, Utc, restore};
use kymo_rrd::{Form, Source, Time, file::check, file::whisper};

/// A database of any form, as it is found to be and as some machine would have written it,
/// which the length of the input determines: what is opened is converted without loss, what is
/// damaged is reported, and what is repaired is whole.
pub(crate) fn database(data: &[u8]) {
    let machines = Machine::all();
    let machine = &machines[data.len() % machines.len()];
    for reported in [None, Some(machine)] {
        let report = check::check(data, reported, Some(0));
        for finding in &report.findings {
            assert!(!finding.to_string().is_empty());
        }
        if let Ok(whole) = Source::complete(data) {
            match Source::open(&whole, reported) {
                Ok(source) => {
                    assert!(!report.is_damaged(), "what is damaged is not opened");
                    converted(&source, machine);
                    updated(&whole, &source);
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        if let Ok(repaired) = check::repair(data, reported) {
            let again = check::repair(&repaired.bytes, Some(repaired.machine));
            let again = again.expect("what was repaired is whole");
            assert!(again.done.is_empty() && again.bytes == repaired.bytes);
        }
    }
}

/// A file of Whisper: what is read is a database that a file can hold, with the same values.
pub(crate) fn whisper(data: &[u8]) {
    let file = match whisper::read(data, None) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let source = file.changed.source(Form::Xml, Vec::new());
    assert!(source.database.check_shape().is_ok());
    let points: u64 = source
        .database
        .archives
        .iter()
        .map(|archive| archive.rows)
        .sum();
    assert!(points * 12 <= data.len() as u64, "points are in the file");
    if let Ok(written) = convert(&source, Target::Portable) {
        let again = Source::open(&written.bytes, None).expect("what was written can be read");
        for archive in 0..source.database.archives.len() {
            for row in 0..source.database.archives[archive].rows {
                let value = |source: &Source<'_>| source.rows.value(archive, row, 0);
                assert_eq!(value(&source), value(&again), "values stay");
            }
        }
    }
}

/// A dump: what is restored comes back from an exact dump as it is, and from a dump as rrdtool
/// writes it in the same shape; what no machine can hold is an error.
pub(crate) fn dump(data: &[u8]) {
    let restored = match restore(data, &RestoreOptions { range_check: false }) {
        Ok(restored) => restored,
        Err(error) => return assert!(error.line > 0 && error.column > 0),
    };
    let database = &restored.database;
    assert!(database.check_shape().is_ok());
    for numbers in [Numbers::Exact, Numbers::Long64, Numbers::Long32] {
        let options = DumpOptions {
            numbers,
            ..DumpOptions::default()
        };
        let mut text = Vec::new();
        xml::dump(database, &restored.rows(), &Utc, &options, &mut text).expect("memory takes all");
        let again = restore(&text, &RestoreOptions::default()).expect("what was dumped is a dump");
        if numbers == Numbers::Exact {
            assert!(again.database == *database, "nothing is lost");
            for archive in 0..database.archives.len() {
                let (ours, theirs) = (restored.rows(), again.rows());
                let mut rows = ours.iter(archive).zip(theirs.iter(archive));
                assert!(rows.all(|(a, b)| a.values().eq(b.values())));
            }
        }
    }
    let machines = Machine::all();
    let machine = &machines[data.len() % machines.len()];
    for target in [Target::Portable, Target::Native(machine)] {
        let _ = convert(&restored.source(), target);
    }
}

/// Converts to a machine: what comes out says the same.
fn converted(source: &Source<'_>, machine: &'static Machine) {
    let _ = convert(source, Target::Portable);
    let Ok(converted) = convert(source, Target::Native(machine)) else {
        return;
    };
    let file = File::open(&converted.bytes, Some(machine)).expect("a whole file");
    for archive in 0..source.rows.archives() {
        let (ours, theirs) = (source.rows.iter(archive), file.rows.iter(archive));
        assert!(ours.zip(theirs).all(|(a, b)| a.values().eq(b.values())));
    }
    if let Form::Native(_) = source.form
        && source.database.version >= 3
    {
        assert!(file.header.database == source.database, "nothing is lost");
    }
}

/// Updates a database, in steps of which some end several points: what is left can be opened.
fn updated(data: &[u8], source: &Source<'_>) {
    let machine = match &source.form {
        Form::Native(detection) => Some(detection.machine),
        _ => None,
    };
    let Ok(mut rrd) = Rrd::open_as(data.to_vec(), machine) else {
        return;
    };
    let (last, step) = (
        source.database.state.last_update.seconds(),
        source.database.step,
    );
    let values = vec![Measurement::Text(b"7"); source.database.sources.len()];
    for steps in [0, 1, 2, 3, 100, 2] {
        let Some(time) = i64::try_from(step)
            .ok()
            .and_then(|step| step.checked_mul(steps)?.checked_add(last)?.checked_add(1))
        else {
            return;
        };
        for measured in 0..=values.len() {
            let time = Time::from_seconds(time);
            let values = &values[..measured];
            if let Err(error) = rrd.update(&Sample { time, values }) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
    let file = rrd.into_storage();
    Source::open(&file, machine).expect("updates leave a whole file");
}
