//! Sockets that were there before the daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Hands two sockets over, as systemd does.
fn begin(directory: &Path, names: &str, sockets: [OwnedFd; 2]) -> Child {
    let [first, second] = sockets;
    let script = "exec 3<&0 4<&1 0</dev/null 1>&2; \
                  export LISTEN_PID=$$ LISTEN_FDS=2; exec \"$0\" serve --data data";
    Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_kymo")])
        .env("LISTEN_FDNAMES", names)
        .current_dir(directory)
        .stdin(Stdio::from(first))
        .stdout(Stdio::from(second))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn collectds_clients_are_served_without_a_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let listener = UnixListener::bind(path.join("text")).unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = datagrams.local_addr().unwrap();
    let sockets = [listener.into(), datagrams.into()];
    let mut child = Ended(begin(path, "unixsock:collectd", sockets));
    let mut text = UnixStream::connect(path.join("text")).unwrap();
    text.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut answers = BufReader::new(text.try_clone().unwrap());
    let mut ask = |line: &[u8]| {
        text.write_all(line).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(ask(b"LISTVAL\n"), "0 Values found\n");
    // A list of values: host, time, interval, plugin, type, and one level.
    let part = |kind: u8, text: &[u8]| [&[0, kind, 0, text.len() as u8 + 4], text].concat();
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs();
    let datagram = [
        part(0, b"h\0"),
        part(1, &now.to_be_bytes()),
        part(7, &10_u64.to_be_bytes()),
        part(2, b"p\0"),
        part(4, b"gauge\0"),
        part(6, &[&[0, 1, 1][..], &5.0_f64.to_le_bytes()].concat()),
    ]
    .concat();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(&datagram, address).unwrap();
    for turn in 0.. {
        if ask(b"GETVAL h/p/gauge\n") == "1 Value found\n" {
            break;
        }
        assert!(turn < 6000, "nothing has come");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(ask(b""), "value=5.000000e+00\n");
    let pid = child.0.id().to_string();
    // They are kept when it reads its configuration again, too.
    for signal in ["-HUP", "-TERM"] {
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
        if signal == "-HUP" {
            assert_eq!(ask(b"GETVAL h/p/gauge\n"), "1 Value found\n");
            assert_eq!(ask(b""), "value=5.000000e+00\n");
        }
    }
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_socket_that_fits_nothing_is_reported() {
    for (names, problem) in [
        (
            "rrdcached:collectd",
            "descriptor 4 from systemd, `collectd`: found no socket of datagrams",
        ),
        (
            "rrdcached:unixsok",
            "descriptor 4 from systemd, `unixsok`: found this name",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        let mut child = Ended(begin(directory.path(), names, [tcp(), tcp()]));
        let mut reported = String::new();
        let mut stderr = child.0.stderr.take().unwrap();
        stderr.read_to_string(&mut reported).unwrap();
        assert_eq!(child.0.wait().unwrap().code(), Some(3), "{reported}");
        assert!(reported.contains(problem), "{reported}");
    }
    let directory = tempfile::tempdir().unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Ended(begin(
        directory.path(),
        "metrics:",
        [udp.into(), tcp.into()],
    ));
    let mut reported = String::new();
    let mut stderr = child.0.stderr.take().unwrap();
    stderr.read_to_string(&mut reported).unwrap();
    assert!(
        reported.contains("descriptor 3 from systemd, `metrics`"),
        "{reported}"
    );
}

/// Sockets of other metrics, and one of rrdcached's protocol where clients may only read.
#[test]
fn other_protocols_are_taken_at_sockets_of_systemd() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let listener = UnixListener::bind(path.join("read")).unwrap();
    let datagrams = UnixDatagram::bind(path.join("lines")).unwrap();
    let mut child = Ended(begin(
        path,
        "rrdcached-read:graphite",
        [listener.into(), datagrams.into()],
    ));
    let mut client = UnixStream::connect(path.join("read")).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut answers = BufReader::new(client.try_clone().unwrap());
    let mut ask = |line: &str| {
        client.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(ask("PING\n"), "0 PONG\n");
    assert_eq!(ask("FORGET a.rrd\n"), "-1 Permission denied.\n");
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs();
    let pid = child.0.id().to_string();
    let kill = |signal: &str| {
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    };
    let sender = UnixDatagram::unbound().unwrap();
    // Databases of Graphite have a step of 10 s, to which times are rounded.
    let now = now / 10 * 10;
    for (turn, time) in [now - 100, now - 50].into_iter().enumerate() {
        let line = format!("a.b 1.5 {time}");
        let expected = format!("0 {time}\n");
        for attempt in 0.. {
            // What was sent before it was ready waits in the socket; repeated samples are no errors.
            sender.send_to(line.as_bytes(), path.join("lines")).unwrap();
            if ask("LAST graphite/a/b.rrd\n") == expected {
                break;
            }
            assert!(attempt < 6000, "nothing has come");
            std::thread::sleep(Duration::from_millis(10));
        }
        // The sockets stay when the configuration is read again.
        kill(if turn == 0 { "-HUP" } else { "-TERM" });
    }
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}
