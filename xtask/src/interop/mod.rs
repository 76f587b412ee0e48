//! Compares kymo with the programs whose files it reads and whose texts it prints, on files that
//! these make now.

mod analyses;
mod collectd;
mod commands;
mod ctf;
mod engine;
mod graphs;
mod killed;
mod pages;
mod perfetto;
mod queries;
mod rrd;
mod serve;
mod symbols;
mod taking;
mod tracing;

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::args::Args;
use crate::process::build_kymo;

pub(crate) use commands::rotated;
pub(crate) use ctf::{make_trace, tool};
pub(crate) use engine::{same, update};

/// What `--only` chooses among.
const PARTS: [&str; 17] = [
    "analyses",
    "ctf",
    "symbols",
    "tracing",
    "perfetto",
    "rrd",
    "engine",
    "commands",
    "graphs",
    "graph-scripts",
    "pages",
    "serve",
    "collectd",
    "queries",
    "kills",
    "taking",
    "soak",
];

/// How many command lines of Debian's packages are compared where all is compared; else all of them, some 640.
const SCRIPT_LINES: u64 = 60;

/// `cargo xtask interop`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let only: Option<String> = args.value("--only")?;
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if !PARTS.into_iter().any(wanted) {
        return Err(format!("`--only` is one of {}", PARTS.join(", ")).into());
    }
    let databases: PathBuf = args.value("--databases")?.unwrap_or_else(rrd::databases);
    let tool = if wanted("ctf") || wanted("perfetto") {
        Some(tool(&mut args)?)
    } else {
        None
    };
    let python: Option<PathBuf> = args.value("--python")?;
    let events: u64 = args.value("--events")?.unwrap_or(20_000);
    let rounds: u64 = args.value("--rounds")?.unwrap_or(500);
    let seed: u64 = args.value("--seed")?.unwrap_or(1);
    let graphs: u64 = args.value("--graphs")?.unwrap_or(2_000);
    let command_lines: Option<PathBuf> = args.value("--command-lines")?;
    let commands = commands::Options::take(&mut args, seed)?;
    args.finish()?;
    let kymo = match (&only, &commands.ours) {
        (Some(only), Some(ours))
            if ["graphs", "graph-scripts", "pages", "kills", "symbols"].contains(&&**only) =>
        {
            ours.clone()
        }
        _ => build_kymo(false)?,
    };
    let mut counts = Counts::default();
    if let Some(tool) = &tool {
        if wanted("ctf") {
            counts.add(ctf::run(&kymo, tool, events)?);
        }
        if wanted("perfetto") {
            let python = perfetto::python(python.clone())?;
            counts.add(perfetto::run(&kymo, &python, tool, events, &databases)?);
        }
    }
    if wanted("analyses") {
        counts.add(analyses::run(&kymo, python.as_deref(), seed)?);
    }
    if wanted("symbols") {
        counts.add(symbols::run(&kymo)?);
    }
    if wanted("tracing") {
        counts.add(tracing::run(&kymo)?);
    }
    if wanted("rrd") {
        counts.add(rrd::run(&kymo, &databases)?);
    }
    if wanted("engine") {
        counts.add(engine::run(rounds, seed)?);
    }
    if wanted("commands") {
        counts.add(commands::run(&commands)?);
    }
    if only.as_deref() == Some("graphs") {
        counts.add(graphs::run(&graphs::Options {
            kymo: &kymo,
            databases: &databases,
            lines: graphs,
            seed,
            tolerated: 0,
            command_lines: command_lines.as_deref(),
        })?);
    } else if only.is_none() {
        counts.add(graphs::run(&graphs::Options::sample(&kymo, &databases))?);
    }
    if wanted("graph-scripts") {
        let most = only.as_ref().map_or(SCRIPT_LINES, |_| graphs);
        let folder = tempfile::tempdir()?;
        match graphs::scripts::collect(folder.path(), most)? {
            Some(lines) => counts.add(graphs::run(&graphs::Options {
                kymo: &kymo,
                databases: &databases,
                lines: 0,
                seed,
                tolerated: 0,
                command_lines: Some(&lines),
            })?),
            None => println!("graphs of Debian's packages are left out"),
        }
    }
    if wanted("pages") {
        counts.add(pages::run(&kymo)?);
    }
    if wanted("serve") {
        counts.add(serve::run(&kymo)?);
    }
    if wanted("collectd") {
        counts.add(collectd::run(&kymo)?);
    }
    if only.as_deref() == Some("queries") {
        counts.add(queries::run(&kymo, python.as_deref(), seed)?);
    } else if only.is_none() {
        counts.add(queries::sample(&kymo, python.as_deref(), seed)?);
    }
    // A few seconds of them are in the usual run.
    if only.is_none() || only.as_deref() == Some("kills") {
        let count = if only.is_none() { 10 } else { commands.kills };
        counts.add(killed::run(&kymo, python.as_deref(), count, seed)?);
    }
    // Clients come from PyPI.
    if only.as_deref() == Some("taking") {
        counts.add(taking::run(&kymo, python.as_deref())?);
    }
    if wanted("soak") {
        let time = std::time::Duration::from_secs(20);
        crate::soak::soak(&kymo, time, &mut |what, holds| counts.holds(what, holds))?;
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    if counts.failed == 0 {
        Ok(())
    } else {
        Err("kymo and its peers differ".into())
    }
}

/// How many comparisons passed and failed.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Notes whether something holds.
    fn holds(&mut self, what: &str, holds: bool) {
        if holds {
            self.passed += 1;
            println!("ok      {what}");
        } else {
            self.failed += 1;
            println!("FAILED  {what}");
        }
    }

    /// Notes how many lines are equal, or why they are not.
    fn lines(&mut self, what: &str, compared: Outcome<usize>) {
        match compared {
            Ok(lines) => self.holds(&format!("{lines:>6} lines  {what}"), true),
            Err(why) => {
                self.holds(what, false);
                println!("{why}");
            }
        }
    }

    /// Notes whether two texts or files are equal, and where they begin to differ.
    fn equal(&mut self, what: &str, ours: &[u8], theirs: &[u8]) {
        self.holds(what, ours == theirs);
        if ours != theirs {
            let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
            let line = ours[..same].iter().filter(|&&byte| byte == b'\n').count() + 1;
            let show = |text: &[u8]| {
                let begin = text[..same]
                    .iter()
                    .rposition(|&byte| byte == b'\n')
                    .map_or(0, |newline| newline + 1);
                let rest = &text[begin..];
                let end = rest.iter().position(|&byte| byte == b'\n');
                rest[..end.unwrap_or(rest.len()).min(200)]
                    .escape_ascii()
                    .to_string()
            };
            println!("line {line}, byte {same}");
            println!("kymo: {}\npeer: {}", show(ours), show(theirs));
        }
    }
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let read =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths = read
        .map(|entry| Ok(entry?.path()))
        .collect::<Outcome<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
