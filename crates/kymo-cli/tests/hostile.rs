//! The program on recordings that were made to harm it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What metadata begins with here.
const HEAD: &str = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
typealias integer { size = 8; } := u8;
typealias integer { size = 16; } := u16;
typealias integer { size = 32; } := u32;
typealias integer { size = 64; } := u64;
";

/// A trace with one data stream file.
fn trace(metadata: &str, stream: &[u8]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), metadata, stream);
    directory
}

fn write(directory: &Path, metadata: &str, stream: &[u8]) {
    fs::write(directory.join("metadata"), format!("{HEAD}{metadata}")).expect("metadata written");
    fs::write(directory.join("stream"), stream).expect("stream written");
}

/// Exit code, standard output, standard error of a program that has a minute to end.
fn end_of(command: &mut Command) -> (i32, String, String) {
    let out = tempfile::NamedTempFile::new().expect("a temporary file");
    let err = tempfile::NamedTempFile::new().expect("a temporary file");
    let mut child = command
        .env("TZ", "UTC")
        .env_remove("BABELTRACE_TERM_COLOR")
        .stdin(Stdio::null())
        .stdout(out.reopen().expect("a temporary file"))
        .stderr(err.reopen().expect("a temporary file"))
        .spawn()
        .expect("kymo runs");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("kymo can be waited for") {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().expect("kymo can be killed");
            panic!("kymo does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |path: &Path| {
        String::from_utf8_lossy(&fs::read(path).expect("a temporary file")).into_owned()
    };
    let (out, err) = (read(out.path()), read(err.path()));
    (
        status.code().unwrap_or_else(|| panic!("{status}: {err}")),
        out,
        err,
    )
}

fn run(directory: &TempDir, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    end_of(command.args(args).arg(directory.path()))
}

#[test]
fn magic_numbers_everywhere_end_the_search() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let metadata = "trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
            integer { size = 32; } magic; string s;
        }; };
        event { name = e; fields := struct { integer { size = 8; } x; }; };";
    fs::write(directory.path().join("metadata"), metadata).expect("metadata written");
    let stream = 0xC1FC_1FC1u32.to_le_bytes().repeat(1 << 20);
    fs::write(directory.path().join("stream"), stream).expect("stream written");
    let (code, out, _) = run(&directory, &["check"]);
    assert_eq!(code, 1);
    assert!(
        out.contains("what follows in the file is left out"),
        "{out}"
    );
}

#[test]
fn headers_do_not_multiply_with_events() {
    let fields: String = (0..3000).map(|field| format!("u8 f{field};")).collect();
    let events: String = (0..3000)
        .map(|id| format!("event {{ name = e; id = {id}; fields := struct {{ u8 x; }}; }};\n"))
        .collect();
    let metadata =
        format!("stream {{ event.header := struct {{ u16 id; {fields} }}; }};\n{events}");
    let (code, _, err) = run(&trace(&metadata, b"abc"), &["check"]);
    assert_eq!(code, 3);
    assert!(err.contains("the classes have more than"), "{err}");
}

#[test]
fn small_data_makes_no_endless_text() {
    let name = "n".repeat(200_000);
    let metadata = format!(
        "event {{ name = e; fields := struct {{ u16 n; struct {{ u8 {name}; }} list[n]; }}; }};"
    );
    // The second event would be a text of 6 GB.
    let mut stream = vec![1, 0, 7, 0x30, 0x75];
    stream.extend([7; 30_000]);
    let directory = trace(&metadata, &stream);
    for format in ["pretty", "details", "json", "csv"] {
        let (code, out, err) = run(&directory, &["print", "--format", format]);
        assert_eq!(code, 1);
        assert!(
            err.contains("event 1: the event would be shown as a text of more than"),
            "{err}"
        );
        // The event before it is whole.
        assert!(out.contains(&name) && out.len() < 1_000_000, "{format}");
    }
}

#[test]
fn counters_may_say_anything() {
    let metadata = "clock { name = c; freq = 1000; };
        typealias integer { size = 64; map = clock.c.value; } := ticks;
        stream {
            packet.context := struct {
                u64 packet_size; ticks timestamp_begin; ticks timestamp_end;
                u64 events_discarded; u64 packet_seq_num;
            };
            event.header := struct { ticks timestamp; };
        };
        event { name = e; fields := struct { u8 x; }; };";
    let packet = |begin: u64, count: u64| {
        let words = [320, begin, begin + 1, count, count];
        words.map(u64::to_le_bytes).concat()
    };
    let stream = [packet(0, 0), packet(1, u64::MAX)].concat();
    let directory = trace(metadata, &stream);
    fs::write(directory.path().join("another"), &stream).expect("stream written");
    for command in ["info", "stats", "check"] {
        let (code, out, err) = run(&directory, &[command]);
        assert_eq!((code, &*err), (0, ""));
        assert!(out.contains("18,446,744,073,709,551,615"), "{out}");
    }
}

#[test]
fn names_cannot_command_a_terminal() {
    let metadata = r#"
        env { hostname = "host\x1b[31m\n"; tracer_name = "a\x1b]0;evil\x07"; };
        event { name = "e\x1b[2J\nv"; fields := struct { u8 x; u8 y; }; };"#;
    let directory = trace(metadata, b"abc");
    for args in [
        &["print"][..],
        &["info"],
        &["info", "--schema"],
        &["stats"],
        &["check"],
    ] {
        let (_, out, err) = run(&directory, args);
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!out.contains(is_control), "{args:?}: {out}");
        assert!(!err.contains(is_control), "{args:?}: {err}");
    }
    let (_, out, _) = run(&directory, &["print"]);
    assert_eq!(
        out,
        "host\\x1b[31m\\x0a e\\x1b[2J\\x0av: { x = 97, y = 98 }\n"
    );
}

#[test]
fn names_may_be_long() {
    let name = "n".repeat(100_000);
    let metadata = format!("event {{ name = \"{name}\"; fields := struct {{ u8 x; }}; }};");
    let directory = trace(&metadata, b"abc");
    for command in ["info", "stats", "print"] {
        let (code, out, err) = run(&directory, &[command]);
        assert_eq!((code, &*err), (0, ""));
        assert!(out.contains(&name) && out.len() < 500_000);
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_back_are_followed_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for link in ["a", "b", "c"] {
        std::os::unix::fs::symlink(".", directory.path().join(link)).expect("a link");
    }
    let inner = directory.path().join("trace");
    fs::create_dir(&inner).expect("a directory");
    write(
        &inner,
        "event { name = e; fields := struct { u8 x; }; };",
        b"abc",
    );
    for args in [&["print"][..], &["print", "--follow", "--limit", "3"]] {
        let (code, out, _) = run(&directory, args);
        assert_eq!((code, out.lines().count()), (0, 3));
    }
}
