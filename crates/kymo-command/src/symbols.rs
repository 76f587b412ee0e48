//! Options for names of addresses, and what is said of those that have none.

use std::path::PathBuf;

use clap::Args;
use kymo::AnyRecording;
use kymo::symbols::{
    KernelSymbols, KernelSymbolsError, SearchPaths, SymbolOptions, SymbolProblem, symbolize,
};

use crate::open::Inputs;
use crate::terminal::{Failure, Terminal};

/// Problems with files that are listed.
const MOST_LISTED: usize = 8;

/// Names for addresses.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Symbols")]
pub struct SymbolArgs {
    /// Add the function, file and line of instruction pointers to events, as babeltrace2 does.
    ///
    /// This needs LTTng user space traces with the contexts `ip` and `vpid` and the events `lttng_ust_statedump:*`
    /// (for libraries that are loaded later `lttng_ust_dl:*`, too). Programs, libraries and their debug information are
    /// read from this machine, or from below --debug-root. Files with another build ID than the traced ones are not used.
    #[arg(long)]
    pub debug_info: bool,

    /// Directory with separate debug information, which has `.build-id/xx/yyy.debug` or the paths of the
    /// traced files; can be given several times [default: /usr/lib/debug below --debug-root].
    ///
    /// Implies --debug-info, as the other options of this group do.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub debug_info_dir: Vec<PathBuf>,

    /// Directory that the root of the traced system is in, such as a mounted image.
    #[arg(
        long,
        visible_alias = "debug-info-target-prefix",
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath
    )]
    pub debug_root: Option<PathBuf>,

    /// Show whole paths of programs, libraries and source files.
    #[arg(long)]
    pub debug_info_full_path: bool,

    /// Name of the field that is added [default: debug_info].
    #[arg(long, value_name = "NAME")]
    pub debug_info_field_name: Option<String>,

    /// A copy of /proc/kallsyms of the traced kernel, for addresses in it and in its modules.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub kallsyms: Option<PathBuf>,
}

impl SymbolArgs {
    /// Whether names are wanted.
    pub fn is_given(&self) -> bool {
        self.debug_info
            || !self.debug_info_dir.is_empty()
            || self.debug_root.is_some()
            || self.debug_info_full_path
            || self.debug_info_field_name.is_some()
            || self.kallsyms.is_some()
    }

    /// Adds names to the events of open recordings. With `are_grouped`, other fields with addresses are grouped
    /// by function.
    ///
    /// # Errors
    ///
    /// The symbols of the kernel cannot be read.
    pub fn apply(
        &self,
        mut inputs: Inputs,
        are_grouped: bool,
        terminal: &Terminal,
    ) -> Result<Inputs, Failure> {
        let (recordings, problems) = self.named(inputs.recordings, are_grouped)?;
        self.report(&problems, terminal);
        inputs.recordings = recordings;
        Ok(inputs)
    }

    /// The same of recordings that were opened again: what has no names was reported before.
    ///
    /// # Errors
    ///
    /// The symbols of the kernel cannot be read.
    pub fn apply_again(
        &self,
        recordings: Vec<AnyRecording>,
        are_grouped: bool,
    ) -> Result<Vec<AnyRecording>, Failure> {
        Ok(self.named(recordings, are_grouped)?.0)
    }

    fn named(
        &self,
        recordings: Vec<AnyRecording>,
        are_grouped: bool,
    ) -> Result<(Vec<AnyRecording>, Vec<SymbolProblem>), Failure> {
        let kernel = self.kallsyms.as_ref().map(|path| {
            KernelSymbols::open(path).map_err(|error| {
                let hint = match error {
                    KernelSymbolsError::NoAddresses => {
                        "\nhint: copy it as root: `sudo cat /proc/kallsyms > FILE`"
                    }
                    _ => "",
                };
                let path = path.display();
                Failure::Usage(format!(
                    "error: cannot read kernel symbols from `{path}`: {error}{hint}"
                ))
            })
        });
        let options = SymbolOptions {
            search: SearchPaths {
                root: self.debug_root.clone(),
                directories: self.debug_info_dir.clone(),
            },
            full_path: self.debug_info_full_path,
            field_name: self.debug_info_field_name.clone().unwrap_or_default(),
            kernel: kernel.transpose()?,
            are_grouped,
        };
        Ok(symbolize(recordings, options))
    }

    fn report(&self, problems: &[SymbolProblem], terminal: &Terminal) {
        let mut files = 0;
        for problem in problems {
            match problem {
                SymbolProblem::File { path, reason } => {
                    files += 1;
                    if files <= MOST_LISTED {
                        let path = path.display();
                        terminal.warning(format_args!("no symbols of `{path}`: {reason}"));
                    }
                }
                SymbolProblem::NoAddresses => {
                    terminal.warning("no event has an address that can be named");
                    terminal
                        .hint("record with `lttng add-context --userspace --type=ip --type=vpid`");
                }
                SymbolProblem::NoStateDump { path } => {
                    let path = path.display();
                    terminal.warning(format_args!(
                        "`{path}` does not say which files its processes had mapped"
                    ));
                    terminal.hint(
                        "record with `lttng enable-event --userspace 'lttng_ust_statedump:*'`",
                    );
                }
                SymbolProblem::TooManyMappings { path } => {
                    let path = path.display();
                    terminal.warning(format_args!(
                        "processes of `{path}` map too many files: later ones have no symbols"
                    ));
                }
            }
        }
        if files > MOST_LISTED {
            let more = files - MOST_LISTED;
            terminal.warning(format_args!("no symbols of {more} more files"));
        }
        if files > 0 && self.debug_root.is_none() {
            terminal.hint("`--debug-root DIR` names the root of the traced system");
        }
    }
}
