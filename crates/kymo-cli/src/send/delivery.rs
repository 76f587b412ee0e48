//! Packets in the envelope, to a receiver that may be late, go and come back.

use std::collections::HashMap;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use kymo_ctf::wire::{Sender, SenderOptions};
use kymo_text::Line;

use super::packets::{NAP, Piece, Plan, RATE, Source, report_sent, transmit};
use super::sender::{connect, count_after};
use super::target::Place;
use crate::args::send::Send;
use crate::terminal::{Failure, Outcome, Terminal};

/// Maximum bytes of packets that wait to be sent.
const AHEAD: usize = 1 << 20;
/// Interval of the probes for a listener while there is none.
const PROBE: Duration = Duration::from_millis(200);
/// Time without a refusal after which a listener is assumed: other machines report refusals once a second.
const CALM: Duration = Duration::from_millis(1500);

/// What comes back.
enum Incoming {
    Datagram(Vec<u8>),
    /// There is no listener.
    Refused,
    /// Another mistake of the system.
    Failed,
}

/// A time without a listener.
struct Absence {
    since: Duration,
    /// When the system said so last.
    last: Duration,
    next_probe: Duration,
}

/// Why sending ends before everything is confirmed.
enum Stop {
    Absent,
    Interrupted,
}

struct Delivery<'a> {
    args: &'a Send,
    place: &'a Place,
    plan: &'a Plan<'a>,
    terminal: &'a Terminal,
    socket: UdpSocket,
    sender: Sender,
    /// The number of each source's stream.
    streams: Vec<u32>,
    /// The pieces of each stream, in the order of their packets.
    pieces: HashMap<u32, Vec<usize>>,
    /// How many pieces were handed to the sender.
    pushed: usize,
    begun: Instant,
    absence: Option<Absence>,
    datagrams: u64,
    bytes: u64,
}

/// Sends all, and again what is asked for.
pub(super) fn send(
    args: &Send,
    place: &Place,
    plan: &Plan<'_>,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let socket = match connect(&place.host, place.port, args.departure()) {
        Ok(socket) => socket,
        Err(error) => {
            let reason = kymo_io::reason(&error);
            terminal.error(format_args!("cannot send to `{place}`: {reason}"));
            return Ok(Outcome::Damage);
        }
    };
    let mut sender = Sender::new(SenderOptions {
        session: u64::from_be_bytes(kymo_io::random()?),
        key: args.input.key_file.first().map(|file| file.key.clone()),
        datagram: args.packet_size,
        rate: args.rate.unwrap_or(RATE).into(),
        window: args.window,
        supplies: true,
        patience: args.wait,
    });
    let mut streams = Vec::new();
    for source in &plan.sources {
        let stream = sender.add_stream(source.content, &source.name);
        streams.push(stream.map_err(|error| cannot(source, error))?);
    }
    let sizes = plan.pieces.iter().map(size);
    terminal.show_progress(sizes.sum());
    let interrupted = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    let signals = crate::signals::ending();
    #[cfg(not(unix))]
    let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
    for signal in signals {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let incoming = incoming(&socket)?;
    let mut delivery = Delivery {
        args,
        place,
        plan,
        terminal,
        socket,
        sender,
        streams,
        pieces: HashMap::new(),
        pushed: 0,
        begun: Instant::now(),
        absence: None,
        datagrams: 0,
        bytes: 0,
    };
    let stopped = delivery.run(&incoming, &interrupted)?;
    terminal.end_progress();
    delivery.report(stopped)
}

fn size(piece: &Piece) -> u64 {
    (piece.end - piece.begin) as u64
}

fn cannot(source: &Source<'_>, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("error: {}: {error}", source.path.display()))
}

impl Delivery<'_> {
    /// Sends until the receiver has everything, or it is waited for in vain.
    fn run(
        &mut self,
        incoming: &Receiver<Incoming>,
        interrupted: &AtomicBool,
    ) -> Result<Option<Stop>, Failure> {
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Some(Stop::Interrupted));
            }
            while let Ok(incoming) = incoming.try_recv() {
                self.take(incoming);
            }
            let now = self.begun.elapsed();
            let pause = match self.absence {
                Some(_) => match self.look_for_somebody(now)? {
                    Some(pause) => pause,
                    None => return Ok(Some(Stop::Absent)),
                },
                None => {
                    self.fill()?;
                    if let Some(datagram) = self.sender.next_datagram(now) {
                        self.transmit(&datagram)?;
                        continue;
                    }
                    let Some(next) = self.sender.wait(now) else {
                        return Ok(None);
                    };
                    let least = Duration::from_micros(100);
                    next.saturating_sub(now).clamp(least, NAP)
                }
            };
            match incoming.recv_timeout(pause) {
                Ok(incoming) => self.take(incoming),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
            }
        }
    }

    /// Hands packets to the sender: those that it wants again first.
    fn fill(&mut self) -> Result<(), Failure> {
        if let Some((stream, packet)) = self.sender.next_wanted() {
            let pieces = self.pieces.get(&stream);
            let number = usize::try_from(packet).ok();
            let piece = pieces.and_then(|pieces| pieces.get(number?).copied());
            if let Some(piece) = piece {
                let bytes = self.plan.bytes(&self.plan.pieces[piece]);
                self.sender.supply((stream, packet), bytes);
            }
        }
        while self.sender.queued() < AHEAD
            && let Some(piece) = self.plan.pieces.get(self.pushed)
        {
            let packet = self.plan.bytes(piece);
            let stream = self.streams[piece.source];
            self.bytes += packet.len() as u64;
            self.terminal.advance(packet.len() as u64);
            let pushed = self.sender.push(stream, packet);
            pushed.map_err(|error| cannot(&self.plan.sources[piece.source], error))?;
            self.pieces.entry(stream).or_default().push(self.pushed);
            self.pushed += 1;
        }
        if self.pushed == self.plan.pieces.len() {
            self.sender.end();
        }
        Ok(())
    }

    fn transmit(&mut self, datagram: &[u8]) -> Result<(), Failure> {
        self.datagrams += 1;
        match transmit(&self.socket, datagram) {
            Ok(()) => Ok(()),
            // It is of one before; this one is as if it were lost on the way, and is asked for.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.refused();
                Ok(())
            }
            Err(error) => Err(Failure::at(self.place, &error)),
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Datagram(datagram) => {
                let now = self.begun.elapsed();
                if self.sender.receive(now, &datagram) && self.absence.take().is_some() {
                    self.report_return();
                }
            }
            Incoming::Refused => self.refused(),
            Incoming::Failed => {}
        }
    }

    /// Records that there is no listener.
    fn refused(&mut self) {
        let now = self.begun.elapsed();
        if let Some(absence) = &mut self.absence {
            absence.last = now;
            return;
        }
        self.absence = Some(Absence {
            since: now,
            last: now,
            next_probe: now,
        });
        self.terminal.warning(format_args!(
            "{}: nobody listens there; {}; waiting for a receiver",
            self.place,
            self.how_far()
        ));
    }

    /// Returns zero if there is a listener, otherwise how long to wait; `None` if the waiting time is over.
    fn look_for_somebody(&mut self, now: Duration) -> Result<Option<Duration>, Failure> {
        let Some(absence) = &mut self.absence else {
            return Ok(Some(Duration::ZERO));
        };
        if now.saturating_sub(absence.since) >= self.args.wait {
            return Ok(None);
        }
        if now.saturating_sub(absence.last) >= CALM {
            self.absence = None;
            self.report_return();
            return Ok(Some(Duration::ZERO));
        }
        let next = absence.next_probe;
        if now >= next {
            absence.next_probe = now + PROBE;
            let probe = self.sender.probe(now);
            self.transmit(&probe)?;
            return Ok(Some(Duration::ZERO));
        }
        Ok(Some(next.saturating_sub(now).min(NAP)))
    }

    fn report_return(&self) {
        let line = format!("{}: somebody listens there again\n", self.place);
        self.terminal.report(line.as_bytes());
    }

    /// Packets that were sent, those of which only a part was sent not counted.
    fn sent(&self) -> u64 {
        self.pushed.saturating_sub(self.sender.queued_packets()) as u64
    }

    /// How much was sent, and how much is known to have arrived.
    fn how_far(&self) -> String {
        let mut line = Line::new();
        line.push(b"sent ");
        line.grouped(self.sent());
        count_after(&mut line, " of ", self.plan.pieces.len() as u64, "packet");
        if let Some(arrived) = self.sender.confirmed() {
            line.push(b", ");
            line.grouped(arrived);
            line.push(b" known to have arrived");
        }
        String::from_utf8_lossy(line.as_bytes()).into_owned()
    }

    fn report(self, stopped: Option<Stop>) -> Result<Outcome, Failure> {
        let (terminal, place) = (self.terminal, self.place);
        match stopped {
            Some(stop) => {
                let why = match stop {
                    Stop::Absent => "nobody listens there",
                    Stop::Interrupted => "interrupted",
                };
                terminal.error(format_args!("{place}: {why}: {}", self.how_far()));
                if matches!(stop, Stop::Absent) {
                    terminal.hint("`--wait DURATION` waits longer for a receiver");
                }
                return Ok(Outcome::Damage);
            }
            None => {
                let packets = self.plan.pieces.len() as u64;
                report_sent(terminal, packets, self.bytes, self.datagrams);
            }
        }
        Ok(match self.sender.delivered() {
            Ok(()) => Outcome::Good,
            Err(why) => {
                terminal.error(format_args!("{place}: {why}"));
                Outcome::Damage
            }
        })
    }
}

/// What comes back, as it comes.
fn incoming(socket: &UdpSocket) -> io::Result<Receiver<Incoming>> {
    let socket = socket.try_clone()?;
    let (sender, receiver) = channel();
    // The thread ends with the program, or when its receiver is gone.
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let incoming = match socket.recv(&mut buffer) {
                Ok(length) => Incoming::Datagram(buffer[..length].to_vec()),
                // The system reports here that a datagram had no receiver.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Incoming::Refused,
                Err(_) => {
                    std::thread::sleep(Duration::from_millis(1));
                    Incoming::Failed
                }
            };
            if sender.send(incoming).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
