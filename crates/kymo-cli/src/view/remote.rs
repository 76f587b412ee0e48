//! Databases of a running `kymo serve` on another machine, by its address: `http://HOST:PORT/DIRECTORY`, or `https://`.
//!
//! Its queries list databases with a version each, and send them as files with all updates that wait in memory. Here they
//! are a tree, which is opened as directories are; which ones have changed, the versions show.

mod connection;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kymo_io::{Entry, EntryKind, RemoteTree, SharedSource};
use serde_json::Value;

use crate::terminal::Terminal;
use connection::{Connection, HttpReply};

/// Where a server lists its databases, which are below it.
const LIST: &str = "/databases";

/// How old a list may be, at least; and by how much longer it is used than it took to get it: that of many databases is
/// some work for a server.
const PERIOD: Duration = Duration::from_millis(500);
const PERIOD_PER_TIME: u32 = 10;

/// Databases that are opened at most, and how many are opened without a word: each one is a request, and is kept in
/// temporary storage.
const MOST_DATABASES: usize = 100_000;
const FEW_DATABASES: usize = 10_000;

/// The servers that are known, and what of each.
static SERVERS: LazyLock<Mutex<Vec<Arc<RemoteServer>>>> = LazyLock::new(Mutex::default);

/// The file with the token that servers ask for.
static TOKEN_FILE: OnceLock<PathBuf> = OnceLock::new();

/// The file with the certificates that are trusted.
static CA_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Lets paths lead to databases of servers.
pub(super) fn install(token_file: Option<&Path>, ca_file: Option<&Path>) {
    for (file, path) in [(&TOKEN_FILE, token_file), (&CA_FILE, ca_file)] {
        if let Some(path) = path {
            let _ = file.set(path.to_path_buf());
        }
    }
    kymo_io::set_remote(|path| Some(open(path.to_str().filter(|_| is_url(path))?)));
}

/// Whether a path is the address of a server.
pub(crate) fn is_url(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    text.starts_with("http://") || text.starts_with("https://")
}

/// The databases below an address with their versions, in order: as they were when the server last answered, if it does not.
pub(crate) fn versions(path: &Path) -> Vec<(PathBuf, u64)> {
    let found = path.to_str().map(RemoteServer::at);
    let Some(Ok((server, below))) = found else {
        return Vec::new();
    };
    // What cannot be asked was reported.
    let _ = server.refresh();
    let known = server.known();
    let all = known.below(&below).map(|(rest, version)| {
        let file = if rest.is_empty() {
            path.to_path_buf()
        } else {
            path.join(rest)
        };
        (file, version)
    });
    all.collect()
}

/// What an address leads to.
fn open(text: &str) -> io::Result<Arc<dyn RemoteTree>> {
    let (server, below) = RemoteServer::at(text)?;
    server.refresh()?;
    let mut known = server.known();
    let count = known.below(&below).count();
    if count > MOST_DATABASES {
        let problem = format!(
            "the server has {count} databases there, and at most {MOST_DATABASES} are shown; specify a directory, such as {}/DIRECTORY",
            server.address
        );
        return Err(io::Error::new(ErrorKind::InvalidInput, problem));
    }
    if count > FEW_DATABASES && !std::mem::replace(&mut known.is_many_reported, true) {
        let terminal = Terminal::new();
        terminal.warning(format_args!(
            "{text}: {count} databases are copied from the server before they are shown, which takes a while"
        ));
        terminal.hint(format_args!(
            "specify a directory, such as {}/DIRECTORY",
            server.address
        ));
    }
    drop(known);
    Ok(server)
}

/// What of a name is below a directory, or is the name itself.
fn below_of<'n>(name: &'n str, directory: &str) -> Option<&'n str> {
    let rest = name.strip_prefix(directory)?;
    match directory.is_empty() || rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerAddress {
    is_encrypted: bool,
    /// `HOST` or `HOST:PORT`.
    authority: String,
}

impl ServerAddress {
    /// Reads an address, and what of the server it names.
    fn parse(text: &str) -> io::Result<(Self, String)> {
        let (is_encrypted, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://").unwrap_or(text)),
        };
        let (authority, below) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() || authority.contains('@') {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "expected http://HOST:PORT or http://HOST:PORT/DIRECTORY",
            ));
        }
        let address = Self {
            is_encrypted,
            authority: authority.to_owned(),
        };
        Ok((address, below.trim_matches('/').to_owned()))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// A server, and what it has below a directory.
#[derive(Debug)]
struct RemoteServer {
    address: ServerAddress,
    /// The directory; all if empty.
    below: String,
    known: Mutex<Listed>,
    connection: Mutex<Option<Connection>>,
    /// The last file that was sent: whoever opens a file looks at it twice.
    last: Mutex<Option<SentFile>>,
}

/// A database as it was sent.
#[derive(Debug)]
struct SentFile {
    name: String,
    version: u64,
    bytes: Arc<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Listed {
    databases: BTreeMap<String, u64>,
    asked: Option<Instant>,
    /// How long the answer took.
    took: Duration,
    /// What was reported last: the same is not reported again.
    problem: Option<String>,
    /// Whether it was reported that there are many.
    is_many_reported: bool,
}

impl Listed {
    /// What of the names of databases is below a directory, or nothing of one that is named itself, and their versions.
    fn below<'l>(&'l self, directory: &'l str) -> impl Iterator<Item = (&'l str, u64)> {
        // Those that begin alike follow each other.
        let from = (Bound::Included(directory), Bound::Unbounded);
        let alike = self.databases.range::<str, _>(from);
        let alike = alike.take_while(move |(name, _)| name.starts_with(directory));
        alike.filter_map(move |(name, version)| Some((below_of(name, directory)?, *version)))
    }
}

impl RemoteServer {
    /// What is known of the server of an address, and the directory or database of it that the address names.
    fn at(text: &str) -> io::Result<(Arc<Self>, String)> {
        let (address, below) = ServerAddress::parse(text)?;
        let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        let has_it = |server: &&Arc<Self>| {
            server.address == address && below_of(&below, &server.below).is_some()
        };
        if let Some(server) = servers.iter().find(has_it) {
            return Ok((Arc::clone(server), below));
        }
        let server = Arc::new(Self {
            address,
            below: below.clone(),
            known: Mutex::default(),
            connection: Mutex::default(),
            last: Mutex::default(),
        });
        servers.push(Arc::clone(&server));
        Ok((server, below))
    }

    fn known(&self) -> MutexGuard<'_, Listed> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a database or directory of this server, by its path.
    fn name(path: &Path) -> io::Result<String> {
        let text = path.to_str().unwrap_or_default();
        ServerAddress::parse(text).map(|(_, name)| name)
    }

    /// Asks for the list of databases, unless it was asked for just now. What fails is reported once.
    fn refresh(&self) -> io::Result<()> {
        let mut known = self.known();
        let period = PERIOD.max(known.took * PERIOD_PER_TIME);
        if known.asked.is_some_and(|asked| asked.elapsed() < period) {
            return Ok(());
        }
        let target = match self.below.is_empty() {
            true => LIST.to_owned(),
            false => format!("{LIST}?below={}", encoded(&self.below)),
        };
        let begun = Instant::now();
        let listed = self.get(&target).and_then(|body| parse_list(&body));
        // Behind the answer: a server that is slow is not asked all the time.
        known.asked = Some(Instant::now());
        known.took = begun.elapsed();
        match listed {
            Ok(databases) => {
                known.databases = databases;
                known.problem = None;
                Ok(())
            }
            Err(error) => {
                let problem = format!("{}: {}", self.address, kymo_io::reason(&error));
                // At first, the caller reports it.
                if !known.databases.is_empty() && known.problem.as_ref() != Some(&problem) {
                    Terminal::new().warning(format_args!("{problem}; what is shown stays"));
                }
                known.problem = Some(problem);
                known.asked = known.asked.filter(|_| !known.databases.is_empty());
                Err(error)
            }
        }
    }

    /// The body of an answer.
    fn get(&self, target: &str) -> io::Result<Vec<u8>> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The server may have closed a connection that was kept: then another one is made.
        if let Some(stream) = connection.take()
            && let Ok(answer) = stream.get(target)
        {
            return Self::body(answer, target, &mut connection);
        }
        let answer = Connection::open(&self.address)?.get(target)?;
        Self::body(answer, target, &mut connection)
    }

    /// Takes what an answer says, and keeps its connection.
    fn body(
        answer: HttpReply,
        target: &str,
        connection: &mut Option<Connection>,
    ) -> io::Result<Vec<u8>> {
        *connection = answer.connection;
        let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)])
            .trim()
            .to_owned();
        match answer.status {
            200 => Ok(answer.body),
            // Of what is denied or not found, something about files would be said.
            401 => Err(io::Error::other(
                "the server asks for a token; specify its file with `--token-file`",
            )),
            404 if target.starts_with(&format!("{LIST}/")) => Err(io::Error::other(text)),
            404 => Err(io::Error::new(
                ErrorKind::Unsupported,
                "it does not list databases; specify where `kymo serve` answers queries (`query.listen`)",
            )),
            status => Err(io::Error::other(format!(
                "the server answers {status}: {text}"
            ))),
        }
    }
}

/// Reads a list of databases.
fn parse_list(body: &[u8]) -> io::Result<BTreeMap<String, u64>> {
    let wrong = || {
        io::Error::new(
            ErrorKind::InvalidData,
            "the list of databases is not one of `kymo serve`",
        )
    };
    let answer: Value = serde_json::from_slice(body).map_err(|_| wrong())?;
    let list = answer["databases"].as_array().ok_or_else(wrong)?;
    let databases = list.iter().map(|database| {
        let name = database["path"].as_str().filter(|name| is_plain(name));
        let version = database["version"]
            .as_str()
            .and_then(|text| u64::from_str_radix(text, 16).ok());
        name.map(str::to_owned).zip(version).ok_or_else(wrong)
    });
    databases.collect()
}

/// Whether a name is a path below the server's data.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// A name as addresses have it.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

impl RemoteTree for RemoteServer {
    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        let name = Self::name(path)?;
        let known = self.known();
        if known.databases.contains_key(&name) {
            return Ok(EntryKind::File);
        }
        let is_directory = known.below(&name).next().is_some();
        match is_directory {
            true => Ok(EntryKind::Directory),
            false if name.is_empty() => Ok(EntryKind::Directory),
            // Of what is not found, it would be said that it is a URL.
            false => Err(io::Error::other("the server has no database there")),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let directory = Self::name(path)?;
        let known = self.known();
        let mut entries: BTreeMap<&str, EntryKind> = BTreeMap::new();
        for (rest, _) in known.below(&directory) {
            match rest.split_once('/') {
                Some((name, _)) => entries.insert(name, EntryKind::Directory),
                None if rest.is_empty() => return Err(ErrorKind::NotADirectory.into()),
                None => entries.insert(rest, EntryKind::File),
            };
        }
        let entries = entries.into_iter().map(|(name, kind)| Entry {
            name: name.into(),
            path: path.join(name),
            kind,
            is_link: false,
        });
        Ok(entries.collect())
    }

    fn source(&self, path: &Path) -> io::Result<SharedSource> {
        let name = Self::name(path)?;
        let version = self.known().databases.get(&name).copied();
        let version = version.ok_or(ErrorKind::NotFound)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = last
            .as_ref()
            .filter(|sent| sent.name == name && sent.version == version)
        {
            return Ok(Arc::clone(&sent.bytes) as SharedSource);
        }
        let bytes = Arc::new(self.get(&format!("{LIST}/{}", encoded(&name)))?);
        *last = Some(SentFile {
            name,
            version,
            bytes: Arc::clone(&bytes),
        });
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_servers_and_directories() {
        for (text, address, below) in [
            ("http://h:1", "http://h:1", ""),
            ("http://h:1/a/b/", "http://h:1", "a/b"),
            ("https://h/a", "https://h", "a"),
        ] {
            let (found, rest) = ServerAddress::parse(text).unwrap();
            assert_eq!((&*found.to_string(), &*rest), (address, below));
        }
        for wrong in ["https://", "http://", "http:///a", "http://me@h"] {
            assert!(ServerAddress::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_below_a_directory_that_is_known_is_not_listed_again() {
        let at = |text: &str| RemoteServer::at(text).unwrap().0;
        let directory = at("http://once:1/a");
        assert!(Arc::ptr_eq(&directory, &at("http://once:1/a/b.rrd")));
        for other in [
            "http://once:1/ab",
            "http://once:1",
            "https://once:1/a",
            "http://once:2/a",
        ] {
            assert!(!Arc::ptr_eq(&directory, &at(other)), "{other}");
        }
    }

    #[test]
    fn a_list_is_a_tree() {
        let body = br#"{"databases":[{"path":"a/b.rrd","version":"1f"},{"path":"a/c/d.rrd","version":"2"}]}"#;
        let (server, _) = RemoteServer::at("http://tree:1").unwrap();
        server.known().databases = parse_list(body).unwrap();
        let path = |text: &str| PathBuf::from(format!("http://tree:1{text}"));
        assert_eq!(server.kind(&path("")).unwrap(), EntryKind::Directory);
        assert_eq!(server.kind(&path("/a/")).unwrap(), EntryKind::Directory);
        assert_eq!(server.kind(&path("/a/b.rrd")).unwrap(), EntryKind::File);
        assert!(server.kind(&path("/a/b")).is_err());
        let names = server.list(&path("/a")).unwrap();
        let names: Vec<_> = names
            .iter()
            .map(|entry| (entry.path.to_str().unwrap(), entry.kind))
            .collect();
        let expected = [
            ("http://tree:1/a/b.rrd", EntryKind::File),
            ("http://tree:1/a/c", EntryKind::Directory),
        ];
        assert_eq!(names, expected);
        for wrong in [
            r#"{}"#,
            r#"{"databases":[{"path":"../x","version":"1"}]}"#,
            r#"{"databases":[{"path":"x"}]}"#,
            "[",
        ] {
            assert!(parse_list(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(encoded("a b/ü%.rrd"), "a%20b/%C3%BC%25.rrd");
    }
}
