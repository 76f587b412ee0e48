//! What was acknowledged stays until it is in its file, whatever is in the way.

use std::path::PathBuf;

use super::*;

/// Collects what is logged.
fn listen(options: &mut Options) -> Arc<Mutex<String>> {
    let reported = Arc::new(Mutex::new(String::new()));
    options.log = {
        let reported = Arc::clone(&reported);
        Arc::new(move |_, text: &str| *reported.lock().unwrap() += &format!("{text}\n"))
    };
    reported
}

/// A store that was killed with updates of `disk/a.rrd` and of another database; what is open of it keeps
/// the lock of its journal, which has another directory in the options.
fn killed() -> (tempfile::TempDir, Arc<Store>, tempfile::TempDir, Options) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    for name in ["disk/a.rrd", "b.rrd"] {
        store
            .create(&store.path(name.as_bytes()), &definition())
            .unwrap();
        give(&store, name, &format!("{}:1", START + 1)).unwrap();
    }
    let (journal, options) = left(&store, &journal(directory.path()));
    (directory, store, journal, options)
}

fn rename(from: PathBuf, to: PathBuf) {
    std::fs::rename(from, to).unwrap();
}

/// Databases may be on a disk that is mounted later.
#[test]
fn nothing_begins_where_all_databases_are_missing() {
    let (directory, _killed, journal, mut options) = killed();
    let base = options.base.clone();
    let away = directory.path().join("away");
    rename(base.clone(), away.clone());
    let reported = listen(&mut options);
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir(&base).unwrap();
        }
        let error = Store::open(options.clone()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let expected = format!(
            "`{}`: there is nothing, but the journal has 2 updates",
            base.display()
        );
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(base.exists(), is_there);
        assert_eq!(journals(journal.path()), 1);
    }
    assert!(!reported.lock().unwrap().contains("lost"));
    std::fs::remove_dir(&base).unwrap();
    rename(away, base);
    let store = Store::open(options).unwrap();
    store.close();
    for name in ["disk/a.rrd", "b.rrd"] {
        assert_eq!(last(&store, name).0, Time::from_seconds(START + 1));
    }
    assert_eq!(journals(journal.path()), 0);
}

/// Some databases may be on such a disk, too: it is mounted at a directory that is empty without it, or that
/// is not there.
#[test]
fn what_is_not_there_yet_waits_in_the_journal() {
    for is_there in [false, true] {
        let (_directory, _killed, journal, mut options) = killed();
        let disk = options.base.join("disk");
        let away = options.base.join("away");
        rename(disk.clone(), away.clone());
        if is_there {
            std::fs::create_dir(&disk).unwrap();
        }
        let reported = listen(&mut options);
        for _ in 0..2 {
            let store = Store::open(options.clone()).unwrap();
            assert!(store.known(&store.path(b"disk/a.rrd")).is_none());
            assert!(store.has(&store.path(b"disk/a.rrd")));
            store.close();
            assert_eq!(journals(journal.path()), 1);
        }
        let texts = reported.lock().unwrap().clone();
        assert!(texts.contains("disk/a.rrd: is in the journal, but cannot be opened"));
        assert!(!texts.contains("lost"), "{texts}");
        // It comes back while the daemon is there.
        let store = Store::open(options.clone()).unwrap();
        if is_there {
            std::fs::remove_dir(&disk).unwrap();
        }
        rename(away, disk);
        let database = store.database(&store.path(b"disk/a.rrd")).unwrap();
        assert_eq!(
            database.pending(),
            [format!("{}:1", START + 1).into_bytes()]
        );
        assert_eq!(store.flush(&database), Flushed::Written);
        assert_eq!(store.pending_bytes(), 0);
        store.close();
        assert_eq!(last(&store, "disk/a.rrd").0, Time::from_seconds(START + 1));
        assert_eq!(journals(journal.path()), 0);
    }
}

/// A file that is gone from among others was removed; and what waits can be forgotten.
#[test]
fn what_was_removed_is_not_waited_for() {
    let (_directory, _killed, journal, mut options) = killed();
    std::fs::remove_file(options.base.join("b.rrd")).unwrap();
    std::fs::remove_file(options.base.join("disk/a.rrd")).unwrap();
    let reported = listen(&mut options);
    let store = Store::open(options).unwrap();
    let text = reported.lock().unwrap().clone();
    assert!(
        text.contains("b.rrd: is in the journal, but was removed: 1 updates are lost"),
        "{text}"
    );
    assert_eq!(store.counters.dropped.load(Relaxed), 1);
    let path = store.path(b"disk/a.rrd");
    assert!(!store.has(&store.path(b"b.rrd")) && store.has(&path));
    assert!(store.forget(&path).unwrap());
    assert!(!store.has(&path) && !store.forget(&path).unwrap());
    store.close();
    assert_eq!(journals(journal.path()), 0);
}

/// If a database is missing, whoever needs one gets a new one that takes the pending updates.
#[test]
fn a_database_that_is_made_anew_gets_what_waits() {
    let (_directory, _killed, journal, options) = killed();
    std::fs::remove_file(options.base.join("disk/a.rrd")).unwrap();
    let store = Store::open(options).unwrap();
    let path = store.path(b"disk/a.rrd");
    assert_eq!(
        store.waits_since(&path),
        Some(Time::from_seconds(START + 1))
    );
    store.create_new(&path, &definition()).unwrap();
    assert_eq!(store.database(&path).unwrap().pending().len(), 1);
    assert_eq!(store.waits_since(&path), None);
    store.close();
    assert_eq!(last(&store, "disk/a.rrd").0, Time::from_seconds(START + 1));
    assert_eq!(journals(journal.path()), 0);
}

/// What cannot be written makes a journal longer than its limit: that keeps nobody from beginning, nor from
/// going on.
#[test]
fn a_journal_may_have_more_than_was_reported() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    store.create(&store.path(b"a.rrd"), &definition()).unwrap();
    for second in 1..100 {
        give(&store, "a.rrd", &format!("{}:1", START + second)).unwrap();
    }
    let bytes = journal(directory.path());
    let (again, mut options) = left(&store, &bytes);
    let most = bytes.len() as u64 / 20;
    options.journal.as_mut().unwrap().most_bytes = most;
    let store = Store::open(options).unwrap();
    assert!(journal(again.path()).len() as u64 > 8 * most);
    give(&store, "a.rrd", &format!("{}:1", START + 100)).unwrap();
    let rotations = &store.journal().unwrap().rotations;
    assert_eq!(rotations.load(Relaxed), 0);
    store.close();
    assert_eq!(last(&store, "a.rrd").0, Time::from_seconds(START + 100));
}

/// A panic of a writer loses no updates and blocks no client forever.
#[test]
fn a_writer_that_panics_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.writers = 1;
    let panics = Arc::new(AtomicU64::new(1));
    options.log = {
        let panics = Arc::clone(&panics);
        Arc::new(move |_, text: &str| {
            let panics = text.contains("an update is refused") && panics.swap(0, Relaxed) > 0;
            assert!(!panics, "the writer is to go on");
        })
    };
    let store = Store::open(options).unwrap();
    for name in ["a.rrd", "b.rrd"] {
        store
            .create(&store.path(name.as_bytes()), &definition())
            .unwrap();
    }
    for text in ["1:1", "2:x", "3:3"] {
        let (second, value) = text.split_once(':').unwrap();
        let second = START + second.parse::<i64>().unwrap();
        give(&store, "a.rrd", &format!("{second}:{value}")).unwrap();
    }
    give(&store, "b.rrd", &format!("{}:1", START + 1)).unwrap();
    let [a, b] = ["a.rrd", "b.rrd"].map(|name| store.known(&store.path(name.as_bytes())).unwrap());
    let Flushed::Failed(reason) = store.flush(&a) else {
        panic!("it was written");
    };
    assert_eq!(reason, "a fault of this program: the writer is to go on");
    assert_eq!(store.counters.write_errors.load(Relaxed), 1);
    assert_eq!(a.pending().len(), 3);
    assert_eq!(store.flush(&b), Flushed::Written);
    assert_eq!(store.flush(&a), Flushed::Written);
    assert_eq!(a.pending().len(), 0);
    store.close();
    assert_eq!(
        last(&store, "a.rrd"),
        (Time::from_seconds(START + 3), "3".into())
    );
}

/// Durable databases take all ways that others do; a portable one is on the disk after each update.
#[test]
fn what_is_durable_is_synced() {
    for target in [Target::Native(Machine::native()), Target::Portable] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        options.target = target;
        options.base = directory.path().join("data/below");
        options.journal.as_mut().unwrap().durable = true;
        let store = Store::open(options.clone()).unwrap();
        let path = store.path(b"host/a.rrd");
        store.create(&path, &definition()).unwrap();
        for second in 1..=6 {
            give(&store, "host/a.rrd", &format!("{}:1", START + second)).unwrap();
        }
        let database = store.database(&path).unwrap();
        assert_eq!(store.flush(&database), Flushed::Written);
        let bytes = std::fs::read(options.base.join("host/a.rrd")).unwrap();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        if target == Target::Portable {
            // As docs/formats/portable-rrd.md specifies it.
            let (slots, size) = (number(24) as usize, number(32) as usize);
            let slot = |slot| (number(slot + 8), number(slot + 16));
            let latest = slot(slots).max(slot(slots + size));
            assert_eq!(
                latest,
                (6, 5),
                "the number of the update, and that which is synced"
            );
        }
        // And from the journal of one that was killed.
        give(&store, "host/a.rrd", &format!("{}:1", START + 7)).unwrap();
        let (_journal, mut again) = left(&store, &journal(directory.path()));
        again.journal.as_mut().unwrap().durable = true;
        let store = Store::open(again).unwrap();
        assert_eq!(store.database(&path).unwrap().pending().len(), 1);
        store.close();
        assert_eq!(last(&store, "host/a.rrd").0, Time::from_seconds(START + 7));
    }
}
