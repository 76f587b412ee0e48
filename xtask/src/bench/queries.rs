//! Range queries of many clients at `kymo serve` while others update its databases: how long both take, and whether
//! anything is lost.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_rrd::Source;

use crate::Outcome;
use crate::args::Args;
use crate::daemons::{Running, free_port, http_body};
use crate::process::{build_kymo, command};

/// How long the daemon has to begin, and a query to be answered.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of the stack of a client's thread.
const STACK: usize = 256 << 10;

/// What is asked and updated.
#[derive(Clone, Copy)]
struct Load {
    clients: usize,
    /// Updates a second.
    rate: u64,
    seconds: u64,
    files: u64,
}

impl Load {
    /// Updates of each database.
    fn rounds(self) -> u64 {
        (self.rate * self.seconds / self.files).max(1)
    }
}

/// `cargo xtask bench queries`.
pub(super) fn run(mut args: Args) -> Outcome {
    let load = Load {
        clients: args.value("--clients")?.unwrap_or(50).max(1),
        rate: args.value("--rate")?.unwrap_or(10_000).max(1),
        seconds: args.value("--seconds")?.unwrap_or(5).max(1),
        files: args.value("--files")?.unwrap_or(500).max(1),
    };
    let ours: Option<PathBuf> = args.value("--ours")?;
    args.finish()?;
    let kymo = ours.map_or_else(|| build_kymo(true), Ok)?;
    let folder = tempfile::tempdir()?;
    let (data, socket) = (folder.path().join("data"), folder.path().join("sock"));
    std::fs::create_dir(&data)?;
    let port = free_port()?;
    let config = format!(
        "data = {data:?}\n[rrdcached]\nlisten = [\"unix:{}\"]\n[metrics]\nlisten = []\n[query]\n\
         listen = [\"127.0.0.1:{port}\"]\nconnections = {}\nrefresh = 1\n",
        socket.display(),
        load.clients + 10
    );
    let file = folder.path().join("kymo.toml");
    std::fs::write(&file, config)?;
    let daemon = Running::begin(
        command(&kymo).args(["serve", "--config"]).arg(&file),
        &folder.path().join("log"),
    )?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    // Enough of the past to ask for, and nothing of the future.
    let begin = now - load.rounds() - 10;
    let mut updates = Updates::connect(&socket)?;
    updates.create(load, begin)?;
    let stop = AtomicBool::new(false);
    let times = Mutex::new(Vec::new());
    let problems = Mutex::new(Vec::new());
    let (written, asked) = std::thread::scope(|scope| -> Outcome<(Written, Duration)> {
        // However this ends, the threads must, too.
        let _ended = StopOnDrop(&stop);
        for client in 0..load.clients {
            // One after the other: so many at once would be more than wait at a socket.
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            let (stop, times, problems) = (&stop, &times, &problems);
            let ask = move || {
                let asked = queries(stream, client as u64, load, begin, stop);
                match asked {
                    Ok(mut asked) => lock(times).append(&mut asked),
                    Err(error) => lock(problems).push(error.to_string()),
                }
            };
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, ask)?;
        }
        let asking = Instant::now();
        let written = updates.send(load, begin);
        stop.store(true, Relaxed);
        Ok((written?, asking.elapsed()))
    })?;
    drop(updates);
    // It writes what it has.
    daemon.end()?;
    let missing = missing(&data, load, begin)?;
    let times = sorted(times.into_inner().unwrap_or_default());
    let problems = problems.into_inner().unwrap_or_default();
    let count = load.rounds() * load.files;
    println!(
        "{count} updates of {} databases in {:.1} s: {:.0} a second, batches of {}: {}",
        load.files,
        written.time.as_secs_f64(),
        count as f64 / written.time.as_secs_f64(),
        load.files,
        quantiles(&written.batches)
    );
    println!(
        "{} range queries of {} clients, {:.0} a second: {}",
        times.len(),
        load.clients,
        times.len() as f64 / asked.as_secs_f64(),
        quantiles(&times)
    );
    println!(
        "{missing} updates missing, {} clients failed",
        problems.len()
    );
    match problems.first() {
        Some(problem) => Err(format!("a client: {problem}").into()),
        None if missing > 0 => {
            Err("updates were acknowledged and are not in their databases".into())
        }
        None if times.is_empty() => Err("no query was answered".into()),
        None => Ok(()),
    }
}

/// Ends the clients.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort_unstable();
    times
}

/// Of sorted times.
fn quantiles(times: &[Duration]) -> String {
    let at = |part: f64| {
        let place = (times.len() as f64 * part) as usize;
        let time = times.get(place.min(times.len().saturating_sub(1)));
        time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    format!(
        "median {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// What became of the updates.
struct Written {
    time: Duration,
    /// How long a batch took until it was acknowledged, sorted.
    batches: Vec<Duration>,
}

/// A client of rrdcached's protocol.
struct Updates {
    stream: BufReader<UnixStream>,
}

impl Updates {
    fn connect(socket: &Path) -> Outcome<Self> {
        let end = Instant::now() + PATIENCE;
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    return Ok(Self {
                        stream: BufReader::new(stream),
                    });
                }
                Err(error) if Instant::now() > end => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Sends lines, and takes the line that answers the last of them.
    fn say(&mut self, lines: &str) -> Outcome<String> {
        self.stream.get_mut().write_all(lines.as_bytes())?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        Ok(answer)
    }

    fn create(&mut self, load: Load, begin: u64) -> Outcome {
        let rows = load.rounds() + 10;
        for file in 0..load.files {
            let answer = self.say(&format!(
                "CREATE f{file}.rrd -b {begin} -s 1 DS:value:GAUGE:10:U:U RRA:LAST:0.5:1:{rows}\n"
            ))?;
            if !answer.starts_with("0 ") {
                return Err(format!("CREATE: {answer}").into());
            }
        }
        Ok(())
    }

    /// Sends a batch with an update of each database, again and again, as often as the rate says.
    fn send(&mut self, load: Load, begin: u64) -> Outcome<Written> {
        let start = Instant::now();
        let mut batches = Vec::new();
        for round in 1..=load.rounds() {
            let due =
                Duration::from_secs_f64((round - 1) as f64 * load.files as f64 / load.rate as f64);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            let mut lines = String::new();
            for file in 0..load.files {
                writeln!(lines, "UPDATE f{file}.rrd {}:{round}", begin + round)?;
            }
            lines.push_str(".\n");
            let sent = Instant::now();
            let answer = self.say("BATCH\n")?;
            if !answer.starts_with("0 ") {
                return Err(format!("BATCH: {answer}").into());
            }
            let answer = self.say(&lines)?;
            if !answer.starts_with("0 errors") {
                return Err(format!("a batch: {answer}").into());
            }
            batches.push(sent.elapsed());
        }
        Ok(Written {
            time: start.elapsed(),
            batches: sorted(batches),
        })
    }
}

/// Asks for ranges until it is to stop: how long each answer took.
fn queries(
    stream: TcpStream,
    client: u64,
    load: Load,
    begin: u64,
    stop: &AtomicBool,
) -> Outcome<Vec<Duration>> {
    let mut stream = BufReader::new(stream);
    stream.get_ref().set_read_timeout(Some(PATIENCE))?;
    let mut times = Vec::new();
    let mut number = client;
    while !stop.load(Relaxed) {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(client | 1);
        let file = (number >> 33) % load.files;
        let query = match number >> 62 {
            0 => format!("sum(rrd_value%7Bfile=~%22f{file}[0-9]?.rrd%22%7D)"),
            1 => format!("avg_over_time(rrd_value%7Bfile=%22f{file}.rrd%22%7D[30s])"),
            _ => format!("rrd_value%7Bfile=%22f{file}.rrd%22%7D"),
        };
        let end = begin + load.rounds();
        let asked = Instant::now();
        write!(
            stream.get_mut(),
            "GET /api/v1/query_range?query={query}&start={begin}&end={end}&step=5 HTTP/1.1\r\nHost: x\r\n\r\n"
        )?;
        let body = http_body(&mut stream)?;
        times.push(asked.elapsed());
        let begins = b"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\"";
        if !body.starts_with(begins) || has_warnings(&body) {
            let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            return Err(format!("an answer without a matrix, or with warnings: {text}").into());
        }
    }
    Ok(times)
}

/// Whether an answer warns of what could not be read.
fn has_warnings(body: &[u8]) -> bool {
    let warnings = b"\"warnings\":";
    body.windows(warnings.len()).any(|found| found == warnings)
}

/// How many updates are not in their databases.
fn missing(data: &Path, load: Load, begin: u64) -> Outcome<u64> {
    let mut missing = 0;
    for file in 0..load.files {
        let bytes = std::fs::read(data.join(format!("f{file}.rrd")))?;
        let source = Source::open(&bytes, None)?;
        let rows = source.rows.grid(0).map_or(0, |grid| grid.rows);
        let mut found = 0;
        for row in 0..rows {
            let time = source
                .database
                .row_time(0, row)
                .and_then(|time| u64::try_from(time).ok());
            let round = time
                .and_then(|time| time.checked_sub(begin))
                .filter(|round| *round > 0);
            let value = source.rows.value(0, row, 0).and_then(|value| value.get());
            if let Some((round, value)) = round.zip(value)
                && value == round as f64
            {
                found += 1;
            }
        }
        missing += load.rounds().saturating_sub(found);
    }
    Ok(missing)
}
