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
        "error: the recordings of `{LOG}` cannot be placed: they have no event `demo:ints` with a time\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), message);
    // The second log is moved to the first one.
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.cpel").display().to_string();
    std::fs::copy(LOG, &copy).unwrap();
    let offset = format!("{copy}=1h");
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
    let twice: Vec<_> = once.iter().flat_map(|line| [line, line]).collect();
    assert_eq!(both.iter().collect::<Vec<_>>(), twice);

    let named = first.rsplit(' ').next().unwrap();
    let options = ["--offset", &shifted, "--align-event", named, TRACE];
    assert_eq!(times(&options, 1)[0], *first);
}

#[test]
fn what_lacks_the_event_stays_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.cpel").display().to_string();
    std::fs::copy(LOG, &copy).unwrap();
    let offset = format!("{copy}=1h");
    let options = ["--offset", &offset, "--align-event", "FUNC/EXIT"];
    let output = kymo(&[&options[..], &[LOG, TRACE, &copy]].concat());
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.ends_with("no event `FUNC/EXIT` with a time: its recordings stay where they are\n"),
        "{told}"
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
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("they can begin at one moment only"), "{told}");
}

#[test]
fn what_cannot_be_placed_is_told() {
    for (options, message) in [
        (
            ["--offset", "nowhere=1s", TRACE],
            "error: `nowhere` shall be placed, but is none of the paths that are opened\n",
        ),
        (
            ["--offset", "1s", TRACE],
            "does not say of which path: expected PATH=",
        ),
        (["--offset", "a=1w", TRACE], "`1w` is no duration"),
        (["--align", "a=noon", TRACE], "`noon` is no time"),
    ] {
        let output = kymo(&options);
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(message), "{told}");
    }
}
