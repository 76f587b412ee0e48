//! Declarations: scopes in which types are declared, names looked up, attributes read.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Labels, Mapping};
use kymo_text::diagnostic::Diagnostic;

use super::ast::{
    Attribute, Declaration, Declarator, Enumerator, Member, TypeKind, TypeSpec, Value,
};
use super::attributes::{self, Attributes};
use super::types::{Class, Enumeration, Fields, Integer, Length, Type, compound, leaf};
use crate::class::{BitLayout, EnvironmentValue};
use crate::metadata::lexer::Span;
use crate::metadata::limits::Warnings;
use crate::metadata::tokens::{Name, Spanned};

/// The name spaces of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Namespace {
    Alias,
    Struct,
    Variant,
    Enum,
}

impl Namespace {
    fn word(self) -> &'static str {
        match self {
            Self::Alias => "type",
            Self::Struct => "structure",
            Self::Variant => "variant",
            Self::Enum => "enumeration",
        }
    }
}

/// Types declared in one pair of braces, and where.
type Scope = HashMap<(Namespace, String), (Rc<Type>, Span)>;

/// What declares and looks up types.
pub(super) struct Types<'a> {
    /// The native byte order.
    pub(super) byte_order: ByteOrder,
    /// Names of the clocks.
    pub(super) clocks: HashMap<String, usize>,
    /// The entries of the environment.
    environment: HashMap<&'a str, &'a EnvironmentValue>,
    pub(super) warnings: Warnings,
    scopes: Vec<Scope>,
}

impl<'a> Types<'a> {
    pub(super) fn new(
        byte_order: ByteOrder,
        clocks: HashMap<String, usize>,
        environment: &'a [(String, EnvironmentValue)],
    ) -> Self {
        Self {
            byte_order,
            clocks,
            environment: environment
                .iter()
                .map(|(name, value)| (&**name, value))
                .collect(),
            warnings: Warnings::default(),
            scopes: vec![Scope::new()],
        }
    }

    /// Runs something in a scope of its own.
    pub(super) fn scoped<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(Scope::new());
        let result = inner(self);
        self.scopes.pop();
        result
    }

    fn find(&self, space: Namespace, name: &str) -> Option<Rc<Type>> {
        let key = (space, name.to_owned());
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(&key))
            .map(|(class, _)| class.clone())
    }

    fn lookup(&self, space: Namespace, name: &str, span: Span) -> Result<Rc<Type>, Diagnostic> {
        self.find(space, name).ok_or_else(|| {
            let article = if space == Namespace::Enum { "an" } else { "a" };
            let what = space.word();
            Diagnostic::error(format!("unknown {what} `{name}`")).at(
                span,
                format!("expected {article} {what} that was declared before"),
            )
        })
    }

    fn register(
        &mut self,
        space: Namespace,
        name: &Name,
        class: Rc<Type>,
    ) -> Result<(), Diagnostic> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let previous = scope.insert((space, name.value.clone()), (class, name.span));
        match previous {
            None => Ok(()),
            Some((_, first)) => Err(Diagnostic::error(format!(
                "{} `{}` is declared twice",
                space.word(),
                name.value
            ))
            .at(name.span, "declared again in the same scope")
            .because(first, "first declared here")),
        }
    }

    /// Declares types.
    pub(super) fn declare(&mut self, declaration: &Declaration) -> Result<(), Diagnostic> {
        match declaration {
            Declaration::Named(class) => self.class(class).map(drop),
            Declaration::Alias {
                target,
                declarator,
                name,
            } => {
                let class = self.declared(target, declarator)?;
                self.register(Namespace::Alias, name, class)
            }
            Declaration::Typedef {
                target,
                declarators,
            } => self.declarators(target, declarators, |types, name, class| {
                types.register(Namespace::Alias, name, class)
            }),
        }
    }

    /// Hands each declarator's name and type to `take`.
    fn declarators(
        &mut self,
        class: &TypeSpec,
        declarators: &[Declarator],
        mut take: impl FnMut(&mut Self, &Name, Rc<Type>) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        // A structure with a body must be declared once only, whatever it is used for.
        let mut base = None;
        for declarator in declarators {
            let element = if declarator.pointers.is_empty() {
                match &base {
                    Some(base) => Rc::clone(base),
                    None => Rc::clone(base.insert(self.class(class)?)),
                }
            } else {
                self.pointer(class, declarator)?
            };
            let class = self.arrays(element, declarator)?;
            if let Some(name) = &declarator.name {
                take(self, name, class)?;
            }
        }
        Ok(())
    }

    fn declared(
        &mut self,
        class: &TypeSpec,
        declarator: &Declarator,
    ) -> Result<Rc<Type>, Diagnostic> {
        let element = if declarator.pointers.is_empty() {
            self.class(class)?
        } else {
            self.pointer(class, declarator)?
        };
        self.arrays(element, declarator)
    }

    /// A pointer, which must be declared as an alias; as an integer it is hexadecimal.
    fn pointer(
        &mut self,
        class: &TypeSpec,
        declarator: &Declarator,
    ) -> Result<Rc<Type>, Diagnostic> {
        let base = match &class.kind {
            TypeKind::Alias(words) => words.clone(),
            TypeKind::Struct {
                name: Some(name), ..
            } => format!("struct {}", name.value),
            TypeKind::Variant {
                name: Some(name), ..
            } => format!("variant {}", name.value),
            TypeKind::Enum {
                name: Some(name), ..
            } => format!("enum {}", name.value),
            _ => {
                return Err(Diagnostic::error("pointer to a type without a name")
                    .at(class.span, "expected the name of a type before `*`"));
            }
        };
        let name = base + &declarator.pointers;
        let class = self.lookup(Namespace::Alias, &name, class.span)?;
        Ok(match &class.class {
            Class::Integer(integer) if integer.base != Base::Hexadecimal => {
                leaf(Class::Integer(Integer {
                    base: Base::Hexadecimal,
                    ..integer.clone()
                }))
            }
            _ => class,
        })
    }

    /// Arrays of `element`, as many as the declarator has lengths.
    fn arrays(
        &mut self,
        mut element: Rc<Type>,
        declarator: &Declarator,
    ) -> Result<Rc<Type>, Diagnostic> {
        for length in declarator.lengths.iter().rev() {
            let length = match &length.value {
                Value::Path(path) => match path.strip_prefix("env.") {
                    Some(entry) => Length::Static(self.environment_length(entry, length.span)?),
                    None => Length::Field(Spanned {
                        value: path.clone(),
                        span: length.span,
                    }),
                },
                _ => Length::Static(attributes::unsigned(length)?),
            };
            let height = element.height + 1;
            element = compound(Class::Array { element, length }, height, declarator.span)?;
        }
        Ok(element)
    }

    /// A length that the environment gives.
    fn environment_length(&self, entry: &str, span: Span) -> Result<u64, Diagnostic> {
        match self.environment.get(entry) {
            Some(EnvironmentValue::Integer(value)) if *value >= 0 => Ok(*value as u64),
            Some(_) => Err(
                Diagnostic::error(format!("`env.{entry}` is not an unsigned integer"))
                    .at(span, "expected an unsigned integer"),
            ),
            None => Err(Diagnostic::error(format!("no entry `{entry}` in `env`"))
                .at(span, "expected an entry of the environment")),
        }
    }

    /// The type that a specification describes.
    pub(super) fn class(&mut self, class: &TypeSpec) -> Result<Rc<Type>, Diagnostic> {
        match &class.kind {
            TypeKind::Alias(name) => self.lookup(Namespace::Alias, name, class.span),
            TypeKind::Integer(attributes) => self.integer(attributes, class.span),
            TypeKind::Float(attributes) => self.float(attributes, class.span),
            TypeKind::Text(attributes) => self.text(attributes),
            TypeKind::Struct { name, body, align } => {
                self.structure(class.span, name.as_ref(), body.as_deref(), align.as_ref())
            }
            TypeKind::Variant { name, tag, body } => {
                self.variant(class.span, name.as_ref(), tag.as_ref(), body.as_deref())
            }
            TypeKind::Enum {
                name,
                container,
                body,
            } => self.enumeration(
                class.span,
                name.as_ref(),
                container.as_deref(),
                body.as_deref(),
            ),
        }
    }

    fn integer(&mut self, list: &[Attribute], span: Span) -> Result<Rc<Type>, Diagnostic> {
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
                    bits @ 1..=64 => Ok(bits as u32),
                    bits => Err(Diagnostic::error(format!("integer of {bits} bits"))
                        .at(size.span, "expected 1 to 64 bits")),
                },
            )?;
        let clock = match attributes.get("map") {
            Some(map) => self.clock(map)?,
            None => None,
        };
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
    fn clock(&mut self, map: &Spanned<Value>) -> Result<Option<(usize, Span)>, Diagnostic> {
        let path = attributes::word(map).unwrap_or_default();
        let name = path
            .strip_prefix("clock.")
            .and_then(|path| path.strip_suffix(".value"));
        let Some(name) = name else {
            self.warnings.push(
                Diagnostic::warning("mapped to something that is not the value of a clock")
                    .at(map.span, "expected `clock.NAME.value`; not used"),
            );
            return Ok(None);
        };
        match self.clocks.get(name) {
            Some(&clock) => Ok(Some((clock, map.span))),
            None => Err(Diagnostic::error(format!("unknown clock `{name}`"))
                .at(map.span, "expected the name of a `clock` block")),
        }
    }

    fn float(&mut self, list: &[Attribute], span: Span) -> Result<Rc<Type>, Diagnostic> {
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

    fn text(&mut self, list: &[Attribute]) -> Result<Rc<Type>, Diagnostic> {
        let attributes = Attributes::new(list, "a string", &["encoding"], &mut self.warnings)?;
        attributes.read("encoding", attributes::encoding)?;
        Ok(leaf(Class::Text))
    }

    fn structure(
        &mut self,
        span: Span,
        name: Option<&Name>,
        body: Option<&[Member]>,
        align: Option<&Spanned<Value>>,
    ) -> Result<Rc<Type>, Diagnostic> {
        let align = align.map(attributes::alignment).transpose()?;
        let Some(body) = body else {
            let name = name.map_or("", |name| &name.value);
            return self.lookup(Namespace::Struct, name, span);
        };
        let (fields, height) = self.fields(body, "this structure")?;
        let align = align.unwrap_or(1);
        let class = compound(Class::Struct { fields, align }, height, span)?;
        if let Some(name) = name {
            self.register(Namespace::Struct, name, class.clone())?;
        }
        Ok(class)
    }

    fn variant(
        &mut self,
        span: Span,
        name: Option<&Name>,
        tag: Option<&Name>,
        body: Option<&[Member]>,
    ) -> Result<Rc<Type>, Diagnostic> {
        let class = match body {
            Some(body) => {
                let (options, height) = self.fields(body, "this variant")?;
                let options = Rc::new(options);
                let tag = tag.cloned();
                let class = compound(Class::Variant { options, tag }, height, span)?;
                if let Some(name) = name {
                    self.register(Namespace::Variant, name, class.clone())?;
                }
                return Ok(class);
            }
            None => {
                let name = name.map_or("", |name| &name.value);
                self.lookup(Namespace::Variant, name, span)?
            }
        };
        match (&class.class, tag) {
            // The same options, selected by another field.
            (Class::Variant { options, .. }, Some(tag)) => Ok(Rc::new(Type {
                class: Class::Variant {
                    options: options.clone(),
                    tag: Some(tag.clone()),
                },
                height: class.height,
            })),
            _ => Ok(class),
        }
    }

    /// The members of a structure or options of a variant, and the height of the whole.
    fn fields(&mut self, body: &[Member], owner: &str) -> Result<(Fields, usize), Diagnostic> {
        self.scoped(|types| {
            let mut fields = Fields::default();
            let mut height = 0;
            for member in body {
                match member {
                    Member::Declaration(declaration) => types.declare(declaration)?,
                    Member::Fields { class, declarators } => {
                        types.declarators(class, declarators, |_, name, class| {
                            height = height.max(class.height);
                            fields.push(name.clone(), class, owner)
                        })?;
                    }
                }
            }
            fields.remove_underscores();
            Ok((fields, height + 1))
        })
    }

    fn enumeration(
        &mut self,
        span: Span,
        name: Option<&Name>,
        container: Option<&TypeSpec>,
        body: Option<&[Enumerator]>,
    ) -> Result<Rc<Type>, Diagnostic> {
        let Some(body) = body else {
            let name = name.map_or("", |name| &name.value);
            return self.lookup(Namespace::Enum, name, span);
        };
        let container = match container {
            Some(container) => self.class(container)?,
            None => self.find(Namespace::Alias, "int").ok_or_else(|| {
                Diagnostic::error("enumeration without an integer type")
                    .at(span, "expected `: TYPE` after this")
                    .with_help("without a type, `int` is meant, which is not declared here")
            })?,
        };
        let Class::Integer(integer) = &container.class else {
            return Err(
                Diagnostic::error("enumeration of a type that is no integer")
                    .at(span, "expected an integer after the colon"),
            );
        };
        let labels = self.labels(integer, body)?;
        let class = leaf(Class::Integer(Integer {
            labels: Some(Rc::new(labels)),
            ..integer.clone()
        }));
        if let Some(name) = name {
            self.register(Namespace::Enum, name, class.clone())?;
        }
        Ok(class)
    }

    fn labels(
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
