//! The grammar of PromQL.
//!
//! [`guard`](crate::guard) has bounded the levels of nesting and the number of operators: the parser may recurse.

use std::vec;

use crate::aggregate::Operator;
use crate::ast::{
    Aggregate, At, Binary, Call, Cardinality, Comparison, Expr, Grouping, Kind, Matcher, Millis,
    Modifier, Range, Selector, Subquery, When,
};
use crate::functions::{is_label, refusal, signature};
use crate::guard::{Guarded, LARGEST_REGEX};
use crate::labels::NAME;
use crate::parse::anchored;
use crate::tokens::{Token, tokens};

/// Reads a query.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn parse(guarded: Guarded) -> Result<Expr, String> {
    let mut parser = Parser {
        tokens: tokens(&guarded.text)?,
        at: 0,
        patterns: guarded.patterns.into_iter(),
    };
    let expr = parser.expr(0)?;
    match parser.peek() {
        Token::End => Ok(expr),
        other => Err(format!("unexpected {other}")),
    }
}

/// Binary operators and how tightly they bind.
const OPERATORS: [(&str, u8); 16] = [
    ("or", 1),
    ("and", 2),
    ("unless", 2),
    ("==", 3),
    ("!=", 3),
    ("<", 3),
    ("<=", 3),
    (">", 3),
    (">=", 3),
    ("+", 4),
    ("-", 4),
    ("*", 5),
    ("/", 5),
    ("%", 5),
    ("atan2", 5),
    ("^", POWER),
];
const POWER: u8 = 6;
const COMPARISON: u8 = 3;
const SET: u8 = 2;

/// What a word means that is a number.
fn named_number(word: &str) -> Option<f64> {
    match word.to_ascii_lowercase().as_str() {
        "inf" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// Words that are not names of metrics.
const RESERVED: [&str; 6] = [
    "bool",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "atan2",
];

struct Parser<'q> {
    tokens: Vec<Token<'q>>,
    at: usize,
    /// Regular expressions as they were written.
    patterns: vec::IntoIter<String>,
}

impl<'q> Parser<'q> {
    fn peek(&self) -> &Token<'q> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token<'q> {
        self.tokens.get(self.at + ahead).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token<'q> {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    /// Passes over a word if it comes next.
    fn word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes over a symbol if it comes next.
    fn symbol(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        match self.symbol(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("\"{symbol}\""))),
        }
    }

    fn unexpected(&self, expected: &str) -> String {
        format!("unexpected {}, expected {expected}", self.peek())
    }

    /// An expression of operators that bind at least so tightly.
    fn expr(&mut self, least: u8) -> Result<Expr, String> {
        let mut left = if self.symbol("+") {
            self.expr(POWER)?
        } else if self.symbol("-") {
            negated(self.expr(POWER)?)?
        } else {
            self.operand()?
        };
        while let Some((operator, level)) = self.operator()
            && level >= least
        {
            self.at += 1;
            let modifier = self.modifier()?;
            // Powers are of what follows, all others of what is before.
            let right = self.expr(level + u8::from(level != POWER))?;
            left = binary(left, operator, level, modifier, right)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        let mut operators = OPERATORS.iter();
        let found = match self.peek() {
            Token::Word(word) => operators.find(|(name, _)| name.eq_ignore_ascii_case(word)),
            Token::Symbol(symbol) => operators.find(|(name, _)| name == symbol),
            _ => None,
        };
        found.copied()
    }

    fn modifier(&mut self) -> Result<Modifier, String> {
        let returns_bool = self.word("bool");
        let matching = if self.word("on") {
            Some(Grouping::Only(self.labels()?))
        } else if self.word("ignoring") {
            Some(Grouping::Without(self.labels()?))
        } else {
            None
        };
        let mut cardinality = Cardinality::OneToOne;
        for (word, make) in [
            ("group_left", Cardinality::ManyToOne as fn(_) -> _),
            ("group_right", Cardinality::OneToMany),
        ] {
            if self.is_word(word) {
                if matching.is_none() {
                    return Err(format!("unexpected <{word}>"));
                }
                self.at += 1;
                let has_labels = matches!(self.peek(), Token::Symbol("("));
                cardinality = make(match has_labels {
                    true => self.labels()?,
                    false => Vec::new(),
                });
                break;
            }
        }
        Ok(Modifier {
            returns_bool,
            matching,
            cardinality,
        })
    }

    /// `(a, b)`
    fn labels(&mut self) -> Result<Vec<String>, String> {
        self.expect("(")?;
        let mut labels = Vec::new();
        while !self.symbol(")") {
            match self.next() {
                Token::Word(word)
                    if is_label(word)
                        && !word.eq_ignore_ascii_case("without")
                        && named_number(word).is_none() =>
                {
                    labels.push(word.to_owned());
                }
                Token::Text(text) => labels.push(text),
                other => {
                    return Err(format!(
                        "unexpected {other} in grouping opts, expected label"
                    ));
                }
            }
            if !self.symbol(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(labels)
    }

    /// An expression without operators, with ranges, times and offsets behind it.
    fn operand(&mut self) -> Result<Expr, String> {
        let mut expr = self.primary()?;
        loop {
            expr = if self.symbol("[") {
                self.range(expr)?
            } else if self.symbol("@") {
                let at = self.time()?;
                let when = when(&mut expr).ok_or_else(|| misplaced("@"))?;
                if when.at.replace(at).is_some() {
                    return Err("@ <timestamp> may not be set multiple times".to_owned());
                }
                expr
            } else if self.word("offset") {
                let is_before = self.symbol("-");
                if !is_before {
                    self.symbol("+");
                }
                let offset = self.duration("offset")?;
                let when = when(&mut expr).ok_or_else(|| misplaced("offset"))?;
                if when
                    .offset
                    .replace(if is_before { -offset } else { offset })
                    .is_some()
                {
                    return Err("offset may not be set multiple times".to_owned());
                }
                expr
            } else {
                return Ok(expr);
            };
        }
    }

    /// What is behind `[`.
    fn range(&mut self, expr: Expr) -> Result<Expr, String> {
        let range = self.duration("range")?;
        if self.symbol(":") {
            let step = match self.symbol("]") {
                true => None,
                false => {
                    let step = self.duration("subquery")?;
                    self.expect("]")?;
                    Some(step)
                }
            };
            if expr.kind() != Kind::Vector {
                let kind = expr.kind();
                return Err(format!(
                    "subquery is only allowed on instant vector, got {kind} instead"
                ));
            }
            let when = When::default();
            return Ok(Expr::Subquery(Box::new(Subquery {
                expr,
                range,
                step,
                when,
            })));
        }
        self.expect("]")?;
        match expr {
            Expr::Selector(selector) if selector.when.offset.is_some() => {
                Err("no offset modifiers allowed before range".to_owned())
            }
            Expr::Selector(selector) if selector.when.at.is_some() => {
                Err("no @ modifiers allowed before range".to_owned())
            }
            Expr::Selector(selector) => Ok(Expr::Range(Range { selector, range })),
            _ => Err("ranges only allowed for vector selectors".to_owned()),
        }
    }

    fn duration(&mut self, context: &str) -> Result<Millis, String> {
        match self.next() {
            Token::Duration(0) => Err("duration must be greater than 0".to_owned()),
            Token::Duration(millis) => Ok(millis),
            other => Err(format!(
                "unexpected {other} in {context}, expected duration"
            )),
        }
    }

    /// What is behind `@`.
    fn time(&mut self) -> Result<At, String> {
        for (word, at) in [("start", At::Start), ("end", At::End)] {
            if self.word(word) {
                self.expect("(")?;
                self.expect(")")?;
                return Ok(at);
            }
        }
        let is_negative = self.symbol("-");
        if !is_negative {
            self.symbol("+");
        }
        let seconds = match self.next() {
            Token::Number(seconds) => seconds,
            Token::Duration(millis) => millis as f64 / 1000.0,
            other => return Err(format!("unexpected {other} in @, expected timestamp")),
        };
        let seconds = if is_negative { -seconds } else { seconds };
        let millis = (seconds * 1000.0).round();
        match millis.is_nan() || millis.abs() >= Millis::MAX as f64 {
            true => Err(format!("timestamp out of bounds for @ modifier: {seconds}")),
            false => Ok(At::Time(millis as Millis)),
        }
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let is_call = matches!(self.peek_at(1), Token::Symbol("("));
        match self.next() {
            Token::Number(number) => Ok(Expr::Number(number)),
            Token::Duration(millis) => Ok(Expr::Number(millis as f64 / 1000.0)),
            Token::Text(text) => Ok(Expr::Text(text)),
            Token::Symbol("(") => {
                let inner = self.expr(0)?;
                self.expect(")")?;
                Ok(Expr::Paren(Box::new(inner)))
            }
            Token::Symbol("{") => self.selector(None),
            Token::Word(word) => {
                if let Some(number) = named_number(word) {
                    return Ok(Expr::Number(number));
                }
                let is_grouped = self.is_word("by") || self.is_word("without");
                match Operator::named(&word.to_ascii_lowercase()) {
                    Some(operator) if is_call || is_grouped => self.aggregate(operator),
                    _ if is_call => self.call(word),
                    _ if RESERVED.iter().any(|it| it.eq_ignore_ascii_case(word)) => {
                        Err(format!("unexpected <{word}>"))
                    }
                    _ if self.symbol("{") => self.selector(Some(word)),
                    _ => selector(Some(word), Vec::new()),
                }
            }
            other => Err(format!("unexpected {other}, expected an expression")),
        }
    }

    /// What is behind `{`.
    fn selector(&mut self, name: Option<&str>) -> Result<Expr, String> {
        let mut matchers = Vec::new();
        while !self.symbol("}") {
            matchers.push(self.matcher()?);
            if self.is_word("or") {
                return Err("`or` between matchers is not supported".to_owned());
            }
            if !self.symbol(",") {
                self.expect("}")?;
                break;
            }
        }
        selector(name, matchers)
    }

    fn matcher(&mut self) -> Result<Matcher, String> {
        let name = match self.next() {
            Token::Word(word) if is_label(word) => word.to_owned(),
            Token::Text(text) => match self.peek() {
                Token::Symbol("," | "}") => return Ok(Matcher::equal(NAME, &text)),
                _ => text,
            },
            other => {
                return Err(format!(
                    "unexpected {other} in label matching, expected identifier or \"}}\""
                ));
            }
        };
        let operator = self.next();
        let Token::Symbol("=" | "!=" | "=~" | "!~") = operator else {
            return Err(format!(
                "unexpected {operator} in label matching, expected an operator after \"{name}\""
            ));
        };
        let value = match self.next() {
            Token::Text(text) => text,
            other => {
                return Err(format!(
                    "unexpected {other} in label matching, expected string"
                ));
            }
        };
        let regex =
            || anchored(&value, LARGEST_REGEX).map_err(|_| format!("illegal regex for {value}"));
        let comparison = match operator {
            Token::Symbol("=~") => Comparison::Matches(regex()?),
            Token::Symbol("!~") => Comparison::Differs(regex()?),
            Token::Symbol("!=") => Comparison::NotEqual,
            _ => Comparison::Equal,
        };
        let is_regex = matches!(comparison, Comparison::Matches(_) | Comparison::Differs(_));
        let written = if is_regex { self.patterns.next() } else { None };
        Ok(Matcher {
            name,
            comparison,
            value: written.unwrap_or(value),
        })
    }

    /// `(a, b)`
    fn args(&mut self) -> Result<Vec<Expr>, String> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.symbol(")") {
            return Ok(args);
        }
        loop {
            args.push(self.expr(0)?);
            if !self.symbol(",") {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, String> {
        if self.word("by") {
            return Ok(Some(Grouping::Only(self.labels()?)));
        }
        match self.word("without") {
            true => Ok(Some(Grouping::Without(self.labels()?))),
            false => Ok(None),
        }
    }

    fn aggregate(&mut self, operator: Operator) -> Result<Expr, String> {
        let before = self.grouping()?;
        let mut args = self.args()?;
        let grouping = match before {
            Some(grouping) => Some(grouping),
            None => self.grouping()?,
        };
        let parameter_kind = operator.parameter();
        let expected = 1 + usize::from(parameter_kind.is_some());
        let found = args.len();
        let Some(expr) = args.pop().filter(|_| found == expected) else {
            return Err(format!(
                "wrong number of arguments for aggregate expression provided, expected {expected}, got {found}"
            ));
        };
        let parameter = args.pop();
        let kinds = [Some(Kind::Vector), parameter_kind];
        for (arg, kind) in [Some(&expr), parameter.as_ref()].into_iter().zip(kinds) {
            if let (Some(arg), Some(kind)) = (arg, kind)
                && arg.kind() != kind
            {
                let found = arg.kind();
                return Err(format!(
                    "expected type {kind} in aggregation expression, got {found}"
                ));
            }
        }
        Ok(Expr::Aggregate(Box::new(Aggregate {
            operator,
            parameter,
            expr,
            grouping,
        })))
    }

    fn call(&mut self, name: &str) -> Result<Expr, String> {
        let args = self.args()?;
        let signature = signature(name).ok_or_else(|| refusal(name))?;
        let (name, kinds) = (signature.name, signature.args);
        let found = args.len();
        if found < signature.least || signature.most.is_some_and(|most| found > most) {
            let least = signature.least;
            let expected = match signature.most {
                Some(most) if most == least => least.to_string(),
                Some(most) => format!("{least} to {most}"),
                None => format!("at least {least}"),
            };
            return Err(format!(
                "expected {expected} argument(s) in call to '{name}', got {found}"
            ));
        }
        for (place, arg) in args.iter().enumerate() {
            let expected = kinds.get(place).or(kinds.last());
            let found = arg.kind();
            if expected.is_some_and(|expected| *expected != found) {
                return Err(format!(
                    "unexpected type {found} in call to function '{name}'"
                ));
            }
        }
        Ok(Expr::Call(Call {
            name,
            args,
            returns: signature.returns,
        }))
    }
}

fn selector(name: Option<&str>, matchers: Vec<Matcher>) -> Result<Expr, String> {
    match name {
        Some(name) => {
            if let Some(other) = matchers.iter().find(|matcher| matcher.name == NAME) {
                let other = &other.value;
                return Err(format!(
                    "metric name must not be set twice: '{name}' or '{other}'"
                ));
            }
        }
        // All series are rarely meant.
        None if matchers.iter().all(|matcher| matcher.matches("")) => {
            return Err("vector selector must contain at least one non-empty matcher".to_owned());
        }
        None => {}
    }
    Ok(Expr::Selector(Selector {
        name: name.map(str::to_owned),
        matchers,
        when: When::default(),
    }))
}

fn when(expr: &mut Expr) -> Option<&mut When> {
    match expr {
        Expr::Selector(selector) => Some(&mut selector.when),
        Expr::Range(range) => Some(&mut range.selector.when),
        Expr::Subquery(subquery) => Some(&mut subquery.when),
        _ => None,
    }
}

fn misplaced(modifier: &str) -> String {
    format!(
        "{modifier} modifier must be preceded by an instant vector selector or range vector selector or a subquery"
    )
}

fn negated(expr: Expr) -> Result<Expr, String> {
    match (expr.kind(), expr) {
        (_, Expr::Number(number)) => Ok(Expr::Number(-number)),
        (Kind::Scalar | Kind::Vector, expr) => Ok(Expr::Negated(Box::new(expr))),
        (kind, _) => Err(format!(
            "unary expression only allowed on expressions of type scalar or vector, got: {kind}"
        )),
    }
}

fn binary(
    left: Expr,
    operator: &'static str,
    level: u8,
    mut modifier: Modifier,
    right: Expr,
) -> Result<Expr, String> {
    let kinds = [left.kind(), right.kind()];
    let has_scalar = kinds.contains(&Kind::Scalar);
    let names = modifier.matching.as_ref().map_or(&[][..], Grouping::names);
    let is_grouped = matches!(
        modifier.cardinality,
        Cardinality::ManyToOne(_) | Cardinality::OneToMany(_)
    );
    if modifier.returns_bool && level != COMPARISON {
        return Err("bool modifier can only be used on comparison operators".to_owned());
    }
    if level == COMPARISON && kinds == [Kind::Scalar; 2] && !modifier.returns_bool {
        return Err("comparisons between scalars must use BOOL modifier".to_owned());
    }
    if let Some(Grouping::Only(names)) = &modifier.matching
        && let Some(label) = names
            .iter()
            .find(|name| modifier.cardinality.included().contains(name))
    {
        return Err(format!(
            "label '{label}' must not occur in ON and GROUP clause at once"
        ));
    }
    if level <= SET {
        if has_scalar {
            return Err(format!(
                "set operator '{operator}' not allowed in binary scalar expression"
            ));
        }
        if is_grouped {
            return Err(format!("no grouping allowed for '{operator}' operation"));
        }
        modifier.cardinality = Cardinality::ManyToMany;
    } else if has_scalar && !names.is_empty() {
        return Err("vector matching only allowed between vectors".to_owned());
    }
    if kinds
        .iter()
        .any(|kind| !matches!(kind, Kind::Scalar | Kind::Vector))
    {
        return Err(
            "binary expression must contain only scalar and instant vector types".to_owned(),
        );
    }
    Ok(Expr::Binary(Box::new(Binary {
        operator,
        left,
        right,
        modifier,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::guard;

    fn read(query: &str) -> Result<String, String> {
        parse(guard(query)?).map(|expr| expr.to_string())
    }

    /// The expression with parentheses around each operation.
    fn grouped(expr: &Expr) -> String {
        match expr {
            Expr::Binary(binary) => {
                let (left, right) = (grouped(&binary.left), grouped(&binary.right));
                format!("({left} {}{} {right})", binary.operator, binary.modifier)
            }
            Expr::Negated(inner) => format!("(-{})", grouped(inner)),
            other => other.to_string(),
        }
    }

    #[test]
    fn operators_bind_as_in_prometheus() {
        for (query, expected) in [
            ("a + b * c ^ d ^ e", "(a + (b * (c ^ (d ^ e))))"),
            ("a - b - c", "((a - b) - c)"),
            ("-a ^ b", "(-(a ^ b))"),
            ("-a * b", "((-a) * b)"),
            ("2 ^ -a * b", "((2 ^ (-a)) * b)"),
            ("a or b and c unless d", "(a or ((b and c) unless d))"),
            ("a > b + 1 == c", "((a > (b + 1)) == c)"),
            ("-a offset 5m + b @ 3", "((-a offset 5m) + b @ 3.000)"),
            ("a atan2 b % c", "((a atan2 b) % c)"),
            ("A AND on(x) B", "(A and on (x) B)"),
        ] {
            let expr = parse(guard(query).unwrap()).unwrap();
            assert_eq!(grouped(&expr), expected, "{query}");
        }
    }

    #[test]
    fn expressions_are_written_in_the_usual_form() {
        for (query, expected) in [
            ("SUM BY(host)(rate(x[5m]))", "sum by (host) (rate(x[5m]))"),
            ("sum(x)without(a,\"b c\",)", "sum without (a, \"b c\") (x)"),
            (
                "{\"m.n\", inf!~'b.*', a=`c`}",
                "{__name__=\"m.n\",a=\"c\",inf!~\"b.*\"}",
            ),
            (
                "x{or=\"a\"}[90d:1h] @ start() offset -1w",
                "x{or=\"a\"}[90d:1h] @ start() offset -1w",
            ),
            ("sum + by + step + offset", "sum + by + step + offset"),
            (
                "0x1F + 010 + 1e3 + .5 + 5m - -Inf",
                "31 + 8 + 1000 + 0.5 + 300 - -Inf",
            ),
            ("a * on(b) group_left (c) d", "a * on (b) group_left (c) d"),
            ("topk(3, a:b) # top", "topk(3, a:b)"),
            ("label_join(x, \"a\", \",\")", "label_join(x, \"a\", \",\")"),
            ("hour() + x @ -1.5", "hour() + x @ -1.500"),
        ] {
            assert_eq!(read(query).as_deref(), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_is_not_promql_is_refused() {
        for (query, problem) in [
            ("x y", "unexpected \"y\""),
            ("x +", "unexpected end of input, expected an expression"),
            ("(x", "expected \")\""),
            ("sum(x) by (1)", "expected label"),
            ("sum(x, y)", "expected 1, got 2"),
            ("topk(\"a\", x)", "expected type scalar"),
            ("x{a=b}", "expected string"),
            ("x{a==\"b\"}", "expected an operator after \"a\""),
            ("x{a=\"b\" or c=\"d\"}", "`or` between matchers"),
            ("{a=~\".*\"}", "at least one non-empty matcher"),
            ("x{__name__=\"y\"}", "must not be set twice"),
            ("x offset 5m offset 5m", "multiple times"),
            ("x offset 0s", "greater than 0"),
            ("(x)[5m]", "ranges only allowed"),
            (
                "x offset 1m [5m]",
                "no offset modifiers allowed before range",
            ),
            ("rate(x[5m])[5m]", "ranges only allowed"),
            ("\"a\"[5m:]", "subquery is only allowed"),
            ("1 < 2", "must use BOOL"),
            ("1 + bool 2", "bool modifier"),
            ("x and 1", "not allowed in binary scalar expression"),
            ("x and on(a) group_left y", "no grouping allowed"),
            (
                "x * on(a) group_left(a) y",
                "must not occur in ON and GROUP",
            ),
            ("x * group_left y", "unexpected <group_left>"),
            ("x * on(a) 2", "vector matching only allowed"),
            ("x[5m] + 1", "scalar and instant vector"),
            ("-\"a\"", "unary expression"),
            ("rate(x)", "unexpected type vector"),
            ("round(x, 1, 2)", "expected 1 to 2 argument(s)"),
            ("nosuch(x)", "unknown function"),
            ("bool", "unexpected <bool>"),
            ("1_0", "bad number"),
            ("x @ y", "expected timestamp"),
            ("$", "unexpected character"),
        ] {
            let found = read(query).unwrap_err();
            assert!(found.contains(problem), "{query}: {found}");
        }
    }
}
