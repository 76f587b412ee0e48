//! Periodic work: writing everything and starting a new journal.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Group, Store, records};
use crate::journal::{self, Journal};
use crate::sync::{lock, wait};

/// Size in bytes beyond which a group that is carried over to a new journal is written.
const PIECE: usize = 1 << 20;
/// However often it is asked for, everything is written no more often than this: what cannot be written is tried
/// each time.
const WRITE_PAUSE: Duration = Duration::from_millis(250);
/// And no new file of the journal begun: what cannot be written is carried over each time.
const ROTATE_PAUSE: Duration = Duration::from_secs(1);

/// When there is something to do.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

/// What is to be done before its time has come.
#[derive(Debug, Default)]
struct Wishes {
    write: bool,
    rotate: bool,
    stop: bool,
}

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Everything is to be written: memory is short, or other times hold.
    Write,
    /// Write everything and start a new journal, because the current one is long or its file is damaged.
    Rotate,
    /// Nothing is left to do.
    Stop,
}

/// Times from which something may, or must, be done.
#[derive(Debug)]
struct Times {
    write: Instant,
    rotate: Instant,
    /// When the journal was last rotated.
    rotated: Instant,
}

impl Upkeep {
    /// Has something done soon.
    pub(super) fn press(&self, wish: Wish) {
        let mut wishes = lock(&self.wishes);
        let wished = match wish {
            Wish::Write => &mut wishes.write,
            Wish::Rotate => &mut wishes.rotate,
            Wish::Stop => &mut wishes.stop,
        };
        if !std::mem::replace(wished, true) {
            self.changed.notify_one();
        }
    }

    /// Waits until something is to be done. What is wished from then on is another wish.
    fn next(&self, store: &Store, times: &Times) -> Wish {
        let mut wishes = lock(&self.wishes);
        loop {
            let now = Instant::now();
            // The journal may have been rotated since the request.
            wishes.rotate &= store.journal().is_some_and(Journal::is_long);
            // The interval may change meanwhile.
            let end = times.rotated + store.timing().flush_interval;
            let rotates = end <= now || (wishes.rotate && times.rotate <= now);
            let writes = wishes.write && times.write <= now;
            if wishes.stop {
                return Wish::Stop;
            }
            if rotates {
                (wishes.rotate, wishes.write) = (false, false);
                return Wish::Rotate;
            }
            if writes {
                wishes.write = false;
                return Wish::Write;
            }
            let wished = [(wishes.rotate, times.rotate), (wishes.write, times.write)];
            let wished = wished.iter().filter(|(is_wished, _)| *is_wished);
            let next = wished.map(|(_, time)| *time).fold(end, Instant::min);
            let rest = next.saturating_duration_since(now);
            wishes = match self.changed.wait_timeout(wishes, rest) {
                Ok((wishes, _)) => wishes,
                Err(poisoned) => PoisonError::into_inner(poisoned).0,
            };
        }
    }
}

/// Does it until the store is closed.
pub(super) fn run(store: &Store) {
    let now = Instant::now();
    let mut times = Times {
        write: now,
        rotate: now,
        rotated: now,
    };
    loop {
        match store.upkeep.next(store, &times) {
            Wish::Stop => return,
            Wish::Write if store.is_short() => store.relieve(),
            Wish::Write => store.flush_all(),
            Wish::Rotate => {
                if let Err(error) = write_all(store) {
                    store.log_limiter.report(format_args!(
                        "a new journal cannot be begun: {}",
                        kymo_io::reason(&error)
                    ));
                }
                times.rotated = Instant::now();
                times.rotate = times.rotated + ROTATE_PAUSE;
            }
        }
        times.write = Instant::now() + WRITE_PAUSE;
    }
}

/// Writes everything; then the journal before is no longer needed.
fn write_all(store: &Store) -> io::Result<()> {
    let before = match store.journal() {
        Some(journal) => journal.rotate()?,
        None => Vec::new(),
    };
    store.flush_all_and_wait();
    carry_over(store)?;
    before.iter().try_for_each(std::fs::remove_file)
}

/// Puts what is pending in the journal: then the files before it are no longer needed.
pub(super) fn carry_over(store: &Store) -> io::Result<()> {
    let Some(journal) = store.journal() else {
        return Ok(());
    };
    let mut group = Group::new();
    let carry = |group: &mut Group| match group.is_empty() {
        true => Ok(()),
        false => journal.carry(&mut std::mem::take(&mut group.bytes)),
    };
    let unopened = lock(&store.unopened);
    for (path, pending) in unopened.iter() {
        for record in records(pending) {
            journal::update(path, record.bytes, &mut group.bytes);
        }
        if group.len() > PIECE {
            carry(&mut group)?;
        }
    }
    for database in store.databases() {
        let mut state = database.state();
        // What a writer has taken it may put back.
        while state.writing {
            state = wait(&database.served, state);
        }
        for record in records(&state.pending) {
            journal::update(database.path(), record.bytes, &mut group.bytes);
        }
        drop(state);
        if group.len() > PIECE {
            carry(&mut group)?;
        }
    }
    carry(&mut group)
}

/// Ends the journal when all threads have ended. Where something could not be written, it stays.
pub(super) fn end(store: &Store) -> io::Result<()> {
    let Some(journal) = store.journal() else {
        return Ok(());
    };
    let before = journal.rotate()?;
    carry_over(store)?;
    before.iter().try_for_each(std::fs::remove_file)?;
    match store.pending_bytes() == 0 && lock(&store.unopened).is_empty() {
        true => journal.remove(),
        false => Ok(()),
    }
}
