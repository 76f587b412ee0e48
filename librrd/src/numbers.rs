//! Numbers, lengths of time, consolidation functions; the version.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong};
use std::hash::{BuildHasher, RandomState};
use std::ptr::null;

use kymo_machine::Machine;
use kymo_rrd::rpn::greatest_divisor;
use kymo_rrd::text::numbers;
use kymo_rrdtool::Failure;
use kymo_rrdtool::answers::Fetched;
use kymo_rrdtool::times::{DurationError, scaled};

use crate::boundary::{give, guard, numbers as copied, text};
use crate::context::set_error;

/// The version of librrd whose interface this is.
const VERSION: &CStr = c"1.7.2";

/// `char *rrd_strversion(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrd_strversion() -> *const c_char {
    VERSION.as_ptr()
}

/// `double rrd_version(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrd_version() -> f64 {
    1.7002
}

/// `double rrd_set_to_DNAN(void)`: the NaN that databases of this machine have.
#[unsafe(no_mangle)]
extern "C" fn rrd_set_to_DNAN() -> f64 {
    f64::from_bits(Machine::native().file_nan())
}

/// Makes values that were computed and are unknown the NaN that librrd has: programs may print its sign.
pub(crate) fn name_unknown(values: &mut [f64]) {
    for value in values.iter_mut().filter(|value| value.is_nan()) {
        *value = rrd_set_to_DNAN();
    }
}

/// `double rrd_set_to_DINF(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrd_set_to_DINF() -> f64 {
    f64::INFINITY
}

/// `long rrd_random(void)`: a number that is not negative.
#[unsafe(no_mangle)]
extern "C" fn rrd_random() -> c_long {
    (RandomState::new().hash_one(0) >> 33) as c_long
}

/// Consolidation functions, by their numbers.
const FUNCTIONS: [&str; 10] = [
    "AVERAGE",
    "MIN",
    "MAX",
    "LAST",
    "HWPREDICT",
    "SEASONAL",
    "DEVPREDICT",
    "DEVSEASONAL",
    "FAILURES",
    "MHWPREDICT",
];

/// The name of a consolidation function, if it is one.
pub(crate) fn function_name(name: &[u8]) -> Result<&'static str, Failure> {
    let number = function_number(name)?;
    Ok(FUNCTIONS[number as usize])
}

/// The number of a consolidation function.
pub(crate) fn function_number(name: &[u8]) -> Result<c_int, Failure> {
    let number = FUNCTIONS
        .iter()
        .position(|function| function.as_bytes() == name);
    number.map(|number| number as c_int).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        Failure::new(format!("unknown consolidation function '{name}'"))
    })
}

/// `enum cf_en rrd_cf_conv(const char *name)`: -1 if there is no such function.
///
/// # Safety
///
/// `name` is NULL or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_cf_conv(name: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: the caller's.
        function_number(unsafe { text(name) }.unwrap_or_default())
    })
}

/// `unsigned long rrd_lcd(unsigned long *numbers)`: the greatest number that divides all, of which the last is
/// followed by 0.
///
/// # Safety
///
/// The numbers end with 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_lcd(mut numbers: *const c_ulong) -> c_ulong {
    let mut divisor = 0;
    // SAFETY: the numbers go on until one is 0, says the caller.
    unsafe {
        while !numbers.is_null() && *numbers != 0 {
            divisor = greatest_divisor(*numbers as i64, divisor);
            numbers = numbers.add(1);
        }
    }
    divisor as c_ulong
}

/// `double rrd_strtod(const char *text, char **end)`: the number at the beginning of a text, and where it ends.
/// `end` is not changed if there is none; words such as `nan` are not numbers.
///
/// # Safety
///
/// `string` is NULL or a string, `end` NULL or may be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_strtod(string: *const c_char, end: *mut *const c_char) -> f64 {
    // SAFETY: the caller's.
    let bytes = unsafe { text(string) }.unwrap_or_default();
    match numbers::prefix(bytes) {
        Ok((number, length)) if number.is_finite() => {
            // SAFETY: the caller's; the length is one within the string.
            unsafe { give(end, string.add(length)) };
            number
        }
        Ok(_) | Err(numbers::NumberError::NoNumber) => 0.0,
        Err(numbers::NumberError::OutOfRange) => f64::INFINITY,
    }
}

/// `unsigned int rrd_strtodbl(const char *text, char **end, double *number, const char *error)`: 2 where all of
/// the text is a number, 1 where only its beginning is, 0 where there is none. `error`, unless NULL, begins the
/// error message of what is not 2.
///
/// # Safety
///
/// Strings are NULL or end with zero; the other pointers are NULL or may be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_strtodbl(
    string: *const c_char,
    end: *mut *const c_char,
    number: *mut f64,
    error: *const c_char,
) -> c_int {
    // SAFETY: the caller's.
    let (bytes, error) = unsafe { (text(string).unwrap_or_default(), text(error)) };
    let reported = |message: String| {
        if let Some(error) = error {
            set_error(&format!("{} - {message}", String::from_utf8_lossy(error)));
        }
    };
    let shown = String::from_utf8_lossy(bytes);
    let (value, length, status) = match numbers::prefix(bytes) {
        Ok((value, length)) if length == bytes.len() => (value, length, 2),
        Ok((value, length)) => {
            let rest = String::from_utf8_lossy(&bytes[length..]);
            reported(format!(
                "Converted '{shown}' to {value:.6}, but cannot convert '{rest}'"
            ));
            (value, length, 1)
        }
        Err(problem) => {
            reported(format!("Cannot convert '{shown}' to float"));
            match problem {
                numbers::NumberError::NoNumber => (0.0, 0, 0),
                numbers::NumberError::OutOfRange => (f64::INFINITY, 0, 0),
            }
        }
    };
    // SAFETY: the caller's; the length is one within the string.
    unsafe {
        give(number, value);
        // As in librrd, words such as `nan` have no length.
        let length = if value.is_finite() { length } else { 0 };
        give(end, string.add(length));
    }
    status
}

/// `const char *rrd_scaled_duration(const char *token, unsigned long divisor, unsigned long *value)`: a count,
/// or how many times `divisor` seconds a length of time is. Gives what is wrong, or NULL.
///
/// # Safety
///
/// `token` is NULL or a string, `value` NULL or may be written to.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_scaled_duration(
    token: *const c_char,
    divisor: c_ulong,
    value: *mut c_ulong,
) -> *const c_char {
    // SAFETY: the caller's.
    let token = unsafe { text(token) }.unwrap_or_default();
    let problem = match scaled(token, (divisor as u64).max(1)) {
        Ok(count) => {
            // SAFETY: the caller's.
            unsafe { give(value, count as c_ulong) };
            return null();
        }
        Err(DurationError::NoNumber) => c"value must be (suffixed) positive number",
        Err(DurationError::Zero) => c"value must be positive",
        Err(DurationError::Garbage) => c"value has trailing garbage",
        Err(DurationError::Truncated) => c"value would truncate when scaled",
        Err(DurationError::TooLong) => c"value is too large",
    };
    problem.as_ptr()
}

/// `int rrd_reduce_data(enum cf_en cf, unsigned long cur_step, time_t *start, time_t *end, unsigned long *step,
/// unsigned long *ds_cnt, rrd_value_t **data)`: makes rows of `step` seconds at least of rows of `cur_step`; 1,
/// or 0 where that cannot be.
///
/// # Safety
///
/// Values are of `malloc`; their number follows from the times, the step and the number of data sources.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_reduce_data(
    function: c_int,
    own: c_ulong,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *const c_ulong,
    data: *mut *mut f64,
) -> c_int {
    guard(0, || {
        let broken = || Failure::new("rrd_reduce_data: times, steps or values that are none");
        let function = usize::try_from(function).ok();
        let function = function.and_then(|number| FUNCTIONS.get(number));
        let function = function.ok_or_else(broken)?;
        // SAFETY: they may be read and written to, says the caller.
        let (start, end, step, count, data) = unsafe {
            let times = (start.as_mut(), end.as_mut(), step.as_mut());
            match (times, count.as_ref(), data.as_mut()) {
                ((Some(start), Some(end), Some(step)), Some(count), Some(data)) => {
                    (start, end, step, *count as usize, data)
                }
                _ => return Err(broken()),
            }
        };
        let length = u64::try_from(*end - *start).map_err(|_| broken())?;
        let rows = length.checked_div(own as u64).ok_or_else(broken)?;
        let values = usize::try_from(rows)
            .ok()
            .and_then(|rows| rows.checked_mul(count));
        let values = values.filter(|_| !data.is_null()).ok_or_else(broken)?;
        let mut fetched = Fetched {
            start: *start as i64,
            end: *end as i64,
            step: own as u64,
            names: vec![Vec::new(); count],
            // SAFETY: the caller guarantees this number of values.
            values: unsafe { std::slice::from_raw_parts(*data, values) }.to_vec(),
        };
        fetched.reduce(function, *step as u64)?;
        name_unknown(&mut fetched.values);
        *start = fetched.start as libc::time_t;
        *end = fetched.end as libc::time_t;
        *step = fetched.step as c_ulong;
        // SAFETY: they are of `malloc`, says the caller.
        unsafe { libc::free((*data).cast()) };
        *data = copied(&fetched.values, count);
        Ok(1)
    })
}
