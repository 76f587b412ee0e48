//! CPEL files, which VPP's programs read.
//!
//! * An event of CPEL has a time, a track, a code and one number of 32 bits, its datum. That may
//!   refer to a string, so that an event can hold any text.
//! * [Kept](Keep) are the datums of CPEL and Gist files with their formats; or all fields as text,
//!   `KEY=VALUE` with blanks between (of event logs, what they show as text); or one field: integers
//!   that fit as numbers, all other values as text. An event without that field has no datum.
//! * Some events of [one CPEL file](Cut) are written with all else that is in it.
//! * Times count from the first event, since programs that read CPEL take them for doubles; the
//!   date of the file is the second of that event. Where all recordings are CPEL or Gist files,
//!   times are what they were.
//! * Numbers of tracks and codes of events are those of the recordings where these have any and they
//!   are free, and otherwise count from 0. Events of CPEL files that have the same name and other
//!   codes stay apart.
//! * In texts a zero byte, which would end them, is `\x00`.

mod cut;
mod datums;
mod plan;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::Arc;

use kymo_cpel::StringError;
use kymo_cpel::convert::cpel_of_elog;
use kymo_cpel::entries::Entry;
use kymo_cpel::file::{File, Section, kind};
use kymo_cpel::rewrite::rewrite;

use kymo_cpel::write::{self, Builder, Padding};
use kymo_machine::ByteOrder;
use kymo_model::{Chunk, Event, EventClass, Fault, FieldId, Recording, Value};
use kymo_text::Line;
use kymo_time::{NANOS_PER_SECOND, Timestamp};

pub use self::cut::{Cut, is_cut};
use self::datums::How;
use super::losses::{Loss, Losses, Times};
use super::text::{FieldPlan, FieldText, TextPlan, format_of, without_zeros};
use super::timeline::Timeline;
use crate::AnyRecording;
use crate::filter::name_of;
use crate::pipeline::{Row, RowBuffers};
use crate::show::table::Table;
use crate::show::{LossReporter, Message, Renderer, Sink, WallOptions};
use crate::timeline::Filler;
use crate::tracks::text_of;

pub use plan::{CpelOptions, CpelPlan, Keep};

/// Writes a recording that is an event log as a CPEL file without looking at its events one by one:
/// a CPEL file is copied with all that is in it, in its own byte order unless one is asked for; of
/// an elog file it is the file that VPP makes of it. Returns what it could not hold.
///
/// # Errors
///
/// What hinders reading or writing; that it is [no such recording](is_copied).
pub fn copy(
    recording: &AnyRecording,
    order: Option<ByteOrder>,
    out: &mut impl Write,
) -> Result<Losses, write::Error> {
    let losses = Losses::default();
    match recording {
        AnyRecording::Cpel(log) => {
            let file = File::open(log.bytes()).map_err(std::io::Error::other)?;
            rewrite(&file, order.unwrap_or(log.byte_order()), out)?;
        }
        AnyRecording::Elog(log) => {
            let clock = recording
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
            let converted = cpel_of_elog(log.bytes(), options).map_err(std::io::Error::other)?;
            losses.add(Loss::Untimed, converted.untimed);
            losses.add(Loss::Early, converted.early);
            converted.builder.write(out)?;
        }
        _ => return Err(std::io::Error::other("not an event log").into()),
    }
    Ok(losses)
}

/// Whether a recording is an event log that can be [copied](copy): not so a Gist file, which has no
/// definitions, and a CPEL file that was opened with another clock than its own.
pub fn is_copied(recording: &AnyRecording) -> bool {
    match recording {
        AnyRecording::Cpel(log) => log.header().is_some() && log.has_own_clocks(),
        other => other.is_log(),
    }
}

/// Bytes of all texts of a file that is made, which are in memory until it is written: a few events
/// may contain very long ones.
const MOST_STRINGS: u32 = 1 << 30;

/// The formats that the datums of a class may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    None,
    Unsigned,
    Signed,
    Text,
    /// That of the class, in a CPEL or Gist file.
    Own,
}

impl Format {
    const COUNT: usize = 5;
}

/// A datum with the format that shows it.
struct DatumOf {
    format: Format,
    datum: u32,
}

/// Gathers the events of a file. Of these, memory holds some megabytes, and each text once; the rest is in temporary
/// storage. Losses of the recorders are reported as warnings.
#[derive(Debug)]
pub struct Cpel<'m> {
    plan: &'m CpelPlan,
    losses: Arc<Losses>,
    loss_reporter: LossReporter,
    timeline: Timeline<'m>,
    builder: Builder,
    /// Nanoseconds that are zero in the file, once they are known.
    zero: Option<i64>,
    times: Times,
    codes: Codes,
    /// By name of the event, its code in a CPEL file, and the format of its datum.
    code_of: HashMap<CodeKey, u32>,
    /// The same by recording, class and format.
    class_codes: Table<[Option<u32>; Format::COUNT]>,
    tracks: Codes,
    /// Of each track of the time line.
    track_of: Vec<u32>,
    /// What has gone wrong.
    error: Option<write::Error>,
}

type CodeKey = (Arc<str>, Option<u32>, Option<Arc<[u8]>>);

/// Numbers that are given out.
#[derive(Debug, Default)]
struct Codes {
    used: HashSet<u32>,
    /// Numbers that may be requested later.
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
    /// A file of some recordings, which the plan is bound to; `wall` is how times are shown in warnings.
    pub fn new(recordings: &[AnyRecording], plan: &'m CpelPlan, wall: WallOptions) -> Self {
        let options = &plan.options;
        let losses = Arc::new(Losses::default());
        let mut codes = Codes::default();
        for recording in recordings {
            let AnyRecording::Cpel(log) = recording else {
                continue;
            };
            let is_unknown = |section: &&Section| kind::name(section.kind).is_none();
            let sections = log.sections().iter().filter(is_unknown);
            losses.add(Loss::Sections, sections.count() as u64);
            let classes = recording.event_classes().iter();
            codes.reserved.extend(classes.filter_map(code_of));
        }
        let logs = recordings.iter().map(|recording| match recording {
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
        let mut builder = Builder::new(write_options);
        let mut error = None;
        if let Some(datums) = &plan.datums {
            losses.add(Loss::Symbols, datums.lost_symbols);
            error = datums.add_symbols(recordings, &mut builder).err();
        } else {
            let symbols = recordings.iter().map(|recording| match recording {
                AnyRecording::Cpel(log) => log.definitions().symbols.len() as u64,
                _ => 0,
            });
            losses.add(Loss::Symbols, symbols.sum());
        }
        Self {
            timeline: Timeline::new(recordings, &plan.binding, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            plan,
            losses,
            loss_reporter: LossReporter::new(wall),
            builder,
            zero: date.map(|_| 0),
            codes,
            code_of: HashMap::new(),
            class_codes: Table::default(),
            tracks: Codes::default(),
            track_of: Vec::new(),
            error,
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
        ticks(nanos, self.plan.options.clock, &self.losses)
    }

    /// Adds an event.
    fn add(&mut self, row: &Row<'_>, recordings: &[AnyRecording]) -> Result<(), write::Error> {
        let message = &row.message;
        let time = self.ticks(message);
        let place = self.timeline.place(row, recordings);
        if place.is_new {
            let track = self.timeline.track(place.track);
            let number = self.tracks.take(track.number);
            let name = format_of(track.name.as_bytes());
            self.builder.track(number, Some(&name))?;
            self.track_of.push(number);
        }
        let plan = self.plan;
        let of_recording = &recordings[message.recording];
        let value = plan.value(row, of_recording);
        let own = plan.datums.as_ref();
        let own = own.and_then(|own| own.of(message.recording, message.class));
        let DatumOf { format, datum } = match own {
            Some(How::Number(format)) => DatumOf {
                format: match format {
                    Some(_) => Format::Own,
                    None => Format::None,
                },
                datum: number(value),
            },
            Some(How::String(_)) => {
                let text = string_of(of_recording, message.stream, number(value));
                DatumOf {
                    format: Format::Own,
                    datum: self.builder.string(&text)?,
                }
            }
            Some(How::Text) | None => self.datum(value)?,
        };
        let code = self.code(message, of_recording, format)?;
        self.builder.push(Entry {
            time,
            track: self.track_of[place.track],
            code,
            datum,
        })
    }

    /// A value as a datum.
    fn datum(&mut self, value: Value<'_>) -> Result<DatumOf, write::Error> {
        let number = |format, datum| DatumOf { format, datum };
        let text = match value {
            Value::Missing => {
                return Ok(number(Format::None, 0));
            }
            Value::Array(_) | Value::Compound => {
                self.losses.add(Loss::Compound, 1);
                return self.datum(Value::Missing);
            }
            Value::Uint(value) | Value::Bits(value) if value <= u32::MAX.into() => {
                return Ok(number(Format::Unsigned, value as u32));
            }
            Value::Sint(value) if u32::try_from(value).is_ok() => {
                return Ok(number(Format::Unsigned, value as u32));
            }
            Value::Sint(value) if i32::try_from(value).is_ok() => {
                return Ok(number(Format::Signed, value as u32));
            }
            Value::Bool(value) => return Ok(number(Format::Unsigned, value.into())),
            Value::Text(text) => {
                let offset = match self.builder.string(text) {
                    Err(write::Error::String(StringError::Zero { .. })) => {
                        self.builder.string(&without_zeros(text))?
                    }
                    offset => offset?,
                };
                return Ok(number(Format::Text, offset));
            }
            value => {
                if !matches!(value, Value::Blob(_)) {
                    self.losses.add(Loss::NotInDatum, 1);
                }
                text_of(value)
            }
        };
        let offset = self.builder.string(text.as_bytes())?;
        Ok(number(Format::Text, offset))
    }

    /// The code of an event whose datum has a format.
    #[inline]
    fn code(
        &mut self,
        message: &Message,
        source: &AnyRecording,
        format: Format,
    ) -> Result<u32, write::Error> {
        let (recording, class) = (message.recording, message.class);
        let known = self.class_codes.get(recording, class, Default::default);
        if let Some(code) = known[format as usize] {
            return Ok(code);
        }
        let event = &source.event_classes()[class];
        let wished = match source {
            AnyRecording::Cpel(_) => code_of(event),
            _ => None,
        };
        let code = self.new_code((recording, class), source, event, wished, format)?;
        // Each event without a code of its own is counted.
        if wished.is_some() || !matches!(source, AnyRecording::Cpel(_)) {
            self.class_codes.get(recording, class, Default::default)[format as usize] = Some(code);
        }
        Ok(code)
    }

    #[cold]
    fn new_code(
        &mut self,
        (recording, position): (usize, usize),
        source: &AnyRecording,
        class: &EventClass,
        wished: Option<u32>,
        format: Format,
    ) -> Result<u32, write::Error> {
        let name = class.name.clone().unwrap_or_else(|| name_of(class).into());
        let is_undefined = match source {
            AnyRecording::Cpel(log) => {
                if wished.is_none() {
                    self.losses.add(Loss::OtherCodes, 1);
                }
                wished.is_some_and(|code| !log.defines(code))
            }
            _ => false,
        };
        let own = self.plan.datums.as_ref();
        let format = match format {
            Format::None => None,
            Format::Unsigned => Some(b"%u"[..].into()),
            Format::Signed => Some(b"%d"[..].into()),
            Format::Text => Some(b"%s"[..].into()),
            Format::Own => match own.and_then(|own| own.of(recording, position)) {
                Some(How::Number(format)) => format.clone(),
                Some(How::String(format)) => Some(Arc::clone(format)),
                Some(How::Text) | None => None,
            },
        };
        let key = (name, wished, format);
        if let Some(&code) = self.code_of.get(&key) {
            return Ok(code);
        }
        let code = self.codes.take(wished);
        // What has no definition, and so no text, needs none: there may be more such codes than
        // definitions.
        if !is_undefined || wished != Some(code) || key.2.is_some() {
            let name = format_of(key.0.as_bytes());
            self.builder.event(code, Some(&name), key.2.as_deref())?;
        }
        self.code_of.insert(key, code);
        Ok(code)
    }
}

/// Converts nanoseconds to ticks of a clock that has `clock` ticks a second.
fn ticks(nanos: u64, clock: NonZeroU32, losses: &Losses) -> u64 {
    let ticks = u128::from(nanos) * u128::from(clock.get());
    // It is less than 2^63 * 2^32 / 2^29, which may be more than 64 bits hold.
    let ticks = ticks / u128::from(NANOS_PER_SECOND.unsigned_abs());
    u64::try_from(ticks).unwrap_or_else(|_| {
        losses.add(Loss::Late, 1);
        u64::MAX
    })
}

/// A datum that is a number.
fn number(value: Value<'_>) -> u32 {
    match value {
        Value::Uint(value) => value as u32,
        _ => 0,
    }
}

/// The string that a datum of a CPEL file refers to.
fn string_of(recording: &AnyRecording, stream: usize, datum: u32) -> Vec<u8> {
    let AnyRecording::Cpel(log) = recording else {
        return Vec::new();
    };
    let strings = log.event_section(stream).map(|section| &section.strings);
    let text = strings.and_then(|strings| log.names(strings).string(datum));
    match text {
        Some(text) => text.to_vec(),
        None => format!("<bad strtab offset 0x{datum:x}>").into_bytes(),
    }
}

/// The code of a class of events of a CPEL file; `None` for classes that are not distinguished.
fn code_of(class: &EventClass) -> Option<u32> {
    u32::try_from(class.id).ok()
}

impl<'m> Sink for Cpel<'m> {
    type Renderer = CpelRenderer<'m>;

    fn renderer(&self) -> CpelRenderer<'m> {
        CpelRenderer {
            plan: self.plan,
            filler: Filler::with_raw_texts(self.plan.binding.plan()),
            classes: Table::default(),
            fields: FieldText::default(),
            recording: 0,
            is_text: false,
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
        // Symbols may have been too many.
        if self.error.is_none() {
            self.error = self.add(row, recordings).err();
        }
        self.error.is_none()
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}

/// Reads what is kept of events.
#[derive(Debug)]
pub struct CpelRenderer<'m> {
    plan: &'m CpelPlan,
    filler: Filler<'m>,
    classes: Table<TextPlan>,
    fields: FieldText,
    recording: usize,
    /// Whether all fields are written as text.
    is_text: bool,
}

impl Renderer for CpelRenderer<'_> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.is_text = self.plan.is_text(source);
        self.filler.chunk(recording, source, chunk)?;
        match self.is_text {
            true => self.fields.chunk(recording, source, chunk),
            false => Ok(()),
        }
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        if !self.is_text {
            return self.filler.event(event);
        }
        let plan = self.classes.get(self.recording, event.class_index(), || {
            FieldPlan::new(event.class(), self.fields.packet_columns()).finish()
        });
        let filler = &mut self.filler;
        self.fields
            .write(plan, out, |visitor| filler.event_with(event, visitor))
    }

    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool {
        self.plan.is_text(source) || self.filler.looks_at(recording, source, class, field)
    }

    fn take_rows(&mut self) -> RowBuffers {
        self.filler.take()
    }

    fn row_bytes(&self) -> usize {
        self.filler.byte_size()
    }
}
