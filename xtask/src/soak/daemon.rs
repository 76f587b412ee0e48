//! The daemon, its small disk, and what is in its files in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_collectd::network::Security;
use kymo_rrd::Source;
use kymo_rrd::engine::{Wanted, fetch};
use nix::sys::signal::Signal;
use nix::unistd::Uid;

use super::load::{Acknowledged, LEVELS};
use crate::Outcome;
use crate::daemons::{Metrics, Running, free_port, free_udp_port, users};
use crate::process::{command, hear};

/// A file system of its own, where that can be had.
pub(super) struct Disk {
    path: PathBuf,
    is_mounted: bool,
}

impl Disk {
    /// One that has room for what is sent in some time.
    pub(super) fn new(path: &Path, time: Duration) -> Outcome<Self> {
        std::fs::create_dir_all(path)?;
        let path = path.to_path_buf();
        let mut is_mounted = false;
        if Uid::effective().is_root() {
            let size = format!("size={}m", 96 + 20 * (time.as_secs() / 60));
            let mut mount = command("mount");
            mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path);
            is_mounted = hear(&mut mount).is_ok_and(|said| said.code == Some(0));
        }
        Ok(Self { path, is_mounted })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be filled.
    pub(super) fn is_bounded(&self) -> bool {
        self.is_mounted
    }

    /// Takes all room there is, until what is given back is dropped.
    pub(super) fn fill(&self) -> Outcome<Filler> {
        let filler = Filler(self.path.join("filler"));
        if self.is_mounted {
            let mut file = File::create(&filler.0)?;
            for size in [1 << 20, 1 << 12, 1] {
                let piece = vec![0; size];
                loop {
                    match file.write_all(&piece) {
                        Ok(()) => {}
                        Err(error) if error.kind() == ErrorKind::StorageFull => break,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(filler)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            // What is left of it goes with the machine.
            let _ = hear(command("umount").arg("--lazy").arg(&self.path));
        }
    }
}

/// A file that takes all room.
pub(super) struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A daemon that runs.
pub(super) struct Daemon {
    running: Running,
    folder: PathBuf,
    disk: PathBuf,
    ports: [u16; LEVELS.len()],
    metrics: Metrics,
}

impl Daemon {
    pub(super) fn begin(kymo: &Path, folder: &Path, disk: &Path) -> Outcome<Self> {
        let at =
            |folder: &Path, name: &str| format!("{:?}", folder.join(name).display().to_string());
        std::fs::write(folder.join("auth"), users())?;
        let mut ports = [0; LEVELS.len()];
        for port in &mut ports {
            *port = free_udp_port()?;
        }
        let metrics = Metrics {
            port: free_port()?,
            log: folder.join("log"),
        };
        let mut config = format!(
            "data = {}\n[write]\ntimeout = 1\njitter = 1\nflush = 5\nleast-free-mib = 1\n[journal]\ndirectory = {}\n\
             [rrdcached]\nlisten = {}\n[metrics]\nlisten = \"127.0.0.1:{}\"\n\
             [collectd]\ntypes-db = {}\ninterval = 1\n\
             [collectd.unixsock]\nlisten = {}\n\
             [collectd.rrd]\ndirectory = \"collectd\"\nrows = 60\ntimespans = [3600]\n\
             [collectd.csv]\ndirectory = {}\n",
            at(disk, "data"),
            at(disk, "journal"),
            at(folder, "rrdcached"),
            metrics.port,
            at(folder, "types.db"),
            at(folder, "unixsock"),
            at(disk, "csv"),
        );
        for (port, level) in ports.iter().zip(LEVELS) {
            config += &format!(
                "[[collectd.listen]]\nhost = \"127.0.0.1\"\nport = {port}\nsecurity = \"{}\"\n\
                 auth-file = {}\n",
                level.as_str(),
                at(folder, "auth")
            );
        }
        std::fs::write(folder.join("types.db"), "gauge value:GAUGE:U:U\n")?;
        std::fs::write(folder.join("serve.toml"), config)?;
        let mut serve = command(kymo);
        serve
            .args(["serve", "--config"])
            .arg(folder.join("serve.toml"));
        let running = Running::begin(&mut serve, &metrics.log)?;
        let daemon = Self {
            running,
            folder: folder.to_path_buf(),
            disk: disk.to_path_buf(),
            ports,
            metrics,
        };
        daemon.wait("databases", 0, Duration::from_secs(20))?;
        Ok(daemon)
    }

    /// Where datagrams of a level are taken.
    pub(super) fn port(&self, level: Security) -> u16 {
        let place = LEVELS.iter().position(|it| *it == level);
        self.ports[place.unwrap_or(0)]
    }

    /// A socket of the daemon: `rrdcached` or `unixsock`.
    pub(super) fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What it reports about itself.
    pub(super) fn metric(&self, name: &str) -> Outcome<u64> {
        self.metrics.get(name)
    }

    /// Waits until something has come to a number.
    pub(super) fn wait(&self, name: &str, expected: u64, patience: Duration) -> Outcome {
        self.metrics.wait(name, patience, |found| found >= expected)
    }

    /// Waits until everything is written.
    pub(super) fn write_all(&self, patience: Duration) -> Outcome {
        self.running.signal(Signal::SIGUSR1)?;
        self.metrics
            .wait("pending_bytes", patience, |bytes| bytes == 0)
    }

    /// The memory it uses now, in bytes.
    pub(super) fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let line = line.ok_or("the system does not tell how much memory a process has")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib << 10)
    }

    /// Ends it, and gives what it has left.
    pub(super) fn end(self) -> Outcome<Left> {
        let status = self.running.end()?;
        if !status.success() {
            let log = std::fs::read_to_string(self.metrics.log)?;
            return Err(format!("the daemon ends with {status}:\n{log}").into());
        }
        Ok(Left { disk: self.disk })
    }
}

/// The files of a daemon that has ended.
pub(super) struct Left {
    disk: PathBuf,
}

impl Left {
    /// How many acknowledged updates are not in the rows of their databases.
    pub(super) fn lost_updates(&self, sent: &Acknowledged) -> Outcome<usize> {
        let mut lost = 0;
        for (name, values) in sent.by_name() {
            let bytes = std::fs::read(self.disk.join("data").join(name))?;
            let source = Source::open(&bytes, None)?;
            let wanted = Wanted {
                function: "AVERAGE",
                start: 0,
                end: i64::MAX / 2,
                step: 1,
            };
            let ends = values.keys().next_back().copied().unwrap_or(0);
            let begins = values.keys().next().copied().unwrap_or(0);
            let wanted = Wanted {
                start: begins - 10,
                end: ends,
                ..wanted
            };
            let fetched = fetch(&source.database, &source.rows, &wanted);
            let fetched = fetched.ok_or("the database has no averages")?;
            let mut rows = BTreeMap::new();
            for (time, row) in fetched.iter() {
                rows.insert(time, row.and_then(|row| row.bits(0)));
            }
            lost += values
                .iter()
                .filter(|(time, value)| {
                    let found = rows.get(time).copied().flatten().map(f64::from_bits);
                    found != Some(f64::from(**value))
                })
                .count();
        }
        Ok(lost)
    }

    /// How many acknowledged lists are not in their files of comma-separated values.
    pub(super) fn lost_lines(&self, sent: &Acknowledged) -> Outcome<usize> {
        let mut lost = 0;
        for (name, values) in sent.by_name() {
            let mut found = BTreeSet::new();
            let path = self.disk.join("csv").join(name);
            let (folder, file) = (path.parent(), path.file_name());
            let begin = format!("{}-", file.unwrap_or_default().to_string_lossy());
            for entry in std::fs::read_dir(folder.unwrap_or(&path))? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().starts_with(&begin) {
                    let text = std::fs::read_to_string(entry.path())?;
                    found.extend(text.lines().map(str::to_string));
                }
            }
            let is_lost = |(time, value): &(&i64, &u32)| {
                !found.contains(&format!("{time}.0000000000,{value}"))
            };
            lost += values.iter().filter(is_lost).count();
        }
        Ok(lost)
    }
}
