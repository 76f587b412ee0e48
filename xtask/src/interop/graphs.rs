//! Graphs of random command lines, drawn by rrdtool and by kymo.
//!
//! `graphv` must print the same, SVG must have the same shapes and texts, PNG nearly the same pixels, and tables the
//! same bytes. Lines that rrdtool refuses must be refused.
//!
//! Not compared: `TREND`, `PREDICT` and similar, since rrdtool 1.7.2 reads the row behind the last one of their
//! series; `ROLL`, which loses a value there; broken markup with `--pango-markup`. [`EXCEPTIONS`] has more.
//!
//! `programs.jsonl` has command lines as Munin, Cacti and others write them: their options, elements and
//! formats, rewritten for the databases of the corpus.

mod lines;
pub(super) mod scripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Counts;
use super::engine::Random;
use crate::Outcome;
use crate::conformance::graphs::{png, svg};
use crate::process::{Said, command, hear, require};
use lines::Line;

/// The exit code of `timeout` if a program does not end.
const TIMED_OUT: i32 = 124;

/// How much PNGs may differ on average, of 255: edges of curves, phases of dashes at a zoom.
const MEAN: f64 = 0.2;

/// A grid has at most so many lines.
const MOST_GRID_LINES: f64 = 65_536.0;

/// Command lines in the style of programs.
const PROGRAMS: &str = include_str!("graphs/programs.jsonl");

/// Lines that are drawn where all is compared.
const SAMPLE: u64 = 60;

/// What the run is given.
pub(super) struct Options<'a> {
    pub(super) kymo: &'a Path,
    pub(super) databases: &'a Path,
    pub(super) lines: u64,
    pub(super) seed: u64,
    /// How many random lines may differ without a known reason: of those that are new each day, a few do, and
    /// a change that spoils something makes it many.
    pub(super) tolerated: usize,
    /// Command lines to compare instead, as `programs.jsonl` has them.
    pub(super) command_lines: Option<&'a Path>,
}

impl<'a> Options<'a> {
    /// Some lines, others each day, so that a run of everything takes half a minute more.
    pub(super) fn sample(kymo: &'a Path, databases: &'a Path) -> Self {
        let seed = std::env::var("KYMO_GRAPHS_SEED");
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let day = since.map_or(0, |since| since.as_secs() / 86_400);
        Self {
            kymo,
            databases,
            lines: SAMPLE,
            seed: seed.ok().and_then(|seed| seed.parse().ok()).unwrap_or(day),
            tolerated: 4,
            command_lines: None,
        }
    }
}

/// What differs and why, as docs/graph.md says: a part of a line and a kind of difference.
type Exception = (fn(&Line) -> bool, &'static [&'static str]);

const EXCEPTIONS: &[Exception] = &[
    // Where a series has no row, rrdtool writes what is in memory there.
    (
        |line| {
            line.words
                .iter()
                .any(|word| word.contains(":start=") || word.contains(":end="))
                || line.has("SHIFT:")
        },
        &["tables"],
    ),
    // The percentile of a series without known values is whatever is in memory.
    (
        |line| line.words.iter().any(|word| word.contains(",PERCENT")),
        &["graphv", "shapes of SVG", "pixels of PNG", "size of PNG"],
    ),
    // rrdtool reads the row behind the last one of the series.
    (
        |line| line.words.iter().any(|word| word.contains(",PREDICT")),
        &["graphv", "shapes of SVG", "pixels of PNG", "tables"],
    ),
    // rrdtool has a column of what is in memory for a LINE of a number.
    (
        |line| {
            line.words.iter().any(|word| {
                let value = word
                    .strip_prefix("LINE")
                    .and_then(|word| word.split(':').nth(1));
                value.is_some_and(|value| value.starts_with(|first: char| first.is_ascii_digit()))
            })
        },
        &["tables"],
    ),
    // Dates after the year 9999.
    (
        |line| {
            let has = |text: &str| line.words.iter().any(|word| word.contains(text));
            has(":valstrftime") && (has("odd.rrd:huge") || has(",TOTAL"))
        },
        &["graphv"],
    ),
    // Broken markup: kymo shows the text, pango nothing.
    (
        |line| line.has("--pango-markup") && line.has("--title=a <b>"),
        &["shapes of SVG", "pixels of PNG"],
    ),
    // cairo does not zoom the offset of dashes in SVG, but it does in PNG.
    (
        |line| line.has("--zoom=") && line.words.iter().any(|word| word.contains(":dash-offset=")),
        &["shapes of SVG"],
    ),
    // Glyphs of 4 pixels without smooth edges.
    (
        |line| line.has("--font-render-mode=mono") && line.has("--zoom=0.5"),
        &["pixels of PNG"],
    ),
];

/// Compares, and prints the differences and how large they are.
pub(super) fn run(options: &Options<'_>) -> Outcome<Counts> {
    require("rrdtool", "rrdtool")?;
    let folder = tempfile::tempdir()?;
    for side in ["ours", "theirs"] {
        std::fs::create_dir(folder.path().join(side))?;
    }
    let mut peers = Peers {
        kymo: options.kymo,
        databases: options.databases.join("graph"),
        // `--imginfo` shows the name.
        ours: folder.path().join("ours/picture"),
        theirs: folder.path().join("theirs/picture"),
        refused: 0,
        pixels: Pixels::default(),
    };
    let mut counts = Counts::default();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut differing = 0;
    let random = |number| Line::new(&mut Random((options.seed << 32).wrapping_add(number)));
    let of_programs = match options.command_lines {
        Some(path) => Line::read(&std::fs::read_to_string(path)?)?,
        None => Line::read(PROGRAMS)?,
    };
    let random: Vec<Line> = match options.command_lines {
        Some(_) => Vec::new(),
        None => (0..options.lines).map(random).collect(),
    };
    for (number, line) in of_programs.iter().chain(&random).enumerate() {
        match peers.compare(line, number as u64)? {
            Ok(()) => counts.passed += 1,
            Err((kind, why)) => {
                let excepted = EXCEPTIONS
                    .iter()
                    .any(|(is, kinds)| kinds.contains(&kind) && is(line));
                if excepted {
                    counts.passed += 1;
                    continue;
                }
                if number < of_programs.len() {
                    counts.failed += 1;
                } else {
                    differing += 1;
                }
                *kinds.entry(kind).or_default() += 1;
                println!(
                    "differs {kind} of line {number} of seed {}\n    {line}\n    {why}",
                    options.seed,
                );
            }
        }
    }
    println!(
        "{differing} random lines differ without a known reason, {} may",
        options.tolerated
    );
    match differing <= options.tolerated {
        true => counts.passed += differing,
        false => counts.failed += differing,
    }
    for (kind, times) in kinds {
        println!("{times:>6} times: {kind}");
    }
    let pixels = &peers.pixels;
    println!(
        "{} command lines of graphs (seed {}), {} of them refused by both; PNG differs by {:.5} of 255 on average, \
         by {} at most; {} of {} pictures are equal; the worst picture differs by {:.4} on average",
        counts.passed + counts.failed,
        options.seed,
        peers.refused,
        pixels.sum / (pixels.pictures.max(1) as f64),
        pixels.worst,
        pixels.equal,
        pixels.pictures,
        pixels.worst_mean,
    );
    if let Some(line) = &pixels.worst_line {
        println!("    {line}");
    }
    Ok(counts)
}

/// How much pictures differ.
#[derive(Default)]
struct Pixels {
    pictures: u64,
    equal: u64,
    /// The sum of the mean differences.
    sum: f64,
    worst: u8,
    worst_mean: f64,
    worst_line: Option<Line>,
}

impl Pixels {
    fn add(&mut self, found: &png::Difference, line: &Line) {
        self.pictures += 1;
        self.equal += u64::from(found.worst == 0);
        self.sum += found.mean;
        self.worst = self.worst.max(found.worst);
        if found.mean > self.worst_mean {
            self.worst_mean = found.mean;
            self.worst_line = Some(line.clone());
        }
    }
}

struct Peers<'a> {
    kymo: &'a Path,
    databases: PathBuf,
    ours: PathBuf,
    theirs: PathBuf,
    refused: u64,
    pixels: Pixels,
}

/// The kind of a difference, and what it is.
type Difference = (&'static str, String);

impl Peers<'_> {
    /// Runs rrdtool and kymo.
    fn both(&self, subcommand: &str, format: &str, line: &Line) -> Outcome<[Said; 2]> {
        let mut kymo = command(self.kymo);
        kymo.arg("rrd");
        let run = |mut program: std::process::Command, file: &Path| {
            let _ = std::fs::remove_file(file);
            let folder = line.folder.as_deref().unwrap_or(&self.databases);
            program.current_dir(folder).env("TZ", &*line.zone);
            program.arg(subcommand).arg(file).args(["-a", format]);
            hear(program.args(&line.words))
        };
        // Some x grids make rrdtool run for ever.
        let mut rrdtool = command("timeout");
        rrdtool.args(["20", "rrdtool"]);
        Ok([run(rrdtool, &self.theirs)?, run(kymo, &self.ours)?])
    }

    fn compare(&mut self, line: &Line, number: u64) -> Outcome<Result<(), Difference>> {
        let [theirs, ours] = self.both("graphv", "PNG", line)?;
        if theirs.code != Some(0) {
            self.refused += 1;
            return Ok(match ours.code {
                Some(1) => Ok(()),
                _ if theirs.code == Some(TIMED_OUT) => Ok(()),
                // kymo takes a range that is shorter than a step.
                _ if theirs.err.contains("SANITY CHECK") => Ok(()),
                // A CDEF of series that have no time in common is unknown.
                _ if theirs.err.contains("malloc im->gdes[gdi].data") => Ok(()),
                _ => Err((
                    "what rrdtool refuses",
                    format!("rrdtool: {}", theirs.err.trim()),
                )),
            });
        }
        if ours.code != Some(0) {
            // As docs/graph.md says.
            let known = ["the x grid has more than", "a graph without contents"];
            return Ok(match known.iter().any(|known| ours.err.contains(known)) {
                true => Ok(()),
                false => Err(("what kymo refuses", ours.err.trim().to_owned())),
            });
        }
        let texts = [&theirs.out, &ours.out].map(|text| String::from_utf8_lossy(text));
        if texts[0] != texts[1] {
            let mut lines = texts[0].lines().zip(texts[1].lines());
            let why = match lines.find(|(theirs, ours)| theirs != ours) {
                Some((theirs, ours)) => format!("rrdtool: {theirs}\n    kymo: {ours}"),
                None => "the number of lines differs".to_owned(),
            };
            return Ok(Err(("graphv", why)));
        }
        // Nothing was drawn.
        if !self.theirs.exists() {
            return Ok(match self.ours.exists() {
                true => Err(("graphv", "only kymo draws a picture".to_owned())),
                false => Ok(()),
            });
        }
        // A grid so dense is painted by rrdtool, and left out by kymo.
        if line.grid_lines(&texts[0]) > MOST_GRID_LINES {
            return Ok(Ok(()));
        }
        let pictures = [std::fs::read(&self.theirs)?, std::fs::read(&self.ours)?];
        match png::difference(&pictures[0], &pictures[1]) {
            Err(why) => return Ok(Err(("size of PNG", why))),
            Ok(found) => {
                self.pixels.add(&found, line);
                if found.mean > MEAN {
                    return Ok(Err(("pixels of PNG", found.to_string())));
                }
            }
        }
        self.both("graph", "SVG", line)?;
        let read = |file| std::fs::read_to_string(file);
        let (theirs, ours) = (read(&self.theirs)?, read(&self.ours)?);
        if let Err(why) = svg::compare(&theirs, &ours) {
            return Ok(Err(("shapes of SVG", why)));
        }
        // Without a column rrdtool writes a table without columns.
        let format = ["CSV", "TSV", "SSV"][number as usize % 3];
        let [theirs, ours] = self.both("graph", format, line)?;
        if theirs.code == Some(0)
            && ours.code == Some(0)
            && unquoted(&self.theirs)? != unquoted(&self.ours)?
        {
            return Ok(Err(("tables", format.to_owned())));
        }
        Ok(Ok(()))
    }
}

/// A table in which quotation marks are as rrdtool has them: it does not double those of legends.
fn unquoted(file: &Path) -> Outcome<String> {
    Ok(std::fs::read_to_string(file)?.replace("\"\"", "\""))
}
