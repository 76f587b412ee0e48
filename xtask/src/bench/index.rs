//! The index of a trace with many tracks: how long it takes to build, how large it is, how fast it answers.

use std::path::Path;

use super::{measure, median};
use crate::Outcome;
use crate::args::Args;
use crate::make_trace;
use crate::process::{build_example, build_kymo, command, hear, root};

/// Copies of each of the two streams of the trace that is repeated.
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
    let measured = compare(&kymo, &example, &trace, runs);
    if !keep {
        std::fs::remove_dir_all(&trace)?;
    }
    measured
}

fn compare(kymo: &Path, example: &Path, trace: &Path, runs: usize) -> Outcome {
    let (mut check, mut index) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        check.push(measure(kymo, &["check"], trace, 1)?.cpu);
        index.push(measure(kymo, &["index", "--no-cache"], trace, 1)?.cpu);
    }
    let (check, index) = (median(check).as_secs_f64(), median(index).as_secs_f64());
    println!(
        "CPU time, medians of {runs} runs: check {check:.2} s, index {index:.2} s: {:.2} of its speed",
        check / index.max(1e-9)
    );
    println!("\nfirst answer, size, and queries of all tracks with 2,000 columns, in one process:");
    let said = hear(command(example).arg(trace))?;
    print!("{}", String::from_utf8_lossy(&said.out));
    Ok(())
}
