//! What the program writes to a terminal.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};

use nix::pty::{OpenptyResult, openpty};
use tempfile::TempDir;

/// Standard output of a run that must be good.
fn shown(args: &[&str]) -> String {
    let OpenptyResult { master, slave } = openpty(None, None).expect("a terminal");
    let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .env("NO_COLOR", "1")
        .env_remove("BABELTRACE_TERM_COLOR")
        .stdin(Stdio::null())
        .stdout(slave)
        .stderr(Stdio::null())
        .spawn()
        .expect("kymo runs");
    let mut shown = Vec::new();
    // Reading a terminal whose writers are all gone ends with an error.
    let _ = File::from(master).read_to_end(&mut shown);
    assert_eq!(child.wait().expect("kymo ends").code(), Some(0), "{args:?}");
    String::from_utf8(shown).expect("UTF-8")
}

#[test]
fn recordings_give_no_commands() {
    let trace = TempDir::new().expect("a directory for the test");
    let metadata = "trace { major = 1; minor = 8; byte_order = le; };
        event { name = e; fields := struct { string s; }; };";
    fs::write(trace.path().join("metadata"), metadata).expect("metadata");
    fs::write(trace.path().join("stream"), b"\x1b]0;gotcha\x07\0").expect("a stream");
    let path = trace.path().to_str().expect("UTF-8");
    for format in ["pretty", "json", "csv"] {
        for follow in [&[][..], &["--follow", "--limit", "1"]] {
            let shown = shown(&[&["print", "--format", format], follow, &[path]].concat());
            assert!(shown.contains("gotcha"), "{format}: {shown:?}");
            let is_command = |c: char| c.is_control() && !matches!(c, '\r' | '\n');
            assert!(!shown.contains(is_command), "{format}: {shown:?}");
        }
    }
}
