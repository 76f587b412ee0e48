//! Whether this is still the process that it was: a fork makes another one with the same memory.
//!
//! # Why it is sound
//!
//! `pthread_atfork` is given a function that the system calls in each child before anything else runs there. Of the
//! threads there were, only the one that forked lives on in a child, and locks may be held by those that do not: the
//! function adds to an atomic number, which needs neither locks nor memory. It is a plain function of the program, which
//! lives as long as the program does, and nothing is given to it.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use nix::libc;

/// How many forks lie between this process and the one in which this began to be counted.
static FORKS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn forked() {
    FORKS.fetch_add(1, Relaxed);
}

/// How many forks have led to this process, counted from now on.
pub(crate) fn watch() -> usize {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: the function does only what a child may do, and is never unloaded. Memory for it may be lacking at
        // worst: then forks are not seen, as before.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    count()
}

/// How many forks have led to this process.
#[inline]
pub(crate) fn count() -> usize {
    FORKS.load(Relaxed)
}
