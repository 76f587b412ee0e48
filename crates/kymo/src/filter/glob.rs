//! Patterns as shells know them.

/// A pattern: `*` stands for any text, `?` for one character, `[a-z_]` for one of a set,
/// `[!a-z]` (or `[^a-z]`) for one that is not; `\` takes away the meaning of what follows.
/// Anything else stands for itself. The whole text must match.
///
/// Text is taken as UTF-8; a byte that is none counts as a character that only `*`, `?`
/// and negated sets match.
///
/// ```
/// use kymo::filter::Glob;
///
/// assert!(Glob::new("sched_*").matches(b"sched_switch"));
/// assert!(!Glob::new("sched_?").matches(b"sched_switch"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Literal(char),
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// Reads a pattern. Every text is one: a `[` without its `]` stands for itself.
    pub fn new(pattern: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' if tokens.last() == Some(&Token::Any) => continue,
                '*' => Token::Any,
                '?' => Token::One,
                '\\' => Token::Literal(rest.next().unwrap_or('\\')),
                '[' => match read_set(rest.as_str()) {
                    Some((set, length)) => {
                        rest = rest.as_str()[length..].chars();
                        set
                    }
                    None => Token::Literal('['),
                },
                c => Token::Literal(c),
            });
        }
        Self {
            pattern: pattern.to_string(),
            tokens,
        }
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // Where to go on if the last `*` took one character more.
        let mut retry = None;
        loop {
            let step = match self.tokens.get(token) {
                Some(Token::Any) => {
                    retry = Some((token, at));
                    token += 1;
                    continue;
                }
                None if at == text.len() => return true,
                None => None,
                Some(one) => next_char(&text[at..])
                    .filter(|(c, _)| one.matches_one(*c))
                    .map(|(_, length)| length),
            };
            if let Some(length) = step {
                token += 1;
                at += length;
            } else if let Some((any, from)) = retry
                && let Some((_, length)) = next_char(&text[from..])
            {
                retry = Some((any, from + length));
                token = any + 1;
                at = from + length;
            } else {
                return false;
            }
        }
    }
}

impl Token {
    fn matches_one(&self, c: Option<char>) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Literal(literal) => c == Some(*literal),
            Self::Set { negated, ranges } => {
                let within =
                    c.is_some_and(|c| ranges.iter().any(|&(low, high)| low <= c && c <= high));
                within != *negated
            }
        }
    }
}

/// Reads a set after its `[`: the set, and its length with the `]`.
fn read_set(text: &str) -> Option<(Token, usize)> {
    let mut chars = text.char_indices().peekable();
    let negated = chars.next_if(|&(_, c)| c == '!' || c == '^').is_some();
    let mut ranges = Vec::new();
    loop {
        let (at, c) = chars.next()?;
        // A `]` that comes first stands for itself.
        if c == ']' && !ranges.is_empty() {
            return Some((Token::Set { negated, ranges }, at + 1));
        }
        let low = if c == '\\' { chars.next()?.1 } else { c };
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some((_, '-')), Some((_, high))) if high != ']' => {
                chars = ahead;
                if high == '\\' { chars.next()?.1 } else { high }
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

/// The first character and its length in bytes; `None` for a byte that begins no character.
fn next_char(text: &[u8]) -> Option<(Option<char>, usize)> {
    let &first = text.first()?;
    if first.is_ascii() {
        return Some((Some(first.into()), 1));
    }
    let length = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let c = text
        .get(..length)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next());
    Some((c, if c.is_some() { length } else { 1 }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: impl AsRef<[u8]>) -> bool {
        Glob::new(pattern).matches(text.as_ref())
    }

    #[test]
    fn shells_would_agree() {
        assert!(matches("", ""));
        assert!(matches("*", ""));
        assert!(!matches("?", ""));
        assert!(matches("lttng_ust_*:*", "lttng_ust_libc:malloc"));
        assert!(!matches("lttng_ust_*:m", "lttng_ust_libc:malloc"));
        assert!(matches("*a*b*c", "xxaxxbxxaxxc"));
        assert!(matches("[a-c]?[!0-9]", "bxx"));
        assert!(!matches("[a-c]?[!0-9]", "bx1"));
        assert!(!matches("[^a]", "a"));
        assert!(matches("[]a]", "]"));
        assert!(matches("[a-]", "-"));
        assert!(matches("[a", "[a"));
        assert!(matches(r"\*[\]]", "*]"));
        assert!(matches("a\\", "a\\"));
        assert!(matches("?", "é"));
        assert!(matches("[à-ü]", "é"));
        assert!(matches("?", b"\xff"));
        assert!(matches("[!a]", b"\xff"));
        assert!(!matches("\u{fffd}", b"\xff"));
    }

    #[test]
    fn many_stars_are_not_slow() {
        let pattern = "a*".repeat(200) + "b";
        assert!(!matches(&pattern, "a".repeat(10_000)));
    }

    /// The plain recursive definition.
    fn naive(pattern: &[Token], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((Token::Any, rest)) => {
                naive(rest, text)
                    || next_char(text).is_some_and(|(_, length)| naive(pattern, &text[length..]))
            }
            Some((one, rest)) => next_char(text)
                .is_some_and(|(c, length)| one.matches_one(c) && naive(rest, &text[length..])),
        }
    }

    proptest! {
        #[test]
        fn any_pattern_agrees_with_the_plain_definition(
            pattern in "[ab*?é\\[\\]!-]{0,8}", text in "[abé\\]-]{0,8}",
        ) {
            let glob = Glob::new(&pattern);
            prop_assert_eq!(glob.matches(text.as_bytes()), naive(&glob.tokens, text.as_bytes()));
        }
    }
}
