//! Conversion of doubles between machines beside a plain copy of the same bytes.

use std::hint::black_box;
use std::time::Duration;

use kymo_machine::Machine;
use kymo_machine::float::{convert_doubles, convert_doubles_in_place};
use nix::time::{ClockId, clock_gettime};

use crate::Outcome;
use crate::args::Args;

/// From and to: swapped bytes, swapped words, both, and no swap, where only NaNs change.
const PAIRS: [(&str, &str); 4] = [
    ("sparc", "x86_64"),
    ("armv4l", "x86_64"),
    ("armv4l", "sparc"),
    ("aarch64", "x86_64"),
];

/// `cargo xtask bench machine`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(15).max(1);
    args.finish()?;
    println!("doubles converted in place, converted to another slice, and copied to one;");
    println!("GB/s and ratio to the copy; {runs} alternating runs, medians of CPU time\n");
    println!(
        "{:<18} {:>9} {:>9} {:>6} {:>9} {:>6} {:>7}",
        "", "bytes", "in place", "ratio", "convert", "ratio", "memcpy"
    );
    for (bytes, repeats) in [(16 << 10, 20_000), (256 << 10, 1000), (64 << 20, 4)] {
        for (from, to) in PAIRS {
            let machine = |name| Machine::find(name).ok_or(format!("no machine {name}"));
            measure(machine(from)?, machine(to)?, bytes, repeats, runs)?;
        }
    }
    Ok(())
}

/// Measures slices of `bytes` bytes, and prints a line.
fn measure(from: &Machine, to: &Machine, bytes: usize, repeats: u32, runs: usize) -> Outcome {
    let source: Vec<u8> = (0u64..)
        .map(|number| match number % 8 {
            0 => from.file_nan(),
            _ => (number as f64).to_bits(),
        })
        .flat_map(|bits| from.double_to_bytes(bits))
        .take(bytes)
        .collect();
    let mut own = source.clone();
    let mut target = source.clone();
    let (mut in_places, mut converts, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        in_places.push(cpu_time(repeats, || {
            convert_doubles_in_place(from, to, black_box(&mut own))
        })?);
        converts.push(cpu_time(repeats, || {
            convert_doubles(from, to, black_box(&source), black_box(&mut target))
        })?);
        copies.push(cpu_time(repeats, || {
            black_box(&mut target[..]).copy_from_slice(black_box(&source))
        })?);
    }
    let speed = |times| bytes as f64 / 1e9 / super::median(times).as_secs_f64().max(1e-12);
    let (in_place, converted, copied) = (speed(in_places), speed(converts), speed(copies));
    println!(
        "{:<18} {bytes:>9} {in_place:>9.1} {:>6.2} {converted:>9.1} {:>6.2} {copied:>7.1}",
        format!("{} > {}", from.name(), to.name()),
        in_place / copied,
        converted / copied,
    );
    Ok(())
}

/// The mean CPU time of something that is done several times.
pub(super) fn cpu_time(repeats: u32, mut work: impl FnMut()) -> Outcome<Duration> {
    let before = own_time()?;
    for _ in 0..repeats {
        work();
    }
    Ok((own_time()? - before) / repeats)
}

/// CPU time of this thread, to the nanosecond.
fn own_time() -> Outcome<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}
