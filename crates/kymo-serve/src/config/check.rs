//! What would keep a daemon of a configuration from beginning, found by what the start itself does.

use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use kymo_io::net::Address;
use kymo_io::reason;
use nix::unistd::{AccessFlags, Group, access};

use super::{Config, Listen};
use crate::daemon::sockets::not_bound;
use crate::daemon::{self, NOT_SERVED};
use crate::instance::{check_pid_file, lock_data};
use crate::network::{Bound, read_keys};
use crate::store::no_log;
use crate::taking::Endpoint;
use crate::tokens::Tokens;
use crate::{collectd, journal, series_index, store};

impl Config {
    /// Does what a start does first, and undoes it: sockets are bound for a moment, files of secrets and of types are
    /// read. Nothing is created. If a daemon serves the directory of databases, what it has is taken for free: this is
    /// the configuration that it may read again.
    ///
    /// Returns what a start would not refuse, and somebody may want to know.
    ///
    /// # Errors
    ///
    /// All that a start would refuse.
    pub fn check(&self) -> Result<Vec<String>, Vec<String>> {
        let mut check = Check {
            config: self,
            is_running: lock_data(&self.data).is_err(),
            problems: Vec::new(),
            notes: Vec::new(),
            streams: Vec::new(),
            datagrams: Vec::new(),
            paths: Vec::new(),
        };
        check.directories();
        check.listens();
        check.datagram_listens();
        check.collectd();
        check.problems.extend(self.check_secrets());
        check.targets();
        if !self.serves() && std::env::var_os("LISTEN_FDS").is_none() {
            check.problems.push(NOT_SERVED.to_owned());
        }
        if check.is_running {
            let data = self.data.display();
            check.notes.push(format!(
                "a kymo serve uses `{data}`: addresses and files in use are taken for its own"
            ));
        }
        match check.problems.is_empty() {
            true => Ok(check.notes),
            false => Err(check.problems),
        }
    }

    /// What is wrong with the files that connections need: tokens, certificates, keys.
    pub(crate) fn check_secrets(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (what, listen) in self.spoken() {
            let (key, _) = self.keys_of(what, listen);
            if let Some(path) = &listen.token_file
                && let Err(problem) = Tokens::read(path)
            {
                problems.push(format!("`{key}.token-file`: {problem}"));
            }
            #[cfg(feature = "tls")]
            if let Some(files) = &listen.tls
                && let Err(problem) = crate::listen::tls::Acceptor::read(files)
            {
                problems.push(format!("`{key}.certificate`: {problem}"));
            }
        }
        problems
    }
}

impl Config {
    /// The table and the key that say where something is spoken.
    fn keys_of(&self, what: &'static str, listen: &Listen) -> (&'static str, &'static str) {
        match what {
            "rrdcached" if !std::ptr::eq(listen, &self.rrdcached) => ("rrdcached.socket", "listen"),
            "unixsock" => ("collectd.unixsock", "listen"),
            "influx-lines" => ("influx", "lines"),
            what => (what, "listen"),
        }
    }
}

/// A check, and what was found so far.
struct Check<'c> {
    config: &'c Config,
    /// Whether a daemon serves the directory of databases.
    is_running: bool,
    problems: Vec<String>,
    notes: Vec<String>,
    /// What is bound, so that the system finds what cannot be bound beside it.
    streams: Vec<(Address, Option<TcpListener>)>,
    datagrams: Vec<Bound>,
    /// Sockets of this machine.
    paths: Vec<&'c Path>,
}

impl<'c> Check<'c> {
    fn add(&mut self, key: &str, problem: Option<String>) {
        self.problems
            .extend(problem.map(|problem| format!("`{key}`: {problem}")));
    }

    /// Directories, and files in them.
    fn directories(&mut self) {
        let config = self.config;
        let data = &config.data;
        self.add("data", uncreatable(data));
        if data.is_dir() {
            self.add("data", unreadable(&data.join(series_index::FILE)));
        }
        if !data.exists() {
            let shown = data.display();
            self.notes
                .push(format!("`data`: `{shown}` does not exist, and is created"));
        }
        if let Some(journal) = &config.journal {
            self.add("journal.directory", uncreatable(&journal.directory));
            self.journal(journal);
        }
        if let Some(path) = &config.pid_file {
            let parent = self.no_parent(path);
            let other = check_pid_file(path).err().filter(|_| !self.is_running);
            self.add("pid-file", parent.or(other));
        }
    }

    /// A journal that another program has open, that cannot be read, or has updates of databases that are not there.
    fn journal(&mut self, journal: &journal::Options) {
        if self.is_running {
            return;
        }
        let store = self.store();
        let data = &self.config.data;
        let is_empty = std::fs::read_dir(data).map_or(true, |mut it| it.next().is_none());
        let counted =
            journal::count_updates(&journal.directory, |path| is_empty && store.is_below(path));
        let problem = match counted {
            Err(error) => Some(reason(&error)),
            Ok(0) => None,
            Ok(count) => Some(store::nothing_there(data, &journal.directory, count)),
        };
        self.add("journal.directory", problem);
    }

    /// The options of the store, with its directory as the store would have it.
    fn store(&self) -> store::Options {
        let mut options = daemon::options(self.config, &no_log());
        let base = std::path::absolute(&options.base).unwrap_or(options.base);
        options.base = base.canonicalize().unwrap_or(base);
        options
    }

    /// Where clients connect.
    fn listens(&mut self) {
        for (what, listen) in self.config.spoken() {
            let (table, key) = self.config.keys_of(what, listen);
            if let Some(name) = &listen.access.group
                && !matches!(Group::from_name(name), Ok(Some(_)))
            {
                let problem = format!("the group `{name}` does not exist");
                self.add(&format!("{table}.group"), Some(problem));
            }
            for address in &listen.addresses {
                let problem = self.bind(address);
                self.add(&format!("{table}.{key}"), problem);
            }
        }
    }

    /// Why nothing can listen at an address.
    fn bind(&mut self, address: &'c Address) -> Option<String> {
        if self.streams.iter().any(|(other, _)| other == address) {
            return Some(format!("{address}: it is specified twice"));
        }
        let (bound, problem) = match address {
            Address::Unix(path) => {
                let problem = self.path(path, |path| UnixStream::connect(path).err());
                (None, problem.map(|problem| format!("{address}: {problem}")))
            }
            Address::Tcp(host, port) => match TcpListener::bind((host.as_str(), *port)) {
                Ok(listener) => (Some(listener), None),
                Err(error) => {
                    let problem = self.bound(&error);
                    (None, problem.map(|_| not_bound(address, &error)))
                }
            },
        };
        self.streams.push((address.clone(), bound));
        problem
    }

    /// Why something cannot be bound; nothing, if it may be what the daemon has.
    fn bound(&self, error: &std::io::Error) -> Option<String> {
        let is_own = self.is_running && error.kind() == std::io::ErrorKind::AddrInUse;
        (!is_own).then(|| reason(error))
    }

    /// Why no socket can be bound at a path; `connect` returns why nothing is there.
    fn path(
        &mut self,
        path: &'c Path,
        connect: impl Fn(&Path) -> Option<std::io::Error>,
    ) -> Option<String> {
        if self.paths.contains(&path) {
            return Some("it is specified twice".to_owned());
        }
        self.paths.push(path);
        if let Some(problem) = self.no_parent(path) {
            return Some(problem);
        }
        let there = path.symlink_metadata().ok()?;
        if !there.file_type().is_socket() {
            return Some("there is something else than a socket".to_owned());
        }
        let is_left = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
        match connect(path).is_some_and(is_left) {
            true => None,
            false => self.bound(&std::io::ErrorKind::AddrInUse.into()),
        }
    }

    /// Why no file can be created at a path.
    fn no_parent(&mut self, path: &Path) -> Option<String> {
        let directory = path.parent()?;
        if directory.parent() != Some(Path::new("/run")) || directory.exists() {
            return unwritable(directory);
        }
        let note = format!(
            "`{}` does not exist: systemd creates it when it starts a service with `RuntimeDirectory={}`",
            directory.display(),
            directory.file_name().unwrap_or_default().display()
        );
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        None
    }

    /// Where datagrams of other metrics than collectd's come.
    fn datagram_listens(&mut self) {
        for (protocol, listen) in self.config.taking.line_listens() {
            let key = format!("{}.listen", protocol.name());
            for endpoint in &listen.datagrams {
                let problem = match endpoint {
                    Endpoint::Udp(host, port) => self.bind_datagrams(host, *port, None),
                    Endpoint::Unixgram(path) => self.path(path, |path| {
                        let socket = UnixDatagram::unbound();
                        socket.and_then(|it| it.connect(path)).err()
                    }),
                    Endpoint::Stream(_) => None,
                };
                let problem = problem.map(|problem| format!("{endpoint}: {problem}"));
                self.add(&key, problem);
            }
        }
    }

    fn bind_datagrams(&mut self, host: &str, port: u16, interface: Option<&str>) -> Option<String> {
        let addresses = match std::net::ToSocketAddrs::to_socket_addrs(&(host, port)) {
            Ok(addresses) => addresses,
            Err(error) => return Some(reason(&error)),
        };
        for address in addresses {
            match Bound::new(address, interface, &[]) {
                Ok(bound) => self.datagrams.push(bound),
                Err(error) => {
                    if let Some(problem) = self.bound(&error) {
                        return Some(problem);
                    }
                }
            }
        }
        None
    }

    /// What collectd's clients need.
    fn collectd(&mut self) {
        let Some(collectd) = &self.config.collectd else {
            return;
        };
        self.add(
            "collectd.types-db",
            collectd::types(&collectd.types_db).err(),
        );
        if let Some(databases) = &collectd.databases {
            let problem = databases.check(&self.store()).err();
            self.add("collectd.rrd.directory", problem.map(|it| it.to_string()));
        }
        if let Some(csv) = &collectd.csv {
            self.add("collectd.csv.directory", uncreatable(&csv.directory));
        }
        for listen in &collectd.network.listen {
            let (host, port) = (&listen.host, listen.port);
            let problem = self.bind_datagrams(host, port, listen.interface.as_deref());
            let problem = problem.map(|it| format!("{host}, port {port}: {it}"));
            self.add("collectd.listen", problem);
            let keys = listen.auth_file.as_deref().map(read_keys);
            let problem = keys.and_then(Result::err);
            self.add("collectd.listen.auth-file", problem);
        }
    }

    /// Files for targets that are scraped: they are read each time, and a start does not wait for them.
    fn targets(&mut self) {
        for job in &self.config.taking.scrape {
            for (key, path) in [
                ("token-file", &job.token_file),
                ("ca", &job.tls.ca),
                ("certificate", &job.tls.certificate),
                ("key", &job.tls.key),
            ] {
                let problem = path.as_deref().and_then(missing);
                self.notes
                    .extend(problem.map(|problem| format!("`scrape.{key}`: {problem}")));
            }
        }
    }
}

/// Why a directory cannot be created, or nothing in it.
fn uncreatable(directory: &Path) -> Option<String> {
    let there = directory.ancestors().find(|it| it.exists());
    unwritable(there.unwrap_or(Path::new(".")))
}

/// Why nothing can be created in a directory, which must be there.
fn unwritable(directory: &Path) -> Option<String> {
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let shown = directory.display();
    if directory.exists() && !directory.is_dir() {
        return Some(format!("`{shown}` is not a directory"));
    }
    let needed = AccessFlags::W_OK | AccessFlags::X_OK;
    let error = access(directory, needed).err()?;
    Some(format!(
        "`{shown}`: nothing can be created there: {}",
        reason(&error.into())
    ))
}

/// Why a file cannot be read, if there is one.
fn unreadable(path: &Path) -> Option<String> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        _ => missing(path),
    }
}

/// Why a file cannot be read.
fn missing(path: &Path) -> Option<String> {
    let read = std::fs::File::open(path).and_then(|file| file.metadata());
    let problem = match read {
        Ok(it) if it.is_dir() => "it is a directory".to_owned(),
        Ok(_) => return None,
        Err(error) => reason(&error),
    };
    Some(format!("`{}`: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found wrong with a configuration, in which `DIR` is a directory.
    fn problems(directory: &Path, text: &str) -> Vec<String> {
        let text = text.replace("DIR", directory.to_str().unwrap());
        Config::parse(&text)
            .unwrap()
            .check()
            .err()
            .unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        std::fs::write(directory.join("file"), "").unwrap();
        std::fs::create_dir(directory.join("data")).unwrap();
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        let used = TcpListener::bind("127.0.0.1:0").unwrap();
        let used = used.local_addr().unwrap().port();
        drop(free);
        let good = format!(
            "data = 'DIR/data'\n[graphite]\nlisten = ['udp:127.0.0.1:{port}', '/DIR/g']\n\
             [journal]\ndirectory = 'DIR/journal'"
        );
        assert_eq!(problems(directory, &good), Vec::<String>::new());
        let parsed = |text: &str| {
            let text = text.replace("DIR", directory.to_str().unwrap());
            Config::parse(&text).unwrap()
        };
        let new = good.replace("DIR/data", "DIR/new/data");
        let notes = parsed(&new).check().unwrap();
        assert!(notes[0].ends_with("/new/data` does not exist, and is created"));
        assert!(!directory.join("new").exists() && !directory.join("g").exists());
        for (text, expected) in [
            ("", &["no address to listen at"][..]),
            ("[metrics]\nlisten = '/DIR/m'", &["no address to listen at"]),
            (
                "[rrdcached]\nlisten = '/DIR/file/s'",
                &["`rrdcached.listen`: unix:/DIR/file/s: `/DIR/file` is not a directory"],
            ),
            (
                "[rrdcached]\nlisten = '/DIR/none/s'",
                &[
                    "`rrdcached.listen`: unix:/DIR/none/s: `/DIR/none`: nothing can be created there: No such file",
                ],
            ),
            (
                "[rrdcached]\nlisten = '/DIR/file'",
                &["`rrdcached.listen`: unix:/DIR/file: there is something else than a socket"],
            ),
            (
                "[rrdcached]\nlisten = '/DIR/s'\n[query]\nlisten = '/DIR/s'",
                &["`query.listen`: unix:/DIR/s: it is specified twice"],
            ),
            (
                "[query]\nlisten = '/DIR/q'\n[[rrdcached.socket]]\nlisten = '/DIR/q'\ncommands = 'read'",
                &["`rrdcached.socket.listen`: unix:/DIR/q: it is specified twice"],
            ),
            (
                "[query]\nlisten = '/DIR/i'\n[influx]\nlines = 'unix:/DIR/i'",
                &["`influx.lines`: unix:/DIR/i: it is specified twice"],
            ),
            (
                "[statsd]\nlisten = 'unixgram:/DIR/s'\n[query]\nlisten = '/DIR/s'",
                &["`statsd.listen`: unixgram:/DIR/s: it is specified twice"],
            ),
            // The names differ, and the addresses do not.
            (
                "[statsd]\nlisten = 'udp:localhost:PORT'\n[graphite]\nlisten = 'udp:127.0.0.1:PORT'",
                &["`statsd.listen`: udp:localhost:PORT: Address already in use"],
            ),
            (
                "[graphite]\nlisten = 'udp:0.0.0.0:PORT'\n[[collectd.listen]]\nhost = '127.0.0.1'\nport = PORT",
                &["`collectd.listen`: 127.0.0.1, port PORT: Address already in use"],
            ),
            (
                "[query]\nlisten = 'localhost:USED'",
                &["`query.listen`: localhost:USED: Address already in use"],
            ),
            (
                "[query]\nlisten = '/DIR/q'\ntoken-file = 'DIR/file'",
                &["`query.token-file`: `DIR/file` has no tokens"],
            ),
            (
                "[[collectd.listen]]\nhost = '127.0.0.1'\nport = PORT\nsecurity = 'sign'\nauth-file = 'DIR'",
                &["`collectd.listen.auth-file`: `DIR`: Is a directory"],
            ),
            (
                "[collectd.rrd]\ndirectory = '/elsewhere'\n[collectd.unixsock]\nlisten = '/DIR/u'",
                &["`collectd.rrd.directory`: /elsewhere: databases must be below "],
            ),
            (
                "[collectd]\ntypes-db = 'DIR/none'\n[collectd.unixsock]\nlisten = '/DIR/u'",
                &["`collectd.types-db`: `DIR/none`: No such file"],
            ),
        ] {
            let with = |text: &str| {
                let text = text
                    .replace("/DIR", "DIR")
                    .replace("PORT", &port.to_string());
                text.replace("USED", &used.to_string())
            };
            let found = problems(directory, &format!("data = 'DIR/data'\n{}", with(text)));
            assert_eq!(found.len(), expected.len(), "{text}: {found:#?}");
            for (found, expected) in found.iter().zip(expected) {
                let expected = with(expected).replace("DIR", directory.to_str().unwrap());
                assert!(found.starts_with(&expected), "{found}\n{expected}");
            }
        }
        let bad = "data = 'DIR/file/x'\npid-file = 'DIR/none/pid'\n[graphite]\nlisten = '/DIR/g'";
        let found = problems(directory, &bad.replace("/DIR", "DIR"));
        assert_eq!(found.len(), 2, "{found:#?}");
    }

    #[test]
    fn directories_that_systemd_creates_may_be_missing() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().display();
        let sockets = "[rrdcached]\nlisten = '/run/no-kymo/a'\n[query]\nlisten = '/run/no-kymo/b'";
        let text = format!("data = '{data}'\npid-file = '/run/no-kymo/pid'\n{sockets}");
        let notes = Config::parse(&text).unwrap().check().unwrap();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("`/run/no-kymo` does not exist: systemd creates it"));
        let deeper = text.replace("/run/no-kymo/", "/run/no-kymo/x/");
        let problems = Config::parse(&deeper).unwrap().check().unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
    }

    #[test]
    fn a_daemon_that_runs_is_not_in_its_own_way() {
        let directory = tempfile::tempdir().unwrap();
        let used = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = format!(
            "data = '{}'\n[query]\nlisten = '{}'",
            directory.path().display(),
            used.local_addr().unwrap()
        );
        let config = Config::parse(&text).unwrap();
        assert_eq!(config.check().unwrap_err().len(), 1);
        let _lock = lock_data(&config.data).unwrap();
        let notes = config.check().unwrap();
        assert!(notes[0].starts_with("a kymo serve uses `"), "{notes:?}");
    }
}
