//! What traces and their indexes overwrite, and where they are not written.

use super::*;

#[test]
fn nothing_else_is_overwritten() {
    let home = home();
    let trace = example("bitfield-le");
    let output = home.path().join("output");
    fs::create_dir(&output).expect("a directory");
    fs::write(output.join("precious"), "x").expect("a file");
    for force in [&[][..], &["--force"]] {
        let run = kymo(&[&["convert", text(&trace), "-o", text(&output)], force].concat());
        assert_eq!(run.status.code(), Some(2));
    }
    assert!(output.join("precious").is_file());
    fs::remove_file(output.join("precious")).expect("a file");
    good(&["convert", text(&trace), "-o", text(&output)]);
    let run = kymo(&["convert", text(&trace), "-o", text(&output)]);
    assert_eq!(run.status.code(), Some(2));
    good(&["convert", text(&trace), "-o", text(&output), "--force"]);
    let entries = fs::read_dir(home.path()).expect("a directory").count();
    assert_eq!(entries, 1, "nothing is left beside the output");
}

#[test]
fn damaged_files_get_no_index() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let cuts: [fn(&mut Vec<u8>); 2] = [
        |bytes| bytes.truncate(bytes.len() - 1000),
        // The magic number of the second packet.
        |bytes| {
            let is_magic = |at: &usize| bytes[*at..].starts_with(&[0xc1, 0x1f, 0xfc, 0xc1]);
            let second = (1..bytes.len()).find(is_magic).expect("a second packet");
            bytes[second] ^= 1;
        },
    ];
    for cut in cuts {
        let trace = changed(&home, name, "tiny_0", cut);
        assert_eq!(kymo(&["check", text(&trace)]).status.code(), Some(1));
        let output = kymo(&["index", text(&trace)]);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("tiny_0: it is damaged, so no index"), "{err}");
        assert!(!trace.join("index/tiny_0.idx").exists());
    }
}

#[cfg(unix)]
#[test]
fn only_traces_are_overwritten_and_no_inputs() {
    let home = home();
    let small = example("rfc-small");
    let place = home.path().join("p");
    fs::create_dir_all(place.join("src")).expect("made");
    fs::write(place.join("src/precious"), "x").expect("written");
    let refused = |output: &Path, input: &Path, found: &str| {
        let run = kymo(&[
            "convert",
            text(input),
            "-o",
            text(output),
            "--to",
            "ctf-rfc",
            "--force",
        ]);
        assert_eq!(run.status.code(), Some(2));
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(err.contains(found), "{err}");
    };
    fs::write(place.join("metadata"), "hi\n").expect("written");
    refused(&place, &small, "metadata is not metadata of a trace");
    fs::copy(small.join("metadata"), place.join("metadata")).expect("copied");
    refused(&place, &small, "src is not a part of one");
    assert!(place.join("src/precious").exists());

    let traces = home.path().join("t");
    for name in ["a", "b"] {
        good(&[
            "convert",
            text(&small),
            "-o",
            text(&traces.join(name)),
            "--to",
            "ctf-rfc",
        ]);
    }
    let input = traces.join("a");
    refused(&traces, &input, "the input");
    refused(&input, &input, "the input");
    assert!(input.join("metadata").exists() && traces.join("b/metadata").exists());
    // What holds nothing but other traces may go.
    good(&[
        "convert",
        text(&small),
        "-o",
        text(&traces),
        "--to",
        "ctf-rfc",
        "--force",
    ]);
    assert!(traces.join("metadata").exists());
    assert_eq!(fs::read_dir(home.path()).expect("read").count(), 2);
}

#[cfg(unix)]
#[test]
fn indexes_are_not_written_where_links_lead() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let trace = changed(&home, name, "tiny_0", |_| {});
    let (elsewhere, mine) = (home.path().join("elsewhere"), home.path().join("mine"));
    fs::create_dir(&elsewhere).expect("made");
    fs::write(&mine, "mine").expect("written");
    let index = trace.join("index");
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).expect("a link");
    link(&elsewhere, &index);
    for force in [&[][..], &["--force"]] {
        let run = kymo(&[&["index", text(&trace)], force].concat());
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{err}");
        assert!(err.contains("index: it is not a directory"), "{err}");
    }
    assert_eq!(fs::read_dir(&elsewhere).expect("read").count(), 0);
    fs::remove_file(&index).expect("removed");
    // A link in the place of an index is replaced when that is asked for, and not followed.
    fs::create_dir(&index).expect("made");
    link(&mine, &index.join("tiny_0.idx"));
    assert_eq!(kymo(&["index", text(&trace)]).status.code(), Some(2));
    let reported = good(&["index", "--force", text(&trace)]);
    assert!(
        reported.contains("`index/tiny_0.idx` is ignored"),
        "{reported}"
    );
    assert_eq!(fs::read_to_string(&mine).expect("read"), "mine");
    let there = fs::symlink_metadata(index.join("tiny_0.idx")).expect("an index");
    assert!(there.is_file());
}

#[test]
fn a_trace_is_not_overwritten_with_what_lies_beside_it() {
    let home = home();
    // With magic numbers, without them, of sections.
    for (number, (input, to)) in [
        ("lttng-small/ust/uid/0/64-bit", "ctf1.8"),
        ("lttng-small/ust/uid/0/64-bit", "ctf2"),
        ("bitfield-le", "ctf1.8"),
        ("rfc-small", "ctf-rfc"),
    ]
    .into_iter()
    .enumerate()
    {
        let (input, output) = (example(input), home.path().join(format!("t{number}")));
        let convert = ["convert", text(&input), "-o", text(&output), "--to", to];
        good(&convert);
        let jpeg = [&b"\xff\xd8\xff\xe0\0\x10JFIF\0"[..], &[0x5A; 5000]].concat();
        for (name, bytes) in [
            ("notes.txt", &b"remember the milk\n"[..]),
            ("photo.jpg", &jpeg),
            (".hidden", b"x"),
            (".kept_0", b""),
            ("empty.txt", b""),
            ("index.tar", b"x"),
        ] {
            let path = output.join(name);
            fs::write(&path, bytes).expect("written");
            let run = kymo(&[&convert[..], &["--force"]].concat());
            let err = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(run.status.code(), Some(2), "{name}: {err}");
            assert!(
                err.contains(&format!("{name} is not a part of one")),
                "{err}"
            );
            assert_eq!(fs::read(&path).expect("it is there"), bytes);
            fs::remove_file(&path).expect("removed");
        }
        fs::write(output.join("stream_7"), "").expect("written");
        good(&[&convert[..], &["--force"]].concat());
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_reported_and_not_opened() {
    let home = home();
    let name = "lttng-small/ust/uid/0/64-bit";
    let trace = changed(&home, name, "r_0", |_| {});
    let expected = events(&trace, &[]);
    std::os::unix::fs::symlink("/dev/zero", trace.join("zero")).expect("a link");
    let pipe = Command::new("mkfifo").arg(trace.join("pipe")).status();
    assert!(pipe.expect("mkfifo runs").success());
    let to = home.path().join("to");
    let output = kymo(&["convert", "--to", "ctf2", text(&trace), "-o", text(&to)]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    for name in ["zero", "pipe"] {
        assert!(err.contains(&format!("{name}: ")), "{err}");
    }
    assert!(err.contains("not a regular file"), "{err}");
    assert_eq!(events(&to, &[]), expected);
}

#[cfg(unix)]
#[test]
fn what_a_killed_run_left_is_not_read_and_removed_by_the_next() {
    let home = home();
    let small = example("rfc-small");
    let output = home.path().join("x");
    let left = home.path().join(".x.0.new");
    let written = home.path().join(".x.1.new");
    let other = home.path().join(".x.y.0.new");
    for path in [&output, &left, &written, &other] {
        good(&["convert", text(&small), "-o", text(path), "--to", "ctf-rfc"]);
    }
    assert_eq!(events(home.path(), &[]), events(&output, &[]));
    let again = || {
        good(&[
            "convert",
            text(&small),
            "-o",
            text(&output),
            "--to",
            "ctf-rfc",
            "--force",
        ])
    };
    // Another process is writing this one.
    let file = fs::File::open(&written).expect("opened");
    file.try_lock().expect("locked");
    again();
    assert!(!left.exists() && written.exists() && other.exists());
    drop(file);
    again();
    assert!(!written.exists() && other.exists());
    assert_eq!(events(&output, &[]), events(&small, &[]));
}

#[test]
fn indexes_are_written_as_afterwards() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    for options in [
        &["--to", "ctf1.8"][..],
        &["--to", "ctf2", "--packet-size", "4K"],
    ] {
        let (with, without) = (home.path().join("with"), home.path().join("without"));
        let convert = |to: &Path, more: &[&str]| {
            let args = ["convert", text(&trace), "-f", "-o", text(to)];
            good(&[&args[..], options, more].concat());
        };
        convert(&with, &["--index"]);
        convert(&without, &[]);
        good(&["index", text(&without)]);
        let indexes = |trace: &Path| {
            let files = fs::read_dir(trace.join("index")).expect("indexes");
            let mut files: Vec<_> = files
                .map(|file| file.expect("a file").path())
                .map(|path| {
                    (
                        path.file_name().map(ToOwned::to_owned),
                        fs::read(path).expect("bytes"),
                    )
                })
                .collect();
            files.sort();
            files
        };
        assert!(!indexes(&with).is_empty());
        assert!(indexes(&with) == indexes(&without), "{options:?}");
        good(&["check", text(&with)]);
    }
    let refused = kymo(&[
        "convert",
        text(&trace),
        "-o",
        "x",
        "--to",
        "ctf-rfc",
        "--index",
    ]);
    assert_eq!(refused.status.code(), Some(2));
}
