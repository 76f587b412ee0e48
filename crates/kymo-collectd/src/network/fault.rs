//! What is wrong with a datagram.

use std::fmt;

use super::Security;
use crate::NameError;

/// Something wrong in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub problem: Problem,
    /// Where the part begins, in bytes from the beginning of the datagram; of something in an
    /// encrypted part, where that begins.
    pub offset: usize,
}

/// What can be wrong with a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Fewer bytes are left than a part takes, or says it does.
    Truncated {
        /// Number of bytes required.
        needed: usize,
        /// Number of bytes left.
        left: usize,
    },
    /// A part says it is shorter than its own header.
    PartLength(usize),
    /// A text has no NUL at its end.
    NoNul,
    /// A text has not even room for a NUL.
    EmptyText,
    /// A text is longer than can be.
    TextLength(usize),
    /// A text is not UTF-8.
    NotUtf8,
    /// A number that has not 8 bytes.
    NumberLength(usize),
    /// The number of values does not fit the length of the part.
    ValuesLength {
        /// Number of values according to the part.
        count: usize,
        /// Length of the part in bytes.
        length: usize,
    },
    /// A kind of values that does not exist.
    ValueKind(u8),
    /// Seconds that go beyond what can be counted.
    TimeRange(u64),
    /// A signature without room for a user's name.
    SignatureLength(usize),
    /// An encrypted part whose lengths contradict each other.
    EncryptionLength(usize),
    /// A signature or encryption of an unknown user.
    UnknownUser(String),
    /// Something that only keys can open or verify, and none.
    NoKeys,
    /// A signature that is another one.
    WrongSignature(String),
    /// An encrypted part that was encrypted with another password, or changed.
    WrongChecksum(String),
    /// Signed and encrypted parts in each other, deeper than anybody writes them.
    Nesting,
    /// It was received before.
    Replayed,
    /// Parts that are not protected as they must be; reported once for all that follow each other.
    Unprotected(Security),
    /// A signature that could not be verified, since there are no keys.
    Unverified,
    /// Values whose name is incomplete or cannot be stored.
    Name(NameError),
    /// Values or a message without a time.
    NoTime,
    /// Values without any.
    NoValues,
    /// Values or a message of a time that is too far from now.
    Stale,
    /// A message of no severity.
    Severity(u64),
    /// A message without text.
    NoMessage,
}

impl Problem {
    /// Whether what follows in the same datagram, or encrypted part, was left out.
    pub const fn ends(&self) -> bool {
        !matches!(
            self,
            Self::Unprotected(_)
                | Self::Unverified
                | Self::Name(_)
                | Self::NoTime
                | Self::NoValues
                | Self::Stale
                | Self::Severity(_)
                | Self::NoMessage
        )
    }

    /// Its name, as scripts see it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "truncated",
            Self::PartLength(_) => "part-length",
            Self::NoNul => "no-nul",
            Self::EmptyText => "empty-text",
            Self::TextLength(_) => "text-length",
            Self::NotUtf8 => "not-utf8",
            Self::NumberLength(_) => "number-length",
            Self::ValuesLength { .. } => "values-length",
            Self::ValueKind(_) => "value-kind",
            Self::TimeRange(_) => "time-range",
            Self::SignatureLength(_) => "signature-length",
            Self::EncryptionLength(_) => "encryption-length",
            Self::UnknownUser(_) => "unknown-user",
            Self::NoKeys => "no-keys",
            Self::WrongSignature(_) => "wrong-signature",
            Self::WrongChecksum(_) => "wrong-checksum",
            Self::Nesting => "nesting",
            Self::Replayed => "replayed",
            Self::Unprotected(_) => "unprotected",
            Self::Unverified => "unverified",
            Self::Name(_) => "name",
            Self::NoTime => "no-time",
            Self::NoValues => "no-values",
            Self::Stale => "stale",
            Self::Severity(_) => "severity",
            Self::NoMessage => "no-message",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => {
                write!(f, "a part of {needed} bytes, of which {left} are left")
            }
            Self::PartLength(length) => {
                write!(
                    f,
                    "a part says it has {length} bytes, its header alone has 4"
                )
            }
            Self::NoNul => f.write_str("a text without a NUL at its end"),
            Self::EmptyText => f.write_str("a text without even a NUL"),
            Self::TextLength(length) => write!(f, "a text of {length} bytes is too long"),
            Self::NotUtf8 => f.write_str("a text is not UTF-8"),
            Self::NumberLength(length) => {
                write!(f, "a number in a part of {length} bytes: expected 12")
            }
            Self::ValuesLength { count, length } => write!(
                f,
                "{count} values in a part of {length} bytes: expected {}",
                6 + 9 * count
            ),
            Self::ValueKind(code) => write!(f, "no kind of values has the number {code}"),
            Self::TimeRange(seconds) => write!(f, "{seconds} seconds are not below 2^34"),
            Self::SignatureLength(length) => write!(
                f,
                "a signature in a part of {length} bytes: expected more than 36"
            ),
            Self::EncryptionLength(length) => write!(
                f,
                "the lengths of an encrypted part of {length} bytes do not fit each other"
            ),
            Self::UnknownUser(user) => write!(f, "no user `{}` is known", user.escape_debug()),
            Self::NoKeys => f.write_str("it is protected, and there are no keys"),
            Self::WrongSignature(user) => {
                write!(f, "it was not signed with the password of `{user}`")
            }
            Self::WrongChecksum(user) => write!(
                f,
                "it was not encrypted with the password of `{user}`, or changed"
            ),
            Self::Nesting => f.write_str("signatures and encryption in each other, too deep"),
            Self::Replayed => f.write_str("it was received before"),
            Self::Unprotected(Security::Encrypt) => f.write_str("parts that are not encrypted"),
            Self::Unprotected(_) => f.write_str("parts that are not signed"),
            Self::Unverified => f.write_str("a signature, and no keys to verify it"),
            Self::Name(error) => error.fmt(f),
            Self::NoTime => f.write_str("there is no time"),
            Self::NoValues => f.write_str("there are no values"),
            Self::Stale => f.write_str("the time is too far from now"),
            Self::Severity(code) => write!(f, "no severity has the number {code}"),
            Self::NoMessage => f.write_str("there is no message"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.problem)
    }
}
