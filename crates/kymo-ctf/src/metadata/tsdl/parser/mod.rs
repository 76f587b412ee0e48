//! From tokens to the tree of [`super::ast`] (CTF 1.8.3 §C.2): recursive descent.
//!
//! The grammar is C's, in which only a table of the declared types determines whether the
//! `b` of `a b;` is a type or a field. TSDL is simpler: the last word before `;`, `,`
//! or `[` is always the field. So no table is needed.

mod types;

use kymo_text::diagnostic::Diagnostic;

use super::ast::{Attribute, Block, BlockKind, Entry, Root, Value};
use super::names;
use crate::metadata::lexer::{Kind, Mark, Span};
use crate::metadata::limits::Warnings;
use crate::metadata::tokens::{Name, Spanned, Tokens};

/// Parses a whole text; what is odd is added to the warnings.
pub(super) fn parse(text: &str, warnings: &mut Warnings) -> Result<Root, Diagnostic> {
    Parser {
        tokens: Tokens::new(text)?,
        warnings,
        met_keyword: false,
    }
    .root()
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    warnings: &'a mut Warnings,
    /// Whether a keyword was met as a name: once is enough to say.
    met_keyword: bool,
}

impl Parser<'_> {
    // Blocks.

    fn root(&mut self) -> Result<Root, Diagnostic> {
        const EXPECTED: &str = "`trace`, `env`, `clock`, `stream`, `event`, `callsite` or a \
                                declaration of a type";
        let mut root = Root::default();
        loop {
            if self.stray_semicolon()? {
                continue;
            }
            if self.tokens.current.kind == Kind::End {
                return Ok(root);
            }
            if self.at_declaration() {
                let declaration = self.declaration()?;
                root.declarations.push(declaration);
                continue;
            }
            let kind = match self.tokens.word() {
                Some("trace") => BlockKind::Trace,
                Some("env") => BlockKind::Env,
                Some("clock") => BlockKind::Clock,
                Some("stream") => BlockKind::Stream,
                Some("event") => BlockKind::Event,
                Some("callsite") => BlockKind::Callsite,
                _ => return Err(self.tokens.unexpected(EXPECTED)),
            };
            self.tokens.count()?;
            let span = self.tokens.advance()?.span;
            let open = self.tokens.expect(Mark::BraceOpen)?;
            let entries = self.entries(open)?;
            self.tokens.expect(Mark::Semicolon)?;
            root.blocks.push(Block {
                kind,
                span,
                entries,
            });
        }
    }

    fn entries(&mut self, open: Span) -> Result<Vec<Entry>, Diagnostic> {
        let mut entries = Vec::new();
        loop {
            if self.stray_semicolon()? {
                continue;
            }
            if self.tokens.current.kind != Kind::Word {
                self.tokens.expect_close(Mark::BraceClose, open)?;
                return Ok(entries);
            }
            entries.push(if self.at_declaration() {
                Entry::Declaration(Box::new(self.declaration()?))
            } else {
                Entry::Attribute(self.attribute()?)
            });
        }
    }

    fn attribute(&mut self) -> Result<Attribute, Diagnostic> {
        self.tokens.count()?;
        let key = self.tokens.path("the name of an attribute")?;
        let assigns_type = self.tokens.at(Mark::Assign);
        if !assigns_type && !self.tokens.at(Mark::Equal) {
            return Err(self.tokens.unexpected("`=` or `:=`"));
        }
        self.tokens.advance()?;
        let is_type = match self.tokens.word() {
            None => false,
            Some("struct" | "variant" | "enum") => {
                assigns_type
                    || self.tokens.next.kind == Kind::Word
                    || self
                        .tokens
                        .next_at(&[Mark::BraceOpen, Mark::Less, Mark::Colon])
            }
            Some("integer" | "floating_point" | "string") => {
                assigns_type || self.tokens.next_at(&[Mark::BraceOpen])
            }
            Some(_) => assigns_type,
        };
        let value = if is_type {
            let class = self.unnamed_type()?;
            Spanned {
                span: class.span,
                value: Value::Type(Box::new(class)),
            }
        } else {
            self.value("a value")?
        };
        self.tokens.expect(Mark::Semicolon)?;
        Ok(Attribute { key, value })
    }

    /// The attributes of an integer, floating point number or string.
    fn attributes(&mut self) -> Result<Vec<Attribute>, Diagnostic> {
        let open = self.tokens.expect(Mark::BraceOpen)?;
        let mut attributes = Vec::new();
        loop {
            if self.stray_semicolon()? {
                continue;
            }
            if self.tokens.current.kind != Kind::Word {
                self.tokens.expect_close(Mark::BraceClose, open)?;
                return Ok(attributes);
            }
            attributes.push(self.attribute()?);
        }
    }

    /// Passes a `;` that ends nothing.
    fn stray_semicolon(&mut self) -> Result<bool, Diagnostic> {
        let span = self.tokens.current.span;
        let is_stray = self.tokens.eat(Mark::Semicolon)?;
        if is_stray {
            self.warnings
                .push(Diagnostic::warning("`;` ends nothing").at(span, "ignored"));
        }
        Ok(is_stray)
    }

    /// The name of a field or type.
    fn name(&mut self, expected: &str) -> Result<Name, Diagnostic> {
        let name = self.tokens.name(expected)?;
        self.refuse_keyword(&name)?;
        Ok(name)
    }

    /// Refuses words of the grammar as names, and warns of those that are in names of types.
    fn refuse_keyword(&mut self, name: &Name) -> Result<(), Diagnostic> {
        if names::is_of_grammar(&name.value) {
            return Err(keyword(name));
        }
        if names::is_keyword(&name.value) && !std::mem::replace(&mut self.met_keyword, true) {
            self.warnings.push(
                Diagnostic::warning(format!("`{}` is a keyword", name.value))
                    .at(name.span, "used as a name; other readers refuse it"),
            );
        }
        Ok(())
    }

    // Values.

    fn value(&mut self, expected: &str) -> Result<Spanned<Value>, Diagnostic> {
        match self.tokens.current.kind {
            Kind::Quoted => {
                let text = self.tokens.quoted()?;
                Ok(Spanned {
                    value: Value::Text(text.value),
                    span: text.span,
                })
            }
            Kind::Word => {
                let path = self.tokens.path(expected)?;
                Ok(Spanned {
                    value: Value::Path(path.value),
                    span: path.span,
                })
            }
            Kind::Integer(_) | Kind::Mark(Mark::Minus | Mark::Plus) => {
                let integer = self.tokens.integer()?;
                Ok(Spanned {
                    value: Value::Integer(integer.value),
                    span: integer.span,
                })
            }
            _ => Err(self.tokens.unexpected(expected)),
        }
    }
}

/// That a keyword stands where a name is expected.
fn keyword(name: &Name) -> Diagnostic {
    Diagnostic::error(format!("`{}` is a keyword", name.value))
        .at(name.span, "expected a name")
        .with_help(format!(
            "write `_{}`: readers remove the underscore of a field",
            name.value
        ))
}
