//! What was shown of sessions: files are given back as far as they were, and another run goes on from there.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kymo::pipeline::ReadPlaces;
use kymo_ctf::trace::Trace;
use kymo_io::punch;
use kymo_live::{Position, Status, StreamName};
use kymo_model::{Recording, RowPlace};
use kymo_time::Timestamp;

use super::Growing;
use crate::terminal::Failure;

/// The first line of a file of positions.
const HEAD: &str = "kymo-live 1";
/// The largest file of positions.
const LARGEST: u64 = 64 << 20;

/// Where another run has left off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    streams: BTreeMap<StreamName, ShownStream>,
}

/// How far a stream was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ShownStream {
    /// The last packet of which all was shown.
    position: Position,
    /// Of the packet behind it, the events before this were shown.
    since: Option<Timestamp>,
}

impl Resume {
    /// Reads a file of positions; one that does not exist is none.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not one.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = match std::fs::metadata(path) {
            Ok(metadata) if metadata.len() > LARGEST => Err("it is too large".to_string()),
            Ok(_) => std::fs::read_to_string(path).map_err(|error| error.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => Err(error.to_string()),
        };
        let parsed = text.and_then(|text| {
            Self::parse(&text).ok_or_else(|| "it is not a file of `--live-resume`".to_string())
        });
        parsed.map_err(|error| Failure::Usage(format!("error: `{shown}`: {error}")))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let mut streams = BTreeMap::new();
        for line in lines {
            let mut fields = line.split('\t');
            let mut field = || fields.next().map(str::to_owned);
            let name = StreamName {
                host: field()?,
                session: field()?,
                path: field()?,
                channel: field()?,
            };
            let position = Position {
                begin: field()?.parse().ok()?,
                end: field()?.parse().ok()?,
            };
            let since = match &*field()? {
                "-" => None,
                nanos => Some(Timestamp::from_nanos(nanos.parse().ok()?)),
            };
            streams.insert(name, ShownStream { position, since });
        }
        Some(Self { streams })
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (name, ShownStream { position, since }) in &self.streams {
            let StreamName {
                host,
                session,
                path,
                channel,
            } = name;
            // A name that would end its line or field is not kept: its events come again.
            let names = [host, session, path, channel];
            if names.iter().any(|name| name.contains(['\t', '\n', '\r'])) {
                continue;
            }
            let Position { begin, end } = position;
            let since = since.map(|since| since.as_nanos().to_string());
            let since = since.as_deref().unwrap_or("-");
            let _ = writeln!(
                text,
                "{host}\t{session}\t{path}\t{channel}\t{begin}\t{end}\t{since}"
            );
        }
        text
    }

    /// Whether nothing was shown before.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The last packet of each stream that was shown as a whole.
    pub fn positions(&self) -> BTreeMap<StreamName, Position> {
        let streams = self.streams.iter();
        streams
            .map(|(name, stream)| (name.clone(), stream.position))
            .collect()
    }

    /// The time before which the events of the next packet of a stream were shown.
    pub fn since(&self, name: &StreamName) -> Option<Timestamp> {
        self.streams.get(name)?.since
    }
}

/// Handles files whose events were shown.
#[derive(Debug, Default)]
pub struct Shown {
    /// Of each file: the bytes that were shown, and those that were given back.
    files: BTreeMap<PathBuf, (u64, u64)>,
    resume: Resume,
    /// What the file of positions holds.
    written: String,
}

impl Shown {
    /// Nothing was shown in this run; before it, what `resume` says.
    pub fn new(resume: Resume) -> Self {
        Self {
            resume,
            ..Self::default()
        }
    }

    /// The stream that a file of a trace is.
    fn name(statuses: &[Status], path: &Path) -> Option<StreamName> {
        let mut streams = statuses.iter().flat_map(|status| &status.streams);
        let found = streams.find(|stream| stream.file.path == path);
        found.map(|stream| stream.name.clone())
    }

    /// Where the streams of recordings begin that were shown before.
    pub fn begin(&self, growing: &Growing, places: &mut ReadPlaces, known: &mut Vec<usize>) {
        let recordings = growing.timeline.recordings();
        known.resize(recordings.len(), 0);
        if self.resume.is_empty() {
            return;
        }
        let statuses = growing.live.statuses();
        for (recording, known) in known.iter_mut().enumerate() {
            let Some(trace) = growing.trace(recording) else {
                continue;
            };
            let count = trace.streams().len();
            for stream in *known..count {
                let name = first_file(trace, stream).and_then(|path| Self::name(&statuses, path));
                if let Some(since) = name.and_then(|name| self.resume.since(&name)) {
                    places.restart(recording, stream, Some(since));
                }
            }
            *known = count;
        }
    }

    /// Gives back what was shown, and notes it for another run.
    ///
    /// # Errors
    ///
    /// The file of positions cannot be written.
    pub fn update(
        &mut self,
        growing: &Growing,
        places: &ReadPlaces,
        before: Timestamp,
        file: Option<&Path>,
    ) -> Result<(), Failure> {
        let statuses = growing.live.statuses();
        for recording in 0..growing.timeline.recordings().len() {
            let Some(trace) = growing.trace(recording) else {
                continue;
            };
            for stream in 0..trace.streams().len() {
                let next = places.next(recording, stream);
                let last = next.chunk.checked_sub(1);
                if file.is_some()
                    && let Some(path) = first_file(trace, stream)
                    && let Some(name) = Self::name(&statuses, path)
                {
                    let shown = self.resume.streams.entry(name).or_default();
                    let chunk = last.and_then(|last| trace.chunk(stream, last));
                    if let Some((begin, end)) = chunk.and_then(|chunk| chunk.begin.zip(chunk.end)) {
                        shown.position = Position { begin, end };
                    }
                    if next != RowPlace::default() {
                        shown.since = (next.number > 0).then_some(before);
                    }
                }
                let Some(last) = last else {
                    continue;
                };
                self.give_back(growing, trace, stream, last);
            }
        }
        if let Some(file) = file {
            let text = self.resume.text();
            if text != self.written {
                store(file, text.as_bytes())?;
                self.written = text;
            }
        }
        Ok(())
    }

    /// Gives back what is before the last packet that was shown, by which a trace finds what follows.
    fn give_back(&mut self, growing: &Growing, trace: &Trace, stream: usize, last: usize) {
        let Some(packet) = trace.packet(stream, last) else {
            return;
        };
        let Some(file) = trace.files().get(packet.file as usize) else {
            return;
        };
        let (shown, freed) = self.files.entry(file.path.to_path_buf()).or_default();
        let end = packet.offset + packet.total_bits.div_ceil(8);
        let (more, begin) = (end.saturating_sub(*shown), *freed);
        if more == 0 {
            return;
        }
        *shown = end;
        let mut given = 0;
        // Seldom, and much at once.
        if packet.offset.saturating_sub(begin) >= 1 << 20 {
            // A file system that cannot do this keeps the bytes.
            given = punch(&file.path, begin..packet.offset).unwrap_or(0);
            *freed = packet.offset - packet.offset % 4096;
        }
        growing.live.shown(&file.path, more, given);
    }
}

/// Replaces the previous file of positions. It is not a temporary file of the program: those are removed
/// by a thread that ends the program at the first signal, and here the first one only ends the reading.
fn store(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = file.as_os_str().to_os_string();
    name.push(".new");
    let new = PathBuf::from(name);
    let stored = fs::write(&new, bytes).and_then(|()| fs::rename(&new, file));
    stored.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{}: {}", file.display(), kymo_io::reason(&error)),
        )
    })
}

/// The file in which the packets of a stream are: here it is always one.
fn first_file(trace: &Trace, stream: usize) -> Option<&Path> {
    let packet = trace.packet(stream, trace.first_chunk(stream))?;
    let file = trace.files().get(packet.file as usize)?;
    Some(&file.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let name = |channel: &str| StreamName {
            host: "vm".into(),
            session: "a b".into(),
            path: "ust/uid/0/64-bit".into(),
            channel: channel.into(),
        };
        let position = Position { begin: 5, end: 9 };
        let whole = ShownStream {
            position,
            since: None,
        };
        let partly = ShownStream {
            since: Some(Timestamp::from_nanos(-7)),
            ..whole
        };
        let resume = Resume {
            streams: [(name("c_0"), whole), (name("c_1"), partly)].into(),
        };
        assert_eq!(Resume::parse(&resume.text()), Some(resume.clone()));
        let mut odd = resume.clone();
        odd.streams.insert(name("x\ty"), whole);
        assert_eq!(Resume::parse(&odd.text()), Some(resume));
        for text in [
            "",
            "kymo-live 2\n",
            "kymo-live 1\nx\n",
            "kymo-live 1\na\tb\tc\td\t1\t2\n",
        ] {
            assert_eq!(Resume::parse(text), None, "{text}");
        }
    }
}
