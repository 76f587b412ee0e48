//! Samples that `kymo serve` takes with a journal: lines of Graphite and of InfluxDB, and Prometheus' remote write.

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::serve::cpu;
use crate::Outcome;
use crate::args::Args;
use crate::daemons::{Metrics, Running, free_port, http_body};
use crate::process::{build_kymo, command};

/// Series, each of a database.
const SERIES: u64 = 1000;
/// How long the daemon has to begin or to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How samples are sent.
#[derive(Clone, Copy)]
enum Way {
    Graphite,
    Influx,
    RemoteWrite,
}

/// `cargo xtask bench taking`.
pub(super) fn run(mut args: Args) -> Outcome {
    let samples: u64 = args.value("--samples")?.unwrap_or(1_000_000);
    let ours: Option<PathBuf> = args.value("--ours")?;
    args.finish()?;
    let kymo = ours.map_or_else(|| build_kymo(true), Ok)?;
    let rounds = (samples / SERIES).max(20);
    println!(
        "{} samples of {SERIES} series, with a journal\n",
        rounds * SERIES
    );
    println!(
        "{:<28} {:>12} {:>20}",
        "", "by the clock", "by CPU of the daemon"
    );
    for (name, table, way) in [
        ("Graphite, TCP", "graphite", Way::Graphite),
        ("InfluxDB's lines, HTTP", "influx", Way::Influx),
        ("remote write 1", "remote-write", Way::RemoteWrite),
    ] {
        let (clock, cpu) = taken(&kymo, table, way, rounds)?;
        let count = ((rounds - rounds / 10) * SERIES) as f64;
        println!(
            "{name:<28} {:>10.0}/s {:>18.0}/s",
            count / clock.as_secs_f64(),
            count / cpu.as_secs_f64()
        );
    }
    Ok(())
}

/// Sends all rounds of samples, and returns how long the last nine tenths took by the clock and of the daemon's CPU:
/// until they are acknowledged, or read where nothing is acknowledged.
fn taken(kymo: &Path, table: &str, way: Way, rounds: u64) -> Outcome<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let (port, metrics) = (free_port()?, free_port()?);
    let prefix = if table == "graphite" { "tcp:" } else { "" };
    let config = format!(
        "data = {:?}\n[journal]\ndirectory = {:?}\n[{table}]\nlisten = [\"{prefix}127.0.0.1:{port}\"]\n\
         [metrics]\nlisten = \"127.0.0.1:{metrics}\"\n[[storage]]\nstep = 1\narchives = [\"1s:1h\"]\n",
        folder.path().join("data"),
        folder.path().join("journal"),
    );
    let file = folder.path().join("kymo.toml");
    std::fs::write(&file, config)?;
    let log = folder.path().join("log");
    let daemon = Running::begin(command(kymo).args(["serve", "--config"]).arg(&file), &log)?;
    let metrics = Metrics { port: metrics, log };
    let wait_for = |samples| {
        let is_all = |accepted| accepted == samples;
        metrics.wait("updates_accepted_total", PATIENCE, is_all)
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let begin = now - rounds - 10;
    // What is sent is made before, so that it costs no time.
    let warm = rounds / 10;
    let requests = |from, to| -> Outcome<Vec<Vec<u8>>> {
        let mut requests = Vec::new();
        for first in (from..to).step_by(5) {
            requests.push(request(way, begin, first..(first + 5).min(to))?);
        }
        Ok(requests)
    };
    let (first, rest) = (requests(0, warm)?, requests(warm, rounds)?);
    let mut stream = connect(port)?;
    for request in &first {
        send(&mut stream, way, request)?;
    }
    wait_for(warm * SERIES)?;
    let (used, since) = (cpu(daemon.id())?, Instant::now());
    for request in &rest {
        send(&mut stream, way, request)?;
    }
    if matches!(way, Way::Graphite) {
        // It closes the connection when it has read the last line.
        stream.get_ref().shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new())?;
    }
    let clock = since.elapsed();
    let used = cpu(daemon.id())?.saturating_sub(used);
    wait_for(rounds * SERIES)?;
    daemon.end()?;
    Ok((clock, used))
}

fn connect(port: u16) -> Outcome<BufReader<TcpStream>> {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(BufReader::new(stream));
            }
            Err(error) if Instant::now() > end => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Samples of all series at some seconds, as they are sent at once.
fn request(way: Way, begin: u64, rounds: std::ops::Range<u64>) -> Outcome<Vec<u8>> {
    let mut text = String::new();
    let all = (0..SERIES).flat_map(|series| rounds.clone().map(move |round| (series, round)));
    match way {
        Way::Graphite => {
            for (series, round) in all {
                let (host, cpu) = (series / 10, series % 10);
                writeln!(text, "hosts.h{host}.cpu.c{cpu} {round}.5 {}", begin + round)?;
            }
            Ok(text.into_bytes())
        }
        Way::Influx => {
            for (series, round) in all {
                let (host, cpu) = (series / 10, series % 10);
                writeln!(
                    text,
                    "cpu,host=h{host},c=c{cpu} value={round}.5 {}",
                    begin + round
                )?;
            }
            Ok(post("/write?db=x&precision=s", "", text.as_bytes()))
        }
        Way::RemoteWrite => {
            let mut body = Vec::new();
            for series in 0..SERIES {
                let mut message = Vec::new();
                let (host, cpu) = (format!("h{}", series / 10), format!("c{}", series % 10));
                for (name, value) in [("__name__", "cpu"), ("c", &cpu), ("host", &host)] {
                    let mut label = Vec::new();
                    field(&mut label, 1, name.as_bytes());
                    field(&mut label, 2, value.as_bytes());
                    field(&mut message, 1, &label);
                }
                for round in rounds.clone() {
                    let mut sample = vec![0x09];
                    sample.extend((round as f64 + 0.5).to_le_bytes());
                    sample.push(0x10);
                    varint(&mut sample, (begin + round) * 1000);
                    field(&mut message, 2, &sample);
                }
                field(&mut body, 1, &message);
            }
            let body = snap::raw::Encoder::new().compress_vec(&body)?;
            let headers = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
            Ok(post("/api/v1/write", headers, &body))
        }
    }
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Appends a field of protobuf that has a length.
fn field(to: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    to.push(number << 3 | 2);
    varint(to, bytes.len() as u64);
    to.extend(bytes);
}

fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Sends it, and waits for the answer if there is one.
fn send(stream: &mut BufReader<TcpStream>, way: Way, request: &[u8]) -> Outcome {
    stream.get_mut().write_all(request)?;
    if matches!(way, Way::Graphite) {
        return Ok(());
    }
    http_body(stream).map(drop)
}
