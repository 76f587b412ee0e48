//! `kymo print` of a session of LTTng live, for long: a program records numbered events, the relay daemon
//! rotates the files of its streams, and the viewer is ended and begun again. Each event must come once.
//!
//! The relay daemon lets one viewer attach to a session. A second session records the same events of the program for
//! babeltrace2, which reads it live beside, and reads the stored files of the first one in the end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Outcome;
use crate::args::Args;
use crate::daemons::free_port;
use crate::process::{build_kymo, command, hear, output, require};

/// Threads of the program that is recorded.
const THREADS: usize = 4;
/// What was recorded must have been shown after this.
const PATIENCE: Duration = Duration::from_secs(300);

/// `cargo xtask live-soak [SECONDS]`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let seconds: u64 = args.word().map_or(Ok(120), |word| word.parse())?;
    let rate: u64 = args.value("--rate")?.unwrap_or(100_000);
    let ours: Option<PathBuf> = args.value("--ours")?;
    args.finish()?;
    for (program, package) in [
        ("gcc", "gcc"),
        ("lttng", "lttng-tools"),
        ("lttng-relayd", "lttng-tools"),
        ("babeltrace2", "babeltrace2"),
    ] {
        require(program, package)?;
    }
    let kymo = ours.map_or_else(|| build_kymo(true), Ok)?;
    let folder = tempfile::tempdir()?;
    let session = Session::begin(folder.path())?;
    let peer = Viewer::of_babeltrace2(&session.url(BESIDE))?;
    let peer = std::thread::spawn(move || -> Result<Shown, String> {
        let mut shown = Shown::default();
        let read = peer.read(&mut shown, None);
        read.map(|()| shown).map_err(|it| it.to_string())
    });
    println!(
        "{rate} events a second for {seconds} s, load {}",
        std::fs::read_to_string("/proc/loadavg")?.trim()
    );
    let mut program = command(folder.path().join("app"));
    program
        .args([THREADS.to_string(), rate.to_string(), seconds.to_string()])
        .env("LTTNG_HOME", folder.path())
        .env("LTTNG_UST_ALLOW_BLOCKING", "1")
        .env("LTTNG_UST_REGISTER_TIMEOUT", "-1")
        .stdout(Stdio::piped());
    let program = program.spawn()?;
    let mut shown = Shown::default();
    // Ended twice, and begun again where it was.
    let third = Duration::from_secs(seconds) / 3;
    for _ in 0..2 {
        let viewer = Viewer::begin(&kymo, folder.path(), &session.url(OWN))?;
        viewer.read(&mut shown, Some(third))?;
    }
    let begun = Instant::now();
    let viewer = Viewer::begin(&kymo, folder.path(), &session.url(OWN))?;
    let ender = std::thread::spawn(move || -> Result<Vec<u64>, String> {
        let ended = program.wait_with_output().map_err(|it| it.to_string())?;
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    });
    let recorded = {
        let reading = std::thread::scope(|scope| -> Outcome<Vec<u64>> {
            let reader = scope.spawn(|| viewer.read(&mut shown, None).map_err(|it| it.to_string()));
            let recorded = ender
                .join()
                .map_err(|_| "the program cannot be awaited")??;
            println!("recorded after {:.1} s more", begun.elapsed().as_secs_f64());
            session.end(folder.path())?;
            let left = Instant::now();
            if !is_finished(|| reader.is_finished()) {
                return Err("the viewer does not end with its session".into());
            }
            println!("shown after {:.1} s more", left.elapsed().as_secs_f64());
            reader.join().map_err(|_| "the viewer cannot be read")??;
            Ok(recorded)
        });
        reading?
    };
    let total: u64 = recorded.iter().sum();
    shown.report("kymo", &recorded);
    // It may need longer, or fail: what it shows is there to compare with.
    match is_finished(|| peer.is_finished()) {
        true => match peer.join().map_err(|_| "babeltrace2 cannot be read")? {
            Ok(shown) => shown.report("babeltrace2 beside", &recorded),
            Err(error) => println!("babeltrace2 beside: {error}"),
        },
        false => println!("babeltrace2 beside: it does not end with its session"),
    }
    let stored = stored(folder.path())?;
    println!(
        "babeltrace2 reads {stored} from {} files",
        files(folder.path())?
    );
    match shown.is_whole(&recorded) && stored == total {
        true => Ok(()),
        false => Err("not every event was shown once".into()),
    }
}

/// Waits until something is finished, and returns whether it is.
fn is_finished(asked: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !asked() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    asked()
}

/// The session that kymo shows, and the one of babeltrace2.
const OWN: &str = "soak";
const BESIDE: &str = "beside";

/// Daemons of LTTng and two sessions of them, in a directory.
struct Session {
    /// Where the relay daemon has its sessions.
    host: String,
    daemons: Vec<Child>,
}

impl Session {
    fn begin(folder: &Path) -> Outcome<Self> {
        std::fs::write(folder.join("tp.h"), include_str!("tp.h"))?;
        std::fs::write(folder.join("app.c"), include_str!("app.c"))?;
        output(
            command("gcc")
                .args([
                    "-O2",
                    "-I.",
                    "-o",
                    "app",
                    "app.c",
                    "-llttng-ust",
                    "-lpthread",
                    "-ldl",
                ])
                .current_dir(folder),
        )?;
        let (control, data, live) = (free_port()?, free_port()?, free_port()?);
        let at = |port: u16| format!("tcp://127.0.0.1:{port}");
        let mut relay = command("lttng-relayd");
        relay
            .args(["-C", &at(control), "-D", &at(data), "-L", &at(live), "-o"])
            .arg(folder.join("stored"))
            .env("LTTNG_HOME", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut sessions = command("lttng-sessiond");
        sessions
            .arg("--no-kernel")
            .env("LTTNG_HOME", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let session = Self {
            host: format!("net://127.0.0.1:{live}/host/{}", host()?),
            daemons: vec![relay.spawn()?, sessions.spawn()?],
        };
        let begun = Instant::now();
        while hear(lttng(folder).arg("list"))?.code != Some(0) {
            if begun.elapsed() > Duration::from_secs(20) {
                return Err("lttng-sessiond does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let url = format!("--set-url=net://127.0.0.1:{control}:{data}");
        for name in [OWN, BESIDE] {
            Self::create(folder, name, &url)?;
        }
        Ok(session)
    }

    /// A session that records all events of the program.
    fn create(folder: &Path, name: &str, url: &str) -> Outcome {
        let steps: [&[&str]; 4] = [
            &["create", name, "--live=200000", url],
            // Nothing may be lost where a file is written late; files are begun anew after 1 MiB.
            &[
                "enable-channel",
                "--userspace",
                "--blocking-timeout=inf",
                "--subbuf-size=256K",
                "--num-subbuf=16",
                "--tracefile-size=1M",
                // None are overwritten. Without a number, lttng-relayd 2.13 divides by it.
                "--tracefile-count=4096",
                "main",
            ],
            &["enable-event", "--userspace", "--channel=main", "soak:*"],
            &["start"],
        ];
        // Each is of the session that was created last.
        for step in steps {
            output(lttng(folder).args(step))?;
        }
        Ok(())
    }

    /// Where a viewer finds a session.
    fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    /// Ends the sessions, but not the daemons.
    fn end(&self, folder: &Path) -> Outcome {
        // LTTng waits for the data of a session until no other one records the program.
        output(lttng(folder).args(["destroy", "--no-wait", BESIDE]))?;
        output(lttng(folder).args(["destroy", OWN])).map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = kill(Pid::from_raw(daemon.id().cast_signed()), Signal::SIGTERM);
            let _ = daemon.wait();
        }
    }
}

fn lttng(folder: &Path) -> std::process::Command {
    let mut lttng = command("lttng");
    lttng.env("LTTNG_HOME", folder);
    lttng
}

fn host() -> Outcome<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/hostname")?
        .trim()
        .to_owned())
}

/// What was shown.
#[derive(Default)]
struct Shown {
    events: u64,
    /// Events that were shown before.
    again: u64,
    /// Events behind later ones of their thread.
    backwards: u64,
    /// Of each thread a bit for each number.
    numbers: Vec<Vec<u64>>,
    last: Vec<u64>,
    /// Seconds of CPU of all viewers, and the most memory that one of them had, in bytes.
    cpu: f64,
    memory: u64,
}

impl Shown {
    fn add(&mut self, thread: usize, number: u64) {
        if self.numbers.len() <= thread {
            self.numbers.resize(thread + 1, Vec::new());
            self.last.resize(thread + 1, 0);
        }
        let words = &mut self.numbers[thread];
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        self.events += 1;
        self.again += u64::from(words[word] & bit != 0);
        words[word] |= bit;
        self.backwards += u64::from(number < self.last[thread]);
        self.last[thread] = number;
    }

    /// Whether each event was shown once, in order.
    fn is_whole(&self, recorded: &[u64]) -> bool {
        (self.again, self.backwards, self.missing(recorded)) == (0, 0, 0)
    }

    fn report(&self, who: &str, recorded: &[u64]) {
        println!(
            "{who}: of {} events shown {}, {} twice, {} out of order, {} missing; {:.1} s of CPU, {} MiB of memory at most",
            recorded.iter().sum::<u64>(),
            self.events,
            self.again,
            self.backwards,
            self.missing(recorded),
            self.cpu,
            self.memory >> 20
        );
    }

    /// Events that were recorded and not shown.
    fn missing(&self, recorded: &[u64]) -> u64 {
        let known = self.numbers.iter().flatten();
        let known: u64 = known.map(|word| u64::from(word.count_ones())).sum();
        recorded.iter().sum::<u64>().saturating_sub(known)
    }
}

/// A viewer that runs.
struct Viewer {
    child: Child,
}

impl Viewer {
    fn begin(kymo: &Path, folder: &Path, url: &str) -> Outcome<Self> {
        let mut viewer = command(kymo);
        viewer
            .args(["print", "--no-delta", "--live-wait"])
            .arg("--live-resume")
            .arg(folder.join("position"))
            .arg(url)
            .stdout(Stdio::piped());
        Ok(Self {
            child: viewer.spawn()?,
        })
    }

    fn of_babeltrace2(url: &str) -> Outcome<Self> {
        let mut viewer = command("babeltrace2");
        viewer.args(["--input-format=lttng-live", "--no-delta"]);
        viewer.arg(url).stdout(Stdio::piped());
        Ok(Self {
            child: viewer.spawn()?,
        })
    }

    /// Reads what it shows; after a while it is ended by a signal.
    fn read(mut self, shown: &mut Shown, most: Option<Duration>) -> Outcome {
        let out = self.child.stdout.take().ok_or("no pipe")?;
        let process = self.child.id();
        let begun = Instant::now();
        let mut is_ended = false;
        let mut looked = Instant::now();
        for line in BufReader::with_capacity(1 << 20, out).lines() {
            let line = line?;
            let (thread, number) = numbers(&line).ok_or_else(|| format!("odd line `{line}`"))?;
            shown.add(thread, number);
            if looked.elapsed() > Duration::from_secs(1) {
                looked = Instant::now();
                shown.memory = shown.memory.max(memory(process)?);
            }
            if !is_ended && most.is_some_and(|most| begun.elapsed() > most) {
                kill(Pid::from_raw(process.cast_signed()), Signal::SIGTERM)?;
                is_ended = true;
            }
        }
        shown.cpu += cpu(process)?;
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("the viewer ends with {status}").into()),
        }
    }
}

/// The last two numbers of a line: `... { thread = 1, number = 2 }`.
fn numbers(line: &str) -> Option<(usize, u64)> {
    let mut numbers = line
        .rsplit(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty());
    let number = numbers.next()?.parse().ok()?;
    Some((numbers.next()?.parse().ok()?, number))
}

/// Memory that a process has in use, in bytes.
fn memory(process: u32) -> Outcome<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm"))?;
    let pages: u64 = text.split(' ').nth(1).unwrap_or("0").parse()?;
    Ok(pages * 4096)
}

/// Seconds of CPU that a process has used, which has ended or not.
fn cpu(process: u32) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let behind = text.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| -> f64 {
        let field = behind.split(' ').nth(at);
        field.and_then(|it| it.parse().ok()).unwrap_or(0.0)
    };
    Ok((ticks(12) + ticks(13)) / 100.0)
}

/// How many events babeltrace2 finds in what the relay daemon has stored of the session that kymo shows.
fn stored(folder: &Path) -> Outcome<u64> {
    let mut count = command("babeltrace2");
    count.args(["--component=sink.utils.counter", "--params=hide-zero=no"]);
    count.args(directories(folder)?);
    let text = output(&mut count)?;
    // It counts as it goes.
    let mut found = text.lines().filter_map(|line| {
        let count = line.trim().strip_suffix(" Event messages")?;
        count.trim().replace(',', "").parse().ok()
    });
    found
        .next_back()
        .ok_or_else(|| format!("babeltrace2 does not count: {text}").into())
}

/// Where the relay daemon has stored the session that kymo shows.
fn directories(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder.join("stored").join(host()?))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(OWN) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// How many files of its streams there are.
fn files(folder: &Path) -> Outcome<usize> {
    let text = output(
        command("find")
            .args(directories(folder)?)
            .args(["-name", "main_*"]),
    )?;
    let streams = text.lines().filter(|line| !line.contains("/index/"));
    Ok(streams.count())
}
