//! The wire format of protocol buffers, as far as messages are read.

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    /// An integer of up to 64 bits.
    Varint(u64),
    /// 8 bytes.
    Fixed64(u64),
    /// 4 bytes.
    Fixed32(u32),
    /// A text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The bytes; empty if it is something else.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => b"",
        }
    }

    /// The integer; 0 if it is something else.
    pub(crate) fn integer(self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => number,
            Self::Fixed32(number) => number.into(),
            Self::Bytes(_) => 0,
        }
    }

    /// The double; 0 if it is something else.
    pub(crate) fn double(self) -> f64 {
        match self {
            Self::Fixed64(bits) => f64::from_bits(bits),
            Self::Fixed32(bits) => f32::from_bits(bits).into(),
            _ => 0.0,
        }
    }
}

/// The fields of a message, with their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    rest: &'a [u8],
    length: usize,
}

/// That a message is cut off, or has what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl<'a> Message<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
        }
    }

    /// The offset of the next field.
    pub(crate) fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// The next field and its number; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Field<'a>)>, Damaged> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Damaged)?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(*self.chunk()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Damaged)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Damaged)?;
                self.rest = rest;
                Field::Bytes(bytes)
            }
            5 => Field::Fixed32(u32::from_le_bytes(*self.chunk()?)),
            _ => return Err(Damaged),
        };
        match number {
            0 => Err(Damaged),
            number => Ok(Some((number, field))),
        }
    }

    fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], Damaged> {
        let (chunk, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(chunk)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for (place, &byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                return Err(Damaged);
            }
            number |= bits << (7 * place);
            if byte < 0x80 {
                self.rest = &self.rest[place + 1..];
                return Ok(number);
            }
        }
        Err(Damaged)
    }
}

/// Calls `take` for each number of a repeated field, which is packed or not.
pub(crate) fn integers(field: Field<'_>, mut take: impl FnMut(u64)) -> Result<(), Damaged> {
    match field {
        Field::Bytes(bytes) => {
            let mut message = Message::new(bytes);
            while !message.rest.is_empty() {
                take(message.varint()?);
            }
        }
        other => take(other.integer()),
    }
    Ok(())
}

/// The same of numbers of 8 bytes.
pub(crate) fn fixed(field: Field<'_>, mut take: impl FnMut(u64)) -> Result<(), Damaged> {
    match field {
        Field::Bytes(bytes) => {
            let mut message = Message::new(bytes);
            while !message.rest.is_empty() {
                take(u64::from_le_bytes(*message.chunk()?));
            }
        }
        other => take(other.integer()),
    }
    Ok(())
}

/// Writes messages, for tests.
#[cfg(test)]
pub(crate) mod write {
    pub(crate) fn varint(out: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    pub(crate) fn integer(out: &mut Vec<u8>, number: u32, value: u64) {
        varint(out, u64::from(number) << 3);
        varint(out, value);
    }

    pub(crate) fn fixed(out: &mut Vec<u8>, number: u32, bits: u64) {
        varint(out, u64::from(number) << 3 | 1);
        out.extend(bits.to_le_bytes());
    }

    pub(crate) fn bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
        varint(out, u64::from(number) << 3 | 2);
        varint(out, bytes.len() as u64);
        out.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fields_come_back(number in 1..1_u32 << 29, integer: u64, bits: u64, text: Vec<u8>) {
            let mut out = Vec::new();
            write::integer(&mut out, number, integer);
            write::fixed(&mut out, number, bits);
            write::bytes(&mut out, number, &text);
            let mut message = Message::new(&out);
            prop_assert_eq!(message.next(), Ok(Some((number, Field::Varint(integer)))));
            prop_assert_eq!(message.next(), Ok(Some((number, Field::Fixed64(bits)))));
            prop_assert_eq!(message.next(), Ok(Some((number, Field::Bytes(&text)))));
            prop_assert_eq!(message.next(), Ok(None));
            for end in 0..out.len() {
                let mut message = Message::new(&out[..end]);
                while let Ok(Some(_)) = message.next() {}
            }
        }
    }
}
