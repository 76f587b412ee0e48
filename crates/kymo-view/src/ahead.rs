//! What is in sight, before the index is whole: its packets are decoded first.
//!
//! The index goes through recordings from their beginning, which takes seconds if they are large. As long as tracks are
//! estimates, the rows of what a page asks for are counted: at once if that takes no longer than an answer may, else in
//! a thread of its own, while the page shows the estimate. What is counted is exact, and stays so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo::AnyRecording;
use kymo::pipeline::Window;
use kymo::timeline::Summary;
use kymo_model::{Recording, TrackPath};

use crate::scene::Scene;

/// Bytes of packets that are decoded while a page waits.
const MOST_AT_ONCE: u64 = 4 << 20;

/// Bytes of packets that are decoded beside the index. Of more, the index knows nearly as soon.
const MOST_BESIDE: u64 = 256 << 20;

/// Answers that are kept.
const MOST_KEPT: usize = 16;

/// What is asked for: a range, the number of columns, and tracks.
type Asked = (Window, usize, Vec<(usize, TrackPath)>);

/// What was counted ahead of the index.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    counted: Mutex<Counted>,
    is_counting: AtomicBool,
}

#[derive(Debug, Default)]
struct Counted {
    answers: Vec<(Asked, Summary)>,
    /// What was asked for last and is not counted yet.
    next: Option<Asked>,
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scene {
    /// Puts what is counted in the place of what is guessed.
    pub(crate) fn look_ahead(self: &Arc<Self>, asked: Asked, summary: &mut Summary) {
        let mut guessed: Vec<usize> = summary
            .tracks
            .iter()
            .filter(|track| track.is_estimate)
            .map(|track| track.recording)
            .collect();
        guessed.dedup();
        if guessed.is_empty() {
            return;
        }
        let bytes = guessed
            .iter()
            .map(|&at| bytes_in(&self.recordings()[at], asked.0));
        let bytes = bytes.fold(0u64, u64::saturating_add);
        if bytes <= MOST_AT_ONCE {
            let counted = self.count(&asked);
            return put(summary, &counted, &guessed);
        }
        let mut ahead = self.ahead.lock();
        if let Some((_, counted)) = ahead.answers.iter().find(|(known, _)| *known == asked) {
            return put(summary, counted, &guessed);
        }
        if bytes > MOST_BESIDE {
            return;
        }
        ahead.next = Some(asked);
        drop(ahead);
        if !self.ahead.is_counting.swap(true, Ordering::AcqRel) {
            let scene = Arc::clone(self);
            // Without a thread, the index comes later.
            let _ = std::thread::Builder::new().spawn(move || scene.count_ahead());
        }
    }

    fn count(&self, (range, columns, tracks): &Asked) -> Summary {
        self.timeline
            .summary_of_rows(*range, Some(tracks), *columns)
    }

    /// Counts what was asked for last, until nothing is.
    fn count_ahead(&self) {
        loop {
            let Some(asked) = self.ahead.lock().next.take() else {
                break;
            };
            let counted = self.count(&asked);
            let mut ahead = self.ahead.lock();
            if ahead.answers.len() >= MOST_KEPT {
                ahead.answers.remove(0);
            }
            ahead.answers.push((asked, counted));
            drop(ahead);
            // Pages ask again.
            self.state().generation += 1;
        }
        self.ahead.is_counting.store(false, Ordering::Release);
    }
}

/// Puts what was counted of recordings in the place of what is guessed of them.
fn put(summary: &mut Summary, counted: &Summary, guessed: &[usize]) {
    if counted.span != summary.span {
        return;
    }
    for &recording in guessed {
        let own = || {
            counted
                .tracks
                .iter()
                .filter(|track| track.recording == recording)
        };
        let is_known = |track: &&kymo::timeline::TrackSummary| {
            own().any(|known| known.track.path == track.track.path)
        };
        // Before anything is known, each stream is a track: where rows are on others, these are not known to the page.
        let mut tracks = summary
            .tracks
            .iter()
            .filter(|track| track.recording == recording);
        if !tracks.any(|track| is_known(&track)) {
            continue;
        }
        summary.tracks.retain(|track| track.recording != recording);
        summary.tracks.extend(own().cloned());
    }
}

/// The size of the chunks that a range touches.
fn bytes_in(recording: &AnyRecording, range: Window) -> u64 {
    let chunks = (0..recording.streams().len()).flat_map(|stream| recording.chunks(stream));
    let touched = chunks.filter(|chunk| {
        chunk.begin_time.is_none_or(|begin| begin <= range.end)
            && chunk.end_time.is_none_or(|end| end >= range.begin)
    });
    touched.fold(0, |sum, chunk| sum.saturating_add(chunk.bytes))
}

#[cfg(test)]
mod tests {
    use crate::tests::numbers;
    use crate::{Scene, SceneOptions};

    #[test]
    fn what_is_in_view_is_exact_before_the_index_is_whole() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
        let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
        let scene = Scene::new(opened.recordings, SceneOptions::default());
        let (begin, end) = scene.range().unwrap();
        let tracks = numbers(&scene);
        let bins = || scene.bins(None, &tracks, begin, end, 100).1;
        let early = bins();
        assert_eq!(early.len(), 2);
        assert!(early.iter().all(|track| !track.is_estimate));
        scene.wait();
        assert_eq!(early, bins());
    }
}
