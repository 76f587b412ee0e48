//! Small traces made of hand-written metadata and packets.

mod clocks;
mod ctf2;
mod damage;
mod indexes;
mod known;
mod losses;
mod merging;
mod packets;
mod refresh;
mod sections;

use std::path::PathBuf;
use std::sync::Arc;

use kymo_io::Bytes;
use kymo_model::{Cursor, Event, Fault, FaultCode, FieldId, Recording, Shift, Visitor};

use super::{Directory, Options, StreamFile, Trace};
use crate::metadata;

/// What the metadata of the tests begins with: little-endian numbers without padding.
const TYPES: &str = "/* CTF 1.8 */
    typealias integer { size = 8; align = 8; signed = false; } := u8;
    typealias integer { size = 16; align = 8; signed = false; } := u16;
    typealias integer { size = 32; align = 8; signed = false; } := u32;
    typealias integer { size = 64; align = 8; signed = false; } := u64;
    clock { name = c; freq = 1000000000; offset_s = 100; };
    typealias integer { size = 8; align = 8; signed = false; map = clock.c.value; } := t8;
    typealias integer { size = 16; align = 8; signed = false; map = clock.c.value; } := t16;
    typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := t64;
";

/// The packets of [`Packet`].
const USUAL: &str = "
    trace {
        major = 1; minor = 8; byte_order = le;
        uuid = \"01010101-0101-0101-0101-010101010101\";
        packet.header := struct { u32 magic; u8 uuid[16]; u8 stream_id; u8 stream_instance_id; };
    };
    stream {
        id = 3;
        packet.context := struct {
            u16 packet_size; u16 content_size; t64 timestamp_begin; t64 timestamp_end;
            u8 events_discarded; u8 packet_seq_num; u8 cpu;
        };
        event.header := struct { u8 id; t8 timestamp; };
    };
    event { id = 0; stream_id = 3; name = \"number\"; fields := struct { u8 x; }; };
    event { id = 1; stream_id = 3; name = \"text\"; fields := struct { u8 len; u8 bytes[len]; }; };
";

/// Bytes of the header and context of a usual packet.
const HEAD_BYTES: usize = 22 + 23;

/// A packet of the usual metadata.
#[derive(Clone, Debug)]
struct Packet {
    magic: u32,
    uuid: u8,
    class: u8,
    stream: u8,
    /// Instead of the right one, in bits.
    total: Option<u16>,
    /// Instead of the right one, in bits.
    content: Option<u16>,
    begin: u64,
    end: u64,
    discarded: u8,
    sequence: u8,
    /// Time and value.
    events: Vec<(u8, u8)>,
    padding: usize,
}

impl Packet {
    fn new(stream: u8, begin: u64, end: u64, events: &[(u8, u8)]) -> Self {
        Self {
            magic: 0xC1FC_1FC1,
            uuid: 1,
            class: 3,
            stream,
            total: None,
            content: None,
            begin,
            end,
            discarded: 0,
            sequence: 0,
            events: events.to_vec(),
            padding: 0,
        }
    }

    fn counted(self, discarded: u8, sequence: u8) -> Self {
        Self {
            discarded,
            sequence,
            ..self
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let content = ((HEAD_BYTES + 3 * self.events.len()) * 8) as u16;
        let total = content + 8 * self.padding as u16;
        let mut bytes = self.magic.to_le_bytes().to_vec();
        bytes.extend([self.uuid; 16]);
        bytes.extend([self.class, self.stream]);
        bytes.extend(self.total.unwrap_or(total).to_le_bytes());
        bytes.extend(self.content.unwrap_or(content).to_le_bytes());
        bytes.extend(self.begin.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        bytes.extend([self.discarded, self.sequence, 0xCC]);
        for &(time, x) in &self.events {
            bytes.extend([0, time, x]);
        }
        bytes.extend(std::iter::repeat_n(0, self.padding));
        bytes
    }
}

fn bytes_of(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(Packet::bytes).collect()
}

/// A directory in memory, with metadata of CTF 1.8.
fn directory(path: &str, metadata: &str, files: &[(&str, Vec<u8>)]) -> Directory {
    directory_of(path, &format!("{TYPES}{metadata}"), files)
}

/// A directory in memory.
fn directory_of(path: &str, text: &str, files: &[(&str, Vec<u8>)]) -> Directory {
    let metadata =
        metadata::parse(text.as_bytes(), "metadata").unwrap_or_else(|error| panic!("{error}"));
    let path = PathBuf::from(path);
    let files = files.iter().map(|(name, bytes)| StreamFile {
        path: Arc::new(path.join(name)),
        bytes: Bytes::from(bytes.clone()),
        index: None,
        section: None,
    });
    Directory {
        metadata,
        metadata_file: (path.join("metadata"), Bytes::from(Vec::new())),
        files: files.collect(),
        path,
        faults: Vec::new(),
        is_whole: true,
    }
}

/// A trace of one directory with the usual packets.
fn usual(files: &[(&str, Vec<u8>)]) -> Trace {
    trace(vec![directory("/trace", USUAL, files)])
}

/// A trace of one file.
fn one_file(metadata: &str, bytes: Vec<u8>) -> Trace {
    trace(vec![directory("/trace", metadata, &[("file", bytes)])])
}

fn trace(directories: Vec<Directory>) -> Trace {
    Trace::new(directories, &Options::default()).unwrap()
}

/// Codes of the faults found while opening.
fn codes(trace: &Trace) -> Vec<FaultCode> {
    trace.faults().iter().map(|fault| fault.code).collect()
}

/// Gathers the unsigned numbers.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Visitor for Numbers {
    fn uint(&mut self, _field: FieldId, value: u64) {
        self.0.push(value);
    }
}

/// Ticks and numbers of the events of a chunk, and the fault that ended it.
fn walk(trace: &Trace, stream: usize, chunk: usize) -> (Vec<(u64, Vec<u64>)>, Option<Fault>) {
    let mut events = Vec::new();
    let mut cursor = trace.cursor(&trace.chunk(stream, chunk).unwrap());
    loop {
        match cursor.next_event() {
            Ok(None) => return (events, None),
            Err(fault) => {
                assert!(
                    matches!(cursor.next_event(), Ok(None)),
                    "a fault ends the chunk"
                );
                return (events, Some(fault));
            }
            Ok(Some(event)) => {
                let mut numbers = Numbers::default();
                let ticks = event.ticks().unwrap_or(u64::MAX);
                if let Err(fault) = event.visit(&mut numbers) {
                    return (events, Some(fault));
                }
                events.push((ticks, numbers.0));
            }
        }
    }
}

/// Ticks and numbers of all events of an undamaged stream.
fn events(trace: &Trace, stream: usize) -> Vec<(u64, u64)> {
    let chunks = 0..trace.chunk_count(stream);
    let walked = chunks.flat_map(|chunk| {
        let (events, fault) = walk(trace, stream, chunk);
        assert_eq!(fault, None);
        events
    });
    walked.map(|(ticks, numbers)| (ticks, numbers[0])).collect()
}
