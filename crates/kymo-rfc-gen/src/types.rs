//! Types and values, and how values lie in a packet (section 4).

use crate::bits::BitWriter;

/// The byte order of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// How the machine that traced aligns basic types (section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// On bytes.
    Packed,
    /// On the lesser of their size and 32 bits.
    Natural32,
    /// On the lesser of their size and 64 bits.
    Natural64,
}

impl Alignment {
    /// Alignment in bits of an integer of `size` bits, which is 8, 16, 32 or 64.
    #[must_use]
    pub fn of(self, size: u32) -> u32 {
        match self {
            Self::Packed => 8,
            Self::Natural32 => size.min(32),
            Self::Natural64 => size.min(64),
        }
    }
}

/// The attribute `byte_order` (section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of the machine; the metadata says nothing, or `native`.
    Native,
    /// Big endian, called `network`.
    Network,
    /// Big endian, called `be`.
    Be,
    /// Little endian, `le`.
    Le,
}

impl Order {
    /// The order meant on a machine of order `native`.
    #[must_use]
    pub fn on(self, native: Endian) -> Endian {
        match self {
            Self::Native => native,
            Self::Network | Self::Be => Endian::Big,
            Self::Le => Endian::Little,
        }
    }
}

/// A concrete integer (section 4.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// Size in bits, 1 to 64.
    pub size: u32,
    /// Whether it is in two's complement.
    pub signed: bool,
    /// Byte order.
    pub order: Order,
    /// Alignment in bits. If the metadata does not specify it, it is 8 if the size is a number of
    /// bytes, and else 1.
    pub align: Option<u32>,
}

impl Integer {
    /// `uintN_t` as the metadata may use it without declaring it: 8, 16, 32 and 64 bits are
    /// aligned as the machine likes it, all other sizes follow on the next bit.
    #[must_use]
    pub fn predefined(size: u32, signed: bool, alignment: Alignment) -> Self {
        let align = match size {
            8 | 16 | 32 | 64 => alignment.of(size),
            _ => 1,
        };
        Self {
            size,
            signed,
            order: Order::Native,
            align: Some(align),
        }
    }

    /// Alignment in bits.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        let unsaid = if self.size.is_multiple_of(8) { 8 } else { 1 };
        self.align.unwrap_or(unsaid)
    }
}

/// How the bytes of a string are to be understood (section 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `UTF8`, the default.
    Utf8,
    /// `ASCII`.
    Ascii,
}

/// A named member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, unique in its structure.
    pub name: String,
    /// Type.
    pub ty: Type,
}

/// A concrete type: all attributes inherited and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `integer`
    Integer(Integer),
    /// `gcc_bitfield`: does not cross a multiple of its unit (section 4.1.6).
    Bitfield {
        /// The bit field itself.
        integer: Integer,
        /// Size of the unit in bits.
        unit_size: u32,
    },
    /// `enum`
    Enumeration {
        /// What is stored.
        integer: Integer,
        /// Values and what they are called; no value twice.
        map: Vec<(i128, String)>,
    },
    /// `struct`
    Struct(Vec<Field>),
    /// `array`
    Array {
        /// Number of elements.
        length: u32,
        /// Type of each.
        element: Box<Type>,
    },
    /// `sequence`
    Sequence {
        /// The number of elements lies before them.
        length: Integer,
        /// Type of each.
        element: Box<Type>,
    },
    /// `string`
    Text(Encoding),
}

impl Type {
    /// Where it may begin, in bits.
    ///
    /// Sequences begin with their length. An array begins where an element may, even if it has
    /// none: so does C lay out a member `uint32_t data[0]`.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        match self {
            Self::Integer(integer)
            | Self::Bitfield { integer, .. }
            | Self::Enumeration { integer, .. }
            | Self::Sequence {
                length: integer, ..
            } => integer.alignment(),
            Self::Struct(_) => self.largest_alignment(),
            Self::Array { element, .. } => element.alignment(),
            Self::Text(_) => 8,
        }
    }

    /// The largest alignment of the basic types in it, which a structure around it takes
    /// (section 4.2.1), in bits.
    ///
    /// A GNU/C bit field counts with its unit: section 4.1.6 aligns its example on `short`,
    /// though both fields say `align = 1`.
    #[must_use]
    pub fn largest_alignment(&self) -> u32 {
        match self {
            Self::Integer(integer) | Self::Enumeration { integer, .. } => integer.alignment(),
            Self::Bitfield { integer, unit_size } => integer.alignment().max(*unit_size),
            Self::Struct(fields) => fields
                .iter()
                .map(|field| field.ty.largest_alignment())
                .max()
                .unwrap_or(1),
            Self::Array { element, .. } => element.largest_alignment(),
            Self::Sequence { length, element } => {
                length.alignment().max(element.largest_alignment())
            }
            Self::Text(_) => 8,
        }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer or GNU/C bit field that is not signed.
    Unsigned(u64),
    /// A signed one.
    Signed(i64),
    /// An enumeration.
    Label {
        /// The value stored.
        value: i128,
        /// What the map calls it.
        label: Option<String>,
    },
    /// A string without its NUL.
    Text(Vec<u8>),
    /// Members in order.
    Struct(Vec<(String, Value)>),
    /// Elements of an array or a sequence.
    Array(Vec<Value>),
}

/// Writes `value`, which has type `ty`, with the padding before it.
///
/// # Panics
///
/// If the value is not one of this type.
pub(crate) fn write_value(bits: &mut BitWriter, ty: &Type, value: &Value, native: Endian) {
    bits.align(ty.alignment());
    match (ty, value) {
        (Type::Integer(integer), value) => write_integer(bits, integer, value, native),
        (Type::Bitfield { integer, unit_size }, value) => {
            let in_unit = bits.position() % u64::from(*unit_size);
            if in_unit + u64::from(integer.size) > u64::from(*unit_size) {
                bits.align(*unit_size);
            }
            write_integer(bits, integer, value, native);
        }
        (Type::Enumeration { integer, .. }, Value::Label { value, .. }) => {
            let value = if integer.signed {
                Value::Signed(i64::try_from(*value).expect("a signed enumeration's value"))
            } else {
                Value::Unsigned(u64::try_from(*value).expect("an unsigned enumeration's value"))
            };
            write_integer(bits, integer, &value, native);
        }
        (Type::Struct(fields), Value::Struct(values)) => {
            assert_eq!(fields.len(), values.len(), "as many values as fields");
            for (field, (name, value)) in fields.iter().zip(values) {
                assert_eq!(&field.name, name, "values in the order of the fields");
                write_value(bits, &field.ty, value, native);
            }
        }
        (Type::Array { length, element }, Value::Array(values)) => {
            assert_eq!(usize::try_from(*length), Ok(values.len()), "array length");
            for value in values {
                write_value(bits, element, value, native);
            }
        }
        (Type::Sequence { length, element }, Value::Array(values)) => {
            let count = u64::try_from(values.len()).expect("usize is at most 64 bits");
            write_integer(bits, length, &Value::Unsigned(count), native);
            bits.align(element.alignment());
            for value in values {
                write_value(bits, element, value, native);
            }
        }
        (Type::Text(_), Value::Text(text)) => {
            assert!(!text.contains(&0), "a string holds no NUL");
            bits.write_bytes(text);
            bits.write_bytes(&[0]);
        }
        (ty, value) => panic!("{value:?} is not of type {ty:?}"),
    }
}

fn write_integer(bits: &mut BitWriter, integer: &Integer, value: &Value, native: Endian) {
    let unused = 64 - integer.size;
    let raw = match *value {
        Value::Unsigned(value) => {
            assert!(!integer.signed, "an unsigned value in a signed integer");
            assert_eq!(value << unused >> unused, value, "fits its size");
            value
        }
        Value::Signed(value) => {
            assert!(integer.signed, "a signed value in an unsigned integer");
            assert_eq!(value << unused >> unused, value, "fits its size");
            value.cast_unsigned()
        }
        ref other => panic!("{other:?} is no integer"),
    };
    bits.write(raw, integer.size, integer.order.on(native));
}
