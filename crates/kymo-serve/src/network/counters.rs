//! What was received at each address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use kymo_collectd::network::Problem;

use crate::metrics::Page;
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

/// The counters of all addresses. Those where nothing more is received stay, so that no sum shrinks.
#[derive(Debug, Default)]
pub(super) struct ListenerCounters(Mutex<BTreeMap<SocketAddr, Arc<Counters>>>);

impl ListenerCounters {
    /// Those of an address.
    pub(super) fn of(&self, address: SocketAddr) -> Arc<Counters> {
        Arc::clone(lock(&self.0).entry(address).or_default())
    }

    /// The sum of what `count` reads.
    pub(super) fn sum(&self, count: impl Fn(&Counters) -> u64) -> u64 {
        lock(&self.0).values().map(|it| count(it)).sum()
    }

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
        let all = lock(&self.0);
        let listener = |address: &SocketAddr| ("listener", address.to_string());
        for (name, help, counter) in fields {
            let values: Vec<_> = all
                .iter()
                .map(|(address, it)| (vec![listener(address)], counter(it).load(Relaxed)))
                .collect();
            page.labelled(&format!("datagrams_{name}"), help, &values);
        }
        let mut faults = Vec::new();
        for (address, counters) in all.iter() {
            for (fault, count) in lock(&counters.faults).iter() {
                let labels = vec![listener(address), ("fault", (*fault).to_owned())];
                faults.push((labels, *count));
            }
        }
        page.labelled("datagrams_faults_total", "Errors in datagrams.", &faults);
    }
}
