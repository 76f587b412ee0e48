//! Gathers two fields of all events that have them in columns, and adds one of them up.
//!
//!     cargo run --package kymo --example columns -- examples/lttng-small

use std::error::Error;

use kymo::timeline::{Columns, Query, Timeline};
use kymo_model::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    let timeline = Timeline::new(opened.recordings);
    let mut query = Query::default();
    query.columns = Columns::named("prev_tid, next_comm")?;
    query.filter.condition = Some("event.name == \"demo:sched\"".to_string());

    let (mut events, mut sum, mut bytes) = (0, 0, 0);
    for batch in timeline.rows(&query)? {
        let tid = batch.column("prev_tid").ok_or("no such column")?;
        let comm = batch.column("next_comm").ok_or("no such column")?;
        for row in 0..batch.len() {
            events += 1;
            if let Value::Sint(tid) = tid.value(row) {
                sum += tid;
            }
            if let Value::Text(comm) = comm.value(row) {
                bytes += comm.len();
            }
        }
    }
    println!("{events} events of demo:sched");
    println!("prev_tid: sum {sum}");
    println!("next_comm: {bytes} bytes");
    Ok(())
}
