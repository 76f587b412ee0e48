//! Questions in SQL, which a program answers that is installed apart.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;

use crate::jobs::{Job, Jobs};

/// A statement is at most so long, in bytes.
const MOST_TEXT: usize = 1 << 16;

/// The rows of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlRows {
    /// Each as an object of JSON, in the order of the rows.
    pub lines: Vec<String>,
    /// What is missing and what went wrong; for people.
    pub notes: Vec<String>,
}

type Answer = dyn Fn(&str, &AtomicBool) -> Result<SqlRows, String> + Send + Sync;

/// Answers statements about the recordings that are shown.
pub struct Sql(Box<Answer>);

impl Sql {
    /// With what answers a statement, and ends soon after the flag is set. A problem is a text for people.
    pub fn new(
        answer: impl Fn(&str, &AtomicBool) -> Result<SqlRows, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(answer))
    }
}

impl Default for Sql {
    fn default() -> Self {
        Self::new(|_, _| Err("this server does not answer SQL".into()))
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sql")
    }
}

/// Starts to answer a statement.
///
/// # Errors
///
/// It is empty, or too long.
pub(crate) fn start(jobs: &Jobs, sql: &Arc<Sql>, text: &str) -> Result<Arc<Job>, String> {
    if text.trim().is_empty() {
        return Err("the statement is empty".into());
    }
    if text.len() > MOST_TEXT {
        return Err(format!("the statement is longer than {MOST_TEXT} bytes"));
    }
    let (sql, text) = (Arc::clone(sql), text.to_string());
    Ok(jobs.start(None, None, move |job| {
        let rows = (sql.0)(&text, &job.stop);
        // Only this sets it.
        let _ = job
            .answer
            .set(rows.map(|rows| json!({"lines": rows.lines, "notes": rows.notes})));
    }))
}
