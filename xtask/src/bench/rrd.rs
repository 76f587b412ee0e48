//! Databases beside rrdtool: dump, restore, and conversion, for which rrdtool's users have
//! to dump on the one machine and restore on the other.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{children, median};
use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, require, root};

/// A machine of the other byte order, with 32 bits: everything has another place there.
const TARGET: &str = "ppc";

/// What is measured: its name, how often kymo does it in one run, and what kymo's CPU time is
/// multiplied with to compare.
struct Task<'a> {
    name: &'a str,
    repeats: u32,
    ours: &'a dyn Fn() -> Outcome<Command>,
    theirs: &'a dyn Fn() -> Outcome<Command>,
    /// How much more work kymo does than rrdtool.
    more: u32,
}

/// `cargo xtask bench rrd`.
pub(super) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let files: u32 = args.value("--files")?.unwrap_or(1000).max(1);
    args.finish()?;
    require("rrdtool", "rrdtool")?;
    let kymo = build_kymo(true)?;
    let folder = root().join("target/bench/rrd");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("many"))?;
    let (big, small) = (folder.join("big.rrd"), folder.join("small.rrd"));
    make(&big, 10, &[325_000])?;
    make(&small, 4, &[600, 700, 775, 797, 1440])?;
    for number in 0..files {
        std::fs::copy(&small, folder.join(format!("many/{number}.rrd")))?;
    }
    let xml = folder.join("big.xml");
    let mut dump = command("rrdtool");
    if !dump.arg("dump").arg(&big).arg(&xml).status()?.success() {
        return Err("rrdtool does not dump".into());
    }
    // rrdtool works on a tenth: it is not worth waiting for.
    let tenth = (files / 10).max(1);
    let (target, targets) = (folder.join("target.rrd"), folder.join("targets"));
    let fresh = || -> Outcome {
        if target.is_file() {
            std::fs::remove_file(&target)?;
        }
        if targets.is_dir() {
            std::fs::remove_dir_all(&targets)?;
        }
        std::fs::create_dir_all(&targets)?;
        Ok(())
    };
    let words = |program: &Path, words: &[&dyn AsRef<std::ffi::OsStr>]| {
        let mut command = command(program);
        words.iter().for_each(|word| {
            command.arg(word);
        });
        command
    };
    let shell = |script: String| words(Path::new("sh"), &[&"-c", &script]);
    let rrdtool = Path::new("rrdtool");
    let big_size = std::fs::metadata(&big)?.len();
    let small_size = std::fs::metadata(&small)?.len();
    println!("{runs} alternating runs, medians of CPU time (user and system); nothing is synced");
    println!(
        "one file of {big_size} bytes; {files} of {small_size} bytes, of which rrdtool gets {tenth}\n"
    );
    println!("{:<22} {:>10} {:>12} {:>7}", "", "kymo", "rrdtool", "ratio");
    let tasks = [
        Task {
            name: "convert one",
            repeats: 10,
            ours: &|| {
                fresh()?;
                Ok(words(
                    &kymo,
                    &[
                        &"rrd",
                        &"convert",
                        &"--no-sync",
                        &"--to",
                        &TARGET,
                        &"-o",
                        &target,
                        &big,
                    ],
                ))
            },
            theirs: &|| {
                fresh()?;
                Ok(shell(format!(
                    "rrdtool dump {} | rrdtool restore - {}",
                    big.display(),
                    target.display()
                )))
            },
            more: 1,
        },
        Task {
            name: "convert many",
            repeats: 1,
            ours: &|| {
                fresh()?;
                let many = folder.join("many");
                Ok(words(
                    &kymo,
                    &[
                        &"rrd",
                        &"convert",
                        &"--no-sync",
                        &"--to",
                        &TARGET,
                        &"--output-dir",
                        &targets,
                        &many,
                    ],
                ))
            },
            theirs: &|| {
                fresh()?;
                Ok(shell(format!(
                    "for i in $(seq 0 {}); do rrdtool dump {}/$i.rrd | rrdtool restore - {}/$i.rrd; done",
                    tenth - 1,
                    folder.join("many").display(),
                    targets.display()
                )))
            },
            more: files / tenth,
        },
        Task {
            name: "dump",
            repeats: 1,
            ours: &|| Ok(words(&kymo, &[&"rrd", &"dump", &big])),
            theirs: &|| Ok(words(rrdtool, &[&"dump", &big])),
            more: 1,
        },
        Task {
            name: "restore",
            repeats: 1,
            ours: &|| {
                fresh()?;
                Ok(words(&kymo, &[&"rrd", &"restore", &xml, &target]))
            },
            theirs: &|| {
                fresh()?;
                Ok(words(rrdtool, &[&"restore", &xml, &target]))
            },
            more: 1,
        },
    ];
    for task in &tasks {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let mut sum = Duration::ZERO;
            for _ in 0..task.repeats {
                sum += cost((task.ours)()?)?;
            }
            ours.push(sum / task.repeats);
            theirs.push(cost((task.theirs)()?)? * task.more);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{:<22} {:>9.4}s {:>11.3}s {:>7.1}",
            task.name,
            ours.as_secs_f64(),
            theirs.as_secs_f64(),
            theirs.as_secs_f64() / ours.as_secs_f64().max(1e-9),
        );
    }
    fresh()
}

/// CPU time of a command, and of all that it starts; its output is thrown away.
fn cost(mut command: Command) -> Outcome<Duration> {
    let before = children()?;
    let status = command.stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(children()? - before)
}

/// Creates a database with rrdtool that has a full archive for each number of rows:
/// each update is of many steps, with numbers that need all their digits.
fn make(path: &Path, sources: usize, rows: &[u64]) -> Outcome {
    const BEGIN: u64 = 1_600_000_000;
    const UPDATES: u64 = 1000;
    let most = rows.iter().max().copied().unwrap_or_default();
    let step = most.div_ceil(UPDATES);
    let mut script = format!("create {} --start {BEGIN} --step 1", path.display());
    for source in 0..sources {
        script += &format!(" DS:source{source}:GAUGE:100000:U:U");
    }
    for (steps, rows) in rows.iter().enumerate() {
        script += &format!(" RRA:AVERAGE:0.5:{}:{rows}", steps + 1);
    }
    script.push('\n');
    let mut state = 1u64;
    for update in 1..=UPDATES * rows.len() as u64 {
        script += &format!("update {} {}", path.display(), BEGIN + update * step);
        for _ in 0..sources {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            script += &format!(":{}", (state >> 11) as f64 / 1e9);
        }
        script.push('\n');
    }
    let mut rrdtool = command("rrdtool")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    rrdtool
        .stdin
        .take()
        .ok_or("rrdtool takes no commands")?
        .write_all(script.as_bytes())?;
    match rrdtool.wait()?.success() && path.is_file() {
        true => Ok(()),
        false => Err("rrdtool does not make a database".into()),
    }
}
