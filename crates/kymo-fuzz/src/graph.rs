//! rrdtool's language of graphs.

use kymo_rrdtool::answers::{Fetched, Wanted};
use kymo_rrdtool::{Defaults, Failure, Session, run};

/// The most rows that a series is given.
const MOST_ROWS: u64 = 2000;

/// The words of a graph, a word a line, are refused, or drawn: the same twice, in a size that the words behind them set.
///
/// Series are those of a program around, so that no file is read or written.
pub fn graph_words(data: &[u8]) {
    let words = data.split(|byte| *byte == b'\n').take(200);
    let words: Vec<Vec<u8>> = words.filter_map(word).collect();
    for (command, format) in [("graph", "--imgformat=PNG"), ("graphv", "--imgformat=SVG")] {
        let first = drawn(command, format, &words);
        assert_eq!(first, drawn(command, format, &words));
    }
}

/// A word that names no file and no daemon.
fn word(word: &[u8]) -> Option<Vec<u8>> {
    let has = |part: &[u8]| word.windows(part.len()).any(|found| found == part);
    // After `--` there are no options; a short name may stand for a long one.
    let is_of_files = word == b"--" || word.starts_with(b"--js") || word.starts_with(b"--d");
    let is_option_of_daemon = word.starts_with(b"-d") || has(b"daemon");
    // What behind a word may be the value of an option, which then is not read.
    if is_of_files || is_option_of_daemon || has(b"rrd=") {
        return None;
    }
    let definition = word.strip_prefix(b"DEF:").and_then(|rest| {
        let equals = rest.iter().position(|byte| *byte == b'=')?;
        Some([b"DEF:", &rest[..=equals], b"cb//", &rest[equals + 1..]].concat())
    });
    let is_element = has(b"DEF") && !has(b"CDEF") && !has(b"VDEF");
    match definition {
        Some(definition) => Some(definition),
        None if is_element => None,
        None => Some(word.to_vec()),
    }
}

/// What is written, or what is wrong.
fn drawn(command: &str, format: &str, words: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let fetch = |wanted: &Wanted<'_>| -> Result<Fetched, Failure> {
        let seconds = wanted
            .end
            .saturating_sub(wanted.start)
            .max(0)
            .unsigned_abs();
        let step = wanted.step.max(1).max(seconds / MOST_ROWS);
        let rows = seconds / step;
        let values = (0..rows).map(|row| match row % 7 {
            6 => f64::NAN,
            part => (part * row) as f64 - 3.0,
        });
        Ok(Fetched {
            start: wanted.start,
            end: wanted.start.saturating_add((rows * step) as i64),
            step,
            names: vec![b"a".to_vec()],
            values: values.collect(),
        })
    };
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let mut session = Session::new(&mut out, &mut warnings, Defaults::default());
    session.now = Some(1_700_000_000);
    session.fetcher = Some(&fetch);
    let last = ["--width=120", "--height=40", "--zoom=1", format];
    let all: Vec<&[u8]> = [command.as_bytes(), b"-"]
        .into_iter()
        .chain(words.iter().map(Vec::as_slice))
        .chain(last.iter().map(|word| word.as_bytes()))
        .collect();
    let done = run(&mut session, &all);
    match done {
        Some(Ok(())) => Ok(out),
        Some(Err(failure)) => Err(failure.to_string()),
        None => Err("no such command".to_owned()),
    }
}
