//! Strings, lists and memory of C; failures and panics as error messages.

use std::any::Any;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use kymo_rrdtool::Failure;

use crate::context::set_error;

/// Works for a caller in C: a failure or a panic becomes the thread's error message, and the result
/// `failed`.
pub(crate) fn guard<T>(failed: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    // What was worked on is given up: nothing that outlives the call is left half done.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => done,
        Ok(Err(failure)) => {
            set_error(&failure.to_string());
            failed
        }
        Err(panic) => {
            set_error(&format!("internal error: {}", panic_text(&*panic)));
            // Dropping it may panic again.
            std::mem::forget(panic);
            failed
        }
    }
}

/// Works for a caller who gets a status: 0 or -1.
pub(crate) fn status(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guard(-1, || work().map(|()| 0))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("unknown")
}

/// The bytes of a string; `None` if it is NULL.
///
/// # Safety
///
/// The pointer is NULL or that of a string, which stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(string: *const c_char) -> Option<&'a [u8]> {
    if string.is_null() {
        return None;
    }
    // SAFETY: it is a string, says the caller.
    Some(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// The bytes of a string that must be there.
///
/// # Safety
///
/// That of [`text`].
pub(crate) unsafe fn needed<'a>(string: *const c_char, what: &str) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's.
    unsafe { text(string) }.ok_or_else(|| Failure::new(format!("{what} is missing")))
}

/// The words of a command line of `argc` words, without the first, up to one that is NULL.
///
/// # Safety
///
/// `argv` is NULL or has `argc` pointers, each NULL or that of a string, which stay for `'a`.
pub(crate) unsafe fn words<'a>(argc: c_int, argv: *const *const c_char) -> Vec<&'a [u8]> {
    // SAFETY: the caller's.
    let all = unsafe { list(argc, argv) };
    all.into_iter().skip(1).collect()
}

/// The strings of a list of `count` strings, up to one that is NULL.
///
/// # Safety
///
/// That of [`words`].
pub(crate) unsafe fn list<'a>(count: c_int, strings: *const *const c_char) -> Vec<&'a [u8]> {
    let count = usize::try_from(count).unwrap_or(0);
    if strings.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller guarantees that there are `count` pointers.
    let strings = unsafe { std::slice::from_raw_parts(strings, count) };
    let texts = strings.iter().map_while(|string| {
        // SAFETY: NULL or a string, says the caller.
        unsafe { text(*string) }
    });
    texts.collect()
}

/// The strings of a list that ends with NULL; none if the list is NULL.
///
/// # Safety
///
/// `strings` is NULL or has pointers to strings and then NULL, which stay for `'a`.
pub(crate) unsafe fn ended_list<'a>(mut strings: *const *const c_char) -> Vec<&'a [u8]> {
    let mut texts = Vec::new();
    if strings.is_null() {
        return texts;
    }
    // SAFETY: there is a pointer before or at the end of the list, says the caller.
    while let Some(text) = unsafe { text(*strings) } {
        texts.push(text);
        // SAFETY: the list goes on: this one was not its end.
        strings = unsafe { strings.add(1) };
    }
    texts
}

/// A copy of a text as a string of `malloc`. It ends where the text has a zero.
pub(crate) fn string(text: &[u8]) -> *mut c_char {
    let end = text.iter().position(|byte| *byte == 0);
    let text = &text[..end.unwrap_or(text.len())];
    let copy: *mut c_char = allocate(text.len() + 1).cast();
    // SAFETY: there is room for the text and a zero, which is there already.
    unsafe { copy.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    copy
}

/// A list of strings of `malloc`, and NULL behind them.
pub(crate) fn strings<T: AsRef<[u8]>>(texts: impl ExactSizeIterator<Item = T>) -> *mut *mut c_char {
    let list: *mut *mut c_char = allocate((texts.len() + 1) * size_of::<*mut c_char>()).cast();
    for (place, text) in texts.enumerate() {
        // SAFETY: the list has room for each, and is aligned as all memory of `malloc`.
        unsafe { list.add(place).write(string(text.as_ref())) };
    }
    list
}

/// A copy of numbers in memory of `malloc`, followed by a row of `columns` zeros: ruby-rrd reads one
/// row too many.
pub(crate) fn numbers(numbers: &[f64], columns: usize) -> *mut f64 {
    let row = columns.saturating_mul(size_of::<f64>());
    let copy: *mut f64 = allocate(size_of_val(numbers).saturating_add(row)).cast();
    // SAFETY: there is room for them, aligned as all memory of `malloc`.
    unsafe { copy.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
    copy
}

/// Memory of `malloc`, filled with zeros, and at least one byte.
pub(crate) fn allocate(bytes: usize) -> *mut u8 {
    // SAFETY: any size will do.
    let memory: *mut u8 = unsafe { libc::calloc(1, bytes.max(1)).cast() };
    if memory.is_null() {
        let layout = std::alloc::Layout::array::<u8>(bytes);
        std::alloc::handle_alloc_error(layout.unwrap_or(std::alloc::Layout::new::<u8>()));
    }
    memory
}

/// Copies a text as a string into a buffer, as far as there is room.
pub(crate) fn copy_text(text: &[u8], buffer: &mut [c_char]) {
    let text = text.iter().copied().take_while(|byte| *byte != 0);
    let room = buffer.len().saturating_sub(1);
    let mut length = 0;
    for (to, byte) in buffer.iter_mut().take(room).zip(text) {
        *to = byte as c_char;
        length += 1;
    }
    if let Some(end) = buffer.get_mut(length) {
        *end = 0;
    }
}

/// Writes a result where the caller wants it.
///
/// # Safety
///
/// The pointer is NULL or may be written to.
pub(crate) unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: it may be written to, says the caller.
        unsafe { to.write(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_messages() {
        assert_eq!(guard(7, || panic!("no {}", 5)), 7);
        assert_eq!(status(|| Err(Failure::new("why"))), -1);
        assert_eq!(status(|| Ok(())), 0);
    }

    #[test]
    fn texts_are_cut_to_buffers() {
        let mut buffer = [7 as c_char; 4];
        copy_text(b"abcdef", &mut buffer);
        assert_eq!(buffer.map(|byte| byte as u8), *b"abc\0");
        copy_text(b"a\0b", &mut buffer);
        assert_eq!(&buffer.map(|byte| byte as u8)[..2], b"a\0");
        copy_text(b"a", &mut []);
    }

    #[test]
    fn lists_end_at_null() {
        let list = strings([b"a".as_slice(), b"b"].iter());
        // SAFETY: the list is one of strings that ends with NULL.
        let (all, some, none) = unsafe {
            let list = list.cast_const().cast();
            (
                ended_list(list),
                words(5, list),
                ended_list(std::ptr::null()),
            )
        };
        assert_eq!(all, [b"a", b"b"]);
        assert_eq!(some, [b"b"]);
        assert!(none.is_empty());
        let mut count = 2;
        // SAFETY: both are of `malloc`.
        unsafe { crate::pointers::rrd_free_ptrs((&raw const list).cast_mut().cast(), &mut count) };
    }
}
