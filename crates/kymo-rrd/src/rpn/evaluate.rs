//! Evaluation of programs for the values of a single time.

use std::cmp::Ordering;
use std::fmt;

use super::series::MAX_ROWS;
use super::{Node, Operator, Program};

/// Why a program has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// An operator found less on the stack than it needs.
    Underflow {
        /// The place of the operator in the program.
        node: usize,
    },
    /// There is more on the stack than [`Stack::CAPACITY`].
    Overflow {
        /// The place of the node that pushes too much.
        node: usize,
    },
    /// There is not one value left at the end.
    FinalSize {
        /// How many there are.
        found: usize,
    },
    /// An operator that takes a number of values was given an invalid number.
    Count {
        /// The place of the operator in the program.
        node: usize,
    },
    /// A percentile is not between 0 and 100.
    Percentile {
        /// The place of the operator in the program.
        node: usize,
    },
    /// The node needs a series of values, or a data source that is not there.
    Unsupported {
        /// Its place in the program.
        node: usize,
    },
    /// An operator on earlier rows of a variable does not come directly behind the variable, and,
    /// if it is a trend, one item.
    Arguments {
        /// The place of the operator in the program.
        node: usize,
    },
    /// Rows of the future are asked for.
    NegativeShift {
        /// The place of the operator in the program.
        node: usize,
    },
    /// No variable is a series, so nothing determines which rows there are.
    NoSeries,
    /// The result has more rows than [`MAX_ROWS`].
    TooManyRows {
        /// How many.
        rows: u64,
    },
    /// Operators look at too many earlier rows to end in a reasonable time.
    TooMuch {
        /// The place of the operator in the program.
        node: usize,
    },
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Underflow { node } => {
                write!(f, "item {}: less on the stack than it needs", node + 1)
            }
            Self::Overflow { node } => write!(
                f,
                "item {}: more than {} values on the stack",
                node + 1,
                Stack::CAPACITY
            ),
            Self::FinalSize { found } => {
                write!(
                    f,
                    "found {found} values on the stack at the end, expected 1"
                )
            }
            Self::Count { node } => {
                write!(f, "item {}: found no number of values", node + 1)
            }
            Self::Percentile { node } => {
                write!(f, "item {}: expected a percentile of 0 to 100", node + 1)
            }
            Self::Unsupported { node } => {
                write!(
                    f,
                    "item {}: cannot be computed when values arrive",
                    node + 1
                )
            }
            Self::Arguments { node } => {
                write!(
                    f,
                    "item {}: expected a variable directly before its arguments",
                    node + 1
                )
            }
            Self::NegativeShift { node } => {
                write!(f, "item {}: found a negative shift", node + 1)
            }
            Self::NoSeries => f.write_str("found no series among the variables"),
            Self::TooManyRows { rows } => {
                write!(f, "found {rows} rows, expected at most {MAX_ROWS}")
            }
            Self::TooMuch { node } => {
                write!(f, "item {}: looks at too many earlier rows", node + 1)
            }
        }
    }
}

impl std::error::Error for EvaluateError {}

/// What programs work on; keep it, so that memory is allocated once, and so that the series that are computed with it
/// have one bound of work together.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    values: Vec<f64>,
    /// Values that programs have looked at to compute series.
    pub(super) work: u64,
}

/// A stack while a program works on it.
pub(super) struct Machine<'a> {
    values: &'a mut Vec<f64>,
    /// The node that is carried out.
    pub(super) node: usize,
}

/// The shifts of a prediction.
pub(super) enum Shifts {
    Listed(Vec<f64>),
    /// `count` multiples of `shift`, from 0 on.
    Multiples {
        count: u32,
        shift: f64,
    },
}

impl Shifts {
    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Listed(shifts) => shifts.len() as u32,
            Self::Multiples { count, .. } => *count,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.len()).map(move |place| match self {
            Self::Listed(shifts) => shifts[place as usize],
            Self::Multiples { shift, .. } => shift * f64::from(place),
        })
    }
}

/// RRDtool's constants, which end early.
const DEGREES_PER_RADIAN: f64 = 57.29577951;
const RADIANS_PER_DEGREE: f64 = 0.0174532952;

impl Stack {
    /// Values that a stack holds.
    pub const CAPACITY: usize = 1 << 12;
}

impl Program {
    /// Carries the program out. `variables` are the values of the data sources by their places, NaN
    /// where unknown, and `now` is what `NOW` pushes: seconds since 1970.
    ///
    /// # Errors
    ///
    /// Where it has no result; also for operators that need a series of values.
    pub fn evaluate(
        &self,
        variables: &[f64],
        now: f64,
        stack: &mut Stack,
    ) -> Result<f64, EvaluateError> {
        let mut machine = Machine::new(stack);
        for (place, node) in self.nodes.iter().enumerate() {
            machine.node = place;
            let unsupported = EvaluateError::Unsupported { node: place };
            match *node {
                Node::Number(number) => machine.push(number.to_f64())?,
                Node::Variable(source) => {
                    let value = variables.get(source as usize).ok_or(unsupported)?;
                    machine.push(*value)?;
                }
                Node::PreviousOf(_) => return Err(unsupported),
                Node::Operator(Operator::Now) => machine.push(now)?,
                Node::Operator(operator) if operator.needs_series() => return Err(unsupported),
                Node::Operator(operator) => machine.operate(operator)?,
            }
        }
        machine.result()
    }
}

impl<'a> Machine<'a> {
    /// An empty stack.
    pub(super) fn new(stack: &'a mut Stack) -> Self {
        stack.values.clear();
        Self {
            values: &mut stack.values,
            node: 0,
        }
    }

    /// What is left at the end.
    pub(super) fn result(&self) -> Result<f64, EvaluateError> {
        match self.values[..] {
            [result] => Ok(result),
            _ => Err(EvaluateError::FinalSize {
                found: self.values.len(),
            }),
        }
    }

    /// Number of values on the stack.
    pub(super) fn depth(&self) -> usize {
        self.values.len()
    }

    /// The shifts of a prediction: a number and that many shifts below it; or, if it is negative, one
    /// shift of which that many multiples are meant.
    pub(super) fn shifts(&mut self) -> Result<Shifts, EvaluateError> {
        match self.values.last() {
            Some(&count) if count.trunc() < 0.0 => {
                self.pop()?;
                let count = u32::try_from((count.trunc() as i64).unsigned_abs());
                let count = count.map_err(|_| EvaluateError::Count { node: self.node })?;
                let shift = self.pop()?;
                Ok(Shifts::Multiples { count, shift })
            }
            _ => {
                let count = self.count(0.0)?;
                let below = self.values.len() - count;
                Ok(Shifts::Listed(self.values.split_off(below)))
            }
        }
    }

    pub(super) fn push(&mut self, value: f64) -> Result<(), EvaluateError> {
        if self.values.len() >= Stack::CAPACITY {
            return Err(EvaluateError::Overflow { node: self.node });
        }
        self.values.push(value);
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Result<f64, EvaluateError> {
        self.values.pop().ok_or(self.underflow())
    }

    fn underflow(&self) -> EvaluateError {
        EvaluateError::Underflow { node: self.node }
    }

    /// Pops a number of values, and checks that the stack has that many.
    fn count(&mut self, least: f64) -> Result<usize, EvaluateError> {
        let count = self.pop()?.trunc();
        if !(count >= least && count <= f64::from(u32::MAX)) {
            return Err(EvaluateError::Count { node: self.node });
        }
        let count = count as usize;
        if count > self.values.len() {
            return Err(self.underflow());
        }
        Ok(count)
    }

    /// The topmost `count` values.
    fn top(&mut self, count: usize) -> &mut [f64] {
        let below = self.values.len() - count;
        &mut self.values[below..]
    }

    /// Replaces the topmost `count` values with a result.
    fn replace(&mut self, count: usize, result: f64) -> Result<(), EvaluateError> {
        self.values.truncate(self.values.len() - count);
        self.push(result)
    }

    fn unary(&mut self, function: impl Fn(f64) -> f64) -> Result<(), EvaluateError> {
        let x = self.pop()?;
        self.push(function(x))
    }

    fn binary(&mut self, function: impl Fn(f64, f64) -> f64) -> Result<(), EvaluateError> {
        let y = self.pop()?;
        let x = self.pop()?;
        self.push(function(x, y))
    }

    /// A comparison, which is unknown where one side is.
    fn compare(&mut self, holds: impl Fn(Ordering) -> bool) -> Result<(), EvaluateError> {
        self.binary(|x, y| {
            x.partial_cmp(&y)
                .map_or(f64::NAN, |order| truth(holds(order)))
        })
    }

    /// One of two values; `lenient` takes the other where one is unknown.
    fn choose(
        &mut self,
        lenient: bool,
        first: impl Fn(f64, f64) -> bool,
    ) -> Result<(), EvaluateError> {
        self.binary(|x, y| match (x.is_nan(), y.is_nan()) {
            (false, false) if first(x, y) => x,
            (false, false) => y,
            (true, _) if lenient => y,
            (_, true) if lenient => x,
            _ => f64::NAN,
        })
    }

    pub(super) fn operate(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        use Operator as O;
        match operator {
            O::Infinity => self.push(f64::INFINITY),
            O::NegativeInfinity => self.push(f64::NEG_INFINITY),
            O::Unknown => self.push(f64::NAN),
            O::Add => self.binary(|x, y| x + y),
            O::Remainder => self.binary(|x, y| x % y),
            O::Subtract => self.binary(|x, y| x - y),
            O::Multiply => self.binary(|x, y| x * y),
            O::Divide => self.binary(|x, y| x / y),
            O::Power => self.binary(f64::powf),
            O::AddKnown => self.binary(|x, y| match (x.is_nan(), y.is_nan()) {
                (true, false) => y,
                (false, true) => x,
                _ => x + y,
            }),
            O::Sine => self.unary(f64::sin),
            O::Cosine => self.unary(f64::cos),
            O::Logarithm => self.unary(f64::ln),
            O::Exponential => self.unary(f64::exp),
            O::SquareRoot => self.unary(f64::sqrt),
            O::ArcTangent => self.unary(f64::atan),
            O::ArcTangent2 => self.binary(f64::atan2),
            O::Floor => self.unary(f64::floor),
            O::Ceiling => self.unary(f64::ceil),
            O::Round => self.unary(f64::round),
            O::Absolute => self.unary(f64::abs),
            O::RadiansToDegrees => self.unary(|x| DEGREES_PER_RADIAN * x),
            O::DegreesToRadians => self.unary(|x| RADIANS_PER_DEGREE * x),
            O::Less => self.compare(Ordering::is_lt),
            O::LessOrEqual => self.compare(Ordering::is_le),
            O::Greater => self.compare(Ordering::is_gt),
            O::GreaterOrEqual => self.compare(Ordering::is_ge),
            O::Equal => self.compare(Ordering::is_eq),
            O::NotEqual => self.compare(Ordering::is_ne),
            O::Minimum => self.choose(false, |x, y| x < y),
            O::Maximum => self.choose(false, |x, y| x > y),
            O::MinimumKnown => self.choose(true, |x, y| x < y),
            O::MaximumKnown => self.choose(true, |x, y| x > y),
            O::IsUnknown => self.unary(|x| truth(x.is_nan())),
            O::IsInfinite => self.unary(|x| truth(x.is_infinite())),
            O::If => {
                let otherwise = self.pop()?;
                let then = self.pop()?;
                // An unknown condition does not hold.
                self.unary(|c| {
                    if c.is_nan() || c == 0.0 {
                        otherwise
                    } else {
                        then
                    }
                })
            }
            O::Limit => {
                let high = self.pop()?;
                let low = self.pop()?;
                self.unary(|x| {
                    if (low..=high).contains(&x) {
                        x
                    } else {
                        f64::NAN
                    }
                })
            }
            O::Duplicate => {
                let x = *self.values.last().ok_or(self.underflow())?;
                self.push(x)
            }
            O::Exchange => {
                let y = self.pop()?;
                let x = self.pop()?;
                self.push(y)?;
                self.push(x)
            }
            O::Pop => self.pop().map(drop),
            O::Depth => self.push(self.values.len() as f64),
            O::Sort => {
                let count = self.count(0.0)?;
                sort(self.top(count));
                Ok(())
            }
            O::Reverse => {
                let count = self.count(0.0)?;
                self.top(count).reverse();
                Ok(())
            }
            O::Copy => {
                let count = self.count(0.0)?;
                let below = self.values.len() - count;
                if self.values.len() + count > Stack::CAPACITY {
                    return Err(EvaluateError::Overflow { node: self.node });
                }
                self.values.extend_from_within(below..);
                Ok(())
            }
            O::Index => {
                let depth = self.count(1.0)?;
                let value = self.top(depth)[0];
                self.push(value)
            }
            O::Roll => self.roll(),
            O::Average
            | O::Median
            | O::SmallestOf
            | O::LargestOf
            | O::StandardDeviation
            | O::Percentile => self.aggregate(operator),
            O::Now
            | O::Previous
            | O::Time
            | O::LocalTime
            | O::StepWidth
            | O::Count
            | O::Trend
            | O::TrendKnown
            | O::Predict
            | O::PredictSigma
            | O::PredictPercentile
            | O::NewDay
            | O::NewWeek
            | O::NewMonth
            | O::NewYear => Err(EvaluateError::Unsupported { node: self.node }),
        }
    }

    /// Rotates the topmost values up by a number of places: those at the top move below the others.
    fn roll(&mut self) -> Result<(), EvaluateError> {
        let places = self.pop()?.trunc();
        if places.is_nan() || places.abs() > f64::from(u32::MAX) {
            return Err(EvaluateError::Count { node: self.node });
        }
        let count = self.count(0.0)?;
        if count > 0 {
            let places = (places as i64).rem_euclid(count as i64) as usize;
            self.top(count).rotate_right(places);
        }
        Ok(())
    }

    /// Makes one value of the topmost ones.
    fn aggregate(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        let percentile = match operator {
            Operator::Percentile => {
                // The number of values is on top of the percentile.
                let count = self.pop()?;
                let percentile = self.pop()?;
                self.push(count)?;
                percentile
            }
            _ => 0.0,
        };
        if !(0.0..=100.0).contains(&percentile) {
            return Err(EvaluateError::Percentile { node: self.node });
        }
        let count = self.count(1.0)?;
        let values = self.top(count);
        let known = || values.iter().rev().copied().filter(|value| !value.is_nan());
        let result = match operator {
            Operator::Average => {
                let known_count = known().count();
                // Not a fold from -0, which the sum of an iterator begins with.
                known().fold(0.0, |sum, value| sum + value) / known_count as f64
            }
            Operator::SmallestOf => known().reduce(f64::min).unwrap_or(f64::NAN),
            Operator::LargestOf => known().reduce(f64::max).unwrap_or(f64::NAN),
            Operator::StandardDeviation => deviation(known()),
            Operator::Median => {
                let mut known: Vec<f64> = known().collect();
                sort(&mut known);
                median(&known)
            }
            _ => {
                sort(values);
                let place = (percentile * count as f64 / 100.0).round() as usize;
                // Small percentiles round to none, which is below the list.
                values[place.clamp(1, count) - 1]
            }
        };
        self.replace(count, result)
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Ascending, what is unknown first.
pub(super) fn sort(values: &mut [f64]) {
    values.sort_by(|x, y| match (x.is_nan(), y.is_nan()) {
        (false, false) => x.partial_cmp(y).unwrap_or(Ordering::Equal),
        (x_unknown, y_unknown) => y_unknown.cmp(&x_unknown),
    });
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[half],
        _ => 0.5 * (sorted[half] + sorted[half - 1]),
    }
}

/// The standard deviation of a sample, by Welford's method.
fn deviation(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        let delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }
    if count < 2.0 {
        return f64::NAN;
    }
    (squares / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(text: &str) -> Result<f64, EvaluateError> {
        let names = ["a", "b", "u"];
        let program = Program::parse(text, |name| {
            u32::try_from(names.iter().position(|known| *known == name)?).ok()
        });
        let mut stack = Stack::default();
        program
            .unwrap()
            .evaluate(&[3.0, 4.0, f64::NAN], 1e9, &mut stack)
    }

    #[test]
    fn operators_do_what_the_manual_says() {
        for (text, expected) in [
            ("a,b,+", 7.0),
            ("-5,3,%", -2.0),
            ("a,b,-", -1.0),
            ("0,0,POW", 1.0),
            ("1,0,/", f64::INFINITY),
            ("5,0,%", f64::NAN),
            ("a,u,ADDNAN", 3.0),
            ("u,u,ADDNAN", f64::NAN),
            ("a,b,LT", 1.0),
            ("a,u,EQ", f64::NAN),
            ("INF,INF,EQ", 1.0),
            ("u,a,b,IF", 4.0),
            ("7,a,b,IF", 3.0),
            ("a,u,MIN", f64::NAN),
            ("a,u,MINNAN", 3.0),
            ("u,a,MAXNAN", 3.0),
            ("a,b,MAX", 4.0),
            ("a,0,5,LIMIT", 3.0),
            ("INF,0,INF,LIMIT", f64::INFINITY),
            ("a,4,5,LIMIT", f64::NAN),
            ("u,UN", 1.0),
            ("NEGINF,ISINF", 1.0),
            ("u,ISINF", 0.0),
            ("-2.5,ROUND", -3.0),
            ("180,DEG2RAD", 180.0 * 0.0174532952),
            ("1,2,EXC,-", 1.0),
            ("1,2,POP", 1.0),
            ("a,b,DEPTH,+,+", 9.0),
            ("3,u,1,3,SORT,POP,POP,UN", 1.0),
            ("1,2,3,3,REV,POP,POP", 3.0),
            ("1,u,4,3,AVG", 2.5),
            ("u,u,2,AVG", f64::NAN),
            ("4,u,1,2,9,5,MEDIAN", 3.0),
            ("4,u,1,3,SMIN", 1.0),
            ("4,u,1,3,SMAX", 4.0),
            ("2,4,4,4,5,5,7,9,8,STDEV", (32.0f64 / 7.0).sqrt()),
            ("1,1,STDEV", f64::NAN),
            ("10,20,30,40,50,4,PERCENT", 20.0),
            ("10,20,30,40,13,4,PERCENT", 10.0),
            ("10,20,30,40,1,4,PERCENT", 10.0),
            ("1,2,2,COPY,-,-,-", -2.0),
            ("10,20,30,3,INDEX,EXC,POP,EXC,POP,EXC,POP", 10.0),
            ("10,20,30,3,1,ROLL,POP,POP", 30.0),
            ("10,20,30,3,-1,ROLL,POP,POP", 20.0),
            ("NOW", 1e9),
        ] {
            // A number at the end would be none.
            let found = evaluate(&format!("{text},")).unwrap();
            let same = found == expected || found.is_nan() && expected.is_nan();
            assert!(same, "{text}: {found}");
        }
    }

    #[test]
    fn what_has_no_result_is_an_error() {
        use EvaluateError::*;
        for (text, error) in [
            ("+", Underflow { node: 0 }),
            ("1,+", Underflow { node: 1 }),
            ("1,2,3,SORT", Underflow { node: 3 }),
            ("1,2,", FinalSize { found: 2 }),
            ("1,POP", FinalSize { found: 0 }),
            ("1,2,-2,SORT", Count { node: 3 }),
            ("u,REV", Count { node: 1 }),
            ("0,AVG", Count { node: 1 }),
            ("1,INF,COPY", Count { node: 2 }),
            ("1,0,INDEX", Count { node: 2 }),
            ("1,101,1,PERCENT", Percentile { node: 3 }),
            ("1,u,1,PERCENT", Percentile { node: 3 }),
            ("PREV", Unsupported { node: 0 }),
        ] {
            assert_eq!(evaluate(text), Err(error), "{text}");
        }
        let doubling = format!("1{}", ",DEPTH,COPY".repeat(40));
        assert!(matches!(evaluate(&doubling), Err(Overflow { .. })));
    }
}
