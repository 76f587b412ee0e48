//! Round-robin databases.

use kymo_machine::Machine;
use kymo_rrd::convert::{Target, convert};
use kymo_rrd::native::File;
use kymo_rrd::{Form, Source, check};

/// A database of any form, as it is found to be and as some machine would have written it,
/// which the length of the input tells: what is opened is converted without loss, what is
/// damaged is told, and what is repaired is whole.
pub(crate) fn database(data: &[u8]) {
    let machines = Machine::all();
    let machine = &machines[data.len() % machines.len()];
    for told in [None, Some(machine)] {
        let report = check::check(data, told, Some(0));
        for finding in &report.findings {
            assert!(!finding.to_string().is_empty());
        }
        if let Ok(whole) = Source::complete(data) {
            match Source::open(&whole, told) {
                Ok(source) => {
                    assert!(!report.is_damaged(), "what is damaged is not opened");
                    converted(&source, machine);
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        if let Ok(repaired) = check::repair(data, told) {
            let again = check::repair(&repaired.bytes, Some(repaired.machine));
            let again = again.expect("what was repaired is whole");
            assert!(again.done.is_empty() && again.bytes == repaired.bytes);
        }
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
