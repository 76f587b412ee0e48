//! Databases that are updated in place: what they read, what they see of other writers, what fails.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use kymo_io::faults::Recorder;
use kymo_io::{ReadAt, Storage};
use kymo_machine::Machine;
use kymo_rrd::engine::{
    Definition, Kinds, Measurement, Rrd, Sample, Smoothing, StoreError, UpdateError, UpdateOptions,
    create,
};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Time, file::native, file::portable};
use proptest::prelude::*;
use proptest::{collection, option, sample};

const START: i64 = 1_000_000_000;

/// A file of a machine, or a portable one.
fn file(machine: Option<&str>, rows: u64) -> Vec<u8> {
    let average = format!("RRA:AVERAGE:0.5:1:{rows}");
    let texts = [
        "DS:level:GAUGE:20:0:U",
        "DS:count:COUNTER:20:U:U",
        &average,
        "RRA:MAX:0.5:3:4",
        "RRA:HWPREDICT:12:0.1:0.01:4",
    ];
    let start = Time::from_seconds(START);
    let definition = Definition::parse(start, 10, &texts, &Smoothing::default()).unwrap();
    let database = create(&definition, |_, rows| rows - 1).unwrap();
    let options = portable::Options::default();
    let file = portable::create(&database, None, &options, Vec::new()).unwrap();
    let file = file.into_storage();
    let Some(machine) = machine else {
        return file;
    };
    let source = kymo_rrd::Source::open(&file, None).unwrap();
    let target = Target::Native(Machine::find(machine).unwrap());
    convert(&source, target).unwrap().bytes
}

/// Updates `after` seconds after the start.
fn update<S: Storage>(rrd: &mut Rrd<S>, after: i64) -> Result<(), UpdateError> {
    rrd.update(&Sample {
        time: Time::from_seconds(START + after),
        values: &[
            Measurement::Float(after as f64 / 7.0),
            Measurement::Unsigned(after as u64 * 10),
        ],
    })
}

const FORMS: [Option<&str>; 4] = [Some("x86_64"), Some("s390x"), Some("x86"), None];

/// A file that several have open.
#[derive(Clone)]
struct Common(Rc<RefCell<Vec<u8>>>);

impl ReadAt for Common {
    fn length(&self) -> io::Result<u64> {
        self.0.borrow().length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.borrow().read_at(offset, buffer)
    }
}

impl Storage for Common {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().write_at(offset, bytes)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().set_length(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn writers_see_each_other() {
    for form in FORMS {
        let common = Common(Rc::new(RefCell::new(file(form, 20))));
        let mut alone = Rrd::open(file(form, 20)).unwrap();
        let mut writers = [0; 3].map(|_| Rrd::open(common.clone()).unwrap());
        for number in 1..60_i64 {
            // Sometimes the same writer again, sometimes several points at once.
            let after = number * 7 + number / 20 * 50;
            let writer = &mut writers[(number * number % 7 % 3) as usize];
            writer.refresh().unwrap();
            update(writer, after).unwrap();
            update(&mut alone, after).unwrap();
            assert_eq!(writer.database(), alone.database(), "{form:?} {number}");
        }
        assert_eq!(*common.0.borrow(), alone.into_storage(), "{form:?}");
    }
}

#[test]
fn changed_definitions_are_seen() {
    let bytes = file(Some("x86_64"), 20);
    let heartbeat = native::Header::examine(&bytes, None)
        .unwrap()
        .layout
        .source(0)
        + 40;
    let common = Common(Rc::new(RefCell::new(bytes)));
    let mut rrd = Rrd::open(common.clone()).unwrap();
    update(&mut rrd, 10).unwrap();
    common.0.borrow_mut()[heartbeat..heartbeat + 8].copy_from_slice(&5_u64.to_le_bytes());
    rrd.refresh().unwrap();
    update(&mut rrd, 20).unwrap();
    let readings = &rrd.database().state.sources;
    assert!(readings[0].value.is_unknown(), "after the heartbeat");
    assert!(!readings[1].value.is_unknown());

    // A file that is no longer a database is reported.
    common.0.borrow_mut()[..8].fill(0);
    assert!(rrd.refresh().is_err());
    assert!(update(&mut rrd, 30).is_err());
}

/// Counts what is read.
struct Counted(Vec<u8>, Rc<Cell<usize>>);

impl ReadAt for Counted {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.1.set(self.1.get() + buffer.len());
        self.0.read_at(offset, buffer)
    }
}

impl Storage for Counted {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn values_are_not_read() {
    for form in FORMS {
        let bytes = file(form, 100_000);
        let found = match form {
            Some(_) => {
                let header = native::Header::examine(&bytes, None).unwrap();
                Some(header.detection)
            }
            None => None,
        };
        let read = Rc::new(Cell::new(0));
        let mut rrd = Rrd::open(Counted(bytes.clone(), read.clone())).unwrap();
        assert!(read.get() < 80_000, "{form:?}: {}", read.get());
        let before = read.get();
        update(&mut rrd, 25).unwrap();
        assert!(read.get() - before < 1000, "{form:?}");
        if let Some(found) = found {
            let (header, _) = native::Header::read(&bytes, None).unwrap();
            assert_eq!(header.detection, found);
        }
    }
}

#[test]
fn numbers_are_as_good_as_texts() {
    for form in FORMS {
        let mut numbers = Rrd::open(file(form, 20)).unwrap();
        let mut texts = Rrd::open(file(form, 20)).unwrap();
        for after in (5..300).step_by(5) {
            update(&mut numbers, after).unwrap();
            let (level, count) = (after as f64 / 7.0, (after * 10).to_string());
            let values = [level.to_string(), count];
            let values = values
                .each_ref()
                .map(|text| Measurement::Text(text.as_bytes()));
            let sample = Sample {
                time: Time::from_seconds(START + after),
                values: &values,
            };
            texts.update(&sample).unwrap();
        }
        let (numbers, texts) = (numbers.database(), texts.database());
        // A text of 17 digits is not read exactly, as rrdtool does not.
        assert_eq!(numbers.state.sources[1], texts.state.sources[1], "{form:?}");
        let reading =
            |database: &kymo_rrd::Database| database.state.sources[0].last_reading.clone();
        assert_eq!(reading(numbers), reading(texts));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Only what changes is written, so the engine must announce all of it.
    #[test]
    fn the_file_holds_the_state_after_each_update(
        machine in sample::select(vec!["x86_64", "s390x", "x86"]),
        archives in sample::subsequence(
            vec![
                "RRA:AVERAGE:0.5:1:7",
                "RRA:LAST:0.5:1:3",
                "RRA:MIN:0.3:2:5",
                "RRA:AVERAGE:0.9:6:4",
                "RRA:MAX:0.5:5:2",
                "RRA:HWPREDICT:12:0.1:0.01:4",
            ],
            1..=6,
        ),
        sources in 1..3usize,
        updates in collection::vec((1..40i64, option::weighted(0.8, -9.0..9.0)), 1..60),
    ) {
        let machine = Machine::find(machine).unwrap();
        let start = Time::from_seconds(START);
        let mut definition = Definition::new(start, 10);
        for source in 0..sources {
            let text = format!("DS:level{source}:GAUGE:30:-5:U");
            definition.add(&text, &Smoothing::default()).unwrap();
        }
        for text in archives {
            definition.add(text, &Smoothing::default()).unwrap();
        }
        let database = create(&definition, |_, _| 0).unwrap();
        let file = portable::create(&database, None, &Default::default(), Vec::new()).unwrap();
        let file = file.into_storage();
        let source = kymo_rrd::Source::open(&file, None).unwrap();
        let file = convert(&source, Target::Native(machine)).unwrap().bytes;
        let mut rrd = Rrd::open_as(file, Some(machine)).unwrap();
        let mut now = START;
        for (after, level) in updates {
            now += after;
            let level = level.map_or(Measurement::Unknown, Measurement::Float);
            rrd.update(&Sample {
                time: Time::from_seconds(now),
                values: &vec![level; sources],
            })
            .unwrap();
            let (header, _) = native::Header::read(rrd.storage_mut(), Some(machine)).unwrap();
            prop_assert_eq!(&header.database, rrd.database());
        }
    }
}

/// A file of a machine with `sources` data sources, of which the last may reach `most`.
fn file_of_kind(machine: &'static Machine, sources: usize, most: &str) -> Vec<u8> {
    let mut definition = Definition::new(Time::from_seconds(START), 10);
    for source in 0..sources {
        let most = if source + 1 == sources { most } else { "9" };
        let text = format!("DS:s{source}:GAUGE:30:0:{most}");
        definition.add(&text, &Smoothing::default()).unwrap();
    }
    for text in ["RRA:AVERAGE:0.5:1:3", "RRA:MAX:0.5:2:2"] {
        definition.add(text, &Smoothing::default()).unwrap();
    }
    let database = create(&definition, |_, _| 0).unwrap();
    let file = portable::create(&database, None, &Default::default(), Vec::new());
    let file = file.unwrap().into_storage();
    let source = kymo_rrd::Source::open(&file, None).unwrap();
    convert(&source, Target::Native(machine)).unwrap().bytes
}

/// Two machines that write the same but for NaNs, and two that are distinguished by the size of times.
const LIKE_EACH_OTHER: [&str; 5] = ["x86_64", "aarch64", "s390x", "x86", "x86-time64"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(target_endian = "big") { 20 } else { 150 }))]

    /// What comes of a file does not depend on those that were opened before.
    #[test]
    fn files_are_what_they_are_among_others(
        // With many data sources, a header is longer than what is read of it at once.
        sources in sample::select(vec![1, 2, 30]),
        files in collection::vec(
            (
                sample::select(&LIKE_EACH_OTHER[..]),
                sample::select(vec!["U", "7", "8"]),
                prop::bool::weighted(0.3),
                // Whether all values are known.
                any::<bool>(),
                collection::vec((any::<sample::Index>(), any::<bool>(), 0..8u8), 0..3),
            ),
            1..12,
        ),
    ) {
        let mut kinds = Kinds::new();
        for (name, most, reported, known, damage) in files {
            let machine = Machine::find(name).unwrap();
            let mut bytes = file_of_kind(machine, sources, most);
            let layout = native::Header::examine(&bytes, None).unwrap().layout;
            if known {
                bytes[layout.header_end()..].fill(0);
            }
            for (place, is_state, bit) in damage {
                let state = layout.live()..layout.header_end();
                let (from, count) = match is_state {
                    true => (state.start, state.len()),
                    false => (0, bytes.len()),
                };
                bytes[from + place.index(count)] ^= 1 << bit;
            }
            let reported = reported.then_some(machine);
            let alone = Rrd::open_as(bytes.clone(), reported);
            let among = Rrd::open_among(bytes, reported, &mut kinds);
            let (mut alone, mut among) = match (alone, among) {
                (Ok(alone), Ok(among)) => (alone, among),
                (alone, among) => {
                    let problem = |opened: Result<Rrd<Vec<u8>>, StoreError>| {
                        opened.err().map(|error| error.to_string())
                    };
                    prop_assert_eq!(problem(alone), problem(among));
                    continue;
                }
            };
            prop_assert_eq!(alone.last_update(), among.last_update());
            // Unknown values are written as the machine writes them.
            let time = Time::from_seconds(alone.last_update().seconds() + 25);
            for values in [Measurement::Unknown, Measurement::Float(4.0)] {
                let values = vec![values; alone.readings()];
                let sample = Sample { time, values: &values };
                let [one, other] = [&mut alone, &mut among].map(|rrd| {
                    rrd.update(&sample).map_err(|error| error.to_string())
                });
                prop_assert_eq!(one, other);
            }
            prop_assert_eq!(alone.database(), among.database());
            prop_assert!(alone.into_storage() == among.into_storage());
        }
    }
}

/// A disk is full for a while. A refused update can be repeated, unless its time was written.
#[test]
fn a_full_disk_is_survived() {
    for form in FORMS {
        let bytes = file(form, 20);
        let mut whole = Rrd::open(Recorder::new(bytes.clone())).unwrap();
        update(&mut whole, 5).unwrap();
        update(&mut whole, 35).unwrap();
        let written = whole.storage_mut().written();
        for room in (0..written).step_by(3) {
            let mut rrd = Rrd::open(Recorder::new(bytes.clone())).unwrap();
            rrd.storage_mut().set_room(Some(room));
            let first = update(&mut rrd, 5);
            let second = update(&mut rrd, 35);
            assert!(first.is_err() || second.is_err(), "{form:?} {room}");
            rrd.storage_mut().set_room(None);
            if let Err(error) = update(&mut rrd, 35) {
                let written = matches!(error, UpdateError::Past { .. });
                assert!(written, "{form:?} {room}: {error}");
            }
            update(&mut rrd, 45).unwrap();
            let storage = rrd.into_storage();
            let source = kymo_rrd::Source::complete(storage.content()).unwrap();
            kymo_rrd::Source::open(&source, None).unwrap();
        }
    }
}

/// A disk that can be full.
struct Disk(Common, Rc<Cell<bool>>);

impl ReadAt for Disk {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buffer)
    }
}

impl Storage for Disk {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.1.get() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => self.0.write_at(offset, bytes),
        }
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is read again after an error may be another database.
#[test]
fn definitions_may_change_after_an_error() {
    let definition = Definition::parse(
        Time::from_seconds(START),
        10,
        &["DS:x:GAUGE:20:U:U", "RRA:LAST:0.5:1:3"],
        &Smoothing::default(),
    );
    let database = create(&definition.unwrap(), |_, _| 0).unwrap();
    let other = portable::create(&database, None, &Default::default(), Vec::new()).unwrap();
    let other = other.into_storage();
    let other = kymo_rrd::Source::open(&other, None).unwrap();
    for form in FORMS.into_iter().flatten() {
        let common = Common(Rc::new(RefCell::new(file(Some(form), 20))));
        let full = Rc::new(Cell::new(false));
        let mut rrd = Rrd::open(Disk(common.clone(), full.clone())).unwrap();
        update(&mut rrd, 5).unwrap();
        full.set(true);
        update(&mut rrd, 8).unwrap_err();
        full.set(false);
        let target = Target::Native(Machine::find(form).unwrap());
        *common.0.borrow_mut() = convert(&other, target).unwrap().bytes;
        let expected = matches!(update(&mut rrd, 15), Err(UpdateError::Count { .. }));
        assert!(expected, "{form}: two readings, and one data source");
        rrd.update(&Sample {
            time: Time::from_seconds(START + 15),
            values: &[Measurement::Float(3.0)],
        })
        .unwrap();
        let length = common.0.borrow().len();
        let expected = convert(&other, target).unwrap().bytes.len();
        assert_eq!(length, expected, "{form}");
    }
}

#[test]
fn syncs_that_fail_are_reported() {
    for form in FORMS {
        let mut rrd = Rrd::open(Recorder::new(file(form, 20))).unwrap();
        rrd.set_durability(portable::Durability::Synced);
        update(&mut rrd, 5).unwrap();
        rrd.storage_mut().set_syncs_fail(true);
        assert!(update(&mut rrd, 15).is_err());
        rrd.storage_mut().set_syncs_fail(false);
        update(&mut rrd, 25).unwrap();
        let last = rrd.last_update();
        assert_eq!(last, Time::from_seconds(START + 25));
    }
}

#[test]
fn rows_that_are_written_are_noted() {
    let mut rrd = Rrd::open(file(Some("x86_64"), 20)).unwrap();
    rrd.note_written();
    let values = [Measurement::Float(2.0), Measurement::Unknown];
    let samples = [7, 47].map(|after| Sample {
        time: Time::from_seconds(START + after),
        values: &values,
    });
    rrd.update_all(&samples, &UpdateOptions::default()).unwrap();
    let written = rrd.take_written();
    let database = rrd.database();
    let rows: Vec<_> = written
        .iter()
        .filter(|written| written.archive < 2)
        .flat_map(|written| {
            let rows = written.rows(database);
            rows.map(|(time, values)| (written.archive, time - START as u64, values[0].get()))
        })
        .collect();
    // As rrdtool prints them: the times of rows after the first are a row too late.
    let expected = [
        (0, 10, Some(2.0)),
        (0, 20, None),
        (0, 40, None),
        (0, 50, None),
        (1, 20, None),
    ];
    assert_eq!(rows, expected);
    assert!(rrd.take_written().is_empty());
}
