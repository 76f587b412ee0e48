//! A kernel that schedules threads on two processors, makes system calls, handles interrupts and disk requests, all of
//! it made up from a seed; traced with the layouts of LTTng's kernel events. What it did is kept beside the trace.

pub(crate) mod devices;

use std::collections::BTreeMap;
use std::path::Path;

use kymo_ctf::class::Dialect;
use kymo_ctf::describe::Description;
use kymo_ctf::write::{FileStream, StreamOptions, Token, TraceOptions, TraceWriter};
use kymo_machine::ByteOrder;

const CPUS: usize = 2;
const THREADS: usize = 6;
/// System calls: those with a file descriptor have a count.
pub(crate) const CALLS: [&str; 5] = ["read", "write", "openat", "futex", "getpid"];
/// Threads are numbered from here on.
pub(crate) const FIRST_TID: u64 = 4700;

/// Number, total and longest of some durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) max: u64,
}

impl Sum {
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.total += nanos;
        self.max = self.max.max(nanos);
    }
}

/// What the kernel did, of all that ended.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// By name.
    pub(crate) calls: BTreeMap<String, Sum>,
    /// By thread, from wakeup to running.
    pub(crate) wakeups: BTreeMap<String, Sum>,
    /// By number.
    pub(crate) irqs: BTreeMap<String, Sum>,
    /// By device.
    pub(crate) disk: BTreeMap<String, Sum>,
    /// By thread and state.
    pub(crate) states: BTreeMap<(String, String), Sum>,
    /// By processor and thread, from one switch to the next.
    pub(crate) cpus: BTreeMap<(String, String), Sum>,
    /// Of each thread when it was in which state.
    pub(crate) timeline: BTreeMap<u64, Vec<(u64, u64, &'static str)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Ready,
    Blocked,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    state: State,
    since: u64,
    /// Whether the trace has recorded it.
    is_known: bool,
    woken: Option<u64>,
    call: Option<(usize, u64)>,
}

struct Kernel {
    now: u64,
    random: u64,
    streams: Vec<FileStream>,
    events: BTreeMap<String, kymo_ctf::write::EventId>,
    /// What runs; `None` for the idle thread.
    current: [Option<usize>; CPUS],
    switched: [Option<u64>; CPUS],
    threads: [Thread; THREADS],
    irq: [Option<(u64, u64)>; CPUS],
    disk: Vec<(u64, u64, u64)>,
    truth: Truth,
}

fn description() -> Description {
    let mut all = Description::new(ByteOrder::Little)
        .packet_context(|fields| fields.unsigned("cpu_id", 32))
        .event("sched_switch", |fields| {
            let fields = fields
                .text("prev_comm")
                .signed("prev_tid", 32)
                .signed("prev_prio", 32);
            let fields = fields.signed("prev_state", 64).text("next_comm");
            fields.signed("next_tid", 32).signed("next_prio", 32)
        })
        .event("sched_wakeup", |fields| {
            fields
                .text("comm")
                .signed("tid", 32)
                .signed("prio", 32)
                .signed("target_cpu", 32)
        })
        .event("irq_handler_entry", |fields| {
            fields.signed("irq", 32).text("name")
        })
        .event("irq_handler_exit", |fields| {
            fields.signed("irq", 32).signed("ret", 32)
        })
        .event("block_rq_issue", |fields| {
            let fields = fields
                .unsigned("dev", 32)
                .unsigned("sector", 64)
                .unsigned("nr_sector", 32);
            fields
                .unsigned("bytes", 32)
                .signed("tid", 32)
                .unsigned("rwbs", 32)
                .text("comm")
        })
        .event("block_rq_complete", |fields| {
            let fields = fields.unsigned("dev", 32).unsigned("sector", 64);
            fields
                .unsigned("nr_sector", 32)
                .signed("error", 32)
                .unsigned("rwbs", 32)
        });
    for call in CALLS {
        all = all
            .event(&format!("syscall_entry_{call}"), |fields| match call {
                "read" | "write" => fields.unsigned("fd", 32).unsigned("count", 64),
                "openat" => fields
                    .signed("dfd", 32)
                    .text("filename")
                    .signed("flags", 32),
                "futex" => fields
                    .unsigned("uaddr", 64)
                    .signed("op", 32)
                    .unsigned("val", 32),
                _ => fields,
            })
            .event(&format!("syscall_exit_{call}"), |fields| {
                fields.signed("ret", 64)
            });
    }
    all
}

/// Traces a kernel for a number of steps.
pub(crate) fn trace(path: &Path, seed: u64, steps: usize) -> Truth {
    let class = description()
        .class(Dialect::Ctf18)
        .expect("it can be described");
    let mut writer =
        TraceWriter::create(path, &class, TraceOptions { index: true }).expect("created");
    let mut events = BTreeMap::new();
    for event in &class.streams[0].events {
        let name = event.name.as_deref().expect("a name");
        events.insert(name.to_string(), writer.event(name).expect("it is there"));
    }
    let streams = (0..CPUS).map(|cpu| {
        let options = StreamOptions {
            stream_id: Some(cpu as u64),
            ..StreamOptions::default()
        };
        let mut stream = writer
            .stream(0, &format!("channel0_{cpu}"), options)
            .expect("a stream");
        stream
            .packet_members()
            .set("cpu_id", Token::Uint(cpu as u64));
        stream
    });
    let mut kernel = Kernel {
        now: 1_790_000_000_000_000_000,
        random: seed,
        streams: streams.collect(),
        events,
        current: [None; CPUS],
        switched: [None; CPUS],
        threads: [Thread {
            state: State::Blocked,
            since: 0,
            is_known: false,
            woken: None,
            call: None,
        }; THREADS],
        irq: [None; CPUS],
        disk: Vec::new(),
        truth: Truth::default(),
    };
    for _ in 0..steps {
        kernel.now += 1 + kernel.below(3000);
        kernel.step();
    }
    for stream in kernel.streams {
        stream.finish().expect("finished");
    }
    kernel.truth
}

/// splitmix64.
fn below(random: &mut u64, most: u64) -> u64 {
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *random;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % most
}

fn tid(thread: Option<usize>) -> i64 {
    thread.map_or(0, |thread| FIRST_TID as i64 + thread as i64)
}

impl Kernel {
    fn below(&mut self, most: u64) -> u64 {
        below(&mut self.random, most)
    }

    fn write(
        &mut self,
        cpu: usize,
        name: &str,
        fields: impl FnMut(&mut kymo_ctf::write::Fields<'_, '_>),
    ) {
        let event = self.events[name];
        self.streams[cpu]
            .event(event, self.now, fields)
            .expect("written");
    }

    /// Brings a thread to a state, as the trace records it.
    fn enter(&mut self, thread: usize, state: State) {
        let now = self.now;
        let entered = &mut self.threads[thread];
        if entered.is_known {
            let tid = FIRST_TID + thread as u64;
            let key = (tid.to_string(), entered.state.name().to_string());
            self.truth
                .states
                .entry(key)
                .or_default()
                .add(now - entered.since);
            let timeline = self.truth.timeline.entry(tid).or_default();
            timeline.push((entered.since, now, entered.state.name()));
        }
        (entered.state, entered.since, entered.is_known) = (state, now, true);
    }

    fn switch(&mut self, cpu: usize, next: Option<usize>, prev_state: i64) {
        let now = self.now;
        let comm = |thread: Option<usize>| match thread {
            Some(thread) => format!("worker{thread}"),
            None => format!("swapper/{cpu}"),
        };
        let previous = self.current[cpu];
        self.write(cpu, "sched_switch", |fields| {
            fields
                .text(&comm(previous))
                .sint(tid(previous))
                .sint(20)
                .sint(prev_state);
            fields.text(&comm(next)).sint(tid(next)).sint(20);
        });
        if let Some(thread) = previous {
            self.enter(
                thread,
                if prev_state == 0 {
                    State::Ready
                } else {
                    State::Blocked
                },
            );
        }
        if let Some(thread) = next {
            self.enter(thread, State::Running);
            if let Some(woken) = self.threads[thread].woken.take() {
                let key = tid(next).to_string();
                self.truth.wakeups.entry(key).or_default().add(now - woken);
            }
        }
        if let Some(since) = self.switched[cpu].replace(now) {
            let key = (cpu.to_string(), tid(previous).to_string());
            self.truth.cpus.entry(key).or_default().add(now - since);
        }
        self.current[cpu] = next;
    }

    fn any(&mut self, state: State) -> Option<usize> {
        let all: Vec<usize> = (0..THREADS)
            .filter(|&at| self.threads[at].state == state)
            .collect();
        match all.len() {
            0 => None,
            len => Some(all[self.below(len as u64) as usize]),
        }
    }

    fn step(&mut self) {
        let cpu = self.below(CPUS as u64) as usize;
        match (self.below(10), self.current[cpu]) {
            (0, _) => self.interrupt(cpu),
            (1, _) => self.request(cpu),
            (2 | 3, _) => {
                // A running thread wakes another one.
                if let Some(thread) = self.any(State::Blocked) {
                    self.write(cpu, "sched_wakeup", |fields| {
                        fields
                            .text(&format!("worker{thread}"))
                            .sint(tid(Some(thread)))
                            .sint(20)
                            .sint(0);
                    });
                    self.enter(thread, State::Ready);
                    self.threads[thread].woken = Some(self.now);
                }
            }
            (_, None) => {
                if let Some(thread) = self.any(State::Ready) {
                    self.switch(cpu, Some(thread), 0);
                }
            }
            (4, Some(_)) => {
                // Another one's turn.
                if let Some(next) = self.any(State::Ready) {
                    self.switch(cpu, Some(next), 0);
                }
            }
            (5 | 6, Some(thread)) if self.threads[thread].call.is_some() => {
                let next = self.any(State::Ready);
                let state = 1 + self.below(2) as i64;
                self.switch(cpu, next, state);
            }
            (_, Some(thread)) => self.call(cpu, thread),
        }
    }

    /// Begins a system call, or ends the one that the thread is in.
    fn call(&mut self, cpu: usize, thread: usize) {
        let now = self.now;
        if let Some((call, begin)) = self.threads[thread].call.take() {
            let name = CALLS[call];
            self.write(cpu, &format!("syscall_exit_{name}"), |fields| {
                fields.sint(-2);
            });
            self.truth
                .calls
                .entry(name.to_string())
                .or_default()
                .add(now - begin);
            return;
        }
        let call = self.below(CALLS.len() as u64) as usize;
        let name = CALLS[call];
        self.write(cpu, &format!("syscall_entry_{name}"), |fields| {
            match name {
                "read" | "write" => fields.uint(3).uint(4096),
                "openat" => fields.sint(-100).text("/etc/passwd").sint(0),
                "futex" => fields.uint(0x7f00_dead_beef).sint(0).uint(1),
                _ => fields,
            };
        });
        self.threads[thread].call = Some((call, now));
    }

    fn interrupt(&mut self, cpu: usize) {
        match self.irq[cpu].take() {
            None => {
                let irq = 20 + self.below(3);
                self.write(cpu, "irq_handler_entry", |fields| {
                    fields.sint(irq as i64).text("nvme");
                });
                self.irq[cpu] = Some((irq, self.now));
            }
            Some((irq, begin)) => {
                self.write(cpu, "irq_handler_exit", |fields| {
                    fields.sint(irq as i64).sint(1);
                });
                let times = self.truth.irqs.entry(irq.to_string()).or_default();
                times.add(self.now - begin);
            }
        }
    }

    fn request(&mut self, cpu: usize) {
        if self.disk.len() > 3 {
            let at = self.below(self.disk.len() as u64) as usize;
            let (dev, sector, begin) = self.disk.swap_remove(at);
            self.write(cpu, "block_rq_complete", |fields| {
                fields.uint(dev).uint(sector).uint(8).sint(0).uint(0);
            });
            self.truth
                .disk
                .entry(dev.to_string())
                .or_default()
                .add(self.now - begin);
            return;
        }
        let (dev, sector) = (0x0080_0010 + self.below(2), self.now % 1_000_003);
        self.write(cpu, "block_rq_issue", |fields| {
            fields
                .uint(dev)
                .uint(sector)
                .uint(8)
                .uint(4096)
                .sint(1)
                .uint(0)
                .text("x");
        });
        self.disk.push((dev, sector, self.now));
    }
}
