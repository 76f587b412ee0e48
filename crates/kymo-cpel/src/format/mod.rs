//! Format strings: those of C's `printf`, of which each conversion shows the same number.
//!
//! `%s` is the string at that offset of a string table, `%k` the symbol that comes before that
//! value and the distance from it. The others are C's: `%d %i %u %o %x %X %c %f %e %g %%` with
//! flags, width, precision and length. Anything that is not a conversion stands for itself.

mod spec;
#[cfg(test)]
mod tests;

use kymo_text::{Line, Stamp};

use self::spec::Spec;
pub(crate) use self::spec::bad_offset;

/// The longest string that is shown, in bytes.
pub const MOST_TEXT: usize = 64 << 10;
/// Pieces of formats that are kept as programs.
const MOST_PIECES: usize = 6;

/// Where formats find strings and symbols.
pub trait Names {
    /// The string at an offset; `None` beyond the end of the table.
    fn string(&self, offset: u32) -> Option<&[u8]>;

    /// The name of the symbol at or before a value, and the distance from it; `None` before the
    /// first one.
    fn symbol(&self, value: u32) -> Option<(&[u8], u32)>;
}

/// The string that begins with some bytes: up to the next zero, and not longer than what is shown.
#[inline]
pub fn string_of(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(MOST_TEXT)];
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// What a format makes of a number, as far as that is known before the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The format itself: it has no conversions.
    Constant,
    /// A string of the table, and nothing else.
    String,
    /// Something that [`write()`] has to make.
    Made {
        /// Whether it asks for strings of the table.
        strings: bool,
    },
}

impl Shape {
    /// The shape of a format.
    pub fn of(format: &[u8]) -> Self {
        if format == b"%s" {
            return Self::String;
        }
        if !format.contains(&b'%') {
            return Self::Constant;
        }
        let mut pieces = Pieces { format, at: 0 };
        let is_string = |piece: Piece| piece.spec.is_some_and(|spec| spec.conversion == b's');
        let strings = pieces.any(is_string);
        Self::Made { strings }
    }
}

/// What the conversions of a format take the number for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// A number.
    pub numbers: bool,
    /// The offset of a string.
    pub strings: bool,
    /// A value that has a symbol.
    pub symbols: bool,
}

impl Uses {
    /// The uses of a format.
    pub fn of(format: &[u8]) -> Self {
        let mut uses = Self::default();
        for spec in (Pieces { format, at: 0 }).filter_map(|piece| piece.spec) {
            match spec.conversion {
                b's' => uses.strings = true,
                b'k' => uses.symbols = true,
                b'%' => {}
                _ => uses.numbers = true,
            }
        }
        uses
    }
}

/// Appends what a format makes of a number. Of more than `most` bytes the first ones are kept,
/// and what follows them says so.
pub fn write(format: &[u8], value: u32, names: &impl Names, out: &mut Line, most: usize) {
    let begin = out.len();
    for piece in (Pieces { format, at: 0 }) {
        out.push(format.get(piece.begin..piece.end).unwrap_or_default());
        if let Some(spec) = &piece.spec {
            spec.write(value, names, out);
        }
        if !has_room(begin, out, most) {
            return;
        }
    }
}

/// A short format that has been read.
#[derive(Clone, Debug)]
pub struct Program(Box<[Step]>);

/// A part of a format that has been read: text that stands for itself, and what comes after it.
#[derive(Clone, Debug)]
struct Step {
    text: Stamp,
    put: Put,
}

/// What a conversion writes: the usual ones apart, which are most.
#[derive(Clone, Copy, Debug)]
enum Put {
    Nothing,
    /// `%u`
    Unsigned,
    /// `%d`
    Signed,
    /// `%x`, `%08x`: the minimum number of digits.
    Hexadecimal(u8),
    /// `%s`
    String,
    Other(Spec),
}

impl Program {
    /// Reads a format; `None` of one that is long, which [`write()`] has to read each time: what is
    /// kept of a format has a bound.
    pub fn new(format: &[u8]) -> Option<Self> {
        let pieces: Vec<Piece> = Pieces { format, at: 0 }.take(MOST_PIECES + 1).collect();
        let step = |piece: &Piece| {
            let text = Stamp::new(format.get(piece.begin..piece.end)?);
            let put = piece.spec.map_or(Put::Nothing, Put::new);
            text.is_short().then_some(Step { text, put })
        };
        if pieces.len() > MOST_PIECES {
            return None;
        }
        let steps: Option<Vec<Step>> = pieces.iter().map(step).collect();
        steps.map(|steps| Self(steps.into()))
    }

    /// Does with the format that was read what [`write()`] does.
    #[inline]
    pub fn write(&self, value: u32, names: &impl Names, out: &mut Line, most: usize) {
        let begin = out.len();
        for step in &self.0 {
            step.write(value, names, out);
            if !has_room(begin, out, most) {
                return;
            }
        }
    }
}

impl Step {
    // In the loop of its caller, the compiler would make all digits that the value could have before
    // it looks at which are wanted.
    #[inline(never)]
    fn write(&self, value: u32, names: &impl Names, out: &mut Line) {
        let text = &self.text;
        match &self.put {
            Put::Nothing => out.stamp(text),
            Put::Unsigned => out.compose_after(text, |room| room.decimal(value.into())),
            Put::Signed => out.compose_after(text, |room| room.signed((value as i32).into())),
            Put::Hexadecimal(least) => {
                out.compose_after(text, |room| room.hex_digits(value, (*least).into()));
            }
            Put::String => {
                out.stamp(text);
                string(value, names, out);
            }
            Put::Other(spec) => {
                out.stamp(text);
                spec.write(value, names, out);
            }
        }
    }
}

impl Put {
    fn new(spec: Spec) -> Self {
        let Spec {
            left,
            plus,
            space,
            zero,
            alternate,
            width,
            precision,
            bits,
            conversion,
        } = spec;
        if left || plus || space || alternate || precision.is_some() || bits != 32 {
            return Self::Other(spec);
        }
        match (conversion, width) {
            (b'u', 0) => Self::Unsigned,
            (b'd' | b'i', 0) => Self::Signed,
            (b's', 0) => Self::String,
            (b'x', 0) => Self::Hexadecimal(1),
            (b'x', 1..=8) if zero => Self::Hexadecimal(width as u8),
            _ => Self::Other(spec),
        }
    }
}

/// Whether the output from `begin` on is at most `most` bytes long; longer output is cut.
#[inline]
fn has_room(begin: usize, out: &mut Line, most: usize) -> bool {
    if out.len() - begin <= most {
        return true;
    }
    out.truncate(begin + most);
    out.push(b"<more>");
    false
}

/// Appends the string at an offset.
fn string(offset: u32, names: &impl Names, out: &mut Line) {
    match names.string(offset) {
        Some(text) => out.push(text),
        None => bad_offset(offset, out),
    }
}

/// A part of a format: text that stands for itself, and a conversion after it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: usize,
    end: usize,
    spec: Option<Spec>,
}

/// The pieces of a format.
struct Pieces<'f> {
    format: &'f [u8],
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let begin = self.at;
        let rest = self.format.get(begin..).filter(|rest| !rest.is_empty())?;
        let Some(percent) = memchr::memchr(b'%', rest) else {
            self.at = self.format.len();
            return Some(Piece {
                begin,
                end: self.at,
                spec: None,
            });
        };
        let (spec, after) = Spec::parse(&rest[percent + 1..]);
        self.at = self.format.len() - after.len();
        Some(Piece {
            begin,
            end: match spec {
                Some(_) => begin + percent,
                None => self.at,
            },
            spec,
        })
    }
}
