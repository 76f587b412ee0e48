//! Index files that LTTng writes beside data stream files (`index/NAME.idx`, versions 1.0
//! and 1.1): where each packet is and what its context says, all numbers big-endian.
//!
//! | bytes | header |
//! |---|---|
//! | 4 | magic number 0xC1F1DCC1 |
//! | 4, 4 | major version (1), minor version |
//! | 4 | size of a record in bytes: 56 in version 1.0, 72 in 1.1, perhaps more later |
//!
//! | bytes | record |
//! |---|---|
//! | 8 | where the packet begins, in bytes |
//! | 8, 8 | size of the packet and of its content, in bits |
//! | 8, 8 | ticks at its beginning and at its end |
//! | 8 | events discarded so far |
//! | 8 | number of the stream class |
//! | 8, 8 | version 1.1: number of the stream, number of the packet in the stream |
//!
//! An index is believed when its packets follow each other from the beginning of the data
//! to its end, and when its first and last records say what those packets say themselves.

use std::cmp::Ordering;

use super::packet::Sizes;
use super::scan::Found;
use super::{Packet, StreamFile};
use crate::class::TraceClass;
use crate::decode::{Decoder, PacketHead};

const MAGIC: u32 = 0xC1F1_DCC1;
const HEADER_BYTES: usize = 16;
const RECORD_BYTES_1_0: usize = 56;
const RECORD_BYTES_1_1: usize = 72;

/// One record, as it lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    offset: u64,
    packet_bits: u64,
    content_bits: u64,
    begin: u64,
    end: u64,
    discarded: u64,
    stream_class_id: u64,
    /// Number of the stream and number of the packet, since version 1.1.
    numbers: Option<(u64, u64)>,
}

impl Record {
    /// Reads a record of at least [`RECORD_BYTES_1_0`] bytes.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes
            .chunks_exact(8)
            .filter_map(|word| Some(u64::from_be_bytes(*word.first_chunk()?)));
        let mut next = || words.next();
        Some(Self {
            offset: next()?,
            packet_bits: next()?,
            content_bits: next()?,
            begin: next()?,
            end: next()?,
            discarded: next()?,
            stream_class_id: next()?,
            numbers: next().zip(next()),
        })
    }
}

/// Why a file is not an index of a format that kymo knows, if it is not. One that ends within the
/// magic number may be one.
pub(super) fn foreign(bytes: &[u8]) -> Option<String> {
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    match (word(0), word(4), word(8)) {
        (Some(magic), ..) if magic != MAGIC => Some(format!(
            "it begins with {magic:#010x}, an index with {MAGIC:#010x}"
        )),
        (_, Some(major), Some(minor)) if major != 1 => Some(format!(
            "it has version {major}.{minor}; kymo knows version 1"
        )),
        _ => None,
    }
}

/// The records of an index of a known format; an error says what is wrong with it.
fn records(bytes: &[u8]) -> Result<impl ExactSizeIterator<Item = &[u8]>, String> {
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        word.map(|word| u32::from_be_bytes(*word)).ok_or_else(|| {
            format!(
                "the index has {} bytes, its header alone {HEADER_BYTES}",
                bytes.len()
            )
        })
    };
    let (minor, size) = (word(8)?, word(12)? as usize);
    let least = if minor == 0 {
        RECORD_BYTES_1_0
    } else {
        RECORD_BYTES_1_1
    };
    if size < least || !size.is_multiple_of(8) {
        return Err(format!(
            "the index has records of {size} bytes; those of version 1.{minor} have at least {least}"
        ));
    }
    let body = &bytes[HEADER_BYTES..];
    if !body.len().is_multiple_of(size) {
        return Err(format!(
            "the index has {} bytes of records, each of {size} bytes",
            body.len()
        ));
    }
    Ok(body.chunks_exact(size).map(move |record| &record[..least]))
}

/// Reports the packets of a file that its index lists. `false` where the packets themselves know
/// better, an error where the index is not to be believed: what was reported by then does not count.
pub(super) fn packets(
    decoder: &Decoder,
    class: &TraceClass,
    file_number: u32,
    file: &StreamFile,
    index: &[u8],
    report: &mut impl FnMut(Found),
) -> Result<bool, String> {
    let records = records(index)?;
    let mut first: Option<PacketHead> = None;
    let count = records.len();
    let mut offset = 0;
    for (number, bytes) in records.enumerate() {
        let record = Record::read(bytes).ok_or("a record of the index is too short")?;
        let fault = |what: String| format!("record {number} of the index {what}");
        if record.offset != offset {
            let what = format!(
                "has its packet at byte {}, where the one before it ends at byte {offset}",
                record.offset
            );
            return Err(fault(what));
        }
        let stream_class = decoder.stream_class_with(record.stream_class_id);
        let stream_class = stream_class.ok_or_else(|| {
            fault(format!(
                "names stream class {}, which the metadata has not",
                record.stream_class_id
            ))
        })?;
        // Packets of a file are of one stream as a rule: one that is said to be of another is asked itself.
        let is_alike = |first: &PacketHead| {
            let (stream, _) = record.numbers.unzip();
            let is_same =
                stream.is_none() || first.stream_id.is_none() || stream == first.stream_id;
            stream_class == first.stream_class && is_same
        };
        let head = match &first {
            Some(first) if number + 1 < count && is_alike(first) => first,
            _ => {
                let place = usize::try_from(offset).unwrap_or(usize::MAX);
                let head = file.head_at(place, |data| decoder.packet_head(data));
                let head = head.map_err(|bad| {
                    fault(format!("has a packet that cannot be read ({})", bad.code))
                })?;
                let of_packet = class.streams.get(head.stream_class).map(|stream| stream.id);
                agree(&record, of_packet, &head).map_err(fault)?;
                first.get_or_insert(head)
            }
        };
        let likeness = PacketHead {
            total_bits: Some(record.packet_bits),
            content_bits: Some(record.content_bits),
            ..head.clone()
        };
        let sizes =
            Sizes::new(&likeness, 0).map_err(|bad| fault(format!("is wrong: {}", bad.message)))?;
        offset = offset
            .checked_add(sizes.total_bits / 8)
            .ok_or_else(|| fault("has a packet beyond all files".into()))?;
        let with_bits = |value: u64, like: Option<(u64, u32)>| like.map(|(_, bits)| (value, bits));
        report(Found {
            packet: Packet {
                file: file_number,
                number: u32::try_from(number).map_err(|_| "the index has too many records")?,
                offset: record.offset,
                total_bits: sizes.total_bits,
                content_bits: sizes.content_bits,
                clock: 0,
            },
            stream_class: stream_class as u32,
            stream_id: match record.numbers {
                Some((stream, _)) => head.stream_id.map(|_| stream),
                None => head.stream_id,
            },
            begin: with_bits(record.begin, head.begin),
            end: with_bits(record.end, head.end),
            discarded: with_bits(record.discarded, head.discarded),
            sequence: match (record.numbers, head.sequence) {
                (Some((_, number)), like) => with_bits(number, like),
                (None, None) => None,
                // The packets themselves know more than the index does.
                (None, Some(_)) => return Ok(false),
            },
            secured: false,
        });
    }
    match offset.cmp(&(file.bytes.len() as u64)) {
        Ordering::Equal => Ok(count > 0),
        Ordering::Less => Err(format!(
            "the packets of the index end at byte {offset}, the data only at byte {}",
            file.bytes.len()
        )),
        // It is the data that is cut off: the scan of the packets reports that.
        Ordering::Greater => Ok(false),
    }
}

/// Whether a record says what its packet says itself; if not, what differs.
fn agree(record: &Record, stream_class_id: Option<u64>, head: &PacketHead) -> Result<(), String> {
    let value = |counted: Option<(u64, u32)>| counted.map(|(value, _)| value);
    let (stream, number) = record.numbers.unzip();
    let pairs = [
        ("size", Some(record.packet_bits), head.total_bits),
        ("content size", Some(record.content_bits), head.content_bits),
        (
            "time at the beginning",
            Some(record.begin),
            value(head.begin),
        ),
        ("time at the end", Some(record.end), value(head.end)),
        (
            "count of discarded events",
            Some(record.discarded),
            value(head.discarded),
        ),
        ("stream number", stream, head.stream_id),
        ("packet number", number, value(head.sequence)),
        (
            "stream class",
            Some(record.stream_class_id),
            stream_class_id,
        ),
    ];
    for (what, in_index, in_packet) in pairs {
        if let (Some(in_index), Some(in_packet)) = (in_index, in_packet)
            && in_index != in_packet
        {
            return Err(format!(
                "says {in_index} is the {what}, its packet says {in_packet}"
            ));
        }
    }
    Ok(())
}
