//! Packets of traces, on their way to `kymo receive`.

use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_ctf::metadata::byte_order_of_packets;
use kymo_ctf::trace::Trace;
use kymo_ctf::wire::{Content, LARGEST_DATAGRAM, Raw, recognize};
use kymo_io::without_compression;
use kymo_model::Recording;
use kymo_text::Line;

use super::sender::{connect, count_after};
use super::target::Place;
use crate::args::send::Send;
use crate::open::{inputs, report_opening_faults};
use crate::terminal::{Failure, Outcome, Terminal};

/// The default number of bytes per second: a network of 100 Mbit/s keeps up.
pub(super) const RATE: u32 = 12_500_000;
/// Size in bytes of the pieces into which metadata is cut.
const PIECE: usize = 16 << 10;
/// The longest that is slept.
pub(super) const NAP: Duration = Duration::from_millis(50);
/// Number of times that a raw packet is sent while the system reports that an earlier one had no listener.
const MOST_REFUSALS: usize = 3;
/// Maximum number of streams that are sent raw, since each stream has a port of its own.
const MOST_PORTS: usize = 256;

/// Sends the packets of all traces.
pub(super) fn send(args: &Send, place: &Place, terminal: &Terminal) -> Result<Outcome, Failure> {
    check(args)?;
    let inputs = inputs(&args.input, false, terminal)?;
    let mut outcome = report_opening_faults(&inputs, terminal);
    let mut traces = Vec::new();
    for recording in &inputs.recordings {
        match recording.as_ctf() {
            Some(trace) => traces.push(trace),
            None => {
                let path = recording.path().display();
                terminal.error(format_args!(
                    "{path}: it is not a CTF trace, and has no packets that could be sent"
                ));
                outcome = Outcome::Damage;
            }
        }
    }
    if traces.is_empty() {
        return Err(Failure::Unreadable);
    }
    let plan = Plan::new(&traces)?;
    let result = match args.raw {
        true => raw(args, place, &plan, terminal)?,
        false => super::delivery::send(args, place, &plan, terminal)?,
    };
    Ok(match outcome {
        Outcome::Good => result,
        damaged => damaged,
    })
}

/// Refuses options that are of values.
fn check(args: &Send) -> Result<(), Failure> {
    let selection = &args.selection;
    let chooses = !selection.event.is_empty()
        || selection.condition.is_some()
        || selection.begin.is_some()
        || selection.end.is_some()
        || selection.timerange.is_some()
        || selection.stream_intersection;
    let is_of_values = args.id.is_some() || args.security.is_some() || args.username.is_some();
    let problem = if chooses {
        "error: to `ctf+udp://` whole packets are sent: events cannot be chosen\n\
         hint: `kymo convert` writes a trace of some of its events"
    } else if is_of_values {
        "error: `--id`, `--security` and `--username` are of values, and not of packets of traces"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(problem.to_string()))
}

/// A file that is sent.
pub(super) struct Source<'t> {
    pub(super) content: Content,
    /// Its path below the directory that is received.
    pub(super) name: String,
    pub(super) path: PathBuf,
    bytes: &'t [u8],
}

/// A packet of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    /// When it is its turn.
    time: i64,
    pub(super) source: usize,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// What is sent in which order: metadata, then packets by their times.
pub(super) struct Plan<'t> {
    pub(super) sources: Vec<Source<'t>>,
    pub(super) pieces: Vec<Piece>,
}

impl<'t> Plan<'t> {
    fn new(traces: &[&'t Trace]) -> Result<Self, Failure> {
        let mut plan = Plan {
            sources: Vec::new(),
            pieces: Vec::new(),
        };
        let mut names = BTreeSet::new();
        for trace in traces {
            let prefix = match traces.len() {
                1 => PathBuf::new(),
                _ => unique(trace.path(), &mut names),
            };
            plan.add(trace, &prefix)?;
        }
        plan.pieces.sort_unstable();
        Ok(plan)
    }

    fn add(&mut self, trace: &'t Trace, prefix: &Path) -> Result<(), Failure> {
        let root = trace.path();
        let name = |path: &Path| {
            let path = without_compression(path);
            let below = path.strip_prefix(root).unwrap_or(&path);
            let parts = prefix.join(below);
            let parts = parts.iter().map(|part| part.to_string_lossy());
            parts.collect::<Vec<_>>().join("/")
        };
        let files = trace.files();
        for (path, bytes) in trace.metadata_files() {
            let packets = metadata_pieces(bytes);
            let source = self.sources.len();
            self.pieces
                .extend(packets.into_iter().map(|(begin, end)| Piece {
                    time: i64::MIN,
                    source,
                    begin,
                    end,
                }));
            self.sources.push(Source {
                content: Content::Metadata,
                name: name(path),
                path: path.clone(),
                bytes,
            });
        }
        let first = self.sources.len();
        self.sources.extend(files.iter().map(|file| Source {
            content: Content::Packets,
            name: name(&file.path),
            path: file.path.to_path_buf(),
            bytes: &file.bytes,
        }));
        let mut of_files: Vec<Vec<Piece>> = files.iter().map(|_| Vec::new()).collect();
        for stream in 0..trace.streams().len() {
            for (packet, chunk) in trace.packets(stream).zip(trace.chunks(stream)) {
                let file = packet.file as usize;
                let (Some(pieces), Some(source)) = (of_files.get_mut(file), files.get(file)) else {
                    continue;
                };
                let begin = usize::try_from(packet.offset).unwrap_or(usize::MAX);
                let size = usize::try_from(packet.total_bits / 8).unwrap_or(usize::MAX);
                let end = begin.saturating_add(size).min(source.bytes.len());
                let time = chunk.begin_time.map_or(i64::MIN, |time| time.as_nanos());
                pieces.push(Piece {
                    time,
                    source: first + file,
                    begin: begin.min(end),
                    end,
                });
            }
        }
        // In each file packets keep their order, whatever their times are.
        for mut pieces in of_files {
            pieces.sort_unstable_by_key(|piece| piece.begin);
            let mut latest = i64::MIN + 1;
            for piece in &mut pieces {
                latest = latest.max(piece.time);
                piece.time = latest;
            }
            self.pieces.append(&mut pieces);
        }
        Ok(())
    }

    pub(super) fn bytes(&self, piece: &Piece) -> &[u8] {
        &self.sources[piece.source].bytes[piece.begin..piece.end]
    }
}

/// The last part of a path, or that with a number, where another trace has it already.
fn unique(path: &Path, names: &mut BTreeSet<String>) -> PathBuf {
    let name = path
        .file_name()
        .map_or("trace".into(), |name| name.to_string_lossy());
    let numbered = |number: usize| match number {
        1 => name.to_string(),
        number => format!("{name}-{number}"),
    };
    let free = (1..).map(numbered).find(|name| names.insert(name.clone()));
    free.unwrap_or_default().into()
}

/// Metadata as its packets, or as pieces of its text.
fn metadata_pieces(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    while begin < bytes.len() {
        let rest = &bytes[begin..];
        let size = packet_size(rest).unwrap_or(PIECE).clamp(1, rest.len());
        pieces.push((begin, begin + size));
        begin += size;
    }
    pieces
}

/// The size of a packet of metadata, of CTF 1.8 in bits, of RFC v1.1 in bytes.
fn packet_size(packet: &[u8]) -> Option<usize> {
    let number = |at: usize, is_little: bool| {
        let bytes = *packet.get(at..)?.first_chunk()?;
        let number = match is_little {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        };
        usize::try_from(number).ok()
    };
    match recognize(packet)? {
        Raw::Metadata => number(28, packet[0] == 0x57).map(|bits| bits / 8),
        Raw::Packet { .. } => {
            let order = byte_order_of_packets(packet)?;
            number(12, order == kymo_machine::ByteOrder::Little)
        }
    }
}

/// Sends a datagram, as soon as the system has room for it.
pub(super) fn transmit(socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    /// What Linux says when a network has no room for a datagram.
    const NO_BUFFERS: i32 = 105;
    loop {
        match socket.send(datagram) {
            Ok(_) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => std::thread::sleep(NAP / 10),
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn report_sent(terminal: &Terminal, packets: u64, bytes: u64, datagrams: u64) {
    let mut line = Line::new();
    count_after(&mut line, "sent ", packets, "packet");
    count_after(&mut line, ", ", bytes, "byte");
    count_after(&mut line, ", in all ", datagrams, "datagram");
    line.push_byte(b'\n');
    terminal.report(line.as_bytes());
}

/// Sends each packet as it is.
fn raw(
    args: &Send,
    place: &Place,
    plan: &Plan<'_>,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    if plan.sources.len() > MOST_PORTS {
        let problem = format!("error: `--raw` sends at most {MOST_PORTS} files");
        return Err(Failure::Usage(problem));
    }
    // Packets do not say of which file they are; their ports do.
    let sockets = plan
        .sources
        .iter()
        .map(|_| connect(&place.host, place.port, args.departure()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| Failure::at(place, &error))?;
    let rate = f64::from(args.rate.unwrap_or(RATE));
    let begun = Instant::now();
    let mut outcome = Outcome::Good;
    let (mut packets, mut bytes, mut refused) = (0, 0, 0_u64);
    let mut is_reported = vec![false; plan.sources.len()];
    for piece in &plan.pieces {
        let (packet, source) = (plan.bytes(piece), &plan.sources[piece.source]);
        if recognize(packet).is_none() {
            if !std::mem::replace(&mut is_reported[piece.source], true) {
                terminal.error(format_args!(
                    "{}: it is not in packets with a magic number, and is not sent; without `--raw` it is",
                    source.path.display()
                ));
            }
            outcome = Outcome::Damage;
            continue;
        }
        if packet.len() > LARGEST_DATAGRAM {
            terminal.error(format_args!(
                "{}: offset {}: the packet has {} bytes, a datagram at most {LARGEST_DATAGRAM}; it is not sent",
                source.path.display(),
                piece.begin,
                packet.len()
            ));
            outcome = Outcome::Damage;
            continue;
        }
        let due = Duration::try_from_secs_f64(bytes as f64 / rate).unwrap_or_default();
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        // What a refusal is of was sent before; this one is then sent after it.
        let socket = &sockets[piece.source];
        let mut sent = transmit(socket, packet);
        for _ in 0..MOST_REFUSALS {
            match sent {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => refused += 1,
                _ => break,
            }
            sent = transmit(socket, packet);
        }
        sent.map_err(|error| Failure::at(place, &error))?;
        packets += 1;
        bytes += packet.len() as u64;
    }
    report_sent(terminal, packets, bytes, packets);
    if refused > 0 {
        terminal.error(format_args!(
            "{place}: nobody listened there {refused} times: what was sent then is lost"
        ));
        outcome = Outcome::Damage;
    }
    if packets == 0 {
        terminal.error("nothing was sent");
        outcome = Outcome::Damage;
    }
    Ok(outcome)
}
