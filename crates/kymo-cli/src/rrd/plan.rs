//! Which files are converted, and where to.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use kymo_io::{file_id, other_names, without_compression};

use super::files::{Searched, is_called_database, real};
use super::report;
use crate::args::rrd::Convert;
use crate::terminal::{Failure, Terminal};

/// A file that may be converted.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) input: PathBuf,
    pub(super) output: PathBuf,
    /// Its size.
    pub(super) bytes: u64,
    /// Whether it must be a database: it was named, and not found in a directory, or has the name of one.
    pub(super) is_meant: bool,
    /// If the input has several names.
    pub(super) names: Option<Names>,
}

/// Hard links: the names of one file.
#[derive(Debug)]
pub(super) struct Names {
    /// What distinguishes the file from others.
    pub(super) id: (u64, u64),
    /// The first job of this file, unless it is this one.
    pub(super) first: Option<usize>,
    /// The number of names that no job has.
    pub(super) outside: u64,
}

impl Job {
    /// The job that converts the file, if this one only gives the new file another name.
    pub(super) fn first(&self) -> Option<usize> {
        self.names.as_ref()?.first
    }
}

/// All that is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) jobs: Vec<Job>,
    /// How many inputs could not be looked at, which was reported.
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
            directories: Searched::default(),
            files: HashSet::new(),
        };
        // Earlier output in that directory is not an input.
        let written = args.output_dir.as_deref().and_then(real);
        if let Some(written) = &written {
            search.directories.pass_over(written.clone());
        }
        for input in &args.inputs {
            if written.is_some() && real(input) == written {
                return Err(Failure::Usage(format!(
                    "error: `{}` is both input and output\nhint: `--in-place` replaces the inputs",
                    input.display()
                )));
            }
            search.input(input)?;
        }
        let mut plan = search.plan;
        plan.find_links();
        if !args.in_place {
            plan.check_outputs()?;
        }
        Ok(plan)
    }

    /// Finds the jobs whose inputs are the same file.
    fn find_links(&mut self) {
        let mut firsts: HashMap<(u64, u64), usize> = HashMap::new();
        for number in 0..self.jobs.len() {
            let Some(names) = &mut self.jobs[number].names else {
                continue;
            };
            if let Some(&first) = firsts.get(&names.id) {
                names.first = Some(first);
                if let Some(names) = &mut self.jobs[first].names {
                    names.outside = names.outside.saturating_sub(1);
                }
            } else {
                firsts.insert(names.id, number);
            }
        }
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
                    "error: `{}` and `{}` would both be written to `{}`\nhint: convert them one after the other, to different places",
                    other.display(),
                    input.display(),
                    output.display()
                )));
            }
            if real(output).is_some_and(|output| inputs.contains(&output)) {
                return Err(Failure::Usage(format!(
                    "error: `{}` is an input and would be overwritten\nhint: `--in-place` replaces the inputs",
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
    directories: Searched,
    /// Files that are replaced, by their real paths.
    files: HashSet<PathBuf>,
}

impl Search<'_> {
    fn input(&mut self, input: &Path) -> Result<(), Failure> {
        let metadata = match std::fs::metadata(input) {
            Ok(metadata) => metadata,
            Err(error) => {
                report(input, error, self.terminal);
                self.plan.failed += 1;
                return Ok(());
            }
        };
        if self.args.output.is_some() && (metadata.is_dir() || self.args.inputs.len() > 1) {
            let message = "error: `--output` is for one file\nhint: `--output-dir` takes several";
            return Err(Failure::Usage(message.to_owned()));
        }
        if metadata.is_dir() {
            self.directory(input);
        } else {
            let name = Path::new(input.file_name().unwrap_or(input.as_os_str()));
            self.file(input, name, Some(&metadata), true);
        }
        Ok(())
    }

    /// Adds the files in a directory and all below it.
    fn directory(&mut self, root: &Path) {
        let (files, failed) = self.directories.files(root, self.terminal);
        self.plan.failed += failed;
        for file in files {
            let place = file.strip_prefix(root).unwrap_or(&file);
            self.file(&file, place, std::fs::metadata(&file).ok().as_ref(), false);
        }
    }

    /// Adds a file; `place` is where it is below the input that it was found with.
    fn file(&mut self, input: &Path, place: &Path, metadata: Option<&Metadata>, is_named: bool) {
        let output = match (&self.args.output, &self.args.output_dir) {
            (Some(output), _) => output.clone(),
            (None, Some(directory)) if is_named => directory.join(without_compression(place)),
            (None, Some(directory)) => directory.join(place),
            (None, None) => {
                let real = real(input).unwrap_or_else(|| input.to_path_buf());
                if !self.files.insert(real) {
                    return;
                }
                input.to_path_buf()
            }
        };
        // A symbolic link does not count as a name of its target, except if the target is replaced in place.
        let is_name = self.args.in_place || !input.is_symlink();
        let names = metadata.and_then(|there| {
            let outside = other_names(there);
            let id = file_id(there).filter(|_| outside > 0 && is_name)?;
            Some(Names {
                id,
                first: None,
                outside,
            })
        });
        self.plan.jobs.push(Job {
            input: input.to_path_buf(),
            output,
            bytes: metadata.map_or(0, Metadata::len),
            is_meant: is_named || is_called_database(input),
            names,
        });
    }
}
