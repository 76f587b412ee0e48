//! Values are sent to servers, which the tests are.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use kymo_collectd::network::{Decoder, Item, Keys, Security};
use kymo_collectd::plain::put_values;
use tempfile::TempDir;

const TYPES: &str = "gauge value:GAUGE:U:U\nif_octets rx:DERIVE:U:U, tx:DERIVE:U:U\n";

/// A server that receives datagrams.
struct Server(UdpSocket);

impl Server {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket
            .set_read_timeout(Some(Duration::from_millis(300)))
            .expect("a limit");
        Self(socket)
    }

    fn target(&self) -> String {
        format!("collectd://{}", self.0.local_addr().expect("an address"))
    }

    /// All that has arrived, as lines of the text protocol; each datagram is of the level.
    fn received(&self, level: Security) -> (usize, Vec<String>) {
        let keys = Keys::parse(b"alice: s3cret pass\nbob: hunter2\n").expect("keys");
        let decoder = Decoder {
            level,
            keys: Some(keys),
        };
        let (mut lines, mut datagrams) = (Vec::new(), 0);
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length) = self.0.recv(&mut buffer) {
            datagrams += 1;
            decoder.decode(&buffer[..length], &mut (), &mut |item| {
                lines.push(line(&item, level));
            });
        }
        (datagrams, lines)
    }
}

fn line(item: &Item<'_>, level: Security) -> String {
    match item {
        Item::Values(list) => {
            assert_eq!(list.security, level);
            let values: Vec<_> = list.values.iter().collect();
            let line = put_values(&list.id, list.time, list.interval, &values);
            line.trim_end().to_string()
        }
        Item::Notification(received) => format!("{:?}", received.notification),
        Item::Fault(fault) => format!("{fault}"),
    }
}

fn packet(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kymo-collectd/tests/data/packets")
        .join(name)
}

fn kymo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    command.args(args).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> (Option<i32>, String) {
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    (output.status.code(), text)
}

fn write(dir: &TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_string()
}

#[test]
fn lines_become_datagrams_of_every_level() {
    let dir = TempDir::new().expect("a directory");
    let types = write(&dir, "types.db", TYPES);
    let password = write(&dir, "password", "hunter2\nnot this\n");
    let lines = [
        "PUTVAL h/p/gauge interval=0.5000000000 1700000000.2500000000:0.5",
        "PUTVAL h/p/if_octets-eth0 interval=0.5000000000 1700000000.2500000000:-1:7",
        "PUTVAL h/p/gauge-u interval=0.5000000000 1700000001.0000000000:U",
    ];
    let text = format!("# a comment\n\n{}\n{}\r\n{}", lines[0], lines[1], lines[2]);
    let file = write(&dir, "values.txt", &text);
    let bob = ["--username", "bob", "--password-file", &password];
    for (level, more) in [
        (Security::None, &[][..]),
        (
            Security::Sign,
            &[&bob[..], &["--security", "sign"]].concat(),
        ),
        (Security::Encrypt, &bob),
        // The loopback interface has no other participants.
        (Security::None, &["--interface", "lo", "--ttl", "3"]),
    ] {
        let server = Server::new();
        let target = server.target();
        let args = [&["send", &file, &target, "--types-db", &types], more].concat();
        let (code, err) = said(&kymo(&args).output().expect("kymo runs"));
        let reported = "sent 4 values in 3 lists, in all 1 datagram\n";
        assert_eq!((code, err.as_str()), (Some(0), reported));
        let (datagrams, found) = server.received(level);
        assert_eq!((datagrams, found), (1, lines.map(String::from).to_vec()));
    }
}

#[test]
fn wrong_lines_are_reported_and_the_others_sent() {
    let dir = TempDir::new().expect("a directory");
    let types = write(&dir, "types.db", TYPES);
    let server = Server::new();
    let target = server.target();
    let mut child = kymo(&["send", "-", &target, "--types-db", &types])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let lines = "LISTVAL\nPUTVAL h/p/nosuch 1:1\nPUTVAL h/p/gauge 1:1:2\nPUTVAL /p/gauge 1:1\n\
        PUTVAL h/p/gauge 7:1\nPUTNOTIF severity=okay time=1 message=\"it works\" host=h\n\
        PUTNOTIF severity=okay time=1 message=m s:x=y\n";
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(lines.as_bytes()).expect("written");
    drop(stdin);
    let (code, err) = said(&child.wait_with_output().expect("kymo ends"));
    let expected = "error: standard input: line 1: expected PUTVAL or PUTNOTIF\n\
        error: standard input: line 2: Type `nosuch' isn't defined.\n\
        error: standard input: line 3: Parsing the values string failed.\n\
        error: standard input: line 4: the host is empty\n\
        error: standard input: line 7: datagrams hold no `s:` options\n\
        sent 1 value in 1 list, 1 message, in all 2 datagrams; 5 refused\n";
    assert_eq!((code, err.as_str()), (Some(1), expected));
    let (datagrams, mut found) = server.received(Security::None);
    found.sort();
    assert_eq!(datagrams, 2);
    assert!(found[0].contains("it works"), "{found:?}");
    assert_eq!(found[1], "PUTVAL h/p/gauge 7.0000000000:1.0");
}

#[test]
fn what_was_received_is_sent_again_as_it_was() {
    let path = packet("encrypted-0002.bin");
    let dir = TempDir::new().expect("a directory");
    let auth = write(&dir, "auth", "bob: hunter2\n");
    let bytes = std::fs::read(&path).expect("a datagram");
    let decoder = Decoder {
        level: Security::Encrypt,
        keys: Some(Keys::parse(b"bob: hunter2").expect("keys")),
    };
    let mut expected = Vec::new();
    decoder.decode(&bytes, &mut (), &mut |item| {
        expected.push(line(&item, Security::Encrypt));
    });
    assert!(expected.len() > 5);
    let server = Server::new();
    let target = server.target();
    let path = path.to_str().expect("UTF-8");
    let args = ["send", path, &target, "--auth-file", &auth, "--rate", "0"];
    let (code, err) = said(&kymo(&args).output().expect("kymo runs"));
    assert_eq!(code, Some(0), "{err}");
    let (_, mut found) = server.received(Security::None);
    // They come in the order of time.
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn rows_of_databases_are_levels() {
    let dir = TempDir::new().expect("a directory");
    let home = dir.path().join("h.example/load");
    std::fs::create_dir_all(&home).expect("directories");
    for (name, kind) in [("load", "GAUGE"), ("if_octets-eth0", "DERIVE")] {
        let path = home.join(format!("{name}.rrd"));
        let path = path.to_str().expect("UTF-8");
        let sources = ["a", "b"].map(|source| format!("DS:{source}:{kind}:20:U:U"));
        let args = ["rrd", "create", path, "-b", "1700000000", "-s", "10"];
        let archives = [
            "RRA:AVERAGE:0.5:6:10",
            "RRA:AVERAGE:0.5:1:10",
            "RRA:MAX:0.5:1:10",
        ];
        let created = kymo(&args).args(&sources).args(archives).status();
        assert!(created.expect("kymo runs").success());
        let updates = ["1700000010:1:2", "1700000020:11:U"];
        let updated = kymo(&["rrd", "update", path]).args(updates).status();
        assert!(updated.expect("kymo runs").success());
    }
    let server = Server::new();
    let target = server.target();
    let args = ["send", dir.path().to_str().expect("UTF-8"), &target];
    let (code, err) = said(&kymo(&args).output().expect("kymo runs"));
    let reported = "sent 5 values in 3 lists, in all 1 datagram\n";
    assert_eq!((code, err.as_str()), (Some(0), reported));
    let (_, mut found) = server.received(Security::None);
    found.sort();
    let begin = "PUTVAL h.example/load/";
    let expected = [
        format!("{begin}gauge-if_octets-eth0-a interval=10.0000000000 1700000020.0000000000:1.0"),
        format!("{begin}load interval=10.0000000000 1700000010.0000000000:1.0:2.0"),
        format!("{begin}load interval=10.0000000000 1700000020.0000000000:11.0:U"),
    ];
    assert_eq!(found, expected);
    // One whose path does not give an identifier.
    let alone = dir.path().join("x.rrd");
    std::fs::copy(home.join("load.rrd"), &alone).expect("copied");
    let server = Server::new();
    let target = server.target();
    let alone = alone.to_str().expect("UTF-8");
    let more = [
        "--id",
        "other/p/t",
        "--event",
        "AVERAGE/60",
        "--event",
        "MAX/10",
    ];
    let args = [&["send", alone, &target][..], &more].concat();
    let (code, err) = said(&kymo(&args).output().expect("kymo runs"));
    assert_eq!(code, Some(0), "{err}");
    let (_, found) = server.received(Security::None);
    assert!(
        found
            .iter()
            .all(|line| line.starts_with("PUTVAL other/p/t "))
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_socket_replies_to_each_line() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let reader = BufReader::new(stream.try_clone().expect("a clone"));
        let mut lines = Vec::new();
        for line in reader.lines().map_while(Result::ok) {
            let reply: &[u8] = match line.contains("wrong") {
                true => b"-1 No.\n",
                false => b"1 line follows\nit\n",
            };
            stream.write_all(reply).expect("written");
            lines.push(line);
        }
        lines
    });
    let lines = [
        "PUTVAL h/p/any N:1:2 1:2:3",
        "PUTVAL h/p/wrong N:1",
        "PUTVAL h/p/t interval=1 N:1",
    ];
    let file = write(&dir, "values.txt", &lines.join("\n"));
    let target = format!("unix:{}", path.display());
    let (code, err) = said(&kymo(&["send", &file, &target]).output().expect("kymo runs"));
    let expected = format!(
        "error: {file}: line 2: the server replies: No.\nsent 5 values in 3 lists; 1 refused\n"
    );
    assert_eq!((code, err), (Some(1), expected));
    assert_eq!(server.join().expect("no panic"), lines);
}

#[test]
fn a_rate_is_kept() {
    let dir = TempDir::new().expect("a directory");
    let types = write(&dir, "types.db", TYPES);
    let lists: Vec<String> = (1..=6).map(|time| format!("{time}:0")).collect();
    let text = format!("PUTVAL h/p/gauge {}\n", lists.join(" "));
    let file = write(&dir, "values.txt", &text);
    let server = Server::new();
    let target = server.target();
    let begun = std::time::Instant::now();
    let args = ["send", &file, &target, "--types-db", &types, "--rate", "20"];
    let (code, err) = said(&kymo(&args).output().expect("kymo runs"));
    assert!(begun.elapsed() >= Duration::from_millis(250));
    // How many datagrams they are, depends on how late the machine is.
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.starts_with("sent 6 values in 6 lists, in all "),
        "{err}"
    );
}

#[test]
fn what_cannot_be_sent_is_reported() {
    let dir = TempDir::new().expect("a directory");
    let types = write(&dir, "types.db", TYPES);
    let lines = write(&dir, "values.txt", "PUTVAL h/p/gauge 1:1\n");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
    let nobody = "unix:/nonexistent/socket";
    let empty = write(&dir, "empty", "\n");
    let plain = packet("plain-0000.bin");
    let plain = plain.to_str().expect("UTF-8");
    let target = "collectd://127.0.0.1:9";
    for (args, code, expected) in [
        (
            vec![&lines, nobody],
            1,
            "error: cannot write: unix:/nonexistent/socket: ",
        ),
        (
            vec![&lines, target, "--types-db", "/nonexistent/types"],
            2,
            "error: /nonexistent/types: No such file",
        ),
        (vec![trace, target], 2, "it has events and no samples"),
        (
            vec![
                &lines,
                target,
                "--interface",
                "nosuch",
                "--types-db",
                &types,
            ],
            1,
            "interface `nosuch`: No such device",
        ),
        (
            vec![&lines, nobody, "--ttl", "2"],
            2,
            "`--interface` and `--ttl` are for datagrams",
        ),
        (
            vec!["/nonexistent/file", target],
            3,
            "error: `/nonexistent/file` does not exist",
        ),
        (
            vec![plain, target, "--security", "sign"],
            2,
            "needs `--username`",
        ),
        (
            vec![plain, target, "--packet-size", "1000"],
            2,
            "expected 1024 to 65507",
        ),
        (
            vec![plain, target, "--username", "u", "--password-file", &empty],
            2,
            "expected a password in the first line",
        ),
        (
            vec![plain, nobody, "--username", "u", "--password-file", &lines],
            2,
            "not lines to a socket",
        ),
        (
            vec![plain, "host:1"],
            2,
            "expected `collectd://HOST[:PORT]` or `unix:PATH`",
        ),
    ] {
        let output = kymo(&["send"]).args(&args).output().expect("kymo runs");
        let (found, err) = said(&output);
        assert!(err.contains(expected), "{args:?}: {err}");
        assert_eq!(found, Some(code), "{args:?}: {err}");
    }
}
