//! What was received at each address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use kymo_collectd::network::Problem;

use crate::metrics::Page;
use crate::per_listener::PerListener;
use crate::sync::lock;

/// What was received at an address.
#[derive(Debug, Default)]
pub struct Counters {
    /// Datagrams.
    pub datagrams: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Datagrams for which there was no room.
    pub dropped: AtomicU64,
    /// Datagrams for which the kernel had no room.
    pub kernel_dropped: AtomicU64,
    /// Lists that had come before.
    pub repeated: AtomicU64,
    /// Errors in datagrams, by their kinds.
    faults: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Counts an error.
    pub(super) fn fault(&self, problem: &Problem) {
        *lock(&self.faults).entry(problem.as_str()).or_default() += 1;
    }

    /// Errors of all kinds.
    pub fn faults(&self) -> u64 {
        lock(&self.faults).values().sum()
    }
}

impl PerListener<SocketAddr, Counters> {
    /// Adds them to a page.
    pub(super) fn metrics(&self, page: &mut Page) {
        type Field = fn(&Counters) -> &AtomicU64;
        let fields: [(&str, &str, Field); 5] = [
            ("total", "Datagrams received.", |it| &it.datagrams),
            ("bytes_total", "Bytes of datagrams received.", |it| {
                &it.bytes
            }),
            (
                "dropped_total",
                "Datagrams lost: no room in the queues.",
                |it| &it.dropped,
            ),
            (
                "kernel_dropped_total",
                "Datagrams lost: no room in the kernel.",
                |it| &it.kernel_dropped,
            ),
            (
                "repeated_lists_total",
                "Lists that had come before.",
                |it| &it.repeated,
            ),
        ];
        for (name, help, value) in fields {
            self.counter(page, &format!("datagrams_{name}"), help, value);
        }
        let mut faults = Vec::new();
        for (labels, counters) in self.all() {
            for (fault, count) in lock(&counters.faults).iter() {
                let mut labels = labels.clone();
                labels.push(("fault", (*fault).to_owned()));
                faults.push((labels, *count));
            }
        }
        page.labelled("datagrams_faults_total", "Errors in datagrams.", &faults);
    }
}
