//! The direct way does what the general one does.

use kymo_machine::Machine;
use proptest::prelude::*;
use proptest::{collection, option, sample};

use super::*;
use crate::engine::{Definition, Measurement, Smoothing, create};
use crate::file::convert::{Target, convert};
use crate::{Source, Time};

const START: i64 = 1_000_000_007;

/// A database of version 1, which has whole seconds, or of the one that it needs.
fn database(start: i64, step: u64, version_1: bool, texts: &[String]) -> Database {
    let mut definition = Definition::new(Time::from_seconds(start), step);
    for text in texts {
        definition.add(text, &Smoothing::default()).unwrap();
    }
    let mut database = create(&definition, |_, rows| rows / 2).unwrap();
    if version_1 {
        database.version = 1;
    }
    database
}

fn file(database: &Database, machine: &'static Machine) -> Vec<u8> {
    let options = portable::Options::default();
    let file = portable::create(database, None, &options, Vec::new()).unwrap();
    let file = file.into_storage();
    let source = Source::open(&file, None).unwrap();
    convert(&source, Target::Native(machine)).unwrap().bytes
}

fn open(file: &[u8], machine: &'static Machine) -> Rrd<Vec<u8>> {
    Rrd::open_as(file.to_vec(), Some(machine)).unwrap()
}

fn source() -> impl Strategy<Value = String> {
    let kind = sample::select(vec![
        "GAUGE", "GAUGE", "ABSOLUTE", "COUNTER", "DERIVE", "DCOUNTER", "DDERIVE",
    ]);
    let limit = || sample::select(vec!["U", "U", "-3", "0", "7", "100"]);
    (kind, 5..60u32, limit(), limit()).prop_map(|(kind, heartbeat, min, max)| {
        match (min.parse::<i32>(), max.parse::<i32>()) {
            (Ok(low), Ok(high)) if low >= high => format!("{kind}:{heartbeat}:{max}:U"),
            _ => format!("{kind}:{heartbeat}:{min}:{max}"),
        }
    })
}

fn archive() -> impl Strategy<Value = String> {
    let function = sample::select(vec!["AVERAGE", "MIN", "MAX", "LAST"]);
    let xff = sample::select(vec!["0", "0.3", "0.5", "0.9"]);
    (function, xff, 1..8u32, 1..6u32).prop_map(|(function, xff, points, rows)| {
        let points = points.saturating_sub(2).max(1);
        format!("RRA:{function}:{xff}:{points}:{rows}")
    })
}

/// A reading, as it may be kept while samples are made of it.
#[derive(Clone, Debug)]
enum Reading {
    Number(Measurement<'static>),
    Text(String),
}

fn reading() -> impl Strategy<Value = Reading> {
    let number = |number| Reading::Number(number);
    prop_oneof![
        1 => Just(number(Measurement::Unknown)),
        4 => (-9.0..9.0).prop_map(move |float| number(Measurement::Float(float))),
        4 => (-2..200i32).prop_map(move |whole| number(Measurement::Float(whole.into()))),
        4 => (0..300u64).prop_map(move |count| number(Measurement::Unsigned(count))),
        1 => any::<u64>().prop_map(move |count| number(Measurement::Unsigned(count))),
        2 => (-100..100i64).prop_map(move |count| number(Measurement::Signed(count))),
        1 => any::<f64>().prop_map(move |float| number(Measurement::Float(float))),
        2 => (0..5000u32).prop_map(|count| Reading::Text(count.to_string())),
        1 => "(U|x|-0|1e9|007|-12|[0-9]{28,33}|\\x00|1\\x002|1.5 )".prop_map(Reading::Text),
    ]
}

impl Reading {
    fn given(&self) -> Measurement<'_> {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => Measurement::Text(text.as_bytes()),
        }
    }
}

/// Microseconds until the next sample.
fn pause() -> impl Strategy<Value = i64> {
    let second = 1_000_000;
    prop_oneof![
        8 => (1..25i64).prop_map(move |seconds| seconds * second),
        4 => 1..25_000_000i64,
        1 => (25..300i64).prop_map(move |seconds| seconds * second),
        1 => -2_000_000..=0i64,
    ]
}

proptest! {
    // Machines of the other byte order are emulated, and slow.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(target_endian = "big") { 40 } else { 400 }))]

    #[test]
    fn both_ways_do_the_same(
        machine in sample::select(Machine::all().iter().collect::<Vec<_>>()),
        sources in collection::vec(source(), 1..4),
        archives in collection::vec(archive(), 1..6),
        step in 1..25u64,
        version_1 in prop::bool::weighted(0.1),
        late in prop::bool::weighted(0.1),
        template in option::weighted(0.2, 0..3usize),
        samples in collection::vec(
            (pause(), collection::vec(reading(), 4), 0..40u32),
            1..60,
        ),
    ) {
        let names = ["a", "b", "c"];
        let sources_count = sources.len();
        let sources = sources.iter().zip(names).map(|(source, name)| {
            format!("DS:{name}:{source}")
        });
        let texts: Vec<String> = sources.chain(archives).collect();
        // Times of 32 bits end a little later.
        let start = if late { i64::from(i32::MAX) - 200 } else { START };
        let version_1 = version_1 && !texts.iter().any(|text| text.contains(":D"));
        let created = file(&database(start, step, version_1, &texts), machine);
        let mut direct = open(&created, machine);
        let mut general = open(&created, machine);
        prop_assert_eq!(direct.direct.is_some(), !version_1);
        general.direct = None;
        let template = template.map(|first| {
            let names = &names[first.min(sources_count - 1)..sources_count];
            direct.template(names).unwrap()
        });
        let options = UpdateOptions {
            template: template.as_ref(),
            ..UpdateOptions::default()
        };
        let count = template.as_ref().map_or(sources_count, Template::readings);
        let mut now = start * 1_000_000;
        for (pause, readings, chance) in samples {
            now += pause;
            let values: Vec<_> = readings.iter().map(Reading::given).collect();
            // Now and then there is a reading too many.
            let given = if chance == 0 { count + 1 } else { count };
            let sample = Sample {
                time: Time::from_micros(now.div_euclid(1_000_000), now.rem_euclid(1_000_000) as u32)
                    .unwrap(),
                values: &values[..given],
            };
            if chance == 1 && !version_1 {
                // What is remembered of steps and rows may be of another time.
                direct.direct = Direct::new(&direct.engine.plan, native(&direct).definitions());
            }
            let [one, other] = [&mut direct, &mut general]
                .map(|rrd| format!("{:?}", rrd.update_all(&[sample], &options)));
            prop_assert_eq!(one, other);
            prop_assert_eq!(direct.last_update(), general.last_update());
            // The state is read from the file's bytes when it is asked for, and not before.
            if chance % 3 == 0 {
                prop_assert_eq!(direct.database(), general.database());
            }
            prop_assert!(direct.storage_mut() == general.storage_mut());
            now = now.max(start * 1_000_000);
        }
    }
}

fn native(rrd: &Rrd<Vec<u8>>) -> &InPlace<Vec<u8>> {
    match &rrd.file {
        File::Native(file) => file,
        File::Portable(_) => panic!("a native file"),
    }
}

/// What is usual takes the direct way, since otherwise nothing of this is tested.
#[test]
fn usual_updates_are_direct() {
    let texts = [
        "DS:a:GAUGE:20:0:U",
        "RRA:AVERAGE:0.5:1:6",
        "RRA:MAX:0.5:3:4",
    ];
    let texts = texts.map(str::to_owned);
    for machine in Machine::all() {
        let mut rrd = open(&file(&database(START, 10, false, &texts), machine), machine);
        let template = rrd.engine.plan.everything.clone();
        let mut update = |micros: i64, readings: &[Measurement<'_>]| {
            let sample = Sample {
                time: Time::from_micros(START + micros / 1_000_000, (micros % 1_000_000) as u32)
                    .unwrap(),
                values: readings,
            };
            let File::Native(file) = &mut rrd.file else {
                return false;
            };
            let direct = rrd.direct.as_mut().unwrap();
            direct.update(file, &sample, &template).is_some()
        };
        let float = [Measurement::Float(1.5)];
        assert!(update(1_000_000, &float), "within a step");
        assert!(update(5_500_000, &[Measurement::Text(b"7")]), "ends one");
        assert!(update(15_000_000, &[Measurement::Unknown]), "ends another");
        assert!(!update(45_000_000, &float), "ends several");
        assert!(!update(15_000_000, &float), "is in the past");
        assert!(!update(16_000_000, &[Measurement::Text(b"x")]), "is none");
        assert!(!update(16_000_000, &[]), "is missing");
    }
}
