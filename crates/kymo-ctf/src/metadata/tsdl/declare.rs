//! Declarations: scopes in which types are declared, names looked up, attributes read.

use std::collections::HashMap;
use std::rc::Rc;

use kymo_machine::ByteOrder;
use kymo_model::Base;
use kymo_text::diagnostic::Diagnostic;

use super::ast::{Declaration, Declarator, Enumerator, Member, TypeKind, TypeSpec, Value};
use super::attributes;
use super::leaves::bit_field;
use super::references::{Body, Purpose, References};
use super::types::{Class, Integer, Length, Type, compound, leaf};
use crate::class::EnvironmentValue;
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
    pub(super) references: References,
    /// How many more types may be looked at in search of fields.
    pub(super) budget: usize,
}

impl<'a> Types<'a> {
    pub(super) fn new(
        byte_order: ByteOrder,
        clocks: HashMap<String, usize>,
        environment: &'a [(String, EnvironmentValue)],
        budget: usize,
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
            references: References::default(),
            budget,
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

    /// Whether the words that are not a type are a type, a field name and what follows a
    /// `;` that is missing.
    fn missing_semicolon(&self, name: &str, words: &[Span]) -> Option<Diagnostic> {
        /// No type has a name of more words.
        const MOST: usize = 8;
        let mut ends = name.match_indices(' ').map(|(at, _)| at).take(MOST);
        let count = 1 + ends.position(|end| self.find(Namespace::Alias, &name[..end]).is_some())?;
        let span = *words.get(count + 1)?;
        Some(Diagnostic::error("missing `;`").at(span, "expected `;` before this"))
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
                lengths,
            } => {
                let element = self.declared(target, declarator)?;
                let class = self.arrays(element, lengths, name.span)?;
                self.register(Namespace::Alias, name, class)
            }
            Declaration::Typedef {
                target,
                declarators,
            } => self.declarators(target, declarators, |types, declarator, name, class| {
                match &declarator.bits {
                    Some(bits) => Err(Diagnostic::error("bit field that is not a member").at(
                        bits.span,
                        "expected a bit field in a structure or variant only",
                    )),
                    None => types.register(Namespace::Alias, name, class),
                }
            }),
        }
    }

    /// Hands each declarator's name and type to `take`.
    fn declarators(
        &mut self,
        class: &TypeSpec,
        declarators: &[Declarator],
        mut take: impl FnMut(&mut Self, &Declarator, &Name, Rc<Type>) -> Result<(), Diagnostic>,
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
            let class = self.arrays(element, &declarator.lengths, declarator.span)?;
            if let Some(name) = &declarator.name {
                take(self, declarator, name, class)?;
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
        self.arrays(element, &declarator.lengths, declarator.span)
    }

    /// A pointer, which must be declared as an alias; as an integer it is hexadecimal.
    fn pointer(
        &mut self,
        class: &TypeSpec,
        declarator: &Declarator,
    ) -> Result<Rc<Type>, Diagnostic> {
        let base = match &class.kind {
            TypeKind::Alias { name, .. } => name.clone(),
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

    /// Arrays of `element`, one for each length.
    fn arrays(
        &mut self,
        mut element: Rc<Type>,
        lengths: &[Spanned<Value>],
        span: Span,
    ) -> Result<Rc<Type>, Diagnostic> {
        for length in lengths.iter().rev() {
            let length = match &length.value {
                Value::Path(path) => match path.strip_prefix("env.") {
                    Some(entry) => Length::Static(self.environment_length(entry, length.span)?),
                    None => {
                        let name = Spanned {
                            value: path.clone(),
                            span: length.span,
                        };
                        Length::Field(self.reference(&name, Purpose::Length)?)
                    }
                },
                _ => Length::Static(attributes::unsigned(length)?),
            };
            let height = element.height + 1;
            element = compound(Class::Array { element, length }, height, span)?;
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
            TypeKind::Alias { name, words } => self
                .lookup(Namespace::Alias, name, class.span)
                .map_err(|error| self.missing_semicolon(name, words).unwrap_or(error)),
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
        let (
            Body {
                fields, unit_align, ..
            },
            height,
        ) = self.fields(body, true)?;
        let align = align.unwrap_or(1).max(unit_align);
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
        // What is around the braces selects, whatever is declared in them.
        let tag = tag
            .map(|tag| self.reference(tag, Purpose::Tag))
            .transpose()?;
        let Some(body) = body else {
            let name = name.map_or("", |name| &name.value);
            let class = self.lookup(Namespace::Variant, name, span)?;
            return Ok(match (&class.class, tag) {
                // The same options, selected by another field.
                (Class::Variant { options, .. }, Some(tag)) => Rc::new(Type {
                    class: Class::Variant {
                        options: options.clone(),
                        tag: Some(tag),
                    },
                    height: class.height,
                }),
                _ => class,
            });
        };
        let (Body { fields, .. }, height) = self.fields(body, false)?;
        let options = Rc::new(fields);
        let class = compound(Class::Variant { options, tag }, height, span)?;
        if let Some(name) = name {
            self.register(Namespace::Variant, name, class.clone())?;
        }
        Ok(class)
    }

    /// What stands in the braces of a structure or variant, and the height of the whole.
    fn fields(
        &mut self,
        members: &[Member],
        is_structure: bool,
    ) -> Result<(Body, usize), Diagnostic> {
        let owner = match is_structure {
            true => "this structure",
            false => "this variant",
        };
        self.references.enter(is_structure);
        self.scoped(|types| {
            let mut height = 0;
            for member in members {
                match member {
                    Member::Declaration(declaration) => types.declare(declaration)?,
                    Member::Fields { class, declarators } => {
                        types.declarators(
                            class,
                            declarators,
                            |types, declarator, name, class| {
                                height = height.max(class.height);
                                types.member(owner, declarator, name, class)
                            },
                        )?;
                    }
                }
            }
            let mut body = types.references.leave();
            body.fields.remove_underscores();
            Ok((body, height + 1))
        })
    }

    /// Adds a member or option to the body in hand; `owner` is what errors call the whole.
    fn member(
        &mut self,
        owner: &str,
        declarator: &Declarator,
        name: &Name,
        mut class: Rc<Type>,
    ) -> Result<(), Diagnostic> {
        let body = &mut self.references.body;
        if is_untagged(&class) {
            return Err(untagged(name.span));
        }
        if let Some(bits) = &declarator.bits {
            let (field, unit_align) = bit_field(&class, bits)?;
            body.unit_align = body.unit_align.max(unit_align);
            class = field;
        }
        body.fields.push(name.clone(), class, owner)
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
                Diagnostic::error("enumeration of a type that is not an integer")
                    .at(span, "expected an integer after the colon"),
            );
        };
        if integer.layout.bits > 64 {
            return Err(Diagnostic::error(format!(
                "enumeration of an integer of {} bits",
                integer.layout.bits
            ))
            .at(span, "expected an integer of 1 to 64 bits after the colon"));
        }
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
}

/// Whether a type is a variant that nothing selects, or an array of such.
fn is_untagged(class: &Type) -> bool {
    match &class.class {
        Class::Variant { tag, .. } => tag.is_none(),
        Class::Array { element, .. } => is_untagged(element),
        _ => false,
    }
}

/// That nothing selects the options of a variant.
pub(super) fn untagged(span: Span) -> Diagnostic {
    Diagnostic::error("variant without a tag")
        .at(span, "expected a variant that says what selects")
        .with_help("write `variant <NAME OF AN ENUMERATION FIELD> ...`")
}
