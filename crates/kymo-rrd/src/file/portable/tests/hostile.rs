//! Files that lie.

use proptest::prelude::*;

use super::bytes::crc32c;
use super::made_up::{self, Chance, Picture};
use crate::file::portable::{self, Durability, Error, File};

/// Sets the checksums right, so that what they protect is looked at.
fn seal(bytes: &mut [u8]) {
    let field = |bytes: &[u8], at: usize| {
        let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        usize::try_from(u64::from_le_bytes(*field?)).ok()
    };
    let Some(definitions) = field(bytes, 16) else {
        return;
    };
    if let Some(covered) = bytes
        .get(..definitions)
        .filter(|covered| covered.len() >= 16)
    {
        let zeroed = [&covered[..12], &[0; 4], &covered[16..]].concat();
        bytes[12..16].copy_from_slice(&crc32c(zeroed).to_le_bytes());
    }
    let (Some(slots), Some(size)) = (field(bytes, 24), field(bytes, 32)) else {
        return;
    };
    if slots < definitions {
        return;
    }
    for slot in 0..2_usize {
        let begin = slot
            .checked_mul(size)
            .and_then(|begin| begin.checked_add(slots));
        let Some(slot) = begin.and_then(|begin| bytes.get_mut(begin..)) else {
            return;
        };
        let Some(used) = slot.get(4..8).and_then(|used| used.first_chunk()) else {
            return;
        };
        let used = u32::from_le_bytes(*used) as usize;
        if let Some(covered) = slot.get(4..used) {
            let checksum = crc32c(covered.iter().copied());
            slot[..4].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}

/// Whatever the bytes are: both ways to read them agree, and what can be read can be updated.
fn withstand(bytes: &[u8]) {
    let looked_at = Picture::of(bytes);
    let opened = File::open(bytes.to_vec());
    let (picture, mut file) = match (looked_at, opened) {
        (Ok(picture), Ok(file)) => (picture, file),
        (Err(looked_at), Err(opened)) => {
            assert_eq!(looked_at.to_string(), opened.to_string());
            return;
        }
        (looked_at, opened) => panic!("{:?} {:?}", looked_at.err(), opened.err()),
    };
    assert_eq!(Picture::of_file(&file), picture);
    let mut update = file.begin().unwrap();
    let row = vec![crate::Value::ZERO; picture.database.sources.len()];
    update.write_rows(0, u64::MAX, &row).unwrap();
    match update.commit(Durability::Synced) {
        Ok(()) | Err(Error::JournalFull { .. } | Error::CannotHold { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let picture = Picture::of_file(&file);
    assert_eq!(Picture::of(file.storage()).unwrap(), picture);
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn any_change_is_withstood(seed: u64, sealed: bool) {
        let mut chance = Chance::new(seed);
        let (mut bytes, mut picture) = made_up::file(&mut chance);
        if chance.one_in(2) {
            let mut file = File::open(bytes).unwrap();
            let mut update = file.begin().unwrap();
            made_up::change(&mut chance, &mut update, &mut picture);
            let _ = update.commit(Durability::Synced);
            bytes = file.into_storage();
        }
        let length = bytes.len();
        // Mostly in header, records and the beginning of slots.
        let slots = u64::from_le_bytes(*bytes[24..].first_chunk().unwrap()) as usize;
        for _ in 0..1 + chance.below(3) {
            let end = if chance.one_in(3) { length } else { slots + 64 };
            let at = chance.below(end);
            let changed = match chance.below(5) {
                0 => vec![0xff; 4],
                1 => vec![0xff; 8],
                2 => vec![0; 4],
                3 => (chance.below(300) as u32).to_le_bytes().to_vec(),
                _ => vec![chance.any() as u8],
            };
            let at = if chance.one_in(2) { at } else { at / 4 * 4 };
            for (byte, changed) in bytes[at..].iter_mut().zip(changed) {
                *byte = changed;
            }
        }
        if chance.one_in(8) {
            bytes.truncate(chance.below(length));
        }
        if sealed {
            seal(&mut bytes);
        }
        withstand(&bytes);
    }

    #[test]
    fn any_bytes_are_withstood(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        withstand(&bytes);
        for (byte, magic) in bytes.iter_mut().zip(b"\x8dPRRD\r\n\x1a\x01\0\x40\0") {
            *byte = *magic;
        }
        seal(&mut bytes);
        withstand(&bytes);
    }
}

#[test]
fn every_field_out_of_range_is_reported() {
    let (bytes, picture) = made_up::file(&mut Chance::new(3));
    let file_size = bytes.len() as u64;
    // Where, how many bytes, what, and what the message says.
    for (at, size, number, message) in [
        (0, 1, 0, "expected the beginning of a portable RRD"),
        (8, 2, 2, "offset 8: version: found 2, expected 1"),
        (10, 2, 56, "offset 10: header size: found 56"),
        (10, 2, 65, "offset 10: header size: found 65"),
        (
            16,
            8,
            63,
            "offset 16: end of definitions: found 63, expected at least 64",
        ),
        (
            16,
            8,
            u64::MAX,
            "offset 16: end of definitions: found 18446744073709551615",
        ),
        (16, 8, 64, "data sources: found none, expected at least 1"),
        (
            24,
            8,
            64,
            "offset 24: state slots: found 64, expected at least",
        ),
        (24, 8, u64::MAX - 7, "offset 32: slot size"),
        (
            24,
            8,
            1,
            "offset 24: state slots: found 1, expected a multiple of 8",
        ),
        (32, 8, 8, "offset 32: slot size: found 8, expected at least"),
        (
            32,
            8,
            9,
            "offset 32: slot size: found 9, expected a multiple of 8",
        ),
        (32, 8, 1 << 63, "two slots within the file size"),
        (40, 4, 0, "offset 40: reading size: found 0"),
        (40, 4, 44, "offset 40: reading size: found 44"),
        (40, 4, 0xffff_fff8, "offset 32: slot size"),
        (
            44,
            4,
            0,
            "offset 44: native version: found 0, expected 1 to 5",
        ),
        (44, 4, 256, "offset 44: native version: found 256"),
        (48, 8, 0, "offset 48: step: found 0, expected at least 1"),
        (56, 8, file_size + 1, "length of the file"),
        (56, 8, file_size - 1, "values of archive"),
        (64, 4, 0x8000_0003, "offset 64: kind of a record"),
        (68, 4, 0, "offset 68: size of a record: found 0"),
        (68, 4, 12, "offset 68: size of a record: found 12"),
        (
            68,
            4,
            0xffff_fff8,
            "offset 68: size of a record: found 4294967288",
        ),
        (
            72,
            2,
            7,
            "offset 72: type of a data source: found 7, expected 0 to 6",
        ),
    ] {
        let mut bytes = bytes.clone();
        bytes[at..at + size].copy_from_slice(&u64::to_le_bytes(number)[..size]);
        let unsealed = Picture::of(&bytes).unwrap_err();
        if at >= 20 {
            let message = unsealed.to_string();
            assert!(message.contains("checksum of the definitions"), "{message}");
        }
        seal(&mut bytes);
        let error = Picture::of(&bytes).unwrap_err().to_string();
        assert!(error.contains(message), "{error}\n{message}");
        withstand(&bytes);
    }
    for length in 0..bytes.len() {
        assert!(Picture::of(&bytes[..length]).is_err());
    }
    // Additional bytes after the end are not damage.
    let longer = [&bytes[..], b"more"].concat();
    assert_eq!(Picture::of(&longer).unwrap(), picture);
}

#[test]
fn archives_out_of_range_are_reported() {
    let seed = (0..)
        .find(|&seed| {
            let (_, picture) = made_up::file(&mut Chance::new(seed));
            picture.database.sources.len() == 1
        })
        .unwrap();
    let (bytes, _) = made_up::file(&mut Chance::new(seed));
    let first = 64 + u32::from_le_bytes(*bytes[68..].first_chunk().unwrap()) as usize;
    for (at, size, number, message) in [
        (
            8,
            1,
            10,
            "function of an archive: found 10, expected 0 to 9",
        ),
        (9, 1, 3, "places of an archive: found 3"),
        (10, 2, 0, "scratch slots of an archive: found 0x0"),
        (10, 2, 0xffff, "scratch slots of an archive: found 0xffff"),
        (12, 4, 0, "rows of an archive: found 0, expected at least 1"),
        (
            12,
            4,
            u64::from(u32::MAX),
            "values of archive 0: found 4294967295 rows",
        ),
        (
            16,
            8,
            0,
            "points per row of an archive: found 0, expected at least 1",
        ),
        (24, 8, 0, "values of archive 0: found 0, expected at least"),
        (
            24,
            8,
            4,
            "values of archive 0: found 4, expected a multiple of 8",
        ),
        (24, 8, u64::MAX - 7, "values of archive 0: found"),
    ] {
        let mut bytes = bytes.clone();
        let at = first + at;
        bytes[at..at + size].copy_from_slice(&u64::to_le_bytes(number)[..size]);
        seal(&mut bytes);
        let error = Picture::of(&bytes).unwrap_err().to_string();
        assert!(error.contains(message), "{error}\n{message}");
        withstand(&bytes);
    }
}

#[test]
fn a_slot_out_of_range_is_not_whole() {
    let (bytes, _) = made_up::file(&mut Chance::new(5));
    let mut file = File::open(bytes).unwrap();
    let before = Picture::of_file(&file);
    let mut update = file.begin().unwrap();
    let row = vec![crate::Value::from(4.5); before.database.sources.len()];
    update.write_row(0, &row).unwrap();
    update.commit(Durability::Synced).unwrap();
    let after = Picture::of_file(&file);
    let bytes = file.into_storage();
    let field = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let slot = field(24) + field(32);
    let archives = 48 + before.database.sources.len() * (16 + 56);
    let used = u32::from_le_bytes(*bytes[slot + 4..].first_chunk().unwrap()) as usize;
    let row_size = 8 * before.database.sources.len();
    let entry = used - 16 - row_size;
    for (at, number) in [
        (4, 0),
        (4, 4),
        (4, 7),
        (4, used as u32 - 8),
        (4, u32::MAX),
        (8, 0),
        (8, 2),
        (16, 2),
        (32, 2),
        (36, 0),
        (36, 2),
        (36, u32::MAX),
        (archives, u32::MAX),
        (archives + 4, 2),
        (entry, 4),
        (entry + 4, 3),
        (entry + 8, u32::MAX),
        (entry + 12, 0),
        (entry + 12, u32::MAX),
    ] {
        let mut bytes = bytes.clone();
        bytes[slot + at..slot + at + 4].copy_from_slice(&number.to_le_bytes());
        seal(&mut bytes);
        // The rows of the update are there, but the state is that before.
        let found = Picture::of(&bytes).unwrap().database;
        assert_eq!(found, before.database, "{number} at {at}");
        withstand(&bytes);
        // Without the other slot there is none.
        let other = field(24);
        bytes[other..other + 4].fill(0xff);
        let error = portable::read(&bytes).unwrap_err();
        assert!(matches!(error, Error::NoState { .. }), "{error}");
    }
    assert_ne!(before, after);
    // The number of an update does not go beyond 64 bits.
    let mut last = bytes.clone();
    last[slot + 8..slot + 16].fill(0xff);
    seal(&mut last);
    assert_eq!(Picture::of(&last).unwrap(), after);
    withstand(&last);
}
