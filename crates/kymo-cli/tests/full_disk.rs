//! What is left on a disk that is full, or read-only. A user namespace has one of its own; where the system
//! allows none, nothing is tested here, and limits of file sizes (`signals`) are all that fails a write.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use common::{example, good, text};

/// Runs a script in a small file system of its own at a directory.
fn on_small_disk(disk: &Path, script: &str) -> Output {
    let script = format!("mount -t tmpfs -o size=1m tmpfs . && cd \"$PWD\" && {script}");
    Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .current_dir(disk)
        .env("KYMO", env!("CARGO_BIN_EXE_kymo"))
        .env("TZ", "UTC")
        .env_remove("KYMO_RRD_FORMAT")
        .output()
        .expect("unshare runs")
}

/// A disk, and what is written to it: a trace, and a database and its dump larger than the disk.
struct Home(TempDir);

impl Home {
    /// `None` where the system allows no small disk.
    fn new() -> Option<Self> {
        let home = Self(TempDir::new().expect("a directory"));
        fs::create_dir(home.0.path().join("disk")).expect("made");
        let is_allowed = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "mount",
                "-t",
                "tmpfs",
                "tmpfs",
            ])
            .arg(home.0.path().join("disk"))
            .output()
            .is_ok_and(|output| output.status.success());
        if !is_allowed {
            eprintln!("no file system can be mounted here: not tested");
            return None;
        }
        let (large, dump) = (home.path("large.rrd"), home.path("large.xml"));
        let rows = "RRA:AVERAGE:0.5:1:200000";
        let args = [
            "rrd",
            "create",
            &large,
            "--step",
            "1",
            "DS:a:GAUGE:9:U:U",
            rows,
        ];
        good(&args);
        good(&["rrd", "dump", &large, &dump]);
        Some(home)
    }

    fn path(&self, name: &str) -> String {
        text(&self.0.path().join(name)).to_owned()
    }

    /// Runs kymo for each line, where nothing but `there` is on the disk, and this stays so.
    fn fails(&self, prepare: &str, reason: &str, lines: &[(String, &str)]) {
        for (line, named) in lines {
            let script = format!(
                "{prepare} && ls -A > {log}.0; \"$KYMO\" {line}; code=$?; ls -A | diff {log}.0 - >&2 || exit 99; exit $code",
                log = self.path("log"),
            );
            let output = on_small_disk(&self.0.path().join("disk"), &script);
            let reported = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{line}: {reported}");
            assert!(reported.contains(reason), "{line}: {reported}");
            assert!(reported.contains(named), "{line}: {reported}");
        }
    }

    /// Commands that write new files, and what they must name.
    fn lines(&self) -> Vec<(String, &'static str)> {
        let trace = text(&example("lttng-small")).to_owned();
        let (large, dump) = (self.path("large.rrd"), self.path("large.xml"));
        vec![
            (format!("convert {trace} -o out.jsonl"), "out.jsonl"),
            (format!("convert {trace} -o out"), "out"),
            (format!("convert {trace} -o out.cpel --text"), "out.cpel"),
            (format!("repair {trace} -o out"), "out"),
            (
                format!("rrd convert {large} -o out.rrd --to ppc"),
                "out.rrd",
            ),
            (format!("rrd repair {large} -o out.rrd"), "out.rrd"),
            (format!("rrd dump {large} out.xml"), "out.xml"),
            (format!("rrd restore {dump} out.rrd"), "out.rrd"),
            (
                "rrd create out.rrd DS:a:GAUGE:9:U:U RRA:AVERAGE:0.5:1:200000".to_owned(),
                "out.rrd",
            ),
            (
                "rrd tune old.rrd DS:b:GAUGE:9:U:U DS:c:GAUGE:9:U:U".to_owned(),
                "old.rrd",
            ),
            (
                "rrd convert old.rrd --in-place --to ppc".to_owned(),
                "old.rrd",
            ),
        ]
    }
}

/// A database on the disk.
const CREATE: &str = "\"$KYMO\" rrd create old.rrd DS:a:GAUGE:9:U:U RRA:AVERAGE:0.5:1:60000";

#[test]
fn a_full_disk_keeps_nothing_temporary() {
    let Some(home) = Home::new() else { return };
    let fill = "dd if=/dev/zero of=fill bs=1k count=500 2> /dev/null";
    let lines = home.lines();
    // What is written must not fit beside the database and what fills the disk.
    let fills = "No space left on device";
    home.fails(&format!("{CREATE} && {{ {fill} || true; }}"), fills, &lines);
}

#[test]
fn a_read_only_directory_keeps_nothing_temporary() {
    let Some(home) = Home::new() else { return };
    let mut lines = home.lines();
    lines.push(("man pages".to_owned(), "pages"));
    lines.push((
        "rrd convert . --output-dir new --to ppc".to_owned(),
        "new/old.rrd",
    ));
    lines.push(("rrd update old.rrd 4000000000:1".to_owned(), "old.rrd"));
    lines.push(("receive ctf+udp://127.0.0.1:0 -o new".to_owned(), "new"));
    let prepare = format!("{CREATE} && mount -o remount,ro .");
    home.fails(&prepare, "Read-only file system", &lines);
}
