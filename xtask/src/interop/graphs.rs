//! Graphs of random command lines, drawn by rrdtool and by kymo.
//!
//! `graphv` must print the same, SVG must have the same shapes and texts, PNG nearly the same pixels, and tables the
//! same bytes. Lines that rrdtool refuses must be refused.
//!
//! Not compared yet, since they are known to differ: `PREDICT` (rrdtool reads beyond its series),
//! `--graph-render-mode mono`, `--font-render-mode mono`, broken markup with `--pango-markup`, pixels at a zoom,
//! and gradients at a zoom or with `--slope-mode`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Counts;
use super::engine::Random;
use crate::Outcome;
use crate::conformance::graphs::{png, svg};
use crate::process::{Said, command, hear, require};

/// When the databases end, about.
const END: i64 = 1_700_000_000;

/// Databases and their sources.
const SOURCES: [(&str, &[&str]); 3] = [
    ("load.rrd", &["one", "five"]),
    ("traffic.rrd", &["in", "out"]),
    ("odd.rrd", &["neg", "tiny", "huge", "flat"]),
];

const FUNCTIONS: [&str; 3] = ["AVERAGE", "MIN", "MAX"];

/// Expressions of a series `a` and a series `b`.
const EXPRESSIONS: &[&str] = &[
    "a,8,*",
    "a,b,+",
    "a,b,-,ABS",
    "a,-1,*",
    "a,UN,0,a,IF",
    "a,b,GT,a,b,IF",
    "a,0,1000000,LIMIT",
    "a,LOG",
    "a,SIN,b,COS,ATAN2",
    "a,DUP,*,SQRT",
    "a,b,2,AVG",
    "a,b,3,3,SORT,POP,POP",
    "a,b,EXC,POP,FLOOR",
    "a,1000,%",
    "a,1800,TREND",
    "a,3600,TRENDNAN",
    "a,POP,TIME,86400,%",
    "a,POP,LTIME,3600,%",
    "a,POP,NEWDAY,10,UNKN,IF",
    "a,POP,COUNT",
    "a,POP,STEPWIDTH",
    "PREV,UN,a,PREV,0.9,*,a,0.1,*,+,IF",
    "a,b,ADDNAN",
    "a,b,MINNAN,a,b,MAXNAN,-",
    "a,POP,INF,NEGINF,TIME,7200,%,3600,LT,EXC,POP,EXC,IF",
    "a,10,POW",
    "a,b,a,3,STDEV",
    "50,a,b,2,2,PERCENT,POP",
    "a,b,2,SMAX,a,b,2,SMIN,-",
    "a,b,2,ROLL,POP",
    "a,CEIL,RAD2DEG",
    "a,ISINF,1,a,IF",
];

/// What makes one value of a series.
const SUMMARIES: &[&str] = &[
    "MAXIMUM",
    "MINIMUM",
    "AVERAGE",
    "STDEV",
    "LAST",
    "FIRST",
    "TOTAL",
    "95,PERCENT",
    "5,PERCENTNAN",
    "LSLSLOPE",
    "LSLINT",
    "LSLCORREL",
];

const LEGENDS: &[&str] = &[
    "load",
    "Traffic in\\n",
    "a <b> & c\\c",
    "Ümläut €\\l",
    "95th %%\\r",
    "very long legend that goes on and on",
    "x\\j",
    "tab\\t",
    "\\s",
    "end\\g",
    "two\\: parts",
    "up\\u",
    "  blanks  \\.",
    "",
];

const FORMATS: &[&str] = &[
    "%6.2lf %s",
    "%.2lf%S",
    "%lf",
    "%8.3le\\n",
    "%5.0lf%%\\j",
    "Avg\\: %lg\\r",
    "%+.1lf %s\\l",
    "%-10.3lf|",
    "%010.2lf",
    "min %3.1lf max\\c",
];

const TIMES: &[&str] = &["%Y-%m-%d %H\\:%M\\:%S", "%d %b\\n", "%H\\:%M\\r", "%A %j"];

/// How much PNGs may differ on average, of 255: edges of curves, phases of dashes at a zoom.
const MEAN: f64 = 0.2;

/// What the run is given.
pub(super) struct Options<'a> {
    pub(super) kymo: &'a Path,
    pub(super) databases: &'a Path,
    pub(super) lines: u64,
    pub(super) seed: u64,
}

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
    for number in 0..options.lines {
        let words = line(&mut Random((options.seed << 32).wrapping_add(number)));
        match peers.compare(&words)? {
            Ok(()) => counts.passed += 1,
            Err((kind, why)) => {
                counts.failed += 1;
                *kinds.entry(kind).or_default() += 1;
                println!(
                    "FAILED  {kind} of line {number} of seed {}\n    {}\n    {why}",
                    options.seed,
                    quoted(&words)
                );
            }
        }
    }
    for (kind, times) in kinds {
        println!("{times:>6} times: {kind}");
    }
    let pixels = &peers.pixels;
    println!(
        "{} command lines of graphs, {} of them refused by both; PNG differs by {:.5} of 255 on average, \
         by {} at most; {} of {} pictures are equal; the worst picture differs by {:.4} on average",
        options.lines,
        peers.refused,
        pixels.sum / (pixels.pictures.max(1) as f64),
        pixels.worst,
        pixels.equal,
        pixels.pictures,
        pixels.worst_mean,
    );
    if let Some(words) = &pixels.worst_line {
        println!("    {}", quoted(words));
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
    worst_line: Option<Vec<String>>,
}

impl Pixels {
    fn add(&mut self, found: &png::Difference, words: &[String]) {
        self.pictures += 1;
        self.equal += u64::from(found.worst == 0);
        self.sum += found.mean;
        self.worst = self.worst.max(found.worst);
        if found.mean > self.worst_mean {
            self.worst_mean = found.mean;
            self.worst_line = Some(words.to_vec());
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
    fn both(&self, subcommand: &str, format: &str, words: &[String]) -> Outcome<[Said; 2]> {
        let mut kymo = command(self.kymo);
        kymo.arg("rrd");
        let run = |mut program: std::process::Command, file: &Path| {
            let _ = std::fs::remove_file(file);
            program.current_dir(&self.databases).arg(subcommand);
            hear(program.arg(file).args(["-a", format]).args(words))
        };
        Ok([
            run(command("rrdtool"), &self.theirs)?,
            run(kymo, &self.ours)?,
        ])
    }

    fn compare(&mut self, words: &[String]) -> Outcome<Result<(), Difference>> {
        let [theirs, ours] = self.both("graphv", "PNG", words)?;
        if theirs.code != Some(0) {
            self.refused += 1;
            return Ok(match ours.code {
                Some(1) => Ok(()),
                // kymo takes a range that is shorter than a step.
                _ if theirs.err.contains("SANITY CHECK") => Ok(()),
                _ => Err((
                    "what rrdtool refuses",
                    format!("rrdtool: {}", theirs.err.trim()),
                )),
            });
        }
        if ours.code != Some(0) {
            return Ok(Err(("what kymo refuses", ours.err.trim().to_owned())));
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
        let zooms = words.iter().any(|word| word.starts_with("--zoom"));
        let fades = words.contains(&"--slope-mode".to_owned()) && has_gradient(words);
        let pictures = [std::fs::read(&self.theirs)?, std::fs::read(&self.ours)?];
        match png::difference(&pictures[0], &pictures[1]) {
            Err(why) => return Ok(Err(("size of PNG", why))),
            Ok(found) => {
                if !zooms && !fades {
                    self.pixels.add(&found, words);
                }
                if found.mean > MEAN && !zooms && !fades {
                    return Ok(Err(("pixels of PNG", found.to_string())));
                }
            }
        }
        if zooms && has_gradient(words) {
            return Ok(Ok(()));
        }
        self.both("graph", "SVG", words)?;
        let read = |file| std::fs::read_to_string(file);
        let (theirs, ours) = (read(&self.theirs)?, read(&self.ours)?);
        if let Err(why) = svg::compare(&theirs, &ours) {
            return Ok(Err(("shapes of SVG", why)));
        }
        // Where a series has no row, rrdtool writes what is in memory there.
        let starts = |word: &String| word.contains(":start=") || word.starts_with("SHIFT:");
        if words.iter().any(starts) {
            return Ok(Ok(()));
        }
        for format in ["CSV", "TSV", "SSV"] {
            // Without a column rrdtool writes a table without columns.
            let [theirs, ours] = self.both("graph", format, words)?;
            if theirs.code != Some(0) || ours.code != Some(0) {
                break;
            }
            if std::fs::read(&self.theirs)? != std::fs::read(&self.ours)? {
                return Ok(Err(("tables", format.to_owned())));
            }
        }
        Ok(Ok(()))
    }
}

/// Whether an area has two colours.
fn has_gradient(words: &[String]) -> bool {
    let mut areas = words.iter().filter(|word| word.starts_with("AREA:"));
    areas.any(|area| area.matches('#').count() > 1)
}

/// A command line to be copied into a shell.
fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = words.iter().map(quote).collect();
    words.join(" ")
}

/// A command line, without the file that is written and its format.
fn line(random: &mut Random) -> Vec<String> {
    let mut words = options(random);
    let series = definitions(random, &mut words);
    let elements = 1 + random.below(9);
    let values: Vec<String> = (0..random.below(4))
        .map(|number| {
            let (of, summary) = (one(random, &series), random.one(SUMMARIES));
            words.push(format!("VDEF:d{number}={of},{summary}"));
            format!("d{number}")
        })
        .collect();
    for _ in 0..elements {
        words.push(element(random, &series, &values));
    }
    words
}

fn one(random: &mut Random, of: &[String]) -> String {
    of[random.below(of.len() as u64) as usize].clone()
}

fn options(random: &mut Random) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let end = END - random.below(4000) as i64;
    let span = random.one(&[
        "10min", "1h", "3h", "6h", "1d", "30h", "3d", "1w", "10d", "31d", "90d", "400d", "1000d",
    ]);
    words.push(format!("--end={end}"));
    words.push(format!("--start=end-{span}"));
    let mut with = |random: &mut Random, percent, name: &str, values: &[&str]| {
        if random.chance(percent) {
            let value = random.one(values);
            words.push(match value {
                "" => format!("--{name}"),
                value => format!("--{name}={value}"),
            });
        }
    };
    let flag = &[""][..];
    for (percent, name, values) in [
        (
            30,
            "width",
            &["100", "250", "400", "481", "700", "1000"][..],
        ),
        (30, "height", &["20", "33", "64", "175", "300"]),
        (8, "full-size-mode", flag),
        (5, "only-graph", flag),
        (15, "upper-limit", &["1", "100", "1e6", "0.5"]),
        (15, "lower-limit", &["0", "0.1", "-5", "1e-3"]),
        (15, "rigid", flag),
        (5, "allow-shrink", flag),
        (10, "alt-autoscale", flag),
        (6, "alt-autoscale-min", flag),
        (6, "alt-autoscale-max", flag),
        (6, "no-gridfit", flag),
        (
            6,
            "x-grid",
            &[
                "none",
                "HOUR:1:DAY:1:DAY:1:86400:%d",
                "MINUTE:30:HOUR:6:HOUR:12:0:%H:%M",
                "DAY:1:WEEK:1:WEEK:1:604800:W%V",
            ],
        ),
        (5, "week-fmt", &["KW %V", "%U"]),
        (8, "y-grid", &["none", "1:5", "0.25:2", "100:1"]),
        (10, "logarithmic", flag),
        (8, "units-exponent", &["0", "3", "6", "-3"]),
        (8, "units-length", &["3", "8", "12"]),
        (5, "units", &["si"]),
        (8, "right-axis", &["1:0", "2:-5", "0.001:0", "-1:10"]),
        (8, "right-axis-label", &["right", "bits / s"]),
        (4, "right-axis-format", &["%5.1lf", "%.0lf %%"]),
        (4, "left-axis-format", &["%5.1lf", "%.3le"]),
        (20, "vertical-label", &["load", "bits/s", "Ümläut"]),
        (25, "title", &["Load", "a <b> & c", "one\\ntwo", "T"]),
        (12, "watermark", &["made by hand", "©"]),
        (6, "no-legend", flag),
        (6, "force-rules-legend", flag),
        (10, "legend-position", &["north", "south", "west", "east"]),
        (8, "legend-direction", &["topdown", "bottomup", "bottomup2"]),
        (6, "no-minor", flag),
        (6, "grid-dash", &["1:0", "2:3", "4:1"]),
        (8, "border", &["0", "1", "5"]),
        (8, "dynamic-labels", flag),
        (
            8,
            "color",
            &[
                "BACK#00000000",
                "CANVAS#334",
                "GRID#0FEDA740",
                "FONT#123456",
                "MGRID#00f8",
            ],
        ),
        (
            5,
            "font",
            &[
                "DEFAULT:10:",
                "AXIS:6:",
                "TITLE:14",
                "LEGEND:7",
                "WATERMARK:8",
            ],
        ),
        (4, "font-render-mode", &["normal", "light"]),
        (20, "slope-mode", flag),
        (4, "tabwidth", &["20", "80"]),
        (8, "base", &["1024"]),
        (8, "zoom", &["0.5", "1.5", "2", "3"]),
        (10, "step", &["60", "300", "3600"]),
        (8, "disable-rrdtool-tag", flag),
        (4, "imginfo", &["<img src=%s w=%lu h=%lu>"]),
    ] {
        with(random, percent, name, values);
    }
    // Together, rrdtool writes no labels.
    if !words.iter().any(|word| word.starts_with("--y-grid")) && random.chance(10) {
        words.push("--alt-y-grid".to_owned());
    }
    words
}

/// Adds definitions of series, and returns their names.
fn definitions(random: &mut Random, words: &mut Vec<String>) -> Vec<String> {
    let mut series = Vec::new();
    for number in 0..1 + random.below(3) {
        let (file, sources) = random.one(&SOURCES);
        let (source, function) = (random.one(sources), random.one(&FUNCTIONS));
        let more = random.one(&["", "", "", "", ":step=1800", ":reduce=MAX", ":start=end-2d"]);
        words.push(format!("DEF:v{number}={file}:{source}:{function}{more}"));
        series.push(format!("v{number}"));
    }
    for number in 0..random.below(4) {
        let (a, b) = (one(random, &series), one(random, &series));
        let expression: Vec<&str> = random
            .one(EXPRESSIONS)
            .split(',')
            .map(|word| match word {
                "a" => &*a,
                "b" => &*b,
                word => word,
            })
            .collect();
        words.push(format!("CDEF:c{number}={}", expression.join(",")));
        series.push(format!("c{number}"));
    }
    series
}

fn colour(random: &mut Random) -> String {
    let digits = random.next();
    match random.below(10) {
        0 => format!("#{:03x}", digits & 0xfff),
        1 => format!("#{:06X}80", digits & 0xff_ffff),
        2 => format!("#{:06X}40", digits & 0xff_ffff),
        3 => String::new(),
        _ => format!("#{:06X}", digits & 0xff_ffff),
    }
}

fn element(random: &mut Random, series: &[String], values: &[String]) -> String {
    let of = one(random, series);
    let value = match values {
        [] => None,
        values => Some(one(random, values)),
    };
    let legend = match random.one(LEGENDS) {
        "" => String::new(),
        legend => format!(":{legend}"),
    };
    let stack = if random.chance(15) { ":STACK" } else { "" };
    let skip = if random.chance(5) { ":skipscale" } else { "" };
    let dashes = random.one(&["", "", "", "", "", ":dashes", ":dashes=5,2:dash-offset=3"]);
    // A flag behind a legend that is missing would be taken for it.
    let (stack, skip, dashes) = match legend.is_empty() {
        true => ("", "", ""),
        false => (stack, skip, dashes),
    };
    let first = colour(random);
    match random.below(16) {
        0..=3 => {
            let width = random.one(&["", "1", "2", "3", "0.5", "1.5"]);
            format!("LINE{width}:{of}{first}{legend}{stack}{skip}{dashes}")
        }
        4..=6 => {
            let (second, height) = match !first.is_empty() && random.chance(20) {
                true => (
                    format!("#{:06X}", random.next() & 0xff_ffff),
                    random.one(&["", ":gradheight=0", ":gradheight=20", ":gradheight=-30"]),
                ),
                false => (String::new(), ""),
            };
            format!("AREA:{of}{first}{second}{legend}{stack}{skip}{height}")
        }
        7 => format!("LINE:{}{first}{legend}", value.as_deref().unwrap_or("12.5")),
        8 => {
            let fraction = random.one(&["0.1", "-0.1", "0.5", "1"]);
            format!("TICK:{of}{}:{fraction}{legend}", colour_or(&first))
        }
        9 => {
            let value = value.unwrap_or_else(|| random.one(&["5", "0.3", "1e6"]).to_owned());
            format!("HRULE:{value}{}{legend}{dashes}", colour_or(&first))
        }
        10 => {
            let time = (END - random.below(100_000) as i64).to_string();
            let time = value.unwrap_or(time);
            format!("VRULE:{time}{}{legend}{dashes}", colour_or(&first))
        }
        11..=13 => {
            let command = random.one(&["GPRINT", "GPRINT", "GPRINT", "PRINT"]);
            match value {
                Some(value) if random.chance(25) => {
                    format!("{command}:{value}:{}:strftime", random.one(TIMES))
                }
                Some(value) => format!("{command}:{value}:{}", random.one(FORMATS)),
                None => format!(
                    "{command}:{of}:{}:{}",
                    random.one(&["AVERAGE", "MAX", "MIN", "LAST"]),
                    random.one(FORMATS)
                ),
            }
        }
        14 => format!("COMMENT{}", if legend.is_empty() { ":-" } else { &legend }),
        _ => match random.chance(50) {
            true => {
                let align = random.one(&["left", "right", "center", "justified"]);
                format!("TEXTALIGN:{align}")
            }
            false => {
                let seconds = random.one(&["3600", "-7200", "86400", "10"]);
                format!("SHIFT:{of}:{seconds}")
            }
        },
    }
}

/// Ticks and rules need a colour.
fn colour_or(colour: &str) -> &str {
    match colour {
        "" => "#112233",
        colour => colour,
    }
}
