//! Events: borrowed, lazy, one at a time.

use std::sync::Arc;

use kymo_time::Timestamp;

use crate::block::{BlockQuery, EventBlock, EventCounts, EventHeaders, EventVisitor, walk_events};
use crate::{Fault, FieldId, Schema, Visitor, Wide};

/// Counts values, wherever they lie.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueCounter(
    /// Their number.
    pub u64,
);

impl Visitor for ValueCounter {
    #[inline(always)]
    fn uint(&mut self, _: FieldId, _: u64) {
        self.0 += 1;
    }
    #[inline(always)]
    fn sint(&mut self, _: FieldId, _: i64) {
        self.0 += 1;
    }
    fn wide(&mut self, _: FieldId, _: Wide<'_>) {
        self.0 += 1;
    }
    #[inline(always)]
    fn float(&mut self, _: FieldId, _: f64) {
        self.0 += 1;
    }
    #[inline(always)]
    fn float128(&mut self, _: FieldId, _: u128) {
        self.0 += 1;
    }
    #[inline(always)]
    fn boolean(&mut self, _: FieldId, _: bool) {
        self.0 += 1;
    }
    #[inline(always)]
    fn bits(&mut self, _: FieldId, _: u64) {
        self.0 += 1;
    }
    #[inline(always)]
    fn text(&mut self, _: FieldId, _: &[u8]) {
        self.0 += 1;
    }
    #[inline(always)]
    fn blob(&mut self, _: FieldId, _: &[u8]) {
        self.0 += 1;
    }
}

/// A class of events: what all of them share.
#[derive(Clone, Debug)]
pub struct EventClass {
    /// Number of the class in the recording.
    pub id: u64,
    /// Number of the stream class it belongs to (0 where the format has none).
    pub stream_class: u64,
    /// Name; `None` where the recording gives none.
    pub name: Option<Arc<str>>,
    /// Log level, as a number of the recording's own scale.
    pub log_level: Option<i64>,
    /// Identifier of the model element behind it (Eclipse Modeling Framework).
    pub emf_uri: Option<Arc<str>>,
    /// Event header, contexts and payload.
    pub schema: Schema,
}

/// One event. Its fields are decoded when asked for.
pub trait Event {
    /// Its class.
    fn class(&self) -> &EventClass;

    /// Position of its class in [`Recording::event_classes`](crate::Recording::event_classes).
    fn class_index(&self) -> usize;

    /// When it happened, on the common line; `None` where the recording keeps no time,
    /// or one that does not fit.
    fn timestamp(&self) -> Option<Timestamp>;

    /// When it happened, in the ticks of its clock; `None` where it has no clock.
    fn ticks(&self) -> Option<u64>;

    /// Position in its chunk, counted from 0.
    fn number(&self) -> u64;

    /// Where it begins, in bits from the start of the chunk.
    fn begin_bit(&self) -> u64;

    /// Decodes the contexts and the payload, in order.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped; the visitor has seen what came before it.
    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault>;

    /// Decodes it as [`visit`](Self::visit) does and adds the number of its values to `count`, those before a
    /// fault included: each number, truth value, text, BLOB, bit array or bit map.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped.
    #[inline]
    fn count_values(&self, count: &mut u64) -> Result<(), Fault> {
        let mut counter = ValueCounter(0);
        let result = self.visit(&mut counter);
        *count += counter.0;
        result
    }
}

/// Walks the events of one chunk.
pub trait Cursor {
    /// The events it lends.
    type Event<'a>: Event
    where
        Self: 'a;

    /// The next event; `None` at the end of the chunk.
    ///
    /// # Errors
    ///
    /// The fault that ends the chunk: after it comes `None`.
    fn next_event(&mut self) -> Result<Option<Self::Event<'_>>, Fault>;

    /// Walks on until the block has got `most` events more, or the chunk ends (`false`).
    ///
    /// # Errors
    ///
    /// The fault that ends the chunk: after it comes `false`.
    fn walk_block<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault>
    where
        Self: Sized,
    {
        walk_events(self, query, most, block, visitor)
    }

    /// Adds all events that are left, whose fields are not decoded.
    ///
    /// # Errors
    ///
    /// The fault that ends the chunk.
    fn walk_headers(&mut self, headers: &mut EventHeaders) -> Result<(), Fault>
    where
        Self: Sized,
    {
        while let Some(event) = self.next_event()? {
            headers.push(&event);
        }
        Ok(())
    }

    /// Decodes all events that are left, and counts them and their values.
    ///
    /// # Errors
    ///
    /// The fault that ends the chunk.
    fn count_events(&mut self, counts: &mut EventCounts) -> Result<(), Fault>
    where
        Self: Sized,
    {
        loop {
            counts.at = None;
            let Some(event) = self.next_event()? else {
                return Ok(());
            };
            counts.add(&event)?;
        }
    }

    /// The bytes of the chunk in which fields have [places](crate::Recording::place); none if no field has one.
    fn bytes(&self) -> &[u8] {
        &[]
    }
}

/// Work on the events of one chunk, compiled for each kind of cursor.
pub trait Walk {
    /// What comes of it.
    type Output;

    /// Does the work.
    fn walk<C: Cursor>(self, cursor: C) -> Self::Output;
}
