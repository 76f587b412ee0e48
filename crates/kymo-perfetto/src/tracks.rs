//! Tracks, found while a file is read: where its rows are, and what processes and threads are
//! called, which may be said long after the first row.

use std::sync::Arc;

use foldhash::HashMap;
use kymo_model::{EntryKind, Track, TrackPart, TrackPath};

/// Maximum number of distinct tracks; the rest share one.
const MOST_TRACKS: usize = 1 << 20;
/// Names of processes and threads, and descriptions of tracks, that are kept.
const MOST_NAMES: usize = 1 << 20;
/// How deep tracks may nest.
const MOST_DEPTH: usize = 16;
/// Bytes of a name.
const MOST_NAME: usize = 256;

/// What distinguishes a process or thread from others: mostly a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    Number(i64),
    Text(Arc<str>),
}

/// Where rows are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// All that has no other place.
    Global,
    /// The track of those that are too many.
    Other,
    Cpu(u32),
    Process(Id),
    /// A thread, of a process that may not be known yet.
    Thread(Option<Id>, Id),
    /// A track with a description.
    Uuid(u64),
    /// A track of a process, or of none, that is called by a name: events or a series.
    Named(Option<Id>, Arc<str>, EntryKind),
}

/// What is said of a track that has a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptor {
    pub(crate) parent: Option<u64>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) process: Option<Id>,
    pub(crate) thread: Option<(Id, Id)>,
    pub(crate) counter: Option<CounterUnit>,
}

/// What is said of a counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterUnit {
    pub(crate) unit: Option<Arc<str>>,
    pub(crate) multiplier: Option<i64>,
    pub(crate) is_incremental: bool,
}

/// The tracks found so far.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    by_place: HashMap<Place, u32>,
    places: Vec<Place>,
    descriptors: HashMap<u64, Descriptor>,
    processes: HashMap<Id, Arc<str>>,
    threads: HashMap<(Option<Id>, Id), Arc<str>>,
    process_of: HashMap<Id, Id>,
    /// Rows on the track that those share which are too many.
    pub(crate) folded_rows: u64,
    /// Names and descriptions that were not kept.
    pub(crate) folded_names: u64,
    /// Tracks that lie within themselves, or within too many others.
    pub(crate) cut: u64,
}

/// A name as it is kept.
pub(crate) fn name_of(text: &[u8]) -> Arc<str> {
    let text = &text[..text.len().min(MOST_NAME)];
    String::from_utf8_lossy(text).into()
}

impl Tracks {
    /// The number of the track at a place.
    pub(crate) fn at(&mut self, place: &Place) -> u32 {
        if let Some(&number) = self.by_place.get(place) {
            return number;
        }
        if self.places.len() >= MOST_TRACKS && *place != Place::Other {
            self.folded_rows += 1;
            return self.at(&Place::Other);
        }
        let number = self.places.len() as u32;
        self.places.push(place.clone());
        self.by_place.insert(place.clone(), number);
        number
    }

    pub(crate) fn describe(&mut self, uuid: u64, descriptor: Descriptor) {
        let is_kept = has_room(&self.descriptors, &uuid, &mut self.folded_names);
        if !is_kept {
            return;
        }
        // A later description adds to what was said.
        let known = self.descriptors.entry(uuid).or_default();
        let Descriptor {
            parent,
            name,
            process,
            thread,
            counter,
        } = descriptor;
        known.parent = parent.filter(|&parent| parent != 0).or(known.parent);
        known.name = name.or(known.name.take());
        known.process = process.or(known.process.take());
        known.thread = thread.or(known.thread.take());
        known.counter = counter.or(known.counter.take());
    }

    pub(crate) fn descriptor(&self, uuid: u64) -> Option<&Descriptor> {
        self.descriptors.get(&uuid)
    }

    pub(crate) fn name_process(&mut self, process: Id, name: &[u8]) {
        if !name.is_empty() && has_room(&self.processes, &process, &mut self.folded_names) {
            self.processes.insert(process, name_of(name));
        }
    }

    pub(crate) fn name_thread(&mut self, process: Option<Id>, thread: Id, name: &[u8]) {
        let key = (process, thread);
        if !name.is_empty() && has_room(&self.threads, &key, &mut self.folded_names) {
            self.threads.insert(key, name_of(name));
        }
    }

    /// Says of which process a thread is.
    pub(crate) fn belongs(&mut self, thread: Id, process: Id) {
        if has_room(&self.process_of, &thread, &mut self.folded_names) {
            self.process_of.insert(thread, process);
        }
    }

    /// The process of a thread, as far as it is known.
    pub(crate) fn process_of(&self, thread: &Id) -> Option<&Id> {
        self.process_of.get(thread)
    }

    /// The tracks, those that others are in included, and for each [number](Self::at) the position
    /// of its track among them.
    pub(crate) fn finish(&mut self) -> (Vec<Track>, Vec<u32>) {
        let mut finished = Finished::default();
        let places = std::mem::take(&mut self.places);
        let numbers = places.iter().map(|place| {
            let (position, _) = finished.add(self, place);
            position
        });
        let numbers = numbers.collect();
        self.cut += finished.cut;
        (finished.tracks, numbers)
    }

    /// Whether the tracks that one is in end, soon enough.
    fn has_root(&self, uuid: u64) -> bool {
        let parent = |&uuid: &u64| self.descriptors.get(&uuid)?.parent;
        std::iter::successors(Some(uuid), parent)
            .take(MOST_DEPTH + 1)
            .count()
            <= MOST_DEPTH
    }

    fn thread_name(&self, process: Option<&Id>, thread: &Id) -> Option<&Arc<str>> {
        let by_process = self.threads.get(&(process.cloned(), thread.clone()));
        by_process.or_else(|| self.threads.get(&(None, thread.clone())))
    }
}

fn has_room<K: Eq + std::hash::Hash, V>(names: &HashMap<K, V>, key: &K, folded: &mut u64) -> bool {
    let has_room = names.len() < MOST_NAMES || names.contains_key(key);
    *folded += u64::from(!has_room);
    has_room
}

#[derive(Default)]
struct Finished {
    tracks: Vec<Track>,
    by_path: HashMap<TrackPath, u32>,
    cut: u64,
}

impl Finished {
    /// Adds the track at a place, and those it is in.
    fn add(&mut self, tracks: &Tracks, place: &Place) -> (u32, Vec<TrackPart>) {
        let (within, part, name, kind, unit) = match place {
            Place::Global => (
                None,
                TrackPart::Name("global".into()),
                None,
                EntryKind::Event,
                None,
            ),
            Place::Other => (
                None,
                TrackPart::Name("other".into()),
                None,
                EntryKind::Event,
                None,
            ),
            &Place::Cpu(cpu) => (
                None,
                TrackPart::Cpu(cpu.into()),
                None,
                EntryKind::Event,
                None,
            ),
            Place::Process(id) => {
                let part = match id {
                    &Id::Number(number) => TrackPart::Process(number),
                    Id::Text(text) => TrackPart::Name(Arc::clone(text)),
                };
                let name = tracks.processes.get(id).cloned();
                (None, part, name, EntryKind::Event, None)
            }
            Place::Thread(process, id) => {
                let process = process.as_ref().or_else(|| tracks.process_of.get(id));
                let part = match id {
                    &Id::Number(number) => TrackPart::Thread(number),
                    Id::Text(text) => TrackPart::Name(Arc::clone(text)),
                };
                let name = tracks.thread_name(process, id).cloned();
                let within = process.cloned().map(Place::Process);
                (within, part, name, EntryKind::Event, None)
            }
            Place::Named(process, name, kind) => {
                let within = process.clone().map(Place::Process);
                let part = match kind {
                    EntryKind::Event => TrackPart::Name(Arc::clone(name)),
                    EntryKind::Sample => TrackPart::Source(Arc::clone(name)),
                };
                (within, part, Some(Arc::clone(name)), *kind, None)
            }
            &Place::Uuid(uuid) => {
                let descriptor = tracks.descriptors.get(&uuid).cloned().unwrap_or_default();
                let Descriptor {
                    parent,
                    name,
                    process,
                    thread,
                    counter,
                } = descriptor;
                let within = match (thread, process) {
                    (Some((process, thread)), _) => Some(Place::Thread(Some(process), thread)),
                    (None, Some(process)) => Some(Place::Process(process)),
                    (None, None) => None,
                };
                if let (Some(same), None) = (&within, &counter) {
                    return self.add(tracks, same);
                }
                let parent = parent.filter(|_| {
                    let is_cut = !tracks.has_root(uuid);
                    self.cut += u64::from(is_cut);
                    !is_cut
                });
                let parent = parent.map(Place::Uuid);
                let kind = match counter {
                    Some(_) => EntryKind::Sample,
                    None => EntryKind::Event,
                };
                let unit = counter.and_then(|counter| counter.unit);
                (within.or(parent), TrackPart::Number(uuid), name, kind, unit)
            }
        };
        let within = within.map(|within| self.add(tracks, &within).1);
        let mut parts = within.unwrap_or_default();
        parts.push(part);
        let path = TrackPath::new(parts.iter().cloned());
        let position = match self.by_path.get(&path) {
            Some(&position) => position,
            None => {
                let position = self.tracks.len() as u32;
                let name = name.or_else(|| parts.last().map(|part| part.to_string().into()));
                let mut track = Track::new(path.clone(), name.unwrap_or_default(), kind);
                track.unit = unit;
                self.tracks.push(track);
                self.by_path.insert(path, position);
                position
            }
        };
        (position, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tracks: &mut Tracks) -> Vec<String> {
        let (all, numbers) = tracks.finish();
        numbers
            .iter()
            .map(|&number| {
                let track = &all[number as usize];
                format!("{} = {}", track.path, track.name)
            })
            .collect()
    }

    #[test]
    fn names_come_late() {
        let mut tracks = Tracks::default();
        let id = Id::Number;
        tracks.at(&Place::Thread(None, id(8)));
        tracks.at(&Place::Thread(Some(id(7)), id(8)));
        tracks.at(&Place::Uuid(9));
        tracks.at(&Place::Thread(None, id(5)));
        tracks.belongs(id(8), id(7));
        tracks.name_process(id(7), b"daemon");
        tracks.name_thread(None, id(8), b"worker");
        let thread = Some((id(7), id(8)));
        let descriptor = Descriptor {
            thread,
            ..Descriptor::default()
        };
        tracks.describe(9, descriptor);
        let expected = "process 7 / thread 8 = worker";
        let other = "thread 5 = thread 5";
        assert_eq!(shown(&mut tracks), [expected, expected, expected, other]);
    }

    #[test]
    fn tracks_within_themselves_are_cut() {
        let mut tracks = Tracks::default();
        for uuid in [1, 2, u64::MAX] {
            tracks.at(&Place::Uuid(uuid));
            let parent = Some(if uuid == 1 { 2 } else { 1 });
            let descriptor = Descriptor {
                parent,
                ..Descriptor::default()
            };
            tracks.describe(uuid, descriptor);
        }
        let (all, numbers) = tracks.finish();
        assert_eq!((numbers.len(), tracks.cut), (3, 3));
        assert_eq!(all.len(), 3);
    }
}
