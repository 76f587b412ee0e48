//! Paths with globs.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::TargetError;

/// Parts of a pattern.
const MOST_PARTS: usize = 64;

/// A path whose parts, separated by points, may contain `*`, `?`, `[abc]`, `[a-z]` and `{one,other}`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Plain(String),
    Glob(Regex),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// If it has too many parts, or braces or brackets that do not close.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let wrong = |problem: &str| TargetError::Target(format!("`{text}`: {problem}"));
        let mut parts = vec![String::new()];
        let mut in_braces = false;
        for char in text.chars() {
            match char {
                '.' if !in_braces => parts.push(String::new()),
                _ => {
                    match char {
                        '{' if in_braces => return Err(wrong("nested braces are not supported")),
                        '{' | '}' => in_braces = char == '{',
                        _ => {}
                    }
                    if let Some(last) = parts.last_mut() {
                        last.push(char);
                    }
                }
            }
        }
        if in_braces {
            return Err(wrong("a brace does not close"));
        }
        if parts.len() > MOST_PARTS {
            return Err(wrong("the path has too many parts"));
        }
        let parts = parts.into_iter().map(|part| {
            if !part.contains(['*', '?', '[', '{']) {
                return Ok(Part::Plain(part));
            }
            let regex = regex_of(&part).ok_or_else(|| wrong("a bracket does not close"))?;
            RegexBuilder::new(&regex)
                .size_limit(1 << 20)
                .build()
                .map(Part::Glob)
                .map_err(|_| wrong("the glob is wrong or too large"))
        });
        Ok(Self {
            text: text.to_owned(),
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a path with all its parts is meant.
    pub fn matches(&self, path: &str) -> bool {
        self.matches_beginning(path) == Some("")
    }

    /// If the first parts of a path are meant, what follows these and a point; `None` if they are not.
    pub fn matches_beginning<'p>(&self, path: &'p str) -> Option<&'p str> {
        let mut rest = Some(path);
        for part in &self.parts {
            let all = rest?;
            let (name, behind) = match all.split_once('.') {
                Some((name, behind)) => (name, Some(behind)),
                None => (all, None),
            };
            let is_met = match part {
                Part::Plain(text) => text == name,
                Part::Glob(regex) => regex.is_match(name),
            };
            if !is_met {
                return None;
            }
            rest = behind;
        }
        Some(rest.unwrap_or_default())
    }

    /// How many parts it has.
    pub fn depth(&self) -> usize {
        self.parts.len()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The regular expression of a glob; `None` if a bracket does not close.
fn regex_of(part: &str) -> Option<String> {
    let mut regex = String::from("^");
    let mut rest = part.chars();
    let mut in_braces = false;
    while let Some(char) = rest.next() {
        match char {
            '*' => regex.push_str("[^.]*"),
            '?' => regex.push_str("[^.]"),
            '{' => {
                in_braces = true;
                regex.push_str("(?:");
            }
            '}' if in_braces => {
                in_braces = false;
                regex.push(')');
            }
            ',' if in_braces => regex.push('|'),
            '[' => {
                regex.push('[');
                let mut is_first = true;
                loop {
                    match rest.next()? {
                        ']' if !is_first => break,
                        '!' if is_first => regex.push('^'),
                        '-' => regex.push('-'),
                        other => regex.push_str(&regex::escape(&other.to_string())),
                    }
                    is_first = false;
                }
                regex.push(']');
            }
            other => regex.push_str(&regex::escape(&other.to_string())),
        }
    }
    regex.push('$');
    Some(regex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_parts() {
        for (pattern, path, is_met) in [
            ("a.*.c", "a.b.c", true),
            ("a.*", "a.b.c", false),
            ("a.{b,x}?.c", "a.b1.c", true),
            ("a.[0-9]", "a.7", true),
            ("a.[!0-9]", "a.7", false),
            ("a.b", "a.b", true),
            ("a.b.c", "a.b", false),
            ("a+.b", "aa.b", false),
        ] {
            assert_eq!(
                Pattern::parse(pattern).unwrap().matches(path),
                is_met,
                "{pattern} {path}"
            );
        }
        assert_eq!(
            Pattern::parse("a.*").unwrap().matches_beginning("a.b.c.d"),
            Some("c.d")
        );
        assert!(Pattern::parse("a.{b").is_err());
        assert!(Pattern::parse("a.[b").is_err());
    }
}
