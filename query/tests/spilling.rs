//! What does not fit into the memory that is allowed goes to temporary files.

mod common;

use common::{run, trace};

#[test]
fn answers_do_not_depend_on_memory() {
    let directory = tempfile::tempdir().unwrap();
    trace::write(directory.path(), 0, 100_000);
    let path = directory.path().to_str().unwrap();
    for sql in [
        // Hash joins keep one side in memory: it is planned again.
        "SELECT count(*), max(a.timestamp), sum(b.value), min(a.recording) FROM events a JOIN beat b ON a.ticks = b.ticks",
        "SELECT count(*), sum(c) FROM (SELECT ticks, event, count(*) AS c FROM events GROUP BY ticks, event)",
        "SELECT sum(n * (ticks % 7)) FROM (SELECT ticks, row_number() OVER (ORDER BY value, ticks DESC) AS n FROM beat)",
    ] {
        let ask = |memory: &str| {
            let words = [
                "--memory",
                memory,
                "--threads",
                "2",
                "--format",
                "csv",
                sql,
                path,
            ];
            let answer = run(&words);
            assert_eq!(answer.code, 0, "{sql}: {}", answer.stderr);
            answer.stdout
        };
        assert_eq!(ask("16M"), ask("2G"), "{sql}");
    }
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
