//! Events made of calls, to test renderers with.

use std::sync::Arc;

use kymo_model::{
    Base, Event, EventClass, Fault, FieldId, Flag, Kind, Labels, Mapping, Schema, Scope, Visitor,
};
use kymo_time::Timestamp;

/// A call of a visitor.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Uint(u64),
    Sint(i64),
    Float(f64),
    Float128(u128),
    Bool(bool),
    Bits(u64),
    Text(&'static [u8]),
    Blob(&'static [u8]),
    Struct,
    EndStruct,
    Array(u64),
    EndArray,
    Optional(bool),
    EndOptional,
    Variant(u32),
    EndVariant,
}

/// Makes the calls.
pub(crate) fn play<V: Visitor>(calls: &[(FieldId, Call)], visitor: &mut V) {
    for (field, call) in calls {
        let field = *field;
        match *call {
            Call::Uint(value) => visitor.uint(field, value),
            Call::Sint(value) => visitor.sint(field, value),
            Call::Float(value) => visitor.float(field, value),
            Call::Float128(bits) => visitor.float128(field, bits),
            Call::Bool(value) => visitor.boolean(field, value),
            Call::Bits(value) => visitor.bits(field, value),
            Call::Text(text) => visitor.text(field, text),
            Call::Blob(bytes) => visitor.blob(field, bytes),
            Call::Struct => visitor.begin_struct(field),
            Call::EndStruct => visitor.end_struct(field),
            Call::Array(length) => visitor.begin_array(field, length),
            Call::EndArray => visitor.end_array(field),
            Call::Optional(present) => visitor.begin_optional(field, present, present.into()),
            Call::EndOptional => visitor.end_optional(field),
            Call::Variant(selected) => visitor.begin_variant(field, selected, selected.into()),
            Call::EndVariant => visitor.end_variant(field),
        }
    }
}

/// An event that makes calls.
pub(crate) struct Made {
    pub(crate) class: EventClass,
    pub(crate) calls: Vec<(FieldId, Call)>,
}

impl Event for Made {
    fn class(&self) -> &EventClass {
        &self.class
    }

    fn class_index(&self) -> usize {
        0
    }

    fn timestamp(&self) -> Option<Timestamp> {
        None
    }

    fn ticks(&self) -> Option<u64> {
        None
    }

    fn number(&self) -> u64 {
        0
    }

    fn begin_bit(&self) -> u64 {
        0
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        play(&self.calls, visitor);
        Ok(())
    }
}

pub(crate) fn uint(bits: u32, base: Base) -> Kind {
    Kind::Uint {
        bits,
        base,
        labels: None,
    }
}

pub(crate) fn sint(bits: u32, base: Base) -> Kind {
    Kind::Sint {
        bits,
        base,
        labels: None,
    }
}

/// A packet context of a size and a CPU; the size is bookkeeping.
pub(crate) fn packet() -> (Arc<Schema>, Vec<(FieldId, Call)>) {
    let mut schema = Schema::new();
    let header = schema.push_root(Scope::PacketHeader, Kind::Struct);
    let magic = schema.push_child(header, Some("magic".into()), uint(32, Base::Decimal));
    let root = schema.push_root(Scope::PacketContext, Kind::Struct);
    let size = schema.push_child(root, Some("content_size".into()), uint(64, Base::Decimal));
    let cpu = schema.push_child(root, Some("cpu_id".into()), uint(32, Base::Decimal));
    let calls = vec![
        (header, Call::Struct),
        (magic, Call::Uint(0xc1fc_1fc1)),
        (header, Call::EndStruct),
        (root, Call::Struct),
        (size, Call::Uint(4096)),
        (cpu, Call::Uint(3)),
        (root, Call::EndStruct),
    ];
    (Arc::new(schema), calls)
}

/// Position of the packet field that is bookkeeping.
pub(crate) const SIZE_FIELD: FieldId = FieldId(3);

/// An event with a field of every kind.
pub(crate) fn every_kind() -> Made {
    let mut schema = Schema::new();
    let mut calls = Vec::new();
    let context = schema.push_root(Scope::CommonContext, Kind::Struct);
    let vpid = schema.push_child(context, Some("vpid".into()), sint(32, Base::Decimal));
    calls.extend([
        (context, Call::Struct),
        (vpid, Call::Sint(-7)),
        (context, Call::EndStruct),
    ]);
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    calls.push((root, Call::Struct));
    let member =
        |schema: &mut Schema, name: &str, kind| schema.push_child(root, Some(name.into()), kind);
    let labels = |signed, mappings: &[(&str, u64, u64)]| {
        let mappings = mappings.iter().map(|&(label, low, high)| Mapping {
            label: label.into(),
            ranges: vec![(low, high)],
        });
        Some(Arc::new(Labels::new(signed, mappings.collect())))
    };
    for (name, kind, call) in [
        ("hex", sint(12, Base::Hexadecimal), Call::Sint(-1)),
        ("oct", sint(8, Base::Octal), Call::Sint(-1)),
        ("bin", uint(3, Base::Binary), Call::Uint(5)),
        (
            "f",
            Kind::Float { bits: 32 },
            Call::Float(f64::from(-99.63f32)),
        ),
        (
            "q",
            Kind::Float { bits: 128 },
            Call::Float128(0x3fff << 112),
        ),
        ("b", Kind::Bool { bits: 8 }, Call::Bool(true)),
        ("bits", Kind::BitArray { bits: 16 }, Call::Bits(0xe9ab)),
        (
            "map",
            Kind::BitMap {
                bits: 8,
                flags: [("Z", 0), ("A", 4), ("N", 1)]
                    .map(|(name, bit)| Flag {
                        name: name.into(),
                        ranges: vec![(bit, bit)],
                    })
                    .into(),
            },
            Call::Bits(0x11),
        ),
        ("s", Kind::Text, Call::Text(b"a\"b\n")),
        ("blob", Kind::Blob, Call::Blob(&[0, 0xff])),
        ("empty", Kind::Blob, Call::Blob(&[])),
        (
            "one",
            Kind::Uint {
                bits: 8,
                base: Base::Decimal,
                labels: labels(false, &[("RED", 0, 0), ("X", 1, 9)]),
            },
            Call::Uint(0),
        ),
        (
            "two",
            Kind::Sint {
                bits: 8,
                base: Base::Hexadecimal,
                labels: labels(true, &[("B", u64::MAX, 0), ("A", 0, 5)]),
            },
            Call::Sint(0),
        ),
        (
            "none",
            Kind::Uint {
                bits: 8,
                base: Base::Decimal,
                labels: labels(false, &[]),
            },
            Call::Uint(9),
        ),
    ] {
        calls.push((member(&mut schema, name, kind), call));
    }
    let array = member(&mut schema, "arr", Kind::Array { length: None });
    let pair = schema.push_child(array, None, Kind::Array { length: Some(1) });
    let element = schema.push_child(pair, None, uint(8, Base::Decimal));
    calls.push((array, Call::Array(2)));
    for value in [1, 2] {
        calls.extend([
            (pair, Call::Array(1)),
            (element, Call::Uint(value)),
            (pair, Call::EndArray),
        ]);
    }
    calls.push((array, Call::EndArray));
    let none = member(&mut schema, "no", Kind::Array { length: None });
    schema.push_child(none, None, Kind::Text);
    calls.extend([(none, Call::Array(0)), (none, Call::EndArray)]);
    let variant = member(&mut schema, "var", Kind::Variant);
    schema.push_child(variant, Some("first".into()), Kind::Text);
    let nested = schema.push_child(variant, Some("second".into()), Kind::Struct);
    let inner = schema.push_child(nested, Some("in".into()), uint(8, Base::Decimal));
    calls.extend([
        (variant, Call::Variant(1)),
        (nested, Call::Struct),
        (inner, Call::Uint(4)),
        (nested, Call::EndStruct),
        (variant, Call::EndVariant),
    ]);
    for (name, present) in [("some", true), ("nothing", false)] {
        let optional = member(&mut schema, name, Kind::Optional);
        let content = schema.push_child(optional, None, Kind::Text);
        calls.push((optional, Call::Optional(present)));
        if present {
            calls.push((content, Call::Text(b"x")));
        }
        calls.push((optional, Call::EndOptional));
    }
    let hollow = member(&mut schema, "hollow", Kind::Struct);
    calls.extend([(hollow, Call::Struct), (hollow, Call::EndStruct)]);
    calls.push((root, Call::EndStruct));
    Made {
        class: EventClass {
            id: 5,
            stream_class: 0,
            name: Some("app:every".into()),
            log_level: Some(13),
            emf_uri: None,
            schema,
        },
        calls,
    }
}
