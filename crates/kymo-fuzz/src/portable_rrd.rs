//! Portable RRDs.

use kymo_rrd::Value;
use kymo_rrd::file::portable::{self, Durability, Error, File};

/// A portable RRD, as it is and with the right checksums: looking at it and opening it agree,
/// and what can be opened can be updated.
pub fn portable_rrd(data: &[u8]) {
    withstand(data);
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    withstand(&sealed);
}

fn withstand(bytes: &[u8]) {
    let (view, mut file) = match (portable::read(bytes), File::open(bytes.to_vec())) {
        (Ok(view), Ok(file)) => (view, file),
        (Err(looked_at), Err(opened)) => {
            assert_eq!(looked_at.to_string(), opened.to_string());
            return;
        }
        (looked_at, opened) => panic!("{:?} {:?}", looked_at.err(), opened.err()),
    };
    assert!(
        file.database() == view.database(),
        "both have the same state"
    );
    let rows = view.rows().expect("the values are in the file");
    for archive in 0..rows.archives() {
        let mut written: Vec<_> = rows
            .iter(archive)
            .flat_map(|row| {
                let values: Vec<Value> = row.values().collect();
                values
            })
            .collect();
        let current = view.database().state.archives[archive].current_row as usize;
        let first = (current + 1) * rows.sources() % written.len();
        written.rotate_right(first);
        let values = file.values(archive).expect("memory can be read");
        assert!(values == Some(written), "both have the same values");
    }
    let values = vec![Value::ZERO; rows.sources()];
    let mut update = file.begin().expect("no update failed");
    update
        .write_rows(0, 3, &values)
        .expect("there is an archive");
    match update.commit(Durability::Synced) {
        Ok(()) => {
            let current = file.database().state.archives[0].current_row;
            assert!(file.row(0, current).expect("memory can be read") == Some(values));
            let again = File::open(file.storage().clone()).expect("it was opened before");
            assert!(again.database() == file.database(), "an update stays");
        }
        Err(Error::JournalFull { .. } | Error::CannotHold { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Sets the checksums right, of definitions and slots, so that what they cover is looked at.
fn seal(bytes: &mut [u8]) {
    let field = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let (Some(definitions), Some(slots), Some(size)) = (field(16), field(24), field(32)) else {
        return;
    };
    for slot in [Some(slots), slots.checked_add(size)] {
        let Some(slot) = slot.and_then(|slot| bytes.get_mut(slot..)) else {
            continue;
        };
        let used = slot.get(4..).and_then(|slot| slot.first_chunk());
        let used = used.map_or(0, |used| u32::from_le_bytes(*used)) as usize;
        let Some(covered) = slot.get(4..used) else {
            continue;
        };
        let checksum = crc32c(covered).to_le_bytes();
        slot[..4].copy_from_slice(&checksum);
    }
    if definitions < 16 || definitions > bytes.len() {
        return;
    }
    bytes[12..16].fill(0);
    let checksum = crc32c(&bytes[..definitions]).to_le_bytes();
    bytes[12..16].copy_from_slice(&checksum);
}

/// CRC-32C, bit by bit: not by what is checked here.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}
