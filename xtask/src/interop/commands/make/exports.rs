//! `xport`, and expressions over series.

use std::fmt::Write as _;

use super::updates::fill;
use super::{FUNCTIONS, Layout, Line, Random, Scenario, scenario};

/// Series of two databases, put together.
pub(super) fn series(random: &mut Random) -> Scenario {
    let mut layouts = [
        Layout::make(random, "a.rrd", false),
        Layout::make(random, "b.rrd", false),
    ];
    // So that something is there at the same times.
    let start = layouts[0].start;
    (layouts[1].start, layouts[1].now) = (start, start * 1000);
    let mut steps = Vec::new();
    for layout in &mut layouts {
        steps.push(layout.create(random).into());
        steps.extend(fill(random, layout));
    }
    for _ in 0..15 {
        steps.push(export(random, &layouts).into());
    }
    scenario(random, steps)
}

/// One database of many rows, and expressions of all operators.
pub(super) fn operators(random: &mut Random) -> Scenario {
    let start = 1_600_000_000 + random.below(10_000_000);
    let mut steps = vec![
        Line::new(format!(
            "create o.rrd --start {start} --step 300 DS:x0:GAUGE:900:U:U DS:x1:GAUGE:900:U:U RRA:AVERAGE:0.5:1:40"
        ))
        .into(),
    ];
    for row in 1..20 {
        let value = |random: &mut Random| match random.below(8) {
            0 => "U".to_owned(),
            1 => "0".to_owned(),
            _ => format!("{}.{}", random.below(200) as i64 - 100, random.below(100)),
        };
        let (one, other) = (value(random), value(random));
        steps.push(Line::new(format!("update o.rrd {}:{one}:{other}", start + row * 300)).into());
    }
    for _ in 0..25 {
        let from = start - start % 300 + 300 * random.below(5);
        let end = from + 300 * (1 + random.below(12));
        let mut words =
            format!("xport -s {from} -e {end} DEF:a=o.rrd:x0:AVERAGE DEF:b=o.rrd:x1:AVERAGE");
        let mut clock = false;
        for index in 0..1 + random.below(3) {
            let expression = expression(random, &["a", "b"]);
            clock |= expression.contains("NOW");
            let _ = write!(words, " CDEF:c{index}={expression} XPORT:c{index}");
        }
        let line = Line::new(words);
        steps.push(if clock { line.by_clock() } else { line }.into());
    }
    scenario(random, steps)
}

fn export(random: &mut Random, layouts: &[Layout; 2]) -> Line {
    let (from, to) = layouts[0].span(random);
    let mut words = format!("xport -s {from} -e {to}");
    let options = ["--json", "-t", "--enumds", "--showtime"];
    for option in options {
        if random.chance(20) {
            let _ = write!(words, " {option}");
        }
    }
    match random.below(8) {
        0 => words.push_str(" -m 10"),
        1 => words.push_str(" --maxrows 15"),
        2 => words.push_str(random.one(&[" -m 5", " -m x", " -m 0"])),
        3 => {
            let _ = write!(
                words,
                " --step {}",
                layouts[0].step * random.one(&[1, 3, 10])
            );
        }
        _ => {}
    }
    let mut names = Vec::new();
    for index in 0..1 + random.below(3) {
        let layout = &layouts[random.below(2) as usize];
        let function = match random.below(20) {
            0 => "SUM",
            _ => random.one(&FUNCTIONS),
        };
        let _ = write!(
            words,
            " DEF:v{index}={}:{}:{function}",
            layout.file,
            layout.source(random)
        );
        match random.below(8) {
            0 => {
                let _ = write!(words, ":step={}", layout.step * random.one(&[1, 2, 5, 12]));
            }
            1 => {
                let _ = write!(words, ":start={from}:end=start+{}s", to - from);
            }
            2 => {
                let _ = write!(words, ":reduce={}", random.one(&FUNCTIONS));
            }
            3 => {
                let _ = write!(
                    words,
                    ":step={}:reduce={}",
                    layout.step * random.one(&[3, 4, 10]),
                    random.one(&FUNCTIONS)
                );
            }
            _ => {}
        }
        names.push(format!("v{index}"));
    }
    for index in 0..random.below(3) {
        let variables: Vec<&str> = names.iter().map(String::as_str).collect();
        let expression = expression(random, &variables);
        // Of the time of day, and of percentiles, the scenario of operators has enough: with
        // values from archives of other steps, rrdtool's percentile is not always that of the two.
        let expression = match expression.contains("PERCENT") {
            true => random.one(&variables).to_owned(),
            false => expression.replace("NOW", "TIME"),
        };
        let _ = write!(words, " CDEF:c{index}={expression}");
        names.push(format!("c{index}"));
    }
    if random.chance(40) {
        let variable = names[random.below(names.len() as u64) as usize].clone();
        let function = random.one(&[
            "AVERAGE",
            "MAXIMUM",
            "MINIMUM",
            "FIRST",
            "LAST",
            "TOTAL",
            "STDEV",
            "95,PERCENT",
            "50,PERCENTNAN",
            "LSLSLOPE",
            "LSLINT",
            "LSLCORREL",
            "MEDIAN",
            "PERCENT",
        ]);
        let _ = write!(words, " VDEF:w={variable},{function} CDEF:d={variable},w,-");
        names.push("d".to_owned());
        if random.chance(20) {
            names.push("w".to_owned());
        }
    }
    if random.chance(5) {
        names.push("nope".to_owned());
    }
    for name in &names {
        if random.chance(80) {
            let legend = random.one(&["", ":one", ":two:three", ":<&>", ":a\\:b", ":%s"]);
            let _ = write!(words, " XPORT:{name}{legend}");
        }
    }
    let line = Line::new(words);
    match random.chance(10) {
        true => line.with(format!("XPORT:{}:with blanks", names[0])),
        false => line,
    }
}

/// What operators take from the stack and leave there.
const PLAIN: [(&str, usize, usize); 48] = [
    ("+", 2, 1),
    ("-", 2, 1),
    ("*", 2, 1),
    ("/", 2, 1),
    ("%", 2, 1),
    ("POW", 2, 1),
    ("ADDNAN", 2, 1),
    ("LT", 2, 1),
    ("LE", 2, 1),
    ("GT", 2, 1),
    ("GE", 2, 1),
    ("EQ", 2, 1),
    ("NE", 2, 1),
    ("IF", 3, 1),
    ("MIN", 2, 1),
    ("MAX", 2, 1),
    ("MINNAN", 2, 1),
    ("MAXNAN", 2, 1),
    ("LIMIT", 3, 1),
    ("UN", 1, 1),
    ("ISINF", 1, 1),
    ("SIN", 1, 1),
    ("COS", 1, 1),
    ("LOG", 1, 1),
    ("EXP", 1, 1),
    ("SQRT", 1, 1),
    ("ATAN", 1, 1),
    ("ATAN2", 2, 1),
    ("FLOOR", 1, 1),
    ("CEIL", 1, 1),
    ("ABS", 1, 1),
    ("RAD2DEG", 1, 1),
    ("DEG2RAD", 1, 1),
    ("DUP", 1, 2),
    ("EXC", 2, 2),
    ("POP", 1, 0),
    ("UNKN", 0, 1),
    ("INF", 0, 1),
    ("NEGINF", 0, 1),
    ("NOW", 0, 1),
    ("TIME", 0, 1),
    ("LTIME", 0, 1),
    ("STEPWIDTH", 0, 1),
    ("COUNT", 0, 1),
    ("NEWDAY", 0, 1),
    ("PREV", 0, 1),
    ("DEPTH", 0, 1),
    ("NEWMONTH", 0, 1),
];

/// Operators for which a number specifies how many values they take: all of them leave one, but for the first two,
/// which leave all.
const COUNTED: [&str; 7] = ["SORT", "REV", "AVG", "MEDIAN", "SMIN", "SMAX", "STDEV"];

/// An expression that leaves one value; now and then something is wrong with it.
pub(super) fn expression(random: &mut Random, variables: &[&str]) -> String {
    let mut items: Vec<String> = vec![random.one(variables).to_owned()];
    let mut depth = 1usize;
    for _ in 0..random.below(9) {
        match random.below(10) {
            0..2 => {
                items.push(random.one(variables).to_owned());
                depth += 1;
            }
            2 => {
                let number =
                    random.one(&["0", "1", "-2", "3.5", "1e3", "300", "-7.25", "0.1", "1e-7"]);
                items.push(number.to_owned());
                depth += 1;
            }
            3 if depth > 1 => {
                let count = 1 + random.below(depth as u64) as usize;
                let operator = random.one(&COUNTED);
                items.push(format!("{count},{operator}"));
                if !["SORT", "REV"].contains(&operator) {
                    depth -= count - 1;
                }
            }
            4 => {
                let count = 1 + random.below(depth as u64) as usize;
                match random.below(3) {
                    0 => {
                        items.push(format!("{count},COPY"));
                        depth += count;
                    }
                    1 => {
                        items.push(format!("{count},INDEX"));
                        depth += 1;
                    }
                    _ => {
                        // At least the first of the sorted values.
                        let percent = random.one(&["50", "75.5", "100", "90"]);
                        items.push(format!("{percent},{count},PERCENT"));
                        depth -= count - 1;
                    }
                }
            }
            5 => {
                let variable = random.one(variables);
                items.push(special(random, variable));
                depth += 1;
            }
            _ => {
                let (operator, takes, leaves) = random.one(&PLAIN);
                if takes <= depth {
                    items.push(operator.to_owned());
                    depth = depth - takes + leaves;
                }
            }
        }
        if depth == 0 {
            items.push(random.one(variables).to_owned());
            depth = 1;
        }
    }
    while depth > 1 {
        items.push(random.one(&["+", "ADDNAN", "MAX", "POP", "-"]).to_owned());
        depth -= 1;
    }
    let mut text = items.join(",");
    // Where infinite values are sorted, rrdtool's order depends on where they were.
    let any = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if any(&["SORT", "PERCENT", "MEDIAN"]) && any(&["INF", "/", "LOG", "EXP", "POW", "%"]) {
        random.one(variables).clone_into(&mut text);
    }
    match random.below(60) {
        0 => text.push_str(",+"),
        1 => text.push_str(",1"),
        2 => text.push(','),
        3 => text.push_str(",nope,+"),
        4 => text.push_str(",7,8,"),
        5 => text.insert_str(0, "1,2,/,"),
        6 => "1,2,+".clone_into(&mut text),
        _ => {}
    }
    text
}

/// Operators that look at more of a series than one value.
fn special(random: &mut Random, variable: &str) -> String {
    let seconds = random.one(&["300", "600", "900", "901", "1", "3000"]);
    match random.below(8) {
        0 => format!("{variable},{seconds},TREND"),
        1 => format!("{variable},{seconds},TRENDNAN"),
        2 => format!("PREV({variable})"),
        3 => format!("600,300,2,{seconds},{variable},PREDICT"),
        4 => format!("300,-3,{seconds},{variable},PREDICT"),
        5 => format!("900,600,300,3,{seconds},{variable},PREDICTSIGMA"),
        6 => format!(
            "600,300,2,{seconds},{},{variable},PREDICTPERC",
            random.one(&["50", "95", "-50", "0"])
        ),
        _ => random
            .one(&["NEWDAY", "NEWWEEK", "NEWMONTH", "NEWYEAR"])
            .to_owned(),
    }
}
