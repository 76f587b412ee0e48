//! Files as C structs: `rrd_open` and what goes with it. A file of this machine is mapped, so that programs
//! may change it; any other is shown as one of this machine, to be read.
//!
//! # Safety
//!
//! Of all: an `rrd_file_t` is one of `rrd_open` that was not closed, an `rrd_t` one that was initialised.

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, slice_from_raw_parts_mut};

use kymo_io::path::{path, shown};
use kymo_io::{Access, Bytes, Locking, content, lock, reason};
use kymo_machine::Machine;
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Form, Source};
use kymo_rrdtool::Failure;

use crate::boundary::{allocate, guard, needed, status};

/// `unival`: a count or a number, of the same 8 bytes.
type Slots = [f64; 10];

/// `stat_head_t`.
#[repr(C)]
struct StatHead {
    cookie: [u8; 4],
    version: [u8; 5],
    float_cookie: f64,
    sources: c_ulong,
    archives: c_ulong,
    step: c_ulong,
    slots: Slots,
}

/// `ds_def_t`.
#[repr(C)]
struct SourceDefinition {
    name: [u8; 20],
    kind: [u8; 20],
    slots: Slots,
}

/// `rra_def_t`.
#[repr(C)]
struct ArchiveDefinition {
    function: [u8; 20],
    rows: c_ulong,
    points: c_ulong,
    slots: Slots,
}

/// `live_head_t`.
#[repr(C)]
struct LiveHead {
    last_update: libc::time_t,
    micros: c_long,
}

/// `pdp_prep_t`.
#[repr(C)]
struct SourceState {
    last_reading: [u8; 30],
    slots: Slots,
}

/// `rrd_t`.
#[repr(C)]
pub(crate) struct Rrd {
    head: *mut StatHead,
    sources: *mut SourceDefinition,
    archives: *mut ArchiveDefinition,
    live: *mut LiveHead,
    /// For files before version 3, whose `live` is a copy.
    legacy_last_update: *mut libc::time_t,
    source_states: *mut SourceState,
    archive_states: *mut Slots,
    pointers: *mut c_ulong,
    values: *mut f64,
    mapped: *mut c_void,
    mapped_size: c_long,
}

/// `rrd_file_t`.
#[repr(C)]
pub(crate) struct RrdFile {
    header_length: usize,
    length: usize,
    position: usize,
    /// A [`Held`].
    private: *mut c_void,
    rrd: *mut Rrd,
}

/// What is behind an `rrd_file_t`.
struct Held {
    file: File,
    begin: *mut u8,
    length: usize,
    /// The file as one of this machine, if it is none.
    image: Option<Vec<u8>>,
    writable: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.image.is_none() {
            // SAFETY: it was mapped so, and is not used after this.
            unsafe { libc::munmap(self.begin.cast(), self.length) };
        }
    }
}

/// Flags of `rrd_open`.
const WRITE: c_uint = 1 << 1;
const CREATE: c_uint = 1 << 2;

/// `void rrd_init(rrd_t *rrd)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_init(rrd: *mut Rrd) {
    if !rrd.is_null() {
        // SAFETY: it may be written to, says the caller.
        unsafe { rrd.write(EMPTY) };
    }
}

const EMPTY: Rrd = Rrd {
    head: null_mut(),
    sources: null_mut(),
    archives: null_mut(),
    live: null_mut(),
    legacy_last_update: null_mut(),
    source_states: null_mut(),
    archive_states: null_mut(),
    pointers: null_mut(),
    values: null_mut(),
    mapped: null_mut(),
    mapped_size: 0,
};

/// `void rrd_free(rrd_t *rrd)`: what it refers to belongs to the file, which [`rrd_close`] ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_free(rrd: *mut Rrd) {
    // SAFETY: the caller's.
    let Some(rrd) = (unsafe { rrd.as_mut() }) else {
        return;
    };
    if !rrd.legacy_last_update.is_null() {
        // SAFETY: of such files it is of `malloc`.
        unsafe { libc::free(rrd.live.cast()) };
    }
    *rrd = EMPTY;
}

/// `rrd_file_t *rrd_open(const char *const file_name, rrd_t *rrd, unsigned flags)`. Files are not created.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_open(name: *const c_char, rrd: *mut Rrd, flags: c_uint) -> *mut RrdFile {
    guard(null_mut(), || {
        // SAFETY: the caller's.
        let name = unsafe { needed(name, "the name of the file") }?;
        if flags & CREATE != 0 {
            let message = "rrd_open creates no files: rrd_create_r2 does";
            return Err(Failure::new(message));
        }
        let held = hold(name, flags & WRITE != 0)?;
        let mut parts = Parts {
            begin: held.begin,
            length: held.length,
            at: 0,
        };
        // SAFETY: the bytes stay as long as `held` does.
        let shown = unsafe { parts.rrd() }.ok_or_else(|| too_small(name))?;
        let length = held.length;
        let file: *mut RrdFile = allocate(size_of::<RrdFile>()).cast();
        // SAFETY: there is room for it, aligned as all memory of `malloc`; `rrd` may be written to,
        // says the caller.
        unsafe {
            file.write(RrdFile {
                header_length: parts.at,
                length,
                position: parts.at,
                private: Box::into_raw(Box::new(held)).cast(),
                rrd,
            });
            if !rrd.is_null() {
                rrd.write(shown);
            } else if !shown.legacy_last_update.is_null() {
                libc::free(shown.live.cast());
            }
        }
        Ok(file)
    })
}

fn too_small(name: &[u8]) -> Failure {
    Failure::new(format!("'{}' is too small", shown(name)))
}

/// Opens a file and maps it, or makes one of this machine of it.
fn hold(name: &[u8], writable: bool) -> Result<Held, Failure> {
    let reported =
        |error: &io::Error| Failure::new(format!("opening '{}': {}", shown(name), reason(error)));
    let damaged =
        |error: &dyn std::fmt::Display| Failure::new(format!("'{}': {error}", shown(name)));
    let file = OpenOptions::new()
        .read(true)
        .write(writable)
        .open(path(name));
    let file = file.map_err(|error| reported(&error))?;
    let bytes = Bytes::open(&path(name), Access::Random).map_err(|error| reported(&error))?;
    let bytes = content(bytes).map_err(|error| reported(&error))?;
    if let Some(damage) = bytes.damage {
        return Err(damaged(&damage));
    }
    let whole = Source::complete(&bytes.bytes).map_err(|error| damaged(&error))?;
    let source = Source::open(&whole, None).map_err(|error| damaged(&error))?;
    let native = Machine::native();
    let length = file.metadata().map_err(|error| reported(&error))?.len();
    let is_mapped = matches!(&source.form, Form::Native(detection) if detection.machine.same_layout(native))
        && length == whole.len() as u64;
    if !is_mapped {
        if writable {
            let message = "only a database of this machine can be opened for writing";
            return Err(damaged(&message));
        }
        let converted =
            convert(&source, Target::Native(native)).map_err(|error| damaged(&error))?;
        let mut image = converted.bytes;
        return Ok(Held {
            file,
            begin: image.as_mut_ptr(),
            length: image.len(),
            image: Some(image),
            writable,
        });
    }
    let length = usize::try_from(length).map_err(|_| too_small(name))?;
    let access = if writable {
        libc::PROT_READ | libc::PROT_WRITE
    } else {
        libc::PROT_READ
    };
    // SAFETY: the system chooses where; the file is open.
    let begin = unsafe {
        libc::mmap(
            null_mut(),
            length,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if begin == libc::MAP_FAILED {
        return Err(reported(&io::Error::last_os_error()));
    }
    Ok(Held {
        file,
        begin: begin.cast(),
        length,
        image: None,
        writable,
    })
}

/// Takes structs off the beginning of a file.
struct Parts {
    begin: *mut u8,
    length: usize,
    at: usize,
}

impl Parts {
    /// Takes `count` values of a struct; `None` if the file ends before.
    fn take<T>(&mut self, count: usize) -> Option<*mut T> {
        let end = size_of::<T>().checked_mul(count)?.checked_add(self.at)?;
        if end > self.length {
            return None;
        }
        // SAFETY: the place is within the file.
        let taken = unsafe { self.begin.add(self.at) };
        self.at = end;
        Some(taken.cast())
    }

    /// All parts of the header.
    ///
    /// # Safety
    ///
    /// There are `length` bytes, of a database of this machine.
    unsafe fn rrd(&mut self) -> Option<Rrd> {
        let mut rrd = EMPTY;
        rrd.head = self.take(1)?;
        // SAFETY: it is within the file, at its beginning, and any bytes are one.
        let head = unsafe { &*rrd.head };
        let (sources, archives) = (head.sources as usize, head.archives as usize);
        rrd.sources = self.take(sources)?;
        rrd.archives = self.take(archives)?;
        if head.version < *b"0003\0" {
            rrd.legacy_last_update = self.take(1)?;
        } else {
            rrd.live = self.take(1)?;
        }
        rrd.source_states = self.take(sources)?;
        rrd.archive_states = self.take(sources.checked_mul(archives)?)?;
        rrd.pointers = self.take(archives)?;
        rrd.mapped = self.begin.cast();
        rrd.mapped_size = self.length as c_long;
        // SAFETY: the values begin within the file, or where it ends.
        rrd.values = unsafe { self.begin.add(self.at) }.cast();
        if !rrd.legacy_last_update.is_null() {
            let live: *mut LiveHead = allocate(size_of::<LiveHead>()).cast();
            // SAFETY: both are there; the new one has room for the time, and zeros behind it.
            unsafe { (*live).last_update = rrd.legacy_last_update.read_unaligned() };
            rrd.live = live;
        }
        Some(rrd)
    }
}

/// The parts of an open file.
///
/// # Safety
///
/// It is one of `rrd_open`, or NULL.
unsafe fn parts<'a>(file: *mut RrdFile) -> Result<(&'a mut RrdFile, &'a mut Held), Failure> {
    // SAFETY: the caller's.
    unsafe {
        let file = file
            .as_mut()
            .ok_or_else(|| Failure::new("the file is missing"))?;
        let held = file.private.cast();
        Ok((file, &mut *held))
    }
}

/// `int rrd_close(rrd_file_t *file)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_close(file: *mut RrdFile) -> c_int {
    status(|| {
        // SAFETY: the caller's; neither is used again.
        unsafe {
            let (open, _) = parts(file)?;
            drop(Box::from_raw(open.private.cast::<Held>()));
            libc::free(file.cast());
        }
        Ok(())
    })
}

/// Returns at most `count` bytes from the position on.
fn behind(file: &RrdFile, held: &Held, count: usize) -> *mut [u8] {
    let begin = file.position.min(held.length);
    let count = count.min(held.length - begin);
    // SAFETY: the place is within the file, or where it ends.
    slice_from_raw_parts_mut(unsafe { held.begin.add(begin) }, count)
}

/// `ssize_t rrd_read(rrd_file_t *file, void *buffer, size_t count)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_read(file: *mut RrdFile, buffer: *mut c_void, count: usize) -> isize {
    guard(-1, || {
        // SAFETY: the caller's; the buffer has room for `count` bytes.
        unsafe {
            let (file, held) = parts(file)?;
            let bytes = behind(file, held, count);
            buffer
                .cast::<u8>()
                .copy_from(bytes.cast_const().cast(), bytes.len());
            file.position += bytes.len();
            Ok(bytes.len() as isize)
        }
    })
}

/// `ssize_t rrd_write(rrd_file_t *file, const void *buffer, size_t count)`: the file does not grow.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_write(file: *mut RrdFile, buffer: *const c_void, count: usize) -> isize {
    guard(-1, || {
        // SAFETY: the caller's; the buffer has `count` bytes.
        unsafe {
            let (file, held) = parts(file)?;
            let bytes = behind(file, held, count);
            if !held.writable || bytes.len() < count {
                let message =
                    "attempting to write beyond the end of the file, or to one that is only read";
                return Err(Failure::new(message));
            }
            bytes.cast::<u8>().copy_from(buffer.cast(), count);
            file.position += count;
            Ok(count as isize)
        }
    })
}

/// `off_t rrd_seek(rrd_file_t *file, off_t offset, int whence)`: 0 or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_seek(
    file: *mut RrdFile,
    offset: libc::off_t,
    whence: c_int,
) -> libc::off_t {
    guard(-1, || {
        // SAFETY: the caller's.
        let (file, held) = unsafe { parts(file) }?;
        let from = match whence {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => file.position,
            _ => held.length,
        };
        let place = isize::try_from(offset)
            .ok()
            .and_then(|offset| from.checked_add_signed(offset));
        file.position = place.ok_or_else(|| Failure::new("a place before the file"))?;
        Ok(0)
    })
}

/// `off_t rrd_tell(rrd_file_t *file)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_tell(file: *mut RrdFile) -> libc::off_t {
    // SAFETY: the caller's.
    guard(-1, || Ok(unsafe { parts(file) }?.0.position as libc::off_t))
}

/// `void rrd_flush(rrd_file_t *file)`: what was written is on its way to the disk.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_flush(file: *mut RrdFile) {
    guard((), || {
        // SAFETY: the caller's.
        let (_, held) = unsafe { parts(file) }?;
        if held.writable {
            // SAFETY: it is mapped so.
            unsafe { libc::msync(held.begin.cast(), held.length, libc::MS_ASYNC) };
        }
        Ok(())
    });
}

/// `int rrd_lock(rrd_file_t *file)`: 0, or -1 where another program writes it. It is unlocked when it is
/// closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_lock(file: *mut RrdFile) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        let (_, held) = unsafe { parts(file) }?;
        let locked = lock(&held.file, Locking::Try);
        locked.map_err(|error| Failure::new(format!("could not lock RRD: {}", reason(&error))))
    })
}

/// `void rrd_dontneed(rrd_file_t *file, rrd_t *rrd)`: a hint that systems need not be given.
#[unsafe(no_mangle)]
extern "C" fn rrd_dontneed(_file: *mut RrdFile, _rrd: *mut Rrd) {}
