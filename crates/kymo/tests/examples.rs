//! The recordings in `examples/`, shown whole: the text that babeltrace2 gives where it reads them.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use kymo::pipeline::{self, Everything, Output};
use kymo::show::WallOptions;
use kymo::show::pretty::{Options, Pretty};
use kymo_model::FaultReport;

/// Keeps all that a run says.
#[derive(Default)]
struct Heard {
    text: Vec<u8>,
    warnings: Vec<u8>,
    faults: Vec<String>,
}

impl Output for Heard {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.text.extend_from_slice(text);
        Ok(())
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        self.warnings.extend_from_slice(lines);
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.faults.push(fault.to_string());
        ControlFlow::Continue(())
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace has a folder")
}

fn show(name: &str, threads: usize) -> Heard {
    let path = root().join("examples").join(name);
    let opened = kymo::open::open(&[path], &kymo::open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    let options = Options {
        wall: WallOptions {
            date: true,
            gmt: true,
            seconds: false,
        },
        ..Options::default()
    };
    let mut heard = Heard::default();
    pipeline::run(
        &opened.recordings,
        &Everything,
        &pipeline::Options {
            threads,
            ..pipeline::Options::default()
        },
        &mut Pretty::new(options),
        &mut heard,
    )
    .expect("memory takes everything");
    heard
}

fn expected(name: &str) -> String {
    let path = root().join("examples").join(name);
    let text = std::fs::read_to_string(path).expect("there is an expected text");
    text.replace("ROOT", &root().to_string_lossy())
}

#[track_caller]
fn assert_same(found: &[u8], expected: &str) {
    let found = String::from_utf8_lossy(found);
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn a_trace_is_shown_whole() {
    for threads in [1, 2, 5] {
        let heard = show("lttng-small", threads);
        assert_same(&heard.text, &expected("lttng-small.txt"));
        assert_eq!((heard.warnings, heard.faults), (vec![], vec![]));
    }
}

#[test]
fn what_was_discarded_is_reported() {
    for threads in [1, 2] {
        let heard = show("lttng-discarded", threads);
        assert_same(&heard.text, &expected("lttng-discarded.txt"));
        assert_same(&heard.warnings, &expected("lttng-discarded.err"));
        assert_eq!(heard.faults, Vec::<String>::new());
    }
}

#[test]
fn the_draft_of_2010_is_shown() {
    let heard = show("rfc-small", 2);
    assert_same(&heard.text, &expected("rfc-small.txt"));
    assert_same(&heard.warnings, &expected("rfc-small.err"));
    assert_eq!(heard.faults, Vec::<String>::new());
}

#[test]
fn bit_fields_of_either_byte_order_are_shown() {
    for name in ["bitfield-be", "bitfield-le"] {
        let heard = show(name, 1);
        assert_same(&heard.text, "x: { a = 0xE, b = 0xA1B2C3D4, c = 0xF }\n");
        assert_eq!(heard.faults, Vec::<String>::new());
    }
}
