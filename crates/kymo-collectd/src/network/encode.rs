//! Values to datagrams.

use std::fmt;

use kymo_time::CdTime;
use sha2::{Digest, Sha256};

use super::keys::Key;
use super::{DATAGRAM, ENCRYPTION, HEADER, IV, LONGEST_MESSAGE, SIGNATURE, part};
use crate::identifier::LONGEST_NAME;
use crate::{Identifier, Notification, Value};

/// The longest name of a user that collectd's receiver takes, in bytes.
const LONGEST_USER: usize = 64;
/// The sizes of datagrams that collectd can be configured for, in bytes.
pub const SIZES: std::ops::RangeInclusive<usize> = 1024..=65_507;

/// How datagrams are protected.
#[derive(Default)]
pub enum Protection {
    /// Not at all.
    #[default]
    None,
    /// By a signature.
    Sign {
        /// The user.
        user: String,
        /// The user's password.
        password: Vec<u8>,
    },
    /// By encryption.
    Encrypt {
        /// The user.
        user: String,
        /// The user's password.
        password: Vec<u8>,
        /// Returns bytes that cannot be guessed, different ones for each datagram.
        random: Box<dyn FnMut() -> [u8; IV] + Send>,
    },
}

/// Initial vectors for [`Protection::Encrypt`], derived from 32 bytes that cannot be guessed and that
/// are used once: hashes of them and a number that counts up.
pub fn initial_vectors(seed: [u8; 32]) -> Box<dyn FnMut() -> [u8; IV] + Send> {
    let mut count = 0u64;
    Box::new(move || {
        count = count.wrapping_add(1);
        let hash = Sha256::new()
            .chain_update(seed)
            .chain_update(count.to_be_bytes())
            .finalize();
        hash.first_chunk().copied().unwrap_or_default()
    })
}

/// How datagrams are made.
pub struct PackerOptions {
    /// The size that no datagram exceeds, in bytes: 1024 to 65507.
    pub size: usize,
    /// How they are protected.
    pub protection: Protection,
}

impl Default for PackerOptions {
    /// As collectd does it.
    fn default() -> Self {
        Self {
            size: DATAGRAM,
            protection: Protection::None,
        }
    }
}

/// Why something cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// Datagrams of this size are not sent.
    Size(usize),
    /// The user's name is empty, or has more than 64 bytes.
    User,
    /// A name or a message is too long.
    TooLong(&'static str),
    /// A name or a message holds a NUL, which would end it.
    Nul(&'static str),
    /// Host, plugin or type, or a message, is empty.
    Empty(&'static str),
    /// There is no time, or the receiver would treat it as missing.
    NoTime,
    /// There are no values, or more than fit into a datagram.
    Values(usize),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(
                f,
                "datagrams of {size} bytes: expected {} to {}",
                SIZES.start(),
                SIZES.end()
            ),
            Self::User => write!(f, "expected a user's name of 1 to {LONGEST_USER} bytes"),
            Self::TooLong(what) => write!(f, "the {what} is too long"),
            Self::Nul(what) => write!(f, "the {what} holds a NUL"),
            Self::Empty(what) => write!(f, "the {what} is empty"),
            Self::NoTime => f.write_str("there is no time"),
            Self::Values(count) => write!(f, "{count} values do not fit in a datagram"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Packs values into datagrams, as many into each as fit.
///
/// What a datagram has said already is not said again, in the order in which collectd does it.
pub struct Packer {
    /// Bytes of parts that fit into a datagram.
    room: usize,
    seal: Seal,
    parts: Vec<u8>,
    /// What the parts have said.
    said: Option<Said>,
}

/// How a datagram is closed.
enum Seal {
    None,
    Sign {
        user: String,
        key: Key,
    },
    Encrypt {
        user: String,
        key: Key,
        random: Box<dyn FnMut() -> [u8; IV] + Send>,
    },
}

/// The names, time and interval of the values before.
struct Said {
    names: [String; 5],
    time: CdTime,
    interval: CdTime,
}

/// The names in the order in which they are written, each with its part.
fn names<'a>(id: &Identifier<'a>) -> [(u16, &'static str, &'a str); 5] {
    [
        (part::HOST, "host", id.host),
        (part::PLUGIN, "plugin", id.plugin),
        (part::PLUGIN_INSTANCE, "plugin instance", id.plugin_instance),
        (part::TYPE, "type", id.type_name),
        (part::TYPE_INSTANCE, "type instance", id.type_instance),
    ]
}

impl Packer {
    /// A packer of empty datagrams.
    ///
    /// # Errors
    ///
    /// A size that cannot be, a user's name that cannot be.
    pub fn new(options: PackerOptions) -> Result<Self, EncodeError> {
        if !SIZES.contains(&options.size) {
            return Err(EncodeError::Size(options.size));
        }
        let check = |user: &String| match (1..=LONGEST_USER).contains(&user.len()) {
            true => Ok(()),
            false => Err(EncodeError::User),
        };
        let (seal, overhead) = match options.protection {
            Protection::None => (Seal::None, 0),
            Protection::Sign { user, password } => {
                check(&user)?;
                let (key, overhead) = (Key::new(&password), SIGNATURE + user.len());
                (Seal::Sign { user, key }, overhead)
            }
            Protection::Encrypt {
                user,
                password,
                random,
            } => {
                check(&user)?;
                let (key, overhead) = (Key::new(&password), ENCRYPTION + user.len());
                (Seal::Encrypt { user, key, random }, overhead)
            }
        };
        Ok(Self {
            room: options.size - overhead,
            seal,
            parts: Vec::new(),
            said: None,
        })
    }

    /// Adds values. A datagram is given when they did not fit into it, and begin another one.
    ///
    /// # Errors
    ///
    /// Names, a time or values that cannot be sent; nothing was changed then.
    pub fn values(
        &mut self,
        id: &Identifier<'_>,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
    ) -> Result<Option<Vec<u8>>, EncodeError> {
        check_names(id)?;
        for (what, name) in [
            ("host", id.host),
            ("plugin", id.plugin),
            ("type", id.type_name),
        ] {
            if name.is_empty() {
                return Err(EncodeError::Empty(what));
            }
        }
        if time == CdTime::ZERO {
            return Err(EncodeError::NoTime);
        }
        let length = HEADER + 2 + 9 * values.len();
        // With the longest names, a fresh datagram has room for the rest.
        let most = self.room - 5 * (HEADER + LONGEST_NAME + 1) - 2 * (HEADER + 8);
        let count = match u16::try_from(values.len()) {
            Ok(count) if count > 0 && length <= most => count,
            _ => return Err(EncodeError::Values(values.len())),
        };
        let begin = self.parts.len();
        self.describe(id, time, interval);
        let mut done = None;
        if self.parts.len() + length > self.room {
            self.parts.truncate(begin);
            done = self.flush();
            self.describe(id, time, interval);
        }
        push_header(&mut self.parts, part::VALUES, length);
        self.parts.extend_from_slice(&count.to_be_bytes());
        self.parts
            .extend(values.iter().map(|value| value.to_wire().0));
        for value in values {
            self.parts.extend_from_slice(&value.to_wire().1);
        }
        self.said = Some(Said {
            names: names(id).map(|(_, _, name)| name.to_string()),
            time,
            interval,
        });
        Ok(done)
    }

    /// Writes what was not said before: host, time, interval, and the other names.
    fn describe(&mut self, id: &Identifier<'_>, time: CdTime, interval: CdTime) {
        let said = self.said.as_ref();
        for (position, (kind, _, name)) in names(id).into_iter().enumerate() {
            // In a new datagram every name is empty.
            let before = said.map_or("", |said| said.names[position].as_str());
            if before != name {
                push_text(&mut self.parts, kind, name);
            }
            if kind != part::HOST {
                continue;
            }
            if said.is_none_or(|said| said.time != time) {
                push_number(&mut self.parts, part::TIME_HR, time.ticks());
            }
            if said.map_or(CdTime::ZERO, |said| said.interval) != interval {
                push_number(&mut self.parts, part::INTERVAL_HR, interval.ticks());
            }
        }
    }

    /// A message, in a datagram of its own, as collectd sends it: it does not wait for values.
    ///
    /// # Errors
    ///
    /// Names, a time or a message that cannot be sent.
    pub fn notification(
        &mut self,
        notification: &Notification<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        let Notification {
            severity,
            time,
            id,
            message,
        } = notification;
        check_names(id)?;
        if message.len() > LONGEST_MESSAGE {
            return Err(EncodeError::TooLong("message"));
        }
        if message.contains('\0') {
            return Err(EncodeError::Nul("message"));
        }
        if message.is_empty() {
            return Err(EncodeError::Empty("message"));
        }
        if *time == CdTime::ZERO {
            return Err(EncodeError::NoTime);
        }
        let mut parts = Vec::new();
        push_number(&mut parts, part::TIME_HR, time.ticks());
        push_number(&mut parts, part::SEVERITY, severity.code());
        for (kind, _, name) in names(id)
            .into_iter()
            .filter(|(_, _, name)| !name.is_empty())
        {
            push_text(&mut parts, kind, name);
        }
        push_text(&mut parts, part::MESSAGE, message);
        Ok(self.seal.close(parts))
    }

    /// The datagram so far; `None` where there is nothing in it.
    pub fn flush(&mut self) -> Option<Vec<u8>> {
        self.said = None;
        let parts = std::mem::take(&mut self.parts);
        (!parts.is_empty()).then(|| self.seal.close(parts))
    }
}

impl Seal {
    /// Protects parts.
    fn close(&mut self, parts: Vec<u8>) -> Vec<u8> {
        match self {
            Self::None => parts,
            Self::Sign { user, key } => {
                let covered = [user.as_bytes(), &parts].concat();
                let mut datagram = Vec::with_capacity(SIGNATURE + covered.len());
                push_header(&mut datagram, part::SIGNATURE, SIGNATURE + user.len());
                datagram.extend_from_slice(&key.sign(&covered));
                datagram.extend_from_slice(&covered);
                datagram
            }
            Self::Encrypt { user, key, random } => {
                let length = ENCRYPTION + user.len() + parts.len();
                let mut datagram = Vec::with_capacity(length);
                push_header(&mut datagram, part::ENCRYPTION, length);
                // At most 64 bytes.
                datagram.extend_from_slice(&(user.len() as u16).to_be_bytes());
                datagram.extend_from_slice(user.as_bytes());
                let iv = random();
                datagram.extend_from_slice(&iv);
                datagram.extend_from_slice(&key.encrypt(&iv, &parts));
                datagram
            }
        }
    }
}

fn check_names(id: &Identifier<'_>) -> Result<(), EncodeError> {
    for (_, what, name) in names(id) {
        if name.len() > LONGEST_NAME {
            return Err(EncodeError::TooLong(what));
        }
        if name.contains('\0') {
            return Err(EncodeError::Nul(what));
        }
    }
    Ok(())
}

/// The lengths of all parts are below the size of a datagram.
fn push_header(parts: &mut Vec<u8>, kind: u16, length: usize) {
    parts.extend_from_slice(&kind.to_be_bytes());
    parts.extend_from_slice(&(length as u16).to_be_bytes());
}

fn push_text(parts: &mut Vec<u8>, kind: u16, text: &str) {
    push_header(parts, kind, HEADER + text.len() + 1);
    parts.extend_from_slice(text.as_bytes());
    parts.push(0);
}

fn push_number(parts: &mut Vec<u8>, kind: u16, number: u64) {
    push_header(parts, kind, HEADER + 8);
    parts.extend_from_slice(&number.to_be_bytes());
}
