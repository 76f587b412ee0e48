//! All fuzz targets, one after the other, with libFuzzer on the stable compiler.

use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::args::Args;
use crate::process::root;

/// What makes the compiler tell libFuzzer which branches were taken.
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
    for name in &targets {
        let corpus = folder.join("corpus").join(name);
        let seeds = std::fs::read_dir(&corpus)?.count();
        if seeds == 0 {
            return Err(format!("no seeds in {}", corpus.display()).into());
        }
        // New inputs stay out of the repository's corpus.
        let found = folder.join("target/found").join(name);
        std::fs::create_dir_all(&found)?;
        std::fs::create_dir_all(folder.join("artifacts"))?;
        let program = folder
            .join("target")
            .join(&target)
            .join("release")
            .join(name);
        let output = Command::new(&program)
            .current_dir(&folder)
            .arg(&found)
            .arg(&corpus)
            .arg(format!("-max_total_time={share}"))
            // 0 is libFuzzer's word for a seed of its own.
            .arg(format!("-seed={}", seed.unwrap_or(0)))
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
        let runs = log
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .and_then(|runs| runs.trim().parse::<u64>().ok())
            .filter(|&runs| runs > seeds as u64)
            .ok_or_else(|| format!("{name} ran nothing but its seeds"))?;
        println!("{name:<18} {seeds:>3} seeds, {runs:>9} runs in {share} s");
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
