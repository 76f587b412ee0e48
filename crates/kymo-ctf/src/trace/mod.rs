//! Opening and reading a trace: its files, packets, streams.
//!
//! A trace is one or more [directories](Directory) with the same identity: a session that is
//! rotated leaves one for each rotation. Opening finds the packets of all data stream files,
//! by LTTng's index where there is a right one, else by what each packet says of its own size,
//! and puts them into streams; no event is decoded for that, unless the clock of a packet is
//! only known from the packet before it.
//!
//! Damage does not prevent opening: [`Recording::faults`] reports it, and what can be read
//! is read.

mod compare;
mod cursor;
mod index;
mod input;
mod known;
mod losses;
mod packet;
mod quirks;
mod recording;
mod refresh;
pub(crate) mod report;
mod scan;
mod sections;
mod sorted;
mod streams;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::Bytes;
use kymo_model::{
    Chunk, Cursor, Drift, Event, Fault, FaultCode, FaultReport, Nothing, Recording, StreamInfo,
};
use kymo_time::Clock;

pub use self::cursor::ChunkCursor;
pub use self::input::{Directory, METADATA_NAME, OpenError, StreamFile};
pub use self::known::{KnownPackets, PacketSource};
pub use self::packet::Packet;
pub use self::sections::Section;

use self::packet::Reader;
use self::quirks::Quirks;
use self::refresh::Watched;
use self::scan::Scanner;
use self::streams::{Assembly, Stream};
use crate::class::{EnvironmentValue, StreamClass, TraceClass};
use crate::decode::{Decoder, PacketHead};
use crate::metadata::Metadata;
use crate::secure::Key;

/// How a trace is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What encrypted packets are opened with (RFC v1.1): for each packet the first one that fits.
    pub keys: Vec<Key>,
    /// Compares what an index says of each packet with the packet itself, so that damage is reported that
    /// the index hides. Opening then looks at all packets; without, at those that are read.
    pub compares_indexes: bool,
    /// Takes metadata of CTF 2 that ends within a fragment, or has a bad one at its end, for what
    /// it is without that, which is a fault; without, it is an error.
    pub allows_cut_metadata: bool,
    /// Puts the packets of a stream in the order of time where a file does not have them so, which
    /// is a fault. Those that agree with no place are left out, a fault each. Without, packets of one
    /// file stay in their order.
    pub sorts_packets: bool,
}

/// A CTF trace that is open for reading.
///
/// ```
/// use kymo_ctf::trace::Trace;
/// use kymo_model::{Cursor as _, Recording as _};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rfc-small");
///
/// let trace = Trace::open(&[path.into()], &Default::default())?;
/// let chunk = trace.chunks(0).next().expect("the first stream has a packet");
/// let mut cursor = trace.cursor(&chunk);
/// assert!(cursor.next_event().is_ok_and(|event| event.is_some()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Its files are mapped. Beside them an open trace takes memory for its classes, for its
/// streams, and for each packet: some 15 bytes where packets are as tracers write them, whatever
/// their size, and never more than 115. Where streams of a section count together (RFC v1.1),
/// or its packets are not in the order of time, each packet before which something was lost takes
/// 40 more. Opening takes no more than that,
/// except while packets of one stream are put in order, or those of a section counted through: then
/// twice that and some 100 bytes a packet.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    name: String,
    /// Apart, since it is large, and traces are moved and kept beside smaller recordings.
    metadata: Box<Metadata>,
    metadata_path: PathBuf,
    metadata_files: Vec<(PathBuf, Bytes)>,
    /// The clocks of the classes before they were shifted, and by how much.
    unshifted: Vec<Arc<Clock>>,
    shift_nanos: i128,
    /// How the clocks are corrected, before they are shifted.
    drift: Option<Drift>,
    decoder: Decoder,
    files: Vec<StreamFile>,
    /// Of all files.
    bytes: u64,
    infos: Vec<StreamInfo>,
    streams: Vec<Stream>,
    quirks: Quirks,
    keys: Vec<Key>,
    watched: Watched,
    /// What its packets were found in, if they can be kept and are not yet.
    packet_source: Option<PacketSource>,
    /// For each stream class, whether each field of its packets only matters to readers.
    bookkeeping: Vec<Vec<bool>>,
    faults: Vec<FaultReport>,
    notes: Vec<String>,
}

impl Trace {
    /// Opens the directories that together are one trace.
    ///
    /// # Errors
    ///
    /// If there are no directories, or one of them cannot be [opened](Directory::open), or kymo
    /// cannot decode what the metadata describes.
    pub fn open(paths: &[PathBuf], options: &Options) -> Result<Self, OpenError> {
        let directories = paths
            .iter()
            .map(|path| Directory::open_with(path, options))
            .collect::<Result<_, _>>()?;
        Self::new(directories, options)
    }

    /// Makes a trace of directories that are open already. The metadata that describes most
    /// classes is used for all directories.
    ///
    /// # Errors
    ///
    /// If there are no directories, or kymo cannot decode what the metadata describes.
    pub fn new(directories: Vec<Directory>, options: &Options) -> Result<Self, OpenError> {
        Self::new_with_packets(directories, options, None)
    }

    /// The same if its packets may be known: then `known` returns the [table](Self::packet_table) of a source, and
    /// what is not the table of these files is as good as none.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn new_with_packets(
        mut directories: Vec<Directory>,
        options: &Options,
        known: Option<KnownPackets<'_>>,
    ) -> Result<Self, OpenError> {
        directories.sort_by(|a, b| a.path.cmp(&b.path));
        directories.dedup_by(|a, b| a.path == b.path);
        let path = common_path(&directories);
        let mut watched = Watched::new(&directories, options);
        let mut best: Option<(usize, usize, Metadata)> = None;
        let mut metadata_files = Vec::new();
        let mut files = Vec::new();
        let mut faults = Vec::new();
        for directory in directories {
            let count = directory.class_count();
            files.extend(directory.files);
            faults.extend(directory.faults);
            if best.as_ref().is_none_or(|&(most, ..)| most < count) {
                best = Some((count, metadata_files.len(), directory.metadata));
            }
            metadata_files.push(directory.metadata_file);
        }
        let Some((_, described_by, mut metadata)) = best else {
            return Err(OpenError::Unreadable {
                path,
                error: std::io::Error::new(
                    std::io::ErrorKind::NotFound,
                    "no directory of a trace is given",
                ),
            });
        };
        let metadata_path = metadata_files[described_by].0.clone();
        if metadata.class.streams.is_empty() {
            // Packets of nothing but a header still are packets.
            metadata.class.streams.push(StreamClass::default());
        }
        sections::assign(&mut files, &metadata.class, &mut faults);
        watched.add_files(&files);
        let class = &metadata.class;
        let decoder = Decoder::new(class).map_err(|error| OpenError::Classes {
            path: metadata_path.clone(),
            error,
        })?;

        let quirks = Quirks::of(class);
        let bytes = files.iter().map(|file| file.bytes.len() as u64).sum();
        let mut notes = Vec::new();
        let known = known.filter(|_| known::can_keep(class.dialect));
        let source = known.and_then(|_| PacketSource::new(&watched, &files, options));
        let table = known.zip(source.as_ref());
        let table = table.and_then(|(known, source)| known(source));
        let table = table.and_then(|table| known::streams(&table, class, &files));
        let (streams, packet_source) = match table {
            Some(streams) => {
                for stream in &streams {
                    stream
                        .packets
                        .rows(0)
                        .for_each(|row| watched.found(&row.packet));
                }
                (streams, None)
            }
            None => {
                let faults_before = faults.len();
                let mut scanner = Scanner {
                    class,
                    decoder: &decoder,
                    faults: &mut faults,
                    notes: &mut notes,
                    session_id: metadata.session_id,
                    compares: options.compares_indexes,
                };
                let reader = Reader {
                    class,
                    decoder: &decoder,
                    files: &files,
                    keys: &options.keys,
                    bytes,
                };
                let mut assembly = Assembly::new(reader, quirks, options.sorts_packets);
                let numbered = files.iter().enumerate();
                let indexed = numbered.map(|(number, file)| {
                    scanner.file(number as u32, file, &mut |found| {
                        watched.found(&found.packet);
                        assembly.add(found);
                    })
                });
                let indexed: Vec<bool> = indexed.collect();
                let streams = assembly.streams(&mut faults);
                let mut is_plain = faults.len() == faults_before && notes.is_empty();
                for (file, is_right) in files.iter_mut().zip(indexed) {
                    let dropped = file.index.take_if(|_| !is_right);
                    is_plain &= dropped.is_none();
                }
                (streams, source.filter(|_| is_plain))
            }
        };
        let infos = infos(&streams, class, &decoder, &files, 0);
        let bookkeeping = bookkeeping(class, &decoder);
        let name = display_name(class, None);
        Ok(Self {
            path,
            name,
            unshifted: metadata.class.clocks.clone(),
            shift_nanos: 0,
            drift: None,
            metadata: Box::new(metadata),
            metadata_path,
            metadata_files,
            decoder,
            files,
            bytes,
            infos,
            streams,
            quirks,
            keys: options.keys.clone(),
            watched,
            packet_source,
            bookkeeping,
            faults,
            notes,
        })
    }

    /// Sets where the trace was found, the second part of its [name](Recording::name) after that
    /// of the host: its path from the path that was searched.
    pub fn set_place(&mut self, place: &str) {
        self.name = display_name(&self.metadata.class, Some(place));
    }

    /// Sets the path that the trace is said to be at, where it was read from elsewhere than its files are.
    pub fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Sets the paths by which streams are called, those for which `rename` has another one.
    pub fn rename_streams(&mut self, rename: impl Fn(&Path) -> Option<PathBuf>) {
        for info in &mut self.infos {
            if let Some(path) = rename(Path::new(&*info.name)) {
                info.name = path.display().to_string().into();
            }
        }
    }

    /// Everything the metadata says.
    pub fn class(&self) -> &TraceClass {
        &self.metadata.class
    }

    /// The metadata: its text, how it was packed, what is odd in it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The number of the session that packets of RFC v1.1 belong to: that of the metadata's packets, or else
    /// that of the first packet. `None` in other dialects, and if there is no packet.
    pub fn session_id(&self) -> Option<u32> {
        let first = || {
            let mut streams = 0..self.streams.len();
            streams.find_map(|stream| self.packet(stream, self.streams[stream].first))
        };
        let of_packets = || self.packet_session(&first()?);
        self.metadata.session_id.or_else(of_packets)
    }

    /// The number of the session that a packet of RFC v1.1 belongs to; `None` in other dialects.
    pub fn packet_session(&self, packet: &Packet) -> Option<u32> {
        let header = sections::packet_header(&self.metadata.class, self.packet_bytes(packet));
        header.map(|header| header.session_id)
    }

    /// Whether packets are encrypted and the metadata is not: whoever has written that need not have the key.
    pub fn has_exposed_metadata(&self) -> bool {
        let is_encrypted = |stream: usize| {
            let header = self.packet(stream, 0).and_then(|packet| {
                sections::packet_header(self.class(), self.packet_bytes(&packet))
            });
            header.is_some_and(|header| header.encryption != 0)
        };
        !self.metadata.is_encrypted && (0..self.streams.len()).any(is_encrypted)
    }

    /// The file that the metadata was read from; the directory where that has none. Of several
    /// directories that are one trace, each has its own: this is the one that is taken for all.
    pub fn metadata_path(&self) -> &Path {
        &self.metadata_path
    }

    /// The metadata file of each directory of the trace, and its bytes.
    pub fn metadata_files(&self) -> &[(PathBuf, Bytes)] {
        &self.metadata_files
    }

    /// What is odd about it, and no damage: index files in a format that kymo does not know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The text of the metadata.
    pub fn metadata_text(&self) -> &str {
        &self.metadata.text
    }

    /// The data stream files that are not empty, of all directories.
    pub fn files(&self) -> &[StreamFile] {
        &self.files
    }

    /// The packets of a stream, one for each of its [chunks](Recording::chunks).
    pub fn packets(&self, stream: usize) -> impl Iterator<Item = Packet> {
        let stream = self.streams.get(stream);
        let rows = stream.into_iter().flat_map(|stream| stream.packets.rows(0));
        rows.map(|row| row.packet)
    }

    /// A packet of a stream: the one of the [chunk](Recording::chunk) of the same number.
    pub fn packet(&self, stream: usize, number: usize) -> Option<Packet> {
        let stream = self.streams.get(stream)?;
        let row = stream.packets.get(number.checked_sub(stream.first)?)?;
        Some(row.packet)
    }

    /// What a packet says of itself in its header and context. Where its file has an index that
    /// says something else, that is what the index says, unless the packets around contradict it
    /// (with [`Options::compares_indexes`]); `true` where it is so. Its time at the beginning is its own.
    ///
    /// # Errors
    ///
    /// If the packet does not exist, or the fault at which decoding its head stopped.
    pub fn head(&self, stream: usize, number: usize) -> Result<(PacketHead, bool), Fault> {
        let stream = self.streams.get(stream);
        let row = stream.and_then(|stream| {
            Some((
                stream,
                stream.packets.get(number.checked_sub(stream.first)?)?,
            ))
        });
        let Some((stream, row)) = row else {
            return Err(Fault::new(FaultCode::BeyondContent, 0, 0));
        };
        let mut head = self.decoder.packet_head(self.packet_bytes(&row.packet))?;
        let file = self.files.get(row.packet.file as usize);
        if file.is_none_or(|file| file.index.is_none()) {
            return Ok((head, false));
        }
        let is_open = self.quirks.zero_end && head.end.is_some_and(|(end, _)| end == 0);
        let end = row.end.filter(|_| !is_open);
        let is_other = row
            .packet
            .believe(&mut head, stream.id, end, row.discarded, row.sequence);
        Ok((head, is_other))
    }

    /// The bytes of a packet, as far as there are any.
    pub fn packet_bytes(&self, packet: &Packet) -> &[u8] {
        packet.data(&self.files)
    }

    /// Position of a stream's class in [`TraceClass::streams`].
    ///
    /// # Panics
    ///
    /// If the stream does not exist.
    pub fn stream_class(&self, stream: usize) -> usize {
        self.streams[stream].class
    }

    /// Size of all data stream files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What decodes its packets.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The chunks of a stream, from one on.
    fn chunks_from(&self, stream: usize, from: usize) -> impl Iterator<Item = Chunk> {
        let known = self.infos.get(stream).zip(self.streams.get(stream));
        known.into_iter().flat_map(move |(info, packets)| {
            let clock = info.clock.as_deref();
            packets.chunks(stream, from, clock, self.quirks)
        })
    }

    /// Number and class of the event that cannot be decoded, which ends its chunk; the class is
    /// `None` if its header cannot be decoded. Returns `None` if the fault is not in an event.
    fn faulty_event(&self, chunk: &Chunk) -> Option<(u64, Option<usize>)> {
        let mut cursor = self.cursor(chunk);
        cursor.packet.as_ref()?;
        let mut number = 0;
        loop {
            match cursor.next_event() {
                Ok(Some(event)) if event.visit(&mut Nothing).is_err() => {
                    return Some((event.number(), Some(event.class_index())));
                }
                Ok(Some(event)) => number = event.number() + 1,
                Ok(None) => return None,
                Err(_) => return Some((number, None)),
            }
        }
    }

    /// What can be saved of a chunk. This is its [cursor](Recording::cursor), but for a packet that says
    /// something else than an index file that names it, as to its sizes or its time: of that one, all
    /// events that can be decoded, and not only the fault, which is returned beside them.
    pub fn salvage(&self, chunk: &Chunk) -> (ChunkCursor<'_>, Option<Fault>) {
        let mut cursor = self.cursor(chunk);
        let is_index = |fault: &Fault| fault.code == FaultCode::Index;
        if cursor.fault.as_ref().is_some_and(is_index)
            && let Some((class, packet)) = self.packet_of(chunk)
            && let Ok(packet) = packet.salvage(self.reader(), class)
        {
            let fault = cursor.fault.take();
            cursor.packet = Some(packet);
            return (cursor, fault);
        }
        (cursor, None)
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            class: &self.metadata.class,
            decoder: &self.decoder,
            files: &self.files,
            keys: &self.keys,
            bytes: self.bytes,
        }
    }

    /// The packet of a chunk, with the position of its stream's class.
    fn packet_of(&self, chunk: &Chunk) -> Option<(usize, Packet)> {
        let packet = self.packet(chunk.stream, chunk.number)?;
        Some((self.stream_class(chunk.stream), packet))
    }
}

/// The hostname of the environment and a place, with a slash between if there are both; where
/// there is neither, the name that the metadata gives.
fn display_name(class: &TraceClass, place: Option<&str>) -> String {
    let host = match class.environment("hostname") {
        Some(EnvironmentValue::Text(host)) => Some(host.as_str()),
        _ => None,
    };
    match (host, place) {
        (Some(host), Some(place)) => format!("{host}/{place}"),
        (name, None) | (None, name) => name
            .or(class.name.as_deref())
            .unwrap_or_default()
            .to_string(),
    }
}

/// The path of the only directory, or the deepest common parent of all directories.
fn common_path(directories: &[Directory]) -> PathBuf {
    let mut paths = directories.iter().map(|directory| directory.path.as_path());
    let Some(mut common) = paths.next() else {
        return PathBuf::new();
    };
    for path in paths {
        while !path.starts_with(common) {
            let Some(parent) = common.parent() else { break };
            common = parent;
        }
    }
    match common.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => common.to_path_buf(),
    }
}

/// For each stream class, whether each field of its packets only matters to readers.
fn bookkeeping(class: &TraceClass, decoder: &Decoder) -> Vec<Vec<bool>> {
    let of_class = (0..class.streams.len()).map(|stream_class| {
        let schema = decoder.packet_schema(stream_class);
        let mut is_role = vec![false; schema.fields().len()];
        report::packet_roles(class, schema, stream_class, &mut |field, _| {
            is_role[field.index()] = true
        });
        is_role
    });
    of_class.collect()
}

/// What is shown of streams. A stream that has no number of its own gets the next one,
/// from `first_id`.
fn infos(
    streams: &[Stream],
    class: &TraceClass,
    decoder: &Decoder,
    files: &[StreamFile],
    first_id: u64,
) -> Vec<StreamInfo> {
    let mut next_id = first_id..;
    let infos = streams.iter().map(|stream| {
        let stream_class = &class.streams[stream.class];
        let first = stream.packets.get(0);
        let file = first.and_then(|first| files.get(first.packet.file as usize));
        let name = file.map(|file| kymo_io::absolute(&file.path).to_string_lossy().into());
        StreamInfo {
            class: stream_class.id,
            id: stream.id.or_else(|| next_id.next()),
            name: name.unwrap_or_default(),
            clock: class.stream_clock(stream.class),
            packet_schema: Arc::clone(decoder.packet_schema(stream.class)),
        }
    });
    infos.collect()
}
