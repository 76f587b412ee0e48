//! The commands of README.md and of the guides print what these say, word for word.
//!
//! A document's `console` blocks are one session of a shell in a directory like a clone: lines behind `$ ` are
//! commands, those behind `> ` go on with them, all others are what is printed. `KYMO_UPDATE=1` writes what is printed
//! into the documents; look at the difference.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const KYMO: &str = env!("CARGO_BIN_EXE_kymo");

/// Ends what a command printed; its exit status follows.
const END: char = '\u{1}';

/// A part of a document.
enum Part {
    Text(String),
    /// A command, as the document writes it, and what is printed.
    Command {
        shown: String,
        printed: String,
    },
}

fn parts(document: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut is_console = false;
    for line in document.split_inclusive('\n') {
        let is_fence = line.starts_with("```");
        if is_fence {
            is_console = line == "```console\n";
        }
        match parts.last_mut() {
            _ if is_console && line.starts_with("$ ") => parts.push(Part::Command {
                shown: line.to_string(),
                printed: String::new(),
            }),
            Some(Part::Command { shown, printed })
                if is_console && printed.is_empty() && line.starts_with("> ") =>
            {
                shown.push_str(line);
            }
            Some(Part::Command { printed, .. }) if is_console => printed.push_str(line),
            Some(Part::Text(text)) => text.push_str(line),
            _ => parts.push(Part::Text(line.to_string())),
        }
    }
    parts
}

/// What the session of a document prints; `None` without a command.
fn session(parts: &[Part], clone: &Path) -> Option<Output> {
    let mut script = String::from("trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT\n");
    let mut count = 0;
    for part in parts {
        if let Part::Command { shown, .. } = part {
            let lines = shown.lines().map(|line| &line[2..]);
            let command = lines.collect::<Vec<_>>().join("\n");
            // The end stands in a line of its own, whatever the command printed.
            let _ = write!(script, "{command}\nprintf '\\001%d\\n' $?\n");
            count += 1;
        }
    }
    let programs = Path::new(KYMO).parent().expect("a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("timeout");
    shell
        .args(["120", "bash", "-c", &script])
        .current_dir(clone)
        .env_clear()
        .env("PATH", format!("{programs}:{path}"))
        .env("HOME", clone)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC");
    (count > 0).then(|| shell.output().expect("timeout and bash run"))
}

/// Runs a document; returns how many commands it has.
fn run(document: &str) -> usize {
    let path = Path::new(ROOT).join(document);
    let mut parts = parts(&std::fs::read_to_string(&path).expect(document));
    // A directory like a clone, in which files can be written.
    let clone = TempDir::new().expect("a directory for the test");
    for name in ["examples", "crates"] {
        let from = Path::new(ROOT).join(name).canonicalize().expect(name);
        std::os::unix::fs::symlink(from, clone.path().join(name)).expect("a link");
    }
    let Some(output) = session(&parts, clone.path()) else {
        return 0;
    };
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut rest = printed.as_str();
    let updates = std::env::var_os("KYMO_UPDATE").is_some();
    let mut count = 0;
    for part in &mut parts {
        let Part::Command { shown, printed } = part else {
            continue;
        };
        let (found, after) = rest
            .split_once(END)
            .unwrap_or_else(|| panic!("{document}: {shown} has not ended:\n{rest}\n{errors}"));
        let (status, after) = after.split_once('\n').expect("a status");
        rest = after;
        assert_eq!(status, "0", "{document}: {shown}{found}\n{errors}");
        match updates {
            true => *printed = found.to_string(),
            false => assert_eq!(found, printed, "{document}: {shown}{errors}"),
        }
        count += 1;
    }
    if updates {
        let text = parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Command { shown, printed } => format!("{shown}{printed}"),
        });
        std::fs::write(&path, text.collect::<String>()).expect("written");
    }
    count
}

#[test]
fn recipes_of_the_readme() {
    assert!(run("README.md") >= 5);
}

#[test]
fn every_guide() {
    let mut guides = 0;
    for entry in std::fs::read_dir(Path::new(ROOT).join("docs/guides")).expect("docs/guides") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let commands = run(&format!("docs/guides/{name}"));
        // The notebook is run where the Python package is tested, the program of the library with the examples.
        if !matches!(name.as_ref(), "index.md" | "library.md" | "notebook.md") {
            assert!(commands >= 3, "{name}: {commands} commands");
            guides += 1;
        }
    }
    assert!(guides >= 7, "{guides} guides");
}
