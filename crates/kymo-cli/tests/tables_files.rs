//! `kymo convert --to parquet` and `--to arrow`.

mod common;

use common::{example, kymo_in};

#[cfg(not(feature = "arrow"))]
#[test]
fn a_program_without_tables_says_how_to_get_them() {
    let place = tempfile::tempdir().unwrap();
    let input = example("lttng-small");
    let input = input.to_str().unwrap();
    let (code, _, errors) = kymo_in(place.path(), &["convert", input, "-o", "a.parquet"]);
    assert_eq!(code, 2);
    assert!(errors.contains("--features arrow"), "{errors}");
    assert!(!place.path().join("a.parquet").exists());
}

/// What is wrong is found before anything is converted.
#[test]
fn an_export_to_tables_needs_a_directory() {
    let place = tempfile::tempdir().unwrap();
    let export = |words: &[&str]| {
        let words = [&["rrd", "export", "--to", "parquet"], words].concat();
        kymo_in(place.path(), &words)
    };
    for (words, expected) in [
        (
            &["a.rrd"][..],
            "ERROR: --output is missing: expected a directory for the Parquet files\n",
        ),
        (
            &["-o", "out", "--function", "SUM", "a.rrd"],
            "ERROR: unknown function 'SUM'\n",
        ),
    ] {
        let (code, _, errors) = export(words);
        assert_eq!((code, &*errors), (1, expected));
    }
}

#[cfg(feature = "arrow")]
mod with_tables {
    use super::{example, kymo_in};

    #[test]
    fn a_directory_is_written_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let input = example("lttng-discarded");
        let input = input.to_str().unwrap();
        let run = |words: &[&str]| kymo_in(place.path(), words);
        let (code, _, errors) = run(&["convert", input, "-o", "a.parquet"]);
        assert_eq!(code, 0, "{errors}");
        assert!(errors.contains("that the recorder discarded"), "{errors}");
        let root = place.path().join("a.parquet");
        for table in ["losses", "packets", "class=demo%3Aints"] {
            assert!(root.join(table).join("part-0.parquet").is_file(), "{table}");
        }
        let (code, _, errors) = run(&["convert", input, "-o", "a.parquet"]);
        assert_eq!(code, 2);
        assert!(
            errors.contains("tables already exist there\nhint: `--force`"),
            "{errors}"
        );
        let (code, _, _) = run(&["convert", input, "-o", "a.parquet", "--force"]);
        assert_eq!(code, 0);
        // What is not a table is not removed.
        std::fs::write(root.join("notes"), "").unwrap();
        let (code, _, _) = run(&["convert", input, "-o", "a.parquet", "--force"]);
        assert_eq!(code, 2);
        assert!(root.join("notes").exists());
        // Losses are damage if that is asked for, and nothing is left.
        let (code, _, _) = run(&["convert", input, "-o", "b.parquet", "--strict"]);
        assert_eq!(code, 1);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    /// Rows of one function and span, of databases and of directories with some.
    #[test]
    fn databases_are_exported_to_tables() {
        let place = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| {
            let (code, text, errors) = kymo_in(place.path(), words);
            assert_eq!(code, 0, "{words:?} {errors}");
            text
        };
        std::fs::create_dir(place.path().join("tree")).unwrap();
        for file in ["a.rrd", "tree/b.rrd"] {
            let archives = ["RRA:AVERAGE:0.5:1:60", "RRA:MAX:0.5:2:60"];
            let source = "DS:load:GAUGE:60:U:U";
            run(&[
                &[
                    "rrd",
                    "create",
                    file,
                    "-b",
                    "1600000000",
                    "-s",
                    "10",
                    source,
                ],
                &archives[..],
            ]
            .concat());
            run(&[
                "rrd",
                "update",
                file,
                "1600000010:1",
                "1600000020:2",
                "1600000030:3",
            ]);
        }
        let export = ["rrd", "export", "--to", "parquet", "--output"];
        let all = [&export[..], &["all", "a.rrd", "tree"]].concat();
        run(&all);
        let span = [
            "-s",
            "1600000020",
            "-e",
            "start+10s",
            "--function",
            "AVERAGE",
        ];
        run(&[&export[..], &["part", "a.rrd", "tree"], &span].concat());
        // Rows are in the order of databases, and not of times: that is reported.
        let samples = |directory: &str| {
            let file = format!("{directory}/samples");
            let (_, text, _) = kymo_in(place.path(), &["print", "--format", "json", &file]);
            let lines = text.lines();
            let known = lines
                .filter(|line| !line.contains("\"value\":null"))
                .count();
            (text, known)
        };
        let (text, known) = samples("all");
        assert!(text.contains("MAX"), "{text}");
        // Of each, three rows of one step, and one of two.
        assert_eq!(known, 8, "{text}");
        let (text, known) = samples("part");
        assert!(!text.contains("MAX"), "{text}");
        assert_eq!(known, 4, "{text}");
        let (code, _, errors) = kymo_in(place.path(), &all);
        assert_eq!(code, 2);
        assert!(errors.contains("`--force` overwrites"), "{errors}");
        run(&[&all[..], &["--force"]].concat());
    }

    #[test]
    fn a_part_of_tables_is_tables() {
        let place = tempfile::tempdir().unwrap();
        let input = example("lttng-small");
        let input = input.to_str().unwrap();
        let run = |words: &[&str]| {
            let (code, out, errors) = kymo_in(place.path(), words);
            assert_eq!(code, 0, "{words:?}: {errors}");
            out
        };
        let chosen = ["--where", "u16 > 100"];
        run(&["convert", input, "-o", "tables", "--to", "parquet"]);
        run(&[&["cut", "tables", "-o", "part"][..], &chosen].concat());
        let print = ["print", "--clock-gmt", "--no-delta"];
        let part = run(&[&print[..], &["part"]].concat());
        assert_eq!(part, run(&[&print[..], &["tables"], &chosen].concat()));
        assert!(part.lines().count() > 10, "{part}");
        assert!(place.path().join("part/class=demo%3Aints").is_dir());
    }

    #[test]
    fn a_stream_goes_to_a_file_or_to_standard_output() {
        let place = tempfile::tempdir().unwrap();
        let input = example("lttng-small");
        let input = input.to_str().unwrap();
        let words = ["convert", input, "-o", "a.arrow", "--event", "demo:ints"];
        let (code, _, errors) = kymo_in(place.path(), &words);
        assert_eq!((code, &*errors), (0, ""));
        assert!(
            std::fs::metadata(place.path().join("a.arrow"))
                .unwrap()
                .len()
                > 10_000
        );
    }

    #[test]
    fn tables_are_read_as_the_trace_that_they_were() {
        let place = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| kymo_in(place.path(), words);
        let input = example("lttng-discarded/ust/uid/0/64-bit");
        let input = input.to_str().unwrap();
        let (code, _, errors) = run(&["convert", input, "-o", "tables.parquet"]);
        assert_eq!(code, 0, "{errors}");
        let (code, _, errors) = run(&["convert", "tables.parquet", "--to", "ctf2", "-o", "trace"]);
        assert_eq!(code, 0, "{errors}");
        let printed = |path: &str| {
            let (code, text, errors) = run(&["print", "--format", "json", path]);
            assert_eq!(code, 0, "{errors}");
            text.replace(&format!("\"recording\":\"{path}\""), "")
        };
        let before = printed(input);
        assert!(before.lines().count() > 1000);
        assert_eq!(printed("tables.parquet"), before);
        assert_eq!(printed("trace"), before);
        // One file alone is its rows.
        let file = "tables.parquet/class=demo%3Aints/part-0.parquet";
        let (_, text, _) = run(&["print", "--format", "json", file]);
        let of_class = before.lines().filter(|line| line.contains("\"demo:ints\""));
        assert_eq!(text.lines().count(), of_class.count());
        // What is damaged is refused with its path.
        std::fs::write(place.path().join(file), b"PAR1 and nothing else").unwrap();
        let (code, _, errors) = run(&["print", "tables.parquet"]);
        assert_eq!(code, 3);
        assert!(errors.contains("demo%3Aints/part-0.parquet"), "{errors}");
        // The message says which column of a file is damaged, and where.
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/parquet");
        let file = format!("{corpus}/data-page-without-dictionary.parquet");
        let (code, _, errors) = run(&["print", &file]);
        assert_eq!(code, 3);
        assert_eq!(errors.lines().count(), 1, "{errors}");
        let problem = "column `value`, page at byte 395: it has no dictionary before it";
        assert!(errors.contains(problem), "{errors}");
    }

    #[test]
    fn options_choose_of_tables_what_they_choose_of_the_trace() {
        let place = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| kymo_in(place.path(), words);
        let input = example("lttng-small");
        let input = input.to_str().unwrap();
        let (code, _, errors) = run(&["convert", input, "-o", "tables.parquet"]);
        assert_eq!(code, 0, "{errors}");
        for options in [
            &["--begin=2026-11-21T09:04:23.08Z"][..],
            &["--end=2026-11-21T09:04:23.08Z"],
            &[
                "--clock-gmt",
                "--begin=2026-11-21 09:04:23.077",
                "--end=2026-11-21 09:04:23.079",
            ],
            &["--begin=+1ms", "--end=+3ms"],
            &["--clock-gmt", "--begin=09:04:23.08"],
            &["--begin=1795251864.08", "--clock-offset=1"],
            &["--begin=2026-11-21T09:04:23.08Z", "--offset=.=1s"],
            &["--event=demo:s*"],
            &["--event=demo:sched", "--where=next_prio > 10", "--after=1"],
            &["--event=demo:ints", "--end=2026-11-21T09:04:23.077Z"],
            &["--begin=2030-01-01"],
        ] {
            let printed =
                |path: &str| {
                    let mut words = vec!["print"];
                    let offset = format!("--offset={path}=1s");
                    words.extend(options.iter().map(
                        |option| match option.starts_with("--offset=") {
                            true => &*offset,
                            false => option,
                        },
                    ));
                    words.push(path);
                    let (code, text, errors) = run(&words);
                    (code, text, errors.replace(path, "PATH"))
                };
            let of_trace = printed(input);
            assert_eq!(of_trace.0, 0, "{options:?}: {}", of_trace.2);
            assert_eq!(printed("tables.parquet"), of_trace, "{options:?}");
        }
    }
}
