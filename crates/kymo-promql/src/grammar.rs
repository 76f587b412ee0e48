//! The grammar of PromQL.
//!
//! The parser recurses, and so does what follows it: levels of parentheses and operators are bounded.

use regex::Regex;

use crate::aggregate::Operator;
use crate::ast::{
    Aggregate, At, Binary, Call, Cardinality, Comparison, Expr, Grouping, Kind, Matcher, Millis,
    Modifier, Range, Selector, Subquery, When,
};
use crate::binary::{BinaryOperator, Computation, OPERATORS, Operation, POWER};
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

fn problem(at: usize, text: impl Into<String>) -> Problem {
    let text = text.into();
    Problem { at, text }
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
    operator: &'static BinaryOperator,
    mut modifier: Modifier,
    right: Expr,
) -> Result<Expr, String> {
    let BinaryOperator {
        name, operation, ..
    } = operator;
    let kinds = [left.kind(), right.kind()];
    let has_scalar = kinds.contains(&Kind::Scalar);
    let names = modifier.matching.as_ref().map_or(&[][..], Grouping::names);
    let is_grouped = matches!(
        modifier.cardinality,
        Cardinality::ManyToOne(_) | Cardinality::OneToMany(_)
    );
    let is_comparison = matches!(operation, Operation::Compute(Computation::Compare(_)));
    if modifier.returns_bool && !is_comparison {
        return Err("bool modifier can only be used on comparison operators".to_owned());
    }
    if is_comparison && kinds == [Kind::Scalar; 2] && !modifier.returns_bool {
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
    if matches!(operation, Operation::Set(_)) {
        if has_scalar {
            return Err(format!(
                "set operator '{name}' not allowed in binary scalar expression"
            ));
        }
        if is_grouped {
            return Err(format!("no grouping allowed for '{name}' operation"));
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
    let returns = match kinds {
        [Kind::Scalar, Kind::Scalar] => Kind::Scalar,
        _ => Kind::Vector,
    };
    Ok(Expr::Binary(Box::new(Binary {
        operator,
        returns,
        left,
        right,
        modifier,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<String, String> {
        parse(query).map(|expr| expr.to_string())
    }

    /// The expression with parentheses around each operation.
    fn grouped(expr: &Expr) -> String {
        match expr {
            Expr::Binary(binary) => {
                let (left, right) = (grouped(&binary.left), grouped(&binary.right));
                format!(
                    "({left} {}{} {right})",
                    binary.operator.name, binary.modifier
                )
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
            let expr = parse(query).unwrap();
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
    fn what_a_query_holds_is_bounded() {
        let nested = |levels| format!("{}x{}", "(".repeat(levels), ")".repeat(levels));
        assert!(parse(&nested(64)).is_ok());
        for query in [
            nested(65),
            format!("{}x", "-".repeat(251)),
            vec!["x"; 252].join(" + "),
        ] {
            assert!(parse(&query).unwrap_err().contains("more than"), "{query}");
        }
        let large = r#"x{file=~"[\\pL\\pN]{1,200}"}"#;
        let error = parse(large).unwrap_err();
        assert!(error.contains("too large together"), "{error}");
        // One may be large, many are small.
        let names: Vec<String> = (0..500).map(|number| format!("host-{number}")).collect();
        assert!(parse(&format!("x{{a=~\"{}\"}}", names.join("|"))).is_ok());
        let many = |count| format!("x{{{}}}", vec![r#"a=~"b.*""#; count].join(","));
        assert!(parse(&many(50)).is_ok());
        assert!(parse(&many(101)).is_err());
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
            ("rate(x[5m],)", "1:12: parse error: unexpected \")\""),
            ("x[5]", "1:3: parse error: missing unit in a duration"),
            ("x\noffset 5", "2:8: parse error: missing unit"),
            ("x[]", "expected a duration such as 5m"),
            ("x offset -9999999999s", "duration out of range"),
            ("x @ -1e16", "timestamp out of bounds"),
            ("x @ +Inf", "timestamp out of bounds"),
            (
                r#"x{a=~"b**"}"#,
                "1:6: parse error: error parsing regexp: invalid nested repetition operator",
            ),
            ("", "1:1: parse error: no expression found in input"),
            (" # x", "1:1: parse error: no expression found in input"),
        ] {
            let found = read(query).unwrap_err();
            assert!(found.contains(problem), "{query}: {found}");
        }
    }
}
