//! Expressions in reverse Polish notation: what data sources of kind COMPUTE are computed with, and
//! series of values from others.
//!
//! [`Program`] is one, [`Program::parse`] reads its text, [`Program::check_compute`] checks whether
//! a data source may have it, and [`Program::evaluate`] evaluates it for a single time.
//! [`Program::evaluate_series`] does so for all rows of a [`Series`], of which a [`Summary`] makes one
//! value.

mod compute;
mod evaluate;
mod series;
mod summary;
mod text;

pub(crate) use compute::place_of;
pub use compute::{ComputeError, MAX_NODES};
pub use evaluate::{EvaluateError, Stack};
pub use series::{MAX_ROWS, Series, Surroundings, Variable, greatest_divisor};
pub use summary::Summary;
pub use text::{ExpressionError, Numbers};

/// A program: what a data source of kind COMPUTE is computed with from the data sources
/// before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The nodes, in the order of execution. There is no end node.
    pub nodes: Vec<Node>,
}

/// One step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// Pushes a constant, which is known. Native files hold whole numbers of 16 bits only.
    Number(crate::Value),
    /// Pushes the value of a data source, by its place in the file.
    Variable(u32),
    /// Pushes the value before of a data source, by its place in the file.
    PreviousOf(u32),
    /// Works on what is on the stack.
    Operator(Operator),
}

/// Defines the operators: their names, numbers in files, and texts.
macro_rules! operators {
    ($($name:ident = $code:literal $text:literal $meaning:literal,)*) => {
        /// An operator of RRDtool's notation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operator {
            $(
                #[doc = $meaning]
                $name = $code,
            )*
        }

        impl Operator {
            /// All operators, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The operator as it is written in an expression.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

operators! {
    Infinity = 2 "INF" "Pushes infinity.",
    Previous = 3 "PREV" "Pushes the result before.",
    NegativeInfinity = 4 "NEGINF" "Pushes negative infinity.",
    Unknown = 5 "UNKN" "Pushes an unknown value.",
    Now = 6 "NOW" "Pushes the time of day now.",
    Time = 7 "TIME" "Pushes the time of the value.",
    Add = 8 "+" "Sum.",
    Remainder = 9 "%" "Remainder, as `fmod` of C.",
    Subtract = 10 "-" "Difference.",
    Multiply = 11 "*" "Product.",
    Divide = 12 "/" "Quotient.",
    Sine = 13 "SIN" "Sine of radians.",
    Duplicate = 14 "DUP" "Pushes the top once more.",
    Exchange = 15 "EXC" "Exchanges the two topmost values.",
    Pop = 16 "POP" "Removes the top.",
    Cosine = 17 "COS" "Cosine of radians.",
    Logarithm = 18 "LOG" "Natural logarithm.",
    Exponential = 19 "EXP" "Power of e.",
    Less = 20 "LT" "Less than.",
    LessOrEqual = 21 "LE" "Less than or equal.",
    Greater = 22 "GT" "Greater than.",
    GreaterOrEqual = 23 "GE" "Greater than or equal.",
    Equal = 24 "EQ" "Equal.",
    If = 25 "IF" "One of two values, by a condition.",
    Minimum = 26 "MIN" "The lesser of two; unknown if one is.",
    Maximum = 27 "MAX" "The greater of two; unknown if one is.",
    Limit = 28 "LIMIT" "Unknown outside of a range.",
    Floor = 29 "FLOOR" "Rounded down.",
    Ceiling = 30 "CEIL" "Rounded up.",
    IsUnknown = 31 "UN" "Whether a value is unknown.",
    LocalTime = 33 "LTIME" "Pushes the time of the value in local time.",
    NotEqual = 34 "NE" "Not equal.",
    IsInfinite = 35 "ISINF" "Whether a value is infinite.",
    Count = 37 "COUNT" "Pushes the number of the value.",
    ArcTangent = 38 "ATAN" "Arc tangent in radians.",
    SquareRoot = 39 "SQRT" "Square root.",
    Sort = 40 "SORT" "Sorts so many values.",
    Reverse = 41 "REV" "Reverses so many values.",
    Trend = 42 "TREND" "Moving average.",
    TrendKnown = 43 "TRENDNAN" "Moving average of what is known.",
    ArcTangent2 = 44 "ATAN2" "Arc tangent of a quotient.",
    RadiansToDegrees = 45 "RAD2DEG" "Degrees from radians.",
    DegreesToRadians = 46 "DEG2RAD" "Radians from degrees.",
    Predict = 47 "PREDICT" "Prediction from earlier values.",
    PredictSigma = 48 "PREDICTSIGMA" "Standard deviation of a prediction.",
    Average = 49 "AVG" "Mean of so many values.",
    Absolute = 50 "ABS" "Absolute value.",
    AddKnown = 51 "ADDNAN" "Sum that takes an unknown value as 0.",
    MinimumKnown = 52 "MINNAN" "The lesser of what is known.",
    MaximumKnown = 53 "MAXNAN" "The greater of what is known.",
    Median = 54 "MEDIAN" "Median of so many values.",
    PredictPercentile = 55 "PREDICTPERC" "Percentile of a prediction.",
    Depth = 56 "DEPTH" "Pushes the depth of the stack.",
    Copy = 57 "COPY" "Pushes so many values once more.",
    Roll = 58 "ROLL" "Rotates so many values.",
    Index = 59 "INDEX" "Pushes a value from so deep.",
    StepWidth = 60 "STEPWIDTH" "Pushes the step in seconds.",
    NewDay = 61 "NEWDAY" "Whether a day begins.",
    NewWeek = 62 "NEWWEEK" "Whether a week begins.",
    NewMonth = 63 "NEWMONTH" "Whether a month begins.",
    NewYear = 64 "NEWYEAR" "Whether a year begins.",
    SmallestOf = 65 "SMIN" "Least of so many values.",
    LargestOf = 66 "SMAX" "Greatest of so many values.",
    StandardDeviation = 67 "STDEV" "Standard deviation of so many values.",
    Percentile = 68 "PERCENT" "Percentile of so many values.",
    Power = 69 "POW" "Power.",
    Round = 70 "ROUND" "Rounded to the nearest, halves away from zero.",
}

impl Operator {
    /// The number of the operator in files.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The operator of a number in files, where there is one. Constants and variables are
    /// [`Node`]s of their own.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|operator| operator.code() == code)
    }

    /// Whether it takes the number of values that it works on from the stack.
    pub const fn takes_count(self) -> bool {
        matches!(
            self,
            Self::Sort
                | Self::Reverse
                | Self::Copy
                | Self::Roll
                | Self::Average
                | Self::Median
                | Self::SmallestOf
                | Self::LargestOf
                | Self::StandardDeviation
                | Self::Percentile
        )
    }

    /// The operator that is written so, where there is one.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|operator| operator.text() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_found_by_number_and_text() {
        for &operator in Operator::ALL {
            assert_eq!(Operator::from_code(operator.code()), Some(operator));
            assert_eq!(Operator::from_text(operator.text()), Some(operator));
        }
        assert!(
            Operator::ALL
                .iter()
                .map(|operator| operator.code())
                .is_sorted()
        );
        // Constants, variables, the end, and what is not known yet.
        for code in [0, 1, 32, 36, 71, 255] {
            assert_eq!(Operator::from_code(code), None);
        }
    }
}
