//! Counts the rows of recordings and the bytes of their columns.
//!
//!     cargo run --package kymo --example rows -- examples/lttng-small
//!     cargo run --release --package kymo --example rows -- THREADS [FIELDS|all] PATH

use std::error::Error;

use kymo::timeline::{Columns, Query, Shape, Timeline};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.pop().ok_or("which recording?")?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    let timeline = Timeline::new(opened.recordings);
    let mut query = Query::default();
    if let Some(threads) = arguments.first() {
        query.threads = threads.parse()?;
    }
    match arguments.get(1).map(String::as_str) {
        None => {}
        Some("all") => {
            query.columns = Columns::All;
            query.shape = Shape::ByClass;
        }
        Some(names) => query.columns = Columns::named(names)?,
    }
    let (mut rows, mut bytes, mut notices) = (0, 0, 0);
    for batch in timeline.rows(&query)? {
        rows += batch.len();
        notices += batch.notices().len();
        bytes += batch
            .columns()
            .iter()
            .map(|column| column.byte_size())
            .sum::<usize>();
    }
    println!("{rows} rows, {bytes} bytes of columns, {notices} notices");
    Ok(())
}
