//! Targets: patterns, and functions of them.

use std::fmt;

use crate::{Pattern, TargetError};

/// The longest target, in bytes.
const LONGEST: usize = 16 << 10;
/// How deep functions may be nested.
const DEEPEST: usize = 32;

/// A target.
#[derive(Clone, Debug)]
pub enum Target {
    /// Series by their paths.
    Pattern(Pattern),
    /// A function.
    Call(String, Vec<Argument>),
}

/// What a function gets.
#[derive(Clone, Debug)]
pub enum Argument {
    /// Series.
    Target(Target),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Whether something is so.
    Truth(bool),
}

impl Target {
    /// Reads a target.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    ///
    /// ```
    /// use kymo_graphite::Target;
    ///
    /// let target = Target::parse("scale( a.*.{b,c} , 0.5)").unwrap();
    /// assert_eq!(target.to_string(), "scale(a.*.{b,c},0.5)");
    /// ```
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let mut parser = Parser { text, at: 0 };
        if text.len() > LONGEST {
            return Err(TargetError::Target(format!(
                "the target is longer than {LONGEST} bytes"
            )));
        }
        let target = match parser.argument(0)? {
            Argument::Target(target) => target,
            _ => return Err(parser.problem("a path or a function")),
        };
        parser.spaces();
        match parser.rest().is_empty() {
            true => Ok(target),
            false => Err(parser.problem("the end")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => pattern.fmt(f),
            Self::Call(name, arguments) => {
                write!(f, "{name}(")?;
                for (place, argument) in arguments.iter().enumerate() {
                    let separator = if place > 0 { "," } else { "" };
                    write!(f, "{separator}{argument}")?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(target) => target.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Truth(truth) => truth.fmt(f),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn problem(&self, expected: &str) -> TargetError {
        let column = self.text[..self.at].chars().count() + 1;
        let found: String = self.rest().chars().take(10).collect();
        TargetError::Target(format!(
            "column {column}: found `{found}`, expected {expected}"
        ))
    }

    fn argument(&mut self, depth: usize) -> Result<Argument, TargetError> {
        if depth > DEEPEST {
            return Err(TargetError::Target(format!(
                "functions are nested deeper than {DEEPEST} levels"
            )));
        }
        self.spaces();
        let rest = self.rest();
        if let Some(quote) = rest
            .chars()
            .next()
            .filter(|char| matches!(char, '"' | '\''))
        {
            let Some(length) = rest[1..].find(quote) else {
                return Err(self.problem("a text that ends"));
            };
            self.at += length + 2;
            return Ok(Argument::Text(rest[1..=length].to_owned()));
        }
        let mut in_braces = false;
        let is_end = |char: char| match char {
            '{' | '}' => {
                in_braces = char == '{';
                false
            }
            ',' => !in_braces,
            '(' | ')' | '"' | '\'' | '|' | '=' => true,
            other => other.is_whitespace(),
        };
        let length = rest.find(is_end).unwrap_or(rest.len());
        let word = &rest[..length];
        if word.is_empty() {
            return Err(self.problem("a path, a function, a number or a text"));
        }
        self.at += length;
        self.spaces();
        if self.rest().starts_with('(') {
            self.at += 1;
            return Ok(Argument::Target(Target::Call(
                word.to_owned(),
                self.arguments(depth)?,
            )));
        }
        if let "true" | "True" | "false" | "False" = word {
            return Ok(Argument::Truth(word.eq_ignore_ascii_case("true")));
        }
        let is_number =
            word.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '-' | '+' | '.'));
        match word.parse() {
            Ok(number) if is_number => Ok(Argument::Number(number)),
            _ => Ok(Argument::Target(Target::Pattern(Pattern::parse(word)?))),
        }
    }

    fn arguments(&mut self, depth: usize) -> Result<Vec<Argument>, TargetError> {
        let mut arguments = Vec::new();
        self.spaces();
        if self.rest().starts_with(')') {
            self.at += 1;
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument(depth + 1)?);
            self.spaces();
            match self.rest().chars().next() {
                Some(',') => self.at += 1,
                Some(')') => {
                    self.at += 1;
                    return Ok(arguments);
                }
                _ => return Err(self.problem("`,` or `)`")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        for (text, problem) in [
            (
                "",
                "column 1: found ``, expected a path, a function, a number or a text",
            ),
            ("a(b", "column 4: found ``, expected `,` or `)`"),
            ("a)", "column 2: found `)`, expected the end"),
            ("a('b)", "column 3: found `'b)`, expected a text that ends"),
            ("5", "column 2: found ``, expected a path or a function"),
        ] {
            let error = Target::parse(text).unwrap_err();
            assert_eq!(error, TargetError::Target(problem.into()), "{text}");
        }
        assert!(Target::parse(&"a(".repeat(100)).is_err());
    }
}
