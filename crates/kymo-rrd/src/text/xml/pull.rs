//! XML, an element at a time.

use std::borrow::Cow;
use std::fmt;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesEnd, Event};
use quick_xml::name::QName;

use super::INSTRUCTION;

/// What is wrong with a dump, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The element in which it is, such as `rra`; `None` outside of all.
    pub element: Option<String>,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if let Some(element) = &self.element {
            write!(f, ", in `<{element}>`")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for RestoreError {}

/// What is next in an element.
pub(super) enum Item<'x> {
    /// An element begins.
    Element(&'x str),
    /// An instruction for kymo.
    Instruction(&'x str),
    /// The element ends.
    End,
}

/// Reads the elements of a text in order.
pub(super) struct Pull<'x> {
    text: &'x str,
    reader: Reader<&'x [u8]>,
    /// Where the text of `reader` begins.
    offset: usize,
    /// Where the last event begins.
    begin: usize,
    /// The elements that have begun and not ended.
    open: Vec<&'x str>,
    /// Whether the element that began last has ended with the same tag, `<a/>`.
    is_empty: bool,
}

impl<'x> Pull<'x> {
    pub(super) fn new(text: &'x str) -> Self {
        Self {
            text,
            reader: reader(text),
            offset: 0,
            begin: 0,
            open: Vec::new(),
            is_empty: false,
        }
    }

    /// What has not been read yet of the current element and what follows it.
    pub(super) fn rest(&self) -> &'x str {
        if self.is_empty {
            return "";
        }
        self.text.get(self.next()..).unwrap_or_default()
    }

    /// Goes on that many bytes later, where an element begins or ends.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.offset = self.next() + bytes;
        self.reader = reader(self.text.get(self.offset..).unwrap_or_default());
    }

    /// Where the next event begins, in bytes.
    fn next(&self) -> usize {
        self.offset + self.reader.buffer_position() as usize
    }

    /// Where the last event begins, in bytes.
    pub(super) fn position(&self) -> usize {
        self.begin
    }

    fn event(&mut self) -> Result<Event<'x>, RestoreError> {
        if std::mem::take(&mut self.is_empty) {
            self.open.pop();
            return Ok(Event::End(BytesEnd::new("")));
        }
        self.begin = self.next();
        let event = self.reader.read_event().map_err(|error| {
            let at = self.offset + self.reader.error_position() as usize;
            self.error_at(at, error.to_string())
        })?;
        match event {
            Event::Start(ref tag) => {
                self.open(tag.name());
                Ok(event)
            }
            Event::Empty(tag) => {
                self.open(tag.name());
                self.is_empty = true;
                Ok(Event::Start(tag))
            }
            Event::End(ref tag) => {
                let expected = self.open.last().copied();
                let name = tag.name();
                let found = name.as_ref();
                if expected.map(str::as_bytes) != Some(found.as_bytes()) {
                    let found = shortened(found);
                    let expected = match expected {
                        Some(name) => format!("`</{}>`", shortened(name)),
                        None => "no end".to_owned(),
                    };
                    return Err(self.error(format!("found `</{found}>`, expected {expected}")));
                }
                self.open.pop();
                Ok(event)
            }
            event => Ok(event),
        }
    }

    /// An element begins.
    fn open(&mut self, name: QName<'_>) {
        let begin = self.begin + 1;
        let name = self.text.get(begin..begin + name.as_ref().len());
        self.open.push(name.unwrap_or_default());
    }

    /// What is next in the current element: comments, blanks and instructions for others are
    /// passed over.
    ///
    /// # Errors
    ///
    /// Text where elements are expected, the end of the document, and invalid XML.
    pub(super) fn item(&mut self) -> Result<Item<'x>, RestoreError> {
        loop {
            match self.event()? {
                Event::Start(_) => {
                    return Ok(Item::Element(self.open.last().copied().unwrap_or_default()));
                }
                Event::End(_) => return Ok(Item::End),
                Event::PI(instruction) if instruction.target() == INSTRUCTION => {
                    let begin = self.begin + "<?".len() + INSTRUCTION.len();
                    let content = begin..begin + instruction.content().len();
                    let content = self.text.get(content).unwrap_or_default();
                    return Ok(Item::Instruction(content.trim()));
                }
                Event::Text(text) if text.trim_ascii().is_empty() => {}
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::DocType(_) => {}
                Event::Eof => return Err(self.error("the document ends too early".to_owned())),
                Event::Text(text) => {
                    let blanks = text.len() - text.trim_ascii_start().len();
                    let found = shortened(text.trim_ascii());
                    let message = format!("found `{found}`, expected an element");
                    return Err(self.error_at(self.begin + blanks, message));
                }
                _ => return Err(self.error("found text, expected an element".to_owned())),
            }
        }
    }

    /// Whether nothing follows but comments and blanks.
    ///
    /// # Errors
    ///
    /// What follows.
    pub(super) fn end(&mut self) -> Result<(), RestoreError> {
        loop {
            match self.event()? {
                Event::Eof => return Ok(()),
                Event::Comment(_) | Event::PI(_) => {}
                Event::Text(text) if text.trim_ascii().is_empty() => {}
                _ => {
                    let message = "expected nothing after the end of `<rrd>`";
                    return Err(self.error(message.to_owned()));
                }
            }
        }
    }

    /// The text of the current element, to its end, without blanks around it.
    ///
    /// # Errors
    ///
    /// An element in it, an unknown entity, and invalid XML.
    #[inline]
    pub(super) fn text(&mut self) -> Result<Cow<'x, str>, RestoreError> {
        let begin = self.next();
        let mut text = Cow::Borrowed("");
        loop {
            match self.event()? {
                Event::Text(more) => append(&mut text, more.into_inner()),
                Event::CData(more) => append(&mut text, more.into_inner()),
                Event::GeneralRef(reference) => {
                    let character = reference.resolve_char_ref().ok().flatten();
                    let name = reference.into_inner();
                    match (character, resolve_xml_entity(&name)) {
                        (Some(character), _) => append(&mut text, character.to_string().into()),
                        (_, Some(entity)) => append(&mut text, entity.into()),
                        _ => return Err(self.error(format!("unknown entity `&{name};`"))),
                    }
                }
                Event::End(_) => break,
                Event::Comment(_) | Event::PI(_) => {}
                Event::Start(_) => {
                    let found = self.open.pop().unwrap_or_default();
                    return Err(self.error(format!("found `<{found}>`, expected text")));
                }
                _ => return Err(self.error("the document ends too early".to_owned())),
            }
        }
        self.begin = begin;
        Ok(match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim_ascii()),
            Cow::Owned(text) => Cow::Owned(text.trim_ascii().to_owned()),
        })
    }

    /// An error at the last event.
    #[cold]
    pub(super) fn error(&self, message: String) -> RestoreError {
        self.error_at(self.begin, message)
    }

    /// An error at an element that begins where it should not.
    #[cold]
    pub(super) fn element_error(&self, message: String) -> RestoreError {
        let parent = self.open.len().checked_sub(2).map(|at| self.open[at]);
        RestoreError {
            element: parent.map(shortened),
            ..self.error(message)
        }
    }

    /// An error in the text that was read last, of an element that has ended.
    #[cold]
    pub(super) fn text_error(&self, element: &str, message: String) -> RestoreError {
        RestoreError {
            element: Some(element.to_owned()),
            ..self.error(message)
        }
    }

    /// The error that an element that begins there has no child of a name.
    #[cold]
    pub(super) fn missing(&self, element: &str, child: &str, begin: usize) -> RestoreError {
        RestoreError {
            element: Some(element.to_owned()),
            ..self.error_at(begin, format!("it has no `<{child}>`"))
        }
    }

    #[cold]
    pub(super) fn error_at(&self, offset: usize, message: String) -> RestoreError {
        let (line, column) = place(self.text.as_bytes(), offset);
        RestoreError {
            line,
            column,
            element: self.open.last().map(|&name| shortened(name)),
            message,
        }
    }
}

/// A parser that leaves it to [`Pull`] which element ends where.
fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    reader
}

/// Line and column of an offset in a text, both from 1.
pub(super) fn place(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count();
    let begin = before.iter().rposition(|&byte| byte == b'\n');
    let column = before[begin.map_or(0, |newline| newline + 1)..]
        .iter()
        // UTF-8 continuation bytes are not columns.
        .filter(|&&byte| byte & 0xc0 != 0x80)
        .count();
    (line + 1, column + 1)
}

/// What was found, as far as an error shows it.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn append<'x>(text: &mut Cow<'x, str>, more: Cow<'x, str>) {
    if text.is_empty() {
        *text = more;
    } else {
        text.to_mut().push_str(&more);
    }
}
