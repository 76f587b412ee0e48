//! `kymo receive`.

mod raw;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymo_ctf::wire::{
    Content, Event, Receiver, ReceiverLimits, ReceiverOptions, Refusal, recognize,
};
use kymo_text::Line;

use crate::args::key::KeyFile;
use crate::args::receive::Receive;
use crate::send::{Place, count_after};
use crate::terminal::{Failure, Outcome, Terminal};
use raw::Sources;
use store::Store;

/// The longest wait for a datagram.
const NAP: Duration = Duration::from_millis(50);
/// Bytes that the system holds while others are taken: at 100 MB/s those of some 80 ms.
#[cfg(unix)]
const BUFFER: usize = 8 << 20;
/// While datagrams come without a pause, packets are held back for so long: then many are written at once.
const FLUSH: Duration = Duration::from_millis(100);
/// After the end, a sender is told so again while it asks, for so long.
const LINGER: Duration = Duration::from_millis(700);
const LONGEST_LINGER: Duration = Duration::from_secs(5);

/// Receives until the end.
pub(crate) fn run(args: &Receive, terminal: &Terminal) -> Result<Outcome, Failure> {
    KeyFile::warn(&args.key_file, terminal);
    let failed = |error: io::Error| Failure::Output(told(&args.place, &error));
    let socket = UdpSocket::bind((args.place.host.as_str(), args.place.port)).map_err(failed)?;
    hold_more(&socket);
    let store = Store::new(&args.output)?;
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
    terminal.tell(format!("listening at {place}\n").as_bytes());
    let mut reception = Reception {
        args,
        terminal,
        store,
        receiver: Receiver::new(ReceiverOptions {
            key: args.key_file.as_ref().map(|file| file.key.clone()),
            resend: !args.no_resend,
            idle: args.idle,
            limits: ReceiverLimits::default(),
        }),
        sources: Sources::default(),
        sender: None,
        heard: Duration::ZERO,
        raw_heard: None,
        refused: BTreeMap::new(),
        of_metadata: BTreeSet::new(),
        flushed: Duration::ZERO,
        packets: 0,
        bytes: 0,
        outcome: Outcome::Good,
    };
    let received = reception.receive(&socket, &interrupted);
    reception.finish(received)
}

/// Lets the system hold more datagrams than it usually does: each that it does not is sent again.
#[cfg(unix)]
fn hold_more(socket: &UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt};

    // Who may not have so much gets what the system allows.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_ok() {
        return;
    }
    let _ = setsockopt(socket, sockopt::RcvBuf, &BUFFER);
}

/// Where systems have no such option that is known here, they hold what they do.
#[cfg(not(unix))]
fn hold_more(_socket: &UdpSocket) {}

/// How long to wait for a datagram, in whole milliseconds, so that a socket is seldom told anew.
fn patience(wait: Duration) -> Duration {
    let wait = wait.clamp(Duration::from_millis(1), NAP);
    Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(1))
}

fn told(place: &Place, error: &io::Error) -> io::Error {
    // Another kind than that of a pipe whose reader is gone, which would be no failure.
    io::Error::other(format!("{place}: {error}"))
}

/// What has come so far.
struct Reception<'a> {
    args: &'a Receive,
    terminal: &'a Terminal,
    store: Store,
    receiver: Receiver,
    sources: Sources,
    /// Where the session is sent from.
    sender: Option<SocketAddr>,
    /// When it was heard last.
    heard: Duration,
    /// When a packet came last that is one as it is.
    raw_heard: Option<Duration>,
    /// What was refused, how often, and from whom first.
    refused: BTreeMap<String, (u64, SocketAddr)>,
    /// Streams that are known to hold metadata.
    of_metadata: BTreeSet<u32>,
    /// When all that had come was in the files.
    flushed: Duration,
    packets: u64,
    bytes: u64,
    outcome: Outcome,
}

impl Reception<'_> {
    /// Receives until the end, which may be that of patience.
    fn receive(&mut self, socket: &UdpSocket, interrupted: &AtomicBool) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Output(told(&self.args.place, &error));
        let begun = Instant::now();
        let mut buffer = vec![0; 1 << 16];
        let mut ended: Option<Duration> = None;
        let mut waits = None;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                self.receiver.finish();
                self.events()?;
                self.reply(socket);
                return Ok(self.sources.finish(&mut self.store)?);
            }
            let now = begun.elapsed();
            let deadline = self.receiver.deadline().unwrap_or(now + NAP);
            let wait = patience(deadline.saturating_sub(now));
            if waits != Some(wait) {
                socket.set_read_timeout(Some(wait)).map_err(failed)?;
                waits = Some(wait);
            }
            let is_idle = match socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    self.datagram(begun.elapsed(), from, &buffer[..length])?;
                    false
                }
                Err(error) if is_nothing(&error) => true,
                Err(error) => return Err(failed(error)),
            };
            let now = begun.elapsed();
            self.receiver.poll(now);
            self.events()?;
            self.reply(socket);
            if is_idle || now.saturating_sub(self.flushed) >= FLUSH {
                self.store.flush()?;
                self.flushed = now;
            }
            if self.receiver.has_ended() {
                let ended = *ended.get_or_insert(now);
                if now.saturating_sub(self.heard) > LINGER
                    || now.saturating_sub(ended) > LONGEST_LINGER
                {
                    return Ok(self.sources.finish(&mut self.store)?);
                }
            }
            let is_idle = |heard: Duration| now.saturating_sub(heard) >= self.args.idle;
            if !self.receiver.has_begun() && self.raw_heard.is_some_and(is_idle) {
                return Ok(self.sources.finish(&mut self.store)?);
            }
        }
    }

    /// Sends what the sender is to know.
    fn reply(&mut self, socket: &UdpSocket) {
        while let Some(reply) = self.receiver.next_datagram() {
            if let Some(sender) = self.sender {
                // It is asked for again if it does not arrive.
                let _ = socket.send_to(&reply, sender);
            }
        }
    }

    fn datagram(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        match self.receiver.receive(now, datagram) {
            // What came before may be sent again by anybody.
            Ok(true) => {
                self.sender = Some(from);
                self.heard = now;
            }
            Ok(false) => {}
            Err(Refusal::Foreign) => match recognize(datagram) {
                Some(_) if self.args.key_file.is_some() => {
                    self.refuse(from, Refusal::NotAuthentic.to_string());
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
            },
            Err(refusal) => self.refuse(from, refusal.to_string()),
        }
        Ok(())
    }

    /// Tells of a datagram that is not taken: the first time for each reason.
    fn refuse(&mut self, from: SocketAddr, why: String) {
        let (count, _) = self.refused.entry(why.clone()).or_insert((0, from));
        *count += 1;
        if *count == 1 {
            self.terminal
                .warning(format_args!("a datagram from {from} {why}"));
        }
    }

    fn events(&mut self) -> io::Result<()> {
        while let Some(event) = self.receiver.next_event() {
            match event {
                Event::Stream {
                    stream,
                    content,
                    name,
                } => {
                    if content == Content::Metadata {
                        self.of_metadata.insert(stream);
                    }
                    if !self.store.name(stream, &name)? {
                        self.terminal.warning(format_args!(
                            "`{name}` cannot name a file: the stream is stored in `{}`",
                            self.store.called(stream).display()
                        ));
                    }
                }
                Event::Packet { stream, bytes, .. } => {
                    match self.of_metadata.contains(&stream) {
                        true => self.store.append_metadata(stream, &bytes)?,
                        false => self.store.append(stream, &bytes)?,
                    }
                    self.packets += 1;
                    self.bytes += bytes.len() as u64;
                }
                Event::Lost {
                    stream,
                    first,
                    last,
                } => self.store.lose(stream, first.into(), last.into()),
                Event::End { told: true } => {}
                Event::End { told: false } => {
                    if self.receiver.has_begun() {
                        self.outcome = Outcome::Damage;
                        self.terminal.error(
                            "the sender has not announced the end: nobody knows what is missing there",
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells how much has come, and what has not; where it ended early, why at last.
    fn finish(mut self, received: Result<(), Failure>) -> Result<Outcome, Failure> {
        let (packets, bytes) = self.sources.counts();
        let (packets, bytes) = (self.packets + packets, self.bytes + bytes);
        let stored = self.store.finish().map_err(Failure::from);
        let received = received.and(stored);
        let files = self.store.files();
        for (name, other) in self.store.moved() {
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
        for (name, first, last) in self.store.lost().chain(self.sources.lost()) {
            let path = self.args.output.join(name);
            if self.args.strict {
                self.outcome = Outcome::Damage;
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
        line.push_byte(b'\n');
        self.terminal.tell(line.as_bytes());
        received?;
        Ok(self.outcome)
    }
}

/// Whether a socket only says that nothing has come, or that nobody has taken what was sent.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
    )
}
