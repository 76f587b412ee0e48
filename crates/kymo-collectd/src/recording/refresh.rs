//! Reading what was added to a capture.

use std::ops::Range;

use kymo_model::{Change, FaultCode, Recording as _, RefreshError, Refreshed, RowPlace, Shift};
use kymo_time::CdTime;

use super::{CHUNK, Content, MESSAGES, Options, Recording, VALUES, load};
use crate::capture::Form;

impl Recording {
    pub(super) fn read_again(&mut self) -> Result<Refreshed, RefreshError> {
        let unreadable = |error| RefreshError::new(&self.path, &error);
        let mut refreshed = Refreshed::default();
        let Some(changed) = self.watch.changed(&self.path).map_err(unreadable)? else {
            return Ok(refreshed);
        };
        let bytes = &*changed.bytes;
        if !changed.is_in_place || self.form.is_none() || Form::detect(bytes) != self.form {
            return self.open_again(bytes);
        }
        let counts = [VALUES, MESSAGES].map(|stream| self.count(stream));
        let mut known = std::mem::take(&mut self.content);
        let mut lists = std::mem::take(&mut known.lists);
        let mut messages = std::mem::take(&mut known.messages);
        // A packet that was not whole is read now.
        let end = self.position.at as u64;
        self.faults
            .retain(|fault| fault.code != FaultCode::Truncated || fault.offset < end);
        let keys = self.keys.as_ref();
        let loaded = load::load(
            &self.path,
            bytes,
            keys,
            known,
            self.datagrams,
            &mut self.position,
        );
        lists.extend(loaded.content.lists);
        messages.extend(loaded.content.messages);
        self.content = Content {
            lists,
            messages,
            ..loaded.content
        };
        self.faults.extend(loaded.faults);
        self.datagrams += loaded.datagrams;
        self.size = bytes.len() as u64;
        self.watch = changed.watch;
        for (stream, known) in counts.into_iter().enumerate() {
            if self.count(stream) == known {
                continue;
            }
            let time = |number| self.place(stream, number).map(|(time, _)| time);
            if known.checked_sub(1).and_then(time) > time(known) {
                self.backwards[stream].push(known);
            }
            let from = RowPlace::of_row(known, CHUNK);
            refreshed.push(stream, Change::Appended { from });
        }
        Ok(refreshed)
    }

    /// Reads another file that is at the same path.
    fn open_again(&mut self, bytes: &[u8]) -> Result<Refreshed, RefreshError> {
        let options = Options {
            keys: self.keys.clone(),
        };
        let error = |error: &dyn std::fmt::Display| RefreshError::new(&self.path, &error);
        let mut opened = Self::new(&self.path, bytes, &options).map_err(|it| error(&it))?;
        let shift = Shift {
            nanos: self.offset_nanos.into(),
            from_unix_epoch: false,
        };
        opened.shift(shift).map_err(|it| error(&it))?;
        *self = opened;
        let mut refreshed = Refreshed::default();
        for stream in [VALUES, MESSAGES] {
            let from = RowPlace::default();
            refreshed.push(stream, Change::Replaced { from });
        }
        Ok(refreshed)
    }

    /// The earliest and the latest time of some entries.
    pub(super) fn times(&self, stream: usize, entries: Range<usize>) -> Option<(CdTime, CdTime)> {
        let time = |number| self.place(stream, number).map(|(time, _)| time);
        let backwards = self.backwards.get(stream)?;
        let next = backwards.partition_point(|&at| at <= entries.start);
        if backwards.get(next).is_none_or(|&at| at >= entries.end) {
            return Some((time(entries.start)?, time(entries.end.checked_sub(1)?)?));
        }
        let times = || entries.clone().filter_map(time);
        Some((times().min()?, times().max()?))
    }
}
