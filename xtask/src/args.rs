//! Words and options of a command line.

use std::collections::VecDeque;
use std::str::FromStr;

use crate::Outcome;

/// What is left of the command line.
pub(crate) struct Args(VecDeque<String>);

impl Args {
    /// The arguments of this process.
    pub(crate) fn from_env() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Takes the next argument if it is not an option.
    pub(crate) fn word(&mut self) -> Option<String> {
        match self.0.front() {
            Some(first) if !first.starts_with('-') => self.0.pop_front(),
            _ => None,
        }
    }

    /// Takes the option `name` and its value, given as `name VALUE` or `name=VALUE`.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Outcome<Option<T>> {
        let joined = format!("{name}=");
        let text = if let Some(at) = self.0.iter().position(|arg| arg == name) {
            self.0.remove(at);
            self.0
                .remove(at)
                .ok_or_else(|| format!("`{name}` needs a value"))?
        } else if let Some(at) = self.0.iter().position(|arg| arg.starts_with(&joined)) {
            self.0.remove(at).unwrap_or_default()[joined.len()..].to_string()
        } else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(format!("`{name}` cannot be `{text}`").into()),
        }
    }

    /// Takes the option `name`, which has no value.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        match self.0.iter().position(|arg| arg == name) {
            Some(at) => self.0.remove(at).is_some(),
            None => false,
        }
    }

    /// Fails when anything is left.
    pub(crate) fn finish(self) -> Outcome {
        match self.0.front() {
            None => Ok(()),
            Some(arg) => {
                Err(format!("unexpected `{arg}`; `cargo xtask help` tells the usage").into())
            }
        }
    }
}
