//! Integers as differences from the ones before them, and texts behind their lengths (DELTA_BINARY_PACKED and
//! DELTA_LENGTH_BYTE_ARRAY in [Encodings.md](https://github.com/apache/parquet-format/blob/master/Encodings.md)).

use super::pack::{pack, varint, width_of, zigzag};
use super::words::Word;

/// Differences of a block, which has a smallest one.
const BLOCK: usize = 128;
/// Differences of a miniblock, which has a number of bits.
const MINIBLOCK: usize = 32;

/// Appends integers.
pub(super) fn encode<W: Word>(values: &[W], out: &mut Vec<u8>) {
    let first = values.first().copied().unwrap_or_default();
    varint(BLOCK as u64, out);
    varint((BLOCK / MINIBLOCK) as u64, out);
    varint(values.len() as u64, out);
    zigzag(first.signed(), out);
    let mut before = first;
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut differences = [0_i64; BLOCK];
        let differences = &mut differences[..block.len()];
        let mut smallest = i64::MAX;
        for (difference, &value) in differences.iter_mut().zip(block) {
            *difference = value.difference(before);
            smallest = smallest.min(*difference);
            before = value;
        }
        zigzag(smallest, out);
        let widths = out.len();
        out.extend_from_slice(&[0; BLOCK / MINIBLOCK]);
        for (number, miniblock) in differences.chunks(MINIBLOCK).enumerate() {
            let mut packed = [0_u64; MINIBLOCK];
            let mut bits = 0;
            for (value, difference) in packed.iter_mut().zip(miniblock) {
                *value = difference.wrapping_sub(smallest) as u64;
                bits |= *value;
            }
            let width = width_of(bits);
            out[widths + number] = width as u8;
            pack(&packed, width, out);
        }
    }
}
