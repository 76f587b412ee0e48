//! Event logs, as the program shows them.

mod common;

use std::path::{Path, PathBuf};

use common::kymo_in;

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-cpel/tests/data")
}

/// The program, run beside the logs.
fn kymo(args: &[&str]) -> (i32, String, String) {
    kymo_in(&logs(), args)
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
            r#"{"timestamp":1000009305,"recording":"le_basic.cpel","kind":"event","schema":1,"track":0,"#,
            r#""track_name":"cpu 0","event":"counter","event_class":5,"datum":867,"text":"867"}"#,
            "\n",
            r#"{"timestamp":1000026521,"recording":"le_basic.cpel","kind":"event","schema":1,"track":1,"#,
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
        "timestamp,recording,kind,name,schema,track,track_name,datum,text\n\
         50,symtab_k.cpel,event,str,csv-1,0,0,59,<main        >\n"
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
fn clocks_are_reported_or_guessed() {
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
    let (code, _, error) = kymo(&["info", "--clock-offset", "9300000000", "be_basic.cpel"]);
    assert_eq!(code, 3);
    assert!(
        error.contains(
            "`be_basic.cpel` cannot be aligned: their times would not fit in 64 bits of nanoseconds"
        ),
        "{error}"
    );
}

#[test]
fn reports_report_what_there_is() {
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
fn damage_is_reported_and_the_rest_shown() {
    let (code, out, err) = kymo(&["print", "truncated_mid_event.cpel"]);
    assert_eq!((code, out.lines().count()), (1, 149));
    assert!(err.contains("3065 of the 4072 bytes"), "{err}");
    let (code, out, _) = kymo(&["check", "datum_oob.cpel"]);
    assert_eq!(code, 1);
    assert!(out.contains("[string-offset]"), "{out}");
    // Without any event class, it is not the field that is wrong.
    let directory = tempfile::tempdir().expect("a directory");
    let cut = directory.path().join("cut.cpel");
    let bytes = b"\x01\0\0\x01\0\0\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0\0\0";
    std::fs::write(&cut, bytes).expect("a file");
    let (code, out, err) = kymo(&["values", "--field", "event.name", &cut.to_string_lossy()]);
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.contains("[truncated]"), "{out}");
    // It begins as a datagram of collectd does.
    let (code, out, err) = kymo(&["print", "nsections_too_big.cpel"]);
    assert_eq!(code, 1);
    assert!(
        !out.is_empty() && err.contains("the header says there are 9"),
        "{err}"
    );
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
    assert!(err.contains("is a CPEL or Gist file"), "{err}");
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
            "a CPEL or Gist file: `--format elog_dump` is for elog files\nhint: `--format cpeldump`",
        ),
        (
            "details",
            "be_basic.cpel",
            "a CPEL or Gist file: `--format details` is for traces",
        ),
    ] {
        let (code, out, err) = kymo(&["print", "--format", format, log]);
        assert_eq!((code, &*out), (2, ""));
        assert!(err.contains(hint), "{err}");
    }
    let (code, out, err) = kymo(&["print", "--follow", "--format", "cpeldump", "be_basic.cpel"]);
    assert_eq!((code, &*out), (2, ""));
    assert!(
        err.contains("`--follow` is for pretty and json and csv"),
        "{err}"
    );
}

/// An elog file that began at some nanoseconds and ticks of the processor, with events that show a
/// number and a string: seconds, number, string.
fn elog(nanos: u64, ticks: u64, track: &str, events: &[(f64, u8, &str)]) -> Vec<u8> {
    fn long(value: u64) -> Vec<u8> {
        let [low, high] = [value as u32, (value >> 32) as u32];
        [low.to_be_bytes(), high.to_be_bytes()].concat()
    }
    fn string(text: &str) -> Vec<u8> {
        [&[text.len() as u8 * 2 + 1], text.as_bytes()].concat()
    }
    let number = |number: u32| number.to_be_bytes().to_vec();
    let mut parts = vec![b"\0\0\0\x07elog v0".to_vec(), number(16)];
    // A tick is half a nanosecond.
    for moment in [nanos + 1_000_000, ticks + 2_000_000, nanos, ticks] {
        parts.push(long(moment));
    }
    parts.extend([
        number(1),
        string("got %d %s"),
        string("i1s0"),
        number(1),
        number(0),
    ]);
    parts.extend([number(1), string(track), number(0)]);
    parts.push(number(events.len() as u32));
    for (seconds, value, text) in events {
        parts.extend([
            vec![0; 4],
            long(seconds.to_bits()),
            vec![*value],
            string(text),
        ]);
    }
    parts.concat()
}

#[test]
fn elogs_are_dumped_and_merged_as_vpp_does() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    let events = [(0.25, 1, "a"), (12.5, 2, "bc")];
    let first = write("first.elog", elog(5_000, 100, "worker", &events));
    let dump = |logs: &[&str]| good(&[&["print", "--format", "elog_dump"], logs].concat());
    assert_eq!(
        dump(&[&first]),
        "2 events\n        .250000000 worker                   got 1 a\n      \
         12.500000000 worker                   got 2 bc\n"
    );
    assert_eq!(dump(&["--limit", "0", &first]), "2 events\n");
    // It began 1000 ns later by the system's clock, and 1010 ns later by that of the processor.
    let name = "a name that is too long";
    let second = write("second.elog", elog(6_000, 2_120, name, &[(0.25, 3, "")]));
    let merged = "3 events\n        .250000000 F0:worker                got 1 a\n        \
         .250001010 F1:a name that is too lo got 3 \n      \
         12.500000000 F0:worker                got 2 bc\n";
    assert_eq!(dump(&[&first, &second]), merged);
    // The other way round the times are the same.
    let swapped = merged
        .replace("F0", "F2")
        .replace("F1", "F0")
        .replace("F2", "F1");
    assert_eq!(dump(&[&second, &first]), swapped);
    let tagged = dump(&["--tag", &format!("{second}=B"), &first, &second]);
    assert_eq!(
        tagged,
        merged.replace("F1:a name that is too lo", "B:a name that is too lon")
    );
    assert!(dump(&["--tag", &format!("{first}=A"), &first]).contains(" A:worker  "));
    for (format, path, expected) in [
        (
            "json",
            &first,
            "`--tag` is for elog_dump, and the output is json",
        ),
        ("elog_dump", &second, "it is not among the inputs"),
    ] {
        let tag = format!("{path}=A");
        let (code, _, err) = kymo(&["print", "--format", format, "--tag", &tag, &first]);
        assert_eq!(code, 2);
        assert!(err.contains(expected), "{err}");
    }
    // What the processor says is too far away to be true.
    let third = write("third.elog", elog(6_000, 2_320, "third", &[(0.25, 3, "")]));
    assert!(dump(&[&first, &third]).contains("        .250001000 F1:third"));
    let (code, out, err) = kymo(&["print", "--format", "cpeldump", &first]);
    assert_eq!((code, &*out), (2, ""));
    let hint = "an elog file: `--format cpeldump` is for CPEL and Gist files\nhint: `--format elog_dump` shows it";
    assert!(err.contains(hint), "{err}");
}

#[test]
fn lines_name_their_recordings_where_not_all_are_traces() {
    let (trace, database) = (
        "../../../../examples/lttng-small/ust/uid/0/64-bit",
        "../../../kymo-rrd/tests/data/amd64/tiny.rrd",
    );
    let (code, merged, reported) = kymo(&["print", trace, "symtab_k.cpel", database]);
    assert_eq!(code, 0);
    assert!(
        reported.starts_with("warning: `symtab_k.cpel` has no date"),
        "{reported}"
    );
    for path in [trace, "symtab_k.cpel", database] {
        let of_path = merged
            .lines()
            .filter(|line| line.contains(&format!(") {path}: ")));
        let alone = good(&["print", "--no-delta", path]);
        let beside: Vec<String> = of_path
            .map(|line| {
                let (time, rest) = line.split_once(" (").unwrap();
                let (_, rest) = rest.split_once(&format!(") {path}: ")).unwrap();
                format!("{time} {rest}")
            })
            .collect();
        assert!(!beside.is_empty());
        assert_eq!(beside, alone.lines().collect::<Vec<_>>());
    }
    assert!(!good(&["print", trace, trace]).contains("64-bit: "));
    let named = good(&["print", "--fields", "recording", "symtab_k.cpel"]);
    assert!(named.lines().all(|line| line.contains(") symtab_k.cpel: ")));
}

#[test]
fn logs_become_lines_and_logs_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (lines, back) = (path("a.jsonl"), path("a.cpel"));
    for (log, times) in [
        ("be_basic.cpel", "number"),
        ("be_basic.cpel", "text"),
        ("be_basic.cpel", "iso"),
        ("unsorted.cpel", "iso"),
        ("multi_strtab.cpel", "number"),
    ] {
        good(&["convert", log, "--times", times, "-o", &lines, "--force"]);
        good(&["convert", &lines, "-o", &back, "--force"]);
        let [before, after] = [logs().join(log), (&back).into()].map(std::fs::read);
        assert!(before.unwrap() == after.unwrap(), "{log}");
        let dump = |log: &str| good(&["print", "--format", "cpeldump", log]);
        assert_eq!(dump(&lines), dump(log));
    }
    let chosen = [
        "convert",
        "be_basic.cpel",
        "-o",
        &lines,
        "--force",
        "--event",
        "counter",
    ];
    good(&chosen);
    good(&["convert", &lines, "-o", &back, "--force"]);
    let dump = ["print", "--format", "cpeldump", "--event", "counter"];
    let events = |log: &str| {
        let dump = good(&[&dump[..], &[log]].concat());
        // Times count from the first event that there is.
        let events = dump.lines().map(|line| line.split_once(' ').unwrap().1);
        events.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(events(&back), events("be_basic.cpel"));
    assert_eq!(good(&["print", &back]).lines().count(), events(&back).len());
    let shown = good(&["print", "--format", "json", "be_basic.cpel"]);
    std::fs::write(&lines, shown).unwrap();
    let (code, _, error) = kymo(&["info", &lines]);
    assert_eq!(code, 3);
    assert!(
        error.contains("a.jsonl` is not a recording: it is events as lines of JSON"),
        "{error}"
    );
    let (code, _, error) = kymo(&["convert", "be_basic.cpel", "-o", &path(""), "--to", "cpel"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("is a directory, and the output is a file"),
        "{error}"
    );
}

#[test]
fn headers_name_the_events_of_gist_logs() {
    let home = tempfile::TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let points = write(
        "points.h",
        "#define FIVE 5 /* half 50%: 0x%x */\n#define FOUR EV_NUM(3) /* three */\n#define AGAIN 5 /* again: %d */\n",
    );
    let list = write(
        "elog.h",
        "#define BASE 1 /* pointdefs: points.h */\n#define NOT 2\n",
    );
    let print = |header: &str| {
        good(&[
            "print",
            "--format",
            "json",
            "--clock",
            "1000000000",
            "--pointdefs",
            header,
            "gist_200.gist",
        ])
    };
    let out = print(&points);
    let first = out
        .lines()
        .find(|line| line.contains("\"datum\":867,"))
        .unwrap();
    assert!(
        first.contains(r#""event":"half 50%","event_class":5,"datum":867,"text":"0x363""#),
        "{first}"
    );
    // Codes of `EV_NUM` begin at a base: 4 is named by the list, and 3 by the header alone.
    let named = |out: &str, code: u32| {
        let class = format!("\"event_class\":{code},");
        out.lines()
            .filter(|line| line.contains(&class))
            .any(|line| line.contains("\"event\":\"three\""))
    };
    assert!(named(&out, 3) && !named(&out, 4));
    let out = print(&list);
    assert!(!named(&out, 3) && named(&out, 4));
    // What has names of its own keeps them.
    let without = good(&["print", "be_basic.cpel"]);
    assert_eq!(
        good(&["print", "--pointdefs", &points, "be_basic.cpel"]),
        without
    );
    let nothing = write("nothing.h", "#define X 1\n");
    for wrong in [&*nothing, "/nowhere.h"] {
        let (code, _, error) = kymo(&["print", "--pointdefs", wrong, "gist_200.gist"]);
        assert_eq!(code, 2, "{error}");
    }
}
