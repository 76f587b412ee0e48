//! Locks that go on when a thread has panicked.
//!
//! The data behind a lock of this crate changes in steps, none of which leaves it in a state that others could
//! not go on from, so that poison means nothing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Locks, whatever has become of those who had the lock before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification that something has changed, and takes the lock again.
pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The same until a time at most. `None` if that has come before.
pub(crate) fn wait_until<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    end: Instant,
) -> Option<MutexGuard<'a, T>> {
    let rest = end.checked_duration_since(Instant::now())?;
    let waited = changed.wait_timeout(guard, rest);
    Some(waited.unwrap_or_else(PoisonError::into_inner).0)
}
