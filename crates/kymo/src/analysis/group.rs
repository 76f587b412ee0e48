//! Groups: how events and durations are grouped.

use foldhash::fast::RandomState;
use kymo_model::Recording;

use super::events::EventPattern;
use super::run::Occurrence;
use super::tracks::track;
use crate::AnyRecording;
use crate::filter::{FieldNames, FilterError, name_of};
use crate::report::Json;
use crate::tracks::{Interner, Key, OTHERS, TrackTable};

/// Bytes of the values of all groups.
const MOST_BYTES: usize = 64 << 20;

/// What groups are made by: tracks, names of events, values of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupBy {
    parts: Vec<(Part, String)>,
    pub(super) fields: FieldNames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Track,
    Name,
    /// By its position among the fields.
    Field(usize),
}

impl GroupBy {
    /// Reads a list of `track`, `name` and fields, with commas between them.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse(list: &str) -> Result<Self, FilterError> {
        let mut fields = FieldNames::parse(list)?;
        let mut next = 0;
        let parts = fields.iter().map(|word| {
            let part = match word {
                "track" => Part::Track,
                "name" => Part::Name,
                _ => {
                    next += 1;
                    Part::Field(next - 1)
                }
            };
            (part, word.to_string())
        });
        let parts = parts.collect();
        fields.take("track");
        fields.take("name");
        Ok(Self { parts, fields })
    }

    /// The name of each part.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|(_, title)| title.as_str())
    }

    /// All titles, joined by commas.
    pub(super) fn title(&self) -> String {
        match self.parts.is_empty() {
            true => "all".to_string(),
            false => self.titles().collect::<Vec<_>>().join(", "),
        }
    }
}

/// What distinguishes a group from others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupKey {
    name: u32,
    track: u32,
    key: Key,
}

/// Numbers groups in the order in which they come.
#[derive(Debug)]
pub(super) struct Groups {
    by: GroupBy,
    has_track: bool,
    has_name: bool,
    most: usize,
    /// By recording and class the number of its name; 0 where names do not count.
    classes: Vec<Vec<u32>>,
    names: Vec<String>,
    /// By number of a name its group, where nothing else counts.
    by_name: Option<Vec<u32>>,
    known: Interner<GroupKey>,
}

impl Groups {
    /// Keeps at most `most` groups and merges later ones. `pattern` is what the events were named by: names are
    /// what its `*` stands for.
    pub(super) fn new(
        by: &GroupBy,
        most: usize,
        recordings: &[AnyRecording],
        pattern: Option<&EventPattern>,
    ) -> Self {
        let has = |part: Part| by.parts.iter().any(|(it, _)| *it == part);
        let mut groups = Self {
            by: by.clone(),
            has_track: has(Part::Track),
            has_name: has(Part::Name),
            most,
            classes: Vec::new(),
            names: Vec::new(),
            by_name: None,
            known: Interner::with_room(most, MOST_BYTES),
        };
        groups.bind(recordings, pattern);
        groups
    }

    /// Takes the event classes of recordings, which may be more than before: what is known keeps its number.
    pub(super) fn bind(&mut self, recordings: &[AnyRecording], pattern: Option<&EventPattern>) {
        let known = self.names.iter().cloned().zip(0..);
        let mut numbers: std::collections::HashMap<String, u32, RandomState> = known.collect();
        let names = &mut self.names;
        let has_name = self.has_name;
        let classes = recordings.iter().map(|recording| {
            let classes = recording.event_classes().iter().map(|class| {
                let name = name_of(class);
                let name = match has_name {
                    true => pattern.map_or(name, |pattern| pattern.short_name(name)),
                    false => "",
                };
                *numbers.entry(name.to_string()).or_insert_with(|| {
                    names.push(name.to_string());
                    names.len() as u32 - 1
                })
            });
            classes.collect()
        });
        self.classes = classes.collect();
        let is_by_name =
            !self.has_track && self.by.fields.is_empty() && self.names.len() <= self.most;
        self.by_name = is_by_name.then(|| {
            let mut by_name = self.by_name.take().unwrap_or_default();
            by_name.resize(self.names.len(), OTHERS);
            by_name
        });
    }

    /// What they are made by.
    pub(super) fn by(&self) -> &GroupBy {
        &self.by
    }

    /// The number of the group of an event.
    #[inline]
    pub(super) fn number(&mut self, event: &Occurrence<'_>) -> u32 {
        let name = self.classes[event.recording][event.class];
        if let Some(by_name) = &self.by_name
            && by_name[name as usize] != OTHERS
        {
            return by_name[name as usize];
        }
        self.find(name, event)
    }

    fn find(&mut self, name: u32, event: &Occurrence<'_>) -> u32 {
        let track = if self.has_track { event.track } else { 0 };
        let scope = u64::from(name) << 32 | u64::from(track);
        let hash = event.by.hash(scope, self.known.hasher());
        let is_it = |known: &GroupKey| {
            known.name == name && known.track == track && event.by.is(&known.key)
        };
        let number = self.known.number(hash, is_it, || {
            let key = event.by.key();
            let bytes = 9 + key.byte_size();
            (GroupKey { name, track, key }, bytes)
        });
        if let Some(by_name) = &mut self.by_name {
            by_name[name as usize] = number;
        }
        number
    }

    /// The values of a group, a part each.
    pub(super) fn values(
        &self,
        number: u32,
        tracks: &TrackTable,
        recordings: &[AnyRecording],
    ) -> Vec<GroupValue> {
        let Some(group) = self.known.key(number) else {
            return vec![GroupValue(Key::Text((*b"(others)").into())); self.by.parts.len()];
        };
        let several = recordings.len() > 1;
        let text = |text: &str| Key::Text(text.as_bytes().into());
        let parts = self.by.parts.iter().map(|(part, _)| match part {
            Part::Track => text(&track(recordings, tracks, group.track).title(several)),
            Part::Name => text(&self.names[group.name as usize]),
            Part::Field(at) => group.key.parts().get(*at).cloned().unwrap_or(Key::Missing),
        });
        parts.map(GroupValue).collect()
    }
}

/// A value that groups have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupValue(Key);

impl GroupValue {
    pub(super) fn of(key: Key) -> Self {
        Self(key)
    }

    pub(super) fn of_text(text: &str) -> Self {
        Self(Key::Text(text.as_bytes().into()))
    }

    /// As people read it; what is missing is a dash.
    pub fn text(&self) -> String {
        self.0.text()
    }

    /// As JSON: numbers, truth values and texts as such, null where it is missing.
    pub(super) fn to_json(&self, json: &mut Json) {
        match &self.0 {
            Key::Uint(value) | Key::Array(value) => json.value(*value),
            Key::Sint(value) => json.value(*value),
            Key::Float(bits) => json.value(f64::from_bits(*bits)),
            Key::Bool(value) => json.value(*value),
            Key::Text(text) => json.value(&text[..]),
            Key::None | Key::Missing => json.null(),
            Key::Blob(_) | Key::Several(_) => json.value(self.0.text().as_bytes()),
        }
    }
}

/// The texts of values with commas between them.
pub(super) fn joined(values: &[GroupValue]) -> String {
    match values.is_empty() {
        true => "all".to_string(),
        false => values
            .iter()
            .map(GroupValue::text)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The key `by` of an object: the values with their names.
pub(super) fn by_json<'t>(
    titles: impl Iterator<Item = &'t str>,
    values: &[GroupValue],
    json: &mut Json,
) {
    json.key("by");
    json.begin_object();
    for (title, value) in titles.zip(values) {
        json.key(title);
        value.to_json(json);
    }
    json.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_and_names_are_no_fields() {
        let by = GroupBy::parse("vtid, name,payload.name,track").unwrap();
        assert_eq!(by.title(), "vtid, name, payload.name, track");
        assert_eq!(by.fields.to_string(), "vtid, payload.name");
        assert_eq!(by.parts[2].0, Part::Field(1));
        assert!(GroupBy::parse("a,,b").is_err());
    }
}
