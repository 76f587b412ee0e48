//! The side that wants the packets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use super::assembly::{Assembly, Next};
use super::envelope::{ALL, Body, Datagram, Entry, Fragment, Range, Seal, Unreadable, Writer};
use super::{Content, DIRECTORY, MOST_STREAMS};
use crate::secure::Key;

/// What is missing is asked for again after so long at first, and at last.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
const LAST_INTERVAL: Duration = Duration::from_secs(1);
/// When nothing has come for so long, the rest of a packet in hand may be lost.
const STALE: Duration = Duration::from_millis(150);
/// Without asking, what has not come after so long is lost and not only late.
const LATE: Duration = Duration::from_millis(300);
/// Ranges that are asked for at once.
const MOST_RANGES: usize = 512;
/// The size of requests.
const REQUEST_BYTES: usize = 1400;

/// How packets are received.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// What datagrams must be authenticated with; without one, they must not be.
    pub key: Option<Key>,
    /// Whether what is missing is asked for.
    pub resend: bool,
    /// When nothing has come for so long, nothing more comes.
    pub idle: Duration,
    /// The number of its first datagram: a sender serves only requests with higher numbers than those before, those
    /// of a receiver that was there earlier, too. The time in nanoseconds is such a number.
    pub first_number: u64,
    /// What is kept at most.
    pub limits: ReceiverLimits,
}

/// What an earlier receiver of a session had when it stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The session.
    pub session: u64,
    /// Packets that had arrived, of all streams.
    pub arrived: u64,
    /// Numbers of streams from 1 on, and of the packet that each goes on with.
    pub streams: Vec<(u32, u32)>,
}

/// What a receiver keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverLimits {
    /// Bytes of packets that are not complete, or wait for those before them: when there are more, what is
    /// missing is given up.
    pub bytes: usize,
    /// Bytes of a packet; larger ones are lost.
    pub packet: u32,
}

impl Default for ReceiverLimits {
    /// Packets of 64 MiB.
    fn default() -> Self {
        Self::of_packets(64 << 20)
    }
}

impl ReceiverLimits {
    /// Room for packets of `packet` bytes: half as much again, since small fragments have some overhead, and
    /// 64 MiB at least.
    pub fn of_packets(packet: u32) -> Self {
        let room = usize::try_from(packet).unwrap_or(usize::MAX);
        Self {
            bytes: room.saturating_add(room / 2).max(64 << 20),
            packet,
        }
    }
}

/// What a receiver has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What a stream is. It may come after packets of the stream.
    Stream {
        /// Number of the stream.
        stream: u32,
        /// What it holds.
        content: Content,
        /// The path of a file. Nothing is known of it: it may lead anywhere.
        name: String,
    },
    /// The next packet of a stream.
    Packet {
        /// Number of the stream.
        stream: u32,
        /// Number of the packet in it, from 0.
        packet: u32,
        /// The packet.
        bytes: Vec<u8>,
    },
    /// A packet has more bytes than are taken; that it is lost is reported as well.
    TooLarge {
        /// Number of the stream.
        stream: u32,
        /// Number of the packet.
        packet: u32,
        /// Its bytes.
        size: u32,
    },
    /// Packets of a stream that will never come; the next one comes after them.
    Lost {
        /// Number of the stream.
        stream: u32,
        /// The first of them.
        first: u32,
        /// The last of them.
        last: u32,
    },
    /// Nothing more comes.
    End {
        /// Whether the sender has announced how many packets there are: else nobody knows what is missing at
        /// the end of streams.
        reported: bool,
    },
}

/// Why a datagram was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no envelope of kymo.
    Foreign,
    /// It is of a version of the envelope that is not known.
    Version,
    /// It is authenticated, and no key is given.
    KeyNeeded,
    /// It is not from a holder of the key, or was altered.
    NotAuthentic,
    /// Its checksum is not that of its bytes.
    Checksum,
    /// It ends too early, or says what cannot be.
    Damaged,
    /// It is of another session than the first one.
    OtherSession,
    /// It is of a stream or packet with a number that no session has, or that the sender said there is not.
    Limit,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "is not a packet of a trace and not from `kymo send`",
            Self::Version => "is of a version that this kymo does not know",
            Self::KeyNeeded => "is authenticated, and no key is given; hint: `--key-file FILE` names a file with it",
            Self::NotAuthentic => "is not authenticated with the key",
            Self::Checksum => "has a wrong checksum: it was altered on the way",
            Self::Damaged => "is damaged",
            Self::OtherSession => "is of another session than the one that is received",
            Self::Limit => "is of a stream or packet whose number no session has",
        })
    }
}

impl std::error::Error for Refusal {}

/// Makes packets of datagrams: those of the session of the first one.
pub struct Receiver {
    seal: Option<Seal>,
    options: ReceiverOptions,
    /// What makes requests, once there is a session.
    writer: Option<Writer>,
    streams: BTreeMap<u32, Assembly>,
    /// Streams that are known to hold packets: all others are sent again at the end.
    of_packets: BTreeSet<u32>,
    /// Streams of which the directory has come.
    known: BTreeSet<u32>,
    /// Bytes that their packets take.
    cost: usize,
    /// How many streams there are, once that is known.
    count: Option<u32>,
    /// Packets that have come out, but for those of the directory.
    arrived: u64,
    events: VecDeque<Event>,
    replies: VecDeque<Vec<u8>>,
    heard: Option<Duration>,
    /// The highest number of a datagram.
    latest: Option<u64>,
    /// When a fragment came last that was needed.
    progress: Duration,
    next_request: Duration,
    interval: Duration,
    ended: bool,
    /// Whether something was given up to end.
    ended_early: bool,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("streams", &self.streams.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Receiver {
    /// A receiver that takes the first session that comes.
    pub fn new(options: ReceiverOptions) -> Self {
        Self {
            seal: options.key.as_ref().and_then(Seal::new),
            options,
            writer: None,
            streams: BTreeMap::new(),
            of_packets: BTreeSet::new(),
            known: BTreeSet::new(),
            cost: 0,
            count: None,
            arrived: 0,
            events: VecDeque::new(),
            replies: VecDeque::new(),
            heard: None,
            latest: None,
            progress: Duration::ZERO,
            next_request: Duration::ZERO,
            interval: FIRST_INTERVAL,
            ended: false,
            ended_early: false,
        }
    }

    /// A receiver that takes a session up where an earlier one has stopped. Nothing has come since time 0: so
    /// [`idle`](ReceiverOptions::idle) ends it if the sender is gone.
    pub fn resumed(options: ReceiverOptions, resume: &Resume) -> Self {
        let mut receiver = Self::new(options);
        receiver.begin(resume.session);
        receiver.arrived = resume.arrived;
        receiver.heard = Some(Duration::ZERO);
        let streams = resume.streams.iter();
        receiver.streams = streams
            .filter(|(stream, _)| *stream != DIRECTORY && *stream < MOST_STREAMS)
            .map(|&(stream, next)| (stream, Assembly::beginning_at(next)))
            .collect();
        receiver
    }

    /// Begins a session, if none has begun.
    fn begin(&mut self, session: u64) -> &mut Writer {
        let seal = &self.seal;
        let number = self.options.first_number;
        self.writer
            .get_or_insert_with(|| Writer::new(session, seal.clone(), REQUEST_BYTES, number))
    }

    /// The session that is received, once it has begun.
    pub fn session(&self) -> Option<u64> {
        self.writer.as_ref().map(|writer| writer.session)
    }

    /// How many packets have arrived, but for those of the directory.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Takes a datagram; `true` if its number is higher than all before. Only such a datagram shows where the
    /// sender is, and that it still sends: whoever has recorded another can send it again.
    ///
    /// # Errors
    ///
    /// If it is not one of the session's.
    pub fn receive(&mut self, now: Duration, datagram: &[u8]) -> Result<bool, Refusal> {
        let datagram = Datagram::read(datagram, self.seal.as_ref()).map_err(|why| match why {
            Unreadable::Foreign => Refusal::Foreign,
            Unreadable::Version => Refusal::Version,
            Unreadable::KeyNeeded => Refusal::KeyNeeded,
            Unreadable::Tag => Refusal::NotAuthentic,
            Unreadable::Checksum => Refusal::Checksum,
            Unreadable::Damaged => Refusal::Damaged,
        })?;
        if matches!(
            datagram.body,
            Body::Request(_) | Body::Done { .. } | Body::Arrived(_)
        ) {
            return Err(Refusal::Damaged);
        }
        let arrived = self.arrived;
        let writer = self.begin(datagram.session);
        if writer.session != datagram.session {
            return Err(Refusal::OtherSession);
        }
        if matches!(datagram.body, Body::Ask) {
            let reply = writer.arrived(arrived);
            self.replies.push_back(reply);
        }
        let is_new = self.latest.is_none_or(|latest| datagram.number > latest);
        if is_new {
            self.latest = Some(datagram.number);
            self.heard = Some(now);
        }
        match datagram.body {
            Body::Fragment(fragment) => self.fragment(now, &fragment)?,
            Body::End { directory } => {
                if self.ended {
                    self.reply_done();
                    return Ok(is_new);
                }
                if directory > MOST_STREAMS {
                    return Err(Refusal::Limit);
                }
                self.streams
                    .entry(DIRECTORY)
                    .or_default()
                    .set_total(directory);
            }
            Body::Gone { stream, before } => {
                if let Some(assembly) = self.streams.get_mut(&stream) {
                    // A sender cannot declare more packets gone than there are.
                    let most = assembly.total().unwrap_or(before);
                    assembly.set_gone(before.min(most));
                    self.pop(stream);
                }
            }
            Body::Ask | Body::Request(_) | Body::Done { .. } | Body::Arrived(_) => {}
        }
        self.finish_if_complete();
        Ok(is_new)
    }

    fn fragment(&mut self, now: Duration, fragment: &Fragment<'_>) -> Result<(), Refusal> {
        // Behind the last number there is none that a stream could go on with.
        let is_possible = fragment.stream < MOST_STREAMS && fragment.packet < u32::MAX;
        if !is_possible || self.count.is_some_and(|count| fragment.stream > count) {
            return Err(Refusal::Limit);
        }
        if self.ended {
            return Ok(());
        }
        let known = self.streams.get(&fragment.stream);
        let cost = match known {
            Some(assembly) => assembly.cost_of(fragment),
            None => Assembly::default().cost_of(fragment),
        };
        if cost == 0 {
            return Ok(());
        }
        while self.cost + cost > self.options.limits.bytes {
            if !self.make_room() {
                return Err(Refusal::Limit);
            }
        }
        let assembly = self.streams.entry(fragment.stream).or_default();
        // What made room may have been this packet.
        let is_needed = assembly.cost_of(fragment) > 0;
        if is_needed && fragment.size > self.options.limits.packet {
            // It is not waited for: whatever came of it would come again.
            let before = assembly.cost();
            assembly.refuse(fragment);
            self.cost += assembly.cost().saturating_sub(before);
            self.events.push_back(Event::TooLarge {
                stream: fragment.stream,
                packet: fragment.packet,
                size: fragment.size,
            });
        } else if is_needed {
            assembly.add(fragment);
            self.cost += cost;
            self.progress = now;
        }
        self.pop(fragment.stream);
        Ok(())
    }

    /// Bytes of packets that are not complete, or wait for those before them, with what keeping them takes.
    pub fn waiting(&self) -> usize {
        self.cost
    }

    /// Gives up what the stream that takes most waits for. `false` if that makes no room.
    pub fn make_room(&mut self) -> bool {
        let largest = self
            .streams
            .iter()
            .max_by_key(|(_, assembly)| assembly.cost())
            .map(|(&stream, _)| stream);
        let before = self.cost;
        if let Some(stream) = largest
            && let Some((next, cost)) = self.streams.get_mut(&stream).and_then(Assembly::make_room)
        {
            self.came_out(stream, next, cost);
            self.pop(stream);
        }
        self.cost < before
    }

    /// Lets out what comes next in a stream.
    fn pop(&mut self, stream: u32) {
        while let Some((next, cost)) = self.streams.get_mut(&stream).and_then(Assembly::pop) {
            self.came_out(stream, next, cost);
        }
    }

    fn came_out(&mut self, stream: u32, next: Next, cost: usize) {
        self.cost = self.cost.saturating_sub(cost);
        match next {
            Next::Packet(bytes) if stream == DIRECTORY => self.entry(&bytes),
            Next::Packet(bytes) => {
                self.arrived += 1;
                let number = self.streams.get(&stream).map_or(0, Assembly::next_number);
                self.events.push_back(Event::Packet {
                    stream,
                    packet: number.saturating_sub(1),
                    bytes,
                });
            }
            Next::Lost(first, last) => self.events.push_back(Event::Lost {
                stream,
                first,
                last,
            }),
        }
    }

    /// Takes a packet of the directory.
    fn entry(&mut self, packet: &[u8]) {
        match Entry::read(packet) {
            Some(Entry::Stream {
                stream,
                content,
                name,
            }) if stream != DIRECTORY && stream < MOST_STREAMS => {
                self.streams.entry(stream).or_default();
                self.known.insert(stream);
                if content == Content::Packets {
                    self.of_packets.insert(stream);
                }
                self.events.push_back(Event::Stream {
                    stream,
                    content,
                    name,
                });
            }
            Some(Entry::Totals(totals)) if totals.len() < MOST_STREAMS as usize => {
                self.count = Some(totals.len() as u32);
                for (stream, total) in (1..).zip(totals) {
                    self.streams.entry(stream).or_default().set_total(total);
                }
            }
            // Whatever it is, it is not for this receiver.
            _ => {}
        }
    }

    /// What was found out, in its order.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What is to be sent to the sender.
    pub fn next_datagram(&mut self) -> Option<Vec<u8>> {
        self.replies.pop_front()
    }

    /// Whether a session has begun.
    pub fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Whether nothing more comes.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether it ended before everything had come or was known to be lost: another one may still get the rest.
    pub fn has_ended_early(&self) -> bool {
        self.ended_early
    }

    /// Passes the current time: what is missing is asked for or given up.
    pub fn poll(&mut self, now: Duration) {
        let Some(heard) = self.heard.filter(|_| !self.ended) else {
            return;
        };
        if now.saturating_sub(heard) >= self.options.idle {
            self.finish();
            return;
        }
        match self.options.resend {
            true => self.request(now),
            false => self.give_up_late(now),
        }
        self.finish_if_complete();
    }

    /// Without asking: what is late is lost, but for directory and metadata.
    fn give_up_late(&mut self, now: Duration) {
        let streams: Vec<u32> = self.of_packets.iter().copied().collect();
        for stream in streams {
            while let Some((next, cost)) = self
                .streams
                .get_mut(&stream)
                .and_then(|assembly| assembly.give_up_after(now, LATE))
            {
                self.came_out(stream, next, cost);
                self.pop(stream);
            }
        }
    }

    /// Asks for what is missing.
    fn request(&mut self, now: Duration) {
        if now < self.next_request {
            return;
        }
        let is_stale = now.saturating_sub(self.progress) >= STALE;
        let mut missing = Vec::new();
        missing.extend(self.missing_directory());
        for (&stream, assembly) in &self.streams {
            assembly.missing(stream, is_stale, MOST_RANGES, &mut missing);
            if missing.len() >= MOST_RANGES {
                break;
            }
        }
        if missing.is_empty() {
            self.interval = FIRST_INTERVAL;
            self.next_request = now + FIRST_INTERVAL;
            return;
        }
        let mut rest = &missing[..];
        while let Some(writer) = self.writer.as_mut().filter(|_| !rest.is_empty()) {
            let (datagram, asked) = writer.request(rest);
            self.replies.push_back(datagram);
            rest = &rest[asked..];
        }
        // The answers take their time.
        self.next_request = now + self.interval;
        self.interval = (self.interval * 3 / 2).min(LAST_INTERVAL);
    }

    /// What to ask of the directory, where streams have come that it has not named: its beginning came to another
    /// receiver, or was lost. The sender knows how much there is of it.
    fn missing_directory(&self) -> Option<Range> {
        let directory = self.streams.get(&DIRECTORY);
        let knows_all = self.count.is_some()
            || directory.is_some_and(|directory| directory.total().is_some())
            || self
                .streams
                .keys()
                .all(|stream| *stream == DIRECTORY || self.known.contains(stream));
        let first = directory.map_or(0, Assembly::next_number);
        (!knows_all).then_some(Range {
            stream: DIRECTORY,
            packet: first,
            packets: u32::MAX - first,
            fragment: 0,
            fragments: ALL,
        })
    }

    /// When [`poll`](Self::poll) is to be called at the latest, where no datagram comes before: after
    /// each that comes, it is to be called, too. `None` where there is nothing to wait for.
    pub fn deadline(&self) -> Option<Duration> {
        let heard = self.heard.filter(|_| !self.ended)?;
        let idle = heard + self.options.idle;
        let next = match self.options.resend {
            true => Some(self.next_request),
            false => self.next_late(),
        };
        Some(next.map_or(idle, |next| idle.min(next)))
    }

    /// When the first gap is given up.
    fn next_late(&self) -> Option<Duration> {
        let of_packets = self.of_packets.iter();
        let assemblies = of_packets.filter_map(|stream| self.streams.get(stream));
        assemblies
            .filter_map(|assembly| assembly.late_at(LATE))
            .min()
    }

    fn finish_if_complete(&mut self) {
        let is_complete =
            self.count.is_some() && !self.ended && self.streams.values().all(Assembly::is_complete);
        if is_complete {
            self.end();
        }
    }

    /// Gives up all that is missing: nothing more comes.
    pub fn finish(&mut self) {
        if self.ended {
            return;
        }
        self.ended_early = true;
        let streams: Vec<u32> = self.streams.keys().copied().collect();
        // The directory first: it says how many packets there are.
        for stream in streams {
            while let Some((next, cost)) = self.streams.get_mut(&stream).and_then(Assembly::give_up)
            {
                self.came_out(stream, next, cost);
                self.pop(stream);
            }
        }
        self.end();
    }

    fn end(&mut self) {
        self.ended = true;
        let reported = self.count.is_some();
        self.events.push_back(Event::End { reported });
        self.reply_done();
    }

    fn reply_done(&mut self) {
        let arrived = self.arrived;
        if let Some(writer) = &mut self.writer {
            self.replies.push_back(writer.done(arrived));
        }
    }
}
