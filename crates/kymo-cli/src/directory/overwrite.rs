//! What may be overwritten: directories that hold traces, tables, or event logs, and nothing else.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use kymo_ctf::decode::PACKET_MAGIC;
use kymo_ctf::metadata;
use kymo_ctf::trace::{Directory, Options, Packet, Trace};
use kymo_io::{Access, Bytes};
use kymo_model::{Chunk, Cursor, Event, Nothing, Recording};

/// Directories within directories are looked at so deep.
const DEPTH: usize = 64;

pub(super) fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// What a directory holds, if it may be overwritten; else what was found.
pub(super) fn overwritten(path: &Path) -> Result<&'static str, String> {
    if only_tables(path) {
        return Ok("tables");
    }
    match logs(path, DEPTH) {
        (0, _) => only_traces(path, DEPTH).map(|()| "traces"),
        (_, None) => Ok("event logs"),
        (_, Some(other)) => Err(format!("{} is not an event log", other.display())),
    }
}

/// How many event logs a directory holds, as `kymo cut` writes several, and what else it holds, if anything.
fn logs(path: &Path, depth: usize) -> (usize, Option<PathBuf>) {
    let is_log = |path: &Path| {
        let opened = kymo::open::open(&[path.to_path_buf()], &kymo::open::Options::default());
        matches!(&opened.recordings[..], [only] if only.is_log())
    };
    let Ok(entries) = std::fs::read_dir(path) else {
        return (0, Some(path.to_path_buf()));
    };
    let (mut count, mut other) = (0, None);
    for entry in entries.flatten() {
        let path = entry.path();
        let (found, stranger) = match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => logs(&path, depth - 1),
            Ok(kind) if kind.is_file() && is_log(&path) => (1, None),
            _ => (0, Some(path)),
        };
        count += found;
        other = other.or(stranger);
    }
    (count, other)
}

/// Whether a directory holds what `--to parquet` writes and nothing else: directories of tables, with their parts.
fn only_tables(path: &Path) -> bool {
    let is_part = |entry: &DirEntry| {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let part = name
            .strip_prefix("part-")
            .and_then(|name| name.strip_suffix(".parquet"));
        // Tables that go on in further files have two numbers: `part-0-1.parquet`.
        let is_number =
            part.is_some_and(|part| part.split('-').all(|number| number.parse::<u64>().is_ok()));
        is_number && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let is_table = |entry: &DirEntry| {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let is_name = name.starts_with("class=")
            || ["samples", "losses", "packets", "recordings"].contains(&name);
        is_name && all_entries(&entry.path(), is_part)
    };
    all_entries(path, is_table)
}

/// Whether a directory can be read, and all that is in it is such.
fn all_entries(path: &Path, is_such: impl Fn(&DirEntry) -> bool) -> bool {
    let Ok(mut entries) = std::fs::read_dir(path) else {
        return false;
    };
    entries.all(|entry| entry.is_ok_and(|entry| is_such(&entry)))
}

/// Whether a directory is a trace, or holds nothing but directories that are; else what was found.
fn only_traces(path: &Path, depth: usize) -> Result<(), String> {
    let unreadable = |error| format!("{}: {}", path.display(), kymo_io::reason(&error));
    let metadata = Directory::metadata_path(path);
    if let Some(metadata) = &metadata
        && !is_metadata(metadata)
    {
        return Err(format!("{} is not metadata of a trace", metadata.display()));
    }
    let parts = metadata.map(|metadata| Parts::new(path, &metadata));
    let mut any = false;
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Of a link, not what it leads to.
        let kind = entry.file_type().map_err(unreadable)?;
        any = true;
        let fits = match &parts {
            Some(parts) if kind.is_file() => parts.has(&entry),
            Some(_) => kind.is_dir() && entry.file_name() == "index" && only_indexes(&entry.path()),
            None if kind.is_dir() && depth > 0 => {
                only_traces(&entry.path(), depth - 1)?;
                true
            }
            None => false,
        };
        if !fits {
            let found = entry.path();
            return Err(format!("{} is not a part of one", found.display()));
        }
    }
    match any {
        true => Ok(()),
        false => Err(format!("{} is empty", path.display())),
    }
}

/// The files that make up a trace: any other files beside them belong to the user.
#[derive(Default)]
struct Parts {
    metadata: OsString,
    /// Files with packets.
    streams: BTreeSet<OsString>,
    /// Names of stream classes, which are those of files, too.
    classes: BTreeSet<String>,
}

impl Parts {
    fn new(path: &Path, metadata: &Path) -> Self {
        let mut parts = Self {
            metadata: metadata.file_name().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        // If the metadata cannot be parsed, the purpose of the files beside it is unknown.
        let Ok(trace) = Trace::open(&[path.to_path_buf()], &Options::default()) else {
            return parts;
        };
        let classes = trace.class().streams.iter();
        parts.classes = classes.filter_map(|class| class.name.clone()).collect();
        for stream in 0..trace.streams().len() {
            for (chunk, packet) in trace.chunks(stream).zip(trace.packets(stream)) {
                let file = trace.files().get(packet.file as usize);
                let name = file.and_then(|file| file.path.file_name());
                if let Some(name) = name
                    && !parts.streams.contains(name)
                    && is_packet(&trace, &chunk, &packet)
                {
                    parts.streams.insert(name.to_owned());
                }
            }
        }
        parts
    }

    fn has(&self, entry: &std::fs::DirEntry) -> bool {
        let name = entry.file_name();
        let is_empty = || entry.metadata().is_ok_and(|there| there.len() == 0);
        name == self.metadata
            || self.streams.contains(&name)
            || self.is_name_of_stream(&name) && is_empty()
    }

    /// Whether a stream without packets may have this name: that of its class, one that ends with a number,
    /// or the one that tracers give to an only stream.
    fn is_name_of_stream(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return false;
        };
        let numbered = name.rsplit_once('_').is_some_and(|(stem, number)| {
            let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
            is_number && !stem.is_empty() && !stem.starts_with('.')
        });
        numbered || name == "stream" || self.classes.contains(name)
    }
}

/// Whether a packet is one: it begins as packets do or, where these have no magic number, can be read
/// to its end.
fn is_packet(trace: &Trace, chunk: &Chunk, packet: &Packet) -> bool {
    let head = trace.decoder().packet_head(trace.packet_bytes(packet));
    match head.map(|head| head.magic) {
        Ok(Some(magic)) => magic == PACKET_MAGIC,
        Ok(None) => is_readable(trace, chunk),
        Err(_) => false,
    }
}

fn is_readable(trace: &Trace, chunk: &Chunk) -> bool {
    let mut cursor = trace.cursor(chunk);
    loop {
        match cursor.next_event() {
            Ok(Some(event)) if event.visit(&mut Nothing).is_ok() => {}
            Ok(None) => return true,
            _ => return false,
        }
    }
}

fn only_indexes(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| {
        entries.all(|entry| {
            entry.is_ok_and(|entry| {
                let is_index = Path::new(&entry.file_name())
                    .extension()
                    .is_some_and(|extension| extension == "idx");
                is_index && entry.file_type().is_ok_and(|kind| kind.is_file())
            })
        })
    })
}

/// Whether a file begins as metadata does, or can be understood as such.
fn is_metadata(path: &Path) -> bool {
    /// Of packets of TSDL, and of RFC v1.1.
    const MAGICS: [u32; 2] = [0x75D1_1D57, PACKET_MAGIC as u32];
    let is_file = path.symlink_metadata().is_ok_and(|there| there.is_file());
    let Some(bytes) = Bytes::open(path, Access::Sequential)
        .ok()
        .filter(|_| is_file)
    else {
        return false;
    };
    let is_packet = bytes.first_chunk::<4>().is_some_and(|begin| {
        MAGICS.contains(&u32::from_le_bytes(*begin)) || MAGICS.contains(&u32::from_be_bytes(*begin))
    });
    let is_text = bytes.starts_with(b"/* CTF") || bytes.starts_with(&[0x1E]);
    let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
    is_packet || is_text || !is_blank && metadata::parse(&bytes, &path.to_string_lossy()).is_ok()
}
