//! All fuzz targets, one after the other, with libFuzzer on the stable compiler.

use std::path::Path;
use std::process::Command;
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

/// `cargo xtask fuzz`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let seconds: u64 = args.word().ok_or("fuzz needs SECONDS")?.parse()?;
    let seed: Option<u32> = args.value("--seed")?;
    let made: Option<usize> = args.value("--inputs")?;
    let only: Vec<String> = std::iter::from_fn(|| args.word()).collect();
    args.finish()?;
    let folder = root().join("fuzz");
    let target = host()?;
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(&folder)
        .env("RUSTFLAGS", FLAGS.join(" "))
        // Flags for another target leave build scripts and macros without coverage.
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--bins",
            "--target",
            &target,
        ])
        .status()?;
    if !built.success() {
        return Err("the fuzz targets do not build".into());
    }
    let mut targets = targets(&folder)?;
    if let Some(unknown) = only.iter().find(|name| !targets.contains(name)) {
        return Err(format!("no fuzz target `{unknown}` in {}", folder.display()).into());
    }
    targets.retain(|name| only.is_empty() || only.contains(name));
    let share = (seconds / targets.len() as u64).max(1);
    let all = Instant::now();
    for name in &targets {
        let seeds = seeds(&folder.join("corpus").join(name))?;
        std::fs::create_dir_all(folder.join("artifacts"))?;
        let program = folder
            .join("target")
            .join(&target)
            .join("release")
            .join(name);
        let began = Instant::now();
        let mut fuzzer = Command::new(&program);
        fuzzer.current_dir(&folder);
        match made {
            None => {
                // New inputs stay out of the repository's corpus.
                let found = folder.join("target/found").join(name);
                std::fs::create_dir_all(&found)?;
                fuzzer
                    .arg(&found)
                    .arg(folder.join("corpus").join(name))
                    .arg(format!("-max_total_time={share}"))
                    // 0 is libFuzzer's word for a seed of its own.
                    .arg(format!("-seed={}", seed.unwrap_or(0)));
            }
            Some(count) => {
                let inputs = folder.join("target/made").join(name);
                make(&seeds, count, seed.unwrap_or(1), &inputs)?;
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
        if !output.status.success() && !only_stalled(&program, &folder, name)? {
            eprintln!("{log}");
            return Err(format!("{name} found something; see fuzz/artifacts").into());
        }
        let least = made.unwrap_or(seeds.len() + 1) as u64;
        let runs = log
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .and_then(|runs| runs.trim().parse::<u64>().ok())
            .filter(|&runs| runs >= least)
            .ok_or_else(|| format!("{name} ran fewer inputs than {least}"))?;
        let time = began.elapsed().as_secs_f64();
        println!(
            "{name:<18} {:>3} seeds, {runs:>9} runs in {time:.1} s",
            seeds.len()
        );
        if made.is_some() {
            // They are made again.
            std::fs::remove_dir_all(folder.join("target/made"))?;
            if all.elapsed().as_secs() > seconds {
                return Err(format!("the inputs take more than {seconds} s").into());
            }
        }
    }
    println!("{} passed, 0 failed", targets.len());
    Ok(())
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
