//! The grammar of PromQL.
//!
//! The parser recurses, and so does what follows it: levels of parentheses and operators are bounded.

use regex::Regex;

use crate::aggregate::Operator;
use crate::ast::{
    Aggregate, At, Call, Cardinality, Comparison, Expr, Grouping, Kind, Matcher, Millis, Modifier,
    Range, Subquery, When,
};
use crate::binary::{BinaryOperator, OPERATORS, POWER};
use crate::compose::{binary, misplaced, negated, selector, when};
use crate::functions::{is_label, refusal, signature};
use crate::labels::NAME;
use crate::over_time::SMOOTHING;
use crate::regexes;
use crate::tokens::{Problem, Token, tokens};

/// How deep parentheses may be nested.
const DEEPEST: usize = 64;
/// Operators of a query: each may be a level of the expression.
const MOST_OPERATORS: usize = 250;
/// Matchers with regular expressions.
const MOST_REGEXES: usize = 100;

/// Reads a query.
///
/// # Errors
///
/// What is wrong with it, with its line and column.
pub(crate) fn parse(query: &str) -> Result<Expr, String> {
    whole(query).map_err(|problem| problem.describe(query))
}

fn whole(query: &str) -> Result<Expr, Problem> {
    let mut parser = Parser {
        tokens: tokens(query)?,
        next: 0,
        depth: 0,
        operators: 0,
        regexes: 0,
    };
    if *parser.peek() == Token::End {
        let text = "no expression found in input".to_owned();
        return Err(Problem { at: 0, text });
    }
    let expr = parser.expr(0)?;
    match parser.peek() {
        Token::End => Ok(expr),
        other => Err(parser.problem(format!("unexpected {other}"))),
    }
}

/// What a word means that is a number.
fn named_number(word: &str) -> Option<f64> {
    match word.to_ascii_lowercase().as_str() {
        "inf" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// A function that was renamed in Prometheus 3.
const HOLT_WINTERS: &str = "holt_winters";

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
    tokens: Vec<(Token<'q>, usize)>,
    /// Number of the token that comes next.
    next: usize,
    /// Levels of parentheses that are open.
    depth: usize,
    /// Operators so far.
    operators: usize,
    /// Regular expressions so far.
    regexes: usize,
}

impl<'q> Parser<'q> {
    fn peek(&self) -> &Token<'q> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token<'q> {
        let token = self.tokens.get(self.next + ahead);
        token.map_or(&Token::End, |(token, _)| token)
    }

    /// The token that comes next, and the byte where it begins.
    fn take(&mut self) -> (Token<'q>, usize) {
        let found = (self.peek().clone(), self.place());
        self.next += 1;
        found
    }

    /// The byte where the next token begins.
    fn place(&self) -> usize {
        let last = self.tokens.last();
        let token = self.tokens.get(self.next).or(last);
        token.map_or(0, |(_, at)| *at)
    }

    /// A problem with the token that comes next.
    fn problem(&self, text: impl Into<String>) -> Problem {
        problem(self.place(), text)
    }

    fn limit(&self, count: usize, limit: usize, what: &str) -> Result<(), Problem> {
        match count > limit {
            true => Err(self.problem(format!("more than {limit} {what}"))),
            false => Ok(()),
        }
    }

    /// Counts an operator.
    fn count(&mut self) -> Result<(), Problem> {
        self.operators += 1;
        self.limit(self.operators, MOST_OPERATORS, "operators")
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    /// Passes over a word if it comes next.
    fn word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        self.next += usize::from(is_next);
        is_next
    }

    /// Passes over a symbol if it comes next.
    fn symbol(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Problem> {
        match self.symbol(symbol) {
            true => Ok(()),
            false => {
                Err(self.problem(format!("unexpected {}, expected \"{symbol}\"", self.peek())))
            }
        }
    }

    /// Passes over `(` that may hold others.
    fn open(&mut self) -> Result<(), Problem> {
        self.limit(self.depth + 1, DEEPEST, "levels of parentheses")?;
        self.expect("(")?;
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        self.expect(")")?;
        self.depth -= 1;
        Ok(())
    }

    /// An expression of operators that bind at least so tightly.
    fn expr(&mut self, least: u8) -> Result<Expr, Problem> {
        let begin = self.place();
        let is_negated = matches!(self.peek(), Token::Symbol("-"));
        let mut left = if is_negated || matches!(self.peek(), Token::Symbol("+")) {
            self.count()?;
            self.next += 1;
            let operand = self.expr(POWER)?;
            match is_negated {
                true => negated(operand).map_err(|text| problem(begin, text))?,
                false => operand,
            }
        } else {
            self.operand()?
        };
        while let Some(operator) = self.operator()
            && operator.level >= least
        {
            self.count()?;
            self.next += 1;
            let modifier = self.modifier()?;
            // Powers are of what follows, all others of what is before.
            let right = self.expr(operator.level + u8::from(operator.level != POWER))?;
            left = binary(left, operator, modifier, right).map_err(|text| problem(begin, text))?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<&'static BinaryOperator> {
        let mut operators = OPERATORS.iter();
        match self.peek() {
            Token::Word(word) => operators.find(|it| it.name.eq_ignore_ascii_case(word)),
            Token::Symbol(symbol) => operators.find(|it| it.name == *symbol),
            _ => None,
        }
    }

    fn modifier(&mut self) -> Result<Modifier, Problem> {
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
                    return Err(self.problem(format!("unexpected <{word}>")));
                }
                self.next += 1;
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
    fn labels(&mut self) -> Result<Vec<String>, Problem> {
        self.expect("(")?;
        let mut labels = Vec::new();
        while !self.symbol(")") {
            let (token, at) = self.take();
            match token {
                Token::Word(word)
                    if is_label(word)
                        && !word.eq_ignore_ascii_case("without")
                        && named_number(word).is_none() =>
                {
                    labels.push(word.to_owned());
                }
                Token::Text(text) => labels.push(text),
                other => {
                    let text = format!("unexpected {other} in grouping opts, expected label");
                    return Err(problem(at, text));
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
    fn operand(&mut self) -> Result<Expr, Problem> {
        let begin = self.place();
        let mut expr = self.primary()?;
        loop {
            let at = self.place();
            expr = if self.symbol("[") {
                self.range(expr, begin)?
            } else if self.symbol("@") {
                let time = self.time()?;
                let when = when(&mut expr).ok_or_else(|| problem(begin, misplaced("@")))?;
                if when.at.replace(time).is_some() {
                    return Err(problem(at, "@ <timestamp> may not be set multiple times"));
                }
                expr
            } else if self.word("offset") {
                let is_before = self.symbol("-");
                if !is_before {
                    self.symbol("+");
                }
                let offset = self.duration("offset")?;
                let offset = if is_before { -offset } else { offset };
                let when = when(&mut expr).ok_or_else(|| problem(begin, misplaced("offset")))?;
                if when.offset.replace(offset).is_some() {
                    return Err(problem(at, "offset may not be set multiple times"));
                }
                expr
            } else {
                return Ok(expr);
            };
        }
    }

    /// What is behind `[` and an expression that begins there.
    fn range(&mut self, expr: Expr, begin: usize) -> Result<Expr, Problem> {
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
                let text =
                    format!("subquery is only allowed on instant vector, got {kind} instead");
                return Err(problem(begin, text));
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
        let text = match expr {
            Expr::Selector(selector) if selector.when.offset.is_some() => {
                "no offset modifiers allowed before range"
            }
            Expr::Selector(selector) if selector.when.at.is_some() => {
                "no @ modifiers allowed before range"
            }
            Expr::Selector(selector) => return Ok(Expr::Range(Range { selector, range })),
            _ => "ranges only allowed for vector selectors",
        };
        Err(problem(begin, text))
    }

    fn duration(&mut self, context: &str) -> Result<Millis, Problem> {
        let (token, at) = self.take();
        let text = match token {
            Token::Duration(0) => "duration must be greater than 0".to_owned(),
            Token::Duration(millis) => return Ok(millis),
            Token::Number(_) => "missing unit in a duration, such as 5m".to_owned(),
            other => format!("unexpected {other} in {context}, expected a duration such as 5m"),
        };
        Err(problem(at, text))
    }

    /// What is behind `@`.
    fn time(&mut self) -> Result<At, Problem> {
        for (word, time) in [("start", At::Start), ("end", At::End)] {
            if self.word(word) {
                self.expect("(")?;
                self.expect(")")?;
                return Ok(time);
            }
        }
        let is_negative = self.symbol("-");
        if !is_negative {
            self.symbol("+");
        }
        let (token, at) = self.take();
        let seconds = match token {
            Token::Number(seconds) => Some(seconds),
            Token::Duration(millis) => Some(millis as f64 / 1000.0),
            Token::Word(word) => named_number(word),
            _ => None,
        };
        let seconds = seconds.ok_or_else(|| {
            let text = format!("unexpected {token} in @, expected timestamp");
            problem(at, text)
        })?;
        let seconds = if is_negative { -seconds } else { seconds };
        let millis = (seconds * 1000.0).round();
        match millis.is_nan() || millis.abs() >= Millis::MAX as f64 {
            true => {
                let text = format!("timestamp out of bounds for @ modifier: {seconds:.6}");
                Err(problem(at, text))
            }
            false => Ok(At::Time(millis as Millis)),
        }
    }

    fn primary(&mut self) -> Result<Expr, Problem> {
        let is_call = matches!(self.peek_at(1), Token::Symbol("("));
        if matches!(self.peek(), Token::Symbol("(")) {
            self.open()?;
            let inner = self.expr(0)?;
            self.close()?;
            return Ok(Expr::Paren(Box::new(inner)));
        }
        let (token, at) = self.take();
        match token {
            Token::Number(number) => Ok(Expr::Number(number)),
            Token::Duration(millis) => Ok(Expr::Number(millis as f64 / 1000.0)),
            Token::Text(text) => Ok(Expr::Text(text)),
            Token::Symbol("{") => self.selector(None, at),
            Token::Word(word) => {
                if let Some(number) = named_number(word) {
                    return Ok(Expr::Number(number));
                }
                let is_grouped = self.is_word("by") || self.is_word("without");
                match Operator::named(&word.to_ascii_lowercase()) {
                    Some(operator) if is_call || is_grouped => self.aggregate(operator, at),
                    _ if is_call => self.call(word, at),
                    _ if RESERVED.iter().any(|it| it.eq_ignore_ascii_case(word)) => {
                        Err(problem(at, format!("unexpected <{word}>")))
                    }
                    _ if self.symbol("{") => self.selector(Some(word), at),
                    _ => selector(Some(word), Vec::new()).map_err(|text| problem(at, text)),
                }
            }
            other => {
                let text = format!("unexpected {other}, expected an expression");
                Err(problem(at, text))
            }
        }
    }

    /// What is behind `{`, in a selector that begins there.
    fn selector(&mut self, name: Option<&str>, begin: usize) -> Result<Expr, Problem> {
        let mut matchers = Vec::new();
        while !self.symbol("}") {
            matchers.push(self.matcher()?);
            if self.is_word("or") {
                return Err(self.problem("`or` between matchers is not supported"));
            }
            if !self.symbol(",") {
                self.expect("}")?;
                break;
            }
        }
        selector(name, matchers).map_err(|text| problem(begin, text))
    }

    fn matcher(&mut self) -> Result<Matcher, Problem> {
        let (token, at) = self.take();
        let name = match token {
            Token::Word(word) if is_label(word) => word.to_owned(),
            Token::Text(text) => match self.peek() {
                Token::Symbol("," | "}") => return Ok(Matcher::equal(NAME, &text)),
                _ => text,
            },
            other => {
                let text =
                    format!("unexpected {other} in label matching, expected identifier or \"}}\"");
                return Err(problem(at, text));
            }
        };
        let (operator, at) = self.take();
        let Token::Symbol("=" | "!=" | "=~" | "!~") = operator else {
            let text = format!(
                "unexpected {operator} in label matching, expected an operator after \"{name}\""
            );
            return Err(problem(at, text));
        };
        let (token, at) = self.take();
        let Token::Text(value) = token else {
            let text = format!("unexpected {token} in label matching, expected string");
            return Err(problem(at, text));
        };
        let comparison = match operator {
            Token::Symbol("=~") => Comparison::Matches(self.regex(&value, at)?),
            Token::Symbol("!~") => Comparison::Differs(self.regex(&value, at)?),
            Token::Symbol("!=") => Comparison::NotEqual,
            _ => Comparison::Equal,
        };
        Ok(Matcher {
            name,
            comparison,
            value,
        })
    }

    /// A regular expression at a place. The first of a query may take 1 MiB, the second half of that, and so on: 6 MiB
    /// in total.
    fn regex(&mut self, pattern: &str, at: usize) -> Result<Regex, Problem> {
        self.regexes += 1;
        self.limit(self.regexes, MOST_REGEXES, "regular expressions")?;
        regexes::compile(pattern, self.regexes).map_err(|text| problem(at, text))
    }

    /// `(a, b)`
    fn args(&mut self) -> Result<Vec<Expr>, Problem> {
        self.open()?;
        let mut args = Vec::new();
        if !matches!(self.peek(), Token::Symbol(")")) {
            args.push(self.expr(0)?);
            while self.symbol(",") {
                args.push(self.expr(0)?);
            }
        }
        self.close()?;
        Ok(args)
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, Problem> {
        if self.word("by") {
            return Ok(Some(Grouping::Only(self.labels()?)));
        }
        match self.word("without") {
            true => Ok(Some(Grouping::Without(self.labels()?))),
            false => Ok(None),
        }
    }

    fn aggregate(&mut self, operator: Operator, begin: usize) -> Result<Expr, Problem> {
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
            let text = format!(
                "wrong number of arguments for aggregate expression provided, expected {expected}, got {found}"
            );
            return Err(problem(begin, text));
        };
        let parameter = args.pop();
        let kinds = [Some(Kind::Vector), parameter_kind];
        for (arg, kind) in [Some(&expr), parameter.as_ref()].into_iter().zip(kinds) {
            if let (Some(arg), Some(kind)) = (arg, kind)
                && arg.kind() != kind
            {
                let found = arg.kind();
                let text = format!("expected type {kind} in aggregation expression, got {found}");
                return Err(problem(begin, text));
            }
        }
        Ok(Expr::Aggregate(Box::new(Aggregate {
            operator,
            parameter,
            expr,
            grouping,
        })))
    }

    fn call(&mut self, name: &str, begin: usize) -> Result<Expr, Problem> {
        let args = self.args()?;
        let renamed = if name == HOLT_WINTERS {
            SMOOTHING
        } else {
            name
        };
        let signature = signature(renamed).ok_or_else(|| problem(begin, refusal(name)))?;
        let (name, kinds) = (signature.name, signature.args);
        let found = args.len();
        if found < signature.least || signature.most.is_some_and(|most| found > most) {
            let least = signature.least;
            let expected = match signature.most {
                Some(most) if most == least => least.to_string(),
                Some(most) => format!("{least} to {most}"),
                None => format!("at least {least}"),
            };
            let text = format!("expected {expected} argument(s) in call to '{name}', got {found}");
            return Err(problem(begin, text));
        }
        for (place, arg) in args.iter().enumerate() {
            let expected = kinds.get(place).or(kinds.last());
            let found = arg.kind();
            if expected.is_some_and(|expected| *expected != found) {
                let text = format!("unexpected type {found} in call to function '{name}'");
                return Err(problem(begin, text));
            }
        }
        Ok(Expr::Call(Call {
            name,
            args,
            returns: signature.returns,
        }))
    }
}

fn problem(at: usize, text: impl Into<String>) -> Problem {
    let text = text.into();
    Problem { at, text }
}

#[cfg(test)]
mod tests;
