//! Where packets go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_ctf::decode::Decoder;
use kymo_ctf::metadata;
use kymo_ctf::trace::METADATA_NAME;
use kymo_io::{Replace, is_beside, replace};
use kymo_model::Cursor;

use crate::packet::{Head, MOST_HEAD};
use crate::pool::Piece;
use crate::spare::SPARE;

/// Where the packets of a recording go.
///
/// What the thread that calls a sink emits through `tracing` is counted, but not recorded: a sink would
/// wait for itself. A sink that waits for another thread, which records with [`WhenFull::Wait`](crate::WhenFull::Wait) and so
/// may wait for the sink, holds it up as long as [`Options::patience`](crate::Options::patience) says.
///
/// A sink that panics ends the recording, and is not called again.
pub trait Sink: Send {
    /// Takes the metadata of the trace: all of it, each time that there are new classes of events. It
    /// comes before the packets that need it.
    ///
    /// # Errors
    ///
    /// Those of writing. The packet that needs it is then lost, as one that cannot be written itself.
    fn metadata(&mut self, text: &str) -> io::Result<()>;

    /// Takes a packet of a stream. The packets of a stream come in the order of their numbers.
    ///
    /// # Errors
    ///
    /// Those of writing. The packet is lost: the stream's next packet reports its events as discarded, and its number
    /// is missing.
    fn packet(&mut self, stream: u32, packet: &[u8]) -> io::Result<()>;

    /// Is called when there is nothing to write. Returns after how long it wants to be called again, if nothing comes
    /// before; never, unless it is made to.
    ///
    /// # Errors
    ///
    /// Those of what it does.
    fn idle(&mut self) -> io::Result<Option<Duration>> {
        Ok(None)
    }

    /// The recording has ended: all packets have come.
    ///
    /// # Errors
    ///
    /// Those of writing what is left.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A directory that is a trace: its metadata, and a file for each stream.
#[derive(Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    /// The file of each stream, and how long it is.
    streams: Vec<Option<(File, u64)>>,
}

impl Files {
    /// A directory that is made now, or is empty.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is something in it; those of the system.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        create_directory(directory)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            streams: Vec::new(),
        })
    }
}

impl Sink for Files {
    fn metadata(&mut self, text: &str) -> io::Result<()> {
        write_metadata(&self.directory, text)
    }

    fn packet(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
        let index = stream as usize;
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, || None);
        }
        let (file, length) = match &mut self.streams[index] {
            Some(file) => file,
            none => {
                let path = self.directory.join(format!("stream-{stream}"));
                let file = OpenOptions::new()
                    .append(true)
                    .create_new(true)
                    .open(path)?;
                none.insert((file, 0))
            }
        };
        match file.write_all(packet) {
            Ok(()) => {
                *length += packet.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A part of a packet would make all that follows unreadable. The error that is reported is the
                // first error.
                let _ = file.set_len(*length);
                Err(error)
            }
        }
    }
}

/// Returns the number of events of a packet, or `None` if it is not a packet of this metadata.
fn events(packet: &[u8], text: &str) -> Option<usize> {
    let metadata = metadata::parse(text.as_bytes(), METADATA_NAME).ok()?;
    let decoder = Decoder::new(&metadata.class).ok()?;
    let head = decoder.packet_head(packet).ok()?;
    let mut cursor = decoder.cursor(packet, &head, head.content_bits?, head.begin?.0);
    let mut count = 0;
    while cursor.next_event().ok()?.is_some() {
        count += 1;
    }
    Some(count)
}

/// Makes a directory for a trace. What a program that was killed has left of new files in it does not count, and is removed: a
/// recording that goes on has metadata.
pub(crate) fn create_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut left = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let bytes = name.as_encoded_bytes();
        let is_ours = [SPARE, METADATA_NAME].iter().any(|name| {
            let rest = bytes.strip_prefix(b".");
            rest.is_some_and(|rest| rest.starts_with(name.as_bytes()))
        });
        if !is_ours || !is_beside(&name) {
            let message = format!(
                "{} is not empty: a recording needs a directory of its own",
                directory.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        left.push(directory.join(name));
    }
    left.iter().try_for_each(std::fs::remove_file)
}

/// Writes metadata as a whole: whoever reads it finds the old or the new one.
pub(crate) fn write_metadata(directory: &Path, text: &str) -> io::Result<()> {
    let how = Replace {
        // It is the program that may be killed, not the machine.
        sync: false,
        ..Replace::NEW
    };
    replace(&directory.join(METADATA_NAME), how, |file| {
        file.write_all(text.as_bytes())
    })
}

/// Makes packets of pieces.
#[derive(Debug)]
pub(crate) struct Packer {
    uuid: [u8; 16],
    bytes: Vec<u8>,
}

impl Packer {
    pub(crate) fn new(uuid: [u8; 16], most_events: usize) -> Self {
        Self {
            uuid,
            bytes: Vec::with_capacity(MOST_HEAD + most_events + 16),
        }
    }

    /// The packet of a piece; `None` where it is there no more.
    pub(crate) fn packet(&mut self, piece: &Piece) -> Option<&[u8]> {
        let head = Head {
            uuid: self.uuid,
            stream: piece.stream,
            begin: piece.begin,
            end: piece.end,
            events: piece.events(),
            size: None,
            discarded: piece.discarded,
            sequence: piece.sequence,
            writer: &piece.writer,
        };
        let head = head.bytes();
        self.bytes.clear();
        self.bytes.extend(head.bytes());
        if !piece.append(&mut self.bytes) {
            return None;
        }
        self.bytes.resize(head.size, 0);
        Some(&self.bytes)
    }
}

/// A sink, and the state of what was written to it.
pub(crate) struct Output {
    sink: Box<dyn Sink>,
    packer: Packer,
    /// Bytes of the metadata that it has.
    metadata: usize,
    /// Of which streams it has packets.
    has_packets: Vec<bool>,
    /// The first error that was not reported yet.
    error: Option<io::Error>,
}

impl Output {
    pub(crate) fn new(sink: Box<dyn Sink>, packer: Packer) -> Self {
        Self {
            sink,
            packer,
            metadata: 0,
            has_packets: Vec::new(),
            error: None,
        }
    }

    /// Bytes of the metadata that the sink has.
    pub(crate) fn metadata_bytes(&self) -> usize {
        self.metadata
    }

    /// Writes metadata.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub(crate) fn metadata(&mut self, text: &str) -> io::Result<()> {
        self.sink.metadata(text)?;
        self.metadata = text.len();
        Ok(())
    }

    /// Writes a packet. Returns whether the sink has taken it; [`Output::result`] reports errors.
    pub(crate) fn packet(&mut self, piece: &Piece) -> bool {
        let index = piece.stream as usize;
        if self.has_packets.len() <= index {
            self.has_packets.resize(index + 1, false);
        }
        let lead = piece.lead(!self.has_packets[index]);
        for piece in lead.iter().chain([piece]) {
            let Some(packet) = self.packer.packet(piece) else {
                continue;
            };
            if let Err(error) = self.sink.packet(piece.stream, packet) {
                self.note(Err(error));
                return false;
            }
            self.has_packets[index] = true;
        }
        true
    }

    /// Returns the number of events of a piece that this metadata describes: they are counted only when they are lost.
    pub(crate) fn events(&mut self, piece: &Piece, metadata: &str) -> usize {
        let packet = self.packer.packet(piece);
        packet.map_or(0, |packet| events(packet, metadata).unwrap_or(0))
    }

    /// Lets the sink do what it has to do beside writing. Returns when it wants to be called again.
    pub(crate) fn idle(&mut self) -> Option<Duration> {
        self.sink.idle().unwrap_or_else(|error| {
            self.note(Err(error));
            Some(Duration::from_secs(1))
        })
    }

    /// Notifies the sink that nothing more comes.
    pub(crate) fn finish(&mut self) {
        let result = self.sink.finish();
        self.note(result);
    }

    /// Keeps an error until it is asked for.
    pub(crate) fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// What has failed since this was last asked.
    pub(crate) fn result(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}
