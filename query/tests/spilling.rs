//! What does not fit into the memory that is allowed goes to temporary files.

mod common;

use common::{run, trace};

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
