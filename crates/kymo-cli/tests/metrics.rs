//! Datagrams of collectd with the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

fn packet(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kymo-collectd/tests/data/packets")
        .join(name)
}

/// Exit code, standard output and standard error.
fn run(args: &[&str], paths: &[PathBuf]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .args(paths)
        .output()
        .expect("kymo runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A file with the passwords of the recorded datagrams.
fn auth_file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "alice: s3cret pass\nbob: hunter2\n").expect("written");
    file
}

/// The lines that the table of expected values calls for, without time and path.
fn expected(name: &str, number: usize) -> Vec<Value> {
    let table =
        std::fs::read_to_string(packet(&format!("{name}.expected.jsonl"))).expect("a table");
    let line: Value =
        serde_json::from_str(table.lines().nth(number).expect("a line")).expect("JSON");
    let security = match name {
        "plain" => "none",
        "signed" => "sign",
        _ => "encrypt",
    };
    let lines = line["decoded"].as_array().expect("a list").iter();
    let lines = lines.filter(|item| !item["vl"].is_null()).map(|item| {
        let values = item["values"].as_array().expect("a list").iter();
        let values: Vec<Value> = values
            .map(|value| match value[1].as_str() {
                Some(text) => json!([value[0], text.parse::<f64>().expect("a number")]),
                None => value.clone(),
            })
            .collect();
        json!({
            "kind": "sample", "cdtime": item["time"], "interval": item["interval"],
            "id": item["vl"], "values": values, "security": security,
        })
    });
    lines.collect()
}

#[test]
fn values_are_lines_of_json() {
    let auth = auth_file();
    let auth = auth.path().to_str().expect("UTF-8");
    for name in ["plain", "signed", "encrypted"] {
        for number in [0, 2, 19] {
            let path = packet(&format!("{name}-{number:04}.bin"));
            let args = ["print", "--format", "json", "--auth-file", auth];
            let (code, out, err) = run(&args, std::slice::from_ref(&path));
            assert_eq!((code, err.as_str()), (Some(0), ""));
            let mut found: Vec<Value> = Vec::new();
            for line in out.lines() {
                let mut line: Value = serde_json::from_str(line).expect("JSON");
                let object = line.as_object_mut().expect("an object");
                assert_eq!(object.remove("recording"), Some(json!(path)));
                assert_eq!(object.remove("schema"), Some(json!(1)));
                assert!(object.remove("timestamp").expect("a time").is_i64());
                found.push(line);
            }
            let mut expected = expected(name, number);
            expected.sort_by_key(|line| line["cdtime"].as_u64());
            assert_eq!(found, expected, "{name} {number}");
        }
    }
}

#[test]
fn the_keys_have_their_order() {
    let path = packet("plain-0000.bin");
    let (_, out, _) = run(
        &["print", "--format", "json", "--limit", "1"],
        std::slice::from_ref(&path),
    );
    let expected = format!(
        "{{\"timestamp\":1795251889758744326,\"recording\":\"{}\",\"kind\":\"sample\",\"schema\":1,\
         \"cdtime\":1927637038649001053,\"interval\":107374182,\
         \"id\":\"host.example/memory/memory-used\",\"values\":[[\"GAUGE\",1992908800.0]],\
         \"security\":\"none\"}}\n",
        path.display()
    );
    assert_eq!(out, expected);
    let path = packet("plain-0001.bin");
    let (_, out, _) = run(&["print", "--format", "json"], std::slice::from_ref(&path));
    let expected = format!(
        "{{\"timestamp\":1795251889771794558,\"recording\":\"{}\",\"kind\":\"event\",\"schema\":1,\
         \"cdtime\":1927637038663013632,\"severity\":\"WARNING\",\"id\":\"host.example/exec/\",\
         \"message\":\"note number 0\",\"security\":\"none\"}}\n",
        path.display()
    );
    assert_eq!(out, expected);
}

#[test]
fn other_ways_to_show_them() {
    let paths = [packet("plain-0000.bin"), packet("plain-0001.bin")];
    let condition = "id ~ \"*/load/*\" or message contains \"note\"";
    let (code, out, _) = run(&["print", "--clock-gmt", "--where", condition], &paths);
    assert_eq!(code, Some(0));
    let [first, second] = [&paths[0], &paths[1]].map(|path| path.display());
    let expected = format!(
        "[09:04:49.758903936] (+?.?????????) {first}: values: {{ cdtime = 1927637038649172432, \
         interval = 107374182, id = \"host.example/load/load\", values = [ [0] = {{ 6.77002 }}, \
         [1] = {{ 4.18799 }}, [2] = {{ 1.76221 }} ], security = \"none\" }}\n\
         [09:04:49.771794558] (+0.012890622) {second}: notification: {{ cdtime = 1927637038663013632, \
         severity = \"WARNING\", id = \"host.example/exec/\", message = \"note number 0\", \
         security = \"none\" }}\n"
    );
    assert_eq!(out, expected);
    let (_, out, _) = run(
        &[
            "print", "--format", "csv", "--event", "values", "--limit", "1",
        ],
        &paths,
    );
    let lines: Vec<_> = out.lines().collect();
    assert!(
        lines[0].ends_with(",cdtime,interval,id,values,security"),
        "{out}"
    );
    assert!(
        lines[1].ends_with(",host.example/memory/memory-used,[1992908800.0],none"),
        "{out}"
    );
}

#[test]
fn what_cannot_be_opened_or_verified_is_reported() {
    let (code, out, err) = run(&["print"], &[packet("encrypted-0000.bin")]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.contains("1 encrypted part, and there are no keys (`--auth-file`)"),
        "{err}"
    );
    let (code, out, err) = run(&["print"], &[packet("signed-0000.bin")]);
    assert_eq!((code, out.lines().count()), (Some(0), 26));
    assert!(err.contains("1 signatures were not verified"), "{err}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "alice\n").expect("written");
    let auth = file.path().to_str().expect("UTF-8");
    let (code, _, err) = run(
        &["print", "--auth-file", auth],
        &[packet("signed-0000.bin")],
    );
    assert_eq!(code, Some(2));
    assert!(err.contains("line 1: expected `USER: PASSWORD`"), "{err}");
}

#[test]
fn reports() {
    let path = packet("plain-0000.bin");
    let (code, out, _) = run(&["info", "--json"], std::slice::from_ref(&path));
    assert_eq!(code, Some(0));
    let info: Value = serde_json::from_str(&out).expect("JSON");
    let recording = &info["recordings"][0];
    assert_eq!(recording["format"], "collectd");
    assert_eq!(recording["version"], "datagram");
    assert_eq!(recording["value_lists"], 26);
    assert_eq!(recording["file_bytes"], 1340);
    let (_, out, _) = run(&["info"], std::slice::from_ref(&path));
    assert!(out.contains("value lists    26\n"), "{out}");
    let (code, out, _) = run(&["check"], &[path]);
    assert_eq!(code, Some(0));
    assert!(out.contains("events              26\n"), "{out}");
    assert!(out.ends_with("\nOK\n"), "{out}");
}
