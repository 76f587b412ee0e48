//! Definitions and state that a daemon sends.

use kymo_rrd::text::info::{Fact, FactValue};

use super::Client;
use crate::Failure;
use crate::path::shown;

impl Client {
    /// Asks for definitions and state of a database.
    ///
    /// # Errors
    ///
    /// What the daemon says, and what of its answer is not understood.
    pub fn info(&mut self, file: &[u8]) -> Result<Vec<Fact>, Failure> {
        let mut facts = Vec::new();
        let file = self.path(file)?;
        self.ask_with(&[b"info", &file], |line| {
            let fact = fact(line).ok_or_else(|| {
                let line = shown(line);
                Failure::new(format!(
                    "found '{line}' in the daemon's answer, expected a key, a type and a value"
                ))
            })?;
            facts.push(fact);
            Ok(())
        })?;
        Ok(facts)
    }
}

/// A fact of a line: a key, the number of a type, and a value.
fn fact(line: &[u8]) -> Option<Fact> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let key = String::from_utf8_lossy(parts.next()?);
    let kind = parts.next()?;
    let text = parts.next().unwrap_or_default();
    let shown = shown(text);
    let value = match kind {
        b"0" => FactValue::Number(shown.parse().ok()?),
        b"1" => FactValue::Count(shown.parse().ok()?),
        b"2" => FactValue::text(text),
        b"3" => FactValue::Integer(shown.parse().ok()?),
        _ => return None,
    };
    Some(Fact::new(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_answers() {
        let number = fact(b"ds[a].value 0 1.5000000000e+00");
        assert_eq!(number.unwrap().value, FactValue::Number(1.5));
        let unknown = fact(b"ds[a].max 0 -nan").unwrap().value;
        assert!(matches!(unknown, FactValue::Number(number) if number.is_nan()));
        let text = fact(b"ds[a].cdef 2 a b").unwrap();
        assert_eq!(text, Fact::new("ds[a].cdef", FactValue::text("a b")));
        assert_eq!(fact(b"ds[a].last_ds 2").unwrap().value, FactValue::text(""));
        for line in ["step", "step 1 x", "step 9 1"] {
            assert_eq!(fact(line.as_bytes()), None, "{line}");
        }
    }
}
