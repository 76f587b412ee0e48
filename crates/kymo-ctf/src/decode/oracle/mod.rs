//! A slow, plain decoder that walks the classes bit by bit, and the tests that the fast one
//! agrees with it on random classes and random data.

pub(crate) mod classes;
mod plain;

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::batch::{ColumnSource, ColumnType, Columns, DataType, WantedColumn};
use kymo_model::{
    BlockQuery, Cursor, Event, EventBlock, EventCounts, EventHeaders, EventVisitor, Fault,
    FaultCode, FieldId, Interest, Scope, Value, ValueCounter, Visitor, Wide,
};
use kymo_time::Timestamp;
use proptest::prelude::*;

use self::classes::{any_class, payload, trace};
use self::plain::{Plain, UnitsFrom};
use super::{Decoder, PacketCursor, PacketEvent};
use crate::any::structure_of;
use crate::class::{EventRecordClass, FieldPath};

/// What a decoder reports, one after another.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Uint(u64),
    Sint(i64),
    Wide(Vec<u8>),
    Float(u64),
    Bool(bool),
    Bits(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
    BeginStruct,
    EndStruct,
    BeginArray(u64),
    EndArray,
    BeginOptional(bool, u64),
    EndOptional,
    BeginVariant(u32, u64),
    EndVariant,
    At(u64),
}

#[derive(Default)]
struct Recorder(Vec<Token>);

impl Visitor for Recorder {
    const POSITIONS: bool = true;

    fn at(&mut self, bit: u64) {
        self.0.push(Token::At(bit));
    }
    fn after(&mut self, bit: u64) {
        self.0.push(Token::At(bit));
    }
    fn uint(&mut self, _: FieldId, value: u64) {
        self.0.push(Token::Uint(value));
    }
    fn sint(&mut self, _: FieldId, value: i64) {
        self.0.push(Token::Sint(value));
    }
    fn wide(&mut self, _: FieldId, value: Wide<'_>) {
        self.0.push(Token::Wide(value.bytes().to_vec()));
    }
    fn float(&mut self, _: FieldId, value: f64) {
        // All NaNs are one: widening may change their bits.
        self.0.push(Token::Float(if value.is_nan() {
            u64::MAX
        } else {
            value.to_bits()
        }));
    }
    fn boolean(&mut self, _: FieldId, value: bool) {
        self.0.push(Token::Bool(value));
    }
    fn bits(&mut self, _: FieldId, value: u64) {
        self.0.push(Token::Bits(value));
    }
    fn text(&mut self, _: FieldId, text: &[u8]) {
        self.0.push(Token::Text(text.to_vec()));
    }
    fn blob(&mut self, _: FieldId, bytes: &[u8]) {
        self.0.push(Token::Blob(bytes.to_vec()));
    }
    fn begin_struct(&mut self, _: FieldId) {
        self.0.push(Token::BeginStruct);
    }
    fn end_struct(&mut self, _: FieldId) {
        self.0.push(Token::EndStruct);
    }
    fn begin_array(&mut self, _: FieldId, length: u64) {
        self.0.push(Token::BeginArray(length));
    }
    fn end_array(&mut self, _: FieldId) {
        self.0.push(Token::EndArray);
    }
    fn begin_optional(&mut self, _: FieldId, present: bool, selector: u64) {
        self.0.push(Token::BeginOptional(present, selector));
    }
    fn end_optional(&mut self, _: FieldId) {
        self.0.push(Token::EndOptional);
    }
    fn begin_variant(&mut self, _: FieldId, selected: u32, selector: u64) {
        self.0.push(Token::BeginVariant(selected, selector));
    }
    fn end_variant(&mut self, _: FieldId) {
        self.0.push(Token::EndVariant);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_flat_program_decodes_what_the_plain_walk_decodes(
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        cut in 0u64..8,
    ) {
        let class = Arc::new(payload);
        let decoder = Decoder::new(&trace((*class).clone())).unwrap();
        let content_bits = (data.len() as u64 * 8).saturating_sub(cut);
        let head = decoder.packet_head(&data).unwrap();

        let mut plain = Plain {
            data: &data,
            content_bits,
            pos: 0,
            order: None,
            values: HashMap::new(),
            path: FieldPath { scope: Scope::Payload, steps: Vec::new() },
            tokens: Vec::new(),
            units: UnitsFrom::Packet,
        };
        let mut cursor = decoder.cursor(&data, &head, content_bits, 0);
        // One that decodes nothing must come by the same events.
        let mut skipping = decoder.cursor(&data, &head, content_bits, 0);
        // The packet does not state its size: the rest of a byte may not belong to an event.
        let ends = |pos: u64| {
            let next = pos.next_multiple_of(class.align().into());
            pos >= content_bits || next >= content_bits && content_bits - pos < 8
        };
        while !ends(plain.pos) {
            let begin = plain.pos;
            plain.tokens.clear();
            plain.values.clear();
            let expected = plain.class(&class);

            let event = cursor.next_event().unwrap().unwrap();
            prop_assert_eq!(event.begin_bit(), begin);
            let mut recorder = Recorder::default();
            let found = event.visit(&mut recorder).map_err(|fault| fault.code);
            prop_assert_eq!(&found, &expected);
            if expected.is_err() {
                // The position of a bit field is reported only if the field is there.
                let shorter = recorder.0.len().min(plain.tokens.len());
                prop_assert_eq!(&recorder.0[..shorter], &plain.tokens[..shorter]);
                return Ok(());
            }
            prop_assert_eq!(&recorder.0, &plain.tokens);
            prop_assert_eq!(skipping.next_event().unwrap().unwrap().begin_bit(), begin);
            if plain.pos == begin {
                prop_assert_eq!(cursor.next_event().unwrap_err().code, FaultCode::EmptyEvent);
                return Ok(());
            }
        }
        prop_assert!(cursor.next_event().unwrap().is_none());
    }
}

/// The numbers of wanted fields: those whose bit, by position, is in the set.
struct Numbers {
    wanted: u32,
    reported: Vec<(FieldId, u64)>,
}

impl Numbers {
    fn add(&mut self, field: FieldId, value: u64) {
        if is_wanted_field(self.wanted, field) {
            self.reported.push((field, value));
        }
    }
}

/// The texts of fields.
#[derive(Default)]
struct Texts(Vec<(FieldId, Vec<u8>)>);

impl Visitor for Texts {
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.0.push((field, text.to_vec()));
    }
}

fn is_wanted_field(wanted: u32, field: FieldId) -> bool {
    wanted >> (field.index() % 32) & 1 == 1
}

impl Visitor for Numbers {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.add(field, value);
    }
    fn sint(&mut self, field: FieldId, value: i64) {
        self.add(field, value as u64);
    }
    fn float(&mut self, field: FieldId, value: f64) {
        self.add(
            field,
            if value.is_nan() {
                u64::MAX
            } else {
                value.to_bits()
            },
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_narrow_program_reports_what_the_whole_one_reports_of_wanted_fields(
        first in prop::collection::vec(any_class(), 0..4),
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        cut in 0u64..8,
        wanted: u32,
    ) {
        let mut class = trace(payload);
        class.streams[0].common_context = Some(structure_of(first, 1));
        let decoder = Decoder::new(&class).unwrap();
        let content_bits = (data.len() as u64 * 8).saturating_sub(cut);
        let head = decoder.packet_head(&data).unwrap();
        let mut whole = decoder.cursor(&data, &head, content_bits, 0);
        let mut narrow = decoder.cursor(&data, &head, content_bits, 0);
        narrow.narrow(Arc::new(decoder.narrow(&|_, field| is_wanted_field(wanted, field))));
        let new = || Numbers { wanted, reported: Vec::new() };
        loop {
            let (one, two) = (whole.next_event(), narrow.next_event());
            let (Ok(Some(one)), Ok(Some(two))) = (&one, &two) else {
                let code = |it: Result<Option<_>, kymo_model::Fault>| it.map(|it| it.is_some()).map_err(|it| it.code);
                prop_assert_eq!(code(one), code(two));
                break;
            };
            prop_assert_eq!(one.begin_bit(), two.begin_bit());
            let (mut all, mut some) = (new(), new());
            let (of_whole, of_narrow) = (one.visit(&mut all), two.visit(&mut some));
            prop_assert_eq!(of_whole.map_err(|it| it.code), of_narrow.map_err(|it| it.code));
            if of_whole.is_err() {
                break;
            }
            prop_assert_eq!(all.reported, some.reported);
        }
    }
}

/// A cursor that has no faster way to blocks than the events themselves.
struct OneByOne<'a>(PacketCursor<'a>);

impl<'a> Cursor for OneByOne<'a> {
    type Event<'e>
        = PacketEvent<'e>
    where
        Self: 'e;

    fn next_event(&mut self) -> Result<Option<PacketEvent<'_>>, Fault> {
        self.0.next_event()
    }
}

/// Keeps the numbers of events that it visits.
struct Visited {
    wanted: u32,
    reported: Vec<(u64, Vec<(FieldId, u64)>)>,
}

impl EventVisitor for Visited {
    fn event<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        let mut numbers = Numbers {
            wanted: self.wanted,
            reported: Vec::new(),
        };
        event.visit(&mut numbers)?;
        self.reported.push((event.number(), numbers.reported));
        Ok(!self.reported.len().is_multiple_of(3))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_block_has_the_events_that_a_cursor_lends(
        first in prop::collection::vec(any_class(), 0..3),
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        cut in 0u64..8,
        [is_wanted, is_decoded, is_visited, is_narrow]: [bool; 4],
        numbers in (0u64..3, 2u64..40),
        most in prop_oneof![1usize..9, Just(100)],
        wanted: u32,
        header in prop::option::of(any::<(bool, bool)>()),
        wants_ends: bool,
    ) {
        let mut class = trace(payload);
        class.streams[0].common_context = Some(structure_of(first, 1));
        if let Some((is_large, is_big)) = header {
            let of_lttng = super::header::tests::class(if is_big { "be" } else { "le" }, is_large);
            class.clocks = of_lttng.clocks.clone();
            let stream = &mut class.streams[0];
            let of_lttng = &of_lttng.streams[0];
            stream.event_header = of_lttng.event_header.clone();
            let event = stream.events[0].clone();
            stream.events = (0..3).map(|id| EventRecordClass { id, ..event.clone() }).collect();
            stream.clock = of_lttng.clock;
        }
        let decoder = Decoder::new(&class).unwrap();
        let content_bits = (data.len() as u64 * 8).saturating_sub(cut);
        let head = decoder.packet_head(&data).unwrap();
        let cursor = || {
            let mut cursor = decoder.cursor(&data, &head, content_bits, 0);
            if is_narrow {
                cursor.narrow(Arc::new(decoder.narrow(&|_, field| is_wanted_field(wanted, field))));
            }
            cursor
        };
        let query = BlockQuery {
            interests: &[
                Interest { is_wanted, is_decoded, is_visited, wants_ends },
                Interest { is_wanted: true, is_decoded: true, wants_ends, ..Interest::default() },
            ],
            numbers: if is_narrow { 0..u64::MAX } else { numbers.0..numbers.1 },
            window: (Timestamp::MIN, Timestamp::MAX),
        };
        let (mut plain, mut fast) = (OneByOne(cursor()), cursor());
        let new = || (EventBlock::default(), Visited { wanted, reported: Vec::new() });
        let ((mut one, mut of_one), (mut two, mut of_two)) = (new(), new());
        loop {
            let before = two.len();
            let goes_on = plain.walk_block(&query, most, &mut one, &mut of_one);
            prop_assert_eq!(&goes_on, &fast.walk_block(&query, most, &mut two, &mut of_two));
            prop_assert_eq!((&one.times, &one.ticks, &one.classes), (&two.times, &two.ticks, &two.classes));
            prop_assert_eq!((&one.numbers, one.at), (&two.numbers, two.at));
            prop_assert_eq!(two.len() - before, two.bases.len());
            prop_assert_eq!(&of_one.reported, &of_two.reported);
            // Values are at their places.
            for row in 0..two.bases.len() {
                let (number, class) = (two.numbers[before + row], two.classes[before + row] as usize);
                if is_narrow || class == 0 && !is_decoded {
                    continue;
                }
                let mut events = decoder.cursor(&data, &head, content_bits, 0);
                (0..number).for_each(|_| drop(events.next_event()));
                let event = events.next_event().unwrap().unwrap();
                let mut reported = Numbers { wanted: u32::MAX, reported: Vec::new() };
                let mut texts = Texts::default();
                event.visit(&mut reported).unwrap();
                event.visit(&mut texts).unwrap();
                let gather = |field, data_type| {
                    let place = decoder.place(class, field)?;
                    let base = match place.base.checked_sub(1) {
                        None => two.bases[row],
                        Some(_) if !wants_ends => return None,
                        Some(end) => {
                            let end = two.ends[two.first_ends[row] + end];
                            (end + place.mask) & !place.mask
                        }
                    };
                    let schema = &decoder.event_classes()[class].schema;
                    let wanted = WantedColumn {
                        column: ColumnType { name: "".into(), data_type },
                        source: ColumnSource::Gathered,
                    };
                    let mut columns = Columns::new(schema, &[wanted]).with_raw_texts();
                    columns.gather_each(0, fast.bytes(), std::iter::once((base, Some(place))));
                    Some(columns)
                };
                for (field, value) in reported.reported {
                    let is = |data_type| {
                        let columns = gather(field, data_type);
                        columns.is_none_or(|columns| match columns.value(0, 0) {
                            Value::Uint(is) => is == value,
                            Value::Sint(is) => is as u64 == value,
                            Value::Float(is) => is.to_bits() == value || is.is_nan() && value == u64::MAX,
                            _ => false,
                        })
                    };
                    prop_assert!(is(DataType::Uint64) || is(DataType::Int64) || is(DataType::Float64));
                }
                for (field, text) in texts.0 {
                    let columns = gather(field, DataType::Text);
                    prop_assert!(columns.is_none_or(|columns| columns.value(0, 0) == Value::Text(&text)));
                }
            }
            if goes_on != Ok(true) {
                break;
            }
        }
        prop_assert_eq!(fast.walk_block(&query, most, &mut two, &mut of_two), Ok(false), "the walk has ended");

        let (mut one, mut two) = (EventHeaders::default(), EventHeaders::default());
        prop_assert_eq!(OneByOne(cursor()).walk_headers(&mut one), cursor().walk_headers(&mut two));
        prop_assert_eq!((one.times, one.classes, one.begins), (two.times, two.classes, two.begins));

        let (mut one, mut two) = (EventCounts::default(), EventCounts::default());
        prop_assert_eq!(OneByOne(cursor()).count_events(&mut one), cursor().count_events(&mut two));
        prop_assert_eq!((one.events, one.values, one.at), (two.events, two.values, two.at));
        prop_assert_eq!(one.order.last_ticks(), two.order.last_ticks());
        prop_assert_eq!(one.order.backwards(Some(3)), two.order.backwards(Some(3)));

        let (mut counting, mut visiting) = (cursor(), cursor());
        while let (Ok(Some(one)), Ok(Some(two))) = (counting.next_event(), visiting.next_event()) {
            let (mut count, mut counter) = (0, ValueCounter(0));
            let visited = two.visit(&mut counter);
            prop_assert_eq!(one.count_values(&mut count), visited);
            prop_assert!(is_narrow || count == counter.0, "{} values, not {}", counter.0, count);
            if visited.is_err() {
                break;
            }
        }
    }
}
