//! `kymo cut` of files whose events are pieces of them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use kymo::AnyRecording;
use kymo::convert::Pieces;
use kymo_io::{Access, Bytes, Tree, without_compression};
use kymo_model::Recording;

use super::{Job, is_stdout};
use crate::args::convert::{Convert, To};
use crate::ctf;
use crate::directory::{places, refuse_there, whole_directory};
use crate::open::whole_inputs;
use crate::outputs::refuse_file;
use crate::terminal::{Failure, Outcome, Terminal};

/// Writes files again with the events that are chosen, where these are [pieces](Pieces) of them: one to a file,
/// several below a directory.
pub(crate) fn cut_pieces(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    if is_stdout(&args.output) {
        let problem = "error: a part of a file is not written to standard output\nhint: specify a file with `-o`";
        return Err(Failure::Usage(problem.to_owned()));
    }
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
            // Unless that one is there, too.
            let path = match beside.join(without_compression(place)) {
                taken if taken.exists() => beside.join(place),
                path => path,
            };
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let bytes = content(&args.input.paths, recording.path()).map_err(ctf::Stop::Failure)?;
            let mut out = BufWriter::with_capacity(1 << 18, File::create(&path)?);
            pieces.write(number, recording, &bytes, &mut out)?;
            out.flush()?;
            keep_time(recording, &path)?;
        }
        Ok(Outcome::Good)
    })
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
