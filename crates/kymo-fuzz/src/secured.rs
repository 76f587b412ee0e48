//! Secured packets of RFC v1.1.

use kymo_ctf::secure::{Checksum, Compression, Key, Limits, Protection, open, seal};
use kymo_machine::ByteOrder;

/// Bytes of a packet's header.
const HEADER: usize = 48;
/// The byte of the header that specifies the compression.
const COMPRESSION: usize = 45;

const METADATA: &str = "trace { major = 1; minor = 1; }
    section { name = s; event { header_type = type1; } }
    event { name = e; id = 1; section = s; fields = type { parent = struct;
        fields = { { uint8_t, x }, { type { parent = string; }, y } }; } }";

/// Any bytes as a packet, and as what packets hold behind their checksum and their cipher. The first
/// byte specifies which of these are present.
pub(super) fn packets(data: &[u8]) {
    let Some((&choice, content)) = data.split_first() else {
        return;
    };
    let order = match choice & 1 {
        0 => ByteOrder::Little,
        _ => ByteOrder::Big,
    };
    let key = Key::new(&[7; 16]).expect("a key of 128 bits");
    let keys = std::slice::from_ref(&key);
    let limits = Limits {
        most: 1 << 20,
        ..Limits::default()
    };
    if let Ok(opened) = open(content, order, keys, &limits) {
        assert!(opened.len() <= content.len().max(limits.most) + HEADER);
    }

    let protection = Protection {
        compression: [Compression::None, Compression::Gzip, Compression::Bzip2]
            [usize::from(choice >> 1 & 3) % 3],
        key: (choice & 8 != 0).then(|| key.clone()),
        checksum: [
            Checksum::None,
            Checksum::Md5,
            Checksum::Sha1,
            Checksum::Crc32,
        ][usize::from(choice >> 4 & 3)],
    };
    let plain = plain(content, order);
    let sealed = seal(&plain, order, &protection, || [9; 12]).expect("a plain packet");
    let opened = open(&sealed, order, keys, &Limits::default()).expect("what was sealed opens");
    assert!(opened[HEADER..].starts_with(content));

    // Where nothing is encrypted, the header can be altered: the content is decompressed that never was
    // compressed.
    let uncompressed = Protection {
        compression: Compression::None,
        ..protection
    };
    let mut stream = sealed;
    for scheme in 1..3 {
        let mut sealed = seal(&plain, order, &uncompressed, || [9; 12]).expect("a plain packet");
        sealed[COMPRESSION] = scheme;
        if let Ok(opened) = open(&sealed, order, keys, &limits) {
            assert!(opened.len() <= limits.most + HEADER);
        }
        stream.extend(sealed);
    }
    stream.extend(plain);
    stream.extend(content);
    for keys in [&[], keys] {
        super::whole_trace(METADATA.as_bytes(), &stream, None, keys);
    }
}

/// A packet of this content.
fn plain(content: &[u8], order: ByteOrder) -> Vec<u8> {
    let size = u32::try_from(HEADER + content.len()).unwrap_or(u32::MAX);
    let mut packet = Vec::new();
    for number in [0xC1FC_1FC1, 1, size, size] {
        packet.extend(match order {
            ByteOrder::Little => u32::to_le_bytes(number),
            ByteOrder::Big => u32::to_be_bytes(number),
        });
    }
    packet.resize(HEADER, 0);
    packet.extend_from_slice(content);
    packet
}
