//! The metadata in the draft's own language (sections 4 and 7).

use std::fmt::Write as _;

use crate::rng::Rng;
use crate::trace::{Context, EventClass, HeaderType, Section, Style, Trace};
use crate::types::{Alignment, Encoding, Field, Integer, Order, Type};

/// The entries of the metadata of `trace`.
pub(crate) fn items(trace: &Trace) -> Vec<String> {
    let mut writer = Writer {
        alignment: trace.alignment,
        style: &trace.style,
        rng: Rng::new(trace.style.seed),
        known: Vec::new(),
        items: Vec::new(),
    };
    writer.trace();
    for declaration in &trace.types {
        writer.declare(&declaration.name, &declaration.ty, declaration.ancestors);
    }
    if trace.style.packet_header {
        writer.packet_header();
    }
    for section in &trace.sections {
        writer.section(section);
        for event in &section.events {
            writer.event(&section.name, event);
        }
    }
    if trace.style.varied {
        // The draft asks for no order.
        writer.rng.shuffle(&mut writer.items[1..]);
    }
    writer.items
}

/// An attribute as it is written: key and value.
type Attribute = (&'static str, String);

struct Writer<'t> {
    alignment: Alignment,
    style: &'t Style,
    rng: Rng,
    /// Types declared so far.
    known: Vec<(&'t str, &'t Type)>,
    items: Vec<String>,
}

impl<'t> Writer<'t> {
    fn item(&mut self, head: &str, lines: &[String]) {
        let block = self.block(head, lines, 0);
        let end = self.block_end();
        let comment = if self.style.varied && self.rng.one_in(4) {
            "/* type { is = no; } ** here */ "
        } else {
            ""
        };
        self.items.push(format!("{comment}{block}{end}\n"));
    }

    /// `head { lines }`, the first line not indented, those in between deeper than `depth`.
    fn block(&mut self, head: &str, lines: &[String], depth: usize) -> String {
        let mut text = format!("{head}{{\n");
        for line in lines {
            writeln!(text, "{}{line}", indent(depth + 1)).expect("a string takes all");
        }
        text + &indent(depth) + "}"
    }

    /// What follows a block that needs nothing.
    fn block_end(&mut self) -> &'static str {
        if self.style.semicolons && self.rng.coin() {
            ";"
        } else {
            ""
        }
    }

    fn assignment(&mut self, key: &str, value: &str) -> String {
        let dot = if self.style.dots && self.rng.coin() {
            "."
        } else {
            ""
        };
        let comment = if self.style.varied && self.rng.one_in(8) {
            " /* so */"
        } else {
            ""
        };
        format!("{dot}{key} = {value};{comment}")
    }

    fn trace(&mut self) {
        let lines = [self.assignment("major", "1"), self.assignment("minor", "1")];
        self.item("trace ", &lines);
    }

    fn section(&mut self, section: &Section) {
        let header = match section.header {
            HeaderType::Type1 => "type1",
            HeaderType::Type2 => "type2",
        };
        let mut event = vec![self.assignment("header_type", header)];
        let context = match &section.context {
            Context::None if self.style.varied && self.rng.coin() => {
                vec![self.assignment("event_size", "false")]
            }
            Context::None => Vec::new(),
            Context::EventSize => vec![self.assignment("event_size", "true")],
            Context::Fields(fields) => {
                let named = self.style.varied && self.rng.coin();
                let head = if named {
                    format!("type {}_event_ctx ", section.name)
                } else {
                    "type ".to_owned()
                };
                vec![self.nameless(&head, &Type::Struct(fields.clone()), 3) + self.block_end()]
            }
        };
        if !context.is_empty() {
            event.push(self.block("context ", &context, 2) + self.block_end());
        }
        let lines = [
            self.assignment("name", &section.name),
            self.block("event ", &event, 1) + self.block_end(),
        ];
        self.item("section ", &lines);
    }

    fn event(&mut self, section: &str, event: &EventClass) {
        let fields = self.reference(&Type::Struct(event.fields.clone()), 1);
        let lines = [
            self.assignment("name", &event.name),
            self.assignment("id", &event.id.to_string()),
            self.assignment("section", section),
            self.assignment("fields", &fields),
        ];
        self.item("event ", &lines);
    }

    /// The packet header as section 5 declares it, with two fields named `checksum`.
    fn packet_header(&mut self) {
        let integer = |size| Type::Integer(Integer::predefined(size, false, self.alignment));
        let fields = [
            ("magic", 32),
            ("session_id", 32),
            ("content_size", 32),
            ("packet_size", 32),
            ("checksum", 32),
            ("section_packet_count", 32),
            ("timestamp_begin", 64),
            ("timestamp_end", 64),
            ("events_discarded", 32),
            ("section_packet_count_bits", 8),
            ("compression_scheme", 8),
            ("encryption_scheme", 8),
            ("checksum", 8),
        ]
        .map(|(name, size)| Field {
            name: name.to_owned(),
            ty: integer(size),
        });
        let text = self.nameless("type packet_header ", &Type::Struct(fields.to_vec()), 0);
        let end = self.block_end();
        self.items.push(format!("{text}{end}\n"));
    }

    /// A type where one is used: a name, or a nameless type.
    fn reference(&mut self, ty: &Type, depth: usize) -> String {
        let mut names: Vec<String> = Vec::new();
        names.extend(
            self.known
                .iter()
                .filter(|(_, known)| *known == ty)
                .map(|(name, _)| (*name).to_owned()),
        );
        if let Type::Integer(integer) = ty
            && *integer == Integer::predefined(integer.size, integer.signed, self.alignment)
        {
            let unsigned = if integer.signed { "" } else { "u" };
            names.push(format!("{unsigned}int{}_t", integer.size));
            if integer.size == 32 && !integer.signed && self.style.varied {
                names.push("uint".to_owned());
            }
        }
        if names.is_empty() {
            return self.nameless("type ", ty, depth);
        }
        if !self.style.varied {
            return names.swap_remove(0);
        }
        if self.rng.one_in(3) {
            return self.nameless("type ", ty, depth);
        }
        let index = self.rng.index(names.len());
        names.swap_remove(index)
    }

    /// `head { parent = ...; ... }`
    fn nameless(&mut self, head: &str, ty: &Type, depth: usize) -> String {
        let (parent, attributes) = match self.override_of_known(ty) {
            Some(overriding) => overriding,
            None => (keyword(ty).to_owned(), self.attributes(ty, depth)),
        };
        self.body(head, &parent, attributes, depth)
    }

    fn body(
        &mut self,
        head: &str,
        parent: &str,
        mut attributes: Vec<Attribute>,
        depth: usize,
    ) -> String {
        if self.style.varied {
            self.rng.shuffle(&mut attributes);
        }
        let mut lines = vec![self.assignment("parent", parent)];
        for (key, value) in attributes {
            lines.push(self.assignment(key, &value));
        }
        self.block(head, &lines, depth)
    }

    /// An integer as a type that a declared integer is the parent of, all attributes overridden.
    fn override_of_known(&mut self, ty: &Type) -> Option<(String, Vec<Attribute>)> {
        let Type::Integer(integer) = ty else {
            return None;
        };
        let align = integer.align?;
        let parents: Vec<&str> = self
            .known
            .iter()
            .filter(|(_, known)| matches!(known, Type::Integer(_)))
            .map(|(name, _)| *name)
            .collect();
        if parents.is_empty() || !self.style.varied || self.rng.coin() {
            return None;
        }
        let attributes = vec![
            ("size", integer.size.to_string()),
            ("signed", integer.signed.to_string()),
            ("byte_order", order(integer.order).to_owned()),
            ("align", align.to_string()),
        ];
        Some((self.rng.pick(&parents).to_owned(), attributes))
    }

    /// All attributes of a type, those that say the default left out at times.
    fn attributes(&mut self, ty: &Type, depth: usize) -> Vec<Attribute> {
        match ty {
            Type::Integer(integer) => self.integer(integer),
            Type::Bitfield { integer, unit_size } => {
                let mut attributes = vec![("unit_size", unit_size.to_string())];
                attributes.extend(self.integer(integer));
                attributes
            }
            Type::Enumeration { integer, map } => {
                let mut attributes = self.integer(integer);
                let entries: Vec<_> = map
                    .iter()
                    .map(|(value, label)| (value.to_string(), self.label(label)))
                    .collect();
                attributes.push(("map", self.list(&entries, depth + 1)));
                attributes
            }
            Type::Struct(fields) => {
                let entries: Vec<_> = fields
                    .iter()
                    .map(|field| (self.reference(&field.ty, depth + 2), field.name.clone()))
                    .collect();
                vec![("fields", self.list(&entries, depth + 1))]
            }
            Type::Array { length, element } => vec![
                ("length", length.to_string()),
                ("elem_type", self.reference(element, depth + 1)),
            ],
            Type::Sequence { length, element } => vec![
                (
                    "length_type",
                    self.reference(&Type::Integer(*length), depth + 1),
                ),
                ("elem_type", self.reference(element, depth + 1)),
            ],
            Type::Text(Encoding::Utf8) if self.unsaid() => Vec::new(),
            Type::Text(Encoding::Utf8) => vec![("encoding", "UTF8".to_owned())],
            Type::Text(Encoding::Ascii) => vec![("encoding", "ASCII".to_owned())],
        }
    }

    fn integer(&mut self, integer: &Integer) -> Vec<Attribute> {
        let mut attributes = vec![("size", integer.size.to_string())];
        if integer.signed || !self.unsaid() {
            attributes.push(("signed", integer.signed.to_string()));
        }
        if integer.order != Order::Native || (self.style.varied && !self.unsaid()) {
            attributes.push(("byte_order", order(integer.order).to_owned()));
        }
        if let Some(align) = integer.align {
            attributes.push(("align", align.to_string()));
        }
        attributes
    }

    /// The draft does not show what a string looks like: quoted, or a word.
    fn label(&mut self, label: &str) -> String {
        if self.unsaid() {
            label.to_owned()
        } else {
            format!("\"{label}\"")
        }
    }

    /// Whether to say nothing where the default is meant.
    fn unsaid(&mut self) -> bool {
        self.style.varied && self.rng.coin()
    }

    /// `{ { first, second }, ... }`
    fn list(&mut self, entries: &[(String, String)], depth: usize) -> String {
        let mut lines = Vec::new();
        for (i, (first, second)) in entries.iter().enumerate() {
            let open = if self.style.brackets && self.rng.one_in(4) {
                "["
            } else {
                "{"
            };
            let last = i + 1 == entries.len();
            let (inner, outer) = if self.style.commas {
                let outer = if self.rng.coin() { "," } else { "" };
                (if self.rng.one_in(3) { "," } else { "" }, outer)
            } else {
                ("", if last && self.unsaid() { "" } else { "," })
            };
            lines.push(format!("{open} {first}, {second}{inner} }}{outer}"));
        }
        self.block("", &lines, depth)
    }

    /// Declares a type, its attributes spread over it and its ancestors.
    fn declare(&mut self, name: &'t str, ty: &'t Type, ancestors: usize) {
        let mut generations: Vec<Vec<Attribute>> = vec![Vec::new(); ancestors + 1];
        let mut overridden = false;
        let attributes = self.attributes(ty, 0);
        let count = attributes.len();
        for (i, (key, value)) in attributes.into_iter().enumerate() {
            if !self.style.overrides {
                generations[i * (ancestors + 1) / count].push((key, value));
                continue;
            }
            let chosen = self.rng.index(generations.len());
            if chosen > 0
                && self.rng.coin()
                && let Some(other) = self.other_value(key)
            {
                let earlier = self.rng.index(chosen);
                generations[earlier].push((key, other));
                overridden = true;
            }
            generations[chosen].push((key, value));
        }

        let mut parent = keyword(ty).to_owned();
        let mut missing = required(ty).to_vec();
        for (i, attributes) in generations.into_iter().enumerate() {
            missing.retain(|key| !attributes.iter().any(|(said, _)| said == key));
            let own = if i == ancestors {
                name.to_owned()
            } else {
                format!("{name}_base{i}")
            };
            // A type that lacks something is abstract, and one with a value to be overridden may
            // make no sense by itself.
            let concrete = i == ancestors
                || (missing.is_empty()
                    && (!overridden || matches!(ty, Type::Integer(_) | Type::Text(_)))
                    && self.rng.coin());
            let kind = if concrete { "type" } else { "abstract_type" };
            let text = self.body(&format!("{kind} {own} "), &parent, attributes, 0);
            let end = self.block_end();
            self.items.push(format!("{text}{end}\n"));
            parent = own;
        }
        self.known.push((name, ty));
    }

    /// Some other value for an attribute, if there is an easy one.
    fn other_value(&mut self, key: &str) -> Option<String> {
        Some(match key {
            "size" | "length" => self.rng.between(1, 64).to_string(),
            "signed" => self.rng.coin().to_string(),
            "align" => self.rng.pick(&["1", "8", "64"]).to_owned(),
            "byte_order" => self.rng.pick(&["be", "le", "network", "native"]).to_owned(),
            "encoding" => self.rng.pick(&["ASCII", "UTF8"]).to_owned(),
            "map" => "{ { 0, \"other\" } }".to_owned(),
            "fields" => "{ { uint8_t, other } }".to_owned(),
            _ => return None,
        })
    }
}

fn indent(depth: usize) -> String {
    "    ".repeat(depth)
}

/// The abstract type of the language that a type comes from.
fn keyword(ty: &Type) -> &'static str {
    match ty {
        Type::Integer(_) => "integer",
        Type::Bitfield { .. } => "gcc_bitfield",
        Type::Enumeration { .. } => "enum",
        Type::Struct(_) => "struct",
        Type::Array { .. } => "array",
        Type::Sequence { .. } => "sequence",
        Type::Text(_) => "string",
    }
}

/// Attributes without which a type is not concrete.
fn required(ty: &Type) -> &'static [&'static str] {
    match ty {
        Type::Integer(_) => &["size"],
        Type::Bitfield { .. } => &["size", "unit_size"],
        Type::Enumeration { .. } => &["size", "map"],
        Type::Struct(_) => &["fields"],
        Type::Array { .. } => &["length", "elem_type"],
        Type::Sequence { .. } => &["length_type", "elem_type"],
        Type::Text(_) => &[],
    }
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Native => "native",
        Order::Network => "network",
        Order::Be => "be",
        Order::Le => "le",
    }
}
