//! Functions, files and lines of addresses.
//!
//! A [`Binary`] is an ELF file with its debug information: DWARF in the file itself, or in the separate file
//! that [`SearchPaths`] find by build ID or debug link. [`Binary::find`] gives the [`Location`] of an address.
//! [`KernelSymbols`] are those of a running Linux kernel, read from a copy of `/proc/kallsyms`.
//!
//! Files are not trusted. What the reading of debug information may cost is limited by the size of the file
//! (`reader`): DWARF can refer to the same bytes very often. Names have at most [`MOST_NAME`] bytes.
//!
//! This crate knows nothing of traces: which file was mapped where in a process, its callers know.

mod binary;
mod demangle;
mod dwarf;
mod elf;
mod kernel;
mod reader;
mod search;

pub use binary::{Binary, Function, Location, OpenError, Source};
pub use demangle::{MOST_NAME, demangled};
pub use elf::DebugLink;
pub use kernel::{KernelSymbols, KernelSymbolsError};
pub use search::{Identity, SearchPaths};
