//! Debug information.

use std::path::Path;

use kymo_io::Bytes;
use kymo_symbols::{Binary, Identity, KernelSymbols, MOST_NAME, SearchPaths, demangled};

/// An ELF file with debug information, looked up at many addresses: names have their limit, and the same address has the
/// same answer however often it is asked. The same bytes as symbols of a kernel, and as a mangled name.
pub(crate) fn symbols(data: &[u8]) {
    let search = SearchPaths {
        root: Some("/nonexistent".into()),
        directories: Vec::new(),
    };
    let open = || {
        let bytes = Bytes::from(data.to_vec());
        Binary::new(bytes, Path::new("/x.so"), &Identity::default(), &search)
    };
    if let Ok(binary) = open() {
        let near = (0x200..0x300).step_by(5);
        let far = (0..16).map(|at| (data.len() as u64) << at);
        let addresses: Vec<u64> = near.chain(far).chain([0, u64::MAX - 1, u64::MAX]).collect();
        for &address in &addresses {
            let found = binary.find(address);
            if let Some(function) = &found.function {
                assert!(function.name.len() <= MOST_NAME && function.full_name.len() <= MOST_NAME);
                assert!(function.offset <= address);
            }
            if let Some(source) = &found.source {
                assert!(source.path.len() <= MOST_NAME);
            }
            assert_eq!(binary.find(address), found);
        }
    }
    if let Ok(symbols) = KernelSymbols::new(Bytes::from(data.to_vec())) {
        for address in [0, 0x1000, u64::MAX, 0xffff_ffff_8100_0000] {
            let found = symbols.find(address);
            assert!(found.is_none_or(|(_, offset)| offset <= address));
        }
    }
    if let Ok(name) = std::str::from_utf8(data) {
        assert!(demangled(name).len() <= MOST_NAME);
    }
}
