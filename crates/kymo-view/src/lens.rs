//! A lens: which rows are drawn while the page hides event classes, and by which values they are coloured.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use kymo::show::text_of;
use kymo::timeline::{Columns, Query, QueryError};
use kymo_time::Timestamp;

use crate::jobs::{Job, Jobs};
use crate::matches::{Match, Matches};
use crate::scene::Scene;
use crate::tracks::Classifier;

/// Values that have a colour of their own.
const MOST_VALUES: usize = 62;

/// The colour of the other values, and of rows that have none.
const OTHERS: u32 = 62;
const MISSING: u32 = 63;

/// Starts to find the rows of which a condition holds. With `field`, their class is the number of its value.
pub(crate) fn start(
    jobs: &Jobs,
    scene: &Arc<Scene>,
    condition: Option<String>,
    field: Option<String>,
) -> Arc<Job> {
    let scene = Arc::clone(scene);
    jobs.start(Some(Matches::default()), None, move |job| {
        let Some(found) = &job.matches else { return };
        let query = scene.query(condition.as_deref());
        // The condition was checked before.
        let _ = match &field {
            Some(field) => find(&scene, query, job, found, field),
            None => scene.find(query, found, None, &job.stop),
        };
        found.lock().is_done = true;
    })
}

/// Finds rows with the numbers of a field's values as their classes.
fn find(
    scene: &Scene,
    mut query: Query,
    job: &Job,
    found: &Matches,
    field: &str,
) -> Result<(), QueryError> {
    query.columns = Columns::All;
    query.batch_rows = 1 << 12;
    let mut classifier = Classifier::new(scene, &mut query)?;
    let mut numbers: HashMap<String, u32> = HashMap::new();
    // From the beginning, so that values have the same colours in every view.
    scene.for_each_part(query, None, &job.stop, |batch| {
        let mut columns = batch.columns().iter().zip(batch.schema().iter());
        let column = columns.find(|(_, column)| &*column.name == field);
        let mut rows = Vec::new();
        for row in 0..batch.len() {
            let head = batch.head(row);
            let Some(time) = head.time.map(Timestamp::as_nanos) else {
                continue;
            };
            if !scene.is_wanted(head.id.recording as usize, time) {
                continue;
            }
            let class = match column {
                None => MISSING,
                Some((column, _)) => {
                    let text = text_of(column.value(row));
                    match numbers.get(&text) {
                        Some(&number) => number,
                        None if text.is_empty() => MISSING,
                        None if numbers.len() >= MOST_VALUES => OTHERS,
                        None => {
                            let number = numbers.len() as u32;
                            numbers.insert(text.clone(), number);
                            let mut values =
                                job.values.lock().unwrap_or_else(PoisonError::into_inner);
                            values.push(text);
                            number
                        }
                    }
                }
            };
            for part in classifier.parts(&batch, row) {
                let value = part.value.unwrap_or(f64::NAN);
                rows.push((part.track, Match { time, value, class }));
            }
        }
        match found.lock().add(rows.into_iter()) && !job.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
}
