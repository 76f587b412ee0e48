//! Sockets that receive datagrams.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage,
    bind as bind_to, recvmsg, setsockopt, socket, sockopt,
};

/// A socket that is bound. It stays so whatever else changes of what is received there, so that what the
/// kernel keeps of it is not lost.
#[derive(Debug)]
pub(crate) struct Bound {
    /// Where it was to be bound.
    asked: SocketAddr,
    pub(crate) socket: UdpSocket,
    interface: Mutex<Option<String>>,
    /// Datagrams for which the kernel had no room so far, as it counts them.
    kernel_dropped: AtomicU32,
}

impl Bound {
    /// Binds a socket; those that are leaving may have its port still.
    pub(crate) fn new(
        asked: SocketAddr,
        interface: Option<&str>,
        leaving: &[&Arc<Self>],
    ) -> io::Result<Self> {
        let is_rival =
            |it: &&Arc<Self>| it.asked.port() == asked.port() && !it.asked.ip().is_multicast();
        let rivals: Vec<_> = leaving.iter().copied().filter(is_rival).collect();
        let share = |shared: bool| {
            let mut its = rivals.iter();
            its.try_for_each(|it| setsockopt(&it.socket, sockopt::ReuseAddr, &shared))
        };
        share(true)?;
        let socket = bind(asked, interface, !rivals.is_empty());
        share(false)?;
        Ok(Self {
            asked,
            socket: socket?,
            interface: Mutex::new(interface.map(str::to_owned)),
            kernel_dropped: AtomicU32::new(0),
        })
    }

    /// A socket that was bound elsewhere.
    pub(crate) fn handed(socket: UdpSocket) -> io::Result<Self> {
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        let asked = socket.local_addr()?;
        match join(&socket, asked.ip(), None) {
            // Who has bound it has joined the group.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            joined => joined?,
        }
        Ok(Self {
            asked,
            socket,
            interface: Mutex::default(),
            kernel_dropped: AtomicU32::new(0),
        })
    }

    fn interface(&self) -> MutexGuard<'_, Option<String>> {
        self.interface
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the socket of an address, where it may be bound to another interface: two sockets of
    /// groups can be at one address, others cannot.
    pub(super) fn is_at(&self, address: SocketAddr, interface: Option<&str>) -> bool {
        let is_group = address.ip().is_multicast();
        self.asked == address && (!is_group || self.interface().as_deref() == interface)
    }

    /// Receives a datagram that has come: its sender and length. `None` if the sender is of no known family. Those for
    /// which the kernel had no room are counted.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        control: &mut [u8],
        kernel_dropped: &AtomicU64,
    ) -> nix::Result<Option<(SocketAddr, usize)>> {
        let fd = self.socket.as_raw_fd();
        let mut slices = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(control), flags)?;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::RxqOvfl(count) = control {
                let before = self.kernel_dropped.swap(count, Relaxed);
                let more = count.wrapping_sub(before);
                kernel_dropped.fetch_add(more.into(), Relaxed);
            }
        }
        let length = message.bytes;
        Ok(message
            .address
            .as_ref()
            .and_then(socket_address)
            .map(|it| (it, length)))
    }

    /// Makes the kernel keep `bytes` bytes, or as many as the system allows.
    pub(crate) fn set_buffer(&self, bytes: usize) {
        if setsockopt(&self.socket, sockopt::RcvBufForce, &bytes).is_err() {
            let _ = setsockopt(&self.socket, sockopt::RcvBuf, &bytes);
        }
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(address) = address.as_sockaddr_in() {
        return Some(SocketAddr::new(IpAddr::V4(address.ip()), address.port()));
    }
    let address = address.as_sockaddr_in6()?;
    Some(SocketAddr::new(IpAddr::V6(address.ip()), address.port()))
}

/// A socket that receives by another interface as long as this is there, unless it is kept so.
#[derive(Debug)]
pub(super) struct Moved {
    bound: Arc<Bound>,
    to: Option<String>,
    is_kept: bool,
}

impl Moved {
    /// Has a socket receive by an interface. `None` where it does already.
    pub(super) fn new(bound: &Arc<Bound>, interface: Option<&str>) -> io::Result<Option<Self>> {
        if bound.interface().as_deref() == interface {
            return Ok(None);
        }
        receive_by(&bound.socket, interface)?;
        Ok(Some(Self {
            bound: Arc::clone(bound),
            to: interface.map(str::to_owned),
            is_kept: false,
        }))
    }

    pub(super) fn keep(mut self) {
        *self.bound.interface() = self.to.take();
        self.is_kept = true;
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        if !self.is_kept {
            // It was so before, and nothing else can be done.
            let before = self.bound.interface();
            let _ = receive_by(&self.bound.socket, before.as_deref());
        }
    }
}

/// Any interface will do, unless one is specified.
fn receive_by(socket: &UdpSocket, interface: Option<&str>) -> io::Result<()> {
    let name = OsString::from(interface.unwrap_or_default());
    Ok(setsockopt(socket, sockopt::BindToDevice, &name)?)
}

/// Binds a socket; `beside` others of this process, which share the port as long as it is bound.
fn bind(address: SocketAddr, interface: Option<&str>, beside: bool) -> io::Result<UdpSocket> {
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
    if beside && !is_group {
        setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    }
    if is_group {
        // Others of this machine may listen to the group, too.
        setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    } else if let Some(interface) = interface {
        setsockopt(&fd, sockopt::BindToDevice, &interface.into())?;
    }
    setsockopt(&fd, sockopt::RxqOvfl, &1)?;
    bind_to(fd.as_fd().as_raw_fd(), &SockaddrStorage::from(address))?;
    if beside && !is_group {
        setsockopt(&fd, sockopt::ReuseAddr, &false)?;
    }
    let socket = UdpSocket::from(fd);
    join(&socket, address.ip(), interface)?;
    Ok(socket)
}

/// Receives what is sent to an address, if it is that of a group.
fn join(socket: &UdpSocket, address: IpAddr, interface: Option<&str>) -> io::Result<()> {
    match address {
        IpAddr::V4(group) if group.is_multicast() => {
            socket.join_multicast_v4(&group, &address_of(interface)?)
        }
        IpAddr::V6(group) if group.is_multicast() => {
            let index = interface.map_or(Ok(0), if_nametoindex)?;
            socket.join_multicast_v6(&group, index)
        }
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel reports what it had no room for with the next datagram that it keeps.
    #[test]
    fn what_the_kernel_drops_is_counted() {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = Bound::new(loopback, None, &[]).unwrap();
        setsockopt(&bound.socket, sockopt::RcvBuf, &4096).unwrap();
        let to = bound.socket.local_addr().unwrap();
        let sender = UdpSocket::bind(loopback).unwrap();
        for _ in 0..100 {
            sender.send_to(&[0; 1000], to).unwrap();
        }
        let (dropped, mut received) = (AtomicU64::new(0), 0);
        let mut control = nix::cmsg_space!(u32);
        let mut receive = || bound.receive(&mut [0; 2000], &mut control, &dropped);
        while receive().is_ok() {
            received += 1;
        }
        assert!((1..100).contains(&received), "{received}");
        sender.send_to(&[0], to).unwrap();
        receive().unwrap();
        assert_eq!(dropped.load(Relaxed), 100 - received);
    }
}
