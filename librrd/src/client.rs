//! Functions beginning with `rrdc_`: a daemon's client. There is one connection, of all threads. Without one,
//! functions fail and set no error message.
//!
//! # Safety
//!
//! For all functions: strings end with zero, and lists have the given length; pointers to results are NULL or may
//! be written to.

use std::ffi::{c_char, c_int, c_ulong};
use std::ptr::null_mut;

use kymo_rrdtool::{DaemonClient, Failure};

use crate::answers::RowsTo;
use crate::boundary::{allocate, ended_list, guard, list, needed, string, text};
use crate::facts::{self, Info};
use crate::numbers::function_name;
use crate::reentrant::Creation;
use crate::session::{daemon, variable};

/// Asks the daemon, if there is a connection; else the result is `unconnected`.
fn ask<T>(
    failed: T,
    unconnected: T,
    work: impl FnOnce(&mut DaemonClient) -> Result<T, Failure>,
) -> T {
    guard(failed, || match &mut *daemon() {
        Some(client) => work(client),
        None => Ok(unconnected),
    })
}

/// The address that is given, or else the environment's; `None` if there is none.
///
/// # Safety
///
/// `address` is NULL or a string.
unsafe fn address(address: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    let given = unsafe { text(address) }.map(|given| String::from_utf8_lossy(given).into_owned());
    let address = given.or_else(|| variable("RRDCACHED_ADDRESS"));
    address.filter(|address| !address.is_empty())
}

/// Connects to an address, if there is none to it yet.
fn connect(address: &str) -> Result<(), Failure> {
    let mut daemon = daemon();
    if daemon
        .as_ref()
        .is_some_and(|client| client.name() == address)
    {
        return Ok(());
    }
    *daemon = None;
    let strip = variable("RRDCACHED_STRIPPATH").map(String::into_bytes);
    *daemon = Some(DaemonClient::connect(address, strip)?);
    Ok(())
}

/// `int rrdc_connect(const char *address)`: connects to an address, or to that of the environment; 0, also
/// where neither names one.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_connect(given: *const c_char) -> c_int {
    // SAFETY: the caller's.
    guard(-1, || match unsafe { address(given) } {
        Some(address) => connect(&address).map(|()| 0),
        None => Ok(0),
    })
}

/// `int rrdc_disconnect(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrdc_disconnect() -> c_int {
    guard(-1, || {
        *daemon() = None;
        Ok(0)
    })
}

/// `int rrdc_is_any_connected(void)`.
#[unsafe(no_mangle)]
extern "C" fn rrdc_is_any_connected() -> c_int {
    guard(0, || Ok(daemon().is_some().into()))
}

/// `int rrdc_is_connected(const char *address)`: whether there is a connection to this address, or to that of
/// the environment.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_is_connected(given: *const c_char) -> c_int {
    guard(0, || {
        // SAFETY: the caller's.
        let address = unsafe { address(given) };
        let daemon = daemon();
        let client = daemon.as_ref().zip(address);
        Ok(client
            .is_some_and(|(client, address)| client.name() == address)
            .into())
    })
}

/// `int rrdc_update(const char *filename, int values_num, const char * const *values)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_update(
    file: *const c_char,
    count: c_int,
    values: *const *const c_char,
) -> c_int {
    ask(-1, -1, |client| {
        // SAFETY: the caller's.
        let (file, values) =
            unsafe { (needed(file, "the name of the file")?, list(count, values)) };
        let file = client.path(file)?;
        let mut words = vec![b"update".as_slice(), &file];
        words.extend(values);
        client.ask(&words)?;
        Ok(0)
    })
}

/// `int rrdc_flush(const char *filename)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_flush(file: *const c_char) -> c_int {
    ask(-1, -1, |client| {
        // SAFETY: the caller's.
        client.flush(unsafe { needed(file, "the name of the file") }?)?;
        Ok(0)
    })
}

/// `int rrdc_flush_if_daemon(const char *address, const char *filename)`: 0 if there is no daemon.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_flush_if_daemon(given: *const c_char, file: *const c_char) -> c_int {
    // SAFETY: the caller's.
    let connected = guard(0, || match unsafe { address(given) } {
        Some(address) => connect(&address).map(|()| 1),
        None => Ok(0),
    });
    match connected {
        // SAFETY: the caller's.
        1 => unsafe { rrdc_flush(file) },
        _ => 0,
    }
}

/// `int rrdc_forget(const char *filename)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_forget(file: *const c_char) -> c_int {
    ask(-1, -1, |client| {
        // SAFETY: the caller's.
        let file = client.path(unsafe { needed(file, "the name of the file") }?)?;
        client.ask(&[b"forget", &file])?;
        Ok(0)
    })
}

/// `rrd_info_t *rrdc_info(const char *filename)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_info(file: *const c_char) -> *mut Info {
    ask(null_mut(), null_mut(), |client| {
        // SAFETY: the caller's.
        let facts = client.info(unsafe { needed(file, "the name of the file") }?)?;
        Ok(facts::list(&facts))
    })
}

/// `time_t rrdc_last(const char *filename)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_last(file: *const c_char) -> libc::time_t {
    ask(-1, -1, |client| {
        // SAFETY: the caller's.
        let file = client.path(unsafe { needed(file, "the name of the file") }?)?;
        Ok(client.number(&[b"last", &file])? as libc::time_t)
    })
}

/// `time_t rrdc_first(const char *filename, int rraindex)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_first(file: *const c_char, index: c_int) -> libc::time_t {
    ask(-1, -1, |client| {
        // SAFETY: the caller's.
        let file = client.path(unsafe { needed(file, "the name of the file") }?)?;
        let index = index.to_string();
        let time = client.number(&[b"first", &file, index.as_bytes()])?;
        Ok(time as libc::time_t)
    })
}

/// `int rrdc_create(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite, int argc,
/// const char **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_create(
    file: *const c_char,
    step: c_ulong,
    start: libc::time_t,
    no_overwrite: c_int,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let (sources, template) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the caller's; there may be no sources and no template.
    unsafe {
        rrdc_create_r2(
            file,
            step,
            start,
            no_overwrite,
            sources,
            template,
            argc,
            argv,
        )
    }
}

/// `int rrdc_create_r2(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite, const
/// char **sources, const char *template, int argc, const char **argv)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_create_r2(
    file: *const c_char,
    step: c_ulong,
    start: libc::time_t,
    no_overwrite: c_int,
    sources: *const *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    ask(-1, -1, |client| {
        // SAFETY: the caller's.
        let (file, sources, template, definitions) = unsafe {
            let file = needed(file, "the name of the file")?;
            (file, ended_list(sources), text(template), list(argc, argv))
        };
        let path = |file| client.path(file);
        let file = path(file)?;
        let sources = sources
            .into_iter()
            .map(path)
            .collect::<Result<Vec<_>, _>>()?;
        let template = template.map(path).transpose()?;
        let creation = Creation {
            file: &file,
            step,
            start,
            no_overwrite: no_overwrite != 0,
            sources: sources.iter().map(Vec::as_slice).collect(),
            template: template.as_deref(),
            definitions: Vec::new(),
        };
        let words = creation.words()?;
        // The daemon wants the file first, and knows no `--`.
        let options = words.split(|word| word == b"--").next().unwrap_or_default();
        let mut request = vec![b"create".as_slice(), &file];
        request.extend(options.iter().map(Vec::as_slice));
        request.extend(definitions);
        client.ask(&request)?;
        Ok(0)
    })
}

/// `int rrdc_fetch(const char *filename, const char *cf, time_t *start, time_t *end, unsigned long *step,
/// unsigned long *ds_cnt, char ***ds_namv, rrd_value_t **data)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_fetch(
    file: *const c_char,
    function: *const c_char,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    values: *mut *mut f64,
) -> c_int {
    ask(-1, -1, |client| {
        let to = RowsTo {
            start,
            end,
            step,
            count,
            names,
            values,
        };
        // SAFETY: the caller's; what is wanted is where the result goes.
        unsafe {
            let file = needed(file, "the name of the file")?;
            let function = needed(function, "the consolidation function")?;
            let (Some(&from), Some(&until)) = (start.as_ref(), end.as_ref()) else {
                return Err(Failure::new("the times are missing"));
            };
            let span = (from as i64, until as i64);
            let fetched = client.fetch(file, function_name(function)?, span)?;
            to.give(&fetched);
        }
        Ok(0)
    })
}

/// `rrdc_stats_t`.
#[repr(C)]
struct Stats {
    name: *const c_char,
    kind: u16,
    flags: u16,
    value: StatsValue,
    next: *mut Stats,
}

#[repr(C)]
union StatsValue {
    counter: u64,
    gauge: f64,
}

/// `RRDC_STATS_TYPE_GAUGE`, `RRDC_STATS_TYPE_COUNTER`.
const GAUGE: u16 = 1;
const COUNTER: u16 = 2;
/// What goes up and down; all else is counted.
const GAUGES: [&str; 3] = ["QueueLength", "TreeNodesNumber", "TreeDepth"];

/// `int rrdc_stats_get(rrdc_stats_t **stats)`: what the daemon counts.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_stats_get(to: *mut *mut Stats) -> c_int {
    ask(-1, libc::ENOTCONN, |client| {
        let mut lines = Vec::new();
        client.ask_with(&[b"stats"], |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        })?;
        let mut next: *mut Stats = null_mut();
        for line in lines.iter().rev() {
            let Some((name, value)) = line.split_once(": ") else {
                continue;
            };
            let (kind, value) = match GAUGES.contains(&name) {
                true => (GAUGE, value.parse().ok().map(|gauge| StatsValue { gauge })),
                false => (
                    COUNTER,
                    value.parse().ok().map(|counter| StatsValue { counter }),
                ),
            };
            let Some(value) = value else {
                continue;
            };
            let node: *mut Stats = allocate(size_of::<Stats>()).cast();
            let name = string(name.as_bytes());
            // SAFETY: there is room for it, aligned as all memory of `malloc`.
            unsafe {
                node.write(Stats {
                    name,
                    kind,
                    flags: 0,
                    value,
                    next,
                });
            }
            next = node;
        }
        // SAFETY: the caller's.
        match unsafe { to.as_mut() } {
            Some(to) => *to = next,
            // SAFETY: the list is new.
            None => unsafe { rrdc_stats_free(next) },
        }
        Ok(0)
    })
}

/// `void rrdc_stats_free(rrdc_stats_t *stats)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rrdc_stats_free(mut stats: *mut Stats) {
    while !stats.is_null() {
        // SAFETY: each is of `malloc`, as its name, says the caller.
        unsafe {
            let next = (*stats).next;
            libc::free((*stats).name.cast_mut().cast());
            libc::free(stats.cast());
            stats = next;
        }
    }
}
