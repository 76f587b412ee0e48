//! Databases and what they are updated with.

use std::fmt::Write as _;

use super::{Layout, Line, Random, Scenario, Step, queries, scenario};

/// A database with updates of all sorts, and looks at it between them.
pub(super) fn many(random: &mut Random) -> Scenario {
    let mut layout = Layout::make(random, "a.rrd", false);
    let mut steps = vec![layout.create(random).into()];
    for _ in 0..25 {
        steps.push(match random.below(100) {
            0..75 => layout.update(random).into(),
            _ => queries::look(random, &layout).into(),
        });
    }
    scenario(random, steps)
}

/// A database that predicts.
pub(super) fn seasons(random: &mut Random) -> Scenario {
    let mut layout = Layout::make(random, "hw.rrd", true);
    let mut steps = vec![layout.create(random).into()];
    for _ in 0..60 {
        steps.push(match random.below(100) {
            0..90 => layout.update(random).into(),
            _ => queries::look(random, &layout).into(),
        });
    }
    scenario(random, steps)
}

/// Updates that fill a database.
pub(super) fn fill(random: &mut Random, layout: &mut Layout) -> Vec<Step> {
    let updates = 3 + random.below(10);
    (0..updates).map(|_| layout.update(random).into()).collect()
}

impl Layout {
    /// An update of one time or several, good or not.
    pub(super) fn update(&mut self, random: &mut Random) -> Line {
        let verb = random.one(&["update", "update", "update", "updatev"]);
        let mut words = format!("{verb} {}", self.file);
        if random.chance(5) {
            let option = random.one(&["-s", "--skip-past-updates"]);
            let _ = write!(words, " {option}");
        }
        let count = self.kinds.len() as u64;
        let mut chosen: Vec<usize> = (0..self.kinds.len()).collect();
        if random.chance(20) {
            let first = random.below(count) as usize;
            chosen.rotate_left(first);
            chosen.truncate(1 + random.below(count) as usize);
            let mut names: Vec<String> = chosen.iter().map(|one| format!("x{one}")).collect();
            match random.below(20) {
                0 => names.push("nope".to_owned()),
                1 => names.push("c".to_owned()),
                2 => names.push("x0".to_owned()),
                _ => {}
            }
            let option = random.one(&["-t ", "--template ", "--template=", "-t"]);
            let _ = write!(words, " {option}{}", names.join(":"));
        }
        let times = match random.chance(75) {
            true => 1,
            false => 1 + random.below(if self.season { 25 } else { 5 }),
        };
        for _ in 0..times {
            self.go_on(random);
            let _ = write!(words, " {}", self.time(random));
            for &source in &chosen {
                let _ = write!(words, ":{}", self.reading(random, source));
            }
            match random.below(150) {
                0 => words.push_str(":1"),
                1 => words.truncate(words.rfind(':').unwrap_or(words.len())),
                _ => {}
            }
        }
        Line::new(words)
    }

    /// Lets time pass, or go back.
    fn go_on(&mut self, random: &mut Random) {
        let step = self.step * 1000;
        let now = self.now;
        self.now = match random.below(40) {
            0 => now + step * random.below(100),
            1 => now
                .saturating_sub(random.below(5000))
                .max(self.start * 1000),
            2..8 => now + random.below(3 * step),
            8..14 => (now + step / 4 * random.below(7)) / 1000 * 1000,
            14..18 => now + random.below(2000),
            _ => now + step,
        };
    }

    /// The time of the update, in one of many spellings.
    fn time(&self, random: &mut Random) -> String {
        let (seconds, thousandths) = (self.now / 1000, self.now % 1000);
        match random.below(40) {
            0 => format!("{seconds}.{thousandths:03}{:03}", random.below(1000)),
            1..10 => format!("{seconds}.{thousandths:03}"),
            10 => format!("{seconds}."),
            11 => format!("0{seconds}"),
            12 => format!("{}.{:03}e3", seconds / 1000, seconds % 1000),
            _ => seconds.to_string(),
        }
    }

    fn reading(&mut self, random: &mut Random, source: usize) -> String {
        let kind = self.kinds[source];
        match random.below(60) {
            0..2 => return "U".to_owned(),
            2 => return random.one(&["-3", "12.5", "0", "-0", "007"]).to_owned(),
            3 if !self.season && !kind.starts_with('D') => {
                return random.one(&ODD_READINGS).to_owned();
            }
            _ => {}
        }
        let counter = &mut self.counters[source];
        *counter = match random.below(30) {
            0 => random.next() >> random.below(64),
            _ => counter.wrapping_add(random.below(5000)),
        };
        match kind {
            "COUNTER" if random.chance(50) => counter.to_string(),
            "COUNTER" => (*counter as u32).to_string(),
            "DERIVE" => (*counter as i64 % 100_000).to_string(),
            _ => {
                let whole = (*counter % 1000) as i64 - 100;
                match random.below(10) {
                    0 => format!("{whole}e{}", random.below(5)),
                    1 => format!("{whole}.{}E-3", random.next() >> 20),
                    2 => format!("{whole}"),
                    _ => format!("{whole}.{:03}", random.below(1000)),
                }
            }
        }
    }
}

/// Readings that are something else than usual.
const ODD_READINGS: [&str; 18] = [
    "inf",
    "1e300",
    "nan",
    "x",
    "1e5x",
    "-inf",
    "UU",
    "Unknown",
    "u",
    "1,5",
    "1e",
    "+5",
    "--5",
    "0x10",
    ".5",
    "5.",
    "1e2000",
    "123456789012345678901234567890123",
];
