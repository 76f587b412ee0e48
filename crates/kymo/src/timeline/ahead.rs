//! A thread that works ahead of whoever takes what it makes.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// What a thread makes, one ahead of the one in the making. The thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Ahead<T> {
    made: Option<Receiver<T>>,
    worker: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts the work, which ends when its output is no longer taken.
    pub(super) fn spawn(work: impl FnOnce(SyncSender<T>) + Send + 'static) -> io::Result<Self> {
        let (sender, made) = sync_channel(1);
        let worker = std::thread::Builder::new().spawn(move || work(sender))?;
        Ok(Self {
            made: Some(made),
            worker: Some(worker),
        })
    }
}

impl<T> Iterator for Ahead<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if let Ok(made) = self.made.as_ref()?.recv() {
            return Some(made);
        }
        self.made = None;
        if let Some(Err(panic)) = self.worker.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        None
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        // Whoever sends meets an error, and ends.
        self.made = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
