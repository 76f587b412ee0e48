//! gzip and bzip2.

use std::io::{self, Read, Write};

use super::{Compression, OpenError};

/// What `content` is compressed to; itself without compression.
pub(super) fn compress(compression: Compression, content: &[u8]) -> Vec<u8> {
    let compressed = match compression {
        Compression::None => return content.to_vec(),
        Compression::Gzip => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(content).and_then(|()| encoder.finish())
        }
        Compression::Bzip2 => {
            let level = bzip2::Compression::default();
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
            encoder.write_all(content).and_then(|()| encoder.finish())
        }
    };
    // Memory takes whatever is written.
    compressed.unwrap_or_default()
}

/// What was compressed to all of `stored`, if that is at most `most` bytes. As in files, several
/// compressed pieces may follow each other.
pub(super) fn decompress(
    compression: Compression,
    stored: &[u8],
    most: usize,
) -> Result<Vec<u8>, OpenError> {
    let mut content = Vec::new();
    let mut rest = stored;
    loop {
        let read = match compression {
            Compression::None => read_within(&mut rest, &mut content, most),
            Compression::Gzip => {
                let mut decoder = flate2::bufread::GzDecoder::new(rest);
                let read = read_within(&mut decoder, &mut content, most);
                rest = decoder.into_inner();
                read
            }
            Compression::Bzip2 => {
                let mut decoder = bzip2::bufread::BzDecoder::new(rest);
                let read = read_within(&mut decoder, &mut content, most);
                rest = decoder.into_inner();
                read
            }
        };
        match read {
            Ok(true) if rest.is_empty() => return Ok(content),
            Ok(true) => {}
            Ok(false) => return Err(OpenError::Limit(most)),
            Err(_) => return Err(OpenError::Compression),
        }
    }
}

/// Reads all; `false` if that makes more than `most` bytes.
fn read_within(input: &mut impl Read, content: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let left = (most - content.len()) as u64;
    input.take(left.saturating_add(1)).read_to_end(content)?;
    Ok(content.len() <= most)
}
