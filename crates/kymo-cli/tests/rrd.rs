//! `kymo rrd`, and databases with the other commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// Databases of several machines with their dumps.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-rrd/tests/data/dump")
}

/// A folder with databases, in which the program is run.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(TempDir::new().expect("a folder for the test"));
        folder.copy("holt-winters.amd64.rrd", "hw.rrd");
        folder.copy("tiny.armhf.rrd", "tiny.rrd");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn copy(&self, from: &str, to: &str) {
        let to = self.path(to);
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        fs::write(to, fs::read(data().join(from)).expect("data")).expect("written");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .stdin(Stdio::null());
        command
    }

    /// Exit code, standard output, standard error.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().expect("kymo runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (
            output.status.code().expect("not killed"),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Standard output of a run that must be good and silent.
    fn good(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!((code, &*err), (0, ""), "{args:?}");
        out
    }
}

fn expected(name: &str) -> String {
    fs::read_to_string(data().join(name)).expect("data")
}

#[test]
fn help_is_complete() {
    let folder = Folder::new();
    let mut pages = String::new();
    for args in [
        &["help", "rrd"][..],
        &["help", "rrd", "convert"],
        &["help", "rrd", "check"],
        &["help", "rrd", "repair"],
        &["help", "rrd", "info"],
        &["help", "rrd", "dump"],
        &["help", "rrd", "restore"],
    ] {
        pages += &format!("$ kymo {}\n{}\n", args.join(" "), folder.good(args));
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn dump_and_info_print_what_rrdtool_prints() {
    let folder = Folder::new();
    let dump = expected("holt-winters.amd64.xml");
    assert_eq!(folder.good(&["rrd", "dump", "hw.rrd"]), dump);
    assert_eq!(folder.good(&["rrd", "dump", "hw.rrd", "hw.xml"]), "");
    assert_eq!(folder.read("hw.xml"), dump.as_bytes());
    let body = &dump[dump.find("<!-- Round").unwrap()..];
    for options in [
        &["-n"][..],
        &["-h", "none"],
        &["--header=none"],
        &["-h", "xsd", "-n"],
    ] {
        let args = [&["rrd", "dump", "hw.rrd"], options].concat();
        assert_eq!(folder.good(&args), body, "{options:?}");
    }
    let xsd = folder.good(&["rrd", "dump", "-h", "xsd", "hw.rrd"]);
    assert!(xsd.contains("rrdtool-dump.xsd"));

    let tiny = expected("tiny.armhf.xml");
    assert_eq!(
        folder.good(&["rrd", "dump", "--like-source", "tiny.rrd"]),
        tiny
    );
    let digits = folder.good(&["rrd", "dump", "tiny.rrd"]);
    assert_eq!(digits, tiny.replace("00e+", "000e+"));

    let info = expected("holt-winters.amd64.info").replace("holt-winters.amd64.rrd", "hw.rrd");
    assert_eq!(folder.good(&["rrd", "info", "hw.rrd"]), info);

    let mut berlin = folder.command(&["rrd", "dump", "tiny.rrd"]);
    let output = berlin
        .env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("<!-- 2023-11-14 23:10:01 CET / 1699999801 -->"),
        "{text}"
    );
}

#[test]
fn restore_undoes_dump() {
    let folder = Folder::new();
    fs::write(
        folder.path("exact.xml"),
        folder.good(&["rrd", "dump", "--exact", "hw.rrd"]),
    )
    .unwrap();
    let restore = &[
        "rrd",
        "restore",
        "exact.xml",
        "new.rrd",
        "--format",
        "x86_64",
    ];
    assert_eq!(folder.good(restore), "");
    assert_eq!(folder.read("new.rrd"), folder.read("hw.rrd"));

    let (code, out, err) = folder.run(restore);
    assert_eq!((code, &*out), (1, ""));
    let reported = "ERROR: 'new.rrd': File exists; -f overwrites it\n";
    assert_eq!(err, reported);
    folder.good(&[restore, &["-f"][..]].concat());

    folder.good(&[
        "rrd",
        "restore",
        "exact.xml",
        "same.rrd",
        "--format",
        "portable",
    ]);
    folder.good(&[
        "rrd", "convert", "same.rrd", "-o", "back.rrd", "--to", "x86_64",
    ]);
    assert_eq!(folder.read("back.rrd"), folder.read("hw.rrd"));

    // From standard input, in the form of this machine.
    let dump = fs::File::open(folder.path("exact.xml")).unwrap();
    let mut command = folder.command(&["rrd", "restore", "-", "piped.rrd"]);
    assert!(command.stdin(dump).status().unwrap().success());
    folder.good(&["rrd", "check", "piped.rrd"]);

    fs::write(folder.path("bad.xml"), "<rrd>\n<version>7</version></rrd>").unwrap();
    let (code, _, err) = folder.run(&["rrd", "restore", "bad.xml", "bad.rrd"]);
    assert_eq!(code, 1);
    assert_eq!(
        err,
        "ERROR: 'bad.xml': line 2, column 10, in `<version>`: found `7`, expected a version from \
         0001 to 0005\n"
    );
    assert!(!folder.path("bad.rrd").exists());

    let limited = expected("tiny.armhf.xml").replace("<max>NaN", "<max>41");
    fs::write(folder.path("limited.xml"), limited).unwrap();
    for (options, value) in [(&[][..], "42.0"), (&["-r"], "null")] {
        let args = [&["rrd", "restore", "-f", "limited.xml", "l.rrd"], options].concat();
        folder.good(&args);
        let row = folder.good(&["print", "--format", "json", "l.rrd"]);
        assert!(row.contains(&format!("\"x\":{value}")), "{row}");
    }
}

#[test]
fn a_dump_never_destroys_its_database() {
    let folder = Folder::new();
    let before = folder.read("hw.rrd");
    let (code, out, err) = folder.run(&["rrd", "dump", "hw.rrd", "./hw.rrd"]);
    assert_eq!((code, &*out), (1, ""));
    assert_eq!(err, "ERROR: 'hw.rrd' is both input and output\n");
    assert_eq!(folder.read("hw.rrd"), before);

    // Another name of the same file.
    fs::hard_link(folder.path("hw.rrd"), folder.path("name.rrd")).unwrap();
    assert_eq!(folder.run(&["rrd", "dump", "hw.rrd", "name.rrd"]).0, 1);
    assert_eq!(folder.read("hw.rrd"), before);

    let (code, _, err) = folder.run(&["rrd", "dump", "hw.rrd", "nowhere/hw.xml"]);
    assert_eq!(code, 1);
    assert!(
        err.starts_with("ERROR: writing 'nowhere/hw.xml': No such file"),
        "{err}"
    );
}

#[test]
fn the_nan_of_another_machine_is_replaced() {
    let folder = Folder::new();
    let convert = |to| {
        folder.good(&["rrd", "convert", "hw.rrd", "--in-place", "--to", to]);
        folder.read("hw.rrd")
    };
    let before = folder.read("hw.rrd");
    for machine in ["arm64", "alpha", "mips64el"] {
        folder.good(&["rrd", "convert", "hw.rrd", "-o", machine, "--to", machine]);
        // arm64 and alpha have the same NaN.
        let again = ["rrd", "convert", "hw.rrd", "--in-place", "--to", machine];
        if machine != "alpha" {
            assert_eq!(convert(machine), folder.read(machine));
        }
        let (code, _, err) = folder.run(&again);
        assert_eq!((code, &*err), (0, "0 converted, 1 converted before\n"));
        assert_eq!(folder.read("hw.rrd"), folder.read(machine));
    }
    assert_eq!(convert("x86_64"), before);
}

#[test]
fn convert_there_and_back() {
    let folder = Folder::new();
    let original = folder.read("hw.rrd");
    for machine in ["sparc64", "armhf", "m68k", "portable"] {
        folder.good(&[
            "rrd",
            "convert",
            "hw.rrd",
            "-o",
            "there.rrd",
            "--to",
            machine,
        ]);
        assert_ne!(folder.read("there.rrd"), original);
        let info = folder.good(&["info", "there.rrd"]);
        assert!(info.contains(machine), "{info}");
        folder.good(&[
            "rrd",
            "convert",
            "there.rrd",
            "-o",
            "back.rrd",
            "--to",
            "amd64",
        ]);
        assert_eq!(folder.read("back.rrd"), original, "{machine}");
    }
    folder.good(&[
        "rrd",
        "convert",
        "hw.rrd",
        "--in-place",
        "--to",
        "ppc64",
        "--no-sync",
    ]);
    assert!(
        folder
            .good(&["rrd", "check", "hw.rrd"])
            .starts_with("hw.rrd: whole, a file of ")
    );
}

#[test]
fn directories_are_walked() {
    let folder = Folder::new();
    folder.copy("tiny.armhf.rrd", "in/a/tiny.rrd");
    folder.copy("tiny.armhf.rrd", "in/b/tiny");
    folder.copy("fresh.i386.rrd", "in/fresh.rrd");
    folder.copy("tiny.armhf.xml", "in/b/tiny.xml");
    let old = SystemTime::now() - Duration::from_secs(1_000_000);
    let file = fs::File::options()
        .append(true)
        .open(folder.path("in/a/tiny.rrd"));
    file.unwrap().set_modified(old).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        symlink("..", folder.path("in/a/up")).unwrap();
        let mode = fs::Permissions::from_mode(0o640);
        fs::set_permissions(folder.path("in/a/tiny.rrd"), mode).unwrap();
    }
    let convert = [
        "rrd",
        "convert",
        "in",
        "--output-dir",
        "out",
        "--to",
        "x86_64",
    ];
    let dry = [&convert[..], &["--dry-run"]].concat();
    assert_eq!(
        folder.good(&dry),
        "in/fresh.rrd -> out/fresh.rrd (x86 to x86_64)\n\
         in/a/tiny.rrd -> out/a/tiny.rrd (armhf to x86_64)\n\
         in/b/tiny -> out/b/tiny (armhf to x86_64)\n"
    );
    assert!(!folder.path("out").exists());
    let reported = |expected: &str| {
        let (code, out, err) = folder.run(&convert);
        assert_eq!((code, &*out, &*err), (0, "", expected));
    };
    reported("3 converted, 1 not a database\n");
    let converted = fs::metadata(folder.path("out/a/tiny.rrd")).unwrap();
    assert_eq!(converted.modified().unwrap(), old);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(converted.permissions().mode() & 0o777, 0o640);
    }
    reported("0 converted, 3 converted before, 1 not a database\n");
    // What has changed since is converted again.
    folder.copy("fresh.sparc64.rrd", "in/fresh.rrd");
    reported("1 converted, 2 converted before, 1 not a database\n");

    // Damage stays, and does not keep the rest from being converted.
    fs::write(folder.path("in/b/torn.rrd"), &folder.read("hw.rrd")[..700]).unwrap();
    let torn = folder.read("in/b/torn.rrd");
    let (code, out, err) = folder.run(&["rrd", "convert", "in", "--in-place", "--to", "portable"]);
    assert_eq!((code, &*out), (1, ""));
    assert!(err.starts_with("error: in/b/torn.rrd: "), "{err}");
    assert!(
        err.ends_with("\n3 converted, 1 not a database, 1 failed\n"),
        "{err}"
    );
    assert_eq!(folder.read("in/b/torn.rrd"), torn);
    let (_, _, err) = folder.run(&["rrd", "convert", "in", "--in-place", "--to", "portable"]);
    assert!(
        err.ends_with("0 converted, 3 converted before, 1 not a database, 1 failed\n"),
        "{err}"
    );
    let names: Vec<_> = fs::read_dir(folder.path("in/b"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(names.len(), 3, "nothing is left behind: {names:?}");
}

#[cfg(unix)]
#[test]
fn links_lead_to_files() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("tiny.rrd", folder.path("link.rrd")).unwrap();
    let (code, _, err) = folder.run(&["rrd", "convert", ".", "--in-place", "--to", "s390x"]);
    assert_eq!((code, &*err), (0, "2 converted\n"));
    let link = fs::symlink_metadata(folder.path("link.rrd")).unwrap();
    assert!(link.is_symlink());
    assert!(folder.good(&["info", "link.rrd"]).contains("s390x"));
}

#[test]
fn files_do_not_get_in_each_others_way() {
    let folder = Folder::new();
    folder.copy("tiny.armhf.rrd", "other/tiny.rrd");
    for (args, message) in [
        (
            &["tiny.rrd", "-o", "tiny.rrd"][..],
            "`tiny.rrd` is an input and would be overwritten",
        ),
        (
            &["tiny.rrd", "--output-dir", "."],
            "`./tiny.rrd` is an input and would be overwritten",
        ),
        (&[".", "--output-dir", "."], "`.` is both input and output"),
        (
            &["tiny.rrd", "other", "--output-dir", "out"],
            "`tiny.rrd` and `other/tiny.rrd` would both be written to `out/tiny.rrd`",
        ),
        (
            &["tiny.rrd", "hw.rrd", "-o", "out.rrd"],
            "`--output` is for one file",
        ),
        (&["other", "-o", "out.rrd"], "`--output` is for one file"),
        (&["tiny.rrd"], "required"),
        (
            &["tiny.rrd", "--in-place", "-o", "x"],
            "cannot be used with",
        ),
    ] {
        let args = [&["rrd", "convert", "--to", "portable"], args].concat();
        let before = folder.read("tiny.rrd");
        let (code, out, err) = folder.run(&args);
        assert_eq!((code, &*out), (2, ""), "{args:?}: {err}");
        assert!(err.contains(message), "{args:?}: {err}");
        assert_eq!(folder.read("tiny.rrd"), before);
    }
    let (code, _, err) = folder.run(&["rrd", "convert", "-o", "x", "--to", "vax", "tiny.rrd"]);
    assert_eq!(code, 2);
    assert!(err.contains("kymo machine list"), "{err}");
}

#[test]
fn what_cannot_be_held_is_reported() {
    let folder = Folder::new();
    let late = expected("tiny.armhf.xml").replace("1699999801<", "2208997800<");
    fs::write(folder.path("late.xml"), late).unwrap();
    folder.good(&[
        "rrd", "restore", "late.xml", "late.rrd", "--format", "arm64",
    ]);
    let (code, _, err) = folder.run(&["rrd", "convert", "late.rrd", "-o", "x", "--to", "i386"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("`last update`") && err.contains("2038"),
        "{err}"
    );
    assert!(!folder.path("x").exists());
    folder.good(&["rrd", "convert", "late.rrd", "-o", "x", "--to", "portable"]);
}

#[test]
fn check_and_repair() {
    let folder = Folder::new();
    assert_eq!(
        folder.good(&["rrd", "check", "tiny.rrd"]),
        "tiny.rrd: whole, a file of armhf\n"
    );
    let whole = folder.read("hw.rrd");
    fs::write(folder.path("torn.rrd"), &whole[..whole.len() - 100]).unwrap();
    let (code, out, err) = folder.run(&["rrd", "check", "--json", "torn.rrd", "tiny.rrd"]);
    assert_eq!((code, &*err), (1, ""));
    let verdicts: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(verdicts[0]["damaged"], true);
    assert_eq!(verdicts[0]["form"], "native");
    assert_eq!(verdicts[0]["findings"][0]["severity"], "damage");
    assert_eq!(verdicts[1]["damaged"], false);
    assert_eq!(verdicts[1]["machine"], "armhf");

    let done = folder.good(&["rrd", "repair", "torn.rrd", "-o", "mended.rrd"]);
    assert!(!done.is_empty());
    folder.good(&["rrd", "check", "mended.rrd"]);
    let (code, _, err) = folder.run(&["rrd", "repair", "torn.rrd", "-o", "mended.rrd"]);
    assert_eq!(code, 1);
    assert!(err.contains("-f"), "{err}");
    folder.good(&["rrd", "repair", "torn.rrd", "-o", "mended.rrd", "--force"]);
    let nothing = folder.good(&["rrd", "repair", "tiny.rrd", "-o", "same.rrd"]);
    assert_eq!(nothing, "there was nothing to repair\n");
    assert_eq!(folder.read("same.rrd"), folder.read("tiny.rrd"));

    folder.good(&[
        "rrd", "convert", "tiny.rrd", "-o", "p.rrd", "--to", "portable",
    ]);
    assert_eq!(
        folder.good(&["rrd", "check", "p.rrd"]),
        "p.rrd: whole, a portable file\n"
    );
    for (command, message) in [
        ("check", "error: `none.rrd` does not exist"),
        ("info", "ERROR: opening 'none.rrd': No such file"),
        ("dump", "ERROR: opening 'none.rrd': No such file"),
    ] {
        let (code, _, err) = folder.run(&["rrd", command, "none.rrd"]);
        assert_eq!(code, 1, "{command}");
        assert!(err.starts_with(message), "{err}");
    }
}

#[test]
fn databases_are_recordings() {
    let folder = Folder::new();
    let mut text = String::new();
    for args in [
        &["info", "hw.rrd"][..],
        &["info", "--json", "tiny.rrd"],
        &["print", "--event", "AVERAGE/300", "--clock-date", "hw.rrd"],
        &[
            "print", "--format", "json", "--where", "g > 8", "hw.rrd", "tiny.rrd",
        ],
        &["print", "--format", "csv", "--limit", "4", "hw.rrd"],
        &[
            "print",
            "--format",
            "csv",
            "--event",
            "FAILURES/300",
            "hw.rrd",
        ],
        &[
            "print",
            "--begin",
            "2023-11-16 00:40",
            "--clock-offset",
            "86400",
            "hw.rrd",
        ],
        &["stats", "tiny.rrd"],
        &["check", "hw.rrd"],
    ] {
        text += &format!("$ kymo {}\n{}\n", args.join(" "), folder.good(args));
    }
    insta::assert_snapshot!(text);
    let threads = |n| folder.good(&["print", "--threads", n, "hw.rrd", "tiny.rrd"]);
    assert_eq!(threads("1"), threads("3"));
}

#[test]
fn who_knows_better_says_the_machine() {
    let folder = Folder::new();
    let info = folder.good(&["info", "--json", "--machine", "armel", "tiny.rrd"]);
    for reported in ["\"machine\":\"armel\"", "\"confidence\":\"overruled\""] {
        assert!(info.contains(reported), "{info}");
    }
    for command in ["info", "print", "stats", "check"] {
        let (code, _, err) = folder.run(&[command, "--machine", "x86", "tiny.rrd"]);
        assert_eq!(code, 3, "{command}");
        assert!(err.contains("it is whole as a file of `armhf`"), "{err}");
    }
}

#[test]
fn databases_and_traces_share_a_time_line() {
    let folder = Folder::new();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let trace = trace.to_str().unwrap();
    let events = folder.good(&["print", "--format", "json", "--limit", "2", trace]);
    let time = |line: &str| -> i64 {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        json["timestamp"].as_i64().unwrap()
    };
    let between: Vec<i64> = events.lines().map(time).collect();
    // The one row of `tiny` is moved between the first two events of the trace.
    let row = (between[0] + between[1]) / 2;
    let late =
        expected("tiny.armhf.xml").replace("1699999801<", &format!("{}<", row / 1_000_000_000));
    fs::write(folder.path("late.xml"), late).unwrap();
    folder.good(&["rrd", "restore", "late.xml", "late.rrd"]);
    // Both clocks move, so only the order of whole seconds can be asked for.
    let out = folder.good(&["print", "--format", "json", trace, "late.rrd"]);
    let times: Vec<i64> = out.lines().map(time).collect();
    assert!(times.is_sorted());
    assert!(out.contains("\"kind\":\"sample\"") && out.contains("\"kind\":\"event\""));
    // In a folder both are found.
    let (code, _, err) = folder.run(&["print", "--format", "details", trace, "late.rrd"]);
    assert_eq!(code, 2);
    assert!(err.contains("`--format details` is for traces"), "{err}");
}

#[test]
fn databases_are_found_in_directories() {
    let folder = Folder::new();
    folder.copy("fresh.i386.rrd", "a/b/fresh.rrd");
    fs::write(folder.path("a/text.rrd"), "not a database").unwrap();
    let (code, out, err) = folder.run(&["info", "--json", "."]);
    assert_eq!(code, 1);
    assert!(
        err.contains("a/text.rrd: ") && err.contains("this is text"),
        "{err}"
    );
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let paths: Vec<_> = json["recordings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|recording| &recording["path"])
        .collect();
    assert_eq!(paths, ["./hw.rrd", "./tiny.rrd", "./a/b/fresh.rrd"]);
    let (code, _, err) = folder.run(&["print", "a/text.rrd"]);
    assert_eq!(code, 3);
    assert!(err.contains("not a recording"), "{err}");
}
