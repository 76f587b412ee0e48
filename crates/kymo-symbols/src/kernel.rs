//! Symbols of a Linux kernel and its modules.

use std::fmt;
use std::io;
use std::path::Path;

use kymo_io::{Access, Bytes};

/// The symbols of a kernel and its modules, as `/proc/kallsyms` had them: addresses and names.
#[derive(Debug)]
pub struct KernelSymbols {
    bytes: Bytes,
    /// Address, and range of the name in the file; sorted.
    symbols: Vec<(u64, u32, u32)>,
}

/// A file with symbols of a kernel cannot be used.
#[derive(Debug)]
pub enum KernelSymbolsError {
    /// It cannot be read.
    Io(io::Error),
    /// A line is not `ADDRESS TYPE NAME [MODULE]`; counted from 1.
    Line(usize),
    /// It has no function, or all addresses are zero.
    NoAddresses,
    /// It is larger than 4 GiB.
    TooLarge,
}

impl fmt::Display for KernelSymbolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&kymo_io::reason(error)),
            Self::Line(number) => write!(
                f,
                "line {number} is not `ADDRESS TYPE NAME`, as lines of /proc/kallsyms are"
            ),
            Self::NoAddresses => f.write_str(
                "all addresses are zero: the kernel shows them in /proc/kallsyms only to root",
            ),
            Self::TooLarge => f.write_str("it is larger than 4 GiB"),
        }
    }
}

impl std::error::Error for KernelSymbolsError {}

impl KernelSymbols {
    /// Reads a copy of `/proc/kallsyms`, or a `System.map`.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Self, KernelSymbolsError> {
        // Files of /proc say that they are empty.
        let bytes = match path.starts_with("/proc") {
            true => std::fs::read(path).map(Bytes::from),
            false => Bytes::open(path, Access::Sequential),
        };
        Self::new(bytes.map_err(KernelSymbolsError::Io)?)
    }

    /// Reads the contents of such a file.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn new(bytes: Bytes) -> Result<Self, KernelSymbolsError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(KernelSymbolsError::TooLarge);
        }
        let mut symbols = Vec::new();
        let mut begin = 0;
        for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let at = begin;
            begin += line.len() + 1;
            if line.is_empty() {
                continue;
            }
            let parts = parse(line).ok_or(KernelSymbolsError::Line(number + 1))?;
            let (address, kind, name) = parts;
            if address != 0 && matches!(kind, b't' | b'T' | b'w' | b'W') {
                let name = name.start + at..name.end + at;
                symbols.push((address, name.start as u32, name.end as u32));
            }
        }
        if symbols.is_empty() {
            return Err(KernelSymbolsError::NoAddresses);
        }
        // The first name of an address counts.
        symbols.sort();
        symbols.dedup_by_key(|symbol| symbol.0);
        Ok(Self { bytes, symbols })
    }

    /// The function that an address lies in, and the distance from its beginning. A name in a module is
    /// followed by the module's, as in `/proc/kallsyms`.
    pub fn find(&self, address: u64) -> Option<(String, u64)> {
        let after = self
            .symbols
            .partition_point(|&(begin, ..)| begin <= address);
        let &(begin, from, to) = self.symbols.get(after.checked_sub(1)?)?;
        // Behind the last function there may be anything.
        if after == self.symbols.len() && address - begin > 1 << 20 {
            return None;
        }
        let name = &self.bytes[from as usize..to as usize];
        let name = String::from_utf8_lossy(name).replace('\t', " ");
        Some((name, address - begin))
    }
}

/// Address, type, and range of the name in a line.
fn parse(line: &[u8]) -> Option<(u64, u8, std::ops::Range<usize>)> {
    let digits = line.iter().position(|&byte| byte == b' ')?;
    let address = std::str::from_utf8(&line[..digits]).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let [kind, b' ', first, ..] = line[digits + 1..] else {
        return None;
    };
    if first.is_ascii_whitespace() {
        return None;
    }
    let end = line.trim_ascii_end().len().min(digits + 3 + 512);
    Some((address, kind, digits + 3..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> Result<KernelSymbols, KernelSymbolsError> {
        KernelSymbols::new(Bytes::from(text.as_bytes().to_vec()))
    }

    #[test]
    fn nearest_function_before() {
        let text = "\
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 D not_a_function
ffffffff81000200 t do_work
ffffffffc0001000 t probe\t[my_module]
";
        let symbols = symbols(text).unwrap();
        let find = |address| symbols.find(address);
        assert_eq!(find(0xffff_ffff_8100_0150), Some(("_stext".into(), 0x150)));
        assert_eq!(find(0xffff_ffff_8100_0200), Some(("do_work".into(), 0)));
        let probe = Some(("probe [my_module]".into(), 8));
        assert_eq!(find(0xffff_ffff_c000_1008), probe);
        assert_eq!(find(0xffff_ffff_d000_1008), None);
        assert_eq!(find(0x1000), None);
    }

    #[test]
    fn files_of_others() {
        assert!(matches!(
            symbols("0000000000000000 T _stext\n"),
            Err(KernelSymbolsError::NoAddresses)
        ));
        assert!(matches!(
            symbols("ff T a\nhello\n"),
            Err(KernelSymbolsError::Line(2))
        ));
    }
}
