//! How times are written.
//!
//! A text is a reference (`now`, `end`, a time of day, a date) and then offsets (`-1d`). The words
//! of one are not words of the other. Blanks, `_` and `,` separate; a character that no token begins with
//! ends the text, as it does for rrdtool.

use super::{Day, EARLIEST, Reference, Shift, TimeError, TimeSpec};

/// Reads a time.
pub(super) fn parse(text: &[u8]) -> Result<TimeSpec, TimeError> {
    let mut parser = Parser {
        text,
        cursor: Cursor::default(),
        spec: TimeSpec::NOW,
    };
    parser.advance();
    parser.reference()?;
    if matches!(parser.token(), Token::Plus | Token::Minus) {
        parser.offsets()?;
    }
    match parser.token() {
        Token::End => Ok(parser.spec),
        _ => Err(unparsable(format!(
            "unparsable trailing text: '...{}'",
            parser.shown()
        ))),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Token {
    Number,
    Word,
    Colon,
    Dot,
    Plus,
    Minus,
    Slash,
    #[default]
    End,
}

/// A token, and where it is.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    token: Token,
    begin: usize,
    end: usize,
}

/// A word of a reference.
#[derive(Clone, Copy)]
enum Word {
    Now,
    Start,
    End,
    Epoch,
    /// A time of day: its hour.
    Hour(u8),
    Am,
    Pm,
    /// A day, counted from today.
    After(i64),
    /// A day of the week, from Sunday, 0.
    OfWeek(u8),
    /// From 1.
    Month(i64),
}

/// A unit of an offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    /// `m`.
    MonthOrMinute,
}

struct Parser<'a> {
    text: &'a [u8],
    cursor: Cursor,
    spec: TimeSpec,
}

impl<'a> Parser<'a> {
    /// Goes to the next token.
    fn advance(&mut self) {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || b"\x0b_,".contains(byte);
        let begin = self.cursor.end;
        let blanks = self.text[begin..].iter().take_while(|byte| is_blank(byte));
        let begin = begin + blanks.count();
        let rest = &self.text[begin..];
        let run = |is: fn(&u8) -> bool| rest.iter().take_while(|byte| is(byte)).count();
        let (token, length) = match rest.first() {
            Some(b'0'..=b'9') => (Token::Number, run(u8::is_ascii_digit)),
            Some(b'a'..=b'z' | b'A'..=b'Z') => (Token::Word, run(u8::is_ascii_alphabetic)),
            Some(b':') => (Token::Colon, 1),
            Some(b'.') => (Token::Dot, 1),
            Some(b'+') => (Token::Plus, 1),
            Some(b'-') => (Token::Minus, 1),
            Some(b'/') => (Token::Slash, 1),
            _ => (Token::End, 0),
        };
        self.cursor = Cursor {
            token,
            begin,
            end: begin + length,
        };
    }

    fn token(&self) -> Token {
        self.cursor.token
    }

    /// The text of the token.
    fn found(&self) -> &'a [u8] {
        &self.text[self.cursor.begin..self.cursor.end]
    }

    /// The text from the token on, for messages.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.text[self.cursor.begin..]).into_owned()
    }

    /// What the word of a reference means.
    fn word(&self) -> Option<Word> {
        match self.token() {
            Token::Word => look_up(WORDS, self.found()),
            _ => None,
        }
    }

    /// The number; 0 if there is none.
    fn number(&self) -> Result<i64, TimeError> {
        match self.token() {
            Token::Number => digits(self.found()),
            _ => Ok(0),
        }
    }

    /// Goes on to a number, which must come next.
    fn next_number(&mut self, missing: impl FnOnce() -> String) -> Result<i64, TimeError> {
        self.advance();
        match self.token() {
            Token::Number => self.number(),
            _ => Err(unparsable(missing())),
        }
    }

    fn reference(&mut self) -> Result<(), TimeError> {
        match (self.token(), self.word()) {
            (Token::Plus | Token::Minus, _) => Ok(()),
            (Token::Number, _) => {
                self.time_of_day()?;
                self.day()?;
                if self.spec.time_of_day.is_none() && self.spec.date.is_some() {
                    self.time_of_day()?;
                }
                Ok(())
            }
            (_, Some(Word::Now)) => {
                self.advance();
                match self.token() {
                    Token::Plus | Token::Minus | Token::End => Ok(()),
                    _ => Err(unparsable(
                        "if 'now' is followed by a token it must be +|- offset",
                    )),
                }
            }
            (_, Some(Word::Start)) => self.relative(Reference::Start),
            (_, Some(Word::End)) => self.relative(Reference::End),
            (_, Some(Word::Epoch)) => self.relative(Reference::Seconds(0)),
            (_, Some(Word::Hour(hour))) => {
                self.spec.time_of_day = Some((hour, 0));
                self.advance();
                self.day()
            }
            (_, Some(Word::Month(_))) => {
                self.day()?;
                match self.token() {
                    Token::Number => self.time_of_day(),
                    _ => Ok(()),
                }
            }
            _ => Err(unparsable(format!("unparsable time: {}", self.shown()))),
        }
    }

    /// A reference that is none without an offset.
    fn relative(&mut self, reference: Reference) -> Result<(), TimeError> {
        self.spec.reference = reference;
        self.advance();
        match self.token() {
            Token::Plus | Token::Minus => Ok(()),
            _ => Err(unparsable(
                "'start' or 'end' MUST be followed by +|- offset",
            )),
        }
    }

    /// A time of day such as `9`, `10:30` and `5pm`, if it is one: of numbers that may be one, those
    /// before a point or a slash are dates, and those above 23. Behind a date, whatever is short
    /// is taken for hour 0.
    fn time_of_day(&mut self) -> Result<(), TimeError> {
        if self.found().len() > 2 {
            return Ok(());
        }
        let before = self.cursor;
        let mut hour = self.number()?;
        let mut minute = 0;
        self.advance();
        if matches!(self.token(), Token::Slash | Token::Dot) {
            self.cursor = before;
            return Ok(());
        }
        if self.token() == Token::Colon {
            minute = self.next_number(|| {
                "Parsing HH:MM syntax, expecting MM as number, got none".to_owned()
            })?;
            if minute > 59 {
                return Err(unparsable(format!(
                    "parsing HH:MM syntax, got MM = {minute} (>59!)"
                )));
            }
            self.advance();
        }
        match self.word() {
            Some(Word::Am | Word::Pm) if hour > 12 => {
                return Err(unparsable("there cannot be more than 12 AM or PM hours"));
            }
            Some(Word::Am) => {
                hour %= 12;
                self.advance();
            }
            Some(Word::Pm) => {
                hour = hour % 12 + 12;
                self.advance();
            }
            _ if hour > 23 => {
                self.cursor = before;
                return Ok(());
            }
            _ => {}
        }
        // Both are below 60.
        self.spec.time_of_day = Some((hour as u8, minute as u8));
        Ok(())
    }

    /// A day, if there is one.
    fn day(&mut self) -> Result<(), TimeError> {
        match (self.token(), self.word()) {
            (Token::Number, _) => return self.numeric_date(),
            (_, Some(Word::After(days))) => self.spec.date = Some(Day::After(days)),
            (_, Some(Word::OfWeek(day))) => self.spec.date = Some(Day::OfWeek(day)),
            (_, Some(Word::Month(month))) => {
                let day = self
                    .next_number(|| "the day of the month should follow month name".to_owned())?;
                self.advance();
                let year = match self.token() {
                    Token::Number => {
                        let year = full_year(self.number()?)?;
                        self.advance();
                        Some(year)
                    }
                    _ => None,
                };
                self.spec.date = Some(Day::Date { year, month, day });
                return Ok(());
            }
            _ => return Ok(()),
        }
        self.advance();
        Ok(())
    }

    /// `1600000000`, `20201231`, `12/31/2020`, `31.12.2020`; the last two also without a year.
    fn numeric_date(&mut self) -> Result<(), TimeError> {
        let first = self.number()?;
        let text = self.found();
        self.advance();
        if first > EARLIEST {
            self.spec.reference = Reference::Seconds(first);
            self.spec.date = None;
            // A time of day before it does not count.
            self.spec.time_of_day = None;
            return Ok(());
        }
        let (mut month, mut day, mut year) = (first, 0, None);
        if (19_700_102..=24_000_100).contains(&first) {
            // There are eight digits at least.
            year = Some(digits(&text[..4])?);
            (month, day) = (digits(&text[4..6])?, digits(&text[6..8])?);
        } else if first <= 31 && matches!(self.token(), Token::Slash | Token::Dot) {
            let separator = self.token();
            let (mark, second) = match separator {
                Token::Dot => ('.', "month"),
                _ => ('/', "day"),
            };
            day = self.next_number(|| format!("there should be {second} number after '{mark}'"))?;
            self.advance();
            if self.token() == separator {
                let missing = || format!("there should be year number after '{mark}'");
                year = Some(self.next_number(missing)?);
                self.advance();
            }
            if separator == Token::Dot {
                (month, day) = (day, month);
            }
        }
        if !(1..=12).contains(&month) {
            return Err(unparsable(format!("did you really mean month {month}?")));
        }
        if !(1..=31).contains(&day) {
            return Err(unparsable(format!(
                "I'm afraid that {day} is not a valid day of the month"
            )));
        }
        let year = year.map(full_year).transpose()?;
        self.spec.date = Some(Day::Date { year, month, day });
        Ok(())
    }

    /// Signs, numbers and units; a number without a sign has that of the one before. Whatever
    /// stands behind a number is taken for its unit, which is seconds if it is none.
    fn offsets(&mut self) -> Result<(), TimeError> {
        let mut sign = 1;
        let mut previous = None;
        loop {
            let amount = match self.token() {
                Token::Number => self.number()?,
                Token::Plus | Token::Minus => {
                    let mark = if self.token() == Token::Plus {
                        sign = 1;
                        '+'
                    } else {
                        sign = -1;
                        '-'
                    };
                    previous = None;
                    self.next_number(|| format!("There should be number after '{mark}'"))?
                }
                _ => return Ok(()),
            };
            self.advance();
            let mut unit = match self.token() {
                Token::Word => look_up(UNITS, self.found()),
                _ => None,
            };
            if unit == Some(Unit::MonthOrMinute) {
                use Unit::{Day, Hour, Minute, Month, Second, Week, Year};
                unit = Some(match previous {
                    Some(Day | Week | Month | Year) => Month,
                    Some(Second | Minute | Hour) => Minute,
                    _ if amount < 6 => Month,
                    _ => Minute,
                });
            }
            previous = unit;
            self.spec
                .shift
                .add(sign * amount, unit.unwrap_or(Unit::Second))?;
            self.advance();
        }
    }
}

impl Shift {
    fn add(&mut self, amount: i64, unit: Unit) -> Result<(), TimeError> {
        let (part, each) = match unit {
            Unit::Year => (&mut self.years, 1),
            Unit::Month => (&mut self.months, 1),
            Unit::Week => (&mut self.days, 7),
            Unit::Day => (&mut self.days, 1),
            Unit::Hour => (&mut self.seconds, 3600),
            Unit::Minute | Unit::MonthOrMinute => (&mut self.seconds, 60),
            Unit::Second => (&mut self.seconds, 1),
        };
        let more = amount.checked_mul(each);
        let sum = more.and_then(|more| part.checked_add(more));
        *part = sum.ok_or(TimeError::OutOfRange)?;
        Ok(())
    }
}

fn unparsable(problem: impl Into<String>) -> TimeError {
    TimeError::Unparsable(problem.into())
}

/// The number that digits are.
fn digits(text: &[u8]) -> Result<i64, TimeError> {
    let number = text.iter().try_fold(0i64, |number, digit| {
        number.checked_mul(10)?.checked_add((digit - b'0').into())
    });
    number.ok_or(TimeError::OutOfRange)
}

/// The year that is meant: 0 to 37 are 2000 to 2037, 70 to 138 are 1970 to 2038.
fn full_year(year: i64) -> Result<i64, TimeError> {
    match year {
        0..38 => Ok(2000 + year),
        38..70 => Err(unparsable(
            "won't handle dates before epoch (01/01/1970), sorry",
        )),
        70..=138 => Ok(1900 + year),
        139..=1970 => Err(unparsable(format!(
            "invalid year {year} (should be either 00-99 or >1900)"
        ))),
        _ => Ok(year),
    }
}

/// The meaning of a word, in any case of letters.
fn look_up<T: Copy>(words: &[(&str, T)], word: &[u8]) -> Option<T> {
    let mut words = words.iter();
    let found = words.find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(word));
    found.map(|(_, meaning)| *meaning)
}

const WORDS: &[(&str, Word)] = &[
    ("n", Word::Now),
    ("now", Word::Now),
    ("s", Word::Start),
    ("start", Word::Start),
    ("e", Word::End),
    ("end", Word::End),
    ("epoch", Word::Epoch),
    ("midnight", Word::Hour(0)),
    ("noon", Word::Hour(12)),
    ("teatime", Word::Hour(16)),
    ("am", Word::Am),
    ("pm", Word::Pm),
    ("yesterday", Word::After(-1)),
    ("today", Word::After(0)),
    ("tomorrow", Word::After(1)),
    ("sun", Word::OfWeek(0)),
    ("sunday", Word::OfWeek(0)),
    ("mon", Word::OfWeek(1)),
    ("monday", Word::OfWeek(1)),
    ("tue", Word::OfWeek(2)),
    ("tuesday", Word::OfWeek(2)),
    ("wed", Word::OfWeek(3)),
    ("wednesday", Word::OfWeek(3)),
    ("thu", Word::OfWeek(4)),
    ("thursday", Word::OfWeek(4)),
    ("fri", Word::OfWeek(5)),
    ("friday", Word::OfWeek(5)),
    ("sat", Word::OfWeek(6)),
    ("saturday", Word::OfWeek(6)),
    ("jan", Word::Month(1)),
    ("january", Word::Month(1)),
    ("feb", Word::Month(2)),
    ("february", Word::Month(2)),
    ("mar", Word::Month(3)),
    ("march", Word::Month(3)),
    ("apr", Word::Month(4)),
    ("april", Word::Month(4)),
    ("may", Word::Month(5)),
    ("jun", Word::Month(6)),
    ("june", Word::Month(6)),
    ("jul", Word::Month(7)),
    ("july", Word::Month(7)),
    ("aug", Word::Month(8)),
    ("august", Word::Month(8)),
    ("sep", Word::Month(9)),
    ("september", Word::Month(9)),
    ("oct", Word::Month(10)),
    ("october", Word::Month(10)),
    ("nov", Word::Month(11)),
    ("november", Word::Month(11)),
    ("dec", Word::Month(12)),
    ("december", Word::Month(12)),
];

const UNITS: &[(&str, Unit)] = &[
    ("s", Unit::Second),
    ("sec", Unit::Second),
    ("second", Unit::Second),
    ("seconds", Unit::Second),
    ("m", Unit::MonthOrMinute),
    ("min", Unit::Minute),
    ("minute", Unit::Minute),
    ("minutes", Unit::Minute),
    ("h", Unit::Hour),
    ("hr", Unit::Hour),
    ("hour", Unit::Hour),
    ("hours", Unit::Hour),
    ("d", Unit::Day),
    ("day", Unit::Day),
    ("days", Unit::Day),
    ("w", Unit::Week),
    ("wk", Unit::Week),
    ("week", Unit::Week),
    ("weeks", Unit::Week),
    ("mon", Unit::Month),
    ("month", Unit::Month),
    ("months", Unit::Month),
    ("y", Unit::Year),
    ("yr", Unit::Year),
    ("year", Unit::Year),
    ("years", Unit::Year),
];
