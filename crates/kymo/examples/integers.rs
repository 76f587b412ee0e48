//! Prints every integer of every event: a visitor gets the values as they are decoded.
//!
//!     cargo run --package kymo --example integers -- examples/lttng-small

use std::error::Error;

use kymo_model::{Cursor, Event, FieldId, Recording, Schema, Visitor};

/// Prints the integers it visits, with the names of their fields.
struct Integers<'a>(&'a Schema);

impl Visitor for Integers<'_> {
    fn uint(&mut self, field: FieldId, value: u64) {
        println!("    {} = {value}", self.0.path(field));
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        println!("    {} = {value}", self.0.path(field));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    for error in &opened.errors {
        eprintln!("{error}");
    }
    for recording in &opened.recordings {
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                while let Ok(Some(event)) = cursor.next_event() {
                    let class = event.class();
                    println!("{}", class.name.as_deref().unwrap_or("(no name)"));
                    let place = (event.number(), event.class_index());
                    if let Err(fault) = event.visit(&mut Integers(&class.schema)) {
                        eprintln!("{}", recording.report(&chunk, Some(place), fault));
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}
