//! Messages about states.

use std::fmt;

use kymo_time::CdTime;

use crate::Identifier;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It does not work.
    Failure,
    /// It may soon not work.
    Warning,
    /// It works again.
    Okay,
}

impl Severity {
    /// The number on the wire.
    pub const fn code(self) -> u64 {
        match self {
            Self::Failure => 1,
            Self::Warning => 2,
            Self::Okay => 4,
        }
    }

    /// The severity of a number on the wire.
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Failure),
            2 => Some(Self::Warning),
            4 => Some(Self::Okay),
            _ => None,
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "FAILURE",
            Self::Warning => "WARNING",
            Self::Okay => "OKAY",
        }
    }

    /// The severity of a name, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Failure, Self::Warning, Self::Okay]
            .into_iter()
            .find(|severity| severity.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A message about a state. Any name of what it is about may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// How bad it is.
    pub severity: Severity,
    /// When.
    pub time: CdTime,
    /// What it is about.
    pub id: Identifier<'a>,
    /// What people read: not empty, at most 255 bytes on the wire.
    pub message: &'a str,
}
