//! The recipes of README.md print what it says.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const KYMO: &str = env!("CARGO_BIN_EXE_kymo");

#[test]
fn recipes_print_what_the_readme_says() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README.md");
    // A directory like a clone, in which files can be written.
    let clone = TempDir::new().expect("a directory for the test");
    let examples = Path::new(ROOT)
        .join("examples")
        .canonicalize()
        .expect("examples");
    std::os::unix::fs::symlink(examples, clone.path().join("examples")).expect("a link");
    let programs = Path::new(KYMO).parent().expect("a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut commands = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for part in block.split("$ ").skip(1) {
            let (command, expected) = part.split_once('\n').expect("lines");
            let output = Command::new("bash")
                .args(["-c", command])
                .current_dir(clone.path())
                .env_clear()
                .env("PATH", format!("{programs}:{path}"))
                .env("HOME", clone.path())
                .env("TZ", "UTC")
                .output()
                .expect("bash runs");
            assert!(output.status.success(), "{command}: {output:?}");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                expected,
                "{command}"
            );
            commands += 1;
        }
    }
    assert!(commands >= 5, "{commands} commands");
    assert!(
        clone
            .path()
            .join("events.svg")
            .metadata()
            .expect("a picture")
            .len()
            > 1000
    );
}
