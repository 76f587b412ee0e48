//! CPEL and Gist files as VPP's cpeldump prints them.
//!
//! A line is `HHH:MM:SS:MMM:UUU TRACK EVENT DATUM`: the time since the first event of its section,
//! rounded down to microseconds, and the names of track and event, filled up to the longest format
//! of such a name. Sections come one after the other, as do files. What cpeldump tells with
//! `--verbose` is not events, and no part of it.
//!
//! Where cpeldump prints what is not there, the events are shown as they are: the same datum for
//! each conversion of a format, `%d secs` as a number, offsets of zero as the defaults.

use std::sync::Arc;

use kymo_cpel::definitions::Reference;
use kymo_cpel::recording::Recording as Cpel;
use kymo_model::{Chunk, Event, Fault, FieldId, Recording, Visitor};
use kymo_text::{Line, Stamp};

use super::{Assembler, Message, MessageKind, Painter};
use crate::AnyRecording;

/// The least width of a column.
const LEAST_WIDTH: usize = 5;
/// The largest width of a column, and bytes of an event's name: a file could make any amount of
/// blanks of one long format.
const MOST_WIDTH: usize = 1024;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// Puts the lines of sections one after the other.
#[derive(Debug)]
pub struct CpelDump {
    plans: Arc<[Plan]>,
}

/// What is known of the lines of a recording.
#[derive(Debug, Default)]
struct Plan {
    track_width: usize,
    name_width: usize,
    /// Of each event class.
    names: Vec<Stamp>,
    /// The class of codes that have none of their own, of which each has another name.
    nameless: Option<usize>,
}

impl CpelDump {
    /// For recordings that are CPEL or Gist files; of others, no events can be shown.
    pub fn new(of: &[AnyRecording]) -> Self {
        let plan = |of: &AnyRecording| match of {
            AnyRecording::Cpel(of) => Plan::new(of),
            _ => Plan::default(),
        };
        Self {
            plans: of.iter().map(plan).collect(),
        }
    }
}

impl Plan {
    fn new(of: &Cpel) -> Self {
        let definitions = of.definitions();
        let width = |longest: usize, name: &Reference| match name {
            Reference::At(place) => longest.max(of.names(&(0..0)).text(place).len()),
            Reference::None | Reference::Bad(_) => longest,
        };
        let tracks = definitions.tracks.iter().map(|track| &track.name);
        let events = definitions.events.iter().map(|event| &event.name);
        let mut name = Line::new();
        let defined = definitions.events.iter().map(|event| {
            let names = of.names(&event.strings);
            name.clear();
            names.write_name(&event.name, b"E%d", event.code, &mut name, MOST_WIDTH);
            Stamp::new(name.as_bytes())
        });
        let defined: Vec<Stamp> = defined.collect();
        // Behind them come the codes without a definition.
        let undefined = of.event_classes().iter().skip(defined.len());
        let undefined =
            undefined.map(|class| Stamp::new(class.name.as_deref().unwrap_or_default().as_bytes()));
        Self {
            track_width: tracks.fold(LEAST_WIDTH, width).min(MOST_WIDTH),
            name_width: events.fold(LEAST_WIDTH, width).min(MOST_WIDTH),
            names: defined.iter().cloned().chain(undefined).collect(),
            nameless: of
                .event_classes()
                .iter()
                .position(|class| u32::try_from(class.id).is_err()),
        }
    }
}

impl Assembler for CpelDump {
    type Painter = CpelDumpPainter;

    fn painter(&self) -> CpelDumpPainter {
        CpelDumpPainter {
            plans: Arc::clone(&self.plans),
            recording: 0,
            clock: Clock::default(),
        }
    }

    fn is_by_stream(&self) -> bool {
        true
    }

    fn message(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        if message.kind == MessageKind::Event {
            out.push(text);
        }
    }
}

/// Writes whole lines.
#[derive(Debug)]
pub struct CpelDumpPainter {
    plans: Arc<[Plan]>,
    recording: usize,
    clock: Clock,
}

/// Times since the first event of a section.
#[derive(Debug, Default)]
struct Clock {
    ticks_per_micro: f64,
    /// The first event, in microseconds.
    begin: u64,
    /// The hours, minutes and seconds of the last time, and what they are together.
    head: Stamp,
    second: Option<u64>,
}

impl Clock {
    /// As cpeldump calculates them.
    fn micros(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.ticks_per_micro) as u64
    }

    #[inline]
    fn write(&mut self, ticks: u64, out: &mut Line) {
        let micros = self.micros(ticks).wrapping_sub(self.begin);
        let (second, below) = (micros / MICROS_PER_SECOND, micros % MICROS_PER_SECOND);
        if self.second != Some(second) {
            self.begin_second(second);
        }
        out.stamp(&self.head);
        let digit = |number: u32| b'0' + (number % 10) as u8;
        let below = below as u32;
        let (millis, micros) = (below / 1000, below % 1000);
        out.push(&[
            digit(millis / 100),
            digit(millis / 10),
            digit(millis),
            b':',
            digit(micros / 100),
            digit(micros / 10),
            digit(micros),
            b' ',
        ]);
    }

    fn begin_second(&mut self, second: u64) {
        let (minutes, seconds) = (second / 60, second % 60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        let head = format!("{hours:03}:{minutes:02}:{seconds:02}:");
        self.head = Stamp::new(head.as_bytes());
        self.second = Some(second);
    }
}

impl Painter for CpelDumpPainter {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        let clock = of.streams()[chunk.stream].clock.as_ref();
        let per_second = clock.map_or(1, |clock| clock.frequency);
        self.clock = Clock {
            ticks_per_micro: per_second as f64 / MICROS_PER_SECOND as f64,
            ..Clock::default()
        };
        let first = of.chunk(chunk.stream, 0).and_then(|first| first.begin);
        self.clock.begin = self.clock.micros(first.unwrap_or(0));
        Ok(())
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let Some(plan) = self.plans.get(self.recording) else {
            return Ok(());
        };
        self.clock.write(event.ticks().unwrap_or(0), out);
        let class = event.class_index();
        let own_name;
        let name = match plan.names.get(class) {
            Some(name) if plan.nameless != Some(class) => name,
            _ => {
                own_name = code_name(event)?;
                &own_name
            }
        };
        event.visit(&mut Pen {
            plan,
            name,
            has_track: false,
            out,
        })?;
        out.push_byte(b'\n');
        Ok(())
    }
}

/// The name of an event whose class tells none: its code is its last number.
#[cold]
fn code_name(event: &impl Event) -> Result<Stamp, Fault> {
    struct Last(u64);
    impl Visitor for Last {
        fn uint(&mut self, _field: FieldId, value: u64) {
            self.0 = value;
        }
    }
    let mut code = Last(0);
    event.visit(&mut code)?;
    Ok(Stamp::new(format!("E{}", code.0 as i32).as_bytes()))
}

/// Writes what comes after the time. An event has two texts: its track, and what is made of its
/// datum.
struct Pen<'a> {
    plan: &'a Plan,
    name: &'a Stamp,
    has_track: bool,
    out: &'a mut Line,
}

impl Visitor for Pen<'_> {
    #[inline]
    fn text(&mut self, _field: FieldId, text: &[u8]) {
        let out = &mut *self.out;
        if self.has_track {
            return out.push(text);
        }
        self.has_track = true;
        let begin = out.len();
        out.push(text);
        fill(begin, self.plan.track_width, out);
        let begin = out.len();
        out.stamp(self.name);
        fill(begin, self.plan.name_width, out);
    }
}

/// Fills a column up, and a blank after it.
#[inline]
fn fill(begin: usize, width: usize, out: &mut Line) {
    const BLANKS: &[u8; 32] = &[b' '; 32];
    let written = out.len() - begin;
    let mut missing = width.saturating_sub(written) + 1;
    while missing > BLANKS.len() {
        out.push(BLANKS);
        missing -= BLANKS.len();
    }
    out.push(&BLANKS[..missing]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(clock: &mut Clock, ticks: u64) -> String {
        let mut line = Line::new();
        clock.write(ticks, &mut line);
        String::from_utf8_lossy(line.as_bytes()).into_owned()
    }

    #[test]
    fn times_are_hours_to_microseconds() {
        let mut clock = Clock {
            ticks_per_micro: 1000.0,
            begin: 5,
            ..Clock::default()
        };
        assert_eq!(time(&mut clock, 5_999), "000:00:00:000:000 ");
        assert_eq!(time(&mut clock, 6_000), "000:00:00:000:001 ");
        let second = 1_000_000_000;
        let late = (1000 * 3600 + 59 * 60 + 7) * second + 123_461_000;
        assert_eq!(time(&mut clock, late), "1000:59:07:123:456 ");
        assert_eq!(time(&mut clock, late + second), "1000:59:08:123:456 ");
    }

    #[test]
    fn columns_are_filled() {
        for (text, width) in [("", 5), ("abc", 5), ("abcdef", 5), ("a", 100)] {
            let mut line = Line::new();
            line.push(text.as_bytes());
            fill(0, width, &mut line);
            assert_eq!(line.as_bytes(), format!("{text:width$} ").as_bytes());
        }
    }
}
