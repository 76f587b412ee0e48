//! What each thread has for itself: its packet, the classes that it knows, the spans that it is in.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use kymo_io::SharedWords;
use tracing_core::field::Visit;
use tracing_core::span::Id;

use crate::classes::{Action, Found, Known, Signature, Site};
use crate::encode::{Encoder, Manner, WORD, aligned, store, store_two};
use crate::mapped;
use crate::packet::Writer;
use crate::pool::Block;
use crate::recorder::{Recorder, Store};

/// Words before an event's fields: its header, and the span that it is in.
const BEFORE_FIELDS: usize = 4;

/// Maximum number of bytes of a value that is not a text, with its alignment.
const LARGEST_NUMBER: usize = 12;

/// Ticks that a packet lasts at most: the time of an event has 48 bits.
const LONGEST: u64 = 1 << 47;

/// A function that passes the values of an event to a visitor.
type Values<'a> = dyn Fn(&mut dyn Visit) + 'a;

thread_local! {
    /// What this thread has for each recording, of which there is seldom more than one.
    static LOCALS: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

struct Local {
    /// The number of the recording.
    recorder: usize,
    discarded: Arc<AtomicUsize>,
    thread: RefCell<Thread>,
}

/// Does something with what the calling thread has for a recording. Where that is in use, because formatting a
/// value has called the recorder, or is gone, because the thread ends, an event is lost.
#[inline]
pub(crate) fn with(recorder: &Arc<Recorder>, act: impl FnOnce(&mut Thread)) {
    let mut act = Some(act);
    let found = LOCALS.try_with(|locals| {
        let Ok(locals) = locals.try_borrow() else {
            return false;
        };
        let local = locals
            .iter()
            .find(|local| local.recorder == recorder.number);
        let Some(local) = local else {
            return false;
        };
        if let Ok(mut thread) = local.thread.try_borrow_mut() {
            if let Some(act) = act.take() {
                act(&mut thread);
            }
        } else {
            local.discarded.fetch_add(1, Relaxed);
        }
        true
    });
    if found != Ok(true) {
        begin(recorder, act);
    }
}

/// Runs a function without recording what the calling thread emits: sinks need this, or they would wait for
/// themselves. What is lost is counted.
pub(crate) fn silently<T>(mut act: impl FnMut() -> T) -> T {
    let did = LOCALS.try_with(|locals| {
        // Events find it in use. Where it is already, they are lost, too.
        let _in_use = locals.try_borrow_mut();
        act()
    });
    did.unwrap_or_else(|_| act())
}

/// The same as [`with`] for a thread that the recording does not know yet.
#[cold]
fn begin(recorder: &Arc<Recorder>, act: Option<impl FnOnce(&mut Thread)>) {
    if recorder.is_closed() {
        return;
    }
    let began = LOCALS.try_with(|locals| {
        let mut locals = locals.try_borrow_mut().ok()?;
        // Recordings that have ended.
        locals.retain(|local| !local.thread.borrow().recorder.is_closed());
        let mut thread = Thread::new(Arc::clone(recorder));
        if let Some(act) = act {
            act(&mut thread);
        }
        locals.push(Local {
            recorder: recorder.number,
            discarded: Arc::clone(&thread.discarded),
            thread: RefCell::new(thread),
        });
        Some(())
    });
    if !matches!(began, Ok(Some(()))) {
        recorder.lose();
    }
}

/// A thread that records.
pub(crate) struct Thread {
    recorder: Arc<Recorder>,
    place: Place,
    discarded: Arc<AtomicUsize>,
    /// The bytes of the place where the next event goes; empty before the first one.
    room: Range<usize>,
    /// When the packet began, and when the last event was.
    begin: u64,
    last: u64,
    known: Known,
    /// The spans that the thread is in, outermost first.
    spans: Vec<(Id, Site)>,
}

/// Where events go.
enum Place {
    /// To memory, from which others write them.
    Block(u32, Option<Arc<Block>>),
    /// To a file.
    Mapped(Option<(mapped::Stream, Option<Arc<SharedWords>>)>),
}

impl Thread {
    fn new(recorder: Arc<Recorder>) -> Self {
        let writer = Writer::current(recorder.next_thread());
        let (place, discarded) = match &recorder.store {
            Store::Pool(pool) => {
                let (stream, discarded) = pool.enter(writer);
                (Place::Block(stream, None), discarded)
            }
            Store::Mapped(mapped) => {
                let stream = mapped.enter(writer);
                let discarded = Arc::clone(&stream.discarded);
                (Place::Mapped(Some((stream, None))), discarded)
            }
        };
        Self {
            recorder,
            place,
            discarded,
            room: 0..0,
            begin: 0,
            last: 0,
            known: Known::default(),
            spans: Vec::with_capacity(64),
        }
    }

    /// The span that the thread is in.
    pub(crate) fn span(&self) -> u64 {
        self.spans.last().map_or(0, |(id, _)| id.into_u64())
    }

    /// The thread is within a span from now on.
    pub(crate) fn enter(&mut self, id: &Id, site: Site) {
        self.spans.push((id.clone(), site));
    }

    /// The thread leaves a span; returns the span's call site.
    pub(crate) fn exit(&mut self, id: &Id) -> Option<Site> {
        let place = self.spans.iter().rposition(|(entered, _)| entered == id)?;
        Some(self.spans.remove(place).1)
    }

    /// Records an event, or what else a call site does: in a span, with a number for its own context,
    /// if it has one.
    #[inline]
    pub(crate) fn record<V: Fn(&mut dyn Visit)>(
        &mut self,
        site: Site,
        action: Action,
        span: u64,
        context: Option<u64>,
        values: &V,
    ) {
        // Its packet has room beyond the end of the recording.
        if self.recorder.is_closed() {
            return;
        }
        let reported = Reported {
            site,
            action,
            span,
            context,
            values,
            // The time at which it happened, not at which there was room for it.
            tick: self.recorder.clock.now().max(self.last),
        };
        if reported.tick.wrapping_sub(self.begin) < LONGEST {
            let manner = Manner::default();
            if self.write(&reported, manner).is_ok() {
                return;
            }
        }
        self.record_slowly(&Reported {
            values: reported.values as &Values<'_>,
            site,
            action,
            span,
            context,
            tick: reported.tick,
        });
    }

    /// Records what could not be written at once: where there was no room, or fields came in another order.
    #[cold]
    fn record_slowly(&mut self, reported: &Reported<'_, Values<'_>>) {
        let mut manner = Manner::default();
        let mut is_new = false;
        if reported.tick.wrapping_sub(self.begin) >= LONGEST {
            if !self.next_packet(reported.tick) {
                return self.discard();
            }
            is_new = true;
        }
        // Each way to fail has its remedy, and no remedy is tried twice.
        for _ in 0..4 {
            match self.write(reported, manner) {
                Ok(()) => return,
                Err(Failed::Full) if !is_new => {
                    if !self.next_packet(reported.tick) {
                        break;
                    }
                    is_new = true;
                }
                Err(Failed::Full) if manner.longest.is_none() => {
                    manner.longest = Some(self.longest_text(reported.site));
                }
                Err(Failed::Disordered) if manner.only.is_none() => manner.only = Some(0),
                Err(Failed::TooManyClasses) if !manner.as_text => {
                    manner.as_text = true;
                    manner.only = Some(0);
                }
                Err(_) => break,
            }
        }
        self.discard();
    }

    /// Maximum number of bytes of each text of an event so that all of them fit into an empty packet.
    fn longest_text(&self, site: Site) -> usize {
        let fields = site.fields().len().max(1);
        (self
            .room
            .len()
            .saturating_sub((BEFORE_FIELDS + 2) * WORD + LARGEST_NUMBER)
            / fields)
            .saturating_sub(LARGEST_NUMBER)
    }

    /// Writes an event, and makes it known if all of it could be written.
    #[inline]
    fn write<V: Fn(&mut dyn Visit) + ?Sized>(
        &mut self,
        reported: &Reported<'_, V>,
        manner: Manner,
    ) -> Result<(), Failed> {
        let words = match &self.place {
            Place::Block(_, Some(block)) => &*block.words,
            Place::Mapped(Some((_, Some(words)))) => words,
            _ => return Err(Failed::Full),
        };
        // What is behind the room belongs to the next packet.
        let words = words.get(self.room.start / WORD..self.room.end / WORD);
        let before = words.and_then(<[_]>::split_first_chunk::<BEFORE_FIELDS>);
        let Some(([low, high, span_low, span_high], mut rest)) = before else {
            return Err(Failed::Full);
        };
        store_two(span_low, span_high, reported.span);
        if let Some(context) = reported.context {
            let Some((words, behind)) = rest.split_first_chunk() else {
                return Err(Failed::Full);
            };
            store(words, context);
            rest = behind;
        }
        let mut encoder = Encoder::new(rest);
        reported.report(&mut encoder, manner);
        let end = self.room.end - encoder.finish();
        if encoder.is_full {
            return Err(Failed::Full);
        }
        if encoder.is_disordered {
            return Err(Failed::Disordered);
        }
        let signature = match manner.as_text {
            true => Signature::TEXT,
            false => encoder.signature,
        };
        // A signature has no room for the kinds of that many fields.
        if signature == Signature::TEXT && !manner.as_text {
            return Err(Failed::TooManyClasses);
        }
        let known = self.known.find(reported.site, reported.action, signature);
        let class = match known {
            Some(found) => found,
            None if self.known.is_text(reported.site, reported.action) => Found::AsText,
            None => self
                .recorder
                .find(reported.site, reported.action, signature),
        };
        // A site that is recorded as text has an unlimited number of combinations of kinds of values.
        let stays = !matches!(class, Found::AsText | Found::Unpublished);
        if known.is_none() && stays {
            self.known
                .keep(reported.site, reported.action, signature, class);
        }
        let id = match class {
            Found::Class(id) => id,
            Found::AsText => return Err(Failed::TooManyClasses),
            Found::Nothing | Found::Unpublished => return Err(Failed::NoClass),
        };
        store_two(low, high, reported.tick << 16 | u64::from(id));
        match &mut self.place {
            Place::Block(_, Some(block)) => block.commit(self.room.start, end),
            Place::Mapped(Some((stream, _))) => stream.commit(end, reported.tick),
            _ => {}
        }
        self.room.start = aligned(end);
        self.last = reported.tick;
        Ok(())
    }

    /// Begins a packet. Returns whether there is one.
    fn next_packet(&mut self, tick: u64) -> bool {
        let lost = self.recorder.take_lost();
        if lost > 0 {
            self.discarded.fetch_add(lost, Relaxed);
        }
        let room = match (&mut self.place, &self.recorder.store) {
            (Place::Block(stream, block), Store::Pool(pool)) => {
                let Some(next) = pool.next(*stream, tick) else {
                    return false;
                };
                let room = 0..next.words.len() * WORD;
                *block = Some(next);
                Some(room)
            }
            (Place::Mapped(Some((stream, words))), Store::Mapped(mapped)) => {
                // The old file must not be in use once there is a new one.
                *words = None;
                let next = mapped.next(stream, tick);
                *words = stream.words();
                next.map(|(begin, end)| begin..end)
            }
            _ => None,
        };
        let is_there = room.is_some();
        if let Some(room) = room {
            self.room = room;
            self.begin = tick;
        }
        is_there
    }

    /// Counts an event that cannot be recorded.
    fn discard(&mut self) {
        // What has ended meanwhile no longer changes.
        if self.recorder.is_closed() {
            return;
        }
        self.discarded.fetch_add(1, Relaxed);
        if let Place::Mapped(Some((stream, _))) = &mut self.place {
            stream.report_discarded();
        }
    }
}

impl Drop for Thread {
    /// The thread ends: what it has recorded is written, and its stream goes to the next one.
    fn drop(&mut self) {
        if self.recorder.is_of_parent() {
            return;
        }
        match (&mut self.place, &self.recorder.store) {
            (Place::Block(stream, block), Store::Pool(pool)) => {
                drop(block.take());
                pool.leave(*stream);
            }
            (Place::Mapped(place), Store::Mapped(mapped)) => {
                if let Some((stream, _)) = place.take() {
                    mapped.leave(stream);
                }
            }
            _ => {}
        }
    }
}

/// What is to be recorded.
struct Reported<'a, V: ?Sized> {
    site: Site,
    action: Action,
    span: u64,
    context: Option<u64>,
    values: &'a V,
    tick: u64,
}

impl<V: Fn(&mut dyn Visit) + ?Sized> Reported<'_, V> {
    /// Passes the values to an encoder.
    #[inline]
    fn report(&self, encoder: &mut Encoder<'_>, manner: Manner) {
        if manner == Manner::default() {
            (self.values)(encoder);
            return;
        }
        if manner.only.is_none() {
            encoder.set_manner(manner);
            (self.values)(encoder);
            return;
        }
        // In the order in which the call site has them, each once.
        let has_fields = matches!(self.action, Action::Event | Action::New | Action::Record);
        for index in (0..self.site.fields().len()).filter(|_| has_fields) {
            encoder.set_manner(Manner {
                only: Some(index),
                ..manner
            });
            (self.values)(encoder);
            if manner.as_text && !encoder.has_reported(index) {
                encoder.nothing();
            }
        }
    }
}

/// Why an event could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    /// The packet has no room for it.
    Full,
    /// Its fields came in another order than its call site has them.
    Disordered,
    /// Its call site makes too many classes.
    TooManyClasses,
    /// Its class cannot be described, or not now.
    NoClass,
}
