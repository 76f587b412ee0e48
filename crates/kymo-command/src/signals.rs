//! Signals: no temporary file outlives the program, and a limit of file sizes is an error like others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use nix::sys::signal::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Whether [`interrupt`] answers the signals.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// Has a file that would be larger than `ulimit -f` allows fail with an error, where a signal would end
/// the program. Programs that this one starts do not inherit that.
pub fn fail_at_size_limit() {
    // What a handler does is not asked: that there is one is enough. Without it, the program ends as it did.
    let _ = signal_hook::flag::register(Signal::SIGXFSZ as i32, Arc::new(AtomicBool::new(false)));
}

/// Has the signals that end the program remove its temporary files first.
///
/// Nothing is done before there is one. Commands that answer signals in their own way must not ask for
/// this.
pub fn remove_temporaries() {
    kymo_io::before_temporaries(|| watch(ending()));
}

/// The same, for a program that Ctrl-C does not end.
pub fn remove_temporaries_unless_interrupted() {
    kymo_io::before_temporaries(|| {
        let mut signals = ending();
        signals.retain(|&signal| signal != SIGINT);
        watch(signals);
    });
}

/// Waits in a thread for signals that end the program. Without the thread, it ends as it did.
fn watch(signals: Vec<i32>) {
    let (ready, is_ready) = channel();
    let wait = move || {
        let signals = Signals::new(signals);
        // The other end exists until it is notified.
        let _ = ready.send(());
        let Ok(mut signals) = signals else {
            return;
        };
        for signal in signals.forever() {
            if IS_ANSWERED.load(Ordering::Relaxed) {
                continue;
            }
            // As long as this lives, the other threads neither go on nor report what they miss.
            let _removed = kymo_io::remove_temporaries();
            // The program ends by the signal, as whoever started it expects.
            let _ = emulate_default_handler(signal);
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    if thread.spawn(wait).is_ok() {
        let _ = is_ready.recv();
    }
}

/// The signals that end the program: whoever started it may have had some of them ignored, as `nohup`
/// does.
pub fn ending() -> Vec<i32> {
    let ignored = ignored();
    let is_heard = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
    [SIGHUP, SIGINT, SIGTERM]
        .into_iter()
        .filter(is_heard)
        .collect()
}

/// A bit for each signal that is ignored, if the system reports them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.map_or(0, |bits| u64::from_str_radix(bits.trim(), 16).unwrap_or(0))
}

/// Has the first signal that would end the program set a flag. The next one, or the first one once `ends` is set,
/// removes a directory and ends the program.
pub fn interrupt(
    interrupted: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    directory: Option<std::path::PathBuf>,
) {
    let watch = move || {
        let Ok(mut signals) = Signals::new(ending()) else {
            return;
        };
        IS_ANSWERED.store(true, Ordering::Relaxed);
        for signal in signals.forever() {
            if interrupted.swap(true, Ordering::Relaxed) || ends.load(Ordering::Relaxed) {
                let _removed = kymo_io::remove_temporaries();
                if let Some(directory) = &directory {
                    let _ = std::fs::remove_dir_all(directory);
                }
                let _ = emulate_default_handler(signal);
            }
        }
    };
    // Without the thread, the signals end the program as they did.
    let _ = std::thread::Builder::new()
        .name("signals".into())
        .spawn(watch);
}
