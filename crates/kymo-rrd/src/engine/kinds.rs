//! What files have in common that are open.

use std::io;
use std::sync::Arc;

use kymo_io::{ReadAt, Storage};
use kymo_machine::Machine;

use super::direct::Direct;
use super::{Engine, Rrd};
use crate::file::native::{Definitions, MOST_HEADERS};

/// Definitions of native files, made ready for updates, for the files that are opened next: of those that
/// a program has open, nearly all have one of a few definitions. So the second file of a kind is opened
/// with a small part of the work, and has no definitions of its own in memory.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Kind>,
    /// The one that makes room for the next.
    oldest: usize,
    /// The one that a file was of last.
    last: usize,
    /// What a file that was closed has used, and the bytes of its state.
    spare: Option<(Kind, Vec<u8>)>,
    /// The beginning of the file that was looked at last, and how many of its first bytes are known if it is of no kind.
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
        let needed = |definitions: &Definitions| match definitions.are_certain() {
            true => definitions.state().end,
            false => definitions
                .state()
                .end
                .max(length.min(MOST_HEADERS) as usize),
        };
        // Mostly, files of one kind come one after the other.
        let last = self.kinds.get(self.last);
        let likely = last.map_or(self.first, |kind| needed(&kind.definitions));
        let mut known = read(&mut self.beginning, likely.min(self.first))?;
        for (index, kind) in self.kinds.iter().enumerate() {
            let definitions = &kind.definitions;
            if !definitions.may_be_of(&self.beginning[..known], length, machine) {
                continue;
            }
            known = read(&mut self.beginning, needed(definitions))?;
            if definitions.are_of(&self.beginning[..known]) {
                self.last = index;
                let state = &self.beginning[definitions.state()];
                return Ok(Some(match self.spare.take() {
                    Some((spare, mut bytes)) if Arc::ptr_eq(&spare.definitions, definitions) => {
                        bytes.clear();
                        bytes.extend_from_slice(state);
                        (spare, bytes)
                    }
                    _ => (kind.clone(), state.to_vec()),
                }));
            }
        }
        read(&mut self.beginning, self.first)?;
        Ok(None)
    }

    /// Closes a file, and keeps what it has used for the next of its kind.
    pub(super) fn close<S: Storage>(&mut self, rrd: Rrd<S>) {
        self.spare = rrd.into_kind();
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
    use kymo_io::faults::Recorder;

    use super::*;
    use crate::engine::{Definition, Measurement, Sample, Smoothing, create};
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

    /// A file goes on with what another one of its kind has used, as if it had its own.
    #[test]
    fn what_a_closed_file_has_used_changes_nothing() {
        let mut kinds = Kinds::new();
        let mut files = [file(2, 3), file(2, 3), file(2, 4)];
        let mut alone = files.clone().map(|file| Rrd::open(file).unwrap());
        // Within a step, at the end of one, and after several.
        for (round, seconds) in [3, 10, 14, 20, 55, 60, 61].into_iter().enumerate() {
            for (place, file) in files.iter_mut().enumerate() {
                // Each is at another place of its step.
                let time = Time::from_seconds(1_000_000_000 + seconds + 3 * place as i64);
                let values = [Measurement::Float(round as f64)];
                let sample = Sample {
                    time,
                    values: &values,
                };
                alone[place].update(&sample).unwrap();
                let mut rrd = open(std::mem::take(file), &mut kinds);
                rrd.update(&sample).unwrap();
                *file = rrd.storage_mut().clone();
                kinds.close(rrd);
                assert!(kinds.spare.is_some());
            }
        }
        assert_eq!(files, alone.map(Rrd::into_storage));
    }

    /// Nobody knows how far it came.
    #[test]
    fn nothing_is_kept_of_a_file_that_could_not_be_written() {
        let mut kinds = Kinds::new();
        let storage = Recorder::new(file(2, 3));
        let mut rrd = Rrd::open_among(storage, None, &mut kinds).unwrap();
        rrd.storage_mut().set_room(Some(0));
        let values = [Measurement::Float(1.0)];
        let sample = Sample {
            time: Time::from_seconds(1_000_000_010),
            values: &values,
        };
        assert!(rrd.update(&sample).is_err());
        kinds.close(rrd);
        assert!(kinds.spare.is_none());
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
