//! The same recording in CTF 1.8 and in CTF 2: the same data streams, described in two
//! languages, must give the same text. The corpora have such pairs, and of each trace of
//! CTF 1.8 kymo makes one.

use std::path::Path;

use kymo_ctf::metadata;

use super::{Setting, Verdict, cases, difference, text};
use crate::process::{Said, command, hear};
use crate::{Outcome, twin};

/// Where the two of a pair are: what their paths begin with.
const FOLDERS: &[(&str, &str)] = &[
    (
        "babeltrace/common-data/ctf-traces/1/",
        "babeltrace/common-data/ctf-traces/2/",
    ),
    (
        "yactfr/iter-data/ctf-1/",
        "yactfr/iter-data/ctf-2/auto-translated/",
    ),
];

/// Traces in several directories, below the first of [`FOLDERS`].
const WHOLE: &[&str] = &[
    "succeed/lttng-tracefile-rotation",
    "succeed/multi-domains",
    "succeed/session-rotation",
];

/// The ways to print a trace, all of which must agree.
const WAYS: &[&[&str]] = &[
    &["print"],
    &["print", "--names=all", "--fields=all", "--clock-cycles"],
    &["print", "--format=json"],
];

/// Runs every pair whose data streams are the same.
pub(super) fn run(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for (first, second) in FOLDERS {
        let found = cases(&setting.traces, second, "/metadata")?;
        let names = found.iter().filter_map(|case| case.strip_prefix(second));
        for name in names {
            let (one, two) = (format!("{first}{name}"), format!("{second}{name}"));
            let paths = [&one, &two].map(|case| setting.traces.join(case));
            if paths[0].is_dir() && same_data(&paths[0], &paths[1])? {
                verdicts.push(Verdict::new(two, agree(setting, &paths[0], &paths[1])));
            }
        }
    }
    let (first, second) = FOLDERS[0];
    for name in WHOLE {
        let [one, two] = [first, second].map(|folder| format!("{folder}{name}"));
        let result = agree(
            setting,
            &setting.traces.join(&one),
            &setting.traces.join(&two),
        );
        verdicts.push(Verdict::new(two, result));
    }
    Ok(verdicts)
}

/// Where the traces of CTF 1.8 are.
const OLD: &[&str] = &[
    "own/",
    "babeltrace/common-data/ctf-traces/1/",
    "babeltrace/field-traces/ctf-1.8-",
    "barectf/traces/",
    "yactfr/iter-data/ctf-1/",
];

/// Runs every trace of CTF 1.8 that kymo can open, beside the twin that kymo makes of it.
pub(super) fn twins(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let folder = tempfile::tempdir()?;
    let mut verdicts = Vec::new();
    for old in OLD {
        for case in cases(&setting.traces, old, "/metadata")? {
            let trace = setting.traces.join(&case);
            let bytes = std::fs::read(trace.join("metadata"))?;
            if metadata::parse(&bytes, "metadata").is_err() {
                continue;
            }
            let twin = folder.path().join(verdicts.len().to_string());
            let result = twin::make(&trace, &twin)
                .map_err(|error| error.to_string())
                .and_then(|()| agree(setting, &trace, &twin));
            verdicts.push(Verdict::new(case, result));
        }
    }
    Ok(verdicts)
}

/// Whether two folders hold the same files, but for their metadata.
fn same_data(one: &Path, two: &Path) -> Outcome<bool> {
    let files = |folder: &Path| -> Outcome<Vec<_>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() && entry.file_name() != "metadata" {
                files.push((entry.file_name(), std::fs::read(entry.path())?));
            }
        }
        files.sort();
        Ok(files)
    };
    Ok(files(one)? == files(two)?)
}

fn agree(setting: &Setting, one: &Path, two: &Path) -> Result<(), String> {
    for way in WAYS {
        let [one, two] = [one, two].map(|trace| print(setting, way, trace));
        let (one, two) = (one?, two?);
        difference(&one, &two).map_err(|why| format!("{}: {why}", way.join(" ")))?;
    }
    Ok(())
}

/// What is printed of a trace, with how it ends and what was lost; the trace's path as `TRACE`.
fn print(setting: &Setting, way: &[&str], trace: &Path) -> Result<String, String> {
    let Said { code, out, err } =
        hear(command(&setting.kymo).args(way).arg(trace)).map_err(|error| error.to_string())?;
    let (out, lost) = (String::from_utf8_lossy(&out), text::lost(&err));
    let text = format!("{out}exit code {code:?}\n{lost}");
    Ok(text.replace(&*trace.to_string_lossy(), "TRACE"))
}
