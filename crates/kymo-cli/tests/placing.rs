//! Recordings that are put where they belong on the time line.

use std::process::Command;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
const LOG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../kymo-cpel/tests/data/be_basic.cpel"
);

/// The time and the name of the events, one in each line, of some number.
fn times(options: &[&str], count: usize) -> Vec<String> {
    let output = kymo(options);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .take(count)
        .map(|line| {
            let (time, rest) = line.split_once("] ").unwrap();
            let name = rest.split(": {").next().unwrap().rsplit(' ').next();
            format!("{} {}", &time[1..], name.unwrap())
        })
        .collect()
}

fn kymo(options: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["print", "--clock-gmt", "--clock-date"])
        .args(options)
        .output()
        .unwrap()
}

#[test]
fn a_log_begins_when_it_is_said() {
    let moment = format!("{LOG}=2026-11-21 10:00");
    let expected = [
        "2026-11-21 10:00:00.000000000 counter",
        "2026-11-21 10:00:00.000017216 THREAD/THRUNNING",
    ];
    assert_eq!(times(&["--align", &moment, LOG], 2), expected);

    // A time alone is of the day of the others; an offset comes on top.
    let (time, offset) = (format!("{LOG}=09:04:23.5"), format!("{LOG}=250ms"));
    let options = ["--align", &time, "--offset", &offset, TRACE, LOG];
    let date = times(&[TRACE], 1)[0][..11].to_owned();
    let all = times(&options, usize::MAX);
    assert!(
        all.contains(&format!("{date}09:04:23.750000000 counter")),
        "{all:?}"
    );
    assert_eq!(
        all.len(),
        times(&[TRACE], usize::MAX).len() + times(&[LOG], usize::MAX).len()
    );
}

#[test]
fn an_event_that_all_have_joins_them() {
    let shifted = format!("{TRACE}=-3d");
    let first = &times(&["--offset", &shifted, TRACE], 1)[0];
    let log = format!("{LOG}=2000-01-01");
    let output = kymo(&["--align", &log, "--align-event", "demo:ints", TRACE, LOG]);
    assert_eq!(output.status.code(), Some(2));
    let message = format!(
        "error: cannot align the recordings of `{LOG}`: they have no event `demo:ints` with a time\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), message);
    // The second log is moved to the first one.
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.cpel").display().to_string();
    std::fs::copy(LOG, &copy).unwrap();
    let offset = format!("{copy}=1ns");
    let options = [
        "--offset",
        &offset,
        "--align-event",
        "FUNC/EXIT",
        LOG,
        &copy,
    ];
    let both = times(&options, usize::MAX);
    let once = times(&[LOG], usize::MAX);
    // Its offset is added to that.
    let later = |line: &String| line.replacen("9305 ", "9306 ", 1);
    assert_eq!(once.len() * 2, both.len());
    assert_eq!(both[..2], [once[0].clone(), later(&once[0])]);

    let named = first.rsplit(' ').next().unwrap();
    let options = ["--offset", &shifted, "--align-event", named, TRACE];
    assert_eq!(times(&options, 1)[0], *first);
}

#[test]
fn what_lacks_the_event_stays_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.cpel").display().to_string();
    std::fs::copy(LOG, &copy).unwrap();
    let options = ["--align-event", "FUNC/EXIT"];
    let output = kymo(&[&options[..], &[LOG, TRACE, &copy]].concat());
    assert_eq!(output.status.code(), Some(0));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(
        reported.contains("no event `FUNC/EXIT` with a time: its recordings stay where they are\n"),
        "{reported}"
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    // The logs are together, and the trace years later.
    assert!(
        lines.starts_with("[1970-01-01 00:00:01.000009305]"),
        "{lines}"
    );
    let (logs, trace): (Vec<_>, Vec<_>) = lines
        .lines()
        .partition(|line| line.starts_with("[1970-01-01 00:00:"));
    assert_eq!(logs.len(), 2 * times(&[LOG], usize::MAX).len());
    assert_eq!(trace.len(), times(&[TRACE], usize::MAX).len());
    // The first path has to have it.
    let output = kymo(&[&options[..], &[TRACE, LOG, &copy]].concat());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_path_begins_once() {
    let begins = [format!("{LOG}=2026-01-01"), format!("{LOG}=2026-01-02")];
    let output = kymo(&["--align", &begins[0], "--align", &begins[1], LOG]);
    assert_eq!(output.status.code(), Some(2));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(
        reported.contains("they can begin at one moment only"),
        "{reported}"
    );
}

#[test]
fn what_cannot_be_placed_is_reported() {
    for (options, message) in [
        (
            ["--offset", "nowhere=1s", TRACE],
            "error: cannot align `nowhere`: it is not among the inputs\nhint: write the path exactly as the path of an input\n",
        ),
        (
            ["--offset", "1s", TRACE],
            "does not say of which path: expected PATH=",
        ),
        (["--offset", "a=1x", TRACE], "`1x` is not a duration"),
        (["--align", "a=noon", TRACE], "`noon` is not a time"),
    ] {
        let output = kymo(&options);
        assert_eq!(output.status.code(), Some(2));
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(reported.contains(message), "{reported}");
    }
}

/// Standard output and standard error of kymo in a time zone.
fn in_berlin(args: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .env("TZ", "Europe/Berlin")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let reported = text(output.stderr);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    (text(output.stdout), reported)
}

const APART: &str = "has no date: its times count from 1970";

#[test]
fn recordings_without_an_origin_beside_dated_ones_are_warned_of_once() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.pftrace").display().to_string();
    for command in [
        &["print"][..],
        &["stats"],
        &["stats", "--by-track"],
        &["convert", "-o", &trace],
        &["latency", "--start", "FUNC/ENTER", "--end", "FUNC/EXIT"],
        &["states", "--state-event", "FUNC/ENTER"],
    ] {
        let (_, reported) = in_berlin(&[command, &[LOG, TRACE]].concat());
        assert_eq!(
            reported.matches(APART).count(),
            1,
            "{command:?}: {reported}"
        );
        let hint = format!("hint: `--align '{LOG}=TIME'` sets when it begins\n");
        assert!(reported.contains(&hint), "{command:?}: {reported}");
    }
    // Not where it has a date, or where all lack one.
    let align = format!("{LOG}=2026-11-21 10:04:23");
    for args in [
        &["stats", "--align", &align, LOG, TRACE][..],
        &["stats", LOG],
        &["stats", TRACE],
        &["info", LOG, TRACE],
    ] {
        assert_eq!(in_berlin(args).1, "");
    }
}

#[test]
fn times_without_an_origin_are_in_no_time_zone() {
    let (text, _) = in_berlin(&["print", LOG]);
    assert!(text.starts_with("[00:00:01.000009305] "), "{text}");
    let (text, _) = in_berlin(&["stats", LOG]);
    let begin = text.lines().find_map(|line| line.strip_prefix("begins "));
    assert_eq!(begin.map(str::trim), Some("1.000009305 s"), "{text}");
    // The date of the file is one.
    let (text, _) = in_berlin(&["info", LOG]);
    assert!(
        text.contains("written        2023-11-14 23:13:20.000000000\n"),
        "{text}"
    );
    let (text, _) = in_berlin(&["print", "--begin", "00:00:01.00498", LOG]);
    assert!(text.starts_with("[00:00:01.00498"), "{text}");
}

#[test]
fn a_time_without_a_date_is_of_the_recordings_that_have_one() {
    let day = ["--begin", "10:04", "--end", "10:05"];
    let (text, _) = in_berlin(&[&["print"], &day[..], &[LOG, TRACE]].concat());
    assert!(text.starts_with("[10:04:23.075453482]"), "{text}");
}

#[test]
fn an_aligned_log_becomes_a_trace_with_dates() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace").display().to_string();
    let align = format!("{LOG}=2026-11-21T10:00:00Z");
    in_berlin(&["convert", "--align", &align, LOG, "-o", &trace]);
    let metadata = std::fs::read_to_string(format!("{trace}/metadata")).unwrap();
    assert!(metadata.contains("absolute = true;"), "{metadata}");
    let (text, _) = in_berlin(&["print", "--clock-gmt", "--clock-date", &trace]);
    assert!(
        text.starts_with("[2026-11-21 10:00:00.000000000] "),
        "{text}"
    );
}

#[test]
fn an_event_joins_recordings_to_those_that_have_a_date() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy").display().to_string();
    let align = format!("{LOG}=2026-11-21T10:00:00Z");
    in_berlin(&["convert", "--align", &align, LOG, "-o", &copy]);
    let dated = times(&[&copy], 1);
    // The log is the first path, and has no date.
    let (text, reported) = in_berlin(&[
        "print",
        "--clock-gmt",
        "--clock-date",
        "--align-event",
        "counter",
        LOG,
        &copy,
    ]);
    assert_eq!(reported, "");
    let time = format!("[{}]", dated[0].rsplit_once(' ').unwrap().0);
    assert!(
        text.lines().take(2).all(|line| line.starts_with(&time)),
        "{text}"
    );
}

/// Writes a trace of messages by a clock: times in nanoseconds of the host, `true` for what is sent, numbers.
fn messages(path: &std::path::Path, events: &[(u64, bool, u32)]) {
    std::fs::create_dir(path).unwrap();
    let metadata = "/* CTF 1.8 */
        typealias integer { size = 8; align = 8; } := uint8_t;
        typealias integer { size = 32; align = 8; } := uint32_t;
        trace { major = 1; minor = 8; byte_order = le; };
        clock { name = mono; freq = 1000000000; offset_s = 1700000000; };
        typealias integer { size = 64; align = 8; map = clock.mono.value; } := time_t;
        stream { event.header := struct { uint8_t id; time_t timestamp; }; };
        event { name = \"net:send\"; id = 0; fields := struct { uint32_t seq; }; };
        event { name = \"net:recv\"; id = 1; fields := struct { uint32_t seq; }; };";
    std::fs::write(path.join("metadata"), metadata).unwrap();
    let mut events = events.to_vec();
    events.sort_unstable();
    let bytes = events.iter().flat_map(|&(time, is_send, seq)| {
        let mut event = vec![u8::from(!is_send)];
        event.extend(time.to_le_bytes());
        event.extend(seq.to_le_bytes());
        event
    });
    std::fs::write(path.join("stream"), bytes.collect::<Vec<u8>>()).unwrap();
}

#[test]
fn messages_bring_clocks_together() {
    const OFFSET: u64 = 12_300_000_000;
    // Nanoseconds of the second host at a time of the first: it is behind, and 40 ppm too slow.
    let second = |time: u64| time + 100_000_000_000 - OFFSET - time / 25_000;
    let first = |time: u64| time + 100_000_000_000;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for seq in 0..2000 {
        let sent = u64::from(seq) * 30_000_000;
        let received = sent + 50_000 + u64::from(seq * 7919 % 450) * 1000;
        match seq % 2 {
            0 => {
                a.push((first(sent), true, seq));
                b.push((second(received), false, seq));
            }
            _ => {
                b.push((second(sent), true, seq));
                a.push((first(received), false, seq));
            }
        }
    }
    let home = tempfile::tempdir().unwrap();
    let [a_path, b_path, file] = ["a", "b", "clocks"].map(|name| home.path().join(name));
    messages(&a_path, &a);
    messages(&b_path, &b);
    let [a, b, file] = [&a_path, &b_path, &file].map(|path| path.to_str().unwrap());
    let query = ["--align-by-messages", "net:send:net:recv:seq"];
    let output = kymo(&[&query[..], &["--save-alignment", file, a, b]].concat());
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    assert!(
        reported.contains("by 2000 messages: +12.301")
            && (reported.contains("drift +39.") || reported.contains("drift +40.")),
        "{reported}"
    );
    // No message is received before it is sent.
    let text = String::from_utf8(output.stdout).unwrap();
    let mut sent = std::collections::BTreeSet::new();
    for line in text.lines() {
        let (_, seq) = line.rsplit_once("seq = ").unwrap();
        match line.contains("net:send") {
            true => drop(sent.insert(seq)),
            false => assert!(sent.contains(seq), "{line}"),
        }
    }
    assert_eq!(sent.len(), 2000);
    // The bound of the error holds, and is as small as the fastest messages let it be.
    let bound = reported.split("at most ").nth(1).unwrap().split(' ').next();
    let bound: f64 = bound.unwrap().parse().unwrap();
    assert!((25.0..60.0).contains(&bound), "{reported}");
    // The file says the same, also of the second host alone.
    let again = kymo(&["--alignment", file, a, b]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
    assert_eq!(String::from_utf8_lossy(&again.stderr), "");
    let alone = kymo(&["--alignment", file, b]);
    let alone = String::from_utf8(alone.stdout).unwrap();
    let time = |line: &str| line.split_once(']').unwrap().0.to_owned();
    let times: std::collections::BTreeSet<_> = text.lines().map(time).collect();
    assert_eq!(alone.lines().count(), 2000);
    assert!(alone.lines().all(|line| times.contains(&time(line))));
    // A trace that is written so keeps its times.
    let written = home.path().join("written");
    let converted = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["convert", "--to", "ctf2", "--alignment", file, b, "-o"])
        .arg(&written)
        .status();
    assert!(converted.unwrap().success());
    let read = kymo(&[written.to_str().unwrap()]);
    let read = String::from_utf8(read.stdout).unwrap();
    let near = |a: &str, b: &str| {
        let nanos = |line: &str| line.split_once('.').unwrap().1[..9].parse::<i64>().unwrap();
        (nanos(a) - nanos(b)).abs() <= 1
    };
    assert!(read.lines().zip(alone.lines()).all(|(a, b)| near(a, b)));

    for (options, expected) in [
        (
            &["--align-by-messages", "a:b"][..],
            "expected SEND:RECV:KEY",
        ),
        (&["--align-by-messages", "x:y:seq"], "x"),
        (
            &["--align-by-messages", "net:send:net:recv:nothing"],
            "nothing",
        ),
        (&["--alignment", LOG], "not an alignment file"),
        (&["--alignment", "/nowhere"], "/nowhere"),
    ] {
        let output = kymo(&[options, &[a, b]].concat());
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains(expected), "{reported}");
    }
    let unrelated = kymo(&["--alignment", file, LOG]);
    assert_eq!(unrelated.status.code(), Some(2));
}

#[test]
fn traces_of_a_host_whose_time_was_changed_are_warned_of() {
    let home = tempfile::tempdir().unwrap();
    let trace = |name: &str, offset: &str, host: &str| {
        let path = home.path().join(name);
        messages(&path, &[(5, true, 1)]);
        let metadata = std::fs::read_to_string(path.join("metadata")).unwrap();
        let clock =
            format!("clock {{ uuid = \"12345678-1234-1234-1234-123456789abc\"; offset = {offset};");
        let env = format!("env {{ hostname = \"{host}\"; }};\nclock {{");
        let metadata = metadata
            .replace("clock {", &clock)
            .replacen("clock {", &env, 1);
        std::fs::write(path.join("metadata"), metadata).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [a, b, c, d] = [
        trace("a", "0", "one"),
        trace("b", "400000", "one"),
        trace("c", "2500000", "one"),
        trace("d", "2500000", "two"),
    ];
    let reported = |paths: &[&str]| {
        let output = kymo(paths);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(reported(&[&a, &b]), "");
    assert_eq!(reported(&[&a, &d]), "");
    let warning = reported(&[&a, &c]);
    assert!(
        warning.contains("zero of one clock 0.002500 s apart"),
        "{warning}"
    );
    let offset = format!("{c}=-2500000ns");
    assert!(warning.contains(&offset), "{warning}");
    assert_eq!(reported(&["--offset", &offset, &a, &c]), "");
}
