//! Sockets of datagrams, with a thread for each that takes what comes.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_io::net::is_loopback;
use kymo_io::reason;
use nix::errno::Errno;

use super::counters::Counters;
use super::options::{Endpoint, Options, Protocol};
use crate::activation::HandedDatagrams;
use crate::listen::{Access, Running, Stop, stop};
use crate::log::Level;
use crate::log_limiter::LogLimiter;
use crate::network::socket::Bound;
use crate::store::Log;

/// The largest datagram, and more, so that none is cut off.
const LARGEST: usize = 1 << 16;
/// Maximum number of datagrams received before the journal is written.
const ROUND: usize = 512;
/// So long nothing is received after what had come, so that more is taken together.
const PAUSE: Duration = Duration::from_micros(500);
/// Maximum number of rounds before the end, for the datagrams that the kernel still holds.
const LAST_ROUNDS: usize = 1 << 10;

/// A socket that is bound.
#[derive(Debug)]
enum DatagramSocket {
    Udp(Bound),
    /// The path is removed when it is closed, if there is one.
    Unix(UnixDatagram, Option<PathBuf>),
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(path)) = self {
            // Another process may have removed it.
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
    /// Whether it was there before the daemon.
    is_handed: bool,
}

/// A socket and the thread that receives there.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) endpoint: Endpoint,
    /// Whether it was there before the daemon: no configuration has named it.
    pub(super) is_handed: bool,
    running: Option<Running>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Binds all sockets of an endpoint, one for each address of its name.
    pub(super) fn bind(
        endpoint: &Endpoint,
        access: &Access,
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
                    log(Level::Info, &format!("{what} at udp:{address}"));
                    if !is_loopback(address.ip()) {
                        log(
                            Level::Warning,
                            &format!(
                                "other machines may reach udp:{address}, where nobody is asked who they are"
                            ),
                        );
                    }
                    all.push(Self {
                        socket: DatagramSocket::Udp(bound),
                        endpoint: endpoint.clone(),
                        is_handed: false,
                    });
                }
                if all.is_empty() {
                    return Err(format!("{endpoint}: the name has no address"));
                }
            }
            Endpoint::Unixgram(path) => {
                let socket = crate::listen::bind_datagrams(path, access).map_err(wrong)?;
                log(Level::Info, &format!("{what} at {endpoint}"));
                all.push(Self {
                    socket: DatagramSocket::Unix(socket, Some(path.clone())),
                    endpoint: endpoint.clone(),
                    is_handed: false,
                });
            }
            Endpoint::Stream(_) => {}
        }
        Ok(all)
    }

    /// One that systemd has bound, and what is spoken there.
    pub(super) fn handed(
        handed: HandedDatagrams,
        options: &Options,
        log: &Log,
    ) -> Result<(Protocol, Self), String> {
        let wrong = |error: io::Error| format!("a socket from systemd: {}", reason(&error));
        let (protocol, socket, endpoint) = match handed {
            HandedDatagrams::Udp(protocol, socket) => {
                let address = socket.local_addr().map_err(wrong)?;
                socket.set_nonblocking(true).map_err(wrong)?;
                let bound = Bound::handed(socket).map_err(wrong)?;
                let listens = options.line_listens();
                if let Some((_, listen)) = listens.iter().find(|(it, _)| *it == protocol) {
                    bound.set_buffer(listen.receive_buffer);
                }
                let endpoint = Endpoint::Udp(address.ip().to_string(), address.port());
                (protocol, DatagramSocket::Udp(bound), endpoint)
            }
            HandedDatagrams::Unix(protocol, socket) => {
                socket.set_nonblocking(true).map_err(wrong)?;
                let address = socket.local_addr().map_err(wrong)?;
                let path = address.as_pathname().map(Path::to_path_buf);
                let endpoint = Endpoint::Unixgram(path.unwrap_or_default());
                (protocol, DatagramSocket::Unix(socket, None), endpoint)
            }
        };
        log(
            Level::Info,
            &format!("{} at {endpoint}, from systemd", protocol.name()),
        );
        let receiver = Self {
            socket,
            endpoint,
            is_handed: true,
        };
        Ok((protocol, receiver))
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
        let (endpoint, is_handed) = (self.endpoint.clone(), self.is_handed);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread =
            thread.spawn(move || self.receive(&stop, &counters, &log_limiter, &mut take))?;
        Ok(Receiving {
            endpoint,
            is_handed,
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
                log_limiter.report(format_args!(
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

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Instant;

    use super::*;
    use crate::log::kept_log;
    use crate::sync::lock;

    struct Ignore;

    impl Take for Ignore {
        fn take(&mut self, _: Option<IpAddr>, _: &[u8]) {}

        fn end_round(&mut self) {}
    }

    #[test]
    fn drops_of_the_kernel_are_reported() {
        let (log, messages) = kept_log();
        let endpoint = Endpoint::Udp("127.0.0.1".to_owned(), 0);
        let bound = Receiver::bind(&endpoint, &Access::mode(0o600), 4096, "lines", &log);
        let receiver = bound.unwrap().remove(0);
        let DatagramSocket::Udp(bound) = &receiver.socket else {
            unreachable!()
        };
        let to = bound.socket.local_addr().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let send = |count: usize| {
            for _ in 0..count {
                sender.send_to(&[0; 1000], to).unwrap();
            }
        };
        send(100);
        lock(&messages).clear();
        let counters = Arc::<Counters>::default();
        let log_limiter = Arc::new(LogLimiter::new(log));
        let receiving = receiver.start("lines", Arc::clone(&counters), log_limiter, Ignore);
        // The kernel reports them with the next datagram that it keeps.
        let end = Instant::now() + Duration::from_secs(20);
        while lock(&messages).is_empty() {
            assert!(Instant::now() < end, "nothing is reported");
            send(1);
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(receiving);
        let expected = format!(
            "{endpoint}: {} datagrams are lost: the kernel had no room for them in `receive-buffer-mib`",
            counters.kernel_dropped.load(Relaxed)
        );
        assert_eq!(*lock(&messages), [expected]);
    }
}
