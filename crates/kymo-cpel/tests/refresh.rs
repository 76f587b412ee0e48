//! Event logs that change while they are open.

use std::path::Path;

use kymo_cpel::entries::Entry;
use kymo_cpel::recording::{Options, Recording};
use kymo_cpel::{elog, write};
use kymo_io::{Access, Bytes};
use kymo_model::{Change, Cursor, Event, Recording as _, RowPlace};

/// A log of events at these times, each with a text of its own; `first` is in the string table before all others.
fn cpel(first: &str, times: &[u64]) -> Vec<u8> {
    let mut builder = write::Builder::new(write::Options::default());
    builder.string(first.as_bytes()).unwrap();
    builder.event(1, Some(b"one"), Some(b"%s")).unwrap();
    for time in times {
        let datum = builder.string(format!("at {time}").as_bytes()).unwrap();
        builder
            .push(Entry {
                time: *time,
                track: 0,
                code: 1,
                datum,
            })
            .unwrap();
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    bytes
}

fn elog(begin: u64, formats: &[&str], times: &[u64]) -> Vec<u8> {
    let mut builder = elog::write::Builder::new(1000);
    for format in formats {
        builder.event_type(format.as_bytes(), &[], &[]).unwrap();
    }
    let track = builder.track(b"main").unwrap();
    for time in times {
        builder.push(0, track, *time, &[]).unwrap();
    }
    let begin = elog::Moment {
        os_nanos: begin,
        cpu: 0,
    };
    let mut bytes = Vec::new();
    builder.write(begin, &mut bytes).unwrap();
    bytes
}

/// When recording began.
const BEGIN: u64 = 1_700_000_000_000_000_000;

fn since(recording: &elog::Recording) -> Vec<i64> {
    let times = times(recording).into_iter();
    times.map(|time| time - BEGIN as i64).collect()
}

fn times<R: kymo_model::Recording>(recording: &R) -> Vec<i64> {
    let mut times = Vec::new();
    for chunk in recording.chunks(0) {
        let mut cursor = recording.cursor(&chunk);
        while let Some(event) = cursor.next_event().unwrap() {
            times.push(event.timestamp().unwrap().as_nanos());
        }
    }
    times
}

fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, bytes).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn change<R: kymo_model::Recording>(recording: &mut R) -> Option<Change> {
    let refreshed = recording.refresh().unwrap();
    assert!(refreshed.changes.len() <= 1);
    refreshed.changes.first().map(|change| change.change)
}

fn from(number: u64) -> RowPlace {
    RowPlace { chunk: 0, number }
}

const APPENDED: fn(u64) -> Option<Change> = |number| Some(Change::Appended { from: from(number) });
const REPLACED: Option<Change> = Some(Change::Replaced {
    from: RowPlace {
        chunk: 0,
        number: 0,
    },
});

#[test]
fn a_log_is_compared_with_what_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cpel");
    std::fs::write(&path, cpel("x", &[1, 2])).unwrap();
    let open = || Bytes::open(&path, Access::Random).unwrap();
    let mut recording = Recording::new(&path, open(), &Options::default()).unwrap();
    let shift = kymo_model::Shift {
        nanos: 100,
        from_unix_epoch: true,
    };
    recording.shift(shift).unwrap();
    assert_eq!(change(&mut recording), None);
    replace(&path, &cpel("x", &[1, 2, 5]));
    assert_eq!(change(&mut recording), APPENDED(2));
    // The same texts elsewhere in the string table.
    replace(&path, &cpel("longer", &[1, 2, 5, 7]));
    assert_eq!(change(&mut recording), APPENDED(3));
    assert_eq!(times(&recording), [101, 102, 105, 107]);
    // Over the old one.
    std::fs::write(&path, cpel("longer", &[1, 2, 5, 7, 9])).unwrap();
    assert_eq!(change(&mut recording), APPENDED(4));
    replace(&path, &cpel("longer", &[1, 2, 6, 7, 9]));
    assert_eq!(change(&mut recording), REPLACED);
    std::fs::write(&path, cpel("longer", &[3])).unwrap();
    assert_eq!(change(&mut recording), REPLACED);
    assert_eq!(times(&recording), [103]);
    std::fs::write(&path, b"half").unwrap();
    assert!(recording.refresh().is_err());
    assert!(recording.refresh().is_err());
}

#[test]
fn an_elog_file_grows_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.elog");
    std::fs::write(&path, elog(BEGIN, &["a"], &[1, 2])).unwrap();
    let open = || Bytes::open(&path, Access::Random).unwrap();
    let mut recording = elog::Recording::new(&path, open()).unwrap();
    assert_eq!(change(&mut recording), None);
    std::fs::write(&path, elog(BEGIN, &["a"], &[1, 2, 5])).unwrap();
    assert_eq!(change(&mut recording), APPENDED(2));
    replace(&path, &elog(BEGIN, &["a", "b"], &[1, 2, 5, 7]));
    assert_eq!(change(&mut recording), APPENDED(3));
    assert_eq!(recording.event_classes().len(), 2);
    assert_eq!(since(&recording), [1, 2, 5, 7]);
    replace(&path, &elog(BEGIN, &["a", "b"], &[1, 3, 5, 7]));
    assert_eq!(change(&mut recording), REPLACED);
    replace(&path, &elog(BEGIN + 1000, &["a", "b"], &[1, 3, 5, 7, 9]));
    assert_eq!(change(&mut recording), REPLACED);
    assert_eq!(since(&recording), [1001, 1003, 1005, 1007, 1009]);
    // Events of more than a chunk.
    let many: Vec<u64> = (0..40_000).collect();
    std::fs::write(&path, elog(BEGIN, &["a"], &many[..20_000])).unwrap();
    assert_eq!(change(&mut recording), REPLACED);
    std::fs::write(&path, elog(BEGIN, &["a"], &many)).unwrap();
    let place = RowPlace::of_row(20_000, 1 << 14);
    assert_eq!(
        change(&mut recording),
        Some(Change::Appended { from: place })
    );
    let anew = elog::Recording::new(&path, open()).unwrap();
    assert!(recording.chunks(0).eq(anew.chunks(0)));
    assert_eq!(times(&recording), times(&anew));
}
