//! How a machine writes the numbers of a native file.

use kymo_machine::{ByteOrder, FloatOrder, Machine, Width, integer};

use super::structs::SLOT;
use crate::Value;
use crate::model::Slot;

/// What reads and writes the numbers of a file. The caller sees to it that they are within the bytes:
/// elsewhere zeros are read, and nothing is written.
pub(crate) trait Numbers: Copy {
    /// The number in a slot, a NaN where it is unknown.
    fn number_in(&self, slot: &[u8; SLOT]) -> f64;

    /// The bytes of a number. All NaNs are the one that the machine writes.
    fn number(&self, number: f64) -> [u8; SLOT];

    /// The count in a slot.
    fn count_in(&self, slot: &[u8; SLOT]) -> u64;

    /// Writes a count into a slot, of which it may leave something.
    fn count(&self, slot: &mut [u8; SLOT], count: u64);

    /// The `unsigned long` at a place.
    fn long_at(&self, image: &[u8], at: usize) -> u64;

    /// Writes a `long`, as C programs of the machine do: its low bits.
    fn long(&self, image: &mut [u8], at: usize, number: u64);

    /// The `time_t` at a place.
    fn time_at(&self, image: &[u8], at: usize) -> i64;

    /// Writes a `time_t`, its low bits.
    fn time(&self, image: &mut [u8], at: usize, seconds: i64);

    /// Where the microseconds of a time are, in bytes from its seconds: as the layout specifies, unless that
    /// is known anyway.
    #[inline]
    fn micros(&self, reported: usize) -> usize {
        reported
    }
}

/// How a machine writes numbers: looked up once, as each update writes many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coding {
    order: ByteOrder,
    floats: FloatOrder,
    long: Width,
    pub(crate) time: Width,
    /// The bytes of a value that is unknown.
    unknown: [u8; SLOT],
}

/// How it does that where all are of 64 bits and one byte order, as on most machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<const BIG: bool> {
    unknown: [u8; SLOT],
}

/// A coding, determined once for many numbers: by a byte of its own, which takes the least time.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum CodingKind {
    Little(Words<false>),
    Big(Words<true>),
    Any(Coding),
}

impl Coding {
    pub(super) fn of(machine: &Machine) -> Self {
        Self {
            order: machine.byte_order(),
            floats: machine.float_order(),
            long: machine.long(),
            time: machine.time(),
            unknown: machine.double_to_bytes(machine.file_nan()),
        }
    }

    /// The same, as what compilers make fast code of.
    pub(crate) fn kind(&self) -> CodingKind {
        let unknown = self.unknown;
        match (self.long, self.time, self.order, self.floats) {
            (Width::W64, Width::W64, ByteOrder::Little, FloatOrder::Little) => {
                CodingKind::Little(Words { unknown })
            }
            (Width::W64, Width::W64, ByteOrder::Big, FloatOrder::Big) => {
                CodingKind::Big(Words { unknown })
            }
            _ => CodingKind::Any(*self),
        }
    }

    /// Writes a slot. What an integer leaves of it stays.
    pub(super) fn slot(&self, slot: &mut [u8; SLOT], kind: Slot, bits: u64) {
        match kind {
            Slot::Value => *slot = self.value(Value::from_bits(bits)),
            Slot::Counter => self.count(slot, bits),
            Slot::History => *slot = bits.to_le_bytes(),
            Slot::Unused => {}
        }
    }

    /// The bytes of a value.
    pub(super) fn value(&self, value: Value) -> [u8; SLOT] {
        match value.is_unknown() {
            true => self.unknown,
            false => self.floats.write(value.to_bits()),
        }
    }

    fn integer(&self, image: &mut [u8], at: usize, width: Width, number: u64) {
        let written = integer::write(image, at, width, self.order, number);
        debug_assert!(written.is_some(), "the layout has room for its members");
    }
}

impl Numbers for Coding {
    #[inline]
    fn number_in(&self, slot: &[u8; SLOT]) -> f64 {
        f64::from_bits(self.floats.read(*slot))
    }

    #[inline]
    fn number(&self, number: f64) -> [u8; SLOT] {
        self.value(Value::from(number))
    }

    #[inline]
    fn count_in(&self, slot: &[u8; SLOT]) -> u64 {
        self.long_at(slot, 0)
    }

    #[inline]
    fn count(&self, slot: &mut [u8; SLOT], count: u64) {
        self.integer(slot, 0, self.long, count);
    }

    #[inline]
    fn long_at(&self, image: &[u8], at: usize) -> u64 {
        integer::read_uint(image, at, self.long, self.order).unwrap_or(0)
    }

    #[inline]
    fn long(&self, image: &mut [u8], at: usize, number: u64) {
        self.integer(image, at, self.long, number);
    }

    #[inline]
    fn time_at(&self, image: &[u8], at: usize) -> i64 {
        integer::read_sint(image, at, self.time, self.order).unwrap_or(0)
    }

    #[inline]
    fn time(&self, image: &mut [u8], at: usize, seconds: i64) {
        self.integer(image, at, self.time, seconds as u64);
    }
}

impl<const BIG: bool> Words<BIG> {
    #[inline]
    fn bits(bytes: [u8; SLOT]) -> u64 {
        match BIG {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        }
    }

    #[inline]
    fn word(bits: u64) -> [u8; SLOT] {
        match BIG {
            true => bits.to_be_bytes(),
            false => bits.to_le_bytes(),
        }
    }
}

impl<const BIG: bool> Numbers for Words<BIG> {
    #[inline]
    fn number_in(&self, slot: &[u8; SLOT]) -> f64 {
        f64::from_bits(Self::bits(*slot))
    }

    #[inline]
    fn number(&self, number: f64) -> [u8; SLOT] {
        match number.is_nan() {
            true => self.unknown,
            false => Self::word(number.to_bits()),
        }
    }

    #[inline]
    fn count_in(&self, slot: &[u8; SLOT]) -> u64 {
        Self::bits(*slot)
    }

    #[inline]
    fn count(&self, slot: &mut [u8; SLOT], count: u64) {
        *slot = Self::word(count);
    }

    #[inline]
    fn long_at(&self, image: &[u8], at: usize) -> u64 {
        let word = image.as_chunks().0.get(at / SLOT);
        word.map_or(0, |word| Self::bits(*word))
    }

    #[inline]
    fn long(&self, image: &mut [u8], at: usize, number: u64) {
        if let Some(word) = image.as_chunks_mut().0.get_mut(at / SLOT) {
            *word = Self::word(number);
        }
    }

    #[inline]
    fn time_at(&self, image: &[u8], at: usize) -> i64 {
        self.long_at(image, at) as i64
    }

    #[inline]
    fn time(&self, image: &mut [u8], at: usize, seconds: i64) {
        self.long(image, at, seconds as u64);
    }

    #[inline]
    fn micros(&self, reported: usize) -> usize {
        debug_assert_eq!(
            reported, SLOT,
            "a `long` follows a `time_t` of the same size"
        );
        SLOT
    }
}
