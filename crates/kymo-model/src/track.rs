//! Tracks: the lines of a time line, and what the rows on them mean.
//!
//! A track is a line on which rows lie in order of time: a stream, a CPU, a thread, a track of an
//! event log, a data source of an archive, a metric. A recording says for each event class which
//! [rule](TrackRule) gives the track of its rows, and what the rows do there: its [`Roles`].
//! Nothing is derived from the names of fields.

use std::fmt;
use std::sync::Arc;

use crate::FieldId;

/// What the rows of a track are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// Things that happened.
    Event,
    /// Values of series.
    Sample,
}

impl EntryKind {
    /// Its name, as scripts see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Sample => "sample",
        }
    }
}

/// One step of a [`TrackPath`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TrackPart {
    /// A stream: the number of its class, and its own number or position.
    Stream {
        /// Number of the stream class.
        class: u64,
        /// Number of the stream, or its position where it has no number.
        id: u64,
    },
    /// A processor.
    Cpu(u64),
    /// A process, by its number.
    Process(i64),
    /// A thread, by its number.
    Thread(i64),
    /// A numbered track of the recording's own.
    Number(u64),
    /// An archive of a database, by its position.
    Archive(u32),
    /// A data source of a database, or of a list of values.
    Source(Arc<str>),
    /// A host that sends metrics.
    Host(Arc<str>),
    /// A plugin of collectd, with its instance.
    Plugin(Arc<str>),
    /// A type of collectd, with its instance.
    Type(Arc<str>),
    /// The value of a field that a query names, as text.
    Value(Arc<str>),
    /// Something else that has a name.
    Name(Arc<str>),
}

impl fmt::Display for TrackPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { class, id } => write!(f, "stream {class}.{id}"),
            Self::Cpu(number) => write!(f, "CPU {number}"),
            Self::Process(number) => write!(f, "process {number}"),
            Self::Thread(number) => write!(f, "thread {number}"),
            Self::Number(number) => write!(f, "track {number}"),
            Self::Archive(position) => write!(f, "archive {position}"),
            Self::Source(name)
            | Self::Host(name)
            | Self::Plugin(name)
            | Self::Type(name)
            | Self::Value(name)
            | Self::Name(name) => f.write_str(name),
        }
    }
}

/// What identifies a track within its recording: the same in every run, with any number of
/// threads, before and after a refresh.
///
/// ```
/// use kymo_model::{TrackPart, TrackPath};
///
/// let thread = TrackPath::new([TrackPart::Process(7), TrackPart::Thread(8)]);
/// assert_eq!(thread.to_string(), "process 7 / thread 8");
/// assert_eq!(thread.parent(), Some(TrackPath::new([TrackPart::Process(7)])));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackPath(Vec<TrackPart>);

impl TrackPath {
    /// A path of these parts, outermost first.
    pub fn new(parts: impl IntoIterator<Item = TrackPart>) -> Self {
        Self(parts.into_iter().collect())
    }

    /// Its parts, outermost first.
    pub fn parts(&self) -> &[TrackPart] {
        &self.0
    }

    /// The path of what it nests in; `None` of the outermost.
    pub fn parent(&self) -> Option<Self> {
        let (_, outer) = self.0.split_last()?;
        (!outer.is_empty()).then(|| Self(outer.to_vec()))
    }
}

impl fmt::Display for TrackPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.0.iter().enumerate() {
            let separator = if position > 0 { " / " } else { "" };
            write!(f, "{separator}{part}")?;
        }
        Ok(())
    }
}

/// A track of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Track {
    /// What identifies it.
    pub path: TrackPath,
    /// What people call it.
    pub name: Arc<str>,
    /// What its rows are.
    pub kind: EntryKind,
    /// Unit of its values, if it has one (`bytes`, `%`).
    pub unit: Option<Arc<str>>,
}

impl Track {
    /// A track without a unit.
    pub fn new(path: TrackPath, name: impl Into<Arc<str>>, kind: EntryKind) -> Self {
        Self {
            path,
            name: name.into(),
            kind,
            unit: None,
        }
    }
}

/// How the track of a row is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackRule {
    /// All rows of a stream are on one track.
    #[default]
    Stream,
    /// The value of an integer field is the position of the track in
    /// [`Recording::tracks`](crate::Recording::tracks).
    Position(FieldId),
    /// Rows with the same value of a field are on one track.
    Field {
        /// The field that distinguishes tracks.
        key: FieldId,
        /// The field that has the name of the track, if there is one.
        name: Option<FieldId>,
    },
    /// Each of these fields is a series, on a track of its own; the positions of the tracks in
    /// [`Recording::tracks`](crate::Recording::tracks) begin here.
    Series {
        /// Position of the track of the first field.
        first: usize,
        /// The fields, in the order of their tracks.
        values: Arc<[FieldId]>,
    },
}

/// What the rows of an event class do on their track, beside being there. A class may have several roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Roles {
    /// What a row does to the slices of its track.
    pub slice: SliceRole,
    /// Fields whose values are counters.
    pub counters: Vec<FieldId>,
    /// Fields whose values are numbers of flows through the row; for an array, all its elements.
    pub flows: Vec<FieldId>,
    /// Fields whose values are numbers of flows that end at the row.
    pub ended_flows: Vec<FieldId>,
    /// The field that has the name of the slice or state, where the class's name is not it.
    pub name: Option<FieldId>,
}

/// What a row does to the slices of its track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceRole {
    /// Nothing: it is an instant.
    #[default]
    Instant,
    /// It begins a slice.
    Begin,
    /// It ends the slice that was begun last.
    End,
    /// It is a whole slice: this field has its duration in nanoseconds.
    Whole(FieldId),
    /// The track is in a state from here on, until the next such row.
    State,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_nest() {
        let path = TrackPath::new([TrackPart::Process(7), TrackPart::Thread(8)]);
        assert_eq!(path.to_string(), "process 7 / thread 8");
        let parent = path.parent().unwrap();
        assert_eq!(parent.parts(), [TrackPart::Process(7)]);
        assert_eq!(parent.parent(), None);
    }
}
