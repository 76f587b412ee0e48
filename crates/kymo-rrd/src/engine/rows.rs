//! Consolidation: rows of archives from data points.

use super::plan::Ring;
use crate::Value;
use crate::model::{Consolidation, Scratch};

/// How points of a pass fall into the rows of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Points up to the end of the row under way.
    first: u64,
    /// Points after the last row that ends.
    rest: u64,
    /// Rows that end, at most those of the archive.
    pub(super) rows: u64,
    /// Points.
    steps: u64,
}

impl Cut {
    /// A point that ends a row.
    pub(super) const LAST_POINT: Self = Self {
        first: 1,
        rest: 0,
        rows: 1,
        steps: 1,
    };

    #[inline]
    pub(super) fn new(ring: &Ring, first_step: u64, steps: u64) -> Self {
        Self::of(ring.points, ring.rows, first_step, steps)
    }

    #[inline]
    fn of(points: u64, rows: u64, first_step: u64, steps: u64) -> Self {
        let first = points - first_step % points;
        if first > steps {
            return Self {
                first,
                rest: 0,
                rows: 0,
                steps,
            };
        }
        let after = steps - first;
        Self {
            first,
            rest: after % points,
            rows: (after / points + 1).min(rows),
            steps,
        }
    }
}

/// What an archive of several points a row knows of the row under way, of a data source.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    pub(super) value: f64,
    pub(super) unknown_points: u64,
}

impl UnderWay {
    /// Ends the row and those that end after it, and begins the next one. Gives the value of the row.
    #[inline]
    pub(super) fn end(
        &mut self,
        function: Consolidation,
        xff: f64,
        points: u64,
        cut: &Cut,
        rate: f64,
    ) -> f64 {
        let mut unknown = self.unknown_points;
        if rate.is_nan() {
            unknown = unknown.wrapping_add(cut.first);
        }
        let row = if unknown as f64 > points as f64 * xff {
            f64::NAN
        } else {
            let known = points.wrapping_sub(unknown) as f64;
            ended(function, self.value, rate, cut.first, known)
        };
        self.value = if cut.rest == 0 || rate.is_nan() {
            neutral(function)
        } else if function == Consolidation::Average {
            rate * cut.rest as f64
        } else {
            rate
        };
        self.unknown_points = if rate.is_nan() { cut.rest } else { 0 };
        row
    }
}

/// The value of a row that begins: what changes nothing.
const fn neutral(function: Consolidation) -> f64 {
    match function {
        Consolidation::Average => 0.0,
        Consolidation::Min => f64::INFINITY,
        Consolidation::Max => f64::NEG_INFINITY,
        Consolidation::Last => f64::NAN,
    }
}

fn lesser(x: f64, y: f64) -> f64 {
    if x < y { x } else { y }
}

fn greater(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}

/// Adds the point that ends a step, which is counted since 1970, to what an archive of several points
/// a row remembers of a data source.
pub(crate) fn fold(
    scratch: &mut Scratch,
    function: Consolidation,
    xff: f64,
    points: u64,
    step: u64,
    rate: f64,
) {
    let cut = Cut::of(points, u64::MAX, step, 1);
    consolidate(scratch, function, xff, points, &cut, rate);
}

/// Adds points of the same rate to what an archive of several points a row remembers of a data
/// source.
pub(super) fn consolidate(
    scratch: &mut Scratch,
    function: Consolidation,
    xff: f64,
    points: u64,
    cut: &Cut,
    rate: f64,
) {
    match cut.rows {
        0 => go_on(scratch, function, cut.steps, rate),
        _ => end(scratch, function, xff, points, cut, rate),
    }
}

/// Adds points to the row under way, which does not end with them.
#[inline]
pub(super) fn go_on(scratch: &mut Scratch, function: Consolidation, steps: u64, rate: f64) {
    if rate.is_nan() {
        let unknown = &mut scratch.0[Scratch::UNKNOWN_POINTS];
        *unknown = unknown.wrapping_add(steps);
    } else {
        let value = f64::from_bits(scratch.0[Scratch::VALUE]);
        let value = accumulated(function, value, rate, steps);
        scratch.set_value(Scratch::VALUE, Value::from(value));
    }
}

/// Ends the row under way and those that end after it, and begins the next one.
#[inline(never)]
pub(super) fn end(
    scratch: &mut Scratch,
    function: Consolidation,
    xff: f64,
    points: u64,
    cut: &Cut,
    rate: f64,
) {
    let mut under_way = UnderWay {
        value: scratch.value(Scratch::VALUE).to_f64(),
        unknown_points: scratch.counter(Scratch::UNKNOWN_POINTS),
    };
    let row = under_way.end(function, xff, points, cut, rate);
    scratch.set_value(Scratch::PRIMARY, Value::from(row));
    scratch.set_value(Scratch::SECONDARY, Value::from(rate));
    scratch.set_value(Scratch::VALUE, Value::from(under_way.value));
    scratch.0[Scratch::UNKNOWN_POINTS] = under_way.unknown_points;
}

/// The value of a row under way after `points` more points.
#[inline]
pub(super) fn accumulated(function: Consolidation, value: f64, rate: f64, points: u64) -> f64 {
    if value.is_nan() {
        return first(function, rate, points);
    }
    match function {
        Consolidation::Average => value + rate * points as f64,
        Consolidation::Min => lesser(value, rate),
        Consolidation::Max => greater(value, rate),
        Consolidation::Last => rate,
    }
}

/// The value of a row after its first points that are known. Few rows have such: others begin with what
/// is neutral.
#[cold]
#[inline(never)]
fn first(function: Consolidation, rate: f64, points: u64) -> f64 {
    match function {
        Consolidation::Average => rate * points as f64,
        _ => rate,
    }
}

/// The value of a row that ends after `points` more points.
fn ended(function: Consolidation, value: f64, rate: f64, points: u64, known: f64) -> f64 {
    let or_neutral = |number: f64| match number.is_nan() {
        true => neutral(function),
        false => number,
    };
    match function {
        Consolidation::Average => (or_neutral(value) + or_neutral(rate) * points as f64) / known,
        Consolidation::Min => lesser(or_neutral(rate), or_neutral(value)),
        Consolidation::Max => greater(or_neutral(rate), or_neutral(value)),
        Consolidation::Last => rate,
    }
}
