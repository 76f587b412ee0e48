//! `kymo rrd` on files and directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// A database that some machine has written.
fn database(machine: &str, name: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-rrd/tests/data");
    fs::read(data.join(machine).join(name)).expect("test data")
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn kymo(directory: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kymo"))
        .current_dir(directory.path())
        .args(args)
        .output()
        .expect("kymo runs")
}

/// Runs kymo, which must end well, and returns what it writes to standard error.
fn good(directory: &TempDir, args: &[&str]) -> String {
    let output = kymo(directory, args);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {reported}");
    reported
}

/// Runs kymo, which must fail and not be killed, and returns what it writes to standard error.
fn bad(directory: &TempDir, args: &[&str]) -> String {
    let output = kymo(directory, args);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    assert!(code.is_some_and(|code| code > 0), "{args:?}: {reported}");
    reported
}

/// Writes a file with a fixed modification time.
fn write(path: PathBuf, bytes: &[u8]) {
    fs::write(&path, bytes).expect("written");
    let file = fs::File::options().write(true).open(path).expect("written");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000))
        .expect("times can be set");
}

#[test]
fn what_was_converted_of_another_file_is_converted_again() {
    let directory = directory();
    let path = directory.path();
    write(path.join("tiny.rrd"), &database("i386", "tiny.rrd"));
    write(path.join("fresh.rrd"), &database("i386", "fresh.rrd"));
    let convert = |input: &str| {
        let args = ["rrd", "convert", input, "-o", "out", "--to", "amd64"];
        good(&directory, &args);
        fs::read(path.join("out")).expect("converted")
    };
    let tiny = convert("tiny.rrd");
    let fresh = convert("fresh.rrd");
    assert_ne!(tiny, fresh);
    assert_eq!(convert("tiny.rrd"), tiny);
}

#[test]
fn a_second_run_passes_over_what_is_done() {
    let directory = directory();
    fs::create_dir(directory.path().join("in")).expect("made");
    for name in ["tiny.rrd", "fresh.rrd"] {
        let input = directory.path().join("in").join(name);
        write(input, &database("i386", name));
    }
    for target in ["amd64", "portable"] {
        let args = [
            "rrd",
            "convert",
            "in",
            "--output-dir",
            target,
            "--to",
            target,
        ];
        assert_eq!(good(&directory, &args), "2 converted\n");
        let done = good(&directory, &args);
        assert_eq!(done, "0 converted, 2 converted before\n");
    }
}

#[test]
fn what_a_killed_run_left_is_no_input() {
    let directory = directory();
    let input = database("i386", "tiny.rrd");
    write(directory.path().join("tiny.rrd"), &input);
    let left = directory.path().join(".tiny.rrd.0.new");
    write(left.clone(), &input[..100]);
    let args = ["rrd", "convert", ".", "--in-place", "--to", "amd64"];
    good(&directory, &args);
    assert!(!left.exists(), "the next run of the same file removes it");
}

#[test]
fn doubt_about_the_machine_is_reported() {
    let directory = directory();
    let path = directory.path().join("tiny.rrd");
    // With no text as last reading, and four bytes at the end as old rrdtool left them, this is
    // as good a file of 64-bit times.
    let mut bytes = database("i386", "tiny.rrd");
    let last_reading = 112 + 120 + 108 + 8;
    bytes[last_reading..last_reading + 30].fill(0);
    bytes.extend([0; 4]);
    write(path.clone(), &bytes);
    let reported = bad(
        &directory,
        &["rrd", "convert", "tiny.rrd", "--to", "amd64", "--in-place"],
    );
    assert!(reported.contains("may be one of"), "{reported}");
    assert!(fs::read(&path).expect("there") == bytes);
    let reported = good(
        &directory,
        &["rrd", "convert", "tiny.rrd", "--to", "amd64", "-o", "out"],
    );
    assert!(reported.contains("may be one of"), "{reported}");
    let reported = good(&directory, &["rrd", "dump", "tiny.rrd"]);
    assert!(reported.contains("may be one of"), "{reported}");

    let reported = good(
        &directory,
        &[
            "rrd", "convert", "tiny.rrd", "--to", "amd64", "-o", "out", "--from", "i386",
        ],
    );
    assert!(!reported.contains("may be one of"), "{reported}");
    good(
        &directory,
        &[
            "rrd",
            "convert",
            "tiny.rrd",
            "--to",
            "amd64",
            "--in-place",
            "--from",
            "i386",
        ],
    );
    assert!(
        fs::read(&path).expect("there") == fs::read(directory.path().join("out")).expect("there")
    );
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let directory = directory();
    let path = directory.path();
    write(path.join("tiny.rrd"), &database("i386", "tiny.rrd"));
    let made = Command::new("mkfifo").arg(path.join("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let args = ["rrd", "convert", "tiny.rrd", "-o", "pipe", "--to", "amd64"];
    let reported = bad(&directory, &args);
    assert!(reported.contains("not a regular file"), "{reported}");
    let kind = fs::metadata(path.join("pipe")).expect("there").file_type();
    assert!(kind.is_fifo());
}

#[test]
fn a_database_is_not_dumped_onto_itself() {
    let directory = directory();
    let path = directory.path();
    let bytes = database("i386", "tiny.rrd");
    write(path.join("tiny.rrd"), &bytes);
    fs::hard_link(path.join("tiny.rrd"), path.join("same.rrd")).expect("linked");
    for output in ["tiny.rrd", "./tiny.rrd", "same.rrd"] {
        let reported = bad(&directory, &["rrd", "dump", "tiny.rrd", output]);
        assert!(reported.contains("is both input and output"), "{reported}");
        assert!(fs::read(path.join("tiny.rrd")).expect("there") == bytes);
    }
}
