//! JSON lines.
//!
//! The lines are those that are [shown](crate::show::json). For CPEL files, from whose lines the same file
//! can be made again, lines that describe the file come before all others, and those of its events
//! end with where the events lie: see [`kymo_cpel::json`].

use std::io;

use kymo_cpel::file::File;
use kymo_cpel::json::{Write, describe, event_end};
use kymo_cpel::recording::Recording as Log;
use kymo_model::{Chunk, Event, Fault, Recording};
use kymo_text::Line;

use crate::AnyRecording;
use crate::show::json::{Json, JsonRenderer};
use crate::show::{LossReporter, Message, Renderer, Sink, Times, WallOptions};

/// Puts lines together.
#[derive(Debug)]
pub struct Jsonl {
    json: Json,
}

impl Jsonl {
    /// Lines of recordings; `wall` is how times are shown in warnings, and the time zone of `times`.
    pub fn new(times: Times, wall: WallOptions) -> Self {
        Self {
            json: Json::with_times(times, wall),
        }
    }
}

/// The log, where it is a CPEL file.
fn file(recording: &AnyRecording) -> Option<&Log> {
    match recording {
        AnyRecording::Cpel(log) if log.header().is_some() => Some(log),
        _ => None,
    }
}

impl Sink for Jsonl {
    type Renderer = JsonlRenderer;

    fn renderer(&self) -> JsonlRenderer {
        JsonlRenderer {
            json: self.json.renderer(),
            place: None,
        }
    }

    fn begin(&mut self, recordings: &[AnyRecording], write: Write<'_>) -> io::Result<()> {
        for log in recordings.iter().filter_map(file) {
            if let Ok(file) = File::open(log.bytes()) {
                describe(&file, log.path().as_os_str().as_encoded_bytes(), write)?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        self.json.event(message, recordings, text, out, warnings);
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        self.json.loss_reporter()
    }
}

/// Writes what comes after the time.
#[derive(Debug)]
pub struct JsonlRenderer {
    json: JsonRenderer,
    /// Where the events of the chunk lie, where they are of a CPEL file.
    place: Option<Place>,
}

/// Where events lie in a file.
#[derive(Debug)]
struct Place {
    section: usize,
    /// Their positions, where they do not lie in the order of time.
    positions: Option<Box<[u32]>>,
}

impl Renderer for JsonlRenderer {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.place = file(source).map(|log| Place {
            section: log.section(chunk.stream),
            positions: log.positions(chunk).map(Box::from),
        });
        self.json.chunk(recording, source, chunk)
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        self.json.event(event, out)?;
        if let Some(Place { section, positions }) = &self.place {
            let position = positions.as_ref().and_then(|positions| {
                let place = usize::try_from(event.number()).ok()?;
                positions.get(place).copied()
            });
            out.truncate(out.len() - JsonRenderer::END.len());
            event_end(*section, event.ticks().unwrap_or(0), position, out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
