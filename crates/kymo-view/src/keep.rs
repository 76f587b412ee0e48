//! What people keep of a view: snapshots, notes, colours and pins, in a file beside the recording or in the cache.
//!
//! The server knows nothing of what is in it but that it is a JSON object.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kymo_io::{Replace, create_directories, replace};
use kymo_model::Recording;
use serde_json::{Value, json};

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// Keeps one JSON object.
#[derive(Debug, Default)]
pub struct Keep {
    /// Without one, it is forgotten when the program ends.
    path: Option<PathBuf>,
    state: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Grows with each change, so that a page learns of those of others.
    version: u64,
    value: Value,
    is_read: bool,
}

impl Keep {
    /// Keeps it in a file.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            state: Mutex::default(),
        }
    }

    /// The file in a cache for some recordings.
    pub fn path(cache: &Path, recordings: &[impl Recording]) -> PathBuf {
        let mut all: Vec<String> = recordings.iter().map(fingerprint).collect();
        all.sort();
        let name = format!("view-{:016x}.json", hash(all.iter().map(String::as_str)));
        cache.with_file_name("view").join(name)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept, after what the request wants to be saved was saved.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or another page has saved something since.
    pub(crate) fn answer(&self, request: &Value) -> Result<Value, String> {
        let mut kept = self.lock();
        if !kept.is_read {
            kept.value = self.read()?;
            kept.is_read = true;
        }
        if let Some(value) = request.get("save") {
            if !value.is_object() {
                return Err("`save` is not an object".into());
            }
            if request["version"].as_u64() != Some(kept.version) {
                return Ok(json!({"version": kept.version, "kept": kept.value, "is_old": true}));
            }
            self.write(value)?;
            kept.value = value.clone();
            kept.version += 1;
        }
        let path = self.path.as_ref().map(|path| path.display().to_string());
        Ok(json!({"version": kept.version, "kept": kept.value, "path": path}))
    }

    fn read(&self) -> Result<Value, String> {
        let Some(path) = &self.path else {
            return Ok(Value::Null);
        };
        let name = path.display();
        let size = match std::fs::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
            Err(error) => return Err(format!("cannot read `{name}`: {}", kymo_io::reason(&error))),
        };
        if size > MOST_BYTES {
            return Err(format!("`{name}` is larger than {MOST_BYTES} bytes"));
        }
        let bytes = std::fs::read(path)
            .map_err(|error| format!("cannot read `{name}`: {}", kymo_io::reason(&error)))?;
        match serde_json::from_slice(&bytes) {
            Ok(value @ Value::Object(_)) => Ok(value),
            // It is another program's file: it is not overwritten.
            _ => Err(format!("`{name}` does not hold notes of kymo view")),
        }
    }

    fn write(&self, value: &Value) -> Result<(), String> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let failed = |error: std::io::Error| {
            format!(
                "cannot write `{}`: {}",
                path.display(),
                kymo_io::reason(&error)
            )
        };
        if let Some(directory) = path.parent() {
            create_directories(directory, false).map_err(failed)?;
        }
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.push('\n');
        replace(path, Replace::NEW, |file| file.write_all(text.as_bytes())).map_err(failed)
    }
}

/// A number that identifies a recording, wherever it lies and however it has grown: by its format, its
/// identifier or name, its event classes, and when it begins.
pub(crate) fn fingerprint(recording: &impl Recording) -> String {
    let file = recording
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let streams = 0..recording.streams().len();
    let begin = streams
        .filter_map(|stream| recording.chunks(stream).next()?.begin_time)
        .min();
    let begin = begin.map_or_else(String::new, |time| time.as_nanos().to_string());
    let own = [
        recording.format().name,
        recording.uid().unwrap_or_default(),
        recording.name().unwrap_or_default(),
        &file,
        &begin,
    ];
    let classes = recording
        .event_classes()
        .iter()
        .map(|class| class.name.as_deref().unwrap_or_default());
    format!("{:016x}", hash(own.into_iter().chain(classes)))
}

/// FNV-1a of texts, the ends of which count, so that no two lists of texts are one.
fn hash<'t>(texts: impl Iterator<Item = &'t str>) -> u64 {
    let bytes = texts.flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/notes.json");
        let keep = Keep::new(Some(path.clone()));
        assert_eq!(keep.answer(&json!({})).unwrap()["kept"], Value::Null);
        let saved = keep
            .answer(&json!({"save": {"notes": [1]}, "version": 0}))
            .unwrap();
        assert_eq!(saved["version"], 1);
        // Another page has not seen that.
        let old = keep.answer(&json!({"save": {}, "version": 0})).unwrap();
        assert_eq!(
            (&old["is_old"], &old["kept"]["notes"]),
            (&json!(true), &json!([1]))
        );
        assert!(keep.answer(&json!({"save": [], "version": 1})).is_err());
        let other = Keep::new(Some(path));
        assert_eq!(
            other.answer(&json!({})).unwrap()["kept"]["notes"],
            json!([1])
        );
    }

    #[test]
    fn files_of_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.json");
        std::fs::write(&path, "a letter").unwrap();
        let keep = Keep::new(Some(path.clone()));
        assert!(keep.answer(&json!({"save": {}, "version": 0})).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    }
}
