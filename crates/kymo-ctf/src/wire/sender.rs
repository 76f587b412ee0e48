//! The side that has the packets.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kymo_text::Line;

use super::envelope::{ALL, Body, Datagram, Entry, Fragment, Range, Seal, Writer};
use super::{Content, DIRECTORY, LONGEST_NAME, MOST_STREAMS};
use crate::secure::Key;

/// How often the end is announced while nobody has said that it has arrived.
const END_INTERVAL: Duration = Duration::from_millis(200);
/// Number of unanswered ends after which directory and metadata are sent again: perhaps
/// who receives does not ask.
const ENDS_BEFORE_REPEATING: u32 = 3;
/// Fragments that are to be sent again: others are asked for later.
const MOST_ASKED: usize = 1 << 16;
/// Requests that are this much older than the latest are ignored: they may be replayed.
const REPLAY_WINDOW: u64 = 64;
/// How often the receiver is asked how much has arrived.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

/// How packets are sent.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// A number that no other session has: a random one.
    pub session: u64,
    /// What datagrams are authenticated with.
    pub key: Option<Key>,
    /// The size in bytes that no datagram exceeds, from
    /// [`SMALLEST_DATAGRAM`](super::SMALLEST_DATAGRAM) to [`LARGEST_DATAGRAM`](super::LARGEST_DATAGRAM).
    pub datagram: usize,
    /// Bytes a second; 0 for no limit.
    pub rate: u64,
    /// Bytes of packets that are kept to be sent again; those of directory and metadata are kept beside them.
    pub window: usize,
    /// Whether packets that are not kept can be had again: then those that are asked for are
    /// [wanted](Sender::next_wanted), and else gone.
    pub supplies: bool,
    /// Time without a reply after the end until the sender gives up.
    pub patience: Duration,
}

/// How far a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Packets may come, or are on their way.
    Sending,
    /// All are sent, and the receiver has not said yet that it has them.
    Ending,
    /// The receiver takes no more: [`Sender::missing`] returns how many packets it has not got.
    Done,
    /// There was no reply.
    GivenUp,
}

/// Why something cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The stream does not exist.
    Stream,
    /// There are too many streams, or too many packets of one.
    TooMany,
    /// A packet has 4 GiB or more.
    Size,
    /// The name of a stream has more than [`LONGEST_NAME`] bytes.
    Name,
    /// The end was already announced.
    Ended,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "unknown stream",
            Self::TooMany => "a session has at most 65,536 streams of 4,294,967,295 packets",
            Self::Size => "the packet has 4 GiB or more",
            Self::Name => "the name is longer than 1,024 bytes",
            Self::Ended => "the session has ended",
        })
    }
}

impl std::error::Error for PushError {}

/// A stream that is sent.
#[derive(Default)]
struct Stream {
    /// Whether its packets stay, whatever the window.
    is_kept: bool,
    packets: u32,
    /// Packets of which all fragments were sent.
    sent: u32,
    /// Packets that are no longer kept.
    gone: u32,
}

/// A packet, by its stream and number.
type Place = (u32, u32);

/// Makes datagrams of packets.
pub struct Sender {
    writer: Writer,
    seal: Option<Seal>,
    options: SenderOptions,
    streams: Vec<Stream>,
    /// Packets that are not sent yet, but for some of the fragments of the first.
    queue: VecDeque<Place>,
    /// Bytes of them.
    queued: usize,
    next_fragment: u32,
    /// All packets that are kept: those to send, and those that were sent.
    packets: HashMap<Place, Arc<[u8]>>,
    /// Those that were sent, the oldest first, and their bytes.
    sent: VecDeque<Place>,
    sent_bytes: usize,
    /// Fragments that are asked for.
    asked: BTreeSet<(u32, u32, u32)>,
    /// Of which streams packets are asked for that are not kept, and which packet follows those.
    gone: BTreeMap<u32, u32>,
    /// Packets that are asked for and to be supplied.
    wanted: BTreeSet<Place>,
    requests: Requests,
    /// When the next datagram may be sent.
    due: Duration,
    ended: bool,
    /// When the end is announced next, and how often it was since somebody replied.
    next_end: Duration,
    ends: u32,
    heard: Option<Duration>,
    /// When the receiver is asked next how much has arrived.
    next_ask: Duration,
    state: State,
    /// How many packets have arrived, as the receiver said last, and at the end.
    confirmed: Option<u64>,
    arrived: Option<u64>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("session", &self.options.session)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Why not everything is known to have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// Number of packets that never arrived.
    Missing(u64),
    /// The receiver has not confirmed that it has everything.
    Unconfirmed,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(packets) => {
                let mut line = Line::new();
                line.grouped(*packets);
                let count = String::from_utf8_lossy(line.as_bytes());
                let plural = if *packets == 1 { "" } else { "s" };
                write!(f, "{count} packet{plural} never arrived")
            }
            Self::Unconfirmed => f.write_str("nobody has confirmed that everything has arrived"),
        }
    }
}

impl std::error::Error for Undelivered {}

impl Sender {
    /// A session that has not begun.
    pub fn new(options: SenderOptions) -> Self {
        let seal = options.key.as_ref().and_then(Seal::new);
        let directory = Stream {
            is_kept: true,
            ..Stream::default()
        };
        Self {
            writer: Writer::new(options.session, seal.clone(), options.datagram, 0),
            seal,
            options,
            streams: vec![directory],
            queue: VecDeque::new(),
            queued: 0,
            next_fragment: 0,
            packets: HashMap::new(),
            sent: VecDeque::new(),
            sent_bytes: 0,
            asked: BTreeSet::new(),
            gone: BTreeMap::new(),
            wanted: BTreeSet::new(),
            requests: Requests::default(),
            due: Duration::ZERO,
            ended: false,
            next_end: Duration::ZERO,
            ends: 0,
            heard: None,
            next_ask: ASK_INTERVAL,
            state: State::Sending,
            confirmed: None,
            arrived: None,
        }
    }

    /// Begins a stream: its name is the path of a file below the directory that is received.
    ///
    /// # Errors
    ///
    /// If there are too many already, the name is too long, or the session has ended.
    pub fn add_stream(&mut self, content: Content, name: &str) -> Result<u32, PushError> {
        let stream = u32::try_from(self.streams.len()).map_err(|_| PushError::TooMany)?;
        if self.ended {
            return Err(PushError::Ended);
        }
        if stream >= MOST_STREAMS {
            return Err(PushError::TooMany);
        }
        if name.len() > LONGEST_NAME {
            return Err(PushError::Name);
        }
        self.streams.push(Stream {
            is_kept: content == Content::Metadata,
            ..Stream::default()
        });
        let entry = Entry::Stream {
            stream,
            content,
            name: name.to_owned(),
        };
        self.push(DIRECTORY, entry.write())?;
        Ok(stream)
    }

    /// Adds a packet to those to send.
    ///
    /// # Errors
    ///
    /// If the stream does not exist, the packet is too large, or the session has ended.
    pub fn push(&mut self, stream: u32, packet: impl Into<Arc<[u8]>>) -> Result<(), PushError> {
        let packet = packet.into();
        if self.ended {
            return Err(PushError::Ended);
        }
        if u32::try_from(packet.len()).is_err() {
            return Err(PushError::Size);
        }
        let counts = usize::try_from(stream)
            .ok()
            .and_then(|stream| self.streams.get_mut(stream))
            .ok_or(PushError::Stream)?;
        let number = counts.packets;
        counts.packets = number
            .checked_add(1)
            .filter(|&packets| packets < u32::MAX)
            .ok_or(PushError::TooMany)?;
        self.queue.push_back((stream, number));
        self.queued += packet.len();
        self.packets.insert((stream, number), packet);
        Ok(())
    }

    /// Bytes of packets that are still to be sent: who has many packets adds more when it becomes little.
    pub fn queued(&self) -> usize {
        // Of the first packet some fragments may be on their way.
        let sent = self.next_fragment as usize * usize::from(self.writer.fragment_size());
        self.queued.saturating_sub(sent)
    }

    /// How many packets are still to be sent, those of which only a part was sent included; not those that
    /// are asked for again.
    pub fn queued_packets(&self) -> usize {
        self.queue.len()
    }

    /// Adds the announcement of the end. No packets can be added after it.
    pub fn end(&mut self) {
        if self.ended {
            return;
        }
        let totals = self.streams[1..].iter().map(|stream| stream.packets);
        let totals = Entry::Totals(totals.collect());
        // The directory takes one more packet than there are streams.
        let _ = self.push(DIRECTORY, totals.write());
        self.ended = true;
    }

    /// How far it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// How many packets never arrived, once the receiver has said that it takes no more: it may have
    /// given some up, or ended before they came. `None` until then, or if the receiver does not report it.
    pub fn missing(&self) -> Option<u64> {
        let packets = self.streams[1..].iter();
        let packets: u64 = packets.map(|stream| u64::from(stream.packets)).sum();
        self.arrived.map(|arrived| packets.saturating_sub(arrived))
    }

    /// Whether everything has arrived, once there is nothing more to send.
    ///
    /// # Errors
    ///
    /// If something is missing, or nobody has confirmed the arrival.
    pub fn delivered(&self) -> Result<(), Undelivered> {
        match (self.state, self.missing()) {
            (State::Done, None | Some(0)) => Ok(()),
            (State::Done, Some(missing)) => Err(Undelivered::Missing(missing)),
            _ => Err(Undelivered::Unconfirmed),
        }
    }

    /// Processes a datagram from the receiver. `false` if it does not belong to this session.
    pub fn receive(&mut self, now: Duration, datagram: &[u8]) -> bool {
        let Ok(datagram) = Datagram::read(datagram, self.seal.as_ref()) else {
            return false;
        };
        if datagram.session != self.options.session {
            return false;
        }
        match datagram.body {
            Body::Request(ranges) if self.requests.is_new(datagram.number) => {
                ranges.iter().for_each(|range| self.ask(&range));
            }
            Body::Request(_) => {}
            Body::Done { arrived } if self.ended && self.state != State::Done => {
                self.state = State::Done;
                self.arrived = arrived;
            }
            Body::Done { .. } => {}
            Body::Arrived(packets) => self.confirmed = self.confirmed.max(Some(packets)),
            Body::Fragment(_) | Body::End { .. } | Body::Gone { .. } | Body::Ask => return false,
        }
        self.heard = Some(now);
        self.ends = 0;
        true
    }

    /// Notes what is asked for.
    fn ask(&mut self, range: &Range) {
        let Some(stream) = self.streams.get(range.stream as usize) else {
            return;
        };
        // What is still to be sent comes anyway.
        let end = range.packet.saturating_add(range.packets).min(stream.sent);
        let supplies = self.options.supplies;
        if range.packet < stream.gone && !supplies {
            let before = self.gone.entry(range.stream).or_default();
            *before = stream.gone.min(end).max(*before);
        }
        let first = match supplies {
            true => range.packet,
            false => range.packet.max(stream.gone),
        };
        for number in first..end {
            let Some(packet) = self.packets.get(&(range.stream, number)) else {
                if self.wanted.len() >= MOST_ASKED {
                    return;
                }
                if supplies {
                    self.wanted.insert((range.stream, number));
                }
                continue;
            };
            let count = Fragment::count(packet.len() as u32, self.writer.fragment_size());
            let (first, fragments) = match range.fragments {
                ALL => (0, count),
                fragments => (range.fragment, fragments),
            };
            for fragment in first..first.saturating_add(fragments).min(count) {
                if self.asked.len() >= MOST_ASKED {
                    return;
                }
                self.asked.insert((range.stream, number, fragment));
            }
        }
    }

    /// The next datagram to send, if there is one now; else [`wait`](Self::wait) returns when.
    pub fn next_datagram(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.state == State::Done || self.state == State::GivenUp || now < self.due {
            return None;
        }
        let datagram = self.make(now)?;
        if let Some(nanos) = (datagram.len() as u64)
            .saturating_mul(1_000_000_000)
            .checked_div(self.options.rate)
        {
            // What was not sent in time is not sent all at once.
            self.due = self.due.max(now.saturating_sub(BURST)) + Duration::from_nanos(nanos);
        }
        Some(datagram)
    }

    fn make(&mut self, now: Duration) -> Option<Vec<u8>> {
        if let Some((stream, before)) = self.gone.pop_first() {
            return Some(self.writer.gone(stream, before));
        }
        if self.state == State::Sending && now >= self.next_ask {
            return Some(self.probe(now));
        }
        while let Some((stream, packet, fragment)) = self.asked.pop_first() {
            if let Some(bytes) = self.packets.get(&(stream, packet)).cloned() {
                return Some(self.fragment((stream, packet), fragment, &bytes));
            }
        }
        if let Some(&place) = self.queue.front() {
            let bytes = self.packets.get(&place).cloned().unwrap_or_default();
            let fragment = self.next_fragment;
            let count = Fragment::count(bytes.len() as u32, self.writer.fragment_size());
            self.next_fragment += 1;
            if self.next_fragment >= count {
                self.next_fragment = 0;
                self.queue.pop_front();
                self.queued -= bytes.len();
                self.keep(place, bytes.len());
            }
            return Some(self.fragment(place, fragment, &bytes));
        }
        // Those of one packet at a time are supplied, and come before the end is announced again.
        if !self.ended || !self.wanted.is_empty() {
            return None;
        }
        if self.state == State::Sending {
            self.state = State::Ending;
            self.heard = Some(now);
        }
        let heard = self.heard.unwrap_or(now);
        if now.saturating_sub(heard) >= self.options.patience {
            self.state = State::GivenUp;
            return None;
        }
        if now < self.next_end {
            return None;
        }
        self.next_end = now + END_INTERVAL;
        self.ends += 1;
        if self.ends.is_multiple_of(ENDS_BEFORE_REPEATING) {
            self.repeat();
        }
        let directory = self.streams[0].packets;
        Some(self.writer.end(directory))
    }

    /// A datagram that asks the receiver how much has arrived: whether it replies, or the system says that
    /// there is no listener, reveals if there is one.
    pub fn probe(&mut self, now: Duration) -> Vec<u8> {
        self.next_ask = now + ASK_INTERVAL;
        self.writer.ask()
    }

    /// How many packets had arrived when the receiver said so last, but for those of the directory.
    pub fn confirmed(&self) -> Option<u64> {
        self.arrived.or(self.confirmed)
    }

    /// A stream and the number of a packet in it that is asked for and no longer kept:
    /// [`supply`](Self::supply) adds it. `None` while others that were asked for are to be sent first.
    pub fn next_wanted(&mut self) -> Option<(u32, u32)> {
        match self.asked.is_empty() {
            true => self.wanted.pop_first(),
            false => None,
        }
    }

    /// Adds a packet again that was pushed before, and is [wanted](Self::next_wanted).
    pub fn supply(&mut self, (stream, packet): (u32, u32), bytes: impl Into<Arc<[u8]>>) {
        let bytes = bytes.into();
        let is_sent = usize::try_from(stream)
            .ok()
            .and_then(|stream| self.streams.get(stream))
            .is_some_and(|stream| packet < stream.sent);
        if !is_sent || self.packets.contains_key(&(stream, packet)) {
            return;
        }
        let count = Fragment::count(bytes.len() as u32, self.writer.fragment_size());
        let fragments = (0..count).map(|fragment| (stream, packet, fragment));
        self.asked.extend(fragments);
        self.sent.push_back((stream, packet));
        self.sent_bytes += bytes.len();
        self.packets.insert((stream, packet), bytes);
        // It stays until another one is wanted.
        self.forget(1);
    }

    /// Sends directory and metadata once more.
    fn repeat(&mut self) {
        for stream in 0..self.streams.len() as u32 {
            if self.streams[stream as usize].is_kept {
                self.ask(&Range {
                    stream,
                    packet: 0,
                    packets: u32::MAX,
                    fragment: 0,
                    fragments: ALL,
                });
            }
        }
    }

    fn fragment(&mut self, (stream, packet): Place, fragment: u32, bytes: &[u8]) -> Vec<u8> {
        let size = self.writer.fragment_size();
        let begin = (fragment as usize)
            .saturating_mul(size.into())
            .min(bytes.len());
        let end = begin.saturating_add(size.into()).min(bytes.len());
        self.writer.fragment(&Fragment {
            stream,
            packet,
            size: bytes.len() as u32,
            fragment,
            fragment_size: size,
            bytes: &bytes[begin..end],
        })
    }

    /// Keeps a packet that was sent, and no longer what is beyond the window.
    fn keep(&mut self, place: Place, bytes: usize) {
        let stream = &mut self.streams[place.0 as usize];
        stream.sent = place.1 + 1;
        if stream.is_kept {
            return;
        }
        self.sent.push_back(place);
        self.sent_bytes += bytes;
        self.forget(0);
    }

    /// Forgets packets that are beyond the window, except for the latest `latest`.
    fn forget(&mut self, latest: usize) {
        while self.sent_bytes > self.options.window
            && self.sent.len() > latest
            && let Some(oldest) = self.sent.pop_front()
        {
            let bytes = self.packets.remove(&oldest).unwrap_or_default();
            self.sent_bytes -= bytes.len();
            let gone = &mut self.streams[oldest.0 as usize].gone;
            *gone = (*gone).max(oldest.1 + 1);
        }
    }

    /// When there may be something to send, if nothing comes before it; `None` if never.
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        match self.state {
            State::Done | State::GivenUp => None,
            _ if !self.gone.is_empty() || !self.asked.is_empty() || !self.queue.is_empty() => {
                Some(self.due)
            }
            _ if !self.wanted.is_empty() => Some(self.due),
            _ if self.ended => Some(self.due.max(self.next_end)),
            _ => Some(now + END_INTERVAL),
        }
    }
}

/// What was not sent in time may be sent all at once if it was to be sent within this.
const BURST: Duration = Duration::from_millis(5);

/// Which requests have come: a bit for each of those before the latest.
#[derive(Default)]
struct Requests {
    /// One more than the latest.
    next: u64,
    seen: u64,
}

impl Requests {
    /// Whether a request was not there before.
    fn is_new(&mut self, number: u64) -> bool {
        if let Some(step) = number.checked_sub(self.next) {
            let shift = u32::try_from(step.saturating_add(1)).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(shift).unwrap_or(0) | 1;
            self.next = number.saturating_add(1);
            return true;
        }
        let age = self.next - 1 - number;
        let bit = 1u64.checked_shl(u32::try_from(age).unwrap_or(u32::MAX));
        match bit {
            Some(bit) if age < REPLAY_WINDOW && self.seen & bit == 0 => {
                self.seen |= bit;
                true
            }
            _ => false,
        }
    }
}
