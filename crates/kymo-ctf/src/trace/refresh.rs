//! Reading what was added to a trace that is open, and nothing else.
//!
//! Of each file it is known how far it was read: where its last packet begins, which may grow. When the
//! file has changed, it is mapped again and scanned from there on. A file that is moved stays the same file
//! (a session that is rotated moves its files to a directory of its own), and packets of which another file
//! has a copy are not added again. A file that another one has taken the place of, or that was cut off, is
//! gone, and its packets with it.

mod merge;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Bytes, Entry, EntryKind, FileState, Tree, without_compression};
use kymo_model::{Change, FaultCode, RefreshError, Refreshed, RowPlace, Shift};
use kymo_time::Origin;

use self::merge::Merge;
use super::packet::{Reader, differ};
use super::scan::Scanner;
use super::streams::{Assembly, Stream};
use super::table::Row;
use super::{Directory, OpenError, Options, Packet, Recording, StreamFile, Trace};
use super::{bookkeeping, infos, input, sections};
use crate::class::{Dialect, StreamClass, TraceClass};
use crate::decode::Decoder;
use crate::metadata::Metadata;

/// What is known of the files of a trace, to find out what changes.
#[derive(Debug)]
pub(super) struct Watched {
    options: Options,
    directories: Vec<WatchedDirectory>,
    /// Of each file of the trace.
    files: Vec<WatchedFile>,
}

#[derive(Debug)]
struct WatchedDirectory {
    path: PathBuf,
    metadata: PathBuf,
    /// `None` of metadata that is not read again: in archives, compressed.
    state: Option<FileState>,
    /// Whether files that appear in it belong to the trace.
    is_whole: bool,
}

#[derive(Debug, Default)]
struct WatchedFile {
    /// `None` of a file that is not read again.
    state: Option<FileState>,
    /// Where the last packet begins, and its number.
    last: Option<(u64, u32)>,
    is_gone: bool,
}

/// The state of a file of which `known` bytes are known.
fn state_of(path: &Path, known: usize) -> Option<FileState> {
    let is_plain = without_compression(path) == path;
    let state = FileState::of(path).ok().filter(|_| is_plain)?;
    // It may have grown since it was mapped.
    Some(state.with_length(known as u64))
}

impl Watched {
    pub(super) fn new(directories: &[Directory], options: &Options) -> Self {
        let directories = directories.iter().map(WatchedDirectory::new);
        Self {
            options: options.clone(),
            directories: directories.collect(),
            files: Vec::new(),
        }
    }

    pub(super) fn add_files(&mut self, files: &[StreamFile]) {
        self.files.extend(files.iter().map(|file| WatchedFile {
            state: state_of(&file.path, file.bytes.len()),
            ..WatchedFile::default()
        }));
    }

    /// The states of all files: of the metadata, then of the data streams.
    pub(super) fn states(&self) -> impl Iterator<Item = Option<FileState>> {
        let metadata = self.directories.iter().map(|directory| directory.state);
        metadata.chain(self.files.iter().map(|file| file.state))
    }

    /// A packet was found.
    pub(super) fn found(&mut self, packet: &Packet) {
        if let Some(file) = self.files.get_mut(packet.file as usize) {
            file.last = file.last.max(Some((packet.offset, packet.number)));
        }
    }
}

impl WatchedDirectory {
    fn new(directory: &Directory) -> Self {
        let (metadata, bytes) = &directory.metadata_file;
        Self {
            path: directory.path.clone(),
            metadata: metadata.clone(),
            state: state_of(metadata, bytes.len()),
            is_whole: directory.is_whole,
        }
    }
}

/// The last packet of a file, which may have grown.
#[derive(Clone, Copy, Debug)]
struct Last {
    stream: usize,
    position: usize,
    row: Row,
}

impl Trace {
    /// The directories that it is read from.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        let directories = self.watched.directories.iter();
        directories.map(|directory| &*directory.path)
    }

    /// Whether a directory belongs to it: its metadata has the same identity.
    pub fn has_identity_of(&self, directory: &Directory) -> bool {
        let identity = |class: &TraceClass| {
            let uid = class.uid.clone();
            uid.map(|uid| (class.namespace.clone(), class.name.clone(), uid))
        };
        let own = identity(self.class());
        own.is_some() && own == identity(&directory.metadata.class)
    }

    /// Reads what has changed, with directories that have become part of the trace.
    ///
    /// # Errors
    ///
    /// Metadata that has changed cannot be understood. The trace is as it was.
    pub fn refresh_with(&mut self, added: Vec<Directory>) -> Result<Refreshed, RefreshError> {
        let mut refreshed = Refreshed::default();
        self.packet_source = None;
        let metadata = self.changed_metadata(&added)?;
        if let Some(metadata) = metadata {
            match self.adopt(metadata)? {
                true => refreshed.has_other_classes = true,
                false => return self.open_again(added),
            }
        }
        let mut faults = Vec::new();
        let mut new_files = Vec::new();
        for directory in added {
            let is_known = |known: &WatchedDirectory| known.path == directory.path;
            if self.watched.directories.iter().any(is_known) {
                continue;
            }
            self.watched
                .directories
                .push(WatchedDirectory::new(&directory));
            self.metadata_files.push(directory.metadata_file);
            faults.extend(directory.faults);
            new_files.extend(directory.files);
        }
        // Where a file was moved from, there may be another one.
        for _ in 0..2 {
            self.follow_moves(&mut new_files);
            let unknown = self.unknown_files(&new_files, &mut faults);
            new_files.extend(unknown);
        }
        let grown = self.grown_files(&mut new_files, &mut faults);
        let first_new = self.files.len() as u32;
        sections::assign(&mut new_files, &self.metadata.class, &mut faults);
        self.watched.add_files(&new_files);
        self.files.extend(new_files);
        let is_any_gone = self.has_rows_of_gone_files();
        let all_grown = grown.into_iter().chain(first_new..self.files.len() as u32);
        let all_grown: Vec<u32> = all_grown.collect();
        if all_grown.is_empty() && !is_any_gone {
            self.faults.append(&mut faults);
            return Ok(refreshed);
        }
        self.bytes = self.files.iter().map(|file| file.bytes.len() as u64).sum();
        self.scan_again(&all_grown, &mut refreshed, &mut faults);
        let known = std::mem::take(&mut self.faults);
        let is_known = |fault: &kymo_model::FaultReport| {
            let once = matches!(fault.code, FaultCode::Magic | FaultCode::TraceId);
            known.iter().any(|other| {
                other.code == fault.code && other.file == fault.file && (once || other == fault)
            })
        };
        faults.retain(|fault| !is_known(fault));
        self.faults = known;
        self.faults.append(&mut faults);
        Ok(refreshed)
    }

    /// The metadata that describes most, if it is not that which is known.
    fn changed_metadata(&mut self, added: &[Directory]) -> Result<Option<Metadata>, RefreshError> {
        let mut best: Option<Metadata> = None;
        let count = |class: &TraceClass| -> usize {
            let of_stream = |stream: &StreamClass| 1 + stream.events.len();
            class.streams.iter().map(of_stream).sum()
        };
        let mut most = count(&self.metadata.class);
        let mut take = |metadata: &Metadata| {
            if count(&metadata.class) > most {
                most = count(&metadata.class);
                best = Some(metadata.clone());
            }
        };
        for directory in added {
            take(&directory.metadata);
        }
        let mut states = Vec::new();
        for (position, directory) in self.watched.directories.iter().enumerate() {
            let Some(known) = directory.state else {
                continue;
            };
            let Ok(now) = FileState::of(&directory.metadata) else {
                continue;
            };
            if now == known {
                continue;
            }
            let opened = Directory::open_with(&directory.path, &self.watched.options);
            let opened = opened.map_err(|error| RefreshError::new(&directory.metadata, &error))?;
            states.push((position, opened.metadata_file.1.len(), now));
            take(&opened.metadata);
        }
        for (position, length, state) in states {
            self.watched.directories[position].state = Some(state.with_length(length as u64));
        }
        Ok(best)
    }

    /// Takes metadata that has all known classes as they are. `false` if it does not.
    fn adopt(&mut self, metadata: Metadata) -> Result<bool, RefreshError> {
        let clocks = self.metadata.class.clocks.iter();
        let is_unix = clocks
            .map(|clock| &clock.origin)
            .all(|it| *it == Origin::UnixEpoch);
        let Some(positions) = positions(&self.metadata.class, &metadata.class) else {
            return Ok(false);
        };
        let decoder = Decoder::new(&metadata.class);
        let mut decoder =
            decoder.map_err(|error| RefreshError::new(&self.metadata_path, &error))?;
        decoder.set_positions(&positions);
        self.bookkeeping = bookkeeping(&metadata.class, &decoder);
        self.decoder = decoder;
        self.unshifted = metadata.class.clocks.clone();
        *self.metadata = metadata;
        for (info, stream) in self.infos.iter_mut().zip(&self.streams) {
            info.packet_schema = Arc::clone(self.decoder.packet_schema(stream.class));
        }
        let shift = Shift {
            nanos: 0,
            from_unix_epoch: is_unix,
        };
        self.shift(shift)
            .map_err(|error| RefreshError::new(&self.metadata_path, &error))?;
        Ok(true)
    }

    /// Opens the trace as a whole, since its metadata is another one.
    fn open_again(&mut self, added: Vec<Directory>) -> Result<Refreshed, RefreshError> {
        let error = |error: OpenError| RefreshError::new(&self.path, &error);
        let mut directories = added;
        for known in &self.watched.directories {
            if known.metadata.exists() {
                let mut opened =
                    Directory::open_with(&known.path, &self.watched.options).map_err(error)?;
                if !known.is_whole {
                    opened
                        .files
                        .retain(|file| self.files.iter().any(|known| known.path == file.path));
                    opened.is_whole = false;
                }
                directories.push(opened);
            }
        }
        let mut opened = Self::new(directories, &self.watched.options).map_err(error)?;
        let shift = Shift {
            nanos: self.shift_nanos,
            from_unix_epoch: false,
        };
        opened.drift = self.drift;
        let shifted = opened.shift(shift);
        shifted.map_err(|error| RefreshError::new(&self.path, &error))?;
        opened.name = std::mem::take(&mut self.name);
        opened.path = std::mem::take(&mut self.path);
        *self = opened;
        let mut refreshed = Refreshed {
            has_other_classes: true,
            ..Refreshed::default()
        };
        for stream in 0..self.streams.len() {
            let from = RowPlace::default();
            refreshed.push(stream, Change::Replaced { from });
        }
        Ok(refreshed)
    }

    /// Files of the known directories that are not known.
    fn unknown_files(
        &self,
        new_files: &[StreamFile],
        faults: &mut Vec<kymo_model::FaultReport>,
    ) -> Vec<StreamFile> {
        let files = self.files.iter().zip(&self.watched.files);
        let known: HashSet<&Path> = files
            .filter(|(_, watched)| !watched.is_gone)
            .map(|(file, _)| file)
            .chain(new_files)
            .map(|file| file.path.as_path())
            .collect();
        let mut found = Vec::new();
        let whole = self.watched.directories.iter();
        for directory in whole.filter(|directory| directory.is_whole && directory.state.is_some()) {
            let entries = Tree::Disk.list(&directory.path).unwrap_or_default();
            let is_stream = |entry: &Entry| {
                let hidden = entry.name.as_encoded_bytes().starts_with(b".");
                entry.kind == EntryKind::File && !hidden && entry.path != directory.metadata
            };
            for entry in entries.iter().filter(|entry| is_stream(entry)) {
                if !known.contains(&*entry.path) {
                    let dialect = self.metadata.class.dialect;
                    found.extend(input::stream_file(&Tree::Disk, entry, dialect, faults));
                }
            }
        }
        found
    }

    /// Files that were moved get their new paths, and are not new.
    fn follow_moves(&mut self, new_files: &mut Vec<StreamFile>) {
        let files = self.files.iter_mut().zip(&mut self.watched.files);
        for (file, watched) in files.filter(|(_, watched)| !watched.is_gone) {
            let Some(state) = watched.state else {
                continue;
            };
            if FileState::of(&file.path).is_ok_and(|now| now.is_same_file(&state)) {
                continue;
            }
            let is_it = |new: &StreamFile| {
                FileState::of(&new.path).is_ok_and(|now| now.is_moved_from(&state))
            };
            if let Some(at) = new_files.iter().position(is_it) {
                let moved = new_files.swap_remove(at);
                file.path = moved.path;
                if file.index.is_some() {
                    file.index = moved.index;
                }
            }
        }
    }

    /// Maps the known files that have changed. Files that are gone are marked so, and others that have taken
    /// their place are new.
    fn grown_files(
        &mut self,
        new_files: &mut Vec<StreamFile>,
        faults: &mut Vec<kymo_model::FaultReport>,
    ) -> Vec<u32> {
        let mut grown = Vec::new();
        let dialect = self.metadata.class.dialect;
        for number in 0..self.files.len() {
            let watched = &self.watched.files[number];
            let (Some(known), false) = (watched.state, watched.is_gone) else {
                continue;
            };
            let path = Arc::clone(&self.files[number].path);
            let now = FileState::of(&path).ok();
            if now == Some(known) {
                continue;
            }
            let is_same = now.is_some_and(|now| {
                now.is_same_file(&known) && now.length() >= self.files[number].bytes.len() as u64
            });
            let entry = Entry {
                name: path.file_name().unwrap_or_default().to_owned(),
                path: path.to_path_buf(),
                kind: EntryKind::File,
                is_link: false,
            };
            let mapped = now.and_then(|_| input::stream_file(&Tree::Disk, &entry, dialect, faults));
            let mapped = match mapped {
                Some(mapped) if is_same && self.goes_on(number, &mapped.bytes) => mapped,
                other => {
                    new_files.extend(other);
                    self.watched.files[number].is_gone = true;
                    continue;
                }
            };
            let file = &mut self.files[number];
            let length = mapped.bytes.len() as u64;
            if length != file.bytes.len() as u64 {
                // Its index may not be whole yet; the packets themselves are asked.
                file.index = None;
            }
            file.bytes = mapped.bytes;
            let watched = &mut self.watched.files[number];
            watched.state = now.map(|now| now.with_length(length));
            let last = watched.last.map_or(0, |(offset, _)| offset);
            self.faults
                .retain(|fault| fault.file != path || fault.offset < last);
            grown.push(number as u32);
        }
        grown
    }

    /// Whether the bytes of a file still have the last packet that is known of it.
    fn goes_on(&self, file: usize, bytes: &Bytes) -> bool {
        let Some((offset, number)) = self.watched.files[file].last else {
            return true;
        };
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..));
        let head = rest.map(|rest| self.files[file].head(&self.decoder, rest));
        let Some((Ok(head), last)) = head.zip(self.last_of(file as u32, number)) else {
            return false;
        };
        let stream = &self.streams[last.stream];
        let has_clock = self.decoder.has_clock(head.stream_class);
        stream.class == head.stream_class
            && stream.id == head.stream_id
            && !differ(
                head.begin.filter(|_| has_clock),
                Some((last.row.packet.clock, 64)),
            )
    }

    /// Where a packet of a file is, near the end of its stream.
    fn last_of(&self, file: u32, number: u32) -> Option<Last> {
        let is_it = |row: &Row| (row.packet.file, row.packet.number) == (file, number);
        let near = |(stream, packets_of): (usize, &Stream)| {
            let from = packets_of.packets.len().saturating_sub(4);
            let mut rows = packets_of.packets.rows(from).zip(from..);
            let (row, position) = rows.find(|(row, _)| is_it(row))?;
            Some(Last {
                stream,
                position,
                row,
            })
        };
        let anywhere = |(stream, packets_of): (usize, &Stream)| {
            let (row, position) = packets_of
                .packets
                .rows(0)
                .zip(0..)
                .find(|(row, _)| is_it(row))?;
            Some(Last {
                stream,
                position,
                row,
            })
        };
        let streams = || self.streams.iter().enumerate();
        streams()
            .find_map(near)
            .or_else(|| streams().find_map(anywhere))
    }

    fn has_rows_of_gone_files(&self) -> bool {
        let files = self.files.iter().zip(&self.watched.files);
        let mut gone = files.filter(|(_, watched)| watched.is_gone);
        gone.any(|(file, _)| !file.bytes.is_empty())
    }

    /// Scans files from their last known packets on, and puts what was found into the streams.
    fn scan_again(
        &mut self,
        files: &[u32],
        refreshed: &mut Refreshed,
        faults: &mut Vec<kymo_model::FaultReport>,
    ) {
        let mut lasts: HashMap<u32, Last> = HashMap::new();
        for &file in files {
            let last = self.watched.files[file as usize].last;
            if let Some(last) = last.and_then(|(_, number)| self.last_of(file, number)) {
                lasts.insert(file, last);
            }
        }
        let mut streams = std::mem::take(&mut self.streams);
        let mut notes = Vec::new();
        let mut indexed = Vec::new();
        let class = &self.metadata.class;
        let reader = Reader {
            class,
            decoder: &self.decoder,
            files: &self.files,
            keys: &self.keys,
            bytes: self.bytes,
        };
        let sorts = self.watched.options.sorts_packets;
        let mut assembly = Assembly::new(reader, self.quirks, sorts);
        assembly.go_on(&streams);
        let mut scanner = Scanner {
            class,
            decoder: &self.decoder,
            faults,
            notes: &mut notes,
            session_id: self.metadata.session_id,
            compares: self.watched.options.compares_indexes,
        };
        let watched = &mut self.watched;
        for &number in files {
            let file = &self.files[number as usize];
            let last = watched.files[number as usize].last;
            assembly.go_on_in(&streams, number, last.map_or(0, |(_, number)| number));
            let mut report = |found: super::scan::Found| {
                watched.found(&found.packet);
                assembly.add(found);
            };
            match last {
                None => {
                    if !scanner.file(number, file, &mut report) {
                        indexed.push(number);
                    }
                }
                Some((offset, packet)) => {
                    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                    if offset < file.bytes.len() {
                        scanner.scan(number, file, offset, packet, &mut report);
                    }
                }
            }
        }
        let (added, others) = assembly.added(streams.len(), scanner.faults);
        let assembly = Assembly::new(reader, self.quirks, sorts);
        let gone: Vec<bool> = self
            .watched
            .files
            .iter()
            .map(|watched| watched.is_gone)
            .collect();
        for (position, (stream, added)) in streams.iter_mut().zip(added).enumerate() {
            let before = stream.packets.len();
            let first = stream.first;
            let mut merge = Merge {
                reader,
                stream,
                lasts: &lasts,
                gone: &gone,
                copies: None,
                repointed: HashMap::new(),
                appended: None,
                replaced: None,
            };
            added.rows(0).for_each(|row| merge.add(position, row));
            merge.finish(position, refreshed);
            if (stream.packets.len(), stream.first) != (before, first) || added.len() > 0 {
                stream.packets.shrink();
                let end = assembly.end_of(stream.class, &stream.packets);
                stream.set_last_event(end);
            }
        }
        let without_id = streams.iter().filter(|stream| stream.id.is_none()).count();
        let new_infos = infos(
            &others,
            class,
            &self.decoder,
            &self.files,
            without_id as u64,
        );
        self.infos.extend(new_infos);
        for stream in streams.len()..streams.len() + others.len() {
            let from = RowPlace::default();
            refreshed.push(stream, Change::Appended { from });
        }
        streams.extend(others);
        Stream::count_again(&mut streams, class.dialect);
        self.streams = streams;
        self.notes.extend(notes);
        for number in indexed {
            self.files[number as usize].index = None;
        }
        for (file, is_gone) in self.files.iter_mut().zip(gone) {
            if is_gone {
                file.bytes = Bytes::from(Vec::new());
                file.index = None;
            }
        }
    }
}

/// For each event class of a class model, in its order, the position that it has where those of another one
/// come first. `None` unless it has all of those as they are.
fn positions(known: &TraceClass, now: &TraceClass) -> Option<Vec<usize>> {
    let without_streams = |class: &TraceClass| TraceClass {
        streams: Vec::new(),
        clocks: Vec::new(),
        ..class.clone()
    };
    let is_same = known.dialect != Dialect::Rfc11
        && known.clocks.len() <= now.clocks.len()
        && known.streams.len() <= now.streams.len()
        && without_streams(known) == without_streams(now);
    if !is_same {
        return None;
    }
    let mut flat = HashMap::new();
    for (stream, (known, now)) in known.streams.iter().zip(&now.streams).enumerate() {
        let without_events = |class: &StreamClass| StreamClass {
            events: Vec::new(),
            ..class.clone()
        };
        if without_events(known) != without_events(now) {
            return None;
        }
        let events: HashMap<u64, _> = now.events.iter().map(|event| (event.id, event)).collect();
        for event in &known.events {
            if events.get(&event.id) != Some(&event) {
                return None;
            }
            flat.insert((stream, event.id), flat.len());
        }
    }
    let mut next = flat.len()..;
    let streams = now.streams.iter().enumerate();
    let ids =
        streams.flat_map(|(stream, known)| known.events.iter().map(move |it| (stream, it.id)));
    ids.map(|id| flat.get(&id).copied().or_else(|| next.next()))
        .collect()
}
