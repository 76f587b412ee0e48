//! Chrome's JSON trace events.

#[allow(dead_code)]
mod common;

use common::{open, text};
use kymo_model::{FaultCode, Recording as _};
use kymo_perfetto::Recording;

#[test]
fn all_phases() {
    let bytes = include_bytes!("traces/all.json");
    insta::assert_snapshot!(text(&open("all.json", bytes)));
}

#[test]
fn what_kymo_writes_comes_back() {
    let bytes = include_bytes!("traces/kymo.json");
    insta::assert_snapshot!(text(&open("kymo.json", bytes)));
}

fn json(text: &str) -> Recording {
    open("x.json", text.as_bytes())
}

#[test]
fn arrays_may_be_cut_off_after_an_event() {
    let event = r#"{"ph":"i","ts":1,"pid":1,"tid":1,"name":"x"}"#;
    for (before, after) in [
        ("[", ""),
        ("[", ","),
        ("[", ",]"),
        ("[", "]"),
        (r#"{"traceEvents":["#, ""),
    ] {
        let recording = json(&format!("{before}{event},\n{event}{after}"));
        assert_eq!(
            (recording.events(), recording.faults()),
            (2, &[][..]),
            "{before} {after}"
        );
    }
    for end in 1..event.len() {
        let recording = json(&format!("[{event},\n{}", &event[..end]));
        assert_eq!(recording.events(), 1);
        let [fault] = recording.faults() else {
            panic!("{:?}", recording.faults());
        };
        assert_eq!(fault.code, FaultCode::Truncated, "{fault}");
    }
}

#[test]
fn damage_costs_an_event() {
    let event = r#"{"ph":"i","ts":1,"pid":1,"tid":1,"name":"x"}"#;
    for damage in [
        "{\"ph\":}",
        "{\"a\":[1,2}",
        "{\"a\" 5}",
        "garbage",
        "{\"s\":\"\\x\"}",
        "7",
    ] {
        let recording = json(&format!("[{event},\n{damage},\n{event},\n{event}]"));
        assert_eq!(recording.events(), 3, "{damage}");
        let [fault] = recording.faults() else {
            panic!("{damage}: {:?}", recording.faults());
        };
        assert_eq!(fault.code, FaultCode::Syntax);
        let place = event.len() as u64 + 3;
        assert!((place..place + 10).contains(&fault.offset), "{fault}");
    }
}

#[test]
fn what_nests_too_deep_is_left_out() {
    for (depth, expected) in [(512, 0), (513, 1), (10_000, 1)] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let recording = json(&format!(r#"[{{"ph":"i","args":{{"a":{open}{close}}}}}]"#));
        assert_eq!((recording.events(), recording.faults()), (1, &[][..]));
        assert_eq!(recording.notes().len(), expected, "{:?}", recording.notes());
    }
    let recording = json(&format!(
        "[{{\"ph\":\"i\",\"args\":{{\"a\":{}",
        "[".repeat(100_000)
    ));
    assert_eq!(recording.faults().len(), 1);
}

#[test]
fn large_files_are_sorted() {
    let mut text = String::from("[");
    let count = 50_000;
    for number in 0..count {
        let time = (number * 7919) % count;
        text += &format!(
            "{{\"ph\":\"i\",\"ts\":{time},\"pid\":1,\"tid\":{},\"name\":\"n{}\"}},\n",
            number % 9,
            number % 3
        );
    }
    let recording = json(&text);
    assert_eq!(
        (
            recording.events(),
            recording.tracks().len(),
            recording.event_classes().len()
        ),
        (count, 10, 3)
    );
    let chunks: Vec<_> = recording.chunks(0).collect();
    assert!(chunks.len() > 2);
    assert!(
        chunks
            .windows(2)
            .all(|pair| pair[0].end_time <= pair[1].begin_time)
    );
}
