//! `kymo convert --to perfetto` beside Perfetto's own schema, which its Python package has.

use std::path::{Path, PathBuf};

use super::{Counts, make_trace};
use crate::Outcome;
use crate::process::{command, hear, root};

/// The Python in whose environment the package `perfetto` is: an option, or its usual place.
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

/// Compares what the traces hold with the lines of JSON of the same recordings: a trace that LTTng
/// makes now, examples, event logs, and several recordings at once.
pub(super) fn run(kymo: &Path, python: &Path, tool: &Path, events: u64) -> Outcome<Counts> {
    let folder = tempfile::tempdir()?;
    let made = folder.path().join("made");
    make_trace(tool, events, &made)?;
    let logs = root().join("crates/kymo-cpel/tests/data");
    let example = root().join("examples/lttng-small");
    let log = logs.join("be_basic.cpel");
    let mut counts = Counts::default();
    for recordings in [
        vec![made],
        vec![example.clone()],
        vec![log.clone()],
        vec![logs.join("symtab_k.cpel")],
        vec![logs.join("multi_strtab.cpel")],
        vec![example, log],
    ] {
        let names = recordings.iter().filter_map(|path| path.file_name());
        let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
        let said = compare(kymo, python, &recordings, folder.path());
        if let Err(why) = &said {
            println!("{why}");
        }
        let what = format!(
            "perfetto: {}: {}",
            names.join(" and "),
            said.as_deref().unwrap_or("")
        );
        counts.holds(&what, said.is_ok());
    }
    Ok(counts)
}

/// Compares one conversion; tells what was compared.
fn compare(kymo: &Path, python: &Path, recordings: &[PathBuf], folder: &Path) -> Outcome<String> {
    let (trace, lines) = (folder.join("x.pftrace"), folder.join("x.jsonl"));
    let print = hear(
        command(kymo)
            .args(["print", "--format", "json"])
            .args(recordings),
    )?;
    std::fs::write(&lines, &print.out)?;
    let mut convert = command(kymo);
    convert
        .arg("convert")
        .args(recordings)
        .arg("--force")
        .arg("-o");
    let convert = hear(convert.arg(&trace))?;
    if (print.code, convert.code) != (Some(0), Some(0)) {
        return Err(format!("{}{}", print.err, convert.err).into());
    }
    let script = root().join("xtask/src/interop/check_perfetto.py");
    let said = hear(command(python).arg(script).args([&trace, &lines]))?;
    match said.code {
        Some(0) => Ok(String::from_utf8_lossy(&said.out).trim().to_string()),
        _ => Err(said.err.into()),
    }
}
