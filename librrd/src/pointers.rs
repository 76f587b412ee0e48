//! Lists of pointers that grow, and memory.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::boundary::{string, text};

/// `void rrd_freemem(void *memory)`.
///
/// # Safety
///
/// The memory is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_freemem(memory: *mut c_void) {
    // SAFETY: it is of `malloc`, says the caller.
    unsafe { libc::free(memory) };
}

/// `int rrd_add_ptr_chunk(void ***list, size_t *length, void *pointer, size_t *room, size_t chunk)`: puts a
/// pointer behind the others, with room for `chunk` more if there is none; 1, or 0 if memory is full.
///
/// # Safety
///
/// The list is NULL or of `malloc`, with `length` pointers and room for `room`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_add_ptr_chunk(
    list: *mut *mut *mut c_void,
    length: *mut usize,
    pointer: *mut c_void,
    room: *mut usize,
    chunk: usize,
) -> c_int {
    if list.is_null() || length.is_null() || room.is_null() {
        return 0;
    }
    // SAFETY: the caller guarantees a list of `length` pointers with room for `room`.
    unsafe {
        if *length >= *room {
            let more = (*room).checked_add(chunk.max(1));
            let Some(bytes) = more.and_then(|more| more.checked_mul(size_of::<*mut c_void>()))
            else {
                return 0;
            };
            let grown: *mut *mut c_void = libc::realloc((*list).cast(), bytes).cast();
            if grown.is_null() {
                return 0;
            }
            *list = grown;
            *room += chunk.max(1);
        }
        (*list).add(*length).write(pointer);
        *length += 1;
    }
    1
}

/// `int rrd_add_ptr(void ***list, size_t *length, void *pointer)`.
///
/// # Safety
///
/// The list is NULL or of `malloc`, with `length` pointers.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_add_ptr(
    list: *mut *mut *mut c_void,
    length: *mut usize,
    pointer: *mut c_void,
) -> c_int {
    if length.is_null() {
        return 0;
    }
    // SAFETY: the caller's; there is room for no more than there are.
    unsafe {
        let mut room = *length;
        rrd_add_ptr_chunk(list, length, pointer, &mut room, 1)
    }
}

/// `int rrd_add_strdup_chunk(char ***list, size_t *length, char *string, size_t *room, size_t chunk)`: puts a
/// copy of a string behind the others.
///
/// # Safety
///
/// As [`rrd_add_ptr_chunk`]; the string is NULL or ends with zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_add_strdup_chunk(
    list: *mut *mut *mut c_char,
    length: *mut usize,
    added: *const c_char,
    room: *mut usize,
    chunk: usize,
) -> c_int {
    // SAFETY: the caller's.
    let Some(text) = (unsafe { text(added) }) else {
        return 0;
    };
    let copy = string(text);
    // SAFETY: the caller's. A copy that was not added has no other owner.
    unsafe {
        let added = rrd_add_ptr_chunk(list.cast(), length, copy.cast(), room, chunk);
        if added == 0 {
            libc::free(copy.cast());
        }
        added
    }
}

/// `int rrd_add_strdup(char ***list, size_t *length, char *string)`.
///
/// # Safety
///
/// As [`rrd_add_ptr`]; the string is NULL or ends with zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_add_strdup(
    list: *mut *mut *mut c_char,
    length: *mut usize,
    added: *const c_char,
) -> c_int {
    if length.is_null() {
        return 0;
    }
    // SAFETY: the caller's; there is room for no more than there are.
    unsafe {
        let mut room = *length;
        rrd_add_strdup_chunk(list, length, added, &mut room, 1)
    }
}

/// `void rrd_free_ptrs(void ***list, size_t *length)`: frees the pointers and the list, which is empty then.
///
/// # Safety
///
/// The list is NULL or of `malloc`, as are its `length` pointers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rrd_free_ptrs(list: *mut *mut *mut c_void, length: *mut usize) {
    // SAFETY: the caller's.
    let (Some(list), Some(length)) = (unsafe { (list.as_mut(), length.as_mut()) }) else {
        return;
    };
    // SAFETY: the caller guarantees that there are `length` pointers, all of `malloc`.
    unsafe {
        if !list.is_null() {
            for place in 0..*length {
                libc::free(*list.add(place));
            }
        }
        libc::free((*list).cast());
    }
    *list = null_mut();
    *length = 0;
}
