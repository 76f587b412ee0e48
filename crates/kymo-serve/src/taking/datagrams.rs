//! Sockets of datagrams, with a thread for each that takes what comes.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_io::net::is_loopback;
use kymo_io::reason;
use nix::errno::Errno;

use super::counters::Counters;
use super::options::Endpoint;
use crate::listen::{Running, Stop, stop};
use crate::log_limiter::LogLimiter;
use crate::network::socket::Bound;
use crate::store::Log;

/// The largest datagram, and more, so that none is cut off.
const LARGEST: usize = 1 << 16;
/// So many datagrams are taken before the journal is written.
const ROUND: usize = 512;
/// So long nothing is received after what had come, so that more is taken together.
const PAUSE: Duration = Duration::from_micros(500);
/// So many rounds before it ends: what the kernel keeps.
const LAST_ROUNDS: usize = 1 << 10;

/// A socket that is bound.
#[derive(Debug)]
enum DatagramSocket {
    Udp(Bound),
    Unix(UnixDatagram, PathBuf),
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl DatagramSocket {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(bound) => bound.socket.as_fd(),
            Self::Unix(socket, _) => socket.as_fd(),
        }
    }

    /// Receives a datagram that has come: its sender, if it is another machine's, and its length.
    fn receive(
        &self,
        buffer: &mut [u8],
        control: &mut [u8],
        counters: &Counters,
    ) -> nix::Result<Option<(Option<IpAddr>, usize)>> {
        match self {
            Self::Udp(bound) => {
                let received = bound.receive(buffer, control, &counters.kernel_dropped)?;
                Ok(received.map(|(sender, length)| (Some(sender.ip()), length)))
            }
            Self::Unix(socket, _) => match socket.recv(buffer) {
                Ok(length) => Ok(Some((None, length))),
                Err(error) => Err(Errno::from_raw(error.raw_os_error().unwrap_or_default())),
            },
        }
    }
}

/// What takes datagrams of one socket.
pub(super) trait Take: Send {
    /// Takes a datagram.
    fn take(&mut self, sender: Option<IpAddr>, datagram: &[u8]);
    /// All that has come together was taken.
    fn end_round(&mut self);
}

/// A socket that is bound, and not yet received at.
#[derive(Debug)]
pub(super) struct Receiver {
    socket: DatagramSocket,
    /// What was asked for.
    pub(super) endpoint: Endpoint,
}

/// A socket and the thread that receives there.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) endpoint: Endpoint,
    running: Option<Running>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Binds all sockets of an endpoint: as many as its name has addresses.
    pub(super) fn bind(
        endpoint: &Endpoint,
        mode: u32,
        buffer: usize,
        what: &str,
        log: &Log,
    ) -> Result<Vec<Self>, String> {
        let wrong = |error: io::Error| format!("{endpoint}: {}", reason(&error));
        let mut all = Vec::new();
        match endpoint {
            Endpoint::Udp(host, port) => {
                let addresses = (host.as_str(), *port).to_socket_addrs().map_err(wrong)?;
                for address in addresses {
                    let bound = Bound::new(address, None, &[]).map_err(wrong)?;
                    bound.set_buffer(buffer);
                    log(&format!("{what} at udp:{address}"));
                    if !is_loopback(address.ip()) {
                        log(&format!(
                            "warning: other machines may reach udp:{address}, where nobody is asked who they are"
                        ));
                    }
                    all.push(Self {
                        socket: DatagramSocket::Udp(bound),
                        endpoint: endpoint.clone(),
                    });
                }
                if all.is_empty() {
                    return Err(format!("{endpoint}: the name has no address"));
                }
            }
            Endpoint::Unixgram(path) => {
                let socket = crate::listen::bind_datagrams(path, mode).map_err(wrong)?;
                log(&format!("{what} at {endpoint}"));
                all.push(Self {
                    socket: DatagramSocket::Unix(socket, path.clone()),
                    endpoint: endpoint.clone(),
                });
            }
            Endpoint::Stream(_) => {}
        }
        Ok(all)
    }

    /// Begins to receive.
    pub(super) fn start(
        self,
        name: &str,
        counters: Arc<Counters>,
        log_limiter: Arc<LogLimiter>,
        mut take: impl Take + 'static,
    ) -> io::Result<Receiving> {
        let (running, stop) = stop()?;
        let endpoint = self.endpoint.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread =
            thread.spawn(move || self.receive(&stop, &counters, &log_limiter, &mut take))?;
        Ok(Receiving {
            endpoint,
            running: Some(running),
            thread: Some(thread),
        })
    }

    fn receive(
        &self,
        stop: &Stop,
        counters: &Counters,
        log_limiter: &LogLimiter,
        take: &mut impl Take,
    ) {
        let mut buffer = vec![0; LARGEST];
        let mut control = nix::cmsg_space!(u32);
        let mut round = |limit: usize| {
            let dropped = counters.kernel_dropped.load(Relaxed);
            let mut has_more = true;
            for _ in 0..limit {
                match self.socket.receive(&mut buffer, &mut control, counters) {
                    Ok(Some((sender, length))) => take.take(sender, &buffer[..length]),
                    Ok(None) | Err(Errno::EINTR) => {}
                    // Nothing has come, or a datagram was lost on its way.
                    Err(_) => {
                        has_more = false;
                        break;
                    }
                }
            }
            take.end_round();
            let dropped = counters.kernel_dropped.load(Relaxed) - dropped;
            if dropped > 0 {
                log_limiter.tell(format_args!(
                    "{}: {dropped} datagrams are lost: the kernel had no room for them in `receive-buffer-mib`",
                    self.endpoint
                ));
            }
            has_more
        };
        while stop.wait(self.socket.fd()).unwrap_or(false) {
            if !round(ROUND) {
                std::thread::sleep(PAUSE);
            }
        }
        for _ in 0..LAST_ROUNDS {
            if !round(ROUND) {
                break;
            }
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
