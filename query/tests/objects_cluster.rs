//! The queries of the equality suite on a local S3 server, moto: alone, and by a cluster that loses workers.
#![cfg(feature = "remote")]

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::queries::{QUERIES, TRACE};
use common::{ENVIRONMENT, answer, copies, file};

/// A server that ends with the test.
struct Moto {
    child: Child,
    address: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who nobody knows may remove no object; moto checks no signature.
const AUTHORIZATION: &str = "Authorization: AWS4-HMAC-SHA256 \
    Credential=somebody/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// moto in an environment of its own, which is made if there is none; `None` if it cannot be installed.
fn program() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("moto");
    let program = directory.join("bin/moto_server");
    if program.exists() {
        return Some(program);
    }
    let run = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let pip = directory.join("bin/pip");
    let is_made = run(Command::new("python3").args(["-m", "venv"]).arg(&directory))
        && run(Command::new(pip).args(["install", "--quiet", "moto[server]"]));
    (is_made && program.exists()).then_some(program)
}

impl Moto {
    fn new() -> Option<Self> {
        let program = program()?;
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self {
            child,
            address: address.to_string(),
        };
        let begun = Instant::now();
        while TcpStream::connect(&moto.address).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "moto does not start"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(moto)
    }

    /// Asks for something to be done with an object or a bucket.
    fn ask(&self, method: &str, name: &str, bytes: &[u8]) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let name = name.replace('%', "%25");
        let head = format!(
            "{method} /{name} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n{AUTHORIZATION}\r\n\r\n",
            self.address,
            bytes.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{name}: {answer}");
    }

    fn add(&self, name: &str, path: &Path) {
        each_file(name, path, &mut |name, path| {
            self.ask("PUT", name, &std::fs::read(path).unwrap());
        });
    }

    /// Removes what was added.
    fn remove(&self, name: &str, path: &Path) {
        each_file(name, path, &mut |name, _| self.ask("DELETE", name, b""));
    }
}

/// The files below a path, with the names of their objects.
fn each_file(name: &str, path: &Path, take: &mut dyn FnMut(&str, &Path)) {
    if !path.is_dir() {
        return take(name, path);
    }
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let below = format!("{name}/{}", entry.file_name().to_str().unwrap());
        each_file(&below, &entry.path(), take);
    }
}

#[test]
#[ignore = "takes minutes, and installs moto from PyPI"]
fn answers_about_objects_are_those_about_files() {
    let Some(moto) = Moto::new() else {
        eprintln!("skipped: moto cannot be installed from PyPI");
        return;
    };
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://{}", moto.address)),
        ("AWS_ACCESS_KEY_ID", "somebody".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    ENVIRONMENT.set(variables.to_vec()).unwrap();
    moto.ask("PUT", "kymo", b"");
    // Objects have the names of the files, and more of the trace, so that all workers have a part of it.
    let directory = tempfile::tempdir().unwrap();
    let copies = copies(directory.path(), 6);
    let mut added = BTreeSet::new();
    let mut of_files = |input: &str| -> Vec<String> {
        let paths = match input == TRACE {
            true => copies.clone(),
            false => {
                let path = file(input).canonicalize().unwrap();
                vec![path.to_str().unwrap().to_owned()]
            }
        };
        for path in &paths {
            if added.insert(path.clone()) {
                moto.add(&format!("kymo{path}"), Path::new(path));
            }
        }
        paths
    };
    let mut cluster = Cluster::new(3);
    for (number, (sql, inputs)) in QUERIES.iter().enumerate() {
        let paths: Vec<String> = inputs.iter().flat_map(|input| of_files(input)).collect();
        let urls: Vec<String> = paths
            .iter()
            .map(|path| format!("s3://kymo{path}"))
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let files = answer(sql, &paths, &["--threads", "1"]);
        // Answers name paths.
        let without = |rows: Vec<String>| -> Vec<String> {
            let mut rows: Vec<_> = rows
                .iter()
                .map(|row| row.replace("s3://kymo/", "/"))
                .collect();
            if !sql.contains("ORDER BY") {
                rows.sort();
            }
            rows
        };
        assert_eq!(files, without(answer(sql, &urls, &[])), "{sql}");
        let shared = match number % 10 {
            0 => cluster.answer_with_deaths(sql, &urls),
            5 => cluster.answer_slowly(sql, &urls),
            _ => answer(sql, &urls, &cluster.options()),
        };
        assert_eq!(files, without(shared), "{sql}\n{}", cluster.log());
    }
    let log = cluster.log();
    assert!(log.contains("lost unit done"), "{log}");
    assert_eq!(cluster.metric("units_failed_total"), 0.0, "{log}");
    // A recording that disappears between planning and reading, and comes back.
    let name = format!("kymo{}-gone", copies[0]);
    let path = Path::new(&copies[0]);
    moto.add(&name, path);
    let cluster = Cluster::new(1);
    let url = format!("s3://{name}");
    let words = ["SELECT count(*) FROM events", &*url];
    let gone = cluster.ask_and(&words, || moto.remove(&name, path));
    assert_eq!(gone.code, 1, "{}", gone.stderr);
    assert!(gone.stderr.contains(&url), "{}", gone.stderr);
    moto.add(&name, path);
    let expected = answer(words[0], &[&*copies[0]], &[]);
    let again = answer(words[0], &words[1..], &cluster.options());
    assert_eq!(again, expected);
}
