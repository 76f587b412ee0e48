//! Packets over UDP, to `kymo receive`.
//!
//! The thread that writes packets sends them, in the envelope of [`kymo_ctf::wire`], and again what is asked for. Metadata only
//! grows, and so travels piece by piece.

use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use kymo_ctf::secure::Key;
use kymo_ctf::wire::{Content, Sender, SenderOptions, Undelivered};

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

/// Sends packets.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    sender: Sender,
    begun: Instant,
    metadata: u32,
    /// Bytes of the metadata that were sent.
    told: usize,
    /// What number each stream has on the way.
    streams: Vec<Option<u32>>,
    /// What the system told last.
    failed: Option<io::Error>,
}

impl Udp {
    /// Sends to an address; `session` is a number that no other sender has.
    ///
    /// # Errors
    ///
    /// If there is no such address; those of the system.
    pub(crate) fn connect(
        to: impl ToSocketAddrs,
        key: Option<Key>,
        session: u64,
    ) -> io::Result<Self> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in to.to_socket_addrs()? {
            let any = if address.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            let socket = UdpSocket::bind(any).and_then(|socket| {
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            });
            match socket {
                Ok(socket) => return Self::new(socket, key, session),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn new(socket: UdpSocket, key: Option<Key>, session: u64) -> io::Result<Self> {
        let mut sender = Sender::new(SenderOptions {
            session,
            key,
            datagram: DATAGRAM,
            rate: RATE,
            window: WINDOW,
            patience: PATIENCE,
        });
        let metadata = sender.add_stream(Content::Metadata, "metadata");
        Ok(Self {
            socket,
            metadata: metadata.map_err(io::Error::other)?,
            sender,
            begun: Instant::now(),
            told: 0,
            streams: Vec::new(),
            failed: None,
        })
    }

    /// Hears what is asked for, and sends what may be sent now. Tells after how long there may be something again.
    fn pump(&mut self) -> Option<Duration> {
        let mut buffer = [0; 1 << 16];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    self.sender.receive(self.begun.elapsed(), &buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The machine tells of earlier datagrams here that nobody has taken.
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        while let Some(datagram) = self.sender.next_datagram(self.begun.elapsed()) {
            while let Err(error) = self.socket.send(&datagram) {
                if error.kind() != io::ErrorKind::WouldBlock {
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
    fn make_room(&mut self) {
        while let Some(next) = self.pump()
            && self.sender.queued() >= AHEAD
        {
            std::thread::sleep(next);
        }
    }
}

impl Sink for Udp {
    fn metadata(&mut self, text: &str) -> io::Result<()> {
        let news = text.as_bytes().get(self.told..).unwrap_or_default();
        for piece in news.chunks(PIECE) {
            self.sender
                .push(self.metadata, piece)
                .map_err(io::Error::other)?;
        }
        self.told = text.len();
        self.make_room();
        Ok(())
    }

    fn packet(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
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
        self.make_room();
        Ok(())
    }

    fn idle(&mut self) -> io::Result<Option<Duration>> {
        Ok(self.pump())
    }

    /// Sends the rest, and waits until the receiver has all of it.
    fn finish(&mut self) -> io::Result<()> {
        self.sender.end();
        while let Some(next) = self.pump() {
            std::thread::sleep(next);
        }
        self.sender.delivered().map_err(|why| match why {
            Undelivered::Missing(_) => io::Error::other(why),
            // What the system told, if it told anything, is why.
            Undelivered::Unconfirmed => {
                (self.failed.take()).unwrap_or_else(|| io::Error::new(io::ErrorKind::TimedOut, why))
            }
        })
    }
}
