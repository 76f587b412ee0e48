//! The functions of `variadic.c`. C's symbols of a Rust library are not exported, so each function that is
//! jumps to the one in C, and leaves its arguments where they are.

use core::arch::naked_asm;

use crate::context::Context;

unsafe extern "C" {
    pub(crate) fn kymo_librrd_context() -> *mut Context;
    fn kymo_librrd_set_error();
    fn kymo_librrd_snprintf();
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
macro_rules! jump {
    ($to:path) => {
        naked_asm!("jmp {}", sym $to)
    };
}
#[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
macro_rules! jump {
    ($to:path) => {
        naked_asm!("b {}", sym $to)
    };
}
#[cfg(any(target_arch = "riscv64", target_arch = "riscv32"))]
macro_rules! jump {
    ($to:path) => {
        naked_asm!("tail {}", sym $to)
    };
}
#[cfg(target_arch = "s390x")]
macro_rules! jump {
    ($to:path) => {
        naked_asm!("jg {}", sym $to)
    };
}

/// `void rrd_set_error(char *format, ...)`: sets the error message of the thread.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn rrd_set_error() {
    // Arguments and stack stay as they are: the function called is the one in C.
    jump!(kymo_librrd_set_error)
}

/// `int rrd_snprintf(char *to, size_t size, const char *format, ...)`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn rrd_snprintf() {
    // As above.
    jump!(kymo_librrd_snprintf)
}
