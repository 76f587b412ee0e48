//! The programs of computed data sources as text, such as `a,b,+,8,*`.

use std::fmt;

use kymo_text::Line;

use super::{Node, Operator, Program};
use crate::model::DataSource;
use crate::{Value, text::numbers};

/// Why a text is not a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Where, in bytes from the beginning of the text.
    pub offset: usize,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            found, expected, ..
        } = self;
        write!(f, "found `{found}`, expected {expected}")
    }
}

impl std::error::Error for ExpressionError {}

/// The characters of a number, as far as rrdtool looks for one.
const NUMBER: &[u8] = b"0123456789.e+-";
/// No number is longer.
const LONGEST_NUMBER: usize = 40;

/// How the digits of constants are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// To the nearest number.
    Exact,
    /// Step by step as [rrdtool does](numbers), which may be another number beyond 15 digits.
    Rrdtool,
}

impl Program {
    /// Reads a program; `variable` finds the place of a data source by its name.
    ///
    /// As with rrdtool, a number is one only where a comma follows, and operators come before
    /// data sources of the same name.
    ///
    /// # Errors
    ///
    /// The first item that is neither number, operator nor data source.
    pub fn parse(
        text: &str,
        variable: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, ExpressionError> {
        // Of whole numbers, which are all that data sources may have, both ways make the same.
        Self::parse_with(text, Numbers::Exact, variable)
    }

    /// Reads a program as [`parse`](Self::parse) does, with numbers read in this way.
    ///
    /// # Errors
    ///
    /// The first item that is neither number, operator nor variable.
    pub fn parse_with(
        text: &str,
        numbers: Numbers,
        variable: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, ExpressionError> {
        let mut nodes = Vec::new();
        let mut offset = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (item, after) = match rest.split_once(',') {
                Some((item, after)) => (item, Some(after)),
                None => (rest, None),
            };
            let error = |expected| ExpressionError {
                offset,
                found: item.to_owned(),
                expected,
            };
            let number = after.and_then(|_| number(item, numbers));
            let operator = Operator::from_text(item);
            let previous = item
                .strip_prefix("PREV(")
                .and_then(|name| name.strip_suffix(')'));
            nodes.push(match (number, operator, previous) {
                (Some(number), _, _) => Node::Number(number),
                (_, Some(operator), _) => Node::Operator(operator),
                (_, _, Some(name)) => {
                    let missing = || error("`PREV(NAME)` of a data source before this one");
                    Node::PreviousOf(variable(name).ok_or_else(missing)?)
                }
                _ => {
                    let missing =
                        || error("a number, an operator or a data source before this one");
                    Node::Variable(variable(item).ok_or_else(missing)?)
                }
            });
            offset += item.len() + 1;
            rest = after.unwrap_or_default();
        }
        if nodes.is_empty() {
            return Err(ExpressionError {
                offset: 0,
                found: String::new(),
                expected: "an expression such as `a,8,*`",
            });
        }
        Ok(Self { nodes })
    }

    /// Appends the text of the program, with the names of the data sources it uses.
    pub fn write(&self, sources: &[DataSource], out: &mut Line) {
        let name = |place: &u32, out: &mut Line| match sources.get(*place as usize) {
            Some(source) => out.push(source.name.as_bytes()),
            None => {
                out.push_byte(b'#');
                out.decimal((*place).into());
            }
        };
        for (position, node) in self.nodes.iter().enumerate() {
            if position > 0 {
                out.push_byte(b',');
            }
            match node {
                Node::Number(number) => constant(*number, out),
                Node::Variable(place) => name(place, out),
                Node::PreviousOf(place) => {
                    out.push(b"PREV(");
                    name(place, out);
                    out.push_byte(b')');
                }
                Node::Operator(operator) => out.push(operator.text().as_bytes()),
            }
        }
    }

    /// Appends the nodes as numbers that leave no doubt: `0:BITS` is a constant, `1:PLACE` a data
    /// source, `36:PLACE` a value before of one, and any other number an operator's.
    pub(crate) fn write_nodes(&self, out: &mut Line) {
        for (position, node) in self.nodes.iter().enumerate() {
            if position > 0 {
                out.push_byte(b',');
            }
            let node = match node {
                Node::Number(number) => format!("0:{:016x}", number.to_bits()),
                Node::Variable(place) => format!("1:{place}"),
                Node::PreviousOf(place) => format!("36:{place}"),
                Node::Operator(operator) => operator.code().to_string(),
            };
            out.push(node.as_bytes());
        }
    }

    /// Reads what [`write_nodes`](Self::write_nodes) writes; `None` where it is something else.
    pub(crate) fn parse_nodes(text: &str) -> Option<Self> {
        let node = |text: &str| {
            Some(match text.split_once(':') {
                Some(("0", bits)) => {
                    Node::Number(Value::from_bits(u64::from_str_radix(bits, 16).ok()?))
                }
                Some(("1", place)) => Node::Variable(place.parse().ok()?),
                Some(("36", place)) => Node::PreviousOf(place.parse().ok()?),
                Some(_) => return None,
                None => Node::Operator(Operator::from_code(text.parse().ok()?)?),
            })
        };
        let nodes = text.split(',').map(node).collect::<Option<_>>()?;
        Some(Self { nodes })
    }
}

fn number(item: &str, how: Numbers) -> Option<Value> {
    let is_number = item.len() <= LONGEST_NUMBER && item.bytes().all(|byte| NUMBER.contains(&byte));
    if !is_number {
        return None;
    }
    let exact: Option<f64> = match how {
        Numbers::Exact => item.parse().ok(),
        Numbers::Rrdtool => None,
    };
    let number = exact.or_else(|| numbers::whole(item.as_bytes()).ok());
    number.filter(|number| number.is_finite()).map(Value::from)
}

/// A whole number as one, any other with the fewest digits that distinguish it from its neighbours.
fn constant(number: Value, out: &mut Line) {
    match number.get() {
        Some(number) if number.abs() < 1e15 && number.fract() == 0.0 => {
            if number == 0.0 && number.is_sign_negative() {
                out.push_byte(b'-');
            }
            out.signed(number as i64);
        }
        Some(f64::INFINITY) => out.push(Operator::Infinity.text().as_bytes()),
        Some(f64::NEG_INFINITY) => out.push(Operator::NegativeInfinity.text().as_bytes()),
        Some(number) => out.shortest(number, 64),
        None => out.push(Operator::Unknown.text().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;
    use crate::model::SourceKind;

    const NAMES: [&str; 4] = ["a", "b", "MIN", "5"];

    fn parse(text: &str) -> Result<Program, ExpressionError> {
        Program::parse(text, |name| {
            let place = NAMES.iter().position(|known| *known == name)?;
            u32::try_from(place).ok()
        })
    }

    fn text(program: &Program) -> String {
        let sources = NAMES.map(|name| DataSource {
            name: Text::from(name),
            kind: SourceKind::Compute(Program::default()),
        });
        let mut line = Line::new();
        program.write(&sources, &mut line);
        String::from_utf8(line.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn texts_come_back() {
        for expression in [
            "a,b,+,8,*",
            "a,-32768,+,32767,MIN,-1,MAX,UN,0,a,IF",
            "INF,NEGINF,UNKN,a,PREV(b),PREV",
            "0.1,2.5e30,+",
            "-0,1e300,5e-324,+",
        ] {
            assert_eq!(text(&parse(expression).unwrap()), expression);
        }
        assert_eq!(text(&parse("1e3,a,").unwrap()), "1000,a");
    }

    #[test]
    fn what_comes_first_is_taken() {
        use Node::{Number, Operator as Op, Variable};
        assert_eq!(
            parse("5,MIN,5").unwrap().nodes,
            [Number(Value::from(5.0)), Op(Operator::Minimum), Variable(3)]
        );
    }

    #[test]
    fn what_is_nothing_is_reported() {
        for (expression, offset, found) in [
            ("", 0, ""),
            ("a,c,+", 2, "c"),
            ("a,7", 2, "7"),
            ("a,PREV(c)", 2, "PREV(c)"),
            ("a,,+", 2, ""),
            ("a,1e9999,+", 2, "1e9999"),
            ("a,1e400,+", 2, "1e400"),
        ] {
            let error = parse(expression).unwrap_err();
            assert_eq!((error.offset, &*error.found), (offset, found));
        }
    }
}
