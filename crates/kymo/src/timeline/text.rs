//! Rows as text.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use kymo_model::FaultReport;
use kymo_text::Line;

use super::ahead::Ahead;
use super::{Direction, Query, QueryError, Timeline};
use crate::AnyRecording;
use crate::pipeline::{self, Output, Span, Tail};
use crate::show::{Message, Sink};

/// Rows that are handed over at once.
const ROWS: usize = 1024;

/// A row or a loss as it is shown.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Text {
    /// What it is; `None` of what belongs to no row, such as a header.
    pub message: Option<Message>,
    /// The bytes that it is shown as, with the end of the line.
    pub text: Vec<u8>,
    /// Lines of warnings that come before it.
    pub warnings: Vec<u8>,
    /// Damage that was met and skipped before it.
    pub faults: Vec<FaultReport>,
}

/// The rows of a query as text; made by [`Timeline::text`].
///
/// A thread works ahead by two batches, and ends when this is dropped.
#[derive(Debug)]
pub struct TextRows {
    parts: Ahead<Vec<Text>>,
    ready: std::vec::IntoIter<Text>,
}

impl Timeline {
    /// The rows that a query wants as one of the sinks of [`show`](crate::show) shows them, one by one.
    /// With [`Backwards`](super::Direction::Backwards), they are the last rows, up to the limit, but
    /// from the first of them on: what is shown of a row may depend on that before it.
    ///
    /// ```
    /// use kymo::show::{Times, WallOptions, json::Json};
    /// use kymo::timeline::{Query, Timeline};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
    ///
    /// let opened = kymo::open::open(&[path.into()], &Default::default());
    /// let timeline = Timeline::new(opened.recordings);
    /// let json = Json::with_times(Times::default(), WallOptions::default());
    /// for row in timeline.text(&Query::default(), json)? {
    ///     assert!(row.text.starts_with(b"{") && row.text.ends_with(b"}\n"));
    /// }
    /// # Ok::<(), kymo::timeline::QueryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The condition is invalid, or no thread could be started for it.
    pub fn text<A>(&self, query: &Query, sink: A) -> Result<TextRows, QueryError>
    where
        A: Sink + Send + 'static,
    {
        let bound = self.bind(query)?;
        let recordings = Arc::clone(&self.recordings);
        let work = move |sender| {
            let shared = RefCell::new(Shared {
                text: Text::default(),
                ready: Vec::new(),
                sender,
                is_done: false,
            });
            let select = Span {
                select: &&bound.filter,
                from: bound.from.as_ref(),
                to: None,
            };
            let mut sink = Splitter {
                inner: sink,
                shared: &shared,
            };
            let mut output = Rest(&shared);
            let mut options = bound.options;
            // The only error of its output is that nothing takes it any more.
            let _ = match (bound.direction, options.limit) {
                (Direction::Backwards, Some(limit)) => {
                    let by_stream = sink.is_by_stream();
                    let (_, last) = Tail::new(&recordings, &select, by_stream).rewind(limit);
                    options.limit = None;
                    let select = Span {
                        from: Some(&last),
                        ..select
                    };
                    pipeline::run(&recordings, &select, &options, &mut sink, &mut output)
                }
                _ => pipeline::run(&recordings, &select, &options, &mut sink, &mut output),
            };
            let mut shared = shared.borrow_mut();
            shared.end(None);
            shared.send();
        };
        Ok(TextRows {
            parts: Ahead::spawn(work).map_err(QueryError::Thread)?,
            ready: Vec::new().into_iter(),
        })
    }
}

impl Iterator for TextRows {
    type Item = Text;

    fn next(&mut self) -> Option<Text> {
        loop {
            if let Some(text) = self.ready.next() {
                return Some(text);
            }
            self.ready = self.parts.next()?.into_iter();
        }
    }
}

/// What is ready to be handed over.
struct Shared {
    /// What comes next.
    text: Text,
    ready: Vec<Text>,
    sender: SyncSender<Vec<Text>>,
    is_done: bool,
}

impl Shared {
    /// Ends what a message became.
    fn end(&mut self, message: Option<Message>) {
        let text = std::mem::take(&mut self.text);
        let Text {
            text: bytes,
            warnings,
            faults,
            ..
        } = &text;
        if bytes.is_empty() && warnings.is_empty() && faults.is_empty() {
            return;
        }
        self.ready.push(Text { message, ..text });
        if self.ready.len() >= ROWS {
            self.send();
        }
    }

    fn send(&mut self) {
        if !self.ready.is_empty() {
            let ready = std::mem::take(&mut self.ready);
            self.is_done |= self.sender.send(ready).is_err();
        }
    }
}

/// Takes apart what a sink makes of messages.
struct Splitter<'s, A> {
    inner: A,
    shared: &'s RefCell<Shared>,
}

impl<A: Sink> Sink for Splitter<'_, A> {
    type Renderer = A::Renderer;

    fn renderer(&self) -> A::Renderer {
        debug_assert!(
            !self.inner.takes_rows(),
            "a sink of rows makes no text of them"
        );
        self.inner.renderer()
    }

    fn wants_structure(&self) -> bool {
        self.inner.wants_structure()
    }

    fn is_by_stream(&self) -> bool {
        self.inner.is_by_stream()
    }

    fn begin(
        &mut self,
        recordings: &[AnyRecording],
        _write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let shared = self.shared;
        self.inner.begin(recordings, &mut |bytes| {
            shared.borrow_mut().text.text.extend_from_slice(bytes);
            Ok(())
        })?;
        shared.borrow_mut().end(None);
        Ok(())
    }

    fn message(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        self.inner.message(message, recordings, text, out, warnings);
        let mut shared = self.shared.borrow_mut();
        shared.text.text.extend_from_slice(out.as_bytes());
        shared.text.warnings.append(warnings);
        out.clear();
        shared.end(Some(*message));
        if shared.is_done {
            // What is to be written ends the run.
            warnings.push(b'\n');
        }
    }

    fn finish(&mut self, out: &mut Line, warnings: &mut Vec<u8>) {
        self.inner.finish(out, warnings);
        let mut shared = self.shared.borrow_mut();
        shared.text.text.extend_from_slice(out.as_bytes());
        shared.text.warnings.append(warnings);
        out.clear();
    }
}

/// What belongs to no message.
struct Rest<'s>(&'s RefCell<Shared>);

impl Output for Rest<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        let mut shared = self.0.borrow_mut();
        shared.text.text.extend_from_slice(text);
        shared.end(None);
        match shared.is_done {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(()),
        }
    }

    fn warning(&mut self, _lines: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.0.borrow_mut().text.faults.push(fault.clone());
        ControlFlow::Continue(())
    }
}
