//! Sessions of LTTng live as inputs. A relay daemon of the tests sends the trace of the examples; how it is asked,
//! the tests of `kymo-live` hold to the protocol.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use common::{example, kymo, text};
use tempfile::TempDir;

/// Bytes of the head of an index file, and of each entry.
const INDEX_HEAD: usize = 16;

/// A stream: its channel, its file, and the entries of its index.
struct Stream {
    channel: String,
    bytes: Vec<u8>,
    index: Vec<Vec<u8>>,
}

struct Trace {
    metadata: Vec<u8>,
    streams: Vec<Stream>,
}

impl Trace {
    fn open(directory: &Path) -> Self {
        let mut streams = Vec::new();
        let mut files: Vec<_> = fs::read_dir(directory.join("index")).unwrap().collect();
        files.sort_by_key(|file| file.as_ref().unwrap().file_name());
        for file in files {
            let path = file.unwrap().path();
            let channel = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let index = fs::read(&path).unwrap();
            let size = u32::from_be_bytes(index[12..16].try_into().unwrap()) as usize;
            let entries = index[INDEX_HEAD..].chunks_exact(size);
            streams.push(Stream {
                bytes: fs::read(directory.join(&channel)).unwrap(),
                index: entries.map(|entry| entry[..56].to_vec()).collect(),
                channel,
            });
        }
        Self {
            metadata: fs::read(directory.join("metadata")).unwrap(),
            streams,
        }
    }
}

fn text_of(text: &str, size: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(size, 0);
    bytes
}

fn numbers(words: &[u32]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}

/// Answers a viewer until it is gone.
fn serve(trace: &Trace, socket: &mut TcpStream) {
    let mut head = [0; 16];
    let mut next: BTreeMap<u64, usize> = BTreeMap::new();
    let mut has_metadata = true;
    while socket.read_exact(&mut head).is_ok() {
        let long =
            |bytes: &[u8], at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let mut payload = vec![0; long(&head, 0) as usize];
        socket.read_exact(&mut payload).unwrap();
        let reply = match head[11] {
            1 => [vec![0; 8], numbers(&[2, 13, 1])].concat(),
            2 => {
                let names = [text_of("vm", 64), text_of("small", 255)].concat();
                let count = trace.streams.len() as u32 + 1;
                [numbers(&[1, 0, 4, 500_000, 0, count]), names].concat()
            }
            3 => {
                let entry = |id: u64, flag: u32, channel: &str| {
                    let head = [id.to_be_bytes(), 1_u64.to_be_bytes()].concat();
                    let path = text_of("ust/uid/0/64-bit", 4096);
                    [head, numbers(&[flag]), path, text_of(channel, 255)].concat()
                };
                let mut reply = numbers(&[1, trace.streams.len() as u32 + 1]);
                reply.extend(entry(1000, 1, "metadata"));
                for (id, stream) in (0..).zip(&trace.streams) {
                    reply.extend(entry(id, 0, &stream.channel));
                }
                reply
            }
            4 => {
                let stream = long(&payload, 0);
                let number = next.entry(stream).or_default();
                *number += 1;
                match trace.streams[stream as usize].index.get(*number - 1) {
                    Some(entry) => [entry.clone(), numbers(&[1, 0])].concat(),
                    None => [vec![0; 56], numbers(&[3, 0])].concat(),
                }
            }
            5 => {
                let (stream, offset) = (long(&payload, 0), long(&payload, 8) as usize);
                let length = u32::from_be_bytes(payload[16..20].try_into().unwrap());
                let bytes = &trace.streams[stream as usize].bytes[offset..][..length as usize];
                [numbers(&[1, length, 0]), bytes.to_vec()].concat()
            }
            6 if std::mem::take(&mut has_metadata) => {
                let length = (trace.metadata.len() as u64).to_be_bytes().to_vec();
                [length, numbers(&[1]), trace.metadata.clone()].concat()
            }
            6 => [vec![0; 8], numbers(&[2])].concat(),
            7 => {
                let ended = next
                    .iter()
                    .filter(|(stream, next)| **next > trace.streams[**stream as usize].index.len());
                let is_over = ended.count() == trace.streams.len();
                numbers(&[if is_over { 4 } else { 2 }, 0])
            }
            _ => numbers(&[1]),
        };
        if socket.write_all(&reply).is_err() {
            return;
        }
    }
}

struct Relay {
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn new() -> Self {
        let trace = Trace::open(&example("lttng-small").join("ust/uid/0/64-bit"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            loop {
                let (mut socket, _) = listener.accept().unwrap();
                if matches!(socket.peek(&mut [0]), Ok(0) | Err(_)) {
                    return;
                }
                serve(&trace, &mut socket);
            }
        });
        Self {
            address,
            thread: Some(thread),
        }
    }

    fn url(&self) -> String {
        format!("net://{}/host/vm/small", self.address)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
        let joined = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            joined.unwrap().expect("it answers");
        }
    }
}

/// What a run prints that goes well and warns of nothing.
fn shown(args: &[&str]) -> String {
    let output = kymo(args);
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), &*reported),
        (Some(0), ""),
        "{args:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sessions_are_listed() {
    let relay = Relay::new();
    let daemon = format!("net://{}", relay.address);
    let listed = shown(&["info", &daemon]);
    let expected = format!("{} (timer = 500000, ", relay.url());
    assert!(listed.starts_with(&expected), "{listed}");
    let json = shown(&["info", "--json", &daemon]);
    assert!(json.contains("\"session\":\"small\""), "{json}");
}

#[test]
fn a_session_is_shown_as_the_trace_that_it_is() {
    let relay = Relay::new();
    let trace = example("lttng-small").join("ust");
    let trace = text(&trace);
    let home = TempDir::new().unwrap();
    let position = home.path().join("position");
    for options in [
        &["print", "--clock-gmt"][..],
        &["print", "--clock-gmt", "--where", "cpu_id == 1"],
        &["print", "--clock-gmt", "--last", "7"],
        &["stats", "--json", "--by", "name"],
        &["stats", "--by", "name", "--every", "1ms"],
        &["values", "--field", "cpu_id", "--every", "10ms", "--json"],
        &[
            "latency",
            "--start",
            "demo:ints",
            "--end",
            "demo:ints",
            "--by",
            "name",
            "--all",
        ],
        &[
            "states",
            "--state-event",
            "demo:ints",
            "--every",
            "1ms",
            "--where",
            "cpu_id == 0",
        ],
        &["info", "--metadata"],
    ] {
        let url = relay.url();
        let live = shown(&[options, &[&url]].concat());
        let stored = shown(&[options, &[trace]].concat());
        assert_eq!(live, stored, "{options:?}");
        assert!(!live.is_empty());
    }
    let url = relay.url();
    let resumed = [
        "print",
        "--clock-gmt",
        "--live-resume",
        text(&position),
        &url,
    ];
    assert_eq!(shown(&resumed), shown(&["print", "--clock-gmt", trace]));
    // All of it was shown.
    assert_eq!(shown(&resumed), "");
}

#[test]
fn what_is_not_there_is_said() {
    let relay = Relay::new();
    let daemon = format!("net://{}", relay.address);
    for (args, status, expected) in [
        (vec!["print", &daemon], 2, "has no session"),
        (
            vec!["print", &format!("{daemon}/host/vm/other")],
            3,
            "there is `net://",
        ),
        (
            vec!["stats", "net://127.0.0.1:1/host/vm/s"],
            3,
            "cannot connect",
        ),
        (
            vec!["print", "net://127.0.0.1/host/vm"],
            2,
            "expected `net://HOST",
        ),
        (
            vec!["print", "--live-resume", "x", "."],
            2,
            "`--live-resume` is for",
        ),
    ] {
        let output = kymo(&args);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {reported}");
        assert!(reported.contains(expected), "{args:?}: {reported}");
    }
}
