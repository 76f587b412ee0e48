//! Types without parts: their attributes, labels, bit fields.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kymo_model::{Labels, Mapping};
use kymo_text::diagnostic::Diagnostic;

use super::ast::{Attribute, Enumerator, Value};
use super::attributes::{self, Attributes};
use super::declare::Types;
use super::types::{Class, Enumeration, Integer, Type, leaf};
use crate::class::BitLayout;
use crate::metadata::lexer::Span;
use crate::metadata::limits::MAX_INTEGER_BITS;
use crate::metadata::tokens::Spanned;

impl Types<'_> {
    pub(super) fn integer(
        &mut self,
        list: &[Attribute],
        span: Span,
    ) -> Result<Rc<Type>, Diagnostic> {
        const KNOWN: [&str; 7] = [
            "signed",
            "byte_order",
            "size",
            "align",
            "base",
            "encoding",
            "map",
        ];
        let attributes = Attributes::new(list, "an integer", &KNOWN, &mut self.warnings)?;
        let bits =
            attributes.require(
                "size",
                ("this integer", span),
                |size| match attributes::unsigned(size)? {
                    bits @ 1..=MAX_INTEGER_BITS => Ok(bits as u32),
                    bits => Err(Diagnostic::error(format!("integer of {bits} bits"))
                        .at(size.span, format!("expected 1 to {MAX_INTEGER_BITS} bits"))),
                },
            )?;
        let clock = attributes.read("map", |map| self.clock(map))?;
        Ok(leaf(Class::Integer(Integer {
            layout: self.layout(&attributes, bits)?,
            signed: attributes
                .read("signed", attributes::boolean)?
                .unwrap_or(false),
            base: attributes
                .read("base", attributes::base)?
                .unwrap_or_default(),
            text: attributes
                .read("encoding", attributes::encoding)?
                .unwrap_or(false),
            clock,
            labels: None,
        })))
    }

    fn layout(&self, attributes: &Attributes<'_>, bits: u32) -> Result<BitLayout, Diagnostic> {
        let order = attributes.read("byte_order", attributes::byte_order)?;
        let align = attributes.read("align", attributes::alignment)?;
        Ok(BitLayout {
            bits,
            // Whole bytes lie on bytes, other sizes on bits (§4.1.2).
            align: align.unwrap_or(if bits.is_multiple_of(8) { 8 } else { 1 }),
            order: order.flatten().unwrap_or(self.byte_order),
            reversed: false,
            unit: None,
        })
    }

    /// The clock of `map = clock.NAME.value`.
    fn clock(&self, map: &Spanned<Value>) -> Result<(usize, Span), Diagnostic> {
        let path = attributes::word(map).unwrap_or_default();
        let name = path
            .strip_prefix("clock.")
            .and_then(|path| path.strip_suffix(".value"));
        let Some(name) = name else {
            return Err(
                Diagnostic::error("mapped to something that is not the value of a clock")
                    .at(map.span, "expected `clock.NAME.value`"),
            );
        };
        match self.clocks.get(name) {
            Some(&clock) => Ok((clock, map.span)),
            None => Err(Diagnostic::error(format!("unknown clock `{name}`"))
                .at(map.span, "expected the name of a `clock` block")),
        }
    }

    pub(super) fn float(&mut self, list: &[Attribute], span: Span) -> Result<Rc<Type>, Diagnostic> {
        const KNOWN: [&str; 4] = ["exp_dig", "mant_dig", "byte_order", "align"];
        let owner = "a floating point number";
        let attributes = Attributes::new(list, owner, &KNOWN, &mut self.warnings)?;
        let owner = ("this floating point number", span);
        let exponent = attributes.require("exp_dig", owner, attributes::unsigned)?;
        let mantissa = attributes.require("mant_dig", owner, attributes::unsigned)?;
        let bits = match (exponent, mantissa) {
            (5, 11) => 16,
            (8, 24) => 32,
            (11, 53) => 64,
            (15, 113) => 128,
            _ => {
                let message =
                    format!("no IEEE 754 format has {exponent} and {mantissa} binary digits");
                let expected = "expected 5 and 11, 8 and 24, 11 and 53, or 15 and 113";
                return Err(Diagnostic::error(message).at(span, expected));
            }
        };
        Ok(leaf(Class::Float(self.layout(&attributes, bits)?)))
    }

    pub(super) fn text(&mut self, list: &[Attribute]) -> Result<Rc<Type>, Diagnostic> {
        let attributes = Attributes::new(list, "a string", &["encoding"], &mut self.warnings)?;
        attributes.read("encoding", attributes::encoding)?;
        Ok(leaf(Class::Text))
    }

    pub(super) fn labels(
        &mut self,
        integer: &Integer,
        body: &[Enumerator],
    ) -> Result<Enumeration, Diagnostic> {
        let possible = if integer.signed {
            -(1i128 << (integer.layout.bits - 1))..1 << (integer.layout.bits - 1)
        } else {
            0..1 << integer.layout.bits
        };
        let mut mappings: Vec<Mapping> = Vec::new();
        let mut positions = HashMap::new();
        let mut next = 0;
        for enumerator in body {
            let span = enumerator.label.span;
            let first = enumerator.first.as_ref().map_or(next, |first| first.value);
            let last = enumerator.last.as_ref().map_or(first, |last| last.value);
            if first > last {
                return Err(Diagnostic::error(format!(
                    "the range of `{}` ends before it begins",
                    enumerator.label.value
                ))
                .at(
                    enumerator.last.as_ref().map_or(span, |last| last.span),
                    format!("expected at least {first}"),
                ));
            }
            if last > i128::from(u64::MAX) {
                return Err(Diagnostic::error("integer too large")
                    .at(span, format!("this label would stand for {last}")));
            }
            if !possible.contains(&first) || !possible.contains(&last) {
                self.warnings.push(
                    Diagnostic::warning(format!(
                        "label `{}` stands for values that the integer cannot have",
                        enumerator.label.value
                    ))
                    .at(
                        span,
                        format!("expected {} to {}", possible.start, possible.end - 1),
                    ),
                );
            }
            next = last + 1;
            // Bits, in 64 of them.
            let range = (first as u64, last as u64);
            let label: Arc<str> = enumerator.label.value.as_str().into();
            let at = *positions.entry(label.clone()).or_insert(mappings.len());
            match mappings.get_mut(at) {
                Some(mapping) => mapping.ranges.push(range),
                None => mappings.push(Mapping {
                    label,
                    ranges: vec![range],
                }),
            }
        }
        Ok(Enumeration {
            labels: Arc::new(Labels::new(integer.signed, mappings)),
            positions,
        })
    }
}

/// A bit field of an integer's type, and the alignment of that type: the field lies at any bit,
/// but within one unit of the size of the integer (§4.1.6).
pub(super) fn bit_field(
    class: &Type,
    size: &Spanned<Value>,
) -> Result<(Rc<Type>, u32), Diagnostic> {
    let Class::Integer(integer) = &class.class else {
        return Err(
            Diagnostic::error("bit field of a type that is not an integer").at(
                size.span,
                "expected `;`, or an integer type before the name",
            ),
        );
    };
    let BitLayout {
        bits: unit, align, ..
    } = integer.layout;
    if !unit.is_power_of_two() || unit > 64 {
        return Err(
            Diagnostic::error(format!("bit field in a unit of {unit} bits")).at(
                size.span,
                "expected a type of 1, 2, 4, 8, 16, 32 or 64 bits before the name",
            ),
        );
    }
    let bits = match attributes::unsigned(size)? {
        bits if (1..=u64::from(unit)).contains(&bits) => bits as u32,
        bits => {
            return Err(
                Diagnostic::error(format!("bit field of {bits} bits in a unit of {unit}"))
                    .at(size.span, format!("expected 1 to {unit} bits")),
            );
        }
    };
    let field = leaf(Class::Integer(Integer {
        layout: BitLayout {
            bits,
            align: 1,
            unit: Some(unit),
            ..integer.layout
        },
        ..integer.clone()
    }));
    Ok((field, align))
}
