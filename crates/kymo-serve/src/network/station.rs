//! A listener and its thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::Shared;
use super::listener::Listener;
use super::queue::Queue;
use crate::listen::{Running, stop};

/// A listener whose thread waits until it is to [begin](Self::begin).
#[derive(Debug)]
pub(super) struct Station {
    pub(super) listener: Arc<Listener>,
    begin: Option<SyncSender<()>>,
    running: Option<Running>,
    thread: Option<JoinHandle<()>>,
}

impl Station {
    pub(super) fn start(
        listener: Arc<Listener>,
        shared: &Arc<Shared>,
        queues: &Arc<[Queue]>,
    ) -> io::Result<Self> {
        let (running, stop) = stop()?;
        let (begin, begins) = sync_channel(1);
        let (receives, shared, queues) = (
            Arc::clone(&listener),
            Arc::clone(shared),
            Arc::clone(queues),
        );
        let thread = std::thread::Builder::new().name("receiver".into());
        let thread = thread.spawn(move || {
            // Where nothing is sent, other things could not be done that were to be done with this.
            if begins.recv().is_ok() {
                receives.receive(&shared, &queues, &stop);
            }
        })?;
        Ok(Self {
            listener,
            begin: Some(begin),
            running: Some(running),
            thread: Some(thread),
        })
    }

    /// Begins to receive.
    pub(super) fn begin(&mut self) {
        self.listener.report();
        if let Some(begin) = self.begin.take() {
            // Its thread waits for this.
            let _ = begin.send(());
        }
    }
}

impl Drop for Station {
    /// Receives what the kernel has, and ends.
    fn drop(&mut self) {
        drop(self.begin.take());
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}
