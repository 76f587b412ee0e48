//! Lines of code without tests, by crate.

use std::collections::BTreeMap;

use crate::Outcome;
use crate::args::Args;
use crate::process::{command, hear, root};

/// `cargo xtask count`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let base: Option<String> = args.value("--base")?;
    args.finish()?;
    let now = count(None)?;
    let before = match &base {
        Some(revision) => count(Some(revision))?,
        None => BTreeMap::new(),
    };
    let names: std::collections::BTreeSet<_> = now.keys().chain(before.keys()).collect();
    let show = |name: &str, now: u64, before: u64| match base.is_some() {
        true => println!("{name:<16} {now:>8} {:>+8}", now as i64 - before as i64),
        false => println!("{name:<16} {now:>8}"),
    };
    let count = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
    for name in names {
        show(name, count(&now, name), count(&before, name));
    }
    show("all", now.values().sum(), before.values().sum());
    Ok(())
}

/// The lines of each crate: as they are in the working tree, or were in a revision.
fn count(revision: Option<&str>) -> Outcome<BTreeMap<String, u64>> {
    let git = |arguments: &[&str]| -> Outcome<Vec<u8>> {
        let said = hear(command("git").current_dir(root()).args(arguments))?;
        match said.code {
            Some(0) => Ok(said.out),
            _ => Err(format!("git {}: {}", arguments.join(" "), said.err.trim()).into()),
        }
    };
    let files = match revision {
        None => git(&["ls-files", "--cached", "--others", "--exclude-standard"])?,
        Some(revision) => git(&["ls-tree", "-r", "--name-only", revision])?,
    };
    let mut counts = BTreeMap::new();
    for file in String::from_utf8(files)?.lines() {
        let Some(name) = crate_of(file) else {
            continue;
        };
        let text = match revision {
            None => match std::fs::read(root().join(file)) {
                Ok(text) => text,
                // It was removed, and git does not know.
                Err(_) => continue,
            },
            Some(revision) => git(&["show", &format!("{revision}:{file}")])?,
        };
        *counts.entry(name.to_string()).or_default() += lines(&String::from_utf8_lossy(&text));
    }
    Ok(counts)
}

/// The crate that a file with code is of; `None` of tests, examples and other files.
fn crate_of(file: &str) -> Option<&str> {
    let parts: Vec<_> = file.split('/').collect();
    let is_test = |part: &&str| matches!(*part, "tests" | "tests.rs" | "testing.rs" | "oracle.rs");
    match parts.as_slice() {
        ["crates", name, "src", rest @ ..]
            if file.ends_with(".rs") && !rest.iter().any(is_test) =>
        {
            Some(name)
        }
        ["xtask", "src", ..] if file.ends_with(".rs") => Some("xtask"),
        _ => None,
    }
}

/// The lines of a file without its module of tests, which is at its end, where it has one.
fn lines(text: &str) -> u64 {
    let mut count = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let begins_tests = line == "#[cfg(test)]"
            && lines
                .peek()
                .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if begins_tests {
            break;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        assert_eq!(lines("a\n\nb\n#[cfg(test)]\nmod tests {\n}\n"), 3);
        assert_eq!(lines("#[cfg(test)]\nmod tests;\nfn f() {}\n"), 3);
        assert_eq!(crate_of("crates/kymo-io/src/net/mod.rs"), Some("kymo-io"));
        assert_eq!(crate_of("crates/kymo-io/src/net/tests.rs"), None);
        assert_eq!(crate_of("crates/kymo-io/tests/net.rs"), None);
    }
}
