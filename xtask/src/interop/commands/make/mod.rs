//! Scenarios, made up.

mod changes;
mod exports;
mod hostile;
mod queries;
mod times;
mod updates;

use super::scenario::{By, Line, Scenario, Step};
use crate::interop::engine::Random;

/// A kind of scenario: its name, and what makes one up.
type Kind = (&'static str, fn(&mut Random) -> Scenario);

/// The kinds of scenarios: what they are called and what makes them.
pub(super) const KINDS: &[Kind] = &[
    ("updates", updates::many),
    ("seasons", updates::seasons),
    ("queries", queries::fetches),
    ("times", times::at_style),
    ("definitions", times::durations),
    ("exports", exports::series),
    ("operators", exports::operators),
    ("changes", changes::tune),
    ("copies", changes::copies),
    ("prefilled", changes::prefilled),
    ("hostile-lines", hostile::lines),
    ("hostile-files", hostile::broken_files),
    ("permissions", hostile::permissions),
    ("scripts", hostile::scripts),
];

/// Zones with summer time, without it, and with odd offsets.
const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Zurich",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
];

/// Kinds of data sources that take readings.
const KINDS_OF_SOURCES: [&str; 6] = [
    "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE",
];

/// Functions of plain archives.
const FUNCTIONS: [&str; 4] = ["AVERAGE", "MIN", "MAX", "LAST"];

/// A database that is made up.
struct Layout {
    file: &'static str,
    start: u64,
    step: u64,
    /// What its data sources, which are `x0`, `x1`, ..., are.
    kinds: Vec<&'static str>,
    /// Data sources and archives, as `create` takes them.
    definitions: Vec<String>,
    /// The number of archives.
    archives: usize,
    season: bool,
    /// What counters have come to.
    counters: Vec<u64>,
    /// The time of the last update, in milliseconds.
    now: u64,
}

impl Layout {
    fn make(random: &mut Random, file: &'static str, season: bool) -> Self {
        let step = random.one(&[1, 5, 10, 60, 60, 300, 300]);
        let start = match random.below(20) {
            0 => 315_360_000 + random.below(1000),
            1 => 2_200_000_000,
            _ => 1_000_000_000 + random.below(100_000_000),
        };
        let mut kinds = Vec::new();
        let mut definitions = Vec::new();
        for index in 0..1 + random.below(3) {
            let kind = random.one(&KINDS_OF_SOURCES);
            let heartbeat = match random.below(8) {
                0 => random.one(&["1h", "10m", "2d", "1w"]).to_owned(),
                _ => (step * random.one(&[1, 2, 2, 10, 1000])).to_string(),
            };
            let bounds = random.one(&[
                "U:U",
                "U:U",
                "U:U",
                "0:U",
                "-10.5:100",
                "U:1e3",
                "-1e-3:5E5",
            ]);
            definitions.push(format!("DS:x{index}:{kind}:{heartbeat}:{bounds}"));
            kinds.push(kind);
        }
        if random.chance(25) {
            let expression = random.one(&COMPUTED);
            definitions.push(format!("DS:c:COMPUTE:{expression}"));
        }
        let mut archives = 0;
        if season {
            archives += add_seasons(random, &mut definitions);
        }
        for _ in 0..1 + random.below(4) {
            let function = random.one(&FUNCTIONS);
            let xff = random.one(&["0", "0.3", "0.5", "0.99", "0.5", "1e-1"]);
            let points = random.one(&[1, 1, 2, 3, 7, 12]);
            let rows = 1 + random.below(40);
            definitions.push(format!("RRA:{function}:{xff}:{points}:{rows}"));
            archives += 1;
        }
        let counters = kinds.iter().map(|_| random.next() >> random.below(64));
        Self {
            counters: counters.collect(),
            file,
            start,
            step,
            kinds,
            definitions,
            archives,
            season,
            now: start * 1000,
        }
    }

    /// The command line that makes it.
    fn create(&self, random: &mut Random) -> Line {
        let (start, step, file) = (self.start, self.step, self.file);
        let start = match random.below(4) {
            0 => format!("-b {start}"),
            1 => format!("--start={start}"),
            2 => format!("-b{start}"),
            _ => format!("--start {start}"),
        };
        let step = match random.below(3) {
            0 => format!("-s {step}"),
            1 if step.is_multiple_of(60) => format!("--step {}m", step / 60),
            _ => format!("--step {step}"),
        };
        let more = random.one(&["", "", "--no-overwrite", "-O"]);
        let definitions = self.definitions.join(" ");
        Line::new(match random.chance(80) {
            true => format!("create {file} {start} {step} {more} {definitions}"),
            false => format!("create {start} {definitions} {step} {more} {file}"),
        })
    }

    /// The name of a data source, now and then of none.
    fn source(&self, random: &mut Random) -> String {
        match random.below(15) {
            0 => "nope".to_owned(),
            1 => "c".to_owned(),
            _ => format!("x{}", random.below(self.kinds.len() as u64)),
        }
    }

    /// The second of the last update.
    fn seconds(&self) -> u64 {
        self.now / 1000
    }

    /// A stretch of time that has to do with what is in the file.
    fn span(&self, random: &mut Random) -> (u64, u64) {
        let begin = self.start - random.below(20 * self.step);
        let length = self.seconds() - self.start + 20 * self.step;
        let from = begin + random.below(length);
        (from, from + random.below(40 * self.step))
    }
}

/// Expressions of computed data sources, of which none fails when values come.
const COMPUTED: [&str; 14] = [
    "x0,2,*",
    "x0,x0,+,3,/",
    "x0,UN,0,x0,IF",
    "x0,0,100,LIMIT",
    "x0,1,2,3,AVG",
    "x0,5,1,3,SORT,POP,POP",
    "x0,SQRT,FLOOR",
    "x0,DUP,DUP,3,MEDIAN",
    "x0,NEGINF,MAX,INF,MIN",
    "x0,UNKN,ADDNAN,ABS,LOG",
    "x0,-32768,GE,32767,x0,IF",
    "x0,7,%,SIN,COS,ATAN,EXP",
    "x0,3,POW,5,EXC,ATAN2,RAD2DEG",
    "1,x0,2,3,REV,-,+",
];

/// Archives of Holt and Winters, which make each other or are defined one by one; how many.
fn add_seasons(random: &mut Random, definitions: &mut Vec<String>) -> usize {
    let kind = random.one(&["HWPREDICT", "MHWPREDICT"]);
    let period = random.one(&[8, 20, 40, 60]);
    let rows = period + random.below(50);
    let adaption = random.one(&["0.1", "0.5", "0.9"]);
    if random.chance(50) {
        definitions.push(format!("RRA:{kind}:{rows}:{adaption}:0.0035:{period}"));
        return 5;
    }
    let window = random.one(&["", ":smoothing-window=0.1", ":smoothing-window=0.5"]);
    // The place of each archive, counted from 1.
    let mut order: Vec<usize> = (1..=5).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let [predict, seasonal, deviation, _, _] = order[..] else {
        unreachable!("there are five");
    };
    let archives = [
        format!("RRA:{kind}:{rows}:{adaption}:0.01:{period}:{seasonal}"),
        format!("RRA:SEASONAL:{period}:{adaption}:{predict}{window}"),
        format!("RRA:DEVSEASONAL:{period}:0.2:{predict}{window}"),
        format!("RRA:DEVPREDICT:{rows}:{deviation}"),
        format!("RRA:FAILURES:{period}:3:5:{deviation}"),
    ];
    let mut placed: Vec<_> = order.into_iter().zip(archives).collect();
    placed.sort();
    definitions.extend(placed.into_iter().map(|(_, archive)| archive));
    5
}

/// A scenario of these lines, some of which are processes of their own.
fn scenario(random: &mut Random, mut steps: Vec<Step>) -> Scenario {
    for step in &mut steps {
        if let Step::Line(line) = step
            && line.by == By::Pipe
            && random.chance(8)
        {
            line.by = By::Process;
        }
    }
    Scenario {
        zone: random.one(&ZONES),
        steps,
    }
}
