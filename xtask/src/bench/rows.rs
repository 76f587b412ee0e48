//! Rows as columns, and what is made of them: beside what decodes all events in babeltrace2, and in instructions.

use std::path::{Path, PathBuf};

use super::asked::{Asked, head, line};
use super::{instructions, measure, median, trace};
use crate::args::Args;
use crate::interop::tool;
use crate::process::{build_example, build_kymo, command, hear, require, root};
use crate::{Outcome, make_trace};

/// Events of the trace of which instructions are counted, and of the larger one that babeltrace2's Python module reads.
const FEW: u64 = 200_000;

/// Events of the smaller one, which shows what starting the program and opening a trace cost.
const FEWEST: u64 = 20_000;

/// Where a Python may be that has babeltrace2's module: Debian's is not always the first one.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// What babeltrace2's Python module does with each event: the first one makes what rows of two integer columns are, fields
/// found by their names, which is what is asked of kymo, too. The second one says where they are; the last one reads none.
const PYTHON: [(&str, &str, Asked); 3] = [
    (
        "time and fields by name",
        "(message.default_clock_snapshot.ns_from_origin, int(event['vtid']), int(event['cpu_id']))",
        Asked::AtLeast(1000.0),
    ),
    (
        "time and fields by scope",
        "(message.default_clock_snapshot.ns_from_origin, int(event.common_context_field['vtid']), \
         int(event.packet.context_field['cpu_id']))",
        Asked::Nothing,
    ),
    ("no values", "event.payload_field", Asked::Nothing),
];

/// A program that does something with each event.
fn python(each: &str) -> String {
    format!(
        "\
import bt2, sys
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is bt2._EventMessageConst:
        event = message.event
        {each}
"
    )
}

/// `cargo xtask bench rows`.
pub(super) fn run(mut args: Args) -> Outcome {
    let tool = tool(&mut args)?;
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let base: Option<PathBuf> = args.value("--base")?;
    args.finish()?;
    require("babeltrace2", "babeltrace2")?;
    require("valgrind", "valgrind")?;
    let rows = build_example("kymo", "rows")?;
    let kymo = build_kymo(true)?;
    let large = trace(&tool, events)?;
    println!("{events} events; CPU time (user and system), medians of {runs} alternating runs");
    beside_babeltrace(&kymo, &rows, &large, runs)?;
    let (fewest, few) = (trace(&tool, FEWEST)?, trace(&tool, FEW)?);
    beside_python(&rows, (&fewest, &few, &large), events, runs)?;
    let small = root().join("target/bench").join(format!("rows-{FEW}"));
    if !small.is_dir() {
        make_trace::make(&root().join(make_trace::USUAL), FEW, 1, &small)?;
    }
    count(&kymo, base.as_deref(), &small)
}

fn beside_babeltrace(kymo: &Path, rows: &Path, trace: &Path, runs: usize) -> Outcome {
    let cases: [(&str, &Path, &[&str], Asked); 6] = [
        (
            "two integer columns",
            rows,
            &["1", "vtid,cpu_id"],
            Asked::AtLeast(25.0),
        ),
        (
            "check",
            kymo,
            &["check", "--threads=1"],
            Asked::AtLeast(20.0),
        ),
        ("no columns", rows, &["1"], Asked::Nothing),
        (
            "two integer columns, 2 threads",
            rows,
            &["2", "vtid,cpu_id"],
            Asked::Nothing,
        ),
        (
            "a list and an integer",
            rows,
            &["1", "seq,cpu_id"],
            Asked::Nothing,
        ),
        ("all columns, by class", rows, &["1", "all"], Asked::Nothing),
    ];
    head("times as fast as babeltrace2 -o dummy");
    for (name, program, arguments, asked) in cases {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            ours.push(measure(program, arguments, trace, 1)?.cpu);
            let peer = Path::new("babeltrace2");
            theirs.push(measure(peer, &["-o", "dummy"], trace, 1)?.cpu);
        }
        let (ours, theirs) = (median(ours).as_secs_f64(), median(theirs).as_secs_f64());
        let name = format!("{name} ({ours:.3} s, {theirs:.3} s)");
        line(&name, theirs / ours.max(1e-9), "x", asked);
    }
    Ok(())
}

/// The module reads few events: it would take a quarter of an hour for all.
fn beside_python(
    rows: &Path,
    (fewest, few, large): (&Path, &Path, &Path),
    events: u64,
    runs: usize,
) -> Outcome {
    head("rows with two integer columns, times as fast as bt2");
    let has_module = |python: &&Path| {
        let said = hear(command(python).args(["-c", "import bt2"]));
        said.is_ok_and(|said| said.code == Some(0))
    };
    let Some(found) = PYTHONS.map(Path::new).into_iter().find(has_module) else {
        println!("not measured: needs the Debian package python3-bt2");
        return Ok(());
    };
    let ours = [(fewest, FEWEST), (large, events)];
    let ours = event_cost(rows, &["1", "vtid,cpu_id"], ours, runs)?;
    for (name, each, asked) in PYTHON {
        let theirs = [(fewest, FEWEST), (few, FEW)];
        let theirs = event_cost(found, &["-c", &python(each)], theirs, runs)?;
        let (nanos, micros) = (ours * 1e9, theirs * 1e6);
        let name = format!("{name} ({nanos:.1} ns an event, {micros:.1} us)");
        line(&name, theirs / ours.max(1e-12), "x", asked);
    }
    Ok(())
}

/// The CPU time of an event in seconds, without that of starting the program and opening a trace: what the larger of two
/// traces costs more, by the events that it has more.
fn event_cost(
    program: &Path,
    arguments: &[&str],
    traces: [(&Path, u64); 2],
    runs: usize,
) -> Outcome<f64> {
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for (costs, (trace, _)) in costs.iter_mut().zip(traces) {
            costs.push(measure(program, arguments, trace, 1)?.cpu);
        }
    }
    let [small, large] = costs.map(|costs| median(costs).as_secs_f64());
    let [(_, fewer), (_, more)] = traces;
    if more <= fewer {
        return Err(format!("`--events` must be more than {fewer}").into());
    }
    Ok((large - small) / (more - fewer) as f64)
}

/// Counts instructions of commands, of one thread each: beside those of `check`, or of another kymo.
fn count(kymo: &Path, base: Option<&Path>, trace: &Path) -> Outcome {
    let output = root().join("target/bench/rows-output");
    let path = format!("--output={}", output.display());
    let count = |program: &Path, words: &[&str]| {
        let arguments = words.iter().map(|&word| match word {
            "--output=OUTPUT" => path.as_str(),
            other => other,
        });
        let arguments: Vec<&str> = arguments.chain(["--threads=1"]).collect();
        instructions(command(program).args(arguments).arg(trace))
    };
    head(&format!("millions of instructions, {FEW} events of LTTng"));
    let check = count(kymo, &["check"])?;
    line("check", check / 1e6, "M", Asked::Nothing);
    let analyses: [(&str, &[&str]); 3] = [
        (
            "latency of two classes of nine",
            &["latency", "--start=demo:inst1", "--end=demo:inst2"],
        ),
        ("states by all events", &["states", "--state-event=demo:*"]),
        (
            "profile of two classes of nine",
            &["profile", "--enter=demo:inst1", "--exit=demo:inst2"],
        ),
    ];
    for (name, words) in analyses {
        line(
            name,
            count(kymo, words)? / 1e6,
            "M",
            Asked::AtMost(check / 1e6),
        );
    }
    let Some(base) = base else {
        println!(
            "\nnot compared with another kymo: --base PROGRAM names one, as of commit 78b78d3"
        );
        return Ok(());
    };
    head("instructions, parts of those of the other kymo");
    let to = |format: &'static str, more: &[&'static str]| {
        [
            &["convert", "--to", format, "--output=OUTPUT", "--force"][..],
            more,
        ]
        .concat()
    };
    let commands = [
        ("check", vec!["check"], 1.01),
        ("print", vec!["print"], 1.01),
        ("convert to Perfetto", to("perfetto", &[]), 0.7),
        ("convert to Chrome", to("chrome", &[]), 0.7),
        ("convert to CPEL", to("cpel", &["--text"]), 0.7),
        ("convert to RRD", to("rrd", &["--step=1s", "--count"]), 0.7),
    ];
    for (name, words, most) in commands {
        let (ours, theirs) = (count(kymo, &words)?, count(base, &words)?);
        let name = format!("{name} ({:.1} M, {:.1} M)", ours / 1e6, theirs / 1e6);
        line(&name, ours / theirs.max(1.0), "", Asked::AtMost(most));
    }
    if output.is_dir() {
        std::fs::remove_dir_all(&output)?;
    } else if output.is_file() {
        std::fs::remove_file(&output)?;
    }
    Ok(())
}
