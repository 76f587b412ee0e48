//! All fuzz targets, as many at a time as there are processors, with libFuzzer on the stable compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::Outcome;
use crate::args::Args;
use crate::mutate::Mutator;
use crate::process::root;

/// What makes the compiler report to libFuzzer which branches were taken.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "--cfg=fuzzing",
];

/// The program that has all targets, and the variable that names the one to run.
const ALL: &str = "all";
const CHOICE: &str = "KYMO_FUZZ_TARGET";

/// `cargo xtask fuzz`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let seconds: u64 = args.word().ok_or("fuzz needs SECONDS")?.parse()?;
    let seed: Option<u32> = args.value("--seed")?;
    let made: Option<usize> = args.value("--inputs")?;
    let only: Vec<String> = std::iter::from_fn(|| args.word()).collect();
    args.finish()?;
    let folder = root().join("fuzz");
    let target = host()?;
    let mut targets = targets(&folder)?;
    if let Some(unknown) = only.iter().find(|name| !targets.contains(name)) {
        return Err(format!("no fuzz target `{unknown}` in {}", folder.display()).into());
    }
    targets.retain(|name| only.is_empty() || only.contains(name));
    // Programs that are linked take longer than their inputs. The search is quicker in programs of one target.
    let programs: Vec<&str> = match made {
        Some(_) => vec![ALL],
        None => targets.iter().map(String::as_str).collect(),
    };
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(&folder)
        .env("RUSTFLAGS", FLAGS.join(" "))
        // Flags for another target leave build scripts and macros without coverage.
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--target",
            &target,
        ])
        .args(programs.iter().flat_map(|name| ["--bin", name]))
        .status()?;
    if !built.success() {
        return Err("the fuzz targets do not build".into());
    }
    let campaign = Campaign {
        folder: &folder,
        programs: folder.join("target").join(&target).join("release"),
        seed,
        made,
        share: share(seconds, targets.len()),
    };
    std::fs::create_dir_all(folder.join("artifacts"))?;
    let all = Instant::now();
    let queue = Mutex::new(targets.iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let found = Mutex::new(Vec::new());
    let report = |problem: String| {
        found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(problem)
    };
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while let Some(name) = next() {
                    match campaign.run(name) {
                        Ok(line) => println!("{line}"),
                        Err(error) => report(error.to_string()),
                    }
                    if made.is_some() && all.elapsed().as_secs() > seconds {
                        report(format!("the inputs take more than {seconds} s"));
                        return;
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !found.is_empty() {
        return Err(found.join("\n").into());
    }
    println!("{} passed, 0 failed", targets.len());
    Ok(())
}

/// How many targets run at a time: each has one thread.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The seconds of each target's search, of those of the whole.
fn share(seconds: u64, targets: usize) -> u64 {
    (seconds * workers() as u64 / targets as u64).clamp(1, seconds.max(1))
}

/// What all targets are run with.
struct Campaign<'a> {
    folder: &'a Path,
    /// Where the built programs are.
    programs: PathBuf,
    seed: Option<u32>,
    /// How many inputs are made for each target; libFuzzer searches for some if none.
    made: Option<usize>,
    /// Seconds of a search.
    share: u64,
}

impl Campaign<'_> {
    /// Runs a target, and describes its run in a line.
    fn run(&self, name: &str) -> Outcome<String> {
        let folder = self.folder;
        let seeds = seeds(&folder.join("corpus").join(name))?;
        let program = self
            .programs
            .join(if self.made.is_some() { ALL } else { name });
        let inputs = folder.join("target/made").join(name);
        let began = Instant::now();
        let mut fuzzer = Command::new(&program);
        fuzzer.current_dir(folder).env(CHOICE, name);
        match self.made {
            None => {
                // New inputs stay out of the repository's corpus.
                let found = folder.join("target/found").join(name);
                std::fs::create_dir_all(&found)?;
                fuzzer
                    .arg(&found)
                    .arg(folder.join("corpus").join(name))
                    .arg(format!("-max_total_time={}", self.share))
                    // 0 is libFuzzer's word for a seed of its own.
                    .arg(format!("-seed={}", self.seed.unwrap_or(0)));
            }
            Some(count) => {
                make(&seeds, count, self.seed.unwrap_or(1), &inputs)?;
                fuzzer.arg(&inputs).arg("-runs=0");
            }
        }
        let output = fuzzer
            .arg(format!("-artifact_prefix=artifacts/{name}-"))
            .args([
                "-timeout=10",
                "-rss_limit_mb=1024",
                "-max_len=65536",
                "-verbosity=0",
            ])
            .arg("-print_final_stats=1")
            .output()?;
        let log = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && !only_stalled(&program, folder, name)? {
            eprintln!("{log}");
            return Err(format!("{name} found something; see fuzz/artifacts").into());
        }
        let least = self.made.unwrap_or(seeds.len() + 1) as u64;
        let runs = log
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .and_then(|runs| runs.trim().parse::<u64>().ok())
            .filter(|&runs| runs >= least)
            .ok_or_else(|| format!("{name} ran fewer inputs than {least}"))?;
        if self.made.is_some() {
            // They are made again.
            std::fs::remove_dir_all(&inputs)?;
        }
        let time = began.elapsed().as_secs_f64();
        Ok(format!(
            "{name:<18} {:>3} seeds, {runs:>9} runs in {time:.1} s",
            seeds.len()
        ))
    }
}

/// Whether a target ended only because the machine stalled: on inputs that took too long by the
/// clock on the wall, and do not when they are run alone. They are removed.
fn only_stalled(program: &Path, folder: &Path, name: &str) -> Outcome<bool> {
    let mut stalled = false;
    for entry in std::fs::read_dir(folder.join("artifacts"))? {
        let path = entry?.path();
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(kind) = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'))
        else {
            continue;
        };
        let fine_alone = kind.starts_with("timeout-")
            && Command::new(program)
                .arg(&path)
                .arg("-timeout=10")
                .env(CHOICE, name)
                .output()?
                .status
                .success();
        if !fine_alone {
            return Ok(false);
        }
        println!("{name}: {file} took long, and not when run alone");
        std::fs::remove_file(&path)?;
        stalled = true;
    }
    Ok(stalled)
}

/// The inputs of a corpus, in the order of their names.
fn seeds(corpus: &Path) -> Outcome<Vec<Vec<u8>>> {
    let entries: Result<Vec<_>, _> = std::fs::read_dir(corpus)?.collect();
    let mut entries = entries?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let seeds: Result<Vec<_>, _> = entries.iter().map(|e| std::fs::read(e.path())).collect();
    match seeds? {
        seeds if seeds.is_empty() => Err(format!("no seeds in {}", corpus.display()).into()),
        seeds => Ok(seeds),
    }
}

/// Puts inputs made of seeds into an empty directory. What libFuzzer makes depends on the
/// branches that were taken, and these on the machine.
fn make(seeds: &[Vec<u8>], count: usize, seed: u32, inputs: &Path) -> Outcome {
    if inputs.exists() {
        std::fs::remove_dir_all(inputs)?;
    }
    std::fs::create_dir_all(inputs)?;
    let mut mutator = Mutator::new(seeds, seed.into());
    for number in 0..count {
        std::fs::write(inputs.join(number.to_string()), mutator.next())?;
    }
    Ok(())
}

/// The names of the targets.
fn targets(folder: &Path) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("fuzz_targets"))? {
        let path = entry?.path();
        if let Some(name) = path.file_stem() {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    if names.is_empty() {
        return Err("no fuzz targets".into());
    }
    Ok(names)
}

/// The target that the compiler makes programs for here.
fn host() -> Outcome<String> {
    let output = Command::new("rustc").args(["-vV"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_string)
        .ok_or_else(|| "rustc does not tell its host".into())
}
