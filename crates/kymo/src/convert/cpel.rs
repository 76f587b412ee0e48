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
//!   are free, and otherwise count from 0. Events of CPEL files that have the same name and other
//!   codes stay apart.
//! * In texts a zero byte, which would end them, is `\x00`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::Arc;

use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::entries::Entry;
use kymo_cpel::file::{File, Section, kind};
use kymo_cpel::rewrite::rewrite;
use kymo_cpel::write::{self, Builder, Padding};
use kymo_io::{Access, Bytes};
use kymo_machine::ByteOrder;
use kymo_model::{Chunk, Event, EventClass, Fault, FieldId, Recording, Selection, Value};
use kymo_text::Line;
use kymo_time::{NANOS_PER_SECOND, Timestamp};

use super::losses::{Loss, Losses, Times};
use super::marks::{Marks, Porter, UnknownField};
use super::text::{FieldPlan, FieldText, format_of, without_zeros};
use super::timeline::{Timeline, text_of};
use crate::AnyRecording;
use crate::carried::{self, Carried};
use crate::filter::{FieldNames, name_of};
use crate::show::csv::Column;
use crate::show::table::Table;
use crate::show::{Assembler, Message, Painter, Teller, WallOptions};

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
    /// Ticks in a second. Of fewer than [`LEAST_PER_SECOND`](kymo_cpel::clock::LEAST_PER_SECOND)
    /// readers must be told, since they take so small a number for those in a microsecond.
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
/// an elog file it is the file that VPP makes of it. Tells what it could not hold.
///
/// # Errors
///
/// What hinders reading or writing; that it is [no such recording](is_copied).
pub fn copy(
    of: &AnyRecording,
    order: Option<ByteOrder>,
    out: &mut impl Write,
) -> Result<Losses, write::Error> {
    let losses = Losses::default();
    match of {
        AnyRecording::Cpel(log) => {
            let file = File::open(log.bytes()).map_err(std::io::Error::other)?;
            rewrite(&file, order.unwrap_or(log.byte_order()), out)?;
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
                most_strings: MOST_STRINGS,
                ..write::Options::default()
            };
            let converted = cpel_of_elog(&bytes, options).map_err(std::io::Error::other)?;
            losses.add(Loss::Untimed, converted.untimed);
            losses.add(Loss::Early, converted.early);
            converted.builder.write(out)?;
        }
    }
    Ok(losses)
}

/// Whether a recording is an event log that can be [copied](copy): not so a Gist file, which has no
/// definitions, and a CPEL file that was opened with another clock than its own.
pub fn is_copied(of: &AnyRecording) -> bool {
    match of {
        AnyRecording::Cpel(log) => log.header().is_some() && log.has_own_clocks(),
        of => of.is_log(),
    }
}

/// Bytes of all texts of a file that is made, which are in memory until it is written: a few events
/// may tell very long ones.
const MOST_STRINGS: u32 = 1 << 30;

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
    teller: Teller,
    timeline: Timeline<'m>,
    builder: Builder,
    /// Nanoseconds that are zero in the file, once they are known.
    zero: Option<i64>,
    times: Times,
    codes: Codes,
    /// By name of the event, its code in a CPEL file, and the form of its datum.
    code_of: HashMap<(Arc<str>, Option<u32>, Form), u32>,
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
    /// Those that somebody may wish for later.
    reserved: HashSet<u32>,
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
        while self.reserved.contains(&self.next) || !self.used.insert(self.next) {
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
        let mut codes = Codes::default();
        for of in of {
            let AnyRecording::Cpel(log) = of else {
                continue;
            };
            let symbols = log.definitions().symbols.len();
            losses.add(Loss::Symbols, symbols as u64);
            let is_unknown = |section: &&Section| kind::name(section.kind).is_none();
            let sections = log.sections().iter().filter(is_unknown);
            losses.add(Loss::Sections, sections.count() as u64);
            let classes = of.event_classes().iter();
            codes.reserved.extend(classes.filter_map(code_of));
        }
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
            most_strings: MOST_STRINGS,
            ..write::Options::default()
        };
        Self {
            keep: options.keep,
            clock: options.clock,
            timeline: Timeline::new(marks, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            marks,
            losses,
            teller: Teller::new(wall),
            builder: Builder::new(write_options),
            zero: date.map(|_| 0),
            codes,
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
        let since_zero = |time: Timestamp| {
            let zero = *self.zero.get_or_insert_with(|| {
                let date = u32::try_from(time.split().0).unwrap_or(0);
                self.builder.set_date(date);
                time.as_nanos()
            });
            time.as_nanos().saturating_sub(zero)
        };
        let nanos = self.times.next_from_zero(message.time.map(since_zero));
        let ticks = u128::from(nanos) * u128::from(self.clock.get());
        // It is less than 2^63 * 2^32 / 2^29, which may be more than 64 bits hold.
        let ticks = ticks / u128::from(NANOS_PER_SECOND.unsigned_abs());
        u64::try_from(ticks).unwrap_or_else(|_| {
            self.losses.add(Loss::Late, 1);
            u64::MAX
        })
    }

    /// Adds an event.
    fn add(
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
            let number = self.tracks.take(track.number);
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
            Value::Missing => (Form::None, 0),
            Value::Array(_) | Value::Compound => {
                self.losses.add(Loss::Compound, 1);
                (Form::None, 0)
            }
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
        let (wished, is_undefined) = match of {
            AnyRecording::Cpel(log) => {
                let code = code_of(class);
                if code.is_none() {
                    self.losses.add(Loss::OtherCodes, 1);
                }
                (code, code.is_some_and(|code| !log.defines(code)))
            }
            _ => (None, false),
        };
        let key = (name, wished, form);
        if let Some(&code) = self.code_of.get(&key) {
            return Ok(code);
        }
        let code = self.codes.take(wished);
        // What has no definition, and so no text, needs none: there may be more such codes than
        // definitions.
        let has_text = matches!(self.keep, Keep::Datum(_)) && form != Form::None;
        if !is_undefined || wished != Some(code) || has_text {
            let name = format_of(key.0.as_bytes());
            self.builder.event(code, Some(&name), form.format())?;
        }
        self.code_of.insert(key, code);
        Ok(code)
    }
}

/// The code of a class of events of a CPEL file; `None` of those that are not told apart.
fn code_of(class: &EventClass) -> Option<u32> {
    u32::try_from(class.id).ok()
}

impl<'m> Assembler for Cpel<'m> {
    type Painter = CpelPainter<'m>;

    fn painter(&self) -> CpelPainter<'m> {
        CpelPainter {
            porter: self.marks.porter(),
            all_fields: matches!(self.keep, Keep::Text),
            classes: Table::default(),
            fields: FieldText::default(),
            recording: 0,
            is_log: false,
        }
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        if self.error.is_none() {
            self.error = self.add(message, of, text).err();
        }
    }

    fn teller(&mut self) -> Option<&mut Teller> {
        Some(&mut self.teller)
    }
}

/// Writes what is kept of events.
#[derive(Debug)]
pub struct CpelPainter<'m> {
    porter: Porter<'m>,
    all_fields: bool,
    classes: Table<ClassPlan>,
    fields: FieldText,
    recording: usize,
    is_log: bool,
}

/// How all fields of an event become text.
#[derive(Debug)]
enum ClassPlan {
    /// They are written.
    Fields(FieldPlan),
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
        Self::Fields(FieldPlan::new(class, packet))
    }
}

impl Painter for CpelPainter<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        self.is_log = of.is_log();
        self.porter.chunk(recording, of, chunk)?;
        match self.all_fields {
            true => self.fields.chunk(recording, of, chunk),
            false => Ok(()),
        }
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        self.porter.carry(event, out)?;
        if !self.all_fields {
            return Ok(());
        }
        let plan = self.classes.get(self.recording, event.class_index(), || {
            ClassPlan::new(event.class(), self.fields.packet_columns(), self.is_log)
        });
        match plan {
            ClassPlan::Text(selection) => {
                selection.clear();
                event.visit(selection)?;
                let value = match selection.is_empty() {
                    true => Value::Missing,
                    false => selection.value(0),
                };
                carried::put(value, usize::MAX, out);
                // There may be very many classes, each with a selection of its own.
                selection.release();
            }
            ClassPlan::Fields(plan) => match self.fields.of(event, plan, out.left())? {
                Some(text) => carried::put(Value::Text(text), usize::MAX, out),
                None => out.cut(),
            },
        }
        Ok(())
    }
}
