//! Bits with names.

/// The bits in inclusive ranges of bit numbers, as far as they are among the lowest 64.
pub(super) fn flag_bits(ranges: &[(u64, u64)]) -> u64 {
    ranges
        .iter()
        .filter(|&&(low, high)| low <= high && low < 64)
        .fold(0, |bits, &(low, high)| {
            bits | (u64::MAX << low) & (u64::MAX >> (63 - high.min(63)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bit_numbers() {
        assert_eq!(flag_bits(&[(1, 3), (9, 9)]), 0b10_0000_1110);
        assert_eq!(flag_bits(&[(0, u64::MAX)]), u64::MAX);
        assert_eq!(flag_bits(&[(63, 63), (64, 70), (3, 2)]), 1 << 63);
    }
}
