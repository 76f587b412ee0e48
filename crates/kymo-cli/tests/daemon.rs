//! Commands that ask a daemon which speaks rrdcached's protocol.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

/// A daemon with fixed answers: a request line, and what it answers. Reports the requests of one
/// connection when it has ended.
fn daemon(
    directory: &std::path::Path,
    answers: &[(&str, &str)],
) -> (String, mpsc::Receiver<Vec<String>>) {
    let path = directory.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let answers: Vec<(String, String)> = answers
        .iter()
        .map(|(request, answer)| ((*request).to_owned(), (*answer).to_owned()))
        .collect();
    let (report, reported) = mpsc::channel();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut out = stream.try_clone().unwrap();
        let mut asked = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let answer = answers
                .iter()
                .find(|(request, _)| line.starts_with(request));
            let answer = answer.map_or("-1 Unknown command", |(_, answer)| answer);
            asked.push(line);
            writeln!(out, "{answer}").unwrap();
        }
        // The test may be over.
        let _ = report.send(asked);
    });
    (format!("unix:{}", path.display()), reported)
}

fn kymo(directory: &std::path::Path, words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .arg("rrd")
        .args(words)
        .current_dir(directory)
        .env_remove("RRDCACHED_ADDRESS")
        .output()
        .unwrap();
    (
        status.code().unwrap(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

#[test]
fn a_daemon_writes_before_a_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let data = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../kymo-rrd/tests/data/dump/fresh.i386.rrd"
    );
    std::fs::copy(data, real.join("a b.rrd")).unwrap();
    let (address, reported) = daemon(&real, &[("flush ", "0 Successfully flushed.")]);
    let (code, out, err) = kymo(&real, &["lastupdate", "-d", &address, "a b.rrd"]);
    assert_eq!((code, &*err), (0, ""));
    assert!(out.starts_with(' '), "{out}");
    // The path is absolute, and its blank escaped.
    let path = real.join("a b.rrd").display().to_string();
    assert_eq!(
        reported.recv().unwrap(),
        [format!("flush {}", path.replace(' ', "\\ "))]
    );
}

#[test]
fn a_daemon_answers_itself() {
    let directory = tempfile::tempdir().unwrap();
    let answers = [
        ("flush", "0 Successfully flushed."),
        (
            "info",
            "3 Info follows\nfilename 2 /data/x.rrd\nstep 1 300\nds[a].max 0 NaN",
        ),
    ];
    let (address, _) = daemon(directory.path(), &answers);
    let (code, out, _) = kymo(directory.path(), &["info", "--daemon", &address, "x.rrd"]);
    let expected = "filename = \"/data/x.rrd\"\nstep = 300\nds[a].max = NaN\n";
    assert_eq!((code, &*out), (0, expected));

    let directory = tempfile::tempdir().unwrap();
    let (address, reported) = daemon(directory.path(), &[("last", "0 1500000000")]);
    let (code, out, _) = kymo(directory.path(), &["last", "--daemon", &address, "/x.rrd"]);
    assert_eq!((code, &*out), (0, "1500000000\n"));
    assert_eq!(reported.recv().unwrap(), ["last /x.rrd"]);
}

/// A daemon that is reached as one of another machine; the connection ends behind XML.
fn remote(
    answers: &'static [(&'static str, &'static str)],
) -> (String, mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (report, reported) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        for line in BufReader::new(stream.try_clone().unwrap()).lines() {
            let line = line.unwrap();
            let answer = answers
                .iter()
                .find(|(request, _)| line.starts_with(request));
            let answer = answer.map_or("-1 Unknown command: x", |(_, answer)| answer);
            asked.push(line);
            writeln!(stream, "{answer}").unwrap();
            if answer.starts_with('<') {
                break;
            }
        }
        // The test may be over.
        let _ = report.send(asked);
    });
    (address, reported)
}

#[test]
fn a_daemon_of_another_machine_changes_and_dumps_its_own_files() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let done = &[
        ("flush", "0 Successfully flushed."),
        ("tune", "0 Success"),
        ("forget", "0 Gone!"),
    ];
    let (address, reported) = remote(done);
    let words = ["tune", "-D", &address, "a.rrd", "-h", "a:70"];
    assert_eq!(kymo(here, &words), (0, String::new(), String::new()));
    let asked = ["flush a.rrd", "tune a.rrd 3 tune --heartbeat=a:70 a.rrd"];
    assert_eq!(reported.recv().unwrap(), asked);
    let (address, reported) = remote(done);
    let words = ["tune", "-D", &address, "a.rrd", "RRA#0:+5", "DEL:b"];
    assert_eq!(kymo(here, &words).0, 0);
    let asked = [
        "flush a.rrd",
        "tune a.rrd 4 tune a.rrd RRA#0:+5 DEL:b",
        "forget a.rrd",
    ];
    assert_eq!(reported.recv().unwrap(), asked);
    let (address, _) = remote(done);
    let (code, _, err) = kymo(here, &["tune", "-D", &address, "a.rrd", "--wait"]);
    assert_eq!(code, 1);
    assert!(err.contains("--wait does not apply"), "{err}");

    let dump = &[(
        "dump",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE rrd>\n<!-- x -->\n<rrd>\n\
         <step>1</step>\n</rrd>",
    )];
    let (address, _) = remote(dump);
    let (code, out, err) = kymo(here, &["dump", "-d", &address, "a.rrd"]);
    assert_eq!(
        (code, format!("{out}{err}")),
        (0, format!("{}\n", dump[0].1))
    );
    let (address, _) = remote(dump);
    let (_, out, _) = kymo(here, &["dump", "-n", "-d", &address, "a.rrd"]);
    let expected = "<!-- Round Robin Database Dump -->\n<rrd>\n<step>1</step>\n</rrd>\n";
    assert_eq!(out, expected);
    // Half a dump replaces nothing.
    std::fs::write(here.join("a.xml"), "before").unwrap();
    let (address, _) = remote(&[("dump", "<rrd>\n<step>1</step>")]);
    let (code, _, err) = kymo(here, &["dump", "-d", &address, "a.rrd", "a.xml"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("the connection ended within the dump"),
        "{err}"
    );
    assert_eq!(std::fs::read(here.join("a.xml")).unwrap(), b"before");

    // rrdcached before 1.8: the file may be here, too.
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../kymo-rrd/tests/data/dump/fresh.i386.rrd"
    );
    std::fs::copy(file, here.join("a.rrd")).unwrap();
    let (address, reported) = remote(&[("flush", "0 Successfully flushed.")]);
    let (code, out, _) = kymo(here, &["dump", "-d", &address, "a.rrd"]);
    assert!(code == 0 && out.contains("<lastupdate>"), "{out}");
    assert_eq!(reported.recv().unwrap(), ["dump a.rrd", "flush a.rrd"]);
}

#[test]
fn what_a_daemon_refuses_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (address, _) = daemon(directory.path(), &[("flush", "-1 No such file: x.rrd.")]);
    let (code, out, err) = kymo(directory.path(), &["flushcached", "-d", &address, "x.rrd"]);
    assert_eq!((code, &*out), (1, ""));
    let expected = format!("ERROR: rrdcached@{address}: No such file: x.rrd.\n");
    assert_eq!(err, expected);

    // A reply that promises more lines than arrive, and one that is not a reply at all.
    for answer in ["1000000000000 lines follow\nstep 1 300", "hello"] {
        let directory = tempfile::tempdir().unwrap();
        let (address, _) = hangs_up(directory.path(), answer);
        let (code, _, err) = kymo(directory.path(), &["info", "-F", "-d", &address, "x.rrd"]);
        assert_eq!(code, 1);
        assert!(
            err.starts_with(&format!("ERROR: rrdcached@{address}: ")),
            "{err}"
        );
    }

    let (code, _, err) = kymo(
        directory.path(),
        &["flushcached", "-d", "unix:none", "x.rrd"],
    );
    let expected = "ERROR: Unable to connect to rrdcached: No such file or directory\nhint: ";
    assert!(code == 1 && err.starts_with(expected), "{err}");
}

/// A daemon that answers once and goes.
fn hangs_up(directory: &std::path::Path, answer: &str) -> (String, thread::JoinHandle<()>) {
    let path = directory.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let answer = format!("{answer}\n");
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
    });
    (format!("unix:{}", path.display()), thread)
}

/// Programs keep a pipe open for days, and daemons are restarted meanwhile.
#[test]
fn a_daemon_that_was_started_anew_is_asked_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let (report, reported) = mpsc::channel();
    thread::spawn(move || {
        // Each connection ends after one answer.
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            writeln!(&stream, "0 done").unwrap();
            let _ = report.send(line);
        }
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["rrd", "-"])
        .current_dir(directory.path())
        .env("RRDCACHED_ADDRESS", format!("unix:{}", path.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "update a.rrd 1600000000:1\n".repeat(3);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("OK u:").count(), 3, "{text}");
    let asked: Vec<_> = reported.try_iter().collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
}

/// A daemon makes files of its own form only.
#[test]
fn the_form_of_new_databases_comes_before_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let (address, _reported) = daemon(&real, &[("create ", "0 RRD created OK")]);
    let made = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args([
            "rrd",
            "create",
            "a.rrd",
            "DS:a:GAUGE:600:U:U",
            "RRA:LAST:0:1:1",
        ])
        .current_dir(&real)
        .env("RRDCACHED_ADDRESS", address)
        .env("KYMO_RRD_FORMAT", "portable")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let bytes = std::fs::read(real.join("a.rrd")).unwrap();
    assert!(bytes.starts_with(b"\x8dPRRD"), "{bytes:x?}");
}

/// A daemon runs in a directory of its own.
#[test]
fn a_daemon_is_reported_whole_paths_of_sources() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let (address, reported) = daemon(&real, &[("create ", "0 RRD created OK")]);
    std::fs::write(real.join("old.rrd"), b"").unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["rrd", "create", "a.rrd", "-d", &address, "-b", "1600000000"])
        .args(["-r", "old.rrd", "-t", "old.rrd", "RRA:LAST:0:1:1"])
        .current_dir(&real)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let real = real.display();
    let expected = format!(
        "create {real}/a.rrd -b 1600000000 -r {real}/old.rrd -t {real}/old.rrd RRA:LAST:0:1:1"
    );
    let reported = reported.recv().unwrap();
    assert!(reported.contains(&expected), "{reported:?}");
}

/// The words of a request behind its path.
fn readings(request: &str, path: &str) -> Vec<String> {
    let rest = request.strip_prefix(&format!("update {path} "));
    let rest = rest.unwrap_or_else(|| panic!("{request}"));
    rest.split(' ').map(str::to_owned).collect()
}

/// Daemons know neither times in words nor those that count from now.
#[test]
fn a_daemon_is_reported_seconds_since_1970() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let (address, reported) = daemon(&real, &[("update ", "0 errors, enqueued 1 value(s).")]);
    let words = ["update", "-d", &address, "/x.rrd", "--"];
    let times = [
        "N:1",
        "-5:2",
        "-5.5:3",
        "20000102 00:00@4:5",
        "1000000000.25:U",
    ];
    let before = unix_seconds();
    let (code, _, err) = kymo(&real, &[&words[..], &times[..]].concat());
    assert_eq!((code, &*err), (0, ""));
    let asked = reported.recv().unwrap();
    let sent = readings(&asked[0], "/x.rrd");
    let seconds = |place: usize, value: &str| -> f64 {
        let time = sent[place].strip_suffix(value).unwrap();
        time.parse().unwrap()
    };
    let near = before..=before + 60.0;
    assert!(near.contains(&seconds(0, ":1")), "{sent:?}");
    assert!(near.contains(&(seconds(1, ":2") + 6.0)), "{sent:?}");
    assert!(near.contains(&(seconds(2, ":3") + 6.5)), "{sent:?}");
    // In any time zone.
    let day = 946_684_800.0..946_944_000.0;
    assert!(day.contains(&seconds(3, ":4:5")), "{sent:?}");
    assert_eq!(sent[4], "1000000000.25:U");

    let words = ["update", "-d", "unix:nowhere", "/x.rrd", "no time@4"];
    let (code, _, err) = kymo(&real, &words);
    assert_eq!(code, 1);
    assert!(err.contains("ds time: no time"), "{err}");
}

fn unix_seconds() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs() as f64
}

/// What is not after the last update is passed over, and nothing behind it.
#[test]
fn a_daemon_passes_over_past_updates() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    let past = "-1 illegal attempt to update using time 5.000000 when last update time is 9.000000 \
                (minimum one second step)";
    let answers = [
        ("update /x.rrd 5:", past),
        ("update ", "0 errors, enqueued 1 value(s)."),
    ];
    let (address, reported) = daemon(&real, &answers);
    let words = [
        "update", "-s", "-d", &address, "/x.rrd", "5:1", "10:2", "20:3",
    ];
    let (code, _, err) = kymo(&real, &words);
    assert_eq!((code, &*err), (0, ""));
    assert_eq!(
        reported.recv().unwrap(),
        [
            "update /x.rrd 5:1",
            "update /x.rrd 10:2",
            "update /x.rrd 20:3"
        ]
    );

    std::fs::remove_file(real.join("socket")).unwrap();
    let (address, _reported) = daemon(&real, &[("update ", "-1 No such file: /x.rrd")]);
    let words = ["update", "-s", "-d", &address, "/x.rrd", "5:1"];
    let (code, _, err) = kymo(&real, &words);
    assert_eq!(code, 1);
    assert!(err.contains("No such file: /x.rrd"), "{err}");
}

/// Done means written.
#[test]
fn a_daemon_writes_what_is_to_be_durable() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    std::fs::write(real.join("x.rrd"), "a database").unwrap();
    let path = real.join("x.rrd").display().to_string();
    let answers = [
        ("update ", "0 errors, enqueued 1 value(s)."),
        ("flush ", "0 Successfully flushed."),
    ];
    let (address, reported) = daemon(&real, &answers);
    let words = ["update", "--durable", "-d", &address, "x.rrd", "5:1"];
    let (code, _, err) = kymo(&real, &words);
    assert_eq!((code, &*err), (0, ""));
    assert_eq!(
        reported.recv().unwrap(),
        [format!("update {path} 5:1"), format!("flush {path}")]
    );

    std::fs::remove_file(real.join("socket")).unwrap();
    let answers = [answers[0], ("flush ", "-1 the disk is full")];
    let (address, _reported) = daemon(&real, &answers);
    let words = ["update", "--durable", "-d", &address, "x.rrd", "5:1"];
    let (code, _, err) = kymo(&real, &words);
    assert_eq!(code, 1);
    assert!(err.contains("the disk is full"), "{err}");
}

#[test]
fn what_cannot_be_had_from_a_daemon_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["update", "--wait", "-d", "unix:nowhere", "x.rrd", "5:1"];
    let (code, _, err) = kymo(directory.path(), &words);
    assert_eq!(code, 1);
    assert!(err.contains("--wait cannot be had from a daemon"), "{err}");
}

#[test]
fn addresses_of_daemons_that_are_none_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["localhost:70000", "localhost:x", "[::1]x", ":80", "[::1"] {
        let words = ["update", "--daemon", address, "x.rrd", "5:1"];
        let (code, _, err) = kymo(directory.path(), &words);
        assert_eq!(code, 1, "{address}");
        let expected = format!("'{address}' is not an address: expected unix:PATH");
        assert!(err.contains(&expected), "{err}");
    }
}
