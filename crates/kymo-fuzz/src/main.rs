//! `kymo-fuzz [COUNT] [--seed N] [TARGET...]`: runs checks on inputs made of those in `fuzz/corpus`, the same on every
//! machine; all checks, and 1000 inputs for each, if none are named. An input that does not hold is kept in
//! `fuzz/artifacts`.

mod mutate;

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

use kymo_fuzz::{CHECKS, Check};

use crate::mutate::Mutator;

/// An input that takes longer is one on which a check hangs.
const LONGEST: Duration = Duration::from_secs(60);
/// Bytes of memory that the program may have used.
const MOST_MEMORY: u64 = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut count, mut seed, mut names) = (1000, 1, Vec::new());
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.parse() {
            Ok(number) => count = number,
            Err(_) if word == "--seed" => {
                seed = words.next().ok_or("--seed needs a number")?.parse()?;
            }
            Err(_) => names.push(word),
        }
    }
    if let Some(unknown) = names
        .iter()
        .find(|name| !CHECKS.iter().any(|(known, _)| known == name))
    {
        return Err(format!("no target is called `{unknown}`").into());
    }
    let chosen = |(name, _): &&Check| names.is_empty() || names.iter().any(|it| it == name);
    let checks: Vec<&Check> = CHECKS.iter().filter(chosen).collect();
    let failed = run(&checks, count, seed);
    println!("{} passed, {failed} failed", checks.len() - failed);
    match failed {
        0 => Ok(()),
        _ => Err("see fuzz/artifacts".into()),
    }
}

/// What a worker says.
enum Said {
    /// It begins with an input of a target.
    Begins(&'static str, u64, Vec<u8>),
    /// The check of the input has ended, by a panic or not.
    Ended { panicked: bool },
    /// The check of a target has ended, with its line or what is wrong.
    Done(Result<String, String>),
}

/// An input that is being checked.
struct Running {
    since: Instant,
    name: &'static str,
    number: u64,
    input: Vec<u8>,
}

/// Runs checks, as many at a time as there are processors, and returns how many failed.
#[expect(clippy::exit, reason = "a check that hangs cannot be ended otherwise")]
fn run(checks: &[&Check], count: u64, seed: u64) -> usize {
    let queue = Mutex::new(checks.iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut running: Vec<Option<Running>> = (0..workers).map(|_| None).collect();
    let mut failed = 0;
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for worker in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                // Nothing else waits for what is said.
                let say = |said| drop(sender.send((worker, said)));
                while let Some(check) = next() {
                    let done = target(check, count, seed, say);
                    say(Said::Done(
                        done.map_err(|error| format!("{}: {error}", check.0)),
                    ));
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(Duration::from_secs(1)) {
                Ok((worker, Said::Begins(name, number, input))) => {
                    running[worker] = Some(Running {
                        since: Instant::now(),
                        name,
                        number,
                        input,
                    });
                }
                Ok((worker, Said::Ended { panicked })) => {
                    if let Some(ended) = running[worker].take().filter(|_| panicked) {
                        ended.keep("panics");
                    }
                }
                Ok((_, Said::Done(Ok(line)))) => println!("{line}"),
                Ok((_, Said::Done(Err(problem)))) => {
                    failed += 1;
                    eprintln!("{problem}");
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let hangs = |it: &&Running| it.since.elapsed() > LONGEST;
            if let Some(hanging) = running.iter().flatten().find(hangs) {
                hanging.keep("takes more than 60 s");
                // Nothing ends a thread.
                process::exit(1);
            }
            if memory() > MOST_MEMORY {
                for suspect in running.iter().flatten() {
                    suspect.keep("more than 1 GiB of memory is taken, by this or by another input");
                }
                process::exit(1);
            }
        }
    });
    failed
}

/// Runs a check on the inputs that are made for it, and describes the run in a line.
fn target(
    &(name, check): &Check,
    count: u64,
    seed: u64,
    say: impl Fn(Said),
) -> Result<String, io::Error> {
    let seeds = seeds(&folder().join("corpus").join(name))?;
    let mut mutator = Mutator::new(&seeds, seed);
    let began = Instant::now();
    for number in 0..count {
        let input = mutator.next();
        say(Said::Begins(name, number, input.clone()));
        let panicked = catch_unwind(AssertUnwindSafe(|| check(&input))).is_err();
        say(Said::Ended { panicked });
        if panicked {
            return Err(io::Error::other("no further inputs are tried"));
        }
    }
    let time = began.elapsed().as_secs_f64();
    let seeds = seeds.len();
    Ok(format!(
        "{name:<18} {seeds:>3} seeds, {count:>9} inputs in {time:.1} s"
    ))
}

impl Running {
    /// Keeps the input, and says why.
    fn keep(&self, problem: &str) {
        let Self { name, number, .. } = self;
        let place = folder().join("artifacts");
        let path = place.join(format!("{name}-{number}"));
        let kept = fs::create_dir_all(place).and_then(|()| fs::write(&path, &self.input));
        let path = path.display();
        match kept {
            Ok(()) => eprintln!("{name}: {problem}: {path}"),
            Err(error) => eprintln!("{name}: {problem}: {path} cannot be written: {error}"),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The inputs of a corpus, in the order of their names.
fn seeds(corpus: &Path) -> io::Result<Vec<Vec<u8>>> {
    let entries: io::Result<Vec<_>> = fs::read_dir(corpus)?.collect();
    let mut entries = entries?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let seeds: io::Result<Vec<_>> = entries.iter().map(|it| fs::read(it.path())).collect();
    match seeds? {
        seeds if seeds.is_empty() => Err(io::Error::other("its corpus is empty")),
        seeds => Ok(seeds),
    }
}

/// Bytes of memory that the program has used at most, where the system says it.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
