//! A program of a few threads that records what it does.
//!
//!     cargo run --package kymo-tracing --example program -- DIRECTORY [mapped|small-files|ctf2]

use std::error::Error;

use kymo_tracing::{Dialect, Options};
use tracing::{debug, error, info, info_span, warn};
use tracing_subscriber::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().ok_or("which directory?")?;
    let (layer, guard) = match args.next().as_deref() {
        Some("mapped") => Options::new().mapped(directory)?,
        // Several of each stream.
        Some("small-files") => Options::new()
            .packet_size(4096)
            .file_size(16_384)
            .mapped(directory)?,
        Some("ctf2") => Options::new().dialect(Dialect::Ctf2).files(directory)?,
        _ => Options::new().files(directory)?,
    };
    tracing_subscriber::registry().with(layer).init();

    info!(version = env!("CARGO_PKG_VERSION"), "begun");
    let workers = (0..3u32).map(|worker| {
        let work = move || (0..100).for_each(|request| answer(worker, request));
        std::thread::Builder::new()
            .name(format!("worker {worker}"))
            .spawn(work)
    });
    for worker in workers.collect::<Result<Vec<_>, _>>()? {
        worker.join().map_err(|_| "a worker has panicked")?;
    }
    info!("ended");
    guard.finish()?;
    Ok(())
}

/// Answers a request, more or less.
fn answer(worker: u32, request: i64) {
    let span = info_span!(
        "request",
        worker,
        number = request,
        status = tracing::field::Empty
    );
    let _entered = span.enter();
    let found = (request % 3 > 0).then_some(request as f64 / 3.0);
    debug!(
        found,
        http.method = "GET",
        is_cached = request < 50,
        "looked for it"
    );
    let status = if found.is_some() { 200 } else { 404 };
    if request % 10 == 9 {
        warn!(kind = ?std::io::ErrorKind::TimedOut, text = "said \"wait\"\n", "slow");
    }
    if request == 42 {
        let error = "forty-two".parse::<u8>().unwrap_err();
        let error = &error as &(dyn Error + 'static);
        error!(error, large = u128::MAX, "cannot answer");
    }
    span.record("status", status);
}
