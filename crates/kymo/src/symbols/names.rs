//! Addresses as text.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use kymo_symbols::{Binary, Identity, Location, OpenError};

use super::{SymbolOptions, SymbolProblem};

/// Names of one file that are kept.
const MOST_NAMES: usize = 1 << 16;

/// What an address is called.
#[derive(Debug, Default)]
pub(super) struct AddressName {
    /// File with the code and place in it: `libfoo.so+0x1234`.
    pub(super) binary: Box<str>,
    /// Function and distance from its beginning: `main+0x1c`.
    pub(super) function: Box<str>,
    /// Source file and line: `main.c:12`.
    pub(super) source: Box<str>,
    /// What addresses of the same function have in common: its whole name, or `binary` if it is not known.
    pub(super) symbol: Box<str>,
}

/// A file that was mapped, and names of its addresses that were asked for.
#[derive(Debug)]
pub(super) struct Image {
    path: Box<str>,
    binary: Result<Binary, OpenError>,
    known: Mutex<HashMap<(u64, bool), Arc<AddressName>, RandomState>>,
}

/// Files by path and identity.
type Images = HashMap<(Box<str>, Identity), Arc<Image>>;

/// All files, and how they are shown.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) options: SymbolOptions,
    images: Mutex<Images>,
    kernel: Mutex<HashMap<u64, Option<Arc<AddressName>>, RandomState>>,
}

impl Names {
    pub(super) fn new(options: SymbolOptions) -> Self {
        Self {
            options,
            images: Mutex::default(),
            kernel: Mutex::default(),
        }
    }

    /// The file that was mapped.
    pub(super) fn image(&self, path: &str, identity: &Identity) -> Arc<Image> {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Box::from(path), identity.clone());
        let image = images.entry(key).or_insert_with(|| {
            let binary = Binary::open(Path::new(path), identity, &self.options.search);
            Arc::new(Image {
                path: path.into(),
                binary,
                known: Mutex::default(),
            })
        });
        Arc::clone(image)
    }

    /// Files that cannot be used; by path.
    pub(super) fn problems(&self) -> Vec<SymbolProblem> {
        let images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failed: Vec<(&str, String)> = images
            .values()
            .filter_map(|image| {
                let error = image.binary.as_ref().err()?;
                Some((&*image.path, error.to_string()))
            })
            .collect();
        failed.sort();
        failed.dedup();
        let failed = failed
            .into_iter()
            .map(|(path, reason)| SymbolProblem::File {
                path: path.into(),
                reason,
            });
        failed.collect()
    }

    /// The name of an address in a file; with `is_relative` it counts from where the file is mapped.
    pub(super) fn of_image(
        &self,
        image: &Image,
        address: u64,
        is_relative: bool,
    ) -> Arc<AddressName> {
        let key = (address, is_relative);
        let known = image.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(&key) {
            return Arc::clone(name);
        }
        drop(known);
        let name = Arc::new(self.make(image, address, is_relative));
        let mut known = image.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_NAMES {
            known.clear();
        }
        known.insert(key, Arc::clone(&name));
        name
    }

    fn make(&self, image: &Image, address: u64, is_relative: bool) -> AddressName {
        let full = self.options.full_path;
        let place = match full {
            true => {
                let place = self.options.search.place(Path::new(&*image.path));
                place.display().to_string()
            }
            false => last_part(&image.path).to_owned(),
        };
        let binary = match is_relative {
            true => format!("{place}+{}", hexadecimal(address)),
            false => format!("{place}@{}", hexadecimal(address)),
        };
        let Location { function, source } = match &image.binary {
            Ok(binary) => binary.find(address),
            Err(_) => Location::default(),
        };
        let symbol = match &function {
            Some(function) => function.full_name.to_string(),
            None => binary.clone(),
        };
        let function =
            function.map(|function| format!("{}+{}", function.name, hexadecimal(function.offset)));
        let source = source.map(|source| {
            let path = match full {
                true => &source.path,
                false => last_part(&source.path),
            };
            format!("{path}:{}", source.line)
        });
        AddressName {
            binary: binary.into(),
            function: function.unwrap_or_default().into(),
            source: source.unwrap_or_default().into(),
            symbol: symbol.into(),
        }
    }

    /// The name of an address in the kernel.
    pub(super) fn of_kernel(&self, address: u64) -> Option<Arc<AddressName>> {
        let symbols = self.options.kernel.as_ref()?;
        let mut known = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(&address) {
            return name.clone();
        }
        let name = symbols.find(address).map(|(name, offset)| {
            Arc::new(AddressName {
                binary: Box::default(),
                function: format!("{name}+{}", hexadecimal(offset)).into(),
                source: Box::default(),
                symbol: name.into(),
            })
        });
        if known.len() >= MOST_NAMES {
            known.clear();
        }
        known.insert(address, name.clone());
        name
    }
}

/// Hexadecimal digits after `0x`, but for zero, as C's `%#x` writes them.
fn hexadecimal(number: u64) -> String {
    match number {
        0 => "0".to_owned(),
        number => format!("{number:#x}"),
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
