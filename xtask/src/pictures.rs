//! `cargo xtask pictures`: the picture of README.md, drawn by the program.

use std::ffi::OsString;
use std::path::Path;

use crate::Outcome;
use crate::args::Args;

/// Draws it.
pub(crate) fn run(args: Args) -> Outcome {
    args.finish()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    std::env::set_current_dir(root)?;
    // By CPU: sources of events are named by their paths, which are those of the machine.
    let words = [
        "kymo",
        "graph",
        "--clock-gmt",
        "--force",
        "--width",
        "900",
        "--count",
        "demo:*",
        "--per",
        "cpu_id",
        "examples/lttng-small",
        "-o",
        "docs/pictures/events.svg",
    ];
    kymo_cli::run(words.iter().map(OsString::from).collect());
    Ok(())
}
