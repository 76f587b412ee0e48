//! Floating point numbers of 128 bits.

use crate::exact::{self, Digits, Wanted};

/// A floating point number of IEEE 754 binary128, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary128 {
    /// Whether the sign bit is set.
    pub(crate) negative: bool,
    /// At most 113 bits, of numbers in the usual sense.
    pub(crate) mantissa: u128,
    /// The number is the mantissa times two to this power.
    pub(crate) exponent: i32,
}

impl Binary128 {
    /// Exponent of the smallest numbers.
    pub(crate) const MIN_EXPONENT: i32 = -16_494;
    /// Exponent of infinities and NaNs.
    const SPECIAL: i32 = 0x7fff - 1 + Self::MIN_EXPONENT;

    /// The number with these bits.
    pub const fn from_bits(bits: u128) -> Self {
        let fraction = bits & ((1 << 112) - 1);
        let exponent = (bits >> 112) as i32 & 0x7fff;
        let (mantissa, exponent) = match exponent {
            0 => (fraction, Self::MIN_EXPONENT),
            0x7fff => (fraction, Self::SPECIAL),
            _ => (fraction | 1 << 112, exponent - 1 + Self::MIN_EXPONENT),
        };
        Self {
            negative: bits >> 127 == 1,
            mantissa,
            exponent,
        }
    }

    /// Whether it is not a number.
    pub const fn is_nan(self) -> bool {
        self.exponent == Self::SPECIAL && self.mantissa != 0
    }

    /// Whether it is infinite.
    pub const fn is_infinite(self) -> bool {
        self.exponent == Self::SPECIAL && self.mantissa == 0
    }

    /// Whether the sign bit is set.
    pub const fn is_negative(self) -> bool {
        self.negative
    }

    pub(crate) fn digits(self, wanted: Wanted) -> Digits {
        exact::digits(self.mantissa, self.exponent, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    fn texts(bits: u128) -> (String, String) {
        let value = Binary128::from_bits(bits);
        let (mut general, mut shortest) = (Line::new(), Line::new());
        general.general128(value);
        shortest.shortest128(value);
        let text = |line: &Line| String::from_utf8(line.as_bytes().to_vec()).unwrap();
        (text(&general), text(&shortest))
    }

    #[test]
    fn from_one_to_the_extremes() {
        let (zero, one) = (0, 0x3fff << 112);
        assert_eq!(texts(zero), ("0".into(), "0.0".into()));
        assert_eq!(texts(one), ("1".into(), "1.0".into()));
        assert_eq!(texts(0xc000 << 112), ("-2".into(), "-2.0".into()));
        // 0.1, the largest and the smallest number.
        assert_eq!(
            texts(0x3ffb_9999_9999_9999_9999_9999_9999_999a),
            ("0.1".into(), "0.1".into())
        );
        assert_eq!(
            texts(0x7ffe_ffff_ffff_ffff_ffff_ffff_ffff_ffff),
            (
                "1.18973e+4932".into(),
                "1.189731495357231765085759326628007e+4932".into()
            )
        );
        assert_eq!(texts(1), ("6.47518e-4966".into(), "6e-4966".into()));
        assert!(Binary128::from_bits(0x7fff << 112).is_infinite());
        assert!(Binary128::from_bits(0x7fff << 112 | 1).is_nan());
    }
}
