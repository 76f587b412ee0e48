//! Archives and compressed files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Archive, Bytes, EntryKind, content_within};

/// What a compressed file may hold here: more only takes longer.
const MOST: u64 = 16 << 20;

/// Links may lead round in circles.
const MOST_DEPTH: usize = 6;

/// An archive: everything in it can be found by its path, and lies within it.
pub(crate) fn tar(data: &[u8]) {
    let root = Path::new("x.tar");
    let bytes = Arc::new(Bytes::from(data.to_vec()));
    let archive = Archive::new(root, bytes).expect("few members");
    let mut ahead = vec![(PathBuf::from(root), 0)];
    let mut looked_at = 0;
    while let Some((path, depth)) = ahead.pop() {
        for entry in archive.list(&path).expect("a directory") {
            looked_at += 1;
            // Links to nothing are entries, too.
            let found = archive.kind(&entry.path);
            assert!(found.is_err() || found.is_ok_and(|kind| kind == entry.kind));
            let real = archive.real(&entry.path);
            assert!(real.starts_with(root));
            match entry.kind {
                EntryKind::File => {
                    let bytes = archive.open(&entry.path).expect("a file");
                    assert!(bytes.len() <= data.len());
                    assert_eq!(*archive.open(&real).expect("the same file"), *bytes);
                }
                EntryKind::Directory if depth < MOST_DEPTH && looked_at < 1000 => {
                    ahead.push((entry.path, depth + 1));
                }
                _ => assert!(archive.open(&entry.path).is_err()),
            }
        }
    }
}

/// A compressed file: every way to decode it gives the same, on however many threads.
pub(crate) fn compressed(data: &[u8]) {
    let decode = || {
        let content = content_within(Bytes::from(data.to_vec()), MOST);
        content.map_err(|error| error.to_string())
    };
    match (decode(), decode()) {
        (Ok(one), Ok(other)) => {
            assert!(one.bytes.len() as u64 <= MOST.max(data.len() as u64));
            assert!(*one.bytes == *other.bytes);
            assert_eq!(one.damage, other.damage);
        }
        (one, other) => assert_eq!(one.err(), other.err()),
    }
}
