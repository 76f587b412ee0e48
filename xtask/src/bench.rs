//! Measurements beside the peer: the same trace, the same question, alternating runs.
//!
//! What counts is CPU time, user and system, of the whole process: on a machine that
//! does other things at the same time, the clock on the wall measures those too. Wall time
//! is only used to compare kymo's own threads.

mod asked;
mod cluster;
mod collectd;
mod columns;
mod commands;
mod engine;
mod graph;
mod index;
mod logs;
mod machine;
mod queries;
mod rows;
mod rrd;
mod serve;
mod taking;
mod tracing;
mod view;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_model::Recording;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::args::Args;
use crate::interop::{make_trace, tool};
use crate::process::{build_kymo, command, hear, measure_profile, require, root};
use crate::{Outcome, conformance, twin};

/// What one run of a program cost.
#[derive(Clone, Copy)]
struct Cost {
    cpu: Duration,
    wall: Duration,
    /// The maximum memory seen, without pages of mapped files, in KiB.
    own_memory: u64,
    /// The most memory seen, in KiB.
    memory: u64,
}

/// `cargo xtask bench`.
pub(crate) fn run(mut args: Args) -> Outcome {
    if let Some(profile) = args.value("--profile")? {
        measure_profile(profile);
    }
    match args.word().as_deref() {
        Some("ctf") => {}
        Some("engine") => return engine::run(args),
        Some("graph") => return graph::run(args),
        Some("index") => return index::run(args),
        Some("logs") => return logs::run(args),
        Some("machine") => return machine::run(args),
        Some("queries") => return queries::run(args),
        Some("rows") => return rows::run(args),
        Some("rrd") => return rrd::run(args),
        Some("cluster") => return cluster::run(args),
        Some("collectd") => return collectd::run(args),
        Some("columns") => return columns::run(args),
        Some("commands") => return commands::run(args),
        Some("serve") => return serve::run(args),
        Some("taking") => return taking::run(args),
        Some("tracing") => return tracing::run(args),
        Some("view") => return view::run(args),
        _ => {
            return Err(
                "what to measure: `bench ctf`, `cluster`, `collectd`, `columns`, `commands`, `engine`, `graph`, `index`, `logs`, `machine`, \
                 `queries`, \
                 `rows`, `rrd`, `serve`, `taking`, `tracing` or `view`"
                    .into(),
            );
        }
    }
    let tool = tool(&mut args)?;
    let events: u64 = args.value("--events")?.unwrap_or(10_000_000);
    let runs: usize = args.value("--runs")?.unwrap_or(5).max(1);
    args.finish()?;
    require("babeltrace2", "babeltrace2")?;
    let kymo = build_kymo(true)?;
    let trace = trace(&tool, events)?;
    let (begin, end) = middle_millisecond(&trace)?;
    let window = [format!("--begin={begin}"), format!("--end={end}")];
    same_window(&kymo, &trace, &window)?;

    println!("{events} events, {runs} alternating runs, medians of CPU time (user and system)\n");
    println!(
        "{:<22} {:>10} {:>12} {:>7}",
        "", "kymo", "babeltrace2", "ratio"
    );
    let tasks: [(&str, u32, Vec<&str>, Vec<&str>); 3] = [
        ("check / dummy", 1, vec!["check"], vec!["-o", "dummy"]),
        (
            "print / text",
            1,
            vec!["print", "--clock-gmt"],
            vec!["--clock-gmt"],
        ),
        (
            "print 1 ms of it",
            20,
            vec!["print", "--clock-gmt", &window[0], &window[1]],
            vec!["--clock-gmt", &window[0], &window[1]],
        ),
    ];
    for (name, repeats, ours, theirs) in &tasks {
        let (mut kymo_costs, mut peer_costs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            kymo_costs.push(measure(&kymo, ours, &trace, *repeats)?.cpu);
            peer_costs.push(measure(Path::new("babeltrace2"), theirs, &trace, 1)?.cpu);
        }
        let (ours, theirs) = (median(kymo_costs), median(peer_costs));
        println!(
            "{name:<22} {:>9.4}s {:>11.3}s {:>7.1}",
            ours.as_secs_f64(),
            theirs.as_secs_f64(),
            theirs.as_secs_f64() / ours.as_secs_f64().max(1e-9),
        );
    }

    rewrites(&kymo, &trace, runs)?;
    languages(&kymo, &trace, &window, runs)?;

    println!("\nmedians of wall time\n");
    println!(
        "{:<22} {:>10} {:>12} {:>7}",
        "", "1 thread", "2 threads", "ratio"
    );
    let mut most = (0, 0);
    for name in ["check", "print"] {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            one.push(measure(&kymo, &[name, "--threads=1"], &trace, 1)?.wall);
            let cost = measure(&kymo, &[name, "--threads=2"], &trace, 1)?;
            two.push(cost.wall);
            most = (most.0.max(cost.own_memory), most.1.max(cost.memory));
        }
        let (one, two) = (median(one), median(two));
        println!(
            "{name:<22} {:>9.4}s {:>11.4}s {:>7.2}",
            one.as_secs_f64(),
            two.as_secs_f64(),
            two.as_secs_f64() / one.as_secs_f64().max(1e-9),
        );
    }
    println!(
        "\npeak memory with 2 threads: {:.1} MiB beside mapped files, {:.1} MiB with them",
        most.0 as f64 / 1024.0,
        most.1 as f64 / 1024.0,
    );
    println!("(RssAnon + RssShmem and VmRSS of /proc/PID/status, looked at every millisecond)");
    Ok(())
}

/// Measures how much it costs to rewrite the trace in CTF 1.8.
fn rewrites(kymo: &Path, trace: &Path, runs: usize) -> Outcome {
    println!("\nwritten anew in CTF 1.8, medians of CPU time\n");
    println!(
        "{:<22} {:>10} {:>12} {:>7}",
        "", "kymo", "babeltrace2", "ratio"
    );
    let output = trace.with_file_name("written");
    let path = output.display().to_string();
    let remove = || match output.is_dir() {
        true => std::fs::remove_dir_all(&output),
        false => Ok(()),
    };
    let mut peer = Vec::new();
    for _ in 0..runs.min(3) {
        remove()?;
        let args = ["-o", "ctf", "-w", &path];
        peer.push(measure(Path::new("babeltrace2"), &args, trace, 1)?.cpu);
    }
    let peer = median(peer);
    for (name, more) in [
        ("whole packets", &[][..]),
        ("events copied", &["--packet-size=1M"]),
        ("events encoded anew", &["--byte-order=be"]),
    ] {
        let mut costs = Vec::new();
        for _ in 0..runs {
            remove()?;
            let args = [&["convert", "--to=ctf1.8", "-o", &path], more].concat();
            costs.push(measure(kymo, &args, trace, 1)?.cpu);
        }
        let cost = median(costs);
        println!(
            "{name:<22} {:>9.4}s {:>11.3}s {:>7.1}",
            cost.as_secs_f64(),
            peer.as_secs_f64(),
            peer.as_secs_f64() / cost.as_secs_f64().max(1e-9),
        );
    }
    Ok(remove()?)
}

/// Measures kymo on the same events in CTF 1.8 and in CTF 2.
fn languages(kymo: &Path, trace: &Path, window: &[String], runs: usize) -> Outcome {
    let twin = trace.with_file_name("twin");
    if twin.is_dir() {
        // The data streams stay; what describes them may be written otherwise by now.
        std::fs::remove_dir_all(&twin)?;
    }
    twin::make(trace, &twin)?;
    let text = |trace: &Path| -> Outcome<_> {
        let mut command = command(kymo);
        command.args(["print", "--clock-gmt"]).args(window);
        Ok(hear(command.arg(trace))?.out)
    };
    if text(trace)? != text(&twin)? {
        return Err("the CTF 2 twin of the trace is printed otherwise".into());
    }
    println!("\nthe same in CTF 1.8 and CTF 2, medians of kymo's CPU time\n");
    println!(
        "{:<22} {:>10} {:>12} {:>7}",
        "", "CTF 1.8", "CTF 2", "ratio"
    );
    for (name, args) in [
        ("check", &["check"][..]),
        ("print", &["print", "--clock-gmt"]),
    ] {
        let (mut olds, mut news) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            olds.push(measure(kymo, args, trace, 1)?.cpu);
            news.push(measure(kymo, args, &twin, 1)?.cpu);
        }
        let (old, new) = (median(olds), median(news));
        println!(
            "{name:<22} {:>9.4}s {:>11.4}s {:>7.2}",
            old.as_secs_f64(),
            new.as_secs_f64(),
            new.as_secs_f64() / old.as_secs_f64().max(1e-9),
        );
    }
    Ok(())
}

/// The trace to measure on: made once, and kept.
fn trace(tool: &Path, events: u64) -> Outcome<PathBuf> {
    let folder = root().join("target/bench").join(format!("ctf-{events}"));
    let complete = folder.join("complete");
    if !complete.is_file() {
        eprintln!("making a trace of {events} events");
        if folder.is_dir() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        make_trace(tool, events / 2, &folder.join("trace"))?;
        std::fs::write(&complete, "")?;
    }
    Ok(folder.join("trace"))
}

/// A millisecond in the middle of a trace, as two times in seconds: from the beginning of the
/// middle one of all packets.
fn middle_millisecond(trace: &Path) -> Outcome<(String, String)> {
    let recordings = conformance::open(trace)?;
    let mut begins: Vec<i64> = recordings
        .iter()
        .flat_map(|recording| (0..recording.streams().len()).flat_map(|s| recording.chunks(s)))
        .filter_map(|chunk| chunk.begin_time)
        .map(|time| time.as_nanos())
        .collect();
    begins.sort_unstable();
    let middle = *begins
        .get(begins.len() / 2)
        .ok_or("the trace has no times")?;
    let show = |nanos: i64| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    Ok((show(middle), show(middle + 1_000_000)))
}

/// Fails unless both programs print the same number of events in the window, and some.
fn same_window(kymo: &Path, trace: &Path, window: &[String]) -> Outcome {
    let lines = |program: &Path, first: Option<&str>| -> Outcome<usize> {
        let mut command = command(program);
        let said = hear(
            command
                .args(first)
                .arg("--clock-gmt")
                .args(window)
                .arg(trace),
        )?;
        Ok(said.out.split(|&byte| byte == b'\n').count() - 1)
    };
    match (
        lines(kymo, Some("print"))?,
        lines(Path::new("babeltrace2"), None)?,
    ) {
        (0, 0) => Err("no events in the window".into()),
        (ours, theirs) if ours == theirs => Ok(()),
        (ours, theirs) => Err(format!("{ours} events in the window, not {theirs}").into()),
    }
}

/// Runs a program `repeats` times on a trace, its output thrown away, and returns the mean cost.
fn measure(program: &Path, args: &[&str], trace: &Path, repeats: u32) -> Outcome<Cost> {
    let before = children()?;
    let begin = Instant::now();
    let (mut own_memory, mut memory) = (0, 0);
    for _ in 0..repeats {
        let mut child = command(program)
            .args(args)
            .arg(trace)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let (own, all) = resident(child.id());
            (own_memory, memory) = (own_memory.max(own), memory.max(all));
            std::thread::sleep(Duration::from_millis(1));
        };
        if !status.success() {
            return Err(format!("{} {args:?}: {status}", program.display()).into());
        }
    }
    Ok(Cost {
        cpu: (children()? - before) / repeats,
        wall: begin.elapsed() / repeats,
        own_memory,
        memory,
    })
}

/// User instructions of a run of a program, which are the same on every run; counted with callgrind.
fn instructions(program: &mut Command) -> Outcome<f64> {
    let mut valgrind = command("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program.get_program())
        .args(program.get_args());
    let said = hear(&mut valgrind)?;
    if said.code != Some(0) {
        return Err(format!("{program:?} failed: {}", said.err.trim()).into());
    }
    let counted = said
        .err
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let (_, count) = counted.ok_or("valgrind has not counted")?;
    Ok(count.trim().parse()?)
}

/// CPU time of all children that have ended.
fn children() -> Outcome<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}

/// Memory of a process now, in KiB: without the pages of mapped files, and with them.
fn resident(process: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kibibytes = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            .unwrap_or(0u64)
    };
    (
        kibibytes("RssAnon") + kibibytes("RssShmem"),
        kibibytes("VmRSS"),
    )
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
