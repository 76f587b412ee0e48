//! The portable form as one of the forms that files are opened in and converted to.

use kymo_machine::Machine;
use kymo_rrd::file::check::check;
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::portable::{self, Options, Record};
use kymo_rrd::{Form, Source, Time};

const FILES: [&[u8]; 4] = [
    include_bytes!("data/dump/holt-winters.amd64.rrd"),
    include_bytes!("data/dump/fresh.i386.rrd"),
    include_bytes!("data/dump/fresh.m68k.rrd"),
    include_bytes!("data/dump/tiny.armhf.rrd"),
];

#[test]
fn unknown_records_are_kept_or_reported() {
    let native = Source::open(FILES[3], None).unwrap();
    let record = Record {
        kind: 77,
        content: vec![1; 16],
    };
    let options = Options {
        records: vec![record.clone()],
        ..Options::default()
    };
    let rows = Some(&native.rows);
    let file = portable::create(&native.database, rows, &options, Vec::new()).unwrap();
    let bytes = file.into_storage();
    let source = Source::open(&bytes, None).unwrap();

    let again = convert(&source, Target::Portable).unwrap();
    assert_eq!(again.bytes, bytes);
    let native = convert(&source, Target::Native(Machine::native())).unwrap();
    assert!(
        native
            .notes
            .iter()
            .any(|note| note.contains("unknown kinds"))
    );
}

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

/// The files of all machines in the test data.
fn files() -> Vec<std::path::PathBuf> {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let list = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).expect("test data");
        entries.map(|entry| entry.expect("test data").path())
    };
    let machines = list(&data).filter(|path| path.is_dir());
    let files: Vec<_> = machines.flat_map(|machine| list(&machine)).collect();
    let files = files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rrd"));
    files.collect()
}

#[test]
fn files_of_all_machines_come_back_byte_for_byte() {
    let mut count = 0;
    for path in files() {
        let bytes = std::fs::read(&path).expect("test data");
        let native = Source::open(&bytes, None).unwrap();
        let Form::Native(detection) = &native.form else {
            panic!("found {:?}", native.form);
        };
        let machine = Target::Native(detection.machine);
        let portable = convert(&native, Target::Portable).unwrap();
        let source = Source::open(&portable.bytes, None).unwrap();
        let back = convert(&source, machine).unwrap().bytes;
        // But for NaNs of the other kinds, which become the one of the machine.
        let name = path.display();
        assert_eq!(back.len(), bytes.len(), "{name}");
        assert!(back == convert(&native, machine).unwrap().bytes, "{name}");
        count += 1;
    }
    assert!(count >= 30, "{count} files");
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
fn damage_is_reported() {
    let native = Source::open(FILES[0], None).unwrap();
    let mut bytes = convert(&native, Target::Portable).unwrap().bytes;
    bytes[70] ^= 1;
    let error = Source::complete(&bytes).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    assert!(check(&bytes, None, None).is_damaged());
}
