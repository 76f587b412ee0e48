//! Sockets that systemd hands over.

use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use listenfd::ListenFd;

use crate::listen::{Encryption, Socket};
use crate::taking::Protocol;

/// A socket of datagrams of other metrics than collectd's.
#[derive(Debug)]
pub(crate) enum HandedDatagrams {
    /// UDP.
    Udp(Protocol, UdpSocket),
    /// A socket of this machine.
    Unix(Protocol, UnixDatagram),
}

/// Sockets that were there before the daemon.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// Those of connections, with what is spoken there.
    pub(crate) streams: Vec<(&'static str, Arc<Socket>)>,
    /// Those where rrdcached's clients may only read.
    pub(crate) to_read: Vec<Arc<Socket>>,
    /// Those of datagrams of collectd.
    pub(crate) datagrams: Vec<UdpSocket>,
    /// Those of others.
    pub(crate) others: Vec<HandedDatagrams>,
}

/// What is spoken at sockets of connections, by their names.
const STREAMS: [&str; 9] = [
    "rrdcached",
    "metrics",
    "query",
    "unixsock",
    "graphite",
    "influx",
    "influx-lines",
    "remote-write",
    "otlp",
];
/// The name of sockets where rrdcached's clients may only read.
const TO_READ: &str = "rrdcached-read";

/// The sockets that were handed over, by their names (`FileDescriptorName=`).
///
/// # Errors
///
/// The number and the name of a descriptor that nothing can be spoken at.
pub(crate) fn handed() -> Result<Handed, String> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut descriptors = ListenFd::from_env();
    let mut handed = Handed::default();
    for index in 0..descriptors.len() {
        let name = names.next().unwrap_or_default();
        let unfit = |found: &str, expected: &str| {
            // systemd counts from that after standard error.
            let number = index + 3;
            format!(
                "descriptor {number} from systemd, `{name}`: found {found}, expected {expected}"
            )
        };
        // Datagrams of lines; without one of these names, all that can be received is collectd's.
        let lines = match name {
            "graphite" => Some(Protocol::Graphite),
            "statsd" => Some(Protocol::Statsd),
            "influx-lines" => Some(Protocol::Influx),
            _ => None,
        };
        if let Ok(Some(socket)) = descriptors.take_udp_socket(index) {
            match (lines, name) {
                (Some(protocol), _) => handed.others.push(HandedDatagrams::Udp(protocol, socket)),
                (None, name) if name == TO_READ || STREAMS.contains(&name) => {
                    return Err(unfit(
                        "a socket of datagrams",
                        "one that listens for connections",
                    ));
                }
                _ => handed.datagrams.push(socket),
            }
            continue;
        }
        let unix = descriptors.take_unix_listener(index).ok().flatten();
        let socket = match unix {
            Some(listener) => Some(Socket::Unix(listener, None)),
            None => {
                let listener = descriptors.take_tcp_listener(index).ok().flatten();
                listener.map(|it| Socket::Tcp(it, Encryption::default()))
            }
        };
        let Some(socket) = socket else {
            let datagrams = descriptors.take_unix_datagram(index).ok().flatten();
            match (lines, datagrams) {
                (Some(protocol), Some(socket)) => {
                    handed.others.push(HandedDatagrams::Unix(protocol, socket));
                    continue;
                }
                _ => {
                    return Err(unfit(
                        "neither",
                        "a socket of connections, of this machine or of TCP",
                    ));
                }
            }
        };
        let socket = Arc::new(socket);
        if name == TO_READ {
            handed.to_read.push(socket);
            continue;
        }
        let what = match name {
            // Without a name it is called after the unit, or by `systemd-socket-activate` so.
            "unknown" | "" => "rrdcached",
            "statsd" => "statsd",
            unit if unit.ends_with(".socket") => "rrdcached",
            "collectd" => return Err(unfit("no socket of datagrams", "one of UDP")),
            name => match STREAMS.iter().find(|it| **it == name) {
                Some(what) => what,
                None => {
                    let names = STREAMS.map(|it| format!("`{it}`")).join(", ");
                    let names =
                        format!("FileDescriptorName= {names}, `statsd`, `{TO_READ}` or `collectd`");
                    return Err(unfit("this name", &names));
                }
            },
        };
        handed.streams.push((what, socket));
    }
    Ok(handed)
}
