//! Mapped files that are made before they are needed: what a new file costs is the business of a thread of the
//! recorder's own, and so is what an old one costs at its end.
//!
//! A stream asks for a file when about half of the one that it has is full, and takes it when all of it is.
//! If there is no file yet, the recording thread creates it: it never waits.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use kymo_io::{Process, SharedWords};

use crate::encode::WORD;

/// What a file is called as long as it is a spare one, between a dot, and its number and `.new`: readers pass over files
/// that are not whole, which are called like this.
pub(crate) const SPARE: &str = "spare";

/// Bytes that are written at once: systems that find room for larger pieces map them in larger pieces, too.
const PIECE: usize = 1 << 16;

/// A mapped file of zeros that is not part of a trace yet. It is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Spare {
    /// Where it is, as long as it is a spare one.
    path: Option<PathBuf>,
    words: Arc<SharedWords>,
}

impl Spare {
    /// Makes a file; `number` distinguishes it from all others of the recording.
    ///
    /// # Errors
    ///
    /// Those of the system. No file is left then.
    fn make(directory: &Path, number: usize, bytes: usize) -> io::Result<Self> {
        let path = directory.join(format!(".{SPARE}.{number}.new"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let mut file = options.open(&path)?;
        let zeros = vec![0; PIECE.min(bytes)];
        let mut fill = || {
            // The disk has to have room for each of its bytes before they are stored through the mapping.
            let mut left = bytes;
            while left > 0 {
                let some = left.min(PIECE);
                file.write_all(&zeros[..some])?;
                left -= some;
            }
            SharedWords::map(&file, bytes / WORD)
        };
        match fill() {
            Ok(words) => Ok(Self {
                path: Some(path),
                words: Arc::new(words),
            }),
            Err(error) => {
                // The error that is reported is the one that led here.
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// What is in it.
    pub(crate) fn words(&self) -> &SharedWords {
        &self.words
    }

    /// Gives the file its place in the trace.
    ///
    /// # Errors
    ///
    /// Those of the system. No file is left then.
    pub(crate) fn place(mut self, path: &Path) -> io::Result<Arc<SharedWords>> {
        if let Some(spare) = &self.path {
            std::fs::rename(spare, path)?;
        }
        self.path = None;
        Ok(Arc::clone(&self.words))
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // At worst it stays, and readers pass over it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The spare files of a recording, and the thread that makes them.
#[derive(Debug)]
pub(crate) struct Spares {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: Process,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    /// Bytes of a file.
    bytes: usize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many streams have asked for one.
    wanted: usize,
    ready: Vec<Spare>,
    /// What streams no longer need.
    old: Vec<Arc<SharedWords>>,
    /// How many files were begun.
    made: usize,
    is_closed: bool,
}

impl Spares {
    /// No files yet.
    ///
    /// # Errors
    ///
    /// Those of beginning a thread.
    pub(crate) fn start(directory: &Path, bytes: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            directory: directory.to_path_buf(),
            bytes,
            state: Mutex::default(),
            work: Condvar::new(),
        });
        let thread = std::thread::Builder::new()
            .name("kymo-tracing".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.work()
            })?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            process: Process::this(),
        })
    }

    /// A stream will need a file.
    pub(crate) fn ask(&self) {
        self.shared.lock().wanted += 1;
        self.shared.work.notify_one();
    }

    /// A file for a stream; `has_asked` says whether it was asked for.
    ///
    /// # Errors
    ///
    /// Those of making a file where none is ready.
    pub(crate) fn take(&self, has_asked: bool) -> io::Result<Spare> {
        let mut state = self.shared.lock();
        state.wanted -= usize::from(has_asked && state.wanted > 0);
        if let Some(spare) = state.ready.pop() {
            drop(state);
            // It may have been for another one.
            self.shared.work.notify_one();
            return Ok(spare);
        }
        let number = state.next_number();
        drop(state);
        Spare::make(&self.shared.directory, number, self.shared.bytes)
    }

    /// A stream needs a file no more.
    pub(crate) fn release(&self, old: Arc<SharedWords>) {
        let mut state = self.shared.lock();
        // After the end of the recording, no thread is left to release it.
        if !state.is_closed {
            state.old.push(old);
            drop(state);
            self.shared.work.notify_one();
        }
    }

    /// Ends the thread and removes the files that are no longer needed.
    pub(crate) fn close(&self) {
        if !self.process.is_this() {
            // After a fork, this process does not have the thread, and the files are the parent's.
            if let Ok(mut thread) = self.thread.try_lock() {
                std::mem::forget(thread.take());
            }
            return;
        }
        self.shared.lock().is_closed = true;
        self.shared.work.notify_one();
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It does nothing that panics.
            let _ = thread.join();
        }
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes files, and lets old ones go, until the recording ends.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(old) = state.old.pop() {
                drop(state);
                drop(old);
            } else if state.is_closed {
                let ready = std::mem::take(&mut state.ready);
                drop(state);
                return drop(ready);
            } else if state.ready.len() < state.wanted {
                let number = state.next_number();
                drop(state);
                let spare = Spare::make(&self.directory, number, self.bytes);
                state = self.lock();
                match spare {
                    Ok(spare) => state.ready.push(spare),
                    // Whoever needs it tries again, and reports the error.
                    Err(_) => state.wanted = state.wanted.saturating_sub(1),
                }
                continue;
            } else {
                let waited = self.work.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state = self.lock();
        }
    }
}

impl State {
    fn next_number(&mut self) -> usize {
        self.made += 1;
        self.made
    }
}
