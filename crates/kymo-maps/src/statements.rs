//! The rows of the script that `lttng export-maps` writes for SQLite, or that SQLite's `.dump` writes again.
//!
//! Only `INSERT` statements are read. In SQLite's texts a quote is written twice, and nothing else is special.

use std::borrow::Cow;

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'s> {
    Null,
    Integer(i64),
    Text(Cow<'s, str>),
}

/// A row that is inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Insert<'s> {
    pub(crate) table: &'s str,
    /// Names of its columns, where the statement has them.
    pub(crate) columns: Vec<&'s str>,
    pub(crate) cells: Vec<Cell<'s>>,
}

/// A row has no more columns.
const MOST_CELLS: usize = 32;

/// What a statement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement<'s> {
    Insert(Vec<Insert<'s>>),
    Commit,
    /// It says nothing of rows.
    Other,
    /// An `INSERT` that cannot be read.
    Wrong,
}

/// Reads a script statement by statement.
pub(crate) struct Statements<'s> {
    text: &'s str,
    at: usize,
}

impl<'s> Statements<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        Self { text, at: 0 }
    }

    /// The next statement without its semicolon, and where it begins; whether it has one.
    fn split(&mut self) -> Option<(&'s str, usize, bool)> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let begin = self.at;
        if begin >= bytes.len() {
            return None;
        }
        let mut is_text = false;
        for (at, byte) in bytes.iter().enumerate().skip(begin) {
            match byte {
                b'\'' => is_text = !is_text,
                b';' if !is_text => {
                    self.at = at + 1;
                    return Some((&self.text[begin..at], begin, true));
                }
                _ => {}
            }
        }
        self.at = bytes.len();
        Some((&self.text[begin..], begin, false))
    }
}

impl<'s> Iterator for Statements<'s> {
    /// Where it begins, in bytes, and what it is; one without an end is wrong.
    type Item = (usize, Statement<'s>);

    fn next(&mut self) -> Option<Self::Item> {
        let (text, begin, is_whole) = self.split()?;
        let mut words = Words { text, at: 0 };
        let is = |word: Option<Word<'_>>, name: &str| match word {
            Some(Word::Name(word)) => word.eq_ignore_ascii_case(name),
            _ => false,
        };
        let first = words.next();
        if !is_whole {
            return Some((begin, Statement::Wrong));
        }
        if is(first.clone(), "commit") {
            return Some((begin, Statement::Commit));
        }
        if !is(first, "insert") {
            return Some((begin, Statement::Other));
        }
        let rows = is(words.next(), "into").then(|| rows(&mut words)).flatten();
        Some((begin, rows.map_or(Statement::Wrong, Statement::Insert)))
    }
}

fn rows<'s>(words: &mut Words<'s>) -> Option<Vec<Insert<'s>>> {
    let Some(Word::Name(table)) = words.next() else {
        return None;
    };
    let mut columns = Vec::new();
    let mut word = words.next()?;
    if word == Word::Sign(b'(') {
        loop {
            match words.next()? {
                Word::Name(name) if columns.len() < MOST_CELLS => columns.push(name),
                _ => return None,
            }
            match words.next()? {
                Word::Sign(b',') => {}
                Word::Sign(b')') => break,
                _ => return None,
            }
        }
        word = words.next()?;
    }
    match word {
        Word::Name(name) if name.eq_ignore_ascii_case("values") => {}
        _ => return None,
    }
    let mut rows = Vec::new();
    loop {
        if words.next()? != Word::Sign(b'(') {
            return None;
        }
        let mut cells = Vec::new();
        loop {
            let cell = match words.next()? {
                Word::Name(name) if name.eq_ignore_ascii_case("null") => Cell::Null,
                Word::Integer(number) => Cell::Integer(number),
                Word::Text(text) => Cell::Text(text),
                _ => return None,
            };
            if cells.len() >= MOST_CELLS {
                return None;
            }
            cells.push(cell);
            match words.next()? {
                Word::Sign(b',') => {}
                Word::Sign(b')') => break,
                _ => return None,
            }
        }
        rows.push(Insert {
            table,
            columns: columns.clone(),
            cells,
        });
        match words.next() {
            None => return Some(rows),
            Some(Word::Sign(b',')) => {}
            Some(_) => return None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word<'s> {
    Name(&'s str),
    Integer(i64),
    Text(Cow<'s, str>),
    Sign(u8),
}

struct Words<'s> {
    text: &'s str,
    at: usize,
}

impl<'s> Words<'s> {
    fn next(&mut self) -> Option<Word<'s>> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let begin = self.at;
        let first = *bytes.get(begin)?;
        let run = |continues: fn(&u8) -> bool| {
            let rest = &bytes[begin + 1..];
            begin + 1 + rest.iter().take_while(|byte| continues(byte)).count()
        };
        match first {
            b'\'' => {
                let mut end = begin + 1;
                loop {
                    let Some(length) = self.text[end..].find('\'') else {
                        self.at = bytes.len();
                        return Some(Word::Sign(first));
                    };
                    end += length;
                    if bytes.get(end + 1) != Some(&b'\'') {
                        break;
                    }
                    end += 2;
                }
                self.at = end + 1;
                let text = &self.text[begin + 1..end];
                Some(Word::Text(match text.contains("''") {
                    true => Cow::Owned(text.replace("''", "'")),
                    false => Cow::Borrowed(text),
                }))
            }
            // SQLite's own dumps may quote names.
            b'"' => {
                let Some(length) = self.text[begin + 1..].find('"') else {
                    self.at = bytes.len();
                    return Some(Word::Sign(first));
                };
                let end = begin + 1 + length;
                self.at = end + 1;
                Some(Word::Name(&self.text[begin + 1..end]))
            }
            b'-' | b'+' | b'0'..=b'9' => {
                self.at = run(u8::is_ascii_digit);
                let number = self.text[begin..self.at].parse().ok();
                Some(number.map_or(Word::Sign(first), Word::Integer))
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                self.at = run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                Some(Word::Name(&self.text[begin..self.at]))
            }
            _ => {
                let length = self.text[begin..].chars().next().map_or(1, char::len_utf8);
                self.at += length;
                Some(Word::Sign(first))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_texts_numbers_and_nothing() {
        let text = "CREATE TABLE a (b CHECK (b IN (';')));\nBEGIN;\
            INSERT INTO keys (id, name) VALUES (1, 'it''s; \\');\
            insert into \"keys\" values(-2,NULL),(3,'');COMMIT;";
        let statements: Vec<_> = Statements::new(text)
            .map(|(_, statement)| statement)
            .collect();
        let insert = |columns: &[&'static str], cells: Vec<Cell<'static>>| Insert {
            table: "keys",
            columns: columns.to_vec(),
            cells,
        };
        assert_eq!(
            statements,
            [
                Statement::Other,
                Statement::Other,
                Statement::Insert(vec![insert(
                    &["id", "name"],
                    vec![Cell::Integer(1), Cell::Text("it's; \\".into())]
                )]),
                Statement::Insert(vec![
                    insert(&[], vec![Cell::Integer(-2), Cell::Null]),
                    insert(&[], vec![Cell::Integer(3), Cell::Text("".into())]),
                ]),
                Statement::Commit,
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_wrong() {
        for wrong in [
            "INSERT INTO keys VALUES (1;",
            "INSERT INTO keys VALUES (1)",
            "INSERT keys VALUES (1);",
            "INSERT INTO keys VALUES (1.5);",
            "INSERT INTO keys VALUES (99999999999999999999);",
            "INSERT INTO keys (a b) VALUES (1);",
            "INSERT INTO keys VALUES (1) é;",
            "INSERT INTO keys VALUES (1) \"a;",
            "INSERT INTO keys VALUES ('a",
        ] {
            let (_, statement) = Statements::new(wrong).next().unwrap();
            assert_eq!(statement, Statement::Wrong, "{wrong}");
        }
    }
}
