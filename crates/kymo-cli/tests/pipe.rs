//! Updates, one by one and as lines of standard input, through a link named rrdtool.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A directory with the link and a database that was last updated at 1600000000.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = env!("CARGO_BIN_EXE_kymo");
    std::os::unix::fs::symlink(program, directory.path().join("rrdtool")).expect("a link");
    let xml = directory.path().join("a.xml");
    fs::write(&xml, include_str!("data/load.xml")).expect("written");
    let made = rrdtool(&directory, &["restore", "a.xml", "a.rrd"]);
    assert!(made.status.success(), "{made:?}");
    fs::remove_file(xml).expect("removed");
    directory
}

fn command(directory: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(directory.path().join("rrdtool"));
    command
        .args(args)
        .current_dir(directory.path())
        .env("TZ", "UTC");
    command
}

/// The commands that the package of rrdtool has as programs of their own.
#[test]
fn links_named_like_commands_run_them() {
    let directory = directory();
    let program = env!("CARGO_BIN_EXE_kymo");
    let linked = |name: &str, args: &[&str]| {
        let link = directory.path().join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(program, &link).expect("a link");
        }
        let output = Command::new(link)
            .args(args)
            .current_dir(directory.path())
            .output()
            .expect("kymo runs");
        assert!(output.status.success(), "{name}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let made = [
        "b.rrd",
        "-b",
        "1600000000",
        "DS:x:GAUGE:600:U:U",
        "RRA:LAST:0.5:1:9",
    ];
    assert_eq!(linked("rrdcreate", &made), "");
    assert_eq!(linked("rrdupdate", &["b.rrd", "1600000300:7"]), "");
    let info = linked("rrdinfo", &["b.rrd"]);
    assert!(info.contains("last_update = 1600000300\n"), "{info}");
    assert_eq!(
        info.as_bytes(),
        rrdtool(&directory, &["info", "b.rrd"]).stdout
    );
    assert!(linked("rrdupdate", &[]).contains("Usage: rrdtool update"));
}

#[test]
fn the_environment_says_how_files_are_locked() {
    let directory = directory();
    let path = directory.path().join("a.rrd");
    let _held = kymo_io::Shared::open_locked(&path, kymo_io::Locking::Try).expect("locked");
    let info = |mode: &str| {
        let mut command = command(&directory, &["info", "a.rrd"]);
        let output = command
            .env("RRD_LOCKING", mode)
            .output()
            .expect("kymo runs");
        let reported = String::from_utf8(output.stderr).expect("text");
        (output.status.success(), reported)
    };
    assert_eq!(info("none"), (true, String::new()));
    assert_eq!(
        info("try"),
        (false, "ERROR: could not lock RRD\n".to_owned())
    );
    let (done, reported) = info("never");
    assert!(
        !done && reported.contains("RRD_LOCKING: unknown locking mode 'never'"),
        "{reported}"
    );
}

fn rrdtool(directory: &TempDir, args: &[&str]) -> Output {
    command(directory, args).output().expect("kymo runs")
}

/// What lines of standard input give; the times of `OK` lines are left out.
fn lines(directory: &TempDir, input: &str) -> String {
    let mut child = command(directory, &["-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("kymo ends");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let without_times = |line: &str| match line.strip_prefix("OK u:") {
        Some(times) => {
            let parts: Vec<_> = times.split(['s', 'r', ':', ' ']).collect();
            assert!(
                parts.iter().any(|part| part.parse::<f64>().is_ok()),
                "{line}"
            );
            "OK\n".to_owned()
        }
        None => format!("{line}\n"),
    };
    let place = fs::canonicalize(directory.path()).expect("a path");
    let text: String = text.lines().map(without_times).collect();
    text.replace(&place.display().to_string(), "HERE")
}

#[test]
fn lines_are_answered_as_rrdtool_does() {
    let directory = directory();
    let input = r#"
update a.rrd 1600000300:1.5
last a.rrd
   "last"  'a.rrd'
update a.rrd 1600000300:2
update a.rrd 1600000600:2:3
update a.rrd 1600000600
update a.rrd 1600000600:x
update a.rrd -t none 1600000600:x
update b.rrd 1600000600:1
update a.rrd
updatev a.rrd
updatev a.rrd 1600000600:2 1600000600:2
updatev a.rrd --skip-past-updates 1600000600:2 1600001500:2
# no comment
last "a.rrd
pwd
mkdir sub
mkdir sub
mkdir
ls
ls sub
cd sub
pwd
last a.rrd
cd nowhere
cd ..
quit now
quit
last a.rrd
"#;
    let output = lines(&directory, &input[1..]);
    insta::assert_snapshot!(output);
}

/// Programs find out whether there is an rrdtool, and which, from the first line of its usage.
#[test]
fn usage_is_no_failure() {
    let directory = directory();
    let probes: [&[&str]; 5] = [&[], &["--version"], &["-v"], &["help"], &["last"]];
    for words in probes {
        let output = rrdtool(&directory, words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert!(output.stdout.starts_with(b"RRDtool 1.7.2 "), "{output:?}");
    }
    let output = rrdtool(&directory, &["help", "last"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("Usage: rrdtool last "), "{text}");
}

#[test]
fn unknown_commands_are_failures() {
    let directory = directory();
    let output = rrdtool(&directory, &["lost", "a.rrd"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"ERROR: unknown function 'lost'\n");
    assert_eq!(output.stdout, b"");
}

/// Daemons have a home that is none.
#[test]
fn a_home_that_is_none_is_no_failure() {
    let directory = directory();
    let mut create = command(
        &directory,
        &["create", "b.rrd", "DS:a:GAUGE:600:U:U", "RRA:LAST:0:1:1"],
    );
    let create = create
        .env("HOME", "/dev/null")
        .env_remove("XDG_CONFIG_HOME");
    let output = create.output().expect("kymo runs");
    assert!(output.status.success(), "{output:?}");
}

/// A mistyped end would otherwise fill the disk with rows that do not exist.
#[test]
fn rows_without_end_are_refused() {
    let directory = directory();
    for end in ["9000000000000000000", "99999999999"] {
        let words = ["fetch", "a.rrd", "AVERAGE", "-s", "1600000000", "-e", end];
        let output = rrdtool(&directory, &words);
        assert_eq!(output.status.code(), Some(1), "{end}");
        let message = String::from_utf8(output.stderr).expect("text");
        assert!(message.contains("rows, expected at most"), "{message}");
    }
}

/// A program that asks, and waits for the answer before it asks again.
#[test]
fn answers_come_at_once() {
    let directory = directory();
    let mut child = command(&directory, &["-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for time in (300..=3000).step_by(300) {
        writeln!(input, "update a.rrd {}:1", 1_600_000_000 + time).expect("written");
        let answer = answers.next().expect("an answer").expect("text");
        assert!(answer.starts_with("OK u:"), "{answer}");
    }
    // The last line needs no end.
    write!(input, "last a.rrd").expect("written");
    drop(input);
    assert_eq!(
        answers.next().expect("an answer").expect("text"),
        "1600003000"
    );
    assert!(child.wait().expect("kymo ends").success());
}

#[test]
fn a_directory_can_be_reported() {
    let directory = directory();
    let output = rrdtool(&directory, &["-", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(reported, "ERROR: chdir nowhere No such file or directory\n");
    assert!(rrdtool(&directory, &["-", "."]).status.success());
}

/// The file that is open is no longer the one that is meant.
#[test]
fn replaced_files_are_noticed() {
    let directory = directory();
    let path = |name: &str| directory.path().join(name);
    fs::copy(path("a.rrd"), path("old.rrd")).expect("copied");
    let mut child = command(&directory, &["-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut ask = |line: &str| {
        writeln!(input, "{line}").expect("written");
        answers.next().expect("an answer").expect("text")
    };
    assert!(ask("update a.rrd 1600000300:1").starts_with("OK"));
    assert!(ask("update a.rrd 1600000600:1").starts_with("OK"));
    fs::rename(path("old.rrd"), path("a.rrd")).expect("renamed");
    // Of the new file, this is later than the last update.
    assert!(ask("update a.rrd 1600000300:1").starts_with("OK"));
    // Another program has updated it meanwhile.
    assert!(
        rrdtool(&directory, &["update", "a.rrd", "1600000900:1"])
            .status
            .success()
    );
    let refused = ask("update a.rrd 1600000600:1");
    assert!(
        refused.contains("when last update time is 1600000900"),
        "{refused}"
    );
    fs::remove_file(path("a.rrd")).expect("removed");
    let missing = ask("update a.rrd 1600001200:1");
    assert_eq!(missing, "ERROR: opening 'a.rrd': No such file or directory");
    fs::write(path("a.rrd"), "no database").expect("written");
    assert!(ask("update a.rrd 1600001200:1").starts_with("ERROR: 'a.rrd': "));
    drop(input);
    assert!(child.wait().expect("the end").success());
}

#[test]
fn more_files_than_may_be_open() {
    let directory = directory();
    let mut input = String::new();
    for time in [300, 600] {
        for number in 0..100 {
            if time == 300 {
                let to = directory.path().join(format!("{number}.rrd"));
                fs::copy(directory.path().join("a.rrd"), to).expect("copied");
            }
            input += &format!("update {number}.rrd {}:1\n", 1_600_000_000 + time);
        }
    }
    let script = "ulimit -n 40; exec ./rrdtool -";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("kymo ends");
    writer.join().expect("no panic").expect("written");
    let answers = String::from_utf8_lossy(&output.stdout);
    assert_eq!(answers.lines().count(), 200);
    assert!(
        answers.lines().all(|line| line.starts_with("OK")),
        "{answers}"
    );
}

/// The bytes of a file between two updates, whoever made them.
fn locked(path: &Path) -> kymo_io::Shared {
    kymo_io::Shared::open_locked(path, kymo_io::Locking::Wait).expect("locked")
}

#[test]
fn what_another_writes_is_locked() {
    let directory = directory();
    let file = directory.path().join("a.rrd");
    let lock = locked(&file);
    let output = rrdtool(&directory, &["update", "a.rrd", "1600000300:1"]);
    assert_eq!(output.status.code(), Some(1));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(reported, "ERROR: could not lock RRD\n");
    let mut waiting = command(&directory, &["update", "--wait", "a.rrd", "1600000300:1"])
        .spawn()
        .expect("kymo runs");
    drop(lock);
    assert!(waiting.wait().expect("kymo ends").success());
    let last = rrdtool(&directory, &["last", "a.rrd"]).stdout;
    assert_eq!(last, b"1600000300\n");
}

#[test]
fn updates_wait_until_they_are_on_the_disk() {
    let directory = directory();
    for (file, form) in [("native.rrd", "s390x"), ("portable.rrd", "portable")] {
        let xml = directory.path().join("a.xml");
        fs::write(&xml, include_str!("data/load.xml")).expect("written");
        let made = rrdtool(&directory, &["restore", "a.xml", file, "--format", form]);
        assert!(made.status.success(), "{made:?}");
        let update = ["update", "--durable", file, "1600000300:1", "1600000600:2"];
        assert!(rrdtool(&directory, &update).status.success());
        let last = rrdtool(&directory, &["last", file]).stdout;
        assert_eq!(last, b"1600000600\n", "{file}");
        // A portable file stays as it was; in a native one, too, there is nothing to keep here.
        let before = fs::read(directory.path().join(file)).expect("read");
        let output = rrdtool(&directory, &["update", file, "1600000900:x"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(fs::read(directory.path().join(file)).expect("read"), before);
    }
}

/// 24 writers at a time: each update is taken or refused, and none is lost that was taken.
#[test]
fn many_write_one_file() {
    let directory = directory();
    let children: Vec<_> = (0..24)
        .map(|_| {
            let mut child = command(&directory, &["-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("kymo runs");
            let mut input = child.stdin.take().expect("a pipe");
            for time in 1..=20 {
                let time = 1_600_000_000 + 300 * time;
                writeln!(input, "update --wait a.rrd {time}:1").expect("written");
            }
            child
        })
        .collect();
    let mut taken = 0;
    for child in children {
        let output = child.wait_with_output().expect("kymo ends");
        let answers = String::from_utf8_lossy(&output.stdout).into_owned();
        for answer in answers.lines() {
            let refused = answer.contains("illegal attempt to update");
            assert!(refused || answer.starts_with("OK"), "{answer}");
            taken += usize::from(!refused);
        }
    }
    assert_eq!(taken, 20, "each time is taken once");
    let checked = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["rrd", "check", "a.rrd"])
        .current_dir(directory.path())
        .output()
        .expect("kymo runs");
    assert!(checked.status.success(), "{checked:?}");
}
