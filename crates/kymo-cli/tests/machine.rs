//! `kymo machine`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program, run beside the data of the tests, with something on its standard input.
fn run(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(data())
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A run that does not read its input has ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("kymo ends")
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

/// Standard output of a run that must be good and silent.
fn good(args: &[&str], input: &str) -> String {
    let output = run(args, input);
    assert_eq!(text(output.stderr), "", "{args:?}");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    text(output.stdout)
}

/// Exit code and standard error of a run that writes nothing.
fn bad(args: &[&str], input: &str) -> String {
    let output = run(args, input);
    assert_eq!(text(output.stdout), "", "{args:?}");
    let code = output.status.code().expect("not killed");
    format!("{}\n=> {code}\n", text(output.stderr).trim_end())
}

/// The lines of a table of what real machines have written, without its head.
fn vectors(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-machine/tests/data");
    let table = std::fs::read_to_string(path.join(name)).expect("a table");
    let cut = |line: &str| line.split('\t').map(str::to_string).collect();
    table.lines().skip(1).map(cut).collect()
}

#[test]
fn doubles_of_real_machines() {
    let rows = vectors("float64.tsv");
    assert_eq!(rows.len(), 99);
    for row in rows {
        let [machine, value, bytes] = &row[..] else {
            panic!("{row:?}");
        };
        // One compiler has a name of its own for it.
        let printed = good(
            &["machine", "float", value, "--machine", machine, "--json"],
            "",
        );
        let expected = format!("\"value\":\"{value}\",\"bytes\":\"{bytes}\"}}\n");
        assert!(printed.ends_with(&expected), "{machine}: {printed}");
    }
}

#[test]
fn structs_of_real_machines() {
    let rows = vectors("struct-layout.tsv");
    assert_eq!(rows.len(), 20);
    for row in rows {
        let [machine, name, size, bytes] = &row[..] else {
            panic!("{row:?}");
        };
        let args = ["machine", "layout", "format.h", "--machine", machine];
        let args = [&args[..], &["--values", "values.json", "--json"]].concat();
        let printed = good(&args, "");
        let found = printed
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .find(|line: &serde_json::Value| line["struct"] == *name)
            .expect("the struct");
        assert_eq!(found["size"].to_string(), *size, "{machine} {name}");
        assert_eq!(found["bytes"], *bytes, "{machine} {name}");
    }
}

#[test]
fn help() {
    let mut pages = String::new();
    for command in [&[][..], &["list"], &["float"], &["layout"]] {
        let args = [&["help", "machine"], command].concat();
        pages += &format!("$ kymo {}\n{}\n", args.join(" "), good(&args, ""));
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn list() {
    insta::assert_snapshot!(good(&["machine", "list"], ""));
    for line in good(&["machine", "list", "--json"], "").lines() {
        let machine: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for (key, is_right) in [
            ("machine", machine["machine"].is_string()),
            ("aliases", machine["aliases"].is_array()),
            ("time_t", matches!(machine["time_t"].as_u64(), Some(4 | 8))),
        ] {
            assert!(is_right, "{key}: {line}");
        }
    }
}

#[test]
fn float() {
    let values = ["-0x1.8p3", "NaN"];
    let all = good(&[&["machine", "float"], &values[..]].concat(), "");
    let json = good(
        &[
            "machine",
            "float",
            "-1",
            "--machine",
            "ARM64",
            "--json",
            "-nan",
        ],
        "",
    );
    let wrong = bad(&["machine", "float", "1", "--frob"], "")
        + &bad(&["machine", "float", "12 monkeys"], "")
        + &bad(&["machine", "float", "1", "--machine", "pdp11"], "");
    insta::assert_snapshot!(format!("{all}\n{json}\n{wrong}"));
}

const NESTED: &str = "\
struct entry {
    char name[6];
    union { unsigned long u_cnt; double u_val; } par[2];
    struct { int8_t x; float y[2][2]; } inner[2];
    time_t when;
    enum { LOW = -1, HIGH = 7 } level;
    const char *text;
};
";

#[test]
fn layout() {
    let args = |machine| ["machine", "layout", "-", "--machine", machine];
    let x86 = good(&args("x86-time64"), NESTED);
    let sparc = good(&args("sparc64"), NESTED);
    let json = good(&[&args("m68k")[..], &["--json"]].concat(), NESTED);
    insta::assert_snapshot!(format!("{x86}\n{sparc}\n{json}"));
}

#[test]
fn layout_with_values() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("values.json");
    let path = path.to_str().expect("UTF-8");
    let args = [
        "machine",
        "layout",
        "-",
        "--machine",
        "ppc",
        "--values",
        path,
    ];
    let values = r#"{
        "name": "abc", "par": [{"u_cnt": 5}, {"u_val": "nan"}],
        "inner": [{"x": -2, "y": [[1, 0.5], [-1]]}, {"y": [["inf"]]}],
        "when": -1, "level": "LOW"
    }"#;
    std::fs::write(path, values).expect("written");
    let mut shown = good(&args, NESTED);
    for (declarations, values) in [
        (NESTED, "{\"name\": \"abc\",\n \"when\": 1,}"),
        (NESTED, "[]"),
        (NESTED, r#"{"nam": 1}"#),
        (NESTED, r#"{"inner": [{}, {"z": 1}]}"#),
        (NESTED, r#"{"inner": [{}, {}, {}]}"#),
        (NESTED, r#"{"inner": [{"x": 128}]}"#),
        (NESTED, r#"{"inner": [{"y": 1}]}"#),
        (NESTED, r#"{"name": "abcdef"}"#),
        (NESTED, r#"{"name": 1}"#),
        (NESTED, r#"{"par": [{"u_cnt": -1}]}"#),
        (NESTED, r#"{"par": [{"u_val": "many"}]}"#),
        (NESTED, r#"{"level": "MIDDLE"}"#),
        (NESTED, r#"{"when": 4294967296}"#),
        ("struct s { char c[0x1000001]; };", "{}"),
    ] {
        std::fs::write(path, values).expect("written");
        let said = bad(&args, declarations).replace(path, "values.json");
        shown += &format!("\n{values}\n{said}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn wrong_declarations_are_shown() {
    let args = ["machine", "layout", "-", "--machine", "x86_64"];
    let mut said = String::new();
    for text in [
        "struct s {\n    int count;\n    foo_t foo;\n};\n",
        "struct s { char c[0x7fffffffffffffff], d; };",
        "int x;",
    ] {
        said += &bad(&args, text);
    }
    said += &bad(
        &["machine", "layout", "missing.h", "--machine", "x86_64"],
        "",
    )
    .replace(env!("CARGO_MANIFEST_DIR"), "DIR");
    said += &bad(&["machine", "layout", "format.h"], "");
    insta::assert_snapshot!(said);
}
