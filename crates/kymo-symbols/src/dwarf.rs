//! Functions and lines, from DWARF.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{AttributeValue, Reader, UnitOffset, UnitRef};

use crate::binary::{Function, Location, Source};
use crate::demangle::demangled;
use crate::elf::Elf;
use crate::reader::{Section, with_budget};
use crate::search::SearchPaths;

/// Bytes that are read for each byte of debug information, at most: each is read three times where all of it is
/// looked at.
const READS: u64 = 8;
/// Bytes that are read for a small file, at most.
const LEAST_BUDGET: u64 = 1 << 20;
/// Bytes that each look-up adds to that.
const BUDGET_OF_LOOKUP: u64 = 16 << 10;
/// Files that parts of one file's debug information are in, at most.
const MOST_PARTS: usize = 16_384;
/// How often the declaration of a function leads to another one.
const MOST_STEPS: usize = 8;

/// The debug information of a file.
pub(crate) struct Dwarf {
    context: Context<Section>,
    /// Bytes that may still be read.
    budget: u64,
    parts: Parts,
}

/// Files with parts of debug information (`-gsplit-dwarf`).
struct Parts {
    search: SearchPaths,
    known: HashMap<PathBuf, Option<Arc<gimli::Dwarf<Section>>>>,
    /// What those that were opened add to what may be read.
    budget: u64,
}

/// All sections of a file.
fn sections(elf: &Elf) -> gimli::Dwarf<Section> {
    let section = |id: gimli::SectionId| Ok::<_, gimli::Error>(elf.section(id.name()));
    gimli::Dwarf::load(section).unwrap_or_else(|_| unreachable!("sections that fail are empty"))
}

fn split_sections(elf: &Elf) -> gimli::Dwarf<Section> {
    let section = |id: gimli::SectionId| {
        let name = id.dwo_name().unwrap_or_default();
        Ok::<_, gimli::Error>(elf.section(name))
    };
    gimli::Dwarf::load(section).unwrap_or_else(|_| unreachable!("sections that fail are empty"))
}

impl Dwarf {
    /// Reads what units a file has. `supplement` has parts that it shares with others.
    pub(crate) fn new(elf: &Elf, supplement: Option<&Elf>, search: &SearchPaths) -> Option<Self> {
        let mut dwarf = sections(elf);
        let mut size = elf.debug_size();
        if let Some(supplement) = supplement {
            dwarf.set_sup(sections(supplement));
            size = size.saturating_add(supplement.debug_size());
        }
        let budget = size.saturating_mul(READS).saturating_add(LEAST_BUDGET);
        let (context, budget) = with_budget(budget, || Context::from_dwarf(dwarf));
        Some(Self {
            context: context.ok()?,
            budget,
            parts: Parts {
                search: search.clone(),
                known: HashMap::new(),
                budget: 0,
            },
        })
    }

    /// What is at an address: the function that it was compiled in, and the line in that function. If another
    /// function was inlined there, the line is that of its call.
    pub(crate) fn find(&mut self, address: u64) -> Location {
        // addr2line adds one to it.
        if address == u64::MAX {
            return Location::default();
        }
        let Self {
            context,
            budget,
            parts,
        } = self;
        let most = budget.saturating_add(BUDGET_OF_LOOKUP);
        let (location, left) = with_budget(most, || find(context, parts, address));
        *budget = left.saturating_add(std::mem::take(&mut parts.budget));
        location.unwrap_or_default()
    }
}

fn find(context: &Context<Section>, parts: &mut Parts, address: u64) -> Option<Location> {
    let frames = complete(context.find_frames(address), parts);
    let mut frames = frames.ok()?;
    let mut innermost = None;
    let mut outermost = None;
    while let Some(frame) = frames.next().ok()? {
        if outermost.is_none() {
            innermost = Some(source_of(&frame));
        }
        outermost = Some(frame);
    }
    let frame = outermost?;
    let function = frame.function.as_ref();
    // babeltrace2, which looks at the functions outside of namespaces alone, takes this line for Rust.
    let is_rust = function.is_some_and(|function| function.language == Some(gimli::DW_LANG_Rust));
    let source = match is_rust {
        true => innermost.flatten(),
        false => source_of(&frame),
    };
    let unit = complete(context.find_dwarf_and_unit(address), parts);
    let function = function.and_then(|function| {
        let symbol = function.raw_name().ok()?;
        let full = demangled(&symbol);
        let die = unit.zip(frame.dw_die_offset);
        let begin = die.and_then(|(unit, die)| begin(unit, die, address));
        // Its name in the source says nothing about a function of Rust.
        let name = match is_rust {
            true => None,
            false => die.and_then(|(unit, die)| source_name(unit, die)),
        };
        Some(Function {
            name: name.map_or_else(|| full.as_ref().into(), Into::into),
            full_name: full.as_ref().into(),
            offset: address.saturating_sub(begin.unwrap_or(address)),
        })
    });
    Some(Location { function, source })
}

/// The line of a frame.
fn source_of(frame: &addr2line::Frame<'_, Section>) -> Option<Source> {
    let location = frame.location.as_ref()?;
    let path = location.file?;
    Some(Source {
        path: path[..path.floor_char_boundary(crate::MOST_NAME)].into(),
        line: location.line?,
    })
}

/// Does a look-up to its end, and loads the parts that it needs.
fn complete<L: LookupContinuation<Buf = Section>>(
    mut result: LookupResult<L>,
    parts: &mut Parts,
) -> L::Output {
    loop {
        match result {
            LookupResult::Output(output) => return output,
            LookupResult::Load { load, continuation } => {
                result = continuation.resume(parts.load(&load));
            }
        }
    }
}

impl Parts {
    fn load(&mut self, load: &SplitDwarfLoad<Section>) -> Option<Arc<gimli::Dwarf<Section>>> {
        let name = load.path.as_ref()?.to_string_lossy().ok()?.into_owned();
        let directory = match &load.comp_dir {
            Some(directory) => directory.to_string_lossy().ok()?.into_owned(),
            None => String::new(),
        };
        let path = self.search.place(&Path::new(&directory).join(name));
        if let Some(known) = self.known.get(&path) {
            return known.clone();
        }
        if self.known.len() >= MOST_PARTS {
            return None;
        }
        let opened = Elf::open(&path).ok().map(|elf| {
            let size = elf.debug_size();
            self.budget = self.budget.saturating_add(size.saturating_mul(READS));
            let mut part = split_sections(&elf);
            part.make_dwo(&load.parent);
            Arc::new(part)
        });
        self.known.insert(path, opened.clone());
        opened
    }
}

/// Where the code of a function begins.
fn begin(unit: UnitRef<'_, Section>, die: UnitOffset, address: u64) -> Option<u64> {
    let entry = unit.entry(die).ok()?;
    if let Some(low) = entry.attr_value(gimli::DW_AT_low_pc) {
        return unit.attr_address(low).ok()?;
    }
    // It is in several pieces.
    let mut ranges = unit.die_ranges(&entry).ok()?;
    let mut first = None;
    while let Some(range) = ranges.next().ok()? {
        let first = *first.get_or_insert(range.begin);
        if (range.begin..range.end).contains(&address) {
            return Some(if first <= address { first } else { range.begin });
        }
    }
    None
}

/// The name that a function has in the source: its own, or that of its declaration.
fn source_name(unit: UnitRef<'_, Section>, mut die: UnitOffset) -> Option<String> {
    for _ in 0..MOST_STEPS {
        let entry = unit.entry(die).ok()?;
        if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
            let name = unit.attr_string(name).ok()?;
            let name = name.to_string_lossy().ok()?;
            let end = name.floor_char_boundary(crate::MOST_NAME);
            return Some(name[..end].to_owned());
        }
        let origin = entry
            .attr_value(gimli::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
        die = match origin {
            AttributeValue::UnitRef(offset) => offset,
            AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&unit.header)?,
            _ => return None,
        };
    }
    None
}
