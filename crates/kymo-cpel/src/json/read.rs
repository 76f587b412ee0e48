//! Makes a file of its lines.

use std::fmt;
use std::io::{self, BufWriter, Write};

use kymo_io::{Bytes, Sorter, Spool};
use kymo_machine::ByteOrder;
use kymo_text::json::{self, Reader};

use super::parse::{byte, bytes, number, word};
use super::{numbers_of, order_name};
use crate::entries::{ENTRY_SIZE, Entry};
use crate::file::{Header, TABLE_NAME_SIZE, kind};
use crate::u32_bytes;
use crate::write::{MOST_EVENTS, section};

/// What each line begins with.
const BEGINNING: &[u8] = b"{\"timestamp\":";
/// The member of the first line.
const DESCRIBES: &[u8] = b"\"cpel\":";

/// Whether some bytes begin as the JSON lines of a recording do.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGINNING)
}

/// Whether some bytes begin as the JSON lines of a CPEL file do: their first line describes the file.
pub fn is_log(bytes: &[u8]) -> bool {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or(bytes);
    begins(bytes) && first.windows(DESCRIBES.len()).any(|part| part == DESCRIBES)
}

/// Why lines are not a CPEL file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, counted from 1.
    pub line: usize,
    /// The byte of the line, counted from 1.
    pub column: usize,
    /// What was found or expected there.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
        } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

impl std::error::Error for Error {}

/// The CPEL file that lines describe. Its definitions are in memory until all lines are read, its events, beyond
/// some megabytes, in temporary storage, as the file is.
///
/// It is the one that was described, byte for byte, where the sections of events of that one were
/// as long as they said; of damaged ones it has the events that were there. Lines of events may be
/// missing.
///
/// # Errors
///
/// At the first line that is wrong, and if no line describes the file; those of temporary storage.
pub fn read(text: &[u8]) -> Result<Bytes, Error> {
    let mut making = Making::new();
    let mut count = 0;
    for line in text.split(|&byte| byte == b'\n') {
        count += 1;
        if !line.iter().all(u8::is_ascii_whitespace) {
            let reported = |wrong: Wrong| Error {
                line: count,
                column: wrong.at + 1,
                message: wrong.message,
            };
            making.line(line).map_err(reported)?;
        }
    }
    making.finish().map_err(|message| Error {
        line: count,
        column: 1,
        message,
    })
}

/// A file in the making.
struct Making {
    /// What the recording is called in all lines.
    recording: Option<Vec<u8>>,
    /// What the line of the file says.
    header: Option<Header>,
    sections: Vec<Section>,
    /// The events of all sections, by where they lie.
    entries: Sorter<u64>,
}

/// Bytes of an event before those that a file has: the number of its section and its position there.
const ROW_HEAD: usize = 8;

/// A section in the making.
struct Section {
    kind: u32,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    Events {
        strings: [u8; TABLE_NAME_SIZE],
        clock: u32,
        count: usize,
    },
}

/// What a line says.
#[derive(Default)]
struct Reported {
    recording: Option<Vec<u8>>,
    /// What the line describes, if it is not an event.
    cpel: Option<Vec<u8>>,
    order: Option<ByteOrder>,
    unused: Option<u8>,
    date: Option<u32>,
    section: Option<u64>,
    kind: Option<u32>,
    text: Option<Vec<u8>>,
    strings: Option<[u8; TABLE_NAME_SIZE]>,
    clock: Option<u32>,
    entries: Option<(usize, Vec<u32>)>,
    bytes: Option<Vec<u8>>,
    track: Option<u32>,
    event_class: Option<u64>,
    code: Option<u32>,
    datum: Option<u32>,
    ticks: Option<u64>,
    position: Option<u32>,
}

impl Reported {
    fn read(line: &[u8]) -> Result<Self, json::Wrong> {
        let mut reported = Self::default();
        let mut reader = Reader::strict(line);
        reader.object(|reader, name| reported.member(name, reader))?;
        reader.end("the end of the line")?;
        Ok(reported)
    }

    fn member(&mut self, name: &[u8], reader: &mut Reader<'_>) -> Result<(), json::Wrong> {
        match name {
            b"recording" => self.recording = Some(reader.string()?.into_owned()),
            b"cpel" => self.cpel = Some(reader.string()?.into_owned()),
            b"byte_order" => {
                let wrong = expected(reader, "`big` or `little`");
                let name = reader.string()?;
                let orders = [ByteOrder::Big, ByteOrder::Little].into_iter();
                let mut named = orders.filter(|&order| order_name(order).as_bytes() == &*name);
                self.order = Some(named.next().ok_or(wrong)?);
            }
            b"unused" => self.unused = Some(byte(reader)?),
            b"date" => self.date = Some(word(reader)?),
            b"section" => self.section = Some(number(reader)?),
            b"type" => self.kind = Some(word(reader)?),
            // That of an event is made of its datum, and not looked at.
            b"text" => self.text = Some(reader.string()?.into_owned()),
            b"strings" => {
                let wrong = expected(reader, "a name of at most 64 bytes without a zero");
                let name = reader.string()?;
                let mut field = [0; TABLE_NAME_SIZE];
                match field.get_mut(..name.len()) {
                    Some(to) if !name.contains(&0) => to.copy_from_slice(&name),
                    _ => return Err(wrong),
                }
                self.strings = Some(field);
            }
            b"clock" => self.clock = Some(word(reader)?),
            b"entries" => self.entries = Some(entries(reader)?),
            b"bytes" => self.bytes = Some(bytes(reader)?),
            b"track" => self.track = Some(word(reader)?),
            b"event_class" => self.event_class = Some(number(reader)?),
            b"code" => self.code = Some(word(reader)?),
            b"datum" => self.datum = Some(word(reader)?),
            b"ticks" => self.ticks = Some(number(reader)?),
            b"position" => self.position = Some(word(reader)?),
            _ => drop(reader.raw()?),
        }
        Ok(())
    }
}

/// That something else was expected where the next value is.
fn expected(reader: &mut Reader<'_>, expected: &'static str) -> json::Wrong {
    reader.peek();
    json::Wrong {
        at: reader.position(),
        expected,
    }
}

/// Numbers of definitions, each of which has as many.
fn entries(reader: &mut Reader<'_>) -> Result<(usize, Vec<u32>), json::Wrong> {
    let mut words = Vec::new();
    let mut size = None;
    reader.array(|reader| {
        let before = words.len();
        let wrong = expected(reader, "as many numbers as in the entry before");
        reader.array(|reader| {
            words.push(word(reader)?);
            Ok(())
        })?;
        match words.len() - before == *size.get_or_insert(words.len() - before) {
            true => Ok(()),
            false => Err(wrong),
        }
    })?;
    Ok((size.unwrap_or(0), words))
}

/// What is wrong, and where in the line, counted from 0.
struct Wrong {
    at: usize,
    message: String,
}

impl From<json::Wrong> for Wrong {
    fn from(wrong: json::Wrong) -> Self {
        Self {
            at: wrong.at,
            message: format!("expected {}", wrong.expected),
        }
    }
}

/// That a line lacks something, or has something that does not fit the lines before it.
fn wrong<T>(message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong {
        at: 0,
        message: message.into(),
    })
}

impl Making {
    fn new() -> Self {
        Self {
            recording: None,
            header: None,
            sections: Vec::new(),
            entries: Sorter::new(|bytes| {
                let place = u64::from_be_bytes(*bytes.first_chunk()?);
                Some((place, ROW_HEAD + ENTRY_SIZE))
            }),
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Wrong> {
        let mut reported = Reported::read(line)?;
        let recording = reported.recording.take().unwrap_or_default();
        let first = self.recording.get_or_insert_with(|| recording.clone());
        if *first != recording {
            return wrong(format!(
                "a line of `{}` among those of `{}`: a log can be made of the lines of one CPEL file",
                recording.escape_ascii(),
                first.escape_ascii()
            ));
        }
        match (reported.cpel.as_deref(), self.header) {
            (Some(b"file"), None) => {
                let (Some(order), Some(unused), Some(date)) =
                    (reported.order, reported.unused, reported.date)
                else {
                    return wrong("expected `byte_order`, `unused` and `date`");
                };
                self.header = Some(Header {
                    order,
                    unused,
                    sections: 0,
                    date,
                });
                Ok(())
            }
            (Some(b"file"), Some(_)) => wrong("a second line describes the file"),
            (_, None) => {
                wrong("the first line is not that of a CPEL file: expected `\"cpel\":\"file\"`")
            }
            (Some(b"section"), Some(header)) => self.section(reported, header.order),
            (Some(_), Some(_)) => wrong("`cpel` is neither `file` nor `section`"),
            (None, Some(header)) => self.event(&reported, header.order),
        }
    }

    fn section(&mut self, reported: Reported, order: ByteOrder) -> Result<(), Wrong> {
        let next = self.sections.len();
        if reported.section != Some(next as u64) {
            return wrong(format!("expected `section` {next}"));
        }
        if next == usize::from(u16::MAX) {
            return wrong(format!("a file has at most {} sections", u16::MAX));
        }
        let Some(kind) = reported.kind else {
            return wrong("expected `type`");
        };
        let content = match (reported.bytes, reported.text, reported.strings) {
            (Some(bytes), ..) => Content::Bytes(bytes),
            (None, Some(text), _) if kind == kind::STRINGS => Content::Bytes(text),
            (None, None, Some(strings)) => match (reported.entries, reported.clock) {
                (Some((size, words)), _) if words.is_empty() || numbers_of(kind) == Some(size) => {
                    Content::Bytes(definitions(&strings, size, &words, order))
                }
                (None, Some(clock)) if kind == kind::EVENTS => Content::Events {
                    strings,
                    clock,
                    count: 0,
                },
                _ => return wrong("`entries` or `clock` do not fit the type of the section"),
            },
            _ => return wrong("expected what a section of this type has, or `bytes`"),
        };
        self.sections.push(Section { kind, content });
        Ok(())
    }

    fn event(&mut self, reported: &Reported, order: ByteOrder) -> Result<(), Wrong> {
        let Reported {
            section: Some(section),
            ticks: Some(time),
            track: Some(track),
            datum: Some(datum),
            event_class: Some(class),
            ..
        } = *reported
        else {
            return wrong("expected `track`, `event_class`, `datum`, `section` and `ticks`");
        };
        let Some(code) = reported.code.or_else(|| u32::try_from(class).ok()) else {
            return wrong("expected `code` beside so large an `event_class`");
        };
        let number = usize::try_from(section).ok();
        let known = number.and_then(|section| self.sections.get_mut(section));
        let Some(Content::Events { count, .. }) = known.map(|known| &mut known.content) else {
            return wrong(format!("section {section} does not hold events"));
        };
        if *count == MOST_EVENTS {
            return wrong(format!("a section has at most {MOST_EVENTS} events"));
        }
        let entry = Entry {
            time,
            track,
            code,
            datum,
        };
        *count += 1;
        // Events of a section that is in the order of time all have position 0.
        let place = section << 32 | u64::from(reported.position.unwrap_or(0));
        let pushed = self.entries.push(|rows| {
            rows.extend(place.to_be_bytes());
            rows.extend(entry.to_bytes(order));
        });
        pushed.or_else(|error| wrong(error.to_string()))
    }

    fn finish(self) -> Result<Bytes, String> {
        let Some(header) = self.header else {
            return Err("no line describes a CPEL file".into());
        };
        let header = Header {
            sections: self.sections.len() as u16,
            ..header
        };
        let mut file = BufWriter::with_capacity(1 << 18, Spool::within(u64::MAX));
        let mut sections = self.sections.iter().enumerate();
        let mut begun = None;
        // Writes the sections up to one, but for the events of that.
        let mut begin = |section: usize, file: &mut BufWriter<Spool>| {
            while begun != Some(section)
                && let Some((position, next)) = sections.next()
            {
                begun = Some(position);
                begin_section(next, position, header.order, file)?;
            }
            Ok::<_, io::Error>(())
        };
        let written = file.write_all(&header.to_bytes()).and_then(|()| {
            self.entries.finish(|place, row| {
                begin((place >> 32) as usize, &mut file)?;
                file.write_all(&row[ROW_HEAD..])
            })?;
            begin(usize::MAX, &mut file)?;
            file.into_inner().map_err(io::Error::from)?.finish()
        });
        written.map_err(|error| error.to_string())
    }
}

/// The content of a section of definitions.
fn definitions(strings: &[u8], size: usize, words: &[u32], order: ByteOrder) -> Vec<u8> {
    let count = words.len() / size.max(1);
    let mut data = strings.to_vec();
    for word in std::iter::once(count as u32).chain(words.iter().copied()) {
        data.extend(u32_bytes(word, order));
    }
    data
}

/// Writes a section without its events.
fn begin_section(
    Section { kind, content }: &Section,
    position: usize,
    order: ByteOrder,
    file: &mut impl Write,
) -> io::Result<()> {
    let length = match content {
        Content::Bytes(bytes) => bytes.len(),
        Content::Events { count, .. } => TABLE_NAME_SIZE + 8 + count * ENTRY_SIZE,
    };
    section(file, order, *kind, length)
        .map_err(|error| io::Error::new(error.kind(), format!("section {position}: {error}")))?;
    match content {
        Content::Bytes(bytes) => file.write_all(bytes),
        Content::Events {
            strings,
            clock,
            count,
        } => {
            file.write_all(strings)?;
            file.write_all(&u32_bytes(*count as u32, order))?;
            file.write_all(&u32_bytes(*clock, order))
        }
    }
}
