//! Mapped files that others truncate while they are read: what is gone reads as zeros, and the file is remembered.
//!
//! # Why it is sound
//!
//! Reading a page of a mapping that the file no longer has raises SIGBUS in the thread that reads. [`survive_truncation`]
//! installs a handler for it, which puts zeros in place of that page and of all behind it in the mapping; then the read
//! is repeated and gets them. [`map`](crate::Bytes) has explained that bytes may change under a reader.
//!
//! * The handler replaces pages only within mappings that are registered here. They are read-only and private, and are
//!   registered from before their bytes are first read until after they are last read, by those that own them. So no
//!   memory of others is touched, and what was replaced is unmapped with the rest of the mapping.
//! * Mappings that are written are never registered: bytes written to a page that is gone must not get lost silently.
//! * The handler uses atomic numbers, `mmap`, `sigaction` and `errno`, which may be used in handlers of signals; it
//!   takes no lock and no memory. What it reads are statics, and the action of before, which is never freed.
//! * The rest of the page in which a file ends raises nothing, and reads as zeros: files that have become shorter are
//!   found by their length, when they were read. [`is_cut_off`] asks about a part of a file, so that nothing is made of
//!   such zeros.
//! * A SIGBUS for any other reason gets the action that was there before: it is restored, and the instruction repeated.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use std::sync::{Mutex, Once, PoisonError};

use nix::libc;

use crate::file_id;

/// As many mappings as Linux allows a process by default.
const MOST: usize = 1 << 16;

/// The addresses of a mapping.
struct Place {
    /// Zero if the place is free.
    begin: AtomicUsize,
    length: AtomicUsize,
    /// The first address that was replaced, behind all others if none was; set when a mapping is registered.
    gone: AtomicUsize,
    is_truncated: AtomicBool,
}

/// All zeros, so that they take no place in the program's file, nor memory until they are used.
static PLACES: [Place; MOST] = [const {
    Place {
        begin: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        gone: AtomicUsize::new(0),
        is_truncated: AtomicBool::new(false),
    }
}; MOST];

/// Places below this one may be in use.
static USED: AtomicUsize = AtomicUsize::new(0);
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
/// Whether pages of any mapping were replaced.
static WAS_TRUNCATED: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// What SIGBUS did before.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// What the handler does not use.
struct Registry {
    free: Vec<usize>,
    /// The files of places in use.
    files: Vec<Option<MappedFile>>,
    /// Files that were truncated whose mappings are gone.
    truncated: BTreeSet<PathBuf>,
}

struct MappedFile {
    path: PathBuf,
    id: Option<(u64, u64)>,
    is_reported: bool,
}

impl MappedFile {
    fn of(file: BorrowedFd<'_>) -> Option<Self> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let id = file_id(&std::fs::metadata(&path).ok()?);
        Some(Self {
            path,
            id,
            is_reported: false,
        })
    }

    /// Whether the file is still there, and shorter than what was mapped.
    fn is_shorter(&self, length: usize) -> bool {
        let metadata = std::fs::metadata(&self.path);
        metadata.is_ok_and(|now| file_id(&now) == self.id && now.len() < length as u64)
    }
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    free: Vec::new(),
    files: Vec::new(),
    truncated: BTreeSet::new(),
});

/// A mapping that is registered as long as there is this value.
#[derive(Debug)]
pub(crate) struct Registered(usize);

impl Registered {
    /// Registers a mapping of a file, from before it is read until after it is; `None` if truncated files end the
    /// process, or there are too many mappings.
    pub(crate) fn new(bytes: &[u8], file: BorrowedFd<'_>) -> Option<Self> {
        if !IS_INSTALLED.load(Relaxed) {
            return None;
        }
        let file = MappedFile::of(file);
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match registry.free.pop() {
            Some(place) => place,
            None if registry.files.len() < MOST => {
                registry.files.push(None);
                registry.files.len() - 1
            }
            None => return None,
        };
        registry.files[place] = file;
        let slot = &PLACES[place];
        slot.is_truncated.store(false, Relaxed);
        slot.gone.store(usize::MAX, Relaxed);
        slot.length.store(bytes.len(), Relaxed);
        slot.begin.store(bytes.as_ptr() as usize, Release);
        USED.fetch_max(place + 1, Release);
        Some(Self(place))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &PLACES[self.0];
        slot.begin.store(0, Release);
        let lost = slot.is_truncated.load(Acquire);
        let file = registry.files[self.0].take();
        let length = slot.length.load(Relaxed);
        if let Some(file) = file.filter(|file| lost || !file.is_reported && file.is_shorter(length))
        {
            registry.truncated.insert(file.path);
        }
        registry.free.push(self.0);
    }
}

/// Lets this process survive that others truncate files which [`Bytes`](crate::Bytes) has mapped from now on: what is
/// gone reads as zeros, and [`take_truncated`] names the file. Without it, and on systems other than Linux, the process
/// ends (SIGBUS). It is for programs, since it changes what a signal does.
pub fn survive_truncation() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(install);
}

fn install() {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both structures are valid; zeros are a valid `sigaction`. The documentation of this module says why the
    // handler may be one.
    let is_done = unsafe {
        PAGE.store(
            usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(0),
            Relaxed,
        );
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handle as *const () as usize;
        // Other threads' stacks may be short, as that of one that has overflowed is.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) == 0 && {
            let before = Box::into_raw(Box::new(before.assume_init()));
            BEFORE.store(before, Release);
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) == 0
        }
    };
    IS_INSTALLED.store(is_done, Release);
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the system gives a handler of this kind the facts of the signal; of SIGBUS, an address is among them. The
    // documentation of this module says why the pages may be replaced.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let address = (*info).si_addr() as usize;
        let is_of_file = (*info).si_code == libc::BUS_ADRERR;
        if !(is_of_file && replace(address)) {
            libc::sigaction(signal, BEFORE.load(Acquire), std::ptr::null_mut());
        }
        *errno = before;
    }
}

/// Puts zeros in place of a page that is gone, and all behind it in its mapping. Returns whether it is of one that is
/// registered.
unsafe fn replace(address: usize) -> bool {
    let page = PAGE.load(Relaxed);
    for slot in PLACES.iter().take(USED.load(Acquire)) {
        let begin = slot.begin.load(Acquire);
        let end = begin.saturating_add(slot.length.load(Relaxed));
        // The last page is mapped as a whole.
        if begin == 0 || address < begin || address >= end.next_multiple_of(page.max(1)) {
            continue;
        }
        let from = address - address % page.max(1);
        // SAFETY: these are pages of a mapping that is registered; see the documentation of this module.
        let mapped = unsafe {
            libc::mmap(
                from as *mut libc::c_void,
                end - from,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        slot.gone.fetch_min(from, Release);
        slot.is_truncated.store(true, Release);
        WAS_TRUNCATED.store(true, Release);
        return mapped != libc::MAP_FAILED;
    }
    false
}

/// The files that were found truncated while they were read, or of which a part could not be read, since this was last
/// asked, sorted.
pub fn take_truncated() -> Vec<PathBuf> {
    if !IS_INSTALLED.load(Relaxed) {
        return Vec::new();
    }
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = std::mem::take(&mut registry.truncated);
    for (slot, file) in PLACES.iter().zip(&mut registry.files) {
        let Some(file) = file else { continue };
        let lost = slot.is_truncated.swap(false, Acquire);
        if lost || !file.is_reported && file.is_shorter(slot.length.load(Relaxed)) {
            file.is_reported = true;
            found.insert(file.path.clone());
        }
    }
    found.into_iter().collect()
}

/// Whether some of these bytes, which may be of a mapped file, were cut off from the file: then they were read as zeros.
pub fn is_cut_off(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last().filter(|_| IS_INSTALLED.load(Relaxed)) else {
        return false;
    };
    // If the file ends in a page before that of the last byte, looking at it finds that out. Else the last byte is zero,
    // and the length of the file shows it.
    // SAFETY: it is a valid reference; the byte has to be read, whatever the compiler knows of it.
    let last = unsafe { std::ptr::from_ref(last).read_volatile() };
    if last != 0 && !WAS_TRUNCATED.load(Acquire) {
        return false;
    }
    let address = bytes.as_ptr() as usize;
    let end = address + bytes.len();
    let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut places = PLACES.iter().zip(&registry.files);
    let found = places.find_map(|(slot, file)| {
        let begin = slot.begin.load(Acquire);
        let is_it = begin != 0 && begin <= address && end <= begin + slot.length.load(Relaxed);
        is_it.then_some((slot, begin, file))
    });
    found.is_some_and(|(slot, begin, file)| {
        let is_shorter = |file: &MappedFile| file.is_shorter(end - begin);
        slot.gone.load(Acquire) < end || last == 0 && file.as_ref().is_some_and(is_shorter)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::{Access, Bytes};

    #[test]
    fn what_is_gone_reads_as_zeros_and_the_file_is_named() {
        survive_truncation();
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let path = directory.join("file");
        let length = 40 << 10;
        let resize = |length: u64| {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(length).unwrap();
        };
        let named = || take_truncated().contains(&path);
        std::fs::write(&path, vec![7; length]).unwrap();
        let bytes = Bytes::open(&path, Access::Random).unwrap();
        assert_eq!((bytes[length - 1], named()), (7, false));
        assert!(!is_cut_off(&bytes));
        resize(5000);
        assert!(!is_cut_off(&bytes[..4999]) && !is_cut_off(&bytes[100..5000]));
        assert!(is_cut_off(&bytes[..5001]), "in the page that is left");
        assert!(is_cut_off(&bytes[..30 << 10]) && !is_cut_off(&bytes[..5000]));
        let expected = |at: usize| u8::from(at < 5000) * 7;
        // From the end, so that each page is found gone by itself.
        for at in (0..length).rev().step_by(512) {
            assert_eq!(bytes[at], expected(at), "{at}");
        }
        assert!(named() && !named());
        // What was replaced is unmapped with the rest, and its place used again.
        drop(bytes);
        assert!(!named());
        std::fs::write(&path, vec![3; length]).unwrap();
        let bytes = Bytes::open(&path, Access::Sequential).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 3));
        // Its end is in a page that is still there.
        resize(length as u64 - 1);
        assert!(named() && !named());
        resize(0);
        assert!(bytes.iter().all(|&byte| byte == 0));
        drop(bytes);
        assert!(named(), "it is known after the mapping is gone");
    }
}
