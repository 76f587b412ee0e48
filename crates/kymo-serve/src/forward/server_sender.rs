//! The thread of one server.

use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use kymo_collectd::Identifier;
use kymo_collectd::network::{Decoder, Item, Packer};
use kymo_io::net::Departure;

use super::{Counters, Parcel, Server};
use crate::log_limiter::LogLimiter;

/// A datagram that is not full is sent after this.
const PATIENCE: Duration = Duration::from_secs(1);
/// A name that means nothing is looked for again after this.
const RETRY: Duration = Duration::from_secs(10);

/// Packs and sends for a server.
pub(super) struct ServerSender {
    pub(super) server: Server,
    pub(super) time_to_live: Option<u8>,
    pub(super) counters: Arc<Counters>,
    pub(super) log_limiter: Arc<LogLimiter>,
}

/// Where datagrams go.
struct Target {
    socket: UdpSocket,
    address: SocketAddr,
}

/// What is known of where they go: the target or why there is none, and until when that holds, if not
/// for ever.
type Looked = Option<(Option<Instant>, io::Result<Target>)>;

/// What is packed and not yet sent.
#[derive(Default)]
struct Waiting {
    lists: u64,
    since: Option<Instant>,
}

impl ServerSender {
    /// Sends what is given until no more will come.
    pub(super) fn run(&self, mut packer: Packer, parcels: &Receiver<Parcel>) {
        let (mut looked, mut waiting) = (None, Waiting::default());
        loop {
            let next = match waiting.since {
                None => parcels.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(since) => parcels.recv_timeout(PATIENCE.saturating_sub(since.elapsed())),
            };
            match next {
                Ok(parcel) => self.repack(&parcel, &mut packer, &mut waiting, &mut looked),
                Err(ended) => {
                    self.flush(&mut packer, &mut waiting, &mut looked);
                    if ended == RecvTimeoutError::Disconnected {
                        return;
                    }
                }
            }
            // Much that comes slowly must not wait for the end of it.
            if waiting
                .since
                .is_some_and(|since| since.elapsed() >= PATIENCE)
            {
                self.flush(&mut packer, &mut waiting, &mut looked);
            }
        }
    }

    fn flush(&self, packer: &mut Packer, waiting: &mut Waiting, looked: &mut Looked) {
        let lists = std::mem::take(waiting).lists;
        if let Some(datagram) = packer.flush()
            && self.send(&datagram, lists, looked)
        {
            self.counters.lists.fetch_add(lists, Relaxed);
        }
    }

    /// Packs what a plain datagram has as the server wants it, and sends what is full.
    fn repack(
        &self,
        parcel: &Parcel,
        packer: &mut Packer,
        waiting: &mut Waiting,
        looked: &mut Looked,
    ) {
        let mut met = 0;
        Decoder::default().decode(&parcel.datagram, &mut (), &mut |item| match item {
            Item::Values(list) => {
                met += 1;
                let values: Vec<_> = list.values.iter().collect();
                match packer.values(&list.id, list.time, list.interval, &values) {
                    Ok(None) => {}
                    Ok(Some(full)) => {
                        let lists = std::mem::take(waiting).lists;
                        if self.send(&full, lists, looked) {
                            self.counters.lists.fetch_add(lists, Relaxed);
                        }
                    }
                    Err(problem) => {
                        self.lose(&list.id, problem);
                        return;
                    }
                }
                waiting.lists += 1;
                waiting.since.get_or_insert_with(Instant::now);
            }
            Item::Notification(received) => {
                met += 1;
                match packer.notification(&received.notification) {
                    Ok(datagram) => {
                        if self.send(&datagram, 1, looked) {
                            self.counters.notifications.fetch_add(1, Relaxed);
                        }
                    }
                    Err(problem) => self.lose(&received.notification.id, problem),
                }
            }
            Item::Fault(_) => {}
        });
        // All that is packed is read again; should any of it ever not be, that is reported.
        let lost = parcel.count.saturating_sub(met);
        self.counters.lost.fetch_add(lost, Relaxed);
    }

    /// Notes what cannot be packed as the server wants it.
    fn lose(&self, id: &Identifier<'_>, problem: impl Display) {
        self.counters.lost.fetch_add(1, Relaxed);
        let (place, id) = (self.server.place(), id.canonical());
        self.log_limiter
            .report(format_args!("{place}: {id} is not sent on: {problem}"));
    }

    /// Sends a datagram with `count` lists or messages, and returns whether that was done.
    fn send(&self, datagram: &[u8], count: u64, looked: &mut Looked) -> bool {
        let sent = match self.target(looked) {
            Ok(target) => target.socket.send_to(datagram, target.address).map(drop),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let counters = &self.counters;
        match sent {
            Ok(()) => {
                counters.datagrams.fetch_add(1, Relaxed);
                true
            }
            Err(error) => {
                counters.lost.fetch_add(count, Relaxed);
                // The name may mean another address by now, or another one of its be reached. Further
                // errors must not put that off.
                if let Some((until, _)) = looked {
                    let soon = Instant::now() + RETRY;
                    *until = Some(until.map_or(soon, |until| until.min(soon)));
                }
                self.log_limiter.report(format_args!(
                    "{}: {count} lists or messages are not sent on: {}",
                    self.server.place(),
                    kymo_io::reason(&error)
                ));
                false
            }
        }
    }

    /// Where datagrams go now.
    fn target<'l>(&self, looked: &'l mut Looked) -> Result<&'l Target, &'l io::Error> {
        let now = Instant::now();
        let is_over = |(until, _): &(Option<Instant>, _)| until.is_some_and(|until| until <= now);
        if looked.as_ref().is_some_and(is_over) {
            *looked = None;
        }
        let (_, found) = looked.get_or_insert_with(|| {
            let found = self.look();
            let lasts = match found {
                Ok(_) => self.server.resolve_interval,
                Err(_) => Some(RETRY),
            };
            // A time too far in the future never comes.
            (lasts.and_then(|lasts| now.checked_add(lasts)), found)
        });
        found.as_ref()
    }

    /// Looks what the name of the host means, and makes a socket for the first address that there is
    /// a way to.
    fn look(&self) -> io::Result<Target> {
        let server = &self.server;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        for address in (server.host.as_str(), server.port).to_socket_addrs()? {
            // Connecting asks for a route and sends nothing. Datagrams then go by a socket that is not
            // connected: a connected one would lose the next datagram after each that was not received.
            let reached = self.socket(address).and_then(|it| it.connect(address));
            match reached.and_then(|()| self.socket(address)) {
                Ok(socket) => return Ok(Target { socket, address }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn socket(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        let departure = Departure {
            source: self.server.source(),
            interface: self.server.interface.as_deref(),
            routers: self.time_to_live,
        };
        departure.socket(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::{Forwarder, Options};

    fn server_sender(host: &str, from: Option<&str>) -> ServerSender {
        let mut server = Server::new(host);
        server.bind_address = from.map(str::to_owned);
        ServerSender {
            server,
            time_to_live: None,
            counters: Arc::default(),
            log_limiter: Arc::new(LogLimiter::new(Arc::new(|_, _| {}))),
        }
    }

    #[test]
    fn the_family_of_the_source_is_that_of_the_target() {
        assert!(server_sender("127.0.0.1", Some("127.0.0.1")).look().is_ok());
        assert!(server_sender("127.0.0.1", Some("::")).look().is_ok());
        assert!(server_sender("127.0.0.1", Some("::1")).look().is_err());
        let found = server_sender("localhost", Some("127.0.0.1"))
            .look()
            .unwrap();
        assert!(found.address.is_ipv4());
    }

    #[test]
    fn a_source_that_cannot_fit_is_refused_at_the_start() {
        let start = |host, from| {
            let options = Options {
                servers: vec![server_sender(host, Some(from)).server],
                ..Options::default()
            };
            let log: crate::store::Log = Arc::new(|_, _| {});
            Forwarder::start(&options, &log).map(|forwarder| forwarder.close())
        };
        let error = start("127.0.0.1", "::1").unwrap_err().to_string();
        assert!(error.contains("bind-address"), "{error}");
        assert!(start("::1", "127.0.0.1").is_err());
        start("127.0.0.1", "127.0.0.1").unwrap();
        start("127.0.0.1", "::").unwrap();
    }

    #[test]
    fn after_an_error_the_name_is_looked_for_again() {
        let server_sender = server_sender("127.0.0.1", None);
        let mut looked = None;
        assert!(server_sender.send(b"x", 1, &mut looked));
        assert!(looked.as_ref().unwrap().0.is_none());
        // No datagram is that large.
        assert!(!server_sender.send(&vec![0; 70_000], 1, &mut looked));
        let until = looked.as_ref().unwrap().0.unwrap();
        assert!(!server_sender.send(&vec![0; 70_000], 1, &mut looked));
        assert_eq!(looked.as_ref().unwrap().0, Some(until));
    }
}
