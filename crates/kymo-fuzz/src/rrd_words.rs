//! The words that command lines of round-robin databases are made of.

use kymo_machine::Machine;
use kymo_rrd::engine::{self, Definition, Measurement, Rrd, Sample, Smoothing};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::rpn::{Numbers, Program, Series, Stack, Surroundings, Variable};
use kymo_rrd::{Database, Source, Time, file::portable};
use kymo_rrdtool::LocalZone;
use kymo_rrdtool::times::{Clock, TimeSpec, duration, scaled};

const NOW: i64 = 1_600_000_000;
/// Larger databases take long and show nothing that smaller ones do not.
const MOST_VALUES: u64 = 20_000;

/// A word in each line: definitions, expressions, times, lengths of time, and updates
/// (`TIME:VALUE:...`), each parsed as every one of these. What the definitions create is updated.
pub(crate) fn words(data: &[u8]) {
    let zone = LocalZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
    let clock = Clock {
        now: NOW,
        zone: &zone,
        is_first: false,
    };
    let words = || data.split(|&byte| byte == b'\n');
    let mut before = TimeSpec::parse(b"now").expect("a time");
    let mut stack = Stack::default();
    let mut definition = Definition::new(Time::from_seconds(NOW), 60);
    for word in words() {
        match TimeSpec::parse(word) {
            Ok(time) => {
                let _ = time.resolve(&clock);
                let _ = TimeSpec::span(&before, &time, &clock);
                before = time;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let _ = duration(word);
        let _ = scaled(word, 300);
        let Ok(word) = std::str::from_utf8(word) else {
            continue;
        };
        expression(word, &zone, &mut stack);
        if let Err(error) = definition.add(word, &Smoothing::default()) {
            assert!(!error.to_string().is_empty());
        }
    }
    let values: u64 = definition
        .archives
        .iter()
        .fold(0, |sum: u64, archive| sum.saturating_add(archive.rows))
        .saturating_mul(definition.sources.len() as u64);
    if values > MOST_VALUES {
        return;
    }
    match engine::create(&definition, |_, rows| rows.saturating_sub(1)) {
        Ok(database) => updated(&database, words()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// An expression of the variables `a` and `b`, for one time and for all times of two series.
fn expression(text: &str, zone: &LocalZone, stack: &mut Stack) {
    let variable = |name: &str| ["a", "b"].iter().position(|known| *known == name);
    let variable = |name: &str| variable(name).map(|place| place as u32);
    let program = match Program::parse_with(text, Numbers::Exact, variable) {
        Ok(program) => program,
        Err(error) => return assert!(error.offset <= text.len()),
    };
    let _ = program.check_compute(2);
    let _ = program.evaluate(&[1.5, f64::NAN], NOW as f64, stack);
    let values = |step: i64| (0..20).map(move |row| (row % 7 * step) as f64).collect();
    let a = Series::new(NOW, 60, values(60)).expect("a series");
    let b = Series::new(NOW - 300, 300, values(300)).expect("a series");
    let variables = [Variable::Series(&a), Variable::Series(&b)];
    let surroundings = Surroundings { now: NOW, zone };
    if let Ok(series) = program.evaluate_series(&variables, &surroundings, stack) {
        assert!(series.step() > 0 && series.start() <= series.end());
    }
}

/// Updates a database in two forms: both take the same, and both stay whole.
fn updated<'a>(database: &Database, words: impl Iterator<Item = &'a [u8]> + Clone) {
    let options = portable::Options::default();
    let Ok(file) = portable::create(database, None, &options, Vec::new()) else {
        return;
    };
    let portable = file.into_storage();
    let source = Source::open(&portable, None).expect("what was made is whole");
    let machine = Machine::find("amd64").expect("a machine");
    let native = convert(&source, Target::Native(machine)).map(|converted| converted.bytes);
    let native = native.ok().map(|native| update(native, words.clone()));
    let portable = update(portable, words);
    if let Some((native, taken)) = native {
        assert_eq!(taken, portable.1, "both forms take the same");
        Source::open(&native, None).expect("updates leave a whole file");
    }
    Source::open(&portable.0, None).expect("updates leave a whole file");
}

/// The file after the updates that it took, and how many it took.
fn update<'a>(file: Vec<u8>, words: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, usize) {
    let mut rrd = Rrd::open(file).expect("a whole file");
    let mut taken = 0;
    for word in words {
        let mut parts = word.split(|&byte| byte == b':');
        let Some(Ok(time)) = parts.next().map(engine::time) else {
            continue;
        };
        // A leap over much time is taken in a time that grows with the points in it.
        if !(NOW..NOW + 100_000).contains(&time.seconds()) {
            continue;
        }
        let values: Vec<Measurement<'_>> = parts.map(Measurement::Text).collect();
        match rrd.update(&Sample {
            time,
            values: &values,
        }) {
            Ok(()) => taken += 1,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    (rrd.into_storage(), taken)
}
