//! Databases that rrdtool has made and updated: the same updates give the same files.

use kymo_machine::Machine;
use kymo_rrd::engine::{Measurement, Rrd, Sample, UpdateOptions, time};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Source, Value};

/// A database before and after updates.
struct Replay {
    name: &'static str,
    created: &'static [u8],
    updates: &'static str,
    last: &'static [u8],
}

macro_rules! replays {
    ($($name:literal),*) => {
        [$(Replay {
            name: $name,
            created: include_bytes!(concat!("data/replay/", $name, ".created.rrd")),
            updates: include_str!(concat!("data/replay/", $name, ".updates.txt")),
            last: include_bytes!(concat!("data/replay/", $name, ".final.rrd")),
        }),*]
    };
}

const REPLAYS: [Replay; 6] = replays!["bulk", "compute", "dcount", "hw", "subsec", "tiny"];

/// The arguments of a line such as `update NAME TIME:VALUE:VALUE TIME:VALUE:VALUE`.
fn arguments(line: &str) -> Vec<Vec<&[u8]>> {
    let arguments = line.split_whitespace().skip(2);
    arguments
        .map(|argument| argument.split(':').map(str::as_bytes).collect())
        .collect()
}

/// Carries out the updates of some lines.
fn update(file: Vec<u8>, lines: &[&str]) -> Vec<u8> {
    let mut rrd = Rrd::open(file).unwrap();
    for line in lines {
        let arguments = arguments(line);
        let values: Vec<Vec<Measurement<'_>>> = arguments
            .iter()
            .map(|fields| fields[1..].iter().copied().map(Measurement::Text).collect())
            .collect();
        let samples: Vec<Sample<'_>> = arguments
            .iter()
            .zip(&values)
            .map(|(fields, values)| Sample {
                time: time(fields[0]).unwrap(),
                values,
            })
            .collect();
        rrd.update_all(&samples, &UpdateOptions::default()).unwrap();
    }
    rrd.into_storage()
}

/// A file with one NaN for all.
fn canonical(bytes: &[u8], target: Target) -> Vec<u8> {
    let source = Source::open(bytes, None).unwrap();
    convert(&source, target).unwrap().bytes
}

fn values(source: &Source<'_>) -> Vec<Value> {
    (0..source.rows.archives())
        .flat_map(|archive| source.rows.iter(archive))
        .flat_map(|row| row.values().collect::<Vec<_>>())
        .collect()
}

fn lines(replay: &Replay) -> Vec<&'static str> {
    replay.updates.lines().collect()
}

#[test]
fn files_are_as_rrdtool_leaves_them() {
    let amd64 = Target::Native(Machine::find("amd64").unwrap());
    for replay in &REPLAYS {
        let found = update(replay.created.to_vec(), &lines(replay));
        assert_eq!(found.len(), replay.last.len());
        let found = Source::open(&found, None).unwrap().database;
        let expected = Source::open(replay.last, None).unwrap().database;
        assert_eq!(
            found.state.sources, expected.state.sources,
            "{}",
            replay.name
        );
        assert_eq!(found.state, expected.state, "{}", replay.name);
        let found = update(replay.created.to_vec(), &lines(replay));
        let same = canonical(&found, amd64) == canonical(replay.last, amd64);
        assert!(same, "{}", replay.name);
    }
}

#[test]
fn files_of_all_machines_and_portable_ones_hold_the_same() {
    let machines = Machine::all().iter().map(Target::Native);
    for target in machines.chain([Target::Portable]) {
        for replay in &REPLAYS {
            let created = canonical(replay.created, target);
            let found = update(created, &lines(replay));
            let found = Source::open(&found, None).unwrap();
            let expected = Source::open(replay.last, None).unwrap();
            assert_eq!(
                found.database, expected.database,
                "{} {target:?}",
                replay.name
            );
            assert!(
                values(&found) == values(&expected),
                "{} {target:?}",
                replay.name
            );
        }
    }
}

#[test]
fn it_does_not_matter_how_long_a_file_stays_open() {
    for replay in &REPLAYS {
        let lines = lines(replay);
        let whole = update(replay.created.to_vec(), &lines);
        for size in [1, 7, 50] {
            let mut file = replay.created.to_vec();
            for lines in lines.chunks(size) {
                file = update(file, lines);
            }
            assert!(file == whole, "{} {size}", replay.name);
        }
    }
}
