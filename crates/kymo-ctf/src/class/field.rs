//! Classes of fields: what they look like in a packet, and what they are for.

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Flag, Labels, Scope};

/// What a field is for, beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Packet header: the magic number.
    PacketMagic,
    /// Packet header: the UUID of the metadata (an array of 16 integers, or a BLOB).
    MetadataUuid,
    /// Packet header: which stream class.
    StreamClassId,
    /// Packet header: which stream of the class.
    StreamId,
    /// Packet context (in RFC v1.1 this and all below are in the packet header): size of the
    /// packet, in bits, or in what the dialect [counts](super::Dialect::size_unit).
    PacketTotalLength,
    /// Packet context: size of the packet without the padding at its end, in the same.
    PacketContentLength,
    /// Packet context: time at the packet's end.
    PacketEndTimestamp,
    /// Packet context: events discarded so far.
    DiscardedEvents,
    /// Packet context: number of the packet in its stream.
    PacketSequenceNumber,
    /// Packet context and event header: time of the default clock. Its bits are the
    /// low ones of the clock.
    DefaultClockTimestamp,
    /// Event header: which event class. Where several fields have it, the last counts.
    EventClassId,
}

/// How a fixed number of bits lies in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitLayout {
    /// Size in bits, 1 to 64 (floating point numbers also 128, integers up to 4,096).
    pub bits: u32,
    /// Alignment in bits from the start of the packet: a power of two.
    pub align: u32,
    /// Byte order.
    pub order: ByteOrder,
    /// Whether the bits of the value are in the reverse of the order usual for the byte order.
    pub reversed: bool,
    /// Unit in bits that the field must not cross (RFC v1.1 §4.1.6 `gcc_bitfield`).
    pub unit: Option<u32>,
}

impl BitLayout {
    /// Layout of `bits` bits, aligned to `align` bits, as is usual for the byte order.
    pub fn new(bits: u32, align: u32, order: ByteOrder) -> Self {
        Self {
            bits,
            align,
            order,
            reversed: false,
            unit: None,
        }
    }
}

/// How an integer is shown and what it is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntegerStyle {
    /// Whether it is signed.
    pub signed: bool,
    /// The base in which it is shown.
    pub base: Base,
    /// Its labels; an enumeration has `Some`, even without a label.
    pub labels: Option<Arc<Labels>>,
    /// What it is for.
    pub roles: Vec<Role>,
}

/// How many elements or bytes a field has.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Always as many.
    Static(u64),
    /// The value of an earlier field.
    Dynamic(FieldRef),
    /// The value of an integer just before the first element (RFC v1.1 §4.2.3).
    Inline(Box<FieldClass>),
}

/// How the bytes of a text are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8, and ASCII as a part of it.
    #[default]
    Utf8,
    /// UTF-16, least significant byte first.
    Utf16Le,
    /// UTF-16, most significant byte first.
    Utf16Be,
    /// UTF-32, least significant byte first.
    Utf32Le,
    /// UTF-32, most significant byte first.
    Utf32Be,
}

/// A reference to an earlier field: a length, a selector.
///
/// A variant on the way may offer several fields, of which the one decoded last counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRef {
    /// The fields.
    pub targets: Vec<FieldPath>,
}

/// The way from the root of a scope to a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// The scope.
    pub scope: Scope,
    /// The steps from the scope's structure.
    pub steps: Vec<Step>,
}

/// A step from a field to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To the member of a structure, or the option of a variant, at this position.
    Child(usize),
    /// To the element of an array that is being decoded.
    Element,
    /// To what an optional holds.
    Content,
}

/// A class of fields.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldClass {
    /// Bits that are not a number.
    BitArray(BitLayout),
    /// Bits with names.
    BitMap {
        /// How it lies in a packet.
        layout: BitLayout,
        /// The names.
        flags: Arc<[Flag]>,
    },
    /// A truth value: not zero is true.
    Bool(BitLayout),
    /// An integer of a fixed size.
    Integer {
        /// How it lies in a packet.
        layout: BitLayout,
        /// How it is shown and what it is for.
        style: IntegerStyle,
    },
    /// An integer in LEB128 (CTF 2).
    VarInteger(IntegerStyle),
    /// A floating point number of IEEE 754.
    Float(BitLayout),
    /// Text that ends with a zero code unit.
    Text {
        /// Encoding.
        encoding: Encoding,
        /// Alignment in bits: 8, or more where the metadata says.
        align: u32,
    },
    /// Text of a known number of bytes, which ends earlier at a zero code unit.
    SizedText {
        /// Number of bytes.
        length: Length,
        /// Encoding.
        encoding: Encoding,
        /// Alignment in bits: 8, or more where the metadata says.
        align: u32,
    },
    /// Bytes.
    Blob {
        /// Number of bytes.
        length: Length,
        /// IANA media type.
        media_type: String,
        /// What it is for.
        roles: Vec<Role>,
    },
    /// Named members.
    Struct {
        /// The members.
        members: Vec<Member>,
        /// Alignment in bits, at least; a power of two.
        min_align: u32,
    },
    /// Elements of one class.
    Array {
        /// Class of the elements.
        element: Box<FieldClass>,
        /// Number of the elements.
        length: Length,
        /// Alignment in bits, at least; a power of two.
        min_align: u32,
        /// What it is for.
        roles: Vec<Role>,
    },
    /// Something or nothing.
    Optional {
        /// What it holds.
        content: Box<FieldClass>,
        /// The field that says whether there is something: a truth value or an integer.
        selector: FieldRef,
        /// The selectors for which there is something.
        when: Selector,
    },
    /// One of several.
    Variant {
        /// The options.
        options: Vec<VariantOption>,
        /// The field that selects one of them.
        selector: FieldRef,
    },
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Name.
    pub name: Arc<str>,
    /// Class.
    pub class: FieldClass,
    /// Attributes as `(name space, JSON text)`, which decoding ignores.
    pub attributes: Vec<(String, String)>,
}

impl Member {
    /// A member without attributes.
    pub fn new(name: impl Into<Arc<str>>, class: FieldClass) -> Self {
        Self {
            name: name.into(),
            class,
            attributes: Vec::new(),
        }
    }
}

/// An option of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantOption {
    /// Name.
    pub name: Option<Arc<str>>,
    /// Class.
    pub class: FieldClass,
    /// The selectors that select it.
    pub when: Selector,
}

/// A set of values of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// True, or any number but zero.
    True,
    /// Unsigned numbers in these inclusive ranges.
    Unsigned(Vec<(u64, u64)>),
    /// Signed numbers in these inclusive ranges.
    Signed(Vec<(i64, i64)>),
}

impl Selector {
    /// Whether a value (of a signed one: its bits) is in the set.
    pub fn contains(&self, bits: u64) -> bool {
        match self {
            Self::True => bits != 0,
            Self::Unsigned(ranges) => ranges
                .iter()
                .any(|&(low, high)| low <= bits && bits <= high),
            Self::Signed(ranges) => {
                let value = bits as i64;
                ranges
                    .iter()
                    .any(|&(low, high)| low <= value && value <= high)
            }
        }
    }
}

impl FieldClass {
    /// An unsigned integer.
    pub fn unsigned(layout: BitLayout, roles: &[Role]) -> Self {
        Self::Integer {
            layout,
            style: IntegerStyle {
                roles: roles.to_vec(),
                ..IntegerStyle::default()
            },
        }
    }

    /// A structure that is as aligned as its members.
    pub fn structure(members: Vec<Member>) -> Self {
        Self::Struct {
            members,
            min_align: 1,
        }
    }

    /// What it is for itself, beside its value.
    pub fn roles(&self) -> &[Role] {
        match self {
            Self::Integer { style, .. } | Self::VarInteger(style) => &style.roles,
            Self::Blob { roles, .. } | Self::Array { roles, .. } => roles,
            _ => &[],
        }
    }

    /// How it lies in a packet, where it is a fixed number of bits.
    pub fn layout(&self) -> Option<&BitLayout> {
        match self {
            Self::BitArray(layout)
            | Self::BitMap { layout, .. }
            | Self::Bool(layout)
            | Self::Integer { layout, .. }
            | Self::Float(layout) => Some(layout),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(crate) fn layout_mut(&mut self) -> Option<&mut BitLayout> {
        match self {
            Self::BitArray(layout)
            | Self::BitMap { layout, .. }
            | Self::Bool(layout)
            | Self::Integer { layout, .. }
            | Self::Float(layout) => Some(layout),
            _ => None,
        }
    }

    /// The class at the end of a way through its parts; `None` where the way leads nowhere.
    pub fn at(&self, steps: &[Step]) -> Option<&Self> {
        let mut class = self;
        for step in steps {
            class = match (class, *step) {
                (Self::Struct { members, .. }, Step::Child(at)) => &members.get(at)?.class,
                (Self::Variant { options, .. }, Step::Child(at)) => &options.get(at)?.class,
                (Self::Array { element, .. }, Step::Element) => element,
                (Self::Optional { content, .. }, Step::Content) => content,
                _ => return None,
            };
        }
        Some(class)
    }

    /// The classes of its parts: members, options, an array's element, an optional's content.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Struct { members, .. } => members.iter().map(|member| &member.class).collect(),
            Self::Variant { options, .. } => options.iter().map(|option| &option.class).collect(),
            Self::Array { element, .. } => vec![element],
            Self::Optional { content, .. } => vec![content],
            _ => Vec::new(),
        }
    }

    /// All classes within it, itself first, with how many are around each: in the order in which
    /// they are decoded, and however deep they lie.
    pub fn walk(&self) -> impl Iterator<Item = (usize, &Self)> {
        let mut left = vec![(0, self)];
        std::iter::from_fn(move || {
            let (around, class) = left.pop()?;
            let parts = class.parts().into_iter().rev();
            left.extend(parts.map(|part| (around + 1, part)));
            Some((around, class))
        })
    }

    /// Whether it, or a part of it, has a role.
    pub fn has_role(&self, role: Role) -> bool {
        self.walk().any(|(_, class)| class.roles().contains(&role))
    }

    /// Alignment in bits: of a compound the largest of its own and its parts'; of an
    /// optional or variant 1, since what it holds aligns itself once selected.
    pub fn align(&self) -> u32 {
        let mut align = 1;
        let mut left = Vec::new();
        let mut next = Some(self);
        while let Some(class) = next {
            align = align.max(match class {
                Self::BitArray(layout)
                | Self::BitMap { layout, .. }
                | Self::Bool(layout)
                | Self::Integer { layout, .. }
                | Self::Float(layout) => layout.align,
                Self::VarInteger(_) | Self::Blob { .. } => 8,
                Self::Text { align, .. } | Self::SizedText { align, .. } => *align,
                Self::Struct { members, min_align } => {
                    left.extend(members.iter().map(|member| &member.class));
                    *min_align
                }
                Self::Array {
                    element,
                    length,
                    min_align,
                    ..
                } => {
                    // With the length inline, the elements align themselves after it.
                    if let Length::Inline(length) = length {
                        left.push(&**length);
                    }
                    left.push(&**element);
                    *min_align
                }
                Self::Optional { .. } | Self::Variant { .. } => 1,
            });
            next = left.pop();
        }
        align
    }

    /// Alignment in bits of its first bit. An array begins with its length where that is inline,
    /// or with its first element: what comes later aligns itself.
    pub fn begin_align(&self) -> u32 {
        let mut class = self;
        let mut align = 1;
        while let Self::Array {
            element,
            length,
            min_align,
            ..
        } = class
        {
            if let Length::Inline(length) = length {
                return align.max(length.align());
            }
            align = align.max(*min_align);
            class = element;
        }
        align.max(class.align())
    }
}
