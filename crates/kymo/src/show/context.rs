//! Events around those that are wanted.

use std::collections::VecDeque;

use kymo_text::Line;

use super::{LossReporter, Message, MessageKind, Sink};
use crate::AnyRecording;
use crate::pipeline::{Predicate, Select};

/// Shows of all events it gets those that are wanted, and some before and after each.
///
/// It is for runs that want what [`Marked`] wants.
pub struct Context<A> {
    sink: A,
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

impl<A: Sink> Context<A> {
    /// A context around `sink`, which shows text and takes no rows; `separator` replaces events that are left out.
    pub fn new(sink: A, before: usize, after: usize, separator: &'static str) -> Self {
        Self {
            sink,
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

/// Wants the events that may be shown around wanted ones, and marks those that are wanted.
#[derive(Clone, Copy)]
pub struct Marked<'a> {
    /// The events that may be shown.
    pub shown: &'a dyn Select,
    /// Which of them are wanted.
    pub wanted: &'a dyn Select,
}

impl Select for Marked<'_> {
    fn inner(&self) -> &dyn Select {
        self.shown
    }

    fn predicate(&self) -> Predicate<'_> {
        self.shown.predicate()
    }

    fn mark(&self) -> Option<Predicate<'_>> {
        Some(self.wanted.predicate())
    }
}

impl<A: Sink> Sink for Context<A> {
    type Renderer = A::Renderer;

    fn renderer(&self) -> A::Renderer {
        self.sink.renderer()
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
        let is_wanted = mark != 0;
        if !is_wanted && self.left == 0 {
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
        self.left = match is_wanted {
            true => self.after,
            false => self.left - 1,
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
