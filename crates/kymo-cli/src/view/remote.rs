//! Databases of a running `kymo serve` on another machine, by its address: `http://HOST:PORT/DIRECTORY`.
//!
//! Its queries list databases with a version each, and send them as files with all updates that wait in memory. Here they
//! are a tree, which is opened as directories are; which ones have changed, the versions show.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kymo_io::{Entry, EntryKind, RemoteTree, SharedSource};
use serde_json::Value;

use crate::terminal::Terminal;

/// Where a server lists its databases, which are below it.
const LIST: &str = "/databases";

/// How old a list may be.
const PERIOD: Duration = Duration::from_millis(500);

/// How long connecting, and each piece of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer, in bytes, and the largest head.
const MOST_ANSWER: usize = 128 << 20;
const MOST_HEAD: usize = 64 << 10;

/// Databases that are opened at most.
const MOST_DATABASES: usize = 10_000;

/// The servers that are known, by `HOST:PORT`.
static SERVERS: LazyLock<Mutex<HashMap<String, Arc<RemoteServer>>>> = LazyLock::new(Mutex::default);

/// The file with the token that servers ask for.
static TOKEN_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Lets paths lead to databases of servers.
pub(super) fn install(token_file: Option<&Path>) {
    if let Some(path) = token_file {
        let _ = TOKEN_FILE.set(path.to_path_buf());
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
    let all = known.databases.iter().filter_map(|(name, version)| {
        let rest = below_of(name, &below)?;
        let file = if rest.is_empty() {
            path.to_path_buf()
        } else {
            path.join(rest)
        };
        Some((file, *version))
    });
    all.collect()
}

/// What an address leads to.
fn open(text: &str) -> io::Result<Arc<dyn RemoteTree>> {
    let (server, below) = RemoteServer::at(text)?;
    server.refresh()?;
    let known = server.known();
    let count = known
        .databases
        .keys()
        .filter(|name| below_of(name, &below).is_some())
        .count();
    drop(known);
    if count > MOST_DATABASES {
        let problem = format!(
            "the server has {count} databases there, and at most {MOST_DATABASES} are shown; specify a directory, such as http://{}/DIRECTORY",
            server.authority
        );
        return Err(io::Error::new(ErrorKind::InvalidInput, problem));
    }
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

/// A server, and what it has.
#[derive(Debug)]
struct RemoteServer {
    authority: String,
    known: Mutex<Listed>,
    connection: Mutex<Option<TcpStream>>,
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
    /// What was reported last: the same is not reported again.
    problem: Option<String>,
}

impl RemoteServer {
    /// The server of an address, and the directory of it that the address names.
    fn at(text: &str) -> io::Result<(Arc<Self>, String)> {
        let wrong = |problem: &str| io::Error::new(ErrorKind::InvalidInput, problem);
        let rest = text.strip_prefix("http://").ok_or_else(|| {
            wrong("https:// is not supported; forward the port with `ssh -L 9090:localhost:9090 HOST`, and specify http://localhost:9090")
        })?;
        let (authority, below) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() || authority.contains('@') {
            return Err(wrong(
                "expected http://HOST:PORT or http://HOST:PORT/DIRECTORY",
            ));
        }
        let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.entry(authority.to_owned()).or_insert_with(|| {
            Arc::new(Self {
                authority: authority.to_owned(),
                known: Mutex::default(),
                connection: Mutex::default(),
                last: Mutex::default(),
            })
        });
        Ok((Arc::clone(server), below.trim_matches('/').to_owned()))
    }

    fn known(&self) -> MutexGuard<'_, Listed> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a database or directory of this server, by its path.
    fn name(&self, path: &Path) -> io::Result<String> {
        let text = path.to_str().unwrap_or_default();
        Self::at(text).map(|(_, name)| name)
    }

    /// Asks for the list of databases, unless it was asked for just now. What fails is reported once.
    fn refresh(&self) -> io::Result<()> {
        let mut known = self.known();
        if known.asked.is_some_and(|asked| asked.elapsed() < PERIOD) {
            return Ok(());
        }
        let listed = self.get(LIST).and_then(|body| parse_list(&body));
        // Behind the answer: a server that is slow is not asked all the time.
        known.asked = Some(Instant::now());
        match listed {
            Ok(databases) => {
                known.databases = databases;
                known.problem = None;
                Ok(())
            }
            Err(error) => {
                let problem = format!("http://{}: {error}", self.authority);
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
            && let Ok(answer) = self.exchange(stream, target)
        {
            return self.body(answer, target, &mut connection);
        }
        let answer = self.exchange(connect(&self.authority)?, target)?;
        self.body(answer, target, &mut connection)
    }

    /// Takes what an answer says, and keeps its connection.
    fn body(
        &self,
        answer: HttpReply,
        target: &str,
        connection: &mut Option<TcpStream>,
    ) -> io::Result<Vec<u8>> {
        *connection = answer.stream;
        let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)])
            .trim()
            .to_owned();
        match answer.status {
            200 => Ok(answer.body),
            // Of what is denied or not found, something about files would be said.
            401 => Err(io::Error::other(
                "the server asks for a token; specify its file with `--token-file`",
            )),
            404 if target != LIST => Err(io::Error::other(text)),
            404 => Err(io::Error::new(
                ErrorKind::Unsupported,
                "it does not list databases; specify where `kymo serve` answers queries (`query.listen`)",
            )),
            status => Err(io::Error::other(format!(
                "the server answers {status}: {text}"
            ))),
        }
    }

    /// Sends a request and reads its answer.
    fn exchange(&self, mut stream: TcpStream, target: &str) -> io::Result<HttpReply> {
        let authorization = match TOKEN_FILE.get() {
            None => String::new(),
            Some(path) => format!("Authorization: Bearer {}\r\n", read_token(path)?),
        };
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: kymo/{}\r\n{authorization}\r\n",
            self.authority,
            env!("CARGO_PKG_VERSION")
        );
        stream.write_all(request.as_bytes())?;
        read_reply(stream)
    }
}

/// An answer, and the connection if it stays.
struct HttpReply {
    status: u16,
    body: Vec<u8>,
    stream: Option<TcpStream>,
}

fn connect(authority: &str) -> io::Result<TcpStream> {
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let text = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let mut failed = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in text.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn read_token(path: &Path) -> io::Result<String> {
    let failed = |problem: String| {
        io::Error::new(
            ErrorKind::InvalidInput,
            format!("`{}`: {problem}", path.display()),
        )
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    // As the server reads the same file: the first token of several.
    let token = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    let token = token.filter(|token| token.chars().all(|char| char.is_ascii_graphic()));
    token
        .map(str::to_owned)
        .ok_or_else(|| failed("expected a token on a line".to_owned()))
}

/// Reads an answer with a length, as `kymo serve` sends them.
fn read_reply(mut stream: TcpStream) -> io::Result<HttpReply> {
    let wrong = || {
        io::Error::new(
            ErrorKind::InvalidData,
            "the answer is not one of `kymo serve`",
        )
    };
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    let (status, length, begin, keeps) = loop {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut reply = httparse::Response::new(&mut headers);
        match reply.parse(&bytes) {
            Ok(httparse::Status::Complete(begin)) => {
                let header = |name: &str| {
                    let mut all = reply.headers.iter();
                    let found = all.find(|it| it.name.eq_ignore_ascii_case(name))?;
                    std::str::from_utf8(found.value).ok().map(str::trim)
                };
                let length = header("Content-Length").and_then(|text| text.parse::<usize>().ok());
                let length = length
                    .filter(|length| *length <= MOST_ANSWER)
                    .ok_or_else(wrong)?;
                let keeps =
                    !header("Connection").is_some_and(|text| text.eq_ignore_ascii_case("close"));
                break (reply.code.unwrap_or_default(), length, begin, keeps);
            }
            Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD => {}
            _ => return Err(wrong()),
        }
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..count]);
    };
    let mut body = bytes.split_off(begin);
    while body.len() < length {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        body.extend_from_slice(&piece[..count]);
    }
    let is_exact = body.len() == length;
    body.truncate(length);
    Ok(HttpReply {
        status,
        body,
        stream: (keeps && is_exact).then_some(stream),
    })
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
        let name = self.name(path)?;
        let known = self.known();
        if known.databases.contains_key(&name) {
            return Ok(EntryKind::File);
        }
        let mut all = known.databases.keys();
        match all.any(|path| below_of(path, &name).is_some()) {
            true => Ok(EntryKind::Directory),
            false if name.is_empty() => Ok(EntryKind::Directory),
            // Of what is not found, it would be said that it is a URL.
            false => Err(io::Error::other("the server has no database there")),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let directory = self.name(path)?;
        let known = self.known();
        let mut entries: BTreeMap<&str, EntryKind> = BTreeMap::new();
        for rest in known
            .databases
            .keys()
            .filter_map(|name| below_of(name, &directory))
        {
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
        let name = self.name(path)?;
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
        let at = |text: &str| {
            RemoteServer::at(text).map(|(server, below)| (server.authority.clone(), below))
        };
        assert_eq!(at("http://h:1").unwrap(), ("h:1".into(), String::new()));
        assert_eq!(at("http://h:1/a/b/").unwrap(), ("h:1".into(), "a/b".into()));
        for wrong in ["https://h", "http://", "http:///a", "http://me@h"] {
            assert!(at(wrong).is_err(), "{wrong}");
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
