//! Primary data points: what readings add, and what a point is when its step ends.

use super::plan::{Meter, Plan, Source};
use super::{Measurement, ReadingProblem, Template, UpdateError};
use crate::model::{SourceState, State};
use crate::rpn::Stack;
use crate::{Time, Value};

/// The seconds between two updates, cut where steps end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// All of the seconds.
    interval: f64,
    /// Those up to the end of the last step that ends.
    before: f64,
    /// Those after it.
    after: f64,
    /// Steps that end.
    pub(super) steps: u64,
    /// The number of the step that ends first, counted from 1970.
    first_step: u64,
    /// When the last of them ends, in seconds since 1970.
    end: u64,
}

/// Steps that end with the same rates.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// How many, at least 1.
    pub(super) steps: u64,
    /// The number of the first of them, counted from 1970.
    pub(super) first_step: u64,
    /// When the last of them ends, in seconds since 1970, as rrdtool counts it: of a step that is ended
    /// by its own share, a second too early where the last update had a fraction.
    pub(super) end: u64,
    /// One for each data source, NaN where it is unknown.
    pub(super) rates: Vec<f64>,
}

/// What is known of the point of a data source, while it is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    pub(super) unknown_seconds: u64,
    pub(super) value: f64,
}

/// Computes points. It keeps its memory from update to update.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    /// Rate times seconds of each data source since the last update.
    amounts: Vec<f64>,
    points: Vec<Point>,
    passes: [Pass; 2],
    stack: Stack,
}

impl Span {
    /// The seconds from the last update to this one, which is after it.
    pub(super) fn new(plan: &Plan, last: Time, time: Time) -> Self {
        let (last, time) = (last.to_micros(), time.to_micros());
        // Both times are between 0 and `LATEST`, and so is the step.
        let step = plan.step as i64;
        let (first, now) = (last.0 / step, time.0 / step);
        Self {
            first_step: first as u64,
            ..Self::of((now - first) as u64, now * step, last, time)
        }
    }

    /// The seconds between two times, in which `steps` steps end, counted from that of the first
    /// time; the last of them ends at `end`.
    #[inline(always)]
    pub(super) fn of(
        steps: u64,
        end: i64,
        (last, last_micros): (i64, u32),
        (time, micros): (i64, u32),
    ) -> Self {
        if last_micros | micros == 0 {
            // So it is mostly, and takes less time.
            let whole = steps == 0;
            return Self {
                interval: (time - last) as f64,
                before: if whole { time - last } else { end - last } as f64,
                after: if whole { 0 } else { time - end } as f64,
                steps,
                first_step: 0,
                end: end as u64,
            };
        }
        let seconds = |micros: u32| f64::from(micros) / 1e6;
        let interval = (time - last) as f64 + (f64::from(micros) - f64::from(last_micros)) / 1e6;
        Self {
            interval,
            before: match steps {
                0 => interval,
                _ => (end - last) as f64 - seconds(last_micros),
            },
            after: match steps {
                0 => 0.0,
                _ => (time - end) as f64 + seconds(micros),
            },
            steps,
            first_step: 0,
            end: end as u64,
        }
    }

    /// The part in which the step ends that was under way, if there is such a part and others
    /// follow: what was known of it must not become part of them.
    pub(super) fn open_step(&self, step: u64) -> Option<f64> {
        if self.steps < 2 {
            return None;
        }
        let open = self.before as u64 % step;
        (open > 0).then_some(open as f64)
    }
}

impl Pass {
    fn begin(&mut self, span: &Span) {
        self.steps = span.steps;
        self.first_step = span.first_step;
        self.end = span.end;
    }
}

impl Meter {
    /// What a reading adds, given the text of the one before, with or without trailing NULs. NaN
    /// where it cannot be known, or the rate is beyond its limits.
    #[inline(always)]
    pub(super) fn amount<'b>(
        &self,
        before: impl FnOnce() -> &'b [u8],
        span: &Span,
        given: &Measurement<'_>,
    ) -> Result<f64, ReadingProblem> {
        if self.heartbeat < span.interval {
            return Ok(f64::NAN);
        }
        let amount = given.amount(self.reading, before, span.interval)?;
        let rate = amount / span.interval;
        // Comparisons with a limit that is not set do not hold.
        let outside = rate > self.max || rate < self.min;
        Ok(if outside { f64::NAN } else { amount })
    }
}

/// That a reading cannot be one of its data source.
#[cold]
fn refused(
    source: usize,
    names: &impl Fn(usize) -> crate::Text,
    given: &Measurement<'_>,
    problem: ReadingProblem,
) -> UpdateError {
    UpdateError::Reading {
        source,
        name: names(source),
        text: given.with_text(<[u8]>::to_vec),
        problem,
    }
}

impl Points {
    /// Finds out what each reading adds.
    ///
    /// # Errors
    ///
    /// The first reading that cannot be one of its data source.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        names: impl Fn(usize) -> crate::Text,
        state: &State,
        span: &Span,
        template: &Template,
        values: &[Measurement<'_>],
    ) -> Result<(), UpdateError> {
        self.amounts.clear();
        let sources = plan.sources.iter().zip(&state.sources);
        for (index, (source, before)) in sources.enumerate() {
            let given = template.of(index, values);
            let before = || before.last_reading.as_bytes();
            let amount = match source {
                Source::Measured(meter) => meter.amount(before, span, given),
                Source::Computed(_) => Ok(f64::NAN),
            };
            let amount = amount.map_err(|problem| refused(index, &names, given, problem))?;
            self.amounts.push(amount);
        }
        Ok(())
    }

    /// Computes the points that end, in one pass or two. The state stays as it is.
    ///
    /// # Errors
    ///
    /// The first data source that cannot be computed.
    pub(super) fn close(
        &mut self,
        plan: &Plan,
        names: impl Fn(usize) -> crate::Text,
        state: &State,
        span: &Span,
        now: f64,
    ) -> Result<usize, UpdateError> {
        self.points.clear();
        self.points.extend(state.sources.iter().map(Point::of));
        if span.steps == 0 {
            for (point, &amount) in self.points.iter_mut().zip(&self.amounts) {
                point.add(amount, span);
            }
            return Ok(0);
        }
        let Some(open) = span.open_step(plan.step) else {
            self.pass(0, plan, &names, span, now)?;
            return Ok(1);
        };
        let first = Span {
            interval: open,
            before: open,
            after: 0.0,
            steps: 1,
            first_step: span.first_step,
            end: state.last_update.to_micros().0 as u64 + open as u64,
        };
        let rest = Span {
            interval: span.interval - open,
            before: span.before - open,
            after: span.after,
            steps: span.steps - 1,
            first_step: span.first_step + 1,
            end: span.end,
        };
        let whole = std::mem::take(&mut self.amounts);
        self.amounts
            .extend(whole.iter().map(|amount| amount * open / span.interval));
        self.pass(0, plan, &names, &first, now)?;
        for (amount, whole) in self.amounts.iter_mut().zip(whole) {
            *amount = whole - *amount;
        }
        self.pass(1, plan, &names, &rest, now)?;
        Ok(2)
    }

    fn pass(
        &mut self,
        number: usize,
        plan: &Plan,
        names: &impl Fn(usize) -> crate::Text,
        span: &Span,
        now: f64,
    ) -> Result<(), UpdateError> {
        let Self {
            amounts,
            points,
            passes,
            stack,
        } = self;
        let pass = &mut passes[number];
        pass.begin(span);
        pass.rates.clear();
        for (index, source) in plan.sources.iter().enumerate() {
            // Readings of what is computed never come, so no time between them is too long.
            let heartbeat = match source {
                Source::Measured(meter) => meter.heartbeat,
                Source::Computed(_) => f64::INFINITY,
            };
            let rate = points[index].end(amounts[index], span, plan.step, heartbeat);
            let rate = match source {
                Source::Measured(_) => rate,
                Source::Computed(program) => {
                    let result = program.evaluate(&pass.rates, now, stack);
                    result.map_err(|error| UpdateError::Computed {
                        source: index,
                        name: names(index),
                        error,
                    })?
                }
            };
            pass.rates.push(rate);
        }
        Ok(())
    }

    /// A pass that was computed.
    pub(super) fn pass_of(&self, number: usize) -> &Pass {
        &self.passes[number]
    }

    /// Puts what is known of the points into the state.
    pub(super) fn store(&self, state: &mut State) {
        for (source, point) in state.sources.iter_mut().zip(&self.points) {
            point.store(source);
        }
    }
}

impl Point {
    fn of(state: &SourceState) -> Self {
        Self {
            unknown_seconds: state.unknown_seconds,
            value: state.value.to_f64(),
        }
    }

    fn store(&self, state: &mut SourceState) {
        state.unknown_seconds = self.unknown_seconds;
        state.value = Value::from(self.value);
    }

    /// Adds what happened within a step.
    #[inline]
    pub(super) fn add(&mut self, amount: f64, span: &Span) {
        if amount.is_nan() {
            self.unknown_seconds = self.unknown_seconds.wrapping_add(whole(span.interval));
        } else if self.value.is_nan() {
            self.value = amount;
        } else {
            self.value += amount;
        }
    }

    /// Ends the step, with the steps that end with it, and begins the next one. Gives the rate.
    #[inline(always)]
    pub(super) fn end(&mut self, amount: f64, span: &Span, step: u64, heartbeat: f64) -> f64 {
        if amount.is_nan() {
            let ended = match span.interval > heartbeat {
                true => f64::NAN,
                false => self.rate(span, step, span.before),
            };
            *self = Self {
                unknown_seconds: whole(span.after),
                value: f64::NAN,
            };
            return ended;
        }
        // What is known came within the heartbeat.
        let rate = amount / span.interval;
        let before = if self.value.is_nan() { 0.0 } else { self.value };
        self.value = before + rate * span.before;
        let ended = self.rate(span, step, 0.0);
        *self = Self {
            unknown_seconds: 0,
            value: rate * span.after,
        };
        ended
    }

    /// The rate of the steps that end, where `unknown` more seconds are unknown than before.
    #[inline(always)]
    fn rate(self, span: &Span, step: u64, unknown: f64) -> f64 {
        // More than half of a step, which is the same where that is rounded down.
        if self.unknown_seconds > step / 2 {
            return f64::NAN;
        }
        // Less than a time, of which `LATEST` is the last.
        let seconds = (span.steps * step - self.unknown_seconds) as i64;
        self.value / (seconds as f64 - unknown)
    }
}

/// Whole seconds: rarely asked for, and a long way for a processor.
#[cold]
#[inline(never)]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}
