//! A socket, what is taken of its datagrams, and the thread that receives them.

use std::fs::Metadata;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use kymo_collectd::network::{Decoder, Item, Keys, ReplayWindow, Security};
use kymo_io::net::is_loopback;
use nix::errno::Errno;

use super::queue::{Batch, Queue};
use super::replay::Window;
use super::socket::Bound;
use super::{Counters, Listen, Shared};
use crate::ingest::now;
use crate::listen::Stop;
use crate::log::Level;
use crate::store::{Log, LogOf};
use crate::sync::lock;

/// The largest datagram, and more, so that none is cut off.
const LARGEST: usize = 1 << 16;
/// Maximum size of a batch in bytes, so that workers begin early.
const BATCH: usize = 1 << 17;
/// Number of datagrams that are received before workers get them.
const ROUND: usize = 256;
/// So long nothing is received after what had come. Who woke up for each datagram would wake up a worker for
/// each too, and these take more time than its values; the kernel keeps what comes meanwhile.
const PAUSE: Duration = Duration::from_micros(500);
/// How often it is looked whether a file of passwords has changed.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of such rounds before it ends: what the kernel keeps in the largest usual buffer.
const LAST_ROUNDS: usize = 1 << 10;

/// A socket and what is taken of its datagrams.
#[derive(Debug)]
pub(super) struct Listener {
    /// Where it listens.
    pub(super) address: SocketAddr,
    pub(super) bound: Arc<Bound>,
    /// What was asked for.
    pub(super) listen: Listen,
    pub(super) counters: Arc<Counters>,
    decoder: Mutex<Arc<Decoder>>,
    log: LogOf,
}

/// What shows that a file has changed.
type Stamp = Option<(i64, i64, u64, u64)>;

fn stamp(path: &Path) -> Stamp {
    let state = |it: Metadata| (it.mtime(), it.mtime_nsec(), it.size(), it.ino());
    path.metadata().ok().map(state)
}

impl Listener {
    pub(super) fn new(
        listen: &Listen,
        bound: &Arc<Bound>,
        shared: &Shared,
        log: &Log,
    ) -> io::Result<Self> {
        let address = bound.socket.local_addr()?;
        let keys = listen.auth_file.as_deref().map(read_keys).transpose();
        let keys = keys.map_err(io::Error::other)?;
        if keys.is_none() && listen.level > Security::None {
            let problem = format!("{address}: its level of security needs a file of passwords");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let level = listen.level;
        Ok(Self {
            address,
            bound: Arc::clone(bound),
            listen: listen.clone(),
            counters: shared.counters.of(address),
            decoder: Mutex::new(Arc::new(Decoder { level, keys })),
            log: LogOf(Arc::clone(log)),
        })
    }

    /// Logs where it listens, and who may send what.
    pub(super) fn report(&self) {
        let address = self.address;
        (self.log.0)(Level::Info, &format!("collectd's datagrams at {address}"));
        if self.listen.level == Security::None && !is_loopback(address.ip()) {
            (self.log.0)(
                Level::Warning,
                &format!("{address}: values that are not signed are taken from other machines"),
            );
        }
    }

    /// The decoder that datagrams are currently read with.
    pub(super) fn decoder(&self) -> Arc<Decoder> {
        Arc::clone(&lock(&self.decoder))
    }

    /// Reads a datagram.
    pub(super) fn decode<S: FnMut(Item<'_>)>(
        &self,
        decoder: &Decoder,
        datagram: &[u8],
        memory: &Mutex<ReplayWindow>,
        sink: &mut S,
    ) {
        match self.listen.replay_window {
            Some(width) => {
                let now = now();
                decoder.decode(datagram, &mut Window { memory, width, now }, sink);
            }
            None => decoder.decode(datagram, &mut (), sink),
        }
    }

    /// Reads the file of passwords again.
    pub(super) fn reload(&self) -> Result<(), String> {
        let Some(path) = &self.listen.auth_file else {
            return Ok(());
        };
        let keys = Some(read_keys(path)?);
        let mut decoder = lock(&self.decoder);
        let level = decoder.level;
        *decoder = Arc::new(Decoder { level, keys });
        Ok(())
    }

    /// Receives until it is time to end.
    pub(super) fn receive(self: &Arc<Self>, shared: &Shared, queues: &[Queue], stop: &Stop) {
        let mut buffer = vec![0; LARGEST];
        let mut control = nix::cmsg_space!(u32);
        let auth = &self.listen.auth_file;
        let mut seen = auth.as_deref().and_then(stamp);
        let mut looked = Instant::now();
        while stop.wait(self.bound.socket.as_fd()).unwrap_or(false) {
            if let Some(path) = auth
                && looked.elapsed() > LOOK
            {
                looked = Instant::now();
                let found = stamp(path);
                if found != seen {
                    seen = found;
                    match self.reload() {
                        Ok(()) => {
                            (self.log.0)(Level::Info, &format!("{}: read again", path.display()))
                        }
                        Err(problem) => (self.log.0)(Level::Warning, &problem),
                    }
                }
            }
            if !self.round(shared, queues, &mut buffer, &mut control) {
                std::thread::sleep(PAUSE);
            }
        }
        // What the kernel has taken so far, and not what comes all the time.
        for _ in 0..LAST_ROUNDS {
            if !self.round(shared, queues, &mut buffer, &mut control) {
                break;
            }
        }
    }

    /// Receives what has come, and hands it over. Returns whether more may have come than is received at a time.
    fn round(
        self: &Arc<Self>,
        shared: &Shared,
        queues: &[Queue],
        buffer: &mut [u8],
        control: &mut [u8],
    ) -> bool {
        let counters = &self.counters;
        let kernel_dropped = counters.kernel_dropped.load(Relaxed);
        let mut batches: Vec<_> = queues.iter().map(|_| Batch::new(self)).collect();
        let mut has_more = true;
        for _ in 0..ROUND {
            let (sender, length) =
                match self
                    .bound
                    .receive(buffer, control, &counters.kernel_dropped)
                {
                    Ok(Some(received)) => received,
                    Ok(None) | Err(Errno::EINTR) => continue,
                    // Nothing has come, or a datagram was lost on its way.
                    Err(_) => {
                        has_more = false;
                        break;
                    }
                };
            counters.datagrams.fetch_add(1, Relaxed);
            counters.bytes.fetch_add(length as u64, Relaxed);
            let worker = FixedState::default().hash_one(sender) as usize % batches.len();
            batches[worker].push(sender, &buffer[..length]);
            if batches[worker].size() > BATCH {
                break;
            }
        }
        let mut dropped = 0;
        for (queue, batch) in queues.iter().zip(batches) {
            let count = batch.len();
            if count > 0 && !queue.push(batch) {
                dropped += count as u64;
            }
        }
        counters.dropped.fetch_add(dropped, Relaxed);
        if dropped > 0 {
            shared.log_limiter.report(format_args!(
                "{}: {dropped} datagrams are lost: more wait to be decoded than `collectd.queue-mib` allows",
                self.address
            ));
        }
        let kernel_dropped = counters.kernel_dropped.load(Relaxed) - kernel_dropped;
        if kernel_dropped > 0 {
            shared.log_limiter.report(format_args!(
                "{}: {kernel_dropped} datagrams are lost: the kernel had no room for them in \
                 `collectd.receive-buffer-mib`",
                self.address
            ));
        }
        has_more
    }
}

/// Reads a file of users and passwords.
///
/// # Errors
///
/// One that cannot be read, as a message.
pub(crate) fn read_keys(path: &Path) -> Result<Keys, String> {
    let shown = path.display();
    let text = kymo_io::read_small(path)
        .map_err(|error| format!("`{shown}`: {}", kymo_io::reason(&error)))?;
    Keys::parse(&text).map_err(|error| format!("`{shown}`: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::log::kept_log;

    /// A listener that nobody receives at but the test.
    struct Fixture {
        listener: Arc<Listener>,
        shared: Shared,
        queues: [Queue; 1],
        sender: UdpSocket,
        messages: Arc<Mutex<Vec<String>>>,
    }

    impl Fixture {
        /// With this buffer in the kernel; nobody decodes.
        fn new(receive_buffer: usize) -> Self {
            let (log, messages) = kept_log();
            let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
            let bound = Arc::new(Bound::new(loopback, None, &[]).unwrap());
            bound.set_buffer(receive_buffer);
            let shared = Shared::new(&log);
            let listen = Listen::new("127.0.0.1");
            Self {
                listener: Arc::new(Listener::new(&listen, &bound, &shared, &log).unwrap()),
                shared,
                queues: [Queue::new(0)],
                sender: UdpSocket::bind(loopback).unwrap(),
                messages,
            }
        }

        /// Sends datagrams, and receives those that have come.
        fn round(&self, count: usize) {
            for _ in 0..count {
                let to = self.listener.address;
                self.sender.send_to(&[0; 1000], to).unwrap();
            }
            // The first one has come.
            self.listener.bound.socket.peek(&mut [0]).unwrap();
            let (mut buffer, mut control) = (vec![0; LARGEST], nix::cmsg_space!(u32));
            self.listener
                .round(&self.shared, &self.queues, &mut buffer, &mut control);
        }
    }

    #[test]
    fn full_queues_are_reported() {
        let fixture = Fixture::new(1 << 20);
        for _ in 0..2 {
            fixture.round(1);
        }
        assert_eq!(fixture.listener.counters.dropped.load(Relaxed), 1);
        let expected = format!(
            "{}: 1 datagrams are lost: more wait to be decoded than `collectd.queue-mib` allows",
            fixture.listener.address
        );
        assert_eq!(*lock(&fixture.messages), [expected]);
    }

    #[test]
    fn drops_of_the_kernel_are_reported() {
        let fixture = Fixture::new(4096);
        let dropped = &fixture.listener.counters.kernel_dropped;
        // The kernel reports them with the next datagram that it keeps.
        while dropped.load(Relaxed) == 0 {
            fixture.round(100);
        }
        let expected = format!(
            "{}: {} datagrams are lost: the kernel had no room for them in `collectd.receive-buffer-mib`",
            fixture.listener.address,
            dropped.load(Relaxed)
        );
        let messages = lock(&fixture.messages);
        assert_eq!(messages.last(), Some(&expected), "{messages:?}");
    }
}
