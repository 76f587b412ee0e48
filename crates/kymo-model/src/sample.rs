//! Sampled series: what RRD databases and metrics hold.

use std::sync::Arc;

use kymo_time::{Clock, Timestamp};

/// How the numbers of a series are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// A level at a moment.
    Gauge,
    /// A count that only grows, and goes round.
    Counter,
    /// A count that may also shrink; its rate is meant.
    Derive,
    /// What was counted since the sample before.
    Absolute,
}

/// A sequence of samples of one thing.
#[derive(Clone, Debug)]
pub struct Series {
    /// What is measured, such as `host/cpu-0/cpu-idle/value`.
    pub name: Arc<str>,
    /// How its numbers are to be read.
    pub kind: SampleKind,
    /// The clock of its ticks.
    pub clock: Arc<Clock>,
    /// Ticks between two samples, where they are regular.
    pub interval: Option<u64>,
}

/// One value of a series. An unknown value is a NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When, on the common line.
    pub time: Timestamp,
    /// When, in ticks of the series' clock.
    pub ticks: u64,
    /// The value.
    pub value: f64,
}
