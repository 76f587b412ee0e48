//! What both formats build while a file is read.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashMap;
use kymo_model::{FaultCode, FaultReport};
use kymo_text::Line;

use crate::classes::{Classes, Extras, Kind};
use crate::cut::{Kept, Stays};
use crate::row::{self, Order, Value};
use crate::sort::Sorter;
use crate::tracks::Tracks;

/// Bytes of a text.
pub(crate) const MOST_TEXT: usize = 1 << 20;
/// Bytes of all arguments of an event.
const MOST_ARGS: usize = 4 << 20;
/// Arguments of an event.
const MOST_ITEMS: usize = 1 << 16;
/// Faults that are reported one by one.
const MOST_FAULTS: usize = 100;
/// Things that are counted apart, of unknown packets and the like.
const MOST_COUNTS: usize = 4096;
/// Texts and bytes of a table of shared ones.
const MOST_SHARED: usize = 1 << 20;
const MOST_SHARED_BYTES: usize = 64 << 20;
/// Texts that are shared rather than written into each row.
const LEAST_SHARED: usize = 64;

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A temporary file could not be written or read.
    Io(io::Error),
    /// The rows take far more than the file: it was made to.
    TooMuch,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Texts that many rows have.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    by_text: HashMap<Arc<[u8]>, u32>,
    pub(crate) texts: Vec<Arc<[u8]>>,
    bytes: usize,
}

impl Shared {
    /// The number of a text; `None` where there are too many.
    fn number(&mut self, text: &[u8]) -> Option<u32> {
        if let Some(&number) = self.by_text.get(text) {
            return Some(number);
        }
        if self.texts.len() >= MOST_SHARED || self.bytes + text.len() > MOST_SHARED_BYTES {
            return None;
        }
        self.bytes += text.len();
        let text: Arc<[u8]> = text.into();
        let number = self.texts.len() as u32;
        self.texts.push(Arc::clone(&text));
        self.by_text.insert(text, number);
        Some(number)
    }
}

/// The arguments of an event.
#[derive(Debug, Default)]
pub(crate) struct Args {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Whether there was more than an event may have.
    is_cut: bool,
}

#[derive(Clone, Debug)]
struct Item {
    key: Range<usize>,
    value: Stored,
}

#[derive(Clone, Debug)]
enum Stored {
    Plain(Value<'static>),
    Text(Range<usize>),
    Json(Range<usize>),
}

impl Args {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.is_cut = false;
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        begin..self.bytes.len()
    }

    /// Adds an argument. Texts are cut where they are too long; an event that has too much is.
    pub(crate) fn push(&mut self, key: &[u8], value: Value<'_>) {
        if self.is_full() || key.len() > MOST_TEXT {
            self.is_cut = true;
            return;
        }
        let key = self.keep(key);
        let mut keep = |text: &[u8]| {
            let cut = text.len().min(MOST_TEXT);
            self.is_cut |= cut < text.len();
            self.keep(&text[..cut])
        };
        let value = match value {
            Value::Text(text) => Stored::Text(keep(text)),
            Value::Json(json) => Stored::Json(keep(json)),
            Value::Uint(value) => Stored::Plain(Value::Uint(value)),
            Value::Sint(value) => Stored::Plain(Value::Sint(value)),
            Value::Pointer(value) => Stored::Plain(Value::Pointer(value)),
            Value::Float(value) => Stored::Plain(Value::Float(value)),
            Value::Bool(value) => Stored::Plain(Value::Bool(value)),
            Value::Shared(value) => Stored::Plain(Value::Shared(value)),
        };
        self.items.push(Item { key, value });
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing more is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= MOST_ARGS || self.items.len() >= MOST_ITEMS
    }

    /// The value of an argument among some of them.
    pub(crate) fn find(&self, key: &[u8], among: Range<usize>) -> Option<Value<'_>> {
        let mut among = among.filter(|&item| self.key(item) == key);
        among.next().map(|item| self.value(item))
    }

    /// Name and value of an argument.
    pub(crate) fn item(&self, item: usize) -> (&[u8], Value<'_>) {
        (self.key(item), self.value(item))
    }

    fn key(&self, item: usize) -> &[u8] {
        &self.bytes[self.items[item].key.clone()]
    }

    fn value(&self, item: usize) -> Value<'_> {
        match &self.items[item].value {
            Stored::Plain(value) => *value,
            Stored::Text(text) => Value::Text(&self.bytes[text.clone()]),
            Stored::Json(json) => Value::Json(&self.bytes[json.clone()]),
        }
    }
}

/// An event, beside its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) time: Option<i64>,
    pub(crate) kind: Kind,
    pub(crate) name: &'a [u8],
    pub(crate) track: u32,
    pub(crate) category: &'a [u8],
    pub(crate) duration: u64,
    pub(crate) flows: &'a [u64],
    pub(crate) ended_flows: &'a [u64],
}

impl Row<'_> {
    pub(crate) fn new(kind: Kind, time: Option<i64>, track: u32) -> Self {
        Self {
            time,
            kind,
            name: b"",
            track,
            category: b"",
            duration: 0,
            flows: &[],
            ended_flows: &[],
        }
    }

    fn order(&self) -> Order {
        Order::new(
            self.time,
            (self.kind == Kind::Slice).then_some(self.duration),
        )
    }
}

/// What a row has beside its arguments, as bits.
pub(crate) mod has {
    pub(crate) const NAME: u64 = 1;
    pub(crate) const CATEGORY: u64 = 2;
    pub(crate) const SHARED_CATEGORY: u64 = 4;
    pub(crate) const FLOWS: u64 = 8;
    pub(crate) const OTHER: u64 = 16;
}

/// What becomes of rows.
#[derive(Debug)]
pub(crate) enum Taking {
    /// They are sorted, with all that they have.
    Whole,
    /// They are sorted, and each has only its number among those of the file. There are at most `most`.
    Numbers { next: u64, most: u64 },
    /// None is kept: what becomes of each is known already.
    Cut(Kept),
}

/// Gathers rows, tracks, classes, faults and counts.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) taking: Taking,
    pub(crate) classes: Classes,
    pub(crate) tracks: Tracks,
    pub(crate) categories: Shared,
    pub(crate) texts: Shared,
    pub(crate) sorter: Sorter,
    /// Bytes that rows may take.
    most_bytes: u64,
    /// The earliest time, where that is negative.
    pub(crate) earliest: i64,
    file: Arc<PathBuf>,
    pub(crate) faults: Vec<FaultReport>,
    more_faults: u64,
    counts: BTreeMap<String, u64>,
    pub(crate) notes: Vec<String>,
    /// Which argument has which key, and the JSON of those that have none.
    keyed: Vec<(u32, u32)>,
    other: Line,
}

impl Builder {
    /// A builder for a file of `size` bytes.
    pub(crate) fn new(path: PathBuf, size: u64) -> Self {
        Self {
            taking: Taking::Whole,
            classes: Classes::default(),
            tracks: Tracks::default(),
            categories: Shared::default(),
            texts: Shared::default(),
            sorter: Sorter::new(),
            most_bytes: size.saturating_mul(64).saturating_add(64 << 20),
            earliest: 0,
            file: Arc::new(path),
            faults: Vec::new(),
            more_faults: 0,
            counts: BTreeMap::new(),
            notes: Vec::new(),
            keyed: Vec::new(),
            other: Line::new(),
        }
    }

    /// Reports damage.
    pub(crate) fn fault(&mut self, code: FaultCode, offset: usize, message: String) {
        if self.faults.len() >= MOST_FAULTS {
            self.more_faults += 1;
            return;
        }
        self.faults.push(FaultReport::new(
            code,
            Arc::clone(&self.file),
            offset as u64,
            message,
        ));
    }

    /// Counts something that is not read, or read in a way that people should know of.
    pub(crate) fn count(&mut self, what: &str) {
        self.count_many(what, 1);
    }

    pub(crate) fn count_many(&mut self, what: &str, number: u64) {
        if number == 0 {
            return;
        }
        if let Some(count) = self.counts.get_mut(what) {
            *count += number;
        } else if self.counts.len() < MOST_COUNTS {
            self.counts.insert(what.to_string(), number);
        } else {
            *self
                .counts
                .entry("other things that are not read".into())
                .or_default() += number;
        }
    }

    /// A text of an argument: one that other events are likely to have, too.
    pub(crate) fn shared<'a>(&mut self, text: &'a [u8]) -> Value<'a> {
        let shared = text.len() >= LEAST_SHARED && text.len() <= MOST_TEXT;
        let number = shared.then(|| self.texts.number(text)).flatten();
        number.map_or(Value::Text(text), Value::Shared)
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, row: &Row<'_>, args: &Args) -> Result<(), Stop> {
        match &mut self.taking {
            Taking::Whole => {}
            Taking::Numbers { next, most } if next == most => return Err(Stop::TooMuch),
            Taking::Numbers { next, .. } => {
                let number = *next;
                *next += 1;
                let push = |out: &mut Vec<u8>| row::push_varint(number, out);
                return Ok(self.sorter.push(row.order(), push)?);
            }
            Taking::Cut(kept) => {
                kept.next_row();
                return Ok(());
            }
        }
        let (class, needs_name) = self.classes.find(row.kind, row.name);
        self.keyed.clear();
        self.other.clear();
        for item in 0..args.items.len() {
            match self.classes.key(class, args.key(item), item) {
                Some(key) => self.keyed.push((key, item as u32)),
                None => {
                    let is_first = self.other.is_empty();
                    self.other.push_byte(if is_first { b'{' } else { b',' });
                    self.other.json_string(args.key(item));
                    self.other.push_byte(b':');
                    json(args.value(item), &self.texts.texts, &mut self.other);
                }
            }
        }
        if !self.other.is_empty() {
            self.other.push_byte(b'}');
        }
        self.keyed.sort_unstable();
        let before = self.keyed.len();
        // Of arguments of the same name the last one counts.
        let mut rest = std::mem::take(&mut self.keyed);
        rest.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                *kept = *next;
            }
            is_same
        });
        self.keyed = rest;
        let twice = (before - self.keyed.len()) as u64;
        self.count_many(
            "arguments that an event has twice, the last one counts",
            twice,
        );
        if args.is_cut {
            self.count("events whose arguments are cut at 1 MiB each, 65,536 or 4 MiB together");
        }
        for &(key, item) in &self.keyed {
            self.classes.note(class, key, args.value(item as usize));
        }
        let category = match row.category.len() {
            0..=1024 => self.categories.number(row.category),
            _ => None,
        };
        let extras = Extras {
            name: needs_name,
            category: !row.category.is_empty(),
            flows: !row.flows.is_empty(),
            ended_flows: !row.ended_flows.is_empty(),
            other: !self.other.is_empty(),
        };
        self.classes.count(class, extras);
        if let Some(time) = row.time {
            self.earliest = self.earliest.min(time);
        }
        let (keyed, other) = (&self.keyed, self.other.as_bytes());
        self.sorter.push(row.order(), |out| {
            let flag = |is_there: bool, flag: u64| if is_there { flag } else { 0 };
            let flags = flag(needs_name, has::NAME)
                | flag(extras.category && category.is_none(), has::CATEGORY)
                | flag(extras.category && category.is_some(), has::SHARED_CATEGORY)
                | flag(extras.flows || extras.ended_flows, has::FLOWS)
                | flag(extras.other, has::OTHER);
            row::push_varint(class.into(), out);
            row::push_varint(row.track.into(), out);
            row::push_varint(flags, out);
            if needs_name {
                row::push_text(&row.name[..row.name.len().min(MOST_TEXT)], out);
            }
            match category {
                _ if !extras.category => {}
                Some(number) => row::push_varint(number.into(), out),
                None => {
                    row::push_text(&row.category[..row.category.len().min(MOST_TEXT)], out);
                }
            }
            if extras.flows || extras.ended_flows {
                for flows in [row.flows, row.ended_flows] {
                    row::push_varint(flows.len() as u64, out);
                    flows.iter().for_each(|&flow| row::push_varint(flow, out));
                }
            }
            row::push_varint(keyed.len() as u64, out);
            for &(key, item) in keyed {
                row::push_varint(key.into(), out);
                row::push_value(args.value(item as usize), out);
            }
            if extras.other {
                row::push_text(other, out);
            }
        })?;
        match self.sorter.bytes() > self.most_bytes {
            true => Err(Stop::TooMuch),
            false => Ok(()),
        }
    }

    /// Of the rows since the last call, which of them stay in a part of the file.
    pub(crate) fn cut(&mut self) -> Stays<'_> {
        match &mut self.taking {
            Taking::Cut(kept) => kept.stays(),
            _ => Stays::default(),
        }
    }

    /// Adds notes about what was counted.
    pub(crate) fn conclude(&mut self) {
        let counts = [
            (
                self.classes.folded_events,
                "events whose names are too many or too long to have a class each",
            ),
            (
                self.classes.folded_values,
                "arguments that have no field of their own, in `other_args`",
            ),
            (
                self.tracks.folded_rows,
                "events of too many tracks, on track `other`",
            ),
            (
                self.tracks.folded_names,
                "names of too many tracks, left out",
            ),
            (
                self.tracks.cut,
                "tracks within themselves or too many others, taken for outermost ones",
            ),
        ];
        for (number, what) in counts {
            self.count_many(what, number);
        }
        for (what, number) in std::mem::take(&mut self.counts) {
            self.notes.push(format!("{what}: {number}"));
        }
        if self.more_faults > 0 {
            self.notes
                .push(format!("faults that are not listed: {}", self.more_faults));
        }
    }
}

/// Appends a value as JSON.
pub(crate) fn json(value: Value<'_>, shared: &[Arc<[u8]>], line: &mut Line) {
    match value {
        Value::Uint(value) | Value::Pointer(value) => line.decimal(value),
        Value::Sint(value) => line.signed(value),
        Value::Float(value) => float(value, true, line),
        Value::Bool(value) => line.push(if value { b"true" } else { b"false" }),
        Value::Text(text) => line.json_string(text),
        Value::Json(json) => line.push(json),
        Value::Shared(number) => line.json_string(shared_text(number, shared)),
    }
}

pub(crate) fn shared_text(number: u32, shared: &[Arc<[u8]>]) -> &[u8] {
    shared.get(number as usize).map_or(&[], |text| text)
}

/// Appends a floating point number, as JSON lines of kymo have it.
pub(crate) fn float(value: f64, quoted: bool, line: &mut Line) {
    if value.is_finite() {
        return line.shortest(value, 64);
    }
    let name: &[u8] = match (value.is_nan(), value < 0.0) {
        (true, _) => b"NaN",
        (false, false) => b"Infinity",
        (false, true) => b"-Infinity",
    };
    match quoted {
        true => line.json_string(name),
        false => line.push(name),
    }
}
