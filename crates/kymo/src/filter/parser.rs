//! From the text of a filter to a tree: precedence climbing over words.

use std::ops::Range;

use super::error::FilterError;
use super::expr::{
    Ask, Check, Comparison, Expr, FieldName, Function, Literal, Member, Operand, Pattern, Step,
    Test,
};
use super::glob::Glob;
use super::lexer::{Token, words};

/// Parentheses and `not`s may be nested this deep.
const DEEPEST: usize = 64;

/// Reads an expression.
pub(super) fn parse(source: &str) -> Result<Expr, FilterError> {
    let mut parser = Parser {
        source,
        words: words(source)?,
        at: 0,
        depth: 0,
    };
    let expr = parser.expr(Strength::Or)?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.expected("`and`, `or` or the end")),
    }
}

/// Reads names of fields with commas between them; each may have another one after `=`.
pub(super) fn parse_names(
    source: &str,
) -> Result<Vec<(FieldName, Option<FieldName>)>, FilterError> {
    let mut parser = Parser {
        source,
        words: words(source)?,
        at: 0,
        depth: 0,
    };
    let mut names = Vec::new();
    loop {
        let name = parser.field()?;
        let other = match parser.take_sign("=") {
            true => Some(parser.field()?),
            false => None,
        };
        names.push((name, other));
        if !parser.take_sign(",") {
            break;
        }
    }
    match parser.peek() {
        Token::End => Ok(names),
        _ => Err(parser.expected("`,` or the end")),
    }
}

/// How strongly an operator binds, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Or,
    And,
    Unary,
}

struct Parser<'a> {
    source: &'a str,
    words: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.words[self.at].0
    }

    fn range(&self) -> Range<usize> {
        self.words[self.at].1.clone()
    }

    /// Where the word before this one ends.
    fn end_before(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |at| self.words[at].1.end)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn take(&mut self, wanted: impl Fn(&Token) -> bool) -> bool {
        let found = wanted(self.peek());
        if found {
            self.next();
        }
        found
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        self.take(|token| matches!(token, Token::Sign(s) if *s == sign))
    }

    fn take_name(&mut self, name: &str) -> bool {
        self.take(|token| matches!(token, Token::Name(n) if n == name))
    }

    fn expected(&self, what: &str) -> FilterError {
        let found = self.peek().describe();
        FilterError::new(
            self.source,
            self.range(),
            format!("expected {what}, found {found}"),
        )
        .label(format!("expected {what}"))
        .help("a test is written `FIELD == VALUE`; `kymo print --help` describes the language under --where")
    }

    fn close(&mut self, sign: &'static str) -> Result<(), FilterError> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{sign}`")))
        }
    }

    /// Parses an expression whose operators bind at least this strongly.
    fn expr(&mut self, weakest: Strength) -> Result<Expr, FilterError> {
        let mut left = self.unary()?;
        loop {
            let strength = match self.peek() {
                Token::Sign("||") => Strength::Or,
                Token::Sign("&&") => Strength::And,
                Token::Name(name) if name == "or" => Strength::Or,
                Token::Name(name) if name == "and" => Strength::And,
                _ => return Ok(left),
            };
            if strength < weakest {
                return Ok(left);
            }
            self.next();
            // A chain of one operator is one node, so that its length costs no depth.
            left = if strength == Strength::Or {
                let right = self.expr(Strength::And)?;
                match left {
                    Expr::Or(mut parts) => {
                        parts.push(right);
                        Expr::Or(parts)
                    }
                    left => Expr::Or(vec![left, right]),
                }
            } else {
                let right = self.expr(Strength::Unary)?;
                match left {
                    Expr::And(mut parts) => {
                        parts.push(right);
                        Expr::And(parts)
                    }
                    left => Expr::And(vec![left, right]),
                }
            };
        }
    }

    fn unary(&mut self) -> Result<Expr, FilterError> {
        if self.depth == DEEPEST {
            return Err(FilterError::new(
                self.source,
                self.range(),
                format!("more than {DEEPEST} levels of parentheses and `not`"),
            )
            .label("too deep"));
        }
        self.depth += 1;
        let expr = if self.take_sign("!") || self.take_name("not") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.take_sign("(") {
            let inner = self.expr(Strength::Or)?;
            self.close(")")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn test(&mut self) -> Result<Expr, FilterError> {
        let begin = self.range().start;
        let subject = self.operand()?;
        let is_not = |token: &Token| matches!(token, Token::Name(name) if name == "not");
        let mut negated = is_not(self.peek())
            && matches!(self.words.get(self.at + 1), Some((Token::Name(name), _))
                if name == "in" || name == "contains");
        if negated {
            self.next();
        }
        let check = if self.take_name("in") {
            Check::Ask(Ask::Among(self.set()?))
        } else if self.take_name("contains") {
            Check::Ask(Ask::Contains(self.text()?))
        } else if self.take_sign("=~") {
            Check::Ask(Ask::Matches(self.pattern()?))
        } else if self.take_sign("~") {
            Check::Ask(Ask::Like(self.glob()?))
        } else if self.take_sign("!~") {
            negated = true;
            Check::Ask(Ask::Like(self.glob()?))
        } else if let Some(comparison) = self.comparison() {
            let other = self.operand()?;
            match (&subject, &other) {
                (Operand::Call(..), Operand::Call(..)) => {
                    return Err(self.expected("a field or a value without a function"));
                }
                (_, Operand::Call(..)) => {
                    return Ok(Expr::Test(Test {
                        range: begin..self.end_before(),
                        check: Check::Compare(comparison.mirrored(), subject),
                        subject: other,
                    }));
                }
                _ => Check::Compare(comparison, other),
            }
        } else {
            match subject {
                Operand::Literal(Literal::Bool(value), _) => return Ok(Expr::Const(value)),
                Operand::Literal(..) => return Err(self.expected("a comparison")),
                Operand::Field(_) | Operand::Call(..) => Check::Ask(Ask::Truth),
            }
        };
        let test = Expr::Test(Test {
            range: begin..self.end_before(),
            subject,
            check,
        });
        Ok(if negated {
            Expr::Not(Box::new(test))
        } else {
            test
        })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Token::Sign("==" | "=") => Comparison::Equal,
            Token::Sign("!=") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterEqual,
            _ => return None,
        };
        self.next();
        Some(comparison)
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        let range = self.range();
        match self.peek() {
            Token::Quoted(_) => self.field().map(Operand::Field),
            Token::Name(name) if !matches!(name.as_str(), "true" | "false") => {
                if matches!(name.as_str(), "and" | "or" | "not" | "in" | "contains") {
                    let help = format!("a field of that name is written \u{60}{name}\u{60}");
                    return Err(self.expected("a field or a value").help(help));
                }
                let called = Function::ALL.into_iter().find(|(called, _)| called == name);
                let is_call = matches!(self.words.get(self.at + 1), Some((Token::Sign("("), _)));
                if let (Some((_, function)), true) = (called, is_call) {
                    self.next();
                    self.next();
                    let field = self.field()?;
                    self.close(")")?;
                    return Ok(Operand::Call(function, field));
                }
                self.field().map(Operand::Field)
            }
            _ => {
                let literal = self.literal("a field or a value")?;
                Ok(Operand::Literal(literal, range.start..self.end_before()))
            }
        }
    }

    fn field(&mut self) -> Result<FieldName, FilterError> {
        let begin = self.range().start;
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                Token::Name(name) | Token::Quoted(name) => steps.push(Step::Name(name.clone())),
                _ => return Err(self.expected("a name")),
            }
            self.next();
            while self.take_sign("[") {
                let Token::Integer(element) = *self.peek() else {
                    return Err(self.expected("the position of an element"));
                };
                self.next();
                self.close("]")?;
                steps.push(Step::Element(element));
            }
            if !self.take_sign(".") {
                let range = begin..self.end_before();
                return Ok(FieldName { steps, range });
            }
        }
    }

    fn literal(&mut self, what: &str) -> Result<Literal, FilterError> {
        let begin = self.at;
        let negative = self.take_sign("-");
        let literal = match (negative, self.peek()) {
            (_, Token::Integer(value)) => {
                let value = i128::from(*value);
                Literal::Integer(if negative { -value } else { value })
            }
            (_, Token::Float(value)) => Literal::Float(if negative { -value } else { *value }),
            (false, Token::Text(text)) => Literal::Text(text.clone()),
            (false, Token::Name(name)) if name == "true" => Literal::Bool(true),
            (false, Token::Name(name)) if name == "false" => Literal::Bool(false),
            (true, _) => return Err(self.expected("a number")),
            _ => return Err(self.expected(what)),
        };
        self.next();
        if matches!(literal, Literal::Integer(value) if value < i128::from(i64::MIN)) {
            let range = self.words[begin].1.start..self.end_before();
            return Err(
                FilterError::new(self.source, range, "this number is too small")
                    .label("does not fit in 64 bits"),
            );
        }
        Ok(literal)
    }

    fn text(&mut self) -> Result<Vec<u8>, FilterError> {
        match self.peek() {
            Token::Text(text) => {
                let text = text.clone();
                self.next();
                Ok(text)
            }
            _ => Err(self.expected("a text in quotes")),
        }
    }

    fn pattern(&mut self) -> Result<Pattern, FilterError> {
        /// Bytes that the program of a regular expression may take.
        const MOST_BYTES: usize = 1 << 20;
        let range = self.range();
        let text = self.text()?;
        let wrong = |label: &str| {
            let error = FilterError::new(
                self.source,
                range.clone(),
                "this is not a regular expression",
            );
            error.label(label).help(
                "`=~` takes a regular expression; a glob such as \"*x\" is written behind `~`",
            )
        };
        let text = std::str::from_utf8(&text).map_err(|_| wrong("it is not UTF-8"))?;
        let built = regex::bytes::RegexBuilder::new(text)
            .size_limit(MOST_BYTES)
            .build();
        built.map(Pattern).map_err(|error| {
            let error = error.to_string();
            wrong(
                error
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: "),
            )
        })
    }

    fn glob(&mut self) -> Result<Glob, FilterError> {
        let range = self.range();
        let text = self.text()?;
        match std::str::from_utf8(&text) {
            Ok(text) => Ok(Glob::new(text)),
            Err(_) => Err(
                FilterError::new(self.source, range, "a pattern must be UTF-8")
                    .label("this is not"),
            ),
        }
    }

    fn set(&mut self) -> Result<Vec<Member>, FilterError> {
        let (open, close) = if self.take_sign("(") {
            ("(", ")")
        } else {
            ("[", "]")
        };
        if open == "[" && !self.take_sign(open) {
            return Err(self
                .expected("`[`")
                .help("a set is written [1, 4..7, 0x20]"));
        }
        let mut members = Vec::new();
        while !self.take_sign(close) {
            let begin = self.range().start;
            let low = self.literal("a value")?;
            if self.take_sign("..") || self.take_sign("...") {
                let high = self.literal("a value")?;
                let range = begin..self.end_before();
                members.push(self.range_member(low, high, range)?);
            } else {
                members.push(Member::One(low));
            }
            if !self.take_sign(",") {
                self.close(close)?;
                break;
            }
        }
        Ok(members)
    }

    fn range_member(
        &self,
        low: Literal,
        high: Literal,
        range: Range<usize>,
    ) -> Result<Member, FilterError> {
        let order = match (&low, &high) {
            (Literal::Integer(low), Literal::Integer(high)) => low.partial_cmp(high),
            (Literal::Float(low), Literal::Float(high)) => low.partial_cmp(high),
            (Literal::Integer(low), Literal::Float(high)) => (*low as f64).partial_cmp(high),
            (Literal::Float(low), Literal::Integer(high)) => low.partial_cmp(&(*high as f64)),
            (Literal::Text(low), Literal::Text(high)) => low.partial_cmp(high),
            _ => {
                return Err(FilterError::new(
                    self.source,
                    range,
                    "a range needs two values of one kind",
                )
                .label("two numbers, or two texts"));
            }
        };
        match order {
            Some(order) if order.is_le() => Ok(Member::Range(low, high)),
            _ => Err(
                FilterError::new(self.source, range, "this range holds nothing")
                    .label("its end lies before its beginning"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree with parentheses around everything, and each test as it was written.
    fn shape(source: &str) -> String {
        fn write(source: &str, expr: &Expr) -> String {
            let join = |parts: &[Expr], sign: &str| {
                let parts: Vec<_> = parts.iter().map(|part| write(source, part)).collect();
                format!("({})", parts.join(sign))
            };
            match expr {
                Expr::Or(parts) => join(parts, " | "),
                Expr::And(parts) => join(parts, " & "),
                Expr::Not(inner) => format!("!{}", write(source, inner)),
                Expr::Const(value) => value.to_string(),
                Expr::Test(test) => source[test.range.clone()].to_string(),
            }
        }
        write(source, &parse(source).expect(source))
    }

    #[test]
    fn precedence() {
        assert_eq!(shape("a or b and not c || d"), "(a | (b & !c) | d)");
        assert_eq!(shape("(a || b) && c and d"), "((a | b) & c & d)");
        assert_eq!(shape("!a == 3 && b"), "(!a == 3 & b)");
        assert_eq!(shape("not (a && !(b))"), "!(a & !b)");
        assert_eq!(
            shape("x in [1, 2..5,] and y not in (\"a\") or z !~ 'b*'"),
            "((x in [1, 2..5,] & !y not in (\"a\")) | !z !~ 'b*')"
        );
        assert_eq!(shape("true"), "true");
    }

    #[test]
    fn literals_and_names() {
        let Expr::Test(test) = parse("payload.a[2].`odd name` >= -0x10").unwrap() else {
            panic!("a test")
        };
        let Operand::Field(field) = test.subject else {
            panic!("a field")
        };
        assert_eq!(
            field.steps,
            [
                Step::Name("payload".into()),
                Step::Name("a".into()),
                Step::Element(2),
                Step::Name("odd name".into()),
            ]
        );
        let Check::Compare(Comparison::GreaterEqual, Operand::Literal(literal, range)) = test.check
        else {
            panic!("a comparison")
        };
        assert_eq!((literal, range), (Literal::Integer(-16), 27..32));
    }

    #[test]
    fn long_chains_and_deep_nests() {
        let chain = vec!["a"; 100_000].join(" or ");
        assert!(matches!(parse(&chain), Ok(Expr::Or(parts)) if parts.len() == 100_000));
        let nest = |levels| "(".repeat(levels) + "a" + &")".repeat(levels);
        assert!(parse(&nest(63)).is_ok());
        assert!(parse(&nest(64)).is_err());
        assert!(parse(&"!".repeat(1_000_000)).is_err());
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (source, range, message) in [
            ("", 0..0, "expected a field or a value, found the end"),
            ("a ==", 4..4, "expected a field or a value, found the end"),
            (
                "a == 3 4",
                7..8,
                "expected `and`, `or` or the end, found a number",
            ),
            ("(a", 2..2, "expected `)`, found the end"),
            ("a.3", 2..3, "expected a name, found a number"),
            (
                "a[x]",
                2..3,
                "expected the position of an element, found `x`",
            ),
            ("3", 1..1, "expected a comparison, found the end"),
            ("a in 3", 5..6, "expected `[`, found a number"),
            ("a in [5..2]", 6..10, "this range holds nothing"),
            (
                "a in [5..'x']",
                6..12,
                "a range needs two values of one kind",
            ),
            ("a ~ 3", 4..5, "expected a text in quotes, found a number"),
            ("a = - b", 6..7, "expected a number, found `b`"),
            (
                "a = -9223372036854775809",
                4..24,
                "this number is too small",
            ),
            ("in = 3", 0..2, "expected a field or a value, found `in`"),
        ] {
            let error = parse(source).expect_err(source);
            assert_eq!(
                (error.range(), error.message()),
                (range, message),
                "{source}"
            );
        }
    }
}
