//! Reading a file again that has changed. It is written as a whole, so that what it holds is compared.

use kymo_model::{Change, RefreshError, Refreshed, RowPlace};

use super::{CHUNK, Recording};
use crate::entries::Entry;
use crate::format::string_of;

impl Recording {
    pub(super) fn read_again(&mut self) -> Result<Refreshed, RefreshError> {
        let unreadable = |error| RefreshError::new(&self.path, &error);
        let mut refreshed = Refreshed::default();
        let Some(changed) = self.watch.changed(&self.path).map_err(unreadable)? else {
            return Ok(refreshed);
        };
        let opened = match self.header {
            Some(_) => Self::new(&self.path, changed.bytes, &self.options),
            None => Self::gist(&self.path, changed.bytes, &self.options),
        };
        let mut opened = opened.map_err(|error| RefreshError::new(&self.path, &error))?;
        let shifted = kymo_model::Recording::shift(&mut opened, self.shifted);
        shifted.map_err(|error| RefreshError::new(&self.path, &error))?;
        // If a file was changed in place, its earlier bytes may have changed.
        let has_bytes = !changed.is_in_place && !changed.is_cut;
        refreshed.has_other_classes = self.names_of_classes().ne(opened.names_of_classes());
        for stream in 0..self.logs.len() {
            let known = self.len(stream);
            if !opened.begins_as(self, stream, has_bytes) {
                let from = RowPlace::default();
                refreshed.push(stream, Change::Replaced { from });
            } else if opened.len(stream) > known {
                let from = RowPlace::of_row(known, CHUNK);
                refreshed.push(stream, Change::Appended { from });
            }
        }
        for stream in self.logs.len()..opened.logs.len() {
            let from = RowPlace::default();
            refreshed.push(stream, Change::Appended { from });
        }
        *self = Self {
            watch: changed.watch,
            ..opened
        };
        Ok(refreshed)
    }

    /// The number of events of a stream.
    fn len(&self, stream: usize) -> usize {
        self.entries_of(stream).len()
    }

    fn names_of_classes(&self) -> impl Iterator<Item = (u64, Option<&str>)> {
        let classes = self.classes.iter();
        classes.map(|class| (class.id, class.name.as_deref()))
    }

    fn entry_at(&self, stream: usize, place: usize) -> Option<Entry> {
        self.logs.get(stream)?.entry(self.entries_of(stream), place)
    }

    /// The string that the datum of an event is, where it is one.
    fn string(&self, stream: usize, entry: Entry) -> Option<&[u8]> {
        let class = self.definitions.event_at.get(entry.code)?;
        if !self.datums.get(class as usize)?.has_strings() {
            return None;
        }
        let strings = self.logs.get(stream)?.section.strings.clone();
        let rest = self.bytes.get(strings)?.get(entry.datum as usize..)?;
        Some(string_of(rest))
    }

    /// Whether the first events of a stream are those of another recording, the bytes of which may be there
    /// no longer.
    fn begins_as(&self, other: &Self, stream: usize, has_bytes: bool) -> bool {
        let known = other.len(stream);
        if self.len(stream) < known {
            return false;
        }
        let Some((first, last)) = other.logs.get(stream).and_then(|log| log.ends) else {
            return true;
        };
        let head = |entry: Entry| (entry.time, entry.track, entry.code);
        if !has_bytes {
            let at = |place| self.entry_at(stream, place).map(head);
            return at(0) == Some(head(first)) && at(known - 1) == Some(head(last));
        }
        let is_same = |place| {
            let (Some(own), Some(others)) =
                (self.entry_at(stream, place), other.entry_at(stream, place))
            else {
                return false;
            };
            let texts = (self.string(stream, own), other.string(stream, others));
            head(own) == head(others)
                && match texts {
                    (Some(own), Some(others)) => own == others,
                    _ => own.datum == others.datum,
                }
        };
        (0..known).all(is_same)
    }
}
