//! What clients, other programs and clocks cannot do to a store.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use kymo_rrd::engine::{Measurement, Rrd, Sample};

use super::*;

/// A store whose messages are kept.
fn open_with_log(options: Options) -> (Arc<Store>, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&log);
    let store = Store::open(Options {
        log: Arc::new(move |_, text| kept.lock().unwrap().push(text.to_owned())),
        ..options
    });
    (store.unwrap(), log)
}

#[test]
fn updates_that_another_program_has_overtaken_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (store, log) = open_with_log(options(directory.path()));
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    for second in [1, 2, 30] {
        give(&store, "a.rrd", &format!("{}:1", START + second)).unwrap();
    }
    let file = directory.path().join("data/a.rrd");
    let mut rrd = Rrd::open(kymo_io::Shared::open(&file).unwrap()).unwrap();
    let values = [Measurement::Float(5.0)];
    rrd.update(&Sample {
        time: Time::from_seconds(START + 10),
        values: &values,
    })
    .unwrap();
    drop(rrd);
    let database = store.known(&path).unwrap();
    assert_eq!(store.flush(&database), Flushed::Written);
    let counters = &store.counters;
    assert_eq!(
        (counters.overtaken.load(Relaxed), database.overtaken()),
        (2, 2)
    );
    assert_eq!(counters.written.load(Relaxed), 1);
    let path = String::from_utf8(path).unwrap();
    assert_eq!(store.overtaken(10), [(path.clone(), 2)]);
    let expected = format!(
        "{path}: 2 accepted updates are lost: another program has written later ones to the file"
    );
    assert_eq!(*log.lock().unwrap().last().unwrap(), expected);
    store.close();
}

#[test]
fn times_far_ahead_of_the_clock_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (store, log) = open_with_log(options(directory.path()));
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let limit = store.options().future_limit;
    let ahead = now + limit.as_secs() + 3600;
    let refused = give(&store, "a.rrd", &format!("{ahead}:1"));
    assert_eq!(refused, Err(Refused::Future(limit)));
    // Nothing is silenced by it.
    give(&store, "a.rrd", &format!("{}:1", now + 3600)).unwrap();
    assert_eq!(store.counters.future.load(Relaxed), 1);
    let reported = log.lock().unwrap().last().unwrap().clone();
    assert!(
        reported.ends_with("is more than 86400 seconds ahead of the clock of this machine"),
        "{reported}"
    );
    store.close();
}

/// Waits until something is so.
fn wait_until(is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_forgotten_suspension_ends_by_time() {
    let directory = tempfile::tempdir().unwrap();
    let (store, log) = open_with_log(Options {
        suspend_limit: Duration::from_millis(50),
        ..options(directory.path())
    });
    let path = store.path(b"a.rrd");
    store.create(&path, &definition()).unwrap();
    let database = store.database(&path).unwrap();
    assert!(store.suspend(&database));
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    wait_until(|| store.counters.suspensions_ended.load(Relaxed) == 1);
    wait_until(|| store.pending_bytes() == 0);
    let reported = log.lock().unwrap().last().unwrap().clone();
    assert!(
        reported.contains("a.rrd: suspended no longer: the limit of"),
        "{reported}"
    );
    store.close();
}

/// What has no room is refused, counted and reported.
#[test]
fn full_memory_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (store, log) = open_with_log(Options {
        most_pending: 0,
        ..options(directory.path())
    });
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    let refused = give(&store, "a.rrd", &format!("{}:1", START + 1));
    assert_eq!(refused, Err(Refused::Full));
    assert_eq!(store.counters.dropped.load(Relaxed), 1);
    let reported = log.lock().unwrap().last().unwrap().clone();
    let expected = "a.rrd: update refused: the updates in memory have reached the limit of 0 bytes";
    assert!(reported.ends_with(expected), "{reported}");
    store.close();
}

/// Databases that are there need the rest of the disk.
#[test]
fn nothing_is_created_on_a_disk_that_is_nearly_full() {
    let directory = tempfile::tempdir().unwrap();
    let first = Store::open(options(directory.path())).unwrap();
    first.create(&first.path(b"a.rrd"), &definition()).unwrap();
    first.close();
    drop(first);
    let store = Store::open(Options {
        least_free: u64::MAX,
        ..options(directory.path())
    });
    let store = store.unwrap();
    let error = store.create(&store.path(b"b/b.rrd"), &definition());
    let error = error.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let message = error.to_string();
    let directory = directory.path().join("data/b");
    let place = format!("the disk of `{}` has ", directory.display());
    assert!(message.starts_with(&place), "{message}");
    assert!(message.contains("`write.least-free-mib`"), "{message}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    give(&store, "a.rrd", &format!("{}:1", START + 1)).unwrap();
    store.close();
    assert_eq!(last(&store, "a.rrd").0, Time::from_seconds(START + 1));
}

/// Each start reports them.
#[test]
fn damaged_files_are_reported_until_they_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    let damaged = journal.join("kymo.journal.000000000001.damaged");
    std::fs::write(&damaged, "x").unwrap();
    for count in [1, 1, 0] {
        if count == 0 {
            std::fs::remove_file(&damaged).unwrap();
        }
        let (store, log) = open_with_log(options(directory.path()));
        assert_eq!(store.journal().unwrap().damaged(), count);
        let report = format!("`{}` has {count} damaged files", journal.display());
        let log = log.lock().unwrap().clone();
        let is_reported = log.iter().any(|line| line.starts_with(&report));
        assert_eq!(is_reported, count > 0, "{log:?}");
        store.close();
    }
}

/// A client that suspends one database and goes away does not affect other databases.
#[test]
fn a_suspended_database_has_a_share_of_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    for name in ["a.rrd", "b.rrd"] {
        store
            .create(&store.path(name.as_bytes()), &definition())
            .unwrap();
    }
    let database = store.database(&store.path(b"a.rrd")).unwrap();
    store.suspend(&database);
    for second in 1..100_000 {
        give(&store, "a.rrd", &format!("{}:1", START + second)).unwrap();
        if store.counters.suspensions_ended.load(Relaxed) > 0 {
            break;
        }
    }
    assert_eq!(store.counters.suspensions_ended.load(Relaxed), 1);
    wait_until(|| store.pending_bytes() == 0);
    give(&store, "b.rrd", &format!("{}:1", START + 1)).unwrap();
    store.close();
}
