//! Writing of the wire format. Lengths come before what they are of: [`begin`] leaves room for one that
//! is not known yet.

use kymo_text::{Line, Room};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

/// Bytes of a length that is written when it is known: enough for 2^35.
const ROOM: usize = 5;

/// An unsigned number, seven bits a byte, the lowest first, and how many bytes it has.
#[inline(always)]
fn encode(value: u64) -> ([u8; 16], usize) {
    const MORE: u64 = 0x8080_8080_8080_8080;
    // Eight bytes at once: halves of their bits are moved apart, then halves of these.
    let bytes = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let bytes = bytes & 0x0000_3fff_0000_3fff | (bytes & 0x0fff_c000_0fff_c000) << 2;
    let bytes = bytes & 0x007f_007f_007f_007f | (bytes & 0x3f80_3f80_3f80_3f80) << 1;
    let size = varint_size(value);
    let high = value >> 56;
    let all = match high {
        0 => u128::from(bytes | MORE & ((1 << (8 * (size - 1))) - 1)),
        // Its highest bit is where a ninth byte says that there is a tenth.
        _ => u128::from(bytes | MORE) | u128::from(high | (high >> 7) << 8) << 64,
    };
    (all.to_le_bytes(), size)
}

/// Appends an unsigned number.
#[inline(always)]
pub fn put(value: u64, room: &mut Room<'_>) {
    if value < 0x80 {
        room.text(&[value as u8]);
    } else {
        let (bytes, size) = encode(value);
        room.piece(&bytes, size);
    }
}

/// Appends a field that is an unsigned number or a truth value.
#[inline(always)]
pub fn put_uint(field: u32, value: u64, room: &mut Room<'_>) {
    put(u64::from(field << 3 | VARINT), room);
    put(value, room);
}

/// Appends the beginning of a field with this number of bytes, which follow.
#[inline(always)]
pub fn put_length(field: u32, length: usize, room: &mut Room<'_>) {
    put(u64::from(field << 3 | LENGTH), room);
    put(length as u64, room);
}

/// The same as [`put`] at the end of a line.
#[inline(always)]
pub fn varint(value: u64, out: &mut Line) {
    out.compose(|room| put(value, room));
}

/// Bytes of an unsigned number.
#[inline]
pub const fn varint_size(value: u64) -> usize {
    (63 - (value | 1).leading_zeros() as usize) / 7 + 1
}

/// Appends a field that is an unsigned number or a truth value.
#[inline]
pub fn uint(field: u32, value: u64, out: &mut Line) {
    out.compose(|room| put_uint(field, value, room));
}

/// Bytes of such a field.
#[inline]
pub const fn uint_size(field: u32, value: u64) -> usize {
    varint_size((field << 3) as u64) + varint_size(value)
}

/// Appends a field that is a signed number (not in zigzag form): negative ones take ten bytes.
#[inline]
pub fn int(field: u32, value: i64, out: &mut Line) {
    uint(field, value as u64, out);
}

/// Appends a field of 8 bytes.
#[inline]
pub fn fixed64(field: u32, value: u64, out: &mut Line) {
    out.compose(|room| {
        put(u64::from(field << 3 | FIXED64), room);
        room.text(&value.to_le_bytes());
    });
}

/// Appends a field that is a floating point number.
#[inline]
pub fn double(field: u32, value: f64, out: &mut Line) {
    fixed64(field, value.to_bits(), out);
}

/// Appends a field that is text, bytes, or another message.
#[inline]
pub fn bytes(field: u32, bytes: &[u8], out: &mut Line) {
    length(field, bytes.len(), out);
    out.push(bytes);
}

/// Appends the beginning of a field with this number of bytes, which follow.
#[inline]
pub fn length(field: u32, length: usize, out: &mut Line) {
    out.compose(|room| put_length(field, length, room));
}

/// Bytes of a field that is text, bytes, or another message.
#[inline]
pub const fn bytes_size(field: u32, length: usize) -> usize {
    uint_size(field, length as u64) + length
}

/// Begins a message whose length is not known yet; returns where it begins.
#[inline]
pub fn begin(field: u32, out: &mut Line) -> usize {
    out.compose(|room| {
        put(u64::from(field << 3 | LENGTH), room);
        room.text(&[0; ROOM]);
    });
    out.len()
}

/// Ends the message that begins at `begin`.
#[inline]
pub fn end(begin: usize, out: &mut Line) {
    let mut length = out.len().saturating_sub(begin) as u64;
    // All five bytes are used, whatever the length: the highest ones may be zero.
    let room: [u8; ROOM] = std::array::from_fn(|place| {
        let more = if place + 1 < ROOM { 0x80 } else { 0 };
        let byte = length as u8 & 0x7f | more;
        length >>= 7;
        byte
    });
    out.overwrite(begin.saturating_sub(ROOM), &room);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Field, Fields, Wire};
    use super::*;

    #[test]
    fn numbers_are_as_the_specification_has_them() {
        for (value, expected) in [
            (0, &[0][..]),
            (1, &[1]),
            (150, &[0x96, 1]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            let mut line = Line::new();
            varint(value, &mut line);
            assert_eq!(line.as_bytes(), expected);
        }
        let mut line = Line::new();
        int(1, -1, &mut line);
        bytes(2, b"testing", &mut line);
        let expected = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x07testing";
        assert_eq!(line.as_bytes(), expected);
    }

    #[derive(Clone, Debug)]
    enum Written {
        Uint(u64),
        Int(i64),
        Double(u64),
        Bytes(Vec<u8>),
        Message(Vec<(u32, Written)>),
    }

    fn written() -> impl Strategy<Value = Vec<(u32, Written)>> {
        let leaf = prop_oneof![
            (any::<u64>(), 0u32..64).prop_map(|(value, bits)| Written::Uint(value >> bits)),
            any::<i64>().prop_map(Written::Int),
            any::<u64>().prop_map(Written::Double),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Written::Bytes),
        ];
        let field = leaf.prop_recursive(4, 40, 6, |inner| {
            proptest::collection::vec((1u32..1 << 28, inner), 0..6).prop_map(Written::Message)
        });
        proptest::collection::vec((1u32..1 << 28, field), 0..8)
    }

    fn write(message: &[(u32, Written)], out: &mut Line) {
        for (field, value) in message {
            let before = out.len();
            let size = match value {
                Written::Uint(value) => {
                    uint(*field, *value, out);
                    uint_size(*field, *value)
                }
                Written::Int(value) => {
                    int(*field, *value, out);
                    uint_size(*field, *value as u64)
                }
                Written::Double(bits) => {
                    double(*field, f64::from_bits(*bits), out);
                    continue;
                }
                Written::Bytes(value) => {
                    bytes(*field, value, out);
                    bytes_size(*field, value.len())
                }
                Written::Message(inner) => {
                    let at = begin(*field, out);
                    write(inner, out);
                    end(at, out);
                    continue;
                }
            };
            assert_eq!(out.len() - before, size);
        }
    }

    fn check(message: &[(u32, Written)], found: &[u8]) {
        let found: Vec<Field<'_>> = Fields::new(found).map(Result::unwrap).collect();
        assert_eq!(message.len(), found.len());
        for ((number, value), field) in message.iter().zip(found) {
            assert_eq!(*number, field.number);
            match (value, field.wire) {
                (Written::Uint(value), Wire::Varint(found)) => assert_eq!(*value, found),
                (Written::Int(value), Wire::Varint(found)) => assert_eq!(*value as u64, found),
                (Written::Double(bits), Wire::Fixed64(found)) => assert_eq!(*bits, found),
                (Written::Bytes(value), Wire::Bytes(found)) => assert_eq!(value, found),
                (Written::Message(inner), Wire::Bytes(found)) => check(inner, found),
                other => panic!("{other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(message in written()) {
            let mut line = Line::new();
            write(&message, &mut line);
            check(&message, line.as_bytes());
        }
    }
}
