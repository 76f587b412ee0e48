//! What kymo-tracing records, as kymo and babeltrace2 print it.

use std::path::Path;

use super::Counts;
use super::ctf::compare;
use crate::Outcome;
use crate::process::{build_all, command, hear, require};

/// Options of both programs.
const WAYS: &[&[&str]] = &[
    &["--clock-gmt"],
    &["--clock-cycles"],
    &["--names=all", "--fields=all"],
];

/// Records a program in each way, and compares; prints a line for each comparison.
pub(super) fn run(kymo: &Path) -> Outcome<Counts> {
    require("babeltrace2", "babeltrace2")?;
    let program = build_all()?.join("examples/program");
    let folder = tempfile::tempdir()?;
    let mut counts = Counts::default();
    for kind in ["files", "mapped", "small-files", "ctf2"] {
        let trace = folder.path().join(kind);
        let said = hear(command(&program).arg(&trace).arg(kind))?;
        if said.code != Some(0) {
            return Err(format!("the program that records: {}", said.err).into());
        }
        let checked = hear(command(kymo).arg("check").arg(&trace))?;
        counts.holds(&format!("kymo check of {kind}"), checked.code == Some(0));
        // babeltrace2 reads CTF 2 since 2.1.
        for way in WAYS.iter().filter(|_| kind != "ctf2") {
            let options: Vec<String> = way.iter().map(|option| (*option).to_owned()).collect();
            let shown = format!("{} of {kind}", options.join(" "));
            let compared = compare(kymo, &options, std::slice::from_ref(&trace));
            counts.lines(&shown, compared);
        }
    }
    Ok(counts)
}
