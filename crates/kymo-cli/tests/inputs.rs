//! Recordings that are compressed, in archives, or come from standard input.
#![cfg(unix)]

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use common::{good, kymo, kymo_in, text};

const EXAMPLES: [&str; 5] = [
    "bitfield-be",
    "bitfield-le",
    "lttng-discarded",
    "lttng-small",
    "rfc-small",
];

/// A recording of the repository, at the path that its streams are named by.
fn example(name: &str) -> PathBuf {
    common::example(name).canonicalize().unwrap()
}

fn gz(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zst(content: &[u8]) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// Both ways to compress, and what is added to names.
/// The ending of its files, and what compresses.
type Compress = (&'static str, fn(&[u8]) -> Vec<u8>);

const COMPRESSIONS: [Compress; 2] = [("gz", gz), ("zst", zst)];

/// What is in a directory, as an archive.
fn tar(directory: &Path) -> Vec<u8> {
    let output = Command::new("tar")
        .args(["-C", text(directory), "-cf", "-", "."])
        .output()
        .expect("tar runs");
    assert!(output.status.success());
    output.stdout
}

/// Runs kymo with bytes at its standard input, which is a pipe.
fn piped(input: &[u8], args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kymo runs");
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // What is refused is not read to its end.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

/// What a run returns and prints, without the paths of its inputs.
fn outcome(output: &Output, path: &str) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(path, "PATH");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A directory of recordings of all kinds that are files.
fn files() -> TempDir {
    let home = TempDir::new().unwrap();
    let path = |name: &str| home.path().join(name);
    good(&[
        "convert",
        text(&example("lttng-small")),
        "--text",
        "-o",
        text(&path("log.cpel")),
    ]);
    good(&[
        "convert",
        text(&path("log.cpel")),
        "-o",
        text(&path("lines.jsonl")),
    ]);
    good(&[
        "convert",
        text(&path("log.cpel")),
        "--to",
        "elog",
        "-o",
        text(&path("vpp.elog")),
    ]);
    let rrd = path("load.rrd");
    good(&[
        "rrd",
        "create",
        text(&rrd),
        "--start",
        "1700000000",
        "--step",
        "10",
        "DS:load:GAUGE:20:U:U",
        "RRA:AVERAGE:0.5:1:20",
    ]);
    good(&[
        "rrd",
        "update",
        text(&rrd),
        "1700000010:1",
        "1700000020:2",
        "1700000030:4",
    ]);
    home
}

#[test]
fn an_archive_is_the_directory_that_it_was_made_of() {
    let home = TempDir::new().unwrap();
    for name in EXAMPLES {
        let directory = example(name);
        let expected = outcome(&kymo(&["print", text(&directory)]), text(&directory));
        assert!(!expected.1.is_empty());
        let plain = tar(&directory);
        let file = home.path().join("archive");
        for bytes in [&plain, &gz(&plain), &zst(&plain)] {
            // The name does not matter.
            fs::write(&file, bytes).unwrap();
            let found = outcome(&kymo(&["print", text(&file)]), text(&file));
            assert!(found == expected, "{name}: {}", found.2);
            let found = outcome(&piped(bytes, &["print", "-"]), "-");
            assert!(found.1 == expected.1.replace('-', "PATH"), "{name}");
        }
    }
}

#[test]
fn every_command_reads_archives() {
    let home = TempDir::new().unwrap();
    let directory = example("lttng-small");
    let file = home.path().join("trace.tar.gz");
    fs::write(&file, gz(&tar(&directory))).unwrap();
    for args in [
        &["info"][..],
        &["check"],
        &["stats"],
        &["print", "--format", "json"],
    ] {
        let run = |path: &Path| {
            let args = [args, &[text(path)]].concat();
            outcome(&kymo(&args), text(path))
        };
        assert_eq!(run(&file), run(&directory), "{args:?}");
    }
    let mut made = Vec::new();
    for path in [&file, &directory] {
        let output = home.path().join("out.cpel");
        good(&["convert", text(path), "--text", "-o", text(&output)]);
        made.push(fs::read(&output).unwrap());
        fs::remove_file(&output).unwrap();
    }
    assert_eq!(made[0], made[1]);
    // What is written for an archive is a trace of its own.
    let output = home.path().join("again");
    good(&[
        "convert",
        text(&file),
        "--to",
        "ctf1.8",
        "-o",
        text(&output),
    ]);
    let events = |path: &Path| kymo(&["print", "--names=payload", text(path)]).stdout;
    assert_eq!(events(&output).len(), events(&file).len());
}

/// Compresses every file of a directory, and those in directories below it.
fn compress(from: &Path, to: &Path, ending: &str, compression: fn(&[u8]) -> Vec<u8>) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            compress(&entry.path(), &to.join(name), ending, compression);
        } else {
            let content = compression(&fs::read(entry.path()).unwrap());
            fs::write(to.join(format!("{name}.{ending}")), content).unwrap();
        }
    }
}

#[test]
fn the_files_of_a_trace_may_be_compressed() {
    for name in EXAMPLES {
        let directory = example(name);
        let expected = kymo(&["print", text(&directory)]);
        for (ending, compression) in COMPRESSIONS {
            let home = TempDir::new().unwrap();
            compress(&directory, home.path(), ending, compression);
            let found = kymo(&["print", text(home.path())]);
            assert_eq!(found.status.code(), expected.status.code(), "{name}");
            assert_eq!(found.stdout, expected.stdout, "{name}");
            // Within an archive, too.
            let found = piped(&tar(home.path()), &["print", "-"]);
            assert_eq!(found.stdout, expected.stdout, "{name}");
        }
    }
    let home = TempDir::new().unwrap();
    let (be, copy) = (example("bitfield-be"), home.path().join("trace"));
    compress(&be, &copy, "gz", gz);
    let expected = kymo(&["print", text(&be.join("stream"))]).stdout;
    assert!(!expected.is_empty());
    assert_eq!(
        kymo(&["print", text(&copy.join("stream.gz"))]).stdout,
        expected
    );
    assert_eq!(
        kymo(&["print", text(&copy.join("metadata.gz"))]).stdout,
        expected
    );
    good(&["index", text(&copy)]);
    assert!(copy.join("index/stream.idx").exists());
    // A file that only begins as a compressed one is what it is; one that is called so may be plain.
    fs::rename(copy.join("stream.gz"), copy.join("other")).unwrap();
    fs::copy(be.join("stream"), copy.join("plain.gz")).unwrap();
    let both = kymo(&["print", text(&copy)]).stdout;
    assert!(both.len() > expected.len() && both.ends_with(&expected));
}

#[test]
fn files_of_every_kind_may_be_compressed() {
    let home = files();
    let packed = TempDir::new().unwrap();
    for entry in fs::read_dir(home.path()).unwrap() {
        let path = entry.unwrap().path();
        let expected = outcome(&kymo(&["print", text(&path)]), text(&path));
        assert_eq!(expected.0, Some(0));
        assert!(!expected.1.is_empty(), "{path:?}");
        let content = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for (ending, compression) in COMPRESSIONS {
            let file = packed.path().join(format!("{name}.{ending}"));
            fs::write(&file, compression(&content)).unwrap();
            assert_eq!(
                outcome(&kymo(&["print", text(&file)]), text(&file)),
                expected
            );
        }
        for bytes in [&content, &gz(&content), &zst(&content)] {
            let found = piped(bytes, &["print", "-"]);
            assert_eq!(found.status.code(), Some(0), "{name}");
            let lines = |text: &str| text.lines().count();
            let found = String::from_utf8(found.stdout).unwrap();
            assert_eq!(lines(&found), lines(&expected.1), "{name}");
        }
    }
    // Standard input that is a file is mapped.
    let file = fs::File::open(home.path().join("log.cpel")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    let found = command
        .args(["print", "-"])
        .env("TZ", "UTC")
        .stdin(file)
        .output()
        .unwrap();
    let expected = kymo(&["print", text(&home.path().join("log.cpel"))]);
    assert_eq!(found.stdout.len(), expected.stdout.len());
}

#[test]
fn an_archive_of_several_recordings_opens_all() {
    let home = files();
    let trace = home.path().join("a/trace");
    fs::create_dir_all(&trace).unwrap();
    for name in ["metadata", "stream"] {
        fs::copy(example("bitfield-be").join(name), trace.join(name)).unwrap();
    }
    let load = fs::read(home.path().join("load.rrd")).unwrap();
    fs::write(home.path().join("a/packed.rrd.zst"), zst(&load)).unwrap();
    std::os::unix::fs::symlink("../load.rrd", home.path().join("a/again.rrd")).unwrap();
    std::os::unix::fs::symlink(".", home.path().join("a/round")).unwrap();
    let archive = home.path().join("x.tar.zst");
    fs::write(&archive, zst(&tar(home.path()))).unwrap();
    let expected = outcome(&kymo(&["info", text(home.path())]), text(home.path()));
    let found = outcome(&kymo(&["info", text(&archive)]), text(&archive));
    assert_eq!(found, expected);
    assert!(found.1.contains("PATH/a/packed.rrd.zst"), "{}", found.1);
    let print = |path: &Path| outcome(&kymo(&["print", text(path)]), text(path));
    assert_eq!(print(&archive), print(home.path()));
}

#[test]
fn several_inputs_of_all_kinds_are_one_time_line() {
    let home = files();
    let path = |name: &str| home.path().join(name);
    fs::write(path("trace.tar.zst"), zst(&tar(&example("lttng-small")))).unwrap();
    fs::write(
        path("load.rrd.gz"),
        gz(&fs::read(path("load.rrd")).unwrap()),
    )
    .unwrap();
    let log = fs::read(path("log.cpel")).unwrap();
    let found = piped(
        &log,
        &[
            "print",
            text(&path("trace.tar.zst")),
            text(&path("load.rrd.gz")),
            "-",
        ],
    );
    let (trace, load, log) = (example("lttng-small"), path("load.rrd"), path("log.cpel"));
    let expected = kymo(&["print", text(&trace), text(&load), text(&log)]);
    assert_eq!(found.status.code(), Some(0));
    let lines = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().lines().count();
    assert_eq!(lines(found.stdout), lines(expected.stdout));

    let twice = piped(b"", &["print", "-", "-"]);
    assert_eq!(twice.status.code(), Some(2));
    let reported = String::from_utf8(twice.stderr).unwrap();
    assert!(reported.contains("`-` is specified twice"), "{reported}");
    let nothing = piped(b"", &["print", "-"]);
    assert_eq!(nothing.status.code(), Some(3));
    let noise = piped(b"nothing that anybody knows", &["print", "-"]);
    assert_eq!(noise.status.code(), Some(3));
}

#[test]
fn what_is_before_a_cut_is_shown() {
    let home = TempDir::new().unwrap();
    let expected = kymo(&["print", text(&example("lttng-small"))]).stdout;
    let plain = tar(&example("lttng-small"));
    for bytes in [&plain, &gz(&plain), &zst(&plain)] {
        // The cut is within the last member.
        for left in [bytes.len() * 9 / 10, bytes.len() - 3] {
            let file = home.path().join("cut");
            fs::write(&file, &bytes[..left]).unwrap();
            let (code, shown, reported) = {
                let output = kymo(&["print", text(&file)]);
                let text = |bytes| String::from_utf8(bytes).unwrap();
                (
                    output.status.code(),
                    text(output.stdout),
                    text(output.stderr),
                )
            };
            // Within the zeros at the end nothing is lost of a plain archive.
            if bytes == &plain && left == bytes.len() - 3 {
                assert_eq!(code, Some(0), "{reported}");
                assert_eq!(shown.as_bytes(), expected);
                continue;
            }
            assert!(matches!(code, Some(1 | 3)), "{reported}");
            assert!(reported.contains("cut off"), "{reported}");
        }
    }
    let log = files();
    let log = fs::read(log.path().join("log.cpel")).unwrap();
    let mut cut = gz(&log);
    let damaged = cut.len() - 6;
    cut[damaged] ^= 1;
    let file = home.path().join("log.cpel.gz");
    fs::write(&file, &cut).unwrap();
    let output = kymo(&["print", text(&file)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.is_empty());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("is damaged near byte")
    );
}

#[test]
fn archives_do_not_lead_out_of_themselves() {
    let home = TempDir::new().unwrap();
    let inner = home.path().join("in");
    fs::create_dir(&inner).unwrap();
    fs::copy(
        example("bitfield-be").join("metadata"),
        inner.join("metadata"),
    )
    .unwrap();
    let outside = home.path().join("stream");
    fs::copy(example("bitfield-be").join("stream"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, inner.join("absolute")).unwrap();
    std::os::unix::fs::symlink("../stream", inner.join("relative")).unwrap();
    assert!(!kymo(&["print", text(&inner)]).stdout.is_empty());
    let archive = home.path().join("x.tar");
    fs::write(&archive, tar(&inner)).unwrap();
    let (code, shown, reported) = kymo_in(home.path(), &["print", "x.tar"]);
    assert_eq!((code, shown.as_str()), (1, ""), "{reported}");
    assert!(reported.contains("absolute"), "{reported}");

    let output = Command::new("tar")
        .args([
            "-C",
            text(&inner),
            "-Pcf",
            text(&archive),
            "metadata",
            "../stream",
        ])
        .status();
    assert!(output.unwrap().success());
    let (code, shown, reported) = kymo_in(home.path(), &["print", "x.tar"]);
    assert_eq!((code, shown.as_str()), (1, ""), "{reported}");
    assert!(reported.contains("`../stream` is left out"), "{reported}");
}

/// Runs kymo with variables in its environment.
fn with(variables: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    let output = command
        .args(args)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn temporary_storage_has_a_limit_and_leaves_nothing() {
    let home = TempDir::new().unwrap();
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let bomb = home.path().join("bomb.gz");
    fs::write(&bomb, gz(&vec![0; 40 << 20])).unwrap();
    let (bomb, temporary) = (text(&bomb), text(&temporary));
    let limited = [("KYMO_SPOOL_LIMIT", "16M"), ("TMPDIR", temporary)];
    let (code, reported) = with(&limited, &["print", bomb]);
    assert_eq!(code, Some(3));
    assert!(
        reported.contains("larger than the limit for temporary files (16 MiB)"),
        "{reported}"
    );
    assert!(reported.contains("KYMO_SPOOL_LIMIT"), "{reported}");
    let (code, reported) = with(&[("KYMO_SPOOL_LIMIT", "much")], &["print", bomb]);
    assert_eq!(code, Some(3));
    assert!(reported.contains("`much`"), "{reported}");
    let nowhere = home.path().join("nowhere");
    let (code, reported) = with(&[("TMPDIR", text(&nowhere))], &["print", bomb]);
    assert_eq!(code, Some(3));
    let expected = format!("cannot create a temporary file in `{}`", nowhere.display());
    assert!(reported.contains(&expected), "{reported}");
    // It fits, but is not a recording.
    let (code, reported) = with(&[("TMPDIR", temporary)], &["print", bomb]);
    assert_eq!(code, Some(3));
    assert!(reported.contains("not a recording"), "{reported}");
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_done_with_them_is_refused() {
    let home = files();
    let path = |name: &str| home.path().join(name);
    let packed = path("packed.rrd.gz");
    fs::write(&packed, gz(&fs::read(path("load.rrd")).unwrap())).unwrap();
    let archive = path("trace.tar");
    fs::write(&archive, tar(&example("bitfield-be"))).unwrap();
    let (packed, archive) = (text(&packed), text(&archive));
    for path in [packed, archive, "-"] {
        let refused = kymo(&["print", "--follow", path]);
        assert_eq!(refused.status.code(), Some(2));
        let reported = String::from_utf8(refused.stderr).unwrap();
        assert!(reported.contains("cannot follow"), "{reported}");
    }
    let refused = kymo(&["index", archive]);
    assert_eq!(refused.status.code(), Some(1));
    let reported = String::from_utf8(refused.stderr).unwrap();
    assert!(reported.contains("extract the archive first"), "{reported}");

    let before = fs::read(packed).unwrap();
    for args in [
        &["update", packed, "1700000040:3"][..],
        &["tune", packed, "--heartbeat", "load:30"],
        &["convert", "--in-place", "--to", "portable", packed],
    ] {
        let refused = kymo(&[&["rrd"], args].concat());
        assert_eq!(refused.status.code(), Some(1));
        let reported = String::from_utf8(refused.stderr).unwrap();
        assert!(reported.contains("decompress it first"), "{reported}");
    }
    assert_eq!(fs::read(packed).unwrap(), before);
    let load = path("load.rrd");
    for args in [&["info"][..], &["dump"], &["lastupdate"], &["check"]] {
        let run = |path: &str| {
            let args = [&["rrd"], args, &[path]].concat();
            outcome(&kymo(&args), path)
        };
        assert_eq!(run(packed), run(text(&load)), "{args:?}");
    }
    let fetch = |path: &str| {
        let args = [
            "rrd",
            "fetch",
            path,
            "AVERAGE",
            "-s",
            "1700000000",
            "-e",
            "1700000040",
        ];
        kymo(&args).stdout
    };
    assert_eq!(fetch(packed), fetch(text(&load)));
    let out = path("out");
    good(&[
        "rrd",
        "convert",
        "--to",
        "portable",
        "--output-dir",
        text(&out),
        packed,
    ]);
    assert!(out.join("packed.rrd").exists());
}

#[test]
fn an_output_does_not_replace_the_archive_it_is_made_of() {
    let home = TempDir::new().unwrap();
    let directory = home.path().join("d");
    fs::create_dir(&directory).unwrap();
    let archive: PathBuf = directory.join("x.tar.gz");
    fs::write(&archive, gz(&tar(&example("bitfield-be")))).unwrap();
    let args = [
        "convert",
        text(&archive),
        "--to",
        "ctf2",
        "--force",
        "-o",
        text(&directory),
    ];
    assert_eq!(kymo(&args).status.code(), Some(2));
    assert!(archive.exists());
}

#[test]
fn counters_of_lttng_maps_are_samples() {
    let home = tempfile::TempDir::new().unwrap();
    let path = home.path().join("maps.sql");
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/maps/export.sql"
    );
    let whole = std::fs::read_to_string(corpus).unwrap();
    // One that refers to a key that is not there is damage.
    let good: Vec<&str> = whole
        .lines()
        .filter(|line| !line.contains("(1, 0, 3, 1, 0)"))
        .collect();
    std::fs::write(&path, good.join("\n")).unwrap();
    let run = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kymo"))
            .args(args)
            .arg(&path)
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            reported,
        )
    };
    let (code, printed, reported) = run(&["print", "--format", "json"]);
    assert_eq!(code, Some(0), "{reported}");
    assert!(
        printed.contains("48201") && printed.contains("calls/it's/cpu 0"),
        "{printed}"
    );
    let (code, values, reported) = run(&["values", "--field", "value", "--by", "key", "--json"]);
    assert_eq!(code, Some(0), "{reported}");
    assert!(
        values.contains("\"read\"") && values.contains("48201"),
        "{values}"
    );
    assert_eq!(run(&["info"]).0, Some(0));
    assert_eq!(run(&["check"]).0, Some(0));
    std::fs::write(&path, whole.replace("COMMIT;", "")).unwrap();
    let (code, _, reported) = run(&["check"]);
    assert_eq!(code, Some(1));
    assert!(
        reported.contains("key 3") || run(&["print"]).2.contains("key 3"),
        "{reported}"
    );
}
