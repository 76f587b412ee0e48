//! What databases with the same sources and archives have in common.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kymo_model::{
    EntryKind, EventClass, Kind, Schema, Scope, StreamInfo, Track, TrackPart, TrackPath,
};
use kymo_time::{Clock, NANOS_PER_SECOND, Origin};

use crate::Database;

/// What databases with the same sources and archives have in common: of thousands, most do.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) streams: Vec<StreamInfo>,
    pub(super) tracks: Vec<Track>,
    pub(super) classes: Vec<EventClass>,
    pub(super) clock: Arc<Clock>,
}

/// The layouts that are in use, by what makes them.
static LAYOUTS: Mutex<BTreeMap<Vec<u8>, Weak<Layout>>> = Mutex::new(BTreeMap::new());

/// Maximum number of layouts that are shared. Further databases have a layout of their own.
const MOST_LAYOUTS: usize = 1024;

impl Layout {
    /// The layout of a database.
    pub(super) fn of(database: &Database) -> Arc<Self> {
        let mut key = (database.sources.len() as u64).to_le_bytes().to_vec();
        for source in &database.sources {
            key.extend((source.name.as_bytes().len() as u64).to_le_bytes());
            key.extend(source.name.as_bytes());
        }
        for (archive, info) in database.archives.iter().enumerate() {
            key.extend(info.kind.name().as_bytes());
            key.push(0);
            key.extend(
                database
                    .row_seconds(archive)
                    .unwrap_or(u64::MAX)
                    .to_le_bytes(),
            );
        }
        let mut layouts = LAYOUTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = layouts.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let new = Arc::new(Self::new(database));
        if layouts.len() >= MOST_LAYOUTS {
            layouts.retain(|_, layout| layout.strong_count() > 0);
        }
        if layouts.len() < MOST_LAYOUTS {
            layouts.insert(key, Arc::downgrade(&new));
        }
        new
    }

    fn new(database: &Database) -> Self {
        let clock = Arc::new(clock());
        let packet_schema = Arc::new(Schema::new());
        let classes: Vec<EventClass> = (0..database.archives.len())
            .map(|archive| event_class(database, archive))
            .collect();
        let streams = classes
            .iter()
            .map(|class| StreamInfo {
                class: class.id,
                id: Some(0),
                name: class.name.clone().unwrap_or_default(),
                clock: Some(Arc::clone(&clock)),
                packet_schema: Arc::clone(&packet_schema),
            })
            .collect();
        Self {
            streams,
            tracks: tracks_of(&classes),
            classes,
            clock,
        }
    }
}

/// Nanoseconds since 1970, which are exact on the common line.
pub(super) fn clock() -> Clock {
    Clock {
        frequency: NANOS_PER_SECOND.unsigned_abs(),
        origin: Origin::UnixEpoch,
        ..Clock::default()
    }
}

/// A name as it is; of what is not UTF-8 each wrong byte NN is `\xNN`.
pub(super) fn name_of(bytes: &[u8]) -> String {
    let mut name = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        name.push_str(piece.valid());
        for byte in piece.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

fn event_class(database: &Database, archive: usize) -> EventClass {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    for source in &database.sources {
        let name = name_of(source.name.as_bytes());
        let value = schema.push_child(root, Some(name.into()), Kind::Optional);
        schema.push_child(value, None, Kind::Float { bits: 64 });
    }
    let kind = database.archives[archive].kind.name();
    let seconds = database.row_seconds(archive).unwrap_or(u64::MAX);
    EventClass {
        id: archive as u64,
        stream_class: archive as u64,
        name: Some(format!("{kind}/{seconds}").into()),
        log_level: None,
        emf_uri: None,
        schema,
    }
}

/// A track for each data source of each archive.
fn tracks_of(classes: &[EventClass]) -> Vec<Track> {
    let mut tracks = Vec::new();
    for (archive, class) in classes.iter().enumerate() {
        for name in class
            .schema
            .fields()
            .iter()
            .filter_map(|field| field.name.clone())
        {
            let archive = TrackPart::Archive(archive as u32);
            let path = TrackPath::new([archive, TrackPart::Source(name.clone())]);
            let title = format!("{name} {}", class.name.as_deref().unwrap_or_default());
            tracks.push(Track::new(path, title, EntryKind::Sample));
        }
    }
    tracks
}
