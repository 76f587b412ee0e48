//! Rows and summaries compared with what a cursor returns.

mod backwards;
mod blocks;
mod made_up;
mod rows;
mod summaries;
mod text;

use std::path::PathBuf;

use kymo_model::{Cursor, Event, Recording};
use kymo_time::Timestamp;

use super::*;

fn open(name: &str) -> Timeline {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    let opened = crate::open::open(&[path], &crate::open::Options::default());
    assert!(opened.errors.is_empty());
    Timeline::new(opened.recordings)
}

/// Time, class and place of every event, merged by time.
fn events(timeline: &Timeline) -> Vec<(Option<i64>, u32)> {
    let mut events = Vec::new();
    for recording in timeline.recordings() {
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                while let Ok(Some(event)) = cursor.next_event() {
                    let time = event.timestamp().map(Timestamp::as_nanos);
                    events.push((time, event.class_index() as u32));
                }
            }
        }
    }
    events.sort();
    events
}

fn rows(timeline: &Timeline, query: &Query) -> Vec<Batch> {
    let batches: Vec<_> = timeline.rows(query).unwrap().collect();
    let mut same = Vec::new();
    timeline
        .for_each_batch(query, |batch| {
            same.push(batch);
            ControlFlow::Continue(())
        })
        .unwrap();
    let reported = |batches: &[Batch]| -> Vec<String> {
        batches.iter().map(|batch| format!("{batch:?}")).collect()
    };
    assert_eq!(reported(&batches), reported(&same));
    for batch in &batches {
        assert_eq!(batch.columns().len(), batch.schema().len());
        assert!(
            batch
                .columns()
                .iter()
                .all(|column| column.len() == batch.len())
        );
    }
    batches
}

fn heads(timeline: &Timeline, query: &Query) -> Vec<(RowHead, Vec<String>)> {
    let mut heads = Vec::new();
    timeline
        .for_each_batch(query, |batch| {
            for row in 0..batch.len() {
                let values = batch.columns().iter();
                let values = values.map(|column| format!("{:?}", column.value(row)));
                heads.push((batch.head(row), values.collect()));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    heads
}
