//! `kymo rrd` on directories: checks, and hard links of what is converted.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use common::kymo_in;

/// A database that some machine has written.
fn database(machine: &str, name: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-rrd/tests/data");
    fs::read(data.join(machine).join(name)).expect("test data")
}

/// A directory in which the program is run.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        kymo_in(self.0.path(), args)
    }
}

/// Some databases, one of them cut, and other files.
fn tree() -> Home {
    let home = Home::new();
    let tiny = database("i386", "tiny.rrd");
    home.write("t/b/whole.rrd", &tiny);
    home.write("t/a/cut.rrd", &tiny[..tiny.len() - 100]);
    home.write("t/a/other-name", &tiny);
    home.write("t/empty.rrd", b"");
    home.write("t/readme", b"not a database");
    home.write("t/a/.cut.rrd.0.new", &tiny[..50]);
    home
}

#[test]
fn directories_are_checked() {
    let home = tree();
    for threads in ["1", "2", "7"] {
        let (code, out, reported) = home.run(&["rrd", "check", "t", "--threads", threads]);
        assert_eq!(code, 1, "{reported}");
        let verdicts: Vec<_> = out.lines().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(
            verdicts,
            [
                "t/empty.rrd: damaged, not known",
                "t/a/cut.rrd: damaged, not known",
                "t/a/other-name: whole, a file of x86",
                "t/b/whole.rrd: whole, a file of x86",
            ]
        );
        assert_eq!(reported, "2 whole, 2 damaged, 1 not a database\n");
    }
    let (code, out, reported) = home.run(&["rrd", "check", "--json", "t/b", "t/a/other-name"]);
    assert_eq!((code, &*reported), (0, "2 whole\n"));
    let files: Vec<_> = out.lines().map(|line| &line[..40]).collect();
    assert_eq!(files.len(), 2, "{out}");
    assert!(
        files[0].starts_with("{\"file\":\"t/b/whole.rrd\",\"damaged\":false"),
        "{out}"
    );
    assert!(
        files[1].starts_with("{\"file\":\"t/a/other-name\",\"damaged\":"),
        "{out}"
    );
    // A file that is named is judged, whatever it is, and single files need no summary.
    let (code, out, reported) = home.run(&["rrd", "check", "t/readme"]);
    assert_eq!((code, &*reported), (1, ""));
    assert!(out.starts_with("t/readme: damaged, not known\n"), "{out}");
    let (code, _, reported) = home.run(&["rrd", "check", "gone", "t/b"]);
    assert_eq!(code, 1);
    assert!(
        reported.starts_with("error: `gone` does not exist\n"),
        "{reported}"
    );
    assert!(reported.ends_with("\n1 whole, 1 failed\n"), "{reported}");
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    impl Home {
        fn link(&self, from: &str, to: &str) {
            fs::hard_link(self.path(from), self.path(to)).expect("linked");
        }

        fn inode(&self, name: &str) -> u64 {
            fs::metadata(self.path(name)).expect("there").ino()
        }
    }

    fn linked() -> Home {
        let home = Home::new();
        home.write("t/one.rrd", &database("i386", "tiny.rrd"));
        home.write("t/below/alone.rrd", &database("i386", "fresh.rrd"));
        home.link("t/one.rrd", "t/below/two.rrd");
        home.link("t/one.rrd", "t/three.rrd");
        home
    }

    #[test]
    fn names_of_one_file_are_names_of_the_converted_one() {
        let home = linked();
        symlink("one.rrd", home.path("t/symbolic.rrd")).expect("linked");
        let args = [
            "rrd",
            "convert",
            "t",
            "--to",
            "amd64",
            "--output-dir",
            "out",
        ];
        let (code, out, _) = home.run(&[&args[..], &["--dry-run"]].concat());
        assert_eq!(code, 0);
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(
            lines,
            [
                "t/one.rrd -> out/one.rrd (x86 to x86_64)",
                "t/symbolic.rrd -> out/symbolic.rrd (x86 to x86_64)",
                "t/three.rrd -> out/three.rrd (hard link)",
                "t/below/alone.rrd -> out/below/alone.rrd (x86 to x86_64)",
                "t/below/two.rrd -> out/below/two.rrd (hard link)",
            ]
        );
        let reported = "3 converted, 2 linked\n".to_owned();
        assert_eq!(home.run(&args), (0, String::new(), reported));
        let one = home.inode("out/one.rrd");
        assert_eq!(home.inode("out/three.rrd"), one);
        assert_eq!(home.inode("out/below/two.rrd"), one);
        assert_ne!(home.inode("out/symbolic.rrd"), one);
        assert_ne!(home.inode("out/below/alone.rrd"), one);
        let reported = "0 converted, 5 converted before\n".to_owned();
        assert_eq!(home.run(&args), (0, String::new(), reported));
        // A name that has become another file is linked again.
        fs::copy(home.path("out/one.rrd"), home.path("copy")).expect("copied");
        fs::rename(home.path("copy"), home.path("out/three.rrd")).expect("renamed");
        let reported = "0 converted, 1 linked, 4 converted before\n".to_owned();
        assert_eq!(home.run(&args), (0, String::new(), reported));
        assert_eq!(home.inode("out/three.rrd"), one);
    }

    #[test]
    fn names_are_kept_in_place() {
        let home = linked();
        // It comes first, and stands for the file that it leads to.
        symlink("three.rrd", home.path("t/a.rrd")).expect("linked");
        let before = home.inode("t/one.rrd");
        let args = ["rrd", "convert", "t", "--to", "amd64", "--in-place"];
        let (code, _, reported) = home.run(&args);
        assert_eq!((code, &*reported), (0, "2 converted, 2 linked\n"));
        let one = home.inode("t/one.rrd");
        assert_ne!(one, before);
        for name in ["t/three.rrd", "t/below/two.rrd", "t/a.rrd"] {
            assert_eq!(home.inode(name), one, "{name}");
        }
        assert!(home.path("t/a.rrd").is_symlink());
        assert!(fs::read(home.path("t/one.rrd")).expect("there") == database("amd64", "tiny.rrd"));
        for args in [&args[..], &[&args[..], &["--dry-run"]].concat()] {
            let (code, out, reported) = home.run(args);
            assert_eq!((code, &*out), (0, ""));
            assert!(reported.is_empty() || reported == "0 converted, 4 converted before\n");
        }
    }

    #[test]
    fn names_outside_of_the_inputs_are_reported() {
        let home = linked();
        home.link("t/one.rrd", "outside.rrd");
        let before = home.inode("outside.rrd");
        let args = [
            "rrd",
            "convert",
            "t",
            "--to",
            "amd64",
            "--output-dir",
            "out",
        ];
        let (code, _, reported) = home.run(&args);
        assert_eq!(code, 0);
        assert_eq!(
            reported,
            "warning: t/one.rrd: 1 other hard link outside of the inputs will not have the new file\n\
             2 converted, 2 linked\n"
        );
        let args = ["rrd", "convert", "t", "--to", "amd64", "--in-place"];
        let expected = "warning: t/one.rrd: 1 other hard link outside of the inputs will still have the old file\n";
        let (code, _, reported) = home.run(&[&args[..], &["--dry-run"]].concat());
        assert_eq!((code, &*reported), (0, expected));
        let (code, _, reported) = home.run(&args);
        assert_eq!(code, 0);
        assert_eq!(reported, format!("{expected}2 converted, 2 linked\n"));
        assert_eq!(home.inode("outside.rrd"), before);
        assert_eq!(home.inode("t/three.rrd"), home.inode("t/one.rrd"));
    }

    #[test]
    fn what_fails_fails_for_each_name() {
        let home = Home::new();
        let tiny = database("i386", "tiny.rrd");
        home.write("t/cut.rrd", &tiny[..tiny.len() - 100]);
        home.link("t/cut.rrd", "t/same.rrd");
        home.write("t/text", b"not a database");
        home.link("t/text", "t/text-too");
        home.write("t/text.rrd", b"not a database");
        home.write("t/empty.rrd", b"");
        let args = [
            "rrd",
            "convert",
            "t",
            "t/text-too",
            "--to",
            "amd64",
            "--output-dir",
            "out",
        ];
        let (code, _, reported) = home.run(&args);
        assert_eq!(code, 2, "two of one name: {reported}");
        let (code, _, reported) = home.run(&["rrd", "convert", "t", "--to", "amd64", "--in-place"]);
        assert_eq!(code, 1);
        assert!(
            reported.ends_with("0 converted, 2 not a database, 4 failed\n"),
            "{reported}"
        );
        for name in ["t/text.rrd", "t/empty.rrd"] {
            assert!(reported.contains(&format!("error: {name}: ")), "{reported}");
        }
        assert!(
            reported.contains("t/cut.rrd: ") && reported.contains("t/same.rrd: "),
            "{reported}"
        );
    }

    #[test]
    fn an_output_that_has_other_names_is_reported() {
        let home = linked();
        let output = "out.rrd";
        for args in [
            &["rrd", "convert", "t/one.rrd", "--to", "amd64", "-o", output][..],
            &["rrd", "repair", "t/one.rrd", "-f", "-o", output],
            &[
                "convert",
                "t/one.rrd",
                "--to",
                "jsonl",
                "--force",
                "-o",
                output,
            ],
        ] {
            home.write(output, b"old");
            home.link(output, "same");
            let (code, _, reported) = home.run(args);
            assert_eq!(code, 0, "{reported}");
            let split = "1 other hard link of `out.rrd` will still have the old file\n";
            assert!(reported.contains(split), "{args:?}: {reported}");
            assert_eq!(fs::read(home.path("same")).expect("there"), b"old");
            fs::remove_file(home.path(output)).expect("there");
            fs::remove_file(home.path("same")).expect("there");
            let (code, _, reported) = home.run(args);
            assert_eq!(code, 0);
            assert!(!reported.contains("hard link"), "{args:?}: {reported}");
            fs::remove_file(home.path(output)).expect("there");
        }
    }
}
