//! elog files as VPP's elog_dump prints them.
//!
//! The first line states how many events the files have. The others are `SECONDS TRACK TEXT`: the
//! time since recording began in the file that began first, which is without a zero before its
//! point, and the name of the track, which has 24 bytes and no more. Of several files each track
//! has the tag of its file before its name: `F0:`, `F1:` and so on, or another one that is asked for.

use std::fmt::Write as _;
use std::sync::Arc;

use kymo_model::{Chunk, Event, Fault, FieldId, Visitor};
use kymo_text::Line;
use kymo_time::{NANOS_PER_SECOND, Timestamp};

use super::{Message, Renderer, Sink};
use crate::AnyRecording;

/// Bytes of the seconds before the point.
const SECONDS_WIDTH: usize = 8;
/// Bytes of the name of a track, with its tag.
const TRACK_WIDTH: usize = 24;

/// Puts lines together.
#[derive(Debug)]
pub struct ElogDump {
    events: u64,
    headed: bool,
    begin: Timestamp,
    /// Before the names of tracks of each recording.
    tags: Arc<[String]>,
}

impl ElogDump {
    /// For recordings that are elog files, with the tags that are asked for of each.
    pub fn new(recordings: &[AnyRecording], tags: &[Option<String>]) -> Self {
        let logs = recordings.iter().filter_map(|recording| match recording {
            AnyRecording::Elog(log) => Some(log),
            _ => None,
        });
        let tag = |position: usize| match (tags.get(position), recordings.len()) {
            (Some(Some(tag)), _) => format!("{tag}:"),
            (_, 1) => String::new(),
            _ => format!("F{position}:"),
        };
        Self {
            events: logs.clone().map(|log| log.events()).sum(),
            headed: false,
            begin: logs.map(|log| log.begin()).min().unwrap_or(Timestamp::MIN),
            tags: (0..recordings.len()).map(tag).collect(),
        }
    }

    fn head(&mut self, out: &mut Line) {
        if !self.headed {
            out.decimal(self.events);
            out.push(b" events\n");
        }
        self.headed = true;
    }
}

impl Sink for ElogDump {
    type Renderer = ElogDumpRenderer;

    fn renderer(&self) -> ElogDumpRenderer {
        ElogDumpRenderer {
            begin: self.begin,
            tags: Arc::clone(&self.tags),
            recording: 0,
        }
    }

    fn event(
        &mut self,
        _message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        self.head(out);
        out.push(text);
    }

    fn finish(&mut self, out: &mut Line, _warnings: &mut Vec<u8>) {
        self.head(out);
    }
}

/// Writes whole lines.
#[derive(Debug)]
pub struct ElogDumpRenderer {
    begin: Timestamp,
    tags: Arc<[String]>,
    recording: usize,
}

impl Renderer for ElogDumpRenderer {
    fn chunk(&mut self, recording: usize, _of: &AnyRecording, _chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        Ok(())
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let second = NANOS_PER_SECOND.unsigned_abs();
        let time = event
            .timestamp()
            .map(|time| time.as_nanos().abs_diff(self.begin.as_nanos()));
        // Writing into a line cannot fail.
        let _ = match time.map(|nanos| (nanos / second, nanos % second)) {
            Some((0, nanos)) => write!(out, "{:SECONDS_WIDTH$}.{nanos:09} ", ""),
            Some((seconds, nanos)) => write!(out, "{seconds:SECONDS_WIDTH$}.{nanos:09} "),
            None => write!(out, "{:>width$} ", "nan", width = SECONDS_WIDTH + 10),
        };
        let tag = self.tags.get(self.recording);
        event.visit(&mut FieldRenderer {
            tag: tag.map_or("", String::as_str),
            text_begin: None,
            out,
        })?;
        out.push_byte(b'\n');
        Ok(())
    }
}

/// Writes what comes after the time. The first text of an event is its track, the last one the
/// whole text: those between them are arguments, which it has in it.
struct FieldRenderer<'a> {
    tag: &'a str,
    /// Where what comes after the track begins.
    text_begin: Option<usize>,
    out: &'a mut Line,
}

impl Visitor for FieldRenderer<'_> {
    fn text(&mut self, _field: FieldId, text: &[u8]) {
        let out = &mut *self.out;
        if let Some(begin) = self.text_begin {
            out.truncate(begin);
            return out.push(text);
        }
        let begin = out.len();
        out.push(self.tag.as_bytes());
        out.push(text);
        out.truncate(out.len().min(begin + TRACK_WIDTH));
        let missing = begin + TRACK_WIDTH - out.len();
        (0..=missing).for_each(|_| out.push_byte(b' '));
        self.text_begin = Some(out.len());
    }
}
