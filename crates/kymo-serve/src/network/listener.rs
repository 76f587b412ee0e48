//! A socket, what is taken of its datagrams, and the thread that receives them.

use std::fs::Metadata;
use std::hash::BuildHasher;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use kymo_collectd::network::{Decoder, Item, Keys, ReplayWindow, Security};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};

use super::queue::Batch;
use super::{Listen, Shared};
use crate::ingest::now;
use crate::listen::{Stop, is_loopback};
use crate::store::Log;

/// The largest datagram, and more, so that none is cut off.
const LARGEST: usize = 1 << 16;
/// Batches are no larger, so that workers begin early.
const BATCH: usize = 1 << 17;
/// So many datagrams are received before workers get them.
const ROUND: usize = 256;
/// How often it is looked whether a file of passwords has changed.
const LOOK: Duration = Duration::from_secs(1);
/// Datagrams that a replay window remembers.
const REMEMBERED: usize = 1 << 20;

/// A socket and what is taken of its datagrams.
#[derive(Debug)]
pub(super) struct Listener {
    /// Where it listens.
    pub(super) address: SocketAddr,
    socket: UdpSocket,
    decoder: Mutex<Arc<Decoder>>,
    auth: Option<PathBuf>,
    replay: Option<Mutex<ReplayWindow>>,
    log: LogOf,
}

struct LogOf(Log);

impl std::fmt::Debug for LogOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

/// What tells that a file has changed.
type Stamp = Option<(i64, i64, u64, u64)>;

fn stamp(path: &Path) -> Stamp {
    let of = |it: Metadata| (it.mtime(), it.mtime_nsec(), it.size(), it.ino());
    path.metadata().ok().map(of)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    pub(super) fn new(listen: &Listen, socket: UdpSocket, log: &Log) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let keys = listen.auth_file.as_deref().map(read_keys).transpose();
        let keys = keys.map_err(io::Error::other)?;
        if keys.is_none() && listen.level > Security::None {
            let problem = format!("{address}: its level of security needs a file of passwords");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        if listen.level == Security::None && !is_loopback(address.ip()) {
            let told =
                format!("{address}: values that are not signed are taken from other machines");
            log(&format!("warning: {told}"));
        }
        let level = listen.level;
        let window = |width| Mutex::new(ReplayWindow::new(width, REMEMBERED));
        Ok(Self {
            address,
            socket,
            decoder: Mutex::new(Arc::new(Decoder { level, keys })),
            auth: listen.auth_file.clone(),
            replay: listen.replay_window.map(window),
            log: LogOf(Arc::clone(log)),
        })
    }

    /// What datagrams are read with at this moment.
    pub(super) fn decoder(&self) -> Arc<Decoder> {
        Arc::clone(&lock(&self.decoder))
    }

    /// Reads a datagram.
    pub(super) fn decode<S: FnMut(Item<'_>)>(
        &self,
        decoder: &Decoder,
        datagram: &[u8],
        sink: &mut S,
    ) {
        match &self.replay {
            Some(window) => decoder.decode(datagram, &mut lock(window).at(now()), sink),
            None => decoder.decode(datagram, &mut (), sink),
        }
    }

    /// Reads the file of passwords again.
    pub(super) fn reload(&self) -> Result<(), String> {
        let Some(path) = &self.auth else {
            return Ok(());
        };
        let keys = Some(read_keys(path)?);
        let mut decoder = lock(&self.decoder);
        let level = decoder.level;
        *decoder = Arc::new(Decoder { level, keys });
        Ok(())
    }

    /// Receives until it is time to end.
    pub(super) fn receive(self: &Arc<Self>, shared: &Shared, stop: &Stop) {
        let mut buffer = vec![0; LARGEST];
        let mut control = nix::cmsg_space!(u32);
        let mut seen = self.auth.as_deref().and_then(stamp);
        let mut looked = Instant::now();
        let mut kernel_dropped = 0;
        while stop.wait(self.socket.as_fd()).unwrap_or(false) {
            if let Some(path) = &self.auth
                && looked.elapsed() > LOOK
            {
                looked = Instant::now();
                let found = stamp(path);
                if found != seen {
                    seen = found;
                    match self.reload() {
                        Ok(()) => (self.log.0)(&format!("{}: read again", path.display())),
                        Err(problem) => (self.log.0)(&problem),
                    }
                }
            }
            self.round(shared, &mut buffer, &mut control, &mut kernel_dropped);
        }
    }

    /// Receives what has come, and hands it over.
    fn round(
        self: &Arc<Self>,
        shared: &Shared,
        buffer: &mut [u8],
        control: &mut [u8],
        kernel_dropped: &mut u32,
    ) {
        let counters = &shared.counters;
        let mut batches: Vec<_> = shared.queues.iter().map(|_| Batch::new(self)).collect();
        for _ in 0..ROUND {
            let (sender, length) = match self.next(buffer, control, counters, kernel_dropped) {
                Ok(Some(received)) => received,
                Ok(None) | Err(Errno::EINTR) => continue,
                // Nothing has come, or a datagram was lost on its way.
                Err(_) => break,
            };
            counters.datagrams.fetch_add(1, Relaxed);
            counters.bytes.fetch_add(length as u64, Relaxed);
            let worker = FixedState::default().hash_one(sender) as usize % batches.len();
            batches[worker].push(sender, &buffer[..length]);
            if batches[worker].size() > BATCH {
                break;
            }
        }
        for (queue, batch) in shared.queues.iter().zip(batches) {
            let count = batch.len();
            if count > 0 && !queue.push(batch) {
                counters.dropped.fetch_add(count as u64, Relaxed);
            }
        }
    }

    /// Receives a datagram: its sender and length. `None` where the sender is of no known family.
    fn next(
        &self,
        buffer: &mut [u8],
        control: &mut [u8],
        counters: &super::Counters,
        kernel_dropped: &mut u32,
    ) -> nix::Result<Option<(SocketAddr, usize)>> {
        let fd = self.socket.as_raw_fd();
        let mut slices = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(control), flags)?;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::RxqOvfl(count) = control {
                let more = count.wrapping_sub(*kernel_dropped);
                *kernel_dropped = count;
                counters.kernel_dropped.fetch_add(more.into(), Relaxed);
            }
        }
        let length = message.bytes;
        Ok(message
            .address
            .as_ref()
            .and_then(socket_address)
            .map(|it| (it, length)))
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(address) = address.as_sockaddr_in() {
        return Some(SocketAddr::new(IpAddr::V4(address.ip()), address.port()));
    }
    let address = address.as_sockaddr_in6()?;
    Some(SocketAddr::new(IpAddr::V6(address.ip()), address.port()))
}

fn read_keys(path: &Path) -> Result<Keys, String> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    Keys::parse(&text).map_err(|error| format!("{shown}: {error}"))
}
