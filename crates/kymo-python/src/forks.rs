//! Work in other threads, which a child that came of a fork does not have.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::Error;

/// How long a call waits until it looks whether Ctrl-C was pressed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Something that belongs to threads of the process that made it.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    process: u32,
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            process: std::process::id(),
            value: Some(value),
        }
    }

    /// What it is, in the process that made it.
    pub(crate) fn get(&mut self) -> Option<&mut T> {
        match self.process == std::process::id() {
            true => self.value.as_mut(),
            false => None,
        }
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        // Its threads do not exist in this process: nothing would answer.
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

/// What a thread makes, a few ahead of who takes it.
#[derive(Debug)]
pub(crate) struct Ahead<T>(OfProcess<Worker<T>>);

#[derive(Debug)]
struct Worker<T> {
    /// No other thread waits for it: the mutex only allows objects to move to other threads.
    made: Option<Mutex<Receiver<T>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts work that ends when nothing receives what it sends any longer.
    pub(crate) fn spawn(work: impl FnOnce(SyncSender<T>) + Send + 'static) -> PyResult<Self> {
        let (sender, made) = sync_channel(4);
        let thread = std::thread::Builder::new()
            .name("kymo".to_owned())
            .spawn(move || work(sender))?;
        Ok(Self(OfProcess::new(Worker {
            made: Some(Mutex::new(made)),
            thread: Some(thread),
        })))
    }

    /// The next one; `None` at the end. Ctrl-C interrupts the wait.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<T>> {
        let worker = self.0.get().ok_or_else(|| {
            PyRuntimeError::new_err(
                "this iterator was made before the process was forked: create it again",
            )
        })?;
        loop {
            let Some(made) = &mut worker.made else {
                return Ok(None);
            };
            let made = made.get_mut().unwrap_or_else(PoisonError::into_inner);
            match py.detach(move || made.recv_timeout(PATIENCE)) {
                Ok(made) => return Ok(Some(made)),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    worker.made = None;
                    let thread = worker.thread.take();
                    if thread.is_some_and(|thread| py.detach(|| thread.join()).is_err()) {
                        return Err(Error::new_err("a thread panicked"));
                    }
                }
            }
        }
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        // Whoever sends meets an error, and ends.
        self.made = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Does work in a thread, without the lock of the interpreter, and waits for it. When Ctrl-C is pressed, `stop` is
/// called; the work is to end soon then.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: impl Fn() + Sync,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(work);
        let mut interrupted = Ok(());
        while !thread.is_finished() {
            if interrupted.is_ok() {
                interrupted = py.check_signals();
                if interrupted.is_err() {
                    stop();
                }
            }
            py.detach(|| std::thread::park_timeout(Duration::from_millis(2)));
        }
        let done = py.detach(|| thread.join());
        interrupted?;
        done.map_err(|_| Error::new_err("a thread panicked"))
    })
}
