//! Instructions of an update through the library, of a file that stays open: counted, and so the same
//! on every run.

use std::path::Path;

use super::instructions;
use crate::Outcome;
use crate::args::Args;
use crate::process::{build_example, command, require, root};

/// `cargo xtask bench engine`.
pub(super) fn run(args: Args) -> Outcome {
    args.finish()?;
    require("valgrind", "valgrind")?;
    let program = build_example("kymo-rrd", "updates")?;
    let folder = root().join("target/bench/engine");
    std::fs::create_dir_all(&folder)?;
    println!("user instructions of an update of one data source and four archives\n");
    for form in ["x86_64", "s390x", "x86", "portable"] {
        let count = |updates: u64| count(&program, &folder, form, updates);
        // What comes before the updates is in both.
        let (few, many) = (1000, 11_000);
        let each = (count(many)? - count(few)?) / (many - few) as f64;
        println!("{form:<10} {each:>8.0}");
    }
    Ok(())
}

/// The number of instructions of the program for `updates` updates.
fn count(program: &Path, folder: &Path, form: &str, updates: u64) -> Outcome<f64> {
    let mut updating = command(program);
    updating.arg(folder.join("updated.rrd"));
    instructions(updating.args([&updates.to_string(), form]))
}
