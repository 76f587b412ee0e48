//! `kymo convert --to parquet` and `--to arrow` in a program that was built without them.

use kymo::filter::Query;
use kymo::pipeline::Window;

use crate::args::convert::{Convert, To};
use crate::open::Inputs;
use crate::terminal::{Failure, Outcome, Terminal};

/// Refuses.
pub(super) fn run(
    _args: &Convert,
    _to: To,
    _asked: (Query, Vec<Window>),
    _inputs: Inputs,
    _terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let problem = "error: this kymo was built without Parquet and Arrow\n\
                   hint: build it with `--features arrow`";
    Err(Failure::Usage(problem.to_owned()))
}
