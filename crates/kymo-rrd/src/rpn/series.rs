//! Carrying programs out over series of values.

#[cfg(test)]
mod tests;

use std::ops::Range;

use kymo_time::{Date, date_of_days};

use super::evaluate::{EvaluateError, Machine, sort};
use super::{Node, Operator, Program, Stack};
use crate::text::xml::{LocalTime, Zone};

const DAY: i64 = 86_400;

/// A series has no more rows: 128 MiB of values.
pub const MAX_ROWS: usize = 1 << 24;

/// What the programs of one [`Stack`] may cost, counted in values that are looked at. Some operators look at many
/// rows for each of theirs.
const MAX_WORK: u64 = 1 << 30;

/// Values of equal distance in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    start: i64,
    step: i64,
    values: Vec<f64>,
}

impl Series {
    /// The series of rows that begin at `start` and last `step` seconds each, NaN where unknown.
    /// `None` where the step is not positive or the end is out of range.
    pub fn new(start: i64, step: i64, values: Vec<f64>) -> Option<Self> {
        let length = i64::try_from(values.len()).ok()?.checked_mul(step)?;
        start.checked_add(length)?;
        let series = Self {
            start,
            step,
            values,
        };
        (step > 0).then_some(series)
    }

    /// The beginning of the first row in seconds since 1970: the time before its own.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The end of the last row, which is its time.
    pub fn end(&self) -> i64 {
        // `new` and `shift` have made sure of it.
        self.start + self.step * self.values.len() as i64
    }

    /// Seconds from row to row.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// A value for each row, NaN where unknown.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The value of the row that begins at a time or before it; NaN if there is none.
    pub fn value_from(&self, time: i64) -> f64 {
        let row = time
            .checked_sub(self.start)
            .map(|after| after.div_euclid(self.step));
        row.map_or(f64::NAN, |row| self.value(row))
    }

    /// Moves the series in time, but not further than calendars go.
    pub fn shift(&mut self, seconds: i64) {
        const FAR: i64 = 1 << 60;
        let start = self.start.saturating_add(seconds).clamp(-FAR, FAR);
        let length = self.step * self.values.len() as i64;
        self.start = start.min(i64::MAX - length);
    }

    /// The value of a row; NaN if there is none.
    fn value(&self, row: i64) -> f64 {
        let value = usize::try_from(row)
            .ok()
            .and_then(|row| self.values.get(row));
        value.copied().unwrap_or(f64::NAN)
    }
}

/// What a variable of a program stands for.
#[derive(Clone, Copy, Debug)]
pub enum Variable<'a> {
    /// A value for each row.
    Series(&'a Series),
    /// The same value for all rows.
    Number(f64),
}

/// When and where a program is carried out.
#[derive(Clone, Copy)]
pub struct Surroundings<'z> {
    /// What `NOW` pushes, in seconds since 1970.
    pub now: i64,
    /// Local time.
    pub zone: &'z dyn Zone,
}

/// The day that weeks begin with, counted from Sunday: Sunday, as if no country is specified.
const FIRST_WEEKDAY: i64 = 0;

/// A node, ready to be carried out.
#[derive(Clone, Copy)]
enum Step {
    Number(f64),
    /// The value of a cursor.
    Variable(usize),
    /// The value before that of a cursor.
    Previous(usize),
    Operator(Operator),
}

/// The place of a node in its series. It moves on when the row under it has ended, and
/// only then: rows of a series with a long step serve several of the result's.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    series: &'a Series,
    row: i64,
}

impl Cursor<'_> {
    fn advance(&mut self, time: i64) {
        if time % self.series.step == 0 {
            self.row += 1;
        }
    }
}

impl Program {
    /// Carries the program out for each row of a series that begins where the last of its
    /// variables begins and ends where the first of them ends. Its step is the greatest that
    /// divides all of theirs. `variables` are what [`Node::Variable`] and [`Node::PreviousOf`]
    /// count.
    ///
    /// # Errors
    ///
    /// Where it has no result; also where no variable is a series, or the result has more than
    /// [`MAX_ROWS`].
    pub fn evaluate_series(
        &self,
        variables: &[Variable<'_>],
        surroundings: &Surroundings<'_>,
        stack: &mut Stack,
    ) -> Result<Series, EvaluateError> {
        let (steps, cursors) = self.prepare(variables)?;
        let all = || cursors.iter().map(|cursor| cursor.series);
        let start = all().map(Series::start).max();
        let end = all().map(Series::end).min();
        let (Some(start), Some(end)) = (start, end) else {
            return Err(EvaluateError::NoSeries);
        };
        let step = all().map(Series::step).fold(0, greatest_divisor);
        let rows = (end.saturating_sub(start) / step).max(0);
        let rows = usize::try_from(rows)
            .ok()
            .filter(|rows| *rows <= MAX_ROWS)
            .ok_or(EvaluateError::TooManyRows { rows: rows as u64 })?;
        let cursors = cursors.into_iter().map(|cursor| Cursor {
            row: (start - cursor.series.start) / cursor.series.step,
            ..cursor
        });
        let cursors: Vec<_> = cursors.collect();
        let work = stack.work.saturating_add((rows * steps.len()) as u64);
        // Elsewhere cursors do not move on.
        let moves = start % step == 0;
        if moves
            && work <= MAX_WORK
            && let Some(values) = columns(&steps, &cursors, step, rows)
        {
            stack.work = work;
            return Ok(Series {
                start,
                step,
                values,
            });
        }
        let mut run = Run {
            steps: &steps,
            cursors,
            result: Vec::with_capacity(rows),
            step,
            time: start,
            now: surroundings.now,
            local: Local::new(surroundings.zone),
            work: stack.work,
        };
        for _ in 0..rows {
            run.time += step;
            let value = run.row(stack)?;
            run.result.push(value);
        }
        stack.work = run.work;
        Ok(Series {
            start,
            step,
            values: run.result,
        })
    }

    /// Finds out what the variables stand for.
    fn prepare<'a>(
        &self,
        variables: &[Variable<'a>],
    ) -> Result<(Vec<Step>, Vec<Cursor<'a>>), EvaluateError> {
        let mut cursors = Vec::new();
        let mut steps = Vec::with_capacity(self.nodes.len());
        for (place, node) in self.nodes.iter().enumerate() {
            let mut variable = |number: u32, step: fn(usize) -> Step| {
                let missing = EvaluateError::Unsupported { node: place };
                Ok(match variables.get(number as usize).ok_or(missing)? {
                    Variable::Number(number) => Step::Number(*number),
                    Variable::Series(series) => {
                        cursors.push(Cursor { series, row: 0 });
                        step(cursors.len() - 1)
                    }
                })
            };
            steps.push(match *node {
                Node::Number(number) => Step::Number(number.to_f64()),
                Node::Variable(number) => variable(number, Step::Variable)?,
                Node::PreviousOf(number) => variable(number, Step::Previous)?,
                Node::Operator(operator) => Step::Operator(operator),
            });
        }
        Ok((steps, cursors))
    }
}

/// Programs of more nodes are not carried out column by column, nor are those of more rows: columns take memory.
const MOST_COLUMNS: usize = 16;
const MOST_COLUMN_ROWS: usize = 1 << 16;

/// The results of all rows of a program that has only arithmetic on values of the same row, as most have: one node
/// after the other for all rows, which is much less work than one row after the other. `None` of other programs, and
/// of those without a result.
fn columns(steps: &[Step], cursors: &[Cursor<'_>], step: i64, rows: usize) -> Option<Vec<f64>> {
    enum Column {
        Same(f64),
        Values(Vec<f64>),
    }
    use Column as C;
    if steps.len() > MOST_COLUMNS || rows > MOST_COLUMN_ROWS {
        return None;
    }
    let mut stack = Vec::new();
    for node in steps {
        let operator = match *node {
            Step::Number(number) => {
                stack.push(C::Same(number));
                continue;
            }
            Step::Variable(cursor) => {
                let Cursor { series, row } = cursors[cursor];
                if series.step != step {
                    return None;
                }
                let values = series
                    .values
                    .get(usize::try_from(row).ok()?..)?
                    .get(..rows)?;
                stack.push(C::Values(values.to_vec()));
                continue;
            }
            Step::Operator(operator) => operator,
            Step::Previous(_) => return None,
        };
        let function: fn(f64, f64) -> f64 = match operator {
            Operator::Add => |x, y| x + y,
            Operator::Subtract => |x, y| x - y,
            Operator::Multiply => |x, y| x * y,
            Operator::Divide => |x, y| x / y,
            _ => return None,
        };
        let (y, x) = (stack.pop()?, stack.pop()?);
        stack.push(match (x, y) {
            (C::Same(x), C::Same(y)) => C::Same(function(x, y)),
            (C::Values(mut xs), C::Same(y)) => {
                xs.iter_mut().for_each(|x| *x = function(*x, y));
                C::Values(xs)
            }
            (C::Same(x), C::Values(mut ys)) => {
                ys.iter_mut().for_each(|y| *y = function(x, *y));
                C::Values(ys)
            }
            (C::Values(mut xs), C::Values(ys)) => {
                xs.iter_mut()
                    .zip(ys)
                    .for_each(|(x, y)| *x = function(*x, y));
                C::Values(xs)
            }
        });
    }
    match (stack.pop()?, stack.is_empty()) {
        (C::Values(values), true) => Some(values),
        _ => None,
    }
}

/// The greatest number that divides both, which are not negative; the other one, if one is 0.
pub fn greatest_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A program under way.
struct Run<'a, 'z> {
    steps: &'a [Step],
    cursors: Vec<Cursor<'a>>,
    /// The results of the rows before.
    result: Vec<f64>,
    /// Of the result.
    step: i64,
    /// Of the row.
    time: i64,
    now: i64,
    local: Local<'z>,
    work: u64,
}

impl Run<'_, '_> {
    /// The result of a row.
    fn row(&mut self, stack: &mut Stack) -> Result<f64, EvaluateError> {
        let mut machine = Machine::new(stack);
        for place in 0..self.steps.len() {
            machine.node = place;
            self.look(1, place)?;
            match self.steps[place] {
                Step::Number(number) => machine.push(number)?,
                Step::Variable(cursor) => {
                    let cursor = &mut self.cursors[cursor];
                    machine.push(cursor.series.value(cursor.row))?;
                    cursor.advance(self.time);
                }
                Step::Previous(cursor) => {
                    let cursor = &mut self.cursors[cursor];
                    let value = match self.result.is_empty() {
                        true => f64::NAN,
                        false => cursor.series.value(cursor.row - 1),
                    };
                    machine.push(value)?;
                    cursor.advance(self.time);
                }
                Step::Operator(operator) => self.operate(operator, &mut machine)?,
            }
        }
        machine.result()
    }

    /// Counts values that a node is about to look at.
    fn look(&mut self, values: u64, node: usize) -> Result<(), EvaluateError> {
        self.work = self.work.saturating_add(values);
        match self.work > MAX_WORK {
            true => Err(EvaluateError::TooMuch { node }),
            false => Ok(()),
        }
    }

    fn operate(
        &mut self,
        operator: Operator,
        machine: &mut Machine<'_>,
    ) -> Result<(), EvaluateError> {
        use Operator as O;
        match operator {
            O::Now => machine.push(self.now as f64),
            O::Time => machine.push(self.time as f64),
            O::LocalTime => {
                let local = self.local.seconds(self.time);
                machine.push(local as f64)
            }
            O::StepWidth => machine.push(self.step as f64),
            O::Count => machine.push((self.result.len() + 1) as f64),
            O::Previous => machine.push(self.result.last().copied().unwrap_or(f64::NAN)),
            O::NewDay | O::NewWeek | O::NewMonth | O::NewYear => {
                let begins = self.begins(operator);
                machine.push(f64::from(u8::from(begins)))
            }
            O::Trend | O::TrendKnown => self.trend(operator == O::TrendKnown, machine),
            O::Predict | O::PredictSigma | O::PredictPercentile => self.predict(operator, machine),
            operator => {
                if operator.takes_count() {
                    self.look(machine.depth() as u64, machine.node)?;
                }
                machine.operate(operator)
            }
        }
    }

    /// Whether a day, a week, a month or a year has begun since the row before.
    fn begins(&mut self, what: Operator) -> bool {
        let before = self.local.seconds(self.time.saturating_sub(self.step));
        let before = before.div_euclid(DAY);
        let day = self.local.seconds(self.time).div_euclid(DAY);
        // 1 January 1970 was a Thursday.
        let weekday = |day: i64| day.saturating_add(4).rem_euclid(7);
        let differs = |part: fn(Date) -> i64| part(date_of_days(before)) != part(date_of_days(day));
        match what {
            Operator::NewWeek => weekday(before) != weekday(day) && weekday(day) == FIRST_WEEKDAY,
            Operator::NewMonth => differs(|date| date.month.into()),
            Operator::NewYear => differs(|date| date.year),
            _ => differs(|date| date.day.into()),
        }
    }

    /// The mean of the last rows of a variable that cover a number of seconds.
    fn trend(&mut self, known: bool, machine: &mut Machine<'_>) -> Result<(), EvaluateError> {
        let node = machine.node;
        let seconds = machine.pop()?;
        machine.pop()?;
        let variable = node.checked_sub(2).map(|node| self.steps[node]);
        let Some(Step::Variable(cursor)) = variable else {
            return Err(EvaluateError::Arguments { node });
        };
        let Cursor { series, row } = self.cursors[cursor];
        let rows = rows_of(seconds, series.step).max(1.0);
        if rows > (self.result.len() + 1) as f64 {
            return machine.push(f64::NAN);
        }
        let rows = rows as i64;
        self.look(rows as u64, node)?;
        let (mut sum, mut count) = (0.0, 0.0);
        for row in (row - rows..row).rev() {
            let value = series.value(row);
            if !known || !value.is_nan() {
                sum += value;
                count += 1.0;
            }
        }
        machine.push(if count == 0.0 { f64::NAN } else { sum / count })
    }

    /// What is expected from windows of a variable's earlier rows, each shifted by some seconds.
    fn predict(
        &mut self,
        operator: Operator,
        machine: &mut Machine<'_>,
    ) -> Result<(), EvaluateError> {
        let node = machine.node;
        let variable = node.checked_sub(1).map(|node| self.steps[node]);
        // The value of the variable is on the stack, but its earlier ones are wanted.
        machine.pop()?;
        let percentile = match operator {
            Operator::PredictPercentile => machine.pop()?,
            _ => 0.0,
        };
        if percentile.is_nan() || percentile.abs() > 100.0 {
            return Err(EvaluateError::Percentile { node });
        }
        let window = machine.pop()?;
        let shifts = machine.shifts()?;
        let Some(Step::Variable(cursor)) = variable else {
            return Err(EvaluateError::Arguments { node });
        };
        let cursor = self.cursors[cursor];
        self.look(shifts.len().into(), node)?;
        let mut samples = Vec::new();
        let reach = self.result.len() as f64;
        let window = rows_of(window, cursor.series.step);
        for shift in shifts.iter() {
            let shift = shift.trunc();
            if shift < 0.0 {
                return Err(EvaluateError::NegativeShift { node });
            }
            let first = rows_of(shift, cursor.series.step);
            let offsets = within(first, first + window, reach);
            self.look((offsets.end - offsets.start).max(0) as u64, node)?;
            let values = offsets.map(|offset| cursor.series.value(cursor.row - offset));
            samples.extend(values.filter(|value| !value.is_nan()));
        }
        machine.push(match operator {
            Operator::Predict => mean(&samples),
            Operator::PredictSigma => deviation(&samples),
            _ => {
                sort(&mut samples);
                percentile_of(&samples, percentile)
            }
        })
    }
}

/// The number of rows of a step in `seconds`, of which the last may be a part; computed in single precision,
/// as rrdtool does.
fn rows_of(seconds: f64, step: i64) -> f64 {
    f64::from((seconds as i64 as f32 / step as f32).ceil())
}

/// The rows from one to another, both with it, that are not negative and before a third.
fn within(first: f64, last: f64, reach: f64) -> Range<i64> {
    let end = (last + 1.0).min(reach);
    first.max(0.0) as i64..end as i64
}

fn mean(samples: &[f64]) -> f64 {
    match samples.len() {
        0 => f64::NAN,
        count => samples.iter().fold(0.0, |sum, sample| sum + sample) / count as f64,
    }
}

fn deviation(samples: &[f64]) -> f64 {
    let count = samples.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for sample in samples {
        sum += sample;
        squares += sample * sample;
    }
    let variance = count * squares - sum * sum;
    if count < 2.0 || variance < 0.0 {
        return f64::NAN;
    }
    (variance / (count * (count - 1.0))).sqrt()
}

/// A percentile between the samples next to it; where it is negative, the nearest sample.
fn percentile_of(sorted: &[f64], percentile: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = percentile.abs() / 100.0 * last as f64;
    if percentile < 0.0 {
        return sorted[place.round() as usize];
    }
    let below = place.floor();
    let part = place - below;
    let (low, high) = (
        sorted[below as usize],
        sorted[(below as usize + 1).min(last)],
    );
    if part == 0.0 {
        low
    } else {
        low + (high - low) * part
    }
}

/// Local times, most of which are a little later than the one before.
struct Local<'z> {
    zone: &'z dyn Zone,
    /// Seconds ahead of UTC, and the times for which this is valid; none before the zone is needed.
    offset: i64,
    valid: Range<i64>,
}

impl<'z> Local<'z> {
    fn new(zone: &'z dyn Zone) -> Self {
        Self {
            zone,
            offset: 0,
            valid: 0..0,
        }
    }

    /// What a clock shows, as seconds since it showed 1970.
    fn seconds(&mut self, time: i64) -> i64 {
        if !self.valid.contains(&time) {
            let LocalTime { offset, until, .. } = self.zone.at(time);
            self.offset = offset.into();
            self.valid = time..until;
        }
        time.saturating_add(self.offset)
    }
}
