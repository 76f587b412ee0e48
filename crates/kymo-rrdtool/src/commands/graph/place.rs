//! Which word of a command line is wrong, and where.
//!
//! What reads the words stops at the first that is wrong, and says what rrdtool says. Here they are read again, a part at
//! a time, until that is said: nothing is kept for it where nothing is wrong.

use std::ops::Range;

use kymo_text::diagnostic::Diagnostic;

use super::super::span::Span;
use super::super::xport;
use super::OPTIONS;
use crate::graph::options::GraphOptions;
use crate::graph::{Bounds, Script};
use crate::options::{Opt, Words};
use crate::path::shown;
use crate::times::Clock;

/// A word that is wrong, and the part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) word: usize,
    range: Range<usize>,
}

/// A command whose operands are elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `graph` and `graphv`: the first operand is a file.
    Graph,
    /// `xport`.
    Table,
}

impl Asked {
    fn options(self) -> &'static [Opt] {
        match self {
            Self::Graph => OPTIONS,
            Self::Table => xport::OPTIONS,
        }
    }
}

/// Finds the word that causes a message; `None` if no word alone does.
pub(crate) fn find(asked: Asked, raw: &[&[u8]], message: &str, clock: &Clock<'_>) -> Option<Place> {
    let options = asked.options();
    let says = |text: String| text == message;
    let place = |part: &[u8]| {
        let within = |word: &&[u8]| {
            word.as_ptr_range().contains(&part.as_ptr()) || part.as_ptr() == word.as_ptr()
        };
        let word = raw.iter().position(within)?;
        let begin = part.as_ptr().addr() - raw[word].as_ptr().addr();
        let inner = quoted(part, message);
        Some(Place {
            word,
            range: begin + inner.start..begin + inner.end,
        })
    };
    let words = match Words::read(options, raw) {
        Ok(words) => words,
        Err(_) => {
            let is_read = |count: usize| Words::read(options, &raw[..count]).is_ok();
            // Without its value, an option is wrong until that comes.
            let count = (1..=raw.len())
                .rev()
                .take_while(|count| !is_read(*count))
                .last()?;
            return place(raw[count - 1]);
        }
    };
    let mut span = Span::DAY;
    for (name, value) in words.options() {
        let wrong = match name {
            "start" => span.set_start(value).err(),
            "end" => span.set_end(value).err(),
            _ if asked == Asked::Table => None,
            name => GraphOptions::read(&Words::of_option(name, value)).err(),
        };
        if wrong.is_some_and(|failure| says(failure.to_string())) {
            return place(value);
        }
    }
    let (start, end) = match span.resolve(clock) {
        Ok(span) => span,
        Err(failure) => {
            let value = words.value("start").or(words.value("end"))?;
            return says(failure.to_string()).then(|| place(value)).flatten();
        }
    };
    let bounds = match Bounds::new(start, end, 0, 400) {
        Ok(bounds) => bounds,
        Err(failure) => {
            let value = words.value("start").or(words.value("end"))?;
            return says(failure.to_string()).then(|| place(value)).flatten();
        }
    };
    let elements = match asked {
        Asked::Graph => words.operands.split_first()?.1,
        Asked::Table => &words.operands[..],
    };
    let fails = |count: usize| Script::read(&elements[..count], &bounds, clock).err();
    if !says(fails(elements.len())?.to_string()) {
        return None;
    }
    let (mut good, mut bad) = (0, elements.len());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match fails(middle) {
            Some(_) => bad = middle,
            None => good = middle,
        }
    }
    place(elements[bad - 1])
}

/// The longest text of a word that a message has between quotes or at its end, or else all of the word.
fn quoted(word: &[u8], message: &str) -> Range<usize> {
    // This apostrophe is not a quotation mark.
    let message = &message.replace("n't", "nt");
    let between = |quote: char| message.split(quote).skip(1).step_by(2);
    let last = [": ", " in ", " name ", "vname "]
        .map(|mark| message.rsplit(mark).next().unwrap_or_default());
    let first = message.split_whitespace().next();
    let candidates = between('\'').chain(between('"')).chain(last).chain(first);
    let at = |text: &str| {
        let text = text.as_bytes();
        let is_part = !text.is_empty() && text.len() < word.len();
        let place = is_part.then(|| word.windows(text.len()).position(|bytes| bytes == text))?;
        Some(place?..place? + text.len())
    };
    candidates
        .filter_map(at)
        .max_by_key(|range| range.len())
        .unwrap_or(0..word.len())
}

/// The same of a part of a word.
pub(super) fn picture_of_part(raw: &[&[u8]], word: usize, part: &str) -> String {
    let at = shown(raw[word]).find(part).unwrap_or(0);
    let range = at..(at + part.len()).min(raw[word].len());
    picture("", raw, &Place { word, range }, false)
}

/// A command line with the place that is wrong, as kymo's other languages show it, without the first line, which is the
/// message.
pub(crate) fn picture(name: &str, raw: &[&[u8]], place: &Place, color: bool) -> String {
    let mut line = String::from(name);
    let mut marked = 0..0;
    for (number, word) in raw.iter().enumerate() {
        let text = shown(word);
        let is_plain = !text.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || "'\"\\$`*?<>|&;()#".contains(c));
        let quote = if is_plain { "" } else { "'" };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(quote);
        if number == place.word {
            let before = shown(&word[..place.range.start]).len();
            let part = shown(&word[place.range.clone()]).len();
            marked = line.len() + before..line.len() + before + part;
        }
        // What is shown is one line.
        line.push_str(&text.replace(['\n', '\r'], " "));
        line.push_str(quote);
    }
    let picture = Diagnostic::error("")
        .at(marked, "")
        .render("command line", &line, color);
    let lines = picture.lines().skip(1);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalZone;

    fn place(words: &[&str]) -> Option<String> {
        let zone = LocalZone::utc();
        let clock = Clock {
            now: 1_700_000_000,
            zone: &zone,
            is_first: false,
        };
        let raw: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let message = {
            let words = Words::read(OPTIONS, &raw);
            let read = words.and_then(|words| {
                let mut span = Span::DAY;
                for (name, value) in words.options() {
                    match name {
                        "start" => span.set_start(value)?,
                        "end" => span.set_end(value)?,
                        _ => {}
                    }
                }
                GraphOptions::read(&words)?;
                let (start, end) = span.resolve(&clock)?;
                let bounds = Bounds::new(start, end, 0, 400)?;
                Script::read(&words.operands[1..], &bounds, &clock).map(drop)
            });
            read.unwrap_err().to_string()
        };
        let place = find(Asked::Graph, &raw, &message, &clock)?;
        Some(format!(
            "{}:{}",
            place.word, &words[place.word][place.range]
        ))
    }

    #[test]
    fn the_word_that_is_wrong_is_found() {
        for (words, found) in [
            (&["-", "LINE:1#ff00", "-c", "BACK#12"][..], "3:#12"),
            (&["-", "--color=NONE#fff", "LINE:1"], "1:NONE"),
            (&["-", "-s", "yesterdai", "LINE:1"], "2:yesterdai"),
            (&["-", "--none", "LINE:1"], "1:none"),
            (&["-", "LINE:1#ff0000", "LINE:1#xyz:legend"], "2:#xyz"),
            (&["-", "LINE:1", "LINE:nope#fff"], "2:nope"),
            (&["-", "LINE:1", "CDEF:b=1,2,FOO", "LINE:1"], "2:FOO"),
            (&["-", "DEF:a=x.rrd:a:AVERAGO"], "1:AVERAGO"),
            (&["-n", "TITLE:big", "-", "LINE:1"], "1:TITLE:big"),
            (&["-w", "5", "-", "LINE:1"], "1:5"),
        ] {
            assert_eq!(place(words).as_deref(), Some(found), "{words:?}");
        }
    }

    #[test]
    fn words_of_tables_are_found() {
        let zone = LocalZone::utc();
        let clock = Clock {
            now: 1_700_000_000,
            zone: &zone,
            is_first: false,
        };
        let raw: [&[u8]; 4] = [b"--json", b"CDEF:b=1,2,FOO", b"-s", b"end-1h"];
        let bounds = Bounds::new(1_700_000_000, 1_700_003_600, 0, 400).unwrap();
        let message = Script::read(&raw[1..2], &bounds, &clock).unwrap_err();
        let place = find(Asked::Table, &raw, &message.to_string(), &clock).unwrap();
        assert_eq!(&raw[place.word][place.range], b"FOO");
    }

    #[test]
    fn the_picture_shows_the_line() {
        let raw: Vec<&[u8]> = vec![b"-", b"LINE:1#xyz:a legend"];
        let place = Place {
            word: 1,
            range: 6..10,
        };
        let shown = picture("graph", &raw, &place, false);
        assert!(shown.contains("graph - 'LINE:1#xyz:a legend'"), "{shown}");
        assert!(shown.ends_with("^^^^"), "{shown}");
    }
}
