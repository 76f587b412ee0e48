//! A cluster answers as a single process does, whatever happens to its workers.

mod common;

use common::cluster::Cluster;
use common::queries::{LOSSES, QUERIES, TRACE};
use common::{answer, copies, file, run};

/// Compares some of the queries; every `deaths`th loses workers while it runs.
fn compare(queries: &[(&str, &[&str])], deaths: usize) {
    let mut cluster = Cluster::new(3);
    let directory = tempfile::tempdir().unwrap();
    let copies = copies(directory.path(), 8);
    for (number, (sql, inputs)) in queries.iter().enumerate() {
        // More of the trace, so that all workers have a part of it.
        let inputs: Vec<&str> = inputs
            .iter()
            .flat_map(|input| match *input == TRACE {
                true => copies.iter().map(String::as_str).collect(),
                false => vec![*input],
            })
            .collect();
        let alone = answer(sql, &inputs, &["--threads", "1"]);
        let shared = match number % deaths {
            0 => cluster.answer_with_deaths(sql, &inputs),
            _ => answer(sql, &inputs, &cluster.options()),
        };
        assert_eq!(alone, shared, "{sql}\n{}", cluster.log());
    }
    let log = cluster.log();
    assert!(log.contains("unit lost, is done again"), "{log}");
    assert!(log.contains("lost unit done"), "{log}");
    assert!(cluster.metric("units_lost_total") > 0.0);
    assert_eq!(cluster.metric("units_failed_total"), 0.0, "{log}");
}

#[test]
fn answers_are_those_of_one_process_though_workers_die() {
    // Ranges, filters, groups, joins, windows, as-of, and one without rows.
    let sample: Vec<_> = QUERIES.iter().copied().step_by(6).collect();
    compare(&sample, 5);
}

#[test]
#[ignore = "takes minutes"]
fn all_answers_are_those_of_one_process_though_workers_die() {
    compare(QUERIES, 10);
}

#[test]
fn a_slow_worker_costs_time_alone() {
    let cluster = Cluster::new(3);
    let directory = tempfile::tempdir().unwrap();
    let copies = copies(directory.path(), 6);
    let inputs: Vec<&str> = copies.iter().map(String::as_str).collect();
    for (sql, _) in QUERIES
        .iter()
        .filter(|(_, inputs)| *inputs == [TRACE])
        .step_by(12)
    {
        let alone = answer(sql, &inputs, &["--threads", "1"]);
        assert_eq!(alone, cluster.answer_slowly(sql, &inputs), "{sql}");
    }
    assert_eq!(cluster.metric("units_lost_total"), 0.0, "{}", cluster.log());
}

#[test]
fn what_goes_wrong_is_said() {
    let mut cluster = Cluster::new(1);
    assert!(cluster.get("/-/ready").starts_with("HTTP/1.1 200"));
    let ask = |cluster: &Cluster, sql: &str, inputs: &[&str]| {
        let options = cluster.options();
        let words: Vec<&str> = options
            .iter()
            .chain(&[sql])
            .chain(inputs)
            .copied()
            .collect();
        run(&words)
    };
    // Errors with their places, as without a cluster.
    let wrong = ask(&cluster, "SELECT nothing FROM events", &[TRACE]);
    assert_eq!(wrong.code, 2);
    let alone = run(&["SELECT nothing FROM events", TRACE]);
    assert_eq!(wrong.stderr, alone.stderr);
    // Damage and losses, too.
    let sql = "SELECT count(*) FROM events";
    let lossy = ask(&cluster, sql, &["--strict", LOSSES]);
    let alone = run(&["--strict", sql, LOSSES]);
    assert_eq!(
        (lossy.code, &lossy.stdout),
        (1, &alone.stdout),
        "{}",
        lossy.stderr
    );
    assert_eq!(alone.code, 1);
    let mut said: Vec<_> = lossy.stderr.lines().collect();
    let mut expected: Vec<_> = alone.stderr.lines().collect();
    said.sort_unstable();
    expected.sort_unstable();
    assert_eq!(said, expected);
    // What is not there.
    let missing = ask(&cluster, sql, &["/nowhere/trace"]);
    assert_eq!(missing.code, 3);
    assert!(
        missing.stderr.contains("/nowhere/trace"),
        "{}",
        missing.stderr
    );
    // A recording that disappears between planning and reading.
    let directory = tempfile::tempdir().unwrap();
    let paths = copies(directory.path(), 1);
    let gone = cluster.ask_and(&[sql, &paths[0]], || {
        std::fs::remove_dir_all(&paths[0]).unwrap();
    });
    assert_eq!(gone.code, 1, "{}", gone.stderr);
    assert!(gone.stderr.contains(&paths[0]), "{}", gone.stderr);
    // A client without the token is rejected.
    let stranger = std::process::Command::new(env!("CARGO_BIN_EXE_kymo-query"))
        .args(["--cluster", &cluster.address, sql, TRACE])
        .current_dir(file(""))
        .env("KYMO_CLUSTER_TOKEN", "another")
        .output()
        .unwrap();
    assert_eq!(stranger.status.code(), Some(2));
    let text = String::from_utf8_lossy(&stranger.stderr);
    assert!(text.contains("token"), "{text}");
    assert!(cluster.metric("connections_refused_total") > 0.0);
    // Without workers.
    cluster.workers.clear();
    cluster.wait_until(|cluster| cluster.metric("workers") == 0.0);
    assert!(cluster.get("/-/ready").starts_with("HTTP/1.1 503"));
}
