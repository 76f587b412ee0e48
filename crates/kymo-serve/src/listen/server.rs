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

use super::{Peer, Running, Socket, Stop, Stream, stop};
use crate::log_limiter::LogLimiter;
use crate::per_listener::PerListener;
use crate::store::Log;

/// How long connections have for what they are doing when the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// One that has sent nothing for this long gives way to others, if there are too many.
const SILENT: Duration = Duration::from_secs(1);
/// The same of one that has sent something before.
const IDLE: Duration = Duration::from_secs(60);
/// So many may still be answering after they have given way.
const MOST_LEAVING: usize = 16;

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

/// A socket and the thread that accepts its connections.
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
    open: Mutex<HashMap<u64, Open>>,
    /// The number of the next one.
    next: AtomicU64,
    pub(crate) listeners: PerListener<String, ConnectionCounters>,
}

/// The connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters {
    /// How many are open, without those that have given way.
    pub(crate) open: AtomicU64,
    /// How many there have been.
    pub(crate) accepted: AtomicU64,
    /// How many were turned away, since there were too many.
    pub(crate) refused: AtomicU64,
    /// How many have given way to others.
    pub(crate) evicted: AtomicU64,
}

/// A connection.
#[derive(Debug)]
struct Open {
    stream: Stream,
    /// What it came by.
    socket: Weak<Socket>,
    peer: Peer,
    counters: Arc<ConnectionCounters>,
    /// Whether it has given way.
    is_leaving: bool,
}

/// What was done since there were too many connections.
enum Room {
    /// This one has given way.
    Evicted(Peer, Duration),
    /// None has.
    None,
}

impl Server {
    /// Waits for connections, at most `most` at a time, and at most a tenth of the files that the
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

    /// Calls a function with the name of each socket at which it waits.
    pub(crate) fn each_listener(&self, call: impl FnMut(String)) {
        let posts = self.posts();
        posts.iter().map(|post| post.socket.name()).for_each(call);
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
        let counters = self.connections.listeners.of(socket.name());
        let log_limiter = Arc::clone(&self.log_limiter);
        let thread = std::thread::Builder::new().name(name.clone());
        let listen = move || {
            let limiter = &log_limiter;
            listen(
                &name,
                &listened,
                &stop,
                &counters,
                &connections,
                limiter,
                &serve,
            );
        };
        let thread = thread.spawn(listen)?;
        Ok(Post {
            socket: Arc::clone(socket),
            running: Some(running),
            thread: Some(thread),
        })
    }

    /// Waits for connections at these sockets only, at most `most` at a time: those that came by others
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

    /// Answers what has come of the connections of these sockets, and ends them.
    pub(crate) fn end_connections(&self, sockets: &[Arc<Socket>]) {
        let is_one = |it: Arc<Socket>| sockets.iter().any(|other| Arc::ptr_eq(&it, other));
        self.connections
            .end(|socket| socket.upgrade().is_some_and(is_one));
    }

    /// Stops accepting connections, answers what has come, and ends those that are open.
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
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of open ones, without those that have given way.
    pub(crate) fn count(&self) -> u64 {
        self.listeners.sum(|it| it.open.load(Relaxed))
    }

    fn set_most(&self, most: usize) {
        // Each has two files, and there may be three servers beside the databases.
        let most = most.min(most_open_files() / 10).max(1);
        self.most.store(most, Relaxed);
    }

    /// Ends those that came by some sockets, when what has come is answered or it has taken too long.
    fn end(&self, is_meant: impl Fn(&Weak<Socket>) -> bool) {
        let each = |what: fn(&Stream)| {
            let open = self.open();
            let its = open.values().filter(|it| is_meant(&it.socket));
            its.for_each(|it| what(&it.stream));
        };
        each(Stream::cut);
        let end = Instant::now() + LAST_ANSWERS;
        while self.open().values().any(|it| is_meant(&it.socket)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        each(|stream| stream.shutdown(Shutdown::Both));
    }

    /// Whether a connection may be served; another one may give way to it.
    fn has_room(
        &self,
        stream: &Stream,
        name: &str,
        counters: &ConnectionCounters,
        log_limiter: &LogLimiter,
    ) -> bool {
        let most = self.most.load(Relaxed);
        if self.count() < most as u64 {
            return true;
        }
        let place = format_args!("{name} at {}", stream.listener());
        match self.make_room(stream.share()) {
            Room::Evicted(peer, quiet) => {
                log_limiter.report(format_args!(
                    "{place}: the limit of {most} connections is reached: closed one of {peer} that had sent nothing for {} s",
                    quiet.as_secs(),
                ));
                true
            }
            Room::None => {
                counters.refused.fetch_add(1, Relaxed);
                log_limiter.report(format_args!(
                    "{place}: connection refused: the limit of {most} connections is reached",
                ));
                false
            }
        }
    }

    /// Ends a connection, so that there is room for one of a peer: of the peer that has the most, if that has more than
    /// the other one would have; else one that has sent nothing for long. One that is at work may finish that.
    fn make_room(&self, newcomer: Peer) -> Room {
        let mut open = self.open();
        let leaving = open.values().filter(|it| it.is_leaving);
        if leaving.clone().count() >= MOST_LEAVING {
            leaving.for_each(|it| it.stream.shutdown(Shutdown::Both));
            return Room::None;
        }
        let mut shares: HashMap<Peer, usize> = HashMap::new();
        for it in open.values().filter(|it| !it.is_leaving) {
            *shares.entry(it.peer).or_default() += 1;
        }
        let own = shares.get(&newcomer).copied().unwrap_or(0);
        let candidates = open.values_mut().filter(|it| !it.is_leaving);
        let candidates = candidates.filter_map(|it| {
            let activity = &it.stream.activity;
            let (share, quiet) = (shares.get(&it.peer).copied()?, activity.quiet());
            let is_idle =
                activity.is_reading() && quiet >= if activity.is_silent() { SILENT } else { IDLE };
            let gives_way = share > own + 1 || (is_idle && share >= own);
            gives_way.then_some((share, is_idle, activity.is_reading(), quiet, it))
        });
        let victim = candidates.max_by_key(|(share, is_idle, is_reading, quiet, _)| {
            (*share, *is_idle, *is_reading, *quiet)
        });
        let Some((.., is_reading, quiet, it)) = victim else {
            return Room::None;
        };
        it.is_leaving = true;
        match is_reading {
            true => it.stream.shutdown(Shutdown::Both),
            false => it.stream.cut(),
        }
        it.counters.open.fetch_sub(1, Relaxed);
        it.counters.evicted.fetch_add(1, Relaxed);
        Room::Evicted(it.peer, quiet)
    }
}

/// Accepts connections until it is time to end.
fn listen(
    name: &str,
    socket: &Arc<Socket>,
    stop: &Stop,
    counters: &Arc<ConnectionCounters>,
    connections: &Arc<Connections>,
    log_limiter: &LogLimiter,
    serve: &Serve,
) {
    while stop.wait(socket.as_fd()).unwrap_or(false) {
        let begun = socket.accept().and_then(|stream| {
            if connections.has_room(&stream, name, counters, log_limiter) {
                begin(name, stream, socket, counters, connections, serve)?;
            }
            Ok(())
        });
        if let Err(error) = begun {
            log_limiter.report(format_args!(
                "{name} at {}: connection lost: {}",
                socket.name(),
                reason(&error),
            ));
            // There are no files or threads left, or the client is gone: other connections may end meanwhile.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Serves a connection by a thread of its own.
fn begin(
    name: &str,
    stream: Stream,
    socket: &Arc<Socket>,
    counters: &Arc<ConnectionCounters>,
    connections: &Arc<Connections>,
    serve: &Serve,
) -> io::Result<()> {
    let number = connections.next.fetch_add(1, Relaxed);
    counters.accepted.fetch_add(1, Relaxed);
    let twin = Open {
        stream: stream.try_clone()?,
        socket: Arc::downgrade(socket),
        peer: stream.share(),
        counters: Arc::clone(counters),
        is_leaving: false,
    };
    // Before another thread can close it.
    counters.open.fetch_add(1, Relaxed);
    connections.open().insert(number, twin);
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
        let Some(open) = self.0.open().remove(&self.1) else {
            return;
        };
        if !open.is_leaving {
            open.counters.open.fetch_sub(1, Relaxed);
        }
        open.stream.shutdown(Shutdown::Both);
    }
}
