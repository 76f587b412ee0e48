//! What a file is if it is not a native RRD file.

use crate::fault::Error;

/// Bytes that are shown of what was found.
const SHOWN: usize = 8;

/// What some other files begin with, and what they are.
const KNOWN: &[(&[u8], &str)] = &[
    (b"<?xml", XML),
    (b"<rrd", XML),
    (b"<!--", XML),
    (b"\xef\xbb\xbf<", XML),
    (b"RRD4J", "this is a file of RRD4J"),
    (b"JR", "this is a file of JRobin"),
    (b"\x1f\x8b", COMPRESSED),
    (b"\x28\xb5\x2f\xfd", COMPRESSED),
    (b"\xfd7zXZ", COMPRESSED),
    (b"BZh", COMPRESSED),
    (
        b"PK\x03\x04",
        "this is a zip archive: take the databases out first",
    ),
    (b"SQLite format 3", "this is a database of SQLite"),
];

const XML: &str = "this is XML: `kymo rrd restore` makes a database of a dump";
const COMPRESSED: &str = "this is a compressed file: decompress it first";

/// The error for a file that does not begin as an RRD does.
pub(super) fn error(bytes: &[u8]) -> Error {
    let start = &bytes[..bytes.len().min(SHOWN)];
    let found = if bytes.is_empty() {
        "an empty file".to_owned()
    } else {
        format!("\"{}\"", start.escape_ascii())
    };
    let error = Error::new("stat_head.cookie", 0, found, "\"RRD\\x00\"");
    match cause(bytes) {
        Some(cause) => error.because(cause),
        None => error,
    }
}

fn cause(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes.trim_ascii_start();
    let known = KNOWN
        .iter()
        .find(|(start, _)| bytes.starts_with(start) || text.starts_with(start));
    if let Some((_, cause)) = known {
        return Some(cause);
    }
    let start = &bytes[..bytes.len().min(512)];
    if start.is_empty() {
        Some("nothing was written to the file, or all of it was lost")
    } else if start.iter().all(|&byte| byte == 0) {
        Some("the beginning of the file has been overwritten with zeros")
    } else if start
        .iter()
        .all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
    {
        Some("this is text")
    } else {
        None
    }
}
