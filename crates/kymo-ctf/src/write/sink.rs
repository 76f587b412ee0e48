//! Where packets go.

use std::io::{self, Write};

/// What is known of a packet that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInfo {
    /// Number of its stream class.
    pub stream_class_id: u64,
    /// Number of its stream, where it has one.
    pub stream_id: Option<u64>,
    /// Size in bits, with the padding at its end.
    pub total_bits: u64,
    /// Size in bits up to the end of its last event.
    pub content_bits: u64,
    /// Ticks at its beginning.
    pub begin: Option<u64>,
    /// Ticks at its end.
    pub end: Option<u64>,
    /// Events discarded so far, as far as its counter counts.
    pub discarded: u64,
    /// Its number in the stream.
    pub sequence: u64,
    /// How many events it has.
    pub events: u64,
}

/// Takes packets, one behind the other.
pub trait PacketSink {
    /// Takes a packet.
    ///
    /// # Errors
    ///
    /// Those of writing it. It is then lost, and the stream ends.
    fn packet(&mut self, bytes: &[u8], info: &PacketInfo) -> io::Result<()>;
}

impl PacketSink for Vec<u8> {
    fn packet(&mut self, bytes: &[u8], _info: &PacketInfo) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<S: PacketSink + ?Sized> PacketSink for &mut S {
    fn packet(&mut self, bytes: &[u8], info: &PacketInfo) -> io::Result<()> {
        (**self).packet(bytes, info)
    }
}

/// A data stream file, and the index beside it where there is one.
#[derive(Debug)]
pub struct StreamSink<W, I = W> {
    data: W,
    index: Option<I>,
    /// Bytes so far.
    offset: u64,
}

impl<W: Write, I: Write> StreamSink<W, I> {
    /// A stream that is written to `data`, with its packets listed in `index`, as LTTng does in files
    /// of version 1.1.
    ///
    /// # Errors
    ///
    /// Those of writing the header of the index.
    pub fn new(data: W, mut index: Option<I>) -> io::Result<Self> {
        if let Some(index) = &mut index {
            index.write_all(&super::index::header())?;
        }
        Ok(Self {
            data,
            index,
            offset: 0,
        })
    }

    /// Hands on what is not yet written.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.data.flush()?;
        self.index.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl<W: Write, I: Write> PacketSink for StreamSink<W, I> {
    fn packet(&mut self, bytes: &[u8], info: &PacketInfo) -> io::Result<()> {
        self.data.write_all(bytes)?;
        if let Some(index) = &mut self.index {
            index.write_all(&super::index::record(self.offset, info))?;
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
