//! What only who looks inside can bring about.

use kymo_io::{NewFile, Replace};
use kymo_rrd::engine::{Definition, Smoothing};

use super::upkeep::carry_over;
use std::path::{Path, PathBuf};

use kymo_rrd::Time;

use super::accept::is_later;
use super::*;
use crate::journal;
use crate::journal::{Entry, replay};

#[test]
fn times_are_later_by_what_files_hold_of_them() {
    // The last of these rounds to the next second.
    let moments = [(9, 0), (9, 1 << 29), (9, (1 << 30) - 1), (10, 0), (10, 600)];
    let moments = moments.map(|(seconds, units)| Time::new(seconds, units).unwrap());
    let far = [i64::MIN, 11, 12, i64::MAX].map(Time::from_seconds);
    for time in moments.iter().chain(&far) {
        for last in moments.iter().chain(&far) {
            let expected = time.to_micros() > last.to_micros();
            assert_eq!(is_later(*time, *last), expected, "{time:?} {last:?}");
        }
    }
}

const START: i64 = 1_500_000_000;

fn open(directory: &Path) -> Arc<Store> {
    let hour = Duration::from_secs(3600);
    let options = Options {
        timing: Timing {
            write_timeout: hour,
            jitter: Duration::ZERO,
            flush_interval: hour,
        },
        writers: 1,
        open_files: 4,
        most_pending: 1 << 20,
        journal: Some(journal::Options {
            most_bytes: 1 << 20,
            ..journal::Options::new(directory.join("journal"))
        }),
        ..Options::new(directory.join("data"), Arc::new(|_, _| {}))
    };
    Store::open(options).unwrap()
}

fn definition(source: &str) -> Definition {
    let source = format!("DS:{source}:GAUGE:600:U:U");
    let texts = [source.as_str(), "RRA:LAST:0.5:1:10"];
    Definition::parse(Time::from_seconds(START), 1, &texts, &Smoothing::default()).unwrap()
}

/// Makes a database with an update that is pending.
fn begin(store: &Arc<Store>) -> Arc<Database> {
    let path = store.path(b"a.rrd");
    store.create(&path, &definition("old")).unwrap();
    let database = store.database(&path).unwrap();
    let mut group = Group::new();
    let text = format!("{}:1", START + 1);
    let (update, _) = Update::from_text(text.as_bytes()).unwrap();
    store.accept(&database, &update, Some(&mut group)).unwrap();
    store.commit(&mut group).unwrap();
    database
}

/// The updates of a journal that nothing behind them forgets.
fn journaled(files: &[PathBuf]) -> usize {
    let mut count = 0;
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let reported = replay(&bytes, |entry| match entry {
            Entry::Update(..) => count += 1,
            Entry::Forget(_) => count = 0,
        });
        reported.unwrap();
    }
    count
}

/// The name of the data source of the file.
fn source(store: &Store) -> String {
    let bytes = std::fs::read(store.options.base.join("a.rrd")).unwrap();
    let source = kymo_rrd::Source::open(&bytes, None).unwrap();
    source.database.sources[0].name.to_string()
}

/// Updates that a writer has taken when a new journal begins, and then puts back, are in the new file.
#[test]
fn what_a_writer_puts_back_is_carried_over() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let database = begin(&store);
    // As the writer does it.
    let (taken, count) = {
        let mut state = database.state();
        state.writing = true;
        (
            std::mem::take(&mut state.pending),
            std::mem::take(&mut state.count),
        )
    };
    let before = store.journal().unwrap().rotate().unwrap();
    assert_eq!(journaled(&before), 1);
    std::thread::scope(|scope| {
        let carrying = scope.spawn(|| carry_over(&store).unwrap());
        // It is waited for, however long this takes.
        std::thread::sleep(Duration::from_millis(20));
        assert!(!carrying.is_finished());
        let mut state = database.state();
        (state.pending, state.count) = (taken, count);
        state.writing = false;
        drop(state);
        database.served.notify_all();
    });
    let all = store.journal().unwrap().rotate().unwrap();
    assert_eq!(journaled(&all[1..]), 1);
    store.close();
}

/// A new file gets its name when no writer is at work on the one before, and nothing of what was meant for that.
#[test]
fn a_new_database_waits_for_the_writer_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let database = begin(&store);
    database.state().writing = true;
    std::thread::scope(|scope| {
        let path = database.path();
        let creating = scope.spawn(|| store.create(path, &definition("new")).unwrap());
        // It is out of the table before.
        while database.state().place == Place::Known {
            std::thread::yield_now();
        }
        // Who has met it looks for it again, and waits for the new one.
        let (update, _) = Update::from_text(b"1500000009:1").unwrap();
        let refused = store.accept(&database, &update, None);
        assert_eq!(refused, Err(Refused::Forgotten));
        let opening = scope.spawn(|| store.database(path).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!creating.is_finished() && !opening.is_finished());
        assert_eq!(source(&store), "old");
        database.state().writing = false;
        database.served.notify_all();
        let opened = opening.join().unwrap();
        assert_eq!(source(&store), "new");
        assert_eq!(opened.last(), Time::from_seconds(START));
    });
    assert_eq!(store.pending_bytes(), 0);
    let journal = store.journal().unwrap().rotate().unwrap();
    assert_eq!(journaled(&journal), 0);
    store.close();
}

/// Where a file gets no name, everything is as before.
#[test]
fn a_database_that_stays_keeps_its_updates() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let database = begin(&store);
    let path = database.path();
    let how = Replace {
        keep: true,
        ..Replace::NEW
    };
    let new = NewFile::write(path_of(path), how, |_| Ok::<_, io::Error>(()));
    let (new, ()) = new.unwrap();
    let error = store.put(path, new).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    let error = store.create_new(path, &definition("new")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(source(&store), "old");
    assert!(Arc::ptr_eq(&store.known(path).unwrap(), &database));
    assert_eq!(database.pending().len(), 1);
    let journal = store.journal().unwrap().rotate().unwrap();
    assert_eq!(journaled(&journal), 1);
    assert_eq!(store.flush(&database), Flushed::Written);
    store.close();
}

/// Of many that make the same database at the same time, one does.
#[test]
fn a_database_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let path = store.path(b"a.rrd");
    let made: usize = std::thread::scope(|scope| {
        let make = || {
            let made = store.create_new(&path, &definition("new"));
            let database = store.database(&path).unwrap();
            let (update, _) = Update::from_text(b"1500000001:1").unwrap();
            // All but the first are of the past.
            let _ = store.accept(&database, &update, None);
            usize::from(made.is_ok())
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(made, 1);
    // None of the updates went to a file that was replaced.
    let database = store.known(&path).unwrap();
    assert_eq!(database.pending().len(), 1);
    store.close();
}
