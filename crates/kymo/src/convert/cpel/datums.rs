//! What becomes of the datums of CPEL and Gist files in another file.

use std::sync::Arc;

use kymo_cpel::definitions::{Reference, Symbol};
use kymo_cpel::format::Uses;
use kymo_cpel::recording::{Datum, Recording as Log};
use kymo_cpel::write::{self, Builder};
use kymo_model::Recording;

use crate::AnyRecording;

/// How the datum of the events of a class is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The number as it is, with its format.
    Number(Option<Arc<[u8]>>),
    /// The string that it refers to, with its format.
    String(Arc<[u8]>),
    /// What the event shows.
    Text,
}

/// How the datums of recordings are written, and the symbols they go with.
#[derive(Debug)]
pub(super) struct Datums {
    /// By recording and class; of recordings that are not CPEL or Gist files there are none.
    classes: Vec<Vec<How>>,
    /// The recording whose symbols are kept.
    symbols_of: Option<usize>,
    /// How many symbols are not.
    pub(super) lost_symbols: u64,
}

impl Datums {
    /// With `as_text`, what a format makes of a datum is written in its place; a datum that no format
    /// shows stays a number.
    pub(super) fn new(recordings: &[AnyRecording], as_text: bool) -> Self {
        let log = |recording: usize| match &recordings[recording] {
            AnyRecording::Cpel(log) => Some(log),
            _ => None,
        };
        let has_symbols =
            |&recording: &usize| log(recording).is_some_and(|log| !symbols(log).is_empty());
        let symbols_of = (0..recordings.len()).find(has_symbols);
        let kept = symbols_of.and_then(log);
        let mut lost_symbols = 0;
        let classes = (0..recordings.len()).map(|recording| {
            let Some(log) = log(recording) else {
                return Vec::new();
            };
            let has_kept = kept.is_none_or(|kept| has_same_symbols(kept, log));
            if !has_kept {
                lost_symbols += symbols(log).len() as u64;
            }
            let classes = 0..log.event_classes().len();
            classes
                .map(|class| how(log.datum(class), as_text, has_kept))
                .collect()
        });
        Self {
            classes: classes.collect(),
            symbols_of,
            lost_symbols,
        }
    }

    /// How the datum of a class is written; `None` if its recording is not a CPEL or Gist file.
    pub(super) fn of(&self, recording: usize, class: usize) -> Option<&How> {
        self.classes.get(recording)?.get(class)
    }

    /// Adds the symbols to a file.
    pub(super) fn add_symbols(
        &self,
        recordings: &[AnyRecording],
        builder: &mut Builder,
    ) -> Result<(), write::Error> {
        let Some(AnyRecording::Cpel(log)) = self.symbols_of.map(|recording| &recordings[recording])
        else {
            return Ok(());
        };
        for symbol in symbols(log) {
            builder.symbol(symbol.value, name(log, symbol))?;
        }
        Ok(())
    }
}

fn how(datum: Datum<'_>, as_text: bool, has_symbols: bool) -> How {
    let format = match datum {
        Datum::None => return How::Number(None),
        Datum::Bad(_) => return How::Text,
        Datum::Format(format) => format,
    };
    match Uses::of(format) {
        Uses {
            numbers: false,
            strings: false,
            symbols: false,
        } => How::Number(Some(format.into())),
        _ if as_text => How::Text,
        Uses { symbols: true, .. } if !has_symbols => How::Text,
        Uses { strings: false, .. } => How::Number(Some(format.into())),
        Uses {
            numbers: false,
            symbols: false,
            ..
        } => How::String(format.into()),
        // One datum cannot be a number and the offset of a string in another table.
        _ => How::Text,
    }
}

fn symbols(log: &Log) -> &[Symbol] {
    &log.definitions().symbols
}

fn name<'a>(log: &'a Log, symbol: &Symbol) -> &'a [u8] {
    match &symbol.name {
        Reference::At(place) => log.names(&(0..0)).text(place),
        Reference::None | Reference::Bad(_) => b"<bad symbol>",
    }
}

fn has_same_symbols(one: &Log, other: &Log) -> bool {
    let symbol_count = |log: &'_ Log| symbols(log).len();
    let mut pairs = symbols(one).iter().zip(symbols(other));
    symbol_count(one) == symbol_count(other)
        && pairs.all(|(a, b)| a.value == b.value && name(one, a) == name(other, b))
}
