//! Event logs, as the program shows them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-cpel/tests/data")
}

/// Exit code, standard output and standard error of the program, run beside the logs in UTC.
fn kymo(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(logs())
        .env("TZ", "UTC")
        .output()
        .expect("kymo runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("not killed"),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Standard output of a run that must be good and silent.
fn good(args: &[&str]) -> String {
    let (code, out, err) = kymo(args);
    assert_eq!((code, &*err), (0, ""), "{args:?}");
    out
}

#[test]
fn events_have_many_forms() {
    assert_eq!(
        good(&["print", "--format", "json", "--limit", "2", "le_basic.cpel"]),
        concat!(
            r#"{"timestamp":1000009305,"recording":"le_basic.cpel","kind":"event","track":0,"#,
            r#""track_name":"cpu 0","event":"counter","event_class":5,"datum":867,"text":"867"}"#,
            "\n",
            r#"{"timestamp":1000026521,"recording":"le_basic.cpel","kind":"event","track":1,"#,
            r#""track_name":"cpu 1 (1)","event":"THREAD/THRUNNING","event_class":1,"datum":148,"#,
            r#""text":"pid:103 tid:3"}"#,
            "\n",
        )
    );
    assert_eq!(
        good(&["print", "--limit", "1", "symtab_k.cpel"]),
        "[00:00:00.000000010] (+?.?????????) FUNC/ENTER: { track = 0, track_name = \"0\" }, \
         { datum = 4198416, text = \"main+0x10\" }\n"
    );
    assert_eq!(
        good(&[
            "print",
            "--format",
            "csv",
            "--event",
            "str",
            "symtab_k.cpel"
        ]),
        "timestamp,recording,kind,name,track,track_name,datum,text\n\
         50,symtab_k.cpel,event,str,0,0,59,<main        >\n"
    );
    let condition = "track_name == \"cpu 0\" and text contains \"pid:101\"";
    let chosen = good(&["print", "--where", condition, "be_basic.cpel"]);
    assert!(chosen.lines().count() > 1);
    assert!(chosen.lines().all(|line| line.contains("pid:101 tid:1")));
}

#[test]
fn several_logs_are_on_one_time_line() {
    let merged = good(&[
        "print",
        "--format",
        "json",
        "be_basic.cpel",
        "symtab_k.cpel",
    ]);
    let times: Vec<u64> = merged
        .lines()
        .map(|line| {
            let number = line.strip_prefix("{\"timestamp\":").unwrap();
            number.split(',').next().unwrap().parse().unwrap()
        })
        .collect();
    assert_eq!(times.len(), 205);
    assert!(times.is_sorted());
    // What is not in order is put in order, whatever the number of threads.
    let sorted = good(&["print", "--threads", "1", "unsorted.cpel"]);
    assert_eq!(sorted, good(&["print", "--threads", "2", "unsorted.cpel"]));
    let of_basic = good(&["print", "--limit", "40", "be_basic.cpel"]);
    assert_eq!(sorted, of_basic);
}

#[test]
fn clocks_are_told_or_guessed() {
    let (code, _, warning) = kymo(&["print", "clock_per_us_1000.cpel"]);
    assert_eq!(code, 0);
    assert!(
        warning.contains("taken for the ticks in a microsecond"),
        "{warning}"
    );
    let first = |clock: &str| {
        let args = [
            "print", "--format", "json", "--limit", "1", "--clock", clock,
        ];
        let out = good(&[&args[..], &["clock_per_us_1000.cpel"]].concat());
        out.split(',').next().unwrap().to_string()
    };
    assert_eq!(first("per-us"), "{\"timestamp\":1000009305");
    assert_eq!(first("per-second"), "{\"timestamp\":1000009305000000");
    assert_eq!(first("2000000000"), "{\"timestamp\":500004652");
    let (code, _, error) = kymo(&["print", "--clock", "fast", "be_basic.cpel"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("expected `auto`, `per-second`, `per-us`"),
        "{error}"
    );
    let gist = [
        "print", "--format", "json", "--limit", "1", "--clock", "1000000",
    ];
    let gist = good(&[&gist[..], &["gist_200.gist"]].concat());
    assert!(
        gist.contains(r#""event":"E5","event_class":5,"datum":867,"text":"""#),
        "{gist}"
    );
    assert!(gist.starts_with("{\"timestamp\":1000009305000,"), "{gist}");
    let later = good(&[
        "print",
        "--clock-offset",
        "7",
        "--clock-offset-ns",
        "1",
        "--format",
        "json",
        "--limit",
        "1",
        "be_basic.cpel",
    ]);
    assert!(later.starts_with("{\"timestamp\":8000009306,"), "{later}");
}

#[test]
fn reports_tell_what_there_is() {
    let info = good(&["info", "--schema", "order_reversed.cpel"]);
    let stats = good(&["stats", "order_reversed.cpel"]);
    insta::assert_snapshot!(format!("{info}\n{stats}"));
    let json = good(&["info", "--json", "unsorted.cpel"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let recording = &json["recordings"][0];
    assert_eq!(recording["format"], "cpel");
    assert_eq!(recording["events"], 40);
    assert_eq!(recording["unsorted_streams"][0], 0);
    assert_eq!(recording["sections"][3]["name"], "events");
}

#[test]
fn damage_is_told_and_the_rest_shown() {
    let (code, out, err) = kymo(&["print", "truncated_mid_event.cpel"]);
    assert_eq!((code, out.lines().count()), (1, 149));
    assert!(err.contains("3065 of the 4072 bytes"), "{err}");
    let (code, out, _) = kymo(&["check", "datum_oob.cpel"]);
    assert_eq!(code, 1);
    assert!(out.contains("[string-offset]"), "{out}");
    for (file, why) in [
        ("version2.cpel", "CPEL of version 2"),
        ("truncated_header.cpel", "6 bytes"),
    ] {
        let (code, _, err) = kymo(&["info", file]);
        assert_eq!(code, 3);
        assert!(err.contains(why), "{err}");
    }
    let (code, _, err) = kymo(&["print", "--format", "details", "be_basic.cpel"]);
    assert_eq!(code, 2);
    assert!(err.contains("is an event log"), "{err}");
}

#[test]
fn logs_are_found_by_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        std::fs::copy(logs().join(from), folder.path().join(to)).unwrap();
        folder.path().join(to).display().to_string()
    };
    for from in ["le_basic.cpel", "order_reversed.cpel"] {
        let path = copy(from, "no-extension");
        assert_eq!(good(&["print", &path]).lines().count(), 200);
    }
    // Of what is searched, names decide what is looked at.
    copy("symtab_k.cpel", "a.cpel");
    copy("multi_strtab.cpel", "b.cpel");
    let found = good(&["print", &folder.path().display().to_string()]);
    assert_eq!(found.lines().count(), 5 + 3);
}

#[test]
fn logs_are_dumped_as_programs_of_vpp_do() {
    let dump = |log: &str| good(&["print", "--format", "cpeldump", log]);
    let first = dump("be_basic.cpel");
    assert!(
        first.starts_with(
            "000:00:00:000:000 cpu 0      counter          867\n\
             000:00:00:000:017 cpu 1 (1)  THREAD/THRUNNING pid:103 tid:3\n"
        ),
        "{first}"
    );
    assert_eq!(dump("le_basic.cpel"), first);
    let filtered = [
        "print",
        "--format",
        "cpeldump",
        "--event",
        "counter",
        "--limit",
        "2",
        "be_basic.cpel",
    ];
    let counters: Vec<&str> = first
        .lines()
        .filter(|line| line.contains(" counter "))
        .collect();
    assert_eq!(
        good(&filtered),
        format!("{}\n{}\n", counters[0], counters[1])
    );
    // Sections and files come one after the other, each with times from its first event on.
    let sections = dump("multi_strtab.cpel");
    assert!(
        sections
            .starts_with("000:00:00:000:000 seven alpha one\n000:00:00:000:000 eight alpha two\n"),
        "{sections}"
    );
    let both = [
        "print",
        "--format",
        "cpeldump",
        "multi_strtab.cpel",
        "be_basic.cpel",
    ];
    assert_eq!(good(&both), format!("{sections}{first}"));
    let other_way = [
        "print",
        "--format",
        "cpeldump",
        "be_basic.cpel",
        "multi_strtab.cpel",
    ];
    assert_eq!(good(&other_way), format!("{first}{sections}"));
    // The same datum for each conversion, a number for `%d secs`, symbols.
    assert!(dump("symtab_k.cpel").contains("FUNC/ENTER main+0x10\n"));
    for (format, log, hint) in [
        (
            "elog_dump",
            "be_basic.cpel",
            "a CPEL or Gist file: `--format elog_dump` is for elog files; hint: `--format cpeldump`",
        ),
        (
            "details",
            "be_basic.cpel",
            "an event log: `--format details` is for traces",
        ),
    ] {
        let (code, out, err) = kymo(&["print", "--format", format, log]);
        assert_eq!((code, &*out), (2, ""));
        assert!(err.contains(hint), "{err}");
    }
}
