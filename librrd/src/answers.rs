//! Results as C has them.

use std::ffi::{c_char, c_ulong};

use kymo_rrdtool::answers::{Fetched, LastUpdate};

use crate::boundary::{give, numbers, strings};

/// Where a caller wants rows.
#[derive(Clone, Copy)]
pub(crate) struct RowsTo {
    pub(crate) start: *mut libc::time_t,
    pub(crate) end: *mut libc::time_t,
    pub(crate) step: *mut c_ulong,
    pub(crate) count: *mut c_ulong,
    pub(crate) names: *mut *mut *mut c_char,
    pub(crate) values: *mut *mut f64,
}

impl RowsTo {
    /// Gives rows to the caller, who frees names and values.
    ///
    /// # Safety
    ///
    /// Each pointer is NULL or may be written to.
    pub(crate) unsafe fn give(self, fetched: &Fetched) {
        // SAFETY: they may be written to, says the caller.
        unsafe {
            give(self.start, fetched.start as libc::time_t);
            give(self.end, fetched.end as libc::time_t);
            give(self.step, fetched.step as c_ulong);
            give(self.count, fetched.names.len() as c_ulong);
            if !self.names.is_null() {
                self.names.write(strings(fetched.names.iter()));
            }
            if !self.values.is_null() {
                self.values
                    .write(numbers(&fetched.values, fetched.names.len()));
            }
        }
    }
}

/// Where a caller wants the last update.
pub(crate) struct LastUpdateTo {
    pub(crate) time: *mut libc::time_t,
    pub(crate) count: *mut c_ulong,
    pub(crate) names: *mut *mut *mut c_char,
    pub(crate) readings: *mut *mut *mut c_char,
}

impl LastUpdateTo {
    /// Gives the last update to the caller, who frees the lists.
    ///
    /// # Safety
    ///
    /// Each pointer is NULL or may be written to.
    pub(crate) unsafe fn give(self, last: &LastUpdate) {
        let readings = last.readings.iter();
        // SAFETY: they may be written to, says the caller.
        unsafe {
            give(self.time, last.time as libc::time_t);
            give(self.count, last.readings.len() as c_ulong);
            if !self.names.is_null() {
                self.names
                    .write(strings(readings.clone().map(|(name, _)| name)));
            }
            if !self.readings.is_null() {
                self.readings
                    .write(strings(readings.map(|(_, reading)| reading)));
            }
        }
    }
}
