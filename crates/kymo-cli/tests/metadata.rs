//! What the program makes of metadata that is unusual, odd or wrong.

mod common;

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use common::{kymo, text};

const HEAD: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int;
typealias integer { size = 16; align = 16; signed = true; } := short;
trace { major = 1; minor = 8; byte_order = le; };
";

/// A trace of one packet.
fn trace(home: &TempDir, metadata: &str, stream: &[u8]) -> PathBuf {
    let path = home.path().join("trace");
    fs::create_dir_all(&path).expect("a directory");
    fs::write(path.join("metadata"), format!("{HEAD}{metadata}")).expect("metadata");
    fs::write(path.join("stream"), stream).expect("a stream");
    path
}

/// The events of a trace, which is read without a word on standard error.
fn printed(home: &TempDir, metadata: &str, stream: &[u8]) -> String {
    let output = kymo(&["print", text(&trace(home, metadata, stream))]);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && reported.is_empty(), "{reported}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_typedef_keeps_its_tag_and_its_length() {
    let home = TempDir::new().expect("a directory");
    let tag = "enum : uint8_t { a = 1, b = 2 } x;";
    assert_eq!(
        printed(
            &home,
            &format!(
                "event {{ name = e; fields := struct {{
                   {tag}
                   typedef variant <x> {{ uint32_t a; int b; }} ev;
                   struct {{ {tag} ev v; }} arr[1];
                 }}; }};"
            ),
            b"\x02\x01\xff\xff\xff\xff",
        ),
        "e: { x = ( \"b\" : container = 2 ), \
         arr = [ [0] = { x = ( \"a\" : container = 1 ), v = { -1 } } ] }\n"
    );
    assert_eq!(
        printed(
            &home,
            "event { name = e; fields := struct {
               uint8_t len;
               typedef struct { uint8_t A[len]; } F;
               struct { uint8_t len; F x; } field;
             }; };",
            b"\x02\x03ab\x00\x07",
        ),
        "e: { len = 2, field = { len = 3, x = { A = [ [0] = 97, [1] = 98 ] } } }\n\
         e: { len = 0, field = { len = 7, x = { A = [ ] } } }\n"
    );
}

#[test]
fn bit_fields_and_declarators_of_c() {
    let home = TempDir::new().expect("a directory");
    assert_eq!(
        printed(
            &home,
            "typealias uint8_t := t4[4]; event { name = e; fields := struct { t4 a; }; };",
            b"abcdefgh",
        ),
        "e: { a = [ [0] = 97, [1] = 98, [2] = 99, [3] = 100 ] }\n\
         e: { a = [ [0] = 101, [1] = 102, [2] = 103, [3] = 104 ] }\n"
    );
    // As a C compiler lays it out: `b` does not fit in the unit of `a`.
    let bits = "event { name = e; fields := struct { short a : 12; short b : 5, c : 4; }; };";
    let stream = b"\xff\x07\x4f\x01\x00\x08\xb0\x00";
    let expected = "e: { a = 2047, b = 15, c = -6 }\ne: { a = -2048, b = -16, c = 5 }\n";
    assert_eq!(printed(&home, bits, stream), expected);
    let big = "typealias integer { size = 16; align = 16; byte_order = be; } := word;
               event { name = e; fields := struct { word a : 12; word b : 5, c : 4; }; };";
    let stream = b"\x12\x3f\x28\xff";
    assert_eq!(
        printed(&home, big, stream),
        "e: { a = 291, b = 5, c = 1 }\n"
    );

    // In every dialect, the values stay.
    let path = trace(&home, bits, b"\xff\x07\x4f\x01\x00\x08\xb0\x00");
    for dialect in ["ctf1.8", "ctf2", "ctf-rfc"] {
        let there = home.path().join(dialect);
        let output = kymo(&["convert", text(&path), "--to", dialect, "-o", text(&there)]);
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{dialect}: {reported}");
        let output = kymo(&["print", text(&there), "--no-delta"]);
        let shown = String::from_utf8(output.stdout).expect("text");
        let shown: String = shown
            .lines()
            .map(|line| format!("{}\n", &line[line.find("e: ").expect("an event")..]))
            .collect();
        assert_eq!(shown, expected, "{dialect}");
    }
}

#[test]
fn a_tag_in_an_array_is_refused() {
    let home = TempDir::new().expect("a directory");
    let path = trace(
        &home,
        "event { name = e; fields := struct {
           struct { enum : uint8_t { a, b } tag; } zop[2];
           variant <zop.tag> { string a; string b; } var;
         }; };",
        b"\x01\x00hello\x00",
    );
    let output = kymo(&["print", text(&path)]);
    assert_eq!(output.status.code(), Some(3));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(reported.contains("`zop.tag` is in an array"), "{reported}");
    assert!(reported.contains("metadata:9:21"), "{reported}");
}

#[test]
fn strict_takes_warnings_of_metadata_for_errors() {
    let home = TempDir::new().expect("a directory");
    let path = trace(
        &home,
        "event { name = e; odd = 3; fields := struct { uint8_t a; }; };",
        b"ab",
    );
    let there = home.path().join("there");
    for command in [
        &["print"][..],
        &["check"],
        &["stats"],
        &["stats", "--by-track"],
        &["convert", "--to", "ctf2", "-o", text(&there)],
        &["convert", "--to", "perfetto", "-o", text(&there)],
    ] {
        let output = kymo(&[command, &[text(&path)]].concat());
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(
            reported.starts_with("warning: unknown attribute `odd`"),
            "{command:?}: {reported}"
        );
        assert_eq!(output.status.code(), Some(0), "{command:?}: {reported}");
        if there.is_dir() {
            fs::remove_dir_all(&there).expect("removed");
        } else if there.exists() {
            fs::remove_file(&there).expect("removed");
        }

        let output = kymo(&[command, &[text(&path), "--strict"]].concat());
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(
            reported.starts_with("error: unknown attribute `odd`"),
            "{command:?}: {reported}"
        );
        assert_eq!(output.status.code(), Some(1), "{command:?}: {reported}");
        assert!(output.stdout.is_empty() && !there.exists(), "{command:?}");
    }
}
