//! Lines that make databases others.

use super::updates::fill;
use super::{By, Layout, Line, Random, Scenario, Step, queries, scenario};

/// Kinds of data sources of all versions: with others, rrdtool does not change the version.
const PLAIN_SOURCES: [&str; 4] = ["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE"];

/// `tune`, with updates between.
pub(super) fn tune(random: &mut Random) -> Scenario {
    let season = random.chance(60);
    let mut layout = Layout::make(random, "t.rrd", season);
    let mut steps = vec![layout.create(random).into()];
    steps.extend(fill(random, &mut layout));
    for _ in 0..12 {
        steps.push(match random.below(10) {
            0..6 => option(random, &layout).into(),
            6 => rewrite(random, &mut layout).into(),
            7 => queries::look(random, &layout).into(),
            _ => layout.update(random).into(),
        });
    }
    scenario(random, steps)
}

/// An option of `tune`: of several of which one is wrong, rrdtool carries out those before it.
fn option(random: &mut Random, layout: &Layout) -> Line {
    let mut line = Line::new(format!("tune {}", layout.file));
    let source = layout.source(random);
    // A source that is not one of its own must not get parameters that it has no room for.
    let source = if source == "c" {
        "x0".to_owned()
    } else {
        source
    };
    let number = random.one(&["0.5", "0.1", "0", "1", "0.99", "2", "-1", "x", "5", "1e-2"]);
    let words = match random.below(18) {
        0 => format!(
            "-h {source}:{}",
            random.one(&["100", "1", "x", "", "100000"])
        ),
        1 => format!("--heartbeat {source}:{}", random.one(&["600", "1"])),
        2 => format!(
            "-i {source}:{}",
            random.one(&["U", "0", "-5.5", "x", "1e3", ""])
        ),
        3 => format!(
            "-a {source}:{}",
            random.one(&["U", "100", "-5.5", "x", "1e300", ""])
        ),
        4 => format!("--maximum={source}:7"),
        5 => format!("-d {source}:{}", random.one(&PLAIN_SOURCES)),
        6 => format!("--data-source-type {source}:{}", random.one(&["nope", ""])),
        7 => format!("-r {source}:{}", random.one(&["x9", "a-b"])),
        8 => format!("-p {}", random.one(&["2", "0.5", "-1", "x", "3e0"])),
        9 => format!("-n {}", random.one(&["2", "0.5", "-1", "x", "0"])),
        10 => format!("-f {}", random.one(&["3", "0", "28", "29", "x", "-1"])),
        11 => format!("-w {}", random.one(&["5", "0", "28", "29", "x", "-1"])),
        12 => format!("-x {number}"),
        13 => format!("-y {number}"),
        14 => format!("-z {number}"),
        15 => format!("-v {number}"),
        16 => format!(
            "{} {number}",
            random.one(&[
                "-s",
                "-S",
                "--smoothing-window",
                "--smoothing-window-deviation"
            ])
        ),
        _ => format!("-b {source}"),
    };
    line.words.extend(Line::new(words).words);
    match random.below(20) {
        0 => Line::new(format!("tune {}", layout.file)),
        _ => line,
    }
}

/// A change for which the file is rewritten.
fn rewrite(random: &mut Random, layout: &mut Layout) -> Line {
    let file = layout.file;
    let archive = random.below(layout.archives as u64 + 1);
    let rows = 1 + random.below(8);
    // Seasons are as long as they are: only plain archives behind them change.
    let archive = match layout.season {
        true => (layout.archives as u64).saturating_sub(1),
        false => archive,
    };
    let change = random.one(&["+", "-"]);
    let word = match random.below(8) {
        0 => "DEL:nope".to_owned(),
        // The names of the others stay.
        1 if layout.kinds.len() > 1 => {
            layout.kinds.pop();
            format!("DEL:x{}", layout.kinds.len())
        }
        1 => format!("DS:y{rows}:{}:600:U:U", random.one(&PLAIN_SOURCES)),
        // The last: to those behind it, rrdtool gives rows of the wrong ones.
        2 if !layout.season => {
            layout.archives = layout.archives.saturating_sub(1);
            format!("DELRRA:{}", layout.archives)
        }
        3 => {
            layout.archives += 1;
            format!(
                "RRA:{}:0.5:{}:{rows}",
                random.one(&super::FUNCTIONS),
                random.one(&[1, 2, 5, 12])
            )
        }
        4 => format!("RRA#{archive}:{}{rows}", random.one(&["", "x"])),
        // Another step is taken by rrdtool, but does not change anything.
        5 => format!("--step {}", layout.step),
        6 => random
            .one(&[
                "DEL:",
                "DELRRA:-1",
                "RRA#0:",
                "RRA#x:+1",
                "RRA:AVERAGE",
                "foo",
            ])
            .to_owned(),
        _ => format!("RRA#{archive}:{change}{rows}"),
    };
    Line::new(format!("tune {file} {word}"))
}

/// `resize`, `dump` to files and `restore`.
pub(super) fn copies(random: &mut Random) -> Scenario {
    let season = random.chance(30);
    let mut layout = Layout::make(random, "c.rrd", season);
    // What rrdtool takes for the bounds of computed values are not bounds.
    layout.definitions.retain(|one| !one.contains("COMPUTE"));
    let mut steps: Vec<Step> = vec![layout.create(random).into()];
    steps.extend(fill(random, &mut layout));
    for round in 0..8 {
        let line = match random.below(6) {
            0..3 => {
                let archive = random.below(layout.archives as u64 + 1);
                let rows = random.one(&["1", "2", "5", "40", "0", "-1", "x"]);
                let how = random.one(&["GROW", "SHRINK", "GROW", "SHRINK", "grow", ""]);
                Line::new(format!("resize {} {archive} {how} {rows}", layout.file))
            }
            3 => Line::new("resize resize.rrd 0 GROW 2"),
            _ => {
                let xml = format!("{round}.xml");
                let header = random.one(&["", "-h none", "-h xsd", "--no-header"]);
                steps.push(Line::new(format!("dump {header} {} {xml}", layout.file)).into());
                let options = random.one(&[
                    "",
                    "-f",
                    "-r",
                    "-r -f",
                    "--force-overwrite",
                    "--range-check",
                ]);
                Line::new(format!(
                    "restore {options} {xml} {}",
                    random.one(&["r.rrd", "c.rrd", "s.rrd"])
                ))
                .by(By::Process)
            }
        };
        steps.push(line.into());
        steps.push(layout.update(random).into());
    }
    steps.push(queries::look(random, &layout).into());
    scenario(random, steps)
}

/// `create` from other databases.
pub(super) fn prefilled(random: &mut Random) -> Scenario {
    let mut steps = Vec::new();
    let mut start = 0;
    for file in ["a.rrd", "b.rrd"] {
        let mut layout = Layout::make(random, file, false);
        layout.definitions.retain(|one| !one.contains("COMPUTE"));
        // From a template, rrdtool makes these without the version that they need.
        for definition in &mut layout.definitions {
            *definition = definition
                .replace(":DCOUNTER:", ":COUNTER:")
                .replace(":DDERIVE:", ":GAUGE:");
        }
        if start > 0 {
            (layout.start, layout.now) = (start, start * 1000);
        }
        start = layout.start;
        steps.push(layout.create(random).into());
        steps.extend(fill(random, &mut layout));
    }
    for round in 0..6 {
        let file = format!("n{round}.rrd");
        let mut words = format!("create {file}");
        let template = random.chance(40);
        if template {
            words += random.one(&[" -t a.rrd", " --template b.rrd", " -t nope.rrd"]);
        }
        let sources = random.below(4);
        for _ in 0..sources {
            words += random.one(&[" -r a.rrd", " -r b.rrd", " -r a.rrd", " -r nope.rrd"]);
        }
        if random.chance(50) {
            words += &format!(" --start {}", start + random.below(5000));
        } else if sources == 0 {
            words += &format!(" --start {start}");
        }
        if random.chance(50) {
            words += &format!(" --step {}", random.one(&[1, 10, 60, 300]));
        }
        if !template || random.chance(30) {
            let mapped = random.one(&[
                "", "", "=x1", "=x0[1]", "=x0[2]", "=x1[2]", "=nope", "=x0[3]", "=x0[0]", "=x0[",
            ]);
            words += &format!(" DS:x0{mapped}:GAUGE:600:U:U DS:y:GAUGE:600:U:U");
            for _ in 0..1 + random.below(3) {
                let (function, points) =
                    (random.one(&super::FUNCTIONS), random.one(&[1, 1, 2, 3, 10]));
                words += &format!(" RRA:{function}:0.5:{points}:{}", 1 + random.below(30));
            }
        }
        steps.push(Line::new(words).into());
        steps.push(Line::new(format!("info {file}")).into());
    }
    scenario(random, steps)
}
