//! What happens beside the scheduler: software interrupts, packets, timers, and mutexes of a program; made up from a
//! seed, with the layouts of LTTng's events. What took how long is kept beside the trace.

use std::collections::BTreeMap;
use std::path::Path;

use kymo_ctf::class::Dialect;
use kymo_ctf::describe::Description;
use kymo_ctf::write::{StreamOptions, Token, TraceOptions, TraceWriter};
use kymo_machine::ByteOrder;

use super::{Sum, below};

const CPUS: u64 = 2;

/// Durations by what the views show them by.
#[derive(Debug, Default)]
pub(crate) struct DeviceTruth {
    /// By number, from being raised to entry.
    pub(crate) raised: BTreeMap<String, Sum>,
    /// By number, from entry to exit.
    pub(crate) softirqs: BTreeMap<String, Sum>,
    /// By interface.
    pub(crate) net: BTreeMap<String, Sum>,
    /// By function.
    pub(crate) timers: BTreeMap<String, Sum>,
    /// By address.
    pub(crate) mutexes: BTreeMap<String, Sum>,
}

/// What has begun and not ended: by what an end has in common with it, when, and what it is shown by.
type Begun = BTreeMap<(u64, u64), (u64, String)>;

fn description() -> Description {
    let mut all = Description::new(ByteOrder::Little)
        .packet_context(|fields| fields.unsigned("cpu_id", 32))
        .common_context(|fields| fields.signed("vtid", 32));
    for name in ["softirq_raise", "softirq_entry", "softirq_exit"] {
        all = all.event(name, |fields| fields.unsigned("vec", 32));
    }
    all = all
        .event("net_dev_queue", |fields| {
            let fields = fields.unsigned("skbaddr", 64).unsigned("len", 32);
            fields.text("name")
        })
        .event("net_dev_xmit", |fields| {
            let fields = fields.unsigned("skbaddr", 64).signed("rc", 32);
            fields.unsigned("len", 32).text("name")
        })
        .event("timer_hrtimer_expire_entry", |fields| {
            let fields = fields.unsigned("hrtimer", 64).signed("now", 64);
            fields.unsigned("function", 64)
        })
        .event("timer_hrtimer_expire_exit", |fields| {
            fields.unsigned("hrtimer", 64)
        });
    for end in ["req", "acq"] {
        let name = format!("lttng_ust_pthread:pthread_mutex_lock_{end}");
        all = all.event(&name, |fields| fields.unsigned("mutex", 64));
    }
    all
}

/// Something ends: it counts from where the last one like it began.
fn end(begun: &mut Begun, key: (u64, u64), now: u64, sums: &mut BTreeMap<String, Sum>) {
    if let Some((begin, name)) = begun.remove(&key) {
        sums.entry(name).or_default().add(now - begin);
    }
}

/// Traces a number of events, of which any may be lost.
pub(crate) fn trace(path: &Path, seed: u64, steps: usize) -> DeviceTruth {
    let class = description()
        .class(Dialect::Ctf18)
        .expect("it can be described");
    let mut writer =
        TraceWriter::create(path, &class, TraceOptions { index: true }).expect("created");
    let streams = (0..CPUS).map(|cpu| {
        let options = StreamOptions {
            stream_id: Some(cpu),
            ..StreamOptions::default()
        };
        let mut stream = writer
            .stream(0, &format!("channel0_{cpu}"), options)
            .expect("a stream");
        stream.packet_members().set("cpu_id", Token::Uint(cpu));
        stream
    });
    let mut streams: Vec<_> = streams.collect();
    let mut truth = DeviceTruth::default();
    let [
        mut raised,
        mut entered,
        mut queued,
        mut expired,
        mut locking,
    ] = [const { Begun::new() }; 5];
    let (mut now, mut random) = (1_790_000_000_000_000_000, seed);
    for _ in 0..steps {
        now += 1 + below(&mut random, 3000);
        let cpu = below(&mut random, CPUS);
        let thread = 100 + below(&mut random, 3);
        let which = below(&mut random, 4);
        let name = match below(&mut random, 9) {
            0 => {
                raised.insert((cpu, which), (now, which.to_string()));
                "softirq_raise"
            }
            1 => {
                end(&mut raised, (cpu, which), now, &mut truth.raised);
                entered.insert((cpu, which), (now, which.to_string()));
                "softirq_entry"
            }
            2 => {
                end(&mut entered, (cpu, which), now, &mut truth.softirqs);
                "softirq_exit"
            }
            3 => {
                queued.insert((which, 0), (now, format!("eth{}", which % 2)));
                "net_dev_queue"
            }
            4 => {
                end(&mut queued, (which, 0), now, &mut truth.net);
                "net_dev_xmit"
            }
            5 => {
                expired.insert((cpu, which), (now, (0xc0de + which % 2).to_string()));
                "timer_hrtimer_expire_entry"
            }
            6 => {
                end(&mut expired, (cpu, which), now, &mut truth.timers);
                "timer_hrtimer_expire_exit"
            }
            7 => {
                locking.insert((thread, which), (now, which.to_string()));
                "lttng_ust_pthread:pthread_mutex_lock_req"
            }
            _ => {
                end(&mut locking, (thread, which), now, &mut truth.mutexes);
                "lttng_ust_pthread:pthread_mutex_lock_acq"
            }
        };
        let event = writer.event(name).expect("it is there");
        let written = streams[cpu as usize].event(event, now, |fields| {
            let fields = fields.sint(thread as i64).uint(which);
            match name {
                "net_dev_queue" => fields.uint(60).text(&format!("eth{}", which % 2)),
                "net_dev_xmit" => fields.sint(0).uint(60).text("eth?"),
                "timer_hrtimer_expire_entry" => fields.sint(0).uint(0xc0de + which % 2),
                _ => fields,
            };
        });
        written.expect("written");
    }
    for stream in streams {
        stream.finish().expect("finished");
    }
    truth
}
