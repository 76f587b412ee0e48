//! Recordings as columns in Parquet, NumPy and DuckDB, and event by event in Python, beside babeltrace2 and its module.

use std::path::Path;
use std::time::Duration;

use super::{measure, median, trace};
use crate::Outcome;
use crate::args::Args;
use crate::interop::tool;
use crate::process::{command, hear, require, root};

/// babeltrace2's module is asked for so many events: it needs some 80 µs for each.
const PEER_EVENTS: u64 = 100_000;

/// A script, and what is measured beside it: all events by the program, or some by the module.
struct Case {
    name: &'static str,
    script: &'static str,
    /// Whether what it does is compared with the module, too.
    beside_module: bool,
}

const CASES: [Case; 3] = [
    Case {
        name: "2 columns into NumPy",
        script: "import sys, kymo; \
            kymo.open(sys.argv[1]).events(columns=['vtid', 'cpu_id'], threads=1).to_numpy()",
        beside_module: true,
    },
    Case {
        name: "iteration, 1 field",
        script: "import sys, kymo\n\
            for event in kymo.open(sys.argv[1]).iter(threads=1):\n    event['vtid']",
        beside_module: true,
    },
    Case {
        name: "DuckDB, GROUP BY event",
        script: "import sys, kymo, duckdb\n\
            events = kymo.open(sys.argv[1]).events(columns=['event'], threads=1)\n\
            duckdb.sql('SET threads = 1')\n\
            duckdb.sql('SELECT event, count(*) FROM events GROUP BY ALL').fetchall()",
        beside_module: false,
    },
];

const MODULE: &str = "import sys, bt2, itertools\n\
    events = (msg.event for msg in bt2.TraceCollectionMessageIterator(sys.argv[1]) if type(msg) is bt2._EventMessageConst)\n\
    for event in itertools.islice(events, 100000):\n    event['vtid']";

/// `cargo xtask bench columns`.
pub(super) fn run(mut args: Args) -> Outcome {
    let tool = tool(&mut args)?;
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let python: Option<String> = args.value("--python")?;
    args.finish()?;
    require("babeltrace2", "babeltrace2")?;
    let python = python.unwrap_or_else(|| "target/python/bin/python".to_owned());
    let python = root().join(python);
    let has = "import kymo, numpy, duckdb";
    if hear(command(&python).args(["-c", has]))?.code != Some(0) {
        return Err(format!(
            "{}: `{has}` fails: install a wheel of `maturin build --release`, or give another `--python`",
            python.display()
        )
        .into());
    }
    let trace = trace(&tool, events)?;
    println!(
        "{events} events, {runs} alternating runs, medians of CPU time (user and system), 1 thread\n"
    );
    println!(
        "{:<26} {:>9} {:>12} {:>7} {:>12}",
        "", "kymo", "babeltrace2", "ratio", "bt2 module"
    );

    let module = {
        let system = Path::new("/usr/bin/python3");
        let costs = (0..runs).map(|_| Ok(measure(system, &["-c", MODULE], &trace, 1)?.cpu));
        let cost = median(costs.collect::<Outcome<_>>()?);
        cost.as_secs_f64() * events as f64 / PEER_EVENTS as f64
    };
    let output = root().join("target/bench/columns");
    let written = output.to_string_lossy();
    let parquet = [
        "-m",
        "kymo",
        "convert",
        "--to=parquet",
        "--threads=1",
        "--force",
        "-o",
        &*written,
    ];
    line(
        "to Parquet, all fields",
        &python,
        &parquet,
        &trace,
        runs,
        None,
    )?;
    for case in &CASES {
        let module = case.beside_module.then_some(module);
        line(
            case.name,
            &python,
            &["-c", case.script],
            &trace,
            runs,
            module,
        )?;
    }
    let bytes = size(&output)?;
    println!(
        "\nParquet: {:.2} bytes an event",
        bytes as f64 / events as f64
    );
    std::fs::remove_dir_all(&output)?;
    Ok(())
}

/// Measures a case, alternating with the peer.
fn line(
    name: &str,
    program: &Path,
    arguments: &[&str],
    trace: &Path,
    runs: usize,
    module: Option<f64>,
) -> Outcome {
    let (mut ours, mut theirs): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        ours.push(measure(program, arguments, trace, 1)?.cpu);
        let peer = Path::new("babeltrace2");
        theirs.push(measure(peer, &["-o", "dummy"], trace, 1)?.cpu);
    }
    let (ours, theirs) = (median(ours).as_secs_f64(), median(theirs).as_secs_f64());
    let module = module.map_or(String::new(), |module| {
        format!("{:>11.0}x", module / ours.max(1e-9))
    });
    println!(
        "{name:<26} {ours:>8.2}s {theirs:>11.2}s {:>7.1} {module}",
        theirs / ours.max(1e-9)
    );
    Ok(())
}

/// The bytes of the files of events in a directory.
fn size(directory: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for class in std::fs::read_dir(directory)? {
        let class = class?;
        if class.file_name().to_string_lossy().starts_with("class=") {
            for file in std::fs::read_dir(class.path())? {
                bytes += file?.metadata()?.len();
            }
        }
    }
    Ok(bytes)
}
