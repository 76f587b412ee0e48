//! `kymo rrd export --to parquet`, which is a conversion.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use kymo_io::path::path;
use kymo_rrdtool::{Defaults, Session, TableExport, table_export};

use super::rrdtool;

/// The words of the conversion that does what a command line asks, if that is to export databases to Parquet files.
///
/// # Errors
///
/// The exit code if the words are wrong, which was reported.
pub(crate) fn conversion(words: &[OsString]) -> Option<Result<Vec<OsString>, ExitCode>> {
    let [program, rrd, export, words @ ..] = words else {
        return None;
    };
    if rrd != "rrd" || export != "export" || words.iter().any(|word| word == "--help") {
        return None;
    }
    let (mut out, mut warnings) = (io::sink(), io::stderr());
    let session = Session::new(&mut out, &mut warnings, Defaults::default());
    let words: Vec<&[u8]> = words.iter().map(|word| rrdtool::bytes(word)).collect();
    let asked = table_export(&session, &words)?;
    let asked = asked.map(|asked| {
        let mut all = vec![program.clone()];
        all.extend(convert(&asked));
        all
    });
    Some(asked.map_err(|failure| rrdtool::failed(&failure)))
}

/// The words of a conversion behind the program.
fn convert(asked: &TableExport<'_>) -> Vec<OsString> {
    let with = |option: &str, value: &[u8]| {
        let mut word = OsString::from(option);
        word.push(&*path(value));
        word
    };
    let mut words = vec!["convert".into(), "--to=parquet".into()];
    words.push(with("--output=", asked.output));
    words.extend(asked.force.then(|| "--force".into()));
    for (option, time) in [("--begin", asked.begin), ("--end", asked.end)] {
        words.extend(time.map(|time| format!("{option}={time}").into()));
    }
    // Samples of an archive are events whose name is its function and its step.
    words.extend(asked.function.map(|function| {
        let mut word = with("--event=", function);
        word.push("/*");
        word
    }));
    words.extend(asked.machine.map(|machine| with("--machine=", machine)));
    words.push("--".into());
    words.extend(
        asked
            .inputs
            .iter()
            .map(|input| path(input).into_owned().into()),
    );
    words
}
