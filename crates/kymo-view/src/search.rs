//! Searches: the conditions that they ask for, and where their rows are.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use kymo::filter::{Filter, FilterError};
use kymo_model::{Kind, Recording};
use serde_json::{Value, json};

use crate::api::{Api, MOST_COLUMNS, Result, number, range, time, tracks};
use crate::scene::window;

/// A search is at most so long, in bytes.
const MOST_TEXT: usize = 1 << 16;

/// How long an answer may wait for the first rows of a search, and how often it looks.
const MOST_WAIT: Duration = Duration::from_millis(500);
const WAIT_STEP: Duration = Duration::from_millis(2);

/// Fields in which a text is looked for.
const MOST_TEXT_FIELDS: usize = 128;

impl Api {
    /// Starts a search.
    pub(crate) fn search(&self, request: &Value) -> Result<Value> {
        let condition = self.condition(request)?;
        let view = match request.get("begin") {
            Some(_) => Some(range(request)?),
            None => None,
        };
        let job = self.jobs.search(&self.scene, condition.clone(), view);
        Ok(json!({"job": job.number, "condition": condition}))
    }

    /// The condition that a search asks for.
    pub(crate) fn condition(&self, request: &Value) -> Result<String> {
        let text = request["text"].as_str().ok_or("`text` is not a string")?;
        if text.len() > MOST_TEXT {
            return Err(format!("`text` is longer than {MOST_TEXT} bytes"));
        }
        let condition = match request["mode"].as_str() {
            Some("where") => text.to_string(),
            Some("name") => format!("event.name ~ {}", quoted(text)),
            _ => self.text_condition(text, request["case"].as_bool().unwrap_or(false)),
        };
        self.checked(condition)
    }

    /// The condition that a request gives as it is, if it does.
    pub(crate) fn given_condition(&self, request: &Value) -> Result<Option<String>> {
        match request["condition"].as_str() {
            Some(text) if text.len() > MOST_TEXT => {
                Err(format!("`condition` is longer than {MOST_TEXT} bytes"))
            }
            Some(text) => self.checked(text.to_string()).map(Some),
            None => Ok(None),
        }
    }

    /// A condition that is right for the recordings.
    fn checked(&self, condition: String) -> Result<String> {
        let windows = vec![window(i64::MIN, i64::MAX); self.scene.recordings().len()];
        let query = self.scene.query(Some(&condition));
        let filter = Filter::new(&query.filter, &windows, self.scene.recordings());
        let shown = |error: FilterError| error.render("search", false);
        filter.map(|_| condition).map_err(shown)
    }

    /// The condition that a text is in the name of an event or in one of its fields: with upper and lower case as
    /// they are if the text has upper case letters, or if `case` says so.
    fn text_condition(&self, text: &str, case: bool) -> String {
        let mut fields: Vec<String> = Vec::new();
        let test = match case || text.chars().any(char::is_uppercase) {
            true => format!("contains {}", quoted(text)),
            false => format!("~ {}", quoted(&any_case(text))),
        };
        let classes = self
            .scene
            .recordings()
            .iter()
            .flat_map(|recording| recording.event_classes());
        for class in classes {
            for field in class.schema.fields() {
                let is_text = matches!(field.kind, Kind::Text);
                let Some(name) = field.name.as_deref().filter(|_| is_text) else {
                    continue;
                };
                if name.contains('`') || fields.len() >= MOST_TEXT_FIELDS {
                    continue;
                }
                let test = format!("`{name}` {test}");
                if !fields.contains(&test) {
                    fields.push(test);
                }
            }
        }
        let mut condition = format!("event.name {test}");
        for field in fields {
            condition.push_str(" or ");
            condition.push_str(&field);
        }
        condition
    }

    /// How far a search is, and where its rows are.
    pub(crate) fn found(&self, request: &Value) -> Result<Value> {
        let job = self.job(request)?;
        let (begin, end) = range(request)?;
        let columns = number(request, "width")?.clamp(1, MOST_COLUMNS);
        let matches = job.matches.as_ref().ok_or("this is not a search")?;
        let tracks = chosen(request)?;
        let wait = Duration::from_millis(request["wait"].as_u64().unwrap_or(0)).min(MOST_WAIT);
        let begun = Instant::now();
        while matches.lock().count == 0 && !job.is_done() && begun.elapsed() < wait {
            std::thread::sleep(WAIT_STEP);
        }
        let mut found = matches.lock();
        let length = (end.abs_diff(begin) / columns).saturating_add(1);
        let tracks = tracks.unwrap_or_else(|| found.tracks().collect());
        let mut density = vec![0u64; columns as usize];
        for track in tracks {
            found.add_density(track, (begin, end), length, &mut density);
        }
        Ok(json!({
            "done": job.is_done(),
            "count": found.count,
            "cut": found.is_cut,
            "density": density,
            "values": *job.values.lock().unwrap_or_else(PoisonError::into_inner),
        }))
    }

    /// The next row that a search has found, or the one before.
    pub(crate) fn next(&self, request: &Value) -> Result<Value> {
        let job = self.job(request)?;
        let matches = job.matches.as_ref().ok_or("this is not a search")?;
        let is_back = request["back"].as_bool().unwrap_or(false);
        let tracks = chosen(request)?;
        let from = time(request, "time")?;
        let next = matches.lock().next(from, is_back, tracks.as_deref());
        Ok(match next {
            Some((track, row)) => json!({"track": track, "time": row.time.to_string()}),
            None => json!({"track": null, "done": job.is_done()}),
        })
    }
}

/// The tracks that a request names, if it does: else it means all.
pub(crate) fn chosen(request: &Value) -> Result<Option<Vec<u32>>> {
    match request.get("tracks") {
        Some(_) => tracks(request).map(Some),
        None => Ok(None),
    }
}

/// The pattern of texts that contain a text, in upper or lower case.
fn any_case(text: &str) -> String {
    let mut pattern = String::from("*");
    for char in text.chars() {
        // Letters that are several in the other case stay as they are.
        let mut upper = char.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(upper), None) if upper != char => pattern.extend(['[', char, upper, ']']),
            _ => {
                if matches!(char, '*' | '?' | '[' | '\\') {
                    pattern.push('\\');
                }
                pattern.push(char);
            }
        }
    }
    pattern.push('*');
    pattern
}

/// A text as conditions write it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        if matches!(char, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo::filter::Glob;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_case_is_what_lower_case_contains(text in "[a-zA-Z*?\\[\\]\\\\ß!^-]{0,12}", part in "[a-z*?\\[\\]\\\\ß!^-]{0,4}") {
            let found = Glob::new(&any_case(&part)).matches(text.as_bytes());
            prop_assert_eq!(found, text.to_lowercase().contains(&part), "{}", any_case(&part));
        }
    }
}
