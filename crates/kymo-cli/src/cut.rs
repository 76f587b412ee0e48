//! `kymo cut`: `kymo convert` to the format that a recording has.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches};
use kymo::AnyRecording;
use kymo::convert::Pieces;
use kymo_cpel::json;
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
        // Whatever opens it next reports why nothing can be opened.
        None => "ctf1.8",
        Some([first, rest @ ..]) => {
            let refuse_others = |is_other: &dyn Fn(&AnyRecording) -> bool| {
                let Some(other) = rest.iter().find(|other| is_other(other)) else {
                    return Ok(());
                };
                Err(Failure::Usage(format!(
                    "error: `{}` and `{}` have different formats\n\
                     hint: cut each into an output of its own",
                    first.path().display(),
                    other.path().display()
                )))
            };
            if Pieces::is_cut(first) {
                refuse_others(&|other| !Pieces::is_cut(other))?;
                return convert::cut_pieces(&as_convert(args, Vec::new())?, terminal);
            }
            let inputs = &args.input.paths;
            let to = format_of(first, inputs)?;
            refuse_others(&|other| format_of(other, inputs).ok() != Some(to))?;
            to
        }
        Some([]) => return Err(Failure::Unreadable),
    };
    let mut words: Vec<OsString> = vec!["--to".into(), to.into()];
    // One trace could not keep what is said of each.
    if is_several && to.starts_with("ctf") {
        words.push("--separate".into());
    }
    if is_several && matches!(to, "cpel" | "elog" | "jsonl") {
        return convert::cut_logs(&as_convert(args, words)?, terminal);
    }
    convert::run(&as_convert(args, words)?, terminal)
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
        keeps_protection: true,
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
fn format_of(recording: &AnyRecording, inputs: &[PathBuf]) -> Result<&'static str, Failure> {
    let path = recording.path();
    let dialect = match recording {
        AnyRecording::Cpel(_) => {
            let is_json = convert::content(inputs, path).is_ok_and(|bytes| json::begins(&bytes));
            return Ok(if is_json { "jsonl" } else { "cpel" });
        }
        AnyRecording::Elog(_) => return Ok("elog"),
        _ if is_parquet(path) => return Ok("parquet"),
        other => other.as_ctf().map(|trace| trace.class().dialect),
    };
    match dialect {
        Some(Dialect::Ctf18) => Ok("ctf1.8"),
        Some(Dialect::Ctf2) => Ok("ctf2"),
        Some(Dialect::Rfc11) => Ok("ctf-rfc"),
        None => Err(Failure::Usage(format!(
            "error: cannot cut `{}`: it is {}\nhint: `kymo convert` writes a part of it in another format",
            path.display(),
            recording.what()
        ))),
    }
}
