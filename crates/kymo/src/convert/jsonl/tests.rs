use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use kymo_cpel::entries::Entry;
use kymo_cpel::json::read;
use kymo_cpel::recording::Options;
use kymo_cpel::write::{self, Builder};
use kymo_machine::ByteOrder;
use kymo_model::FaultReport;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::pipeline::{self, Everything, Output};

struct Collected(Vec<u8>);

impl Output for Collected {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(text);
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        panic!("{}", lines.escape_ascii());
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        panic!("{fault}");
    }
}

/// The lines of a file.
fn lines(file: &[u8]) -> Vec<u8> {
    let log = Log::new(Path::new("x"), file.to_vec().into(), &Options::default());
    let recordings = [AnyRecording::Cpel(log.expect("it has a header"))];
    let mut lines = Jsonl::new(Times::Number, WallOptions::default());
    let mut out = Collected(Vec::new());
    pipeline::run(
        &recordings,
        &Everything,
        &pipeline::Options::default(),
        &mut lines,
        &mut out,
    )
    .unwrap();
    out.0
}

#[test]
fn files_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kymo-cpel/tests/data");
    let mut whole = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::read(&path).unwrap();
        let is_cpel = path.extension().is_some_and(|name| name == "cpel");
        if !is_cpel || File::open(&file).is_err() {
            continue;
        }
        let there = lines(&file);
        let back = read(&there).unwrap();
        let log = Log::new(&path, file.clone().into(), &Options::default()).unwrap();
        if log.faults().is_empty() {
            assert!(*back == *file, "{}", path.display());
            whole += 1;
        }
        // What is there of a damaged one is kept, too.
        assert!(lines(&back) == there, "{}", path.display());
    }
    assert!(whole > 10);
}

#[test]
fn wrong_lines_are_reported() {
    let file = r#"{"timestamp":null,"recording":"a","kind":"notification","cpel":"file","byte_order":"big","unused":0,"date":1}"#;
    let section = r#"{"timestamp":null,"recording":"a","cpel":"section","section":0,"type":5,"strings":"","clock":1}"#;
    let event = r#"{"timestamp":1,"recording":"a","track":1,"event_class":2,"datum":3,"section":0,"ticks":4}"#;
    assert!(read([file, section, event].join("\n").as_bytes()).is_ok());
    for (lines, line, column, message) in [
        (vec![], 1, 1, "no line describes a CPEL file"),
        (
            vec![event],
            1,
            1,
            "the first line is not that of a CPEL file: expected `\"cpel\":\"file\"`",
        ),
        (vec![file, event], 2, 1, "section 0 does not hold events"),
        (
            vec![file, "", "{\"recording\":\"a\",\"ticks\":1.5}"],
            3,
            26,
            "expected a whole number from 0 to 18446744073709551615",
        ),
        (
            vec![file, "{\"recording\":\"a\",\"datum\":4294967296}"],
            2,
            26,
            "expected a whole number from 0 to 4294967295",
        ),
        (vec![file, section, section], 3, 1, "expected `section` 1"),
        (
            vec![file, "{\"recording\":\"b\"}"],
            2,
            1,
            "a line of `b` among those of `a`",
        ),
        (
            vec![file, "{\"recording\":\"a\"} 5"],
            2,
            19,
            "expected the end of the line",
        ),
    ] {
        let error = read(lines.join("\n").as_bytes()).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.message.starts_with(message), "{error}");
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1..=255u8, 0..12)
}

prop_compose! {
    fn entry()(time in 0..1u64 << 40, track in 0..5u32, code in 0..9u32, datum: u32) -> Entry {
        Entry { time, track, code, datum }
    }
}

proptest! {
    /// Texts of any bytes, events in any order, both byte orders, unknown sections.
    #[test]
    fn any_file_comes_back(
        events in vec((text(), text()), 0..6),
        tracks in vec(text(), 0..4),
        symbol in text(),
        entries in vec(entry(), 0..40),
        shuffled in vec(entry(), 0..40),
        unknown: Vec<u8>,
        little: bool,
        section_events in 1..20usize,
    ) {
        let order = if little { ByteOrder::Little } else { ByteOrder::Big };
        let options = write::Options { order, date: 7, section_events, ..write::Options::default() };
        let mut builder = Builder::new(options);
        for (code, (name, datum)) in (0..).zip(&events) {
            builder.event(code, Some(name), Some(datum)).unwrap();
        }
        for (track, name) in (0..).zip(&tracks) {
            builder.track(track, Some(name)).unwrap();
        }
        builder.symbol(u32::from(little), &symbol).unwrap();
        entries.iter().for_each(|&entry| builder.push(entry).unwrap());
        let mut file = Vec::new();
        builder.write(&mut file).unwrap();
        let word = |word: usize| match order {
            ByteOrder::Big => (word as u32).to_be_bytes(),
            ByteOrder::Little => (word as u32).to_le_bytes(),
        };
        // Two sections more: one of an unknown type, one of events in any order.
        let count = File::open(&file).unwrap().header.sections + 2;
        let [high, low] = count.to_be_bytes();
        file[2..4].copy_from_slice(&if little { [low, high] } else { [high, low] });
        file.extend([word(99), word(unknown.len())].concat());
        file.extend(&unknown);
        file.extend([word(5), word(72 + 20 * shuffled.len())].concat());
        file.extend(b"FileStrtab");
        file.extend([0; 54]);
        file.extend([word(shuffled.len()), word(1_000_000)].concat());
        shuffled.iter().for_each(|entry| file.extend(entry.to_bytes(order)));
        prop_assert!(*read(&lines(&file)).unwrap() == *file);
    }
}
