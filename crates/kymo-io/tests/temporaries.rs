//! Removing all temporary files of a process: this test is alone in its own.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use kymo_io::{
    NewFile, Replace, Temporaries, before_temporaries, list, remove_temporaries, replace,
};

static PREPARED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn all_are_removed_and_none_is_created_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    before_temporaries(|| {
        PREPARED.fetch_add(1, Ordering::Relaxed);
    });
    let write =
        |name: &str| NewFile::write(&path(name), Replace::NEW, |file| file.write_all(b"new"));
    assert_eq!(PREPARED.load(Ordering::Relaxed), 0);
    std::fs::write(path("old"), "old").unwrap();
    // One that has its name, one that was dropped, one that never gets its name.
    let (whole, ()) = write("whole").unwrap();
    whole.put().unwrap();
    drop(write("dropped").unwrap());
    let (waits, ()) = write("old").unwrap();
    // And a directory.
    let folder = path(".folder.0.new");
    {
        let temporaries = Temporaries::hold();
        std::fs::create_dir_all(folder.join("below")).unwrap();
        std::fs::write(folder.join("below/file"), "").unwrap();
        temporaries.add(&folder);
    }
    assert_eq!(PREPARED.load(Ordering::Relaxed), 1);
    assert_eq!(list(directory.path()).unwrap().len(), 4);

    let removed = remove_temporaries();
    let names = || {
        let entries = list(directory.path()).unwrap().into_iter();
        entries.map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["old", "whole"]);
    assert_eq!(std::fs::read(path("old")).unwrap(), b"old");

    // Other threads wait while no temporary files may be created.
    let (done, is_done) = channel();
    let later = path("later");
    let other = std::thread::spawn(move || {
        let put = waits.put();
        let written = replace(&later, Replace::NEW, |file| file.write_all(b"later"));
        done.send(()).unwrap();
        (put, written)
    });
    let waited = is_done.recv_timeout(Duration::from_millis(100));
    assert_eq!(waited, Err(RecvTimeoutError::Timeout));
    assert_eq!(names(), ["old", "whole"]);
    drop(removed);
    let (put, written) = other.join().unwrap();
    assert_eq!(put.unwrap_err().kind(), io::ErrorKind::NotFound);
    written.unwrap();
    assert_eq!(names(), ["later", "old", "whole"]);
}
