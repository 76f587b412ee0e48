//! What files have in common that are open.

use std::io;
use std::sync::Arc;

use kymo_io::ReadAt;
use kymo_machine::Machine;

use super::Engine;
use super::direct::Direct;
use crate::file::native::{Definitions, MOST_HEADERS};

/// Definitions of native files, made ready for updates, for the files that are opened next: of those that
/// a program has open, nearly all have one of a few definitions. So the second file of a kind is opened
/// with a small part of the work, and has no definitions of its own in memory.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Kind>,
    /// The one that makes room for the next.
    oldest: usize,
    /// The beginning of the file that was looked at last, and how many of its first bytes were read at once.
    beginning: Vec<u8>,
    first: usize,
}

/// What files with the same definitions have in common.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) definitions: Arc<Definitions>,
    pub(super) engine: Engine,
    pub(super) direct: Option<Direct>,
}

/// Definitions that are kept.
const MOST_KINDS: usize = 64;
/// Those of a file with more bytes before the values are not kept.
const LONGEST_KEPT: usize = 1 << 18;

impl Kinds {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at a file. Gives its kind and the bytes of its state, if files of that kind were opened before
    /// and nothing is wrong with this one; otherwise it is to be opened from its [`Kinds::beginning`].
    pub(super) fn look<S: ReadAt>(
        &mut self,
        storage: &S,
        machine: Option<&'static Machine>,
    ) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let length = storage.length()?;
        self.first = length.min(MOST_HEADERS) as usize;
        let mut known = 0;
        let mut read = |beginning: &mut Vec<u8>, end: usize| {
            if known < end {
                beginning.resize(beginning.len().max(end), 0);
                storage.read_at(known as u64, &mut beginning[known..end])?;
                known = end;
            }
            io::Result::Ok(known)
        };
        let mut known = read(&mut self.beginning, self.first)?;
        for kind in &self.kinds {
            let definitions = &kind.definitions;
            if !definitions.may_be_of(&self.beginning[..known], length, machine) {
                continue;
            }
            let state = definitions.state();
            known = read(&mut self.beginning, state.end)?;
            if definitions.are_of(&self.beginning[..known]) {
                return Ok(Some((kind.clone(), self.beginning[state].to_vec())));
            }
        }
        Ok(None)
    }

    /// The first bytes of the file that was looked at, [`MOST_HEADERS`] at most.
    pub(super) fn beginning(&self) -> &[u8] {
        &self.beginning[..self.first]
    }

    /// Keeps the kind of a file that was opened, for those that follow.
    pub(super) fn keep(&mut self, kind: Kind) {
        let definitions = &kind.definitions;
        let mut known = self.kinds.iter().map(|kind| &kind.definitions);
        if definitions.state().end > LONGEST_KEPT
            || !definitions.may_be_shared()
            // It was known, but something about this file was not usual.
            || known.any(|known| known.are_same(definitions))
        {
            return;
        }
        if self.kinds.len() < MOST_KINDS {
            self.kinds.push(kind);
        } else {
            self.kinds[self.oldest] = kind;
            self.oldest = (self.oldest + 1) % MOST_KINDS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Definition, Rrd, Smoothing, create};
    use crate::file::convert::{Target, convert};
    use crate::{Time, file::portable};

    /// A file of `archives` archives of `rows` rows each.
    fn file(archives: usize, rows: usize) -> Vec<u8> {
        file_of("x86_64", archives, rows)
    }

    fn file_of(machine: &str, archives: usize, rows: usize) -> Vec<u8> {
        let mut definition = Definition::new(Time::from_seconds(1_000_000_000), 10);
        let archive = format!("RRA:LAST:0.5:1:{rows}");
        for text in std::iter::once("DS:x:GAUGE:20:U:U").chain((0..archives).map(|_| &*archive)) {
            definition.add(text, &Smoothing::default()).unwrap();
        }
        let database = create(&definition, |_, _| 0).unwrap();
        let file = portable::create(&database, None, &Default::default(), Vec::new());
        let file = file.unwrap().into_storage();
        let source = crate::Source::open(&file, None).unwrap();
        let target = Target::Native(Machine::find(machine).unwrap());
        convert(&source, target).unwrap().bytes
    }

    fn open(file: Vec<u8>, kinds: &mut Kinds) -> Rrd<Vec<u8>> {
        Rrd::open_among(file, None, kinds).unwrap()
    }

    /// Without this, nothing of it would be tested. The second file is one with a long header.
    #[test]
    fn files_share_what_is_the_same() {
        for archives in [2, 40] {
            let mut kinds = Kinds::new();
            for files in 1..4 {
                open(file(archives, 3), &mut kinds);
                open(file(archives, 4), &mut kinds);
                assert_eq!(kinds.kinds.len(), 2, "{archives} {files}");
            }
            let one = open(file(archives, 3), &mut kinds);
            let other = open(file(archives, 3), &mut kinds);
            assert_eq!(Arc::strong_count(&kinds.kinds[0].definitions), 3);
            assert_eq!(Arc::strong_count(&kinds.kinds[1].definitions), 1);
            drop((one, other));
        }
    }

    /// What would only take the place of others.
    #[test]
    fn what_cannot_be_shared_is_not_kept() {
        let mut kinds = Kinds::new();
        open(file_of("x86", 2, 3), &mut kinds);
        assert!(kinds.kinds.is_empty(), "its times may have 64 bits");
        let known = file(2, 3);
        let mut odd = known.clone();
        let header = crate::file::native::Header::examine(&known, None).unwrap();
        let micros = header.layout.micros().unwrap();
        // As some programs leave it: no damage, but not usual.
        odd[micros..micros + 8].copy_from_slice(&i64::from(i32::MAX).to_le_bytes());
        open(known, &mut kinds);
        for _ in 0..2 {
            open(odd.clone(), &mut kinds);
            assert_eq!(kinds.kinds.len(), 1);
        }
    }

    #[test]
    fn kinds_are_few_and_small() {
        let mut kinds = Kinds::new();
        for rows in 1..=MOST_KINDS + 3 {
            open(file(1, rows), &mut kinds);
        }
        assert_eq!(kinds.kinds.len(), MOST_KINDS);
        // Those that came first have made room.
        let known = |kinds: &mut Kinds, rows| kinds.look(&file(1, rows), None).unwrap().is_some();
        assert!(!known(&mut kinds, 3));
        assert!(known(&mut kinds, 4));
        assert!(known(&mut kinds, MOST_KINDS + 3));
        open(file(1500, 1), &mut kinds);
        assert!(kinds.look(&file(1500, 1), None).unwrap().is_none());
    }
}
