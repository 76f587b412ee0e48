//! The one look at all events when a file is opened.

use kymo_model::{EventClass, FaultCode};

use super::classes::{DatumText, OTHER_CODES, event_class};
use super::tally::{Counts, Seen};
use super::{CHUNK, Recording};
use crate::definitions::{Definitions, EventSection};
use crate::entries::{ENTRY_SIZE, Entries, Entry};
use crate::file::Finding;

/// Codes without a definition that become classes of their own.
const MOST_UNDEFINED: usize = 1 << 16;
/// Codes below it are looked at and counted quickly.
const SMALL: usize = 256;

/// What the look at a section shows.
pub(super) struct Scan {
    /// Whether its events are in the order of time.
    pub(super) is_sorted: bool,
    /// The events of each chunk by their classes, where all their codes are small.
    pub(super) counts: Box<[Option<Counts>]>,
}

/// A small code within a chunk.
#[derive(Clone, Copy, Default)]
struct Code {
    /// From this number on, a datum has to be looked at: zero before the first event.
    limit: u64,
    seen: Seen,
}

/// Events that refer to strings that do not exist.
#[derive(Default)]
struct Bad {
    events: u64,
    /// Position and datum of the first one.
    first: Option<(usize, u32)>,
}

impl Recording {
    /// Looks at all events of a section: makes classes of codes without a definition, reports
    /// strings that do not exist and whether the events are in the order of time, and counts them.
    pub(super) fn scan(&mut self, section: &EventSection, findings: &mut Vec<Finding>) -> Scan {
        let order = self.byte_order();
        let entries = Entries::new(&self.bytes[section.entries.clone()], order);
        let strings = section.strings.len() as u64;
        let (mut is_sorted, mut last) = (true, 0);
        let mut bad = Bad::default();
        let mut counts = Vec::with_capacity(entries.len().div_ceil(CHUNK));
        for first in (0..entries.len()).step_by(CHUNK) {
            let mut codes = [Code::default(); SMALL];
            let mut are_small = true;
            for (position, entry) in (0..).zip(entries.slice(first, CHUNK).iter()) {
                is_sorted &= last <= entry.time;
                last = entry.time;
                if let Some(code) = codes.get_mut(entry.code as usize)
                    && u64::from(entry.datum) < code.limit
                {
                    code.seen.again(position);
                    continue;
                }
                let class = class_of(
                    entry.code,
                    &mut self.definitions,
                    &mut self.classes,
                    &mut self.datums,
                );
                let has_strings = self.datums[class].has_strings();
                if has_strings && u64::from(entry.datum) >= strings {
                    bad.add(first + position as usize, entry);
                }
                match codes.get_mut(entry.code as usize) {
                    Some(code) => {
                        code.limit = if has_strings { strings } else { u64::MAX };
                        code.seen.add(position);
                    }
                    None => are_small = false,
                }
            }
            let seen = (0..).zip(&codes).filter(|(_, code)| code.seen.events > 0);
            let seen = seen
                .map(|(code, counted)| Some((self.definitions.event_at.get(code)?, counted.seen)));
            counts.push(if are_small { seen.collect() } else { None });
        }
        if let Some((position, datum)) = bad.first {
            let count = bad.events;
            findings.push(Finding {
                code: FaultCode::StringOffset,
                offset: (section.entries.start + position * ENTRY_SIZE) as u64,
                section: Some(section.section as u64),
                message: format!(
                    "{count} events refer to strings beyond the {strings} bytes of their string table, \
                     the first one is event {position} with offset {datum}"
                ),
            });
        }
        Scan {
            is_sorted,
            counts: counts.into(),
        }
    }
}

impl Bad {
    fn add(&mut self, position: usize, entry: Entry) {
        self.first.get_or_insert((position, entry.datum));
        self.events += 1;
    }
}

/// The class of a code. One that is not defined gets a class of its own, unless there are very many.
#[cold]
fn class_of(
    code: u32,
    definitions: &mut Definitions,
    classes: &mut Vec<EventClass>,
    datums: &mut Vec<DatumText>,
) -> usize {
    if let Some(class) = definitions.event_at.get(code) {
        return class as usize;
    }
    let undefined = classes.len() - definitions.events.len();
    let class = classes.len();
    if undefined < MOST_UNDEFINED {
        definitions.event_at.insert(code, class as u32);
        classes.push(event_class(code.into(), format!("E{}", code as i32).into()));
        datums.push(DatumText::Empty);
        return class;
    }
    if undefined == MOST_UNDEFINED {
        classes.push(event_class(OTHER_CODES, "E%d".into()));
        datums.push(DatumText::Empty);
        return class;
    }
    class - 1
}
