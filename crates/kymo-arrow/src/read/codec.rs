//! Compression of pages. Every decoder writes into a room of the size that the page's head says, which was checked
//! before: what would be more is an error.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::FrameDecoder;

/// `CompressionCodec` of parquet.thrift, by its numbers there.
const NAMES: [&str; 8] = [
    "none", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW",
];
const NONE: u64 = 0;
const SNAPPY: u64 = 1;
const GZIP: u64 = 2;
const LZ4: u64 = 5;
const ZSTD: u64 = 6;
const LZ4_RAW: u64 = 7;

/// Maximum number of bytes of a page.
pub(super) const MOST_PAGE_BYTES: usize = 256 << 20;

/// The content of a page, which has `size` bytes.
///
/// # Errors
///
/// It is damaged, or compressed in a way that is not read.
pub(super) fn decompress(
    bytes: &bytes::Bytes,
    codec: u64,
    size: usize,
) -> Result<bytes::Bytes, String> {
    if size > MOST_PAGE_BYTES {
        return Err(format!(
            "a page has {size} bytes; kymo reads pages of up to {MOST_PAGE_BYTES}"
        ));
    }
    // How much one byte can become, whatever its page says: no room is made for more.
    let most = match codec {
        NONE => 1,
        // A copy of 64 bytes takes 2 or 3.
        SNAPPY => 32,
        // Each byte of a length adds 255.
        LZ4_RAW | LZ4 => 255,
        GZIP => 1032,
        // A block of 128 KiB takes 4 bytes.
        ZSTD => 32 << 10,
        other => {
            let name = usize::try_from(other).ok();
            let name = name.and_then(|number| NAMES.get(number)).copied();
            let name = name.unwrap_or("something newer");
            return Err(format!(
                "pages are compressed by {name}, which kymo does not read: write them with Snappy, LZ4, Zstandard or gzip"
            ));
        }
    };
    let damaged = || "the compression of a page is damaged".to_owned();
    if size / most > bytes.len() {
        return Err(damaged());
    }
    if codec == NONE {
        return match bytes.len() == size {
            true => Ok(bytes.clone()),
            false => Err("the sizes of a page are not what it has".to_owned()),
        };
    }
    if size == 0 {
        return Ok(bytes::Bytes::new());
    }
    let mut content = vec![0; size];
    let decoded = match codec {
        SNAPPY => {
            let fits = snap::raw::decompress_len(bytes).is_ok_and(|found| found == size);
            let decoded = snap::raw::Decoder::new().decompress(bytes, &mut content);
            decoded.ok().filter(|_| fits)
        }
        GZIP => {
            let mut decoder = MultiGzDecoder::new(&**bytes);
            let is_read = decoder.read_exact(&mut content).is_ok();
            // Nothing comes behind it, and its checksum is right.
            let is_over = is_read && decoder.read(&mut [0]).is_ok_and(|more| more == 0);
            is_over.then_some(size)
        }
        ZSTD => FrameDecoder::new().decode_all(bytes, &mut content).ok(),
        LZ4_RAW => lz4_flex::block::decompress_into(bytes, &mut content).ok(),
        _ => lz4(bytes, &mut content),
    };
    match decoded {
        Some(decoded) if decoded == size => Ok(content.into()),
        _ => Err(damaged()),
    }
}

/// LZ4 as Hadoop frames it: blocks behind the sizes of their content and of themselves. Others have called a block
/// without that the same.
fn lz4(bytes: &[u8], content: &mut [u8]) -> Option<usize> {
    let framed = hadoop(bytes, content);
    framed.or_else(|| lz4_flex::block::decompress_into(bytes, content).ok())
}

fn hadoop(mut bytes: &[u8], content: &mut [u8]) -> Option<usize> {
    let mut at = 0_usize;
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let [a, b, c, d, e, f, g, h] = *head;
        let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
        let block = rest.get(..usize::try_from(u32::from_be_bytes([e, f, g, h])).ok()?)?;
        let room = content.get_mut(at..at.checked_add(size)?)?;
        if lz4_flex::block::decompress_into(block, room).ok()? != size {
            return None;
        }
        at += size;
        bytes = &rest[block.len()..];
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn pages_are_what_was_compressed() {
        let content = b"sched_switch, ".repeat(300);
        let block = lz4_flex::block::compress(&content);
        let mut framed = (content.len() as u32).to_be_bytes().to_vec();
        framed.extend((block.len() as u32).to_be_bytes());
        framed.extend(&block);
        let zstd = compress_to_vec(&*content, CompressionLevel::Fastest);
        let all = [
            (NONE, content.clone()),
            (
                SNAPPY,
                snap::raw::Encoder::new().compress_vec(&content).unwrap(),
            ),
            (GZIP, gzip(&content)),
            (ZSTD, zstd),
            (LZ4_RAW, block.clone()),
            (LZ4, framed),
            (LZ4, block),
        ];
        for (codec, bytes) in all {
            let bytes = bytes::Bytes::from(bytes);
            let found = decompress(&bytes, codec, content.len());
            assert_eq!(found.as_deref(), Ok(&*content), "{codec}");
            for size in [0, 1, content.len() - 1, content.len() + 1] {
                let found = decompress(&bytes, codec, size);
                assert!(found.is_err() || size == 0, "{codec} {size}");
            }
            for end in 0..bytes.len() {
                let found = decompress(&bytes.slice(..end), codec, content.len());
                assert!(found.is_err(), "{codec} {end}");
            }
        }
    }

    #[test]
    fn no_room_is_made_for_what_a_page_cannot_be() {
        let few = bytes::Bytes::from_static(&[0; 64]);
        for codec in [SNAPPY, LZ4_RAW, GZIP, ZSTD] {
            assert!(decompress(&few, codec, 64 << 20).is_err(), "{codec}");
            assert!(decompress(&few, codec, usize::MAX).is_err(), "{codec}");
        }
        let problem = decompress(&few, 3, 64).unwrap_err();
        assert!(
            problem.contains("LZO, which kymo does not read"),
            "{problem}"
        );
    }
}
