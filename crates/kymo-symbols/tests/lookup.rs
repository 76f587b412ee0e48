//! A library in C++ (`data/shape.cpp`) with its debug information in all places where it may be.

use std::fs;
use std::path::{Path, PathBuf};

use kymo_io::Bytes;
use kymo_symbols::{Binary, DebugLink, Identity, Location, OpenError, SearchPaths};

/// What the linker was given.
const BUILD_ID: [u8; 20] = [
    0x6b, 0x79, 0x6d, 0x6f, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn below(root: &Path) -> SearchPaths {
    SearchPaths {
        root: Some(root.to_path_buf()),
        directories: Vec::new(),
    }
}

fn open(name: &str, search: &SearchPaths) -> Binary {
    let identity = Identity {
        build_id: BUILD_ID.to_vec(),
        debug_link: None,
    };
    Binary::open(Path::new(name), &identity, search).expect("it can be opened")
}

/// Name, whole name, distance, file and line.
fn texts(location: Location) -> [String; 5] {
    let Location { function, source } = location;
    let function = function.map(|function| {
        [
            function.name.to_string(),
            function.full_name.to_string(),
            format!("{:#x}", function.offset),
        ]
    });
    let source = source.map(|source| [source.path.to_string(), source.line.to_string()]);
    let [name, full, offset] = function.unwrap_or_default();
    let [path, line] = source.unwrap_or_default();
    [name, full, offset, path, line]
}

/// What addr2line says of the same addresses.
fn has_lines(binary: &Binary) {
    let source = "/src/shape.cpp";
    assert_eq!(
        texts(binary.find(0x26d)),
        ["measure", "measure", "0x1d", source, "16"]
    );
    // `twice` was inlined here: the line is that of its call.
    assert_eq!(
        texts(binary.find(0x25f)),
        ["measure", "measure", "0xf", source, "16"]
    );
    let area = "shapes::Box<int>::area(int) const";
    assert_eq!(
        texts(binary.find(0x27c)),
        ["area", area, "0x6", source, "8"]
    );
    assert_eq!(binary.find(0x10), Location::default());
}

#[test]
fn debug_information_in_the_file() {
    let binary = open("/shape.so", &below(&data()));
    assert!(binary.is_relocatable());
    has_lines(&binary);
}

#[test]
fn debug_information_that_the_file_links_to() {
    has_lines(&open("/shape.stripped.so", &below(&data())));
}

#[test]
fn debug_information_by_build_id() {
    let root = tempfile::tempdir().expect("a directory");
    let directory = root.path().join("debug");
    let place = directory.join(".build-id/6b");
    fs::create_dir_all(&place).expect("created");
    let debug = place.join("796d6f000102030405060708090a0b0c0d0e0f.debug");
    fs::copy(data().join("shape.debug"), &debug).expect("copied");
    fs::copy(data().join("shape.symbols.so"), root.path().join("a.so")).expect("copied");
    let search = SearchPaths {
        directories: vec![directory],
        ..below(root.path())
    };
    has_lines(&open("/a.so", &search));
    // A debug file with another build ID is not used.
    let mut bytes = fs::read(&debug).expect("read");
    let at = bytes.windows(4).position(|four| four == b"kymo");
    bytes[at.expect("the build ID")] = b'K';
    fs::write(&debug, bytes).expect("written");
    let [name, full, _, path, _] = texts(open("/a.so", &search).find(0x27c));
    let area = "shapes::Box<int>::area(int) const";
    assert_eq!([&*name, &*full, &*path], [area, area, ""]);
}

#[test]
fn debug_information_that_the_trace_links_to() {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(root.path().join("lib/.debug")).expect("created");
    let debug = fs::read(data().join("shape.debug")).expect("read");
    fs::write(root.path().join("lib/.debug/x.debug"), &debug).expect("written");
    fs::copy(
        data().join("shape.symbols.so"),
        root.path().join("lib/a.so"),
    )
    .expect("copied");
    let link = |crc| Identity {
        build_id: Vec::new(),
        debug_link: Some(DebugLink {
            name: "x.debug".to_owned(),
            crc,
        }),
    };
    let crc = crc32fast::hash(&debug);
    let open = |crc| Binary::open(Path::new("/lib/a.so"), &link(crc), &below(root.path()));
    has_lines(&open(crc).expect("opened"));
    let other = open(crc ^ 1).expect("opened").find(0x26d);
    assert_eq!(texts(other), ["measure", "measure", "0x1d", "", ""]);
}

#[test]
fn files_that_were_not_traced() {
    let identity = Identity {
        build_id: vec![1, 2, 3],
        debug_link: None,
    };
    let search = below(&data());
    let opened = Binary::open(Path::new("/shape.so"), &identity, &search);
    assert!(matches!(opened, Err(OpenError::OtherBuild)));
    for name in ["/shape.cpp", "/missing.so"] {
        let opened = Binary::open(Path::new(name), &Identity::default(), &search);
        assert!(matches!(opened, Err(OpenError::Io(_))), "{name}");
    }
}

/// Damage anywhere leads to other answers or none, soon.
#[test]
fn damaged_files() {
    let good = fs::read(data().join("shape.so")).expect("read");
    let search = below(Path::new("/nonexistent"));
    let mut seed = 1u64;
    for round in 0..600 {
        let mut bytes = good.clone();
        for _ in 0..1 + round % 4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] = (seed >> 20) as u8;
        }
        bytes.truncate(good.len() - if round % 7 == 0 { round % 999 } else { 0 });
        let opened = Binary::new(
            Bytes::from(bytes),
            Path::new("/x.so"),
            &Identity::default(),
            &search,
        );
        if let Ok(binary) = opened {
            for address in (0x230..0x290).step_by(3).chain([0, u64::MAX]) {
                let _ = binary.find(address);
            }
        }
    }
}

/// Calls that are inlined within each other: addr2line follows them by calling itself.
fn nested(calls: usize) -> Location {
    let (mut abbreviations, mut info) = (Vec::new(), Vec::new());
    // 1: a unit with addresses; 2: a function with addresses; 3: an inlined call without anything.
    for (code, tag, attributes) in [
        (1u8, 0x11u8, &[(0x11u8, 0x01u8), (0x12, 0x06)][..]),
        (2, 0x2e, &[(0x11, 0x01), (0x12, 0x06), (0x03, 0x08)]),
        (3, 0x1d, &[]),
    ] {
        abbreviations.extend([code, tag, 1]);
        for &(name, form) in attributes {
            abbreviations.extend([name, form]);
        }
        abbreviations.extend([0, 0]);
    }
    abbreviations.push(0);
    let body = |info: &mut Vec<u8>, code| {
        info.push(code);
        info.extend(0x1000u64.to_le_bytes());
        info.extend(0x100u32.to_le_bytes());
    };
    info.extend([4, 0, 0, 0, 0, 0, 8]);
    body(&mut info, 1);
    body(&mut info, 2);
    info.extend(b"f\0");
    info.extend(vec![3; calls]);
    info.extend(vec![0; calls + 2]);
    let mut unit = (info.len() as u32).to_le_bytes().to_vec();
    unit.extend(info);
    let binary = Binary::new(
        Bytes::from(elf(&[
            (".debug_abbrev", &abbreviations),
            (".debug_info", &unit),
        ])),
        Path::new("/x.so"),
        &Identity::default(),
        &SearchPaths::default(),
    );
    binary.expect("an ELF file").find(0x1010)
}

#[test]
fn calls_that_are_nested_deeply() {
    assert_eq!(texts(nested(3)), ["f", "f", "0x10", "", ""]);
    assert_eq!(nested(1 << 20), Location::default());
}

/// An ELF file with some sections.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut bytes = vec![0; 64];
    let mut headers = vec![0; 64];
    let header = |name: usize, kind: u32, at: usize, size: usize| {
        let mut header = Vec::new();
        header.extend((name as u32).to_le_bytes());
        header.extend(kind.to_le_bytes());
        header.extend([0; 16]);
        header.extend((at as u64).to_le_bytes());
        header.extend((size as u64).to_le_bytes());
        header.extend([0; 24]);
        header
    };
    for (name, content) in sections {
        headers.extend(header(names.len(), 1, bytes.len(), content.len()));
        names.extend(name.as_bytes());
        names.push(0);
        bytes.extend(*content);
    }
    let own = names.len();
    names.extend(b".shstrtab\0");
    headers.extend(header(own, 3, bytes.len(), names.len()));
    bytes.extend(&names);
    let at = bytes.len() as u64;
    bytes.extend(&headers);
    let count = (headers.len() / 64) as u16;
    bytes[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    bytes[20] = 1;
    bytes[40..48].copy_from_slice(&at.to_le_bytes());
    bytes[52..54].copy_from_slice(&64u16.to_le_bytes());
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}
