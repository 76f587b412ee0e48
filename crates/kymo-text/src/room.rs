//! Short texts made in one go.

use crate::integer::{digits, eight, eight_hex, four, long_decimal};
use crate::{Line, Stamp};

/// The numbers 000 to 999.
static THREE: [[u8; 4]; 1000] = {
    let mut numbers = [[0; 4]; 1000];
    let mut number = 0;
    while number < 1000 {
        let digits = [number / 100, number / 10 % 10, number % 10];
        let mut place = 0;
        while place < 3 {
            numbers[number][place] = b'0' + digits[place] as u8;
            place += 1;
        }
        number += 1;
    }
    numbers
};

/// Room for a short text at the end of a line: see [`Line::compose`].
#[derive(Debug)]
pub struct Room<'l> {
    bytes: &'l mut [u8; Room::SIZE],
    len: usize,
}

impl Line {
    /// Appends a text of a few pieces. The line grows once for all of them, and the length
    /// is kept where the processor has it at hand: with many short pieces, that is half of
    /// the time.
    ///
    /// # Panics
    ///
    /// If the pieces do not fit in the room: stamps count as 31 bytes, numbers as 24.
    #[inline(always)]
    pub fn compose(&mut self, write: impl FnOnce(&mut Room<'_>)) {
        let mut room = Room {
            bytes: self.window(),
            len: 0,
        };
        write(&mut room);
        let len = room.len;
        self.advance(len);
    }

    /// Appends a prepared piece and then a text of a few pieces.
    ///
    /// # Panics
    ///
    /// As [`compose`](Self::compose).
    #[inline(always)]
    pub fn compose_after(&mut self, before: &Stamp, write: impl FnOnce(&mut Room<'_>)) {
        let (block, len) = match before.short() {
            Some(short) => short,
            None => {
                self.stamp(before);
                (&[0; Stamp::SHORT], 0)
            }
        };
        self.compose(|room| {
            room.piece(block, len);
            write(room);
        });
    }
}

impl Room<'_> {
    /// Number of bytes.
    pub const SIZE: usize = 128;

    /// Appends the first `len` bytes of a block; all of it is copied, which needs no call.
    ///
    /// # Panics
    ///
    /// If the block does not fit in the room.
    #[inline(always)]
    pub fn piece<const N: usize>(&mut self, block: &[u8; N], len: usize) {
        // As an array, since the compiler does not always find out that slices have its size.
        let place = self.bytes[self.len..].first_chunk_mut();
        *place.expect("pieces fit in the room") = *block;
        self.len += len;
    }

    /// Appends a prepared piece that [is short](Stamp::is_short), and nothing of a long one.
    #[inline(always)]
    pub fn stamp(&mut self, stamp: &Stamp) {
        if let Some((block, len)) = stamp.short() {
            self.piece(block, len);
        }
    }

    /// Appends text of a length that the compiler knows.
    #[inline(always)]
    pub fn text<const N: usize>(&mut self, text: &[u8; N]) {
        self.piece(text, N);
    }

    /// Appends a text of 8 to 32 bytes.
    ///
    /// # Panics
    ///
    /// If it is shorter or longer.
    #[inline(always)]
    pub(crate) fn short_text(&mut self, text: &[u8]) {
        // Two blocks of a fixed size, which overlap: cheaper than a loop or a call.
        let begin = self.len;
        match (text.first_chunk::<16>(), text.last_chunk::<16>()) {
            (Some(first), Some(last)) => {
                self.piece(first, text.len());
                self.bytes[begin + text.len() - 16..begin + text.len()].copy_from_slice(last);
            }
            _ => {
                let [first, last] = [text.first_chunk::<8>(), text.last_chunk()];
                let (Some(first), Some(last)) = (first, last) else {
                    panic!("a text of {} bytes, expected 8 to 32", text.len());
                };
                self.piece(first, text.len());
                self.bytes[begin + text.len() - 8..begin + text.len()].copy_from_slice(last);
            }
        }
    }

    /// Appends an unsigned number.
    #[inline(always)]
    pub fn decimal(&mut self, value: u64) {
        if value < 10_000 {
            // Most numbers are short: four digits are made, of which the first do not count.
            let value = value as u32;
            let zeros = u32::from(value < 10) + u32::from(value < 100) + u32::from(value < 1000);
            let digits = four(value) >> (8 * zeros);
            self.piece(&digits.to_le_bytes(), 4 - zeros as usize);
        } else if value < 100_000_000 {
            let len = digits(value);
            let digits = eight(value as u32) >> (8 * (8 - len));
            self.piece(&digits.to_le_bytes(), len);
        } else {
            let (digits, len) = long_decimal(value);
            self.piece(&digits, len);
        }
    }

    /// Appends a signed number.
    #[inline(always)]
    pub fn signed(&mut self, value: i64) {
        self.piece(b"-", usize::from(value < 0));
        self.decimal(value.unsigned_abs());
    }

    /// Appends a number in upper-case hexadecimal, with `0x` before it.
    #[inline(always)]
    pub fn hexadecimal(&mut self, value: u64) {
        self.text(b"0x");
        let len = (67 - (value | 1).leading_zeros() as usize) / 4;
        let low = eight_hex(value as u32, b'A');
        if len <= 8 {
            self.piece(&(low << (8 * (8 - len))).to_be_bytes(), len);
        } else {
            let high = eight_hex((value >> 32) as u32, b'A') << (8 * (16 - len));
            self.piece(&high.to_be_bytes(), len - 8);
            self.piece(&low.to_be_bytes(), 8);
        }
    }

    /// Appends a number in lower-case hexadecimal with at least `least` digits, up to eight, and
    /// nothing before it: as C's `%0LEASTx`.
    #[inline(always)]
    pub fn hex_digits(&mut self, value: u32, least: u32) {
        let len = (32 - value.leading_zeros()).div_ceil(4).max(least).min(8);
        let digits = eight_hex(value, b'a');
        // Shifted by all of its bits if there are no digits.
        let shift = 8 * (8 - len);
        self.piece(&digits.unbounded_shl(shift).to_be_bytes(), len as usize);
    }

    /// Appends the last three digits of a number.
    #[inline(always)]
    pub fn three(&mut self, value: u32) {
        self.piece(&THREE[value as usize % THREE.len()], 3);
    }

    /// Appends nine digits: the part of a second in nanoseconds. The number is less than a
    /// thousand million.
    #[inline(always)]
    pub fn nanos(&mut self, value: u32) {
        let (first, rest) = (value / 100_000_000 % 10, value % 100_000_000);
        self.text(&[b'0' + first as u8]);
        self.text(&eight(rest).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_filled_up() {
        for (value, least) in [
            (0, 0),
            (0, 1),
            (0xab, 1),
            (0xab, 2),
            (0x1f, 8),
            (u32::MAX, 3),
        ] {
            let mut line = Line::new();
            line.compose(|room| room.hex_digits(value, least));
            let digits = match (value, least) {
                (0, 0) => String::new(),
                _ => format!("{value:0width$x}", width = least as usize),
            };
            assert_eq!(line.as_bytes(), digits.as_bytes());
        }
        for value in [0, 7, 40, 999] {
            let mut line = Line::new();
            line.compose(|room| room.three(value));
            assert_eq!(line.as_bytes(), format!("{value:03}").as_bytes());
        }
    }

    #[test]
    fn the_longest_pieces_fit_together() {
        let mut line = Line::new();
        let stamp = Stamp::new(&[b'x'; 31]);
        line.compose_after(&stamp, |room| {
            room.text(b"[");
            room.signed(i64::MIN);
            room.text(b".");
            room.nanos(999_999_999);
        });
        let expected = format!("{}[{}.999999999", "x".repeat(31), i64::MIN);
        assert_eq!(line.as_bytes(), expected.as_bytes());
        line.clear();
        line.compose_after(&Stamp::new(&[b'y'; 32]), |room| room.decimal(u64::MAX));
        let expected = format!("{}{}", "y".repeat(32), u64::MAX);
        assert_eq!(line.as_bytes(), expected.as_bytes());
    }
}
