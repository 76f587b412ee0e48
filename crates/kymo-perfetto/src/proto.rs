//! The wire format of protocol buffers.
//!
//! A field is a key, which is its number times 8 and its wire type, and a value. Lengths come
//! before what they are of. Nothing here trusts them: a field that goes beyond its message is
//! [`Malformed`].

pub mod write;

/// A message is not what the wire format allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where in the message, in bytes.
    pub at: usize,
    /// Whether the message ends within the field.
    pub is_cut: bool,
}

/// The value of a field, as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire<'a> {
    /// An integer or a truth value.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Text, bytes, another message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// The number; 0 of bytes.
    pub fn uint(self) -> u64 {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value,
            Self::Fixed32(value) => value.into(),
            Self::Bytes(_) => 0,
        }
    }

    /// The number of a signed field (not in zigzag form).
    pub fn int(self) -> i64 {
        self.uint() as i64
    }

    /// The floating point number of eight bytes.
    pub fn double(self) -> f64 {
        f64::from_bits(self.uint())
    }

    /// The bytes; empty for a number.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its number.
    pub number: u32,
    /// Its value.
    pub wire: Wire<'a>,
}

/// Goes through the fields of a message. After [`Malformed`] comes nothing.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Where the next field begins.
    pub fn position(&self) -> usize {
        self.at
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let end = usize::try_from(count).ok()?.checked_add(self.at)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N as u64)?.first_chunk().copied()
    }

    /// `Err(true)` where the message ends within it, `Err(false)` where it has too many bytes.
    fn varint(&mut self) -> Result<u64, bool> {
        let mut value = 0;
        for place in 0..10 {
            let &byte = self.bytes.get(self.at).ok_or(true)?;
            self.at += 1;
            // Of the tenth byte one bit counts; as other readers do, the rest is dropped.
            value |= u64::from(byte & 0x7f) << (place * 7);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(false)
    }

    fn field(&mut self) -> Result<Field<'a>, bool> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| false)?;
        if number == 0 {
            return Err(false);
        }
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.fixed().ok_or(true)?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length).ok_or(true)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.fixed().ok_or(true)?)),
            _ => return Err(false),
        };
        Ok(Field { number, wire })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let at = self.at;
        Some(self.field().map_err(|is_cut| {
            self.at = self.bytes.len();
            Malformed { at, is_cut }
        }))
    }
}

/// The fields of a message, up to the first malformed one: for messages within a packet whose
/// damage was counted with the packet, or is not worth more than what is missing.
pub fn fields<'a>(bytes: &'a [u8]) -> impl Iterator<Item = Field<'a>> {
    Fields::new(bytes).map_while(Result::ok)
}

/// The first of the fields with a number.
pub fn first<'a>(bytes: &'a [u8], number: u32) -> Option<Wire<'a>> {
    fields(bytes)
        .find(|field| field.number == number)
        .map(|field| field.wire)
}

/// The numbers of a repeated field: one, or packed ones of variable length.
pub fn varints(wire: Wire<'_>) -> impl Iterator<Item = u64> {
    let (one, packed) = match wire {
        Wire::Bytes(bytes) => (None, bytes),
        number => (Some(number.uint()), &[][..]),
    };
    let mut packed = Fields::new(packed);
    one.into_iter()
        .chain(std::iter::from_fn(move || packed.varint().ok()))
}

/// The numbers of a repeated field of eight bytes each: one, or packed ones.
pub fn fixed64s(wire: Wire<'_>) -> impl Iterator<Item = u64> {
    let (one, packed) = match wire {
        Wire::Bytes(bytes) => (None, bytes),
        number => (Some(number.uint()), &[][..]),
    };
    let (packed, _) = packed.as_chunks::<8>();
    one.into_iter()
        .chain(packed.iter().map(|&bytes| u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_as_the_specification_has_them() {
        let bytes = b"\x08\x96\x01\x12\x03abc\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0";
        let found: Vec<_> = Fields::new(bytes).map(Result::unwrap).collect();
        let expected = [
            (1, Wire::Varint(150)),
            (2, Wire::Bytes(b"abc")),
            (3, Wire::Fixed64(1)),
            (4, Wire::Fixed32(2)),
        ];
        let expected = expected.map(|(number, wire)| Field { number, wire });
        assert_eq!(found, expected);
        let negative = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(first(negative, 1).unwrap().int(), -1);
    }

    #[test]
    fn lengths_are_not_trusted() {
        for (bytes, is_cut) in [
            (&b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..], true),
            (b"\x0a\x05abc", true),
            (b"\x08", true),
            (b"\x09abc", true),
            (b"\x0b", false),
            (b"\x00\x01", false),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", false),
        ] {
            let mut fields = Fields::new(bytes);
            let wrong = Malformed { at: 0, is_cut };
            assert_eq!(fields.next(), Some(Err(wrong)), "{bytes:?}");
            assert_eq!(fields.next(), None);
        }
    }

    #[test]
    fn repeated_numbers_are_packed_or_not() {
        let packed = Wire::Bytes(&[1, 0x96, 1, 0x80]);
        assert_eq!(varints(packed).collect::<Vec<_>>(), [1, 150]);
        assert_eq!(varints(Wire::Varint(7)).collect::<Vec<_>>(), [7]);
        let packed = Wire::Bytes(&[5, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(fixed64s(packed).collect::<Vec<_>>(), [5]);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let mut fields = Fields::new(&bytes);
            let mut last = 0;
            while let Some(field) = fields.next() {
                prop_assert!(fields.position() > last && fields.position() <= bytes.len());
                last = fields.position();
                if field.is_err() {
                    prop_assert!(fields.next().is_none());
                }
            }
        }
    }
}
