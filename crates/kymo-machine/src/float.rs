//! Doubles (IEEE 754 binary64) as machines store them.
//!
//! A double is its 64 bits here, never an `f64`: some machines' quiet NaNs signal on others,
//! and a floating point register may change them in passing.
//!
//! ```
//! use kymo_machine::Machine;
//! use kymo_machine::float::convert_doubles;
//!
//! let (x86, sparc) = (Machine::find("x86").unwrap(), Machine::find("sparc").unwrap());
//! let stored = [[0, 0, 0, 0, 0, 0, 0xf0, 0x3f], [0, 0, 0, 0, 0, 0, 0xf8, 0xff]].concat();
//! let mut converted = [0; 16];
//! convert_doubles(x86, sparc, &stored, &mut converted);
//! assert_eq!(converted[..8], [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
//! assert_eq!(converted[8..], [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
//! ```

use std::hint::select_unpredictable;

use fearless_simd::{Level, dispatch};

use crate::{FloatOrder, Machine};

/// The bits of a positive infinity; the bits of NaNs are larger, but for the sign.
const INFINITY: u64 = 0x7ff0_0000_0000_0000;

/// Whether these are the bits of a NaN, quiet or signalling, of whatever sign.
#[inline]
pub const fn is_nan(bits: u64) -> bool {
    bits & (u64::MAX >> 1) > INFINITY
}

impl FloatOrder {
    /// The bits of a double, from its bytes.
    #[inline]
    pub const fn read(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
            Self::SwappedWords => u64::from_le_bytes(bytes).rotate_left(32),
        }
    }

    /// The bytes of a double, from its bits.
    #[inline]
    pub const fn write(self, bits: u64) -> [u8; 8] {
        match self {
            Self::Little => bits.to_le_bytes(),
            Self::Big => bits.to_be_bytes(),
            Self::SwappedWords => bits.rotate_left(32).to_le_bytes(),
        }
    }
}

impl Machine {
    /// The bytes in which this machine stores the double with these bits; a NaN keeps them.
    #[inline]
    pub const fn double_to_bytes(&self, bits: u64) -> [u8; 8] {
        self.float_order().write(bits)
    }

    /// The bits of the double that this machine stores in these bytes; a NaN keeps them.
    #[inline]
    pub const fn double_from_bytes(&self, bytes: [u8; 8]) -> u64 {
        self.float_order().read(bytes)
    }
}

/// Calls a loop with the orders of two machines. Each pair gets a loop of its own, so that
/// none asks for the orders a million times, and each loop is compiled for every kind of vectors
/// that the processor may have.
macro_rules! with_orders {
    ($from:expr, $to:expr, $run:ident, $($arguments:expr),+) => {{
        use FloatOrder::{Big, Little, SwappedWords};
        match ($from.float_order(), $to.float_order()) {
            (Little, Little) => vectorized!($run, $($arguments),+, Little, Little),
            (Little, Big) => vectorized!($run, $($arguments),+, Little, Big),
            (Little, SwappedWords) => vectorized!($run, $($arguments),+, Little, SwappedWords),
            (Big, Little) => vectorized!($run, $($arguments),+, Big, Little),
            (Big, Big) => vectorized!($run, $($arguments),+, Big, Big),
            (Big, SwappedWords) => vectorized!($run, $($arguments),+, Big, SwappedWords),
            (SwappedWords, Little) => vectorized!($run, $($arguments),+, SwappedWords, Little),
            (SwappedWords, Big) => vectorized!($run, $($arguments),+, SwappedWords, Big),
            (SwappedWords, SwappedWords) => {
                vectorized!($run, $($arguments),+, SwappedWords, SwappedWords)
            }
        }
    }};
}

/// Calls a function compiled for the best vectors of this processor: what all processors of a
/// family have in common takes several times as long to swap bytes.
macro_rules! vectorized {
    ($run:ident, $($arguments:expr),+) => {
        dispatch!(Level::new(), _simd => $run($($arguments),+))
    };
}

/// Converts doubles from one machine to another: every NaN becomes the target's
/// [file NaN](Machine::file_nan), all other values keep their bits. Machines of the same
/// order make no exception: several NaNs become one.
///
/// Where the source is no longer needed, [`convert_doubles_in_place`] is faster: what is
/// larger than the caches goes through memory twice and not three times.
///
/// # Panics
///
/// Unless both slices have the same length, a multiple of 8.
pub fn convert_doubles(from: &Machine, to: &Machine, source: &[u8], target: &mut [u8]) {
    let (source, rest) = source.as_chunks();
    let (target, target_rest) = target.as_chunks_mut();
    assert!(
        source.len() == target.len() && rest.is_empty() && target_rest.is_empty(),
        "both slices hold the same number of whole doubles"
    );
    with_orders!(from, to, convert, source, target, to.file_nan());
}

/// Converts doubles as [`convert_doubles`] does, where they are.
///
/// # Panics
///
/// Unless the length is a multiple of 8.
pub fn convert_doubles_in_place(from: &Machine, to: &Machine, doubles: &mut [u8]) {
    let (doubles, rest) = doubles.as_chunks_mut();
    assert!(rest.is_empty(), "the slice holds whole doubles");
    with_orders!(from, to, convert_in_place, doubles, to.file_nan());
}

#[inline(always)]
fn convert(source: &[[u8; 8]], target: &mut [[u8; 8]], nan: u64, from: FloatOrder, to: FloatOrder) {
    for (source, target) in source.iter().zip(target) {
        *target = convert_one(*source, nan, from, to);
    }
}

#[inline(always)]
fn convert_in_place(doubles: &mut [[u8; 8]], nan: u64, from: FloatOrder, to: FloatOrder) {
    for double in doubles {
        *double = convert_one(*double, nan, from, to);
    }
}

#[inline(always)]
fn convert_one(bytes: [u8; 8], nan: u64, from: FloatOrder, to: FloatOrder) -> [u8; 8] {
    let bits = from.read(bytes);
    // Without a branch: whether a value is known or not has no pattern.
    to.write(select_unpredictable(is_nan(bits), nan, bits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machines() -> impl Strategy<Value = Machine> {
        prop::sample::select(Machine::all())
    }

    /// Any bits, NaNs and infinities often.
    fn bits() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            any::<u64>().prop_map(|bits| bits | INFINITY),
            (0..64u32, any::<bool>())
                .prop_map(|(bit, sign)| INFINITY | 1 << bit | u64::from(sign) << 63),
            Just(INFINITY),
        ]
    }

    proptest! {
        #[test]
        fn bits_come_back_from_every_machine(machine in machines(), bits in bits()) {
            let bytes = machine.double_to_bytes(bits);
            prop_assert_eq!(machine.double_from_bytes(bytes), bits);
        }

        #[test]
        fn nans_are_what_ieee_754_says(bits in bits()) {
            prop_assert_eq!(is_nan(bits), f64::from_bits(bits).is_nan());
        }

        #[test]
        fn many_are_converted_as_one_by_one(
            from in machines(),
            to in machines(),
            values in prop::collection::vec(bits(), 0..70),
        ) {
            let source: Vec<u8> = values.iter().flat_map(|&bits| from.double_to_bytes(bits)).collect();
            let expected: Vec<u8> = values
                .iter()
                .map(|&bits| if is_nan(bits) { to.file_nan() } else { bits })
                .flat_map(|bits| to.double_to_bytes(bits))
                .collect();
            let mut target = vec![0; source.len()];
            convert_doubles(&from, &to, &source, &mut target);
            prop_assert_eq!(&target, &expected);
            let mut doubles = source;
            convert_doubles_in_place(&from, &to, &mut doubles);
            prop_assert_eq!(doubles, expected);
        }
    }

    #[test]
    #[should_panic(expected = "whole doubles")]
    fn half_a_double_is_refused() {
        let machine = Machine::native();
        convert_doubles(machine, machine, &[0; 12], &mut [0; 12]);
    }
}
