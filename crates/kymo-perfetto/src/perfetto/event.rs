//! Track events.

use kymo_model::EntryKind;

use super::Reader;
use super::sequence::{Interned, Sequence};
use crate::builder::{Row, Stop};
use crate::classes::Kind;
use crate::legacy::{JoinId, PhaseEvent};
use crate::message::{event, legacy};
use crate::proto::{fields, fixed64s, varints};
use crate::row::Value;
use crate::tracks::{Id, Place};

/// Flows and values of counters that an event may have.
const MOST_NUMBERS: usize = 1024;

/// A track event, as it is found.
#[derive(Debug, Default)]
struct Found<'a> {
    kind: u64,
    track: Option<u64>,
    name: &'a [u8],
    name_iid: u64,
    counter: Option<Value<'static>>,
    legacy: Option<&'a [u8]>,
    delta_us: Option<i64>,
    absolute_us: Option<i64>,
}

/// Numbers of an event, kept from event to event.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    flows: Vec<u64>,
    ended: Vec<u64>,
    extra_tracks: Vec<u64>,
    extra_double_tracks: Vec<u64>,
    extra: Vec<u64>,
    extra_double: Vec<u64>,
    category: Vec<u8>,
}

impl Numbers {
    fn clear(&mut self) {
        self.category.clear();
        let lists = [
            &mut self.flows,
            &mut self.ended,
            &mut self.extra_tracks,
            &mut self.extra_double_tracks,
            &mut self.extra,
            &mut self.extra_double,
        ];
        lists.into_iter().for_each(Vec::clear);
    }

    fn add_category(&mut self, category: &[u8]) {
        if self.category.len() > MOST_NUMBERS {
            return;
        }
        if !self.category.is_empty() {
            self.category.push(b',');
        }
        self.category.extend_from_slice(category);
    }
}

fn extend(numbers: &mut Vec<u64>, more: impl Iterator<Item = u64>) {
    let left = MOST_NUMBERS.saturating_sub(numbers.len());
    numbers.extend(more.take(left));
}

fn look_up<'a>(names: &'a Interned, iid: u64, missing: &mut u64) -> &'a [u8] {
    let text = names.get(&iid);
    *missing += u64::from(text.is_none());
    text.map_or(&[], |text| text)
}

impl Reader<'_> {
    /// Adds a track event; `time` is that of its packet.
    pub(super) fn track_event(
        &mut self,
        sequence: &mut Sequence,
        message: &[u8],
        time: Option<i64>,
    ) -> Result<(), Stop> {
        let mut numbers = std::mem::take(&mut self.numbers);
        let added = self.add_track_event(sequence, message, time, &mut numbers);
        self.numbers = numbers;
        added
    }

    fn add_track_event(
        &mut self,
        sequence: &mut Sequence,
        message: &[u8],
        mut time: Option<i64>,
        numbers: &mut Numbers,
    ) -> Result<(), Stop> {
        numbers.clear();
        self.args.clear();
        let mut missing = 0;
        let found = self.find(sequence, message, numbers, &mut missing);
        if let Some(delta) = found.delta_us {
            sequence.reference_us = sequence.reference_us.wrapping_add(delta);
        }
        let own_us = found
            .delta_us
            .map(|_| sequence.reference_us)
            .or(found.absolute_us);
        if let Some(us) = own_us {
            let nanos = us.checked_mul(1000);
            time = nanos.and_then(|nanos| self.on_trace(MONOTONIC, sequence.number, nanos));
        }
        let interned = sequence.event_names.get(&found.name_iid).cloned();
        missing += u64::from(found.name_iid != 0 && interned.is_none());
        let name = interned.as_deref().unwrap_or(found.name);
        self.builder.count_many(
            "names that were not interned before they were used",
            missing,
        );
        let track = found.track.or(sequence.defaults.track);
        let place = match (track, sequence.thread) {
            (Some(0), _) | (None, None) => Place::Global,
            (Some(uuid), _) => Place::Uuid(uuid),
            (None, Some((process, thread))) => {
                Place::Thread(Some(Id::Number(process)), Id::Number(thread))
            }
        };
        self.extra_counters(sequence, time, numbers)?;
        let kind = match found.kind {
            event::SLICE_BEGIN => Kind::Begin,
            event::SLICE_END => Kind::End,
            event::INSTANT => Kind::Instant,
            event::STATE => Kind::State,
            event::COUNT => {
                let uuid = track.unwrap_or(0);
                let Some(value) = found.counter else {
                    self.builder.count("events of counters without a value");
                    return Ok(());
                };
                return self.counter(sequence, uuid, time, name, value, &numbers.category);
            }
            other => {
                return match found.legacy {
                    Some(legacy) => {
                        self.legacy_event(sequence, legacy, time, (place, name), numbers)
                    }
                    None => {
                        self.builder.count(&format!("track events of type {other}"));
                        Ok(())
                    }
                };
            }
        };
        let row = Row {
            name,
            category: &numbers.category,
            flows: &numbers.flows,
            ended_flows: &numbers.ended,
            ..Row::new(kind, time, self.builder.tracks.at(&place))
        };
        self.builder.push(&row, &self.args)
    }

    fn find<'a>(
        &mut self,
        sequence: &Sequence,
        message: &'a [u8],
        numbers: &mut Numbers,
        missing: &mut u64,
    ) -> Found<'a> {
        let mut found = Found::default();
        for field in fields(message) {
            let wire = field.wire;
            match field.number {
                event::TYPE => found.kind = wire.uint(),
                event::TRACK_UUID => found.track = Some(wire.uint()),
                event::NAME_IID => found.name_iid = wire.uint(),
                event::NAME => found.name = wire.bytes(),
                event::ANNOTATIONS => {
                    let (builder, args) = (&mut *self.builder, &mut self.args);
                    self.annotations.add(wire.bytes(), sequence, builder, args);
                }
                event::CATEGORY_IIDS => {
                    for iid in varints(wire).take(MOST_NUMBERS) {
                        numbers.add_category(look_up(&sequence.categories, iid, missing));
                    }
                }
                event::CATEGORIES => numbers.add_category(wire.bytes()),
                event::COUNTER_VALUE => found.counter = Some(Value::Sint(wire.int())),
                event::DOUBLE_COUNTER_VALUE => found.counter = Some(Value::Float(wire.double())),
                event::FLOW_IDS => extend(&mut numbers.flows, fixed64s(wire)),
                event::FLOW_IDS_OLD => extend(&mut numbers.flows, varints(wire)),
                event::TERMINATING_FLOW_IDS => extend(&mut numbers.ended, fixed64s(wire)),
                event::TERMINATING_FLOW_IDS_OLD => extend(&mut numbers.ended, varints(wire)),
                event::EXTRA_COUNTER_TRACKS => extend(&mut numbers.extra_tracks, varints(wire)),
                event::EXTRA_COUNTER_VALUES => extend(&mut numbers.extra, varints(wire)),
                event::EXTRA_DOUBLE_COUNTER_TRACKS => {
                    extend(&mut numbers.extra_double_tracks, varints(wire));
                }
                event::EXTRA_DOUBLE_COUNTER_VALUES => {
                    extend(&mut numbers.extra_double, fixed64s(wire));
                }
                event::CORRELATION_ID => {
                    self.args.push(b"correlation_id", Value::Uint(wire.uint()));
                }
                event::LEGACY_EVENT => found.legacy = Some(wire.bytes()),
                event::TIMESTAMP_DELTA_US => found.delta_us = Some(wire.int()),
                event::TIMESTAMP_ABSOLUTE_US => found.absolute_us = Some(wire.int()),
                other => self.unknown("fields of track events that are not read", other),
            }
        }
        found
    }

    /// Adds the values of counters that an event of another type brings.
    fn extra_counters(
        &mut self,
        sequence: &mut Sequence,
        time: Option<i64>,
        numbers: &Numbers,
    ) -> Result<(), Stop> {
        if numbers.extra.is_empty() && numbers.extra_double.is_empty() {
            return Ok(());
        }
        let own_or = |own: &[u64], default: &[u64]| match own {
            [] => default.to_vec(),
            own => own.to_vec(),
        };
        let tracks = own_or(&numbers.extra_tracks, &sequence.defaults.extra);
        for (&uuid, &value) in tracks.iter().zip(&numbers.extra) {
            let value = Value::Sint(value as i64);
            self.counter(sequence, uuid, time, b"", value, &[])?;
        }
        let tracks = own_or(
            &numbers.extra_double_tracks,
            &sequence.defaults.extra_double,
        );
        for (&uuid, &bits) in tracks.iter().zip(&numbers.extra_double) {
            let value = Value::Float(f64::from_bits(bits));
            self.counter(sequence, uuid, time, b"", value, &[])?;
        }
        Ok(())
    }

    /// Adds a value of a counter, which goes by the name of its track where it has none.
    fn counter(
        &mut self,
        sequence: &mut Sequence,
        uuid: u64,
        time: Option<i64>,
        name: &[u8],
        value: Value<'_>,
        category: &[u8],
    ) -> Result<(), Stop> {
        let descriptor = self.builder.tracks.descriptor(uuid);
        let unit = descriptor.and_then(|descriptor| descriptor.counter.as_ref());
        let (multiplier, is_incremental) = unit.map_or((1, false), |unit| {
            (unit.multiplier.unwrap_or(1), unit.is_incremental)
        });
        let value = match value {
            Value::Sint(value) => {
                let scaled = value.wrapping_mul(multiplier);
                Value::Sint(match is_incremental {
                    true => {
                        let last = sequence.counters.entry(uuid).or_default();
                        *last = last.wrapping_add(scaled);
                        *last
                    }
                    false => scaled,
                })
            }
            Value::Float(value) => Value::Float(value * multiplier as f64),
            value => value,
        };
        let of_track = descriptor.and_then(|descriptor| descriptor.name.clone());
        let name = match (name, &of_track) {
            (b"", Some(of_track)) => of_track.as_bytes(),
            (name, _) => name,
        };
        let place = match descriptor {
            Some(_) => Place::Uuid(uuid),
            None => Place::Named(None, format!("counter {uuid}").into(), EntryKind::Sample),
        };
        self.values.clear();
        self.values.push(b"value", value);
        let row = Row {
            name,
            category,
            ..Row::new(Kind::Counter, time, self.builder.tracks.at(&place))
        };
        self.builder.push(&row, &self.values)
    }

    /// Adds an event that has a phase, as in Chrome's JSON.
    fn legacy_event(
        &mut self,
        sequence: &Sequence,
        message: &[u8],
        time: Option<i64>,
        (place, name): (Place, &[u8]),
        numbers: &Numbers,
    ) -> Result<(), Stop> {
        let thread = sequence.thread;
        let (mut process, mut of_thread) = (thread.map(|(process, _)| process), None);
        let mut found = PhaseEvent {
            phase: 0,
            time,
            duration: None,
            place,
            process: None,
            name,
            category: &numbers.category,
            id: None,
            scope: b"",
            instant_scope: b't',
            bind_id: None,
            flow_in: false,
            flow_out: false,
        };
        for field in fields(message) {
            let wire = field.wire;
            let micros = |value: i64| u64::try_from(value).ok()?.checked_mul(1000);
            let id = |is_local| {
                let text = format!("{:#x}", wire.uint());
                Some(JoinId { text, is_local })
            };
            match field.number {
                legacy::PHASE => found.phase = u8::try_from(wire.uint()).unwrap_or(0),
                legacy::NAME_IID if found.name.is_empty() => {
                    found.name = look_up(&sequence.event_names, wire.uint(), &mut 0);
                }
                legacy::DURATION_US => found.duration = micros(wire.int()),
                legacy::THREAD_DURATION_US => self.args.push(b"tdur", Value::Sint(wire.int())),
                legacy::UNSCOPED_ID | legacy::GLOBAL_ID => found.id = id(false),
                legacy::LOCAL_ID => found.id = id(true),
                legacy::ID_SCOPE => found.scope = wire.bytes(),
                legacy::BIND_ID => found.bind_id = Some(wire.uint()),
                legacy::FLOW_DIRECTION => {
                    (found.flow_in, found.flow_out) = (wire.uint() & 1 != 0, wire.uint() & 2 != 0);
                }
                legacy::INSTANT_SCOPE => {
                    found.instant_scope = match wire.uint() {
                        1 => b'g',
                        2 => b'p',
                        _ => b't',
                    };
                }
                legacy::PID_OVERRIDE => process = Some(wire.int()),
                legacy::TID_OVERRIDE => of_thread = Some(wire.int()),
                _ => {}
            }
        }
        found.process = process.map(Id::Number);
        if let Some(thread) = of_thread {
            found.place = Place::Thread(found.process.clone(), Id::Number(thread));
        }
        found.emit(self.builder, &mut self.args)
    }
}

/// The clock of old events.
const MONOTONIC: u64 = 3;
