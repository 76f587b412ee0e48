//! One sender's session, and the directory that it is stored in.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_ctf::wire::{Content, Event, Receiver, ReceiverOptions, Refusal, Resume};

use super::state::State;
use super::store::Store;
use crate::terminal::{Failure, Outcome, Terminal};

/// How far it has come is written so often, and takes at most a twentieth of the time.
const SAVE: Duration = Duration::from_secs(1);
const SAVE_SHARE: u32 = 20;
/// After the end, a sender that still asks is answered for so long.
const LINGER: Duration = Duration::from_millis(700);
const LONGEST_LINGER: Duration = Duration::from_secs(5);
/// Maximum number of oversized packets that are reported one by one.
const MOST_NAMED: u64 = 10;

/// A session that is received.
pub(super) struct Session {
    pub(super) receiver: Receiver,
    pub(super) store: Store,
    /// Where it is sent from.
    sender: Option<SocketAddr>,
    /// When it was heard last.
    pub(super) heard: Duration,
    /// When it ended.
    ended: Option<Duration>,
    /// Streams that are known to hold metadata.
    of_metadata: BTreeSet<u32>,
    /// When how far it has come is written next, and whether that has changed since the last time.
    save: Duration,
    is_changed: bool,
    /// Packets that had more bytes than are taken.
    too_large: u64,
    /// Packets that had arrived when an earlier run stopped.
    arrived_before: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) outcome: Outcome,
}

impl Session {
    /// One that has begun, stored in a directory that is there or is made.
    pub(super) fn new(receiver: Receiver, directory: &Path) -> Result<Self, Failure> {
        Ok(Self {
            receiver,
            store: Store::beside(directory)?,
            sender: None,
            heard: Duration::ZERO,
            ended: None,
            of_metadata: BTreeSet::new(),
            save: Duration::ZERO,
            is_changed: false,
            too_large: 0,
            arrived_before: 0,
            packets: 0,
            bytes: 0,
            outcome: Outcome::Good,
        })
    }

    /// One that was received to a directory before, as far as its state there says.
    pub(super) fn resumed(
        options: ReceiverOptions,
        state: &State,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let resume = Resume {
            session: state.session,
            arrived: state.arrived,
            streams: state
                .streams
                .iter()
                .map(|stream| (stream.stream, stream.next))
                .collect(),
        };
        let mut session = Self::new(Receiver::resumed(options, &resume), directory)?;
        session.store.resume(state)?;
        session.arrived_before = state.arrived;
        let metadata = state.streams.iter().filter(|stream| stream.is_metadata);
        session.of_metadata = metadata.map(|stream| stream.stream).collect();
        Ok(session)
    }

    /// The directory.
    pub(super) fn directory(&self) -> PathBuf {
        self.store.directory().to_path_buf()
    }

    pub(super) fn take(
        &mut self,
        now: Duration,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<(), Refusal> {
        // What came before may be sent again by anybody.
        if self.receiver.receive(now, datagram)? {
            self.came(now, from);
        }
        Ok(())
    }

    /// Notes that the sender is heard from an address.
    pub(super) fn came(&mut self, now: Duration, from: SocketAddr) {
        self.sender = Some(from);
        self.heard = now;
    }

    /// Sends what the sender is to know.
    pub(super) fn reply(&mut self, socket: &UdpSocket) {
        while let Some(reply) = self.receiver.next_datagram() {
            if let Some(sender) = self.sender {
                // It is asked for again if it does not arrive.
                let _ = socket.send_to(&reply, sender);
            }
        }
    }

    /// Forgets what the sender was to know: it is to wait for another receiver.
    pub(super) fn keep_quiet(&mut self) {
        while self.receiver.next_datagram().is_some() {}
    }

    /// Whether it has ended, and the sender has been heard no more since.
    pub(super) fn is_over(&mut self, now: Duration) -> bool {
        if !self.receiver.has_ended() {
            return false;
        }
        let ended = *self.ended.get_or_insert(now);
        now.saturating_sub(self.heard) > LINGER || now.saturating_sub(ended) > LONGEST_LINGER
    }

    /// Stores what has come, and reports what is odd.
    pub(super) fn events(&mut self, terminal: &Terminal) -> io::Result<()> {
        let mut events = Vec::new();
        while let Some(event) = self.receiver.next_event() {
            events.push(event);
        }
        self.is_changed |= !events.is_empty();
        let mut is_saved = !self.receiver.has_ended_early();
        for event in events {
            if !is_saved && matches!(event, Event::Lost { .. } | Event::End { .. }) {
                // What is given up at the end may still come to one who resumes.
                self.save_state()?;
                is_saved = true;
            }
            self.event(event, terminal)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event, terminal: &Terminal) -> io::Result<()> {
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
                    terminal.warning(format_args!(
                        "`{name}` cannot name a file: the stream is stored in `{}`",
                        self.store.called(stream).display()
                    ));
                }
            }
            Event::Packet {
                stream,
                packet,
                bytes,
            } => {
                match self.of_metadata.contains(&stream) {
                    true => self.store.append_metadata(stream, &bytes)?,
                    false => self.store.append(stream, &bytes)?,
                }
                self.store.came(stream, packet);
                self.packets += 1;
                self.bytes += bytes.len() as u64;
            }
            Event::TooLarge {
                stream,
                packet,
                size,
            } => {
                self.outcome = Outcome::Damage;
                self.too_large += 1;
                if self.too_large <= MOST_NAMED {
                    let path = self.store.directory().join(self.store.called(stream));
                    terminal.error(format_args!(
                        "{}: packet {packet} has {size} bytes, more than `--packet-limit`: it is not received",
                        path.display()
                    ));
                }
                if self.too_large == 1 {
                    terminal.hint("`--packet-limit SIZE` takes larger packets");
                }
            }
            Event::Lost {
                stream,
                first,
                last,
            } => self.store.lose(stream, first.into(), last.into()),
            Event::End { reported } => {
                if !self.receiver.has_ended_early() {
                    State::remove(self.store.directory())?;
                }
                if !reported {
                    self.outcome = Outcome::Damage;
                    terminal.error(
                        "the sender has not announced the end: nobody knows what is missing there",
                    );
                }
            }
        }
        Ok(())
    }

    /// Writes how far it has come, if it is time to.
    pub(super) fn save(&mut self, now: Duration) -> io::Result<()> {
        if !self.is_changed || now < self.save || self.receiver.has_ended() {
            return Ok(());
        }
        let begun = Instant::now();
        self.save_state()?;
        self.save = now + SAVE.max(begun.elapsed() * SAVE_SHARE);
        Ok(())
    }

    fn save_state(&mut self) -> io::Result<()> {
        // The files first: they may have more than the state says, and never less.
        self.store.flush()?;
        let mut streams = self.store.states();
        for stream in &mut streams {
            stream.is_metadata = self.of_metadata.contains(&stream.stream);
        }
        let state = State {
            session: self.receiver.session().unwrap_or_default(),
            arrived: self.arrived_before + self.packets,
            streams,
        };
        state.write(self.store.directory())?;
        self.is_changed = false;
        Ok(())
    }

    /// Reports packets that were too large and not named.
    pub(super) fn report(&self, terminal: &Terminal) {
        if let Some(more) = self
            .too_large
            .checked_sub(MOST_NAMED)
            .filter(|&more| more > 0)
        {
            terminal.error(format_args!(
                "{}: {more} more packets had more bytes than `--packet-limit`",
                self.store.directory().display()
            ));
        }
    }
}
