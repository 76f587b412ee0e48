//! A TCP connection whose waits are bounded.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::url::Url;

/// The longest wait for each address of a host.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const BUFFER: usize = 256 << 10;

/// A connection to a relay daemon.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The wait that the socket has.
    wait: Duration,
}

impl Connection {
    pub(super) fn new(url: &Url, stop: &AtomicBool) -> io::Result<Self> {
        let addresses = (url.host.as_str(), url.port).to_socket_addrs()?;
        let is_wanted = |address: &SocketAddr| !url.is_ipv4 || address.is_ipv4();
        let mut last: io::Error = io::ErrorKind::AddrNotAvailable.into();
        for address in addresses.filter(is_wanted) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(Self {
                        stream,
                        buffer: vec![0; BUFFER],
                        wait: Duration::ZERO,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// What has come within a while.
    pub(super) fn receive(&mut self, wait: Duration) -> io::Result<Option<&[u8]>> {
        if self.wait != wait {
            self.stream.set_read_timeout(Some(wait))?;
            self.wait = wait;
        }
        match self.stream.read(&mut self.buffer) {
            Ok(0) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the relay daemon closed it",
            )),
            Ok(count) => Ok(Some(&self.buffer[..count])),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
