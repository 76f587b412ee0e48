//! Random command lines of graphs, and those of a file.

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::Value;

use crate::Outcome;
use crate::interop::engine::Random;

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
    "a,b,LT,a,b,LE,+,a,b,GE,+,a,b,EQ,+,a,b,NE,+",
    "a,b,*,b,/",
    "a,b,MIN,a,b,MAX,+",
    "a,POP,NEWWEEK,1,0,IF,NEWMONTH,2,0,IF,+,NEWYEAR,4,0,IF,+",
    "a,EXP,1000000,%",
    "a,ATAN,DEG2RAD,SIN,COS",
    "a,b,1,INDEX,POP,-",
    "a,b,2,COPY,+,*,+",
    "a,b,3,2,REV,POP,POP",
    "a,b,DEPTH,*,+",
    "a,b,a,b,4,MEDIAN",
    "a,b,2,SMAX,UNKN,ADDNAN",
    "PREV(b),UN,a,PREV(b),IF",
    "a,DUP,UN,EXC,0,EXC,IF",
    "a,-1.5e3,*,1e-3,+",
    "a,STEPWIDTH,*,3600,/",
    "25,50,a,b,2,PERCENT,EXC,POP",
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
    "a\\tb\\tc\\l",
    "a=b, c=d",
    "100%",
    "back\\slash",
    "\\u",
    "\\l",
    "\\r",
    "\\c",
    "\\j",
    "",
];

/// With `--pango-markup`.
const MARKUP: &[&str] = &[
    "<u>underlined</u>",
    "<span foreground=\"red\">red</span> black\\n",
    "a &lt; b &amp; c",
    "<s>struck</s>",
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
    "%5.2lG%s",
    "%12.4Le",
    "%s",
    "%.3lf %S\\g",
    "%lf%%%s\\t",
    "%08.2lf\\u",
];

const TIMES: &[&str] = &[
    "%Y-%m-%d %H\\:%M\\:%S",
    "%d %b\\n",
    "%H\\:%M\\r",
    "%A %j",
    "%c %Z",
    "%D %T %R %F",
    "%G-W%V %U %w %u",
    "%e.%k.%l %p %y",
    "100%% %s",
];

const DURATIONS: &[&str] = &[
    "",
    "%H\\:%02m\\:%02s",
    "%d d %h h\\n",
    "%W w %3D|%.2s",
    "%M m %f",
];

/// Zones with clocks that change, and what is in them at the end of the databases.
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
];

/// A command line, without the file that is written and its format.
#[derive(Clone)]
pub(super) struct Line {
    /// Where it runs, if not where the databases of the corpus are.
    pub(super) folder: Option<PathBuf>,
    pub(super) zone: Cow<'static, str>,
    pub(super) words: Vec<String>,
}

impl Line {
    pub(super) fn new(random: &mut Random) -> Self {
        let zone = match random.chance(30) {
            true => random.one(ZONES),
            false => "UTC",
        };
        let mut words = options(random);
        let series = definitions(random, &mut words);
        let elements = 1 + random.below(9);
        let values: Vec<String> = (0..random.below(4))
            .map(|number| {
                let (shown, summary) = (one(random, &series), random.one(SUMMARIES));
                words.push(format!("VDEF:d{number}={shown},{summary}"));
                format!("d{number}")
            })
            .collect();
        let legends = match random.chance(5) {
            true => {
                words.insert(0, "--pango-markup".to_owned());
                MARKUP
            }
            false => LEGENDS,
        };
        for _ in 0..elements {
            words.push(element(random, &series, &values, legends));
        }
        Self {
            folder: None,
            zone: zone.into(),
            words,
        }
    }

    /// Reads lines of JSON: objects with `words`, and perhaps `zone` and `folder`.
    pub(super) fn read(text: &str) -> Outcome<Vec<Self>> {
        let lines = text.lines().filter(|line| !line.is_empty());
        let lines = lines.map(|line| {
            let line: Value = serde_json::from_str(line)?;
            let words = line["words"].as_array().ok_or("a line without words")?;
            let mut words: Vec<String> = words
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            // All formats are compared.
            words.retain(|word| !word.starts_with("--imgformat="));
            while let Some(at) = words
                .iter()
                .position(|word| word == "--imgformat" || word == "-a")
            {
                words.drain(at..words.len().min(at + 2));
            }
            let zone = line["zone"].as_str().unwrap_or("UTC").to_owned();
            Ok(Self {
                folder: line["folder"].as_str().map(PathBuf::from),
                zone: zone.into(),
                words,
            })
        });
        lines.collect()
    }

    /// How many lines `--y-grid` asks for, by what `graphv` prints of the graph.
    pub(super) fn grid_lines(&self, facts: &str) -> f64 {
        let fact = |name: &str| {
            let text = facts.lines().find_map(|line| line.strip_prefix(name))?;
            text.trim_start_matches(" = ").parse::<f64>().ok()
        };
        let mut steps = self.words.iter().filter_map(|word| {
            let step = word.strip_prefix("--y-grid=")?.split(':').next()?;
            step.parse::<f64>().ok()
        });
        match (steps.next_back(), fact("value_min"), fact("value_max")) {
            (Some(step), Some(min), Some(max)) => (max - min) / step,
            _ => 0.0,
        }
    }

    /// Whether a word begins like this.
    pub(super) fn has(&self, begin: &str) -> bool {
        self.words.iter().any(|word| word.starts_with(begin))
    }
}

/// To be copied into a shell.
impl std::fmt::Display for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TZ={}", self.zone)?;
        for word in &self.words {
            write!(formatter, " '{}'", word.replace('\'', "'\\''"))?;
        }
        Ok(())
    }
}

fn one(random: &mut Random, choices: &[String]) -> String {
    choices[random.below(choices.len() as u64) as usize].clone()
}

fn options(random: &mut Random) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    // Clocks were set two weeks before the end, too.
    let end = END - random.below(4000) as i64 - random.one(&[0, 0, 0, 1_300_000, 1_900_000]);
    let span = random.one(&[
        "10min", "1h", "3h", "6h", "1d", "30h", "3d", "1w", "10d", "31d", "90d", "400d", "1000d",
        "7h", "17h", "4d", "2month", "6month",
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
                "SECOND:600:MINUTE:30:HOUR:2:0:%X",
                "WEEK:1:MONTH:1:MONTH:1:2592000:%b %y",
                "MONTH:1:YEAR:1:MONTH:3:0:%Y-%m-%d",
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
        (4, "left-axis-format", &["%5.1lf", "%.3le", "%3.0lf %s"]),
        (
            2,
            "left-axis-formatter",
            &["numeric", "timestamp", "duration"],
        ),
        (
            2,
            "right-axis-formatter",
            &["numeric", "timestamp", "duration"],
        ),
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
                "SHADEA#fff",
                "SHADEB#00000040",
                "ARROW#0f0",
                "AXIS#00f",
                "FRAME#ff000080",
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
                "UNIT:12:",
                "LEGEND:9.5:DejaVu Sans Mono",
                "DEFAULT:0:DejaVu Sans Mono",
            ],
        ),
        (4, "font-render-mode", &["normal", "light", "mono"]),
        (3, "graph-render-mode", &["normal", "mono"]),
        (20, "slope-mode", flag),
        (4, "tabwidth", &["20", "80"]),
        (8, "base", &["1024"]),
        (8, "zoom", &["0.5", "1.5", "2", "3"]),
        (10, "step", &["60", "300", "3600"]),
        (8, "disable-rrdtool-tag", flag),
        (4, "imginfo", &["<img src=%s w=%lu h=%lu>"]),
        (2, "lazy", flag),
        (2, "interlaced", flag),
        (2, "alt-y-mrtg", flag),
        (2, "use-nan-for-all-missing-data", flag),
        (2, "font-smoothing-threshold", &["3"]),
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
        let more = random.one(&[
            "",
            "",
            "",
            "",
            ":step=1800",
            ":reduce=MAX",
            ":reduce=LAST",
            ":start=end-2d",
            ":end=start+6h",
            ":step=7200:reduce=MIN",
        ]);
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

fn element(random: &mut Random, series: &[String], values: &[String], legends: &[&str]) -> String {
    let shown = one(random, series);
    let value = match values {
        [] => None,
        values => Some(one(random, values)),
    };
    let legend = match random.one(legends) {
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
    match random.below(17) {
        16 => match random.chance(50) {
            true => format!("STACK:{shown}{}{legend}", colour_or(&first)),
            false => {
                let seconds = value.unwrap_or_else(|| "1800".to_owned());
                format!("SHIFT:{shown}:{seconds}")
            }
        },
        0..=3 => {
            let width = random.one(&["", "1", "2", "3", "0.5", "1.5"]);
            format!("LINE{width}:{shown}{first}{legend}{stack}{skip}{dashes}")
        }
        4..=6 => {
            let (second, height) = match !first.is_empty() && random.chance(20) {
                true => (
                    format!("#{:06X}", random.next() & 0xff_ffff),
                    random.one(&["", ":gradheight=0", ":gradheight=20", ":gradheight=-30"]),
                ),
                false => (String::new(), ""),
            };
            format!("AREA:{shown}{first}{second}{legend}{stack}{skip}{height}")
        }
        7 => format!("LINE:{}{first}{legend}", value.as_deref().unwrap_or("12.5")),
        8 => {
            let fraction = random.one(&["0.1", "-0.1", "0.5", "1"]);
            format!("TICK:{shown}{}:{fraction}{legend}", colour_or(&first))
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
                Some(value) if random.chance(8) => {
                    format!("{command}:{value}:{}:valstrftime", random.one(TIMES))
                }
                Some(value) if random.chance(8) => {
                    format!(
                        "{command}:{value}:{}:valstrfduration",
                        random.one(DURATIONS)
                    )
                }
                Some(value) => format!("{command}:{value}:{}", random.one(FORMATS)),
                None => format!(
                    "{command}:{shown}:{}:{}",
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
                format!("SHIFT:{shown}:{seconds}")
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
