//! What can be written on a command line, and how it is read.
//!
//! Options are read as rrdtool 1.7 reads them: they may stand anywhere before `--`, long ones are
//! never shortened, a value follows behind `=`, as the next word, or directly behind a single
//! letter.

use crate::{Failure, Session};

/// A command: how it is called, and what does its work.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What there is to know besides, in sentences; may be empty.
    pub details: &'static str,
    /// What follows the name and the options.
    pub operands: &'static str,
    /// Its options.
    pub options: &'static [Opt],
    /// Command lines to begin with.
    pub examples: &'static [&'static str],
    pub(crate) run: fn(&mut Session<'_>, &Words<'_>) -> Result<(), Failure>,
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt {
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// Its name.
    pub long: &'static str,
    /// What its value is called; `None` where it has none.
    pub value: Option<&'static str>,
    /// What it does.
    pub help: &'static str,
}

impl Opt {
    /// An option without a value.
    pub const fn flag(short: Option<char>, long: &'static str, help: &'static str) -> Self {
        Self {
            short,
            long,
            value: None,
            help,
        }
    }

    /// An option with a value.
    pub const fn with(
        short: Option<char>,
        long: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            short,
            long,
            value: Some(value),
            help,
        }
    }
}

/// A command line that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words<'a> {
    options: Vec<(&'static str, &'a [u8])>,
    /// Words that are not options, in order.
    pub operands: Vec<&'a [u8]>,
}

impl<'a> Words<'a> {
    /// Reads the words behind the name of a command.
    ///
    /// # Errors
    ///
    /// An option that there is not, or that lacks its value or has one too many.
    pub fn read(options: &'static [Opt], words: &[&'a [u8]]) -> Result<Self, Failure> {
        Self::read_to(Vec::new(), options, words)
    }

    /// The same, with operands in memory that was used before.
    pub(crate) fn read_to(
        operands: Vec<&'a [u8]>,
        options: &'static [Opt],
        words: &[&'a [u8]],
    ) -> Result<Self, Failure> {
        let mut read = Self {
            options: Vec::new(),
            operands,
        };
        // Without letters, a minus is that of a number, as with `resize`.
        let numbers = options.iter().all(|option| option.short.is_none());
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                b"--" => {
                    read.operands.extend(words);
                    break;
                }
                [b'-', b'-', long @ ..] => {
                    let (name, value) = match long.iter().position(|byte| *byte == b'=') {
                        Some(at) => (&long[..at], Some(&long[at + 1..])),
                        None => (long, None),
                    };
                    let option = options
                        .iter()
                        .find(|option| option.long.as_bytes() == name)
                        .ok_or_else(|| problem("invalid option", name))?;
                    let value = match (option.value, value) {
                        (None, None) => b"".as_slice(),
                        (None, Some(_)) => {
                            return Err(problem("option takes no arguments", name));
                        }
                        (Some(_), Some(value)) => value,
                        (Some(_), None) => words
                            .next()
                            .ok_or_else(|| problem("option requires argument", name))?,
                    };
                    read.options.push((option.long, value));
                }
                number @ [b'-', b'0'..=b'9', ..] if numbers => read.operands.push(number),
                [b'-', letters @ ..] if !letters.is_empty() => {
                    read.letters(options, letters, &mut words)?;
                }
                operand => read.operands.push(operand),
            }
        }
        Ok(read)
    }

    /// One option with its value.
    pub(crate) fn of_option(name: &'static str, value: &'a [u8]) -> Self {
        Self {
            options: vec![(name, value)],
            operands: Vec::new(),
        }
    }

    /// Reads letters behind one minus.
    fn letters(
        &mut self,
        options: &'static [Opt],
        mut letters: &'a [u8],
        words: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Failure> {
        while let [letter, rest @ ..] = letters {
            let option = options
                .iter()
                .find(|option| option.short.is_some_and(|short| short == *letter as char))
                .ok_or_else(|| problem("invalid option", &letters[..1]))?;
            if option.value.is_none() {
                self.options.push((option.long, b""));
                letters = rest;
                continue;
            }
            let value = match rest {
                [] => words
                    .next()
                    .ok_or_else(|| problem("option requires an argument", &letters[..1]))?,
                value => value,
            };
            self.options.push((option.long, value));
            break;
        }
        Ok(())
    }

    /// Whether an option is given, by its long name.
    pub fn has(&self, long: &str) -> bool {
        self.value(long).is_some()
    }

    /// The value of an option, by its long name; the last, if it is given more than once.
    pub fn value(&self, long: &str) -> Option<&'a [u8]> {
        self.values(long).last()
    }

    /// All values of an option that may be repeated.
    pub fn values(&self, long: &str) -> impl Iterator<Item = &'a [u8]> {
        let options = self.options.iter().filter(move |option| option.0 == long);
        options.map(|option| option.1)
    }

    /// All options with their values, in the order in which they are written.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, &'a [u8])> {
        self.options.iter().copied()
    }
}

/// An empty list of words that reuses the memory of another, whose words may live shorter; not all of
/// it, if those were many.
pub(crate) fn emptied<'a>(mut words: Vec<&[u8]>) -> Vec<&'a [u8]> {
    /// More words than most lines have.
    const MANY: usize = 1 << 12;
    words.clear();
    words.shrink_to(MANY);
    // The standard library collects in place what is of the same size.
    words.into_iter().map(|_| [].as_slice()).collect()
}

fn problem(what: &str, option: &[u8]) -> Failure {
    let option = String::from_utf8_lossy(option);
    Failure::new(format!("{what} -- '{option}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[Opt] = &[
        Opt::flag(Some('a'), "align-start", ""),
        Opt::with(Some('s'), "start", "TIME", ""),
        Opt::with(None, "format", "FORMAT", ""),
    ];

    fn read<'a>(words: &[&'a str]) -> Result<Words<'a>, String> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        Words::read(OPTIONS, &words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn options_stand_anywhere() {
        let line = [
            "f.rrd",
            "-as",
            "-1d",
            "-",
            "--format=x=y",
            "-s5",
            "--",
            "-q",
        ];
        let words = read(&line).unwrap();
        assert_eq!(words.operands, [b"f.rrd".as_slice(), b"-", b"-q"]);
        let starts: Vec<_> = words.values("start").collect();
        assert_eq!(starts, [b"-1d".as_slice(), b"5"]);
        assert_eq!(words.value("format"), Some(b"x=y".as_slice()));
        assert!(words.has("align-start"));
        assert_eq!(words.options().count(), 4);
    }

    #[test]
    fn a_command_without_letters_has_numbers() {
        let line = [b"f.rrd".as_slice(), b"-1", b"--format", b"-2"];
        let words = Words::read(&OPTIONS[2..], &line).unwrap();
        assert_eq!(words.operands, [b"f.rrd".as_slice(), b"-1"]);
        assert!(Words::read(&OPTIONS[2..], &[b"-x"]).is_err());
        assert!(Words::read(OPTIONS, &line).is_err());
    }

    #[test]
    fn memory_of_words_is_used_again() {
        let words: Vec<&[u8]> = vec![b"a"; 9];
        let before = (words.as_ptr().addr(), words.capacity());
        let words = emptied(words);
        assert!(words.is_empty());
        assert_eq!((words.as_ptr().addr(), words.capacity()), before);
    }

    #[test]
    fn what_is_no_option_is_reported() {
        for (line, message) in [
            (["-q"], "invalid option -- 'q'"),
            (["-s"], "option requires an argument -- 's'"),
            (["--sta"], "invalid option -- 'sta'"),
            (["--start"], "option requires argument -- 'start'"),
            (
                ["--align-start=1"],
                "option takes no arguments -- 'align-start'",
            ),
        ] {
            assert_eq!(read(&line).unwrap_err(), message);
        }
    }
}
