//! Single values as names.

use kymo_model::{Recording, Value};
use kymo_text::Line;

/// A value as text, for names; empty of what is none.
pub fn text_of(value: Value<'_>) -> String {
    match value {
        Value::Uint(value) | Value::Bits(value) => value.to_string(),
        Value::Sint(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Float(value) => {
            let mut line = Line::new();
            crate::show::json::float(value, 64, false, &mut line);
            String::from_utf8_lossy(line.as_bytes()).into_owned()
        }
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Missing | Value::Array(_) | Value::Compound => String::new(),
    }
}

/// The name that the metadata of a recording have for one of its own tracks; empty if there is none.
pub(crate) fn known_track_name<R: Recording>(recording: &R, number: u64) -> String {
    let listed = || recording.tracks().get(usize::try_from(number).ok()?);
    recording
        .track_name(number)
        .or_else(|| listed().map(|track| track.name.to_string()))
        .unwrap_or_default()
}
