//! Events as babeltrace2's `sink.text.pretty` shows them, one a line.
//!
//! ```text
//! [TIME] (DELTA) HOST:PROCESS:(PID) NAME: { packet context }, { contexts }, { payload }
//! ```
//!
//! The text is the same byte for byte, except where that one is wrong: times before the
//! origin are always shown as seconds (there only the first one is), and several labels of
//! a value come in the order of their declaration (there in that of a hash table). What that one
//! cannot show at all, several recordings that are not all traces, have their paths before the
//! host.

mod field_renderer;
mod options;
mod plan;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording, Scope};
use kymo_text::{Line, Stamp, visible};
use kymo_time::{NANOS_PER_SECOND, Timestamp};

use self::field_renderer::FieldRenderer;
use self::plan::Plan;
use super::color::Palette;
use super::facts::Facts;
use super::packet::{PacketFields, Visible};
use super::table::Table;
use super::{LossReporter, Message, Renderer, Sink};
use crate::AnyRecording;

pub use self::options::{Fields, Names, Options, UnknownItem};

/// Puts lines together: times and the time between events depend on the order.
#[derive(Debug)]
pub struct Pretty {
    options: Options,
    palette: Palette,
    /// Whether times are written as `[TIME] (+DELTA) `, without names and colours.
    usual: bool,
    /// Shows times, those of losses too.
    loss_reporter: LossReporter,
    /// Time of the event before, in nanoseconds or cycles; all ones before the first one.
    last: u64,
    /// Time between the last two events; all ones where not known yet.
    delta: u64,
}

impl Pretty {
    /// Lines with these options.
    pub fn new(options: Options) -> Self {
        let palette = options.colors.unwrap_or(Palette::NONE);
        Self {
            palette,
            usual: !options.names.header
                && options.colors.is_none()
                && !options.cycles
                && options.delta,
            loss_reporter: LossReporter::with_colors(options.wall, palette),
            options,
            last: u64::MAX,
            delta: u64::MAX,
        }
    }

    /// Writes the time of an event, and the time since the one before: in the usual form,
    /// which is nearly always wanted.
    #[inline]
    fn usual_time(&mut self, time: Timestamp, line: &mut Line, warnings: &mut Vec<u8>) {
        const UNIT: u64 = NANOS_PER_SECOND as u64;
        let now = time.as_nanos() as u64;
        let delta = now.wrapping_sub(self.last);
        (self.last, self.delta) = (now, delta);
        line.push_byte(b'[');
        let nanos = self.loss_reporter.wall.begin(time, line, warnings);
        line.compose(|room| {
            room.nanos(nanos);
            // Events nearly always follow each other within a second.
            if delta < UNIT {
                room.text(b"] (+0.");
                room.nanos(delta as u32);
            } else {
                room.text(b"] (+");
                room.decimal(delta / UNIT);
                room.text(b".");
                room.nanos((delta % UNIT) as u32);
            }
            room.text(b") ");
        });
    }

    /// Writes the time of an event, and the time since the one before.
    fn time(
        &mut self,
        time: Option<Timestamp>,
        ticks: u64,
        line: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        let named = self.options.names.header;
        let colored = self.options.colors.is_some();
        if named {
            plan::name("timestamp", self.palette.key, &self.palette, line);
        } else {
            line.push_byte(b'[');
        }
        if colored {
            line.push(self.palette.time.as_bytes());
        }
        let now = if self.options.cycles {
            line.padded(ticks, 20);
            Some(ticks)
        } else {
            self.loss_reporter.wall.write(time, line, warnings);
            time.map(|time| time.as_nanos() as u64)
        };
        // The time since an event is not known where one of the two is not.
        self.delta = match now {
            Some(now) if self.last != u64::MAX => now.wrapping_sub(self.last),
            _ => u64::MAX,
        };
        self.last = now.unwrap_or(u64::MAX);
        if colored {
            line.push(self.palette.reset.as_bytes());
        }
        if !named {
            line.push(b"] ");
        }
        if self.options.delta {
            self.delta(named, line);
        }
    }

    #[inline]
    fn delta(&self, named: bool, line: &mut Line) {
        if named {
            line.push(b", ");
            plan::name("delta", self.palette.key, &self.palette, line);
        } else {
            line.push_byte(b'(');
        }
        line.push_byte(b'+');
        match (self.options.cycles, self.delta) {
            (true, u64::MAX) => line.push(b"????????????"),
            (true, delta) => line.padded(delta, 12),
            (false, u64::MAX) => line.push(b"?.?????????"),
            (false, delta) => {
                let unit = NANOS_PER_SECOND.unsigned_abs();
                line.decimal(delta / unit);
                line.push_byte(b'.');
                line.nanos((delta % unit) as u32);
            }
        }
        if !named {
            line.push(b") ");
        }
    }
}

impl Sink for Pretty {
    type Renderer = PrettyRenderer;

    fn renderer(&self) -> PrettyRenderer {
        PrettyRenderer {
            options: self.options.clone(),
            palette: self.palette,
            classes: Table::default(),
            packets: Table::default(),
            facts: Table::default(),
            recording: 0,
            source: Source::default(),
            chunk: 0,
            packet: Line::new(),
            stack: Vec::new(),
            indexes: field_renderer::indexes(),
        }
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        match (message.time, message.ticks) {
            (Some(time), Some(_)) if self.usual && self.last != u64::MAX => {
                self.usual_time(time, out, warnings);
            }
            (time, Some(ticks)) => self.time(time, ticks, out, warnings),
            (_, None) => {}
        }
        out.push(text);
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}

/// Writes what comes after the time.
#[derive(Debug)]
pub struct PrettyRenderer {
    options: Options,
    palette: Palette,
    classes: Table<ClassPlan>,
    packets: Table<(PacketFields, Plan)>,
    facts: Table<Facts>,
    recording: usize,
    source: Source,
    /// Counts the chunks, from 1.
    chunk: u64,
    /// The packet context of the chunk.
    packet: Line,
    stack: Vec<u64>,
    indexes: Box<[Stamp]>,
}

/// What the events of a chunk have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    has_clock: bool,
    has_packet: bool,
}

/// What the events of a class have in common.
#[derive(Debug)]
struct ClassPlan {
    /// From the recording to the name.
    header: Vec<u8>,
    /// The same and the packet context, for the chunk with this number.
    begin: Stamp,
    chunk: u64,
    plan: Plan,
}

impl PrettyRenderer {
    /// Makes the text of the packet context, and notes what class plans need to know.
    fn start(
        &mut self,
        recording: usize,
        stream: usize,
        has_clock: bool,
        fields: impl FnOnce() -> PacketFields,
        visit: impl FnOnce(&mut Visible<'_, FieldRenderer<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.chunk += 1;
        self.packet.clear();
        self.stack.clear();
        let (names, palette) = (self.options.names, self.palette);
        let (fields, plan) = self.packets.get(recording, stream, || {
            let fields = fields();
            let scopes = [Scope::PacketContext];
            let plan = Plan::new(
                &fields.schema,
                &scopes,
                &fields.hidden,
                true,
                names,
                &palette,
            );
            (fields, plan)
        });
        self.source = Source {
            has_clock,
            has_packet: fields.shown,
        };
        let mut field_renderer = FieldRenderer {
            line: &mut self.packet,
            plan,
            stack: &mut self.stack,
            indexes: &self.indexes,
            reset: self.palette.reset,
        };
        fields.visit(&mut field_renderer, visit)
    }
}

impl Renderer for PrettyRenderer {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.facts.get(recording, 0, || Facts::of(source));
        self.start(
            recording,
            chunk.stream,
            source.streams()[chunk.stream].clock.is_some(),
            || PacketFields::of(source, chunk.stream),
            |visitor| source.visit_packet(chunk, visitor),
        )
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let class = self.classes.get(self.recording, event.class_index(), || {
            let facts = self.facts.get(self.recording, 0, Facts::default);
            ClassPlan::new(
                event.class(),
                facts,
                self.source,
                &self.options,
                &self.palette,
            )
        });
        self.stack.clear();
        if class.chunk != self.chunk {
            class.begin_chunk(self.chunk, &self.packet);
        }
        out.stamp(&class.begin);
        event.visit(&mut FieldRenderer {
            line: out,
            plan: &class.plan,
            stack: &mut self.stack,
            indexes: &self.indexes,
            reset: self.palette.reset,
        })?;
        out.push_byte(b'\n');
        Ok(())
    }
}

impl ClassPlan {
    fn new(
        class: &EventClass,
        facts: &Facts,
        source: Source,
        options: &Options,
        palette: &Palette,
    ) -> Self {
        let scopes = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];
        let first = !source.has_packet;
        Self {
            header: header(class, facts, source.has_clock, options, palette),
            begin: Stamp::default(),
            chunk: 0,
            plan: Plan::new(&class.schema, &scopes, &[], first, options.names, palette),
        }
    }
}

impl ClassPlan {
    #[cold]
    fn begin_chunk(&mut self, chunk: u64, packet: &Line) {
        self.chunk = chunk;
        self.begin = Stamp::new(&[&self.header, packet.as_bytes()].concat());
    }
}

/// The text from the recording to the name.
fn header(
    class: &EventClass,
    facts: &Facts,
    has_clock: bool,
    options: &Options,
    palette: &Palette,
) -> Vec<u8> {
    let fields = &options.fields;
    let named = options.names.header;
    // After a time with its name, a comma comes before everything up to the name; without
    // names, or without a time, there is none.
    let comma = named && has_clock;
    let mut line = Line::new();
    if fields.recording {
        if comma {
            line.push(b", ");
        }
        if named {
            plan::name("recording", palette.key, palette, &mut line);
        }
        line.push(visible(&facts.path).as_bytes());
        match (named, comma) {
            (true, true) => {}
            (true, false) => line.push(b", "),
            (false, _) => line.push(b": "),
        }
    }
    if fields.trace {
        if comma {
            line.push(b", ");
        }
        if named {
            plan::name("trace", palette.key, palette, &mut line);
        }
        line.push(visible(facts.name.as_deref().unwrap_or_default()).as_bytes());
        if named {
            line.push(b", ");
        }
    }
    let vpid = facts.vpid.as_ref().map(|vpid| format!("({vpid})"));
    let level = class.log_level.map(log_level);
    let emf = class.emf_uri.as_deref();
    let mut any = false;
    for (shown, key, value) in [
        (fields.hostname, "trace:hostname", facts.hostname.as_deref()),
        (fields.domain, "trace:domain", facts.domain.as_deref()),
        (fields.procname, "trace:procname", facts.procname.as_deref()),
        (fields.vpid, "trace:vpid", vpid.as_deref()),
        (fields.loglevel, "loglevel", level.as_deref()),
        (fields.emf, "model.emf.uri", emf),
    ] {
        let (true, Some(value)) = (shown, value) else {
            continue;
        };
        if comma {
            line.push(b", ");
        }
        if named {
            plan::name(key, palette.key, palette, &mut line);
        } else if any {
            line.push_byte(b':');
        }
        line.push(visible(value).as_bytes());
        any = true;
    }
    if any && !named {
        line.push_byte(b' ');
    }
    if comma {
        line.push(b", ");
    }
    if named {
        plan::name("name", palette.key, palette, &mut line);
    }
    let (color, name) = match &class.name {
        Some(name) => (palette.event, &**name),
        None => (palette.unknown, "<unknown>"),
    };
    line.push(color.as_bytes());
    line.push(visible(name).as_bytes());
    line.push(palette.reset.as_bytes());
    line.push(if named { b", " } else { b": " });
    line.as_bytes().to_vec()
}

/// A log level of LTTng's scale: its name there and its number.
pub(crate) fn log_level(level: i64) -> String {
    const NAMES: [&str; 15] = [
        "TRACE_EMERG",
        "TRACE_ALERT",
        "TRACE_CRIT",
        "TRACE_ERR",
        "TRACE_WARNING",
        "TRACE_NOTICE",
        "TRACE_INFO",
        "TRACE_DEBUG_SYSTEM",
        "TRACE_DEBUG_PROGRAM",
        "TRACE_DEBUG_PROCESS",
        "TRACE_DEBUG_MODULE",
        "TRACE_DEBUG_UNIT",
        "TRACE_DEBUG_FUNCTION",
        "TRACE_DEBUG_LINE",
        "TRACE_DEBUG",
    ];
    match usize::try_from(level)
        .ok()
        .and_then(|level| NAMES.get(level))
    {
        Some(name) => format!("{name} ({level})"),
        None => format!("({level})"),
    }
}

#[cfg(test)]
mod tests;
