//! Call sites and the classes of events that they make.
//!
//! A call site of `tracing` has names of fields, but no types: these come with the values, and a
//! site in a generic function, or one whose values may be absent, has several. So an event is written first, and
//! what was written (its [`Signature`]) determines its class.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo_ctf::class::{Dialect, EventRecordClass, TraceClass};
use kymo_ctf::metadata;
use tracing_core::Metadata;

use crate::model;

/// A call site: there is one for as long as the program runs, so its address identifies it.
pub(crate) type Site = &'static Metadata<'static>;

/// Classes that one call site may make by its values: more than a site in a generic function has. What
/// comes after that is recorded as text, in one class for all.
const MOST_OF_SITE: u32 = 64;

/// Numbers of classes are below this; it stands for a class that cannot be recorded.
const NONE: u16 = u16::MAX;

/// How long no new class is published after one could not be: each try writes all of the metadata, on a disk that may
/// be full.
const PAUSE: Duration = Duration::from_millis(200);

/// What a call site reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// An event.
    Event,
    /// A span opens.
    New,
    /// Fields of a span get their values.
    Record,
    /// A span follows from another one.
    Follows,
    /// A thread begins to work within a span.
    Enter,
    /// A thread ends to work within a span.
    Exit,
    /// A span ends.
    Close,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 64 bits, two's complement.
    Signed = 1,
    /// 64 bits.
    Unsigned,
    /// 64 bits of IEEE 754.
    Float,
    /// A byte, 0 or 1.
    Bool,
    /// UTF-8 that ends with a zero.
    Text,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Signed,
        Self::Unsigned,
        Self::Float,
        Self::Bool,
        Self::Text,
    ];
}

/// Bits for the kind of a field.
const KIND_BITS: usize = 4;
const KINDS: usize = u64::BITS as usize / KIND_BITS;

/// Which fields of a call site an event has, and of which kinds: four bits for each.
///
/// Two numbers, which are compared one by one: what was just written a half at a time is slow to read as a whole.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub(crate) struct Signature {
    low: u64,
    high: u64,
}

impl PartialEq for Signature {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low && self.high == other.high
    }
}

impl Hash for Signature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.low, self.high).hash(state);
    }
}

impl Signature {
    /// All fields, as text. No kinds make it.
    pub(crate) const TEXT: Self = Self {
        low: u64::MAX,
        high: u64::MAX,
    };

    /// Adds the field at a position.
    #[inline]
    pub(crate) fn add(&mut self, index: usize, kind: Kind) {
        if index < KINDS {
            self.low |= (kind as u64) << (KIND_BITS * index);
        } else if index < 2 * KINDS {
            self.high |= (kind as u64) << (KIND_BITS * (index - KINDS));
        } else {
            *self = Self::TEXT;
        }
    }

    /// The kind of the field at a position, if the event has it.
    pub(crate) fn kind(self, index: usize) -> Option<Kind> {
        if self == Self::TEXT {
            return Some(Kind::Text);
        }
        let kinds = [self.low, self.high];
        let kinds = kinds.get(index / KINDS)?;
        let number = kinds >> (KIND_BITS * (index % KINDS)) & ((1 << KIND_BITS) - 1);
        Kind::ALL.into_iter().find(|&kind| kind as u64 == number)
    }
}

/// What distinguishes classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The address of a byte of the call site: of its first one an event, of the next one a new span, and so on. No
    /// two sites have a byte in common, and none is at zero.
    place: usize,
    signature: Signature,
}

impl Key {
    const NONE: Self = Self {
        place: 0,
        signature: Signature { low: 0, high: 0 },
    };

    #[inline]
    fn new(site: Site, action: Action, signature: Signature) -> Self {
        const { assert!(size_of::<Metadata<'_>>() > Action::Close as usize) };
        Self {
            place: std::ptr::from_ref(site).addr() + action as usize,
            signature,
        }
    }

    #[inline]
    fn hash(self) -> usize {
        let Signature { low, high } = self.signature;
        let mixed = (self.place as u64) ^ low.rotate_left(20) ^ high.rotate_left(40);
        // Fibonacci hashing: the high bits depend on all.
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
    }
}

/// What came of the question for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its number.
    Class(u16),
    /// The site has too many: the event is to be written as text.
    AsText,
    /// No number is left, or the class cannot be described. This is final.
    Nothing,
    /// The metadata could not be written: it is tried again.
    Unpublished,
}

/// The classes that a thread has met: it asks for each only once.
#[derive(Debug)]
pub(crate) struct Known {
    /// A power of two, at most half of them taken; the others have no key.
    entries: Vec<(Key, Found)>,
    taken: usize,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            entries: vec![(Key::NONE, Found::Nothing); 128],
            taken: 0,
        }
    }
}

impl Known {
    /// The class of what a call site does, if it is known.
    #[inline]
    pub(crate) fn find(&self, site: Site, action: Action, signature: Signature) -> Option<Found> {
        let wanted = Key::new(site, action, signature);
        let mask = self.entries.len() - 1;
        let mut place = wanted.hash() & mask;
        // There always is a free one.
        while let Some(&(key, found)) = self.entries.get(place) {
            if key == wanted {
                return Some(found);
            }
            if key == Key::NONE {
                return None;
            }
            place = (place + 1) & mask;
        }
        None
    }

    /// Whether a call site was recorded as text, because it has too many classes.
    pub(crate) fn is_text(&self, site: Site, action: Action) -> bool {
        self.find(site, action, Signature::TEXT).is_some()
    }

    /// Keeps the class of what a call site does.
    pub(crate) fn keep(&mut self, site: Site, action: Action, signature: Signature, found: Found) {
        if (self.taken + 1) * 2 > self.entries.len() {
            let twice = vec![(Key::NONE, Found::Nothing); self.entries.len() * 2];
            for entry in std::mem::replace(&mut self.entries, twice) {
                self.put(entry);
            }
        }
        self.put((Key::new(site, action, signature), found));
        self.taken += 1;
    }

    fn put(&mut self, entry: (Key, Found)) {
        let mask = self.entries.len() - 1;
        let mut place = entry.0.hash() & mask;
        while self.entries[place].0 != Key::NONE {
            place = (place + 1) & mask;
        }
        self.entries[place] = entry;
    }
}

/// All classes of a recording.
#[derive(Debug)]
pub(crate) struct Classes(Mutex<All>);

#[derive(Debug)]
struct All {
    /// The trace, with no class of events.
    trace: TraceClass,
    /// Its text.
    empty: String,
    /// The text with all classes.
    text: String,
    found: HashMap<Key, Found>,
    /// How many classes each call site has asked for, for each of what it does.
    of_site: HashMap<usize, u32>,
    next: u16,
    /// When a class may be published again, after one could not be.
    again: Option<Instant>,
}

impl Classes {
    /// No classes yet.
    ///
    /// # Errors
    ///
    /// If the trace cannot be expressed in its dialect.
    pub(crate) fn new(trace: TraceClass) -> io::Result<Self> {
        let empty = text_of(&trace)?;
        Ok(Self(Mutex::new(All {
            text: empty.clone(),
            empty,
            trace,
            found: HashMap::new(),
            of_site: HashMap::new(),
            next: 0,
            again: None,
        })))
    }

    /// The class of what a call site does; a new one if there is none. `publish` is given the metadata
    /// with it before anybody hears of it, and may refuse it.
    pub(crate) fn find(
        &self,
        site: Site,
        action: Action,
        signature: Signature,
        publish: impl FnOnce(&str) -> io::Result<()>,
    ) -> Found {
        let key = Key::new(site, action, signature);
        let mut all = self.lock();
        if let Some(&found) = all.found.get(&key) {
            return found;
        }
        // Whatever values a call site has, no more than these are kept of it.
        let made = all.of_site.get(&key.place);
        if made.is_some_and(|&made| made >= MOST_OF_SITE) && signature != Signature::TEXT {
            return Found::AsText;
        }
        let found = all.add(site, action, signature, publish);
        if found != Found::Unpublished {
            *all.of_site.entry(key.place).or_default() += 1;
            all.found.insert(key, found);
        }
        found
    }

    /// Returns a copy of the current metadata, so that no thread that needs a new class waits while it is used.
    pub(crate) fn text(&self) -> String {
        self.lock().text.clone()
    }

    /// The same, unless its length is `bytes`. It only ever grows.
    pub(crate) fn text_unless(&self, bytes: usize) -> Option<String> {
        let all = self.lock();
        (all.text.len() != bytes).then(|| all.text.clone())
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        // What is in it is changed only where nothing can fail after that.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn add(
        &mut self,
        site: Site,
        action: Action,
        signature: Signature,
        publish: impl FnOnce(&str) -> io::Result<()>,
    ) -> Found {
        let id = self.next;
        if id == NONE {
            return Found::Nothing;
        }
        if self.again.is_some_and(|again| Instant::now() < again) {
            return Found::Unpublished;
        }
        let class = model::event(self.trace.dialect, id, site, action, signature);
        let Ok(piece) = self.piece(class) else {
            return Found::Nothing;
        };
        let before = self.text.len();
        self.text += &piece;
        if publish(&self.text).is_err() {
            self.text.truncate(before);
            self.again = Some(Instant::now() + PAUSE);
            return Found::Unpublished;
        }
        self.next += 1;
        Found::Class(id)
    }

    /// What a class adds to the metadata: it stands at the end of it, whatever the classes before it.
    fn piece(&mut self, class: EventRecordClass) -> io::Result<String> {
        let stream = self.trace.streams.first_mut();
        let events = &mut stream.ok_or_else(no_class)?.events;
        events.push(class);
        let whole = text_of(&self.trace);
        for stream in &mut self.trace.streams {
            stream.events.clear();
        }
        let whole = whole?;
        let piece = whole.strip_prefix(&self.empty).ok_or_else(no_class)?;
        Ok(piece.to_owned())
    }
}

fn no_class() -> io::Error {
    io::Error::other("the class of an event cannot be described")
}

/// The metadata of a trace in its dialect, with other names where it cannot hold those that there are.
fn text_of(trace: &TraceClass) -> io::Result<String> {
    if trace.dialect == Dialect::Rfc11 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "recordings are of CTF 1.8 or CTF 2",
        ));
    }
    let fitted = metadata::fit::fit(trace, trace.dialect).map_err(io::Error::other)?;
    metadata::write::write(&fitted.model).map_err(io::Error::other)
}
