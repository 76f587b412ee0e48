//! `kymo receive`.

mod raw;
mod session;
mod state;
mod store;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use kymo_ctf::wire::{Receiver, ReceiverLimits, ReceiverOptions, Refusal, recognize, session_of};
use kymo_text::Line;

use crate::args::key::KeyFile;
use crate::args::receive::Receive;
use crate::send::{Place, count_after};
use crate::terminal::{Failure, Outcome, Terminal};
use raw::Sources;
use session::Session;
use state::State;
use store::Store;

/// The longest wait for a datagram.
const NAP: Duration = Duration::from_millis(50);
/// Bytes that the system holds while others are taken: at 100 MB/s those of some 80 ms.
#[cfg(unix)]
const BUFFER: usize = 8 << 20;
/// While datagrams come without a pause, packets are held back for so long: then many are written at once.
const FLUSH: Duration = Duration::from_millis(100);
/// While datagrams of one session come, what others are to ask for is looked at so often.
const POLL: Duration = Duration::from_millis(10);

/// Receives until the end.
pub(crate) fn run(args: &Receive, terminal: &Terminal) -> Result<Outcome, Failure> {
    KeyFile::warn(&args.key_file, terminal);
    let failed = |error: io::Error| Failure::at(&args.place, &error);
    let socket = match UdpSocket::bind((args.place.host.as_str(), args.place.port)) {
        Ok(socket) => socket,
        Err(error) => {
            let reason = kymo_io::reason(&error);
            terminal.error(format_args!("cannot listen at `{}`: {reason}", args.place));
            return Ok(Outcome::Damage);
        }
    };
    hold_more(&socket);
    let resumed = resumed(args)?;
    let store = match resumed.is_empty() {
        true => Store::new(&args.output)?,
        false => Store::beside(&args.output)?,
    };
    let place = Place {
        port: socket.local_addr().map_err(failed)?.port(),
        ..args.place.clone()
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    let signals = crate::signals::ending();
    #[cfg(not(unix))]
    let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
    for signal in signals {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    terminal.report(format!("listening at {place}\n").as_bytes());
    let mut reception = Reception {
        args,
        terminal,
        sessions: resumed,
        candidate: None,
        store,
        sources: Sources::default(),
        raw_heard: None,
        refused: BTreeMap::new(),
        flushed: Duration::ZERO,
        polled: Duration::ZERO,
    };
    let received = reception.receive(&socket, &interrupted);
    reception.finish(received)
}

fn options(args: &Receive) -> ReceiverOptions {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    ReceiverOptions {
        key: args.key_file.as_ref().map(|file| file.key.clone()),
        resend: !args.no_resend,
        idle: args.idle,
        first_number: u64::try_from(now).unwrap_or_default(),
        limits: ReceiverLimits::of_packets(args.packet_limit),
    }
}

/// The directory of a sender, of which the first has number 1.
fn directory(args: &Receive, number: usize) -> PathBuf {
    match args.senders {
        1 => args.output.clone(),
        _ => args.output.join(format!("sender_{number}")),
    }
}

/// Sessions that an earlier run has left unfinished.
fn resumed(args: &Receive) -> Result<BTreeMap<u64, Session>, Failure> {
    let mut sessions = BTreeMap::new();
    if !args.resume {
        return Ok(sessions);
    }
    let mut is_there = false;
    for number in 1..=usize::from(args.senders) {
        let directory = directory(args, number);
        is_there |= std::fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some());
        let state = State::read(&directory).map_err(|error| {
            let path = directory.join(state::NAME);
            Failure::at(path.display(), &error)
        })?;
        if let Some(state) = state {
            let session = Session::resumed(options(args), &state, &directory)?;
            sessions.insert(state.session, session);
        }
    }
    if is_there && sessions.is_empty() {
        return Err(Failure::Usage(format!(
            "error: {}: nothing to resume: everything that `kymo receive` began there is complete\n\
             hint: `-o` names a new directory, or an empty one",
            args.output.display()
        )));
    }
    Ok(sessions)
}

/// Lets the system hold more datagrams than it usually does: each that it does not is sent again.
#[cfg(unix)]
fn hold_more(socket: &UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt};

    // Without the permission for this size, the socket gets what the system allows.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_ok() {
        return;
    }
    let _ = setsockopt(socket, sockopt::RcvBuf, &BUFFER);
}

/// Where systems have no such option that is known here, they hold what they do.
#[cfg(not(unix))]
fn hold_more(_socket: &UdpSocket) {}

/// How long to wait for a datagram, in whole milliseconds, so that a socket's timeout is seldom set again.
fn patience(wait: Duration) -> Duration {
    let wait = wait.clamp(Duration::from_millis(1), NAP);
    Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(1))
}

/// What has come so far.
struct Reception<'a> {
    args: &'a Receive,
    terminal: &'a Terminal,
    /// By their numbers.
    sessions: BTreeMap<u64, Session>,
    /// Takes the first datagram of a session that is not known yet.
    candidate: Option<Receiver>,
    /// Of packets that are as they are.
    store: Store,
    sources: Sources,
    /// When a packet came last that is one as it is.
    raw_heard: Option<Duration>,
    /// What was rejected, how often, and the first sender of it.
    refused: BTreeMap<String, (u64, SocketAddr)>,
    /// When all that had come was in the files.
    flushed: Duration,
    /// When all sessions were looked at.
    polled: Duration,
}

impl Reception<'_> {
    /// Receives until the end, which may be that of patience.
    fn receive(&mut self, socket: &UdpSocket, interrupted: &AtomicBool) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::at(&self.args.place, &error);
        let begun = Instant::now();
        let mut buffer = vec![0; 1 << 16];
        let mut waits = None;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return self.interrupted(socket);
            }
            let now = begun.elapsed();
            let deadlines = self
                .sessions
                .values()
                .map(|session| session.receiver.deadline());
            let deadline = deadlines.flatten().min().unwrap_or(now + NAP);
            let wait = patience(deadline.saturating_sub(now));
            if waits != Some(wait) {
                socket.set_read_timeout(Some(wait)).map_err(failed)?;
                waits = Some(wait);
            }
            let received = match socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let now = begun.elapsed();
                    Some(self.datagram(now, from, &buffer[..length])?)
                }
                Err(error) if is_nothing(&error) => None,
                Err(error) => return Err(failed(error)),
            };
            let now = begun.elapsed();
            let is_all = received.is_none() || now.saturating_sub(self.polled) >= POLL;
            if is_all {
                self.polled = now;
            }
            let only = received.flatten().filter(|_| !is_all);
            self.make_room();
            for (number, session) in &mut self.sessions {
                if is_all || only == Some(*number) {
                    session.receiver.poll(now);
                    session.events(self.terminal)?;
                    session.reply(socket);
                }
            }
            if received.is_none() || now.saturating_sub(self.flushed) >= FLUSH {
                self.store.flush()?;
                for session in self.sessions.values_mut() {
                    session.store.flush()?;
                    session.save(now)?;
                }
                self.flushed = now;
            }
            if self.is_over(now) {
                return Ok(self.sources.finish(&mut self.store)?);
            }
        }
    }

    /// Ends early. Who resumes later wants the sender to wait.
    fn interrupted(&mut self, socket: &UdpSocket) -> Result<(), Failure> {
        for session in self.sessions.values_mut() {
            session.receiver.finish();
            session.events(self.terminal)?;
            match self.args.resume {
                true => session.keep_quiet(),
                false => {
                    session.reply(socket);
                    State::remove(session.store.directory())?;
                }
            }
        }
        Ok(self.sources.finish(&mut self.store)?)
    }

    /// Whether nothing more is expected.
    fn is_over(&mut self, now: Duration) -> bool {
        let is_idle = |heard: Duration| now.saturating_sub(heard) >= self.args.idle;
        let raw_idle = self.raw_heard.is_none_or(is_idle);
        let mut ended = 0;
        for session in self.sessions.values_mut() {
            ended += usize::from(session.is_over(now));
        }
        if ended < self.sessions.len() {
            return false;
        }
        if ended >= usize::from(self.args.senders) {
            return true;
        }
        let heard = self.sessions.values().map(|session| session.heard).max();
        let begun = ended > 0 || self.raw_heard.is_some();
        begun && raw_idle && heard.is_none_or(is_idle)
    }

    /// Keeps what waits of all sessions together below the limit of one.
    fn make_room(&mut self) {
        let most = ReceiverLimits::of_packets(self.args.packet_limit).bytes;
        if self.sessions.len() < 2 {
            return;
        }
        let waiting = |sessions: &BTreeMap<u64, Session>| -> usize {
            let sessions = sessions.values();
            sessions.map(|session| session.receiver.waiting()).sum()
        };
        while waiting(&self.sessions) > most {
            let sessions = self.sessions.values_mut();
            let largest = sessions.max_by_key(|session| session.receiver.waiting());
            if !largest.is_some_and(|largest| largest.receiver.make_room()) {
                return;
            }
        }
    }

    /// Takes a datagram; the number of the session that it is of.
    fn datagram(
        &mut self,
        now: Duration,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Option<u64>, Failure> {
        let Some(number) = session_of(datagram) else {
            self.raw(now, from, datagram)?;
            return Ok(None);
        };
        let taken = match self.sessions.get_mut(&number) {
            Some(session) => session.take(now, from, datagram),
            None => self.begin(number, now, from, datagram)?,
        };
        if let Err(refusal) = taken {
            self.refuse(from, refusal.to_string());
        }
        Ok(Some(number))
    }

    /// Takes the first datagram of a session.
    fn begin(
        &mut self,
        number: u64,
        now: Duration,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Result<(), Refusal>, Failure> {
        let args = self.args;
        let receiver = self
            .candidate
            .get_or_insert_with(|| Receiver::new(options(args)));
        let taken = receiver.receive(now, datagram);
        if !receiver.has_begun() {
            return Ok(taken.map(|_| ()));
        }
        let Some(receiver) = self.candidate.take() else {
            return Ok(Ok(()));
        };
        match taken {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(_) if self.sessions.len() >= usize::from(args.senders) => {
                let hint = "; hint: `--senders N` receives from several";
                self.refuse(from, format!("{}{hint}", Refusal::OtherSession));
                return Ok(Ok(()));
            }
            Ok(_) => {}
        }
        let taken = |place: &PathBuf| {
            self.sessions
                .values()
                .any(|session| session.directory() == *place)
        };
        let is_empty = |place: &PathBuf| {
            args.senders == 1
                || std::fs::read_dir(place).map_or(true, |mut entries| entries.next().is_none())
        };
        let mut places = (1..).map(|number| directory(args, number));
        let Some(place) = places.find(|place| is_empty(place) && !taken(place)) else {
            return Ok(Ok(()));
        };
        if args.senders > 1 {
            let line = format!("receiving from {from} to {}\n", place.display());
            self.terminal.report(line.as_bytes());
        }
        let mut session = Session::new(receiver, &place)?;
        session.came(now, from);
        self.sessions.insert(number, session);
        Ok(Ok(()))
    }

    /// Takes a datagram without an envelope.
    fn raw(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        match recognize(datagram) {
            Some(_) if self.args.key_file.is_some() => {
                self.refuse(from, Refusal::NotAuthentic.to_string());
            }
            Some(_) if datagram.len() as u64 > u64::from(self.args.packet_limit) => {
                let limit = self.args.packet_limit;
                self.refuse(
                    from,
                    format!("has more than the {limit} bytes that `--packet-limit` allows"),
                );
            }
            Some(raw) => {
                self.raw_heard = Some(now);
                if !self.sources.add(from, raw, datagram, &mut self.store)? {
                    self.refuse(
                        from,
                        "is from one sender more than can be distinguished".to_string(),
                    );
                }
            }
            None => self.refuse(from, Refusal::Foreign.to_string()),
        }
        Ok(())
    }

    /// Reports a datagram that is not taken: the first time for each reason.
    fn refuse(&mut self, from: SocketAddr, why: String) {
        let (count, _) = self.refused.entry(why.clone()).or_insert((0, from));
        *count += 1;
        if *count == 1 {
            self.terminal
                .warning(format_args!("a datagram from {from} {why}"));
        }
    }

    /// Reports how much has come, and what has not; where it ended early, why at last.
    fn finish(mut self, received: Result<(), Failure>) -> Result<Outcome, Failure> {
        let (mut packets, mut bytes) = self.sources.counts();
        let mut outcome = Outcome::Good;
        let mut received = received;
        let mut stored = self.store.finish();
        for session in self.sessions.values_mut() {
            stored = stored.and(session.store.finish());
            packets += session.packets;
            bytes += session.bytes;
            session.report(self.terminal);
            if session.outcome != Outcome::Good {
                outcome = session.outcome;
            }
        }
        received = received.and(stored.map_err(Failure::from));
        let sessions = self.sessions.values().map(|session| &session.store);
        let stores: Vec<&Store> = std::iter::once(&self.store).chain(sessions).collect();
        let files: u64 = stores.iter().map(|store| store.files()).sum();
        for (name, other) in stores.iter().flat_map(|store| store.moved()) {
            let (name, other) = (name.display(), other.display());
            self.terminal.warning(format_args!(
                "`{name}` is there already: the stream is called `{other}`"
            ));
        }
        for (why, (count, from)) in &self.refused {
            if *count > 1 {
                self.terminal.warning(format_args!(
                    "{count} datagrams were not taken, the first from {from}: each {why}"
                ));
            }
        }
        for (name, count) in self.sources.differing() {
            let path = self.args.output.join(name);
            let (path, packets) = (
                path.display(),
                if count == 1 { "packet" } else { "packets" },
            );
            self.terminal.warning(format_args!(
                "{path}: {count} {packets} had the number of another one that was not the same: all are there, in the order in which they came"
            ));
        }
        let raw = self.sources.lost();
        let raw = raw.map(|(name, first, last)| (self.args.output.join(name), first, last));
        let of_stores = stores.iter().flat_map(|store| {
            let lost = store.lost();
            lost.map(|(name, first, last)| (store.directory().join(name), first, last))
        });
        for (path, first, last) in of_stores.chain(raw) {
            if self.args.strict {
                outcome = Outcome::Damage;
            }
            let (path, what) = (
                path.display(),
                if first == last {
                    format!("packet {first}")
                } else {
                    format!("packets {first} to {last}")
                },
            );
            self.terminal
                .warning(format_args!("{path}: {what} never came"));
        }
        if packets == 0 && files == 0 {
            received?;
            self.terminal.error("nothing was received");
            return Err(Failure::Unreadable);
        }
        let mut line = Line::new();
        count_after(&mut line, "received ", packets, "packet");
        count_after(&mut line, ", ", bytes, "byte");
        count_after(&mut line, ", in ", files, "file");
        if self.args.senders > 1 {
            count_after(&mut line, ", from ", self.sessions.len() as u64, "sender");
        }
        line.push_byte(b'\n');
        self.terminal.report(line.as_bytes());
        received?;
        Ok(outcome)
    }
}

/// Whether an error of a socket only means that nothing has arrived, or that there was no receiver.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
    )
}
