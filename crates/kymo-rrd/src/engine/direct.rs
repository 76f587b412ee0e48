//! The direct way of updates that end one step at most, as nearly all do.
//!
//! It computes what the general way computes, by the same functions. But that way works on whatever
//! is a [`Change`](super::Change), links archives, evaluates expressions, and cuts seconds and points to
//! pieces by division; most of what it does for a usual update is to find out that there is nothing to
//! do. Here that is known since the file was opened, and each number is read and written at its place in
//! the bytes of the native file's state, which are all that is known of it: an update takes less than half of the
//! instructions. For the same reason the functions below are inlined or not as they are: `cargo xtask
//! bench engine` counts.
//!
//! Whatever is not usual is left to the general way, before anything has changed: among it all that
//! is refused.

use std::io;

use kymo_io::Storage;
use kymo_machine::integer;

use super::plan::{Meter, Plan, Role, Source};
use super::points::{Point, Span};
use super::rows::{self, Cut, UnderWay};
use super::{Measurement, Sample, Template};
use crate::file::native::structs::{SLOT, SLOTS};
use crate::file::native::{CodingKind, Definitions, InPlace, Numbers, Parts};
use crate::model::validate::LATEST;
use crate::model::{Consolidation, Scratch};

/// A native file's definitions, for updates of the direct way.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    coding: CodingKind,
    /// Seconds of a data point.
    step: i64,
    /// Times are before this.
    latest: i64,
    /// The end of a step: of the one under way, unless the direct way was left; [`NEVER`] where it was not
    /// seen yet.
    end: i64,
    inputs: Vec<Input>,
    /// What the reading of each data source adds, and its rate in the step that ends.
    amounts: Vec<f64>,
    rates: Vec<f64>,
    rings: Vec<Ring>,
    /// Where the state begins in the file, in bytes from its beginning: with the time of the last update.
    live: usize,
    /// Where its parts begin, in bytes from there: microseconds, what archives prepare, their current rows.
    micros: usize,
    archives: usize,
    pointers: usize,
    /// A row of several data sources, before it is written.
    row: Vec<u8>,
}

/// So long after all times that no step that is under way ends then.
const NEVER: i64 = i64::MAX / 2;

/// A data source.
#[derive(Clone, Copy, Debug)]
struct Input {
    meter: Meter,
    /// Where the state has the last reading, and the slots.
    reading: usize,
    slots: usize,
}

/// An archive.
#[derive(Clone, Copy, Debug)]
struct Ring {
    function: Consolidation,
    /// Whether that is `Average`: it is the most usual, and so a question of its own.
    averages: bool,
    xff: f64,
    points: u64,
    rows: u64,
    seconds: i64,
    /// The end of the row to which the step belongs that ends at [`Direct::end`].
    end: i64,
    /// Where the state has the current row, counted from that of the first archive, and the file the
    /// values.
    pointer: usize,
    values: u64,
}

impl Direct {
    /// What updates of a file need; `None` where something in it is not usual.
    pub(super) fn new(plan: &Plan, definitions: &Definitions) -> Option<Self> {
        let (layout, coding) = (definitions.layout(), definitions.coding());
        let structs = layout.structs();
        // It is so on all machines: what archives prepare is an array of this.
        if structs.archive_state.size != size_of::<Slots>() || structs.archive_state.slots != 0 {
            return None;
        }
        let live = layout.live();
        let inputs = plan.sources.iter().enumerate().map(|(index, source)| {
            let Source::Measured(meter) = *source else {
                return None;
            };
            let reading = layout.source_state(index) - live;
            Some(Input {
                meter,
                reading,
                slots: reading + structs.source_state.slots,
            })
        });
        let rings = plan.archives.iter().enumerate().map(|(index, ring)| {
            let Role::Consolidate { function, xff } = ring.role else {
                return None;
            };
            let seconds = i64::try_from(plan.step.checked_mul(ring.points)?).ok()?;
            (seconds <= LATEST).then_some(Ring {
                function,
                averages: function == Consolidation::Average,
                xff,
                points: ring.points,
                rows: ring.rows,
                seconds,
                end: 0,
                pointer: layout.pointer(index) - layout.pointer(0),
                values: layout.values(index),
            })
        });
        let wide = integer::fits_sint(LATEST, coding.time);
        let inputs = inputs.collect::<Option<Vec<_>>>()?;
        let coding = coding.kind();
        // Old versions have no microseconds in their times, so none of their databases counts as usual.
        let micros = layout.micros()? - live;
        let (archives, pointers) = (layout.archive_state(0, 0) - live, layout.pointer(0) - live);
        // Numbers that are words are found by their index.
        let mut places = inputs.iter().map(|input| input.slots);
        let in_words = |at: usize| at.is_multiple_of(SLOT);
        let is_in_words = micros == SLOT && in_words(pointers) && places.all(in_words);
        if !matches!(coding, CodingKind::Any(_)) && !is_in_words {
            return None;
        }
        Some(Self {
            coding,
            step: i64::try_from(plan.step).ok()?,
            latest: if wide { LATEST } else { 1 << 31 },
            end: NEVER,
            inputs,
            amounts: vec![f64::NAN; plan.sources.len()],
            rates: vec![f64::NAN; plan.sources.len()],
            rings: rings.collect::<Option<_>>()?,
            live,
            micros,
            archives,
            pointers,
            row: Vec::new(),
        })
    }

    /// Takes a sample, if it is a usual one. Otherwise nothing has changed.
    ///
    /// # Errors
    ///
    /// Those of writing, after which part of the sample may have been taken.
    #[inline]
    pub(super) fn update<S: Storage>(
        &mut self,
        file: &mut InPlace<S>,
        sample: &Sample<'_>,
        template: &Template,
    ) -> Option<io::Result<()>> {
        match self.coding {
            CodingKind::Little(numbers) => self.take(numbers, file, sample, template),
            CodingKind::Big(numbers) => self.take(numbers, file, sample, template),
            CodingKind::Any(numbers) => self.take(numbers, file, sample, template),
        }
    }

    /// Takes a sample, if it is a usual one.
    fn take<N: Numbers, S: Storage>(
        &mut self,
        numbers: N,
        file: &mut InPlace<S>,
        sample: &Sample<'_>,
        template: &Template,
    ) -> Option<io::Result<()>> {
        let Parts {
            storage,
            state,
            ahead,
            stale,
        } = file.parts()?;
        let last = (
            numbers.time_at(state, 0),
            numbers.long_at(state, numbers.micros(self.micros)),
        );
        let time = sample.time.to_micros();
        // Some files have a number of microseconds that cannot be.
        let usual = last.1 < 1_000_000
            && (time.0 > last.0 || (time.0 == last.0 && u64::from(time.1) > last.1))
            && time.0 < self.latest;
        if !usual {
            return None;
        }
        let last = (last.0, last.1 as u32);
        let left = self.end.wrapping_sub(last.0);
        // From 1 to a step, by one comparison.
        if left.wrapping_sub(1) as u64 >= self.step as u64 {
            self.see(last.0)?;
        }
        let end = self.end;
        let after = time.0 - end;
        if after >= self.step {
            return None;
        }
        let ends = after >= 0;
        let span = || Span::of(u64::from(ends), end, last, time);
        let mut done = Ok(());
        match (&self.inputs[..], sample.values) {
            // So it is mostly, and much is known then: a single data source.
            ([input], [given]) if template.is_in_order() => {
                let span = span();
                let amount = input.measure(given, &span, state)?;
                let rate = input.settle(amount, &span, self.step as u64, numbers, state);
                let reading = input.reading;
                if ends {
                    done = self.end_step(rate, numbers, state, storage);
                }
                keep(given, reading, state);
            }
            _ => {
                self.measure(sample, template, span(), state)?;
                self.settle(sample, template, span(), numbers, state);
                if ends {
                    done = self.end_steps(numbers, state, storage);
                }
            }
        }
        *ahead = true;
        numbers.time(state, 0, time.0);
        numbers.long(state, numbers.micros(self.micros), u64::from(time.1));
        if done.is_ok() {
            let changed = if ends { state.len() } else { self.archives };
            done = storage.write_at(self.live as u64, &state[..changed]);
        }
        *stale = done.is_err();
        Some(done)
    }

    /// Finds out when the step ends in which a time is, and when the rows. Some files have a time that
    /// cannot be.
    #[cold]
    fn see(&mut self, time: i64) -> Option<()> {
        if !(0..=LATEST).contains(&time) {
            return None;
        }
        let end = |seconds: i64| time - time % seconds + seconds;
        self.end = end(self.step);
        for ring in &mut self.rings {
            ring.end = end(ring.seconds);
        }
        Some(())
    }

    /// Brings the point of a single data source to the archives, where its step ends, and begins the next
    /// one.
    #[inline(always)]
    fn end_step<N: Numbers, S: Storage>(
        &mut self,
        rate: f64,
        numbers: N,
        state: &mut [u8],
        storage: &mut S,
    ) -> io::Result<()> {
        if rate.is_nan() {
            self.rates[0] = rate;
            return self.end_steps(numbers, state, storage);
        }
        let end = self.end;
        self.end += self.step;
        let (slots, pointers) = parts(state, self.archives, self.pointers);
        for (ring, slots) in self.rings.iter_mut().zip(slots) {
            if ring.end == end {
                let row = ring.end_row(rate, numbers, slots);
                storage.write_at(ring.next_row(1, numbers, pointers), row)?;
            } else {
                ring.add(rate, numbers, slots);
            }
        }
        Ok(())
    }

    /// Finds out what the readings add, if each can be one of its data source.
    #[inline(never)]
    fn measure(
        &mut self,
        sample: &Sample<'_>,
        template: &Template,
        span: Span,
        state: &[u8],
    ) -> Option<()> {
        if template.readings() != sample.values.len() {
            return None;
        }
        let inputs = self.inputs.iter().zip(&mut self.amounts).enumerate();
        for (source, (input, amount)) in inputs {
            let given = template.of(source, sample.values);
            *amount = input.measure(given, &span, state)?;
        }
        Some(())
    }

    /// Stores the readings and what becomes of the points, and finds the rates of a step that ends.
    #[inline(never)]
    fn settle<N: Numbers>(
        &mut self,
        sample: &Sample<'_>,
        template: &Template,
        span: Span,
        numbers: N,
        state: &mut [u8],
    ) {
        let points = self.amounts.iter().zip(&mut self.rates);
        for (source, (input, (amount, rate))) in self.inputs.iter().zip(points).enumerate() {
            *rate = input.settle(*amount, &span, self.step as u64, numbers, state);
            keep(template.of(source, sample.values), input.reading, state);
        }
    }

    /// Brings the points of a step that ends to the archives, and begins the next one.
    #[inline(never)]
    fn end_steps<N: Numbers, S: Storage>(
        &mut self,
        numbers: N,
        state: &mut [u8],
        storage: &mut S,
    ) -> io::Result<()> {
        let end = self.end;
        self.end += self.step;
        let (slots, pointers) = parts(state, self.archives, self.pointers);
        let slots = slots.chunks_exact_mut(self.rates.len().max(1));
        for (ring, slots) in self.rings.iter_mut().zip(slots) {
            let points = slots.iter_mut().zip(&self.rates);
            if ring.end == end {
                self.row.clear();
                for (slots, &rate) in points {
                    self.row
                        .extend_from_slice(ring.end_row(rate, numbers, slots));
                }
                let place = ring.next_row(self.rates.len(), numbers, pointers);
                storage.write_at(place, &self.row)?;
            } else {
                points.for_each(|(slots, &rate)| ring.add(rate, numbers, slots));
            }
        }
        Ok(())
    }
}

/// What archives prepare, and their current rows.
#[inline(always)]
fn parts(state: &mut [u8], archives: usize, pointers: usize) -> (&mut [Slots], &mut [u8]) {
    let (states, pointers) = state.split_at_mut(pointers);
    (states[archives..].as_chunks_mut().0, pointers)
}

/// Keeps the text of a reading.
#[inline(always)]
fn keep(given: &Measurement<'_>, reading: usize, state: &mut [u8]) {
    let Some(state) = state.get_mut(reading..) else {
        return;
    };
    if let Some(text) = state.first_chunk_mut() {
        given.keep(text);
    }
}

impl Input {
    /// What a reading adds; `None` where it cannot be one of this data source.
    #[inline(always)]
    fn measure(&self, given: &Measurement<'_>, span: &Span, state: &[u8]) -> Option<f64> {
        let before = || state.get(self.reading..self.slots).unwrap_or_default();
        self.meter.amount(before, span, given).ok()
    }

    /// Stores what becomes of the point, and gives the rate of a step that ends: NaN within one.
    #[inline(always)]
    fn settle<N: Numbers>(
        &self,
        amount: f64,
        span: &Span,
        step: u64,
        numbers: N,
        state: &mut [u8],
    ) -> f64 {
        let mut rate = f64::NAN;
        let slots = state.get_mut(self.slots..).map(<[u8]>::as_chunks_mut);
        if let Some(([unknown, value, ..], _)) = slots {
            let mut point = Point {
                unknown_seconds: numbers.count_in(unknown),
                value: numbers.number_in(value),
            };
            if span.steps == 0 {
                point.add(amount, span);
            } else {
                rate = point.end(amount, span, step, self.meter.heartbeat);
            }
            numbers.count(unknown, point.unknown_seconds);
            *value = numbers.number(point.value);
        }
        rate
    }
}

/// The slots of a preparation, as they lie in the file.
type Slots = [u8; SLOTS * SLOT];

#[inline]
fn slots_of(slots: &mut Slots) -> &mut [[u8; SLOT]] {
    slots.as_chunks_mut().0
}

impl Ring {
    /// Goes on to the next row, which has this number of values. Returns where it is in the file.
    #[inline]
    fn next_row<N: Numbers>(&mut self, values: usize, numbers: N, pointers: &mut [u8]) -> u64 {
        self.end += self.seconds;
        let next = numbers.long_at(pointers, self.pointer).wrapping_add(1);
        let row = if next < self.rows { next } else { 0 };
        numbers.long(pointers, self.pointer, row);
        self.values + row * (values * SLOT) as u64
    }

    /// Adds a point to the row under way.
    #[inline]
    fn add<N: Numbers>(&self, rate: f64, numbers: N, slots: &mut Slots) {
        let slots = slots_of(slots);
        let before = numbers.number_in(&slots[Scratch::VALUE]);
        let sum = before + rate;
        if self.averages && !sum.is_nan() {
            // So it is mostly: nothing is unknown.
            slots[Scratch::VALUE] = numbers.number(sum);
        } else if rate.is_nan() {
            let unknown = &mut slots[Scratch::UNKNOWN_POINTS];
            numbers.count(unknown, numbers.count_in(unknown).wrapping_add(1));
        } else {
            let after = rows::accumulated(self.function, before, rate, 1);
            slots[Scratch::VALUE] = numbers.number(after);
        }
    }

    /// Ends the row under way by a point, and begins the next one. Gives the bytes of its value.
    #[inline]
    fn end_row<'s, N: Numbers>(
        &self,
        rate: f64,
        numbers: N,
        slots: &'s mut Slots,
    ) -> &'s [u8; SLOT] {
        match self.points {
            1 => slots_of(slots)[Scratch::PRIMARY] = numbers.number(rate),
            _ => self.end_long_row(rate, numbers, slots),
        }
        &slots_of(slots)[Scratch::PRIMARY]
    }

    /// Ends a row of several points.
    #[inline(never)]
    fn end_long_row<N: Numbers>(&self, rate: f64, numbers: N, slots: &mut Slots) {
        let slots = slots_of(slots);
        let mut under_way = UnderWay {
            value: numbers.number_in(&slots[Scratch::VALUE]),
            unknown_points: numbers.count_in(&slots[Scratch::UNKNOWN_POINTS]),
        };
        let cut = Cut::LAST_POINT;
        let row = under_way.end(self.function, self.xff, self.points, &cut, rate);
        slots[Scratch::PRIMARY] = numbers.number(row);
        slots[Scratch::SECONDARY] = numbers.number(rate);
        slots[Scratch::VALUE] = numbers.number(under_way.value);
        numbers.count(
            &mut slots[Scratch::UNKNOWN_POINTS],
            under_way.unknown_points,
        );
    }
}
