//! Tests of what is left when a program or the machine stops, at any point.

use std::ops::RangeInclusive;

use kymo_io::faults::{Operation, Recorder};
use proptest::prelude::*;

use super::made_up::{self, Chance, Picture};
use crate::file::portable::{Durability, Error, File};

/// Makes the next update and returns what the file holds then. `None`: the journal had no room.
fn update(
    chance: &mut Chance,
    file: &mut File<Recorder>,
    before: &Picture,
    durability: Durability,
) -> Option<Result<Picture, (Picture, Error)>> {
    let mut picture = before.clone();
    let mut update = file.begin().unwrap();
    made_up::change(chance, &mut update, &mut picture);
    match update.commit(durability) {
        Ok(()) => Some(Ok(picture)),
        Err(Error::JournalFull { .. }) => None,
        Err(error) => Some(Err((picture, error))),
    }
}

/// What the bytes hold, by looking at them and by opening them.
fn open(bytes: &[u8]) -> Result<Picture, Error> {
    let looked_at = Picture::of(bytes);
    let opened = File::open(bytes.to_vec());
    match (looked_at, opened) {
        (Ok(picture), Ok(file)) => {
            assert_eq!(Picture::of_file(&file), picture);
            assert_eq!(Picture::of(file.storage()).unwrap(), picture);
            Ok(picture)
        }
        (Err(error), Err(_)) => Err(error),
        (looked_at, opened) => panic!("{looked_at:?} {:?}", opened.map(|_| ())),
    }
}

/// What a file may hold after a part of what was done to it: one of some pictures.
struct History {
    pictures: Vec<Picture>,
    /// For each number of operations: the pictures that the file may hold if the machine stops.
    allowed: Vec<RangeInclusive<usize>>,
}

impl History {
    fn new(picture: Picture) -> Self {
        Self {
            pictures: vec![picture],
            allowed: vec![0..=0],
        }
    }

    fn last(&self) -> &Picture {
        &self.pictures[self.pictures.len() - 1]
    }

    /// While operations up to `operations` were carried out, the file could hold the pictures from
    /// `floor` on.
    fn meanwhile(&mut self, operations: usize, floor: usize) {
        let last = self.pictures.len() - 1;
        if self.allowed.len() <= operations {
            self.allowed.resize(operations + 1, floor..=last);
        }
    }

    /// Now it holds the last one, whatever happens.
    fn settled(&mut self) -> usize {
        let last = self.pictures.len() - 1;
        *self.allowed.last_mut().unwrap() = last..=last;
        last
    }

    fn check(&self, found: &Picture, operations: usize) {
        let allowed = self.allowed[operations].clone();
        let held = self.pictures[allowed.clone()].contains(found);
        assert!(
            held,
            "after {operations} operations: none of the pictures {allowed:?}"
        );
    }
}

proptest! {
    #![proptest_config(super::cases(40))]

    /// The program is killed at every single byte that it writes, whatever the durability.
    #[test]
    fn a_program_stops_at_any_byte(seed: u64) {
        let mut chance = Chance::new(seed);
        let (bytes, picture) = made_up::file(&mut chance);
        let mut file = File::open(Recorder::new(bytes)).unwrap();
        let mut pictures = vec![(0, picture)];
        for _ in 0..3 {
            let durability = [Durability::Synced, Durability::Buffered][chance.below(2)];
            let before = &pictures[pictures.len() - 1].1;
            let Some(picture) = update(&mut chance, &mut file, before, durability) else {
                continue;
            };
            pictures.push((file.storage().written(), picture.unwrap()));
        }
        let mut last = 0;
        for bytes in 0..=file.storage().written() {
            let cut = file.storage().cut(bytes);
            let found = open(&cut).unwrap();
            // Updates without rows and changes look alike, so there may be several.
            let before = pictures.iter().rposition(|(written, _)| *written <= bytes).unwrap();
            let end = (before + 2).min(pictures.len());
            let end = if pictures[before].0 == bytes { before + 1 } else { end };
            let held = (before..end).find(|&held| pictures[held].1 == found);
            prop_assert!(held.is_some(), "between, after {} bytes", bytes);
            prop_assert!(held.unwrap() >= last, "an update that had happened is gone");
            last = held.unwrap();
        }
    }

    /// The program that completes what was cut off is killed too.
    #[test]
    fn opening_stops_at_any_byte(seed: u64) {
        let mut chance = Chance::new(seed);
        let (bytes, picture) = made_up::file(&mut chance);
        let mut file = File::open(Recorder::new(bytes)).unwrap();
        let mut before = picture;
        for _ in 0..2 {
            let picture = update(&mut chance, &mut file, &before, Durability::Buffered);
            before = picture.map_or(before, |picture| picture.unwrap());
        }
        for _ in 0..20 {
            let bytes = chance.below(file.storage().written() as usize + 1) as u64;
            let cut = file.storage().cut(bytes);
            let expected = Picture::of(&cut).unwrap();
            let opened = File::open(Recorder::new(cut)).unwrap();
            for bytes in 0..=opened.storage().written() {
                let cut = opened.storage().cut(bytes);
                prop_assert_eq!(&open(&cut).unwrap(), &expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(super::cases(400))]

    /// Programs make synced updates, are killed in the middle of some, the disk is full for
    /// others; the next program goes on with what it finds. Then the machine stops at any point,
    /// with any part of what was not synced on the disk.
    #[test]
    fn a_machine_stops_at_any_moment(seed: u64) {
        let mut chance = Chance::new(seed);
        let (bytes, picture) = made_up::file(&mut chance);
        let mut file = File::open(Recorder::new(bytes)).unwrap();
        let mut history = History::new(picture);
        let mut floor = 0;
        for _ in 0..5 {
            let before = history.last().clone();
            if chance.one_in(3) {
                file.storage.set_room(Some(chance.below(1500) as u64));
            }
            file.storage.set_syncs_fail(chance.one_in(4));
            match update(&mut chance, &mut file, &before, Durability::Synced) {
                None => {}
                Some(Ok(picture)) => {
                    history.pictures.push(picture);
                    history.meanwhile(file.storage().operations().len(), floor);
                    floor = history.settled();
                }
                Some(Err((picture, error))) => {
                    prop_assert!(matches!(error, Error::Io(_)), "{}", error);
                    prop_assert!(matches!(file.row(0, 0), Err(Error::Stale)));
                    // Whether the update had happened is seen when the file is read again.
                    let found = Picture::of(file.storage().content()).unwrap();
                    prop_assert!(found == picture || found == before);
                    if found == picture {
                        history.pictures.push(picture);
                    }
                    history.meanwhile(file.storage().operations().len(), floor);
                }
            }
            file.storage.set_room(None);
            file.storage.set_syncs_fail(false);
            // The next program goes on, or the same.
            if chance.one_in(3) {
                file = File::open(file.into_storage()).unwrap();
            } else if file.stale {
                file.reload().unwrap();
            }
            history.meanwhile(file.storage().operations().len(), floor);
            prop_assert_eq!(&Picture::of_file(&file), history.last());
        }
        for operations in 0..history.allowed.len() {
            for _ in 0..6 {
                let piece = [1, 8, 512][chance.below(3)];
                let storage = file.storage();
                let bytes = storage.power_loss(operations, piece, |below| chance.below(below));
                let found = open(&bytes).expect("a state is whole");
                history.check(&found, operations);
            }
        }
    }
}

proptest! {
    #![proptest_config(super::cases(200))]

    /// The machine stops after buffered updates. Then the state is that of one of them, of the
    /// last synced one, or of the one before that, or there is none; definitions are as they
    /// were; each row is as it was at some time.
    #[test]
    fn a_machine_stops_after_buffered_updates(seed: u64) {
        let mut chance = Chance::new(seed);
        let (bytes, picture) = made_up::file(&mut chance);
        let mut file = File::open(Recorder::new(bytes)).unwrap();
        let mut pictures = vec![picture];
        let mut floor = 0;
        for _ in 0..6 {
            if chance.one_in(4) {
                file.sync().unwrap();
                floor = pictures.len() - 1;
                // What was synced stays until something else is written.
                let operations = file.storage().operations().len();
                let bytes = file.storage().power_loss(operations, 1, |below| chance.below(below));
                prop_assert_eq!(&open(&bytes).unwrap(), &pictures[floor]);
            }
            let before = &pictures[pictures.len() - 1];
            let picture = update(&mut chance, &mut file, before, Durability::Buffered);
            pictures.extend(picture.map(|picture| picture.unwrap()));
        }
        let operations = file.storage().operations().len();
        for _ in 0..50 {
            let piece = [1, 8, 512][chance.below(3)];
            let bytes = file.storage().power_loss(operations, piece, |below| chance.below(below));
            let found = match open(&bytes) {
                Ok(found) => found,
                Err(error) => {
                    prop_assert!(matches!(error, Error::NoState { .. }), "{}", error);
                    prop_assert!(pictures.len() - floor > 2, "one update leaves the slot before");
                    continue;
                }
            };
            let since = &pictures[floor.saturating_sub(1)..];
            prop_assert!(since.iter().any(|picture| picture.database == found.database));
            for (archive, values) in found.values.iter().enumerate() {
                for (place, value) in values.iter().enumerate() {
                    // A season's other place is unknown until it is written.
                    let mut held = pictures.iter().map(|picture| picture.values[archive][place]);
                    let torn = piece == 1 || value.is_unknown() || held.any(|held| held == *value);
                    prop_assert!(torn, "a value that never was");
                }
            }
        }
        // A synced update begins with a sync, from which on nothing is lost.
        let before = &pictures[pictures.len() - 1];
        if let Some(picture) = update(&mut chance, &mut file, before, Durability::Synced) {
            let both = [before.clone(), picture.unwrap()];
            let all = file.storage().operations();
            let sync = |operation: &Operation| *operation == Operation::Sync;
            let first = operations + all[operations..].iter().position(sync).unwrap() + 1;
            for operations in first..=all.len() {
                for _ in 0..4 {
                    let storage = file.storage();
                    let bytes = storage.power_loss(operations, 8, |below| chance.below(below));
                    let found = open(&bytes).unwrap();
                    let possible = if operations == all.len() { &both[1..] } else { &both };
                    prop_assert!(possible.contains(&found), "after {} operations", operations);
                }
            }
        }
    }
}
