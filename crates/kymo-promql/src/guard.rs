//! What is looked at before the parser sees a query.
//!
//! The parser recurses on nested expressions and compiles regular expressions. So nesting, operators, escapes and regular
//! expressions are bounded, durations and times are checked at their place, raw strings become ordinary ones, and regular
//! expressions those of the library that matches.

use crate::parse::anchored;
use crate::regexes;

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
/// Milliseconds of the longest duration: as many as Prometheus has nanoseconds for, in 64 bits.
const LONGEST_DURATION: u64 = 9_223_372_036_854;
/// No time of `@` is as many seconds from 1970.
const FARTHEST_TIME: f64 = 9_223_372_036_854_775.0;

/// A function that was renamed.
const HOLT_WINTERS: &str = "holt_winters";
/// Its name in Prometheus 3.
pub(crate) const SMOOTHING: &str = "double_exponential_smoothing";

/// The query as the parser may see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Guarded {
    pub(crate) text: String,
    /// The regular expressions as they were written, in their order.
    pub(crate) patterns: Vec<String>,
}

/// Makes a query fit for the parser.
///
/// # Errors
///
/// What is wrong, with its line and column.
pub(crate) fn guard(query: &str) -> Result<Guarded, String> {
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
        patterns: Vec::new(),
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
    patterns: Vec<String>,
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

    fn run(mut self) -> Result<Guarded, String> {
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
                '@' => self.time()?,
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
                _ if char.is_ascii_digit() => self.digits()?,
                _ => self.copy(char.len_utf8()),
            }
        }
        Ok(Guarded {
            text: self.out,
            patterns: self.patterns,
        })
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
                if !std::mem::take(&mut self.is_regex) {
                    self.copy(place + 1);
                    return Ok(());
                }
                match unescape(text) {
                    Some(pattern) => self.regex(&pattern)?,
                    None => {
                        return Err(self.problem("invalid escape sequence in a string"));
                    }
                }
                self.at += place + 1;
                return Ok(());
            } else if char == '\n' {
                break;
            }
        }
        Err(self.problem("unterminated quoted string"))
    }

    /// Writes a regular expression as the parser is to have it, which compiles it whatever it takes. The first of a
    /// query may have a size of 1 MiB here, the second half of that, and so on: 6 MiB in total.
    fn regex(&mut self, pattern: &str) -> Result<(), String> {
        let translated = match regexes::translate(pattern) {
            Ok(translated) => translated,
            Err(problem) => {
                return Err(self.problem(&format!("error parsing regexp: {problem}")));
            }
        };
        match anchored(&translated, LARGEST_REGEX / self.regexes) {
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(self.problem("the regular expressions of the query are too large together"))
            }
            Err(_) => Err(self.problem(&format!(
                "error parsing regexp: illegal regex for {pattern}"
            ))),
            Ok(_) => {
                self.patterns.push(pattern.to_owned());
                self.quoted(&translated)
            }
        }
    }

    /// A string between backticks becomes one between quotes.
    fn raw_string(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let Some(end) = rest[1..].find('`') else {
            return Err(self.problem("unterminated raw string"));
        };
        match std::mem::take(&mut self.is_regex) {
            true => self.regex(&rest[1..=end])?,
            false => self.quoted(&rest[1..=end])?,
        }
        self.at += end + 2;
        Ok(())
    }

    /// Writes a text between quotes.
    fn quoted(&mut self, text: &str) -> Result<(), String> {
        self.out.push('"');
        for char in text.chars() {
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
        Ok(())
    }

    /// `@` and a time, if it is a number.
    fn time(&mut self) -> Result<(), String> {
        self.copy(1);
        self.spaces();
        let rest = self.rest().as_bytes();
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let end = rest[sign..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.');
        let text = &self.rest()[sign..sign + end.count()];
        match text.parse::<f64>() {
            Ok(seconds) if seconds.is_nan() || seconds.abs() >= FARTHEST_TIME => Err(self.problem(
                &format!("timestamp out of bounds for @ modifier: {seconds:.6}"),
            )),
            _ => Ok(()),
        }
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

    fn duration(&mut self) -> Result<(), String> {
        let (length, _) = duration(self.rest()).map_err(|problem| self.problem(problem))?;
        self.copy(length);
        Ok(())
    }

    /// A number, or what follows digits without a space: `0x1f`, `1e5`, `5m`.
    fn digits(&mut self) -> Result<(), String> {
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
        let text = &self.rest()[..length];
        if text.parse().is_ok_and(f64::is_infinite) {
            return Err(self.problem(&format!(
                "error parsing number: \"{text}\": value out of range"
            )));
        }
        self.copy(length);
        Ok(())
    }

    fn word(&mut self, in_braces: bool) -> Result<(), String> {
        let rest = self.rest();
        let is_end = |char: char| !(char.is_ascii_alphanumeric() || char == '_' || char == ':');
        let length = rest.find(is_end).unwrap_or(rest.len());
        let word = rest[..length].to_ascii_lowercase();
        if !in_braces
            && &rest[..length] == HOLT_WINTERS
            && rest[length..].trim_start().starts_with('(')
        {
            // The parser knows the name that it has in Prometheus 3.
            self.out.push_str(SMOOTHING);
            self.at += length;
            return Ok(());
        }
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

/// The length and the milliseconds of the duration that a text begins with: numbers with units, the longest first, as
/// in `1h30m`.
///
/// # Errors
///
/// It does not begin with a duration, or with one that is too long.
pub(crate) fn duration(text: &str) -> Result<(usize, u64), &'static str> {
    let mut units = &[
        ("y", 31_536_000_000),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ][..];
    let mut rest = text;
    let mut total: u64 = 0;
    while rest.starts_with(|char: char| char.is_ascii_digit()) {
        let letters = rest.trim_start_matches(|char: char| char.is_ascii_digit());
        let number: u64 = rest[..rest.len() - letters.len()]
            .parse()
            .unwrap_or(u64::MAX);
        let end = letters.find(|char: char| !char.is_ascii_lowercase());
        let (unit, behind) = letters.split_at(end.unwrap_or(letters.len()));
        let place = units.iter().position(|(name, _)| *name == unit);
        let place = place.ok_or("missing unit in a duration, such as 5m")?;
        total = total.saturating_add(number.saturating_mul(units[place].1));
        units = &units[place + 1..];
        rest = behind;
    }
    match text.len() - rest.len() {
        _ if total > LONGEST_DURATION => Err("duration out of range"),
        0 => Err("expected a duration such as 5m"),
        length => Ok((length, total)),
    }
}

/// What a string between quotes means; `None` if an escape in it is not understood.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut plain = Vec::with_capacity(text.len());
    let mut push = |char: char| {
        plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    };
    let mut rest = text;
    while let Some(place) = rest.find('\\') {
        rest[..place].chars().for_each(&mut push);
        rest = &rest[place + 1..];
        let letter = rest.chars().next()?;
        let mut length = letter.len_utf8();
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
        match letter {
            'a' => push('\x07'),
            'b' => push('\x08'),
            'f' => push('\x0c'),
            'n' => push('\n'),
            'r' => push('\r'),
            't' => push('\t'),
            'v' => push('\x0b'),
            '\\' | '"' | '\'' => push(letter),
            // Bytes above 127 would be parts of characters, which come as themselves.
            '0'..='7' => {
                length = 3;
                push(char::from_u32(number(rest.get(..3)?, 8)?).filter(char::is_ascii)?);
            }
            'x' => {
                length = 3;
                push(char::from_u32(number(rest.get(1..3)?, 16)?).filter(char::is_ascii)?);
            }
            'u' | 'U' => {
                length = if letter == 'u' { 5 } else { 9 };
                push(char::from_u32(number(rest.get(1..length)?, 16)?)?);
            }
            _ => return None,
        }
        rest = &rest[length..];
    }
    rest.chars().for_each(&mut push);
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_strings_become_quoted_ones() {
        let guarded = guard("a{b=~`\\.\"x`,c=`\\d`} # c\n+ 1").unwrap();
        assert_eq!(guarded.text, "a{b=~\"\\\\.\\\"x\",c=\"\\\\d\"}  \n+ 1");
        assert_eq!(guarded.patterns, [r#"\."x"#]);
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
            ("x offset 300y", "duration out of range"),
            ("x @ -1e16", "timestamp out of bounds"),
            ("x + 1e400", "value out of range"),
            (r#"x{a=~"\q"}"#, "invalid escape sequence"),
            (r#"x{a=~"b**"}"#, "invalid nested repetition operator"),
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
            assert_eq!(guard(fine).unwrap().text, fine);
        }
    }

    #[test]
    fn escapes_are_those_of_go() {
        for (text, plain) in [
            (r"a\\.\n", Some("a\\.\n")),
            (r"\x41\101\u00e9\U0001F600", Some("AAé😀")),
            (r"\xff", None),
            (r"\q", None),
            (r"\x4", None),
            ("\\", None),
            (r"\ué", None),
        ] {
            assert_eq!(unescape(text).as_deref(), plain, "{text}");
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
