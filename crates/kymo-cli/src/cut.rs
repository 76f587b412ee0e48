//! `kymo cut`: `kymo convert` to the format that a recording has.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches};
use kymo::AnyRecording;
use kymo::convert::Pieces;
use kymo_ctf::class::Dialect;
use kymo_io::Tree;
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
        // Whatever opens it next reports why nothing can be opened.
        None => "ctf1.8",
        Some([first, rest @ ..]) => {
            if Pieces::is_cut(first) {
                return match rest {
                    [] => pieces(args, terminal),
                    _ => Err(Failure::Usage(format!(
                        "error: cannot cut `{}` together with other recordings: its format holds one\n\
                         hint: cut each into an output of its own",
                        first.path().display()
                    ))),
                };
            }
            let to = format_of(first)?;
            if let Some(other) = rest.iter().find(|other| format_of(other).ok() != Some(to)) {
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
    let mut words: Vec<OsString> = vec!["--to".into(), to.into()];
    // One trace could not keep what is said of each.
    if is_several && to.starts_with("ctf") {
        words.push("--separate".into());
    }
    convert::run(&as_convert(args, words)?, terminal)
}

/// Cuts a file of which events are pieces.
fn pieces(args: Cut, terminal: &Terminal) -> Result<Outcome, Failure> {
    let is_wrapped = |path: &&PathBuf| Tree::is_wrapped(path).unwrap_or(false);
    if let Some(path) = args.input.paths.iter().find(is_wrapped) {
        return Err(Failure::Usage(format!(
            "error: cannot cut `{}`: it is in an archive, compressed or standard input\n\
             hint: extract or store it as a file first",
            path.display()
        )));
    }
    convert::cut_pieces(&as_convert(args, Vec::new())?, terminal)
}

/// What `kymo convert` would be asked, with some more words.
fn as_convert(args: Cut, more: Vec<OsString>) -> Result<Convert, Failure> {
    let mut words: Vec<OsString> = vec!["cut".into(), "--output".into()];
    words.push(args.output.into_os_string());
    words.extend(more);
    let paths = args.input.paths.iter();
    words.extend(paths.map(|path| path.clone().into_os_string()));
    let command = Convert::augment_args(clap::Command::new("cut"));
    let matches = command.try_get_matches_from(words);
    let convert = matches.and_then(|matches| Convert::from_arg_matches(&matches));
    let convert = convert.map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Convert {
        input: args.input,
        selection: args.selection,
        work: args.work,
        force: args.force,
        ..convert
    })
}

/// Whether a recording is a Parquet file or a directory of them, as `kymo convert` writes it.
fn is_parquet(path: &Path) -> bool {
    let is_one = |path: &Path| path.extension().is_some_and(|ending| ending == "parquet");
    let is_class = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("class=")
    };
    let mut entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let is_part = |path: &Path| is_one(path) || is_class(path);
    is_one(path) || entries.any(|entry| is_part(&entry.path()))
}

/// The format that a recording has, as `kymo convert --to` names it.
fn format_of(recording: &AnyRecording) -> Result<&'static str, Failure> {
    let path = recording.path();
    let dialect = match recording {
        AnyRecording::Cpel(_) => return Ok("cpel"),
        AnyRecording::Elog(_) => return Ok("elog"),
        _ if is_parquet(path) => return Ok("parquet"),
        other => other.as_ctf().map(|trace| trace.class().dialect),
    };
    let remedy = match (recording, dialect) {
        (_, Some(Dialect::Ctf18)) => return Ok("ctf1.8"),
        (_, Some(Dialect::Ctf2)) => return Ok("ctf2"),
        (AnyRecording::Perfetto(trace), _) => {
            let to = if trace.format().name == "chrome" {
                "chrome"
            } else {
                "perfetto"
            };
            format!(
                "`kymo convert --to {to}` writes slices, counters and flows again, but not the packets as they were"
            )
        }
        (_, Some(_)) => "`kymo convert --to ctf2` writes a part of it as CTF 2".to_owned(),
        (AnyRecording::Rrd(_), _) => {
            "`kymo rrd convert` makes a database of it, which can be cut".to_owned()
        }
        _ => "cut one at a time".to_owned(),
    };
    let rfc = if dialect.is_some() {
        " of RFC v1.1"
    } else {
        ""
    };
    Err(Failure::Usage(format!(
        "error: cannot cut `{}`: it is {}{rfc}\nhint: {remedy}",
        path.display(),
        recording.what()
    )))
}
