//! What the repository records of the conformance run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Outcome;

/// Columns of a tab-separated file, without blank lines and those that begin with `#`.
pub(super) fn rows(path: &Path) -> Outcome<Vec<Vec<String>>> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split('\t').map(str::to_string).collect())
        .collect())
}

/// How many cases of each corpus passed, and how many there are.
pub(super) struct Numbers(BTreeMap<String, (usize, usize)>);

impl Numbers {
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        let mut numbers = BTreeMap::new();
        for row in rows(path)? {
            let [corpus, passed, cases] = row.as_slice() else {
                return Err(format!("{}: a row has three columns", path.display()).into());
            };
            numbers.insert(corpus.clone(), (passed.parse()?, cases.parse()?));
        }
        Ok(Self(numbers))
    }

    pub(super) fn write(&self, path: &Path) -> Outcome {
        let mut text = String::from("# corpus\tpassed\tcases\n");
        for (corpus, (passed, cases)) in &self.0 {
            text += &format!("{corpus}\t{passed}\t{cases}\n");
        }
        Ok(std::fs::write(path, text)?)
    }

    pub(super) fn set(&mut self, corpus: &str, passed: usize, cases: usize) {
        self.0.insert(corpus.to_string(), (passed, cases));
    }

    /// Complains when fewer passed than recorded, or when cases were lost.
    pub(super) fn check(&self, corpus: &str, passed: usize, cases: usize) -> Result<(), String> {
        match self.0.get(corpus) {
            None => Err(format!("no number is recorded for {corpus}")),
            Some((_, recorded)) if cases < *recorded => Err(format!(
                "{corpus} has {cases} cases, and had {recorded}: the corpus is not complete"
            )),
            Some((recorded, _)) if passed < *recorded => {
                Err(format!("{corpus} passed {recorded}, and now {passed}"))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The cases that fail for a known reason.
pub(super) struct Exceptions(BTreeMap<(String, String), String>);

impl Exceptions {
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        let mut exceptions = BTreeMap::new();
        for row in rows(path)? {
            let [corpus, case, reason] = row.as_slice() else {
                return Err(format!("{}: a row has three columns", path.display()).into());
            };
            exceptions.insert((corpus.clone(), case.clone()), reason.clone());
        }
        Ok(Self(exceptions))
    }

    pub(super) fn reason(&self, corpus: &str, case: &str) -> Option<&str> {
        self.0
            .get(&(corpus.to_string(), case.to_string()))
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_not_fall() {
        let mut numbers = Numbers(BTreeMap::new());
        assert!(numbers.check("a", 1, 1).is_err());
        numbers.set("a", 2, 3);
        assert!(numbers.check("a", 2, 3).is_ok());
        assert!(numbers.check("a", 3, 4).is_ok());
        assert!(numbers.check("a", 1, 3).is_err());
        assert!(numbers.check("a", 2, 2).is_err());
    }
}
