//! Sockets with their threads, and connections with theirs.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_io::{most_open_files, reason};

use super::{Running, Socket, Stop, Stream, stop};
use crate::log_limiter::LogLimiter;
use crate::store::Log;

/// How long connections have for what they are doing when the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Sockets with a thread for each, and one for each of their connections.
pub struct Server {
    name: String,
    serve: Serve,
    log_limiter: Arc<LogLimiter>,
    posts: Mutex<Vec<Post>>,
    connections: Arc<Connections>,
}

/// Serves a connection until it ends.
type Serve = Arc<dyn Fn(Stream) + Send + Sync>;

/// A socket whose connections are taken by a thread.
#[derive(Debug)]
struct Post {
    socket: Arc<Socket>,
    running: Option<Running>,
    thread: Option<JoinHandle<()>>,
}

/// The connections of a server.
#[derive(Debug, Default)]
pub struct Connections {
    /// How many may be open.
    most: AtomicUsize,
    /// Each with the socket that it came by.
    open: Mutex<HashMap<u64, (Stream, Weak<Socket>)>>,
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
        sockets: &[Arc<Socket>],
        most: usize,
        log: &Log,
        serve: impl Fn(Stream) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let server = Self {
            name: name.to_owned(),
            serve: Arc::new(serve),
            log_limiter: Arc::new(LogLimiter::new(Arc::clone(log))),
            posts: Mutex::default(),
            connections: Arc::default(),
        };
        server.connections.set_most(most);
        server.add(sockets)?;
        Ok(server)
    }

    /// Its connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    fn posts(&self) -> MutexGuard<'_, Vec<Post>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for connections at these sockets, too, as far as it does not yet.
    ///
    /// # Errors
    ///
    /// Those of the system: then it waits at those that were before.
    pub fn add(&self, sockets: &[Arc<Socket>]) -> io::Result<()> {
        let mut posts = self.posts();
        let mut added = Vec::new();
        for socket in sockets {
            if !posts.iter().any(|post| Arc::ptr_eq(&post.socket, socket)) {
                added.push(self.post(socket)?);
            }
        }
        posts.append(&mut added);
        Ok(())
    }

    fn post(&self, socket: &Arc<Socket>) -> io::Result<Post> {
        let (running, stop) = stop()?;
        let (name, serve) = (self.name.clone(), Arc::clone(&self.serve));
        let (listened, connections) = (Arc::clone(socket), Arc::clone(&self.connections));
        let log_limiter = Arc::clone(&self.log_limiter);
        let thread = std::thread::Builder::new().name(name.clone());
        let thread = thread
            .spawn(move || listen(&name, &listened, &stop, &connections, &log_limiter, &serve))?;
        Ok(Post {
            socket: Arc::clone(socket),
            running: Some(running),
            thread: Some(thread),
        })
    }

    /// Waits for connections at these sockets only, no more than so many at a time: those that came by others
    /// are answered what has come of them, and ended.
    pub fn retain(&self, sockets: &[Arc<Socket>], most: usize) {
        self.connections.set_most(most);
        let mut posts = self.posts();
        let stays = |socket: &Arc<Socket>| sockets.iter().any(|it| Arc::ptr_eq(it, socket));
        let before = posts.len();
        posts.retain(|post| stays(&post.socket));
        if posts.len() < before {
            let is_left = |socket: &Weak<Socket>| !socket.upgrade().is_some_and(|it| stays(&it));
            self.connections.end(is_left);
        }
    }

    /// Takes no connections any more, answers what has come, and ends those that are open.
    pub fn stop(&self) {
        self.posts().clear();
        self.connections.end(|_| true);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has told so.
            let _ = thread.join();
        }
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, (Stream, Weak<Socket>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_most(&self, most: usize) {
        // Each has two files, and there may be three servers beside the databases.
        let most = most.min(most_open_files() / 10).max(1);
        self.most.store(most, Relaxed);
    }

    /// Ends those that came by some sockets, when what has come is answered or it has taken too long.
    fn end(&self, of: impl Fn(&Weak<Socket>) -> bool) {
        let each = |what: fn(&Stream)| {
            let open = self.open();
            let its = open.values().filter(|(_, socket)| of(socket));
            its.for_each(|(stream, _)| what(stream));
        };
        each(Stream::cut);
        let end = Instant::now() + LAST_ANSWERS;
        while self.open().values().any(|(_, socket)| of(socket)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        each(|stream| stream.shutdown(Shutdown::Both));
    }
}

/// Accepts connections until it is time to end.
fn listen(
    name: &str,
    socket: &Arc<Socket>,
    stop: &Stop,
    connections: &Arc<Connections>,
    log_limiter: &LogLimiter,
    serve: &Serve,
) {
    while stop.wait(socket.as_fd()).unwrap_or(false) {
        let refused = connections.refused.load(Relaxed);
        let begun = socket
            .accept()
            .and_then(|stream| begin(name, stream, socket, connections, serve));
        if connections.refused.load(Relaxed) > refused {
            log_limiter.tell(format_args!(
                "{name} at {}: connection refused: the limit of {} connections is reached",
                socket.name(),
                connections.most.load(Relaxed),
            ));
        }
        if let Err(error) = begun {
            log_limiter.tell(format_args!(
                "{name} at {}: connection lost: {}",
                socket.name(),
                reason(&error),
            ));
            // There are no files or threads left, or the client is gone: others may end meanwhile.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Serves a connection by a thread of its own.
fn begin(
    name: &str,
    stream: Stream,
    socket: &Arc<Socket>,
    connections: &Arc<Connections>,
    serve: &Serve,
) -> io::Result<()> {
    if connections.count.load(Relaxed) >= connections.most.load(Relaxed) {
        connections.refused.fetch_add(1, Relaxed);
        return Ok(());
    }
    let number = connections.accepted.fetch_add(1, Relaxed);
    let twin = (stream.try_clone()?, Arc::downgrade(socket));
    connections.open().insert(number, twin);
    connections.count.fetch_add(1, Relaxed);
    let ended = Ended(Arc::clone(connections), number);
    let thread = std::thread::Builder::new().name(name.to_owned());
    let serve = Arc::clone(serve);
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
        if let Some((stream, _)) = stream {
            stream.shutdown(Shutdown::Both);
        }
    }
}
