//! CPEL files, which VPP's programs read.
//!
//! * An event of CPEL has a time, a track, a code and one number of 32 bits, its datum. That may
//!   refer to a string, so that an event can hold any text.
//! * [Kept](Keep) are all fields as text, `KEY=VALUE` with blanks between (of event logs, what they
//!   show as text), or one field: integers that fit as numbers, all other values as text. An event
//!   without that field has no datum.
//! * Times count from the first event, since programs that read CPEL take them for doubles; the
//!   date of the file is the second of that event. Where all recordings are CPEL or Gist files,
//!   times are what they were.
//! * Numbers of tracks and codes of events are those of the recordings where these have any and they
//!   are free, and otherwise count from 0.
//! * In texts a zero byte, which would end them, is `\x00`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::Arc;

use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::entries::Entry;
use kymo_cpel::file::File;
use kymo_cpel::rewrite::rewrite;
use kymo_cpel::write::{self, Builder, Padding};
use kymo_io::{Access, Bytes};
use kymo_machine::ByteOrder;
use kymo_model::{Chunk, Event, EventClass, Fault, FieldId, Recording, Selection, Value};
use kymo_text::Line;
use kymo_time::NANOS_PER_SECOND;

use super::carry::{self, Carried};
use super::losses::{Loss, Losses};
use super::marks::{Marks, Porter, UnknownField};
use super::timeline::{Timeline, text_of};
use crate::AnyRecording;
use crate::filter::{FieldNames, name_of};
use crate::show::color::Palette;
use crate::show::csv::{Column, Pen, Plan, header_hidden, names};
use crate::show::packet::PacketFields;
use crate::show::table::Table;
use crate::show::wall::Wall;
use crate::show::{Assembler, Message, MessageKind, Painter, WallOptions, lost};

/// What is kept of the fields of an event.
#[derive(Clone, Debug)]
pub enum Keep {
    /// All of them, as text.
    Text,
    /// One of them.
    Datum(FieldNames),
}

/// How files are written.
#[derive(Clone, Debug)]
pub struct CpelOptions {
    /// What is kept.
    pub keep: Keep,
    /// The field whose values are tracks; without, tracks are those of an event log, and otherwise
    /// streams.
    pub track: Option<FieldNames>,
    /// The order of the bytes of numbers.
    pub order: ByteOrder,
    /// Ticks in a second.
    pub clock: NonZeroU32,
}

impl CpelOptions {
    /// What is read of the events of some recordings.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn marks(&self, of: &[AnyRecording]) -> Result<Marks, UnknownField> {
        let datum = match &self.keep {
            Keep::Text => None,
            Keep::Datum(field) => Some(field),
        };
        Marks::of_value("--datum", self.track.as_ref(), datum, of)
    }
}

/// Writes a recording that is an event log as a CPEL file without looking at its events one by one:
/// a CPEL file is copied with all that is in it, in its own byte order unless one is asked for; of
/// an elog file it is the file that VPP makes of it.
///
/// # Errors
///
/// What hinders reading or writing; that it is [no such recording](is_copied).
pub fn copy(
    of: &AnyRecording,
    order: Option<ByteOrder>,
    out: &mut impl Write,
) -> Result<(), write::Error> {
    match of {
        AnyRecording::Cpel(log) => {
            let file = File::open(log.bytes()).map_err(std::io::Error::other)?;
            Ok(rewrite(&file, order.unwrap_or(log.byte_order()), out)?)
        }
        _ => {
            let bytes = Bytes::open(of.path(), Access::Sequential)?;
            let clock = of
                .streams()
                .first()
                .and_then(|stream| stream.clock.as_ref());
            let begin = clock.map_or(0, |clock| clock.offset_seconds);
            let options = write::Options {
                order: order.unwrap_or(ByteOrder::Big),
                date: u32::try_from(begin).unwrap_or(0),
                padding: Padding::Eight,
                ..write::Options::default()
            };
            let builder = cpel_of_elog(&bytes, options).map_err(std::io::Error::other)?;
            builder.write(out)
        }
    }
}

/// Whether a recording is an event log that can be [copied](copy): not so a Gist file, which has no
/// definitions.
pub fn is_copied(of: &AnyRecording) -> bool {
    match of {
        AnyRecording::Cpel(log) => log.header().is_some(),
        of => of.is_log(),
    }
}

/// What a datum is, which its format tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    None,
    Unsigned,
    Signed,
    Text,
}

impl Form {
    const fn format(self) -> Option<&'static [u8]> {
        match self {
            Self::None => None,
            Self::Unsigned => Some(b"%u"),
            Self::Signed => Some(b"%d"),
            Self::Text => Some(b"%s"),
        }
    }
}

/// Gathers the events of a file, of which each takes 24 bytes of memory, and each text once as many
/// as it is long. What the recorders lost is told as warnings.
#[derive(Debug)]
pub struct Cpel<'m> {
    keep: Keep,
    clock: NonZeroU32,
    marks: &'m Marks,
    losses: Arc<Losses>,
    wall: Wall,
    timeline: Timeline<'m>,
    builder: Builder,
    /// Nanoseconds that are zero in the file, once they are known.
    zero: Option<i64>,
    last_time: i64,
    codes: Codes,
    /// By name of the event and form of its datum.
    code_of: HashMap<(Arc<str>, Form), u32>,
    tracks: Codes,
    /// Of each track of the time line.
    track_of: Vec<u32>,
    /// What has gone wrong.
    error: Option<write::Error>,
}

/// Numbers that are given out.
#[derive(Debug, Default)]
struct Codes {
    used: HashSet<u32>,
    next: u32,
}

impl Codes {
    /// The number that is wished for, or the next one that is free.
    fn take(&mut self, wished: Option<u32>) -> u32 {
        if let Some(wished) = wished
            && self.used.insert(wished)
        {
            return wished;
        }
        while !self.used.insert(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }
}

impl<'m> Cpel<'m> {
    /// A file of some recordings, which the [marks](CpelOptions::marks) are bound to; `wall` is how
    /// times are shown in warnings.
    pub fn new(
        of: &[AnyRecording],
        options: CpelOptions,
        marks: &'m Marks,
        wall: WallOptions,
    ) -> Self {
        let losses = Arc::new(Losses::default());
        let logs = of.iter().map(|of| match of {
            AnyRecording::Cpel(log) => Some(log.header().map_or(0, |header| header.date)),
            _ => None,
        });
        // The date of the first one, where all are CPEL or Gist.
        let dates: Option<Vec<u32>> = logs.collect();
        let date = dates.and_then(|dates| dates.first().copied());
        let write_options = write::Options {
            order: options.order,
            date: date.unwrap_or(0),
            clock: options.clock,
            ..write::Options::default()
        };
        Self {
            keep: options.keep,
            clock: options.clock,
            timeline: Timeline::new(marks, Arc::clone(&losses)),
            marks,
            losses,
            wall: Wall::new(wall),
            builder: Builder::new(write_options),
            zero: date.map(|_| 0),
            last_time: 0,
            codes: Codes::default(),
            code_of: HashMap::new(),
            tracks: Codes::default(),
            track_of: Vec::new(),
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
        match self.error {
            Some(error) => Err(error),
            None => self.builder.write(out),
        }
    }

    /// The time of an event in ticks.
    fn ticks(&mut self, message: &Message) -> u64 {
        match message.time {
            Some(time) => {
                let zero = *self.zero.get_or_insert_with(|| {
                    let date = u32::try_from(time.split().0).unwrap_or(0);
                    self.builder.set_date(date);
                    time.as_nanos()
                });
                self.last_time = time.as_nanos().saturating_sub(zero);
            }
            None => self.losses.add(Loss::Untimed, 1),
        }
        let Ok(nanos) = u64::try_from(self.last_time) else {
            self.losses.add(Loss::Early, 1);
            return 0;
        };
        let ticks = u128::from(nanos) * u128::from(self.clock.get());
        // It is less than 2^63 * 2^32 / 2^29, which may be more than 64 bits hold.
        let ticks = ticks / u128::from(NANOS_PER_SECOND.unsigned_abs());
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    fn event(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
    ) -> Result<(), write::Error> {
        let time = self.ticks(message);
        let mut carried = Carried::new(text);
        let place = self.timeline.place(message, of, &mut carried);
        if place.is_new {
            let track = self.timeline.track(place.track);
            let number = self.tracks.take(u32::try_from(track.rank).ok());
            let name = format_of(track.name.as_bytes());
            self.builder.track(number, Some(&name))?;
            self.track_of.push(number);
        }
        let marks = self.marks.class(message.recording, message.class);
        let value = match &self.keep {
            Keep::Text => carried.next(),
            Keep::Datum(_) if marks.counters.is_empty() => Value::Missing,
            Keep::Datum(_) => carried.next(),
        };
        let (form, datum) = match value {
            Value::Uint(value) | Value::Bits(value) if value <= u32::MAX.into() => {
                (Form::Unsigned, value as u32)
            }
            Value::Sint(value) if i32::try_from(value).is_ok() => (Form::Signed, value as u32),
            Value::Bool(value) => (Form::Unsigned, value.into()),
            Value::Missing | Value::Array(_) | Value::Compound => (Form::None, 0),
            Value::Text(text) => (Form::Text, self.builder.string(&without_zeros(text))?),
            value => (Form::Text, self.builder.string(text_of(value).as_bytes())?),
        };
        let class = &of[message.recording].event_classes()[message.class];
        let code = self.code(&of[message.recording], class, form)?;
        self.builder.push(Entry {
            time,
            track: self.track_of[place.track],
            code,
            datum,
        });
        Ok(())
    }

    /// The code of the events of a class whose datum is of a form.
    fn code(
        &mut self,
        of: &AnyRecording,
        class: &EventClass,
        form: Form,
    ) -> Result<u32, write::Error> {
        let name = class.name.clone().unwrap_or_else(|| name_of(class).into());
        if let Some(&code) = self.code_of.get(&(Arc::clone(&name), form)) {
            return Ok(code);
        }
        let wished = match of {
            AnyRecording::Cpel(_) => u32::try_from(class.id).ok(),
            _ => None,
        };
        let code = self.codes.take(wished);
        let name_format = format_of(name.as_bytes());
        self.builder
            .event(code, Some(&name_format), form.format())?;
        self.code_of.insert((name, form), code);
        Ok(code)
    }
}

/// A name as a format that makes it.
fn format_of(name: &[u8]) -> Vec<u8> {
    let mut format = Vec::with_capacity(name.len());
    for &byte in without_zeros(name).iter() {
        format.push(byte);
        if byte == b'%' {
            format.push(byte);
        }
    }
    format
}

/// A text whose zero bytes are written as `\x00`.
fn without_zeros(text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !text.contains(&0) {
        return text.into();
    }
    text.split(|&byte| byte == 0)
        .collect::<Vec<_>>()
        .join(&b"\\x00"[..])
        .into()
}

impl<'m> Assembler for Cpel<'m> {
    type Painter = CpelPainter<'m>;

    fn painter(&self) -> CpelPainter<'m> {
        CpelPainter {
            porter: self.marks.porter(),
            all_fields: matches!(self.keep, Keep::Text),
            classes: Table::default(),
            packets: Table::default(),
            recording: 0,
            is_log: false,
            packet: Cells::default(),
            packet_columns: Vec::new(),
            event: Cells::default(),
            text: Line::new(),
            stack: Vec::new(),
        }
    }

    #[inline]
    fn message(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        _out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        if message.kind != MessageKind::Event {
            lost::warn(message, of, &mut self.wall, &Palette::NONE, warnings);
        } else if self.error.is_none() {
            self.error = self.event(message, of, text).err();
        }
    }
}

/// Cells of text, one after the other.
#[derive(Debug, Default)]
struct Cells {
    text: Line,
    ends: Vec<usize>,
}

impl Cells {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let places = begins.zip(&self.ends);
        places.map(|(begin, &end)| self.text.as_bytes().get(begin..end).unwrap_or_default())
    }
}

/// Writes what is kept of events.
#[derive(Debug)]
pub struct CpelPainter<'m> {
    porter: Porter<'m>,
    all_fields: bool,
    classes: Table<ClassPlan>,
    packets: Table<PacketPlan>,
    recording: usize,
    is_log: bool,
    packet: Cells,
    packet_columns: Vec<Column>,
    event: Cells,
    text: Line,
    stack: Vec<bool>,
}

#[derive(Debug)]
struct PacketPlan {
    fields: PacketFields,
    plan: Plan,
    columns: Vec<Column>,
}

/// How all fields of an event become text.
#[derive(Debug)]
enum ClassPlan {
    /// They are cells, of which these are the keys.
    Cells { plan: Plan, keys: Vec<String> },
    /// They are in a field already.
    Text(Selection),
}

impl ClassPlan {
    fn new(class: &EventClass, packet: &[Column], is_log: bool) -> Self {
        if is_log {
            let fields = class.schema.fields().iter();
            let text = fields
                .zip(0..)
                .filter(|(field, _)| field.name.as_deref() == Some("text"));
            let picks = text.map(|(_, position)| FieldId(position).into());
            return Self::Text(Selection::new(&class.schema, picks));
        }
        let mut columns = packet.to_vec();
        let plan = Plan::new(&class.schema, &header_hidden(class), &mut columns);
        let keys = names(&columns);
        Self::Cells { plan, keys }
    }
}

impl Painter for CpelPainter<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        self.is_log = of.is_log();
        self.porter.chunk(recording, of, chunk)?;
        if !self.all_fields {
            return Ok(());
        }
        self.packet.clear();
        self.stack.clear();
        let packet = self.packets.get(recording, chunk.stream, || {
            let fields = PacketFields::of(of, chunk.stream);
            let mut columns = Vec::new();
            let plan = Plan::new(&fields.schema, &fields.hidden, &mut columns);
            PacketPlan {
                fields,
                plan,
                columns,
            }
        });
        self.packet_columns.clone_from(&packet.columns);
        let Cells { text, ends } = &mut self.packet;
        let mut pen = Pen::new(&packet.plan, text, &mut self.stack, ends);
        let fields = &packet.fields;
        fields.visit(&mut pen, |visitor| of.visit_packet(chunk, visitor))
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        self.porter.carry(event, out)?;
        if !self.all_fields {
            return Ok(());
        }
        let plan = self.classes.get(self.recording, event.class_index(), || {
            ClassPlan::new(event.class(), &self.packet_columns, self.is_log)
        });
        match plan {
            ClassPlan::Text(selection) => {
                selection.clear();
                event.visit(selection)?;
                let value = match selection.is_empty() {
                    true => Value::Missing,
                    false => selection.value(0),
                };
                carry::put(value, out);
            }
            ClassPlan::Cells { plan, keys } => {
                self.event.clear();
                self.stack.clear();
                let Cells { text, ends } = &mut self.event;
                text.bound(out.left());
                event.visit(&mut Pen::new(plan, text, &mut self.stack, ends))?;
                if text.is_cut() {
                    out.cut();
                    return Ok(());
                }
                self.text.clear();
                self.text.bound(out.left());
                let cells = self.packet.iter().chain(self.event.iter());
                for (key, cell) in keys.iter().zip(cells) {
                    if !self.text.is_empty() {
                        self.text.push_byte(b' ');
                    }
                    self.text.push(key.as_bytes());
                    self.text.push_byte(b'=');
                    self.text.push(cell);
                }
                if self.text.is_cut() {
                    out.cut();
                    return Ok(());
                }
                carry::put(Value::Text(self.text.as_bytes()), out);
            }
        }
        Ok(())
    }
}
