//! The portable form as one of the forms that files are opened in and converted to.

use kymo_rrd::check::check;
use kymo_rrd::convert::{Target, convert};
use kymo_rrd::portable;
use kymo_rrd::{Form, Source, Time};

const FILES: [&[u8]; 4] = [
    include_bytes!("data/dump/holt-winters.amd64.rrd"),
    include_bytes!("data/dump/fresh.i386.rrd"),
    include_bytes!("data/dump/fresh.m68k.rrd"),
    include_bytes!("data/dump/tiny.armhf.rrd"),
];

#[test]
fn native_files_come_back_from_the_portable_form() {
    for file in FILES {
        let native = Source::open(file, None).unwrap();
        let Form::Native(detection) = &native.form else {
            panic!("found {:?}", native.form);
        };
        let machine = Target::Native(detection.machine);
        let portable = convert(&native, Target::Portable).unwrap();
        let source = Source::open(&portable.bytes, None).unwrap();
        assert_eq!(source.form, Form::Portable);
        assert_eq!(source.database, native.database);
        let back = convert(&source, machine).unwrap().bytes;
        assert_eq!(back, convert(&native, machine).unwrap().bytes);
        assert!(!check(&portable.bytes, None, None).is_damaged());
    }
}

#[test]
fn an_update_that_was_cut_off_is_completed() {
    let native = Source::open(FILES[3], None).unwrap();
    let whole = convert(&native, Target::Portable).unwrap().bytes;
    let options = portable::Options::default();
    let rows = Some(&native.rows);
    let mut file = portable::create(&native.database, rows, &options, Vec::new()).unwrap();
    let mut update = file.begin().unwrap();
    update.write_row(0, &[kymo_rrd::Value::from(43.0)]).unwrap();
    let time = Time::from_seconds(1_699_999_802);
    update.state_mut().last_update = time;
    update.commit(portable::Durability::Synced).unwrap();
    let updated = file.into_storage();
    // As if the row had not been written where it belongs, but the state and the journal had.
    let row = updated
        .windows(8)
        .rposition(|bytes| bytes == 43.0f64.to_le_bytes())
        .unwrap();
    let mut cut = updated.clone();
    cut[row..row + 8].copy_from_slice(&whole[row..row + 8]);
    assert_ne!(cut, updated);

    assert!(Source::open(&cut, None).is_err());
    let completed = Source::complete(&cut).unwrap();
    let source = Source::open(&completed, None).unwrap();
    assert_eq!(source.database.state.last_update, time);
    assert_eq!(source.rows.value(0, 0, 0), Some(43.0.into()));
    let report = check(&cut, None, None);
    assert!(!report.is_damaged());
    assert_eq!(report.findings.iter().count(), 1);
}

#[test]
fn damage_is_told() {
    let native = Source::open(FILES[0], None).unwrap();
    let mut bytes = convert(&native, Target::Portable).unwrap().bytes;
    bytes[70] ^= 1;
    let error = Source::complete(&bytes).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    assert!(check(&bytes, None, None).is_damaged());
}
