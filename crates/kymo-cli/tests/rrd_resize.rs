//! `kymo rrd resize`, which writes to the working directory.

use std::fs;
use std::path::Path;
use std::process::Command;

fn run(directory: &Path, line: &str) -> (bool, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(["rrd", "resize"])
        .args(line.split_whitespace())
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(done.stdout.is_empty());
    (
        done.status.success(),
        String::from_utf8(done.stderr).unwrap(),
    )
}

#[test]
fn a_copy_is_longer_or_shorter() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-rrd/tests/data/dump");
    for name in ["holt-winters.amd64.rrd", "tiny.armhf.rrd"] {
        let folder = tempfile::tempdir().unwrap();
        let original = fs::read(data.join(name)).unwrap();
        let (file, copy) = (
            folder.path().join("a.rrd"),
            folder.path().join("resize.rrd"),
        );
        fs::write(&file, &original).unwrap();
        for (line, failure) in [
            ("a.rrd 0 GROW", "wrong number of parameters"),
            ("a.rrd 0 grow 1", "I can only GROW or SHRINK"),
            (
                "a.rrd 0 GROW 0",
                "Please grow or shrink with at least 1 row",
            ),
            (
                "a.rrd 0 GROW -1",
                "Please grow or shrink with at least 1 row",
            ),
            ("a.rrd 99 GROW 1", "no such RRA in this RRD"),
            ("a.rrd -1 GROW 1", "no such RRA in this RRD"),
            ("a.rrd 0 SHRINK 999999", "This RRA is not that big"),
            ("resize.rrd 0 GROW 1", "resize.rrd is a reserved name"),
            (
                "no.rrd 0 GROW 1",
                "opening 'no.rrd': No such file or directory",
            ),
        ] {
            let (is_good, message) = run(folder.path(), line);
            // Hints are below what rrdtool says.
            let first = message.lines().next().unwrap_or_default();
            let expected = (false, format!("ERROR: {failure}"));
            assert_eq!((is_good, first.to_owned()), expected, "{line}");
            assert!(!copy.exists());
        }
        assert_eq!(run(folder.path(), "a.rrd 0 GROW 3"), (true, String::new()));
        assert!(fs::read(&file).unwrap() == original);
        let grown = fs::read(&copy).unwrap();
        assert!(grown.len() > original.len());
        // And back.
        fs::rename(&copy, &file).unwrap();
        assert_eq!(
            run(folder.path(), "a.rrd 0 SHRINK 3"),
            (true, String::new())
        );
        assert!(fs::read(&copy).unwrap() == original, "{name}");
    }
}
