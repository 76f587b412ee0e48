//! Numbers as bytes: of a variable length, and many of them packed.

use crate::Damaged;

/// Bytes that are read, never beyond their end.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: u64) -> Result<&'a [u8], Damaged> {
        let count = usize::try_from(count).map_err(|_| Damaged("too long"))?;
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Damaged("cut off"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.bytes(1)?[0])
    }

    /// An unsigned LEB128 number.
    pub(crate) fn number(&mut self) -> Result<u64, Damaged> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damaged("a number of more than 64 bits"))
    }

    /// A number of things that take at least `least` bytes each.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Damaged> {
        let count = self.number()?;
        let most = self.0.len() / least.max(1);
        let count = usize::try_from(count).ok().filter(|&count| count <= most);
        count.ok_or(Damaged("more entries than bytes"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Damaged> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn small(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.number()?).map_err(|_| Damaged("a number of more than 32 bits"))
    }

    pub(crate) fn float(&mut self) -> Result<f64, Damaged> {
        let bytes = self.bytes(8)?.try_into().map_err(|_| Damaged("cut off"))?;
        Ok(f64::from_bits(u64::from_le_bytes(bytes)))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Damaged> {
        let count = self.number()?;
        std::str::from_utf8(self.bytes(count)?).map_err(|_| Damaged("text that is not UTF-8"))
    }

    /// Reads a column of `count` numbers, and passes on each in order.
    #[inline]
    pub(crate) fn column(
        &mut self,
        count: usize,
        mut take: impl FnMut(usize, u64),
    ) -> Result<(), Damaged> {
        let least = self.number()?;
        let width = u32::from(self.byte()?);
        if width > 64 {
            return Err(Damaged("a column of more than 64 bits"));
        }
        if width == 0 {
            (0..count).for_each(|at| take(at, least));
            return Ok(());
        }
        let bits = count as u64 * u64::from(width);
        let rest = self.0;
        self.bytes(bits.div_ceil(8))?;
        let mask = u64::MAX >> (64 - width);
        for at in 0..count {
            let bit = at * width as usize;
            // What follows a block is long enough for that.
            let window = rest.get(bit / 8..bit / 8 + 16);
            let window = window.and_then(|window| window.try_into().ok());
            let window = u128::from_le_bytes(window.ok_or(Damaged("cut off"))?);
            let value = (window >> (bit % 8)) as u64 & mask;
            take(at, least.wrapping_add(value));
        }
        Ok(())
    }
}

/// Bytes behind columns, so that each number can be read with the same step.
pub(crate) const SLACK: usize = 16;

pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_number(out, (value << 1 ^ value >> 63) as u64);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a column: the least number, the bits of the others above it, and these bits.
pub(crate) fn put_column(out: &mut Vec<u8>, values: impl Iterator<Item = u64> + Clone) {
    let bounds = values.clone().map(|value| (value, value));
    let bounds = bounds.reduce(|(least, most), (value, _)| (least.min(value), most.max(value)));
    let (least, most) = bounds.unwrap_or_default();
    let width = 64 - (most - least).leading_zeros();
    put_number(out, least);
    out.push(width as u8);
    if width == 0 {
        return;
    }
    let (mut window, mut bits) = (0_u64, 0);
    for value in values {
        let value = value - least;
        window |= value << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&window.to_le_bytes());
            bits -= 64;
            window = value.checked_shr(width - bits).unwrap_or(0);
        }
    }
    out.extend_from_slice(&window.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_come_back(
            values in prop::collection::vec(any::<u64>(), 1..100),
            shift in 0..64_u32,
        ) {
            let values: Vec<u64> = values.iter().map(|value| value >> shift).collect();
            let mut out = Vec::new();
            put_column(&mut out, values.iter().copied());
            out.extend([7; SLACK]);
            let mut found = Vec::new();
            let mut reader = Reader(&out);
            reader.column(values.len(), |_, value| found.push(value)).unwrap();
            prop_assert_eq!(found, values);
            prop_assert_eq!(reader.0, [7; SLACK]);
        }

        #[test]
        fn numbers_come_back(value in any::<u64>(), signed in any::<i64>(), text in ".*") {
            let mut out = Vec::new();
            put_number(&mut out, value);
            put_signed(&mut out, signed);
            put_text(&mut out, &text);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.number(), Ok(value));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.text(), Ok(&text[..]));
            prop_assert!(reader.0.is_empty());
        }
    }
}
