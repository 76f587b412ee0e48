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

/// Converts doubles from one machine to another: every NaN becomes the target's
/// [file NaN](Machine::file_nan), all other values keep their bits. Machines of the same
/// order make no exception: several NaNs become one.
///
/// # Panics
///
/// Unless both slices have the same length, a multiple of 8.
pub fn convert_doubles(from: &Machine, to: &Machine, source: &[u8], target: &mut [u8]) {
    use FloatOrder::{Big, Little, SwappedWords};
    // A loop for each pair of orders, so that none asks for them a million times.
    let nan = to.file_nan();
    match (from.float_order(), to.float_order()) {
        (Little, Little) => convert(source, target, nan, Little, Little),
        (Little, Big) => convert(source, target, nan, Little, Big),
        (Little, SwappedWords) => convert(source, target, nan, Little, SwappedWords),
        (Big, Little) => convert(source, target, nan, Big, Little),
        (Big, Big) => convert(source, target, nan, Big, Big),
        (Big, SwappedWords) => convert(source, target, nan, Big, SwappedWords),
        (SwappedWords, Little) => convert(source, target, nan, SwappedWords, Little),
        (SwappedWords, Big) => convert(source, target, nan, SwappedWords, Big),
        (SwappedWords, SwappedWords) => convert(source, target, nan, SwappedWords, SwappedWords),
    }
}

#[inline(always)]
fn convert(source: &[u8], target: &mut [u8], nan: u64, from: FloatOrder, to: FloatOrder) {
    let (source, rest) = source.as_chunks::<8>();
    let (target, target_rest) = target.as_chunks_mut::<8>();
    assert!(
        source.len() == target.len() && rest.is_empty() && target_rest.is_empty(),
        "both slices hold the same number of whole doubles"
    );
    for (source, target) in source.iter().zip(target) {
        let bits = from.read(*source);
        *target = to.write(if is_nan(bits) { nan } else { bits });
    }
}
