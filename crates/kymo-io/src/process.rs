//! What a process may have and has used.

use std::time::Duration;

/// A process, by which a child that came of a fork knows that it is another one: it has the memory of its parent, but not the
/// threads, and maps the same files.
///
/// On Linux and Android it knows; elsewhere each process takes itself for its parent. A child that was made by
/// the bare system call, past the C library, does so everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    forks: usize,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Process {
    /// The calling process.
    pub fn this() -> Self {
        Self {
            forks: crate::forks::watch(),
        }
    }

    /// Whether it is the calling process. This costs no more than to load a number.
    #[inline]
    pub fn is_this(self) -> bool {
        self.forks == crate::forks::count()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Process {
    /// The calling process.
    pub fn this() -> Self {
        Self { forks: 0 }
    }

    /// Whether it is the calling process, as far as that is known.
    #[inline]
    pub fn is_this(self) -> bool {
        self.forks == 0
    }
}

/// How many files this process may have open.
#[cfg(unix)]
pub fn most_open_files() -> usize {
    use nix::sys::resource::{Resource, getrlimit};

    // POSIX promises twenty.
    getrlimit(Resource::RLIMIT_NOFILE).map_or(20, |(now, _)| {
        // Its width is the system's.
        usize::try_from(now).unwrap_or(usize::MAX)
    })
}

/// How many files this process may have open.
#[cfg(not(unix))]
pub fn most_open_files() -> usize {
    // What the C library of Windows has room for.
    512
}

/// The time that this process has used processors, in user mode and within the system. Zero where
/// the system does not report it.
#[cfg(unix)]
pub fn cpu_times() -> (Duration, Duration) {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return Default::default();
    };
    let [user, system] = [usage.user_time(), usage.system_time()]
        .map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs()));
    (user, system)
}

/// The time that this process has used processors, in user mode and within the system. Zero where
/// the system does not report it.
#[cfg(not(unix))]
pub fn cpu_times() -> (Duration, Duration) {
    Default::default()
}

/// The number by which the system knows the calling thread. `None` if the system does not report it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn thread_id() -> Option<u64> {
    u64::try_from(nix::unistd::gettid().as_raw()).ok()
}

/// The number by which the system knows the calling thread. `None` if the system does not report it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn thread_id() -> Option<u64> {
    None
}

/// Nanoseconds since an arbitrary origin, by a clock that never goes back: the one of [`Instant`](std::time::Instant),
/// for those who read it all the time.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub fn monotonic_nanos() -> u64 {
    use nix::time::{ClockId, clock_gettime};

    // It is there on every Linux.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| {
        // Their widths are the system's.
        #[allow(clippy::useless_conversion, reason = "they are narrower elsewhere")]
        let (seconds, nanos) = (i64::from(now.tv_sec()), i64::from(now.tv_nsec()));
        (seconds as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(nanos as u64)
    })
}

/// Nanoseconds since an arbitrary origin, by a clock that never goes back: the one of [`Instant`](std::time::Instant).
#[cfg(not(any(target_os = "linux", target_os = "android", target_family = "wasm")))]
pub fn monotonic_nanos() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;

    static ZERO: OnceLock<Instant> = OnceLock::new();
    let since = ZERO.get_or_init(Instant::now).elapsed();
    since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code, reason = "there is no safe fork")]
    fn a_child_is_another_process() {
        let process = Process::this();
        assert!(process.is_this());
        // SAFETY: the child does nothing but load a number and end.
        match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Child => {
                let code = i32::from(process.is_this());
                // SAFETY: it ends the child at once.
                unsafe { nix::libc::_exit(code) }
            }
            nix::unistd::ForkResult::Parent { child } => {
                let ended = nix::sys::wait::waitpid(child, None).unwrap();
                assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(child, 0));
            }
        }
        assert!(process.is_this());
    }
}
