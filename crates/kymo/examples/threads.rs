//! Counts how often each thread began to run, the most frequent one first.
//!
//!     cargo run --package kymo --example threads -- examples/kernel-small

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

use kymo::timeline::{Columns, Query, Timeline};
use kymo_model::Value;

fn main() -> ExitCode {
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn count() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    for error in &opened.errors {
        eprintln!("{error}");
    }
    if opened.recordings.is_empty() {
        return Err("nothing could be read".into());
    }

    let mut query = Query::default();
    query.filter.condition = Some(r#"next_comm != """#.to_string());
    query.columns = Columns::named("next_comm")?;

    let mut counts = BTreeMap::new();
    for batch in Timeline::new(opened.recordings).rows(&query)? {
        let names = batch.column("next_comm").ok_or("no such column")?;
        for row in 0..batch.len() {
            if let Value::Text(name) = names.value(row) {
                let name = String::from_utf8_lossy(name).into_owned();
                *counts.entry(name).or_insert(0) += 1;
            }
        }
    }
    let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (name, count) in counts {
        println!("{count:>6}  {name}");
    }
    Ok(())
}
