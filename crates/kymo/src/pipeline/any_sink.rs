//! Sinks and workers of any type, so that merging and sharing out the work are compiled once.

use std::io;

use kymo_model::batch::{MergedRows, SourceRows, SourceRun};
use kymo_model::{EventBlock, FieldId};
use kymo_text::Line;

use super::entries::Batch;
use super::job::{Job, Jobs, WorkerState};
use super::{RowRun, Select};
use crate::AnyRecording;
use crate::any::AnyCursor;
use crate::show::{Message, Renderer, Sink};

/// What a thread works with.
pub(super) trait Worker<'r>: Send {
    /// Decodes and renders a batch of events; the cursor is `None` at the end of the chunk.
    fn do_job(&mut self, jobs: &Jobs<'r>, job: Job<'r>) -> (Batch, Option<AnyCursor<'r>>);

    /// As [`Renderer::looks_at`].
    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool;
}

impl<'r, P: Renderer> Worker<'r> for WorkerState<'r, P> {
    fn do_job(&mut self, jobs: &Jobs<'r>, job: Job<'r>) -> (Batch, Option<AnyCursor<'r>>) {
        jobs.do_job(job, self)
    }

    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool {
        self.renderer.looks_at(recording, source, class, field)
    }
}

/// A [`Sink`] without the type of its renderer.
pub(super) trait AnySink<'r> {
    /// What one more thread works with.
    fn worker(&self, select: &'r dyn Select) -> Box<dyn Worker<'r> + 'r>;

    /// [`Sink::ROWS`].
    fn takes_rows(&self) -> bool;

    fn wants_structure(&self) -> bool;

    fn is_by_stream(&self) -> bool;

    fn begin(
        &mut self,
        recordings: &[AnyRecording],
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()>;

    fn message(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    );

    fn rows(
        &mut self,
        run: RowRun<'_>,
        recordings: &[AnyRecording],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) -> bool;

    fn takes_runs(&self) -> bool;

    fn runs(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun]) -> bool;

    fn merged(&mut self, sources: &[SourceRows<'_>], rows: MergedRows<'_>) -> bool;

    fn mixed_rows(
        &mut self,
        runs: &mut [RowRun<'_>],
        order: &[u16],
        recordings: &[AnyRecording],
    ) -> Option<bool>;

    fn finish(&mut self, out: &mut Line, warnings: &mut Vec<u8>);
}

impl<'r, A: Sink + 'r> AnySink<'r> for A {
    fn worker(&self, select: &'r dyn Select) -> Box<dyn Worker<'r> + 'r> {
        Box::new(WorkerState {
            renderer: self.renderer(),
            predicate: select.predicate(),
            mark: select.mark(),
            block: EventBlock::default(),
        })
    }

    fn takes_rows(&self) -> bool {
        A::ROWS
    }

    fn wants_structure(&self) -> bool {
        Sink::wants_structure(self)
    }

    fn is_by_stream(&self) -> bool {
        Sink::is_by_stream(self)
    }

    fn begin(
        &mut self,
        recordings: &[AnyRecording],
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        Sink::begin(self, recordings, write)
    }

    fn message(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        Sink::message(self, message, recordings, text, out, warnings);
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        recordings: &[AnyRecording],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) -> bool {
        Sink::rows(self, run, recordings, out, warnings)
    }

    fn takes_runs(&self) -> bool {
        Sink::takes_runs(self)
    }

    fn runs(&mut self, sources: &[SourceRows<'_>], runs: &[SourceRun]) -> bool {
        Sink::runs(self, sources, runs)
    }

    fn merged(&mut self, sources: &[SourceRows<'_>], rows: MergedRows<'_>) -> bool {
        Sink::merged(self, sources, rows)
    }

    fn mixed_rows(
        &mut self,
        runs: &mut [RowRun<'_>],
        order: &[u16],
        recordings: &[AnyRecording],
    ) -> Option<bool> {
        Sink::mixed_rows(self, runs, order, recordings)
    }

    fn finish(&mut self, out: &mut Line, warnings: &mut Vec<u8>) {
        Sink::finish(self, out, warnings);
    }
}
