//! Traces as output: `kymo convert --to ctf1.8`, `kymo repair`, `kymo index`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use kymo::AnyRecording;
use kymo::convert::ctf::{self, CtfError, CtfOptions, Written};
use kymo::filter::{Filter, Query};
use kymo_ctf::class::Dialect;
use kymo_ctf::repair;
use kymo_ctf::secure::{Nonce, Protection};
use kymo_ctf::write::WriteError;
use kymo_io::Replace;
use kymo_model::Recording;

use crate::args::convert::{Convert, To};
use crate::args::ctf::{Index, Repair};
use crate::args::key::KeyFile;
use crate::convert::report_discarded;
use crate::directory::{places, refuse_inputs, refuse_there, whole_directory};
use crate::open::{
    Asked, Inputs, inputs_with, report_opening_faults, threads, total_bytes, whole_inputs,
};
use crate::terminal::{Failure, Outcome, Terminal};

/// The dialect of a target.
pub(crate) fn dialect(to: To) -> Option<Dialect> {
    match to {
        To::Ctf18 => Some(Dialect::Ctf18),
        To::Ctf2 => Some(Dialect::Ctf2),
        To::CtfRfc => Some(Dialect::Rfc11),
        _ => None,
    }
}

/// Writes recordings as traces.
pub(crate) fn convert(
    args: &Convert,
    dialect: Dialect,
    inputs: &Inputs,
    filter: &Filter,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let options = CtfOptions {
        dialect,
        order: args.byte_order.map(Into::into),
        packed: args.packed,
        packet_bytes: args.packet_size,
        protection: protection(args),
        kept_protection: args.keeps_protection.then(|| {
            let keys = args.input.key_file.iter().map(|file| file.key.clone());
            (keys.collect(), kymo_io::random as Nonce)
        }),
        metadata_protection: protection(args).filter(|_| args.encrypt && !args.plain_metadata),
        index: args.index,
        repairs: false,
        threads: threads(&args.work),
        strict: args.work.strict,
    };
    let recordings = &inputs.recordings;
    let parts = match args.separate {
        true => separate(recordings),
        false => vec![(PathBuf::new(), (0..recordings.len()).collect())],
    };
    refuse_inputs(&args.output, recordings)?;
    terminal.show_progress(total_bytes(recordings));
    let outcome = whole_directory(&args.output, args.force, |beside| {
        let mut all = Outcome::Good;
        for (place, which) in &parts {
            let mut options = options.clone();
            if args.keeps_protection {
                let first = which.first().map(|&first| &recordings[first]);
                options.metadata_protection =
                    first.and_then(|first| metadata_protection(first, &args.input.key_file));
            }
            let job = Job {
                recordings,
                filter,
                options: &options,
                terminal,
            };
            if job.part(&beside.join(place), which)? != Outcome::Good {
                all = Outcome::Damage;
            }
        }
        Ok(all)
    });
    terminal.end_progress();
    outcome
}

/// How packets are to be secured; `None` where they are not.
fn protection(args: &Convert) -> Option<(Protection, Nonce)> {
    let is_wanted = args.encrypt || args.compress.is_some() || args.checksum.is_some();
    is_wanted.then(|| {
        let protection = Protection {
            compression: args.compress.map(Into::into).unwrap_or_default(),
            key: args
                .input
                .key_file
                .first()
                .filter(|_| args.encrypt)
                .map(|file| file.key.clone()),
            checksum: args.checksum.map(Into::into).unwrap_or_default(),
        };
        (protection, kymo_io::random as Nonce)
    })
}

/// Metadata that was encrypted stays so.
fn metadata_protection(recording: &AnyRecording, keys: &[KeyFile]) -> Option<(Protection, Nonce)> {
    let is_encrypted = recording.as_ctf()?.metadata().is_encrypted;
    let key = keys.first().filter(|_| is_encrypted)?;
    let protection = Protection {
        key: Some(key.key.clone()),
        ..Protection::default()
    };
    Some((protection, kymo_io::random as Nonce))
}

/// Writes what can be saved of traces.
pub(crate) fn repair(args: &Repair, terminal: &Terminal) -> Result<Outcome, Failure> {
    let asked = Asked {
        strict: false,
        indexes: true,
        cut_metadata: true,
        sorted: true,
        ..Asked::default()
    };
    let inputs = inputs_with(&args.input, asked, terminal)?;
    if let Some(other) = inputs
        .recordings
        .iter()
        .find(|recording| recording.as_ctf().is_none())
    {
        return Err(Failure::Usage(format!(
            "error: `{}` is {}, and this command repairs CTF traces\nhint: `kymo rrd repair` repairs databases",
            other.path().display(),
            other.what()
        )));
    }
    let filter = Filter::new(&Query::default(), &[], &inputs.recordings)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    refuse_there(&args.output, args.force)?;
    refuse_inputs(&args.output, &inputs.recordings)?;
    let outcome = report_opening_faults(&inputs, terminal);
    // Each trace stays in its own dialect.
    let dialects = inputs.recordings.iter().map(|recording| {
        recording
            .as_ctf()
            .map_or(Dialect::Ctf18, |trace| trace.class().dialect)
    });
    let dialects: Vec<_> = dialects.collect();
    let parts = match inputs.recordings.len() {
        1 => vec![(PathBuf::new(), vec![0])],
        _ => separate(&inputs.recordings),
    };
    let written = whole_directory(&args.output, args.force, |beside| {
        let mut all = Outcome::Good;
        for (place, which) in &parts {
            let options = CtfOptions {
                dialect: dialects[which[0]],
                order: None,
                packed: false,
                packet_bytes: None,
                protection: None,
                kept_protection: None,
                metadata_protection: metadata_protection(
                    &inputs.recordings[which[0]],
                    &args.input.key_file,
                ),
                index: false,
                repairs: true,
                threads: args.threads.count(),
                strict: false,
            };
            let job = Job {
                recordings: &inputs.recordings,
                filter: &filter,
                options: &options,
                terminal,
            };
            if job.part(&beside.join(place), which)? != Outcome::Good {
                all = Outcome::Damage;
            }
        }
        Ok(all)
    })?;
    terminal.wrote(
        &args.output,
        &format!("`kymo check {}` checks it", args.output.display()),
    );
    match (outcome, written) {
        (Outcome::Good, Outcome::Good) => Ok(Outcome::Good),
        _ => Ok(Outcome::Damage),
    }
}

/// Writes index files beside the stream files of traces.
pub(crate) fn index(args: &Index, terminal: &Terminal) -> Result<Outcome, Failure> {
    if args.summary || args.cache.is_some() || args.no_cache {
        return crate::index::run(args, terminal);
    }
    let inputs = whole_inputs(&args.input, false, terminal)?;
    let mut outcome = report_opening_faults(&inputs, terminal);
    let mut files = BTreeMap::new();
    for recording in &inputs.recordings {
        let Some(trace) = recording.as_ctf() else {
            terminal.error(format_args!(
                "`{}` is {}: only CTF traces have index files",
                recording.path().display(),
                recording.what()
            ));
            terminal.hint("`kymo index --summary` summarises recordings of any format");
            outcome = Outcome::Damage;
            continue;
        };
        if trace.files().iter().any(|file| !file.path.is_file()) {
            terminal.error(format_args!(
                "{}: indexes are not written into archives",
                recording.path().display()
            ));
            terminal.hint("extract the archive first");
            outcome = Outcome::Damage;
            continue;
        }
        if trace.class().dialect == Dialect::Rfc11 {
            terminal.error(format_args!(
                "{}: traces of RFC v1.1 have no indexes",
                recording.path().display()
            ));
            outcome = Outcome::Damage;
            continue;
        }
        let indexes = repair::indexes(trace);
        for path in &indexes.damaged {
            terminal.error(format_args!(
                "{}: it is damaged, so no index is written for it; `kymo repair` saves what is whole",
                path.display()
            ));
            outcome = Outcome::Damage;
        }
        files.extend(indexes.files);
    }
    if !args.force
        && let Some(there) = files.keys().find(|path| path.symlink_metadata().is_ok())
    {
        return Err(Failure::Usage(format!(
            "error: {}: there is an index already\nhint: `--force` overwrites it",
            there.display()
        )));
    }
    // Links in a trace may lead anywhere.
    let how = Replace {
        follow: false,
        ..Replace::NEW
    };
    let directories: BTreeSet<_> = files.keys().filter_map(|path| path.parent()).collect();
    for directory in directories {
        match directory.symlink_metadata() {
            Ok(there) if !there.is_dir() => {
                return Err(Failure::Usage(format!(
                    "error: {}: it is not a directory, and not written to",
                    directory.display()
                )));
            }
            Ok(_) => {}
            Err(_) => std::fs::create_dir(directory)
                .map_err(|error| Failure::at(directory.display(), &error))?,
        }
    }
    for (path, bytes) in files {
        let write = || kymo_io::replace(&path, how, |file| io::Write::write_all(file, &bytes));
        write().map_err(|error: io::Error| Failure::at(path.display(), &error))?;
    }
    Ok(outcome)
}

/// Each recording alone, and its place below the output.
fn separate(recordings: &[AnyRecording]) -> Vec<(PathBuf, Vec<usize>)> {
    let alone = (0..).map(|number| vec![number]);
    places(recordings).into_iter().zip(alone).collect()
}

/// What is written.
struct Job<'a> {
    recordings: &'a [AnyRecording],
    filter: &'a Filter,
    options: &'a CtfOptions,
    terminal: &'a Terminal,
}

impl Job<'_> {
    /// Writes one trace, and reports what it cannot hold.
    fn part(&self, path: &Path, which: &[usize]) -> Result<Outcome, Stop> {
        let advance = |bytes| self.terminal.advance(bytes);
        let Written {
            faults,
            more_faults,
            changes,
            refused,
            mended,
            discarded,
            ..
        } = ctf::write(
            self.recordings,
            which,
            self.filter,
            self.options,
            path,
            &advance,
        )?;
        for fault in &faults {
            self.terminal.fault(fault);
        }
        if more_faults > 0 {
            let more = format_args!("{more_faults} more faults are not listed");
            self.terminal.warning(more);
        }
        if self.options.strict && !faults.is_empty() {
            return Err(Stop::Damage);
        }
        for line in &refused {
            self.terminal.warning(line);
        }
        // Of what is the same in many places, the first ones show what it is.
        const TOLD: usize = 10;
        for change in changes.iter().take(TOLD) {
            self.terminal.warning(change);
        }
        if let Some(more) = changes.len().checked_sub(TOLD).filter(|&more| more > 0) {
            self.terminal
                .warning(format_args!("{more} more changes of this kind"));
        }
        if mended > 0 {
            self.terminal.warning(format_args!(
                "packets whose times or counters contradict their events or the packets around them, \
                 mended: {mended}"
            ));
        }
        if !discarded.is_empty() {
            report_discarded(&discarded, self.terminal);
        }
        let is_lost = self.options.strict && !discarded.is_empty();
        match faults.is_empty() && refused.is_empty() && mended == 0 && !is_lost {
            true => Ok(Outcome::Good),
            false => Ok(Outcome::Damage),
        }
    }
}

/// Why a directory is not written.
pub(crate) enum Stop {
    /// Damage was met, and `--strict` given.
    Damage,
    Failure(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failure(Failure::Output(error))
    }
}

impl From<CtfError> for Stop {
    fn from(error: CtfError) -> Self {
        Self::Failure(match error {
            CtfError::Write(WriteError::Output(error)) => Failure::Output(error),
            error => Failure::Usage(format!("error: {error}")),
        })
    }
}
