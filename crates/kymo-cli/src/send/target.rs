//! Where values are sent.

use std::fmt;
use std::path::PathBuf;

use kymo_collectd::network::PORT;

/// Where values are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A port of a machine, or of a group of them.
    Network(String, u16),
    /// A socket of this machine.
    Unix(PathBuf),
    /// Where packets of traces are received.
    Packets(Place),
}

/// A place that packets of traces go to or come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    /// 0 for any that is free.
    pub(crate) port: u16,
}

impl Place {
    /// Reads `ctf+udp://HOST:PORT`; an address of IPv6 stands in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let place = text.strip_prefix("ctf+udp://").and_then(|rest| {
            let (host, port) = host_and_port(rest)?;
            let (host, port) = (host.to_string(), port?.parse().ok()?);
            Some(Self { host, port })
        });
        place.ok_or_else(|| "expected `ctf+udp://HOST:PORT`".to_string())
    }
}

/// A host, and what stands behind its colon, if it has one.
fn host_and_port(text: &str) -> Option<(&str, Option<&str>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        None if !port.is_empty() => return None,
        port => port,
    };
    (!host.is_empty()).then_some((host, port))
}

impl Target {
    /// Reads `collectd://HOST[:PORT]`, `unix:PATH` or `ctf+udp://HOST:PORT`; an address of IPv6 stands in
    /// brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let network = text.strip_prefix("collectd://").and_then(|rest| {
            let (host, port) = host_and_port(rest)?;
            let port = match port {
                Some(port) => port.parse().ok().filter(|port| *port > 0)?,
                None => PORT,
            };
            Some(Self::Network(host.to_string(), port))
        });
        let packets = || Place::parse(text).ok().filter(|place| place.port > 0);
        network
            .or_else(|| packets().map(Self::Packets))
            .ok_or_else(|| {
                "expected `collectd://HOST[:PORT]` or `unix:PATH` or `ctf+udp://HOST:PORT`"
                    .to_string()
            })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(host, port) if host.contains(':') => {
                write!(f, "collectd://[{host}]:{port}")
            }
            Self::Network(host, port) => write!(f, "collectd://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Packets(place) => place.fmt(f),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host.contains(':') {
            true => write!(f, "ctf+udp://[{host}]:{port}"),
            false => write!(f, "ctf+udp://{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for (text, shown) in [
            ("collectd://localhost", "collectd://localhost:25826"),
            ("collectd://10.0.0.1:99", "collectd://10.0.0.1:99"),
            (
                "collectd://[ff18::efc0:4a42]",
                "collectd://[ff18::efc0:4a42]:25826",
            ),
            ("collectd://[::1]:7", "collectd://[::1]:7"),
            ("unix:/run/x", "unix:/run/x"),
            ("ctf+udp://h:5555", "ctf+udp://h:5555"),
            ("ctf+udp://[::1]:5555", "ctf+udp://[::1]:5555"),
        ] {
            assert_eq!(Target::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "unix:",
            "host:1",
            "collectd://",
            "collectd://:1",
            "collectd://h:0",
            "collectd://h:x",
            "collectd://[::1",
            "collectd://[::1]7",
            "collectd://::1",
            "ctf+udp://h",
            "ctf+udp://h:0",
            "ctf+udp://:1",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
