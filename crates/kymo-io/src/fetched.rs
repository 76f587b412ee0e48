//! Bytes of a source that may be far away, as a mapped file that fills as it is read.
//!
//! Formats borrow from bytes. Where they are on the other side of a network, a nameless temporary file of their length is
//! mapped, and blocks of it are written when somebody is about to read them: [`Fetched::fetch`]. What was read stays there
//! as long as the bytes do, and counts as temporary storage.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::spool::{Claim, Limit, temporary_file};
use crate::{SharedSource, Storage};

/// Bytes that are fetched together, at least.
const BLOCK: u64 = 128 << 10;

/// Bytes that one request asks for, at most.
const MOST_AT_ONCE: u64 = 8 << 20;

/// Blocks that are fetched ahead of who reads one after the other, at most.
const MOST_AHEAD: u64 = 32;

/// A file that fills as it is read.
pub(crate) struct Fetched {
    source: SharedSource,
    map: memmap2::Mmap,
    state: Mutex<State>,
    /// Blocks have come, or have not.
    changed: Condvar,
}

struct State {
    /// Until all blocks are there: then the mapping is enough. There may be more sources than files that may be open.
    file: Option<File>,
    limit: Limit,
    claim: Claim,
    blocks: Vec<Block>,
    /// The block behind those that were asked for last, and how many were fetched ahead.
    next: u64,
    ahead: u64,
    /// Why nothing more comes. It is not tried again: each of many packets would wait for that.
    failed: Option<(io::ErrorKind, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Missing,
    Coming,
    There,
}

impl Fetched {
    /// Nothing is fetched yet.
    ///
    /// # Errors
    ///
    /// There is no temporary storage, or the bytes cannot be mapped.
    pub(crate) fn new(source: SharedSource) -> io::Result<Self> {
        let length = source.length()?;
        let mut file = temporary_file()?;
        let limit = Limit::of(&file)?;
        file.set_length(length)?;
        let most = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let blocks = usize::try_from(length.div_ceil(BLOCK));
        let blocks = blocks.map_err(|_| io::ErrorKind::FileTooLarge)?;
        let map = crate::map::map(&file, most, crate::Access::Random)?;
        Ok(Self {
            source,
            map,
            state: Mutex::new(State {
                file: Some(file),
                limit,
                claim: Claim::default(),
                blocks: vec![Block::Missing; blocks],
                next: u64::MAX,
                ahead: 0,
                failed: None,
            }),
            changed: Condvar::new(),
        })
    }

    /// All bytes: zeros where they were not fetched.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Why the last fetch failed, if one did.
    pub(crate) fn failure(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.as_ref().map(|(_, message)| message.clone())
    }

    /// Fetches what is missing of a range; what of it is beyond the end is passed over.
    ///
    /// # Errors
    ///
    /// Those of the source, and of temporary storage. After one, all fetches of what is missing fail.
    pub(crate) fn fetch(&self, range: Range<u64>) -> io::Result<()> {
        let length = self.map.len() as u64;
        let range = range.start..range.end.min(length);
        if range.is_empty() {
            return Ok(());
        }
        let (first, last) = (range.start / BLOCK, (range.end - 1) / BLOCK);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = state.read_ahead(first, last);
        loop {
            let state_of = |state: &State, block: u64| state.blocks[block as usize];
            let Some(begin) = (first..=last).find(|&at| state_of(&state, at) == Block::Missing)
            else {
                if (first..=last).all(|at| state_of(&state, at) == Block::There) {
                    return Ok(());
                }
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if let Some((kind, message)) = &state.failed {
                return Err(io::Error::new(*kind, message.clone()));
            }
            // Blocks behind the range come along as far as they are missing, too.
            let most = (begin + MOST_AT_ONCE / BLOCK).min(last + 1 + ahead);
            let most = most.min(state.blocks.len() as u64);
            let end = (begin..most).find(|&at| state_of(&state, at) != Block::Missing);
            let blocks = begin..end.unwrap_or(most);
            state.mark(&blocks, Block::Coming);
            drop(state);
            let bytes = blocks.start * BLOCK..(blocks.end * BLOCK).min(length);
            let mut buffer = vec![0; (bytes.end - bytes.start) as usize];
            // A source that panics leaves nobody waiting.
            let coming = Coming(self, blocks);
            let read = self.source.read_at(bytes.start, &mut buffer);
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let written = read.and_then(|()| state.write(bytes.start, &buffer));
            if let Err(error) = &written {
                state.failed = Some((error.kind(), error.to_string()));
            }
            state.mark(
                &coming.1,
                match written {
                    Ok(()) => Block::There,
                    Err(_) => Block::Missing,
                },
            );
            drop(state);
            drop(coming);
            written?;
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Blocks that are being fetched. When this ends, they are there or missing again.
struct Coming<'a>(&'a Fetched, Range<u64>);

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let state = self.0.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        for block in self.1.clone() {
            if state.blocks[block as usize] == Block::Coming {
                state.blocks[block as usize] = Block::Missing;
            }
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl State {
    fn mark(&mut self, blocks: &Range<u64>, as_what: Block) {
        self.blocks[blocks.start as usize..blocks.end as usize].fill(as_what);
        if as_what == Block::There && self.blocks.iter().all(|block| *block == Block::There) {
            self.file = None;
        }
    }

    /// How many blocks to fetch ahead: the more, the longer somebody reads one after the other.
    fn read_ahead(&mut self, first: u64, last: u64) -> u64 {
        let goes_on = first == self.next || first.checked_add(1) == Some(self.next);
        self.ahead = match goes_on {
            true => (self.ahead * 2).clamp(1, MOST_AHEAD),
            false => 0,
        };
        self.next = last + 1;
        self.ahead
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.claim.disk(bytes.len() as u64, &self.limit)?;
        match &mut self.file {
            Some(file) => file.write_at(offset, bytes),
            None => Err(io::Error::other("all of it is there")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::ReadAt;

    /// Bytes that follow from their places, and what was asked for.
    #[derive(Default)]
    struct Far {
        length: u64,
        asked: Mutex<Vec<Range<u64>>>,
        fails: AtomicBool,
    }

    fn byte(at: u64) -> u8 {
        (at * 7 / 3) as u8
    }

    impl ReadAt for Far {
        fn length(&self) -> io::Result<u64> {
            Ok(self.length)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            let end = offset + buffer.len() as u64;
            assert!(end <= self.length, "{offset}..{end}");
            self.asked.lock().unwrap().push(offset..end);
            if self.fails.load(Ordering::Relaxed) {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it is gone"));
            }
            for (at, to) in (offset..).zip(buffer) {
                *to = byte(at);
            }
            Ok(())
        }
    }

    fn far(length: u64) -> (Arc<Far>, Fetched) {
        let source = Arc::new(Far {
            length,
            ..Far::default()
        });
        let shared: SharedSource = Arc::clone(&source) as _;
        (source, Fetched::new(shared).unwrap())
    }

    fn is_right(fetched: &Fetched, range: Range<u64>) -> bool {
        range
            .into_iter()
            .all(|at| fetched.bytes()[at as usize] == byte(at))
    }

    #[test]
    fn only_what_is_read_is_fetched_and_only_once() {
        let (source, fetched) = far(10 * BLOCK + 5);
        fetched.fetch(3 * BLOCK + 1..3 * BLOCK + 2).unwrap();
        fetched.fetch(3 * BLOCK..4 * BLOCK).unwrap();
        assert!(is_right(&fetched, 3 * BLOCK..4 * BLOCK));
        let block = 3 * BLOCK..4 * BLOCK;
        assert_eq!(*source.asked.lock().unwrap(), std::slice::from_ref(&block));
        // Around it in two requests, the last block being short.
        fetched.fetch(BLOCK..u64::MAX).unwrap();
        assert!(is_right(&fetched, BLOCK..10 * BLOCK + 5));
        let asked = source.asked.lock().unwrap().split_off(1);
        assert_eq!(asked, [BLOCK..3 * BLOCK, 4 * BLOCK..10 * BLOCK + 5]);
        fetched.fetch(20 * BLOCK..21 * BLOCK).unwrap();
        fetched.fetch(5..5).unwrap();
        assert!(source.asked.lock().unwrap().len() == 1);
    }

    #[test]
    fn no_file_is_open_of_what_is_there_as_a_whole() {
        let (_, fetched) = far(2 * BLOCK + 5);
        fetched.fetch(0..2 * BLOCK).unwrap();
        assert!(fetched.state.lock().unwrap().file.is_some());
        fetched.fetch(2 * BLOCK..u64::MAX).unwrap();
        assert!(fetched.state.lock().unwrap().file.is_none());
        fetched.fetch(0..u64::MAX).unwrap();
        assert!(is_right(&fetched, 0..2 * BLOCK + 5));
    }

    #[test]
    fn who_reads_one_after_the_other_asks_seldom() {
        let (source, fetched) = far(200 * BLOCK);
        for at in (0..200 * BLOCK).step_by(5000) {
            fetched.fetch(at..(at + 5000).min(200 * BLOCK)).unwrap();
        }
        assert!(is_right(&fetched, 0..200 * BLOCK));
        let asked = source.asked.lock().unwrap();
        assert!(asked.len() < 20, "{}", asked.len());
        assert!(
            asked
                .iter()
                .all(|range| range.end - range.start <= MOST_AT_ONCE)
        );
    }

    #[test]
    fn threads_wait_for_each_other() {
        let (source, fetched) = far(40 * BLOCK);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let fetched = &fetched;
                scope.spawn(move || {
                    for block in 0..40 {
                        let block = (block * 7 + thread * 5) % 40;
                        fetched.fetch(block * BLOCK..(block + 1) * BLOCK).unwrap();
                        assert!(is_right(fetched, block * BLOCK..(block + 1) * BLOCK));
                    }
                });
            }
        });
        let asked = source.asked.lock().unwrap();
        let bytes: u64 = asked.iter().map(|range| range.end - range.start).sum();
        assert_eq!(bytes, 40 * BLOCK);
    }

    #[test]
    fn a_failure_stays() {
        let (source, fetched) = far(4 * BLOCK);
        fetched.fetch(0..1).unwrap();
        source.fails.store(true, Ordering::Relaxed);
        let error = fetched.fetch(0..4 * BLOCK).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let count = source.asked.lock().unwrap().len();
        assert!(fetched.fetch(2 * BLOCK..3 * BLOCK).is_err());
        assert_eq!(source.asked.lock().unwrap().len(), count);
        assert_eq!(fetched.failure().unwrap(), "it is gone");
        // What is there can be read.
        fetched.fetch(0..BLOCK).unwrap();
        assert!(is_right(&fetched, 0..BLOCK));
    }
}
