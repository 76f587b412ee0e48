//! What a process may have and has used.

use std::time::Duration;

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
/// the system does not tell.
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
/// the system does not tell.
#[cfg(not(unix))]
pub fn cpu_times() -> (Duration, Duration) {
    Default::default()
}
