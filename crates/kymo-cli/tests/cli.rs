//! The program as a whole, on the recordings of the repository.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A real LTTng trace of the repository.
const SMALL: &str = "lttng-small";
/// One in which events were discarded.
const DISCARDED: &str = "lttng-discarded";
/// Where the files of both are.
const INNER: &str = "ust/uid/0/64-bit";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The program, run beside the examples in UTC.
fn kymo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    command
        .args(args)
        .current_dir(examples())
        .env("TZ", "UTC")
        .env_remove("BABELTRACE_TERM_COLOR")
        .env("COLUMNS", "100")
        // The user may have summaries of the examples.
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    kymo(args).output().expect("kymo runs")
}

/// Standard output of a run that must be good and silent.
fn good(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(text(&output.stderr), "", "{args:?}");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    text(&output.stdout)
}

/// Exit code, standard output, standard error.
fn all(args: &[&str]) -> (i32, String, String) {
    let output = run(args);
    (
        output.status.code().expect("not killed"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Text without the paths of the machine it was made on.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let real = examples().canonicalize().expect("examples exist");
    text.replace(&format!("{}/", real.display()), "")
        .replace(&format!("{}/", examples().display()), "")
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// A copy of an example, to be damaged.
struct Copy {
    dir: TempDir,
}

impl Copy {
    fn of(example: &str) -> Self {
        let dir = TempDir::new().expect("a directory for the test");
        let copy = Self { dir };
        let whole = examples().join(example);
        let inner = whole.join(INNER);
        copy_files(
            if inner.is_dir() { &inner } else { &whole },
            copy.dir.path(),
        );
        // Without an index, the packets are found by themselves.
        let _ = fs::remove_dir_all(copy.dir.path().join("index"));
        copy
    }

    fn path(&self) -> &str {
        self.dir.path().to_str().expect("UTF-8")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
        }
    }
}

#[test]
fn help_is_complete() {
    let mut pages = String::new();
    for args in [
        &["--help"][..],
        &["help", "print"],
        &["help", "view"],
        &["help", "info"],
        &["help", "stats"],
        &["help", "check"],
        &["help", "completions"],
        &["help", "man"],
    ] {
        pages += &format!("$ kymo {}\n{}\n", args.join(" "), good(args));
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn print_shows_events_as_babeltrace2_does() {
    let expected = fs::read_to_string(examples().join("lttng-small.txt")).expect("expected text");
    for threads in ["1", "3"] {
        let printed = good(&[
            "print",
            "--clock-gmt",
            "--clock-date",
            "--threads",
            threads,
            SMALL,
        ]);
        assert!(printed == expected, "{threads} threads");
    }
}

/// All commands show a loss, and treat it as damage only if requested.
#[test]
fn a_loss_is_shown_and_fails_only_where_that_is_asked_for() {
    let home = tempfile::tempdir().expect("a directory");
    let there = |name: &str| home.path().join(name).to_str().expect("a path").to_owned();
    let (trace, json) = (there("trace"), there("out.json"));
    let commands: [&[&str]; 8] = [
        &["check"],
        &["check", "--json"],
        &["print"],
        &["print", "--format", "json"],
        &["stats"],
        &["states", "--state-event", "*"],
        &["convert", "--force", "--output", &trace],
        &["convert", "--to", "chrome", "--force", "--output", &json],
    ];
    for command in commands {
        for (strict, expected) in [(&[][..], 0), (&["--strict"], 1)] {
            let (code, out, err) = all(&[command, strict, &[DISCARDED]].concat());
            assert_eq!(code, expected, "{command:?} {strict:?}: {err}");
            let reported = out + &err;
            assert!(
                ["38,574", "38574", "discarded 15212 events"]
                    .iter()
                    .any(|part| reported.contains(part)),
                "{command:?}: {reported}"
            );
        }
    }
    let check = |path: &str| {
        let (_, out, _) = all(&["check", path]);
        out.lines().last().map(str::to_owned)
    };
    assert_eq!(check(DISCARDED).as_deref(), Some("lost: 38,574 events"));
    assert_eq!(check(&trace).as_deref(), Some("lost: 38,574 events"));
    assert_eq!(check(SMALL).as_deref(), Some("OK"));
}

#[test]
fn print_warns_of_discarded_events() {
    let (code, printed, warnings) = all(&["print", "--clock-gmt", "--clock-date", DISCARDED]);
    assert_eq!(code, 0, "discarded events are no damage");
    let expected = |name: &str| fs::read_to_string(examples().join(name)).expect(name);
    assert!(printed == expected("lttng-discarded.txt"));
    assert_eq!(lines(&warnings), lines(&expected("lttng-discarded.err")));
    assert!(warnings.starts_with("WARNING: Tracer discarded "));
}

#[test]
fn print_has_many_forms() {
    let mut printed = String::new();
    for args in [
        &["--clock-seconds", "--no-delta"][..],
        &["--clock-cycles", "--names", "none"],
        &["--names=ctx,arg,scope,header", "--fields", "all"],
        &["--color", "always"],
        &["--format", "json"],
        &["--format", "csv"],
        &["--format", "csv", "--event", "*:strs"],
        &[
            "--clock-offset",
            "-1795246142",
            "--clock-offset-ns=500",
            "--clock-gmt",
        ],
    ] {
        let args = [&["print", "--limit", "2"], args, &[SMALL]].concat();
        printed += &format!("$ kymo {}\n{}\n", args.join(" "), good(&args));
    }
    insta::assert_snapshot!(printed);
    let details = good(&["print", "--format", "details", "--limit", "1", SMALL]);
    assert!(details.starts_with("Trace class:\n"));
}

#[test]
fn filters_choose_events() {
    let all = good(&["print", SMALL]);
    let count = |args: &[&str]| lines(&good(&[&["print"], args, &[SMALL]].concat()));
    let holds = |needle: &str| all.lines().filter(|line| line.contains(needle)).count();
    assert_eq!(count(&[]), lines(&all));
    assert_eq!(count(&["--event", "demo:strs"]), holds(" demo:strs: "));
    assert_eq!(
        count(&["--event", "demo:s[!c]*", "--event", "*:empty"]),
        holds(" demo:strs: ") + holds(" demo:empty: ")
    );
    assert_eq!(count(&["--where", "cpu_id = 1"]), holds("{ cpu_id = 1 }"));
    assert_eq!(
        count(&["--where", "event.name ~ \"*:strs\" and n in [0]"]),
        all.lines()
            .filter(|line| line.contains(" demo:strs: ") && line.contains(" n = 0,"))
            .count()
    );
    assert_eq!(count(&["--limit", "7"]), 7);
    assert_eq!(count(&["--limit", "0"]), 0);

    let stamps = good(&["print", "--clock-seconds", SMALL]);
    let stamps: Vec<&str> = stamps.lines().map(|line| &line[1..21]).collect();
    let (begin, end) = (stamps[10], stamps[20]);
    let within = stamps.iter().filter(|s| begin <= **s && **s <= end).count();
    assert_eq!(count(&["--begin", begin, "--end", end]), within);
    let range = format!("[{begin},{end}]");
    assert_eq!(count(&["--timerange", &range]), within);
    // Given as times of day on the day of the first event, which select the same range.
    let clock: Vec<&str> = all.lines().map(|line| &line[1..19]).collect();
    assert_eq!(count(&["-b", clock[10], "-e", clock[20]]), within);

    let info: serde_json::Value =
        serde_json::from_str(&good(&["info", "--json", DISCARDED])).expect("JSON");
    let streams = info["recordings"][0]["streams"].as_array().expect("a list");
    let bound = |key: &'static str| streams.iter().map(move |stream| stream[key].as_i64());
    let begin = bound("begin").max().flatten().expect("a time");
    let end = bound("end").min().flatten().expect("a time");
    let times = run(&["print", "--format", "json", DISCARDED]);
    let common = text(&times.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|line: &serde_json::Value| {
            (begin..=end).contains(&line["timestamp"].as_i64().expect("a time"))
        })
        .count();
    let printed = run(&["print", "--stream-intersection", DISCARDED]);
    assert_eq!(lines(&text(&printed.stdout)), common);
}

#[test]
fn wrong_filters_are_shown() {
    let (code, printed, error) = all(&["print", "--where", "cpu_di == 1", SMALL]);
    assert_eq!((code, printed.as_str()), (2, ""));
    insta::assert_snapshot!(error);
    let (code, printed, error) = all(&["print", "--event", "demo:stsr", SMALL]);
    assert_eq!((code, printed.as_str()), (0, ""));
    assert_eq!(
        error,
        "warning: no event is called `demo:stsr`\nhint: did you mean `demo:strs`?\n"
    );
    let (code, _, error) = all(&["print", "--where", "id == 5", SMALL]);
    assert_eq!(code, 2);
    assert!(
        error.contains("= help: there are `event.id` and `stream.id`"),
        "{error}"
    );
}

#[test]
fn filters_that_match_nothing_are_warned_of() {
    for command in ["print", "stats"] {
        let (code, _, error) = all(&[command, "--where", "u8 == 300", SMALL]);
        assert_eq!(code, 0);
        assert!(
            error.starts_with("warning: this test can never succeed"),
            "{error}"
        );
        assert!(
            error.contains("this is an integer from 0 to 255"),
            "{error}"
        );
    }
    for (window, wanted, hint) in [
        (
            ["--begin", "2026-11-21 12:00"],
            "from 2026-11-21 12:00:00.000000000",
            "",
        ),
        (
            ["--end", "10"],
            "to 1970-01-01 00:00:10.000000000",
            "hint: a number is seconds since 1970; `+SEC` counts from the first event\n",
        ),
        (
            ["--timerange", "09:05,09:06"],
            "2026-11-21 09:05:00.000000000 to 2026-11-21 09:06:00.000000000",
            "hint: a time without a date is of the day of the first event\n",
        ),
    ] {
        let args = [&["print", "--clock-gmt"][..], &window, &[SMALL]].concat();
        let (code, printed, error) = all(&args);
        assert_eq!((code, printed.as_str()), (0, ""));
        let warning = format!(
            "warning: no event is in the given time range, {wanted}: the recordings span \
             2026-11-21 09:04:22.051815625 to 2026-11-21 09:04:23.310716472\n"
        );
        assert_eq!(error, format!("{warning}{hint}"));
    }
    for time in [
        "9999-12-31 23:59:59",
        "2300-01-01T00:00Z",
        "99999999999999999999",
    ] {
        let (code, _, error) = all(&["print", "--begin", time, SMALL]);
        let expected =
            format!("error: `{time}` is out of range: times reach from 1677-09-22 to 2262-04-11\n");
        assert_eq!((code, error), (2, expected));
    }
    let args = ["print", "--clock-gmt", "--begin", "09:04:23.1", SMALL];
    assert_eq!(all(&args).2, "");
}

#[test]
fn info_stats_and_check_report_what_there_is() {
    let mut reports = String::new();
    for args in [
        &["info", "--clock-gmt", DISCARDED][..],
        &["info", "--schema", "--clock-gmt", "bitfield-be"],
        &["stats", "--clock-gmt", "--top", "3", DISCARDED],
        &["stats", "--clock-gmt", "--where", "cpu_id = 1", SMALL],
        &["check", DISCARDED],
    ] {
        reports += &format!("$ kymo {}\n{}\n", args.join(" "), good(args));
    }
    insta::assert_snapshot!(reports);
    let json: serde_json::Value =
        serde_json::from_str(&good(&["info", "--json", SMALL])).expect("JSON");
    assert_eq!(json["recordings"][0]["format"], "ctf");
    let stats: serde_json::Value =
        serde_json::from_str(&good(&["stats", "--json", SMALL])).expect("JSON");
    let check: serde_json::Value =
        serde_json::from_str(&good(&["check", "--json", SMALL])).expect("JSON");
    let events = lines(&good(&["print", SMALL]));
    assert_eq!(check["events"], events);
    assert_eq!(stats["events"], events);
    let keys: Vec<_> = check.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "discarded_events",
            "discarded_packets",
            "events",
            "faults",
            "fields",
            "packets",
            "result",
            "schema"
        ]
    );
}

#[test]
fn damage_is_reported_once_and_the_rest_is_shown() {
    let copy = Copy::of(SMALL);
    let whole = lines(&good(&["print", copy.path()]));
    let name = copy.file("r_0");
    let data = fs::read(&name).expect("a stream");
    fs::write(&name, &data[..data.len() - 100]).expect("a shorter stream");

    let (code, printed, error) = all(&["print", copy.path()]);
    assert_eq!(code, 1);
    assert_eq!(lines(&error), 1, "{error}");
    assert!(lines(&printed) > whole / 2);

    let (code, report, error) = all(&["check", "--json", copy.path()]);
    assert_eq!((code, error.as_str()), (1, ""));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let faults = report["faults"].as_array().expect("a list");
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0]["code"], "truncated");
    assert_eq!(report["events"], lines(&printed));

    let (code, printed, error) = all(&["print", "--strict", copy.path()]);
    assert_eq!((code, lines(&error), printed.as_str()), (1, 1, ""));
    assert_eq!(all(&["stats", copy.path()]).0, 1);
    assert_eq!(all(&["info", copy.path()]).0, 1);
    // The file is known to be too short before any event is read.
    let (code, report, _) = all(&["stats", "--strict", "--json", copy.path()]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((code, &report["events"]), (1, &0.into()));
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_cannot_be_read_is_reported() {
    let (code, printed, error) = all(&["print", "no-such-recording"]);
    assert_eq!((code, printed.as_str()), (3, ""));
    assert!(
        error.starts_with("error: `no-such-recording` does not exist\nhint: "),
        "{error}"
    );
    let empty = TempDir::new().expect("a directory");
    let empty = empty.path().to_str().expect("UTF-8");
    assert_eq!(all(&["check", empty]).0, 3);
    // One that can be read beside it is shown, but not all is well.
    let (code, printed, error) = all(&["print", empty, SMALL]);
    assert_eq!((code, lines(&error)), (1, 2));
    assert_eq!(lines(&printed), lines(&good(&["print", SMALL])));
}

#[test]
fn wrong_metadata_is_drawn() {
    let copy = Copy::of("bitfield-be");
    fs::write(
        copy.file("metadata"),
        "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = middle; };\n",
    )
    .expect("metadata");
    let (code, _, error) = all(&["print", copy.path()]);
    assert_eq!(code, 3);
    assert!(error.contains("metadata:2:"), "{error}");
    assert!(error.contains("byte_order = middle"), "{error}");
}

#[test]
fn warnings_about_metadata_name_its_file() {
    let session = TempDir::new().expect("a directory for the test");
    let metadata = "trace { major = 1; minor = 8; byte_order = le; odd = 1;
            uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"; };
        event { name = e; fields := struct { integer { size = 8; } x; }; };";
    for rotation in ["0", "1"] {
        let archive = session.path().join(rotation);
        fs::create_dir(&archive).expect("a directory");
        fs::write(archive.join("metadata"), metadata).expect("metadata");
        fs::write(archive.join("stream"), b"x").expect("a stream");
    }
    let path = session.path().to_str().expect("UTF-8");
    let (code, printed, error) = all(&["print", path]);
    assert_eq!((code, lines(&printed)), (0, 2), "{error}");
    let place = format!(" --> {path}/0/metadata:1:");
    assert!(error.contains(&place), "{error}");
}

#[test]
fn usage_errors_help() {
    for args in [
        &[][..],
        &["frobnicate"],
        &["print"],
        &["print", "--format", "xml", SMALL],
        &["print", "--timerange", "1", SMALL],
        &["print", "--begin", "25:00", SMALL],
        &["print", "--begin", "2", "--end", "1", SMALL],
        &["print", "--timerange", "1,2", "--begin", "1", SMALL],
        &["print", "--fields", "none", SMALL],
        &["print", "--threads", "0", SMALL],
        &["print", "--where", "(", SMALL],
        &["print", "--follow", "--format", "details", SMALL],
    ] {
        let (code, printed, error) = all(args);
        assert_eq!((code, printed.as_str()), (2, ""), "{args:?}");
        assert!(!error.is_empty(), "{args:?}");
    }
    let (code, _, error) = all(&[SMALL]);
    assert_eq!(code, 2);
    assert!(error.contains("`kymo print lttng-small`"), "{error}");
}

#[test]
fn what_does_not_fit_a_format_is_refused() {
    let refused = |args: &[&str], why: &str| {
        let (code, printed, error) = all(&[&["print"], args, &[SMALL]].concat());
        assert_eq!((code, printed.as_str()), (2, ""), "{args:?}");
        assert!(error.contains(why), "{args:?}: {error}");
    };
    for format in ["json", "csv", "details", "cpeldump", "elog_dump"] {
        for option in [
            "--clock-cycles",
            "--no-delta",
            "--names=all",
            "--fields=all",
            "--color=always",
        ] {
            let name = option.split('=').next().expect("a name");
            let whose = match (name, format) {
                ("--color", "details") => continue,
                ("--color", _) => "pretty and details",
                _ => "pretty",
            };
            let why = format!("`{name}` is for {whose}, and the output is {format}");
            refused(&["--format", format, option], &why);
        }
    }
    for option in ["--clock-date", "--clock-seconds"] {
        let why = format!("`{option}` is for pretty and json and csv, and the output is details");
        refused(&["--format=details", option], &why);
        // They shape the times in warnings.
        good(&["print", "--format=json", option, SMALL]);
        good(&["print", "--format=csv", option, SMALL]);
    }
    for format in ["json", "csv", "details"] {
        for color in ["--color=never", "--color=auto"] {
            good(&["print", "--format", format, color, SMALL]);
        }
    }
    let why = "`--format cpeldump` is for CPEL and Gist files";
    refused(&["--follow", "--format", "cpeldump"], why);
    let why = "`--format elog_dump` is for elog files";
    refused(&["--follow", "--format", "elog_dump"], why);
}

#[test]
fn the_last_of_several_options_counts() {
    let once = good(&["print", "--no-delta", "--names", "none", SMALL]);
    let options = [
        "--names",
        "all",
        "--no-delta",
        "--no-delta",
        "--names",
        "none",
    ];
    let twice = good(&[&["print"], &options[..], &[SMALL]].concat());
    assert!(once == twice);
}

#[test]
fn closed_pipes_end_quietly() {
    for args in [
        &["print", SMALL][..],
        &["info", SMALL],
        &["stats", SMALL],
        &["check", SMALL],
        &["completions", "bash"],
        &["man"],
    ] {
        let mut child = kymo(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kymo runs");
        drop(child.stdout.take());
        let mut error = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut error).expect("UTF-8");
        let status = child.wait().expect("kymo ends");
        assert_eq!((status.code(), error.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("every Linux has it");
    let output = kymo(&["print", SMALL])
        .stdout(full)
        .output()
        .expect("kymo runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error: cannot write: "));
}

#[test]
fn completions_and_manual_pages_are_written() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(good(&["completions", shell]).contains("stream-intersection"));
    }
    assert!(good(&["man"]).contains(".TH kymo 1"));
    let dir = TempDir::new().expect("a directory");
    let pages = dir.path().join("man1");
    good(&["man", pages.to_str().expect("UTF-8")]);
    let print = fs::read_to_string(pages.join("kymo-print.1")).expect("a page");
    assert!(print.contains("timerange"));
    assert!(print.contains(".SH EXAMPLES\n"));
    let float = fs::read_to_string(pages.join("kymo-machine-float.1")).expect("a page");
    assert!(float.contains("strtod"));
}

#[test]
fn growing_recordings_are_followed() {
    let copy = Copy::of(SMALL);
    let whole = good(&["print", "--no-delta", copy.path()]);
    let name = copy.file("r_0");
    let data = fs::read(&name).expect("a stream");
    let late = copy.file("r_1");
    let late_data = fs::read(&late).expect("a stream");
    fs::remove_file(&late).expect("removed");
    // In the middle of a packet.
    let half = data.len() / 2 + 100;
    fs::write(&name, &data[..half]).expect("half a stream");

    let events = lines(&whole).to_string();
    let mut child = kymo(&[
        "print",
        "--no-delta",
        "--follow",
        "--limit",
        &events,
        copy.path(),
    ])
    .stdout(Stdio::piped())
    .spawn()
    .expect("kymo runs");
    let mut printed = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    // Nothing is added before something was shown, so that there is something to follow.
    let mut followed = vec![printed.next().expect("a line").expect("UTF-8")];
    let mut file = fs::OpenOptions::new().append(true).open(&name).expect("it");
    file.write_all(&data[half..half + 5]).expect("some bytes");
    std::thread::sleep(std::time::Duration::from_millis(300));
    fs::write(&late, &late_data).expect("a new stream");
    file.write_all(&data[half + 5..]).expect("the rest");
    followed.extend(printed.map(|line| line.expect("UTF-8")));
    // With the last event the limit is reached.
    assert_eq!(child.wait().expect("kymo ends").code(), Some(0));
    let mut expected: Vec<&str> = whole.lines().collect();
    expected.sort_unstable();
    followed.sort_unstable();
    assert!(followed == expected);
}

#[test]
fn rotated_sessions_are_followed() {
    let copy = Copy::of(DISCARDED);
    fs::remove_file(copy.file("tiny_1")).expect("removed");
    let (_, whole, _) = all(&["print", "--no-delta", copy.path()]);
    let metadata = fs::read(copy.file("metadata")).expect("metadata");
    let data = fs::read(copy.file("tiny_0")).expect("a stream");
    let bits = data[56..64]
        .try_into()
        .expect("the size of the first packet");
    let first_packet = usize::try_from(u64::from_le_bytes(bits) / 8).expect("small");
    let (first, second) = data.split_at(first_packet);
    assert!(!second.is_empty());

    let session = TempDir::new().expect("a directory for the test");
    let archive = |name: &str, packets: &[u8]| {
        let dir = session.path().join(name);
        fs::create_dir(&dir).expect("a directory");
        fs::write(dir.join("tiny_0"), packets).expect("a stream");
        fs::write(dir.join("metadata"), &metadata).expect("metadata");
    };
    archive("0", first);
    let events = lines(&whole).to_string();
    let mut child = kymo(&["print", "--no-delta", "--follow", "--limit", &events])
        .arg(session.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kymo runs");
    let mut printed = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut followed = vec![printed.next().expect("a line").expect("UTF-8")];
    archive("1", second);
    followed.extend(printed.map(|line| line.expect("UTF-8")));
    assert_eq!(child.wait().expect("kymo ends").code(), Some(0));
    assert!(followed.iter().eq(whole.lines()));
}

#[test]
fn time_that_goes_back_is_reported() {
    let trace = TempDir::new().expect("a directory for the test");
    let metadata = "trace { major = 1; minor = 8; byte_order = le; };
        clock { name = c; };
        stream { event.header := struct {
            integer { size = 64; align = 8; map = clock.c.value; } time;
        }; };
        event { name = e; };";
    fs::write(trace.path().join("metadata"), metadata).expect("metadata");
    let times: Vec<u8> = [5u64, 9, 7, 8, 3]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    fs::write(trace.path().join("stream"), times).expect("a stream");
    let path = trace.path().to_str().expect("UTF-8");
    let fault = "stream: offset 16, packet 0, event 2: the time goes back to 7 ticks";
    let (code, out, err) = all(&["print", "--clock-cycles", "--no-delta", path]);
    assert_eq!((code, lines(&out), lines(&err)), (1, 5, 1), "{err}");
    assert!(err.trim_end().ends_with(fault), "{err}");
    let (code, out, _) = all(&["check", path]);
    assert_eq!(code, 1);
    assert!(out.contains(fault), "{out}");
    let (code, out, _) = all(&["print", "--strict", path]);
    assert_eq!((code, lines(&out)), (1, 0));
}

#[test]
fn lists_that_are_given_twice_add_up() {
    let shown = |options: &[&str]| good(&[&["print", "--limit", "3", SMALL], options].concat());
    let both = shown(&[
        "-n", "payload", "-n", "scope", "-f", "loglevel", "-f", "trace",
    ]);
    assert_eq!(
        both,
        shown(&["-n", "payload,scope", "-f", "loglevel,trace"])
    );
    assert_ne!(both, shown(&["-n", "scope", "-f", "trace"]));
    // Of `all` and `none`, the last one counts.
    let payload = shown(&["-n", "all", "-n", "none", "-n", "payload"]);
    assert_eq!(payload, shown(&["-n", "payload"]));
}

/// The lines that babeltrace2's sink.text.details prints with the parameter of the same name.
#[test]
fn details_leave_out_what_is_not_wanted() {
    let details = |item: &[&str]| good(&[&["print", "--format", "details", SMALL], item].concat());
    let all = details(&[]);
    let without = |item: &str| details(&["--details", item]);
    let count = |text: &str| text.lines().count();
    let messages = all.lines().filter(|line| line.starts_with("{Trace "));
    let messages = messages.count();
    // Each is a line behind the metadata.
    let metadata = count(&all) - count(&without("no-metadata"));
    assert_eq!(count(&without("compact")), metadata + messages);
    let compact = without("compact,no-metadata");
    assert_eq!(count(&compact), messages);
    assert!(compact.contains("} Event `demo:ints` (0)\n"), "{compact}");
    assert!(compact.starts_with("[Unknown] {0 0 0} Stream beginning\n"));
    // Every message has a time.
    assert_eq!(count(&without("no-time")), count(&all) - messages);
    assert!(!without("no-stream-name").contains("  Name: /") && all.contains("Trace `vm/"));
    assert!(!without("no-trace-name").contains("Trace `vm/"));
    assert!(all.contains("UID") && !without("no-uid").contains("UID"));
    let (code, _, reported) = self::all(&["print", "--details", "compact", SMALL]);
    assert_eq!(code, 2);
    assert!(
        reported.contains("`--details` is for details"),
        "{reported}"
    );
}
