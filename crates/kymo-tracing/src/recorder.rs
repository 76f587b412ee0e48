//! A recording: what all its threads share, how it is begun, and how it ends.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_ctf::class::Dialect;
use kymo_ctf::secure::Key;
use kymo_io::Process;

use crate::classes::{Action, Classes, Found, Signature, Site};
use crate::clock::Clock;
use crate::encode::WORD;
use crate::flight::FlightRecorder;
use crate::layer::Layer;
use crate::mapped::Mapped;
use crate::model;
use crate::packet::{MOST_HEAD, Writer};
use crate::pool::{Piece, Pool, Use, WhenFull};
use crate::sink::{Files, Output, Packer, Sink};
use crate::thread::silently;
use crate::udp::{Limit, Udp};

/// Bytes of a packet: an event needs room, and its size in bits has 32 bits.
const PACKET_BYTES: std::ops::RangeInclusive<usize> = 4096..=1 << 28;

/// What all threads of a recording share.
pub(crate) struct Recorder {
    /// Identifies the recording, in the order in which recordings began.
    pub(crate) number: usize,
    pub(crate) clock: Clock,
    pub(crate) uuid: [u8; 16],
    pub(crate) classes: Classes,
    pub(crate) store: Store,
    /// Events that were lost where no thread could count them.
    lost: AtomicUsize,
    threads: AtomicUsize,
    is_closed: AtomicBool,
    /// The process that records. A forked child has all of this, but no thread that writes packets, locks that
    /// are never released, and its parent's mapped files: it touches nothing.
    process: Process,
}

/// Where packets are.
pub(crate) enum Store {
    /// In memory.
    Pool(Pool),
    /// In files.
    Mapped(Mapped),
}

impl Recorder {
    fn new(
        options: &Options,
        store: impl FnOnce([u8; 16]) -> io::Result<Store>,
    ) -> io::Result<Arc<Self>> {
        static RECORDERS: AtomicUsize = AtomicUsize::new(0);
        let clock = Clock::start();
        let uuid = random_uuid();
        let classes = Classes::new(model::trace(options.dialect, uuid, &clock))?;
        let recorder = Self {
            number: RECORDERS.fetch_add(1, Relaxed),
            clock,
            uuid,
            classes,
            store: store(uuid)?,
            lost: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            is_closed: false.into(),
            process: Process::this(),
        };
        if let Store::Mapped(mapped) = &recorder.store {
            mapped.metadata(&recorder.classes.text())?;
        }
        Ok(Arc::new(recorder))
    }

    /// A number for a thread.
    pub(crate) fn next_thread(&self) -> u64 {
        self.threads.fetch_add(1, Relaxed) as u64
    }

    /// Counts an event that no thread can count.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// The number since the last call: the caller must report them.
    pub(crate) fn take_lost(&self) -> usize {
        self.lost.swap(0, Relaxed)
    }

    /// Whether recording has ended, or this process records nothing.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed) || self.is_of_parent()
    }

    /// Whether another process records, of which this one is a child.
    #[inline]
    pub(crate) fn is_of_parent(&self) -> bool {
        !self.process.is_this()
    }

    /// The class of what a call site does.
    #[cold]
    pub(crate) fn find(&self, site: Site, action: Action, signature: Signature) -> Found {
        self.classes
            .find(site, action, signature, |text| match &self.store {
                // Whoever writes packets writes metadata before them.
                Store::Pool(_) => Ok(()),
                Store::Mapped(mapped) => mapped.metadata(text),
            })
    }

    fn close(&self) {
        self.is_closed.store(true, Relaxed);
        match &self.store {
            Store::Pool(pool) => pool.close(),
            Store::Mapped(mapped) => mapped.close(),
        }
    }
}

/// A UUID of random bits (RFC 4122 §4.4). What hash tables are seeded with comes from the system.
fn random_uuid() -> [u8; 16] {
    let random = || RandomState::new().hash_one(std::process::id());
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&random().to_le_bytes());
    uuid[8..].copy_from_slice(&random().to_le_bytes());
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// How a recording is made.
///
/// ```no_run
/// use tracing_subscriber::prelude::*;
///
/// let (layer, guard) = kymo_tracing::Options::new().files("trace")?;
/// tracing_subscriber::registry().with(layer).init();
/// tracing::info!(answer = 42, "ready");
/// guard.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    packet_bytes: usize,
    file_bytes: usize,
    waiting: usize,
    when_full: WhenFull,
    patience: Duration,
    flush_every: Option<Duration>,
    end_within: Duration,
    enters: bool,
    dialect: Dialect,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packet_bytes: 1 << 16,
            file_bytes: 1 << 20,
            waiting: 64,
            when_full: WhenFull::Discard,
            patience: Duration::from_secs(10),
            flush_every: Some(Duration::from_secs(1)),
            end_within: Duration::from_secs(30),
            enters: true,
            dialect: Dialect::Ctf18,
        }
    }
}

impl Options {
    /// The usual ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum size of a packet in bytes: 4 KiB to 256 MiB, 64 KiB by default. Each thread has as much memory. A
    /// larger event is recorded with its texts cut off.
    #[must_use]
    pub fn packet_size(mut self, bytes: usize) -> Self {
        let bytes = bytes.clamp(*PACKET_BYTES.start(), *PACKET_BYTES.end());
        self.packet_bytes = bytes.next_multiple_of(8);
        self
    }

    /// Sets the size of each mapped file in bytes: 1 MiB by default, at least that of a packet, at most 256 MiB.
    #[must_use]
    pub fn file_size(mut self, bytes: usize) -> Self {
        self.file_bytes = bytes.min(*PACKET_BYTES.end()).next_multiple_of(8);
        self
    }

    /// Sets the number of full packets that may wait to be written: 64 by default. Their memory is taken at once.
    #[must_use]
    pub fn waiting(mut self, packets: usize) -> Self {
        self.waiting = packets.max(1);
        self
    }

    /// Sets what is done with events when the maximum number of packets wait. By default, they are discarded and counted.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Sets how long a thread waits ([`WhenFull::Wait`]) while no packet is written at all: ten seconds by default. Thus a
    /// sink that does not come back, or waits for that very thread, does not stop the program for ever.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how often packets are written that are not full: each second by default. With `None`, packets are written when
    /// they are full, when their thread ends, and at the end.
    #[must_use]
    pub fn flush_every(mut self, interval: Option<Duration>) -> Self {
        self.flush_every = interval;
        self
    }

    /// Sets how long the end of a recording over UDP may take: 30 seconds by default. What the receiver has not got by then
    /// is lost, and [`Guard::finish`] reports it. Threads do not wait longer for room for a packet either.
    #[must_use]
    pub fn end_within(mut self, time: Duration) -> Self {
        self.end_within = time;
        self
    }

    /// Sets whether enters and exits of spans are recorded, beside that spans open and close: they are by default.
    #[must_use]
    pub fn enters(mut self, enters: bool) -> Self {
        self.enters = enters;
        self
    }

    /// Sets the language of the metadata: CTF 1.8 by default, or CTF 2.
    ///
    /// CTF 1.8 has other names for fields that are no names of C: `http.method` becomes
    /// `http_method`.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Records to files in a directory, which is made, or is empty. A thread of the recorder's own writes them.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is something in the directory; those of the system.
    pub fn files(&self, directory: impl AsRef<Path>) -> io::Result<(Layer, Guard)> {
        self.sink(Files::create(directory.as_ref())?)
    }

    /// Records to a sink, to which a thread of the recorder's own gives packets.
    ///
    /// # Errors
    ///
    /// Those of the sink, when it is given the first metadata; of beginning a thread.
    pub fn sink(&self, sink: impl Sink + 'static) -> io::Result<(Layer, Guard)> {
        let events = self.events_bytes();
        let pool = Pool::new(
            events,
            Use::Queue {
                most: self.waiting,
                when_full: self.when_full,
                patience: self.patience,
            },
        );
        let recorder = Recorder::new(self, |_| Ok(Store::Pool(pool)))?;
        let mut output = Output::new(Box::new(sink), Packer::new(recorder.uuid, events));
        output.metadata(&recorder.classes.text())?;
        let output = Arc::new(Mutex::new(output));
        let thread = std::thread::Builder::new()
            .name("kymo-tracing".to_owned())
            .spawn({
                let (recorder, output) = (Arc::clone(&recorder), Arc::clone(&output));
                let interval = self.flush_every;
                move || write(&recorder, &output, interval)
            })?;
        let guard = Guard {
            recorder: Arc::clone(&recorder),
            output: Some(Written {
                output,
                thread: Some(thread),
            }),
            limit: None,
        };
        Ok((self.layer(recorder), guard))
    }

    /// Sends packets over UDP to `kymo receive`, which makes a trace of them and asks again for what was lost on the way. With a
    /// key, datagrams are authenticated, not enciphered.
    ///
    /// The end of the recording waits for confirmation that everything has arrived, unless the receiver is silent
    /// for five seconds, and not for longer than [`Options::end_within`] says.
    ///
    /// # Errors
    ///
    /// The address does not exist, or the system reports an error.
    pub fn udp(&self, to: impl ToSocketAddrs, key: Option<Key>) -> io::Result<(Layer, Guard)> {
        let session = RandomState::new().hash_one(std::process::id());
        let limit = Limit::new(self.end_within);
        let udp = Udp::connect(to, key, session, Arc::clone(&limit))?;
        let (layer, mut guard) = self.sink(udp)?;
        guard.limit = Some(limit);
        Ok((layer, guard))
    }

    /// Records to memory-mapped files in a directory, which is made, or is empty. It is a readable trace at any instant, also
    /// after the program was killed: it has every event whose call has returned.
    ///
    /// The first event of a class writes the metadata again, and the first one of a packet may begin a file; all others
    /// are written without calling the system. A thread of the recorder's own makes files before they are needed.
    ///
    /// On a file system that finds a new place for what is written (btrfs, ZFS, bcachefs; XFS where a copy shares places with the
    /// file), a full disk ends the program (SIGBUS): there, only a disk with room to spare is one to record to.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is something in the directory; those of the system, and of beginning a thread.
    pub fn mapped(&self, directory: impl AsRef<Path>) -> io::Result<(Layer, Guard)> {
        // The first one begins with a packet that has no events.
        let least = self.packet_bytes + MOST_HEAD.next_multiple_of(8);
        let file_bytes = self.file_bytes.max(least);
        let recorder = Recorder::new(self, |uuid| {
            let directory = directory.as_ref();
            Mapped::create(directory, uuid, file_bytes, self.packet_bytes).map(Store::Mapped)
        })?;
        let guard = Guard {
            recorder: Arc::clone(&recorder),
            output: None,
            limit: None,
        };
        Ok((self.layer(recorder), guard))
    }

    /// Records to memory of a fixed size, in bytes: when it is full, the oldest packet is overwritten. What is in
    /// it is written by [`FlightRecorder::snapshot`].
    ///
    /// Each thread that records has one packet of this memory for itself: with more threads than packets, some have none, and
    /// their events are discarded and counted.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where the memory is smaller than two packets.
    pub fn flight_recorder(&self, memory: usize) -> io::Result<(Layer, FlightRecorder)> {
        let blocks = memory / self.packet_bytes;
        if blocks < 2 {
            let message = format!(
                "a flight recorder of {memory} bytes has no room for two packets of {} bytes: make the \
                 packets smaller",
                self.packet_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let events = self.events_bytes();
        let pool = Pool::new(events, Use::Ring { blocks });
        let recorder = Recorder::new(self, |_| Ok(Store::Pool(pool)))?;
        let flight = FlightRecorder::new(Arc::clone(&recorder), events);
        Ok((self.layer(recorder), flight))
    }

    fn layer(&self, recorder: Arc<Recorder>) -> Layer {
        Layer {
            recorder,
            enters: self.enters,
        }
    }

    /// Bytes of events that a packet has room for, a multiple of the word.
    fn events_bytes(&self) -> usize {
        (self.packet_bytes - MOST_HEAD) / WORD * WORD
    }
}

/// Ends a recording when it is dropped, and writes what is not written yet.
///
/// Events that come after that are not recorded.
#[must_use = "the recording ends when this is dropped"]
pub struct Guard {
    recorder: Arc<Recorder>,
    /// `None` for mapped files, which need no writer.
    output: Option<Written>,
    /// How long the end takes, where others decide about it.
    limit: Option<Arc<Limit>>,
}

/// The output and the thread that writes it, while the recording goes on.
struct Written {
    output: Arc<Mutex<Output>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Guard {
    /// Writes every event whose call has returned, including those of packets that are not full. No thread is
    /// held up.
    ///
    /// # Errors
    ///
    /// The first one since this was last asked for. `Unsupported` in a child that came of a fork: the recording stays
    /// with its parent.
    pub fn flush(&self) -> io::Result<()> {
        if self.recorder.is_of_parent() {
            return Err(of_parent());
        }
        if let Some(written) = &self.output {
            work(&self.recorder, &written.output, |pool, output| {
                flush(&self.recorder, pool, output);
            });
        }
        self.result()
    }

    /// Ends the recording.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::flush`].
    pub fn finish(mut self) -> io::Result<()> {
        self.end();
        self.result()
    }

    /// What has failed since this was last asked.
    fn result(&self) -> io::Result<()> {
        if self.recorder.is_of_parent() {
            return Err(of_parent());
        }
        match (&self.output, &self.recorder.store) {
            (Some(written), _) => match written.output.lock() {
                Ok(mut output) => output.result(),
                Err(_) => Err(panicked()),
            },
            (None, Store::Mapped(mapped)) => mapped.result(),
            _ => Ok(()),
        }
    }

    fn end(&mut self) {
        let recorder = &self.recorder;
        if recorder.is_of_parent() {
            // This process does not have the thread.
            let thread = self
                .output
                .as_mut()
                .and_then(|written| written.thread.take());
            return std::mem::forget(thread);
        }
        if let Store::Mapped(mapped) = &recorder.store
            && let lost @ 1.. = recorder.take_lost()
        {
            let writer = Writer::current(recorder.next_thread());
            mapped.report_lost(lost, writer, recorder.clock.now());
        }
        recorder.close();
        if let Some(limit) = &self.limit {
            // It counts for what the thread is doing, too.
            limit.begin();
        }
        if let Some(written) = &mut self.output
            && let Some(thread) = written.thread.take()
        {
            // After a panic, the sink no longer works.
            let _ = thread.join();
            work(recorder, &written.output, |pool, output| {
                flush(recorder, pool, output);
                for piece in pool.unreported(&recorder.clock, recorder.take_lost()) {
                    output.packet(&piece);
                }
                output.finish();
            });
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

/// The error for children of the process that records.
pub(crate) fn of_parent() -> io::Error {
    let message = "a fork has made this process, and the recording stays with its parent: begin another one after the fork";
    io::Error::new(io::ErrorKind::Unsupported, message)
}

fn panicked() -> io::Error {
    io::Error::other("the sink has panicked: what it did not write is lost")
}

/// Ends a recording whose sink panics, so that no thread waits for packets that are never written.
struct Closing<'a>(Option<&'a Recorder>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(recorder) = self.0 {
            recorder.close();
        }
    }
}

/// Lets a sink work: for one thread at a time, which records nothing meanwhile. `None` where it has panicked.
fn work<T>(
    recorder: &Recorder,
    output: &Mutex<Output>,
    mut act: impl FnMut(&Pool, &mut Output) -> T,
) -> Option<T> {
    let Store::Pool(pool) = &recorder.store else {
        return None;
    };
    let mut closing = Closing(Some(recorder));
    // Poisoned it is after a panic.
    let mut output = output.lock().ok()?;
    let done = silently(|| act(pool, &mut output));
    closing.0 = None;
    Some(done)
}

/// Writes packets as they become full, until the recording ends.
fn write(recorder: &Recorder, output: &Mutex<Output>, interval: Option<Duration>) {
    let Store::Pool(pool) = &recorder.store else {
        return;
    };
    let mut flushed = Instant::now();
    let mut idle = None;
    loop {
        let left = interval.map(|interval| interval.saturating_sub(flushed.elapsed()));
        let goes_on = pool.wait(left.into_iter().chain(idle).min());
        let worked = work(recorder, output, |pool, output| {
            if interval.is_some_and(|interval| flushed.elapsed() >= interval) {
                flush(recorder, pool, output);
                flushed = Instant::now();
            } else {
                drain(recorder, pool, output, pool.waiting());
            }
            goes_on.then(|| output.idle())
        });
        let Some(Some(wanted)) = worked else {
            return;
        };
        idle = wanted;
    }
}

/// Writes at most `packets` packets. The caller holds the lock of the output, so that they are in order.
fn drain(recorder: &Recorder, pool: &Pool, output: &mut Output, packets: usize) {
    for piece in std::iter::from_fn(|| pool.oldest()).take(packets) {
        if !packet(recorder, output, &piece) {
            let events = output.events(&piece, &recorder.classes.text());
            pool.discard(piece.stream, events);
        }
        pool.back(piece);
    }
}

/// Writes all packets, also those that are not full.
fn flush(recorder: &Recorder, pool: &Pool, output: &mut Output) {
    drain(recorder, pool, output, pool.cut());
}

/// Writes a packet, unless it has no events. Returns whether nothing of it is lost.
fn packet(recorder: &Recorder, output: &mut Output, piece: &Piece) -> bool {
    if piece.events() == 0 {
        return true;
    }
    // All classes of its events are there by now.
    let text = recorder.classes.text_unless(output.metadata_bytes());
    match text.map_or(Ok(()), |text| output.metadata(&text)) {
        Ok(()) => output.packet(piece),
        error => {
            output.note(error);
            false
        }
    }
}
