//! The index of a trace with many tracks: how long it takes to build, how large it is, how fast it answers.

use std::collections::HashMap;
use std::path::Path;

use super::asked::{Asked, head, line};
use super::{measure, median};
use crate::args::Args;
use crate::process::{build_example, build_kymo, command, output, root};
use crate::{Outcome, make_trace};

/// Copies of each of the two streams of the trace that is repeated: 50 tracks.
const COPIES: u64 = 25;

/// `cargo xtask bench index`.
pub(super) fn run(mut args: Args) -> Outcome {
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let runs: usize = args.value("--runs")?.unwrap_or(3).max(1);
    let keep = args.flag("--keep");
    args.finish()?;
    let kymo = build_kymo(true)?;
    let example = build_example("kymo", "index")?;
    let trace = root().join("target/bench").join(format!("index-{events}"));
    if !trace.is_dir() {
        eprintln!("making a trace of {events} events");
        let partial = trace.with_extension("partial");
        if partial.is_dir() {
            std::fs::remove_dir_all(&partial)?;
        }
        make_trace::make(&root().join(make_trace::USUAL), events, COPIES, &partial)?;
        std::fs::rename(&partial, &trace)?;
    }
    println!("{events} events on {} tracks", 2 * COPIES);
    let measured = compare(&kymo, &trace, runs).and_then(|()| answers(&example, &trace));
    if !keep {
        std::fs::remove_dir_all(&trace)?;
    }
    measured
}

/// The pass that builds the index beside `check`.
fn compare(kymo: &Path, trace: &Path, runs: usize) -> Outcome {
    let (mut check, mut index) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        check.push(measure(kymo, &["check"], trace, 1)?.cpu);
        index.push(measure(kymo, &["index", "--no-cache"], trace, 1)?.cpu);
    }
    let (check, index) = (median(check).as_secs_f64(), median(index).as_secs_f64());
    head(&format!("CPU time, medians of {runs} alternating runs"));
    line("check", check, "s", Asked::Nothing);
    line("index", index, "s", Asked::Nothing);
    let speed = check / index.max(1e-9);
    line(
        "speed of index, parts of that of check",
        speed,
        "",
        Asked::AtLeast(0.8),
    );
    Ok(())
}

/// First answer, size, and queries of all tracks with 2,000 columns, in one process.
fn answers(example: &Path, trace: &Path) -> Outcome {
    let said = output(command(example).arg(trace))?;
    let words = said.lines().filter_map(|line| line.split_once(' '));
    let said: HashMap<&str, &str> = words.collect();
    let figure = |name: &str| -> Outcome<f64> {
        let text = said
            .get(name)
            .ok_or_else(|| format!("`{name}` was not printed"))?;
        let number = text.split(' ').next().unwrap_or_default();
        Ok(number.parse()?)
    };
    head("answers");
    let first = figure("first_answer_seconds")? * 1e3;
    line(
        "first answer, from packet headers",
        first,
        "ms",
        Asked::AtMost(200.0),
    );
    let bytes = figure("bytes_a_row")?;
    line(
        "size on disk, for each event",
        bytes,
        "B",
        Asked::AtMost(1.0),
    );
    for (part, what, asked) in [
        ("whole", "all of the time", Asked::AtMost(5.0)),
        ("tenth", "a tenth of it", Asked::AtMost(5.0)),
        (
            "thousandth",
            "a thousandth; chunks are decoded",
            Asked::Nothing,
        ),
        (
            "millionth",
            "a millionth; chunks are decoded",
            Asked::Nothing,
        ),
    ] {
        let cost = figure(&format!("query_{part}_cpu_ms"))?;
        line(
            &format!("2,000 columns, 50 tracks: {what}"),
            cost,
            "ms",
            asked,
        );
    }
    Ok(())
}
