//! One class model for several recordings, and what is to be done with each of their streams.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use kymo_ctf::class::{BitLayout, Dialect, FieldClass, Member, Role, StreamClass, TraceClass};
use kymo_ctf::metadata::fit::fit;
use kymo_ctf::trace::Trace;
use kymo_ctf::write::{Agreement, EventId, StreamOptions, WriteError, layout};
use kymo_machine::ByteOrder;
use kymo_model::Recording;
use kymo_time::{Clock, Origin};

use super::{CtfError, CtfOptions, model};
use crate::AnyRecording;
use crate::filter::Filter;
use crate::pipeline::{Select, compare_recordings};

/// What is to be written.
pub(super) struct Plan<'r> {
    pub(super) model: TraceClass,
    pub(super) sources: Vec<Source<'r>>,
    pub(super) jobs: Vec<Job<'r>>,
    pub(super) changes: Vec<String>,
    /// Number of the session that packets of RFC v1.1 belong to: that of the first recording that has one, since
    /// a trace has no other.
    pub(super) session_id: u32,
}

/// A recording.
pub(super) struct Source<'r> {
    /// Its position among all.
    pub(super) recording: usize,
    pub(super) input: &'r AnyRecording,
    /// For each of its stream classes, the position of that of the trace.
    positions: Vec<usize>,
    /// For each of its event classes, that of the trace.
    pub(super) events: Vec<EventId>,
    /// For each of its stream classes, what is the same in the trace; of a recording of another
    /// format nothing is.
    pub(super) agreements: Vec<Agreement>,
}

/// A stream of a recording.
pub(super) struct Job<'r> {
    /// Position of its recording in [`Plan::sources`].
    pub(super) source: usize,
    pub(super) input: &'r AnyRecording,
    /// Position of the stream in the recording.
    pub(super) stream: usize,
    /// Position of its class in the trace.
    pub(super) stream_class: usize,
    /// Name of its file.
    pub(super) name: String,
    pub(super) options: StreamOptions,
}

impl<'r> Plan<'r> {
    pub(super) fn new(
        recordings: &'r [AnyRecording],
        which: &[usize],
        filter: &Filter,
        options: &CtfOptions,
    ) -> Result<Self, CtfError> {
        let mut changes = Vec::new();
        let mut parts = Vec::new();
        for &recording in which {
            let Some(input) = recordings.get(recording) else {
                continue;
            };
            let mut class = match input.as_ctf() {
                Some(trace) => trace.class().clone(),
                None => {
                    let order = options.order.unwrap_or(ByteOrder::Little);
                    model::of(input, order, options.dialect)
                }
            };
            // What no event is wanted of needs no equal in a dialect that has few.
            if options.dialect == Dialect::Rfc11 && input.as_ctf().is_some() {
                keep_wanted(&mut class, |event| {
                    (&filter).wants_class(recording, input, event)
                });
            }
            layout::lay_out(&mut class, options.order, options.packed);
            // In CTF 2, the time of a packet does not go on from the packet before it either.
            let is_other = (class.dialect == Dialect::Ctf2) != (options.dialect == Dialect::Ctf2);
            let is_cut = !filter.wants_all(recording) || !input.faults().is_empty();
            if options.dialect == Dialect::Rfc11 {
                if is_other {
                    layout::widen_begins(&mut class);
                }
            } else if is_other || is_cut {
                changes.extend(layout::widen_times(&mut class));
            }
            let fitted = fit(&class, options.dialect)?;
            let fitted_changes = fitted.changes.iter().map(ToString::to_string);
            let of_recording = model::dropped(input).into_iter().chain(fitted_changes);
            changes.extend(of_recording.map(|change| match which.len() {
                1 => change,
                _ => format!("{}: {change}", input.path().display()),
            }));
            parts.push((recording, input, fitted.model));
        }
        let order = class_order(&parts);
        let model = match &parts[..] {
            [] => return Err(WriteError::Misuse("no recording is given".to_owned()).into()),
            [(_, _, only)] => only.clone(),
            several => {
                let models: Vec<&TraceClass> = several.iter().map(|(.., model)| model).collect();
                let merged = merged(&models, &order, &mut changes);
                let fitted = fit(&merged, options.dialect)?;
                changes.extend(fitted.changes.iter().map(ToString::to_string));
                // First, since of many changes not all are shown.
                changes.splice(0..0, apart_in_time(&fitted.model));
                fitted.model
            }
        };
        let mut positions: Vec<_> = parts
            .iter()
            .map(|(.., model)| vec![0; model.streams.len()])
            .collect();
        for (to, (part, class)) in order.into_iter().enumerate() {
            positions[part][class] = to;
        }
        let sources: Vec<Source<'_>> = parts
            .iter()
            .zip(positions)
            .map(|(&(recording, input, _), positions)| {
                let wants = |event| {
                    options.dialect != Dialect::Rfc11
                        || (&filter).wants_class(recording, input, event)
                };
                Source::new(recording, input, positions, &model, &wants)
            })
            .collect();
        let jobs = jobs(&sources, &model, options);
        let session_id = sources
            .iter()
            .find_map(|source| source.input.as_ctf()?.session_id());
        Ok(Self {
            session_id: session_id.unwrap_or(0),
            model,
            sources,
            jobs,
            changes,
        })
    }
}

/// Takes the event classes out of which no event is wanted; `wants` is asked by their positions
/// among all of the trace.
fn keep_wanted(class: &mut TraceClass, wants: impl Fn(usize) -> bool) {
    let mut position = 0..;
    for stream in &mut class.streams {
        stream
            .events
            .retain(|_| position.next().is_some_and(&wants));
    }
}

/// The stream classes of all recordings (their positions, and that of the recording) in the order in
/// which they are in the trace.
///
/// Of events at the same time, a trace has those first whose stream class has the smaller number,
/// and of several recordings those of the one that is first by its identity. So these come in
/// the same order when they are one trace.
fn class_order(parts: &[(usize, &AnyRecording, TraceClass)]) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (part, (.., model)) in parts.iter().enumerate() {
        order.extend((0..model.streams.len()).map(|class| (part, class)));
    }
    if parts.len() > 1 {
        let numbers_of = |recording: &AnyRecording| match recording.as_ctf() {
            Some(trace) => trace
                .class()
                .streams
                .iter()
                .map(|stream| stream.id)
                .collect(),
            None => model::stream_classes(recording),
        };
        let numbers: Vec<Vec<u64>> = parts
            .iter()
            .map(|(_, recording, _)| numbers_of(recording))
            .collect();
        let number = |&(part, class): &(usize, usize)| numbers[part].get(class);
        order.sort_by(|left, right| {
            compare_recordings(parts[left.0].1, parts[right.0].1)
                .then_with(|| number(left).cmp(&number(right)))
        });
    }
    order
}

impl<'r> Source<'r> {
    /// `positions` are those of its stream classes in the trace; `wants` returns whether an event class is
    /// in the trace at all.
    fn new(
        recording: usize,
        input: &'r AnyRecording,
        positions: Vec<usize>,
        model: &TraceClass,
        wants: &dyn Fn(usize) -> bool,
    ) -> Self {
        let mut events = Vec::new();
        let mut agreements = Vec::new();
        match input.as_ctf() {
            Some(trace) => {
                let class = trace.class();
                for (position, stream) in class.streams.iter().enumerate() {
                    let to = positions[position];
                    let before = events.len();
                    let mut next = 0;
                    for event in 0..stream.events.len() {
                        events.push(EventId {
                            stream_class: to,
                            event: next,
                        });
                        next += usize::from(wants(before + event));
                    }
                    let of_stream = &events[before..];
                    let event_of = |event: usize| {
                        let to = of_stream.get(event)?;
                        wants(before + event).then_some(to.event)
                    };
                    let mut agreement = Agreement::new((class, position), (model, to), event_of);
                    agreement.packets &= class.uuid == model.uuid
                        && model
                            .streams
                            .get(to)
                            .is_some_and(|other| other.id == stream.id);
                    agreements.push(agreement);
                }
            }
            None => {
                let numbers = model::stream_classes(input);
                let mut counts = vec![0; numbers.len()];
                for class in input.event_classes() {
                    let position = numbers
                        .iter()
                        .position(|&number| number == class.stream_class)
                        .unwrap_or(0);
                    events.push(EventId {
                        stream_class: positions[position],
                        event: counts[position],
                    });
                    counts[position] += 1;
                }
            }
        }
        Self {
            recording,
            input,
            positions,
            events,
            agreements,
        }
    }
}

/// What is to be done with the streams of recordings, in their order.
fn jobs<'r>(sources: &[Source<'r>], model: &TraceClass, options: &CtfOptions) -> Vec<Job<'r>> {
    let mut names = HashSet::from(["metadata".to_owned(), "index".to_owned()]);
    let mut numbers: HashMap<usize, HashSet<u64>> = HashMap::new();
    let mut jobs = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let input = source.input;
        let classes = model::stream_classes(input);
        for (stream, info) in input.streams().iter().enumerate() {
            let (class, name) = match input.as_ctf() {
                Some(trace) => (trace.stream_class(stream), file_name(trace, stream)),
                None => {
                    let class = classes.iter().position(|&class| class == info.class);
                    (class.unwrap_or(0), format!("stream_{stream}"))
                }
            };
            let name = match options.dialect {
                Dialect::Rfc11 => String::new(),
                _ => free_name(&name, "_", 1, |name| names.contains(name)),
            };
            names.insert(name.clone());
            let stream_class = source.positions[class];
            // RFC v1.1 knows streams by their numbers alone.
            let numbers = numbers.entry(stream_class).or_default();
            let mut stream_id = info.id;
            if model.dialect == Dialect::Rfc11 {
                let mut number = stream_id.unwrap_or(0);
                while !numbers.insert(number) {
                    number = number.wrapping_add(1);
                }
                stream_id = Some(number);
            }
            jobs.push(Job {
                source: number,
                input,
                stream,
                stream_class,
                name,
                options: StreamOptions {
                    stream_id,
                    packet_bytes: options.packet_bytes,
                    any_order: true,
                    lenient: true,
                },
            });
        }
    }
    jobs
}

/// The name of the file in which a stream begins.
fn file_name(trace: &Trace, stream: usize) -> String {
    let packet = trace.packet(stream, 0);
    let file = packet.and_then(|packet| trace.files().get(packet.file as usize));
    let name = file.and_then(|file| Path::new(file.path.as_path()).file_name());
    match name {
        Some(name) => name.to_string_lossy().into_owned(),
        None => format!("stream_{stream}"),
    }
}

/// The name, or where it is taken the first of those with `mark` and a number from `first` on behind
/// it that is not.
fn free_name(name: &str, mark: &str, first: u64, is_taken: impl Fn(&str) -> bool) -> String {
    let mut numbers = first..;
    let mut free = name.to_owned();
    while is_taken(&free)
        && let Some(number) = numbers.next()
    {
        free = format!("{name}{mark}{number}");
    }
    free
}

/// One model of several: each keeps its stream classes, in the order given, with numbers of their own,
/// and its clocks.
fn merged(
    models: &[&TraceClass],
    order: &[(usize, usize)],
    changes: &mut Vec<String>,
) -> TraceClass {
    let mut trace = models[0].clone();
    let byte_order = trace.native_order();
    trace.streams.clear();
    trace.clocks.clear();
    trace.uuid = None;
    trace.uid = None;
    trace.packet_header = Some(header(byte_order));
    agree_on_environment(&mut trace, models, changes);
    let mut clocks_of = |model: &TraceClass| -> Vec<usize> {
        let clocks = model.clocks.iter();
        clocks
            .map(|clock| clock_in(&mut trace.clocks, clock))
            .collect()
    };
    let clocks: Vec<_> = models.iter().map(|model| clocks_of(model)).collect();
    for (id, &(part, class)) in (0..).zip(order) {
        let mut stream = models[part].streams[class].clone();
        stream.id = id;
        if trace.dialect == Dialect::Rfc11 {
            let before = stream.name.unwrap_or_default();
            let name = section_name(&trace.streams, &before);
            if name != before {
                changes.push(format!(
                    "data stream class {id}: `{before}` becomes `{name}`"
                ));
            }
            stream.name = Some(name);
        }
        stream.clock = stream
            .clock
            .and_then(|clock| clocks[part].get(clock).copied());
        if models[part].packet_header != trace.packet_header {
            layout::widen_sizes(&mut stream);
        }
        trace.streams.push(stream);
    }
    trace
}

/// Leaves out of the environment what not all traces say alike, such as the process that was traced:
/// it would be attributed to the events of the others too.
fn agree_on_environment(trace: &mut TraceClass, models: &[&TraceClass], changes: &mut Vec<String>) {
    let mut left_out: Vec<&str> = Vec::new();
    for (name, value) in models.iter().flat_map(|model| &model.environment) {
        let mut all = models.iter().map(|model| model.environment(name));
        if !left_out.contains(&name.as_str()) && !all.all(|other| other == Some(value)) {
            left_out.push(name);
        }
    }
    trace
        .environment
        .retain(|(name, _)| !left_out.contains(&name.as_str()));
    let said = |text_of: fn(&TraceClass) -> &Option<String>| {
        let mut all = models.iter().map(|model| text_of(model));
        let first = all.next();
        all.all(|other| Some(other) == first)
    };
    if !said(|model| &model.name) || !said(|model| &model.namespace) {
        (trace.name, trace.namespace) = (None, None);
        let line = "the name of the trace: not the same in all recordings, left out; `--separate` keeps it";
        changes.insert(0, line.to_owned());
    }
    if !left_out.is_empty() {
        let names = left_out.join("`, `");
        // First, since of many changes not all are shown.
        let line = format!(
            "environment: `{names}`: not the same in all recordings, left out; `--separate` keeps it"
        );
        changes.insert(0, line);
    }
}

/// The name of a section among those that are there, or where it is taken, one that begins with it.
///
/// Files are named `NAME_0`, and a reader takes the longest name that fits: it must be of no other
/// section either.
fn section_name(sections: &[StreamClass], name: &str) -> String {
    let is_file_of = |file: &str, section: &str| {
        let number = file.strip_prefix(section);
        let digits = number.and_then(|rest| rest.strip_prefix('_'));
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_taken = |name: &str| {
        let mut names = sections.iter().filter_map(|known| known.name.as_deref());
        names.any(|known| known == name || is_file_of(known, name) || is_file_of(name, known))
    };
    free_name(name, "x", 2, is_taken)
}

/// The warning if the times of some streams cannot be compared with those of others.
fn apart_in_time(trace: &TraceClass) -> Option<String> {
    let is_absolute = |stream: &StreamClass| {
        let clock = trace.clocks.get(stream.clock?)?;
        Some(clock.origin == Origin::UnixEpoch)
    };
    let mut of_streams = trace.streams.iter().filter_map(is_absolute);
    let first = of_streams.next()?;
    (trace.dialect != Dialect::Rfc11 && of_streams.any(|other| other != first)).then(|| {
        "trace: some clocks count from 1970 and others do not, and other readers may refuse a trace \
         of both: `--separate` makes a trace of each recording"
            .to_owned()
    })
}

/// The position of a clock among those of the trace, where one of the same name and another rate
/// or beginning has another name.
fn clock_in(clocks: &mut Vec<Arc<Clock>>, clock: &Arc<Clock>) -> usize {
    if let Some(known) = clocks.iter().position(|known| known == clock) {
        return known;
    }
    let mut clock = Clock::clone(clock);
    let name = clock.name.clone().unwrap_or_else(|| "clock".to_owned());
    let is_taken = |name: &str| {
        clocks
            .iter()
            .any(|known| known.name.as_deref() == Some(name))
    };
    clock.name = Some(free_name(&name, "_", 2, is_taken));
    clocks.push(Arc::new(clock));
    clocks.len() - 1
}

/// A packet header for streams of many classes.
pub(super) fn header(order: ByteOrder) -> FieldClass {
    FieldClass::structure(vec![
        number("magic", 32, order, &[Role::PacketMagic]),
        number("stream_id", 64, order, &[Role::StreamClassId]),
        number("stream_instance_id", 64, order, &[Role::StreamId]),
    ])
}

pub(super) fn number(name: &str, bits: u32, order: ByteOrder, roles: &[Role]) -> Member {
    Member::new(name, FieldClass::unsigned(layout_of(bits, order), roles))
}

/// Whole bytes lie on bytes.
pub(super) fn layout_of(bits: u32, order: ByteOrder) -> BitLayout {
    let align = if bits.is_multiple_of(8) { 8 } else { 1 };
    BitLayout::new(bits, align, order)
}
