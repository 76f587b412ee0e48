//! Sockets that receive datagrams.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind as bind_to, setsockopt, socket,
    sockopt,
};

use super::Listen;

/// Sockets for all addresses that a name means.
pub(super) fn bind(listen: &Listen, buffer: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::new();
    for address in (listen.host.as_str(), listen.port).to_socket_addrs()? {
        sockets.push(bind_one(address, listen.interface.as_deref(), buffer)?);
    }
    match sockets.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
        false => Ok(sockets),
    }
}

fn bind_one(address: SocketAddr, interface: Option<&str>, buffer: usize) -> io::Result<UdpSocket> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let fd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    if address.is_ipv6() {
        // So that both families can be listened at.
        setsockopt(&fd, sockopt::Ipv6V6Only, &true)?;
    }
    let is_group = address.ip().is_multicast();
    if is_group {
        // Others of this machine may listen to the group, too.
        setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    } else if let Some(interface) = interface {
        setsockopt(&fd, sockopt::BindToDevice, &interface.into())?;
    }
    // Who may not have so much gets what the system allows.
    if setsockopt(&fd, sockopt::RcvBufForce, &buffer).is_err() {
        let _ = setsockopt(&fd, sockopt::RcvBuf, &buffer);
    }
    setsockopt(&fd, sockopt::RxqOvfl, &1)?;
    bind_to(fd.as_fd().as_raw_fd(), &SockaddrStorage::from(address))?;
    let socket = UdpSocket::from(fd);
    match address.ip() {
        IpAddr::V4(group) if is_group => {
            socket.join_multicast_v4(&group, &address_of(interface)?)?;
        }
        IpAddr::V6(group) if is_group => {
            let index = interface.map_or(Ok(0), if_nametoindex)?;
            socket.join_multicast_v6(&group, index)?;
        }
        _ => {}
    }
    Ok(socket)
}

/// The first address of IPv4 that an interface has.
fn address_of(interface: Option<&str>) -> io::Result<Ipv4Addr> {
    let Some(name) = interface else {
        return Ok(Ipv4Addr::UNSPECIFIED);
    };
    let its = getifaddrs()?.filter(|it| it.interface_name == name);
    let mut addresses = its.filter_map(|it| Some(it.address?.as_sockaddr_in()?.ip()));
    addresses.next().ok_or_else(|| {
        let problem = format!("there is no interface `{name}` with an address of IPv4");
        io::Error::new(io::ErrorKind::NotFound, problem)
    })
}
