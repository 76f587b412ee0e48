//! Which files are converted, and where to.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use kymo_io::{EntryKind, is_beside, list};

use super::tell;
use crate::args::rrd::Convert;
use crate::terminal::{Failure, Terminal};

/// A file that may be converted.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) input: PathBuf,
    pub(super) output: PathBuf,
    /// Its size.
    pub(super) bytes: u64,
    /// Whether it was named, and not found in a directory: then it must be a database.
    pub(super) is_named: bool,
}

/// All that is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) jobs: Vec<Job>,
    /// What could not be looked at, which was told.
    pub(super) failed: usize,
}

impl Plan {
    /// Looks for the files.
    ///
    /// # Errors
    ///
    /// That files would get in each other's way, or their own.
    pub(super) fn new(args: &Convert, terminal: &Terminal) -> Result<Self, Failure> {
        let mut search = Search {
            args,
            terminal,
            plan: Self::default(),
            directories: HashSet::new(),
            files: HashSet::new(),
        };
        // What was written there before is no input.
        let written = args.output_dir.as_deref().and_then(real);
        search.directories.extend(written.clone());
        for input in &args.inputs {
            if written.is_some() && real(input) == written {
                return Err(Failure::Usage(format!(
                    "error: `{}` is both input and output; --in-place replaces inputs",
                    input.display()
                )));
            }
            search.input(input)?;
        }
        let plan = search.plan;
        if !args.in_place {
            plan.check_outputs()?;
        }
        Ok(plan)
    }

    fn check_outputs(&self) -> Result<(), Failure> {
        let inputs: HashSet<PathBuf> = self
            .jobs
            .iter()
            .filter_map(|job| real(&job.input))
            .collect();
        let mut outputs: HashMap<&Path, &Path> = HashMap::new();
        for Job { input, output, .. } in &self.jobs {
            if let Some(other) = outputs.insert(output, input) {
                return Err(Failure::Usage(format!(
                    "error: `{}` and `{}` would both be written to `{}`",
                    other.display(),
                    input.display(),
                    output.display()
                )));
            }
            if real(output).is_some_and(|output| inputs.contains(&output)) {
                return Err(Failure::Usage(format!(
                    "error: `{}` is an input and would be overwritten; --in-place replaces inputs",
                    output.display()
                )));
            }
        }
        Ok(())
    }
}

struct Search<'a> {
    args: &'a Convert,
    terminal: &'a Terminal,
    plan: Plan,
    /// Directories that were looked into, by their real paths: links may lead there again.
    directories: HashSet<PathBuf>,
    /// Files that are replaced, by their real paths.
    files: HashSet<PathBuf>,
}

impl Search<'_> {
    fn input(&mut self, input: &Path) -> Result<(), Failure> {
        let metadata = match std::fs::metadata(input) {
            Ok(metadata) => metadata,
            Err(error) => {
                tell(input, error, self.terminal);
                self.plan.failed += 1;
                return Ok(());
            }
        };
        if self.args.output.is_some() && (metadata.is_dir() || self.args.inputs.len() > 1) {
            let message = "error: --output is for one file; --output-dir takes several";
            return Err(Failure::Usage(message.to_owned()));
        }
        if metadata.is_dir() {
            self.directory(input);
        } else {
            let name = Path::new(input.file_name().unwrap_or(input.as_os_str()));
            self.file(input, name, metadata.len(), true);
        }
        Ok(())
    }

    /// Looks for files in a directory and all below it, in the order of names.
    fn directory(&mut self, root: &Path) {
        let mut ahead = vec![root.to_path_buf()];
        while let Some(directory) = ahead.pop() {
            if !self
                .directories
                .insert(real(&directory).unwrap_or_else(|| directory.clone()))
            {
                continue;
            }
            let entries = match list(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    tell(&directory, error, self.terminal);
                    self.plan.failed += 1;
                    continue;
                }
            };
            let mut below = Vec::new();
            for entry in entries {
                match entry.kind {
                    EntryKind::Directory => below.push(entry.path),
                    // What another run writes, or one that was killed has left, is no input.
                    EntryKind::File if is_beside(&entry.name) => {}
                    EntryKind::File => {
                        let place = entry.path.strip_prefix(root).unwrap_or(&entry.path);
                        let bytes = std::fs::metadata(&entry.path).map_or(0, |file| file.len());
                        self.file(&entry.path, place, bytes, false);
                    }
                    EntryKind::Other => {}
                }
            }
            ahead.extend(below.into_iter().rev());
        }
    }

    /// Adds a file; `place` is where it is below the input that it was found with.
    fn file(&mut self, input: &Path, place: &Path, bytes: u64, is_named: bool) {
        let output = match (&self.args.output, &self.args.output_dir) {
            (Some(output), _) => output.clone(),
            (None, Some(directory)) => directory.join(place),
            (None, None) => {
                let real = real(input).unwrap_or_else(|| input.to_path_buf());
                if !self.files.insert(real) {
                    return;
                }
                input.to_path_buf()
            }
        };
        self.plan.jobs.push(Job {
            input: input.to_path_buf(),
            output,
            bytes,
            is_named,
        });
    }
}

/// The path without links, of what exists.
fn real(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}
