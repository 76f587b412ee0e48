//! Counters of each listener.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use crate::metrics::{Labels, Page};
use crate::sync::lock;

/// What counters of a listener are found by.
pub(crate) trait ListenerKey: Clone + Ord {
    /// The labels that name it in metrics.
    fn labels(&self) -> Labels;
}

impl ListenerKey for String {
    fn labels(&self) -> Labels {
        vec![("listener", self.clone())]
    }
}

impl ListenerKey for SocketAddr {
    fn labels(&self) -> Labels {
        vec![("listener", self.to_string())]
    }
}

/// Counters of each listener. Those of listeners that were removed stay, so that no sum decreases.
#[derive(Debug)]
pub(crate) struct PerListener<K, C>(Mutex<BTreeMap<K, Arc<C>>>);

impl<K, C> Default for PerListener<K, C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: ListenerKey, C: Default> PerListener<K, C> {
    /// Those of a listener.
    pub(crate) fn of(&self, listener: K) -> Arc<C> {
        Arc::clone(lock(&self.0).entry(listener).or_default())
    }

    /// The sum of what `value` reads.
    pub(crate) fn sum(&self, value: impl Fn(&C) -> u64) -> u64 {
        lock(&self.0).values().map(|it| value(it)).sum()
    }

    /// The labels and the counters of each.
    pub(crate) fn all(&self) -> Vec<(Labels, Arc<C>)> {
        let all = lock(&self.0);
        let each = all.iter();
        each.map(|(listener, it)| (listener.labels(), Arc::clone(it)))
            .collect()
    }

    /// Adds one of the counters to a page, with a value for each listener.
    pub(crate) fn counter(
        &self,
        page: &mut Page,
        name: &str,
        help: &str,
        value: fn(&C) -> &AtomicU64,
    ) {
        page.labelled(name, help, &self.values(value));
    }

    /// The same of what may also decrease.
    pub(crate) fn gauge(
        &self,
        page: &mut Page,
        name: &str,
        help: &str,
        value: fn(&C) -> &AtomicU64,
    ) {
        page.labelled_gauge(name, help, &self.values(value));
    }

    fn values(&self, value: fn(&C) -> &AtomicU64) -> Vec<(Labels, u64)> {
        let all = self.all().into_iter();
        all.map(|(labels, it)| (labels, value(&it).load(Relaxed)))
            .collect()
    }
}
