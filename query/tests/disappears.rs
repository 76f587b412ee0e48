//! Recordings that can no longer be read, or are others than a scheduler's: no row is missing without an error.
#![cfg(feature = "remote")]

mod common;

use std::path::Path;

use common::cluster::{Cluster, Node};
use common::server::{Server, Wrong};
use common::{Run, file, trace};

/// So many that the parts of a file that are fetched to find packets are not all of it.
const EVENTS: u64 = 50_000;

fn write(directory: &Path, begin: u64) {
    trace::write(directory, begin, EVENTS);
}

/// A server with a trace.
fn server(name: &str) -> Server {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 0);
    let server = Server::new();
    server.add(name, directory.path());
    server
}

fn ask(server: &Server, words: &[&str]) -> Run {
    common::run_with(
        &[&["--format", "csv"], words].concat(),
        &[
            ("AWS_ENDPOINT_URL", &format!("http://{}", server.address)),
            ("AWS_ACCESS_KEY_ID", "somebody"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ],
    )
}

const COUNT: &str = "SELECT count(*), sum(value) FROM beat";

#[test]
fn no_row_is_missing_without_an_error() {
    let server = server("b/trace");
    let web = format!("http://{}/b", server.address);
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("beat.parquet");
    let sql = "SELECT * FROM beat";
    let trace = directory.path().join("trace");
    write(&trace, 0);
    let words = ["-o", table.to_str().unwrap(), sql, trace.to_str().unwrap()];
    let made = common::run(&words);
    assert_eq!(made.code, 0, "{}", made.stderr);
    server.add("b/beat.parquet", &table);
    for (sql, url) in [
        (COUNT, "s3://b/trace"),
        (COUNT, &format!("{web}/trace")),
        (COUNT, &format!("{web}/beat.parquet")),
        (
            "SELECT event, count(*) FROM events GROUP BY event",
            "s3://b/trace",
        ),
        (
            "SELECT * FROM events ORDER BY timestamp DESC LIMIT 3",
            "s3://b/trace",
        ),
        ("SELECT count(*) FROM losses", "s3://b/trace"),
        (
            "SELECT count(fields) FROM packets",
            &format!("{web}/trace/"),
        ),
    ] {
        server.set(Wrong::Nothing);
        let whole = ask(&server, &[sql, url]);
        assert_eq!(whole.code, 0, "{sql}: {}", whole.stderr);
        let requests = server.requests().len();
        let mut errors = 0;
        for count in (0..requests).step_by(requests.div_ceil(9)) {
            server.set(Wrong::GoneAfter(count));
            let part = ask(&server, &[sql, url]);
            if part.code == 0 {
                // All that it needs had come.
                assert_eq!(part.stdout, whole.stdout, "{sql} {url} after {count}");
            } else {
                errors += 1;
                let reasons = ["404", "not found", "No files found", "no longer exists"];
                let is_said = reasons.iter().any(|reason| part.stderr.contains(reason));
                assert!(is_said, "{}", part.stderr);
            }
        }
        assert!(errors > 3, "{sql} {url}");
    }
    // A file that would not be whole is not written.
    server.set(Wrong::Nothing);
    assert_eq!(ask(&server, &[COUNT, "s3://b/trace"]).code, 0);
    let requests = server.requests().len();
    server.set(Wrong::GoneAfter(requests - 1));
    let rows = directory.path().join("rows.csv");
    let part = ask(
        &server,
        &["-o", rows.to_str().unwrap(), sql, "s3://b/trace"],
    );
    assert_eq!(part.code, 1, "{}", part.stderr);
    assert!(!rows.exists());
}

#[test]
fn a_cluster_says_what_disappears_and_finds_it_again() {
    let server = server("b/trace");
    let url = format!("http://{}/b/trace", server.address);
    let cluster = Cluster::new(1);
    let shared = |sql: &str| ask(&server, &[&cluster.options()[..], &[sql, &url]].concat());
    let whole = ask(&server, &[COUNT, &url]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    // Before the worker has opened it.
    let gone = cluster.ask_and(&[COUNT, &url], || server.set(Wrong::GoneAfter(0)));
    assert_eq!(gone.code, 1, "{}", gone.stderr);
    assert!(
        gone.stderr.contains(&url) && gone.stderr.contains("404"),
        "{}",
        gone.stderr
    );
    server.set(Wrong::Nothing);
    // A worker that has it open, and has read a part of it.
    let few = shared("SELECT count(*) FROM beat WHERE timestamp < to_timestamp_nanos(10)");
    assert_eq!(few.code, 0, "{}", few.stderr);
    let gone = cluster.ask_and(&[COUNT, &url], || server.set(Wrong::GoneAfter(0)));
    assert_eq!(gone.code, 1, "{}", gone.stderr);
    assert!(
        gone.stderr.contains(&url) && gone.stderr.contains("404"),
        "{}",
        gone.stderr
    );
    server.set(Wrong::Nothing);
    let again = shared(COUNT);
    assert_eq!(
        (again.code, &again.stdout),
        (0, &whole.stdout),
        "{}",
        again.stderr
    );
}

#[test]
fn a_worker_with_other_files_is_not_believed() {
    let nodes = tempfile::tempdir().unwrap();
    let (here, there) = (nodes.path().join("one"), nodes.path().join("other"));
    // As large, and later.
    write(&here.join("trace"), 0);
    write(&there.join("trace"), 5);
    let cluster = Cluster::on(1, &Node::new(&here, &[]), Node::new(&there, &[]));
    let answer = common::run(&[&cluster.options()[..], &[COUNT, "trace"]].concat());
    assert_eq!(answer.code, 1, "{}", answer.stdout);
    let expected = "not those of the scheduler";
    assert!(answer.stderr.contains(expected), "{}", answer.stderr);
}

#[test]
fn a_worker_survives_files_that_are_truncated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&path, 0);
    let cluster = Cluster::new(1);
    let words = [COUNT, path.to_str().unwrap()];
    let shared = || common::run(&[&cluster.options()[..], &words].concat());
    assert_eq!(shared().code, 0);
    let cut = cluster.ask_and(&words, || {
        let stream = path.join("stream1");
        let file = std::fs::File::options().write(true).open(stream).unwrap();
        file.set_len(100_000).unwrap();
    });
    assert_eq!(cut.code, 1, "{}", cut.stdout);
    assert!(
        cut.stderr.contains("truncated") || cut.stderr.contains("not those"),
        "{}",
        cut.stderr
    );
    cluster.wait_until(|cluster| cluster.metric("workers") == 1.0);
    assert!(!cluster.log().contains("worker left"), "{}", cluster.log());
    // As it is now, with its damage.
    assert_eq!(shared().stdout, common::run(&words).stdout);
}

#[test]
fn workers_give_fetched_space_back() {
    let server = server("b/one");
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 7);
    server.add("b/two", directory.path());
    // Either of them fits, but not both.
    let variables = [("KYMO_SPOOL_LIMIT", "8M")];
    let worker = Node::new(&file(""), &variables);
    let cluster = Cluster::on(1, &Node::new(&file(""), &[]), worker);
    for name in ["one", "two", "one"] {
        let url = format!("http://{}/b/{name}", server.address);
        let shared = ask(&server, &[&cluster.options()[..], &[COUNT, &url]].concat());
        let alone = ask(&server, &[COUNT, &url]);
        assert_eq!(
            (shared.code, shared.stdout),
            (0, alone.stdout),
            "{}",
            shared.stderr
        );
    }
    let log = cluster.worker_log();
    assert!(
        log.contains("recordings closed, temporary storage is half full"),
        "{log}"
    );
    assert_eq!(cluster.metric("units_lost_total"), 0.0, "{}", cluster.log());
}
