//! The head of a packet: its header and context.

use crate::encode::{WORD, aligned};

/// Bytes that a head has at most.
pub(crate) const MOST_HEAD: usize = THREAD_NAME + MOST_NAME + 1;

/// Where fields are of which the values change while a packet grows.
pub(crate) const END: usize = 40;
pub(crate) const CONTENT_SIZE: usize = 48;
pub(crate) const PACKET_SIZE: usize = 56;
pub(crate) const DISCARDED: usize = 64;

const THREAD_NAME: usize = 88;

/// Bytes of a thread's name that are kept, so that a head has a bound. A multiple of the word less
/// the zero behind it.
const MOST_NAME: usize = 63;

const MAGIC: u32 = 0xC1FC_1FC1;

/// The thread that writes a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Its number, by which the system knows it.
    pub(crate) id: u64,
    name: [u8; MOST_NAME],
    name_length: usize,
}

impl Writer {
    /// The calling thread; `number` is its number if the system gives none.
    pub(crate) fn current(number: u64) -> Self {
        let id = kymo_io::thread_id().unwrap_or(number);
        let thread = std::thread::current();
        // An empty text is shown wrongly by programs that people have.
        let name = thread.name().filter(|name| !name.is_empty());
        Self::new(id, name.unwrap_or("unnamed"))
    }

    fn new(id: u64, name: &str) -> Self {
        let name = name.split('\0').next().unwrap_or_default();
        let length = name.floor_char_boundary(MOST_NAME);
        let mut bytes = [0; MOST_NAME];
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self {
            id,
            name: bytes,
            name_length: length,
        }
    }
}

/// What a packet says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) uuid: [u8; 16],
    pub(crate) stream: u32,
    /// Ticks of the clock at its beginning and end.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Bytes of its events, with what lies between them, or none.
    pub(crate) events: usize,
    /// Bytes of it in all; as few as can be when this is `None`.
    pub(crate) size: Option<usize>,
    /// Events that its stream has lost until its end.
    pub(crate) discarded: u64,
    /// Its number in its stream.
    pub(crate) sequence: u64,
    pub(crate) writer: &'a Writer,
}

/// Bytes of a head, without allocation.
pub(crate) struct HeadBytes {
    bytes: [u8; aligned_most()],
    /// Where the events begin.
    pub(crate) length: usize,
    /// Bytes of the packet in all.
    pub(crate) size: usize,
}

const fn aligned_most() -> usize {
    MOST_HEAD.next_multiple_of(WORD)
}

impl HeadBytes {
    /// The head, with zeros up to where the events begin.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Head<'_> {
    /// Bytes of the head without the zeros behind it: all of a packet that has no events.
    pub(crate) fn content(&self) -> usize {
        THREAD_NAME + self.writer.name_length + 1
    }

    /// The head as it is in a packet.
    pub(crate) fn bytes(&self) -> HeadBytes {
        let length = aligned(self.content());
        let content = match self.events {
            0 => self.content(),
            events => length + events,
        };
        let size = self.size.unwrap_or(content.next_multiple_of(8));
        let mut head = HeadBytes {
            bytes: [0; aligned_most()],
            length,
            size,
        };
        let bits = |bytes: usize| 8 * bytes as u64;
        let mut put =
            |at: usize, bytes: &[u8]| head.bytes[at..][..bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_le_bytes());
        put(4, &self.uuid);
        // Behind the identity is the number of the only class of streams, 0.
        put(24, &u64::from(self.stream).to_le_bytes());
        put(32, &self.begin.to_le_bytes());
        put(END, &self.end.to_le_bytes());
        put(CONTENT_SIZE, &bits(content).to_le_bytes());
        put(PACKET_SIZE, &bits(size).to_le_bytes());
        put(DISCARDED, &self.discarded.to_le_bytes());
        put(72, &self.sequence.to_le_bytes());
        put(80, &self.writer.id.to_le_bytes());
        put(THREAD_NAME, &self.writer.name[..self.writer.name_length]);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(writer: &Writer, events: usize) -> Head<'_> {
        Head {
            uuid: [7; 16],
            stream: 3,
            begin: 1,
            end: 2,
            events,
            size: None,
            discarded: 4,
            sequence: 5,
            writer,
        }
    }

    #[test]
    fn the_longest_head_has_room() {
        let long = Writer::new(9, &"ß".repeat(100));
        assert_eq!(long.name_length, 62);
        let bytes = head(&long, 0).bytes();
        assert_eq!((bytes.length, bytes.size), (152, 152));
        let longest = Writer::new(9, &"x".repeat(100));
        let bytes = head(&longest, 5).bytes();
        assert_eq!((bytes.length, bytes.size), (152, 160));
        assert_eq!(
            bytes.bytes()[CONTENT_SIZE..][..8],
            (157u64 * 8).to_le_bytes()
        );
    }

    #[test]
    fn names_end_before_a_zero() {
        assert_eq!(Writer::new(1, "a\0b"), Writer::new(1, "a"));
        assert_eq!(head(&Writer::new(1, "main"), 0).content(), 93);
    }
}
