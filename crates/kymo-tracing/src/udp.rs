//! Packets over UDP, to `kymo receive`.
//!
//! The thread that writes packets sends them, in the envelope of [`kymo_ctf::wire`], and again what is asked for. Metadata only
//! grows, and so travels piece by piece.

use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kymo_ctf::secure::Key;
use kymo_ctf::wire::{Content, Sender, SenderOptions, Undelivered};
use kymo_io::net::Departure;

use crate::sink::Sink;

/// The size of datagrams: with their headers they fit where Ethernet has been on the way.
const DATAGRAM: usize = 1400;
/// Bytes of packets that are kept to be sent again.
const WINDOW: usize = 16 << 20;
/// Bytes of packets that wait to be sent: others wait in the queue of the recording.
const AHEAD: usize = 1 << 20;
/// Bytes a second: a network of 1 Gbit/s keeps up.
const RATE: u64 = 100_000_000;
/// Who has said nothing for so long after the end has not received.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of metadata in a piece.
const PIECE: usize = 16 << 10;
/// How often requests of the receiver are looked for.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum number of requests handled at once: a receiver that asks without end holds nothing up.
const MOST_HEARD: usize = 1024;
/// A datagram that the system has not taken after this is lost.
const SEND_PATIENCE: Duration = Duration::from_secs(1);

/// How long the end of a recording takes at most, counted from when it begins. Who receives decides how
/// long there is something to send, and must not decide how long a program runs.
#[derive(Debug)]
pub(crate) struct Limit {
    time: Duration,
    begun: OnceLock<Instant>,
}

impl Limit {
    pub(crate) fn new(time: Duration) -> Arc<Self> {
        let begun = OnceLock::new();
        Arc::new(Self { time, begun })
    }

    /// The recording ends from now on.
    pub(crate) fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    fn is_over(&self) -> bool {
        let begun = self.begun.get();
        begun.is_some_and(|begun| begun.elapsed() >= self.time)
    }
}

/// Sends packets.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    sender: Sender,
    begun: Instant,
    metadata: u32,
    /// Bytes of the metadata that were sent.
    reported: usize,
    /// What number each stream has on the way.
    streams: Vec<Option<u32>>,
    /// The last error that the system reported.
    failed: Option<io::Error>,
    limit: Arc<Limit>,
    /// Whether it was waited for room in vain: it is not again before there is some.
    is_stalled: bool,
}

impl Udp {
    /// Sends to an address; `session` is a number that no other sender has. No wait is longer than the limit.
    ///
    /// # Errors
    ///
    /// The address does not exist, or the system reports an error.
    pub(crate) fn connect(
        to: impl ToSocketAddrs,
        key: Option<Key>,
        session: u64,
        limit: Arc<Limit>,
    ) -> io::Result<Self> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in to.to_socket_addrs()? {
            let socket = Departure::default().socket(address).and_then(|socket| {
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            });
            match socket {
                Ok(socket) => return Self::new(socket, key, session, limit),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn new(
        socket: UdpSocket,
        key: Option<Key>,
        session: u64,
        limit: Arc<Limit>,
    ) -> io::Result<Self> {
        let mut sender = Sender::new(SenderOptions {
            session,
            key,
            datagram: DATAGRAM,
            rate: RATE,
            window: WINDOW,
            supplies: false,
            patience: PATIENCE,
        });
        let metadata = sender.add_stream(Content::Metadata, "metadata");
        Ok(Self {
            socket,
            metadata: metadata.map_err(io::Error::other)?,
            sender,
            begun: Instant::now(),
            reported: 0,
            streams: Vec::new(),
            failed: None,
            limit,
            is_stalled: false,
        })
    }

    /// Receives requests, and sends what may be sent now. Returns after how long there may be more to do. It
    /// soon comes back, whatever is asked for.
    fn pump(&mut self) -> Option<Duration> {
        let mut buffer = [0; 1 << 16];
        for _ in 0..MOST_HEARD {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    self.sender.receive(self.begun.elapsed(), &buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Here the machine reports earlier datagrams that nobody has taken.
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        let begun = Instant::now();
        while begun.elapsed() < LOOK
            && let Some(datagram) = self.sender.next_datagram(self.begun.elapsed())
        {
            while let Err(error) = self.socket.send(&datagram) {
                let is_full = error.kind() == io::ErrorKind::WouldBlock;
                if !is_full || begun.elapsed() >= SEND_PATIENCE {
                    // As if it were lost on the way: it is asked for again.
                    self.failed = Some(error);
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let now = self.begun.elapsed();
        let next = self.sender.wait(now)?;
        Some(next.saturating_sub(now).min(LOOK))
    }

    /// Sends until no more waits than may.
    ///
    /// # Errors
    ///
    /// `TimedOut` where nothing new was sent for too long, as the receiver asks and asks for what it had, or
    /// the network takes nothing.
    fn make_room(&mut self) -> io::Result<()> {
        let mut waiting = usize::MAX;
        let mut since = Instant::now();
        loop {
            let next = self.pump();
            let queued = self.sender.queued();
            let Some(next) = next.filter(|_| queued >= AHEAD) else {
                self.is_stalled = false;
                return Ok(());
            };
            if queued < waiting {
                (waiting, since) = (queued, Instant::now());
            }
            if self.is_stalled || self.limit.is_over() || since.elapsed() >= self.limit.time {
                self.is_stalled = true;
                let message = "packets are lost: what is asked for again leaves no room for them";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            std::thread::sleep(next);
        }
    }

    /// That the end took too long, and what it was too long for.
    fn late(&self) -> io::Error {
        let unsent = self.sender.queued_packets();
        let (why, time) = (Undelivered::Unconfirmed, self.limit.time);
        let mut message = format!("{why} within {time:?}");
        if unsent > 0 {
            let plural = if unsent == 1 { "" } else { "s" };
            message += &format!(", and {unsent} packet{plural} could not be sent");
        }
        io::Error::new(io::ErrorKind::TimedOut, message)
    }
}

impl Sink for Udp {
    fn metadata(&mut self, text: &str) -> io::Result<()> {
        self.make_room()?;
        let news = text.as_bytes().get(self.reported..).unwrap_or_default();
        for piece in news.chunks(PIECE) {
            self.sender
                .push(self.metadata, piece)
                .map_err(io::Error::other)?;
            self.reported += piece.len();
        }
        self.pump();
        Ok(())
    }

    fn packet(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
        self.make_room()?;
        let index = stream as usize;
        if self.streams.len() <= index {
            self.streams.resize(index + 1, None);
        }
        let number = match self.streams[index] {
            Some(number) => number,
            None => {
                let name = format!("stream-{stream}");
                let number = self.sender.add_stream(Content::Packets, &name);
                *self.streams[index].insert(number.map_err(io::Error::other)?)
            }
        };
        self.sender.push(number, packet).map_err(io::Error::other)?;
        self.pump();
        Ok(())
    }

    fn idle(&mut self) -> io::Result<Option<Duration>> {
        Ok(self.pump())
    }

    /// Sends the rest, and waits until the receiver has all of it, or the limit is over.
    fn finish(&mut self) -> io::Result<()> {
        self.limit.begin();
        self.sender.end();
        while let Some(next) = self.pump() {
            if self.limit.is_over() {
                return Err(self.late());
            }
            std::thread::sleep(next);
        }
        self.sender.delivered().map_err(|why| match why {
            Undelivered::Missing(_) => io::Error::other(why),
            // If the system reported an error, that is the reason.
            Undelivered::Unconfirmed => {
                (self.failed.take()).unwrap_or_else(|| io::Error::new(io::ErrorKind::TimedOut, why))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver that hears nothing, and who sends to it.
    fn udp(limit: Duration) -> (UdpSocket, Udp) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let udp = Udp::connect(to, None, 7, Limit::new(limit)).unwrap();
        (socket, udp)
    }

    #[test]
    fn room_is_not_waited_for_without_end() {
        let (_receiver, mut udp) = udp(Duration::ZERO);
        let large = vec![0; 64 << 20];
        udp.packet(0, &large).unwrap();
        // Most of it waits to be sent.
        for _ in 0..2 {
            let error = udp.packet(0, &[0; 8]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
        let error = udp.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains(" could not be sent"), "{error}");
    }

    #[test]
    fn there_is_room_again() {
        let (_receiver, mut udp) = udp(Duration::from_secs(30));
        udp.is_stalled = true;
        udp.packet(0, &[0; 8]).unwrap();
        assert!(!udp.is_stalled);
    }
}
