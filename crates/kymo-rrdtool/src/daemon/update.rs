//! Readings that a daemon is to store.

use std::fs::File;

use super::Client;
use crate::Failure;
use crate::failure::reason;
use crate::path::{path, shown};

/// What daemons say of a reading that is not after the last one: rrdcached 1.7.2 and `kymo serve` alike.
const PAST: &str = "illegal attempt to update using time";

/// Readings for a file.
#[derive(Debug)]
pub(crate) struct Update<'a> {
    /// The file, as it is written on the command line.
    pub(crate) file: &'a [u8],
    /// The data sources that values are given for.
    pub(crate) template: Option<&'a [u8]>,
    /// `SECONDS:VALUE[:VALUE...]` each: daemons know no other times.
    pub(crate) readings: Vec<Vec<u8>>,
    /// Whether readings that are not after the last one are passed over.
    pub(crate) skip_past: bool,
    /// Whether it is done only when everything is in the file, and on the disk if that is one of this
    /// machine.
    pub(crate) durable: bool,
}

impl Client {
    /// Gives it readings. With a template, the daemon is asked before which data sources the file has, as
    /// it only takes values for all of them.
    ///
    /// # Errors
    ///
    /// What the daemon says; a template that does not fit; that the file cannot be synced.
    pub(crate) fn update(&mut self, update: Update<'_>) -> Result<(), Failure> {
        let file = self.path(update.file)?;
        let mut readings = update.readings;
        if let Some(names) = update.template {
            let places = places(names, &self.measured(&file)?)?;
            for reading in &mut readings {
                *reading = spread(reading, &places)?;
            }
        }
        let mut words = vec![b"update".as_slice(), &file];
        match update.skip_past {
            // A daemon stores nothing of a line behind what it refuses.
            true => readings
                .iter()
                .try_for_each(|reading| self.update_later(&file, reading))?,
            false => {
                words.extend(readings.iter().map(Vec::as_slice));
                self.ask(&words)?;
            }
        }
        match update.durable {
            true => self.settle(&file),
            false => Ok(()),
        }
    }

    /// Gives it a reading, unless that is not after the last one.
    fn update_later(&mut self, file: &[u8], reading: &[u8]) -> Result<(), Failure> {
        match self.ask(&[b"update", file, reading]) {
            Err(Failure::Message(message)) if message.contains(PAST) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Waits until everything is in a file, and on the disk if that is one of this machine: no daemon is known
    /// to sync what it writes.
    fn settle(&mut self, file: &[u8]) -> Result<(), Failure> {
        self.ask(&[b"flush", file])?;
        if !self.is_local() {
            return Ok(());
        }
        let synced = File::open(path(file)).and_then(|file| file.sync_all());
        synced.map_err(|error| Failure::new(format!("'{}': {}", shown(file), reason(&error))))
    }

    /// The names of the data sources of a file that are measured, in their order.
    fn measured(&mut self, file: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let mut names = Vec::new();
        self.ask_with(&[b"info", file], |line| {
            // `ds[NAME].type 2 KIND`
            let name = line.strip_prefix(b"ds[").and_then(|rest| {
                let end = rest.iter().position(|byte| *byte == b']')?;
                let kind = rest[end..].strip_prefix(b"].type 2 ")?;
                (kind != b"COMPUTE").then_some(&rest[..end])
            });
            names.extend(name.map(<[u8]>::to_vec));
            Ok(())
        })?;
        Ok(names)
    }
}

/// For each data source the place of its value among those of a template.
fn places(template: &[u8], measured: &[Vec<u8>]) -> Result<Vec<Option<usize>>, Failure> {
    let mut places = vec![None; measured.len()];
    for (value, name) in template.split(|byte| *byte == b':').enumerate() {
        let place = measured.iter().position(|known| known == name);
        let place = place.ok_or_else(|| {
            let name = shown(name);
            Failure::new(format!("unknown DS name '{name}'"))
        })?;
        places[place] = Some(value);
    }
    Ok(places)
}

/// The readings of a template as those of all data sources.
fn spread(reading: &[u8], places: &[Option<usize>]) -> Result<Vec<u8>, Failure> {
    let mut parts = reading.split(|byte| *byte == b':');
    let mut word = parts.next().unwrap_or_default().to_vec();
    let values: Vec<&[u8]> = parts.collect();
    let expected = places.iter().flatten().count();
    if values.len() != expected {
        let (found, time) = (values.len(), shown(&word));
        return Err(Failure::new(format!(
            "expected {expected} data source readings (got {found}) from {time}"
        )));
    }
    for place in places {
        word.push(b':');
        let value = place.and_then(|place| values.get(place).copied());
        word.extend(value.unwrap_or(b"U"));
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_template_come_where_they_belong() {
        let measured = ["a", "b", "c"].map(|name| name.as_bytes().to_vec());
        let places = places(b"c:a", &measured).unwrap();
        assert_eq!(spread(b"5:1:2", &places).unwrap(), b"5:2:U:1");
        assert!(spread(b"5:1", &places).is_err());
        assert!(spread(b"5:1:2:3", &places).is_err());
        assert!(super::places(b"d", &measured).is_err());
    }
}
