//! Sockets that datagrams leave by.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

#[cfg(any(target_os = "linux", target_os = "android"))]
use nix::sys::socket::{setsockopt, sockopt};

/// How datagrams leave this machine; by default as its routes say.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use kymo_io::net::Departure;
///
/// let to = "127.0.0.1:25826".parse().expect("an address");
/// let socket = Departure::default().socket(to)?;
/// socket.connect(to)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure<'a> {
    /// The address that they come from, or its name.
    pub source: Option<&'a str>,
    /// The interface that they leave by.
    pub interface: Option<&'a str>,
    /// How many routers they may pass, from 1 on: TTL, hop limit.
    pub routers: Option<u8>,
}

impl Departure<'_> {
    /// A socket for datagrams to an address; it is not connected.
    ///
    /// # Errors
    ///
    /// Those of the system; that the source is of another family of addresses. `Unsupported` for an
    /// interface, and for routers on the way of IPv6, where the system is not Linux.
    pub fn socket(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        let any = match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = match self.source {
            None => UdpSocket::bind((any, 0))?,
            Some(from) => {
                let all = (from, 0).to_socket_addrs()?;
                let fitting: Vec<_> = all
                    .filter(|from| from.is_ipv4() == address.is_ipv4())
                    .collect();
                if fitting.is_empty() {
                    let problem = format!("from `{from}` there is no way to {}", address.ip());
                    return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, problem));
                }
                UdpSocket::bind(&fitting[..])?
            }
        };
        if let Some(interface) = self.interface {
            bind_to(&socket, interface).map_err(|error| {
                io::Error::new(error.kind(), format!("interface `{interface}`: {error}"))
            })?;
        }
        if let Some(routers) = self.routers {
            match (address, address.ip().is_multicast()) {
                (SocketAddr::V4(_), false) => socket.set_ttl(routers.into())?,
                (SocketAddr::V4(_), true) => socket.set_multicast_ttl_v4(routers.into())?,
                (SocketAddr::V6(_), is_group) => set_hops(&socket, is_group, routers)?,
            }
        }
        Ok(socket)
    }
}

/// Has datagrams leave by an interface.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_to(socket: &UdpSocket, interface: &str) -> io::Result<()> {
    Ok(setsockopt(
        socket,
        sockopt::BindToDevice,
        &interface.into(),
    )?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_to(_socket: &UdpSocket, _interface: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sets how many routers datagrams of IPv6 may pass.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_hops(socket: &UdpSocket, is_group: bool, routers: u8) -> io::Result<()> {
    match is_group {
        false => setsockopt(socket, sockopt::Ipv6Ttl, &routers.into())?,
        true => setsockopt(socket, sockopt::Ipv6MulticastHops, &routers.into())?,
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_hops(_socket: &UdpSocket, _is_group: bool, _routers: u8) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_of_the_family_of_the_target() {
        let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let from = |source| Departure {
            source: Some(source),
            ..Departure::default()
        };
        let socket = from("127.0.0.1").socket(to).unwrap();
        assert!(socket.local_addr().unwrap().ip().is_loopback());
        let error = from("::1").socket(to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn routers_are_counted() {
        let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let by = Departure {
            routers: Some(3),
            ..Departure::default()
        };
        assert_eq!(by.socket(to).unwrap().ttl().unwrap(), 3);
        let group: SocketAddr = "239.1.2.3:9".parse().unwrap();
        assert_eq!(by.socket(group).unwrap().multicast_ttl_v4().unwrap(), 3);
    }
}
