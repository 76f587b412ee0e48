//! Integers of few bits behind one another, from the lowest bit on: "bit-packed" in the specification
//! ([Encodings.md](https://github.com/apache/parquet-format/blob/master/Encodings.md)).

/// The number of bits of an integer.
pub(super) fn width_of(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

/// Appends integers of `width` bits each. The last byte is filled with zeros.
pub(super) fn pack<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    match width {
        0 => {}
        1..=8 => pack_narrow(values, width, out),
        _ => pack_wide(values, width, out),
    }
}

/// Eight integers fit into one word.
fn pack_narrow<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let bytes = width as usize;
    let begin = out.len();
    // A word is written as a whole, and the next one over its end.
    out.resize(begin + values.len().div_ceil(8) * bytes + 8, 0);
    let (eights, rest) = values.as_chunks::<8>();
    let mut at = begin;
    for eight in eights {
        let two = |first: usize| {
            let (low, high): (u64, u64) = (eight[first].into(), eight[first + 1].into());
            low | high << width
        };
        let (low, high) = (
            two(0) | two(2) << (2 * width),
            two(4) | two(6) << (2 * width),
        );
        let word = low | high << (4 * width);
        out[at..at + 8].copy_from_slice(&word.to_le_bytes());
        at += bytes;
    }
    let mut word = 0;
    for (position, &value) in rest.iter().enumerate() {
        word |= value.into() << (position as u32 * width);
    }
    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
    out.truncate(at + (rest.len() * bytes).div_ceil(8));
}

fn pack_wide<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let bits = values.len() * width as usize;
    out.reserve(bits.div_ceil(8) + 8);
    let (mut word, mut filled) = (0_u64, 0);
    for &value in values {
        let value = value.into();
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            // What did not fit; nothing if the word ended with the value.
            word = value.unbounded_shr(width - filled);
        }
    }
    let rest = filled.div_ceil(8) as usize;
    out.extend_from_slice(&word.to_le_bytes()[..rest]);
}

/// Appends an integer in groups of seven bits, the lowest first (ULEB128).
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The same for signed ones: small amounts are few bytes.
pub(super) fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint((value << 1 ^ value >> 63) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_lie_bit_by_bit() {
        for width in 0..=64_u32 {
            for count in [0, 1, 7, 8, 9, 31, 32, 67] {
                let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                let values: Vec<u64> = (1..=count)
                    .map(|value: u64| value.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                    .collect();
                let mut bits = vec![0_u8; (values.len() * width as usize).div_ceil(8)];
                for (position, value) in values.iter().enumerate() {
                    for bit in 0..width as usize {
                        let at = position * width as usize + bit;
                        bits[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
                    }
                }
                let mut packed = vec![1];
                pack(&values, width, &mut packed);
                assert_eq!(packed[1..], bits, "{count} of {width} bits");
            }
        }
    }

    #[test]
    fn amounts_are_groups_of_seven_bits() {
        let mut out = Vec::new();
        varint(300, &mut out);
        zigzag(-1, &mut out);
        zigzag(64, &mut out);
        zigzag(i64::MIN, &mut out);
        assert_eq!(out[..5], [0xac, 0x02, 0x01, 0x80, 0x01]);
        assert_eq!(out[5..], [&[0xff; 9][..], &[0x01]].concat());
    }
}
