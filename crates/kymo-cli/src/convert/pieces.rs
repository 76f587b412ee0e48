//! `kymo cut` of files whose events are pieces of them.

use std::io;

use kymo::convert::Pieces;
use kymo_io::{Access, Bytes};
use kymo_model::Recording;

use super::{Job, is_stdout};
use crate::args::convert::{Convert, To};
use crate::open::whole_inputs;
use crate::outputs::refuse_file;
use crate::terminal::{Failure, Outcome, Terminal};

/// Writes a file again with the events that are chosen, where these are [pieces](Pieces) of it.
pub(crate) fn cut_pieces(args: &Convert, terminal: &Terminal) -> Result<Outcome, Failure> {
    if is_stdout(&args.output) {
        let problem = "error: a part of a file is not written to standard output\nhint: specify a file with `-o`";
        return Err(Failure::Usage(problem.to_owned()));
    }
    refuse_file(&args.output, args.force)?;
    let inputs = whole_inputs(&args.input, args.work.strict, terminal)?;
    let [only] = &inputs.recordings[..] else {
        let problem = "error: these recordings are files of their own\nhint: cut one at a time";
        return Err(Failure::Usage(problem.to_owned()));
    };
    // As any output that is one file.
    let job = Job::new(args, To::Cpel, &inputs, terminal)?;
    if job.is_refused() {
        return Ok(job.outcome);
    }
    let path = only.path();
    let bytes = Bytes::open(path, Access::Sequential)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let done = job.gather(Pieces::new(job.wall()), |pieces, mut out| {
        pieces.write(only, &bytes, &mut out)
    });
    let opens_with = format!("`kymo print {}` prints it", args.output.display());
    job.ended(done, &opens_with)
}
