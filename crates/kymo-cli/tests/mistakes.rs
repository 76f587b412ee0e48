//! Typical mistakes, and what kymo says to them: `mistakes/table.txt`.
//!
//! Each case is a command line, which a shell runs in a directory with recordings and files that are none, what it
//! prints, and its exit status. Every answer names the cause and a remedy. `MISTAKES_UPDATE=1` writes the table
//! again; check the difference.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes/table.txt");
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
const KYMO: &str = env!("CARGO_BIN_EXE_kymo");

/// A mistake and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Case {
    command: String,
    answer: String,
    status: i32,
}

/// Reads `$ COMMAND`, lines of the answer behind `| `, `= STATUS`; lines with `#` are headings.
fn read(table: &str) -> (Vec<Case>, String) {
    let mut cases: Vec<Case> = Vec::new();
    let mut shape = String::new();
    for line in table.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            cases.push(Case {
                command: command.to_string(),
                ..Case::default()
            });
            shape.push_str("$\n");
        } else if let Some(answer) = line.strip_prefix('|') {
            let case = cases.last_mut().expect("an answer follows a command");
            writeln!(
                case.answer,
                "{}",
                answer.strip_prefix(' ').unwrap_or(answer)
            )
            .expect("memory");
        } else if let Some(status) = line.strip_prefix("= ") {
            let case = cases.last_mut().expect("a status follows a command");
            case.status = status.parse().expect("a number");
        } else {
            writeln!(shape, "{line}").expect("memory");
        }
    }
    (cases, shape)
}

/// The table with the cases in the places of the commands.
fn write(cases: &[Case], shape: &str) -> String {
    let mut cases = cases.iter();
    let mut table = String::new();
    for line in shape.lines() {
        match (line, line == "$") {
            (_, true) => {
                let case = cases.next().expect("as many cases as commands");
                writeln!(table, "$ {}", case.command).expect("memory");
                for line in case.answer.lines() {
                    writeln!(table, "{}", format!("| {line}").trim_end()).expect("memory");
                }
                writeln!(table, "= {}", case.status).expect("memory");
            }
            (line, false) => writeln!(table, "{line}").expect("memory"),
        }
    }
    table
}

/// Makes recordings, and files that are none.
fn prepare(root: &Path) {
    copy(Path::new(TRACE), &root.join("trace"));
    for (name, change) in [
        ("without", None),
        ("unfinished", Some(&[][..])),
        ("overwritten", Some(&b"\x01\x02\x03\xff"[..])),
    ] {
        copy(Path::new(TRACE), &root.join(name));
        let metadata = root.join(name).join("ust/uid/0/64-bit/metadata");
        match change {
            None => fs::remove_file(metadata).expect("a file"),
            Some(content) => fs::write(metadata, content).expect("a file"),
        }
    }
    for directory in ["none", "rrds", "perf"] {
        fs::create_dir(root.join(directory)).expect("a directory");
    }
    let gzip = |content: &[u8]| {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut file, content).expect("memory");
        file.finish().expect("memory")
    };
    // A capture of one packet of TCP.
    let packet = [
        &[0; 12][..],
        &[8, 0, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6],
        &[0; 30],
    ]
    .concat();
    let length = (packet.len() as u32).to_le_bytes();
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let pcap = [
        &words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1, 1, 0])[..],
        &length,
        &length,
        &packet,
    ]
    .concat();
    let elf = |kind: u8| {
        [
            b"\x7fELF\x02\x01\x01",
            &[0; 9][..],
            &[kind, 0, 62, 0],
            &[0; 44],
        ]
        .concat()
    };
    let whisper: Vec<u8> = [1, 86400, 0x3f00_0000, 1, 28, 60, 1440]
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    let half = b"RRD\x000003\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for (name, content) in [
        ("empty", Vec::new()),
        ("notes.txt", b"some words\n".to_vec()),
        ("notes.txt.gz", gzip(b"some words\n")),
        ("empty.gz", gzip(b"")),
        ("perf.data", b"PERFILE2h\0\0\0\0\0\0\0".to_vec()),
        ("trace.dat", b"\x17\x08\x44tracing6\0".to_vec()),
        ("system.journal", b"LPKSHHRH\0\0\0\0".to_vec()),
        ("web.pcap", pcap),
        ("program", elf(3)),
        ("core", elf(4)),
        ("places.sqlite", b"SQLite format 3\0".to_vec()),
        ("cars.json", b"{\"cars\": [1, 2]}\n".to_vec()),
        (
            "cars.jsonl",
            b"{\"timestamp\":1,\"recording\":\"a\",\"kind\":\"event\"}\n".to_vec(),
        ),
        ("cpu.wsp", whisper),
        // CPEL, cut off within its first section.
        (
            "cut.cpel",
            b"\x01\0\0\x01\0\0\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0\0\0".to_vec(),
        ),
        ("photos.zip", b"PK\x03\x04\x14\0\0\0\0\0".to_vec()),
        ("trace.tar.xz", b"\xfd7zXZ\0\0\x04".to_vec()),
        ("trace.tar.bz2", b"BZh91AY&SY".to_vec()),
        ("old.parquet", b"PAR1\x15\x04PAR1".to_vec()),
        ("day.png", b"\x89PNG\r\n\x1a\n".to_vec()),
        ("page.html", b"<!DOCTYPE html>\n<html></html>\n".to_vec()),
        (
            "load.xml",
            b"<?xml version=\"1.0\"?>\n<rrd></rrd>\n".to_vec(),
        ),
        ("run.jfr", b"FLR\0\0\x02\0\0".to_vec()),
        ("old.index", b"KYMOIDX\x01\0\0\0\0".to_vec()),
        ("noise.bin", b"\x01\x02\x03\xff\xfe\0\0".to_vec()),
        ("stream", b"\xc1\x1f\xfc\xc1\0\0\0\0".to_vec()),
        ("half.rrd", half),
        ("perf/perf.data", b"PERFILE2h\0\0\0\0\0\0\0".to_vec()),
        ("kymo.toml", b"color = \"never\"\n".to_vec()),
        ("serve.toml", b"data = \"d\"\nrrdcachd = 1\n".to_vec()),
    ] {
        fs::write(root.join(name), content).expect("a file");
    }
    for line in [
        "convert trace -o log.cpel --text",
        "rrd create load.rrd --start 1600000000 --step 60 DS:load:GAUGE:120:0:U RRA:AVERAGE:0.5:1:100",
        "rrd update load.rrd 1600000060:1",
    ] {
        let made = Command::new(KYMO)
            .args(line.split(' '))
            .current_dir(root)
            .output()
            .expect("kymo runs");
        assert!(made.status.success(), "{line}: {made:?}");
    }
    fs::copy(root.join("load.rrd"), root.join("rrds/load.rrd")).expect("a copy");
    let whole = fs::read(root.join("load.rrd")).expect("a database");
    fs::write(root.join("cut.rrd"), &whole[..900]).expect("a file");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a kind").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

/// What the command of a case answers now.
fn run(case: &Case, root: &Path) -> Case {
    let programs = Path::new(KYMO).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    // Standard output is data; a terminal that `script` makes shows both.
    let is_terminal = case.command.starts_with("script ");
    let output = Command::new("bash")
        .args(["-c", &case.command])
        .current_dir(root)
        .env_clear()
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("HOME", root)
        .env("TZ", "UTC")
        .env("NO_COLOR", "1")
        // Cases run side by side, and some write a database that others read.
        .env("RRD_LOCKING", "block")
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let mut answer = String::from_utf8_lossy(&output.stderr).into_owned();
    if is_terminal {
        answer += &String::from_utf8_lossy(&output.stdout);
    }
    // An editor may take away blanks at the ends of lines.
    let lines = answer.lines().map(|line| format!("{}\n", line.trim_end()));
    answer = lines.collect();
    let real = root.canonicalize().expect("the directory");
    Case {
        command: case.command.clone(),
        answer: answer
            .replace(&*real.to_string_lossy(), "$DIR")
            .replace('\r', ""),
        status: output.status.code().unwrap_or(-1),
    }
}

#[test]
fn mistakes_are_answered_with_cause_and_remedy() {
    let table = fs::read_to_string(TABLE).expect("the table");
    let (cases, shape) = read(&table);
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let directory = TempDir::new().expect("a directory for the test");
    prepare(directory.path());
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![Case::default(); cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { break };
                    let done = run(case, directory.path());
                    found.lock().unwrap_or_else(PoisonError::into_inner)[at] = done;
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if std::env::var_os("MISTAKES_UPDATE").is_some() {
        fs::write(TABLE, write(&found, &shape)).expect("the table");
    } else {
        for (case, found) in cases.iter().zip(&found) {
            assert_eq!(case, found, "`{}` answers otherwise", case.command);
        }
    }
    for case in &found {
        let Case {
            command, answer, ..
        } = case;
        let has = |labels: &[&str]| labels.iter().any(|label| answer.contains(label));
        assert!(
            has(&["error: ", "ERROR: ", "warning: "]),
            "`{command}` names no cause:\n{answer}"
        );
        assert!(
            has(&["hint: ", "= help: "]),
            "`{command}` names no remedy:\n{answer}"
        );
    }
}
