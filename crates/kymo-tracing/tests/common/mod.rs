//! What a recording looks like to those who read it.
#![allow(dead_code, reason = "no test needs all of it")]

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use kymo::pipeline::{self, Everything, Output};
use kymo::show::WallOptions;
use kymo::show::json::Json;
use kymo_model::FaultReport;
use serde_json::Value;
use tracing::Dispatch;
use tracing_subscriber::layer::SubscriberExt;

/// Everything that reading a trace reports.
#[derive(Default)]
pub(crate) struct Read {
    text: Vec<u8>,
    pub(crate) events: Vec<Value>,
    pub(crate) warnings: String,
    pub(crate) faults: Vec<String>,
}

impl Output for Read {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.text.extend_from_slice(text);
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.warnings += &String::from_utf8_lossy(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.faults.push(fault.to_string());
        ControlFlow::Continue(())
    }
}

/// Reads a trace, whatever is wrong with it.
#[track_caller]
pub(crate) fn read_anyhow(trace: &Path) -> Read {
    let opened = kymo::open::open(&[trace.to_path_buf()], &kymo::open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    let mut read = Read::default();
    pipeline::run(
        &opened.recordings,
        &Everything,
        &pipeline::Options::default(),
        &mut Json::new(WallOptions::default()),
        &mut read,
    )
    .unwrap();
    let lines = std::str::from_utf8(&read.text).unwrap().lines();
    read.events = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    read
}

/// Reads a trace with which nothing is wrong and in which nothing was lost.
#[track_caller]
pub(crate) fn read(trace: &Path) -> Vec<Value> {
    let read = read_anyhow(trace);
    assert_eq!((read.faults, read.warnings), (vec![], String::new()));
    read.events
}

/// A program's subscriber with one layer.
pub(crate) fn dispatch(layer: kymo_tracing::Layer) -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(layer))
}

/// Runs a function while a layer records what it emits through `tracing`.
pub(crate) fn record<T>(layer: kymo_tracing::Layer, act: impl FnOnce() -> T) -> T {
    tracing::dispatcher::with_default(&dispatch(layer), act)
}

/// The number of lost events that readers report.
pub(crate) fn lost(read: &Read) -> u64 {
    let reported = read.warnings.split("discarded ").skip(1);
    let count = |rest: &str| {
        let (count, what) = rest.split_once(' ')?;
        what.starts_with("event")
            .then(|| count.parse::<u64>().ok())?
    };
    reported.filter_map(count).sum()
}

/// The payloads of events.
pub(crate) fn payloads(events: &[Value]) -> Vec<String> {
    let payload = |event: &Value| event["payload"].to_string();
    events.iter().map(payload).collect()
}

/// The names of events.
pub(crate) fn names(events: &[Value]) -> Vec<&str> {
    let name = |event| -> &str { Value::as_str(event).unwrap_or_default() };
    events.iter().map(|event| name(&event["event"])).collect()
}

/// The value of a payload's field in each of some events, as a number.
pub(crate) fn numbers(events: &[Value], field: &str) -> Vec<u64> {
    let number = |event: &Value| event["payload"][field].as_u64();
    events.iter().filter_map(number).collect()
}
