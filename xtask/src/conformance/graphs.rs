//! Graphs that rrdtool 1.7.2 has drawn, drawn again.
//!
//! The command lines are in `rrd/graph/cases.jsonl`. What `graphv` prints is compared byte for byte, SVG as a
//! list of shapes with places to a hundredth of a pixel, PNG pixel by pixel.

pub(crate) mod png;
pub(crate) mod svg;

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::{Setting, Verdict};
use crate::{Outcome, process};

/// A command line, and what rrdtool said.
struct Case {
    name: String,
    words: Vec<String>,
    facts: String,
}

fn cases(folder: &Path) -> Outcome<Vec<Case>> {
    let lines = std::fs::read_to_string(folder.join("cases.jsonl"))?;
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line)?;
        let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
        let words = case["args"].as_array().into_iter().flatten();
        Ok(Case {
            name: text("name"),
            words: words.filter_map(Value::as_str).map(str::to_owned).collect(),
            facts: text("graphv"),
        })
    };
    lines.lines().map(case).collect()
}

/// Runs each case, and checks what is printed and the picture.
fn each(
    setting: &Setting,
    command: &str,
    format: &str,
    check: impl Fn(&Path, &Case, &str, &[u8]) -> Result<(), String>,
) -> Outcome<Vec<Verdict>> {
    let folder = setting.databases().join("graph");
    let directory = tempfile::tempdir()?;
    let picture = directory.path().join("picture");
    let mut verdicts = Vec::new();
    for case in cases(&folder)? {
        let mut run = process::command(&setting.kymo);
        run.current_dir(&folder)
            .env("TZ", "UTC")
            .args(["rrd", command]);
        run.arg(&picture)
            .args(["--imgformat", format])
            .args(&case.words);
        let ran = run.output()?;
        let printed = String::from_utf8_lossy(&ran.stdout);
        let result = match ran.status.success() {
            true => check(&folder, &case, &printed, &std::fs::read(&picture)?),
            false => Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned()),
        };
        verdicts.push(Verdict::new(format!("rrd/graph/{}", case.name), result));
    }
    Ok(verdicts)
}

/// `graphv` prints the same.
pub(super) fn facts(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, "graphv", "PNG", |_, case, printed, _| {
        let lines = case.facts.lines().zip(printed.lines());
        let mut different = lines.filter(|(expected, found)| expected != found);
        match different.next() {
            Some((expected, found)) => Err(format!("expected `{expected}`, found `{found}`")),
            None if case.facts == printed => Ok(()),
            None => Err("the number of lines differs".to_owned()),
        }
    })
}

/// SVG has the same shapes and texts at the same places.
pub(super) fn shapes(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, "graph", "SVG", |folder, case, _, found| {
        let path = folder.join(format!("{}.svg.gz", case.name));
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let mut expected = String::new();
        let read = GzDecoder::new(file).read_to_string(&mut expected);
        read.map_err(|error| error.to_string())?;
        svg::compare(&expected, &String::from_utf8_lossy(found))
    })
}

/// No pixel of PNG differs by more than 8 of 255.
pub(super) fn pixels(setting: &Setting) -> Outcome<Vec<Verdict>> {
    each(setting, "graph", "PNG", |folder, case, _, found| {
        let expected = std::fs::read(folder.join(format!("{}.png", case.name)));
        png::compare(&expected.map_err(|error| error.to_string())?, found)
    })
}
