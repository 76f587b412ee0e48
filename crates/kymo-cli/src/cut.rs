//! `kymo cut`: `kymo convert` to the format that a recording has.

use clap::{Args, FromArgMatches};
use kymo::AnyRecording;
use kymo_ctf::class::Dialect;
use kymo_model::Recording;

use crate::args::convert::Convert;
use crate::args::cut::Cut;
use crate::convert;
use crate::open::{Asked, reopened};
use crate::terminal::{Failure, Outcome, Terminal};

/// Cuts a recording.
pub(crate) fn run(args: Cut, terminal: &Terminal) -> Result<Outcome, Failure> {
    let opened = reopened(&args.input, Asked::default(), &[]);
    let is_several = opened.as_ref().is_some_and(|all| all.len() > 1);
    let to = match opened.as_deref() {
        // Why nothing can be opened is told by who opens it next.
        None => "ctf1.8",
        Some([first, rest @ ..]) => {
            let to = format_of(first)?;
            if let Some(other) = rest.iter().find(|of| format_of(of).ok() != Some(to)) {
                let problem = format!(
                    "error: `{}` and `{}` have different formats",
                    first.path().display(),
                    other.path().display()
                );
                return Err(Failure::Usage(problem));
            }
            to
        }
        Some([]) => return Err(Failure::Unreadable),
    };
    let mut words = vec!["cut".into(), "--to".into(), to.into(), "--output".into()];
    words.push(args.output.into_os_string());
    // One trace could not keep what is said of each.
    if is_several && to.starts_with("ctf") {
        words.push("--separate".into());
    }
    words.extend(
        args.input
            .paths
            .iter()
            .map(|path| path.clone().into_os_string()),
    );
    let command = Convert::augment_args(clap::Command::new("cut"));
    let matches = command.try_get_matches_from(words);
    let convert = matches.and_then(|matches| Convert::from_arg_matches(&matches));
    let convert = convert.map_err(|error| Failure::Usage(error.to_string()))?;
    let convert = Convert {
        input: args.input,
        selection: args.selection,
        work: args.work,
        force: args.force,
        ..convert
    };
    convert::run(&convert, terminal)
}

/// The format that a recording has, as `kymo convert --to` names it.
fn format_of(of: &AnyRecording) -> Result<&'static str, Failure> {
    match of {
        AnyRecording::Cpel(_) => Ok("cpel"),
        AnyRecording::Elog(_) => Ok("elog"),
        other => match other.as_ctf().map(|trace| trace.class().dialect) {
            Some(Dialect::Ctf18) => Ok("ctf1.8"),
            Some(Dialect::Ctf2) => Ok("ctf2"),
            dialect => Err(Failure::Usage(format!(
                "error: cannot cut `{}`: it is {}{}\nhint: `kymo convert` writes other formats",
                other.path().display(),
                other.what(),
                if dialect.is_some() {
                    " of RFC v1.1"
                } else {
                    ""
                }
            ))),
        },
    }
}
