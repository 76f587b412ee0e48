//! Integers of more than 64 bits, in files that another program made.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use common::{good, kymo, text};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/wide")
        .join(name)
}

fn output(arguments: &[&str]) -> String {
    let output = kymo(arguments);
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {problem}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn they_are_printed_in_hexadecimal() {
    for order in ["le", "be"] {
        let trace = data(order);
        let expected = fs::read_to_string(data(&format!("{order}.txt"))).expect("text");
        assert_eq!(output(&["print", text(&trace)]), expected);
        let json = output(&["print", "--format", "json", text(&trace)]);
        let csv = output(&["print", "--format", "csv", text(&trace)]);
        let details = output(&["print", "--format", "details", text(&trace)]);
        for (line, event) in expected.lines().zip(json.lines()) {
            let event: Value = serde_json::from_str(event).expect("JSON");
            let (_, members) = line.split_once("gap = ").expect("fields");
            for member in members.trim_end_matches(" }").split(", ").skip(1) {
                let (name, value) = member.split_once(" = ").expect("a value");
                assert_eq!(event["payload"][name], value, "{name}");
                assert!(csv.contains(value), "{name}");
                assert!(details.contains(&format!("{name}: {value}\n")), "{name}");
            }
        }
    }
}

#[test]
fn they_stay_what_they_are_in_every_dialect() {
    for order in ["le", "be"] {
        let home = TempDir::new().expect("a directory");
        let trace = data(order);
        let expected = fs::read_to_string(data(&format!("{order}.txt"))).expect("text");
        for (number, options) in [
            &["--to", "ctf1.8"][..],
            &["--to", "ctf2"],
            &["--to", "ctf-rfc"],
            &["--to", "ctf2", "--byte-order", "be", "--packed"],
            &["--to", "ctf1.8", "--byte-order", "le", "--packed"],
        ]
        .into_iter()
        .enumerate()
        {
            let there = home.path().join(number.to_string());
            good(&[&["convert", text(&trace), "-o", text(&there)], options].concat());
            let found = output(&["print", "--format", "json", text(&there)]);
            for (line, event) in expected.lines().zip(found.lines()) {
                let event: Value = serde_json::from_str(event).expect("JSON");
                let shown = event["payload"]["f7"].as_str().expect("text");
                assert!(line.contains(&format!("f7 = {shown},")), "{options:?}");
            }
            assert_eq!(found.lines().count(), expected.lines().count());
        }
    }
}

#[test]
fn other_commands_take_them_as_text() {
    let trace = data("le");
    let trace = text(&trace);
    good(&["check", trace]);
    good(&["stats", trace]);
    assert!(output(&["info", "--json", trace]).contains("\"u4096\""));
    let expected = fs::read_to_string(data("le.txt")).expect("text");
    let second = expected.lines().nth(1).expect("an event");
    let (_, rest) = second.split_once("f0 = ").expect("the field");
    let (value, _) = rest.split_once(',').expect("a value");
    let condition = format!("f0 == \"{value}\"");
    assert_eq!(
        output(&["print", "--where", &condition, trace]),
        format!("{second}\n")
    );
    let output = kymo(&["print", "--where", "f0 > 5", trace]);
    assert_ne!(output.status.code(), Some(0));
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        problem.contains("this is an integer of more than 64 bits"),
        "{problem}"
    );
}

#[test]
fn timelines_and_event_logs_have_them_as_text() {
    let home = TempDir::new().expect("a directory");
    let trace = data("timed");
    for (name, options) in [
        ("t.json", &["--to", "chrome"][..]),
        ("t.pftrace", &["--to", "perfetto"]),
        ("t.cpel", &["--to", "cpel", "--text"]),
        ("d.cpel", &["--to", "cpel", "--datum", "w"]),
        ("t.elog", &["--to", "elog"]),
    ] {
        let there = home.path().join(name);
        good(&[&["convert", text(&trace), "-o", text(&there)], options].concat());
        let written = fs::read(&there).expect("a file");
        let text = b"0x1FFFFFFFFFFFFFFFE";
        assert!(
            written.windows(text.len()).any(|part| part == text),
            "{name}"
        );
    }
}
