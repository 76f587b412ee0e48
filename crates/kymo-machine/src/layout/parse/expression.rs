//! Constant expressions: sizes of arrays, values of enumerations and `#define`s.

use super::{ParseError, Parser};
use crate::layout::lexer::Kind;

/// The operators with two sides, and how tightly each binds.
const OPERATORS: [(char, u8); 5] = [('+', 1), ('-', 1), ('*', 2), ('/', 2), ('%', 2)];

impl Parser<'_> {
    /// An expression of integers and constants with `+ - * / %`, signs and parentheses.
    pub(super) fn expression(&mut self) -> Result<i64, ParseError> {
        self.operation(0)
    }

    /// An expression whose operators bind more tightly than `least`.
    fn operation(&mut self, least: u8) -> Result<i64, ParseError> {
        let start = self.token.range.start;
        let mut left = self.operand()?;
        while let Kind::Mark(mark) = self.token.kind
            && let Some(&(_, binding)) = OPERATORS.iter().find(|(operator, _)| *operator == mark)
            && binding > least
        {
            self.advance()?;
            let end = self.token.range.end;
            let right = self.operation(binding)?;
            let result = match mark {
                '+' => left.checked_add(right),
                '-' => left.checked_sub(right),
                '*' => left.checked_mul(right),
                '/' => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            left = result.ok_or_else(|| {
                ParseError::new(
                    start..end,
                    format!("{left} {mark} {right} has no value"),
                    "expected a number of at most 64 bits",
                )
            })?;
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<i64, ParseError> {
        let range = self.token.range.clone();
        let value = match (self.token.kind, self.word()) {
            (Kind::Integer(value), _) => i64::try_from(value).ok(),
            (_, Some(word)) => Some(*self.constants.get(word).ok_or_else(|| {
                ParseError::new(
                    range.clone(),
                    format!("unknown constant `{word}`"),
                    "expected a number, or what `#define` or an enumeration names",
                )
            })?),
            (Kind::Mark('-' | '+' | '('), _) => return self.nested(),
            _ => return Err(self.unexpected("a number")),
        };
        let value = value.ok_or_else(|| {
            ParseError::new(
                range,
                "this number is too large",
                "expected at most 9223372036854775807",
            )
        })?;
        self.advance()?;
        Ok(value)
    }

    /// A sign and what it belongs to, or parentheses.
    fn nested(&mut self) -> Result<i64, ParseError> {
        self.enter()?;
        let value = if self.eats('-')? {
            // Nothing that is read is -2^63.
            self.operand()?.wrapping_neg()
        } else if self.eats('+')? {
            self.operand()?
        } else {
            self.expect('(')?;
            let value = self.expression()?;
            self.expect(')')?;
            value
        };
        self.depth -= 1;
        Ok(value)
    }
}
