//! The error message of a thread.

use std::ffi::{CStr, c_char, c_int};

use crate::boundary::copy_text;
use crate::variadic::kymo_librrd_context;

/// `rrd_context_t`.
#[repr(C)]
pub(crate) struct Context {
    /// What `rrd_strerror` gives.
    lib_errstr: [c_char; 256],
    rrd_error: [c_char; 4096],
}

/// The context of this thread.
fn context() -> *mut Context {
    // SAFETY: the function has no conditions. What it gives lives as long as the thread.
    unsafe { kymo_librrd_context() }
}

/// Sets the error message.
pub(crate) fn set_error(message: &str) {
    let context = context();
    // SAFETY: the context is the thread's own and initialised, and no other reference to it exists.
    copy_text(message.as_bytes(), unsafe { &mut (*context).rrd_error });
}

/// The error message; empty if there is none.
pub(crate) fn error() -> String {
    // SAFETY: the context is the thread's own and initialised, and its message ends with a zero.
    let message = unsafe { CStr::from_ptr((&raw const (*context()).rrd_error).cast()) };
    message.to_string_lossy().into_owned()
}

/// `rrd_context_t *rrd_get_context(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrd_get_context() -> *mut Context {
    context()
}

/// `rrd_context_t *rrd_new_context(void)`: a context without messages; `rrd_free_context` frees it.
#[unsafe(no_mangle)]
extern "C" fn rrd_new_context() -> *mut Context {
    // SAFETY: any arguments will do. Zeros are a valid context.
    unsafe { libc::calloc(1, size_of::<Context>()).cast() }
}

/// `void rrd_free_context(rrd_context_t *context)`.
///
/// # Safety
///
/// The context is NULL or of [`rrd_new_context`], and not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_free_context(context: *mut Context) {
    // SAFETY: it is of `calloc`, says the caller.
    unsafe { libc::free(context.cast()) }
}

/// `void rrd_clear_error(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrd_clear_error() {
    set_error("");
}

/// `int rrd_test_error(void)`: whether there is a message.
#[unsafe(no_mangle)]
extern "C" fn rrd_test_error() -> c_int {
    // SAFETY: the context is the thread's own and initialised.
    unsafe { ((*context()).rrd_error[0] != 0).into() }
}

/// `char *rrd_get_error(void)`: the message, empty if there is none.
#[unsafe(no_mangle)]
extern "C" fn rrd_get_error() -> *mut c_char {
    // SAFETY: the context is the thread's own and initialised.
    unsafe { (&raw mut (*context()).rrd_error).cast() }
}

/// `const char *rrd_strerror(int error)`: what the system calls an error.
#[unsafe(no_mangle)]
extern "C" fn rrd_strerror(error: c_int) -> *const c_char {
    let text = std::io::Error::from_raw_os_error(error);
    let context = context();
    // SAFETY: the context is the thread's own and initialised, and no other reference to it exists.
    let buffer = unsafe { &mut (*context).lib_errstr };
    copy_text(kymo_io::reason(&text).as_bytes(), buffer);
    buffer.as_ptr()
}
