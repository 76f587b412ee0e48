//! Sockets that wait for connections, and a thread for each of these.

mod server;
mod timed;

use std::fs::Permissions;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymo_io::net::Address;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub use server::{Connections, Server};
pub(crate) use timed::TimedStream;

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
            Self::Unix(listener, _) => listener
                .accept()
                .map(|(stream, _)| Stream::new(Wire::Unix(stream), &self.name())),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::new(Wire::Tcp(stream), &self.name()))
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

/// Binds a socket of this machine for datagrams, whose file gets this mode; one that nobody receives at any more is
/// replaced.
///
/// # Errors
///
/// `AddrInUse` if another receives there, or the path is not a socket; those of the system.
pub(crate) fn bind_datagrams(path: &Path, mode: u32) -> io::Result<UnixDatagram> {
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
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(socket)
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
pub struct Stream {
    wire: Wire,
    /// Where it was accepted, for messages.
    listener: Arc<str>,
    /// Whether the daemon has ended reading.
    is_cut: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Wire {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn new(wire: Wire, listener: &str) -> Self {
        Self {
            wire,
            listener: listener.into(),
            is_cut: Arc::default(),
        }
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
        match &self.wire {
            Wire::Unix(_) => None,
            Wire::Tcp(stream) => Some(stream.peer_addr().ok()?.ip()),
        }
    }

    /// Whether it was the daemon that ended reading: what was read last may be a part of what the client has
    /// to say.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
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
        let patience = Some(patience);
        match &self.wire {
            Wire::Unix(stream) => stream
                .set_read_timeout(patience)
                .and_then(|()| stream.set_write_timeout(patience)),
            Wire::Tcp(stream) => stream
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
        match &self.wire {
            Wire::Unix(stream) => stream.set_write_timeout(Some(patience)),
            Wire::Tcp(stream) => stream.set_write_timeout(Some(patience)),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        let wire = match &self.wire {
            Wire::Unix(stream) => Wire::Unix(stream.try_clone()?),
            Wire::Tcp(stream) => Wire::Tcp(stream.try_clone()?),
        };
        Ok(Self {
            wire,
            listener: Arc::clone(&self.listener),
            is_cut: Arc::clone(&self.is_cut),
        })
    }

    fn shutdown(&self, how: Shutdown) {
        // It may have ended already.
        let _ = match &self.wire {
            Wire::Unix(stream) => stream.shutdown(how),
            Wire::Tcp(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.wire {
            Wire::Unix(stream) => stream.read(buffer),
            Wire::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.wire {
            Wire::Unix(stream) => stream.write(bytes),
            Wire::Tcp(stream) => stream.write(bytes),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

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
        let server = Server::start(
            "echo",
            &[Arc::new(socket)],
            2,
            &(Arc::new(|_: &str| {}) as _),
            echo,
        )
        .unwrap();
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

    #[test]
    fn sockets_come_and_go() {
        let directory = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| directory.path().join(name));
        let [a, b] = paths.clone().map(|path| {
            let socket = Socket::bind(&Address::Unix(path), 0o600);
            Arc::new(socket.unwrap())
        });
        let echo = |mut stream: Stream| {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        };
        let server = Server::start(
            "echo",
            &[Arc::clone(&a)],
            9,
            &(Arc::new(|_: &str| {}) as _),
            echo,
        )
        .unwrap();
        server.add(&[Arc::clone(&a), Arc::clone(&b)]).unwrap();
        let [mut one, mut other] = paths.each_ref().map(|path| {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        });
        drop(a);
        server.retain(std::slice::from_ref(&b), 1);
        assert_eq!(one.read(&mut [0]).unwrap(), 0, "its socket is gone");
        assert!(!paths[0].exists());
        other.write_all(b"x").unwrap();
        other.read_exact(&mut [0]).unwrap();
        let mut third = UnixStream::connect(&paths[1]).unwrap();
        assert_eq!(third.read(&mut [0]).unwrap_or(0), 0, "only one at a time");
        assert_eq!(server.connections().count.load(Relaxed), 1);
        server.stop();
    }
}
