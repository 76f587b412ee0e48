//! elog files, which VPP's programs read.
//!
//! * An event of elog has a time, a track, and a type, which specifies its arguments: up to 20 bytes of
//!   integers, floating point numbers and references to strings.
//! * Integers, floating point numbers, truth values and texts are arguments, in the order of the
//!   fields, as far as there is room. All other fields are one text, `KEY=VALUE` with blanks between.
//!   Events of elog files keep their types, those of CPEL files what they show as text.
//! * Times count from the first event, or, where all recordings are elog files, from where the
//!   first one began.
//! * Programs take what comes before the first blank, parenthesis or percent sign of a format for
//!   the name: such a character of a name is an underscore.

use std::io::Write;
use std::sync::Arc;

use kymo_cpel::elog::write::{Builder, EXACT_NANOS, MOST_BYTES};
use kymo_cpel::elog::{Argument, ArgumentKind, Moment, Value as Datum};
use kymo_cpel::write;
use kymo_model::{Base, Chunk, Event, EventClass, Fault, FieldId, Kind, Recording, Scope, Value};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::binding::{TrackBinding, UnknownField};
use super::losses::{Loss, Losses, Times};
use super::text::{FieldPlan, FieldText, TextPlan, format_of, without_zeros};
use super::timeline::Timeline;
use crate::AnyRecording;
use crate::filter::{FieldNames, name_of};
use crate::pipeline::{Row, RowBuffers};
use crate::show::csv::{Column, packet_columns};
use crate::show::packet::PacketFields;
use crate::show::table::Table;
use crate::show::{LossReporter, Message, Renderer, Sink, WallOptions};
use crate::timeline::Filler;
use crate::tracks::text_of;

/// Bytes of all texts of a file that is made, which are in memory until it is written.
const MOST_STRINGS: u32 = 1 << 30;
/// A text of the string table.
const TEXT: Argument = Argument {
    kind: ArgumentKind::Table,
    size: 4,
};

/// What is read of the events of some recordings.
#[derive(Debug)]
pub struct ElogPlan {
    binding: TrackBinding,
    /// By recording and class.
    shapes: Vec<Vec<Shape>>,
}

impl ElogPlan {
    /// Tracks are the values of a field; without, those of event logs, and otherwise streams.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn new(
        track: Option<&FieldNames>,
        recordings: &[AnyRecording],
    ) -> Result<Self, UnknownField> {
        let binding = TrackBinding::of_value("--track", track, false, None, recordings)?;
        let shapes: Vec<_> = recordings.iter().map(shapes).collect();
        let picks = |recording: usize, class: usize| shapes[recording][class].picks.clone();
        Ok(Self {
            binding: binding.with_fields(recordings, picks),
            shapes,
        })
    }
}

/// Gathers the events of a file. Of these, memory holds some megabytes, and each text once; the rest is in temporary
/// storage. Losses of the recorders are reported as warnings.
#[derive(Debug)]
pub struct Elog<'m> {
    plan: &'m ElogPlan,
    losses: Arc<Losses>,
    loss_reporter: LossReporter,
    timeline: Timeline<'m>,
    builder: Builder,
    /// When recording began, once it is known.
    begin: Option<i64>,
    times: Times,
    /// The type of each shape, once there is an event of it.
    kinds: Table<Option<u16>>,
    /// Of each track of the time line.
    tracks: Vec<u16>,
    /// What has gone wrong.
    error: Option<write::Error>,
}

impl<'m> Elog<'m> {
    /// A file of some recordings, which the plan is bound to; `wall` is how times are shown in
    /// warnings.
    pub fn new(recordings: &[AnyRecording], plan: &'m ElogPlan, wall: WallOptions) -> Self {
        let losses = Arc::new(Losses::default());
        let begins = recordings.iter().map(|recording| match recording {
            AnyRecording::Elog(log) => Some(log.begin().as_nanos()),
            _ => None,
        });
        let begins: Option<Vec<i64>> = begins.collect();
        Self {
            timeline: Timeline::new(recordings, &plan.binding, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            plan,
            losses,
            loss_reporter: LossReporter::new(wall),
            builder: Builder::new(MOST_STRINGS),
            begin: begins.and_then(|begins| begins.into_iter().min()),
            kinds: Table::default(),
            tracks: Vec::new(),
            error: None,
        }
    }

    /// What the file cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// What does not fit, and what hinders writing.
    pub fn write(self, out: &mut impl Write) -> Result<(), write::Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let begin = Moment::of_unix_nanos(self.begin.unwrap_or(0).try_into().unwrap_or(0));
        if self
            .begin
            .is_some_and(|nanos| begin.unix_nanos() != nanos as u64)
        {
            self.losses.add(Loss::NoEpoch, 1);
        }
        self.builder.write(begin, out)
    }

    /// The nanoseconds of an event since recording began.
    fn nanos(&mut self, message: &Message) -> u64 {
        let since_begin = |time: Timestamp| {
            let begin = *self.begin.get_or_insert(time.as_nanos());
            time.as_nanos().saturating_sub(begin)
        };
        let nanos = self.times.next_from_zero(message.time.map(since_begin));
        if nanos > EXACT_NANOS {
            self.losses.add(Loss::Inexact, 1);
        }
        nanos
    }

    /// Adds an event.
    fn add(&mut self, row: &Row<'_>, recordings: &[AnyRecording]) -> Result<(), write::Error> {
        let message = &row.message;
        let nanos = self.nanos(message);
        let place = self.timeline.place(row, recordings);
        if place.is_new {
            let name = &self.timeline.track(place.track).name;
            self.tracks.push(self.builder.track(name.as_bytes())?);
        }
        let kind = self.kind(message, recordings)?;
        let plan = self.plan;
        let shape = &plan.shapes[message.recording][message.class];
        let first = (plan.binding.plan()).first_added(message.recording, message.class);
        let mut values = Vec::with_capacity(shape.arguments.len());
        for (position, &argument) in shape.arguments.iter().enumerate() {
            let value = match position < shape.picks.len() {
                true => row.values.get(first + position),
                // It begins with a blank, if there is any.
                false => Value::Text(row.text.get(1..).unwrap_or_default()),
            };
            values.push(datum(&mut self.builder, argument, value)?);
        }
        let track = self.tracks[place.track];
        self.builder.push(kind, track, nanos, &values)
    }

    /// The type of the events of a class.
    fn kind(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
    ) -> Result<u16, write::Error> {
        let (recording, class) = (message.recording, message.class);
        let slot = self.kinds.get(recording, class, || None);
        if let Some(kind) = *slot {
            return Ok(kind);
        }
        let shape = &self.plan.shapes[recording][class];
        self.losses.add(Loss::Renamed, shape.is_renamed.into());
        let labels: Vec<&[u8]> = match &recordings[recording] {
            AnyRecording::Elog(log) => {
                let labels = log.log().types[class].labels.iter();
                labels.map(|label| &log.bytes()[label.clone()]).collect()
            }
            _ => Vec::new(),
        };
        let kind = (self.builder).event_type(&shape.format, &shape.arguments, &labels)?;
        Ok(*slot.insert(kind))
    }
}

/// A value as that of an argument; what is not there is nothing.
fn datum<'v>(
    builder: &mut Builder,
    argument: Argument,
    value: Value<'v>,
) -> Result<Datum<'v>, write::Error> {
    Ok(match (argument.kind, value) {
        (ArgumentKind::String, Value::Text(text)) => Datum::Text(text),
        (ArgumentKind::String, _) => Datum::Text(b""),
        (ArgumentKind::Float, Value::Float(value)) => Datum::Float(value),
        (ArgumentKind::Float, _) => Datum::Float(0.0),
        (ArgumentKind::Table, Value::Text(text)) => {
            Datum::Integer(builder.string(&without_zeros(text))?.into())
        }
        (ArgumentKind::Table, value) => {
            Datum::Integer(builder.string(text_of(value).as_bytes())?.into())
        }
        (ArgumentKind::Integer | ArgumentKind::Label, value) => Datum::Integer(match value {
            Value::Uint(value) | Value::Bits(value) => value,
            Value::Sint(value) => value as u64,
            Value::Bool(value) => value.into(),
            _ => 0,
        }),
    })
}

/// The shapes of all classes of a recording.
fn shapes(recording: &AnyRecording) -> Vec<Shape> {
    let stream_of = |class: &EventClass| {
        let mut streams = recording.streams().iter();
        streams.position(|stream| stream.class == class.stream_class)
    };
    // Classes are listed stream class by stream class.
    let mut packet = (None, Vec::new());
    let shape = |(position, class): (usize, &EventClass)| {
        let stream = stream_of(class);
        if packet.0 != stream {
            let columns = |stream| packet_columns(&PacketFields::of(recording, stream));
            packet = (stream, stream.map_or_else(Vec::new, columns));
        }
        Shape::new(recording, position, &packet.1)
    };
    recording
        .event_classes()
        .iter()
        .enumerate()
        .map(shape)
        .collect()
}

/// What the events of a class are in the file.
#[derive(Debug)]
struct Shape {
    format: Vec<u8>,
    arguments: Vec<Argument>,
    /// The fields that are the first of them.
    picks: Vec<FieldId>,
    /// The last one, where it is the text of all other fields.
    rest: Option<TextPlan>,
    /// Whether the name is not that of the class.
    is_renamed: bool,
}

impl Shape {
    fn new(recording: &AnyRecording, class: usize, packet: &[Column]) -> Self {
        let class_of = &recording.event_classes()[class];
        let mut shape = Self {
            format: Vec::new(),
            arguments: Vec::new(),
            picks: Vec::new(),
            rest: None,
            is_renamed: false,
        };
        if let AnyRecording::Elog(log) = recording {
            // The shape in its own file. The text, which is not an argument, comes last.
            let kind = &log.log().types[class];
            shape.format = log.bytes()[kind.format.clone()].to_vec();
            shape.arguments.clone_from(&kind.arguments);
            shape.picks = payload(class_of).take(kind.arguments.len()).collect();
            return shape;
        }
        shape.name(class_of);
        match recording.is_log() {
            true => shape.text(class_of),
            false => shape.fields(class_of, packet),
        }
        shape
    }

    /// Begins the format with the name of a class.
    fn name(&mut self, class: &EventClass) {
        let name = class.name.clone().unwrap_or_else(|| name_of(class).into());
        let mut plain = name.replace([' ', '(', '%'], "_");
        if plain.is_empty() {
            // The format would be taken for the name.
            plain.push('_');
        }
        self.is_renamed = *plain != *name;
        self.format = format_of(plain.as_bytes());
    }

    /// Takes what a log shows of an event.
    fn text(&mut self, class: &EventClass) {
        let is_text = |field: &FieldId| class.schema.field(*field).name.as_deref() == Some("text");
        self.picks = payload(class).filter(is_text).collect();
        self.arguments = vec![TEXT; self.picks.len()];
        self.format.extend(b" %s".repeat(self.picks.len()));
    }

    /// Takes the fields of a class, and those of its packets.
    fn fields(&mut self, class: &EventClass, packet: &[Column]) {
        let mut plan = FieldPlan::new(class, packet);
        let fits = |room: u8| {
            let mut room = room;
            let arguments = plan.fields.iter().map(|&field| {
                let (argument, conversion) = argument(&class.schema.field(field).kind)?;
                room = room.checked_sub(argument.size)?;
                Some((argument, conversion))
            });
            arguments.collect::<Vec<_>>()
        };
        let mut arguments = fits(MOST_BYTES);
        let has_rest = !packet.is_empty() || arguments.iter().any(Option::is_none);
        if has_rest {
            arguments = fits(MOST_BYTES - TEXT.size);
        }
        let keys = &mut plan.keys[packet.len()..];
        for ((field, argument), key) in plan.fields.iter().zip(arguments).zip(keys) {
            let Some((argument, conversion)) = argument else {
                continue;
            };
            self.picks.push(*field);
            self.arguments.push(argument);
            self.format.push(b' ');
            // It is an argument, and so not in the text.
            let key = key.take().unwrap_or_default();
            self.format.extend(format_of(key.as_bytes()));
            self.format.push(b'=');
            self.format.extend(conversion.as_bytes());
        }
        if has_rest {
            self.arguments.push(TEXT);
            self.format.extend(b" %s");
            self.rest = Some(plan.finish());
        }
    }
}

/// The members of the payload.
fn payload(class: &EventClass) -> impl Iterator<Item = FieldId> {
    let root = class.schema.root(Scope::Payload);
    let members = root.map(|root| &class.schema.field(root).children[..]);
    members.unwrap_or_default().iter().copied()
}

/// The argument that holds values of a kind, and the conversion that shows it.
fn argument(kind: &Kind) -> Option<(Argument, &'static str)> {
    let integer = |size| Argument {
        kind: ArgumentKind::Integer,
        size,
    };
    let size = |bits: u32| match bits {
        ..9 => 1,
        9..17 => 2,
        17..33 => 4,
        33.. => 8,
    };
    Some(match *kind {
        Kind::Uint { bits, base, .. } => {
            let size = size(bits);
            let conversion = match (base, size) {
                (Base::Hexadecimal, 8) => "0x%llx",
                (Base::Hexadecimal, _) => "0x%x",
                (Base::Octal, 8) => "0%llo",
                (Base::Octal, _) => "0%o",
                (_, 8) => "%llu",
                _ => "%u",
            };
            (integer(size), conversion)
        }
        // VPP reads those of one and two bytes as unsigned.
        Kind::Sint { bits, .. } => match size(bits) {
            8 => (integer(8), "%lld"),
            _ => (integer(4), "%d"),
        },
        Kind::Bool { .. } => (integer(1), "%u"),
        Kind::BitArray { bits } | Kind::BitMap { bits, .. } => match size(bits) {
            8 => (integer(8), "0x%llx"),
            size => (integer(size), "0x%x"),
        },
        Kind::Float { bits } if bits <= 64 => {
            let size = if bits <= 32 { 4 } else { 8 };
            let kind = ArgumentKind::Float;
            (Argument { kind, size }, "%g")
        }
        Kind::Text | Kind::Wide { .. } => (TEXT, "%s"),
        _ => return None,
    })
}

impl<'m> Sink for Elog<'m> {
    type Renderer = ElogRenderer<'m>;

    fn renderer(&self) -> ElogRenderer<'m> {
        ElogRenderer {
            plan: self.plan,
            filler: Filler::with_raw_texts(self.plan.binding.plan()),
            fields: FieldText::default(),
            recording: 0,
        }
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(
        &mut self,
        row: &Row<'_>,
        recordings: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        self.error = self.add(row, recordings).err();
        self.error.is_none()
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}

/// Reads the values of events, and writes those that are not arguments as text.
#[derive(Debug)]
pub struct ElogRenderer<'m> {
    plan: &'m ElogPlan,
    filler: Filler<'m>,
    fields: FieldText,
    recording: usize,
}

impl Renderer for ElogRenderer<'_> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.filler.chunk(recording, source, chunk)?;
        self.fields.chunk(recording, source, chunk)
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let filler = &mut self.filler;
        let shape = &self.plan.shapes[self.recording][event.class_index()];
        match &shape.rest {
            None => filler.event(event),
            Some(plan) => self
                .fields
                .write(plan, out, |visitor| filler.event_with(event, visitor)),
        }
    }

    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool {
        self.plan.shapes[recording][class].rest.is_some()
            || self.filler.looks_at(recording, source, class, field)
    }

    fn take_rows(&mut self) -> RowBuffers {
        self.filler.take()
    }

    fn row_bytes(&self) -> usize {
        self.filler.byte_size()
    }
}
