//! Times as `at` takes them, and durations.

use super::{By, Line, Random, Scenario, Step, scenario};

/// Times that are read: a database of one row each second shows what they come to.
pub(super) fn at_style(random: &mut Random) -> Scenario {
    let mut steps: Vec<Step> = vec![
        Line::new("create t.rrd --start 1000000000 --step 1 DS:x:GAUGE:5:U:U RRA:AVERAGE:0.5:1:1")
            .into(),
    ];
    for round in 0..25 {
        let (time, clock) = time(random);
        let line = match random.below(12) {
            0 => Line::new(format!("create n{round}.rrd --start"))
                .with(&time)
                .with("DS:x:GAUGE:5:U:U")
                .with("RRA:AVERAGE:0.5:1:1"),
            // Later than all times before it, if it is right.
            1 => Line::new("update t.rrd").with(format!("{time}@{round}")),
            2 => Line::new("fetch t.rrd AVERAGE -e")
                .with(&time)
                .with("-s")
                .with(offset(random, "end")),
            _ => Line::new("fetch t.rrd AVERAGE -s")
                .with(&time)
                .with("-e")
                .with(offset(random, "start")),
        };
        steps.push(if clock { line.by_clock() } else { line }.into());
    }
    scenario(random, steps)
}

fn offset(random: &mut Random, reference: &str) -> String {
    let sign = match reference {
        "end" => '-',
        _ => '+',
    };
    let length = random.one(&["1s", "2", "3sec", "1min", "2 seconds", "1 min 3 sec"]);
    match random.below(30) {
        0 => format!("{reference}{sign}1min{sign}2s"),
        1 => format!("{}{sign}{length}", &reference[..1]),
        2 => reference.to_owned(),
        3 => format!("{reference} {length}"),
        _ => format!("{reference}{sign}{length}"),
    }
}

/// A time, and whether it depends on the current time. Dates that begin with a number and have no year
/// are left out: rrdtool puts them into the year 30000.
fn time(random: &mut Random) -> (String, bool) {
    let year = random.one(&[
        "2020", "1999", "20", "99", "2037", "104", "138", "1971", "2004",
    ]);
    let month = 1 + random.below(12);
    let day = 1 + random.below(31);
    let name = random.one(&[
        "jan", "February", "MAR", "apr", "may", "June", "jul", "aug", "Sept", "sep", "october",
        "nov", "Dec",
    ]);
    let hour = random.below(26);
    let minute = random.below(62);
    let date = match random.below(7) {
        0 => format!("{month}/{day}/{year}"),
        1 => format!("{day}.{month}.{year}"),
        2 => format!("{:04}{month:02}{day:02}", 1971 + random.below(150)),
        3 => format!("{name} {day} {year}"),
        4 => format!("{name} {day}, {year}"),
        5 => format!("{month:02}/{day:02}/{year}"),
        _ => (1_000_000_000 + random.below(1_000_000_000)).to_string(),
    };
    // Without a time of day, that of now counts.
    let named = date.starts_with(|c: char| c.is_ascii_alphabetic());
    let of_day = match random.below(10) {
        0 => random
            .one(&["midnight", "noon", "teatime", "NOON"])
            .to_owned(),
        1 => format!("{hour}am"),
        2 => format!("{hour}:{minute:02} pm"),
        3 => format!("{hour}"),
        4 => format!("{hour}:{minute}"),
        5 => format!("{hour}pm"),
        _ => format!("{hour:02}:{minute:02}"),
    };
    let moment = match random.below(6) {
        0 => of_day.clone() + " " + &date,
        1 if !named => date.clone(),
        2 => format!("{date} {of_day}"),
        3 => return (relative(random), true),
        4 => random.one(&ODD_TIMES).to_owned(),
        _ => (1_000_000_000 + random.below(1_000_000_000)).to_string(),
    };
    let text = match random.below(5) {
        0..2 => moment,
        _ => {
            let mut text = moment;
            for _ in 0..1 + random.below(3) {
                let sign = random.one(&["+", "-", "-", " + ", " "]);
                let unit = random.one(&[
                    "s", "sec", "seconds", "min", "minutes", "h", "hr", "hours", "d", "day",
                    "days", "w", "wk", "weeks", "mon", "months", "y", "yr", "year", "m", "M", "",
                    "foo", " ",
                ]);
                let number = random.one(&[1, 2, 5, 6, 7, 12, 30, 100]);
                text.push_str(&format!("{sign}{number}{unit}"));
            }
            text
        }
    };
    // Most failures are examined closely if the current time matters.
    let clock = named
        || ["now", "day", "noon", "tea", "mid", ":", "am", "pm"]
            .iter()
            .any(|part| text.contains(part));
    (text, clock)
}

/// A time that depends on the current time.
fn relative(random: &mut Random) -> String {
    let reference = random.one(&[
        "now",
        "n",
        "",
        "noon",
        "midnight",
        "teatime",
        "noon yesterday",
        "10:30 today",
        "12:30am tomorrow",
        "noon mon",
        "10:00 friday",
        "9:5 Sunday",
        "9",
        "12 pm",
        "noon tue",
        "jan 5",
        "nov 20",
    ]);
    let offset = random.one(&[
        "",
        "-1h",
        "-5m",
        "-6m",
        "-1d5m",
        "-1d-7m",
        "-1h5m",
        "-1s2m",
        "-3 months 20 m",
        "-1w 20m",
        "-1yr3mon",
        "-3hr 20",
        "-1foo",
        "-2.5h",
        "+1d",
        "-1month",
        "-366d",
        "-1 year",
    ]);
    match reference.is_empty() && offset.is_empty() {
        true => "now".to_owned(),
        false => format!("{reference}{offset}"),
    }
}

/// Times that are none, or nearly.
const ODD_TIMES: [&str; 40] = [
    "yesterday",
    "monday",
    "today",
    "24:00",
    "24",
    "31",
    "10:60",
    "13pm",
    "jan 5 10:30",
    "5 jan",
    "1/5/38",
    "1/5/69",
    "1/5/139",
    "1/5/1960",
    "1/5/1970",
    "2020-01-05",
    "10:30:15",
    "now 5m",
    "foo",
    "end",
    "start",
    "epoch",
    "epoch+5",
    "end-",
    "now-",
    "1/32/2020",
    "13/1/2020",
    "29.2.2021",
    "0.1.2020",
    "now+x",
    ".",
    ":",
    "-",
    "+",
    "1e9",
    "315359999",
    "315360000",
    "99999999999",
    "10.30",
    "12.12.12.12",
];

/// Databases with durations for steps, heartbeats and rows, many of them wrong.
pub(super) fn durations(random: &mut Random) -> Scenario {
    let mut steps: Vec<Step> = Vec::new();
    for round in 0..20 {
        let file = format!("d{round}.rrd");
        let duration = |random: &mut Random| {
            let number = random.one(&[
                "1", "2", "5", "10", "60", "300", "0", "07", "31", "301", "3600",
            ]);
            let unit = random.one(&[
                "", "", "", "s", "m", "h", "d", "w", "M", "y", "min", "x", "mo",
            ]);
            format!("{number}{unit}")
        };
        let usual = |random: &mut Random, usual: &str, other: String| match random.chance(70) {
            true => usual.to_owned(),
            false => other,
        };
        let step = duration(random);
        let step = usual(random, "5m", step);
        let heartbeat = duration(random);
        let points = duration(random);
        let points = usual(random, "1", points);
        let rows = random.one(&["10", "1h", "7m", "3h", "0", "-1", "2h", "x", "15m"]);
        let xff = random.one(&["0.5", "0.5", "0", "0.999", "1", "-0.1", "x", "1e-3", ""]);
        let bounds = random.one(&[":", "U:U:U", "U", "0x1:5", "-5:-4"]);
        let kind = random.one(&[
            "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE", "gauge", "GAUG",
            "COMPUTE", "",
        ]);
        let name = random.one(&[
            "x",
            "a_b-c",
            "1234567890123456789",
            "12345678901234567890",
            "ä",
            "x y",
            "",
            "x.y",
            "X",
        ]);
        let archive = match random.below(10) {
            0 => format!(
                "RRA:{}:{rows}:0.1:0.2:5",
                random.one(&["HWPREDICT", "MHWPREDICT"])
            ),
            1 => format!(
                "RRA:HWPREDICT:50:{}:{}:{}",
                random.one(&["0.1", "1.5", "x", "-1"]),
                random.one(&["0.2", "2"]),
                random.one(&["5", "0", "60", "x", "1d"])
            ),
            2 => random
                .one(&[
                    "RRA",
                    "RRA:",
                    "RRA:AVERAGE",
                    "RRA:AVERAGE:0.5",
                    "RRA:AVERAGE:0.5:1",
                    "RRA:AVERAGE:0.5:1:5:6",
                    "RRA:SUM:0.5:1:5",
                    "RRA:SEASONAL:10:0.1:1",
                    "RRA:FAILURES:10:7:9:1",
                    "RRA:FAILURES:10:9:7:1",
                    "RRA:DEVPREDICT:10:9",
                    "RRA:average:0.5:1:5",
                    "RRA:FAILURES:10:7:29:1",
                    "RRA:SEASONAL:10:0.1:9",
                    "RRA:AVERAGE:0.5:1:5x",
                    "FOO:x",
                    "x",
                    ":",
                ])
                .to_owned(),
            _ => format!(
                "RRA:{}:{xff}:{points}:{rows}",
                random.one(&["AVERAGE", "MIN", "MAX", "LAST"])
            ),
        };
        let mut line = Line::new(format!("create {file} --start 1500000000 --step {step}"))
            .with(format!("DS:{name}:{kind}:{heartbeat}:{bounds}"))
            .with(archive);
        match random.below(8) {
            0 => line = line.with("DS:y:GAUGE:600:U:U"),
            1 => line = line.with(format!("DS:{name}:GAUGE:600:U:U")),
            2 => line = line.with(format!("DS:c:COMPUTE:{}", random.one(&WRONG_COMPUTED))),
            3 => line = line.with("RRA:LAST:0.5:3:5"),
            4 => line = line.with("--no-overwrite"),
            _ => {}
        }
        if random.chance(10) {
            line = line.by(By::Process);
        }
        steps.push(line.into());
        steps.push(Line::new(format!("info {file}")).into());
    }
    scenario(random, steps)
}

/// Expressions of computed data sources, many of them wrong.
const WRONG_COMPUTED: [&str; 18] = [
    "x,2,*",
    "x,1.5,*",
    "x,40000,*",
    "nope,2,*",
    "x,TIME,+",
    "x,PREV,+",
    "x,COUNT,+",
    "x,2",
    "",
    ",",
    "x,,x",
    "x,y,+",
    "x,1e3,*",
    "x,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,+",
    "x,LTIME,+",
    "c,1,+",
    "x,600,TREND",
    "x,NOW,+",
];
