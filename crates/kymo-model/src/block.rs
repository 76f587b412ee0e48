//! Many events at once: a cursor walks over them in a loop of its own and keeps what they are as columns.

use std::ops::Range;

use kymo_time::Timestamp;

use crate::{Cursor, Event, Fault, Nothing};

/// What is wanted of the events of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Whether its events are rows.
    pub is_wanted: bool,
    /// Whether an event is a row only if all of it can be decoded.
    pub is_decoded: bool,
    /// Whether events are handed to the [visitor](EventVisitor), which decodes them.
    pub is_visited: bool,
    /// Whether places are asked for that count from the [end](EventBlock::ends) of a field.
    pub wants_ends: bool,
}

/// Which events a block takes.
#[derive(Clone, Debug)]
pub struct BlockQuery<'q> {
    /// What is wanted of each event class, by position; nothing of classes beyond the end.
    pub interests: &'q [Interest],
    /// Positions in the chunk of the events that are wanted.
    pub numbers: Range<u64>,
    /// The time of which events are wanted, inclusive. Events without a time are always wanted.
    pub window: (Timestamp, Timestamp),
}

impl<'q> BlockQuery<'q> {
    /// All events of the classes that are wanted.
    pub fn all(interests: &'q [Interest]) -> Self {
        Self {
            interests,
            numbers: 0..u64::MAX,
            window: (Timestamp::MIN, Timestamp::MAX),
        }
    }
}

/// An event that damage is reported of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMark {
    /// Ticks of its clock.
    pub ticks: u64,
    /// Position in its chunk.
    pub number: u64,
    /// Position of its class in the recording.
    pub class: usize,
    /// Where it begins, in bits from the start of the chunk.
    pub bit: u64,
}

/// The order of the events of a chunk, or of a part of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventOrder {
    first: Option<EventMark>,
    last_ticks: u64,
    /// The first event that goes back in time.
    backwards: Option<EventMark>,
}

impl EventOrder {
    /// Adds the next event.
    #[inline]
    pub fn add<E: Event>(&mut self, event: &E) {
        if let Some(ticks) = event.ticks() {
            self.meet(ticks, || EventMark {
                ticks,
                number: event.number(),
                class: event.class_index(),
                bit: event.begin_bit(),
            });
        }
    }

    /// Adds the next event, which has ticks.
    #[inline]
    pub fn meet(&mut self, ticks: u64, mark: impl FnOnce() -> EventMark) {
        if ticks < self.last_ticks || self.first.is_none() {
            self.note(mark());
        }
        self.last_ticks = ticks;
    }

    /// Adds events up to one with these ticks, of which none goes back in time; the first of all was
    /// [met](Self::meet).
    pub fn pass_to(&mut self, ticks: u64) {
        self.last_ticks = ticks;
    }

    #[cold]
    fn note(&mut self, mark: EventMark) {
        if self.first.is_none() {
            self.first = Some(mark);
        } else if self.backwards.is_none() {
            self.backwards = Some(mark);
        }
    }

    /// Ticks of the last event, if there is one.
    pub fn last_ticks(&self) -> Option<u64> {
        self.first.map(|_| self.last_ticks)
    }

    /// The first event that goes back in time; `before` are the ticks of the last event of the stream before
    /// these.
    pub fn backwards(&self, before: Option<u64>) -> Option<EventMark> {
        self.first
            .filter(|first| before.is_some_and(|before| first.ticks < before))
            .or(self.backwards)
    }
}

/// What the events of a chunk amount to.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventCounts {
    /// Events that were decoded.
    pub events: u64,
    /// Their [values](Event::count_values), those before a fault included.
    pub values: u64,
    /// Of all events that were met.
    pub order: EventOrder,
    /// Number and class of the event whose fields contain a fault.
    pub at: Option<(u64, usize)>,
}

impl EventCounts {
    /// Decodes the next event and adds it.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped.
    pub fn add<E: Event>(&mut self, event: &E) -> Result<(), Fault> {
        self.order.add(event);
        self.at = Some((event.number(), event.class_index()));
        event.count_values(&mut self.values)?;
        self.at = None;
        self.events += 1;
        Ok(())
    }
}

/// The wanted events that a cursor has walked over, as columns of the same length.
#[derive(Debug, Default)]
pub struct EventBlock {
    /// When they were: nanoseconds, or [`NO_TIME`](Self::NO_TIME).
    pub times: Vec<i64>,
    /// When they were, in ticks; 0 if the stream has no clock.
    pub ticks: Vec<u64>,
    /// Positions of their classes in the recording.
    pub classes: Vec<u32>,
    /// Their positions in the chunk.
    pub numbers: Vec<u64>,
    /// For the events of the last walk alone: the byte of the chunk at which their fields begin, which
    /// the [`Place`](crate::batch::Place) of a field counts from.
    pub bases: Vec<usize>,
    /// For the same events of classes that want them: the byte positions in the chunk where variable-size fields end,
    /// one event after the other. `first_ends` has, for each event of the walk, the position of its first one, if any
    /// class wants them.
    pub ends: Vec<usize>,
    /// See [`ends`](Self::ends).
    pub first_ends: Vec<usize>,
    /// Of all events that were met, wanted or not.
    pub order: EventOrder,
    /// Number and class of the event whose fields contain the fault that ended the last walk.
    pub at: Option<(u64, usize)>,
}

impl EventBlock {
    /// Stands for an event without a time.
    pub const NO_TIME: i64 = i64::MIN;

    /// Number of events.
    #[inline]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The last walk begins: nothing is kept of the one before but its rows.
    pub fn begin_walk(&mut self) {
        self.bases.clear();
        self.ends.clear();
        self.first_ends.clear();
        self.at = None;
    }

    /// Forgets all events, and keeps the memory.
    pub fn clear(&mut self) {
        self.begin_walk();
        self.times.clear();
        self.ticks.clear();
        self.classes.clear();
        self.numbers.clear();
        self.order = EventOrder::default();
    }

    /// Adds a wanted event.
    #[inline]
    fn push(&mut self, time: i64, ticks: u64, class: u32, number: u64) {
        self.times.push(time);
        self.ticks.push(ticks);
        self.classes.push(class);
        self.numbers.push(number);
        self.bases.push(0);
    }
}

/// Events of which nothing but their headers is looked at, as columns of the same length.
#[derive(Debug, Default)]
pub struct EventHeaders {
    /// When they were: nanoseconds, or [`NO_TIME`](EventBlock::NO_TIME).
    pub times: Vec<i64>,
    /// Positions of their classes in the recording.
    pub classes: Vec<u32>,
    /// Where they begin, in bits from the start of their chunk.
    pub begins: Vec<u64>,
}

impl EventHeaders {
    /// Number of events.
    #[inline]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Adds an event.
    pub fn push<E: Event>(&mut self, event: &E) {
        let time = event.timestamp().map(Timestamp::as_nanos);
        self.times.push(time.unwrap_or(EventBlock::NO_TIME));
        self.classes.push(event.class_index() as u32);
        self.begins.push(event.begin_bit());
    }

    /// Forgets all events, and keeps the memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.classes.clear();
        self.begins.clear();
    }
}

/// Gets the events of a block that are to be visited.
pub trait EventVisitor {
    /// The next wanted event, which it decodes. `false` ends the block behind this event.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped. The event is then not a row.
    fn event<E: Event>(&mut self, event: &E) -> Result<bool, Fault>;
}

/// Visits no events, because none are wanted.
impl EventVisitor for Nothing {
    fn event<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        event.visit(self).map(|()| true)
    }
}

/// What [`Cursor::walk_block`] does if the format has no faster way.
pub(crate) fn walk_events<C: Cursor, V: EventVisitor>(
    cursor: &mut C,
    query: &BlockQuery<'_>,
    most: usize,
    block: &mut EventBlock,
    visitor: &mut V,
) -> Result<bool, Fault> {
    block.begin_walk();
    let (begin, end) = query.window;
    while block.bases.len() < most {
        let Some(event) = cursor.next_event()? else {
            return Ok(false);
        };
        let (number, class) = (event.number(), event.class_index());
        let ticks = event.ticks();
        block.order.add(&event);
        let interest = query.interests.get(class).copied().unwrap_or_default();
        let time = event.timestamp();
        if !interest.is_wanted
            || !query.numbers.contains(&number)
            || time.is_some_and(|time| time < begin || end < time)
        {
            continue;
        }
        let done = match interest.is_visited {
            true => visitor.event(&event),
            false if interest.is_decoded => event.visit(&mut Nothing).map(|()| true),
            false => Ok(true),
        };
        let goes_on = done.inspect_err(|_| block.at = Some((number, class)))?;
        let time = time.map_or(EventBlock::NO_TIME, Timestamp::as_nanos);
        block.push(time, ticks.unwrap_or(0), class as u32, number);
        if !goes_on {
            break;
        }
    }
    Ok(true)
}
