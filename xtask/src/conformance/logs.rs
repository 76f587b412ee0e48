//! Event logs, beside what VPP's own programs print and make of them.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::file::File;
use kymo_cpel::rewrite::rewrite;
use kymo_cpel::write;
use kymo_machine::ByteOrder;

use super::{Setting, Verdict, cases, difference};
use crate::Outcome;
use crate::process::{command, hear};

/// Where the date is in a CPEL file, which conversions do not share.
const DATE: std::ops::Range<usize> = 4..8;

impl Setting {
    fn logs(&self) -> PathBuf {
        self.traces.with_file_name("cpel")
    }
}

/// Checks each file below the folder of the logs whose name ends with `suffix`.
fn each(
    setting: &Setting,
    suffix: &str,
    check: fn(&Path, &[u8]) -> Result<(), String>,
) -> Outcome<Vec<Verdict>> {
    let logs = setting.logs();
    let names = cases(&logs, "", suffix)?;
    if names.is_empty() {
        return Err(format!("no logs at {}", logs.display()).into());
    }
    names
        .into_iter()
        .map(|case| {
            let path = logs.join(format!("{case}{suffix}"));
            let bytes = std::fs::read(&path)?;
            Ok(Verdict::new(format!("cpel/{case}"), check(&path, &bytes)))
        })
        .collect()
}

/// What `kymo print` makes of a log; an error where it refuses it.
fn print(setting: &Setting, format: &str, log: &Path) -> Result<String, String> {
    let mut kymo = command(&setting.kymo);
    let said = hear(kymo.args(["print", "--format", format]).arg(log));
    let said = said.map_err(|error| error.to_string())?;
    match said.code {
        // A damaged log is shown as far as it is whole.
        Some(0 | 1) => Ok(String::from_utf8_lossy(&said.out).into_owned()),
        _ => Err(said.err),
    }
}

/// The events of each CPEL file of which there is a text are those that cpeldump prints; those of
/// its little-endian twin, which cpeldump refuses, are the same.
pub(super) fn dumps(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let logs = setting.logs();
    let mut verdicts = Vec::new();
    for case in cases(&logs, "", ".cpeldump.txt")? {
        let expected = std::fs::read(logs.join(format!("{case}.cpeldump.txt")))?;
        let expected = without_second_number(&String::from_utf8_lossy(&expected));
        for case in [case.clone(), format!("{case}_le")] {
            let path = logs.join(format!("{case}.cpel"));
            if path.exists() {
                let found = print(setting, "cpeldump", &path);
                let result =
                    found.and_then(|found| difference(&expected, &without_second_number(&found)));
                verdicts.push(Verdict::new(format!("cpel/{case}"), result));
            }
        }
    }
    Ok(verdicts)
}

/// A dump without what the second conversion of `0x%08x(%d)` shows: cpeldump takes that number
/// from nowhere.
fn without_second_number(dump: &str) -> String {
    let line = |line: &str| match line.rsplit_once('(') {
        Some((before, number)) if number.ends_with(')') && before.contains(" 0x") => {
            format!("{before}\n")
        }
        _ => format!("{line}\n"),
    };
    dump.lines().map(line).collect()
}

/// The events of each elog file are those that elog_dump prints.
pub(super) fn elog_dumps(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let logs = setting.logs();
    let mut verdicts = Vec::new();
    for case in cases(&logs, "", ".elog")? {
        let path = logs.join(format!("{case}.elog"));
        let expected = std::fs::read_to_string(path.with_extension("elog_dump.txt"))?;
        let found = print(setting, "elog_dump", &path);
        let result = found.and_then(|found| difference(&expected, &found));
        verdicts.push(Verdict::new(format!("cpel/{case}"), result));
    }
    Ok(verdicts)
}

/// Each elog file becomes the CPEL file that c2cpel made of it, but for the date.
pub(super) fn elog_conversions(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, ".elog", |path, bytes| {
        let mut expected =
            std::fs::read(path.with_extension("cpel")).map_err(|error| error.to_string())?;
        let options = write::Options {
            padding: write::Padding::Eight,
            clock: NonZeroU32::new(1_000_000_000).expect("it is not zero"),
            ..write::Options::default()
        };
        let mut made = Vec::new();
        cpel_of_elog(bytes, options)
            .map_err(|error| error.to_string())?
            .builder
            .write(&mut made)
            .map_err(|error| error.to_string())?;
        expected[DATE].fill(0);
        same(&expected, &made)
    })
}

/// Each whole CPEL file is copied byte for byte, and comes back from the other byte order; what
/// it becomes in that order is its twin, where it has one. A copy of a damaged file has the same
/// sections and no damage.
pub(super) fn copies(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, ".cpel", |path, bytes| {
        let file = match File::open(bytes) {
            Ok(file) => file,
            Err(error) => {
                let refused = ["truncated_header", "version2"];
                let name = path.file_stem().unwrap_or_default();
                return match refused.iter().any(|refused| name == *refused) {
                    true => Ok(()),
                    false => Err(error.to_string()),
                };
            }
        };
        let other = match file.header.order {
            ByteOrder::Big => ByteOrder::Little,
            ByteOrder::Little => ByteOrder::Big,
        };
        let copy = |file: &File<'_>, order| {
            let mut copy = Vec::new();
            rewrite(file, order, &mut copy).map_err(|error| error.to_string())?;
            Ok::<_, String>(copy)
        };
        if !file.findings.is_empty() {
            let copy = copy(&file, file.header.order)?;
            let copy = File::open(&copy).map_err(|error| error.to_string())?;
            let data = |file: &File<'_>| -> Vec<(u32, Vec<u8>)> {
                let sections = file.sections.iter();
                let data = sections.map(|section| (section.kind, file.data(section).to_vec()));
                data.collect()
            };
            return match copy.findings.is_empty() && data(&copy) == data(&file) {
                true => Ok(()),
                false => Err("the copy is damaged".to_string()),
            };
        }
        same(bytes, &copy(&file, file.header.order)?)?;
        let there = copy(&file, other)?;
        let stem = path.with_extension("");
        if let Ok(twin) = std::fs::read(format!("{}_le.cpel", stem.display())) {
            same(&twin, &there)?;
        }
        let there = File::open(&there).map_err(|error| error.to_string())?;
        same(bytes, &copy(&there, file.header.order)?)
    })
}

/// Each CPEL file becomes JSON lines and a CPEL file again: a whole file the same one, a damaged one
/// a file with the same events.
pub(super) fn lines(setting: &Setting) -> Outcome<Vec<Verdict>> {
    let logs = setting.logs();
    let folder = tempfile::tempdir()?;
    let (lines, back) = (folder.path().join("x.jsonl"), folder.path().join("x.cpel"));
    let convert = |from: &Path, to: &Path| {
        let mut kymo = command(&setting.kymo);
        let said = hear(
            kymo.arg("convert")
                .arg(from)
                .arg("--force")
                .arg("-o")
                .arg(to),
        );
        let said = said.map_err(|error| error.to_string())?;
        match said.code {
            Some(0 | 1) => Ok(said.code),
            _ => Err(said.err),
        }
    };
    let there_and_back = |log: &Path| -> Result<(), String> {
        let bytes = std::fs::read(log).map_err(|error| error.to_string())?;
        if File::open(&bytes).is_err() {
            return convert(log, &lines).map_or(Ok(()), |_| Err("it is read".to_string()));
        }
        let damage = convert(log, &lines)?;
        convert(&lines, &back)?;
        if damage == Some(0) {
            let back = std::fs::read(&back).map_err(|error| error.to_string())?;
            same(&bytes, &back)?;
        }
        let dump = |log: &Path| print(setting, "cpeldump", log);
        difference(&dump(log)?, &dump(&back)?)
    };
    let cases = cases(&logs, "", ".cpel")?.into_iter();
    let verdicts = cases.map(|case| {
        let log = logs.join(format!("{case}.cpel"));
        Verdict::new(format!("cpel/{case}"), there_and_back(&log))
    });
    Ok(verdicts.collect())
}

fn same(expected: &[u8], found: &[u8]) -> Result<(), String> {
    match expected.iter().zip(found).position(|(a, b)| a != b) {
        Some(at) => Err(format!("byte {at} differs")),
        None if expected.len() != found.len() => {
            Err(format!("{} bytes and not {}", found.len(), expected.len()))
        }
        None => Ok(()),
    }
}
