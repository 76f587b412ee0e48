//! The direct way of updates that end one step at most, as nearly all do.
//!
//! It computes what the general way computes, by the same functions. But that way works on whatever
//! is a [`Change`](super::Change), links archives, evaluates expressions, and cuts seconds and points to
//! pieces by division; most of what it does for a usual update is to find out that there is nothing to
//! do. Here that is known since the file was opened, and each number goes straight to its place in the
//! native file: an update takes half of the instructions. For the same reason the functions below are
//! inlined or not as they are: `cargo xtask bench engine` counts.
//!
//! Whatever is not usual is left to the general way, before anything has changed: among it all that
//! is refused.

use std::io;

use kymo_io::Storage;
use kymo_machine::integer;

use super::plan::{Meter, Plan, Role, Source};
use super::points::{Point, Span};
use super::reading::Kept;
use super::rows::{self, Cut};
use super::{Sample, StoreError, Template};
use crate::judge::LATEST;
use crate::model::{ArchiveState, Consolidation, Scratch, State};
use crate::native::structs::{SLOT, SLOTS};
use crate::native::{CodingKind, InPlace, Numbers, Parts};
use crate::{Time, Value};

/// A native file's definitions, for updates of the direct way.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    /// Seconds of a data point.
    step: i64,
    /// Times are before this.
    latest: i64,
    whole_seconds: bool,
    /// The end of a step: of the one under way, unless others have changed the file.
    end: i64,
    inputs: Vec<Input>,
    rings: Vec<Ring>,
    /// Where the file has the time of the last update, in bytes from its beginning.
    live: usize,
    micros: Option<usize>,
    /// Where it has what archives prepare, their current rows, and the end of that.
    archives: usize,
    pointers: usize,
    state_end: usize,
    /// A row, before it is written.
    row: Vec<u8>,
}

/// A data source.
#[derive(Clone, Copy, Debug)]
struct Input {
    meter: Meter,
    /// The reading that is taken.
    kept: Kept,
    /// The point after it.
    point: Point,
    /// The rate of the step that ends with it.
    rate: f64,
    /// Where the file has the last reading, and the slots.
    reading: usize,
    slots: usize,
}

/// An archive.
#[derive(Clone, Copy, Debug)]
struct Ring {
    function: Consolidation,
    xff: f64,
    points: u64,
    rows: u64,
    /// Seconds of a row but for one: as many may be left until it ends.
    before_end: u64,
    /// The end of a row: of the one under way, unless the direct way was left.
    end: i64,
    /// Where the file has the current row, counted from that of the first archive, and the values.
    pointer: usize,
    values: u64,
}

impl Direct {
    /// What updates of a file need; `None` where something in it is not usual.
    pub(super) fn new<S: Storage>(plan: &Plan, file: &InPlace<S>) -> Option<Self> {
        let layout = file.layout();
        let structs = layout.structs();
        // It is so on all machines: what archives prepare is an array of this.
        if structs.archive_state.size != size_of::<Slots>() || structs.archive_state.slots != 0 {
            return None;
        }
        let inputs = plan.sources.iter().enumerate().map(|(index, source)| {
            let Source::Measured(meter) = *source else {
                return None;
            };
            let reading = layout.source_state(index);
            Some(Input {
                meter,
                kept: Kept::default(),
                point: Point::default(),
                rate: f64::NAN,
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
                xff,
                points: ring.points,
                rows: ring.rows,
                before_end: seconds as u64 - 1,
                end: 0,
                pointer: layout.pointer(index) - layout.pointer(0),
                values: layout.values(index),
            })
        });
        let wide = integer::fits_sint(LATEST, file.coding().time);
        Some(Self {
            step: i64::try_from(plan.step).ok()?,
            latest: if wide { LATEST } else { 1 << 31 },
            whole_seconds: plan.whole_seconds,
            end: 0,
            inputs: inputs.collect::<Option<_>>()?,
            rings: rings.collect::<Option<_>>()?,
            live: layout.live(),
            micros: layout.micros(),
            archives: layout.archive_state(0, 0),
            pointers: layout.pointer(0),
            row: Vec::new(),
            state_end: layout.header_end(),
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
    ) -> Result<bool, StoreError> {
        let Some(parts) = file.parts() else {
            return Ok(false);
        };
        let last = parts.state.last_update.to_micros();
        let (seconds, micros) = sample.time.to_micros();
        let time = (seconds, if self.whole_seconds { 0 } else { micros });
        let usual = last.0 >= 0
            && parts.state.stray_micros.is_none()
            && (time.0 > last.0 || (time.0 == last.0 && time.1 > last.1))
            && time.0 < self.latest
            && template.readings() == sample.values.len();
        if !usual {
            return Ok(false);
        }
        let end = self.step_end(last.0);
        let ends = time.0 >= end;
        if time.0 - end >= self.step {
            return Ok(false);
        }
        let span = Span::of(u64::from(ends), end, last, time);
        if !self.measure(parts.state, &span, sample, template) {
            return Ok(false);
        }

        // From here on nothing is refused.
        let written = match parts.coding.kind() {
            CodingKind::Little(numbers) => self.take(numbers, parts, last, time, ends),
            CodingKind::Big(numbers) => self.take(numbers, parts, last, time, ends),
            CodingKind::Any(numbers) => self.take(numbers, parts, last, time, ends),
        };
        if let Err(error) = written {
            file.forget();
            return Err(error.into());
        }
        Ok(true)
    }

    /// Brings what was measured to the state and to the file, of which this is the last update and
    /// the time of this one.
    #[inline]
    fn take<N: Numbers, S: Storage>(
        &mut self,
        numbers: N,
        parts: Parts<'_, S>,
        last: (i64, u32),
        time: (i64, u32),
        ends: bool,
    ) -> io::Result<()> {
        let Parts {
            storage,
            state,
            image,
            ..
        } = parts;
        numbers.time(image, self.live, time.0);
        state.last_update = Time::from_seconds(time.0);
        if time.1 | last.1 != 0 {
            state.last_update = Time::from_micros(time.0, time.1).unwrap_or(state.last_update);
            if let Some(at) = self.micros {
                numbers.long(image, at, u64::from(time.1));
            }
        }
        self.store(numbers, state, image);
        let mut state_end = self.archives;
        if ends {
            self.end_step(numbers, storage, state, image)?;
            state_end = self.state_end;
        }
        storage.write_at(self.live as u64, &image[self.live..state_end])
    }

    /// The end of the step in which a time is.
    #[inline]
    fn step_end(&mut self, time: i64) -> i64 {
        let left = self.end.wrapping_sub(time);
        if left.wrapping_sub(1) as u64 >= self.step as u64 {
            self.end = time - time % self.step + self.step;
        }
        self.end
    }

    /// Finds out what becomes of the points. Tells whether all readings can be those of their data
    /// sources.
    #[inline]
    fn measure(
        &mut self,
        state: &State,
        span: &Span,
        sample: &Sample<'_>,
        template: &Template,
    ) -> bool {
        for (index, (input, before)) in self.inputs.iter_mut().zip(&state.sources).enumerate() {
            let given = template.of(index, sample.values);
            let Ok(amount) = input.meter.amount(before, span, given) else {
                return false;
            };
            let mut point = Point::of(before);
            if span.steps == 0 {
                point.add(amount, span);
            } else {
                let heartbeat = input.meter.heartbeat;
                input.rate = point.end(amount, span, self.step as u64, heartbeat);
            }
            input.point = point;
            given.keep(&mut input.kept);
        }
        true
    }

    /// Stores readings and points.
    #[inline]
    fn store<N: Numbers>(&self, numbers: N, state: &mut State, image: &mut [u8]) {
        for (input, source) in self.inputs.iter().zip(&mut state.sources) {
            input.kept.store(&mut source.last_reading);
            let text = image.get_mut(input.reading..);
            if let Some(text) = text.and_then(<[u8]>::first_chunk_mut) {
                *text = input.kept.bytes;
            }
            let point = input.point;
            let slots = image.get_mut(input.slots..).unwrap_or_default();
            if let ([unknown, value, ..], _) = slots.as_chunks_mut() {
                if point.unknown_seconds != source.unknown_seconds {
                    numbers.count(unknown, point.unknown_seconds);
                }
                point.store(source);
                *value = numbers.value(source.value);
            }
        }
    }

    /// Brings the points of the step that ends to the archives.
    #[inline(never)]
    fn end_step<N: Numbers, S: Storage>(
        &mut self,
        numbers: N,
        storage: &mut S,
        state: &mut State,
        image: &mut [u8],
    ) -> io::Result<()> {
        let (states, pointers) = image.split_at_mut(self.pointers);
        let (slots, _) = states[self.archives..].as_chunks_mut();
        let end = self.end;
        self.end += self.step;
        let rings = self.rings.iter_mut().zip(&mut state.archives);
        match self.inputs[..] {
            // So it is mostly: one data source, which is known.
            [Input { rate, .. }] if !rate.is_nan() => {
                for ((ring, archive), slots) in rings.zip(slots) {
                    let [scratch] = &mut archive.scratch[..] else {
                        continue;
                    };
                    if ring.goes_on(end) {
                        ring.add(rate, scratch, numbers, slots);
                        continue;
                    }
                    if ring.points > 1 || !ring.ends(end) {
                        let points = Points {
                            end,
                            inputs: &self.inputs,
                            row: &mut self.row,
                        };
                        let slots = std::slice::from_mut(slots);
                        points.take(ring, archive, slots, numbers, pointers, storage)?;
                        continue;
                    }
                    let value = ring.end_single(rate, scratch, numbers, slots);
                    ring.write_row(&value, archive, numbers, pointers, storage)?;
                }
            }
            _ => {
                let slots = slots.chunks_mut(self.inputs.len().max(1));
                for ((ring, archive), slots) in rings.zip(slots) {
                    let points = Points {
                        end,
                        inputs: &self.inputs,
                        row: &mut self.row,
                    };
                    points.take(ring, archive, slots, numbers, pointers, storage)?;
                }
            }
        }
        Ok(())
    }
}

/// The slots of a preparation, as they lie in the file.
type Slots = [u8; SLOTS * SLOT];

#[inline]
fn slots_of(slots: &mut Slots) -> &mut [[u8; SLOT]] {
    slots.as_chunks_mut().0
}

/// The points of all data sources.
struct Points<'a> {
    /// The end of their step.
    end: i64,
    inputs: &'a [Input],
    /// A row, before it is written.
    row: &'a mut Vec<u8>,
}

impl Points<'_> {
    /// Brings the points to an archive, of which the slots for all data sources are given.
    #[inline(never)]
    fn take<N: Numbers, S: Storage>(
        self,
        ring: &mut Ring,
        archive: &mut ArchiveState,
        slots: &mut [Slots],
        numbers: N,
        pointers: &mut [u8],
        storage: &mut S,
    ) -> io::Result<()> {
        let ends = !ring.goes_on(self.end) && ring.ends(self.end);
        self.row.clear();
        let points = self.inputs.iter().zip(&mut archive.scratch).zip(slots);
        for ((input, scratch), slots) in points {
            let value = match (ends, ring.points) {
                (false, _) => {
                    ring.add(input.rate, scratch, numbers, slots);
                    continue;
                }
                (true, 1) => ring.end_single(input.rate, scratch, numbers, slots),
                (true, _) => ring.end_row(input.rate, scratch, numbers, slots),
            };
            self.row.extend_from_slice(&value);
        }
        match ends {
            true => ring.write_row(self.row, archive, numbers, pointers, storage),
            false => Ok(()),
        }
    }
}

impl Ring {
    /// Whether a row is known to go on at a time, which is the end of a step.
    #[inline]
    fn goes_on(&self, time: i64) -> bool {
        let left = self.end.wrapping_sub(time);
        (left.wrapping_sub(1) as u64) < self.before_end
    }

    /// Whether a row ends at a time, which is the end of a step.
    #[inline]
    fn ends(&mut self, time: i64) -> bool {
        if self.end != time {
            let seconds = self.before_end as i64 + 1;
            self.end = time - 1 - (time - 1) % seconds + seconds;
        }
        self.end == time
    }

    /// Writes a row, which has ended.
    #[inline]
    fn write_row<N: Numbers, S: Storage>(
        &mut self,
        row: &[u8],
        archive: &mut ArchiveState,
        numbers: N,
        pointers: &mut [u8],
        storage: &mut S,
    ) -> io::Result<()> {
        self.end += self.before_end as i64 + 1;
        let next = archive.current_row + 1;
        let place = if next < self.rows { next } else { 0 };
        storage.write_at(self.values + place * row.len() as u64, row)?;
        archive.current_row = place;
        numbers.long(pointers, self.pointer, place);
        Ok(())
    }

    /// Adds a point to the row under way.
    #[inline]
    fn add<N: Numbers>(&self, rate: f64, scratch: &mut Scratch, numbers: N, slots: &mut Slots) {
        let slots = slots_of(slots);
        if rate.is_nan() {
            rows::go_on(scratch, self.function, 1, rate);
            let unknown = scratch.counter(Scratch::UNKNOWN_POINTS);
            numbers.count(&mut slots[Scratch::UNKNOWN_POINTS], unknown);
        } else {
            let before = f64::from_bits(scratch.0[Scratch::VALUE]);
            let value = Value::from(rows::accumulated(self.function, before, rate, 1));
            scratch.set_value(Scratch::VALUE, value);
            slots[Scratch::VALUE] = numbers.value(value);
        }
    }

    /// Ends a row of a single point, and gives the bytes of its value.
    #[inline]
    fn end_single<N: Numbers>(
        &self,
        rate: f64,
        scratch: &mut Scratch,
        numbers: N,
        slots: &mut Slots,
    ) -> [u8; SLOT] {
        let value = Value::from(rate);
        scratch.set_value(Scratch::PRIMARY, value);
        let bytes = numbers.value(value);
        slots_of(slots)[Scratch::PRIMARY] = bytes;
        bytes
    }

    /// Ends a row of several points, and gives the bytes of its value.
    #[inline(never)]
    fn end_row<N: Numbers>(
        &self,
        rate: f64,
        scratch: &mut Scratch,
        numbers: N,
        slots: &mut Slots,
    ) -> [u8; SLOT] {
        let cut = Cut::LAST_POINT;
        rows::end(scratch, self.function, self.xff, self.points, &cut, rate);
        let slots = slots_of(slots);
        for slot in [Scratch::VALUE, Scratch::PRIMARY, Scratch::SECONDARY] {
            slots[slot] = numbers.value(scratch.value(slot));
        }
        let unknown = scratch.counter(Scratch::UNKNOWN_POINTS);
        numbers.count(&mut slots[Scratch::UNKNOWN_POINTS], unknown);
        slots[Scratch::PRIMARY]
    }
}
