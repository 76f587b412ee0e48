//! Tests of the page of `kymo view` in Chromium.

use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, require, root};

/// Checks the types of the page's modules, and runs its tests.
pub(crate) fn run(args: Args) -> Outcome {
    args.finish()?;
    require("npm", "npm")?;
    require("chromium", "chromium")?;
    let kymo = build_kymo(false)?;
    let tests = root().join("crates/kymo-view/web-tests");
    for words in [
        &["ci", "--no-audit", "--no-fund"][..],
        &["run", "types"],
        &["test"],
    ] {
        let mut npm = command("npm");
        npm.args(words).current_dir(&tests).env("KYMO", &kymo);
        if !npm.status()?.success() {
            return Err(format!("`npm {}` failed", words.join(" ")).into());
        }
    }
    Ok(())
}
