//! Prints the events that meet a condition, merged by time, decoded on all cores: what
//! `kymo print --where` does.
//!
//!     cargo run --package kymo --example find -- examples/lttng-small 'prev_tid > 1490'

use std::error::Error;
use std::io::{self, Write};
use std::ops::ControlFlow;

use kymo::filter::{Filter, Query};
use kymo::pipeline::{self, Output};
use kymo::show::pretty::{Options, Pretty};
use kymo_model::FaultReport;

/// Text to standard output, everything else to standard error.
struct Terminal;

impl Output for Terminal {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        io::stdout().write_all(text)
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        io::stderr().write_all(lines)
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        eprintln!("{fault}");
        ControlFlow::Continue(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let condition = std::env::args().nth(2).unwrap_or("prev_tid > 1490".into());
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    let query = Query {
        events: Vec::new(),
        condition: Some(condition),
    };
    let filter = Filter::new(&query, &[], &opened.recordings)
        .map_err(|error| error.render("condition", false))?;
    let summary = pipeline::run(
        &opened.recordings,
        &filter,
        &pipeline::Options::default(),
        &mut Pretty::new(Options::default()),
        &mut Terminal,
    )?;
    eprintln!("{} events", summary.events);
    Ok(())
}
