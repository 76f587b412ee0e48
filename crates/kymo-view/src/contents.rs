//! What the page receives about recordings and their tracks: all of it at first, then what has changed.
//!
//! Of tens of thousands of files, nearly all are alike: what several recordings, tracks or places have in common is sent
//! once, and named by its position in a list of the same answer. `web/contents.js` reads it.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::atomic::Ordering;

use kymo::AnyRecording;
use kymo_model::{Recording, Scope, Track};
use serde_json::{Value, json};

use crate::api::Api;
use crate::matches::MOST_MATCHES;
use crate::scene::Scene;

/// At most this many field names of a recording are listed.
const MOST_NAMES: usize = 300;

/// At most this many faults of a recording are listed.
const MOST_FAULTS: usize = 200;

/// Since when recordings are what they are.
#[derive(Debug, Default)]
pub(crate) struct Described {
    /// By recording: the key of its kind, and the generation.
    recordings: Vec<(u64, u64)>,
    /// The generation with which the list began.
    begun: u64,
}

impl Described {
    /// Compares recordings with those that were shown before.
    pub(crate) fn new(recordings: &[AnyRecording], before: Option<&Self>, generation: u64) -> Self {
        let now = generation + 1;
        let described = recordings.iter().enumerate().map(|(at, recording)| {
            let kind = kind_key(recording);
            let known = before.and_then(|before| before.recordings.get(at));
            let since = known.filter(|known| known.0 == kind).map(|known| known.1);
            (kind, since.unwrap_or(now))
        });
        Self {
            recordings: described.collect(),
            begun: before.map_or(generation, |before| before.begun),
        }
    }
}

/// What a recording has in common with others of its kind.
fn kind(recording: &AnyRecording) -> Value {
    json!({
        "what": recording.what(),
        "format": format!("{} {}", recording.format().name, recording.format().version),
        "streams": recording.streams().len(),
        "classes": recording.event_classes().iter().map(|class| class.name.as_deref()).collect::<Vec<_>>(),
        "fields": field_names(recording),
        "notes": recording.notes(),
    })
}

/// A key that distinguishes kinds of recordings, without describing them.
fn kind_key(recording: &AnyRecording) -> u64 {
    let mut hasher = DefaultHasher::new();
    (
        recording.what(),
        recording.format().name,
        recording.format().version,
    )
        .hash(&mut hasher);
    (recording.streams().len(), recording.notes()).hash(&mut hasher);
    for class in recording.event_classes() {
        class.name.hash(&mut hasher);
        for field in class.schema.fields() {
            field.name.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The names of the fields that colour events.
fn field_names(recording: &impl Recording) -> Vec<&str> {
    let mut names = std::collections::BTreeSet::new();
    for class in recording.event_classes() {
        for scope in [Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
            let Some(root) = class.schema.root(scope) else {
                continue;
            };
            let children = class.schema.field(root).children.iter();
            names.extend(children.filter_map(|&child| class.schema.field(child).name.as_deref()));
        }
        if names.len() >= MOST_NAMES {
            break;
        }
    }
    names.into_iter().take(MOST_NAMES).collect()
}

/// A list in which each thing is once.
struct Once<K> {
    positions: HashMap<K, usize>,
    list: Vec<Value>,
}

impl<K: Hash + Eq> Once<K> {
    fn new() -> Self {
        Self {
            positions: HashMap::new(),
            list: Vec::new(),
        }
    }

    /// The position of a thing.
    fn at(&mut self, key: K, describe: impl FnOnce() -> Value) -> usize {
        let next = self.list.len();
        let at = *self.positions.entry(key).or_insert(next);
        if at == next {
            self.list.push(describe());
        }
        at
    }
}

/// Numbers as `first, count, ...` of runs of successive ones.
fn runs(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut runs: Vec<u32> = Vec::new();
    for number in numbers {
        match runs.as_mut_slice() {
            [.., first, count] if first.checked_add(*count) == Some(number) => *count += 1,
            _ => runs.extend([number, 1]),
        }
    }
    runs
}

impl Api {
    /// Everything about the recordings and their tracks that the page does not know yet: `generation` says when it has
    /// asked the last time.
    pub(crate) fn scene(&self, request: &Value) -> Value {
        let scene = &*self.scene;
        let state = scene.state();
        let found = scene.wanted.as_ref().map(|found| {
            let found = found.lock();
            json!({"rows": found.count, "cut": found.is_cut, "limit": MOST_MATCHES})
        });
        let known = request["generation"].as_u64().unwrap_or(0);
        if known != 0 && scene.is_seen.load(Ordering::Relaxed) {
            // It has drawn what it knows.
            scene.begin();
        }
        if known == state.generation {
            return json!({
                "generation": state.generation, "same": true, "filtered": found,
                "bytes_read": scene.index.bytes_read(), "settled": state.is_settled,
            });
        }
        // Others are at the same positions: nothing of what was known holds.
        let is_new = known < scene.described.begun || known == 0;
        let known = if is_new { 0 } else { known };
        let is_same_epoch = !is_new && request["epoch"].as_u64() == Some(scene.epoch);
        let from = |key: &str| match is_same_epoch {
            true => request[key].as_u64().unwrap_or(0) as usize,
            false => 0,
        };
        let (notices, faults) = (from("notices"), from("faults"));
        let (begin, end) = state.range().unwrap_or_default();
        let mut answer = json!({
            "generation": state.generation,
            "new": is_new,
            "whole": state.is_whole,
            "checked": state.is_checked,
            "settled": state.is_settled,
            "bytes": scene.bytes,
            "bytes_read": state.bytes_read,
            "begin": begin.to_string(),
            "end": end.to_string(),
            "untimed": state.untimed,
            "live": scene.options.is_live,
            "epoch": scene.epoch,
            "changed": scene.changed.map(|time| time.to_string()),
            "gmt": scene.options.gmt,
            "relative": scene.options.is_relative,
            "filtered": found,
            "slices_cut": state.slices.is_cut,
            "recordings": recordings(scene, known),
            "notices_from": notices,
            "notices": state.notices.iter().skip(notices).map(|notice| json!({
                "recording": notice.recording,
                "stream": &*scene.recordings()[notice.recording].streams()[notice.stream].name,
                "begin": notice.begin.to_string(),
                "end": notice.end.to_string(),
                "text": notice.text,
                "damage": notice.is_damage,
            })).collect::<Vec<_>>(),
            "faults_from": faults,
            "faults": state.faults.iter().skip(faults).collect::<Vec<_>>(),
            "most_faults": MOST_FAULTS,
        });
        if state.order_since > known {
            answer["order"] = runs(state.shown.iter().map(|track| track.number)).into();
        }
        let first = if is_new {
            0
        } else {
            request["tracks"].as_u64().unwrap_or(0)
        };
        answer["tracks"] = tracks(scene, u32::try_from(first).unwrap_or(0));
        let changed = state.shown.iter().filter(|track| {
            track.since > known
                || (state.slices_since > known && state.slices.depths(track.number) > 0)
        });
        let mut once = Once::new();
        let mut rows = Vec::new();
        for track in changed {
            let values = track.bin.values.as_deref();
            let values = values.map(|values| (values.min, values.max, values.count));
            let bits = values.map(|(min, max, count)| (min.to_bits(), max.to_bits(), count));
            let depths = state.slices.depths(track.number);
            let key = (
                track.bin.count,
                track.bin.first,
                track.bin.last,
                bits,
                depths,
                track.is_estimate,
            );
            let at = once.at(key, || {
                json!([
                    track.bin.count,
                    track.bin.first.to_string(),
                    track.bin.last.to_string(),
                    values,
                    depths,
                    track.is_estimate,
                ])
            });
            rows.extend([u64::from(track.number), at as u64]);
        }
        answer["rows"] = rows.into();
        answer["states"] = once.list.into();
        answer
    }

    /// What identifies recordings, wherever they are: for links that outlive the server.
    pub(crate) fn fingerprints(&self) -> Value {
        let recordings = self.scene.recordings().iter();
        json!({"fingerprints": recordings.map(crate::keep::fingerprint).collect::<Vec<_>>()})
    }
}

/// Recordings that have changed: a list of `position, kind, directory, name` one after the other.
fn recordings(scene: &Scene, known: u64) -> Value {
    let mut kinds = Once::new();
    let mut directories = Once::new();
    let mut list: Vec<Value> = Vec::new();
    let described = &scene.described.recordings;
    for (at, (recording, (key, since))) in scene.recordings().iter().zip(described).enumerate() {
        if *since <= known {
            continue;
        }
        let path = recording.path();
        let parent = path.parent().unwrap_or(Path::new(""));
        let shown = path.display().to_string();
        let directory = parent.display().to_string();
        // What the name begins behind, so that both together are the path as it is.
        let name = shown.strip_prefix(directory.as_str()).unwrap_or(&shown);
        let directory = if name.len() == shown.len() {
            ""
        } else {
            &directory
        };
        let directory = directories.at(directory.to_string(), || directory.into());
        let kind = kinds.at(key, || kind(recording));
        list.extend([at.into(), kind.into(), directory.into(), name.into()]);
    }
    json!({"count": described.len(), "kinds": kinds.list, "directories": directories.list, "list": list})
}

/// Tracks from a number on: a list of `first number, recording, set`, where a set is the tracks of successive numbers.
fn tracks(scene: &Scene, first: u32) -> Value {
    let mut sets = Once::new();
    let mut list = Vec::new();
    scene.tracks.for_each_run(first, |number, recording, run| {
        let set: Vec<&Track> = run.iter().map(|(_, track)| track).collect();
        let mut hasher = DefaultHasher::new();
        for track in &set {
            (&track.path, &track.name, track.kind.as_str(), &track.unit).hash(&mut hasher);
        }
        let set = sets.at((set.len(), hasher.finish()), || {
            let track = |track: &&Track| {
                let path = track.path.parts().iter();
                json!([
                    path.map(ToString::to_string).collect::<Vec<_>>(),
                    &*track.name,
                    track.kind.as_str(),
                    track.unit.as_deref(),
                ])
            };
            set.iter().map(track).collect::<Vec<_>>().into()
        });
        list.extend([number as usize, recording, set]);
    });
    json!({"sets": sets.list, "list": list})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scene, SceneOptions};

    /// What a page knows: recordings, the tracks in their order, and what is known of each.
    #[derive(Debug, Default, PartialEq)]
    struct Page {
        recordings: Vec<Value>,
        tracks: HashMap<u64, Value>,
        states: HashMap<u64, Value>,
        order: Value,
        notices: Vec<Value>,
    }

    impl Page {
        fn take(&mut self, answer: &Value) {
            if answer["new"] == true {
                *self = Self::default();
            }
            let list = |value: &Value| value.as_array().unwrap().clone();
            let at = |value: &Value| value.as_u64().unwrap() as usize;
            let sent = &answer["recordings"];
            self.recordings.resize(at(&sent["count"]), Value::Null);
            for entry in list(&sent["list"]).chunks(4) {
                let path = [&sent["directories"][at(&entry[2])], &entry[3]];
                self.recordings[at(&entry[0])] = json!([sent["kinds"][at(&entry[1])], path]);
            }
            for run in list(&answer["tracks"]["list"]).chunks(3) {
                let set = list(&answer["tracks"]["sets"][at(&run[2])]);
                for (number, track) in (run[0].as_u64().unwrap()..).zip(set) {
                    self.tracks.insert(number, json!([run[1], track]));
                }
            }
            for row in list(&answer["rows"]).chunks(2) {
                let state = answer["states"][at(&row[1])].clone();
                self.states.insert(row[0].as_u64().unwrap(), state);
            }
            if let Some(order) = answer.get("order") {
                self.order = order.clone();
            }
            self.notices.truncate(at(&answer["notices_from"]));
            self.notices.extend(list(&answer["notices"]));
        }

        fn request(&self, answer: &Value) -> Value {
            json!({
                "generation": answer["generation"], "epoch": answer["epoch"], "tracks": self.tracks.len(),
                "notices": self.notices.len(),
            })
        }
    }

    #[test]
    fn differences_make_the_whole() {
        let example = |name: &str| {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/").to_string() + name;
            kymo::open::open(&[path.into()], &kymo::open::Options::default()).recordings
        };
        let mut recordings = example("lttng-small");
        let api = Api::new(Scene::new(recordings, SceneOptions::default()));
        let (mut page, mut request) = (Page::default(), json!({}));
        let mut follow = |api: &Api| {
            let answer = api.scene(&request);
            if answer.get("same").is_none() {
                page.take(&answer);
                request = page.request(&answer);
            }
            let mut whole = Page::default();
            whole.take(&api.scene(&json!({})));
            let is_same_generation = api.scene(&request).get("same").is_some();
            assert!(!is_same_generation || page == whole, "{page:?}\n{whole:?}");
        };
        for _ in 0..50 {
            follow(&api);
        }
        api.scene.wait();
        follow(&api);
        // Another one comes, and goes.
        recordings = example("lttng-small");
        recordings.extend(example("lttng-discarded"));
        let more = api.with_scene(Scene::after(
            &api.scene,
            recordings,
            SceneOptions::default(),
        ));
        more.scene.wait();
        follow(&more);
        let recordings = example("lttng-small");
        let less = api.with_scene(Scene::after(
            &more.scene,
            recordings,
            SceneOptions::default(),
        ));
        less.scene.wait();
        follow(&less);
        assert_eq!(
            (page.recordings.len(), page.tracks.len()),
            (1, page.states.len())
        );
    }

    #[test]
    fn runs_hold_successive_numbers() {
        assert_eq!(runs([3, 4, 5, 9, 0, 1].into_iter()), [3, 3, 9, 1, 0, 2]);
        assert_eq!(runs(std::iter::empty()), [0; 0]);
    }
}
