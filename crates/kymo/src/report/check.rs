//! Decodes everything, and reports all damage.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kymo_model::{Cursor, EventCounts, Fault, FaultReport, Recording, Walk};

use super::scan::{Options, Unit, Units, scan};
use super::text::{Style, Table};
use super::{MOST_FAULTS, begin_report, faults_text, write_faults};
use crate::Discarded;
use crate::order;

/// What decoding every field of every event has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Events that were decoded.
    pub events: u64,
    /// Their scalars, strings and array elements: each number, truth value, text, BLOB,
    /// bit array or bit map counts, wherever it lies.
    pub fields: u64,
    /// Packets (chunks) that were gone through.
    pub packets: u64,
    /// What the recorders discarded.
    pub discarded: Discarded,
    /// All damage, in the order of the recordings, their streams and packets; at most
    /// [`MOST_FAULTS`].
    pub faults: Vec<FaultReport>,
    /// How many faults there are beyond those listed.
    pub more_faults: u64,
    /// Recordings that were asked for and could not be opened: whoever opened them sets it.
    pub unreadable: u64,
}

/// What became of one chunk.
#[derive(Debug)]
struct Outcome {
    counts: EventCounts,
    /// What ended it early.
    fault: Option<Fault>,
}

impl Check {
    /// Decodes all of some recordings. With [`Options::strict`] it ends at the first fault,
    /// and counts what came before it and the chunk that it is in.
    pub fn new<R: Recording>(recordings: &[R], options: &Options<'_>) -> Self {
        let mut check = Self::default();
        check.run(recordings, options);
        if options.strict {
            check.faults.truncate(1);
            check.more_faults = 0;
        }
        check
    }

    fn run<R: Recording>(&mut self, recordings: &[R], options: &Options<'_>) {
        let units = Units::new(recordings);
        let opening_faults = recordings
            .iter()
            .any(|recording| !recording.faults().is_empty());
        let in_order = Mutex::new(InOrder {
            check: self,
            recordings,
            strict: options.strict,
            opened: 0,
            next: 0,
            waiting: BTreeMap::new(),
            before: None,
        });
        let in_order_now = || in_order.lock().unwrap_or_else(PoisonError::into_inner);
        if !(options.strict && opening_faults) {
            scan(
                &units,
                options,
                || (),
                |(), ordinal, unit| {
                    let outcome = unit.source.walk(&unit.chunk, CheckChunk);
                    let is_good =
                        outcome.fault.is_none() && outcome.counts.order.backwards(None).is_none();
                    in_order_now().add(&units, ordinal, outcome);
                    is_good || !options.strict
                },
            );
        }
        in_order_now().open(recordings.len());
    }

    fn add_fault(&mut self, fault: impl FnOnce() -> FaultReport) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault());
        } else {
            self.more_faults += 1;
        }
    }

    /// What was found, in a word: `damaged`, or else `lost` if something was discarded, or else `ok`.
    pub fn result(&self) -> &'static str {
        match (self.is_good(), self.discarded.is_empty()) {
            (false, _) => "damaged",
            (true, false) => "lost",
            (true, true) => "ok",
        }
    }

    /// Whether there is no damage, and everything could be opened.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty() && self.unreadable == 0
    }

    /// `{"result":"ok","events":N,"fields":N,"packets":N,"discarded_events":N,"discarded_packets":N,"faults":[...]}`
    /// with what was found ([`result`](Self::result)); where not all faults are listed,
    /// `"more_faults":N` says how many are not, and `"unreadable":N` how many recordings could not be opened.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = begin_report();
        json.entry("result", self.result().as_bytes());
        for (key, number) in self.counts() {
            json.entry(key, number);
        }
        write_faults(&mut json, &self.faults, self.more_faults);
        if self.unreadable > 0 {
            json.entry("unreadable", self.unreadable);
        }
        json.end_object();
        json.finish()
    }

    fn counts(&self) -> [(&'static str, u64); 5] {
        [
            ("events", self.events),
            ("fields", self.fields),
            ("packets", self.packets),
            ("discarded_events", self.discarded.events),
            ("discarded_packets", self.discarded.packets),
        ]
    }

    /// The counts and all faults, a line each, and what that means: `OK`, what was lost, what is
    /// damaged.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut table = Table::default();
        for (key, number) in self.counts() {
            table.row([key.replace('_', " "), style.count(number)]);
        }
        let faults = self.faults.len() as u64 + self.more_faults;
        table.row(["faults".to_string(), style.count(faults)]);
        let mut text = table.align(&[false, true]);
        text += &faults_text(&self.faults, self.more_faults, style);
        let damaged = match faults {
            0 => None,
            1 => Some(style.bad("damaged: 1 fault")),
            faults => Some(style.bad(&format!("damaged: {} faults", style.count(faults)))),
        };
        let discarded = || self.discarded.text(|number| style.count(number));
        let lost =
            (!self.discarded.is_empty()).then(|| style.odd(&format!("lost: {}", discarded())));
        let unread = match self.unreadable {
            0 => None,
            1 => Some(style.bad("1 recording could not be read")),
            more => Some(style.bad(&format!(
                "{} recordings could not be read",
                style.count(more)
            ))),
        };
        let found: Vec<String> = unread.into_iter().chain(damaged).chain(lost).collect();
        text += &match &found[..] {
            [] => style.good("OK") + "\n",
            found => found.join("; ") + "\n",
        };
        text.into_bytes()
    }
}

/// Puts the outcomes of chunks together in the order of the chunks, as soon as it can: there
/// may be millions of them.
struct InOrder<'c, 'r, R> {
    check: &'c mut Check,
    recordings: &'r [R],
    strict: bool,
    /// Number of recordings whose own faults are listed.
    opened: usize,
    /// The chunk whose outcome is next.
    next: usize,
    /// Outcomes of later chunks.
    waiting: BTreeMap<usize, Outcome>,
    /// Recording and stream of the last event so far, and its ticks.
    before: Option<((usize, usize), u64)>,
}

impl<'r, R: Recording> InOrder<'_, 'r, R> {
    /// Lists the faults of the first `count` recordings that were found while opening.
    fn open(&mut self, count: usize) {
        while let Some(recording) = self.recordings[..count].get(self.opened) {
            self.opened += 1;
            for fault in recording.faults() {
                self.check.add_fault(|| fault.clone());
            }
        }
    }

    fn add(&mut self, units: &Units<'r, R>, ordinal: usize, outcome: Outcome) {
        self.waiting.insert(ordinal, outcome);
        while let Some(outcome) = self.waiting.remove(&self.next)
            && let Some(unit) = units.get(self.next)
        {
            self.next += 1;
            self.open(unit.recording + 1);
            if !self.strict || self.check.is_good() {
                self.put(&unit, outcome);
            }
        }
    }

    fn put(&mut self, unit: &Unit<'r, R>, outcome: Outcome) {
        let (source, chunk) = (unit.source, &unit.chunk);
        let check = &mut *self.check;
        check.packets += 1;
        let counts = outcome.counts;
        check.events += counts.events;
        check.fields += counts.values;
        check.discarded.add_chunk(chunk);
        let stream = (unit.recording, chunk.stream);
        let before = self.before.filter(|&(before, _)| before == stream);
        let backwards = counts.order.backwards(before.map(|(_, ticks)| ticks));
        if let Some(report) = backwards.and_then(|mark| order::report(&mark, source, chunk)) {
            check.add_fault(|| report);
        }
        if let Some(fault) = outcome.fault {
            check.add_fault(|| source.report(chunk, counts.at, fault));
        }
        if let Some(ticks) = counts.order.last_ticks() {
            self.before = Some((stream, ticks));
        }
    }
}

/// Decodes all of a chunk.
struct CheckChunk;

impl Walk for CheckChunk {
    type Output = Outcome;

    fn walk<C: Cursor>(self, mut cursor: C) -> Outcome {
        let mut counts = EventCounts::default();
        let fault = cursor.count_events(&mut counts).err();
        Outcome { counts, fault }
    }
}
