//! Command lines of what draws graphs in Debian's packages.
//!
//! Munin, Cacti, SmokePing, collectd's contrib and mailgraph are downloaded and unpacked, not installed, and their
//! own code makes the command lines: `scripts/scripts.py` has it run. Their texts are not in the repository, since
//! their licences are not its own.

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::process::{command, hear, require};

/// What the run needs, by name.
const TOOLS: [(&str, &str); 7] = [
    ("scripts.py", include_str!("scripts/scripts.py")),
    ("RRDs.pm", include_str!("scripts/RRDs.pm")),
    ("munin.pl", include_str!("scripts/munin.pl")),
    ("smokeping.pl", include_str!("scripts/smokeping.pl")),
    ("collectd.pl", include_str!("scripts/collectd.pl")),
    ("collectd.php", include_str!("scripts/collectd.php")),
    ("cacti.php", include_str!("scripts/cacti.php")),
];

/// Writes command lines and makes their databases below `folder`; returns the file that has the lines, at most so
/// many, or nothing if no package can be had.
///
/// # Errors
///
/// If a file cannot be written, or a program that makes databases fails.
pub(crate) fn collect(folder: &Path, most: u64) -> Outcome<Option<PathBuf>> {
    require("python3", "python3")?;
    require("rrdtool", "rrdtool")?;
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools)?;
    for (name, text) in TOOLS {
        std::fs::write(tools.join(name), text)?;
    }
    let mut collector = command("python3");
    collector
        .arg(tools.join("scripts.py"))
        .arg(folder.join("run"));
    let said = hear(collector.arg(most.to_string()))?;
    // What was left out, and why.
    eprint!("{}", said.err);
    if said.code != Some(0) {
        return Err(format!("scripts.py fails: {}", said.err.trim()).into());
    }
    if said.out.is_empty() {
        return Ok(None);
    }
    let lines = folder.join("lines");
    std::fs::write(&lines, &said.out)?;
    Ok(Some(lines))
}
