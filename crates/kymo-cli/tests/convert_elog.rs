//! `kymo convert --to elog`.

mod common;

use std::fs::{self, File};

use kymo_cpel::elog::write::Builder;
use kymo_cpel::elog::{Argument, ArgumentKind, Moment, Value};
use kymo_cpel::entries::Entry;
use kymo_cpel::write;
use tempfile::TempDir;

use common::{example, kymo_in, text};

/// A log with arguments of all kinds.
fn log(dir: &TempDir) {
    let mut log = Builder::new(1 << 20);
    let argument = |kind, size| Argument { kind, size };
    let arguments = [
        argument(ArgumentKind::Integer, 8),
        argument(ArgumentKind::Label, 1),
        argument(ArgumentKind::Float, 8),
        argument(ArgumentKind::String, 8),
        argument(ArgumentKind::Table, 4),
    ];
    let labels: [&[u8]; 2] = [b"off", b"on"];
    let all = log.event_type(b"all(%lld): %s %.2f %s %s", &arguments, &labels);
    let all = all.expect("few types");
    let none = log.event_type(b"none", &[], &[]).expect("few types");
    let tracks = [b"one", b"two"].map(|name| log.track(name).expect("few tracks"));
    let string = log.string(b"table").expect("little text");
    for number in 0..4u64 {
        let values = [
            Value::Integer(number.wrapping_sub(1)),
            Value::Integer(number % 3),
            Value::Float(number as f64 / 4.0),
            Value::Text(b"in it"),
            Value::Integer(string.into()),
        ];
        let track = tracks[number as usize % 2];
        log.push(all, track, number * 1000 + 7, &values)
            .expect("what was told");
        log.push(none, track, number * 1000 + 500, &[])
            .expect("what was told");
    }
    let begin = Moment::of_unix_nanos(1_700_000_000_000_000_000);
    let mut file = File::create(dir.path().join("a.elog")).expect("a file");
    log.write(begin, &mut file).expect("it is written");
}

/// What a run, which must end well, writes to standard error.
fn converted(dir: &TempDir, args: &[&str]) -> String {
    let (code, _, reported) = kymo_in(dir.path(), &[&["convert"], args].concat());
    assert_eq!(code, 0, "{args:?}: {reported}");
    reported
}

/// The lines that are printed, from the name of the event on.
fn shown(dir: &TempDir, log: &str) -> Vec<String> {
    let (code, lines, reported) = kymo_in(dir.path(), &["print", "--clock-seconds", log]);
    assert_eq!((code, reported.as_str()), (0, ""));
    lines.lines().map(str::to_string).collect()
}

#[test]
fn a_log_alone_is_copied_and_what_is_chosen_of_it_keeps_its_types() {
    let dir = TempDir::new().expect("a directory");
    log(&dir);
    assert_eq!(converted(&dir, &["a.elog", "-o", "b.elog"]), "");
    let read = |name: &str| fs::read(dir.path().join(name)).expect("a file");
    assert!(read("a.elog") == read("b.elog"));

    assert_eq!(
        converted(&dir, &["a.elog", "-o", "c.elog", "--event", "*"]),
        ""
    );
    assert_eq!(shown(&dir, "a.elog"), shown(&dir, "c.elog"));

    let chosen = ["a.elog", "-o", "d.elog", "--where", "arg2 >= 0.5"];
    assert_eq!(converted(&dir, &chosen), "");
    insta::assert_snapshot!(shown(&dir, "d.elog").join("\n"));
}

#[test]
fn fields_of_traces_are_arguments_and_the_rest_one_text() {
    let dir = TempDir::new().expect("a directory");
    let trace = example("lttng-small");
    let reported = converted(&dir, &[text(&trace), "-o", "t.elog", "--track", "cpu_id"]);
    assert_eq!(reported, "");
    insta::assert_snapshot!(shown(&dir, "t.elog")[..9].join("\n"));
    // Every event is there, at its time.
    let times = |path: &str| {
        let (code, lines, _) = kymo_in(dir.path(), &["print", "--format", "json", path]);
        assert_eq!(code, 0);
        let time = |line: &str| line.split(',').next().map(str::to_string);
        lines.lines().map(time).collect::<Vec<_>>()
    };
    assert_eq!(times("t.elog"), times(text(&trace)));
}

#[test]
fn logs_without_an_epoch_and_odd_names_are_reported() {
    let dir = TempDir::new().expect("a directory");
    let mut log = write::Builder::new(write::Options::default());
    let odd = log.event(1, Some(b"a b(c%%"), Some(b"datum %d"));
    odd.expect("it fits");
    log.event(2, Some(b"plain"), None).expect("it fits");
    for (time, code) in [(5, 1), (9, 2), (11, 1)] {
        log.push(Entry {
            time,
            track: 7,
            code,
            datum: 42,
        })
        .expect("it fits");
    }
    let mut file = File::create(dir.path().join("a.cpel")).expect("a file");
    log.write(&mut file).expect("it is written");
    let reported = converted(&dir, &["a.cpel", "-o", "a.elog"]);
    insta::assert_snapshot!(reported);
    insta::assert_snapshot!(shown(&dir, "a.elog").join("\n"));
    // If it is aligned, its times can be stored.
    let placed = [
        "a.cpel",
        "-o",
        "b.elog",
        "--align",
        "a.cpel=2026-01-02 03:04:05",
    ];
    assert!(!converted(&dir, &placed).contains("2017"));
    insta::assert_snapshot!(shown(&dir, "b.elog")[0]);
}

#[test]
fn standard_output_and_options_of_others_are_refused() {
    let dir = TempDir::new().expect("a directory");
    log(&dir);
    for (args, problem) in [
        (
            &["a.elog", "-o", "-", "--to", "elog"][..],
            "standard output",
        ),
        (
            &["a.elog", "-o", "b.elog", "--text"],
            "`--text` is for cpel",
        ),
        (&["a.elog", "-o", "b.elog", "--track", "no_such"], "no_such"),
    ] {
        let (code, _, reported) = kymo_in(dir.path(), &[&["convert"], args].concat());
        assert_eq!(code, 2, "{reported}");
        assert!(reported.contains(problem), "{reported}");
        assert!(!dir.path().join("b.elog").exists());
    }
}
