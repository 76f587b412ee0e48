//! A table of a TOML file, whose values are taken one by one.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use kymo_io::net::Address;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A place in a text: offsets in bytes.
pub(crate) type Place = Range<usize>;

/// A table. What is not taken of it is an error at its [end](Section::end).
pub(crate) struct Section<'t> {
    text: &'t str,
    /// The names of the tables that it is in, with a point behind each.
    prefix: String,
    table: &'t DeTable<'t>,
    begin: usize,
    /// The names that it may have.
    asked: RefCell<Vec<&'static str>>,
}

/// The line and the column of an offset.
pub(crate) fn place(text: &str, offset: usize) -> impl fmt::Display {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .chars()
        .rev()
        .take_while(|char| *char != '\n')
        .count()
        + 1;
    format!("line {line}, column {column}")
}

impl<'t> Section<'t> {
    pub(crate) fn new(text: &'t str, prefix: &str, table: &'t DeTable<'t>, begin: usize) -> Self {
        Self {
            text,
            prefix: prefix.into(),
            table,
            begin,
            asked: RefCell::default(),
        }
    }

    /// A value, if there is one of the name.
    fn take(&self, name: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.borrow_mut().push(name);
        self.table.get(name)
    }

    /// What is wrong with the value of a key.
    pub(crate) fn problem_of(&self, name: &str, at: Place, problem: &str) -> String {
        let prefix = &self.prefix;
        self.problem(at, &format!("`{prefix}{name}`: {problem}"))
    }

    /// What is wrong at a place.
    fn problem(&self, at: Place, problem: &str) -> String {
        format!("{}: {problem}", place(self.text, at.start))
    }

    /// What is wrong with a value.
    fn wrong(&self, name: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> String {
        let found = match value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::String(text) => format!("`{text}`"),
            other => other.type_str().to_owned(),
        };
        self.found(name, value.span(), &found, expected)
    }

    pub(crate) fn found(&self, name: &str, at: Place, found: &str, expected: &str) -> String {
        self.problem_of(name, at, &format!("found {found}, expected {expected}"))
    }

    /// That a name must be there.
    pub(crate) fn missing(&self, name: &str) -> String {
        let prefix = self.prefix.trim_end_matches('.');
        self.problem(
            self.begin..self.begin,
            &format!("`{prefix}`: there is no `{name}`"),
        )
    }

    /// Puts a value where it belongs, if there is one.
    pub(crate) fn set<T>(
        &mut self,
        name: &'static str,
        to: &mut T,
        read: impl FnOnce(&mut Self, &'static str) -> Result<Option<T>, String>,
    ) -> Result<(), String> {
        if let Some(value) = read(self, name)? {
            *to = value;
        }
        Ok(())
    }

    /// A text, and where it is.
    pub(crate) fn string(
        &mut self,
        name: &'static str,
    ) -> Result<Option<(&'t str, Place)>, String> {
        self.text_of(name, "a text")
    }

    fn text_of(
        &mut self,
        name: &'static str,
        expected: &str,
    ) -> Result<Option<(&'t str, Place)>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some((text, value.span()))),
            None => {
                let found = value.get_ref().type_str();
                Err(self.found(name, value.span(), found, expected))
            }
        }
    }

    /// A path.
    pub(crate) fn path(&mut self, name: &'static str) -> Result<Option<PathBuf>, String> {
        Ok(self.text_of(name, "a path")?.map(|(text, _)| text.into()))
    }

    /// Whether something is so.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value.get_ref().as_bool() {
            Some(is) => Ok(Some(is)),
            None => Err(self.wrong(name, value, "true or false")),
        }
    }

    /// A count within bounds.
    pub(crate) fn count(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<usize>,
    ) -> Result<Option<usize>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = value.get_ref().as_integer();
        let number =
            number.and_then(|number| usize::from_str_radix(number.as_str(), number.radix()).ok());
        match number.filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let expected = format!("{} to {}", bounds.start(), bounds.end());
                Err(self.wrong(name, value, &expected))
            }
        }
    }

    /// Seconds, with a fraction or without.
    pub(crate) fn seconds(&mut self, name: &'static str) -> Result<Option<Duration>, String> {
        self.seconds_from(name, 0.0, "seconds")
    }

    /// How long it is between two times of what is done again and again: a hundredth of a second at least.
    pub(crate) fn period(&mut self, name: &'static str) -> Result<Option<Duration>, String> {
        self.seconds_from(name, 0.01, "seconds, at least 0.01")
    }

    fn seconds_from(
        &mut self,
        name: &'static str,
        least: f64,
        expected: &str,
    ) -> Result<Option<Duration>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        // A year is more than anybody waits, and far less than clocks can hold.
        let number = number.filter(|number| (least..=31_622_400.0).contains(number));
        match number.and_then(|number: f64| Duration::try_from_secs_f64(number).ok()) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(self.wrong(name, value, expected)),
        }
    }

    /// One of these names: what it means.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        all: &[(&str, T)],
    ) -> Result<Option<T>, String> {
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        let expected = names.join(", ");
        let Some((text, at)) = self.text_of(name, &expected)? else {
            return Ok(None);
        };
        match all.iter().find(|(name, _)| *name == text) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => Err(self.found(name, at, &format!("`{text}`"), &expected)),
        }
    }

    /// The mode of a file.
    pub(crate) fn mode(&mut self, name: &'static str) -> Result<Option<u32>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = value.get_ref().as_integer();
        // Digits without a prefix are decimal, and nearly always meant to be octal.
        let number = number
            .filter(|number| number.radix() == 8)
            .and_then(|number| u32::from_str_radix(number.as_str(), 8).ok());
        match number.filter(|mode| *mode <= 0o777) {
            Some(mode) => Ok(Some(mode)),
            None => Err(self.wrong(name, value, "a mode in octal, such as 0o660")),
        }
    }

    /// Addresses to listen at: one, or a list.
    pub(crate) fn addresses(
        &mut self,
        name: &'static str,
        port: Option<u16>,
    ) -> Result<Option<Vec<Address>>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let all = match value.get_ref() {
            DeValue::Array(all) => all.iter().collect(),
            _ => vec![value],
        };
        let read = |value: &Spanned<DeValue<'_>>| {
            let address = value.get_ref().as_str();
            address
                .and_then(|text| Address::parse(text, port))
                .ok_or_else(|| {
                    let expected = "unix:PATH, /PATH, HOST:PORT or [IPv6]:PORT";
                    self.wrong(name, value, expected)
                })
        };
        all.into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// What is wrong with the table.
    pub(crate) fn here(&self, problem: &str) -> String {
        let prefix = self.prefix.trim_end_matches('.');
        self.problem(self.begin..self.begin, &format!("`{prefix}`: {problem}"))
    }

    /// Paths: one, or a list.
    pub(crate) fn paths(&mut self, name: &'static str) -> Result<Vec<PathBuf>, String> {
        let read = |value: &Spanned<DeValue<'_>>| value.get_ref().as_str().map(PathBuf::from);
        self.list(name, "a path, or a list of them", read)
    }

    /// Counts within bounds: one, or a list.
    pub(crate) fn counts(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<usize>,
    ) -> Result<Vec<usize>, String> {
        let expected = format!("{} to {}, or a list of such", bounds.start(), bounds.end());
        self.list(name, &expected, |value| {
            let number = value.get_ref().as_integer()?;
            let number = usize::from_str_radix(number.as_str(), number.radix()).ok();
            number.filter(|number| bounds.contains(number))
        })
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&Spanned<DeValue<'t>>) -> Option<T>,
    ) -> Result<Vec<T>, String> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        let all = match value.get_ref() {
            DeValue::Array(all) => all.iter().collect(),
            _ => vec![value],
        };
        let read = |value| read(value).ok_or_else(|| self.wrong(name, value, expected));
        all.into_iter().map(read).collect()
    }

    /// Texts: one, or a list. Each is read by `read`.
    pub(crate) fn texts<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>, String> {
        if !self.table.contains_key(name) {
            self.asked.borrow_mut().push(name);
            return Ok(None);
        }
        let read = |value: &Spanned<DeValue<'_>>| read(value.get_ref().as_str()?);
        self.list(name, expected, read).map(Some)
    }

    /// Where an item of a list is; a single value is a list of one.
    pub(crate) fn place_of_item(&self, name: &str, item: usize) -> Place {
        let Some(value) = self.table.get(name) else {
            return self.begin..self.begin;
        };
        let items = value.get_ref().as_array();
        items
            .and_then(|items| items.get(item))
            .unwrap_or(value)
            .span()
    }

    /// Numbers within bounds that are not reached: one, or a list.
    pub(crate) fn numbers(
        &mut self,
        name: &'static str,
        bounds: std::ops::Range<f64>,
    ) -> Result<Option<Vec<f64>>, String> {
        if !self.table.contains_key(name) {
            self.asked.borrow_mut().push(name);
            return Ok(None);
        }
        let expected = format!("numbers above {} and below {}", bounds.start, bounds.end);
        let read = |value: &Spanned<DeValue<'_>>| {
            let number: Option<f64> = match value.get_ref() {
                DeValue::Integer(number) => number.as_str().parse().ok(),
                DeValue::Float(number) => number.as_str().parse().ok(),
                _ => None,
            };
            number.filter(|number| *number > bounds.start && *number < bounds.end)
        };
        self.list(name, &expected, read).map(Some)
    }

    /// A number from 0 to below 1.
    pub(crate) fn fraction(&mut self, name: &'static str) -> Result<Option<f64>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number: Option<f64> = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        match number.filter(|number| (0.0..1.0).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(name, value, "a number from 0 to below 1")),
        }
    }

    /// The tables of a list.
    pub(crate) fn sections(&mut self, name: &'static str) -> Result<Vec<Section<'t>>, String> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        let expected = "a list of tables";
        let found = value.get_ref().type_str();
        let wrong = || self.found(name, value.span(), found, expected);
        let all = value.get_ref().as_array().ok_or_else(wrong)?;
        let prefix = format!("{}{name}.", self.prefix);
        let read = |value: &'t Spanned<DeValue<'t>>| {
            let table = value.get_ref().as_table().ok_or_else(wrong)?;
            Ok(Section::new(self.text, &prefix, table, value.span().start))
        };
        all.iter().map(read).collect()
    }

    /// A table in this one.
    pub(crate) fn section(&mut self, name: &'static str) -> Result<Option<Section<'t>>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value.get_ref().as_table() {
            Some(table) => {
                let prefix = format!("{}{name}.", self.prefix);
                let begin = value.span().start;
                Ok(Some(Section::new(self.text, &prefix, table, begin)))
            }
            None => {
                let found = value.get_ref().type_str();
                Err(self.found(name, value.span(), found, "a table"))
            }
        }
    }

    /// Sees that there was nothing else.
    pub(crate) fn end(self) -> Result<(), String> {
        let mut asked = self.asked.take();
        let mut names = self.table.keys();
        let Some(other) = names.find(|name| !asked.contains(&name.get_ref().as_ref())) else {
            return Ok(());
        };
        asked.sort_unstable();
        let known: Vec<_> = asked.iter().map(|name| format!("`{name}`")).collect();
        let problem = format!(
            "found `{}{}`, expected one of {}",
            self.prefix,
            other.get_ref(),
            known.join(", ")
        );
        Err(format!(
            "{}: {problem}",
            place(self.text, other.span().start)
        ))
    }
}
