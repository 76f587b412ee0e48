//! The program on traces of CTF 2 and of RFC v1.1.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Metadata of CTF 2 with all that identifies things, and with attributes.
const METADATA: &str = r#"
{"type": "preamble", "version": 2}
{"type": "trace-class", "namespace": "example.org,2026", "name": "drum", "uid": "one",
 "attributes": {"example.org,2026": {"room": "a \"b\"  c"}}}
{"type": "clock-class", "id": "c", "namespace": "example.org,2026", "name": "mono", "uid": "boot 7",
 "frequency": 1000, "precision": 3, "accuracy": 20, "description": "the clock",
 "origin": {"namespace": "example.org,2026", "name": "power on", "uid": "42"}}
{"type": "data-stream-class", "namespace": "example.org,2026", "name": "main", "uid": "s",
 "default-clock-class-id": "c", "attributes": {"example.org,2026": null},
 "event-record-header-field-class": {"type": "structure", "member-classes": [
   {"name": "time", "field-class": {"type": "fixed-length-unsigned-integer", "length": 8,
    "byte-order": "big-endian", "roles": ["default-clock-timestamp"]}}]}}
{"type": "event-record-class", "namespace": "example.org,2026", "name": "beat", "uid": "e",
 "attributes": {"lttng.org,2009": {"log-level": "warning", "emf-uri": "http://example.org/beat"}},
 "payload-field-class": {"type": "structure", "member-classes": [
   {"name": "loud", "field-class": {"type": "fixed-length-boolean", "length": 8, "byte-order": "big-endian"}},
   {"name": "by", "field-class": {"type": "optional", "selector-field-location": {"path": ["loud"]},
    "field-class": {"type": "variable-length-unsigned-integer"}}},
   {"name": "raw", "field-class": {"type": "static-length-blob", "length": 2}},
   {"name": "marks", "field-class": {"type": "fixed-length-bit-map", "length": 8, "byte-order": "big-endian",
    "flags": {"low": [[0, 3]], "high": [[4, 7]]}}}]}}
"#;

/// Two events of it.
const EVENTS: &[u8] = b"\x05\x01\x07\x00\xff\x14\x09\x00\x01\x02\x00";

/// A trace of CTF 2 in the directory `t`.
fn ctf2() -> TempDir {
    let home = TempDir::new().expect("a directory");
    let trace = home.path().join("t");
    fs::create_dir(&trace).expect("a directory");
    let metadata = METADATA.replace("{\"type\": \"preamble\"", "\u{1e}{\"type\": \"preamble\"");
    let metadata = [
        "trace-class",
        "clock-class",
        "data-stream-class",
        "event-record-class",
    ]
    .iter()
    .fold(metadata, |text, fragment| {
        let begin = format!("{{\"type\": \"{fragment}\"");
        text.replace(&begin, &format!("\u{1e}{begin}"))
    });
    fs::write(trace.join("metadata"), metadata).expect("metadata");
    fs::write(trace.join("stream"), EVENTS).expect("a stream");
    home
}

fn run(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(directory)
        .env("TZ", "UTC")
        .output()
        .expect("kymo runs")
}

/// Standard output of a run that must be good.
fn good(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn parsed(directory: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&good(directory, args)).expect("JSON")
}

#[test]
fn info_reports_identities_clocks_and_attributes() {
    let home = ctf2();
    insta::assert_snapshot!(good(home.path(), &["info", "--schema", "t"]));
    let info = parsed(home.path(), &["info", "--json", "t"]);
    let recording = &info["recordings"][0];
    assert_eq!(
        [
            &recording["namespace"],
            &recording["trace_name"],
            &recording["uid"]
        ],
        ["example.org,2026", "drum", "one"]
    );
    assert_eq!(
        recording["attributes"]["example.org,2026"]["room"],
        "a \"b\"  c"
    );
    assert_eq!(
        recording["clocks"][0],
        json!({
            "namespace": "example.org,2026", "name": "mono", "uid": "boot 7",
            "description": "the clock", "frequency": 1000, "offset_seconds": 0,
            "offset_cycles": 0, "precision": 3, "accuracy": 20,
            "origin": {"namespace": "example.org,2026", "name": "power on", "uid": "42"},
        })
    );
    assert_eq!(
        recording["stream_classes"],
        json!([{
            "stream_class": 0, "namespace": "example.org,2026", "name": "main", "uid": "s",
            "clock": "mono", "event_classes": 1, "attributes": {"example.org,2026": null},
        }])
    );
    let class = &recording["event_classes"][0];
    assert_eq!(class["namespace"], "example.org,2026");
    assert_eq!(class["uid"], "e");
    assert_eq!(class["log_level"], 4);
    assert_eq!(class["emf_uri"], "http://example.org/beat");
    assert_eq!(
        class["attributes"]["lttng.org,2009"]["log-level"],
        "warning"
    );
}

#[test]
fn info_reports_sections_of_the_draft_of_2010() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    insta::assert_snapshot!(good(&examples, &["info", "rfc-small"]));
    let info = parsed(&examples, &["info", "--json", "rfc-small"]);
    let recording = &info["recordings"][0];
    assert_eq!(recording["version"], "1.1");
    let sections = recording["stream_classes"].as_array().expect("a list");
    let names: Vec<_> = sections.iter().map(|section| &section["name"]).collect();
    assert_eq!(names, ["kernel", "network"]);
    assert!(recording["session"].is_u64());
}

#[test]
fn a_trace_is_called_what_its_class_is() {
    let home = ctf2();
    let line = good(
        home.path(),
        &["print", "--format", "json", "--limit", "1", "t"],
    );
    let event: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(event["trace"], "drum");
    assert_eq!(
        event["payload"],
        json!({"loud": true, "by": 7, "raw": "00ff", "marks": {"value": 20, "flags": ["low", "high"]}})
    );
}

#[test]
fn conditions_know_what_only_ctf_2_has() {
    let home = ctf2();
    for (condition, events) in [
        ("loud", 1),
        ("not loud", 1),
        ("by == 7", 1),
        ("by != 7", 0),
        ("not by == 7", 1),
        ("raw == \"\\x00\\xff\"", 1),
        ("raw contains \"\\x02\"", 1),
        ("raw in [\"\\x01\\x02\", \"\"]", 1),
        ("marks contains \"high\"", 1),
        ("marks == 20", 1),
        ("trace.name == \"drum\"", 2),
    ] {
        let printed = good(home.path(), &["print", "--where", condition, "t"]);
        assert_eq!(printed.lines().count(), events, "{condition}");
    }
    for (condition, help) in [
        ("raw == 255", "give its bytes"),
        ("raw", "give its bytes"),
        ("marks ~ \"hi*\"", "ask for a flag"),
        ("event.level == \"warning\"", "this is an integer"),
    ] {
        let output = run(home.path(), &["print", "--where", condition, "t"]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(error.contains(help), "{condition}: {error}");
    }
}
