//! Events of the kernel: bundles of one CPU each.

use foldhash::HashMap;
use kymo_model::EntryKind;

use super::Reader;
use crate::builder::{Row, Stop};
use crate::classes::Kind;
use crate::message::{compact, ftrace};
use crate::proto::{Field, fields, first, varints};
use crate::row::Value;
use crate::tracks::{Id, Place, name_of};

/// CPUs of which it is known what they run.
const MOST_CPUS: usize = 1 << 16;

/// How the fields of an event are called: their numbers are the positions, from 1 on. Those that
/// begin with a `$` are text.
const SWITCH: &[&str] = &[
    "$prev_comm",
    "prev_pid",
    "prev_prio",
    "prev_state",
    "$next_comm",
    "next_pid",
    "next_prio",
];
const WAKE: &[&str] = &["$comm", "pid", "prio", "success", "target_cpu"];

/// What a CPU runs: the thread, its priority, its name.
pub(super) type Running = HashMap<u32, (i64, i64, Vec<u8>)>;

/// A bundle, without its events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bundle {
    pub(super) cpu: u32,
    /// Added to times to get to the usual clock.
    shift: i64,
}

impl Reader<'_> {
    /// Adds the events of a bundle.
    pub(super) fn bundle(&mut self, message: &[u8]) -> Result<(), Stop> {
        let bundle = self.begin_bundle(message);
        for field in fields(message) {
            match field.number {
                ftrace::EVENT => self.kernel_event(bundle, field.wire.bytes())?,
                ftrace::COMPACT_SCHED => self.compact(bundle, field.wire.bytes())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What a bundle says of all its events.
    pub(super) fn begin_bundle(&mut self, message: &[u8]) -> Bundle {
        let mut bundle = Bundle::default();
        let (mut clock, mut ftrace_time, mut boot_time) = (0, None, None);
        for field in fields(message) {
            let wire = field.wire;
            match field.number {
                ftrace::CPU => bundle.cpu = wire.uint() as u32,
                ftrace::CLOCK => clock = wire.uint(),
                ftrace::FTRACE_TIMESTAMP => ftrace_time = Some(wire.int()),
                ftrace::BOOT_TIMESTAMP => boot_time = Some(wire.int()),
                ftrace::LOST_EVENTS if wire.uint() != 0 => {
                    self.builder
                        .count("bundles of ftrace before which events were lost");
                }
                _ => {}
            }
        }
        if clock != 0 {
            match (ftrace_time, boot_time) {
                (Some(ftrace), Some(boot)) => bundle.shift = boot.saturating_sub(ftrace),
                _ => self
                    .builder
                    .count("bundles of ftrace whose clock is unknown"),
            }
        }
        bundle
    }

    pub(super) fn kernel_time(&mut self, bundle: Bundle, time: u64) -> Option<i64> {
        let time = i64::try_from(time).ok()?.checked_add(bundle.shift)?;
        self.on_trace(BOOTTIME, 0, time)
    }

    pub(super) fn kernel_event(&mut self, bundle: Bundle, message: &[u8]) -> Result<(), Stop> {
        let (mut time, mut thread, mut event) = (0, 0, None);
        for field in fields(message) {
            match field.number {
                ftrace::TIMESTAMP => time = field.wire.uint(),
                ftrace::PID => thread = field.wire.int(),
                ftrace::COMMON_FLAGS => {}
                _ => event = Some(field),
            }
        }
        let Some(Field { number, wire }) = event else {
            return Ok(());
        };
        let (name, names, kind): (_, &[&str], _) = match number {
            ftrace::PRINT => return self.print(bundle, time, thread, wire.bytes()),
            ftrace::SCHED_SWITCH => ("sched_switch", SWITCH, Kind::Switch),
            ftrace::SCHED_WAKING => ("sched_waking", WAKE, Kind::Kernel),
            ftrace::SCHED_WAKEUP => ("sched_wakeup", WAKE, Kind::Kernel),
            ftrace::SCHED_WAKEUP_NEW => ("sched_wakeup_new", WAKE, Kind::Kernel),
            other => {
                self.unknown("events of ftrace that are not read", other);
                return Ok(());
            }
        };
        self.args.clear();
        self.args.push(b"cpu", Value::Uint(bundle.cpu.into()));
        if kind == Kind::Kernel {
            self.args.push(b"waker", Value::Sint(thread));
        }
        let mut next = (0, 0, Vec::new());
        for field in fields(wire.bytes()) {
            let position = (field.number as usize).checked_sub(1);
            let Some(name) = position.and_then(|position| names.get(position)) else {
                continue;
            };
            match name.strip_prefix('$') {
                Some(name) => self
                    .args
                    .push(name.as_bytes(), Value::Text(field.wire.bytes())),
                None => self
                    .args
                    .push(name.as_bytes(), Value::Sint(field.wire.int())),
            }
            match (kind, field.number) {
                (Kind::Switch, 5) => next.2 = field.wire.bytes().to_vec(),
                (Kind::Switch, 6) => next.0 = field.wire.int(),
                (Kind::Switch, 7) => next.1 = field.wire.int(),
                _ => {}
            }
        }
        if kind == Kind::Switch {
            self.runs(bundle.cpu, next);
        }
        self.on_cpu(bundle, time, kind, name)
    }

    fn runs(&mut self, cpu: u32, next: (i64, i64, Vec<u8>)) {
        if self.running.len() < MOST_CPUS || self.running.contains_key(&cpu) {
            self.running.insert(cpu, next);
        }
    }

    /// Adds an event of a CPU with the arguments that there are.
    fn on_cpu(&mut self, bundle: Bundle, time: u64, kind: Kind, name: &str) -> Result<(), Stop> {
        let time = self.kernel_time(bundle, time);
        let track = self.builder.tracks.at(&Place::Cpu(bundle.cpu));
        let name = name.as_bytes();
        let row = Row {
            name,
            ..Row::new(kind, time, track)
        };
        self.builder.push(&row, &self.args)
    }

    /// Adds the events of the compact form: columns, and times that count from each other.
    pub(super) fn compact(&mut self, bundle: Bundle, message: &[u8]) -> Result<(), Stop> {
        for switch in switches(message) {
            self.args.clear();
            self.args.push(b"cpu", Value::Uint(bundle.cpu.into()));
            if let Some((pid, prio, comm)) = self.running.get(&bundle.cpu) {
                self.args.push(b"prev_comm", Value::Text(comm));
                self.args.push(b"prev_pid", Value::Sint(*pid));
                self.args.push(b"prev_prio", Value::Sint(*prio));
            }
            self.args
                .push(b"prev_state", Value::Sint(switch.prev_state));
            self.args.push(b"next_comm", Value::Text(switch.comm));
            self.args.push(b"next_pid", Value::Sint(switch.pid));
            self.args.push(b"next_prio", Value::Sint(switch.prio));
            self.runs(bundle.cpu, (switch.pid, switch.prio, switch.comm.to_vec()));
            self.on_cpu(bundle, switch.time, Kind::Switch, "sched_switch")?;
        }
        let names = names(message);
        for waking in wakings(message) {
            self.args.clear();
            self.args.push(b"cpu", Value::Uint(bundle.cpu.into()));
            let comm = name_at(&names, waking.comm);
            self.args.push(b"comm", Value::Text(comm));
            for (name, value) in [
                ("pid", waking.pid),
                ("prio", waking.prio),
                ("target_cpu", waking.target_cpu),
            ] {
                let value = value.unwrap_or(0) as i64;
                self.args.push(name.as_bytes(), Value::Sint(value));
            }
            self.on_cpu(bundle, waking.time, Kind::Kernel, "sched_waking")?;
        }
        Ok(())
    }

    /// Adds what a program wrote into the trace: slices and counters in the form that Android's
    /// programs use, else the text.
    fn print(
        &mut self,
        bundle: Bundle,
        time: u64,
        thread: i64,
        message: &[u8],
    ) -> Result<(), Stop> {
        let text = first(message, ftrace::BUF).map_or(&[][..], |wire| wire.bytes());
        let text = text.trim_ascii_end();
        let time = self.kernel_time(bundle, time);
        let mut parts = text.splitn(3, |&byte| byte == b'|');
        let phase = parts.next().unwrap_or_default();
        let process = parts
            .next()
            .and_then(|process| str::from_utf8(process).ok());
        let process = process
            .and_then(|process| process.parse().ok())
            .map(Id::Number);
        let name = parts.next().unwrap_or_default();
        let place = Place::Thread(None, Id::Number(thread));
        if let Some(process) = &process {
            self.builder
                .tracks
                .belongs(Id::Number(thread), process.clone());
        }
        self.args.clear();
        let (kind, name, place) = match (phase, &process) {
            (b"B", Some(_)) => (Kind::Begin, name, place),
            (b"E", _) if text.len() == 1 || process.is_some() => (Kind::End, &b""[..], place),
            (b"C", Some(process)) => {
                let (name, value) = match name.iter().rposition(|&byte| byte == b'|') {
                    Some(at) => (&name[..at], &name[at + 1..]),
                    None => (name, &b""[..]),
                };
                let value = str::from_utf8(value)
                    .ok()
                    .and_then(|value| value.parse().ok());
                let Some(value) = value else {
                    self.builder.count("events of counters without a value");
                    return Ok(());
                };
                self.args.push(b"value", Value::Sint(value));
                let counter = name_of(name);
                let place = Place::Named(Some(process.clone()), counter, EntryKind::Sample);
                (Kind::Counter, name, place)
            }
            _ => {
                self.args.push(b"cpu", Value::Uint(bundle.cpu.into()));
                self.args.push(b"buf", Value::Text(text));
                (Kind::Instant, &b"print"[..], place)
            }
        };
        let row = Row {
            name,
            ..Row::new(kind, time, self.builder.tracks.at(&place))
        };
        self.builder.push(&row, &self.args)
    }
}

/// A switch in the compact form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch<'a> {
    pub(super) time: u64,
    pub(super) prev_state: i64,
    pub(super) pid: i64,
    pub(super) prio: i64,
    pub(super) comm: &'a [u8],
}

/// A waking in the compact form, as far as its columns go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    pub(super) time: u64,
    pub(super) pid: Option<u64>,
    pub(super) target_cpu: Option<u64>,
    pub(super) prio: Option<u64>,
    /// The place of the name among those of the bundle.
    pub(super) comm: Option<u64>,
}

/// The numbers of a column.
fn column(message: &[u8], number: u32) -> impl Iterator<Item = u64> {
    let parts = fields(message).filter(move |field| field.number == number);
    parts.flat_map(|field| varints(field.wire))
}

/// Times of a column, each of which counts from the one before it.
fn times(message: &[u8], number: u32) -> impl Iterator<Item = u64> {
    column(message, number).scan(0_u64, |time, delta| {
        *time = time.wrapping_add(delta);
        Some(*time)
    })
}

/// The names that a bundle in the compact form refers to.
fn names(message: &[u8]) -> Vec<&[u8]> {
    let names = fields(message).filter(|field| field.number == compact::INTERN_TABLE);
    names.map(|field| field.wire.bytes()).collect()
}

fn name_at<'a>(names: &[&'a [u8]], at: Option<u64>) -> &'a [u8] {
    let at = at.and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| names.get(at)).copied().unwrap_or_default()
}

/// The switches of a bundle in the compact form.
pub(super) fn switches(message: &[u8]) -> impl Iterator<Item = Switch<'_>> {
    let names = names(message);
    let mut states = column(message, compact::SWITCH_PREV_STATE);
    let mut pids = column(message, compact::SWITCH_NEXT_PID);
    let mut prios = column(message, compact::SWITCH_NEXT_PRIO);
    let mut comms = column(message, compact::SWITCH_NEXT_COMM);
    times(message, compact::SWITCH_TIMESTAMP).map(move |time| Switch {
        time,
        prev_state: states.next().unwrap_or(0) as i64,
        pid: pids.next().unwrap_or(0) as i64,
        prio: prios.next().unwrap_or(0) as i64,
        comm: name_at(&names, comms.next()),
    })
}

/// The wakings of a bundle in the compact form.
pub(super) fn wakings(message: &[u8]) -> impl Iterator<Item = Waking> {
    let mut pids = column(message, compact::WAKING_PID);
    let mut cpus = column(message, compact::WAKING_TARGET_CPU);
    let mut prios = column(message, compact::WAKING_PRIO);
    let mut comms = column(message, compact::WAKING_COMM);
    times(message, compact::WAKING_TIMESTAMP).map(move |time| Waking {
        time,
        pid: pids.next(),
        target_cpu: cpus.next(),
        prio: prios.next(),
        comm: comms.next(),
    })
}

/// The clock of the kernel's events.
const BOOTTIME: u64 = crate::message::clocks::BOOTTIME;
