//! `kymo convert --to perfetto` beside Perfetto's own schema, which its Python package has.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Counts, make_trace};
use crate::Outcome;
use crate::process::{command, hear, root};

/// The Python whose environment has the package `perfetto`: an option, or its usual place.
pub(super) fn python(given: Option<PathBuf>) -> Outcome<PathBuf> {
    let python = given.unwrap_or_else(|| root().join("target/perfetto/bin/python"));
    if !python.is_file() {
        return Err(format!(
            "no Python with the package `perfetto` at {}; `bash .ci/run packages` puts it there, see `--python`",
            python.display()
        )
        .into());
    }
    Ok(python)
}

/// Recordings and the options that draw slices, counters and flows of them.
type Case = (Vec<PathBuf>, &'static [&'static str]);

/// Compares what the traces hold with the lines of JSON of the same recordings: a trace that LTTng
/// makes now, examples, event logs, databases of `databases`, and several recordings at once; as
/// they are, and with slices, counters and flows.
pub(super) fn run(
    kymo: &Path,
    python: &Path,
    tool: &Path,
    events: u64,
    databases: &Path,
) -> Outcome<Counts> {
    let folder = tempfile::tempdir()?;
    let made = folder.path().join("made");
    make_trace(tool, events, &made)?;
    let logs = root().join("crates/kymo-cpel/tests/data");
    let example = root().join("examples/lttng-small");
    let log = logs.join("be_basic.cpel");
    let sched = root().join("../shared/data/cpel/sched_100k.cpel");
    if !sched.is_file() {
        return Err(format!("no event log at {}", sched.display()).into());
    }
    let database = databases.join("arch/SYN-arm-fpa/dcount.rrd");
    let cases: [Case; 11] = [
        (vec![made.clone()], &[]),
        // More begins than ends: deeper than slices may lie within each other.
        (
            vec![made.clone()],
            &[r"--slice=demo\:*s:demo\:sched", "--track=cpu_id"],
        ),
        (vec![example.clone()], &[]),
        (vec![log.clone()], &[]),
        (vec![logs.join("symtab_k.cpel")], &[]),
        (vec![logs.join("multi_strtab.cpel")], &[]),
        (vec![example.clone(), log], &[]),
        // Slices of several kinds that cut each other off, and values of all kinds of numbers.
        (
            vec![made],
            &[
                r"--slice=demo\:inst1:demo\:sched",
                r"--slice=demo\:arrays:demo\:empty",
                r"--slice=demo\:s*:demo\:s*",
                "--counter=demo:floats:d",
                "--counter=demo:ints:u64",
                "--counter=demo:inst*:b",
                "--flow=prev_tid",
                "--flow=a",
            ],
        ),
        (
            vec![example.clone()],
            &[
                "--track=cpu_id",
                "--slice=*ints:*inst2",
                "--counter=*:prev_prio",
            ],
        ),
        (
            vec![sched],
            &[
                "--slice=FUNC/ENTER:FUNC/EXIT:datum",
                "--slice=THREAD/THRUNNING:THREAD/THRUNNING",
                "--counter=counter:datum",
                "--flow=datum",
            ],
        ),
        (vec![database, example], &["--counter=demo:inst1:a"]),
    ];
    let mut counts = Counts::default();
    for (recordings, options) in cases {
        let names = recordings.iter().filter_map(|path| path.file_name());
        let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
        let said = compare(kymo, python, &recordings, options, folder.path());
        if let Err(why) = &said {
            println!("{why}");
        }
        let what = [
            names.join(" and "),
            options.join(" "),
            said.as_deref().unwrap_or("").to_string(),
        ];
        let what = what.iter().filter(|part| !part.is_empty());
        let what: Vec<_> = what.map(String::as_str).collect();
        counts.holds(&format!("perfetto: {}", what.join(": ")), said.is_ok());
    }
    Ok(counts)
}

/// Compares one conversion; returns what was compared.
fn compare(
    kymo: &Path,
    python: &Path,
    recordings: &[PathBuf],
    options: &[&str],
    folder: &Path,
) -> Outcome<String> {
    let trace = folder.join("x.pftrace");
    let mut convert = command(kymo);
    convert.args(["convert", "--force", "-o"]).arg(&trace);
    run_on(convert.args(options), recordings)?;
    let mut files = vec![trace];
    for (name, words) in [
        ("x.jsonl", ["print", "--format=json"]),
        ("x.stats", ["stats", "--json"]),
    ] {
        let said = run_on(command(kymo).args(words), recordings)?;
        let path = folder.join(name);
        std::fs::write(&path, said)?;
        files.push(path);
    }
    let script = root().join("xtask/src/interop/check_perfetto.py");
    let said = hear(command(python).arg(script).args(files).args(options))?;
    match said.code {
        Some(0) => Ok(String::from_utf8_lossy(&said.out).trim().to_string()),
        _ => Err(said.err.into()),
    }
}

/// What a command of kymo prints of recordings.
fn run_on(command: &mut Command, recordings: &[PathBuf]) -> Outcome<Vec<u8>> {
    let said = hear(command.args(recordings))?;
    match said.code {
        Some(0) => Ok(said.out),
        _ => Err(said.err.into()),
    }
}
