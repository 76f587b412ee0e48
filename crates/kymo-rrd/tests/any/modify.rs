//! Changes of databases that are made up: they are the same whatever machine's file is changed.

use kymo_machine::{Machine, Width};
use kymo_rrd::engine::modify::{
    Changed, Length, ModifyError, Parameter, Reshaping, Resize, Setting, resize,
};
use kymo_rrd::engine::{Measurement, Rrd, Sample, Smoothing};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::file::native::{Patch, write};
use kymo_rrd::model::Reading;
use kymo_rrd::{Source, Time, Value};
use proptest::prelude::*;

use super::database::{self, Made};
use super::{machines, values};

#[derive(Clone, Debug)]
enum Change {
    Resize(usize, Resize),
    Settings(Vec<Setting>),
    Reshape(Reshaping),
}

fn setting() -> impl Strategy<Value = Setting> {
    // Data sources that are made up are named so.
    let name = || "[a-zA-Z0-9_-]{1,19}";
    let rate = || prop_oneof![Just(Value::UNKNOWN), (-1e9..1e9).prop_map(Value::from)];
    prop_oneof![
        (name(), 0..100_000u64).prop_map(|(name, seconds)| Setting::Heartbeat { name, seconds }),
        (name(), rate()).prop_map(|(name, rate)| Setting::Minimum { name, rate }),
        (name(), rate()).prop_map(|(name, rate)| Setting::Maximum { name, rate }),
        (name(), prop::sample::select(&Reading::ALL[..]))
            .prop_map(|(name, reading)| Setting::Kind { name, reading }),
        (name(), name()).prop_map(|(name, to)| Setting::Rename { name, to }),
        rate().prop_map(|rate| Setting::Archive(Parameter::Alpha, rate)),
        rate().prop_map(|rate| Setting::Archive(Parameter::DeltaPositive, rate)),
        rate().prop_map(|rate| Setting::Archive(Parameter::SmoothingWindow, rate)),
        (1..29u64).prop_map(Setting::WindowLength),
        (1..29u64).prop_map(Setting::FailureThreshold),
        name().prop_map(|name| Setting::Reset { name }),
    ]
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        (0..9u64).prop_map(Length::More),
        (0..9u64).prop_map(Length::Less),
        (0..9u64).prop_map(Length::Exactly),
    ]
}

fn reshaping() -> impl Strategy<Value = Reshaping> {
    let added = prop::sample::select(vec![
        "DS:new:GAUGE:600:0:U",
        "DS:new2:COMPUTE:1,2,+",
        "RRA:AVERAGE:0.5:3:9",
        "RRA:MAX:0.5:1:5",
        "RRA:HWPREDICT:20:0.1:0.2:7",
    ]);
    (
        prop::option::weighted(0.2, 1..1000u64),
        prop::collection::vec(0..4usize, 0..2),
        prop::collection::vec((0..4usize, length()), 0..3),
        prop::collection::hash_set(added, 0..3),
    )
        .prop_map(|(step, remove_archives, lengths, add)| Reshaping {
            step,
            remove_sources: Vec::new(),
            remove_archives,
            lengths,
            add: add.into_iter().map(str::to_owned).collect(),
        })
}

fn change() -> impl Strategy<Value = Change> {
    let how = prop_oneof![
        (0..9u64).prop_map(Resize::Grow),
        (0..9u64).prop_map(Resize::Shrink),
    ];
    prop_oneof![
        (0..4usize, how).prop_map(|(archive, how)| Change::Resize(archive, how)),
        prop::collection::vec(setting(), 1..4).prop_map(Change::Settings),
        reshaping().prop_map(Change::Reshape),
    ]
}

/// A database of which the data sources have the names of settings, now and then.
fn named(mut made: Made, change: &Change) -> Made {
    if let Change::Settings(settings) = change {
        let names = settings.iter().filter_map(|setting| match setting {
            Setting::Heartbeat { name, .. }
            | Setting::Minimum { name, .. }
            | Setting::Maximum { name, .. }
            | Setting::Kind { name, .. }
            | Setting::Rename { name, .. }
            | Setting::Reset { name } => Some(name),
            _ => None,
        });
        for (source, name) in made.database.sources.iter_mut().zip(names) {
            source.name = name.as_str().into();
        }
    }
    made
}

fn changed(source: &Source<'_>, change: &Change) -> Result<Changed, ModifyError> {
    match change {
        Change::Resize(archive, how) => resize(&source.database, &source.rows, *archive, *how),
        Change::Settings(settings) => {
            let mut database = source.database.clone();
            let mut forgotten = Vec::new();
            for setting in settings {
                forgotten.extend(setting.apply(&mut database)?);
            }
            let mut changed = Changed::of(database, &source.rows)?;
            forgotten
                .into_iter()
                .for_each(|source| changed.forget_seasons(source));
            Ok(changed)
        }
        Change::Reshape(reshaping) => {
            reshaping.apply(&source.database, &source.rows, &Smoothing::default())
        }
    }
}

fn amd64() -> &'static Machine {
    Machine::find("x86_64").unwrap()
}

proptest! {
    #[test]
    fn every_form_changes_in_the_same_way(
        made in database::made(),
        machine in machines(),
        change in change(),
    ) {
        let made = named(made, &change);
        let native = write(&made.database, &made.rows(), amd64()).unwrap();
        let source = Source::open(&native, Some(amd64())).unwrap();
        let expected = changed(&source, &change);
        let to_amd64 = |changed: &Changed| {
            let source = changed.source(kymo_rrd::Form::Xml, Vec::new());
            convert(&source, Target::Native(amd64())).map(|converted| converted.bytes)
        };
        for target in [Target::Native(machine), Target::Portable] {
            let bytes = convert(&source, target).unwrap().bytes;
            let machine = match target {
                Target::Native(machine) => Some(machine),
                Target::Portable => None,
            };
            let other = changed(&Source::open(&bytes, machine).unwrap(), &change);
            match (&expected, &other) {
                (Ok(expected), Ok(other)) => {
                    prop_assert_eq!(&expected.database, &other.database);
                    prop_assert!(to_amd64(expected) == to_amd64(other));
                }
                (Err(expected), Err(other)) => prop_assert_eq!(expected, other),
                (one, other) => prop_assert!(false, "{one:?}, {other:?}"),
            }
        }
    }

    #[test]
    fn a_patch_makes_the_file_that_would_be_written(
        made in database::made(),
        machine in machines(),
        settings in prop::collection::vec(setting(), 1..4),
        trailing in 0..9usize,
    ) {
        let change = Change::Settings(settings.clone());
        let made = named(made, &change);
        let mut bytes = write(&made.database, &made.rows(), machine).unwrap();
        let end = bytes.len();
        bytes.resize(end + trailing, 7);
        let source = Source::open(&bytes, Some(machine)).unwrap();
        let Ok(changed) = changed(&source, &change) else {
            return Ok(());
        };
        let mut database = source.database.clone();
        let forgotten = settings.iter().filter_map(|setting| setting.apply(&mut database).unwrap());
        let forgotten: Vec<_> = forgotten.collect();
        let Some(patch) = Patch::new(&source, &database, &forgotten).unwrap() else {
            // Where times get microseconds, nothing stays where it is.
            prop_assert!(made.database.version < 3 && database.version >= 3);
            return Ok(());
        };
        let mut patched = bytes.clone();
        for (offset, part) in patch.parts() {
            patched[*offset as usize..][..part.len()].copy_from_slice(part);
        }
        let written = write(&changed.database, &changed.rows(), machine).unwrap();
        prop_assert!(patched[..end] == written);
        prop_assert!(patched[end..].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn the_newest_rows_stay(made in database::made(), archive in 0..4usize, count in 1..9u64) {
        let bytes = write(&made.database, &made.rows(), amd64()).unwrap();
        let source = Source::open(&bytes, Some(amd64())).unwrap();
        let Ok(grown) = resize(&source.database, &source.rows, archive, Resize::Grow(count)) else {
            prop_assert!(archive >= made.database.archives.len());
            return Ok(());
        };
        let sources = made.database.sources.len();
        let (before, after) = (values(&source.rows), values(&grown.rows()));
        for (index, (before, after)) in before.iter().zip(&after).enumerate() {
            let more = if index == archive { count as usize * sources } else { 0 };
            prop_assert!(after[..more].iter().all(|value| value.is_unknown()));
            prop_assert_eq!(&after[more..], &before[..]);
        }
        let back = resize(&grown.database, &grown.rows(), archive, Resize::Shrink(count)).unwrap();
        prop_assert_eq!(values(&back.rows()), values(&source.rows));
    }
}

/// A rate that never changes is the same in all rows, also over a change of the step.
#[test]
fn a_shorter_step_goes_on_with_the_same_rates() {
    let texts = [
        "DS:a:GAUGE:10000:U:U",
        "RRA:AVERAGE:0.5:1:30",
        "RRA:AVERAGE:0.5:4:10",
        "RRA:MAX:0.5:3:10",
    ];
    let start = Time::from_seconds(1_600_000_000);
    let smoothing = Smoothing {
        file_name: b"",
        long: Width::W64,
    };
    let definition = kymo_rrd::engine::Definition::parse(start, 300, &texts, &smoothing).unwrap();
    let database = kymo_rrd::engine::create(&definition, |_, _| 0).unwrap();
    let empty = Changed::new(database).unwrap();
    let bytes = write(&empty.database, &empty.rows(), amd64()).unwrap();
    let update = |bytes: Vec<u8>, times: std::ops::Range<i64>| {
        let mut rrd = Rrd::open_as(bytes, Some(amd64())).unwrap();
        for time in times.step_by(170) {
            let time = Time::from_seconds(time);
            let values = &[Measurement::Text(b"5")];
            rrd.update(&Sample { time, values }).unwrap();
        }
        rrd.into_storage()
    };
    let bytes = update(bytes, 1_600_000_010..1_600_012_000);
    let source = Source::open(&bytes, None).unwrap();
    let reshaping = Reshaping {
        step: Some(100),
        ..Reshaping::default()
    };
    let shorter = reshaping
        .apply(&source.database, &source.rows, &smoothing)
        .unwrap();
    let points = shorter
        .database
        .archives
        .iter()
        .map(|archive| archive.points_per_row);
    assert_eq!(points.collect::<Vec<_>>(), [3, 12, 9]);
    let bytes = write(&shorter.database, &shorter.rows(), amd64()).unwrap();
    let bytes = update(bytes, 1_600_012_100..1_600_020_000);
    let source = Source::open(&bytes, None).unwrap();
    for archive in values(&source.rows) {
        let known: Vec<_> = archive.into_iter().filter_map(Value::get).collect();
        assert!(known.len() >= 9, "{known:?}");
        assert!(
            known.iter().all(|value| (value - 5.0).abs() < 1e-12),
            "{known:?}"
        );
    }
}

#[test]
fn what_is_needed_is_not_removed() {
    let texts = [
        "DS:a:GAUGE:600:U:U",
        "DS:b:GAUGE:600:U:U",
        "DS:c:COMPUTE:b,2,*",
        "RRA:AVERAGE:0.5:1:5",
        "RRA:HWPREDICT:20:0.1:0.2:5",
    ];
    let start = Time::from_seconds(1_600_000_000);
    let smoothing = Smoothing::default();
    let definition = kymo_rrd::engine::Definition::parse(start, 300, &texts, &smoothing).unwrap();
    let database = kymo_rrd::engine::create(&definition, |_, _| 0).unwrap();
    let empty = Changed::new(database).unwrap();
    let reshape = |reshaping: Reshaping| {
        reshaping
            .apply(&empty.database, &empty.rows(), &smoothing)
            .map(|changed| changed.database)
    };
    let without = |names: &[&str]| Reshaping {
        remove_sources: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Reshaping::default()
    };
    let error = reshape(without(&["b"])).unwrap_err().to_string();
    assert_eq!(error, "data source 'b' is needed to compute 'c'");
    let left = reshape(without(&["a"])).unwrap();
    assert_eq!(left.sources[1].kind, {
        let program = kymo_rrd::rpn::Program::parse("b,2,*", |_| Some(0)).unwrap();
        kymo_rrd::model::SourceKind::Compute(program)
    });
    let error = reshape(without(&["a", "b", "c"])).unwrap_err().to_string();
    assert_eq!(error, "you must define at least one Data Source");
    let without_archives = |places: &[usize]| Reshaping {
        remove_archives: places.to_vec(),
        ..Reshaping::default()
    };
    // Archives that refer to others do so wherever these come to be.
    let left = reshape(without_archives(&[0])).unwrap();
    let expected =
        kymo_rrd::engine::Definition::parse(start, 300, &texts[4..], &smoothing).unwrap();
    assert_eq!(left.archives, expected.archives);
    assert!(reshape(without_archives(&[2])).is_err());
    let error = reshape(without_archives(&[0, 1, 2, 3, 4, 5]))
        .unwrap_err()
        .to_string();
    assert_eq!(error, "you must define at least one Round Robin Archive");
}
