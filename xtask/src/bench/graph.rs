//! Graphs beside rrdtool: a year of two series as PNG and SVG, in a process for each and many in one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::{children, median};
use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, require, root};

const BEGIN: u64 = 1_668_400_200;
/// Readings of a year.
const READINGS: u64 = 366 * 288;

/// `cargo xtask bench graph`.
pub(super) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    let pictures: u32 = args.value("--pictures")?.unwrap_or(100).max(1);
    let ours: Option<PathBuf> = args.value("--ours")?;
    args.finish()?;
    require("rrdtool", "rrdtool")?;
    let folder = root().join("target/bench/graph");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let ours = match ours {
        Some(ours) => std::path::absolute(ours)?,
        None => {
            let link = folder.join("rrdtool");
            std::os::unix::fs::symlink(build_kymo(true)?, &link)?;
            link
        }
    };
    make(&folder)?;
    let theirs = Path::new("rrdtool");
    println!(
        "a year of two series; {runs} alternating runs, medians of CPU time (user and system) of a picture\n"
    );
    println!(
        "{:<26} {:>10} {:>10} {:>7} {:>7}",
        "", "kymo", "rrdtool", "ratio", "asked"
    );
    for (name, format, pipe, asked) in [
        ("PNG, a process each", "PNG", false, 4),
        ("SVG, a process each", "SVG", false, 10),
        ("PNG, many in a pipe", "PNG", true, 6),
        ("SVG, many in a pipe", "SVG", true, 10),
    ] {
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..runs {
            for (costs, program) in costs.iter_mut().zip([&*ours, theirs]) {
                let cost = match pipe {
                    true => piped(program, &folder, format, pictures)?,
                    false => alone(program, &folder, format, 10)?,
                };
                costs.push(cost);
            }
        }
        let [ours, theirs] = costs.map(|costs| median(costs).as_secs_f64() * 1000.0);
        println!(
            "{name:<26} {ours:>8.2}ms {theirs:>8.2}ms {:>7.2} {asked:>7}",
            theirs / ours.max(1e-6),
        );
    }
    let sizes = [&*ours, theirs].map(|program| {
        alone(program, &folder, "PNG", 1)?;
        Ok(std::fs::metadata(folder.join("picture"))?.len())
    });
    let [ours, theirs]: [Outcome<u64>; 2] = sizes;
    println!("\nthe PNG has {} bytes, rrdtool's {}", ours?, theirs?);
    Ok(())
}

/// What draws the year.
fn words(format: &str) -> Vec<String> {
    let end = BEGIN + READINGS * 300;
    let begin = end - 31_536_000;
    [
        "graph",
        "picture",
        "-a",
        format,
        &format!("--start={begin}"),
        &format!("--end={end}"),
        "--title=Traffic",
        "--vertical-label=bits/s",
        "--lower-limit=0",
        "DEF:in=year.rrd:in:AVERAGE",
        "DEF:out=year.rrd:out:AVERAGE",
        "CDEF:inbits=in,8,*",
        "CDEF:outbits=out,8,*",
        "AREA:inbits#00cc00:in ",
        "GPRINT:inbits:AVERAGE:average %6.2lf %s",
        "GPRINT:inbits:MAX:highest %6.2lf %s\\l",
        "LINE1:outbits#0000ff:out",
        "GPRINT:outbits:AVERAGE:average %6.2lf %s",
        "GPRINT:outbits:MAX:highest %6.2lf %s\\l",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// CPU time of a process that draws one picture.
fn alone(program: &Path, folder: &Path, format: &str, repeats: u32) -> Outcome<Duration> {
    let before = children()?;
    for _ in 0..repeats {
        let mut command = command(program);
        command.current_dir(folder).args(words(format));
        if !command.stdout(Stdio::null()).status()?.success() {
            return Err(format!("{command:?} failed").into());
        }
    }
    Ok((children()? - before) / repeats)
}

/// CPU time of a picture where one process draws many.
fn piped(program: &Path, folder: &Path, format: &str, pictures: u32) -> Outcome<Duration> {
    let words: Vec<String> = words(format)
        .iter()
        .map(|word| format!("\"{word}\""))
        .collect();
    let line = words.join(" ") + "\n";
    let before = children()?;
    let mut child = command(program)
        .current_dir(folder)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let lines = line.repeat(usize::try_from(pictures)?);
    let mut input = child.stdin.take().ok_or("no input")?;
    input.write_all(lines.as_bytes())?;
    drop(input);
    if !child.wait()?.success() {
        return Err(format!("{} failed", program.display()).into());
    }
    Ok((children()? - before) / pictures)
}

/// Has rrdtool make the database.
fn make(folder: &Path) -> Outcome {
    let mut script = format!(
        "create year.rrd --start {} --step 300 DS:in:GAUGE:600:U:U DS:out:GAUGE:600:U:U \
         RRA:AVERAGE:0.5:1:600 RRA:AVERAGE:0.5:6:700 RRA:AVERAGE:0.5:24:775 RRA:AVERAGE:0.5:288:797\n",
        BEGIN - 300
    );
    let mut state = 1u64;
    for number in 0..READINGS {
        if number % 100 == 0 {
            script += "\nupdate year.rrd";
        }
        let day = (number as f64 / 288.0 * std::f64::consts::TAU).sin();
        let mut value = |level: f64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let noise = (state >> 40) as f64 / (1u64 << 24) as f64;
            level * (3.0 + 2.0 * day + noise)
        };
        let (first, second) = (value(1e6), value(3e5));
        script += &format!(" {}:{first:.0}:{second:.0}", BEGIN + number * 300);
    }
    script.push('\n');
    let mut rrdtool = command("rrdtool")
        .current_dir(folder)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut input = rrdtool.stdin.take().ok_or("rrdtool takes no commands")?;
    input.write_all(script.as_bytes())?;
    drop(input);
    match rrdtool.wait()?.success() && folder.join("year.rrd").is_file() {
        true => Ok(()),
        false => Err("rrdtool does not make a database".into()),
    }
}
