//! Functions that take a command line: `int argc, char **argv`, of which the first word is the name of the
//! command.
//!
//! # Safety
//!
//! Of all: `argv` has `argc` strings; pointers to results are NULL or may be written to.

use std::ffi::{c_char, c_int, c_ulong};
use std::io::Write;
use std::ptr::null_mut;

use kymo_rrdtool::answers::{self, Fact, FactValue};
use kymo_rrdtool::{Failure, Session, run};

use crate::answers::RowsTo;
use crate::boundary::{give, guard, status, string, strings, words};
use crate::context::set_error;
use crate::facts::{Info, list};
use crate::numbers::name_unknown;
use crate::session::{Stdout, Stream, Use, reads, with_session};

/// Runs a command.
///
/// # Safety
///
/// `argv` has `argc` strings.
unsafe fn command(name: &str, argc: c_int, argv: *const *const c_char) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        let words = unsafe { words(argc, argv) };
        let line: Vec<_> = std::iter::once(name.as_bytes()).chain(words).collect();
        with_session(Use::Daemon, |session| {
            if name == "dump" {
                reads(session);
            }
            run(session, &line).unwrap_or(Ok(()))
        })
    })
}

/// Reads what a command line asks for.
///
/// # Safety
///
/// `argv` has `argc` strings.
unsafe fn answer<T>(
    argc: c_int,
    argv: *const *const c_char,
    work: impl FnOnce(&mut Session<'_>, &[&[u8]]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // SAFETY: the caller's.
    let words = unsafe { words(argc, argv) };
    with_session(Use::Daemon, |session| {
        reads(session);
        work(session, &words)
    })
}

macro_rules! commands {
    ($($(#[$doc:meta])* $function:ident: $name:literal;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(argc: c_int, argv: *const *const c_char) -> c_int {
            // SAFETY: the caller's.
            unsafe { command($name, argc, argv) }
        }
    )* };
}

commands! {
    /// `int rrd_create(int argc, char **argv)`.
    rrd_create: "create";
    /// `int rrd_update(int argc, char **argv)`.
    rrd_update: "update";
    /// `int rrd_dump(int argc, char **argv)`.
    rrd_dump: "dump";
    /// `int rrd_restore(int argc, char **argv)`.
    rrd_restore: "restore";
    /// `int rrd_tune(int argc, char **argv)`.
    rrd_tune: "tune";
    /// `int rrd_resize(int argc, char **argv)`.
    rrd_resize: "resize";
    /// `int rrd_lastupdate(int argc, char **argv)`: prints.
    rrd_lastupdate: "lastupdate";
    /// `int rrd_flushcached(int argc, char **argv)`.
    rrd_flushcached: "flushcached";
}

/// `time_t rrd_last(int argc, char **argv)`: -1 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_last(argc: c_int, argv: *const *const c_char) -> libc::time_t {
    // SAFETY: the caller's.
    time(|| unsafe { answer(argc, argv, answers::last) })
}

/// `time_t rrd_first(int argc, char **argv)`: -1 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_first(argc: c_int, argv: *const *const c_char) -> libc::time_t {
    // SAFETY: the caller's.
    time(|| unsafe { answer(argc, argv, answers::first) })
}

/// A time; why the daemon does not answer becomes the error message beside.
fn time(work: impl FnOnce() -> Result<(i64, Option<Failure>), Failure>) -> libc::time_t {
    guard(-1, || {
        let (time, silent) = work()?;
        if let Some(failure) = silent {
            set_error(&failure.to_string());
        }
        Ok(time as libc::time_t)
    })
}

/// `rrd_info_t *rrd_info(int argc, char **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_info(argc: c_int, argv: *const *const c_char) -> *mut Info {
    guard(null_mut(), || {
        // SAFETY: the caller's.
        let facts = unsafe { answer(argc, argv, answers::info) }?;
        Ok(list(&facts))
    })
}

/// `rrd_info_t *rrd_update_v(int argc, char **argv)`: the rows that were written, behind a status. They are
/// there where a reading was refused, too.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_update_v(argc: c_int, argv: *const *const c_char) -> *mut Info {
    guard(null_mut(), || {
        // SAFETY: the caller's.
        let words = unsafe { words(argc, argv) };
        let updated = with_session(Use::Daemon, |session| answers::updatev(session, &words));
        let (facts, done) = updated?;
        if let Err(failure) = done {
            set_error(&failure.to_string());
        }
        Ok(list(&facts))
    })
}

/// `char *rrd_list(int argc, char **argv)`: names, a line each.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_list(argc: c_int, argv: *const *const c_char) -> *mut c_char {
    guard(null_mut(), || {
        // SAFETY: the caller's.
        let names = unsafe { answer(argc, argv, answers::list) }?;
        Ok(string(&names))
    })
}

/// `int rrd_fetch(int argc, char **argv, time_t *start, time_t *end, unsigned long *step, unsigned long
/// *ds_cnt, char ***ds_namv, rrd_value_t **data)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_fetch(
    argc: c_int,
    argv: *const *const c_char,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    values: *mut *mut f64,
) -> c_int {
    let to = RowsTo {
        start,
        end,
        step,
        count,
        names,
        values,
    };
    status(|| {
        // SAFETY: the caller's.
        unsafe {
            let fetched = answer(argc, argv, answers::fetch)?;
            to.give(&fetched);
        }
        Ok(())
    })
}

/// `int rrd_xport(int argc, char **argv, int *xsize, time_t *start, time_t *end, unsigned long *step,
/// unsigned long *col_cnt, char ***legend_v, rrd_value_t **data)`. `xsize` is 0; if it is NULL,
/// the table is printed, too.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_xport(
    argc: c_int,
    argv: *const *const c_char,
    xsize: *mut c_int,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    values: *mut *mut f64,
) -> c_int {
    let to = RowsTo {
        start,
        end,
        step,
        count,
        names,
        values,
    };
    status(|| {
        // SAFETY: the caller's.
        unsafe {
            let mut table = answer(argc, argv, |session, words| {
                answers::xport(session, words, xsize.is_null())
            })?;
            name_unknown(&mut table.values);
            to.give(&table);
            give(xsize, 0);
        }
        Ok(())
    })
}

/// `rrd_info_t *rrd_graph_v(int argc, char **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_graph_v(argc: c_int, argv: *const *const c_char) -> *mut Info {
    guard(null_mut(), || {
        // SAFETY: the caller's.
        let facts = unsafe { answer(argc, argv, answers::graph) }?;
        Ok(list(&facts))
    })
}

/// `int rrd_graph(int argc, char **argv, char ***prdata, int *xsize, int *ysize, FILE *stream, double *ymin,
/// double *ymax)`: `prdata` are the texts of PRINT, behind that of `--imginfo`; NULL if there are none. A
/// picture without a file goes to the stream, or to standard output.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrd_graph(
    argc: c_int,
    argv: *const *const c_char,
    texts: *mut *mut *mut c_char,
    width: *mut c_int,
    height: *mut c_int,
    stream: *mut libc::FILE,
    min: *mut f64,
    max: *mut f64,
) -> c_int {
    status(|| {
        // SAFETY: the caller's.
        unsafe { give(texts, null_mut()) };
        // SAFETY: the caller's.
        let facts = unsafe { answer(argc, argv, answers::graph) }?;
        let mut printed: Vec<&[u8]> = Vec::new();
        let mut size = [0; 2];
        for Fact { key, value } in &facts {
            match (key.as_str(), value) {
                ("image_info", FactValue::Text(text)) => printed.insert(0, text),
                ("image_width", FactValue::Count(count)) => size[0] = *count as c_int,
                ("image_height", FactValue::Count(count)) => size[1] = *count as c_int,
                // SAFETY: the caller's.
                ("value_min", FactValue::Number(number)) => unsafe { give(min, *number) },
                // SAFETY: the caller's.
                ("value_max", FactValue::Number(number)) => unsafe { give(max, *number) },
                ("image", FactValue::Blob(image)) => {
                    let written = match stream.is_null() {
                        true => Stdout.write_all(image),
                        // SAFETY: the stream is open, says the caller.
                        false => unsafe { Stream::new(stream) }.write_all(image),
                    };
                    written.map_err(Failure::Output)?;
                }
                (key, FactValue::Text(text)) if key.starts_with("print[") => printed.push(text),
                _ => {}
            }
        }
        // SAFETY: the caller's.
        unsafe {
            give(width, size[0]);
            give(height, size[1]);
            if !printed.is_empty() && !texts.is_null() {
                texts.write(strings(printed.iter()));
            }
        }
        Ok(())
    })
}
