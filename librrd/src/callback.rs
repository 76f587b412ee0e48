//! Rows that the program has itself: files named `cb//...`, for which `rrd_fetch_cb_register` names a
//! function.

use std::ffi::{CString, c_char, c_int, c_ulong};
use std::mem;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use kymo_rrdtool::Failure;
use kymo_rrdtool::answers::{Fetched, Wanted};

use crate::boundary::text;
use crate::context::{error, set_error};
use crate::numbers::function_number;

/// `rrd_fetch_cb_t`.
type Callback = unsafe extern "C" fn(
    name: *const c_char,
    function: c_int,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    values: *mut *mut f64,
) -> c_int;

/// The function that has rows; NULL if there is none.
static CALLBACK: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// `int rrd_fetch_cb_register(rrd_fetch_cb_t callback)`: from now on, this function is asked; 1.
#[unsafe(no_mangle)]
extern "C" fn rrd_fetch_cb_register(callback: Option<Callback>) -> c_int {
    let callback = callback.map_or(null_mut(), |callback| callback as *mut ());
    CALLBACK.store(callback, Ordering::Release);
    1
}

/// Asks the program for rows.
pub(crate) fn fetch(wanted: &Wanted<'_>) -> Result<Fetched, Failure> {
    let callback = CALLBACK.load(Ordering::Acquire);
    if callback.is_null() {
        return Err(Failure::new(
            "use rrd_fetch_cb_register to register your callback prior to calling rrd_fetch or rrd_graph",
        ));
    }
    // SAFETY: it is one that was registered, of which the type is this.
    let callback = unsafe { mem::transmute::<*mut (), Callback>(callback) };
    let name = CString::new(wanted.name);
    let name = name.map_err(|_| Failure::new("a name holds a zero"))?;
    let function = function_number(wanted.function.as_bytes())?;
    let (mut start, mut end) = (wanted.start as libc::time_t, wanted.end as libc::time_t);
    let mut step = wanted.step as c_ulong;
    let (mut count, mut names, mut values) = (0, null_mut(), null_mut());
    set_error("");
    // SAFETY: all pointers may be written to.
    let done = unsafe {
        callback(
            name.as_ptr(),
            function,
            &mut start,
            &mut end,
            &mut step,
            &mut count,
            &mut names,
            &mut values,
        )
    };
    if done < 0 {
        // It may have freed what it had given before it failed.
        let own = error();
        return Err(Failure::new(match own.is_empty() {
            true => "the callback for rows failed".to_owned(),
            false => own,
        }));
    }
    let taken = Taken {
        count: count as usize,
        names,
        values,
    };
    taken.rows(start as i64, end as i64, step as u64)
}

/// What a callback has given; it is freed with this.
struct Taken {
    count: usize,
    names: *mut *mut c_char,
    values: *mut f64,
}

impl Taken {
    fn rows(&self, start: i64, end: i64, step: u64) -> Result<Fetched, Failure> {
        let broken =
            || Failure::new("the callback for rows gave times, names or values that are none");
        let length = end
            .checked_sub(start)
            .and_then(|length| u64::try_from(length).ok());
        let rows = length
            .and_then(|length| length.checked_div(step))
            .ok_or_else(broken)?;
        let values = usize::try_from(rows)
            .ok()
            .and_then(|rows| rows.checked_mul(self.count));
        let values = values.filter(|values| *values < isize::MAX as usize / size_of::<f64>());
        let values = values.ok_or_else(broken)?;
        if self.names.is_null() || self.values.is_null() {
            return Err(broken());
        }
        // SAFETY: the callback guarantees the number of names and, by the times, that of values.
        let (names, values) = unsafe {
            let names = std::slice::from_raw_parts(self.names, self.count);
            let names = names
                .iter()
                .map(|name| text(*name).unwrap_or_default().to_vec());
            let values = std::slice::from_raw_parts(self.values, values);
            (names.collect(), values.to_vec())
        };
        Ok(Fetched {
            start,
            end,
            step,
            names,
            values,
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: names and values are of `malloc`, and the library's to free, as `rrd_fetch`'s are its
        // caller's.
        unsafe {
            if !self.names.is_null() {
                for place in 0..self.count {
                    libc::free((*self.names.add(place)).cast());
                }
            }
            libc::free(self.names.cast());
            libc::free(self.values.cast());
        }
    }
}
