//! rrdcached and `kymo serve`, side by side.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Outcome;
use crate::process::command;

/// How long a daemon has to begin, to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that speaks rrdcached's protocol.
pub(crate) struct Daemon {
    child: Child,
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
        let log = std::fs::File::create(folder.join("log"))?;
        let child = command(program)
            .args(words)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let daemon = Self {
            child,
            base: folder.join("base").canonicalize()?,
            socket: folder.join("sock"),
        };
        let end = Instant::now() + PATIENCE;
        while UnixStream::connect(&daemon.socket).is_err() {
            if Instant::now() > end {
                let log = folder.join("log");
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
        self.child.id()
    }

    /// Has it end as it should, and waits for it.
    pub(crate) fn end(mut self) -> Outcome {
        kill(
            Pid::from_raw(self.child.id().cast_signed()),
            Signal::SIGTERM,
        )?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of one.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
}

impl Client {
    /// Sends lines, and tells all that is answered: up to the answer of a `PING` that is sent behind
    /// them.
    pub(crate) fn ask(&mut self, lines: &str) -> Outcome<Vec<u8>> {
        self.stream.write_all(lines.as_bytes())?;
        self.stream.write_all(b"\nPING\n")?;
        let mut answer = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            if let Some(before) = answer.strip_suffix(b"0 PONG\n")
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
