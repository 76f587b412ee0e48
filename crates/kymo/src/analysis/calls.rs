//! What is a call, and what it is of: shared by profiles and call trees.

use std::hash::BuildHasher;

use kymo_model::Recording;

use super::events::{Error, EventPattern};
use super::run::{BEGINS, ENDS, Occurrence, PlainEvent, Role};
use crate::AnyRecording;
use crate::filter::{FieldNames, name_of};
use crate::tracks::{Fields, Interner, Key, OTHERS, RowKey, SliceKeys};

/// Calls that are open on one track; those within are left out.
pub(super) const MOST_DEPTH: usize = 1024;
/// Calls that are open on all tracks.
pub(super) const MOST_OPEN: usize = 1 << 20;

/// What the events of each class are; `events` enter and leave calls, unless the recordings say which do.
pub(super) fn call_roles(
    events: Option<&(EventPattern, EventPattern)>,
    recordings: &[AnyRecording],
) -> Result<Vec<Vec<Option<Role>>>, Error> {
    let roles = match events {
        Some((enter, exit)) => {
            let enters = enter.classes(recordings).map_err(Error::Event)?;
            super::roles(enters, exit.classes(recordings).map_err(Error::Event)?)
        }
        None => super::own_roles(recordings, "--enter and --exit")?,
    };
    for (recording, roles) in recordings.iter().zip(&roles) {
        let both = roles.iter().position(|role| *role == Some(BEGINS | ENDS));
        if let Some(class) = both {
            let name = name_of(&recording.event_classes()[class]).to_string();
            return Err(Error::BothEnds { name });
        }
    }
    Ok(roles)
}

/// The fields whose values are the keys of calls. An event that leaves a call need not have them.
pub(super) fn key_fields(names: Option<&FieldNames>) -> SliceKeys<'_> {
    let fields = |required| {
        names.map(|names| Fields {
            option: "key",
            names,
            required,
        })
    };
    SliceKeys {
        begin: fields(true),
        end: fields(false),
    }
}

/// The keys of calls, by number.
#[derive(Debug, Default)]
pub(super) struct CallKeys {
    /// The key of each class if keys are not values; by recording and class.
    of_class: Option<Vec<Vec<u32>>>,
    interned: Interner<Key>,
    /// Keys that are one number, by a hash of it, as they were met last: each with its number here.
    recent: Vec<(u64, u32)>,
}

/// Binary digits of the hash by which recent keys are found.
const RECENT_BITS: u32 = 10;

impl CallKeys {
    /// Makes the names of classes the keys.
    pub(super) fn by_class(&mut self, recordings: &[AnyRecording]) {
        let keys = recordings.iter().map(|recording| {
            let classes = recording.event_classes().iter();
            let number = |class| {
                let name = name_of(class).as_bytes();
                let hash = self.interned.hasher().hash_one(name);
                let is_it = |known: &Key| matches!(known, Key::Text(known) if **known == *name);
                let make = || (Key::Text(name.into()), name.len());
                self.interned.number(hash, is_it, make)
            };
            classes.map(number).collect()
        });
        self.of_class = Some(keys.collect());
    }

    /// The number of a key.
    pub(super) fn number(&mut self, key: RowKey<'_>) -> u32 {
        let hash = key.hash(0, self.interned.hasher());
        let is_it = |known: &Key| key.is(known);
        self.interned.number(hash, is_it, || {
            let key = key.key();
            let bytes = key.byte_size();
            (key, bytes)
        })
    }

    /// The key of the call that an event enters.
    #[inline]
    pub(super) fn entered(&mut self, event: &Occurrence<'_>) -> u32 {
        match &self.of_class {
            Some(keys) => keys[event.recording][event.class],
            None => self.number(event.begin_key),
        }
    }

    /// The key of the call that is left; `None` if it is the innermost one.
    #[inline]
    pub(super) fn left(&mut self, key: RowKey<'_>) -> Option<u32> {
        let has_key = self.of_class.is_none() && !key.is_missing();
        has_key.then(|| self.number(key))
    }

    /// The number of the key of an event that has one number, or nothing, as its key.
    #[inline]
    fn plain(&mut self, event: &PlainEvent<'_>) -> u32 {
        let Some(value) = event.number else {
            return self.number(event.key);
        };
        // The digits of a product with an odd number that has many of them depend on all digits of the value.
        let place = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS);
        match self.recent.get(place as usize) {
            Some(&(known, number)) if known == value && number != OTHERS => number,
            _ => self.find_plain(value, place as usize, event.key),
        }
    }

    #[inline(never)]
    fn find_plain(&mut self, value: u64, place: usize, key: RowKey<'_>) -> u32 {
        let number = self.number(key);
        self.recent.resize(1 << RECENT_BITS, (0, OTHERS));
        self.recent[place] = (value, number);
        number
    }

    /// The key of the call that a plain event enters.
    #[inline]
    pub(super) fn plain_entered(&mut self, event: &PlainEvent<'_>) -> u32 {
        match &self.of_class {
            Some(keys) => keys[event.recording][event.class],
            None => self.plain(event),
        }
    }

    /// The key of the call that a plain event leaves; `None` if it is the innermost one.
    #[inline]
    pub(super) fn plain_left(&mut self, event: &PlainEvent<'_>) -> Option<u32> {
        let has_key = self.of_class.is_none() && event.number.is_some();
        has_key.then(|| self.plain(event))
    }

    /// A key as text.
    pub(super) fn text(&self, number: u32) -> String {
        let key = self.interned.key(number);
        key.map_or_else(|| "(other keys)".to_string(), Key::text)
    }
}
