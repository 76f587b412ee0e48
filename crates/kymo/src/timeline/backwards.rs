//! Rows from the last to the first.
//!
//! The last rows of all streams are found from the end, and then read forwards as any others, so that backwards is
//! exactly forwards reversed; then those before them. What is read at a time is kept until it is turned round.

use std::ops::ControlFlow;

use kymo_model::batch::Batch;

use super::Bound;
use super::rows::run_plan;
use crate::AnyRecording;
use crate::pipeline::{self, Places, Span, Tail};

/// Rows that are read at a time: each time, chunks that begin before them are decoded again.
const ROWS: u64 = 1 << 16;

/// Hands over the rows of a query in batches, the last ones first.
pub(super) fn run(
    recordings: &[AnyRecording],
    span: &Span<'_>,
    bound: &Bound,
    take: &mut dyn FnMut(Batch) -> ControlFlow<()>,
) {
    let mut tail = Tail::new(recordings, span, false);
    let mut left = bound.options.limit.unwrap_or(u64::MAX);
    let mut to: Option<Places> = span.to.cloned();
    loop {
        let (rows, from) = tail.rewind(left.min(ROWS));
        // Messages that are not rows may come before the first one.
        let is_first = rows < left.min(ROWS);
        let part = Span {
            select: span.select,
            from: if is_first { span.from } else { Some(&from) },
            to: to.as_ref(),
        };
        let options = pipeline::Options {
            limit: None,
            ..bound.options
        };
        let mut batches = Vec::new();
        let mut keep = |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        };
        if left > 0 {
            run_plan(
                recordings,
                &part,
                &bound.plan,
                &options,
                bound.batch_rows,
                &mut keep,
            );
        }
        for batch in batches.into_iter().rev() {
            if take(batch.reversed()).is_break() {
                return;
            }
        }
        left = left.saturating_sub(rows);
        if is_first || left == 0 {
            return;
        }
        to = Some(from);
    }
}
