//! What has come at each listener, and what was not taken of it.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use kymo_metrics::Problem;

use super::Protocol;
use crate::metrics::{Labels, Page};
use crate::per_listener::{ListenerKey, PerListener};

/// Why a sample is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It is not after the newest one of its series.
    Past,
    /// It has the time of the newest one: it has come before.
    Repeated,
    /// It is too far ahead of the clock.
    Future,
    /// It is before 1980: no database begins so early.
    Ancient,
    /// There is no room.
    Full,
    /// Too much of its sender waits for databases.
    Waiting,
    /// The database takes integers only.
    NotInteger,
    /// A rule drops its series.
    ByRule,
    /// There are as many series as may be known.
    TooMany,
    /// Its sender has reached its limit of series.
    TooManyOfSender,
    /// Its database cannot be opened or created.
    Failed,
    /// Its database was forgotten, and is to be opened again.
    Forgotten,
}

impl Rejected {
    const ALL: [Self; 12] = [
        Self::Past,
        Self::Repeated,
        Self::Future,
        Self::Ancient,
        Self::Full,
        Self::Waiting,
        Self::NotInteger,
        Self::ByRule,
        Self::TooMany,
        Self::TooManyOfSender,
        Self::Failed,
        Self::Forgotten,
    ];

    /// A short name, for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Past => "past",
            Self::Repeated => "repeated",
            Self::Future => "future",
            Self::Ancient => "ancient",
            Self::Full => "full",
            Self::Waiting => "waiting",
            Self::NotInteger => "not_integer",
            Self::ByRule => "rule",
            Self::TooMany => "series_limit",
            Self::TooManyOfSender => "sender_limit",
            Self::Failed => "database",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether the sender may try again later, and whether it has lost nothing.
    pub(super) const fn is_temporary(self) -> bool {
        matches!(self, Self::Full | Self::Waiting | Self::Forgotten)
    }

    /// Whether the sender has lost nothing that it should hear of.
    pub(super) const fn is_wanted(self) -> bool {
        matches!(self, Self::Repeated | Self::ByRule)
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Past => {
                "its time is not after the newest sample of the series: send samples in the order of their times"
            }
            Self::Repeated => "the series has a sample of this time",
            Self::Future => {
                "its time is further ahead of the clock than `write.future-limit`: check the unit of times and both clocks"
            }
            Self::Ancient => {
                "its time is before 1980: check the unit of times (`precision` of InfluxDB) and the sender's clock"
            }
            Self::Full => "there is no room for more updates (`write.most-pending-mib`)",
            Self::Waiting => {
                "too much of its sender waits until its databases are created; try again later"
            }
            Self::NotInteger => "its database takes integers only",
            Self::ByRule => "a rule drops its series",
            Self::TooMany => "there are as many series as `series.most-series` allows",
            Self::TooManyOfSender => {
                "the sender has brought as many series as `series.most-series-per-sender` allows"
            }
            Self::Failed => "its database cannot be opened or created",
            Self::Forgotten => "its database was forgotten",
        })
    }
}

/// Databases.
#[derive(Debug, Default)]
pub(super) struct Created {
    pub(super) count: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// The names of faults.
const FAULTS: [&str; 6] = ["syntax", "name", "number", "time", "unsupported", "damaged"];

/// What has come at a listener.
#[derive(Debug, Default)]
pub struct Counters {
    /// Samples that were taken.
    pub samples: AtomicU64,
    /// Bytes that have come.
    pub bytes: AtomicU64,
    /// Requests, or datagrams.
    pub requests: AtomicU64,
    /// Datagrams for which the kernel had no room.
    pub kernel_dropped: AtomicU64,
    rejected: [AtomicU64; Rejected::ALL.len()],
    faults: [AtomicU64; FAULTS.len()],
}

impl Counters {
    /// Counts a sample that was not taken.
    pub(super) fn reject(&self, rejected: Rejected) {
        self.rejected[rejected as usize].fetch_add(1, Relaxed);
    }

    /// Counts a fault.
    pub(super) fn fault(&self, problem: Problem) {
        // A body may have millions of them.
        let place = match problem {
            Problem::Syntax(_) => 0,
            Problem::Name(_) => 1,
            Problem::Number => 2,
            Problem::Time => 3,
            Problem::Unsupported(_) => 4,
            Problem::Damaged(_) => 5,
        };
        self.faults[place].fetch_add(1, Relaxed);
    }
}

impl ListenerKey for (Protocol, String) {
    fn labels(&self) -> Labels {
        let (protocol, listener) = self;
        vec![
            ("protocol", protocol.name().to_owned()),
            ("listener", listener.clone()),
        ]
    }
}

impl PerListener<(Protocol, String), Counters> {
    /// Adds them to a page.
    pub(super) fn metrics(&self, page: &mut Page) {
        type Field = fn(&Counters) -> &AtomicU64;
        let fields: [(&str, &str, Field); 4] = [
            ("samples", "Samples taken.", |it| &it.samples),
            ("bytes", "Bytes received.", |it| &it.bytes),
            ("requests", "Requests or datagrams received.", |it| {
                &it.requests
            }),
            (
                "kernel_dropped",
                "Datagrams lost: no room in the kernel.",
                |it| &it.kernel_dropped,
            ),
        ];
        for (name, help, value) in fields {
            self.counter(page, &format!("taken_{name}_total"), help, value);
        }
        let (mut rejected, mut faults) = (Vec::new(), Vec::new());
        for (labels, counters) in self.all() {
            let with = |name: &'static str, value: &str| {
                let mut labels = labels.clone();
                labels.push((name, value.to_owned()));
                labels
            };
            for reason in Rejected::ALL {
                let count = counters.rejected[reason as usize].load(Relaxed);
                rejected.push((with("reason", reason.name()), count));
            }
            for (name, count) in FAULTS.iter().zip(&counters.faults) {
                faults.push((with("fault", name), count.load(Relaxed)));
            }
        }
        rejected.retain(|(_, count)| *count > 0);
        faults.retain(|(_, count)| *count > 0);
        let help = "Samples not taken, by reason.";
        page.labelled("taken_rejected_total", help, &rejected);
        let help = "Errors in what was received, by kind.";
        page.labelled("taken_faults_total", help, &faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counted_by_their_names() {
        let problems = [
            Problem::Syntax(""),
            Problem::Name(kymo_metrics::KeyError::Empty),
            Problem::Number,
            Problem::Time,
            Problem::Unsupported(""),
            Problem::Damaged(""),
        ];
        for (problem, name) in problems.into_iter().zip(FAULTS) {
            assert_eq!(problem.name(), name);
            let counters = Counters::default();
            counters.fault(problem);
            let counts = counters.faults.iter().map(|it| it.load(Relaxed));
            let found = counts.zip(FAULTS).find(|(count, _)| *count == 1);
            assert_eq!(found, Some((1, name)));
        }
    }
}
