//! The engine of round-robin databases beside the installed rrdtool, on databases and updates that
//! are made up: whether the same updates are refused, and whether the files are the same.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use kymo_machine::Machine;
use kymo_rrd::engine::{
    Definition, Measurement, Rrd, Sample, Smoothing, UpdateOptions, Wanted, create, fetch, time,
};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Database, Source, Time, file::native, file::portable};

use super::Counts;
use crate::Outcome;
use crate::process::{command, require};

/// Compares `rounds` databases; the seed varies them.
pub(super) fn run(rounds: u64, seed: u64) -> Outcome<Counts> {
    require("rrdtool", "rrdtool")?;
    let folder = tempfile::tempdir()?;
    let mut rrdtool = Rrdtool::start(folder.path())?;
    let mut counts = Counts::default();
    let mut updates = 0;
    for round in 0..rounds {
        let case = Case::make(&mut Random(seed.wrapping_mul(1 << 32) + round));
        updates += case.updates.len();
        if let Err(why) = case.compare(&mut rrdtool, folder.path(), round) {
            counts.failed += 1;
            println!(
                "FAILED  round {round} of seed {seed}: {why}\n{}",
                case.reported()
            );
        } else {
            counts.passed += 1;
        }
    }
    println!("{rounds} made-up databases had {updates} updates");
    Ok(counts)
}

/// rrdtool, which takes commands from a pipe.
struct Rrdtool {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Rrdtool {
    fn start(folder: &Path) -> Outcome<Self> {
        let mut process = command("rrdtool")
            .arg("-")
            .current_dir(folder)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("no pipe")?;
        let output = BufReader::new(process.stdout.take().ok_or("no pipe")?);
        Ok(Self {
            process,
            input,
            output,
        })
    }

    /// What a command prints; or its error.
    fn run(&mut self, line: &str) -> Outcome<Result<String, String>> {
        writeln!(self.input, "{line}")?;
        self.input.flush()?;
        let mut text = String::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("rrdtool has ended".into());
            }
            if let Some(error) = line.strip_prefix("ERROR: ") {
                return Ok(Err(error.trim_end().to_owned()));
            }
            if line.starts_with("OK ") {
                return Ok(Ok(text));
            }
            text.push_str(&line);
        }
    }
}

impl Drop for Rrdtool {
    fn drop(&mut self) {
        let _ = self.input.write_all(b"quit\n");
        let _ = self.process.wait();
    }
}

/// Numbers that look random (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A database and what is done with it.
struct Case {
    start: i64,
    step: u64,
    definitions: Vec<String>,
    /// Lines of updates: times and readings.
    updates: Vec<Vec<String>>,
    /// Functions, starts, ends and steps.
    fetches: Vec<(&'static str, i64, i64, u64)>,
}

const KINDS: [&str; 6] = [
    "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE",
];
const FUNCTIONS: [&str; 4] = ["AVERAGE", "MIN", "MAX", "LAST"];
const EXPRESSIONS: [&str; 8] = [
    "x0,2,*",
    "x0,x0,+,3,/",
    "x0,UN,0,x0,IF",
    "x0,0,100,LIMIT",
    "x0,1,2,3,AVG",
    "x0,5,1,3,SORT,POP,POP",
    "x0,SQRT,FLOOR",
    "x0,DUP,DUP,3,MEDIAN",
];

impl Case {
    fn make(random: &mut Random) -> Self {
        let step = random.one(&[1, 5, 10, 60, 300]);
        let start = 1_000_000_000 + random.below(100_000) as i64;
        let sources = 1 + random.below(3);
        let mut kinds = Vec::new();
        let mut definitions = Vec::new();
        for index in 0..sources {
            let kind = random.one(&KINDS);
            let heartbeat = step * random.one(&[1, 2, 2, 10, 1000]);
            let (min, max) = random.one(&[("U", "U"), ("U", "U"), ("0", "U"), ("-10.5", "100")]);
            definitions.push(format!("DS:x{index}:{kind}:{heartbeat}:{min}:{max}"));
            kinds.push(kind);
        }
        if random.chance(30) {
            definitions.push(format!("DS:c:COMPUTE:{}", random.one(&EXPRESSIONS)));
        }
        let season = random.chance(30);
        if season {
            Self::seasons(random, &mut definitions);
        }
        for _ in 0..1 + random.below(4) {
            let function = random.one(&FUNCTIONS);
            let xff = random.one(&["0", "0.3", "0.5", "0.99"]);
            let points = random.one(&[1, 1, 2, 3, 7, 12]);
            let rows = 1 + random.below(40);
            definitions.push(format!("RRA:{function}:{xff}:{points}:{rows}"));
        }
        let mut now = start as f64;
        let mut counters = vec![random.next() >> random.below(64); kinds.len()];
        let mut updates = Vec::new();
        for _ in 0..if season { 150 } else { 40 } {
            let mut line = Vec::new();
            for _ in 0..if random.chance(80) {
                1
            } else {
                1 + random.below(4)
            } {
                let part = step as f64 / 4.0;
                now += match random.below(20) {
                    0 => step as f64 * random.below(100) as f64,
                    1 => -(random.below(5) as f64),
                    2..6 => (random.below(3 * step) as f64) + random.below(1000) as f64 / 1000.0,
                    6..10 => (part * random.below(7) as f64).floor(),
                    _ => step as f64,
                };
                let mut argument = match random.chance(30) {
                    true => format!("{now:.3}"),
                    false => format!("{}", now.floor()),
                };
                for (kind, counter) in kinds.iter().zip(&mut counters) {
                    let _ = write!(argument, ":{}", reading(random, kind, counter, season));
                }
                line.push(argument);
            }
            updates.push(line);
        }
        let mut fetches = Vec::new();
        for _ in 0..5 {
            let begin = start + random.below(50 * step) as i64 - 10;
            let end = begin + random.below(100 * step) as i64;
            let wanted = random.one(&[1, step, 3 * step, 100 * step]);
            fetches.push((random.one(&FUNCTIONS), begin, end, wanted));
        }
        Self {
            start,
            step,
            definitions,
            updates,
            fetches,
        }
    }

    /// Archives of Holt and Winters, which make each other or are defined one by one.
    fn seasons(random: &mut Random, definitions: &mut Vec<String>) {
        let kind = random.one(&["HWPREDICT", "MHWPREDICT"]);
        let period = random.one(&[8, 20, 40, 60]);
        let rows = period + random.below(50);
        let adaption = random.one(&["0.1", "0.5", "0.9"]);
        if random.chance(50) {
            definitions.push(format!("RRA:{kind}:{rows}:{adaption}:0.0035:{period}"));
            return;
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
        let mut archives = vec![
            format!("RRA:{kind}:{rows}:{adaption}:0.01:{period}:{seasonal}"),
            format!("RRA:SEASONAL:{period}:{adaption}:{predict}{window}"),
            format!("RRA:DEVSEASONAL:{period}:0.2:{predict}{window}"),
            format!("RRA:DEVPREDICT:{rows}:{deviation}"),
            format!("RRA:FAILURES:{period}:3:5:{deviation}"),
        ];
        let mut placed: Vec<_> = order.into_iter().zip(archives.drain(..)).collect();
        placed.sort();
        definitions.extend(placed.into_iter().map(|(_, archive)| archive));
    }

    fn reported(&self) -> String {
        let mut text = format!(
            "    create --start {} --step {} {}\n",
            self.start,
            self.step,
            self.definitions.join(" ")
        );
        for line in &self.updates {
            let _ = writeln!(text, "    update {}", line.join(" "));
        }
        text
    }

    fn compare(&self, rrdtool: &mut Rrdtool, folder: &Path, round: u64) -> Result<(), String> {
        let name = format!("{round}.rrd");
        let path = folder.join(&name);
        let outcome = self.compare_at(rrdtool, &name, &path);
        let _ = std::fs::remove_file(path);
        outcome.map_err(|error| error.to_string())?
    }

    fn compare_at(
        &self,
        rrdtool: &mut Rrdtool,
        name: &str,
        path: &Path,
    ) -> Outcome<Result<(), String>> {
        let (start, step) = (self.start, self.step);
        let texts = self.definitions.join(" ");
        if let Err(error) = rrdtool.run(&format!(
            "create {name} --start {start} --step {step} {texts}"
        ))? {
            return Ok(Err(format!("rrdtool makes no such file: {error}")));
        }
        let created = std::fs::read(path)?;
        let mut native = match self.created(&created, name) {
            Ok(file) => Rrd::open(file)?,
            Err(why) => return Ok(Err(why)),
        };
        let portable = convert(&Source::open(&created, None)?, Target::Portable)?;
        let mut portable = Rrd::open(portable.bytes)?;

        for line in &self.updates {
            let theirs = rrdtool.run(&format!("update {name} {}", line.join(" ")))?;
            let own = update(&mut native, line);
            if theirs.is_ok() != own.is_ok() {
                return Ok(Err(format!("{line:?}: {theirs:?} and {own:?}")));
            }
            if update(&mut portable, line).is_ok() != own.is_ok() {
                return Ok(Err(format!("{line:?}: other in a portable file")));
            }
        }
        let theirs = std::fs::read(path)?;
        let own = native.into_storage();
        if let Err(why) = same(&theirs, &own) {
            return Ok(Err(why));
        }
        // Readings that were kept of refused updates differ, and change what follows.
        let _ = portable.into_storage();
        for wanted in &self.fetches {
            if let Err(why) = self.fetched(rrdtool, name, &own, wanted)? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// The file that the engine makes, which must be the one that rrdtool has made but for where
    /// archives begin.
    fn created(&self, theirs: &[u8], name: &str) -> Result<Vec<u8>, String> {
        let source = Source::open(theirs, None).map_err(|error| error.to_string())?;
        let smoothing = Smoothing {
            file_name: name.as_bytes(),
            ..Smoothing::default()
        };
        let texts: Vec<&str> = self.definitions.iter().map(String::as_str).collect();
        let start = Time::from_seconds(self.start);
        let definition = Definition::parse(start, self.step, &texts, &smoothing)
            .map_err(|error| error.to_string())?;
        let rows = |archive: usize, _| source.database.state.archives[archive].current_row;
        let database = create(&definition, rows).map_err(|error| error.to_string())?;
        if database != source.database {
            return Err(format!("made {database:?}\nand not {:?}", source.database));
        }
        let options = portable::Options::default();
        let file = portable::create(&database, None, &options, Vec::new());
        let file = file.map_err(|error| error.to_string())?.into_storage();
        let view = portable::read(&file).map_err(|error| error.to_string())?;
        let rows = view.rows().map_err(|error| error.to_string())?;
        let own = native::write(&database, &rows, amd64()).map_err(|error| error.to_string())?;
        same(theirs, &own)?;
        Ok(own)
    }

    fn fetched(
        &self,
        rrdtool: &mut Rrdtool,
        name: &str,
        file: &[u8],
        &(function, start, end, step): &(&'static str, i64, i64, u64),
    ) -> Outcome<Result<(), String>> {
        let line = format!("fetch {name} {function} -s {start} -e {end} -r {step}");
        let theirs = rrdtool.run(&line)?;
        let source = Source::open(file, None)?;
        let wanted = Wanted {
            function,
            start,
            end,
            step,
        };
        let own = fetch(&source.database, &source.rows, &wanted);
        let (theirs, own) = match (theirs, own) {
            (Ok(theirs), Some(own)) => (theirs, own),
            (Err(_), None) => return Ok(Ok(())),
            (theirs, own) => {
                return Ok(Err(format!("{line}: {theirs:?} and {}", own.is_some())));
            }
        };
        let mut lines = theirs.lines().skip(2);
        for (time, row) in own.iter() {
            let expected = lines.next().unwrap_or_default();
            let mut fields = expected.split_whitespace();
            let same_time = fields.next() == Some(&format!("{time}:"));
            let values: Vec<f64> = match row {
                Some(row) => row.values().map(|value| value.to_f64()).collect(),
                None => vec![f64::NAN; source.database.sources.len()],
            };
            let same_values = values.iter().all(|own| {
                let theirs: f64 = fields.next().and_then(|f| f.parse().ok()).unwrap_or(-7.77);
                own.is_nan() && theirs.is_nan() || *own == theirs || {
                    (own - theirs).abs() <= own.abs() * 1e-10
                }
            });
            if !same_time || !same_values {
                let found = format!("{time}: {values:?}");
                return Ok(Err(format!("{line}: found {found}, expected {expected}")));
            }
        }
        match lines.next() {
            None => Ok(Ok(())),
            Some(line) => Ok(Err(format!("a row is missing: {line}"))),
        }
    }
}

/// A reading of a data source, now and then none.
fn reading(random: &mut Random, kind: &str, counter: &mut u64, season: bool) -> String {
    match random.below(40) {
        0 => return "U".to_owned(),
        1 => return "-3".to_owned(),
        2 => return "12.5".to_owned(),
        3 if !season && !kind.starts_with('D') => {
            return random
                .one(&["inf", "1e300", "nan", "x", "1e5x", "-inf"])
                .to_owned();
        }
        _ => {}
    }
    *counter = match random.below(30) {
        0 => random.next() >> random.below(64),
        _ => counter.wrapping_add(random.below(5000)),
    };
    match kind {
        "COUNTER" => match random.chance(50) {
            true => counter.to_string(),
            false => (*counter as u32).to_string(),
        },
        "DERIVE" => ((*counter as i64) % 100_000).to_string(),
        _ => format!(
            "{}.{:03}",
            (*counter % 1000) as i64 - 100,
            random.below(1000)
        ),
    }
}

/// Carries out the arguments of an update, such as `TIME:VALUE:VALUE`.
pub(crate) fn update(rrd: &mut Rrd<Vec<u8>>, line: &[impl AsRef<str>]) -> Result<(), String> {
    let fields: Vec<Vec<&[u8]>> = line
        .iter()
        .map(|argument| argument.as_ref().split(':').map(str::as_bytes).collect())
        .collect();
    let values: Vec<Vec<Measurement<'_>>> = fields
        .iter()
        .map(|fields| fields[1..].iter().copied().map(Measurement::Text).collect())
        .collect();
    let samples: Result<Vec<Sample<'_>>, _> = fields
        .iter()
        .zip(&values)
        .map(|(fields, values)| {
            Ok(Sample {
                time: time(fields[0])?,
                values,
            })
        })
        .collect();
    let samples =
        samples.map_err(|error: kymo_rrd::text::numbers::NumberError| error.to_string())?;
    match rrd.update_all(&samples, &UpdateOptions::default()) {
        Ok(_) => Ok(()),
        Err((_, error)) => Err(error.to_string()),
    }
}

fn amd64() -> &'static Machine {
    Machine::find("amd64").expect("it is known")
}

/// The first lines in which two databases differ when they are shown at length.
fn difference(own: &Database, theirs: &Database) -> String {
    let (own, theirs) = (format!("{own:#?}"), format!("{theirs:#?}"));
    let place = own
        .lines()
        .zip(theirs.lines())
        .position(|(own, theirs)| own != theirs);
    let line = |text: &str| {
        text.lines()
            .nth(place.unwrap_or(0))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let place = place.unwrap_or(0);
    format!(
        "line {place}: found {} and not {}",
        line(&own),
        line(&theirs)
    )
}

/// Whether two files are the same but for which NaNs they hold.
pub(crate) fn same(theirs: &[u8], own: &[u8]) -> Result<(), String> {
    let open = |bytes| Source::open(bytes, None).map_err(|error| error.to_string());
    let (their_source, own_source) = (open(theirs)?, open(own)?);
    let (their_state, own_state) = (&their_source.database, &own_source.database);
    if their_state != own_state {
        return Err(difference(own_state, their_state));
    }
    for archive in 0..own_source.rows.archives() {
        let rows = own_source.rows.iter(archive);
        for (row, (own, theirs)) in rows.zip(their_source.rows.iter(archive)).enumerate() {
            let (own, theirs): (Vec<_>, Vec<_>) =
                (own.values().collect(), theirs.values().collect());
            if own != theirs {
                let time = own_state.row_time(archive, row as u64).unwrap_or_default();
                return Err(format!(
                    "archive {archive}, row {row} at {time}: found {own:?} and not {theirs:?}"
                ));
            }
        }
    }
    let canonical = |source: &Source<'_>| {
        let converted = convert(source, Target::Native(amd64()));
        converted
            .map(|file| file.bytes)
            .map_err(|error| error.to_string())
    };
    let (theirs, own) = (canonical(&their_source)?, canonical(&own_source)?);
    match theirs
        .iter()
        .zip(&own)
        .position(|(theirs, own)| theirs != own)
    {
        Some(at) => Err(format!("byte {at} differs")),
        None if theirs.len() == own.len() => Ok(()),
        None => Err(format!("{} bytes and not {}", own.len(), theirs.len())),
    }
}
