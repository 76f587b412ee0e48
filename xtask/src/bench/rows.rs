//! Rows as columns, beside what decodes all events in babeltrace2.

use std::path::Path;

use super::{measure, median, trace};
use crate::Outcome;
use crate::args::Args;
use crate::interop::tool;
use crate::process::{build_example, require};

/// `cargo xtask bench rows`.
pub(super) fn run(mut args: Args) -> Outcome {
    let tool = tool(&mut args)?;
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    args.finish()?;
    require("babeltrace2", "babeltrace2")?;
    let rows = build_example("kymo", "rows")?;
    let trace = trace(&tool, events)?;
    println!("{events} events, {runs} alternating runs, medians of CPU time (user and system)\n");
    println!("{:<28} {:>9} {:>9} {:>7}", "", "kymo", "peer", "ratio");
    let cases: [(&str, &[&str]); 5] = [
        ("rows without columns", &["1"]),
        ("two integer columns", &["1", "vtid,cpu_id"]),
        ("two, merged by 2 threads", &["2", "vtid,cpu_id"]),
        ("a list and an integer", &["1", "seq,cpu_id"]),
        ("all columns, by class", &["1", "all"]),
    ];
    for (name, arguments) in cases {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            ours.push(measure(&rows, arguments, &trace, 1)?.cpu);
            let peer = Path::new("babeltrace2");
            theirs.push(measure(peer, &["-o", "dummy"], &trace, 1)?.cpu);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{name:<28} {:>8.3}s {:>8.3}s {:>7.1}",
            ours.as_secs_f64(),
            theirs.as_secs_f64(),
            theirs.as_secs_f64() / ours.as_secs_f64().max(1e-9),
        );
    }
    Ok(())
}
