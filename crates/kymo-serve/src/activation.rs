//! Sockets that systemd hands over.

use std::net::UdpSocket;
use std::sync::Arc;

use listenfd::ListenFd;

use crate::listen::Socket;

/// Sockets of connections with what is spoken there, and those of datagrams.
type Handed = (Vec<(&'static str, Arc<Socket>)>, Vec<UdpSocket>);

/// The sockets that were handed over, by their names (`FileDescriptorName=`).
///
/// # Errors
///
/// The number and the name of a descriptor that nothing can be spoken at.
pub(crate) fn handed() -> Result<Handed, String> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut handed = ListenFd::from_env();
    let (mut streams, mut datagrams) = (Vec::new(), Vec::new());
    for index in 0..handed.len() {
        let name = names.next().unwrap_or_default();
        let unfit = |found: &str, expected: &str| {
            // systemd counts from that after standard error.
            let number = index + 3;
            Err(format!(
                "descriptor {number} from systemd, `{name}`: found {found}, expected {expected}"
            ))
        };
        if let Ok(Some(socket)) = handed.take_udp_socket(index) {
            match name {
                "metrics" | "query" | "rrdcached" | "unixsock" => {
                    return unfit("a socket of datagrams", "one that listens for connections");
                }
                // All that can be received is collectd's.
                _ => datagrams.push(socket),
            }
            continue;
        }
        let what = match name {
            "metrics" => "metrics",
            "query" => "query",
            "unixsock" => "unixsock",
            // Without a name it is called after the unit, or by `systemd-socket-activate` so.
            "rrdcached" | "unknown" | "" => "rrdcached",
            unit if unit.ends_with(".socket") => "rrdcached",
            "collectd" => return unfit("no socket of datagrams", "one of UDP"),
            _ => {
                let names = "`rrdcached`, `metrics`, `query`, `unixsock` or `collectd`";
                return unfit("this name", &format!("FileDescriptorName= {names}"));
            }
        };
        let unix = handed.take_unix_listener(index).ok().flatten();
        let socket = match unix {
            Some(listener) => Some(Socket::Unix(listener, None)),
            None => {
                let listener = handed.take_tcp_listener(index).ok().flatten();
                listener.map(Socket::Tcp)
            }
        };
        match socket {
            Some(socket) => streams.push((what, Arc::new(socket))),
            None => {
                return unfit(
                    "neither",
                    "a socket of connections, of this machine or of TCP",
                );
            }
        }
    }
    Ok((streams, datagrams))
}
