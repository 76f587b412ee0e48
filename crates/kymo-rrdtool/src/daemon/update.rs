//! Readings that a daemon shall store.

use super::Client;
use crate::Failure;
use crate::path::shown;

impl Client {
    /// Gives it readings for a file: `TIME:VALUE[:VALUE...]` each, of which `N` is now. With a
    /// template, the daemon is asked before which data sources the file has, as it takes values for
    /// all of them only.
    ///
    /// # Errors
    ///
    /// What the daemon says; a template that does not fit.
    pub(crate) fn update(
        &mut self,
        file: &[u8],
        template: Option<&[u8]>,
        readings: &[&[u8]],
        now: i64,
    ) -> Result<(), Failure> {
        let file = self.path(file)?;
        let places = match template {
            Some(names) => Some(places(names, &self.measured(&file)?)?),
            None => None,
        };
        let mut words = vec![b"update".to_vec(), file];
        for reading in readings {
            let mut word = match reading.strip_prefix(b"N:") {
                Some(values) => [format!("{now}:").as_bytes(), values].concat(),
                None => reading.to_vec(),
            };
            if let Some(places) = &places {
                word = spread(&word, places)?;
            }
            words.push(word);
        }
        let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
        self.ask(&words).map(drop)
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
