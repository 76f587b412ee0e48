//! Locks of whole files, as rrdtool takes them.
//!
//! rrdtool locks a file that it writes by `fcntl` with `F_SETLK`. Such a lock belongs to a process:
//! its threads do not exclude each other, and it is gone when the process closes the file, however
//! often that is still open. On Linux there are locks of open files (`F_OFD_SETLK`), which know
//! neither flaw and exclude the others all the same; they are taken there, and rrdtool's kind on
//! other Unix systems. Files that are only read are locked so that others may read them too. All of
//! these locks are advisory: they bind only those that take them.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// What to do about programs that write the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// Nothing: whoever asks knows that there are none.
    None,
    /// Lock the file, or fail with `WouldBlock` where another holds it, as rrdtool does.
    Try,
    /// Wait for others as long as an update may take, a second or two, and fail with `WouldBlock` then.
    Briefly,
    /// Wait until no other process or thread holds the lock, and take it.
    Wait,
}

/// Who a lock keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Those that write.
    Shared,
    /// All others.
    Exclusive,
}

/// Locks a file, which is open for writing, against all others that lock it. The lock ends with
/// [`unlock`] or when the file is closed.
///
/// # Errors
///
/// `WouldBlock` if another holds the lock and the caller does not wait; those of the system.
pub fn lock(file: &File, how: Locking) -> io::Result<()> {
    take(file, how, Kind::Exclusive)
}

/// Locks a file, which is open for reading, against those that write it: others may read it, too.
/// The lock ends as that of [`lock`] does.
///
/// # Errors
///
/// As of [`lock`].
pub fn lock_to_read(file: &File, how: Locking) -> io::Result<()> {
    take(file, how, Kind::Shared)
}

/// How long [`Locking::Briefly`] waits.
const BRIEFLY: Duration = Duration::from_secs(2);
/// How long it sleeps at first, and at most, before it tries again.
const SLEEPS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

fn take(file: &File, how: Locking, kind: Kind) -> io::Result<()> {
    match how {
        Locking::None => Ok(()),
        Locking::Try => try_to_take(file, kind),
        Locking::Briefly => {
            let begin = Instant::now();
            let (mut sleep, longest) = SLEEPS;
            loop {
                match try_to_take(file, kind) {
                    Err(error)
                        if error.kind() == io::ErrorKind::WouldBlock
                            && begin.elapsed() < BRIEFLY =>
                    {
                        std::thread::sleep(sleep);
                        sleep = (sleep * 2).min(longest);
                    }
                    done => return done,
                }
            }
        }
        Locking::Wait => loop {
            match system::lock(file, kind, true) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        },
    }
}

fn try_to_take(file: &File, kind: Kind) -> io::Result<()> {
    system::lock(file, kind, false).map_err(|error| match error.kind() {
        // The standard leaves it open which of the two there is.
        io::ErrorKind::PermissionDenied => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

/// Whether another holds a lock that keeps readers out. On Linux this check takes no lock, so it delays nobody;
/// on other systems a lock is taken briefly.
///
/// # Errors
///
/// Those of the system.
pub fn is_locked_to_write(file: &File) -> io::Result<bool> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return system::is_locked_to_write(file);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    match lock_to_read(file, Locking::Try) {
        Ok(()) => unlock(file).map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// Ends a lock, if there is one.
///
/// # Errors
///
/// Those of the system.
pub fn unlock(file: &File) -> io::Result<()> {
    system::unlock(file)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::fs::File;
    use std::io;

    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::Kind;

    pub(super) fn lock(file: &File, kind: Kind, wait: bool) -> io::Result<()> {
        let whole = whole(match kind {
            Kind::Shared => libc::F_RDLCK,
            Kind::Exclusive => libc::F_WRLCK,
        });
        let argument = match wait {
            true => FcntlArg::F_OFD_SETLKW(&whole),
            false => FcntlArg::F_OFD_SETLK(&whole),
        };
        fcntl(file, argument)?;
        Ok(())
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK)))?;
        Ok(())
    }

    pub(super) fn is_locked_to_write(file: &File) -> io::Result<bool> {
        let mut wanted = whole(libc::F_RDLCK);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut wanted))?;
        // The system says what is in the way, or that nothing is.
        Ok(wanted.l_type != libc::F_UNLCK as libc::c_short)
    }

    /// From the beginning to wherever the end will be. Such a lock has no process.
    fn whole(kind: libc::c_int) -> libc::flock {
        libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod system {
    use std::fs::File;
    use std::io;

    use rustix::fs::{FlockOperation, fcntl_lock};

    use super::Kind;

    pub(super) fn lock(file: &File, kind: Kind, wait: bool) -> io::Result<()> {
        let operation = match (kind, wait) {
            (Kind::Shared, true) => FlockOperation::LockShared,
            (Kind::Shared, false) => FlockOperation::NonBlockingLockShared,
            (Kind::Exclusive, true) => FlockOperation::LockExclusive,
            (Kind::Exclusive, false) => FlockOperation::NonBlockingLockExclusive,
        };
        Ok(fcntl_lock(file, operation)?)
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        Ok(fcntl_lock(file, FlockOperation::Unlock)?)
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::File;
    use std::io;

    use super::Kind;

    pub(super) fn lock(file: &File, kind: Kind, wait: bool) -> io::Result<()> {
        match (kind, wait) {
            (Kind::Shared, true) => file.lock_shared(),
            (Kind::Shared, false) => file.try_lock_shared().map_err(io::Error::from),
            (Kind::Exclusive, true) => file.lock(),
            (Kind::Exclusive, false) => file.try_lock().map_err(io::Error::from),
        }
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        file.unlock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn two() -> (File, File) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(file.path());
        (open().unwrap(), open().unwrap())
    }

    #[test]
    fn one_excludes_the_other() {
        let (one, other) = two();
        lock(&one, Locking::Try).unwrap();
        lock(&one, Locking::Try).unwrap();
        lock(&other, Locking::None).unwrap();
        let error = lock(&other, Locking::Try).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        unlock(&one).unwrap();
        unlock(&one).unwrap();
        lock(&other, Locking::Try).unwrap();
        drop(other);
        lock(&one, Locking::Try).unwrap();
    }

    #[test]
    fn readers_exclude_only_writers() {
        let (one, other) = two();
        lock_to_read(&one, Locking::Try).unwrap();
        lock_to_read(&other, Locking::Try).unwrap();
        let error = lock(&other, Locking::Try).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        unlock(&one).unwrap();
        lock(&other, Locking::Try).unwrap();
        let begin = Instant::now();
        let error = lock_to_read(&one, Locking::Briefly).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= BRIEFLY);
        let thread = std::thread::spawn(move || lock_to_read(&one, Locking::Briefly));
        unlock(&other).unwrap();
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn threads_wait_for_each_other() {
        let (one, other) = two();
        let (report, reported) = mpsc::channel();
        lock(&one, Locking::Wait).unwrap();
        let thread = std::thread::spawn(move || {
            lock(&other, Locking::Wait).unwrap();
            report.send(()).unwrap();
        });
        assert!(reported.try_recv().is_err());
        unlock(&one).unwrap();
        reported.recv().unwrap();
        thread.join().unwrap();
    }

    /// rrdtool's kind, which the same process may take beside that of an open file.
    #[cfg(target_os = "linux")]
    #[test]
    fn locks_of_processes_are_seen() {
        use nix::fcntl::{FcntlArg, fcntl};
        use nix::libc;

        let (one, other) = two();
        let classic = |kind: i32| {
            let whole = libc::flock {
                l_type: kind as libc::c_short,
                l_whence: libc::SEEK_SET as libc::c_short,
                l_start: 0,
                l_len: 0,
                l_pid: 0,
            };
            fcntl(&one, FcntlArg::F_SETLK(&whole))
        };
        classic(libc::F_WRLCK).unwrap();
        let error = lock(&other, Locking::Try).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        classic(libc::F_UNLCK).unwrap();
        lock(&other, Locking::Try).unwrap();
        assert!(classic(libc::F_WRLCK).is_err());
    }
}
