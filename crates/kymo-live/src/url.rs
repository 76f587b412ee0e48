//! Where a session is.

use std::fmt;

/// The port on which relay daemons wait for viewers, where none is given.
pub const DEFAULT_PORT: u16 = 5344;

/// The longest host and session names that messages of the protocol have room for.
const LONGEST_HOST: usize = 63;
const LONGEST_SESSION: usize = 254;

/// A relay daemon, and the session that is wanted of it: `net://HOST[:PORT][/host/TARGET/SESSION]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The host of the relay daemon: a name or an address, IPv6 without brackets.
    pub host: String,
    /// Its port for viewers.
    pub port: u16,
    /// Whether only IPv4 is used (`net4:`).
    pub is_ipv4: bool,
    /// The session; `None` for all that the daemon has.
    pub target: Option<Target>,
}

/// A session, as people name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The host that is traced.
    pub host: String,
    /// The name of the session.
    pub session: String,
}

/// Why a text is not a [`Url`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(&'static str);

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; expected `net://HOST[:PORT]/host/TARGET/SESSION`",
            self.0
        )
    }
}

impl std::error::Error for UrlError {}

impl Url {
    /// Whether a text begins like a URL, so that it is not a path.
    pub fn is_one(text: &str) -> bool {
        ["net://", "net4://", "net6://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (is_ipv4, rest) = match text.split_once("://") {
            Some(("net" | "net6", rest)) => (false, rest),
            Some(("net4", rest)) => (true, rest),
            _ => return Err(UrlError("it does not begin with `net://`")),
        };
        let (address, path) = match rest.split_once('/') {
            Some((address, path)) => (address, path.trim_end_matches('/')),
            None => (rest, ""),
        };
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or(UrlError("`[` has no `]`"))?,
            None => match address.split_once(':') {
                Some((host, _)) => (host, &address[host.len()..]),
                None => (address, ""),
            },
        };
        if host.is_empty() {
            return Err(UrlError("the host is missing"));
        }
        let port = match port.strip_prefix(':') {
            Some(port) => match port.parse() {
                Ok(port) if port != 0 => port,
                _ => return Err(UrlError("the port is not a number from 1 to 65535")),
            },
            None if port.is_empty() => DEFAULT_PORT,
            None => return Err(UrlError("the port does not begin with `:`")),
        };
        let target = match path {
            "" => None,
            path => {
                let named = path.strip_prefix("host/");
                let (host, session) = named
                    .and_then(|named| named.split_once('/'))
                    .ok_or(UrlError("the path is not `/host/TARGET/SESSION`"))?;
                if host.is_empty() || session.is_empty() {
                    return Err(UrlError("the path is not `/host/TARGET/SESSION`"));
                }
                if host.len() > LONGEST_HOST || session.len() > LONGEST_SESSION {
                    return Err(UrlError(
                        "the name of the host or of the session is too long",
                    ));
                }
                Some(Target {
                    host: host.into(),
                    session: session.into(),
                })
            }
        };
        Ok(Self {
            host: host.into(),
            port,
            is_ipv4,
            target,
        })
    }

    /// The same relay daemon with a session.
    #[must_use]
    pub fn with_target(&self, host: &str, session: &str) -> Self {
        Self {
            target: Some(Target {
                host: host.into(),
                session: session.into(),
            }),
            ..self.clone()
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_ipv4 { "net4" } else { "net" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]", self.host)?,
            false => write!(f, "{scheme}://{}", self.host)?,
        }
        if self.port != DEFAULT_PORT {
            write!(f, ":{}", self.port)?;
        }
        match &self.target {
            Some(Target { host, session }) => write!(f, "/host/{host}/{session}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_daemons_and_sessions() {
        for (text, host, port, target) in [
            ("net://localhost", "localhost", 5344, None),
            ("net://localhost/", "localhost", 5344, None),
            (
                "net4://127.0.0.1:99/host/vm/my-session",
                "127.0.0.1",
                99,
                Some(("vm", "my-session")),
            ),
            ("net://[::1]:99/host/vm/a b", "::1", 99, Some(("vm", "a b"))),
            ("net://[::1]/host/vm/a/", "::1", 5344, Some(("vm", "a"))),
        ] {
            let url = Url::parse(text).unwrap();
            let found = url.target.as_ref();
            let found = found.map(|it| (it.host.as_str(), it.session.as_str()));
            assert_eq!(
                (url.host.as_str(), url.port, found),
                (host, port, target),
                "{text}"
            );
            assert_eq!(Url::parse(&url.to_string()), Ok(url));
        }
        let long = format!("net://a/host/b/{}", "c".repeat(255));
        for text in [
            "net:/",
            "net://",
            "net://:5",
            "net://a:x",
            "net://a:0",
            "net://a:70000",
            "net://[a",
            "net://[a]b",
            "net://a/b",
            "net://a/host/b",
            "net://a/host//b",
            "net://a/host/b/",
            "file://a",
            &long,
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
