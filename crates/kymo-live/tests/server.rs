//! A relay daemon that is strict with viewers and does what real ones seldom do: other versions, metadata of CTF 2,
//! streams that come and go, connections that end anywhere, lengths that are lies.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_live::{Error, ProtocolError, Reader, ReaderOptions, Url, ViewerOptions, list_sessions};
use tempfile::TempDir;

/// What the daemon has of a stream.
#[derive(Clone)]
enum Entry {
    /// A packet from and to these ticks, with flags of its index.
    Packet(u64, u64, Vec<u8>, u32),
    /// Nothing until these ticks.
    Inactive(u64),
    /// Nothing yet.
    Retry,
    /// An index with this status and this size in bits.
    Odd(u32, u64),
}

#[derive(Clone)]
struct Stream {
    id: u64,
    trace: u64,
    path: &'static str,
    channel: &'static str,
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Relay {
    minor: u32,
    /// Of each trace: the parts of its metadata, each sent when it is asked for.
    metadata: BTreeMap<u64, Vec<Vec<u8>>>,
    streams: Vec<Stream>,
    /// How many of them are known when a session is attached.
    first: usize,
    /// Number of bytes of replies after which the connection ends, for each connection in turn.
    cuts: Vec<usize>,
    /// Bytes that take the place of the reply to a command.
    lies: BTreeMap<u32, Vec<u8>>,
}

impl Relay {
    fn new() -> Self {
        Self {
            minor: 13,
            metadata: [(7, vec![b"/* CTF 1.8 */ one".to_vec()])].into(),
            streams: vec![stream(10, "a", 3), stream(11, "b", 3)],
            first: 2,
            cuts: Vec::new(),
            lies: BTreeMap::new(),
        }
    }
}

/// A stream of packets that are texts.
fn stream(id: u64, channel: &'static str, packets: u64) -> Stream {
    let packet = |number: u64| {
        let text = format!("<{channel}{number}>").repeat(1 + number as usize * 5);
        Entry::Packet(number * 100, number * 100 + 90, text.into_bytes(), 0)
    };
    Stream {
        id,
        trace: 7,
        path: "ust/uid/0/64-bit",
        channel,
        entries: (1..=packets).map(packet).collect(),
    }
}

fn contents(stream: &Stream) -> Vec<u8> {
    let packets = stream.entries.iter().filter_map(|entry| match entry {
        Entry::Packet(_, _, bytes, _) => Some(bytes.clone()),
        _ => None,
    });
    packets.collect::<Vec<_>>().concat()
}

/// One connection: it answers until the viewer is gone.
struct Connection<'r> {
    relay: &'r Relay,
    socket: TcpStream,
    left: usize,
    is_connected: bool,
    has_session: bool,
    is_attached: bool,
    /// Streams that were sent.
    sent: usize,
    next: BTreeMap<u64, usize>,
    /// The packet whose index was sent.
    indexed: BTreeMap<u64, usize>,
    metadata: BTreeMap<u64, usize>,
    /// Streams that were reported as ended.
    gone: Vec<u64>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Connection<'_> {
    fn u32(bytes: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn u64(bytes: &[u8], at: usize) -> u64 {
        u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    fn text(text: &str, size: usize) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(size, 0);
        bytes
    }

    /// Sends a reply, in two parts, as a network may.
    fn send(&mut self, bytes: &[u8]) -> bool {
        let count = bytes.len().min(self.left);
        self.left -= count;
        let half = count / 2;
        let sent = self.socket.write_all(&bytes[..half]).is_ok()
            && self.socket.write_all(&bytes[half..count]).is_ok();
        sent && count == bytes.len()
    }

    fn run(&mut self) {
        let mut head = [0; 16];
        while self.socket.read_exact(&mut head).is_ok() {
            let (size, command, version) = (
                Self::u64(&head, 0),
                Self::u32(&head, 8),
                Self::u32(&head, 12),
            );
            assert_eq!(version, 0);
            let mut payload = vec![0; usize::try_from(size).unwrap()];
            if self.socket.read_exact(&mut payload).is_err() {
                return;
            }
            self.log.lock().unwrap().push(format!("{command}"));
            let reply = match self.relay.lies.get(&command) {
                Some(lie) => lie.clone(),
                None => self.reply(command, &payload),
            };
            if !self.send(&reply) {
                let _ = self.socket.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    fn streams(&mut self, status: u32, entries: &[u8], count: usize) -> Vec<u8> {
        let head = [status.to_be_bytes(), (count as u32).to_be_bytes()].concat();
        [&head, entries].concat()
    }

    /// All streams up to a number that were not sent, those of metadata with the first of their trace.
    fn new_streams(&mut self, most: usize) -> (Vec<u8>, usize) {
        let (mut bytes, mut count) = (Vec::new(), 0);
        let entry = |id: u64, trace: u64, is_metadata: u32, path: &str, channel: &str| {
            let numbers = [id.to_be_bytes(), trace.to_be_bytes()].concat();
            let flag = is_metadata.to_be_bytes();
            [
                &numbers[..],
                &flag,
                &Self::text(path, 4096),
                &Self::text(channel, 255),
            ]
            .concat()
        };
        let streams = &self.relay.streams[self.sent..most.max(self.sent)];
        for stream in streams {
            if self.metadata.insert(stream.trace, 0).is_none() {
                bytes.extend(entry(
                    1000 + stream.trace,
                    stream.trace,
                    1,
                    stream.path,
                    "metadata",
                ));
                count += 1;
            }
            bytes.extend(entry(
                stream.id,
                stream.trace,
                0,
                stream.path,
                stream.channel,
            ));
            count += 1;
        }
        self.sent = most.max(self.sent);
        (bytes, count)
    }

    fn reply(&mut self, command: u32, payload: &[u8]) -> Vec<u8> {
        assert!(
            self.is_connected || command == 1,
            "no version was agreed on"
        );
        let expected = [0, 20, 0, 20, 8, 20, 8, 8, 0, 8];
        assert_eq!(
            payload.len(),
            expected[command as usize],
            "of command {command}"
        );
        match command {
            1 => {
                assert_eq!((Self::u32(payload, 8), Self::u32(payload, 16)), (2, 1));
                self.is_connected = true;
                let minor = self.relay.minor.to_be_bytes();
                [
                    &5_u64.to_be_bytes()[..],
                    &2_u32.to_be_bytes(),
                    &minor,
                    &1_u32.to_be_bytes(),
                ]
                .concat()
            }
            2 => {
                let session = |id: u64, name: &str| {
                    let numbers = [1_000_000_u32, 0, 3].map(u32::to_be_bytes).concat();
                    [
                        &id.to_be_bytes()[..],
                        &numbers,
                        &Self::text("vm", 64),
                        &Self::text(name, 255),
                    ]
                    .concat()
                };
                [
                    &2_u32.to_be_bytes()[..],
                    &session(3, "other"),
                    &session(4, "s"),
                ]
                .concat()
            }
            3 => {
                assert!(self.has_session && !self.is_attached);
                assert_eq!((Self::u64(payload, 0), Self::u64(payload, 8)), (4, 0));
                self.is_attached = true;
                let (bytes, count) = self.new_streams(self.relay.first);
                self.streams(1, &bytes, count)
            }
            4 => self.index(Self::u64(payload, 0)),
            5 => {
                let (id, offset, length) = (
                    Self::u64(payload, 0),
                    Self::u64(payload, 8),
                    Self::u32(payload, 16),
                );
                let stream = self
                    .relay
                    .streams
                    .iter()
                    .find(|stream| stream.id == id)
                    .unwrap();
                let Entry::Packet(begin, _, bytes, _) = &stream.entries[self.indexed[&id]] else {
                    panic!("there is no packet");
                };
                // The place in the file is made of the time, here.
                let at = (offset - begin * 1_000_000) as usize;
                let bytes = &bytes[at..at + length as usize];
                let head = [1, length, 0].map(u32::to_be_bytes).concat();
                [&head, bytes].concat()
            }
            6 => {
                let trace = Self::u64(payload, 0) - 1000;
                let parts = &self.relay.metadata[&trace];
                let next = self.metadata.get_mut(&trace).unwrap();
                match parts.get(*next) {
                    Some(part) => {
                        *next += 1;
                        let length = (part.len() as u64).to_be_bytes();
                        [&length[..], &1_u32.to_be_bytes(), part].concat()
                    }
                    None => [&[0; 8][..], &2_u32.to_be_bytes()].concat(),
                }
            }
            7 => {
                assert_eq!(Self::u64(payload, 0), 4);
                let (bytes, count) = self.new_streams(self.relay.streams.len());
                let is_over = self.gone.len() == self.relay.streams.len();
                self.streams(if is_over { 4 } else { 1 }, &bytes, count)
            }
            8 => {
                self.has_session = true;
                1_u32.to_be_bytes().to_vec()
            }
            9 => 1_u32.to_be_bytes().to_vec(),
            _ => panic!("there is no command {command}"),
        }
    }

    fn index(&mut self, id: u64) -> Vec<u8> {
        assert!(!self.gone.contains(&id), "stream {id} has ended");
        let stream = self
            .relay
            .streams
            .iter()
            .find(|stream| stream.id == id)
            .unwrap();
        let next = self.next.entry(id).or_default();
        let entry = stream.entries.get(*next);
        let now = *next;
        *next += 1;
        let index = |numbers: [u64; 6], status: u32, flags: u32| {
            let numbers = numbers.map(u64::to_be_bytes).concat();
            let ends = [status, flags].map(u32::to_be_bytes).concat();
            [&numbers[..], &9_u64.to_be_bytes(), &ends].concat()
        };
        match entry {
            Some(Entry::Packet(begin, end, bytes, flags)) => {
                self.indexed.insert(id, now);
                let bits = bytes.len() as u64 * 8;
                index([begin * 1_000_000, bits, bits, *begin, *end, 0], 1, *flags)
            }
            Some(Entry::Inactive(until)) => index([0, 0, 0, 0, *until, 0], 5, 0),
            Some(Entry::Retry) => index([0; 6], 2, 0),
            Some(Entry::Odd(status, bits)) => index([0, *bits, *bits, 5000, 6000, 0], *status, 0),
            None => {
                self.gone.push(id);
                index([0; 6], 3, 0)
            }
        }
    }
}

/// A daemon that runs, and the commands that it was given.
struct Running {
    url: Url,
    log: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
    address: std::net::SocketAddr,
}

impl Running {
    fn new(relay: Relay) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let logged = Arc::clone(&log);
        let thread = std::thread::spawn(move || {
            for number in 0.. {
                let (socket, _) = listener.accept().unwrap();
                socket.set_nodelay(true).unwrap();
                let mut first = [0; 1];
                if matches!(socket.peek(&mut first), Ok(0) | Err(_)) {
                    return;
                }
                let mut connection = Connection {
                    relay: &relay,
                    socket,
                    left: relay.cuts.get(number).copied().unwrap_or(usize::MAX),
                    is_connected: false,
                    has_session: false,
                    is_attached: false,
                    sent: 0,
                    next: BTreeMap::new(),
                    indexed: BTreeMap::new(),
                    metadata: BTreeMap::new(),
                    gone: Vec::new(),
                    log: Arc::clone(&logged),
                };
                connection.run();
            }
        });
        Self {
            url: Url::parse(&format!("net://{address}/host/vm/s")).unwrap(),
            log,
            thread: Some(thread),
            address,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A connection that says nothing ends it.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            if !std::thread::panicking() {
                joined.expect("the viewer keeps to the protocol");
            }
        }
    }
}

fn options() -> ReaderOptions {
    ReaderOptions {
        viewer: ViewerOptions {
            period: Duration::from_millis(2),
            ..ViewerOptions::default()
        },
        waits: false,
        opens_until: None,
        ahead: u64::MAX,
        limit: u64::MAX,
    }
}

/// Reads all of a session.
fn read(running: &Running, home: &Path, options: ReaderOptions) -> (Reader, Option<Error>) {
    let reader = Reader::open(&running.url, home, options, Arc::default()).unwrap();
    let begun = Instant::now();
    while !reader.status().is_ended {
        reader.wait_for_end(Duration::from_millis(50));
        assert!(begun.elapsed() < Duration::from_secs(60), "it never ends");
    }
    let error = reader.take_error();
    (reader, error)
}

fn stored(reader: &Reader, channel: &str) -> Vec<u8> {
    let status = reader.status();
    let stream = status
        .streams
        .iter()
        .find(|stream| stream.name.channel == channel);
    std::fs::read(&stream.expect("it was announced").file.path).unwrap()
}

fn assert_whole(relay: &Relay, reader: &Reader) {
    for stream in &relay.streams {
        assert_eq!(
            stored(reader, stream.channel),
            contents(stream),
            "{}",
            stream.channel
        );
    }
    let metadata = relay.metadata[&7].concat();
    assert_eq!(stored(reader, "metadata"), metadata);
}

#[test]
fn sessions_are_listed_and_read_with_all_versions() {
    for minor in 4..=16 {
        let relay = Relay {
            minor,
            ..Relay::new()
        };
        let running = Running::new(relay.clone());
        let daemon = Url {
            target: None,
            ..running.url.clone()
        };
        let sessions = list_sessions(&daemon, &AtomicBool::new(false)).unwrap();
        let names: Vec<_> = sessions
            .iter()
            .map(|session| (&*session.host, &*session.name, session.id))
            .collect();
        assert_eq!(names, [("vm", "other", 3), ("vm", "s", 4)]);
        let home = TempDir::new().unwrap();
        let (reader, error) = read(&running, home.path(), options());
        assert!(error.is_none(), "{error:?}");
        assert_whole(&relay, &reader);
        assert_eq!(reader.status().packets, 6);
    }
}

#[test]
fn streams_and_metadata_come_in_the_midst() {
    let mut relay = Relay::new();
    // CTF 2, in two parts.
    let preamble = b"\x1e{\"type\":\"preamble\",\"version\":2}\n".to_vec();
    relay.metadata.insert(
        7,
        vec![
            preamble,
            b"\x1e{\"type\":\"event-record-class\"}\n".to_vec(),
        ],
    );
    relay.streams[0].entries.insert(1, Entry::Inactive(195));
    relay.streams[0].entries.insert(1, Entry::Retry);
    if let Entry::Packet(_, _, _, flags) = &mut relay.streams[0].entries[3] {
        *flags = 3;
    }
    relay.streams.push(stream(12, "late", 2));
    let running = Running::new(relay.clone());
    let home = TempDir::new().unwrap();
    let (reader, error) = read(&running, home.path(), options());
    assert!(error.is_none(), "{error:?}");
    assert_whole(&relay, &reader);
    let frontiers: Vec<_> = reader
        .status()
        .streams
        .iter()
        .map(|stream| stream.frontier)
        .collect();
    assert_eq!(frontiers, [None, Some(390), Some(390), Some(290)]);
}

#[test]
fn connections_that_end_anywhere_lose_and_repeat_nothing() {
    let relay = Relay::new();
    // The reply to the list of sessions ends at 24 + 678, that to attaching at + 12 + 4371 * 3.
    let attached = 20 + 4 + 2 * 339 + 4 + 8 + 3 * 4371;
    for cut in (attached..attached + 700)
        .step_by(37)
        .chain([attached - 1, attached - 5000])
    {
        let relay = Relay {
            cuts: vec![cut, cut + 150],
            ..relay.clone()
        };
        let running = Running::new(relay.clone());
        let home = TempDir::new().unwrap();
        let (reader, error) = read(&running, home.path(), options());
        assert!(error.is_none(), "{cut}: {error:?}");
        assert_whole(&relay, &reader);
        assert!(!reader.take_notes().is_empty());
    }
}

#[test]
fn packets_that_are_known_are_not_asked_for() {
    let relay = Relay::new();
    let running = Running::new(relay.clone());
    let home = TempDir::new().unwrap();
    let (reader, _) = read(&running, home.path(), options());
    let names: Vec<_> = reader
        .status()
        .streams
        .iter()
        .map(|stream| stream.name.clone())
        .collect();
    drop(reader);
    let mut options = options();
    let position = kymo_live::Position {
        begin: 200,
        end: 290,
    };
    for name in names {
        options.viewer.known.insert(name, position);
    }
    running.log.lock().unwrap().clear();
    let home = TempDir::new().unwrap();
    let (reader, error) = read(&running, home.path(), options);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(reader.status().packets, 2);
    let asked = running
        .log
        .lock()
        .unwrap()
        .iter()
        .filter(|&line| line == "5")
        .count();
    assert_eq!(asked, 2);
}

#[test]
fn a_slow_reader_stops_the_asking_and_a_full_disk_ends_it() {
    let relay = Relay::new();
    let running = Running::new(relay.clone());
    let home = TempDir::new().unwrap();
    let options = ReaderOptions {
        ahead: 10,
        ..options()
    };
    let reader = Reader::open(&running.url, home.path(), options.clone(), Arc::default()).unwrap();
    let begun = Instant::now();
    let mut consumed = 0;
    while !reader.status().is_ended {
        let status = reader.status();
        assert!(status.bytes <= consumed + 10 + 100);
        if status.is_full {
            reader.consumed(status.bytes - consumed, 0);
            consumed = status.bytes;
        }
        std::thread::sleep(Duration::from_millis(1));
        assert!(begun.elapsed() < Duration::from_secs(60), "it never ends");
    }
    assert_whole(&relay, &reader);
    drop(reader);
    let home = TempDir::new().unwrap();
    let options = ReaderOptions {
        limit: 10,
        ahead: u64::MAX,
        ..options
    };
    let (_, error) = read(&running, home.path(), options);
    assert!(
        matches!(error, Some(Error::Full { limit: 10, .. })),
        "{error:?}"
    );
}

#[test]
fn hostile_daemons_are_refused() {
    let number = |value: u32| value.to_be_bytes().to_vec();
    let connect =
        |major: u32, minor: u32| [vec![0; 8], number(major), number(minor), number(1)].concat();
    let metadata = |length: u64| [length.to_be_bytes().to_vec(), number(1)].concat();
    let packet = |length: u32| [number(1), number(length), number(0)].concat();
    let index = |status: u32| [vec![0; 56], number(status), number(0)].concat();
    for (command, lie, expected) in [
        (1, connect(3, 0), "version 3.0"),
        (1, connect(2, 3), "version 2.3"),
        (2, number(u32::MAX), "4294967295 sessions"),
        (
            3,
            [number(1), number(u32::MAX)].concat(),
            "4294967295 new streams",
        ),
        (3, [number(77), number(0)].concat(), "status 77"),
        (3, [number(4), number(0)].concat(), "not a live session"),
        (4, index(99), "status 99"),
        (5, packet(u32::MAX), "4294967295 bytes"),
        (5, packet(0), "0 bytes"),
        (6, metadata(u64::MAX), "bytes of metadata"),
        (
            7,
            [number(1), number(1 << 30)].concat(),
            "1073741824 new streams",
        ),
        (8, number(2), "status 2"),
        (
            2,
            [number(0), vec![0; 100_000]].concat(),
            "nobody asked for",
        ),
    ] {
        let relay = Relay {
            lies: [(command, lie)].into(),
            ..Relay::new()
        };
        let running = Running::new(relay);
        let home = TempDir::new().unwrap();
        let opened = Reader::open(&running.url, home.path(), options(), Arc::default());
        let error = match opened {
            Err(error) => error,
            Ok(reader) => {
                let begun = Instant::now();
                while !reader.status().is_ended {
                    reader.wait_for_end(Duration::from_millis(50));
                    assert!(begun.elapsed() < Duration::from_secs(60), "{expected}");
                }
                reader.take_error().expect("something is wrong")
            }
        };
        assert!(
            error.to_string().contains(expected),
            "{error} is not {expected}"
        );
    }
}

#[test]
fn odd_packets_and_streams_are_counted() {
    let mut relay = Relay::new();
    // Empty, and larger than there is memory for.
    relay.streams[0].entries.insert(1, Entry::Odd(1, 0));
    relay.streams[0].entries.insert(2, Entry::Odd(1, u64::MAX));
    let mut running = Running::new(relay.clone());
    let home = TempDir::new().unwrap();
    let (reader, error) = read(&running, home.path(), options());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(reader.status().lost_packets, 2);
    assert_whole(&relay, &reader);
    drop(reader);
    // There is no such session.
    running.url = running.url.with_target("vm", "none");
    let home = TempDir::new().unwrap();
    let opened = Reader::open(&running.url, home.path(), options(), Arc::default());
    match opened {
        Err(Error::NoSession { sessions, .. }) => assert_eq!(sessions.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn detaching_ends_the_reading() {
    let mut relay = Relay::new();
    relay.streams[1]
        .entries
        .extend(vec![Entry::Retry; 1_000_000]);
    let running = Running::new(relay);
    let home = TempDir::new().unwrap();
    let mut reader = Reader::open(&running.url, home.path(), options(), Arc::default()).unwrap();
    while reader.status().packets < 6 {
        reader.wait_for_end(Duration::from_millis(5));
    }
    reader.detach();
    assert!(reader.status().is_ended);
    assert!(reader.take_error().is_none());
    assert_eq!(
        running.log.lock().unwrap().last().map(String::as_str),
        Some("9")
    );
}

#[test]
fn a_daemon_that_says_nothing_is_not_waited_for_longer_than_was_set() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = Url::parse(&format!("net://127.0.0.1:{port}/host/vm/s")).unwrap();
    let home = TempDir::new().unwrap();
    let options = ReaderOptions {
        opens_until: Some(Instant::now() + Duration::from_millis(50)),
        ..options()
    };
    let opened = Reader::open(&url, home.path(), options, Arc::default());
    assert!(matches!(opened, Err(Error::Late { .. })));
}

#[test]
fn errors_are_shown_with_what_was_expected() {
    let error = ProtocolError::Length {
        request: "GET_PACKET",
        length: 5,
        expected: 7,
    };
    assert_eq!(
        error.to_string(),
        "the reply to GET_PACKET has 5 bytes; expected 7"
    );
}
