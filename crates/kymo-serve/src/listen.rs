//! Sockets that wait for connections, and a thread for each of these.

use std::collections::HashMap;
use std::fmt;
use std::fs::Permissions;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_io::most_open_files;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long connections have for what they are doing when the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of this machine, by its path.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String, u16),
}

impl Address {
    /// Reads `unix:PATH`, `/PATH`, `HOST`, `HOST:PORT` or `[IPv6]:PORT`. `None` where the port is no number, or
    /// not told and there is none to assume.
    pub fn parse(text: &str, port: Option<u16>) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(Self::Unix(path.into()));
        }
        if text.starts_with('/') {
            return Some(Self::Unix(text.into()));
        }
        let (host, told) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => match text.find(':') {
                // One colon, and not the many of IPv6.
                Some(colon) if !text[colon + 1..].contains(':') => text.split_at(colon),
                _ => (text, ""),
            },
        };
        let port = match told.strip_prefix(':') {
            Some(told) => told.parse().ok(),
            None if told.is_empty() => port,
            None => None,
        };
        (!host.is_empty()).then_some(())?;
        Some(Self::Tcp(host.to_owned(), port?))
    }

    /// Whether only this machine can connect, as far as names are resolved.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(host, port) => (host.as_str(), *port)
                .to_socket_addrs()
                .is_ok_and(|mut all| all.all(|address| is_loopback(address.ip()))),
        }
    }
}

/// Whether an address is one of this machine that no other reaches.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// A socket that listens.
#[derive(Debug)]
pub enum Socket {
    /// One of this machine. The path is removed when it is closed, if there is one.
    Unix(UnixListener, Option<PathBuf>),
    /// A port.
    Tcp(TcpListener),
}

impl Socket {
    /// Listens at an address. The socket of a path gets this mode; one that nobody listens at any more
    /// is replaced.
    ///
    /// # Errors
    ///
    /// `AddrInUse` where another listens there, or the path is no socket; those of the system.
    pub fn bind(address: &Address, mode: u32) -> io::Result<Self> {
        match address {
            Address::Tcp(host, port) => Ok(Self::Tcp(TcpListener::bind((host.as_str(), *port))?)),
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                std::fs::set_permissions(path, Permissions::from_mode(mode))?;
                Ok(Self::Unix(listener, Some(path.clone())))
            }
        }
    }

    /// Where it listens, for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Unix(listener, _) => match listener.local_addr() {
                Ok(address) => match address.as_pathname() {
                    Some(path) => format!("unix:{}", path.display()),
                    None => "unix:".into(),
                },
                Err(_) => "unix:".into(),
            },
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.to_string(),
                Err(_) => "tcp:".into(),
            },
        }
    }

    /// The same socket once more. Its path stays when this one is closed.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(listener, _) => Ok(Self::Unix(listener.try_clone()?, None)),
            Self::Tcp(listener) => listener.try_clone().map(Self::Tcp),
        }
    }

    /// Gives the file of a socket another mode, if it has one.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        match self {
            Self::Unix(_, Some(path)) => {
                std::fs::set_permissions(path, Permissions::from_mode(mode))
            }
            _ => Ok(()),
        }
    }

    /// Takes a connection that waits.
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(path)) = self {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket at which nobody listens any more.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = match path.symlink_metadata() {
        Ok(there) => there.file_type().is_socket(),
        Err(_) => return Ok(()),
    };
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Of this machine.
    Unix(UnixStream),
    /// Of any.
    Tcp(TcpStream),
}

impl Stream {
    /// Has reading and writing fail that takes longer than this.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        let patience = Some(patience);
        match self {
            Self::Unix(stream) => stream
                .set_read_timeout(patience)
                .and_then(|()| stream.set_write_timeout(patience)),
            Self::Tcp(stream) => stream
                .set_read_timeout(patience)
                .and_then(|()| stream.set_write_timeout(patience)),
        }
    }

    /// Has writing fail that takes longer than this; who asks nothing may stay.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_write_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(Some(patience)),
            Self::Tcp(stream) => stream.set_write_timeout(Some(patience)),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    fn shutdown(&self, how: Shutdown) {
        // It may have ended already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tells threads that wait at sockets when they are to end: see [`Stop::wait`].
#[derive(Debug)]
pub struct Stop(PipeReader);

/// As long as this is there, they go on.
#[derive(Debug)]
pub struct Running {
    _writer: PipeWriter,
}

/// A pair of both; a [`Stop`] can be shared by threads.
///
/// # Errors
///
/// Those of the system.
pub fn stop() -> io::Result<(Running, Stop)> {
    let (reader, writer) = io::pipe()?;
    Ok((Running { _writer: writer }, Stop(reader)))
}

impl Stop {
    /// Waits until something can be read, and tells whether that is so: if not, it is time to end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn wait(&self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            let mut both = [
                PollFd::new(socket, PollFlags::POLLIN),
                PollFd::new(self.0.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut both, PollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if both[1].any().unwrap_or(true) {
                return Ok(false);
            }
            if both[0].any().unwrap_or(true) {
                return Ok(true);
            }
        }
    }
}

/// Sockets with a thread for each, and one for each of their connections.
#[derive(Debug)]
pub struct Server {
    running: Option<Running>,
    threads: Vec<JoinHandle<()>>,
    connections: Arc<Connections>,
}

/// The connections of a server.
#[derive(Debug, Default)]
pub struct Connections {
    /// How many may be open.
    most: usize,
    open: Mutex<HashMap<u64, Stream>>,
    /// How many are open.
    pub count: AtomicUsize,
    /// How many there have been.
    pub accepted: AtomicU64,
    /// How many were turned away, since there were too many.
    pub refused: AtomicU64,
}

impl Server {
    /// Waits for connections, no more than so many at a time, nor than a tenth of the files that the
    /// process may have open. Each is served by a thread, which calls `serve` with it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn start(
        name: &str,
        sockets: Vec<Socket>,
        most: usize,
        serve: impl Fn(Stream) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (running, stop) = stop()?;
        let stop = Arc::new(stop);
        // Each has two files, and there may be three servers beside the databases.
        let connections = Arc::new(Connections {
            most: most.min(most_open_files() / 10).max(1),
            ..Connections::default()
        });
        let mut threads = Vec::new();
        for socket in sockets {
            let (stop, connections) = (Arc::clone(&stop), Arc::clone(&connections));
            let (name, serve) = (name.to_owned(), serve.clone());
            let thread = std::thread::Builder::new().name(name.clone());
            threads
                .push(thread.spawn(move || listen(&name, &socket, &stop, &connections, &serve))?);
        }
        Ok(Self {
            running: Some(running),
            threads,
            connections,
        })
    }

    /// Its connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Takes no connections any more, answers what has come, and ends those that are open.
    pub fn stop(&mut self) {
        drop(self.running.take());
        for thread in self.threads.drain(..) {
            // A thread that panicked has told so.
            let _ = thread.join();
        }
        self.connections.shut_down(Shutdown::Read);
        let end = Instant::now() + LAST_ANSWERS;
        while self.connections.count.load(Relaxed) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.connections.shut_down(Shutdown::Both);
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Stream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shut_down(&self, how: Shutdown) {
        self.open().values().for_each(|stream| stream.shutdown(how));
    }
}

/// Accepts connections until it is time to end.
fn listen(
    name: &str,
    socket: &Socket,
    stop: &Stop,
    connections: &Arc<Connections>,
    serve: &(impl Fn(Stream) + Clone + Send + 'static),
) {
    while stop.wait(socket.as_fd()).unwrap_or(false) {
        let begun = socket
            .accept()
            .and_then(|stream| begin(name, stream, connections, serve.clone()));
        if begun.is_err() {
            // There are no files or threads left, or the client is gone: others may end meanwhile.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Serves a connection by a thread of its own.
fn begin(
    name: &str,
    stream: Stream,
    connections: &Arc<Connections>,
    serve: impl Fn(Stream) + Send + 'static,
) -> io::Result<()> {
    if connections.count.load(Relaxed) >= connections.most {
        connections.refused.fetch_add(1, Relaxed);
        return Ok(());
    }
    let number = connections.accepted.fetch_add(1, Relaxed);
    connections.open().insert(number, stream.try_clone()?);
    connections.count.fetch_add(1, Relaxed);
    let ended = Ended(Arc::clone(connections), number);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || {
        let _ended = ended;
        serve(stream);
    })?;
    Ok(())
}

/// Notes that a connection has ended, whatever way.
struct Ended(Arc<Connections>, u64);

impl Drop for Ended {
    fn drop(&mut self) {
        let stream = self.0.open().remove(&self.1);
        self.0.count.fetch_sub(1, Relaxed);
        if let Some(stream) = stream {
            stream.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_many_ways() {
        let tcp = |host: &str, port| Some(Address::Tcp(host.into(), port));
        for (text, address) in [
            ("unix:run/sock", Some(Address::Unix("run/sock".into()))),
            ("/run/sock", Some(Address::Unix("/run/sock".into()))),
            ("localhost", tcp("localhost", 42217)),
            ("localhost:1234", tcp("localhost", 1234)),
            ("::1", tcp("::1", 42217)),
            ("[::1]", tcp("::1", 42217)),
            ("[::1]:1234", tcp("::1", 1234)),
            ("localhost:x", None),
            ("localhost:70000", None),
            ("[::1]x", None),
            ("", None),
            (":80", None),
        ] {
            assert_eq!(Address::parse(text, Some(42217)), address, "{text}");
        }
        assert_eq!(Address::parse("localhost", None), None);
    }

    #[test]
    fn only_loopback_is_local() {
        for (text, local) in [
            ("/run/sock", true),
            ("127.0.0.1:1", true),
            ("127.5.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            assert_eq!(
                Address::parse(text, None).unwrap().is_local(),
                local,
                "{text}"
            );
        }
    }

    #[test]
    fn sockets_without_a_listener_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("sock"));
        let Address::Unix(path) = &address else {
            unreachable!()
        };
        drop(UnixListener::bind(path).unwrap());
        let socket = Socket::bind(&address, 0o600).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = Socket::bind(&address, 0o600).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        std::fs::write(path, "no socket").unwrap();
        assert!(Socket::bind(&address, 0o600).is_err());
    }

    #[test]
    fn connections_are_served_until_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("sock"));
        let Address::Unix(path) = &address else {
            unreachable!()
        };
        let echo = |mut stream: Stream| {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        };
        let socket = Socket::bind(&address, 0o600).unwrap();
        let mut server = Server::start("echo", vec![socket], 2, echo).unwrap();
        let mut one = UnixStream::connect(path).unwrap();
        let mut other = UnixStream::connect(path).unwrap();
        let mut byte = [0];
        for stream in [&mut one, &mut other] {
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut byte).unwrap();
        }
        // A third is turned away.
        let mut third = UnixStream::connect(path).unwrap();
        assert_eq!(third.read(&mut byte).unwrap_or(0), 0);
        assert_eq!(server.connections().refused.load(Relaxed), 1);
        server.stop();
        assert_eq!(one.read(&mut byte).unwrap(), 0);
        assert!(UnixStream::connect(path).is_err());
    }
}
