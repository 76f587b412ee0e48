//! What the writers write, the readers read back.

#[allow(dead_code)]
mod common;

use std::sync::Arc;

use common::{open, text};
use kymo_perfetto::{
    Annotation, AnnotationKind, AnnotationOf, ChromeEvent, ChromeName, ChromePhase, ChromeThread,
    ChromeValue, ChromeWriter, CounterValue, Names, NewTrack, PerfettoWriter, TrackContent,
    TrackEvent,
};
use kymo_text::Line;
use proptest::prelude::*;

const TRACKS: [&str; 3] = [
    "cpu 0",
    "\u{e9}\"\\",
    "a rather long name of a track, which takes many bytes",
];
fn new_track(name: &str, parent: Option<u64>, content: TrackContent) -> NewTrack<'_> {
    NewTrack {
        name,
        parent,
        rank: None,
        content,
    }
}

const NAMES: [&str; 3] = [
    "work",
    "note \u{1f600}",
    "an event whose name has more than 31 bytes",
];

#[derive(Clone, Debug)]
enum What {
    Instant(usize),
    Begin(usize),
    End,
    Integer(i64),
    Float(f64),
}

#[derive(Clone, Debug)]
struct Written {
    after: u64,
    track: usize,
    what: What,
    flow: Option<u64>,
    number: i64,
    text: String,
}

fn written() -> impl Strategy<Value = Written> {
    let whole = -(1i64 << 53)..1 << 53;
    let what = prop_oneof![
        (0..NAMES.len()).prop_map(What::Instant),
        (0..NAMES.len()).prop_map(What::Begin),
        Just(What::End),
        whole.clone().prop_map(What::Integer),
        (-1e9..1e9).prop_map(|value: f64| What::Float(value + 0.5)),
    ];
    let flow = proptest::option::of(1..u64::MAX);
    (
        0..1u64 << 40,
        0..TRACKS.len(),
        what,
        flow,
        whole,
        "[a-z\u{e9}\"]{0,200}",
    )
        .prop_map(|(after, track, what, flow, number, text)| Written {
            after,
            track,
            what,
            flow,
            number,
            text,
        })
}

/// What is expected of an event: time, name and role, what its line has, a number behind a name.
type Expected = (u64, String, Vec<String>, Option<(&'static str, f64)>);

fn expected(events: &[Written], open: &mut [usize]) -> Vec<Expected> {
    let mut time = 0;
    let mut lines = Vec::new();
    for event in events {
        time += event.after;
        let track_name = TRACKS[event.track];
        let track = |name: &str| format!(" track_name={name:?}");
        let mut has = Vec::new();
        let (name, number) = match event.what {
            What::Integer(value) => {
                has.push(track(&format!("{track_name} integers")));
                (
                    format!("{track_name} integers Instant counter"),
                    ("value", value as f64),
                )
            }
            What::Float(value) => {
                has.push(track(&format!("{track_name} floats")));
                (
                    format!("{track_name} floats Instant counter"),
                    ("value", value),
                )
            }
            What::Instant(name) | What::Begin(name) => {
                has.push(track(track_name));
                has.push(format!(" text={:?}", event.text));
                has.extend(event.flow.map(|flow| format!(" flow_ids={flow}u")));
                let role = match event.what {
                    What::Begin(_) => {
                        open[event.track] += 1;
                        "Begin"
                    }
                    _ => "Instant",
                };
                let flow = if event.flow.is_some() { " flow" } else { " " };
                (
                    format!("{} {role}{flow}", NAMES[name]),
                    ("number", event.number as f64),
                )
            }
            What::End if open[event.track] == 0 => continue,
            What::End => {
                open[event.track] -= 1;
                has.push(track(track_name));
                (" End ".to_string(), ("number", f64::NAN))
            }
        };
        lines.push((
            time,
            name,
            has,
            Some(number).filter(|(_, number)| !number.is_nan()),
        ));
    }
    lines
}

fn perfetto(events: &[Written]) -> Vec<u8> {
    let mut names = Names::default();
    let event_names = NAMES.map(|name| names.events.number(name));
    let [number, text] = ["number", "text"].map(|name| names.annotations.number(name));
    let container = AnnotationOf::Event;
    let annotations = (
        Annotation::new(container, number, AnnotationKind::Int),
        Annotation::new(container, text, AnnotationKind::Text),
    );
    let mut writer = PerfettoWriter::new(Arc::new(names));
    let mut out = Line::new();
    let root = writer.track(&new_track("file", None, TrackContent::Tracks), &mut out);
    let tracks = TRACKS.map(|name| {
        let track = writer.track(&new_track(name, Some(root), TrackContent::Events), &mut out);
        let counters = ["integers", "floats"].map(|kind| {
            let name = format!("{name} {kind}");
            writer.track(
                &new_track(&name, Some(track), TrackContent::Counter),
                &mut out,
            )
        });
        (track, counters)
    });
    let mut time = 0;
    let mut open = [0; TRACKS.len()];
    for event in events {
        time += event.after;
        let (track, [integers, floats]) = tracks[event.track];
        let mut args = Line::new();
        annotations.0.number(event.number as u64, &mut args);
        annotations.1.text(event.text.as_bytes(), &mut args);
        let flows = event.flow.into_iter();
        writer.announce_annotation(number);
        writer.announce_annotation(text);
        let (kind, args) = match event.what {
            What::Integer(value) => {
                writer.count(time, integers, CounterValue::Integer(value), &mut out);
                continue;
            }
            What::Float(value) => {
                writer.count(time, floats, CounterValue::Float(value), &mut out);
                continue;
            }
            What::Instant(name) => {
                writer.announce_event(event_names[name]);
                (TrackEvent::Instant(event_names[name]), args.as_bytes())
            }
            What::Begin(name) => {
                writer.announce_event(event_names[name]);
                open[event.track] += 1;
                (TrackEvent::Begin(event_names[name]), args.as_bytes())
            }
            What::End if open[event.track] == 0 => continue,
            What::End => {
                open[event.track] -= 1;
                (TrackEvent::End(None), &[][..])
            }
        };
        writer.event(time, track, kind, flows, args, &mut out);
    }
    out.as_bytes().to_vec()
}

fn chrome(events: &[Written]) -> Vec<u8> {
    let mut writer = ChromeWriter::new();
    let mut out = Line::new();
    let process = ChromeThread::new(1, 0);
    writer.name("process", &process, b"file", 0, &mut out);
    let threads: Vec<_> = TRACKS
        .iter()
        .zip(1..)
        .map(|(name, number)| {
            let thread = ChromeThread::new(1, number);
            writer.name("thread", &thread, name.as_bytes(), 0, &mut out);
            thread
        })
        .collect();
    let mut time = 0;
    let mut open = [0; TRACKS.len()];
    for event in events {
        time += event.after as i64;
        let thread = &threads[event.track];
        let counter =
            |kind: &str| ChromeName::new(format!("{} {kind}", TRACKS[event.track]).as_bytes());
        let (phase, name) = match event.what {
            What::Integer(value) => {
                let value = ChromeValue::Sint(value);
                writer.count(
                    time,
                    (&process, &process),
                    &counter("integers"),
                    value,
                    &mut out,
                );
                continue;
            }
            What::Float(value) => {
                let value = ChromeValue::Float(value);
                writer.count(
                    time,
                    (&process, &process),
                    &counter("floats"),
                    value,
                    &mut out,
                );
                continue;
            }
            What::Instant(name) => (ChromePhase::Instant, name),
            What::Begin(name) => {
                open[event.track] += 1;
                (ChromePhase::Begin, name)
            }
            What::End if open[event.track] == 0 => continue,
            What::End => {
                open[event.track] -= 1;
                writer.end(time, thread, &mut out);
                continue;
            }
        };
        let mut args = Line::new();
        args.push(format!(",\"number\":{},\"text\":", event.number).as_bytes());
        args.json_string(event.text.as_bytes());
        let name = ChromeName::new(NAMES[name].as_bytes());
        let event = ChromeEvent {
            phase,
            time,
            thread,
            name: &name,
            flow: event.flow,
            args: args.as_bytes(),
        };
        writer.event(&event, &mut out);
    }
    writer.finish(&mut out);
    out.as_bytes().to_vec()
}

fn check(events: &[Written], file: &str, bytes: &[u8]) {
    let read = text(&open(file, bytes));
    let mut lines = read
        .lines()
        .filter(|line| !line.starts_with("TRACK") && !line.starts_with("CLOCK"));
    for (time, name, has, number) in expected(events, &mut [0; TRACKS.len()]) {
        let line = lines.next().unwrap_or("nothing");
        assert!(line.starts_with(&format!("{time} ")), "{time}: {line}");
        assert!(line.contains(&name), "{name:?}: {line}");
        for part in has {
            assert!(line.contains(&part), "{part:?}: {line}");
        }
        if let Some((name, number)) = number {
            let value = line.split_once(&format!(" {name}="));
            let value = value
                .and_then(|(_, rest)| rest.split(' ').next())
                .unwrap_or("none");
            let found: Option<f64> = value.trim_end_matches(['i', 'u', 'f']).parse().ok();
            assert_eq!(found, Some(number), "{name}: {line}");
        }
    }
    assert_eq!(lines.next(), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read(events in proptest::collection::vec(written(), 1..40)) {
        check(&events, "x.pftrace", &perfetto(&events));
        check(&events, "x.json", &chrome(&events));
    }
}
