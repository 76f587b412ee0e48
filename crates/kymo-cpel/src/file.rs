//! The parts of a CPEL file: a header and sections, each with a type and a length.
//!
//! What a section holds is not looked at here, except for what tables begin with.

use std::fmt;
use std::ops::Range;

use kymo_machine::ByteOrder;
use kymo_model::FaultCode;

use crate::u32_at;

/// Bytes of the file's header.
pub const HEADER_SIZE: usize = 8;
/// Bytes before the data of a section: type and length.
pub const SECTION_HEAD_SIZE: usize = 8;
/// Bytes of the name of a string table in a section that refers to one.
pub const TABLE_NAME_SIZE: usize = 64;
/// Says in the first byte that the file is little-endian.
pub const LITTLE_ENDIAN: u8 = 0x80;
/// The only version there is.
pub const VERSION: u8 = 1;

/// Types of sections.
pub mod kind {
    /// Strings.
    pub const STRINGS: u32 = 1;
    /// Names of values.
    pub const SYMBOLS: u32 = 2;
    /// Definitions of events.
    pub const EVENT_DEFINITIONS: u32 = 3;
    /// Definitions of tracks.
    pub const TRACK_DEFINITIONS: u32 = 4;
    /// Events.
    pub const EVENTS: u32 = 5;

    /// What sections of a type are called; `None` where the type is not known.
    pub const fn name(kind: u32) -> Option<&'static str> {
        Some(match kind {
            STRINGS => "string table",
            SYMBOLS => "symbol table",
            EVENT_DEFINITIONS => "event definitions",
            TRACK_DEFINITIONS => "track definitions",
            EVENTS => "events",
            _ => return None,
        })
    }
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The order of the bytes of all its numbers.
    pub order: ByteOrder,
    /// The second byte, which has no meaning.
    pub unused: u8,
    /// How many sections there are.
    pub sections: u16,
    /// When it was written, in seconds since 1970.
    pub date: u32,
}

impl Header {
    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let (version, sections) = match self.order {
            ByteOrder::Big => (VERSION, self.sections.to_be_bytes()),
            ByteOrder::Little => (VERSION | LITTLE_ENDIAN, self.sections.to_le_bytes()),
        };
        let date = crate::u32_bytes(self.date, self.order);
        let [a, b, c, d] = date;
        [version, self.unused, sections[0], sections[1], a, b, c, d]
    }
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its type: see [`kind`].
    pub kind: u32,
    /// Where it begins in the file.
    pub offset: usize,
    /// Where its data is.
    pub data: Range<usize>,
    /// Whether the file ends before it does.
    pub is_cut: bool,
}

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of damage it is.
    pub code: FaultCode,
    /// Where, in bytes from the beginning of the file.
    pub offset: u64,
    /// The section, counted from 0.
    pub section: Option<u64>,
    /// What was found and what was expected.
    pub message: String,
}

/// Why a file is not a readable log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It ends within its header.
    NoHeader {
        /// How many bytes it has.
        len: usize,
    },
    /// Its version is unknown.
    Version {
        /// The version.
        version: u8,
    },
    /// It is not a Gist file.
    Gist {
        /// How many bytes it has.
        len: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader { len } => write!(
                f,
                "the file has {len} bytes: the header of a CPEL file has {HEADER_SIZE}"
            ),
            Self::Version { version } => write!(
                f,
                "CPEL of version {version}: only version {VERSION} is known"
            ),
            Self::Gist { len } => write!(
                f,
                "the file has {len} bytes, which is not what its first 4 bytes say that a Gist file has"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// A CPEL file, cut into its sections.
#[derive(Clone, Debug)]
pub struct File<'a> {
    /// All bytes.
    pub bytes: &'a [u8],
    /// What it says of itself.
    pub header: Header,
    /// Its sections, as far as they are there.
    pub sections: Vec<Section>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// A section that begins with the name of a string table and a number of entries.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// Name of the string table that its entries refer to.
    pub strings: &'a [u8],
    /// The clock field, which only sections of events have.
    pub clock: Option<u32>,
    /// Where the entries begin.
    pub offset: usize,
    /// Number of entries that there are.
    pub count: usize,
}

impl<'a> File<'a> {
    /// Finds the sections of a file. [`File::findings`] reports damage.
    ///
    /// # Errors
    ///
    /// Without a header, and when the version is not known.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = header(bytes)?;
        let mut file = Self {
            bytes,
            header,
            sections: Vec::new(),
            findings: Vec::new(),
        };
        let end = file.find_sections();
        if end < bytes.len() {
            let count = bytes.len() - end;
            let message = format!("{count} bytes after the last section");
            file.find(FaultCode::TrailingData, end, None, message);
        }
        Ok(file)
    }

    /// Finds the sections; returns where the last one ends.
    fn find_sections(&mut self) -> usize {
        let order = self.header.order;
        let stated = usize::from(self.header.sections);
        let mut at = HEADER_SIZE;
        while self.sections.len() < stated {
            let number = self.sections.len();
            let left = self.bytes.len() - at;
            if left == 0 {
                let message = format!("{number} sections: the header says there are {stated}");
                self.find(FaultCode::SectionCount, 2, None, message);
                break;
            }
            let (Some(kind), Some(length)) = (
                u32_at(self.bytes, at, order),
                u32_at(self.bytes, at + 4, order),
            ) else {
                let message = format!(
                    "the file ends after {left} bytes of the head of section {number}, which has {SECTION_HEAD_SIZE}"
                );
                self.find(FaultCode::Truncated, at, Some(number), message);
                return self.bytes.len();
            };
            let begin = at + SECTION_HEAD_SIZE;
            let left = self.bytes.len() - begin;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let is_cut = length > left;
            let end = begin + length.min(left);
            self.sections.push(Section {
                kind,
                offset: at,
                data: begin..end,
                is_cut,
            });
            if is_cut {
                let message =
                    format!("the file ends after {left} of the {length} bytes of the section");
                self.find(FaultCode::Truncated, at, Some(number), message);
            }
            at = end;
        }
        at
    }

    pub(crate) fn find(
        &mut self,
        code: FaultCode,
        offset: usize,
        section: Option<usize>,
        message: String,
    ) {
        self.findings.push(Finding {
            code,
            offset: offset as u64,
            section: section.map(|section| section as u64),
            message,
        });
    }

    /// The data of a section.
    pub fn data(&self, section: &Section) -> &'a [u8] {
        self.bytes.get(section.data.clone()).unwrap_or_default()
    }

    /// What a section that refers to a string table begins with, and how many entries of
    /// `entry` bytes it has; `None` where it ends before its entries begin. What its length
    /// contradicts is reported by [`File::findings`].
    pub(crate) fn table(&mut self, number: usize, entry: usize) -> Option<Table<'a>> {
        let section = self.sections.get(number)?.clone();
        let data = self.data(&section);
        let has_clock = section.kind == kind::EVENTS;
        let head = TABLE_NAME_SIZE + if has_clock { 8 } else { 4 };
        let order = self.header.order;
        if data.len() < head {
            if !section.is_cut {
                let length = data.len();
                let message = format!("a section of {length} bytes: its head alone has {head}");
                self.find(
                    FaultCode::SectionSize,
                    section.offset,
                    Some(number),
                    message,
                );
            }
            return None;
        }
        let name = &data[..TABLE_NAME_SIZE];
        let end = memchr::memchr(0, name).unwrap_or(name.len());
        let stated = u32_at(data, TABLE_NAME_SIZE, order)?;
        let room = data.len() - head;
        let count = usize::try_from(stated)
            .unwrap_or(usize::MAX)
            .min(room / entry);
        if count as u64 != u64::from(stated) || count * entry != room {
            // That the file ends too early was already reported.
            if !section.is_cut {
                let message = format!(
                    "the section says that it has {stated} entries of {entry} bytes, and has {room} bytes of them"
                );
                self.find(
                    FaultCode::SectionSize,
                    section.offset,
                    Some(number),
                    message,
                );
            }
        }
        Some(Table {
            strings: &name[..end],
            clock: match has_clock {
                true => u32_at(data, TABLE_NAME_SIZE + 4, order),
                false => None,
            },
            offset: section.data.start + head,
            count,
        })
    }
}

/// Reads the header.
fn header(bytes: &[u8]) -> Result<Header, Error> {
    let too_short = Error::NoHeader { len: bytes.len() };
    let &[first, unused, a, b, ..] = bytes else {
        return Err(too_short);
    };
    let order = match first & LITTLE_ENDIAN {
        0 => ByteOrder::Big,
        _ => ByteOrder::Little,
    };
    let date = u32_at(bytes, 4, order).ok_or(too_short)?;
    let version = first & !LITTLE_ENDIAN;
    if version != VERSION {
        return Err(Error::Version { version });
    }
    Ok(Header {
        order,
        unused,
        sections: match order {
            ByteOrder::Big => u16::from_be_bytes([a, b]),
            ByteOrder::Little => u16::from_le_bytes([a, b]),
        },
        date,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these sections.
    fn file(stated: u16, sections: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let header = Header {
            order: ByteOrder::Big,
            unused: 0,
            sections: stated,
            date: 7,
        };
        let mut bytes = header.to_bytes().to_vec();
        for (kind, length, data) in sections {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    fn codes(bytes: &[u8]) -> Vec<FaultCode> {
        let file = File::open(bytes).unwrap();
        file.findings.iter().map(|found| found.code).collect()
    }

    #[test]
    fn sections_follow_each_other_without_padding() {
        let bytes = file(3, &[(1, 3, b"abc"), (99, 0, b""), (0, 2, b"xy")]);
        let file = File::open(&bytes).unwrap();
        assert_eq!((file.header.date, file.findings.len()), (7, 0));
        let found: Vec<_> = file
            .sections
            .iter()
            .map(|section| (section.kind, section.offset, file.data(section)))
            .collect();
        assert_eq!(found, [(1, 8, &b"abc"[..]), (99, 19, b""), (0, 27, b"xy")]);
    }

    #[test]
    fn damage_is_found_and_the_rest_read() {
        assert_eq!(codes(&file(0, &[])), []);
        assert_eq!(codes(&file(2, &[(1, 1, b"a")])), [FaultCode::SectionCount]);
        assert_eq!(
            codes(&file(1, &[(1, 1, b"abc")])),
            [FaultCode::TrailingData]
        );
        assert_eq!(codes(&file(2, &[(1, 2, b"abcde")])), [FaultCode::Truncated]);
        let cut = file(1, &[(1, u32::MAX, b"abc")]);
        assert_eq!(codes(&cut), [FaultCode::Truncated]);
        let file = File::open(&cut).unwrap();
        assert_eq!(file.data(&file.sections[0]), b"abc");
    }

    #[test]
    fn headers_of_both_orders() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let header = Header {
                order,
                unused: 3,
                sections: 0x102,
                date: 0x0304_0506,
            };
            assert_eq!(super::header(&header.to_bytes()), Ok(header));
        }
        assert_eq!(super::header(&[1, 0, 0]), Err(Error::NoHeader { len: 3 }));
        assert_eq!(super::header(&[1; 7]), Err(Error::NoHeader { len: 7 }));
        let version = Error::Version { version: 2 };
        assert_eq!(super::header(&[0x82; 8]), Err(version));
    }
}
