//! Threads that decode.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use kymo_collectd::network::Item;

use super::queue::{Batch, Queue};
use super::{Options, Shared};
use crate::ingest::{Ingest, Origin, Session};

/// Workers, and what waits for each of them.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) queues: Arc<[Queue]>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Begins to wait for datagrams.
    pub(super) fn start(
        options: &Options,
        shared: &Arc<Shared>,
        ingest: &Arc<Ingest>,
    ) -> io::Result<Self> {
        let count = options.workers.max(1);
        let room = options.queue / count;
        let mut workers = Self {
            queues: (0..count).map(|_| Queue::new(room)).collect(),
            threads: Vec::new(),
        };
        for index in 0..count {
            let worker = Worker {
                shared: Arc::clone(shared),
                queues: Arc::clone(&workers.queues),
                session: ingest.session(Origin::Datagrams),
                ingest: Arc::clone(ingest),
                values: Vec::new(),
            };
            let thread = std::thread::Builder::new().name(format!("collectd {index}"));
            workers
                .threads
                .push(thread.spawn(move || worker.run(index))?);
        }
        Ok(workers)
    }

    /// Bytes of datagrams that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(Queue::bytes).sum()
    }
}

impl Drop for Workers {
    /// Decodes what waits, and ends.
    fn drop(&mut self) {
        self.queues.iter().for_each(Queue::end);
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}

/// Decodes.
struct Worker {
    shared: Arc<Shared>,
    queues: Arc<[Queue]>,
    session: Session,
    ingest: Arc<Ingest>,
    values: Vec<kymo_collectd::Value>,
}

impl Worker {
    fn run(mut self, index: usize) {
        let queues = Arc::clone(&self.queues);
        while let Some(batch) = queues[index].take() {
            self.batch(&batch);
        }
    }

    fn batch(&mut self, batch: &Batch) {
        let decoder = batch.listener.decoder();
        let counters = &batch.listener.counters;
        let shared = Arc::clone(&self.shared);
        let repeats = shared
            .repeats
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        self.session.begin();
        for (sender, datagram) in batch.datagrams() {
            self.session.set_sender(sender.ip());
            let sink = &mut |item: Item<'_>| match item {
                Item::Values(list) => {
                    if let Some(repeats) = &*repeats {
                        let mut repeats = repeats.lock().unwrap_or_else(PoisonError::into_inner);
                        if !repeats.is_first(&list.id, list.time) {
                            counters.repeated.fetch_add(1, Relaxed);
                            return;
                        }
                    }
                    self.values.clear();
                    self.values.extend(list.values.iter());
                    let taken =
                        self.session
                            .take(&list.id, list.time, list.interval, &self.values, false);
                    if let Err(problem) = taken {
                        let id = list.id.canonical();
                        self.ingest
                            .complain(format_args!("{sender}: {id}: {problem}"));
                    }
                }
                Item::Notification(received) => {
                    self.session.notify(&received.notification);
                }
                Item::Fault(fault) => {
                    counters.fault(&fault.problem);
                    self.ingest.complain(format_args!("{sender}: {fault}"));
                }
            };
            batch
                .listener
                .decode(&decoder, datagram, &shared.replay, sink);
        }
        self.session.note();
    }
}
