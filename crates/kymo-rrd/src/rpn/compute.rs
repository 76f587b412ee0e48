//! What data sources of kind COMPUTE may be computed with.

use std::fmt;

use super::{Node, Operator, Program};
use crate::model::DataSource;

/// Nodes that a native file has room for, beside the one that ends the program.
pub const MAX_NODES: usize = 19;

/// Why a data source cannot be computed with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeError {
    /// There is nothing in it.
    Empty,
    /// It has more than [`MAX_NODES`].
    TooLong {
        /// How many.
        nodes: usize,
    },
    /// A constant is not a whole number of -32768 to 32767.
    Constant(crate::Value),
    /// An operator needs a series of values, or the time that they are of.
    Operator(Operator),
    /// `PREV` of a data source: an update knows no value before.
    PreviousOf(u32),
    /// The data source does not come before this one.
    Variable(u32),
}

impl fmt::Display for ComputeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("found nothing, expected an expression such as `a,8,*`"),
            Self::TooLong { nodes } => {
                write!(f, "found {nodes} items, expected at most {MAX_NODES}")
            }
            Self::Constant(number) => {
                write!(
                    f,
                    "found {number}, expected whole numbers of -32768 to 32767"
                )
            }
            Self::Operator(operator) => write!(
                f,
                "found `{}`, expected operators that need no series",
                operator.text()
            ),
            Self::PreviousOf(_) => {
                f.write_str("found `PREV(NAME)`, but an update knows no value before")
            }
            Self::Variable(place) => {
                write!(f, "found data source {place}, expected one before this one")
            }
        }
    }
}

impl std::error::Error for ComputeError {}

impl Operator {
    /// Whether it needs more than the values of a single time.
    pub const fn needs_series(self) -> bool {
        matches!(
            self,
            Self::Previous
                | Self::Time
                | Self::LocalTime
                | Self::StepWidth
                | Self::Count
                | Self::Trend
                | Self::TrendKnown
                | Self::Predict
                | Self::PredictSigma
                | Self::PredictPercentile
                | Self::NewDay
                | Self::NewWeek
                | Self::NewMonth
                | Self::NewYear
        )
    }
}

impl Program {
    /// Checks that a data source can be computed with this, if it has `before` data sources before
    /// it.
    ///
    /// # Errors
    ///
    /// The first node that it may not have.
    pub fn check_compute(&self, before: usize) -> Result<(), ComputeError> {
        match self.nodes.len() {
            0 => return Err(ComputeError::Empty),
            nodes if nodes > MAX_NODES => return Err(ComputeError::TooLong { nodes }),
            _ => {}
        }
        self.nodes.iter().try_for_each(|node| match *node {
            Node::Number(number) => {
                let whole = number.get().filter(|number| {
                    number.fract() == 0.0 && (-32768.0..=32767.0).contains(number)
                });
                whole.map(drop).ok_or(ComputeError::Constant(number))
            }
            Node::Variable(place) if place as usize >= before => Err(ComputeError::Variable(place)),
            Node::Variable(_) => Ok(()),
            Node::PreviousOf(place) => Err(ComputeError::PreviousOf(place)),
            Node::Operator(operator) if operator.needs_series() => {
                Err(ComputeError::Operator(operator))
            }
            Node::Operator(_) => Ok(()),
        })
    }
}

/// The place of a data source of this name, for [`Program::parse`].
pub(crate) fn place_of(sources: &[DataSource], name: &str) -> Option<u32> {
    let place = sources
        .iter()
        .position(|source| source.name.as_bytes() == name.as_bytes())?;
    u32::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn check(text: &str) -> Result<(), ComputeError> {
        let names = ["a", "b", "c"];
        let program = Program::parse(text, |name| {
            u32::try_from(names.iter().position(|known| *known == name)?).ok()
        });
        program.unwrap().check_compute(2)
    }

    #[test]
    fn what_an_update_can_compute() {
        for good in ["a,b,+,8,*", "a,1e3,-32768,32767,NOW", "a,b,2,AVG", "a"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, error) in [
            ("a,0.5,*", ComputeError::Constant(Value::from(0.5))),
            ("a,32768,*", ComputeError::Constant(Value::from(32768.0))),
            ("c", ComputeError::Variable(2)),
            ("PREV(a)", ComputeError::PreviousOf(0)),
            ("PREV", ComputeError::Operator(Operator::Previous)),
            ("a,300,TREND", ComputeError::Operator(Operator::Trend)),
        ] {
            assert_eq!(check(bad), Err(error), "{bad}");
        }
        let long = format!("a{}", ",ABS".repeat(MAX_NODES));
        assert_eq!(check(&long), Err(ComputeError::TooLong { nodes: 20 }));
        assert_eq!(check(long.strip_suffix(",ABS").unwrap()), Ok(()));
        assert_eq!(
            Program::default().check_compute(9),
            Err(ComputeError::Empty)
        );
    }
}
