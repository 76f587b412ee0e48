//! Zstandard: frames, one after the other.
//!
//! Where frames end is found without decoding them, so several threads decode a file of several frames.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{cut, damaged};
use crate::spool::Spool;

/// What a frame begins with.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Maximum bytes of a frame that a thread keeps until those before it are written.
const AHEAD: usize = 16 << 20;

/// More threads are of no use: one alone writes.
const MOST_THREADS: usize = 8;

/// Bytes of a frame that are decoded at a time.
const STEP: usize = 1 << 20;

/// Decodes all frames. Returns what is lost if they are damaged.
pub(super) fn decode(bytes: &[u8], out: &mut Spool) -> io::Result<Option<String>> {
    let mut ahead = Frames { bytes, at: 0 };
    let several = ahead.by_ref().take(2).count() > 1;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let state = Mutex::new(State {
        frames: Frames { bytes, at: 0 },
        next: 0,
        turn: 0,
        out,
        damage: None,
        error: None,
        is_over: false,
    });
    let shared = Shared {
        bytes,
        state,
        turned: Condvar::new(),
    };
    if several && threads > 1 {
        std::thread::scope(|scope| {
            for _ in 0..threads.min(MOST_THREADS) {
                scope.spawn(|| work(&shared));
            }
        });
    } else {
        work(&shared);
    }
    let state = shared.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    match state.error {
        Some(error) => Err(error),
        None => Ok(state.damage),
    }
}

/// A frame of the file, or what is there in its place.
enum Frame {
    /// A frame of which the end is known.
    Whole(Header, Range<usize>),
    /// One that is cut off, or the blocks of which are wrong.
    Cut(Header, Range<usize>),
    /// No frame begins here.
    Nothing(usize),
}

/// What the header of a frame says.
#[derive(Clone, Copy)]
struct Header {
    /// Number of bytes of the content.
    content: Option<u64>,
    has_checksum: bool,
}

/// The frames of a file; after one that is not whole there is none.
struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        loop {
            let begin = self.at;
            let rest = &self.bytes[begin..];
            match rest.first_chunk::<8>() {
                _ if rest.is_empty() => return None,
                Some(&[0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d]) => {
                    let skipped = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok();
                    let end = skipped.and_then(|size| size.checked_add(begin + 8));
                    // One that is cut off has no content that could be lost.
                    self.at = end.unwrap_or(usize::MAX).min(self.bytes.len());
                    continue;
                }
                _ => {}
            }
            self.at = self.bytes.len();
            // What is cut off within the magic is a frame that is cut off.
            let magic = &MAGIC[..rest.len().min(4)];
            if !rest.starts_with(magic) {
                return Some(Frame::Nothing(begin));
            }
            let Some((header, size)) = header(rest) else {
                let unknown = Header {
                    content: None,
                    has_checksum: false,
                };
                return Some(Frame::Cut(unknown, begin..self.bytes.len()));
            };
            return Some(match end_of_blocks(rest, size, header.has_checksum) {
                Some(size) => {
                    self.at = begin + size;
                    Frame::Whole(header, begin..self.at)
                }
                None => Frame::Cut(header, begin..self.bytes.len()),
            });
        }
    }
}

/// The header of a frame, and its size.
fn header(frame: &[u8]) -> Option<(Header, usize)> {
    let descriptor = *frame.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    let window = usize::from(!is_single);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let at = 5 + window + dictionary;
    let little = |count: usize| {
        let bytes = frame.get(at..at + count)?;
        let mut number = [0; 8];
        number[..count].copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    };
    let (content, count) = match descriptor >> 6 {
        0 if is_single => (Some(little(1)?), 1),
        0 => (None, 0),
        1 => (Some(little(2)? + 256), 2),
        2 => (Some(little(4)?), 4),
        _ => (Some(little(8)?), 8),
    };
    let header = Header {
        content,
        has_checksum: descriptor & 4 != 0,
    };
    (frame.len() >= at + count).then_some((header, at + count))
}

/// Where a frame ends, found by the headers of its blocks.
fn end_of_blocks(frame: &[u8], mut at: usize, has_checksum: bool) -> Option<usize> {
    loop {
        let &[a, b, c] = frame.get(at..)?.first_chunk()?;
        let header = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let size = match header >> 1 & 3 {
            // A byte that is repeated.
            1 => 1,
            0 | 2 => header >> 3,
            _ => return None,
        };
        at = at.checked_add(3 + size)?;
        if header & 1 != 0 {
            break;
        }
    }
    at = at.checked_add(if has_checksum { 4 } else { 0 })?;
    (at <= frame.len()).then_some(at)
}

/// What the threads share: frames are taken in their order, and written in it.
struct Shared<'a> {
    bytes: &'a [u8],
    state: Mutex<State<'a>>,
    /// Signals that the turn has passed to another frame.
    turned: Condvar,
}

struct State<'a> {
    frames: Frames<'a>,
    /// The number of the frame that is taken next.
    next: u64,
    /// The number of the frame that is written.
    turn: u64,
    out: &'a mut Spool,
    damage: Option<String>,
    error: Option<io::Error>,
    /// Nothing more is written, since what comes next is damaged or there is an error.
    is_over: bool,
}

impl<'a> Shared<'a> {
    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The output of one frame: bytes wait in memory until all frames before it are written.
struct Turn<'a, 'b> {
    shared: &'a Shared<'b>,
    number: u64,
    waiting: Vec<u8>,
    length: u64,
}

impl<'b> Turn<'_, 'b> {
    /// Waits until it is the frame's turn, and writes what waits.
    fn flush(&mut self) -> MutexGuard<'_, State<'b>> {
        let mut state = self.shared.state();
        while state.turn != self.number && !state.is_over {
            let waited = self.shared.turned.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_over
            && let Err(error) = state.out.write_all(&self.waiting)
        {
            state.error = Some(error);
            state.is_over = true;
            self.shared.turned.notify_all();
        }
        self.waiting.clear();
        state
    }
}

impl Write for Turn<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.waiting.len() >= AHEAD && self.flush().is_over {
            return Err(io::ErrorKind::Other.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A frame ends, and it is the turn of the next one, even if the decoder panics.
impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if std::thread::panicking() {
            state.is_over = true;
        }
        state.turn += 1;
        drop(state);
        self.shared.turned.notify_all();
    }
}

/// Decodes frames until there are none.
fn work(shared: &Shared<'_>) {
    let mut decoder = FrameDecoder::new();
    loop {
        let mut state = shared.state();
        if state.is_over {
            return;
        }
        let Some(frame) = state.frames.next() else {
            return;
        };
        let number = state.next;
        state.next += 1;
        drop(state);
        let mut turn = Turn {
            shared,
            number,
            waiting: Vec::new(),
            length: 0,
        };
        let (header, range, is_cut) = match frame {
            Frame::Whole(header, range) => (header, range, false),
            Frame::Cut(header, range) => (header, range, true),
            Frame::Nothing(at) => {
                let count = shared.bytes.len() - at;
                let mut state = turn.flush();
                if !state.is_over {
                    state.damage.get_or_insert(format!(
                        "{count} bytes from byte {at} on are not Zstandard: they are ignored"
                    ));
                    state.is_over = true;
                }
                drop(state);
                return;
            }
        };
        let begin = range.start as u64;
        let mut input = &shared.bytes[range];
        let all = input.len();
        let outcome = decode_frame(&mut decoder, &mut input, header, &mut turn);
        let consumed = begin + (all - input.len()) as u64;
        let length = turn.length;
        let mut state = turn.flush();
        if state.is_over {
            return;
        }
        let decoded = state.out.length();
        let damage = match outcome {
            Outcome::Decoded if header.content.is_some_and(|content| content != length) => {
                state.is_over = true;
                Some(damaged(
                    begin,
                    decoded,
                    "a frame does not have the size that it says",
                ))
            }
            Outcome::Decoded => None,
            Outcome::WrongChecksum => Some(format!(
                "the compressed file is damaged: the checksum of the frame at byte {begin} is wrong; its \
                 content is read all the same"
            )),
            Outcome::Failed(why) => {
                state.is_over = true;
                Some(match is_cut {
                    true if input.len() < 1 << 17 => cut(shared.bytes.len() as u64, decoded),
                    _ => damaged(consumed, decoded, why),
                })
            }
        };
        if let Some(damage) = damage {
            state.damage.get_or_insert(damage);
        }
    }
}

enum Outcome {
    Decoded,
    WrongChecksum,
    Failed(String),
}

/// Decodes a frame.
fn decode_frame(
    decoder: &mut FrameDecoder,
    input: &mut &[u8],
    header: Header,
    out: &mut Turn<'_, '_>,
) -> Outcome {
    if let Err(error) = decoder.reset(&mut *input) {
        return Outcome::Failed(error.to_string());
    }
    let mut failed = None;
    while !decoder.is_finished() {
        let step = decoder.decode_blocks(&mut *input, BlockDecodingStrategy::UptoBytes(STEP));
        if let Err(error) = step {
            failed = Some(error.to_string());
            // What is decoded comes out when the frame ends: an empty last block, and a checksum.
            let end = [1, 0, 0, 0, 0, 0, 0];
            if decoder
                .decode_blocks(&end[..], BlockDecodingStrategy::All)
                .is_err()
            {
                break;
            }
        }
        if decoder.collect_to_writer(&mut *out).is_err() {
            // The reader does not need the rest.
            return Outcome::Decoded;
        }
    }
    if let Some(why) = failed {
        return Outcome::Failed(why);
    }
    let reported = decoder.get_checksum_from_data();
    match header.has_checksum && reported != decoder.get_calculated_checksum() {
        true => Outcome::WrongChecksum,
        false => Outcome::Decoded,
    }
}
