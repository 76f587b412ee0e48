//! Types that lie within each other: what they describe may be far more than what is there.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use common::{kymo, text};

/// A trace of CTF 1.8 with one event class of this payload, and a stream of these bytes.
fn trace(home: &Path, fields: &str, data: &[u8]) -> PathBuf {
    let trace = home.join("trace");
    fs::create_dir_all(&trace).expect("a directory");
    let metadata = format!(
        "/* CTF 1.8 */\n\
         typealias integer {{ size = 8; align = 8; }} := u8;\n\
         trace {{ major = 1; minor = 8; byte_order = le; }};\n\
         event {{ name = e; fields := struct {{ {fields} }}; }};\n"
    );
    fs::write(trace.join("metadata"), metadata).expect("metadata");
    fs::write(trace.join("s"), data).expect("a stream");
    trace
}

/// Every command that goes through the classes of a trace comes to its end: the product of the
/// lengths of arrays is not a number of steps.
#[test]
fn arrays_in_arrays_are_not_gone_through_where_they_are_not_there() {
    let twenty = "[20]".repeat(12);
    let most = "[4294967295]".repeat(4);
    for fields in [
        format!("struct {{ u8 a; }} x{twenty};"),
        format!("u8 x{most};"),
        format!("struct {{ u8 a[4294967295]; }} x{twenty};"),
        // With what needs no data at all.
        format!("struct {{ }} x{most};"),
        format!("u8 x{most}[0];"),
        format!("u8 n; struct {{ string s; u8 a[n]; }} x{twenty};"),
    ] {
        let home = TempDir::new().expect("a directory");
        let path = trace(home.path(), &fields, &[0; 64]);
        let path = text(&path);
        let outputs = [1, 2, 3, 4].map(|number| home.path().join(number.to_string()));
        let [one, two, three, four] = outputs.each_ref().map(|path| text(path));
        for arguments in [
            &["check", path][..],
            &["print", path],
            &["print", "--format", "json", path],
            &["print", "--format", "details", path],
            &["stats", path],
            &["info", path],
            &["convert", path, "--to", "ctf1.8", "-o", one],
            &["convert", path, "--to", "ctf2", "-o", two],
            &["convert", path, "--to", "ctf-rfc", "-o", three],
            &["repair", path, "-o", four],
        ] {
            let output = kymo(arguments);
            let code = output.status.code();
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                matches!(code, Some(0 | 1)),
                "{arguments:?}: {fields}: {problem}"
            );
        }
    }
}

/// Structures or arrays within each other, around an integer.
fn nested(is_array: bool, levels: usize) -> String {
    match is_array {
        true => format!("u8 x{};", "[1]".repeat(levels)),
        false => format!(
            "{}u8 x;{}",
            "struct { ".repeat(levels),
            " } f;".repeat(levels)
        ),
    }
}

#[test]
fn every_command_reads_2048_levels() {
    for is_array in [false, true] {
        let home = TempDir::new().expect("a directory");
        let path = trace(home.path(), &nested(is_array, 2048), b"B");
        // As babeltrace2 prints it.
        let (open, close) = match is_array {
            true => ("[ [0] = ", " ]"),
            false => ("f = { ", " }"),
        };
        let inner = match is_array {
            true => format!("x = {}66", open.repeat(2048)),
            false => format!("{}x = 66", open.repeat(2048)),
        };
        let expected = format!("e: {{ {inner}{} }}\n", close.repeat(2048));
        let printed = |path: &Path| {
            let output = kymo(&["print", text(path)]);
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert!(printed(&path) == expected, "{}", printed(&path));
        let path = text(&path);
        let outputs = [1, 2, 3, 4].map(|number| home.path().join(number.to_string()));
        let [one, two, three, four] = outputs.each_ref().map(|path| text(path));
        for arguments in [
            &["check", path][..],
            &["print", "--format", "json", path],
            &["print", "--format", "details", path],
            &["print", "--format", "csv", path],
            &["stats", path],
            &["info", path],
            &["convert", path, "--to", "ctf1.8", "-o", one],
            &["convert", path, "--to", "ctf2", "-o", two],
            &["convert", path, "--to", "ctf-rfc", "-o", three],
            &["repair", path, "-o", four],
        ] {
            let output = kymo(arguments);
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{arguments:?}: {problem}");
        }
        for output in &outputs[..2] {
            assert!(printed(output) == expected, "{}", printed(output));
        }
    }
}

#[test]
fn one_level_more_is_refused() {
    for is_array in [false, true] {
        let home = TempDir::new().expect("a directory");
        let path = trace(home.path(), &nested(is_array, 2049), b"B");
        let output = kymo(&["check", text(&path)]);
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_reported = problem.contains("types lie too deep within each other")
            && problem.contains("expected at most 2048 levels");
        assert!(!output.status.success() && is_reported, "{problem:.500}");
    }
}
