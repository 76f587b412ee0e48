//! Tokens by which clients of HTTP show who they are.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kymo_io::reason;
use subtle::ConstantTimeEq as _;

/// The tokens of a file: one in each line; empty lines and those that begin with `#` are passed over.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Vec<String>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// One that cannot be read, or has no tokens, as a message.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = kymo_io::read_small_text(path)
            .map_err(|error| format!("`{shown}`: {}", reason(&error)))?;
        let tokens = Self::parse(&text);
        match tokens.0.is_empty() {
            true => Err(format!(
                "`{shown}` has no tokens, expected one in each line"
            )),
            false => Ok(tokens),
        }
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.map(str::to_owned).collect())
    }

    /// Whether the value of a header `Authorization` has one of them, as `Bearer TOKEN`, or as `Token TOKEN` of InfluxDB.
    pub(crate) fn allow(&self, authorization: &str) -> bool {
        let Some((scheme, token)) = authorization.split_once(' ') else {
            return false;
        };
        let is_known = ["bearer", "token"]
            .iter()
            .any(|it| scheme.eq_ignore_ascii_case(it));
        let token = token.trim().as_bytes();
        // All are compared, each in the same time, so that nobody finds one out bit by bit.
        let found = self.0.iter().fold(false, |found, known| {
            found | bool::from(known.as_bytes().ct_eq(token))
        });
        is_known && found
    }
}

/// A file of tokens as it was when it was read last: tokens come and go without another configuration.
#[derive(Debug, Default)]
pub(crate) struct TokenFile {
    path: Option<PathBuf>,
    stamp: Stamp,
    /// What the file has; `None` if it cannot be read.
    tokens: Option<Tokens>,
}

/// What shows that a file has changed: its number, its size, and when it was changed.
type Stamp = Option<(u64, u64, i64, i64)>;

/// Whether a request may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// It has one of the tokens, or needs none.
    Yes,
    /// It does not.
    No,
    /// Nobody can say, since the file cannot be read.
    Unknown,
}

impl TokenFile {
    /// Whether a request with this header `Authorization` may be answered by a file, as it is now.
    pub(crate) fn allow(&mut self, path: Option<PathBuf>, authorization: &str) -> Allowed {
        let Some(path) = path else {
            return Allowed::Yes;
        };
        let state = |it: Metadata| (it.ino(), it.size(), it.ctime(), it.ctime_nsec());
        let stamp = path.metadata().ok().map(state);
        if stamp.is_none() || (stamp, Some(&path)) != (self.stamp, self.path.as_ref()) {
            self.tokens = Tokens::read(&path).ok();
            (self.stamp, self.path) = (stamp, Some(path));
        }
        match &self.tokens {
            None => Allowed::Unknown,
            Some(tokens) if tokens.allow(authorization) => Allowed::Yes,
            Some(_) => Allowed::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_lines() {
        let tokens = Tokens::parse("# of Telegraf\n\n abc \r\ndef\n");
        for (authorization, allows) in [
            ("Bearer abc", true),
            ("bearer def", true),
            ("Token abc", true),
            ("Bearer  abc ", true),
            ("Basic abc", false),
            ("Bearer ab", false),
            ("Bearer ", false),
            ("abc", false),
            ("", false),
            ("Bearer # of Telegraf", false),
        ] {
            assert_eq!(tokens.allow(authorization), allows, "{authorization}");
        }
        assert!(!Tokens::default().allow("Bearer "));
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
    }

    #[test]
    fn a_file_without_tokens_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let problem = Tokens::read(file.path()).unwrap_err();
        assert!(problem.contains("has no tokens"), "{problem}");
        assert!(Tokens::read(Path::new("/nowhere")).is_err());
    }
}
