//! Stream files that are a readable trace at any instant, also after the program was killed.
//!
//! A stream is written to mapped files, one after the other, each of a fixed size. What is stored in a
//! mapping is in the file at once and stays there whatever becomes of the program. So everything
//! depends on the order of stores:
//!
//! * A file is made under another name ([`spare`](crate::spare)), and gets the head of a packet that has no events and is as
//!   large as the file. Then it is renamed: it is never seen without its packet, or shorter.
//! * An event is written behind the content of the last packet, where it is padding. Then the packet's end
//!   is moved to its time (the high half first, so that it is briefly too late and never too
//!   early), then the size of the content is, in one store: with it, the event is there.
//! * The next packet of a file begins within the padding of the last one: its head is written with the
//!   rest of the file as its size, and then the last one's size is cut, in one store. Space that is not used yet
//!   thus always belongs to the last packet, and no file ends with zeros.
//! * The first packet of a stream has no events, begins before the second one, and says that no event was
//!   discarded: readers compute the number since then from one packet to the next.
//! * A class of events is in the metadata, which is replaced as a whole, before its first event is written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_io::SharedWords;

use crate::encode::{WORD, aligned, store, store_bytes};
use crate::packet::{self, Head, MOST_HEAD, Writer};
use crate::sink;
use crate::spare::Spares;

/// Nanoseconds after a file could not be made before it is tried again: each try takes its time, on a disk that may be full.
const PAUSE: u64 = 200_000_000;

/// A directory with mapped stream files.
#[derive(Debug)]
pub(crate) struct Mapped {
    directory: PathBuf,
    uuid: [u8; 16],
    /// Bytes of a file, and of a packet at most.
    file_bytes: usize,
    packet_bytes: usize,
    spares: Spares,
    streams: Mutex<Streams>,
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Streams {
    /// How many there are.
    count: u32,
    /// Those that no thread writes to.
    free: Vec<Stream>,
    /// The first error that was not reported yet.
    error: Option<io::Error>,
}

/// What one thread after another writes to.
#[derive(Debug)]
pub(crate) struct Stream {
    number: u32,
    pub(crate) discarded: Arc<AtomicUsize>,
    /// How many files it has.
    files: u32,
    sequence: u64,
    writer: Writer,
    packet: Option<Packet>,
    /// Whether it has asked for the file after that.
    has_asked: bool,
    /// The number of discarded events that its file states.
    reported: usize,
    /// Before this tick no file is made, since one could not be.
    again: u64,
}

/// The last packet of a stream, to which events are added. Positions are bytes of its file.
#[derive(Debug)]
struct Packet {
    words: Arc<SharedWords>,
    begin: usize,
    /// Where its content ends.
    at: usize,
    /// Ticks at its end.
    end: u64,
}

impl Packet {
    fn store(&self, field: usize, value: u64) {
        let words = self.words.get((self.begin + field) / WORD..);
        if let Some(words) = words.and_then(<[_]>::first_chunk) {
            store(words, value);
        }
    }

    /// Stores the low half of a field of which the high half stays, and with it all before.
    #[inline]
    fn publish(&self, field: usize, value: u32) {
        if let Some(word) = self.words.get((self.begin + field) / WORD) {
            word.store(value.to_le(), Release);
        }
    }
}

impl Stream {
    /// Makes an event known that ends before byte `end`.
    #[inline]
    pub(crate) fn commit(&mut self, end: usize, tick: u64) {
        let Some(packet) = &mut self.packet else {
            return;
        };
        if tick >> 32 != packet.end >> 32 {
            packet.publish(packet::END + WORD, (tick >> 32) as u32);
        }
        packet.publish(packet::END, tick as u32);
        packet.end = tick;
        packet.at = end;
        // Sizes are in bits; a file has less than 2^29 bytes.
        packet.publish(packet::CONTENT_SIZE, (8 * (end - packet.begin)) as u32);
        if self.discarded.load(Relaxed) != self.reported {
            self.report_discarded();
        }
    }

    /// Records in the file how many events were discarded.
    #[cold]
    pub(crate) fn report_discarded(&mut self) {
        if let Some(packet) = &self.packet {
            self.reported = self.discarded.load(Relaxed);
            packet.store(packet::DISCARDED, self.reported as u64);
        }
    }

    /// The words of its file.
    pub(crate) fn words(&self) -> Option<Arc<SharedWords>> {
        self.packet.as_ref().map(|packet| Arc::clone(&packet.words))
    }
}

impl Mapped {
    /// A directory that is made now, or is empty.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is something in it; those of the system.
    pub(crate) fn create(
        directory: &Path,
        uuid: [u8; 16],
        file_bytes: usize,
        packet_bytes: usize,
    ) -> io::Result<Self> {
        sink::create_directory(directory)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            uuid,
            file_bytes,
            packet_bytes,
            spares: Spares::start(directory, file_bytes)?,
            streams: Mutex::default(),
            is_closed: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the metadata.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn metadata(&self, text: &str) -> io::Result<()> {
        sink::write_metadata(&self.directory, text).map_err(|error| self.note(error))
    }

    /// Gives a thread a stream.
    pub(crate) fn enter(&self, writer: Writer) -> Stream {
        let mut streams = self.lock();
        if let Some(mut stream) = streams.free.pop() {
            stream.writer = writer;
            return stream;
        }
        streams.count += 1;
        Stream {
            number: streams.count - 1,
            discarded: Arc::default(),
            files: 0,
            sequence: 0,
            writer,
            packet: None,
            has_asked: false,
            reported: 0,
            again: 0,
        }
    }

    /// Takes a thread's stream back.
    pub(crate) fn leave(&self, mut stream: Stream) {
        stream.report_discarded();
        self.lock().free.push(stream);
    }

    /// Reports events that were lost where no thread could count them, in a packet of its own.
    pub(crate) fn report_lost(&self, lost: usize, writer: Writer, tick: u64) {
        let mut stream = self.enter(writer);
        // What was lost before a packet begins counts as lost before its end.
        let (before, behind) = match &stream.packet {
            None => (lost, 0),
            Some(_) => (0, lost),
        };
        stream.discarded.fetch_add(before, Relaxed);
        self.next(&mut stream, tick);
        stream.discarded.fetch_add(behind, Relaxed);
        self.leave(stream);
    }

    /// Begins a packet for events from a tick on. Returns where they begin in the file, and where they
    /// must end; `None` if there is no room.
    pub(crate) fn next(&self, stream: &mut Stream, tick: u64) -> Option<(usize, usize)> {
        if self.is_closed.load(Relaxed) {
            return None;
        }
        stream.report_discarded();
        if stream.packet.is_none() {
            let lost = stream.discarded.swap(0, Relaxed);
            // Since when they may have been lost is not known. No two packets begin at the same time:
            // babeltrace2 before 2.0.5 takes them for one, and refuses the stream.
            let begin = if lost > 0 { 0 } else { tick.saturating_sub(1) };
            let begun = self.begin(stream, begin, tick);
            stream.discarded.fetch_add(lost, Relaxed);
            begun?;
        }
        let begin = self.begin(stream, tick, tick)?;
        // The last packets of a file take longer to fill than the next file takes to be made.
        if !stream.has_asked && 2 * (begin + self.packet_bytes) > self.file_bytes {
            stream.has_asked = true;
            self.spares.ask();
        }
        // As much as any packet has room for, whatever its thread is called.
        Some((begin, begin + self.packet_bytes - aligned(MOST_HEAD)))
    }

    /// Begins a packet at a tick, in the file of the last one or in the next file.
    fn begin(&self, stream: &mut Stream, tick: u64, now: u64) -> Option<usize> {
        let room = stream.packet.as_ref().and_then(|packet| {
            let begin = packet.at.next_multiple_of(8);
            let room = self.file_bytes.checked_sub(begin)?;
            // What fits into an empty packet must fit into each.
            (room >= self.packet_bytes).then_some(begin)
        });
        let begin = match room {
            Some(begin) => self.split(stream, begin, tick),
            None if now < stream.again => return None,
            None => match self.file(stream, tick) {
                Ok(begin) => begin,
                Err(error) => {
                    stream.again = now + PAUSE;
                    self.note(error);
                    return None;
                }
            },
        };
        stream.sequence += 1;
        Some(begin)
    }

    /// The head of a stream's next packet.
    fn head<'a>(&self, stream: &'a Stream, size: usize, tick: u64) -> Head<'a> {
        Head {
            uuid: self.uuid,
            stream: stream.number,
            begin: tick,
            end: tick,
            events: 0,
            size: Some(size),
            discarded: stream.discarded.load(Relaxed) as u64,
            sequence: stream.sequence,
            writer: &stream.writer,
        }
    }

    /// Begins a packet in the padding of the last one.
    fn split(&self, stream: &mut Stream, begin: usize, tick: u64) -> usize {
        let head = self.head(stream, self.file_bytes - begin, tick);
        let (head, content) = (head.bytes(), head.content());
        if let Some(packet) = &mut stream.packet {
            store_bytes(&packet.words, begin, head.bytes());
            packet.publish(packet::PACKET_SIZE, (8 * (begin - packet.begin)) as u32);
            packet.begin = begin;
            packet.at = begin + content;
            packet.end = tick;
        }
        begin + head.length
    }

    /// Begins a packet in a file of its own.
    fn file(&self, stream: &mut Stream, tick: u64) -> io::Result<usize> {
        let spare = self.spares.take(std::mem::take(&mut stream.has_asked))?;
        let head = self.head(stream, self.file_bytes, tick);
        let (head, content) = (head.bytes(), head.content());
        store_bytes(spare.words(), 0, head.bytes());
        let name = format!("stream-{}.{:06}", stream.number, stream.files);
        let words = spare.place(&self.directory.join(name))?;
        stream.files += 1;
        let packet = Packet {
            words,
            begin: 0,
            at: content,
            end: tick,
        };
        if let Some(old) = stream.packet.replace(packet) {
            self.spares.release(old.words);
        }
        Ok(aligned(head.length))
    }

    fn note(&self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.lock().error.get_or_insert(error);
        kind.into()
    }

    /// What has failed since this was last asked.
    pub(crate) fn result(&self) -> io::Result<()> {
        self.lock().error.take().map_or(Ok(()), Err)
    }

    /// Ends the recording: no other packet is begun.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
        self.spares.close();
    }
}
