//! `kymo print` beside the installed babeltrace2, on traces that LTTng-UST makes now.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::Counts;
use crate::args::Args;
use crate::conformance::with_sorted_labels;
use crate::process::{command, hear, require, root};
use crate::{Outcome, conformance};

/// Options that both programs know, each a way to print a trace.
const WAYS: &[&[&str]] = &[
    &[],
    &["--clock-gmt", "--clock-date"],
    &["--clock-seconds"],
    &["--clock-cycles"],
    &["--clock-seconds", "--no-delta"],
    &["--clock-cycles", "--no-delta"],
    &["--clock-offset=3600", "--clock-date"],
    &[
        "--clock-offset=-7",
        "--clock-offset-ns=-999999999",
        "--clock-seconds",
    ],
    &["--names=all"],
    &["--names=none"],
    &["--names=payload"],
    &["--names=context"],
    &["--names=scope"],
    &["--names=header"],
    &["--names=payload,scope,header"],
    &["--fields=all"],
    &["--fields=trace"],
    &["--fields=trace:hostname"],
    &["--fields=trace:domain,trace:procname,trace:vpid"],
    &["--fields=loglevel"],
    &["--fields=emf"],
    &["--fields=callsite"],
    &["--names=all", "--fields=all"],
    &["--names=none", "--fields=all", "--clock-cycles"],
    &["--stream-intersection"],
    &["--color=always"],
    &["--color=always", "--names=all", "--fields=all"],
];

/// Options of `kymo convert` with which a trace is rewritten.
const REWRITES: &[&[&str]] = &[
    &["--to=ctf1.8"],
    &["--to=ctf1.8", "--packet-size=4K"],
    &["--to=ctf1.8", "--packed"],
    &["--to=ctf1.8", "--byte-order=be"],
    &["--to=ctf1.8", "--byte-order=be", "--packed"],
];

/// Compares, and prints a line for each comparison. `tool` makes a trace.
pub(super) fn run(kymo: &Path, tool: &Path, events: u64) -> Outcome<Counts> {
    require("babeltrace2", "babeltrace2")?;
    let folder = tempfile::tempdir()?;
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    make_trace(tool, events, &first)?;
    make_trace(tool, events / 10, &second)?;
    let examples = root().join("examples");

    let mut ways: Vec<(Vec<String>, Vec<PathBuf>)> = Vec::new();
    let way = |options: &[&str]| options.iter().map(|o| (*o).to_string()).collect::<Vec<_>>();
    for options in WAYS {
        ways.push((way(options), vec![first.clone()]));
    }
    for (begin, end) in windows(&first)? {
        let (begin, end) = (format!("--begin={begin}"), format!("--end={end}"));
        ways.push((way(&["--clock-gmt", &begin, &end]), vec![first.clone()]));
        ways.push((way(&["--clock-gmt", &begin]), vec![first.clone()]));
        ways.push((way(&["--clock-gmt", &end]), vec![first.clone()]));
    }
    ways.push((way(&[]), vec![first.clone(), second.clone()]));
    ways.push((way(&["--fields=all"]), vec![folder.path().to_path_buf()]));
    ways.push((way(&[]), vec![examples.join("lttng-small")]));
    ways.push((
        way(&["--fields=all"]),
        vec![examples.join("lttng-discarded")],
    ));

    let mut counts = Counts::default();
    let shipped = [
        &first,
        &examples.join("lttng-small"),
        &examples.join("lttng-discarded"),
    ];
    for trace in shipped {
        for options in REWRITES {
            let shown = format!("{} written anew", options.join(" "));
            counts.lines(&shown, written_anew(kymo, trace, options));
        }
    }
    let draft = draft_as_today(kymo, &examples.join("rfc-small"));
    counts.lines("a trace of RFC v1.1 written as CTF 1.8", draft);
    for (options, traces) in &ways {
        let shown = format!("{} on {} trace(s)", options.join(" "), traces.len());
        counts.lines(&shown, compare(kymo, options, traces));
    }
    Ok(counts)
}

/// Compares what both print of a trace of RFC v1.1 that kymo has written as CTF 1.8: fields of its
/// headers are members of other scopes there, so the trace itself is printed otherwise.
fn draft_as_today(kymo: &Path, trace: &Path) -> Outcome<usize> {
    let folder = tempfile::tempdir()?;
    let written = folder.path().join("trace");
    let said = hear(
        command(kymo)
            .args(["convert", "--to=ctf1.8", "-o"])
            .args([written.as_path(), trace]),
    )?;
    if said.code != Some(0) {
        return Err(said.err.into());
    }
    compare(kymo, &[], &[written])
}

/// Compares what babeltrace2 prints of a trace that kymo has rewritten with what kymo prints of
/// the trace itself.
fn written_anew(kymo: &Path, trace: &Path, options: &[&str]) -> Outcome<usize> {
    let folder = tempfile::tempdir()?;
    let written = folder.path().join("trace");
    let said = hear(
        command(kymo)
            .arg("convert")
            .args(options)
            .arg("-o")
            .args([written.as_path(), trace]),
    )?;
    if said.code != Some(0) {
        return Err(said.err.into());
    }
    let ours = hear(command(kymo).args(["print", "--names=all"]).arg(trace))?;
    let theirs = hear(command("babeltrace2").arg("--names=all").arg(&written))?;
    if (ours.code, theirs.code) != (Some(0), Some(0)) {
        return Err(format!("{:?}: {}", theirs.code, theirs.err).into());
    }
    same_lines(
        &String::from_utf8_lossy(&ours.out),
        &String::from_utf8_lossy(&theirs.out),
    )
}

/// The script that makes a trace: an option, the environment, or its usual place.
pub(crate) fn tool(args: &mut Args) -> Outcome<PathBuf> {
    let tool = args
        .value("--tool")?
        .or_else(|| std::env::var_os("LTTNG_LOAD").map(PathBuf::from))
        .unwrap_or_else(|| root().join("../shared/tools/lttng-load/make-trace.sh"));
    if !tool.is_file() {
        return Err(format!("no script at {}; see `--tool`", tool.display()).into());
    }
    Ok(tool)
}

/// Makes a trace of two threads with `events` events each.
pub(crate) fn make_trace(tool: &Path, events: u64, output: &Path) -> Outcome {
    require("lttng", "lttng-tools")?;
    require("lttng-sessiond", "lttng-tools")?;
    let said = hear(
        command("bash")
            .arg(tool)
            .arg(events.to_string())
            .arg("2")
            .arg(output)
            .stdin(Stdio::null()),
    )?;
    if said.code != Some(0) {
        return Err(format!("{} failed: {}", tool.display(), said.err.trim()).into());
    }
    Ok(())
}

/// Windows of time that begin with an event: a narrow one, a wide one, the whole trace, and
/// one from before it until after it.
fn windows(trace: &Path) -> Outcome<Vec<(String, String)>> {
    let mut times = conformance::times(trace)?;
    times.sort_unstable();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Err("the trace has no events".into());
    };
    let show = |nanos: i64| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let tenth = |tenths: usize| times[(times.len() - 1) * tenths / 10];
    Ok(vec![
        (show(tenth(5)), show(tenth(5) + 100_000)),
        (show(tenth(2)), show(tenth(7))),
        (show(*first), show(*last)),
        (show(first - 1_000_000_000), show(last + 1_000_000_000)),
    ])
}

/// Compares what both print, and returns the number of lines.
pub(super) fn compare(kymo: &Path, options: &[String], traces: &[PathBuf]) -> Outcome<usize> {
    let colored = options.iter().any(|option| option == "--color=always");
    let ours = hear(
        command(kymo)
            .env_remove("NO_COLOR")
            .env_remove("BABELTRACE_TERM_COLOR")
            .arg("print")
            .args(options)
            .args(traces),
    )?;
    let theirs = hear(
        command("babeltrace2")
            // Without these no option makes it colour what goes into a pipe.
            .env("TERM", "xterm")
            .env(
                "BABELTRACE_TERM_COLOR",
                if colored { "always" } else { "never" },
            )
            .args(options)
            .args(traces),
    )?;
    if (ours.code, theirs.code) != (Some(0), Some(0)) {
        return Err(format!(
            "exit codes {:?} and {:?}: {}{}",
            ours.code, theirs.code, ours.err, theirs.err
        )
        .into());
    }
    let theirs_err = theirs
        .err
        .replace("(UUID: ", "(UID: ")
        .replace("(no UUID)", "(no UID)");
    same_lines(&warnings(&ours.err), &warnings(&theirs_err))?;
    let ours = String::from_utf8_lossy(&ours.out);
    if ours.is_empty() {
        return Err("nothing was printed".into());
    }
    let theirs = String::from_utf8_lossy(&theirs.out);
    // Where it colours, the program itself resets the terminal when it ends, whatever it did.
    let theirs = theirs.strip_suffix("\x1b[0m").unwrap_or(&theirs);
    same_lines(&ours, theirs)
}

fn warnings(err: &str) -> String {
    err.lines()
        .filter(|line| line.starts_with("WARNING: Tracer"))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn same_lines(ours: &str, theirs: &str) -> Outcome<usize> {
    let (ours, theirs): (Vec<_>, Vec<_>) = (ours.lines().collect(), theirs.lines().collect());
    for (number, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        if !same_line(a, b) {
            return Err(format!("line {}\nkymo:        {a}\nbabeltrace2: {b}", number + 1).into());
        }
    }
    if ours.len() != theirs.len() {
        return Err(format!("{} lines instead of {}", ours.len(), theirs.len()).into());
    }
    Ok(ours.len())
}

/// Whether two lines are the same but for what babeltrace2 2.0.4 is known to do: it
/// prints some earlier string where a string is empty, and several labels without braces.
fn same_line(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    // The colours between several labels are those of the braces that are not there.
    let several = without_colors(ours).contains("( { ");
    let prepared = |line: &str| match several {
        true => with_sorted_labels(&without_colors(line)),
        false => line.to_string(),
    };
    let (ours, theirs) = (prepared(ours), prepared(theirs));
    let (mut a, mut b) = (ours.as_str(), theirs.as_str());
    loop {
        let (Some(at), Some(bt)) = (a.find('"'), b.find('"')) else {
            return a == b;
        };
        if a[..at] != b[..bt] {
            return false;
        }
        let (Some(ours_end), Some(theirs_end)) = (literal(&a[at..]), literal(&b[bt..])) else {
            return false;
        };
        let (mine, other) = (&a[at..at + ours_end], &b[bt..bt + theirs_end]);
        if mine != other && mine != "\"\"" {
            return false;
        }
        a = &a[at + ours_end..];
        b = &b[bt + theirs_end..];
    }
}

/// A line without its escape sequences.
fn without_colors(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, sequence)) = rest.split_once('\x1b') {
        plain += before;
        rest = sequence.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

/// Where the string literal at the beginning of a text ends.
fn literal(text: &str) -> Option<usize> {
    let mut escaped = false;
    text[1..]
        .find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })
        .map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_differences_are_overlooked() {
        assert!(same_line(
            r#"a = "", b = "x\"y""#,
            r#"a = "stale", b = "x\"y""#
        ));
        assert!(!same_line(r#"a = "x""#, r#"a = "y""#));
        assert!(!same_line(r#"a = """#, r#"b = "stale""#));
        assert!(same_line(
            "( { \x1b[1m\"B\"\x1b[0m, \"A\" } : container = 1 )",
            "( \x1b[1m\"A\"\x1b[0m, \"B\" : container = 1 )"
        ));
        assert!(!same_line("a = \x1b[1m1\x1b[0m", "a = 1"));
        assert!(same_line(
            r#"( { "B", "A" } : container = 1 )"#,
            r#"( "A", "B" : container = 1 )"#
        ));
    }
}
