//! How a machine writes the numbers of a native file.

use kymo_machine::{ByteOrder, FloatOrder, Machine, Width, integer};

use super::structs::SLOT;
use crate::Value;
use crate::model::Slot;

/// What writes the numbers of a file.
pub(crate) trait Numbers: Copy {
    /// The bytes of a value.
    fn value(&self, value: Value) -> [u8; SLOT];

    /// Writes a count into a slot, of which it may leave something.
    fn count(&self, slot: &mut [u8; SLOT], count: u64);

    /// Writes a `long`, as C programs of the machine do: its low bits.
    fn long(&self, image: &mut [u8], at: usize, number: u64);

    /// Writes a `time_t` in the same way.
    fn time(&self, image: &mut [u8], at: usize, seconds: i64);
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

/// A coding, told apart once for many numbers.
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
    #[inline]
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

    fn integer(&self, image: &mut [u8], at: usize, width: Width, number: u64) {
        let written = integer::write(image, at, width, self.order, number);
        debug_assert!(written.is_some(), "the layout has room for its members");
    }
}

impl Numbers for Coding {
    #[inline]
    fn value(&self, value: Value) -> [u8; SLOT] {
        match value.is_unknown() {
            true => self.unknown,
            false => self.floats.write(value.to_bits()),
        }
    }

    #[inline]
    fn count(&self, slot: &mut [u8; SLOT], count: u64) {
        self.integer(slot, 0, self.long, count);
    }

    #[inline]
    fn long(&self, image: &mut [u8], at: usize, number: u64) {
        self.integer(image, at, self.long, number);
    }

    #[inline]
    fn time(&self, image: &mut [u8], at: usize, seconds: i64) {
        self.integer(image, at, self.time, seconds as u64);
    }
}

impl<const BIG: bool> Words<BIG> {
    #[inline]
    fn word(self, bits: u64) -> [u8; SLOT] {
        match BIG {
            true => bits.to_be_bytes(),
            false => bits.to_le_bytes(),
        }
    }
}

impl<const BIG: bool> Numbers for Words<BIG> {
    #[inline]
    fn value(&self, value: Value) -> [u8; SLOT] {
        match value.is_unknown() {
            true => self.unknown,
            false => self.word(value.to_bits()),
        }
    }

    #[inline]
    fn count(&self, slot: &mut [u8; SLOT], count: u64) {
        *slot = self.word(count);
    }

    #[inline]
    fn long(&self, image: &mut [u8], at: usize, number: u64) {
        if let Some(bytes) = image.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *bytes = self.word(number);
        }
    }

    #[inline]
    fn time(&self, image: &mut [u8], at: usize, seconds: i64) {
        self.long(image, at, seconds as u64);
    }
}
