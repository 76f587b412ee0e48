//! A store, its files and its journal.
#![cfg(unix)]

mod kept;
mod limits;

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kymo_collectd::Value;
use kymo_machine::Machine;
use kymo_rrd::engine::{Definition, Smoothing};
use kymo_rrd::file::convert::Target;
use kymo_rrd::{Source, Time};
use kymo_serve::journal;
use kymo_serve::store::{Flushed, Group, Options, Readings, Refused, Store, Timing, Update};

const START: i64 = 1_500_000_000;

fn options(directory: &Path) -> Options {
    Options {
        timing: Timing {
            write_timeout: Duration::from_secs(3600),
            jitter: Duration::ZERO,
            flush_interval: Duration::from_secs(3600),
        },
        writers: 2,
        open_files: 4,
        most_pending: 1 << 20,
        journal: Some(journal::Options {
            most_bytes: 1 << 20,
            ..journal::Options::new(directory.join("journal"))
        }),
        ..Options::new(directory.join("data"), Arc::new(|_, _| {}))
    }
}

fn definition() -> Definition {
    let texts = ["DS:a:GAUGE:600:U:U", "RRA:LAST:0.5:1:100"];
    Definition::parse(Time::from_seconds(START), 1, &texts, &Smoothing::default()).unwrap()
}

/// Accepts and commits a text.
fn give(store: &Arc<Store>, name: &str, text: &str) -> Result<(), Refused> {
    let path = store.path(name.as_bytes());
    let database = store.database(&path).unwrap();
    let mut group = Group::new();
    let (update, _) = Update::from_text(text.as_bytes()).unwrap();
    store.accept(&database, &update, Some(&mut group))?;
    store.commit(&mut group).unwrap();
    Ok(())
}

/// The last update of a file, and the reading that it left.
fn last(store: &Store, name: &str) -> (Time, String) {
    let bytes = std::fs::read(store.options().base.join(name)).unwrap();
    let state = Source::open(&bytes, None).unwrap().database.state;
    (state.last_update, state.sources[0].last_reading.to_string())
}

fn journals(directory: &Path) -> usize {
    let files = std::fs::read_dir(directory.join("journal")).unwrap();
    files.count() - 1
}

#[test]
fn updates_wait_until_they_are_flushed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    let path = store.path(b"host/a.rrd");
    store.create(&path, &definition()).unwrap();
    give(&store, "host/a.rrd", &format!("{START}.5:1")).unwrap();
    give(&store, "host/a.rrd", &format!("{}.25:2", START + 1)).unwrap();
    let database = store.known(&path).unwrap();
    let pending = [format!("{START}.5:1"), format!("{}.25:2", START + 1)];
    assert_eq!(database.pending(), pending.map(String::into_bytes));
    assert_eq!(
        last(&store, "host/a.rrd"),
        (Time::from_seconds(START), "U".into())
    );

    let values = [Value::Gauge(0.1)];
    let update = Update {
        time: Time::new(START + 2, 1 << 28).unwrap(),
        interval: None,
        readings: Readings::Values(&values),
    };
    store.accept(&database, &update, None).unwrap();
    let refused = store.accept(&database, &update, None);
    assert_eq!(refused, Err(Refused::Past(update.time)));
    assert_eq!(store.flush(&database), Flushed::Written);
    assert_eq!(last(&store, "host/a.rrd"), (update.time, "0.1".into()));
    assert_eq!(store.flush(&database), Flushed::Nothing);
    assert_eq!((store.pending_bytes(), database.pending().len()), (0, 0));
    store.close();
    assert_eq!(journals(directory.path()), 0);
}

/// What a database refuses does not take others with it.
#[test]
fn updates_are_judged_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    for (second, text) in ["1", "x", "1:2", "", "3"].iter().enumerate() {
        give(
            &store,
            "a.rrd",
            &format!("{}:{text}", START + 1 + second as i64),
        )
        .unwrap();
    }
    store.close();
    assert_eq!(
        last(&store, "a.rrd"),
        (Time::from_seconds(START + 5), "3".into())
    );
    let refused = &store.counters.refused;
    assert_eq!(refused.load(Relaxed), 3);
}

/// A refused reading does not keep out others with earlier times.
#[test]
fn what_is_refused_leaves_no_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    give(&store, "a.rrd", &format!("{}:x", START + 100)).unwrap();
    let database = store.known(&path).unwrap();
    assert_eq!(store.flush(&database), Flushed::Written);
    assert_eq!(database.last(), Time::from_seconds(START + 1));
    give(&store, "a.rrd", &format!("{}:2", START + 2)).unwrap();
    store.close();
    assert_eq!(
        last(&store, "a.rrd"),
        (Time::from_seconds(START + 2), "2".into())
    );
}

/// More than is written together, with some that are refused.
#[test]
fn many_updates_of_one_database_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    let database = store.database(&path).unwrap();
    for second in 1..=6000 {
        let reading = if second % 100 == 0 { "x" } else { "1" };
        let text = format!("{}:{reading}", START + second);
        let (update, _) = Update::from_text(text.as_bytes()).unwrap();
        store.accept(&database, &update, None).unwrap();
    }
    assert!(store.pending_bytes() > 3 << 16);
    assert_eq!(store.flush(&database), Flushed::Written);
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    let counters = &store.counters;
    assert_eq!(
        (count(&counters.written), count(&counters.refused)),
        (5940, 60)
    );
    assert_eq!((count(&counters.writes), store.pending_bytes()), (1, 0));
    assert_eq!(database.last(), Time::from_seconds(START + 5999));
    store.close();
}

#[test]
fn times_are_judged_when_they_come() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    // That of the file, too.
    let refused = give(&store, "a.rrd", &format!("{START}:1"));
    assert_eq!(refused, Err(Refused::Past(Time::from_seconds(START))));
    give(&store, "a.rrd", &format!("{}:1", START + 9)).unwrap();
    let refused = give(&store, "a.rrd", &format!("{}.9999991:1", START + 8));
    assert_eq!(refused, Err(Refused::Past(Time::from_seconds(START + 9))));
    store.close();
}

/// A store that is dropped without being closed is one that was killed.
#[test]
fn the_journal_has_what_was_committed() {
    let directory = tempfile::tempdir().unwrap();
    let killed = || {
        let store = Store::open(options(directory.path())).unwrap();
        store.create(&store.path(b"a.rrd"), &definition()).unwrap();
        store.create(&store.path(b"b.rrd"), &definition()).unwrap();
        give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
        let a = store.known(&store.path(b"a.rrd")).unwrap();
        assert_eq!(store.flush(&a), Flushed::Written);
        give(&store, "a.rrd", &format!("{}:2", START + 2)).unwrap();
        give(&store, "b.rrd", &format!("{}:3", START + 3)).unwrap();
        // What a machine left that stopped while it wrote.
        let journal = std::fs::read_dir(directory.path().join("journal")).unwrap();
        let names = journal.map(|entry| entry.unwrap().path());
        let file = names.filter(|path| !path.ends_with("lock")).max().unwrap();
        let bytes = std::fs::read(&file).unwrap();
        (file, bytes)
    };
    let (file, bytes) = killed();
    for torn in [0, 1, 7, 8, 30] {
        // The lock of the first is held by its threads, so another directory has the journal.
        let again = tempfile::tempdir().unwrap();
        let base = again.path().join("data");
        std::fs::create_dir_all(&base).unwrap();
        for name in ["a.rrd", "b.rrd"] {
            std::fs::copy(directory.path().join("data").join(name), base.join(name)).unwrap();
        }
        let journal = again.path().join("journal");
        std::fs::create_dir_all(&journal).unwrap();
        let old = directory.path().as_os_str().as_encoded_bytes();
        assert!(!old.is_empty());
        let mut kept = bytes.clone();
        let tail = bytes[8..8 + torn].to_vec();
        kept.extend(tail);
        std::fs::write(journal.join(file.file_name().unwrap()), kept).unwrap();
        let reported = Arc::new(Mutex::new(Vec::new()));
        let mut options = options(again.path());
        // The journal has the paths of the first.
        options.base = directory.path().join("data");
        options.log = {
            let reported = Arc::clone(&reported);
            Arc::new(move |_, text: &str| reported.lock().unwrap().push(text.to_owned()))
        };
        let store = Store::open(options).unwrap();
        let pending = |name: &[u8]| {
            let path = store.path(name);
            store.known(&path).map(|database| database.pending())
        };
        assert_eq!(
            pending(b"a.rrd"),
            Some(vec![format!("{}:2", START + 2).into_bytes()])
        );
        assert_eq!(
            pending(b"b.rrd"),
            Some(vec![format!("{}:3", START + 3).into_bytes()])
        );
        let warned = reported
            .lock()
            .unwrap()
            .iter()
            .any(|text| text.contains("whole group"));
        assert_eq!(warned, torn > 0, "{reported:?}");
        // It is in the new journal, and the old one is gone if all of it was read.
        assert_eq!(journals(again.path()), 1 + usize::from(torn > 0));
    }
}

/// The only file of a journal.
fn journal(directory: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(directory.join("journal")).unwrap();
    let mut files = files.map(|entry| entry.unwrap().path());
    std::fs::read(files.find(|path| !path.ends_with("lock")).unwrap()).unwrap()
}

/// A store with the databases of another, and a journal that was left there.
fn left(store: &Store, bytes: &[u8]) -> (tempfile::TempDir, Options) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.base.clone_from(&store.options().base);
    let journal = directory.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    std::fs::write(journal.join("kymo.journal.000000000001"), bytes).unwrap();
    (directory, options)
}

/// Clients continue while the journal is rotated: carried-over updates stand behind those that they sent.
#[test]
fn what_was_carried_over_may_stand_behind_newer_updates() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    let forgotten = journal(directory.path()).len();
    let texts = [1, 2, 3].map(|second| format!("{}:{second}", START + second));
    give(&store, "a.rrd", &texts[0]).unwrap();
    give(&store, "a.rrd", &texts[1]).unwrap();
    let old = journal(directory.path()).len();
    give(&store, "a.rrd", &texts[2]).unwrap();
    let bytes = journal(directory.path());
    let (old, new) = (&bytes[forgotten..old], &bytes[old..]);
    // And it was killed before, when all of it was carried over already.
    let bytes = [&bytes[..forgotten], new, old, new, old].concat();
    let (_directory, options) = left(&store, &bytes);
    let again = Store::open(options).unwrap();
    let database = again.known(&again.path(b"a.rrd")).unwrap();
    assert_eq!(database.pending(), texts.map(String::into_bytes));
    assert_eq!(database.last(), Time::from_seconds(START + 3));
    again.close();
    assert_eq!(again.pending_bytes(), 0);
    assert_eq!(
        last(&again, "a.rrd"),
        (Time::from_seconds(START + 3), "3".into())
    );
}

/// The updates behind a damaged group were acknowledged, and the file may still be useful.
#[test]
fn a_damaged_group_takes_no_others_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    let texts = [1, 2, 3].map(|second| format!("{}:{second}", START + second));
    give(&store, "a.rrd", &texts[0]).unwrap();
    let first = journal(directory.path()).len();
    give(&store, "a.rrd", &texts[1]).unwrap();
    let second = journal(directory.path()).len();
    give(&store, "a.rrd", &texts[2]).unwrap();
    let mut bytes = journal(directory.path());
    bytes[second - 1] ^= 1;
    let (directory, mut options) = left(&store, &bytes);
    let reported = Arc::new(Mutex::new(String::new()));
    options.log = {
        let reported = Arc::clone(&reported);
        Arc::new(move |_, text: &str| *reported.lock().unwrap() += text)
    };
    let again = Store::open(options).unwrap();
    let database = again.known(&again.path(b"a.rrd")).unwrap();
    let [one, _, three] = texts.map(String::into_bytes);
    assert_eq!(database.pending(), [one, three]);
    let reported = reported.lock().unwrap().clone();
    assert!(
        reported.contains(&format!("offset {first}: found checksum")),
        "{reported}"
    );
    again.close();
    let kept = directory
        .path()
        .join("journal/kymo.journal.000000000001.damaged");
    assert_eq!(std::fs::read(kept).unwrap(), bytes);
    assert_eq!(journals(directory.path()), 1);
}

#[test]
fn forgotten_updates_do_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let store = Store::open(options.clone()).unwrap();
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    let kept = store.known(&path).unwrap();
    assert!(store.forget(&path).unwrap());
    assert!(!store.forget(&path).unwrap());
    let (update, _) = Update::from_text(b"1600000000:1").unwrap();
    assert_eq!(store.accept(&kept, &update, None), Err(Refused::Forgotten));
    assert_eq!(store.pending_bytes(), 0);
    // As after it was killed.
    let again = tempfile::tempdir().unwrap();
    let journal = again.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    for entry in std::fs::read_dir(directory.path().join("journal")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), journal.join(entry.file_name())).unwrap();
    }
    let mut copied = options;
    copied.journal.as_mut().unwrap().directory = journal;
    let replayed = Store::open(copied).unwrap();
    assert_eq!(replayed.pending_bytes(), 0);
    replayed.close();
    store.close();
    assert_eq!(last(&store, "a.rrd").0, Time::from_seconds(START));
}

#[test]
fn memory_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.most_pending = 100;
    let store = Store::open(options).unwrap();
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    let database = store.database(&store.path(b"a.rrd")).unwrap();
    store.suspend(&database);
    let given: Vec<_> = (1..10)
        .map(|second| give(&store, "a.rrd", &format!("{}:1", START + second)))
        .collect();
    let taken = given.iter().filter(|given| given.is_ok()).count();
    assert!((1..9).contains(&taken), "{given:?}");
    assert_eq!(given[taken..], vec![Err(Refused::Full); 9 - taken]);
    // There is room again when they are written.
    store.resume(&database);
    store.flush(&database);
    give(&store, "a.rrd", &format!("{}:1", START + 20)).unwrap();
    store.close();
}

#[test]
fn paths_stay_below_the_base() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    for word in ["../a.rrd", "b/../../a.rrd", "/etc/passwd", "a/..", "a\0b"] {
        let path = store.path(word.as_bytes());
        assert!(!store.allows(&path), "{word}");
        let denied = store.database(&path).unwrap_err().kind();
        assert_eq!(denied, std::io::ErrorKind::PermissionDenied, "{word}");
        assert!(store.create(&path, &definition()).is_err(), "{word}");
    }
    assert!(store.allows(&store.path(b"a..b/..c.rrd")));
    // One file has one database.
    let base = store.options().base.display().to_string();
    for word in [
        "a/b.rrd",
        "./a//b.rrd",
        "a/./b.rrd",
        &format!("{base}//a/b.rrd/"),
    ] {
        let path = String::from_utf8(store.path(word.as_bytes())).unwrap();
        assert_eq!(path, format!("{base}/a/b.rrd"), "{word}");
    }
    assert_eq!(store.path(b"/"), b"");
    assert!(!store.allows(format!("{base}x/a.rrd").as_bytes()));
    store.close();
}

/// A disk that is full comes back, and a file that another program writes is free again.
#[test]
fn files_that_cannot_be_written_are_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    let database = store.known(&path).unwrap();
    let file = store.options().base.join("a.rrd");
    let locked = std::fs::File::options().write(true).open(&file).unwrap();
    kymo_io::lock(&locked, kymo_io::Locking::Try).unwrap();
    assert!(matches!(store.flush(&database), Flushed::Failed(_)));
    give(&store, "a.rrd", &format!("{}:2", START + 2)).unwrap();
    assert_eq!(database.pending().len(), 2);
    drop(locked);
    assert_eq!(store.flush(&database), Flushed::Written);
    assert_eq!(
        last(&store, "a.rrd"),
        (Time::from_seconds(START + 2), "2".into())
    );

    // One that is removed is not waited for.
    give(&store, "a.rrd", &format!("{}:3", START + 3)).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(store.flush(&database), Flushed::Failed(_)));
    assert_eq!((store.count(), store.pending_bytes()), (0, 0));
    store.close();
}

/// Without a journal, what cannot be written at the end is lost, and the loss is reported.
#[test]
fn what_is_lost_at_the_end_is_reported() {
    for (has_journal, is_kept) in [(false, false), (true, true)] {
        let directory = tempfile::tempdir().unwrap();
        let reported = Arc::new(Mutex::new(String::new()));
        let mut options = options(directory.path());
        options.journal = options.journal.filter(|_| has_journal);
        options.log = {
            let reported = Arc::clone(&reported);
            Arc::new(move |_, text: &str| *reported.lock().unwrap() += text)
        };
        let store = Store::open(options).unwrap();
        store.create(&store.path(b"a.rrd"), &definition()).unwrap();
        give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
        give(&store, "a.rrd", &format!("{}:2", START + 2)).unwrap();
        let file = store.options().base.join("a.rrd");
        let locked = std::fs::File::options().write(true).open(&file).unwrap();
        kymo_io::lock(&locked, kymo_io::Locking::Try).unwrap();
        assert_eq!(store.close(), is_kept);
        let reported = reported.lock().unwrap().clone();
        assert_eq!(
            reported.contains("a.rrd: 2 updates are lost: "),
            !is_kept,
            "{reported}"
        );
        let dropped = store.counters.dropped.load(Relaxed);
        assert_eq!(dropped, if is_kept { 0 } else { 2 });
    }
}

/// A file that is damaged when the daemon starts may be mended later.
#[test]
fn the_journal_keeps_what_has_no_file_to_go_to() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let store = Store::open(options.clone()).unwrap();
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    let database = store.known(&path).unwrap();
    let file = store.options().base.join("a.rrd");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, "damaged").unwrap();
    assert!(matches!(store.flush(&database), Flushed::Failed(_)));
    store.close();
    drop((store, database));
    for _ in 0..2 {
        assert_eq!(journals(directory.path()), 1);
        let store = Store::open(options.clone()).unwrap();
        assert_eq!(store.count(), 0);
        store.close();
    }
    std::fs::write(&file, whole).unwrap();
    let store = Store::open(options).unwrap();
    store.close();
    assert_eq!(last(&store, "a.rrd").0, Time::from_seconds(START + 1));
    assert_eq!(journals(directory.path()), 0);
}

/// A database that takes the place of a damaged one gets nothing of it.
#[test]
fn a_new_database_gets_no_updates_of_a_damaged_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    std::fs::write(store.options().base.join("a.rrd"), "damaged").unwrap();
    let (directory, options) = left(&store, &journal(directory.path()));
    let again = Store::open(options.clone()).unwrap();
    assert_eq!(again.count(), 0);
    again.create(&path, &definition()).unwrap();
    again.close();
    drop(again);
    assert_eq!(journals(directory.path()), 0);
    let again = Store::open(options).unwrap();
    again.close();
    assert_eq!(last(&again, "a.rrd").0, Time::from_seconds(START));
}

/// Everything is written, and the journal rotated, again and again while the store is closed.
#[test]
fn the_end_may_come_at_any_time() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..200 {
        let mut options = options(directory.path());
        options.timing.flush_interval = Duration::from_micros(round % 20 * 50);
        let store = Store::open(options).unwrap();
        if round == 0 {
            store.create(&store.path(b"a.rrd"), &definition()).unwrap();
        }
        let time = START + 1 + round as i64;
        give(&store, "a.rrd", &format!("{time}:1")).unwrap();
        store.close();
        assert_eq!(last(&store, "a.rrd").0, Time::from_seconds(time));
        assert_eq!(journals(directory.path()), 0);
    }
}
