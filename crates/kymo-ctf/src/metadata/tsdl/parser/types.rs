//! Declarations and types.

use kymo_text::diagnostic::Diagnostic;

use super::super::ast::{Declaration, Declarator, Enumerator, Member, TypeKind, TypeSpec, Value};
use super::super::names;
use super::{Parser, keyword};
use crate::deep::has_room;
use crate::metadata::lexer::{Kind, Mark, Span};
use crate::metadata::limits::too_deep;
use crate::metadata::tokens::{Name, Spanned};

impl Parser<'_> {
    /// Whether a declaration begins here; an attribute may bear the name of a keyword.
    pub(super) fn at_declaration(&self) -> bool {
        matches!(
            self.tokens.word(),
            Some("typealias" | "typedef" | "struct" | "variant" | "enum")
        ) && !self.tokens.next_at(&[Mark::Equal, Mark::Assign, Mark::Dot])
    }

    pub(super) fn declaration(&mut self) -> Result<Declaration, Diagnostic> {
        self.tokens.count()?;
        let declaration = match self.tokens.word() {
            Some("typealias") => {
                self.tokens.advance()?;
                let target = self.unnamed_type()?;
                let declarator = self.declarator(None, false)?;
                self.tokens.expect(Mark::Assign)?;
                let mut name = self.alias_name()?;
                let lengths = self.lengths(&mut name.span)?;
                Declaration::Alias {
                    target,
                    declarator,
                    name,
                    lengths,
                }
            }
            Some("typedef") => {
                self.tokens.advance()?;
                let (target, declarators) = self.named_type()?;
                Declaration::Typedef {
                    target,
                    declarators,
                }
            }
            _ => Declaration::Named(self.unnamed_type()?),
        };
        self.tokens.expect(Mark::Semicolon)?;
        Ok(declaration)
    }

    /// The name of an alias: several words, and asterisks.
    fn alias_name(&mut self) -> Result<Name, Diagnostic> {
        let mut name = self.words("the name of the alias")?;
        let words = match name.value.split_once(' ') {
            Some(("struct" | "variant" | "enum", words)) => words,
            _ => &name.value,
        };
        if let Some(word) = words.split(' ').find(|word| names::is_of_grammar(word)) {
            return Err(keyword(&Name {
                value: word.to_owned(),
                span: name.span,
            }));
        }
        let (pointers, end) = self.pointers()?;
        name.value.push_str(&pointers);
        name.span = name.span.to(end);
        Ok(name)
    }

    fn words(&mut self, expected: &str) -> Result<Name, Diagnostic> {
        let mut words = self.tokens.name(expected)?;
        while self.tokens.current.kind == Kind::Word {
            let word = self.tokens.name(expected)?;
            words.value.push(' ');
            words.value.push_str(&word.value);
            words.span = words.span.to(word.span);
        }
        Ok(words)
    }

    /// ` *` or ` * const` for every pointer, and the end of the last one.
    fn pointers(&mut self) -> Result<(String, Span), Diagnostic> {
        let mut pointers = String::new();
        let mut end = Span::default();
        while self.tokens.at(Mark::Star) {
            end = self.tokens.advance()?.span;
            pointers.push_str(" *");
            if self.tokens.word() == Some("const") {
                end = self.tokens.advance()?.span;
                pointers.push_str(" const");
            }
        }
        Ok((pointers, end))
    }

    /// A type that no name follows.
    pub(super) fn unnamed_type(&mut self) -> Result<TypeSpec, Diagnostic> {
        if let Some(class) = self.own_type()? {
            return Ok(class);
        }
        let words = self.words("a type")?;
        Ok(TypeSpec {
            span: words.span,
            kind: TypeKind::Alias {
                name: words.value,
                words: Vec::new(),
            },
        })
    }

    /// A type and the names of what is of that type.
    fn named_type(&mut self) -> Result<(TypeSpec, Vec<Declarator>), Diagnostic> {
        let (class, name) = match self.own_type()? {
            Some(class) => (class, None),
            None => self.alias_and_name()?,
        };
        Ok((class, self.declarators(name)?))
    }

    /// Names separated by commas, of which the first one may have been read before.
    fn declarators(&mut self, first: Option<Name>) -> Result<Vec<Declarator>, Diagnostic> {
        let mut declarators = vec![self.declarator(first, true)?];
        while self.tokens.eat(Mark::Comma)? {
            declarators.push(self.declarator(None, true)?);
        }
        Ok(declarators)
    }

    /// Words, of which the last one is a name unless an asterisk follows.
    fn alias_and_name(&mut self) -> Result<(TypeSpec, Option<Name>), Diagnostic> {
        let mut words = vec![self.tokens.name("a type")?];
        while self.tokens.current.kind == Kind::Word {
            words.push(self.tokens.name("a name")?);
        }
        let spans = match words.len() {
            0..=2 => Vec::new(),
            _ => words.iter().map(|word| word.span).collect(),
        };
        let name = if self.tokens.at(Mark::Star) {
            None
        } else if words.len() > 1 {
            let name = words.pop();
            name.iter().try_for_each(|name| self.refuse_keyword(name))?;
            name
        } else {
            return Err(self.tokens.unexpected("a name after the type"));
        };
        let span = words[0].span.to(words[words.len() - 1].span);
        let alias: Vec<_> = words.into_iter().map(|word| word.value).collect();
        let class = TypeSpec {
            span,
            kind: TypeKind::Alias {
                name: alias.join(" "),
                words: spans,
            },
        };
        Ok((class, name))
    }

    fn declarator(&mut self, name: Option<Name>, named: bool) -> Result<Declarator, Diagnostic> {
        self.tokens.count()?;
        let start = name
            .as_ref()
            .map_or(self.tokens.current.span, |name| name.span);
        let (pointers, name) = match name {
            Some(name) => (String::new(), Some(name)),
            None => {
                let (pointers, _) = self.pointers()?;
                let name = if named {
                    Some(self.name("a name")?)
                } else {
                    None
                };
                (pointers, name)
            }
        };
        let mut span = name.as_ref().map_or(start, |name| name.span);
        let lengths = self.lengths(&mut span)?;
        let bits = match self.tokens.eat(Mark::Colon)? {
            true if lengths.is_empty() => Some(self.value("a size in bits")?),
            true => {
                return Err(Diagnostic::error("array of bit fields")
                    .at(span, "expected `;`, or a bit field without `[...]`"));
            }
            false => None,
        };
        Ok(Declarator {
            pointers,
            name,
            lengths,
            bits,
            span,
        })
    }

    /// `[3][length]`; extends the place of what they belong to.
    fn lengths(&mut self, span: &mut Span) -> Result<Vec<Spanned<Value>>, Diagnostic> {
        let mut lengths = Vec::new();
        while self.tokens.at(Mark::SquareOpen) {
            let open = self.tokens.advance()?.span;
            lengths.push(self.value("a number or the name of a field")?);
            *span = span.to(self.tokens.expect_close(Mark::SquareClose, open)?);
            if !has_room(lengths.len()) {
                return Err(too_deep(*span));
            }
        }
        Ok(lengths)
    }

    /// A type that begins with a keyword of its own; `None` where an alias stands.
    fn own_type(&mut self) -> Result<Option<TypeSpec>, Diagnostic> {
        const OWN: [&str; 6] = [
            "integer",
            "floating_point",
            "string",
            "struct",
            "variant",
            "enum",
        ];
        while self.tokens.word() == Some("const")
            && OWN.contains(&self.tokens.written(self.tokens.next.span))
        {
            self.tokens.advance()?;
        }
        let Some(keyword) = self.tokens.word().filter(|word| OWN.contains(word)) else {
            return Ok(None);
        };
        let span = self.tokens.advance()?.span;
        self.tokens.enter(span)?;
        let class = match keyword {
            "integer" => TypeSpec {
                span,
                kind: TypeKind::Integer(self.attributes()?),
            },
            "floating_point" => TypeSpec {
                span,
                kind: TypeKind::Float(self.attributes()?),
            },
            "string" => TypeSpec {
                span,
                kind: TypeKind::Text(if self.tokens.at(Mark::BraceOpen) {
                    self.attributes()?
                } else {
                    Vec::new()
                }),
            },
            "struct" => self.structure(span)?,
            "variant" => self.variant(span)?,
            _ => self.enumeration(span)?,
        };
        self.tokens.leave();
        Ok(Some(class))
    }

    fn structure(&mut self, keyword: Span) -> Result<TypeSpec, Diagnostic> {
        let name = self.type_name()?;
        let body = self.members()?.map(|(body, _)| body);
        let at_align =
            self.tokens.word() == Some("align") && self.tokens.next_at(&[Mark::ParenOpen]);
        let align = if body.is_some() && at_align {
            self.tokens.advance()?;
            let open = self.tokens.advance()?.span;
            let align = self.value("an alignment in bits")?;
            self.tokens.expect_close(Mark::ParenClose, open)?;
            Some(align)
        } else {
            None
        };
        if name.is_none() && body.is_none() {
            return Err(self.tokens.unexpected("the name of a structure or `{`"));
        }
        Ok(TypeSpec {
            span: name.as_ref().map_or(keyword, |name| keyword.to(name.span)),
            kind: TypeKind::Struct { name, body, align },
        })
    }

    fn variant(&mut self, span: Span) -> Result<TypeSpec, Diagnostic> {
        let name = self.type_name()?;
        let tag = if self.tokens.at(Mark::Less) {
            let open = self.tokens.advance()?.span;
            let tag = self.tokens.path("the name of an enumeration field")?;
            self.tokens.expect_close(Mark::Greater, open)?;
            Some(tag)
        } else {
            None
        };
        let body = match self.members()? {
            Some((body, close)) if !body.iter().any(is_field) => {
                return Err(Diagnostic::error("variant without options")
                    .at(close, "expected an option")
                    .because(span, "this is the variant"));
            }
            body => body.map(|(body, _)| body),
        };
        if name.is_none() && body.is_none() {
            return Err(self.tokens.unexpected("the name of a variant or `{`"));
        }
        Ok(TypeSpec {
            span: name.as_ref().map_or(span, |name| span.to(name.span)),
            kind: TypeKind::Variant { name, tag, body },
        })
    }

    /// The name after `struct`, `variant` or `enum`, if there is one.
    fn type_name(&mut self) -> Result<Option<Name>, Diagnostic> {
        match self.tokens.current.kind {
            Kind::Word => self.name("a name").map(Some),
            _ => Ok(None),
        }
    }

    /// What stands in braces, where there are any, and the place of the closing one.
    fn members(&mut self) -> Result<Option<(Vec<Member>, Span)>, Diagnostic> {
        if !self.tokens.at(Mark::BraceOpen) {
            return Ok(None);
        }
        let open = self.tokens.advance()?.span;
        let mut members = Vec::new();
        loop {
            if self.stray_semicolon()? {
                continue;
            }
            if self.tokens.current.kind != Kind::Word {
                let close = self.tokens.expect_close(Mark::BraceClose, open)?;
                return Ok(Some((members, close)));
            }
            if matches!(self.tokens.word(), Some("typealias" | "typedef")) {
                let declaration = self.declaration()?;
                members.push(Member::Declaration(declaration));
                continue;
            }
            let (class, name) = match self.own_type()? {
                // A structure, variant or enumeration may be declared without a field.
                Some(class) if class.is_named_body() && self.tokens.at(Mark::Semicolon) => {
                    self.tokens.advance()?;
                    members.push(Member::Declaration(Declaration::Named(class)));
                    continue;
                }
                Some(class) => (class, None),
                None => self.alias_and_name()?,
            };
            let declarators = self.declarators(name)?;
            self.tokens.expect(Mark::Semicolon)?;
            members.push(Member::Fields { class, declarators });
        }
    }

    fn enumeration(&mut self, keyword: Span) -> Result<TypeSpec, Diagnostic> {
        let name = self.type_name()?;
        let container = if self.tokens.eat(Mark::Colon)? {
            Some(Box::new(self.unnamed_type()?))
        } else {
            None
        };
        let body = if self.tokens.at(Mark::BraceOpen) {
            let open = self.tokens.advance()?.span;
            Some(self.enumerators(open)?)
        } else {
            None
        };
        if body.is_none() && (name.is_none() || container.is_some()) {
            return Err(self.tokens.unexpected("`{`"));
        }
        Ok(TypeSpec {
            span: name.as_ref().map_or(keyword, |name| keyword.to(name.span)),
            kind: TypeKind::Enum {
                name,
                container,
                body,
            },
        })
    }

    fn enumerators(&mut self, open: Span) -> Result<Vec<Enumerator>, Diagnostic> {
        let mut enumerators = Vec::new();
        loop {
            if self.tokens.at(Mark::BraceClose) && !enumerators.is_empty() {
                self.tokens.advance()?;
                return Ok(enumerators);
            }
            self.tokens.count()?;
            let label = if self.tokens.current.kind == Kind::Quoted {
                self.tokens.quoted()?
            } else {
                self.label()?
            };
            let first = if self.tokens.eat(Mark::Equal)? {
                Some(self.tokens.integer()?)
            } else {
                None
            };
            let last = if first.is_some() && self.tokens.eat(Mark::Ellipsis)? {
                Some(self.tokens.integer()?)
            } else {
                None
            };
            enumerators.push(Enumerator { label, first, last });
            if !self.tokens.eat(Mark::Comma)? && !self.tokens.at(Mark::BraceClose) {
                return Err(self
                    .tokens
                    .unexpected("`,` or `}`")
                    .because(open, "labels begin here"));
            }
        }
    }

    /// A label that is a word: babeltrace2 reads keywords, too.
    fn label(&mut self) -> Result<Name, Diagnostic> {
        let label = self.tokens.name("a label")?;
        if names::is_keyword(&label.value) {
            self.warnings.push(
                Diagnostic::warning(format!("label `{}` is a keyword", label.value))
                    .at(label.span, "expected quotes around it"),
            );
        }
        Ok(label)
    }
}

fn is_field(member: &Member) -> bool {
    matches!(member, Member::Fields { .. })
}
