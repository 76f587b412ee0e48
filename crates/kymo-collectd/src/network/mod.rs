//! The binary protocol of collectd's network plugin, UDP port 25826.
//!
//! A datagram is a sequence of parts; `docs/formats/collectd-network.md` shows their bytes. Names,
//! time and interval stay what they are until a part changes them; a part with values, or with a
//! message, says that they are complete. A signature covers all that follows it, an encrypted part
//! holds parts; both start over with nothing.
//!
//! [`Decoder`] reads datagrams, [`Packer`] writes them, [`Keys`] holds the accepted senders.
//! [`ReplayWindow`] rejects datagrams replayed by others, [`Repeats`] drops values
//! that come on two ways.

mod decode;
mod encode;
mod fault;
mod keys;
mod repeats;
mod replay;

pub use decode::{Decoder, Item, ReceivedNotification, ValueList, Values};
pub use encode::{EncodeError, Packer, PackerOptions, Protection, SIZES, initial_vectors};
pub use fault::{Fault, Problem};
pub use keys::{Keys, KeysError};
pub use repeats::Repeats;
pub use replay::{Guard, ReplayWindow, WindowAt};

/// The port that collectd listens on.
pub const PORT: u16 = 25826;
/// The multicast group of IPv4 that collectd uses where nothing is configured.
pub const GROUP_V4: std::net::Ipv4Addr = std::net::Ipv4Addr::new(239, 192, 74, 66);
/// That of IPv6.
pub const GROUP_V6: std::net::Ipv6Addr =
    std::net::Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0xefc0, 0x4a42);
/// The size of the largest datagram that collectd sends by default, in bytes.
pub const DATAGRAM: usize = 1452;

/// Bytes before the payload of a part: type and length.
const HEADER: usize = 4;
/// The longest message, in bytes.
const LONGEST_MESSAGE: usize = 255;
/// Bytes of a signature before the user's name: header and HMAC.
const SIGNATURE: usize = HEADER + 32;
/// Bytes of an encrypted part beside the user's name and what is hidden: header, length of the
/// name, initial vector, checksum.
const ENCRYPTION: usize = HEADER + 2 + IV + CHECKSUM;
/// Bytes of an initial vector.
const IV: usize = 16;
/// Bytes of a checksum.
const CHECKSUM: usize = 20;

/// Types of parts.
mod part {
    pub(super) const HOST: u16 = 0x0000;
    pub(super) const TIME: u16 = 0x0001;
    pub(super) const PLUGIN: u16 = 0x0002;
    pub(super) const PLUGIN_INSTANCE: u16 = 0x0003;
    pub(super) const TYPE: u16 = 0x0004;
    pub(super) const TYPE_INSTANCE: u16 = 0x0005;
    pub(super) const VALUES: u16 = 0x0006;
    pub(super) const INTERVAL: u16 = 0x0007;
    pub(super) const TIME_HR: u16 = 0x0008;
    pub(super) const INTERVAL_HR: u16 = 0x0009;
    pub(super) const MESSAGE: u16 = 0x0100;
    pub(super) const SEVERITY: u16 = 0x0101;
    pub(super) const SIGNATURE: u16 = 0x0200;
    pub(super) const ENCRYPTION: u16 = 0x0210;
}

/// How something is protected, and how it must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Security {
    /// Not at all, as far as it could be verified.
    #[default]
    None,
    /// Signed: it is from who knows the password.
    Sign,
    /// Encrypted as well.
    Encrypt,
}

impl Security {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sign => "sign",
            Self::Encrypt => "encrypt",
        }
    }

    /// The level of a name, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Sign, Self::Encrypt]
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(name))
    }
}
