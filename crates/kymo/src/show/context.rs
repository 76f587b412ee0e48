//! Events around those that are wanted.

use std::collections::VecDeque;

use kymo_model::{Chunk, Event, Fault};
use kymo_text::Line;

use super::{LossReporter, Message, MessageKind, Renderer, Sink};
use crate::AnyRecording;
use crate::pipeline::{Predicate, Select};

/// Shows of all events it gets those that are wanted, and some before and after each.
///
/// It is given all events that may be shown; `select` returns which of them are wanted.
pub struct Context<'a, A> {
    sink: A,
    select: &'a dyn Select,
    before: usize,
    after: usize,
    /// Events that may come before a wanted one.
    waiting: VecDeque<(Message, Vec<u8>)>,
    /// How many more come after the last wanted one.
    left: usize,
    /// Whether events were left out since the last one that was shown.
    is_apart: bool,
    /// What is written where some were left out.
    separator: &'static [u8],
    has_shown: bool,
}

impl<'a, A: Sink> Context<'a, A> {
    /// A context around `sink`, which shows text and takes no rows; `separator` replaces events that are left out.
    pub fn new(
        sink: A,
        select: &'a dyn Select,
        before: usize,
        after: usize,
        separator: &'static str,
    ) -> Self {
        Self {
            sink,
            select,
            before,
            after,
            waiting: VecDeque::new(),
            left: 0,
            is_apart: false,
            separator: separator.as_bytes(),
            has_shown: false,
        }
    }
}

/// Marks the text of events that are wanted.
#[derive(Debug)]
pub struct ContextRenderer<'a, R> {
    renderer: R,
    predicate: Predicate<'a>,
}

/// What the text of an event ends with.
const WANTED: u8 = 1;
const AROUND: u8 = 0;

impl<R: Renderer> Renderer for ContextRenderer<'_, R> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.predicate.chunk(recording, source, chunk)?;
        self.renderer.chunk(recording, source, chunk)
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        self.renderer.event(event, out)?;
        let is_wanted = self.predicate.wants(event)?;
        out.push_byte(if is_wanted { WANTED } else { AROUND });
        Ok(())
    }
}

impl<'a, A: Sink> Sink for Context<'a, A> {
    type Renderer = ContextRenderer<'a, A::Renderer>;

    fn renderer(&self) -> Self::Renderer {
        ContextRenderer {
            renderer: self.sink.renderer(),
            predicate: self.select.predicate(),
        }
    }

    fn begin(
        &mut self,
        recordings: &[AnyRecording],
        write: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.sink.begin(recordings, write)
    }

    fn event(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        let Some((&mark, text)) = text.split_last() else {
            return;
        };
        if mark == AROUND && self.left == 0 {
            if self.waiting.len() >= self.before {
                self.is_apart = true;
                self.waiting.pop_front();
            }
            if self.before > 0 {
                self.waiting.push_back((*message, text.to_vec()));
            }
            return;
        }
        if std::mem::take(&mut self.is_apart) && self.has_shown {
            out.push(self.separator);
        }
        self.has_shown = true;
        for (message, text) in self.waiting.drain(..) {
            self.sink.event(&message, recordings, &text, out, warnings);
        }
        self.left = match mark {
            WANTED => self.after,
            _ => self.left - 1,
        };
        self.sink.event(message, recordings, text, out, warnings);
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        self.sink.loss_reporter()
    }

    fn message(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        match message.kind {
            MessageKind::Event => self.event(message, recordings, text, out, warnings),
            _ => self.sink.message(message, recordings, text, out, warnings),
        }
    }

    fn finish(&mut self, out: &mut Line, warnings: &mut Vec<u8>) {
        self.sink.finish(out, warnings);
    }
}
