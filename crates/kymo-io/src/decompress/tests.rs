use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// Text that compresses, but not to nothing.
fn text(lines: u32) -> Vec<u8> {
    let line = |n: u32| format!("{:x} {n} the same\n", n.wrapping_mul(0x9e37_79b9));
    (0..lines).map(line).collect::<String>().into_bytes()
}

fn gz(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zst(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// A frame of one block as it is, with or without its size, with a checksum that is wrong or none.
fn raw_frame(content: &[u8], size: Option<u8>, checksum: bool) -> Vec<u8> {
    let mut frame = zst::MAGIC.to_vec();
    let has_checksum = u8::from(checksum) << 2;
    match size {
        Some(size) => frame.extend([0x20 | has_checksum, size]),
        None => frame.extend([has_checksum, 0x58]),
    }
    let header = (content.len() << 3 | 1) as u32;
    frame.extend(&header.to_le_bytes()[..3]);
    frame.extend(content);
    if checksum {
        frame.extend([0; 4]);
    }
    frame
}

fn opened(bytes: Vec<u8>) -> Content {
    content(Bytes::from(bytes)).unwrap()
}

#[test]
fn plain_files_stay_as_they_are() {
    for plain in [
        &b""[..],
        b"x",
        b"\x1f\x8b\x08\xff more",
        b"BZh9",
        b"\x1f\x8b",
    ] {
        let content = opened(plain.to_vec());
        assert_eq!(&*content.bytes, plain);
        assert_eq!((content.compression, content.damage), (None, None));
    }
}

#[test]
fn members_and_frames_are_one_content() {
    let text = text(40_000);
    let (a, b) = text.split_at(text.len() / 3);
    for compress in [gz, zst] {
        for parts in [
            vec![&text[..]],
            vec![a, b],
            vec![a, b"", b],
            vec![b"", a, b"", b, b""],
        ] {
            let file: Vec<u8> = parts.iter().flat_map(|part| compress(part)).collect();
            let content = opened(file);
            assert_eq!(&*content.bytes, text);
            assert_eq!(content.damage, None);
        }
    }
    assert_eq!(opened(gz(&zst(&text))).compression, Some(Compression::Gzip));
    assert_eq!(&*opened(gz(&zst(&text))).bytes, text);
    assert_eq!(&*opened(zst(&gz(&text))).bytes, text);
}

#[test]
fn content_of_many_frames_keeps_its_order() {
    // More than a thread keeps ahead, and tiny frames between large ones.
    let large = vec![7; 20 << 20];
    let mut whole = Vec::new();
    let mut file = Vec::new();
    for n in 0..6_u8 {
        for part in [&large[..], &[n], b"", &[n; 1000]] {
            whole.extend(part);
            file.extend(zst(part));
            file.extend([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, n, n, n]);
        }
    }
    let content = opened(file);
    assert!(*content.bytes == whole);
    assert_eq!(content.damage, None);
}

#[test]
fn what_is_before_a_cut_is_read() {
    let text = text(2_000);
    let (a, b) = text.split_at(text.len() / 2);
    for compress in [gz, zst] {
        let first = compress(a);
        let file = [first.clone(), compress(b)].concat();
        for end in (1..file.len()).step_by(7).chain([first.len()]) {
            let Ok(found) = content(Bytes::from(file[..end].to_vec())) else {
                assert!(end < first.len());
                continue;
            };
            if end < 4 {
                continue;
            }
            assert!(text.starts_with(&found.bytes), "{end}");
            assert!(end < first.len() || found.bytes.len() >= a.len(), "{end}");
            assert_eq!(found.damage.is_none(), end == first.len(), "{end}");
        }
    }
    // All blocks before the cut, though the frame does not end.
    let long = self::text(60_000);
    let file = zst(&long);
    let found = opened(file[..file.len() - 3].to_vec());
    assert_eq!(found.bytes.len(), long.len());
    assert!(found.damage.unwrap().contains("cut off at byte"));
}

#[test]
fn damage_is_reported() {
    let text = text(1_000);
    let mut file = gz(&text);
    let crc = file.len() - 8;
    file[crc] ^= 1;
    let found = opened(file);
    assert_eq!(&*found.bytes, text);
    assert!(found.damage.unwrap().contains("damaged near byte"));

    let found = opened([gz(&text), b"garbage".to_vec()].concat());
    assert_eq!(&*found.bytes, text);
    assert!(found.damage.unwrap().starts_with("7 bytes from byte"));
    assert_eq!(opened([gz(&text), vec![0; 600]].concat()).damage, None);

    let found = opened([zst(&text), b"garbage".to_vec()].concat());
    assert_eq!(&*found.bytes, text);
    assert!(found.damage.unwrap().starts_with("7 bytes from byte"));

    let found = opened(
        [
            raw_frame(b"abc", None, true),
            raw_frame(b"def", Some(3), false),
        ]
        .concat(),
    );
    assert_eq!(&*found.bytes, b"abcdef");
    assert!(
        found
            .damage
            .unwrap()
            .contains("the checksum of the frame at byte 0")
    );

    let file = [
        raw_frame(b"abc", Some(3), false),
        raw_frame(b"def", Some(2), false),
    ]
    .concat();
    let found = opened([file, raw_frame(b"ghi", Some(3), false)].concat());
    assert!(b"abcdef".starts_with(&found.bytes));
    assert!(found.damage.is_some());
}

#[test]
fn content_may_have_a_limit() {
    for compress in [gz, zst] {
        let file = compress(&[7; 100]);
        assert!(content_within(Bytes::from(file.clone()), 100).is_ok());
        let error = content_within(Bytes::from(file), 99).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "the content is larger than 99 bytes");
    }
}

#[test]
fn nothing_that_can_be_read_is_an_error() {
    let mut window = raw_frame(b"abc", None, false);
    window[5] = 0xff;
    let mut dictionary = zst::MAGIC.to_vec();
    dictionary.extend([1, 0, 42, 1, 0, 0]);
    for file in [
        window,
        dictionary,
        gz(b"abc")[..10].to_vec(),
        b"\x1f\x8b\x08\0".to_vec(),
    ] {
        let error = content(Bytes::from(file)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn names_lose_what_compression_added() {
    for (name, without) in [
        ("a/b.rrd.gz", "a/b.rrd"),
        ("b.zst", "b"),
        ("b.rrd", "b.rrd"),
        (".gz", ".gz"),
    ] {
        assert_eq!(without_compression(Path::new(name)), Path::new(without));
    }
    assert_eq!(stem(Path::new("a/load.rrd.gz")).unwrap(), "load");
    assert_eq!(stem(Path::new("load.1.cpel")).unwrap(), "load.1");
    assert_eq!(stem(Path::new("/")), None);
}
