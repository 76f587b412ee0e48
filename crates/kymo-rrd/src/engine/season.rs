//! Holt-Winters: predictions, seasons, deviations and failures.
//!
//! The archives are taken in the order of the file, and each looks at what the others have or have
//! not done yet: that decides whether the values before or after this point are taken.

use super::plan::{Adaption, Links, Plan, Role};
use crate::Value;
use crate::model::{ArchiveState, Scratch, State};

/// What an archive of predictions knows of a data source.
#[derive(Clone, Copy, Debug)]
struct Trend {
    intercept: f64,
    slope: f64,
    /// Points since the last known one.
    count: u64,
}

impl Trend {
    fn now(scratch: &Scratch) -> Self {
        Self {
            intercept: scratch.value(Scratch::INTERCEPT).to_f64(),
            slope: scratch.value(Scratch::SLOPE).to_f64(),
            count: scratch.0[Scratch::NULL_COUNT],
        }
    }

    fn before(scratch: &Scratch) -> Self {
        Self {
            intercept: scratch.value(Scratch::LAST_INTERCEPT).to_f64(),
            slope: scratch.value(Scratch::LAST_SLOPE).to_f64(),
            count: scratch.0[Scratch::LAST_NULL_COUNT],
        }
    }
}

impl Adaption {
    fn predict(&self, trend: &Trend, coefficient: f64) -> f64 {
        // Predictions count with 32 bits.
        let line = trend.intercept + trend.slope * f64::from(trend.count as i32);
        match self.multiplicative {
            true => line * coefficient,
            false => line + coefficient,
        }
    }

    /// The intercept after a known value.
    fn intercept(&self, trend: &Trend, coefficient: f64, value: f64) -> f64 {
        let line = trend.intercept + trend.slope * trend.count as f64;
        let base = match self.multiplicative {
            true if coefficient <= 0.0 => return f64::NAN,
            true => value / coefficient,
            false => value - coefficient,
        };
        self.alpha * base + (1.0 - self.alpha) * line
    }

    /// What a season makes of the intercept to give the value.
    fn coefficient(&self, value: f64, intercept: f64) -> f64 {
        match self.multiplicative {
            true if intercept <= 0.0 => f64::NAN,
            true => value / intercept,
            false => value - intercept,
        }
    }

    /// A coefficient that changes nothing.
    fn identity(&self) -> f64 {
        f64::from(u8::from(self.multiplicative))
    }
}

/// One point of a data source, seen by one archive.
pub(super) struct Observation<'a> {
    pub(super) plan: &'a Plan,
    pub(super) archive: usize,
    pub(super) source: usize,
    /// The rate, NaN where it is unknown.
    pub(super) rate: f64,
    /// What a season has stored for the row after next, NaN for other archives.
    pub(super) looked_up: f64,
}

impl Observation<'_> {
    /// Does what the archive does, and gives the value of its row.
    pub(super) fn make(&self, state: &mut State) -> f64 {
        match self.plan.archives[self.archive].role {
            Role::Consolidate { .. } => self.rate,
            Role::Predict { adaption, seasonal } => self.predict(state, &adaption, seasonal),
            Role::Season {
                deviation: false,
                gamma,
                links,
                ..
            } => self.season(state, gamma, &links),
            Role::Season { gamma, links, .. } => self.deviation(state, gamma, &links),
            Role::PredictDeviation { deviations } => {
                self.seasonal(state, deviations, deviations < self.archive)
            }
            Role::Fail {
                delta_positive,
                delta_negative,
                window,
                threshold,
                deviations,
                links,
            } => {
                let failed =
                    self.failed(state, [delta_positive, delta_negative], deviations, &links);
                let own = self.own(state);
                let mut history = own.history();
                history[..window].rotate_right(1);
                history[0] = u8::from(failed);
                own.set_history(&history);
                let count: u64 = history[..window].iter().map(|&bad| u64::from(bad)).sum();
                f64::from(u8::from(count >= threshold))
            }
        }
    }

    fn own<'s>(&self, state: &'s mut State) -> &'s mut Scratch {
        &mut state.archives[self.archive].scratch[self.source]
    }

    fn of<'s>(&self, state: &'s State, archive: usize) -> &'s Scratch {
        &state.archives[archive].scratch[self.source]
    }

    /// The coefficient or deviation of a season: the one used for this row, or for the next.
    fn seasonal(&self, state: &State, archive: usize, last: bool) -> f64 {
        let slot = match last {
            true => Scratch::LAST_SEASONAL,
            false => Scratch::SEASONAL,
        };
        self.of(state, archive).value(slot).to_f64()
    }

    fn trend(&self, state: &State, archive: usize, before: bool) -> Trend {
        match before {
            true => Trend::before(self.of(state, archive)),
            false => Trend::now(self.of(state, archive)),
        }
    }

    fn predict(&self, state: &mut State, adaption: &Adaption, seasonal: usize) -> f64 {
        let coefficient = self.seasonal(state, seasonal, seasonal < self.archive);
        let rate = self.rate;
        let own = self.own(state);
        let trend = Trend::now(own);
        own.0[Scratch::LAST_INTERCEPT] = own.0[Scratch::INTERCEPT];
        own.0[Scratch::LAST_SLOPE] = own.0[Scratch::SLOPE];
        own.0[Scratch::LAST_NULL_COUNT] = own.0[Scratch::NULL_COUNT];
        if trend.intercept.is_nan() || trend.slope.is_nan() || coefficient.is_nan() {
            if trend.intercept.is_nan() && !rate.is_nan() {
                // It begins with the first known value.
                for slot in [Scratch::INTERCEPT, Scratch::LAST_INTERCEPT] {
                    own.set_value(slot, Value::from(rate));
                }
                for slot in [Scratch::SLOPE, Scratch::LAST_SLOPE] {
                    own.set_value(slot, Value::ZERO);
                }
                own.0[Scratch::NULL_COUNT] = 1;
                own.0[Scratch::LAST_NULL_COUNT] = 1;
            }
            return f64::NAN;
        }
        let prediction = adaption.predict(&trend, coefficient);
        if rate.is_nan() {
            own.0[Scratch::NULL_COUNT] = trend.count.wrapping_add(1);
        } else {
            let intercept = adaption.intercept(&trend, coefficient, rate);
            let slope =
                adaption.beta * (intercept - trend.intercept) + (1.0 - adaption.beta) * trend.slope;
            own.set_value(Scratch::INTERCEPT, Value::from(intercept));
            own.set_value(Scratch::SLOPE, Value::from(slope));
            own.0[Scratch::NULL_COUNT] = 1;
        }
        prediction
    }

    /// Moves on by a row, and gives what was expected of this one.
    fn advance(&self, state: &mut State) -> f64 {
        let own = self.own(state);
        let expected = own.value(Scratch::SEASONAL);
        own.set_value(Scratch::LAST_SEASONAL, expected);
        own.set_value(Scratch::SEASONAL, Value::from(self.looked_up));
        expected.to_f64()
    }

    fn season(&self, state: &mut State, gamma: f64, links: &Links) -> f64 {
        let old = self.advance(state);
        let adaption = &links.adaption;
        if self.rate.is_nan() {
            return old;
        }
        let now = self.trend(state, links.predictions, false);
        let intercept = if links.predictions < self.archive {
            let before = self.trend(state, links.predictions, true);
            if before.intercept.is_nan() || before.slope.is_nan() {
                return f64::NAN;
            }
            if old.is_nan() {
                return adaption.coefficient(self.rate, before.intercept);
            }
            now.intercept
        } else {
            if now.intercept.is_nan() || now.slope.is_nan() {
                return adaption.identity();
            }
            if old.is_nan() {
                return adaption.coefficient(self.rate, now.intercept);
            }
            adaption.intercept(&now, old, self.rate)
        };
        let coefficient = adaption.coefficient(self.rate, intercept);
        gamma * coefficient + (1.0 - gamma) * old
    }

    fn deviation(&self, state: &mut State, gamma: f64, links: &Links) -> f64 {
        let old = self.advance(state);
        let coefficient = self.seasonal(state, links.seasonal, links.seasonal < self.archive);
        let trend = self.trend(state, links.predictions, links.predictions < self.archive);
        if trend.intercept.is_nan() || trend.slope.is_nan() || coefficient.is_nan() {
            return f64::NAN;
        }
        if self.rate.is_nan() {
            return old;
        }
        let distance = (links.adaption.predict(&trend, coefficient) - self.rate).abs();
        if old.is_nan() {
            return distance;
        }
        gamma * distance + (1.0 - gamma) * old
    }

    /// Whether the value is too far from its prediction.
    fn failed(
        &self,
        state: &State,
        [above, below]: [f64; 2],
        deviations: usize,
        links: &Links,
    ) -> bool {
        // By the archive of coefficients for both, as in all programs.
        let last = self.archive >= links.seasonal;
        let deviation = self.seasonal(state, deviations, last);
        if deviation.is_nan() {
            return false;
        }
        let coefficient = self.seasonal(state, links.seasonal, last);
        let trend = self.trend(state, links.predictions, self.archive >= links.predictions);
        let prediction = links.adaption.predict(&trend, coefficient);
        self.rate.is_nan()
            || self.rate > prediction + above * deviation
            || self.rate < prediction - below * deviation
    }
}

/// Passes over more points than are learnt from. `stored` are the values of the rows of a season
/// for the last of these points and the one after it.
pub(super) fn skip(
    role: &Role,
    scratch: &mut Scratch,
    steps: u64,
    rate: f64,
    stored: impl Fn(usize) -> Value,
) {
    let row = match role {
        Role::Consolidate { .. } => Value::from(rate),
        Role::Predict { .. } => {
            let count = scratch.0[Scratch::NULL_COUNT];
            scratch.0[Scratch::NULL_COUNT] = count.wrapping_add(steps);
            let before = scratch.0[Scratch::LAST_NULL_COUNT];
            scratch.0[Scratch::LAST_NULL_COUNT] = before.wrapping_add(steps - 1);
            Value::UNKNOWN
        }
        Role::Season { .. } => {
            scratch.set_value(Scratch::LAST_SEASONAL, stored(0));
            scratch.set_value(Scratch::SEASONAL, stored(1));
            return;
        }
        Role::PredictDeviation { .. } => Value::UNKNOWN,
        Role::Fail { .. } => {
            scratch.set_history(&[0; Scratch::HISTORY]);
            Value::ZERO
        }
    };
    scratch.set_value(Scratch::PRIMARY, row);
    scratch.set_value(Scratch::SECONDARY, row);
}

/// Passes over a season until its coefficients are smoothed: while they are learnt, once in each
/// season.
const BURN_IN: u64 = 3;

/// Whether the coefficients of a season are to be smoothed after `steps` points.
pub(super) fn smooths(rows: u64, smooth_row: u64, state: &mut ArchiveState, steps: u64) -> bool {
    let current = state.current_row;
    let reached = current.saturating_add(steps);
    let Some(first) = state.scratch.first_mut() else {
        return false;
    };
    let burn_in = &mut first.0[Scratch::BURN_IN];
    if *burn_in <= BURN_IN {
        let whole = reached >= rows;
        if whole {
            *burn_in += 1;
        }
        return whole;
    }
    match smooth_row > current {
        true => reached >= smooth_row,
        false => reached >= rows.saturating_add(smooth_row),
    }
}
