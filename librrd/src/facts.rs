//! Lists of keys and values: `rrd_info_t`.

use std::ffi::{c_char, c_int, c_ulong};
use std::io::Write;
use std::ptr::null_mut;

use kymo_rrdtool::Failure;
use kymo_rrdtool::answers::{Fact, FactValue};

use crate::boundary::{allocate, guard, string, text};
use crate::numbers::name_unknown;
use crate::session::Stdout;

/// `rrd_info_t`.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) key: *mut c_char,
    pub(crate) kind: c_int,
    pub(crate) value: InfoValue,
    pub(crate) next: *mut Info,
}

/// `rrd_infoval_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union InfoValue {
    pub(crate) count: c_ulong,
    pub(crate) number: f64,
    pub(crate) text: *mut c_char,
    pub(crate) integer: c_int,
    pub(crate) blob: Blob,
}

/// `rrd_blob_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Blob {
    pub(crate) size: c_ulong,
    pub(crate) bytes: *mut u8,
}

/// `rrd_info_type_t`.
pub(crate) const NUMBER: c_int = 0;
pub(crate) const COUNT: c_int = 1;
pub(crate) const TEXT: c_int = 2;
pub(crate) const INTEGER: c_int = 3;
pub(crate) const BLOB: c_int = 4;

/// A list of facts, which `rrd_info_free` frees; NULL of none.
pub(crate) fn list(facts: &[Fact]) -> *mut Info {
    let mut next = null_mut();
    for fact in facts.iter().rev() {
        next = node(fact, next);
    }
    next
}

/// Puts facts behind the last one of a list.
///
/// # Safety
///
/// The list is one of facts, and no other code uses its end.
pub(crate) unsafe fn append(to: *mut Info, facts: &[Fact]) {
    let mut last = to;
    // SAFETY: each node is one or the last, says the caller.
    unsafe {
        while !(*last).next.is_null() {
            last = (*last).next;
        }
        (*last).next = list(facts);
    }
}

fn node(fact: &Fact, next: *mut Info) -> *mut Info {
    let (kind, value) = match &fact.value {
        FactValue::Number(number) => {
            let mut number = *number;
            name_unknown(std::slice::from_mut(&mut number));
            (NUMBER, InfoValue { number })
        }
        FactValue::Count(count) => {
            let count = *count as c_ulong;
            (COUNT, InfoValue { count })
        }
        FactValue::Text(text) => (TEXT, InfoValue { text: string(text) }),
        FactValue::Integer(integer) => (INTEGER, InfoValue { integer: *integer }),
        FactValue::Blob(bytes) => (BLOB, InfoValue { blob: blob(bytes) }),
    };
    let node: *mut Info = allocate(size_of::<Info>()).cast();
    let key = string(fact.key.as_bytes());
    // SAFETY: there is room for it, aligned as all memory of `malloc`.
    unsafe {
        node.write(Info {
            key,
            kind,
            value,
            next,
        });
    }
    node
}

fn blob(from: &[u8]) -> Blob {
    let bytes = allocate(from.len());
    // SAFETY: there is room for all of them.
    unsafe { bytes.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    Blob {
        size: from.len() as c_ulong,
        bytes,
    }
}

/// The fact of a node.
///
/// # Safety
///
/// The node has the value that its type says.
unsafe fn fact(node: &Info) -> Fact {
    // SAFETY: of each, the value is the one of the type, says the caller.
    let (key, value) = unsafe {
        let value = match node.kind {
            NUMBER => FactValue::Number(node.value.number),
            COUNT => FactValue::Count(node.value.count as u64),
            TEXT => FactValue::text(text(node.value.text).unwrap_or_default()),
            INTEGER => FactValue::Integer(node.value.integer),
            _ => FactValue::Blob(blob_bytes(node).to_vec()),
        };
        (text(node.key).unwrap_or_default(), value)
    };
    Fact::new(String::from_utf8_lossy(key), value)
}

/// The bytes of a blob.
///
/// # Safety
///
/// The node is a blob.
pub(crate) unsafe fn blob_bytes(node: &Info) -> &[u8] {
    // SAFETY: the caller guarantees that it is a blob, which has `size` bytes.
    unsafe {
        let blob = node.value.blob;
        match blob.bytes.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(blob.bytes, blob.size as usize),
        }
    }
}

/// `rrd_info_t *rrd_info_push(rrd_info_t *last, char *key, rrd_info_type_t type, rrd_infoval_t value)`: puts
/// a fact behind the last one. The key becomes the list's; texts and blobs are copied.
///
/// # Safety
///
/// `last` is NULL or a fact without one behind it; the key is of `malloc`, and the value of the type.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_info_push(
    last: *mut Info,
    key: *mut c_char,
    kind: c_int,
    value: InfoValue,
) -> *mut Info {
    guard(null_mut(), || {
        let given = Info {
            key: null_mut(),
            kind,
            value,
            next: null_mut(),
        };
        // SAFETY: the value is of the type, says the caller.
        let copied = unsafe { fact(&given) };
        let new = node(&copied, null_mut());
        // SAFETY: the node is new and not shared; the caller guarantees that `last` is a fact.
        unsafe {
            libc::free((*new).key.cast());
            (*new).key = key;
            if !last.is_null() {
                (*last).next = new;
            }
        }
        Ok(new)
    })
}

/// `void rrd_info_print(rrd_info_t *facts)`: prints facts, a line each.
///
/// # Safety
///
/// The list is NULL or one of facts.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_info_print(mut facts: *const Info) {
    guard((), || {
        let mut out = kymo_text::Line::new();
        // SAFETY: each node is a fact or the last, says the caller.
        while let Some(node) = unsafe { facts.as_ref() } {
            // SAFETY: as above.
            unsafe { fact(node) }.print(&mut out);
            facts = node.next;
        }
        Stdout.write_all(out.as_bytes()).map_err(Failure::Output)
    });
}

/// `void rrd_info_free(rrd_info_t *facts)`.
///
/// # Safety
///
/// The list is NULL or one of facts of this library, and not used again.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rrd_info_free(mut facts: *mut Info) {
    while !facts.is_null() {
        // SAFETY: each node is a fact of `malloc`, as are its key and its value, says the caller.
        unsafe {
            let node = facts.read();
            match node.kind {
                TEXT => libc::free(node.value.text.cast()),
                BLOB => libc::free(node.value.blob.bytes.cast()),
                _ => {}
            }
            libc::free(node.key.cast());
            libc::free(facts.cast());
            facts = node.next;
        }
    }
}
