//! Records many events with three integers, and prints what they cost.
//!
//!     cargo run --release --package kymo-tracing --example burst -- files|mapped|flight|clock DIRECTORY EVENTS
//!
//! prints nanoseconds of processor time: of the thread that records, and of the process, with the thread that
//! writes. With `clock`, only the clock is read.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use kymo_tracing::{Options, WhenFull};
use tracing_subscriber::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, directory, events] = &args[..] else {
        return Err("what, where to, and how many?".into());
    };
    let events: u64 = events.parse()?;
    let options = Options::new().when_full(WhenFull::Wait);
    let registry = tracing_subscriber::registry();
    let mut guard = None;
    let mut flight = None;
    match kind.as_str() {
        "files" | "mapped" => {
            let (layer, its_guard) = match kind.as_str() {
                "files" => options.files(directory)?,
                _ => options.mapped(directory)?,
            };
            guard = Some(its_guard);
            registry.with(layer).init();
        }
        "flight" => {
            let (layer, its_recorder) = options.flight_recorder(1 << 22)?;
            flight = Some(its_recorder);
            registry.with(layer).init();
        }
        "clock" => {
            let begin = Instant::now();
            let before = thread_time()?;
            for _ in 0..events {
                black_box(begin.elapsed());
            }
            let spent = thread_time()? - before;
            println!("{} {}", spent.as_nanos(), spent.as_nanos());
            return Ok(());
        }
        _ => return Err("`files`, `mapped`, `flight` or `clock`".into()),
    }
    // Call sites are met, and buffers touched.
    record(events / 10);
    let (thread, process) = (thread_time()?, process_time());
    record(events);
    let thread = thread_time()? - thread;
    if let Some(guard) = guard {
        guard.finish()?;
    }
    let process = process_time() - process;
    if let Some(flight) = flight {
        flight.snapshot(directory)?;
    }
    println!("{} {}", thread.as_nanos(), process.as_nanos());
    Ok(())
}

#[inline(never)]
fn record(events: u64) {
    for number in 0..events {
        tracing::info!(number, twice = number * 2, less = -(number as i64));
    }
}

fn process_time() -> Duration {
    let (user, system) = kymo_io::cpu_times();
    user + system
}

#[cfg(unix)]
fn thread_time() -> Result<Duration, Box<dyn Error>> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(now.into())
}

/// Without such a clock, the time of the process, as if nothing else used the processor.
#[cfg(not(unix))]
fn thread_time() -> Result<Duration, Box<dyn Error>> {
    Ok(process_time())
}
