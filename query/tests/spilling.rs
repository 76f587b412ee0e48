//! What does not fit into the memory that is allowed goes to temporary files.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{run, run_with, trace};

#[test]
fn answers_do_not_depend_on_memory() {
    let directory = tempfile::tempdir().unwrap();
    trace::write(directory.path(), 0, 50_000);
    let path = directory.path().to_str().unwrap();
    let ask = |sql: &str, memory: &str| {
        let limits = ["--memory", memory, "--threads", "2"];
        let answer = run(&[&limits[..], &["--format", "csv", sql, path]].concat());
        assert_eq!(answer.code, 0, "{sql}: {}", answer.stderr);
        answer.stdout
    };
    let join = "SELECT count(*), max(a.timestamp), sum(b.value), min(a.recording), min(a.track), min(a.stream) \
        FROM events a JOIN (SELECT * FROM beat WHERE ticks % 50 = 0) b ON a.ticks = b.ticks";
    let order = "SELECT sum(n * (ticks % 7)) \
        FROM (SELECT ticks, row_number() OVER (ORDER BY value, ticks DESC) AS n FROM beat)";
    for sql in [join, order] {
        assert_eq!(ask(sql, "16M"), ask(sql, "2G"), "{sql}");
    }
    // Hash joins keep one side in memory: it was planned again.
    let plan = ask(&format!("EXPLAIN ANALYZE {join}"), "16M");
    assert!(plan.contains("SortMergeJoinExec"), "{plan}");
}

/// Not even the names of the columns, which would be there twice if it were planned again.
#[test]
fn what_fails_before_its_first_row_prints_nothing() {
    for format in ["csv", "json", "parquet", "table"] {
        let sql = "SELECT arrow_cast('x' || event, 'Int64') AS number FROM events";
        let answer = run(&["--format", format, sql, "examples/lttng-small"]);
        assert_eq!(
            (answer.code, &*answer.stdout),
            (1, ""),
            "{format}: {}",
            answer.stderr
        );
    }
}

/// Needs more memory than there is.
const LARGE: &str = "SELECT value FROM generate_series(1, 1000000000) ORDER BY value DESC";

/// Starts a statement that takes long.
fn started(sql: &str, directory: &std::path::Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_kymo-query"))
        .args(["--memory", "16M", sql, "examples/lttng-small"])
        .current_dir(common::file(""))
        .env("TMPDIR", directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn no_temporary_file_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = started(LARGE, directory.path());
    let open = format!("/proc/{}/fd", process.id());
    let has_files = || {
        let files = std::fs::read_dir(&open).unwrap().flatten();
        let mut files = files.flat_map(|file| std::fs::read_link(file.path()));
        files.any(|file| file.starts_with(directory.path()))
    };
    let begun = Instant::now();
    while !has_files() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no temporary file"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn errors_name_the_directory_for_temporary_files() {
    let words = ["--memory", "16M", LARGE, "examples/lttng-small"];
    let answer = run_with(&words, &[("TMPDIR", "/none/such")]);
    assert_eq!((answer.code, &*answer.stdout), (1, ""), "{}", answer.stderr);
    for text in ["`/none/such`", "set TMPDIR"] {
        assert!(answer.stderr.contains(text), "{}", answer.stderr);
    }
}

/// A function does not hear that it is to stop.
#[cfg(unix)]
#[test]
fn interrupts_stop_functions() {
    let directory = tempfile::tempdir().unwrap();
    let sql = "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))";
    let process = started(sql, directory.path());
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    let number = process.id().to_string();
    let sent = Command::new("kill").args(["-INT", &number]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = process.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*stderr),
        (Some(1), "error: interrupted\n")
    );
}
