//! gzip: members, one after the other.
//!
//! Where a member ends is known only when it has been decoded, so this is done on one thread.

use std::io::{self, Read, Write};

use flate2::bufread::GzDecoder;

use super::{Compression, cut, damaged};
use crate::spool::Spool;

/// Decodes all members. Returns what is lost if they are damaged.
pub(super) fn decode(bytes: &[u8], out: &mut Spool) -> io::Result<Option<String>> {
    let mut rest = bytes;
    let mut buffer = vec![0; 1 << 17];
    loop {
        let mut member = GzDecoder::new(rest);
        loop {
            match member.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => out.write_all(&buffer[..count])?,
                Err(error) => {
                    let at = (bytes.len() - member.get_ref().len()) as u64;
                    return Ok(Some(match error.kind() {
                        io::ErrorKind::UnexpectedEof => cut(bytes.len() as u64, out.length()),
                        _ => damaged(at, out.length(), error),
                    }));
                }
            }
        }
        rest = member.into_inner();
        let at = (bytes.len() - rest.len()) as u64;
        // Tapes are filled up with zeros.
        if rest.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if Compression::detect(rest) != Some(Compression::Gzip) {
            return Ok(Some(match rest.len() {
                // The beginning of a member that is cut off.
                ..10 if rest.starts_with(&[0x1f]) => cut(bytes.len() as u64, out.length()),
                count => format!("{count} bytes from byte {at} on are not gzip: they are ignored"),
            }));
        }
    }
}
