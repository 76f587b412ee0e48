//! Counts the events of a trace by their classes.

use std::collections::BTreeMap;
use std::path::Path;

use kymo_model::{Cursor, Event, Nothing, Recording as _};
use kymo_perfetto::Recording;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("a path is needed")?;
    let path = Path::new(&path);
    let bytes = kymo_io::Bytes::open(path, kymo_io::Access::Sequential)?;
    let recording = Recording::from_bytes(path, &bytes)?;
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    for chunk in recording.chunks(0) {
        let mut cursor = recording.cursor(&chunk);
        while let Ok(Some(event)) = cursor.next_event() {
            let _ = event.visit(&mut Nothing);
            *counts.entry(event.class_index()).or_default() += 1;
        }
    }
    for (class, count) in counts {
        let name = recording.event_classes()[class].name.as_deref();
        println!("{count:>12} {}", name.unwrap_or("-"));
    }
    for fault in recording.faults() {
        eprintln!("error: {fault}");
    }
    for note in recording.notes() {
        eprintln!("note: {note}");
    }
    Ok(())
}
