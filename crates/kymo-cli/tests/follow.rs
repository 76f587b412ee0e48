//! `kymo print --follow` and `--last`: recordings that grow, each as its writer writes it.

mod common;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use common::{example, good, kymo, text};
use kymo_cpel::elog::Moment;
use kymo_cpel::entries::Entry;
use kymo_cpel::{elog, write};
use tempfile::TempDir;

/// A run that follows, and what it prints.
struct Following {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn new(args: &[&str], limit: usize) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
            .args(["print", "--follow", "--clock-gmt", "--limit"])
            .arg(limit.to_string())
            .args(args)
            .env("TZ", "UTC")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn next(&mut self, count: usize) -> Vec<String> {
        let lines = self.lines.by_ref().take(count);
        lines.map(|line| line.expect("UTF-8")).collect()
    }

    /// What is printed until the limit is reached; nothing is wrong then.
    fn end(mut self) -> Vec<String> {
        let rest = self.next(usize::MAX);
        let mut reported = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut reported).expect("UTF-8");
        let code = self.child.wait().expect("kymo ends").code();
        assert_eq!((code, &*reported), (Some(0), ""));
        rest
    }
}

fn printed(args: &[&str]) -> Vec<String> {
    let output = kymo(&[&["print", "--clock-gmt"], args].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).expect("written");
    fs::rename(new, path).expect("renamed");
}

/// A log of `events` events and the same number of strings.
fn cpel(events: u32) -> Vec<u8> {
    let mut builder = write::Builder::new(write::Options::default());
    builder.event(1, Some(b"one"), Some(b"%s")).unwrap();
    builder.track(0, Some(b"main")).unwrap();
    for number in 0..events {
        let datum = builder.string(format!("text {number}").as_bytes()).unwrap();
        builder
            .push(Entry {
                time: u64::from(number) * 10,
                track: 0,
                code: 1,
                datum,
            })
            .unwrap();
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    bytes
}

fn elog(events: u64) -> Vec<u8> {
    let mut builder = elog::write::Builder::new(1000);
    let kind = builder.event_type(b"tick", &[], &[]).unwrap();
    let track = builder.track(b"main").unwrap();
    for number in 0..events {
        builder.push(kind, track, number * 100, &[]).unwrap();
    }
    let begin = Moment {
        os_nanos: 1_700_000_000_000_000_000,
        cpu: 0,
    };
    let mut bytes = Vec::new();
    builder.write(begin, &mut bytes).unwrap();
    bytes
}

/// The log is written as a whole each time, beside the old one or over it.
#[test]
fn event_logs_are_followed() {
    let directory = TempDir::new().unwrap();
    for (name, log_of) in [
        ("a.cpel", cpel as fn(u32) -> Vec<u8>),
        ("a.elog", |events| elog(events.into())),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, log_of(3)).unwrap();
        let mut following = Following::new(&["--no-delta", text(&path)], 9);
        let mut followed = following.next(3);
        replace(&path, &log_of(5));
        followed.extend(following.next(2));
        // Not truncated first: a reader may see it then.
        let mut over = OpenOptions::new().write(true).open(&path).unwrap();
        over.write_all(&log_of(8)).unwrap();
        followed.extend(following.next(3));
        replace(&path, &log_of(9));
        followed.extend(following.end());
        assert_eq!(followed, printed(&["--no-delta", text(&path)]), "{name}");
    }
}

#[cfg(unix)]
/// Each interval comes when a later event has: the last one when the run is interrupted.
#[test]
fn intervals_come_when_they_are_complete() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.elog");
    fs::write(&path, elog(35)).unwrap();
    for options in [
        &["stats", "--every", "1us"][..],
        &["values", "--every", "1us", "--field", "event.name"],
        &["states", "--every", "1us", "--state-event", "tick"],
    ] {
        fs::write(&path, elog(35)).unwrap();
        let args = [options, &[text(&path)]].concat();
        let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
            .args(&args)
            .arg("--follow")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut following = Following { child, lines };
        let mut followed = following.next(4);
        replace(&path, &elog(52));
        followed.extend(following.next(2));
        let process = nix::unistd::Pid::from_raw(following.child.id() as i32);
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).expect("it runs");
        followed.extend(following.end());
        let output = String::from_utf8(kymo(&args).stdout).unwrap();
        let expected: Vec<&str> = output.lines().collect();
        assert_eq!(expected.len(), 7, "{output}");
        assert_eq!(followed, expected, "{options:?}");
    }
    let path = text(&path);
    for (args, expected) in [
        (vec!["stats", "--follow", path], "needs `--every`"),
        (
            vec!["values", "--field", "x", "--follow", path],
            "needs `--every`",
        ),
    ] {
        let output = kymo(&args);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains(expected), "{reported}");
    }
}

#[test]
fn databases_are_followed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("load.rrd");
    let path = text(&path);
    good(&[
        "rrd",
        "create",
        path,
        "--start",
        "1700000000",
        "--step",
        "10",
        "DS:x:GAUGE:20:U:U",
        "RRA:AVERAGE:0.5:1:4",
        "RRA:MAX:0.5:2:3",
    ]);
    let before = printed(&["--no-delta", path]);
    assert_eq!(before.len(), 7);
    // The new rows of each archive are shown, though their number stays the same.
    let mut following = Following::new(&["--no-delta", path], 7 + 4 + 2 + 4 + 3);
    assert_eq!(following.next(7), before);
    for time in 1..=4 {
        let update = format!("{}:{time}", 1_700_000_000 + 10 * time);
        good(&["rrd", "update", path, &update]);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut followed = following.next(6);
    followed.sort_unstable();
    let is_new = |line: &String| !line.contains("none") && !line.contains("NaN");
    assert_eq!(followed.len(), 6);
    assert!(followed.iter().all(is_new), "{followed:?}");
    let mut expected: Vec<_> = printed(&["--no-delta", path]);
    expected.sort_unstable();
    expected.retain(|line| followed.contains(line));
    assert_eq!(followed, expected);
    // More than an archive has rows.
    let late: Vec<String> = (5..=20)
        .map(|time| format!("{}:{time}", 1_700_000_000 + 10 * time))
        .collect();
    let mut update = vec!["rrd", "update", path];
    update.extend(late.iter().map(String::as_str));
    good(&update);
    let mut last = following.end();
    last.sort_unstable();
    let mut now = printed(&["--no-delta", path]);
    now.sort_unstable();
    assert_eq!(last, now);
}

/// A datagram of one value, in a packet of a capture of plain IP.
fn packet(host: &str, seconds: u64) -> Vec<u8> {
    let mut datagram = Vec::new();
    let mut part = |kind: u16, payload: &[u8]| {
        datagram.extend(kind.to_be_bytes());
        datagram.extend((payload.len() as u16 + 4).to_be_bytes());
        datagram.extend(payload);
    };
    part(0, format!("{host}\0").as_bytes());
    part(1, &seconds.to_be_bytes());
    part(2, b"load\0");
    part(4, b"load\0");
    let mut values = vec![0, 1, 1];
    values.extend(1.5f64.to_le_bytes());
    part(6, &values);
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[9] = 17;
    packet[22..24].copy_from_slice(&25_826u16.to_be_bytes());
    packet[24..26].copy_from_slice(&(datagram.len() as u16 + 8).to_be_bytes());
    packet.extend(datagram);
    let length = packet.len() as u32;
    let words = [0, 0, length, length];
    let head = words.iter().flat_map(|word| word.to_be_bytes());
    head.chain(packet).collect()
}

#[test]
fn captures_are_followed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("net.pcap");
    let words = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 101];
    let head: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    fs::write(&path, [head, packet("a", 10), packet("b", 20)].concat()).unwrap();
    let mut following = Following::new(&["--no-delta", text(&path)], 5);
    let mut followed = following.next(2);
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    // A sender that is late, and a packet that is not whole.
    let cut = packet("d", 40);
    file.write_all(&[packet("c", 15), cut[..9].to_vec()].concat())
        .unwrap();
    followed.extend(following.next(1));
    file.write_all(&[cut[9..].to_vec(), packet("e", 50)].concat())
        .unwrap();
    followed.extend(following.end());
    let mut whole = printed(&["--no-delta", text(&path)]);
    assert!(followed != whole, "it comes when it comes");
    followed.sort_unstable();
    whole.sort_unstable();
    assert_eq!(followed, whole);
}

/// What appears below a directory joins, and is where it was said to lie.
#[test]
fn new_recordings_join() {
    let directory = TempDir::new().unwrap();
    let path = text(directory.path());
    fs::write(directory.path().join("a.cpel"), cpel(2)).unwrap();
    let offset = format!("{path}=1s");
    let args = ["--no-delta", "--offset", &offset, path];
    let mut following = Following::new(&args, 5);
    let mut followed = following.next(2);
    fs::create_dir(directory.path().join("later")).unwrap();
    replace(&directory.path().join("later/b.cpel"), &cpel(3));
    followed.extend(following.end());
    let times = |lines: &[String]| -> Vec<String> {
        let times = lines
            .iter()
            .map(|line| line.split(' ').next().unwrap().to_owned());
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        times
    };
    assert_eq!(times(&followed), times(&printed(&args)));
}

#[test]
fn the_last_events_are_printed() {
    for (name, options) in [
        ("lttng-small", &[][..]),
        ("lttng-small", &["--where", "cpu_id == 0"]),
        ("lttng-small", &["--event", "demo:sched", "--format", "csv"]),
        ("lttng-discarded", &["--format", "json"]),
        ("rfc-small", &[]),
    ] {
        let path = example(name);
        let args = [&["--no-delta"][..], options, &[text(&path)]].concat();
        let args = match options.contains(&"--format") {
            true => &args[1..],
            false => &args,
        };
        let whole = printed(args);
        let header = usize::from(options.contains(&"csv"));
        assert!(whole.len() > 5, "{name} {options:?}");
        for last in [0, 1, 7, 100, whole.len() - header, whole.len() + 5] {
            let number = last.to_string();
            let found = printed(&[&["--last", &number], args].concat());
            let from = whole.len().saturating_sub(last).max(header);
            assert_eq!(found[header..], whole[from..], "{name} {options:?} {last}");
        }
        let some = printed(&[&["--last", "10", "--limit", "3"], args].concat());
        let from = whole.len().saturating_sub(10).max(header);
        assert_eq!(some[header..], whole[from..from + 3], "{name} {options:?}");
    }
}

#[test]
fn followers_begin_with_the_last_events() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.cpel");
    fs::write(&path, cpel(50)).unwrap();
    let mut following = Following::new(&["--last", "2", "--no-delta", text(&path)], 3);
    let mut followed = following.next(2);
    replace(&path, &cpel(51));
    followed.extend(following.end());
    assert_eq!(followed, printed(&["--no-delta", text(&path)])[48..]);
}

#[test]
fn what_cannot_grow_is_refused() {
    let path = example("lttng-small");
    for (args, why) in [
        (
            &["--format", "details"][..],
            "`--follow` is for pretty and json and csv",
        ),
        (&["--limit", "x"], "invalid value"),
    ] {
        let output = kymo(&[&["print", "--follow"], args, &[text(&path)]].concat());
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains(why), "{reported}");
    }
}

/// A run that goes on until something is lost or it is interrupted, and the first line of its standard error.
fn run_in_background(
    args: &[&str],
) -> (Child, std::io::Lines<BufReader<std::process::ChildStderr>>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .env("TZ", "UTC")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    (child, lines)
}

#[cfg(target_os = "linux")]
#[test]
fn truncated_files_are_reported() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.cpel");
    let truncate = |length| {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
    };
    for args in [
        &["print", "--follow"][..],
        &["stats", "--every", "1us", "--follow"],
    ] {
        fs::write(&path, cpel(5000)).unwrap();
        let (mut child, mut reported) = run_in_background(&[args, &[text(&path)]].concat());
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        lines.next().expect("a line").expect("UTF-8");
        let rest = std::thread::spawn(move || lines.count());
        truncate(3000);
        // That it has too few sections may be reported before.
        let is_it = |line: std::io::Result<String>| {
            line.is_ok_and(|line| line.contains("` was truncated "))
        };
        assert!(reported.any(is_it), "{args:?}");
        assert!(child.try_wait().expect("a child").is_none(), "it goes on");
        if args[0] == "stats" {
            let process = nix::unistd::Pid::from_raw(child.id() as i32);
            nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).expect("it runs");
            assert_eq!(child.wait().expect("kymo ends").code(), Some(1));
        }
        child.kill().ok();
        child.wait().expect("kymo ends");
        rest.join().expect("lines");
    }
}

#[test]
fn directories_without_a_recording_are_waited_for() {
    let directory = TempDir::new().unwrap();
    for args in [
        &["print", "--follow", "--limit", "2"][..],
        &["stats", "--every", "1us", "--by", "name", "--follow"],
    ] {
        let path = directory.path().join(args[0]);
        fs::create_dir(&path).unwrap();
        let (mut child, mut reported) = run_in_background(&[args, &[text(&path)]].concat());
        let line = reported.next().expect("a line").expect("UTF-8");
        let expected = format!(
            "warning: no recording is in `{}` so far; waiting for one",
            path.display()
        );
        assert_eq!(line, expected);
        replace(&path.join("a.elog"), &elog(35));
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert_eq!(lines.by_ref().take(2).count(), 2);
        child.kill().ok();
        child.wait().expect("kymo ends");
    }
}

#[test]
fn names_that_no_event_has_are_reported_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.elog");
    fs::write(&path, elog(35)).unwrap();
    for args in [
        &["print", "--event", "tik"][..],
        &["stats", "--every", "1us", "--event", "tik"],
        &["states", "--every", "1us", "--state-event", "tik"],
    ] {
        let args = [args, &["--follow", text(&path)]].concat();
        let (mut child, reported) = run_in_background(&args);
        let lines: Vec<_> = reported.take(2).map(|line| line.expect("UTF-8")).collect();
        let expected = [
            "warning: no event is called `tik` so far; waiting for one",
            "hint: did you mean `tick`?",
        ];
        assert_eq!(lines, expected, "{args:?}");
        child.kill().expect("it runs");
        child.wait().expect("kymo ends");
    }
}
