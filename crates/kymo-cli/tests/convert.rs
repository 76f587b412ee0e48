//! `kymo convert`, the program as a whole, on the recordings of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A real LTTng trace of the repository.
const SMALL: &str = "lttng-small";
const EVENTS: usize = 3000;
/// One in which events were discarded.
const DISCARDED: &str = "lttng-discarded";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The program, run beside the examples in UTC.
fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(examples())
        .env("TZ", "UTC")
        .env("COLUMNS", "100")
        .env_remove("KYMO_RRD_FORMAT")
        .stdin(Stdio::null())
        .output()
        .expect("kymo runs")
}

/// Standard output of a run that must be good and silent.
fn good(args: &[&str]) -> Vec<u8> {
    let output = run(args);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (reported.as_ref(), output.status.code()),
        ("", Some(0)),
        "{args:?}"
    );
    output.stdout
}

/// Exit code and standard error, without the paths of the machine.
fn reported(args: &[&str], dir: &TempDir) -> (i32, String) {
    let output = run(args);
    assert_eq!(output.stdout, b"", "{args:?}");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    let text = text.replace(dir.path().to_str().expect("UTF-8"), "DIR");
    (output.status.code().expect("not killed"), text)
}

fn directory() -> TempDir {
    TempDir::new().expect("a directory for the test")
}

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().expect("UTF-8").to_string()
}

#[test]
fn help_is_complete() {
    let help = String::from_utf8(good(&["help", "convert"])).expect("UTF-8");
    insta::assert_snapshot!(help);
}

#[test]
fn lines_are_those_of_print() {
    let dir = directory();
    for (ending, format) in [("jsonl", "json"), ("csv", "csv")] {
        let output = path(&dir, &format!("all.{ending}"));
        let filter = ["--event", "demo:i*", "--where", "cpu_id == 1"];
        for filter in [&filter[..], &["--event", "demo:sched"], &[]] {
            let convert = [&["convert", SMALL, "-o", &output, "--force"], filter].concat();
            let print = [&["print", SMALL, "--format", format], filter].concat();
            assert_eq!(good(&convert), b"");
            assert!(
                fs::read(&output).expect("a file") == good(&print),
                "{convert:?}"
            );
        }
        let to_stdout = good(&["convert", SMALL, "-o", "-", "--to", ending]);
        assert!(to_stdout == fs::read(&output).expect("a file"));
    }
}

#[test]
fn every_event_is_in_chrome_json() {
    let args = [
        "convert", SMALL, "-o", "-", "--to", "chrome", "--track", "cpu_id",
    ];
    let json: serde_json::Value = serde_json::from_slice(&good(&args)).expect("JSON");
    let events = json["traceEvents"].as_array().expect("an array");
    let of_phase = |phase: &str| events.iter().filter(|event| event["ph"] == *phase).count();
    assert_eq!(of_phase("i"), EVENTS);
    let lines = good(&["print", SMALL, "--format", "json"]);
    let lines = lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    let instants = events.iter().filter(|event| event["ph"] == "i");
    for (line, event) in lines.zip(instants) {
        let line: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        assert_eq!(line["payload"], event["args"]["payload"]);
        assert_eq!(line["event"], event["name"]);
    }
}

#[test]
fn a_perfetto_trace_does_not_depend_on_threads() {
    let dir = directory();
    let mut traces = Vec::new();
    for threads in ["1", "3"] {
        let output = path(&dir, &format!("{threads}.pftrace"));
        let slices = r"demo\:ints:demo\:floats";
        good(&[
            "convert",
            SMALL,
            "-o",
            &output,
            "--threads",
            threads,
            "--slice",
            slices,
        ]);
        traces.push(fs::read(&output).expect("a file"));
    }
    assert!(traces[0] == traces[1]);
    // Each packet is a field 1 of the trace.
    assert_eq!(traces[0][0], 0x0a);
}

#[test]
fn what_is_there_stays() {
    let dir = directory();
    let output = path(&dir, "a.csv");
    fs::write(&output, "mine").expect("a file");
    insta::assert_debug_snapshot!(reported(&["convert", SMALL, "-o", &output], &dir));
    assert_eq!(fs::read(&output).expect("a file"), b"mine");
    good(&["convert", SMALL, "-o", &output, "-f"]);
    assert!(fs::read(&output).expect("a file").len() > 100_000);
}

#[test]
fn wrong_command_lines_are_reported() {
    let dir = directory();
    let output = |name: &str| path(&dir, name);
    let (json, trace, rrd, cpel) = (
        output("a.json"),
        output("a.pftrace"),
        output("a.rrd"),
        output("a.cpel"),
    );
    let nowhere = output("none/a.csv");
    let mut text = String::new();
    for args in [
        &["-o", &json][..],
        &["-o", "-"],
        &["-o", "-", "--to", "rrd"],
        &["-o", &trace, "--count"],
        &["-o", &trace, "--slice", "a"],
        &["-o", &trace, "--counter", "a"],
        &["-o", &trace, "--counter", "demo*:u9"],
        &["-o", &trace, "--flow", "cpu-id"],
        &["-o", &trace, "--track", "cpu"],
        &[
            "-o", &json, "--to", "chrome", "--flow", "u8", "--flow", "u16",
        ],
        &["-o", &rrd, "--step", "1s"],
        &["-o", &rrd, "--count"],
        &["-o", &rrd, "--count", "--step", "1ms"],
        &["-o", &rrd, "--count", "--step", "1s", "--cf", "MAX"],
        &["-o", &rrd, "--value", "u9", "--step", "1s"],
        &["-o", &cpel],
        &["-o", &cpel, "--datum", "nothing"],
        &["-o", &nowhere],
    ] {
        let args = [&["convert", SMALL], args].concat();
        let (code, error) = reported(&args, &dir);
        let shown = args
            .join(" ")
            .replace(dir.path().to_str().expect("UTF-8"), "DIR");
        text += &format!("$ kymo {shown}\n{code}\n{error}\n");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
    insta::assert_snapshot!(text);
}

#[test]
fn patterns_that_match_nothing_are_reported() {
    let dir = directory();
    let output = path(&dir, "a.pftrace");
    let args = [
        "convert",
        SMALL,
        "-o",
        &output,
        "--slice",
        r"demo\:int:demo\:floats",
    ];
    insta::assert_debug_snapshot!(reported(&args, &dir));
}

#[test]
fn counts_are_a_database() {
    let dir = directory();
    let output = path(&dir, "a.rrd");
    let args = [
        "convert", SMALL, "-o", &output, "--step", "1m", "--count", "--track", "cpu_id",
    ];
    insta::assert_debug_snapshot!(reported(&args, &dir));
    let lines = good(&["print", &output, "--format", "json"]);
    let line: serde_json::Value = serde_json::from_slice(&lines).expect("one line");
    let payload = line["payload"].as_object().expect("an object");
    let count: f64 = payload.values().filter_map(serde_json::Value::as_f64).sum();
    assert_eq!(count, EVENTS as f64);
    // As a counter again.
    let again = path(&dir, "again.pftrace");
    good(&["convert", &output, "-o", &again]);
    assert!(fs::metadata(&again).expect("a file").len() > 100);
}

#[test]
fn logs_are_copied_and_written() {
    let dir = directory();
    let (text, copy, other) = (
        path(&dir, "t.cpel"),
        path(&dir, "c.cpel"),
        path(&dir, "o.cpel"),
    );
    good(&["convert", SMALL, "-o", &text, "--text", "--track", "cpu_id"]);
    let lines = good(&["print", "--format", "json", &text]);
    assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count(), EVENTS);
    let first = lines
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let first: serde_json::Value = serde_json::from_slice(first).expect("JSON");
    assert_eq!(first["track_name"], "cpu_id 1");
    assert!(
        first["text"]
            .as_str()
            .expect("text")
            .starts_with("cpu_id=1 u8=1 s8=1 u16=1 s16=-1")
    );

    good(&["convert", &text, "-o", &copy]);
    assert!(fs::read(&text).expect("a file") == fs::read(&copy).expect("a file"));
    good(&["convert", &text, "-o", &other, "--byte-order", "little"]);
    assert_eq!(fs::read(&other).expect("a file")[0], 0x81);
    let renamed = |path: &str| good(&["print", path]);
    assert!(renamed(&text) == renamed(&other));
    // The selected events are written to a new file, and keep their times, tracks and codes.
    good(&[
        "convert",
        &other,
        "-o",
        &copy,
        "-f",
        "--where",
        "track == 1",
    ]);
    let chosen = ["--format", "json", "--where", "track == 1"];
    let events_of = |path: &str| {
        let lines = good(&[&["print", path], &chosen[..]].concat());
        let lines = String::from_utf8(lines).expect("UTF-8").replace(path, "");
        let lines = lines.lines().map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            // Strings lie where they did not before.
            line["datum"] = 0.into();
            line
        });
        lines.collect::<Vec<_>>()
    };
    assert!(events_of(&copy) == events_of(&other) && events_of(&copy).len() > 100);
}

#[test]
fn damage_is_reported_and_skipped() {
    let dir = directory();
    let trace = dir.path().join("trace");
    fs::create_dir(&trace).expect("a directory");
    for entry in fs::read_dir(examples().join(SMALL).join("ust/uid/0/64-bit")).expect("files") {
        let file = entry.expect("an entry").path();
        if file.is_file() {
            fs::copy(&file, trace.join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
    let stream = trace.join("r_0");
    let bytes = fs::read(&stream).expect("a file");
    fs::write(&stream, &bytes[..bytes.len() - 5000]).expect("a file");
    let (trace, output) = (trace.to_str().expect("UTF-8"), path(&dir, "a.jsonl"));
    let strict = run(&["convert", trace, "-o", &output, "--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(!Path::new(&output).exists());
    let skipped = run(&["convert", trace, "-o", &output]);
    assert_eq!(skipped.status.code(), Some(1));
    let print = run(&["print", "--format", "json", trace]);
    assert!(fs::read(&output).expect("a file") == print.stdout);
    assert_eq!(skipped.stderr, print.stderr);
}

#[test]
fn what_a_recorder_lost_is_reported() {
    let dir = directory();
    let output = path(&dir, "a.pftrace");
    let (code, warnings) = reported(&["convert", DISCARDED, "-o", &output], &dir);
    assert_eq!(code, 0);
    assert!(
        warnings.contains("WARNING: Tracer discarded "),
        "{warnings}"
    );
}
