//! collectd sends to `kymo serve`: every value arrives with its exact time, and new databases are
//! those that collectd's rrdtool plugin makes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymo_collectd::Value;
use kymo_collectd::network::{Decoder, Item};
use kymo_rrd::Source;
use kymo_time::CdTime;
use nix::sys::signal::Signal;

use super::Counts;
use crate::Outcome;
use crate::daemons::{ALICE, BOB, Metrics, Running, free_port, free_udp_port, users};
use crate::process::{command, hear, require, root};

/// How long collectd sends.
const RUN: Duration = Duration::from_secs(20);
/// How long a daemon has for what it is asked.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was sent: by name, lines of time and values.
type Lists = BTreeMap<String, BTreeSet<String>>;

/// A `kymo serve` that takes collectd's datagrams.
struct Daemon {
    running: Running,
    folder: PathBuf,
    port: u16,
    metrics: Metrics,
}

impl Daemon {
    fn begin(kymo: &Path, folder: PathBuf, level: &str) -> Outcome<Self> {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("auth"), users())?;
        let port = free_udp_port()?;
        let metrics = Metrics {
            port: free_port()?,
            log: folder.join("log"),
        };
        let at = |name: &str| folder.join(name).display().to_string();
        let socket = format!("unix:{}", at("rrdcached"));
        let words = [
            "serve",
            "--data",
            &at("rrd"),
            "--csv",
            &at("csv"),
            "--journal",
            &at("journal"),
            "--rrdcached",
            &socket,
            "--collectd",
            &format!("127.0.0.1:{port}"),
            "--security",
            level,
            "--auth-file",
            &at("auth"),
            "--metrics",
            &format!("127.0.0.1:{}", metrics.port),
        ];
        let running = Running::begin(command(kymo).args(words), &metrics.log)?;
        let daemon = Self {
            running,
            folder,
            port,
            metrics,
        };
        daemon.wait("databases", 0)?;
        Ok(daemon)
    }

    /// Waits until something has come to a number.
    fn wait(&self, name: &str, expected: u64) -> Outcome {
        self.metrics.wait(name, PATIENCE, |found| found >= expected)
    }
}

/// `cargo xtask interop --only collectd`.
pub(super) fn run(kymo: &Path) -> Outcome<Counts> {
    require("collectd", "collectd-core")?;
    require("rrdtool", "rrdtool")?;
    // collectd does not create directories below one whose name begins with a dot.
    let folder = root().join("target/interop/collectd");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    let at = |name: &str| folder.join(name);
    let signed = Daemon::begin(kymo, at("sign"), "sign")?;
    let encrypted = Daemon::begin(kymo, at("encrypt"), "encrypt")?;
    let whole = Daemon::begin(kymo, at("whole"), "none")?;
    // What is sent without protection is looked at here.
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let servers = [
        server(socket.local_addr()?.port(), ""),
        server(signed.port, &secured("Sign", ALICE)),
        server(encrypted.port, &secured("Encrypt", BOB)),
    ];
    let collectd = collectd(&at("fast"), "0.1", &servers.concat(), "")?;
    let rrdtool = format!(
        "LoadPlugin rrdtool\n<Plugin rrdtool>\nDataDir \"{}\"\nCreateFilesAsync false\n\
         CacheTimeout 0\n</Plugin>\n",
        at("slow/rrd").display()
    );
    let slow = self::collectd(&at("slow"), "1", &server(whole.port, ""), &rrdtool)?;
    let ends = Arc::new(AtomicBool::new(false));
    let receives = {
        let ends = Arc::clone(&ends);
        std::thread::spawn(move || receive(&socket, &ends).map_err(|error| error.to_string()))
    };
    std::thread::sleep(RUN);
    // What they have not sent yet, they send at their end.
    collectd.end()?;
    slow.end()?;
    ends.store(true, Ordering::Relaxed);
    let sent = receives.join().map_err(|_| "the receiver panicked")??;
    let mut counts = Counts::default();
    for daemon in [signed, encrypted] {
        compare(daemon, &sent, &at("fast/csv"), &mut counts)?;
    }
    definitions(whole, &at("slow/rrd"), &mut counts)?;
    Ok(counts)
}

fn server(port: u16, options: &str) -> String {
    format!("<Server \"127.0.0.1\" \"{port}\">\n{options}</Server>\n")
}

/// What is sent as a user.
fn secured(level: &str, (user, password): (&str, &str)) -> String {
    format!("SecurityLevel {level}\nUsername \"{user}\"\nPassword \"{password}\"\n")
}

/// Begins collectd in a folder.
fn collectd(folder: &Path, interval: &str, servers: &str, more: &str) -> Outcome<Running> {
    std::fs::create_dir_all(folder)?;
    let shown = folder.display();
    let conf = format!(
        "Hostname \"host.example\"\nFQDNLookup false\nBaseDir \"{shown}\"\nPIDFile \"{shown}/pid\"\n\
         TypesDB \"/usr/share/collectd/types.db\"\nInterval {interval}\nLoadPlugin logfile\n\
         <Plugin logfile>\nLogLevel info\nFile \"{shown}/log\"\n</Plugin>\nLoadPlugin cpu\n\
         LoadPlugin memory\nLoadPlugin load\nLoadPlugin interface\nLoadPlugin network\n\
         <Plugin network>\n{servers}</Plugin>\nLoadPlugin csv\n<Plugin csv>\n\
         DataDir \"{shown}/csv\"\nStoreRates false\n</Plugin>\n{more}"
    );
    let file = folder.join("collectd.conf");
    std::fs::write(&file, conf)?;
    // It is not where users have their programs.
    let mut program = command("/usr/sbin/collectd");
    Running::begin(program.args(["-f", "-C"]).arg(file), &folder.join("err"))
}

/// Everything that arrives until the end, and what follows at once.
fn receive(socket: &UdpSocket, ends: &AtomicBool) -> std::io::Result<Lists> {
    socket.set_read_timeout(Some(Duration::from_millis(300)))?;
    let mut lists = Lists::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                match ends.load(Ordering::Relaxed) {
                    true => return Ok(lists),
                    false => continue,
                }
            }
            Err(error) => return Err(error),
        };
        Decoder::default().decode(&buffer[..length], &mut (), &mut |item| {
            if let Item::Values(list) = item {
                let line = line(list.time, list.values.iter());
                let id = list.id.canonical();
                lists.entry(id).or_default().insert(line);
            }
        });
    }
}

/// A list as a line: its exact time, and values with all their digits.
fn line(time: CdTime, values: impl Iterator<Item = Value>) -> String {
    let mut line = time.lossless();
    for value in values {
        line += &match value {
            Value::Gauge(number) if number.is_nan() => ",nan".to_string(),
            Value::Gauge(number) => format!(",{number}"),
            value => format!(",{value}"),
        };
    }
    line
}

/// The lines of all files of comma-separated values below a folder, by name.
fn files(folder: &Path) -> Outcome<Lists> {
    let mut lists = Lists::new();
    for host in super::entries(folder)? {
        for plugin in super::entries(&host)? {
            for file in super::entries(&plugin)? {
                let path = file.strip_prefix(folder)?.display().to_string();
                // `-YYYY-MM-DD`
                let id = path[..path.len() - 11].to_string();
                let text = std::fs::read_to_string(&file)?;
                let lines = text.lines().skip(1).map(str::to_string);
                lists.entry(id).or_default().extend(lines);
            }
        }
    }
    Ok(lists)
}

/// Compares what a daemon has with what was sent, and with what collectd has written itself.
fn compare(daemon: Daemon, sent: &Lists, own: &Path, counts: &mut Counts) -> Outcome {
    let level = daemon.folder.file_name().unwrap_or_default();
    let level = level.to_string_lossy().into_owned();
    let count: usize = sent.values().map(BTreeSet::len).sum();
    counts.holds(&format!("collectd has sent {count} lists"), count > 1000);
    daemon.wait("lists_total", count as u64)?;
    // Once may be too early for lists whose databases are being created.
    let metrics = &daemon.metrics;
    metrics.wait("updates_written_total", PATIENCE, |found| {
        let is_done = found >= count as u64;
        is_done || daemon.running.signal(Signal::SIGUSR1).is_err()
    })?;
    for (name, expected) in [
        ("lists_total", count as u64),
        ("updates_written_total", count as u64),
        ("updates_refused_total", 0),
        ("lists_dropped_total", 0),
        ("datagrams_faults_total", 0),
        ("datagrams_dropped_total", 0),
        ("datagrams_kernel_dropped_total", 0),
    ] {
        let what = format!("{level}: {name} is {expected}");
        counts.holds(&what, daemon.metrics.get(name)? == expected);
    }
    let socket = format!("unix:{}", daemon.folder.join("rrdcached").display());
    for words in [
        vec!["last"],
        vec!["info"],
        vec!["fetch"],
        vec!["flushcached"],
    ] {
        let mut rrdtool = command("rrdtool");
        rrdtool.args(&words).args(["--daemon", &socket]);
        rrdtool.arg(daemon.folder.join("rrd/host.example/load/load.rrd"));
        if words == ["fetch"] {
            rrdtool.arg("AVERAGE");
        }
        let said = hear(&mut rrdtool)?;
        let what = format!("{level}: rrdtool {} --daemon", words[0]);
        counts.holds(&what, said.code == Some(0));
    }
    let folder = daemon.folder.clone();
    daemon.running.end()?;
    let found = files(&folder.join("csv"))?;
    let same = found == *sent;
    counts.holds(&format!("{level}: every list with its exact time"), same);
    let mut lasts = true;
    for (id, lines) in sent {
        let bytes = std::fs::read(folder.join("rrd").join(format!("{id}.rrd")))?;
        let last = Source::open(&bytes, None)?.database.state.last_update;
        let expected = lines.last().and_then(|line| line.split(',').next());
        let expected = CdTime::from_decimal(expected.unwrap_or_default())?;
        let (seconds, micros) = last.to_micros();
        lasts &= seconds as u64 * 1_000_000 + u64::from(micros) == expected.to_micros();
    }
    counts.holds(&format!("{level}: databases end with the last list"), lasts);
    // collectd's own files have milliseconds.
    let of_collectd: usize = files(own)?.values().map(BTreeSet::len).sum();
    let what = format!("{level}: as many lists as collectd has written, {of_collectd}");
    counts.holds(&what, of_collectd == count);
    Ok(())
}

/// Compares the databases that a daemon has made with those of collectd's rrdtool plugin.
fn definitions(daemon: Daemon, theirs: &Path, counts: &mut Counts) -> Outcome {
    let ours = daemon.folder.join("rrd");
    daemon.running.end()?;
    for host in super::entries(theirs)? {
        for plugin in super::entries(&host)? {
            for file in super::entries(&plugin)? {
                let path = file.strip_prefix(theirs)?;
                let shown = path.display();
                let (ours, theirs) = (defined(&ours.join(path))?, defined(&file)?);
                let what = format!("{shown}: the definitions of collectd's rrdtool plugin");
                counts.equal(&what, ours.as_bytes(), theirs.as_bytes());
            }
        }
    }
    Ok(())
}

/// What rrdtool reports about the definitions of a database.
fn defined(file: &Path) -> Outcome<String> {
    let said = hear(command("rrdtool").arg("info").arg(file))?;
    let text = String::from_utf8(said.out)?;
    const WANTED: [&str; 9] = [
        "step =",
        "].index =",
        "].type =",
        "].minimal_heartbeat =",
        "].min =",
        "].max =",
        "].cf =",
        "].rows =",
        "].pdp_per_row =",
    ];
    let is_wanted =
        |line: &&str| WANTED.iter().any(|part| line.contains(part)) || line.contains("].xff =");
    let lines: Vec<_> = text.lines().filter(is_wanted).collect();
    Ok(lines.join("\n"))
}
