//! Regular expressions as Prometheus reads them, written for the library that matches them here.
//!
//! Both descend from RE2 and differ in corners, where the same text would select other series: `\d`, `\w`, `\s` and `\b`
//! are of ASCII there; `&&`, `--`, `~~` and `[` have no meaning inside brackets, nor `\<` outside of them; a brace that
//! begins no repetition is a character; `\Q...\E` quotes. What exists here only is refused as it is there.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// The most that a regular expression may take when it is compiled, in bytes.
const LARGEST: usize = 1 << 20;

/// The largest count of a repetition.
const MOST_REPEATS: u32 = 1000;
/// Letters that may follow a backslash outside brackets, with the same meaning in both.
const SAME: &str = "ABCazfnrtvpPx";

/// A regular expression that has to match a whole text. Compiled it may take the `share`-th part of 1 MiB.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn compile(pattern: &str, share: usize) -> Result<Regex, String> {
    let translated =
        translate(pattern).map_err(|problem| format!("error parsing regexp: {problem}"))?;
    let regex = RegexBuilder::new(&format!("^(?:{translated})$"))
        .size_limit(LARGEST / share)
        .build();
    regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "the regular expressions of the query are too large together".to_owned()
        }
        _ => format!("error parsing regexp: illegal regex for {pattern}"),
    })
}

/// The same regular expression for the library.
fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        chars: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len()),
    };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'p> {
    chars: Peekable<Chars<'p>>,
    out: String,
}

/// A member of a class in brackets.
enum Member {
    /// A character, which may begin a range.
    Char(char),
    /// A class, written as it is to be.
    Class(String),
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut is_repeated = false;
        while let Some(char) = self.chars.next() {
            let repeats = match char {
                '*' | '+' | '?' => Some(char.to_string()),
                '{' => self.repetition()?,
                _ => None,
            };
            if let Some(mut repeats) = repeats {
                if is_repeated {
                    return Err(format!("invalid nested repetition operator: `{repeats}`"));
                }
                // The fewest first.
                repeats.extend(self.chars.next_if_eq(&'?'));
                self.out.push_str(&repeats);
                is_repeated = true;
                continue;
            }
            is_repeated = false;
            match char {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' | '}' => self.out.extend(['\\', char]),
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    /// The rest of `{2}`, `{2,}` or `{2,3}` and the brace before it; `None` if it is none of them.
    fn repetition(&mut self) -> Result<Option<String>, String> {
        let mut ahead = self.chars.clone();
        let mut text = String::from("{");
        loop {
            match ahead.next() {
                Some('}') => break,
                Some(char) if char.is_ascii_digit() || char == ',' => text.push(char),
                _ => return Ok(None),
            }
        }
        let inside = &text[1..];
        let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
        if least.is_empty() || most.contains(',') {
            return Ok(None);
        }
        let is_fine = |count: &str| count.parse().is_ok_and(|count: u32| count <= MOST_REPEATS);
        let fits = is_fine(least) && (most.is_empty() || is_fine(most));
        text.push('}');
        if !fits {
            return Err(format!("invalid repeat count: `{text}`"));
        }
        self.chars = ahead;
        Ok(Some(text))
    }

    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.chars.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        // Names of groups come with `P<` or `<`.
        if matches!(self.chars.peek(), Some('P' | '<')) {
            return Ok(());
        }
        for flag in self.chars.by_ref() {
            self.out.push(flag);
            match flag {
                'i' | 'm' | 's' | 'U' | '-' => {}
                ':' | ')' => return Ok(()),
                other => return Err(format!("invalid or unsupported Perl syntax: `(?{other}`")),
            }
        }
        Err("missing closing )".to_owned())
    }

    fn escape(&mut self) -> Result<(), String> {
        let char = self.chars.next().ok_or("trailing backslash at end")?;
        match char {
            'Q' => self.quotation(),
            // At an end of ASCII letters and digits.
            'b' => self.out.push_str("(?-u:\\b)"),
            '<' | '>' => self.out.push(char),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                let class = format!("[{}]", ascii_class(char));
                self.out.push_str(&class);
            }
            _ if SAME.contains(char) => {
                self.out.extend(['\\', char]);
                self.braces(char);
            }
            _ if char.is_ascii() && !char.is_ascii_alphanumeric() => self.out.extend(['\\', char]),
            _ => return Err(format!("invalid escape sequence: `\\{char}`")),
        }
        Ok(())
    }

    /// Copies what is in braces behind `\x` or `\p`, which is not a repetition.
    fn braces(&mut self, char: char) {
        if !matches!(char, 'x' | 'p' | 'P') || self.chars.peek() != Some(&'{') {
            return;
        }
        for char in self.chars.by_ref() {
            self.out.push(char);
            if char == '}' {
                return;
            }
        }
    }

    /// Characters up to `\E` or the end.
    fn quotation(&mut self) {
        while let Some(char) = self.chars.next() {
            if char == '\\' && self.chars.next_if_eq(&'E').is_some() {
                return;
            }
            self.out
                .push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
        }
    }

    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.chars.peek() {
                None => return Err("missing closing ]".to_owned()),
                Some(']') if !is_first => {
                    self.chars.next();
                    self.out.push(']');
                    return Ok(());
                }
                Some(_) => {}
            }
            is_first = false;
            let from = match self.member()? {
                Member::Char(from) => from,
                Member::Class(class) => {
                    self.out.push_str(&class);
                    continue;
                }
            };
            push_member(&mut self.out, from);
            let mut ahead = self.chars.clone();
            let is_range = ahead.next() == Some('-') && !matches!(ahead.next(), None | Some(']'));
            if !is_range {
                continue;
            }
            self.chars.next();
            match self.member()? {
                Member::Char(to) if to >= from => {
                    self.out.push('-');
                    push_member(&mut self.out, to);
                }
                Member::Char(to) => {
                    return Err(format!("invalid character class range: `{from}-{to}`"));
                }
                Member::Class(_) => {
                    return Err(format!("invalid character class range: `{from}-`"));
                }
            }
        }
    }

    fn member(&mut self) -> Result<Member, String> {
        let char = self.chars.next().ok_or("missing closing ]")?;
        if char == '[' && self.chars.peek() == Some(&':') {
            // `[:alpha:]`, if it ends.
            let mut name = String::from("[:");
            let mut ahead = self.chars.clone();
            ahead.next();
            for char in ahead.by_ref() {
                name.push(char);
                if !char.is_ascii_alphabetic() && !matches!(char, '^' | ':') {
                    break;
                }
            }
            if name.ends_with(":]") {
                self.chars = ahead;
                return Ok(Member::Class(name));
            }
        }
        if char != '\\' {
            return Ok(Member::Char(char));
        }
        let char = self.chars.next().ok_or("trailing backslash at end")?;
        Ok(match char {
            'd' | 's' | 'w' => Member::Class(ascii_class(char).to_owned()),
            'D' | 'S' | 'W' => Member::Class(format!("[{}]", ascii_class(char))),
            'p' | 'P' => {
                let outside = std::mem::take(&mut self.out);
                self.out.extend(['\\', char]);
                match self.chars.peek() {
                    Some('{') => self.braces(char),
                    _ => self.out.extend(self.chars.next()),
                }
                Member::Class(std::mem::replace(&mut self.out, outside))
            }
            'a' => Member::Char('\x07'),
            'f' => Member::Char('\x0c'),
            'n' => Member::Char('\n'),
            'r' => Member::Char('\r'),
            't' => Member::Char('\t'),
            'v' => Member::Char('\x0b'),
            'x' => Member::Char(self.hexadecimal()?),
            _ if char.is_ascii() && !char.is_ascii_alphanumeric() => Member::Char(char),
            _ => return Err(format!("invalid escape sequence: `\\{char}`")),
        })
    }

    /// The character of `\x41` or `\x{41}`, without what begins it.
    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits: String = match self.chars.next_if_eq(&'{') {
            Some(_) => self
                .chars
                .by_ref()
                .take_while(|char| *char != '}')
                .collect(),
            None => self.chars.by_ref().take(2).collect(),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(&digits, 16).ok().filter(|_| is_number);
        number
            .and_then(char::from_u32)
            .ok_or_else(|| format!("invalid escape sequence: `\\x{digits}`"))
    }
}

/// What stands in brackets for a class of ASCII.
const fn ascii_class(letter: char) -> &'static str {
    match letter {
        'd' => "0-9",
        'D' => "^0-9",
        's' => "\\t\\n\\x0C\\r ",
        'S' => "^\\t\\n\\x0C\\r ",
        'w' => "0-9A-Za-z_",
        _ => "^0-9A-Za-z_",
    }
}

/// Writes a character inside brackets.
fn push_member(out: &mut String, char: char) {
    if char.is_ascii_punctuation() && !matches!(char, '<' | '>') {
        out.push('\\');
    }
    out.push(char);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Prometheus 2.42 answers, of each pattern and text.
    #[test]
    fn patterns_match_what_they_match_in_prometheus() {
        for (pattern, text, matches) in [
            (r"\w+", "abc_1", true),
            (r"\w+", "é", false),
            (r"\d", "٣", false),
            (r"[\D]", "٣", true),
            (r"[\W_]+", "-_", true),
            (r"\s", "\u{a0}", false),
            (r".*\b.*", "é", false),
            (r"\<a", "<a", true),
            (r"\<a", "a", false),
            (r"[a&&b]+", "&a", true),
            (r"[[]p]", "[p]", true),
            (r"[+--]", ",", true),
            (r"[a~~b]", "~", true),
            (r"[]a]+", "]a", true),
            (r"[^]a]", "b", true),
            (r"[[:alpha:]_]+", "a_", true),
            (r"[a\]]+", "]a", true),
            (r"\Qa.b\E.", "a.bc", true),
            (r"\Qa.b", "axb", false),
            (r"{a}", "{a}", true),
            (r"a{,5}", "a{,5}", true),
            (r"a{2,}?", "aaa", true),
            (r"\pL\p{Greek}[\p{Lu}\x41-\x{5a}]", "aαZ", true),
            (r"(?i:A)(?P<x>b)", "ab", true),
            (r"[\x{e9}-é]", "é", true),
            (r"a\/b\-c\_", "a/b-c_", true),
        ] {
            let regex = compile(pattern, 1).unwrap();
            assert_eq!(regex.is_match(text), matches, "{pattern} {regex}");
        }
    }

    #[test]
    fn what_prometheus_refuses_is_refused() {
        for pattern in [
            "a**", "a*+", "a{2}*", "a*??", r"\u0041", r"\h", "(?x)a", "(?i", "a{1001}", "[a--z]",
            "[z-a]", r"[a-\d]", r"[\Q]", "[a", "a\\", r"\é", r"[\xZZ]",
        ] {
            assert!(translate(pattern).is_err(), "{pattern}");
        }
    }
}
