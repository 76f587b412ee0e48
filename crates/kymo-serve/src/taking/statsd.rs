//! StatsD: sums of all listeners, and the thread that flushes them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_metrics::statsd::{self, Aggregator};

use super::session::{Session, now};
use super::{Protocol, Shared};
use crate::sync::{lock, wait_until};

/// What all listeners add to, and what has it flushed.
#[derive(Debug)]
pub(super) struct Statsd {
    aggregator: Mutex<Aggregator>,
    ends: Mutex<bool>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Statsd {
    pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Arc<Self>> {
        let (options, _) = shared.options();
        let statsd = Arc::new(Self {
            aggregator: Mutex::new(Aggregator::new(options.statsd.aggregator.clone())),
            ends: Mutex::new(false),
            changed: Condvar::new(),
            thread: Mutex::default(),
        });
        let (flushing, shared) = (Arc::clone(&statsd), Arc::clone(shared));
        let thread = std::thread::Builder::new().name("statsd flush".into());
        *lock(&statsd.thread) = Some(thread.spawn(move || flushing.run(&shared))?);
        Ok(statsd)
    }

    /// Adds the lines of a datagram or a connection.
    pub(super) fn add(&self, text: &[u8], session: &mut Session) {
        use kymo_metrics::Sink as _;
        session.begin(text.len());
        let mut aggregator = lock(&self.aggregator);
        statsd::parse(
            text,
            &mut |key, value| aggregator.add(key, value),
            &mut |fault| session.fault(fault),
        );
    }

    /// How many names are known, and how many values were not taken.
    pub(super) fn counts(&self) -> (usize, u64) {
        let aggregator = lock(&self.aggregator);
        (aggregator.len(), aggregator.dropped)
    }

    /// Sums up by other options from the next flush on.
    pub(super) fn change(&self, options: &super::Options) {
        lock(&self.aggregator).set_options(options.statsd.aggregator.clone());
    }

    fn run(&self, shared: &Arc<Shared>) {
        // What is summed up has no one sender: all of it together is held to the bounds of one.
        let sums = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let mut session = Session::new(shared, Protocol::Statsd, "flush", sums);
        let mut latest = Instant::now();
        loop {
            let (options, _) = shared.options();
            let interval = options.statsd.interval;
            let has_ended = {
                let ends = lock(&self.ends);
                let end = Instant::now() + until_next(interval);
                match *ends {
                    true => true,
                    false => wait_until(&self.changed, ends, end).is_some_and(|ends| *ends),
                }
            };
            let elapsed = latest.elapsed();
            // A condition may seem to be true when nothing has happened.
            if !has_ended && elapsed < interval.mul_f64(0.5) {
                continue;
            }
            latest = Instant::now();
            session.begin(0);
            let is_usual = elapsed.abs_diff(interval) < interval / 10;
            let seconds = match is_usual {
                true => interval.as_secs_f64(),
                false => elapsed.as_secs_f64().max(0.001),
            };
            // A thread wakes up a little late, and values belong to the step that has ended.
            let (now, nanos) = (
                now(),
                i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX),
            );
            let late = now.rem_euclid(nanos.max(1));
            let time = if late < nanos / 10 { now - late } else { now };
            lock(&self.aggregator).flush(time, seconds, &mut session);
            session.note();
            if has_ended {
                return;
            }
        }
    }

    /// Flushes what has come, and ends.
    pub(super) fn stop(&self) {
        *lock(&self.ends) = true;
        self.changed.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Flushes are at multiples of the interval, so that they are where the steps of databases end.
fn until_next(interval: Duration) -> Duration {
    let interval = interval.as_nanos().max(1);
    let past = (now().max(0) as u128) % interval;
    Duration::from_nanos(u64::try_from(interval - past).unwrap_or(u64::MAX))
}

impl Shared {
    /// Adds what StatsD has to a page.
    pub(super) fn statsd_metrics(page: &mut crate::metrics::Page, statsd: &Statsd) {
        let (names, dropped) = statsd.counts();
        page.gauge("statsd_names", "Names of StatsD that are summed up.", names);
        page.counter(
            "statsd_dropped_total",
            "Values of StatsD that were not taken, as there were too many names or values.",
            dropped,
        );
    }
}
