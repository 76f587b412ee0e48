//! Where daemons listen.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// The port of rrdcached where none is told.
const PORT: u16 = 42217;

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A socket of this machine, by its path.
    Unix(String),
    /// A port of a machine.
    Tcp(String, u16),
}

/// A connection to one.
#[derive(Debug)]
pub(super) enum Stream {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    Tcp(TcpStream),
}

impl Address {
    /// Reads an address.
    pub(super) fn parse(text: &str) -> Self {
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::Unix(path.to_owned());
        }
        if text.starts_with('/') {
            return Self::Unix(text.to_owned());
        }
        if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            return Self::Tcp(host.to_owned(), port.unwrap_or(PORT));
        }
        match text.split_once(':') {
            // One colon, and not the many of IPv6.
            Some((host, port)) if !port.contains(':') => {
                Self::Tcp(host.to_owned(), port.parse().unwrap_or(PORT))
            }
            _ => Self::Tcp(text.to_owned(), PORT),
        }
    }

    /// Connects.
    pub(super) fn connect(&self) -> io::Result<Stream> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(Stream::Unix),
            #[cfg(not(unix))]
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.flush(),
            Self::Tcp(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_many_ways() {
        let unix = |path: &str| Address::Unix(path.into());
        let tcp = |host: &str, port| Address::Tcp(host.into(), port);
        for (text, address) in [
            ("unix:run/rrdcached.sock", unix("run/rrdcached.sock")),
            ("/run/rrdcached.sock", unix("/run/rrdcached.sock")),
            ("localhost", tcp("localhost", PORT)),
            ("localhost:1234", tcp("localhost", 1234)),
            ("::1", tcp("::1", PORT)),
            ("[::1]", tcp("::1", PORT)),
            ("[::1]:1234", tcp("::1", 1234)),
        ] {
            assert_eq!(Address::parse(text), address);
        }
    }
}
