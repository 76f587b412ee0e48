//! Round-robin databases as XML.

use kymo_machine::Machine;
use kymo_rrd::convert::{Target, convert};
use kymo_rrd::xml::{DumpOptions, Numbers, RestoreOptions, Restored, Utc, dump, restore};

/// A dump: an error has a place, and what is read comes back from an exact dump as it is.
pub fn rrd_xml(data: &[u8]) {
    let options = RestoreOptions::default();
    let restored = match restore(data, &options) {
        Ok(restored) => restored,
        Err(error) => {
            assert!(error.line > 0 && error.column > 0 && !error.message.is_empty());
            return;
        }
    };
    let exact = dumped(&restored, Numbers::Exact);
    let again = restore(&exact, &options).expect("what was dumped can be read");
    assert!(again.database == restored.database, "nothing is lost");
    for archive in 0..restored.rows().archives() {
        let (ours, theirs) = (restored.rows(), again.rows());
        let same = ours.iter(archive).zip(theirs.iter(archive));
        assert!(same.into_iter().all(|(a, b)| a.values().eq(b.values())));
    }
    dumped(&restored, Numbers::Long64);
    let machines = Machine::all();
    let machine = &machines[data.len() % machines.len()];
    for target in [Target::Portable, Target::Native(machine)] {
        let _ = convert(&restored.source(), target);
    }
}

fn dumped(restored: &Restored, numbers: Numbers) -> Vec<u8> {
    let options = DumpOptions {
        numbers,
        ..DumpOptions::default()
    };
    let mut text = Vec::new();
    let rows = restored.rows();
    dump(&restored.database, &rows, &Utc, &options, &mut text).expect("memory takes all");
    text
}
