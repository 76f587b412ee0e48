//! Losses and damage.

use std::ops::ControlFlow;

use kymo::timeline::{Batch, NoticeKind, Places, Query};
use kymo_model::{Recording, RowPlace};
use kymo_time::Timestamp;

use crate::scene::Scene;

/// Losses and damage that are kept at most.
pub(crate) const MOST_NOTICES: usize = 10_000;

/// Something that is not a row: a loss, or damage.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) recording: usize,
    pub(crate) stream: usize,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) text: String,
    pub(crate) is_damage: bool,
}

impl Scene {
    /// Losses that the recordings' chunks report.
    pub(crate) fn losses(&self) -> Vec<Notice> {
        let mut losses = Vec::new();
        for (number, recording) in self.recordings().iter().enumerate() {
            for stream in 0..recording.streams().len() {
                let mut before = None;
                for chunk in recording.chunks(stream) {
                    let clock = recording.streams()[stream].clock.clone();
                    let time = |ticks: Option<u64>| {
                        let clock = clock.as_ref()?;
                        clock.timestamp(ticks?).map(Timestamp::as_nanos)
                    };
                    let lost = [
                        (chunk.lost_events, "events"),
                        (chunk.lost_chunks, "packets"),
                    ];
                    for (lost, what) in lost {
                        let Some(lost) = lost else { continue };
                        let begin = time(lost.begin).or(before);
                        let end = time(lost.end).or(chunk.begin_time.map(Timestamp::as_nanos));
                        let (Some(begin), Some(end)) = (begin.or(end), end.or(begin)) else {
                            continue;
                        };
                        let text = match lost.count {
                            Some(count) => format!("{count} {what} lost"),
                            None => format!("some {what} lost"),
                        };
                        losses.push(Notice {
                            recording: number,
                            stream,
                            begin: begin.min(end),
                            end: end.max(begin),
                            text,
                            is_damage: false,
                        });
                        if losses.len() >= MOST_NOTICES {
                            return losses;
                        }
                    }
                    before = chunk.end_time.map(Timestamp::as_nanos).or(before);
                }
            }
        }
        losses
    }

    /// Reads all recordings once more, for damage.
    pub(crate) fn check(&self) {
        let mut query = Query::default();
        query.threads = 1;
        // Rows of databases are numbers, each of which is right: only what is read when opening can be damaged.
        let mut from = Places::at_end();
        let mut has_others = false;
        for (number, recording) in self.recordings().iter().enumerate() {
            if recording.format().name != "rrd" {
                has_others = true;
                (0..recording.streams().len())
                    .for_each(|stream| from.set(number, stream, RowPlace::default()));
            }
        }
        query.from = Some(from);
        let mut last = i64::MIN;
        // The query has no name that could be wrong.
        let look = |batch: Batch| {
            let time = |row: usize| batch.head(row).time.map(Timestamp::as_nanos);
            let mut state = self.state();
            for notice in batch.notices() {
                let NoticeKind::Fault(fault) = &notice.kind else {
                    continue;
                };
                if state.faults.len() >= MOST_NOTICES {
                    return ControlFlow::Break(());
                }
                let recording = notice.recording as usize;
                let text = fault.to_string();
                let before = (0..notice.before).rev().find_map(time).unwrap_or(last);
                let after = (notice.before..batch.len())
                    .find_map(time)
                    .unwrap_or(before);
                state.faults.push((recording, text.clone()));
                if before > i64::MIN && after >= before {
                    state.notices.push(Notice {
                        recording,
                        stream: notice.stream as usize,
                        begin: before,
                        end: after,
                        text,
                        is_damage: true,
                    });
                }
            }
            last = (0..batch.len()).rev().find_map(time).unwrap_or(last);
            ControlFlow::Continue(())
        };
        // Of thousands of databases, none is opened for nothing.
        if has_others {
            let _ = self.timeline.for_each_batch(&query, look);
        }
        let mut state = self.state();
        state.is_checked = true;
        state.generation += 1;
    }
}
