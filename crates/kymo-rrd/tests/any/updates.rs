//! Updates of databases that are made up.

use kymo_machine::Machine;
use kymo_rrd::engine::{Measurement, Rrd, Sample, UpdateError, UpdateOptions};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::write;
use kymo_rrd::model::ArchiveKind;
use kymo_rrd::{Database, Source, Time, Value};
use proptest::prelude::*;

use super::database::{self, Made};
use super::{machines, values};

/// Seconds and microseconds after the update before, and a reading for all data sources.
type Update = (i64, u32, String);

fn updates() -> impl Strategy<Value = Vec<Update>> {
    let reading = "[0-9]{1,12}|-[0-9]{1,3}|[0-9]{1,3}\\.[0-9]{1,5}|U|x";
    prop::collection::vec((0..400i64, 0..1_000_000u32, reading), 1..30)
}

/// A database that can be updated: it was not last updated in 2038, its steps are short.
fn updatable() -> impl Strategy<Value = Made> {
    database::made().prop_map(|mut made| {
        made.database.step = 1 + made.database.step % 50;
        let (seconds, micros) = made.database.state.last_update.to_micros();
        let last_update = Time::from_micros(seconds / 2, micros).unwrap();
        made.database.state.last_update = last_update;
        for archive in &mut made.database.archives {
            archive.points_per_row = match archive.kind {
                ArchiveKind::Consolidated { .. } => 1 + archive.points_per_row % 12,
                _ => 1,
            };
        }
        made
    })
}

/// What became of updates, and of the database.
type Outcome = (Vec<Option<String>>, Database, Vec<Vec<Value>>);

/// Updates a file that is reopened after every `opened` updates. `None` if no update can
/// follow its definitions.
fn updated(
    mut file: Vec<u8>,
    machine: &'static Machine,
    updates: &[Update],
    opened: usize,
) -> Option<Outcome> {
    let mut outcomes = Vec::new();
    for updates in updates.chunks(opened) {
        let mut rrd = Rrd::open_as(file, Some(machine)).ok()?;
        for (seconds, micros, reading) in updates {
            let last = rrd.last_update().seconds();
            let reading = Measurement::Text(reading.as_bytes());
            let kinds = rrd.database().sources.iter();
            let measured = kinds.filter(|source| source.kind.name() != "COMPUTE");
            let sample = Sample {
                time: Time::from_micros(last + seconds, *micros).unwrap(),
                values: &vec![reading; measured.count()],
            };
            let outcome = rrd.update_all(&[sample], &UpdateOptions::default());
            let refused = outcome.err().map(|(_, error)| {
                assert!(!matches!(error, UpdateError::Store(_)), "{error}");
                error.to_string()
            });
            outcomes.push(refused);
        }
        file = rrd.into_storage();
    }
    let source = Source::open(&file, Some(machine)).unwrap();
    Some((outcomes, source.database.clone(), values(&source.rows)))
}

proptest! {
    #[test]
    fn updates_do_the_same_however_often_a_file_is_opened(
        made in updatable(),
        machine in machines(),
        updates in updates(),
        opened in 1..5usize,
    ) {
        let file = write(&made.database, &made.rows(), machine).unwrap();
        let whole = updated(file.clone(), machine, &updates, updates.len());
        prop_assert_eq!(updated(file, machine, &updates, opened), whole);
    }

    #[test]
    fn updates_do_the_same_in_every_form(
        made in updatable(),
        machine in machines(),
        updates in updates(),
    ) {
        // What is refused for a reading leaves other readings in native files.
        let updates: Vec<Update> = updates
            .into_iter()
            .filter(|(.., reading)| reading.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        prop_assume!(!updates.is_empty());
        let amd64 = Machine::find("amd64").unwrap();
        let native = write(&made.database, &made.rows(), amd64).unwrap();
        let expected = updated(native.clone(), amd64, &updates, updates.len());
        let source = Source::open(&native, Some(amd64)).unwrap();
        for target in [Target::Native(machine), Target::Portable] {
            let file = convert(&source, target).unwrap().bytes;
            prop_assert_eq!(&updated(file, machine, &updates, updates.len()), &expected);
        }
    }
}
