//! What must hold of any bytes: no input makes kymo panic, hang, or take more memory than
//! the input can account for; and different ways to the same answer give the same answer.
//!
//! Each function takes the bytes of one kind of input. The targets in `fuzz/` call them
//! with inputs that libFuzzer makes up; the tests of this crate with the inputs kept in
//! `fuzz/corpus`.

mod portable_rrd;
mod rrd;

use std::path::PathBuf;
use std::sync::Arc;

use kymo_ctf::metadata;
use kymo_ctf::trace::{Directory, Options, StreamFile, Trace};
use kymo_model::{Chunk, Cursor, Event, FieldId, Recording, Visitor};

pub use portable_rrd::portable_rrd;

/// What separates the parts of an input that has several.
const SEPARATOR: &[u8] = b"\n---\n";

/// A check and the name of its target, which is also the name of its corpus.
pub type Check = (&'static str, fn(&[u8]));

/// All checks.
pub const CHECKS: &[Check] = &[
    ("tsdl", tsdl),
    ("metadata_packets", metadata_packets),
    ("index", index),
    ("stream", stream),
    ("portable_rrd", portable_rrd),
    ("rrd", rrd),
];

/// A round-robin database of any form.
pub fn rrd(data: &[u8]) {
    rrd::database(data);
}

/// Metadata as text: an error is shown without trouble, and what is accepted compiles.
pub fn tsdl(data: &[u8]) {
    any_metadata(data);
}

/// Metadata in packets. The first packet's magic number comes before the input, in the byte
/// order that the input's first bit tells.
pub fn metadata_packets(data: &[u8]) {
    let Some((order, rest)) = data.split_first() else {
        return;
    };
    let magic = 0x75d1_1d57_u32;
    let magic = if order & 1 == 0 {
        magic.to_le_bytes()
    } else {
        magic.to_be_bytes()
    };
    any_metadata(&[&magic, rest].concat());
}

/// An index: three parts, which are metadata, a data stream, and the index of that.
pub fn index(data: &[u8]) {
    let Some((text, rest)) = split(data) else {
        return;
    };
    let Some((stream, index)) = split(rest) else {
        return;
    };
    whole_trace(text, stream, Some(index));
}

/// A trace: two parts, which are metadata and a data stream.
pub fn stream(data: &[u8]) {
    if let Some((text, stream)) = split(data) {
        whole_trace(text, stream, None);
    }
}

fn split(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = data
        .windows(SEPARATOR.len())
        .position(|window| window == SEPARATOR)?;
    Some((&data[..at], &data[at + SEPARATOR.len()..]))
}

fn any_metadata(data: &[u8]) {
    match metadata::parse(data, "metadata") {
        Ok(parsed) => {
            if let Err(error) = kymo_ctf::decode::Decoder::new(&parsed.class) {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.render(true).len() >= error.render(false).len());
        }
    }
}

fn whole_trace(text: &[u8], stream: &[u8], index: Option<&[u8]>) {
    let Ok(metadata) = metadata::parse(text, "metadata") else {
        return;
    };
    let path = |name: &str| Arc::new(PathBuf::from(name));
    let directory = Directory {
        path: PathBuf::from("trace"),
        metadata,
        files: vec![StreamFile {
            path: path("trace/stream"),
            bytes: stream.to_vec().into(),
            index: index.map(|index| (path("trace/index/stream.idx"), index.to_vec().into())),
        }],
        faults: Vec::new(),
    };
    let Ok(trace) = Trace::new(vec![directory], &Options::default()) else {
        return;
    };
    for report in trace.faults() {
        assert!(!report.to_string().is_empty());
    }
    for stream in 0..trace.streams().len() {
        for chunk in trace.chunks(stream) {
            let _ = trace.visit_packet(&chunk, &mut Balance::default());
            let decoded = walk(&trace, &chunk, true);
            let skipped = walk(&trace, &chunk, false);
            assert!(
                decoded == skipped,
                "skipping finds the events that decoding finds"
            );
        }
    }
}

/// Where each event of a chunk begins, its class and its time, and whether a fault ended them.
type Walk = (Vec<(u64, usize, Option<u64>)>, bool);

fn walk(trace: &Trace, chunk: &Chunk, decode: bool) -> Walk {
    let mut cursor = trace.cursor(chunk);
    let mut events = Vec::new();
    loop {
        let (place, result) = match cursor.next_event() {
            Ok(Some(event)) => {
                events.push((event.begin_bit(), event.class_index(), event.ticks()));
                let mut balance = Balance::default();
                let result = if decode {
                    event.visit(&mut balance)
                } else {
                    Ok(())
                };
                assert!(
                    result.is_err() || balance.open.is_empty(),
                    "what begins ends"
                );
                (Some((event.number(), event.class_index())), result)
            }
            Ok(None) => return (events, false),
            Err(fault) => (None, Err(fault)),
        };
        if let Err(fault) = result {
            assert!(!trace.report(chunk, place, fault).to_string().is_empty());
            return (events, true);
        }
    }
}

/// Counts on what begins to end, in the right order.
#[derive(Default)]
struct Balance {
    open: Vec<FieldId>,
}

impl Balance {
    fn end(&mut self, field: FieldId) {
        assert_eq!(self.open.pop(), Some(field), "what began last ends first");
    }
}

impl Visitor for Balance {
    fn begin_struct(&mut self, field: FieldId) {
        self.open.push(field);
    }

    fn end_struct(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_array(&mut self, field: FieldId, _length: u64) {
        self.open.push(field);
    }

    fn end_array(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_optional(&mut self, field: FieldId, _present: bool) {
        self.open.push(field);
    }

    fn end_optional(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.open.push(field);
    }

    fn end_variant(&mut self, field: FieldId) {
        self.end(field);
    }
}
