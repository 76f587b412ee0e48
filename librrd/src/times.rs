//! Times such as `noon yesterday`.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_long};
use std::mem::zeroed;
use std::ptr::null;

use kymo_rrdtool::times::{Anchored, Clock, Shift, TimeError, TimeSpec};
use kymo_rrdtool::{Failure, LocalZone};

use crate::boundary::{copy_text, guard, status, text};

/// `rrd_time_value_t`.
#[repr(C)]
pub(crate) struct TimeValue {
    kind: c_int,
    /// Seconds that are added.
    offset: c_long,
    /// A local time, or what is added to one.
    fields: libc::tm,
}

/// `rrd_timetype_t`.
const ABSOLUTE: c_int = 0;
const AFTER_START: c_int = 1;
const AFTER_END: c_int = 2;
const AFTER_EPOCH: c_int = 3;

thread_local! {
    /// What was wrong with the last time that the thread asked for.
    static PROBLEM: UnsafeCell<[c_char; 1024]> = const { UnsafeCell::new([0; 1024]) };
}

/// `char *rrd_parsetime(const char *text, rrd_time_value_t *time)`: gives what is wrong, or NULL. The message
/// is the thread's until it asks for another time.
///
/// # Safety
///
/// `string` is NULL or a string; `time` may be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_parsetime(string: *const c_char, time: *mut TimeValue) -> *const c_char {
    // SAFETY: the caller's.
    let bytes = unsafe { text(string) }.unwrap_or_default();
    let parsed = guard(Err("internal error".to_owned()), || {
        Ok(value(bytes).map_err(|error| error.to_string()))
    });
    match parsed {
        Ok(value) => {
            // SAFETY: the caller's.
            unsafe { time.write(value) };
            null()
        }
        Err(problem) => PROBLEM.with(|place| {
            // SAFETY: the place is the thread's own, and no other reference to it exists.
            let place = unsafe { &mut *place.get() };
            copy_text(problem.as_bytes(), place);
            place.as_ptr()
        }),
    }
}

fn value(text: &[u8]) -> Result<TimeValue, TimeError> {
    let spec = TimeSpec::parse(text)?;
    // SAFETY: the argument may be NULL.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    let zone = LocalZone::of_environment();
    let clock = Clock {
        now: now as i64,
        zone: &zone,
        is_first: true,
    };
    Ok(match spec.anchored(&clock)? {
        Anchored::At { time, seconds } => TimeValue {
            kind: ABSOLUTE,
            offset: seconds as c_long,
            fields: local(time).ok_or(TimeError::OutOfRange)?,
        },
        Anchored::AfterStart(shift) => relative(AFTER_START, &shift),
        Anchored::AfterEnd(shift) => relative(AFTER_END, &shift),
        Anchored::AfterEpoch(shift) => relative(AFTER_EPOCH, &shift),
    })
}

/// A time that is relative to another.
fn relative(kind: c_int, shift: &Shift) -> TimeValue {
    // SAFETY: all its parts are numbers, or pointers that may be NULL.
    let mut fields: libc::tm = unsafe { zeroed() };
    let clamp = |number: i64| number.clamp(c_int::MIN.into(), c_int::MAX.into()) as c_int;
    fields.tm_year = clamp(shift.years);
    fields.tm_mon = clamp(shift.months);
    fields.tm_mday = clamp(shift.days);
    fields.tm_isdst = -1;
    TimeValue {
        kind,
        offset: shift.seconds as c_long,
        fields,
    }
}

/// Local time, of which calendars may not know the year.
fn local(time: i64) -> Option<libc::tm> {
    let time = time as libc::time_t;
    // SAFETY: all its parts are numbers, or pointers that may be NULL.
    let mut fields: libc::tm = unsafe { zeroed() };
    // SAFETY: both are there. That the zone is read may meet a change of the environment, as in all
    // of C.
    let done = unsafe { libc::localtime_r(&time, &mut fields) };
    (!done.is_null()).then_some(fields)
}

/// `int rrd_proc_start_end(rrd_time_value_t *start, rrd_time_value_t *end, time_t *start_time, time_t
/// *end_time)`: the seconds since 1970.
///
/// # Safety
///
/// The pointers are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_proc_start_end(
    start: *const TimeValue,
    end: *const TimeValue,
    start_time: *mut libc::time_t,
    end_time: *mut libc::time_t,
) -> c_int {
    status(|| {
        let reported = |error: TimeError| Failure::new(error.to_string());
        // SAFETY: the caller's.
        let (start, end) = unsafe { (&*start, &*end) };
        let (from, until) = match (start.kind, end.kind) {
            (AFTER_END, AFTER_START) => return Err(reported(TimeError::EachOther)),
            (AFTER_START, _) => return Err(reported(TimeError::StartToItself)),
            (_, AFTER_END) => return Err(reported(TimeError::EndToItself)),
            (AFTER_END, _) => {
                let until = end.alone();
                (start.since(until), until)
            }
            (_, AFTER_START) => {
                let from = start.alone();
                (from, end.since(from))
            }
            _ => (start.alone(), end.alone()),
        };
        let (from, until) = from
            .zip(until)
            .ok_or_else(|| reported(TimeError::OutOfRange))?;
        // SAFETY: the caller's.
        unsafe {
            start_time.write(from);
            end_time.write(until);
        }
        Ok(())
    })
}

impl TimeValue {
    /// The time, if it is not relative to another.
    fn alone(&self) -> Option<libc::time_t> {
        match self.kind {
            AFTER_EPOCH => Some(self.offset as libc::time_t),
            _ => plus(self.fields, self.offset),
        }
    }

    /// The time, so long after another.
    fn since(&self, time: Option<libc::time_t>) -> Option<libc::time_t> {
        let mut fields = local(time? as i64)?;
        fields.tm_year = fields.tm_year.checked_add(self.fields.tm_year)?;
        fields.tm_mon = fields.tm_mon.checked_add(self.fields.tm_mon)?;
        fields.tm_mday = fields.tm_mday.checked_add(self.fields.tm_mday)?;
        plus(fields, self.offset)
    }
}

/// The seconds since 1970 of a local time, plus `seconds`.
fn plus(mut fields: libc::tm, seconds: c_long) -> Option<libc::time_t> {
    // SAFETY: they are there, and any numbers will do.
    let time = unsafe { libc::mktime(&mut fields) };
    time.checked_add(seconds as libc::time_t)
}
