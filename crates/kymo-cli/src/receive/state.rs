//! How far a session has come, in a file beside what has come: `kymo receive --resume` goes on from there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde_json::{Value, json};

/// The name of the file, which begins with a dot: those who read traces pass over it.
pub(super) const NAME: &str = ".kymo-receive.json";
/// Larger files are not of this program: one of all streams there can be, with names, is smaller.
const LARGEST: u64 = 256 << 20;
/// The version of the file.
const VERSION: u64 = 1;

/// How far a session has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) session: u64,
    /// Packets that have arrived, of all streams.
    pub(super) arrived: u64,
    pub(super) streams: Vec<StreamState>,
}

/// How far a stream has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamState {
    pub(super) stream: u32,
    /// The path of its file below the directory; `None` while the sender has not named it.
    pub(super) name: Option<String>,
    pub(super) is_metadata: bool,
    /// Whether there is a file.
    pub(super) has_file: bool,
    /// The number of the packet that it goes on with.
    pub(super) next: u32,
    /// Bytes of its file.
    pub(super) bytes: u64,
    /// The first and last of packets that never came.
    pub(super) lost: Vec<(u64, u64)>,
}

impl State {
    /// Writes it to a directory; it replaces the one before as a whole.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let streams = self.streams.iter().map(|stream| {
            json!({
                "stream": stream.stream,
                "name": stream.name,
                "metadata": stream.is_metadata,
                "file": stream.has_file,
                "next": stream.next,
                "bytes": stream.bytes,
                "lost": stream.lost,
            })
        });
        let state = json!({
            "kymo_receive": VERSION,
            "session": format!("{:016x}", self.session),
            "arrived": self.arrived,
            "streams": streams.collect::<Vec<_>>(),
        });
        // Not as other files are replaced: for those, signals end the program at once, and this one goes on.
        let new = directory.join(format!("{NAME}.new"));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).open(&new)?;
        writeln!(file, "{state}")?;
        fs::rename(new, directory.join(NAME))
    }

    /// Reads the one of a directory; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Those of the system, and where it is not what [`write`](Self::write) writes.
    pub(super) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let mut text = String::new();
        match File::open(directory.join(NAME)) {
            Ok(file) => file.take(LARGEST).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = || io::Error::other("expected the state of `kymo receive`");
        let state: Value = serde_json::from_str(&text).map_err(|_| wrong())?;
        Self::of(&state).map(Some).ok_or_else(wrong)
    }

    fn of(state: &Value) -> Option<Self> {
        (state["kymo_receive"].as_u64()? == VERSION).then_some(())?;
        let streams = state["streams"].as_array()?;
        Some(Self {
            session: u64::from_str_radix(state["session"].as_str()?, 16).ok()?,
            arrived: state["arrived"].as_u64()?,
            streams: streams.iter().map(StreamState::of).collect::<Option<_>>()?,
        })
    }

    /// Removes the one of a directory, once there is nothing to go on with.
    pub(super) fn remove(directory: &Path) -> io::Result<()> {
        match fs::remove_file(directory.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl StreamState {
    fn of(stream: &Value) -> Option<Self> {
        let lost = stream["lost"].as_array()?.iter();
        let lost = lost.map(|lost| {
            let (first, last) = (lost[0].as_u64()?, lost[1].as_u64()?);
            (first <= last && last < u64::from(u32::MAX)).then_some((first, last))
        });
        Some(Self {
            stream: u32::try_from(stream["stream"].as_u64()?).ok()?,
            name: match &stream["name"] {
                Value::Null => None,
                name => Some(name.as_str()?.to_owned()),
            },
            is_metadata: stream["metadata"].as_bool()?,
            has_file: stream["file"].as_bool()?,
            next: u32::try_from(stream["next"].as_u64()?).ok()?,
            bytes: stream["bytes"].as_u64()?,
            lost: lost.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let home = tempfile::TempDir::new().unwrap();
        assert_eq!(State::read(home.path()).unwrap(), None);
        let state = State {
            session: 0xFEDC_BA98_7654_3210,
            arrived: 7,
            streams: vec![
                StreamState {
                    stream: 1,
                    name: Some("a/b\n\"c".to_owned()),
                    is_metadata: true,
                    has_file: true,
                    next: 3,
                    bytes: 1 << 40,
                    lost: vec![(1, 1)],
                },
                StreamState {
                    stream: 65_535,
                    next: u32::MAX - 1,
                    ..StreamState::default()
                },
            ],
        };
        for state in [State::default(), state] {
            state.write(home.path()).unwrap();
            assert_eq!(State::read(home.path()).unwrap(), Some(state));
        }
        for damaged in ["", "{", "[]", r#"{"kymo_receive":2}"#] {
            fs::write(home.path().join(NAME), damaged).unwrap();
            assert!(State::read(home.path()).is_err(), "{damaged}");
        }
        State::remove(home.path()).unwrap();
        State::remove(home.path()).unwrap();
        assert_eq!(State::read(home.path()).unwrap(), None);
    }
}
