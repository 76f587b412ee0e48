//! What the fields of an event are: names, kinds, how they are shown.

use std::sync::Arc;

/// A field within one [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub u32);

impl FieldId {
    /// Position in [`Schema::fields`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The parts of a packet and of an event that hold fields, in the order of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// What identifies a packet.
    PacketHeader,
    /// What is true for a whole packet: sizes, times, CPU.
    PacketContext,
    /// What identifies an event: class and time.
    EventHeader,
    /// What every event of a stream carries.
    CommonContext,
    /// What every event of one class carries beside its payload.
    SpecificContext,
    /// What the event says.
    Payload,
}

impl Scope {
    /// All scopes in the order of decoding.
    pub const ALL: [Self; 6] = [
        Self::PacketHeader,
        Self::PacketContext,
        Self::EventHeader,
        Self::CommonContext,
        Self::SpecificContext,
        Self::Payload,
    ];

    /// Its name in the paths of fields, in filters and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PacketHeader => "packet_header",
            Self::PacketContext => "packet_context",
            Self::EventHeader => "event_header",
            Self::CommonContext => "common_context",
            Self::SpecificContext => "specific_context",
            Self::Payload => "payload",
        }
    }
}

/// The number base in which an integer is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// Base 2.
    Binary,
    /// Base 8.
    Octal,
    /// Base 10.
    #[default]
    Decimal,
    /// Base 16.
    Hexadecimal,
}

/// A label and the values it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The label.
    pub label: Arc<str>,
    /// Inclusive ranges, as bits: those of a signed type are two's complement in 64 bits.
    pub ranges: Vec<(u64, u64)>,
}

/// The labels of an enumeration, or of an integer with mappings, in the order they were declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    signed: bool,
    mappings: Vec<Mapping>,
}

impl Labels {
    /// Labels of a signed or unsigned integer.
    pub fn new(signed: bool, mappings: Vec<Mapping>) -> Self {
        Self { signed, mappings }
    }

    /// Whether the ranges are of signed numbers.
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// All mappings in the order they were declared.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// The labels of a value (of a signed one: its bits), in the order they were declared.
    pub fn of(&self, bits: u64) -> impl Iterator<Item = &str> {
        self.positions(bits)
            .map(|position| &*self.mappings[position].label)
    }

    /// The positions of the same among the [mappings](Self::mappings).
    pub fn positions(&self, bits: u64) -> impl Iterator<Item = usize> {
        // Flipping the sign bit makes the order of signed numbers that of unsigned ones.
        let flip = u64::from(self.signed) << 63;
        let key = bits ^ flip;
        let has = move |mapping: &Mapping| {
            let mut ranges = mapping.ranges.iter();
            ranges.any(|&(low, high)| low ^ flip <= key && key <= high ^ flip)
        };
        let mappings = self.mappings.iter().enumerate();
        mappings
            .filter(move |(_, mapping)| has(mapping))
            .map(|(position, _)| position)
    }
}

/// A named set of bits of a bit map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Name of the flag.
    pub name: Arc<str>,
    /// Inclusive ranges of bit numbers; bit 0 is the least significant one. The flag is
    /// set when any of these bits is.
    pub ranges: Vec<(u64, u64)>,
}

impl Flag {
    /// Its bits, as far as they are among the lowest 64.
    pub fn bits(&self) -> u64 {
        self.ranges
            .iter()
            .filter(|&&(low, high)| low <= high && low < 64)
            .fold(0, |bits, &(low, high)| {
                bits | (u64::MAX << low) & (u64::MAX >> (63 - high.min(63)))
            })
    }
}

/// What a field holds. Layout is the business of the format's reader; this is the meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An unsigned integer; [`Visitor::uint`](crate::Visitor::uint).
    Uint {
        /// Size as recorded, in bits; of a variable-length integer 64.
        bits: u32,
        /// How it is shown.
        base: Base,
        /// Its labels; `Some` for an enumeration, even if it has no labels.
        labels: Option<Arc<Labels>>,
    },
    /// A signed integer; [`Visitor::sint`](crate::Visitor::sint).
    Sint {
        /// Size as recorded, in bits; of a variable-length integer 64.
        bits: u32,
        /// How it is shown.
        base: Base,
        /// Its labels; `Some` for an enumeration, even if it has no labels.
        labels: Option<Arc<Labels>>,
    },
    /// An integer of more than 64 bits, which is shown in hexadecimal;
    /// [`Visitor::wide`](crate::Visitor::wide).
    Wide {
        /// Size as recorded, in bits: 65 to [`Wide::MAX_BITS`](crate::Wide::MAX_BITS).
        bits: u32,
        /// Whether it is signed.
        signed: bool,
    },
    /// A floating point number; [`Visitor::float`](crate::Visitor::float).
    Float {
        /// Size as recorded, in bits.
        bits: u32,
    },
    /// True or false; [`Visitor::boolean`](crate::Visitor::boolean).
    Bool {
        /// Size as recorded, in bits.
        bits: u32,
    },
    /// Bits that are not a number; [`Visitor::bits`](crate::Visitor::bits).
    BitArray {
        /// Size in bits.
        bits: u32,
    },
    /// Bits with names; [`Visitor::bits`](crate::Visitor::bits).
    BitMap {
        /// Size in bits.
        bits: u32,
        /// The names.
        flags: Arc<[Flag]>,
    },
    /// Text, without a terminating zero; UTF-8 unless the recording is wrong;
    /// [`Visitor::text`](crate::Visitor::text).
    Text,
    /// Bytes that are not text; [`Visitor::blob`](crate::Visitor::blob).
    Blob,
    /// Named members; the field's children.
    Struct,
    /// Elements of one kind; the field's only child.
    Array {
        /// Number of elements where every array of this class has the same.
        length: Option<u64>,
    },
    /// Something or nothing; the field's only child.
    Optional,
    /// One of several; the field's children are the options.
    Variant,
}

/// A field: a member, an element, an option, or the root of a scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name of the member or option; `None` of an element, of what an optional holds, of a root.
    pub name: Option<Arc<str>>,
    /// What it holds.
    pub kind: Kind,
    /// The field that this one is part of; `None` of a root.
    pub parent: Option<FieldId>,
    /// Position among the parent's children.
    pub position: u32,
    /// Members, options, or the one element.
    pub children: Vec<FieldId>,
}

/// The fields of a class, as trees in one table: parents come before their children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    fields: Vec<Field>,
    roots: [Option<FieldId>; 6],
}

impl Schema {
    /// A schema without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// All fields; a [`FieldId`] is a position in it.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field with this identifier.
    ///
    /// # Panics
    ///
    /// If the identifier is of another schema and lies beyond this one.
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.index()]
    }

    /// The root of a scope; `None` if the class has no such scope.
    pub fn root(&self, scope: Scope) -> Option<FieldId> {
        self.roots[scope as usize]
    }

    /// Adds the root of a scope.
    pub fn push_root(&mut self, scope: Scope, kind: Kind) -> FieldId {
        let id = self.push(None, None, kind);
        self.roots[scope as usize] = Some(id);
        id
    }

    /// Adds a part to a field.
    pub fn push_child(&mut self, parent: FieldId, name: Option<Arc<str>>, kind: Kind) -> FieldId {
        let id = self.push(Some(parent), name, kind);
        let siblings = &mut self.fields[parent.index()].children;
        siblings.push(id);
        let position = siblings.len() as u32 - 1;
        self.fields[id.index()].position = position;
        id
    }

    fn push(&mut self, parent: Option<FieldId>, name: Option<Arc<str>>, kind: Kind) -> FieldId {
        let id = FieldId(self.fields.len() as u32);
        self.fields.push(Field {
            name,
            kind,
            parent,
            position: 0,
            children: Vec::new(),
        });
        id
    }

    /// The child of a field that has this name.
    pub fn child(&self, parent: FieldId, name: &str) -> Option<FieldId> {
        self.field(parent)
            .children
            .iter()
            .copied()
            .find(|&id| self.field(id).name.as_deref() == Some(name))
    }

    /// The scope a field lies in.
    pub fn scope_of(&self, id: FieldId) -> Scope {
        let mut root = id;
        while let Some(parent) = self.field(root).parent {
            root = parent;
        }
        Scope::ALL
            .into_iter()
            .find(|&scope| self.root(scope) == Some(root))
            .unwrap_or(Scope::Payload)
    }

    /// The names from the scope's root to the field, joined by dots: elements as `[]`.
    pub fn path(&self, id: FieldId) -> String {
        let mut parts = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            let field = self.field(id);
            at = field.parent;
            match (&field.name, at) {
                (Some(name), _) => parts.push(name.to_string()),
                (None, Some(parent)) => match self.field(parent).kind {
                    Kind::Array { .. } => parts.push("[]".to_string()),
                    Kind::Variant => parts.push(format!("<{}>", field.position)),
                    _ => {}
                },
                (None, None) => {}
            }
        }
        parts.reverse();
        parts.join(".").replace(".[]", "[]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_signed_values_compare_as_signed() {
        let labels = Labels::new(
            true,
            vec![
                Mapping {
                    label: "low".into(),
                    ranges: vec![(-5i64 as u64, -1i64 as u64)],
                },
                Mapping {
                    label: "mid".into(),
                    ranges: vec![(-1i64 as u64, 1)],
                },
            ],
        );
        assert_eq!(labels.of(-1i64 as u64).collect::<Vec<_>>(), ["low", "mid"]);
        assert_eq!(labels.of(1).collect::<Vec<_>>(), ["mid"]);
        assert_eq!(labels.of(2).count(), 0);
    }

    #[test]
    fn ranges_of_bit_numbers_are_bits() {
        let bits = |ranges: &[(u64, u64)]| {
            let (name, ranges) = ("f".into(), ranges.to_vec());
            Flag { name, ranges }.bits()
        };
        assert_eq!(bits(&[(1, 3), (9, 9)]), 0b10_0000_1110);
        assert_eq!(bits(&[(0, u64::MAX)]), u64::MAX);
        assert_eq!(bits(&[(63, 63), (64, 70), (3, 2)]), 1 << 63);
    }

    #[test]
    fn paths_name_members_and_elements() {
        let mut schema = Schema::new();
        let root = schema.push_root(Scope::Payload, Kind::Struct);
        let array = schema.push_child(root, Some("a".into()), Kind::Array { length: None });
        let element = schema.push_child(array, None, Kind::Struct);
        let leaf = schema.push_child(element, Some("x".into()), Kind::Text);
        assert_eq!(schema.path(leaf), "a[].x");
        assert_eq!(schema.scope_of(leaf), Scope::Payload);
    }
}
