//! Those who send.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use kymo_collectd::network::{Decoder, Item, Keys, Packer, PackerOptions, Security};
use kymo_collectd::{Identifier, Value};
use kymo_time::CdTime;

use super::daemon::Daemon;
use crate::Outcome;
use crate::daemons::{protection, users};
use crate::process::root;

/// The levels at which the daemon listens.
pub(super) const LEVELS: [Security; 3] = [Security::None, Security::Sign, Security::Encrypt];

/// From one round to the next.
const ROUND: Duration = Duration::from_millis(50);
/// When times begin: in the morning, so that days do not end.
const BEGIN: i64 = 1_699_920_000 + 3600;
/// Names that send datagrams, for each level.
const NAMES: usize = 50;
/// Databases of each client of rrdcached's protocol.
const DATABASES: usize = 10;
/// Rows of these: enough for half an hour.
const ROWS: usize = 40_000;
/// Clients of each protocol that hardly read.
const SLOW: usize = 3;

/// Rounds, one after the other in time, until it is time to stop.
fn rounds(stop: &AtomicBool) -> impl Iterator<Item = i64> + '_ {
    let begin = Instant::now();
    (0_u32..).map_while(move |round| {
        let due = begin + ROUND * round;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        (!stop.load(Relaxed)).then_some(round.into())
    })
}

/// By how much the clock of a round is wrong, in rounds: now and then it jumps forwards and back, or back
/// and forwards.
fn jump(round: i64) -> i64 {
    match round % 200 {
        50..53 => 30,
        120..123 => -40,
        _ => 0,
    }
}

/// What was sent as datagrams.
#[derive(Default)]
pub(super) struct Datagrams {
    pub(super) datagrams: u64,
    pub(super) lists: u64,
    /// Lists that were not after the last of their name.
    pub(super) past: u64,
    pub(super) faults: u64,
}

impl Datagrams {
    pub(super) fn add(&mut self, other: &Self) {
        self.datagrams += other.datagrams;
        self.lists += other.lists;
        self.past += other.past;
        self.faults += other.faults;
    }
}

/// What was acknowledged, and how much was not.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// By name and time.
    pub(super) values: BTreeMap<(String, i64), u32>,
    pub(super) refused: u64,
}

impl Acknowledged {
    pub(super) fn add(&mut self, other: Self) {
        self.values.extend(other.values);
        self.refused += other.refused;
    }

    /// The values of each name, by time.
    pub(super) fn by_name(&self) -> BTreeMap<&str, BTreeMap<i64, u32>> {
        let mut names = BTreeMap::<_, BTreeMap<_, _>>::new();
        for ((name, time), value) in &self.values {
            names
                .entry(name.as_str())
                .or_default()
                .insert(*time, *value);
        }
        names
    }
}

/// Sends lists of all names in each round, at one level of security.
pub(super) fn datagrams(daemon: &Daemon, level: Security, stop: &AtomicBool) -> Outcome<Datagrams> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", daemon.port(level)))?;
    let mut packer = Packer::new(PackerOptions {
        protection: protection(level),
        ..PackerOptions::default()
    })?;
    let mut sent = Datagrams::default();
    let names: Vec<String> = (0..NAMES).map(|name| name.to_string()).collect();
    let mut last = i64::MIN;
    for round in rounds(stop) {
        let time = BEGIN + round + jump(round);
        sent.past += if time > last { 0 } else { NAMES as u64 };
        last = last.max(time);
        let mut send = |datagram: Option<Vec<u8>>| -> Outcome {
            if let Some(datagram) = datagram {
                socket.send(&datagram)?;
                sent.datagrams += 1;
            }
            Ok(())
        };
        for name in &names {
            let id = Identifier {
                host: level.as_str(),
                plugin: "soak",
                plugin_instance: "",
                type_name: "gauge",
                type_instance: name,
            };
            let (time, interval) = (CdTime::from_seconds(time)?, CdTime::from_seconds(1)?);
            let values = [Value::Gauge(round as f64)];
            send(packer.values(&id, time, interval, &values)?)?;
        }
        send(packer.flush())?;
        sent.lists += NAMES as u64;
    }
    Ok(sent)
}

/// Sends damaged datagrams to all ports: those that are tried at each test, with some bytes changed. None
/// that has values for the daemon is sent.
pub(super) fn hostile(daemon: &Daemon, stop: &AtomicBool) -> Outcome<Datagrams> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(root().join("fuzz/corpus/collectd_network"))? {
        let bytes = std::fs::read(entry?.path())?;
        seeds.extend(bytes.get(1..).map(<[u8]>::to_vec));
    }
    let mut sent = Datagrams::default();
    // Any sequence without a pattern will do.
    let mut state = 1_u32;
    let mut random = move |most: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % most.max(1)
    };
    for _ in rounds(stop) {
        for _ in 0..10 {
            let mut datagram = seeds[random(seeds.len())].clone();
            for _ in 0..random(4) {
                let at = random(datagram.len());
                if let Some(byte) = datagram.get_mut(at) {
                    *byte = random(256) as u8;
                }
            }
            let level = LEVELS[random(LEVELS.len())];
            let decoder = Decoder {
                level,
                keys: Some(Keys::parse(users().as_bytes())?),
            };
            let (mut faults, mut is_fine) = (0, false);
            decoder.decode(&datagram, &mut (), &mut |item| match item {
                Item::Fault(_) => faults += 1,
                _ => is_fine = true,
            });
            if !is_fine {
                socket.send_to(&datagram, ("127.0.0.1", daemon.port(level)))?;
                sent.datagrams += 1;
                sent.faults += faults;
            }
        }
    }
    Ok(sent)
}

/// A connection of lines.
struct Talk {
    reader: BufReader<UnixStream>,
}

impl Talk {
    fn new(socket: &Path) -> Outcome<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        self.reader.get_mut().write_all(text.as_bytes())
    }

    /// The next line, without its end.
    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_string()),
        }
    }
}

/// Updates databases by rrdcached's protocol, one by one or in batches.
pub(super) fn updates(daemon: &Daemon, batches: bool, stop: &AtomicBool) -> Outcome<Acknowledged> {
    let mut talk = Talk::new(&daemon.socket("rrdcached"))?;
    let way = if batches { "batch" } else { "line" };
    let names: Vec<String> = (0..DATABASES).map(|it| format!("{way}-{it}.rrd")).collect();
    for name in &names {
        talk.send(&format!(
            "CREATE {name} -b {} -s 10 DS:value:GAUGE:100000:U:U RRA:AVERAGE:0.5:1:{ROWS}\n",
            BEGIN - 10
        ))?;
        let answer = talk.line()?;
        if !answer.starts_with('0') {
            return Err(answer.into());
        }
    }
    let mut known = Acknowledged::default();
    for round in rounds(stop) {
        // Rows end with these times; what jumps forwards would stand in the way of much.
        let time = BEGIN / 10 * 10 + 10 * (round + jump(round).min(0));
        let value = u32::try_from(round)?;
        let lines = names
            .iter()
            .map(|name| format!("UPDATE {name} {time}:{value}\n"));
        let mut refused = vec![false; names.len()];
        if batches {
            talk.send(&format!("BATCH\n{}.\n", lines.collect::<String>()))?;
            talk.line()?;
            let answer = talk.line()?;
            let errors = answer.split(' ').next().unwrap_or_default();
            for _ in 0..errors.parse::<usize>()? {
                let error = talk.line()?;
                let line: usize = error.split(' ').next().unwrap_or_default().parse()?;
                *refused.get_mut(line - 1).ok_or("an error of no line")? = true;
            }
        } else {
            talk.send(&lines.collect::<String>())?;
            for refused in &mut refused {
                *refused = talk.line()?.starts_with('-');
            }
        }
        for (name, refused) in names.iter().zip(refused) {
            match refused {
                true => known.refused += 1,
                false => {
                    known.values.insert((name.clone(), time), value);
                }
            }
        }
    }
    Ok(known)
}

/// Gives values by collectd's text protocol. Where the daemon cannot promise to keep them, it ends the
/// connection.
pub(super) fn lines(daemon: &Daemon, stop: &AtomicBool) -> Outcome<Acknowledged> {
    let socket = daemon.socket("unixsock");
    let mut talk = Talk::new(&socket)?;
    let mut known = Acknowledged::default();
    for round in rounds(stop) {
        let time = BEGIN + round;
        for name in 0..5 {
            let name = format!("text/soak/gauge-{name}");
            let asked = talk.send(&format!("PUTVAL {name} interval=1 {time}:{round}\n"));
            match asked.and_then(|()| talk.line()) {
                Ok(reply) if reply.starts_with('0') => {
                    known.values.insert((name, time), u32::try_from(round)?);
                }
                _ => {
                    known.refused += 1;
                    talk = Talk::new(&socket)?;
                }
            }
        }
    }
    Ok(known)
}

/// Clients that ask for much, and read one byte in each round.
pub(super) fn slow_readers(daemon: &Daemon, stop: &AtomicBool) -> Outcome {
    let asks = [
        (
            "rrdcached",
            "HELP\nLIST RECURSIVE /\nFETCH line-0.rrd AVERAGE\nSTATS\n",
        ),
        ("unixsock", "LISTVAL\nGETVAL text/soak/gauge-0\nnonsense\n"),
    ];
    let connect = |name: &str| -> Outcome<UnixStream> {
        let stream = UnixStream::connect(daemon.socket(name))?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    let mut clients = Vec::new();
    for (name, lines) in asks {
        for _ in 0..SLOW {
            clients.push((name, lines, connect(name)?));
        }
    }
    for _ in rounds(stop) {
        for (name, lines, stream) in &mut clients {
            let done = stream
                .write(lines.as_bytes())
                .and_then(|_| stream.read(&mut [0]));
            match done {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let _ = stream.read(&mut [0]);
                }
                // The daemon has left who does not read.
                Ok(0) | Err(_) => *stream = connect(name)?,
            }
        }
    }
    Ok(())
}
