//! Definitions of events in headers of C programs: names for Gist logs, which have only numbers.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;

/// Bytes of a name, and of a format.
const LONGEST: usize = 1024;

/// An event that a header defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointDefinition {
    /// Its code.
    pub code: u32,
    /// What it is called.
    pub name: String,
    /// The format of its datum; empty if there is none.
    pub datum: String,
}

/// The events that headers define, each code once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointDefinitions {
    events: Vec<PointDefinition>,
    codes: HashSet<u32>,
}

/// A header that another one names, and what is added to its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointHeader {
    /// The base of `EV_NUM(n)` in it.
    pub base: u32,
    /// Where it is, as it is written.
    pub path: PathBuf,
}

/// What stands behind the name that a line defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("#define")?;
    let rest = rest
        .strip_prefix(|c: char| c.is_ascii_whitespace())?
        .trim_start();
    let name = rest.find(|c: char| c.is_ascii_whitespace())?;
    Some(rest[name..].trim_start())
}

/// The number that a text begins with, and what follows.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// What stands in a comment.
fn comment(text: &str) -> Option<&str> {
    let text = text.trim_start().strip_prefix("/*")?;
    Some(text.split("*/").next().unwrap_or(text).trim())
}

impl PointHeader {
    /// The headers that a header names: `#define BASE 100 /* pointdefs: points.h */`.
    pub fn all(text: &str) -> Vec<Self> {
        let header = |line: &str| {
            let (base, rest) = number(defined(line)?)?;
            let path = comment(&rest[rest.find('/')?..])?;
            let path = path.strip_prefix("pointdefs:")?.split_whitespace().next()?;
            Some(Self {
                base,
                path: path.into(),
            })
        };
        text.lines().filter_map(header).collect()
    }
}

impl PointDefinitions {
    /// Adds the events that a header defines: `#define FOO 123 /* name: format */`, or `EV_NUM(23)` for a number that is
    /// added to `base`. How many of them are new: of several with a code the first one stays.
    pub fn add(&mut self, text: &str, base: u32) -> usize {
        let before = self.events.len();
        for line in text.lines() {
            if let Some(event) = event(line, base)
                && self.events.len() < crate::definitions::MOST_EVENTS
                && self.codes.insert(event.code)
            {
                self.events.push(event);
            }
        }
        self.events.len() - before
    }

    /// The events, in the order of the headers.
    pub fn events(&self) -> &[PointDefinition] {
        &self.events
    }

    /// Appends names and formats as strings of CPEL to bytes: for each event its code and where these are.
    pub(crate) fn append(&self, to: &mut Vec<u8>) -> Vec<(u32, Range<usize>, Range<usize>)> {
        let mut push = |text: &str| {
            let begin = to.len();
            to.extend(text.as_bytes());
            to.push(0);
            begin..to.len()
        };
        let events = self.events.iter();
        events
            .map(|event| {
                // Names are formats of the code.
                let name = push(&event.name.replace('%', "%%"));
                (event.code, name, push(&event.datum))
            })
            .collect()
    }
}

fn event(line: &str, base: u32) -> Option<PointDefinition> {
    let value = defined(line)?;
    let (code, rest) = match value.strip_prefix("EV_NUM") {
        Some(rest) => {
            let (code, rest) = number(rest.trim_start().strip_prefix('(')?.trim_start())?;
            let rest = &rest[rest.find(')')? + 1..];
            (code.checked_add(base)?, rest)
        }
        None => number(value)?,
    };
    let comment = comment(rest)?;
    let (name, datum) = comment.split_once(':').unwrap_or((comment, ""));
    let (name, datum) = (
        name.trim(),
        datum.split_whitespace().next().unwrap_or_default(),
    );
    let is_text = |text: &str| text.len() <= LONGEST && !text.contains('\0');
    (!name.is_empty() && is_text(name) && is_text(datum)).then(|| PointDefinition {
        code,
        name: name.to_owned(),
        datum: datum.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_define_events() {
        let text = "#ifndef X\n#define X\n#define FOO 123\t/* foo 100%: %d */\n\
            #define BAR EV_NUM( 7 ) /* bar: 0x%x rest */\n #define BAZ 1 /* not: this */\n\
            #define NUL 5 /* none */\n#define AGAIN 123 /* again: %d */\n#define Y 9\n#define Z (3) /* z: %d */\n";
        let mut points = PointDefinitions::default();
        assert_eq!(points.add(text, 100), 3);
        let events: Vec<_> = points
            .events()
            .iter()
            .map(|event| (event.code, &*event.name, &*event.datum))
            .collect();
        assert_eq!(
            events,
            [
                (123, "foo 100%", "%d"),
                (107, "bar", "0x%x"),
                (5, "none", "")
            ]
        );
        let mut bytes = b"log".to_vec();
        let places = points.append(&mut bytes);
        let (code, name, datum) = places[0].clone();
        assert_eq!(
            (code, &bytes[name], &bytes[datum]),
            (123, &b"foo 100%%\0"[..], &b"%d\0"[..])
        );
        let list = "#define A_BASE 100 /* pointdefs: ../a/points.h */\n#define B 1 /* b: %d */";
        let expected = PointHeader {
            base: 100,
            path: "../a/points.h".into(),
        };
        assert_eq!(PointHeader::all(list), [expected]);
    }

    proptest! {
        #[test]
        fn any_text_is_withstood(text in "((#define |EV_NUM|[0-9() /*:%\t]|\\PC){0,20}\n){0,4}", base: u32) {
            let mut points = PointDefinitions::default();
            points.add(&text, base);
            let _ = PointHeader::all(&text);
            points.append(&mut Vec::new());
        }
    }
}
