//! Work in other threads, which a child that came of a fork does not have.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Error;

/// How long a call waits until it looks whether Ctrl-C was pressed.
const PATIENCE: Duration = Duration::from_millis(50);

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks of Python are between this process and the one that loaded the module.
///
/// Asking the system for the number of the process takes longer than reading an event.
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

#[pyfunction]
fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Begins to count forks, where the system has them.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    if let Some(register) = os.getattr_opt("register_at_fork")? {
        let options = PyDict::new(py);
        options.set_item("after_in_child", wrap_pyfunction!(in_child, py)?)?;
        register.call((), Some(&options))?;
    }
    Ok(())
}

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

/// Why an iterator has no more events in a child.
pub(crate) fn forked() -> PyErr {
    PyRuntimeError::new_err("this iterator was made before the process was forked: create it again")
}

/// What a thread makes, a few ahead of who takes it.
#[derive(Debug)]
pub(crate) struct Ahead<T>(OfProcess<Worker<T>>);

#[derive(Debug)]
struct Worker<T> {
    stopped: Arc<AtomicBool>,
    /// No other thread waits for it: the mutex only allows objects to move to other threads.
    made: Option<Mutex<Receiver<T>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts work that ends when nothing receives what it sends any longer; it is waited for, so that it looks
    /// whether it is stopped while it has nothing to send.
    pub(crate) fn spawn(
        work: impl FnOnce(SyncSender<T>, &AtomicBool) + Send + 'static,
    ) -> PyResult<Self> {
        let (sender, made) = sync_channel(4);
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let thread = std::thread::Builder::new()
            .name("kymo".to_owned())
            .spawn(move || work(sender, &flag))?;
        Ok(Self(OfProcess::new(Worker {
            stopped,
            made: Some(Mutex::new(made)),
            thread: Some(thread),
        })))
    }

    /// The next one; `None` at the end. Ctrl-C interrupts the wait.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<T>> {
        let worker = self.0.get().ok_or_else(forked)?;
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

impl<T> Ahead<T> {
    /// Does not wait for the work at the end: what cannot be stopped ends in its thread.
    pub(crate) fn leave(&mut self) {
        if let Some(worker) = self.0.get() {
            worker.thread = None;
        }
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        // Whoever sends meets an error, and ends.
        self.stopped.store(true, Ordering::Relaxed);
        self.made = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What becomes of work when Ctrl-C is pressed.
pub(crate) enum Interrupted<'s> {
    /// It is stopped, and not waited for: work that cannot be stopped ends in its thread.
    Left(&'s dyn Fn()),
    /// It is waited for, since it writes.
    Finished,
}

/// Does work in a thread, without the lock of the interpreter, and waits for it.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    interrupted: Interrupted<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut made) = sync_channel(1);
    std::thread::Builder::new()
        .name("kymo".to_owned())
        .spawn(move || {
            // Nobody may wait any longer.
            let _ = sender.send(work());
        })?;
    let mut signal = Ok(());
    loop {
        let receiver = &mut made;
        match py.detach(move || receiver.recv_timeout(PATIENCE)) {
            Ok(made) => return signal.map(|()| made),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new_err("a thread panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        match (py.check_signals(), &interrupted) {
            (Err(error), Interrupted::Left(stop)) => {
                stop();
                return Err(error);
            }
            (Err(error), Interrupted::Finished) => signal = Err(error),
            (Ok(()), _) => {}
        }
    }
}
