//! What is looked at before the parser sees a query.
//!
//! The parser recurses on nested expressions and on pieces of strings, takes a number without a unit as a
//! duration of any size, and knows escapes in raw strings. So nesting, operators and escapes are bounded, durations are
//! checked, and raw strings become ordinary ones.

use crate::parse::anchored;

/// The longest query, in bytes.
const LONGEST: usize = 64 << 10;
/// How deep parentheses may be nested.
const DEEPEST: usize = 64;
/// Operators of a query: each may be a level of the expression.
const MOST_OPERATORS: usize = 250;
/// Escapes in strings, and comments.
const MOST_ESCAPES: usize = 500;
/// Matchers with regular expressions.
const MOST_REGEXES: usize = 100;
/// The compiled size of the first regular expression.
pub(crate) const LARGEST_REGEX: usize = 1 << 20;
/// Digits of a number of a duration.
const MOST_DIGITS: usize = 9;

/// The query as the parser may see it.
///
/// # Errors
///
/// What is wrong, with its line and column.
pub(crate) fn guard(query: &str) -> Result<String, String> {
    if query.len() > LONGEST {
        return Err(format!("the query is longer than {LONGEST} bytes"));
    }
    Guard {
        query,
        at: 0,
        out: String::with_capacity(query.len()),
        depth: 0,
        operators: 0,
        escapes: 0,
        regexes: 0,
        is_regex: false,
    }
    .run()
}

struct Guard<'q> {
    query: &'q str,
    at: usize,
    out: String,
    depth: usize,
    operators: usize,
    escapes: usize,
    regexes: usize,
    /// Whether the next string is a regular expression.
    is_regex: bool,
}

impl<'q> Guard<'q> {
    fn rest(&self) -> &'q str {
        &self.query[self.at..]
    }

    /// Copies `length` bytes unchanged.
    fn copy(&mut self, length: usize) {
        self.out.push_str(&self.rest()[..length]);
        self.at += length;
    }

    fn problem(&self, text: &str) -> String {
        let before = &self.query[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before
            .chars()
            .rev()
            .take_while(|char| *char != '\n')
            .count()
            + 1;
        format!("{line}:{column}: parse error: {text}")
    }

    fn limit(&self, count: usize, limit: usize, what: &str) -> Result<(), String> {
        match count > limit {
            true => Err(self.problem(&format!("more than {limit} {what}"))),
            false => Ok(()),
        }
    }

    fn run(mut self) -> Result<String, String> {
        let mut in_braces = false;
        let mut is_operator = false;
        while let Some(char) = self.rest().chars().next() {
            let was_operator = std::mem::take(&mut is_operator);
            match char {
                '"' | '\'' => self.string(char)?,
                '`' => self.raw_string()?,
                '#' => {
                    self.escapes += 1;
                    self.limit(self.escapes, MOST_ESCAPES, "escapes and comments")?;
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += end;
                    // What it separates stays separate.
                    self.out.push(' ');
                }
                '{' | '}' => {
                    in_braces = char == '{';
                    self.copy(1);
                }
                '~' => {
                    self.regexes += 1;
                    self.limit(self.regexes, MOST_REGEXES, "regular expressions")?;
                    self.copy(1);
                    self.is_regex = true;
                }
                '(' => {
                    self.depth += 1;
                    self.limit(self.depth, DEEPEST, "levels of parentheses")?;
                    self.copy(1);
                }
                ')' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.copy(1);
                }
                '[' => self.range()?,
                '+' | '-' | '*' | '/' | '%' | '^' | '=' | '!' | '<' | '>' if !in_braces => {
                    is_operator = true;
                    // `>=` is one.
                    self.operators += usize::from(!was_operator || "+-".contains(char));
                    self.limit(self.operators, MOST_OPERATORS, "operators")?;
                    self.copy(1);
                }
                _ if char.is_ascii_alphabetic() || char == '_' => self.word(in_braces)?,
                _ if char.is_ascii_digit() => self.digits(),
                _ => self.copy(char.len_utf8()),
            }
        }
        Ok(self.out)
    }

    fn string(&mut self, quote: char) -> Result<(), String> {
        let mut escaped = false;
        for (place, char) in self.rest().char_indices().skip(1) {
            if escaped {
                escaped = false;
            } else if char == '\\' {
                escaped = true;
                self.escapes += 1;
                self.limit(self.escapes, MOST_ESCAPES, "escapes and comments")?;
            } else if char == quote {
                let text = &self.rest()[1..place];
                self.regex(&text.replace("\\\\", "\\"))?;
                self.copy(place + 1);
                return Ok(());
            } else if char == '\n' {
                break;
            }
        }
        Err(self.problem("unterminated quoted string"))
    }

    /// The parser compiles regular expressions whatever they take. The first of a query may have a size of 1 MiB
    /// here, the second half of that, and so on: 6 MiB in total.
    fn regex(&mut self, pattern: &str) -> Result<(), String> {
        if !std::mem::take(&mut self.is_regex) {
            return Ok(());
        }
        match anchored(pattern, LARGEST_REGEX / self.regexes) {
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(self.problem("the regular expressions of the query are too large together"))
            }
            // What is wrong, the parser says.
            _ => Ok(()),
        }
    }

    /// A string between backticks becomes one between quotes.
    fn raw_string(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let Some(end) = rest[1..].find('`') else {
            return Err(self.problem("unterminated raw string"));
        };
        self.regex(&rest[1..=end])?;
        self.out.push('"');
        for char in rest[1..=end].chars() {
            let escape = match char {
                '\\' => "\\\\",
                '"' => "\\\"",
                '\n' => "\\n",
                '\r' => "\\r",
                other => {
                    self.out.push(other);
                    continue;
                }
            };
            self.escapes += 1;
            self.limit(self.escapes, MOST_ESCAPES, "escapes and comments")?;
            self.out.push_str(escape);
        }
        self.out.push('"');
        self.at += end + 2;
        Ok(())
    }

    /// `[5m]`, `[1h:]`, `[1h:5m]`.
    fn range(&mut self) -> Result<(), String> {
        self.copy(1);
        self.spaces();
        self.duration()?;
        self.spaces();
        if self.rest().starts_with(':') {
            self.copy(1);
            self.spaces();
            if !self.rest().starts_with(']') {
                self.duration()?;
                self.spaces();
            }
        }
        match self.rest().starts_with(']') {
            true => {
                self.operators += 1;
                self.limit(self.operators, MOST_OPERATORS, "operators")?;
                self.copy(1);
                Ok(())
            }
            false => Err(self.problem("expected ']' after a duration such as 5m")),
        }
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        let length = rest.len() - rest.trim_ascii_start().len();
        self.copy(length);
    }

    /// A duration: numbers with units, all of them small.
    fn duration(&mut self) -> Result<(), String> {
        let rest = self.rest().as_bytes();
        let mut length = 0;
        loop {
            let digits = rest[length..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                break;
            }
            if digits > MOST_DIGITS {
                return Err(self.problem("duration out of range"));
            }
            length += digits;
            let unit: &[u8] = match &rest[length..] {
                [b'm', b's', ..] => b"ms",
                [b'y' | b'w' | b'd' | b'h' | b'm' | b's', ..] => b"s",
                _ => return Err(self.problem("missing unit in a duration, such as 5m")),
            };
            length += unit.len();
        }
        if length == 0 {
            return Err(self.problem("expected a duration such as 5m"));
        }
        self.copy(length);
        Ok(())
    }

    /// A number, or what follows digits without a space: `0x1f`, `1e5`, `5m`.
    fn digits(&mut self) {
        let rest = self.rest().as_bytes();
        let mut length = 0;
        while length < rest.len() {
            let byte = rest[length];
            let is_sign = matches!(byte, b'+' | b'-')
                && matches!(rest[length - 1], b'e' | b'E')
                && !rest.starts_with(b"0x");
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || is_sign) {
                break;
            }
            length += 1;
        }
        self.copy(length);
    }

    fn word(&mut self, in_braces: bool) -> Result<(), String> {
        let rest = self.rest();
        let is_end = |char: char| !(char.is_ascii_alphanumeric() || char == '_' || char == ':');
        let length = rest.find(is_end).unwrap_or(rest.len());
        let word = rest[..length].to_ascii_lowercase();
        self.copy(length);
        if in_braces {
            return Ok(());
        }
        match word.as_str() {
            "offset" => {
                self.spaces();
                let rest = self.rest();
                // It may be the name of a metric or of a label.
                if rest.starts_with(['+', '-']) {
                    self.copy(1);
                    self.spaces();
                    return self.duration();
                }
                match rest.starts_with(|char: char| char.is_ascii_digit()) {
                    true => self.duration(),
                    false => Ok(()),
                }
            }
            "and" | "or" | "unless" | "atan2" => {
                self.operators += 1;
                self.limit(self.operators, MOST_OPERATORS, "operators")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_strings_become_quoted_ones() {
        assert_eq!(
            guard("a{b=~`\\d\"x`} # c\n+ 1").as_deref(),
            Ok("a{b=~\"\\\\d\\\"x\"}  \n+ 1")
        );
    }

    #[test]
    fn what_the_parser_must_not_see_is_refused() {
        for (query, problem) in [
            (
                "x[5]",
                "1:4: parse error: missing unit in a duration, such as 5m",
            ),
            ("x[1e300]", "1:4: parse error"),
            ("x\noffset 5", "2:9: parse error"),
            ("x offset -9999999999s", "duration out of range"),
            ("x[]", "expected a duration"),
            ("\"a", "unterminated"),
        ] {
            let found = guard(query).map_err(|error| error.contains(problem));
            assert!(
                matches!(found, Err(true))
                    || guard(query)
                        .unwrap_err()
                        .contains(problem.split(": ").last().unwrap()),
                "{query}: {:?}",
                guard(query)
            );
        }
        assert!(guard(&"(".repeat(65)).is_err());
        assert!(guard(&"-".repeat(300)).is_err());
        assert!(guard(&format!("\"{}\"", "\\n".repeat(600))).is_err());
        for fine in [
            "1e-5 - 3",
            "0x1f-1",
            "sum by (offset) (x)",
            "a >= bool 1.5",
            "x offset 5m[1h:]",
        ] {
            assert_eq!(guard(fine).as_deref(), Ok(fine));
        }
    }

    #[test]
    fn regular_expressions_are_bounded_together() {
        let large = r#"file=~"[\\pL\\pN]{1,200}""#;
        let error = guard(&format!("x{{{large}}}")).unwrap_err();
        assert!(error.contains("too large together"), "{error}");
        // One may be large, many are small.
        let names: Vec<String> = (0..500).map(|number| format!("host-{number}")).collect();
        assert!(guard(&format!("x{{a=~\"{}\"}}", names.join("|"))).is_ok());
        let many = vec![r#"a=~"b.*""#; 50].join(",");
        assert!(guard(&format!("x{{{many}}}")).is_ok());
    }
}
