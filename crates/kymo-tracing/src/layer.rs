//! What `tracing` calls.

use std::sync::Arc;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::classes::Action;
use crate::recorder::Recorder;
use crate::thread::with;

/// A layer for [`tracing_subscriber`] that records spans and events.
///
/// It is made together with what ends the recording by [`Options`](crate::Options), and takes filters as all
/// layers do.
#[derive(Clone)]
pub struct Layer {
    pub(crate) recorder: Arc<Recorder>,
    /// Whether it is recorded that threads enter and exit spans.
    pub(crate) enters: bool,
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer")
            .field("enters", &self.enters)
            .finish_non_exhaustive()
    }
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    #[inline]
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        with(&self.recorder, |thread| {
            let span = match event.parent() {
                Some(parent) => parent.into_u64(),
                None if event.is_root() => 0,
                None => thread.span(),
            };
            let values = |visitor: &mut dyn tracing_core::field::Visit| event.record(visitor);
            thread.record(event.metadata(), Action::Event, span, None, &values);
        });
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        with(&self.recorder, |thread| {
            let parent = match attributes.parent() {
                Some(parent) => parent.into_u64(),
                None if attributes.is_root() => 0,
                None => thread.span(),
            };
            let site = attributes.metadata();
            thread.record(site, Action::New, id.into_u64(), Some(parent), &|visitor| {
                attributes.record(visitor);
            });
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(site) = context.metadata(id) {
            with(&self.recorder, |thread| {
                thread.record(site, Action::Record, id.into_u64(), None, &|visitor| {
                    values.record(visitor);
                });
            });
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if let Some(site) = context.metadata(id) {
            let cause = Some(follows.into_u64());
            with(&self.recorder, |thread| {
                thread.record(site, Action::Follows, id.into_u64(), cause, &|_| ());
            });
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(site) = context.metadata(id) {
            with(&self.recorder, |thread| {
                thread.enter(id, site);
                if self.enters {
                    thread.record(site, Action::Enter, id.into_u64(), None, &|_| ());
                }
            });
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        with(&self.recorder, |thread| {
            let site = thread.exit(id).or_else(|| context.metadata(id));
            if let Some(site) = site.filter(|_| self.enters) {
                thread.record(site, Action::Exit, id.into_u64(), None, &|_| ());
            }
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(site) = context.metadata(&id) {
            with(&self.recorder, |thread| {
                thread.record(site, Action::Close, id.into_u64(), None, &|_| ());
            });
        }
    }
}
