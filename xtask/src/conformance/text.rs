//! Cases whose expected text babeltrace2 wrote: `kymo print` must write the same.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Setting, Verdict, cases, difference, record};
use crate::Outcome;
use crate::process::{Said, command, hear, root};

/// Runs the cases below `expected/` whose paths begin with `prefix`.
///
/// A case is `CASE.rc`, the exit code of babeltrace2, with its text as `CASE.pretty` and
/// `CASE.details`. `ODD.tsv` lists valid traces that it could not read: there the text
/// of a later version counts (`CASE.pretty.master`), and if there is none, the case is
/// left to the corpora that list values. Each text is a verdict of its own.
pub(super) fn run(setting: &Setting, prefix: &str) -> Outcome<Vec<Verdict>> {
    let expected = setting.traces.join("expected");
    let odd: BTreeSet<String> = record::rows(&expected.join("ODD.tsv"))?
        .into_iter()
        .filter_map(|row| row.into_iter().next())
        .collect();
    let reasons = record::rows(&root().join("conformance/reasons.tsv"))?;
    let mut verdicts = Vec::new();
    for case in cases(&expected, prefix, ".rc")? {
        let file = |suffix: &str| expected.join(format!("{case}.{suffix}"));
        let code = std::fs::read_to_string(file("rc"))?;
        let reason = reasons.iter().find_map(|row| match row.as_slice() {
            [name, code, reason] if *name == case => Some((code.as_str(), reason.as_str())),
            _ => None,
        });
        let mut verdict = |format: &str, result| {
            verdicts.push(Verdict::new(format!("{case}.{format}"), result));
        };
        if odd.contains(&case) {
            let master = file("pretty.master");
            if master.is_file() {
                verdict("pretty", reads(setting, &case, "pretty", &master, reason));
            }
        } else if code.trim() == "0" {
            let result = reads(setting, &case, "pretty", &file("pretty"), reason);
            verdict("pretty", result);
            verdict("err", warns(setting, &case, &file("err")));
            if file("details").is_file() {
                let result = reads(setting, &case, "details", &file("details"), reason);
                verdict("details", result);
            }
        } else {
            verdict("pretty", stops(setting, &case, &file("pretty"), reason));
        }
    }
    Ok(verdicts)
}

/// Runs babeltrace's own expected texts of whole traces of a version of CTF, of which some are
/// in several directories: `details` without the names of traces and streams.
pub(super) fn whole_traces(setting: &Setting, version: u32) -> Outcome<Vec<Verdict>> {
    let folder = "babeltrace/src.ctf.fs/succeed/trace-";
    let mut found: Vec<(String, String)> = Vec::new();
    for case in cases(&setting.traces, folder, ".expect")? {
        let name = case.trim_start_matches(folder).trim_end_matches("-mip1");
        let name = match name.split_once("-ctf") {
            Some((name, suffix)) if suffix == version.to_string() => name,
            None => name,
            _ => continue,
        };
        found.push((case.clone(), name.to_string()));
    }
    let of_details =
        format!("babeltrace/sink.text.details/default-without-names-ctf{version}-mip1");
    found.push((of_details, "wk-heartbeat-u".to_string()));
    let mut verdicts = Vec::new();
    for (case, name) in found {
        let trace = format!("babeltrace/common-data/ctf-traces/{version}/succeed/{name}");
        let expected = setting.traces.join(format!("{case}.expect"));
        // Others combine traces, or convert them first, or show something else of them.
        if !setting.traces.join(&trace).is_dir() || !read(&expected)?.starts_with("Trace class:\n")
        {
            continue;
        }
        let result = print(setting, &trace, "details").and_then(|said| {
            let found = without_names(&String::from_utf8_lossy(&said.out));
            difference(&read(&expected)?, &found)
        });
        verdicts.push(Verdict::new(case, result));
    }
    Ok(verdicts)
}

/// The text of `details` without the names of traces and streams.
fn without_names(details: &str) -> String {
    let mut text = String::new();
    for line in details.lines().filter(|line| !line.starts_with("  Name: ")) {
        match line
            .strip_prefix("  Trace `")
            .and_then(|rest| rest.split_once('`'))
        {
            Some((_, rest)) => text += &format!("  Trace{rest}\n"),
            None => text += &format!("{line}\n"),
        }
    }
    text
}

/// A trace that babeltrace2 reads to its end: the same text. The exit code is 0, unless the
/// reason of another one is recorded.
fn reads(
    setting: &Setting,
    case: &str,
    format: &str,
    expected: &Path,
    reason: Option<(&str, &str)>,
) -> Result<(), String> {
    let said = print(setting, case, format)?;
    reported(setting, case, &said, reason.unwrap_or(("0", "")))?;
    let expected = with_sorted_labels(&read(expected)?);
    let found = with_sorted_labels(&String::from_utf8_lossy(&said.out));
    difference(&expected, &found)
}

/// The same warnings about what the tracer could not keep.
fn warns(setting: &Setting, case: &str, expected: &Path) -> Result<(), String> {
    let said = print(setting, case, "pretty")?;
    difference(&lost(&read(expected)?), &lost(&said.err))
}

/// A trace at which babeltrace2 stops: what it shows before that is shown, the exit code and
/// the message are those recorded.
fn stops(
    setting: &Setting,
    case: &str,
    expected: &Path,
    reason: Option<(&str, &str)>,
) -> Result<(), String> {
    let reason = reason.ok_or("no reason is recorded in conformance/reasons.tsv")?;
    let said = print(setting, case, "pretty")?;
    reported(setting, case, &said, reason)?;
    let expected = with_sorted_labels(&read(expected)?);
    let found = with_sorted_labels(&String::from_utf8_lossy(&said.out));
    if found.starts_with(&expected) {
        Ok(())
    } else {
        difference(&expected, &found)
    }
}

/// Whether the exit code is the right one, and the reason is reported: by a message, or as the code
/// of a fault.
fn reported(
    setting: &Setting,
    case: &str,
    said: &Said,
    (code, reason): (&str, &str),
) -> Result<(), String> {
    if said.code.map(|code| code.to_string()).as_deref() != Some(code) {
        return Err(format!(
            "exit code {:?} instead of {code}: {}",
            said.code,
            said.err.trim()
        ));
    }
    if said.err.contains(reason) {
        return Ok(());
    }
    let check = hear(
        command(&setting.kymo)
            .args(["check", "--json"])
            .arg(setting.traces.join(case)),
    )
    .map_err(|error| error.to_string())?;
    let faults = String::from_utf8_lossy(&check.out);
    if faults.contains(reason) {
        Ok(())
    } else {
        Err(format!("no word of `{reason}` in: {}{faults}", said.err))
    }
}

/// Prints a trace as the expected texts were made, with the folder of the traces as `DATA`.
fn print(setting: &Setting, case: &str, format: &str) -> Result<Said, String> {
    // The details have their dates anyway.
    let date: &[&str] = if format == "details" {
        &[]
    } else {
        &["--clock-date"]
    };
    let mut said = hear(
        command(&setting.kymo)
            .args(["print", "--clock-gmt", "--format", format])
            .args(date)
            .arg(setting.traces.join(case)),
    )
    .map_err(|error| error.to_string())?;
    let folder = setting.traces.to_string_lossy();
    if format == "details" || said.err.contains(&*folder) {
        let out = String::from_utf8_lossy(&said.out).replace(&*folder, "DATA");
        said.out = out.into_bytes();
        said.err = said.err.replace(&*folder, "DATA");
    }
    Ok(said)
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The warnings about what the tracer could not keep.
pub(super) fn lost(err: &str) -> String {
    err.lines()
        .filter(|line| line.starts_with("WARNING: Tracer"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The text with the labels of each enumeration value sorted and in braces: their order
/// has no meaning, and one label alone is left as it is.
pub(crate) fn with_sorted_labels(text: &str) -> String {
    const END: &str = " : container = ";
    let mut sorted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("( ") {
        let (before, list) = rest.split_at(at + 2);
        sorted.push_str(before);
        rest = list;
        let (braces, list) = match list.strip_prefix("{ ") {
            Some(list) => (true, list),
            None => (false, list),
        };
        let Some((mut labels, after)) = labels(list) else {
            continue;
        };
        let after = match (braces, after.strip_prefix(" }")) {
            (true, Some(after)) => after,
            (true, None) => continue,
            (false, _) => after,
        };
        if labels.len() < 2 || !after.starts_with(END) {
            continue;
        }
        labels.sort_unstable();
        sorted.push_str(&format!("{{ {} }}", labels.join(", ")));
        rest = after;
    }
    sorted.push_str(rest);
    sorted
}

/// The quoted labels at the beginning of a text, with their quotes, and what follows.
fn labels(text: &str) -> Option<(Vec<&str>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        if !rest.starts_with('"') {
            return None;
        }
        let mut escaped = false;
        let end = rest[1..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })? + 2;
        labels.push(&rest[..end]);
        rest = &rest[end..];
        match rest.strip_prefix(", ") {
            Some(more) => rest = more,
            None => return Some((labels, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_compared_as_sets() {
        assert_eq!(
            with_sorted_labels("{ c = ( { \"B\", \"A\" } : container = 1 ), d = ( 1 ) }"),
            "{ c = ( { \"A\", \"B\" } : container = 1 ), d = ( 1 ) }"
        );
        assert_eq!(
            with_sorted_labels("( \"B \\\" \", \"A\" : container = 1 )"),
            "( { \"A\", \"B \\\" \" } : container = 1 )"
        );
        let one = "( \"B\" : container = 1 ) ( <unknown> : container = 2 ) ( \"x";
        assert_eq!(with_sorted_labels(one), one);
    }
}
