//! What an ELF file says, without its debug information.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use gimli::RunTimeEndian;
use kymo_io::{Access, Bytes};
use object::read::File;
use object::{
    CompressedFileRange, CompressionFormat, Object, ObjectKind, ObjectSection, ObjectSymbol,
    ObjectSymbolTable, SymbolKind,
};

use crate::reader::Section;

/// How much larger a section may become when it is decompressed. Zlib's limit is 1,032; debug information
/// comes to 30 at most.
const MOST_GROWTH: u64 = 128;
/// The largest section that is decompressed, in bytes.
const MOST_DECOMPRESSED: u64 = 4 << 30;

/// A link to the file that has the debug information of another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DebugLink {
    /// Name of the file, without a directory.
    pub name: String,
    /// Its checksum (CRC-32).
    pub crc: u32,
}

/// A function among the symbols of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u64,
    size: u64,
    /// Where the name begins in the file.
    name: u64,
}

/// Functions by their addresses.
#[derive(Debug, Default)]
struct Symbols {
    /// Sorted.
    symbols: Vec<Symbol>,
    /// Whether these are all functions; else those that others use.
    are_all: bool,
}

/// An ELF file.
#[derive(Debug)]
pub(crate) struct Elf {
    bytes: Arc<Bytes>,
    endian: RunTimeEndian,
    /// Sections with debug information: name and where they are.
    sections: Vec<(String, CompressedFileRange)>,
    symbols: Symbols,
    pub(crate) build_id: Vec<u8>,
    pub(crate) debug_link: Option<DebugLink>,
    /// The file that several debug files have parts in: its name and build ID.
    pub(crate) supplement: Option<(String, Vec<u8>)>,
    /// Whether addresses in it are relative to where it is mapped.
    pub(crate) is_relocatable: bool,
}

impl Elf {
    /// Opens and reads a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let bytes = Bytes::open(path, Access::Random)?;
        Self::new(Arc::new(bytes))
    }

    /// Reads the bytes of a file.
    pub(crate) fn new(bytes: Arc<Bytes>) -> io::Result<Self> {
        let invalid = |error: object::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let file = File::parse(&**bytes).map_err(invalid)?;
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let sections = file.sections().filter_map(|section| {
            let name = section.name().ok()?;
            let is_debug = name.starts_with(".debug_") || name.starts_with(".zdebug_");
            let range = is_debug.then(|| section.compressed_file_range().ok())??;
            Some((name.to_owned(), range))
        });
        let sections = sections.collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let link = file.gnu_debuglink().ok().flatten();
        let supplement = file.gnu_debugaltlink().ok().flatten();
        Ok(Self {
            endian,
            sections,
            symbols: Symbols::new(&file, &bytes),
            build_id: file.build_id().ok().flatten().unwrap_or(&[]).to_vec(),
            debug_link: link.map(|(name, crc)| DebugLink {
                name: text(name),
                crc,
            }),
            supplement: supplement.map(|(name, id)| (text(name), id.to_vec())),
            is_relocatable: file.kind() == ObjectKind::Dynamic,
            bytes,
        })
    }

    /// Whether it has DWARF.
    pub(crate) fn has_debug_information(&self) -> bool {
        self.sections
            .iter()
            .any(|(name, range)| is_named(name, ".debug_info") && range.compressed_size > 0)
    }

    /// Whether it knows all of its functions.
    pub(crate) fn has_symbols(&self) -> bool {
        self.symbols.are_all
    }

    /// The checksum of all of it.
    pub(crate) fn crc(&self) -> u32 {
        crc32fast::hash(&self.bytes)
    }

    /// Size of all sections with debug information, in bytes; of compressed ones, what would be plausible.
    pub(crate) fn debug_size(&self) -> u64 {
        let sizes = self.sections.iter().map(|(_, range)| {
            range
                .uncompressed_size
                .min(range.compressed_size.saturating_mul(16))
        });
        sizes.fold(0, u64::saturating_add)
    }

    /// A section, decompressed where it is compressed; empty if there is none, or it is damaged.
    pub(crate) fn section(&self, name: &str) -> Section {
        let found = self
            .sections
            .iter()
            .find(|(other, _)| is_named(other, name));
        found
            .and_then(|(_, range)| self.read(*range))
            .unwrap_or_else(|| Section::new(&self.bytes, (0, 0), self.endian))
    }

    fn read(&self, range: CompressedFileRange) -> Option<Section> {
        let begin = usize::try_from(range.offset).ok()?;
        let end = begin.checked_add(usize::try_from(range.compressed_size).ok()?)?;
        let raw = self.bytes.get(begin..end)?;
        let size = range.uncompressed_size;
        let most = (raw.len() as u64).saturating_mul(MOST_GROWTH);
        let decompressed = |reader: &mut dyn Read| {
            let is_plausible = size <= most.min(MOST_DECOMPRESSED);
            let mut whole = Vec::new();
            let read = is_plausible.then(|| reader.take(size).read_to_end(&mut whole).ok())??;
            (read as u64 == size).then(|| {
                let bytes = Arc::new(Bytes::from(whole));
                Section::new(&bytes, (0, read), self.endian)
            })
        };
        match range.format {
            CompressionFormat::None => Some(Section::new(&self.bytes, (begin, end), self.endian)),
            CompressionFormat::Zlib => decompressed(&mut flate2::read::ZlibDecoder::new(raw)),
            CompressionFormat::Zstandard => {
                let mut decoder = ruzstd::decoding::StreamingDecoder::new(raw).ok()?;
                decompressed(&mut decoder)
            }
            _ => None,
        }
    }

    /// The function that is before an address, its beginning, and its name.
    pub(crate) fn function(&self, address: u64) -> Option<(u64, &[u8])> {
        let symbol = self.symbols.before(address)?;
        let name = self.bytes.get(usize::try_from(symbol.name).ok()?..)?;
        let name = &name[..name.len().min(crate::MOST_NAME)];
        let end = name.iter().position(|&byte| byte == 0);
        Some((symbol.address, &name[..end.unwrap_or(name.len())]))
    }
}

/// Whether a section has a name, or the one that it had when it was compressed in the old way.
fn is_named(section: &str, name: &str) -> bool {
    section == name
        || section
            .strip_prefix(".z")
            .is_some_and(|rest| Some(rest) == name.strip_prefix('.'))
}

impl Symbols {
    fn new(file: &File<'_>, bytes: &Bytes) -> Self {
        let first = bytes.as_ptr() as u64;
        let functions = |symbol: object::Symbol<'_, '_>| {
            let is_function = symbol.kind() == SymbolKind::Text && !symbol.is_undefined();
            let name = symbol.name_bytes().ok()?;
            (is_function && !name.is_empty()).then(|| Symbol {
                address: symbol.address(),
                size: symbol.size(),
                name: name.as_ptr() as u64 - first,
            })
        };
        let mut are_all = true;
        let mut symbols: Vec<Symbol> = match file.symbol_table() {
            Some(table) => table.symbols().filter_map(functions).collect(),
            None => Vec::new(),
        };
        if symbols.is_empty() {
            are_all = false;
            symbols = file.dynamic_symbols().filter_map(functions).collect();
        }
        // Of functions at the same place, the one that comes first in the file is found.
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by_key(|symbol| symbol.address);
        Self { symbols, are_all }
    }

    fn before(&self, address: u64) -> Option<Symbol> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[after.checked_sub(1)?];
        // Functions that others do not use may be between those that they do.
        let is_within = address - symbol.address < symbol.size.max(1);
        (self.are_all || is_within).then_some(symbol)
    }
}
