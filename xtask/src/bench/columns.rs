//! Recordings as columns in Parquet, SQL, NumPy and DuckDB, and event by event in Python, beside babeltrace2 and its
//! module.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{measure, median, trace};
use crate::Outcome;
use crate::args::Args;
use crate::interop::tool;
use crate::process::{command, hear, require, root};

/// Number of events that babeltrace2's module is asked for: it needs some 8 µs for each.
const PEER_EVENTS: u64 = 100_000;

/// What is required of a case: the minimum ratio of its events per CPU second to those of the peer.
#[derive(Clone, Copy)]
enum Asked {
    /// Of `babeltrace2 -o dummy`.
    Peer(f64),
    /// Of babeltrace2's module.
    Module(f64),
    /// Of both.
    Both(f64, f64),
    /// Maximum ratio of the CPU time to that of the same question to `kymo-query`.
    Query(f64),
}

/// A script, and what is asked of it.
struct Case {
    name: &'static str,
    /// What it costs to start, which is left out: the interpreter and its modules.
    imports: &'static str,
    script: &'static str,
    asked: Asked,
}

const CASES: [Case; 3] = [
    Case {
        name: "2 columns into NumPy",
        imports: "import sys, kymo, numpy",
        script: "import sys, kymo, numpy; \
            kymo.open(sys.argv[1]).events(columns=['vtid', 'cpu_id'], threads=1).to_numpy()",
        asked: Asked::Both(15.0, 1000.0),
    },
    Case {
        name: "iteration, 1 field",
        imports: "import sys, kymo",
        script: "import sys, kymo\n\
            for event in kymo.open(sys.argv[1]).iter(threads=1):\n    event['vtid']",
        asked: Asked::Module(20.0),
    },
    Case {
        name: "DuckDB, GROUP BY event",
        imports: "import sys, kymo, duckdb",
        script: "import sys, kymo, duckdb\n\
            events = kymo.open(sys.argv[1]).events(columns=['event'], threads=1)\n\
            duckdb.sql('SET threads = 1')\n\
            duckdb.sql('SELECT event, count(*) FROM events GROUP BY ALL').fetchall()",
        asked: Asked::Query(1.5),
    },
];

/// The same question for `kymo-query`.
const QUERY: &str = "SELECT event, count(*) FROM events GROUP BY event";

const MODULE: &str = "import sys, bt2, itertools\n\
    events = (msg.event for msg in bt2.TraceCollectionMessageIterator(sys.argv[1]) if type(msg) is bt2._EventMessageConst)\n\
    for event in itertools.islice(events, 100000):\n    event['vtid']";

/// `cargo xtask bench columns`.
pub(super) fn run(mut args: Args) -> Outcome {
    let tool = tool(&mut args)?;
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let python: Option<String> = args.value("--python")?;
    let query: Option<String> = args.value("--query")?;
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
    let query = query.unwrap_or_else(|| "query/target/release/kymo-query".to_owned());
    let query = root().join(query);
    let trace = trace(&tool, events)?;
    println!(
        "{events} events, {runs} alternating runs, medians of CPU time (user and system), 1 thread, without imports\n"
    );
    println!(
        "{:<26} {:>9} {:>12} {:>7} {:>12}  asked",
        "", "kymo", "babeltrace2", "ratio", "bt2 module"
    );
    let module = {
        let system = Path::new("/usr/bin/python3");
        let cost = || Ok(measure(system, &["-c", MODULE], &trace, 1)?.cpu);
        let costs = (0..runs).map(|_| cost());
        let cost = median(costs.collect::<Outcome<_>>()?);
        cost.as_secs_f64() * events as f64 / PEER_EVENTS as f64
    };
    let bench = Bench {
        trace,
        runs,
        module,
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
    let imports = Some((&*python, "import sys, kymo"));
    bench.line(
        "to Parquet, all fields",
        (&python, &parquet),
        imports,
        Asked::Peer(3.0),
        None,
    )?;
    let has_query = query.is_file();
    let asked = match has_query {
        true => {
            let words = ["--threads=1", QUERY];
            let name = "SQL, GROUP BY event";
            Some(bench.line(name, (&query, &words), None, Asked::Peer(15.0), None)?)
        }
        false => {
            println!(
                "{:<26} left out: no {} (`cargo build --release` in query/)",
                "SQL, GROUP BY event",
                query.display()
            );
            None
        }
    };
    for case in &CASES {
        let imports = Some((&*python, case.imports));
        let words = ["-c", case.script];
        bench.line(case.name, (&python, &words), imports, case.asked, asked)?;
    }
    let bytes = size(&output)?;
    println!(
        "\nParquet: {:.2} bytes an event (12 asked)",
        bytes as f64 / events as f64
    );
    std::fs::remove_dir_all(&output)?;
    Ok(())
}

/// What all cases have in common.
struct Bench {
    trace: PathBuf,
    runs: usize,
    /// What babeltrace2's module takes for all events, in seconds.
    module: f64,
}

impl Bench {
    /// Measures a case, alternating with the peer; returns its seconds. `query` are those of `kymo-query`.
    fn line(
        &self,
        name: &str,
        (program, words): (&Path, &[&str]),
        imports: Option<(&Path, &str)>,
        asked: Asked,
        query: Option<f64>,
    ) -> Outcome<f64> {
        let (mut ours, mut theirs, mut starts): (Vec<Duration>, Vec<Duration>, Vec<Duration>) =
            Default::default();
        for _ in 0..self.runs {
            ours.push(measure(program, words, &self.trace, 1)?.cpu);
            let peer = Path::new("babeltrace2");
            theirs.push(measure(peer, &["-o", "dummy"], &self.trace, 1)?.cpu);
            if let Some((python, imports)) = imports {
                starts.push(measure(python, &["-c", imports], &self.trace, 1)?.cpu);
            }
        }
        let start = match starts.is_empty() {
            true => 0.0,
            false => median(starts).as_secs_f64(),
        };
        let ours = (median(ours).as_secs_f64() - start).max(1e-9);
        let theirs = median(theirs).as_secs_f64();
        let (ratio, module) = (theirs / ours, self.module / ours);
        let verdict = |is_met: bool| if is_met { "met" } else { "NOT met" };
        let asked = match asked {
            Asked::Peer(times) => format!("{times}x: {}", verdict(ratio >= times)),
            Asked::Module(times) => format!("{times}x module: {}", verdict(module >= times)),
            Asked::Both(times, of_module) => format!(
                "{times}x and {of_module}x module: {}",
                verdict(ratio >= times && module >= of_module)
            ),
            Asked::Query(times) => match query {
                Some(query) => format!(
                    "{times} times SQL's time: {:.2}, {}",
                    ours / query,
                    verdict(ours <= query * times)
                ),
                None => format!("{times} times SQL's time: not measured"),
            },
        };
        println!("{name:<26} {ours:>8.2}s {theirs:>11.2}s {ratio:>7.1} {module:>11.0}x  {asked}");
        Ok(ours)
    }
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
