//! Sockets that datagrams leave by.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};

/// How datagrams leave this machine; by default as its routes say.
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
    /// Those of the system; that the source is of another family of addresses.
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
            let bound = setsockopt(&socket, sockopt::BindToDevice, &interface.into());
            bound.map_err(|error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("interface `{interface}`: {error}"))
            })?;
        }
        if let Some(routers) = self.routers {
            let is_group = address.ip().is_multicast();
            match (address, is_group) {
                (SocketAddr::V4(_), false) => socket.set_ttl(routers.into())?,
                (SocketAddr::V4(_), true) => socket.set_multicast_ttl_v4(routers.into())?,
                (SocketAddr::V6(_), false) => {
                    setsockopt(&socket, sockopt::Ipv6Ttl, &routers.into())?;
                }
                (SocketAddr::V6(_), true) => {
                    setsockopt(&socket, sockopt::Ipv6MulticastHops, &routers.into())?;
                }
            }
        }
        Ok(socket)
    }
}
