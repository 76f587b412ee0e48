//! What a connection does, and whose it is: by both it is decided which one ends when there are too many.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// What a connection does.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Milliseconds from its beginning until something came last, and one more; 0 if nothing has come.
    latest: AtomicU64,
    /// Whether its thread waits for what comes.
    is_reading: AtomicBool,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            latest: AtomicU64::new(0),
            is_reading: AtomicBool::new(false),
        }
    }
}

impl Activity {
    pub(super) fn begin_reading(&self) {
        self.is_reading.store(true, Relaxed);
    }

    /// Notes whether something has come.
    pub(super) fn end_reading(&self, has_come: bool) {
        self.is_reading.store(false, Relaxed);
        if has_come {
            self.latest.store(self.millis() + 1, Relaxed);
        }
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// Whether nothing has come so far.
    pub(super) fn is_silent(&self) -> bool {
        self.latest.load(Relaxed) == 0
    }

    /// Whether its thread waits for what comes, and has nothing to do.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading.load(Relaxed)
    }

    /// For how long nothing has come.
    pub(super) fn quiet(&self) -> Duration {
        let latest = self.latest.load(Relaxed).saturating_sub(1);
        Duration::from_millis(self.millis().saturating_sub(latest))
    }
}

/// Whose a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// A host; of IPv6 its network of 64 bits, in which it may have any address.
    Address(IpAddr),
    /// A user of this machine.
    User(u32),
    /// Nobody can say.
    Unknown,
}

impl Peer {
    pub(super) fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address => address,
        })
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn of_process(stream: &UnixStream) -> Self {
        use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
        getsockopt(stream, PeerCredentials).map_or(Self::Unknown, |it| Self::User(it.uid()))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn of_process(_: &UnixStream) -> Self {
        Self::Unknown
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address @ IpAddr::V4(_)) => address.fmt(f),
            Self::Address(address) => write!(f, "{address}/64"),
            Self::User(user) => write!(f, "user {user}"),
            Self::Unknown => f.write_str("an unknown client"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_one_peer() {
        let peer = |text: &str| Peer::of_address(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
        assert_eq!(peer("2001:db8::1").to_string(), "2001:db8::/64");
    }
}
