//! Which format is written, where to, and which options are for it.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use kymo::AnyRecording;
use kymo::explain::path_text;
use kymo::filter::nearest;

use crate::args::Times;
use crate::args::convert::{Convert, TextForm, To};
use crate::ctf;
use crate::formats::refuse_foreign;
use crate::outputs::refuse_file;
use crate::terminal::Failure;

/// The endings of the names of outputs.
const ENDINGS: [&str; 10] = [
    "pftrace",
    "perfetto-trace",
    "jsonl",
    "ndjson",
    "csv",
    "cpel",
    "elog",
    "rrd",
    "parquet",
    "arrow",
];

/// The format: what is set, or what the output's name says.
pub(super) fn target(args: &Convert) -> Result<To, Failure> {
    if let Some(to) = args.to {
        return Ok(to);
    }
    let ending = args.output.extension().and_then(OsStr::to_str);
    Err(Failure::Usage(match ending {
        Some("pftrace" | "perfetto-trace") => return Ok(To::Perfetto),
        Some("jsonl" | "ndjson") => return Ok(To::Jsonl),
        Some("csv") => return Ok(To::Csv),
        Some("cpel") => return Ok(To::Cpel),
        Some("elog") => return Ok(To::Elog),
        Some("rrd") => return Ok(To::Rrd),
        Some("parquet") => return Ok(To::Parquet),
        Some("arrow" | "arrows") => return Ok(To::Arrow),
        None if !is_stdout(&args.output) => return Ok(To::Ctf18),
        _ if args.output.is_dir() || ends_in_slash(&args.output) => return Ok(To::Ctf18),
        Some("json") => {
            let path = path_text(&args.output);
            format!(
                "error: `{path}` may be of two formats\n\
                 hint: write `--to chrome` for trace events of Chrome, `--to jsonl` for an object a line"
            )
        }
        _ if is_stdout(&args.output) => {
            "error: the format of standard output is not specified\nhint: specify it with `--to`, such as `--to jsonl`"
                .to_string()
        }
        ending => {
            let path = path_text(&args.output);
            let meant = ending.and_then(|ending| nearest(ending, ENDINGS));
            let meant = meant.map_or(String::new(), |meant| format!("did you mean `.{meant}`? "));
            let endings = ENDINGS.map(|ending| format!(".{ending}")).join(" ");
            format!(
                "error: the name of the output, `{path}`, does not say its format\n\
                 hint: {meant}specify it with `--to`, or by the ending: {endings}; without an ending, it is a directory with a CTF trace"
            )
        }
    }))
}

/// Refuses options that do not shape this format, and asks for those that it needs.
pub(super) fn refuse_options_of_others(args: &Convert, to: To) -> Result<(), Failure> {
    use To::{Arrow, Chrome, Cpel, Csv, Ctf2, Ctf18, CtfRfc, Elog, Jsonl, Parquet, Perfetto, Rrd};
    let with_tracks = &[Perfetto, Chrome, Cpel, Elog, Rrd];
    let traces = &[Ctf18, Ctf2, CtfRfc];
    let options: &[(&str, bool, &[To])] = &[
        ("--track", args.track.is_some(), with_tracks),
        ("--slice", !args.slice.is_empty(), &[Perfetto, Chrome]),
        ("--counter", !args.counter.is_empty(), &[Perfetto, Chrome]),
        ("--flow", !args.flow.is_empty(), &[Perfetto, Chrome]),
        ("--times", args.times != Times::Number, &[Jsonl, Csv]),
        ("--text", args.text == Some(TextForm::Shown), &[Cpel]),
        (
            "--text=binary",
            args.text == Some(TextForm::Binary),
            &[Parquet, Arrow],
        ),
        ("--datum", args.datum.is_some(), &[Cpel]),
        (
            "--byte-order",
            args.byte_order.is_some(),
            &[Cpel, Ctf18, Ctf2, CtfRfc],
        ),
        ("--packed", args.packed, traces),
        ("--packet-size", args.packet_size.is_some(), traces),
        ("--separate", args.separate, traces),
        ("--compress", args.compress.is_some(), &[CtfRfc]),
        ("--encrypt", args.encrypt, &[CtfRfc]),
        ("--plain-metadata", args.plain_metadata, &[CtfRfc]),
        ("--index", args.index, &[Ctf18, Ctf2]),
        ("--checksum", args.checksum.is_some(), &[CtfRfc]),
        ("--ticks", args.ticks.is_some(), &[Cpel]),
        ("--step", args.step.is_some(), &[Rrd]),
        ("--count", args.count, &[Rrd]),
        ("--value", args.value.is_some(), &[Rrd]),
        ("--cf", args.cf.is_some(), &[Rrd]),
        ("--rows", args.rows.is_some(), &[Rrd]),
        ("--format", args.format.is_some(), &[Rrd]),
    ];
    refuse_foreign(options, &to)?;
    if to == Chrome && args.flow.len() > 1 {
        let problem = "an event of chrome has room for one flow: give `--flow` once";
        return Err(Failure::Usage(format!("error: {problem}")));
    }
    Ok(())
}

/// Refuses what cannot be written, before it takes any time.
pub(super) fn refuse_output(args: &Convert, to: To) -> Result<(), Failure> {
    let output = &args.output;
    let is_directory = is_directory(to);
    if is_directory && !is_stdout(output) {
        return crate::directory::refuse_there(output, args.force);
    }
    if !is_stdout(output) {
        return refuse_file(output, args.force);
    }
    if is_directory || matches!(to, To::Cpel | To::Elog | To::Rrd) {
        let problem = "this format cannot be written to standard output";
        return Err(Failure::Usage(format!(
            "error: {problem}\nhint: specify a file with `-o`"
        )));
    }
    if matches!(to, To::Perfetto | To::Arrow) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "error: binary data is not written to a terminal\nhint: specify a file with `-o`, or a pipe behind kymo"
                .to_string(),
        ));
    }
    Ok(())
}

/// Refuses a file as output that was found below a path, or is a part of a recording: what a run has
/// written would be the input of the next one. A file that is named as input may be replaced.
pub(super) fn refuse_found_input(
    args: &Convert,
    to: To,
    recordings: &[AnyRecording],
) -> Result<(), Failure> {
    let output = &args.output;
    if is_stdout(output) || is_directory(to) {
        return Ok(());
    }
    let Ok(real) = output.canonicalize() else {
        return Ok(());
    };
    let is_it = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == real);
    match args.input.paths.iter().any(is_it) {
        true => Ok(()),
        false => crate::directory::refuse_inputs(output, recordings),
    }
}

/// How an output is opened.
pub(super) fn opens_with(output: &Path, to: To) -> String {
    let path = path_text(output);
    match to {
        To::Perfetto | To::Chrome => {
            "open it in https://ui.perfetto.dev, or with `kymo view`".to_string()
        }
        To::Jsonl | To::Csv => format!("`head {path}` shows how it begins"),
        To::Rrd => format!("`kymo graph {path} -o graph.png` draws it"),
        To::Parquet | To::Arrow => "DuckDB, pandas, polars and Spark read it".to_string(),
        To::Cpel | To::Elog | To::Ctf18 | To::Ctf2 | To::CtfRfc => {
            format!("`kymo print {path}` prints it")
        }
    }
}

/// Whether the output is a directory.
fn is_directory(to: To) -> bool {
    to == To::Parquet || ctf::dialect(to).is_some()
}

fn ends_in_slash(output: &Path) -> bool {
    output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

pub(super) fn is_stdout(output: &Path) -> bool {
    output == Path::new("-")
}
