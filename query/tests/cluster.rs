//! A cluster answers as a single process does, whatever happens to its workers.

mod common;

use std::path::Path;

use common::cluster::Cluster;
use common::queries::{LOSSES, QUERIES, TRACE};
use common::{answer, file, run};

/// A trace with several packets for each worker.
fn copies(directory: &Path, count: usize) -> Vec<String> {
    let mut paths = Vec::new();
    for number in 0..count {
        let copy = directory.join(format!("copy-{number}"));
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(file(TRACE))
            .arg(&copy)
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        paths.push(copy.to_str().unwrap().to_owned());
    }
    paths
}

/// Asks while workers hold their units, ends some of them with SIGKILL, and lets the others go on.
fn answer_with_deaths(cluster: &mut Cluster, sql: &str, inputs: &[&str]) -> Vec<String> {
    cluster.workers.iter().for_each(|of| of.signal("STOP"));
    let running = cluster.metric("units_running");
    assert_eq!(running, 0.0, "{}", cluster.log());
    let rows = std::thread::scope(|scope| {
        let cluster = &*cluster;
        let asked = scope.spawn(|| answer(sql, inputs, &cluster.options()));
        // A plan without recordings has no units.
        let begun = std::time::Instant::now();
        cluster.wait_until(|of| {
            of.metric("units_running") > 0.0 || asked.is_finished() || begun.elapsed().as_secs() > 5
        });
        let (dying, living) = cluster.workers.split_at(2);
        dying.iter().for_each(|of| of.signal("KILL"));
        living.iter().for_each(|of| of.signal("CONT"));
        asked.join().unwrap()
    });
    cluster.workers.drain(..2);
    cluster.wait_until(|of| of.metric("workers") as usize == of.workers.len());
    cluster.add_worker();
    cluster.add_worker();
    rows
}

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
            0 => answer_with_deaths(&mut cluster, sql, &inputs),
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
    cluster.workers[0].signal("STOP");
    let gone = std::thread::scope(|scope| {
        let cluster = &cluster;
        let asked = scope.spawn(|| ask(cluster, sql, &[&paths[0]]));
        cluster.wait_until(|of| of.metric("units_running") > 0.0);
        std::fs::remove_dir_all(&paths[0]).unwrap();
        cluster.workers[0].signal("CONT");
        asked.join().unwrap()
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
    cluster.wait_until(|of| of.metric("workers") == 0.0);
    assert!(cluster.get("/-/ready").starts_with("HTTP/1.1 503"));
}
