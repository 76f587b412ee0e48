//! What the clock of one host is to that of another, by messages between them: none arrives before it was sent.
//!
//! With `t` a time of the second clock, `T(t) = t + offset + drift * (t - pivot)` is that of the first. What the first
//! host sends and the second receives bounds `T(t) - t` from below, what the second sends from above. All lines between
//! these bounds are possible: in the plane of offset and drift they are a convex polygon.

use crate::analysis::Between;

/// No clock runs faster or slower than another one by more than this: 1,000 ppm.
const MOST_DRIFT: f64 = 1e-3;
/// Rounding of times, in nanoseconds.
const SLACK: f64 = 1.0;

/// Times of one clock as those of another: `t + offset + drift * (t - pivot)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Where the offset is that, in nanoseconds.
    pub(crate) pivot: i64,
    /// Nanoseconds that are added at the pivot.
    pub(crate) offset: i128,
    /// By how much the clock is too slow: 1e-6 is a microsecond in a second.
    pub(crate) drift: f64,
}

impl Line {
    /// The nanoseconds that are added at a time.
    pub(crate) fn added(&self, time: i128) -> i128 {
        let distance = (time - i128::from(self.pivot)) as f64;
        self.offset + (self.drift * distance).round() as i128
    }

    /// This line, and another one after it.
    pub(crate) fn then(&self, next: &Self) -> Self {
        Self {
            pivot: self.pivot,
            offset: self.offset + next.added(i128::from(self.pivot) + self.offset),
            drift: (1.0 + self.drift) * (1.0 + next.drift) - 1.0,
        }
    }

    /// The way back; `None` where the pivot would be beyond 64 bits of nanoseconds.
    pub(crate) fn inverse(&self) -> Option<Self> {
        Some(Self {
            pivot: i64::try_from(i128::from(self.pivot) + self.offset).ok()?,
            offset: -self.offset,
            drift: -self.drift / (1.0 + self.drift),
        })
    }
}

/// What messages say of two clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Times of the second as times of the first.
    pub(crate) line: Line,
    /// How far it may be wrong between the first message and the last one, in nanoseconds.
    pub(crate) error: f64,
}

/// Why messages do not say what two clocks are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoEstimate {
    /// All go one way: the clocks may be apart as far as one likes.
    OneWay,
    /// No line fits: some are received before they are sent, whatever the clocks are.
    Contradiction,
}

/// A possible line: offset at the pivot in nanoseconds beyond a base, and drift in nanoseconds per second.
type Point = (f64, f64);

/// Cuts off the part of a polygon where `offset + drift * x < y`; or above that, if not `is_lower`.
fn cut(polygon: &[Point], x: f64, y: f64, is_lower: bool) -> Vec<Point> {
    let inside = |&(offset, drift): &Point| {
        let rest = offset + drift * x - y;
        if is_lower { rest + SLACK } else { SLACK - rest }
    };
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (at, from) in polygon.iter().enumerate() {
        let to = &polygon[(at + 1) % polygon.len()];
        let (a, b) = (inside(from), inside(to));
        if a >= 0.0 {
            kept.push(*from);
        }
        if (a >= 0.0) != (b >= 0.0) {
            let part = a / (a - b);
            kept.push((
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            ));
        }
    }
    kept
}

/// Estimates the clock from messages whose points are those of the convex hulls.
pub(crate) fn estimate(between: &Between) -> Result<Estimate, NoEstimate> {
    let (Some((first, last)), [(_, base), ..], [_, ..]) =
        (between.span, &between.lower[..], &between.upper[..])
    else {
        return Err(NoEstimate::OneWay);
    };
    let base = *base;
    let pivot = first.midpoint(last);
    let seconds = |time: i64| (i128::from(time) - i128::from(pivot)) as f64 / 1e9;
    let height = |ahead: i128| (ahead - base) as f64;
    let all = between.lower.iter().chain(&between.upper);
    let largest = all.map(|&(_, ahead)| height(ahead).abs());
    let most_drift = MOST_DRIFT * 1e9;
    let reach = seconds(last).abs().max(seconds(first).abs()) + 1.0;
    let most = largest.fold(1.0, f64::max) + most_drift * reach;
    let mut polygon = vec![
        (-most, -most_drift),
        (most, -most_drift),
        (most, most_drift),
        (-most, most_drift),
    ];
    for (points, is_lower) in [(&between.lower, true), (&between.upper, false)] {
        for &(time, ahead) in points {
            polygon = cut(&polygon, seconds(time), height(ahead), is_lower);
            if polygon.is_empty() {
                return Err(NoEstimate::Contradiction);
            }
        }
    }
    let by_drift = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
    let (Some(slow), Some(fast)) = (
        polygon.iter().min_by(by_drift),
        polygon.iter().max_by(by_drift),
    ) else {
        return Err(NoEstimate::Contradiction);
    };
    // Between two that are possible, so possible itself.
    let (offset, drift) = ((slow.0 + fast.0) / 2.0, (slow.1 + fast.1) / 2.0);
    let wrong = |time: i64| {
        let at = |(offset, drift): Point| offset + drift * seconds(time);
        let chosen = at((offset, drift));
        let errors = polygon.iter().map(|&point| (at(point) - chosen).abs());
        errors.fold(0.0, f64::max)
    };
    Ok(Estimate {
        line: Line {
            pivot,
            offset: base + offset.round() as i128,
            drift: drift / 1e9,
        },
        error: wrong(first).max(wrong(last)) + 1.0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::Sent;

    proptest! {
        /// Clocks that are apart and drift, messages that take their time: the truth is within what is said.
        #[test]
        fn the_true_clock_is_within_the_error(
            offset in -4_000_000_000_000_000_000i128..4_000_000_000_000_000_000,
            ppb in -200_000i64..200_000,
            messages in prop::collection::vec(
                (0i64..600_000_000_000, 1i64..50_000_000, any::<bool>()), 2..200),
        ) {
            let zero = 1_700_000_000_000_000_000i64;
            let drift = ppb as f64 / 1e9;
            let truth = Line { pivot: zero, offset: 0, drift };
            // The second clock is behind by the offset.
            let of_second = |time: i64| i128::from(time) + truth.added(i128::from(time)) - offset;
            let mut between = Between::default();
            for &(at, takes, from_first) in &messages {
                let (sent, received) = (zero + at, zero + at + takes);
                let message = match from_first {
                    true => (Some(sent), i64::try_from(of_second(received)).ok()),
                    false => (i64::try_from(of_second(sent)).ok(), Some(received)),
                };
                let (Some(sent), Some(received)) = message else { return Ok(()) };
                between.add(Sent { sent, received }, from_first);
            }
            between.finish();
            match estimate(&between) {
                Err(NoEstimate::OneWay) => {
                    prop_assert!(between.lower.is_empty() || between.upper.is_empty());
                }
                Err(error) => prop_assert!(false, "{error:?}"),
                Ok(estimate) => {
                    for &(at, takes, from_first) in &messages {
                        let time = if from_first { zero + at + takes } else { zero + at };
                        let second = of_second(time);
                        let found = second + estimate.line.added(second);
                        let wrong = (found - i128::from(time)).abs();
                        prop_assert!(wrong as f64 <= estimate.error + 600.0, "{wrong} {estimate:?}");
                    }
                    // No message arrives before it was sent.
                    for &(time, ahead) in &between.lower {
                        prop_assert!(estimate.line.added(time.into()) >= ahead - 600);
                    }
                    for &(time, ahead) in &between.upper {
                        prop_assert!(estimate.line.added(time.into()) <= ahead + 600);
                    }
                }
            }
        }

        #[test]
        fn lines_are_put_together_and_turned_round(
            offsets in prop::array::uniform2(-1_000_000_000_000i128..1_000_000_000_000),
            drifts in prop::array::uniform2(-1e-3f64..1e-3),
            time in 0i64..1_000_000_000_000,
        ) {
            let [a, b] = [0, 1].map(|at| Line { pivot: 7, offset: offsets[at], drift: drifts[at] });
            let time = i128::from(time);
            let through = |line: &Line, time: i128| time + line.added(time);
            let both = through(&b, through(&a, time));
            prop_assert!((through(&a.then(&b), time) - both).abs() <= 3);
            let back = through(&a.inverse().unwrap(), through(&a, time));
            prop_assert!((back - time).abs() <= 3);
        }
    }

    #[test]
    fn messages_that_cannot_be_are_known() {
        let mut between = Between::default();
        let message = |sent, received| Sent { sent, received };
        between.add(message(0, 10), true);
        between.finish();
        assert_eq!(estimate(&between), Err(NoEstimate::OneWay));
        between.add(message(1000, 900), false);
        between.add(message(0, -2000), true);
        between.finish();
        assert_eq!(estimate(&between), Err(NoEstimate::Contradiction));
    }
}
