//! Runs `kymo-query`.

#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod cluster;
pub(crate) mod queries;
pub(crate) mod server;
pub(crate) mod trace;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// What a run printed.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Variables of the environment of all processes of a test.
pub(crate) static ENVIRONMENT: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Runs the program in the root of the repository.
pub(crate) fn run(words: &[&str]) -> Run {
    run_with(words, &[])
}

/// Runs the program with variables of the environment.
pub(crate) fn run_with(words: &[&str], variables: &[(&str, &str)]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo-query"))
        .args(words)
        .current_dir(file(""))
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .env("KYMO_CLUSTER_TOKEN", "a secret of tests")
        .envs(ENVIRONMENT.get().into_iter().flatten().cloned())
        .envs(variables.iter().copied())
        .output()
        .expect("the program runs");
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("it prints UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The rows of a query as JSON.
pub(crate) fn rows(sql: &str, inputs: &[&str], options: &[&str]) -> Vec<serde_json::Value> {
    let words: Vec<&str> = options
        .iter()
        .chain(&["--format", "json", sql])
        .chain(inputs)
        .copied()
        .collect();
    let run = run(&words);
    assert_eq!(run.code, 0, "{sql}: {}", run.stderr);
    let lines = run.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

/// One number.
pub(crate) fn number(sql: &str, inputs: &[&str]) -> i64 {
    let rows = rows(sql, inputs, &[]);
    let value = rows[0].as_object().and_then(|row| row.values().next());
    value
        .and_then(serde_json::Value::as_i64)
        .unwrap_or_else(|| panic!("{sql}: {rows:?}"))
}

/// The rows of a query as texts, in an order that depends on the statement alone.
pub(crate) fn answer(sql: &str, inputs: &[&str], options: &[&str]) -> Vec<String> {
    let rows = rows(sql, inputs, options);
    let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    if !sql.contains("ORDER BY") {
        rows.sort();
    }
    rows
}

/// Copies of a trace, so that there are several packets for each worker.
pub(crate) fn copies(directory: &Path, count: usize) -> Vec<String> {
    let mut paths = Vec::new();
    for number in 0..count {
        let copy = directory.join(format!("copy-{number}"));
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(file(queries::TRACE))
            .arg(&copy)
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        paths.push(copy.to_str().unwrap().to_owned());
    }
    paths
}
