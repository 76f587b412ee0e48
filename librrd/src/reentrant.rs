//! Functions ending in `_r`, which know nothing of command lines. Each may be called by any number of threads
//! at the same time. They ask no daemon.
//!
//! # Safety
//!
//! For all functions: strings end with zero, and lists have the given length; pointers to results are NULL or may
//! be written to.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::ptr::null_mut;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use kymo_rrdtool::answers;
use kymo_rrdtool::times::EARLIEST;
use kymo_rrdtool::{Failure, run};

use crate::answers::{LastUpdateTo, RowsTo};
use crate::boundary::{ended_list, guard, list, needed, status, string, text};
use crate::facts::{self, Info};
use crate::session::{Use, reads, with_output, with_session};

/// Turns of threads that update the same file: a lock of the file would refuse the second one.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Waits until no other thread updates a file of this name.
fn turn(file: &[u8]) -> MutexGuard<'static, ()> {
    let turn = HASHER.hash_one(file) as usize % TURNS.len();
    TURNS[turn].lock().unwrap_or_else(PoisonError::into_inner)
}

/// What defines a new database.
pub(crate) struct Creation<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) step: c_ulong,
    pub(crate) start: libc::time_t,
    pub(crate) no_overwrite: bool,
    pub(crate) sources: Vec<&'a [u8]>,
    pub(crate) template: Option<&'a [u8]>,
    pub(crate) definitions: Vec<&'a [u8]>,
}

impl Creation<'_> {
    /// The words of `create` behind its name.
    pub(crate) fn words(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        let mut add = |option: &[u8], value: &[u8]| words.extend([option.to_vec(), value.to_vec()]);
        // -1 is the usual start, and 0 the usual step.
        if self.start != -1 {
            let start = self.start as i64;
            if start < EARLIEST {
                let message = "the first entry to the RRD should be after 1980";
                return Err(Failure::new(message));
            }
            add(b"-b", start.to_string().as_bytes());
        }
        if self.step != 0 {
            add(b"-s", self.step.to_string().as_bytes());
        }
        self.sources.iter().for_each(|source| add(b"-r", source));
        if let Some(template) = self.template {
            add(b"-t", template);
        }
        if self.no_overwrite {
            words.push(b"-O".to_vec());
        }
        words.push(b"--".to_vec());
        words.push(self.file.to_vec());
        words.extend(self.definitions.iter().map(|word| word.to_vec()));
        Ok(words)
    }

    fn create(&self) -> Result<(), Failure> {
        let words = self.words()?;
        let mut line = vec![b"create".as_slice()];
        line.extend(words.iter().map(Vec::as_slice));
        let _turn = turn(self.file);
        with_session(Use::NewFiles, |session| {
            run(session, &line).unwrap_or(Ok(()))
        })
    }
}

/// `int rrd_create_r(const char *filename, unsigned long pdp_step, time_t last_up, int argc, const char
/// **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_create_r(
    file: *const c_char,
    step: c_ulong,
    start: libc::time_t,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let (sources, template) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the caller's; there may be no sources and no template.
    unsafe { rrd_create_r2(file, step, start, 0, sources, template, argc, argv) }
}

/// `int rrd_create_r2(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite, const
/// char **sources, const char *template, int argc, const char **argv)`: `sources` ends with NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_create_r2(
    file: *const c_char,
    step: c_ulong,
    start: libc::time_t,
    no_overwrite: c_int,
    sources: *const *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        let creation = unsafe {
            Creation {
                file: needed(file, "the name of the file")?,
                step,
                start,
                no_overwrite: no_overwrite != 0,
                sources: ended_list(sources),
                template: text(template),
                definitions: list(argc, argv),
            }
        };
        creation.create()
    })
}

/// `int rrd_update_r(const char *filename, const char *template, int argc, const char **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_update_r(
    file: *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { rrd_updatex_r(file, template, 0, argc, argv) }
}

/// `int rrd_updatex_r(const char *filename, const char *template, int extra_flags, int argc, const char
/// **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_updatex_r(
    file: *const c_char,
    template: *const c_char,
    flags: c_int,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    /// `RRD_SKIP_PAST_UPDATES`.
    const SKIP_PAST: c_int = 1;
    status(|| {
        // SAFETY: the caller's.
        let (readings, file, template) = unsafe {
            let file = needed(file, "the name of the file")?;
            (list(argc, argv), file, text(template))
        };
        let update = answers::Update {
            file,
            template,
            skip_past: flags & SKIP_PAST != 0,
            readings: &readings,
        };
        let _turn = turn(file);
        with_session(Use::Files, |session| answers::update(session, &update))
    })
}

/// `int rrd_update_v_r(const char *filename, const char *template, int argc, const char **argv, rrd_info_t
/// *pcdp_summary)`: the rows that were written come behind the last fact of the list.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_update_v_r(
    file: *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
    summary: *mut Info,
) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        let (readings, file, template) = unsafe {
            let file = needed(file, "the name of the file")?;
            (list(argc, argv), file, text(template))
        };
        let mut words: Vec<&[u8]> = Vec::new();
        if let Some(template) = template {
            words.extend([b"-t".as_slice(), template]);
        }
        words.extend([b"--".as_slice(), file]);
        words.extend(readings);
        let _turn = turn(file);
        let updated = with_session(Use::Files, |session| answers::updatev(session, &words));
        let (facts, done) = updated?;
        if !summary.is_null() {
            // The status is the function's own.
            let rows = facts.get(1..).unwrap_or_default();
            // SAFETY: it is a list, says the caller.
            unsafe { facts::append(summary, rows) };
        }
        done
    })
}

/// `int rrd_fetch_r(const char *filename, const char *cf, time_t *start, time_t *end, unsigned long *step,
/// unsigned long *ds_cnt, char ***ds_namv, rrd_value_t **data)`: the times and the step say what is wanted,
/// and then what was found.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_fetch_r(
    file: *const c_char,
    function: *const c_char,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    values: *mut *mut f64,
) -> c_int {
    status(|| {
        // SAFETY: the caller's; what is wanted is where the result goes.
        let (file, function, wanted) = unsafe {
            let file = needed(file, "the name of the file")?;
            let function = needed(function, "the consolidation function")?;
            let wanted = (start.as_ref(), end.as_ref(), step.as_ref());
            (file, function, wanted)
        };
        let (Some(&from), Some(&until), Some(&resolution)) = wanted else {
            return Err(Failure::new("the times are missing"));
        };
        let fetched = with_session(Use::Files, |session| {
            reads(session);
            answers::fetch_rows(
                session,
                &answers::Wanted {
                    name: file,
                    function: crate::numbers::function_name(function)?,
                    start: from as i64,
                    end: until as i64,
                    step: (resolution as u64).max(1),
                },
            )
        })?;
        let to = RowsTo {
            start,
            end,
            step,
            count,
            names,
            values,
        };
        // SAFETY: the caller's.
        unsafe { to.give(&fetched) };
        Ok(())
    })
}

/// `rrd_info_t *rrd_info_r(const char *filename)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_info_r(file: *const c_char) -> *mut Info {
    guard(null_mut(), || {
        // SAFETY: the caller's.
        let facts = unsafe { read(file, &[], answers::info) }?;
        Ok(facts::list(&facts))
    })
}

/// Reads what a command without a daemon reports about a file.
///
/// # Safety
///
/// `file` is NULL or a string.
unsafe fn read<T>(
    file: *const c_char,
    options: &[&[u8]],
    work: impl FnOnce(&mut kymo_rrdtool::Session<'_>, &[&[u8]]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // SAFETY: the caller's.
    let file = unsafe { needed(file, "the name of the file") }?;
    let words = [options, &[b"--".as_slice(), file]].concat();
    with_session(Use::Files, |session| {
        reads(session);
        work(session, &words)
    })
}

/// `time_t rrd_last_r(const char *filename)`: -1 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_last_r(file: *const c_char) -> libc::time_t {
    guard(-1, || {
        // SAFETY: the caller's.
        let (time, _) = unsafe { read(file, &[], answers::last) }?;
        Ok(time as libc::time_t)
    })
}

/// `time_t rrd_first_r(const char *filename, const int rraindex)`: -1 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_first_r(file: *const c_char, index: c_int) -> libc::time_t {
    guard(-1, || {
        let option = format!("--rraindex={index}");
        // SAFETY: the caller's.
        let (time, _) = unsafe { read(file, &[option.as_bytes()], answers::first) }?;
        Ok(time as libc::time_t)
    })
}

/// `int rrd_lastupdate_r(const char *filename, time_t *last_update, unsigned long *ds_count, char ***ds_names,
/// char ***last_ds)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_lastupdate_r(
    file: *const c_char,
    time: *mut libc::time_t,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    readings: *mut *mut *mut c_char,
) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        unsafe {
            let last = read(file, &[], answers::lastupdate)?;
            let to = LastUpdateTo {
                time,
                count,
                names,
                readings,
            };
            to.give(&last);
        }
        Ok(())
    })
}

/// `char *rrd_list_r(int recursive, char *dirname)`: names, a line each.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_list_r(recursive: c_int, directory: *const c_char) -> *mut c_char {
    guard(null_mut(), || {
        let options: &[&[u8]] = if recursive != 0 { &[b"-r"] } else { &[] };
        // SAFETY: the caller's.
        let names = unsafe { read(directory, options, answers::list) }?;
        Ok(string(&names))
    })
}

/// What comes before the data of a dump.
fn header(number: c_int) -> &'static [u8] {
    match number {
        1 => b"dtd",
        2 => b"xsd",
        _ => b"none",
    }
}

/// `int rrd_dump_r(const char *filename, char *outname)`: without a header.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_dump_r(file: *const c_char, output: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { rrd_dump_opt_r(file, output, 0) }
}

/// `int rrd_dump_opt_r(const char *filename, char *outname, int header)`: to standard output where no name is
/// given. The header is none (0), that with a DTD (1) or with a schema (2).
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_dump_opt_r(
    file: *const c_char,
    output: *const c_char,
    kind: c_int,
) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        let (file, output) = unsafe { (needed(file, "the name of the file")?, text(output)) };
        let mut words = vec![b"dump".as_slice(), b"-h", header(kind), b"--", file];
        words.extend(output);
        with_session(Use::Files, |session| {
            reads(session);
            run(session, &words).unwrap_or(Ok(()))
        })
    })
}

/// `rrd_output_callback_t`: takes some bytes, and returns how many it took.
type Output = unsafe extern "C" fn(*const c_void, usize, *mut c_void) -> usize;

/// `int rrd_dump_cb_r(const char *filename, int header, rrd_output_callback_t cb, void *user)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_dump_cb_r(
    file: *const c_char,
    kind: c_int,
    callback: Option<Output>,
    user: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        let file = unsafe { needed(file, "the name of the file") }?;
        let callback = callback.ok_or_else(|| Failure::new("the callback is missing"))?;
        let words = [b"dump".as_slice(), b"-h", header(kind), b"--", file];
        let mut out = ToCallback { callback, user };
        with_output(Use::Files, &mut out, |session| {
            reads(session);
            run(session, &words).unwrap_or(Ok(()))
        })
    })
}

/// Output that a callback takes.
struct ToCallback {
    callback: Output,
    user: *mut c_void,
}

impl Write for ToCallback {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the length is that of the bytes; the callback knows what `user` is.
        let taken = unsafe { (self.callback)(bytes.as_ptr().cast(), bytes.len(), self.user) };
        match taken == bytes.len() {
            true => Ok(taken),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `int rrd_mkdir_p(const char *pathname, mode_t mode)`: makes a directory and those above it; 0 or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_mkdir_p(path: *const c_char, mode: c_uint) -> c_int {
    // SAFETY: the caller's.
    let Some(path) = unsafe { text(path) }.filter(|path| !path.is_empty()) else {
        return -1;
    };
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(kymo_io::path::path(path));
    if made.is_ok() { 0 } else { -1 }
}
