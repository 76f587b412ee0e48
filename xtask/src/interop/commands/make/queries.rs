//! Lines that look at a database and leave it as it is.

use super::updates::fill;
use super::{FUNCTIONS, Layout, Line, Random, Scenario, scenario};

/// A filled database and what can be asked of it.
pub(super) fn fetches(random: &mut Random) -> Scenario {
    let season = random.chance(30);
    let mut layout = Layout::make(random, "q.rrd", season);
    let mut steps = vec![layout.create(random).into()];
    steps.extend(fill(random, &mut layout));
    for _ in 0..25 {
        steps.push(look(random, &layout).into());
    }
    scenario(random, steps)
}

/// One look.
pub(super) fn look(random: &mut Random, layout: &Layout) -> Line {
    let file = layout.file;
    match random.below(20) {
        0 => Line::new(format!("info {file}")),
        1 => Line::new(format!("last {file}")),
        2 => Line::new(format!("lastupdate {file}")),
        3 => Line::new(format!("first {file}")),
        4 => {
            let archive = random.below(layout.archives as u64 + 2) as i64 - 1;
            let option = random.one(&["--rraindex", "--rraindex="]);
            let between = if option.ends_with('=') { "" } else { " " };
            Line::new(format!("first {file} {option}{between}{archive}"))
        }
        5 => {
            let options = random.one(&[
                "",
                "-h none",
                "-h xsd",
                "-h dtd",
                "-n",
                "--no-header",
                "--header=xsd",
            ]);
            Line::new(format!("dump {options} {file}"))
        }
        _ => fetch(random, layout),
    }
}

fn fetch(random: &mut Random, layout: &Layout) -> Line {
    let function = match random.below(20) {
        0 if layout.season => random.one(&[
            "HWPREDICT",
            "SEASONAL",
            "DEVSEASONAL",
            "DEVPREDICT",
            "FAILURES",
            "MHWPREDICT",
        ]),
        1 => random.one(&["average", "SUM", "HWPREDICT", "AVG"]),
        _ => random.one(&FUNCTIONS),
    };
    let (from, to) = layout.span(random);
    let (begin, end) = match random.below(12) {
        0 => (format!("-s end-{}s", to - from), format!("-e {to}")),
        1 => (
            format!("--start {from}"),
            format!("--end start+{}s", to - from),
        ),
        2 => (format!("-s{from}"), format!("--end={from}")),
        3 => (format!("-s {to}"), format!("-e {from}")),
        4 => (String::new(), format!("-e {from}")),
        _ => (format!("-s {from}"), format!("-e {to}")),
    };
    // A day of seconds is long.
    let (begin, end) = match begin.is_empty() && layout.step < 60 {
        true => (format!("-s {from}"), end),
        false => (begin, end),
    };
    let resolution = match random.below(8) {
        0 => format!("-r {}", layout.step * random.one(&[1, 2, 3, 7, 100])),
        1 => format!(
            "--resolution={}",
            random.one(&["1", "5m", "1h", "60", "1d", "300s"])
        ),
        2 => format!(
            "-r {}",
            random.one(&["0", "-1", "x", "1x", "5min", "1.5", "99999999999999999999"])
        ),
        _ => String::new(),
    };
    let align = match random.below(5) {
        0 => "-a",
        1 => "--align-start",
        _ => "",
    };
    let file = layout.file;
    Line::new(format!(
        "fetch {file} {function} {begin} {end} {resolution} {align}"
    ))
}
