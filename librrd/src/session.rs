//! What a call works in.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use kymo_io::Locking;
use kymo_rrdtool::{
    DaemonClient, Defaults, Failure, Kept, LocalZone, Session, locking_named, target,
};

use crate::callback;

/// The connection to a daemon, one for all threads, as librrd has it.
pub(crate) static DAEMON: Mutex<Option<DaemonClient>> = Mutex::new(None);

thread_local! {
    /// What the last call of the thread has kept.
    static KEPT: Cell<Option<Kept>> = const { Cell::new(None) };
}

/// What a call may use beside its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The daemon that the environment names.
    Daemon,
    /// Files that are there alone.
    Files,
    /// Files alone, and new ones of the form that the environment names.
    NewFiles,
}

/// Works in a session that writes to standard output.
pub(crate) fn with_session<T>(
    what: Use,
    work: impl FnOnce(&mut Session<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with_output(what, &mut Stdout, work)
}

/// Works in a session that writes there.
pub(crate) fn with_output<T>(
    what: Use,
    out: &mut dyn Write,
    work: impl FnOnce(&mut Session<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut warnings = io::sink();
    let defaults = defaults(what)?;
    let locking = variable("RRD_LOCKING").map(|it| locking_named(it.as_bytes()));
    let locking = locking.transpose()?;
    // A thread that ends has kept nothing.
    let mut kept = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    if what == Use::Daemon {
        kept.daemon = daemon().take();
    }
    let mut session = Session::resumed(out, &mut warnings, defaults, kept);
    session.zone = LocalZone::of_environment();
    session.fetcher = Some(&callback::fetch);
    session.locking = locking.unwrap_or(session.locking);
    let done = work(&mut session);
    let mut kept = session.keep();
    if let Some(client) = kept.daemon.take() {
        daemon().get_or_insert(client);
    }
    let _ = KEPT.try_with(|place| place.set(Some(kept)));
    done
}

/// Has calls that only read neither wait for writers nor hold them up: rrdtool's do neither.
pub(crate) fn reads(session: &mut Session<'_>) {
    if session.locking == Locking::Try {
        session.locking = Locking::None;
    }
}

/// The connection to a daemon.
pub(crate) fn daemon() -> std::sync::MutexGuard<'static, Option<DaemonClient>> {
    DAEMON.lock().unwrap_or_else(PoisonError::into_inner)
}

fn defaults(what: Use) -> Result<Defaults, Failure> {
    let mut defaults = Defaults::default();
    if what == Use::Files {
        return Ok(defaults);
    }
    if let Some(format) = variable("KYMO_RRD_FORMAT") {
        defaults.format = target(format.as_bytes())?;
    }
    if what == Use::Daemon {
        defaults.daemon = variable("RRDCACHED_ADDRESS");
        defaults.strip_path = variable("RRDCACHED_STRIPPATH");
    }
    Ok(defaults)
}

/// A variable of the environment that is not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

unsafe extern "C" {
    #[link_name = "stdout"]
    static mut STDOUT: *mut libc::FILE;
}

/// The C library's standard output, which the program writes to as well.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the C library sets it before the program begins; it is not changed here.
        let mut stream = unsafe { Stream::new(STDOUT) };
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream of the C library.
pub(crate) struct Stream(*mut libc::FILE);

impl Stream {
    /// A stream.
    ///
    /// # Safety
    ///
    /// The stream is open for writing as long as this is used.
    pub(crate) unsafe fn new(stream: *mut libc::FILE) -> Self {
        Self(stream)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the stream is open, and the length is that of the bytes.
        let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.0) };
        match written {
            0 if !bytes.is_empty() => Err(io::Error::last_os_error()),
            written => Ok(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open.
        let flushed: c_int = unsafe { libc::fflush(self.0) };
        match flushed {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
