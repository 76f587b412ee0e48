//! CPEL and Gist files as VPP's cpeldump prints them.
//!
//! A line is `HHH:MM:SS:MMM:UUU TRACK EVENT DATUM`: the time since the first event of its section,
//! rounded down to microseconds, and the names of track and event, filled up to the longest format
//! of such a name. Sections come one after the other, as do files. What cpeldump prints with
//! `--verbose` is not events, and no part of it.
//!
//! Where cpeldump prints what is not there, the events are shown as they are: the same datum for
//! each conversion of a format, `%d secs` as a number, offsets of zero as the defaults.

use std::sync::Arc;

use kymo_cpel::definitions::Reference;
use kymo_cpel::recording::Recording as Cpel;
use kymo_model::{Chunk, Event, Fault, FieldId, Recording, Visitor};
use kymo_text::{Line, Room, Stamp};

use super::{Message, Renderer, Sink};
use crate::AnyRecording;

/// The least width of a column.
const LEAST_WIDTH: usize = 5;
/// The largest width of a column, and bytes of an event's name: a file could make any amount of
/// blanks of one long format.
const MOST_WIDTH: usize = 1024;
/// Tracks below it have their cells kept.
const MOST_TRACKS: usize = 1 << 12;
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
    /// The name of each event class, except the one of codes without a class of their own: each of its events
    /// has another name.
    names: Vec<Option<Cell>>,
}

/// What stands in a column: a text, and what fills it up.
#[derive(Clone, Debug, Default)]
struct Cell {
    /// The text, and the blanks too where all is short.
    text: Stamp,
    blanks: usize,
}

impl Cell {
    fn new(text: &[u8], width: usize) -> Self {
        // A blank stands between columns.
        let blanks = width.saturating_sub(text.len()) + 1;
        let mut line = Line::new();
        line.push(text);
        fill(blanks, &mut line);
        let whole = Stamp::new(line.as_bytes());
        if whole.is_short() {
            return Self {
                text: whole,
                blanks: 0,
            };
        }
        Self {
            text: Stamp::new(text),
            blanks,
        }
    }

    fn write(&self, out: &mut Line) {
        out.stamp(&self.text);
        fill(self.blanks, out);
    }
}

impl CpelDump {
    /// For recordings that are CPEL or Gist files; of others, no events can be shown.
    pub fn new(recordings: &[AnyRecording]) -> Self {
        let plan = |recording: &AnyRecording| match recording {
            AnyRecording::Cpel(log) => Plan::new(log),
            _ => Plan::default(),
        };
        Self {
            plans: recordings.iter().map(plan).collect(),
        }
    }
}

impl Plan {
    fn new(log: &Cpel) -> Self {
        let definitions = log.definitions();
        let width = |longest: usize, name: &Reference| match name {
            Reference::At(place) => longest.max(log.names(&(0..0)).text(place).len()),
            Reference::None | Reference::Bad(_) => longest,
        };
        let tracks = definitions.tracks.iter().map(|track| &track.name);
        let events = definitions.events.iter().map(|event| &event.name);
        let name_width = events.fold(LEAST_WIDTH, width).min(MOST_WIDTH);
        let mut name = Line::new();
        let defined = definitions.events.iter().map(|event| {
            let names = log.names(&event.strings);
            name.clear();
            names.write_name(&event.name, b"E%d", event.code, &mut name, MOST_WIDTH);
            Some(Cell::new(name.as_bytes(), name_width))
        });
        let mut names: Vec<Option<Cell>> = defined.collect();
        // Behind them come the codes without a definition.
        for class in &log.event_classes()[names.len()..] {
            let name = class.name.as_deref().unwrap_or_default();
            let code = u32::try_from(class.id);
            names.push(code.is_ok().then(|| Cell::new(name.as_bytes(), name_width)));
        }
        Self {
            track_width: tracks.fold(LEAST_WIDTH, width).min(MOST_WIDTH),
            name_width,
            names,
        }
    }
}

impl Sink for CpelDump {
    type Renderer = CpelDumpRenderer;

    fn renderer(&self) -> CpelDumpRenderer {
        CpelDumpRenderer {
            plans: Arc::clone(&self.plans),
            recording: 0,
            clock: Clock::default(),
            tracks: Vec::new(),
        }
    }

    fn is_by_stream(&self) -> bool {
        true
    }

    fn event(
        &mut self,
        _message: &Message,
        _of: &[AnyRecording],
        _text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        // Events are handed over as they were rendered, and nothing else is shown.
    }
}

/// Writes whole lines.
#[derive(Debug)]
pub struct CpelDumpRenderer {
    plans: Arc<[Plan]>,
    recording: usize,
    clock: Clock,
    /// Cells of tracks by their numbers, as far as these are small and the tracks were met; empty
    /// ones of others.
    tracks: Vec<Stamp>,
}

/// Times since the first event of a section.
#[derive(Debug, Default)]
struct Clock {
    ticks_per_micro: f64,
    /// The first event, in microseconds.
    begin: u64,
    /// The hours, minutes and seconds of the last time, and the microseconds up to there.
    head: Stamp,
    second: u64,
}

impl Clock {
    /// As cpeldump calculates them.
    #[inline(always)]
    fn micros(&self, ticks: u64) -> u64 {
        // So far a double next to the quotient is not beyond the next integer.
        if self.ticks_per_micro == 1000.0 && ticks < 1 << 52 {
            return ticks / 1000;
        }
        (ticks as f64 / self.ticks_per_micro) as u64
    }

    /// Finds a time: what comes after [`Clock::head`] are these microseconds.
    #[inline(always)]
    fn find(&mut self, ticks: u64) -> u32 {
        let micros = self.micros(ticks).wrapping_sub(self.begin);
        if micros.wrapping_sub(self.second) >= MICROS_PER_SECOND || self.head.is_empty() {
            self.begin_second(micros);
        }
        (micros - self.second) as u32
    }

    #[cold]
    fn begin_second(&mut self, micros: u64) {
        let seconds = micros / MICROS_PER_SECOND;
        self.second = seconds * MICROS_PER_SECOND;
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        let head = format!("{hours:03}:{minutes:02}:{seconds:02}:");
        self.head = Stamp::new(head.as_bytes());
    }
}

impl Renderer for CpelDumpRenderer {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        if self.recording != recording {
            self.tracks.clear();
        }
        self.recording = recording;
        let clock = source.streams()[chunk.stream].clock.as_ref();
        let per_second = clock.map_or(1, |clock| clock.frequency);
        self.clock = Clock {
            ticks_per_micro: per_second as f64 / MICROS_PER_SECOND as f64,
            ..Clock::default()
        };
        let first = source.chunk(chunk.stream, 0).and_then(|first| first.begin);
        self.clock.begin = self.clock.micros(first.unwrap_or(0));
        Ok(())
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let Some(plan) = self.plans.get(self.recording) else {
            return Ok(());
        };
        let below = self.clock.find(event.ticks().unwrap_or(0));
        let class = event.class_index();
        let own_name;
        let name = match plan.names.get(class) {
            Some(Some(name)) => name,
            _ => {
                own_name = Cell::new(&code_name(event)?, plan.name_width);
                &own_name
            }
        };
        event.visit(&mut FieldRenderer {
            time: (&self.clock.head, below),
            name,
            track_width: plan.track_width,
            tracks: &mut self.tracks,
            track: None,
            out,
        })?;
        out.push_byte(b'\n');
        Ok(())
    }
}

/// The name of an event whose class has none: its code is its last number.
#[cold]
fn code_name(event: &impl Event) -> Result<Vec<u8>, Fault> {
    struct Last(u64);
    impl Visitor for Last {
        fn uint(&mut self, _field: FieldId, value: u64) {
            self.0 = value;
        }
    }
    let mut code = Last(0);
    event.visit(&mut code)?;
    Ok(format!("E{}", code.0 as i32).into_bytes())
}

/// Writes a line. The first number of an event is its track, its first text that
/// track's name, and the second one what is made of its datum.
struct FieldRenderer<'a> {
    /// Up to the seconds, and the microseconds after them.
    time: (&'a Stamp, u32),
    name: &'a Cell,
    track_width: usize,
    tracks: &'a mut Vec<Stamp>,
    /// The track, and whether its name was written.
    track: Option<(u64, bool)>,
    out: &'a mut Line,
}

impl FieldRenderer<'_> {
    /// Writes all that comes before the datum, whatever its length, and keeps the cell of the
    /// track where it is short.
    #[cold]
    fn begin_slowly(&mut self, track: u64, name: &[u8]) {
        let cell = Cell::new(name, self.track_width);
        let (head, below) = self.time;
        self.out.compose_after(head, |room| time(below, room));
        cell.write(self.out);
        self.name.write(self.out);
        let kept = usize::try_from(track).unwrap_or(usize::MAX);
        if kept < MOST_TRACKS && cell.blanks == 0 {
            if kept >= self.tracks.len() {
                self.tracks.resize(kept + 1, Stamp::default());
            }
            self.tracks[kept] = cell.text;
        }
    }
}

impl Visitor for FieldRenderer<'_> {
    #[inline(always)]
    fn uint(&mut self, _field: FieldId, value: u64) {
        self.track.get_or_insert((value, false));
    }

    #[inline(always)]
    fn text(&mut self, _field: FieldId, text: &[u8]) {
        match &mut self.track {
            Some((track, named @ false)) => {
                *named = true;
                let track = *track;
                let (head, below) = self.time;
                match self.tracks.get(track as usize) {
                    Some(cell) if !cell.is_empty() && self.name.blanks == 0 => {
                        self.out.compose(|room| {
                            room.stamp(head);
                            time(below, room);
                            room.stamp(cell);
                            room.stamp(&self.name.text);
                        });
                    }
                    _ => self.begin_slowly(track, text),
                }
            }
            _ => self.out.push(text),
        }
    }
}

/// Appends milliseconds and microseconds.
#[inline(always)]
fn time(below: u32, room: &mut Room<'_>) {
    room.three(below / 1000);
    room.text(b":");
    room.three(below % 1000);
    room.text(b" ");
}

/// Appends blanks.
fn fill(mut count: usize, out: &mut Line) {
    const BLANKS: &[u8; 32] = &[b' '; 32];
    while count > 0 {
        let some = count.min(BLANKS.len());
        out.push(&BLANKS[..some]);
        count -= some;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(clock: &mut Clock, ticks: u64) -> String {
        let mut line = Line::new();
        let below = clock.find(ticks);
        line.compose_after(&clock.head, |room| time(below, room));
        String::from_utf8_lossy(line.as_bytes()).into_owned()
    }

    #[test]
    fn times_are_hours_to_microseconds() {
        let mut clock = Clock {
            ticks_per_micro: 1000.0,
            begin: 5,
            ..Clock::default()
        };
        assert_eq!(shown(&mut clock, 5_999), "000:00:00:000:000 ");
        assert_eq!(shown(&mut clock, 6_000), "000:00:00:000:001 ");
        let second = 1_000_000_000;
        let late = (1000 * 3600 + 59 * 60 + 7) * second + 123_461_000;
        assert_eq!(shown(&mut clock, late), "1000:59:07:123:456 ");
        assert_eq!(shown(&mut clock, late + second), "1000:59:08:123:456 ");
        // Events that are not in order.
        assert_eq!(shown(&mut clock, 6_000), "000:00:00:000:001 ");
    }

    #[test]
    fn integers_divide_as_doubles_do() {
        let clock = Clock {
            ticks_per_micro: 1000.0,
            ..Clock::default()
        };
        let mut ticks = 1;
        while ticks < 1 << 52 {
            for near in [ticks - ticks % 1000, ticks - ticks % 1000 + 999, ticks] {
                assert_eq!(clock.micros(near), (near as f64 / 1000.0) as u64);
            }
            ticks += ticks / 3 + 7;
        }
    }

    #[test]
    fn columns_are_filled() {
        for (text, width) in [
            ("", 5),
            ("abc", 5),
            ("abcdef", 5),
            ("a", 100),
            ("a", 29),
            ("a", 30),
        ] {
            let mut line = Line::new();
            Cell::new(text.as_bytes(), width).write(&mut line);
            assert_eq!(line.as_bytes(), format!("{text:width$} ").as_bytes());
        }
    }
}
