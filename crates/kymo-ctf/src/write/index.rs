//! LTTng's index files, version 1.1: their layout is described where they are
//! [read](crate::trace).

use super::sink::PacketInfo;

const MAGIC: u32 = 0xC1F1_DCC1;

/// Size of a record, in bytes.
const RECORD_BYTES: usize = 72;

/// What an index begins with.
pub fn header() -> [u8; 16] {
    let mut header = [0; 16];
    for (at, word) in [MAGIC, 1, 1, RECORD_BYTES as u32].into_iter().enumerate() {
        header[at * 4..][..4].copy_from_slice(&word.to_be_bytes());
    }
    header
}

/// The record of a packet that begins at a byte of its file.
pub fn record(offset: u64, info: &PacketInfo) -> [u8; RECORD_BYTES] {
    let words = [
        offset,
        info.total_bits,
        info.content_bits,
        info.begin.unwrap_or(0),
        info.end.unwrap_or(0),
        info.discarded,
        info.stream_class_id,
        info.stream_id.unwrap_or(u64::MAX),
        info.sequence,
    ];
    let mut record = [0; RECORD_BYTES];
    for (at, word) in words.into_iter().enumerate() {
        record[at * 8..][..8].copy_from_slice(&word.to_be_bytes());
    }
    record
}
