//! Types that are being written.

use std::fmt::Write;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Labels, Scope};
use kymo_time::Clock;

use super::super::build::{Roots, Shared};
use super::super::resolve::{Frame, Resolver, SCOPES};
use super::super::types::{Class, Fields, Type};
use super::raise::character;
use crate::class::{BitLayout, FieldClass, FieldPath, FieldRef, IntegerStyle, Length, Role, Step};
use crate::metadata::lexer::Span;
use crate::metadata::limits::{SPARE_CLASSES, Warnings};
use crate::metadata::text::{Text, order, quoted};
use crate::metadata::tokens::Spanned;
use crate::metadata::write::WriteError;

/// Writes the types of one scope.
pub(super) struct Printer<'a> {
    text: &'a mut Text,
    order: ByteOrder,
    clock: Option<&'a Clock>,
    roots: &'a Roots,
    scope: Scope,
    /// The way from the scope's structure to the place.
    frames: Vec<Frame<'a>>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        text: &'a mut Text,
        order: ByteOrder,
        clock: Option<&'a Clock>,
        roots: &'a Roots,
        scope: Scope,
    ) -> Self {
        Self {
            text,
            order,
            clock,
            roots,
            scope,
            frames: Vec::new(),
        }
    }

    /// `KEY := TYPE;`
    pub(super) fn assign(
        &mut self,
        key: &str,
        class: &FieldClass,
        declared: &'a Type,
    ) -> Result<(), WriteError> {
        self.text.start();
        self.text.push(&format!("{key} := "));
        self.class(class, declared)?;
        self.text.end(";");
        Ok(())
    }

    /// A member or option: its type, its name, the lengths of arrays.
    fn field(
        &mut self,
        name: &str,
        class: &FieldClass,
        declared: &'a Type,
    ) -> Result<(), WriteError> {
        self.text.start();
        let (mut element, mut declared) = (class, declared);
        let mut lengths = String::new();
        let depth = self.frames.len();
        while let Class::Array { element: inner, .. } = &declared.class {
            let length = match element {
                FieldClass::Array { length, .. } | FieldClass::SizedText { length, .. } => length,
                _ => return Err(unlike()),
            };
            let length = match length {
                Length::Static(length) => length.to_string(),
                Length::Dynamic(field) => self.reference(field)?,
                Length::Inline(_) => return Err(unlike()),
            };
            let _ = write!(lengths, "[{length}]");
            let step = Step::Element;
            self.frames.push(Frame {
                class: declared,
                step,
            });
            declared = inner;
            match element {
                FieldClass::Array { element: inner, .. } => element = inner,
                // The characters have no class of their own.
                _ => break,
            }
        }
        if let FieldClass::SizedText { .. } = element {
            self.characters();
        } else {
            self.class(element, declared)?;
        }
        self.frames.truncate(depth);
        let bits = match element.layout().filter(|layout| layout.unit.is_some()) {
            None => String::new(),
            // TSDL has no arrays of bit fields.
            Some(_) if !lengths.is_empty() => return Err(unlike()),
            Some(layout) => format!(" : {}", layout.bits),
        };
        self.text.end(&format!(" {name}{lengths}{bits};"));
        Ok(())
    }

    fn fields<'c>(
        &mut self,
        parent: &'a Type,
        fields: &'a Fields,
        classes: impl Iterator<Item = &'c FieldClass>,
    ) -> Result<(), WriteError> {
        self.text.enter();
        for (at, (field, class)) in fields.iter().zip(classes).enumerate() {
            let step = Step::Child(at);
            self.frames.push(Frame {
                class: parent,
                step,
            });
            self.field(&field.declared.value, class, &field.class)?;
            self.frames.pop();
        }
        self.text.leave();
        self.text.push("}");
        Ok(())
    }

    fn class(&mut self, class: &FieldClass, declared: &'a Type) -> Result<(), WriteError> {
        match (class, &declared.class) {
            (FieldClass::Integer { layout, style }, _) => match &style.labels {
                Some(labels) => {
                    self.text.push("enum : ");
                    self.integer(layout, style);
                    self.labels(labels);
                }
                None => self.integer(layout, style),
            },
            (FieldClass::Float(layout), _) => self.float(layout)?,
            (FieldClass::Text { .. }, _) => self.text.push("string { encoding = UTF8; }"),
            (FieldClass::Struct { members, .. }, Class::Struct { fields, align }) => {
                self.text.push("struct");
                self.fields(declared, fields, members.iter().map(|member| &member.class))?;
                if *align != 1 {
                    self.text.push(&format!(" align({align})"));
                }
            }
            (
                FieldClass::Variant { options, selector },
                Class::Variant {
                    options: fields, ..
                },
            ) => {
                let tag = self.reference(selector)?;
                self.text.push(&format!("variant <{tag}>"));
                self.fields(declared, fields, options.iter().map(|option| &option.class))?;
            }
            _ => return Err(unlike()),
        }
        Ok(())
    }

    fn characters(&mut self) {
        let layout = BitLayout {
            order: self.order,
            ..character().layout
        };
        self.text.push("integer { ");
        self.layout(&layout);
        self.text.push("encoding = UTF8; }");
    }

    /// The attributes that an integer and a floating point number have, as far as they are not
    /// the default.
    fn layout(&mut self, layout: &BitLayout) {
        // A bit field is declared with the type of its unit.
        let size = layout.unit.unwrap_or(layout.bits);
        self.text
            .push(&format!("size = {size}; align = {}; ", layout.align));
        self.byte_order(layout);
    }

    fn byte_order(&mut self, layout: &BitLayout) {
        if layout.order != self.order {
            let order = order(layout.order);
            self.text.push(&format!("byte_order = {order}; "));
        }
    }

    fn integer(&mut self, layout: &BitLayout, style: &IntegerStyle) {
        self.text.push("integer { ");
        self.layout(layout);
        if style.signed {
            self.text.push("signed = true; ");
        }
        let base = match style.base {
            Base::Binary => "base = 2; ",
            Base::Octal => "base = 8; ",
            Base::Decimal => "",
            Base::Hexadecimal => "base = 16; ",
        };
        self.text.push(base);
        let is_time = style
            .roles
            .iter()
            .any(|role| matches!(role, Role::DefaultClockTimestamp | Role::PacketEndTimestamp));
        if let Some(clock) = self.clock.filter(|_| is_time) {
            let name = clock.name.as_deref().unwrap_or_default();
            self.text.push(&format!("map = clock.{name}.value; "));
        }
        self.text.push("}");
    }

    fn float(&mut self, layout: &BitLayout) -> Result<(), WriteError> {
        let (exponent, mantissa) = match layout.bits {
            16 => (5, 11),
            32 => (8, 24),
            64 => (11, 53),
            128 => (15, 113),
            _ => return Err(unlike()),
        };
        self.text.push(&format!(
            "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {}; ",
            layout.align
        ));
        self.byte_order(layout);
        self.text.push("}");
        Ok(())
    }

    fn labels(&mut self, labels: &Labels) {
        self.text.enter();
        let wide = |bits: u64| match labels.is_signed() {
            true => i128::from(bits as i64),
            false => i128::from(bits),
        };
        for mapping in labels.mappings() {
            for &(low, high) in &mapping.ranges {
                let label = quoted(&mapping.label);
                let range = match low == high {
                    true => wide(low).to_string(),
                    false => format!("{} ... {}", wide(low), wide(high)),
                };
                self.text.line(&format!("{label} = {range},"));
            }
        }
        self.text.leave();
        self.text.push("}");
    }

    /// The name by which the reader finds the fields of a reference: as short as can be.
    fn reference(&self, field: &FieldRef) -> Result<String, WriteError> {
        let target = field.targets.first().ok_or_else(unknown)?;
        let root = self.roots[target.scope as usize]
            .as_deref()
            .ok_or_else(unknown)?;
        let prefix = SCOPES
            .iter()
            .find(|(_, scope)| *scope == target.scope)
            .map_or("", |(prefix, _)| prefix);
        let mut candidates = Vec::new();
        // A variant on the way is named, or all of its options are meant.
        for with_options in [true, false] {
            let names = names(root, target, with_options).ok_or_else(unknown)?;
            if target.scope == self.scope {
                let shared = self
                    .frames
                    .iter()
                    .zip(&target.steps)
                    .take_while(|(frame, step)| frame.step == **step)
                    .count();
                // From the structure that the ways share, and from those around it.
                for from in (0..=shared).rev() {
                    let names: Vec<_> = names
                        .iter()
                        .filter(|(depth, _)| *depth >= from)
                        .map(|(_, name)| *name)
                        .collect();
                    candidates.push(names.join("."));
                }
            }
            let names: Vec<_> = names.iter().map(|(_, name)| *name).collect();
            candidates.push(format!("{prefix}{}", names.join(".")));
        }
        candidates
            .into_iter()
            .find(|name| !name.is_empty() && self.finds(name, &field.targets))
            .ok_or_else(|| {
                WriteError(
                    "CTF 1.8 cannot describe the class: a length or selector refers to fields that \
                     have the same name"
                        .to_owned(),
                )
            })
    }

    /// Whether the reader finds these fields at this place.
    fn finds(&self, name: &str, targets: &[FieldPath]) -> bool {
        let mut shared = Shared {
            budget: SPARE_CLASSES,
            clocks: 0,
            warnings: Warnings::default(),
        };
        let mut resolver = Resolver {
            roots: self.roots,
            scope: self.scope,
            frames: &self.frames,
            shared: &mut shared,
        };
        let name = Spanned {
            value: name.to_owned(),
            span: Span::default(),
        };
        resolver
            .resolve(&name)
            .is_ok_and(|found| found.iter().map(|found| &found.path).eq(targets))
    }
}

/// The declared names on the way to a field, each with how many steps lie before it.
fn names<'t>(
    root: &'t Type,
    target: &FieldPath,
    with_options: bool,
) -> Option<Vec<(usize, &'t str)>> {
    let mut names = Vec::new();
    let mut class = root;
    for (depth, step) in target.steps.iter().enumerate() {
        class = match (&class.class, *step) {
            (Class::Struct { fields, .. }, Step::Child(at)) => {
                let field = fields.iter().nth(at)?;
                names.push((depth, &*field.declared.value));
                &field.class
            }
            (Class::Variant { options, .. }, Step::Child(at)) => {
                let option = options.iter().nth(at)?;
                if with_options {
                    names.push((depth, &*option.declared.value));
                }
                &option.class
            }
            (Class::Array { element, .. }, Step::Element) => element,
            _ => return None,
        };
    }
    Some(names)
}

fn unlike() -> WriteError {
    WriteError("no class of CTF 1.8: TSDL has no such type".to_owned())
}

fn unknown() -> WriteError {
    WriteError("a length or selector refers to no field".to_owned())
}
