//! `kymo diff --events`: the events of two recordings, one after the other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use kymo::AnyRecording;
use kymo::filter::Filter;
use kymo::pipeline::{self, Output};
use kymo::report::Style;
use kymo::show::json::{Json, JsonRenderer};
use kymo::show::{Message, MessageKind, Sink, Times, WallOptions};
use kymo_model::FaultReport;
use kymo_text::Line;
use kymo_time::Timestamp;
use serde_json::{Value, json};

use super::Source;
use super::align::{Difference, align};
use crate::args::diff::Diff;
use crate::open::{Wanted, threads};
use crate::terminal::{Failure, Outcome, Terminal};

/// Events that are handed over together, and how many of these may wait.
const BATCH: usize = 256;
const MOST_BATCHES: usize = 8;

/// An event, as it is shown.
struct Event {
    time: Option<Timestamp>,
    value: Value,
}

/// Hands the events of a recording over.
struct Sequence<'i> {
    json: Json,
    ignored: &'i [String],
    sender: SyncSender<Vec<(u64, Event)>>,
    batch: Vec<(u64, Event)>,
    is_closed: bool,
}

/// Members that say where an event is from, and not what it is.
const PLACE: [&str; 10] = [
    "timestamp",
    "recording",
    "kind",
    "schema",
    "trace",
    "stream_class",
    "stream",
    "event_class",
    "archive_index",
    "cdtime",
];

/// Removes members of a name, wherever they are.
fn without(value: &mut Value, ignored: &[String]) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !ignored.contains(name));
            members
                .values_mut()
                .for_each(|member| without(member, ignored));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|it| without(it, ignored)),
        _ => {}
    }
}

impl Sequence<'_> {
    fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.is_closed |= !batch.is_empty() && self.sender.send(batch).is_err();
    }
}

impl Sink for Sequence<'_> {
    type Renderer = JsonRenderer;

    fn renderer(&self) -> JsonRenderer {
        self.json.renderer()
    }

    fn event(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        if !matches!(message.kind, MessageKind::Event) {
            return;
        }
        let begin = out.as_bytes().len();
        self.json.event(message, recordings, text, out, warnings);
        let line = &out.as_bytes()[begin..];
        // Lone surrogates stand for bytes that are not UTF-8: such a line is compared as it is.
        let mut value = serde_json::from_slice(line)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(line).into_owned()));
        out.truncate(begin);
        if let Value::Object(members) = &mut value {
            members.retain(|name, _| !PLACE.contains(&name.as_str()));
        }
        without(&mut value, self.ignored);
        let mut hasher = DefaultHasher::new();
        value.to_string().hash(&mut hasher);
        let event = Event {
            time: message.time,
            value,
        };
        self.batch.push((hasher.finish(), event));
        if self.batch.len() >= BATCH {
            self.send();
        }
        if self.is_closed {
            // Text that cannot be written ends the run.
            out.push_byte(b'\n');
        }
    }
}

/// Keeps the damage.
#[derive(Default)]
struct Faults {
    all: Vec<FaultReport>,
    strict: bool,
}

impl Output for Faults {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        match text.is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        const MOST: usize = 1000;
        if self.all.len() < MOST {
            self.all.push(fault.clone());
        }
        match self.strict {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Reports where the events of two recordings differ.
pub(super) fn run(
    args: &Diff,
    sources: [&Source; 2],
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let filter = |source: &Source| {
        let wanted = Wanted::new(&source.selection, source.inputs.gmt);
        let filter = wanted.filter(&source.inputs.recordings, terminal)?;
        wanted.warn(&source.inputs, &filter, terminal);
        Ok::<_, Failure>(filter)
    };
    let filters = [filter(sources[0])?, filter(sources[1])?];
    let styles = sources.map(|source| source.inputs.style());
    let (mut differences, mut only) = (0u64, [0u64; 2]);
    let (alike, faults, written) = std::thread::scope(|scope| {
        let [a, b] = [0, 1].map(|side| {
            let (sender, receiver) = sync_channel(MOST_BATCHES);
            let (source, filter) = (sources[side], &filters[side]);
            let worker = scope.spawn(move || sequence(args, source, filter, sender));
            (events(receiver), worker)
        });
        let mut written = Ok(());
        let alike = align(a.0, b.0, |difference| {
            differences += 1;
            only[0] += difference.only[0].len() as u64;
            only[1] += difference.only[1].len() as u64;
            if differences <= args.limit {
                written = terminal.write(shown(args, &difference, &styles).as_bytes());
            }
            written.is_ok()
        });
        let faults = [a.1, b.1].map(|worker| worker.join().unwrap_or_default());
        (alike, faults, written)
    });
    written?;
    if !args.json {
        let plural = if differences == 1 { "" } else { "s" };
        let summary = format!(
            "{differences} difference{plural}: {} events only in the first, {} only in the second, {alike} in both\n",
            only[0], only[1]
        );
        terminal.write(summary.as_bytes())?;
    }
    let mut outcome = match differences {
        0 => Outcome::Good,
        _ => Outcome::Damage,
    };
    for (source, faults) in sources.iter().zip(faults) {
        faults.iter().for_each(|fault| terminal.fault(fault));
        if source.inputs.outcome != Outcome::Good || !faults.is_empty() {
            outcome = Outcome::Damage;
        }
    }
    Ok(outcome)
}

fn sequence(
    args: &Diff,
    source: &Source,
    filter: &Filter,
    sender: SyncSender<Vec<(u64, Event)>>,
) -> Vec<FaultReport> {
    let mut sink = Sequence {
        json: Json::with_times(Times::Number, WallOptions::default()),
        ignored: &args.ignore,
        sender,
        batch: Vec::new(),
        is_closed: false,
    };
    let mut output = Faults {
        strict: args.work.strict,
        ..Faults::default()
    };
    let options = pipeline::Options {
        threads: threads(&args.work).div_ceil(2),
        ..pipeline::Options::default()
    };
    // It fails only if the receiver of the events is gone.
    let _ = pipeline::run(
        &source.inputs.recordings,
        &filter,
        &options,
        &mut sink,
        &mut output,
    );
    sink.send();
    output.all
}

fn events(receiver: Receiver<Vec<(u64, Event)>>) -> impl Iterator<Item = (u64, Event)> {
    receiver.into_iter().flatten()
}

fn shown(args: &Diff, difference: &Difference<Event>, styles: &[Style; 2]) -> String {
    let [a, b] = difference.at;
    let [left, right] = &difference.only;
    if args.json {
        let list = |events: &[Event]| {
            let all = events.iter().map(
                |event| json!({"time": event.time.map(Timestamp::as_nanos), "event": event.value}),
            );
            all.collect::<Vec<Value>>()
        };
        let line = json!({"at": {"a": a, "b": b}, "a": list(left), "b": list(right)});
        return format!("{line}\n");
    }
    let mut text = format!("@@ -{a},{} +{b},{} @@\n", left.len(), right.len());
    for (sign, events, style) in [('-', left, &styles[0]), ('+', right, &styles[1])] {
        for event in events {
            let time = event
                .time
                .map_or_else(|| "-".to_string(), |time| style.time(time));
            text += &format!("{sign} [{time}] {}\n", event.value);
        }
    }
    text
}
