//! Counts the events of each class, without decoding their fields.
//!
//!     cargo run --package kymo --example count -- examples/lttng-small

use std::collections::BTreeMap;
use std::error::Error;

use kymo_model::{Cursor, Event, Recording};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    for error in &opened.errors {
        eprintln!("{error}");
    }

    let mut counts = BTreeMap::new();
    for recording in &opened.recordings {
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                loop {
                    match cursor.next_event() {
                        Ok(Some(event)) => {
                            let name = event.class().name.clone();
                            *counts.entry(name).or_insert(0u64) += 1;
                        }
                        Ok(None) => break,
                        Err(fault) => {
                            eprintln!("{}", recording.report(&chunk, None, fault));
                            break;
                        }
                    }
                }
            }
        }
    }
    for (name, count) in counts {
        println!("{count:>8} {}", name.as_deref().unwrap_or("(no name)"));
    }
    Ok(())
}
