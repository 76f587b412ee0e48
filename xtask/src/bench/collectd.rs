//! collectd's values: what it costs to decode datagrams, and how many lists `kymo serve` and collectd
//! take and bring into databases.

use std::hint::black_box;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_collectd::network::{Decoder, Item, Keys, Packer, PackerOptions, Security};
use kymo_collectd::{Identifier, Value};
use kymo_time::CdTime;

use super::machine::cpu_time;
use super::median;
use super::serve::cpu;
use crate::Outcome;
use crate::args::Args;
use crate::daemons::{Metrics, Running, free_port, free_udp_port, protection, users};
use crate::process::{build_kymo, command, require, root};

/// Names of lists.
const SERIES: u64 = 1000;
/// The first time, in seconds.
const BEGIN: i64 = 1_700_000_000;
/// Maximum bytes of datagrams in a daemon's socket, as the kernel counts them: less than the least that a
/// socket has room for, unless it asks for more.
const WAITING: u64 = 160 << 10;
/// Maximum number of bytes that the kernel counts for a datagram.
const DATAGRAM: u64 = 4 << 10;
/// How long a daemon with that much pending is left alone.
const REST: Duration = Duration::from_micros(200);
/// Number of rates that are tried before giving up.
const TRIES: usize = 20;
/// Nothing is done any more when no CPU time was used for so long.
const IDLE: Duration = Duration::from_millis(1500);

/// `cargo xtask bench collectd`.
pub(super) fn run(mut args: Args) -> Outcome {
    let runs: usize = args.value("--runs")?.unwrap_or(3).max(1);
    let rounds: u64 = args.value("--rounds")?.unwrap_or(1000).max(1);
    args.finish()?;
    if cfg!(debug_assertions) {
        let how = "cargo run --release -p xtask -- bench collectd";
        return Err(format!("what is measured must be optimised: `{how}`").into());
    }
    require("collectd", "collectd-core")?;
    let kymo = build_kymo(true)?;
    decoding(runs)?;
    println!(
        "\n{SERIES} series, {rounds} lists of each (of collectd a tenth), {runs} alternating runs, medians: lists a \
         second by the clock from the first to the last that is done, at the highest rate at which none was lost, \
         and CPU time for each\n"
    );
    let mut costs: [Vec<Cost>; 2] = Default::default();
    for _ in 0..runs {
        costs[0].push(sustained(Side::Kymo(&kymo), rounds)?);
        costs[1].push(sustained(Side::Collectd, rounds.div_ceil(10))?);
    }
    let seconds = |side: usize, what: fn(&Cost) -> Duration| {
        median(costs[side].iter().map(what).collect()).as_secs_f64()
    };
    for (side, name) in ["kymo serve", "collectd"].into_iter().enumerate() {
        println!(
            "{name:<12} {:>10.0}/s {:>8.0} ns",
            1.0 / seconds(side, |cost| cost.wall),
            seconds(side, |cost| cost.cpu) * 1e9,
        );
    }
    println!(
        "ratio        {:>10.2}   {:>8.2}",
        seconds(1, |cost| cost.wall) / seconds(0, |cost| cost.wall),
        seconds(1, |cost| cost.cpu) / seconds(0, |cost| cost.cpu)
    );
    Ok(())
}

/// Datagrams of one round of all series.
fn round(packer: &mut Packer, number: u64) -> Outcome<Vec<Vec<u8>>> {
    let time = CdTime::from_seconds(BEGIN + 10 * number.cast_signed())?;
    let interval = CdTime::from_seconds(10)?;
    let mut datagrams = Vec::new();
    for series in 0..SERIES {
        let (plugin, instance) = ((series / 10).to_string(), (series % 10).to_string());
        let id = Identifier {
            host: "bench.example",
            plugin: "load",
            plugin_instance: &plugin,
            type_name: "gauge",
            type_instance: &instance,
        };
        let value = Value::Gauge((number * series) as f64 * 0.25);
        datagrams.extend(packer.values(&id, time, interval, &[value])?);
    }
    datagrams.extend(packer.flush());
    Ok(datagrams)
}

/// Decoding from memory.
fn decoding(runs: usize) -> Outcome {
    println!("decoding from memory, {runs} runs, medians of CPU time of one core\n");
    for level in [Security::None, Security::Sign, Security::Encrypt] {
        let mut packer = Packer::new(PackerOptions {
            protection: protection(level),
            ..PackerOptions::default()
        })?;
        let datagrams = round(&mut packer, 1)?;
        let keys = Keys::parse(users().as_bytes())?;
        let keys = (level > Security::None).then_some(keys);
        let decoder = Decoder { level, keys };
        let repeats = 1000;
        let mut times = Vec::new();
        for _ in 0..runs {
            let mut lists = 0;
            times.push(cpu_time(1, || {
                for _ in 0..repeats {
                    for datagram in &datagrams {
                        decoder.decode(black_box(datagram), &mut (), &mut |item| {
                            lists += u64::from(matches!(black_box(item), Item::Values(_)));
                        });
                    }
                }
            })?);
            if lists != repeats * SERIES {
                return Err("not all was decoded".into());
            }
        }
        let each = median(times).as_secs_f64() / (repeats * SERIES) as f64;
        println!("{:<8} {:>6.1} M lists/s", level.as_str(), 1e-6 / each);
    }
    Ok(())
}

/// What a list costs, and how many were lost.
struct Cost {
    wall: Duration,
    cpu: Duration,
    lost: u64,
}

#[derive(Clone, Copy)]
enum Side<'a> {
    Kymo(&'a Path),
    Collectd,
}

/// What a list costs at the highest rate, but for steps of a tenth, at which a daemon loses none.
fn sustained(side: Side<'_>, rounds: u64) -> Outcome<Cost> {
    let mut rate = f64::INFINITY;
    for _ in 0..TRIES {
        let (cost, sent) = one(side, rounds, rate)?;
        if cost.lost == 0 {
            return Ok(cost);
        }
        rate = rate.min(sent) * 0.9;
    }
    Err(format!("lists were lost {TRIES} times, the last time at {rate:.0} a second").into())
}

/// Runs one daemon once, with at most `rate` lists a second; returns the actual rate, too.
fn one(side: Side<'_>, rounds: u64, rate: f64) -> Outcome<(Cost, f64)> {
    let folder = root().join("target/bench/collectd");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let (port, metrics) = (free_udp_port()?, free_port()?);
    let running = begin(side, &folder, port, metrics)?;
    let metrics = Metrics {
        port: metrics,
        log: folder.join("log"),
    };
    let process = running.id();
    std::thread::sleep(Duration::from_secs(1));
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", port))?;
    let mut packer = Packer::new(PackerOptions::default())?;
    // The databases are made first.
    for datagram in round(&mut packer, 0)? {
        socket.send(&datagram)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    idle(process)?;
    let all = (1..=rounds)
        .map(|number| round(&mut packer, number))
        .collect::<Outcome<Vec<_>>>()?;
    let lists = rounds * SERIES;
    let datagrams = all.iter().map(Vec::len).sum::<usize>();
    let (before, begun) = (cpu(process)?, Instant::now());
    // What the socket has no room for would be lost: its reader is waited for. To ask how much waits costs more
    // than to send, and takes CPU time from the daemon: it is asked when what is known to be free is used up.
    let mut free = 0;
    for (number, datagram) in all.iter().flatten().enumerate() {
        let due = lists as f64 * number as f64 / datagrams as f64 / rate;
        while begun.elapsed().as_secs_f64() < due {
            std::thread::sleep(REST);
        }
        while free < DATAGRAM {
            free = WAITING.saturating_sub(queued(port)?);
            if free < WAITING / 2 {
                free = 0;
                std::thread::sleep(REST);
            }
        }
        socket.send(datagram)?;
        free -= DATAGRAM;
    }
    let sent = lists as f64 / begun.elapsed().as_secs_f64();
    let end = idle(process)?;
    let wall = end.duration_since(begun);
    let cpu = cpu(process)?.saturating_sub(before);
    let lost = match side {
        Side::Kymo(_) => (lists + SERIES).saturating_sub(metrics.get("lists_total")?),
        Side::Collectd => 0,
    } + dropped(port)?;
    let cost = Cost {
        wall: wall / u32::try_from(lists)?,
        cpu: cpu / u32::try_from(lists)?,
        lost,
    };
    Ok((cost, sent))
}

fn begin(side: Side<'_>, folder: &Path, port: u16, metrics: u16) -> Outcome<Running> {
    let shown = folder.display();
    let (program, words) = match side {
        Side::Kymo(kymo) => {
            let words = format!(
                "serve --data {shown}/rrd --collectd 127.0.0.1:{port} --metrics 127.0.0.1:{metrics} \
                 --write-timeout 1"
            );
            (kymo.to_path_buf(), words)
        }
        Side::Collectd => {
            let conf = format!(
                "Hostname \"own.example\"\nFQDNLookup false\nBaseDir \"{shown}\"\n\
                 PIDFile \"{shown}/pid\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
                 LoadPlugin network\n<Plugin network>\nListen \"127.0.0.1\" \"{port}\"\n</Plugin>\n\
                 LoadPlugin rrdtool\n<Plugin rrdtool>\nDataDir \"{shown}/rrd\"\nCacheTimeout 1\n\
                 CacheFlush 10\n</Plugin>\n"
            );
            std::fs::write(folder.join("collectd.conf"), conf)?;
            let program = PathBuf::from("/usr/sbin/collectd");
            (program, format!("-f -C {shown}/collectd.conf"))
        }
    };
    Running::begin(
        command(&program).args(words.split(' ')),
        &folder.join("log"),
    )
}

/// Waits until a process is idle, and returns when it last did something.
fn idle(process: u32) -> Outcome<Instant> {
    let (mut used, mut since) = (cpu(process)?, Instant::now());
    while since.elapsed() < IDLE {
        std::thread::sleep(Duration::from_millis(10));
        let now = cpu(process)?;
        // A daemon that waits wakes up from time to time.
        if now > used + Duration::from_millis(10) {
            (used, since) = (now, Instant::now());
        }
    }
    Ok(since)
}

/// Bytes that wait in the socket of a port.
fn queued(port: u16) -> Outcome<u64> {
    let line = socket(port)?;
    let queues = line.split_whitespace().nth(4).unwrap_or_default();
    let (_, received) = queues.split_once(':').unwrap_or_default();
    Ok(u64::from_str_radix(received, 16)?)
}

/// Datagrams that the socket of a port had no room for.
fn dropped(port: u16) -> Outcome<u64> {
    let line = socket(port)?;
    let drops = line.split_whitespace().last().unwrap_or_default();
    Ok(drops.parse()?)
}

/// What Linux reports about the socket that listens at a port.
fn socket(port: u16) -> Outcome<String> {
    let address = format!(" 0100007F:{port:04X} ");
    let text = std::fs::read_to_string("/proc/net/udp")?;
    let line = text.lines().find(|line| line.contains(&address));
    Ok(line.ok_or("nobody listens")?.to_string())
}
