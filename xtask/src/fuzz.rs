//! All fuzz targets, as many at a time as there are processors, with libFuzzer on the stable compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::Outcome;
use crate::args::Args;
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

/// `cargo xtask fuzz`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let seconds: u64 = args.word().ok_or("fuzz needs SECONDS")?.parse()?;
    let seed: Option<u32> = args.value("--seed")?;
    let only: Vec<String> = std::iter::from_fn(|| args.word()).collect();
    args.finish()?;
    let folder = root().join("fuzz");
    let target = host()?;
    let mut targets = targets(&folder)?;
    if let Some(unknown) = only.iter().find(|name| !targets.contains(name)) {
        return Err(format!("no fuzz target `{unknown}` in {}", folder.display()).into());
    }
    targets.retain(|name| only.is_empty() || only.contains(name));
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
        .args(targets.iter().flat_map(|name| ["--bin", name.as_str()]))
        .status()?;
    if !built.success() {
        return Err("the fuzz targets do not build".into());
    }
    let campaign = Campaign {
        folder: &folder,
        programs: folder.join("target").join(&target).join("release"),
        seed,
        share: share(seconds, targets.len()),
    };
    std::fs::create_dir_all(folder.join("artifacts"))?;
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
    /// Seconds of a search.
    share: u64,
}

impl Campaign<'_> {
    /// Runs a target, and describes its run in a line.
    fn run(&self, name: &str) -> Outcome<String> {
        let folder = self.folder;
        let seeds = std::fs::read_dir(folder.join("corpus").join(name))?.count() as u64;
        let program = self.programs.join(name);
        let began = Instant::now();
        // New inputs stay out of the repository's corpus.
        let found = folder.join("target/found").join(name);
        std::fs::create_dir_all(&found)?;
        let output = Command::new(&program)
            .current_dir(folder)
            .arg(&found)
            .arg(folder.join("corpus").join(name))
            .arg(format!("-max_total_time={}", self.share))
            // 0 is libFuzzer's word for a seed of its own.
            .arg(format!("-seed={}", self.seed.unwrap_or(0)))
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
        let least = seeds + 1;
        let runs = log
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .and_then(|runs| runs.trim().parse::<u64>().ok())
            .filter(|&runs| runs >= least)
            .ok_or_else(|| format!("{name} ran fewer inputs than {least}"))?;
        let time = began.elapsed().as_secs_f64();
        Ok(format!(
            "{name:<18} {seeds:>3} seeds, {runs:>9} runs in {time:.1} s"
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
