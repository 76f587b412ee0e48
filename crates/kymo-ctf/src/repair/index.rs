//! Index files for traces that have none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::decode::PacketHead;
use crate::trace::{Packet, Trace};
use crate::write::{PacketInfo, index};
use kymo_io::without_compression;
use kymo_model::{Chunk, Recording};

/// What [`indexes`] makes of a trace.
#[derive(Debug, Default)]
pub struct Indexes {
    /// The path of each index file, and what is in it.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Stream files that get none, as not all of their packets can be listed: an index that leaves
    /// some out, or states other sizes than they do, would be refused by readers.
    pub damaged: BTreeSet<PathBuf>,
}

/// The index files of a trace, as LTTng writes them (version 1.1), for all stream files without
/// damage. Their packets are in the order of the file.
pub fn indexes(trace: &Trace) -> Indexes {
    let faulty: BTreeSet<&PathBuf> = trace.faults().iter().map(|fault| &*fault.file).collect();
    let paths = trace.files().iter().map(|file| file.path.as_path());
    let mut damaged: BTreeSet<PathBuf> = paths
        .filter(|path| faulty.iter().any(|faulty| faulty.as_path() == *path))
        .map(Into::into)
        .collect();
    // File, and where a packet begins in it.
    let mut records: BTreeMap<(u32, u64), PacketInfo> = BTreeMap::new();
    for (stream, info) in trace.streams().iter().enumerate() {
        for (chunk, packet) in trace.chunks(stream).zip(trace.packets(stream)) {
            let head = trace.decoder().packet_head(trace.packet_bytes(&packet));
            let is_whole = head.as_ref().is_ok_and(|head| {
                head.total_bits.is_none_or(|bits| bits == packet.total_bits)
                    && head
                        .content_bits
                        .is_none_or(|bits| bits == packet.content_bits)
            });
            if !is_whole && let Some(file) = trace.files().get(packet.file as usize) {
                damaged.insert(file.path.to_path_buf());
            }
            let head = head.unwrap_or_default();
            let record = PacketInfo {
                stream_class_id: info.class,
                stream_id: head.stream_id,
                ..packet_info(&chunk, &packet, &head)
            };
            records.insert((packet.file, packet.offset), record);
        }
    }
    let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for ((file, offset), record) in records {
        let Some(file) = trace.files().get(file as usize) else {
            continue;
        };
        if damaged.contains(&*file.path) {
            continue;
        }
        let (Some(directory), Some(name)) = (file.path.parent(), file.path.file_name()) else {
            continue;
        };
        let mut name = without_compression(Path::new(name)).into_os_string();
        name.push(".idx");
        let bytes = files
            .entry(directory.join("index").join(name))
            .or_insert_with(|| index::header().to_vec());
        bytes.extend(index::record(offset, &record));
    }
    Indexes { files, damaged }
}

/// What a packet states about itself, for any stream.
pub fn packet_info(chunk: &Chunk, packet: &Packet, head: &PacketHead) -> PacketInfo {
    let number = |reported: Option<(u64, u32)>| reported.map_or(0, |(number, _)| number);
    PacketInfo {
        total_bits: packet.total_bits,
        content_bits: packet.content_bits,
        begin: chunk.begin,
        end: chunk.end,
        discarded: number(head.discarded),
        sequence: number(head.sequence),
        ..PacketInfo::default()
    }
}
