//! From tokens to the tree of [`super::ast`]: recursive descent.
//!
//! The RFC gives no grammar, only examples, which do not agree on where commas and semicolons
//! stand: they are read wherever one of the examples has them, and missed nowhere but
//! between one attribute and the next.

use kymo_text::diagnostic::Diagnostic;

use super::ast::{Attribute, Block, BlockKind, Pair, Value};
use crate::metadata::lexer::{Kind, Mark, Span};
use crate::metadata::limits::Warnings;
use crate::metadata::tokens::{Spanned, Tokens};

/// Parses a whole text.
pub(super) fn parse(text: &str, warnings: &mut Warnings) -> Result<Vec<Block>, Diagnostic> {
    let mut parser = Parser {
        tokens: Tokens::new(text)?,
        warnings,
    };
    parser.root()
}

struct Parser<'t, 'w> {
    tokens: Tokens<'t>,
    warnings: &'w mut Warnings,
}

impl Parser<'_, '_> {
    fn root(&mut self) -> Result<Vec<Block>, Diagnostic> {
        let mut blocks = Vec::new();
        loop {
            if self.tokens.eat(Mark::Semicolon)? {
                continue;
            }
            if self.tokens.current.kind == Kind::End {
                return Ok(blocks);
            }
            let block = match self.tokens.word() {
                Some("trace") => self.block(BlockKind::Trace, &[])?,
                Some("section") => self.block(BlockKind::Section, &["event"])?,
                Some("event") => self.block(BlockKind::Event, &[])?,
                _ => match self.type_block()? {
                    Some(block) => block,
                    None => {
                        return Err(self
                            .tokens
                            .unexpected("`trace`, `section`, `event`, `type` or `abstract_type`"));
                    }
                },
            };
            blocks.push(block);
        }
    }

    /// `type NAME { ... }` or `abstract_type NAME { ... }`, if one begins here; a type may be
    /// without a name.
    fn type_block(&mut self) -> Result<Option<Block>, Diagnostic> {
        let kind = match self.tokens.word() {
            Some("type") => BlockKind::Type,
            Some("abstract_type") => BlockKind::AbstractType,
            _ => return Ok(None),
        };
        let starts = self.tokens.next.kind == Kind::Word
            || kind == BlockKind::Type && self.tokens.next_at(&[Mark::BraceOpen]);
        match starts {
            true => self.block(kind, &[]).map(Some),
            false => Ok(None),
        }
    }

    /// Parses a block, whose keyword is the current token; `inner` are the keywords of blocks that
    /// it may hold, beside types.
    fn block(&mut self, kind: BlockKind, inner: &[&str]) -> Result<Block, Diagnostic> {
        self.tokens.count()?;
        let span = self.tokens.advance()?.span;
        let is_type = matches!(kind, BlockKind::Type | BlockKind::AbstractType);
        // Other blocks are around all types, and few.
        if is_type {
            self.tokens.enter(span)?;
        }
        let name = match is_type && !self.tokens.at(Mark::BraceOpen) {
            true => Some(self.tokens.name("the name of the type")?),
            false => None,
        };
        let open = self.tokens.expect(Mark::BraceOpen)?;
        let mut block = Block {
            kind,
            span,
            name,
            attributes: Vec::new(),
            blocks: Vec::new(),
        };
        while !self.tokens.at(Mark::BraceClose) {
            if self.tokens.eat(Mark::Semicolon)? {
                continue;
            }
            let opens = self.tokens.next_at(&[Mark::BraceOpen]);
            let nested = match self.tokens.word() {
                _ if is_type => None,
                Some("event") if opens && inner.contains(&"event") => {
                    Some(self.block(BlockKind::Event, &["context"])?)
                }
                Some("context") if opens && inner.contains(&"context") => {
                    Some(self.block(BlockKind::Context, &[])?)
                }
                _ => self.type_block()?,
            };
            match nested {
                Some(nested) => block.blocks.push(nested),
                None if matches!(self.tokens.current.kind, Kind::Word | Kind::Mark(Mark::Dot)) => {
                    let attribute = self.attribute()?;
                    block.attributes.push(attribute);
                }
                None => {
                    self.tokens.expect_close(Mark::BraceClose, open)?;
                }
            }
        }
        self.tokens.advance()?;
        if is_type {
            self.tokens.leave();
        }
        Ok(block)
    }

    /// `key = value;` or `.key = value;`
    fn attribute(&mut self) -> Result<Attribute, Diagnostic> {
        self.tokens.count()?;
        self.tokens.eat(Mark::Dot)?;
        let key = self.tokens.name("the name of an attribute")?;
        self.tokens.expect(Mark::Equal)?;
        let value = match self.tokens.at(Mark::BraceOpen) {
            true => self.list()?,
            false => self.value("a value")?,
        };
        // After a brace, its end is plain.
        let has_braces = matches!(value.value, Value::Type(_) | Value::List(_));
        if !has_braces || self.tokens.at(Mark::Semicolon) {
            self.tokens.expect(Mark::Semicolon)?;
        }
        Ok(Attribute { key, value })
    }

    fn value(&mut self, expected: &str) -> Result<Spanned<Value>, Diagnostic> {
        let start = self.tokens.current.span;
        let opens = self.tokens.next_at(&[Mark::BraceOpen]);
        Ok(match self.tokens.current.kind {
            Kind::Quoted => {
                let text = self.tokens.quoted()?;
                Spanned {
                    value: Value::Text(text.value),
                    span: text.span,
                }
            }
            Kind::Word if opens && self.tokens.word() == Some("type") => {
                let block = self.block(BlockKind::Type, &[])?;
                Spanned {
                    value: Value::Type(Box::new(block)),
                    span: start,
                }
            }
            Kind::Word => {
                let word = self.tokens.name(expected)?;
                Spanned {
                    value: Value::Word(word.value),
                    span: word.span,
                }
            }
            Kind::Integer(_) | Kind::Mark(Mark::Minus | Mark::Plus) => {
                let integer = self.tokens.integer()?;
                Spanned {
                    value: Value::Integer(integer.value),
                    span: integer.span,
                }
            }
            _ => return Err(self.tokens.unexpected(expected)),
        })
    }

    /// `{ { first, second }, ... }`
    fn list(&mut self) -> Result<Spanned<Value>, Diagnostic> {
        let open = self.tokens.expect(Mark::BraceOpen)?;
        let mut pairs = Vec::new();
        loop {
            if self.separator()? {
                continue;
            }
            match self.tokens.current.kind {
                Kind::Mark(Mark::BraceOpen | Mark::SquareOpen) => {
                    let pair = self.pair()?;
                    pairs.push(pair);
                }
                _ => {
                    let close = self.tokens.expect_close(Mark::BraceClose, open)?;
                    return Ok(Spanned {
                        value: Value::List(pairs),
                        span: open.to(close),
                    });
                }
            }
        }
    }

    /// `{ first, second }`, which the RFC once begins with `[`.
    fn pair(&mut self) -> Result<Pair, Diagnostic> {
        self.tokens.count()?;
        let is_square = self.tokens.at(Mark::SquareOpen);
        let open = self.tokens.advance()?.span;
        if is_square {
            self.warnings
                .push(Diagnostic::warning("`[` where `{` is meant").at(open, "expected `{`"));
        }
        let first = self.value("a type or a value")?;
        self.separator()?;
        let second = self.value("a name")?;
        self.separator()?;
        self.close_pair(is_square, open)?;
        Ok(Pair { first, second })
    }

    fn close_pair(&mut self, is_square: bool, open: Span) -> Result<(), Diagnostic> {
        if !(is_square && self.tokens.eat(Mark::SquareClose)?) {
            self.tokens.expect_close(Mark::BraceClose, open)?;
        }
        Ok(())
    }

    /// A comma or semicolon, if there is one.
    fn separator(&mut self) -> Result<bool, Diagnostic> {
        Ok(self.tokens.eat(Mark::Comma)? || self.tokens.eat(Mark::Semicolon)?)
    }
}
