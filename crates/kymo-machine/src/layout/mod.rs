//! Where the members of C structs are, computed from their description and the machine.
//!
//! A member begins at the next multiple of its alignment; the size of a struct is a multiple
//! of its own alignment, which is the largest of its members'. What the alignment of a scalar
//! is, each machine has its own mind about (see [`Machine::double_align`]). AIX and Darwin
//! moreover align a struct that begins with a double to 8 bytes, though they align doubles
//! in other places to 4.

mod lexer;
mod parse;

use std::borrow::Cow;
use std::fmt;

pub use parse::{ParseError, parse};

use crate::{Machine, Width};

/// A type of C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CType {
    /// `char`, of which strings are made. Signs do not matter to it.
    Char,
    /// An integer of the same size on all machines: `int32_t`, `int`, `unsigned short`,
    /// `long long`.
    Int {
        /// Its size.
        width: Width,
        /// Whether it can be negative.
        signed: bool,
    },
    /// `long` and `unsigned long`.
    Long {
        /// Whether it can be negative.
        signed: bool,
    },
    /// `size_t`, `intptr_t` and their relatives.
    Size {
        /// Whether it can be negative.
        signed: bool,
    },
    /// `time_t`.
    Time,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// A pointer to anything.
    Pointer,
    /// An enumeration, which is an `int`: names and values.
    Enum(Vec<(Cow<'static, str>, i64)>),
    /// An array.
    Array {
        /// The type of each element.
        element: Box<CType>,
        /// How many there are.
        count: u64,
    },
    /// A struct or a union.
    Struct(Struct),
}

impl CType {
    /// `int` and `int32_t`.
    pub const INT: Self = Self::Int {
        width: Width::W32,
        signed: true,
    };
    /// `unsigned int` and `uint32_t`.
    pub const UINT: Self = Self::Int {
        width: Width::W32,
        signed: false,
    };
    /// `unsigned long long` and `uint64_t`.
    pub const UINT64: Self = Self::Int {
        width: Width::W64,
        signed: false,
    };
    /// `long`.
    pub const LONG: Self = Self::Long { signed: true };
    /// `unsigned long`.
    pub const ULONG: Self = Self::Long { signed: false };

    /// An array of `count` elements.
    pub fn array(element: Self, count: u64) -> Self {
        Self::Array {
            element: Box::new(element),
            count,
        }
    }
}

/// The description of a struct or a union: what its members are, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name; empty where it has none.
    pub name: Cow<'static, str>,
    /// Whether all members begin where it begins.
    pub is_union: bool,
    /// The members.
    pub members: Vec<Member>,
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it is.
    pub ctype: CType,
}

impl Struct {
    /// A struct without members.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            is_union: false,
            members: Vec::new(),
        }
    }

    /// A union without members.
    pub fn union(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            is_union: true,
            ..Self::new(name)
        }
    }

    /// Adds a member.
    #[must_use]
    pub fn member(mut self, name: impl Into<Cow<'static, str>>, ctype: CType) -> Self {
        self.members.push(Member {
            name: name.into(),
            ctype,
        });
        self
    }
}

/// Where everything in a struct is on some machine. All numbers are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The size of the whole.
    pub size: u64,
    /// The whole begins at a multiple of this.
    pub align: u64,
    /// The members, as many and in the same order as in the description.
    pub members: Vec<Place>,
    /// Unused bytes behind the last member; in a union, behind the largest one.
    pub padding: u64,
}

/// Where a member of a struct is. All numbers are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the member.
    pub name: Cow<'static, str>,
    /// Where it begins, from the beginning of the struct.
    pub offset: u64,
    /// Its size; of an array, that of all elements.
    pub size: u64,
    /// It begins at a multiple of this.
    pub align: u64,
    /// Unused bytes before it.
    pub padding: u64,
    /// The layout of a struct, or of each of the structs in an array.
    pub nested: Option<Layout>,
}

/// A struct whose size does not fit in 63 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The member with which it becomes too large.
    pub member: Cow<'static, str>,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = &self.member;
        write!(f, "`{member}` makes the struct larger than 2^63 - 1 bytes")
    }
}

impl std::error::Error for TooLarge {}

/// No struct is larger, so that nothing overflows.
const LARGEST: u64 = i64::MAX as u64;

impl Layout {
    /// The layout of a struct on a machine.
    ///
    /// # Errors
    ///
    /// When the size does not fit in 63 bits.
    pub fn of(description: &Struct, machine: &Machine) -> Result<Self, TooLarge> {
        let mut layout = Self {
            size: 0,
            align: u64::from(machine.alignment.least_struct),
            members: Vec::with_capacity(description.members.len()),
            padding: 0,
        };
        // Where the last member, or the largest of a union, ends.
        let mut end = 0;
        for member in &description.members {
            let too_large = || TooLarge {
                member: member.name.clone(),
            };
            let ctype = Measured::of(&member.ctype, machine)?.ok_or_else(too_large)?;
            let before = if description.is_union { 0 } else { end };
            let offset = round_up(before, ctype.align).ok_or_else(too_large)?;
            let member_end = sum(offset, ctype.size).ok_or_else(too_large)?;
            end = end.max(member_end);
            layout.align = layout.align.max(ctype.align);
            if layout.members.is_empty()
                && machine.alignment.first_double
                && is_double(&member.ctype)
            {
                layout.align = layout.align.max(8);
            }
            layout.size = round_up(end, layout.align).ok_or_else(too_large)?;
            layout.members.push(Place {
                name: member.name.clone(),
                offset,
                size: ctype.size,
                align: ctype.align,
                padding: offset - before,
                nested: ctype.nested,
            });
        }
        layout.padding = layout.size - end;
        Ok(layout)
    }

    /// The place of the member of that name.
    pub fn member(&self, name: &str) -> Option<&Place> {
        self.members.iter().find(|place| place.name == name)
    }
}

/// Size and alignment of a type, in bytes.
struct Measured {
    size: u64,
    align: u64,
    nested: Option<Layout>,
}

impl Measured {
    /// `None` where the size does not fit.
    fn of(ctype: &CType, machine: &Machine) -> Result<Option<Self>, TooLarge> {
        Ok(match ctype {
            CType::Array { element, count } => {
                let Some(element) = Self::of(element, machine)? else {
                    return Ok(None);
                };
                element
                    .size
                    .checked_mul(*count)
                    .filter(|&size| size <= LARGEST)
                    .map(|size| Self { size, ..element })
            }
            CType::Struct(description) => {
                let layout = Layout::of(description, machine)?;
                Some(Self {
                    size: layout.size,
                    align: layout.align,
                    nested: Some(layout),
                })
            }
            scalar => Some(Self {
                size: machine.scalar_width(scalar).bytes() as u64,
                align: machine.scalar_align(scalar),
                nested: None,
            }),
        })
    }
}

impl Machine {
    /// The size of a type that is neither an array nor a struct.
    pub(crate) fn scalar_width(&self, ctype: &CType) -> Width {
        match ctype {
            CType::Char | CType::Array { .. } | CType::Struct(_) => Width::W8,
            CType::Int { width, .. } => *width,
            CType::Long { .. } => self.long(),
            CType::Time => self.time(),
            CType::Size { .. } | CType::Pointer => self.pointer(),
            CType::Float | CType::Enum(_) => Width::W32,
            CType::Double => Width::W64,
        }
    }

    /// The alignment of a type that is neither an array nor a struct.
    pub(crate) fn scalar_align(&self, ctype: &CType) -> u64 {
        match ctype {
            CType::Double => self.double_align(),
            scalar => self.integer_align(self.scalar_width(scalar)),
        }
    }
}

fn is_double(ctype: &CType) -> bool {
    match ctype {
        CType::Double => true,
        CType::Array { element, .. } => is_double(element),
        _ => false,
    }
}

/// The next multiple of a power of two, if that is not too large.
fn round_up(value: u64, align: u64) -> Option<u64> {
    value
        .checked_next_multiple_of(align)
        .filter(|&size| size <= LARGEST)
}

fn sum(one: u64, other: u64) -> Option<u64> {
    one.checked_add(other).filter(|&size| size <= LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(description: &Struct, machine: &str) -> Layout {
        Layout::of(description, Machine::find(machine).unwrap()).unwrap()
    }

    #[test]
    fn padding_is_reported() {
        let pair = Struct::new("pair")
            .member("c", CType::Char)
            .member("d", CType::Double);
        let outer = Struct::new("outer")
            .member("i", CType::INT)
            .member("pairs", CType::array(CType::Struct(pair.clone()), 3))
            .member("last", CType::Char);
        let layout = layout(&outer, "x86_64");
        let [i, pairs, last] = &layout.members[..] else {
            panic!("{layout:?}");
        };
        assert_eq!((i.offset, i.size, i.padding), (0, 4, 0));
        assert_eq!((pairs.offset, pairs.size, pairs.padding), (8, 48, 4));
        assert_eq!((last.offset, layout.padding, layout.size), (56, 7, 64));
        let nested = pairs.nested.as_ref().unwrap();
        assert_eq!(nested, &self::layout(&pair, "x86_64"));
        assert_eq!((nested.size, nested.members[1].padding), (16, 7));
    }

    #[test]
    fn a_union_has_all_members_at_its_beginning() {
        let union = Struct::union("u")
            .member("five", CType::array(CType::Char, 5))
            .member("l", CType::LONG);
        let layout = layout(&union, "x86");
        assert!(layout.members.iter().all(|place| place.offset == 0));
        assert_eq!((layout.size, layout.align, layout.padding), (8, 4, 3));
    }

    #[test]
    fn power_aligns_a_struct_that_begins_with_a_double() {
        let first = Struct::new("first")
            .member("d", CType::array(CType::Double, 1))
            .member("c", CType::Char);
        let second = Struct::new("second")
            .member("c", CType::Char)
            .member("d", CType::Double);
        for (machine, sizes) in [
            ("aix-ppc", (16, 12)),
            ("darwin-ppc", (16, 12)),
            ("x86", (12, 12)),
            ("ppc", (16, 16)),
        ] {
            let found = (layout(&first, machine).size, layout(&second, machine).size);
            assert_eq!(found, sizes, "{machine}");
        }
    }

    #[test]
    fn sizes_do_not_overflow() {
        let machine = Machine::find("x86_64").unwrap();
        let bytes = |count| CType::array(CType::Char, count);
        let most = Struct::new("s").member("most", bytes(LARGEST));
        assert_eq!(Layout::of(&most, machine).unwrap().size, LARGEST);
        for too_large in [
            most.clone().member("more", CType::Char),
            Struct::new("s").member("more", bytes(LARGEST + 1)),
            Struct::new("s").member("more", CType::array(bytes(u64::MAX), u64::MAX)),
            Struct::new("s").member("more", CType::array(CType::Struct(most.clone()), 2)),
            Struct::new("s")
                .member("c", bytes(LARGEST - 6))
                .member("more", CType::INT),
        ] {
            let error = Layout::of(&too_large, machine).unwrap_err();
            assert_eq!(error.member, "more");
        }
        let none = Struct::new("s").member("none", bytes(0));
        assert_eq!(Layout::of(&none, machine).unwrap().size, 0);
    }
}
