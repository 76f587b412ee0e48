//! From text to tokens, one after the other: what the parsers of both languages do with
//! them whatever the grammar.

use kymo_text::diagnostic::Diagnostic;

use super::lexer::{Kind, Lexer, Mark, Span, Token, unquote};
use super::limits::{MAX_ITEMS, too_deep};
use crate::deep::has_room;

/// Something and its place.
#[derive(Clone, Debug)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// A name or a keyword used as one.
pub(super) type Name = Spanned<String>;

/// The tokens of a text: the current one and the next.
pub(super) struct Tokens<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    pub(super) current: Token,
    pub(super) next: Token,
    /// How many types enclose this place.
    depth: usize,
    /// Attributes, labels and names so far.
    items: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of a text, from its beginning.
    pub(super) fn new(text: &'a str) -> Result<Self, Diagnostic> {
        let mut lexer = Lexer::new(text);
        let current = lexer.next()?;
        let next = lexer.next()?;
        Ok(Self {
            text,
            lexer,
            current,
            next,
            depth: 0,
            items: 0,
        })
    }

    /// Counts what is about to be added to the tree.
    pub(super) fn count(&mut self) -> Result<(), Diagnostic> {
        self.items += 1;
        if self.items > MAX_ITEMS {
            return Err(Diagnostic::error("more metadata than kymo reads").at(
                self.current.span,
                format!("expected at most {MAX_ITEMS} attributes, labels and names"),
            ));
        }
        Ok(())
    }

    /// Enters a type whose keyword is at `span`; every way out of it that is not an error calls
    /// [`Tokens::leave`].
    pub(super) fn enter(&mut self, span: Span) -> Result<(), Diagnostic> {
        self.depth += 1;
        if !has_room(self.depth) {
            return Err(too_deep(span));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn advance(&mut self) -> Result<Token, Diagnostic> {
        let token = self.current;
        self.current = self.next;
        self.next = self.lexer.next()?;
        Ok(token)
    }

    pub(super) fn written(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    pub(super) fn word(&self) -> Option<&'a str> {
        (self.current.kind == Kind::Word).then(|| self.written(self.current.span))
    }

    pub(super) fn at(&self, mark: Mark) -> bool {
        self.current.kind == Kind::Mark(mark)
    }

    pub(super) fn next_at(&self, marks: &[Mark]) -> bool {
        matches!(self.next.kind, Kind::Mark(mark) if marks.contains(&mark))
    }

    pub(super) fn eat(&mut self, mark: Mark) -> Result<bool, Diagnostic> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, mark: Mark) -> Result<Span, Diagnostic> {
        if self.at(mark) {
            Ok(self.advance()?.span)
        } else {
            Err(self.unexpected(&format!("`{}`", mark.text())))
        }
    }

    /// Like `expect` for a closing mark; shows the opening one.
    pub(super) fn expect_close(&mut self, mark: Mark, open: Span) -> Result<Span, Diagnostic> {
        self.expect(mark)
            .map_err(|error| error.because(open, format!("to close this `{}`", self.written(open))))
    }

    pub(super) fn unexpected(&self, expected: &str) -> Diagnostic {
        let found = match self.current.kind {
            Kind::End => "the end of the metadata".to_owned(),
            Kind::Quoted => "quoted text".to_owned(),
            _ => format!("`{}`", self.written(self.current.span)),
        };
        Diagnostic::error(format!("expected {expected}, found {found}"))
            .at(self.current.span, format!("expected {expected}"))
    }

    pub(super) fn name(&mut self, expected: &str) -> Result<Name, Diagnostic> {
        let Some(word) = self.word() else {
            return Err(self.unexpected(expected));
        };
        let span = self.advance()?.span;
        Ok(Spanned {
            value: word.to_owned(),
            span,
        })
    }

    pub(super) fn integer(&mut self) -> Result<Spanned<i128>, Diagnostic> {
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

    pub(super) fn quoted(&mut self) -> Result<Name, Diagnostic> {
        let span = self.advance()?.span;
        Ok(Spanned {
            value: unquote(self.written(span), span)?,
            span,
        })
    }

    /// Words joined by dots.
    pub(super) fn path(&mut self, expected: &str) -> Result<Name, Diagnostic> {
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
