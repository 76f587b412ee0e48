//! Datagrams of collectd's network plugin.
//!
//! Each address has a thread that only receives: datagrams go to one of several workers, those of a sender
//! always to the same, so that its lists stay in order. What waits for workers is bounded; what has no
//! room is counted, and so is what the kernel had no room for.

mod listener;
mod queue;
mod socket;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use kymo_collectd::network::{Item, Repeats, Security};
use kymo_time::CdTime;

use crate::ingest::{Ingest, Session};
use crate::listen::{Running, stop};
use crate::store::Log;
use listener::Listener;
use queue::{Batch, Queue};

/// Where datagrams are received, and what is taken of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An address of this machine, a group, or a name of either.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What is not protected so far is left out.
    pub level: Security,
    /// Users and their passwords; read again when it has changed.
    pub auth_file: Option<PathBuf>,
    /// Only what comes by this interface.
    pub interface: Option<String>,
    /// Protected lists whose times are further from now, and protected datagrams that were received
    /// before, are refused, if there is such a window.
    pub replay_window: Option<CdTime>,
}

/// How datagrams are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where.
    pub listen: Vec<Listen>,
    /// Threads that decode.
    pub workers: usize,
    /// Bytes of datagrams that may wait for them.
    pub queue: usize,
    /// Bytes that the kernel may keep of each address.
    pub receive_buffer: usize,
    /// So many lists are remembered, and of those that come again only the first is taken.
    pub deduplicate: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            queue: 64 << 20,
            receive_buffer: 16 << 20,
            deduplicate: None,
        }
    }
}

/// What was received.
#[derive(Debug, Default)]
pub struct Counters {
    /// Datagrams.
    pub datagrams: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Datagrams for which there was no room.
    pub dropped: AtomicU64,
    /// Datagrams for which the kernel had no room.
    pub kernel_dropped: AtomicU64,
    /// What was wrong with datagrams.
    pub faults: AtomicU64,
    /// Lists that had come before.
    pub repeated: AtomicU64,
}

/// Sockets that receive, and threads that decode.
#[derive(Debug)]
pub struct Receiver {
    running: Option<Running>,
    receivers: Vec<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
    listeners: Vec<Arc<Listener>>,
}

/// What all threads share.
#[derive(Debug)]
struct Shared {
    queues: Vec<Queue>,
    counters: Counters,
    repeats: Option<Mutex<Repeats>>,
}

impl Receiver {
    /// Begins to receive.
    ///
    /// # Errors
    ///
    /// Addresses that cannot be listened at, files of passwords that cannot be read.
    pub fn start(options: &Options, ingest: &Arc<Ingest>, log: &Log) -> io::Result<Self> {
        let workers = options.workers.max(1);
        let room = options.queue / workers;
        let shared = Arc::new(Shared {
            queues: (0..workers).map(|_| Queue::new(room)).collect(),
            counters: Counters::default(),
            repeats: options
                .deduplicate
                .map(|room| Mutex::new(Repeats::new(room))),
        });
        let mut listeners = Vec::new();
        for listen in &options.listen {
            let sockets = socket::bind(listen, options.receive_buffer);
            let sockets = sockets.map_err(|error| {
                let place = format!("{}, port {}", listen.host, listen.port);
                io::Error::new(error.kind(), format!("{place}: {error}"))
            })?;
            for socket in sockets {
                listeners.push(Arc::new(Listener::new(listen, socket, log)?));
            }
        }
        let mut receiver = Self {
            running: None,
            receivers: Vec::new(),
            workers: Vec::new(),
            shared,
            listeners,
        };
        for index in 0..workers {
            let shared = Arc::clone(&receiver.shared);
            let session = ingest.session();
            let ingest = Arc::clone(ingest);
            let thread = std::thread::Builder::new().name(format!("collectd {index}"));
            let worker = Worker {
                shared,
                session,
                ingest,
                values: Vec::new(),
            };
            receiver
                .workers
                .push(thread.spawn(move || worker.run(index))?);
        }
        let (running, stop) = stop()?;
        receiver.running = Some(running);
        let stop = Arc::new(stop);
        for listener in &receiver.listeners {
            let (listener, stop) = (Arc::clone(listener), Arc::clone(&stop));
            let shared = Arc::clone(&receiver.shared);
            let thread = std::thread::Builder::new().name("receiver".into());
            let work = move || listener.receive(&shared, &stop);
            receiver.receivers.push(thread.spawn(work)?);
        }
        Ok(receiver)
    }

    /// What was received.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Bytes that wait to be decoded.
    pub fn waiting(&self) -> usize {
        self.shared.queues.iter().map(Queue::bytes).sum()
    }

    /// The addresses at which it receives.
    pub fn addresses(&self) -> Vec<std::net::SocketAddr> {
        self.listeners.iter().map(|it| it.address).collect()
    }

    /// Reads the files of passwords again.
    ///
    /// # Errors
    ///
    /// What is wrong with one; the passwords before hold on then.
    pub fn reload(&self) -> Result<(), String> {
        self.listeners.iter().try_for_each(|it| it.reload())
    }

    /// Receives no more, decodes what was received, and ends all threads.
    pub fn stop(&mut self) {
        drop(self.running.take());
        // Threads that panicked have told so.
        for thread in self.receivers.drain(..) {
            let _ = thread.join();
        }
        self.shared.queues.iter().for_each(Queue::end);
        for thread in self.workers.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Decodes.
struct Worker {
    shared: Arc<Shared>,
    session: Session,
    ingest: Arc<Ingest>,
    values: Vec<kymo_collectd::Value>,
}

impl Worker {
    fn run(mut self, index: usize) {
        let shared = Arc::clone(&self.shared);
        while let Some(batch) = shared.queues[index].take() {
            self.batch(&batch);
        }
    }

    fn batch(&mut self, batch: &Batch) {
        let decoder = batch.listener.decoder();
        for (sender, datagram) in batch.datagrams() {
            let sink = &mut |item: Item<'_>| match item {
                Item::Values(list) => {
                    if let Some(repeats) = &self.shared.repeats {
                        let mut repeats = repeats.lock().unwrap_or_else(PoisonError::into_inner);
                        if !repeats.is_first(&list.id, list.time) {
                            self.shared.counters.repeated.fetch_add(1, Relaxed);
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
                    let notification = received.notification;
                    let (severity, id) = (notification.severity, notification.id.canonical());
                    let message = kymo_text::visible(notification.message);
                    self.ingest
                        .notify(format_args!("{severity}: {id}: {message}"));
                }
                Item::Fault(fault) => {
                    self.shared.counters.faults.fetch_add(1, Relaxed);
                    self.ingest.complain(format_args!("{sender}: {fault}"));
                }
            };
            batch.listener.decode(&decoder, datagram, sink);
        }
    }
}
