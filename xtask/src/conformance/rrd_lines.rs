//! What rrdtool has computed, computed again by the program itself: command lines from a pipe, on
//! files of several machines.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use kymo_machine::Machine;
use kymo_rrd::Source;
use kymo_rrd::file::convert::{Target, convert};

use super::{Setting, Verdict, cases};
use crate::Outcome;
use crate::interop::{rotated, same};
use crate::process::command;

/// The forms of files in which the command lines are run: layouts that differ in byte order, word
/// size and alignment, and the portable one.
const FORMS: [&str; 6] = ["amd64", "i386", "sparc32", "s390x", "armel", "portable"];

/// Databases that learn: what they come to depends on where archives begin, which is random.
const LEARNING: [&str; 2] = ["hw.rrd", "mhw.rrd"];

/// The commands that made the databases of all machines, from `create` on: the same rows as on
/// amd64, found by their times.
pub(super) fn created(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let databases = setting.databases();
    let mut lines = String::new();
    for file in ["cmds.txt", "cmds64.txt"] {
        lines += &std::fs::read_to_string(databases.join(file))?;
    }
    let mut verdicts = Vec::new();
    for form in FORMS {
        let late = form != "portable" && machine(form)?.time().bytes() == 4;
        let arch = databases.join("arch/amd64");
        let skipped = |name: &str| {
            // Where times have 32 bits, those after 2038 are refused.
            LEARNING.contains(&name) || late && name == "y2040.rrd" || !arch.join(name).is_file()
        };
        let mut names = Vec::new();
        let mut script = String::new();
        for line in lines.lines() {
            let name = line.split_whitespace().nth(1).unwrap_or_default();
            if skipped(name) {
                continue;
            }
            script += line;
            if line.starts_with("create ") {
                names.push(name.to_owned());
                script += &format!(" --format {form}");
            }
            script.push('\n');
        }
        let folder = tempfile::tempdir()?;
        let reported = run(&setting.kymo, folder.path(), &script)?;
        for name in names {
            let case = format!("rrd/commands/{form}/{name}");
            let expected = std::fs::read(arch.join(&name))?;
            let result = reported
                .clone()
                .and_then(|()| alike(&folder.path().join(&name), form, &expected, rotated));
            verdicts.push(Verdict::new(case, result));
        }
    }
    Ok(verdicts)
}

/// The updates after snapshots, those of databases that learn included.
pub(super) fn updated(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let databases = setting.databases();
    let names = cases(&databases, "replay/", ".created.rrd")?;
    let mut verdicts = Vec::new();
    for form in FORMS {
        let folder = tempfile::tempdir()?;
        let mut script = String::new();
        for name in &names {
            let read = |end: &str| std::fs::read(databases.join(format!("{name}.{end}")));
            let created = read("created.rrd")?;
            let target = match form {
                "portable" => Target::Portable,
                form => Target::Native(machine(form)?),
            };
            let created = convert(&Source::open(&created, None)?, target)?;
            let file = name.rsplit('/').next().unwrap_or_default();
            std::fs::write(folder.path().join(file), created.bytes)?;
            for line in String::from_utf8(read("updates.txt")?)?.lines() {
                let words: Vec<&str> = line.split_whitespace().skip(2).collect();
                script += &format!("update {file} {}\n", words.join(" "));
            }
        }
        let reported = run(&setting.kymo, folder.path(), &script)?;
        for name in &names {
            let expected = std::fs::read(databases.join(format!("{name}.final.rrd")))?;
            let file = name.rsplit('/').next().unwrap_or_default();
            let result = reported
                .clone()
                .and_then(|()| alike(&folder.path().join(file), form, &expected, same));
            verdicts.push(Verdict::new(format!("rrd/updates/{form}/{file}"), result));
        }
    }
    Ok(verdicts)
}

fn machine(name: &str) -> Outcome<&'static Machine> {
    Ok(Machine::find(name).ok_or("a machine is not known")?)
}

/// Gives lines to the program; its first complaint, if it has one.
fn run(kymo: &Path, folder: &Path, script: &str) -> Outcome<Result<(), String>> {
    let input = folder.join("lines");
    std::fs::File::create(&input)?.write_all(script.as_bytes())?;
    let output = command(kymo)
        .args(["rrd", "-"])
        .current_dir(folder)
        .stdin(Stdio::from(std::fs::File::open(&input)?))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let wanted = script.lines().count();
    let good = text.lines().filter(|line| line.starts_with("OK ")).count();
    Ok(match text.lines().find(|line| line.starts_with("ERROR")) {
        Some(error) => Err(error.to_owned()),
        None if good != wanted => Err(format!("{good} of {wanted} lines were carried out")),
        None => Ok(()),
    })
}

/// Whether a file is in the form it should have, and holds what is expected.
fn alike(
    path: &Path,
    form: &str,
    expected: &[u8],
    same: fn(&[u8], &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let found = std::fs::read(path).map_err(|error| error.to_string())?;
    let source = Source::open(&found, None).map_err(|error| error.to_string())?;
    let right = match &source.form {
        kymo_rrd::Form::Native(detection) => {
            Machine::find(form).is_some_and(|machine| detection.alike.contains(&machine))
        }
        _ => form == "portable",
    };
    match right {
        true => same(expected, &found),
        false => Err(format!("is no file of {form}")),
    }
}
