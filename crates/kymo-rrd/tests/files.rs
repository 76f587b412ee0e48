//! Files that RRDtool wrote on other machines.

use std::path::{Path, PathBuf};

use kymo_machine::Machine;
use kymo_rrd::engine::{Definition, Smoothing, create};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::{Confidence, File, Header};
use kymo_rrd::model::{ArchiveKind, ArchiveLink, Reading, SourceKind};
use kymo_rrd::rpn::{Node, Operator};
use kymo_rrd::{Form, Source, Time, Value, file::portable};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn file(machine: &str, name: &str) -> Vec<u8> {
    std::fs::read(data().join(machine).join(name).with_extension("rrd")).expect("test data")
}

fn machine(name: &str) -> &'static Machine {
    Machine::find(name).unwrap_or_else(|| panic!("no machine {name}"))
}

/// The machine and the bytes of all files, with a name for messages.
fn files() -> Vec<(String, &'static Machine, Vec<u8>)> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(data()).expect("test data") {
        let folder = folder.expect("test data").path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        // Some folders are for other tests.
        if Machine::find(&name).is_none() {
            continue;
        }
        for path in std::fs::read_dir(&folder).expect("test data") {
            let path = path.expect("test data").path();
            let bytes = std::fs::read(&path).expect("test data");
            files.push((path.display().to_string(), machine(&name), bytes));
        }
    }
    assert!(files.len() >= 30);
    files
}

fn converted(bytes: &[u8], to: &'static Machine) -> Vec<u8> {
    let source = Source::open(bytes, None).expect("a database");
    convert(&source, Target::Native(to))
        .expect("holds it")
        .bytes
}

#[test]
fn the_machine_is_found() {
    for (name, machine, bytes) in files() {
        let file = File::open(&bytes, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let detection = file.header.detection;
        assert!(detection.alike.contains(&machine), "{name}: {detection:?}");
        assert_eq!(detection.confidence, Confidence::Certain, "{name}");
        assert_eq!(file.header.layout.end(), bytes.len() as u64, "{name}");
    }
}

/// Where the header does not identify the machine, values further on do, of which no more are read than
/// may be needed.
#[test]
fn beginnings_report_what_whole_files_report() {
    let same = |bytes: &[u8], what: &str| {
        let whole = Header::examine(bytes, None).expect(what);
        let (header, _) = Header::read(bytes, None).expect(what);
        assert_eq!(header.detection, whole.detection, "{what}");
        assert_eq!(header.database, whole.database, "{what}");
        assert_eq!(header.layout, whole.layout, "{what}");
        assert!(header.findings == whole.findings, "{what}");
        whole.detection.machine
    };
    for (name, _, bytes) in files() {
        same(&bytes, &name);
    }
    let texts = ["DS:level:GAUGE:20:0:100", "RRA:AVERAGE:0.5:1:2000"];
    let start = Time::from_seconds(1_000_000_000);
    let definition = Definition::parse(start, 10, &texts, &Smoothing::default()).unwrap();
    let database = create(&definition, |_, rows| rows - 1).unwrap();
    let options = portable::Options::default();
    let file = portable::create(&database, None, &options, Vec::new()).unwrap();
    let file = file.into_storage();
    for machine in Machine::all() {
        let mut bytes = converted(&file, machine);
        let name = machine.name();
        let values = Header::examine(&bytes, None).unwrap().layout.header_end();
        // A machine of the same layout writes the same NaN.
        let found = same(&bytes, name);
        assert_eq!(found.file_nan(), machine.file_nan(), "{name}");
        bytes[values..values + 8000].fill(0);
        assert_eq!(same(&bytes, name), found, "{name}");
        bytes[values..].fill(0);
        let first = same(&bytes, name);
        assert!(first.same_layout(machine), "{name}");
    }
}

#[test]
fn what_is_read_is_written_again() {
    for (name, machine, bytes) in files() {
        assert!(converted(&bytes, machine) == bytes, "{name}");
    }
}

#[test]
fn there_and_back_is_the_same_file() {
    for (name, machine, bytes) in files() {
        let source = Source::open(&bytes, None).expect("a database");
        let late = source.database.state.last_update.seconds() > i32::MAX.into();
        for target in Machine::all() {
            let there = convert(&source, Target::Native(target));
            if late && target.time().bytes() == 4 {
                let error = there.expect_err("too late").to_string();
                assert!(error.contains("January 2038"), "{error}");
                continue;
            }
            let there = there
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .bytes;
            let found = Source::open(&there, None).expect("a database");
            let Form::Native(detection) = found.form else {
                panic!("{name}: a native file");
            };
            assert!(
                detection.alike.contains(&target),
                "{name} {}",
                target.name()
            );
            assert!(
                converted(&there, machine) == bytes,
                "{name} {}",
                target.name()
            );
        }
    }
}

/// The layouts that were made member by member from files of other machines.
#[test]
fn conversion_agrees_with_conversion_by_hand() {
    for (from, to) in [("i386", "SYN-i386-time64"), ("i386", "SYN-arm-fpa")] {
        for name in ["tiny", "fresh"] {
            let expected = file(to, name);
            assert!(
                converted(&file(from, name), machine(to)) == expected,
                "{to} {name}"
            );
        }
    }
}

#[test]
fn definitions_are_read() {
    let bytes = file("SYN-arm-fpa", "hw");
    let database = File::open(&bytes, None)
        .expect("a database")
        .header
        .database;
    assert_eq!((database.version, database.step), (3, 300));
    let kinds: Vec<_> = database
        .archives
        .iter()
        .map(|archive| archive.kind.name())
        .collect();
    let expected = [
        "AVERAGE",
        "HWPREDICT",
        "SEASONAL",
        "DEVSEASONAL",
        "DEVPREDICT",
        "FAILURES",
    ];
    assert_eq!(kinds, expected);
    let ArchiveKind::HwPredict {
        alpha,
        beta,
        period,
        seasonal,
        ..
    } = database.archives[1].kind
    else {
        panic!("predictions");
    };
    assert_eq!(
        [alpha, beta, period].map(Value::to_f64),
        [0.1, 0.0035, 96.0]
    );
    assert_eq!(seasonal, ArchiveLink(2));
    let ArchiveKind::Failures {
        window,
        threshold,
        deviations,
        ..
    } = database.archives[5].kind
    else {
        panic!("failures");
    };
    assert_eq!((window, threshold, deviations), (9, 7, ArchiveLink(3)));

    let bytes = file("m68k", "dcount");
    let database = File::open(&bytes, None)
        .expect("a database")
        .header
        .database;
    assert_eq!((database.version, database.needed_version()), (5, 5));
    let readings: Vec<_> = database
        .sources
        .iter()
        .map(|source| match source.kind {
            SourceKind::Measured { reading, .. } => reading,
            SourceKind::Compute(_) => panic!("measured"),
        })
        .collect();
    assert_eq!(readings, [Reading::DCounter, Reading::DDerive]);

    let bytes = file("m68k", "compute");
    let database = File::open(&bytes, None)
        .expect("a database")
        .header
        .database;
    let programs: Vec<_> = database
        .sources
        .iter()
        .filter_map(|source| match &source.kind {
            SourceKind::Compute(program) => Some(program.nodes.clone()),
            SourceKind::Measured { .. } => None,
        })
        .collect();
    let eight = Node::Number(Value::from(8.0));
    assert_eq!(
        programs[0],
        [
            Node::Variable(0),
            Node::Variable(1),
            Node::Operator(Operator::Add),
            eight,
            Node::Operator(Operator::Multiply),
        ]
    );
    assert!(programs[2].contains(&Node::Number(Value::from(-32768.0))));
}

#[test]
fn times_after_2038_are_read() {
    let bytes = file("amd64", "y2040");
    let file_ = File::open(&bytes, None).expect("a database");
    let time = file_.header.database.state.last_update;
    assert_eq!(time, Time::from_seconds(2_208_997_800));
    assert_eq!(file_.header.database.row_time(0, 19), Some(2_208_997_800));
    assert_eq!(file_.rows.value(0, 19, 0), Some(Value::from(29.0)));

    // A time_t of 32 bits held its largest number, which came out as microseconds too.
    let bytes = file("armhf", "y2040");
    let state = File::open(&bytes, None)
        .expect("a database")
        .header
        .database
        .state;
    assert_eq!(state.last_update, Time::from_seconds(i32::MAX.into()));
    assert_eq!(state.stray_micros, Some(i32::MAX.into()));
}

#[test]
fn a_wrong_machine_is_reported_with_the_right_one() {
    let time32 = file("armhf", "tiny");
    let time64 = file("armhf-time64", "tiny");
    for (bytes, reported, cause) in [
        (&time32, "armhf-time64", "written with 32-bit time_t"),
        (&time64, "x86_64", "written with 32-bit long"),
        (&time64, "ppc-time64", "written with the other byte order"),
    ] {
        let error = File::open(bytes, Some(machine(reported)))
            .err()
            .expect("the wrong one");
        let message = error.to_string();
        assert!(message.contains(cause), "{reported}: {message}");
        assert!(message.contains("armhf"), "{reported}: {message}");
    }
    // Without values that give it away, it can be read with the other time_t.
    let wrong = File::open(&time64, Some(machine("armhf"))).expect("makes little sense");
    let warning = wrong
        .header
        .findings
        .iter()
        .last()
        .expect("a warning")
        .to_string();
    assert!(warning.contains("written with 64-bit time_t"), "{warning}");
    let right = File::open(&time64, Some(machine("win64"))).expect("the same layout");
    assert_eq!(right.header.detection.confidence, Confidence::Overruled);
    assert_eq!(right.header.detection.machine, machine("win64"));
}

/// RRDtool of 2008 to 2011 left as many bytes as a `time_t` has.
#[test]
fn trailing_bytes_do_not_make_another_machine() {
    for (name, size) in [("i386", 4), ("armhf", 4), ("amd64", 8), ("sparc64", 8)] {
        for database in ["tiny", "fresh"] {
            let plain = file(name, database);
            let longer = [&plain[..], &[0; 8][..size]].concat();
            let source = Source::open(&longer, None).expect("a database");
            let Form::Native(detection) = &source.form else {
                panic!("a native file");
            };
            assert!(
                detection.alike.contains(&machine(name)),
                "{name}: {detection:?}"
            );
            let converted = convert(&source, Target::Native(machine(name))).expect("holds it");
            assert!(converted.bytes == plain, "{name}");
            assert_eq!(converted.notes.len(), 1, "{:?}", converted.notes);
            assert!(
                converted.notes[0].contains("2008 to 2011"),
                "{:?}",
                converted.notes
            );
        }
    }
}

/// Before version 3 there are no microseconds, and the rest of the file begins earlier.
#[test]
fn old_versions_have_whole_seconds() {
    for (name, _, bytes) in files() {
        let file = File::open(&bytes, None).expect("a database");
        let Header {
            mut database,
            layout,
            ..
        } = file.header;
        if database.state.stray_micros.is_some() || database.version > 3 {
            continue;
        }
        database.version = 1;
        database.state.last_update = Time::from_seconds(1_234_567_890);
        let machine = layout.structs().machine;
        let old = kymo_rrd::file::native::write(&database, &file.rows, machine).expect("holds it");
        assert!(old.len() < bytes.len(), "{name}");
        let again = File::open(&old, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.header.database, database, "{name}");
        // With microseconds the version must be one that has them.
        database.state.last_update = Time::from_micros(5, 500_000).unwrap();
        let new = kymo_rrd::file::native::write(&database, &file.rows, machine).expect("holds it");
        let new = File::open(&new, None).expect("a database").header.database;
        assert_eq!(new.version, 3);
        assert_eq!(new.state.last_update, database.state.last_update);
    }
}

#[test]
fn other_files_are_refused_with_what_they_are() {
    for (bytes, cause) in [
        (&b""[..], "an empty file"),
        (b"<?xml version=\"1.0\"?>", "kymo rrd restore"),
        (b"\n<rrd>", "kymo rrd restore"),
        (b"\x1f\x8b\x08\x00", "compressed"),
        (b"some text\n", "this is text"),
        (&[0; 600], "zeros"),
        (b"RRD\0" as &[u8], "stat_head.version"),
        (b"RRD\x000009\0", "\"0001\\x00\" to \"0005\\x00\""),
        (b"RRD\x000003\0 and nothing else", "stat_head.float_cookie"),
    ] {
        let error = Source::open(bytes, None)
            .err()
            .expect("no database")
            .to_string();
        assert!(error.contains(cause), "{error}");
    }
}

/// A database may be looked at from many threads at once.
#[test]
fn threads_share_a_database() {
    let bytes = file("amd64", "hw");
    let source = Source::open(&bytes, None).expect("a database");
    let known = |archive: usize| -> usize {
        let rows = source.rows.iter(archive);
        rows.map(|row| row.values().filter(|value| !value.is_unknown()).count())
            .sum()
    };
    let alone: Vec<_> = (0..source.rows.archives()).map(known).collect();
    assert!(alone.iter().sum::<usize>() > 1000);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..source.rows.archives())
            .map(|archive| scope.spawn(move || known(archive)))
            .collect();
        let together: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        assert_eq!(together, alone);
    });
}
