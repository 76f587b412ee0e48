//! Packets in memory: full ones wait to be written, or are kept until newer ones need their place.
//!
//! A thread has one block for the events of its next packet. The lock is taken when that is
//! full, never for an event. What a block holds is [committed](Block::committed) event by event, so
//! that whoever flushes or takes a snapshot can have the events of a running thread without asking it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicUsize, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::encode::{self, WORD, aligned};
use crate::packet::Writer;

/// Events of a packet.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) words: Box<[AtomicU32]>,
    /// Bytes of whole events.
    committed: AtomicU32,
    /// Where the last event begins that is whole, or the next one, which is about to be.
    last: AtomicU32,
    /// How often the block was reused: a snapshot checks whether that happened while it copied.
    generation: AtomicU32,
}

impl Block {
    fn new(bytes: usize) -> Arc<Self> {
        let words = std::iter::repeat_with(|| AtomicU32::new(0)).take(bytes / WORD);
        Arc::new(Self {
            words: words.collect(),
            committed: AtomicU32::new(0),
            last: AtomicU32::new(0),
            generation: AtomicU32::new(0),
        })
    }

    /// Makes an event known that lies between two bytes.
    #[inline]
    pub(crate) fn commit(&self, begin: usize, end: usize) {
        self.last.store(begin as u32, Release);
        self.committed.store(end as u32, Release);
    }

    /// The end of the last complete event, and a time that is not before that event's, nor after
    /// the next one's; `None` without events after byte `from`.
    fn state(&self, from: u32, begin: u64) -> Option<(u32, u64)> {
        loop {
            let committed = self.committed.load(Acquire);
            if committed <= from {
                return None;
            }
            let last = self.last.load(Acquire);
            // Then it is the last event, or the next one, which is just being committed: either time will do.
            if self.committed.load(Acquire) == committed {
                let tick = self.tick(last)?;
                // The header has 48 bits; no two events of a packet are further apart.
                let since = tick.wrapping_sub(begin) & (u64::MAX >> 16);
                return Some((committed, begin.wrapping_add(since)));
            }
        }
    }

    /// Low bits of the time of the event that begins at a byte.
    fn tick(&self, at: u32) -> Option<u64> {
        let words = self.words.get(at as usize / WORD..)?;
        let [low, high] = words.first_chunk()?;
        let half = |word: &AtomicU32| u64::from(u32::from_le(word.load(Relaxed)));
        Some((half(high) << 32 | half(low)) >> 16)
    }
}

/// Events that are to become a packet.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) stream: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) discarded: u64,
    pub(crate) sequence: u64,
    pub(crate) writer: Arc<Writer>,
    /// Whether a packet without events comes before it, as the first one of its stream.
    is_led: bool,
    /// Whether its thread has no more to do with the block, which is to be given [back](Pool::back).
    is_full: bool,
    block: Arc<Block>,
    generation: u32,
    from: u32,
    to: u32,
}

impl Piece {
    /// Bytes of its events.
    pub(crate) fn events(&self) -> usize {
        (self.to as usize).saturating_sub(aligned(self.from as usize))
    }

    /// What comes before it. Readers compute the growth of the count of discarded events between packets, so
    /// a first one's count would mean nothing; `is_first` marks one that is first because those before it could not
    /// be written.
    pub(crate) fn lead(&self, is_first: bool) -> Option<Self> {
        (self.is_led || is_first && self.discarded > 0).then(|| Self {
            // Since when events may have been lost is not known.
            begin: 0,
            end: 0,
            discarded: 0,
            sequence: self.sequence.saturating_sub(1),
            from: 0,
            to: 0,
            ..self.clone()
        })
    }

    /// Appends its events. Returns whether they were there as a whole: a block of a flight recorder may be used
    /// again meanwhile.
    pub(crate) fn append(&self, bytes: &mut Vec<u8>) -> bool {
        let (from, to) = (self.from as usize, self.to as usize);
        let words = aligned(from) / WORD..to.div_ceil(WORD);
        let before = bytes.len();
        encode::append(bytes, self.block.words.get(words).unwrap_or_default());
        bytes.truncate(before + self.events());
        fence(Acquire);
        self.block.generation.load(Relaxed) == self.generation
    }
}

/// What is done with an event if there is no room for it because packets are written too slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is discarded and counted: the program is never held up.
    #[default]
    Discard,
    /// Its thread waits until there is room: for as long as packets are written, and where none is, as long as
    /// [`Options::patience`](crate::Options::patience) says. Then it is discarded and counted, and so are all until one is written.
    Wait,
}

/// What becomes of full packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// They wait to be written, this many at most.
    Queue {
        most: usize,
        when_full: WhenFull,
        /// How long a thread waits for who writes none.
        patience: Duration,
    },
    /// They are kept in a ring of `blocks` blocks, until newer ones need their place.
    Ring { blocks: usize },
}

/// The blocks of a recording.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    /// A block has become free.
    room: Condvar,
    /// There is something to write.
    work: Condvar,
    bytes: usize,
    usage: Use,
}

#[derive(Debug)]
struct State {
    streams: Vec<Stream>,
    full: VecDeque<Piece>,
    free: Vec<Arc<Block>>,
    /// Full blocks that have not come back.
    waiting: usize,
    /// How many have come back.
    returned: usize,
    /// Whether a thread has waited in vain, and none has come back since.
    is_stalled: bool,
    is_closed: bool,
}

/// What one thread after another writes to.
#[derive(Debug)]
struct Stream {
    discarded: Arc<AtomicUsize>,
    /// The count in the last packet that was taken.
    reported: u64,
    /// The thread that writes to it, or was the last one to.
    writer: Arc<Writer>,
    sequence: u64,
    running: Option<Running>,
}

/// A thread that writes.
#[derive(Debug)]
struct Running {
    /// What it writes to; there is none before its first event.
    block: Option<Arc<Block>>,
    /// Bytes of the block that were taken already.
    taken: u32,
    /// When what was not taken begins.
    begin: u64,
}

impl Stream {
    /// A piece of no events: whoever took all that a block had may not have written it yet, so that the
    /// block has to come back as those do of which something is left.
    fn rest(&self, number: usize) -> Option<Piece> {
        let running = self.running.as_ref()?;
        let block = running.block.as_ref()?;
        Some(self.part(number, running, block, running.taken, running.begin))
    }

    /// The part that the thread has written and that was not taken yet.
    fn piece(&self, number: usize) -> Option<Piece> {
        let running = self.running.as_ref()?;
        let block = running.block.as_ref()?;
        let (to, end) = block.state(running.taken, running.begin)?;
        Some(self.part(number, running, block, to, end))
    }

    /// What was not taken, up to a byte.
    fn part(
        &self,
        number: usize,
        running: &Running,
        block: &Arc<Block>,
        to: u32,
        end: u64,
    ) -> Piece {
        let discarded = self.discarded.load(Relaxed) as u64;
        let is_led = self.sequence == 0 && discarded > 0;
        Piece {
            stream: number as u32,
            begin: running.begin,
            end,
            discarded,
            sequence: self.sequence + u64::from(is_led),
            writer: Arc::clone(&self.writer),
            is_led,
            is_full: false,
            block: Arc::clone(block),
            // The block is not reused before the lock is released.
            generation: block.generation.load(Relaxed),
            from: running.taken,
            to,
        }
    }

    /// The same, which is taken now.
    fn take(&mut self, number: usize) -> Option<Piece> {
        let piece = self.piece(number)?;
        self.sequence = piece.sequence + 1;
        self.reported = piece.discarded;
        if let Some(running) = &mut self.running {
            running.taken = piece.to;
            running.begin = piece.end;
        }
        Some(piece)
    }

    /// A packet without events that reports discarded events which no packet has reported. `reported` is the count that the
    /// previous packet reported, if there is one.
    fn unreported(&self, number: usize, reported: Option<u64>, now: u64) -> Option<Piece> {
        let discarded = self.discarded.load(Relaxed) as u64;
        let is_led = reported.is_none();
        (discarded > reported.unwrap_or_default()).then(|| Piece {
            stream: number as u32,
            begin: now,
            end: now,
            discarded,
            sequence: self.sequence + u64::from(is_led),
            writer: Arc::clone(&self.writer),
            is_led,
            is_full: false,
            block: Block::new(0),
            generation: 0,
            from: 0,
            to: 0,
        })
    }
}

impl Pool {
    /// Creates blocks of `bytes` bytes, a multiple of the word size.
    pub(crate) fn new(bytes: usize, usage: Use) -> Self {
        let (Use::Queue { most: blocks, .. } | Use::Ring { blocks }) = usage;
        Self {
            state: Mutex::new(State {
                streams: Vec::new(),
                full: VecDeque::with_capacity(blocks),
                free: (0..blocks).map(|_| Block::new(bytes)).collect(),
                waiting: 0,
                returned: 0,
                is_stalled: false,
                is_closed: false,
            }),
            room: Condvar::new(),
            work: Condvar::new(),
            bytes,
            usage,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a thread a stream: its number, and its count of discarded events.
    pub(crate) fn enter(&self, writer: Writer) -> (u32, Arc<AtomicUsize>) {
        let writer = Arc::new(writer);
        let mut state = self.lock();
        let free = state
            .streams
            .iter()
            .position(|stream| stream.running.is_none());
        let number = free.unwrap_or(state.streams.len());
        if free.is_none() {
            state.streams.push(Stream {
                discarded: Arc::default(),
                reported: 0,
                writer: Arc::clone(&writer),
                sequence: 0,
                running: None,
            });
            if let Use::Queue { most, .. } = self.usage {
                state.free.push(Block::new(self.bytes));
                // So that no flush needs to make room for what it takes: each stream has one block that is full or waits
                // to be, and one in hand.
                let room = most + 2 * state.streams.len();
                let missing = room.saturating_sub(state.full.len());
                state.full.reserve(missing);
            }
        }
        let stream = &mut state.streams[number];
        stream.writer = writer;
        stream.running = Some(Running {
            block: None,
            taken: 0,
            begin: 0,
        });
        (number as u32, Arc::clone(&stream.discarded))
    }

    /// Takes a thread's stream back, with what it has written.
    pub(crate) fn leave(&self, stream: u32) {
        let mut state = self.lock();
        self.hand_over(&mut state, stream);
        if let Some(stream) = state.streams.get_mut(stream as usize) {
            stream.running = None;
        }
    }

    /// Gives a thread an empty block for events from a tick on; its old one is full, or must
    /// be ended. `None` if none is available.
    pub(crate) fn next(&self, stream: u32, tick: u64) -> Option<Arc<Block>> {
        let mut state = self.lock();
        if let Use::Queue {
            most,
            when_full,
            patience,
        } = self.usage
        {
            while state.waiting >= most && !state.is_closed {
                if when_full == WhenFull::Discard || state.is_stalled {
                    return None;
                }
                let returned = state.returned;
                let waited = self.room.wait_timeout(state, patience);
                let (now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                state = now;
                state.is_stalled |= waited.timed_out() && state.returned == returned;
            }
        }
        if state.is_closed {
            return None;
        }
        self.hand_over(&mut state, stream);
        let block = state.free.pop().or_else(|| match self.usage {
            // There is one for each stream and each full packet that may wait.
            Use::Queue { .. } => None,
            Use::Ring { .. } => Some(state.full.pop_front()?.block),
        })?;
        // A snapshot that has seen anything of what will be stored sees this, too.
        block
            .generation
            .store(block.generation.load(Relaxed).wrapping_add(1), Relaxed);
        fence(Release);
        block.committed.store(0, Relaxed);
        block.last.store(0, Relaxed);
        let running = state.streams.get_mut(stream as usize)?.running.as_mut()?;
        running.block = Some(Arc::clone(&block));
        running.taken = 0;
        running.begin = tick;
        Some(block)
    }

    /// Takes a thread's block from it.
    fn hand_over(&self, state: &mut State, stream: u32) {
        let number = stream as usize;
        let Some(stream) = state.streams.get_mut(number) else {
            return;
        };
        let piece = stream.take(number).or_else(|| stream.rest(number));
        if let Some(running) = &mut stream.running {
            running.block = None;
        }
        if let Some(piece) = piece {
            state.waiting += 1;
            state.full.push_back(Piece {
                is_full: true,
                ..piece
            });
            self.work.notify_one();
        }
    }

    /// The oldest packet that waits. It is to be given [back](Pool::back).
    pub(crate) fn oldest(&self) -> Option<Piece> {
        self.lock().full.pop_front()
    }

    /// Gives a packet back that was taken.
    pub(crate) fn back(&self, piece: Piece) {
        if !piece.is_full {
            return;
        }
        let mut state = self.lock();
        state.free.push(piece.block);
        state.waiting -= 1;
        state.returned = state.returned.wrapping_add(1);
        state.is_stalled = false;
        self.room.notify_all();
    }

    /// Counts events of a packet that could not be written: the next one of its stream reports them.
    pub(crate) fn discard(&self, stream: u32, events: usize) {
        if let Some(stream) = self.lock().streams.get(stream as usize) {
            stream.discarded.fetch_add(events, Relaxed);
        }
    }

    /// How many packets wait: what comes meanwhile is for the next time, so that whoever writes them comes to an end.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().full.len()
    }

    /// The same, with all that threads have written to blocks that are not full, which stay with them.
    pub(crate) fn cut(&self) -> usize {
        let mut state = self.lock();
        let State { streams, full, .. } = &mut *state;
        for (number, stream) in streams.iter_mut().enumerate() {
            full.extend(stream.take(number));
        }
        full.len()
    }

    /// Everything that there is, oldest first, and nothing of it taken; `lost` events were lost where no thread
    /// could count them.
    pub(crate) fn all(&self, clock: &Clock, lost: usize) -> Vec<Piece> {
        self.lose(lost);
        let state = self.lock();
        let has_events = |piece: &Piece| piece.events() > 0;
        let full = state.full.iter().cloned();
        let mut all: Vec<_> = full.filter(has_events).collect();
        for (number, stream) in state.streams.iter().enumerate() {
            if let Some(piece) = stream.piece(number).filter(has_events) {
                all.push(piece);
            } else {
                let mut before = all.iter().rev();
                let before = before.find(|piece| piece.stream as usize == number);
                let reported = before.map(|piece| piece.discarded);
                all.extend(stream.unreported(number, reported, clock.now()));
            }
        }
        all
    }

    /// Packets that report the discarded events which none has reported, after all else was taken; `lost` were lost
    /// where no thread could count them.
    pub(crate) fn unreported(&self, clock: &Clock, lost: usize) -> Vec<Piece> {
        self.lose(lost);
        let state = self.lock();
        let now = clock.now();
        let streams = state.streams.iter().enumerate();
        let unreported = |(number, stream): (usize, &Stream)| {
            let reported = (stream.sequence > 0).then_some(stream.reported);
            stream.unreported(number, reported, now)
        };
        streams.flat_map(unreported).collect()
    }

    /// Counts events for the first stream.
    fn lose(&self, lost: usize) {
        if lost == 0 {
            return;
        }
        let has_stream = !self.lock().streams.is_empty();
        if !has_stream {
            let (stream, _) = self.enter(Writer::current(0));
            self.leave(stream);
        }
        if let Some(stream) = self.lock().streams.first() {
            stream.discarded.fetch_add(lost, Relaxed);
        }
    }

    /// Waits until something is to be written, or until it is time to flush. Returns whether the recording
    /// goes on.
    pub(crate) fn wait(&self, longest: Option<Duration>) -> bool {
        let mut state = self.lock();
        if state.full.is_empty() && !state.is_closed {
            state = match longest {
                Some(longest) => {
                    let waited = self.work.wait_timeout(state, longest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
        !state.is_closed
    }

    /// Ends the recording: no thread gets another block.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_all();
        self.room.notify_all();
    }
}
