//! Headers of packets and events: what their fields are for decides what is written there.

use std::collections::HashMap;

use kymo_model::{FieldId, Schema, Visitor};
use kymo_time::Ticks;

use super::encode::{Encode, Expected};
use super::values::{Token, Values};
use crate::class::Role;
use crate::decode::PACKET_MAGIC;
use crate::decode::op::{Op, Program};

/// Bytes of LEB128 that hold any number of 64 bits.
const ALL_LEB128: u32 = 10;

/// Members of headers and contexts that have no role, by their path within the scope.
#[derive(Clone, Debug, Default)]
pub struct Members {
    named: HashMap<String, Vec<(FieldId, Token)>>,
    /// The decoded values, and the schema that their fields belong to.
    decoded: Values,
    schema: std::sync::Arc<Schema>,
    /// Whether what is not given is zero.
    zeros: bool,
}

impl Members {
    /// Sets a member: `path` is its name, or those of the structures it lies in, joined by dots.
    pub fn set(&mut self, path: &str, value: Token) {
        let value = vec![(FieldId(0), value)];
        self.named.insert(path.to_owned(), value);
    }

    /// Values of another packet or header, which count where nothing was [set](Self::set); what
    /// they do not contain is zero.
    pub fn decoded(&mut self, schema: &std::sync::Arc<Schema>) -> &mut Values {
        self.zeros = true;
        if !std::sync::Arc::ptr_eq(&self.schema, schema) {
            self.schema = std::sync::Arc::clone(schema);
        }
        self.decoded.clear();
        &mut self.decoded
    }

    fn of(&self, path: &str) -> Option<&[(FieldId, Token)]> {
        match self.named.get(path) {
            Some(value) => Some(value),
            None => self.decoded.of(&self.schema, path),
        }
    }
}

/// What is known of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub uuid: Option<[u8; 16]>,
    pub stream_class_id: u64,
    pub stream_id: u64,
    /// In what the dialect counts.
    pub total: u64,
    pub content: u64,
    pub begin: u64,
    pub end: u64,
    pub discarded: u64,
    pub sequence: u64,
}

/// Writes the fields of a packet's header and context.
pub(super) fn packet(encode: &mut Encode<'_>, head: &Head, members: &Members) {
    fill(encode, members, &mut |encode: &mut Encode<'_>| {
        if encode.is_uuid() {
            return uuid(encode, head.uuid.unwrap_or_default());
        }
        let Some((role, _)) = encode.roles().last() else {
            return false;
        };
        match role {
            Role::PacketMagic => encode.uint(FieldId(0), PACKET_MAGIC),
            Role::StreamClassId => encode.uint(FieldId(0), head.stream_class_id),
            Role::StreamId => encode.uint(FieldId(0), head.stream_id),
            // These are known at the packet's end: until then they have their place.
            Role::PacketTotalLength => number(encode, head.total),
            Role::PacketContentLength => number(encode, head.content),
            Role::DefaultClockTimestamp => encode.low_bits(head.begin, ALL_LEB128),
            Role::PacketEndTimestamp => encode.low_bits(head.end, ALL_LEB128),
            Role::DiscardedEvents => encode.low_bits(head.discarded, ALL_LEB128),
            Role::PacketSequenceNumber => encode.low_bits(head.sequence, ALL_LEB128),
            Role::MetadataUuid | Role::EventClassId => return false,
        }
        true
    });
}

/// A number that must fit, in as many bytes as any number would have.
fn number(encode: &mut Encode<'_>, value: u64) {
    match encode.number_bits() {
        Some(0) => encode.low_bits(value, ALL_LEB128),
        _ => encode.uint(FieldId(0), value),
    }
}

fn uuid(encode: &mut Encode<'_>, uuid: [u8; 16]) -> bool {
    match encode.expected() {
        Expected::BeginArray(field) => {
            encode.begin_array(field, 16);
            uuid.iter()
                .for_each(|&byte| encode.uint(field, byte.into()));
            encode.end_array(field);
        }
        _ => encode.blob(FieldId(0), &uuid),
    }
    true
}

/// Writes all that a program expects: what `known` writes, and of the rest what is among the
/// members.
fn fill(
    encode: &mut Encode<'_>,
    members: &Members,
    known: &mut impl FnMut(&mut Encode<'_>) -> bool,
) {
    while !encode.has_stopped() {
        let expected = encode.expected();
        let schema = encode.schema();
        match expected {
            Expected::End => return,
            Expected::EndStruct(field) => encode.end_struct(field),
            Expected::EndArray(field) => encode.end_array(field),
            Expected::EndChoice(field) => encode.end_variant(field),
            Expected::BeginStruct(field) => {
                // A structure that holds what the writer knows is gone through.
                match given(members, schema, field) {
                    Some(tokens) if !encode.struct_has_roles() => report(encode, tokens),
                    _ => encode.begin_struct(field),
                }
            }
            Expected::Value(field) => {
                if known(encode) {
                    continue;
                }
                match given(members, schema, field) {
                    Some(tokens) => report(encode, tokens),
                    None if members.zeros => zero(encode, field),
                    None => encode.fail(field, "it is not given: set this member of the header"),
                }
            }
            Expected::BeginArray(field) => {
                if known(encode) {
                    continue;
                }
                match given(members, schema, field) {
                    Some(tokens) => report(encode, tokens),
                    None if members.zeros || encode.reported_length() == 0 => {
                        encode.begin_array(field, encode.reported_length());
                    }
                    None => encode.fail(field, "it is not given: set this member of the header"),
                }
            }
            Expected::BeginOptional(field) => {
                let (option, selector) = encode.reported_option();
                encode.begin_optional(field, option.is_some(), selector);
            }
            Expected::BeginVariant(field) => match encode.reported_option() {
                (Some(option), selector) => encode.begin_variant(field, option as u32, selector),
                (None, selector) => encode.fail(
                    field,
                    format!("no option is selected by its selector, {selector}"),
                ),
            },
        }
    }
}

/// What is given for a field, by its path.
fn given<'m>(
    members: &'m Members,
    schema: &Schema,
    field: FieldId,
) -> Option<&'m [(FieldId, Token)]> {
    if members.named.is_empty() && members.decoded.tokens().is_empty() {
        return None;
    }
    match schema.path(field).as_str() {
        "" => None,
        path => members.of(path),
    }
}

fn report(encode: &mut Encode<'_>, tokens: &[(FieldId, Token)]) {
    for (field, token) in tokens {
        token.report(*field, encode);
    }
}

fn zero(encode: &mut Encode<'_>, field: FieldId) {
    match encode.value_kind() {
        Op::F32Le(_) | Op::F32Be(_) | Op::F64Le(_) | Op::F64Be(_) => encode.float(field, 0.0),
        Op::F128(_) => encode.float128(field, 0),
        Op::Text(_) | Op::WideText { .. } | Op::SizedText { .. } => encode.text(field, b""),
        Op::Blob { .. } => {
            let length = encode.reported_length();
            // No more than a header can reasonably hold: what is longer is refused.
            encode.blob(field, &vec![0; length.min(1 << 16) as usize]);
        }
        Op::Wide(_) => encode.uint(field, 0),
        _ if encode.number_bits().is_none() => encode.float(field, 0.0),
        _ => encode.uint(field, 0),
    }
}

/// The ways to write the headers of a stream class's events.
///
/// A header may have several forms: tracers write a short one and, where the number of the class
/// or the time since the event before do not fit, a longer one. The selectors of these forms are
/// tried in turn, the natural one first, until a reader would get back what is to be written.
#[derive(Debug, Default)]
pub(super) struct Forms {
    /// Numbers that select what else is in the header: position of the instruction, and an
    /// example for each thing they select.
    selectors: Vec<(usize, Vec<u64>)>,
}

/// How many combinations of selectors are tried.
const MOST_FORMS: usize = 256;

/// What an event header must express.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported {
    pub id: u64,
    /// Full ticks, where the stream has a clock.
    pub ticks: Option<u64>,
    /// Ticks as a reader has them before the event.
    pub clock: u64,
}

impl Forms {
    pub(super) fn new(header: &Program) -> Self {
        let mut selectors: Vec<(usize, Vec<u64>)> = Vec::new();
        for op in &header.ops {
            let (Op::Optional { table, slot, .. } | Op::Variant { table, slot, .. }) = *op else {
                continue;
            };
            let choice = &header.tables[table as usize].choice;
            let is_save = |op: &Op| matches!(op, Op::Save { slot: saved } if *saved == slot);
            for at in (0..header.ops.len()).filter(|&at| is_save(&header.ops[at])) {
                // The number is the instruction before those that only note it.
                let is_note = |op: &Op| matches!(op, Op::Save { .. });
                let value = (0..at).rev().find(|&at| !is_note(&header.ops[at]));
                let Some(value) = value else { continue };
                let examples = choice
                    .ranges()
                    .map(|(low, ..)| low)
                    .chain(choice.example(None));
                match selectors.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, known)) => known.extend(examples),
                    None => selectors.push((value, examples.collect())),
                }
            }
        }
        Self { selectors }
    }

    /// How many ways there are.
    pub(super) fn count(&self) -> usize {
        let ways = self.selectors.iter().fold(1usize, |ways, (_, examples)| {
            ways.saturating_mul(examples.len() + 1)
        });
        ways.min(MOST_FORMS)
    }

    /// Writes a header in one of the ways; returns whether a reader would get back what was to be written.
    pub(super) fn write(
        &self,
        form: usize,
        encode: &mut Encode<'_>,
        reported: &Reported,
        members: &Members,
    ) -> bool {
        let mut id = 0;
        let mut clock = Ticks(reported.clock);
        let mut fits = true;
        let mut left = form;
        let mut chosen = |position: usize| {
            let (_, examples) = self.selectors.iter().find(|(at, _)| *at == position)?;
            let which = left % (examples.len() + 1);
            left /= examples.len() + 1;
            examples.get(which.checked_sub(1)?).copied()
        };
        fill(encode, members, &mut |encode: &mut Encode<'_>| {
            let Some(bits) = encode.number_bits() else {
                return false;
            };
            let (mut is_id, mut clock_bits) = (false, None);
            for (role, bits) in encode.roles() {
                match role {
                    Role::EventClassId => is_id = true,
                    Role::DefaultClockTimestamp => clock_bits = Some(bits),
                    _ => {}
                }
            }
            let selector = chosen(encode.position());
            let value = match (selector, is_id, clock_bits, reported.ticks) {
                (Some(selector), ..) => selector,
                (None, true, ..) => reported.id,
                (None, false, Some(_), Some(ticks)) => {
                    let bytes = leb128_bytes(clock, ticks);
                    encode.low_bits(ticks, bytes);
                    let bits = match bits {
                        0 => (7 * bytes).min(64),
                        bits => bits,
                    };
                    clock = clock.advance(ticks, bits);
                    return true;
                }
                (None, false, Some(_), None) => 0,
                (None, false, None, _) => return false,
            };
            if bits != 0 && bits < 64 && value >> bits != 0 {
                fits = false;
            }
            encode.low_bits(value, ALL_LEB128.min(leb128_length(value)));
            if is_id {
                id = value;
            }
            if clock_bits.is_some() {
                let bits = match bits {
                    0 => (7 * leb128_length(value)).min(64),
                    bits => bits,
                };
                clock = clock.advance(value, bits);
            }
            true
        });
        fits && id == reported.id && reported.ticks.is_none_or(|ticks| ticks == clock.0)
    }
}

/// The fewest bytes of LEB128 from which a reader gets the ticks back.
fn leb128_bytes(clock: Ticks, ticks: u64) -> u32 {
    (1..ALL_LEB128)
        .find(|&bytes| clock.advance(ticks, 7 * bytes).0 == ticks)
        .unwrap_or(ALL_LEB128)
}

/// How many bytes of LEB128 a number needs.
fn leb128_length(value: u64) -> u32 {
    (64 - value.leading_zeros()).div_ceil(7).max(1)
}
