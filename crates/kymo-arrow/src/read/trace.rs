//! A trace in temporary storage, which is made of rows.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kymo::convert::ctf::{StreamModel, TraceModel};
use kymo_ctf::trace::{Directory, Options as TraceOptions, Trace};
use kymo_ctf::write::{
    Encode, EventId, PacketInfo, PacketSink, PacketStart, StreamFile, StreamOptions, StreamWriter,
    TraceWriter, WriteError,
};
use kymo_io::Temporaries;
use kymo_model::Schema;
use kymo_model::{FaultCode, FaultReport};

use super::values::NotGiven;
use crate::packet_fields;

/// Size in bytes of packets if the tables do not specify packets.
const PACKET_BYTES: u64 = 1 << 20;
/// Maximum number of distinct reasons that are reported for skipped rows.
const MOST_REASONS: usize = 32;

/// A packet, as the table of packets has it.
#[derive(Clone, Debug)]
pub(super) struct PacketRow {
    pub(super) number: u64,
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) lost_events: u64,
    pub(super) lost_packets: u64,
    pub(super) fields: Option<Arc<str>>,
}

/// Writes a trace into temporary storage.
pub(super) struct Maker {
    directory: tempfile::TempDir,
    streams: Vec<Stream>,
    /// Why rows are left out, and how many.
    refused: BTreeMap<String, u64>,
}

struct Stream {
    writer: StreamWriter<Counted>,
    schema: Arc<Schema>,
    packets: VecDeque<PacketRow>,
    /// The packet in hand, and where it ends.
    open: Option<(u64, Option<u64>)>,
    lost_events: u64,
    lost_packets: u64,
}

/// Counts the bytes of all streams: temporary storage is bounded.
struct Counted {
    file: StreamFile,
    used: Arc<AtomicU64>,
    limit: u64,
}

impl PacketSink for Counted {
    fn packet(&mut self, bytes: &[u8], info: &PacketInfo) -> io::Result<()> {
        let used = self.used.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if used.saturating_add(bytes.len() as u64) > self.limit {
            let problem = format!(
                "the trace of these tables is larger than the limit for temporary files ({} bytes); set {} to raise it",
                self.limit,
                kymo_io::SPOOL_LIMIT
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        self.file.packet(bytes, info)
    }
}

impl Maker {
    /// Begins a trace. `packets` are those of each stream, in order.
    pub(super) fn new(
        model: &TraceModel,
        mut packets: BTreeMap<u32, VecDeque<PacketRow>>,
    ) -> Result<Self, WriteError> {
        let limit = kymo_io::spool_limit()?;
        let directory = {
            let temporaries = Temporaries::hold();
            let directory = tempfile::Builder::new().prefix("kymo-").tempdir()?;
            temporaries.add(directory.path());
            directory
        };
        let place = directory.path().join("trace");
        let mut trace = TraceWriter::create(&place, &model.class, Default::default())?;
        let used = Arc::new(AtomicU64::new(0));
        let is_in_packets = !packets.is_empty();
        let mut streams = Vec::with_capacity(model.streams.len());
        for (number, stream) in (0..).zip(&model.streams) {
            let StreamModel {
                stream_class,
                id,
                name,
            } = stream;
            if *stream_class >= model.class.streams.len() {
                let problem = format!(
                    "stream {number} is of class {stream_class}, which the metadata does not have"
                );
                return Err(WriteError::Misuse(problem));
            }
            let options = StreamOptions {
                stream_id: *id,
                packet_bytes: (!is_in_packets).then_some(PACKET_BYTES),
                any_order: true,
                lenient: true,
            };
            let schema = Arc::clone(trace.encoder().decoder().packet_schema(*stream_class));
            let header = Arc::clone(trace.encoder().decoder().header_schema(*stream_class));
            let mut writer =
                trace.stream_through(*stream_class, name, options, |file| Counted {
                    file,
                    used: Arc::clone(&used),
                    limit,
                })?;
            // What event headers hold beside class and time is not in the tables.
            writer.header_members().decoded(&header);
            streams.push(Stream {
                writer,
                schema,
                packets: packets.remove(&number).unwrap_or_default(),
                open: None,
                lost_events: 0,
                lost_packets: 0,
            });
        }
        Ok(Self {
            directory,
            streams,
            refused: BTreeMap::new(),
        })
    }

    /// Number of streams.
    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Appends an event to a packet of a stream. One that cannot be written is counted.
    pub(super) fn event(
        &mut self,
        (stream, packet): (usize, u64),
        event: EventId,
        ticks: Option<u64>,
        give: impl FnMut(&mut Encode<'_>) -> Result<(), NotGiven>,
    ) -> Result<(), WriteError> {
        let stream = &mut self.streams[stream];
        stream.go_to(packet)?;
        let problem = match stream.writer.visited(event, ticks, give) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(NotGiven::Missing)) => "a value is missing".to_owned(),
            Ok(Err(NotGiven::Nested)) => {
                "a field is nested in more than 32 others, and a text of JSON here".to_owned()
            }
            Err(error @ (WriteError::Field { .. } | WriteError::Misuse(_))) => error.to_string(),
            Err(error) => return Err(error),
        };
        let is_known = self.refused.contains_key(&problem);
        let problem = match is_known || self.refused.len() < MOST_REASONS {
            true => problem,
            false => "other reasons".to_owned(),
        };
        *self.refused.entry(problem).or_default() += 1;
        Ok(())
    }

    /// Ends all streams and opens the trace, which is said to be at `path`. Then its files no longer have names.
    pub(super) fn open(self, path: &Path, options: &TraceOptions) -> Result<Trace, io::Error> {
        for mut stream in self.streams {
            stream
                .go_to(u64::MAX)
                .and_then(|()| stream.end_packet())
                .and_then(|()| Ok(stream.writer.finish()?.file.flush()?))
                .map_err(io::Error::other)?;
        }
        let place = self.directory.path().join("trace");
        let mut directory = Directory::open_with(&place, options).map_err(io::Error::other)?;
        let renamed = |original: &Path| path.join(original.file_name().unwrap_or_default());
        for file in &mut directory.files {
            file.path = Arc::new(renamed(&file.path));
        }
        directory.metadata_file.0 = renamed(&directory.metadata_file.0);
        directory.path = path.to_path_buf();
        directory.is_whole = false;
        directory
            .faults
            .extend(self.refused.iter().map(|(problem, count)| {
                FaultReport::new(
                    FaultCode::Unreadable,
                    Arc::new(path.to_path_buf()),
                    0,
                    format!("rows that are left out: {count}: {problem}"),
                )
            }));
        {
            let temporaries = Temporaries::hold();
            let removed = self.directory.path().to_path_buf();
            self.directory.close()?;
            temporaries.forget(&removed);
        }
        let mut trace = Trace::new(vec![directory], options).map_err(io::Error::other)?;
        trace.set_path(path.to_path_buf());
        Ok(trace)
    }
}

impl Stream {
    /// Begins all packets up to one, unless it is in hand.
    fn go_to(&mut self, packet: u64) -> Result<(), WriteError> {
        while self
            .packets
            .front()
            .is_some_and(|next| next.number <= packet)
            && let Some(next) = self.packets.pop_front()
        {
            self.end_packet()?;
            self.lost_events = self.lost_events.wrapping_add(next.lost_events);
            self.lost_packets = self.lost_packets.wrapping_add(next.lost_packets);
            let values = self.writer.packet_members().decoded(&self.schema);
            if let Some(fields) = &next.fields
                && packet_fields::give(fields, &self.schema, values).is_none()
            {
                let problem = format!(
                    "the fields of packet {} are not those of its class",
                    next.number
                );
                return Err(WriteError::Misuse(problem));
            }
            let sequence = self.writer.sequence().wrapping_add(self.lost_packets);
            self.lost_packets = 0;
            self.writer.begin_packet(PacketStart {
                begin: next.begin,
                sequence: Some(sequence),
                discarded: Some(self.lost_events),
                ..PacketStart::default()
            })?;
            self.open = Some((next.number, next.end));
        }
        Ok(())
    }

    fn end_packet(&mut self) -> Result<(), WriteError> {
        match self.open.take() {
            Some((_, end)) => self.writer.end_packet(end),
            None => Ok(()),
        }
    }
}
