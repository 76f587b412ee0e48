//! Databases that are made up: what is written is read, and nothing that is damaged harms.

mod database;
mod modify;
mod updates;

use database::Made;
use kymo_machine::Machine;
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::structs::SLOT;
use kymo_rrd::file::native::{Confidence, File, Header, write};
use kymo_rrd::{Form, Rows, Source, Value, file::check};
use proptest::prelude::*;

fn machines() -> impl Strategy<Value = &'static Machine> {
    prop::sample::select(Machine::all().iter().collect::<Vec<_>>())
}

fn values(rows: &Rows<'_>) -> Vec<Vec<Value>> {
    (0..rows.archives())
        .map(|archive| {
            let rows = rows.iter(archive);
            rows.flat_map(|row| row.values().collect::<Vec<_>>())
                .collect()
        })
        .collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(made in database::made(), machine in machines()) {
        let bytes = write(&made.database, &made.rows(), machine).unwrap();
        let file = File::open(&bytes, Some(machine)).unwrap();
        prop_assert!(file.header.findings.is_empty(), "{:?}", file.header.findings);
        prop_assert_eq!(&file.header.database, &made.database);
        prop_assert_eq!(values(&file.rows), values(&made.rows()));
        // However the rows lay.
        let other = write(&made.database, &made.rows_by_source(), machine).unwrap();
        prop_assert!(other == bytes);
    }

    #[test]
    fn the_machine_is_found(made in database::made(), machine in machines(), trailing: bool) {
        let mut bytes = write(&made.database, &made.rows(), machine).unwrap();
        if trailing {
            bytes.extend(vec![0; machine.time().bytes()]);
        }
        let source = Source::open(&bytes, None).unwrap();
        prop_assert_eq!(&source.database, &made.database);
        let Form::Native(detection) = &source.form else {
            panic!("a native file");
        };
        prop_assert!(detection.alike.contains(&machine));
        if let Confidence::Likely { alternative } = detection.confidence {
            // Rows of zeros may lie where another machine has them that is as wide but for its times.
            prop_assert_ne!(alternative.time(), machine.time());
            prop_assert!(Source::open(&bytes, Some(alternative)).is_ok());
        }
    }

    #[test]
    fn every_pair_converts_there_and_back(
        made in database::made(),
        one in machines(),
        other in machines(),
    ) {
        let bytes = write(&made.database, &made.rows(), one).unwrap();
        let source = Source::open(&bytes, Some(one)).unwrap();
        let there = convert(&source, Target::Native(other)).unwrap().bytes;
        let there = Source::open(&there, Some(other)).unwrap();
        let back = convert(&there, Target::Native(one)).unwrap().bytes;
        prop_assert!(back == bytes);
    }

    #[test]
    fn damaged_bytes_do_no_harm(
        made in database::made(),
        machine in machines(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = write(&made.database, &made.rows(), machine).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        any_bytes(&bytes, machine);
    }

    #[test]
    fn short_files_keep_what_they_have(
        made in database::made(),
        machine in machines(),
        missing in 1..2000usize,
    ) {
        let bytes = write(&made.database, &made.rows(), machine).unwrap();
        let header = Header::examine(&bytes, Some(machine)).unwrap();
        let kept = bytes.len().saturating_sub(missing).max(header.layout.header_end());
        prop_assume!(kept < bytes.len());
        let error = File::open(&bytes[..kept], Some(machine)).err().unwrap();
        prop_assert_eq!(error.field, "values");
        let repaired = check::repair(&bytes[..kept], Some(machine));
        if let Err(error) = &repaired {
            // Short by what times are wider, and of an early time: whole as another machine's.
            let cause = error.cause.as_deref().unwrap_or_default();
            prop_assert!(cause.contains("it is whole as a file of"), "{}", error);
            return Ok(());
        }
        let repaired = repaired.unwrap();
        prop_assert_eq!(repaired.done.len(), 1);
        prop_assert_eq!(repaired.bytes.len(), bytes.len());
        let whole = (kept - header.layout.header_end()) / SLOT * SLOT + header.layout.header_end();
        prop_assert!(repaired.bytes[..whole] == bytes[..whole]);
        let unknown = machine.double_to_bytes(machine.file_nan());
        prop_assert!(repaired.bytes[whole..].chunks(SLOT).all(|value| value == unknown));
    }
}

/// What can be done with any bytes. A repaired file is whole, and repairing it does nothing.
fn any_bytes(bytes: &[u8], machine: &'static Machine) {
    for reported in [None, Some(machine)] {
        let report = check::check(bytes, reported, Some(0));
        match Source::open(bytes, reported) {
            Ok(source) => {
                assert!(!report.is_damaged(), "{:?}", report.findings);
                let _ = convert(&source, Target::Native(machine));
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(report.is_damaged());
            }
        }
        if let Ok(repaired) = check::repair(bytes, reported) {
            let again = check::repair(&repaired.bytes, Some(repaired.machine)).unwrap();
            assert!(again.bytes == repaired.bytes);
            assert_eq!(again.done, [""; 0]);
        }
    }
}

/// Every integer of a header, one after the other, is one that cannot be.
#[test]
fn impossible_integers_are_refused_or_reported() {
    let made = database::example();
    for name in ["x86_64", "m68k"] {
        let machine = Machine::find(name).unwrap();
        let whole = write(&made.database, &made.rows(), machine).unwrap();
        let header = Header::examine(&whole, Some(machine)).unwrap();
        for at in (0..header.layout.header_end()).step_by(2) {
            for width in [2, 4, 8] {
                for byte in [0x00, 0x7f, 0xff] {
                    let mut bytes = whole.clone();
                    let end = (at + width).min(bytes.len());
                    bytes[at..end].fill(byte);
                    any_bytes(&bytes, machine);
                }
            }
        }
    }
}

#[test]
fn every_prefix_is_refused() {
    let made = database::example();
    for name in ["x86_64", "m68k"] {
        let machine = Machine::find(name).unwrap();
        let whole = write(&made.database, &made.rows(), machine).unwrap();
        for length in 0..whole.len() {
            any_bytes(&whole[..length], machine);
            assert!(Source::open(&whole[..length], None).is_err(), "{length}");
        }
    }
}

/// A current row that cannot be is found again by the values of the last update.
#[test]
fn current_rows_are_found_again() {
    let made = database::example();
    let machine = Machine::find("sparc").unwrap();
    let whole = write(&made.database, &made.rows(), machine).unwrap();
    let layout = Header::examine(&whole, None).unwrap().layout;

    let mut damaged = whole.clone();
    let pointer = layout.pointer(0);
    damaged[pointer..pointer + 4].fill(0xee);
    let error = File::open(&damaged, None).err().unwrap().to_string();
    assert!(error.contains("current row of archive 0"), "{error}");
    let repaired = check::repair(&damaged, None).unwrap();
    assert!(
        repaired.done[0].contains("the only row"),
        "{:?}",
        repaired.done
    );
    assert!(repaired.bytes == whole);

    // Where the values of the last update are gone as well, no row is known to be the newest.
    let state = layout.archive_state(0, 0);
    damaged[state..state + 80].fill(0);
    let repaired = check::repair(&damaged, None).unwrap();
    assert!(
        repaired.done[0].contains("all become unknown"),
        "{:?}",
        repaired.done
    );
    let file = File::open(&repaired.bytes, None).unwrap();
    assert!(values(&file.rows)[0].iter().all(|value| value.is_unknown()));
    assert_eq!(values(&file.rows)[1], values(&made.rows())[1]);
}

/// If a layout fits only in part, the error is a different one.
#[test]
fn files_that_end_in_their_header_have_been_cut_off() {
    let made = Made::filled(database::example().database, |row| row as f64);
    for machine in Machine::all() {
        let whole = write(&made.database, &made.rows(), machine).unwrap();
        let header = Header::examine(&whole, None).unwrap().layout.header_end();
        for length in 40..header {
            let error = match Header::examine(&whole[..length], None) {
                Err(error) => error.to_string(),
                // Another machine's header may be shorter.
                Ok(header) => header.findings.damage().unwrap().to_string(),
            };
            let machine = machine.name();
            assert!(error.contains("cut off"), "{machine}, {length}: {error}");
        }
    }
}

#[test]
fn checks_find_lost_pages_and_torn_updates() {
    let Made { mut database, .. } = database::example();
    database.archives.truncate(1);
    database.state.archives.truncate(1);
    database.archives[0].rows = 2000;
    let made = Made::filled(database, |row| 10.0 + row as f64);
    let machine = Machine::find("x86_64").unwrap();
    let whole = write(&made.database, &made.rows(), machine).unwrap();
    let found = |bytes: &[u8]| -> Vec<String> {
        let report = check::check(bytes, None, None);
        report.findings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(found(&whole), [""; 0]);

    let mut lost = whole.clone();
    lost[8192..12288].fill(0);
    let messages = found(&lost);
    assert!(
        messages
            .iter()
            .any(|m| m.contains("offset 8192") && m.contains("4096 zeros"))
    );

    let mut torn = whole.clone();
    let layout = Header::examine(&whole, None).unwrap().layout;
    torn[layout.pointer(0)] ^= 1;
    let messages = found(&torn);
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].contains("may have been cut off"),
        "{messages:?}"
    );
}
