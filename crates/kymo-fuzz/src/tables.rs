//! Parquet files as recordings.

use std::path::Path;

use kymo::AnyRecording;
use kymo::open::{Hint, Options};
use kymo::pipeline::Window;
use kymo_arrow::{FORMAT, parquet_rows};
use kymo_io::{Access, Bytes, Tree};
use kymo_model::{Cursor, Event, Recording};
use kymo_time::Timestamp;

use crate::Balance;

/// Files of a few bytes may have any number of rows, which take their time.
const MOST_ROWS: u64 = 20_000;

/// A Parquet file, or an archive of a directory of them: what can be opened has no other events in a window of time if
/// the rest is left out. Fewer it may have, since statistics may be wrong.
pub fn parquet(data: &[u8]) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let is_file = data.starts_with(b"PAR1");
    let path = place.path().join(match is_file {
        true => "x.parquet",
        false => "x.tar",
    });
    std::fs::write(&path, data).expect("a temporary file");
    let Ok((tree, _)) = Tree::at(&path) else {
        return;
    };
    if rows(&tree, &path, 4) > MOST_ROWS {
        return;
    }
    let open = |hint: Hint| {
        let options = Options {
            hint,
            ..Options::default()
        };
        let opened = match is_file {
            true => vec![(FORMAT.open)(&path, Bytes::from(data.to_vec()), &options)],
            false => match FORMAT.open_directory {
                Some(open) => open(&tree, &path, &options).unwrap_or_default(),
                None => Vec::new(),
            },
        };
        let (mut times, mut is_whole) = (Vec::new(), true);
        for result in opened {
            match result {
                Ok(recording) => walk(&recording, &mut times),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    is_whole = false;
                }
            }
        }
        times.sort_unstable();
        (times, is_whole)
    };
    let (mut all, is_whole) = open(Hint::default());
    let Some(&middle) = all.get(all.len() / 2) else {
        return;
    };
    let window = Window {
        begin: Timestamp::MIN,
        end: Timestamp::from_nanos(middle),
    };
    let (mut some, _) = open(Hint {
        window,
        events: Vec::new(),
    });
    all.retain(|&time| time <= middle);
    some.retain(|&time| time <= middle);
    // What is damaged may be in the part that is left out.
    assert!(!is_whole || some.len() <= all.len());
}

/// Rows of all files below a path.
fn rows(tree: &Tree, path: &Path, levels: usize) -> u64 {
    if let Ok(bytes) = tree.open(path, Access::Sequential) {
        return parquet_rows(bytes).unwrap_or(0);
    }
    let entries = tree.list(path).unwrap_or_default();
    let below = entries.iter().filter(|_| levels > 0);
    below
        .map(|entry| rows(tree, &entry.path, levels - 1))
        .fold(0, u64::saturating_add)
}

/// The times of all events, which are decoded.
fn walk(recording: &AnyRecording, times: &mut Vec<i64>) {
    for stream in 0..recording.streams().len() {
        for chunk in recording.chunks(stream) {
            let mut cursor = recording.cursor(&chunk);
            while let Ok(Some(event)) = cursor.next_event() {
                let mut balance = Balance::default();
                if event.visit(&mut balance).is_err() {
                    break;
                }
                let clock = recording.streams()[stream].clock.as_ref();
                let time = clock.and_then(|clock| clock.timestamp(event.ticks()?));
                times.extend(time.map(Timestamp::as_nanos));
            }
        }
    }
}
