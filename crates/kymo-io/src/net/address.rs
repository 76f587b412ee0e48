//! Where something listens.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of this machine, by its path.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String, u16),
}

impl Address {
    /// Reads `unix:PATH`, `/PATH`, `HOST`, `HOST:PORT` or `[IPv6]:PORT`, where `port` is the one to assume.
    /// `None` if there is no host, the port is not a number of 16 bits, or it is missing and there is none to
    /// assume. Names of ports are not looked up.
    pub fn parse(text: &str, port: Option<u16>) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(Self::Unix(path.into()));
        }
        if text.starts_with('/') {
            return Some(Self::Unix(text.into()));
        }
        let (host, reported) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => match text.find(':') {
                // One colon, and not the many of IPv6.
                Some(colon) if !text[colon + 1..].contains(':') => text.split_at(colon),
                _ => (text, ""),
            },
        };
        let port = match reported.strip_prefix(':') {
            Some(reported) => reported.parse().ok(),
            None if reported.is_empty() => port,
            None => None,
        };
        (!host.is_empty()).then_some(())?;
        Some(Self::Tcp(host.to_owned(), port?))
    }

    /// Whether only this machine can connect, as far as names are resolved.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(host, port) => (host.as_str(), *port)
                .to_socket_addrs()
                .is_ok_and(|mut all| all.all(|address| is_loopback(address.ip()))),
        }
    }
}

/// Whether an address is one of this machine that no other reaches.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_many_ways() {
        let tcp = |host: &str, port| Some(Address::Tcp(host.into(), port));
        for (text, address) in [
            ("unix:run/sock", Some(Address::Unix("run/sock".into()))),
            ("/run/sock", Some(Address::Unix("/run/sock".into()))),
            ("localhost", tcp("localhost", 42217)),
            ("localhost:1234", tcp("localhost", 1234)),
            ("::1", tcp("::1", 42217)),
            ("[::1]", tcp("::1", 42217)),
            ("[::1]:1234", tcp("::1", 1234)),
            ("localhost:x", None),
            ("localhost:", None),
            ("localhost:70000", None),
            ("localhost:-1", None),
            ("[::1]x", None),
            ("[::1", None),
            ("[::1]:x", None),
            ("", None),
            (":80", None),
        ] {
            assert_eq!(Address::parse(text, Some(42217)), address, "{text}");
        }
        assert_eq!(Address::parse("localhost", None), None);
    }

    // It looks names up.
    #[cfg(unix)]
    #[test]
    fn only_loopback_is_local() {
        for (text, local) in [
            ("/run/sock", true),
            ("127.0.0.1:1", true),
            ("127.5.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            assert_eq!(
                Address::parse(text, None).unwrap().is_local(),
                local,
                "{text}"
            );
        }
    }
}
