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
}

impl Target {
    /// Reads `collectd://HOST[:PORT]` or `unix:PATH`; an address of IPv6 stands in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let network = text.strip_prefix("collectd://").and_then(|rest| {
            let (host, port) = match rest.strip_prefix('[') {
                Some(rest) => rest.split_once(']')?,
                None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
            };
            let port = match port.strip_prefix(':') {
                Some(port) => port.parse().ok().filter(|port| *port > 0)?,
                None if port.is_empty() => PORT,
                None => return None,
            };
            (!host.is_empty()).then(|| Self::Network(host.to_string(), port))
        });
        network.ok_or_else(|| "expected `collectd://HOST[:PORT]` or `unix:PATH`".to_string())
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
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
