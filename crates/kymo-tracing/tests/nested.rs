//! What `tracing` itself guards against only where a subscriber is not the program's: this test is a program of
//! its own, with a subscriber for all of it.

mod common;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use common::{lost, read_anyhow};
use kymo_tracing::Options;
use tracing_subscriber::layer::SubscriberExt;

/// How often one was formatted.
static FORMATTED: AtomicU64 = AtomicU64::new(0);

struct Talkative;

impl fmt::Debug for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FORMATTED.fetch_add(1, Relaxed);
        tracing::info!("formatting");
        let _span = tracing::info_span!("formatting").entered();
        f.write_str("formatted")
    }
}

#[test]
fn what_formatting_reports_is_lost_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (files, mapped) = (folder.path().join("files"), folder.path().join("mapped"));
    let options = Options::new().packet_size(4096).file_size(1 << 14);
    let (file_layer, file_guard) = options.files(&files).unwrap();
    let (mapped_layer, mapped_guard) = options.mapped(&mapped).unwrap();
    let registry = tracing_subscriber::registry();
    let subscriber = registry.with(file_layer).with(mapped_layer);
    tracing::subscriber::set_global_default(subscriber).unwrap();

    tracing::info!(value = ?Talkative);
    for _ in 0..400 {
        tracing::info!(value = ?Talkative, shown = %"x");
    }
    file_guard.finish().unwrap();
    mapped_guard.finish().unwrap();
    let mut reported = 0;
    for trace in [files, mapped] {
        let read = read_anyhow(&trace);
        assert_eq!(read.faults, Vec::<String>::new());
        let value =
            |event: &serde_json::Value| event["payload"]["value"].as_str().map(str::to_owned);
        let formatted = read.events.iter().filter_map(value);
        assert_eq!(formatted.filter(|value| value == "formatted").count(), 401);
        reported += lost(&read);
    }
    // Each recording formats each value, where it does not fit at first twice, and loses five events of its own each
    // time; at its very first one, the other recording loses them, too.
    assert_eq!(reported, 5 * (FORMATTED.load(Relaxed) + 2));
}
