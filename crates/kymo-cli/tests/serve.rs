//! `kymo serve`, as its clients and its system see it.
#![cfg(unix)]

#[path = "serve/activation.rs"]
mod activation;
#[path = "serve/reload.rs"]
mod reload;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BEGIN: u64 = 1_500_000_000;

/// A daemon, which is killed where a test fails.
struct Daemon {
    child: Child,
    socket: PathBuf,
}

impl Daemon {
    /// Begins with these words, and waits until it listens at `sock` of the directory.
    fn begin(directory: &Path, words: &[&str]) -> Self {
        Self::begin_with(directory, words, |command| command)
    }

    fn begin_with(
        directory: &Path,
        words: &[&str],
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
        command.arg("serve").args(words).current_dir(directory);
        let child = with(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let daemon = Self {
            child: child.spawn().unwrap(),
            socket: directory.join("sock"),
        };
        // A pipe that it was given ends with it.
        drop(command);
        let end = Instant::now() + Duration::from_secs(60);
        while UnixStream::connect(&daemon.socket).is_err() {
            assert!(Instant::now() < end, "it does not listen");
            std::thread::sleep(Duration::from_millis(2));
        }
        daemon
    }

    fn client(&self) -> Client {
        let stream = UnixStream::connect(&self.socket).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        Client(BufReader::new(stream))
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends it, and returns its exit code.
    fn end(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(&format!("{line}\n"));
        self.line()
    }

    /// Waits until nothing is pending of a database.
    fn wait_until_written(&mut self, name: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let reported = self.ask(&format!("PENDING {name}"));
            match reported
                .split(' ')
                .next()
                .unwrap()
                .parse::<usize>()
                .unwrap()
            {
                0 => return,
                count => (0..count).for_each(|_| drop(self.line())),
            }
            assert!(Instant::now() < end, "{reported}");
        }
    }

    fn ok(&mut self, line: &str) {
        let answer = self.ask(line);
        assert!(answer.starts_with("0 "), "{line}: {answer}");
    }
}

fn create(name: &str) -> String {
    format!("CREATE {name} -b {BEGIN} -s 1 DS:a:GAUGE:600:U:U RRA:LAST:0:1:100000")
}

const WORDS: [&str; 4] = ["--data", "data", "--rrdcached", "unix:sock"];

#[test]
fn help_is_complete() {
    let help = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["help", "serve"])
        .output();
    insta::assert_snapshot!(String::from_utf8(help.unwrap().stdout).unwrap());
}

#[test]
fn a_signal_ends_it_when_all_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let words = [&WORDS[..], &["--pid-file", "pid", "--jitter", "1.5"]].concat();
    let daemon = Daemon::begin(directory.path(), &words);
    let mut client = daemon.client();
    client.ok("PING");
    let pid = || std::fs::read_to_string(directory.path().join("pid")).unwrap();
    assert_eq!(pid(), format!("{}\n", daemon.child.id()));
    // A second one that cannot listen leaves the file as it is.
    let mut second = Command::new(env!("CARGO_BIN_EXE_kymo"));
    second
        .arg("serve")
        .args(&words)
        .current_dir(directory.path());
    assert_eq!(second.output().unwrap().status.code(), Some(3));
    assert_eq!(pid(), format!("{}\n", daemon.child.id()));
    client.ok(&create("host/a.rrd"));
    client.ok(&format!(
        "UPDATE host/a.rrd {}:1 {}:2",
        BEGIN + 1,
        BEGIN + 2
    ));
    assert_eq!(
        client.ask("LAST host/a.rrd"),
        format!("0 {}", BEGIN + 2),
        "pending ones count"
    );
    daemon.signal("-USR1");
    client.wait_until_written("host/a.rrd");
    client.ok(&format!("UPDATE host/a.rrd {}:3", BEGIN + 3));
    assert_eq!(daemon.end(), Some(0));
    for name in ["pid", "sock"] {
        assert!(!directory.path().join(name).exists(), "{name}");
    }
    let daemon = Daemon::begin(directory.path(), &WORDS);
    assert_eq!(
        daemon.client().ask("LAST host/a.rrd"),
        format!("0 {}", BEGIN + 3)
    );
}

/// Killed at any moment, it loses nothing that it has acknowledged. `KYMO_KILLS` sets how often this
/// is tried.
#[test]
fn what_is_acknowledged_survives_kill_9() {
    const FILES: u64 = 3;
    let kills = std::env::var("KYMO_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    // Files are written and journals are restarted all the time.
    let timing = [
        "--write-timeout",
        "0.02",
        "--flush",
        "0.05",
        "--journal",
        "journal",
    ];
    let words = [&WORDS[..], &timing].concat();
    let mut next = [BEGIN + 1; FILES as usize];
    let mut acknowledged = 0;
    for round in 0..kills {
        let mut daemon = Daemon::begin(directory.path(), &words);
        let mut client = daemon.client();
        if round == 0 {
            (0..FILES).for_each(|file| client.ok(&create(&format!("{file}.rrd"))));
        }
        let stream = client.0.get_ref().try_clone().unwrap();
        let first = next;
        let sender = std::thread::spawn(move || {
            let mut next = first;
            let mut stream = stream;
            // Each line once, many at a time; some in batches.
            for turn in 0.. {
                let mut text = String::new();
                let file = turn % FILES;
                let batch = turn % 4 == 3;
                text += if batch { "BATCH\n" } else { "" };
                for _ in 0..20 {
                    let time = &mut next[file as usize];
                    text += &format!("UPDATE {file}.rrd {time}:{}\n", *time - BEGIN);
                    *time += 1;
                }
                text += if batch { ".\n" } else { "" };
                if stream.write_all(text.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let child = daemon.child.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(3 + round * 37 % 120));
            let pid = child.to_string();
            Command::new("kill").args(["-KILL", &pid]).status().unwrap()
        });
        // The answers come in the order of the lines.
        let mut line = String::new();
        'answers: for turn in 0_u64.. {
            let file = (turn % FILES) as usize;
            let batch = turn % 4 == 3;
            for _ in 0..if batch { 2 } else { 20 } {
                line.clear();
                if client.0.read_line(&mut line).unwrap_or(0) == 0 || !line.ends_with('\n') {
                    break 'answers;
                }
                assert!(line.starts_with("0 "), "{line}");
                next[file] += if batch { 0 } else { 1 };
            }
            next[file] += if batch { 20 } else { 0 };
        }
        killer.join().unwrap();
        sender.join().unwrap();
        daemon.child.wait().unwrap();

        let daemon = Daemon::begin(directory.path(), &words);
        let mut client = daemon.client();
        for file in 0..FILES {
            let end = next[file as usize] - 1;
            // What was there before this round was looked at then.
            let begin = first[file as usize] - 1;
            let rows = end - begin;
            acknowledged += rows;
            client.ok(&format!("FLUSH {file}.rrd"));
            let answer = client.ask(&format!("LAST {file}.rrd"));
            let last: u64 = answer.strip_prefix("0 ").unwrap().parse().unwrap();
            assert!(
                last >= end,
                "round {round}, file {file}: {last}, acknowledged {end}"
            );
            let head = client.ask(&format!("FETCH {file}.rrd LAST {begin} {end}"));
            assert!(head.ends_with(" Success"), "{head}");
            let count: u64 = head.split(' ').next().unwrap().parse().unwrap();
            for _ in 0..6 {
                client.line();
            }
            for row in 1..=count - 6 {
                let line = client.line();
                let (_, value) = line.split_once(": ").unwrap();
                if row <= rows {
                    let value: f64 = value.parse().unwrap();
                    let expected = begin + row - BEGIN;
                    assert_eq!(value, expected as f64, "round {round}, file {file}: {line}");
                }
            }
            // What was not acknowledged may be there, too.
            next[file as usize] = last + 1;
        }
        assert_eq!(daemon.end(), Some(0));
        let left = std::fs::read_dir(directory.path().join("journal")).unwrap();
        for file in left {
            let name = file.unwrap().file_name().into_string().unwrap();
            // A kill within a write leaves half a group, which is kept aside.
            let is_expected = name == "lock" || name.ends_with(".damaged");
            assert!(is_expected, "all is written, but {name} is left");
        }
    }
    assert!(acknowledged > 0 || kills == 0);
}

#[test]
fn a_slow_reader_holds_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::begin(directory.path(), &WORDS);
    let mut client = daemon.client();
    client.ok(&create("a.rrd"));
    // This client requests some hundred megabytes, and reads nothing.
    let mut slow = daemon.client();
    let text = format!("FETCH a.rrd LAST {BEGIN} {}\n", BEGIN + 100_000).repeat(100);
    slow.send(&text);
    for second in 1..100 {
        client.ok(&format!("UPDATE a.rrd {}:1", BEGIN + second));
    }
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", daemon.child.id()));
    if let Ok(statm) = statm {
        let resident: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(resident * 4096 < 100 << 20, "{statm}");
    }
    // It is not waited for at the end, either.
    assert_eq!(daemon.end(), Some(0));
    assert_eq!(slow.line(), "100007 Success");
}

#[test]
fn the_configuration_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(directory.path().join("config.toml"), text).unwrap();
    write("data = 'data'\n[rrdcached]\nlisten = 'unix:sock'\n");
    let system = UnixDatagram::bind(directory.path().join("notify")).unwrap();
    system
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let path = directory.path().join("notify");
    let daemon = Daemon::begin_with(directory.path(), &["--config", "config.toml"], |command| {
        command.env("NOTIFY_SOCKET", path)
    });
    let reported = || {
        let mut text = [0; 1000];
        let count = system.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..count]).into_owned()
    };
    assert_eq!(reported(), "READY=1\n");
    let mut client = daemon.client();
    client.ok(&create("a.rrd"));
    client.ok(&format!("UPDATE a.rrd {}:1", BEGIN + 1));

    // What is wrong changes nothing.
    write("data = 'data'\nx = 1\n");
    daemon.signal("-HUP");
    assert!(reported().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(reported(), "READY=1\n");
    client.ok("PING");
    // Nor does an address that cannot be bound, wherever it stands.
    for listen in [
        "[rrdcached]\nlisten = ['unix:sock', 'unix:none/sock']",
        "[rrdcached]\nlisten = 'unix:sock2'\n[metrics]\nlisten = 'unix:none/sock'",
        "[rrdcached]\nlisten = 'unix:sock2'\n[[collectd.listen]]\nhost = '192.0.2.1'",
    ] {
        write(&format!("data = 'data'\npid-file = 'pid'\n{listen}\n"));
        daemon.signal("-HUP");
        assert!(reported().starts_with("RELOADING=1\n"));
        assert_eq!(reported(), "READY=1\n");
        client.ok("PING");
        daemon.client().ok("PING");
        assert!(!directory.path().join("sock2").exists());
    }

    write(
        "data = 'data'\n[rrdcached]\nlisten = ['unix:sock', 'unix:other']\n[write]\ntimeout = 0.001\n",
    );
    daemon.signal("-HUP");
    assert!(reported().starts_with("RELOADING=1\n"));
    assert_eq!(reported(), "READY=1\n");
    let mut other = UnixStream::connect(directory.path().join("other")).unwrap();
    other.write_all(b"PING\n").unwrap();
    let mut answer = [0; 7];
    other.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"0 PONG\n");
    // A pid file is not the daemon's where it has begun without it.
    std::fs::write(directory.path().join("pid"), "1\n").unwrap();
    // Nothing is lost, and what is pending is written at the new times.
    let mut client = daemon.client();
    client.wait_until_written("a.rrd");
    assert_eq!(client.ask("LAST a.rrd"), format!("0 {}", BEGIN + 1));
    assert_eq!(daemon.end(), Some(0));
    assert_eq!(reported(), "STOPPING=1\n");
    let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
    assert_eq!(pid, "1\n");
}

/// A pipe can be read once, and a `collectd.conf` may keep nothing.
#[test]
fn a_configuration_from_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("conf"), "LoadPlugin network\n").unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let text = b"data = 'data'\n[rrdcached]\nlisten = 'unix:sock'\n";
    writer.write_all(text).unwrap();
    drop(writer);
    let (mut reported, stderr) = std::io::pipe().unwrap();
    let words = ["--config", "/dev/stdin", "--collectd-conf", "conf"];
    let daemon = Daemon::begin_with(directory.path(), &words, |command| {
        command.stdin(reader).stderr(stderr)
    });
    daemon.client().ok("PING");
    assert_eq!(daemon.end(), Some(0));
    let mut text = String::new();
    reported.read_to_string(&mut text).unwrap();
    assert!(text.contains("warning: values are kept nowhere"), "{text}");
}

/// A client at a socket.
fn client_of(path: &Path) -> Client {
    Client(BufReader::new(UnixStream::connect(path).unwrap()))
}

/// Lines, each of which is an object of JSON.
fn json_lines(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn metrics() {
    let directory = tempfile::tempdir().unwrap();
    // A port that is free now is nearly always free at once.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let more = ["--rrdcached", "unix:other", "--unixsock", "text"];
    let words = [&WORDS[..], &["--metrics", &address], &more].concat();
    let daemon = Daemon::begin(directory.path(), &words);
    let mut client = daemon.client();
    client.ok(&create("a.rrd"));
    client.ok(&format!("UPDATE a.rrd {}:1 {}:2", BEGIN + 1, BEGIN + 2));
    // What one client sends is counted where it sent it.
    let mut other = client_of(&directory.path().join("other"));
    assert!(other.ask("UPDATE a.rrd 5:1").starts_with("-1 "));
    assert!(other.ask("FLUSH a.rrd").starts_with("0 "));
    let mut text = client_of(&directory.path().join("text"));
    assert!(text.ask("NOTHING").starts_with("-1 "));
    let get = |request: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    for line in [
        "# TYPE kymo_updates_accepted_total counter",
        "kymo_updates_accepted_total 2",
        "kymo_databases 1",
        "# TYPE kymo_rrdcached_connections gauge",
        "kymo_rrdcached_connections{listener=\"unix:other\"} 1",
        "kymo_rrdcached_connections_accepted_total{listener=\"unix:other\"} 1",
        "kymo_rrdcached_connections_refused_total{listener=\"unix:sock\"} 0",
        "kymo_rrdcached_commands_total{listener=\"unix:sock\"} 2",
        "kymo_rrdcached_commands_total{listener=\"unix:other\"} 2",
        "kymo_rrdcached_errors_total{listener=\"unix:sock\"} 0",
        "kymo_rrdcached_errors_total{listener=\"unix:other\"} 1",
        "kymo_rrdcached_updates_total{listener=\"unix:sock\"} 1",
        "kymo_rrdcached_flushes_total{listener=\"unix:sock\"} 0",
        "kymo_rrdcached_flushes_total{listener=\"unix:other\"} 1",
        "kymo_unixsock_commands_total{listener=\"unix:text\"} 1",
        "kymo_unixsock_errors_total{listener=\"unix:text\"} 1",
        "kymo_unixsock_connections{listener=\"unix:text\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    // rrdcached's own command counts all listeners together.
    assert_eq!(client.ask("STATS"), "9 Statistics follow");
    let stats: Vec<_> = (0..9).map(|_| client.line()).collect();
    for line in ["UpdatesReceived: 2", "FlushesReceived: 1"] {
        assert!(stats.iter().any(|found| found == line), "{stats:?}");
    }
    assert!(get("GET /metrics?x=1 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert!(get("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(get("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(8200));
    assert!(get(&long).starts_with("HTTP/1.1 400 "));
}

/// Without an address for them, they are at a socket of this machine only.
#[test]
fn metrics_are_at_a_local_socket_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::begin_with(directory.path(), &WORDS, |command| {
        let command = command.env_remove("RUNTIME_DIRECTORY");
        command.env("XDG_RUNTIME_DIR", directory.path())
    });
    let path = directory.path().join("kymo/metrics.sock");
    // The socket has its name a little before somebody listens there.
    let end = Instant::now() + Duration::from_secs(60);
    let mut stream = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > end => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    stream.write_all(b"GET /-/ready HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(daemon.end(), Some(0));
    assert!(!path.exists());
}

#[test]
fn what_is_wrong_is_reported_before_it_begins() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("wrong.toml"),
        "data = 'data'\nx = 1\n",
    )
    .unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
        command
            .arg("serve")
            .args(words)
            .current_dir(directory.path());
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    for (words, code, text) in [
        (
            &["--config", "wrong.toml"][..],
            2,
            "`wrong.toml`: line 2, column 1: found `x`",
        ),
        (
            &["--config", "none.toml"],
            2,
            "error: `none.toml` does not exist",
        ),
        (
            &["--data", "data", "--durable"],
            2,
            "--durable needs --journal",
        ),
        (&["--data", "data", "--rrdcached", "a:b"], 2, "HOST:PORT"),
        (
            &["--data", "data", "--write-timeout=-1"],
            2,
            "write-timeout",
        ),
        (&[], 2, "--data"),
        (
            &["--data", "data", "--rrdcached", "unix:none/sock"],
            3,
            "unix:none/sock: No such file",
        ),
        (
            &["--data", "wrong.toml"],
            2,
            "`wrong.toml` is not a directory",
        ),
        (
            &["--data", "data"],
            3,
            "error: no address to listen at\nhint: set `rrdcached.listen`",
        ),
        // What cannot be created is reported with its path.
        (
            &["--data", "wrong.toml/data", "--rrdcached", "unix:sock"],
            3,
            "error: cannot create `wrong.toml/data`: Not a directory",
        ),
        (
            &[
                "--data",
                "data",
                "--rrdcached",
                "unix:sock",
                "--journal",
                "wrong.toml/j",
            ],
            3,
            "error: `wrong.toml/j`: Not a directory",
        ),
    ] {
        let (found, reported) = run(words);
        assert_eq!(found, Some(code), "{words:?} {reported}");
        assert!(reported.contains(text), "{words:?} {reported}");
    }
    // A program that reads JSON reads the last message, too.
    std::fs::write(
        directory.path().join("json.toml"),
        "data = 'data'\n[write]\nflush = 0\n[log]\nformat = 'json'\n[metrics]\nlisten = 1\n",
    )
    .unwrap();
    for (words, code, message, hint) in [
        (
            &["--data", "data", "--log-format", "json"][..],
            3,
            "no address to listen at",
            "set `rrdcached.listen`",
        ),
        (
            &["--data", "data", "--log-format=json", "--check"],
            2,
            "no address to listen at",
            "set `rrdcached.listen`",
        ),
        (
            &[
                "--data=data",
                "--log-format",
                "json",
                "--rrdcached=unix:none/s",
            ],
            3,
            "unix:none/s: No such file or directory",
            "the directory `none` does not exist",
        ),
        // The command line itself.
        (
            &["--data", "data", "--log-format", "json", "--pidfile", "x"],
            2,
            "unknown option `--pidfile` of `kymo serve`",
            "did you mean `--pid-file`?",
        ),
        (
            &[
                "--config",
                "none.toml",
                "--log-format",
                "json",
                "--explain",
                "x",
            ],
            2,
            "`none.toml` does not exist",
            "",
        ),
        (
            &["--data", "wrong.toml", "--log-format", "json"],
            2,
            "`wrong.toml` is not a directory",
            "`--data` is the directory with the databases",
        ),
    ] {
        let (found, reported) = run(words);
        assert_eq!(found, Some(code), "{words:?} {reported}");
        let last = json_lines(&reported).pop().unwrap();
        assert_eq!(last["level"], "error");
        assert_eq!(last["message"], message);
        let found = last["hint"].as_str().unwrap_or_default();
        assert!(found.starts_with(hint), "{last}");
    }
    // Each error of a file that asks for JSON is a line; somebody who asks for a check reads text.
    let (code, reported) = run(&["--config", "json.toml"]);
    assert_eq!(code, Some(2));
    let lines = json_lines(&reported);
    let places = [
        "`json.toml`: line 3, column 9: ",
        "`json.toml`: line 7, column 10: ",
    ];
    assert_eq!(lines.len(), places.len(), "{reported}");
    for (line, place) in lines.iter().zip(places) {
        let message = line["message"].as_str().unwrap();
        assert!(message.starts_with(place), "{message}");
    }
    let (code, reported) = run(&["--config", "json.toml", "--check"]);
    assert_eq!(code, Some(2));
    assert!(reported.starts_with("error: `json.toml`: "), "{reported}");
    // A check finds what a start would.
    let (code, reported) = run(&["--data", "data", "--check"]);
    assert_eq!(code, Some(2));
    assert!(
        reported.contains("error: no address to listen at\nhint: "),
        "{reported}"
    );
    // All errors in the file are reported together.
    let text = "data = 'data'\n[write]\nflush = 0\n[[expire]]\nafter = '1mon'\n";
    std::fs::write(directory.path().join("several.toml"), text).unwrap();
    let (code, reported) = run(&["--config", "several.toml", "--check"]);
    assert_eq!(code, Some(2));
    let count = reported.matches("error: `several.toml`: line ").count();
    assert_eq!(count, 2, "{reported}");
    let words = ["--data", "data", "--check", "--rrdcached", "unix:check"];
    let checked = |quiet: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
        command.arg("serve").args(words).args(quiet);
        command.current_dir(directory.path()).output().unwrap()
    };
    let (shown, quiet) = (checked(&[]), checked(&["--quiet"]));
    assert!(shown.stdout.ends_with(b"the configuration is good\n"));
    let lines = json_lines(std::str::from_utf8(&checked(&["--log-format=json"]).stdout).unwrap());
    let last = lines.last().unwrap();
    assert_eq!(last["message"], "the configuration is good");
    assert_eq!(last["level"], "info");
    assert_eq!(quiet.status.code(), Some(0));
    assert_eq!([quiet.stdout, quiet.stderr], [b"", b""]);
    // Two use neither one directory nor one journal.
    let words = [&WORDS[..], &["--journal", "journal"]].concat();
    let _daemon = Daemon::begin(directory.path(), &words);
    let (code, reported) = run(&["--data", "data"]);
    assert_eq!(code, Some(3), "{reported}");
    assert!(
        reported.contains("another kymo serve uses this directory"),
        "{reported}"
    );
    let (code, reported) = run(&["--data", "other-data", "--journal", "journal"]);
    assert_eq!(code, Some(3), "{reported}");
    assert!(reported.contains("another program uses it"), "{reported}");
    // What is not a file of a journal is reported with its path.
    std::fs::create_dir_all(directory.path().join("other/kymo.journal.5")).unwrap();
    let (code, reported) = run(&["--data", "other-data", "--journal", "other"]);
    assert_eq!(code, Some(3), "{reported}");
    assert!(reported.contains("`other/kymo.journal.5`: "), "{reported}");
}
