//! The page of `kymo view` in Chromium: when it draws, how it moves, what it costs.

use std::path::Path;

use crate::args::Args;
use crate::process::{build_kymo, command, root};
use crate::{Outcome, make_trace, view_tests};

/// Copies of each of the two streams of the trace that is repeated: 64 tracks.
const COPIES: u64 = 32;

/// `cargo xtask bench view`.
pub(super) fn run(mut args: Args) -> Outcome {
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let databases: usize = args.value("--rrds")?.unwrap_or(2_000);
    let keep = args.flag("--keep");
    args.finish()?;
    view_tests::install()?;
    let kymo = build_kymo(true)?;
    let work = root().join("target/bench");
    let trace = work.join(format!("view-{events}"));
    if !trace.is_dir() {
        eprintln!("making a trace of {events} events");
        let partial = trace.with_extension("partial");
        if partial.is_dir() {
            std::fs::remove_dir_all(&partial)?;
        }
        make_trace::make(&root().join(make_trace::USUAL), events, COPIES, &partial)?;
        std::fs::rename(&partial, &trace)?;
    }
    let tree = work.join(format!("view-rrds-{databases}"));
    if !tree.is_dir() {
        make_databases(&kymo, databases, &tree)?;
    }
    println!(
        "{events} events on 64 tracks, {databases} databases; bounds in brackets are for 100,000,000 events and 20,000 databases\n"
    );
    let cache = work.join("view-cache");
    let words = [Path::new("bench.mjs"), &trace, &cache, &tree];
    let words: Vec<String> = words
        .iter()
        .map(|word| word.display().to_string())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let measured = view_tests::node("node", &words, &kymo);
    if !keep {
        for directory in [&trace, &cache, &tree] {
            if directory.is_dir() {
                std::fs::remove_dir_all(directory)?;
            }
        }
    }
    measured
}

/// Makes a tree of databases, 100 in each directory, of one that is copied.
fn make_databases(kymo: &Path, databases: usize, tree: &Path) -> Outcome {
    std::fs::create_dir_all(tree)?;
    let first = tree.join("first.rrd");
    let mut create = command(kymo);
    create.args(["rrd", "create"]).arg(&first);
    create.args([
        "--start",
        "999999900",
        "--step",
        "300",
        "DS:v:GAUGE:600:U:U",
        "RRA:AVERAGE:0.5:1:288",
        "RRA:MAX:0.5:12:168",
    ]);
    let readings = (1..=288).map(|at| format!("{}:{}", 999_999_900 + at * 300, at * at % 97));
    let mut update = command(kymo);
    update.args(["rrd", "update"]).arg(&first).args(readings);
    for mut command in [create, update] {
        if !command.status()?.success() {
            return Err(format!("{command:?} failed").into());
        }
    }
    for at in 0..databases {
        let directory = tree.join(format!("host-{:03}", at / 100));
        std::fs::create_dir_all(&directory)?;
        std::fs::copy(&first, directory.join(format!("load-{at}.rrd")))?;
    }
    std::fs::remove_file(&first)?;
    Ok(())
}
