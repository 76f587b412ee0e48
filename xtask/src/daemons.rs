//! Daemons: programs that run beside this one, what `kymo serve` reports about itself, the users whose datagrams
//! it takes; and rrdcached and `kymo serve` side by side.

use std::io::{BufRead, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kymo_collectd::network::{Protection, Security, initial_vectors};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Outcome;
use crate::process::command;

/// How long a daemon has to begin, to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Users that may sign and encrypt, with their passwords.
pub(crate) const ALICE: (&str, &str) = ("alice", "s3cret pass");
pub(crate) const BOB: (&str, &str) = ("bob", "hunter2");

/// The file of passwords with both.
pub(crate) fn users() -> String {
    [ALICE, BOB]
        .map(|(name, password)| format!("{name}: {password}\n"))
        .concat()
}

/// How Alice protects what she sends.
pub(crate) fn protection(level: Security) -> Protection {
    let (user, password) = (ALICE.0.to_string(), ALICE.1.as_bytes().to_vec());
    match level {
        Security::None => Protection::None,
        Security::Sign => Protection::Sign { user, password },
        Security::Encrypt => Protection::Encrypt {
            user,
            password,
            // There are no eavesdroppers: a constant will do.
            random: initial_vectors([7; 32]),
        },
    }
}

/// Returns an unused TCP port.
pub(crate) fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns an unused UDP port.
pub(crate) fn free_udp_port() -> Outcome<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A program that runs beside this one, and is killed with the run.
pub(crate) struct Running(Child);

impl Running {
    /// Begins a program. What it says goes to a file.
    pub(crate) fn begin(command: &mut Command, log: &Path) -> Outcome<Self> {
        let child = command
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(log)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        Ok(Self(child))
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Outcome {
        Ok(kill(Pid::from_raw(self.0.id().cast_signed()), signal)?)
    }

    /// Has it end as it should, and waits for it.
    pub(crate) fn end(mut self) -> Outcome<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        Ok(self.0.wait()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The body of the next answer on a connection of HTTP, which has a status of success and a length.
pub(crate) fn http_body(stream: &mut impl BufRead) -> Outcome<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    if !line.contains(" 20") {
        return Err(format!("found `{}`, expected status 200 or 204", line.trim()).into());
    }
    while line.trim() != "" {
        line.clear();
        stream.read_line(&mut line)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// What a `kymo serve` reports about itself.
pub(crate) struct Metrics {
    /// Where it is asked.
    pub(crate) port: u16,
    /// Where it says what is wrong.
    pub(crate) log: PathBuf,
}

impl Metrics {
    /// A number; of one with labels, the sum.
    pub(crate) fn get(&self, name: &str) -> Outcome<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let kind = format!("# TYPE kymo_{name} ");
        let mut lines = page.lines().skip_while(|line| !line.starts_with(&kind));
        lines.next().ok_or_else(|| format!("no metric `{name}`"))?;
        let values = lines.take_while(|line| !line.starts_with('#'));
        let values = values.map(|line| line.rsplit(' ').next().unwrap_or_default().parse::<u64>());
        Ok(values.sum::<Result<_, _>>()?)
    }

    /// Waits until a number is as it should be.
    pub(crate) fn wait(&self, name: &str, patience: Duration, is: impl Fn(u64) -> bool) -> Outcome {
        let end = Instant::now() + patience;
        loop {
            let found = self.get(name);
            match found {
                Ok(found) if is(found) => return Ok(()),
                _ if Instant::now() > end => {
                    let log = std::fs::read_to_string(&self.log)?;
                    return Err(format!("`{name}` stays {found:?}:\n{log}").into());
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// A daemon that speaks rrdcached's protocol.
pub(crate) struct Daemon {
    running: Running,
    /// Where its databases are.
    pub(crate) base: PathBuf,
    pub(crate) socket: PathBuf,
}

impl Daemon {
    /// Begins `kymo serve`, with or without a journal.
    pub(crate) fn kymo(program: &Path, folder: &Path, journal: bool) -> Outcome<Self> {
        let mut words = vec!["serve", "--data", "base", "--rrdcached", "unix:sock"];
        if journal {
            words.extend(["--journal", "journal"]);
        }
        Self::begin(program, folder, &words)
    }

    /// Begins rrdcached, with or without a journal.
    pub(crate) fn rrdcached(folder: &Path, journal: bool) -> Outcome<Self> {
        let at = |name: &str| folder.join(name).display().to_string();
        let (base, pid, directory) = (at("base"), at("pid"), at("journal"));
        let socket = format!("unix:{}", at("sock"));
        let mut words = vec!["-g", "-l", &socket, "-b", &base, "-B", "-R", "-p", &pid];
        words.extend(["-w", "300"]);
        if journal {
            words.extend(["-j", &directory]);
        }
        Self::begin(Path::new("rrdcached"), folder, &words)
    }

    fn begin(program: &Path, folder: &Path, words: &[&str]) -> Outcome<Self> {
        for name in ["base", "journal"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        // What they say of themselves is not compared.
        let log = folder.join("log");
        let running = Running::begin(command(program).args(words).current_dir(folder), &log)?;
        let daemon = Self {
            running,
            base: folder.join("base").canonicalize()?,
            socket: folder.join("sock"),
        };
        let end = Instant::now() + PATIENCE;
        while UnixStream::connect(&daemon.socket).is_err() {
            if Instant::now() > end {
                return Err(format!("no answer; see {}", log.display()).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(daemon)
    }

    /// A connection.
    pub(crate) fn client(&self) -> Outcome<Client> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Client { stream })
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.running.id()
    }

    /// Has it end as it should, and waits for it.
    pub(crate) fn end(self) -> Outcome {
        self.running.end().map(drop)
    }
}

/// A client of one.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
}

impl Client {
    /// Sends lines, and returns all that is answered: up to the answer to an unknown command, which is
    /// sent behind them.
    pub(crate) fn ask(&mut self, lines: &str) -> Outcome<Vec<u8>> {
        self.stream.write_all(lines.as_bytes())?;
        self.stream.write_all(b"\nENOUGH\n")?;
        let mut answer = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            if let Some(before) = answer.strip_suffix(b"-1 Unknown command: ENOUGH\n")
                && (before.is_empty() || before.ends_with(b"\n"))
            {
                return Ok(before.to_vec());
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(format!("`{lines}` ends the connection").into()),
                count => answer.extend_from_slice(&buffer[..count]),
            }
        }
    }
}
