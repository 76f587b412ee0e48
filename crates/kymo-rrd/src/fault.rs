//! What is wrong with a file, and where.

use std::fmt;

/// Something in a file that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The field, such as `rra_def[2].row_cnt`.
    pub field: String,
    /// Where it is, in bytes from the beginning of the file, if that is known.
    pub offset: Option<u64>,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
    /// How it may have come about, if that is known.
    pub cause: Option<String>,
}

impl Error {
    /// An error without a likely cause.
    pub fn new(
        field: impl Into<String>,
        offset: impl Into<Option<u64>>,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            field: field.into(),
            offset: offset.into(),
            found: found.to_string(),
            expected: expected.to_string(),
            cause: None,
        }
    }

    /// The same with its likely cause.
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Self {
        Self {
            cause: Some(cause.into()),
            ..self
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            offset,
            found,
            expected,
            cause,
        } = self;
        write!(f, "`{field}`")?;
        if let Some(offset) = offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": found {found}, expected {expected}")?;
        match cause {
            Some(cause) => write!(f, "; {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something that no reader needs; it is lost when the file is converted.
    Note,
    /// No program writes this on purpose, but the file can be read.
    Warning,
    /// Something is lost or wrong.
    Damage,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Damage => "damage",
        }
    }
}

/// Something about a file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, and where.
    pub error: Error,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity.as_str(), self.error)
    }
}

/// Findings, of which the first are kept and all are counted: hostile files have many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: [u64; 3],
    first_damage: Option<Error>,
}

impl Findings {
    /// Number of findings that are kept.
    pub const KEPT: usize = 100;

    /// Adds a finding. It is made only where it is kept.
    pub fn add(&mut self, severity: Severity, error: impl FnOnce() -> Error) {
        self.counts[severity as usize] += 1;
        let first_damage = severity == Severity::Damage && self.first_damage.is_none();
        if self.kept.len() >= Self::KEPT && !first_damage {
            return;
        }
        let error = error();
        if first_damage {
            self.first_damage = Some(error.clone());
        }
        if self.kept.len() < Self::KEPT {
            self.kept.push(Finding { severity, error });
        }
    }

    /// Those that are kept, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.kept.iter()
    }

    /// How many of a severity were found.
    pub const fn count(&self, severity: Severity) -> u64 {
        self.counts[severity as usize]
    }

    /// How many were found and not kept.
    pub fn not_kept(&self) -> u64 {
        self.counts.iter().sum::<u64>() - self.kept.len() as u64
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The first damage that was found.
    pub fn damage(&self) -> Option<&Error> {
        self.first_damage.as_ref()
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
