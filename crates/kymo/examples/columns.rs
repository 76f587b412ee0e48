//! Gathers two fields of one event class in columns, and adds one of them up.
//!
//!     cargo run --package kymo --example columns -- examples/lttng-small

use std::error::Error;

use kymo_model::{ColumnData, Columns, Cursor, Event, Pick, Recording, Scope};

const CLASS: &str = "demo:sched";
const FIELDS: [&str; 2] = ["prev_tid", "next_comm"];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    let recording = opened.recordings.first().ok_or("no recording")?;
    let classes = recording.event_classes();
    let class = classes
        .iter()
        .position(|class| class.name.as_deref() == Some(CLASS))
        .ok_or("no such event class")?;

    let schema = &classes[class].schema;
    let payload = schema.root(Scope::Payload).ok_or("no payload")?;
    let fields = FIELDS.map(|name| schema.child(payload, name).map(Pick::from));
    let mut columns = Columns::new(schema, fields.into_iter().flatten())?;
    for stream in 0..recording.streams().len() {
        for chunk in recording.chunks(stream) {
            let mut cursor = recording.cursor(&chunk);
            while let Ok(Some(event)) = cursor.next_event() {
                if event.class_index() == class {
                    columns.push(&event).map_err(|fault| fault.code.as_str())?;
                }
            }
        }
    }

    println!("{} events of {CLASS}", columns.len());
    for (name, column) in FIELDS.iter().zip(columns.columns()) {
        match &column.data {
            ColumnData::Sint(rows) => println!("{name}: sum {}", rows.iter().sum::<i64>()),
            ColumnData::Text(rows) => println!("{name}: {} bytes", rows.bytes().len()),
            other => println!("{name}: {other:?}"),
        }
    }
    Ok(())
}
