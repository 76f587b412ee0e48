//! `kymo cut` of files whose events are pieces of them, and of several event logs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::slice;

use kymo::AnyRecording;
use kymo::convert::Pieces;
use kymo::pipeline::Summary;
use kymo_io::{Access, Bytes, Tree, without_compression};
use kymo_model::Recording;

use super::target::{is_stdout, target};
use super::{Job, Stop};
use crate::args::convert::{Convert, To};
use crate::directory::{places, refuse_there, whole_directory};
use crate::open::whole_inputs;
use crate::outputs::refuse_file;
use crate::terminal::{Failure, Outcome, Terminal};

/// Writes files again with the events that are chosen, where these are [pieces](Pieces) of them: one to a file,
/// several below a directory.
pub(crate) fn cut_pieces(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    refuse_stdout(args)?;
    let inputs = whole_inputs(&args.input, args.work.strict, terminal)?;
    let only = match &inputs.recordings[..] {
        [only] => Some(only),
        _ => None,
    };
    match only {
        Some(_) => refuse_file(&args.output, args.force)?,
        None => refuse_there(&args.output, args.force)?,
    }
    // As any output that is one file.
    let job = Job::new(args, To::Cpel, &inputs, terminal)?;
    if job.is_refused() {
        return Ok(job.outcome);
    }
    let opens_with = format!("`kymo print {}` prints it", args.output.display());
    let mut pieces = Pieces::new(job.wall());
    let Some(only) = only else {
        let done = job.run(&mut pieces, &mut io::sink());
        if done.is_ok() {
            directory(args, &inputs.recordings, &pieces)?;
        }
        return job.ended(done, &opens_with);
    };
    let bytes = content(&args.input.paths, only.path())?;
    let done = job.gather(pieces, |pieces, mut out| {
        pieces.write(0, only, &bytes, &mut out)
    });
    if done.is_ok() {
        keep_time(only, &args.output)?;
    }
    job.ended(done, &opens_with)
}

/// Writes the files of several recordings.
fn directory(
    args: &Convert,
    recordings: &[AnyRecording],
    pieces: &Pieces,
) -> Result<Outcome, Failure> {
    whole_directory(&args.output, args.force, |beside| {
        for (number, (place, recording)) in places(recordings).iter().zip(recordings).enumerate() {
            let path = path_below(beside, place)?;
            let bytes = content(&args.input.paths, recording.path()).map_err(Stop::Failure)?;
            let mut out = BufWriter::with_capacity(1 << 18, File::create(&path)?);
            pieces.write(number, recording, &bytes, &mut out)?;
            out.flush()?;
            keep_time(recording, &path)?;
        }
        Ok(Outcome::Good)
    })
}

/// Writes several event logs again with the events that are chosen, each to a file below a directory.
pub(crate) fn cut_logs(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    refuse_stdout(args)?;
    refuse_there(&args.output, args.force)?;
    let to = target(args)?;
    let inputs = whole_inputs(&args.input, args.work.strict, terminal)?;
    let mut job = Job::new(args, to, &inputs, terminal)?;
    if job.is_refused() {
        return Ok(job.outcome);
    }
    let filters = std::mem::take(&mut job.filter).split();
    let mut sum = Summary::default();
    let whole = whole_directory(&args.output, args.force, |beside| {
        let logs = places(job.recordings).into_iter().zip(job.recordings);
        for ((place, log), filter) in logs.zip(filters) {
            let one = Job {
                recordings: slice::from_ref(log),
                output: &path_below(beside, &place)?,
                filter,
                ..job
            };
            let Summary {
                events,
                faults,
                discarded,
            } = one.written(to)?;
            sum.events += events;
            sum.faults += faults;
            sum.discarded.add(&discarded);
        }
        Ok(Outcome::Good)
    });
    let done = match whole {
        Ok(Outcome::Good) => Ok(sum),
        Ok(_) => Err(Stop::Damage),
        Err(failure) => Err(Stop::Failure(failure)),
    };
    let opens_with = format!("`kymo print {}` prints it", args.output.display());
    job.ended(done, &opens_with)
}

/// Below a directory, the path of a file that was at a place. The directories that it is in are made.
fn path_below(directory: &Path, place: &Path) -> io::Result<PathBuf> {
    // Unless that one is there, too.
    let path = match directory.join(without_compression(place)) {
        taken if taken.exists() => directory.join(place),
        path => path,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    Ok(path)
}

fn refuse_stdout(args: &Convert) -> Result<(), Failure> {
    if !is_stdout(&args.output) {
        return Ok(());
    }
    let problem =
        "error: a part of a file is not written to standard output\nhint: specify a file with `-o`";
    Err(Failure::Usage(problem.to_owned()))
}

/// The counters of an export have the time at which its file was written.
fn keep_time(recording: &AnyRecording, output: &Path) -> io::Result<()> {
    let AnyRecording::Maps(export) = recording else {
        return Ok(());
    };
    // Only a file that is not in an archive has a time of its own.
    match export.path().metadata().and_then(|there| there.modified()) {
        Ok(time) => File::options()
            .append(true)
            .open(output)?
            .set_modified(time),
        Err(_) => Ok(()),
    }
}

/// What the file of a recording holds, which was found below one of some paths: it may be compressed, or in an
/// archive.
pub(crate) fn content(inputs: &[PathBuf], path: &Path) -> Result<Bytes, Failure> {
    let input = inputs.iter().find(|input| path.starts_with(input));
    let tree = Tree::at(input.map_or(path, |input| input));
    let content = tree.and_then(|(tree, _)| tree.content(path, Access::Sequential));
    let content = content.map_err(|error| Failure::at(path.display(), &error))?;
    Ok(content.bytes)
}
