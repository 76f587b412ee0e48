//! What must hold of any bytes: no input makes kymo panic, hang, or take more memory than
//! the input can account for; and different ways to the same answer give the same answer.
//!
//! Each function takes the bytes of one kind of input. The targets in `fuzz/` call them
//! with inputs that libFuzzer makes up; the tests of this crate with the inputs kept in
//! `fuzz/corpus`.

mod collectd;
mod containers;
#[cfg(all(unix, target_has_atomic = "64"))]
mod daemon;
mod font;
mod graph;
mod index_cache;
mod live;
mod logs;
mod maps;
mod metrics;
mod portable_rrd;
mod queries;
#[cfg(all(unix, target_has_atomic = "64"))]
mod reading;
mod rrd;
mod rrd_words;
mod secured;
mod symbols;
#[cfg(all(unix, target_has_atomic = "64"))]
mod tables;
mod traces;
mod view;
mod wire;
mod written;

use std::path::PathBuf;
use std::sync::Arc;

use kymo_ctf::class::{Dialect, TraceClass};
use kymo_ctf::metadata;
use kymo_ctf::metadata::fit::fit;
use kymo_ctf::metadata::write::write;
use kymo_ctf::secure::Key;
use kymo_ctf::trace::{Directory, Options, StreamFile, Trace};
use kymo_machine::Machine;
use kymo_machine::layout::{Layout, Struct, parse};
use kymo_model::{Chunk, Cursor, Event, FieldId, Recording, Visitor};

pub use font::font;
pub use graph::graph_words;
pub use metrics::{metric_lines, metric_messages};
pub use portable_rrd::portable_rrd;
pub use queries::queries;
#[cfg(all(unix, target_has_atomic = "64"))]
pub use reading::{graphite, promql, serve_http};
#[cfg(all(unix, target_has_atomic = "64"))]
pub use tables::parquet;
pub use view::view_request;

/// What separates the parts of an input that has several.
const SEPARATOR: &[u8] = b"\n---\n";

/// A check and the name of its target, which is also the name of its corpus.
pub type Check = (&'static str, fn(&[u8]));

/// All checks.
pub const CHECKS: &[Check] = &[
    ("tsdl", tsdl),
    ("metric_lines", metric_lines),
    ("metric_messages", metric_messages),
    ("ctf2", ctf2),
    ("rfc", rfc),
    ("metadata_packets", metadata_packets),
    ("index", index),
    ("index_cache", index_cache),
    ("stream", stream),
    ("secured", secured),
    ("live", live),
    ("wire", wire),
    ("maps", maps),
    ("written", written),
    ("c_structs", c_structs),
    ("portable_rrd", portable_rrd),
    ("rrd", rrd),
    ("rrd_xml", rrd_xml),
    ("whisper", whisper),
    ("rrd_words", rrd_words),
    ("rrd_page", rrd_page),
    ("view_request", view_request),
    ("queries", queries),
    ("tar", tar),
    ("font", font),
    ("graph_words", graph_words),
    ("compressed", compressed),
    ("cpel", cpel),
    ("elog", elog),
    ("gist", gist),
    ("symbols", symbols),
    ("perfetto", perfetto),
    ("chrome", chrome),
    ("collectd_network", collectd_network),
    ("collectd_plain", collectd_plain),
    ("collectd_files", collectd_files),
    ("collectd_capture", collectd_capture),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("serve_rrdcached", serve_rrdcached),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("serve_journal", serve_journal),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("serve_config", serve_config),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("serve_http", serve_http),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("promql", promql),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("graphite", graphite),
    #[cfg(all(unix, target_has_atomic = "64"))]
    ("parquet", parquet),
];

/// Lines of rrdcached's protocol, behind a byte that specifies how they come.
#[cfg(all(unix, target_has_atomic = "64"))]
pub fn serve_rrdcached(data: &[u8]) {
    daemon::rrdcached(data);
}

/// A journal of the daemon, behind a byte that specifies which part of it follows.
#[cfg(all(unix, target_has_atomic = "64"))]
pub fn serve_journal(data: &[u8]) {
    daemon::journal(data);
}

/// A configuration of the daemon, and a `collectd.conf` that it names.
#[cfg(all(unix, target_has_atomic = "64"))]
pub fn serve_config(data: &[u8]) {
    daemon::config(data);
}

/// An ELF file with debug information; symbols of a kernel; a mangled name.
pub fn symbols(data: &[u8]) {
    symbols::symbols(data);
}

/// A summary index, behind a byte that specifies which part of it follows.
pub fn index_cache(data: &[u8]) {
    index_cache::index(data);
}

/// A tar archive.
pub fn tar(data: &[u8]) {
    containers::tar(data);
}

/// A file compressed by gzip or Zstandard.
pub fn compressed(data: &[u8]) {
    containers::compressed(data);
}

/// What command lines of round-robin databases are made of, a word a line.
pub fn rrd_words(data: &[u8]) {
    rrd_words::words(data);
}

/// A page in rrdcgi's language: it is expanded without a panic, the same way twice, and within bounds.
pub fn rrd_page(data: &[u8]) {
    let page = kymo_rrdtool::expanded_for_tests(data);
    assert_eq!(page, kymo_rrdtool::expanded_for_tests(data));
    if !data.contains(&b'<') {
        assert_eq!(page.as_deref(), Some(data));
    }
}

/// A datagram of collectd, behind a byte that specifies how it is received.
pub fn collectd_network(data: &[u8]) {
    collectd::network(data);
}

/// Lines of collectd's text protocol.
pub fn collectd_plain(data: &[u8]) {
    collectd::plain(data);
}

/// A configuration of collectd, a `types.db`, a file of passwords.
pub fn collectd_files(data: &[u8]) {
    collectd::files(data);
}

/// A capture of a network, or a datagram of collectd.
pub fn collectd_capture(data: &[u8]) {
    collectd::capture(data);
}

/// A secured packet of RFC v1.1, behind a byte that specifies how packets are secured.
pub fn secured(data: &[u8]) {
    secured::packets(data);
}

/// What a relay daemon of LTTng live sends: any bytes as the replies to a viewer.
pub fn live(data: &[u8]) {
    live::replies(data);
}

/// An export of LTTng's maps, or an alignment file.
pub fn maps(data: &[u8]) {
    maps::maps(data);
}

/// Datagrams that packets of traces come in, each behind its length.
pub fn wire(data: &[u8]) {
    wire::datagrams(data);
}

/// A CPEL file.
pub fn cpel(data: &[u8]) {
    logs::cpel(data);
}

/// An elog file, without the bytes that all elog files begin with.
pub fn elog(data: &[u8]) {
    logs::elog(data);
}

/// The events of a Gist file.
pub fn gist(data: &[u8]) {
    logs::gist(data);
}

/// A trace of Perfetto.
pub fn perfetto(data: &[u8]) {
    traces::trace(data, kymo_perfetto::Form::Perfetto);
}

/// Trace events of Chrome, as JSON.
pub fn chrome(data: &[u8]) {
    traces::trace(data, kymo_perfetto::Form::Chrome);
}

/// A round-robin database of any form.
pub fn rrd(data: &[u8]) {
    rrd::database(data);
}

/// A file of Whisper: see `rrd::whisper`.
pub fn whisper(data: &[u8]) {
    rrd::whisper(data);
}

/// A dump of a round-robin database.
pub fn rrd_xml(data: &[u8]) {
    rrd::dump(data);
}

/// Metadata as text: an error is shown without trouble, and what is accepted compiles and can be
/// written in each dialect that it fits.
pub fn tsdl(data: &[u8]) {
    any_metadata(data);
}

/// Metadata of CTF 2 as text: the same, and what is accepted can be written and read again.
pub fn ctf2(data: &[u8]) {
    any_metadata(data);
    let Ok(parsed) = metadata::parse(data, "metadata") else {
        return;
    };
    match metadata::ctf2::write(&parsed.class) {
        Ok(text) if parsed.class.dialect == Dialect::Ctf2 => {
            let again = metadata::parse(text.as_bytes(), "metadata").expect("what was written");
            assert!(again.class == parsed.class, "the same is read again");
        }
        Ok(_) => {}
        Err(error) => {
            // Locations cost more where they are written from the scope on.
            let is_much = error.to_string().contains("more field classes");
            assert!(is_much || parsed.class.dialect != Dialect::Ctf2, "{error}");
        }
    }
}

/// Metadata of RFC v1.1 as text: what every text of it begins with comes before the input.
pub fn rfc(data: &[u8]) {
    any_metadata(&[b"trace { major = 1; minor = 1; }\n", data].concat());
}

/// Metadata in packets. The first packet's magic number comes before the input, in the byte
/// order that the input's first bit specifies; the second bit specifies whether it is that of RFC v1.1.
pub fn metadata_packets(data: &[u8]) {
    let Some((order, rest)) = data.split_first() else {
        return;
    };
    let magic = match order & 2 {
        0 => 0x75d1_1d57_u32,
        _ => 0xc1fc_1fc1,
    };
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
    whole_trace(text, stream, Some(index), &[]);
}

/// A trace: two parts, which are metadata and a data stream.
pub fn stream(data: &[u8]) {
    if let Some((text, stream)) = split(data) {
        whole_trace(text, stream, None, &[]);
    }
}

/// A trace, of the same two parts: a rewritten copy can be read.
pub fn written(data: &[u8]) {
    if let Some((text, stream)) = split(data)
        && let Some(trace) = opened(text, stream, None, &[])
    {
        written::written(&trace);
    }
}

/// Declarations of structs: an error has a place in the text, and what is read has a layout on
/// every machine, in which members do not overlap.
pub fn c_structs(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let structs = match parse(text) {
        Ok(structs) => structs,
        Err(error) => {
            assert!(text.get(error.range).is_some(), "the place is in the text");
            return;
        }
    };
    for description in &structs {
        for machine in Machine::all() {
            if let Ok(layout) = Layout::of(description, machine) {
                is_sound(description, &layout);
            }
        }
    }
}

fn is_sound(description: &Struct, layout: &Layout) {
    let mut end = 0;
    for (place, member) in layout.members.iter().zip(&description.members) {
        assert_eq!(place.name, member.name);
        assert_eq!(place.offset % place.align, 0);
        if description.is_union {
            assert_eq!(place.offset, 0);
        } else {
            assert_eq!(place.offset, end + place.padding);
        }
        end = end.max(place.offset + place.size);
    }
    assert_eq!(layout.size, end + layout.padding);
    assert_eq!(layout.size % layout.align, 0);
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
            any_dialect(&parsed.class);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.render(true).len() >= error.render(false).len());
        }
    }
}

/// What is read fits its own dialect. What fits a dialect can be written, which reads it again, and
/// fits as it is.
fn any_dialect(class: &TraceClass) {
    for dialect in [Dialect::Rfc11, Dialect::Ctf18, Dialect::Ctf2] {
        let fitted = match fit(class, dialect) {
            Ok(fitted) => fitted,
            Err(error) => {
                assert!(class.dialect != dialect, "{error}");
                continue;
            }
        };
        if let Err(error) = write(&fitted.model) {
            // Written out, types that are used again take more text and more of what is bounded.
            let is_much = error.to_string().contains("more");
            assert!(is_much, "{:?} to {dialect:?}: {error}", class.dialect);
        }
        let again = fit(&fitted.model, dialect).expect("what fits");
        assert!(again.changes.is_empty(), "{:?}", again.changes);
        assert!(again.model == fitted.model, "what fits stays as it is");
    }
}

fn opened(text: &[u8], stream: &[u8], index: Option<&[u8]>, keys: &[Key]) -> Option<Trace> {
    let native = || metadata::byte_order_of_packets(stream);
    let metadata = metadata::parse_with(text, "metadata", native).ok()?;
    let path = |name: &str| Arc::new(PathBuf::from(name));
    // In RFC v1.1 the name of a file identifies its section.
    let sections = &metadata.class.streams;
    let name = sections.first().and_then(|section| section.name.as_deref());
    let name = format!("trace/{}", name.unwrap_or("stream"));
    let directory = Directory {
        path: PathBuf::from("trace"),
        metadata,
        metadata_file: (PathBuf::from("trace/metadata"), text.to_vec().into()),
        files: vec![StreamFile {
            path: path(&name),
            bytes: stream.to_vec().into(),
            index: index.map(|index| (path("trace/index/stream.idx"), index.to_vec().into())),
            section: None,
        }],
        faults: Vec::new(),
        is_whole: true,
    };
    let options = Options {
        keys: keys.to_vec(),
        ..Options::default()
    };
    Trace::new(vec![directory], &options).ok()
}

fn whole_trace(text: &[u8], stream: &[u8], index: Option<&[u8]>, keys: &[Key]) {
    let Some(trace) = opened(text, stream, index, keys) else {
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

    fn begin_optional(&mut self, field: FieldId, _present: bool, _selector: u64) {
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
