//! Updates do what they are asked to, one after the other.

use proptest::prelude::*;

use super::made_up::{self, Chance, Picture};
use crate::Value;
use crate::file::portable::{self, Durability, Error, File};
use crate::model::ArchiveKind;

proptest! {
    #![proptest_config(super::cases(300))]

    /// Long rows of updates: rings go round many times, updates write more rows than there are,
    /// archives are written as a whole. What is in the file is what was written.
    #[test]
    fn a_file_holds_what_was_written(seed: u64) {
        let mut chance = Chance::new(seed);
        let (bytes, mut picture) = made_up::file(&mut chance);
        let mut file = File::open(bytes).unwrap();
        for number in 1..30 {
            let before = picture.clone();
            let mut update = file.begin().unwrap();
            made_up::change(&mut chance, &mut update, &mut picture);
            let archives = picture.database.archives.len();
            for archive in 0..archives {
                let values = update.values(archive).unwrap().unwrap();
                prop_assert_eq!(&values, &picture.values[archive]);
                let rows = picture.database.archives[archive].rows;
                let sources = picture.database.sources.len();
                for row in 0..rows {
                    let begin = row as usize * sources;
                    let values = update.row(archive, row).unwrap().unwrap();
                    prop_assert_eq!(&values, &picture.values[archive][begin..begin + sources]);
                }
                prop_assert!(update.row(archive, rows).unwrap().is_none());
            }
            prop_assert!(update.row(archives, 0).unwrap().is_none());
            let fits = update.fits();
            let durability = [Durability::Synced, Durability::Buffered][chance.below(2)];
            match update.commit(durability) {
                Ok(()) => prop_assert!(fits),
                Err(Error::JournalFull { needed, room }) => {
                    prop_assert!(!fits && needed > room);
                    picture = before;
                }
                Err(error) => panic!("{error}"),
            }
            prop_assert!(file.updates() <= number);
            prop_assert_eq!(&Picture::of_file(&file), &picture);
            prop_assert_eq!(&Picture::of(file.storage()).unwrap(), &picture);
            prop_assert!(!portable::read(file.storage()).unwrap().was_cut_off());
            if chance.one_in(4) {
                file = File::open(file.into_storage()).unwrap();
                prop_assert_eq!(&Picture::of_file(&file), &picture);
            }
        }
    }
}

/// A file of this seed that has an archive of this kind.
fn file_with(wanted: impl Fn(&ArchiveKind) -> bool) -> (File<Vec<u8>>, usize) {
    (0..)
        .find_map(|seed| {
            let (bytes, picture) = made_up::file(&mut Chance::new(seed));
            let archives = &picture.database.archives;
            let archive = archives.iter().position(|archive| wanted(&archive.kind))?;
            Some((File::open(bytes).unwrap(), archive))
        })
        .unwrap()
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let (mut file, archive) = file_with(|kind| matches!(kind, ArchiveKind::Consolidated { .. }));
    let sources = file.database().sources.len();
    let archives = file.database().archives.len();
    let rows = file.database().archives[archive].rows as usize;
    let before = file.storage().clone();
    let values = vec![Value::ZERO; sources];

    let mut update = file.begin().unwrap();
    let shape = |result| assert!(matches!(result, Err(Error::Shape(_))));
    shape(update.write_row(archives, &values));
    shape(update.write_row(archive, &values[1..]));
    shape(update.rewrite(archive, vec![Value::ZERO; sources * rows + 1]));
    let result = update.rewrite(archive, vec![Value::ZERO; sources * rows]);
    assert!(
        matches!(result, Err(Error::CannotHold { .. })),
        "{result:?}"
    );

    update.state_mut().archives[archive].current_row = rows as u64;
    shape(update.commit(Durability::Synced));
    let mut update = file.begin().unwrap();
    update.state_mut().archives.clear();
    shape(update.write_row(archive, &values));
    assert!(update.fits());
    shape(update.commit(Durability::Synced));
    let mut update = file.begin().unwrap();
    update.state_mut().sources.clear();
    shape(update.commit(Durability::Synced));
    let mut update = file.begin().unwrap();
    update.state_mut().archives[archive].scratch.clear();
    shape(update.commit(Durability::Synced));

    let mut update = file.begin().unwrap();
    update.state_mut().sources[0].last_reading = "5".repeat(57).as_str().into();
    let error = update.commit(Durability::Synced).unwrap_err();
    let expected = "last reading of data source 0: found 57 bytes, but a portable file holds at most \
                    56, in this file";
    assert_eq!(error.to_string(), expected);
    let mut update = file.begin().unwrap();
    update.state_mut().last_update = crate::Time::from_seconds(-1);
    let error = update.commit(Durability::Synced).unwrap_err();
    assert!(error.to_string().contains("from 1970 to 2514"), "{error}");

    assert_eq!(file.storage(), &before);
    assert_eq!(file.updates(), 0);
}

#[test]
fn the_journal_has_room_for_any_single_update() {
    // The most that one update writes: a row that ends a point which was open, then the first
    // row of the time since, then rows to the end of it.
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let database = made_up::database(&mut chance);
        let mut file = portable::create(&database, None, &Default::default(), Vec::new()).unwrap();
        let sources = database.sources.len();
        let mut update = file.begin().unwrap();
        for archive in 0..database.archives.len() {
            let runs: Vec<_> = (0..3).map(|_| chance.values(sources)).collect();
            for (run, count) in runs.iter().zip([1, 1, chance.below(20) as u64]) {
                update.write_rows(archive, count, run).unwrap();
            }
            let scratch = &mut update.state_mut().archives[archive].scratch;
            for (source, scratch) in scratch.iter_mut().enumerate() {
                use crate::model::Scratch;
                scratch.set_value(Scratch::PRIMARY, runs[1][source]);
                scratch.set_value(Scratch::SECONDARY, runs[2][source]);
            }
        }
        assert!(update.fits());
        update.commit(Durability::Synced).unwrap();
    }
}

#[test]
fn larger_journals_take_more() {
    let mut chance = Chance::new(7);
    let mut database = made_up::database(&mut chance);
    database.archives[0].rows = 100;
    let sources = database.sources.len();
    let mut taken = |journal_size| {
        let options = portable::Options {
            journal_size,
            ..Default::default()
        };
        let mut file = portable::create(&database, None, &options, Vec::new()).unwrap();
        let mut update = file.begin().unwrap();
        let mut rows = 0;
        while update.fits() && rows < 100 {
            update.write_row(0, &chance.values(sources)).unwrap();
            rows += 1;
        }
        rows
    };
    let small = taken(0);
    let large = taken(100 * (16 + 8 * sources as u64));
    assert!(large == 100 && small < large, "{small} {large}");
}
