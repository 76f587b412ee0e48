//! Traces go from `kymo send` to `kymo receive`, over a way that loses, doubles and reorders.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

fn kymo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    command.args(args);
    command
}

/// `kymo receive` at a port of its own.
struct Receiver {
    child: Child,
    address: SocketAddr,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Receiver {
    fn new(output: &Path, more: &[&str]) -> Self {
        Self::at("ctf+udp://127.0.0.1:0", output, more)
    }

    fn at(place: &str, output: &Path, more: &[&str]) -> Self {
        let mut command = kymo(&["receive", place, "-o"]);
        let mut child = command
            .arg(output)
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("it tells where it is");
        let address = line.trim().strip_prefix("listening at ctf+udp://");
        let address = address.unwrap_or_else(|| panic!("{line}"));
        let address = address.parse().expect("an address");
        Self {
            child,
            address,
            stderr,
        }
    }

    /// Its exit status and what it writes to standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut reported = String::new();
        self.stderr.read_to_string(&mut reported).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code(), reported)
    }
}

/// A way between sender and receiver: of every hundred datagrams five are lost, five doubled, five
/// late. Without `lossy`, it is a good one.
struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Vec<u8>>>>,
}

impl Relay {
    fn new(to: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a limit");
        let address = socket.local_addr().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || relay(&socket, to, &stopped));
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }

    /// The datagrams that were lost.
    fn lost(mut self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("it has not failed")
    }
}

fn relay(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) -> Vec<Vec<u8>> {
    let mut from = None;
    let mut buffer = vec![0; 1 << 16];
    let mut late: Option<(Vec<u8>, SocketAddr)> = None;
    let mut lost = Vec::new();
    let mut chance = 0x9E37_79B9_7F4A_7C15_u64;
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, sender)) = socket.recv_from(&mut buffer) else {
            if let Some((datagram, target)) = late.take() {
                let _ = socket.send_to(&datagram, target);
            }
            continue;
        };
        let target = match sender == to {
            true => from,
            false => {
                from = Some(sender);
                Some(to)
            }
        };
        let Some(target) = target else { continue };
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let datagram = buffer[..length].to_vec();
        match chance % 100 {
            0..5 => {
                lost.push(datagram);
                continue;
            }
            5..10 => {
                let _ = socket.send_to(&datagram, target);
            }
            10..15 if late.is_none() => {
                late = Some((datagram, target));
                continue;
            }
            _ => {}
        }
        let _ = socket.send_to(&datagram, target);
        if let Some((datagram, target)) = late.take() {
            let _ = socket.send_to(&datagram, target);
        }
    }
    lost
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small/ust/uid/0/64-bit")
}

/// Names and bytes of the files of a trace, without its index.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().expect("it has a name");
            let name = name.to_string_lossy().into_owned();
            (name, fs::read(&path).expect("the file"))
        })
        // What is needed to resume is hidden.
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    files.sort();
    files
}

fn send(to: SocketAddr, more: &[&str]) -> (Option<i32>, String) {
    let example = example();
    let target = format!("ctf+udp://{to}");
    let path = example.to_str().expect("text");
    let output = kymo(&["send", path, &target])
        .args(more)
        .output()
        .expect("kymo runs");
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), reported)
}

#[test]
fn everything_arrives_whatever_is_lost() {
    let home = TempDir::new().expect("a directory");
    let key = home.path().join("key");
    fs::write(&key, [7; 16]).expect("a key");
    let only_for_us = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&key, only_for_us).expect("permissions");
    let key = key.to_str().expect("text");
    let output = home.path().join("trace");
    let receiver = Receiver::new(&output, &["--key-file", key]);
    let relay = Relay::new(receiver.address);
    let sizes = ["--packet-size", "1K", "--window", "16MiB"];
    let (code, reported) = send(relay.address, &[&["--key-file", key][..], &sizes].concat());
    assert_eq!(code, Some(0), "{reported}");
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(0), "{reported}");
    assert!(!relay.lost().is_empty());
    assert!(files(&output) == files(&example()), "{reported}");
}

/// Stream and packet of the fragments among datagrams.
fn fragments(datagrams: &[Vec<u8>]) -> Vec<(u32, u32)> {
    let number = |datagram: &[u8], at: usize| {
        u32::from_be_bytes(datagram[at..at + 4].try_into().expect("four bytes"))
    };
    let fragments = datagrams.iter().filter(|datagram| datagram[5] == 1);
    let mut all: Vec<_> = fragments
        .map(|datagram| (number(datagram, 24), number(datagram, 28)))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn without_asking_exactly_what_is_lost_is_reported() {
    lose_packets(&[], 0);
    lose_packets(&["--strict"], 1);
}

/// Loses packets on their way to a receiver that does not ask for them.
fn lose_packets(options: &[&str], expected_code: i32) {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let receiver = Receiver::new(&output, &[&["--no-resend"], options].concat());
    let relay = Relay::new(receiver.address);
    let (code_of_sender, reported_by_sender) = send(relay.address, &["--packet-size", "1024"]);
    let (code, reported) = receiver.end();
    // The directory and the metadata come first, and are sent until they are there.
    let lost = fragments(&relay.lost());
    let lost: Vec<_> = lost.into_iter().filter(|&(stream, _)| stream > 1).collect();
    assert!(!lost.is_empty());
    assert_eq!(code, Some(expected_code), "{reported}");
    let mut reported_lost = 0;
    for line in reported
        .lines()
        .filter(|line| line.ends_with(" never came"))
    {
        let words: Vec<_> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u32>().expect("a number");
        reported_lost += match words[words.len() - 4] {
            "to" => number(words[words.len() - 3]) + 1 - number(words[words.len() - 5]),
            _ => 1,
        };
    }
    // A machine that is busy loses others, too.
    assert!(reported_lost as usize >= lost.len(), "{reported}\n{lost:?}");
    assert_eq!(code_of_sender, Some(1), "{reported_by_sender}");
    let expected = format!("{reported_lost} packet");
    let reported = reported_by_sender
        .lines()
        .find(|line| line.ends_with(" never arrived"));
    assert!(
        reported.is_some_and(|line| line.contains(&expected)),
        "{reported_by_sender}"
    );
    // What is there is read, and its counters say what is missing.
    let check = kymo(&["check", "--json"]).arg(&output).output();
    let check = check.expect("kymo runs");
    assert_eq!(check.status.code(), Some(0));
    let names = |files: Vec<(String, Vec<u8>)>| -> Vec<String> {
        files.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(files(&output)), names(files(&example())));
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let limit = std::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_has_come_is_read_before_the_end() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let mut receiver = Receiver::new(&output, &[]);
    let target = format!("ctf+udp://{}", receiver.address);
    let mut sender = kymo(&["send"])
        .arg(example())
        .args([&target, "--rate", "20000"])
        .stderr(Stdio::null())
        .spawn()
        .expect("kymo runs");
    let size = |name: &str| fs::metadata(output.join(name)).map_or(0, |file| file.len());
    until("metadata and packets", || {
        size("metadata") == 8192 && size("r_0") > 0
    });
    let follow = kymo(&["print", "--follow", "--limit", "3"])
        .arg(&output)
        .output()
        .expect("kymo runs");
    let reported = String::from_utf8_lossy(&follow.stderr);
    assert_eq!(follow.status.code(), Some(0), "{reported}");
    assert_eq!(
        follow.stdout.split_inclusive(|&byte| byte == b'\n').count(),
        3
    );
    assert!(sender.try_wait().expect("it runs").is_none());
    // Killed, it leaves what has come.
    receiver.child.kill().expect("it runs");
    receiver.child.wait().expect("it ends");
    sender.kill().expect("it runs");
    sender.wait().expect("it ends");
    let read = |directory: &Path, name: &str| fs::read(directory.join(name)).expect("a file");
    assert!(read(&output, "metadata") == read(&example(), "metadata"));
    let whole = files(&example());
    for (name, came) in files(&output) {
        let (_, bytes) = whole
            .iter()
            .find(|(file, _)| *file == name)
            .expect("a name");
        assert!(bytes.starts_with(&came), "{name}");
    }
    assert!(size("r_0") + size("r_1") < 2 * 61_440);
    let check = kymo(&["check"]).arg(&output).output().expect("kymo runs");
    assert_eq!(check.status.code(), Some(0));
}

#[test]
fn packets_as_they_are_arrive() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let receiver = Receiver::new(&output, &["--idle", "400ms"]);
    let (code, reported) = send(receiver.address, &["--raw", "--rate", "1000000"]);
    assert_eq!(code, Some(0), "{reported}");
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(0), "{reported}");
    let all = |files: Vec<(String, Vec<u8>)>| {
        let streams = files.into_iter().filter(|(name, _)| name != "metadata");
        let mut bytes: Vec<_> = streams.map(|(_, bytes)| bytes).collect();
        bytes.sort();
        bytes
    };
    assert!(all(files(&output)) == all(files(&example())), "{reported}");
}

#[test]
fn what_cannot_be_is_reported() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    // The key of another user, and a datagram that is not a packet.
    let key = home.path().join("key");
    fs::write(&key, [7; 32]).expect("a key");
    let receiver = Receiver::new(&output, &["--idle", "300ms"]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let mut authenticated = b"kymo\x02\x02\x01\x00".to_vec();
    authenticated.resize(60, 0);
    for datagram in [&b"hello"[..], &authenticated, b"\xc1\x1f\xfc\xc1packet"] {
        socket.send_to(datagram, receiver.address).expect("it goes");
    }
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(0), "{reported}");
    assert!(
        reported.contains("is not a packet of a trace and not from `kymo send`"),
        "{reported}"
    );
    assert!(
        reported.contains("`--key-file FILE` names a file"),
        "{reported}"
    );
    assert_eq!(
        files(&output),
        [("raw_0".to_string(), b"\xc1\x1f\xfc\xc1packet".to_vec())]
    );

    let refused = |args: &[&str]| {
        let output = kymo(args).output().expect("kymo runs");
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        reported
    };
    let output = output.to_str().expect("text");
    let reported = refused(&["receive", "ctf+udp://127.0.0.1:0", "-o", output]);
    assert!(reported.contains("is not empty"), "{reported}");
    let example = example();
    let example = example.to_str().expect("text");
    for more in [["--event", "a"], ["--id", "h/p/t"]] {
        refused(&[&["send", example, "ctf+udp://127.0.0.1:9"][..], &more].concat());
    }
    refused(&["send", example, "collectd://127.0.0.1:9", "--raw"]);
    // Sizes have units, and errors say what is expected.
    for window in ["16X", "K", "-1"] {
        let window = ["--window", window];
        refused(&[&["send", example, "ctf+udp://127.0.0.1:9"][..], &window].concat());
    }
}

#[test]
fn what_is_there_is_written_when_it_is_interrupted() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let receiver = Receiver::new(&output, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let packet = b"\xc1\x1f\xfc\xc1packet";
    socket.send_to(packet, receiver.address).expect("it goes");
    // The directory and a packet of the stream that it names; the one before it is missing.
    for body in [
        &b"\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\x04\0\0\0\0\x01\0\0\0\x01one"[..],
        b"\0\0\0\x01\0\0\0\x01\0\0\0\x04\0\0\0\0\x04\0\0\0four",
    ] {
        let mut datagram = b"kymo\x02\x01\0\0sessionXnumber__".to_vec();
        datagram.extend(body);
        datagram.extend(crc32fast::hash(&datagram).to_be_bytes());
        socket
            .send_to(&datagram, receiver.address)
            .expect("it goes");
    }
    let limit = std::time::Instant::now() + Duration::from_secs(10);
    while !output.join("raw_0").exists() && std::time::Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let interrupted = Command::new("kill")
        .args(["-INT", &receiver.child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill runs").success());
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(1), "{reported}");
    assert!(reported.contains("one: packet 0 never came"), "{reported}");
    assert!(
        reported.contains("nobody knows what is missing there"),
        "{reported}"
    );
    let expected = [("one", &b"four"[..]), ("raw_0", packet)];
    let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    assert_eq!(files(&output), expected);
}

#[test]
fn what_cannot_be_sent_as_it_is_makes_the_status_1() {
    let home = TempDir::new().expect("a directory");
    let text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; \
        typealias integer { size = 8; align = 8; } := byte; stream { event.header := struct { byte id; }; }; \
        event { name = one; id = 1; fields := struct { byte value; }; };";
    fs::write(home.path().join("metadata"), text).expect("metadata");
    fs::write(home.path().join("stream"), [1, 7, 1, 8]).expect("a stream");
    let bitfield = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bitfield-le");
    // No listener is required: the receiver is not known.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let target = format!("ctf+udp://{}", socket.local_addr().expect("an address"));
    for trace in [home.path(), &bitfield] {
        let trace = trace.to_str().expect("text");
        let output = kymo(&["send", trace, &target, "--raw"]).output();
        let output = output.expect("kymo runs");
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{reported}");
        assert!(
            reported.contains("metadata: it is not in packets"),
            "{reported}"
        );
        assert!(reported.contains("nothing was sent"), "{reported}");
    }
}

#[test]
fn what_was_recorded_does_not_lead_requests_elsewhere() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let receiver = Receiver::new(&output, &["--idle", "600ms"]);
    let [sender, other] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    // A packet of a stream; the one before it is missing.
    let mut datagram = b"kymo\x02\x01\0\0sessionXnumber__".to_vec();
    datagram.extend(b"\0\0\0\x01\0\0\0\x01\0\0\0\x04\0\0\0\0\x04\0\0\0four");
    datagram.extend(crc32fast::hash(&datagram).to_be_bytes());
    sender
        .send_to(&datagram, receiver.address)
        .expect("it goes");
    let begun = std::time::Instant::now();
    other
        .set_read_timeout(Some(Duration::from_millis(20)))
        .expect("a limit");
    let mut asked = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        // The system may report that there is no longer a listener.
        let _ = other.send_to(&datagram, receiver.address);
        asked += usize::from(other.recv(&mut [0; 2000]).is_ok());
    }
    assert_eq!(asked, 0);
    sender
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a limit");
    assert!(sender.recv(&mut [0; 2000]).is_ok());
    // It has ended meanwhile, and what it has is there.
    let mut receiver = receiver;
    assert!(receiver.child.try_wait().expect("it is known").is_some());
    let expected = ("stream_1".to_string(), b"four".to_vec());
    assert_eq!(files(&output), [expected]);
}

/// A receiver that is killed, or interrupted, and started again gets what is missing; the sender waits meanwhile.
#[test]
fn a_restarted_receiver_takes_up_where_it_was() {
    for signal in ["KILL", "TERM"] {
        let home = TempDir::new().expect("a directory");
        let output = home.path().join("trace");
        let receiver = Receiver::new(&output, &["--resume"]);
        let address = receiver.address;
        let sender = kymo(&["send", "--rate", "40000", "--packet-size", "1024"])
            .arg(example())
            .arg(format!("ctf+udp://{address}"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo runs");
        // How far it has come is known after a second.
        until("the state", || output.join(".kymo-receive.json").exists());
        let pid = receiver.child.id().to_string();
        let killed = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(killed.expect("kill runs").success());
        let (code, reported) = receiver.end();
        match signal {
            "KILL" => assert_eq!(code, None, "{reported}"),
            _ => assert_eq!(code, Some(1), "{reported}"),
        }
        std::thread::sleep(Duration::from_millis(600));
        let receiver = Receiver::at(&format!("ctf+udp://{address}"), &output, &["--resume"]);
        let (code, reported) = receiver.end();
        assert_eq!(code, Some(0), "{reported}");
        let sent = sender.wait_with_output().expect("it ends");
        let reported = String::from_utf8_lossy(&sent.stderr);
        assert_eq!(sent.status.code(), Some(0), "{reported}");
        assert!(
            reported.contains("nobody listens there; sent "),
            "{reported}"
        );
        assert!(
            reported.contains("somebody listens there again"),
            "{reported}"
        );
        assert!(files(&output) == files(&example()), "{signal}");
        let again = kymo(&["receive", "--resume", "ctf+udp://127.0.0.1:0", "-o"])
            .arg(&output)
            .output()
            .expect("kymo runs");
        let reported = String::from_utf8_lossy(&again.stderr).into_owned();
        assert_eq!(again.status.code(), Some(2), "{reported}");
        assert!(reported.contains("nothing to resume"), "{reported}");
    }
}

#[test]
fn a_sender_that_nobody_hears_says_how_far_it_came() {
    // A port that is no longer in use.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    drop(socket);
    let (code, reported) = send(address, &["--wait", "700ms"]);
    assert_eq!(code, Some(1), "{reported}");
    let line = format!("error: ctf+udp://{address}: nobody listens there: sent ");
    assert!(reported.contains(&line), "{reported}");
    assert!(reported.contains("`--wait DURATION`"), "{reported}");
    // A receiver that comes late gets everything.
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let sender = std::thread::spawn(move || send(address, &[]));
    std::thread::sleep(Duration::from_millis(500));
    let receiver = Receiver::at(&format!("ctf+udp://{address}"), &output, &[]);
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(0), "{reported}");
    let (code, reported) = sender.join().expect("it has not failed");
    assert_eq!(code, Some(0), "{reported}");
    assert!(files(&output) == files(&example()));
}

#[test]
fn several_senders_have_directories_of_their_own() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("hosts");
    let receiver = Receiver::new(&output, &["--senders", "3"]);
    let address = receiver.address;
    let senders: Vec<_> = (0..3)
        .map(|_| std::thread::spawn(move || send(address, &[])))
        .collect();
    for sender in senders {
        let (code, reported) = sender.join().expect("it has not failed");
        assert_eq!(code, Some(0), "{reported}");
    }
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(0), "{reported}");
    assert!(reported.contains(", from 3 senders"), "{reported}");
    for number in 1..=3 {
        let directory = output.join(format!("sender_{number}"));
        assert!(files(&directory) == files(&example()));
    }
}

#[test]
fn the_packet_limit_is_named_where_it_is_hit() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let largest = files(&example()).iter().map(|(_, bytes)| bytes.len()).max();
    assert!(largest > Some(1500));
    let receiver = Receiver::new(&output, &["--packet-limit", "1K"]);
    let (code, sent) = send(receiver.address, &[]);
    assert_eq!(code, Some(1), "{sent}");
    assert!(sent.contains("never arrived"), "{sent}");
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(1), "{reported}");
    assert!(
        reported.contains("bytes, more than `--packet-limit`"),
        "{reported}"
    );
    assert!(
        reported.contains("hint: `--packet-limit SIZE`"),
        "{reported}"
    );
}

#[test]
fn a_receiver_whose_sender_is_gone_ends_and_says_what_is_missing() {
    let home = TempDir::new().expect("a directory");
    let output = home.path().join("trace");
    let receiver = Receiver::new(&output, &["--idle", "500ms"]);
    let mut sender = kymo(&["send", "--rate", "20000", "--packet-size", "1024"])
        .arg(example())
        .arg(format!("ctf+udp://{}", receiver.address))
        .stderr(Stdio::null())
        .spawn()
        .expect("kymo runs");
    until("something", || {
        output.exists() && !files(&output).is_empty()
    });
    sender.kill().expect("it runs");
    sender.wait().expect("it ends");
    let (code, reported) = receiver.end();
    assert_eq!(code, Some(1), "{reported}");
    assert!(
        reported.contains("the sender has not announced the end"),
        "{reported}"
    );
}
