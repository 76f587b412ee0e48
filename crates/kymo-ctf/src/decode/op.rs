//! The instructions of a decode program.
//!
//! A program is a flat list. An instruction that holds others (array, optional, variant)
//! is followed by them and says how many there are. `align` is always the binary
//! logarithm of an alignment in bits.

use kymo_machine::ByteOrder;
use kymo_model::FieldId;

use super::choice::Choice;
use super::lead::Lead;
use crate::class::{Encoding, Role};

/// A fixed number of bits that is not a whole number of aligned bytes, or is otherwise
/// out of the ordinary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BitsOp {
    pub field: FieldId,
    pub bits: u8,
    pub align: u8,
    pub order: ByteOrder,
    pub reversed: bool,
    /// Binary logarithm plus one of the unit that the field must not cross; 0 for none.
    pub unit: u8,
    pub shown: Shown,
}

/// An integer of more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WideOp {
    pub field: FieldId,
    pub bits: u16,
    pub align: u8,
    pub order: ByteOrder,
    pub reversed: bool,
    pub unit: u8,
    pub signed: bool,
}

/// What a fixed number of bits is shown as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shown {
    Uint,
    Sint,
    Float,
    Bool,
    Bits,
    /// Not at all: the length of the array that follows.
    Count,
}

/// A whole number of bytes, aligned to bytes at least: the ordinary case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BytesOp {
    pub field: FieldId,
    /// The alignment in bits less one.
    pub mask: u32,
}

impl BytesOp {
    /// A field that is aligned to `1 << align` bits, or to a byte.
    pub(crate) fn new(field: FieldId, align: u8) -> Self {
        let mask = (1 << align.max(3)) - 1;
        Self { field, mask }
    }

    /// Binary logarithm of its alignment.
    pub(crate) fn align(&self) -> u8 {
        self.mask.trailing_ones() as u8
    }
}

/// Where the number of elements or bytes comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Count {
    Static(u64),
    /// A slot, into which an earlier instruction saved it.
    Slot(u32),
    /// The number read last.
    Last,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    U8(BytesOp),
    U16Le(BytesOp),
    U16Be(BytesOp),
    U32Le(BytesOp),
    U32Be(BytesOp),
    U64Le(BytesOp),
    U64Be(BytesOp),
    S8(BytesOp),
    S16Le(BytesOp),
    S16Be(BytesOp),
    S32Le(BytesOp),
    S32Be(BytesOp),
    S64Le(BytesOp),
    S64Be(BytesOp),
    F32Le(BytesOp),
    F32Be(BytesOp),
    F64Le(BytesOp),
    F64Be(BytesOp),
    /// Any other fixed number of up to 64 bits.
    Bits(BitsOp),
    /// A floating point number of 128 bits.
    F128(BitsOp),
    /// An integer of more than 64 bits.
    Wide(WideOp),
    /// LEB128.
    VarUint(BytesOp),
    /// Signed LEB128.
    VarSint(BytesOp),
    /// Text up to a zero byte.
    Text(BytesOp),
    /// Text up to a zero code unit of another encoding than UTF-8.
    WideText {
        at: BytesOp,
        encoding: Encoding,
    },
    /// Text of a number of bytes.
    SizedText {
        at: BytesOp,
        encoding: Encoding,
        length: Count,
    },
    Blob {
        at: BytesOp,
        length: Count,
    },
    BeginStruct {
        field: FieldId,
        align: u8,
    },
    EndStruct {
        field: FieldId,
    },
    Array {
        field: FieldId,
        align: u8,
        count: Count,
        /// Instructions of one element.
        body: u32,
    },
    Optional {
        field: FieldId,
        /// Position in the program's tables of options.
        table: u32,
        slot: u32,
        body: u32,
    },
    Variant {
        field: FieldId,
        /// Position in the program's tables of options.
        table: u32,
        slot: u32,
        /// Instructions of all options together.
        body: u32,
    },
    /// Saves the number read last.
    Save {
        slot: u32,
    },
    /// Forgets what an earlier event, or element of an array, saved.
    Clear {
        slot: u32,
    },
    /// The number read last is the event class.
    EventClassId,
    /// The number read last is the low part of the clock. `bits` is 0 where the number's
    /// size varies.
    Clock {
        bits: u8,
    },
    /// The number read last has a role in the packet header or context.
    Role {
        role: Role,
        bits: u8,
    },
    /// The 16 bytes read last are the UUID of the metadata.
    Uuid,
    /// The array, optional or variant that follows, with the length before it, is run without
    /// recursion.
    Deep,
    /// Moves on over padding; in programs that only find the end, over fixed bits.
    Skip {
        align: u8,
        bits: u64,
    },
    /// In programs that only find the end: moves on over elements of a fixed size.
    SkipArray {
        align: u8,
        count: Count,
        /// Size of an element.
        bits: u32,
        /// From one element to the next.
        stride: u32,
    },
}

/// The options of a variant, or the one of an optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub choice: Choice,
    pub entries: Vec<OptionEntry>,
}

/// Where the instructions of an option are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OptionEntry {
    /// From the instruction after the variant's.
    pub start: u32,
    pub end: u32,
}

/// A list of instructions and the tables they refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Program {
    pub ops: Vec<Op>,
    pub tables: Vec<Options>,
    /// Its first instructions, where they need not be run one by one.
    pub lead: Lead,
}

impl Op {
    /// How many instructions it holds, which follow it.
    pub(crate) fn body(&self) -> usize {
        match *self {
            Self::Array { body, .. } | Self::Optional { body, .. } | Self::Variant { body, .. } => {
                body as usize
            }
            _ => 0,
        }
    }

    /// How many instructions at the beginning of a list are a compound, with the length before it.
    pub(crate) fn whole(ops: &[Self]) -> usize {
        let compound = ops.iter().position(Self::is_compound);
        compound.map_or(0, |at| at + 1 + ops[at].body())
    }

    /// Whether it reads a number of whole bytes.
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self,
            Self::U8(_)
                | Self::U16Le(_)
                | Self::U16Be(_)
                | Self::U32Le(_)
                | Self::U32Be(_)
                | Self::U64Le(_)
                | Self::U64Be(_)
                | Self::S8(_)
                | Self::S16Le(_)
                | Self::S16Be(_)
                | Self::S32Le(_)
                | Self::S32Be(_)
                | Self::S64Le(_)
                | Self::S64Be(_)
                | Self::F32Le(_)
                | Self::F32Be(_)
                | Self::F64Le(_)
                | Self::F64Be(_)
        )
    }

    /// Whether running it is running others.
    pub(crate) fn is_compound(&self) -> bool {
        matches!(
            self,
            Self::Array { .. } | Self::Optional { .. } | Self::Variant { .. }
        )
    }

    /// Whether the packet says its stream class here.
    pub(crate) fn names_stream_class(&self) -> bool {
        matches!(
            self,
            Self::Role {
                role: Role::StreamClassId,
                ..
            }
        )
    }
}
