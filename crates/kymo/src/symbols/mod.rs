//! Names for addresses: recordings whose events have functions, files and lines beside their instruction pointers.
//!
//! [`symbolize`] looks once at the events of a trace that say which files a process has mapped
//! (`processes`), and makes a [`SymbolizedTrace`]: the same recording, whose events have more fields. So filters,
//! all output formats and all analyses know them, in any thread and in any order. `names` turns an address
//! into text, with caches; [`kymo_symbols`] reads the files.

mod names;
mod processes;
mod recording;
mod visit;

use std::path::PathBuf;
use std::sync::Arc;

pub use kymo_symbols::{KernelSymbols, KernelSymbolsError, SearchPaths};

use self::names::Names;
pub use self::recording::{SymbolizedCursor, SymbolizedEvent, SymbolizedTrace};
use crate::AnyRecording;

/// How addresses are named.
#[derive(Debug, Default)]
pub struct SymbolOptions {
    /// Where programs, libraries and their debug information are.
    pub search: SearchPaths,
    /// Whether whole paths are shown, of files with code and of source files.
    pub full_path: bool,
    /// Name of the field that events get; `debug_info` if it is empty.
    pub field_name: String,
    /// The symbols of the kernel that was traced.
    pub kernel: Option<KernelSymbols>,
    /// Whether addresses are grouped: other fields that hold some stand for the name of the function, too,
    /// where they are [asked for by name](kymo_model::Recording::symbol_field).
    pub are_grouped: bool,
}

/// What could not be named, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolProblem {
    /// A file that was mapped cannot be used.
    File {
        /// Its path on the traced system.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No recording has what is needed.
    NoAddresses,
    /// A trace has addresses of processes, but does not say what they had mapped.
    NoStateDump {
        /// The trace.
        path: PathBuf,
    },
    /// Too many files were mapped; those that were mapped later have no names.
    TooManyMappings {
        /// The trace.
        path: PathBuf,
    },
}

/// Gives the events of recordings fields with names, where they have addresses; and what keeps others from having some.
pub fn symbolize(
    recordings: Vec<AnyRecording>,
    options: SymbolOptions,
) -> (Vec<AnyRecording>, Vec<SymbolProblem>) {
    let mut problems = Vec::new();
    let names = Arc::new(Names::new(options));
    let mut has_addresses = false;
    let recordings: Vec<AnyRecording> = recordings
        .into_iter()
        .map(|recording| match recording {
            AnyRecording::Ctf(trace) => {
                let trace = SymbolizedTrace::new(trace, &names);
                has_addresses |= trace.has_addresses();
                problems.extend(trace.problem());
                AnyRecording::Symbolized(trace)
            }
            other => other,
        })
        .collect();
    problems.extend(names.problems());
    if !has_addresses {
        problems.push(SymbolProblem::NoAddresses);
    }
    (recordings, problems)
}
