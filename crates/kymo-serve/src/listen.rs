//! Sockets that wait for connections, and a thread for each of these.

mod activity;
mod server;
mod timed;
#[cfg(feature = "tls")]
pub(crate) mod tls;

use std::fs::Permissions;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymo_io::net::Address;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::Backlog;
use nix::unistd::{Group, getegid};

use activity::Activity;
pub(crate) use activity::Peer;
pub(crate) use server::ConnectionCounters;
pub use server::{Connections, Server};
pub(crate) use timed::TimedStream;

/// A connection that has sent nothing is closed after this.
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(60);

/// Connections that wait until they are accepted: as many as the system lets wait.
#[cfg(target_os = "linux")]
const MOST_WAITING: Backlog = Backlog::MAXALLOWABLE;
#[cfg(not(target_os = "linux"))]
const MOST_WAITING: Backlog = Backlog::MAXCONN;

/// So many bytes are discarded, and for so long, of a request that was answered before it was read.
const MOST_LAST_BYTES: usize = 64 << 20;
const LAST_BYTES_TIME: Duration = Duration::from_secs(3);

/// A socket that listens.
#[derive(Debug)]
pub enum Socket {
    /// One of this machine. The path is removed when it is closed, if there is one.
    Unix(UnixListener, Option<PathBuf>),
    /// A port, and how its connections are encrypted.
    Tcp(TcpListener, Encryption),
}

/// How the connections of a port are encrypted.
#[derive(Debug, Default)]
pub struct Encryption {
    #[cfg(feature = "tls")]
    acceptor: std::sync::Mutex<Option<tls::Acceptor>>,
}

#[cfg(feature = "tls")]
impl Encryption {
    /// Encrypts connections that come from now on, or does not.
    pub(crate) fn set(&self, acceptor: Option<tls::Acceptor>) {
        *crate::sync::lock(&self.acceptor) = acceptor;
    }
}

/// Who may connect to sockets with paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The mode of their files.
    pub mode: u32,
    /// The group of their files; that of the process if there is none.
    pub group: Option<String>,
}

impl Access {
    /// A mode, with the group of the process.
    pub const fn mode(mode: u32) -> Self {
        Self { mode, group: None }
    }

    /// Gives a file this mode and group.
    ///
    /// # Errors
    ///
    /// A group that does not exist; those of the system.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        let group = match &self.group {
            Some(name) => {
                let group = Group::from_name(name)?.ok_or_else(|| {
                    io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("the group `{name}` does not exist"),
                    )
                })?;
                group.gid.as_raw()
            }
            None => group_of_new(path),
        };
        if path.symlink_metadata()?.gid() != group {
            std::os::unix::fs::chown(path, None, Some(group))?;
        }
        std::fs::set_permissions(path, Permissions::from_mode(self.mode))
    }
}

/// The group that a new file at a path gets: that of its directory if this hands its group on, or of the process.
fn group_of_new(path: &Path) -> u32 {
    const SETGID: u32 = 0o2000;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).metadata();
    match parent {
        Ok(parent) if parent.mode() & SETGID != 0 => parent.gid(),
        _ => getegid().as_raw(),
    }
}

impl Socket {
    /// Listens at an address. The socket of a path gets this mode and group; one that nobody listens at any
    /// more is replaced.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if another process listens there, or the path is not a socket; those of the system.
    pub fn bind(address: &Address, access: &Access) -> io::Result<Self> {
        match address {
            Address::Tcp(host, port) => {
                let listener = TcpListener::bind((host.as_str(), *port))?;
                // The standard library lets 128 connections wait, and the system drops what comes beside them. Those
                // of a burst wait as long as the system lets them, as they do at sockets with paths.
                nix::sys::socket::listen(&listener, MOST_WAITING)?;
                Ok(Self::Tcp(listener, Encryption::default()))
            }
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                let socket = Self::Unix(listener, Some(path.clone()));
                access.give(path)?;
                Ok(socket)
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
            Self::Tcp(listener, _) => match listener.local_addr() {
                Ok(address) => address.to_string(),
                Err(_) => "tcp:".into(),
            },
        }
    }

    /// Gives the file of a socket another mode and group, if it has one.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_access(&self, access: &Access) -> io::Result<()> {
        match self {
            Self::Unix(_, Some(path)) => access.give(path),
            _ => Ok(()),
        }
    }

    /// Takes a connection that waits.
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener, _) => listener
                .accept()
                .map(|(stream, _)| Stream::new(Wire::Unix(stream), &self.name())),
            Self::Tcp(listener, _encryption) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                #[cfg(feature = "tls")]
                if let Some(acceptor) = crate::sync::lock(&_encryption.acceptor).as_ref() {
                    let wire = Wire::Tls(Box::new(acceptor.accept(stream)?));
                    return Ok(Stream::new(wire, &self.name()));
                }
                Ok(Stream::new(Wire::Tcp(stream), &self.name()))
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(path)) = self {
            // Another process may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds a socket of this machine for datagrams, whose file gets this mode and group; one that nobody receives at any
/// more is replaced.
///
/// # Errors
///
/// `AddrInUse` if another receives there, or the path is not a socket; those of the system.
pub(crate) fn bind_datagrams(path: &Path, access: &Access) -> io::Result<UnixDatagram> {
    if let Ok(there) = path.symlink_metadata() {
        let is_left = there.file_type().is_socket()
            && UnixDatagram::unbound()?
                .connect(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        match is_left {
            true => std::fs::remove_file(path)?,
            false => return Err(io::ErrorKind::AddrInUse.into()),
        }
    }
    let socket = UnixDatagram::bind(path)?;
    socket.set_nonblocking(true)?;
    access.give(path)?;
    Ok(socket)
}

/// Removes a socket that nothing listens on.
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
pub struct Stream {
    wire: Wire,
    /// Where it was accepted, for messages.
    listener: Arc<str>,
    /// Whether the daemon has ended reading.
    is_cut: Arc<AtomicBool>,
    activity: Arc<Activity>,
    /// How long reading may take once something has come, if that is another time than before.
    idle_timeout: Option<Duration>,
    /// How long it may take until a line has come as a whole, if it is one of lines.
    line_timeout: Option<Duration>,
    /// How long was waited for the line at hand.
    waited: Duration,
}

#[derive(Debug)]
enum Wire {
    Unix(UnixStream),
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tls::TlsStream>),
}

impl Wire {
    /// The connection of TCP, if it is one.
    fn tcp(&self) -> Result<&TcpStream, &UnixStream> {
        match self {
            Self::Unix(stream) => Err(stream),
            Self::Tcp(stream) => Ok(stream),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Ok(stream.socket()),
        }
    }
}

impl Stream {
    fn new(wire: Wire, listener: &str) -> Self {
        Self {
            wire,
            listener: listener.into(),
            is_cut: Arc::default(),
            activity: Arc::default(),
            idle_timeout: None,
            line_timeout: None,
            waited: Duration::ZERO,
        }
    }

    /// A connection of TCP.
    #[cfg(test)]
    pub(crate) fn of_tcp(stream: TcpStream) -> Self {
        Self::new(Wire::Tcp(stream), "tcp")
    }

    /// A connection without a socket to listen at, and its other end.
    #[cfg(test)]
    pub(crate) fn pair() -> io::Result<(Self, UnixStream)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Self::new(Wire::Unix(one), "pair"), other))
    }

    /// Where it was accepted, for messages.
    pub fn listener(&self) -> &str {
        &self.listener
    }

    /// The address of the client; `None` if it is a process of this machine, or gone.
    pub fn peer(&self) -> Option<IpAddr> {
        Some(self.wire.tcp().ok()?.peer_addr().ok()?.ip())
    }

    /// Who shares connections fairly with others.
    fn share(&self) -> Peer {
        match self.wire.tcp() {
            Ok(_) => self.peer().map_or(Peer::Unknown, Peer::of_address),
            Err(stream) => Peer::of_process(stream),
        }
    }

    /// Whether it was the daemon that ended reading: what was read last may be a part of what the client has
    /// to say.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Whether the client has closed it, as far as that is known: behind bytes that nobody has read it is not.
    pub(crate) fn is_closed(&self) -> bool {
        use nix::sys::socket::{MsgFlags, recv};

        let peek = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let descriptor = match self.wire.tcp() {
            Err(stream) => stream.as_raw_fd(),
            Ok(stream) => stream.as_raw_fd(),
        };
        match recv(descriptor, &mut [0], peek) {
            // What the daemon itself has ended reads so, too.
            Ok(read) => read == 0 && !self.is_cut(),
            Err(error) => error != nix::Error::EAGAIN && error != nix::Error::EINTR,
        }
    }

    /// Ends reading.
    fn cut(&self) {
        // It is seen by whoever sees the end.
        self.is_cut.store(true, Ordering::Relaxed);
        self.shutdown(Shutdown::Read);
    }

    /// Has reading and writing fail that takes longer than this.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_patience(patience)?;
        self.set_write_patience(patience)
    }

    fn set_read_patience(&self, patience: Duration) -> io::Result<()> {
        match self.wire.tcp() {
            Ok(stream) => stream.set_read_timeout(Some(patience)),
            Err(stream) => stream.set_read_timeout(Some(patience)),
        }
    }

    /// Has writing fail that takes longer than this.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_write_patience(&self, patience: Duration) -> io::Result<()> {
        match self.wire.tcp() {
            Ok(stream) => stream.set_write_timeout(Some(patience)),
            Err(stream) => stream.set_write_timeout(Some(patience)),
        }
    }

    /// Has reading fail if no line has ended for this long, however its bytes come, or nothing at all has come within
    /// 60 seconds. Times in which nobody reads do not count.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn set_idle_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.idle_timeout = Some(timeout);
        self.line_timeout = Some(timeout);
        self.set_read_patience(timeout.min(FIRST_BYTE))
    }

    /// Another end of it, which can end it.
    fn try_clone(&self) -> io::Result<Self> {
        let wire = match self.wire.tcp() {
            Err(stream) => Wire::Unix(stream.try_clone()?),
            Ok(stream) => Wire::Tcp(stream.try_clone()?),
        };
        Ok(Self {
            wire,
            listener: Arc::clone(&self.listener),
            is_cut: Arc::clone(&self.is_cut),
            activity: Arc::clone(&self.activity),
            idle_timeout: None,
            line_timeout: None,
            waited: Duration::ZERO,
        })
    }

    /// Notes what was read since some time, and fails if the line at hand does not end.
    fn check_line(&mut self, since: Instant, bytes: &[u8]) -> io::Result<()> {
        let Some(timeout) = self.line_timeout else {
            return Ok(());
        };
        if memchr::memchr(b'\n', bytes).is_some() {
            self.waited = Duration::ZERO;
            return Ok(());
        }
        self.waited += since.elapsed();
        match self.waited > timeout {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// Ends a connection whose client may still send: says that nothing more is answered, and discards what comes, up to
    /// a bound. If it was closed with bytes that nobody has read, the system would reset it, and the client might never
    /// see the answer.
    pub(crate) fn close_after_answer(&mut self) {
        #[cfg(feature = "tls")]
        if let Wire::Tls(stream) = &mut self.wire {
            stream.end_writing();
        }
        self.shutdown(Shutdown::Write);
        let end = Instant::now() + LAST_BYTES_TIME;
        let mut buffer = vec![0; 1 << 16];
        let mut rest = MOST_LAST_BYTES;
        while rest > 0 {
            let mut timed = TimedStream { stream: self, end };
            match timed.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => rest = rest.saturating_sub(count),
            }
        }
    }

    fn shutdown(&self, how: Shutdown) {
        // It may have ended already.
        let _ = match self.wire.tcp() {
            Err(stream) => stream.shutdown(how),
            Ok(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.activity.begin_reading();
        let since = Instant::now();
        let read = match &mut self.wire {
            Wire::Unix(stream) => stream.read(buffer),
            Wire::Tcp(stream) => stream.read(buffer),
            #[cfg(feature = "tls")]
            Wire::Tls(stream) => stream.read(buffer),
        };
        let count = *read.as_ref().unwrap_or(&0);
        self.activity.end_reading(count > 0);
        if count > 0
            && let Some(timeout) = self.idle_timeout.take()
        {
            self.set_read_patience(timeout)?;
        }
        self.check_line(since, &buffer[..count])?;
        read
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.wire {
            Wire::Unix(stream) => stream.write(bytes),
            Wire::Tcp(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Wire::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Notifies threads that wait at sockets when they are to end: see [`Stop::wait`].
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
    /// Waits until something can be read, and returns whether that is so: if not, it is time to end.
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

#[cfg(test)]
mod tests;
