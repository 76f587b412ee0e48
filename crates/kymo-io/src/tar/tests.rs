use super::*;

/// A header of ustar, or of v7 if it has no magic.
fn header(name: &[u8], kind: u8, size: u64, link: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name);
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link);
    block[257..265].copy_from_slice(b"ustar\x0000");
    sealed(block)
}

/// The same with its checksum.
fn sealed(mut block: [u8; BLOCK]) -> [u8; BLOCK] {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(name.as_bytes(), kind, content.len() as u64, b"").to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn link(name: &str, kind: u8, to: &str) -> Vec<u8> {
    header(name.as_bytes(), kind, 0, to.as_bytes()).to_vec()
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut content = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let digits = |length: usize| length.to_string().len();
        let mut length = rest.len() + 1;
        while digits(length) + rest.len() != length {
            length += 1;
        }
        content += &format!("{length}{rest}");
    }
    member("pax", b'x', content.as_bytes())
}

fn archive(parts: &[Vec<u8>]) -> Archive {
    let bytes = Bytes::from([parts.concat(), vec![0; 2 * BLOCK]].concat());
    assert!(is_tar(&bytes));
    Archive::new(Path::new("x.tar"), Arc::new(bytes)).unwrap()
}

fn content(archive: &Archive, path: &str) -> Option<Vec<u8>> {
    let bytes = archive.open(&Path::new("x.tar").join(path));
    bytes.ok().map(|bytes| bytes.to_vec())
}

#[test]
fn members_are_files_of_a_tree() {
    let archive = archive(&[
        member("d/", b'5', b""),
        member("d/one", b'0', b"1"),
        member("./d/e/two", 0, &[2; 1000]),
        member("/rooted", b'7', b"3"),
        member("d/one", b'0', b"newer"),
        member("pipe", b'6', b""),
    ]);
    assert!(archive.damage().is_empty());
    assert_eq!(content(&archive, "d/one").unwrap(), b"newer");
    assert_eq!(content(&archive, "d/e/two").unwrap(), [2; 1000]);
    assert_eq!(content(&archive, "rooted").unwrap(), b"3");
    let names = |path: &str| -> Vec<_> {
        let entries = archive.list(&Path::new("x.tar").join(path)).unwrap();
        let shown = |entry: Entry| (entry.path.display().to_string(), entry.kind);
        entries.into_iter().map(shown).collect()
    };
    let [file, directory] = [EntryKind::File, EntryKind::Directory];
    let named = |name: &str, kind| (name.to_owned(), kind);
    let all = [
        named("x.tar/d", directory),
        named("x.tar/pipe", EntryKind::Other),
        named("x.tar/rooted", file),
    ];
    assert_eq!(names(""), all);
    assert_eq!(
        names("d"),
        [named("x.tar/d/e", directory), named("x.tar/d/one", file)]
    );
    let error = |path: &str| archive.open(Path::new(path)).unwrap_err().kind();
    assert_eq!(error("x.tar"), io::ErrorKind::IsADirectory);
    assert_eq!(error("x.tar/pipe"), io::ErrorKind::Unsupported);
    assert_eq!(error("x.tar/none"), io::ErrorKind::NotFound);
    assert_eq!(error("elsewhere/d/one"), io::ErrorKind::NotFound);
    assert!(archive.list(Path::new("x.tar/rooted")).is_err());
}

#[test]
fn long_names_have_headers_of_their_own() {
    let long = format!("{}/{}", "d".repeat(150), "n".repeat(200));
    let mut prefixed = header(b"name", b'0', 0, b"");
    prefixed[345..351].copy_from_slice(b"prefix");
    let archive = archive(&[
        member("././@LongLink", b'L', format!("{long}\0").as_bytes()),
        member("short", b'0', b"gnu"),
        pax(&[("path", "pax/ü"), ("mtime", "1.5"), ("comment", "")]),
        member("short", b'0', b"pax"),
        pax(&[("size", "3")]),
        [
            header(b"sized", b'0', 0, b"").to_vec(),
            member("", 0, b"")[..0].to_vec(),
        ]
        .concat(),
        [b"abc".to_vec(), vec![0; 509]].concat(),
        sealed(prefixed).to_vec(),
        member("after", b'0', b"it"),
    ]);
    assert_eq!(archive.damage(), [""; 0]);
    assert_eq!(content(&archive, &long).unwrap(), b"gnu");
    assert_eq!(content(&archive, "pax/ü").unwrap(), b"pax");
    assert_eq!(content(&archive, "sized").unwrap(), b"abc");
    assert_eq!(content(&archive, "prefix/name").unwrap(), b"");
    assert_eq!(content(&archive, "after").unwrap(), b"it");
}

#[test]
fn numbers_may_be_binary() {
    let mut block = header(b"large", b'0', 0, b"");
    block[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
    let archive = archive(&[sealed(block).to_vec(), b"abc".to_vec(), vec![0; 509]]);
    assert_eq!(content(&archive, "large").unwrap(), b"abc");
}

#[test]
fn links_stay_within_the_archive() {
    let archive = archive(&[
        member("d/file", b'0', b"content"),
        link("hard", b'1', "d/file"),
        link("rooted", b'1', "/d/file"),
        link("d/soft", b'2', "../hard"),
        link("e", b'2', "d"),
        link("up", b'2', "../../etc/passwd"),
        link("absolute", b'2', "/etc/passwd"),
        link("loop", b'2', "pool"),
        link("pool", b'2', "loop"),
        link("self", b'2', "."),
        link("gone", b'1', "none"),
        link("out", b'1', "../d/file"),
        member("../escaped", b'0', b"x"),
        member("d/../escaped", b'0', b"x"),
        member("e/through", b'0', b"x"),
    ]);
    for path in [
        "hard",
        "rooted",
        "d/soft",
        "e/file",
        "e/soft",
        "self/self/e/file",
    ] {
        assert_eq!(content(&archive, path).unwrap(), b"content", "{path}");
    }
    for path in [
        "up",
        "absolute",
        "loop",
        "gone",
        "out",
        "escaped",
        "d/through",
        "../x.tar/hard",
    ] {
        assert_eq!(content(&archive, path), None, "{path}");
    }
    let real = archive.real(Path::new("x.tar/self/e/soft"));
    assert_eq!(real, Path::new("x.tar/hard"));
    let damage = archive.damage().join("\n");
    for name in ["gone", "out", "../escaped", "d/../escaped", "e/through"] {
        assert!(
            damage.contains(&format!("`{name}` is left out")),
            "{damage}"
        );
    }
    assert_eq!(archive.damage().len(), 5);
}

#[test]
fn damage_is_reported_and_the_rest_read() {
    let whole = [
        member("one", b'0', &[1; 600]),
        member("two", b'0', &[2; 600]),
    ]
    .concat();
    for end in 1..=whole.len() {
        let bytes = Arc::new(Bytes::from(whole[..end].to_vec()));
        let archive = Archive::new(Path::new("x.tar"), bytes).unwrap();
        let contents = [content(&archive, "one"), content(&archive, "two")];
        let [one, two] = contents.map(|bytes| bytes.map(|bytes| bytes.len()));
        let expected = |begin: usize| {
            let present = end.checked_sub(begin + BLOCK)?;
            Some(present.min(600))
        };
        assert_eq!((one, two), (expected(0), expected(3 * BLOCK)), "{end}");
        // Padding may be missing.
        let is_good = end >= whole.len() - 424 || (BLOCK + 600..=3 * BLOCK).contains(&end);
        assert_eq!(archive.damage().is_empty(), is_good, "{end}");
    }
    let archive = archive(&[
        member("one", b'0', b"1"),
        vec![7; BLOCK],
        member("two", b'0', b"2"),
    ]);
    assert_eq!(content(&archive, "one").unwrap(), b"1");
    assert_eq!(content(&archive, "two"), None);
    assert!(archive.damage()[0].contains("a header is missing at byte 1024"));
}

#[test]
fn what_is_not_supported_is_reported() {
    let mut sparse = header(b"sparse", b'S', 512, b"");
    sparse[482] = 1;
    let mut map = vec![0; BLOCK];
    map[504] = 1;
    let archive = archive(&[
        sealed(sparse).to_vec(),
        map,
        vec![0; BLOCK],
        vec![9; BLOCK],
        pax(&[("GNU.sparse.major", "1")]),
        member("too", b'0', b"x"),
        member(&format!("{}f", "d/".repeat(49)), b'0', b""),
        pax(&[("path", &format!("{}f", "d/".repeat(70)))]),
        member("deep", b'0', b""),
        pax(&[("path", &"n".repeat(5000))]),
        member("long", b'0', b""),
        member("after", b'0', b"it"),
    ]);
    assert_eq!(content(&archive, "after").unwrap(), b"it");
    let damage = archive.damage();
    assert_eq!(damage.len(), 4);
    assert!(damage[0].contains("`sparse` is left out: sparse files are not supported"));
    assert!(damage[1].contains("`too` is left out: sparse files are not supported"));
    assert!(damage[2].contains("nested too deep"));
    assert!(damage[3].contains("its name is too long"));
}

#[test]
fn a_single_file_is_its_own_tree() {
    let archive = Archive::single(Path::new("a.gz"), Bytes::from(b"content".to_vec()));
    assert_eq!(archive.kind(Path::new("a.gz")).unwrap(), EntryKind::File);
    assert_eq!(&*archive.open(Path::new("a.gz")).unwrap(), b"content");
    assert_eq!(archive.real(Path::new("a.gz")), Path::new("a.gz"));
    assert!(archive.list(Path::new("a.gz")).is_err());
    assert!(archive.open(Path::new("a.gz/b")).is_err());
}

/// What the system's tar makes of a tree is that tree.
#[cfg(target_os = "linux")]
#[test]
fn archives_of_the_systems_tar_are_read() {
    use std::process::Command;

    // Names and sizes that differ in each round: a simple generator will do.
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for round in 0..12 {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let mut places = vec![tree.clone()];
        for number in 0..20 {
            let place = places[random(places.len() as u64) as usize].clone();
            let name = format!("{}{number}", "ñame ".repeat(random(40) as usize));
            let path = place.join(name);
            match random(5) {
                0 => {
                    std::fs::create_dir(&path).unwrap();
                    places.push(path);
                }
                1 => {
                    let to = if random(2) == 0 { ".." } else { "../nothing" };
                    std::os::unix::fs::symlink(to, &path).unwrap();
                }
                _ => {
                    std::fs::write(&path, vec![number; random(3000) as usize]).unwrap();
                    let hard = path.with_file_name(format!("hard{number}"));
                    std::fs::hard_link(&path, hard).unwrap();
                }
            }
        }
        let format = ["gnu", "pax", "oldgnu", "posix"][round % 4];
        let file = directory.path().join("x.tar");
        let made = Command::new("tar")
            .arg(format!("--format={format}"))
            .args(["-C", directory.path().to_str().unwrap(), "-cf"])
            .args([file.as_path(), Path::new("tree")])
            .status();
        assert!(made.unwrap().success());
        let bytes = Bytes::open(&file, crate::Access::Sequential).unwrap();
        let archive = Archive::new(&file, Arc::new(bytes)).unwrap();
        assert_eq!(archive.damage(), [""; 0]);
        same(&archive, &tree, &file.join("tree"), 0);
    }
}

/// Compares a directory with one of an archive. Links to directories above lead round in circles.
#[cfg(target_os = "linux")]
fn same(archive: &Archive, disk: &Path, inner: &Path, depth: usize) {
    let on_disk = crate::list(disk).unwrap();
    let there = archive.list(inner).unwrap();
    let names = |entries: &[Entry]| -> Vec<_> {
        entries
            .iter()
            .map(|entry| (entry.name.clone(), entry.kind))
            .collect()
    };
    // What a link leads to may be outside: nothing is there.
    let outside = |entry: &&Entry| entry.path.is_symlink();
    if !on_disk.iter().any(|entry| outside(&entry)) {
        assert_eq!(names(&on_disk), names(&there));
    }
    assert_eq!(on_disk.len(), there.len());
    for (entry, other) in on_disk.iter().zip(&there) {
        assert_eq!(entry.name, other.name);
        match other.kind {
            EntryKind::File => {
                let content = archive.open(&other.path).unwrap();
                assert_eq!(*content, std::fs::read(&entry.path).unwrap());
            }
            // The root of the archive is above the tree, and has other things on the disk.
            EntryKind::Directory if depth < 4 && archive.real(&other.path) != archive.path() => {
                same(archive, &entry.path, &other.path, depth + 1);
            }
            _ => {}
        }
    }
}

#[test]
fn a_directory_that_was_written_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let long = "n".repeat(150);
    std::fs::create_dir_all(directory.path().join("inner/empty")).unwrap();
    for (name, size) in [
        ("metadata", 7),
        ("inner/a", 512),
        (&*long, 1000),
        ("zero", 0),
    ] {
        std::fs::write(directory.path().join(name), vec![size as u8; size]).unwrap();
    }
    let mut bytes = Vec::new();
    write_directory(directory.path(), "trace.ctf", &mut bytes).unwrap();
    let archive = Archive::new(Path::new("x.tar"), Arc::new(Bytes::from(bytes))).unwrap();
    assert!(archive.damage().is_empty());
    for (name, size) in [
        ("metadata", 7),
        ("inner/a", 512),
        (&*long, 1000),
        ("zero", 0),
    ] {
        let found = content(&archive, &format!("trace.ctf/{name}"));
        assert_eq!(found.unwrap(), vec![size as u8; size], "{name}");
    }
    assert_eq!(
        archive
            .list(Path::new("x.tar/trace.ctf/inner/empty"))
            .unwrap()
            .len(),
        0
    );
}
