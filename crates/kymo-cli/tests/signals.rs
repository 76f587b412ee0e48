//! What signals, and limits, leave of files that are written.
#![cfg(unix)]

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use common::{example, good, text};

/// So often a run is tried again that ended before the signal came.
const TRIES: usize = 20;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_directory(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("copied")),
        }
    }
}

/// Directories of one trace, enough of them that reading takes a noticeable time.
fn traces(home: &Path, count: usize) -> PathBuf {
    let traces = home.join("in");
    for number in 0..count {
        let copy = traces.join(format!("t{number}"));
        copy_directory(&example("lttng-small"), &copy);
    }
    traces
}

/// Sends a signal, if the program is still there.
fn send(signal: Signal, child: &Child) -> bool {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number"));
    kill(pid, signal).is_ok()
}

/// How a run ended in whose directory a temporary file or directory was seen before the signal.
struct Signalled {
    status: ExitStatus,
    reported: String,
}

/// Runs a command and sends a signal as soon as a directory has a temporary entry whose name begins
/// like this.
fn signalled(mut command: Command, directory: &Path, begin: &str, signal: Signal) -> Signalled {
    for _ in 0..TRIES {
        let mut child = command
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo runs");
        let limit = Instant::now() + Duration::from_secs(60);
        let is_temporary = |name: &String| name.starts_with(begin) && name.ends_with(".new");
        let status = loop {
            assert!(Instant::now() < limit, "nothing temporary was seen");
            if names(directory).iter().any(is_temporary) {
                send(signal, &child);
                break child.wait().expect("it ends");
            }
            if let Some(status) = child.try_wait().expect("it may end") {
                break status;
            }
        };
        let mut reported = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut reported).expect("text");
        if status.signal().is_some() || status.code() != Some(0) {
            return Signalled { status, reported };
        }
    }
    panic!("{command:?} always ended before the signal");
}

fn kymo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    command.args(args);
    command
}

#[test]
fn a_file_that_is_written_is_removed() {
    let home = TempDir::new().expect("a directory");
    let traces = traces(home.path(), 60);
    let output = home.path().join("out.jsonl");
    fs::write(&output, "old").expect("written");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let args = ["convert", text(&traces), "-o", text(&output), "--force"];
        let run = signalled(kymo(&args), home.path(), ".out.jsonl.", signal);
        assert_eq!(run.status.signal(), Some(signal as i32), "{}", run.reported);
        assert_eq!(run.reported, "");
        assert_eq!(names(home.path()), ["in", "out.jsonl"], "{signal}");
        if fs::read(&output).expect("there") != b"old" {
            // The signal came just after the end.
            fs::write(&output, "old").expect("written");
        }
    }
}

#[test]
fn a_trace_that_is_written_is_removed() {
    let home = TempDir::new().expect("a directory");
    let traces = traces(home.path(), 60);
    for (command, more) in [
        ("convert", &["--to", "ctf2"][..]),
        ("convert", &["--to", "ctf2", "--separate"]),
        ("repair", &[]),
    ] {
        let output = home.path().join("out");
        let args = [
            &[command, text(&traces), "--force", "-o", text(&output)],
            more,
        ]
        .concat();
        let run = signalled(kymo(&args), home.path(), ".out.", Signal::SIGINT);
        assert_eq!(
            run.status.signal(),
            Some(Signal::SIGINT as i32),
            "{args:?}: {}",
            run.reported
        );
        let left = names(home.path());
        assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
        let _ = fs::remove_dir_all(output);
    }
}

#[test]
fn a_trace_that_is_overwritten_stays() {
    let home = TempDir::new().expect("a directory");
    let traces = traces(home.path(), 40);
    let output = home.path().join("out");
    let small = example("lttng-small");
    good(&["convert", text(&small), "-o", text(&output)]);
    let before = names(&output);
    let args = ["convert", text(&traces), "-o", text(&output), "--force"];
    let run = signalled(kymo(&args), home.path(), ".out.", Signal::SIGTERM);
    assert_eq!(
        run.status.signal(),
        Some(Signal::SIGTERM as i32),
        "{}",
        run.reported
    );
    assert_eq!(names(home.path()), ["in", "out"]);
    // The signal may have come when all was written, and nothing but the old one had to be removed.
    let is_new = names(&output).len() > before.len();
    assert!(is_new || names(&output) == before);
    good(&["check", text(&output)]);
}

/// A database of some 24 MB.
fn large(home: &Path) -> PathBuf {
    let path = home.join("large.rrd");
    let args = [
        "rrd",
        "create",
        text(&path),
        "--step",
        "1",
        "DS:a:GAUGE:9:U:U",
        "RRA:AVERAGE:0.5:1:3000000",
    ];
    good(&args);
    path
}

#[test]
fn a_database_that_is_converted_stays() {
    let home = TempDir::new().expect("a directory");
    let path = large(home.path());
    let before = fs::read(&path).expect("there");
    for args in [
        &[
            "rrd",
            "convert",
            text(&path),
            "--in-place",
            "--to",
            "powerpc",
        ][..],
        &["rrd", "tune", text(&path), "DS:b:GAUGE:9:U:U"],
    ] {
        let run = signalled(kymo(args), home.path(), ".large.rrd.", Signal::SIGINT);
        assert_eq!(
            run.status.signal(),
            Some(Signal::SIGINT as i32),
            "{args:?}: {}",
            run.reported
        );
        assert_eq!(names(home.path()), ["large.rrd"], "{args:?}");
        fs::write(&path, &before).expect("written");
    }
}

#[test]
fn signals_that_are_ignored_stay_so() {
    let home = TempDir::new().expect("a directory");
    let traces = traces(home.path(), 20);
    let output = home.path().join("out.jsonl");
    let mut command = Command::new("sh");
    // As `nohup` does.
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_kymo"), "convert", text(&traces)]);
    command.args(["--to", "jsonl", "-o", text(&output)]);
    let mut child = command.spawn().expect("sh runs");
    let is_temporary = |name: &String| name.starts_with(".out.");
    let mut hung_up = 0;
    let status = loop {
        if names(home.path()).iter().any(is_temporary) {
            hung_up += usize::from(send(Signal::SIGHUP, &child));
        }
        if let Some(status) = child.try_wait().expect("it may end") {
            break status;
        }
    };
    assert!(hung_up > 0);
    assert_eq!(status.code(), Some(0));
    assert_eq!(names(home.path()), ["in", "out.jsonl"]);
}

/// Runs the program with a limit of file sizes, in blocks of 512 bytes.
fn limited(blocks: u32, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("sh");
    let script = format!("ulimit -f {blocks}; exec \"$@\"");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_kymo")]);
    let output = command.args(args).output().expect("sh runs");
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), reported)
}

#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let home = TempDir::new().expect("a directory");
    let path = |name: &str| home.path().join(name);
    let small = example("lttng-small");
    let large = large(home.path());
    let output = path("out");
    let file = path("out.jsonl");
    let other = path("other.rrd");
    let before = fs::read(&large).expect("there");
    for (args, named) in [
        (&["convert", text(&small), "-o", text(&file)][..], &file),
        (&["convert", text(&small), "-o", text(&output)], &output),
        (&["repair", text(&small), "-o", text(&output)], &output),
        (&["rrd", "repair", text(&large), "-o", text(&other)], &other),
        (
            &[
                "rrd",
                "convert",
                text(&large),
                "--to",
                "powerpc",
                "-o",
                text(&other),
            ],
            &other,
        ),
        (
            &[
                "rrd",
                "convert",
                text(&large),
                "--to",
                "powerpc",
                "--in-place",
            ],
            &large,
        ),
        (&["rrd", "tune", text(&large), "DS:b:GAUGE:9:U:U"], &large),
        (&["rrd", "dump", text(&large), text(&file)], &file),
    ] {
        let (code, reported) = limited(8, args);
        assert_eq!(code, Some(1), "{args:?}: {reported}");
        assert!(reported.contains("File too large"), "{args:?}: {reported}");
        assert!(reported.contains(text(named)), "{args:?}: {reported}");
        assert_eq!(names(home.path()), ["large.rrd"], "{args:?}");
        assert!(fs::read(&large).expect("there") == before, "{args:?}");
    }
}

#[test]
fn an_update_beyond_a_limit_of_file_sizes_is_refused() {
    let home = TempDir::new().expect("a directory");
    for form in ["portable", "x86_64"] {
        let path = home.path().join(form);
        let mut create = kymo(&["rrd", "create", text(&path), "--start", "1600000000"]);
        create.args(["DS:a:GAUGE:900:U:U", "RRA:AVERAGE:0.5:1:9000"]);
        let created = create.env("KYMO_RRD_FORMAT", form).status();
        assert!(created.expect("kymo runs").success());
        let (code, reported) = limited(1, &["rrd", "update", text(&path), "1600000300:1"]);
        assert_eq!(code, Some(1), "{reported}");
        let expected = format!("ERROR: {}: File too large", text(&path));
        assert!(reported.starts_with(&expected), "{reported}");
        good(&["rrd", "check", text(&path)]);
        good(&["rrd", "update", text(&path), "1600000600:1"]);
    }
}
