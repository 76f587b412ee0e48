//! From tokens to the tree of [`super::ast`] (CTF 1.8.3 §C.2): recursive descent.
//!
//! The grammar is C's, in which only a table of the declared types tells whether the
//! `b` of `a b;` is a type or a field. TSDL is simpler: the last word before `;`, `,`
//! or `[` is always the field. So no table is needed, and keywords can be field names.

mod types;

use kymo_text::diagnostic::Diagnostic;

use super::MAX_ITEMS;
use super::ast::{Attribute, Block, BlockKind, Entry, Name, Root, Spanned, Value};
use super::lexer::{Kind, Lexer, Mark, Span, Token, unquote};

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Root, Diagnostic> {
    let mut lexer = Lexer::new(text);
    let current = lexer.next()?;
    let next = lexer.next()?;
    let mut parser = Parser {
        text,
        lexer,
        current,
        next,
        depth: 0,
        items: 0,
    };
    parser.root()
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    current: Token,
    next: Token,
    /// How many types enclose this place.
    depth: usize,
    /// Attributes, labels and names so far.
    items: usize,
}

impl<'a> Parser<'a> {
    /// Counts what is about to be added to the tree.
    fn count(&mut self) -> Result<(), Diagnostic> {
        self.items += 1;
        if self.items > MAX_ITEMS {
            return Err(Diagnostic::error("more metadata than kymo reads").at(
                self.current.span,
                format!("expected at most {MAX_ITEMS} attributes, labels and names"),
            ));
        }
        Ok(())
    }

    // Tokens.

    fn advance(&mut self) -> Result<Token, Diagnostic> {
        let token = self.current;
        self.current = self.next;
        self.next = self.lexer.next()?;
        Ok(token)
    }

    fn written(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    fn word(&self) -> Option<&'a str> {
        (self.current.kind == Kind::Word).then(|| self.written(self.current.span))
    }

    fn at(&self, mark: Mark) -> bool {
        self.current.kind == Kind::Mark(mark)
    }

    fn next_at(&self, marks: &[Mark]) -> bool {
        matches!(self.next.kind, Kind::Mark(mark) if marks.contains(&mark))
    }

    fn eat(&mut self, mark: Mark) -> Result<bool, Diagnostic> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: Mark) -> Result<Span, Diagnostic> {
        if self.at(mark) {
            Ok(self.advance()?.span)
        } else {
            Err(self.unexpected(&format!("`{}`", mark.text())))
        }
    }

    /// Like `expect` for a closing mark; shows the opening one.
    fn expect_close(&mut self, mark: Mark, open: Span) -> Result<Span, Diagnostic> {
        self.expect(mark)
            .map_err(|error| error.because(open, format!("to close this `{}`", self.written(open))))
    }

    fn unexpected(&self, expected: &str) -> Diagnostic {
        let found = match self.current.kind {
            Kind::End => "the end of the metadata".to_owned(),
            Kind::Quoted => "quoted text".to_owned(),
            _ => format!("`{}`", self.written(self.current.span)),
        };
        Diagnostic::error(format!("expected {expected}, found {found}"))
            .at(self.current.span, format!("expected {expected}"))
    }

    fn name(&mut self, expected: &str) -> Result<Name, Diagnostic> {
        let Some(word) = self.word() else {
            return Err(self.unexpected(expected));
        };
        let span = self.advance()?.span;
        Ok(Spanned {
            value: word.to_owned(),
            span,
        })
    }

    // Blocks.

    fn root(&mut self) -> Result<Root, Diagnostic> {
        const EXPECTED: &str = "`trace`, `env`, `clock`, `stream`, `event`, `callsite` or a \
                                declaration of a type";
        let mut root = Root::default();
        loop {
            if self.eat(Mark::Semicolon)? {
                continue;
            }
            if self.current.kind == Kind::End {
                return Ok(root);
            }
            if self.at_declaration() {
                let declaration = self.declaration()?;
                root.declarations.push(declaration);
                continue;
            }
            let kind = match self.word() {
                Some("trace") => BlockKind::Trace,
                Some("env") => BlockKind::Env,
                Some("clock") => BlockKind::Clock,
                Some("stream") => BlockKind::Stream,
                Some("event") => BlockKind::Event,
                Some("callsite") => BlockKind::Callsite,
                Some("section" | "type" | "abstract_type") => {
                    return Err(super::rfc11().at(self.current.span, "not part of CTF 1.8"));
                }
                _ => return Err(self.unexpected(EXPECTED)),
            };
            self.count()?;
            let span = self.advance()?.span;
            let open = self.expect(Mark::BraceOpen)?;
            let entries = self.entries(open)?;
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
            if self.eat(Mark::Semicolon)? {
                continue;
            }
            if self.current.kind != Kind::Word {
                self.expect_close(Mark::BraceClose, open)?;
                return Ok(entries);
            }
            entries.push(if self.at_declaration() {
                Entry::Declaration(self.declaration()?)
            } else {
                Entry::Attribute(self.attribute()?)
            });
        }
    }

    fn attribute(&mut self) -> Result<Attribute, Diagnostic> {
        self.count()?;
        let key = self.path("the name of an attribute")?;
        let assigns_type = self.at(Mark::Assign);
        if !assigns_type && !self.at(Mark::Equal) {
            return Err(self.unexpected("`=` or `:=`"));
        }
        self.advance()?;
        let is_type = match self.word() {
            None => false,
            Some("struct" | "variant" | "enum") => {
                assigns_type
                    || self.next.kind == Kind::Word
                    || self.next_at(&[Mark::BraceOpen, Mark::Less, Mark::Colon])
            }
            Some("integer" | "floating_point" | "string") => {
                assigns_type || self.next_at(&[Mark::BraceOpen])
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
        self.expect(Mark::Semicolon)?;
        Ok(Attribute { key, value })
    }

    /// The attributes of an integer, floating point number or string.
    fn attributes(&mut self) -> Result<Vec<Attribute>, Diagnostic> {
        let open = self.expect(Mark::BraceOpen)?;
        let mut attributes = Vec::new();
        loop {
            if self.eat(Mark::Semicolon)? {
                continue;
            }
            if self.current.kind != Kind::Word {
                self.expect_close(Mark::BraceClose, open)?;
                return Ok(attributes);
            }
            attributes.push(self.attribute()?);
        }
    }

    // Values.

    fn value(&mut self, expected: &str) -> Result<Spanned<Value>, Diagnostic> {
        match self.current.kind {
            Kind::Quoted => {
                let text = self.quoted()?;
                Ok(Spanned {
                    value: Value::Text(text.value),
                    span: text.span,
                })
            }
            Kind::Word => {
                let path = self.path(expected)?;
                Ok(Spanned {
                    value: Value::Path(path.value),
                    span: path.span,
                })
            }
            Kind::Integer(_) | Kind::Mark(Mark::Minus | Mark::Plus) => {
                let integer = self.integer()?;
                Ok(Spanned {
                    value: Value::Integer(integer.value),
                    span: integer.span,
                })
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn integer(&mut self) -> Result<Spanned<i128>, Diagnostic> {
        let start = self.current.span;
        let negative = self.at(Mark::Minus);
        if negative || self.at(Mark::Plus) {
            self.advance()?;
        }
        let Kind::Integer(magnitude) = self.current.kind else {
            return Err(self.unexpected("an integer"));
        };
        let span = start.to(self.advance()?.span);
        let value = if negative {
            -i128::from(magnitude)
        } else {
            i128::from(magnitude)
        };
        if value < i128::from(i64::MIN) {
            return Err(Diagnostic::error("integer too small")
                .at(span, format!("expected at least {}", i64::MIN)));
        }
        Ok(Spanned { value, span })
    }

    fn quoted(&mut self) -> Result<Name, Diagnostic> {
        let span = self.advance()?.span;
        Ok(Spanned {
            value: unquote(self.written(span), span)?,
            span,
        })
    }

    /// Words joined by dots.
    fn path(&mut self, expected: &str) -> Result<Name, Diagnostic> {
        let mut path = self.name(expected)?;
        while self.eat(Mark::Dot)? {
            let part = self.name("a name after the dot")?;
            path.value.push('.');
            path.value.push_str(&part.value);
            path.span = path.span.to(part.span);
        }
        Ok(path)
    }
}
