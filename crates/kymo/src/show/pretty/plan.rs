//! What is written around the values of a class, worked out once.

use std::sync::Arc;

use kymo_model::{Base, FieldId, Kind, Schema, Scope};
use kymo_text::{Line, Stamp, visible};

use super::options::Names;
use crate::show::color::Palette;
use crate::show::labels::{LabelText, Render};
use crate::show::packet::leading;

/// How the fields of a schema are written, by [`FieldId`].
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fields: Vec<FieldPlan>,
}

/// How a field is written.
#[derive(Debug)]
pub(super) struct FieldPlan {
    /// What comes before the value: separator, name, opening brace, colour.
    pub(super) before: Stamp,
    /// Whether it is an element, whose separator depends on its index, which comes first.
    pub(super) element: Element,
    pub(super) value: Value,
}

/// Whether a field is an element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    No,
    /// With `[INDEX] = ` before it.
    Named,
    /// Without.
    Bare,
}

/// How a value is written.
#[derive(Debug)]
pub(super) enum Value {
    /// As its type demands: a decimal integer, a compound.
    Usual,
    /// In another base than 10.
    Based(Based),
    /// With labels before it.
    Labeled(Box<LabelText<Labels>>, Option<Based>),
    /// With labels before it; if it has none, with those of its bits.
    LabeledBits(Box<LabelText<Labels>>, Option<Based>, BitLabels),
    /// With the names of the bits that are set after it, by their order.
    Flags(Box<[(u64, Stamp)]>),
}

/// An integer in another base than 10.
#[derive(Clone, Copy, Debug)]
pub(super) enum Based {
    /// With these bits of it.
    Hexadecimal(u64),
    /// With these bits of it.
    Octal(u64),
    /// With as many bits.
    Binary(u32),
}

impl Based {
    fn new(base: Base, bits: u32, signed: bool) -> Option<Self> {
        // The bits of a negative number, up to a whole digit.
        let mask = |digit: u32| {
            let bits = bits.next_multiple_of(digit);
            if bits < 64 { (1 << bits) - 1 } else { u64::MAX }
        };
        match base {
            Base::Decimal => None,
            Base::Hexadecimal => Some(Self::Hexadecimal(mask(4))),
            Base::Octal if signed => Some(Self::Octal(mask(3))),
            Base::Octal => Some(Self::Octal(u64::MAX)),
            Base::Binary => Some(Self::Binary(bits)),
        }
    }

    pub(super) fn write(self, value: u64, line: &mut Line) {
        match self {
            Self::Hexadecimal(mask) => line.hexadecimal(value & mask),
            Self::Octal(mask) => line.octal(value & mask),
            Self::Binary(bits) => line.binary(value, bits),
        }
    }
}

/// Writes labels as `( "LABEL" : container = `.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels(Palette);

impl Render for Labels {
    fn render(&self, labels: &[&str], line: &mut Line) {
        let Self(palette) = self;
        line.push(b"( ");
        label_list(labels, palette, line);
        container(palette, line);
    }
}

fn container(palette: &Palette, line: &mut Line) {
    line.push(b" : container = ");
    line.push(palette.value.as_bytes());
}

fn label_list(labels: &[&str], palette: &Palette, line: &mut Line) {
    match labels {
        [] => {
            line.push(palette.unknown.as_bytes());
            line.push(b"<unknown>");
            line.push(palette.reset.as_bytes());
        }
        [label] => colored_string(label, palette, line),
        [first, rest @ ..] => {
            line.push(b"{ ");
            colored_string(first, palette, line);
            for label in rest {
                line.push(b", ");
                colored_string(label, palette, line);
            }
            line.push(b" }");
        }
    }
}

/// The labels of single bits.
#[derive(Debug)]
pub(super) struct BitLabels {
    labels: Arc<kymo_model::Labels>,
    palette: Palette,
    /// The text of each bit, from the lowest one.
    texts: Vec<Option<Stamp>>,
}

impl BitLabels {
    fn new(labels: &Arc<kymo_model::Labels>, palette: &Palette) -> Self {
        let text = |bit: u32| {
            let value = 1 << bit;
            let mappings = labels.mappings().iter();
            let matching = mappings.filter(|mapping| mapping.ranges.contains(&(value, value)));
            let names: Vec<&str> = matching.map(|mapping| &*mapping.label).collect();
            let mut line = Line::new();
            label_list(&names, palette, &mut line);
            (!names.is_empty()).then(|| Stamp::new(line.as_bytes()))
        };
        Self {
            labels: Arc::clone(labels),
            palette: *palette,
            texts: (0..u64::BITS).map(text).collect(),
        }
    }

    /// Appends the labels of the bits of a value; returns whether it did: not if the value has a label of its own, or
    /// one of its bits has none.
    pub(super) fn write(&self, bits: u64, line: &mut Line) -> bool {
        let is_set = |bit: &usize| bits >> bit & 1 != 0;
        let set = || (0..self.texts.len()).filter(is_set);
        let is_named = bits != 0 && set().all(|bit| self.texts[bit].is_some());
        if !is_named || self.labels.of(bits).next().is_some() {
            return false;
        }
        for (position, text) in set().filter_map(|bit| self.texts[bit].as_ref()).enumerate() {
            line.push(if position == 0 { b"( " } else { b" | " });
            line.stamp(text);
        }
        container(&self.palette, line);
        true
    }
}

fn colored_string(text: &str, palette: &Palette, line: &mut Line) {
    line.push(palette.value.as_bytes());
    line.c_string(text.as_bytes());
    line.push(palette.reset.as_bytes());
}

impl Plan {
    /// Plans the fields of `scopes`; `hidden` fields are never visited. Where `first`, no
    /// scope comes before the first of them.
    pub(super) fn new(
        schema: &Schema,
        scopes: &[Scope],
        hidden: &[bool],
        mut first: bool,
        names: Names,
        palette: &Palette,
    ) -> Self {
        let mut fields: Vec<FieldPlan> = Vec::with_capacity(schema.fields().len());
        let leads = leading(schema, hidden);
        // Of each field, whether names are shown below it.
        let mut named = Vec::with_capacity(schema.fields().len());
        for (position, field) in schema.fields().iter().enumerate() {
            let id = FieldId(position as u32);
            let mut before = Line::new();
            let mut element = Element::No;
            let parent = field.parent.map(|parent| (parent, schema.field(parent)));
            match parent {
                None => {
                    let scope = schema.scope_of(id);
                    let payload = scope == Scope::Payload;
                    named.push(if payload {
                        names.payload
                    } else {
                        names.context
                    });
                    if scopes.contains(&scope) {
                        if !first {
                            before.push(b", ");
                        }
                        first = false;
                        if names.scope {
                            name(scope_name(scope), palette.key, palette, &mut before);
                        }
                    }
                }
                Some((parent, above)) => {
                    let shown = named[parent.index()];
                    named.push(shown);
                    match above.kind {
                        Kind::Array { .. } => {
                            element = if shown { Element::Named } else { Element::Bare };
                        }
                        Kind::Struct => {
                            before.push(if leads[position] { b" " } else { b", " });
                            if let (true, Some(text)) = (shown, &field.name) {
                                name(text, palette.field, palette, &mut before);
                            }
                        }
                        _ => {}
                    }
                }
            }
            let value = value(&field.kind, names.enum_flags, palette);
            before.push(match &field.kind {
                Kind::Struct => b"{",
                Kind::Array { .. } => b"[",
                Kind::Variant => b"{ ",
                Kind::Optional => b"",
                Kind::Blob => b"{ ",
                _ if matches!(value, Value::Labeled(..) | Value::LabeledBits(..)) => b"",
                _ => palette.value.as_bytes(),
            });
            fields.push(FieldPlan {
                before: Stamp::new(before.as_bytes()),
                element,
                value,
            });
        }
        Self { fields }
    }
}

fn value(kind: &Kind, enum_flags: bool, palette: &Palette) -> Value {
    let (based, labels) = match kind {
        Kind::Uint { bits, base, labels } => (Based::new(*base, *bits, false), labels),
        Kind::Sint { bits, base, labels } => (Based::new(*base, *bits, true), labels),
        Kind::BitArray { .. } => return Value::Flags(Box::new([])),
        Kind::BitMap { flags, .. } => {
            let mut sorted: Vec<_> = flags.iter().collect();
            sorted.sort_by(|left, right| left.name.cmp(&right.name));
            let flags = sorted.into_iter().map(|flag| {
                let mut text = Line::new();
                colored_string(&flag.name, palette, &mut text);
                (flag.bits(), Stamp::new(text.as_bytes()))
            });
            return Value::Flags(flags.collect());
        }
        _ => return Value::Usual,
    };
    match (labels, based) {
        (Some(labels), based) => {
            let text = Box::new(LabelText::new(labels, Labels(*palette)));
            match enum_flags {
                true => Value::LabeledBits(text, based, BitLabels::new(labels, palette)),
                false => Value::Labeled(text, based),
            }
        }
        (None, Some(based)) => Value::Based(based),
        (None, None) => Value::Usual,
    }
}

/// Appends `NAME = `.
pub(super) fn name(text: &str, color: &str, palette: &Palette, line: &mut Line) {
    line.push(color.as_bytes());
    line.push(visible(text).as_bytes());
    line.push(palette.reset.as_bytes());
    line.push(b" = ");
}

const fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "trace.packet.header",
        Scope::PacketContext => "stream.packet.context",
        Scope::EventHeader => "stream.event.header",
        Scope::CommonContext => "stream.event.context",
        Scope::SpecificContext => "event.context",
        Scope::Payload => "event.fields",
    }
}

#[cfg(test)]
mod tests {
    use kymo_model::Mapping;

    use super::*;

    #[test]
    fn values_without_a_label_have_those_of_their_bits() {
        let mapping = |label: &str, ranges: &[(u64, u64)]| Mapping {
            label: label.into(),
            ranges: ranges.to_vec(),
        };
        let labels = kymo_model::Labels::new(
            true,
            vec![
                mapping("read", &[(1, 1)]),
                mapping("get", &[(1, 1)]),
                mapping("write", &[(2, 2), (16, 16)]),
                mapping("five", &[(5, 5)]),
                mapping("range", &[(8, 9)]),
            ],
        );
        let of_bits = BitLabels::new(&Arc::new(labels), &Palette::NONE);
        let text = |bits| {
            let mut line = Line::new();
            let is_written = of_bits.write(bits, &mut line);
            is_written.then(|| String::from_utf8(line.as_bytes().to_vec()).unwrap())
        };
        let text = |bits| text(bits).map(|text| text.replace(" : container = ", ""));
        let some = |text: &str| Some(text.to_string());
        assert_eq!(text(3), some(r#"( { "read", "get" } | "write""#));
        assert_eq!(text(18), some(r#"( "write" | "write""#));
        assert_eq!(text(1), None, "it has labels of its own");
        assert_eq!(text(5), None, "the same");
        assert_eq!(text(10), None, "a range is no bit");
        assert_eq!((text(0), text(u64::MAX), text(4)), (None, None, None));
    }
}
