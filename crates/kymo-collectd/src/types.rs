//! `types.db`: what types of values there are.

use std::collections::HashMap;
use std::fmt;

use kymo_machine::Number;

use crate::identifier::LONGEST_NAME;
use crate::value::{Kind, kind_name, kind_of_name};

/// What one of the values of a type is.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSource {
    /// Its name, such as `rx`.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// No value is below this, where that is known.
    pub min: Option<f64>,
    /// No value is above this, where that is known.
    pub max: Option<f64>,
}

/// The types of values that are known, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypesDb(HashMap<String, Vec<DataSource>>);

/// What is wrong in a `types.db`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypesError {
    /// The line, from 1.
    pub line: usize,
    /// What was found, and what was expected.
    pub message: String,
}

impl fmt::Display for TypesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TypesError {}

/// Values that are not of their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypesMismatch {
    /// No type has this name.
    Unknown,
    /// The type has another number of values.
    Count {
        /// Number of values of the type.
        expected: usize,
        /// Number of values found.
        found: usize,
    },
    /// A value of the type is of another kind.
    Kind {
        /// The kind of the type's value.
        expected: Kind,
        /// The kind that was found.
        found: Kind,
    },
}

impl fmt::Display for TypesMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no type has this name"),
            Self::Count { expected, found } => {
                write!(f, "found {found} values, the type has {expected}")
            }
            Self::Kind { expected, found } => {
                let (expected, found) = (kind_name(*expected), kind_name(*found));
                write!(f, "found a {found}, the type has a {expected}")
            }
        }
    }
}

impl std::error::Error for TypesMismatch {}

impl TypesDb {
    /// Reads a file: a line is a name and data sources, `NAME:KIND:MIN:MAX` with `U` for a bound
    /// that is not known, between blanks or commas; `#` begins a comment.
    ///
    /// # Errors
    ///
    /// The first line that is written otherwise. collectd leaves such lines out.
    pub fn parse(text: &str) -> Result<Self, TypesError> {
        let mut types = Self::default();
        types.add(text)?;
        Ok(types)
    }

    /// Adds those of one more file, which replace those of the same name.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse); what comes before that line was added.
    pub fn add(&mut self, text: &str) -> Result<(), TypesError> {
        for (number, line) in text.lines().enumerate() {
            let error = |message| TypesError {
                line: number + 1,
                message,
            };
            let mut words = line
                .split([' ', '\t', ',', '\r'])
                .filter(|word| !word.is_empty());
            let Some(name) = words.next().filter(|name| !name.starts_with('#')) else {
                continue;
            };
            if name.len() > LONGEST_NAME {
                return Err(error(format!("a name of {} bytes is too long", name.len())));
            }
            let mut sources = Vec::new();
            for word in words {
                let source = data_source(word).ok_or_else(|| {
                    error(format!(
                        "`{word}` is not a data source: expected `NAME:KIND:MIN:MAX`"
                    ))
                })?;
                sources.push(source);
            }
            if sources.is_empty() {
                return Err(error(format!("the type `{name}` has no data source")));
            }
            self.0.insert(name.to_string(), sources);
        }
        Ok(())
    }

    /// The values of a type.
    pub fn get(&self, name: &str) -> Option<&[DataSource]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether values of these kinds are of a type.
    ///
    /// # Errors
    ///
    /// If the type is unknown, or the values do not match it. collectd would read the bits of one
    /// kind as the other.
    pub fn check(
        &self,
        name: &str,
        kinds: impl ExactSizeIterator<Item = Kind>,
    ) -> Result<(), TypesMismatch> {
        let sources = self.get(name).ok_or(TypesMismatch::Unknown)?;
        if sources.len() != kinds.len() {
            return Err(TypesMismatch::Count {
                expected: sources.len(),
                found: kinds.len(),
            });
        }
        match sources
            .iter()
            .zip(kinds)
            .find(|(source, kind)| source.kind != *kind)
        {
            Some((source, found)) => Err(TypesMismatch::Kind {
                expected: source.kind,
                found,
            }),
            None => Ok(()),
        }
    }
}

fn data_source(word: &str) -> Option<DataSource> {
    let mut parts = word.split(':');
    let (name, kind) = (parts.next()?, kind_of_name(parts.next()?)?);
    let (min, max) = (bound(parts.next()?)?, bound(parts.next()?)?);
    let is_whole = parts.next().is_none() && !name.is_empty() && name.len() <= LONGEST_NAME;
    is_whole.then(|| DataSource {
        name: name.to_string(),
        kind,
        min,
        max,
    })
}

/// A bound, or nothing where it is not known.
#[expect(clippy::option_option, reason = "no number, and no bound")]
fn bound(text: &str) -> Option<Option<f64>> {
    if text.eq_ignore_ascii_case("U") {
        return Some(None);
    }
    let value = Number::parse(text).ok()?.value();
    Some((!value.is_nan()).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_types() {
        let text = "# comment\n\nload  shortterm:GAUGE:0:5000, midterm:gauge:0:U\r\n\
                    \t if_octets\trx:DERIVE:-1e3:U\n #x\nload a:ABSOLUTE:U:10 , b:COUNTER:0:0x10\n";
        let types = TypesDb::parse(text).unwrap();
        assert_eq!(types.len(), 2);
        let source = |name: &str, kind, min, max| DataSource {
            name: name.to_string(),
            kind,
            min,
            max,
        };
        assert_eq!(
            types.get("load").unwrap(),
            [
                source("a", Kind::Absolute, None, Some(10.0)),
                source("b", Kind::Counter, Some(0.0), Some(16.0))
            ]
        );
        assert_eq!(
            types.get("if_octets").unwrap(),
            [source("rx", Kind::Derive, Some(-1000.0), None)]
        );
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, message) in [
            (
                "ok a:GAUGE:0:1\nload",
                "line 2: the type `load` has no data source",
            ),
            ("load a:GAUGE:0", "line 1: `a:GAUGE:0` is not a data source"),
            ("load a:GAUGE:0:1:2", "is not a data source"),
            ("load a:LEVEL:0:1", "is not a data source"),
            ("load :GAUGE:0:1", "is not a data source"),
            ("load a:GAUGE:x:1", "is not a data source"),
        ] {
            let error = TypesDb::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn values_are_of_a_type() {
        let types = TypesDb::parse("io a:DERIVE:0:U b:GAUGE:0:U").unwrap();
        let check = |name: &str, kinds: &[Kind]| types.check(name, kinds.iter().copied());
        assert_eq!(check("io", &[Kind::Derive, Kind::Gauge]), Ok(()));
        assert_eq!(check("oi", &[]), Err(TypesMismatch::Unknown));
        let (expected, found) = (2, 1);
        let error = TypesMismatch::Count { expected, found };
        assert_eq!(check("io", &[Kind::Derive]), Err(error));
        let (expected, found) = (Kind::Gauge, Kind::Counter);
        let error = TypesMismatch::Kind { expected, found };
        assert_eq!(check("io", &[Kind::Derive, Kind::Counter]), Err(error));
    }
}
