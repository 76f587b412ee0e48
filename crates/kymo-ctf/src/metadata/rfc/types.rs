//! From types to field classes (§4).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Labels, Mapping};
use kymo_text::diagnostic::Diagnostic;

use super::ast::{Block, Pair, Value};
use super::attributes;
use super::declare::{Base, Declaration, Declarations, Found, Lineage, align};
use super::layout::Alignment;
use crate::class::{BitLayout, Encoding, FieldClass, IntegerStyle, Length, Member};
use crate::deep::has_room;
use crate::metadata::lexer::Span;
use crate::metadata::limits::{Warnings, too_deep, too_many_fields, weight};
use crate::metadata::tokens::Spanned;

/// A type made a field class.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) class: FieldClass,
    /// How many field classes it consists of.
    count: usize,
    /// How many of them lie within each other.
    height: usize,
    /// Of a bit field, or an array of them, its unit in bits; else 1. A structure begins
    /// where the largest of its bit fields' units does (§4.1.6).
    unit: u32,
}

impl Built {
    fn leaf(class: FieldClass) -> Self {
        Self {
            class,
            count: 1,
            height: 1,
            unit: 1,
        }
    }
}

/// What became of a declared type so far.
#[derive(Debug)]
enum State {
    Untouched,
    InWork,
    Built(Rc<Built>),
}

/// Makes field classes of types.
pub(super) struct Types<'a> {
    pub(super) declarations: Declarations<'a>,
    /// The native byte order.
    pub(super) order: ByteOrder,
    /// Alignment of the predefined types.
    pub(super) alignment: Alignment,
    pub(super) warnings: Warnings,
    states: Vec<State>,
    /// How many more field classes there may be.
    budget: usize,
    /// How many types enclose the one in hand.
    depth: usize,
}

impl<'a> Types<'a> {
    /// Takes all declarations; `budget` is how many field classes there may be.
    pub(super) fn new(
        declarations: Declarations<'a>,
        order: ByteOrder,
        warnings: Warnings,
        budget: usize,
    ) -> Result<Self, Diagnostic> {
        let aligned = |name, align| Ok(declarations.declared_align(name)? == Some(align));
        let alignment = match aligned("uint32_t", 32)? {
            true if aligned("uint64_t", 32)? => Alignment::Natural(32),
            true => Alignment::Natural(64),
            false => Alignment::Packed,
        };
        let states = (0..declarations.len()).map(|_| State::Untouched).collect();
        Ok(Self {
            declarations,
            order,
            alignment,
            warnings,
            states,
            budget,
            depth: 0,
        })
    }

    /// Checks all declared types, also those that nothing uses.
    pub(super) fn check(&mut self) -> Result<(), Diagnostic> {
        for at in 0..self.declarations.len() {
            let Declaration { body, span, scope } = self.declarations.get(at);
            if self.declarations.is_abstract(at) {
                let lineage = self.declarations.lineage(body, scope)?;
                self.check_attributes(body, lineage.base)?;
            } else {
                self.declared(at, span)?;
            }
        }
        Ok(())
    }

    /// The field class of a type that is written at a place: by its name, or there.
    pub(super) fn class(
        &mut self,
        value: &'a Spanned<Value>,
        scope: usize,
    ) -> Result<Rc<Built>, Diagnostic> {
        let span = value.span;
        match &value.value {
            Value::Type(body) => self.build(body, scope, span).map(Rc::new),
            Value::Word(name) => match self.declarations.find(name, scope, span)? {
                Found::Declared(at) if self.declarations.is_abstract(at) => {
                    Err(abstract_type(name, span)
                        .because(self.declarations.get(at).span, "declared here"))
                }
                Found::Declared(at) => {
                    let built = self.declared(at, span)?;
                    let height = self.depth + built.height;
                    self.spend(built.count.saturating_mul(weight(height)), span)?;
                    if !has_room(height) {
                        return Err(too_deep(span));
                    }
                    Ok(built)
                }
                Found::Base(Base::Predefined { bits, signed }) => {
                    self.spend(1, span)?;
                    let layout = BitLayout {
                        bits,
                        align: self.alignment.of(bits),
                        order: self.order,
                        reversed: false,
                        unit: None,
                    };
                    let style = IntegerStyle {
                        signed,
                        ..IntegerStyle::default()
                    };
                    Ok(Rc::new(Built::leaf(FieldClass::Integer { layout, style })))
                }
                Found::Base(_) => Err(abstract_type(name, span)),
            },
            _ => Err(Diagnostic::error("expected a type")
                .at(span, "expected the name of a type or `type { ... }`")),
        }
    }

    /// The same of a type that must be a structure.
    pub(super) fn structure(
        &mut self,
        value: &'a Spanned<Value>,
        scope: usize,
    ) -> Result<FieldClass, Diagnostic> {
        let built = self.class(value, scope)?;
        match &built.class {
            class @ FieldClass::Struct { .. } => Ok(class.clone()),
            _ => Err(no_structure(value.span)),
        }
    }

    /// The field class of a declared type.
    pub(super) fn declared(&mut self, at: usize, span: Span) -> Result<Rc<Built>, Diagnostic> {
        match &self.states[at] {
            State::Built(built) => Ok(Rc::clone(built)),
            State::InWork => {
                let declared = self.declarations.get(at).span;
                Err(Diagnostic::error("a type that contains itself")
                    .at(span, "expected a type that does not contain this field")
                    .because(declared, "declared here"))
            }
            State::Untouched => {
                self.states[at] = State::InWork;
                let Declaration { body, scope, .. } = self.declarations.get(at);
                let built = Rc::new(self.build(body, scope, span)?);
                self.states[at] = State::Built(Rc::clone(&built));
                Ok(built)
            }
        }
    }

    /// The field class of a type with a body; `span` is where it is used.
    pub(super) fn build(
        &mut self,
        body: &'a Block,
        scope: usize,
        span: Span,
    ) -> Result<Built, Diagnostic> {
        self.spend(weight(self.depth), span)?;
        self.depth += 1;
        if !has_room(self.depth) {
            return Err(too_deep(span));
        }
        let lineage = self.declarations.lineage(body, scope)?;
        self.check_attributes(body, lineage.base)?;
        let built = match lineage.base {
            Base::Integer | Base::GccBitfield | Base::Enum | Base::Predefined { .. } => {
                self.integer(&lineage, body.span)?
            }
            Base::Struct => self.members(&lineage, body.span)?,
            Base::Array => {
                let (length, ..) = self.require(&lineage, "length", body.span)?;
                let length = Length::Static(attributes::unsigned(length)?);
                self.array(&lineage, length, (0, 0), body.span)?
            }
            Base::Sequence => {
                let (length, _, scope) = self.require(&lineage, "length_type", body.span)?;
                let built = self.class(length, scope)?;
                match &built.class {
                    FieldClass::Integer { style, layout } if !style.signed && layout.bits <= 64 => {
                    }
                    FieldClass::Integer { style, layout } if !style.signed => {
                        return Err(
                            Diagnostic::error(format!("a length of {} bits", layout.bits))
                                .at(length.span, "expected a type of at most 64 bits"),
                        );
                    }
                    _ => {
                        return Err(Diagnostic::error(
                            "the length of a sequence is not an unsigned integer",
                        )
                        .at(
                            length.span,
                            "expected an unsigned type that derives from `integer`",
                        ));
                    }
                }
                let inline = Length::Inline(Box::new(built.class.clone()));
                let size = (built.count, built.height);
                self.array(&lineage, inline, size, body.span)?
            }
            Base::Text => {
                lineage.read("encoding", attributes::encoding)?;
                Built::leaf(FieldClass::Text {
                    encoding: Encoding::Utf8,
                    align: 8,
                })
            }
        };
        self.depth -= 1;
        Ok(built)
    }

    fn check_attributes(&mut self, body: &Block, base: Base) -> Result<(), Diagnostic> {
        let known = base.attributes();
        attributes::check(body, base.description(), known, &mut self.warnings)
    }

    fn spend(&mut self, amount: usize, span: Span) -> Result<(), Diagnostic> {
        self.budget = self
            .budget
            .checked_sub(amount)
            .ok_or_else(|| too_many_fields(span))?;
        Ok(())
    }

    fn require(
        &self,
        lineage: &Lineage<'a>,
        key: &str,
        span: Span,
    ) -> Result<(&'a Spanned<Value>, &'a Block, usize), Diagnostic> {
        let owner = lineage.base.description();
        lineage
            .get(key)
            .ok_or_else(|| attributes::missing(owner, key, span))
    }

    /// An integer, bit field or enumeration (§4.1.5, §4.1.6, §4.1.8).
    fn integer(&mut self, lineage: &Lineage<'a>, span: Span) -> Result<Built, Diagnostic> {
        let predefined = match lineage.base {
            Base::Predefined { bits, signed } => Some((bits, signed)),
            _ => None,
        };
        let own_size = lineage.read("size", attributes::size)?;
        let bits = match (own_size, predefined) {
            (Some(bits), _) | (None, Some((bits, _))) => bits,
            (None, None) => {
                return Err(attributes::missing(
                    lineage.base.description(),
                    "size",
                    span,
                ));
            }
        };
        let signed = match lineage.read("signed", attributes::boolean)? {
            Some(signed) => signed,
            None => predefined.is_some_and(|(_, signed)| signed),
        };
        let align = match lineage.read("align", align)? {
            Some(align) => align,
            None if own_size.is_none() => self.alignment.of(bits),
            None if bits.is_multiple_of(8) => 8,
            None => 1,
        };
        let unit = match lineage.base {
            Base::GccBitfield => Some(self.unit(lineage, bits, span)?),
            _ => None,
        };
        let order = lineage.read("byte_order", attributes::byte_order)?;
        let labels = match lineage.get("map") {
            Some((map, ..)) if bits > 64 => {
                return Err(
                    Diagnostic::error(format!("enumeration of an integer of {bits} bits"))
                        .at(map.span, "expected values of at most 64 bits"),
                );
            }
            Some((map, ..)) => Some(Arc::new(self.labels(map, bits, signed)?)),
            None if lineage.base == Base::Enum => {
                return Err(attributes::missing("an enumeration", "map", span));
            }
            None => None,
        };
        let class = FieldClass::Integer {
            layout: BitLayout {
                bits,
                align,
                order: order.flatten().unwrap_or(self.order),
                reversed: false,
                unit,
            },
            style: IntegerStyle {
                signed,
                labels,
                ..IntegerStyle::default()
            },
        };
        Ok(Built {
            unit: unit.unwrap_or(1),
            ..Built::leaf(class)
        })
    }

    /// The unit of a bit field.
    fn unit(&self, lineage: &Lineage<'a>, bits: u32, span: Span) -> Result<u32, Diagnostic> {
        let (value, ..) = self.require(lineage, "unit_size", span)?;
        let unit = attributes::power(value, "the size of a unit")?;
        if unit < bits {
            return Err(Diagnostic::error(format!(
                "a bit field of {bits} bits in units of {unit} bits"
            ))
            .at(value.span, format!("expected at least {bits} bits")));
        }
        Ok(unit)
    }

    /// The labels of an enumeration.
    fn labels(
        &mut self,
        map: &'a Spanned<Value>,
        bits: u32,
        signed: bool,
    ) -> Result<Labels, Diagnostic> {
        let possible = match signed {
            true => -(1i128 << (bits - 1))..1 << (bits - 1),
            false => 0..1 << bits,
        };
        let mut mappings: Vec<Mapping> = Vec::new();
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for Pair { first, second } in pairs(map, "{ value, string }")? {
            let value = attributes::integer(first)?;
            let label = attributes::name(second)?;
            if !possible.contains(&value) {
                let warning = format!("label `{label}` stands for a value the integer cannot have");
                let expected = format!("expected {} to {}", possible.start, possible.end - 1);
                self.warnings
                    .push(Diagnostic::warning(warning).at(first.span, expected));
                // Its bits may be those of another value, which it does not stand for.
                continue;
            }
            // Bits, in 64 of them.
            let range = (value as u64, value as u64);
            let at = *positions.entry(label).or_insert(mappings.len());
            match mappings.get_mut(at) {
                Some(mapping) => mapping.ranges.push(range),
                None => mappings.push(Mapping {
                    label: label.into(),
                    ranges: vec![range],
                }),
            }
        }
        Ok(Labels::new(signed, mappings))
    }

    /// A structure (§4.2.1): as aligned as its members are, and the units of its bit fields.
    fn members(&mut self, lineage: &Lineage<'a>, span: Span) -> Result<Built, Diagnostic> {
        let (fields, body, scope) = self.require(lineage, "fields", span)?;
        let is_packet_header =
            (body.name.as_ref()).is_some_and(|name| name.value == "packet_header");
        let mut members: Vec<Member> = Vec::new();
        let mut names: HashSet<&str> = HashSet::new();
        let (mut count, mut height, mut min_align) = (1, 0, 1);
        for Pair { first, second } in pairs(fields, "{ type, name }")? {
            let mut name = attributes::name(second)?;
            // The RFC itself has two fields of this name in its packet header.
            if is_packet_header && name == "checksum" && names.contains(name) {
                name = "checksum_scheme";
            }
            if !names.insert(name) {
                return Err(
                    Diagnostic::error(format!("a structure has two fields `{name}`"))
                        .at(second.span, "the second one"),
                );
            }
            let built = self.class(first, scope)?;
            count += built.count;
            height = height.max(built.height);
            min_align = min_align.max(built.unit);
            members.push(Member {
                name: name.into(),
                class: built.class.clone(),
                attributes: Vec::new(),
            });
        }
        Ok(Built {
            class: FieldClass::Struct { members, min_align },
            count,
            height: height + 1,
            unit: 1,
        })
    }

    /// An array or sequence (§4.2.2, §4.2.3); `size` is that of the class of its length.
    fn array(
        &mut self,
        lineage: &Lineage<'a>,
        length: Length,
        size: (usize, usize),
        span: Span,
    ) -> Result<Built, Diagnostic> {
        let (element, _, scope) = self.require(lineage, "elem_type", span)?;
        let element = self.class(element, scope)?;
        Ok(Built {
            class: FieldClass::Array {
                element: Box::new(element.class.clone()),
                length,
                min_align: 1,
                roles: Vec::new(),
            },
            count: 1 + size.0 + element.count,
            height: 1 + size.1.max(element.height),
            unit: element.unit,
        })
    }
}

/// The pairs of a list.
fn pairs<'a>(value: &'a Spanned<Value>, item: &str) -> Result<&'a [Pair], Diagnostic> {
    match &value.value {
        Value::List(pairs) => Ok(pairs),
        _ => Err(Diagnostic::error("expected a list")
            .at(value.span, format!("expected `{{ {item}, ... }}`"))),
    }
}

fn abstract_type(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("`{name}` is an abstract type"))
        .at(span, "expected a type that has a form in the trace")
        .with_help(format!(
            "derive one from it: `type {{ parent = {name}; ... }}`"
        ))
}

pub(super) fn no_structure(span: Span) -> Diagnostic {
    Diagnostic::error("a type that is not a structure")
        .at(span, "expected a type that derives from `struct`")
}
