//! Datagrams of collectd's network plugin.
//!
//! Each address has a thread that only receives: datagrams go to one of several workers, those of a sender
//! always to the same, so that its lists stay in order. What waits for workers is bounded; what has no
//! room is counted, and so is what the kernel had no room for.

mod counters;
mod listener;
mod queue;
mod replay;
pub(crate) mod socket;
mod station;
mod workers;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kymo_collectd::network::{PORT, Repeats, ReplayWindow, Security};
use kymo_time::CdTime;

use crate::ingest::Ingest;
use crate::log_limiter::LogLimiter;
use crate::metrics::Page;
use crate::per_listener::PerListener;
use crate::store::Log;
pub use counters::Counters;
use listener::Listener;
pub(crate) use listener::read_keys;
use replay::REMEMBERED;
pub(crate) use socket::Bound;
use socket::Moved;
use station::Station;
use workers::Workers;

/// Where datagrams are received, and what is taken of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An address of this machine, a group, or a name of either.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What is not protected so far is left out.
    pub level: Security,
    /// Users and their passwords; read again when it has changed.
    pub auth_file: Option<PathBuf>,
    /// Only what comes by this interface.
    pub interface: Option<String>,
    /// The replay window: protected lists whose times are further from now, and protected datagrams that were received
    /// before, are refused, if there is such a window.
    pub replay_window: Option<CdTime>,
}

impl Listen {
    /// At a host, where everything is taken.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_string(),
            port: PORT,
            level: Security::None,
            auth_file: None,
            interface: None,
            replay_window: None,
        }
    }
}

/// How datagrams are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where.
    pub listen: Vec<Listen>,
    /// Threads that decode.
    pub workers: usize,
    /// Bytes of datagrams that may wait for them.
    pub queue: usize,
    /// Bytes that the kernel may keep of each address.
    pub receive_buffer: usize,
    /// Number of lists that are remembered; of those that come again only the first is taken.
    pub deduplicate: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            queue: 64 << 20,
            receive_buffer: 16 << 20,
            deduplicate: None,
        }
    }
}

/// Sockets that receive, and threads that decode.
#[derive(Debug)]
pub struct Receiver {
    shared: Arc<Shared>,
    ingest: Arc<Ingest>,
    /// Sockets that were bound elsewhere.
    handed: Vec<Arc<Bound>>,
    state: Mutex<State>,
}

/// What all threads share, which stays whatever the options say.
#[derive(Debug)]
struct Shared {
    counters: PerListener<SocketAddr, Counters>,
    /// For losses.
    log_limiter: LogLimiter,
    repeats: RwLock<Option<Mutex<Repeats>>>,
    replay: Mutex<ReplayWindow>,
}

/// What is there as the options say.
#[derive(Debug)]
struct State {
    options: Options,
    /// First those that receive end, and then those that decode.
    stations: Vec<Station>,
    workers: Option<Workers>,
}

/// What is to be there as other options say. Nothing has changed as long as it is not [taken](Receiver::take).
#[derive(Debug)]
pub struct Plan {
    options: Options,
    /// New ones, and the places of those that go on.
    stations: Vec<Result<Station, usize>>,
    workers: Option<Workers>,
    moved: Vec<Moved>,
}

impl Receiver {
    /// Begins to receive.
    ///
    /// # Errors
    ///
    /// Addresses that cannot be listened at, files of passwords that cannot be read.
    pub fn start(options: &Options, ingest: &Arc<Ingest>, log: &Log) -> io::Result<Self> {
        Self::start_with(options, Vec::new(), ingest, log)
    }

    /// The same, also at sockets that somebody else has bound: with the options that are set for their addresses,
    /// or else everything is taken there.
    ///
    /// # Errors
    ///
    /// Addresses that cannot be listened at, files of passwords that cannot be read.
    pub fn start_with(
        options: &Options,
        handed: Vec<UdpSocket>,
        ingest: &Arc<Ingest>,
        log: &Log,
    ) -> io::Result<Self> {
        let handed = handed.into_iter().map(|it| Bound::handed(it).map(Arc::new));
        let receiver = Self {
            shared: Arc::new(Shared::new(log)),
            ingest: Arc::clone(ingest),
            handed: handed.collect::<io::Result<_>>()?,
            state: Mutex::new(State {
                options: Options::default(),
                stations: Vec::new(),
                workers: None,
            }),
        };
        let plan = receiver.plan(options, log)?;
        receiver.take(plan);
        Ok(receiver)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares that it receives as other options say, with the sockets that there are.
    ///
    /// # Errors
    ///
    /// Addresses that cannot be listened at, files of passwords that cannot be read.
    pub fn plan(&self, options: &Options, log: &Log) -> io::Result<Plan> {
        let mut places = Vec::new();
        for listen in &options.listen {
            let found = listen.addresses().map_err(|error| listen.wrong(&error))?;
            places.extend(found.into_iter().map(|address| (listen, address)));
        }
        let state = self.state();
        let before = &state.options;
        let is_same = (before.workers, before.queue) == (options.workers, options.queue);
        let workers = match is_same && state.workers.is_some() {
            true => None,
            false => Some(Workers::start(options, &self.shared, &self.ingest)?),
        };
        // Each socket that there is serves once.
        let mut there: Vec<_> = self.handed.clone();
        for station in &state.stations {
            if !there
                .iter()
                .any(|it| Arc::ptr_eq(it, &station.listener.bound))
            {
                there.push(Arc::clone(&station.listener.bound));
            }
        }
        let mut wanted = Vec::new();
        let mut moved = Vec::new();
        let mut kept = Vec::new();
        for (listen, address) in &places {
            let interface = listen.interface.as_deref();
            let found = there.iter().position(|it| it.is_at(*address, interface));
            kept.push(found.map(|place| there.swap_remove(place)));
        }
        let is_handed = |bound: &Arc<Bound>| self.handed.iter().any(|it| Arc::ptr_eq(it, bound));
        let leaving: Vec<_> = there.iter().filter(|it| !is_handed(it)).collect();
        for ((listen, address), kept) in places.into_iter().zip(kept) {
            let interface = listen.interface.as_deref();
            let bound = match kept {
                Some(bound) => {
                    let new =
                        Moved::new(&bound, interface).map_err(|error| listen.wrong(&error))?;
                    moved.extend(new);
                    bound
                }
                None => {
                    let bound = Bound::new(address, interface, &leaving);
                    Arc::new(bound.map_err(|error| listen.wrong(&error))?)
                }
            };
            wanted.push((listen.clone(), bound));
        }
        for bound in &self.handed {
            if there.iter().any(|it| Arc::ptr_eq(it, bound)) {
                let address = bound.socket.local_addr()?;
                let mut listen = Listen::new(&address.ip().to_string());
                listen.port = address.port();
                moved.extend(Moved::new(bound, None)?);
                wanted.push((listen, Arc::clone(bound)));
            }
        }
        let mut stations = Vec::new();
        for (listen, bound) in wanted {
            let goes_on = state.stations.iter().position(|it| {
                let it = &it.listener;
                workers.is_none() && Arc::ptr_eq(&it.bound, &bound) && it.listen == listen
            });
            stations.push(
                match (goes_on, workers.as_ref().or(state.workers.as_ref())) {
                    (None, Some(workers)) => {
                        let listener = Arc::new(Listener::new(&listen, &bound, &self.shared, log)?);
                        Ok(Station::start(listener, &self.shared, &workers.queues)?)
                    }
                    (place, _) => Err(place.unwrap_or_default()),
                },
            );
        }
        Ok(Plan {
            options: options.clone(),
            stations,
            workers,
            moved,
        })
    }

    /// Receives as was planned. What the kernel has, and what waits to be decoded, is not lost.
    pub fn take(&self, plan: Plan) {
        let mut state = self.state();
        let state = &mut *state;
        self.shared.change(&plan.options);
        plan.moved.into_iter().for_each(Moved::keep);
        let mut before: Vec<_> = state.stations.drain(..).map(Some).collect();
        let mut stations = Vec::new();
        let mut new = Vec::new();
        for station in plan.stations {
            match station {
                Ok(station) => new.push(station),
                Err(place) => stations.extend(before.get_mut(place).and_then(Option::take)),
            }
        }
        // No other thread reads from their sockets when the new ones do.
        drop(before);
        if let Some(workers) = plan.workers {
            state.workers = Some(workers);
        }
        for mut station in new {
            station
                .listener
                .bound
                .set_buffer(plan.options.receive_buffer);
            station.begin();
            stations.push(station);
        }
        if state.options.receive_buffer != plan.options.receive_buffer {
            let bounds = stations.iter().map(|it| &it.listener.bound);
            bounds.for_each(|it| it.set_buffer(plan.options.receive_buffer));
        }
        state.stations = stations;
        state.options = plan.options;
    }

    /// What was counted at all addresses together; `count` reads it of each.
    pub fn count(&self, count: impl Fn(&Counters) -> u64) -> u64 {
        self.shared.counters.sum(count)
    }

    /// Adds what was received to a page of metrics.
    pub fn metrics(&self, page: &mut Page) {
        let waiting = self.state().workers.as_ref().map_or(0, Workers::waiting);
        self.shared.counters.metrics(page);
        page.gauge(
            "datagrams_waiting_bytes",
            "Bytes of datagrams that wait to be decoded.",
            waiting,
        );
    }

    /// The addresses at which it receives.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let state = self.state();
        state
            .stations
            .iter()
            .map(|it| it.listener.address)
            .collect()
    }

    /// Reads the files of passwords again.
    ///
    /// # Errors
    ///
    /// What is wrong with some of them; the passwords before hold on there.
    pub fn reload(&self) -> Result<(), String> {
        let state = self.state();
        let read = state.stations.iter().map(|it| it.listener.reload());
        let problems: Vec<_> = read.filter_map(Result::err).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join("; ")),
        }
    }

    /// Receives no more, decodes what was received, and ends all threads.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stations.clear();
        state.workers = None;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Listen {
    /// All addresses that its host means.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let addresses: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        match addresses.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
            false => Ok(addresses),
        }
    }

    fn wrong(&self, error: &io::Error) -> io::Error {
        let place = format!("{}, port {}", self.host, self.port);
        io::Error::new(error.kind(), format!("{place}: {}", kymo_io::reason(error)))
    }
}

impl Shared {
    fn new(log: &Log) -> Self {
        Self {
            counters: PerListener::default(),
            log_limiter: LogLimiter::new(Arc::clone(log)),
            repeats: RwLock::default(),
            replay: Mutex::new(ReplayWindow::new(CdTime::ZERO, REMEMBERED)),
        }
    }

    /// Remembers as much as options say, and what it remembers already.
    fn change(&self, options: &Options) {
        let windows = options.listen.iter().filter_map(|it| it.replay_window);
        let room = REMEMBERED * windows.clone().count().max(1);
        let width = windows.max().unwrap_or(CdTime::ZERO);
        self.replay
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .resize(width, room);
        let mut repeats = self.repeats.write().unwrap_or_else(PoisonError::into_inner);
        match (&mut *repeats, options.deduplicate) {
            (Some(there), Some(room)) => there
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .resize(room),
            (there, room) => *there = room.map(|room| Mutex::new(Repeats::new(room))),
        }
    }
}
