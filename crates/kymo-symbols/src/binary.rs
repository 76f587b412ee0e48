//! Files with code.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kymo_io::Bytes;

use crate::demangle::demangled;
use crate::dwarf::Dwarf;
use crate::elf::Elf;
use crate::search::{Identity, SearchPaths};

/// The function that an address lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name as debug information has it: in C++ without namespaces, classes and parameters.
    pub name: Arc<str>,
    /// Its whole name: demangled, with namespaces, classes and parameters.
    pub full_name: Arc<str>,
    /// Distance of the address from its beginning.
    pub offset: u64,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path of the file, as the compiler knew it.
    pub path: Arc<str>,
    /// Line, counted from 1; 0 stands for none.
    pub line: u32,
}

/// What is known of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function.
    pub function: Option<Function>,
    /// The line in this function; if another function was inlined there, that of the call. In Rust it is the line in
    /// the function that was inlined.
    pub source: Option<Source>,
}

/// A file with code cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// It cannot be read, or is not an ELF file.
    Io(io::Error),
    /// It is not the file that was traced: its build ID is another one.
    OtherBuild,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&kymo_io::reason(error)),
            Self::OtherBuild => {
                f.write_str("it is not the file that was traced: its build ID is another one")
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// A program or a library, with its debug information.
pub struct Binary {
    elf: Elf,
    path: Box<Path>,
    identity: Identity,
    search: SearchPaths,
    /// What is read at the first look-up.
    details: OnceLock<Details>,
}

struct Details {
    /// The file with the symbols, if it is another one.
    symbols: Option<Elf>,
    dwarf: Option<Mutex<Dwarf>>,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binary({})", self.path.display())
    }
}

impl Binary {
    /// Opens the file that has this path on the traced system. What it has of debug information is read, or looked for
    /// elsewhere, when it is asked.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is another one than what was traced.
    pub fn open(path: &Path, identity: &Identity, search: &SearchPaths) -> Result<Self, OpenError> {
        let elf = Elf::open(&search.place(path)).map_err(OpenError::Io)?;
        Self::of(elf, path, identity, search)
    }

    /// The same for the contents of a file.
    ///
    /// # Errors
    ///
    /// It is not an ELF file, or another one than what was traced.
    pub fn new(
        bytes: Bytes,
        path: &Path,
        identity: &Identity,
        search: &SearchPaths,
    ) -> Result<Self, OpenError> {
        let elf = Elf::new(Arc::new(bytes)).map_err(OpenError::Io)?;
        Self::of(elf, path, identity, search)
    }

    fn of(
        elf: Elf,
        path: &Path,
        identity: &Identity,
        search: &SearchPaths,
    ) -> Result<Self, OpenError> {
        if !identity.build_id.is_empty() && identity.build_id != elf.build_id {
            return Err(OpenError::OtherBuild);
        }
        Ok(Self {
            elf,
            path: path.into(),
            identity: identity.clone(),
            search: search.clone(),
            details: OnceLock::new(),
        })
    }

    /// Whether its addresses count from where it is mapped: it is a library, or a program that may lie anywhere.
    pub fn is_relocatable(&self) -> bool {
        self.elf.is_relocatable
    }

    /// What is at an address, as the file counts them.
    pub fn find(&self, address: u64) -> Location {
        let details = self.details.get_or_init(|| self.load());
        let mut location = match &details.dwarf {
            Some(dwarf) => {
                let mut dwarf = dwarf.lock().unwrap_or_else(PoisonError::into_inner);
                dwarf.find(address)
            }
            None => Location::default(),
        };
        if location.function.is_none() {
            let symbols = details.symbols.as_ref().unwrap_or(&self.elf);
            location.function = symbols.function(address).map(|(begin, symbol)| {
                let name = String::from_utf8_lossy(symbol);
                let name: Arc<str> = demangled(&name).as_ref().into();
                Function {
                    full_name: Arc::clone(&name),
                    name,
                    offset: address - begin,
                }
            });
        }
        location
    }

    /// Looks for debug information: in the file, by its build ID, by its link.
    fn load(&self) -> Details {
        let separate = match self.elf.has_debug_information() {
            true => None,
            false => self.separate(),
        };
        let debug = separate.as_ref().map_or(&self.elf, |(elf, _)| elf);
        let place = self.search.place(&self.path);
        let debug_place = separate.as_ref().map_or(&*place, |(_, place)| place);
        let supplement = debug.supplement.as_ref().and_then(|(name, build_id)| {
            let mut places = self.search.of_supplement(debug_place, name);
            places.extend(self.search.of_build_id(build_id));
            let mut found = places.iter().filter_map(|place| Elf::open(place).ok());
            found.find(|elf| elf.build_id == *build_id)
        });
        let dwarf = match debug.has_debug_information() {
            true => Dwarf::new(debug, supplement.as_ref(), &self.search),
            false => None,
        };
        let symbols = separate.map(|(elf, _)| elf);
        Details {
            symbols: symbols.filter(|elf| elf.has_symbols() && !self.elf.has_symbols()),
            dwarf: dwarf.map(Mutex::new),
        }
    }

    /// The file with separate debug information, and where it is.
    fn separate(&self) -> Option<(Elf, Box<Path>)> {
        let is_it = |elf: &Elf| elf.has_debug_information() || elf.has_symbols();
        for place in self.search.of_build_id(&self.elf.build_id) {
            match Elf::open(&place) {
                Ok(elf) if is_it(&elf) && elf.build_id == self.elf.build_id => {
                    return Some((elf, place.into()));
                }
                _ => {}
            }
        }
        let links = [
            self.identity.debug_link.as_ref(),
            self.elf.debug_link.as_ref(),
        ];
        for link in links.into_iter().flatten() {
            for place in self.search.of_link(&self.path, &link.name) {
                match Elf::open(&place) {
                    Ok(elf) if is_it(&elf) && elf.crc() == link.crc => {
                        return Some((elf, place.into()));
                    }
                    _ => {}
                }
            }
        }
        None
    }
}
