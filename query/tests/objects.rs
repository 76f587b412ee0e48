//! Recordings and Parquet files in object storage and on HTTP servers.
#![cfg(feature = "remote")]

mod common;

use std::path::Path;
use std::process::Command;

use common::server::{Server, Wrong};
use common::{Run, file};

const TRACE: &str = "examples/lttng-small";
const RRD: &str = "crates/kymo-rrd/tests/data/amd64/tiny.rrd";

/// Runs a query with a server as object storage.
fn ask(server: &Server, sql: &str, inputs: &[&str]) -> Run {
    common::run_with(
        &[&["--format", "csv", sql], inputs].concat(),
        &[
            ("AWS_ENDPOINT_URL", &format!("http://{}", server.address)),
            ("AWS_ACCESS_KEY_ID", "somebody"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ],
    )
}

/// Gives a server a Parquet file, and a directory of tables.
fn add_tables(server: &Server, directory: &Path) {
    let table = directory.join("ints.parquet");
    let sql = "SELECT * FROM \"demo:ints\"";
    let made = common::run(&["-o", table.to_str().unwrap(), sql, TRACE]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    server.add("b/ints.parquet", &table);
    server.add("b/tables/class=demo%3Aints/part-0.parquet", &table);
}

#[test]
fn objects_are_recordings() {
    let server = Server::new();
    server.add("b/traces/one", &file(TRACE));
    server.add("b/load.rrd", &file(RRD));
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("trace.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(file("examples"))
        .arg("-czf")
        .arg(&archive);
    assert!(tar.arg("lttng-small").status().unwrap().success());
    server.add("b/trace.tar.gz", &archive);
    // A directory of tables, and a file of one.
    add_tables(&server, directory.path());

    let web = format!("http://{}/b", server.address);
    let events =
        "SELECT event, cpu_id, count(*) FROM events GROUP BY event, cpu_id ORDER BY event, cpu_id";
    let samples =
        "SELECT series, count(*), sum(value) FROM samples_all GROUP BY series ORDER BY series";
    let ints = "SELECT count(*) AS n, sum(u8) AS s, max(u64) AS m FROM \"demo:ints\"";
    for (sql, there, here) in [
        (events, "s3://b/traces/one", TRACE),
        (events, "s3://b/traces/", TRACE),
        (events, "s3://b/trace.tar.gz", TRACE),
        (events, &format!("{web}/trace.tar.gz"), TRACE),
        (samples, "s3://b/load.rrd", RRD),
        (samples, &format!("{web}/load.rrd"), RRD),
        (events, &format!("{web}/traces/one/"), TRACE),
        (events, &format!("{web}/traces/one"), TRACE),
        (ints, &format!("{web}/tables/"), TRACE),
        (ints, "s3://b/tables", TRACE),
        (ints, "s3://b/tables/", TRACE),
    ] {
        let (far, near) = (ask(&server, sql, &[there]), ask(&server, sql, &[here]));
        assert_eq!(far.code, 0, "{there}: {}", far.stderr);
        assert_eq!(far.stdout, near.stdout, "{there}");
    }
    let sum = "SELECT count(*) AS n, sum(u8) AS s, max(u64) AS m FROM ints";
    let expected = ask(&server, ints, &[TRACE]).stdout;
    for there in ["s3://b/ints.parquet", &format!("{web}/ints.parquet")] {
        let far = ask(&server, sum, &[there]);
        assert_eq!((far.code, &far.stdout), (0, &expected), "{}", far.stderr);
    }
    // Together, one data stream file of a trace alone, and servers that are busy.
    server.set(Wrong::Busy);
    let all = ask(
        &server,
        "SELECT (SELECT count(*) FROM events) AS e, (SELECT count(*) FROM samples_all) AS s",
        &["s3://b/traces/one", "s3://b/load.rrd"],
    );
    assert_eq!(all.code, 0, "{}", all.stderr);
}

#[test]
fn wrong_answers_are_errors() {
    let server = Server::new();
    server.add("b/one", &file(TRACE));
    server.add("b/load.rrd", &file(RRD));
    let web = format!("http://{}/b", server.address);
    let count = "SELECT count(*) FROM events";
    for (wrong, url, expected) in [
        (Wrong::Nothing, "s3://b/none", "no object has this name"),
        (Wrong::Nothing, &*format!("{web}/none.rrd"), "404"),
        (Wrong::Nothing, &*format!("{web}/none/"), "404"),
        (Wrong::NoPages, &*format!("{web}/one/"), "does not list"),
        (Wrong::Status(403), &*format!("{web}/one/"), "denies access"),
        (Wrong::Nothing, "s3://", "BUCKET"),
        (Wrong::Nothing, &*format!("{web}/one?x=1"), "not supported"),
        (
            Wrong::NoRanges,
            &*format!("{web}/load.rrd"),
            "does not support ranges",
        ),
        (Wrong::OtherRange, "s3://b/load.rrd", "Requested"),
        (Wrong::Overflow, "s3://b/load.rrd", "cannot be understood"),
        (Wrong::Changes, "s3://b/load.rrd", "was changed"),
        (Wrong::Status(403), "s3://b/one", "denies access"),
        (
            Wrong::Status(401),
            &*format!("{web}/load.rrd"),
            "denies access",
        ),
        (Wrong::EndlessList, "s3://b/one", "length limit exceeded"),
    ] {
        server.set(wrong);
        let answer = ask(&server, count, &[url]);
        assert!(answer.code > 1, "{wrong:?} {url}: {}", answer.stdout);
        assert!(
            answer.stderr.contains(expected),
            "{wrong:?} {url}: {}",
            answer.stderr
        );
        assert!(
            answer.stderr.contains(url),
            "{wrong:?} {url}: {}",
            answer.stderr
        );
        assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
    }
    // What breaks off is asked for again, and what is too much is not taken.
    server.set(Wrong::Cut);
    let answer = ask(&server, count, &["s3://b/load.rrd"]);
    assert!(answer.code > 1, "{}", answer.stderr);
    let mut ranges = server.requests();
    ranges.retain(|request| request.contains("bytes="));
    assert!(ranges.len() > 2, "{ranges:?}");
    server.set(Wrong::TooMuch);
    let answer = ask(&server, count, &["s3://b/load.rrd"]);
    assert!(answer.code > 1, "{}", answer.stdout);
    assert!(
        answer.stderr.contains("length limit exceeded"),
        "{}",
        answer.stderr
    );
}

/// DataFusion asks for the parts of a Parquet file without a look at whether they belong together.
#[test]
fn parquet_files_that_change_are_errors() {
    let server = Server::new();
    let directory = tempfile::tempdir().unwrap();
    add_tables(&server, directory.path());
    let web = format!("http://{}/b/ints.parquet", server.address);
    let sum = |table: &str| format!("SELECT sum(u8), max(u64) FROM {table}");
    for (wrong, expected) in [
        (Wrong::Nothing, ""),
        (Wrong::Changes, "was changed"),
        (Wrong::Half, "it may have been changed"),
    ] {
        for (table, url) in [
            ("ints", "s3://b/ints.parquet"),
            ("ints", &*web),
            ("\"demo:ints\"", "s3://b/tables"),
        ] {
            server.set(wrong);
            let answer = ask(&server, &sum(table), &[url]);
            let code = i32::from(wrong != Wrong::Nothing);
            assert_eq!(answer.code, code, "{wrong:?} {url}: {}", answer.stderr);
            for text in [expected, if code == 0 { "" } else { url }] {
                assert!(
                    answer.stderr.contains(text),
                    "{wrong:?} {url}: {}",
                    answer.stderr
                );
            }
        }
    }
}

#[test]
fn only_what_is_asked_for_is_read() {
    let server = Server::new();
    server.add("b/one", &file(TRACE));
    server.set(Wrong::Nothing);
    let nothing = "SELECT count(*) FROM events WHERE timestamp < '1999-01-01T00:00:00Z'";
    let answer = ask(&server, nothing, &["s3://b/one"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let little = server.sent();
    server.set(Wrong::Nothing);
    assert_eq!(
        ask(&server, "SELECT count(*) FROM events", &["s3://b/one"]).code,
        0
    );
    assert!(little <= server.sent());
    // No range comes twice.
    let mut requests = server.requests();
    requests.retain(|request| request.contains("bytes="));
    let count = requests.len();
    requests.sort();
    requests.dedup();
    assert_eq!(requests.len(), count);
}

#[test]
fn profiles_have_keys_and_the_endpoint() {
    let server = Server::new();
    server.add("b/load.rrd", &file(RRD));
    let home = tempfile::tempdir().unwrap();
    let aws = home.path().join(".aws");
    std::fs::create_dir(&aws).unwrap();
    let keys = "[work]\naws_access_key_id = somebody\naws_secret_access_key = secret\n";
    std::fs::write(aws.join("credentials"), keys).unwrap();
    let config = format!("[profile work]\nendpoint_url = http://{}\n", server.address);
    std::fs::write(aws.join("config"), config).unwrap();
    let home = home.path().to_str().unwrap();
    let words = ["SELECT count(*) FROM samples", "s3://b/load.rrd"];
    let ask = |profile: &str| {
        let variables = [
            ("HOME", home),
            ("AWS_PROFILE", profile),
            ("AWS_ACCESS_KEY_ID", ""),
            ("AWS_ENDPOINT_URL", ""),
        ];
        common::run_with(&words, &variables)
    };
    let answer = ask("work");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let answer = ask("none");
    assert!(answer.code > 1, "{}", answer.stdout);
    assert!(
        answer.stderr.contains("no profile `none`"),
        "{}",
        answer.stderr
    );
}
